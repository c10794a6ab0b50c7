"""The Gaussian-process posterior over so many candidates that covariances with all of them are not kept.

With n training strings and N candidates, `PoolPosterior` keeps 8 N n bytes: 4 GB for 2,000 and 250,000. Here one pass
over blocks of candidates gives means and variances given the data, and nothing of that size is kept.

Filling a batch asks for more: the variance given the elements chosen so far, which would cost another pass for each of
them. But such a variance only falls as more is observed, so the one that was last computed is an upper bound; and for
an acquisition function that does not fall as the variance grows it gives an upper bound of the score. A candidate whose
bound is below the exact score of another cannot be the next element, and need not be looked at. The choice is that of
`PoolPosterior`, though few candidates are looked at again (accelerated greedy algorithm, Minoux 1978).

Covariances of a costly kernel are computed in single precision for that one pass, and kept on disk
(`seqopt.models.stored_columns`) until the kernel's parameters change. The inverse of a covariance matrix with little
noise amplifies what that leaves out, so means and variances of candidates that are looked at again are computed in
double precision, like all else. Single precision decides only which candidates these are.

Memory: 8 n^2 bytes for the inverse, 8 (n + c) `ACTIVE` bytes for covariances of the candidates that were looked at,
with c elements chosen or pending, blocks of `BLOCK_ELEMENTS` numbers, and some N-vectors.

References:
    Minoux, M. (1978). Accelerated greedy algorithms for maximizing submodular set functions. Optimization Techniques,
        Lecture Notes in Control and Information Sciences 7, 234-243.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import Encoded
from seqopt.models.pool_posterior import Conditioning, GaussianState, explained, joint
from seqopt.models.stored_columns import StoredColumns

BLOCK_ELEMENTS = 1 << 24
"""Prior covariances held at once during a pass (128 MiB)."""

STORED_BLOCK = 1 << 12
"""Candidates in a block whose covariances are kept on disk."""

REFINED = 1024
"""Candidates whose bounds are replaced by exact variances at once."""

ACTIVE = 1 << 14
"""Candidates whose covariances are kept while a batch is filled."""


class StreamedPosterior:
    """Posterior at N candidates, computed in blocks; implements `seqopt.models.Posterior`.

    ``conditional_variance`` is exact whenever it is read, which may cost a pass over all candidates. Between
    `use_bounds` and the end it holds upper bounds instead, and `refine` makes some of them exact.

    Args:
        state: The fitted process.
        candidates: The N candidates.
        candidate_keys: Their keys.
        pending: Keys of strings whose results are awaited; the posterior is conditioned on them from the start.
        pending_encoded: The same strings, encoded.
        store: Keeps the covariances of a costly kernel.

    Attributes:
        mean: Posterior mean, N.
        variance: Noiseless posterior variance given the data, N.
        noise_variance: Scalar tensor.
        observed_mean: Posterior mean at the training strings, n.
        best_observed: Largest training value.
    """

    def __init__(
        self,
        state: GaussianState,
        candidates: Encoded,
        candidate_keys: Sequence[str],
        pending: Sequence[str] = (),
        pending_encoded: Encoded | None = None,
        store: StoredColumns | None = None,
    ) -> None:
        self._state = state
        self._store = store
        self._candidates = candidates
        self._candidate_keys = candidate_keys
        self._self = state.evaluator.self_similarity(candidates)
        self._conditioning = Conditioning(state)
        self.noise_variance = torch.tensor(state.noise_variance, dtype=torch.float64)
        self.best_observed = float(state.targets.max())
        self.observed_mean = state.targets - state.observed_noise * state.alpha
        self._inverse = torch.linalg.inv(state.cholesky) * state.scale
        self.mean, self.variance = self._given_data()
        self._bounds = self.variance.clone()
        # How many points without values each bound takes into account; -1 where it is in single precision.
        self._known = np.full(len(candidates), -1 if state.evaluator.costly else 0, dtype=np.int32)
        self._bounded = False
        self._active: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._rows = torch.empty(len(state.keys), 0, dtype=torch.float64)
        for position in range(len(pending)):
            if pending_encoded is None:
                raise ValueError("pending_encoded is needed with pending")
            self._condition(pending_encoded.take([position]))

    @property
    def conditioned_mean(self) -> torch.Tensor:
        """Posterior mean given the data at the points conditioned on so far, in their order."""
        return self._conditioning.mean

    @property
    def conditional_variance(self) -> torch.Tensor:
        """Variance given also the pending points and those passed to `condition`, N; bounds after `use_bounds`."""
        if not self._bounded:
            stale = np.flatnonzero(np.maximum(self._known, 0) < len(self._conditioning.mean))
            for block in self._blocks(len(stale)):
                self._make_exact(stale[block])
        return self._bounds

    def use_bounds(self) -> None:
        """From now on, ``conditional_variance`` holds upper bounds that are exact where `is_exact`."""
        self._bounded = True

    def is_exact(self, index: int) -> bool:
        """Whether ``conditional_variance`` of the candidate at ``index`` is more than a bound."""
        return not self._bounded or int(self._known[index]) == len(self._conditioning.mean)

    def refine(self, scores: npt.NDArray[np.float64]) -> None:
        """Make the bounds exact of the `REFINED` candidates of largest ``scores`` (N) among those that are not."""
        stale = np.flatnonzero(self._known < len(self._conditioning.mean))
        if len(stale) > REFINED:
            largest = np.argpartition(-np.nan_to_num(scores[stale], nan=np.inf), REFINED)[:REFINED]
            stale = np.sort(stale[largest])
        rows = self._make_exact(stale)
        if len(self._active) + len(stale) > ACTIVE:
            self._active, self._rows = self._active[:0], self._rows[:, :0]
        self._active = np.concatenate([self._active, stale])
        self._rows = torch.cat([self._rows, rows], 1)

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of the candidate at ``index``."""
        self._condition(self._candidates.take([index]))

    def joint(self, indices: torch.Tensor, include_observed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean (k) and noiseless covariance (k x k) given the data; the n training strings first if included."""
        places = indices.numpy()
        chosen, own = self._candidates.take(places), None if self._self is None else self._self[..., places]
        rows = self._columns(self._state.encoded, places)
        prior = torch.from_numpy(self._state.evaluator.cross(chosen, None, own))
        return joint(self._state, rows, prior, self.mean[indices], self.observed_mean if include_observed else None)

    def _given_data(self) -> tuple[torch.Tensor, torch.Tensor]:
        state = self._state
        mean = torch.empty(len(self._candidates), dtype=torch.float64)
        variance = state.scale * torch.from_numpy(state.evaluator.variance(self._candidates, self._self))
        # A string that was measured several times has one column.
        number = {key: place for place, key in enumerate(dict.fromkeys(state.keys))}
        first = {key: place for place, key in reversed(list(enumerate(state.keys)))}
        points = state.encoded.take(np.array([first[key] for key in number]))
        repeated = None if len(number) == len(state.keys) else [number[key] for key in state.keys]
        for block in self._blocks(len(self._candidates), STORED_BLOCK if state.evaluator.costly else None):
            if state.evaluator.costly:
                rows = self._costly_columns(list(number), points, block).double()
            else:
                rows = self._columns(points, block)
            rows = rows if repeated is None else rows[repeated]
            mean[block] = state.constant + state.scale * (state.alpha @ rows)
            variance[block] -= explained(self._inverse, rows)
        return mean, variance.clamp_min_(self._conditioning.floor)

    def _make_exact(self, chosen: npt.NDArray[np.int64]) -> torch.Tensor:
        """Exact conditional variances of some candidates; returns the prior covariances they are computed from."""
        conditioning, n = self._conditioning, len(self._state.keys)
        rows = self._columns(conditioning.encoded, chosen)
        last = torch.zeros(len(conditioning.mean), len(conditioning.factor), dtype=torch.float64)
        last[:, n:] = torch.eye(len(last))
        # The last rows of the inverse of the factor, without those before them.
        weights = torch.linalg.solve_triangular(conditioning.factor.T, last.T, upper=True).T
        lost = (self._state.scale * (weights @ rows)).square_().sum(0)
        if self._state.evaluator.costly:
            self._make_precise(chosen, rows[:n])
        self._bounds[chosen] = (self.variance[chosen] - lost).clamp_min(conditioning.floor)
        self._known[chosen] = len(conditioning.mean)
        return rows

    def _make_precise(self, chosen: npt.NDArray[np.int64], rows: torch.Tensor) -> None:
        """Mean and variance given the data of some candidates, from covariances in double precision."""
        state = self._state
        own = None if self._self is None else self._self[..., chosen]
        prior = state.scale * torch.from_numpy(state.evaluator.variance(self._candidates.take(chosen), own))
        self.mean[chosen] = state.constant + state.scale * (state.alpha @ rows)
        self.variance[chosen] = (prior - explained(self._inverse, rows)).clamp_min(self._conditioning.floor)

    def _condition(self, encoded: Encoded) -> None:
        weights, corner = self._conditioning.add(encoded)
        if not len(self._active):
            self._rows = torch.empty(len(self._conditioning.factor), 0, dtype=torch.float64)
            return
        own = self._columns(encoded, self._active)
        update = self._state.scale * (own[0] - weights @ self._rows) / corner
        exact = (self._bounds[self._active] - update.square()).clamp_min(self._conditioning.floor)
        self._bounds[self._active] = exact
        self._known[self._active] = len(self._conditioning.mean)
        self._rows = torch.cat([self._rows, own])

    def _columns(
        self, points: Encoded, chosen: npt.NDArray[np.int64] | slice, dtype: npt.DTypeLike = np.float64
    ) -> torch.Tensor:
        """Prior covariances of ``points`` with some candidates, without output scale."""
        evaluator = self._state.evaluator
        own = None if self._self is None else self._self[..., chosen]
        return torch.from_numpy(
            evaluator.cross(points, self._candidates.take(chosen), evaluator.self_similarity(points), own, dtype)
        )

    def _costly_columns(self, keys: list[str], points: Encoded, block: slice) -> torch.Tensor:
        """Prior covariances of ``points`` with a block of candidates in single precision, from the store if there."""
        width = len(range(*block.indices(len(self._candidates))))

        def compute(places: list[int]) -> npt.NDArray[np.float32]:
            chosen = points if len(places) == len(points) else points.take(np.array(places))
            return self._columns(chosen, block, np.float32).numpy()

        if self._store is None:
            return torch.from_numpy(compute(list(range(len(points)))))
        return torch.from_numpy(self._store.rows(f"{block.start:09d}", width, keys, compute))

    def _blocks(self, count: int, size: int | None = None) -> Iterator[slice]:
        size = max(1, BLOCK_ELEMENTS // len(self._conditioning.factor)) if size is None else size
        for start in range(0, count, size):
            yield slice(start, start + size)
