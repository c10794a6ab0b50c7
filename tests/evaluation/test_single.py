"""Functions of one string as objectives: recognised where that is certain, explained where it is not."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pytest
from rdkit.Chem import Descriptors, MolFromSmiles

from seqopt.data import Query
from seqopt.evaluation import Evaluator, evaluate, per_string
from seqopt.evaluation import single as single_module
from seqopt.evaluation.judging import call
from seqopt.objectives import Objective, resolve_objective


def length(smiles: str) -> float:
    return float(len(smiles))


def values(objective: Any, strings: list[str] | None = None, **options: Any) -> list[float]:
    return [result.value for result in evaluate(objective, strings or ["C", "CCO", "CC"], **options)]


class Scorer:
    def __call__(self, smiles: str) -> int:
        return len(smiles)


def test_an_annotation_says_so_and_no_list_is_ever_given() -> None:
    given: list[object] = []

    def noted(smiles: str) -> float:
        given.append(smiles)
        return len(smiles)

    assert values(noted) == [1, 3, 2]
    assert given == ["C", "CCO", "CC"]
    assert values(Scorer()) == values(length, chunk_size=3) == values(length, workers=2) == [1, 3, 2]

    def of_lists(smiles: list[str]) -> list[float]:
        return [len(one) for one in smiles]

    assert values(of_lists) == [1, 3, 2]


def test_a_function_is_wrapped_by_hand_and_sent_to_processes() -> None:
    wrapped = per_string(length)
    assert wrapped.name == "length"
    assert pickle.loads(pickle.dumps(wrapped)) == wrapped
    assert values(per_string(lambda smiles: smiles.count("C"))) == [1, 2, 2]
    assert values(Objective("mine", per_string(lambda smiles: smiles.count("C")))) == [1, 2, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda smiles: Descriptors.MolWt(MolFromSmiles(smiles)),
        lambda smiles: len(smiles.upper()),
        lambda smiles: {"C": 1, "CCO": 3, "CC": 2}[smiles],
        lambda smiles: np.float32(len(smiles + "")),
    ],
)
def test_what_refuses_a_list_at_once_and_gives_a_number_for_a_string_takes_strings(function: Any) -> None:
    expected = [function(string) for string in ("C", "CCO", "CC")]
    assert values(function) == pytest.approx(expected)
    assert values(Objective("mine", function)) == pytest.approx(expected)
    assert values(function, chunk_size=3) == pytest.approx(expected)


def test_it_is_given_a_list_only_once() -> None:
    given: list[object] = []

    def weight(smiles: Any) -> float:
        given.append(smiles)
        return len(smiles.upper())

    assert values(weight) == [1, 3, 2]
    assert given == [["C"], "C", "CCO", "CC"]


def test_several_outcomes_and_ways_to_measure_are_no_different() -> None:
    def rows(smiles: Any) -> tuple[float, float]:
        return len(smiles.upper()), 2.0

    with Evaluator(rows, columns=2) as evaluator:
        assert [result.values for result in evaluator.evaluate(["C", "CCO"])] == [(1, 2), (3, 2)]

    def of_query(query: Query) -> float:
        return len(query.key)

    with Evaluator(of_query) as evaluator:
        queries = [Query("CC", (("fidelity", 0.5),)), Query("C", (("fidelity", 1.0),))]
        assert [result.value for result in evaluator.evaluate(queries)] == [2, 1]


def test_a_list_function_with_a_bug_is_not_mistaken_for_one_of_a_string() -> None:
    """Whatever it returns for the letters of a string, that is not a number."""

    def buggy(strings: Any) -> Any:
        found = [float(ord(letter[0])) for letter in strings]
        return found + strings.missing  # no list has that, and no string

    def concatenates(strings: Any) -> Any:
        return [1.0 for _ in strings] + 1  # can only concatenate list

    def doubles(strings: Any) -> Any:
        if isinstance(strings, list):
            raise TypeError("can only concatenate list (not int) to list")
        return [1.0 for _ in strings]

    for objective in (buggy, concatenates, doubles):
        for result in evaluate(objective, ["CCO", "CC"]):
            assert not result.ok
            assert "is this a function of one string?" in result.error
            assert "def f(smiles: str)" in result.error


def test_what_has_worked_for_long_before_it_failed_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_module, "PROMPT_SECONDS", 0.02)
    monkeypatch.setattr("seqopt.evaluation.judging.PROMPT_SECONDS", 0.02)
    given: list[object] = []

    def expensive(smiles: Any) -> float:
        given.append(smiles)
        time.sleep(0.05)
        return len(smiles.upper())

    (result,) = evaluate(expensive, ["CCO"])
    assert given == [["CCO"]]
    assert "is this a function of one string?" in result.error


@pytest.mark.parametrize("columns", [1, 2])
def test_values_by_their_strings_are_no_list_of_values(columns: int) -> None:
    (result,) = call(lambda strings: {string: [1.0, 2.0] for string in strings}, ["CCO"], columns) or []
    assert result.misshapen
    assert "returned a dict" in result.error
    assert "CCO" not in result.error


@pytest.mark.parametrize("returned", [3, 2.5, np.float64(3), np.array(3.0)])
def test_a_number_for_a_list_is_explained_and_nothing_is_guessed(returned: Any) -> None:
    """What adds up a list would be given the letters of a string, and return a number, too."""
    given: list[object] = []

    def adds(strings: Any) -> Any:
        given.append(strings)
        return returned

    (result,) = evaluate(adds, ["CCO"])
    assert given == [["CCO"]]
    assert result.misshapen
    assert not result.ok
    assert f"returned {float(returned):g}" in result.error.replace(".0:", ":")
    assert "seqopt.per_string(f)" in result.error


def test_what_is_the_fault_of_the_objective_is_told_from_that_of_a_string() -> None:
    def misshapen(value: Any, columns: int = 1) -> bool:
        with Evaluator(lambda strings: value, columns=columns) as evaluator:
            (result,) = evaluator.evaluate(["C"])
        return result.misshapen

    assert misshapen([1.0, 2.0])
    assert misshapen(np.ones((2, 2)))
    assert misshapen([[1.0, 2.0], [1.0, 2.0]], 2)
    # These are what objectives return for a string that they cannot score.
    assert not any(map(misshapen, ([float("nan")], [None], None, [], float("nan"), "failed", ["failed"])))


def test_functions_of_files_are_recognised_in_every_process(tmp_path: Any) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "def typed(smiles: str) -> float:\n    return len(smiles)\n"
        "def untyped(smiles):\n    return len(smiles.upper())\n"
        "def refused(smiles):\n    return smiles.count('C')\n"
    )
    typed, untyped, refused = (resolve_objective(f"{path}:{name}") for name in ("typed", "untyped", "refused"))
    assert typed.custom
    assert untyped.custom
    assert not resolve_objective("logp").custom
    assert np.array_equal(typed(["C", "CCO"]), [1, 3])
    for objective in (typed, untyped):
        assert values(objective) == values(objective, workers=2, timeout=60) == [1, 3, 2]
    assert evaluate(refused, ["CCO"])[0].misshapen
