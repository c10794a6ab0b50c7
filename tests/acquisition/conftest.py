"""Small joint posteriors that the acquisition tests share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from seqopt.acquisition import DensePosterior


def random_covariance(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    """Covariance ``shape[:-1] x N x N`` with unequal variances and strong correlations, N = shape[-1]."""
    factor = rng.standard_normal((*shape, 3)) * rng.uniform(0.3, 1.5, size=(*shape, 1))
    return torch.from_numpy(factor @ np.swapaxes(factor, -1, -2) + 0.05 * np.eye(shape[-1]))


@pytest.fixture
def make_posterior() -> Callable[..., DensePosterior]:
    """Builds a random posterior: points N, evaluated strings n, draws (none by default), noise, seed, what is added to
    the means.
    """

    def make(
        points: int,
        observed: int = 0,
        draws: int | None = None,
        noise: float = 0.1,
        seed: int = 0,
        raised: torch.Tensor | float = 0.0,
        observed_raised: torch.Tensor | float = 0.0,
        best_observed: float = 1.0,
    ) -> DensePosterior:
        rng = np.random.default_rng(seed)
        lead = () if draws is None else (draws,)
        covariance = random_covariance(rng, *lead, observed + points)
        mean = torch.from_numpy(rng.normal(scale=0.7, size=(*lead, observed + points)))
        variances = noise * (1 + torch.arange(draws or 1, dtype=torch.float64)).reshape(lead or ())
        return DensePosterior(
            mean[..., observed:] + raised,
            covariance[..., observed:, observed:],
            variances,
            observed_mean=mean[..., :observed] + observed_raised,
            observed_covariance=covariance[..., :observed, :observed],
            cross_covariance=covariance[..., :observed, observed:],
            best_observed=best_observed,
        )

    return make
