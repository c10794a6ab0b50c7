"""BORE: labels by rank, batches without neighbours, and searches that learn."""

import itertools

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.data import Contexts
from seqopt.errors import ExhaustedError, InputError
from seqopt.models.classifiers import KernelLogistic, NgramTrees
from seqopt.scorers import Scoring
from seqopt.search import GeneticSearch, LatentSearch, PoolSearch
from seqopt.strategies import RandomStrategy, Strategy
from seqopt.strategies.density_ratio import BORE, LFBO, rank_labels
from seqopt.strategies.protocols import CheckedStrategy

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]


class Oracle:
    """A classifier that knows."""

    hyperparameters = {}  # noqa: RUF012

    def __init__(self, score):
        self.score = score
        self.seen = []

    def fit(self, strings, labels, *, rng):
        self.seen.append((list(strings), np.asarray(labels).tolist()))
        return self

    def logits(self, strings):
        return np.array([self.score(string) for string in strings], dtype=float)

    def unsupported(self, strings):
        return {}


@pytest.mark.parametrize("gamma", [1 / 3, 0.25, 0.1])
def test_labels_are_the_largest_ranks(gamma):
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    before = None
    for count in range(2, 200):
        labels = rank_labels(values[:count], gamma, rng)
        assert labels.sum() == int(np.ceil(round(gamma * count, 9)))
        assert values[:count][labels].min() > values[:count][~labels].max(initial=-np.inf)
        if before is not None:
            assert (labels[:-1] != before).sum() <= 1
        before = labels


def test_labels_of_ties_and_failures():
    rng = np.random.default_rng(0)
    assert rank_labels([1.0, 3.0, 2.0], 1e-12).tolist() == [False, True, False]  # the best one always is good
    tied = [rank_labels(np.ones(6), 1 / 3, rng).tolist() for _ in range(20)]
    assert {sum(labels) for labels in tied} == {2}
    assert len({tuple(labels) for labels in tied}) > 1
    failed = rank_labels([np.nan, np.nan, np.nan, 1.0], 0.5, rng)
    assert failed.tolist() == [False, False, False, True]
    values = np.array([0.3, 2.0, 1.0, 5.0])
    assert np.array_equal(rank_labels(values, 0.5), rank_labels(np.exp(values), 0.5))


def told(optimizer, batches, objective):
    for _ in range(batches):
        strings = optimizer.ask()
        optimizer.tell(strings, [objective(string) for string in strings])
    return optimizer


@pytest.mark.parametrize("space", ["pool", "generated"])
def test_the_classifier_is_obeyed(space):
    oracle = Oracle(lambda string: int(string.replace("A", "0").replace("B", "1"), 2))
    where = CandidateSet(POOL) if space == "pool" else StringSpace("AB", 6)
    optimizer = Optimizer(where, strategy=BORE(oracle), initial=4, seed=1)
    assert isinstance(optimizer.strategy.then, Strategy)
    assert isinstance(optimizer.strategy.then, CheckedStrategy)
    told(optimizer, 1, lambda string: string.count("A"))
    assert not {"BBBBBB", "BBBBBA", "BBBBAB"} & optimizer.observations.seen
    assert optimizer.ask(3) == ["BBBBBB", "BBBBBA", "BBBBAB"]
    # Each element chosen counts as labelled false for the next.
    strings, labels = oracle.seen[-1]
    assert strings[-2:] == ["BBBBBB", "BBBBBA"]
    assert labels[-2:] == [False, False]
    # Pending ones, too.
    oracle.seen.clear()
    optimizer.ask()
    strings, labels = oracle.seen[0]
    assert strings[-3:] == ["BBBBBB", "BBBBBA", "BBBBAB"]
    assert labels[-3:] == [False] * 3


def test_a_constant_classifier_leaves_the_choice_to_chance():
    chosen = []
    for seed in range(12):
        optimizer = Optimizer(CandidateSet(POOL), strategy=BORE(Oracle(lambda string: 0.0)), initial=4, seed=seed)
        told(optimizer, 1, lambda string: string.count("A"))
        chosen += optimizer.ask()
    assert len(set(chosen)) > 6


@pytest.mark.parametrize("classifier", [KernelLogistic, NgramTrees])
def test_nothing_is_proposed_twice_and_a_pool_is_used_up(classifier):
    pool = POOL[:20]
    optimizer = Optimizer(pool, strategy=BORE(classifier()), initial=4, batch_size=4, seed=2)
    told(optimizer, 5, lambda string: float("nan") if string.startswith("AB") else string.count("B"))
    assert sorted(row.string for row in optimizer.observations.rows) == sorted(pool)
    with pytest.raises(ExhaustedError):
        optimizer.ask()


@pytest.mark.slow
@pytest.mark.parametrize("classifier", [KernelLogistic(scales=[16.0]), NgramTrees(trees=20)], ids=["kernel", "trees"])
def test_it_finds_a_pattern_that_random_search_does_not(classifier):
    def objective(string):
        return sum(string[place : place + 3] == "101" for place in range(13))

    def best(strategy, seed):
        optimizer = Optimizer(StringSpace("01", 15), strategy=strategy, initial=10, batch_size=3, seed=seed)
        return told(optimizer, 8, objective).best.value

    search = GeneticSearch(population=30, sample=60, evolutions=10, restarts=0)
    found = [best(BORE(classifier, search=search), seed) for seed in range(3)]
    drawn = [best(RandomStrategy(), seed) for seed in range(3)]
    assert np.mean(found) >= np.mean(drawn) + 1  # of at most 7


