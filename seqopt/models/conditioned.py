"""Gaussian-process posteriors at any queries, for several draws of the kernel parameters at once.

The formulas are those of `seqopt.models.gp_state`. A query that is measured otherwise than its target (at a lower
fidelity, on a plate of its own) has two columns of V, one for its outcome and one for its target, whose products are
the covariances of both. Memory: 8 D (n + c) N bytes for N queries, and as much again while it is computed;
`BlockwisePosterior` keeps 24 D N bytes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.query import Item, key_of, targets_of
from seqopt.encoding import Encoded, StringEncoder
from seqopt.errors import ModelError
from seqopt.models.anchors import EncodedPoints, encoded_points, prior_with_anchors, solved_anchors
from seqopt.models.covariance import FloatArray
from seqopt.models.gp_state import BatchedGPState, Conditioning, stacked
from seqopt.models.protocols import ConditionedProcess, MeasurementSurrogate, StringSurrogate
from seqopt.posteriors import AnchoredPosterior, AnchorMoments, Anchors, Moments, Posterior

SAFE_NOISE = 1e-4
"""Least variance of noise, in output scales, at which covariances with a search's strings may be of single precision.

An error of 1e-7 in a covariance is then one of 1e-3 output scales in a mean or a variance at most, and of less as a
rule: what is known of a string that is scored comes from many."""


class GaussianProcess:
    """The posterior given the data and some queries without values yet; implements
    `seqopt.models.ConditionedProcess`.

    It is immutable: `given` returns another one.

    Args:
        state: The fitted processes.
        encoder: Encodes queries.
        pending: Queries whose results are awaited.
    """

    def __init__(self, state: BatchedGPState, encoder: StringEncoder, pending: Iterable[Item] = ()) -> None:
        self.encoder = encoder
        self.conditioning = state.unconditioned
        for item in pending:
            self.conditioning = self._given(item)

    @property
    def state(self) -> BatchedGPState:
        """The fitted processes."""
        return self.conditioning.state

    def best_observed_keys(self, n: int) -> list[str]:
        """The ``n`` distinct evaluated strings of largest posterior mean, best first."""
        order = torch.argsort(self.state.observed_mean.mean(0), descending=True, stable=True)
        return list(dict.fromkeys(key_of(self.state.keys[int(index)]) for index in order))[:n]

    def at(self, items: Sequence[Item]) -> StringsPosterior:
        """Posterior at N queries."""
        return StringsPosterior(self, items)

    def roughly(self, items: Sequence[Item]) -> StringsPosterior:
        """Posterior at N queries, from covariances that a costly kernel computes in single precision.

        The inverse of a covariance matrix with little noise amplifies what that leaves out: see `SAFE_NOISE`.
        """
        state = self.state
        safe = bool((state.observed_noise.amin(-1) >= SAFE_NOISE * state.scale).all())
        return StringsPosterior(self, items, np.float32 if state.evaluator.costly and safe else np.float64)

    def functions(self, items: Sequence[Item]) -> tuple[Tensor, Tensor]:
        """Mean, D x N, and noiseless covariance, D x N x N, of queries in their own contexts, given the data.

        Unlike `StringsPosterior.joint`, which is of targets, it says how contexts differ. A plain string is its target.
        """
        columns = _Columns(self.conditioning, self.encoder.encode(items), items)
        state, solved = self.state, columns.solved[:, : len(self.state.keys)]
        prior = stacked(state.evaluator.cross(columns.encoded, None, columns.own), state.draws)
        return columns.mean, state.scale[:, None, None] * prior - solved.mT @ solved

    def given(self, item: Item) -> GaussianProcess:
        """The posterior given an outcome, of unknown value, of one query."""
        found = object.__new__(GaussianProcess)
        found.encoder = self.encoder
        found.conditioning = self._given(item)
        return found

    def _given(self, item: Item) -> Conditioning:
        target = targets_of([item])
        encoded = None if target is None else self.encoder.encode(target)
        return self.conditioning.given(item, self.encoder.encode([item]), encoded)[0]


class StringsPosterior:
    """Posterior at N queries; implements `seqopt.posteriors.Posterior` with a leading dimension of D draws.

    Args:
        process: What it is conditioned on.
        items: The queries.
        dtype: What the kernel computes covariances with the data in, float64 or float32.
    """

    def __init__(self, process: GaussianProcess, items: Sequence[Item], dtype: npt.DTypeLike = np.float64) -> None:
        conditioning = process.conditioning
        self._process = process
        self._items = items
        self._chosen: tuple[int, ...] = ()
        self._grown: GaussianProcess | None = process
        self._anchored: tuple[Anchors, Tensor] | None = None
        self._conditioning = conditioning
        self._n = len(conditioning.state.keys)
        self._outcome = _Columns(conditioning, process.encoder.encode(items), items, dtype)
        self._noise = conditioning.state.noise_at(items)
        targets = targets_of(items)
        self._target = self._outcome
        if targets is not None:
            self._target = _Columns(conditioning, process.encoder.encode(targets), targets, dtype)
        self._conditioned_mean = conditioning.mean
        self._moments = self._given_data()

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._conditioning.state.observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._conditioned_mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self._conditioning.state.best_observed

    def given(self, index: int) -> StringsPosterior:
        """The posterior given an outcome, of unknown value, of the query at ``index``."""
        state = self._conditioning.state
        link = self._outcome.solved[..., index]
        own = self._outcome.prior_with(self._outcome, index)
        noise = self._noise[:, index] if self._noise.shape[1] > 1 else self._noise[:, 0]
        corner = (own[:, index] + noise - link.square().sum(-1)).clamp_min(state.floor[:, None][:, 0])
        root = corner.sqrt()[:, None]
        outcome = (own - (link[:, None] @ self._outcome.solved)[:, 0]) / root
        found = object.__new__(StringsPosterior)
        found.__dict__.update(self.__dict__)
        found._outcome = self._outcome.extended(outcome)
        found._chosen, found._grown = (*self._chosen, index), None
        floor = state.floor[:, None]
        if self._target is self._outcome:
            found._target = found._outcome
            left = torch.maximum(self._moments.conditional_variance - outcome.square(), floor)
            found._moments = self._moments.given(left)
        else:
            crossed = self._target.prior_with(self._outcome, index)
            target = (crossed - (link[:, None] @ self._target.solved)[:, 0]) / root
            found._target = self._target.extended(target)
            left = torch.maximum(self._moments.conditional_variance - target.square(), floor)
            remaining = torch.maximum(self._moments.remaining_variance - outcome.square(), self._noise + floor)
            found._moments = self._moments.given(left, remaining)
        found._conditioned_mean = torch.cat([self._conditioned_mean, self._moments.mean[:, index, None]], -1)
        return found

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`."""
        innovations = self._all_given().innovations
        return self._outcome.mean + (innovations[:, None] @ self._outcome.solved[:, self._n :])[:, 0]

    def anchors(self, indices: Tensor, observed: Tensor) -> EncodedPoints:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        keys = [key_of(item) for item in self._items]
        return encoded_points(self._conditioning.state, keys, self._target.encoded, indices, observed)

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        found = solved_anchors(self._all_given(), anchors, pending)
        if self._anchored is None or self._anchored[0] is not anchors:
            state, columns = self._conditioning.state, self._target
            self._anchored = anchors, prior_with_anchors(state, anchors, columns.encoded, columns.own)
        covariance = self._anchored[1] - found.solved.mT @ self._target.solved
        return AnchorMoments(found.mean, found.variance, covariance)

    def _all_given(self) -> Conditioning:
        """What it is conditioned on, the queries that were chosen of these included: worked out when asked for."""
        if self._grown is None:
            self._grown = self._process
            for index in self._chosen:
                self._grown = self._grown.given(self._items[index])
        return self._grown.conditioning

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean (D x k) and noiseless covariance (D x k x k) of targets given the data; the n training queries first if
        asked.
        """
        state, chosen = self._conditioning.state, self._target.encoded.take(indices.numpy())
        prior = stacked(state.evaluator.cross(chosen, None, self._target.own_of(indices.numpy())), state.draws)
        prior = state.scale[:, None, None] * prior
        solved = self._target.solved[:, : self._n, indices]
        return state.joint(solved, prior, self._moments.mean[:, indices], include_observed, chosen)

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances of targets given the data between all queries and some, D x N x k."""
        columns, data = self._target, self._target.solved[:, : self._n]
        prior = torch.stack([columns.prior_with(columns, int(index)) for index in indices], -1)
        return prior - data.mT @ data[..., indices]

    def _given_data(self) -> Moments:
        state, n = self._conditioning.state, self._n
        floor = state.floor[:, None]

        def variances(columns: _Columns) -> tuple[Tensor, Tensor]:
            squares = columns.solved.square()
            given_data = torch.maximum(columns.prior_variance - squares[:, :n].sum(1), floor)
            if squares.shape[1] == n:
                return given_data, given_data
            return given_data, torch.maximum(given_data - squares[:, n:].sum(1), floor)

        variance, conditional = variances(self._target)
        mean = self._target.mean
        if self._target is self._outcome:
            return Moments.of_target(mean, variance, conditional, self._noise)
        noise = self._noise
        own, left = variances(self._outcome)
        between = (self._outcome.solved[:, :n] * self._target.solved[:, :n]).sum(1)
        covariance = _paired(self._outcome, self._target) - between
        residual = (own - covariance.square() / variance).clamp_min(0.0) + noise
        return Moments(mean, variance, self._outcome.mean, own + noise, covariance, residual, conditional, left + noise)


