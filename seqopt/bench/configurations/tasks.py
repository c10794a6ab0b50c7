"""The tables that are searched, and what a search of one seed is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from seqopt.spaces import LocalSpace

FloatArray = npt.NDArray[np.float64]

INITIAL = 10
"""Random configurations that all methods of one seed begin with."""


@dataclass(frozen=True)
class Task:
    """One table.

    Attributes:
        label: Name in tables.
        measured: What is minimised.
        budget: Evaluations, the initial ones included.
        checkpoints: Evaluations after which tables look.
    """

    label: str
    measured: str
    budget: int
    checkpoints: tuple[int, ...]


def _networks(label: str) -> Task:
    return Task(f"NASBench-201, {label}", "validation error in percent", 200, (20, 50, 100, 200))


def _learners(label: str) -> Task:
    return Task(f"HPOLib, {label}", "validation loss", 500, (50, 100, 200, 500))


TASKS: Mapping[str, Task] = {
    "nasbench201-cifar10": _networks("CIFAR-10"),
    "nasbench201-cifar100": _networks("CIFAR-100"),
    "nasbench201-imagenet": _networks("ImageNet-16"),
    "hpolib-protein": _learners("protein"),
    "hpolib-naval": _learners("naval"),
    "hpolib-parkinsons": _learners("parkinsons"),
    "hpolib-slice": _learners("slice"),
}
"""By the names of `seqopt.datasets.load_configurations`."""


@dataclass(frozen=True)
class Table:
    """All configurations with what was measured of them, which is minimised.

    Attributes:
        strings: The n configurations.
        choices: The symbols of each position.
        losses: n x replicates, NaN where there are fewer.
    """

    strings: tuple[str, ...]
    choices: tuple[str, ...]
    losses: FloatArray

    @property
    def space(self) -> LocalSpace:
        """All configurations."""
        return LocalSpace(self.choices)

    @property
    def means(self) -> FloatArray:
        """Mean over the replicates, n."""
        found: FloatArray = np.nanmean(self.losses, axis=1)
        return found

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each configuration."""
        return {string: row for row, string in enumerate(self.strings)}

    def measured(self, seed: int) -> FloatArray:
        """What a search of this seed is told of each configuration: one of its replicates, always the same one, n."""
        rng = np.random.default_rng([seed, len(self.strings)])
        counts = (~np.isnan(self.losses)).sum(axis=1)
        # Replicates that are there come first.
        chosen = (rng.random(len(counts)) * counts).astype(np.int64)
        found: FloatArray = self.losses[np.arange(len(counts)), chosen]
        return found

    def initial(self, seed: int, count: int = INITIAL) -> list[str]:
        """The configurations that all searches of this seed begin with."""
        rng = np.random.default_rng([seed, 1, len(self.strings)])
        return [self.strings[row] for row in rng.permutation(len(self.strings))[:count].tolist()]


def regrets(table: Table, strings: Sequence[str], seed: int) -> FloatArray:
    """What the best string so far, as it was measured, loses to the best one of the table; both by their means.

    Args:
        table: All configurations.
        strings: Those evaluated, in order.
        seed: Of the search.

    Returns:
        After each evaluation; it may rise where a measurement flatters.
    """
    rows = table.rows
    told, means = table.measured(seed), table.means
    found = np.array([rows[string] for string in strings])
    values = told[found]
    best = np.minimum.accumulate(values)
    # The first one that was measured as the best so far.
    place = np.maximum.accumulate(np.where(np.append(True, values[1:] < best[:-1]), np.arange(len(found)), 0))
    regret: FloatArray = means[found[place]] - means.min()
    return regret


@lru_cache(maxsize=2)
def table_of(name: str) -> Table:
    """The table of a task.

    Raises:
        InputError: If it is not there; the message says how to get it.
    """
    from seqopt.datasets import load_configurations

    found = load_configurations(name)
    losses = 100.0 - found.values if found.maximize else found.values
    return Table(found.strings, found.choices, np.asarray(losses, dtype=np.float64))
