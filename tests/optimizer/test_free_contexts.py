"""Batches where one way to measure is free, all of a batch shares one, or not everything can be paid for."""

import pytest

from seqopt import Optimizer
from seqopt.data import Contexts, Query
from seqopt.errors import ExhaustedError, InputError
from seqopt.strategies import MultiFidelity
from seqopt.strategies.random import RandomStrategy

POOL = [a + b + c for a in "ACD" for b in "ACD" for c in "ACD"]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
DOCKING, ASSAY = CONTEXTS.possible


def begun(strategy: object = None) -> Optimizer:
    optimizer = Optimizer(POOL, strategy=strategy or MultiFidelity(), contexts=CONTEXTS, initial=4, batch_size=3)
    told = [Query(key, {"fidelity": "assay"}) for key in POOL[:3]]
    told += [Query(key, {"fidelity": "docking"}) for key in POOL[:9]]
    optimizer.tell(told, [one.key.count("C") - 5.0 * (one.context == DOCKING) for one in told])
    return optimizer


@pytest.mark.parametrize("strategy", [None, RandomStrategy()])
@pytest.mark.parametrize("context", CONTEXTS.possible)
def test_only_what_is_free_is_asked_for_and_nothing_twice(strategy: object, context: object) -> None:
    optimizer = begun(strategy)
    found = optimizer.ask(5, only=context).queries  # type: ignore[arg-type]
    assert {one.context for one in found} == {context}
    measured = set(POOL[:9]) if context == DOCKING else set(POOL[:3])
    assert len({one.key for one in found} - measured) == 5


def test_a_batch_shares_one_context() -> None:
    found = begun().ask(6, shared=True).queries
    assert len({one.context for one in found}) == 1


def test_nothing_is_asked_for_that_cannot_be_paid_for() -> None:
    optimizer = begun()
    found = optimizer.ask(6, remaining=2.3).queries
    assert sum(map(CONTEXTS.cost, found)) <= 2.3
    optimizer = begun(RandomStrategy())
    assert len(optimizer.ask(6, remaining=2.3)) == 2
    # Sums of costs are rounded: three of 0.1 are 0.30000000000000004.
    assert len(optimizer.ask(3, only=DOCKING, remaining=0.3)) == 3
    with pytest.raises(ExhaustedError, match="pays for no measurement that may be made: one costs 1"):
        optimizer.ask(6, remaining=0.5)


def test_a_batch_begins_with_targets_while_too_few_are_known() -> None:
    optimizer = Optimizer(POOL, strategy=MultiFidelity(), contexts=CONTEXTS, initial=4, batch_size=4)
    told = [Query(key, {"fidelity": "docking"}) for key in POOL[:6]]
    optimizer.tell(told, [-8.0 - one.key.count("C") for one in told])
    batch = optimizer.ask()
    assert [one.context for one in batch.queries[:2]] == [ASSAY, ASSAY]
    # Where their values lie, nobody knows.
    rows = {row.query: row for row in optimizer.observations.pending}
    assert all(rows[one].details["predicted"] is None for one in batch.queries[:2])


def test_what_is_not_a_context_is_refused() -> None:
    with pytest.raises(InputError, match="it has fidelity=docking, fidelity=assay"):
        begun().ask(only={"fidelity": "crystal"})
    with pytest.raises(InputError, match="one way to"):
        Optimizer(POOL, initial=3).ask(only={"fidelity": "docking"})
