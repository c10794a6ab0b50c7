"""The table of results as models see it, and what outcomes say of values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt import CandidateSet, Optimizer
from seqopt.data import Data, Identity, Log10, Observation, Outcome, Query, resolve_transform
from seqopt.errors import InputError
from seqopt.strategies import RandomStrategy

OUTCOMES = (
    Outcome("Ki", "minimize", transform=Log10()),
    Outcome("solubility", role="constraint", bound=10.0),
)


def row(key, values=(), status="ok", noise=None, context=()):
    return Observation(key, key, status, tuple(values), noise, context=context)


def table():
    return Data.of(
        [
            row("A", (100.0, 12.0)),
            row("B", (math.nan, 8.0)),
            row("C", status="pending"),
            row("D", status="failed"),
            row("E", (10.0, math.nan), noise=(4.0,), context=(("plate", "P1"),)),
        ],
        OUTCOMES,
    )


def test_several_outcomes_some_of_which_are_missing():
    data = table()
    assert len(data) == 4  # the pending one is not a result
    assert data.failed.tolist() == [False, False, True, False]
    assert np.isnan(data.values[[1, 3], [0, 1]]).all()
    assert data.objective == 0
    measured = data.measured()
    assert measured.items == ["A", Query("E", {"plate": "P1"})]
    np.testing.assert_allclose(measured.targets, [-2.0, -1.0])  # minimised, and log10 of 100 and 10
    assert measured.rows.tolist() == [0, 3]
    # Var log10 y is about Var y / (y ln 10)^2; 0 where nothing is known.
    np.testing.assert_allclose(measured.noise_variance, [0.0, 4.0 / (10 * math.log(10)) ** 2])
    other = data.measured(data.column("solubility"))
    assert other.items == ["A", "B"]
    assert other.noise_variance is None
    with pytest.raises(InputError, match="no outcome 'pKa' in this search: it has 'Ki', 'solubility'"):
        data.column("pKa")


def test_nothing_measured_is_an_empty_table():
    data = Data.of([row("A", status="failed"), row("B", status="pending")])
    assert len(data) == 1
    assert len(data.measured()) == 0
    assert data.values.shape == (1, 1)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=12),
    st.sampled_from(["maximize", "minimize"]),
)
def test_the_largest_target_is_the_best_value(values, direction):
    rows = [
        row(f"s{place}", () if v is None else (v,), "failed" if v is None else "ok") for place, v in enumerate(values)
    ]
    data = Data.of(rows, (Outcome("y", direction),))
    measured = data.measured()
    known = [value for value in values if value is not None]
    assert len(measured) == len(known)
    assert data.failed.sum() == len(values) - len(known)
    if known:
        best = data.values[measured.rows[int(np.argmax(measured.targets))], 0]
        assert best == (max(known) if direction == "maximize" else min(known))


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 1e6))
def test_transforms_undo_themselves(value):
    for transform in (Log10(), Identity()):
        assert transform.inverse(transform.forward(value)) == pytest.approx(value)
    assert resolve_transform(None).forward(value) == value


def test_outcomes_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="direction is 'up'; expected 'maximize' or 'minimize'"):
        Outcome(direction="up")
    with pytest.raises(InputError, match="role of 'y' is 'wish'"):
        Outcome("y", role="wish")
    with pytest.raises(InputError, match="a constraint needs a bound"):
        Outcome("y", role="constraint")
    with pytest.raises(InputError, match="nothing else has one"):
        Outcome("y", bound=1.0)
    with pytest.raises(InputError, match="log10 needs positive values, got -1"):
        OUTCOMES[0].target(-1.0)
    low = Outcome("toxicity", "minimize", role="constraint", bound=1.0)
    assert (low.accepts(0.5), low.accepts(1.0), low.accepts(1.5)) == (True, True, False)


def test_an_optimiser_keeps_several_values_of_a_string_through_its_state():
    def made():
        return Optimizer(
            CandidateSet(["A", "B", "C", "D"], kind="text"), strategy=RandomStrategy(), outcomes=OUTCOMES, initial=2
        )

    optimizer = made()
    optimizer.tell(["A", "B", "C"], [[1000.0, 3.0], [math.nan, 5.0], [math.nan, math.nan]])
    assert [row.status for row in optimizer.observations.rows] == ["ok", "ok", "failed"]
    restored = made()
    restored.load_state_dict(optimizer.state_dict())
    for found in (optimizer, restored):
        data = found.state().data
        np.testing.assert_array_equal(data.values, [[1000.0, 3.0], [math.nan, 5.0], [math.nan, math.nan]])
        assert found.best.key == "A"
        assert found.ask() == ["D"]
    with pytest.raises(InputError, match=r"table of 1 x 2"):
        made().tell(["A"], [1.0])
    with pytest.raises(InputError, match="one objective, and that first"):
        Optimizer(["AAAB", "BAAA"], outcomes=OUTCOMES[::-1])


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
