"""Transforms: inverses, slopes, order, what they are learned from, and in which units results come."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seqopt.data import (
    DEFAULT_TRANSFORM,
    TRANSFORMS,
    LearnedTransform,
    Log10,
    NormalScores,
    Outcome,
    Winsorised,
    YeoJohnson,
    resolve_transform,
)
from seqopt.data.transforms import log_slopes, quantile_interval, quantile_moments
from seqopt.errors import InputError
from seqopt.models import FullyBayesianGP
from seqopt.models.transforms import best_transform, log_density
from seqopt.optimizer import Optimizer
from seqopt.spaces import StringSpace
from seqopt.utils.config import from_config

VALUES = [3.0, -1.0, 0.5, 8.0, 8.0, 2.0, 100.0]
EACH = {
    **{f"power {power:g}": YeoJohnson(1.5, 2.0, power) for power in (0.0, 0.25, 1.0, 1.5, 2.0)},
    "both tails": Winsorised(1.5, 2.0, -1.0, 0.5),
    "left tail": Winsorised(1.5, 2.0, low=-2.0),
    "ranks": NormalScores(VALUES),
    "log10": Log10(),
}
every_transform = pytest.mark.parametrize("name", EACH)


@every_transform
@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=2))
def test_transforms_increase_and_are_turned_back(name, values):
    transform = EACH[name]
    signed = values if name == "log10" else [values[0] - 20.0, values[1] - 20.0]
    images = [transform.forward(value) for value in signed]
    for value, image in zip(signed, images, strict=True):
        assert transform.inverse(image) == pytest.approx(value, rel=1e-6, abs=1e-6)
    if signed[1] - signed[0] > 1e-6:
        assert images[1] > images[0]


@pytest.mark.parametrize("name", [name for name in EACH if name not in ("ranks", "log10")])
@pytest.mark.parametrize("value", [-30.0, -0.7, 1.2, 2.2, 40.0])
def test_slopes_are_finite_differences(name, value):
    transform = EACH[name]
    expected = (transform.forward(value + 1e-6) - transform.forward(value - 1e-6)) / 2e-6
    assert transform.slope(value) == pytest.approx(expected, rel=1e-6)
    assert transform.variance(value, 0.04) == pytest.approx(0.04 * expected**2, rel=1e-6)
    assert log_slopes(transform, np.array([value, value])) == pytest.approx(2 * math.log(expected), rel=1e-6, abs=1e-8)


def test_yeo_johnson_is_that_of_scipy():
    values = np.array([-30.0, -1.0, 0.0, 0.3, 12.0])
    for power in (0.0, 0.5, 1.0, 1.75, 2.0):
        ours = [YeoJohnson(power=power).forward(value) for value in values]
        np.testing.assert_allclose(ours, stats.yeojohnson(values, power), rtol=1e-12, atol=1e-12)


def test_normal_scores_are_quantiles_of_ranks():
    scores = NormalScores(VALUES)
    for value in VALUES:
        rank = stats.rankdata(VALUES)[VALUES.index(value)]
        assert scores.forward(value) == pytest.approx(stats.norm.ppf((rank - 0.5) / len(VALUES)))
    # Values of which most are equal: the outermost is the median.
    assert NormalScores([0.0, 0.0, 0.0, 0.0, -1.0]).inverse(5.0) > 0
    with pytest.raises(InputError, match="two different values"):
        NormalScores([1.0, 1.0])


@every_transform
@pytest.mark.parametrize(("mean", "std"), [(0.2, 0.1), (1.0, 0.6), (-0.5, 1.2)])
def test_what_is_shown_are_quantiles_of_what_is_predicted(name, mean, std):
    transform = EACH[name]
    draws = np.array([transform.inverse(z) for z in np.random.default_rng(0).normal(mean, std, 20_000)])
    low, high = quantile_interval(transform, mean, std)
    shares = [np.mean(draws < end) for end in (low, quantile_moments(transform, mean, std)[0], high)]
    np.testing.assert_allclose(shares, [0.05, 0.5, 0.95], atol=0.012)
    assert quantile_moments(transform, mean, std)[1] * 2 * stats.norm.ppf(0.95) == pytest.approx(high - low)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda rng: rng.normal(5.0, 2.0, 200), {"none"}),
        (lambda rng: np.exp(rng.normal(0.0, 1.5, 200)), {"log10"}),
        (lambda rng: -np.exp(rng.normal(0.0, 1.5, 200)), {"yeo-johnson", "winsorised"}),
        (lambda rng: np.concatenate([rng.normal(size=190), -40 - rng.exponential(40, 10)]), {"winsorised"}),
    ],
)
def test_the_transform_that_made_the_values_is_found(draw, expected):
    for seed in range(3):
        values = draw(np.random.default_rng(seed))
        assert best_transform(LearnedTransform("auto").candidates(values), values, None).name in expected


def test_densities_of_values_integrate_to_one():
    # Held at its parameters, the density that is compared is one of the values themselves.
    for transform in (Winsorised(0.0, 1.0, -1.0, 1.0), YeoJohnson(0.0, 1.0, 0.25), YeoJohnson(0.0, 1.0, 2.0)):
        grid = np.concatenate([-np.geomspace(1e6, 1e-3, 40_000), np.geomspace(1e-3, 1e6, 40_000)])
        images = np.array([transform.forward(value) for value in grid])
        slopes = np.array([transform.slope(value) for value in grid])
        assert np.trapezoid(stats.norm.pdf(images, 0.2, 0.8) * slopes, grid) == pytest.approx(1.0, abs=2e-3)


def test_the_density_of_a_process_is_that_of_its_covariance():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(12, 1))
    gram = np.exp(-0.5 * (points - points.T) ** 2)
    values = rng.normal(size=12)
    found = log_density(YeoJohnson(power=1.0), values, [np.linalg.eigh(gram)])
    ones = np.ones(12)
    best = -math.inf
    for ratio in np.geomspace(1e-3, 1e3, 25):
        inverse = np.linalg.inv(gram + ratio * np.eye(12))
        mean = ones @ inverse @ values / (ones @ inverse @ ones)
        scale = (values - mean) @ inverse @ (values - mean) / 12
        covariance = scale * (gram + ratio * np.eye(12))
        best = max(best, stats.multivariate_normal(np.full(12, mean), covariance).logpdf(values))
    assert found == pytest.approx(best, rel=1e-8)


def test_ranks_have_no_density_because_it_would_have_no_bound():
    values = np.random.default_rng(2).normal(size=50)

    def in_sample(values):
        # Slopes to the left of each value but the first: that of the lines between the values.
        scores = NormalScores(values)
        ordered = np.sort(values)
        images = np.array([scores.forward(value) for value in ordered])
        return stats.norm.logpdf(images).sum() + np.log(np.diff(images) / np.diff(ordered)).sum()

    plain = stats.norm.logpdf(values, values.mean(), values.std()).sum()
    found = []
    for gap in (1e-3, 1e-6, 1e-9):
        values[0] = values[1] + gap
        found.append(in_sample(values) - plain)
    np.testing.assert_allclose(np.diff(found), math.log(1e3), rtol=0.01)  # two close values suffice for any density
    with pytest.raises(InputError, match="no density"):
        log_slopes(NormalScores(values), values)
    assert not any(isinstance(one, NormalScores) for one, _ in LearnedTransform("auto").candidates(values))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_names_and_configs(name):
    transform = resolve_transform(name)
    assert transform.name == name
    outcome = Outcome("y", "minimize", transform=transform)
    again = from_config(json.loads(json.dumps(outcome.config())))
    assert (again.transform.name, again.direction) == (name, "minimize")
    assert Outcome("y", transform=name).transform.name == name
    for made in EACH.values():
        again = from_config(json.loads(json.dumps(made.config())))
        assert again.forward(0.3) == made.forward(0.3)


def test_bad_transforms():
    with pytest.raises(InputError, match=r"unknown transform 'log': choose none, log10, .* or auto"):
        resolve_transform("log")
    for make in (lambda: YeoJohnson(power=3.0), lambda: YeoJohnson(scale=0.0), lambda: Winsorised(low=1.0, high=0.0)):
        with pytest.raises(InputError, match="expected"):
            make()
    with pytest.raises(InputError, match="unknown transform"):
        LearnedTransform("log10")
    with pytest.raises(InputError, match="learned with the model of the objective"):
        Outcome("s", role="constraint", bound=1.0, transform=LearnedTransform())


def test_equal_values_teach_nothing():
    for name in ("auto", "ranks", "winsorised", "yeo-johnson"):
        assert [one.name for one, _ in LearnedTransform(name).candidates(np.ones(5))] == ["none"]


SPACE = StringSpace("AB", 8)


def heavy(string):
    """A score whose left tail is long."""
    return -float(10.0 ** (string.count("B") / 2)) + 0.1 * string.count("AB")


def searched(transform, **options):
    optimizer = Optimizer(SPACE, surrogate="hamming", initial=12, batch_size=4, transform=transform, seed=3, **options)
    for _ in range(3):
        strings = optimizer.ask()
        optimizer.tell(strings, [heavy(string) for string in strings])
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yeo-johnson", "winsorised", "ranks", "auto"])
def test_predictions_come_in_the_units_of_the_values(name):
    optimizer = searched(name)
    strings = optimizer.ask()
    rows = optimizer.observations.rows[-4:]
    assert optimizer.transform.current.name in ((name,) if name != "auto" else ("yeo-johnson", "winsorised"))
    for row in rows:
        assert row.details["predicted_low"] < row.details["predicted"] < row.details["predicted_high"]
    told = {row.key: row.value for row in optimizer.observations.rows if row.status == "ok"}
    found = optimizer.predictions(list(told))
    assert stats.spearmanr(found.central, list(told.values()))[0] > 0.9
    assert (found.low < found.true_low).all()
    assert (found.true_high < found.high).all()
    mean, std = optimizer.predict(list(told))
    np.testing.assert_allclose(mean, found.central, rtol=1e-9)
    np.testing.assert_allclose(std, (found.true_high - found.true_low) / (2 * stats.norm.ppf(0.95)), rtol=1e-9)
    draws = optimizer.sample(strings, 400, np.random.default_rng(0))
    np.testing.assert_array_less(np.median(draws, axis=0), optimizer.predictions(strings).true_high)
    with pytest.raises(InputError, match="not jointly normal"):
        optimizer.posterior(strings)


def test_a_restored_search_goes_on_alike_and_searches_do_not_share_what_they_learn():
    outcome = Outcome("y", transform=LearnedTransform("auto"))
    options = {"surrogate": "hamming", "initial": 12, "batch_size": 4, "seed": 3}
    first, second = (Optimizer(SPACE, outcomes=[outcome], **options) for _ in range(2))
    assert first.transform is not second.transform
    for _ in range(2):
        strings = first.ask()
        first.tell(strings, [heavy(string) for string in strings])
    assert outcome.transform.current.name == second.transform.current.name == "none"
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.ask() == first.ask()
    assert second.transform.current == first.transform.current


def cubes(string):
    """A score of two tails, no two of which are equal: median and quartiles move with each."""
    return float((string.count("A") - 6) ** 3) + 0.01 * int(string.replace("A", "0").replace("B", "1"), 2)


@pytest.fixture(scope="module")
def many():
    """A search of 104 values, whose transform depends on whether they are taken as independent."""
    optimizer = Optimizer(StringSpace("AB", 10), surrogate="mixture", initial=104, seed=1)
    strings = optimizer.ask(104)
    optimizer.tell(strings, [cubes(string) for string in strings])
    draws = []
    with pytest.MonkeyPatch.context() as patch:
        draw = FullyBayesianGP._draw
        patch.setattr(FullyBayesianGP, "_draw", lambda gp, *args: (draws.append(len(args[1])), draw(gp, *args))[1])
        for _ in range(3):
            (string,) = optimizer.ask(1)
            optimizer.tell([string], [cubes(string)])
    return optimizer, draws


@pytest.mark.slow
def test_parameters_are_not_drawn_for_a_transform_that_is_not_kept(many):
    optimizer, draws = many
    # First for values taken as independent, then for the transform that the kernel chooses, and those stay.
    assert draws == [104, 104]
    assert optimizer.transform.current.name == "winsorised"


@pytest.mark.slow
def test_a_restored_search_keeps_its_draws(many, monkeypatch):
    optimizer, _ = many
    monkeypatch.delattr(FullyBayesianGP, "_draw")
    other = Optimizer(StringSpace("AB", 10), surrogate="mixture", initial=104, seed=1)
    other.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    assert other.ask(2) == optimizer.ask(2)
    assert other.transform.current == optimizer.transform.current


@pytest.mark.slow
def test_predictions_leave_the_choice_of_the_search_alone(many, monkeypatch):
    optimizer, _ = many
    monkeypatch.setattr(optimizer.strategy.then, "_transform", "another")
    optimizer.predictions(["ABABABABAB"])
    assert optimizer.strategy.then._transform == "another"


def test_noise_and_limits_are_seen_as_values_are():
    optimizer = searched("winsorised")
    optimizer.tell(["BBBBBBBB", "ABABABAB"], [-90.0, -7.0], standard_errors=[None, 0.5], censored=["<", None])
    measured = optimizer.state().data.measured()
    optimizer.predictions(["ABABABAB"])
    assert measured.censored is not None
    current = optimizer.transform.current
    again = optimizer.state().data.measured()
    assert again.noise_variance[-1] == pytest.approx(0.25 * current.slope(-7.0) ** 2)
    assert again.targets[-2] == current.forward(-90.0)
    assert optimizer.predictions(["BBBBBBBB"]).central[0] < -30.0


def test_values_that_have_no_logarithm_are_taken_when_they_come():
    optimizer = Optimizer(SPACE, surrogate="hamming", initial=12, transform="auto", seed=1)
    strings = optimizer.ask()
    optimizer.tell(strings, [10.0 ** string.count("A") for string in strings])
    optimizer.predictions(strings)
    assert optimizer.transform.current.name == "log10"
    optimizer.tell(optimizer.ask(1), [-1.0])
    optimizer.predictions(strings)
    assert optimizer.transform.current.name != "log10"


def test_a_search_learns_its_transform_unless_it_is_told_another():
    assert DEFAULT_TRANSFORM == "auto"
    assert Optimizer(SPACE).transform == LearnedTransform("auto")
    assert Optimizer(SPACE, transform=None).transform.name == "none"
    assert Optimizer(SPACE, outcomes=[Outcome("y")]).transform.name == "none"
    with pytest.raises(InputError, match="give direction and transform to the outcomes"):
        Optimizer(SPACE, outcomes=[Outcome("y")], transform="log10")


def test_few_values_show_no_tail():
    optimizer = Optimizer(SPACE, surrogate="hamming", initial=9, seed=3)
    strings = optimizer.ask(10)
    optimizer.tell(strings[:9], [heavy(string) for string in strings[:9]])
    optimizer.predictions(strings)
    assert optimizer.transform.current.name == "none"
    optimizer.tell(strings[9:], [heavy(strings[9])])
    optimizer.predictions(strings)
    assert optimizer.transform.current.name != "none"


def test_values_without_tails_are_predicted_as_without_a_transform():
    found = {}
    for transform in ("auto", None):
        optimizer = Optimizer(SPACE, surrogate="hamming", initial=14, transform=transform, seed=5)
        strings = optimizer.ask(14)
        optimizer.tell(strings, [string.count("A") + 0.5 * string.count("AB") for string in strings])
        asked = optimizer.ask(2)
        mean, covariance = optimizer.posterior(strings)
        found[transform] = asked, optimizer.observations.rows[-1].details, mean, covariance
    assert found["auto"][0] == found[None][0]
    assert found["auto"][1] == pytest.approx(found[None][1], rel=1e-9)
    for one, other in zip(found["auto"][2:], found[None][2:], strict=True):
        np.testing.assert_array_equal(one, other)
