"""Whole searches by BORE and LFBO: a hidden string, a function with interactions, and spaces that are used up."""

import itertools

import numpy as np
import pytest

from seqopt import Optimizer, StringSpace
from seqopt.errors import ExhaustedError
from seqopt.models.classifiers import LogisticRegression, NgramTrees, Perceptron, RandomForest
from seqopt.search import GeneticSearch, RandomSearch
from seqopt.spaces import LocalSpace
from seqopt.strategies import BORE, LFBO

LETTERS, LENGTH = "ABCDE", 6
SPACE = StringSpace(LETTERS, LENGTH)
ALL = ["".join(symbols) for symbols in itertools.product(LETTERS, repeat=LENGTH)]
STRATEGIES = {"bore": BORE, "lfbo": LFBO}


class Shuffled:
    """A classifier that is told labels of other strings: whoever finds something by it has seen the answer."""

    hyperparameters = {}  # noqa: RUF012

    def __init__(self, classifier):
        self.classifier = classifier

    def bind(self, space):
        self.classifier.bind(space)

    def unsupported(self, strings):
        return {}

    def fit(self, strings, labels, *, rng):
        return self.classifier.fit(strings, rng.permutation(labels), rng=rng)

    def fit_weighted(self, strings, positive, negative, *, rng):
        return self.classifier.fit_weighted(strings, rng.permutation(positive), negative, rng=rng)


class Top:
    """A classifier that knows which strings it wants."""

    hyperparameters = {}  # noqa: RUF012

    def unsupported(self, strings):
        return {}

    def fit(self, strings, labels, *, rng):
        return self

    def logits(self, strings):
        return np.array([string.count("E") for string in strings], dtype=float)


def hidden(seed):
    """A target, and how many of its symbols a string has at their places."""
    target = "".join(np.random.default_rng([seed, 7]).choice(list(LETTERS), LENGTH))
    return target, lambda string: float(sum(map(str.__eq__, string, target)))


def epistatic(seed):
    """Effects of symbols at places and of pairs of them, and the rank of each string, from 1."""
    rng = np.random.default_rng([seed, 11])
    single = rng.normal(size=(LENGTH, 5))
    pairs = rng.normal(size=(LENGTH, LENGTH, 5, 5)) * 0.5
    numbers = np.array([[LETTERS.index(symbol) for symbol in string] for string in ALL])
    values = single[np.arange(LENGTH), numbers].sum(1)
    for i, j in itertools.combinations(range(LENGTH), 2):
        values += pairs[i, j, numbers[:, i], numbers[:, j]]
    ranks = 1 + np.argsort(np.argsort(-values))
    return dict(zip(ALL, values.tolist(), strict=True)), dict(zip(ALL, ranks.tolist(), strict=True))


def searched(strategy, objective, budget, seed, *, until=np.inf):
    """What is evaluated, in order, until the objective reaches a value."""
    optimizer = Optimizer(SPACE, strategy=strategy, initial=10, seed=seed)
    while len(optimizer.observations) < budget:
        strings = optimizer.ask()
        values = [objective(string) for string in strings]
        optimizer.tell(strings, values)
        if max(values) >= until:
            break
    return [row.string for row in optimizer.observations.rows]


def hit(kind, classifier, seed, budget=200):
    """Evaluations until the hidden string is found; infinite if it is not."""
    target, objective = hidden(seed)
    strategy = STRATEGIES[kind](classifier, search=RandomSearch(500))
    found = searched(strategy, objective, budget, seed, until=LENGTH)
    return len(found) if target in found else np.inf


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_hidden_string_is_found_and_only_by_its_values(kind):
    # Matches add up over places, so that logistic regression on symbols at places can tell them; n-grams cannot.
    assert hit(kind, LogisticRegression("one-hot"), 1) <= 200
    assert hit(kind, Shuffled(LogisticRegression("one-hot")), 1, budget=60) == np.inf


