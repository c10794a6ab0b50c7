"""Searches that open plates as they need them (BOSH)."""

import itertools
import math

import numpy as np
import pytest
import torch

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.acquisition import MUMBO
from seqopt.data import Contexts, Query, Room
from seqopt.errors import InputError
from seqopt.models.contexts import hierarchical
from seqopt.search import GeneticSearch, PoolSearch
from seqopt.strategies import MultiFidelity, PlateSearch
from seqopt.strategies.plates import PlateScoring, with_plates

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=5)]
CONTEXTS = Contexts.of_plates()
P1, P2, P3, P4 = ((("plate", f"P{number}"),) for number in (1, 2, 3, 4))


def known_model(deviation, offset):
    """A fitted model of plates whose departures are given."""
    gp = hierarchical(CandidateSet(POOL), CONTEXTS)
    gp.restarts = 1
    kernel = gp.kernel
    kernel.deviation, kernel.offset = deviation, offset
    for parameter in kernel.parameters():
        parameter.requires_grad_(False)
    queries = [Query(key, plate) for key, plate in zip(POOL[::4], itertools.cycle([P1, P2]))]
    gp.fit(queries, [float(query.key.count("AB")) for query in queries], rng=np.random.default_rng(0))
    return gp, queries


def scoring(gp, queries, acquisition=None, **options):
    return PlateScoring(
        gp,
        MUMBO() if acquisition is None else acquisition,
        with_plates(CONTEXTS, [P1, P2]),
        evaluated=[query.key for query in queries],
        known=set(queries),
        rng=np.random.default_rng(5),
        **options,
    )


def scores_by_plate(deviation, offset):
    gp, queries = known_model(deviation, offset)
    at = scoring(gp, queries)
    new = [key for key in POOL if key not in POOL[::4]]
    asked = at.contexts.queries(new)
    prepared = at.acquisition.prepare(at.process.at(new), np.random.default_rng(0))
    scores = at.query_scores(at.process.at(asked), prepared, asked, frozenset())
    return scores.reshape(3, -1)


def test_where_plates_do_not_differ_a_fresh_one_is_never_better():
    old, other, fresh = scores_by_plate(1e-6, 1e-6)
    assert (fresh <= np.maximum(old, other)).all()
    np.testing.assert_allclose(fresh, old, rtol=1e-4)  # nor worse by more than rounding, and what is least allowed


def test_where_plates_differ_by_an_offset_an_old_one_whose_offset_is_known_is_better():
    old, other, fresh = scores_by_plate(1e-6, 1.0)
    best = np.maximum(old, other)
    assert best.max() > fresh.max()
    assert best.mean() > 1.05 * fresh.mean()


def test_two_fresh_plates_of_one_batch_are_different_plates():
    gp, queries = known_model(100.0, 1e-6)  # a plate's own function hides what they have in common
    for made in (
        lambda at: PoolSearch().propose(
            4, space=CandidateSet(POOL), scoring=at, excluded=set(), rng=np.random.default_rng(0)
        ),
        lambda at: GeneticSearch(population=8, sample=16, evolutions=2, restarts=0).propose(
            4, space=StringSpace("AB", 5), scoring=at, excluded=set(), rng=np.random.default_rng(0)
        ),
    ):
        found = made(scoring(gp, queries, batch_size=4))
        plates = [proposal.context for proposal in found]
        assert len({proposal.query for proposal in found}) == 4
        fresh = [plate for plate in plates if plate not in (P1, P2)]
        # Opened in their order, each at its time.
        assert list(dict.fromkeys(fresh)) == [P3, P4, (("plate", "P5"),), (("plate", "P6"),)][: len(set(fresh))]
        assert len(set(fresh)) >= 2


@pytest.mark.parametrize("at_once", [10, 3 * len(POOL)], ids=["always large", "large once a plate was opened"])
@pytest.mark.parametrize("full", [False, True])
def test_large_pools_open_plates_as_small_ones_do(full, at_once, monkeypatch):
    gp, queries = known_model(100.0, 1e-6)
    room = Room({P1: 0, P2: 0}, further=24) if full else None

    def found():
        at = scoring(gp, queries, batch_size=4, room=room)
        space = CandidateSet(POOL)
        chosen = PoolSearch().propose(4, space=space, scoring=at, excluded=set(), rng=np.random.default_rng(0))
        return [proposal.query for proposal in chosen], [proposal.acquisition for proposal in chosen]

    few, values = found()
    assert {query.context for query in few} >= ({P3} if full else {P3, P4})
    monkeypatch.setattr("seqopt.scorers.per_cost.AT_ONCE", at_once)
    # It encodes all candidates anew for each choice, which takes minutes for a plate of molecules.
    monkeypatch.delattr("seqopt.models.conditioned.BlockwisePosterior.given")
    many, others = found()
    assert few == many
    np.testing.assert_allclose(values, others, rtol=1e-3)


