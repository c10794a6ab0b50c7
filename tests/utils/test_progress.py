"""What takes long says what it is."""

from __future__ import annotations

import io
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

from seqopt.utils import progress
from seqopt.utils.progress import awaiting, doing, shown_by


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "EVERY", 0.01)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_is_done_is_told_with_its_time_the_innermost_first_and_taken_away() -> None:
    said: list[str] = []
    with shown_by(said.append), doing("a search"):
        until(lambda: any(line.startswith("a search (") for line in said))
        with doing("a fit"):
            until(lambda: any(line.startswith("a fit (0 s)") for line in said))
        fits = len(said)
        until(lambda: any(line.startswith("a search (") for line in said[fits:]))
    until(lambda: said[-1] == "")
    assert sum(line == "" for line in said) == 1


def test_what_is_waited_for_is_shown_at_once_and_again_after_what_is_done_meanwhile() -> None:
    said: list[str] = []
    awaiting("nobody looks")
    with shown_by(said.append):
        awaiting("scoring A")
        awaiting("scoring A")
        assert said == ["scoring A"]
        with doing("a fit"):
            until(lambda: any(line.startswith("a fit (") for line in said))
        until(lambda: said[-1] == "scoring A")
        awaiting("")
        assert said[-1] == ""
        told = len(said)
        with shown_by(None):
            awaiting("scoring B")
        with doing("another fit"):
            until(lambda: any(line.startswith("another fit (") for line in said))
        until(lambda: said[-1] == "")
    assert not any("B" in line for line in said[told:])


def test_what_is_short_is_not_worth_mentioning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    said: list[str] = []
    with shown_by(said.append):
        for _ in range(5):
            with doing("something"):
                pass
    until(lambda: not any(thread.name == "seqopt-progress" for thread in threading.enumerate()))
    assert said == []


def test_an_exception_passes_and_ends_it() -> None:
    said: list[str] = []

    def fit() -> None:
        with shown_by(said.append), doing("a fit"):
            until(lambda: said)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit()
    until(lambda: said[-1] == "")
    assert progress._state.doing == []


def test_whoever_shows_it_cannot_harm_what_is_done() -> None:
    calls: list[str] = []

    def broken(text: str) -> None:
        calls.append(text)
        raise RuntimeError("no terminal any more")

    with shown_by(broken), doing("a fit"):
        until(lambda: calls)
        time.sleep(0.05)


def test_nothing_is_shown_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with doing("a fit"):
        time.sleep(0.15)
    with shown_by(None), doing("a fit"):
        time.sleep(0.15)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with doing("fitting [StringGP]"):
        until(lambda: "fitting [StringGP] (" in terminal.getvalue())
    until(lambda: not any(thread.name == "seqopt-progress" for thread in threading.enumerate()))


def test_a_notebook_shows_it_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, html: Any) -> None:
            shown.append(html)

    def display(html: Any, display_id: bool) -> Handle:
        assert display_id
        shown.append(html)
        return Handle()

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    module.HTML, module.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    with doing("fitting <b>"):
        until(lambda: len(shown) > 2)
    until(lambda: shown[-1] == "")
    assert shown[0].startswith("<small>fitting &lt;b&gt; (")


def test_an_optimiser_says_that_it_fits_and_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.optimizer import Optimizer

    stages: list[tuple[str, ...]] = []
    real = progress.doing

    def noting(what: str) -> Any:
        stages.append((*(one for one, _ in progress._state.doing), what))
        return real(what)

    for home in ("seqopt.optimizer.optimizer", "seqopt.strategies.model_based"):
        monkeypatch.setattr(f"{home}.doing", noting)
    optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA"], initial=3, seed=1)
    strings = optimizer.ask()
    optimizer.tell(strings, [string.count("T") for string in strings])
    optimizer.ask(2)
    first = "choosing what to evaluate next"
    assert stages == [
        (first,),
        (first,),
        (first, "fitting FullyBayesianGP to 3 values"),
        (first, "looking for the best 2 among 6 candidates"),
    ]
