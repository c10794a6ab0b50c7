"""A strategy that asks for what teaches the model most, and how much better predictions should become for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqopt.acquisition import SAL, Acquisition
from seqopt.acquisition.preposterior import expected_errors
from seqopt.data import Item
from seqopt.errors import InputError
from seqopt.kernels import SitesKernel
from seqopt.models import FullyBayesianGP, StringGP, averaged
from seqopt.models.registry import mixture
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.model_based import ModelBased

COMPARED = 300
"""Strings at which errors of predictions are compared."""

RANDOM_BATCHES = 3
"""Random batches that a batch is compared with."""


@dataclass(frozen=True)
class Gain:
    """Root mean squared errors that a model expects of its own predictions, in units of the values' spread.

    Attributes:
        strings: How many strings they are of.
        now: Given all that is known and awaited.
        then: Given the batch, too.
        random: Given a random batch of equal size instead.
    """

    strings: int
    now: float
    then: float
    random: float

    @property
    def saved(self) -> float:
        """Share of the error that the batch saves, in [0, 1]."""
        return max(0.0, 1.0 - self.then / self.now) if self.now > 0 else 0.0

    @property
    def saved_at_random(self) -> float:
        """Share of the error that a random batch saves, in [0, 1]."""
        return max(0.0, 1.0 - self.random / self.now) if self.now > 0 else 0.0


def learner_of(strategy: object, space: Space, acquisition: Acquisition | None = None) -> ModelBased:
    """A strategy that learns the model of another one, with its parameters averaged over; ready to be asked.

    In place of a model of sites (`seqopt.kernels.SitesKernel`) it learns a mixture, `seqopt.models.registry.mixture`,
    whose draws disagree. A lengthscale for each site is too much to be averaged over: in the mixture, too, each has one
    value.

    Args:
        strategy: A `ModelBased` that has been started in ``space``; it stays as it is.
        space: Where to learn.
        acquisition: What to maximise. Default: `seqopt.acquisition.SAL`.

    Raises:
        InputError: For another strategy, or a surrogate whose parameters cannot be averaged over.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> space = CandidateSet(["AAA", "AAB", "ABB", "BBB"])
        >>> strategy = ModelBased("ssk")
        >>> strategy.start(space)
        >>> learner_of(strategy, space).acquisition.name
        'sal'
    """
    if type(strategy) is not ModelBased:
        raise InputError(
            "what teaches most is worked out for a model with an acquisition function and a search, and a "
            f"{type(strategy).__name__} decides here"
        )
    surrogate = strategy.surrogate
    if isinstance(surrogate, FullyBayesianGP) and surrogate.draws > 1:
        # An object of its own: a fit replaces what a surrogate holds.
        own = type(surrogate)(**surrogate.config_arguments())
    elif isinstance(surrogate, StringGP) and isinstance(surrogate.kernel, SitesKernel):
        # Slice sampling of a lengthscale for each of many sites takes minutes; those that are few wait for it, too.
        own = mixture(space)
    else:
        own = averaged(surrogate)
    found = ModelBased(own, SAL() if acquisition is None else acquisition, prefilter=None)
    found.start(space)
    return found


def gain_of(
    surrogate: FullyBayesianGP,
    space: Space,
    batch: Sequence[str],
    *,
    known: Sequence[Item] = (),
    pending: Sequence[Item] = (),
    rng: np.random.Generator,
    strings: int = COMPARED,
) -> Gain | None:
    """How much better predictions of a space's other strings should become by a batch.

    Args:
        surrogate: Fitted.
        space: Its candidates, or random strings of it, are what is to be predicted.
        batch: Keys of strings that are to be measured.
        known: What is not compared: keys of measured strings.
        pending: What is awaited besides the batch; it counts as measured already, with unknown results.
        rng: Draws strings and results.
        strings: Most strings that are compared.

    Returns:
        `None` where no other strings are found.
    """
    taken = {*batch, *map(str, known), *(getattr(item, "key", item) for item in pending)}
    if isinstance(space, PoolSpace):
        some = rng.permutation(len(space))[: 4 * strings + len(taken)]
        keys = [space.keys[int(index)] for index in some]
    else:
        keys = [space.key(string) for string in space.sample(2 * strings, rng)]
    keys = [key for key in dict.fromkeys(keys) if key not in taken]
    without = surrogate.unsupported(keys)
    keys = [key for place, key in enumerate(keys) if place not in without]
    others, count = keys[: strings + RANDOM_BATCHES * len(batch)], len(batch)
    if len(others) < 2 * count + 1 or not count:
        return None
    process = surrogate.conditioned(())
    awaited = [getattr(item, "key", item) for item in pending if getattr(item, "key", item) not in batch]
    everything = [*others, *batch, *awaited]
    mean, covariance = process.at(everything).joint(torch.arange(len(everything)))
    noise, n = surrogate.fitted.noise_variance, len(others)
    # All batches are compared at strings that are in none of them.
    random = [
        torch.arange(first, first + count) for first in range(0, min(RANDOM_BATCHES, n // count - 1) * count, count)
    ]
    compared = torch.arange(len(random) * count, n)
    fixed = torch.arange(n + count, len(everything))

    def errors(chosen: torch.Tensor) -> tuple[float, float]:
        points = torch.cat([compared, chosen, fixed])
        inside = torch.arange(len(compared), len(points))
        return expected_errors(mean[:, points], covariance[:, points][:, :, points], noise, inside, rng)

    nothing = torch.arange(0)
    now = errors(nothing)[1]
    then = errors(torch.arange(n, n + count))[1]
    by_chance = float(np.sqrt(np.mean([errors(one)[1] ** 2 for one in random])))
    return Gain(len(compared), now, then, by_chance)
