"""Information per cost at queries, against the formula from dense moments and against plain GIBBON."""

import itertools
import math

import numpy as np
import pytest
import torch

from seqopt import CandidateSet, StringSpace
from seqopt.acquisition import GIBBON, MES, MUMBO
from seqopt.acquisition.gibbon import PreparedGIBBON
from seqopt.data import Contexts, Query
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.kernels import CoregionalizationKernel, OnField, Product, SubsequenceKernel
from seqopt.models import StringGP
from seqopt.scorers import GaussianScoring, PerCostScoring, PoolScorer, Scorer, Scoring, value_per_cost
from seqopt.scorers.protocols import repeats
from seqopt.search import GeneticSearch, PoolSearch

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=5)]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")


def surrogate(factors, variances, levels=("docking", "assay"), data=None):
    """A model whose covariances of the levels are given."""
    between = CoregionalizationKernel(len(levels), factors=factors, variances=variances)
    for parameter in between.parameters():
        parameter.requires_grad_(False)
    kernel = Product(OnField(SubsequenceKernel(), "tokens"), OnField(between, "fidelity"))
    encoder = FieldEncoder({"tokens": Encoder(), "fidelity": ContextEncoder("fidelity", levels, default="assay")})
    gp = StringGP(kernel, encoder=encoder, restarts=1)
    data = [Query(key, {"fidelity": "assay"}) for key in POOL[::6]] if data is None else data
    gp.fit(data, [query.key.count("AB") + 0.2 * query.key.count("A") for query in data], rng=np.random.default_rng(0))
    return gp


def scoring(gp, contexts=CONTEXTS, **options):
    evaluated = list(dict.fromkeys(query.key for query in gp.fitted.keys))
    return PerCostScoring(gp, GIBBON(), contexts, evaluated=evaluated, rng=np.random.default_rng(5), **options)


def test_losses_keep_their_order():
    values = np.array([-3.0, -1.0, -1e-3, 0.0, 1e-3, 2.0])
    for cost in (0.01, 1.0, 50.0):
        assert (np.diff(value_per_cost(values, np.full(6, cost))) > 0).all()
    # Of equal values the cheaper comes first, gains and losses alike.
    for value in (-2.0, 3.0):
        assert (np.diff(value_per_cost(np.full(3, value), [0.1, 1.0, 10.0])) < 0).all()


def test_the_score_is_the_formula_from_the_moments_divided_by_the_cost():
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    maxima = torch.tensor([[1.9, 2.4]], dtype=torch.float64)
    prepared = PreparedGIBBON(maxima, 0.0)
    keys = [key for key in POOL if key not in POOL[::6]][:7]
    queries = CONTEXTS.queries(keys)
    at = scoring(gp)
    found = at.query_scores(at.process.at(queries), prepared, queries, frozenset())
    for query, score in zip(queries, found, strict=True):
        # Moments from a joint distribution of outcome, target and data, entry by entry.
        state = gp.fitted
        items = [*state.keys, query, Query(query.key, {"fidelity": "assay"})]
        gram = gp.model.covar_module.base_kernel.cross(gp.encoder.encode(items))
        prior = torch.from_numpy(float(state.scale[0]) * gram)
        n, noise = len(state.keys), float(state.noise_variance[0])
        gain = prior[n:, :n] @ torch.linalg.inv(prior[:n, :n] + noise * torch.eye(n, dtype=torch.float64))
        left = prior[n:, n:] - gain @ prior[:n, n:]
        mean = float(state.constant[0]) + gain @ (state.targets - state.constant[0])
        rho2 = float(left[0, 1] ** 2 / (left[1, 1] * (left[0, 0] + noise)))
        total = 0.0
        for maximum in maxima[0].tolist():
            gamma = (maximum - float(mean[1])) / math.sqrt(float(left[1, 1]))
            ratio = math.exp(-(gamma**2) / 2) / math.sqrt(2 * math.pi) / (0.5 * math.erfc(-gamma / math.sqrt(2)))
            total -= math.log(1 - rho2 * ratio * (gamma + ratio)) / 4
        assert score == pytest.approx(total / CONTEXTS.cost(query), rel=1e-6)


