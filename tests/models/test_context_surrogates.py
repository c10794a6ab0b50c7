"""Ready-made surrogates of several ways to measure, each against formulas written out in numpy.

How each would show that it is wrong: its moments differ from one dense joint normal distribution of targets, outcomes
and data, whose covariances are spelt out here level by level; a change of one level's units moves anything; the noise
of a level is not found again on simulated values; averages over parameters and estimates disagree where there are many
values; or a description makes another model.
"""

import json
import logging

import numpy as np
import pytest

from seqopt import CandidateSet
from seqopt.data import Contexts, Query
from seqopt.encoding import Encoder, FeatureEncoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, StringGP
from seqopt.models import contexts as made
from seqopt.models.contexts import (
    autoregressive,
    continuous,
    coregionalized,
    default_contexts,
    fold_mean,
    hierarchical,
    screened,
)
from seqopt.models.levels import Levels
from seqopt.utils.config import from_config

RNG = np.random.default_rng(5)
POOL = sorted({"".join(RNG.choice(list("ABC"), size=RNG.integers(3, 8))) for _ in range(40)})
SPACE = CandidateSet(POOL)
LEVELS = Contexts.of_levels("fidelity", {"a": 0.1, "b": 0.5, "c": 1.0}, target="c")
NUMBERS = Contexts.of_levels("size", {10.0: 0.1, 40.0: 0.5, 100.0: 1.0}, target=100.0)
FOLDS = Contexts.of_folds("fold", ["x", "y", "z"])
PLATES = Contexts.of_plates()
SMALL = SubsequenceKernel(2)


def queries(contexts, count, rng, *, texts=None):
    ways = list(contexts.possible) or [(("plate", f"P{n}"),) for n in (1, 2, 3)]
    return [Query(POOL[rng.integers(len(POOL))], ways[rng.integers(len(ways))]) for _ in range(count)]


def values_of(items, rng, shift=None):
    base = np.array([item.key.count("A") - 0.7 * item.key.count("C") for item in items], dtype=float)
    offsets = {context: place for place, context in enumerate(sorted({item.context for item in items}))}
    return base + 0.5 * np.array([offsets[item.context] for item in items]) + 0.2 * rng.standard_normal(len(items))


def gram(names, kernel):
    found = kernel.gram(names) if hasattr(kernel, "gram") else None
    if found is None:
        encoded = Encoder().encode(names)
        return np.asarray(kernel.cross(encoded))
    return found.detach().numpy()


def fitted(build, contexts, count=25, seed=0, **options):
    rng = np.random.default_rng(seed)
    items = queries(contexts, count, rng)
    gp = build(SPACE, contexts, **{"kernel": SMALL, **options})
    gp.fit(items, values_of(items, rng), rng=rng)
    return gp, items


def number(item, values, missing):
    value = None if isinstance(item, str) else dict(item.context).get(next(iter(dict(item.context)), None))
    return missing if value is None else values.index(value)


def mean_matrix(own):
    root = np.vstack([np.eye(len(own)), np.full((1, len(own)), 1 / len(own))])
    return root @ own @ root.T


def levels_covariance(gp, name):
    """B of the first level kernel, and of the offsets, as numpy computes them from the raw parameters."""
    parameters = {
        key.removeprefix("covar_module.base_kernel."): value.detach().numpy()
        for key, value in gp.model.named_parameters()
    }
    if name == "coregionalized":
        w, v = (
            parameters["kernels.0.kernels.1.kernel.raw_factors"],
            parameters["kernels.0.kernels.1.kernel.raw_variances"],
        )
        return w @ w.T + np.diag(v)
    if name == "fold_mean":
        w = parameters["kernels.0.kernels.1.kernel.kernel.raw_factors"]
        v = parameters["kernels.0.kernels.1.kernel.kernel.raw_variances"]
        return mean_matrix(w @ w.T + np.diag(v))
    a, v = parameters["kernels.0.kernels.1.kernel.raw_factors"], parameters["kernels.0.kernels.1.kernel.raw_variances"]
    # f_1 = d_1, f_2 = a_1 d_1 + d_2, f_3 = a_2 a_1 d_1 + a_2 d_2 + d_3
    first, second, third = v[0], a[0] ** 2 * v[0] + v[1], 0.0
    third = a[1] ** 2 * second + v[2]
    return np.array(
        [
            [first, a[0] * first, a[1] * a[0] * first],
            [a[0] * first, second, a[1] * second],
            [a[1] * a[0] * first, a[1] * second, third],
        ]
    )


