"""Values whose noise is known in part."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal

from seqopt import Optimizer
from seqopt.data.transforms import Log10
from seqopt.errors import InputError
from seqopt.models import FullyBayesianStringGP, NoiseAwareSurrogate, StringGP
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood

STRINGS = ["ACGT", "ACGA", "TTTT", "TTTA", "GGCC", "GACC"]
VALUES = np.array([1.0, 1.4, -2.0, -1.0, 0.5, 0.1])
KNOWN = np.array([0.0, 4.0, 0.0, 0.25, 0.0, 1.0])
ELSEWHERE = ["ACGG", "TTGA", "CCCC"]


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def expected(gp: StringGP) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior mean and standard deviation elsewhere, and log marginal likelihood, by the textbook formulas."""
    found = gp.hyperparameters
    kernel = gp.model.covar_module.base_kernel
    everything = gp.encoder.encode([*STRINGS, *ELSEWHERE])
    gram = found["outputscale"] * kernel.cross(everything)
    n, unit = len(STRINGS), VALUES.std(ddof=1)
    noisy = gram[:n, :n] + np.diag(found["noise_variance"] + KNOWN / unit**2)
    residuals = (VALUES - VALUES.mean()) / unit - found["mean"]
    mean = found["mean"] + gram[n:, :n] @ np.linalg.solve(noisy, residuals)
    covariance = gram[n:, n:] - gram[n:, :n] @ np.linalg.solve(noisy, gram[:n, n:])
    likelihood = multivariate_normal(np.zeros(n), noisy).logpdf(residuals)
    return VALUES.mean() + unit * mean, unit * np.sqrt(np.diag(covariance)), float(likelihood)


def test_every_path_to_the_posterior_has_the_noise_of_each_value() -> None:
    gp = StringGP(restarts=1)
    gp.fit(STRINGS, VALUES, rng=rng(), noise_variance=KNOWN)
    mean, std, likelihood = expected(gp)
    np.testing.assert_allclose(gp.predict(ELSEWHERE)[0], mean, rtol=1e-9)
    np.testing.assert_allclose(gp.predict(ELSEWHERE)[1], std, rtol=1e-7)
    np.testing.assert_allclose(gp.posterior(ELSEWHERE)[0].numpy(), mean, rtol=1e-9)
    at = gp.conditioned().at(ELSEWHERE)
    np.testing.assert_allclose(gp.untransform(at.moments.mean[0], at.moments.variance[0]), (mean, std), rtol=1e-7)
    with torch.no_grad():
        by_botorch = gp.model.posterior(gp.encode(ELSEWHERE))
    np.testing.assert_allclose(by_botorch.mean[:, 0].numpy(), mean, rtol=1e-6)
    np.testing.assert_allclose(by_botorch.variance.sqrt()[:, 0].numpy(), std, rtol=1e-6)
    # A value to come has the shared noise and the mean of the known ones.
    coming = gp.hyperparameters["noise_variance"] + KNOWN.mean() / VALUES.var(ddof=1)
    assert float(at.moments.residual_variance[0, 0]) == pytest.approx(coming)
    gp.model.train()
    density = DenseMarginalLogLikelihood(gp.model.likelihood, gp.model)
    priors = sum(
        float(prior.log_prob(closure(module)).detach().sum())
        for _, module, prior, closure, _ in gp.model.named_priors()
    )
    reached = float(density(gp.model(*gp.model.train_inputs), gp.model.train_targets)) * len(STRINGS)
    assert reached - priors == pytest.approx(likelihood, rel=1e-9)


