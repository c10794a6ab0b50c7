"""Classifiers of tables of features: weights, features, training schedules, and what is missing."""

import itertools
import sys

import numpy as np
import pytest
import torch

from seqopt import CandidateSet, Optimizer
from seqopt.encoding import Encoder, MorganFingerprint
from seqopt.errors import InputError
from seqopt.models.classifiers import (
    BoostedTrees,
    Classifier,
    KernelLogistic,
    LightGBMTrees,
    LogisticRegression,
    NgramTrees,
    Perceptron,
    Predictor,
    RandomForest,
    WeightedClassifier,
    XGBoostTrees,
    perceptron,
)
from seqopt.models.classifiers.perceptron import epochs_of, weighted_loss
from seqopt.models.classifiers.protocols import labels_of_weights
from seqopt.models.classifiers.string_features import learned_columns
from seqopt.strategies import LFBO
from seqopt.utils.config import from_config

ALL = [KernelLogistic, NgramTrees, BoostedTrees, RandomForest, LogisticRegression, Perceptron]


def strings_and_labels(count=60, seed=0):
    rng = np.random.default_rng(seed)
    strings = ["".join(rng.choice(list("ABC"), size=8)) for _ in range(count)]
    return strings, np.array([string.count("A") >= 3 for string in strings])


@pytest.mark.parametrize("kind", ALL)
def test_labels_are_learned_and_a_seed_fixes_everything(kind):
    strings, labels = strings_and_labels()
    others, theirs = strings_and_labels(200, seed=1)
    predictor = kind().fit(strings, labels, rng=np.random.default_rng(0))
    assert isinstance(kind(), Classifier)
    assert isinstance(kind(), WeightedClassifier)
    assert isinstance(predictor, Predictor)
    logits = predictor.logits(others)
    assert np.isfinite(logits).all()
    assert np.mean(logits[theirs]) > np.mean(logits[~theirs]) + 0.2
    assert len(predictor.logits([])) == 0 or kind is KernelLogistic
    again = kind().fit(strings, labels, rng=np.random.default_rng(0)).logits(others)
    np.testing.assert_array_equal(logits, again)


@pytest.mark.parametrize("kind", ALL)
def test_weights_speak_for_a_label(kind):
    strings, labels = strings_and_labels()
    ones = np.ones(len(strings))
    weights = np.where(labels, 4.0, 0.0)
    rng = np.random.default_rng
    heavy = kind().fit_weighted(strings, weights, ones, rng=rng(0)).logits(strings)
    light = kind().fit_weighted(strings, weights / 40, ones, rng=rng(0)).logits(strings)
    assert heavy.mean() > light.mean() + 0.5
    plain = kind().fit(strings, labels, rng=rng(0)).logits(strings)
    same = kind().fit_weighted(strings, labels.astype(float), (~labels).astype(float), rng=rng(0)).logits(strings)
    np.testing.assert_allclose(plain, same, rtol=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_weights_that_are_none_are_refused(kind):
    ones = np.ones(2)
    for positive, message in (
        ([1.0], "weights of shape"),
        ([-1.0, 1.0], "finite numbers from 0"),
        ([0.0, 0.0], "both"),
    ):
        with pytest.raises(InputError, match=message):
            kind().fit_weighted(["AB", "BA"], np.array(positive), ones, rng=np.random.default_rng(0))


def test_the_published_training_schedule():
    assert [epochs_of(100, 64, n) for n in (64, 65, 512)] == [100, 50, 12]
    assert epochs_of(100, 64, 6401) == 1
    assert epochs_of(800, 64, 512) == 100


def test_the_loss_of_a_perceptron_has_the_stated_derivatives():
    rng = np.random.default_rng(0)
    utility, logits = np.maximum(rng.normal(size=12), 0.0), np.append(3 * rng.normal(size=10), [-40.0, 40.0])
    rows, labels, weights = labels_of_weights(utility, np.ones(12))
    weights = weights * (utility.sum() + 12) / len(rows)  # they come with a mean of 1
    assert len(rows) == 12 + (utility > 0).sum()  # each is a negative, and those with a weight are positives as well
    signs = torch.from_numpy(np.where(labels, 1.0, -1.0))

    def loss(values):
        return weighted_loss(values[rows], signs, torch.from_numpy(weights)) * len(rows)

    f = torch.tensor(logits, requires_grad=True)
    loss(f).backward()
    sigma = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(f.grad.numpy(), -utility * (1 - sigma) + sigma, atol=1e-12)
    for place in range(12):
        step = torch.zeros(12, dtype=torch.float64)
        step[place] = 1e-5
        with torch.no_grad():
            difference = float(loss(f + step) - loss(f - step)) / 2e-5
        assert difference == pytest.approx(float(f.grad[place]), abs=1e-6)


def test_extreme_logits_have_a_finite_loss_and_stay_apart():
    logits = torch.tensor([-1000.0, -999.0, 999.0, 1000.0], requires_grad=True)
    for sign in (1.0, -1.0):
        found = [weighted_loss(logits[i : i + 1], torch.tensor([sign]), torch.ones(1)) for i in range(4)]
        assert all(torch.isfinite(one) for one in found)
    loss = weighted_loss(logits, torch.tensor([1.0, 1.0, -1.0, -1.0]), torch.ones(4))
    assert loss.item() == pytest.approx(999.5)
    loss.backward()
    np.testing.assert_allclose(logits.grad.numpy(), [-0.25, -0.25, 0.25, 0.25])


def test_a_perceptron_takes_its_weights_as_written(monkeypatch):
    seen = []

    def spied(logits, signs, weights):
        seen.append((signs.numpy().copy(), weights.numpy().copy()))
        return weighted_loss(logits, signs, weights)

    monkeypatch.setattr(perceptron, "weighted_loss", spied)
    utility = np.array([0.0, 3.0, 0.5])
    Perceptron(steps=1).fit_weighted(["AB", "BA", "BB"], utility, np.ones(3), rng=np.random.default_rng(0))
    (signs, weights), mean = seen[0], (3.5 + 3.0) / 5  # of five rows: three negatives and two positives
    assert sorted(weights[signs < 0] * mean) == pytest.approx([1.0, 1.0, 1.0])
    assert sorted(weights[signs > 0] * mean) == pytest.approx([0.5, 3.0])


@pytest.mark.parametrize(("options", "message"), [({"rate": 0.0}, "rate is 0"), ({"activation": "tanh"}, "'relu' or")])
def test_training_that_is_none_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        Perceptron(**options)


def test_a_perceptron_learns_what_is_no_sum_over_places():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("AB"), 2)) for _ in range(80)]
    labels = np.array([string in ("AB", "BA") for string in strings])
    logits = Perceptron(steps=1500).fit(strings, labels, rng=rng).logits(["AA", "AB", "BA", "BB"])
    assert min(logits[1], logits[2]) > max(logits[0], logits[3]) + 1


