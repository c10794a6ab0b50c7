"""Samplers of kernel parameters, against dense grids that integrate the model of `LogPosterior` by themselves.

The oracle knows nothing of coordinates or of the mean that is integrated out: it evaluates y ~ N(0, a K + s2 I + m^2 1
1^T) at all points of a grid of the parameters themselves, with priors by scipy.
"""

import copy
import math
from dataclasses import dataclass

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from scipy import special, stats

from seqopt.encoding import CodonFeatures, Encoder, FeatureEncoder, TokensAndFeatures
from seqopt.encoding.codons import CodonTokenizer
from seqopt.encoding.features import FeatureRows
from seqopt.encoding.fields import Fields
from seqopt.errors import InputError, ModelError
from seqopt.kernels import (
    JointKernel,
    LetterSubsequenceKernel,
    MinMaxKernel,
    NgramKernel,
    OneHotKernel,
    SubsequenceKernel,
    TanimotoKernel,
    bind_symbols,
)
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
from seqopt.models.sampling.grid import GAP_DECAYS, MATCH_DECAYS
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
    return [log_normal(name, 0.3, 1.0, 1e-6, 1e3, 48) for name in names]


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


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_chains_have_the_moments_and_the_evidence_of_a_dense_grid(name):
    evidence, moments = exact(name)
    density = posterior(name)
    # A dynamic program for each move of a decay takes its time.
    sampler = SliceSampler(draws=80 if name in ("ssk", "joint") else 150, burn_in=20, extensions=1)
    sample = sampler.sample(density, np.random.default_rng(7), evidence=True)
    assert list(sample.values) == [found.name for found in density.coordinates]
    assert set(sample.values) == set(moments)
    for coordinate in density.coordinates:
        drawn = sample.values[coordinate.name]
        chains = (np.log(drawn) if coordinate.logarithmic else drawn).reshape(2, -1)
        mean, variance = moments[coordinate.name]
        assert sample.r_hat[coordinate.name] < 1.05
        size = sample.effective_size[coordinate.name]
        assert size > 25
        assert abs(chains.mean() - mean) < 4 * math.sqrt(variance / size)
        squares = (chains - mean) ** 2
        # That of squares of a normal variable, if tails have not been seen yet.
        error = max(squares.std() / math.sqrt(effective_sample_size(squares)), variance * math.sqrt(2.0 / size))
        assert abs(squares.mean() - variance) < 4 * error
    assert sample.log_evidence == pytest.approx(evidence, abs=4 * sample.log_evidence_error + 0.01)
    assert sample.log_evidence_error < 0.3


def test_a_grid_has_the_evidence_and_the_moments_of_the_same_prior():
    """On a dense grid of its own, with and without a constant mean; the prior of a point is that of its coordinate."""
    scales, noises = np.exp(np.linspace(-4.5, 4.5, 25)), np.exp(np.linspace(math.log(1e-4), 1.5, 36))
    for mean_std in (0.0, 1.0):
        evidence, moments = exact("ngrams", mean_std)
        (axis,) = CASES["ngrams"][3]()
        sampler = GridSampler({"lengthscale": axis.values}, outputscales=scales, noise_variances=noises)
        assert isinstance(sampler, Sampler)
        sample = sampler.sample(posterior("ngrams", mean_std=mean_std), np.random.default_rng(0), evidence=True)
        weights = sample.weights / sample.weights.sum()
        for name, values in sample.values.items():
            mean, variance = moments[name]
            assert weights @ np.log(values) == pytest.approx(mean, abs=1e-3)
            assert weights @ (np.log(values) - mean) ** 2 == pytest.approx(variance, rel=1e-2)
        assert sample.log_evidence == pytest.approx(evidence, abs=0.01)
        assert sample.r_hat == {}
        assert sample.ends == []


def test_a_grid_of_quantiles_is_nearly_the_prior():
    evidence, _ = exact("ngrams")
    sample = GridSampler().sample(posterior("ngrams"), np.random.default_rng(0), evidence=True)
    (axis,) = CASES["ngrams"][3]()
    masses = trapezoid(axis) * axis.density
    expected = np.interp((np.arange(7) + 0.5) / 7, np.cumsum(masses) - masses / 2, np.log(axis.values))
    assert np.log(np.unique(sample.values["lengthscale"])) == pytest.approx(expected, abs=0.02)
    assert sample.log_evidence == pytest.approx(evidence, abs=0.3)


