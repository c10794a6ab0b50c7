"""Hit confirmation on plates: how often does each rule name another string than the best one?

Simulated hits, 15 of them, of which a model expects something and knows the true values to 0.17 each; none has been
measured. In one design they are known to 0.3, and each was measured once on one of three earlier plates. A confirmation
has 60 wells on fresh plates. A well reads the true value, the offset of its plate, in one design an effect of the plate
on that string, and noise. Plates hold a control or two besides, whose true values are known to 0.05. The level of all,
hits and controls, is known to 0.22 only where there are offsets: these hide it from a model. After the wells the string
is named that the posterior mean, which knows all of these variances, says is the best, by whatever rule the wells were
shared out; an answer is wrong if another one is truly better.

All rules of a run see the same: the nth plate is shifted alike, and the nth measurement of a string has the same noise.
Hits, plates and noise of a run are the same in all designs, as far as these have them.

References:
    See `seqopt.strategies.arms.rules`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.conditions import measured_by
from seqopt.bench.confirm import percent_with_error
from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.strategies.arms import RULES, ArmPosterior, resolve_rule, simulate

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

RESULTS = Path(f"results/confirmplates{ENDING}")

BLOCK = 250
"""Simulations of one run, side by side."""

BLOCKS = 16

HITS = 15

WELLS = 60
"""Measurements of hits in all; a multiple of the wells of each design's plates."""

EXPECTED = 0.15
"""Standard deviation of what is expected of the hits."""

LEVEL = 0.22
"""Standard deviation of what the true values of hits and controls share, where plates have offsets."""

CONTROL = 0.05
"""Standard deviation of the true value of a control, beside the level."""

NOISE = 0.14
"""Standard deviation of the noise of a well."""


@dataclass(frozen=True)
class Design:
    """The plates of a confirmation.

    Attributes:
        label: Name in the tables.
        wells: Of hits on each plate.
        controls: Besides, one well for each.
        offset: Standard deviation of what all wells of a plate share.
        effects: Standard deviation of what a plate adds to each string by itself.
        known: Standard deviation of the true values of hits about what is expected, for each by itself.
        before: Plates of before, each with its share of the hits, once, and with the controls.
    """

    label: str
    wells: int = 15
    controls: int = 0
    offset: float = 0.59
    effects: float = 0.0
    known: float = 0.17
    before: int = 0


DESIGNS: Mapping[str, Design] = {
    "controls": Design("15 wells + 2 controls", controls=2),
    "bare": Design("15 wells"),
    "small": Design("4 wells + 1 control", wells=4, controls=1),
    "effects": Design("15 wells + 2 controls, effects of strings on plates of 0.14", controls=2, effects=0.14),
    "measured": Design("15 wells + 2 controls, hits measured once", controls=2, known=0.3, before=3),
    "no-plates": Design("no plates, 15 wells at a time", offset=0.0),
}
"""What is simulated."""

REFERENCE = "equal"

ORDER = (REFERENCE, *(name for name in RULES if name != REFERENCE))
"""Rules in the order of the tables."""


@dataclass(frozen=True)
class Job:
    """The simulations of one block, by all rules."""

    design: str
    block: int


@dataclass(frozen=True)
class Setup:
    """Hits and controls, in this order, of several simulations, and what their wells will read.

    Attributes:
        posterior: What is known of them.
        truth: Their true values, R x A.
        shifts: What each plate adds to each of them, plates x R x A.
        noise: Of their measurements, one after the other, R x A x n.
    """

    posterior: ArmPosterior
    truth: FloatArray
    shifts: FloatArray
    noise: FloatArray


def setup_of(design: Design, block: int, simulations: int = BLOCK) -> Setup:
    """The simulations of a block."""
    arms, plates = HITS + design.controls, WELLS // design.wells
    level = LEVEL if design.offset else 0.0
    # What designs have in common is drawn alike in all of them, so that their differences are due to the plates.
    hits, controls, offsets, effects, noises, before = (np.random.default_rng([block, 21, part]) for part in range(6))
    expected = EXPECTED * hits.standard_normal((simulations, HITS))
    shared = level * hits.standard_normal((simulations, 1))
    own = design.known * hits.standard_normal((simulations, HITS))
    of_controls = CONTROL * controls.standard_normal((simulations, design.controls))
    mean = np.hstack([expected, np.zeros((simulations, design.controls))])
    covariance = level**2 + np.diag(np.repeat([design.known**2, CONTROL**2], [HITS, design.controls]))
    plate = design.offset**2 + design.effects**2 * np.eye(arms)
    posterior = ArmPosterior.of(
        mean,
        np.repeat(covariance[None], simulations, axis=0),
        NOISE**2,
        plate=np.repeat(plate[None], simulations, axis=0) if plate.any() else None,
    )
    truth = mean + shared + np.hstack([own, of_controls])
    for number in range(design.before):
        posterior = posterior.on_fresh_plate()
        shift = design.offset * before.standard_normal((simulations, 1))
        values = truth + shift + design.effects * before.standard_normal((simulations, arms))
        values += NOISE * before.standard_normal((simulations, arms))
        for arm in (*range(number, HITS, design.before), *range(HITS, arms)):
            posterior = posterior.given(np.full(simulations, arm), values[:, arm])
    return Setup(
        posterior,
        truth,
        shifts=design.offset * offsets.standard_normal((plates, simulations, 1))
        + design.effects * effects.standard_normal((plates, simulations, arms)),
        noise=NOISE * noises.standard_normal((arms, simulations, WELLS)).swapaxes(0, 1),
    )


