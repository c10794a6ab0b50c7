"""Scores under a probability of success, against all candidates looked at."""

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.scorers import Choice, PoolScorer, Scorer, Scoring, feasible_scores
from seqopt.scorers.feasibility import FeasibilityPoolScorer, FeasibilityScorer, FeasibilityScoring
from seqopt.scorers.gaussian import top


class Fixed:
    """Scores that are given."""

    hyperparameters = {}  # noqa: RUF012

    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)
        self.looked_at = 0

    def best(self, allowed, count=1):
        return top(np.where(allowed, self.values, -np.inf), count)

    def choose(self, index):
        index = int(index)
        return Choice(f"s{index}", float(self.values[index]), mean=1.5)

    def scores(self, keys):
        return self.values[[int(key[1:]) for key in keys]]

    def logits(self, keys):
        self.looked_at += len(keys)
        return self.values[[int(key[1:]) for key in keys]]


class ByKey(Fixed):
    def choose(self, key):
        return super().choose(int(key[1:]))


@pytest.mark.parametrize("combine", ["add", "multiply"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_a_pool_are_those_of_all_candidates(combine, seed):
    rng = np.random.default_rng(seed)
    values, logits = rng.normal(size=700), 3 * rng.normal(size=700)
    values[rng.random(700) < 0.1] = -np.inf
    allowed = rng.random(700) < 0.8
    keys = [f"s{index}" for index in range(700)]
    scorer = FeasibilityPoolScorer(Fixed(values), Fixed(logits), combine, keys)
    assert isinstance(scorer, PoolScorer)
    everything = np.where(np.isfinite(values), feasible_scores(values, -np.logaddexp(0, -logits), combine), -np.inf)
    for count in (1, 5, 200):
        indices, scores = scorer.best(allowed, count)
        dense = np.sort(np.where(allowed, everything, -np.inf))[::-1][:count]
        np.testing.assert_allclose(scores, dense)
        np.testing.assert_allclose(scores, everything[indices])
        assert allowed[indices].all()
    indices, _ = scorer.best(allowed, 1000)
    assert len(indices) == (allowed & np.isfinite(values)).sum()
    choice = scorer.choose(int(indices[0]))
    assert (choice.score, choice.mean) == (pytest.approx(everything[indices[0]]), 1.5)


def test_few_probabilities_are_computed_where_few_decide():
    values, predictor = np.linspace(0, 100, 5000), Fixed(np.zeros(5000))
    scorer = FeasibilityPoolScorer(Fixed(values), predictor, "add", [f"s{index}" for index in range(5000)])
    assert scorer.best(np.ones(5000, dtype=bool))[0].tolist() == [4999]
    assert predictor.looked_at < 500


def test_scores_of_strings():
    values, logits = np.array([2.0, -np.inf, -2.0, 0.0]), np.zeros(4)
    scorer = FeasibilityScorer(ByKey(values), Fixed(logits), "multiply")
    assert isinstance(scorer, Scorer)
    np.testing.assert_allclose(scorer.scores(["s0", "s1", "s2", "s3"]), [1.0, -np.inf, -4.0, 0.0])
    np.testing.assert_allclose(scorer.choose("s0").score, 1.0)
    np.testing.assert_allclose(FeasibilityScorer(ByKey(values), Fixed(logits), "add").scores(["s0"]), 2 - np.log(2))


def test_no_probability_raises_a_score_and_less_is_never_better():
    scores = np.array([-3.0, -1e-3, 0.0, 1e-3, 3.0])
    for combine in ("add", "multiply"):
        before = scores
        for log_p in (0.0, -0.1, -5.0, -800.0):
            found = feasible_scores(scores, np.full(5, log_p), combine)
            assert (found <= before).all()
            before = found
        np.testing.assert_array_equal(feasible_scores(scores, np.zeros(5), combine), scores)
    with pytest.raises(InputError, match="expected 'add' or 'multiply'"):
        feasible_scores(scores, np.zeros(5), "times")


def test_it_is_a_scoring():
    for name in ("incumbents", "unsupported", "scorer", "pool_scorer", "sample_scorer"):
        assert callable(getattr(FeasibilityScoring, name))
    assert isinstance(FeasibilityScoring(None, None, "add"), Scoring)
