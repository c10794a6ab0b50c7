"""The conformance suite of posteriors: ours pass it, and each broken one fails where it is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from seqopt.posteriors import DensePosterior, Moments, Posterior
from seqopt.testing.acquisitions import example_posterior
from seqopt.testing.posteriors import PosteriorConformance


@pytest.mark.parametrize("draws", [None, 3])
@pytest.mark.parametrize("observed", [0, 4])
class TestDense(PosteriorConformance):
    @pytest.fixture
    def posterior(self, draws: int | None, observed: int) -> Posterior:
        return example_posterior(draws=draws, observed=observed)


class TestPending(PosteriorConformance):
    @pytest.fixture
    def posterior(self) -> Posterior:
        return example_posterior().given(2)


class _Dense(DensePosterior):
    """Four points; broken as a subclass says."""

    def __init__(self) -> None:
        inner = example_posterior(points=4, observed=2)
        self.__dict__.update(inner.__dict__)

    def given(self, index: int) -> Any:
        found = super().given(index)
        found.__class__ = type(self)
        return found


class _Float(_Dense):
    @property
    def moments(self) -> Moments:
        return replace(super().moments, mean=super().moments.mean.float())


class _Alone(_Dense):
    @property
    def moments(self) -> Moments:
        return super().moments.take(torch.tensor([0]))


class _Negative(_Dense):
    @property
    def moments(self) -> Moments:
        return replace(super().moments, conditional_variance=super().moments.conditional_variance - 0.5)


class _TooCorrelated(_Dense):
    @property
    def moments(self) -> Moments:
        return replace(super().moments, covariance=3 * super().moments.covariance)


class _Noiseless(_Dense):
    @property
    def moments(self) -> Moments:
        return replace(super().moments, residual_variance=torch.zeros(4, dtype=torch.float64))


class _Wide(_Dense):
    @property
    def observed_mean(self) -> Tensor:
        return super().observed_mean[None]


class _Jittered(_Dense):
    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        mean, covariance = super().joint(indices, include_observed)
        return mean, covariance + 1e-3 * torch.eye(len(mean), dtype=torch.float64)


class _ObservedLast(_Dense):
    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        mean, covariance = super().joint(indices, include_observed)
        return (mean.flip(0), covariance.flip(0, 1)) if include_observed else (mean, covariance)


class _CrossConditional(_Dense):
    def cross(self, indices: Tensor) -> Tensor:
        return 0.5 * super().cross(indices)


class _InPlace(_Dense):
    def given(self, index: int) -> Any:
        self.__dict__.update(super().given(index).__dict__)
        return self


class _Inert(_Dense):
    def given(self, index: int) -> Any:
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found._conditioned_mean = torch.cat([self._conditioned_mean, self._mean[..., index, None]], -1)
        return found


class _Doubtful(_Dense):
    """Takes an outcome for one of twice the noise."""

    def given(self, index: int) -> Any:
        noise = self._noise
        self._noise = 2 * noise
        found = super().given(index)
        self._noise = found._noise = noise
        return found


class _Ordered(_Dense):
    """Believes the first outcome less than the second."""

    def given(self, index: int) -> Any:
        noise = self._noise
        self._noise = noise * (1.0 if self._conditioned_mean.shape[-1] else 5.0)
        found = super().given(index)
        self._noise = found._noise = noise
        return found


BROKEN_POSTERIORS: list[tuple[type, str]] = [
    (_Alone, "several_queries"),
    (_Float, "finite_numbers_of_one_shape"),
    (_Negative, "no_variance_is_negative"),
    (_TooCorrelated, "fit_together"),
    (_Noiseless, "fit_together"),
    (_Wide, "as_many_draws"),
    (_Jittered, "the_joint_distribution"),
    (_ObservedLast, "evaluated_strings_come_first"),
    (_CrossConditional, "cross_covariances"),
    (_InPlace, "leaves_the_original"),
    (_Inert, "moves_nothing_else"),
    (_Doubtful, "by_what_it_explains"),
    (_Ordered, "the_order_of_outcomes"),
]


def test_each_broken_posterior_fails_where_it_is_broken(failures: Callable[..., set[str]]) -> None:
    assert failures(PosteriorConformance, posterior=_Dense) == set()
    caught: set[str] = set()
    for posterior, where in BROKEN_POSTERIORS:
        failed = failures(PosteriorConformance, posterior=posterior)
        assert any(where in name for name in failed), (posterior, failed)
        caught |= failed
    assert caught == {name for name in vars(PosteriorConformance) if name.startswith("test_")}
