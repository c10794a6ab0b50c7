"""Searches that choose how strings are measured."""

import itertools

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.data import Contexts, Query
from seqopt.errors import ExhaustedError, InputError
from seqopt.kernels import CoregionalizationKernel
from seqopt.models import StringGP
from seqopt.models.contexts import coregionalized
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.strategies import MultiFidelity, RandomStrategy, Strategy

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
DOCKING, ASSAY = (("fidelity", "docking"),), (("fidelity", "assay"),)


def value(query):
    """The cheap measurement sees most of it."""
    exact = query.key.count("AB")
    return exact + (0.3 * query.key.count("B") if query.context == DOCKING else 0.0)


def fast(space, contexts=CONTEXTS):
    """The default model, whose kernel is fitted once."""
    gp = coregionalized(space, contexts)
    gp.restarts, gp.refit_growth = 1, 100.0
    return gp


def made(space=None, search="auto", seed=2, **options):
    space = CandidateSet(POOL) if space is None else space
    strategy = MultiFidelity(fast(space), search=search)
    return Optimizer(space, strategy=strategy, contexts=CONTEXTS, initial=4, batch_size=3, seed=seed, **options)


def go(optimizer, batches):
    for _ in range(batches):
        queries = optimizer.ask().queries
        optimizer.tell(queries, [value(query) for query in queries])
    return optimizer


