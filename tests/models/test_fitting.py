"""What a fit of a Gaussian process on strings finds."""

import logging
import warnings

import numpy as np
import pytest
import torch
from botorch.optim.fit import fit_gpytorch_mll_scipy
from scipy.stats import norm

from seqopt.errors import ModelError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP
from seqopt.models.checks import differ
from seqopt.models.log_units import LogBounds, LogUnitNormalPrior
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood

BITS = [
    "110111001111",
    "010001010100",
    "011011000010",
    "111001010011",
    "110110001000",
    "110000110000",
    "101111011101",
    "110111100111",
]
SKEWED = [1.77, 29.6, 0.08, 72.65, 0.13, 1.58, 0.08, 0.51]


def log_posterior(gp: StringGP) -> float:
    """Log density of the values and the parameters, summed over the values."""
    model = gp.model.train()
    density = DenseMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad():
        return float(density(model(*model.train_inputs), model.train_targets)) * len(model.train_targets)


def counts(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    strings = ["".join(rng.choice(list("01"), 20)) for _ in range(n)]
    return strings, np.array([sum(s[i : i + 3] == "101" for i in range(18)) for s in strings], dtype=float)


def test_no_start_dies_where_the_output_scale_becomes_tiny(caplog: pytest.LogCaptureFixture) -> None:
    gp = StringGP(NgramKernel(), restarts=1)
    with caplog.at_level(logging.DEBUG, logger="seqopt.models.fitting"):
        gp.fit(BITS, SKEWED, rng=np.random.default_rng(0))
    assert not caplog.records
    defaults = StringGP(NgramKernel())
    defaults.fit(BITS, [1.0] * len(BITS), rng=np.random.default_rng(0))  # nothing to learn from
    assert gp.hyperparameters["noise_variance"] != pytest.approx(defaults.hyperparameters["noise_variance"])


def test_further_starts_are_tried_where_all_fail_and_a_warning_says_if_they_do_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter([True, True, True, False])

    def failing(likelihood, options):  # type: ignore[no-untyped-def]
        if next(failures, True):
            raise ModelError("a covariance that is not positive definite")
        return fit_gpytorch_mll_scipy(likelihood, options=options)

    monkeypatch.setattr("seqopt.models.fitting.fit_gpytorch_mll_scipy", failing)
    strings, values = counts(20, 0)
    gp = StringGP(restarts=2)
    gp.fit(strings, values, rng=np.random.default_rng(0))
    assert gp.hyperparameters["match_decay"] != 0.8
    assert not caplog.records
    again = StringGP(restarts=2)
    again.fit(strings, values, rng=np.random.default_rng(0))
    assert again.hyperparameters["match_decay"] == 0.8
    assert "none of 7 starts of the fit to 20 values succeeded" in caplog.text


@pytest.mark.parametrize(("n", "seed"), [(20, 20_004), (60, 60_000), (60, 60_002)])
def test_a_fit_ends_at_the_optimum_of_its_basin(n: int, seed: int) -> None:
    gp = StringGP(restarts=1)
    gp.fit(*counts(n, seed), rng=np.random.default_rng(0))
    reached = log_posterior(gp)
    density = DenseMarginalLogLikelihood(gp.model.likelihood, gp.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at the last digits a line search finds nothing better
        fit_gpytorch_mll_scipy(density, options={"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-7})
    assert log_posterior(gp) - reached < 0.05


def test_the_priors_of_variances_are_densities_of_their_logarithms() -> None:
    values = torch.tensor([1e-6, 0.02, 3.0], dtype=torch.float64)
    expected = norm(-4.0, 1.0).logpdf(values.log().numpy())
    np.testing.assert_allclose(LogUnitNormalPrior(-4.0, 1.0).log_prob(values).numpy(), expected, rtol=1e-6)
    gp = StringGP(restarts=1)
    gp.fit(*counts(10, 1), rng=np.random.default_rng(0))
    noise, scale = gp.model.likelihood.noise_covar.noise.detach(), gp.model.covar_module.outputscale.detach()
    for parameter, loc in ((noise, -4.0), (scale, 0.0)):
        (prior,) = (
            prior
            for name, _, prior, *_ in gp.model.named_priors()
            if name.endswith("noise_prior" if loc else "outputscale_prior")
        )
        assert float(prior.log_prob(parameter).sum()) == pytest.approx(norm(loc, 1.0).logpdf(float(parameter.log())))


def test_bounds_are_kept_to_the_last_bit_and_met() -> None:
    bounds = LogBounds(1e-4, 1e4, initial_value=0.02)
    assert float(bounds.lower_bound) == 1e-4
    for value in (bounds.lower_bound, bounds.upper_bound):
        assert bounds.check_raw(bounds.inverse_transform(value))
    assert not bounds.check_raw(torch.tensor(0.99e-4).log())
    assert (bounds.nearest(1e-9), bounds.nearest(7.0), bounds.nearest(1e9)) == (1e-4, 7.0, 1e4)
    assert float(bounds.transform(torch.tensor(-80.0, dtype=torch.float64))) > 0


def test_values_that_differ_by_rounding_are_equal(caplog: pytest.LogCaptureFixture) -> None:
    strings, _ = counts(12, 2)
    values = 0.3 + 1e-16 * np.random.default_rng(0).integers(-3, 4, size=12)
    assert np.ptp(values) > 0
    gp = StringGP(restarts=1)
    gp.fit(strings, values, rng=np.random.default_rng(0))
    assert "all 12 values are equal, but for rounding" in caplog.text
    mean, std = gp.predict(strings)
    np.testing.assert_allclose(mean, 0.3, rtol=1e-12)
    fresh = StringGP(restarts=1)
    fresh.fit(strings, np.full(12, 0.3), rng=np.random.default_rng(0))
    np.testing.assert_allclose(std, fresh.predict(strings)[1])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 0.0], False), ([1e9, 1e9 + 1e-4], False), ([1e9, 1e9 + 1.0], True), ([-1e-300, 1e-300], True)],
)
def test_what_counts_as_different(values: list[float], expected: bool) -> None:
    assert differ(np.array(values)) is expected


def test_a_restored_state_has_the_same_parameters_to_the_last_bit() -> None:
    strings, values = counts(12, 3)
    kernel = SubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.3)
    kernel.raw_gap_decay.requires_grad_(False)
    gp, again = StringGP(kernel, restarts=2), StringGP(SubsequenceKernel(order=3), refit_growth=10.0)
    gp.fit(strings, values, rng=np.random.default_rng(0))
    assert gp.hyperparameters["gap_decay"] == 0.3
    again.load_state_dict(gp.state_dict())
    again.fit(strings, values, rng=np.random.default_rng(0), full=False)
    for name in ("match_decay", "gap_decay"):
        assert again.hyperparameters[name] == gp.hyperparameters[name]
