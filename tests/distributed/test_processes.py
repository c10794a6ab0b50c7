"""Clusters of processes: the same batches with any number of them, and after workers and schedulers were killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.bench.clusterfaults import suggest_under_fire, table
from seqopt.bench.records import append_record
from seqopt.datasets import PoolStore, load_zinc250k, prepare_pool
from seqopt.datasets.variants import write_variants
from seqopt.distributed import ClusterError, connect, connected, spread_pool
from seqopt.objectives import resolve_objective
from seqopt.spaces import StoredPool
from seqopt.strategies import LFBO, ModelBased
from seqopt.strategies.prefilter import classifier_of

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LOGP = resolve_objective("logp")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))


def asked(pool: StoredPool, strategy: Any, n: int) -> list[str]:
    optimizer = Optimizer(pool, strategy=strategy, initial=2, seed=5)
    strings = pool.sample(60, np.random.default_rng(5))
    optimizer.tell(strings, LOGP(strings))
    return list(optimizer.ask(n))


def test_one_two_and_four_workers_choose_the_same_of_100_000(tmp_path: Path) -> None:
    write_variants(tmp_path / "files", load_zinc250k(), 100_000, seed=1)
    store = prepare_pool(tmp_path / "files", folder=tmp_path / "store", workers=2, rows=1 << 13)
    ways: dict[str, Any] = {
        "gibbon": lambda: ModelBased("minmax", "gibbon"),
        "logei": lambda: ModelBased("minmax", "logei"),
        "ucb": lambda: ModelBased("minmax", "ucb"),
        "mean": lambda: ModelBased("minmax", "mean"),
        "lfbo": lambda: LFBO(classifier_of("molecule"), keep=2_000),
    }
    here = {name: asked(StoredPool(store), make(), 20) for name, make in ways.items()}
    for workers in (1, 2, 4):
        with connected(f"local:{workers}") as client:
            assert client is not None
            for name, make in ways.items():
                assert asked(spread_pool(StoredPool(store), client), make(), 20) == here[name], (workers, name)


def test_nothing_is_lost_when_workers_are_killed() -> None:
    found = suggest_under_fire(3, size=3_000, workers=2, seed=1, rounds=6)
    assert found["kills"] >= 3
    assert found["differing"] == 0
    assert found["same_results"]


def test_kills_are_added_up_and_one_difference_shows(tmp_path: Path) -> None:
    path = tmp_path / "kills.jsonl"
    for seed, same in ((0, True), (1, False)):
        result = {"kills": 3, "batches": 2, "differing": 0, "errors": 1, "started": seed, "results": 40}
        append_record(path, {"job": {"seed": seed}, "result": result | {"same_results": same}}, ["job"])
    assert table(path).splitlines()[2:] == [
        "| 0 | 3 | 2 | 0 | 1 | 0 | 40 | yes |",
        "| 1 | 3 | 2 | 0 | 1 | 1 | 40 | NO |",
        "| all | 6 | 4 | 0 | 2 | 1 | 80 | NO |",
    ]


def small(tmp_path: Path) -> PoolStore:
    (tmp_path / "pool.smi").write_text("\n".join(load_zinc250k()[:2_000]))
    return prepare_pool(tmp_path / "pool.smi", folder=tmp_path / "store", workers=1, rows=100)


def started(*words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "dask", *words], env=environment, stderr=subprocess.DEVNULL)


def test_a_scheduler_that_restarts_is_found_again(tmp_path: Path) -> None:
    store = small(tmp_path)
    expected = asked(StoredPool(store), ModelBased("minmax", "ucb"), 5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard")
    running = [started(*scheduler), started(*worker)]
    try:
        client = connect(address, timeout=60)
        pool = spread_pool(StoredPool(store), client, patience=90)
        found: list[list[str]] = []
        thread = threading.Thread(target=lambda: found.append(asked(pool, ModelBased("minmax", "ucb"), 5)))
        thread.start()
        time.sleep(1.5)
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        running = [started(*scheduler), started(*worker)]
        thread.join(240)
        assert found == [expected]
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        pool.spread.patience = 2.0  # type: ignore[union-attr]
        with pytest.raises(ClusterError, match=rf"scheduler at {address} has not come back within 2 s"):
            asked(pool, ModelBased("minmax", "ucb"), 5)
    finally:
        for process in running:
            process.kill()
