"""What building blocks can do, found by processes and kept on disk: the same as what is found at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from seqopt.datasets.synthemol import REACTIONS
from seqopt.spaces import CombinatorialSpace
from seqopt.spaces.combinatorial import BuildingBlocks, Reaction, survey
from seqopt.utils import workers

ACIDS = ["CC(=O)O", "OC(=O)c1ccccc1", "OC(=O)C1CC1", "OC(=O)CC(=O)O", "OC(=O)CC(C)C(=O)O"]
AMINES = ["CN", "CCN", "C1CNCCO1", "Nc1ccccc1", "CC(N)CN", "CNC(=O)C", "NCCNC(=O)OC(C)(C)C"]
OTHERS = ["CS(=O)(=O)Cl", "BrCc1ccccc1", "ICC", "c1ccccc1", "FC(F)(F)Cl"]


def _space() -> CombinatorialSpace:
    blocks = BuildingBlocks.of([*ACIDS, *AMINES, *OTHERS], "all")
    return CombinatorialSpace([Reaction(name, smarts) for name, smarts in REACTIONS.items()], blocks)


def _facts(space: CombinatorialSpace) -> tuple[object, ...]:
    components = [
        [space.component(reaction, slot).tolist() for slot in range(space.components(reaction))]
        for reaction in range(len(space.reactions))
    ]
    strings = space.sample(30, np.random.default_rng(0))
    return components, space.problems, strings, space.rows_of(strings).tolist()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(survey, "LONG", 3)
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    return tmp_path / survey.FOLDER


def test_long_lists_are_kept_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = _facts(_space())
    assert not caplog.text
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(survey, "LONG", 3)
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    assert _facts(_space()) == expected
    assert "building blocks leave in reaction 'amide' is found out, once" in caplog.text

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it is looked at again")

    monkeypatch.setattr(survey, "map_strings", refuse)
    assert _facts(_space()) == expected


def test_what_is_damaged_is_found_out_again(kept: Path) -> None:
    expected = _facts(_space())
    files = sorted(kept.iterdir())
    assert len(files) > 3
    for path in files:
        path.write_bytes(path.read_bytes()[:-1])
    assert _facts(_space()) == expected
    for path in files:
        path.write_text("no arrays")
    assert _facts(_space()) == expected


def test_other_blocks_and_other_sets_are_not_confused(kept: Path) -> None:
    amide = REACTIONS["amide"]
    first = CombinatorialSpace([Reaction("one", amide, ("b", "a"))], {"a": ACIDS, "b": AMINES})
    other = CombinatorialSpace([Reaction("one", amide, ("b", "a"))], {"a": ACIDS[::-1], "b": AMINES})
    for space in (first, other):
        for string in space.sample(12, np.random.default_rng(0)):
            reaction, amine, acid = space.from_string(string)
            blocks = space.reagents.blocks
            assert (blocks[amine].source, blocks[acid].source) == ("b", "a")
            assert space.to_string((reaction, amine, acid)) == string


def test_sets_of_the_same_size_are_not_confused(kept: Path) -> None:
    # The same blocks and reaction, each component of four blocks of either set.
    sets = {"a": ACIDS[:4], "b": AMINES[:4], "c": [f"OC(=O){'C' * n}F" for n in range(2, 6)]}
    for acids in ("a", "c"):
        first, other = (CombinatorialSpace([Reaction("one", REACTIONS["amide"], ("b", acids))], sets) for _ in range(2))
        # A space that has made a product knows its tuple; another one has to find it.
        for string in first.sample(12, np.random.default_rng(0)):
            acid = other.reagents.blocks[other.rows_of([string])[0][2]]
            assert acid.source == acids


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _facts(_space())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(survey, "LONG", 3)
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    assert _facts(_space()) == expected


@pytest.mark.parametrize(
    ("name", "blocks", "product"),
    [
        ("amide", ["CCN", "CC(=O)O"], "CCNC(C)=O"),
        ("urea", ["CCN", "C1CNCCO1"], "CCNC(=O)N1CCOCC1"),
        ("oxalamide", ["CCN", "C1CNCCO1"], "CCNC(=O)C(=O)N1CCOCC1"),
        ("sulfonamide", ["CCN", "CS(=O)(=O)Cl"], "CCNS(C)(=O)=O"),
        ("alkylation", ["C1CNCCO1", "BrCc1ccccc1"], "c1ccc(CN2CCOCC2)cc1"),
        ("ester", ["CC(=O)O", "CCI"], "CCOC(C)=O"),
        ("diamide", ["NCCNC(=O)OC(C)(C)C", "CC(=O)O", "OC(=O)C1CC1"], "CC(=O)NCCNC(=O)C1CC1"),
    ],
)
def test_reactions_of_the_make_on_demand_library(name: str, blocks: list[str], product: str) -> None:
    sets = {f"set{number}": [block] for number, block in enumerate(blocks)}
    space = CombinatorialSpace([Reaction(name, REACTIONS[name], tuple(sets))], sets)
    assert space.to_string((0, *range(len(blocks)))) == Chem.CanonSmiles(product)


@pytest.mark.parametrize(
    ("name", "slot", "block"),
    [
        ("amide", 0, "CNC(C)=O"),  # an amide is no amine
        ("amide", 0, "NN"),
        ("amide", 1, "COC(C)=O"),
        ("urea", 0, "CNC"),
        ("alkylation", 1, "Brc1ccccc1"),
        ("ester", 1, "FC(F)(F)Cl"),
        ("sulfonamide", 1, "CS(=O)(=O)O"),
    ],
)
def test_blocks_that_do_not_react_so_take_no_part(name: str, slot: int, block: str) -> None:
    assert survey.places([Reaction(name, REACTIONS[name])], [block])[0][slot].tolist() == [survey.NOWHERE]
