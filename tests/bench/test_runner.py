"""Benchmarks resume, and keep what they find."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.acquisition import GIBBON
from seqopt.bench.records import append_record, read_records
from seqopt.bench.runner import replace_section, run_jobs
from seqopt.bench.vae import surrogate_name
from seqopt.bench.zinc import METHODS, best_so_far
from seqopt.cli import main
from seqopt.cli.benchmarks import BENCHMARKS
from seqopt.errors import InputError
from seqopt.search import PoolSearch
from seqopt.strategies import LocalPenalisation


@dataclass(frozen=True)
class Job:
    number: int


def square(job: Job) -> dict[str, Any]:
    return {"number": job.number, "square": job.number**2}


def only_small(job: Job) -> dict[str, Any]:
    if job.number == 4:
        raise ValueError("number 4")
    return square(job)


@pytest.mark.slow
def test_runs_that_are_there_are_kept_and_the_others_made(tmp_path: Path) -> None:
    def file_of(job: Job) -> Path:
        return tmp_path / ("even.jsonl" if job.number % 2 == 0 else "odd.jsonl")

    kept = {"number": 2, "square": "kept"}
    append_record(file_of(Job(2)), kept, ["number"])
    jobs = [Job(2), Job(3), Job(4)]
    run_jobs(jobs, file_of, asdict, square, processes=1, record={"command": "a command"})
    record = {"command": "a command"}
    assert read_records(file_of(Job(2)), ["number"]) == [kept, {"number": 4, "square": 16, "record": record}]
    assert read_records(file_of(Job(3)), ["number"]) == [{"number": 3, "square": 9, "record": record}]


@pytest.mark.slow
def test_progress_is_told_now_and_then_and_failures_always(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [Job(number) for number in range(7)]
    with pytest.raises(ValueError, match="number 4"):
        run_jobs(jobs, lambda job: tmp_path / "a.jsonl", asdict, only_small, processes=1, record={}, every=3)
    told = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert [done for done, name in told if name != "4"] == ["3/7", "6/7", "7/7"]
    assert "4" in [name for _, name in told]
    assert sorted(run["number"] for run in read_records(tmp_path / "a.jsonl", ["number"])) == [0, 1, 2, 3, 5, 6]


def test_a_section_is_replaced_and_the_rest_of_the_document_stays(tmp_path: Path) -> None:
    document = tmp_path / "docs" / "results.md"
    replace_section(document, "a", "first")
    document.write_text("# Title\n\n" + document.read_text() + "\nafter\n")
    replace_section(document, "b", "other")
    replace_section(document, "a", "second\n")
    assert document.read_text() == (
        "# Title\n\n<!-- begin a -->\nsecond\n<!-- end a -->\n\nafter\n\n<!-- begin b -->\nother\n<!-- end b -->\n"
    )


def test_best_so_far() -> None:
    assert best_so_far({"values": [1.0, 3.0, 2.0, 4.0]}).tolist() == [1.0, 3.0, 3.0, 4.0]


def test_methods_of_the_published_protocol() -> None:
    budget = {name: method.batch for name, method in METHODS.items()}
    assert budget["gibbon-1"] == budget["ei-1"] == budget["mean-1"] == 1
    assert {method.candidates for name, method in METHODS.items() if name.startswith("full")} == {None}
    assert (
        METHODS["gibbon-10-b"].build().repulsion == METHODS["full-gibbon-10-b"].build().repulsion == GIBBON().repulsion
    )
    for name, method in METHODS.items():
        if method.surrogate == "vae":  # which is trained by another command
            continue
        strategy = method.build_strategy(PoolSearch())
        assert isinstance(strategy, LocalPenalisation) == name.startswith("penalised")
    assert np.all([100 % size == 0 for size in budget.values()])


def test_a_search_with_an_autoencoder_that_was_not_trained_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="train it first, seqopt bench vae --tasks molecules-symbols"):
        surrogate_name(METHODS["full-gibbon-10-vae"].surrogate)
    assert surrogate_name("ssk+minmax") == "ssk+minmax"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", name, "--help"])
    assert stop.value.code == 0
    assert f"seqopt bench {name}" in capsys.readouterr().out


WORKERS_OF_A_KILLED_BENCHMARK = """
import os, time
from pathlib import Path
from seqopt.bench.runner import run_jobs

def work(job):
    Path(f"worker-{os.getpid()}").touch()
    time.sleep(120)

if __name__ == "__main__":
    run_jobs([1, 2], lambda job: Path("a.jsonl"), lambda job: {"job": job}, work, processes=2, record={})
"""


@pytest.mark.skipif(os.name != "posix", reason="signal 0 asks whether a process runs on POSIX systems only")
def test_a_killed_benchmark_leaves_no_workers(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(WORKERS_OF_A_KILLED_BENCHMARK)
    process = subprocess.Popen([sys.executable, "killed.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
    finally:
        process.kill()
        process.wait()
    workers = [int(path.name.removeprefix("worker-")) for path in tmp_path.glob("worker-*")]
    assert len(workers) == 2
    _wait_until(lambda: not any(map(_runs, workers)))


def _wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happened in time"
        time.sleep(0.1)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # Nobody may have collected the exit status of an orphan.
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")
