"""The study of learning: runs are paired, resumed and summed up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import learning


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    keys = sorted({"C" * int(n) + "O" * int(m) for n, m in rng.integers(1, 12, size=(90, 2))})
    values = np.array([key.count("C") - 0.5 * key.count("O") for key in keys], dtype=float)
    monkeypatch.setattr(learning, "molecules", lambda name: (keys, values))
    for name, number in {"TEST": 15, "MOST_CANDIDATES": 30, "INITIAL": 5, "BATCH": 3, "LAST": 11}.items():
        monkeypatch.setattr(learning, name, number)


@pytest.mark.usefixtures("tiny")
def test_methods_begin_alike_and_choose_other_molecules() -> None:
    one, two = (learning.work(learning.Job("esol", method, 0)) for method in ("random", "sal"))
    assert one["measured"] == two["measured"] == [5, 8, 11]
    assert one["chosen"][:5] == two["chosen"][:5]
    assert one["rmse"][0] == two["rmse"][0]
    assert one["chosen"][5:] != two["chosen"][5:]
    for run in (one, two):
        assert len(set(run["chosen"])) == 11
        assert len(run["rmse"]) == 3
        json.dumps(run)


def test_tables_pair_by_split(tmp_path: Path) -> None:
    for method, shift in (("random", 0.0), ("sal", -0.1)):
        lines = [
            {
                "job": {"task": "esol", "method": method, "split": split},
                "measured": list(learning.SHOWN),
                "rmse": [1.0 + split + shift] * len(learning.SHOWN),
                "seconds_choosing": 1.0,
            }
            for split in range(2)
        ]
        (tmp_path / f"{method}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = learning.tables(learning.read_runs(tmp_path))
    assert "| SAL, Wasserstein | 2 | 1.400 ± 0.500 |" in text
    assert "| -0.100 ± 0.000 |" in text  # the same on each split, whatever the split
