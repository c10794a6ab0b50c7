"""The conformance suite of strategies: ours pass it, and each broken one fails where it is broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seqopt.data import Item
from seqopt.errors import InputError
from seqopt.kernels import OneHotKernel
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.search import GeneticSearch, Proposal, RandomSearch
from seqopt.spaces import CandidateSet, Space, StringSpace
from seqopt.strategies import FunctionDraws, ModelBased, RandomStrategy, SearchState
from seqopt.testing.strategies import StrategyConformance


@pytest.mark.parametrize("acquisition", ["gibbon", "thompson", "random"])
class TestModelBasedOverAPool(StrategyConformance):
    @pytest.fixture
    def make_strategy(self, acquisition: str) -> Callable[[], Any]:
        return lambda: ModelBased(StringGP(OneHotKernel(), restarts=1), acquisition)


@pytest.mark.parametrize("search", [GeneticSearch(population=8, patience=2, restarts=1), RandomSearch(40)])
class TestModelBasedOverASpace(StrategyConformance):
    initial = 5

    @pytest.fixture
    def make_strategy(self, search: Any) -> Callable[[], Any]:
        return lambda: ModelBased(FullyBayesianStringGP(draws=2), "logei", search)

    @pytest.fixture
    def space(self) -> Space:
        return StringSpace("ab", 6)


class TestFunctionDraws(StrategyConformance):
    @pytest.fixture
    def make_strategy(self) -> Callable[[], Any]:
        return FunctionDraws


class TestRandom(StrategyConformance):
    @pytest.fixture
    def make_strategy(self) -> Callable[[], Any]:
        return RandomStrategy


class _Random(RandomStrategy):
    """Broken as a subclass says."""


class _Half:
    propose = recommend = None


class _Choosy(_Random):
    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        return {index: f"{item!r} begins with b" for index, item in enumerate(items) if str(item).startswith("b")}


class _Generous(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        return super().propose(n + 1, state, rng)


class _Repeats(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        found = super().propose(n, state, rng)
        return [*found, *found][:n] if len(found) < n else [found[0]] * n


class _Excluded(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        return super().propose(n, replace(state, excluded=frozenset()), rng)


class _Outside(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        return [Proposal(p.string + "c", p.key + "c") for p in super().propose(n, state, rng)]


class _OwnDice(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        return super().propose(n, state, np.random.default_rng())


class _Clears(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        found = super().propose(n, state, rng)
        state.data.values[:] = 0.0
        return found


class _Forgets(_Random):
    """Its proposals depend on how often it was asked, which its state does not hold."""

    def __init__(self) -> None:
        self.asked = 0

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        self.asked += 1
        return super().propose(n, state, np.random.default_rng(self.asked))


class _NotSent(_Random):
    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("not to be sent")


class _Confident(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        targets = state.data.measured().targets
        assert targets.max() > targets.min()
        return super().propose(n, state, rng)


class _Impatient(_Random):
    """Takes what is pending for new."""

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        if state.pending:
            return [Proposal(str(item), str(item)) for item in state.pending][:n]
        return super().propose(n, state, rng)


class _GivesUp(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        return [] if len(state.excluded) > 20 else super().propose(n, state, rng)


class _Wavers(_Forgets):
    def state_dict(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        self.asked += 1
        return super().recommend(state, rng)


class _Guesses(_Random):
    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        measured = state.data.measured().items
        return str(measured[0]) if measured else "a"


class _Boasts(_Random):
    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        if state.data.measured().noise_variance is not None:
            raise InputError("noise cannot be taken into account")
        return super().propose(n, state, rng)


class _Wordy(_Random):
    @property
    def hyperparameters(self) -> Any:
        return {"kernel": "ssk"}


BROKEN: list[tuple[type, str]] = [
    (_Half, "it_is_a_strategy"),
    (_Choosy, "it_is_a_strategy"),
    (_Generous, "new_distinct_strings"),
    (_Repeats, "new_distinct_strings"),
    (_Excluded, "new_distinct_strings"),
    (_Outside, "new_distinct_strings"),
    (_OwnDice, "the_generator_and_the_results"),
    (_Clears, "leaves_the_state"),
    (_Forgets, "a_restored_search"),
    (_NotSent, "a_pickled_search"),
    (_Confident, "failures_are_survived"),
    (_Confident, "equal_values"),
    (_Impatient, "pending_strings"),
    (_GivesUp, "when_nothing_is_left"),
    (_Wavers, "leaves_no_trace"),
    (_Guesses, "where_nothing_is_known"),
    (_Boasts, "standard_errors"),
    (_Wordy, "named_numbers"),
]
WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=5)]


def test_each_broken_strategy_fails_where_it_is_broken(failures: Callable[..., set[str]]) -> None:
    caught: set[str] = set()
    for broken, where in BROKEN:
        failed = failures(
            StrategyConformance,
            make_strategy=lambda broken=broken: broken,
            space=lambda: CandidateSet(WORDS, kind="text"),
        )
        assert any(where in name for name in failed), (broken, failed)
        caught |= failed
    assert caught == {name for name in vars(StrategyConformance) if name.startswith("test_")}
