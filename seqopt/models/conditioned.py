"""Gaussian-process posteriors at any strings, for several draws of the kernel parameters at once.

With L the Cholesky factor of the covariance, noise included, of the n evaluated strings followed by the c strings that
are pending or chosen, and V = L^-1 k(X, s), the variance at s given the data is k(s, s) less the squares of the first n
entries of V, and given the c strings too it is k(s, s) less all of them. Everything carries a leading dimension of D
draws; a point estimate has D = 1. Memory: 8 D (n + c) N bytes for N strings, and as much again while it is computed;
`BlockwisePosterior` keeps 24 D N bytes only.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqopt.encoding import Encoded, StringEncoder
from seqopt.models.covariance import FloatArray, KernelEvaluator
from seqopt.models.linalg import stable_cholesky
from seqopt.models.pool_posterior import MIN_RELATIVE_VARIANCE
from seqopt.models.protocols import ConditionedProcess


@dataclass(frozen=True)
class BatchedGPState:
    """Gaussian processes on the same data, one for each draw of the parameters, in standardised units.

    Attributes:
        evaluator: The kernel, of batch shape D, or without batch shape if D is 1; without its output scale.
        keys: Keys of the n training strings.
        encoded: The training strings.
        targets: Standardised training values, n.
        constant: Prior mean, D.
        scale: Output scale, D.
        noise_variance: Variance of the noise of one observation to come, D.
        observed_noise: Variance of the noise of each training value, D x n.
        prior: Prior covariance of the training strings, output scale included, D x n x n.
        cholesky: Lower factors of ``prior`` with noise, D x n x n.
        alpha: (prior + noise)^-1 (targets - mean), D x n.
    """

    evaluator: KernelEvaluator
    keys: list[str]
    encoded: Encoded
    targets: Tensor
    constant: Tensor
    scale: Tensor
    noise_variance: Tensor
    observed_noise: Tensor
    prior: Tensor
    cholesky: Tensor
    alpha: Tensor

    @classmethod
    def build(
        cls,
        evaluator: KernelEvaluator,
        keys: list[str],
        encoded: Encoded,
        targets: Tensor,
        constant: Tensor,
        scale: Tensor,
        noise_variance: Tensor,
        known_noise: Tensor,
    ) -> BatchedGPState:
        """Factorise the covariance of the training strings.

        ``noise_variance`` (D) is what every value has, ``known_noise`` (n) what each has besides; a value to come will
        have the mean of these (0 counting where nothing is known).
        """
        own = evaluator.self_similarity(encoded)
        gram = _stacked(evaluator.cross(encoded, None, own), len(scale))
        prior = scale[:, None, None] * 0.5 * (gram + gram.mT)
        observed_noise = noise_variance[:, None] + known_noise
        factor, _ = stable_cholesky(prior + observed_noise.diag_embed())
        residuals = targets - constant[:, None]
        alpha = torch.cholesky_solve(residuals[..., None], factor)[..., 0]
        coming = noise_variance + known_noise.mean()
        return cls(evaluator, keys, encoded, targets, constant, scale, coming, observed_noise, prior, factor, alpha)


class ConditionedGaussianProcess:
    """The posterior given the data and some strings without values yet; implements
    `seqopt.models.ConditionedProcess`.

    Args:
        state: The fitted processes.
        encoder: Encodes keys.
        pending: Keys of strings whose results are awaited.
    """

    def __init__(self, state: BatchedGPState, encoder: StringEncoder, pending: Sequence[str] = ()) -> None:
        self._state = state
        self._encoder = encoder
        self._encoded = state.encoded
        self._self = state.evaluator.self_similarity(state.encoded)
        self._factor = state.cholesky
        self._inverse = _inverted(state.cholesky)
        self.conditioned_mean = torch.empty(len(state.scale), 0, dtype=torch.float64)
        for key in pending:
            self.condition(key)

    def best_observed_keys(self, n: int) -> list[str]:
        """The ``n`` distinct evaluated strings of largest posterior mean, best first."""
        order = torch.argsort(_observed_mean(self._state).mean(0), descending=True, stable=True)
        return list(dict.fromkeys(self._state.keys[int(place)] for place in order))[:n]

    def at(self, keys: Sequence[str]) -> StringsPosterior:
        """Posterior at the strings ``keys``."""
        return StringsPosterior(self, self._encoder.encode(keys))

    def condition(self, key: str) -> None:
        """Condition on a noisy observation, of unknown value, of one string."""
        state = self._state
        point = StringsPosterior(self, self._encoder.encode([key]))
        n = self._factor.shape[-1]
        link = point.explained[..., 0]
        corner = point.prior_variance[:, 0] + state.noise_variance - link.square().sum(-1)
        factor = torch.zeros(len(state.scale), n + 1, n + 1, dtype=torch.float64)
        factor[:, :n, :n] = self._factor
        factor[:, n, :n] = link
        factor[:, n, n] = torch.maximum(corner, point.floor[:, 0]).sqrt()
        self._factor, self._inverse = factor, _inverted(factor)
        self.conditioned_mean = torch.cat([self.conditioned_mean, point.mean], -1)
        self._encoded = self._encoded.joined(point.encoded)
        self._self = state.evaluator.self_similarity(self._encoded)


class StringsPosterior:
    """Posterior at N strings; implements `seqopt.models.Posterior` with a leading dimension of D draws.

    Args:
        process: What it is conditioned on.
        encoded: The strings.
    """

    def __init__(self, process: ConditionedGaussianProcess, encoded: Encoded) -> None:
        state = process._state
        self._state = state
        self.encoded = encoded
        count = len(state.scale)
        scale = state.scale[:, None]
        self._self = state.evaluator.self_similarity(encoded)
        rows = _stacked(state.evaluator.cross(process._encoded, encoded, process._self, self._self), count)
        rows *= scale[..., None]
        n = len(state.keys)
        self.mean = state.constant[:, None] + (state.alpha[:, None] @ rows[:, :n])[:, 0]
        self.explained = process._inverse @ rows
        own = _stacked(state.evaluator.variance(encoded, self._self)[..., None, :], count)[:, 0]
        self.prior_variance = scale * own
        self.floor = MIN_RELATIVE_VARIANCE * scale
        squares = self.explained.square()
        self.variance = torch.maximum(self.prior_variance - squares[:, :n].sum(1), self.floor)
        self.conditional_variance = self.variance
        if len(process._encoded) > n:
            self.conditional_variance = torch.maximum(self.variance - squares[:, n:].sum(1), self.floor)
        self.conditioned_mean = process.conditioned_mean
        self.noise_variance = state.noise_variance
        self.observed_mean = _observed_mean(state)
        self.best_observed = float(state.targets.max())

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of the string at ``index``."""
        chosen = self.encoded.take(np.array([index]))
        own = None if self._self is None else self._self[..., [index]]
        row = _stacked(self._state.evaluator.cross(chosen, self.encoded, own, self._self), len(self._state.scale))
        row = self._state.scale[:, None] * row[:, 0]
        link = self.explained[..., index]
        corner = (row[:, index] + self.noise_variance - link.square().sum(-1)).clamp_min(self.floor[:, 0])
        update = (row - (link[:, None] @ self.explained)[:, 0]) / corner.sqrt()[:, None]
        self.explained = torch.cat([self.explained, update[:, None]], 1)
        self.conditional_variance = torch.maximum(self.conditional_variance - update.square(), self.floor)
        self.conditioned_mean = torch.cat([self.conditioned_mean, self.mean[:, index, None]], -1)

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean (D x k) and noiseless covariance (D x k x k) given the data; the n training strings first if
        included.
        """
        state, n = self._state, len(self._state.keys)
        places = indices.numpy()
        own = None if self._self is None else self._self[..., places]
        prior = _stacked(state.evaluator.cross(self.encoded.take(places), None, own), len(state.scale))
        prior = state.scale[:, None, None] * prior
        solved, mean = self.explained[:, :n, places], self.mean[:, indices]
        covariance = prior - solved.mT @ solved
        if include_observed:
            known = torch.linalg.solve_triangular(state.cholesky, state.prior, upper=False)
            between = known.mT @ solved
            # k(X, s) = L V, so the prior between training and new strings needs no new kernel values.
            crossed = state.cholesky @ solved - between
            observed = state.prior - known.mT @ known
            covariance = torch.cat([torch.cat([observed, crossed], -1), torch.cat([crossed.mT, covariance], -1)], -2)
            mean = torch.cat([self.observed_mean, mean], -1)
        return mean, 0.5 * (covariance + covariance.mT)


class BlockwisePosterior:
    """Posterior at many strings, of which only means and variances are kept; implements `seqopt.models.Posterior`.

    Args:
        process: Gives the posterior of any strings; `condition` conditions it.
        keys: Keys of the N strings.
        block: Strings looked at at once.
    """

    def __init__(self, process: ConditionedProcess, keys: Sequence[str], block: int = 1000) -> None:
        self._process = process
        self._keys = keys
        self._block = block
        self._compute()

    def _compute(self) -> None:
        margins = []
        for start in range(0, max(len(self._keys), 1), self._block):
            part = self._process.at(self._keys[start : start + self._block])
            margins.append((part.mean, part.variance, part.conditional_variance))
        self.mean, self.variance, self.conditional_variance = (
            torch.cat(parts, -1) for parts in zip(*margins, strict=True)
        )
        self.conditioned_mean = part.conditioned_mean
        self.noise_variance = part.noise_variance
        self.observed_mean = part.observed_mean
        self.best_observed = part.best_observed

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of the string at ``index``."""
        self._process.condition(self._keys[index])
        self._compute()

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and noiseless covariance at the strings ``indices``, computed anew; see `StringsPosterior.joint`."""
        chosen = self._process.at([self._keys[int(index)] for index in indices])
        return chosen.joint(torch.arange(len(indices)), include_observed)


def _observed_mean(state: BatchedGPState) -> Tensor:
    # K alpha = targets - constant - noise * alpha, since (K + diag(noise)) alpha = targets - constant.
    return state.targets - state.observed_noise * state.alpha


def _inverted(factor: Tensor) -> Tensor:
    identity = torch.eye(factor.shape[-1], dtype=torch.float64).expand_as(factor)
    return torch.linalg.solve_triangular(factor, identity, upper=False)


def _stacked(values: FloatArray, count: int) -> Tensor:
    """Covariances with a dimension of draws."""
    return torch.from_numpy(np.ascontiguousarray(values)).reshape(count, *values.shape[-2:])
