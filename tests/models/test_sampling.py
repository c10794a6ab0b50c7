"""Samplers of kernel parameters, against dense grids that integrate the model of `LogPosterior` by themselves.

The oracle knows nothing of coordinates, of the mean that is integrated out, or of eigendecompositions of Gram matrices:
it evaluates y ~ N(0, a K + s2 I + m^2 1 1^T) at all points of a grid of the parameters themselves, with priors by scipy.
"""

import copy
import itertools
import math
from dataclasses import dataclass

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from scipy import special, stats

from seqopt.encoding import CodonFeatures, Encoder, FeatureEncoder, TokensAndFeatures
from seqopt.encoding.features import FeatureRows
from seqopt.encoding.fields import Fields
from seqopt.errors import InputError, ModelError
from seqopt.kernels import JointKernel, MinMaxKernel, NgramKernel, OneHotKernel, SubsequenceKernel, TanimotoKernel
from seqopt.kernels.composite import OnField, Product, Sum
from seqopt.kernels.context import CoregionalizationKernel, SameLevelKernel
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.log_units import LogBounds, LogUnitNormalPrior
from seqopt.models.registry import smooth_gp
from seqopt.models.sampling import (
    GridSampler,
    KernelParameters,
    LogPosterior,
    Sampler,
    SliceSampler,
    effective_sample_size,
    split_r_hat,
)
from seqopt.models.string_gp import default_kernel

STRINGS = ["GATTACAA", "GATTTACA", "TTACATGC", "CATCATCA", "AAAATAAA", "GGCGCGCC", "ATGCATGC", "CCATGGTA"]
TARGETS = stats.zscore([2.0, 1.0, 1.5, 0.3, -1.0, 0.2, 0.5, 0.4], ddof=1)
GENES = ["ATGGCT", "ATGGCA", "ATGGCG", "TTTGCG", "TTCGCT", "TTCAAA", "AAGAAA", "GGGAAG"]
COUNTS = np.random.default_rng(1).poisson(1.0, size=(8, 12)).astype(float)
LEVELS = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0], [0.0], [0.0]])
TOKENS = Encoder().encode(STRINGS)


@dataclass
class Axis:
    """A parameter in the oracle: its values, and the prior density there per unit of the parameter."""

    name: str
    logarithmic: bool
    values: np.ndarray
    density: np.ndarray

    @property
    def coordinate(self):
        return np.log(self.values) if self.logarithmic else self.values


def decay(name, count=16):
    values = np.linspace(1e-4, 1.0, count)
    prior = stats.truncnorm((1e-4 - 0.5) / 0.5, 1.0, 0.5, 0.5)
    return Axis(name, False, values, prior.pdf(values))


def log_normal(name, median, std, lower, upper, count=40):
    values = np.exp(np.linspace(math.log(lower), math.log(upper), count)).clip(lower, upper)
    prior = stats.lognorm(std, scale=median)
    return Axis(name, True, values, prior.pdf(values) / (prior.cdf(upper) - prior.cdf(lower)))


def adapted_axis():
    kernel = NgramKernel(3)
    kernel.adapt(TOKENS.to_tensor())
    return log_normal("lengthscale", float(kernel.lengthscale_prior.loc.exp()), 0.4, 0.1, 1e4, 120)


def set_joint(kernel, weight, match, gap):
    kernel.weight, kernel.tokens.match_decay, kernel.tokens.gap_decay = weight, match, gap


def set_decays(kernel, match, gap):
    kernel.match_decay, kernel.gap_decay = match, gap


def set_lengthscale(kernel, value):
    kernel.lengthscale = value


def set_variances(kernel, first, second):
    kernel.kernels[1].kernel.variances = [first, second]


def coregionalized():
    levels = CoregionalizationKernel(2, factors=[[1.0], [0.7]], variances=0.2)
    levels.raw_factors.requires_grad_(False)
    return Product(OnField(OneHotKernel(), "tokens"), OnField(levels, "fidelity"))


def scaled():
    """A sum with an output scale of a part, whose prior is one per unit of the logarithm."""
    plate = gpytorch.kernels.ScaleKernel(
        SameLevelKernel(),
        outputscale_prior=LogUnitNormalPrior(-1.0, 0.8),
        outputscale_constraint=LogBounds(1e-4, 1e4, initial_value=0.3),
    )
    return Sum(OnField(OneHotKernel(), "tokens"), OnField(plate, "fidelity"))


def set_plate(kernel, value):
    kernel.kernels[1].kernel.outputscale = value


def weight_axis():
    values = np.linspace(0.0, 1.0, 8)
    return Axis("weight", False, values, stats.truncnorm(-1.0, 1.0, 0.5, 0.5).pdf(values))


def joint():
    return JointKernel(default_kernel(order=3), MinMaxKernel(), COUNTS.shape[1])


def decays_of_joint():
    return [decay("tokens.match_decay", 9), decay("tokens.gap_decay", 9)]


ROWS = FeatureRows(COUNTS)
FIELDS = Fields({"fidelity": FeatureRows(LEVELS), "tokens": TOKENS})
CODONS = FeatureEncoder(CodonFeatures()).encode(GENES)


