"""BoTorch's Gaussian processes behind the posterior that acquisition functions of seqopt see.

A *point* is a row of the unit cube with one more column that says how it is measured. Its target is the same point with
another last column. Everything an acquisition function asks for is a posterior moment of points and of targets, so one
class serves single and several fidelities, continuous ones and plates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import gpytorch
import torch
from botorch.models.gpytorch import GPyTorchModel
from torch import Tensor

from seqopt.posteriors import Moments, stable_cholesky


class Process:
    """A fitted BoTorch model as a Gaussian process over points; parameters are fixed.

    Values are standardised by whoever trains the model: a model with an outcome transform is not for this.

    Args:
        model: With ``mean_module``, ``covar_module``, ``likelihood`` and one output; fitted.
        target: Last column of targets.
    """

    def __init__(self, model: GPyTorchModel, target: float) -> None:
        model.eval()
        self.model, self.target = model, target
        self.inputs: Tensor = model.train_inputs[0].detach()
        with torch.no_grad():
            noise = noise_of(model)
            covariance = self.prior(self.inputs, self.inputs)
            self._noise = noise
            self._factor, _ = stable_cholesky(covariance + torch.diag(noise))
            residual = model.train_targets.detach() - self.prior_mean(self.inputs)
            self._weights = torch.cholesky_solve(residual[:, None], self._factor)[:, 0]

    def prior(self, one: Tensor, two: Tensor) -> Tensor:
        """Prior covariances, ``n x m``."""
        # At once, not when needed: of small matrices, laziness is what costs.
        with gpytorch.settings.lazily_evaluate_kernels(False):
            found: Tensor = self.model.covar_module(one, two).to_dense()
        return found

    def prior_variance(self, points: Tensor) -> Tensor:
        """Their diagonal, ``n``."""
        found: Tensor = self.model.covar_module(points, diag=True)
        return found

    def prior_mean(self, points: Tensor) -> Tensor:
        """Prior means, ``n``."""
        return means(self.model, points)

    def mean(self, points: Tensor) -> Tensor:
        """Posterior means, ``n``; gradients flow to the points."""
        return self.prior_mean(points) + self.prior(points, self.inputs) @ self._weights

    def whitened(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior means, ``n``, and prior covariances with the data, solved by their factor, ``n_data x n``."""
        prior = self.prior(self.inputs, points)
        rows = torch.linalg.solve_triangular(self._factor, prior, upper=False)
        return self.prior_mean(points) + self._weights @ prior, rows

    def targets(self, points: Tensor) -> Tensor:
        """The targets of points."""
        return torch.cat([points[:, :-1], points.new_full((len(points), 1), self.target)], dim=-1)

    def noise(self, points: Tensor) -> Tensor:
        """Noise variances at points: that of data with the same last column, or the largest one."""
        if bool((self._noise == self._noise[0]).all()):
            return self._noise[:1].expand(len(points))
        found = self._noise.max().expand(len(points)).clone()
        for way in set(self.inputs[:, -1].tolist()):
            found[points[:, -1] == way] = self._noise[self.inputs[:, -1] == way].mean()
        return found

    @torch.no_grad()
    def at(self, points: Tensor, best_observed: float = -torch.inf) -> PointsPosterior:
        """The posterior at N points, ``N x (d + 1)``."""
        return PointsPosterior(self, points, best_observed)


def means(model: GPyTorchModel, points: Tensor) -> Tensor:
    """Prior means of a model at points, ``n``."""
    found: Tensor = model.mean_module(points)
    if found.ndim > 1:  # a column for each level
        return found.gather(-1, points[:, -1:].long())[:, 0]
    return found.expand(len(points))


def noise_of(model: GPyTorchModel) -> Tensor:
    """Noise variances of the data of a model, ``n``."""
    noise: Tensor = model.likelihood.noise.detach()
    return noise.expand(len(model.train_targets)) if noise.numel() == 1 else noise


@dataclass(frozen=True, eq=False)
class Seen:
    """Points whose outcomes are taken as seen, of unknown value, in order.

    Attributes:
        indices: Of those among the points.
        targets: cov(g, y_k) over the standard deviation of y_k, given those before; one row each.
        outcomes: The same of noiseless outcomes.
    """

    indices: tuple[int, ...] = ()
    targets: tuple[Tensor, ...] = ()
    outcomes: tuple[Tensor, ...] = ()


