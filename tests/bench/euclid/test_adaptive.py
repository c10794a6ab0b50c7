"""Models that average over their parameters, and the searches with them: each part against an oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from botorch.test_functions import Branin, Hartmann, Rosenbrock
from scipy import integrate, optimize, stats

from seqopt.acquisition import LogExpectedImprovement
from seqopt.bench.euclid import adaptive, boxes
from seqopt.bench.euclid.adaptive import WAYS, Situation, candidates_of, searched, starred
from seqopt.bench.euclid.boxes import BoxModel, matern
from seqopt.bench.euclid.fourier import FourierDraw, FourierFeatures
from seqopt.bench.euclid.further_functions import FURTHER, gramacy1, gramacy2, higdon, ishigami, sample_in_eight
from seqopt.bench.euclid.regularisers import grown, hinge, quadratic
from seqopt.bench.euclid.runs import Job, check, work

RNG = np.random.default_rng


def test_functions_are_those_of_botorch_and_of_the_papers():
    import torch

    points = RNG(0).random((50, 6))
    others = {
        "branin-noisy": (Branin(negate=True), 2),
        "hartmann3-noisy": (Hartmann(3, negate=True), 3),
        "hartmann6-noise": (Hartmann(6, negate=True), 6),
        "hartmann4-noisy": (Hartmann(4, negate=True), 4),
        "rosenbrock2-noisy": (Rosenbrock(2, negate=True), 2),
        "rosenbrock4-noisy": (Rosenbrock(4, negate=True), 4),
    }
    for name, (theirs, dim) in others.items():
        problem = FURTHER[name]
        x = problem.scaled(points[:, :dim])
        np.testing.assert_allclose(problem.objective(points[:, :dim]), theirs(torch.from_numpy(x)).numpy(), rtol=1e-5)
        assert problem.regret(points[:, :dim]).min() > 0
    assert gramacy1(np.array([[0.55]]))[0] == pytest.approx(math.sin(5.5 * math.pi) / 1.1 + 0.45**4)
    assert gramacy2(np.array([[1.0, 1.0]]))[0] == pytest.approx(math.exp(-2))
    assert higdon(np.array([[5.0], [15.0]])).tolist() == pytest.approx([math.sin(math.pi) + 0.2, 0.5])
    assert ishigami(np.array([[math.pi / 2, math.pi / 2, 1.0]]))[0] == pytest.approx(1 + 7 + 0.1)


def test_optima_are_the_largest_values():
    problem = FURTHER["hartmann4-noisy"]
    starts = RNG(0).random((40, 4))
    found = [
        optimize.minimize(lambda x: -problem.objective(x[None])[0], start, bounds=[(0, 1)] * 4).fun for start in starts
    ]
    assert -min(found) == pytest.approx(problem.optimum, abs=1e-5)


def test_samples_in_eight_variables_differ_by_seed_and_have_their_optimum():
    one, other = sample_in_eight(0), sample_in_eight(1)
    points = RNG(1).random((500, 8))
    assert one.regret(points).min() > 0
    assert abs(other.optimum - one.optimum) > 1e-3
    # The last three variables hardly matter, the first does.
    moved = points.copy()
    moved[:, 5:] = RNG(2).random((500, 3))
    assert np.abs(one.objective(moved) - one.objective(points)).max() < 0.3
    moved = points.copy()
    moved[:, 0] = RNG(3).random(500)
    assert np.abs(one.objective(moved) - one.objective(points)).mean() > 0.3


@pytest.mark.parametrize(("nu", "expected"), [(2.5, 0.79386), (None, math.exp(-0.5 * 0.3125 / 1.0))])
def test_fourier_features_have_the_covariance_of_their_kernel(nu, expected):
    features = FourierFeatures.drawn(np.array([0.2, 2.0]), 1.0, 400_000, RNG(0), nu)
    a, b = features(np.array([[0.3, 0.7], [0.4, 1.2]]))
    found = float(a @ b)
    assert found == pytest.approx(expected, abs=5e-3)
    assert float(matern(np.array([0.5**2 + 0.25**2]))[0]) == pytest.approx(0.79386, abs=1e-5)


def test_fourier_draws_given_values_are_regression_with_their_features():
    rng = RNG(0)
    features = FourierFeatures.drawn(np.array([0.3]), 2.0, 50, rng)
    points, new = rng.random((6, 1)), rng.random((3, 1))
    values = np.sin(6 * points[:, 0])
    draws = np.array([FourierDraw.posterior(features, points, values, 0.1, rng, 0.5)(new) for _ in range(5_000)])
    phi, at = features(points), features(new)
    gram = np.linalg.inv(phi @ phi.T + 0.1 * np.eye(6))
    cross = at @ phi.T
    np.testing.assert_allclose(draws.mean(0), 0.5 + cross @ gram @ (values - 0.5), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), at @ at.T - cross @ gram @ cross.T, atol=0.06)
    # The formula of the weights: A = Phi^T Phi + noise I.
    a = phi.T @ phi + 0.1 * np.eye(50)
    np.testing.assert_allclose(
        at @ np.linalg.solve(a, phi.T @ (values - 0.5)), cross @ gram @ (values - 0.5), atol=1e-8
    )
    np.testing.assert_allclose(at @ (0.1 * np.linalg.inv(a)) @ at.T, at @ at.T - cross @ gram @ cross.T, atol=1e-8)


def test_regularisers_are_those_of_the_text():
    low, high = np.array([-1.0, 2.0, 0.0]), np.array([3.0, 4.0, 1.0])
    centre, sides = 0.5 * (low + high), high - low
    face = centre + np.array([0.5 * sides[0], 0.0, 0.0])
    assert quadratic(np.stack([centre, face, high]), low, high).tolist() == pytest.approx([0.0, 0.25, 0.75])
    radius = 0.5 * np.linalg.norm(sides)
    direction = np.array([0.6, 0.8, 0.0])
    inside, at_two, at_three = (centre + share * radius * direction for share in (0.99, 2.0, 3.0))
    assert hinge(np.stack([inside, at_two, at_three]), low, high).tolist() == pytest.approx([0.0, 1.0, 4.0])
    assert hinge(at_three[None], low, high, beta=2.0)[0] == pytest.approx(1.0)


def test_the_volume_doubles_every_three_evaluations_for_each_variable():
    low, high = np.zeros(2), np.array([1.0, 3.0])
    volumes = []
    for evaluations in range(6, 31):
        a, b = grown(low, high, evaluations)
        np.testing.assert_allclose(a + b, low + high)
        volumes.append(float(np.prod(b - a)) / 3.0)
    # First when 6 d have been measured.
    assert volumes == pytest.approx([2.0 ** max(n // 6 - 1, 0) for n in range(6, 31)])
    assert volumes[:6] == pytest.approx([1.0] * 6)
    assert volumes[6] == pytest.approx(2.0)


def data(n: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(4)
    points = rng.random((n, dim))
    return points, np.sin(5 * points[:, 0]) + 0.1 * rng.standard_normal(n) + 2.0


@pytest.mark.slow
def test_draws_of_parameters_follow_their_posterior():
    """In one variable, the moments of the logarithms are those of numerical integration."""
    points, values = data(6, 1)
    model = BoxModel(1, 400, mean_variance=1.0)
    model.fit(points, values, RNG(0))
    squares = (points[:, None] - points[None]) ** 2
    targets = (values - values.mean()) / values.std()
    axes = [np.linspace(-5, 5, 25), np.linspace(-5, 5, 25), np.linspace(-9, 4, 27)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    logs = np.array([model.log_posterior(one, squares, targets) for one in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    found = np.log(np.array([[*draw.lengthscales, draw.variance, draw.noise] for draw in model.draws]))
    mean, spread = weights @ grid, np.sqrt(weights @ (grid - weights @ grid) ** 2)
    np.testing.assert_allclose(found.mean(0), mean, atol=0.3 * spread.max())
    np.testing.assert_allclose(found.std(0), spread, rtol=0.25)


def test_without_data_that_tell_draws_are_the_prior():
    model = BoxModel(1, 400, mean_variance=0.0)
    model.log_posterior = lambda logarithms, squares, rest: (  # type: ignore[method-assign]
        -math.inf if abs(logarithms).max() > 7 else -0.5 * float(np.square(logarithms).sum()) / boxes.PRIOR_VARIANCE
    )
    model.fit(*data(4, 1), RNG(1))
    logs = np.log([draw.lengthscales[0] for draw in model.draws])
    assert stats.kstest(logs[::3], stats.norm(0.0, math.sqrt(3.0)).cdf).pvalue > 1e-3


def test_the_posterior_is_regression_with_the_constant_integrated_out():
    points, values = data(7, 2)
    model = BoxModel(2, 2, mean_variance=1.0, penalty=lambda x: quadratic(x, np.zeros(2), np.ones(2)))
    model.fit(points, values, RNG(0))
    new = RNG(1).random((4, 2))
    posterior = model.posterior(new)
    targets = (values - values.mean()) / values.std()
    for number, draw in enumerate(model.draws):
        both = np.concatenate([points, new]) / draw.lengthscales
        squares = ((both[:, None] - both[None]) ** 2).sum(-1)
        prior = draw.variance * matern(squares) + 1.0
        gram = prior[:7, :7] + (draw.noise + boxes.JITTER) * np.eye(7)
        shift = -quadratic(new, np.zeros(2), np.ones(2)), -quadratic(points, np.zeros(2), np.ones(2))
        mean = shift[0] + prior[7:, :7] @ np.linalg.solve(gram, targets - shift[1])
        covariance = prior[7:, 7:] - prior[7:, :7] @ np.linalg.solve(gram, prior[:7, 7:])
        np.testing.assert_allclose(posterior.moments.mean[number], mean, atol=1e-6)
        np.testing.assert_allclose(posterior.moments.variance[number], np.diag(covariance), atol=1e-6)
        means, variances = model.moments(new)
        np.testing.assert_allclose(means[number], mean, atol=1e-6)
        np.testing.assert_allclose(variances[number], np.diag(covariance), atol=1e-6)
    # The density of a measurement integrates to 1.
    total, _ = integrate.quad(lambda y: math.exp(model.log_density(new[:1], np.array([y]))[0]), -20, 25, limit=200)
    assert total == pytest.approx(1.0, abs=1e-4)


def test_expected_improvement_vanishes_far_away_only_with_a_penalty():
    points, values = data(8, 2)
    far = 0.5 + np.array([[60.0, 60.0], [300.0, -300.0]])
    scores = {}
    for name, penalty in {
        "none": None,
        "hinge": lambda x: hinge(x, np.zeros(2), np.ones(2)),
        "quadratic": lambda x: quadratic(x, np.zeros(2), np.ones(2)),
    }.items():
        model = BoxModel(2, 3, penalty=penalty)
        model.fit(points, values, RNG(0))
        posterior = model.posterior(np.concatenate([far, points[:2]]))
        scores[name] = LogExpectedImprovement().prepare(posterior, RNG(1))(posterior).numpy()
        if name == "hinge":
            # All data lie in the ball, and so do these points: the penalty changes nothing there.
            plain = BoxModel(2, 3)
            plain.fit(points, values, RNG(0))
            inside = RNG(2).random((5, 2))
            np.testing.assert_allclose(plain.mean(inside), model.mean(inside), rtol=1e-10)
    assert (scores["none"][:2] > -10).all()
    assert (scores["hinge"][:2] < -50).all()
    assert (scores["quadratic"][:2] < -50).all()


@pytest.mark.parametrize("name", WAYS)
def test_every_method_chooses_a_candidate(name):
    points, values = data(6, 2)
    model = BoxModel(2, 2)
    model.fit(points, values, RNG(0))
    candidates = candidates_of(model, WAYS[name].region, 6, RNG(1))[::8]
    at = Situation(model, candidates, model.posterior(candidates), RNG(2))
    if name == "points":
        at = Situation(model, np.repeat(candidates, 8, axis=0), at.posterior, RNG(2))
    assert 0 <= WAYS[name].choose(at) < len(at.points)


def test_candidates_without_a_box_lie_outside_as_well():
    points, values = data(6, 2)
    model = BoxModel(2, 1)
    model.fit(points, values, RNG(0))
    assert (np.abs(candidates_of(model, "box", 6, RNG(1)) - 0.5) <= 0.5).all()
    assert np.abs(candidates_of(model, "volume", 12, RNG(1)) - 0.5).max() > 0.6
    assert np.abs(candidates_of(model, "hinge", 6, RNG(1)) - 0.5).max() > 1.5


def test_starred_boxes_have_a_fifth_of_the_sides():
    low, high = starred(6, RNG(0))
    np.testing.assert_allclose(high - low, 0.2)
    assert (low >= 0).all()
    assert (high <= 1).all()


def test_a_run_records_what_it_measured(monkeypatch):
    monkeypatch.setattr(adaptive, "SOBOL", 24)
    monkeypatch.setattr(adaptive, "NEARBY", 8)
    monkeypatch.setattr(adaptive, "DRAWS", 2)
    monkeypatch.setattr(boxes, "FIRST_SWEEPS", 4)
    for task, method, field in (
        ("gramacy1", "sal-ws", "rmse"),
        ("branin-noisy", "scorebo", "regret"),
        ("hartmann3-starred", "ei-v", "regret"),
    ):
        first = 9 if task == "hartmann3-starred" else 3 if task == "branin-noisy" else 2
        run = work(Job(task, method, 0, first + 4))
        assert len(run["points"]) == len(run["values"]) == first + 4
        assert len(run[field]) == 5
        assert run == {**run, "initial": first}
        check(run)
        assert work(Job(task, method, 0, first + 4))["points"] == run["points"]
        run["values"][-1] += 100.0
        with pytest.raises(Exception, match=r"not .* as recorded"):
            check(run)


def test_methods_of_one_seed_begin_alike():
    problem = FURTHER["gramacy1"]
    found = [
        searched(problem, WAYS[name], 3, 2, "learning", RNG([0, 1]), RNG(number))["points"][:2]
        for number, name in enumerate(("balm", "points"))
    ]
    assert found[0] == found[1]
