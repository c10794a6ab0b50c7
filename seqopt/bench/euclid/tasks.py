"""The experiments: what is optimised, from how many points on, and how far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seqopt.bench.euclid.functions import PROBLEMS, Problem
from seqopt.bench.euclid.further_functions import FURTHER, sample_in_eight
from seqopt.bench.euclid.plates import HierarchicalDraw, PlateProblem, Warehouses

Part = Literal["fidelity", "batch", "plates", "ratio", "learning", "noisy", "esp", "unbounded"]

ADAPTIVE: tuple[Part, ...] = ("learning", "noisy", "esp", "unbounded")
"""Parts whose models average over their parameters: see `seqopt.bench.euclid.adaptive`."""

FIDELITY_METHODS = ("gibbon", "mumbo", "ei", "mes")
SEQUENTIAL_METHODS = ("gibbon-one", "mes", "ei", "thompson", "nei", "kg")
BATCH_METHODS = (
    *("gibbon-one", "gibbon-own", "dpp-ei", "lp-ei", "lp-mes", "believer", "thompson"),
    *("nei", "kg"),
)
RATIO_METHODS: dict[str, tuple[str, ...]] = {
    "forrester-noisy": ("lfbo-mlp", "lfbo-mlp-100", "random"),
    "branin": ("bore-rf", "random"),
}
LEARNING_METHODS = ("sal-ws", "sal-hr", "bald", "bqbc", "balm", "qbmgp", "points")
NOISY_METHODS = ("scorebo", "gibbon-bayes", "nei-bayes", "jes-bayes")
SAMPLE_METHODS = ("scorebo", "ei-bayes")
PORTFOLIO_METHODS = ("esp", "random-portfolio", "ei-bayes", "pi", "thompson-fourier")
UNBOUNDED_METHODS = ("ei-bayes", "ei-v", "ei-h", "ei-q")
PLATE_METHODS = ("bosh", "fixed-1", "fixed-1-ei", "fixed-5", "random-1")

SEEDS, SLOW_SEEDS = 10, 3
"""Runs of each task and method, and of those in `SLOW`."""

RATIO_SEEDS = 20
"""Runs of density ratios, on which so many are published."""

SLOW = ("nei", "kg")
"""Methods whose runs take several times as long as all others together."""

OFFSET = 0.1
"""Variance of what a whole plate is off by in the draws with plates."""


@dataclass(frozen=True)
class Task:
    """One experiment.

    Attributes:
        label: As tables name it.
        part: Which section of the thesis it is of.
        steps: Batches at most after the initial points; for plates, density ratios and the parts in `ADAPTIVE`
            evaluations, the initial ones included.
        methods: Those that are compared.
        problem: Name of a function, where there are no plates.
        plates: What there is with plates, by seed.
        budget: Cost that may be spent after the initial points.
        batch: Points a step.
        initial: Points to begin with, of a density ratio and of the parts in `ADAPTIVE`.
        drawn: Functions by seed, where each run has its own.
        starred: Whether a search begins in a random box of a fifth of the sides.
        checkpoints: Costs, steps or evaluations at which tables look.
    """

    label: str
    part: Part
    steps: int
    methods: tuple[str, ...]
    checkpoints: tuple[float, ...]
    problem: str = ""
    plates: Callable[[int], PlateProblem] | None = None
    budget: float = float("inf")
    batch: int = 1
    initial: int = 0
    drawn: Callable[[int], Problem] | None = None
    starred: bool = False

    @property
    def function(self) -> Problem:
        """The function that is maximised."""
        return (PROBLEMS | FURTHER)[self.problem]

    def of_seed(self, seed: int) -> Problem:
        """The function of one run, where each run has its own."""
        return self.function if self.drawn is None else self.drawn(seed)


def _fidelity(name: str, budget: float, steps: int, methods: tuple[str, ...] = FIDELITY_METHODS) -> Task:
    # Not the whole budget, which runs that end at the largest number of steps need not reach.
    shares = (0.1, 0.3, 1.0)
    return Task(
        PROBLEMS[name].label, "fidelity", steps, methods, tuple(share * budget for share in shares), name, None, budget
    )


def _batch(name: str, batch: int, steps: int) -> Task:
    return Task(
        f"{PROBLEMS[name].label}, B = {batch}",
        "batch",
        steps,
        SEQUENTIAL_METHODS if batch == 1 else BATCH_METHODS,
        (0, steps // 2, steps),
        name,
        batch=batch,
    )


def _plates(
    label: str, evaluations: int, plates: Callable[[int], PlateProblem], checkpoints: tuple[float, ...]
) -> Task:
    return Task(label, "plates", evaluations, PLATE_METHODS, checkpoints, plates=plates)


def _ratio(name: str, evaluations: int, initial: int, checkpoints: tuple[float, ...]) -> Task:
    return Task(
        PROBLEMS[name].label, "ratio", evaluations, RATIO_METHODS[name], checkpoints, problem=name, initial=initial
    )


def _adaptive(
    name: str,
    part: Part,
    evaluations: int,
    initial: int,
    methods: tuple[str, ...],
    *,
    label: str = "",
    starred: bool = False,
) -> Task:
    checkpoints = tuple(float(round(share * evaluations)) for share in (0.3, 0.6, 1.0))
    return Task(
        label or FURTHER[name].label,
        part,
        evaluations,
        methods,
        checkpoints,
        problem=name,
        initial=initial,
        starred=starred,
    )


TASKS: dict[str, Task] = {
    "currin": _fidelity("currin", 100, 25),
    "hartmann3": _fidelity("hartmann3", 1_000, 25),
    "hartmann6": _fidelity("hartmann6", 10_000, 25),
    "borehole": _fidelity("borehole", 100, 25),
    "currin-continuous": _fidelity("currin-continuous", 10, 25),
    "rosenbrock": _fidelity("rosenbrock", 10_000, 25),
    "draw-none": _plates("draw without k_f", 30, lambda seed: HierarchicalDraw(seed, 0.0, 0.0), (16, 20, 30)),
    "draw-small": _plates("draw with small k_f", 45, lambda seed: HierarchicalDraw(seed, 0.05, OFFSET), (20, 30, 45)),
    "draw-large": _plates("draw with large k_f", 45, lambda seed: HierarchicalDraw(seed, 0.5, OFFSET), (20, 30, 45)),
    "facility": _plates("facility allocation", 55, Warehouses, (20, 35, 45, 55)),
    "shekel-5": _batch("shekel", 5, 6),
    "ackley-5": _batch("ackley", 5, 6),
    "hartmann6-5": _batch("hartmann6-noisy", 5, 6),
    "shekel-1": _batch("shekel", 1, 20),
    "ackley-1": _batch("ackley", 1, 20),
    "hartmann6-1": _batch("hartmann6-noisy", 1, 20),
    "forrester": _fidelity("forrester", 100, 20),
    "forrester-noisy": _ratio("forrester-noisy", 60, 4, (20, 40, 60)),
    "branin": _ratio("branin", 150, 10, (50, 100, 150)),
    "gramacy1": _adaptive("gramacy1", "learning", 50, 2, LEARNING_METHODS),
    "higdon": _adaptive("higdon", "learning", 50, 2, LEARNING_METHODS),
    "gramacy2": _adaptive("gramacy2", "learning", 100, 3, LEARNING_METHODS),
    "branin-learned": _adaptive("branin-learned", "learning", 100, 3, LEARNING_METHODS),
    "ishigami": _adaptive("ishigami", "learning", 150, 4, LEARNING_METHODS),
    "hartmann6-learned": _adaptive("hartmann6-learned", "learning", 150, 7, LEARNING_METHODS),
    "branin-noisy": _adaptive("branin-noisy", "noisy", 100, 3, NOISY_METHODS),
    "rosenbrock2-noisy": _adaptive("rosenbrock2-noisy", "noisy", 100, 3, NOISY_METHODS),
    "hartmann3-noisy": _adaptive("hartmann3-noisy", "noisy", 125, 4, NOISY_METHODS),
    "rosenbrock4-noisy": _adaptive("rosenbrock4-noisy", "noisy", 150, 5, NOISY_METHODS),
    "hartmann4-noisy": _adaptive("hartmann4-noisy", "noisy", 150, 5, NOISY_METHODS),
    "hartmann6-noise": _adaptive("hartmann6-noise", "noisy", 200, 7, NOISY_METHODS),
    "sample8": Task(
        "sample in 8 variables",
        "noisy",
        160,
        SAMPLE_METHODS,
        (40, 80, 160),
        initial=9,
        drawn=sample_in_eight,
    ),
    "branin-portfolio": _adaptive("branin-exact", "esp", 100, 6, PORTFOLIO_METHODS),
    "hartmann3-portfolio": _adaptive("hartmann3-exact", "esp", 100, 9, PORTFOLIO_METHODS),
    "hartmann3-box": _adaptive("hartmann3-exact", "unbounded", 90, 9, UNBOUNDED_METHODS),
    "hartmann6-box": _adaptive("hartmann6-exact", "unbounded", 180, 18, UNBOUNDED_METHODS),
    "hartmann3-starred": _adaptive(
        "hartmann3-exact", "unbounded", 90, 9, UNBOUNDED_METHODS, label="Hartmann-3, starred", starred=True
    ),
    "hartmann6-starred": _adaptive(
        "hartmann6-exact", "unbounded", 180, 18, UNBOUNDED_METHODS, label="Hartmann-6, starred", starred=True
    ),
    "currin-largest": _fidelity("currin-largest", 100, 25, (*FIDELITY_METHODS, "gibbon-icm", "mumbo-icm")),
}
"""By name."""
