"""Classifiers that learn what makes strings fail: hazards of n-grams, and a choice by cross-validation."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from seqopt.encoding import MorganFingerprint
from seqopt.errors import InputError
from seqopt.models.classifiers import CrossValidated, KernelLogistic, NgramHazards, RandomForest
from seqopt.models.classifiers.cross_validated import calibrated
from seqopt.models.classifiers.ngram_hazards import Ngrams, hazards_of
from seqopt.objectives import Ehrlich
from seqopt.spaces import CandidateSet, StringSpace


def task_strings(n, seed=0):
    """Mutants of feasible strings, and whether they are."""
    task, rng = Ehrlich(seed=1), np.random.default_rng(seed)
    space = StringSpace(task.alphabet, 15)
    strings = space.mutate(space.mutate(task.sample(n, rng), rng), rng)
    return task, strings, task.feasible(strings)


def test_banned_pairs_are_found():
    _, strings, labels = task_strings(300)
    predictor = NgramHazards().fit(strings, labels, rng=np.random.default_rng(0))
    _, others, theirs = task_strings(400, seed=5)
    logits = predictor.logits(others)
    assert theirs[np.argsort(-logits)[:100]].mean() > 0.95
    assert theirs.mean() < 0.7
    plain = KernelLogistic().fit(strings, labels, rng=np.random.default_rng(0)).logits(others)
    assert theirs[np.argsort(-plain)[:100]].mean() < 0.85


def test_hazards_maximise_the_penalised_likelihood():
    _, strings, labels = task_strings(60)
    grams = Ngrams(NgramHazards().tokenizer, 2)
    table, others = grams.learned(strings)
    assert (others == 0).all()
    dense = np.column_stack([table.toarray(), np.ones(len(strings))])

    def loss(hazards):
        total = dense @ hazards
        return total[labels].sum() - np.log(-np.expm1(-total[~labels])).sum() + 0.3 * hazards.sum()

    found = hazards_of(table, labels, 0.3)
    assert (found >= 0).all()
    slope = approx_fprime(found + 1e-7, loss, 1e-7)
    # At the mode, hazards are 0 where they would have to fall further, and slopes 0 elsewhere.
    assert np.abs(slope[found > 1e-3]).max() < 0.05
    assert slope[found <= 1e-3].min() > -0.05
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert loss(np.abs(found + 0.05 * rng.standard_normal(len(found)))) > loss(np.maximum(found, 1e-12))


def test_a_success_acquits_and_what_was_never_seen_is_doubted():
    strings, labels = ["AB", "BA", "AC", "CC", "CCA"], np.array([True, True, True, False, False])
    predictor = NgramHazards().fit(strings, labels, rng=np.random.default_rng(0))
    known, bad, new = predictor.logits(["ABA", "ACC", "ADA"])
    assert known > new > bad
    assert predictor.hyperparameters["ngrams"] == 8  # A, B, C, AB, BA, AC, CC, CA


def test_few_of_a_kind_and_extreme_strings_do_no_harm():
    labels = np.array([True] + [False] * 20)
    strings = ["AB" * 5] + ["A" * (number + 1) for number in range(20)]
    logits = CrossValidated().fit(strings, labels, rng=np.random.default_rng(0)).logits([*strings, "Z" * 500, ""])
    assert np.isfinite(logits).all()
    assert logits[0] > logits[10]


def test_the_candidate_of_smallest_loss_is_chosen():
    rng = np.random.default_rng(0)
    _, strings, labels = task_strings(300)
    chosen = CrossValidated([KernelLogistic(scales=[4.0]), NgramHazards()]).fit(strings, labels, rng=rng)
    assert chosen.hyperparameters["classifier"] == 1
    # What is missing makes these fail, which hazards cannot say.
    strings = ["".join(rng.choice(list("ABCD"), 8)) for _ in range(120)]
    labels = np.array(["AB" in string for string in strings])
    chosen = CrossValidated([NgramHazards(), KernelLogistic()]).fit(strings, labels, rng=rng)
    assert chosen.hyperparameters["classifier"] == 1
    assert chosen.logits(["ABCDCDCD"])[0] > chosen.logits(["DCDCDCDC"])[0] + 1


def test_calibration_has_no_slope_where_it_is_stationary():
    rng = np.random.default_rng(0)
    logits = 4 * rng.standard_normal(300)
    labels = rng.random(300) < 1 / (1 + np.exp(-(0.5 * logits - 1)))
    loss, (a, b) = calibrated(logits, labels)
    assert abs(a - 0.5) < 0.12
    assert abs(b + 1) < 0.4
    assert loss < calibrated(rng.permutation(logits), labels)[0]


def test_molecules_have_fingerprints_among_their_candidates():
    space = CandidateSet(["CCO", "CCC", "c1ccccc1", "CCN"], kind="molecule")
    classifier = CrossValidated()
    classifier.bind(space)
    assert len(classifier.candidates) == 3
    logits = classifier.fit(
        ["CCO", "CCC", "CCN", "c1ccccc1", "Cc1ccccc1", "c1ccncc1"],
        np.array([True] * 3 + [False] * 3),
        rng=np.random.default_rng(0),
    ).logits(["CCCC", "CCc1ccccc1"])
    assert logits[0] > logits[1]
    classifier = CrossValidated([RandomForest(MorganFingerprint())])
    classifier.bind(space)
    assert len(classifier.candidates) == 1


def test_bad_arguments_are_refused():
    for candidates in ([], [KernelLogistic]):
        with pytest.raises(InputError, match=r"at least one|is not a classifier"):
            CrossValidated(candidates)
    with pytest.raises(InputError, match="penalty is 0"):
        NgramHazards(penalty=0)
    with pytest.raises(InputError, match="both kinds"):
        NgramHazards().fit(["A"], np.array([True]), rng=np.random.default_rng(0))
