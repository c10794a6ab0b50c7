"""The tables of what the workers of a cluster do in a second, and of what more candidates cost."""

from __future__ import annotations

from typing import Any

from seqopt.bench.scale import costs, table


def _run(size: int, workers: int, ways: dict[str, Any]) -> dict[str, Any]:
    return {"job": {"known": 200, "workers": workers}, "result": {"candidates": size, "ways": ways}}


def test_rates_and_costs_are_those_of_the_second_look_at_the_largest_pool() -> None:
    runs = [
        _run(1_000, 1, {"lfbo": {"seconds": [9.0, 9.0], "processor": [9.0, 9.0]}}),
        _run(36_000, 2, {"lfbo": {"seconds": [8.0, 4.0], "processor": [7.0, 3.6]}}),
        _run(36_000, 2, {"prepare": {"seconds": [5.0], "processor": [9.0], "candidates": 2_500}}),
    ]
    rows = table(runs).splitlines()
    assert rows[3] == "| 36,000 | 200 | 2 | lfbo | 8.0 | 4.0 | 9,000 | 100.0 |"
    assert rows[4] == "| 2,500 | 200 | 2 | prepare | 5.0 | 5.0 | 500 | 3600.0 |"
    assert costs(runs, [10**8]).splitlines()[2:] == ["| lfbo | 200 | 2.8 |", "| prepare | 200 | 100.0 |"]
