"""Costs that are stated, told and learned."""

import itertools
import math

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer
from seqopt.data import Contexts, Data, Observation, Query
from seqopt.errors import InputError
from seqopt.models import StringGP, in_units_of
from seqopt.models.contexts import coregionalized
from seqopt.scorers import Costs, LearnedCosts, StatedCosts
from seqopt.strategies import MultiFidelity

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
DOCKING, ASSAY = (("fidelity", "docking"),), (("fidelity", "assay"),)


def paid(query):
    """Strings with many B cost up to eight times what is stated."""
    return CONTEXTS.cost(query) * 2.0 ** (query.key.count("B") / 2)


def told(queries, costs):
    rows = [
        Observation(query.key, query.key, "ok", (1.0,), context=query.context, cost=cost)
        for query, cost in zip(queries, costs, strict=True)
    ]
    return Data.of(rows)


def model():
    gp = coregionalized(CandidateSet(POOL), CONTEXTS)
    gp.restarts = 1
    return gp


def test_costs_are_learned_as_multiples_of_those_stated():
    known = [Query(key, context) for key, context in zip(POOL[::4], itertools.cycle([DOCKING, ASSAY]))]
    learned = LearnedCosts(model(), CONTEXTS, told(known, [paid(query) for query in known]), np.random.default_rng(0))
    asked = CONTEXTS.queries(POOL[1::4])
    found, right = learned.of(asked), np.array([paid(query) for query in asked])
    assert isinstance(learned, Costs)
    assert (found > 0).all()
    stated = StatedCosts(CONTEXTS).of(asked)
    off, off_stated = (np.abs(np.log(costs / right)).mean() for costs in (found, stated))
    assert off < 0.2 * off_stated


def test_the_expectation_of_a_log_normal_cost():
    known = [Query(key, ASSAY) for key in POOL[::8]]
    costs = [math.exp(0.3 * (-1) ** place) for place in range(len(known))]
    gp = model()
    learned = LearnedCosts(gp, CONTEXTS, told(known, costs), np.random.default_rng(0))
    asked = [Query(POOL[3], ASSAY), Query(POOL[5], DOCKING)]
    moments = gp.conditioned().at(asked).moments
    means, stds = in_units_of(gp, asked, moments.outcome_mean[0].numpy(), moments.outcome_variance[0].numpy())
    draws = np.exp(np.random.default_rng(1).normal(means, stds, size=(400_000, 2))).mean(0)
    np.testing.assert_allclose(learned.of(asked), [1.0 * draws[0], 0.1 * draws[1]], rtol=5e-3)


def test_equal_multiples_are_taken_as_they_are_and_one_cost_is_too_few():
    known = CONTEXTS.queries(POOL[:3])
    learned = LearnedCosts(
        model(), CONTEXTS, told(known, [3.0 * CONTEXTS.cost(query) for query in known]), np.random.default_rng(0)
    )
    np.testing.assert_allclose(learned.of([Query(POOL[9], DOCKING), Query(POOL[9], ASSAY)]), [0.3, 3.0])
    with pytest.raises(InputError, match="1 costs have been told"):
        LearnedCosts(model(), CONTEXTS, told(known, [1.0, None, None, None, None, None]), np.random.default_rng(0))


def run(optimizer, batches):
    for _ in range(batches):
        queries = optimizer.ask().queries
        optimizer.tell(queries, [query.key.count("AB") for query in queries], costs=[paid(query) for query in queries])
    return optimizer


def made(**options):
    gp = coregionalized(CandidateSet(POOL), CONTEXTS)
    gp.restarts, gp.refit_growth = 1, 100.0
    strategy = MultiFidelity(gp, **options)
    return Optimizer(POOL, strategy=strategy, contexts=CONTEXTS, initial=4, batch_size=2, seed=3)


@pytest.mark.slow
def test_costs_that_are_told_are_kept_and_restored():
    optimizer = run(made(costs="learned"), 3)
    state = optimizer.state()
    np.testing.assert_allclose(state.data.costs, [paid(query) for query in state.data.queries])
    restored = made(costs="learned")
    restored.load_state_dict(optimizer.state_dict())
    np.testing.assert_allclose(restored.state().data.costs, state.data.costs)
    assert list(restored.ask().queries) == list(optimizer.ask().queries)
    assert optimizer.to_pandas()["cost"].tolist()[:8] == [paid(query) for query in state.data.queries]
    assert "cost" not in Optimizer(["a", "b"]).to_pandas()


def test_costs_are_learned_as_soon_as_two_were_told():
    optimizer = made(costs="learned")
    queries = optimizer.ask().queries
    optimizer.tell(queries, [query.key.count("AB") for query in queries], costs=[paid(queries[0]), None, None, None])
    strategy, asked = optimizer.strategy.then, CONTEXTS.queries([key for key in POOL if key.count("B") in (1, 5)])

    def costs():
        optimizer.ask()
        return strategy.scoring(1, optimizer.state(), np.random.default_rng(0)).costs

    assert isinstance(costs(), StatedCosts)
    rows = optimizer.observations.pending
    optimizer.tell([row.query for row in rows], [1.0] * len(rows), costs=[paid(row.query) for row in rows])
    learned = costs()
    assert isinstance(learned, LearnedCosts)
    assert np.ptp(learned.of(asked) / StatedCosts(CONTEXTS).of(asked)) > 0.1  # not by one factor


def test_wrong_costs_are_refused():
    optimizer = made()
    for wrong in (0.0, -1.0, math.inf, "much"):
        with pytest.raises(InputError, match=r"a cost is .*; expected a positive number"):
            optimizer.tell([Query(POOL[0], ASSAY)], [1.0], costs=[wrong])
    with pytest.raises(InputError, match="1 strings but 2 costs"):
        optimizer.tell([Query(POOL[0], ASSAY)], [1.0], costs=[1.0, 2.0])
    assert len(optimizer.observations) == 0
    for wrong in ("free", 3.0, StringGP):
        with pytest.raises(InputError, match="expected 'stated', 'learned' or a surrogate"):
            MultiFidelity(costs=wrong)
    with pytest.raises(InputError, match="StringGP cannot tell contexts apart"):
        made(costs=StringGP())
