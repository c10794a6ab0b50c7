"""The conformance suite of acquisition functions: ours pass it, and each broken one fails where it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqopt.acquisition import ACQUISITIONS, GIBBON, Acquisition, LogExpectedImprovement, resolve_acquisition
from seqopt.posteriors import Moments, Posterior
from seqopt.testing.acquisitions import AcquisitionConformance

RANDOM = ("thompson", "random")


@pytest.mark.parametrize("name", [name for name in ACQUISITIONS if name not in RANDOM])
class TestNamed(AcquisitionConformance):
    @pytest.fixture
    def acquisition(self, name: str) -> Acquisition:
        return resolve_acquisition(name)


@pytest.mark.parametrize("name", RANDOM)
class TestRandom(AcquisitionConformance):
    random = True

    @pytest.fixture
    def acquisition(self, name: str) -> Acquisition:
        return resolve_acquisition(name)


class TestGumbel(AcquisitionConformance):
    @pytest.fixture
    def acquisition(self) -> Acquisition:
        return GIBBON(sampler="gumbel", num_samples=3)


class _Bound:
    """mean + 2 std, averaged over draws; broken as a subclass says."""

    name = "bound"
    monotone = True

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> Any:
        return self.score

    def score(self, posterior: Posterior) -> Tensor:
        return self.of(posterior.moments)

    def of(self, moments: Moments) -> Tensor:
        values = moments.mean + 2 * moments.conditional_variance.sqrt()
        return values.reshape(-1, values.shape[-1]).mean(0)


class _Nameless(_Bound):
    name = ""


class _Single(_Bound):
    def of(self, moments: Moments) -> Tensor:
        return super().of(moments).float()


class _DrawsApart(_Bound):
    def of(self, moments: Moments) -> Tensor:
        return moments.mean + 2 * moments.conditional_variance.sqrt()


class _FirstDraw(_Bound):
    def of(self, moments: Moments) -> Tensor:
        return super().of(moments.take(torch.arange(len(moments)))) if moments.mean.ndim == 1 else moments.mean[0]


class _Summed(_Bound):
    def of(self, moments: Moments) -> Tensor:
        return super().of(moments) * (len(moments.mean) if moments.mean.ndim > 1 else 1)


class _Standardised(_Bound):
    """Needs two points at least."""

    def of(self, moments: Moments) -> Tensor:
        scores = super().of(moments)
        return (scores - scores.mean()) / (scores - scores.mean()).square().mean().sqrt()


class _Global(_Bound):
    def of(self, moments: Moments) -> Tensor:
        return super().of(moments) + 0.1 * torch.randn(len(moments), dtype=torch.float64)


class _Overwrites(_Bound):
    def of(self, moments: Moments) -> Tensor:
        moments.mean.add_(2 * moments.conditional_variance.sqrt())
        return moments.mean.reshape(-1, len(moments)).mean(0)


class _Careful(_Bound):
    def of(self, moments: Moments) -> Tensor:
        values = moments.mean - 2 * moments.conditional_variance.sqrt()
        return values.reshape(-1, values.shape[-1]).mean(0)


class _Underflows(LogExpectedImprovement):
    """Expected improvement whose logarithm is taken too late."""

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> Any:
        def score(posterior: Posterior) -> Tensor:
            moments, normal = posterior.moments, torch.distributions.Normal(0.0, 1.0)
            std = moments.conditional_variance.sqrt()
            z = (moments.mean - 1.0) / std
            improvement = std * (normal.log_prob(z).exp() + z * normal.cdf(z))
            values = improvement.log() - improvement.log().amax(-1, keepdim=True)
            return values.reshape(-1, values.shape[-1]).mean(0)

        return score


class _Divides(_Bound):
    def of(self, moments: Moments) -> Tensor:
        values = moments.mean * moments.conditional_variance / moments.variance
        return values.reshape(-1, values.shape[-1]).mean(0)


BROKEN: list[tuple[type, str]] = [
    (_Nameless, "with_a_name"),
    (_Single, "each_point_has_one_score"),
    (_DrawsApart, "each_point_has_one_score"),
    (_Standardised, "one_point_is_enough"),
    (_Standardised, "the_same_score_among_others"),
    (_Global, "the_generator_alone_decides"),
    (_Overwrites, "left_as_it_was"),
    (_Careful, "more_uncertainty"),
    (_FirstDraw, "every_draw"),
    (_Summed, "equal_draws"),
    (_Underflows, "far_tails"),
    (_Divides, "without_variance"),
]


def test_each_broken_acquisition_function_fails_where_it_is_broken(failures: Callable[..., set[str]]) -> None:
    assert failures(AcquisitionConformance, acquisition=_Bound) == set()
    caught: set[str] = set()
    for acquisition, where in BROKEN:
        failed = failures(AcquisitionConformance, acquisition=acquisition)
        assert any(where in name for name in failed), (acquisition, failed)
        caught |= failed
    assert caught == {name for name in vars(AcquisitionConformance) if name.startswith("test_")}
