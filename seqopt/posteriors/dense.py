"""A posterior held as mean vectors and covariance matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqopt.errors import InputError
from seqopt.posteriors.anchors import AnchorMoments, Anchors
from seqopt.posteriors.moments import Moments


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What the measurements of N queries see, where that is not the target itself: y(q) = h(q) + noise.

    Attributes:
        mean: E[h], ``... x N``.
        covariance: cov(h, h), ``... x N x N``.
        with_target: cov(g, h), ``... x N x N``: row i is the target of query i, column j the outcome of query j.
    """

    mean: Tensor
    covariance: Tensor
    with_target: Tensor


@dataclass(frozen=True, eq=False)
class _AnchorSet:
    """The evaluated strings, as far as their covariances are known, and the points that a posterior began with.

    Attributes:
        observed: How many evaluated strings there are among them.
        mean: ``... x A``, given the data; what is believed of pending and chosen queries included.
        variance: ``... x A``.
        covariance: ``... x A x N``, with the points.
        given_data: The three before anything was chosen.
    """

    observed: int
    mean: Tensor
    variance: Tensor
    covariance: Tensor
    given_data: tuple[Tensor, Tensor, Tensor]


class DensePosterior:
    """Posterior at few queries (a population, a random sample), with its covariance matrices in memory.

    Implements `seqopt.posteriors.Posterior`. Observing the outcome of query b is the rank-one update

        S <- S - C_b C_b^T / (H_bb + s2),   C <- C - C_b H_b^T / (H_bb + s2),   H <- H - H_b H_b^T / (H_bb + s2),

    with S the covariance of the targets, H that of the noiseless outcomes, C that between them and s2 the noise
    variance; without ``outcomes`` all three are one. Memory and the cost of an update are O(N^2) per draw.

    Args:
        mean: ``... x N``, posterior mean of the targets.
        covariance: ``... x N x N``, their noiseless posterior covariance given the data.
        noise_variance: A number, ``...``, or ``... x N``.
        conditional_covariance: ``... x N x N``, covariance given also pending or chosen queries outside these N; by
            default ``covariance``. Not with ``outcomes``.
        conditioned_mean: ``... x c``, posterior mean at those outside queries; by default there are none.
        observed_mean: ``... x n``, posterior mean at the evaluated strings; by default there are none.
        observed_covariance: ``... x n x n``, their covariance; `joint` needs it to include them.
        cross_covariance: ``... x n x N``, between the evaluated strings and the targets; likewise.
        best_observed: Largest observed value of a target; by default there are none.
        outcomes: What the measurements see, where that is not the target itself.
        points: What `anchors` returns, from indices of queries and of evaluated strings, where posteriors of another
            kind are to understand it.

    Raises:
        InputError: If shapes do not fit together, or the noise variance is negative.

    Example:
        >>> posterior = DensePosterior(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]), 0.25)
        >>> posterior.given(0).moments.conditional_variance
        tensor([0.2000, 0.8000], dtype=torch.float64)
        >>> posterior.moments.conditional_variance
        tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(
        self,
        mean: Tensor,
        covariance: Tensor,
        noise_variance: Tensor | float,
        *,
        conditional_covariance: Tensor | None = None,
        conditioned_mean: Tensor | None = None,
        observed_mean: Tensor | None = None,
        observed_covariance: Tensor | None = None,
        cross_covariance: Tensor | None = None,
        best_observed: float = -math.inf,
        outcomes: Outcomes | None = None,
        points: Callable[[Tensor, Tensor], Any] | None = None,
    ) -> None:
        self._mean = mean.to(torch.float64)
        self._covariance = covariance.to(torch.float64)
        self._points = points
        draws, count = self._mean.shape[:-1], self._mean.shape[-1]
        _check_shape("covariance", self._covariance, (*draws, count, count))
        noise = torch.as_tensor(noise_variance, dtype=torch.float64)
        if bool((noise < 0).any()):
            raise InputError(f"noise_variance is {noise_variance}; expected zero or more")
        self._noise = noise if noise.ndim == self._mean.ndim else noise.expand(draws)[..., None]
        self._noise = self._noise.expand(*draws, count)
        if outcomes is not None and conditional_covariance is not None:
            raise InputError("give outcomes or conditional_covariance, not both")
        self._outcomes = None if outcomes is None else _checked(outcomes, (*draws, count))
        conditional = self._covariance if conditional_covariance is None else conditional_covariance.to(torch.float64)
        _check_shape("conditional_covariance", conditional, (*draws, count, count))
        self._observed_mean = _or_empty(observed_mean, draws)
        self._conditioned_mean = _or_empty(conditioned_mean, draws)
        self._best_observed = best_observed
        observed = self._observed_mean.shape[-1]
        self._observed_covariance = observed_covariance
        self._cross_covariance = cross_covariance
        if observed_covariance is not None:
            _check_shape("observed_covariance", observed_covariance, (*draws, observed, observed))
        if cross_covariance is not None:
            _check_shape("cross_covariance", cross_covariance, (*draws, observed, count))
        # Covariances given the pending and chosen queries too: of targets, between both, of outcomes.
        self._conditional = conditional
        self._between = conditional if self._outcomes is None else self._outcomes.with_target
        self._remaining = conditional if self._outcomes is None else self._outcomes.covariance
        self._moments = self._given_data()
        self._believed = self._moments.outcome_mean
        self._anchor = self._first_anchors()

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._conditioned_mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self._best_observed

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean ``... x k`` and covariance ``... x k x k`` of targets given the data, evaluated strings first.

        Raises:
            InputError: If evaluated strings are to be included and their covariances were not given.
        """
        mean = self._mean[..., indices]
        covariance = self._covariance[..., indices, :][..., indices]
        if not include_observed or self._observed_mean.shape[-1] == 0:
            return mean, covariance
        if self._observed_covariance is None or self._cross_covariance is None:
            raise InputError(
                "the evaluated strings cannot be included: give DensePosterior observed_covariance and cross_covariance"
            )
        cross = self._cross_covariance[..., indices].to(torch.float64)
        top = torch.cat([self._observed_covariance.to(torch.float64), cross], dim=-1)
        bottom = torch.cat([cross.transpose(-1, -2), covariance], dim=-1)
        return torch.cat([self._observed_mean, mean], dim=-1), torch.cat([top, bottom], dim=-2)

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances of targets given the data, ``... x N x k``."""
        return self._covariance[..., indices]

    def given(self, index: int) -> DensePosterior:
        """The posterior given an outcome, of unknown value, of query ``index``.

        A query of no variance, noise included, carries no information and changes nothing.
        """
        outcome = self._remaining[..., index]
        total = outcome[..., index] + self._noise[..., index]
        root = total.clamp_min(1e-300).sqrt()[..., None]
        informative = (total > 0)[..., None]
        target = torch.where(informative, self._between[..., index] / root, 0.0)
        scaled = torch.where(informative, outcome / root, 0.0)
        found = object.__new__(DensePosterior)
        found.__dict__.update(self.__dict__)
        found._conditional = self._conditional - target[..., :, None] * target[..., None, :]
        if self._outcomes is None:
            found._between = found._remaining = found._conditional
        else:
            found._between = self._between - target[..., :, None] * scaled[..., None, :]
            found._remaining = self._remaining - scaled[..., :, None] * scaled[..., None, :]
        found._moments = self._moments.given(
            _diagonal(found._conditional), None if self._outcomes is None else _diagonal(found._remaining) + self._noise
        )
        found._conditioned_mean = torch.cat([self._conditioned_mean, self._mean[..., index, None]], dim=-1)
        here = self._believed[..., index]
        innovation = torch.where(informative[..., 0], (here.mean() - here) / root[..., 0], 0.0)[..., None]
        found._believed = self._believed + scaled * innovation
        if self._anchor is not None:
            anchor = self._anchor
            link = torch.where(informative, anchor.covariance[..., index] / root, 0.0)
            found._anchor = _AnchorSet(
                anchor.observed,
                anchor.mean + link * innovation,
                (anchor.variance - link.square()).clamp_min(0.0),
                anchor.covariance - link[..., :, None] * scaled[..., None, :],
                anchor.given_data,
            )
        return found

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`; queries outside these N count as nothing."""
        return self._believed

    def anchors(self, indices: Tensor, observed: Tensor) -> Any:
        """Numbers of points: queries by their indices among those that the posterior began with, after evaluated
        strings by theirs. They are understood by posteriors that `take` or `given` have made, or of equal size.

        Raises:
            InputError: If evaluated strings are asked for whose covariances were not given.
        """
        if self._points is not None:
            return self._points(self._numbers[indices], observed)
        anchor = self._anchors_known()
        if len(observed) and not anchor.observed:
            raise InputError("give DensePosterior observed_covariance and cross_covariance")
        return torch.cat([observed, self._numbers[indices] + anchor.observed])

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        anchor = self._anchors_known()
        mean, variance, covariance = anchor.given_data
        if pending:
            mean, variance, covariance = anchor.mean, anchor.variance, anchor.covariance
        places = anchors.points[anchors.places]
        if bool((places >= mean.shape[-1]).any()):
            raise InputError("these anchors are of another posterior: take points of one by DensePosterior.take")
        across = places[..., None].expand(*places.shape, covariance.shape[-1])
        return AnchorMoments(mean.gather(-1, places), variance.gather(-1, places), covariance.gather(-2, across))

    def take(self, indices: Tensor) -> DensePosterior:
        """The posterior at some of the queries, which knows all of them as anchors."""
        found = object.__new__(DensePosterior)
        found.__dict__.update(self.__dict__)
        for name in ("_mean", "_noise", "_believed"):
            setattr(found, name, getattr(self, name)[..., indices])
        for name in ("_covariance", "_conditional", "_between", "_remaining"):
            setattr(found, name, getattr(self, name)[..., indices, :][..., indices])
        if self._outcomes is not None:
            own = self._outcomes
            found._outcomes = Outcomes(
                own.mean[..., indices],
                *(part[..., indices, :][..., indices] for part in (own.covariance, own.with_target)),
            )
        if self._cross_covariance is not None:
            found._cross_covariance = self._cross_covariance[..., indices]
        found._moments = self._moments.take(indices)
        found._numbers = self._numbers[indices]
        anchor = self._anchor
        if anchor is not None:
            mean, variance, covariance = anchor.given_data
            found._anchor = _AnchorSet(
                anchor.observed,
                anchor.mean,
                anchor.variance,
                anchor.covariance[..., indices],
                (mean, variance, covariance[..., indices]),
            )
        return found

    def _first_anchors(self) -> _AnchorSet | None:
        """The anchors that there are; `None` where they are not known given what is pending or measured otherwise."""
        self._numbers = torch.arange(self._mean.shape[-1])
        if self._outcomes is not None or self._conditional is not self._covariance:
            return None
        covariance, mean, variance, observed = self._covariance, self._mean, _diagonal(self._covariance), 0
        if self._observed_covariance is not None and self._cross_covariance is not None:
            observed = self._observed_mean.shape[-1]
            covariance = torch.cat([self._cross_covariance.to(torch.float64), covariance], -2)
            mean = torch.cat([self._observed_mean, mean], -1)
            variance = torch.cat([_diagonal(self._observed_covariance.to(torch.float64)), variance], -1)
        return _AnchorSet(observed, mean, variance, covariance, (mean, variance, covariance))

    def _anchors_known(self) -> _AnchorSet:
        if self._anchor is None:
            raise InputError(
                "covariances with anchors are not known to a DensePosterior with outcomes or conditional_covariance"
            )
        return self._anchor

    def _given_data(self) -> Moments:
        variance = _diagonal(self._covariance)
        plain = Moments.of_target(self._mean, variance, _diagonal(self._conditional), self._noise)
        if self._outcomes is None:
            return plain
        own, covariance = _diagonal(self._outcomes.covariance), self._outcomes.with_target.diagonal(dim1=-2, dim2=-1)
        explained = torch.where(variance > 0, covariance.square() / variance.clamp_min(1e-300), 0.0)
        return Moments(
            self._mean,
            variance,
            self._outcomes.mean,
            own + self._noise,
            covariance,
            (own - explained).clamp_min(0.0) + self._noise,
            variance,
            own + self._noise,
        )


def _diagonal(covariance: Tensor) -> Tensor:
    return covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)


def _or_empty(values: Tensor | None, draws: torch.Size) -> Tensor:
    if values is None:
        return torch.empty(*draws, 0, dtype=torch.float64)
    return values.to(torch.float64)


def _checked(outcomes: Outcomes, shape: tuple[int, ...]) -> Outcomes:
    _check_shape("outcomes.mean", outcomes.mean, shape)
    for name in ("covariance", "with_target"):
        _check_shape(f"outcomes.{name}", getattr(outcomes, name), (*shape, shape[-1]))
    return Outcomes(*(getattr(outcomes, name).to(torch.float64) for name in ("mean", "covariance", "with_target")))


def _check_shape(name: str, values: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(values.shape) != expected:
        raise InputError(f"{name} has shape {tuple(values.shape)}; expected {expected}")
