"""The exact part of ``seqopt genes``: where the best genes of a protein can be known, they are computed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from seqopt.cli.gene_options import GeneFiles
from seqopt.cli.running import Plan, command_line, console, note, print_best
from seqopt.datasets import Protein
from seqopt.errors import IntractableError, SeqoptError
from seqopt.evaluation import Direction
from seqopt.objectives import Objective, WeightedSum, exact_score
from seqopt.spaces import CodonSpace, ExactGenes, ExactRanking

LONGEST_SHOWN = 54
"""Bases of a gene that the terminal shows."""

MOST_SHOWN = 5
"""Genes that the terminal shows."""

EXACT = "exact"
"""What the settings of a run call its proof."""


@dataclass(frozen=True)
class Solved:
    """The best genes of a protein.

    Attributes:
        exact: What knows them.
        ranking: They themselves.
        seconds: What it took.
    """

    exact: ExactGenes
    ranking: ExactRanking
    seconds: float


def solved(objective: Objective, goal: Direction, space: CodonSpace, best: int) -> Solved | None:
    """The ``best`` genes; `None` where the objective can only be searched for, which is said if it is a surprise."""
    started = time.perf_counter()
    score = exact_score(objective, space, goal)
    if score is None:
        return None
    try:
        with console.status("computing the best genes"):
            exact = ExactGenes(space, score)
            ranking = exact.best(best)
    except IntractableError as error:
        note(f"no exact optimum: {error}; searching instead")
        return None
    return Solved(exact, ranking, time.perf_counter() - started)


def made_exactly(folder: Path) -> bool:
    """Whether a folder holds genes that were computed, and not searched for."""
    from seqopt.report.results import read_run

    try:
        return EXACT in read_run(folder).settings
    except (SeqoptError, OSError):
        return False


def write_solved(
    found: Solved,
    objective: Objective,
    protein: Protein,
    space: CodonSpace,
    plan: Plan,
    goal: Direction,
    folder: Path,
    *,
    best: int,
    files: GeneFiles,
) -> None:
    """Show the best genes, and write them as a run that has measured them."""
    ranking = found.ranking
    genes = [one.gene for one in ranking.genes]
    shown = genes[:MOST_SHOWN]
    within = "" if ranking.tolerance < 1e-9 else f" (its sum over codons to within {ranking.tolerance:.1g})"
    which = "that keeps to the constraints " if space.kept_to else ""
    proof = f"no gene {which}is better, by {ranking.method}{within}"
    console.print(
        f"exact: the {len(genes)} best by {escape(named(objective))}, {goal[:-1]}ed, in {found.seconds:.2g} s; "
        f"{proof}. --search searches instead"
    )
    if len(genes) < best:
        note(f"there are no more than {len(genes):,} genes")
    total = objective.function if isinstance(objective.function, WeightedSum) else None
    values = objective(shown)[:, None] if total is None else total.rows(shown)
    terms = () if total is None else total.names
    print_best(
        f"Best genes by {named(objective)}",
        {"rank": "right", "value": "right", **dict.fromkeys(terms, "right"), "GC": "right", "gene": "left"},
        [
            (
                str(rank),
                *(f"{value:,.5g}" for value in row),
                f"{(gene.count('G') + gene.count('C')) / len(gene):.2f}",
                shown_gene(gene.replace("T", "U") if files.rna else gene),
            )
            for rank, (gene, row) in enumerate(zip(shown, values.tolist(), strict=True), start=1)
        ],
    )
    worst, best_value = objective([genes[-1], genes[0]]).tolist()
    if len(genes) > 1 and math.isclose(worst, best_value, rel_tol=1e-12, abs_tol=1e-12):
        note(f"the {len(genes)} genes are equally good by {objective.name}: there may be more of them")
    with console.status("writing the files"), _silent_models():
        from seqopt.api import maximize
        from seqopt.report.exports import GENES_CSV, GENES_FASTA
        from seqopt.strategies import ExactStrategy

        strategy = ExactStrategy(objective.name, goal)
        strategy.remember(space, found.exact, ranking)
        maximize(
            objective,
            space,
            strategy=strategy,
            budget=0,
            initial=len(genes),
            batch_size=max(len(genes), 2),
            seed=plan.seed,
            workers=plan.workers,
            timeout=plan.timeout,
            chunk_size=plan.chunk_size,
            run_folder=folder,
            resume=plan.resume,
            direction=goal,
            settings={
                "objective_description": f"{objective.description}. The first gene is optimal: {proof}",
                "unit": objective.unit,
                "command": command_line(),
                "subject": f"of genes for {protein.name}",
                EXACT: {"proven": True, "method": ranking.method},
            },
        )
        table = files.write(folder, protein.name, space)
    console.print(
        f"\nAll {len(table)}, the best first: {escape(str(folder / GENES_FASTA))} and {GENES_CSV} there; "
        f"open {escape(str(folder / 'report.html'))} to look at them."
    )


@contextmanager
def _silent_models() -> Iterator[None]:
    """Nothing is learned here: models only draw the report, and need not say that genes are equally good."""
    models = logging.getLogger("seqopt.models")
    level = models.level
    models.setLevel(logging.ERROR)
    try:
        yield
    finally:
        models.setLevel(level)


def shown_gene(gene: str) -> str:
    """A gene as far as the terminal shows it."""
    return gene if len(gene) <= LONGEST_SHOWN else f"{gene[:36]}... ({len(gene):,} bases)"


def named(objective: Objective) -> str:
    """An objective with its unit."""
    return f"{objective.name} ({objective.unit})" if objective.unit else objective.name