class PointsPosterior:
    """Posterior at N points; implements `seqopt.posteriors.Posterior`.

    No matrix of N x N is held: memory is O(N n) for n data, and one point more is taken as seen in O(N n).

    Args:
        process: The process.
        points: ``N x (d + 1)``.
        best_observed: Largest value of a target that was measured, standardised.
    """

    def __init__(self, process: Process, points: Tensor, best_observed: float = -torch.inf) -> None:
        self.process, self.points, self._best_observed = process, points, best_observed
        self._seen = Seen()
        self._own = process.targets(points)
        # Where points are their own targets, everything is computed once.
        self._plain = bool((self._own[:, -1] == points[:, -1]).all())
        self._outcome_mean, self._outcome_rows = process.whitened(points)
        self._mean, self._target_rows = self._outcome_mean, self._outcome_rows
        if not self._plain:
            self._mean, self._target_rows = process.whitened(self._own)
        self._moments = self._given_data()

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self._best_observed

    @cached_property
    def _observed(self) -> Tensor:
        return torch.unique(self.process.targets(self.process.inputs), dim=0)

    @cached_property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`; of the targets of all data, each once."""
        with torch.no_grad():
            return self.process.mean(self._observed)

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments.mean[list(self._seen.indices)]

    @torch.no_grad()
    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """See `seqopt.posteriors.Posterior`."""
        points, rows, mean = self._own[indices], self._target_rows[:, indices], self._moments.mean[indices]
        if include_observed:
            points = torch.cat([self._observed, points])
            rows = torch.cat([self.process.whitened(self._observed)[1], rows], dim=-1)
            mean = torch.cat([self.observed_mean, mean])
        return mean, self.process.prior(points, points) - rows.T @ rows

    @torch.no_grad()
    def cross(self, indices: Tensor) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        prior = self.process.prior(self._own, self._own[indices])
        return prior - self._target_rows.T @ self._target_rows[:, indices]

    @torch.no_grad()
    def given(self, index: int) -> PointsPosterior:
        """See `seqopt.posteriors.Posterior`."""
        target, outcome = self._with(index)
        total = float(self._moments.remaining_variance[index])
        scale = total**-0.5 if total > 0.0 else 0.0
        target, outcome = target * scale, outcome * scale
        found = object.__new__(PointsPosterior)
        found.__dict__.update(self.__dict__)
        seen = self._seen
        found._seen = Seen((*seen.indices, index), (*seen.targets, target), (*seen.outcomes, outcome))
        moments = self._moments
        found._moments = moments.given(
            (moments.conditional_variance - target.square()).clamp_min(0.0),
            None if self._plain else (moments.remaining_variance - outcome.square()).clamp_min(self._floor),
        )
        return found

    @property
    def seen(self) -> tuple[int, ...]:
        """Indices of the points whose outcomes are taken as seen."""
        return self._seen.indices

    def unconditioned(self) -> PointsPosterior:
        """The same, given the data only."""
        if not self.seen:
            return self
        found = object.__new__(PointsPosterior)
        found.__dict__.update(self.__dict__)
        found._seen = Seen()
        found._moments = self._moments.given(
            self._moments.variance, None if self._plain else self._moments.outcome_variance
        )
        return found

    def _with(self, index: int) -> tuple[Tensor, Tensor]:
        """Covariances of all targets and outcomes with the outcome of one point, given the data and those seen."""
        point = self.points[index : index + 1]
        own, seen = self._outcome_rows[:, index], self._seen
        outcome = self.process.prior(self.points, point)[:, 0] - self._outcome_rows.T @ own
        for row in seen.outcomes:
            outcome = outcome - row * row[index]
        if self._plain:
            return outcome, outcome
        target = self.process.prior(self._own, point)[:, 0] - self._target_rows.T @ own
        for row, other in zip(seen.targets, seen.outcomes, strict=True):
            target = target - row * other[index]
        return target, outcome

    def _given_data(self) -> Moments:
        process = self.process
        mean = self._mean
        variance = (process.prior_variance(self._own) - self._target_rows.square().sum(0)).clamp_min(0.0)
        noise = self._floor = process.noise(self.points)
        if self._plain:
            return Moments.of_target(mean, variance, variance, noise)
        own = (process.prior_variance(self.points) - self._outcome_rows.square().sum(0)).clamp_min(0.0)
        between = paired(process, self._own, self.points) - (self._target_rows * self._outcome_rows).sum(0)
        explained = torch.where(variance > 0.0, between.square() / variance.clamp_min(1e-300), 0.0)
        return Moments(
            mean,
            variance,
            self._outcome_mean,
            own + noise,
            between,
            (own - explained).clamp_min(0.0) + noise,
            variance,
            own + noise,
        )


def paired(process: Process, one: Tensor, two: Tensor) -> Tensor:
    """Prior covariances of each point of ``one`` with the same of ``two``, ``n``."""
    found: Tensor = process.model.covar_module(one, two, diag=True)
    return found
