"""Seconds and peak memory of a pool of millions: reading, preparing, opening it, and asking for a thousand candidates.

The pool is made of the ZINC molecules and variants of them (`seqopt.datasets.variants`). Each step is a process of its
own, with two workers where it takes several; peak memory is that of the process (the largest resident set), and of the
largest of its workers besides. A step that is in ``--out`` already is not repeated, and a preparation that was cut off
goes on where it was: then its seconds are those of what was left, and ``made`` says how many rows that were.

Steps: ``write`` the files; ``prepare`` the store; ``open`` it again, checksums included; ``lfbo``: 1,000 candidates by
LFBO with logistic regression on fingerprints, from 200 known values of logP; ``gibbon-lfbo`` and ``gibbon-mean``: 1,000
by GIBBON with the MinMax kernel through either prefilter.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seqopt.bench.records import append_record, read_records

logger = logging.getLogger(__name__)

STEPS = ("write", "prepare", "open", "lfbo", "gibbon-lfbo", "gibbon-mean")
KNOWN, BATCH, KEEP = 200, 1_000, 50_000


def _peaks() -> dict[str, float]:
    """Largest resident sets in megabytes, and processor seconds, of this process and of its workers."""
    own, workers = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # Kilobytes, but bytes on macOS.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return {
        "peak_mb": own.ru_maxrss / unit,
        "worker_peak_mb": workers.ru_maxrss / unit,
        "processor": own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime,
    }


def files_of(folder: Path, size: int, seed: int) -> Path:
    """The folder that the files of a pool are written to."""
    return folder / f"variants-{size}-{seed}"


def measure(step: str, size: int, folder: Path, seed: int, batch: int = BATCH, keep: int = KEEP) -> dict[str, Any]:
    """One step in this process.

    Args:
        step: One of `STEPS`.
        size: Rows of the pool.
        folder: Where files and store are.
        seed: Of variants, known strings and the search.
        batch: Candidates that are asked for.
        keep: Length of the shortlist.
    """
    files, store = files_of(folder, size, seed), folder / "store"
    if step == "write":
        from seqopt.datasets import load_zinc250k
        from seqopt.datasets.variants import write_variants

        molecules = load_zinc250k()
        started = time.perf_counter()
        paths = write_variants(files, molecules, size, seed=seed)
        return {"seconds": time.perf_counter() - started, "bytes": sum(path.stat().st_size for path in paths)}
    from seqopt.datasets import prepare_pool
    from seqopt.datasets.pool_store import Preparation

    last = [Preparation(0, 0, 0.0, 0.0)]

    def show(state: Preparation) -> None:
        last[0] = state
        print(f"\r{state.describe()}", end="", file=sys.stderr, flush=True)

    started = time.perf_counter()
    pool = prepare_pool(files, folder=store, workers=2, progress=show)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "candidates": len(pool)}
    if step == "prepare":
        rejected = {"rejected": pool.rejected, "duplicates": pool.duplicates, "made": last[0].made}
        return found | rejected | {"bytes": pool.bytes}
    if step == "open":
        return found
    import numpy as np

    from seqopt import Optimizer
    from seqopt.objectives import resolve_objective
    from seqopt.spaces import StoredPool
    from seqopt.strategies import LFBO, ModelBased, Prefilter
    from seqopt.strategies.prefilter import cheap_classifier

    space = StoredPool(pool)
    if step == "lfbo":
        strategy: Any = LFBO(cheap_classifier(space), keep=keep)
    else:
        strategy = ModelBased("minmax", "gibbon", prefilter=Prefilter(step.removeprefix("gibbon-"), keep))
    optimizer = Optimizer(space, strategy=strategy, initial=2, seed=seed)
    strings = space.sample(KNOWN, np.random.default_rng(seed))
    optimizer.tell(strings, resolve_objective("logp")(strings))
    began = time.perf_counter()
    asked = optimizer.ask(batch)
    return found | {"opening": found["seconds"], "seconds": time.perf_counter() - began, "asked": len(asked)}


def table(runs: Sequence[dict[str, Any]]) -> str:
    """What each step took, by size; of preparing that went on, the time of a candidate is that of the rows made then.

    Args:
        runs: Lines of ``--out``.
    """
    lines = [
        "| rows | step | seconds | processor s | us a candidate | bytes a candidate | peak GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        job, found = run["job"], run["result"]
        count = found.get("candidates", job["size"])
        each = f"{found['bytes'] / count:.0f}" if "bytes" in found else ""
        peak = (found["peak_mb"] + 2 * found["worker_peak_mb"]) / 1e3
        lines.append(
            f"| {job['size']:,} | {job['step']} | {found['seconds']:.3g} | {found['processor']:.3g} "
            f"| {found['seconds'] / (found.get('made') or count) * 1e6:.3g} | {each} | {peak:.2f} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str], run: Callable[..., Any] = subprocess.run) -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(prog="seqopt bench pool", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--size", type=int, default=1_000_000, help="rows of the pool (default 1,000,000)")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS), help="default: all, in this order")
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/bench-pool"), help="for files and store: 300 bytes a row"
    )
    parser.add_argument("--batch", type=int, default=BATCH, help=f"candidates asked for (default {BATCH:,})")
    parser.add_argument("--keep", type=int, default=KEEP, help=f"length of the shortlist (default {KEEP:,})")
    parser.add_argument("--seed", type=int, default=0, help="of variants, known strings and search (default 0)")
    parser.add_argument("--out", type=Path, default=Path("results/pool.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--child", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args(list(argv))
    if options.child is not None:
        found = measure(options.child, options.size, options.folder, options.seed, options.batch, options.keep)
        print(json.dumps(found | _peaks()))
        return
    for step in options.steps:
        job = {"step": step, "size": options.size, "seed": options.seed, "batch": options.batch, "keep": options.keep}
        if step in ("write", "prepare", "open"):
            del job["batch"], job["keep"]
        measured = any(one["job"] == job for one in read_records(options.out, ["job"]))
        if measured and (step != "write" or files_of(options.folder, options.size, options.seed).exists()):
            print(f"{step}: measured already")
            continue
        words = {name: str(getattr(options, name)) for name in ("size", "folder", "batch", "keep", "seed")}
        command = [sys.executable, "-m", "seqopt", "bench", "pool", "--child", step]
        done = run(
            [*command, *(word for name, value in words.items() for word in (f"--{name}", value))],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{step} failed")
        load = os.getloadavg()[0]
        found = json.loads(done.stdout.splitlines()[-1])
        if not measured:
            append_record(options.out, {"job": job, "result": found, "cores": os.cpu_count(), "load": load}, ["job"])
        print(f"{step}: {found['seconds']:.1f} s, peak {found['peak_mb'] / 1e3:.2f} GB", flush=True)
    print(table(read_records(options.out, ["job"])))
