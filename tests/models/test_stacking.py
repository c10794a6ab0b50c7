import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel, OneHotKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.sampling import GridSampler, LogPosterior
from seqopt.models.stacking import leave_one_out_densities, stacking_weights
from seqopt.spaces import StringSpace
from seqopt.utils.config import from_config


def value_of(weights, log_densities, prior, strength):
    mixture = np.log(weights @ np.exp(log_densities))
    return float(mixture.sum() + strength * (prior @ np.log(weights)))


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 30), st.sampled_from([0.2, 1.0, 5.0]))
def test_weights_are_where_an_optimiser_finds_the_maximum(seed, count, n, strength):
    rng = np.random.default_rng(seed)
    log_densities = rng.normal(scale=2.0, size=(count, n))
    prior = rng.dirichlet(np.full(count, 3.0))
    found = stacking_weights(log_densities, prior, strength)
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0).all()

    def negative(free):
        weights = np.exp(free - np.logaddexp.reduce(free))
        return -value_of(weights, log_densities, prior, strength)

    best = optimize.minimize(negative, np.zeros(count), method="BFGS", options={"gtol": 1e-8})
    assert value_of(found, log_densities, prior, strength) == pytest.approx(-best.fun, abs=1e-4)


def test_weights_without_values_are_the_prior_and_follow_many_values():
    prior = np.array([0.25, 0.75])
    assert stacking_weights(np.empty((2, 0)), prior) == pytest.approx(prior)
    assert stacking_weights(np.array([[0.0] * 500, [-9.0] * 500]), prior)[0] > 0.998
    # Each is right about half of the values: marginal likelihoods would choose one of them, stacking takes both.
    halves = np.array([[0.0] * 50 + [-4.0] * 50, [-4.0] * 50 + [0.0] * 50])
    assert stacking_weights(halves, np.array([0.5, 0.5])) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("mean_std", [0.0, 1.3])
def test_leave_one_out_densities_are_those_of_models_without_each_value(mean_std):
    rng = np.random.default_rng(1)
    strings = StringSpace("ACGT", 8).sample(9, rng)
    targets, known = rng.normal(size=9), rng.uniform(0.0, 0.3, 9)
    encoded = Encoder().encode(strings)
    density = LogPosterior(NgramKernel(3), encoded, targets, known, mean_std)
    points = [
        {"lengthscale": 3.0, "outputscale": 0.8, "noise_variance": 0.1},
        {"lengthscale": 6.0, "outputscale": 1.7, "noise_variance": 0.02},
        {"lengthscale": 3.0, "outputscale": 0.8, "noise_variance": 0.1},
    ]
    expected = np.zeros(9)
    for point in points:
        gram = KernelEvaluator(NgramKernel(3, lengthscale=point["lengthscale"]), encoded.width).cross(encoded, None)
        covariance = point["outputscale"] * gram + mean_std**2 + np.diag(point["noise_variance"] + known)
        for place in range(9):
            others = np.delete(np.arange(9), place)
            weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, place])
            std = np.sqrt(covariance[place, place] - weights @ covariance[others, place])
            expected[place] += stats.norm.pdf(targets[place], weights @ targets[others], std) / 3
    assert leave_one_out_densities(density, points) == pytest.approx(np.log(expected))


def fitted(weights, **options):
    rng = np.random.default_rng(0)
    strings = StringSpace("ACGT", 10).sample(40, rng)
    effects = rng.normal(size=(10, 4))
    values = [sum(effects[place, "ACGT".index(symbol)] for place, symbol in enumerate(s)) for s in strings]
    kernels = [SubsequenceKernel(), NgramKernel(), OneHotKernel()]
    gp = FullyBayesianGP(kernels, [GridSampler() for _ in kernels], mean_std=0.0, weights=weights)
    gp.fit(strings, values, rng=np.random.default_rng(1), **options)
    return gp


@pytest.mark.parametrize("weights", ["stacking", "evidence"])
def test_a_positional_score_is_left_to_the_kernel_that_compares_positions(weights):
    gp = fitted(weights)
    assert [found.weight > 0.8 for found in gp.diagnostics] == [False, False, True]
    assert sum(found.weight for found in gp.diagnostics) == pytest.approx(1.0)
    assert gp.hyperparameters["kernels[2].weight"] >= 0.75


def test_censored_values_are_weighed_by_marginal_likelihood():
    censored = [1] + [0] * 39
    by_stacking, by_evidence = (fitted(weights, censored=censored).diagnostics for weights in ("stacking", "evidence"))
    assert [found.weight for found in by_stacking] == [found.weight for found in by_evidence]
    assert not np.isnan(by_stacking[0].log_evidence)


def test_the_choice_is_kept_and_checked():
    gp = FullyBayesianGP([NgramKernel(), OneHotKernel()], GridSampler(), weights="stacking")
    assert gp.config()["weights"] == "stacking"
    assert from_config(gp.config()).config() == gp.config()
    with pytest.raises(InputError, match="weights is 'equal'"):
        FullyBayesianGP([NgramKernel(), OneHotKernel()], weights="equal")
