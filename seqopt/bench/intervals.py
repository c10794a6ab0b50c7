"""Do nine of ten measurements lie in the intervals that nine of ten should lie in?

Values are drawn from a Gaussian process with known parameters (output scale 1, the kernel's own parameters, noise of
0.01, 0.1 or 0.5) at random strings, or are those of a table of molecules. A `seqopt.models.StringGP` is fitted to n of
them, and its central intervals of measurements, noise included, are compared with up to 100 others (500 of a table):

- ``plug-in``: at the fitted parameters;
- ``leave-one-out``: the same, times the root mean square of standardised leave-one-out residuals (if that exceeds 1)
  and the ratio of the quantiles of a t distribution with n - 1 degrees of freedom and of a normal one;
- ``averaged``: with the uncertainty of the parameters, `seqopt.models.StringGP.measurement_std`, as users see them;
- ``ssk-bayes``: those of `seqopt.models.FullyBayesianStringGP`, where the kernel is the sub-sequence kernel;
- ``oracle``: at the true parameters, where there are any.

Widths of intervals are in units of the oracle's, or of the plug-in's for tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING
from seqopt.bench.runner import header, run_into_section

if TYPE_CHECKING:
    from seqopt.models import StringGP

Numbers = npt.NDArray[np.float64]

SIZES = (10, 20, 60, 200)
NOISES = (0.01, 0.1, 0.5)
LEVELS = (0.5, 0.8, 0.9, 0.95)
DRAWN = {"dna-ssk": "ssk", "dna-ngrams": "ngrams", "esol-minmax": "minmax"}
"""Kernels by the names of tasks whose values are drawn; what stands before the dash says at which strings."""

TABLES = {
    f"{dataset}-{kernel}-table": kernel
    for dataset in ("esol", "freesolv", "lipophilicity")
    for kernel in ("ssk", "minmax")
}
"""Likewise of tasks whose values are measured."""

KERNELS = DRAWN | TABLES
REPEATS = {"drawn": 40, "table": 10}
TESTED = {"drawn": 100, "table": 500}
METHODS = ("oracle", "plug-in", "leave-one-out", "averaged", "ssk-bayes")

FAMILIES, LENGTH, MUTATED = 8, 20, 0.3
"""Random DNA comes in families, whose members differ from a common ancestor in some symbols."""


@dataclass(frozen=True)
class Job:
    """One data set.

    Attributes:
        task: A name in `KERNELS`.
        noise: Variance of the noise of drawn values; `None` for measured ones.
        n: Number of strings that the model is fitted to.
        seed: Of strings, values and fit.
    """

    task: str
    noise: float | None
    n: int
    seed: int


def work(job: Job) -> dict[str, Any]:
    """Coverage and mean width of the intervals of all methods on one data set."""
    import torch

    from seqopt.models import SURROGATES, FullyBayesianStringGP

    torch.set_num_threads(1)
    rng = np.random.default_rng([job.seed, job.n])
    strings, values = _strings(job.task, rng)
    tested = TESTED["drawn" if job.task in DRAWN else "table"]
    chosen = rng.permutation(len(strings))[: job.n + tested]
    strings = [strings[index] for index in chosen]
    name = KERNELS[job.task]
    gp: Any = SURROGATES[name].build()
    found: dict[str, tuple[Any, Any]] = {}
    if values is None:
        assert job.noise is not None
        values, found["oracle"] = draw(gp, strings, job.n, job.noise, rng)
    else:
        values = values[chosen]
    train, test = strings[: job.n], strings[job.n :]
    started = time.perf_counter()
    gp.fit(train, values[: job.n], rng=rng)
    fitted = time.perf_counter()
    gp.measurement_std(test[:10])
    seconds = time.perf_counter() - fitted
    mean, std = gp.predict(test)
    noise = gp.units[1] ** 2 * float(gp.fitted.noise_variance[0])
    plain = np.sqrt(std**2 + noise)
    found |= {
        "plug-in": (mean, plain),
        "leave-one-out": (mean, plain * _leave_one_out_factor(gp)),
        "averaged": (mean, gp.measurement_std(test)),
    }
    if name == "ssk":
        bayes = FullyBayesianStringGP()
        bayes.fit(train, values[: job.n], rng=rng)
        mean, std = bayes.predict(test)
        noise = bayes.units[1] ** 2 * float(bayes.fitted.noise_variance.mean())
        found["ssk-bayes"] = mean, np.sqrt(std**2 + noise)
    unit = found["oracle" if "oracle" in found else "plug-in"][1].mean()
    return {
        "job": asdict(job),
        "tested": len(test),
        "hyperparameters": {name: round(value, 5) for name, value in gp.hyperparameters.items()},
        "coverage": {method: coverage(values[job.n :], *moments) for method, moments in found.items()},
        "width": {method: float(spread.mean() / unit) for method, (_, spread) in found.items()},
        "fit_seconds": round(fitted - started, 4),
        "interval_seconds": round(seconds, 4),
    }


def coverage(values: Numbers, mean: Numbers, std: Numbers) -> list[float]:
    """Shares of values within the central intervals of `LEVELS`.

    Example:
        >>> coverage(np.array([0.0, 1.5]), np.zeros(2), np.ones(2))
        [0.5, 0.5, 1.0, 1.0]
    """
    from scipy.stats import norm

    away = np.abs(values - mean) / std
    return [float(np.mean(away <= norm.ppf(0.5 + level / 2))) for level in LEVELS]


def draw(
    gp: StringGP, strings: Sequence[str], n: int, noise: float, rng: np.random.Generator
) -> tuple[Numbers, tuple[Numbers, Numbers]]:
    """Values of all strings, and what one who knows the parameters predicts from the first n for the others.

    Args:
        gp: An unfitted surrogate, whose kernel has the true parameters.
        strings: N strings.
        n: Of them, so many are known.
        noise: Variance of the noise.
        rng: Draws the values.
    """
    covariance = gram(gp, strings)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    values = vectors @ (np.sqrt(eigenvalues.clip(min=0.0)) * rng.standard_normal(len(strings)))
    values += np.sqrt(noise) * rng.standard_normal(len(strings))
    solved = np.linalg.solve(covariance[:n, :n] + noise * np.eye(n), covariance[:n, n:])
    variance = np.diagonal(covariance)[n:] - (solved * covariance[:n, n:]).sum(0) + noise
    return values, (solved.T @ values[:n], np.sqrt(variance))


def gram(gp: StringGP, strings: Sequence[str]) -> Numbers:
    """Prior covariances of the values of strings, ``N x N``, with the parameters that an unfitted surrogate has."""
    from seqopt.models.covariance import KernelEvaluator
    from seqopt.models.sampling.parameters import KernelParameters

    encoded = gp.encoder.encode(strings)
    evaluator = KernelEvaluator(KernelParameters(gp.kernel, encoded).kernel, encoded.width)
    found = evaluator.cross(encoded, None, evaluator.self_similarity(encoded)).astype(np.float64)
    return 0.5 * (found + found.T)


def _strings(task: str, rng: np.random.Generator) -> tuple[list[str], Numbers | None]:
    from seqopt.bench.regression import molecules

    source = task.split("-")[0]
    if source != "dna":
        strings, values = molecules(source)
        return strings, values if task in TABLES else None
    return random_dna(rng), None


def random_dna(rng: np.random.Generator) -> list[str]:
    """Some 400 strings of DNA in `FAMILIES`, sorted."""
    symbols = np.array(list("ACGT"))
    ancestors = rng.choice(symbols, (FAMILIES, LENGTH))
    members = ancestors[np.arange(50 * FAMILIES) % FAMILIES]
    moved = rng.random(members.shape) < MUTATED
    return sorted({"".join(row) for row in np.where(moved, rng.choice(symbols, members.shape), members)})


def _leave_one_out_factor(gp: StringGP) -> float:
    from scipy.stats import norm, t

    found = gp.leave_one_out()
    square = float(np.mean(((found.values - found.mean) / found.std) ** 2))
    return float(np.sqrt(max(square, 1.0)) * t.ppf(0.95, len(found.values) - 1) / norm.ppf(0.95))


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(prog="seqopt bench intervals", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=KERNELS, default=list(KERNELS), help="default: all")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=list(SIZES), help="strings to fit to (default %(default)s)"
    )
    parser.add_argument("--repeats", type=int, help=f"data sets of each kind (default {REPEATS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results") / f"intervals{ENDING}",
        help="file of the raw results, a JSON object a line (default %(default)s)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    options = parser.parse_args(list(argv))
    record = header(argv, "intervals")
    jobs = [
        Job(task, noise, n, seed)
        for n in options.sizes
        for task in options.tasks
        for noise in (NOISES if task in DRAWN else (None,))
        for seed in range(options.repeats or REPEATS["drawn" if task in DRAWN else "table"])
    ]
    print(f"seeds: 0 to {max(job.seed for job in jobs)}", flush=True)
    run_into_section(
        "intervals",
        jobs,
        work,
        table,
        results=options.results,
        document=options.document,
        processes=options.jobs,
        record=record,
        every=50,
    )


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Shares within the 90 % intervals of all methods, with standard errors, and widths in parentheses."""
    kinds = sorted(
        {(run["job"]["task"], run["job"]["noise"], run["job"]["n"]) for run in runs},
        key=lambda kind: (list(KERNELS).index(kind[0]), kind[1] or 0.0, kind[2]),
    )
    lines = [
        "| values | noise | strings | " + " | ".join(METHODS) + " |",
        "|---|---|---|" + "---|" * len(METHODS),
    ]
    for task, noise, n in kinds:
        own = [run for run in runs if run["job"] | {"seed": 0} == {"task": task, "noise": noise, "n": n, "seed": 0}]
        cells = []
        for method in METHODS:
            if method not in own[0]["coverage"]:
                cells.append("")
                continue
            shares = np.array([run["coverage"][method][LEVELS.index(0.9)] for run in own])
            width = np.mean([run["width"][method] for run in own])
            error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else float("nan")
            cells.append(f"{100 * shares.mean():.1f} ± {100 * error:.1f} ({width:.2f})")
        lines.append(f"| {task} | {'' if noise is None else noise} | {n} | {' | '.join(cells)} |")
    seconds = {
        n: np.median([run["interval_seconds"] for run in runs if run["job"]["n"] == n])
        for n in sorted({run["job"]["n"] for run in runs})
    }
    times = ", ".join(f"{1000 * value:.0f} ms after {n}" for n, value in seconds.items())
    lines.append(f"\nAveraged intervals of the first ten strings take, in the median over all rows, {times} strings.")
    return "\n".join(lines)
