"""Optimisation of functions that a string kernel draws: how soon does a search learn the parameters of its model?

Each seed draws a function from a Gaussian process with the sub-sequence kernel over a pool of random strings, at
parameters that a search does not know; it is measured with noise. From the same random strings all methods choose one
string at a time, by the same model: the sub-sequence kernel, averaged over draws of its parameters. After each
evaluation two numbers are kept: the inference regret, which is what the true value at the string of largest posterior
mean lacks of the largest, and the error of the parameters,

    mean over draws of |log v_m - log v|, averaged over the output scale, the noise variance and the gap decay.

References:
    Hvarfner, C., Hellsten, E., Hutter, F., Nardi, L. (2023). Self-correcting Bayesian optimization through Bayesian
        active learning. NeurIPS (samples of a Gaussian process in eight variables).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.conditions import measured_by
from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error

SEEDS, INITIAL, EVALUATIONS = 20, 8, 40
POOL, ALPHABET, SHORTEST, LONGEST = 300, "ABCD", 6, 12
ORDER, MATCH_DECAY, GAP_DECAY, SCALE, NOISE = 3, 0.8, 0.3, 1.0, 0.05
"""Of the functions: order and decays of their kernel, variance, and variance of the noise."""

DRAWS = 16
"""Of the parameters."""

SHOWN = (10, 20, 30, 40)
"""Numbers of evaluations in the table."""

REFERENCE = "logei"
METHODS: Mapping[str, str] = {"scorebo": "SCoreBO", REFERENCE: "EI", "random": "random strings"}
"""What is compared, and what it is called."""


@dataclass(frozen=True)
class Job:
    """One method on one function."""

    method: str
    seed: int


def drawn(seed: int) -> tuple[list[str], np.ndarray]:
    """A pool and the values of a function at its strings, which is drawn from the process."""
    from seqopt.encoding import Encoder
    from seqopt.kernels import SubsequenceKernel

    rng = np.random.default_rng([seed, 0])
    found: dict[str, None] = {}
    while len(found) < POOL:
        length = int(rng.integers(SHORTEST, LONGEST + 1))
        found["".join(rng.choice(list(ALPHABET), length).tolist())] = None
    strings = list(found)
    kernel = SubsequenceKernel(order=ORDER, match_decay=MATCH_DECAY, gap_decay=GAP_DECAY)
    gram = np.asarray(kernel.cross(Encoder("characters").encode(strings)), dtype=np.float64)
    values, vectors = np.linalg.eigh(gram)
    return strings, np.sqrt(SCALE) * vectors @ (np.sqrt(values.clip(min=0.0)) * rng.standard_normal(POOL))


def parameter_error(parameters: Mapping[str, Sequence[float]], unit: float) -> float:
    """How far draws of the parameters are from those of the functions.

    Args:
        parameters: Draws of ``outputscale`` and ``noise_variance`` for standardised values, and of ``gap_decay``.
        unit: Standard deviation of the values.

    Example:
        >>> round(parameter_error({"outputscale": [1.0], "noise_variance": [0.05], "gap_decay": [0.3]}, 1.0), 12)
        0.0
    """
    true = {"outputscale": SCALE / unit**2, "noise_variance": NOISE / unit**2, "gap_decay": GAP_DECAY}
    errors = [np.abs(np.log(np.asarray(parameters[name])) - np.log(value)).mean() for name, value in true.items()]
    return float(np.mean(errors))


def work(job: Job) -> dict[str, Any]:
    """One search, in one thread."""
    import torch

    from seqopt.acquisition import resolve_acquisition
    from seqopt.kernels import SubsequenceKernel
    from seqopt.models import FullyBayesianStringGP
    from seqopt.scorers import GaussianScoring
    from seqopt.search import PoolSearch
    from seqopt.spaces import CandidateSet

    torch.set_num_threads(1)
    strings, truth = drawn(job.seed)
    space = CandidateSet(strings, kind="text", keys=strings)
    noise = np.sqrt(NOISE) * np.random.default_rng([job.seed, 1]).standard_normal(POOL)
    # Each string has the noise of its one measurement, whichever method measures it.
    values = truth + noise
    chosen = np.random.default_rng([job.seed, 2]).permutation(POOL)[:INITIAL].tolist()
    surrogate = FullyBayesianStringGP(SubsequenceKernel(order=ORDER), draws=DRAWS)
    surrogate.bind(space)
    errors: list[float] = []
    regret: list[float] = []
    seconds = 0.0
    while True:
        started = time.process_time()
        known = [space.keys[place] for place in chosen]
        surrogate.fit(known, values[chosen], rng=np.random.default_rng([job.seed, len(chosen), 3]))
        state = surrogate.state_dict()["parameters"]
        errors.append(parameter_error(state, surrogate.units[1]))
        mean = surrogate.predict(space.keys)[0]
        regret.append(float(truth.max() - truth[int(mean.argmax())]))
        if len(chosen) >= EVALUATIONS:
            break
        rng = np.random.default_rng([job.seed, len(chosen), 4])
        if job.method == "random":
            chosen.append(int(rng.choice(np.setdiff1d(np.arange(POOL), chosen))))
        else:
            scoring = GaussianScoring(surrogate, resolve_acquisition(job.method), batch_size=1, rng=rng)
            (found,) = PoolSearch().propose(1, space=space, scoring=scoring, excluded=set(known), rng=rng)
            place = space.index_of(found.key)
            assert place is not None
            chosen.append(place)
        seconds += time.process_time() - started
    return {
        "job": asdict(job),
        "errors": [round(error, 5) for error in errors],
        "regret": [round(one, 5) for one in regret],
        "chosen": chosen,
        "seconds": round(seconds, 2),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do what is missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench parameters", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"functions (default {SEEDS})")
    parser.add_argument(
        "--results", type=Path, default=Path("results/parameters"), help="folder of the raw results, a file for each"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if options.seeds < 1:
        parser.error("--seeds takes a number from 1")
    if not options.report_only:
        run_jobs(
            [Job(method, seed) for seed in range(options.seeds) for method in options.methods],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=header(list(argv or []), "parameters"),
        )
    text = table(read_runs(options.results))
    print(text)
    replace_section(options.document, "parameters", text)


Runs = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""By method and seed."""


