"""Averaging over kernel parameters: the density on the grid, the draws, and the mixture."""

import itertools
import json

import numpy as np
import pytest
import torch
from scipy import stats

from seqopt import CandidateSet
from seqopt.encoding import Encoder
from seqopt.errors import InputError, ModelError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, FullyBayesianStringGP, JointSurrogate, default_surrogate
from seqopt.models.sampling import GridSampler, LogPosterior, SliceSampler
from seqopt.models.sampling.grid import GAP_DECAYS, MATCH_DECAYS, NOISE_VARIANCES, OUTPUT_SCALES
from seqopt.spaces import CodonSpace, StringSpace

STRINGS = ["GATTACA", "GATT", "TTACA", "CATCAT", "AAAA", "GGCGC", "ATGC", "CCAT"]
VALUES = np.array([2.0, 1.0, 1.5, 0.3, -1.0, 0.2, 0.5, 0.4])


def log_density(kernel, targets):
    """On the grid of `FullyBayesianStringGP`."""
    density = LogPosterior(kernel, Encoder().encode(STRINGS), targets, np.zeros(len(targets)), mean_std=0.0)
    grids, prior = GridSampler().prior(density)
    return GridSampler().log_likelihoods(density, grids) + prior


def fitted(**options):
    gp = FullyBayesianStringGP(**options)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(3))
    return gp


@pytest.mark.parametrize("partitions", [1, 2])
def test_the_density_is_that_of_a_normal_distribution_and_the_priors(partitions):
    targets = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    table = log_density(SubsequenceKernel(4, partitions=partitions), targets)
    assert table.shape == (len(GAP_DECAYS), len(MATCH_DECAYS), len(OUTPUT_SCALES), len(NOISE_VARIANCES))
    for place in [(0, 0, 0, 0), (3, 4, 5, 6), (7, 6, 6, 7), (5, 2, 3, 1)]:
        gap, match = GAP_DECAYS[place[0]], MATCH_DECAYS[place[1]]
        scale, noise = OUTPUT_SCALES[place[2]], NOISE_VARIANCES[place[3]]
        gram = SubsequenceKernel(4, match, gap, partitions=partitions).gram(STRINGS).numpy()
        expected = stats.multivariate_normal(np.zeros(8), scale * gram + noise * np.eye(8)).logpdf(targets)
        # Up to constants: a normal density of a decay, log-normal ones per unit of the logarithm on a regular grid.
        expected -= 0.5 * (((gap - 0.5) / 0.5) ** 2 + ((match - 0.5) / 0.5) ** 2)
        expected -= 0.5 * (np.log(scale) ** 2 + (np.log(noise) + 4) ** 2)
        assert table[place] == pytest.approx(expected, rel=1e-9)


def test_draws_follow_the_density():
    gp = FullyBayesianStringGP(draws=4000)
    targets = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    density = np.exp(log_density(SubsequenceKernel(), targets))
    density /= density.sum()
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    state = gp.state_dict()["parameters"]
    for axis, (name, grid) in enumerate(
        [
            ("gap_decay", GAP_DECAYS),
            ("match_decay", MATCH_DECAYS),
            ("outputscale", OUTPUT_SCALES),
            ("noise_variance", NOISE_VARIANCES),
        ]
    ):
        others = tuple(other for other in range(4) if other != axis)
        share = [np.mean(np.array(state[name]) == value) for value in grid]
        # Systematic resampling is exact for the first axis, and nearly so for the others.
        np.testing.assert_allclose(share, density.sum(others), atol=0.005 if axis == 0 else 0.03)


def test_predictions_are_moments_of_the_mixture_of_its_draws():
    gp = fitted(draws=6)
    assert isinstance(gp, JointSurrogate)
    new = ["GATA", "TTTT", "CAT"]
    mean, covariance = gp.posterior(new)
    posterior = gp.conditioned().at(new)
    unit = VALUES.std(ddof=1)
    means = VALUES.mean() + unit * posterior.moments.mean
    torch.testing.assert_close(mean, means.mean(0))
    draws = gp.sample(new, 40_000, np.random.default_rng(0))
    torch.testing.assert_close(draws.mean(0), mean, atol=0.02, rtol=0)
    torch.testing.assert_close(torch.cov(draws.T), covariance, atol=0.03, rtol=0)
    predicted, std = gp.predict(new)
    np.testing.assert_allclose(predicted, mean.numpy(), rtol=1e-9)
    np.testing.assert_allclose(std**2, covariance.diagonal().numpy(), rtol=1e-6)
    torch.testing.assert_close(gp.covariance(new[:1], new[1:]), covariance[:1, 1:])


def test_it_interpolates_and_is_unsure_elsewhere():
    gp = fitted()
    mean, std = gp.predict([*STRINGS, "CCCCCCCC"])
    np.testing.assert_allclose(mean[:-1], VALUES, atol=0.5)
    assert std[-1] > 2 * std[:-1].max()


def test_units_do_not_matter():
    gp, scaled = FullyBayesianStringGP(), FullyBayesianStringGP()
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(3))
    scaled.fit(STRINGS, 1000 * VALUES - 7, rng=np.random.default_rng(3))
    np.testing.assert_allclose(scaled.predict(["GAT"])[0], 1000 * gp.predict(["GAT"])[0] - 7, rtol=1e-9)
    np.testing.assert_allclose(scaled.predict(["GAT"])[1], 1000 * gp.predict(["GAT"])[1], rtol=1e-9)


