"""Logistic regression with a kernel, against closed forms and the equations that its mode satisfies."""

import gpytorch
import numpy as np
import pytest

from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.models.classifiers import Classifier, KernelLogistic, NgramTrees, Predictor, laplace_mode, log_probability


def sigma(f):
    return 1 / (1 + np.exp(-f))


def strings_and_labels(count=24, seed=0):
    rng = np.random.default_rng(seed)
    strings = ["".join(rng.choice(list("AB"), size=8)) for _ in range(count)]
    return strings, np.array(["ABA" in string for string in strings])


def gram_of(strings, gap=0.5):
    return SubsequenceKernel(order=5, match_decay=0.8, gap_decay=gap).gram(strings).detach().numpy()


@pytest.mark.parametrize("scale", [0.3, 4.0, 1e4])
def test_the_mode_satisfies_its_equation(scale):
    strings, labels = strings_and_labels()
    gram = scale * gram_of([*strings, strings[0]])  # a repeated string makes it singular
    positive = np.append(labels, True).astype(float)
    mode = laplace_mode(gram, positive, 1 - positive, 0.4)
    gradient = positive * (1 - sigma(mode.latent)) - (1 - positive) * sigma(mode.latent)
    np.testing.assert_allclose(mode.latent, 0.4 + gram @ gradient, rtol=0, atol=1e-8 * (1 + np.abs(mode.latent).max()))


def test_saturated_odds_are_those_of_the_weights():
    utility = np.array([0.2, 1.0, 5.0])
    mode = laplace_mode(np.eye(3), 1e6 * utility, 1e6 * np.ones(3))
    np.testing.assert_allclose(np.exp(mode.latent), utility, rtol=1e-3)


def test_two_atoms_are_ranked_by_the_probability_of_improvement():
    # x in {A, B}; y|A = -1, y|B = -10 or +1, minimised at the threshold 0: P(y <= 0) is 1 and 1/2, and the expected
    # improvement 1 and 5, so the two rankings differ.
    share = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    gram = 1e4 * (share + share[[1, 0, 3, 2]])
    labels = laplace_mode(gram, [1, 1, 1, 0], [0, 0, 0, 1])
    assert sigma(labels.latent)[0] > 0.99
    assert sigma(labels.latent)[2] == pytest.approx(0.5, abs=1e-6)
    utility = laplace_mode(gram, [1, 1, 10, 0], [1, 1, 1, 1])
    np.testing.assert_allclose(np.exp(utility.latent), [1, 1, 5, 5], rtol=1e-3)


def test_the_evidence_of_one_string_is_that_of_a_dense_integral():
    # p(y) = E sigma(f), f ~ N(c, v); Laplace's approximation errs by little at a small variance.
    variance, constant = 0.05, 0.3
    mode = laplace_mode([[variance]], [1.0], [0.0], constant)
    grid = np.linspace(-6, 6, 20001)
    exact = np.trapezoid(sigma(constant + np.sqrt(variance) * grid) * np.exp(-(grid**2) / 2), grid) / np.sqrt(2 * np.pi)
    assert mode.log_evidence == pytest.approx(np.log(exact), abs=1e-4)


def test_predictions_do_not_depend_on_the_order_of_strings_and_agree_with_the_definition():
    strings, labels = strings_and_labels()
    new = ["ABABABAB", "AABBAABB", "BBBBBBBB"]
    rng = np.random.default_rng(0)
    classifier = KernelLogistic(SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5), scales=[4.0])
    predictor = classifier.fit(strings, labels, rng=rng)
    assert isinstance(predictor, Predictor)
    assert isinstance(KernelLogistic(), Classifier)
    order = np.random.default_rng(1).permutation(len(strings))
    again = classifier.fit([strings[i] for i in order], labels[order], rng=rng)
    np.testing.assert_allclose(predictor.logits(new), again.logits(new), atol=1e-8)
    gram = 4.0 * gram_of([*strings, *new])
    constant = np.log((labels.sum() + 1) / ((~labels).sum() + 1))
    mode = laplace_mode(gram[:24, :24], labels, ~labels, constant)
    np.testing.assert_allclose(predictor.logits(new), constant + gram[24:, :24] @ mode.gradient, atol=1e-8)
    # At the strings it has learned from, the definition gives the mode itself.
    np.testing.assert_allclose(predictor.logits(strings), mode.latent, atol=1e-7)


