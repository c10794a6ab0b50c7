"""What a surrogate offers: one small protocol per capability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from seqopt.data.query import Item
from seqopt.models.leave_one_out import LeaveOneOut
from seqopt.posteriors import Posterior
from seqopt.spaces import PoolSpace, Space

FloatArray = npt.NDArray[np.floating]

Untransform = Callable[[npt.ArrayLike, npt.ArrayLike], tuple[FloatArray, FloatArray]]
"""From standardised means and variances to means and standard deviations in the values' units."""


@runtime_checkable
class Surrogate(Protocol):
    """A model of the objective, fitted to keys of strings and their values (larger is better)."""

    def fit(self, strings: Sequence[str], values: npt.ArrayLike, *, rng: np.random.Generator) -> None:
        """Fit to ``strings`` (n) and ``values`` (n), in the values' own units."""
        ...

    def predict(self, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and noiseless standard deviation at each string, in the values' units."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that later fits depend on, as JSON values, so that a run can be resumed exactly."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


@runtime_checkable
class PlannedSurrogate(Protocol):
    """A surrogate that is made once it is known where to search, such as a `seqopt.models.SurrogatePlan`."""

    def for_space(self, space: Space) -> Surrogate:
        """The surrogate for a space."""
        ...


@runtime_checkable
class NoiseAwareSurrogate(Surrogate, Protocol):
    """A surrogate that takes measurements of known precision into account."""

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
    ) -> None:
        """As `Surrogate.fit`.

        ``noise_variance`` holds the known variance of the noise of each value (n), 0 where nothing is known.
        """
        ...

    @property
    def takes_noise_variance(self) -> bool:
        """True: tells such a surrogate from others."""
        ...


@runtime_checkable
class CensoredSurrogate(Surrogate, Protocol):
    """A surrogate that learns from values of which only a limit is known."""

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
        censored: npt.ArrayLike | None = None,
    ) -> None:
        """As `NoiseAwareSurrogate.fit`.

        ``censored`` (n) is 0 for a value that is known, 1 where the measurement is above the one given, -1 where it is
        below.
        """
        ...

    @property
    def takes_censored(self) -> bool:
        """True: tells such a surrogate from others."""
        ...


@runtime_checkable
class BinomialSurrogate(Surrogate, Protocol):
    """A surrogate of results that are yes or no: its values are labels from -1 to 1, and it predicts log odds."""

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        trials: npt.ArrayLike | None = None,
    ) -> None:
        """As `Surrogate.fit`.

        ``trials`` (n) says of how many wells each value is the share of hits, 1 by default; the label of k hits of n
        wells is 2 k / n - 1.
        """
        ...

    @property
    def takes_trials(self) -> bool:
        """True: tells such a surrogate from others."""
        ...


@runtime_checkable
class DoubtingSurrogate(Surrogate, Protocol):
    """A surrogate that knows how likely it is that strings tell nothing of each other's values."""

    @property
    def doubt(self) -> float:
        """That probability, in [0, 1], after the last fit."""
        ...


@runtime_checkable
class SelectiveSurrogate(Surrogate, Protocol):
    """A surrogate that cannot take every string."""

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be compared, by their indices; empty where all can."""
        ...


def unsupported(surrogate: object, strings: Sequence[str]) -> dict[int, str]:
    """Why ``surrogate`` cannot take some of ``strings``, by their indices; empty where it takes all."""
    return surrogate.unsupported(strings) if isinstance(surrogate, SelectiveSurrogate) else {}


@runtime_checkable
class AdaptingSurrogate(SelectiveSurrogate, Protocol):
    """A surrogate that can learn from strings which it cannot compare as it was last fitted."""

    def unlearnable(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be learned from, by their indices; empty where all can."""
        ...


def unlearnable(surrogate: object, strings: Sequence[str]) -> dict[int, str]:
    """Why ``surrogate`` cannot learn from some of ``strings``, by their indices; empty where it can from all."""
    if isinstance(surrogate, AdaptingSurrogate):
        return surrogate.unlearnable(strings)
    return unsupported(surrogate, strings)


@runtime_checkable
class MeasurementSurrogate(Surrogate, Protocol):
    """A surrogate that knows better than its posterior how far measurements lie from its predictions."""

    def measurement_std(self, strings: Sequence[str]) -> FloatArray:
        """Standard deviation of a measurement, noise included, about the predicted mean of each string (n)."""
        ...


@runtime_checkable
class JointSurrogate(Surrogate, Protocol):
    """A surrogate with a joint Gaussian posterior."""

    def posterior(self, strings: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean (n) and covariance (n x n) of the noiseless objective at ``strings``."""
        ...

    def covariance(self, a: Sequence[str], b: Sequence[str]) -> torch.Tensor:
        """Posterior covariance (len(a) x len(b)) between two lists of strings."""
        ...

    def sample(self, strings: Sequence[str], n: int, rng: np.random.Generator) -> torch.Tensor:
        """``n`` joint posterior draws (n x len(strings))."""
        ...


@runtime_checkable
class ExplainedSurrogate(Surrogate, Protocol):
    """A surrogate that can say what a prediction rests on, and how good its predictions are."""

    def similarity(self, a: Sequence[str], b: Sequence[str]) -> FloatArray:
        """Prior correlation (len(a) x len(b)) of the objective at two lists of strings."""
        ...

    def leave_one_out(self) -> LeaveOneOut:
        """Predictions for each training value from the others."""
        ...


@runtime_checkable
class Nominating(Protocol):
    """What knows strings that a search should look at: a surrogate, or scores by one."""

    def nominated(self, strings: Sequence[str]) -> list[str]:
        """Strings made from some, which a search might take long to find by its own moves."""
        ...


def nominated(nominating: object, strings: Sequence[str]) -> list[str]:
    """What a surrogate or a scoring nominates: see `Nominating`; nothing where it does not."""
    return nominating.nominated(strings) if isinstance(nominating, Nominating) else []


@runtime_checkable
class ConditionedProcess(Protocol):
    """A posterior at any queries, given the data and some queries without values yet (pending or chosen ones)."""

    def at(self, items: Sequence[Item]) -> Posterior:
        """Posterior at N queries, conditioned as this process is."""
        ...

    def given(self, item: Item) -> ConditionedProcess:
        """The process given an outcome, of unknown value, of one more query; this one stays as it is."""
        ...

    def best_observed_keys(self, n: int) -> list[str]:
        """The ``n`` distinct evaluated strings of largest posterior mean, best first."""
        ...


@runtime_checkable
class StringSurrogate(Surrogate, Protocol):
    """A surrogate whose posterior can be asked for at any strings of a space, as a search meets them."""

    def conditioned(self, pending: Sequence[Item] = ()) -> ConditionedProcess:
        """The posterior given the data and the queries ``pending``, whose results are awaited."""
        ...

    def untransform(self, mean: npt.ArrayLike, variance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation in the values' units, from a posterior's mean and variance."""
        ...


@runtime_checkable
class PoolSurrogate(Surrogate, Protocol):
    """A surrogate whose posterior over a whole pool can be conditioned on points as they are chosen."""

    def pool_posterior(
        self,
        pool: PoolSpace,
        indices: npt.NDArray[np.int64] | None = None,
        pending: Sequence[Item] = (),
    ) -> Posterior:
        """Posterior at the pool's candidates (or those at ``indices``), conditioned on the queries ``pending``."""
        ...

    def untransform(self, mean: npt.ArrayLike, variance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation in the values' units, from a pool posterior's mean and variance."""
        ...
