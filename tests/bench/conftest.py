"""What tests of benchmarks share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

ROOMS = ("seqopt", "seqopt.models", "seqopt.strategies")


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    """Runs set the threads and the logging of their process, which is that of the tests here: put them back."""
    threads, levels = torch.get_num_threads(), [logging.getLogger(room).level for room in ROOMS]
    yield
    torch.set_num_threads(threads)
    for room, level in zip(ROOMS, levels, strict=True):
        logging.getLogger(room).setLevel(level)
