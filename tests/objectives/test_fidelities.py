"""Objectives that are measured in several ways, and what may be wrong with their description."""

import pickle

import numpy as np
import pytest

from seqopt.data import Query
from seqopt.datasets import read_pool
from seqopt.errors import InputError
from seqopt.evaluation import call
from seqopt.objectives import ByFidelity, Fidelities, Fidelity
from seqopt.objectives.objective import FunctionReference

TABLE = """sequence,docking,flat,none,assay
AAAA,1.5,2,,0
AAAT,,2,,1
AATT,n/a,2,,2
TTTT,4.5,2,,4
TTTT,5.5,2,,4
"""


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text(TABLE)
    return read_pool(path, kind="text", values_column="assay", further_values=["Docking", "flat", "none"])


def rough(string: str) -> float:
    return float(len(string))


def lengths(strings):
    return [len(string) for string in strings]


def cheap(key):
    return Query(key, {"fidelity": "cheap"})


def dear(key):
    return Query(key, {"fidelity": "target"})


def test_each_query_is_given_to_the_function_of_its_fidelity():
    asked = []

    def exact(strings):
        asked.append(list(strings))
        return [-1.0 for _ in strings]

    ways = Fidelities.of({"cheap": (rough, 0.1)}, exact, None, 1.0)
    objective = ways.objective(exact, None)
    found = objective([dear("A"), cheap("AAA"), dear("AA")])
    np.testing.assert_array_equal(found, [-1.0, 3.0, -1.0])
    assert asked == [["A", "AA"]]
    assert [one.value for one in call(objective, [cheap("AAAA")])] == [4.0]


def test_a_function_of_one_string_without_annotation_is_recognised():
    ways = Fidelities.of({"cheap": (lambda string: len(string.strip("B")), 0.1)}, lengths, None, 1.0)
    assert ways.objective(lengths, None)([cheap("AAB"), dear("ABAB")]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("wrong", [lambda strings: [1.0, 2.0, 3.0], lambda strings: None, lambda strings: ["1.0"]])
def test_a_function_that_returns_something_else_has_failed(wrong):
    ways = Fidelities.of({"cheap": (wrong, 0.1)}, lengths, None, 1.0)
    (found,) = call(ways.objective(lengths, None), [cheap("A")])
    assert not found.ok
    assert found.error


def test_it_can_be_sent_to_another_process():
    function = FunctionReference("string", "capwords", ".")
    objective = ByFidelity("x", {"target": function, "cheap": function})
    assert pickle.loads(pickle.dumps(objective)) == objective


def test_columns_are_read_with_gaps_and_replicates_are_averaged(pool):
    np.testing.assert_array_equal(pool.further["docking"], [1.5, np.nan, np.nan, 5.0])
    ways = Fidelities.of({"docking": ("column:docking", 0.1)}, "column:assay", None, 1.0)
    assert ways.target == "assay"
    assert ways.unavailable(pool) == {Query(key, {"fidelity": "docking"}) for key in ("AAAT", "AATT")}
    (remark,) = ways.remarks(pool)
    assert "2 of 4 candidates have no number" in remark
    objective = ways.objective(lengths, pool)
    assert objective([Query("TTTT", {"fidelity": "docking"})]).tolist() == [5.0]


def test_a_constant_column_is_allowed_and_said(pool):
    ways = Fidelities.of({"flat": ("column:flat", 0.1)}, "column:assay", None, 1.0)
    assert ways.remarks(pool) == ["column 'flat' holds 2 throughout: flat tells nothing"]


def test_a_column_without_numbers_is_refused(pool):
    ways = Fidelities.of({"none": ("column:none", 0.1)}, "column:assay", None, 1.0)
    with pytest.raises(InputError, match="holds no number: leave the fidelity 'none' out"):
        ways.objective(lengths, pool)
    other = Fidelities.of({"late": ("column:late", 0.1)}, "column:assay", None, 1.0)
    with pytest.raises(InputError, match=r"was not read: read_pool"):
        other.objective(lengths, pool)


def test_a_column_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "pool.csv"
    path.write_text(TABLE)
    with pytest.raises(InputError, match=r"no column 'dockin'.*Did you mean 'docking'"):
        read_pool(path, kind="text", values_column="assay", further_values=["dockin"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "fidelities is empty"),
        ({"cheap": (lengths, 0)}, "cost of cheap is 0; expected a positive"),
        ({"cheap": (lengths, -0.1)}, "cost of cheap is -0.1"),
        ({"cheap": (lengths, float("nan"))}, "cost of cheap is nan"),
        ({"cheap": (lengths, "much")}, "expected its cost"),
        ({"cheap": (lengths,)}, "expected a pair"),
        ({"cheap": True}, "expected a positive number|cost of cheap is True"),
        ({"target": (lengths, 0.1)}, "'target' is the target, too"),
        ({"cheap": (lengths, 0.1), "cheaper": 0.1}, "some have only a cost"),
        ({"a": ("column:docking", 0.1), "b": ("column:Docking", 0.2)}, "column 'docking' is given twice"),
        ({" a": (lengths, 0.1)}, "neither begins nor ends blank"),
        ([Fidelity("a", "column:a", 0.1), Fidelity("A", "column:a", 0.1)], "'a' is given twice"),
    ],
)
def test_what_cannot_be_used_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        Fidelities.of(given, lengths, None, 1.0)


def test_the_column_of_the_objective_is_no_cheap_one():
    with pytest.raises(InputError, match="column 'assay' is given twice"):
        Fidelities.of({"cheap": ("column:assay", 0.1)}, "column:assay", None, 1.0)


@pytest.mark.parametrize("text", ["docking", "column:docking", "docking:0.1", "column:docking:much", "column::0.1"])
def test_a_fidelity_of_the_command_line_that_is_incomplete(text):
    with pytest.raises(InputError, match=r"0\.01"):
        Fidelity.parse(text)


def test_a_fidelity_of_the_command_line():
    found = Fidelity.parse("lab/scoring.py:dock:0.25")
    assert (found.name, found.score, found.cost, found.column) == ("dock", "lab/scoring.py:dock", 0.25, None)
    with pytest.raises(InputError, match="cost of dock is -1"):
        Fidelity.parse("scoring.py:dock:-1")
