"""The comparison of choices: what counts as a difference, and that each run can be repeated."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seqopt.acquisition.registry import ACQUISITIONS
from seqopt.bench import choices
from seqopt.models.registry import SURROGATES


def batch(strings: list[str], seconds: float = 1.0, **columns: list[float]) -> dict[str, Any]:
    numbers = [1.0] * len(strings)
    return {
        "strings": strings,
        "means": columns.get("means", numbers),
        "stds": columns.get("stds", numbers),
        "acquisition": columns.get("acquisition", numbers),
        "parameters": {},
        "seconds": seconds,
    }


@pytest.fixture
def record() -> dict[str, Any]:
    return {"batches": [batch(["a", "b"]), batch(["c", "d"]), batch(["e", "f"])]}


def test_equal_records_are_identical(record: dict[str, Any]) -> None:
    found = choices.difference("x", record, copy.deepcopy(record))
    assert (found.outcome, found.mean, found.std, found.time) == ("identical", 0.0, 0.0, 1.0)


def test_the_first_batch_that_differs_is_named_and_later_predictions_do_not_count(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["batches"][1] = batch(["c", "g"], acquisition=[1.0, 1.0 + 1e-9], means=[1.25, 7.0], seconds=3.0)
    other["batches"][2] = batch(["e", "f"], means=[9.0, 9.0], seconds=3.0)
    found = choices.difference("x", record, other)
    assert found.outcome == "differs"
    assert "batch 1, string 2" in found.detail
    assert "near-tie" in found.detail
    assert found.mean == pytest.approx(0.25)
    assert found.time == pytest.approx(3.0)


def test_a_choice_with_another_acquisition_value_is_not_a_near_tie(record: dict[str, Any]) -> None:
    other = copy.deepcopy(record)
    other["batches"][2] = batch(["e", "h"], acquisition=[1.0, 1.1])
    found = choices.difference("x", record, other)
    assert "near-tie" not in found.detail
    assert found.gap == pytest.approx(0.1 / 1.1)


def test_failures_and_missing_batches_are_told_apart(record: dict[str, Any]) -> None:
    failed = {"error": "ModelError: no"}
    assert choices.difference("x", record, failed).outcome == "second fails"
    assert choices.difference("x", failed, record).outcome == "first fails"
    assert choices.difference("x", failed, failed).outcome == "both fail"
    shorter = {"batches": record["batches"][:2]}
    assert choices.difference("x", record, shorter).detail == "batch 2 is missing"


def test_every_surrogate_acquisition_and_space_is_run() -> None:
    runs = choices.runs()
    assert len({run.name for run in runs}) == len(runs) >= 20
    assert set(SURROGATES) <= {run.surrogate for run in runs}
    # Hits are counted where results are yes or no, which no data set here has.
    assert set(ACQUISITIONS) - {"hits"} == {run.acquisition for run in runs}
    assert set(choices.SPACES) == {run.space for run in runs}


def test_the_file_runs_by_itself() -> None:
    listed = subprocess.run([sys.executable, choices.__file__, "--list"], check=True, capture_output=True, text=True)
    assert listed.stdout.splitlines() == [run.name for run in choices.runs()]


def test_a_run_repeats_itself(tmp_path: Path) -> None:
    name = "strings ssk random"
    outs = [tmp_path / "a.json", tmp_path / "b.json"]
    for out in outs:
        choices.main(["--out", str(out), "--only", name])
    first, second = (json.loads(out.read_text())["runs"][name] for out in outs)
    assert [len(batch["strings"]) for batch in first["batches"]] == [10, 3, 3, 3]
    assert choices.difference(name, first, second).outcome == "identical"


def test_a_run_that_raises_is_recorded() -> None:
    run = choices.Run("x", "dna", "tanimoto")
    record = choices.perform(run)
    assert record["error"].startswith("InputError: the surrogate tanimoto is for molecule strings")