@pytest.mark.parametrize("known", [np.zeros(8), np.full(8, 0.3), np.linspace(0.0, 2.0, 8)])
@pytest.mark.parametrize("mean_std", [0.0, 1.5])
def test_the_density_is_that_of_a_normal_distribution_and_the_priors(known, mean_std):
    density = LogPosterior(NgramKernel(2, lengthscale_prior=NormalPrior(3.0, 2.0)), TOKENS, TARGETS, known, mean_std)
    moments = []
    # The second pair of points moves output scale and noise only.
    for lengthscale, scale, noise in [(2.0, 1.3, 0.1), (4.0, 0.5, 0.2), (4.0, 2.0, 0.01), (4.0, 0.7, 1.0)]:
        gram = NgramKernel(2, lengthscale).double().cross(TOKENS)
        covariance = scale * gram + np.diag(noise + known)
        expected = stats.multivariate_normal(np.zeros(8), covariance + mean_std**2).logpdf(TARGETS)
        expected += stats.norm.logpdf([math.log(scale), math.log(noise) + 4.0]).sum()
        # Per unit of the logarithm of the lengthscale, within its bounds.
        inside = stats.norm(3.0, 2.0).cdf(1e4) - stats.norm(3.0, 2.0).cdf(0.1)
        expected += stats.norm.logpdf(lengthscale, 3.0, 2.0) + math.log(lengthscale / inside)
        found = density(np.log([lengthscale, scale, noise]))
        assert found == pytest.approx(expected, abs=1e-5)
        mean, variance = density.mean_moments([lengthscale], scale, noise)
        ones = np.linalg.solve(covariance + mean_std**2, np.ones(8)) * mean_std**2
        moments.append((mean - ones @ TARGETS, variance - mean_std**2 * (1 - ones.sum())))
    np.testing.assert_allclose(moments, 0.0, atol=1e-8)
    assert density(np.array([np.log(0.05), 0.0, -4.0])) == -math.inf
    assert density.evaluations == 4


def test_output_scale_and_noise_move_without_new_gram_matrices():
    density = posterior("ngrams")
    for scale in np.linspace(-1.0, 1.0, 9):
        density(np.array([1.0, scale, -4.0]))
    assert (density.evaluations, density.grams) == (9, 1)


def test_frozen_parameters_stay_and_are_not_sampled():
    kernel = SubsequenceKernel(3, match_decay=0.7, gap_decay=0.3)
    kernel.raw_match_decay.requires_grad_(False)
    parameters = KernelParameters(kernel)
    assert parameters.names == ["gap_decay"]
    assert parameters.values == [0.3]
    changed = parameters.set([0.9])
    assert changed.gap_decay.item() == 0.9
    assert changed.match_decay.item() == 0.7
    assert kernel.gap_decay.item() == pytest.approx(0.3)
    ngrams = NgramKernel(2)
    ngrams.raw_lengthscale.requires_grad_(False)
    assert KernelParameters(ngrams, TOKENS).kernel.lengthscale.item() == 15.0


def test_a_parameter_without_prior_has_a_proper_one():
    flat, weight = (KernelParameters(kernel).coordinates[0] for kernel in (SubsequenceKernel(), joint()))
    assert flat.log_prior(0.3) == pytest.approx(-math.log(1.0 - 1e-4))
    assert weight.log_prior(0.3) == pytest.approx(stats.truncnorm(-1.0, 1.0, 0.5, 0.5).logpdf(0.3), abs=1e-6)
    (wide,) = KernelParameters(gpytorch.kernels.RBFKernel()).coordinates
    assert wide.logarithmic
    assert wide.log_prior(wide.start + 1.0) == pytest.approx(stats.norm.logpdf(1.0, 0.0, 2.0), abs=1e-6)
    factors = KernelParameters(CoregionalizationKernel(2, factors=[[3.0], [0.5]])).coordinates
    assert [found.name for found in factors] == ["factors[0]", "factors[1]", "variances[0]", "variances[1]"]
    assert factors[0].log_prior(1.0) == pytest.approx(stats.norm.logpdf(1.0, 3.0, 6.0), abs=1e-6)
    assert factors[1].log_prior(1.0) == pytest.approx(stats.norm.logpdf(1.0, 0.5, 2.0), abs=1e-6)


