"""The benchmark of portfolios: runs begin alike, and are compared with the best member by seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench import portfolio
from seqopt.spaces import CandidateSet
from seqopt.strategies import EntropySearch

POOL = ["A" * a + "B" * b for a in range(1, 6) for b in range(1, 6)]


def tiny(seed: int) -> tuple[Any, portfolio.Values]:
    space = CandidateSet(POOL, kind="text")
    return space, lambda strings: np.array([string.count("A") - 0.3 * string.count("B") for string in strings])


def test_runs_begin_alike_and_say_whose_nominees_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    task = portfolio.Task("tiny, units", tiny, 5, 4, 2, "minimize", "ngrams", top=3)
    monkeypatch.setattr(portfolio, "TASKS", {"tiny": task})
    monkeypatch.setattr(EntropySearch.__init__, "__defaults__", (20, 2, 50, 30))
    member, esp = (portfolio.work(portfolio.Job("tiny", method, 4)) for method in ("ucb", "esp"))
    assert member["values"][:5] == esp["values"][:5]
    assert len(esp["values"]) == 9
    assert member["taken"] == {}
    assert sum(esp["taken"].values()) == 4
    assert set(esp["taken"]) <= set(portfolio.MEMBERS)
    worst = np.sort(tiny(0)[1](POOL))[2]
    assert esp["found"] == sum(value <= worst for value in esp["values"])
    assert portfolio.outcome(esp) == esp["found"] / 3
    json.dumps(esp)


def test_tables_pair_with_the_best_member_by_seed(tmp_path: Path) -> None:
    ends = {"gibbon": [-3.0, -7.0], "ucb": [-2.0, -2.0], "esp": [-3.5, -8.5]}
    for method, values in ends.items():
        lines = [
            {
                "job": {"task": "gene", "method": method, "seed": seed},
                "values": [0.0, value],
                "taken": {"gibbon": 3, "ucb": 1} if method == "esp" else {},
                "suggest_seconds": 1.0,
            }
            for seed, value in enumerate(values)
        ]
        (tmp_path / f"{method}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = portfolio.read_runs(tmp_path)
    assert portfolio.best_member(runs["gene"]) == "gibbon"
    text = portfolio.tables(runs)
    assert "| **GIBBON** | 2 | -5.000 ± 2.000 |  |" in text
    # Lower energies are better, and so positive differences are.
    assert "| portfolio, entropy search | 2 | -6.000 ± 2.500 | 1.000 ± 0.500 | 75 / 0 / 25 / 0 | 1 |" in text
    assert "| UCB | 2 | -2.000 ± 0.000 | -3.000 ± 2.000 |" in text
