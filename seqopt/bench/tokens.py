"""How much the tokenisation of SMILES matters to the sub-sequence kernel.

A Gaussian process is fitted to 100 random molecules of ZINC with their penalised logP and predicts 1,000 others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqopt.bench.runner import SeedJob, replace_section, run_seeds
from seqopt.bench.zinc import zinc

TRAIN, TEST = 100, 1000
TOKENIZERS = {
    "smiles": "chemical symbols, bracket atoms whole",
    "smiles-split": "chemical symbols, parts of bracket atoms apart (default)",
    "characters": "characters",
}


def work(job: SeedJob) -> dict[str, Any]:
    """Errors of every tokeniser on one split."""
    import torch

    from seqopt.models import StringGP

    torch.set_num_threads(1)
    space, scores = zinc()
    chosen = np.random.default_rng(job.seed).choice(len(space), TRAIN + TEST, replace=False)
    train, test = chosen[:TRAIN], chosen[TRAIN:]
    found = {}
    for tokenizer in TOKENIZERS:
        surrogate = StringGP(tokenizer=tokenizer)
        surrogate.fit([space.keys[i] for i in train], scores[train], rng=np.random.default_rng([job.seed, 1]))
        mean, std = surrogate.predict([space.keys[i] for i in test])
        parameters = surrogate.hyperparameters
        variance = std**2 + parameters["noise_variance"] * scores[train].var(ddof=1)
        error = scores[test] - mean
        found[tokenizer] = {
            "rmse": float(np.sqrt(np.mean(error**2))),
            "r2": float(1 - np.mean(error**2) / scores[test].var()),
            "nlpd": float(0.5 * np.mean(np.log(2 * np.pi * variance) + error**2 / variance)),
            "kernel": parameters,
        }
    return {"seed": job.seed, "tokenizers": found}


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    runs, document = run_seeds(argv, "tokens", str(__doc__).split("\n\n")[0], 20, work, zinc)
    lines = ["| symbols | RMSE | R2 | negative log predictive density |", "|---|---|---|---|"]
    for tokenizer, label in TOKENIZERS.items():
        cells = []
        for measure in ("rmse", "r2", "nlpd"):
            values = np.array([run["tokenizers"][tokenizer][measure] for run in runs])
            cells.append(f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines.append(f"\n{len(runs)} random splits; mean and one standard error.")
    print("\n".join(lines))
    replace_section(document, "tokens", "\n".join(lines))
