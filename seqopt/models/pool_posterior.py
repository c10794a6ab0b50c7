"""The Gaussian-process posterior over many candidates, conditioned on points one by one.

With training points X (n of them), candidates P (N), prior covariance k, noise s2 and the Cholesky factor L of
k(X, X) + s2 I, the posterior at the candidates is mean = c + k(P, X) alpha and variance = k(P, P) - colsum(V * V) with
V = L^-1 k(X, P). Observing one more candidate b (with noise, its value unknown) appends one row to V,

    w = (k(b, P) - l^T V) / sqrt(k(b, b) + s2 - l^T l),   l = L^-1 k(X, b),

and leaves the mean alone, so a batch of B candidates costs B prior-covariance columns and B matrix-vector products.
Memory: one N-vector of float64 for every training or conditioned point (8 N (n + B) bytes) and blocks of fixed size.
Where that is too much, `seqopt.models.streamed_posterior` takes its place.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
    Moss, H. B. et al. (2021). GIBBON: General-purpose Information-Based Bayesian OptimisatioN. JMLR 22(235), section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import Encoded
from seqopt.models.covariance import KernelEvaluator

BLOCK_CANDIDATES = 1 << 15
"""Candidates whose V is held at once while variances are computed."""

PANEL = 512
"""Rows of V that are computed at once: they need only as many columns of the triangular inverse."""

NEW_ELEMENTS = 1 << 25
"""Prior covariances that are computed at once before they are put in their place (256 MiB)."""

MIN_RELATIVE_VARIANCE = 1e-10
"""Posterior variances are kept above this fraction of the output scale: rounding must not make them negative."""


@dataclass(frozen=True)
class GaussianState:
    """A fitted Gaussian process at fixed parameters, in standardised units.

    Attributes:
        evaluator: The base kernel, without its output scale.
        keys: Keys of the n training strings.
        encoded: The training strings.
        cholesky: Lower factor of the training covariance with noise, n x n.
        alpha: (training covariance + noise)^-1 (targets - mean), n.
        targets: Standardised training values, n.
        constant: Prior mean.
        scale: Output scale.
        noise_variance: Variance of the noise of one observation to come.
        observed_noise: Variance of the noise of each training value, n.
    """

    evaluator: KernelEvaluator
    keys: list[str]
    encoded: Encoded
    cholesky: torch.Tensor
    alpha: torch.Tensor
    targets: torch.Tensor
    constant: float
    scale: float
    noise_variance: float
    observed_noise: torch.Tensor


class ColumnCache:
    """Prior covariances between a list of candidates and strings, kept while the kernel stays the same.

    Args:
        evaluator: The kernel.
        candidates: The N candidates.
    """

    def __init__(self, evaluator: KernelEvaluator, candidates: Encoded) -> None:
        self.evaluator = evaluator
        self.candidates = candidates
        self._self = evaluator.self_similarity(candidates)
        self.prior_variance = torch.from_numpy(evaluator.variance(candidates, self._self))
        self._rows = torch.empty(0, len(candidates), dtype=torch.float64)
        self._positions: dict[str, int] = {}

    def row(self, key: str, encoded: Encoded) -> torch.Tensor:
        """Covariances N of one string with all candidates: a copy, which later calls leave alone."""
        self._compute([key], encoded)
        return self._rows[self._positions[key]].clone()

    def rows(self, keys: Sequence[str], encoded: Encoded) -> torch.Tensor:
        """Covariances len(keys) x N of the strings ``encoded`` (named by ``keys``) with all candidates.

        They are those of the cache itself, valid until the next call for other strings.
        """
        self._compute(keys, encoded)
        wanted = list(dict.fromkeys(self._positions[key] for key in keys))
        if wanted != list(range(len(wanted))):
            self._reorder(wanted)
        if len(wanted) == len(keys):
            return self._rows[: len(wanted)]
        return self._rows[[self._positions[key] for key in keys]]  # a string that was measured several times

    def _compute(self, keys: Sequence[str], encoded: Encoded) -> None:
        missing = [i for i, key in enumerate(dict.fromkeys(keys)) if key not in self._positions]
        if missing:
            unique = list(dict.fromkeys(keys))
            first = {key: position for position, key in reversed(list(enumerate(keys)))}
            new = encoded.take(np.array([first[unique[i]] for i in missing]))
            used = len(self._positions)
            self._reserve(used + len(missing))
            step = max(1, NEW_ELEMENTS // max(1, len(self.candidates)))
            for start in range(0, len(missing), step):
                part = new.take(slice(start, start + step))
                self._rows[used + start : used + start + len(part)] = torch.from_numpy(
                    self.evaluator.cross(part, self.candidates, self.evaluator.self_similarity(part), self._self)
                )
            self._positions.update({unique[i]: used + offset for offset, i in enumerate(missing)})

    def among(self, indices: npt.NDArray[np.int64]) -> torch.Tensor:
        """Prior covariances among the candidates at ``indices``."""
        chosen = self.candidates.take(indices)
        own = None if self._self is None else self._self[..., indices]
        return torch.from_numpy(self.evaluator.cross(chosen, None, own))

    def _reorder(self, first: list[int]) -> None:
        """Move the rows ``first`` to the front, so that they can be used without a copy from now on."""
        chosen = set(first)
        order = [*first, *(row for row in range(len(self._positions)) if row not in chosen)]
        for start in range(0, self._rows.shape[1], BLOCK_CANDIDATES):
            block = self._rows[: len(order), start : start + BLOCK_CANDIDATES]
            block.copy_(block[order])
        keys = sorted(self._positions, key=self._positions.__getitem__)
        self._positions = {keys[old]: new for new, old in enumerate(order)}

    def _reserve(self, rows: int) -> None:
        if rows > self._rows.shape[0]:
            held = self._rows.shape[0]
            grown = torch.empty(max(rows, held + held // 8 + 32), self._rows.shape[1], dtype=torch.float64)
            used = len(self._positions)
            grown[:used] = self._rows[:used]
            self._rows = grown


class Conditioning:
    """The points that a posterior is conditioned on: those with values, and those whose values are awaited.

    Args:
        state: The fitted process.

    Attributes:
        encoded: All points, the n training strings first.
        factor: Lower Cholesky factor of their covariance with noise.
        mean: Posterior mean given the data at the points without values, in their order.
        floor: Smallest variance.
    """

    def __init__(self, state: GaussianState) -> None:
        self._state = state
        self.encoded = state.encoded
        self.factor = state.cholesky
        self.mean = torch.empty(0, dtype=torch.float64)
        self.floor = MIN_RELATIVE_VARIANCE * state.scale

    def add(self, encoded: Encoded) -> tuple[torch.Tensor, torch.Tensor]:
        """One more point, with noise and of unknown value.

        Returns:
            The weights of the points before it in its posterior mean, and the standard deviation of its observation.
            The posterior covariance of it and another point s is k(b, s) - weights @ k(points, s).
        """
        state, evaluator = self._state, self._state.evaluator
        self_new = evaluator.self_similarity(encoded)
        cross = evaluator.cross(self.encoded, encoded, evaluator.self_similarity(self.encoded), self_new)[:, 0]
        own_mean = state.constant + state.scale * state.alpha.numpy() @ cross[: len(state.keys)]
        self.mean = torch.cat([self.mean, torch.tensor([own_mean], dtype=torch.float64)])
        prior = state.scale * float(evaluator.variance(encoded, self_new)[0])
        link = torch.linalg.solve_triangular(
            self.factor, state.scale * torch.from_numpy(cross)[:, None].to(torch.float64), upper=False
        )[:, 0]
        corner = torch.as_tensor(prior + state.noise_variance - link.dot(link))
        corner = corner.clamp_min(self.floor).sqrt()
        weights = torch.linalg.solve_triangular(self.factor.T, link[:, None], upper=True)[:, 0]
        m = len(self.factor)
        factor = torch.zeros(m + 1, m + 1, dtype=torch.float64)
        factor[:m, :m] = self.factor
        factor[m, :m] = link
        factor[m, m] = corner
        self.factor = factor
        self.encoded = self.encoded.joined(encoded)
        return weights, corner


class PoolPosterior:
    """Posterior at N candidates; implements `seqopt.models.Posterior`.

    Args:
        state: The fitted process.
        cache: Prior covariances with the candidates, at the same kernel parameters.
        candidate_keys: Keys of the candidates, so that a conditioned one can be found again as a training string.
        pending: Keys of strings whose results are awaited; the posterior is conditioned on them from the start.
        pending_encoded: The same strings, encoded.

    Attributes:
        mean: Posterior mean, N.
        variance: Noiseless posterior variance given the data, N.
        conditional_variance: The same given also the pending points and those passed to `condition`, N.
        noise_variance: Scalar tensor.
        observed_mean: Posterior mean at the training strings, n.
        best_observed: Largest training value.
    """

    def __init__(
        self,
        state: GaussianState,
        cache: ColumnCache,
        candidate_keys: Sequence[str],
        pending: Sequence[str] = (),
        pending_encoded: Encoded | None = None,
    ) -> None:
        self._state = state
        self._cache = cache
        self._candidate_keys = candidate_keys
        self._conditioning = Conditioning(state)
        self._conditioned_keys = list(state.keys)
        self.noise_variance = torch.tensor(state.noise_variance, dtype=torch.float64)
        self.best_observed = float(state.targets.max())
        # K alpha = targets - constant - noise * alpha, since (K + diag(noise)) alpha = targets - constant.
        self.observed_mean = state.targets - state.observed_noise * state.alpha
        rows = cache.rows(state.keys, state.encoded)
        self.mean = state.constant + state.scale * (state.alpha @ rows)
        prior = state.scale * cache.prior_variance
        inverse = torch.linalg.inv(state.cholesky) * state.scale
        self.variance = (prior - explained(inverse, rows)).clamp_min(self._conditioning.floor)
        self.conditional_variance = self.variance.clone()
        for position, key in enumerate(pending):
            if pending_encoded is None:
                raise ValueError("pending_encoded is needed with pending")
            self._condition(key, pending_encoded.take([position]))

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of the candidate at ``index``."""
        self._condition(self._candidate_keys[index], self._cache.candidates.take([index]))

    def joint(self, indices: torch.Tensor, include_observed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean (k) and noiseless covariance (k x k) given the data; the n training strings first if included."""
        rows = self._cache.rows(self._state.keys, self._state.encoded)[:, indices]
        prior = self._cache.among(indices.numpy())
        return joint(self._state, rows, prior, self.mean[indices], self.observed_mean if include_observed else None)

    @property
    def conditioned_mean(self) -> torch.Tensor:
        """Posterior mean given the data at the points conditioned on so far, in their order."""
        return self._conditioning.mean

    def _condition(self, key: str, encoded: Encoded) -> None:
        own = self._cache.row(key, encoded)
        rows = self._cache.rows(self._conditioned_keys, self._conditioning.encoded)
        weights, corner = self._conditioning.add(encoded)
        update = self._state.scale * (own - weights @ rows) / corner
        self.conditional_variance = (self.conditional_variance - update.square()).clamp_min(self._conditioning.floor)
        self._conditioned_keys.append(key)


def explained(inverse: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Column sums of the squares of ``inverse @ rows``, N; ``inverse`` (n x n) is lower triangular, ``rows`` n x N."""
    sums = torch.empty(rows.shape[1], dtype=torch.float64)
    for start in range(0, rows.shape[1], BLOCK_CANDIDATES):
        block = slice(start, start + BLOCK_CANDIDATES)
        part = torch.zeros(1, dtype=torch.float64)
        for top in range(0, max(len(inverse), 1), PANEL):
            end = min(top + PANEL, len(inverse))
            squares = (inverse[top:end, :end] @ rows[:end, block]).square_().sum(0)
            part = part + squares if top else squares
        sums[block] = part
    return sums


def joint(
    state: GaussianState,
    rows: torch.Tensor,
    prior: torch.Tensor,
    mean: torch.Tensor,
    observed_mean: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Joint posterior at k points given the data.

    Args:
        state: The fitted process.
        rows: Prior covariances with the n training strings, n x k, without output scale.
        prior: Those among the points, k x k.
        mean: Posterior mean at the points, k.
        observed_mean: That at the training strings, n, where these are to come first.

    Returns:
        Mean and noiseless covariance.
    """
    rows, prior = rows * state.scale, prior * state.scale
    if observed_mean is not None:
        observed = state.cholesky @ state.cholesky.T - state.observed_noise.diag()
        prior = torch.cat([torch.cat([observed, rows], 1), torch.cat([rows.T, prior], 1)], 0)
        rows = torch.cat([observed, rows], 1)
        mean = torch.cat([observed_mean, mean])
    solved = torch.linalg.solve_triangular(state.cholesky, rows, upper=False)
    covariance = prior - solved.T @ solved
    return mean, 0.5 * (covariance + covariance.T)
