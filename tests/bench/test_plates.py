"""The benchmark of plates and folds: where strings are measured, and the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench import plates
from seqopt.bench.plates import METHODS, TASKS, Candidates, Job, Task, regrets, search, tables, work
from seqopt.bench.records import append_record
from seqopt.spaces import CandidateSet

pytestmark = pytest.mark.usefixtures("own_process")

STRINGS = tuple(a + b + c for a in "abcd" for b in "efgh" for c in "ijkl")
SCORES = np.array([sum(map(ord, one)) for one in STRINGS], dtype=np.float64)
TABLES = np.stack([SCORES, SCORES + 5, SCORES + np.arange(64) % 3, SCORES - 2], axis=1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plates, "_whole", lambda names: (STRINGS, TABLES[:, : 3 if len(names) > 1 else 4]))
    monkeypatch.setattr(plates, "SIZE", 60)
    monkeypatch.setattr(plates, "CHECKPOINTS", (20, 28))
    plates.candidates_of.cache_clear()
    yield
    plates.candidates_of.cache_clear()


FOLDS, PLATES = TASKS["nasbench201"], TASKS["hpolib-protein"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"), [(name, one) for name in ("nasbench201", "plates-offset") for one in METHODS]
)
def test_as_many_measurements_are_made_as_are_paid_for(name: str, method: str) -> None:
    candidates = plates.candidates_of(name, 0)
    measured, recommended = search(TASKS[name], METHODS[method], candidates, 0)
    assert 24 < len(measured) <= 28
    assert set(recommended) == {"20", "28"}
    assert all(index in {one for one, _ in measured} for index in recommended.values())
    used = {place for _, place in measured}
    if METHODS[method].how == "all":
        several = candidates.values.shape[1]
        assert measured == [(index, place) for index, _ in measured[::several] for place in range(several)]
    if METHODS[method].how == "one":
        assert used == {0}
    if METHODS[method].how == "chosen":
        # The beginning is on every fold, or on two plates, with different strings on each.
        first = measured[: 21 if name == "nasbench201" else 20]
        assert {place for _, place in first} == set(range(3 if name == "nasbench201" else 2))
        assert len({index for index, _ in first}) == len(first)


def test_methods_of_a_seed_begin_with_the_same_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plates, "CHECKPOINTS", (20,))
    candidates = plates.candidates_of("hpolib-protein", 1)
    order = np.random.default_rng([1, 6]).permutation(60).tolist()
    for method in METHODS.values():
        measured, _ = search(PLATES, method, candidates, 1)
        begun = list(dict.fromkeys(index for index, _ in measured[:20]))
        assert begun == order[: len(begun)]


def test_what_is_meant_is_the_mean_without_offsets() -> None:
    plain, shifted = (plates.candidates_of(name, 2) for name in ("hpolib-protein", "plates-offset"))
    np.testing.assert_allclose(plain.target, plain.values.mean(1))
    np.testing.assert_array_equal(plain.target, shifted.target)
    assert not plain.offsets.any()
    assert shifted.measured(3, 1) - plain.measured(3, 1) == pytest.approx(shifted.offsets[1])
    # A plate has one offset, whatever is on it, and a fifth repeats the first seed with an offset of its own.
    assert shifted.measured(7, 4) == pytest.approx(plain.measured(7, 0) + shifted.offsets[4])
    assert len(set(shifted.offsets)) == len(shifted.offsets)
    many = np.concatenate([plates.candidates_of("plates-offset", seed).offsets for seed in range(20)])
    assert many.std() == pytest.approx(plates.OFFSET * plain.target.std(), rel=0.15)


def test_folds_are_means_over_repeats_and_losses_are_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt import datasets

    class Table:
        strings = ("aa", "ab")

    class Accuracy(Table):
        values = np.array([[1.0, 3.0, np.nan], [5.0, 6.0, 7.0]])

    class Loss(Table):
        values = np.array([[0.1, 0.01], [10.0, 1.0]])

    monkeypatch.undo()
    monkeypatch.setattr(
        datasets, "load_configurations", lambda name: Loss if name == "loss" else Accuracy, raising=False
    )
    monkeypatch.setattr(
        "seqopt.datasets.configurations.load_configurations", lambda name: Loss if name == "loss" else Accuracy
    )
    plates._whole.cache_clear()
    np.testing.assert_allclose(plates._whole(("a", "b"))[1], [[2.0, 2.0], [6.0, 6.0]])
    np.testing.assert_allclose(plates._whole(("loss",))[1], [[1.0, 2.0], [-1.0, 0.0]])
    plates._whole.cache_clear()


def test_regret_is_that_of_the_recommendation() -> None:
    candidates = Candidates(CandidateSet(STRINGS), TABLES, SCORES, np.zeros(60))
    best = int(SCORES.argmax())
    run = {"recommended": {"20": 0, "28": best}}
    np.testing.assert_allclose(regrets(run, candidates), [SCORES.max() - SCORES[0], 0.0])


@pytest.mark.slow
def test_a_model_is_better_than_random_strings_and_fixed_by_its_seed() -> None:
    found = {name: work(Job("hpolib-protein", name, 0)) for name in ("chosen", "random")}
    candidates = plates.candidates_of("hpolib-protein", 0)
    assert regrets(found["chosen"], candidates)[-1] < regrets(found["random"], candidates)[-1]
    assert work(Job("hpolib-protein", "chosen", 0))["measured"] == found["chosen"]["measured"]


def test_the_table_pairs_by_seed(tmp_path: Path) -> None:
    for seed in (0, 1):
        target = plates.candidates_of("hpolib-protein", seed).target
        best, worst = int(target.argmax()), int(target.argmin())
        for method, last in (("all", worst), ("chosen", best)):
            run: dict[str, Any] = {
                "job": {"task": "hpolib-protein", "method": method, "seed": seed},
                "measured": [[0, 0], [0, 1], [1, 0]],
                "recommended": {"20": worst, "28": last},
            }
            append_record(tmp_path / "hpolib-protein.jsonl", run, ["job"])
    spread = [np.ptp(plates.candidates_of("hpolib-protein", seed).target) for seed in (0, 1)]
    lines = tables(plates.read_runs(tmp_path)).splitlines()
    (chosen,) = (line.split("|") for line in lines if line.startswith("| chosen"))
    assert [cell.strip() for cell in chosen[4:7]] == [
        "0.000 ± 0.000",
        "0.000 ± 0.000",
        f"{-np.mean(spread):.3f} ± {abs(spread[0] - spread[1]) / 2:.3f}",
    ]
    assert [cell.strip() for cell in chosen[7:9]] == ["2.0", "2.0"]


def test_plates_have_one_table_and_folds_several() -> None:
    assert isinstance(PLATES, Task)
    assert (PLATES.kind, FOLDS.kind, replace(PLATES, tables=("a", "b")).kind) == ("plates", "folds", "folds")