def test_chains_go_on_from_where_they_ended():
    sampler = SliceSampler(draws=20, burn_in=20, extensions=0)
    first = sampler.sample(posterior("tanimoto"), np.random.default_rng(0))
    again = sampler.sample(posterior("tanimoto"), np.random.default_rng(0))
    second = sampler.sample(posterior("tanimoto"), np.random.default_rng(1), first.ends)
    assert [value.tolist() for value in first.values.values()] == [value.tolist() for value in again.values.values()]
    assert np.log([value[19] for value in first.values.values()]) == pytest.approx(first.ends[0])
    assert second.evaluations < 0.8 * first.evaluations


def test_thinning_keeps_every_third_draw():
    options = {"burn_in": 0, "extensions": 0}
    thin = SliceSampler(draws=8, thin=3, **options).sample(posterior("tanimoto"), np.random.default_rng(2))
    every = SliceSampler(draws=24, **options).sample(posterior("tanimoto"), np.random.default_rng(2))
    # Chains take turns after the burn-in, so only the first has had the same random numbers.
    np.testing.assert_array_equal(thin.values["outputscale"][:8], every.values["outputscale"][2:24:3])


def test_chains_that_disagree_are_continued(monkeypatch):
    from seqopt.models.sampling import slice_sampler

    monkeypatch.setattr(slice_sampler, "GOOD_R_HAT", 0.0)
    sample = SliceSampler(draws=8, burn_in=0, extensions=2).sample(posterior("tanimoto"), np.random.default_rng(0))
    assert len(sample.weights) == 2 * 8 * 4


def test_effective_size_is_that_of_an_autoregressive_process():
    rng = np.random.default_rng(0)
    for correlation in (0.0, 0.6, 0.9, -0.5):
        noise = rng.normal(size=(2, 20_000)) * math.sqrt(1 - correlation**2)
        chains = np.empty_like(noise)
        chains[:, 0] = rng.normal(size=2)
        for step in range(1, chains.shape[1]):
            chains[:, step] = correlation * chains[:, step - 1] + noise[:, step]
        exact_size = 40_000 * (1 - correlation) / (1 + correlation)
        assert effective_sample_size(chains) == pytest.approx(exact_size, rel=0.15)
        assert split_r_hat(chains) < 1.02
    drift = np.linspace(0.0, 3.0, 200) + rng.normal(size=(2, 200))
    assert split_r_hat(drift) > 1.2
    assert split_r_hat(np.ones((2, 10))) == 1.0


def test_what_cannot_be_sampled_is_refused():
    with pytest.raises(InputError, match="draws is 2"):
        SliceSampler(draws=2)
    with pytest.raises(InputError, match="chains is 1"):
        SliceSampler(chains=1)
    with pytest.raises(InputError, match="grid of noise_variance"):
        GridSampler(noise_variances=[0.0])
    levels = LogPosterior(CoregionalizationKernel(4), FIELDS, TARGETS, np.zeros(8))
    with pytest.raises(InputError, match=r"CoregionalizationKernel has 8 parameters, .* too many for a grid"):
        GridSampler().sample(levels, np.random.default_rng(0))
    with pytest.raises(InputError, match="the grid has gap_decay"):
        GridSampler({"gap_decay": [0.5]}).sample(posterior("ngrams"), np.random.default_rng(0))
    with pytest.raises(InputError, match="ScaleKernel"):
        KernelParameters(gpytorch.kernels.ScaleKernel(NgramKernel()))
    with pytest.raises(InputError, match="batch shape"):
        KernelParameters(NgramKernel(batch_shape=torch.Size([2])))
    stray = NgramKernel()
    stray.register_prior("other_prior", LogNormalPrior(0.0, 1.0), lambda module: module.lengthscale)
    with pytest.raises(InputError, match="belongs to no parameter"):
        KernelParameters(stray)
    density = posterior("tanimoto")
    density.targets = np.full(8, math.nan)
    with pytest.raises(ModelError, match="density is 0"):
        SliceSampler().sample(density, np.random.default_rng(0))


