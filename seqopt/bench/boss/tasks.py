"""What is optimised: pattern counts, genes, formulas and molecules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.objectives import PATTERN_TASKS, ExpressionError, MinimumFreeEnergy, PatternTask, published_regression

if TYPE_CHECKING:
    from seqopt.spaces import Space

Part = Literal["synthetic", "genes", "regression", "molecules"]
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
        seeded_space: Builds the space of a seed, where each has its own.
        seeds: Runs of each method; by default `SEEDS` of the part.
        methods: Names of the methods that run unless others are named; by default all of the part.
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
    seeded_space: Callable[[int], Space] | None = None
    seeds: int | None = None
    methods: tuple[str, ...] | None = None

    def space_of(self, seed: int) -> Space:
        """The space of a seed."""
        return self.space() if self.seeded_space is None else self.seeded_space(seed)

    @property
    def runs(self) -> int:
        """Runs of each method."""
        return SEEDS[self.part] if self.seeds is None else self.seeds

    @property
    def noisy(self) -> bool:
        """Whether evaluating a string again gives another value."""
        return self.noiseless is not None

    @property
    def sign(self) -> float:
        """1 if large values are good, -1 if small ones are."""
        return 1.0 if self.direction == "maximize" else -1.0


PROTEINS = {"peptide-10": 50, "thesis-60": 100, "thesis-121": 100, "abl1-1130": 10}
"""Proteins of ``data/test_proteins.fasta`` whose genes are designed, and the evaluations after the initial ones.

The thesis prints no budget for its genes (section 4.6.2 and figure B.4.9 give curves only), so these are ours.
"""

PARTITIONS = {"peptide-10": 2, "thesis-60": 4, "thesis-121": 8, "abl1-1130": 75}
"""Parts m of a gene of codons. The thesis does not print them: 2 is that of the authors' notebook for the short one,
and the others make parts of about 15 codons."""

LONG = "abl1-1130"
"""The protein of which a few runs show that it can be done, and what a step costs."""

_AIMS = (95.0, 95.0, 95.0, 95.0, 95.0, 90.0, 75.0)


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


def _molecules(seed: int) -> Space:
    from seqopt.bench.boss.molecules import candidates

    return candidates(seed)


def _scores_of_molecules(seed: int) -> Scores:
    from seqopt.bench.boss.molecules import penalised_logp

    return penalised_logp


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


def _quadratic(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x * x / 3 - 2 * x + 1


def _sine(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 2 * np.sin(x) + x / 3


def _exponential(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.exp(np.sin(x)) + 1 / 3


FORMULAS = {"x*x/3-2*x+1": _quadratic, "2*sin(x)+x/3": _sine, "exp(sin(x))+1/3": _exponential}
"""Targets of symbolic regression besides the published one, on the same points."""


def _formula_error(index: int) -> Scores:
    x = np.linspace(-10, 10, 1000)
    return ExpressionError(x, FORMULAS[list(FORMULAS)[index]](x))


_REGRESSION = Task(
    part="regression",
    label="1/3 + x + sin(x x)",
    domain="expressions of 3 to 20 terminals",
    initial=15,
    steps=25,
    direction="minimize",
    space=_formulas,
    objective=partial(_without_seed, published_regression),
)

_FEW: dict[str, Any] = {"seeds": 3, "methods": ("boss-parts", "boss-bases-parts", "random")}

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
            **_FEW if name == LONG else {},
        )
        for name, steps in PROTEINS.items()
    },
    "regression": _REGRESSION,
    **{
        f"formula-{number}": replace(
            _REGRESSION,
            label=label,
            objective=partial(_without_seed, partial(_formula_error, number - 1)),
            methods=("default", "ssk-ga", "ngram-ga", "boss", "random"),
        )
        for number, label in enumerate(FORMULAS, start=1)
    },
    "molecules": Task(
        part="molecules",
        label="penalised logP of ZINC",
        domain="100 fresh molecules a step",
        initial=15,
        steps=35,
        direction="maximize",
        space=partial(_molecules, 0),
        objective=_scores_of_molecules,
        seeded_space=_molecules,
    ),
}
"""All tasks by name: the rows of table 4.6.1 in its order, the genes, the formulas, and the molecules."""

SEEDS: Mapping[Part, int] = {"synthetic": 100, "genes": 15, "regression": 15, "molecules": 15}
"""Runs of each task and method, by part."""
