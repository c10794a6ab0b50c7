"""The Gaussian-process posterior over many candidates, conditioned on queries one by one.

With training strings X (n of them), candidates P (N), prior covariance k, noise s2 and the Cholesky factor L of
k(X, X) + s2 I, the posterior at the candidates is mean = c + k(P, X) alpha and variance = k(P, P) - colsum(V * V) with
V = L^-1 k(X, P). Observing one more candidate b (with noise, its value unknown) appends one row to V,

    w = (k(b, P) - l^T V) / sqrt(k(b, b) + s2 - l^T l),   l = L^-1 k(X, b),

and leaves the mean alone, so a batch of B candidates costs B prior-covariance columns and B matrix-vector products.
Memory: one N-vector of float64 for every training or conditioned string and draw of the parameters (8 D N (n + B)
bytes) and blocks of fixed size. Where that is too much, `seqopt.models.streamed_posterior` takes its place.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
    Moss, H. B. et al. (2021). GIBBON: General-purpose Information-Based Bayesian OptimisatioN. JMLR 22(235), section 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqopt.data.query import Item
from seqopt.encoding import Encoded
from seqopt.models.anchors import EncodedPoints, encoded_points, prior_with_anchors, solved_anchors
from seqopt.models.column_cache import ColumnCache, explained
from seqopt.models.gp_state import BatchedGPState, Conditioning
from seqopt.posteriors import AnchorMoments, Anchors, Moments


class PoolPosterior:
    """Posterior at N candidates, with their prior covariances in memory; implements `seqopt.posteriors.Posterior`.

    Args:
        conditioning: The fitted processes, with the strings whose results are awaited.
        cache: Prior covariances with the candidates, at the same kernel parameters.
        candidate_keys: Keys of the candidates, so that a conditioned one can be found again as a training string.
    """

    def __init__(self, conditioning: Conditioning, cache: ColumnCache, candidate_keys: Sequence[str]) -> None:
        state = conditioning.state
        self._cache = cache
        self._candidate_keys = candidate_keys
        self._anchored: tuple[Anchors, Tensor] | None = None
        data = state.unconditioned
        rows = cache.rows(state.keys, state.encoded)
        scale = state.scale[:, None]
        mean = torch.stack([alpha @ rows[:, draw] for draw, alpha in enumerate(state.alpha)])
        lost = torch.stack([explained(data.inverse[d] * state.scale[d], rows[:, d]) for d in range(state.draws)])
        variance = torch.maximum(scale * cache.prior_variance - lost, state.floor[:, None])
        self._given_data = state.mean(candidate_keys) + scale * mean, variance
        self._condition(conditioning)

    def conditioned_on(self, conditioning: Conditioning) -> PoolPosterior:
        """The posterior at the same candidates given the same data and other strings without values."""
        found = object.__new__(PoolPosterior)
        found.__dict__.update(self.__dict__)
        found._condition(conditioning)
        return found

    @property
    def state(self) -> BatchedGPState:
        """The fitted processes."""
        return self._conditioning.state

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._conditioning.mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.best_observed

    def given(self, index: int) -> PoolPosterior:
        """The posterior given an outcome, of unknown value, of the candidate at ``index``."""
        found = object.__new__(PoolPosterior)
        found.__dict__.update(self.__dict__)
        found._append(self._candidate_keys[index], self._cache.candidates.take([index]))
        return found

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean (D x k) and noiseless covariance (D x k x k) given the data; the n training strings first if asked."""
        state = self.state
        prior = state.scale[:, None, None] * self._cache.among(indices.numpy())
        points = self._cache.candidates.take(indices.numpy())
        return state.joint(self._solved(indices), prior, self._moments.mean[:, indices], include_observed, points)

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances given the data between all candidates and some, D x N x k: 8 D N k bytes."""
        state, solved = self.state, self._solved(indices)
        found = torch.empty(state.draws, len(self._candidate_keys), len(indices), dtype=torch.float64)
        weights = self.state.unconditioned.inverse.mT @ solved
        for column, index in enumerate(indices.tolist()):
            row = self._cache.row(self._candidate_keys[index], self._cache.candidates.take([index]))
            rows = self._cache.rows(state.keys, state.encoded)
            for draw in range(state.draws):
                found[draw, :, column] = state.scale[draw] * (row[draw] - weights[draw, :, column] @ rows[:, draw])
        return found

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`."""
        conditioning, state = self._conditioning, self.state
        mean = self._moments.outcome_mean
        if conditioning.count == len(state.keys):
            return mean
        rows, weights = self._cache.rows(conditioning.keys, conditioning.encoded), conditioning.belief
        return mean + torch.stack([state.scale[d] * (weights[d] @ rows[:, d]) for d in range(state.draws)])

    def anchors(self, indices: Tensor, observed: Tensor) -> EncodedPoints:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        return encoded_points(self.state, self._candidate_keys, self._cache.candidates, indices, observed)

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`: 8 D S N bytes, kept for further calls."""
        conditioning, state = self._conditioning, self.state
        found = solved_anchors(conditioning, anchors, pending)
        if self._anchored is None or self._anchored[0] is not anchors:
            prior = prior_with_anchors(state, anchors, self._cache.candidates, self._cache.own)
            self._anchored = anchors, prior
        rows = self._cache.rows(conditioning.keys, conditioning.encoded)
        weights = state.scale[:, None, None] * (conditioning.inverse.mT @ found.solved).mT
        explained_by = torch.stack([weights[d] @ rows[:, d] for d in range(state.draws)])
        return AnchorMoments(found.mean, found.variance, self._anchored[1] - explained_by)

    def _condition(self, conditioning: Conditioning) -> None:
        state = conditioning.state
        mean, variance = self._given_data
        left = variance
        if conditioning.count > len(state.keys):
            rows = self._cache.rows(conditioning.keys, conditioning.encoded)
            last = conditioning.inverse[:, len(state.keys) :] * state.scale[:, None, None]
            lost = torch.stack([(last[d] @ rows[:, d]).square_().sum(0) for d in range(state.draws)])
            left = torch.maximum(variance - lost, state.floor[:, None])
        self._conditioning = conditioning
        self._moments = Moments.of_target(mean, variance, left, state.noise_variance)

    def _solved(self, indices: Tensor) -> Tensor:
        """L^-1 k(X, P) at some candidates, D x n x k."""
        state = self.state
        rows = self._cache.rows(state.keys, state.encoded)[..., indices].transpose(0, 1)
        return torch.linalg.solve_triangular(state.cholesky, state.scale[:, None, None] * rows, upper=False)

    def _append(self, key: Item, encoded: Encoded) -> None:
        before, state = self._conditioning, self.state
        own = self._cache.row(key, encoded)
        rows = self._cache.rows(before.keys, before.encoded)
        self._conditioning, weights, corner = before.given(key, encoded)
        update = own  # a copy, which may be changed
        for draw in range(state.draws):
            update[draw] -= weights[draw] @ rows[:, draw]
        update *= (state.scale / corner)[:, None]
        left = torch.maximum(self._moments.conditional_variance - update.square(), state.floor[:, None])
        self._moments = self._moments.given(left)