def test_the_kernel_and_the_scale_of_largest_evidence_are_taken():
    strings, labels = strings_and_labels(40)
    constant = np.log((labels.sum() + 1) / ((~labels).sum() + 1))
    tried = [(gap, scale) for gap in (0.1, 0.5) for scale in (0.25, 4.0, 64.0)]
    evidence = [
        laplace_mode(scale * gram_of(strings, gap), labels, ~labels, constant).log_evidence for gap, scale in tried
    ]
    predictor = KernelLogistic(scales=[0.25, 4.0, 64.0]).fit(strings, labels, rng=np.random.default_rng(0))
    found = predictor.hyperparameters
    assert (found["gap_decay"], found["outputscale"]) == tried[int(np.argmax(evidence))]
    assert predictor.log_evidence == pytest.approx(max(evidence))


def test_extreme_logits_stay_finite_and_ordered():
    logits = np.array([-1000.0, -999.0, 999.0, 1000.0])
    found = log_probability(logits)
    assert np.isfinite(found).all()
    assert (np.diff(found[:2]) > 0).all()
    np.testing.assert_allclose(found[:2], logits[:2])


@pytest.mark.parametrize("classifier", [KernelLogistic(), NgramTrees(trees=20)], ids=["kernel", "trees"])
def test_a_pattern_is_learned_and_one_seed_fixes_the_fit(classifier):
    strings, labels = strings_and_labels(80)
    new, truth = strings_and_labels(80, seed=1)
    logits = classifier.fit(strings, labels, rng=np.random.default_rng(3)).logits(new)
    ranks = (logits[truth][:, None] > logits[~truth]).mean()
    assert ranks > 0.9  # area under the curve; 0.5 is chance
    # What was learned is the labels: shuffled ones leave chance.
    blind = []
    for seed in range(6):
        shuffled = np.random.default_rng(seed).permutation(labels)
        logits_of_shuffled = classifier.fit(strings, shuffled, rng=np.random.default_rng(3)).logits(new)
        blind.append((logits_of_shuffled[truth][:, None] > logits_of_shuffled[~truth]).mean())
    assert 0.3 < np.mean(blind) < 0.7
    again = classifier.fit(strings, labels, rng=np.random.default_rng(3)).logits(new)
    assert np.array_equal(logits, again)
    assert classifier.fit(strings, labels, rng=np.random.default_rng(3)).logits([]).shape == (0,)


def test_trees_count_ngrams_of_the_tokeniser():
    strings = ["ClCl", "CCl", "ClCCl", "CC", "CCC", "CO"]
    labels = np.array([True, True, True, False, False, False])
    predictor = NgramTrees(longest=1, tokenizer="smiles").fit(strings, labels, rng=np.random.default_rng(0))
    assert predictor.hyperparameters["ngrams"] == 3  # C, Cl, O: with characters l would count
    assert predictor.logits(["Cl"])[0] > predictor.logits(["C"])[0]


def test_wrong_input_is_named():
    with pytest.raises(InputError, match="3 strings but labels of shape"):
        KernelLogistic().fit(["A", "B", "C"], np.array([True]), rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="both kinds"):
        NgramTrees().fit(["A", "B"], np.array([True, True]), rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="RBFKernel is not a kernel on encoded strings"):
        KernelLogistic(gpytorch.kernels.RBFKernel())
    with pytest.raises(InputError, match="no kernels"):
        KernelLogistic([])
    with pytest.raises(InputError, match="scales are"):
        KernelLogistic(scales=[0.0])
    with pytest.raises(InputError, match="longest is 0"):
        NgramTrees(0)
    with pytest.raises(InputError, match="from 0"):
        laplace_mode(np.eye(2), [1.0, -1.0], [0.0, 0.0])
    with pytest.raises(InputError, match="finite numbers"):
        laplace_mode(np.full((2, 2), np.nan), [1.0, 0.0], [0.0, 1.0])
    with pytest.raises(ModelError, match="did not converge"):
        laplace_mode(-100 * np.eye(2), [1.0, 0.0], [0.0, 1.0])
