"""Searches with and without a learned transform: what is counted, and the table."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench import transforms
from seqopt.bench.transforms import Job, Task, found, table, work
from seqopt.errors import InputError

STRINGS = [a + b + c + d for a in "AB" for b in "AB" for c in "AB" for d in "AB"]
VALUES = np.array([-float(10.0 ** text.count("B")) for text in STRINGS])
TASK = Task("toy", lambda: (STRINGS, VALUES, "text"), 2, 10, 1, 3)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "TASKS", {"toy": TASK})


def test_both_searches_begin_alike_and_say_what_they_learned(toy: None) -> None:
    none, auto = (work(Job("toy", transform, 1)) for transform in ("none", "auto"))
    assert none["indices"][:10] == auto["indices"][:10]
    assert len(set(auto["indices"])) == 12
    assert auto["values"] == VALUES[auto["indices"]].tolist()
    assert none["learned"] == []
    assert auto["learned"][0] == "none"
    assert auto["learned"][1] in ("yeo-johnson", "winsorised")


def test_ties_with_the_last_of_the_best_count() -> None:
    # -1 once, -10 four times: the third best is one of these.
    run = {"indices": [STRINGS.index(text) for text in ("AAAA", "AAAB", "BAAA", "BBBB")]}
    assert found(run, VALUES, TASK) == 3
    worst = Task("toy", TASK.load, 2, 10, 1, 1, "minimize")
    assert found(run, VALUES, worst) == 1


def test_the_table_is_paired_by_seed(toy: None) -> None:
    def run(transform: str, seed: int, *indices: int) -> dict[str, object]:
        job = {"task": "toy", "transform": transform, "seed": seed}
        return {"job": job, "indices": list(indices), "learned": ["winsorised"], "suggest_seconds": 2.0}

    best = [STRINGS.index(text) for text in ("AAAA", "AAAB", "BAAA", "AABA")]
    runs = [run("none", 0, best[0]), run("auto", 0, *best[:3]), run("none", 1, *best[:2]), run("auto", 1, *best)]
    runs.append(run("none", 2, *best))  # nothing to pair it with
    row = next(line for line in table(runs).splitlines() if line.startswith("| toy"))
    assert row == "| toy (16) | 3 | 12 | 2 | 1.5 ± 0.5 | 3.5 ± 0.5 | 2.0 ± 0.0 | winsorised 2 | 2 | 2 |"


def test_a_table_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("SEQOPT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"gb1_four_sites.csv.gz is not there: write columns variant and fitness"):
        transforms.sites_file()
