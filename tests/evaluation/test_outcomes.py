"""Objectives that measure several things, or are asked how to measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seqopt.data import Query
from seqopt.evaluation import Evaluation, Evaluator, call

ROWS = [[1.0, 2.0], [3.0, math.nan]]


@pytest.mark.parametrize(
    "returned",
    [ROWS, np.array(ROWS), pd.DataFrame(ROWS), tuple(map(tuple, ROWS))],
    ids=["list", "array", "table", "tuple"],
)
def test_rows_of_numbers_are_taken_in_any_form(returned: Any) -> None:
    found = call(lambda strings: returned, ["A", "B"], 2)
    assert found is not None
    assert [one.status for one in found] == ["ok", "ok"]
    np.testing.assert_array_equal([one.values for one in found], ROWS)


def test_what_is_no_value_of_one_outcome_harms_neither_the_others_nor_other_strings() -> None:
    rows: list[Any] = [[math.nan, 2.0], [math.nan, math.inf], [1.0], "ab", [None, "x"], [1.0, 2.0]]
    found = call(lambda strings: rows, list("ABCDEF"), 2)
    assert found is not None
    assert [one.status for one in found] == ["ok", "failed", "failed", "failed", "failed", "ok"]
    assert [one.error for one in found[1:4]] == [
        "the objective returned nan",
        "the objective returned [1.0], expected 2 numbers",
        "the objective returned 'ab', expected 2 numbers",
    ]


def test_one_string_with_two_values_is_not_two_strings() -> None:
    (found,) = call(lambda strings: [[1.0, 2.0]], ["A"], 2) or [None]
    assert isinstance(found, Evaluation)
    assert found.values == (1.0, 2.0)
    (found,) = call(lambda strings: [1.0, 2.0], ["A"], 2) or [None]
    assert isinstance(found, Evaluation)
    assert found.error == "the objective returned 2 rows, expected 1 for 1 string, with 2 values each"


@pytest.mark.parametrize("workers", [1, 2])
def test_queries_come_back_as_strings_with_their_contexts(workers: int) -> None:
    queries = [Query("AB", {"fidelity": "assay"}), Query("AB", {"fidelity": "docking"})]
    with Evaluator(
        lambda items: [float(item.get("fidelity") == "assay") for item in items], workers=workers, timeout=60
    ) as evaluator:
        found = evaluator.evaluate(queries)
    assert [(one.string, dict(one.context), one.value) for one in found] == [
        ("AB", {"fidelity": "assay"}, 1.0),
        ("AB", {"fidelity": "docking"}, 0.0),
    ]
    assert [one.item for one in found] == queries
