"""What holds for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test, and the same code is tested with the same examples everywhere.
settings.register_profile("seqopt", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("seqopt")

# A shell that starts the tests in the background has them, and every process that they start, ignore Ctrl-C, which some
# of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Modules and tests stay until the end: looking for garbage among them takes a tenth of the time of importing them,
    # and more later.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


SLOW_EXAMPLES = (
    "seqopt.folding.design.ExactFolding",
    "seqopt.api.Result.recommend",
    "seqopt.models.classifiers.perceptron.Perceptron",
)
"""Docstrings whose examples take many seconds, most of them for compiling."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
