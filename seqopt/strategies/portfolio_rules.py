r"""How a portfolio chooses among the strings that its members nominate.

- `EntropySearch`: the nominee whose result is expected to leave least uncertain where the maximum is.
- `UniformChoice`: a member at random; the baseline.
- `Hedge`: a member at random with probability proportional to :math:`\exp(\eta g_k)`, where its gain :math:`g_k` sums
  the posterior means of what it has nominated, each taken when the results of that step were there.

References:
    Shahriari, B., Wang, Z., Hoffman, M. W., Bouchard-Côté, A., de Freitas, N. (2014). An entropy search portfolio for
        Bayesian optimization. arXiv:1406.4625.
    Hoffman, M., Brochu, E., de Freitas, N. (2011). Portfolio allocation for Bayesian optimization. UAI (GP-Hedge).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from seqopt.acquisition.entropy_search import utilities
from seqopt.acquisition.sampling import draw_joint, largest_upper_confidence
from seqopt.errors import InputError
from seqopt.models import PoolSurrogate, StringSurrogate, unsupported
from seqopt.posteriors import Posterior, stable_cholesky
from seqopt.scorers.portfolio import Chooser
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import Configurable


@dataclass(frozen=True, eq=False)
class Step:
    """What a rule knows of one step.

    Attributes:
        surrogate: The fitted surrogate.
        space: Where the search goes on.
        evaluated: Keys of the strings that were measured.
        pending: Keys whose results are awaited.
        results: How many results there are.
        members: How many members nominate.
    """

    surrogate: StringSurrogate | PoolSurrogate
    space: Space
    evaluated: Sequence[str]
    pending: Sequence[str]
    results: int
    members: int

    def posterior(self, keys: Sequence[str]) -> Posterior:
        """That at strings which the surrogate can take, given the data."""
        if isinstance(self.surrogate, StringSurrogate):
            return self.surrogate.conditioned().at(keys)
        pool = cast(PoolSpace, self.space)
        indices = np.array([pool.index_of(key) for key in keys], dtype=np.int64)
        return self.surrogate.pool_posterior(pool, indices)

    def known(self, keys: Sequence[str]) -> list[str]:
        """Distinct strings of which there is a posterior, in their order."""
        keys = list(dict.fromkeys(keys))
        without = unsupported(self.surrogate, keys)
        keys = [key for index, key in enumerate(keys) if index not in without]
        if isinstance(self.surrogate, StringSurrogate):
            return keys
        return [key for key in keys if cast(PoolSpace, self.space).index_of(key) is not None]


@runtime_checkable
class PortfolioRule(Protocol):
    """Chooses among the nominees of a portfolio's members."""

    def reset(self) -> None:
        """Forget what an earlier search has taught."""
        ...

    def learn(self, step: Step) -> None:
        """Called before each batch, when the surrogate has been fitted."""
        ...

    def chooser(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> Chooser:
        """What chooses in this step.

        Args:
            step: The step.
            likely: Keys among which the maximum is looked for.
            rng: The only source of randomness.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


class _Forgetful(Configurable):
    """A rule that remembers nothing."""

    def reset(self) -> None:
        """See `PortfolioRule`."""

    def learn(self, step: Step) -> None:
        """See `PortfolioRule`."""

    def state_dict(self) -> dict[str, Any]:
        """See `PortfolioRule`."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `PortfolioRule`."""


class UniformChoice(_Forgetful):
    """Takes the nominee of a member that is drawn at random: the random portfolio, a baseline.

    Example:
        >>> step = Step(None, None, [], [], 0, 2)  # type: ignore[arg-type]
        >>> chooser = UniformChoice().chooser(step, [], np.random.default_rng(0))
        >>> [chooser.choose(["a", "b"], []) for _ in range(6)]
        [1, 0, 0, 0, 1, 1]
    """

    def chooser(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> Chooser:
        """See `PortfolioRule`."""
        return _Drawing(np.ones(step.members), rng, None)


class _Drawing:
    """Draws a member with probabilities in proportion to weights, of those that nominate."""

    def __init__(
        self, weights: npt.NDArray[np.float64], rng: np.random.Generator, nominated: list[list[str | None]] | None
    ) -> None:
        self._weights = weights
        self._rng = rng
        self._nominated = nominated

    def choose(self, nominees: Sequence[str | None], chosen: Sequence[str]) -> int:
        """See `seqopt.scorers.portfolio.Chooser`."""
        if self._nominated is not None:
            self._nominated.append(list(nominees))
        weights = np.where([nominee is None for nominee in nominees], 0.0, self._weights)
        if not weights.sum() > 0:  # those that nominate have weights of 0 to rounding
            weights = np.array([float(nominee is not None) for nominee in nominees])
        return int(self._rng.choice(len(nominees), p=weights / weights.sum()))


class Hedge(Configurable):
    """GP-Hedge: members whose nominees have large posterior means are taken more often.

    A gain grows by the mean of what its member has nominated, also where another member's nominee was taken; over a
    batch, by the average. Means are those of standardised values, so that units do not matter. A member that nominated
    nothing gains what the others do on average.

    Args:
        eta: Factor of the gains; above 0.

    Raises:
        InputError: For an ``eta`` that is not a positive number.

    Example:
        >>> rule = Hedge()
        >>> rule.load_state_dict({"gains": [1.0, 0.0], "nominated": [], "results": 0})
        >>> rule.weights(2).round(3)
        array([0.731, 0.269])
    """

    def __init__(self, eta: float = 1.0) -> None:
        if isinstance(eta, bool) or not isinstance(eta, int | float) or not 0 < eta < math.inf:
            raise InputError(f"eta is {eta!r}; expected a positive number")
        self.eta = float(eta)
        self.reset()

    def reset(self) -> None:
        """See `PortfolioRule`."""
        self.gains: list[float] = []
        self._nominated: list[list[str | None]] = []
        self._results = 0

    def weights(self, members: int) -> npt.NDArray[np.float64]:
        """Probabilities of the members."""
        gains = np.array(self.gains or [0.0] * members)
        found: npt.NDArray[np.float64] = np.exp(self.eta * (gains - gains.max()))
        return found / found.sum()

    def learn(self, step: Step) -> None:
        """Add the means of what was nominated, once there are new results."""
        if not self._nominated or step.results <= self._results:
            return
        keys = step.known([key for slot in self._nominated for key in slot if key is not None])
        if keys:
            mean = step.posterior(keys).moments.mean
            means = dict(zip(keys, mean.reshape(-1, len(keys)).mean(0).tolist(), strict=True))
            rewards = np.array(
                [[np.nan if key is None else means.get(key, np.nan) for key in s] for s in self._nominated]
            )
            # What was not nominated counts as the average of the others, which changes no probability.
            counts = (~np.isnan(rewards)).sum(1)
            average = np.nansum(rewards, axis=1) / np.maximum(counts, 1)
            rewards = np.where(np.isnan(rewards), average[:, None], rewards)
            gained = rewards.mean(0)
            self.gains = (np.array(self.gains or [0.0] * len(gained)) + gained).tolist()
        self._nominated = []

    def chooser(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> Chooser:
        """See `PortfolioRule`."""
        self._results = step.results
        return _Drawing(self.weights(step.members), rng, self._nominated)

    def state_dict(self) -> dict[str, Any]:
        """Gains, and what was nominated without a result since."""
        nominated = [list(slot) for slot in self._nominated]
        return {"gains": list(self.gains), "nominated": nominated, "results": self._results}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.gains = list(state["gains"])
        self._nominated = [list(slot) for slot in state["nominated"]]
        self._results = int(state["results"])


class EntropySearch(_Forgetful):
    """The entropy search portfolio: takes the nominee whose result should tell most of where the maximum is.

    Where the maximum may be is told by ``functions`` joint draws of the posterior, at candidates and at what has been
    evaluated; the places of their maxima, the *representers*, are kept for the batch. The utility of a nominee is that
    of `seqopt.acquisition.entropy_search.utilities`, given that what is pending or chosen is observed too. With D draws
    of the model's parameters, ``functions`` are of all of them together, and entropies are averaged.

    Args:
        functions: Draws whose maxima are representers.
        fantasies: Outcomes of each nominee.
        draws: Draws for each outcome, of each draw of the parameters.
        max_points: Most points, those of largest mean + 3 std, at which the functions are drawn; with D draws of the
            parameters, 1 / sqrt(D) as many.

    Raises:
        InputError: For a number below 1.
    """

    def __init__(self, functions: int = 500, fantasies: int = 5, draws: int = 1_000, max_points: int = 1_000) -> None:
        self.functions = checked_integer("functions", functions, 1)
        self.fantasies = checked_integer("fantasies", fantasies, 1)
        self.draws = checked_integer("draws", draws, 1)
        self.max_points = checked_integer("max_points", max_points, 1)

    def chooser(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> Chooser:
        """See `PortfolioRule`."""
        return EntropyChooser(self, step, likely, rng)

    def representers(self, step: Step, likely: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Places of the maxima of joint draws, distinct, in their order among the candidates."""
        keys = step.known(likely)
        posterior = step.posterior(keys)
        share = 1.0 / math.sqrt(posterior.moments.mean.shape[:-1].numel())
        indices = largest_upper_confidence(posterior, max(1, math.ceil(self.max_points * share)))
        mean, covariance = (
            part.reshape(-1, *part.shape[part.ndim - rank :])
            for part, rank in zip(posterior.joint(indices), (1, 2), strict=True)
        )
        factor, _ = stable_cholesky(covariance)
        drawn = draw_joint(mean, factor, math.ceil(self.functions / len(mean)), rng)
        return [keys[int(indices[place])] for place in torch.unique(drawn.argmax(-2))]


class EntropyChooser:
    """The choices of `EntropySearch` for one batch.

    Args:
        rule: Its settings.
        step: The step.
        likely: Keys among which the maximum is looked for, besides those evaluated.
        rng: The only source of randomness.
    """

    def __init__(self, rule: EntropySearch, step: Step, likely: Sequence[str], rng: np.random.Generator) -> None:
        self._rule = rule
        self._step = step
        self._likely = likely
        self._rng = rng
        self._places: list[str] = []
        self._belief: Belief | None = None

    def choose(self, nominees: Sequence[str | None], chosen: Sequence[str]) -> int:
        """See `seqopt.scorers.portfolio.Chooser`."""
        distinct = sorted({nominee for nominee in nominees if nominee is not None})
        if len(distinct) > 1:
            found = self.utilities(distinct, chosen)
            return list(nominees).index(distinct[int(np.argmax(found))])
        return list(nominees).index(distinct[0])

    def utilities(self, keys: Sequence[str], chosen: Sequence[str]) -> npt.NDArray[np.float64]:
        """Of distinct strings, given that what is chosen and pending is observed."""
        step, rule = self._step, self._rule
        if self._belief is None:
            # What is nominated may be where the maximum is: a nominee is where some acquisition function is largest.
            self._places = rule.representers(step, [*self._likely, *step.evaluated, *keys], self._rng)
            self._belief = Belief(step)
            self._belief.extend([*self._places, *step.known(step.pending)])
        observed = [*step.known(step.pending), *chosen]
        self._belief.extend([*observed, *keys])
        return utilities(
            self._belief.mean,
            self._belief.covariance,
            self._belief.noise,
            self._belief.numbers(self._places),
            self._belief.numbers(keys),
            self._belief.numbers(observed),
            fantasies=rule.fantasies,
            draws=rule.draws,
            rng=self._rng,
        )


class Belief:
    """A joint posterior of strings given the data, to which further ones are added.

    Args:
        step: Where the posterior comes from.

    Attributes:
        mean: ``D x U``.
        covariance: Noiseless, ``D x U x U``.
        noise: Variance of a measurement, ``D x U``.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._numbers: dict[str, int] = {}
        self.mean = self.covariance = self.noise = torch.empty(0, dtype=torch.float64)

    def numbers(self, keys: Sequence[str]) -> list[int]:
        """Of strings that are there."""
        return [self._numbers[key] for key in keys]

    def extend(self, keys: Sequence[str]) -> None:
        """Add strings; those that are there stay.

        Only covariances with new strings are computed.
        """
        new = [key for key in dict.fromkeys(keys) if key not in self._numbers]
        if not new:
            return
        old = len(self._numbers)
        self._numbers |= {key: old + place for place, key in enumerate(new)}
        size = len(self._numbers)
        posterior = self._step.posterior(list(self._numbers))
        moments = posterior.moments
        self.mean = moments.mean.reshape(-1, size)
        self.noise = moments.residual_variance.reshape(-1, size).expand(len(self.mean), size)
        if not old:
            self.covariance = posterior.joint(torch.arange(size))[1].reshape(-1, size, size)
            return
        crossed = posterior.cross(torch.arange(old, size)).reshape(-1, size, size - old)
        top = torch.cat([self.covariance, crossed[:, :old]], -1)
        corner = (crossed[:, old:] + crossed[:, old:].mT) / 2
        self.covariance = torch.cat([top, torch.cat([crossed[:, :old].mT, corner], -1)], -2)


RULES: dict[str, type[EntropySearch] | type[UniformChoice] | type[Hedge]] = {
    "esp": EntropySearch,
    "random": UniformChoice,
    "hedge": Hedge,
}
"""Rules by name."""


def resolve_rule(rule: PortfolioRule | str) -> PortfolioRule:
    """A rule from its name; an object with the methods of `PortfolioRule` is returned as it is.

    Raises:
        InputError: For what is none.
    """
    if isinstance(rule, str):
        if rule in RULES:
            return RULES[rule]()
    elif isinstance(rule, PortfolioRule) and not isinstance(rule, type):
        return rule
    raise InputError(f"unknown rule of a portfolio {rule!r}; expected one of {', '.join(RULES)}, or a PortfolioRule")


__all__ = [
    "RULES",
    "Belief",
    "EntropyChooser",
    "EntropySearch",
    "Hedge",
    "PortfolioRule",
    "Step",
    "UniformChoice",
    "resolve_rule",
]
