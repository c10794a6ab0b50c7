"""The benchmark of spaces in which most strings fail: its tasks, what is counted, and the table."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench import ehrlich
from seqopt.bench.ehrlich import BANNED, METHODS, TASKS, Job, dna_value, main, measures, read_runs, table, work
from seqopt.bench.records import append_record
from seqopt.objectives import Ehrlich

SMALL = replace(
    TASKS["15"], letters=6, length=6, motifs=1, motif_length=3, initial=4, budget=4, batch=4, settled=2, label="small"
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, own_process: None) -> None:
    tasks = {"15": SMALL, "dna": replace(TASKS["dna"], length=5, initial=6, budget=4, batch=4, settled=2)}
    monkeypatch.setattr(ehrlich, "TASKS", tasks)


def test_dna_counts_patterns_and_fails_with_a_banned_pair() -> None:
    assert dna_value(["CGCGT", "GTAGTA", "TTTT"]).tolist() == [2.0, 2.0, 0.0]
    assert np.isnan(dna_value(["TAAT", "TACT", "GCCG"])).all()
    # The stated share of strings without a banned pair, by counting walks.
    steps = np.array([[a + b not in BANNED for b in "ACGT"] for a in "ACGT"], dtype=float)
    counted = np.ones(4) @ np.linalg.matrix_power(steps, TASKS["dna"].length - 1) @ np.ones(4)
    assert counted / 4.0 ** TASKS["dna"].length == pytest.approx(0.073, abs=5e-4)
    every = ["".join(symbols) for symbols in itertools.product("ACGT", repeat=4)]
    assert (~np.isnan(dna_value(every))).sum() == np.ones(4) @ np.linalg.matrix_power(steps, 3) @ np.ones(4)


def test_failures_are_counted_without_the_initial_strings() -> None:
    task = {"initial": 2, "settled": 3}
    values = [None, 0.1, None, None, 0.5, None, 0.2, 0.3]
    found = measures({"task": task, "values": values})
    assert (found.failed, found.late, found.best) == (50.0, pytest.approx(100 / 3), 0.5)
    assert measures({"task": task, "values": [None] * 8}).best == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_a_run_begins_with_feasible_strings_and_stores_their_values(small: None, method: str) -> None:
    found = work(Job("15", method, 3))
    assert len(found["strings"]) == len(found["values"]) == 8
    assert len(set(found["strings"])) == 8
    function = Ehrlich(6, 6, 1, 3, seed=3)
    values = function(found["strings"])
    assert [None if np.isnan(value) else round(value, 6) for value in values.tolist()] == found["values"]
    assert None not in found["values"][:4]


def test_methods_of_one_seed_share_function_and_first_strings(small: None) -> None:
    taught, ignored = (work(Job("dna", method, 1)) for method in METHODS)
    assert taught["strings"][:6] == ignored["strings"][:6]
    assert work(Job("dna", "ignore", 1))["strings"] == ignored["strings"]
    assert [None if np.isnan(value) else value for value in dna_value(taught["strings"]).tolist()] == taught["values"]


def stored(folder: Path, task: str, method: str, seed: int, values: list[float | None]) -> None:
    run: dict[str, Any] = {
        "job": {"task": task, "method": method, "seed": seed},
        "task": {"initial": 1, "settled": 2},
        "values": values,
        "seconds": 7.0,
    }
    append_record(folder / f"{task}-{method}.jsonl", run, ["job"])


def test_the_table_has_means_over_seeds(tmp_path: Path) -> None:
    stored(tmp_path, "15", "learn", 0, [0.1, 0.3, None, 0.5, 0.2])
    stored(tmp_path, "15", "learn", 1, [0.1, None, None, None, 0.7])
    stored(tmp_path, "dna", "ignore", 0, [1.0, None, 3.0, None, None])
    text = table(read_runs(tmp_path))
    assert "| failures teach | 2 | 50.0 ± 25.0 | 25.0 ± 25.0 | 0.60 ± 0.10 | 7 |" in text
    assert "| failures teach nothing | 1 | 75.0 | 100.0 | 3.00 | 7 |" in text
    assert TASKS["32"].label not in text


def test_the_command_keeps_runs_and_writes_its_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path / "raw", "15", "learn", 0, [0.1, 0.3, None, 0.5, 0.2])
    document = tmp_path / "results.md"
    document.write_text("above\n<!-- begin ehrlich -->\nstale\n<!-- end ehrlich -->\nbelow\n")
    options = ["--results", str(tmp_path / "raw"), "--document", str(document)]
    main([*options, "--report-only"])
    text = document.read_text()
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert "stale" not in text
    assert "| failures teach | 1 | 25.0 | 0.0 | 0.50 | 7 |" in text
    capsys.readouterr()
    main([*options, "--tasks", "15", "--methods", "learn", "--seeds", "1"])  # which is there
    assert "1 of 1 runs are there already" in capsys.readouterr().out
    assert len([json.loads(line) for line in (tmp_path / "raw" / "15-learn.jsonl").read_text().splitlines()]) == 1
