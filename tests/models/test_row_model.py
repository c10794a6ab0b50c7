"""BoTorch's view of a fitted surrogate: any length of strings, any scale of values, copies."""

import copy
import pickle

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from gpytorch.kernels import RBFKernel
from gpytorch.settings import min_variance
from linear_operator.operators import DiagLinearOperator

from seqopt.models import FullyBayesianStringGP, StringGP, resolve_surrogate
from seqopt.models.row_model import ScaledNormal
from seqopt.spaces import CandidateSet

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("ACGT"), RNG.integers(4, 9))) for _ in range(30)]
VALUES = np.array([3.0 * s.count("A") - s.count("GC") for s in STRINGS]) + 0.1 * RNG.normal(size=30)
LONGER = ["ACGT" * 5, "GATTACAGATTACA", "AC"]


def fitted(values: np.ndarray = VALUES, **options: object) -> StringGP:
    gp = StringGP(restarts=1, **options)  # type: ignore[arg-type]
    gp.fit(STRINGS[:15], values[:15], rng=np.random.default_rng(0))
    return gp


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e12])
def test_variances_are_right_at_any_scale_of_the_values(unit: float) -> None:
    gp = fitted(unit * VALUES)
    mean, std = gp.predict(STRINGS)
    with torch.no_grad():
        posterior = gp.model.posterior(gp.encode(STRINGS))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), mean, rtol=1e-5, atol=1e-6 * unit)
    np.testing.assert_allclose(posterior.variance[:, 0].sqrt().numpy(), std, rtol=1e-4)
    np.testing.assert_allclose(posterior.distribution[..., :4].variance.sqrt().numpy(), std[:4], rtol=1e-4)
    several = posterior.distribution.expand(torch.Size([2]))
    np.testing.assert_allclose(several.variance.sqrt().numpy(), np.stack([std, std]), rtol=1e-4)


def test_variances_are_rounded_up_in_the_values_own_units() -> None:
    mean = torch.zeros(3, dtype=torch.float64)
    normal = ScaledNormal(mean, DiagLinearOperator(mean), unit=1e-6)
    smallest = 1e-12 * min_variance.value(torch.float64)
    with pytest.warns(Warning, match="Rounding negative variances"):
        np.testing.assert_allclose(normal.variance.numpy(), smallest)


@pytest.mark.parametrize("noise", [None, np.linspace(0.0, 2.0, 15)])
def test_strings_longer_than_those_trained_on_can_be_encoded(noise: np.ndarray | None) -> None:
    gp = StringGP(restarts=1)
    gp.fit(STRINGS[:15], VALUES[:15], rng=np.random.default_rng(0), noise_variance=noise)
    short = gp.encode(STRINGS[15:])
    for strings in (STRINGS[15:], LONGER, STRINGS[15:]):  # narrow rows again, after wide ones
        mean, std = gp.predict(strings)
        with torch.no_grad():
            posterior = gp.model.posterior(gp.encode(strings))
        np.testing.assert_allclose(posterior.mean[:, 0].numpy(), mean, rtol=1e-6)
        np.testing.assert_allclose(posterior.variance[:, 0].sqrt().numpy(), std, rtol=1e-4)
    assert torch.equal(gp.encode(STRINGS[15:]), short)
    assert torch.isfinite(LogExpectedImprovement(gp.model, best_f=5.0)(gp.encode(LONGER)[:, None, :])).all()


def test_a_model_is_conditioned_on_longer_strings() -> None:
    gp = fitted()
    rows = gp.encode(LONGER)
    with torch.no_grad():
        gp.model.posterior(gp.encode(STRINGS))
        values = torch.tensor([[40.0], [20.0], [3.0]], dtype=torch.float64)
        conditioned = gp.model.condition_on_observations(rows, values)
        mean = conditioned.posterior(rows).mean[:, 0].numpy()
    # Textbook formulas, with the covariances of all strings.
    found, strings = gp.hyperparameters, [*STRINGS[:15], *LONGER]
    gram = found["outputscale"] * gp.model.covar_module.base_kernel.cross(gp.encoder.encode(strings))
    offset, unit = VALUES[:15].mean(), VALUES[:15].std(ddof=1)
    targets = (np.concatenate([VALUES[:15], values[:, 0].numpy()]) - offset) / unit - found["mean"]
    expected = found["mean"] + gram[15:] @ np.linalg.solve(gram + found["noise_variance"] * np.eye(18), targets)
    np.testing.assert_allclose(mean, offset + unit * expected, rtol=1e-5)


def surrogates() -> list[object]:
    return [
        StringGP(restarts=1),
        StringGP(RBFKernel(), restarts=1),
        FullyBayesianStringGP(draws=3),
        resolve_surrogate("ngrams", CandidateSet(STRINGS)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda gp: pickle.loads(pickle.dumps(gp)), copy.deepcopy], ids=["pickle", "deepcopy"])
@pytest.mark.parametrize("index", range(4))
def test_a_used_surrogate_can_be_copied(make, index: int) -> None:  # type: ignore[no-untyped-def]
    surrogate, pool = surrogates()[index], CandidateSet(STRINGS)
    surrogate.bind(pool)
    surrogate.fit(STRINGS[:15], VALUES[:15], rng=np.random.default_rng(0), noise_variance=np.linspace(0.0, 0.1, 15))
    if isinstance(surrogate, StringGP):
        surrogate.pool_posterior(pool).given(2)
        surrogate.model.posterior(surrogate.encode(STRINGS)).variance.sum().backward()
    twin = make(surrogate)
    for ours, theirs in zip(surrogate.predict(STRINGS), twin.predict(STRINGS), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if isinstance(surrogate, StringGP):
        np.testing.assert_array_equal(
            twin.pool_posterior(pool).moments.mean.numpy(), surrogate.pool_posterior(pool).moments.mean.numpy()
        )
        with torch.no_grad():
            np.testing.assert_allclose(twin.model.posterior(twin.encode(STRINGS)).mean[:, 0], twin.predict(STRINGS)[0])
    for gp in (surrogate, twin):
        gp.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(twin.predict(STRINGS)[0], surrogate.predict(STRINGS)[0])