def test_the_means_at_the_strings_evaluated_take_their_own_noise() -> None:
    for gp in (StringGP(restarts=1), FullyBayesianStringGP()):
        gp.fit(STRINGS, VALUES, rng=rng(), noise_variance=KNOWN)
        posterior = gp.conditioned().at(STRINGS)
        torch.testing.assert_close(posterior.observed_mean, posterior.moments.mean, rtol=1e-6, atol=1e-8)
        mean, covariance = posterior.joint(torch.arange(2), include_observed=True)
        torch.testing.assert_close(mean[:, : len(STRINGS)], posterior.moments.mean, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(
            covariance[:, : len(STRINGS), : len(STRINGS)].diagonal(dim1=1, dim2=2),
            posterior.moments.variance,
            rtol=1e-5,
            atol=1e-7,
        )


@pytest.mark.parametrize("gp", [StringGP(restarts=1), FullyBayesianStringGP()])
def test_a_value_that_is_known_to_be_noisy_counts_for_less(gp: StringGP | FullyBayesianStringGP) -> None:
    strings = ["AAAA", "AAAA", "TTTT", "TTTT", "GGGG", "CCCC"]
    values = [0.0, 10.0, 5.0, 5.2, 4.0, 6.0]
    gp.fit(strings, values, rng=rng(), noise_variance=[0.01, 100.0, 0.01, 0.01, 0.01, 0.01])
    first = gp.predict(["AAAA"])[0][0]
    gp.fit(strings, values, rng=rng(), noise_variance=[100.0, 0.01, 0.01, 0.01, 0.01, 0.01])
    second = gp.predict(["AAAA"])[0][0]
    assert first < 3.0
    assert second > 7.0


@pytest.mark.parametrize(
    ("known", "message"), [([0.1], "noise variances of shape"), ([0, 0, 0, 0, 0, -1], "of 'GACC' is -1.0")]
)
def test_impossible_noise_is_refused(known: list[float], message: str) -> None:
    for gp in (StringGP(), FullyBayesianStringGP()):
        with pytest.raises(InputError, match=message):
            gp.fit(STRINGS, VALUES, rng=rng(), noise_variance=known)


def test_standard_errors_reach_the_model_in_its_units() -> None:
    class Recorder(StringGP):
        seen: np.ndarray | None = None

        def fit(self, strings, values, *, rng, noise_variance=None, full=None):  # type: ignore[no-untyped-def]
            type(self).seen = noise_variance
            super().fit(strings, values, rng=rng, noise_variance=noise_variance, full=full)

    assert isinstance(Recorder(), NoiseAwareSurrogate)
    optimizer = Optimizer(STRINGS, surrogate=Recorder(), transform="log10", initial=2)
    optimizer.tell(STRINGS[:3], [10.0, 1000.0, 100.0], standard_errors=[1.0, None, float("nan")])
    optimizer.ask(1)
    np.testing.assert_allclose(Recorder.seen, [(1.0 / (10.0 * np.log(10))) ** 2, 0.0, 0.0])
    again = Optimizer(STRINGS, surrogate=Recorder(), transform="log10", initial=2)
    again.load_state_dict(optimizer.state_dict())
    again.ask(1)
    np.testing.assert_allclose(Recorder.seen, [(1.0 / (10.0 * np.log(10))) ** 2, 0.0, 0.0])
    draws = np.log10(10.0 + 0.1 * np.random.default_rng(0).standard_normal(100_000))
    assert Log10().variance(10.0, 0.01) == pytest.approx(draws.var(), rel=0.02)


def test_standard_errors_may_be_an_array_or_a_column_of_a_table() -> None:
    known = []
    for errors in (
        np.array([0.5, np.nan]),
        pd.Series([0.5, np.nan]),
        [np.float32(0.5), np.float32("nan")],
        (0.5, None),
    ):
        optimizer = Optimizer(STRINGS, initial=2)
        optimizer.tell(STRINGS[:2], [1.0, 2.0], standard_errors=errors)  # type: ignore[arg-type]
        known.append([row.noise_variance for row in optimizer.observations.rows])
    assert known == [[(0.25,), None]] * 4


@pytest.mark.parametrize("error", [-1.0, "wide", float("inf")])
def test_a_standard_error_is_a_number_from_zero(error: object) -> None:
    optimizer = Optimizer(STRINGS, initial=2)
    with pytest.raises(InputError, match="a standard error is"):
        optimizer.tell(["ACGT"], [1.0], standard_errors=[error])  # type: ignore[list-item]
    assert len(optimizer.observations) == 0


def test_a_surrogate_that_knows_no_noise_refuses_standard_errors() -> None:
    class Plain:
        takes_noise_variance = False

        def fit(self, strings, values, *, rng):  # type: ignore[no-untyped-def]
            pass

        def predict(self, strings):  # type: ignore[no-untyped-def]
            return np.zeros(len(strings)), np.ones(len(strings))

        def state_dict(self) -> dict[str, object]:
            return {}

        def load_state_dict(self, state: dict[str, object]) -> None:
            pass

    optimizer = Optimizer(STRINGS, surrogate=Plain(), acquisition="random", initial=2)
    with pytest.raises(InputError, match="Plain cannot take standard errors"):
        optimizer.tell(["ACGT"], [1.0], standard_errors=[0.5])
    optimizer.tell(["ACGT"], [1.0], standard_errors=[None])
    assert optimizer.best.value == 1.0
