r"""Levels whose measurements have a noise, a mean and a scale of their own.

A cheap score may be in another unit than the costly one, and more or less precise. A model with `Levels` learns a
variance of the noise for each level, and sees values z = (y - m_l) / u_l with the mean m_l and the standard deviation
u_l of the values of level l, so that an affine change of one level's values changes nothing. What it says of an outcome
is in the units of its level, and what it says of a target in those of the target.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.contexts import Contexts, written
from seqopt.data.query import ContextValue, Item, Query, as_context, context_of
from seqopt.errors import InputError
from seqopt.models.checks import differ
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

Numbers = npt.NDArray[np.float64]

Units = Literal["own", "offset", "common"]
"""What levels have of their own: mean and scale, the mean alone, or nothing."""


@dataclass(frozen=True)
class Levels(Configurable):
    """The levels of one variable of the context.

    Attributes:
        variable: Its name.
        values: The L levels.
        target: The level that is meant, which items without the variable are taken to be at; `None` where the target is
            latent: the mean over all levels.
        units: ``"own"``: each level has a mean and a scale; ``"offset"``: a mean each, and one scale (folds of one
            quantity); ``"common"``: one of either.

    Raises:
        InputError: For no levels, a target that is none of them, or unknown units.

    Example:
        >>> levels = Levels("fidelity", ("docking", "assay"), "assay")
        >>> levels.numbers(["CCO", Query("CCO", {"fidelity": "docking"})]).tolist()
        [1, 0]
    """

    variable: str
    values: tuple[ContextValue, ...]
    target: ContextValue | None = None
    units: Units = "own"

    def __post_init__(self) -> None:
        pairs = [as_context({self.variable: value}) for value in self.values]
        object.__setattr__(self, "values", tuple(value for ((_, value),) in pairs))
        if not self.values or len(set(self.values)) < len(self.values):
            raise InputError(f"levels of {self.variable} are {list(self.values)}; expected at least one, each once")
        if self.target is not None and self.target not in self.values:
            raise InputError(f"the target of {self.variable} is {self.target!r}; expected one of {list(self.values)}")
        if self.units not in get_args(Units):
            raise InputError(f"units are {self.units!r}; expected one of {', '.join(get_args(Units))}")

    @classmethod
    def of(cls, contexts: Contexts, units: Units = "own") -> Levels:
        """Those of contexts that differ in one variable.

        Raises:
            InputError: If they differ in several, or in none, or one is open.
        """
        if len(contexts.names) != 1 or any(len(context) != 1 for context in contexts.possible):
            raise InputError(
                f"contexts differ in {', '.join(contexts.names) or 'nothing'}: levels are those of one variable, which "
                "every context states"
            )
        if contexts.open is not None:
            raise InputError(f"any text may be a {contexts.open}: levels have to be known beforehand")
        (name,) = contexts.names
        target = None if contexts.latent else contexts.target[0][1]
        return cls(name, tuple(context[0][1] for context in contexts.possible), target, units)

    @property
    def count(self) -> int:
        """L."""
        return len(self.values)

    @property
    def target_number(self) -> int:
        """The number of the target; L where it is latent."""
        return self.count if self.target is None else self.values.index(self.target)

    def numbers(self, items: Sequence[Item]) -> npt.NDArray[np.int64]:
        """The level of each item, n; L for a latent target.

        Raises:
            InputError: For a value that is none of the levels.
        """
        known = {value: number for number, value in enumerate(self.values)}
        found = np.full(len(items), self.target_number, dtype=np.int64)
        for place, item in enumerate(items):
            value = item.get(self.variable) if isinstance(item, Query) and item.context else None
            if value is not None:
                if value not in known:
                    raise InputError(
                        f"{written(context_of(item))} of item {place} is none of the levels "
                        f"{', '.join(map(str, self.values))}"
                    )
                found[place] = known[value]
        return found

    def scales(self, numbers: npt.NDArray[np.int64], values: Numbers) -> LevelScales:
        """Means and scales of the levels, from n values.

        A level whose values are all equal, or that has but one, takes the scale of the others; one without any takes
        their mean, too. What is so taken is logged.

        Args:
            numbers: The level of each value.
            values: The n values.
        """
        groups = [values[numbers == level] for level in range(self.count)]
        spread = differ(values)
        overall = float(values.mean()), float(values.std(ddof=1)) if spread else 1.0
        offsets, units = np.full(self.count + 1, overall[0]), np.full(self.count + 1, overall[1])
        if self.units == "common":
            return LevelScales(offsets, units)
        stds = np.array([float(group.std(ddof=1)) if len(group) and differ(group) else np.nan for group in groups])
        if self.units == "offset" and np.isfinite(stds).any():
            degrees = np.array([max(len(group) - 1, 0) for group in groups], dtype=np.float64)
            there = np.isfinite(stds)
            stds[:] = np.sqrt((degrees[there] * stds[there] ** 2).sum() / degrees[there].sum())
        means = np.array([float(group.mean()) if len(group) else np.nan for group in groups])
        # What nothing is known of is as what is known best.
        best = int(np.argmax([len(group) if np.isfinite(std) else -1 for group, std in zip(groups, stds, strict=True)]))
        borrowed = stds[best] if np.isfinite(stds[best]) else overall[1]
        units[:-1] = np.where(np.isfinite(stds), stds, borrowed)
        offsets[:-1] = np.where(np.isfinite(means), means, means[best] if np.isfinite(means[best]) else overall[0])
        units[-1], offsets[-1] = units[:-1].mean(), offsets[:-1].mean()
        self._remark(groups)
        return LevelScales(offsets, units)

    def _remark(self, groups: list[Numbers]) -> None:
        for number, (value, group) in enumerate(zip(self.values, groups, strict=True)):
            if not len(group) and number == self.target_number:
                logger.info(
                    "nothing has been measured at the target, %s=%s, yet: what is said of it rests on the other levels "
                    "alone, and is in their units",
                    self.variable,
                    value,
                )
            elif len(group) > 1 and not differ(group):
                logger.info(
                    "all %d values at %s=%s equal %g: they tell strings not apart",
                    len(group),
                    self.variable,
                    value,
                    group[0],
                )


@dataclass(frozen=True, eq=False)
class LevelScales:
    """Means and scales of L levels, and of a latent target as one more.

    Attributes:
        offsets: L + 1.
        units: L + 1, positive.
    """

    offsets: Numbers
    units: Numbers

    def standardized(self, numbers: npt.NDArray[np.int64], values: Numbers) -> Numbers:
        """Values as a model sees them, n."""
        found: Numbers = (values - self.offsets[numbers]) / self.units[numbers]
        return found

    def within(self, mean: float, unit: float) -> LevelScales:
        """Those of values that are standardised once more, by ``mean`` and ``unit``."""
        return LevelScales(self.offsets + self.units * mean, self.units * unit)


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """Variances of the noise of measurements at L levels, for D draws of the parameters.

    Attributes:
        levels: The levels.
        learned: What every value of a level has, D x (L + 1): the last is that of a latent target.
        coming: What a value to come has besides, L + 1.
    """

    levels: Levels
    learned: Tensor
    coming: Tensor

    @classmethod
    def of(cls, levels: Levels, learned: Tensor, known: Tensor, numbers: npt.NDArray[np.int64]) -> LevelNoise:
        """Noise of a fit.

        Args:
            levels: The levels.
            learned: Variances, D x L.
            known: Known variances of n values, 0 where unknown. A value to come has the mean of those of its level.
            numbers: The levels of these.
        """
        learned = torch.cat([learned, learned.mean(-1, keepdim=True)], -1)
        groups = [known[torch.from_numpy(numbers == level)] for level in range(levels.count)]
        means = [float(group.mean()) if len(group) else 0.0 for group in groups]
        coming = torch.tensor([*means, sum(means) / len(means)], dtype=torch.float64)
        return cls(levels, learned, coming)

    def at(self, items: Sequence[Item]) -> Tensor:
        """Variance of a measurement to come of each of N items, D x N."""
        return (self.learned + self.coming)[:, torch.from_numpy(self.levels.numbers(items))]

    @property
    def of_target(self) -> Tensor:
        """Variance of a measurement to come of the target, D."""
        return (self.learned + self.coming)[:, self.levels.target_number]
