"""The Gaussian process against dense closed forms and BoTorch."""

import gpytorch
import numpy as np
import pytest
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP

from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.models import StringGP
from seqopt.models.string_gp import default_kernel
from seqopt.spaces import CandidateSet


def random_strings(n: int, rng: np.random.Generator, letters: str = "ABCD", longest: int = 9) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(rng.choice(list(letters), size=rng.integers(2, longest)))] = None
    return list(found)


@pytest.fixture
def data() -> tuple[list[str], np.ndarray, list[str]]:
    rng = np.random.default_rng(3)
    strings = random_strings(40, rng)
    train, rest = strings[:15], strings[15:]
    values = np.array([10 + 3 * s.count("AB") - s.count("D") for s in train], dtype=float) + 0.1 * rng.normal(size=15)
    return train, values, rest


def fitted(data: tuple, **options: object) -> StringGP:
    gp = StringGP(restarts=2, **options)  # type: ignore[arg-type]
    gp.fit(data[0], data[1], rng=np.random.default_rng(0))
    return gp


def dense_posterior(gp: StringGP, train: list[str], values: np.ndarray, new: list[str]) -> tuple:
    """Textbook formulas in numpy with an explicit inverse, from the kernel's Gram matrices."""
    parameters = gp.hyperparameters
    kernel = SubsequenceKernel(
        order=5, match_decay=parameters["match_decay"], gap_decay=parameters["gap_decay"], engine="reference"
    )
    scale, noise, constant = (parameters[name] for name in ("outputscale", "noise_variance", "mean"))
    offset, unit = values.mean(), values.std(ddof=1)
    k_tt, k_tn, k_nn = (
        scale * kernel.gram(a, b).detach().numpy() for a, b in ((train, train), (train, new), (new, new))
    )
    inverse = np.linalg.inv(k_tt + noise * np.eye(len(train)))
    mean = constant + k_tn.T @ inverse @ ((values - offset) / unit - constant)
    covariance = k_nn - k_tn.T @ inverse @ k_tn
    return offset + unit * mean, unit**2 * covariance, inverse, scale, noise, unit


def test_posterior_is_the_dense_closed_form(data: tuple) -> None:
    train, values, new = data
    gp = fitted(data)
    mean, covariance, *_ = dense_posterior(gp, train, values, new)
    ours_mean, ours_covariance = gp.posterior(new)
    np.testing.assert_allclose(ours_mean.numpy(), mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours_covariance.numpy(), covariance, rtol=1e-8, atol=1e-9)
    predicted, std = gp.predict(new)
    np.testing.assert_allclose(predicted, mean, rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), rtol=1e-6)
    np.testing.assert_allclose(gp.covariance(new[:3], new[2:9]).numpy(), covariance[:3, 2:9], rtol=1e-8, atol=1e-9)


