"""How fast the workers of a cluster look at a pool, and what a pool of a billion would cost.

Every row is one look at all candidates of a pool of ZINC molecules and variants of them (`seqopt.datasets.variants`),
on a local cluster of one or two processes of one thread: means and variances given the data with a kernel (``minmax``,
``ngrams``, ``ssk``), predicted means alone (``minmax-mean``, a prefilter), or the logits of a classifier (``lfbo``).
The model is fitted before. ``first`` is the first look, which opens shards and encodes strings; ``again`` is the next
one with another model, as after the next batch. Workers are warm: they have imported seqopt. ``prepare`` is another
matter: the workers prepare a new store of 50,000 of the candidates. Pools of more than 200,000 have shards of the
ordinary size, and the folder of `seqopt.bench.pool` serves here, too.

With ``--each``, the candidates grow with the workers (weak scaling): so many for each of them, evenly spaced among
those of ``--size``, so that all pools have the same share of ZINC's own molecules; a fifth of them are prepared.

The table of what more candidates cost multiplies the processor time of a candidate: it is an extrapolation, and says
nothing of networks, disks that are shared, or workers that wait.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqopt.bench.records import append_record, read_records
from seqopt.bench.runner import header

WAYS = ("minmax", "ngrams", "ssk", "minmax-mean", "lfbo", "prepare")
FIELDS = ["job"]
ROWS = 1 << 13
"""Rows of a shard: more shards than workers, for pools that are small."""
SMALL = 200_000
PREPARED = 50_000
"""Candidates that workers prepare."""


def looks(
    size: int,
    workers: int,
    ways: Sequence[str],
    known: int,
    folder: Path,
    seed: int,
    *,
    each: int | None = None,
    shard: int | None = None,
) -> dict[str, Any]:
    """Seconds of looks at all candidates, by way.

    Args:
        size: Rows of the pool.
        workers: Processes.
        ways: What is computed.
        known: Values that are known.
        folder: For files and store.
        seed: Of variants and known strings.
        each: Candidates of a worker, evenly spaced among ``size``; all of them if None.
        shard: Rows of a shard; by the size of the pool if None.
    """
    import numpy as np
    from distributed import Client, LocalCluster

    from seqopt.datasets import load_zinc250k, prepare_pool
    from seqopt.datasets.pool_store import ROWS as ORDINARY
    from seqopt.datasets.variants import write_variants
    from seqopt.distributed import spread_pool
    from seqopt.objectives import resolve_objective
    from seqopt.spaces import StoredPool

    files = folder / f"variants-{size}-{seed}"
    if not files.exists():
        write_variants(files, load_zinc250k(), size, seed=seed)
    rows = shard or (ROWS if size <= SMALL else ORDINARY)
    store = prepare_pool(files, folder=folder / "store", rows=rows)
    if each is not None and each * workers < len(store):
        store = prepare_pool(_part(store, each * workers, folder), folder=folder / "store", rows=rows)
    prepared = PREPARED if each is None else each * workers // 5
    strings = StoredPool(store).sample(known, np.random.default_rng(seed))
    values = resolve_objective("logp")(strings)
    found: dict[str, Any] = {"candidates": len(store), "store_bytes": store.bytes, "ways": {}}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pool = spread_pool(store, client)
        assert pool.spread is not None
        nothing = np.empty(0, dtype=np.int64)
        # So that what is measured is not the import of libraries.
        pool.spread.best(_score("minmax-mean", pool, strings[:20], values[:20], seed), 10, nothing)
        for way in ways:
            if way == "prepare":
                found["ways"][way] = _prepared(pool.store, client, prepared, shard)
                continue
            seconds, processor = [], []
            for turn in range(2):
                score = _score(way, pool, strings[turn:], values[turn:], seed)
                before, began = _processor(client), time.perf_counter()
                pool.spread.best(score, 1000, nothing)
                seconds.append(time.perf_counter() - began)
                processor.append(_processor(client) - before)
            found["ways"][way] = {"seconds": seconds, "processor": processor}
            print(f"{way}: {seconds[0]:.1f} s, then {seconds[1]:.1f} s", flush=True)
        found["kept_bytes"] = _kept(store.folder.name)
    return found


def _part(store: Any, count: int, folder: Path) -> Path:
    """A file of so many candidates of a store, evenly spaced."""
    import numpy as np

    path = folder / f"part-{count}.smi"
    path.write_text("\n".join(map(store.string, np.linspace(0, len(store) - 1, count).astype(int).tolist())))
    return path


def _prepared(store: Any, client: Any, count: int, shard: int | None) -> dict[str, Any]:
    """Seconds in which the workers prepare some of the candidates of a store anew."""
    from tempfile import TemporaryDirectory

    from seqopt.distributed import prepare_by

    with TemporaryDirectory() as folder:
        path = _part(store, min(count, len(store)), Path(folder))
        before, began = _processor(client), time.perf_counter()
        made = prepare_by(client, path, folder=folder, rows=(shard or ROWS) // 2)
        seconds, processor = time.perf_counter() - began, _processor(client) - before
        print(f"prepare: {seconds:.1f} s for {len(made):,}", flush=True)
        return {"seconds": [seconds], "processor": [processor], "candidates": len(made)}


def _score(way: str, pool: Any, strings: Sequence[str], values: Any, seed: int) -> Any:
    """What is sent to the shards."""
    import numpy as np

    from seqopt.models import resolve_surrogate
    from seqopt.models.carried import carried
    from seqopt.scorers.spread import LogitScore, MeanScore, PromisingScore
    from seqopt.strategies.prefilter import cheap_classifier

    rng = np.random.default_rng(seed)
    keys = pool.keys_of(strings)
    if way == "lfbo":
        classifier = cheap_classifier(pool)
        labels = np.asarray(values) >= np.quantile(values, 2 / 3)
        return LogitScore(classifier.fit(keys, labels, rng=rng), "LogisticRegression")
    surrogate: Any = resolve_surrogate(way.removesuffix("-mean"), pool)
    if hasattr(surrogate, "bind"):
        surrogate.bind(pool)
    surrogate.fit(keys, values, rng=rng)
    model = carried(surrogate, pool)
    return MeanScore(model) if way.endswith("-mean") else PromisingScore(model, 9.0)


def _processor(client: Any) -> float:
    """Processor seconds that all workers have used."""
    return float(sum(client.run(time.process_time).values()))


def _kept(name: str) -> int:
    """Bytes that workers keep besides the shards: tokens, covariances."""
    from seqopt.distributed.shards import FOLDER
    from seqopt.utils.cache import cache_dir

    return sum(path.stat().st_size for path in (cache_dir() / FOLDER / name).rglob("*") if path.is_file())


def table(runs: Sequence[dict[str, Any]]) -> str:
    """What was measured.

    Args:
        runs: Lines of ``--out``.
    """
    lines = [
        "| candidates | values | workers | what | first look, s | again, s | candidates a second | processor us each |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        job, it = run["job"], run["result"]
        for way, one in it["ways"].items():
            first, again = one["seconds"][0], one["seconds"][-1]
            count = one.get("candidates", it["candidates"])
            lines.append(
                f"| {count:,} | {job['known']:,} | {job['workers']} | {way} | {first:.1f} | {again:.1f} "
                f"| {count / again:,.0f} | {one['processor'][-1] / count * 1e6:.1f} |"
            )
    return "\n".join(lines)


def costs(runs: Sequence[dict[str, Any]], sizes: Sequence[int] = (10**8, 10**9)) -> str:
    """Core hours of one look at more candidates, by the processor time of a candidate of the largest run.

    Args:
        runs: Lines of ``--out``.
        sizes: How many candidates.
    """
    heads = [f"{size:.0e}".replace("e+0", "e") for size in sizes]
    lines = [
        f"| what | values | {' | '.join(f'core hours, {head}' for head in heads)} |",
        f"|---|---|{'---|' * len(sizes)}",
    ]
    best: dict[tuple[str, int], tuple[int, float]] = {}
    for run in runs:
        it = run["result"]
        for way, one in it["ways"].items():
            count = one.get("candidates", it["candidates"])
            each = one["processor"][-1] / count
            name = way, run["job"]["known"]
            if name not in best or count >= best[name][0]:
                best[name] = count, each
    for (way, known), (_, each) in best.items():
        cells = " | ".join(f"{size * each / 3600:,.1f}" for size in sizes)
        lines.append(f"| {way} | {known:,} | {cells} |")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(prog="seqopt bench scale", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--size", type=int, default=100_000, help="rows of the pool (default 100,000)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes (default 1 and 2)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="default: all")
    parser.add_argument("--known", type=int, default=200, help="values that are known (default 200)")
    parser.add_argument("--each", type=int, help="candidates of each worker, of those of --size (default: all of them)")
    parser.add_argument("--shard", type=int, help="rows of a shard (default 65,536; 8,192 for small pools)")
    parser.add_argument("--folder", type=Path, default=Path("runs/bench-scale"), help="for files and store")
    parser.add_argument("--seed", type=int, default=0, help="of variants and known strings (default 0)")
    parser.add_argument("--out", type=Path, default=Path("results/scale.jsonl"), help="JSON lines, appended to")
    options = parser.parse_args(list(argv))
    for workers in options.workers:
        job = {name: getattr(options, name) for name in ("size", "ways", "known", "seed")} | {"workers": workers}
        # Rows of before these options are found again.
        job |= {name: given for name in ("each", "shard") if (given := getattr(options, name)) is not None}
        if any(one["job"] == job for one in read_records(options.out, FIELDS)):
            continue
        found = looks(
            options.size,
            workers,
            options.ways,
            options.known,
            options.folder,
            options.seed,
            each=options.each,
            shard=options.shard,
        )
        load = os.getloadavg()[0]
        record = header(list(argv), "scale")
        append_record(options.out, {"job": job, "result": found, "load": load, "record": record}, FIELDS)
    runs = read_records(options.out, FIELDS)
    print(table(runs))
    print()
    print(costs(runs))
