"""Seconds and peak memory of one batch from a large pool, with one way to measure and with two.

The pool is ZINC 250k, or ``--pool`` many of its molecules, and the kernel MinMax on counts of Morgan environments at
point estimates. ``--known`` values are told (numbers of carbon atoms, with noise), with two ways to measure half of
them of each, and a batch is chosen by GIBBON; per cost where there are two. Each measurement is a process of its own.
Fingerprints of the pool, which either needs once, are computed before and timed apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

WAYS = ("one", "two")


def measure(ways: str, pool: int, known: int, batch: int, seed: int) -> dict[str, float]:
    """Two batches in this process, with one or two ways to measure.

    Returns:
        Seconds of reading features, of fit and choice of the first batch, and of the second after its results; and the
        peak of the memory in MB, with what it was before the first batch.
    """
    import resource

    import numpy as np

    from seqopt import CandidateSet, Optimizer
    from seqopt.data import Contexts, Query
    from seqopt.datasets import load_zinc250k
    from seqopt.models import SURROGATES
    from seqopt.models.contexts import coregionalized
    from seqopt.strategies import ModelBased, MultiFidelity

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    rng = np.random.default_rng(seed)
    space = CandidateSet(load_zinc250k()[:pool], kind="molecule")
    told = [space.keys[int(place)] for place in rng.choice(len(space), size=known, replace=False)]
    contexts = None
    if ways == "two":
        contexts = Contexts.of_levels("fidelity", {"cheap": 0.1, "dear": 1.0}, target="dear")
        surrogate: Any = coregionalized(space, contexts, kernel="minmax")
        strategy: Any = MultiFidelity(surrogate)
    else:
        surrogate = SURROGATES["minmax"].build()
        strategy = ModelBased(surrogate)
    optimizer = Optimizer(space, strategy=strategy, contexts=contexts, initial=known, batch_size=batch, seed=seed)
    began = time.perf_counter()
    surrogate._encoded_pool(space)
    features = time.perf_counter() - began

    def values(strings: Sequence[str]) -> list[float]:
        return [string.upper().count("C") + float(rng.normal()) for string in strings]

    queries: list[Any] = [
        Query(key, {"fidelity": "cheap" if place % 2 else "dear"}) if contexts is not None else key
        for place, key in enumerate(told)
    ]
    optimizer.tell(queries, values(told))
    before = peak()
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        asked = optimizer.ask(batch)
        seconds.append(time.perf_counter() - began)
        optimizer.tell(asked.queries if contexts is not None else list(asked), values(list(asked)))
    return {"features": features, "first": seconds[0], "second": seconds[1], "before": before, "peak": peak()}


def main(argv: Sequence[str]) -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(prog="seqopt bench levels", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--pool", type=int, default=249_456, help="molecules (default: all 249,456)")
    parser.add_argument("--known", type=int, default=100, help="values that are known (default 100)")
    parser.add_argument("--batch", type=int, default=10, help="elements of a batch (default 10)")
    parser.add_argument("--repeats", type=int, default=1, help="rounds (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round (default 0)")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args(list(argv))
    numbers = options.pool, options.known, options.batch
    if options.child is not None:
        print(json.dumps(measure(options.child, *numbers, options.seed)))
        return
    runs: dict[str, list[dict[str, float]]] = {ways: [] for ways in WAYS}
    for number in range(options.repeats):
        for ways in WAYS:
            command = [sys.executable, "-m", "seqopt", "bench", "levels", "--child", ways]
            for name, value in zip(("pool", "known", "batch"), numbers, strict=True):
                command += [f"--{name}", str(value)]
            found = subprocess.run(
                [*command, "--seed", str(options.seed + number)], check=True, capture_output=True, text=True
            )
            runs[ways].append(json.loads(found.stdout.splitlines()[-1]))
            print(ways, json.dumps(runs[ways][-1]), flush=True)
    print("| | one | two | ratio |\n|---|---|---|---|")
    for name in runs["one"][0]:
        one, two = (statistics.median(run[name] for run in runs[ways]) for ways in WAYS)
        print(f"| {name} | {one:.4g} | {two:.4g} | {two / one:.2f} |")
