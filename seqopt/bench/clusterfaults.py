"""Kills the workers of a Dask cluster at random moments while they choose for a campaign, and looks what comes of it.

Two campaigns search the same pool of ZINC molecules with the same seed: one on a cluster of local processes, one in
this process. Both are asked for a batch, batches are compared, and both are told the same values. While the cluster is
choosing, one or two random workers are killed (``SIGKILL``) at random times. Dask starts another one in their place. A
suggestion that ends in an error is asked for again. Right is: every batch is that of one machine, and in the end both
files hold the same results. Each pair of campaigns has a seed of its own and is stored when it ends, so that an
interrupted run goes on with the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seqopt.bench.records import append_record, read_records
from seqopt.bench.runner import header

FIELDS = ["job"]


class Killer:
    """Kills workers of a local cluster, one or two while it is let.

    Args:
        cluster: A `distributed.LocalCluster` of processes.
        longest: Seconds within which it kills.
        seed: Of times and workers.
    """

    def __init__(self, cluster: Any, longest: float, seed: int) -> None:
        self.kills = 0
        self._cluster = cluster
        self._longest = longest
        self._random = random.Random(seed)

    @contextlib.contextmanager
    def let(self) -> Iterator[None]:
        """Kill while the block runs."""
        ended = threading.Event()
        times = sorted(self._random.uniform(0.0, self._longest) for _ in range(self._random.randint(1, 2)))

        def run() -> None:
            began = time.monotonic()
            for moment in times:
                if ended.wait(max(0.0, began + moment - time.monotonic())):
                    return
                self.kill()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def kill(self) -> None:
        """Kill one of the workers that the scheduler knows: Dask gives up one that dies while it starts."""
        known = set(self._cluster.scheduler.workers)
        nannies = [nanny for nanny in list(self._cluster.workers.values()) if nanny.worker_address in known]
        running = [nanny.pid for nanny in nannies if nanny.pid]
        if running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(running), signal.SIGKILL)
                self.kills += 1


def start_workers(cluster: Any, client: Any, workers: int) -> int:
    """Do what the error asks for where Dask has given all workers up: start new ones.

    Args:
        cluster: A `distributed.LocalCluster`.
        client: Of it.
        workers: How many processes it shall have.

    Returns:
        1 if new ones were started, 0 if Dask did so within 20 s.
    """
    try:
        client.wait_for_workers(1, timeout=20)
        return 0
    except TimeoutError:
        cluster.scale(0)
        client.sync(cluster._correct_state)
        cluster.scale(workers)
        client.wait_for_workers(workers, timeout=120)
        return 1


def suggest_under_fire(
    kills: int,
    *,
    size: int,
    workers: int,
    seed: int,
    batch: int = 8,
    known: int = 40,
    longest: float = 3.0,
    rounds: int | None = None,
) -> dict[str, Any]:
    """Suggest and record until so many workers were killed.

    Args:
        kills: How many.
        size: Molecules of ZINC.
        workers: Processes.
        seed: Of the campaigns, and of kills.
        batch: Suggestions at a time.
        known: Values that are known at first.
        longest: Seconds of a suggestion within which workers are killed.
        rounds: No more batches than these.

    Returns:
        How many were killed, batches, batches that differ, errors, how often Dask had given all workers up, and whether
        both files hold the same in the end.
    """
    from distributed import Client, LocalCluster

    from seqopt.campaign import Campaign
    from seqopt.datasets import load_zinc250k, prepare_pool
    from seqopt.distributed import ClusterError
    from seqopt.objectives import resolve_objective
    from seqopt.spaces import StoredPool

    score = resolve_objective("logp")
    logging.getLogger("seqopt").setLevel(logging.ERROR)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    found = {"kills": 0, "batches": 0, "differing": 0, "errors": 0, "started": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pool.smi").write_text("\n".join(load_zinc250k()[:size]))
        store = prepare_pool(folder / "pool.smi", folder=folder / "store", workers=1, rows=-(-size // (6 * workers)))
        files = [folder / f"{one}.seqopt" for one in ("here", "there")]
        strings = StoredPool(store).strings[:known]
        for file in files:
            options: dict[str, Any] = {"surrogate": "minmax", "acquisition": "gibbon", "batch_size": batch}
            with Campaign.create(file, StoredPool(store), objective="logp", seed=seed, **options) as campaign:
                for string, value in zip(strings, score(list(strings)), strict=True):
                    campaign.record(string, float(value))
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            killer = Killer(cluster, longest, seed)
            here, there = Campaign.open(files[0]), Campaign.open(files[1], client=client)
            try:
                while killer.kills < kills and (rounds is None or found["batches"] < rounds):
                    wanted = [row.string for row in here.suggest()]
                    while True:
                        try:
                            with killer.let():
                                chosen = [row.string for row in there.suggest()]
                            break
                        except ClusterError as error:
                            found["errors"] += 1
                            print(f"asked again: {error}", flush=True)
                            found["started"] += start_workers(cluster, client, workers)
                    found["batches"] += 1
                    found["differing"] += chosen != wanted
                    for one in (here, there):
                        for row in one.suggest():
                            one.record(row.name, float(score([row.string])[0]))
                    print(f"{killer.kills} killed, {found['batches']} batches", flush=True)
                found["kills"] = killer.kills
                tables = [one.to_pandas()[[one.store.settings.string_column, "logp"]] for one in (here, there)]
                return found | {"same_results": tables[0].equals(tables[1]), "results": len(tables[0])}
            finally:
                here.close()
                there.close()


def main(argv: Sequence[str]) -> None:
    """Kill, and print what came of it."""
    parser = argparse.ArgumentParser(prog="seqopt bench clusterfaults", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--campaigns", type=int, default=8, help="pairs of campaigns, with seeds 0, 1, ... (default 8)")
    parser.add_argument("--kills", type=int, default=25, help="workers to be killed in each (default 25)")
    parser.add_argument("--size", type=int, default=20_000, help="molecules of ZINC (default 20,000)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--out", type=Path, default=Path("results/clusterfaults.jsonl"), help="JSON lines, appended to")
    options = parser.parse_args(list(argv))
    record = header(list(argv), "clusterfaults")
    for seed in range(options.campaigns):
        job = {"kills": options.kills, "size": options.size, "workers": options.workers, "seed": seed}
        if any(one["job"] == job for one in read_records(options.out, FIELDS)):
            continue
        started = time.perf_counter()
        found = suggest_under_fire(**job)
        found["seconds"] = round(time.perf_counter() - started, 1)
        run = {"job": job, "result": found, "record": record}
        append_record(options.out, run, FIELDS)
    print(table(options.out), flush=True)


def table(path: Path) -> str:
    """What came of all stored pairs of campaigns, and of all together."""
    lines = [
        "| seed | killed | batches | differing | errors, asked again | workers started anew | results "
        "| the same in both files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    counted = ("kills", "batches", "differing", "errors", "started", "results")
    totals = dict.fromkeys(counted, 0)
    all_same = True
    for one in read_records(path, FIELDS):
        it = one["result"]
        for name in counted:
            totals[name] += it.get(name, 0)
        all_same = all_same and it["same_results"]
        lines.append(_line(str(one["job"]["seed"]), it, counted, it["same_results"]))
    return "\n".join([*lines, _line("all", totals, counted, all_same)])


def _line(label: str, numbers: Mapping[str, int], counted: Sequence[str], same: bool) -> str:
    cells = [label, *(f"{numbers.get(name, 0):,}" for name in counted), "yes" if same else "NO"]
    return f"| {' | '.join(cells)} |"
