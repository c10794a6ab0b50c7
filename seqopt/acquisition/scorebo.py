r"""Self-correcting Bayesian optimisation: learn the optimum and the model's parameters at once.

For each of M draws of the parameters, S functions are drawn from the posterior, and the optimum :math:`(x^*, f^*)` of
each is found. Given such an optimum the process is conditioned on the noiseless value :math:`f(x^*) = f^*`, which with
the covariance C of a draw is a rank-one update,

.. math::

    \mu'(x) = \mu(x) + \frac{C(x, x^*)}{C(x^*, x^*) + \varepsilon} (f^* - \mu(x^*)), \qquad
    v'(x) = v(x) - \frac{C(x, x^*)^2}{C(x^*, x^*) + \varepsilon},

and then, at each point, on :math:`f(x) \le f^*`: with :math:`\gamma = (f^* - \mu') / \sqrt{v'}` and
:math:`r = \phi(\gamma) / \Phi(\gamma)`,

.. math:: \mu_t = \mu' - \sqrt{v'}\, r, \qquad s_t^2 = v' (1 - \gamma r - r^2) + \sigma_m^2

where only the noiseless part is truncated. The score is the mean distance of these MS predictions from the mixture of
the draws' predictions without optima:

.. math:: \alpha(x) = \frac{1}{MS} \sum_{m, s} d\left(\mathcal{N}(\mu_t, s_t^2),\; \text{mixture}\right)

It is large where knowing the optimum would change predictions, and where draws of the parameters disagree.

Functions are drawn jointly at the most promising points, some random ones, and *all evaluated strings*: without these,
a maximum would often lie below a value that has been seen. Optima are those of the data; while a batch is filled each
keeps its maximum, and, as its value at :math:`x^*`, as many standard deviations from the mean there: what is learned of
:math:`x^*` by a point of the batch is not learned twice.

References:
    Hvarfner, C., Hellsten, E., Hutter, F., Nardi, L. (2023). Self-correcting Bayesian optimization through Bayesian
        active learning. NeurIPS. Equation 16 and algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.distances import (
    POINTS,
    Distance,
    Marginal,
    check_distance,
    distance_to_mixture,
)
from seqopt.acquisition.learning import Batches, believed_mean, check_batches, diversity, drawn
from seqopt.acquisition.numerics import in_blocks, inverse_mills, positive_std, truncation_shrinkage
from seqopt.acquisition.protocols import Posterior
from seqopt.acquisition.sampling import SELECTION_BETA, draw_joint, largest_upper_confidence
from seqopt.errors import InputError
from seqopt.posteriors import AnchoredPosterior, Anchors, stable_cholesky
from seqopt.utils.config import Configurable

Known: TypeAlias = Literal["joint", "value", "location"]
"""What of an optimum predictions are conditioned on: both, its value f* alone, or its place x* alone."""

NOISE = 1e-4
"""Variance, in units of the variance of standardised values, with which f(x*) is observed."""

LEAST_VARIANCE = 1e-12
"""Conditioned variances are kept above this."""


@dataclass(frozen=True, eq=False)
class Optima:
    """S optima of each of M draws of the parameters.

    Attributes:
        anchors: Where they are.
        values: Their values f*, ``M x S``.
        deviations: By how many standard deviations each differs from the mean at its place, ``M x S``.
    """

    anchors: Anchors
    values: Tensor
    deviations: Tensor


class SCoreBO(Configurable):
    """Self-correcting Bayesian optimisation; see the module.

    Args:
        distance: ``"hellinger"``, as published, ``"wasserstein"``, or ``"kl"``.
        known: What of an optimum predictions are conditioned on: ``"joint"``; ``"value"``, as max-value entropy search
            does; or ``"location"``, as predictive entropy search does. The latter two weaken optimisation relative to
            learning.
        num_samples: Optima of each draw of the parameters.
        marginal: What stands for the mixture; see `seqopt.acquisition.distances`.
        points: Points of an integral over the mixture itself.
        batch: ``"believer"`` or ``"diversity"``; see `seqopt.acquisition.learning`.
        repulsion: With ``"diversity"``, the factor of half the logarithm of the determinant.
        num_candidates: How many candidates of largest upper confidence bound functions are drawn at; with D draws of
            the parameters, 1 / sqrt(D) as many.
        num_random: Random candidates besides; likewise.
        max_points: Most points at which functions are drawn, evaluated strings included; beyond half of it, those of
            largest mean.
        noise: Variance with which the value of an optimum is observed, of standardised values.

    Raises:
        InputError: For an argument that is none of these. When prepared: if the posterior has no points, or cannot be
            related to others.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> covariance = torch.tensor([[1.0, 0.6, 0.1], [0.6, 1.2, 0.3], [0.1, 0.3, 0.8]])
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.2, 0.0]), covariance, 0.1)
        >>> prepared = SCoreBO().prepare(posterior, np.random.default_rng(0))
        >>> bool((prepared(posterior) > 0).all()), int(prepared(posterior).argmax())
        (True, 0)
    """

    name = "scorebo"

    def __init__(
        self,
        distance: Distance = "hellinger",
        known: Known = "joint",
        num_samples: int = 8,
        marginal: Marginal = "moments",
        *,
        points: int = POINTS,
        batch: Batches = "believer",
        repulsion: float = 1.0,
        num_candidates: int = 1_000,
        num_random: int = 250,
        max_points: int = 2_000,
        noise: float = NOISE,
    ) -> None:
        check_distance(distance, marginal, points)
        check_batches(batch, repulsion)
        if known not in get_args(Known):
            raise InputError(f"known is {known!r}; expected one of {', '.join(get_args(Known))}")
        least = {"num_samples": 1, "num_candidates": 1, "num_random": 0, "max_points": 2}
        given = (num_samples, num_candidates, num_random, max_points)
        for (name, smallest), number in zip(least.items(), given, strict=True):
            if isinstance(number, bool) or number < smallest:
                raise InputError(f"{name} is {number!r}; expected at least {smallest}")
        if not noise >= 0:
            raise InputError(f"noise is {noise!r}; expected zero or more")
        self.distance: Distance = distance
        self.known: Known = known
        self.num_samples = int(num_samples)
        self.marginal: Marginal = marginal
        self.points = int(points)
        self.batch: Batches = batch
        self.repulsion = float(repulsion)
        self.num_candidates = int(num_candidates)
        self.num_random = int(num_random)
        self.max_points = int(max_points)
        self.noise = float(noise)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedSCoreBO:
        """Draw the optima of one step; see `seqopt.acquisition.protocols.Acquisition`.

        Raises:
            InputError: If the posterior has no points, or cannot be related to others.
            ModelError: If the joint covariance cannot be factorised.
        """
        return self.prepared(self.optima(posterior, rng))

    def prepared(self, optima: Optima) -> PreparedSCoreBO:
        """The acquisition function with given optima."""
        return PreparedSCoreBO(self, optima)

    def optima(self, posterior: Posterior, rng: np.random.Generator) -> Optima:
        """Draw optima: of each draw of the parameters, `num_samples` functions at the points that are looked at.

        Raises:
            InputError: As `prepare`.
        """
        anchored = _anchored(posterior)
        count = len(posterior.moments)
        if count == 0:
            raise InputError("the optimum of no points was asked for; the pool or population is empty")
        observed = self._observed(posterior)
        share = 1.0 / math.sqrt(posterior.moments.mean.shape[:-1].numel())
        room = self.max_points - len(observed)
        chosen = largest_upper_confidence(posterior, min(math.ceil(self.num_candidates * share), room), SELECTION_BETA)
        rest = np.setdiff1d(np.arange(count), chosen.numpy())
        random = min(math.ceil(self.num_random * share), len(rest), max(0, room - len(chosen)))
        indices = torch.cat([chosen, torch.from_numpy(rng.choice(rest, random, replace=False))])
        known = posterior.observed_mean.shape[-1]
        mean, covariance = posterior.joint(indices, include_observed=len(observed) > 0)
        kept = torch.cat([observed, torch.arange(len(indices)) + (known if len(observed) else 0)])
        mean, covariance = mean[..., kept], covariance[..., kept, :][..., kept]
        factor, _ = stable_cholesky(covariance)
        functions = draw_joint(mean, factor, self.num_samples, rng)
        values, places = functions.max(-2)
        std = positive_std(covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0))
        deviations = (values - mean.gather(-1, places)) / std.gather(-1, places)
        # Only where optima are is needed, not everywhere where one could have been.
        used, numbers = torch.unique(places, return_inverse=True)
        inside = used < len(observed)
        points = anchored.anchors(indices[used[~inside] - len(observed)], observed[used[inside]])
        return Optima(Anchors(points, numbers.reshape(places.shape)), values, deviations)

    def _observed(self, posterior: Posterior) -> Tensor:
        """Which evaluated strings take part."""
        count, most = posterior.observed_mean.shape[-1], self.max_points // 2
        if count <= most:
            return torch.arange(count)
        return torch.topk(drawn(posterior.observed_mean).mean(0), most).indices.sort().values


class PreparedSCoreBO:
    """SCoreBO with given optima.

    Args:
        acquisition: Its settings.
        optima: Those of one step.
    """

    def __init__(self, acquisition: SCoreBO, optima: Optima) -> None:
        self._acquisition = acquisition
        self.optima = optima

    def __call__(self, posterior: Posterior) -> Tensor:
        """Scores of all points; see `PreparedAcquisition`.

        Raises:
            InputError: If the posterior cannot be related to that of `SCoreBO.prepare`.
        """
        moments, own = posterior.moments, self._acquisition
        pending = own.batch == "believer"
        if pending:
            mean, variance, outcome = believed_mean(posterior), moments.conditional_variance, moments.remaining_variance
        else:
            mean, variance, outcome = moments.outcome_mean, moments.variance, moments.outcome_variance
        mean = drawn(mean)
        # Without the places of optima, their covariances are not needed: these stand for the shape.
        covariance = mean[:, None].expand(-1, self.optima.values.shape[-1], -1)
        there: Tensor | None = None
        if own.known != "value":
            found = _anchored(posterior).at_anchors(self.optima.anchors, pending)
            there, covariance = drawn(found.variance), found.covariance.reshape(covariance.shape)

        def scored(mean: Tensor, variance: Tensor, outcome: Tensor, noise: Tensor, covariance: Tensor) -> Tensor:
            known_mean, known_variance = self._conditioned(mean, variance, there, covariance)
            return distance_to_mixture(
                known_mean.flatten(0, 1),
                (known_variance + noise[:, None]).flatten(0, 1),
                mean,
                outcome,
                distance=own.distance,
                marginal=own.marginal,
                points=own.points,
            )

        scores = in_blocks(scored, mean, drawn(variance), drawn(outcome), drawn(moments.residual_variance), covariance)
        return scores if pending else scores + own.repulsion * diversity(moments)

    def _conditioned(
        self, mean: Tensor, variance: Tensor, variance_there: Tensor | None, covariance: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Means and noiseless variances given each optimum, ``M x S x N``, from moments ``M x N``."""
        samples = self.optima.values.shape[-1]
        mean, variance = mean[:, None].expand_as(covariance), variance[:, None].expand_as(covariance)
        if variance_there is not None:
            total = (variance_there + self._acquisition.noise).clamp_min(torch.finfo(torch.float64).tiny)
            above = self.optima.deviations.reshape(-1, samples) * variance_there.sqrt()
            mean = mean + covariance * (above / total)[..., None]
            variance = variance - covariance.square() / total[..., None]
        variance = variance.clamp_min(LEAST_VARIANCE)
        if self._acquisition.known == "location":
            return mean, variance
        std = variance.sqrt()
        gamma = (self.optima.values.reshape(-1, samples)[..., None] - mean) / std
        ratio, _ = inverse_mills(gamma)
        _, remaining = truncation_shrinkage(gamma)
        return mean - std * ratio, variance * remaining


def _anchored(posterior: Posterior) -> AnchoredPosterior:
    if not isinstance(posterior, AnchoredPosterior):
        raise InputError(
            f"a {type(posterior).__name__} cannot be related to points of another posterior, as scorebo has to: it "
            "needs the methods anchors and at_anchors of seqopt.posteriors.AnchoredPosterior"
        )
    return posterior