def test_equal_values_predict_that_value(caplog):
    gp = FullyBayesianStringGP()
    gp.fit(STRINGS[:3], [2.0, 2.0, 2.0], rng=np.random.default_rng(0))
    np.testing.assert_allclose(gp.predict(["GGG"])[0], 2.0)
    assert "cannot tell strings apart" in caplog.text


def test_large_data_keep_their_parameters_for_a_while(monkeypatch):
    rng = np.random.default_rng(0)
    strings = ["".join(letters) for letters in itertools.product("AB", repeat=7)]
    values = [s.count("AB") + 0.1 * rng.normal() for s in strings]
    gp = FullyBayesianStringGP()
    drawn = []
    original = FullyBayesianStringGP._draw
    monkeypatch.setattr(FullyBayesianStringGP, "_draw", lambda self, *a: (drawn.append(1), original(self, *a))[1])
    for count in (101, 105, 112, 113):
        gp.fit(strings[:count], values[:count], rng=np.random.default_rng(count))
    assert len(drawn) == 2
    restored = FullyBayesianStringGP()
    restored.load_state_dict(gp.state_dict())
    restored.fit(strings[:114], values[:114], rng=np.random.default_rng(9))
    gp.fit(strings[:114], values[:114], rng=np.random.default_rng(9))
    assert len(drawn) == 2
    np.testing.assert_array_equal(gp.predict(strings[120:])[0], restored.predict(strings[120:])[0])


def test_values_unlike_all_others_are_a_reason_to_draw_anew(monkeypatch):
    monkeypatch.setattr("seqopt.models.fully_bayesian.ALWAYS_REFITTED", 10)
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("abc"), 6)) for _ in range(32)]
    values = np.array([string.count("ab") + 0.1 * rng.standard_normal() for string in strings])

    def told(last, surrogate):
        surrogate.fit(strings[:30], values[:30], rng=np.random.default_rng(1))
        again = FullyBayesianGP(NgramKernel(), GridSampler())
        again.load_state_dict(json.loads(json.dumps(surrogate.state_dict())))
        for one in (surrogate, again):
            one.fit(strings[:31], [*values[:30], last], rng=np.random.default_rng(2))
        assert again.state_dict() == surrogate.state_dict()
        return surrogate.state_dict()

    kept = told(values[30], FullyBayesianGP(NgramKernel(), GridSampler()))
    assert kept["full_fit_size"] == 30
    drawn = told(-1000.0, FullyBayesianGP(NgramKernel(), GridSampler()))
    assert drawn["full_fit_size"] == 31
    fresh = FullyBayesianGP(NgramKernel(), GridSampler())
    fresh.fit(strings[:31], [*values[:30], -1000.0], rng=np.random.default_rng(2))
    assert fresh.state_dict() == drawn


def test_draws_of_an_ngram_kernel_are_those_of_each_lengthscale():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("abcd"), rng.integers(3, 12))) for _ in range(20)]
    surrogate = FullyBayesianGP(NgramKernel(longest=3), GridSampler(), draws=16)
    surrogate.fit(strings, [float(string.count("ab")) for string in strings], rng=rng)
    scales = surrogate.state_dict()["parameters"]["lengthscale"]
    assert len(set(scales)) > 1
    encoded = Encoder().encode(strings)
    evaluator = surrogate.evaluator(encoded.width)
    own = evaluator.self_similarity(encoded)
    expected = [NgramKernel(3, scale).double().cross(encoded) for scale in scales]
    np.testing.assert_allclose(evaluator.cross(encoded, None, own, own), expected, rtol=1e-6)
    assert evaluator.variance(encoded, own).shape == (16, 20)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="draws is 0"):
        FullyBayesianStringGP(draws=0)
    with pytest.raises(InputError, match="refit_growth is -1"):
        FullyBayesianStringGP(refit_growth=-1)
    with pytest.raises(InputError, match=r"SliceSampler is a class: give an object of it, SliceSampler\(...\)"):
        FullyBayesianGP(NgramKernel(), SliceSampler)
    with pytest.raises(InputError, match=r"SliceSampler is a class: give an object of it"):
        FullyBayesianGP([NgramKernel(), NgramKernel(2)], [SliceSampler(), SliceSampler])
    with pytest.raises(InputError, match="NgramKernel is a class: give an object of it"):
        FullyBayesianGP(NgramKernel)
    with pytest.raises(InputError, match="3 of type int is not a kernel"):
        FullyBayesianGP(3)
    with pytest.raises(InputError, match="normalised"):
        FullyBayesianStringGP(SubsequenceKernel(normalize=False))
    with pytest.raises(InputError, match="at least two"):
        FullyBayesianStringGP().fit(["A"], [1.0], rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="not been fitted"):
        FullyBayesianStringGP().predict(["A"])


def test_defaults_of_spaces():
    assert isinstance(default_surrogate(CandidateSet(["a", "b"])), FullyBayesianGP)
    short = default_surrogate(StringSpace("01", 20))
    assert isinstance(short, FullyBayesianGP)
    assert short.kernels[0].partitions == 1
    assert default_surrogate(CodonSpace("MA" * 101, representation="bases")).kernels[0].partitions == 11
    assert default_surrogate(CodonSpace("MA" * 101), partitions=4).kernels[0].partitions == 4
