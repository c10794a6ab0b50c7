"""Runs suites on parts that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seqopt.testing import running


@pytest.fixture
def failures() -> Callable[..., set[str]]:
    """The tests of a suite that fail; see `seqopt.testing.running.failures`."""

    def failed(suite: Any, **fixtures: Callable[[], Any]) -> set[str]:
        return set(running.failures(suite, **fixtures))

    return failed
