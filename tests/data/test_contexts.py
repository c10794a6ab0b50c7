"""Targets that cannot be measured themselves, and variables that are open."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.data import Contexts, Query, as_context
from seqopt.errors import InputError
from seqopt.utils.config import from_config

NAMES = st.text(min_size=1, max_size=5).filter(lambda text: text == text.strip())


@settings(max_examples=30, deadline=None)
@given(st.lists(NAMES, unique=True, min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_the_mean_over_folds_is_meant_and_cannot_be_measured(levels, cost):
    contexts = Contexts.of_folds("fold", levels, cost)
    assert (contexts.target, contexts.latent, contexts.open, contexts.names) == ((), True, None, ("fold",))
    assert {contexts.cost(Query("A", {"fold": level})) for level in levels} == {cost}
    with pytest.raises(InputError, match=r"cannot be measured itself: say on which fold .* such as Query\('...', "):
        contexts.check(())
    with pytest.raises(InputError, match="is not one of this search"):
        contexts.check(as_context({"fold": "no such fold"}))
    assert [contexts.beginning(place) for place in range(2 * len(levels))] == 2 * list(contexts.possible)


@settings(max_examples=30, deadline=None)
@given(st.lists(NAMES, unique=True, max_size=4), NAMES, st.sets(st.integers(1, 6)))
def test_any_text_is_a_plate_and_there_is_always_a_fresh_one(known, other, taken):
    contexts = Contexts.of_plates(known=known, cost=2.0)
    assert (contexts.latent, contexts.open, contexts.names) == (True, "plate", ("plate",))
    assert contexts.cost(Query("A", {"plate": other})) == 2.0
    assert contexts.level("plate", other) == other
    for wrong in ({"plate": 3.0}, {"fold": "P1"}, {"plate": "P1", "fold": "a"}):
        with pytest.raises(InputError, match="any plate named by a text"):
            contexts.check(as_context(wrong))
    with pytest.raises(InputError, match="say on which plate"):
        contexts.check(())
    used = [f"P{n}" if n % 2 else as_context({"plate": f"P{n}"}) for n in taken]
    ((name, fresh),) = contexts.fresh(used)
    assert name == "plate"
    smaller = {f"P{n}" for n in range(1, int(fresh[1:]))}
    met = set(known) | {f"P{n}" for n in taken}
    assert fresh not in met
    assert smaller <= met  # none is left out


@pytest.mark.parametrize(
    "contexts",
    [
        Contexts.of_folds("fold", [1, 2]),
        Contexts.of_plates("well", known=["A"], cost=0.5),
        Contexts.of_levels("f", {"a": 1.0, "b": 2.0}, target="b"),
    ],
)
def test_a_description_makes_them_again(contexts):
    assert from_config(json.loads(json.dumps(contexts.config()))) == contexts
    assert ("open" in contexts.config()) == (contexts.open is not None)


def test_closed_contexts_are_described_as_ever():
    found = Contexts.of_levels("f", {"a": 1.0}, target="a").config()
    assert sorted(found) == ["costs", "possible", "target", "type"]


def test_contexts_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="at least one context"):
        Contexts.of_folds("fold", [])
    for cost in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="expected a positive number"):
            Contexts.of_plates(cost=cost)
    one = as_context({"plate": "P1"})
    with pytest.raises(InputError, match="with plate open"):
        Contexts((one,), one, (1.0,), "plate")
    for other in ({"plate": 1}, {"fold": "a"}, {"plate": "P1", "dose": 1}):
        with pytest.raises(InputError, match="which alone is open"):
            Contexts((as_context(other),), (), (1.0,), "plate")
    with pytest.raises(InputError, match="no variable of these contexts is open"):
        Contexts.of_folds("fold", ["a"]).fresh([])
    with pytest.raises(InputError, match="neither begins nor ends blank"):
        Contexts.of_plates().level("plate", " ")
