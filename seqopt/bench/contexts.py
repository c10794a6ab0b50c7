"""Do nine of ten offsets of plates, and correlations of cheap and costly measurements, lie in their intervals?

Values at random strings of DNA are drawn from a Gaussian process whose parameters are known: an n-gram kernel, scaled
so that values of different strings have a variance of 1 in expectation, for what all ways to measure have in common,
and noise of variance 0.1.

- ``plates``: each plate adds a function of its own, of variance 0.05, and an offset of variance 0.3. Each string is
  measured on one plate; where there are controls, two strings are measured on all of them. The true offset of a plate
  is the mean over its strings of what the plate adds, as pages define it.
- ``levels``: the cheap level is r times the costly one plus an independent function, so that both have variance 1 and
  correlation r, and has an offset of 0.5. Some strings are measured both ways, and as many again cheaply only.

The models are the default ones of searches and campaigns over the same contexts, with n-grams, and the intervals those
of pages, `seqopt.models.context_facts.context_facts`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING
from seqopt.bench.runner import header, run_into_section, with_error

Numbers = npt.NDArray[np.float64]

NOISE = 0.1
"""Variance of measurements."""

LOCAL, OFFSETS = 0.05, 0.3
"""Variances of what a plate adds to each string, and to all of them."""

CONTROLS = 2
"""Strings that are on every plate, where there are any."""

CHEAP_OFFSET = 0.5
"""By how much a cheap value lies above what it tells of the costly one."""

REPEATS = 40


@dataclass(frozen=True)
class Job:
    """One data set.

    Attributes:
        task: ``"plates"`` or ``"levels"``.
        groups: Plates; 2 for levels.
        strings: On each plate, or measured both ways.
        truth: Controls on each plate, or the true correlation.
        seed: Of strings, values and fit.
    """

    task: str
    groups: int
    strings: int
    truth: float
    seed: int


KINDS = [
    *(("plates", groups, strings, float(controls)) for groups in (2, 5) for strings in (8, 24) for controls in (0, 2)),
    *(("levels", 2, strings, correlation) for correlation in (0.0, 0.5, 0.9) for strings in (4, 8, 20, 60)),
]
"""Task, groups, strings and truth of the rows."""


def work(job: Job) -> dict[str, Any]:
    """What is true of one data set, and the intervals that a page would show."""
    import torch

    from seqopt.data import Contexts, Query
    from seqopt.models.context_facts import context_facts
    from seqopt.models.contexts import coregionalized, hierarchical
    from seqopt.spaces import StringSpace

    torch.set_num_threads(1)
    rng = np.random.default_rng([job.seed, job.groups, job.strings, round(10 * job.truth)])
    space = StringSpace("ACGT", 20)
    if job.task == "plates":
        contexts = Contexts.of_plates(known=[f"P{number + 1}" for number in range(job.groups)])
    else:
        contexts = Contexts.of_levels("fidelity", {"cheap": 0.1, "costly": 1.0}, target="costly")
    queries, values, truths = (_plates if job.task == "plates" else _levels)(job, rng)
    surrogate: Any = (hierarchical if job.task == "plates" else coregionalized)(space, contexts, "ngrams")
    started = time.perf_counter()
    surrogate.fit(queries, values, rng=rng)
    measured: dict[Any, list[str]] = {}
    for query in queries:
        if isinstance(query, Query) and query.context:
            measured.setdefault(query.context, []).append(query.key)
    facts = context_facts(surrogate, measured, contexts.target)
    seconds = time.perf_counter() - started
    found = []
    for context, truth in truths.items():
        one = facts[context]
        if job.task == "plates":
            middle, low, high = one.offset, one.offset_low, one.offset_high
        else:
            middle, low, high = one.correlation, one.correlation_low, one.correlation_high
        found.append({"true": truth, "estimate": middle, "low": low, "high": high})
    return {"job": asdict(job), "found": found, "seconds": round(seconds, 3)}


def _plates(job: Job, rng: np.random.Generator) -> tuple[list[Any], Numbers, dict[Any, float]]:
    from seqopt.data import Query, as_context

    controls = int(job.truth)
    strings = _strings(controls + job.groups * (job.strings - controls), rng)
    shared, rest = strings[:controls], strings[controls:]
    on = [shared + rest[place :: job.groups] for place in range(job.groups)]
    common = dict(zip(strings, _function(strings, rng), strict=True))
    queries: list[Any] = []
    values: list[float] = []
    truths = {}
    for place, own in enumerate(on):
        context = as_context({"plate": f"P{place + 1}"})
        added = np.sqrt(OFFSETS) * rng.standard_normal() + np.sqrt(LOCAL) * _function(own, rng)
        truths[context] = float(added.mean())
        noise = np.sqrt(NOISE) * rng.standard_normal(len(own))
        queries += [Query(string, context) for string in own]
        values += [common[string] + extra for string, extra in zip(own, added + noise, strict=True)]
    return queries, np.array(values), truths


def _levels(job: Job, rng: np.random.Generator) -> tuple[list[Any], Numbers, dict[Any, float]]:
    from seqopt.data import Query, as_context

    strings = _strings(2 * job.strings, rng)
    costly = _function(strings, rng)
    cheap = job.truth * costly + np.sqrt(1.0 - job.truth**2) * _function(strings, rng) + CHEAP_OFFSET
    contexts = [as_context({"fidelity": level}) for level in ("cheap", "costly")]
    queries = [Query(string, contexts[0]) for string in strings]
    queries += [Query(string, contexts[1]) for string in strings[: job.strings]]
    values = np.concatenate([cheap, costly[: job.strings]])
    return queries, values + np.sqrt(NOISE) * rng.standard_normal(len(values)), {contexts[0]: job.truth}


def _strings(number: int, rng: np.random.Generator) -> list[str]:
    """Members of families of DNA, as in `seqopt.bench.intervals`, all different and in random order."""
    from seqopt.bench.intervals import random_dna

    return [str(string) for string in rng.permutation(random_dna(rng))[:number]]


def _function(strings: Sequence[str], rng: np.random.Generator) -> Numbers:
    """A draw of the process, of which different strings have an expected sample variance of 1."""
    from seqopt.bench.intervals import gram
    from seqopt.models import SURROGATES

    built: Any = SURROGATES["ngrams"].build()
    covariance = gram(built, strings)
    count = len(strings)
    covariance /= (np.trace(covariance) - covariance.sum() / count) / (count - 1)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    drawn: Numbers = vectors @ (np.sqrt(eigenvalues.clip(min=0.0)) * rng.standard_normal(count))
    return drawn


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Shares within the 90 % intervals with standard errors over data sets, widths, and mean errors."""
    lines = [
        "| what | plates | strings | truth | data sets | within 90 %, per cent | width | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, groups, strings, truth in KINDS:
        kind = {"task": task, "groups": groups, "strings": strings, "truth": truth}
        own = [run["found"] for run in runs if {**run["job"], "seed": 0} == {**kind, "seed": 0}]
        if not own:
            continue
        shares = [100 * np.mean([one["low"] <= one["true"] <= one["high"] for one in found]) for found in own]
        width = np.mean([one["high"] - one["low"] for found in own for one in found])
        error = np.sqrt(np.mean([(one["estimate"] - one["true"]) ** 2 for found in own for one in found]))
        inside, what = with_error(shares, 1), "offset" if task == "plates" else "correlation"
        number = groups if task == "plates" else ""
        said = f"{truth:.0f} controls" if task == "plates" else f"{truth:g}"
        lines.append(f"| {what} | {number} | {strings} | {said} | {len(own)} | {inside} | {width:.2f} | {error:.2f} |")
    lines.append(
        "\nStrings: on each plate, its controls included, or measured both ways, with as many again cheaply only. "
        "Width: mean width of the intervals; error: root mean square of the estimates' errors; both in units in which "
        "values of different strings have variance 1."
    )
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(prog="seqopt bench contexts", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=REPEATS, help="data sets of each kind (default %(default)s)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results") / f"contexts{ENDING}",
        help="file of the raw results, a JSON object a line (default %(default)s)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    options = parser.parse_args(list(argv))
    record = header(argv, "contexts")
    jobs = [Job(*kind, seed) for kind in KINDS for seed in range(options.repeats)]
    print(f"seeds: 0 to {options.repeats - 1}", flush=True)
    run_into_section(
        "contexts",
        jobs,
        work,
        table,
        results=options.results,
        document=options.document,
        processes=options.jobs,
        record=record,
        every=40,
    )
