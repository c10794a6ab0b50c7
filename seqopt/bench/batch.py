"""What choosing 10 of 249,456 molecules costs beyond the kernel evaluations.

A Gaussian process is fitted to 120 random molecules of ZINC with their penalised logP; GIBBON then fills a batch of 10
from the whole pool. The time inside the kernel is measured apart from the rest: posterior means and variances, draws of
the maximum, scores, and rank-one updates.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.runner import header, replace_section
from seqopt.bench.zinc import zinc

DATA, BATCH = 120, 10


def main(argv: Sequence[str]) -> None:
    """Measure, print the medians, and write JSON if asked."""
    parser = argparse.ArgumentParser(prog="seqopt bench batch", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="seeds (default 5)")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--out", type=Path, help="write the raw results here, as JSON")
    options = parser.parse_args(list(argv))
    record = header(argv, "batch")
    import torch

    from seqopt.acquisition import GIBBON
    from seqopt.models import StringGP
    from seqopt.models.covariance import KernelEvaluator
    from seqopt.scorers import GaussianScoring
    from seqopt.search import PoolSearch

    record["threads"] = torch.get_num_threads()
    print(f"threads: {record['threads']}")
    space, scores = zinc()
    spent = 0.0

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            nonlocal spent
            started = time.perf_counter()
            result = method(*arguments)
            spent += time.perf_counter() - started
            return result

        return wrapper

    KernelEvaluator.cross = timed(KernelEvaluator.cross)  # type: ignore[method-assign]
    KernelEvaluator.self_similarity = timed(KernelEvaluator.self_similarity)  # type: ignore[method-assign]
    runs = []
    space.encoded  # noqa: B018 (encoded once, before the clock starts)
    for seed in range(options.repeats):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(space), DATA, replace=False)
        keys = [space.keys[index] for index in chosen]
        surrogate = StringGP()
        surrogate.bind(space)
        started = time.perf_counter()
        surrogate.fit(keys, scores[chosen], rng=rng)
        fitted = time.perf_counter()
        spent = 0.0
        scoring = GaussianScoring(surrogate, GIBBON(), batch_size=BATCH, rng=rng)
        PoolSearch().propose(BATCH, space=space, scoring=scoring, excluded=set(keys), rng=rng)
        total = time.perf_counter() - fitted
        runs.append({"seed": seed, "fit": fitted - started, "suggest": total, "kernel": spent, "rest": total - spent})
        print(", ".join(f"{name} {value:.2f}" for name, value in runs[-1].items()), flush=True)
    medians = {name: float(np.median([run[name] for run in runs])) for name in ("fit", "suggest", "kernel", "rest")}
    print("medians (s): " + ", ".join(f"{name} {value:.2f}" for name, value in medians.items()))
    lines = [
        "| fit of the model | choosing, in all | of it kernel evaluations | the rest |",
        "|---|---|---|---|",
        "| " + " | ".join(f"{medians[name]:.2f} s" for name in ("fit", "suggest", "kernel", "rest")) + " |",
        f"\nMedians over {len(runs)} seeds, {record['threads']} threads.",
    ]
    replace_section(options.document, "batch", "\n".join(lines))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"record": record, "runs": runs, "medians": medians}, indent=1) + "\n")
