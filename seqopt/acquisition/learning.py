r"""Active learning with a fully Bayesian model: which evaluation teaches most about the model's parameters.

Each of M draws of the parameters predicts the outcome y at a point as a normal variable of mean :math:`\mu_m` and
variance :math:`s_m^2`, noise included. Together they predict a mixture, of mean :math:`\bar\mu` and variance
:math:`\bar s^2 = \tfrac1M \sum_m s_m^2 + \tfrac1M \sum_m (\mu_m - \bar\mu)^2`. Where components lie far from the
mixture, the draws disagree, and a measurement tells them apart:

.. math::

    \mathrm{SAL} &= \tfrac1M \sum_m d\left(\mathcal{N}(\mu_m, s_m^2),\; \text{mixture}\right) \\
    \mathrm{BALD} &= \tfrac12 \left[ \log \bar s^2 - \tfrac1M \sum_m \log s_m^2 \right] \\
    \mathrm{BQBC} &= \tfrac1M \sum_m (\mu_m - \bar\mu)^2, \quad
    \mathrm{BALM} = \tfrac1M \sum_m s_m^2, \quad
    \mathrm{QBMGP} = \bar s^2

BALD is the mutual information of outcome and parameters, H[mixture] - mean H[component], with the entropy of a normal
distribution for that of the mixture; it is SAL with the Kullback-Leibler divergence, for moments and mixture alike.

Batches are filled greedily. Either every draw is conditioned on what all draws together expect of each point that was
chosen (a *believer*): its means move, so that the draws agree there, and its variances fall. Or scores stay those of
single points, and half the logarithm of the determinant of the outcomes' correlations, the part of GIBBON that keeps a
batch diverse, is added.

With one draw there is nothing to disagree about: all but BALM and QBMGP are 0 everywhere.

References:
    Hvarfner, C., Hellsten, E., Hutter, F., Nardi, L. (2023). Self-correcting Bayesian optimization through Bayesian
        active learning. NeurIPS. Equation 14.
    Riis, C., Antunes, F., Huettel, F. B., Azevedo, C. L., Pereira, F. C. (2022). Bayesian active learning with fully
        Bayesian Gaussian processes. NeurIPS (BQBC, QBMGP, and BALM over draws of the parameters).
    Houlsby, N., Huszar, F., Ghahramani, Z., Lengyel, M. (2011). Bayesian active learning for classification and
        preference learning. arXiv:1112.5745 (BALD).
    MacKay, D. J. C. (1992). Information-based objective functions for active data selection. Neural Computation 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.distances import (
    POINTS,
    Distance,
    Marginal,
    check_distance,
    distance_to_mixture,
    mixture_moments,
)
from seqopt.acquisition.numerics import in_blocks
from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.posteriors import BelievingPosterior, Moments
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

Batches: TypeAlias = Literal["believer", "diversity"]
"""How a batch is filled; see the module."""

LEAST_VARIANCE = 1e-100
"""Variances whose logarithms are taken are kept above this."""


class LearningAcquisition(Configurable):
    """What `SAL` and its kin have in common: a score from the means and variances of all draws.

    Args:
        batch: ``"believer"`` or ``"diversity"``; see the module.
        repulsion: With ``"diversity"``, the factor of half the logarithm of the determinant, in nats.

    Raises:
        InputError: For another way to fill batches, or a negative repulsion.
    """

    name: str
    needs_draws: ClassVar[bool] = True
    """Whether it needs several draws of the parameters (`seqopt.acquisition.DisagreementAcquisition`)."""

    def __init__(self, batch: Batches = "believer", repulsion: float = 1.0) -> None:
        check_batches(batch, repulsion)
        self.batch: Batches = batch
        self.repulsion = float(repulsion)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Nothing is drawn; see `seqopt.acquisition.protocols.Acquisition`."""
        if self.needs_draws:
            warn_of_one_draw(self.name, posterior)
        return PreparedLearning(self.of_outcomes, self.batch, self.repulsion)

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Scores, N, from means and variances of outcomes, both ``M x N``."""
        raise NotImplementedError


class PreparedLearning:
    """A score of the means and variances of all draws, for greedy batches.

    Args:
        of_outcomes: From ``M x N`` means and variances of outcomes to N scores.
        batch: How a batch is filled.
        repulsion: See `LearningAcquisition`.
    """

    def __init__(self, of_outcomes: Callable[[Tensor, Tensor], Tensor], batch: Batches, repulsion: float) -> None:
        self._of_outcomes = of_outcomes
        self._batch = batch
        self._repulsion = repulsion

    def __call__(self, posterior: Posterior) -> Tensor:
        """Scores of all points; see `PreparedAcquisition`."""
        moments = posterior.moments
        if self._batch == "diversity":
            scores = in_blocks(self._of_outcomes, drawn(moments.outcome_mean), drawn(moments.outcome_variance))
            return scores + self._repulsion * diversity(moments)
        return in_blocks(self._of_outcomes, drawn(believed_mean(posterior)), drawn(moments.remaining_variance))


class SAL(LearningAcquisition):
    """Statistical distance-based active learning: the mean distance of the draws' predictions from their mixture.

    Args:
        distance: ``"wasserstein"``, in units of the values, as published; ``"hellinger"``, which learns the parameters
            best, and predicts worse; or ``"kl"``, which is BALD.
        marginal: What stands for the mixture: its ``"moments"``, or the ``"mixture"`` itself; see
            `seqopt.acquisition.distances`.
        points: Points of an integral over the mixture itself.
        batch: See `seqopt.acquisition.learning`.
        repulsion: Likewise.

    Raises:
        InputError: For an argument that is none of these.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> mean = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
        >>> posterior = DensePosterior(mean, torch.eye(2).expand(2, 2, 2), 0.0)
        >>> SAL().prepare(posterior, np.random.default_rng(0))(posterior).round(decimals=6)
        tensor([1.0824, 0.0000], dtype=torch.float64)
    """

    name = "sal"

    def __init__(
        self,
        distance: Distance = "wasserstein",
        marginal: Marginal = "moments",
        *,
        points: int = POINTS,
        batch: Batches = "believer",
        repulsion: float = 1.0,
    ) -> None:
        super().__init__(batch, repulsion)
        check_distance(distance, marginal, points)
        self.distance: Distance = distance
        self.marginal: Marginal = marginal
        self.points = int(points)

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """See `LearningAcquisition`."""
        options = {"distance": self.distance, "marginal": self.marginal, "points": self.points}
        return distance_to_mixture(mean, variance, mean, variance, **options)  # type: ignore[arg-type]


class BALD(LearningAcquisition):
    """Bayesian active learning by disagreement: the information that an outcome gives about the parameters, in nats.

    Args:
        marginal: What stands for the mixture: its ``"moments"``, or the ``"mixture"`` itself.
        points: Points of an integral over the mixture itself.
        batch: See `seqopt.acquisition.learning`.
        repulsion: Likewise.

    Raises:
        InputError: For an argument that is none of these.

    Example:
        >>> mean, variance = torch.tensor([[0.0], [2.0]]).double(), torch.ones(2, 1).double()
        >>> BALD().of_outcomes(mean, variance).round(decimals=6)  # log(2) / 2
        tensor([0.3466], dtype=torch.float64)
    """

    name = "bald"

    def __init__(
        self,
        marginal: Marginal = "moments",
        *,
        points: int = POINTS,
        batch: Batches = "believer",
        repulsion: float = 1.0,
    ) -> None:
        super().__init__(batch, repulsion)
        check_distance("kl", marginal, points)
        self.marginal: Marginal = marginal
        self.points = int(points)

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """See `LearningAcquisition`."""
        if self.marginal == "mixture":
            return distance_to_mixture(
                mean, variance, mean, variance, distance="kl", marginal="mixture", points=self.points
            )
        _, total = mixture_moments(mean, variance)
        return 0.5 * (
            total.clamp_min(LEAST_VARIANCE).log() - variance.clamp_min(LEAST_VARIANCE).log().mean(0)
        ).clamp_min(0.0)


class BALM(LearningAcquisition):
    """The mean over draws of the variance of an outcome: where a measurement is predicted worst.

    It is MacKay's criterion, and needs no second draw: disagreement of means does not enter (`QBMGP` has both).

    Args:
        batch: See `seqopt.acquisition.learning`.
        repulsion: Likewise.

    Example:
        >>> BALM().of_outcomes(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [3.0]]))
        tensor([2.])
    """

    name = "balm"
    needs_draws = False
    monotone = True

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """See `LearningAcquisition`."""
        return variance.mean(0)


class BQBC(LearningAcquisition):
    """Bayesian query by committee: the variance of the draws' means.

    Args:
        batch: See `seqopt.acquisition.learning`.
        repulsion: Likewise.

    Example:
        >>> BQBC().of_outcomes(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
        tensor([1.])
    """

    name = "bqbc"

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """See `LearningAcquisition`."""
        return (mean - mean.mean(0)).square().mean(0)


class QBMGP(LearningAcquisition):
    """Query by mixture of Gaussian processes: the variance of the mixture, which is `BQBC` plus `BALM`.

    Args:
        batch: See `seqopt.acquisition.learning`.
        repulsion: Likewise.

    Example:
        >>> QBMGP().of_outcomes(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
        tensor([2.])
    """

    name = "qbmgp"
    needs_draws = False

    def of_outcomes(self, mean: Tensor, variance: Tensor) -> Tensor:
        """See `LearningAcquisition`."""
        return mixture_moments(mean, variance)[1]


def drawn(values: Tensor) -> Tensor:
    """Values with one leading dimension of draws, ``M x N``."""
    return values.reshape(-1, values.shape[-1])


def believed_mean(posterior: Posterior) -> Tensor:
    """Means of outcomes as a believer has them; those given the data where a posterior cannot say."""
    return posterior.believed_mean() if isinstance(posterior, BelievingPosterior) else posterior.moments.outcome_mean


def diversity(moments: Moments) -> Tensor:
    """Half the logarithm by which each point changes the determinant of a batch's correlations, averaged over draws, N.

    It is log(s(x|B) / s(x)) / 2 with the variance s of an outcome (`seqopt.acquisition.gibbon`).
    """
    total = moments.outcome_variance
    lost = (total - moments.remaining_variance) / total.clamp_min(1e-300)
    return 0.5 * drawn(torch.log1p(-lost.clamp_max(1.0 - 1e-12))).mean(0)


def check_batches(batch: str, repulsion: float) -> None:
    """Refuse another way to fill batches, or a negative repulsion."""
    if batch not in get_args(Batches):
        raise InputError(f"batch is {batch!r}; expected one of {', '.join(get_args(Batches))}")
    if not repulsion >= 0:
        raise InputError(f"repulsion is {repulsion!r}; expected zero or more")


def warn_of_one_draw(name: str, posterior: Posterior) -> None:
    """Log that all scores will be 0 where there is one draw of the parameters."""
    if posterior.moments.mean.shape[:-1].numel() == 1:
        logger.warning(
            "%s compares what draws of the model's parameters predict, and this posterior has one: all scores are 0. "
            "It needs a fully Bayesian model, such as seqopt.models.FullyBayesianGP",
            name,
        )
