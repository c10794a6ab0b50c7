"""The table of everything measured."""

import math

import numpy as np

from seqopt.data import Data, Observation, Outcome, Query


def test_rows_without_some_values_keep_their_places() -> None:
    rows = [
        Observation("A", "A", "ok", (1.0, math.nan), (0.5,)),
        Observation("B", "B", "pending"),
        Observation("C", "C", "failed"),
        Observation("D", "D", "ok", (4.0, 5.0)),
    ]
    data = Data.of(rows, (Outcome("potency"), Outcome("solubility", role="constraint", bound=1.0)))
    np.testing.assert_array_equal(data.values, [[1.0, math.nan], [math.nan, math.nan], [4.0, 5.0]])
    np.testing.assert_array_equal(data.noise_variance, [[0.5, math.nan], [math.nan, math.nan], [math.nan, math.nan]])
    assert data.failed.tolist() == [False, True, False]
    assert data.queries == (Query("A"), Query("C"), Query("D"))


def test_no_rows_make_an_empty_table() -> None:
    assert Data.of([]).values.shape == (0, 1)


def test_a_row_makes_its_query_once() -> None:
    # A search of 10,000 strings would make as many for each string that it asks for.
    row = Observation("A", "A", "ok", (1.0,), context=(("assay", "cheap"),))
    assert row.query is row.query
    assert row.query == Query("A", {"assay": "cheap"})