SEARCHES = {
    "pool": (CandidateSet(POOL), "auto"),
    "genetic": (StringSpace("AB", 6), GeneticSearch(population=10, sample=20, evolutions=3, restarts=0)),
    "random": (StringSpace("AB", 6), RandomSearch(30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_choose_strings_and_how_they_are_measured(name):
    optimizer = go(made(*SEARCHES[name]), 4)
    queries = [row.query for row in optimizer.observations.rows]
    assert len(set(queries)) == len(queries) == 13
    assert {query.context for query in queries[:4]} == {ASSAY}  # random ones are measured as the target
    chosen = queries[4:]
    assert DOCKING in {query.context for query in chosen}
    # A string that is known as its target is of no further use.
    known = {query.key for query in queries[:4]}
    assert not known & {query.key for query in chosen}
    assert optimizer.best.context == ASSAY
    mean, std = optimizer.predict(POOL[:5])
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert optimizer.recommend().key in {query.key for query in queries}
    assert {"match_decay", "gap_decay"} <= set(optimizer.hyperparameters)


def test_a_restored_search_continues_as_the_saved_one():
    whole, part, restored = go(made(), 4), go(made(), 2), made()
    waiting = part.ask().queries
    restored.load_state_dict(part.state_dict())
    assert [row.query for row in restored.observations.pending] == list(waiting)
    for optimizer in (part, restored):
        optimizer.tell(waiting, [value(query) for query in waiting])
        go(optimizer, 1)
    rows = [[row.query for row in optimizer.observations.rows] for optimizer in (part, restored, whole)]
    assert rows[0] == rows[1] == rows[2]


def test_several_failures_and_pending_queries():
    optimizer = go(made(), 1)
    first = optimizer.ask().queries
    optimizer.tell(first, [float("nan")] * 3)
    failed = {query.key for query in first}
    second = optimizer.ask().queries  # pending
    third = optimizer.ask().queries
    later = {query.key for query in [*second, *third]}
    assert not failed & later
    assert len({*second, *third}) == 6
    assert optimizer.state().data.failed.sum() == 3
    measured = optimizer.state().data.measured()
    assert len(measured) == 4
    assert not failed & {query.key for query in measured.items}


def test_a_cheaper_measurement_is_chosen_more_often():
    def share(cost):
        contexts = Contexts.of_levels("fidelity", {"docking": cost, "assay": 1.0}, target="assay")
        strategy = MultiFidelity(fast(CandidateSet(POOL), contexts))
        optimizer = Optimizer(POOL, strategy=strategy, contexts=contexts, initial=4, batch_size=3, seed=1)
        go(optimizer, 3)
        return np.mean([row.context == DOCKING for row in optimizer.observations.rows[4:]])

    assert share(0.01) >= 1 / 3 > share(100.0)


def begun(docked=6, **options):
    """A search of which only cheap measurements are known."""
    optimizer = made(**options)
    told = [Query(key, DOCKING) for key in POOL[::7][:docked]]
    optimizer.tell(told, [value(query) for query in told])
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("docked", [0, 1, 6])
def test_before_a_target_is_known_what_can_be_paid_for_is_measured(name, docked):
    optimizer = begun(docked, space=SEARCHES[name][0], search=SEARCHES[name][1])
    cheap = optimizer.ask(4, remaining=0.5).queries
    assert {query.context for query in cheap} == {DOCKING}
    assert len({query.key for query in cheap}) == 4
    optimizer.tell(cheap, [value(query) for query in cheap])
    # One target can be paid for, and then cheap ones.
    ways = [query.context for query in optimizer.ask(3, remaining=1.11).queries]
    assert ways == [ASSAY, DOCKING, DOCKING]
    with pytest.raises(ExhaustedError, match=r"what remains, 0.01, pays for no measurement.*Raise what remains"):
        optimizer.ask(2, remaining=0.01)


def test_targets_that_cannot_be_measured_are_not_waited_for():
    possible = POOL[20]
    closed = [Query(key, ASSAY) for key in POOL if key != possible]
    optimizer = begun(unavailable=closed)
    first = optimizer.ask(3).queries
    assert first[0] == Query(possible, ASSAY)
    assert [query.context for query in first[1:]] == [DOCKING, DOCKING]
    # Nor are they drawn at random.
    nothing = Optimizer(POOL, strategy=RandomStrategy(), contexts=CONTEXTS, unavailable=closed)
    assert list(nothing.ask(5).queries) == [Query(possible, ASSAY)]


def test_a_target_that_is_closed_is_not_measured():
    space = CandidateSet(POOL)
    strategy = MultiFidelity(fast(space))
    strategy.closed = frozenset({ASSAY})
    optimizer = Optimizer(space, strategy=strategy, contexts=CONTEXTS, initial=2, seed=2)
    told = [Query(key, DOCKING) for key in POOL[::10]]
    optimizer.tell(told, [value(query) for query in told])
    assert {query.context for query in optimizer.ask(3).queries} == {DOCKING}


def test_wrong_contexts_are_refused_by_name():
    optimizer = go(made(), 1)
    with pytest.raises(InputError, match=r"fidelity=guess is not one of this search.*fidelity=docking, fidelity=assay"):
        optimizer.tell([Query("AAAAAA", {"fidelity": "guess"})], [1.0])
    with pytest.raises(InputError, match="plate=1"):
        optimizer.tell([Query("AAAAAA", {"plate": 1})], [1.0])
    plain = Optimizer(POOL, strategy=RandomStrategy())
    with pytest.raises(InputError, match="this search has none"):
        plain.tell([Query("AAAAAA", {"fidelity": "assay"})], [1.0])


def test_parts_that_do_not_fit_are_refused_before_anything_is_evaluated():
    with pytest.raises(InputError, match="give the optimiser contexts="):
        Optimizer(POOL, strategy=MultiFidelity())
    with pytest.raises(InputError, match="FullyBayesianGP cannot tell contexts apart, and this search has 2"):
        Optimizer(POOL, contexts=CONTEXTS)
    with pytest.raises(InputError, match="'logei' scores a target"):
        MultiFidelity(acquisition="logei")
    with pytest.raises(InputError, match="'ssk' knows nothing of contexts"):
        MultiFidelity("ssk")
    with pytest.raises(InputError, match="StringGP cannot tell contexts apart"):
        Optimizer(POOL, strategy=MultiFidelity(StringGP()), contexts=CONTEXTS)
    other = coregionalized(CandidateSet(POOL), Contexts.of_levels("fidelity", {"screen": 1.0}, target="screen"))
    with pytest.raises(InputError, match="'docking', which is none of its levels: 'screen'"):
        Optimizer(POOL, strategy=MultiFidelity(other), contexts=CONTEXTS)
    plates = Contexts(
        ((("fidelity", 1.0), ("plate", "P1")), (("fidelity", 0.5), ("plate", "P1"))),
        (("fidelity", 1.0), ("plate", "P1")),
        (1.0, 0.5),
    )
    with pytest.raises(InputError, match="differ in one thing"):
        Optimizer(POOL, strategy=MultiFidelity(), contexts=plates)

    class Gradients(PoolSearch):
        def check_parts(self, space, surrogate, acquisition):
            pass

    with pytest.raises(InputError, match="Gradients and StringGP do not go with MultiFidelity"):
        Optimizer(POOL, strategy=MultiFidelity(search=Gradients()), contexts=CONTEXTS)


def test_the_default_model_learns_the_covariances_of_the_levels():
    strategy = MultiFidelity()
    assert isinstance(strategy, Strategy)
    optimizer = Optimizer(POOL, strategy=strategy, contexts=CONTEXTS, initial=4, seed=0)
    go(optimizer, 2)
    kernels = [part for part in strategy.surrogate.model.modules() if isinstance(part, CoregionalizationKernel)]
    assert [kernel.levels for kernel in kernels] == [2, 2]  # of functions, and of offsets


@pytest.mark.parametrize("transform", [None, "log10"])
def test_what_is_predicted_of_a_measurement_is_in_its_own_units(transform):
    def measured(query):
        found = value(query) / 3 + 0.1 * len(query.key.lstrip("A")) * (query.context == DOCKING)
        shift = 5.0 if query.context == DOCKING else -2.0
        return 10 ** (found + shift) if transform else 1e3 * found if query.context == DOCKING else found

    optimizer = made(transform=transform)
    told = [Query(key, context) for context, step in ((DOCKING, 3), (ASSAY, 10)) for key in POOL[::step]]
    optimizer.tell(told, [measured(query) for query in told])
    optimizer.ask(4)
    rows = [row for row in optimizer.observations.rows if row.status == "pending" and row.context == DOCKING]
    assert rows
    gp = optimizer.strategy.then.surrogate
    # Deviations of the level's own values from what a noiseless one would be, by the joint distribution of functions.
    mean, covariance = gp.conditioned().functions([row.query for row in rows])
    offset, unit = gp.units_at([row.query for row in rows])
    for place, row in enumerate(rows):
        centre = offset[place] + unit[place] * float(mean[0, place])
        std = unit[place] * float(covariance[0, place, place]) ** 0.5
        if transform:
            centre, std = optimizer.transform.moments(centre, std)
        assert row.details["predicted_mean"] == pytest.approx(centre, rel=1e-6)
        assert row.details["predicted_std"] == pytest.approx(std, rel=1e-6)
        assert row.details["predicted_low"] < row.details["predicted"] < row.details["predicted_high"]
