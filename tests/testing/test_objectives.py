"""The conformance suite of objectives: the built-in ones pass it, and each broken one fails where it is broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqopt.evaluation import ObjectiveFunction
from seqopt.objectives import (
    CodonAdaptationIndex,
    GCContent,
    MinimumFreeEnergy,
    PatternCount,
    Similarity,
    logp,
    molecular_weight,
    penalized_logp,
    published_regression,
    qed,
    resolve_objective,
    sa_score,
)
from seqopt.testing.objectives import ObjectiveConformance

SMILES = ["CCO", "c1ccccc1O", "CC(=O)N"]


def _name(part: object) -> str:
    # repr of a function holds its address, which differs between the processes that run the tests.
    return part if isinstance(part, str) else getattr(part, "__name__", type(part).__name__)


GENES = ["ATGGCATGA", "ATGGGGTGA", "ATGGCGAAATGA"]


class TestOfMolecules(ObjectiveConformance):
    @pytest.fixture(params=[logp, molecular_weight, penalized_logp, qed, sa_score, Similarity("CCN"), "qed"], ids=_name)
    def objective(self, request: pytest.FixtureRequest) -> ObjectiveFunction:
        found: Any = request.param
        return resolve_objective(found) if isinstance(found, str) else found

    @pytest.fixture
    def strings(self) -> list[str]:
        return SMILES

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        return ["C1CC", "?"]


class TestOfGenes(ObjectiveConformance):
    @pytest.fixture(
        params=[CodonAdaptationIndex("human"), GCContent(), MinimumFreeEnergy(), "gc_distance:0.5"], ids=str
    )
    def objective(self, request: pytest.FixtureRequest) -> ObjectiveFunction:
        found: Any = request.param
        return resolve_objective(found) if isinstance(found, str) else found

    @pytest.fixture
    def strings(self) -> list[str]:
        return GENES

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        return ["ATGX", ""]


class TestOfFormulas(ObjectiveConformance):
    @pytest.fixture
    def objective(self) -> ObjectiveFunction:
        return published_regression()

    @pytest.fixture
    def strings(self) -> list[str]:
        return ["x", "x*x", "sin(x)"]

    @pytest.fixture
    def bad_strings(self) -> list[str]:
        return ["x +", "__import__('os')", "y", "1)"]


class TestPatternCount(ObjectiveConformance):
    @pytest.fixture
    def objective(self) -> ObjectiveFunction:
        return PatternCount("1?1")

    @pytest.fixture
    def strings(self) -> list[str]:
        return ["10101", "0", "111", ""]


class TestNoisyPatternCount(TestPatternCount):
    deterministic = False

    @pytest.fixture
    def objective(self) -> ObjectiveFunction:
        return PatternCount("1?1", noise_variance=1.0, seed=3)


def lengths(strings: list[str]) -> list[float]:
    return [float("nan") if "?" in string else float(len(string)) for string in strings]


def sorted_lengths(strings: list[str]) -> list[float]:
    return sorted(lengths(strings))


def relative(strings: list[str]) -> list[float]:
    return [length - np.nansum(lengths(strings)) for length in lengths(strings)]


def without_repeats(strings: list[str]) -> list[float]:
    return lengths(list(dict.fromkeys(strings)))


def of_one_string(string: list[str]) -> float:
    return float(len(string))


def of_the_first(strings: list[str]) -> list[float]:
    return lengths(strings[:1])


def emptying(strings: list[str]) -> list[float]:
    return [len(strings.pop(0)) for _ in range(len(strings))]


def forgiving(strings: list[str]) -> list[float]:
    return [float(len(string)) for string in strings]


def infinite(strings: list[str]) -> list[float]:
    return [float("inf") for _ in strings]


def infected(strings: list[str]) -> list[float]:
    """A bad string changes the values of the others."""
    return [value + sum("?" in string for string in strings) for value in lengths(strings)]


class Counting:
    def __init__(self) -> None:
        self.numbers = itertools.count()

    def __call__(self, strings: list[str]) -> list[float]:
        return [float(next(self.numbers)) for _ in strings]


def greedy(strings: list[str]) -> list[float]:
    return lengths(strings)


greedy.chunk_size = 0  # type: ignore[attr-defined]


class Forgetful:
    """Loses its settings on the way to another process."""

    def __init__(self) -> None:
        self.factor = 2.0

    def __call__(self, strings: list[str]) -> list[float]:
        return [self.factor * length for length in lengths(strings)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.factor = 1.0


def _local() -> Callable[[list[str]], list[float]]:
    return lambda strings: lengths(strings)


def failures(objective: Any, **settings: Any) -> set[str]:
    """The tests of the suite that an objective fails."""
    fixtures = {"objective": objective, "strings": ["a", "ccc", "bb"], "bad_strings": ["?", "a?"]}
    failed = set()
    for name, test in vars(ObjectiveConformance).items():
        if name.startswith("test_"):
            suite: Any = type("Suite", (ObjectiveConformance,), settings)()
            names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
            try:
                test(suite, **{key: fixtures[key] for key in names})
            except pytest.skip.Exception:
                pass
            except Exception:
                failed.add(name)
    return failed


BROKEN: list[tuple[Any, str]] = [
    (sorted_lengths, "in_the_order_of_the_strings"),
    (relative, "a_chunk_has_the_values_of_its_strings"),
    (without_repeats, "equal_strings_have_a_value_each"),
    (of_one_string, "a_list_gets_a_finite_number"),
    (of_the_first, "a_list_gets_a_finite_number"),
    (infinite, "a_list_gets_a_finite_number"),
    (emptying, "the_list_is_left_as_it_was"),
    (forgiving, "bad_strings_fail"),
    (infected, "bad_strings_fail"),
    (Counting(), "the_same_call_has_the_same_values"),
    (greedy, "how_many_strings_it_takes"),
    (Forgetful(), "a_copy_in_a_worker_process"),
    (_local(), "a_copy_in_a_worker_process"),
]


@pytest.mark.parametrize(("broken", "where"), BROKEN, ids=_name)
def test_a_broken_objective_fails(broken: Any, where: str) -> None:
    failed = failures(broken)
    assert any(where in name for name in failed), failed


def test_each_test_of_the_suite_fails_for_some_objective() -> None:
    tests = {name for name in vars(ObjectiveConformance) if name.startswith("test_")}
    found = set().union(*(failures(broken) for broken, _ in BROKEN))
    # That one looks at the strings.
    assert tests - found == {"test_there_are_different_strings"}
    with pytest.raises(AssertionError, match="at least two different strings"):
        ObjectiveConformance().test_there_are_different_strings(["a", "a"])


def test_a_good_objective_passes_and_one_may_be_noisy_or_local_or_rounded_if_it_says_so() -> None:
    assert failures(lengths) == set()
    assert failures(_local(), in_processes=False) == set()
    assert failures(lambda s: [x + 1e-7 * len(s) for x in lengths(s)], in_processes=False, rtol=1e-5) == set()
    assert failures(lambda s: [x + 1e-7 * len(s) for x in lengths(s)], in_processes=False) != set()
    noise = np.random.default_rng(0)
    assert (
        failures(lambda s: np.array(lengths(s)) + noise.normal(size=len(s)), deterministic=False, in_processes=False)
        == set()
    )
