"""Gaussian processes given limits: against closed forms, quadrature, differences and special cases."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel
from seqopt.models import CensoredSurrogate, FullyBayesianGP, FullyBayesianStringGP, GridSampler, StringGP
from seqopt.models.censoring import censored_sites, telling
from seqopt.models.fitting import PointEstimate, TrainingData, set_parameters
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood
from seqopt.models.sampling import LogPosterior

STRINGS = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA", "ATAT", "TAAT"]
VALUES = np.array([float(string.count("T")) + 0.3 * string.count("TA") for string in STRINGS])
LIMIT = 2.2


def _limited(direction=1):
    """Values of which those beyond the limit are known by it alone."""
    sides = np.where(direction * (VALUES - LIMIT) > 0, direction, 0)
    return np.where(sides != 0, LIMIT, VALUES), sides


def _covariance(count, noise=0.1, seed=0):
    root = np.random.default_rng(seed).standard_normal((count, count + 2))
    return root @ root.T / count + noise * np.eye(count)


def _sites(covariance, residuals, sides):
    found = censored_sites(torch.tensor(covariance), torch.tensor(residuals), torch.tensor(sides))
    return found.residuals.numpy(), found.variance.numpy(), float(found.log_density)


def test_one_limit_has_the_moments_of_a_truncated_normal_distribution():
    covariance, residuals = _covariance(4), np.array([0.5, -1.0, 0.2, 0.7])
    values, variance, log_density = _sites(covariance, residuals, [0, 0, 0, -1])
    exact, link = covariance[:3, :3], covariance[:3, 3]
    weights = np.linalg.solve(exact, link)
    mean, std = weights @ residuals[:3], math.sqrt(covariance[3, 3] - weights @ link)
    wanted = stats.truncnorm(-np.inf, (0.7 - mean) / std, loc=mean, scale=std)
    precision = 1 / std**2 + 1 / variance[3]
    assert (mean / std**2 + values[3] / variance[3]) / precision == pytest.approx(wanted.mean(), rel=1e-7)
    assert 1 / precision == pytest.approx(wanted.var(), rel=1e-7)
    normal = stats.multivariate_normal(np.zeros(3), exact).logpdf(residuals[:3])
    assert log_density == pytest.approx(normal + stats.norm.logcdf((0.7 - mean) / std), abs=1e-9)
    assert variance[:3].tolist() == [0, 0, 0]
    assert values[:3].tolist() == residuals[:3].tolist()


def test_two_limits_on_both_sides_have_about_the_moments_of_quadrature():
    covariance, residuals = _covariance(4, seed=3), np.array([0.5, -1.0, 0.2, 0.7])
    sides = [0, 1, 0, -1]
    values, variance, log_density = _sites(covariance, residuals, sides)
    rows, limits = [0, 2], [1, 3]
    gain = covariance[np.ix_(limits, rows)] @ np.linalg.inv(covariance[np.ix_(rows, rows)])
    mean = gain @ residuals[rows]
    left = covariance[np.ix_(limits, limits)] - gain @ covariance[np.ix_(rows, limits)]
    density = stats.multivariate_normal(mean, left).pdf

    def integral(weight):
        # y_1 above -1, y_3 below 0.7
        return integrate.dblquad(lambda b, a: weight(a, b) * density([a, b]), -1.0, 10.0, -10.0, 0.7, epsabs=1e-9)[0]

    z = integral(lambda a, b: 1.0)
    wanted = np.array([integral(lambda a, b: a), integral(lambda a, b: b)]) / z
    inverse = np.linalg.inv(left + np.diag(variance[limits]))
    posterior = mean + left @ inverse @ (values[limits] - mean)
    normal = stats.multivariate_normal(np.zeros(2), covariance[np.ix_(rows, rows)]).logpdf(residuals[rows])
    assert posterior == pytest.approx(wanted, abs=5e-3)
    assert log_density == pytest.approx(normal + math.log(z), abs=5e-3)


def test_a_limit_that_says_nothing_is_as_good_as_absent():
    covariance, residuals = _covariance(5), np.array([0.5, -1.0, 0.2, 0.7, 0.0])
    for limit in (-1e6, -1e150):
        residuals[4] = limit
        values, variance, log_density = _sites(covariance, residuals, [0, 0, 0, 0, 1])
        normal = stats.multivariate_normal(np.zeros(4), covariance[:4, :4]).logpdf(residuals[:4])
        assert log_density == pytest.approx(normal, abs=1e-9)
        gain = np.linalg.solve(covariance + np.diag(variance), covariance)
        alone = np.linalg.solve(covariance[:4, :4], covariance[:4])
        assert values @ gain == pytest.approx(residuals[:4] @ alone, abs=1e-5)


def test_limits_without_any_value_and_their_order():
    covariance, residuals = _covariance(3), np.array([0.5, -1.0, 0.2])
    values, variance, log_density = _sites(covariance, residuals, [1, -1, 1])
    order = [2, 0, 1]
    other = _sites(covariance[np.ix_(order, order)], residuals[order], [1, 1, -1])
    assert other[0] == pytest.approx(values[order], rel=1e-6)
    assert other[1] == pytest.approx(variance[order], rel=1e-6)
    assert other[2] == pytest.approx(log_density, abs=1e-9)
    mirrored = _sites(covariance, -residuals, [-1, 1, -1])
    assert mirrored[0] == pytest.approx(-values, rel=1e-6)


def test_the_evidence_has_the_gradient_of_differences():
    values, sides = _limited()
    data = TrainingData(Encoder().encode(STRINGS), values, np.zeros(len(values)), sides.astype(np.int8))
    model = PointEstimate(NgramKernel(2)).build(data)
    model.train()
    likelihood = DenseMarginalLogLikelihood(model.likelihood, model, torch.from_numpy(data.sides))

    def density():
        return likelihood(model(*model.train_inputs), model.train_targets)

    density().backward()
    for name, parameter in model.named_parameters():
        before = parameter.detach().clone()
        moved = []
        for step in (1e-4, -1e-4):
            with torch.no_grad():
                parameter.copy_(before + step)
                moved.append(float(density()))
                parameter.copy_(before)
        assert parameter.grad.sum().item() == pytest.approx((moved[0] - moved[1]) / 2e-4, abs=2e-6), name


def test_a_fit_ends_where_no_parameter_gains():
    values, sides = _limited()
    gp = StringGP(NgramKernel(2))
    gp.fit(STRINGS, values, rng=np.random.default_rng(0), censored=sides)
    data = TrainingData(Encoder().encode(STRINGS), values, np.zeros(len(values)), sides.astype(np.int8))
    model = PointEstimate(NgramKernel(2)).build(data)
    model.covar_module.base_kernel.adapt(model.train_inputs[0])
    set_parameters(model, gp.state_dict()["parameters"])
    model.train()
    likelihood = DenseMarginalLogLikelihood(model.likelihood, model, torch.from_numpy(data.sides))

    def density():
        with torch.no_grad():
            return len(values) * float(likelihood(model(*model.train_inputs), model.train_targets))

    reached = density()
    for name, parameter in model.named_parameters():
        for step in (0.1, -0.1):
            with torch.no_grad():
                parameter.add_(step)
                assert density() < reached + 2e-3, name
                parameter.sub_(step)


@pytest.mark.slow
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(
    "build",
    [
        lambda: StringGP(restarts=1),
        lambda: StringGP(NgramKernel(2)),
        FullyBayesianStringGP,
        lambda: FullyBayesianGP(NgramKernel(2), GridSampler({"lengthscale": [1.0, 4.0]})),
    ],
    ids=["ssk", "ngrams", "ssk-bayes", "grid"],
)
def test_surrogates_expect_values_beyond_a_limit(build, direction):
    values, sides = _limited(direction)
    modelled, taken = build(), build()
    assert isinstance(modelled, CensoredSurrogate)
    modelled.fit(STRINGS, values, rng=np.random.default_rng(0), censored=sides)
    taken.fit(STRINGS, values, rng=np.random.default_rng(0))
    beyond = [string for string, side in zip(STRINGS, sides, strict=True) if side]
    mean, std = modelled.predict(beyond)
    assert (direction * mean > direction * taken.predict(beyond)[0]).all()
    assert (std > 0).all()
    predictions = modelled.leave_one_out()
    assert np.isnan(predictions.values[sides != 0]).all()
    assert np.isfinite(predictions.mean).all()
    assert predictions.values[sides == 0] == pytest.approx(values[sides == 0])
    assert np.isfinite([predictions.r2, predictions.within_90]).all()


def test_predictions_are_those_of_the_botorch_model_and_of_posteriors():
    values, sides = _limited()
    gp = StringGP(NgramKernel(2))
    gp.fit(STRINGS, values, rng=np.random.default_rng(0), censored=sides, noise_variance=[0.01] * 5 + [0.0] * 5)
    others = ["AATA", "TTAT"]
    mean, std = gp.predict(others)
    posterior = gp.model.posterior(gp.encode(others))
    assert posterior.mean.detach().numpy()[:, 0] == pytest.approx(mean, abs=1e-9)
    assert posterior.variance.detach().sqrt().numpy()[:, 0] == pytest.approx(std, abs=1e-9)
    joint, covariance = gp.posterior(others)
    assert joint.numpy() == pytest.approx(mean, abs=1e-9)
    assert covariance.diagonal().sqrt().numpy() == pytest.approx(std, abs=1e-9)
    # What is known of noise says the same of measurements to come, limits or not.
    noise = gp.fitted.noise_variance.item() * gp.units[1] ** 2
    assert noise == pytest.approx(gp.hyperparameters["noise_variance"] * gp.units[1] ** 2 + 0.005, abs=1e-9)
    assert (gp.measurement_std(others) > std).all()


def test_a_limit_that_nothing_contradicts_changes_nothing():
    gp, other = StringGP(restarts=1), StringGP(restarts=1)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    values = np.append(VALUES, -1e9)
    other.fit([*STRINGS, "GGGG"], values, rng=np.random.default_rng(0), censored=[0] * len(VALUES) + [1])
    assert other.units == pytest.approx(gp.units)
    assert other.predict(["AATA", "TTAT"])[0] == pytest.approx(gp.predict(["AATA", "TTAT"])[0], abs=1e-3)
    assert other.measurement_std(["AATA"]) == pytest.approx(gp.measurement_std(["AATA"]), rel=1e-2)


def test_the_incumbent_counts_what_is_certain():
    gp = StringGP(NgramKernel(2))
    values, sides = np.array([0.0, 1.0, 2.0, 5.0, 9.0]), [0, 0, 0, 1, -1]
    gp.fit(STRINGS[:5], values, rng=np.random.default_rng(0), censored=sides)
    offset, unit = gp.units
    assert offset + unit * gp.fitted.best_observed == pytest.approx(5.0)


def test_no_limits_are_as_without():
    one, other = StringGP(NgramKernel(2)), StringGP(NgramKernel(2))
    one.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    other.fit(STRINGS, VALUES, rng=np.random.default_rng(0), censored=np.zeros(len(VALUES)))
    assert one.state_dict() == other.state_dict()
    assert one.predict(["AATA"]) == other.predict(["AATA"])


def test_the_mean_given_other_parameters_is_that_of_a_wide_process():
    values, sides = _limited()
    standardized = (values - values.mean()) / values.std()
    kernel, encoded = NgramKernel(2), Encoder().encode(STRINGS)
    density = LogPosterior(kernel, encoded, standardized, np.zeros(len(values)), 1.5, sides.astype(np.int8))
    mean, variance = density.mean_moments([2.0], 1.2, 0.1)
    covariance = 1.2 * density.gram([2.0]) + 0.1 * np.eye(len(values)) + 1.5**2
    found = censored_sites(torch.tensor(covariance), torch.tensor(standardized), torch.tensor(sides))
    weights = 1.5**2 * np.linalg.solve(covariance + np.diag(found.variance.numpy()), np.ones(len(values)))
    assert mean == pytest.approx(weights @ found.residuals.numpy(), abs=1e-4)
    assert variance == pytest.approx(1.5**2 * (1 - weights.sum()), abs=1e-4)
    assert density.log_likelihood([2.0], 1.2, 0.1) == pytest.approx(float(found.log_density), abs=1e-6)


@pytest.mark.parametrize("mean_std", [0.0, 1.0])
def test_a_grid_holds_the_evidence_of_all_points_that_count(mean_std):
    values, sides = _limited()
    standardized = (values - values.mean()) / values.std()
    encoded = Encoder().encode(STRINGS)
    known = np.zeros(len(values))
    density = LogPosterior(NgramKernel(2), encoded, standardized, known, mean_std, sides.astype(np.int8))
    sampler = GridSampler(
        {"lengthscale": [1.0, 4.0]}, outputscales=[0.01, 0.5, 1.0], noise_variances=[1e-4, 0.1, 1.0, 1e3]
    )
    grids, prior = sampler.prior(density)
    table = sampler.log_likelihoods(density, grids, prior)
    wanted = np.array(
        [
            [[density.log_likelihood([own], scale, noise) for noise in grids["noise_variance"]] for scale in scales]
            for own in grids["lengthscale"]
            for scales in [grids["outputscale"]]
        ]
    )
    seen = np.isfinite(table)
    assert table[seen] == pytest.approx(wanted[seen], abs=1e-6)
    weights = np.exp(wanted + prior - (wanted + prior).max())
    assert not seen.all()
    assert weights[~seen].sum() < 1e-3 * weights.sum()
    sample = sampler.sample(density, np.random.default_rng(0), evidence=True)
    shares = np.exp(wanted + prior)
    assert math.exp(sample.log_evidence) == pytest.approx(shares.sum() / np.exp(prior).sum(), rel=1e-3)


def test_limits_that_say_nothing_do_not_set_the_scale():
    values = np.array([0.0, 1.0, -5.0, 0.5, 7.0, 0.9])
    sides = np.array([0, 0, 1, 1, -1, -1], dtype=np.int8)
    assert telling(values, sides).tolist() == [True, True, False, True, False, True]
    assert telling(values, np.ones(6, dtype=np.int8)).all()


@pytest.mark.parametrize("side", [-1, 1])
def test_limits_on_one_side_alone_do_not_let_the_mean_run_away(side):
    limits = side * np.array([0.1, 0.2, 0.5, 1.0, 0.3, 0.7, 0.4, 0.9, 0.6, 0.8])
    means = []
    for kernel in (None, NgramKernel(3)):
        surrogate = StringGP(kernel)
        surrogate.fit(STRINGS, limits, rng=np.random.default_rng(0), censored=np.full(10, side))
        means.append(side * surrogate.predict(STRINGS)[0])
    # Beyond the limits, by no more than these differ: any mean further out would satisfy them as well.
    assert all((found > 0.5).all() and (found < 2.0).all() for found in means)
    assert np.abs(means[0] - means[1]).max() < 0.5


@pytest.mark.parametrize(
    ("censored", "message"),
    [([1, 0], "give one number per string"), ([2] + [0] * 9, "censored is 2 for 'AAAA'; expected 1")],
)
def test_what_does_not_say_what_is_known_is_refused(censored, message):
    with pytest.raises(InputError, match=message):
        StringGP().fit(STRINGS, VALUES, rng=np.random.default_rng(0), censored=censored)
