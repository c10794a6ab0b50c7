"""The conformance suite of scorers: ours pass it, and each broken one fails where it is broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seqopt.acquisition import resolve_acquisition
from seqopt.models import FullyBayesianStringGP
from seqopt.scorers import Choice, GaussianScoring
from seqopt.scorers.gaussian import top
from seqopt.scorers.protocols import BoolArray, FloatArray, IndexArray
from seqopt.spaces import CandidateSet, PoolSpace
from seqopt.testing.scorers import ScoringConformance

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=3)]


@pytest.fixture(scope="module")
def model() -> FullyBayesianStringGP:
    model = FullyBayesianStringGP(draws=3)
    model.fit(WORDS[:5], [0.1, 1.0, 0.8, 0.3, 2.0], rng=np.random.default_rng(0))
    return model


class _Gaussian(ScoringConformance):
    @pytest.fixture
    def pool(self) -> PoolSpace:
        return CandidateSet(WORDS, kind="text")

    @pytest.fixture
    def make_scoring(self, name: str, model: FullyBayesianStringGP) -> Callable[[], Any]:
        return lambda: GaussianScoring(
            model, resolve_acquisition(name), pending=["abba"], batch_size=3, rng=np.random.default_rng(1)
        )


@pytest.mark.parametrize("name", ["logei", "ucb", "mean"])
class TestExact(_Gaussian):
    pass


@pytest.mark.parametrize("name", ["gibbon"])
class TestSampled(_Gaussian):
    sampled = True


@pytest.mark.parametrize("name", ["thompson", "random"])
class TestRandom(_Gaussian):
    sampled = random = True


class _Step:
    """Scores by the number of letters b, 0.5 less for each that was chosen; broken as a subclass says."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.chosen: list[str] = []

    def incumbents(self, count: int) -> list[str]:
        return ["bbb", "abb"][:count]

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        return {}

    def prepared(self, keys: Sequence[str]) -> Any:
        self.keys = list(keys)
        return self

    def scorer(self, sample: Sequence[str]) -> Any:
        return self.prepared(sample)

    def sample_scorer(self, keys: Sequence[str]) -> Any:
        return self.prepared(keys)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> Any:
        keys = list(pool.keys)
        return self.prepared(keys if indices is None else [keys[int(index)] for index in indices])

    def scores(self, keys: Sequence[str]) -> FloatArray:
        return np.array([key.count("b") - 0.5 * self.chosen.count(key) for key in keys], dtype=np.float64)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        return top(np.where(allowed, self.scores(self.keys), -np.inf), count)

    def choose(self, item: Any) -> Choice:
        key = item if isinstance(item, str) else self.keys[item]
        choice = Choice(key, float(self.scores([key])[0]))
        self.chosen.append(key)
        return choice


class _Refuses(_Step):
    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        return {0: "never seen"}


class _Unsure(_Step):
    def incumbents(self, count: int) -> list[str]:
        return ["bbb"] * count


class _Nested(_Step):
    def scores(self, keys: Sequence[str]) -> FloatArray:
        return super().scores(keys)[:, None] if keys is not self.keys else super().scores(keys)


class _Relative(_Step):
    def scores(self, keys: Sequence[str]) -> FloatArray:
        scores = super().scores(keys)
        return scores - scores.mean()


class _Misnames(_Step):
    def choose(self, item: Any) -> Choice:
        return replace(super().choose(item), key="bbb")


class _Misscores(_Step):
    def choose(self, item: Any) -> Choice:
        return replace(super().choose(item), score=0.25)


class _Overconfident(_Step):
    def choose(self, item: Any) -> Choice:
        return replace(super().choose(item), mean=0.0, std=1.0, measurement_std=0.5)


class _Unordered(_Step):
    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        indices, scores = super().best(allowed, count)
        return indices[::-1], scores[::-1]


class _Lawless(_Step):
    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        return super().best(np.ones(len(self.keys), dtype=np.bool_), count)


class _NumberedAsThePool(_Step):
    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> Any:
        return self.prepared(pool.keys)


class _TwoMinds(_Step):
    def sample_scorer(self, keys: Sequence[str]) -> Any:
        found = self.prepared(keys)
        found.chosen = list(keys)[:3]
        return found


BROKEN: list[tuple[type, str]] = [
    (_Refuses, "it_is_a_scoring"),
    (_Unsure, "incumbents"),
    (_Nested, "each_string_has_one_score"),
    (_Relative, "the_same_score_among_others"),
    (_Misnames, "a_choice_says"),
    (_Misnames, "a_choice_of_a_candidate"),
    (_Misscores, "a_choice_says"),
    (_Overconfident, "a_choice_says"),
    (_Unordered, "the_best_candidates"),
    (_Lawless, "only_what_is_allowed"),
    (_NumberedAsThePool, "numbered_on_its_own"),
    (_TwoMinds, "all_scorers_of_a_step_agree"),
]


def test_each_broken_scoring_fails_where_it_is_broken(failures: Callable[..., set[str]]) -> None:
    caught: set[str] = set()
    for broken, where in [(_Step, ""), *BROKEN]:
        failed = failures(
            ScoringConformance, make_scoring=lambda broken=broken: broken, pool=lambda: CandidateSet(WORDS, kind="text")
        )
        assert any(where in name for name in failed) if where else failed == set(), (broken, failed)
        caught |= failed
    assert caught == {name for name in vars(ScoringConformance) if name.startswith("test_")}
