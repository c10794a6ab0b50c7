"""What is optimised: pattern counts, genes and formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.objectives import PATTERN_TASKS, MinimumFreeEnergy, PatternTask, published_regression

if TYPE_CHECKING:
    from seqopt.spaces import Space

Part = Literal["synthetic", "genes", "regression"]
Scores = Callable[[Sequence[str]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Task:
    """One optimisation problem with its budget.

    Attributes:
        part: Of the benchmark.
        label: Name in tables.
        domain: Its space, in words.
        initial: Random strings that every run begins with.
        steps: Evaluations after them.
        direction: ``"maximize"`` or ``"minimize"``.
        space: Builds the space.
        objective: Builds the objective from a seed, that of its noise.
        noiseless: The objective without noise, where it has noise.
        largest: The best possible value, where it is known.
        aim: Mean score to reach, in percent of ``largest``.
    """

    part: Part
    label: str
    domain: str
    initial: int
    steps: int
    direction: Literal["maximize", "minimize"]
    space: Callable[[], Space]
    objective: Callable[[int], Scores]
    noiseless: Scores | None = None
    largest: float | None = None
    aim: float | None = None

    @property
    def noisy(self) -> bool:
        """Whether evaluating a string again gives another value."""
        return self.noiseless is not None

    @property
    def sign(self) -> float:
        """1 if large values are good, -1 if small ones are."""
        return 1.0 if self.direction == "maximize" else -1.0


PROTEINS = {"peptide-10": 50, "thesis-60": 100}
"""Proteins of ``data/test_proteins.fasta`` whose genes are designed, and the evaluations after the initial ones.

The thesis prints no budget for its genes (section 4.6.2 and figure B.4.9 give curves only), so these are ours.
"""

_AIMS = (95.0, 95.0, 95.0, 95.0, 95.0, 85.0, 65.0)


def _strings(task: PatternTask) -> Space:
    from seqopt.spaces import StringSpace

    return StringSpace(task.alphabet, task.length)


def _genes(protein: str) -> Space:
    from seqopt.datasets.tables import read_table
    from seqopt.spaces import CodonSpace
    from seqopt.utils.resources import data_path

    table = read_table(data_path("test_proteins.fasta"))
    return CodonSpace(dict(zip(table.columns["name"], table.columns["string"], strict=True))[protein])


def _formulas() -> Space:
    from seqopt.spaces import GrammarSpace

    return GrammarSpace("arithmetic", 3, 20)


def _without_seed(build: Callable[[], Any], seed: int) -> Any:
    return build()


def _of_pattern(task: PatternTask, aim: float) -> Task:
    words = [f'"{task.pattern}"']
    if task.first is not None:
        words.append(f"in the first {task.first}")
    if task.noise_variance:
        words.append(f"+ N(0, {task.noise_variance:g})")
    if not task.overlapping:
        words.append("without overlaps")
    return Task(
        part="synthetic",
        label=" ".join(words),
        domain=f"{{{','.join(task.alphabet)}}}^{task.length}",
        initial=task.initial,
        steps=task.steps,
        direction="maximize",
        space=partial(_strings, task),
        objective=task.objective,
        noiseless=task.objective(0).noiseless if task.noise_variance else None,
        largest=task.largest,
        aim=aim,
    )


TASKS: Mapping[str, Task] = {
    **{
        # A question mark is not a character for a file name.
        name.replace("?", "x"): _of_pattern(task, aim)
        for (name, task), aim in zip(PATTERN_TASKS.items(), _AIMS, strict=True)
    },
    **{
        name: Task(
            part="genes",
            label=f"genes of `{name}`",
            domain=f"{name.rpartition('-')[2]} residues",
            initial=5,
            steps=steps,
            direction="minimize",
            space=partial(_genes, name),
            objective=partial(_without_seed, MinimumFreeEnergy),
        )
        for name, steps in PROTEINS.items()
    },
    "regression": Task(
        part="regression",
        label="1/3 + x + sin(x x)",
        domain="expressions of 3 to 20 terminals",
        initial=15,
        steps=25,
        direction="minimize",
        space=_formulas,
        objective=partial(_without_seed, published_regression),
    ),
}
"""All tasks by name: the rows of table 4.6.1 in its order, the genes, and the regression."""

SEEDS: Mapping[Part, int] = {"synthetic": 100, "genes": 15, "regression": 15}
"""Runs of each task and method, by part."""