class _Columns:
    """V and prior moments at N queries."""

    def __init__(
        self, conditioning: Conditioning, encoded: Encoded, items: Sequence[Item], dtype: npt.DTypeLike = np.float64
    ) -> None:
        state = conditioning.state
        self.state = state
        self.encoded = encoded
        self.own = state.evaluator.self_similarity(encoded)
        rows = conditioning.prior_rows(encoded, self.own, dtype)
        self.mean = state.mean(items) + (state.alpha[:, None] @ rows[:, : len(state.keys)])[:, 0]
        self.solved = conditioning.inverse @ rows
        variance = stacked(state.evaluator.variance(encoded, self.own)[..., None, :], state.draws)[:, 0]
        self.prior_variance = state.scale[:, None] * variance

    def own_of(self, indices: Any) -> FloatArray | None:
        """What the kernel needs of some of the queries alone."""
        return None if self.own is None else self.own[..., indices]

    def prior_with(self, other: _Columns, index: int) -> Tensor:
        """Prior covariances of all queries with query ``index`` of another list, D x N."""
        chosen = other.encoded.take(np.array([index]))
        row = self.state.evaluator.cross(chosen, self.encoded, other.own_of([index]), self.own)
        return self.state.scale[:, None] * stacked(row, self.state.draws)[:, 0]

    def extended(self, row: Tensor) -> _Columns:
        """With one more row of V, D x N."""
        found = object.__new__(_Columns)
        found.__dict__.update(self.__dict__)
        found.solved = torch.cat([self.solved, row[:, None]], 1)
        return found


