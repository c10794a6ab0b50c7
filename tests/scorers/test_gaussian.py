"""Scores by acquisition functions, looked at all at once and a few at a time."""

import numpy as np
import pytest
import torch

from seqopt import CandidateSet
from seqopt.acquisition import GIBBON, LogExpectedImprovement
from seqopt.errors import ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.models import StringGP, gaussian, streamed_posterior
from seqopt.scorers import GaussianScoring, PoolScorer, Scorer, checked_scores
from seqopt.scorers.gaussian import LazyPoolScorer, top

RNG = np.random.default_rng(5)
POOL = CandidateSet(sorted({"".join(RNG.choice(list("ABCD"), 8)) for _ in range(300)}), kind="text")
TRAIN = POOL.sample(25, np.random.default_rng(1))


@pytest.fixture(scope="module")
def gp():
    found = StringGP(restarts=1)
    found.bind(POOL)
    found.fit(TRAIN, [string.count("AB") + 0.3 * string.count("C") for string in TRAIN], rng=np.random.default_rng(0))
    return found


def scoring(gp, acquisition=None, **options):
    return GaussianScoring(gp, acquisition or LogExpectedImprovement(), rng=np.random.default_rng(2), **options)


def allowed():
    found = np.ones(len(POOL), dtype=bool)
    found[[POOL.index_of(key) for key in TRAIN]] = False
    return found


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1.0, 2.0]], r"mine returned scores of shape \(1, 2\) for 2 strings"),
        ([1.0], r"shape \(1,\) for 2 strings"),
        (torch.zeros(3, 2), r"shape \(3, 2\).*average over draws"),
        ([1.0, float("nan")], "mine returned NaN for 1 of 2 strings, the first at index 1"),
    ],
)
def test_scores_of_a_wrong_shape_and_nan_are_refused(scores, message):
    with pytest.raises(ModelError, match=message):
        checked_scores(scores, 2, "mine")


def test_infinite_scores_are_scores():
    assert checked_scores(torch.tensor([-torch.inf, 1.0]), 2, "mine").tolist() == [-np.inf, 1.0]


class Broken:
    name = "broken"

    def __init__(self, answer):
        self.answer = answer

    def prepare(self, posterior, rng, batch_size=1):
        return self.answer


def test_a_broken_acquisition_function_is_named_whoever_asks(gp):
    for answer in (
        lambda posterior: posterior.moments.mean,
        lambda posterior: torch.full((len(posterior.moments),), np.nan),
    ):
        with pytest.raises(ModelError, match="broken returned"):
            scoring(gp, Broken(answer)).scorer(TRAIN).scores(POOL.keys[:5])
        with pytest.raises(ModelError, match="broken returned"):
            scoring(gp, Broken(answer)).pool_scorer(POOL).best(allowed())


def test_of_equals_the_first_is_best_and_minus_infinity_never():
    indices, values = top(np.array([1.0, 3.0, -np.inf, 3.0]), 9)
    assert indices.tolist() == [1, 3, 0]
    assert values.tolist() == [3.0, 3.0, 1.0]
    for count in (1, 2):
        assert top(np.full(4, -np.inf), count)[0].tolist() == []
        assert top(np.empty(0), count)[0].tolist() == []


@pytest.mark.parametrize("acquisition", [LogExpectedImprovement(), GIBBON()], ids=["logei", "gibbon"])
def test_a_few_looked_at_are_the_best_of_all(gp, acquisition, monkeypatch):
    dense = scoring(gp, acquisition).pool_scorer(POOL)
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(SubsequenceKernel, "costly", False)  # so that all is computed in double precision
    monkeypatch.setattr(streamed_posterior, "REFINED", 8)
    gp._posteriors.clear()  # or the first is kept
    lazy = scoring(gp, acquisition).pool_scorer(POOL)
    assert isinstance(lazy, LazyPoolScorer)
    assert isinstance(lazy, PoolScorer)
    free = allowed()
    for _ in range(4):
        indices, values = dense.best(free, 5)
        others, found = lazy.best(free, 5)
        assert others.tolist() == indices.tolist()
        np.testing.assert_allclose(found, values, rtol=1e-4)
        assert (np.diff(values) <= 0).all()
        assert free[indices].all()
        # What is chosen need not be the best: the one of a portfolio, say.
        chosen = int(indices[2])
        choices = dense.choose(chosen), lazy.choose(chosen)
        for name in ("score", "mean", "std", "measurement_std"):
            assert getattr(choices[0], name) == pytest.approx(getattr(choices[1], name), rel=1e-4)
        assert choices[0].key == choices[1].key == POOL.keys[chosen]
        free[chosen] = False


def test_a_scorer_of_strings_agrees_with_that_of_a_pool(gp):
    scorer, pool = scoring(gp).scorer(POOL.keys), scoring(gp).pool_scorer(POOL)
    assert isinstance(scorer, Scorer)
    free = allowed()
    for _ in range(3):
        scores = scorer.scores(POOL.keys)
        (index,), (value,) = pool.best(free)
        assert int(np.argmax(np.where(free, scores, -np.inf))) == index
        assert value == pytest.approx(scores[index])
        first, second = scorer.choose(POOL.keys[index]), pool.choose(int(index))
        assert (first.key, first.context) == (second.key, ())
        assert first.score == pytest.approx(second.score)
        assert first.mean == pytest.approx(second.mean)
        assert first.std <= first.measurement_std
        free[index] = False
    # A string that was never scored can be chosen all the same.
    unseen = scoring(gp).scorer(POOL.keys[:1]).choose("ABABABAB")
    assert unseen.score == pytest.approx(float(scoring(gp).scorer(POOL.keys[:1]).scores(["ABABABAB"])[0]))


def test_a_scorer_works_out_each_string_once_until_something_is_chosen(gp, monkeypatch):
    asked = []

    def counted(surrogate, keys):
        asked.append(list(keys))
        return {}

    monkeypatch.setattr("seqopt.scorers.gaussian.unsupported", counted)
    keys, unseen = POOL.keys[:5], ["ABABABAB", "BBBBAAAA"]
    scorer = scoring(gp).scorer(keys)
    known = scorer.scores(keys)
    assert asked == [[]]
    scores = scorer.scores([*unseen, *keys[::-1], unseen[0]])
    assert asked[1:] == [unseen]
    assert scores[2:7].tolist() == known[::-1].tolist()
    assert scores[0] == scores[7] != scores[1]
    # These are the scores from the posterior that the acquisition function was prepared with.
    np.testing.assert_allclose(known, scoring(gp).scorer(keys)._prepared(gp.conditioned().at(keys)), rtol=1e-9)
    scorer.choose(unseen[0])
    after = scorer.scores(keys)
    assert asked[-1] == keys
    assert (after < known).any()


def test_pending_strings_lower_what_their_neighbours_promise(gp):
    (index,), _ = scoring(gp).pool_scorer(POOL).best(allowed())
    key = POOL.keys[index]
    before = scoring(gp).scorer(POOL.keys).scores([key])[0]
    after = scoring(gp, pending=[key]).scorer(POOL.keys).scores([key])[0]
    assert after < before
