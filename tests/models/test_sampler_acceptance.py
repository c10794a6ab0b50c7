"""Draws of kernel parameters from strings whose parameters are known, against quadrature on a dense grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from seqopt.encoding import Encoder
from seqopt.kernels import SubsequenceKernel
from seqopt.models.sampling import LogPosterior, SliceSampler
from seqopt.models.string_gp import default_kernel

SCALE, NOISE, GAP = 1.5, 0.1, 0.6
"""Of the process that the values come from."""


def kernel() -> SubsequenceKernel:
    found = default_kernel(order=2)
    found.raw_match_decay.requires_grad_(False)
    return found


def drawn(n: int) -> tuple[Encoder, np.ndarray]:
    rng = np.random.default_rng(5)
    strings: dict[str, None] = {}
    while len(strings) < n:
        strings["".join(rng.choice(list("ABC"), 7).tolist())] = None
    encoded = Encoder("characters").encode(list(strings))
    gram = SubsequenceKernel(order=2, match_decay=0.8, gap_decay=GAP).cross(encoded)
    factor = np.linalg.cholesky(SCALE * gram + NOISE * np.eye(n))
    return encoded, factor @ rng.standard_normal(n)


@pytest.mark.slow
def test_means_of_draws_are_those_of_quadrature() -> None:
    encoded, values = drawn(60)
    density = LogPosterior(kernel(), encoded, values, np.zeros(60), mean_std=0.0)
    sampler = SliceSampler(draws=2_500, burn_in=50, chains=2, extensions=0)
    sample = sampler.sample(density, np.random.default_rng(0))
    # Quadrature, written out.
    scales, noises = np.linspace(-3.5, 4.0, 60), np.linspace(-9.0, 1.0, 60)
    gaps = np.linspace(0.005, 0.995, 60)
    table = np.empty((60, 60, 60))
    for place, gap in enumerate(gaps):
        eigenvalues, vectors = np.linalg.eigh(SubsequenceKernel(order=2, match_decay=0.8, gap_decay=gap).cross(encoded))
        spectrum = np.exp(scales)[:, None, None] * eigenvalues + np.exp(noises)[:, None]
        table[place] = stats.norm.logpdf(vectors.T @ values, 0.0, np.sqrt(spectrum)).sum(-1)
    table += stats.norm.logpdf(scales, 0.0, 1.0)[:, None] + stats.norm.logpdf(noises, -4.0, 1.0)
    table += stats.norm.logpdf(gaps, 0.5, 0.5)[:, None, None]
    weights = np.exp(table - special.logsumexp(table))
    expected = {
        "outputscale": weights.sum((0, 2)) @ np.exp(scales),
        "noise_variance": weights.sum((0, 1)) @ np.exp(noises),
        "gap_decay": weights.sum((1, 2)) @ gaps,
    }
    for name, mean in expected.items():
        assert np.mean(sample.values[name]) == pytest.approx(mean, rel=0.05), name
        # Draws, and not copies of one estimate.
        assert len(np.unique(sample.values[name])) == 5_000


def test_without_data_draws_are_the_prior() -> None:
    encoded, values = drawn(4)
    # Noise without end makes values tell nothing.
    density = LogPosterior(kernel(), encoded, values, np.full(4, 1e12), mean_std=0.0)
    sample = SliceSampler(draws=120, burn_in=10, chains=2, extensions=0).sample(density, np.random.default_rng(1))
    priors = {
        "outputscale": (np.log, stats.norm(0.0, 1.0)),
        "noise_variance": (np.log, stats.norm(-4.0, 1.0)),
        "gap_decay": (np.asarray, stats.truncnorm(-1.0, 1.0, 0.5, 0.5)),
    }
    for name, (change, prior) in priors.items():
        assert stats.kstest(change(sample.values[name])[::2], prior.cdf).pvalue > 1e-3, name