def test_a_perceptron_ranks_the_hidden_string_near_the_top():
    target, objective = hidden(3)
    rng = np.random.default_rng(0)
    strings, others = SPACE.sample(80, rng), [*SPACE.sample(2000, rng), target]
    values = np.array([objective(string) for string in strings])
    labels = values >= np.sort(values)[-27]
    learned = Perceptron().fit(strings, labels, rng=rng).logits(others)
    assert (learned > learned[-1]).mean() < 0.02
    blind = [Perceptron().fit(strings, rng.permutation(labels), rng=rng).logits(others) for _ in range(3)]
    assert np.mean([(one > one[-1]).mean() for one in blind]) > 0.1


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_perceptron_finds_hidden_strings(kind):
    found = [hit(kind, Perceptron(), seed) for seed in range(20)]
    assert np.isfinite(found).sum() >= 18
    assert np.median(found) <= 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_shuffled_labels_leave_a_perceptron_to_chance():
    # By chance 200 of 15,625 strings hold the target once in 78 searches.
    assert np.isfinite([hit("bore", Shuffled(Perceptron()), seed) for seed in range(5)]).sum() <= 1


def best_rank(classifier, seed, budget=200):
    values, ranks = epistatic(seed)
    found = searched(BORE(classifier, search=RandomSearch(500)), values.__getitem__, budget, seed)
    assert len(set(found)) == budget  # nothing is proposed twice
    return min(ranks[string] for string in found)


def test_interactions_are_learned():
    # The best of 50 random strings has rank 306 in the mean.
    assert best_rank(RandomForest("one-hot", trees=8), 0, budget=50) <= 60


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("classifier", [Perceptron(), RandomForest("one-hot")], ids=["perceptron", "forest"])
def test_interactions_are_learned_to_the_top(classifier):
    ranks = [best_rank(classifier, seed) for seed in range(4)]
    assert np.median(ranks) <= 4  # 54 in the mean of random strings


def test_two_hundred_proposals_are_two_hundred_strings():
    # It wants the same ones in each step, and would have them again.
    found = searched(BORE(Top(), search=RandomSearch(2000)), lambda string: float(string.count("A")), 200, 4)
    assert len(set(found)) == 200
    assert sum(string.count("E") >= 4 for string in found) > 150


@pytest.mark.parametrize(
    "search",
    [GeneticSearch(population=20, sample=30, evolutions=3, restarts=0), RandomSearch(50)],
    ids=["moves", "random"],
)
@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_small_space_is_enumerated_and_then_it_is_said_that_it_is(kind, search):
    space = LocalSpace(["ABCDE", "ABC", "AB"])
    optimizer = Optimizer(space, strategy=STRATEGIES[kind](NgramTrees(trees=5), search=search), initial=4, seed=3)
    while len(optimizer.observations) < 30:
        strings = optimizer.ask()
        optimizer.tell(strings, [string.count("A") for string in strings])
    assert {row.string for row in optimizer.observations.rows} == {
        "".join(symbols) for symbols in itertools.product("ABCDE", "ABC", "AB")
    }
    with pytest.raises(ExhaustedError):
        optimizer.ask()


def test_random_proposals_are_as_many_as_was_asked_for():
    def share(epsilon):
        """Of proposals that the classifier would have made: its best ones hold at least four E."""
        optimizer = Optimizer(
            SPACE, strategy=BORE(Top(), search=RandomSearch(1000), epsilon=epsilon), initial=5, batch_size=5, seed=0
        )
        asked = []
        for number in range(21):
            strings = optimizer.ask()
            asked += strings if number else []
            optimizer.tell(strings, [string.count("E") for string in strings])
        return np.mean([string.count("E") >= 3 for string in asked])

    assert share(0.0) == 1.0
    assert share(1.0) < 0.3  # chance: 9.9 %
    assert 0.4 < share(0.4) < 0.85