def test_batches_over_plates_are_conditioned_as_the_determinant_says():
    gp, queries = known_model(0.5, 0.5)
    at = scoring(gp, queries, MUMBO(repulsion=1.0), batch_size=3)
    scorer = at.pool_scorer(CandidateSet(POOL))
    prepared = scorer._prepared
    allowed, chosen, total = np.ones(len(POOL), dtype=bool), [], 0.0
    for _ in range(3):
        (index,), (score,) = scorer.best(allowed)
        choice = scorer.choose(int(index))
        chosen.append(Query(choice.key, choice.context))
        total += score
    state = gp.fitted
    items = [*state.keys, *chosen]
    prior = torch.from_numpy(float(state.scale[0]) * gp.model.covar_module.base_kernel.cross(gp.encoder.encode(items)))
    n, noise = len(state.keys), float(state.noise_variance[0])
    gain = prior[n:, :n] @ torch.linalg.inv(prior[:n, :n] + noise * torch.eye(n, dtype=torch.float64))
    outcomes = prior[n:, n:] - gain @ prior[:n, n:] + noise * torch.eye(3, dtype=torch.float64)
    deviations = outcomes.diagonal().sqrt()
    singles = prepared(at.process.at(chosen)).sum()
    expected = float(singles + 0.5 * torch.logdet(outcomes / torch.outer(deviations, deviations)))
    assert total == pytest.approx(expected, abs=1e-4)


def value(query, rng=None):
    """Plates have offsets, large against what differs between strings."""
    return query.key.count("AB") + 5.0 * math.sin(3.0 * int(query.get("plate")[1:]))


def go(optimizer, batches):
    for _ in range(batches):
        queries = optimizer.ask().queries
        optimizer.tell(queries, [value(query) for query in queries])
    return optimizer


def made(space=POOL, **options):
    strategy = PlateSearch(**options)
    return Optimizer(space, strategy=strategy, contexts=CONTEXTS, initial=6, batch_size=2, seed=2)


@pytest.mark.slow
def test_a_search_begins_on_two_plates_and_recommends_what_is_good_on_all():
    optimizer = go(made(), 5)
    rows = [row.query for row in optimizer.observations.rows]
    assert [query.get("plate") for query in rows[:6]] == ["P1", "P2"] * 3
    assert len(set(rows)) == len(rows) == 14
    best = max(query.key.count("AB") for query in rows)
    assert optimizer.recommend().key.count("AB") == best


def test_a_restored_search_continues_as_the_saved_one():
    whole, restored = go(made(), 2), made()
    restored.load_state_dict(whole.state_dict())
    assert list(restored.ask().queries) == list(whole.ask().queries)


def test_pending_plates_are_among_those_there_are():
    optimizer = go(made(), 1)
    first = optimizer.ask().queries
    second = optimizer.ask().queries
    assert not set(first) & set(second)
    names = {query.get("plate") for query in [*first, *second]} | {"P1", "P2"}
    assert names == {f"P{number}" for number in range(1, len(names) + 1)}


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="PlateSearch opens plates as it needs them"):
        Optimizer(POOL, strategy=PlateSearch(), contexts=Contexts.of_folds("fold", [1, 2]))
    with pytest.raises(InputError, match="PlateSearch opens plates"):
        Optimizer(POOL, strategy=PlateSearch())
    with pytest.raises(InputError, match=r"plate is open: take seqopt.strategies.PlateSearch"):
        Optimizer(POOL, strategy=MultiFidelity(), contexts=CONTEXTS)
    with pytest.raises(InputError, match="'mes' has targets measured"):
        made(acquisition="mes")
    for name in ("thompson", "ucb", "logei", "mean"):
        with pytest.raises(InputError, match=f"'{name}' scores a target, whatever is measured"):
            PlateSearch(acquisition=name)


@pytest.fixture
def begun():
    """A search on two plates, of which the second reads higher."""
    optimizer = Optimizer(CandidateSet(POOL), strategy=PlateSearch(), contexts=CONTEXTS, initial=8, seed=3)
    queries = [Query(key, plate) for key, plate in zip(POOL[::4], itertools.cycle([P1, P2]))]
    optimizer.tell(queries, [float(query.key.count("AB")) + (query.context == P2) for query in queries])
    return optimizer


def plates_in(optimizer, n, **options):
    return [query.context for query in optimizer.ask(n, **options).queries]


@pytest.mark.slow
def test_what_is_free_is_kept_to(begun):
    before = begun.state_dict()
    for options, wanted in [
        ({"only": P2}, {P2}),
        ({"only": P4}, {P4}),  # one that nothing is on yet
        ({"shared": True}, None),
        ({"room": Room({P1: 0, P2: 9})}, {P2}),
        ({"room": Room({P1: 0, P2: 0}, further=9)}, {P3}),
        ({"remaining": 2.0}, None),
    ]:
        begun.load_state_dict(before)
        found = plates_in(begun, 3, **options)
        assert len(found) == (2 if "remaining" in options else 3)
        if wanted is not None:
            assert set(found) == wanted
        if "shared" in options:
            assert len(set(found)) == 1


def test_open_plates_are_filled_before_fresh_ones(begun):
    found = plates_in(begun, 6, room=Room({P1: 1, P2: 0, P3: 0}, further=3))
    assert found.count(P1) == 1
    assert found.count(P4) == 3  # P3 is full, or closed, and its name is taken
    assert len(set(found)) == 3


def test_random_strings_fill_plates_in_turn():
    optimizer = Optimizer(CandidateSet(POOL), strategy=PlateSearch(), contexts=CONTEXTS, initial=8, seed=3)
    assert plates_in(optimizer, 5, room=Room({P1: 2}, further=2)) == [P1, P1, P2, P2, P3]
    # Nor is more proposed than there is room for.
    assert plates_in(optimizer, 5, room=Room({P1: 0, P2: 1})) == [P2]