def test_features_of_strings():
    tokenizer = Encoder("characters").tokenizer
    counts = learned_columns("ngrams", tokenizer, 2, ["ABA"])
    assert sorted(counts(["ABAB"])[0].tolist()) == [1, 2, 2, 2]  # BA, A, B, AB
    places = learned_columns("one-hot", tokenizer, 1, ["AB", "BB"])
    assert places(["AB", "BB", "CC", "A"]).sum(axis=1).tolist() == [2, 2, 0, 1]
    smiles, labels = ["CCO", "CCCO", "c1ccccc1", "c1ccncc1"], np.array([True, True, False, False])
    classifier = RandomForest(MorganFingerprint(size=64), trees=20)
    logits = classifier.fit(smiles, labels, rng=np.random.default_rng(0)).logits(["CCCCO", "Cc1ccccc1"])
    assert logits[0] > logits[1]
    assert list(classifier.unsupported(["CCO", "((("])) == [1]
    with pytest.raises(InputError, match="features are 'letters'"):
        RandomForest("letters")


@pytest.mark.parametrize(("kind", "package"), [(XGBoostTrees, "xgboost"), (LightGBMTrees, "lightgbm")])
def test_a_package_that_is_missing_is_named(kind, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"needs the package {package}.*pip install 'seqopt\[{package}\]'"):
        kind()


@pytest.mark.parametrize(("kind", "package"), [(XGBoostTrees, "xgboost"), (LightGBMTrees, "lightgbm")])
def test_extras_learn(kind, package):
    pytest.importorskip(package, reason=f"the extra {package} is not installed")
    strings, labels = strings_and_labels()
    others, theirs = strings_and_labels(200, seed=1)
    rng = np.random.default_rng
    logits = kind().fit(strings, labels, rng=rng(0)).logits(others)
    assert np.isfinite(logits).all()
    assert logits[theirs].mean() > logits[~theirs].mean() + 0.5
    np.testing.assert_array_equal(kind().fit(strings, labels, rng=rng(0)).logits(others), logits)
    one = kind(trees=1).fit(strings, labels, rng=rng(0)).logits(others)
    assert np.ptp(one) < np.ptp(logits)  # the number of trees is what is passed on
    ones = np.ones(len(strings))
    heavy = kind().fit_weighted(strings, 4.0 * labels, ones, rng=rng(0)).logits(strings)
    light = kind().fit_weighted(strings, 0.1 * labels, ones, rng=rng(0)).logits(strings)
    assert heavy.mean() > light.mean() + 0.5
    pool = ["".join(symbols) for symbols in itertools.product("ABC", repeat=4)]
    optimizer = Optimizer(CandidateSet(pool), strategy=LFBO(kind("one-hot", trees=20)), initial=12, seed=0)
    for _ in range(8):
        asked = optimizer.ask()
        optimizer.tell(asked, [sum(a == b for a, b in zip(string, "ABCA", strict=True)) for string in asked])
    assert optimizer.best.value >= 3
    assert from_config(optimizer.strategy.then.config()).config() == optimizer.strategy.then.config()
