"""The default search beside the best single surrogate and random search, in every search that was measured.

Nothing is run: the raw results of ``seqopt bench boss``, ``formulas``, ``zinc``, ``docking`` and, of the variants whose
default is a mixture, ``gb1`` are read. The best
single surrogate of a search is the one of the largest mean over all its runs, and is compared with the default by the
differences over the seeds that both have. To pick the best of several by their results favours it: how much is told
by how often the default would be behind if it were the equal of all of them, its results of each seed exchanged with
theirs at random. Each single surrogate, always taken, is held against the best of the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from seqopt.bench.records import Run
from seqopt.bench.runner import replace_section

FAR = 2.0
"""Standard errors from which a row is counted once more."""

EXCHANGES = 400
"""Random exchanges of the results of equals."""

ALWAYS = 10
"""Least rows of a single surrogate that is held against the best ones."""

NAMES = {
    "SSK-ga": "ssk",
    "seqopt, sub-sequences only": "ssk",
    "n-gram-ga": "ngrams",
    "seqopt, n-grams only": "ngrams",
    "motif-ga": "motifs",
    "helix-ga": "helices",
    "one-hot-ga": "one-hot",
}
"""Surrogates that benchmarks call otherwise."""

Values = Mapping[str, Mapping[int, float]]
"""What the runs of each method ended with, by seed; more is better."""


@dataclass(frozen=True)
class Search:
    """One row of a table of searches.

    Attributes:
        label: What is searched, and what the numbers are.
        runs: The same where rows are of the same runs, looked at in several ways.
        digits: Of the numbers.
        default: The default's name among the methods.
        singles: Those that differ from it by having one surrogate in place of several, with their labels.
        values: Of all methods; that of random search is ``"random"``.
    """

    label: str
    runs: str
    digits: int
    default: str
    singles: Mapping[str, str]
    values: Values


@dataclass(frozen=True)
class Difference:
    """Of the default and another method, paired by seed; above 0 where the default is better.

    Attributes:
        mean: Over the seeds that both have.
        error: Its standard error, `None` for a single seed.
        seeds: How many there are.
    """

    mean: float
    error: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """``"ahead"``, ``"level"`` (within one standard error) or ``"behind"``; ``"one seed"`` says nothing."""
        if self.error is None:
            return "one seed"
        if abs(self.mean) <= self.error:
            return "level"
        return "ahead" if self.mean > 0 else "behind"

    def text(self, digits: int) -> str:
        """Mean and error."""
        return f"{self.mean:.{digits}f}" + ("" if self.error is None else f" ± {self.error:.{digits}f}")


def difference(ours: Mapping[int, float], other: Mapping[int, float]) -> Difference | None:
    """Over the seeds that both have; `None` if there are none.

    Example:
        >>> difference({0: 2.0, 1: 5.0, 2: 9.0}, {0: 1.0, 1: 1.0}).text(2)
        '2.50 ± 1.50'
    """
    common = sorted(ours.keys() & other.keys())
    if not common:
        return None
    found = np.array([ours[seed] - other[seed] for seed in common])
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else None
    return Difference(float(found.mean()), error, len(found))


def best_single(search: Search) -> str | None:
    """The single surrogate of the largest mean over its runs."""
    there = [name for name in search.singles if search.values.get(name)]
    return max(there, key=lambda name: float(np.mean(list(search.values[name].values()))), default=None)


def against_best(search: Search, method: str) -> Difference | None:
    """Of a method and the best single surrogate; `None` if there is none, or no seed of both."""
    name = best_single(search)
    return None if name is None else difference(search.values[method], search.values[name])


def verdict_of(search: Search, method: str) -> str | None:
    """How a method stands against the best single surrogate; `None` if there is none, or no seed of both."""
    compared = against_best(search, method)
    return None if compared is None else compared.verdict


def is_off(compared: Difference | None, errors: float) -> bool:
    """Whether a method is behind by more than so many standard errors."""
    return compared is not None and compared.error is not None and compared.mean < -errors * compared.error


def behind_by_chance(found: Sequence[Search], rng: np.random.Generator, errors: float = 1.0) -> tuple[float, float]:
    """In how many rows the default would be behind the best single surrogate if it were the equal of them all.

    Args:
        found: The rows.
        rng: Exchanges the results of each seed among the default and the single surrogates that have it, in the same
            way in all rows of the same runs.
        errors: By how many standard errors, at least.

    Returns:
        Mean and standard deviation over `EXCHANGES` exchanges.
    """
    counts = np.zeros(EXCHANGES)
    for draw in range(EXCHANGES):
        orders: dict[tuple[str, int, int], list[int]] = {}
        for search in found:
            names = [name for name in (search.default, *search.singles) if search.values.get(name)]
            exchanged: dict[str, dict[int, float]] = {name: {} for name in names}
            for seed in sorted({seed for name in names for seed in search.values[name]}):
                having = [name for name in names if seed in search.values[name]]
                key = (search.runs, seed, len(having))
                if key not in orders:
                    orders[key] = rng.permutation(len(having)).tolist()
                for name, place in zip(having, orders[key], strict=True):
                    exchanged[name][seed] = search.values[having[place]][seed]
            counts[draw] += is_off(against_best(replace(search, values=exchanged), search.default), errors)
    return float(counts.mean()), float(counts.std())


def always(found: Sequence[Search]) -> str:
    """A row for each single surrogate of `ALWAYS` rows or more: in how many it is behind the best of the others.

    With and without a learned transform it counts as one, by the better of the two.
    """
    rows: dict[str, list[tuple[str | None, ...]]] = {}
    for search in found:
        by_name: dict[str, list[str]] = {}
        for method, label in search.singles.items():
            if search.values.get(method):
                plain = label.removesuffix(", transform learned")
                by_name.setdefault(NAMES.get(plain, plain), []).append(method)
        for name, methods in by_name.items():
            method = max(methods, key=lambda one: float(np.mean(list(search.values[one].values()))))
            others = {one: label for one, label in search.singles.items() if one not in methods}
            single = verdict_of(replace(search, singles=others), method), verdict_of(search, search.default)
            if single[0] is None:
                continue
            random = [
                difference(search.values[one], search.values.get("random", {})) for one in (method, search.default)
            ]
            rows.setdefault(name, []).append((*single, *(None if one is None else one.verdict for one in random)))
    lines = [
        "| always | rows | behind the best of the others | the default behind the best of all | behind random search | "
        "the default there |",
        "|---|---|---|---|---|---|",
    ]
    for name, verdicts in sorted(rows.items(), key=lambda row: -len(row[1])):
        if len(verdicts) >= ALWAYS:
            counts = [sum(verdict == "behind" for verdict in column) for column in zip(*verdicts, strict=True)]
            lines.append(f"| {name} | {len(verdicts)} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def searches(results: Path) -> Iterator[Search]:
    """All searches of which there are results of the default."""
    for read in (_of_boss, _of_formulas, _of_zinc, _of_docking, _of_variants):
        for search in read(results):
            if search.values.get(search.default):
                yield search


def _of_boss(results: Path) -> Iterator[Search]:
    from seqopt.bench.boss.methods import LEARNED, METHODS
    from seqopt.bench.boss.runs import read_runs
    from seqopt.bench.boss.scores import best_so_far
    from seqopt.bench.boss.tasks import TASKS

    alone = ("ssk-ga", "ngram-ga", "motif-ga", "helix-ga", "one-hot-ga", "codons-ga")
    named = [method for name in alone for method in (name, f"{name}{LEARNED}")]
    singles = {method: METHODS[method].label for method in named if method in METHODS}
    units = {"synthetic": ("occurrences", 2), "genes": ("kcal/mol", 2), "regression": ("log(1 + MSE)", 3)}
    for name, by_method in read_runs(results / "boss").items():
        task = TASKS[name]
        if task.part not in units:
            continue
        unit, digits = units[task.part]
        values = {
            method: {int(run["job"]["seed"]): task.sign * float(best_so_far(run)[-1]) for run in several}
            for method, several in by_method.items()
        }
        yield Search(f"{task.label}, {unit}", name, digits, "default", singles, values)


def _of_formulas(results: Path) -> Iterator[Search]:
    from seqopt.bench.formulas import METHODS, TASKS, r_squared, read_runs, training_error

    runs = read_runs(results / "formulas")
    singles = {name: METHODS[name][0] for name in ("seqopt-ssk", "seqopt-ngrams")}
    measures: dict[str, Callable[[Run], float]] = {
        "-log10 of the error on training points": lambda run: -training_error(run),
        "R2 on test points": r_squared,
    }
    for unit, measure in measures.items():
        for task in TASKS:
            values = {
                method: {int(run["job"]["seed"]): measure(run) for run in by_task.get(task, ())}
                for method, by_task in runs.items()
            }
            yield Search(f"{task}, {unit}", task, 3, "seqopt", singles, values)


def _of_zinc(results: Path) -> Iterator[Search]:
    from seqopt.bench.zinc import CHECKPOINTS, INITIAL, METHODS, best_so_far, read_runs

    runs = read_runs(results / "zinc")
    singles = {
        name: "ssk" if name == "full-gibbon-10-b" else METHODS[name].surrogate
        for name in (
            "full-gibbon-10-b",
            *(f"full-gibbon-10-{s}" for s in ("minmax", "ngrams", "tanimoto", "fragprints")),
            *(f"full-gibbon-10-{s}-auto" for s in ("minmax", "ngrams")),
        )
    }
    singles = {
        name: f"{label}, transform learned" if name.endswith("-auto") else label for name, label in singles.items()
    }
    for count in CHECKPOINTS:
        if count > INITIAL:
            values = {
                method: {int(run["job"]["seed"]): float(best_so_far(run)[count - 1]) for run in several}
                for method, several in runs.items()
            }
            label = f"penalised logP of ZINC, whole pool in batches of 10, after {count}"
            yield Search(label, "zinc", 2, "full-gibbon-10-ngrams+counts", singles, values)


def _of_docking(results: Path) -> Iterator[Search]:
    from seqopt.bench.docking import CHECKPOINTS, TOP, found_so_far, library, read_runs

    runs = read_runs(results / "docking")
    if not runs:
        return
    _, scores = library()
    names = ("ssk", "ngrams", "tanimoto", "minmax", "fragprints")
    for count in CHECKPOINTS:
        values = {
            method: {int(run["job"]["seed"]): 100 * float(found_so_far(run, scores)[count - 1]) for run in several}
            for method, several in runs.items()
        }
        label = f"docking, percent of the top {TOP} after {count}"
        yield Search(label, "docking", 1, "ngrams+counts-gibbon", {f"{name}-gibbon": name for name in names}, values)


def _of_variants(results: Path) -> Iterator[Search]:
    from seqopt.bench.gb1 import LIBRARIES, ROUNDS, best_so_far, read_runs, space_of

    singles = {f"{name}-gibbon": name for name in ("ssk", "one-hot", "hamming", "blosum62", "sites")}
    for library in ("variants", "variants-96"):
        runs = read_runs(results / library)
        if not runs:
            continue
        _, scores = space_of(library)
        plate = LIBRARIES[library].plate
        for count in range(1, 1 + ROUNDS):
            values = {
                method: {int(run["job"]["seed"]): float(best_so_far(run, scores, plate)[count]) for run in several}
                for method, several in runs.items()
            }
            label = f"variants of an enzyme, plates of {plate}, highest score after {plate * (1 + count)}"
            yield Search(label, library, 3, "mixture-gibbon", singles, values)


def table(found: Sequence[Search]) -> str:
    """A row for each search, and below it how often the default is behind."""
    lines = [
        "| search | best single surrogate | default less it | seeds | | default less random | seeds | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    verdicts: dict[str, list[str]] = {"the best single surrogate": [], "random search": []}
    for search in found:
        ours, name = search.values[search.default], best_single(search)
        cells = []
        for against, other in zip(verdicts, (name, "random"), strict=True):
            compared = difference(ours, search.values.get(other, {})) if other else None
            if compared is None:
                cells += ["", "", ""]
                continue
            verdicts[against].append(compared.verdict)
            shown = f"**{compared.verdict}**" if compared.verdict == "behind" else compared.verdict
            cells += [compared.text(search.digits), str(compared.seeds), shown]
        lines.append(f"| {search.label} | {search.singles.get(name or '', '')} | {' | '.join(cells)} |")
    lines.append("")
    for against, several in verdicts.items():
        counts = ", ".join(f"{word} {several.count(word)}" for word in ("ahead", "level", "behind", "one seed"))
        lines.append(f"Against {against}: {counts} of {len(several)} rows.")
    lines.append(
        "Differences are paired by seed, mean ± one standard error, and above 0 where the default is better, whatever "
        "the direction of the search. Level: within one standard error."
    )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table of what is there; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench standing", description=str(__doc__).split("\n\n")[0])
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="folder of all raw results (default results)"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    options = parser.parse_args(list(argv or []))
    found = list(searches(options.results))
    mean, deviation = behind_by_chance(found, np.random.default_rng(0))
    far = sum(is_off(against_best(search, search.default), FAR) for search in found)
    far_mean, far_deviation = behind_by_chance(found, np.random.default_rng(0), FAR)
    text = "\n\n".join(
        [
            table(found),
            "Were the default and all single surrogates of a search equals, their results of each seed exchanged at "
            f"random, it would be behind in {mean:.1f} ± {deviation:.1f} rows (mean and standard deviation of "
            f"{EXCHANGES} exchanges, the same one for all rows of the same runs), and by more than {FAR:g} standard "
            f"errors in {far_mean:.1f} ± {far_deviation:.1f}; it is in {far}.",
            always(found),
            f"Single surrogates of {ALWAYS} rows and more, which may be of few searches, looked at several times.",
        ]
    )
    print(text)
    replace_section(options.document, "standing", text)