def test_with_one_context_it_is_plain_gibbon():
    one = Contexts.of_levels("fidelity", {"assay": 1.0}, target="assay")
    gp = surrogate([[0.9]], [0.19], levels=["assay"])
    plain, costed = (
        GaussianScoring(gp, GIBBON(), pending=["AABBA"], batch_size=3, rng=np.random.default_rng(5)),
        scoring(gp, one, pending=[Query("AABBA", {"fidelity": "assay"})], batch_size=3),
    )
    keys = [key for key in POOL if key not in POOL[::6] and key != "AABBA"]
    prepared = plain.acquisition.prepare(plain.process.at(keys), np.random.default_rng(1), 3)
    posterior, queries = plain.process.at(keys), one.queries(keys)
    other = costed.process.at(queries)
    for place in (3, 8):
        np.testing.assert_allclose(
            costed.query_scores(other, prepared, queries, frozenset()), prepared(posterior).numpy(), rtol=0, atol=1e-10
        )
        posterior, other = posterior.given(place), other.given(place)
    scorers = plain.scorer(keys), costed.scorer(keys)
    # Ranks of strings without contexts are of single precision.
    np.testing.assert_allclose(scorers[0].scores(keys), scorers[1].scores(keys), rtol=1e-2)
    choices = [scorer.choose(keys[4]) for scorer in scorers]
    assert choices[0].mean == pytest.approx(choices[1].mean)
    assert choices[0].std == pytest.approx(choices[1].std)
    assert choices[0].measurement_std == pytest.approx(choices[1].measurement_std)
    assert choices[1].context == one.target
    assert plain.incumbents(3) == costed.incumbents(3)


def filled(gp, contexts, count=4, **options):
    scorer = scoring(gp, contexts, batch_size=count, **options).pool_scorer(CandidateSet(POOL))
    assert isinstance(scorer, PoolScorer)
    allowed = np.ones(len(POOL), dtype=bool)
    found = []
    for _ in range(count):
        (index,), _ = scorer.best(allowed)
        found.append(scorer.choose(int(index)))
        allowed[index] = False
    return found


def test_a_useless_fidelity_is_never_bought_and_a_perfect_one_that_costs_nothing_is():
    cheap = Contexts.of_levels("fidelity", {"docking": 1e-6, "assay": 1.0}, target="assay")
    useless = surrogate([[0.0], [0.0]], [1.0, 1.0])
    assert {choice.context for choice in filled(useless, cheap)} == {cheap.target}
    perfect = surrogate([[1.0], [1.0]], 1e-6)
    assert {choice.context for choice in filled(perfect, cheap)} == {(("fidelity", "docking"),)}
    dear = Contexts.of_levels("fidelity", {"docking": 2.0, "assay": 1.0}, target="assay")
    assert {choice.context for choice in filled(perfect, dear)} == {dear.target}


def test_known_queries_are_passed_over_and_the_rest_of_a_string_is_not():
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    known = {Query(key, {"fidelity": "docking"}) for key in POOL[:20]} | {Query(POOL[1], {"fidelity": "assay"})}
    at = scoring(gp, known=known)
    scorer = at.scorer(POOL)
    assert isinstance(at, Scoring)
    assert isinstance(scorer, Scorer)
    scores = scorer.scores(POOL)
    assert scores[1] == -np.inf
    assert np.isfinite(scores[2:]).all()
    assert scorer.choose(POOL[2]).context == CONTEXTS.target
    # What was chosen is known from then on.
    assert Query(POOL[2], CONTEXTS.target) not in known
    assert scorer.scores([POOL[2]])[0] == -np.inf


