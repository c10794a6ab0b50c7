"""The Gaussian-process posterior over so many candidates that covariances with all of them are not kept.

With n training strings and N candidates, `PoolPosterior` keeps 8 D N n bytes: 4 GB for 2,000 and 250,000. Here one pass
over blocks of candidates gives means and variances given the data, and nothing of that size is kept.

Filling a batch asks for more: the variance given the elements chosen so far, which would cost another pass for each of
them. But such a variance only falls as more is observed, so the one that was last computed is an upper bound; and for
an acquisition function that does not fall as the variance grows it gives an upper bound of the score. A candidate whose
bound is below the exact score of another cannot be the next element, and need not be looked at. The choice is that of
`PoolPosterior`, though few candidates are looked at again (accelerated greedy algorithm, Minoux 1978): `LazyPosterior`.

Covariances of a costly kernel are kept on disk (`seqopt.models.stored_columns`) until the kernel's parameters change,
and computed in single precision for that one pass where this is safe: the inverse of a covariance matrix with little
noise amplifies what single precision leaves out. Means and variances of `VERIFIED` candidates are computed in both
precisions before the pass, and those of the candidates of least variance and largest mean after it. Where they differ
by more than `TOLERANCE` (before the pass by a fifth of it, since these are few) of the standard deviation or of the
variance, the pass is made in double precision, at twice the time and twice the disk. Candidates that are looked at
again are always computed in double precision.

Memory: 8 D n^2 bytes for the inverse, 8 D (n + c) `ACTIVE` bytes for covariances of the candidates that were looked at,
with c elements chosen or pending, blocks of `BLOCK_ELEMENTS` numbers, and some N-vectors.

References:
    Minoux, M. (1978). Accelerated greedy algorithms for maximizing submodular set functions. Optimization Techniques,
        Lecture Notes in Control and Information Sciences 7, 234-243.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import Encoded
from seqopt.models.anchors import EncodedPoints, encoded_points, prior_with_anchors, solved_anchors
from seqopt.models.column_cache import explained
from seqopt.models.gp_state import BatchedGPState, Conditioning, stacked
from seqopt.models.stored_columns import StoredColumns
from seqopt.posteriors import AnchorMoments, Anchors, Moments, Posterior

logger = logging.getLogger(__name__)

BLOCK_ELEMENTS = 1 << 24
"""Prior covariances held at once during a pass (128 MiB)."""

STORED_BLOCK = 1 << 12
"""Candidates in a block whose covariances are kept on disk."""

REFINED = 1024
"""Candidates whose bounds are replaced by exact variances at once."""

ACTIVE = 1 << 14
"""Candidates whose covariances are kept while a batch is filled."""

VERIFIED = 64
"""Candidates on which single precision is held against double precision, at a time."""

TOLERANCE = 0.05
"""Largest error of a mean in posterior standard deviations, and of a variance relative to itself."""


class StreamedPosterior:
    """Posterior at N candidates, computed in blocks; implements `seqopt.posteriors.Posterior`.

    Args:
        conditioning: The fitted processes, with the strings whose results are awaited.
        candidates: The N candidates.
        candidate_keys: Their keys.
        store: Keeps the covariances of a costly kernel.
        precision: Of a costly kernel; by default single precision where that does.
    """

    def __init__(
        self,
        conditioning: Conditioning,
        candidates: Encoded,
        candidate_keys: Sequence[str],
        store: StoredColumns | None = None,
        precision: type[np.floating] | None = None,
    ) -> None:
        self.conditioning = conditioning
        self.candidates = candidates
        self.candidate_keys = candidate_keys
        self._store = store
        self._self = conditioning.state.evaluator.self_similarity(candidates)
        self.precision = self._start_precision() if precision is None else precision
        mean, variance = self._given_data()
        if precision is None and self.precision == np.float32 and not self._is_precise(mean, variance):
            logger.debug("single precision is not enough for this posterior: computing again in double precision")
            self.precision = np.float64
            mean, variance = self._given_data()
        self.given_data = Moments.of_target(mean, variance, variance, conditioning.state.noise_variance)

    @property
    def moments(self) -> Moments:
        """Those of all candidates: given pending or chosen strings, another pass over them when first asked for."""
        return self._exact

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self.conditioning.mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.best_observed

    @property
    def state(self) -> BatchedGPState:
        """The fitted processes."""
        return self.conditioning.state

    def given(self, index: int) -> StreamedPosterior:
        """The posterior given an outcome, of unknown value, of the candidate at ``index``."""
        return self.conditioned_on(
            self.conditioning.given(self.candidate_keys[index], self.candidates.take([index]))[0]
        )

    def conditioned_on(self, conditioning: Conditioning) -> StreamedPosterior:
        """The posterior at the same candidates given the same data and other strings without values."""
        found = object.__new__(StreamedPosterior)
        found.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_exact"})
        found.conditioning = conditioning
        return found

    def lazy(self) -> LazyPosterior:
        """The same posterior, whose conditional variances are worked out only where they decide."""
        return LazyPosterior(self)

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean (D x k) and noiseless covariance (D x k x k) given the data; the n training strings first if asked."""
        chosen = indices.numpy()
        rows = self.columns(chosen)[:, : len(self.state.keys)]
        solved = torch.linalg.solve_triangular(self.state.cholesky, rows, upper=False)
        mean = self.given_data.mean[:, indices]
        return self.state.joint(solved, self._among(chosen), mean, include_observed, self.candidates.take(chosen))

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances given the data between all candidates and some, D x N x k, in blocks."""
        state, n = self.state, len(self.state.keys)
        chosen = self.candidates.take(indices.numpy())
        own = None if self._self is None else self._self[..., indices.numpy()]
        solved = torch.linalg.solve_triangular(state.cholesky, self.columns(indices.numpy())[:, :n], upper=False)
        weights = state.unconditioned.inverse.mT @ solved
        found = torch.empty(state.draws, len(self.candidates), len(indices), dtype=torch.float64)
        for block in self.blocks(len(self.candidates)):
            selves = None if self._self is None else self._self[..., block]
            raw = state.evaluator.cross(self.candidates.take(block), chosen, selves, own)
            prior = state.scale[:, None, None] * stacked(raw, state.draws)
            found[:, block] = prior - self.columns(block)[:, :n].mT @ weights
        return found

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`: another pass over the candidates."""
        found = self.given_data.outcome_mean
        if self.conditioning.count == len(self.state.keys):
            return found
        found, weights = found.clone(), self.conditioning.belief[:, None]
        for block in self.blocks(len(self.candidates)):
            found[:, block] += (weights @ self.columns(block))[:, 0]
        return found

    def anchors(self, indices: Tensor, observed: Tensor) -> EncodedPoints:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        return encoded_points(self.state, self.candidate_keys, self.candidates, indices, observed)

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`: another pass over the candidates, and 8 D S N bytes."""
        found = solved_anchors(self.conditioning, anchors, pending)
        weights = (self.conditioning.inverse.mT @ found.solved).mT
        covariance = torch.empty(*anchors.places.shape, len(self.candidates), dtype=torch.float64)
        for block in self.blocks(len(self.candidates)):
            own = None if self._self is None else self._self[..., block]
            prior = prior_with_anchors(self.state, anchors, self.candidates.take(block), own)
            covariance[:, :, block] = prior - weights @ self.columns(block)
        return AnchorMoments(found.mean, found.variance, covariance)

    def columns(self, chosen: npt.NDArray[np.int64] | slice, conditioning: Conditioning | None = None) -> Tensor:
        """Prior covariances, output scale included, of all conditioned strings with some candidates, D x m x k."""
        own = None if self._self is None else self._self[..., chosen]
        return (conditioning or self.conditioning).prior_rows(self.candidates.take(chosen), own)

    def blocks(self, count: int, size: int | None = None) -> Iterator[slice]:
        """Slices of so many candidates that a block of covariances stays within its bounds."""
        size = max(1, BLOCK_ELEMENTS // (self.state.draws * self.conditioning.count)) if size is None else size
        for start in range(0, count, size):
            yield slice(start, start + size)

    def moments_of(self, chosen: npt.NDArray[np.int64], rows: Tensor) -> Moments:
        """Moments of some candidates in double precision, from their ``columns``."""
        state, n = self.state, len(self.state.keys)
        own = None if self._self is None else self._self[..., chosen]
        prior = stacked(state.evaluator.variance(self.candidates.take(chosen), own)[..., None, :], state.draws)[:, 0]
        keys = [self.candidate_keys[int(index)] for index in chosen]
        mean = state.mean(keys) + (state.alpha[:, None] @ rows[:, :n])[:, 0]
        data = self.state.unconditioned.inverse
        squares = torch.stack([explained(part, row[:n]) for part, row in zip(data, rows, strict=True)])
        floor = state.floor[:, None]
        variance = torch.maximum(state.scale[:, None] * prior - squares, floor)
        left = torch.maximum(variance - self.lost(rows), floor)
        return Moments.of_target(mean, variance, left, state.noise_variance)

    def lost(self, rows: Tensor) -> Tensor:
        """By how much pending and chosen strings reduce the variance of candidates, D x k, from their ``columns``."""
        last = self._inverse[:, len(self.state.keys) :]
        return (last @ rows).square_().sum(1)

    @property
    def _inverse(self) -> Tensor:
        return self.conditioning.inverse

    @cached_property
    def _exact(self) -> Moments:
        if self.conditioning.count == len(self.state.keys):
            return self.given_data
        left = torch.empty_like(self.given_data.variance)
        for block in self.blocks(len(self.candidates)):
            lost = self.lost(self.columns(block))
            left[:, block] = torch.maximum(self.given_data.variance[:, block] - lost, self.state.floor[:, None])
        return self.given_data.given(left)

    def _among(self, indices: npt.NDArray[np.int64]) -> Tensor:
        own = None if self._self is None else self._self[..., indices]
        prior = self.state.evaluator.cross(self.candidates.take(indices), None, own)
        return self.state.scale[:, None, None] * stacked(prior, self.state.draws)

    def _given_data(self) -> tuple[Tensor, Tensor]:
        state = self.state
        data = state.unconditioned
        mean = torch.empty(state.draws, len(self.candidates), dtype=torch.float64)
        prior = stacked(state.evaluator.variance(self.candidates, self._self)[..., None, :], state.draws)[:, 0]
        variance = state.scale[:, None] * prior
        # A string that was measured several times has one column.
        number = {key: index for index, key in enumerate(dict.fromkeys(state.keys))}
        first = {key: index for index, key in reversed(list(enumerate(state.keys)))}
        points = state.encoded.take(np.array([first[key] for key in number]))
        repeated = None if len(number) == len(state.keys) else [number[key] for key in state.keys]
        costly = state.evaluator.costly and state.draws == 1
        for block in self.blocks(len(self.candidates), STORED_BLOCK if costly else None):
            if costly:
                rows = self._costly_columns([str(key) for key in number], points, block)[None].double()
            else:
                rows = stacked(self.raw_columns(points, block, np.float64), state.draws)
            rows = rows if repeated is None else rows[:, repeated]
            for draw in range(state.draws):
                scale = state.scale[draw]
                mean[draw, block] = scale * (state.alpha[draw] @ rows[draw])
                variance[draw, block] -= explained(data.inverse[draw] * scale, rows[draw])
        return state.mean(self.candidate_keys) + mean, torch.maximum(variance, state.floor[:, None])

    def raw_columns(
        self, points: Encoded, chosen: npt.NDArray[np.int64] | slice, dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.floating]:
        """Prior covariances of ``points`` with some candidates, without output scale."""
        evaluator = self.state.evaluator
        own = None if self._self is None else self._self[..., chosen]
        return evaluator.cross(points, self.candidates.take(chosen), evaluator.self_similarity(points), own, dtype)

    def _start_precision(self) -> type[np.floating]:
        """Single precision for a costly kernel, unless some candidates say at once that it will not do."""
        if not self.state.evaluator.costly or self.state.draws > 1:
            return np.float64
        count = len(self.candidates)
        indices = np.unique(np.linspace(0, count - 1, min(VERIFIED, count)).astype(np.int64))
        single = self._moments_in(indices, np.float32)
        return np.float32 if self._error(indices, *single) <= TOLERANCE / 5 else np.float64

    def _is_precise(self, mean: Tensor, variance: Tensor) -> bool:
        """Whether single precision has done where it is hardest: at small variances, and at large means."""
        count = min(VERIFIED, len(self.candidates))
        chosen = torch.cat([torch.topk(-variance[0], count).indices, torch.topk(mean[0], count).indices])
        return self._error(chosen.numpy(), mean[0, chosen], variance[0, chosen]) <= TOLERANCE

    def _error(self, indices: npt.NDArray[np.int64], mean: Tensor, variance: Tensor) -> float:
        """Largest error of means in standard deviations, and of variances relative to themselves."""
        exact_mean, exact_variance = self._moments_in(indices, np.float64)
        of_mean = (mean - exact_mean).abs() / exact_variance.sqrt()
        of_variance = (variance - exact_variance).abs() / exact_variance
        return float(torch.maximum(of_mean, of_variance).max()) if len(indices) else 0.0

    def _moments_in(self, indices: npt.NDArray[np.int64], precision: type[np.floating]) -> tuple[Tensor, Tensor]:
        """Mean and variance given the data of some candidates (one draw), from covariances of a precision."""
        state, scale = self.state, self.state.scale[0]
        rows = scale * torch.from_numpy(self.raw_columns(state.encoded, indices, precision)).double()
        own = None if self._self is None else self._self[..., indices]
        prior = scale * torch.from_numpy(state.evaluator.variance(self.candidates.take(indices), own))
        lost = explained(state.unconditioned.inverse[0], rows)
        own_mean = state.mean([self.candidate_keys[int(index)] for index in indices])[0]
        return own_mean + state.alpha[0] @ rows, (prior - lost).clamp_min(float(state.floor[0]))

    def _costly_columns(self, keys: list[str], points: Encoded, block: slice) -> Tensor:
        """Prior covariances of ``points`` with a block of candidates, from the store if they are there."""
        width = len(range(*block.indices(len(self.candidates))))

        def compute(wanted: list[int]) -> npt.NDArray[np.floating]:
            chosen = points if len(wanted) == len(points) else points.take(np.array(wanted))
            return self.raw_columns(chosen, block, self.precision)

        if self._store is None:
            return torch.from_numpy(compute(list(range(len(points)))))
        return torch.from_numpy(self._store.rows(f"{block.start:09d}", width, keys, compute, self.precision))


class LazyPosterior:
    """A `StreamedPosterior` while a batch is filled from it: conditional variances are exact only where they decide.

    For acquisition functions whose score does not fall as a candidate's own conditional variance grows. It changes as
    candidates are chosen and refined; what it hands out does not.

    Args:
        posterior: Where it begins.
    """

    def __init__(self, posterior: StreamedPosterior) -> None:
        self._posterior = posterior
        self._data = posterior.given_data
        self._bounds = self._data.variance
        # How many strings without values each bound takes into account; -1 where it may be in single precision.
        unseen = -1 if posterior.precision == np.float32 else 0
        self._known = np.full(len(posterior.candidates), unseen, dtype=np.int32)
        self._active: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._rows = torch.empty(posterior.state.draws, posterior.conditioning.count, 0, dtype=torch.float64)

    def bounds(self) -> Posterior:
        """The posterior with upper bounds in place of conditional variances, exact where `is_exact`."""
        return BoundedView(self._posterior, self._data.given(self._bounds))

    def is_exact(self, index: int) -> bool:
        """Whether the moments of a candidate are more than bounds."""
        return int(self._known[index]) == self._posterior.conditioned_mean.shape[-1]

    def refine(self, scores: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], Posterior]:
        """Make the moments exact of the `REFINED` candidates of largest ``scores`` (N) among those that are not.

        Returns:
            Which candidates these are, and the posterior at them.
        """
        current = self._posterior.conditioned_mean.shape[-1]
        stale = np.flatnonzero(self._known < current)
        if len(stale) > REFINED:
            largest = np.argpartition(-np.nan_to_num(scores[stale], nan=np.inf), REFINED)[:REFINED]
            stale = np.sort(stale[largest])
        rows = self._posterior.columns(stale)
        if self._posterior.precision == np.float32:
            found = self._posterior.moments_of(stale, rows)
            self._data = _replaced(self._data, stale, found)
        else:
            known = self._data.take(torch.from_numpy(stale))
            floor = self._posterior.state.floor[:, None]
            found = known.given(torch.maximum(known.variance - self._posterior.lost(rows), floor))
        self._bounds = self._bounds.index_copy(-1, torch.from_numpy(stale), found.conditional_variance)
        self._known[stale] = current
        if len(self._active) + len(stale) > ACTIVE:
            self._active, self._rows = self._active[:0], self._rows[..., :0]
        self._active = np.concatenate([self._active, stale])
        self._rows = torch.cat([self._rows, rows], -1)
        return stale, BoundedView(self._posterior, found, stale)

    def choose(self, index: int) -> None:
        """Condition on an outcome, of unknown value, of the candidate at ``index``.

        Variances of candidates that were looked at stay exact; those of all others become bounds.
        """
        before = self._posterior
        encoded = before.candidates.take([index])
        conditioning, weights, corner = before.conditioning.given(before.candidate_keys[index], encoded)
        self._posterior = before.conditioned_on(conditioning)
        if not len(self._active):
            self._rows = torch.empty(before.state.draws, self._posterior.conditioning.count, 0, dtype=torch.float64)
            return
        state = before.state
        own = state.scale[:, None, None] * stacked(before.raw_columns(encoded, self._active), state.draws)
        update = (own[:, 0] - (weights[:, None] @ self._rows)[:, 0]) / corner[:, None]
        active = torch.from_numpy(self._active)
        exact = torch.maximum(self._bounds[:, active] - update.square(), state.floor[:, None])
        self._bounds = self._bounds.index_copy(-1, active, exact)
        self._known[self._active] = self._posterior.conditioned_mean.shape[-1]
        self._rows = torch.cat([self._rows, own], 1)

    def moments_at(self, index: int) -> Moments:
        """Moments of one candidate, as far as they are known."""
        return self._data.given(self._bounds).take(torch.tensor([index]))


class BoundedView:
    """Moments of some or all candidates of a posterior; implements `seqopt.posteriors.Posterior`.

    Args:
        posterior: Whose candidates they are.
        moments: Of the candidates looked at.
        indices: Which these are; by default all.
    """

    def __init__(
        self, posterior: StreamedPosterior, moments: Moments, indices: npt.NDArray[np.int64] | None = None
    ) -> None:
        self._posterior = posterior
        self._indices = None if indices is None else torch.from_numpy(indices)
        self.moments = moments
        self.observed_mean = posterior.observed_mean
        self.conditioned_mean = posterior.conditioned_mean
        self.best_observed = posterior.best_observed

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """See `StreamedPosterior.joint`."""
        return self._posterior.joint(self._all(indices), include_observed)

    def cross(self, indices: Tensor) -> Tensor:
        """See `StreamedPosterior.cross`."""
        found = self._posterior.cross(self._all(indices))
        return found if self._indices is None else found[:, self._indices]

    def given(self, index: int) -> StreamedPosterior:
        """The posterior at all candidates given an outcome of one; see `StreamedPosterior.given`."""
        return self._posterior.given(int(self._all(torch.tensor([index]))[0]))

    def _all(self, indices: Tensor) -> Tensor:
        return indices if self._indices is None else self._indices[indices]


def _replaced(moments: Moments, indices: npt.NDArray[np.int64], found: Moments) -> Moments:
    chosen = torch.from_numpy(indices)
    mean = moments.mean.index_copy(-1, chosen, found.mean)
    variance = moments.variance.index_copy(-1, chosen, found.variance)
    return Moments.of_target(mean, variance, variance, moments.residual_variance)