def read_runs(results: Path) -> Runs:
    """All stored runs."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            found.setdefault(method, {})[int(run["job"]["seed"])] = run
    return found


def table(runs: Runs) -> str:
    """Errors of the parameters and regrets, by how many strings were measured."""
    lines = [
        "| method | functions | "
        + " | ".join(f"error, {number}" for number in SHOWN)
        + " | mean error, less EI | "
        + " | ".join(f"regret, {number}" for number in SHOWN)
        + " | last regret, less EI | s a run |",
        "|---|---|" + "---|" * (2 * len(SHOWN) + 3),
    ]
    for method, by_seed in runs.items():
        cells = [
            [with_error([run[field][number - INITIAL] for run in by_seed.values()]) for number in SHOWN]
            for field in ("errors", "regret")
        ]
        both = [] if method == REFERENCE else sorted(by_seed.keys() & runs.get(REFERENCE, {}).keys())
        paired = ["", ""]
        if len(both) > 1:
            ours, theirs = by_seed, runs[REFERENCE]
            paired = [
                with_error([float(np.mean(ours[one]["errors"]) - np.mean(theirs[one]["errors"])) for one in both]),
                with_error([ours[one]["regret"][-1] - theirs[one]["regret"][-1] for one in both]),
            ]
        seconds = float(np.median([run["seconds"] for run in by_seed.values()]))
        lines.append(
            f"| {METHODS[method]} | {len(by_seed)} | {' | '.join(cells[0])} | {paired[0]} | {' | '.join(cells[1])} | "
            f"{paired[1]} | {seconds:.0f} |"
        )
    lines.append("")
    lines.append(
        f"Functions over {POOL} random strings of {SHORTEST} to {LONGEST} letters, drawn with the sub-sequence kernel "
        f"of order {ORDER} (gap decay {GAP_DECAY:g}, variance {SCALE:g}, noise variance {NOISE:g}). Mean ± one "
        f"standard error; {INITIAL} random strings first, then one at a time. *Error* is that of the logarithms of "
        "output scale, noise variance and gap decay, averaged over draws; *regret* is that of the string of largest "
        "posterior mean. Differences are paired by function, and negative ones favour the method of the row. Seconds "
        "are processor time."
    )
    records = [run["record"] for by_seed in runs.values() for run in by_seed.values() if "record" in run]
    if records:
        lines += ["", measured_by(records)]
    return "\n".join(lines)
