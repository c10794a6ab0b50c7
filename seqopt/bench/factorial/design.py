"""Factors, tasks, and the cells that each seed runs.

Four factors: the kernel (3 levels), how its parameters are found (2), the acquisition function (3) and the inner search
(3), 54 cells in all. A seed runs a third of them: those with kernel + acquisition + search = seed modulo 3, levels
counted from 0 (a Latin square for each way to find parameters). In each third every two levels of two factors meet
equally often, so that a main effect can be read off each seed; what it is mixed with there, an interaction of two other
factors, cancels over three seeds in a row, which run all cells. With two kernels, as for formulas, and without an inner
search, as for molecules, there is no such third: every seed runs all cells, 36 and 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from seqopt.bench.boss.tasks import TASKS as BOSS_TASKS
from seqopt.bench.boss.tasks import Task

if TYPE_CHECKING:
    import gpytorch

    from seqopt.acquisition import Acquisition
    from seqopt.models import Surrogate
    from seqopt.search.protocols import SomeSearch
    from seqopt.spaces import Space

FACTORS: Mapping[str, tuple[str, ...]] = {
    "kernel": ("ssk", "ngrams", "one-hot"),
    "parameters": ("point", "averaged"),
    "acquisition": ("ei", "gibbon", "mean"),
    "search": ("published", "ours", "random"),
}
"""Levels of each factor; the first of each are the published BOSS, but that it sees values as they are."""

LABELS: Mapping[str, str] = {
    "ssk": "sub-sequences",
    "ngrams": "n-grams",
    "one-hot": "one-hot",
    "point": "maximum likelihood",
    "averaged": "averaged over",
    "ei": "expected improvement",
    "gibbon": "GIBBON",
    "mean": "greedy mean",
    "published": "algorithm 4 of the paper",
    "ours": "the genetic search of the default",
    "random": "best of 10,000 random",
}
"""Levels in words."""

RANDOM_STRINGS = 10_000
"""Strings of the random inner search."""

ZINC_INITIAL, ZINC_STEPS, ZINC_FRESH = 20, 40, 1_000
"""Section 5.7.3 of the thesis, one at a time, and the first 40 of its 100 evaluations."""


@dataclass(frozen=True)
class Cell:
    """A level of each factor.

    Attributes:
        kernel: Of `FACTORS`.
        parameters: Of `FACTORS`.
        acquisition: Of `FACTORS`.
        search: Of `FACTORS`; ``"fresh"`` for molecules, which are drawn anew in each step.
    """

    kernel: str
    parameters: str
    acquisition: str
    search: str

    @property
    def name(self) -> str:
        """All levels."""
        return "/".join((self.kernel, self.parameters, self.acquisition, self.search))

    def arguments(self) -> dict[str, Any]:
        """Those of `seqopt.optimizer.Optimizer`."""
        return {
            "surrogate": self._surrogate(),
            "acquisition": self._acquisition(),
            "search": self._search(),
            "transform": "auto",
        }

    def _surrogate(self) -> Surrogate:
        from seqopt.strategies import maximum_likelihood_gp

        kernel = kernel_of(self.kernel)
        return maximum_likelihood_gp(kernel) if self.parameters == "point" else averaged_over(kernel)

    def _acquisition(self) -> Acquisition | str:
        from seqopt.acquisition import LogExpectedImprovement

        return LogExpectedImprovement("value") if self.acquisition == "ei" else self.acquisition

    def _search(self) -> SomeSearch:
        from seqopt.bench.boss.molecules import FreshCandidates
        from seqopt.search import GeneticSearch, RandomSearch
        from seqopt.strategies.published import published_genetic_search

        if self.search == "fresh":
            return FreshCandidates(ZINC_INITIAL, ZINC_FRESH)
        if self.search == "random":
            return RandomSearch(RANDOM_STRINGS)
        return GeneticSearch() if self.search == "ours" else published_genetic_search()


def kernel_of(name: str) -> gpytorch.kernels.Kernel:
    """The kernel of a level."""
    from seqopt.kernels import NgramKernel, OneHotKernel
    from seqopt.models.string_gp import default_kernel

    if name == "ssk":
        return default_kernel()
    return NgramKernel() if name == "ngrams" else OneHotKernel()


def averaged_over(kernel: gpytorch.kernels.Kernel) -> Surrogate:
    """The surrogate that averages over the parameters of a kernel, on a grid as the default does."""
    from seqopt.kernels import SubsequenceKernel
    from seqopt.models import FullyBayesianGP, FullyBayesianStringGP
    from seqopt.models.sampling import GridSampler

    if isinstance(kernel, SubsequenceKernel):
        return FullyBayesianStringGP(kernel)
    return FullyBayesianGP(kernel, GridSampler())


def _molecules(seed: int) -> Space:
    from seqopt.bench.boss.molecules import drawn

    return drawn(seed, ZINC_INITIAL + ZINC_STEPS * ZINC_FRESH, "factorial")


_ZINC = replace(
    BOSS_TASKS["molecules"],
    domain="1,000 fresh molecules a step",
    initial=ZINC_INITIAL,
    steps=ZINC_STEPS,
    space=partial(_molecules, 0),
    seeded_space=_molecules,
)

TASKS: Mapping[str, Task] = {
    **{name: task for name, task in BOSS_TASKS.items() if task.part == "synthetic"},
    "peptide-10": BOSS_TASKS["peptide-10"],
    **{name: task for name, task in BOSS_TASKS.items() if task.part == "regression"},
    "zinc": _ZINC,
}
"""All tasks by name, the cheaper ones first."""


def cells_of(task: str) -> list[Cell]:
    """All cells of a task: one-hot symbols need strings of one length, and molecules no inner search."""
    levels = dict(FACTORS)
    if TASKS[task].part in ("regression", "molecules"):
        levels["kernel"] = levels["kernel"][:2]
    if TASKS[task].part == "molecules":
        levels["search"] = ("fresh",)
    return [Cell(*combination) for combination in itertools.product(*levels.values())]


def third_of(task: str, seed: int) -> list[Cell]:
    """The cells that a seed runs: a third of 54, or all of a task that has fewer."""
    cells = cells_of(task)
    if TASKS[task].part in ("regression", "molecules"):
        return cells
    factors = ("kernel", "acquisition", "search")
    place = {level: index for factor in factors for index, level in enumerate(FACTORS[factor])}
    return [cell for cell in cells if (sum(place[getattr(cell, f)] for f in factors) - seed) % 3 == 0]
