"""Results of other assays: what a model sees of them, and what a search makes of that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqopt import CandidateSet, Optimizer
from seqopt.acquisition import ACQUISITIONS
from seqopt.data import Contexts, Data, Observation, Query
from seqopt.errors import InputError
from seqopt.models.contexts import coregionalized
from seqopt.strategies import ModelBased, MultiFidelity
from seqopt.strategies.warm import OtherAssay, WarmFidelity, WarmStart, joined, warm_started, with_levels

POOL = [a + b + c for a in "ABC" for b in "ABC" for c in "AB"]
CONTEXTS = Contexts.of_levels("fidelity", {"cheap": 0.1, "dear": 1.0}, target="dear")


def score(string: str) -> float:
    return string.count("B") + 0.5 * string.count("C")


def other(strings: list[str], scale: float = -7.0, offset: float = 100.0) -> OtherAssay:
    return OtherAssay("old", {string: offset + scale * score(string) for string in strings})


def searched(acquisition: str = "gibbon", scale: float = -7.0, offset: float = 100.0) -> Optimizer:
    strategy = WarmStart([other(POOL[1::2], scale, offset)], "activity", "ngrams", acquisition)
    optimizer = Optimizer(CandidateSet(POOL), strategy=strategy, initial=2, batch_size=3, seed=0)
    told = POOL[0:10:2]
    optimizer.tell(told, [score(string) for string in told])
    return optimizer


DISAGREEMENTS = ("sal", "bald", "bqbc")


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", [name for name in ACQUISITIONS if name not in ("random", *DISAGREEMENTS)])
def test_any_acquisition_function_chooses_new_strings_once(acquisition: str) -> None:
    chosen = searched(acquisition).ask()
    assert len(set(chosen)) == 3
    assert not set(chosen) & set(POOL[0:10:2])
    assert all(query.context == () for query in chosen.queries)


def test_disagreement_of_draws_is_refused_where_there_is_one() -> None:
    with pytest.raises(InputError, match=r"acquisition function sal asks what draws .* StringGP has one: .* ssk-bayes"):
        searched("sal")


def test_units_and_direction_of_the_other_assay_do_not_matter() -> None:
    keys = POOL[11:]
    one, two = (searched(scale=scale, offset=offset) for scale, offset in ((-7.0, 100.0), (-0.02, -3.0)))
    np.testing.assert_allclose(one.predict(keys)[0], two.predict(keys)[0], atol=1e-4)
    assert list(one.ask()) == list(two.ask())
    # Of strings that only the other assay knows, the order is right although small is good there.
    known = POOL[11::2]
    predicted = one.predict(known)[0]
    assert np.corrcoef(predicted, [score(string) for string in known])[0, 1] > 0.9


def test_the_model_is_that_of_the_same_queries_told_as_levels() -> None:
    optimizer = searched()
    levels = with_levels(Contexts.of_levels("assay", {"activity": 1.0}, "activity"), [other(POOL[1::2])])
    by_hand = coregionalized(CandidateSet(POOL), levels, "ngrams")
    told = POOL[0:10:2]
    items = [*told, *(Query(key, {"assay": "old"}) for key in POOL[1::2])]
    values = [*map(score, told), *(100.0 - 7.0 * score(key) for key in POOL[1::2])]
    by_hand.fit(items, values, rng=np.random.default_rng([0, 0, 2]))  # type: ignore[arg-type]
    np.testing.assert_allclose(optimizer.predict(POOL)[0], by_hand.predict(POOL)[0], atol=0.05)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True),
    st.lists(st.floats(0.1, 10.0), max_size=4),
)
def test_joined_data_hold_both_and_change_nothing_of_the_first(values: list[float], own: list[float]) -> None:
    rows = [Observation(f"s{place}", f"s{place}", "ok", (value,)) for place, value in enumerate(own)]
    data = Data.of(rows)
    assay = OtherAssay("old", {f"t{place}": value for place, value in enumerate(values)})
    found = joined(data, "assay", [assay])
    assert found.queries[: len(own)] == data.queries
    assert found.values[:, 0].tolist() == [*own, *values]
    assert {query.context for query in found.queries[len(own) :]} == {(("assay", "old"),)}
    assert joined(data, "assay", []) is data


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"A": 1.0}, "1 values; expected two"),
        ({"A": 1.0, "B": 1.0}, "equal 1"),
        ({"A": 1.0, "B": float("nan")}, "not finite"),
    ],
)
def test_what_tells_nothing_is_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OtherAssay("old", values)


def test_contexts_that_cannot_be_extended_are_refused() -> None:
    two = Contexts(((("a", "x"), ("b", "y")), (("a", "z"), ("b", "y"))), (("a", "x"), ("b", "y")), (1.0, 1.0))
    with pytest.raises(InputError, match=r"differ in a and b.*begin a campaign with that target alone"):
        with_levels(two, [other(POOL)])
    with pytest.raises(InputError, match="have a target in common"):
        with_levels(Contexts.of_folds("fold", [1, 2]), [other(POOL)])
    cheap = OtherAssay("cheap", {"A": 1.0, "B": 2.0})
    with pytest.raises(InputError, match="cheap is a fidelity of this search already"):
        with_levels(CONTEXTS, [cheap])


def test_who_decides_is_found_or_refused() -> None:
    parts = {"surrogate": "ngrams", "acquisition": "logei", "search": "auto"}
    assert isinstance(warm_started(parts, [other(POOL)], {}, "activity", None), WarmStart)
    assert isinstance(warm_started({"strategy": ModelBased("ssk")}, [other(POOL)], {}, "activity", None), WarmStart)
    assert isinstance(warm_started({"strategy": MultiFidelity()}, [other(POOL)], {}, "a", CONTEXTS), WarmFidelity)
    with pytest.raises(InputError, match="a model that was given as an object decides"):
        warm_started(parts, [other(POOL)], {}, "activity", CONTEXTS)


def test_several_fidelities_are_searched_without_the_other_assay() -> None:
    strategy = WarmFidelity([other(POOL[1::2])], {})
    optimizer = Optimizer(CandidateSet(POOL), strategy=strategy, contexts=CONTEXTS, initial=2, batch_size=4, seed=0)
    told = POOL[0:8:2]
    optimizer.tell([Query(key, {"fidelity": "dear"}) for key in told], [score(key) for key in told])
    assert {query.get("fidelity") for query in optimizer.ask().queries} <= {"cheap", "dear"}
    assert optimizer.recommend().string in told
