"""The benchmark of combinatorial libraries, on scores that are made up."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from seqopt.bench import reagents
from seqopt.bench.reagents import by_reagents, found_so_far
from seqopt.datasets.thrombin import Thrombin
from seqopt.errors import InputError
from seqopt.spaces import CombinatorialSpace
from seqopt.spaces.combinatorial import BuildingBlocks, Reaction


def test_thompson_sampling_over_reagents_finds_the_best_where_terms_add_up() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal(size) for size in (12, 15, 10)]
    values = parts[0][:, None, None] + parts[1][None, :, None] + parts[2][None, None]
    best = set(np.argsort(-values.reshape(-1))[:20].tolist())
    order = by_reagents(values, 600, 50, np.random.default_rng(1))
    assert len(order) == len(set(order.tolist())) == 600
    assert len(best & set(order.tolist())) > 15
    assert (order == by_reagents(values, 600, 50, np.random.default_rng(1))).all()


def test_it_goes_on_until_everything_is_evaluated() -> None:
    values = np.random.default_rng(0).standard_normal((3, 4, 5))
    order = by_reagents(values, 60, 7, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(60))


def test_shares_count_those_that_tie_with_the_last() -> None:
    scores = np.concatenate([np.arange(99.0), [99.0, 99.0], np.full(20, 500.0)])
    assert found_so_far([120, 0, 99, 100], scores).tolist() == pytest.approx([0.0, 0.01, 0.02, 0.03])


def test_a_table_has_a_row_for_each_method(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(0).standard_normal(6000)
    monkeypatch.setattr(reagents, "library", lambda: (None, scores))
    order = np.argsort(scores)[:5000].tolist()
    runs = {"random": [{"indices": order[::-1], "seconds": 1.0}], "thompson": [{"indices": order, "seconds": 2.0}] * 2}
    lines = reagents.table(runs).splitlines()
    assert lines[2].startswith("| random | 1 | 0.0 |")
    assert "| 2 | 100.0 ± 0.0 | 100.0 ± 0.0 |" in lines[3]


def test_codes_of_products_are_places_of_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    amide = "[C:1](=[O:2])[OH].[N;X3;H2:3]>>[C:1](=[O:2])[N:3]"
    acids = {"A": "CC(=O)O", "B": "OC(=O)c1ccccc1", "C": "OC(C)=O"}  # the third is the first
    amines = {"X": "CCN", "Y": "CN"}
    blocks = BuildingBlocks.of(acids.values(), "acids").joined(BuildingBlocks.of(amines.values(), "amines"))
    space = CombinatorialSpace([Reaction("amide", amide, ("acids", "amines"))], blocks)
    monkeypatch.setattr(reagents, "library", lambda: (space, np.zeros((2, 2))))
    data = Thrombin(acids, amines, np.zeros((3, 2)))
    assert reagents.places_of_codes(["B_Y", "A_X", "C_X", "A_Y"], data).tolist() == [3, 0, 1]
    products = [space.product((0, 0, 2)), space.product((0, 1, 3))]
    assert products == ["CCNC(C)=O", "CNC(=O)c1ccccc1"]


def test_the_package_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TACTICS", "TACTICS.library_enumeration"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"pip install chem-tactics==1\.2\.0"):
        reagents.by_tactics("recommended", 10, 0)
