"""What `seqopt.evaluation.Evaluator` relies on in an objective."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from seqopt.evaluation import Evaluation, Evaluator, ObjectiveFunction


class ObjectiveConformance:
    """Tests of an objective, a function from a list of strings to as many numbers.

    Inherit them, and override the fixtures ``objective`` and ``strings``; where there are strings that cannot be
    scored, ``bad_strings``, too. That the objective can be sent to worker processes is asked of it if ``in_processes``
    says so: what cannot be pickled, such as a function typed into a notebook, is run in threads, which no time-out can
    stop.

    Attributes:
        deterministic: Whether the same string has the same value at every call. Without that only the number of values
            is looked at, and that they are finite.
        in_processes: Whether the objective is meant for worker processes, hence can be pickled.
        rtol: Relative difference that is allowed between values of the same string, for instance 1e-5 for a neural
            network in single precision, whose rounding depends on what else is in the list.

    Example:
        >>> from seqopt.objectives import logp
        >>> class TestLogP(ObjectiveConformance):
        ...     @pytest.fixture
        ...     def objective(self) -> ObjectiveFunction:
        ...         return logp
        ...     @pytest.fixture
        ...     def strings(self) -> list[str]:
        ...         return ["CCO", "c1ccccc1"]
        ...     @pytest.fixture
        ...     def bad_strings(self) -> list[str]:
        ...         return ["C1CC"]
    """

    deterministic: bool = True
    in_processes: bool = True
    rtol: float = 0.0

    @pytest.fixture
    def objective(self) -> ObjectiveFunction:
        """The objective."""
        raise NotImplementedError("override the fixture objective, so that it returns the objective to be tested")

    @pytest.fixture
    def strings(self) -> list[str]:
        """At least two different strings that can be scored, best with different values."""
        raise NotImplementedError("override the fixture strings, so that it returns strings that can be scored")

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        """Strings that cannot be scored; by default none."""
        return []

    def test_there_are_different_strings(self, strings: list[str]) -> None:
        assert len(set(strings)) > 1, "the fixture strings must return at least two different strings"

    def test_a_list_gets_a_finite_number_for_each_string(
        self, objective: ObjectiveFunction, strings: list[str]
    ) -> None:
        for n in (len(strings), 1, 2):
            values = _values(objective, strings[:n])
            bad = [string for string, value in zip(strings, values, strict=False) if not np.isfinite(value)]
            assert not bad, f"strings that can be scored have values that are not finite: {bad}"

    def test_the_list_is_left_as_it_was(self, objective: ObjectiveFunction, strings: list[str]) -> None:
        given = list(strings)
        objective(given)
        assert given == strings, "the objective has changed the list that it was given"

    def test_values_stand_in_the_order_of_the_strings(self, objective: ObjectiveFunction, strings: list[str]) -> None:
        forward, backward = _values(objective, strings), _values(objective, strings[::-1])
        self._same(backward[::-1], forward, strings, "differ when the list is turned round")

    def test_a_chunk_has_the_values_of_its_strings(self, objective: ObjectiveFunction, strings: list[str]) -> None:
        alone = np.array([_values(objective, [string])[0] for string in strings])
        self._same(_values(objective, strings), alone, strings, "differ between a list and each string alone")

    def test_the_same_call_has_the_same_values(self, objective: ObjectiveFunction, strings: list[str]) -> None:
        self._same(
            _values(objective, strings),
            _values(objective, strings),
            strings,
            "differ between two calls: if that is noise, set deterministic = False",
        )

    def test_equal_strings_have_a_value_each(self, objective: ObjectiveFunction, strings: list[str]) -> None:
        values = _values(objective, [*strings, *strings])
        self._same(values[len(strings) :], values[: len(strings)], strings, "differ where a string stands twice")

    def test_bad_strings_fail_and_change_no_other(
        self, objective: ObjectiveFunction, strings: list[str], bad_strings: list[str]
    ) -> None:
        if not bad_strings:
            pytest.skip("the fixture bad_strings returns none")
        mixed = [string for pair in zip(bad_strings, strings, strict=False) for string in pair]
        mixed += [*strings[len(bad_strings) :], *bad_strings[len(strings) :]]
        for chunk_size in (1, len(mixed)):
            results = Evaluator(objective, chunk_size=chunk_size).evaluate(mixed)
            passed = [result.string for result in results if result.ok and result.string in bad_strings]
            assert not passed, f"bad strings have values: {passed}. Return NaN for them, or raise an exception"
            self._same(
                _values_of(results, strings),
                _values_of(Evaluator(objective).evaluate(strings), strings),
                strings,
                "differ when bad strings stand beside them",
            )

    def test_it_says_correctly_how_many_strings_it_takes(self, objective: ObjectiveFunction) -> None:
        assert Evaluator(objective).chunk_size >= 1  # which refuses anything else

    def test_a_copy_in_a_worker_process_has_the_same_values(
        self, objective: ObjectiveFunction, strings: list[str]
    ) -> None:
        if not self.in_processes:
            pytest.skip("in_processes is False")
        expected = _values(objective, strings)
        try:
            copy = pickle.loads(pickle.dumps(objective))
        except Exception as error:
            raise AssertionError(
                f"the objective cannot be pickled ({type(error).__name__}: {error}): define it at the top of a module, "
                "open files and connections when it is called, or set in_processes = False"
            ) from error
        self._same(_values(copy, strings), expected, strings, "differ in a pickled copy")

    def _same(
        self, found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], strings: Sequence[str], how: str
    ) -> None:
        if not self.deterministic:
            return
        wrong = [
            f"{string!r}: {a!r} and {b!r}"
            for string, a, b in zip(strings, found.tolist(), expected.tolist(), strict=True)
            # Failures are equal, too.
            if not np.isclose(a, b, rtol=self.rtol, atol=0.0, equal_nan=True)
        ]
        assert not wrong, f"values {how}: {'; '.join(wrong)}"


def _values(objective: ObjectiveFunction, strings: Sequence[str]) -> npt.NDArray[np.float64]:
    returned = objective(list(strings))
    values = np.asarray(returned, dtype=np.float64)
    assert values.ndim > 0, (
        f"the objective returned {returned!r} for a list of {len(strings)} strings: it must return a list with one "
        "number for each"
    )
    assert values.size == len(strings), f"the objective returned {values.size} values for {len(strings)} strings"
    return values.reshape(-1)


def _values_of(results: Sequence[Evaluation], strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Values of those results that are of ``strings``."""
    found = {result.string: result.value for result in results}
    return np.array([found[string] for string in strings])
