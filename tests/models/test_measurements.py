"""Intervals of measurements count that parameters are uncertain."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate

from seqopt.encoding import Encoder
from seqopt.kernels import NgramKernel, OneHotKernel, SubsequenceKernel
from seqopt.models import FullyBayesianStringGP, MeasurementSurrogate, StringGP
from seqopt.models import measurements as module
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.measurements import PRIOR_VALUES, MeasurementVariance
from seqopt.models.sampling.parameters import KernelParameters
from seqopt.optimizer import Optimizer

STRINGS = ["ACGT", "ACGA", "TTTT", "TTTA", "GGCC", "GACC", "GTCA", "CATG"]
VALUES = np.array([1.0, 1.4, -2.0, -1.0, 0.5, 0.1, 0.3, -0.3])
NEW = ["ACCC", "TTAA", "ACGT"]


def _fitted(kernel: SubsequenceKernel | NgramKernel | OneHotKernel, known: list[float] | None = None) -> StringGP:
    gp = StringGP(kernel, restarts=1)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0), noise_variance=known)
    return gp


def _state(kernel: SubsequenceKernel | NgramKernel, targets: np.ndarray, scale: float, noise: float) -> BatchedGPState:
    """The process of `STRINGS` at parameters of choice, the mean being the best one."""
    encoded = Encoder().encode(STRINGS)
    evaluator = KernelEvaluator(kernel, encoded.width)
    gram = evaluator.cross(encoded, None, evaluator.self_similarity(encoded))
    inverse = np.linalg.inv(scale * gram + noise * np.eye(len(gram)))
    constant = (inverse.sum(0) @ targets) / inverse.sum()
    one = [torch.tensor([value], dtype=torch.float64) for value in (constant, scale, noise)]
    known = torch.zeros(len(STRINGS), dtype=torch.float64)
    return BatchedGPState.build(evaluator, list(STRINGS), encoded, torch.from_numpy(targets), *one, known)


@pytest.mark.parametrize("known", [None, [0.0, 0.5, 0.0, 1.0, 0.1, 0.0, 0.0, 0.3]])
def test_share_of_noise_is_integrated_out(known: list[float] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same integral by adaptive quadrature, with solved systems in place of eigenvalues."""
    monkeypatch.setattr(module, "MOVED", 0)
    gp = _fitted(SubsequenceKernel(), known)
    state, n = gp.fitted, len(STRINGS)
    own, new = gp.encoder.encode(STRINGS), gp.encoder.encode(NEW)
    evaluator = state.evaluator
    gram = evaluator.cross(own, None, evaluator.self_similarity(own))
    rows = evaluator.cross(own, new, evaluator.self_similarity(own), evaluator.self_similarity(new))
    pattern = np.diag((state.observed_noise[0] / state.noise_variance[0]).numpy())
    y, ones = state.targets.numpy(), np.ones(n)
    fitted = float(state.constant[0]) + float(state.scale[0]) * state.alpha[0].numpy() @ rows

    def parts(share: float) -> np.ndarray:
        inverse = np.linalg.inv((1 - share) * gram + share * pattern)
        precision = ones @ inverse @ ones
        constant = ones @ inverse @ y / precision
        squares = PRIOR_VALUES + (y - constant) @ inverse @ (y - constant)
        log_density = 0.5 * (np.linalg.slogdet(inverse)[1] - np.log(precision) - (n + 1) * np.log(squares))
        columns = (1 - share) * rows
        mean = constant + columns.T @ inverse @ (y - constant)
        spread = (1 - share) + share - np.einsum("ij,ik,kj->j", columns, inverse, columns)
        spread += (1 - ones @ inverse @ columns) ** 2 / precision
        second = squares / (PRIOR_VALUES + n - 3) * spread + (mean - fitted) ** 2
        return np.exp(log_density) * np.array([1.0, *second])

    total, *seconds = integrate.quad_vec(parts, 1e-9, 1 - 1e-9, epsrel=1e-8)[0]
    expected = gp.units[1] * np.sqrt(np.array(seconds) / total)
    np.testing.assert_allclose(gp.measurement_std(NEW), expected, rtol=2e-3)