def prior_of(gp, name, contexts):
    """cov(item, item') without the output scale, written out."""
    base = gp.model.covar_module.base_kernel
    if name == "hierarchical":
        strings = base.kernels[0].kernel
        s, o = float(base.raw_deviation.detach()), float(base.raw_offset.detach())

        def plates(items):
            names = [item if isinstance(item, str) else item.key for item in items]
            k = gram(names, strings)
            of = [None if isinstance(item, str) or not item.context else item.get("plate") for item in items]
            same = np.array([[p is not None and p == q for q in of] for p in of], dtype=float)
            return k + same * (s * k + o)

        return plates
    strings = base.kernels[0].kernels[0].kernel
    if name == "continuous":
        raw = base.kernels[0].kernels[1].kernel.raw_root.detach().numpy()
        root = np.array([[raw[0], 0.0], [raw[1], raw[2]]])
        sigma = root @ root.T + 1e-6 * np.eye(2)
        basis = base.kernels[0].kernels[1].kernel.basis

        def numbers(items):
            names = [item if isinstance(item, str) else item.key for item in items]
            x = np.array([100.0 if isinstance(item, str) or not item.context else item.get("size") for item in items])
            z = (x - 10.0) / 90.0
            phi = np.stack([np.ones_like(z) if basis == "linear" else z, (1 - z) ** 2], 1)
            # Offsets: the weight of (1 - z)^2 alone, with the variance 1, and the jitter of both functions.
            offsets = np.stack([np.ones_like(z), (1 - z) ** 2], 1)
            return gram(names, strings) * (phi @ sigma @ phi.T) + offsets @ np.diag([1e-6, 1.0 + 1e-6]) @ offsets.T

        return numbers
    between = levels_covariance(gp, name)
    values = [context[0][1] for context in contexts.possible]
    shift = mean_matrix(np.eye(len(values))) if name == "fold_mean" else np.eye(len(values))
    missing = len(values) if name == "fold_mean" else values.index(contexts.target[0][1])

    def of_levels(items):
        names = [item if isinstance(item, str) else item.key for item in items]
        at = [number(item, values, missing) for item in items]
        return gram(names, strings) * between[at][:, at] + shift[at][:, at]

    return of_levels