def test_of_long_strings_the_most_probable_gap_decay_is_kept():
    rng = np.random.default_rng(0)
    values = np.array([-1.0, 0.3, 1.2, -0.5])

    def sample(length, sampler=None, evidence=False):
        encoded = Encoder().encode(["".join(rng.choice(list("ab"), length)) for _ in range(4)])
        density = LogPosterior(SubsequenceKernel(2, partitions=10), encoded, values, np.zeros(4))
        return density, (sampler or GridSampler()).sample(density, np.random.default_rng(0), evidence=evidence)

    assert len(np.unique(sample(250)[1].values["gap_decay"])) == 8
    density, found = sample(251, evidence=True)
    grid = np.array(GAP_DECAYS[1::2])
    prior = np.exp(-0.5 * ((grid - 0.5) / 0.5) ** 2).tolist()
    kernel = {"gap_decay": grid.tolist(), "match_decay": list(MATCH_DECAYS)}
    match_prior = np.exp(-0.5 * ((np.array(MATCH_DECAYS) - 0.5) / 0.5) ** 2).tolist()
    chosen = GridSampler(kernel, priors={"gap_decay": prior, "match_decay": match_prior})
    every = chosen.sample(density, np.random.default_rng(0), evidence=True)
    decays = every.values["gap_decay"]
    mass = [every.weights[decays == decay].sum() for decay in grid]
    kept = decays == grid[int(np.argmax(mass))]
    assert 0 < kept.sum() < len(kept)
    for name, column in found.values.items():
        assert np.array_equal(column, every.values[name][kept])
    np.testing.assert_allclose(found.weights / found.weights.sum(), every.weights[kept] / every.weights[kept].sum())
    # The evidence is that of all of them.
    assert found.log_evidence == pytest.approx(every.log_evidence)


@pytest.mark.parametrize("letters", [False, True])
def test_likelihoods_of_long_strings_in_single_precision_are_those_in_double(letters, monkeypatch):
    rng = np.random.default_rng(3)
    if letters:
        encoder, kernel = Encoder(CodonTokenizer()), LetterSubsequenceKernel(3, partitions=4)
        bind_symbols(kernel, encoder)
        encoded = encoder.encode(["".join(rng.choice(list("ACGT"), 258)) for _ in range(20)])
    else:
        kernel = SubsequenceKernel(3, partitions=4)
        encoded = Encoder().encode(["".join(rng.choice(list("ACGT"), 251)) for _ in range(20)])
    density = LogPosterior(kernel, encoded, stats.zscore(rng.standard_normal(20), ddof=1), np.zeros(20))
    computed = []
    sums = type(kernel).sums

    def noting(self, *arguments):
        computed.append(np.dtype(arguments[3]))
        return sums(self, *arguments)

    monkeypatch.setattr(type(kernel), "sums", noting)
    sampler = GridSampler()
    grids, prior = sampler.prior(density)
    single = sampler.log_likelihoods(density, grids, prior)
    assert set(computed) == {np.dtype(np.float32)}
    # The module by its name may be another copy of it, which the examples of docstrings run in.
    monkeypatch.setitem(GridSampler.log_likelihoods.__globals__, "LONG", 10_000)
    double = sampler.log_likelihoods(density, grids, prior)
    assert computed[-1] == np.float64
    probable = double + prior > (double + prior).max() - 15.0
    np.testing.assert_allclose(single[probable], double[probable], atol=1e-3)
    assert not np.array_equal(single, double)


def test_long_strings_have_every_second_gap_decay():
    rng = np.random.default_rng(0)

    def grid(length, sampler=None):
        encoded = Encoder().encode(["".join(rng.choice(list("ab"), length)) for _ in range(3)])
        density = LogPosterior(SubsequenceKernel(2, partitions=20), encoded, np.array([-1.0, 0.0, 1.0]), np.zeros(3))
        return (sampler or GridSampler()).grids(density)["gap_decay"]

    assert grid(250) == (0.01, 0.04, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
    assert grid(251) == (0.04, 0.2, 0.55, 1.0)
    assert len(grid(251, GridSampler(priors={"gap_decay": [1.0] * 8}))) == 8
    encoder, kernel = Encoder(CodonTokenizer()), LetterSubsequenceKernel(2)
    bind_symbols(kernel, encoder)
    for codons, count in ((83, 8), (84, 4)):
        genes = encoder.encode(["GCT" * codons, "GCA" * codons])
        assert len(GridSampler().probabilities(kernel, genes)["gap_decay"]) == count
