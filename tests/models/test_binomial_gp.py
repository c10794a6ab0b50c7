"""The Gaussian process of results that are yes or no."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import numpy as np
import pytest
import torch

from seqopt.data import probability_moments
from seqopt.encoding import Encoder
from seqopt.errors import InputError, ModelError
from seqopt.kernels import NgramKernel
from seqopt.models import (
    BinomialGP,
    BinomialSurrogate,
    ExplainedSurrogate,
    FullyBayesianGP,
    JointSurrogate,
    PoolSurrogate,
    StringGP,
    StringSurrogate,
)
from seqopt.models.binomial_gp import Tallies
from seqopt.models.laplace import laplace_evidence
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.utils.config import from_config

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=6)]


def _labels(words: list[str]) -> list[float]:
    return [1.0 if "abb" in word else -1.0 for word in words]


def _fitted(words: list[str], labels: list[float], trials: list[int] | None = None, **options: Any) -> BinomialGP:
    model = BinomialGP(StringGP(NgramKernel()), **options)
    model.fit(words, labels, rng=np.random.default_rng(0), trials=trials)
    return model


@pytest.fixture(scope="module")
def some() -> list[str]:
    return [WORDS[index] for index in np.random.default_rng(0).permutation(64)[:40]]


@pytest.fixture(scope="module")
def model(some: list[str]) -> BinomialGP:
    return _fitted(some, _labels(some))


def test_it_offers_what_searches_need(model: BinomialGP) -> None:
    for protocol in (BinomialSurrogate, StringSurrogate, PoolSurrogate, JointSurrogate, ExplainedSurrogate):
        assert isinstance(model, protocol)
    assert not isinstance(StringGP(), BinomialSurrogate)


def test_hits_that_were_not_seen_are_told_from_others(model: BinomialGP, some: list[str]) -> None:
    new = [word for word in WORDS if word not in some]
    told, label = model.probabilities(new)[0], np.array(_labels(new))
    assert told[label > 0].mean() > told[label < 0].mean() + 0.2
    assert ((told > 0) & (told < 1)).all()


def test_the_posterior_is_that_of_the_approximation(model: BinomialGP, some: list[str]) -> None:
    state = model.fitted
    gram = float(state.scale) * state.evaluator.cross(
        state.encoded, None, state.evaluator.self_similarity(state.encoded)
    )
    yes = (np.array(_labels(list(state.keys))) + 1) / 2
    found = laplace_evidence(gram, yes, 1 - yes, float(state.constant))
    mean, std = model.predict(some)
    order = [list(state.keys).index(word) for word in some]
    assert mean == pytest.approx(found.latent[order], abs=1e-6)
    covariance = gram - gram @ np.linalg.solve(gram + np.diag(1 / found.curvature), gram)
    assert std**2 == pytest.approx(np.diag(covariance)[order], abs=1e-6)


def test_hits_of_wells_are_so_many_rows(some: list[str]) -> None:
    words, wells, hits = some[:12], [1, 2, 3, 4] * 3, [0, 1, 3, 2] * 3
    together = _fitted(words, [2 * k / n - 1 for k, n in zip(hits, wells, strict=True)], wells)
    rows = [word for word, n in zip(words, wells, strict=True) for _ in range(n)]
    labels = [label for k, n in zip(hits, wells, strict=True) for label in [1.0] * k + [-1.0] * (n - k)]
    apart = _fitted(rows, labels)
    assert apart.predict(WORDS)[0] == pytest.approx(together.predict(WORDS)[0], abs=1e-8)
    assert apart.predict(WORDS)[1] == pytest.approx(together.predict(WORDS)[1], abs=1e-8)


def test_the_order_of_results_does_not_matter(model: BinomialGP, some: list[str]) -> None:
    order = np.random.default_rng(4).permutation(len(some))
    other = _fitted([some[index] for index in order], [_labels(some)[index] for index in order])
    assert other.predict(WORDS)[0] == pytest.approx(model.predict(WORDS)[0], abs=1e-3)


def test_parameters_are_those_of_largest_evidence(model: BinomialGP, some: list[str]) -> None:
    """Around them the posterior density of the parameters, computed from the definition, falls."""
    yes = (np.array(_labels(some)) + 1) / 2
    encoded = Encoder("characters").encode(some)
    middle = Tallies.of(some, np.array(_labels(some)), np.ones(len(some))).log_odds

    def density(lengthscale: float, scale: float, constant: float) -> float:
        kernel = copy.deepcopy(adapted).to(torch.float64)
        kernel.lengthscale = lengthscale
        gram = scale * kernel.cross(encoded, None, kernel.self_similarity(encoded) if kernel.normalize else None)
        prior = sum(
            float(one.log_prob(closure(module)).sum().detach()) for _, module, one, closure, _ in kernel.named_priors()
        )
        prior -= 0.5 * (np.log(scale) - np.log(4.0)) ** 2 + 0.5 * ((constant - middle) / 2.0) ** 2
        return laplace_evidence(0.5 * (gram + gram.T), yes, 1 - yes, constant).log_evidence + prior

    found = model.hyperparameters
    adapted = NgramKernel()
    adapted.adapt(encoded.to_tensor(encoded.width))
    point = found["lengthscale"], found["outputscale"], found["mean"]
    best = density(*point)
    for place, factor in itertools.product(range(3), (0.8, 1.25)):
        moved = [value * factor if index == place else value for index, value in enumerate(point)]
        assert density(*moved) < best


def test_all_labels_alike_are_no_trouble(some: list[str]) -> None:
    for label, side in ((-1.0, -1), (1.0, 1)):
        told, spread = _fitted(some[:10], [label] * 10).probabilities(WORDS)
        assert np.isfinite(told).all()
        assert (side * (told - 0.5) > 0).all()
        assert (spread > 0).all()


def test_a_search_that_goes_on_is_one_that_was_saved(some: list[str]) -> None:
    base = "ssk"
    first, labels = BinomialGP(base), _labels(some)
    first.fit(some[:20], labels[:20], rng=np.random.default_rng(0))
    kept = json.loads(json.dumps(first.state_dict()))
    first.fit(some[:21], labels[:21], rng=np.random.default_rng(1))
    second = BinomialGP(base)
    second.load_state_dict(kept)
    second.fit(some[:21], labels[:21], rng=np.random.default_rng(1), full=False)
    assert np.array_equal(first.predict(WORDS)[0], second.predict(WORDS)[0])
    assert first.state_dict() == second.state_dict()


def test_it_is_made_again_from_its_description() -> None:
    model = BinomialGP(StringGP(NgramKernel()), fit_size=50, overdispersion=0.2)
    made = from_config(model.config())
    assert isinstance(made, BinomialGP)
    assert made.config() == model.config()
    assert made.overdispersion == 0.2


def test_of_several_kernels_the_likeliest_is_taken(some: list[str]) -> None:
    model = BinomialGP("auto")
    model.bind(StringSpace("ab", 6))
    assert len(model.kernels) == 4
    model.fit(some, _labels(some), rng=np.random.default_rng(0))
    assert model.kernel in model.kernels
    assert model.hyperparameters["kernel"] == model.kernels.index(model.kernel)
    with pytest.raises(InputError, match="motifs are not learned from results of yes and no"):
        BinomialGP("motifs").bind(StringSpace("ab", 6))


def test_many_results_are_sampled_by_label_and_the_constant_corrected() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), 10)) for _ in range(900)]
    words = list(dict.fromkeys(words))[:500]
    hit = np.array([word.startswith("abba") for word in words])
    labels = np.where(hit, 1.0, -1.0)
    tallies = Tallies.of(words, labels, np.ones(len(words)))
    rows, shift = tallies.sampled(100, rng)
    assert len(rows) == 100
    assert hit[rows].sum() == hit.sum()  # all hits, since there are fewer than half
    assert shift == pytest.approx(np.log((len(words) - hit.sum()) / (100 - hit.sum())))
    model = _fitted(words, labels.tolist(), fit_size=100)
    assert model.probabilities(words)[0].mean() == pytest.approx(hit.mean(), abs=0.03)


def test_wells_that_depend_on_each_other_count_less(some: list[str]) -> None:
    words, labels, wells = some[:6], [0.5, -1.0, 1.0, -0.5, 0.0, -1.0], [8] * 6
    for share in (0.0, 0.3, 1.0):
        # 8 wells that correlate by 0.3 count as 8 / (1 + 7 x 0.3) of them.
        counted = Tallies.of(words, np.array(labels), np.array(wells, float), share)
        assert counted.yes + counted.no == pytest.approx(np.full(6, 8 / (1 + 7 * share)))
        assert counted.yes / (counted.yes + counted.no) == pytest.approx((np.array(labels) + 1) / 2)
    alone = Tallies.of(words, np.array(labels), np.array(wells, float), 1.0)
    assert alone.yes + alone.no == pytest.approx(np.ones(6))


def test_leaving_one_out_is_close_to_fitting_without_it(model: BinomialGP, some: list[str]) -> None:
    found = model.leave_one_out()
    state = model.fitted
    keys = list(state.keys)
    assert found.values == pytest.approx(_labels(keys), abs=1e-6)
    gram = float(state.scale) * state.evaluator.cross(
        state.encoded, None, state.evaluator.self_similarity(state.encoded)
    )
    yes = (np.array(_labels(keys)) + 1) / 2
    for index in (0, 7, 19):
        rest = np.delete(np.arange(len(keys)), index)
        other = laplace_evidence(gram[np.ix_(rest, rest)], yes[rest], 1 - yes[rest], float(state.constant))
        latent = float(state.constant) + gram[index, rest] @ other.gradient
        noisy = gram[np.ix_(rest, rest)] + np.diag(1 / other.curvature)
        spread = np.sqrt(gram[index, index] - gram[index, rest] @ np.linalg.solve(noisy, gram[rest, index]))
        probability = probability_moments(latent, spread)[0][0]
        # Pseudo-values were found with the one that is left out.
        assert (found.mean[index] + 1) / 2 == pytest.approx(probability, abs=0.005)
    assert found.r2 > 0


def test_pools_and_strings_are_told_alike(some: list[str]) -> None:
    pool = CandidateSet(WORDS, kind="text")
    model = BinomialGP("ngrams")
    model.bind(pool)
    model.fit(some, _labels(some), rng=np.random.default_rng(0))
    over_pool = model.pool_posterior(pool).moments
    mean, std = model.predict(list(pool.keys))
    assert over_pool.mean[0].numpy() == pytest.approx(mean, abs=1e-8)
    assert over_pool.variance[0].sqrt().numpy() == pytest.approx(std, abs=1e-8)
    given = model.pool_posterior(pool, pending=[pool.keys[0]]).moments
    assert float(given.conditional_variance[0, 0]) < float(over_pool.variance[0, 0])


@pytest.mark.parametrize(
    ("labels", "trials", "what"),
    [
        ([1.0, 2.0], None, r"the label of 'ab' is 2.0"),
        ([1.0, float("nan")], None, "only finite values"),
        ([1.0, -1.0], [1, 0], "'ab' has 0 wells"),
        ([1.0, -1.0], [1], "give one number per string"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(labels: list[float], trials: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        BinomialGP("ngrams").fit(["aa", "ab"], labels, rng=np.random.default_rng(0), trials=trials)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"base": "tsne"}, "unknown surrogate"),
        ({"base": StringGP(mean=lambda strings: [0.0] * len(strings))}, "prior mean"),
        ({"base": object()}, "has no kernel"),
        ({"overdispersion": 1.5}, "correlation from 0 to 1"),
        ({"fit_size": 1}, "at least 2"),
        ({"refit_growth": -1.0}, "0 .always refit. or more"),
    ],
)
def test_arguments_out_of_range_are_refused(options: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        BinomialGP(**options)


def test_what_depends_on_the_space_needs_it() -> None:
    with pytest.raises(ModelError, match="not been fitted"):
        BinomialGP("ssk").predict(["ab"])
    assert isinstance(BinomialGP(FullyBayesianGP(NgramKernel())).kernels[0], NgramKernel)
