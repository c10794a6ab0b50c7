"""What users give as candidates: the strings that they mean, or an error that says what to give instead."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import seqopt
from seqopt.campaign import Campaign, CampaignError
from seqopt.datasets import read_pool
from seqopt.errors import ExhaustedError, InputError
from seqopt.optimizer import Optimizer
from seqopt.spaces import CandidateSet, StringSpace, as_space, candidate_strings

SMILES = ["CCO", "CCN", "CCCO", "CCCN", "c1ccccc1O", "c1ccccc1N"]
FRAME = pd.DataFrame(
    {"id": [f"A{n}" for n in range(6)], "SMILES": SMILES, "supplier": ["Acme"] * 6, "price": np.arange(6.0)}
)


@pytest.mark.parametrize(
    "given",
    [
        tuple(SMILES),
        (string for string in SMILES),
        np.array(SMILES),
        np.array(SMILES, dtype=object),
        pd.Series(SMILES),
        pd.Series(SMILES, dtype="category"),
        pd.Index(SMILES),
        dict.fromkeys(SMILES).keys(),
        FRAME,
        FRAME.rename(columns={"SMILES": "canonical_smiles"}),
        FRAME[["SMILES", "price"]].rename(columns={"SMILES": "what"}),
        FRAME.set_index("id"),
        FRAME.assign(molecule=[Chem.MolFromSmiles(string) for string in SMILES]),
    ],
)
def test_the_strings_that_are_meant_are_found_in_their_order(given: Any) -> None:
    found = candidate_strings(given)
    assert found == SMILES
    assert {type(string) for string in found} == {str}


def test_molecules_of_rdkit_stand_for_their_smiles_stereochemistry_included() -> None:
    written = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "[13CH4]", "CC(=O)[O-].[Na+]"]
    molecules = [Chem.MolFromSmiles(smiles) for smiles in written]
    keys = CandidateSet(written, kind="molecule").keys
    assert CandidateSet(molecules).keys == keys
    assert CandidateSet([*molecules[:2], *written[2:]]).keys == keys
    frame = pd.DataFrame({"drawing": molecules, "price": range(5)})
    assert as_space(frame).keys == keys  # type: ignore[attr-defined]


def test_a_set_is_sorted_since_its_order_is_another_in_every_process() -> None:
    many = [f"C{'C' * n}O" for n in range(50)]
    assert candidate_strings(set(many)) == candidate_strings(frozenset(many)) == sorted(many)
    molecules = {Chem.MolFromSmiles(smiles) for smiles in ("CCO", "CCC", "CCN")}
    assert candidate_strings(molecules) == ["CCC", "CCN", "CCO"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"CCO": 1.0}, "whether its keys or its values"),
        (UserDict({"CCO": 1.0}), "whether its keys or its values"),
        ("CCO", "single string 'CCO'"),
        (b"CCO", "bytes is no list"),
        ([b"CCO", b"CCN"], r"candidates\[0\] is b'CCO' of type bytes.*decode"),
        (np.array([SMILES]), "2 dimensions"),
        (np.array("CCO"), "0 dimensions"),
        (["CCO", None], r"candidates\[1\] is None, as RDKit returns it"),
        (pd.Series(["CCO", np.nan]), r"candidates\[1\] is NaN.*dropna"),
        (["CCO", 3.5], r"candidates\[1\] is 3.5 of type float, expected str"),
        (None, "None of type NoneType"),
        (7, "7 of type int"),
        (Path("library.csv"), "read_pool"),
        (list, "is no list of candidates"),
        (FRAME.drop(columns="SMILES").assign(a="x", b="y"), "cannot tell which column of the DataFrame.*'a', 'b'"),
        (pd.DataFrame(), "the DataFrame has no columns"),
        (pd.DataFrame([["CCO", "CCN"]], columns=["a", "a"]), "several columns called 'a'"),
    ],
)
def test_what_does_not_say_which_strings_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CandidateSet(given)


def test_the_name_of_a_column_says_what_its_strings_are() -> None:
    letters = ["AAA", "AAC", "ACA", "CAA"]
    assert CandidateSet(letters).kind == "dna"
    assert CandidateSet(pd.DataFrame({"peptide": letters})).kind == "protein"


def test_searches_and_optimisers_take_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "library.csv"
    FRAME.to_csv(path, index=False)
    expected = seqopt.maximize("logp", SMILES, initial=3, budget=2, batch_size=1).evaluations["string"].tolist()
    for given in (FRAME, FRAME["SMILES"], [Chem.MolFromSmiles(smiles) for smiles in SMILES], np.array(SMILES)):
        found = seqopt.maximize("logp", given, initial=3, budget=2, batch_size=1).evaluations["string"]
        assert CandidateSet(list(found)).keys == CandidateSet(expected).keys
    for given in (FRAME, read_pool(path)):
        assert Optimizer(given, initial=3).ask(3) == Optimizer(SMILES, initial=3).ask(3)


def test_a_class_of_spaces_is_no_space() -> None:
    with pytest.raises(InputError, match="StringSpace is a class: give an object of it"):
        Optimizer(StringSpace)  # type: ignore[arg-type]


def test_attachment_points_are_for_those_who_ask() -> None:
    with pytest.raises(
        InputError, match=r"candidates\[1\] \('\[\*:1\]CCO'\) has an attachment point.*attachment_points"
    ):
        CandidateSet(["CCO", "[*:1]CCO"])
    asked = CandidateSet(["CCO", "[*:1]CCO", "*CC*"], attachment_points=True)
    assert asked.keys == ["CCO", "OCC[*:1]", "*CC*"]
    assert CandidateSet.from_config(asked.config()).keys == asked.keys
    assert CandidateSet(["A*", "B"], kind="text").keys == ["A*", "B"]
    assert CandidateSet(["MKV*"], kind="protein").keys == ["MKV*"]


def test_a_smiles_that_is_far_too_long_is_refused_and_shown_in_short() -> None:
    with pytest.raises(InputError, match=r"candidates\[1\].*a SMILES of 100,000 characters") as caught:
        CandidateSet(["CCO", "C" * 100_000], kind="molecule")
    assert len(str(caught.value)) < 400
    with pytest.raises(InputError, match="a SMILES of 100,000 characters") as caught:
        CandidateSet(["CCO"], kind="molecule").key("C" * 100_000)
    assert len(str(caught.value)) < 400


def test_campaigns_take_all_of_them_and_find_them_again(tmp_path: Path) -> None:
    for number, given in enumerate((FRAME, SMILES, [Chem.MolFromSmiles(smiles) for smiles in SMILES], set(SMILES))):
        path = tmp_path / f"{number}.seqopt"
        with Campaign.create(path, given, objective="y", batch_size=2) as campaign:
            made = campaign.suggest()
        with Campaign.open(path) as campaign:
            assert campaign.suggest() == made
            assert sorted(campaign.space.keys) == sorted(CandidateSet(SMILES).keys)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="whether its keys or its values"):
        Campaign.create(tmp_path / "no.seqopt", {"CCO": 1.0}, objective="y")
    assert not (tmp_path / "no.seqopt").exists()


def test_a_long_list_is_given_again(tmp_path: Path) -> None:
    many = [f"C{'C' * (n % 40)}{'O' * (n // 40)}" for n in range(1_200)]
    frame = pd.DataFrame({"smiles": many})
    path = tmp_path / "many.seqopt"
    with Campaign.create(path, frame, objective="y", batch_size=2) as campaign:
        made = campaign.suggest()
    with Campaign.open(path, space=frame) as campaign:
        assert campaign.suggest() == made
    with Campaign.open(path, space=many[1:]) as campaign, pytest.raises(CampaignError, match="another space"):
        campaign.suggest(more=True)


def test_a_campaign_keeps_whether_attachment_points_are_allowed(tmp_path: Path) -> None:
    library = tmp_path / "blocks.smi"
    library.write_text("CCO\n*CCO\n[*:1]CCN\nCCN\n")
    for allowed, size in ((False, 2), (True, 4)):
        path = tmp_path / f"{allowed}.seqopt"
        with Campaign.create(path, library, objective="y", batch_size=2, attachment_points=allowed) as campaign:
            campaign.suggest()
        with Campaign.open(path) as campaign:
            assert len(campaign.space) == size  # type: ignore[arg-type]


def test_none_is_called_none_where_results_are_told() -> None:
    optimizer = Optimizer(SMILES, initial=3)
    optimizer.tell(SMILES[:3], [None, float("nan"), 1.0])  # type: ignore[list-item]
    assert optimizer.to_pandas()["error"].tolist() == ["the value is None", "the value is nan", ""]


def test_when_nothing_is_left_results_from_elsewhere_count_as_such() -> None:
    optimizer = Optimizer(SMILES, initial=3)
    optimizer.tell(SMILES[:5], [1.0, 2.0, 3.0, 4.0, 5.0])
    optimizer.ask(3)
    with pytest.raises(ExhaustedError, match="6 strings are known or suggested already, 1 of which await"):
        optimizer.ask(1)
