"""BORE and LFBO against closed forms, and searches by every classifier."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.errors import ExhaustedError, InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.models.classifiers import (
    KernelLogistic,
    LogisticRegression,
    NgramTrees,
    Perceptron,
    RandomForest,
    laplace_mode,
)
from seqopt.scorers import DiverseScoring
from seqopt.search import RandomSearch
from seqopt.strategies import BORE, LFBO
from seqopt.strategies.density_ratio import effective_size, improvements
from seqopt.utils.config import from_config

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
CLASSIFIERS = {
    "kernel": KernelLogistic,
    "trees": lambda: NgramTrees(trees=10),
    "forest": lambda: RandomForest(trees=10),
    "logistic": LogisticRegression,
    "perceptron": lambda: Perceptron(steps=30),
}


class Saturated:
    """One parameter for each string, which is free: odds are those of the weights."""

    hyperparameters = {}  # noqa: RUF012

    def unsupported(self, strings):
        return {}

    def fit(self, strings, labels, *, rng):
        found = np.asarray(labels, dtype=float)
        return self.fit_weighted(strings, found, 1.0 - found, rng=rng)

    def fit_weighted(self, strings, positive, negative, *, rng):
        atoms = sorted(set(strings))
        rows = [atoms.index(string) for string in strings]
        plus, minus = np.bincount(rows, positive), np.bincount(rows, negative)
        size = (plus + minus).mean()
        mode = laplace_mode(np.eye(len(atoms)) * 1e7, plus / size, minus / size)
        return Table(dict(zip(atoms, mode.latent.tolist(), strict=True)))


class Table:
    """What was learned of each atom."""

    hyperparameters = {}  # noqa: RUF012

    def __init__(self, latent):
        self.latent = latent

    def logits(self, strings):
        return np.array([self.latent.get(string, -30.0) for string in strings])


# Test 1 of the methods: two atoms. Values are to be maximised here, so signs are turned.


def test_two_atoms_bore_picks_the_likely_one_and_lfbo_the_large_one():
    strings, values = ["A", "A", "B", "B"], np.array([1.0, 1.0, 10.0, -1.0])
    rng = np.random.default_rng(0)
    bore = Saturated().fit(strings, values >= 0, rng=rng).latent
    assert bore["A"] > 10  # probability 1
    assert abs(bore["B"]) < 1e-6  # 1/2
    raw = np.maximum(values, 0.0)
    lfbo = Saturated().fit_weighted(strings, raw, np.ones(4), rng=rng).latent
    np.testing.assert_allclose(np.exp([lfbo["A"], lfbo["B"]]), [1.0, 5.0], rtol=1e-3)
    normalised = Saturated().fit_weighted(strings, improvements(values, 0.0), np.ones(4), rng=rng).latent
    np.testing.assert_allclose(np.exp([normalised["A"], normalised["B"]]), [1 / 3, 5 / 3], rtol=1e-3)
    likely = Saturated().fit_weighted(strings, (values >= 0).astype(float), np.ones(4), rng=rng).latent
    np.testing.assert_allclose(np.exp([likely["A"], likely["B"]]), [1.0, 0.5], rtol=1e-3)
    assert max(bore, key=bore.get) == "A"
    assert max(lfbo, key=lfbo.get) == "B"


# Test 2: five categories of normal values.


def test_odds_are_the_expected_improvement_of_normal_values():
    means, stds = np.array([0, 0.5, 1, -0.5, 2]), np.array([0.3, 1, 2, 0.1, 3])
    rng = np.random.default_rng(0)
    place = rng.integers(5, size=400_000)
    values = -(means[place] + stds[place] * rng.standard_normal(len(place)))
    threshold = 0.2
    z = (-means + -threshold) / stds
    expected = stds * (z * norm.cdf(z) + norm.pdf(z))
    np.testing.assert_allclose(expected, [0.0453, 0.1429, 0.3373, 0.3000, 0.4050], atol=1e-4)
    strings = [str(number) for number in place]
    raw = np.maximum(values - threshold, 0.0)
    odds = Saturated().fit_weighted(strings, raw, np.ones(len(raw)), rng=rng).latent
    np.testing.assert_allclose(np.exp([odds[name] for name in "01234"]), expected, rtol=0.02)
    assert sorted(odds, key=odds.get, reverse=True) == ["4", "2", "3", "1", "0"]
    scaled = Saturated().fit_weighted(strings, improvements(values, threshold), np.ones(len(raw)), rng=rng).latent
    ratio = np.exp([scaled[name] - odds[name] for name in "01234"])
    np.testing.assert_allclose(ratio, 1 / raw.mean(), rtol=1e-3)
    np.testing.assert_allclose(1 / raw.mean(), 4.06, rtol=0.02)
    likely = Saturated().fit(strings, values >= threshold, rng=rng).latent
    probability = 1 / (1 + np.exp([-likely[name] for name in "01234"]))
    np.testing.assert_allclose(probability, norm.cdf(z), atol=0.006)
    assert sorted(likely, key=likely.get, reverse=True) == ["3", "2", "0", "1", "4"]


# Test 3: ratios of densities.


def ratios_of(x, good, rest, gamma, kind):
    """What was learned from densities at places x, with labels of a share gamma of good ones; by logits."""
    strings = [f"{place:.6f}" for place in x]
    plus, minus = gamma * good, (1 - gamma) * rest
    # Places are learned apart from each other, so each may speak as loudly as the others.
    total = plus + minus
    weights = (plus / total, minus / total) if kind == "bore" else (good / rest, np.ones_like(good))
    predictor = Saturated().fit_weighted(strings, *weights, rng=np.random.default_rng(0))
    return predictor.logits(strings)


def test_logits_are_the_relative_ratio():
    rng = np.random.default_rng(0)
    x = np.linspace(-3, 3, 61)
    for _ in range(5):
        gamma, (a, b), (s, t) = rng.uniform(0.1, 0.9), 0.5 * rng.normal(size=2), rng.uniform(0.7, 1.3, size=2)
        good, rest = norm.pdf(x, a, s), norm.pdf(x, b, t)
        probability = 1 / (1 + np.exp(-ratios_of(x, good, rest, gamma, "bore")))
        plain = (1 - gamma) / gamma * probability / (1 - probability)  # r_0 = l / g
        relative = probability / gamma  # r_gamma
        np.testing.assert_allclose(plain, good / rest, rtol=5e-3)
        np.testing.assert_allclose(relative, good / (gamma * good + (1 - gamma) * rest), rtol=5e-3)
        np.testing.assert_allclose(1 / (gamma + (1 - gamma) / plain), relative, rtol=1e-6)
        assert (relative <= 1 / gamma).all()
        # Odds of weighted labels are the ratio itself, which has the same order.
        odds = ratios_of(x, good, rest, gamma, "lfbo")
        np.testing.assert_allclose(np.exp(odds), good / rest, rtol=5e-3)
        order = np.argsort(good / rest, kind="stable")
        assert (np.diff(probability[order]) >= -1e-9).all()


def test_the_relative_ratio_of_two_normal_densities():
    x = np.array([0.25, -8.0, -20.0])
    good, rest = norm.pdf(x), norm.pdf(x, 0.5)
    relative = 4 / (1 + np.exp(-ratios_of(x, good, rest, 0.25, "bore")))
    np.testing.assert_allclose(relative[:2], [1.0, 3.815], atol=1e-3)
    assert 3.99 < relative[2] <= 4.0


# Test 4: what transforms of the values change.


def chosen(strategy, transform, seed=3):
    optimizer = Optimizer(CandidateSet(POOL), strategy=strategy, initial=6, batch_size=2, seed=seed, transform=None)
    for _ in range(4):
        strings = optimizer.ask()
        optimizer.tell(strings, [transform(string.count("AB") + 0.1 * string.count("B")) for string in strings])
    return [row.string for row in optimizer.observations.rows]


def test_units_and_offsets_change_nothing_and_other_transforms_do():
    assert chosen(LFBO(), lambda value: value) == chosen(LFBO(), lambda value: 8 * value - 16)
    values = np.array([0.1, 0.7, 1.5, 2.0, 0.3])
    weights = improvements(values, 0.3)
    np.testing.assert_allclose(improvements(8 * values - 16, 8 * 0.3 - 16), weights)
    assert np.abs(improvements(np.exp(values), np.exp(0.3)) - weights).max() > 0.1
    assert weights.mean() == pytest.approx(1.0)
    assert effective_size([2.0, 2.0, 0.0, 0.0]) == 2.0


@pytest.mark.parametrize("value", [1.0, float("nan")])
def test_equal_values_and_failures_only_leave_it_to_chance(value):
    optimizer = Optimizer(CandidateSet(POOL), strategy=LFBO(), initial=4, batch_size=3, seed=0)
    for _ in range(3):
        strings = optimizer.ask()
        optimizer.tell(strings, [value] * len(strings))
    assert len(optimizer.observations.seen) == 10
    assert optimizer.strategy.then.scoring(optimizer.state(), np.random.default_rng(0)) is None


def test_failed_strings_have_no_weight_and_good_ones_are_alike_where_all_others_failed():
    optimizer = Optimizer(CandidateSet(POOL), strategy=LFBO(KernelLogistic(scales=[16.0])), initial=4)
    optimizer.tell(POOL[:6], [float("nan")] * 4 + [1.0, 5.0])
    scoring = optimizer.strategy.then.scoring(optimizer.state(), np.random.default_rng(0))
    good = scoring.predictor.logits(POOL[4:6])
    assert good.min() > scoring.predictor.logits(POOL[:4]).max()


# Tests 8 and 9.


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [BORE, LFBO])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_nothing_is_proposed_twice_and_a_pool_is_used_up(strategy, name):
    pool = POOL[:30]
    optimizer = Optimizer(pool, strategy=strategy(CLASSIFIERS[name]()), initial=6, batch_size=8, seed=2)
    for _ in range(4):
        strings = optimizer.ask()
        optimizer.tell(strings, [float("nan") if s.startswith("AAB") else s.count("B") for s in strings])
    assert sorted(row.string for row in optimizer.observations.rows) == sorted(pool)
    with pytest.raises(ExhaustedError):
        optimizer.ask()


def test_logits_far_from_nought_keep_their_order():
    class Extreme(Saturated):
        def fit(self, strings, labels, *, rng):
            return Table({string: 1000.0 * (string > "B") + number for number, string in enumerate(POOL)})

    optimizer = Optimizer(CandidateSet(POOL), strategy=BORE(Extreme()), initial=4, seed=0)
    strings = optimizer.ask()
    optimizer.tell(strings, [string.count("B") for string in strings])
    left = [string for string in POOL if string not in optimizer.observations.seen]
    assert optimizer.ask(5) == left[::-1][:5]


# Batches by a determinantal point process.


def test_a_batch_is_the_greedy_one_of_the_determinants():
    pool = CandidateSet(POOL)
    strategy = BORE(KernelLogistic(scales=[4.0]), batch="dpp")
    optimizer = Optimizer(pool, strategy=strategy, initial=8, seed=1)
    strings = optimizer.ask()
    optimizer.tell(strings, [string.count("AB") for string in strings])
    scoring = strategy.scoring(optimizer.state(), np.random.default_rng(0))
    assert isinstance(scoring, DiverseScoring)
    batch = optimizer.ask(4)
    gram = SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5).gram(POOL).detach().double().numpy()
    quality = 1 / (1 + np.exp(-scoring.predictor.logits(POOL)))
    table = quality[:, None] * gram * quality
    members: list[int] = []
    for string in batch:
        free = [place for place, one in enumerate(POOL) if one not in strings and place not in members]
        determinants = [np.linalg.det(table[np.ix_([*members, place], [*members, place])]) for place in free]
        members.append(POOL.index(string))
        found = determinants[free.index(members[-1])]
        assert found == pytest.approx(max(determinants), rel=1e-4)


def test_one_column_at_a_time_gives_the_scores_of_the_definition():
    kernel = SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5)
    asked = []

    class Counted(Table):
        def logits(self, strings):
            asked.extend(strings)
            return np.array([string.count("A") - 2.0 for string in strings])

    # Some are members already, one of them twice as good as a candidate.
    scoring = DiverseScoring(
        Counted({}),
        kernel,
        CandidateSet(POOL).encoder,
        strings=POOL[:2],
        unsupported=lambda strings: {},
        pending=["ABABAB", POOL[5]],
        rng=np.random.default_rng(0),
    )
    pool = scoring.sample_scorer(POOL)
    members = ["ABABAB", POOL[5]]
    for _ in range(12):
        allowed = np.array([key not in members for key in POOL])
        (index,), (score,) = pool.best(allowed)
        every = scoring.scorer(POOL)
        every._members = list(members)
        expected = every.scores(POOL)
        assert score == pytest.approx(expected[allowed].max(), abs=1e-6)
        order, scores = pool.best(allowed, 30)
        np.testing.assert_allclose(scores, expected[order], atol=1e-5)
        members.append(pool.choose(int(index)).key)
    assert len(asked) == len(POOL) + 12 * len(POOL)  # once by the pool, and by each of the others
    assert not len(scoring.sample_scorer([]).best(np.empty(0, dtype=bool))[0])


def test_members_of_a_batch_are_less_alike_than_the_best_alone():
    def spread(batch):
        space, gram = StringSpace("AB", 10), SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5)
        optimizer = Optimizer(space, strategy=BORE(batch=batch, search=RandomSearch(200)), initial=12, seed=4)
        strings = optimizer.ask()
        optimizer.tell(strings, [string.count("AB") for string in strings])
        scoring = optimizer.strategy.then.scoring(optimizer.state(), np.random.default_rng(0))
        if batch == "refit":  # only the best, without what keeps them apart
            keys = space.sample(200, np.random.default_rng(1))
            chosen = sorted(set(keys), key=lambda key: -scoring.predictor.logits([key])[0])[:5]
        else:
            chosen = optimizer.ask(5)
        return np.linalg.slogdet(gram.gram(chosen).detach().double().numpy())[1]

    assert spread("dpp") > spread("refit")


def test_what_does_not_fit_is_refused_and_parts_are_written_down():
    class Plain:
        def fit(self, strings, labels, *, rng): ...

        def unsupported(self, strings):
            return {}

    assert BORE(Plain())
    with pytest.raises(InputError, match="Plain takes no weights"):
        LFBO(Plain())
    with pytest.raises(InputError, match="expected 'refit' or 'dpp'"):
        LFBO(batch="top")
    for strategy in (LFBO(RandomForest(trees=7), batch="dpp"), BORE(Perceptron(units=8)), LFBO(LogisticRegression())):
        assert from_config(strategy.config()).config() == strategy.config()
    assert "batch" not in BORE().config()