def _paired(first: _Columns, second: _Columns) -> Tensor:
    """Prior covariances of each query with the one at the same index of another list, D x N."""
    state = first.state
    found = state.evaluator.paired(first.encoded, second.encoded, first.own, second.own)
    return state.scale[:, None] * stacked(found[..., None, :], state.draws)[:, 0]


class BlockwisePosterior:
    """Posterior at many queries, of which only moments are kept; implements `seqopt.posteriors.Posterior`.

    Args:
        process: Gives the posterior of any queries.
        items: The N queries.
        block: Queries looked at at once.
    """

    def __init__(self, process: ConditionedProcess, items: Sequence[Item], block: int = 1000) -> None:
        self._process = process
        self._items = items
        self._block = block
        parts = [process.at(items[start : start + block]) for start in range(0, max(len(items), 1), block)]
        self._first = parts[0]
        fields = Moments.__dataclass_fields__
        self._moments = Moments(*(torch.cat([getattr(part.moments, name) for part in parts], -1) for name in fields))

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._first.observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._first.conditioned_mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self._first.best_observed

    def given(self, index: int) -> BlockwisePosterior:
        """The posterior given an outcome, of unknown value, of the query at ``index``; all blocks are computed anew."""
        return BlockwisePosterior(self._process.given(self._items[index]), self._items, self._block)

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and noiseless covariance at the queries ``indices``, computed anew; see `StringsPosterior.joint`."""
        chosen = self._process.at([self._items[int(index)] for index in indices])
        return chosen.joint(torch.arange(len(indices)), include_observed)

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`; computed anew."""
        return torch.cat([part.believed_mean() for part in self._parts()], -1)

    def anchors(self, indices: Tensor, observed: Tensor) -> Any:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        at = self._anchored(self._process.at([self._items[int(index)] for index in indices]))
        return at.anchors(torch.arange(len(indices)), observed)

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`; computed anew."""
        parts = [part.at_anchors(anchors, pending) for part in self._parts()]
        return AnchorMoments(parts[0].mean, parts[0].variance, torch.cat([part.covariance for part in parts], -1))

    def _parts(self) -> Iterator[AnchoredPosterior]:
        for start in range(0, max(len(self._items), 1), self._block):
            yield self._anchored(self._process.at(self._items[start : start + self._block]))

    def _anchored(self, posterior: Posterior) -> AnchoredPosterior:
        if not isinstance(posterior, AnchoredPosterior):
            raise ModelError(f"{type(posterior).__name__} has no covariances with points of other posteriors")
        return posterior

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances given the data between all queries and some, D x N x k."""
        chosen = [self._items[int(index)] for index in indices]
        parts = []
        for start in range(0, len(self._items), self._block):
            items = self._items[start : start + self._block]
            at = self._process.at([*items, *chosen])
            parts.append(at.cross(torch.arange(len(items), len(items) + len(chosen)))[:, : len(items)])
        return torch.cat(parts, 1)


def in_units_of(
    surrogate: StringSurrogate, items: Sequence[Item], mean: npt.ArrayLike, variance: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of outcomes, in the units in which each query is measured.

    Args:
        surrogate: Fitted; one that knows no units of levels has the same for all.
        items: N queries.
        mean: Standardised means of their outcomes, N.
        variance: Standardised variances, N.
    """
    own = getattr(surrogate, "untransform_outcomes", None)
    if own is None:
        return surrogate.untransform(mean, variance)
    found: tuple[FloatArray, FloatArray] = own(items, mean, variance)
    return found


def measurement_std(surrogate: object, strings: Sequence[str], std: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Standard deviation of a measurement, noise included, about what any surrogate predicts of each string.

    Args:
        surrogate: Fitted. Of one that says nothing of noise, it is that of the prediction. What one says of
            measurements (`seqopt.models.MeasurementSurrogate`) counts as far as it is more than the prediction and the
            noise at the fitted parameters: a measurement is less certain than the true value.
        strings: N strings.
        std: Noiseless standard deviation of the prediction at each, N.

    Returns:
        N, in the values' units.
    """
    known = np.asarray(std, dtype=np.float64)
    if isinstance(surrogate, MeasurementSurrogate):
        least = np.hypot(known, getattr(surrogate, "noise_std", 0.0))
        return np.maximum(np.asarray(surrogate.measurement_std(strings), dtype=np.float64), least)
    if not isinstance(surrogate, StringSurrogate) or not len(strings):
        return known
    noise = BlockwisePosterior(surrogate.conditioned(), strings).moments.residual_variance
    mean = noise.reshape(-1, len(strings)).mean(0).numpy()
    return np.hypot(known, np.asarray(surrogate.untransform(np.zeros_like(mean), mean)[1], dtype=np.float64))