MODELS = {
    "coregionalized": (coregionalized, LEVELS, {}),
    "autoregressive": (autoregressive, LEVELS, {}),
    "continuous": (continuous, NUMBERS, {}),
    "continuous thesis": (continuous, NUMBERS, {"basis": "thesis"}),
    "fold_mean": (fold_mean, FOLDS, {}),
    "hierarchical": (hierarchical, PLATES, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_of_the_joint_distribution_written_out(name):
    build, contexts, options = MODELS[name]
    gp, data = fitted(build, contexts, **options)
    state = gp.fitted
    prior = prior_of(gp, name.split()[0], contexts)
    scale, constant = float(state.scale[0]), float(state.constant[0])
    new = queries(contexts, 7, np.random.default_rng(9))
    targets = [item.key for item in new]
    everything = [*data, *new, *targets]
    total = scale * prior(everything)
    noises = np.full(len(everything), float(state.noise_variance[0]))
    if gp.levels is not None:
        by_level = gp.model.likelihood.by_level.detach().numpy()
        noises = np.array([[*by_level, by_level.mean()][n] for n in gp.levels.numbers(everything)])
    n, m = len(data), len(new)
    gain = total[:, :n] @ np.linalg.inv(total[:n, :n] + np.diag(noises[:n]))
    mean = constant + gain @ (state.targets.numpy() - constant)
    left = total - gain @ total[:n]
    outcome, target = n + np.arange(m), n + m + np.arange(m)
    found = gp.conditioned().at(new).moments
    pairs = {
        "mean": mean[target],
        "variance": left[target, target],
        "outcome_mean": mean[outcome],
        "outcome_variance": left[outcome, outcome] + noises[outcome],
        "covariance": left[outcome, target],
    }
    for part, expected in pairs.items():
        np.testing.assert_allclose(getattr(found, part)[0].numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=part)
    # An outcome that is awaited: one more row of the joint distribution, with the noise of its own level.
    first = int(outcome[0])
    column = left[:, first] / np.sqrt(left[first, first] + noises[first])
    later = gp.conditioned([new[0]]).at(new).moments
    np.testing.assert_allclose(
        later.conditional_variance[0].numpy(), left[target, target] - column[target] ** 2, rtol=1e-4, atol=1e-7
    )
    grown = gp.conditioned().at(new).given(0).moments
    np.testing.assert_allclose(grown.conditional_variance, later.conditional_variance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(grown.remaining_variance, later.remaining_variance, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coregionalized", "autoregressive"])
def test_units_of_one_level_change_nothing(name):
    build, contexts, _ = MODELS[name]
    rng = np.random.default_rng(2)
    items = queries(contexts, 20, rng)
    values = values_of(items, rng)
    cheap = np.array([item.get("fidelity") == "a" for item in items])
    other = np.where(cheap, 1e4 + 250.0 * values, values)
    found = []
    for told in (values, other):
        gp = build(SPACE, contexts, kernel=SMALL)
        gp.fit(items, told, rng=np.random.default_rng(0))
        at = [*POOL[:5], *(Query(key, {"fidelity": "a"}) for key in POOL[:5])]
        moments = gp.conditioned().at(at[5:]).moments
        outcome = gp.untransform_outcomes(at[5:], moments.outcome_mean[0], moments.outcome_variance[0])
        found.append((gp.predict(POOL[:5]), outcome, gp.leave_one_out()))
    (target, cheaply, left), (target2, cheaply2, left2) = found
    np.testing.assert_allclose(target2, target, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cheaply2[0], 1e4 + 250.0 * cheaply[0], rtol=1e-5)
    np.testing.assert_allclose(cheaply2[1], 250.0 * cheaply[1], rtol=1e-3)
    np.testing.assert_allclose(left2.values, other, rtol=1e-9)
    np.testing.assert_allclose(left2.mean[~cheap], left.mean[~cheap], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(left2.std[cheap], 250.0 * left.std[cheap], rtol=1e-3)


def simulated(count, noises, rng):
    """Values of two levels that are the same function, with noise of their own."""
    items = [Query(POOL[n % len(POOL)], {"fidelity": "ab"[n % 2]}) for n in range(count)]
    values = np.array([float(item.key.count("A")) - float(item.key.count("C")) for item in items])
    return items, values + np.array([noises[item.get("fidelity")] for item in items]) * rng.standard_normal(count)


@pytest.mark.parametrize("averaged", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_noise_of_each_level_is_found_again(averaged):
    contexts = Contexts.of_levels("fidelity", {"a": 0.1, "b": 1.0}, target="b")
    rng = np.random.default_rng(3)
    items, values = simulated(160, {"a": 1.2, "b": 0.1}, rng)
    gp = coregionalized(SPACE, contexts, kernel=NgramKernel(1), averaged=averaged)
    gp.fit(items, values, rng=rng)
    residual = gp.conditioned().at([Query(POOL[0], {"fidelity": level}) for level in "ab"])
    noise = gp.fitted.noise_at([Query(POOL[0], {"fidelity": level}) for level in "ab"]).mean(0).numpy()
    stds = [
        unit * np.sqrt(one)
        for one, unit in zip(
            noise, gp.units_at([Query(POOL[0], {"fidelity": level}) for level in "ab"])[1], strict=True
        )
    ]
    assert 0.9 < stds[0] < 1.5
    assert 0.05 < stds[1] < 0.25
    own = residual.moments.outcome_variance[0] - residual.moments.outcome_variance[0].flip(0)
    assert float(own[0]) > 0.0  # the rough level's outcome is the less certain one


@pytest.mark.slow
def test_averages_and_estimates_agree_where_there_are_many_values():
    contexts = Contexts.of_levels("fidelity", {"a": 0.1, "b": 1.0}, target="b")
    rng = np.random.default_rng(4)
    items, values = simulated(200, {"a": 0.3, "b": 0.3}, rng)
    means = []
    for averaged in (False, True):
        gp = coregionalized(SPACE, contexts, kernel=NgramKernel(1), averaged=averaged)
        gp.fit(items, values, rng=np.random.default_rng(0))
        means.append(gp.predict(POOL))
    np.testing.assert_allclose(means[0][0], means[1][0], atol=0.15)
    np.testing.assert_allclose(means[0][1].mean(), means[1][1].mean(), rtol=0.4)


@pytest.mark.parametrize("name", ["coregionalized", "autoregressive"])
def test_what_has_not_been_measured_at_the_target_is_said_and_works(name, caplog):
    build, contexts, _ = MODELS[name]
    rng = np.random.default_rng(0)
    items = [Query(key, {"fidelity": "a"}) for key in POOL[:15]]
    gp = build(SPACE, contexts, kernel=SMALL)
    with caplog.at_level(logging.INFO):
        gp.fit(items, values_of(items, rng), rng=rng)
    assert "nothing has been measured at the target, fidelity=c" in caplog.text
    mean, std = gp.predict(POOL)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_a_constant_cheap_column_is_said_and_tells_nothing(caplog):
    rng = np.random.default_rng(0)
    cheap, dear = ([Query(key, {"fidelity": level}) for key in POOL[:12]] for level in "ac")
    values = values_of(dear, rng)
    gp = coregionalized(SPACE, LEVELS, kernel=SMALL)
    with caplog.at_level(logging.INFO):
        gp.fit([*cheap, *dear], [*np.full(12, 7.0), *values], rng=rng)
    assert "all 12 values at fidelity=a equal 7" in caplog.text
    mean = gp.predict(POOL[:12])[0]
    assert np.corrcoef(mean, values)[0, 1] > 0.8


def test_scales_of_levels_by_hand():
    levels = Levels("f", ("a", "b", "c"), "c")
    found = levels.scales(np.array([0, 0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 10.0, 30.0]))
    np.testing.assert_allclose(found.offsets, [2.0, 20.0, 2.0, 8.0])
    np.testing.assert_allclose(found.units, [1.0, np.sqrt(200), 1.0, (2 + np.sqrt(200)) / 3])
    folds = Levels("f", ("a", "b"), None, "offset")
    found = folds.scales(np.array([0, 0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 10.0, 14.0]))
    np.testing.assert_allclose(found.units, np.sqrt((2 * 1.0 + 1 * 8.0) / 3))
    np.testing.assert_allclose(found.offsets, [2.0, 12.0, 7.0])
    one = Levels("f", ("a", "b"), "b").scales(np.array([0, 0, 1]), np.array([1.0, 3.0, 50.0]))
    np.testing.assert_allclose(one.offsets[:2], [2.0, 50.0])
    np.testing.assert_allclose(one.units[:2], np.sqrt(2.0))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("averaged", [False, True])
def test_a_description_makes_the_same_model(name, averaged):
    build, contexts, options = MODELS[name]
    gp = build(SPACE, contexts, kernel=SMALL, averaged=averaged, **options)
    again = from_config(json.loads(json.dumps(gp.config())))
    assert again.config() == gp.config()
    items = [*queries(contexts, 4, np.random.default_rng(0)), "ABC"]
    kernels = [one.kernels[0] if averaged else one.kernel for one in (gp, again)]
    first, second = (kernel.cross(one.encoder.encode(items)) for kernel, one in zip(kernels, (gp, again), strict=True))
    np.testing.assert_allclose(second, first, rtol=1e-6)
    names = [dict(kernel.named_parameters()) for kernel in kernels]
    assert {key: value.requires_grad for key, value in names[0].items()} == {
        key: value.requires_grad for key, value in names[1].items()
    }


@pytest.mark.slow
def test_a_copy_for_every_part_learns_its_own_parameters():
    gp, data = fitted(autoregressive, LEVELS, tied=False)
    parts = [part.kernels[0].kernel for part in gp.model.covar_module.base_kernel.kernels[0].kernels]
    assert len({id(part.raw_gap_decay) for part in parts}) == 3
    assert len({float(part.match_decay.detach()) for part in parts}) > 1
    again = from_config(json.loads(json.dumps(autoregressive(SPACE, LEVELS, kernel=SMALL, tied=False).config())))
    again.fit(data, values_of(data, np.random.default_rng(1)), rng=np.random.default_rng(0))
    assert np.isfinite(again.predict(POOL)[0]).all()


def test_a_plain_string_is_what_plates_have_in_common():
    gp, data = fitted(hierarchical, PLATES, 30)
    kernel = gp.model.covar_module.base_kernel
    items = [Query("ABC", {"plate": "P1"}), Query("ABC", {"plate": "never seen"}), "ABC", "CAB"]
    found = kernel.cross(gp.encoder.encode(items))
    common = gram(["ABC", "CAB"], kernel.kernels[0].kernel)
    s, o = float(kernel.deviation.detach()), float(kernel.offset.detach())
    np.testing.assert_allclose(found[2, 2], common[0, 0])
    np.testing.assert_allclose(found[0, 2], common[0, 0])  # cov(f_s, g) = k_g
    np.testing.assert_allclose(found[0, 3], common[0, 1])
    np.testing.assert_allclose(found[0, 1], common[0, 0])  # two plates share g alone
    np.testing.assert_allclose(found[0, 0], (1 + s) * common[0, 0] + o)
    fresh = gp.conditioned().at([Query("ABC", {"plate": "never seen"})]).moments
    assert float(fresh.outcome_variance[0, 0]) > float(fresh.variance[0, 0])
    assert data


def test_offsets_of_plates_are_told_from_noise():
    rng = np.random.default_rng(8)
    shifts = {"P1": -3.0, "P2": 0.0, "P3": 3.0}
    items = [Query(POOL[rng.integers(len(POOL))], {"plate": plate}) for plate in shifts for _ in range(12)]
    values = [item.key.count("A") + shifts[item.get("plate")] + 0.1 * rng.standard_normal() for item in items]
    gp = hierarchical(SPACE, PLATES, kernel=NgramKernel(1))
    gp.fit(items, values, rng=rng)
    means = gp.conditioned().at([Query("ABC", {"plate": plate}) for plate in shifts]).moments.outcome_mean[0]
    unit = gp.units[1]
    np.testing.assert_allclose(unit * np.diff(means.numpy()), [3.0, 3.0], atol=0.6)


def test_what_is_known_beforehand_enters_as_a_line():
    rng = np.random.default_rng(1)
    known = {key: float(rng.normal()) for key in POOL}
    told = POOL[:15]
    gp = screened(SPACE, known, kernel=SMALL)
    gp.fit(told, [3.0 * known[key] + 0.05 * rng.standard_normal() for key in told], rng=rng)
    mean = gp.predict(POOL[15:])[0]
    np.testing.assert_allclose(mean, [3.0 * known[key] for key in POOL[15:]], atol=0.8)
    assert np.corrcoef(mean, [known[key] for key in POOL[15:]])[0, 1] > 0.98
    state, base = gp.fitted, gp.model.covar_module.base_kernel
    column = np.array([known[key] for key in POOL])
    column = (column - column.mean()) / column.std(ddof=1)
    slope = float(base.kernels[1].kernel.raw_root.detach()) ** 2 + 1e-6
    total = float(state.scale[0]) * (gram(POOL, base.kernels[0].kernel) + slope * np.outer(column, column))
    gain = total[:, :15] @ np.linalg.inv(total[:15, :15] + float(state.noise_variance[0]) * np.eye(15))
    constant = float(state.constant[0])
    expected = constant + gain @ (state.targets.numpy() - constant)
    np.testing.assert_allclose(gp.conditioned().at(POOL).moments.mean[0], expected, rtol=1e-5, atol=1e-7)
    again = from_config(json.loads(json.dumps(gp.config())))
    assert again.config() == gp.config()


def test_a_cheap_column_that_says_nothing_is_refused_and_a_thin_one_remarked(caplog):
    with pytest.raises(InputError, match="cheap values equal 1"):
        screened(SPACE, dict.fromkeys(POOL, 1.0))
    with pytest.raises(InputError, match="expected a finite number"):
        screened(SPACE, {POOL[0]: 1.0, POOL[1]: float("nan")})
    with pytest.raises(InputError, match="there are no cheap values"):
        screened(SPACE, {})
    with caplog.at_level(logging.WARNING):
        screened(SPACE, {POOL[0]: 1.0, POOL[1]: 2.0})
    assert f"{len(POOL) - 2} of {len(POOL)} candidates have no value" in caplog.text


def test_the_default_follows_the_contexts():
    kinds = {"coregionalized": LEVELS, "fold_mean": FOLDS, "hierarchical": PLATES}
    for name, contexts in kinds.items():
        found, expected = default_contexts(SPACE, contexts), getattr(made, name)(SPACE, contexts)
        assert found.config() == expected.config()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: coregionalized(SPACE, FOLDS), "needs a target that can be measured.*take fold_mean"),
        (lambda: coregionalized(SPACE, PLATES), "levels have to be known beforehand"),
        (lambda: fold_mean(SPACE, LEVELS), "Contexts.of_folds"),
        (lambda: hierarchical(SPACE, LEVELS), "Contexts.of_plates"),
        (lambda: continuous(SPACE, LEVELS), "at least two numbers"),
        (lambda: continuous(SPACE, NUMBERS, basis="slope"), "none of a fidelity"),
        (lambda: coregionalized(SPACE, LEVELS, kernel="no such"), "unknown kernel 'no such'"),
        (lambda: coregionalized(SPACE, LEVELS, encoder=Encoder()), "give both, or neither"),
        (lambda: coregionalized(SPACE, LEVELS, kernel="mixture"), "or several"),
        (lambda: StringGP(SMALL, levels=Levels("f", ("a",))), "give a seqopt.encoding.fields.FieldEncoder"),
        (lambda: Levels("f", ("a",), "b"), "the target of f is 'b'"),
        (lambda: Levels("f", ()), "at least one"),
        (lambda: Levels("f", ("a",)).numbers([Query("A", {"f": "z"})]), "none of the levels"),
    ],
)
def test_what_does_not_fit_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_molecules_are_compared_as_ever():
    pool = CandidateSet(["CCO", "CCN", "CCC", "c1ccccc1", "CCCl", "CCBr"], kind="molecule")
    contexts = Contexts.of_levels("fidelity", {"a": 0.1, "b": 1.0}, target="b")
    for kernel in (None, "minmax"):
        gp = coregionalized(pool, contexts, kernel=kernel)
        gp.bind(pool)
        items = [Query(key, {"fidelity": level}) for level in "ab" for key in pool.keys]
        gp.fit(items, np.arange(12.0) % 6, rng=np.random.default_rng(0))
        mean, std = gp.predict(pool.keys)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
        assert gp.pool_posterior(pool).moments.mean.shape == (1, 6)


@pytest.mark.slow
def test_averaged_moments_are_mixtures_with_noise_of_levels():
    contexts = Contexts.of_levels("fidelity", {"a": 0.1, "b": 1.0}, target="b")
    rng = np.random.default_rng(3)
    items, values = simulated(20, {"a": 1.0, "b": 0.1}, rng)
    gp = coregionalized(SPACE, contexts, kernel=NgramKernel(1), averaged=True)
    assert isinstance(gp, FullyBayesianGP)
    gp.fit(items, values, rng=rng)
    at = [Query(POOL[0], {"fidelity": level}) for level in "ab"]
    moments, noise = gp.conditioned().at(at).moments, gp.fitted.noise_at(at)
    assert noise.shape == (gp.draws, 2)
    ratios = np.array(gp._parameters["noise_ratio[0]"])
    np.testing.assert_allclose(noise[:, 0] / noise[:, 1], ratios)
    same = gp.conditioned().at([at[1]]).moments
    np.testing.assert_allclose(same.outcome_variance[:, 0] - same.variance[:, 0], noise[:, 1], rtol=1e-6)
    assert moments.outcome_variance.shape == (gp.draws, 2)
    restored = coregionalized(SPACE, contexts, kernel=NgramKernel(1), averaged=True)
    restored.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    restored._full_fit_size = len(items)
    assert isinstance(restored.encoder.fields["strings"], Encoder | FeatureEncoder)