def confirm(design: Design, setup: Setup, rule: str, rng: np.random.Generator) -> FloatArray:
    """How much worse the named hit is than the best one in each simulation, R."""
    rows = np.arange(len(setup.truth))
    measured = count()

    def measure(arms: IntArray, times: IntArray) -> FloatArray:
        plate = setup.shifts[next(measured) // (design.wells + design.controls)]
        found: FloatArray = setup.truth[rows, arms] + plate[rows, arms] + setup.noise[rows, arms, times]
        return found

    trace = simulate(
        setup.posterior,
        resolve_rule(rule),
        measure,
        wells=WELLS,
        batch=design.wells,
        rng=rng,
        controls=design.controls,
    )
    hits = setup.truth[:, :HITS]
    regret: FloatArray = hits.max(1) - hits[rows, trace.recommended[-1]]
    return regret


def work(job: Job) -> dict[str, Any]:
    """The simulations of one block: by each rule, which answers are wrong (1), in their order, and the mean regret."""
    started = time.perf_counter()
    design = DESIGNS[job.design]
    setup = setup_of(design, job.block, BLOCK)
    wrong: dict[str, str] = {}
    regret: dict[str, float] = {}
    for rule in ORDER:
        found = confirm(design, setup, rule, np.random.default_rng([job.block, 22]))
        wrong[rule] = "".join("1" if one > 0.0 else "0" for one in found)
        regret[rule] = round(float(found.mean()), 6)
    return {
        "job": asdict(job),
        "wrong": wrong,
        "regret": regret,
        "seconds": round(time.perf_counter() - started, 2),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench confirmplates", description=str(__doc__).split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS), help="default: all")
    parser.add_argument(
        "--blocks",
        type=int,
        default=BLOCKS,
        help=f"runs of {BLOCK} simulations, with seeds 0, 1, ... (default {BLOCKS} for each design)",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"file of the raw results (default {RESULTS})")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        run_jobs(
            [Job(design, block) for block in range(options.blocks) for design in options.designs],
            lambda job: options.results,
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=header(list(argv or []), "confirmplates"),
        )
    text = tables(read_records(options.results, ["job"]))
    print(text)
    replace_section(options.document, "confirmplates", text)


def tables(runs: Sequence[Mapping[str, Any]]) -> str:
    """Wrong answers, and their differences to equal replication, by rule and design; what measured them."""
    found: dict[str, dict[str, FloatArray]] = {}
    for name in DESIGNS:
        own = sorted((run for run in runs if run["job"]["design"] == name), key=lambda run: int(run["job"]["block"]))
        if own:
            found[name] = {
                rule: np.array([float(one) for run in own for one in run["wrong"][rule]]) for rule in own[0]["wrong"]
            }
    if not found:
        return "No run is stored."
    heads = " | ".join(f"{DESIGNS[name].label} (of {len(rules[REFERENCE]):,})" for name, rules in found.items())
    line = "|---|" + "---|" * len(found)
    lines = [f"| wrong in % | {heads} |", line]
    for rule in ORDER:
        lines.append(f"| `{rule}` | {' | '.join(percent_with_error(rules[rule]) for rules in found.values())} |")
    lines += ["", f"| wrong in %, less those of `{REFERENCE}` | {heads} |", line]
    for rule in ORDER[1:]:
        cells = [difference_with_error(rules[rule], rules[REFERENCE]) for rules in found.values()]
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    lines += [
        "",
        f"Wrong: how often another one of the {HITS} hits is truly better than the one that is named after {WELLS} "
        "wells, ± one standard error. Differences are paired: all rules see the same plates and the same noise.",
        "",
        measured_by((run["record"] for run in runs), ["seqopt", "python", "numpy"]),
    ]
    return "\n".join(lines)


def difference_with_error(wrong: FloatArray, others: FloatArray) -> str:
    """Difference of two shares of the same simulations in percent, with its standard error.

    Example:
        >>> difference_with_error(np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))
        '-25.0 ± 25.0'
    """
    difference = wrong - others
    return f"{100 * difference.mean():+.1f} ± {100 * difference.std(ddof=1) / np.sqrt(len(difference)):.1f}"