@pytest.mark.parametrize("limits", [(), ("<", "<")])
def test_a_measurement_is_less_certain_than_the_true_value_at_every_string(limits: tuple[str, ...]) -> None:
    """Also at strings like no other, where the fitted parameters alone give wider intervals than the averaged ones."""
    rng = np.random.default_rng(2)
    strings = ["".join(row) for row in rng.choice(list("ACGT"), (60, 12))]
    values = [string.count("A") + 3.0 * float(rng.standard_normal()) for string in strings[:30]]
    optimizer = Optimizer(strings, initial=30, surrogate="ssk", transform="none", seed=0)
    optimizer.tell(strings[:30], values, censored=[*limits, *[None] * (30 - len(limits))])
    batch = optimizer.ask(20)
    found = optimizer.predictions(strings)
    surrogate = optimizer.fitted
    assert isinstance(surrogate, StringGP)
    assert (surrogate.measurement_std(strings) <= surrogate.predict(strings)[1]).any()
    noise = surrogate.units[1] * float(surrogate.fitted.noise_variance[0]) ** 0.5
    of_measurement, of_value = (
        (high - low) / (2 * 1.6448536) for low, high in ((found.low, found.high), (found.true_low, found.true_high))
    )
    assert (of_measurement >= (1 - 1e-6) * np.hypot(of_value, noise)).all()
    # What a batch says of its strings is what is predicted of them.
    for row in batch.rows:
        place = strings.index(row.string)
        assert row.details["predicted_low"] == pytest.approx(found.low[place], rel=1e-3)
        assert row.details["predicted_high"] == pytest.approx(found.high[place], rel=1e-3)


