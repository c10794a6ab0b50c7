"""Local penalisation: the formula, string by string, and searches by it."""

import itertools
import math

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.acquisition import MES, LogExpectedImprovement
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.scorers import PoolScorer, Scorer, Scoring
from seqopt.scorers.penalised import PenalisedScoring, log_penalty
from seqopt.search import GeneticSearch, RandomSearch
from seqopt.strategies import LocalPenalisation

POOL = ["".join(symbols) for symbols in itertools.product("AB", repeat=5)]
KNOWN = POOL[::6]


@pytest.fixture(scope="module")
def gp():
    gp = StringGP(restarts=1)
    gp.fit(KNOWN, [key.count("AB") + 0.1 * key.count("A") for key in KNOWN], rng=np.random.default_rng(0))
    return gp


def scoring(gp, acquisition=None, **options):
    acquisition = LogExpectedImprovement() if acquisition is None else acquisition
    return PenalisedScoring(
        gp,
        acquisition,
        logarithmic=isinstance(acquisition, LogExpectedImprovement),
        evaluated=KNOWN,
        rng=np.random.default_rng(1),
        **options,
    )


@pytest.mark.parametrize(("distance", "mean", "variance"), [(0.0, 0.3, 0.5), (1.2, -1.0, 2.0), (0.4, 2.0, 0.1)])
def test_the_penalty_is_the_printed_one(distance, mean, variance):
    z = (1.7 * distance - 1.5 + mean) / math.sqrt(2 * variance)
    found = log_penalty(np.array([distance]), mean, variance, 1.5, 1.7)
    assert found[0] == pytest.approx(math.log(0.5 * math.erfc(-z)))


def test_scores_are_those_of_single_strings_times_penalties_about_the_members(gp):
    at, pending = scoring(gp, pending=["AABBA"]), ["AABBA"]
    pool, strings = at.pool_scorer(CandidateSet(POOL)), scoring(gp, pending=["AABBA"]).scorer(POOL)
    assert isinstance(at, Scoring)
    assert isinstance(pool, PoolScorer)
    assert isinstance(strings, Scorer)
    alone = LogExpectedImprovement().prepare(gp.conditioned().at(POOL), np.random.default_rng(0))
    single = alone(gp.conditioned().at(POOL)).numpy()
    # The slope, by all pairs.
    mean = gp.conditioned().at([*KNOWN, *POOL]).moments.mean[0].numpy()
    keys = [*KNOWN, *POOL]
    similarity = gp.similarity(keys, keys)
    slope = max(
        abs(mean[i] - mean[j]) / math.sqrt(2 - 2 * similarity[i, j])
        for i, j in itertools.combinations(range(len(keys)), 2)
        if keys[i] != keys[j]
    )
    best = mean[: len(KNOWN)].max()
    members = list(pending)
    allowed = np.array([key not in {*KNOWN, *pending} for key in POOL])
    for _ in range(3):
        expected = single.copy()
        for member in members:
            place = POOL.index(member)
            moments = gp.conditioned().at([member]).moments
            distance = np.sqrt(np.maximum(2 - 2 * gp.similarity(POOL, [member])[:, 0], 0))
            expected += log_penalty(
                distance, float(moments.mean[0, 0]), float(moments.variance[0, 0]), float(best), float(slope)
            )
            assert place >= 0
        np.testing.assert_allclose(strings.scores(POOL), expected, atol=1e-6)
        order, values = pool.best(allowed, 5)
        np.testing.assert_allclose(values, np.sort(expected[allowed])[::-1][:5], atol=1e-6)
        index = int(order[0])
        choices = pool.choose(index), strings.choose(POOL[index])
        assert choices[0].score == pytest.approx(choices[1].score, abs=1e-6)
        assert choices[0].mean == pytest.approx(choices[1].mean)
        members.append(POOL[index])
        allowed[index] = False


def test_mes_is_penalised_by_its_logarithm(gp):
    at = scoring(gp, MES())
    scorer = at.pool_scorer(CandidateSet(POOL))
    allowed = np.ones(len(POOL), dtype=bool)
    (first,), _ = scorer.best(allowed)
    before = dict(zip(*(part.tolist() for part in scorer.best(allowed, 32)), strict=True))
    scorer.choose(int(first))
    after = dict(zip(*(part.tolist() for part in scorer.best(allowed, 32)), strict=True))
    drops = {index: before[index] - after[index] for index in after}
    assert min(drops.values()) >= 0
    # Most where it was chosen.
    assert max(drops, key=drops.get) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "search"),
    [
        (CandidateSet(POOL), "auto"),
        (StringSpace("AB", 6), GeneticSearch(population=10, sample=20, evolutions=3, restarts=0)),
        (StringSpace("AB", 6), RandomSearch(30)),
    ],
    ids=["pool", "genetic", "random"],
)
@pytest.mark.parametrize("acquisition", ["logei", "mes"])
def test_searches_fill_batches_and_go_on_while_some_are_pending(space, search, acquisition):
    strategy = LocalPenalisation(StringGP(restarts=1, refit_growth=100.0), acquisition, search)
    optimizer = Optimizer(space, strategy=strategy, initial=4, batch_size=3, seed=0)
    for _ in range(2):
        strings = optimizer.ask()
        optimizer.tell(strings, [float(string.count("AB")) for string in strings])
    first, second = optimizer.ask(), optimizer.ask()
    assert len({*first, *second}) == 6


def test_what_does_not_fit_is_refused():
    for name in ("gibbon", "ucb", "thompson"):
        with pytest.raises(InputError, match=f"those of '{name}' are not made for"):
            LocalPenalisation(acquisition=name)
    contexts = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
    with pytest.raises(InputError, match="LocalPenalisation knows one way to measure"):
        Optimizer(POOL, strategy=LocalPenalisation(), contexts=contexts)
