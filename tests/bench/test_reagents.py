"""The benchmark of combinatorial libraries, on scores that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench import reagents
from seqopt.bench.reagents import by_reagents, found_so_far


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
