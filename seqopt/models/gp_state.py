"""Fitted Gaussian processes, one for each draw of the parameters, and the queries they are conditioned on.

With L the Cholesky factor of the covariance, noise included, of the n training queries followed by the c queries that
are pending or chosen, and V = L^-1 k(X, q), the variance at q given the data is k(q, q) less the squares of the first n
entries of V, and given the c queries too it is k(q, q) less all of them. Adding a query b appends a row to L and to its
inverse,

    l = L^-1 k(X, b),   d = sqrt(k(b, b) + s2 - l^T l),   L^-1 <- [[L^-1, 0], [-l^T L^-1 / d, 1 / d]],

at the cost of O((n + c)^2). Everything carries a leading dimension of D draws; a point estimate has D = 1.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 2.1.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.query import Item, key_of
from seqopt.encoding import Encoded
from seqopt.models.censoring import censored_sites
from seqopt.models.covariance import Evaluator, FloatArray
from seqopt.models.levels import LevelNoise
from seqopt.posteriors import stable_cholesky

logger = logging.getLogger(__name__)

MIN_RELATIVE_VARIANCE = 1e-10
"""Posterior variances are kept above this fraction of the output scale: rounding must not make them negative."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What is known of n values of which some are censored.

    Attributes:
        sides: 0 for an exact value, 1 for one above its limit, -1 for one below, n.
        targets: Standardised values and limits, n.
        known_noise: Known variances of the noise of each, n.
    """

    sides: Tensor
    targets: Tensor
    known_noise: Tensor


@dataclass(frozen=True, eq=False)
class BatchedGPState:
    """Gaussian processes on the same data, one for each draw of the parameters, in standardised units.

    Attributes:
        evaluator: The kernel, of batch shape D, or without batch shape if D is 1; without its output scale.
        keys: The n training queries.
        encoded: The same, encoded.
        targets: Standardised training values, n, or D x n with censored ones: each draw has its own in place of them.
        constant: Prior mean, D.
        scale: Output scale, D.
        noise_variance: Variance of the noise of one observation of a target to come, D.
        observed_noise: Variance of the noise of each training value, D x n.
        cholesky: Lower factors of the training covariance with noise, D x n x n.
        alpha: (training covariance + noise)^-1 (targets - mean), D x n.
        prior_mean: Standardised prior mean at any queries, N, besides the constant; `None` where there is none. Targets
            are what is left of the values without it.
        wanted: Targets of the training queries, encoded; `None` where the queries are their own targets.
        limits: What the censored values are known by, where there are any.
        level_noise: Variances of the noise of levels, where each has its own.
    """

    evaluator: Evaluator
    keys: list[Item]
    encoded: Encoded
    targets: Tensor
    constant: Tensor
    scale: Tensor
    noise_variance: Tensor
    observed_noise: Tensor
    cholesky: Tensor
    alpha: Tensor
    prior_mean: Callable[[Sequence[Item]], Tensor] | None = None
    wanted: Encoded | None = None
    limits: Limits | None = None
    level_noise: LevelNoise | None = None

    @classmethod
    def build(
        cls,
        evaluator: Evaluator,
        keys: list[Item],
        encoded: Encoded,
        targets: Tensor,
        constant: Tensor,
        scale: Tensor,
        noise_variance: Tensor,
        known_noise: Tensor,
        prior_mean: Callable[[Sequence[Item]], Tensor] | None = None,
        wanted: Encoded | None = None,
        sides: Tensor | None = None,
        level_noise: LevelNoise | None = None,
    ) -> BatchedGPState:
        """Factorise the covariance of the training queries.

        ``noise_variance`` (D) is what every value has, ``known_noise`` (n) what each has besides; a value to come will
        have the mean of these (0 counting where nothing is known). ``sides`` (n) says which ``targets`` are limits:
        expectation propagation gives each draw values and further noise in place of them (`seqopt.models.censoring`).
        Where levels have noise of their own, ``level_noise`` says so, and ``noise_variance`` is not looked at.
        """
        own = evaluator.self_similarity(encoded)
        gram = stacked(evaluator.cross(encoded, None, own), len(scale))
        prior = scale[:, None, None] * 0.5 * (gram + gram.mT)
        learned = noise_variance[:, None]
        if level_noise is not None:
            learned = level_noise.learned[:, torch.from_numpy(level_noise.levels.numbers(keys))]
        observed_noise = learned + known_noise
        residuals = targets - constant[:, None]
        limits = None
        if sides is not None:
            limits = Limits(sides, targets, known_noise)
            sites = censored_sites(prior + observed_noise.diag_embed(), residuals, sides)
            if not bool(torch.isfinite(sites.log_density).all()):
                logger.warning(
                    "what %d censored values say is known roughly: expectation propagation has not converged. Check "
                    "the limits for slips",
                    int(sides.count_nonzero()),
                )
            residuals, observed_noise = sites.residuals, observed_noise + sites.variance
            targets = residuals + constant[:, None]
        factor, _ = stable_cholesky(prior + observed_noise.diag_embed())
        alpha = torch.cholesky_solve(residuals[..., None], factor)[..., 0]
        coming = noise_variance + known_noise.mean() if level_noise is None else level_noise.of_target
        return cls(
            evaluator,
            keys,
            encoded,
            targets,
            constant,
            scale,
            coming,
            observed_noise,
            factor,
            alpha,
            prior_mean,
            wanted,
            limits,
            level_noise,
        )

    def of_exact(self) -> BatchedGPState | None:
        """The same processes given the exact values alone; `None` where there are none."""
        if self.limits is None:
            return self
        rows = torch.nonzero(self.limits.sides == 0)[:, 0]
        if not len(rows):
            return None
        return BatchedGPState.build(
            self.evaluator,
            [self.keys[int(row)] for row in rows],
            self.encoded.take(rows.numpy()),
            self.limits.targets[rows],
            self.constant,
            self.scale,
            self.noise_variance - self.limits.known_noise.mean(),
            self.limits.known_noise[rows],
            self.prior_mean,
            None if self.wanted is None else self.wanted.take(rows.numpy()),
            level_noise=self.level_noise,
        )

    def noise_at(self, items: Sequence[Item]) -> Tensor:
        """Variance of the noise of a measurement to come of each query, D x N (or D x 1 where it is the same)."""
        return self.noise_variance[:, None] if self.level_noise is None else self.level_noise.at(items)

    @property
    def draws(self) -> int:
        """D."""
        return len(self.scale)

    @property
    def floor(self) -> Tensor:
        """Smallest variance, D."""
        return MIN_RELATIVE_VARIANCE * self.scale

    @cached_property
    def observed_mean(self) -> Tensor:
        """Posterior mean of the targets of the training queries, D x n."""
        if self.wanted is not None:
            return self.mean(self.keys) + (self.alpha[:, None] @ self._prior_with(self.wanted))[:, 0]
        # K alpha = targets - constant - noise * alpha, since (K + diag(noise)) alpha = targets - constant.
        return self.values - self.observed_noise * self.alpha

    @cached_property
    def values(self) -> Tensor:
        """Standardised training values, the prior mean included, n, or D x n with censored ones."""
        return self.targets if self.prior_mean is None else self.targets + self.prior_mean(self.keys)

    @property
    def known_values(self) -> Tensor:
        """Standardised training values, or limits of those that are censored, the prior mean included, n."""
        if self.limits is None:
            return self.values
        return self.limits.targets if self.prior_mean is None else self.limits.targets + self.prior_mean(self.keys)

    def mean(self, items: Sequence[Item]) -> Tensor:
        """Prior mean at queries, D x N (or D x 1 where it is constant)."""
        constant = self.constant[:, None]
        return constant if self.prior_mean is None else constant + self.prior_mean(items)

    @property
    def best_observed(self) -> float:
        """Largest training value of a query that is its own target; minus infinity where there is none.

        Of a value that is known to be above a limit, the limit counts; one that is below a limit does not.
        """
        values = self.known_values
        if self.limits is not None:
            values = torch.where(self.limits.sides < 0, -math.inf, values)
        if self.wanted is not None:
            # Values of other contexts may be in any unit. What a model is shown tells how something was measured.
            width = max(self.encoded.width, self.wanted.width)
            rows, targets = (items.padded(width).to_tensor() for items in (self.encoded, self.wanted))
            values = values[(rows == targets).all(1)]
        return float(values.max()) if len(values) else -math.inf

    @cached_property
    def unconditioned(self) -> Conditioning:
        """The training queries alone, with the inverse of their factor: computed once."""
        return Conditioning.of(self)

    def prior(self) -> Tensor:
        """Prior covariance of the training queries, output scale included, D x n x n."""
        return self.cholesky @ self.cholesky.mT - self.observed_noise.diag_embed()

    def joint(
        self, solved: Tensor, prior: Tensor, mean: Tensor, include_observed: bool, points: Encoded
    ) -> tuple[Tensor, Tensor]:
        """Joint posterior of targets at k points given the data.

        Args:
            solved: L^-1 k(X, points), D x n x k.
            prior: Prior covariance of the points, output scale included, D x k x k.
            mean: Posterior mean at the points, D x k.
            include_observed: Whether the targets of the training queries come first.
            points: The points, encoded.

        Returns:
            Mean and noiseless covariance.
        """
        covariance = prior - solved.mT @ solved
        if include_observed:
            if self.wanted is None:
                # k(X, s) = L V, so the prior between training and other queries needs no new kernel values.
                own, between = self.prior(), self.cholesky @ solved
                rows = own
            else:
                own, between = self._prior(self.wanted, None), self._prior(self.wanted, points)
                rows = self._prior_with(self.wanted)
            known = torch.linalg.solve_triangular(self.cholesky, rows, upper=False)
            crossed = between - known.mT @ solved
            observed = own - known.mT @ known
            covariance = torch.cat([torch.cat([observed, crossed], -1), torch.cat([crossed.mT, covariance], -1)], -2)
            mean = torch.cat([self.observed_mean, mean], -1)
        return mean, 0.5 * (covariance + covariance.mT)

    def _prior_with(self, points: Encoded) -> Tensor:
        """Prior covariances of the training queries with points, D x n x k."""
        return self._prior(self.encoded, points)

    def _prior(self, rows: Encoded, columns: Encoded | None) -> Tensor:
        evaluator = self.evaluator
        own = None if columns is None else evaluator.self_similarity(columns)
        raw = evaluator.cross(rows, columns, evaluator.self_similarity(rows), own)
        return self.scale[:, None, None] * stacked(raw, self.draws)


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The queries that a posterior is conditioned on: those with values, and those whose values are not known yet.

    Attributes:
        state: The fitted processes.
        encoded: All queries, the n training ones first.
        keys: The same, as they are called.
        inverse: Inverse of the lower Cholesky factor of their covariance with noise, D x m x m.
        mean: Posterior mean given the data at the queries without values, in their order, D x c.
        own: What the kernel needs of each query alone; see `KernelEvaluator.self_similarity`.
        innovations: By how many standard deviations each query without value differs from what its draw expects, given
            those before it, if it turns out as all draws expect in the mean, D x c.
    """

    state: BatchedGPState
    encoded: Encoded
    keys: tuple[Item, ...]
    inverse: Tensor
    mean: Tensor
    own: FloatArray | None = field(repr=False)
    innovations: Tensor

    @classmethod
    def of(cls, state: BatchedGPState) -> Conditioning:
        """On the data alone."""
        return cls(
            state,
            state.encoded,
            tuple(state.keys),
            torch.linalg.solve_triangular(
                state.cholesky, torch.eye(len(state.keys), dtype=torch.float64).expand_as(state.cholesky), upper=False
            ),
            torch.empty(state.draws, 0, dtype=torch.float64),
            state.evaluator.self_similarity(state.encoded),
            torch.empty(state.draws, 0, dtype=torch.float64),
        )

    @property
    def belief(self) -> Tensor:
        """Weights of prior covariances with all m queries in what those without values, if they turn out as all draws
        expect in the mean, add to the mean of a draw, D x m.
        """
        return (self.innovations[:, None] @ self.inverse[:, len(self.state.keys) :])[:, 0]

    @property
    def count(self) -> int:
        """M = n + c."""
        return len(self.keys)

    def prior_rows(self, encoded: Encoded, own: FloatArray | None, dtype: npt.DTypeLike = np.float64) -> Tensor:
        """Prior covariances, output scale included, of all m queries with N others, D x m x N.

        The kernel computes them in float64 or float32; they are float64 either way.
        """
        state = self.state
        rows = stacked(state.evaluator.cross(self.encoded, encoded, self.own, own, dtype), state.draws).double()
        return rows.mul_(state.scale[:, None, None])

    def given(self, key: Item, encoded: Encoded, target: Encoded | None = None) -> tuple[Conditioning, Tensor, Tensor]:
        """One more query, with noise and of unknown value.

        Args:
            key: What it is called.
            encoded: The query.
            target: Its target, where that is something else.

        Returns:
            What follows, the weights of the queries before it in its posterior mean, D x m, and the standard deviation
            of its observation, D. The posterior covariance of it and another query q is k(b, q) - weights @ k(X, q).
        """
        state = self.state
        own = state.evaluator.self_similarity(encoded)
        rows = self.prior_rows(encoded, own)
        seen = rows if target is None else self.prior_rows(target, state.evaluator.self_similarity(target))
        mean = state.mean([key_of(key)]) + (state.alpha[:, None] @ seen[:, : len(state.keys)])[:, 0]
        prior = state.scale * stacked(state.evaluator.variance(encoded, own)[..., None, :], state.draws)[:, 0, 0]
        link = (self.inverse @ rows)[..., 0]
        corner = torch.maximum(prior + state.noise_at([key])[:, 0] - link.square().sum(-1), state.floor).sqrt()
        weights = (self.inverse.mT @ link[..., None])[..., 0]
        n = len(state.keys)
        expected = state.mean([key_of(key)]) + (state.alpha[:, None] @ rows[:, :n])[:, 0]
        believed = expected[:, 0] + (self.innovations * link[:, n:]).sum(-1)
        innovation = (believed.mean() - believed) / corner
        m = self.count
        inverse = torch.zeros(state.draws, m + 1, m + 1, dtype=torch.float64)
        inverse[:, :m, :m] = self.inverse
        inverse[:, m, :m] = -weights / corner[:, None]
        inverse[:, m, m] = 1.0 / corner
        found = replace(
            self,
            encoded=self.encoded.joined(encoded),
            keys=(*self.keys, key),
            inverse=inverse,
            mean=torch.cat([self.mean, mean], -1),
            own=None if self.own is None or own is None else np.concatenate([self.own, own], axis=-1),
            innovations=torch.cat([self.innovations, innovation[:, None]], -1),
        )
        return found, weights, corner


def stacked(values: FloatArray, count: int) -> Tensor:
    """Covariances ``... x a x b`` with one dimension of ``count`` draws in front."""
    return torch.from_numpy(np.ascontiguousarray(values)).reshape(count, *values.shape[-2:])
