"""Batch heuristics of section 5.5 that need a distance between points: local penalisation and determinantal processes.

They are acquisition functions like others, but for posteriors at points of the unit cube only.

References:
    Gonzalez, J., Dai, Z., Hennig, P., Lawrence, N. (2016). Batch Bayesian optimization via local penalization. AISTATS.
    Kathuria, T., Deshpande, A., Kohli, P. (2016). Batched Gaussian process bandit optimization via determinantal point
        processes. NeurIPS.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition import Acquisition, LogExpectedImprovement, Posterior, PreparedAcquisition
from seqopt.acquisition.numerics import positive_std
from seqopt.bench.euclid.adaptor import PointsPosterior, Process

LIPSCHITZ_POINTS = 1_000
"""At which the slope of the posterior mean is taken."""

LEAST_SLOPE = 1e-3
"""A flat posterior mean would penalise everything."""

REGION_BETA = 4.0
"""The region of points that may be best is bounded by mean + 2 sqrt(beta) std and mean - sqrt(beta) std."""

OUTSIDE = 1e3
"""What a unit outside that region costs, in nats."""


class LocalPenalisation:
    """log alpha(x) + sum_j log psi(x; x_j) over the points x_j chosen so far (thesis, section 5.5.2).

    psi(x; x') = 1/2 erfc(-z) with z = (L |x - x'| - M + mean(x')) / sqrt(2 variance(x')), as in Gonzalez et al. (the
    thesis prints no 2 there), L the largest slope of the posterior mean and M its largest value at measured points.

    Args:
        base: alpha, of which nothing but its values given the data is used.
        logarithmic: Whether ``base`` returns logarithms.
    """

    def __init__(self, base: Acquisition, logarithmic: bool = False) -> None:
        self.base, self.logarithmic = base, logarithmic
        self.name = f"local-penalisation-{base.name}"

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Estimate L and M, and prepare the base; see `seqopt.acquisition.Acquisition`."""
        at = _points_posterior(posterior)
        prepared = self.base.prepare(at, rng, batch_size)
        lipschitz = steepest(at.process, at.points[:LIPSCHITZ_POINTS])
        best = float(at.observed_mean.max())

        def score(posterior: Posterior) -> Tensor:
            at = _points_posterior(posterior)
            values = prepared(at.unconditioned())
            values = values if self.logarithmic else values.clamp_min(0.0).log()
            for index in at.seen:
                distance = (at.points[:, :-1] - at.points[index, :-1]).norm(dim=-1)
                mean, std = at.moments.mean[index], positive_std(at.moments.variance[index])
                # 1/2 erfc(-z) = Phi(sqrt(2) z)
                values = values + torch.special.log_ndtr((lipschitz * distance - best + mean) / std)
            return values

        return score


class DeterminantalImprovement:
    """Expected improvement for the first point, then a determinantal point process (thesis, section 5.5.1).

    Every further point has the largest variance given those before, which is the greedy mode of the process whose
    kernel is the posterior covariance, among points that may still be best: mean + 2 sqrt(beta) std is at least the
    largest mean - sqrt(beta) std.
    """

    name = "determinantal"

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Find the incumbent and the region; see `seqopt.acquisition.Acquisition`."""
        first = LogExpectedImprovement().prepare(posterior, rng, batch_size)
        moments, beta = posterior.moments, REGION_BETA**0.5
        level = float((moments.mean - beta * moments.variance.sqrt()).max())

        def score(posterior: Posterior) -> Tensor:
            at = _points_posterior(posterior)
            if not at.seen:
                return first(posterior)
            moments = at.moments
            lacking = (level - moments.mean - 2.0 * beta * moments.variance.sqrt()).clamp_min(0.0)
            return moments.conditional_variance.clamp_min(1e-300).log() - OUTSIDE * lacking

        return score


def steepest(process: Process, points: Tensor) -> float:
    """The largest norm of the gradient of the posterior mean at points, in the last column's direction excepted."""
    at = points.clone().requires_grad_(True)
    (slopes,) = torch.autograd.grad(process.mean(at).sum(), at)
    return max(float(slopes[:, :-1].norm(dim=-1).max()), LEAST_SLOPE)


def _points_posterior(posterior: Posterior) -> PointsPosterior:
    if not isinstance(posterior, PointsPosterior):
        raise TypeError(f"expected a posterior at points of the unit cube, got {type(posterior).__name__}")
    return posterior
