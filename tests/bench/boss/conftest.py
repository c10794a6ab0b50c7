"""Invented runs for the tests of scores and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from seqopt.bench.boss.tasks import TASKS

MakeRun = Callable[..., dict[str, Any]]


@pytest.fixture
def make_run() -> MakeRun:
    """A run as it is stored, from its values; strings are numbered where none are given."""

    def make(
        task: str,
        method: str,
        seed: int,
        values: Sequence[float],
        strings: Sequence[str] | None = None,
        **extra: Any,
    ) -> dict[str, Any]:
        strings = [f"s{number}" for number in range(len(values))] if strings is None else list(strings)
        initial = TASKS[task].initial
        return {
            "job": {"task": task, "method": method, "seed": seed},
            "settings": {},
            "initial": strings[:initial],
            "chosen": strings[initial:],
            "values": list(values),
            "suggest_seconds": 1.5,
            "record": {
                "command": "seqopt bench boss",
                "versions": {"seqopt": "1.2"},
                "machine": {"processor": "Abacus", "cores": 2, "platform": "Clay"},
            },
            **extra,
        }

    return make
