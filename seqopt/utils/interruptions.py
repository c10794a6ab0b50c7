"""Interruptions (Ctrl-C, SIGTERM) that come out as another error."""

from __future__ import annotations


def interrupted(error: BaseException) -> bool:
    """Whether an error is an interruption, or came up while one was handled.

    A signal that hits code between taking a lock and the block that releases it, say, ends as a complaint of the lock.

    Example:
        >>> interrupted(KeyboardInterrupt()), interrupted(ValueError())
        (True, False)
    """
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, KeyboardInterrupt):
            return True
        if one is not None:
            waiting += [one.__cause__, one.__context__]
    return False
