"""Spaces of reactions and building blocks, against products and numbers worked out by hand."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from seqopt.errors import InputError
from seqopt.spaces import CombinatorialSpace
from seqopt.spaces.combinatorial import Reaction, read_blocks, read_reactions
from seqopt.utils.config import from_config

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"
ACIDS = ["CC(=O)O", "OC(=O)c1ccccc1", "OC(=O)C1CC1"]
AMINES = ["CN", "CCN", "C1CNCCO1", "C[C@H](N)c1ccccc1"]
AMIDES = {
    ("CC(=O)O", "CN"): "CNC(C)=O",
    ("OC(=O)c1ccccc1", "CCN"): "CCNC(=O)c1ccccc1",
    ("OC(=O)C1CC1", "C1CNCCO1"): "O=C(C1CC1)N1CCOCC1",
    ("CC(=O)O", "C[C@H](N)c1ccccc1"): "CC(=O)N[C@@H](C)c1ccccc1",
}


def _space(**options: object) -> CombinatorialSpace:
    return CombinatorialSpace([AMIDE], {"acids": ACIDS, "amines": AMINES}, **options)  # type: ignore[arg-type]


def test_products_are_those_of_the_textbook() -> None:
    space = _space()
    for (acid, amine), product in AMIDES.items():
        route = space.route(product)
        assert [block.smiles for block in route.blocks] == [acid, amine]
        assert space.to_string(space.from_string(product)) == Chem.CanonSmiles(product)


def test_the_size_counts_all_tuples_and_a_sample_reaches_every_product() -> None:
    space = _space()
    assert space.size == len(ACIDS) * len(AMINES)
    everything = space.sample(100, np.random.default_rng(0))
    pairs = itertools.product(range(len(ACIDS)), range(len(ACIDS), len(ACIDS) + len(AMINES)))
    assert set(everything) == {space.to_string((0, *pair)) for pair in pairs}


def test_sizes_add_up_over_reactions_and_different_tuples_of_one_product_count_once() -> None:
    # The second reaction makes the same amides of acid chlorides.
    chlorides = {"chlorides": ["CC(=O)Cl", "O=C(Cl)c1ccccc1"]}
    space = CombinatorialSpace(
        [
            Reaction("acid", AMIDE, ("acids", "amines")),
            Reaction("chloride", "[C:1](=[O:2])Cl.[N;H1,H2:3]>>[C:1](=[O:2])[N:3]", ("chlorides", "amines")),
        ],
        {"acids": ACIDS, "amines": AMINES, **chlorides},
    )
    assert space.size == 3 * 4 + 2 * 4
    found = space.sample(100, np.random.default_rng(0))
    assert len(found) == len(set(found)) == 12


def test_blocks_are_dealt_so_that_none_comes_twice_before_all_have_come() -> None:
    space = CombinatorialSpace([AMIDE], {"acids": ["C" * n + "C(=O)O" for n in range(1, 9)], "amines": AMINES * 1})
    tuples = [space.from_string(string) for string in space.sample(4, np.random.default_rng(1))]
    assert len({one[1] for one in tuples}) == len({one[2] for one in tuples}) == 4


def test_what_a_space_makes_is_known_with_and_without_having_made_it() -> None:
    space = _space()
    products = space.sample(3, np.random.default_rng(0))
    for asked in (space, _space()):  # the second has made nothing yet
        assert all(asked.makes(product) and asked.contains(product) for product in products)
        assert not any(map(asked.makes, ("CCO", "CNC(=O)C(C)C")))
        assert not asked.contains("CCO")


@pytest.mark.parametrize("seed", range(3))
def test_tuples_are_found_from_products_alone(seed: int) -> None:
    reactions = [
        AMIDE,
        "[C;H1:1]=O.[N;H1,H2;!$(NC=O):2]>>[C:1][N:2]",  # loses an atom
        "[N;H2:1][c:2][c:3][N;H2:4].[C:5](=O)[OH]>>[c:2]1[n:1][c:5][n;H1:4][c:3]1",  # makes an aromatic ring
        "[C;H1:1]=O.[N;H2:2].[C:3](=[O:4])[OH]>>[C:1](C#N)[N:2][C:3]=[O:4]",  # three components, adds atoms
        "[c:1]Br.[c:2]B(O)O>>[c:1]-[c:2]",  # the bond is all that they share
    ]
    reagents = {
        "acids": ACIDS,
        "amines": AMINES,
        "aldehydes": ["CC=O", "O=Cc1ccncc1"],
        "diamines": ["Nc1ccccc1N", "Cc1cc(N)c(N)cc1C"],
        "aryls": ["Brc1ccccc1", "Brc1ccncc1C"],
        "boronates": ["OB(O)c1ccccc1F", "OB(O)c1ccsc1"],
    }
    made, other = CombinatorialSpace(reactions, reagents), CombinatorialSpace(reactions, reagents)
    assert len(made.reactions) == 5
    for string in made.sample(40, np.random.default_rng(seed)):
        found = other.from_string(string)
        assert other.to_string(found) == string


def test_predicates_are_kept_by_samples_and_moves() -> None:
    space = _space(accept=lambda string: "c1ccccc1" not in string)
    rng = np.random.default_rng(0)
    assert all("c1ccccc1" not in string for string in space.sample(20, rng))
    moved = space.mutate(space.sample_individuals(20, rng), rng)
    assert all("c1ccccc1" not in string for string in space.to_strings(moved))
    with pytest.raises(InputError, match="not accepted"):
        space.from_string("CCNC(=O)c1ccccc1")


def test_what_cannot_react_is_named_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "acids.csv").write_text(
        "id,smiles,price\nA1,CC(=O)O,5\nA2,CCO,7\nA3,OC(=O)CC(C)C(=O)O,9\nA4,C1CC,1\nA5,OC(=O)CC,cheap\nA6,C(C)(=O)O,5\n"
    )
    (tmp_path / "amines.smi").write_text("CN B1\nCCN B2\n")
    space = CombinatorialSpace([Reaction("amide", AMIDE, ("acids", "amines"))], tmp_path)
    said = "\n".join(space.problems)
    acids = tmp_path / "acids.csv"
    assert f"A2 ({acids}, line 3)" in said  # no acid
    assert f"1 block matches at several places and is left out: A3 ({acids}, line 4)" in said
    assert f"{acids}, line 5: 'C1CC'" in said  # no molecule
    assert f"1 price is no number of at least 0, and unknown: 'cheap' ({acids}, line 6)" in said
    assert f"1 row repeats a molecule of its file and is left out: {acids}, line 7" in said
    # Whatever it costs, propionic acid reacts.
    assert space.size == 2 * 2
    assert space.route("CNC(C)=O").price is None  # what the amine costs is not known


def test_a_block_that_matches_at_equivalent_places_is_taken() -> None:
    space = CombinatorialSpace([AMIDE], {"acids": ["OC(=O)CC(=O)O"], "amines": ["CN"]})
    assert space.sample(5, np.random.default_rng(0)) == ["CNC(=O)CC(=O)O"]


def test_prices_of_a_route_add_up(tmp_path: Path) -> None:
    (tmp_path / "acids.csv").write_text("id,smiles,price\nA1,CC(=O)O,5.5\n")
    (tmp_path / "amines.csv").write_text("catalog_id,smiles,cost\nB1,CN,2\n")
    route = CombinatorialSpace([AMIDE], tmp_path).route("CNC(C)=O")
    assert (str(route), route.price) == ("reaction1: A1 + B1", 7.5)


def test_reactions_that_cannot_be_used_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    file = tmp_path / "reactions.txt"
    file.write_text(
        f"# mine\n{AMIDE} amide\n[C:1](=O>>[C:1] broken\n[c:1]Br.[c:2]B(O)O>>[c:1][c:2] suzuki\n[C:1]>>[C:1] one\n"
        f"{AMIDE} lost acids nowhere\n{AMIDE.replace(':3]', ':4]', 2).replace(':4]', ':3]', 1)} mistyped\n"
    )
    reactions, problems = read_reactions(file)
    assert [one.name for one in reactions] == ["amide", "suzuki", "lost"]
    assert f"({file}, line 3) does not parse" in problems[0]
    assert f"({file}, line 5) has 1 component;" in problems[1]
    assert f"({file}, line 7) has the atom map 4 in its product and in no component" in problems[2]
    space = CombinatorialSpace(file, {"acids": ACIDS, "amines": AMINES})
    assert [one.name for one in space.reactions] == ["amide"]
    said = "\n".join(space.problems)
    assert "'suzuki'" in said
    assert "no reagents for component 1" in said
    assert "takes component 2 from 'nowhere'" in said


def test_a_space_without_any_reaction_says_why() -> None:
    with pytest.raises(InputError, match="no reagents for component 1: none of 4 building blocks matches"):
        CombinatorialSpace([AMIDE], {"amines": AMINES})
    with pytest.raises(InputError, match="does not parse"):
        CombinatorialSpace(["[C:1](=O>>[C:1]"], {"amines": AMINES})


def test_products_that_cannot_be_made_are_counted() -> None:
    # A nitrogen that would have five bonds.
    space = CombinatorialSpace(
        ["[C:1](=[O:2])[OH].[N:3]>>[C:1](=[O:2])[N:3]"], {"acids": ACIDS, "amines": ["CN", "CN(C)C"]}
    )
    assert len(space.sample(100, np.random.default_rng(0))) == 3
    assert len(space.failed) == 3
    assert all("valence" in why for why in space.failed.values())


def test_a_space_is_made_again_without_its_files_and_large_ones_hold_them_to_their_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acids, amines = tmp_path / "acids.smi", tmp_path / "amines.smi"
    acids.write_text("CC(=O)O A1\nOC(=O)c1ccccc1 A2\n")
    amines.write_text("CN B1\n")
    space = CombinatorialSpace([AMIDE], [acids, amines])
    small = space.config()
    monkeypatch.setattr("seqopt.spaces.combinatorial.space.KEPT", 1)
    large = space.config()
    again = from_config(large)
    assert isinstance(again, CombinatorialSpace)
    assert again.size == space.size
    acids.write_text("CC(=O)O A1\n")
    with pytest.raises(InputError, match=r"acids\.smi have changed"):
        from_config(large)
    acids.unlink()
    made = from_config(small)
    assert str(made.route("CNC(C)=O")) == "reaction1: A1 + B1"


def test_files_of_one_name_and_empty_folders_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b", "empty"):
        (tmp_path / folder).mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder / "acids.smi").write_text("CC(=O)O A1\n")
    with pytest.raises(InputError, match="both called 'acids'"):
        read_blocks([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(InputError, match="holds no files of building blocks"):
        read_blocks(tmp_path / "empty")


def test_blocks_of_one_identifier_are_named(tmp_path: Path) -> None:
    (tmp_path / "acids.csv").write_text("id,smiles\nA1,CC(=O)O\nA1,CCC(=O)O\n")
    (tmp_path / "amines.smi").write_text("CN B1\n")
    space = CombinatorialSpace([Reaction("amide", AMIDE, ("acids", "amines"))], tmp_path)
    acids = tmp_path / "acids.csv"
    assert any("1 identifier stands for several" in line and f"{acids}, line 3" in line for line in space.problems)


def test_of_several_tuples_of_a_product_the_least_is_meant_whichever_was_made_first() -> None:
    ether = "[O;H1:1][C:3].[O;H1][C:2]>>[C:3][O:1][C:2]"
    alcohols = {"alcohols": ["CO", "CCO", "CC(C)O", "OC1CC1"]}
    tried, fresh = CombinatorialSpace([ether], alcohols), CombinatorialSpace([ether], alcohols)
    both = [(0, first, second) for first in range(4) for second in range(4)]
    by_key: dict[str, list[tuple[int, ...]]] = {}
    for one in reversed(both):
        by_key.setdefault(str(tried.product(one)), []).append(one)
    assert len(by_key) == 10
    for key, tuples in by_key.items():
        assert tried.tuple_of(key) == fresh.tuple_of(key) == min(tuples)


def test_reactions_and_reagents_in_each_others_place_are_told_apart(tmp_path: Path) -> None:
    blocks = tmp_path / "blocks"
    blocks.mkdir()
    (blocks / "acids.smi").write_text("CC(=O)O A1\nCCC(=O)O A2\n")
    (tmp_path / "reactions.txt").write_text(f"{AMIDE} amide\n")
    with pytest.raises(InputError, match=r"blocks is a folder, and reactions stand in a file"):
        CombinatorialSpace(blocks, tmp_path / "reactions.txt")
    with pytest.raises(InputError, match=r"none of its 2 SMARTS has >> .* 'CC\(=O\)O' \(.*acids\.smi, line 1\)"):
        CombinatorialSpace(blocks / "acids.smi", tmp_path / "reactions.txt")