def variance_axes():
    names = [f"kernels.1.kernel.variances[{place}]" for place in range(2)]
    return [log_normal(name, 0.2, 2.0, 1e-6, 1e3, 24) for name in names]


CASES = {
    "tanimoto": (TanimotoKernel, ROWS, None, list),
    "minmax": (MinMaxKernel, ROWS, None, list),
    "one-hot": (OneHotKernel, TOKENS, None, list),
    "ngrams": (lambda: NgramKernel(3), TOKENS, set_lengthscale, lambda: [adapted_axis()]),
    "ssk": (
        lambda: default_kernel(order=3),
        TOKENS,
        set_decays,
        lambda: [decay("match_decay"), decay("gap_decay")],
    ),
    "joint": (joint, TokensAndFeatures(TOKENS, ROWS), set_joint, lambda: [weight_axis(), *decays_of_joint()]),
    "codons": (
        lambda: smooth_gp(CodonFeatures()).kernel,
        CODONS,
        set_lengthscale,
        lambda: [log_normal("lengthscale", 1.0, 1.0, 0.025, 400.0, 80)],
    ),
    "coregionalization": (coregionalized, FIELDS, set_variances, variance_axes),
    "plates": (
        scaled,
        FIELDS,
        set_plate,
        lambda: [log_normal("kernels.1.kernel.outputscale", math.exp(-1.0), 0.8, 1e-4, 1e4, 80)],
    ),
}


def exact(name, mean_std=1.0):
    """Log evidence, and mean and variance of every coordinate, by a dense grid."""
    build, encoded, change, make_axes = CASES[name]
    kernel, axes = copy.deepcopy(build()).to(torch.float64), make_axes()
    scales, noises = np.linspace(-4.5, 4.5, 25), np.linspace(math.log(1e-4), 1.5, 36)
    own = np.array([axis.values for axis in axes], dtype=object) if axes else []
    table = np.empty((*(len(axis.values) for axis in axes), len(scales), len(noises)))
    for places in np.ndindex(table.shape[:-2]):
        if change is not None:
            change(kernel, *(float(values[place]) for values, place in zip(own, places, strict=True)))
        gram = KernelEvaluator(kernel, encoded.width).cross(encoded, None)
        covariances = np.exp(scales)[:, None, None] * gram + mean_std**2
        values, vectors = np.linalg.eigh(covariances)
        projected = np.einsum("sij,i->sj", vectors, TARGETS)
        variances = values[:, None] + np.exp(noises)[:, None]
        table[places] = stats.norm.logpdf(projected[:, None], 0.0, np.sqrt(variances)).sum(-1)
    table += stats.norm.logpdf(scales, 0, 1)[:, None] + np.log(scales[1] - scales[0])
    table += stats.norm.logpdf(noises, -4, 1) + np.log(noises[1] - noises[0])
    for place, axis in enumerate(axes):
        mass = np.log(trapezoid(axis) * axis.density)
        table += mass.reshape(-1, *[1] * (table.ndim - place - 1))
    evidence = special.logsumexp(table)
    weights = np.exp(table - evidence)
    moments = {}
    coordinates = {axis.name: axis.coordinate for axis in axes} | {"outputscale": scales, "noise_variance": noises}
    for place, (key, points) in enumerate(coordinates.items()):
        marginal = weights.sum(tuple(other for other in range(table.ndim) if other != place))
        mean = marginal @ points
        moments[key] = mean, marginal @ (points - mean) ** 2
    return evidence, moments


def trapezoid(axis):
    """Weights of an integral over the parameter, by trapezoids in its coordinate."""
    points = axis.coordinate
    weights = np.full(len(points), points[1] - points[0])
    weights[[0, -1]] /= 2
    return weights * (axis.values if axis.logarithmic else 1.0)


def posterior(name, **options):
    build, encoded, _, _ = CASES[name]
    return LogPosterior(build(), encoded, TARGETS, np.zeros(len(TARGETS)), **options)


@pytest.mark.parametrize("name", CASES)
def test_chains_have_the_moments_and_the_evidence_of_a_dense_grid(name):
    evidence, moments = exact(name)
    density = posterior(name)
    sampler = SliceSampler(draws=300, burn_in=30, extensions=0)
    sample = sampler.sample(density, np.random.default_rng(7), evidence=True)
    assert list(sample.values) == [found.name for found in density.coordinates]
    assert set(sample.values) == set(moments)
    for coordinate in density.coordinates:
        drawn = sample.values[coordinate.name]
        chains = (np.log(drawn) if coordinate.logarithmic else drawn).reshape(2, -1)
        mean, variance = moments[coordinate.name]
        assert sample.r_hat[coordinate.name] < 1.05
        size = sample.effective_size[coordinate.name]
        assert size > 100
        assert abs(chains.mean() - mean) < 4 * math.sqrt(variance / size)
        squares = (chains - mean) ** 2
        error = squares.std() / math.sqrt(effective_sample_size(squares))
        assert abs(squares.mean() - variance) < 4 * error
    assert sample.log_evidence == pytest.approx(evidence, abs=4 * sample.log_evidence_error + 0.01)
    assert sample.log_evidence_error < 0.15
