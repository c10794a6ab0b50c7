"""How max-value samplers and repulsions shape a batch of 10 chosen from all of ZINC.

From 60 random molecules with their penalised logP, one Gaussian process is fitted per seed; every variant then chooses
10 molecules from the whole pool. Reported in standard deviations of the pool's scores above its mean: the first
member, the mean of members 2 to 10, and the best of the batch, and the largest acquisition value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from seqopt.bench.runner import SeedJob, replace_section, run_seeds
from seqopt.bench.zinc import zinc

DATA, BATCH = 60, 10


def variants() -> dict[str, Callable[[], Any]]:
    """Acquisition functions compared, by label."""
    from seqopt.acquisition import (
        ExactMaxValueSampler,
        GumbelMaxValueSampler,
        LogExpectedImprovement,
        PosteriorMean,
        ThompsonSampling,
        UpperConfidenceBound,
    )

    whole = 10**9
    found: dict[str, Callable[[], Any]] = {}
    samplers: dict[str, Callable[[], Any]] = {
        "exact draws, 1,000 of largest UCB": ExactMaxValueSampler,
        "Gumbel, 1,000 random": partial(GumbelMaxValueSampler, 1_000),
        "Gumbel, 10,000 random": partial(GumbelMaxValueSampler, 10_000),
        "Gumbel, whole pool": partial(GumbelMaxValueSampler, whole),
    }
    for sampler, make in samplers.items():
        for repulsion in (1.0, "1/B", "1/B^2"):
            found[f"GIBBON, {sampler}, repulsion {repulsion}"] = partial(_gibbon, make, repulsion)
    return found | {
        "log expected improvement": LogExpectedImprovement,
        "UCB": UpperConfidenceBound,
        "Thompson sampling": ThompsonSampling,
        "greedy mean": PosteriorMean,
    }


def _gibbon(sampler: Callable[[], Any], repulsion: Any) -> Any:
    from seqopt.acquisition import GIBBON

    return GIBBON(sampler=sampler(), repulsion=repulsion)


def work(job: SeedJob) -> dict[str, Any]:
    """Batches of all variants for one data set."""
    import torch

    from seqopt.models import StringGP
    from seqopt.scorers import GaussianScoring
    from seqopt.search import PoolSearch

    torch.set_num_threads(1)
    space, scores = zinc()
    rng = np.random.default_rng([job.seed])
    chosen = rng.choice(len(space), DATA, replace=False)
    keys = [space.keys[index] for index in chosen]
    surrogate = StringGP(restarts=3)
    surrogate.bind(space)
    surrogate.fit(keys, scores[chosen], rng=rng)
    standard = (scores - scores.mean()) / scores.std()
    batches = {}
    for label, make in variants().items():
        stream = np.random.default_rng([job.seed, 1])
        scoring = GaussianScoring(surrogate, make(), batch_size=BATCH, rng=stream)
        suggestions = PoolSearch().propose(BATCH, space=space, scoring=scoring, excluded=set(keys), rng=stream)
        batches[label] = {
            "values": [round(float(standard[space.index_of(s.key)]), 4) for s in suggestions],
            "acquisition": [s.acquisition for s in suggestions],
        }
    random = np.random.default_rng([job.seed, 2]).choice(standard, BATCH)
    batches["random"] = {"values": random.round(4).tolist(), "acquisition": [None] * BATCH}
    return {"seed": job.seed, "best_of_data": round(float(standard[chosen].max()), 4), "batches": batches}


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    runs, document = run_seeds(argv, "samplers", str(__doc__).split("\n\n")[0], 10, work, zinc)
    lines = [
        "| acquisition | first | members 2-10 | best of batch | largest value (nats) |",
        "|---|---|---|---|---|",
    ]
    for label in runs[0]["batches"]:
        values = np.array([run["batches"][label]["values"] for run in runs])
        peaks = [run["batches"][label]["acquisition"][0] for run in runs]
        columns = [values[:, 0], values[:, 1:].mean(1), values.max(1)]
        cells = [f"{c.mean():.2f} ± {c.std(ddof=1) / np.sqrt(len(c)):.2f}" for c in columns]
        peak = f"{np.median(peaks):.3g}" if label.startswith("GIBBON") else ""
        lines.append(f"| {label} | {' | '.join(cells)} | {peak} |")
    best = np.mean([run["best_of_data"] for run in runs])
    lines.append(f"\n{len(runs)} seeds; the best of the 60 known molecules stands at {best:.2f}.")
    print("\n".join(lines))
    replace_section(document, "samplers", "\n".join(lines))
