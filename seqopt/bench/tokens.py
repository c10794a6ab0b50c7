"""How much the tokenisation of SMILES matters to the sub-sequence kernel.

A Gaussian process is fitted to 100 random molecules of ZINC with their penalised logP and predicts 1,000 others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.bench.zinc import zinc

TRAIN, TEST = 100, 1000
TOKENIZERS = {
    "smiles": "chemical symbols, bracket atoms whole",
    "smiles-split": "chemical symbols, parts of bracket atoms apart (default)",
    "characters": "characters",
}


@dataclass(frozen=True)
class Job:
    """One random split."""

    seed: int


def work(job: Job) -> dict[str, Any]:
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
    parser = argparse.ArgumentParser(prog="seqopt bench tokens", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="random splits (default 20)")
    parser.add_argument("--results", type=Path, default=Path("results/tokens"), help="folder of the raw results")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="splits at a time (default 2)")
    options = parser.parse_args(list(argv))
    record = header(argv, "tokens")
    print(f"seeds: 0 to {options.seeds - 1}", flush=True)
    zinc()
    run_jobs(
        [Job(seed) for seed in range(options.seeds)],
        lambda job: options.results / f"seed{job.seed:02d}.json",
        work,
        processes=options.jobs,
        record=record,
    )
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.results.glob("seed*.json"))]
    lines = ["| symbols | RMSE | R2 | negative log predictive density |", "|---|---|---|---|"]
    for tokenizer, label in TOKENIZERS.items():
        cells = []
        for measure in ("rmse", "r2", "nlpd"):
            values = np.array([run["tokenizers"][tokenizer][measure] for run in runs])
            cells.append(f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines.append(f"\n{len(runs)} random splits; mean and one standard error.")
    print("\n".join(lines))
    replace_section(options.document, "tokens", "\n".join(lines))
