"""Tables of runs, and their sections in a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.bench.boss.methods import METHODS, OURS, REFERENCE, untransformed
from seqopt.bench.boss.molecules import rank_of
from seqopt.bench.boss.plots import WORTH, plot
from seqopt.bench.boss.published import PRINTED, PUBLISHED, SCALED_BY_FOUR
from seqopt.bench.boss.scores import (
    FOUND_SHARE,
    WITHIN,
    Verdict,
    among_all,
    best_so_far,
    chance,
    final,
    formulas,
    judge,
    paired,
    percent,
    recommended,
    score,
    seconds,
)
from seqopt.bench.boss.tasks import TASKS, Part
from seqopt.bench.conditions import measured_by
from seqopt.bench.kernel.report import Table
from seqopt.bench.records import Run
from seqopt.bench.runner import replace_section

Runs = Mapping[str, Mapping[str, Sequence[Run]]]
"""By task and method."""

Energies = Mapping[str, npt.NDArray[np.float64]]
"""Of all genes, by task, where they have been computed."""

Foldings = Mapping[str, Run]
"""Of the protein of a task what `seqopt bench folding` has stored, where it has been folded exactly."""

_SEEDS = "runs"
_PAIRED = f"{METHODS[REFERENCE].label} less this, paired"
_SECONDS = "s choosing"


def write_document(document: Path, runs: Runs, energies: Energies, foldings: Foldings) -> None:
    """Put the tables and the plot of each part into its section ``boss-PART`` of a Markdown document."""
    for part in WORTH:
        if of_part := _of_part(runs, part):
            picture = document.parent / "img" / f"boss-{part}.png"
            plot(of_part, part, picture)
            blocks = [
                measured_by(run["record"] for run in _each(of_part)),
                *(table.to_markdown() for table in tables(of_part, energies, foldings)),
            ]
            what = WORTH[part]
            blocks.append(f"![{what[0].upper()}{what[1:]} against steps](img/{picture.name})")
            replace_section(document, f"boss-{part}", "\n\n".join(blocks))


def tables(runs: Runs, energies: Energies, foldings: Foldings) -> list[Table]:
    """All tables of ``runs``."""
    found = []
    if synthetic := _of_part(runs, "synthetic"):
        found += [verdicts(synthetic), counts(synthetic)]
    found += [genes(name, runs[name], energies.get(name), foldings.get(name)) for name in _of_part(runs, "genes")]
    found += [regression(name, runs[name]) for name in _of_part(runs, "regression")]
    found += [molecules(runs[name]) for name in _of_part(runs, "molecules")]
    return [table for table in found if table.rows]


def verdicts(runs: Runs) -> Table:
    """The default and SSK-ga on each synthetic task, the published score and the aim."""
    rows = []
    for method in OURS:
        for name, by_method in runs.items():
            if method in by_method:
                several = by_method[method]
                verdict = judge(name, final(several))
                rows.append((METHODS[method].label, *_task_cells(name, several), *_verdict_cells(verdict)))
    return Table(
        "The scores of table 4.6.1: percent of the largest count",
        (
            "method",
            "objective",
            "space",
            "steps",
            _SEEDS,
            "ours",
            "published",
            "at least",
            "reached",
            "aim",
            "aim reached",
        ),
        rows,
        "At least: the published mean less 2 sqrt(SE^2 + published SE^2), a published SE counting at least 1. "
        f"The published score of {TASKS[SCALED_BY_FOUR].label} appears to be out of 4 occurrences instead of 5; it is "
        "compared in occurrences.",
    )


def counts(runs: Runs) -> Table:
    """All methods on each synthetic task."""
    rows = []
    for name, by_method in runs.items():
        for method, several in by_method.items():
            published = PUBLISHED[name].get(PRINTED.get(method, method))
            rows.append(
                (
                    *_score_cells(name, METHODS[method].label, several, final(several)),
                    published.text(0, 1) if published else "",
                    _difference(by_method, method, 2),
                    _time(several),
                )
            )
            if TASKS[name].noisy:
                label = f"{METHODS[method].label}, largest posterior mean"
                rows.append((*_score_cells(name, label, several, recommended(several)), "", "", ""))
    return Table(
        "All methods",
        (
            "objective",
            "method",
            _SEEDS,
            "% of the largest",
            "count",
            "at the largest",
            "published, %",
            _PAIRED,
            _SECONDS,
        ),
        rows,
        "Mean and one standard error over runs; all methods of one seed begin with the same strings. "
        f"At the largest: runs that found the largest count. {_PAIRED}: difference in counts. {_SECONDS}: median over "
        "runs of the processor time spent on all suggestions of a run, one thread. With noise, the noiseless count of "
        "the best string observed is given, as published, and that of the evaluated string with the largest posterior "
        "mean.",
    )


def genes(
    name: str,
    by_method: Mapping[str, Sequence[Run]],
    energies: npt.NDArray[np.float64] | None,
    folding: Run | None = None,
) -> Table:
    """The least energy after so many evaluations; where all genes are known, how often a best one was found.

    Where the protein has been folded exactly, the energy of that gene stands in a row of its own.
    """
    evaluations = _checkpoints(name, by_method)
    headings = ("method", _SEEDS, *map(str, evaluations), _PAIRED, _SECONDS)
    note = f"Evaluations include the {TASKS[name].initial} initial genes. Less is better."
    if energies is not None:
        headings += (f"best found within {WITHIN}", "rank of the best")
        best = int((energies < energies.min() + 0.005).sum())
        note += (
            f" {best} of all {len(energies):,} genes have the least energy, {energies.min():.2f} kcal/mol; {WITHIN} "
            f"random genes hold one of them once in {1 / chance(len(energies), best, WITHIN):.0f} runs. Rank: median "
            f"(range) over runs after {WITHIN} evaluations; 1 is one of the best. Aim: found in {FOUND_SHARE:.0%} of "
            "the runs."
        )
    rows = []
    for method, several in by_method.items():
        row = (*_curve_cells(by_method, method, evaluations, 2), _time(several))
        if energies is not None:
            found = among_all(several, energies)
            verdict = ""
            if method in OURS:
                verdict = f", aim {'' if found.found >= FOUND_SHARE * found.runs else 'not '}reached"
            ranks = f"{np.median(found.ranks):,.0f} ({found.ranks.min():,}-{found.ranks.max():,})"
            row += (f"{found.found} of {found.runs}{verdict}", ranks)
        rows.append(row)
    if folding is not None:
        row = ("exact folding", "", *("" for _ in evaluations), "", f"{folding['seconds']:.1f}")
        row = (*row[: 1 + len(evaluations)], f"{_as_scored(folding):.2f}", *row[2 + len(evaluations) :])
        rows.append((*row, *("" for _ in headings[len(row) :])))
        note += (
            f" Exact folding: without dangling ends no gene has less than {folding['energy']:.2f}; the row has the "
            "energy of the gene of that as it is scored here"
            + (", refined codon by codon" if "refined" in folding else "")
            + ". With dangling ends others might have less."
        )
    return Table(
        f"Least minimum free energy of {TASKS[name].label}, kcal/mol, after so many evaluations", headings, rows, note
    )


def _as_scored(folding: Run) -> float:
    return float(folding["refined"]["mfe"] if "refined" in folding else folding["mfe"])


def regression(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """The least error after so many evaluations, and the best formula of all runs."""
    evaluations = _checkpoints(name, by_method)
    latent = ""
    if any("vae" in method for method in by_method):
        latent = (
            f" Latent points that decode to nothing count as evaluations: {_undecodable(by_method)}. Searches in "
            "latent space as published, and those of random points, begin with what an autoencoder makes of the "
            "initial expressions."
        )
    rows = []
    for method, several in by_method.items():
        formula, error = next(iter(formulas(several).items()))
        rows.append(
            (
                *_curve_cells(by_method, method, evaluations, 3),
                f"{np.median(final(several)):.3f}",
                f"`{formula}` ({error:.3f})",
                _time(several),
            )
        )
    return Table(
        f"Least error log(1 + MSE) of expressions for {TASKS[name].label} after so many evaluations",
        ("method", _SEEDS, *map(str, evaluations), _PAIRED, "median at the end", "best of all runs", _SECONDS),
        rows,
        f"Evaluations include the {TASKS[name].initial} initial expressions. Less is better.{latent}",
    )


def molecules(by_method: Mapping[str, Sequence[Run]]) -> Table:
    """The best score after so many evaluations, and its rank among all molecules of ZINC."""
    evaluations = _checkpoints("molecules", by_method)
    rows = []
    for method, several in by_method.items():
        ranks = [rank_of(worth) for worth in final(several)]
        cells = _curve_cells(by_method, method, evaluations, 2, "boss")
        rows.append((*cells, f"{np.median(ranks):,.0f} ({min(ranks):,}-{max(ranks):,})", _time(several)))
    return Table(
        f"Best {TASKS['molecules'].label} after so many evaluations",
        ("method", _SEEDS, *map(str, evaluations), "BOSS less this, paired", "rank in ZINC", _SECONDS),
        rows,
        f"Evaluations include the {TASKS['molecules'].initial} initial molecules. In each step a method sees 100 "
        "molecules, the same ones as the others of its seed. Rank: median (range) over runs, 1 being the best of all.",
    )


def _undecodable(by_method: Mapping[str, Sequence[Run]]) -> str:
    found = [
        f"{sum(len(run.get('undecodable', ())) for run in several)} in {len(several)} runs of {METHODS[name].label}"
        for name, several in by_method.items()
        if "vae" in name
    ]
    return ", ".join(found) or "no run has any"


def _of_part(runs: Runs, part: Part) -> Runs:
    return {name: _told_apart(by_method) for name, by_method in runs.items() if TASKS[name].part == part}


def _told_apart(by_method: Mapping[str, Sequence[Run]]) -> dict[str, Sequence[Run]]:
    """Without methods of a learned transform where there are as many runs or more without it."""
    return {
        name: several
        for name, several in by_method.items()
        if untransformed(name) == name or len(by_method.get(untransformed(name), ())) < len(several)
    }


def _each(runs: Runs) -> Iterable[Run]:
    return (run for by_method in runs.values() for several in by_method.values() for run in several)


def _steps(runs: Sequence[Run]) -> int:
    return len(runs[0]["chosen"]) + sum(place >= 0 for place in runs[0].get("undecodable", ()))


def _task_cells(name: str, runs: Sequence[Run]) -> tuple[str, ...]:
    return TASKS[name].label, TASKS[name].domain, str(_steps(runs)), str(len(runs))


def _verdict_cells(verdict: Verdict) -> tuple[str, ...]:
    ours, published, least = verdict.percent.text(1), verdict.published.text(0, 1), f"{verdict.least:.1f}"
    if verdict.unit != "%":
        ours += f" ({verdict.ours.text(2)} {verdict.unit})"
        printed = PUBLISHED[SCALED_BY_FOUR]["ssk-ga"].text(0, 1)
        published = f"{printed} ({verdict.published.text(1, 2)} {verdict.unit})"
        least = f"{verdict.least:.2f} {verdict.unit}"
    return ours, published, least, _yes(verdict.agrees), f"{verdict.aim:g}", _yes(verdict.reaches_aim)


def _score_cells(name: str, label: str, runs: Sequence[Run], worth: npt.NDArray[np.float64]) -> tuple[str, ...]:
    task = TASKS[name]
    share, count = score(percent(worth, task)).text(1), f"{score(worth).text(2)} of {task.largest:g}"
    return task.label, label, str(len(runs)), share, count, f"{(worth == task.largest).sum()} of {len(runs)}"


def _checkpoints(name: str, by_method: Mapping[str, Sequence[Run]]) -> list[int]:
    """Numbers of evaluations: the initial ones, round numbers, and all."""
    initial = TASKS[name].initial
    total = initial + _steps(next(iter(by_method.values())))
    spacing = 10 if total <= 60 else 25
    return [initial, *(n for n in range(spacing, total, spacing) if n > initial), total]


def _curve_cells(
    by_method: Mapping[str, Sequence[Run]],
    method: str,
    evaluations: Sequence[int],
    digits: int,
    against: str = REFERENCE,
) -> tuple[str, ...]:
    curves = np.stack([best_so_far(run) for run in by_method[method]])
    means = (score(curves[:, n - 1]).text(digits) for n in evaluations)
    return METHODS[method].label, str(len(curves)), *means, _difference(by_method, method, digits, against)


def _difference(by_method: Mapping[str, Sequence[Run]], method: str, digits: int, against: str = REFERENCE) -> str:
    if method == against or against not in by_method:
        return ""
    difference = paired(by_method[against], by_method[method])
    return difference.text(digits) if difference else ""


def _time(runs: Sequence[Run]) -> str:
    spent = seconds(runs)
    return f"{spent:.0f}" if spent >= 10 else f"{spent:.1f}"


def _yes(condition: bool) -> str:
    return "yes" if condition else "no"
