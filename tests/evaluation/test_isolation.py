"""What an objective may do to its process without harm to the others, and what is told of its exceptions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seqopt.errors import InputError
from seqopt.evaluation import Evaluator, evaluate
from seqopt.objectives import resolve_objective

SCRIPT = """
import ctypes, os
calls = 0

def score(strings):
    global calls
    calls += 1
    (string,) = strings
    if string == "exit":
        os._exit(3)
    if string == "crash":
        ctypes.string_at(0)
    if string == "kill":
        os.kill(os.getpid(), 9)
    return [os.getpid() if string == "pid" else calls]

def outer(strings):
    return inner(strings[0])

def inner(string):
    raise ValueError("no " + string)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "crashes.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.slow
def test_one_worker_that_crashes_fails_its_string_only(script: Path) -> None:
    with Evaluator(resolve_objective(f"{script}:score"), isolated=True) as evaluator:
        results = evaluator.evaluate(["a", "b", "exit", "c", "crash", "kill", "d"])
        assert [(result.value, result.error) if result.ok else result.error for result in results] == [
            (1.0, ""),
            (2.0, ""),  # the same process, which keeps what it keeps
            "the worker process died (exit code 3)",
            (1.0, ""),
            "the worker process was killed by SIGSEGV",
            "the worker process was killed by SIGKILL",
            (1.0, ""),
        ]
        (one,), (other,) = evaluator.evaluate(["pid"]), evaluator.evaluate(["pid"])
        assert one.value == other.value != os.getpid()


def test_a_function_is_called_in_this_process_unless_asked(script: Path) -> None:
    (result,) = evaluate(lambda strings: [os.getpid()], ["C"])
    assert result.value == os.getpid()
    with (
        Evaluator(lambda strings: [1.0], isolated=True) as evaluator,
        pytest.raises(InputError, match="cannot be run in a separate process: define it in a module"),
    ):
        evaluator.evaluate(["C"])


@pytest.mark.parametrize("isolated", [False, True])
def test_the_traceback_is_that_of_the_objective_wherever_it_was(script: Path, isolated: bool) -> None:
    with Evaluator(resolve_objective(f"{script}:outer"), isolated=isolated) as evaluator:
        (result,) = evaluator.evaluate(["luck"])
    assert result.error == "ValueError: no luck"
    lines = result.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    # It begins with the user's own code.
    assert lines[1].strip().startswith(f'File "{script}"')
    assert "in outer" in lines[1]
    assert any("in inner" in line for line in lines)
    assert lines[-1] == "ValueError: no luck"
    assert evaluate(lambda strings: [1.0], ["C"])[0].traceback == ""


def test_of_an_endless_traceback_the_end_is_kept() -> None:
    def forever(strings: list[str]) -> list[float]:
        raise ValueError("x" * 100_000)

    (result,) = evaluate(forever, ["C"])
    assert len(result.traceback) == 10_000