def test_botorch_model_agrees_and_takes_botorch_acquisitions(data: tuple) -> None:
    gp = fitted(data)
    assert isinstance(gp.model, SingleTaskGP)
    points = gp.encode(data[2])
    posterior = gp.model.posterior(points)
    mean, std = gp.predict(data[2])
    np.testing.assert_allclose(posterior.mean.detach().numpy()[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(posterior.variance.detach().sqrt().numpy()[:, 0], std, rtol=1e-4)
    single = LogExpectedImprovement(gp.model, best_f=float(data[1].max()))(points[:, None, :])
    batch = qLogExpectedImprovement(gp.model, best_f=float(data[1].max()))(points[None, :3, :])
    assert torch.isfinite(single).all()
    assert torch.isfinite(batch).all()


def test_pool_posterior_conditioned_step_by_step_equals_the_dense_form(data: tuple) -> None:
    train, values, new = data
    gp = fitted(data)
    pool = CandidateSet(new, kind="text")
    _, covariance, _, _, noise, unit = dense_posterior(gp, train, values, new)
    covariance = covariance / unit**2
    posterior = gp.pool_posterior(pool)
    np.testing.assert_allclose(posterior.moments.variance[0].numpy(), np.diag(covariance), rtol=1e-7)
    chosen: list[int] = []
    for index in (4, 0, 11):
        posterior = posterior.given(index)
        chosen.append(index)
        within = covariance[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
        to_all = covariance[chosen]
        expected = np.diag(covariance) - np.einsum("ij,ij->j", to_all, np.linalg.solve(within, to_all))
        np.testing.assert_allclose(posterior.moments.conditional_variance[0].numpy(), expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(posterior.moments.variance[0].numpy(), np.diag(covariance), rtol=1e-7)


def test_pending_strings_condition_like_chosen_ones_even_outside_the_pool(data: tuple) -> None:
    gp = fitted(data)
    pool = CandidateSet(data[2], kind="text")
    direct = gp.pool_posterior(pool)
    direct = direct.given(3)
    pending = gp.pool_posterior(pool, pending=[data[2][3]])
    np.testing.assert_allclose(
        pending.moments.conditional_variance[0].numpy(), direct.moments.conditional_variance[0].numpy(), rtol=1e-9
    )
    outside = gp.pool_posterior(CandidateSet(data[2][4:], kind="text"), pending=[data[2][3]])
    np.testing.assert_allclose(
        outside.moments.conditional_variance[0].numpy(), direct.moments.conditional_variance[0].numpy()[4:], rtol=1e-9
    )
    with_long = gp.pool_posterior(pool, pending=["ABCD" * 9])  # longer than every string seen so far
    assert (with_long.moments.conditional_variance[0] <= with_long.moments.variance[0] + 1e-12).all()


def test_joint_with_observed_strings(data: tuple) -> None:
    train, values, new = data
    gp = fitted(data)
    mean, covariance, *_, unit = dense_posterior(gp, train, values, train + new)
    pool = CandidateSet(new, kind="text")
    posterior = gp.pool_posterior(pool)
    indices = [7, 2, 5]
    joint_mean, joint = posterior.joint(torch.tensor(indices), include_observed=True)
    rows = list(range(len(train))) + [len(train) + i for i in indices]
    offset = values.mean()
    np.testing.assert_allclose(joint_mean[0].numpy(), (mean[rows] - offset) / unit, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(joint[0].numpy(), covariance[np.ix_(rows, rows)] / unit**2, rtol=1e-6, atol=1e-8)


def test_columns_kept_between_fits_give_what_fresh_ones_give(data: tuple) -> None:
    train, values, new = data
    pool = CandidateSet(new, kind="text")
    kept = StringGP(restarts=1, refit_growth=10.0)
    rng = np.random.default_rng(0)
    kept.fit(train[:10], values[:10], rng=rng)
    kept.pool_posterior(pool).given(2)
    before = kept.hyperparameters
    kept.fit(train, values, rng=rng)
    assert kept.hyperparameters["gap_decay"] == before["gap_decay"]
    assert kept.hyperparameters["outputscale"] != before["outputscale"]
    posterior = kept.pool_posterior(pool)
    fresh = kept.untransform(posterior.moments.mean[0].numpy(), posterior.moments.variance[0].numpy())
    for ours, expected in zip(fresh, kept.predict(new), strict=True):  # predict evaluates every covariance anew
        np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_decays_are_refitted_on_the_stated_schedule(data: tuple) -> None:
    train, values, _ = data
    gp = StringGP(restarts=1, refit_growth=0.5)
    rng = np.random.default_rng(0)
    decays = []
    for n in (6, 7, 8, 9):
        gp.fit(train[:n], values[:n], rng=rng)
        decays.append((gp.hyperparameters["match_decay"], gp.hyperparameters["gap_decay"]))
    assert decays[0] == decays[1] == decays[2] != decays[3]


def test_fit_raises_the_posterior_density_and_recovers_the_noise() -> None:
    rng = np.random.default_rng(5)
    strings = random_strings(120, rng)
    kernel = SubsequenceKernel(order=5, match_decay=0.6, gap_decay=0.3)
    gram = kernel.gram(strings).detach().numpy()
    truth = np.linalg.cholesky(gram + 1e-9 * np.eye(120)) @ rng.normal(size=120)
    values = truth + 0.3 * rng.normal(size=120)
    gp = StringGP(restarts=2)
    gp.fit(strings, values, rng=rng)
    noise = gp.hyperparameters["noise_variance"] * values.var(ddof=1)
    assert 0.03 < noise < 0.2  # true: 0.09
    model, likelihood = gp.model, gpytorch.mlls.ExactMarginalLogLikelihood(gp.model.likelihood, gp.model)
    model.train()
    with torch.no_grad():
        reached = float(likelihood(model(*model.train_inputs), model.train_targets))
        model.covar_module.base_kernel.match_decay = 0.9
        model.covar_module.base_kernel.gap_decay = 0.9
        elsewhere = float(likelihood(model(*model.train_inputs), model.train_targets))
    assert reached > elsewhere


def test_frozen_decays_stay_where_they_are_from_every_start() -> None:
    rng = np.random.default_rng(11)
    strings = ["".join(rng.choice(list("abc"), 8)) for _ in range(14)]
    values = [string.count("ab") + 0.1 * rng.standard_normal() for string in strings]
    kernel = default_kernel()
    kernel.gap_decay = 1.0
    kernel.raw_gap_decay.requires_grad_(False)
    gp = StringGP(kernel, restarts=4)
    for seed in range(3):
        gp.fit(strings, values, rng=np.random.default_rng(seed), full=True)
        assert gp.hyperparameters["gap_decay"] == 1.0
        assert gp.hyperparameters["match_decay"] != 0.8


def test_interpolated_fits_reach_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.models.fitting.INTERPOLATED", 10)
    rng = np.random.default_rng(12)
    strings = ["".join(rng.choice(list("abcd"), rng.integers(5, 20))) for _ in range(40)]
    values = [string.count("ab") + 0.3 * rng.standard_normal() for string in strings]
    fitted = []
    for interpolate in (True, False):
        gp = StringGP(restarts=2, interpolate=interpolate)
        gp.fit(strings, values, rng=np.random.default_rng(0))
        fitted.append(gp.hyperparameters)
    for name, value in fitted[0].items():
        assert value == pytest.approx(fitted[1][name], rel=1e-2, abs=1e-3)


def test_a_foreign_kernel_can_be_plugged_in(data: tuple) -> None:
    gp = StringGP(gpytorch.kernels.RBFKernel(), restarts=1)
    gp.fit(data[0], data[1], rng=np.random.default_rng(0))
    points = gp.encode(data[2])
    posterior = gp.model.posterior(points)
    mean, std = gp.predict(data[2])
    np.testing.assert_allclose(posterior.mean.detach().numpy()[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(posterior.variance.detach().sqrt().numpy()[:, 0], std, rtol=1e-3)
    pool = gp.pool_posterior(CandidateSet(data[2], kind="text"))
    pool = pool.given(0)
    assert pool.moments.conditional_variance[0][0] < pool.moments.variance[0][0]


@pytest.mark.parametrize("unit", [1e-9, 1e-100, 1e100])
def test_the_unit_of_the_values_changes_nothing(unit: float, data: tuple) -> None:
    train, values, rest = data
    known = np.linspace(0.01, 0.2, len(train))
    gp, scaled = StringGP(restarts=1), StringGP(restarts=1)
    gp.fit(train, values, rng=np.random.default_rng(0), noise_variance=known)
    scaled.fit(train, unit * values, rng=np.random.default_rng(0), noise_variance=unit**2 * known)
    for moment, again in zip(gp.predict(rest), scaled.predict(rest), strict=True):
        np.testing.assert_allclose(again / unit, moment, rtol=1e-3)


def test_equal_values_and_repeated_strings_are_survived(data: tuple) -> None:
    gp = StringGP(restarts=1)
    gp.fit(["AB", "CD", "EF"], [2.0, 2.0, 2.0], rng=np.random.default_rng(0))
    mean, std = gp.predict(["AB", "XY"])
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    gp = StringGP(restarts=1)
    gp.fit(["AB", "AB", "CD", "CE"], [1.0, 1.2, 3.0, 3.1], rng=np.random.default_rng(0))
    assert np.isfinite(gp.predict(["AB"])[0]).all()


def test_rows_in_another_order_are_moved_once_and_stay_right(data: tuple) -> None:
    train, values, new = data
    pool = CandidateSet(new, kind="text")
    gp = StringGP(restarts=1, refit_growth=10.0)
    rng = np.random.default_rng(0)
    gp.fit(train[:10], values[:10], rng=rng)
    posterior = gp.pool_posterior(pool)
    for index in (3, 8, 5):
        posterior = posterior.given(index)
    strings = [*train[:10], new[5], train[12]]  # of the three, one was measured; another string was told
    gp.fit(strings, np.append(values[:10], [11.0, 9.0]), rng=rng)
    again = gp.pool_posterior(pool, pending=[new[3]])
    again = again.given(0)
    fresh = StringGP(restarts=1, refit_growth=10.0)
    fresh.load_state_dict(gp.state_dict())
    fresh.fit(strings, np.append(values[:10], [11.0, 9.0]), rng=rng, full=False)
    np.testing.assert_allclose(
        gp.untransform(again.moments.mean[0].numpy(), again.moments.variance[0].numpy()), gp.predict(new), rtol=1e-9
    )
    expected = gp.pool_posterior(pool, np.arange(len(new)), pending=[new[3]])
    expected = expected.given(0)
    np.testing.assert_allclose(
        again.moments.conditional_variance[0].numpy(), expected.moments.conditional_variance[0].numpy(), rtol=1e-9
    )


def test_other_data_are_fitted_anew(data: tuple) -> None:
    train, values, new = data
    reused, fresh = StringGP(restarts=1), StringGP(restarts=1)
    reused.fit(train, values, rng=np.random.default_rng(0))
    for gp in (reused, fresh):
        gp.fit(new[:12], [float(s.count("CD")) for s in new[:12]], rng=np.random.default_rng(1))
    assert reused.state_dict()["full_fit_size"] == fresh.state_dict()["full_fit_size"] == 12


def test_a_restored_state_forgets_what_was_computed_before(data: tuple) -> None:
    train, values, new = data
    pool = CandidateSet(new, kind="text")
    one, other = StringGP(restarts=1), StringGP(restarts=1)
    one.fit(train, values, rng=np.random.default_rng(0))
    other.fit(train, -values * np.arange(15), rng=np.random.default_rng(0))
    one.pool_posterior(pool)
    one.load_state_dict(other.state_dict())
    one.fit(train, values, rng=np.random.default_rng(0))
    posterior = one.pool_posterior(pool)
    np.testing.assert_allclose(
        one.untransform(posterior.moments.mean[0].numpy(), posterior.moments.variance[0].numpy()),
        one.predict(new),
        rtol=1e-9,
    )


def test_a_foreign_kernel_takes_longer_strings_when_they_are_told() -> None:
    pool = CandidateSet(["A" * n for n in range(1, 9)], kind="text")
    gp = StringGP(gpytorch.kernels.RBFKernel(), restarts=1, refit_growth=10.0)
    gp.bind(pool)
    rng = np.random.default_rng(0)
    gp.fit(["A", "AAA", "AAAA"], [1.0, 3.0, 4.0], rng=rng)
    gp.pool_posterior(pool)
    gp.fit(["A", "AAA", "AAAA", "A" * 20], [1.0, 3.0, 4.0, 20.0], rng=rng)
    assert np.isfinite(gp.pool_posterior(pool).moments.mean.numpy()).all()


def test_bad_input() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="at least two"):
        StringGP().fit(["A"], [1.0], rng=rng)
    with pytest.raises(InputError, match="2 strings but values of shape"):
        StringGP().fit(["A", "B"], [1.0], rng=rng)
    with pytest.raises(InputError, match="value of 'B' is nan"):
        StringGP().fit(["A", "B"], [1.0, float("nan")], rng=rng)
    with pytest.raises(ModelError, match="not been fitted"):
        StringGP().predict(["A"])
    with pytest.raises(InputError, match="restarts is 0"):
        StringGP(restarts=0)