def test_independent_values_have_the_t_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string that is like no other has the variance of the t distribution of one more value of a sample.

    All Gram matrices are that of independent values, whatever the share: total variance times (1 + 1 / n).
    """
    monkeypatch.setattr(module, "MOVED", 0)
    strings = ["A", "C", "G", "T", "N", "R"]  # no symbol in common
    values = np.array([0.3, -1.2, 0.4, 2.0, -0.5, -1.0])
    gp = StringGP(SubsequenceKernel(), restarts=1)
    gp.fit(strings, values, rng=np.random.default_rng(0))
    n, offset = len(values), values.mean() - gp.predict(["Y"])[0]
    unit = values.std(ddof=1)
    total = (PRIOR_VALUES + n - 1) / (PRIOR_VALUES + n - 3)
    expected = np.sqrt(unit**2 * total * (1 + 1 / n) + offset**2)
    np.testing.assert_allclose(gp.measurement_std(["Y"]), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SubsequenceKernel(3, 0.7, 0.4), NgramKernel(2)])
def test_slopes_of_predictions_are_those_of_refitted_means(kernel: SubsequenceKernel | NgramKernel) -> None:
    """Against central differences of predictions whose constant mean is estimated anew."""
    targets = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    encoded = Encoder().encode(STRINGS)
    parameters = KernelParameters(kernel, encoded)
    own = parameters.kernel
    state = _state(own, targets, 1.3, 0.2)
    new = Encoder().encode(NEW)
    evaluator = state.evaluator
    rows = evaluator.cross(encoded, new, evaluator.self_similarity(encoded), evaluator.self_similarity(new))
    found = module._Slopes(state, own, encoded.width).derivatives(new, torch.from_numpy(rows)).numpy()

    def predicted(values: list[float]) -> np.ndarray:
        moved = _state(KernelParameters(own).set(values), targets, 1.3, 0.2)
        at = moved.evaluator
        rows = at.cross(encoded, new, at.self_similarity(encoded), at.self_similarity(new))
        return moved.constant.numpy() + 1.3 * (moved.alpha.numpy() @ rows)[0]

    step = 1e-4
    for place, coordinate in enumerate(parameters.coordinates):
        ends = []
        for sign in (1, -1):
            values = list(KernelParameters(own).values)
            values[place] = float(coordinate.value(np.array(coordinate.start + sign * step)))
            ends.append(predicted(values))
        np.testing.assert_allclose(found[place], (ends[0] - ends[1]) / (2 * step), rtol=1e-2, atol=1e-3)


def test_information_is_the_expected_curvature_of_the_restricted_likelihood() -> None:
    """Against that of n - 1 contrasts of the values, which have no mean, with the covariance by finite differences."""
    kernel = NgramKernel(2)
    encoded = Encoder().encode(STRINGS)
    own = KernelParameters(kernel, encoded).kernel
    state = _state(own, VALUES / VALUES.std(ddof=1), 1.3, 0.2)
    (coordinate,) = KernelParameters(own).coordinates
    contrasts = np.linalg.svd(np.ones((1, len(STRINGS))))[2][1:]

    def covariance(moves: np.ndarray) -> np.ndarray:
        value = float(coordinate.value(np.array(coordinate.start + moves[0])))
        evaluator = KernelEvaluator(KernelParameters(own).set([value]), encoded.width)
        whole = 1.3 * np.exp(moves[1]) * evaluator.cross(encoded, None) + 0.2 * np.exp(moves[2]) * np.eye(len(STRINGS))
        return contrasts @ whole @ contrasts.T

    at = np.linalg.inv(covariance(np.zeros(3)))
    slopes = [(covariance(1e-4 * move) - covariance(-1e-4 * move)) / 2e-4 for move in np.eye(3)]
    information = np.array([[0.5 * np.trace(at @ a @ at @ b) for b in slopes] for a in slopes])
    information += np.diag([1.0 / module._prior_variance(coordinate), 1.0, 1.0])
    found = module._Slopes(state, own, encoded.width).covariance
    np.testing.assert_allclose(found.numpy(), np.linalg.inv(information)[:1, :1], rtol=1e-3)


@pytest.mark.slow
def test_nine_of_ten_measurements_lie_in_the_intervals_after_twenty_strings() -> None:
    rng = np.random.default_rng(0)
    symbols, held = np.array(list("ACGT")), {"plain": [], "averaged": []}
    for _ in range(30):
        ancestors = rng.choice(symbols, (8, 12))
        members = ancestors[np.arange(120) % 8]
        moved = rng.random(members.shape) < 0.3
        strings = ["".join(row) for row in np.where(moved, rng.choice(symbols, members.shape), members)]
        gram = SubsequenceKernel().gram(strings).numpy()
        roots = np.linalg.cholesky(gram + 1e-8 * np.eye(len(gram)))
        values = roots @ rng.standard_normal(120) + np.sqrt(0.1) * rng.standard_normal(120)
        gp = StringGP(restarts=1)
        gp.fit(strings[:20], values[:20], rng=rng)
        mean, std = gp.predict(strings[20:])
        plain = np.sqrt(std**2 + gp.units[1] ** 2 * float(gp.fitted.noise_variance[0]))
        for name, spread in (("plain", plain), ("averaged", gp.measurement_std(strings[20:]))):
            held[name].append(np.mean(np.abs(values[20:] - mean) <= 1.645 * spread))
    assert np.mean(held["plain"]) < 0.84
    assert 0.88 < np.mean(held["averaged"]) < 0.92


@pytest.mark.parametrize("kernel", [SubsequenceKernel(), NgramKernel(), OneHotKernel()])
def test_every_kernel_scales_with_the_values(kernel: SubsequenceKernel | NgramKernel | OneHotKernel) -> None:
    std = _fitted(kernel).measurement_std(NEW)
    assert (std > 0).all()
    large = StringGP(kernel, restarts=1)
    large.fit(STRINGS, 1e6 * VALUES + 3e6, rng=np.random.default_rng(0))
    np.testing.assert_allclose(large.measurement_std(NEW), 1e6 * std, rtol=1e-3)


def test_predictions_and_posteriors_stay_as_they_are() -> None:
    gp, other = _fitted(SubsequenceKernel()), _fitted(SubsequenceKernel())
    gp.measurement_std(NEW)
    for found, expected in zip(gp.predict(NEW), other.predict(NEW), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert gp.hyperparameters == other.hyperparameters
    assert torch.equal(gp.posterior(NEW)[1], other.posterior(NEW)[1])


def test_later_fits_and_strings_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gp = _fitted(SubsequenceKernel())
    before = gp.measurement_std(NEW)
    gp.fit([*STRINGS, "ACCC"], [*VALUES, 0.9], rng=np.random.default_rng(1))
    assert gp.measurement_std(NEW)[0] < before[0]
    monkeypatch.setattr("seqopt.models.string_gp.AVERAGED", 5)
    std, noise = gp.predict(NEW)[1], float(gp.fitted.noise_variance[0])
    np.testing.assert_allclose(gp.measurement_std(NEW), np.sqrt(std**2 + gp.units[1] ** 2 * noise))


def test_only_point_estimates_need_it() -> None:
    assert isinstance(StringGP(), MeasurementSurrogate)
    assert not isinstance(FullyBayesianStringGP(), MeasurementSurrogate)


def test_two_values_are_enough() -> None:
    gp = StringGP(restarts=1)
    gp.fit(["AC", "GT"], [0.0, 1.0], rng=np.random.default_rng(0))
    found = MeasurementVariance(gp.fitted, gp.model.covar_module.base_kernel, 2).at(gp.encoder.encode(["AT"]))
    assert 0.5 < float(found) < 20.0


def test_what_the_kernels_parameters_add_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    gp = _fitted(SubsequenceKernel())
    state = gp.fitted
    own, new = gp.encoder.encode(STRINGS), gp.encoder.encode(NEW)
    rows = state.evaluator.cross(own, new, state.evaluator.self_similarity(own), state.evaluator.self_similarity(new))
    kernel = gp.model.covar_module.base_kernel
    slopes = module._Slopes(state, kernel, own.width)
    moved = slopes.derivatives(new, torch.from_numpy(rows)).numpy()
    added = np.einsum("in,ij,jn->n", moved, slopes.covariance.numpy(), moved)
    whole = MeasurementVariance(state, kernel, own.width).at(new).numpy()
    monkeypatch.setattr(module, "MOVED", 0)
    without = MeasurementVariance(state, kernel, own.width).at(new).numpy()
    assert (added > 0).all()
    np.testing.assert_allclose(whole - without, added, rtol=1e-6)
