"""Linear algebra on small matrices, in one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: where other work is in progress, waiting for a second one costs small matrices
    many times their own work.

    The number of threads is the whole process's, so contexts in several threads take turns. They may be nested.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    with _LOCK:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