def test_pools_samples_and_strings_are_scored_alike_and_batches_are_conditioned(monkeypatch):
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    pool, allowed = CandidateSet(POOL), np.ones(len(POOL), dtype=bool)
    prepared = PreparedGIBBON(torch.tensor([[2.0, 2.5]], dtype=torch.float64), 0.2)

    class Fixed(GIBBON):
        def prepare(self, posterior, rng, batch_size=1):
            return prepared

    def made():
        evaluated = [query.key for query in gp.fitted.keys]
        return PerCostScoring(gp, Fixed(), CONTEXTS, evaluated=evaluated, rng=np.random.default_rng(0))

    strings, whole, part = made().scorer(POOL), made().pool_scorer(pool), made().pool_scorer(pool, np.arange(32))
    with monkeypatch.context() as patch:
        patch.setattr("seqopt.scorers.per_cost.AT_ONCE", 10)
        patch.setattr("seqopt.scorers.per_cost.BLOCK", 26)
        blocks, few = made().pool_scorer(pool), made().sample_scorer(POOL)
    for _ in range(3):
        scores = strings.scores(POOL)
        indices, values = whole.best(allowed, 5)
        np.testing.assert_allclose(values, np.sort(scores[allowed])[::-1][:5])
        np.testing.assert_allclose(scores[indices], values)
        index = int(indices[0])
        choices = [strings.choose(POOL[index])] + [
            scorer.choose(int(scorer.best(allowed)[0][0])) for scorer in (whole, part, blocks, few)
        ]
        assert len({(choice.key, choice.context) for choice in choices}) == 1
        np.testing.assert_allclose([choice.score for choice in choices], values[0])
        allowed[index] = False


def test_the_maximum_is_bounded_by_targets_not_by_what_was_measured():
    # Low-fidelity values ten times as large say nothing of how large targets are.
    data = [Query(key, {"fidelity": "docking"}) for key in POOL[::3]] + [
        Query(key, {"fidelity": "assay"}) for key in POOL[1::6]
    ]
    gp = surrogate([[0.0], [0.0]], [1.0, 1.0], data=data)
    values = [20.0 + query.key.count("A") if query.get("fidelity") == "docking" else 1.0 for query in data]
    gp.fit(data, values, rng=np.random.default_rng(0), full=False)
    seen = []

    class Watching(GIBBON):
        def prepare(self, posterior, rng, batch_size=1):
            seen.append(posterior)
            return super().prepare(posterior, rng, batch_size)

    evaluated = [query.key for query in data]
    at = PerCostScoring(gp, Watching(), CONTEXTS, evaluated=evaluated, rng=np.random.default_rng(0))
    at.scorer(POOL)
    targets = gp.conditioned().at(evaluated).moments.mean
    torch.testing.assert_close(seen[0].observed_mean, targets)
    best = evaluated[int(targets[0].argmax())]
    assert at.incumbents(1) == [best]


@pytest.mark.parametrize("acquisition", [GIBBON(repulsion=1.0), MUMBO(repulsion=1.0)], ids=["gibbon", "mumbo"])
def test_on_a_space_of_strings_too_a_useless_fidelity_is_never_bought_and_a_perfect_one_always(acquisition):
    cheap = Contexts.of_levels("fidelity", {"docking": 1e-6, "assay": 1.0}, target="assay")
    for factors, variances, context in (
        ([[0.0], [0.0]], [1.0, 1.0], cheap.target),
        ([[1.0], [1.0]], 1e-6, (("fidelity", "docking"),)),
    ):
        gp = surrogate(factors, variances)
        evaluated = [query.key for query in gp.fitted.keys]
        scores = PerCostScoring(gp, acquisition, cheap, evaluated=evaluated, rng=np.random.default_rng(5))
        scorer = GeneticSearch(population=8, sample=10, evolutions=2, restarts=0)
        found = scorer.propose(
            4, space=StringSpace("AB", 5), scoring=scores, excluded=set(evaluated), rng=np.random.default_rng(0)
        )
        assert len(found) == 4
        assert {proposal.context for proposal in found} == {context}


