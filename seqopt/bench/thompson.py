"""How long a batch of Thompson sampling takes among 250,000 molecules: draws at some candidates, and at all.

The candidates of ZINC, 200 of which have a value (a made-up count of symbols: what is measured is time). Each method
proposes batches of 10, which are told their values; times are processor seconds of this process, the first batch
apart from the others, since features and covariances of the pool are computed once.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.runner import header, replace_section
from seqopt.utils.files import write_atomically

KNOWN, BATCH, BATCHES = 200, 10, 3

METHODS: Mapping[str, str] = {
    "functions": "whole functions of a linear model, at all candidates",
    "tanimoto": "thompson, tanimoto, joint draws at 2,000 candidates",
}
"""What is compared, and what it is called."""


def _strategy(method: str) -> Any:
    from seqopt.strategies import FunctionDraws, ModelBased

    build: Callable[[], Any] = FunctionDraws if method == "functions" else lambda: ModelBased(method, "thompson")
    return build()


def score(smiles: str) -> float:
    """A made-up value.

    Example:
        >>> score("c1ccccc1")
        2.0
    """
    return smiles.count("c") - 0.5 * len(smiles) + 2.0 * smiles.count("S")


def measured(method: str, space: Any) -> dict[str, Any]:
    """Processor seconds of each batch of one method, and the largest memory of the process so far, in GB."""
    from seqopt import Optimizer

    chosen = [space.keys[int(place)] for place in np.random.default_rng(0).choice(len(space), KNOWN, replace=False)]
    optimizer = Optimizer(space, strategy=_strategy(method), initial=KNOWN, batch_size=BATCH, seed=0)
    optimizer.tell(chosen, [score(key) for key in chosen])
    seconds = []
    for _ in range(BATCHES):
        started = time.process_time()
        batch = optimizer.ask(BATCH)
        seconds.append(round(time.process_time() - started, 3))
        optimizer.tell(batch, [score(string) for string in batch])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"method": method, "candidates": len(space), "seconds": seconds, "peak_gb": round(peak, 2)}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench thompson", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--candidates", type=int, help="only so many molecules, for trials")
    parser.add_argument("--results", type=Path, default=Path("results/thompson.json"), help="the raw result")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    options = parser.parse_args(list(argv or []))
    import torch

    from seqopt.datasets import read_pool
    from seqopt.encoding import FeatureEncoder, MorganFingerprint
    from seqopt.spaces import CandidateSet, as_space

    torch.set_num_threads(1)
    record = header(list(argv or []), "thompson")
    space: Any = as_space(read_pool("zinc250k"))
    if options.candidates is not None:
        space = CandidateSet(space.keys[: options.candidates], kind="molecule")
    # Fingerprints are computed once on a machine, in several processes, and kept in its cache.
    FeatureEncoder(MorganFingerprint()).encode(space.keys)
    found = [measured(method, space) for method in options.methods]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(options.results, json.dumps({"record": record, "runs": found}, indent=2) + "\n")
    text = table(found, record)
    print(text)
    replace_section(options.document, "thompson", text)


def table(runs: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> str:
    """Seconds of a batch."""
    lines = ["| method | candidates | first batch, s | later ones, s | peak, GB |", "|---|---|---|---|---|"]
    for run in runs:
        later = float(np.mean(run["seconds"][1:]))
        lines.append(
            f"| {METHODS[run['method']]} | {run['candidates']:,} | {run['seconds'][0]:.1f} | {later:.2f} | "
            f"{run['peak_gb']:.1f} |"
        )
    lines += [
        "",
        f"Batches of {BATCH} after {KNOWN} values; processor seconds of one process, fits included, fingerprints at "
        f"hand; the peak is that of the process until then, pool included. Measured by `{record['command']}`.",
    ]
    return "\n".join(lines)
