"""The benchmark of formulas: what is judged, and the tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import formulas
from seqopt.bench.formulas import METHODS, TASKS, Job, r_squared, read_runs, solved, tables, training_points, work
from seqopt.bench.records import append_record
from seqopt.objectives import FORMULA_TASKS, ExpressionError


def run(task: str, method: str, seed: int, nmse: float | None, largest: float | None) -> dict[str, object]:
    return {
        "job": {"task": task, "method": method, "seed": seed},
        "formula": "x",
        "size": 5,
        "train_nmse": nmse,
        "test_nmse": nmse,
        "test_largest": largest,
        "evaluations": 100,
        "computations": 1000 + seed,
        "seconds": 2.0,
        "record": {"command": "seqopt bench formulas", "versions": {"python": "3"}, "machine": MACHINE},
    }


MACHINE = {"processor": "P", "vector_bits": 256, "cores": 2, "platform": "L"}


def test_what_is_reported_was_drawn_before() -> None:
    rng = np.random.default_rng(0)
    nguyen = [f"nguyen-{number}" for number in range(1, 11)]
    keijzer = [f"keijzer-{number}" for number in range(1, 16) if number not in (2, 3, 8)]
    drawn = {*rng.choice(nguyen, 5, replace=False), *rng.choice(keijzer, 5, replace=False)}
    assert set(TASKS) == drawn
    # Those left out of the draw are in the lists under another number.
    formulas_of = {name: FORMULA_TASKS[name].formula for name in FORMULA_TASKS}
    assert formulas_of["keijzer-2"] == formulas_of["keijzer-3"] == formulas_of["keijzer-1"]
    assert formulas_of["keijzer-8"] == formulas_of["nguyen-8"]


@pytest.mark.parametrize("method", ["random", "random-constants"])
def test_a_run_is_judged_on_points_that_it_has_not_seen(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "EVALUATIONS", 6)
    job = Job("nguyen-8", method, 3)
    found = work(job)
    assert found == work(job) | {"seconds": found["seconds"]}
    assert (found["evaluations"], found["job"]) == (6, {"task": "nguyen-8", "method": method, "seed": 3})
    assert found["computations"] >= 6
    inputs, values = training_points(job)
    if method == "random":
        score = ExpressionError(dict(inputs), values, relative=True)([found["formula"]])[0]
        assert np.expm1(score) == pytest.approx(found["train_nmse"])
    assert found["train_nmse"] != found["test_nmse"]


def test_gplearn_is_given_as_many_evaluations() -> None:
    pytest.importorskip("gplearn")
    found = work(Job("nguyen-8", "gplearn", 0))
    assert found["evaluations"] == found["computations"] <= 100
    assert 0 <= found["train_nmse"] < 2


def test_negative_and_undefined_r2_count_as_nothing() -> None:
    assert r_squared(run("nguyen-3", "random", 0, 0.25, 1.0)) == 0.75
    assert r_squared(run("nguyen-3", "random", 0, 7.0, 1.0)) == 0
    assert r_squared(run("nguyen-3", "random", 0, None, None)) == 0
    assert solved(run("nguyen-3", "random", 0, 1e-9, 0.009))
    assert not solved(run("nguyen-3", "random", 0, 1e-9, 0.011))
    assert not solved(run("nguyen-3", "random", 0, None, None))


def test_the_table_has_means_and_paired_differences(tmp_path: Path) -> None:
    for method, errors in (("seqopt-constants", (0.0, 0.2)), ("random", (0.5, 0.9))):
        for seed, error in enumerate(errors):
            for task in TASKS:
                append_record(tmp_path / f"{method}.jsonl", run(task, method, seed, error, error), ["job"])
    append_record(tmp_path / "random.jsonl", run("nguyen-1", "random", 0, 0.0, 0.0), ["job"])
    text = tables(read_runs(tmp_path))
    assert "| R2 on the test points | seqopt, constants fitted | random |" in text
    assert f"| nguyen-3: {FORMULA_TASKS['nguyen-3'].formula} | 0.900 ± 0.100 | 0.300 ± 0.200 |" in text
    assert "| *mean of all* | 0.900 ± 0.100 | 0.300 ± 0.200 |" in text
    # 0.5 and 0.7, ten times each.
    assert "| *mean of all, seqopt, constants fitted, less this* |  | 0.600 ± 0.023 |" in text
    # log10 of 1e-12 and 0.2, and of 0.5 and 0.9.
    assert "| *log10 of the error on the training points* | -6.349 ± 5.651 | -0.173 ± 0.128 |" in text
    assert "| *found* | 10 of 20 | 0 of 20 |" in text
    assert "over 2 seeds" in text


def test_every_method_has_a_name() -> None:
    assert len({label for label, _ in METHODS.values()}) == len(METHODS)
