"""Work in several processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pebble
import pytest

from seqopt.utils import workers
from seqopt.utils.workers import map_strings


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "worker_functions.py").write_text(
        "import os\n"
        f"PARENT = {os.getpid()}\n"
        "def lengths(strings, plus=0):\n"
        "    return [len(s) + plus if s else None for s in strings]\n"
        "def pids(strings):\n"
        "    return [os.getpid() for s in strings]\n"
        "def talkative(strings):\n"
        "    print([len(strings)])\n"
        "    os.system('echo [1, 2]')\n"
        "    return lengths(strings)\n"
        "def fragile(strings):\n"
        "    if os.getpid() != PARENT and '!' in strings:\n"
        "        os._exit(1)\n"
        "    return lengths(strings)\n"
        "def picky(strings):\n"
        "    raise LookupError(os.getpid(), strings[0])\n"
        "def endless(strings):\n"
        "    open(os.path.join(os.path.dirname(__file__), f'{strings[0]}.pid'), 'w').write(str(os.getpid()))\n"
        "    import time\n"
        "    time.sleep(0 if strings == ['a'] else 60)\n"
        "    return lengths(strings)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "worker_functions"


def test_results_keep_their_order(module: str) -> None:
    strings = ["x" * (index % 17) for index in range(95)]
    seen: list[tuple[int, int]] = []
    found = map_strings(
        f"{module}:lengths",
        strings,
        arguments={"plus": 1},
        workers=2,
        chunk=10,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found == [len(string) + 1 if string else None for string in strings]
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (95, 95)


def test_the_work_is_done_elsewhere_and_only_with_several_workers(module: str) -> None:
    elsewhere = set(map_strings(f"{module}:pids", ["a"] * 40, workers=2, chunk=5))
    assert os.getpid() not in elsewhere
    assert set(map_strings(f"{module}:pids", ["a"] * 40, workers=1, chunk=5)) == {os.getpid()}


def test_what_a_dead_worker_leaves_behind_is_done_here(module: str, caplog: pytest.LogCaptureFixture) -> None:
    strings = ["a", "!", "bb", "!", "ccc", ""]
    with caplog.at_level(logging.WARNING):
        assert map_strings(f"{module}:fragile", strings, workers=2, chunk=1) == [1, 1, 2, 1, 3, None]
    assert "a worker process died" in caplog.text
    assert "done in this process" in caplog.text


def test_an_exception_in_a_worker_is_raised_here(module: str) -> None:
    with pytest.raises(LookupError) as caught:
        map_strings(f"{module}:picky", ["a", "b"], workers=2, chunk=1)
    pid, string = caught.value.args
    assert pid != os.getpid()
    assert string in ("a", "b")


def test_an_interruption_ends_the_workers(module: str, tmp_path: Path) -> None:
    def interrupted(done: int, total: int) -> None:
        while not (tmp_path / "b.pid").exists() or not (tmp_path / "b.pid").read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_strings(f"{module}:endless", ["a", "b"], workers=2, chunk=1, progress=interrupted)
    for name in ("a", "b"):
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / f"{name}.pid").read_text()), 0)


def test_in_a_worker_process_of_a_pool_the_work_is_done_there(module: str) -> None:
    # Such processes may be daemons, which have no children, and are killed at a time-out.
    with pebble.ProcessPool(max_workers=1) as pool:
        found = pool.schedule(map_strings, args=(f"{module}:pids", ["a"] * 4), kwargs={"workers": 2, "chunk": 1})
        (pid,) = set(found.result())
    assert pid != os.getpid()


def test_what_is_printed_is_dropped(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    strings = ["x" * index for index in range(1, 8)]
    assert map_strings(f"{module}:talkative", strings, workers=2, chunk=2) == [1, 2, 3, 4, 5, 6, 7]
    assert capfd.readouterr() == ("", "")


def test_without_processes_the_work_is_done_here(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert map_strings(f"{module}:pids", ["a", "bb"], workers=2, chunk=1) == [os.getpid()] * 2


def test_where_processes_are_refused_the_work_is_done_here(
    module: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*arguments: object, **options: object) -> None:
        raise OSError("too many processes")

    monkeypatch.setattr("loky.ProcessPoolExecutor", refused)
    assert map_strings(f"{module}:pids", ["a", "bb"], workers=2, chunk=1) == [os.getpid()] * 2
    assert "no worker processes can be started (too many processes)" in caplog.text


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "print('once')\n"
        "from seqopt.utils.workers import map_strings\n"
        "keys = map_strings('seqopt.strings.identity:identity_keys', ['OCC', 'C1CC'], "
        "arguments={'kind': 'molecule'}, workers=2, chunk=1)\n"
        "print(keys)\n"
    )
    root = Path(workers.__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["once", "['CCO', None]"], done.stderr