@pytest.mark.parametrize("classifier", [KernelLogistic, NgramTrees])
@pytest.mark.parametrize("space", [CandidateSet(POOL), StringSpace("AB", 6)], ids=["pool", "generated"])
def test_a_restored_search_continues_as_the_saved_one(classifier, space):
    def made():
        return Optimizer(space, strategy=BORE(classifier()), initial=4, batch_size=2, seed=5)

    def objective(string):
        return string.count("AB") - string.count("BB")

    whole = told(made(), 4, objective)
    part = told(made(), 2, objective)
    restored = made()
    restored.load_state_dict(part.state_dict())
    assert restored.hyperparameters == part.hyperparameters
    told(restored, 2, objective)
    assert [row.string for row in restored.observations.rows] == [row.string for row in whole.observations.rows]
    assert restored.recommend().string == whole.recommend().string


def test_monotone_transforms_change_nothing():
    def strings(transform):
        optimizer = Optimizer(CandidateSet(POOL), strategy=BORE(), initial=5, batch_size=2, seed=3)
        told(optimizer, 4, lambda string: transform(string.count("AB") + 0.1 * string.count("B")))
        return [row.string for row in optimizer.observations.rows]

    assert strings(lambda value: value) == strings(lambda value: np.exp(3 * value) - 7)


@pytest.mark.parametrize("strategy", [BORE, LFBO])
def test_strings_are_random_while_values_are_equal(strategy):
    optimizer = Optimizer(StringSpace("ACGT", 12), strategy=strategy(), initial=10, batch_size=5, seed=0)
    strings = optimizer.ask()
    optimizer.tell(strings, [0.0 if "GG" in string else np.nan for string in strings[:-1]] + [0.0])
    optimizer.ask()
    assert {row.details.get("acquisition") for row in optimizer.observations.rows[-5:]} == {None}


def test_equal_values_and_failures_only_do_not_stop_it():
    for value in (1.0, float("nan")):
        optimizer = Optimizer(CandidateSet(POOL), strategy=BORE(), initial=4, batch_size=3, seed=0)
        told(optimizer, 3, lambda string, value=value: value)
        assert len(optimizer.observations.seen) == 10


def test_minimised_values_are_good_when_small():
    optimizer = Optimizer(CandidateSet(POOL), strategy=BORE(), initial=6, direction="minimize", seed=0)
    told(optimizer, 12, lambda string: string.count("A"))
    assert optimizer.best.value == 0
    assert optimizer.recommend().value <= 1


def test_parts_that_do_not_fit_are_refused_before_anything_is_evaluated():
    contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
    with pytest.raises(InputError, match="contexts are not comparable"):
        Optimizer(POOL, strategy=BORE(), contexts=contexts)
    with pytest.raises(InputError, match=r"PoolSearch.*StringSpace"):
        Optimizer(StringSpace("AB", 5), strategy=BORE(search=PoolSearch()))
    with pytest.raises(InputError, match="gamma is 1"):
        BORE(gamma=1.0)
    with pytest.raises(InputError, match="is not a classifier"):
        BORE("trees")
    with pytest.raises(InputError, match="unknown search"):
        BORE(search="best")
    with pytest.raises(InputError, match="standard errors"):
        Optimizer(POOL, strategy=BORE()).tell(["AAAAAA"], [1.0], standard_errors=[0.1])
    latent = LatentSearch.__new__(LatentSearch)
    with pytest.raises(InputError, match="LatentSearch needs a surrogate"):
        BORE(search=latent).start(CandidateSet(POOL))


class Bare:
    """A classifier of a user's own, with as little as may be."""

    refused: object = None

    def fit(self, strings, labels, *, rng):
        return self

    def logits(self, strings):
        return np.array([float(string.count("A")) for string in strings])

    def unsupported(self, strings):
        return self.refused


def test_a_classifier_of_the_users_own_needs_no_hyperparameters_and_says_what_it_cannot_take():
    with pytest.raises(InputError, match=r"Bare.unsupported returned None; expected a dict"):
        Optimizer(POOL, strategy=BORE(Bare()))
    classifier = Bare()
    classifier.refused = {}
    optimizer = Optimizer(POOL, strategy=BORE(classifier), initial=3, batch_size=2)
    optimizer.tell(POOL[20:23], [1.0, 2.0, 3.0])
    assert optimizer.ask(1) == ["AAAAAA"]
    assert optimizer.hyperparameters == {}


def test_its_scoring_is_one():
    strategy = BORE()
    optimizer = Optimizer(CandidateSet(POOL), strategy=strategy, initial=6)
    assert strategy.scoring(optimizer.state(), np.random.default_rng(0)) is None
    told(optimizer, 1, lambda string: string.count("B"))
    scoring = strategy.scoring(optimizer.state(), np.random.default_rng(0))
    assert isinstance(scoring, Scoring)
    logits = {key: scoring.predictor.logits([key])[0] for key in optimizer.observations.seen}
    assert scoring.incumbents(3) == sorted(logits, key=lambda key: -logits[key])[:3]
    keys = POOL[:30]
    scorer = scoring.sample_scorer(keys)
    indices, values = scorer.best(np.ones(30, dtype=bool), 5)
    np.testing.assert_allclose(values, np.sort(scoring.predictor.logits(keys))[::-1][:5])
    np.testing.assert_allclose(scoring.scorer(keys).scores(keys)[indices], values)
