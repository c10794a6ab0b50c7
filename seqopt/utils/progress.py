"""Saying what is being done, where it takes more than a few seconds.

Whoever does something long says so by `doing`. Who shows it is decided elsewhere: by default a terminal or a notebook
shows it while it lasts, and nothing is shown where the output goes to a file; `shown_by` puts something else in place.
"""

from __future__ import annotations

import contextlib
import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

PATIENCE = 3.0
"""Seconds after which something is worth mentioning."""

EVERY = 1.0
"""Seconds after which it is mentioned again, with the time that it has taken."""

Show = Callable[[str], object]
"""Called with a line of text that replaces the one before, and with an empty one when there is nothing to show; from
another thread than the one that does it."""


@dataclass
class _State:
    """What is being done, the innermost last, who shows it, and what is shown in between."""

    doing: list[tuple[str, float]] = field(default_factory=list)
    show: Show | None = None
    chosen: bool = False
    awaited: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)


_state = _State()


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what the block does, if it takes longer than `PATIENCE`.

    Args:
        what: In words that may stand before a time: ``"fitting the model to 120 values"``.

    Example:
        >>> with doing("counting to three"):
        ...     list(range(3))
        [0, 1, 2]
    """
    with _state.lock:
        outermost = not _state.doing
        _state.doing.append((what, time.monotonic()))
    ended = threading.Event()
    if outermost:
        threading.Thread(target=_tell, args=(ended,), name="seqopt-progress", daemon=True).start()
    try:
        yield
    finally:
        with _state.lock:
            _state.doing.pop()
            if outermost:
                ended.set()


@contextlib.contextmanager
def shown_by(show: Show | None) -> Iterator[None]:
    """Let what is done inside the block be shown by ``show``, or not at all.

    Example:
        >>> with shown_by(print), doing("something short"):
        ...     pass
    """
    before = _state.show, _state.chosen, _state.awaited
    _state.show, _state.chosen, _state.awaited = show, True, ""
    try:
        yield
    finally:
        _state.show, _state.chosen, _state.awaited = before


def telling(what: str) -> None:
    """Say how far the innermost of what is being done has come; nothing where nothing is being done.

    Args:
        what: In words that take the place of those that it began with.

    Example:
        >>> with shown_by(print), doing("scoring shards"):
        ...     telling("scoring: 3 of 10 shards")
    """
    with _state.lock:
        if _state.doing:
            _state.doing[-1] = what, _state.doing[-1][1]


def awaiting(what: str) -> None:
    """Say at once what is waited for from now on, to whoever `shown_by` has put in place: what others do meanwhile.

    Args:
        what: In words that may be all that is shown; empty when nothing is waited for any more.

    Example:
        >>> with shown_by(print):
        ...     awaiting("scoring CCO")
        scoring CCO
    """
    with _state.lock:
        if _state.chosen and _state.show is not None and what != _state.awaited:
            _state.awaited = what
            _state.show(what)


def _tell(ended: threading.Event) -> None:
    """Show what is being done, until it has ended."""
    if ended.wait(PATIENCE):
        return
    show, close = (_state.show, None) if _state.chosen else _default()
    if show is None:
        return
    shown = False
    # Whatever a terminal or a notebook does must not reach what is being done.
    with contextlib.suppress(Exception):
        while True:
            with _state.lock:
                if ended.is_set() or not _state.doing:
                    break
                what, since = _state.doing[-1]
                show(f"{what} ({time.monotonic() - since:.0f} s)")
                shown = True
            ended.wait(EVERY)
    with contextlib.suppress(Exception):
        if shown:
            with _state.lock:
                show(_state.awaited if _state.show is show else "")
        if close is not None:
            close()


def _default() -> tuple[Show | None, Callable[[], object] | None]:
    """Who shows it where nobody was put in place, and what to call in the end."""
    if _in_notebook():
        return _notebook(), None
    if sys.stderr is None or not sys.stderr.isatty():
        return None, None
    from rich.console import Console
    from rich.markup import escape
    from rich.status import Status

    status = Status("", console=Console(stderr=True))
    status.start()
    return (lambda text: status.update(escape(text))), status.stop


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def _notebook() -> Show:
    """Shows a line below the cell, and takes it away."""
    # Where there is a kernel there is IPython, which seqopt itself does not need.
    ipython = import_module("IPython.display")
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        line = ipython.HTML(f"<small>{html.escape(text)}</small>" if text else "")
        if handle is None:
            handle = ipython.display(line, display_id=True)
        else:
            handle.update(line)

    return show
