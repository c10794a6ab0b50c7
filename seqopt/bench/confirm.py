"""Hit confirmation: how often is the best of 30 hits named after so many repeated measurements?

A simulated campaign has found good candidates: of the truly best fifth of all, it has measured 100 random ones once,
with noise, and a Gaussian process was fitted to that (its kernel once for every 50 simulations, scale and mean in
each). The 30 best of the measured values are the hits. Each rule has the same number of wells to find out which of them
is truly the best, in batches, and is wrong if another one of them is better than the one it names. All rules of a
simulation see the same noise: the nth measurement of a string reads the same.

- HPOLib: the validation loss of a network, trained with one of four seeds drawn at random, is one measurement; the mean
  of the four (of log10) is the true value. The variance of the noise is the mean variance between seeds of the best
  fifth of all configurations, as a laboratory knows the noise of its assay where its hits are.
- Docking: scores of Enamine molecules, with noise of 0.5 kcal/mol added.
- FreeSolv: measured hydration free energies are taken for the true ones, with noise of 0.6 kcal/mol, which is what the
  database states as the error of most of them; the file that is read has no column of errors. The largest are looked
  for: the smallest lie further apart than the noise reaches.

References:
    See `seqopt.strategies.arms.rules`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.errors import InputError
from seqopt.strategies.arms import ArmPosterior, BayesGap, Rule, resolve_rule, simulate

FloatArray = npt.NDArray[np.float64]

RESULTS = Path("results/confirm")

BLOCK = 50
"""Simulations of one run."""

BLOCKS = 4

MEASURED = 100
"""Candidates that the campaign before has measured."""

FIFTH = 5
"""The campaign has measured random ones of the best of so many parts of all strings."""

HITS = 30

WELLS = (24, 48, 96, 192)
"""Measurements in all, each of a confirmation of its own."""

BATCH = 24


@dataclass(frozen=True)
class Task:
    """What is confirmed.

    Attributes:
        label: Name in the tables.
        data: Name of the data set.
        noise: Standard deviation that is added; 0 where the data set has several measurements of each string.
        sign: 1 where large values are good, -1 where small ones are.
        unit: Of the regret.
    """

    label: str
    data: str
    noise: float
    sign: float
    unit: str


TASKS: Mapping[str, Task] = {
    **{
        f"hpolib-{name}": Task(f"HPOLib {label}, four seeds", f"hpolib-{name}", 0.0, -1.0, "log10(loss)")
        for name, label in (
            ("protein", "protein"),
            ("slice", "slice localisation"),
            ("naval", "naval propulsion"),
            ("parkinsons", "Parkinson's telemonitoring"),
        )
    },
    "docking": Task("Docking, noise 0.5 kcal/mol", "enamine10k_docking", 0.5, -1.0, "kcal/mol"),
    "freesolv": Task("FreeSolv, noise 0.6 kcal/mol", "freesolv", 0.6, 1.0, "kcal/mol"),
}
"""What is confirmed."""


@dataclass(frozen=True)
class Method:
    """A way to confirm.

    Attributes:
        label: Name in the tables.
        rule: Name of the rule.
        named: What names the answer: the model, the means of the measurements, or the smallest gap of BayesGap over the
            batches.
        batch: Measurements at a time; 0 for all at once.
    """

    label: str
    rule: str
    named: Literal["model", "means", "gap"] = "model"
    batch: int = BATCH


METHODS: Mapping[str, Method] = {
    "equal": Method("equal replication, means", "equal", "means"),
    "equal-model": Method("equal replication, read by the model", "equal"),
    "ugap": Method("UGap", "ugap", "means"),
    "ucb-e": Method("UCB-E", "ucb-e", "means"),
    "top-two": Method("top-two Thompson", "top-two"),
    "bayes-gap-theory": Method("BayesGap, beta by theory", "bayes-gap-theory"),
    "bayes-gap-decay": Method("BayesGap, beta 5 halved by batch", "bayes-gap-decay"),
    "bayes-gap": Method("BayesGap, beta 2", "bayes-gap"),
    "bayes-gap-named-by-gap": Method("BayesGap, beta 2, smallest gap named", "bayes-gap", "gap"),
    "bayes-gap-one": Method("BayesGap, beta 2, one at a time", "bayes-gap", batch=1),
    "bayes-gap-all": Method("BayesGap, beta 2, all at once", "bayes-gap", batch=0),
}
"""What is compared."""

REFERENCE = "equal"


@dataclass(frozen=True)
class Job:
    """The simulations of one block, by all methods: they share its models."""

    task: str
    block: int


@dataclass(frozen=True)
class Block:
    """Hits of several simulations.

    Attributes:
        posterior: What the campaigns before say of them, in units of the values; larger is better.
        truth: Their true values, R x K.
        readings: What their measurements read, one after the other, R x K x n.
    """

    posterior: ArmPosterior
    truth: FloatArray
    readings: FloatArray


@lru_cache(maxsize=1)
def _whole(task: str) -> tuple[tuple[str, ...], FloatArray]:
    """All strings of a task, and what was measured of each, n x replicates; large values are good."""
    from seqopt.datasets import load, load_configurations

    found = TASKS[task]
    if found.data.startswith("hpolib"):
        table = load_configurations(found.data)
        return table.strings, found.sign * np.log10(table.values)
    data = load(found.data)
    assert data.values is not None
    strings, first = np.unique(np.array(data.strings, dtype=object), return_index=True)
    return tuple(strings), found.sign * data.values[first][:, None]


@lru_cache(maxsize=1)
def block_of(task: str, block: int) -> Block:
    """The hits of a block, and what will be measured of them."""
    from seqopt.kernels import HammingKernel
    from seqopt.models import StringGP

    strings, values = _whole(task)
    noise = TASKS[task].noise
    variance = noise**2 if noise else _between_seeds(values)
    means, covariances, truths, readings, averages = [], [], [], [], []
    good = np.argsort(-values.mean(1), kind="stable")[: len(values) // FIFTH]
    kernel, encoder = (HammingKernel(), None) if not noise else _tanimoto()
    model = StringGP(kernel, encoder=encoder, restarts=1)
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        rng = np.random.default_rng([number, 11])
        rows = rng.choice(good, MEASURED, replace=False)
        table = values[rows]
        measured = _read(table, noise, 1, rng)[:, 0]
        hits = np.argsort(-measured, kind="stable")[:HITS]
        keys = [strings[row] for row in rows]
        model.noise = variance / float(measured.var(ddof=1))
        model.fit(keys, measured, rng=rng, full=number == block * BLOCK)
        mean, covariance = model.posterior([keys[hit] for hit in hits])
        means.append(mean.numpy())
        covariances.append(covariance.numpy())
        truths.append(table[hits].mean(1))
        averages.append(measured[hits])
        readings.append(_read(table[hits], noise, max(WELLS), rng))
    posterior = ArmPosterior.of(np.stack(means), np.stack(covariances), variance, counts=1, averages=np.stack(averages))
    return Block(posterior, np.stack(truths), np.stack(readings))


def _tanimoto() -> tuple[Any, Any]:
    """A kernel on Morgan fingerprints, and what computes them."""
    from seqopt.encoding import FeatureEncoder, MorganFingerprint
    from seqopt.kernels import TanimotoKernel

    return TanimotoKernel(), FeatureEncoder(MorganFingerprint())


def _between_seeds(values: FloatArray) -> float:
    """Mean variance between measurements of one string, over the best fifth of all strings."""
    best = np.argsort(-values.mean(1), kind="stable")[: len(values) // FIFTH]
    return float(values[best].var(axis=1, ddof=1).mean())


def _read(table: FloatArray, noise: float, times: int, rng: np.random.Generator) -> FloatArray:
    """Measurements of n strings, n x times: one of those in the table, or its value with noise."""
    if noise:
        found: FloatArray = table[:, :1] + noise * rng.standard_normal((len(table), times))
        return found
    return np.take_along_axis(table, rng.integers(table.shape[1], size=(len(table), times)), axis=1)


def work(job: Job) -> dict[str, Any]:
    """The simulations of one block: after each number of wells, how much worse the hit is that each method names."""
    import torch

    torch.set_num_threads(1)
    started = time.perf_counter()
    block = block_of(job.task, job.block)
    found: dict[str, Any] = {}
    for name, method in METHODS.items():
        rule = resolve_rule(method.rule)
        for wells in WELLS:
            rng = np.random.default_rng([job.block, wells, 12])
            regret = confirm(block, rule, method, wells, rng)
            found.setdefault(name, {})[str(wells)] = np.round(regret, 6).tolist()
    return {"job": asdict(job), "regret": found, "seconds": round(time.perf_counter() - started, 2)}


def confirm(block: Block, rule: Rule, method: Method, wells: int, rng: np.random.Generator) -> FloatArray:
    """How much worse the named hit is than the best one in each simulation, R."""
    rows = np.arange(len(block.truth))
    gaps: list[tuple[FloatArray, npt.NDArray[np.int64]]] = []

    def look(posterior: ArmPosterior) -> None:
        if isinstance(rule, BayesGap):
            found = rule.gaps(posterior, np.full(posterior.situations, rule.beta))
            gaps.append((found.gap[rows, found.leader], found.leader))

    trace = simulate(
        block.posterior,
        rule,
        lambda arms, times: block.readings[rows, arms, times],
        wells=wells,
        batch=method.batch or wells,
        rng=rng,
        after=look if method.named == "gap" else None,
    )
    named = trace.averaged[-1] if method.named == "means" else trace.recommended[-1]
    if method.named == "gap":
        smallest = np.stack([gap for gap, _ in gaps]).argmin(0)
        named = np.stack([leader for _, leader in gaps])[smallest, rows]
    found: FloatArray = block.truth.max(1) - block.truth[rows, named]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench confirm", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument(
        "--blocks", type=int, default=BLOCKS, help=f"runs of {BLOCK} simulations (default {BLOCKS} for each task)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the raw results (default {RESULTS})")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "confirm")
        tasks = [task for task in options.tasks if _is_here(task)]
        run_jobs(
            [Job(task, block) for block in range(options.blocks) for task in tasks],
            lambda job: options.results / f"{job.task}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "confirm", text)


def _is_here(task: str) -> bool:
    """Whether the data of a task are on this machine; if not, it says what to do."""
    try:
        _whole(task)
    except InputError as error:
        print(f"{task} is left out: {error}", flush=True)
        return False
    return True


Runs = Mapping[str, Mapping[str, Mapping[str, FloatArray]]]
"""By task, method and wells: how much worse the named hit is, of all simulations in their order."""


def read_runs(results: Path) -> Runs:
    """All stored runs."""
    found: dict[str, dict[str, dict[str, FloatArray]]] = {}
    for task in TASKS:
        runs = sorted(read_records(results / f"{task}{ENDING}", ["job"]), key=lambda run: int(run["job"]["block"]))
        for method in METHODS if runs else ():
            own = [run["regret"][method] for run in runs]
            found.setdefault(task, {})[method] = {
                wells: np.concatenate([np.asarray(one[wells], dtype=np.float64) for one in own]) for wells in own[0]
            }
    return found


def tables(runs: Runs) -> str:
    """A table for each task, and what the columns mean."""
    lines: list[str] = []
    for task, methods in runs.items():
        wells = list(next(iter(methods.values())))
        simulations = len(next(iter(methods.values()))[wells[0]])
        unit = TASKS[task].unit
        lines += [
            f"| {TASKS[task].label}: wrong in % of {simulations} | "
            + " | ".join(f"{count} wells" for count in wells)
            + f" | share of equal replication's, {wells[-2]} wells | regret, {wells[-2]} wells ({unit}) |",
            "|---|" + "---|" * (len(wells) + 2),
        ]
        for method, after in methods.items():
            cells = [METHODS[method].label]
            cells += [percent_with_error(is_wrong(after[count])) for count in wells]
            reference = is_wrong(methods[REFERENCE][wells[-2]])
            cells.append("" if method == REFERENCE else share_of(is_wrong(after[wells[-2]]), reference))
            cells.append(f"{after[wells[-2]].mean():.3g}")
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += _overall(runs)
    lines.append(
        f"Wrong: how often another one of the {HITS} hits is truly better than the one that was named after so many "
        f"wells, in batches of {BATCH} where nothing else is said; ± one standard error. Share of equal replication's: "
        "wrong answers over those of equal replication, whose measurements are averaged, in the same simulations, "
        "± one standard error of the ratio. Regret: how much worse the named hit is than the best one, on average."
    )
    return "\n".join(lines)


def percent_with_error(wrong: FloatArray) -> str:
    """A share in percent with its standard error.

    Example:
        >>> percent_with_error(np.array([0.0, 1.0, 0.0, 0.0]))
        '25.0 ± 21.7'
    """
    share = float(wrong.mean())
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / len(wrong)):.1f}"


def is_wrong(regret: FloatArray) -> FloatArray:
    """1 where another one is truly better than the named hit, and 0 elsewhere."""
    return (regret > 1e-9).astype(np.float64)


def share_of(wrong: FloatArray, others: FloatArray) -> str:
    """Wrong answers over those of the reference in the same simulations, with a standard error to first order.

    Example:
        >>> share_of(np.array([1.0, 0.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))
        '0.50 ± 0.41'
    """
    if not others.any():
        return ""
    ratio = wrong.mean() / others.mean()
    error = np.std(wrong - ratio * others, ddof=1) / np.sqrt(len(wrong)) / others.mean()
    return f"{ratio:.2f} ± {error:.2f}"


def _overall(runs: Runs) -> list[str]:
    """A table of all tasks together."""
    if len(runs) < 2:
        return []
    wells = list(next(iter(next(iter(runs.values())).values())))
    lines = [
        "| All together: share of equal replication's wrong answers | "
        + " | ".join(f"{n} wells" for n in wells)
        + " |",
        "|---|" + "---|" * len(wells),
    ]
    for method in METHODS:
        cells = [METHODS[method].label]
        for count in wells:
            wrong, reference = (
                np.concatenate([is_wrong(after[name][count]) for after in runs.values()])
                for name in (method, REFERENCE)
            )
            cells.append("1" if method == REFERENCE else share_of(wrong, reference))
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]
