"""What an inner search relies on in what it maximises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from seqopt.scorers import Choice, PoolScorer, Scorer, Scoring
from seqopt.scorers.protocols import FloatArray
from seqopt.spaces import PoolSpace


class ScoringConformance:
    """Tests of a `seqopt.scorers.Scoring`, and of the `Scorer` and `PoolScorer` that it makes.

    Inherit them, and override the fixtures ``make_scoring`` and ``pool``.

    Attributes:
        sampled: Whether scores depend on what a scorer was prepared on, as where draws of the maximum enter.
        random: Whether every call is a draw of its own, so that no two calls agree.
        rtol: Relative difference that is allowed between two ways to the same score.

    Example:
        >>> from seqopt.acquisition import LogExpectedImprovement
        >>> from seqopt.models import StringGP
        >>> from seqopt.scorers import GaussianScoring
        >>> from seqopt.spaces import CandidateSet
        >>> class TestMine(ScoringConformance):
        ...     @pytest.fixture
        ...     def pool(self) -> PoolSpace:
        ...         return CandidateSet(["aa", "ab", "ba", "bb", "aaa", "aab"], kind="text")
        ...     @pytest.fixture
        ...     def make_scoring(self) -> Callable[[], Scoring]:
        ...         model = StringGP(restarts=1)
        ...         model.fit(["aa", "ab"], [0.0, 1.0], rng=np.random.default_rng(0))
        ...         return lambda: GaussianScoring(model, LogExpectedImprovement(), rng=np.random.default_rng(0))
    """

    sampled: bool = False
    random: bool = False
    rtol: float = 1e-6

    @pytest.fixture
    def make_scoring(self) -> Callable[[], Scoring]:
        """A function that makes the scores of a step, always the same ones."""
        raise NotImplementedError("override the fixture make_scoring, so that it returns a function that makes one")

    @pytest.fixture
    def pool(self) -> PoolSpace:
        """At least 6 candidates, all of them supported, whose scores are not all equal."""
        raise NotImplementedError("override the fixture pool, so that it returns a pool of candidates")

    def test_it_is_a_scoring(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> None:
        scoring = make_scoring()
        assert isinstance(scoring, Scoring), f"{type(scoring).__name__} lacks methods of seqopt.scorers.Scoring"
        assert scoring.unsupported(list(pool.keys)) == {}, "the fixture pool must return candidates that are supported"
        assert len(pool) >= 6

    def test_incumbents_are_distinct_strings_the_best_first(
        self, make_scoring: Callable[[], Scoring], pool: PoolSpace
    ) -> None:
        found = make_scoring().incumbents(3)
        assert len(set(found)) == len(found) <= 3
        assert all(isinstance(key, str) for key in found)
        assert make_scoring().incumbents(1) == found[:1]
        assert make_scoring().incumbents(0) == []

    def test_each_string_has_one_score(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> None:
        keys = list(pool.keys)
        scorer = make_scoring().scorer(keys)
        assert isinstance(scorer, Scorer)
        for asked in (keys, keys[:1]):
            _checked(scorer.scores(asked), len(asked))

    def test_a_string_has_the_same_score_among_others(
        self, make_scoring: Callable[[], Scoring], pool: PoolSpace
    ) -> None:
        if self.random:
            pytest.skip("every call is a draw of its own")
        keys = list(pool.keys)
        scorer = make_scoring().scorer(keys)
        scores = scorer.scores(keys)
        assert len(set(scores.tolist())) > 1, "the fixture pool must return candidates of different scores"
        self._same(scorer.scores(keys), scores, "differ between two calls")
        self._same(scorer.scores(keys[::-1]), scores[::-1], "depend on the order")
        self._same(np.concatenate([scorer.scores([key]) for key in keys]), scores, "depend on what else is scored")

    def test_a_choice_says_what_was_chosen(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> None:
        keys = list(pool.keys)
        scorer = make_scoring().scorer(keys)
        for place in (int(np.argmax(scorer.scores(keys))), 0):
            scores = scorer.scores(keys)
            choice = scorer.choose(keys[place])
            assert isinstance(choice, Choice)
            assert choice.key == keys[place]
            self._same(np.array([choice.score]), scores[[place]], "differ from that of the choice")
            self._predictions(choice)
            _checked(scorer.scores(keys), len(keys))

    def test_the_best_candidates_are_those_of_largest_score(
        self, make_scoring: Callable[[], Scoring], pool: PoolSpace
    ) -> None:
        for scorer in self._pool_scorers(make_scoring, pool):
            everything, scores = scorer.best(np.ones(len(pool), dtype=np.bool_), len(pool))
            assert len(everything) == len(scores) <= len(pool)
            assert len(set(everything.tolist())) == len(everything), "a candidate is returned twice"
            assert (np.diff(scores) <= 0).all(), f"scores are not in order: {scores}"
            if self.random:
                continue
            indices, best = scorer.best(np.ones(len(pool), dtype=np.bool_), 2)
            assert indices.tolist() == everything[:2].tolist()
            self._same(best, scores[:2], "differ between the best two and all")

    def test_only_what_is_allowed_is_returned(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> None:
        for scorer in self._pool_scorers(make_scoring, pool):
            allowed = np.arange(len(pool)) % 2 == 0
            kept = allowed.copy()
            indices, _ = scorer.best(allowed, len(pool))
            assert len(indices)
            assert allowed[indices].all(), f"{indices[~allowed[indices]]} are not allowed, and were returned"
            assert np.array_equal(allowed, kept), "what is allowed has been changed"
            assert len(scorer.best(np.zeros(len(pool), dtype=np.bool_))[0]) == 0, "nothing is allowed"

    def test_a_choice_of_a_candidate_says_what_was_chosen(
        self, make_scoring: Callable[[], Scoring], pool: PoolSpace
    ) -> None:
        for scorer in self._pool_scorers(make_scoring, pool):
            allowed = np.ones(len(pool), dtype=np.bool_)
            for _ in range(3):
                indices, scores = scorer.best(allowed)
                choice = scorer.choose(int(indices[0]))
                assert isinstance(choice, Choice)
                assert choice.key == pool.keys[int(indices[0])], f"candidate {indices[0]} is not {choice.key!r}"
                if not self.random:
                    self._same(np.array([choice.score]), scores, "differ from that of the choice")
                self._predictions(choice)
                allowed[indices] = False

    def test_a_part_of_the_pool_is_numbered_on_its_own(
        self, make_scoring: Callable[[], Scoring], pool: PoolSpace
    ) -> None:
        indices = np.array([5, 1, 3])
        scorer = make_scoring().pool_scorer(pool, indices)
        found, _ = scorer.best(np.ones(3, dtype=np.bool_), 3)
        assert sorted(found.tolist()) == [0, 1, 2]
        assert scorer.choose(0).key == pool.keys[5]

    def test_all_scorers_of_a_step_agree(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> None:
        if self.sampled or self.random:
            pytest.skip("scores depend on what a scorer was prepared on")
        keys = list(pool.keys)
        expected = make_scoring().scorer(keys).scores(keys)
        for scorer in self._pool_scorers(make_scoring, pool):
            indices, scores = scorer.best(np.ones(len(pool), dtype=np.bool_), len(pool))
            self._same(scores, expected[indices], "differ between scorer and pool_scorer or sample_scorer")
            assert len(indices) == np.isfinite(expected).sum()

    def _pool_scorers(self, make_scoring: Callable[[], Scoring], pool: PoolSpace) -> Sequence[PoolScorer]:
        found = [make_scoring().pool_scorer(pool), make_scoring().sample_scorer(list(pool.keys))]
        assert all(isinstance(scorer, PoolScorer) for scorer in found)
        return found

    def _predictions(self, choice: Choice) -> None:
        for name in ("mean", "std", "measurement_std"):
            value = getattr(choice, name)
            assert value is None or (isinstance(value, float) and np.isfinite(value)), f"{name} is {value!r}"
        if choice.std is not None and choice.measurement_std is not None:
            assert choice.measurement_std >= choice.std >= 0, "a measurement has less spread than its target"

    def _same(self, found: FloatArray, expected: FloatArray, how: str) -> None:
        if self.random:
            return
        assert np.allclose(found, expected, rtol=self.rtol, atol=self.rtol), f"scores {how}: {found} and {expected}"


def _checked(scores: FloatArray, count: int) -> None:
    assert isinstance(scores, np.ndarray), f"scores are a {type(scores).__name__}, expected an array"
    assert scores.shape == (count,), f"scores of {count} strings have the shape {scores.shape}"
    assert scores.dtype == np.float64, f"scores are {scores.dtype}, expected float64"
    assert not np.isnan(scores).any(), f"scores are not numbers: {scores}"
