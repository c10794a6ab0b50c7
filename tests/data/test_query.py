"""Queries and contexts."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.data import Contexts, Query, as_context, context_of, key_of, targets_of, written
from seqopt.errors import InputError

TEXTS = st.text(min_size=1, max_size=5).filter(lambda text: text == text.strip())
VALUES = st.one_of(TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.integers(-100, 100))
CONTEXT = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.text(), CONTEXT, st.randoms())
def test_a_context_is_what_it_says_in_whatever_order_it_is_written(key, context, random):
    pairs = list(context.items())
    random.shuffle(pairs)
    query, other = Query(key, context), Query(key, tuple(pairs))
    assert query == other
    assert hash(query) == hash(other)
    assert as_context(query.context) == query.context  # its one form
    assert [name for name, _ in query.context] == sorted(context)
    for name, value in context.items():
        assert query.get(name) == value
    assert query.get("not there at all") is None
    assert (key_of(query), context_of(query)) == (key, query.context)
    assert pickle.loads(pickle.dumps(query)) == query


def test_integers_and_floats_are_one_value_and_texts_another():
    assert Query("A", {"f": 1}) == Query("A", {"f": 1.0}) != Query("A", {"f": "1.0"})


def test_what_cannot_be_a_context_is_named():
    with pytest.raises(InputError, match="names f, f: each name once"):
        as_context([("f", 1.0), ("f", 2.0)])
    for text in ("", " assay", "assay\n"):
        with pytest.raises(InputError, match="neither begins nor ends blank"):
            as_context({"f": text})
    assert str(as_context({"f": -0.0})) == "(('f', 0.0),)"
    with pytest.raises(InputError, match="may be '1', a text, and the same number"):
        Contexts.of_levels("f", {"1": 1.0, 1.0: 2.0}, target=1.0)
    for value in (float("nan"), float("inf"), None, [1]):
        with pytest.raises(InputError, match=r"the context 'f' is .*; expected a string or a finite number"):
            Query("A", {"f": value})


def test_plain_strings_are_their_own_targets():
    assert targets_of(["A", Query("B")]) is None
    assert targets_of(["A", Query("B", {"f": 1})]) == ["A", "B"]
    assert (key_of("A"), context_of("A")) == ("A", ())


def contexts():
    return Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1}, target="assay")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_every_string_is_paired_with_every_context(keys):
    queries = contexts().queries(keys)
    assert len(queries) == 2 * len(keys)
    assert [query.key for query in queries] == keys * 2
    assert [query.get("fidelity") for query in queries] == ["docking"] * len(keys) + ["assay"] * len(keys)
    assert {contexts().cost(query) for query in queries} == ({0.01, 1.0} if keys else set())


def test_contexts_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match=r"the target fidelity=guess is not among fidelity=docking, fidelity=assay"):
        Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1}, target="guess")
    with pytest.raises(InputError, match="the cost of fidelity=docking is 0"):
        Contexts.of_levels("fidelity", {"docking": 0.0, "assay": 1}, target="assay")
    context = as_context({"f": 1})
    with pytest.raises(InputError, match="given twice"):
        Contexts((context, context), context, (1.0, 1.0))
    with pytest.raises(InputError, match="1 contexts but 2 costs"):
        Contexts((context,), context, (1.0, 1.0))
    with pytest.raises(InputError, match=r"the context plate=P1 is not one of this search: it has fidelity=docking"):
        contexts().cost(Query("A", {"plate": "P1"}))
    assert written(()) == "no context"
