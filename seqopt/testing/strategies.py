"""What the optimiser and campaigns rely on in a strategy."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from seqopt.errors import ExhaustedError, ModelError
from seqopt.optimizer import Optimizer
from seqopt.search import Proposal
from seqopt.spaces import CandidateSet, PoolSpace, Space
from seqopt.strategies import Strategy


class StrategyConformance:
    """Tests of a `seqopt.strategies.Strategy`: inherit them, and override the fixture ``make_strategy``.

    A strategy is tested as it is used, by an `seqopt.Optimizer`. The space is a pool of 32 words of a and b; override
    the fixture ``space`` for a strategy of other spaces, and `value` where its strings have no such letters.

    Attributes:
        initial: Random strings asked for before the strategy decides.
        batch_size: Strings asked for at a time.

    Example:
        >>> from seqopt.strategies import RandomStrategy
        >>> class TestMine(StrategyConformance):
        ...     @pytest.fixture
        ...     def make_strategy(self) -> Callable[[], Strategy]:
        ...         return RandomStrategy
    """

    initial: int = 6
    batch_size: int = 3

    @pytest.fixture
    def make_strategy(self) -> Callable[[], Strategy]:
        """A function that makes a new strategy, always with the same settings."""
        raise NotImplementedError("override the fixture make_strategy, so that it returns a function that makes one")

    @pytest.fixture
    def space(self) -> Space:
        """Where it searches: at least 32 strings."""
        return CandidateSet(["".join(letters) for letters in itertools.product("ab", repeat=5)], kind="text")

    def value(self, string: str) -> float:
        """What is measured of a string: finite, and different for some strings."""
        return sum(ord(letter) % 7 / (1 + place) for place, letter in enumerate(string))

    def test_it_is_a_strategy(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        strategy = make_strategy()
        assert isinstance(strategy, Strategy), f"{type(strategy).__name__} lacks methods of seqopt.strategies.Strategy"
        assert make_strategy() is not strategy, "make_strategy returned the same object twice"
        assert isinstance(strategy.takes_noise_variance, bool)
        optimizer = self._optimizer(make_strategy, space)
        refused = optimizer.strategy.then.unsupported(space.keys_of(space.sample(12, _rng())))
        assert refused == {}, f"strings of the space are refused: {refused}"

    @pytest.mark.parametrize("n", [1, 4])
    def test_proposals_are_new_distinct_strings_of_the_space(
        self, make_strategy: Callable[[], Strategy], space: Space, n: int
    ) -> None:
        optimizer = self._started(make_strategy, space)
        state = optimizer.state()
        # So much is excluded that it has to be heeded.
        others = space.keys_of(space.sample(20, _rng(1)))
        state = replace(state, excluded=state.excluded | set(others))
        found = optimizer.strategy.then.propose(n, state, _rng())
        assert 0 < len(found) <= n, f"{len(found)} proposals where {n} were asked for"
        for proposal in found:
            assert isinstance(proposal, Proposal)
            assert space.contains(proposal.string), f"{proposal.string!r} is not in the space"
            assert space.key(proposal.string) == proposal.key, f"{proposal.key!r} is not the key of {proposal.string!r}"
            assert proposal.key not in state.excluded, f"{proposal.key!r} is excluded, and was proposed"
        keys = [proposal.key for proposal in found]
        assert len(set(keys)) == len(keys), f"a string was proposed twice: {keys}"

    def test_the_generator_and_the_results_decide(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        runs = [self._run(self._started(make_strategy, space), 2) for _ in range(2)]
        assert runs[0] == runs[1], "two runs with one seed differ"

    def test_deciding_leaves_the_state_of_the_search_alone(
        self, make_strategy: Callable[[], Strategy], space: Space
    ) -> None:
        optimizer = self._started(make_strategy, space)
        state = optimizer.state()
        before = state.data.values.copy(), state.pending, set(state.excluded)
        optimizer.strategy.then.propose(self.batch_size, state, _rng())
        assert np.array_equal(state.data.values, before[0], equal_nan=True), "values have been changed"
        assert (state.pending, set(state.excluded)) == before[1:], "what is pending or excluded has been changed"

    @pytest.mark.parametrize("batches", [0, 1, 2])
    def test_a_restored_search_resumes(self, make_strategy: Callable[[], Strategy], space: Space, batches: int) -> None:
        one = self._started(make_strategy, space)
        self._run(one, batches)
        written = json.dumps(one.state_dict())
        other = self._optimizer(make_strategy, space)
        other.load_state_dict(json.loads(written))
        assert json.dumps(other.state_dict()) == written, "a restored search has another state"
        assert self._run(other, 2) == self._run(one, 2), "a restored search asks for other strings than the original"

    def test_a_pickled_search_resumes(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        one = self._started(make_strategy, space)
        self._run(one, 1)
        other = pickle.loads(pickle.dumps(one))
        assert self._run(other, 2) == self._run(one, 2), "a copy asks for other strings than the original"

    @pytest.mark.parametrize("failed", ["all", "all but one", "some"])
    def test_failures_are_survived(self, make_strategy: Callable[[], Strategy], space: Space, failed: str) -> None:
        optimizer = self._optimizer(make_strategy, space)
        strings = optimizer.ask()
        values = [float("nan")] * len(strings)
        for index in {"all": [], "all but one": [0], "some": range(3)}[failed]:
            values[index] = self.value(strings[index])
        optimizer.tell(strings, values)
        asked = self._run(optimizer, 2)
        assert not {space.key(string) for string in strings} & {space.key(string) for string in asked}, (
            "strings that have failed were asked for again"
        )

    def test_equal_values_are_survived(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        optimizer = self._optimizer(make_strategy, space)
        for _ in range(2):
            strings = optimizer.ask()
            assert strings
            optimizer.tell(strings, [1.0] * len(strings))

    def test_pending_strings_are_not_asked_for_again(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        optimizer = self._started(make_strategy, space)
        first, second = optimizer.ask(2), optimizer.ask(2)
        keys = [space.key(string) for string in [*first, *second]]
        assert len(set(keys)) == len(keys), f"pending strings were asked for again: {first}, then {second}"
        for string in reversed(keys):
            optimizer.tell([string], [self.value(string)])
        assert optimizer.pending == []
        optimizer.ask(1)

    def test_it_says_when_nothing_is_left(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        if not isinstance(space, PoolSpace):
            pytest.skip("the space is not a pool")
        optimizer = self._started(make_strategy, space)
        for _ in range(len(space)):
            try:
                strings = optimizer.ask(max(len(space) // 3, 1))
            except ExhaustedError:
                break
            optimizer.tell(strings, [self.value(string) for string in strings])
        else:
            raise AssertionError("the space is exhausted, and more strings were asked for")
        assert sorted(optimizer.observations.seen) == sorted(space.keys), "strings were left that nobody asked for"

    def test_it_recommends_a_measured_string_and_leaves_no_trace(
        self, make_strategy: Callable[[], Strategy], space: Space
    ) -> None:
        optimizer, other = (self._started(make_strategy, space) for _ in range(2))
        state = json.dumps(optimizer.state_dict())
        found = optimizer.recommend()
        assert optimizer.recommend().key == found.key, "two recommendations after the same results differ"
        assert found.status == "ok"
        assert json.dumps(optimizer.state_dict()) == state, "a recommendation has changed the state"
        assert self._run(optimizer, 1) == self._run(other, 1), "a recommendation has changed what is asked for next"

    def test_it_recommends_nothing_where_nothing_is_known(
        self, make_strategy: Callable[[], Strategy], space: Space
    ) -> None:
        with pytest.raises(ModelError):
            self._optimizer(make_strategy, space).recommend()

    def test_standard_errors_are_taken_where_it_says_so(
        self, make_strategy: Callable[[], Strategy], space: Space
    ) -> None:
        if not make_strategy().takes_noise_variance:
            pytest.skip("it does not say so")
        optimizer = self._optimizer(make_strategy, space)
        strings = optimizer.ask()
        errors = [0.1, *[None] * (len(strings) - 1)]
        optimizer.tell(strings, [self.value(string) for string in strings], standard_errors=errors)
        assert optimizer.ask()

    def test_parameters_are_named_numbers(self, make_strategy: Callable[[], Strategy], space: Space) -> None:
        optimizer = self._started(make_strategy, space)
        optimizer.ask()
        parameters = optimizer.hyperparameters
        assert all(isinstance(name, str) and isinstance(value, float) for name, value in parameters.items()), parameters

    def _optimizer(self, make_strategy: Callable[[], Strategy], space: Space) -> Optimizer:
        return Optimizer(space, strategy=make_strategy(), initial=self.initial, batch_size=self.batch_size, seed=3)

    def _started(self, make_strategy: Callable[[], Strategy], space: Space) -> Optimizer:
        """With the initial strings evaluated, one of which has failed."""
        optimizer = self._optimizer(make_strategy, space)
        strings = optimizer.ask()
        optimizer.tell(strings, [float("nan"), *(self.value(string) for string in strings[1:])])
        return optimizer

    def _run(self, optimizer: Optimizer, batches: int) -> list[str]:
        asked: list[str] = []
        for _ in range(batches):
            strings = optimizer.ask()
            asked += strings
            optimizer.tell(strings, [self.value(string) for string in strings])
        return asked


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