def test_what_does_not_see_outcomes_has_targets_measured_only():
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    cheap = Contexts.of_levels("fidelity", {"docking": 1e-6, "assay": 1.0}, target="assay")
    at = PerCostScoring(gp, MES(), cheap, evaluated=[], rng=np.random.default_rng(5))
    scorer = at.pool_scorer(CandidateSet(POOL))
    (index,), _ = scorer.best(np.ones(len(POOL), dtype=bool))
    assert scorer.choose(int(index)).context == cheap.target


def test_a_batch_is_worth_the_determinant_of_its_outcomes_and_may_hold_two_measurements_of_one_string():
    """Definition 5.4.3 with R, the correlations of the outcomes, entry by entry."""
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    maxima = torch.tensor([[1.9, 2.4]], dtype=torch.float64)
    keys = [key for key in POOL if key not in POOL[::6]][:5]
    queries = CONTEXTS.queries(keys)
    at = scoring(gp)
    state = gp.fitted
    items = [*state.keys, *queries]
    prior = torch.from_numpy(float(state.scale[0]) * gp.model.covar_module.base_kernel.cross(gp.encoder.encode(items)))
    n, noise = len(state.keys), float(state.noise_variance[0])
    gain = prior[n:, :n] @ torch.linalg.inv(prior[:n, :n] + noise * torch.eye(n, dtype=torch.float64))
    outcomes = prior[n:, n:] - gain @ prior[:n, n:] + noise * torch.eye(len(queries), dtype=torch.float64)
    deviations = outcomes.diagonal().sqrt()
    correlations = outcomes / torch.outer(deviations, deviations)
    for prepared in (PreparedGIBBON(maxima, 1.0), MUMBO().prepared(maxima, 1.0)):
        singles = prepared(at.process.at(queries))
        # Both measurements of the first string, and another one.
        posterior, value, members = at.process.at(queries), 0.0, [0, 5, 3]
        for place, member in enumerate(members):
            value += float(prepared(posterior)[member])
            posterior = posterior.given(member)
            batch = members[: place + 1]
            expected = singles[batch].sum() + 0.5 * torch.logdet(correlations[batch][:, batch])
            assert value == pytest.approx(float(expected), abs=1e-6)


def test_a_string_joins_a_batch_cheaply_and_then_as_its_target_and_no_more():
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    for made in (lambda: scoring(gp).pool_scorer(CandidateSet(POOL[1:3])), lambda: scoring(gp).scorer(POOL[1:3])):
        scorer = made()
        assert repeats(scorer)
        contexts = []
        for _ in range(2):
            if isinstance(scorer, PoolScorer):
                assert len(scorer.best(np.array([True, False]))[0]) == 1
                contexts.append(scorer.choose(0).context)
            else:
                assert np.isfinite(scorer.scores(POOL[1:2])).all()
                contexts.append(scorer.choose(POOL[1]).context)
        assert contexts == [(("fidelity", "docking"),), CONTEXTS.target]
        last = scorer.best(np.array([True, False]))[0] if isinstance(scorer, PoolScorer) else scorer.scores(POOL[1:2])
        assert not np.isfinite(last).any()
    # A pool of two strings holds three measurements at least.
    found = PoolSearch().propose(
        3, space=CandidateSet(POOL[1:3]), scoring=scoring(gp), excluded=set(), rng=np.random.default_rng(0)
    )
    assert len({proposal.query for proposal in found}) == 3


def test_a_loss_at_a_high_cost_does_not_come_first():
    gp = surrogate([[0.8], [1.0]], [0.3, 0.2])
    queries = CONTEXTS.queries(POOL[1:4])
    at = scoring(gp)

    def losing(posterior):
        return torch.tensor([-1.0, -2.0, -0.5, -1.0, -2.0, -0.5], dtype=torch.float64)

    found = at.query_scores(at.process.at(queries), losing, queries, frozenset())
    # Of a string the cheap measurement first, of a way to measure the smallest loss.
    assert (found[:3] > found[3:]).all()
    assert found.argmax() == 2
    assert found[3:].argmax() == 2
