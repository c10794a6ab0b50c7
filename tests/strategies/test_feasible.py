"""Searches under a classifier of failures."""

import itertools

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.models.classifiers import NgramTrees
from seqopt.scorers import FeasibilityScoring, GaussianScoring
from seqopt.search import RandomSearch
from seqopt.strategies import FeasibleModelBased, ModelBased, Strategy

POOL = ["".join(symbols) for symbols in itertools.product("01", repeat=7)]


def value(string):
    """Two zeros in a row cannot be measured, and single ones are wanted."""
    return float("nan") if "00" in string else string.count("01") + 0.5 * string.count("0")


class Gradients(RandomSearch):
    """A search that needs to know the parts."""

    def check_parts(self, space, surrogate, acquisition):
        pass


def run(strategy, batches=4, *, space=None, seed=0, objective=value):
    optimizer = Optimizer(
        StringSpace("01", 12) if space is None else space, strategy=strategy, initial=16, batch_size=4, seed=seed
    )
    for _ in range(batches + 1):
        strings = optimizer.ask()
        optimizer.tell(strings, [objective(string) for string in strings])
    return optimizer


def test_fewer_proposals_fail_than_without_a_classifier():
    def failures(strategy, seed):
        gp = StringGP(restarts=1, refit_growth=100.0)
        space = StringSpace("012", 10)
        rows = run(strategy(gp, "logei", RandomSearch(150)), 5, space=space, seed=seed).observations.rows
        return np.mean([row.status == "failed" for row in rows[16:]])

    seeds = range(3)
    with_classifier = np.mean([failures(FeasibleModelBased, seed) for seed in seeds])
    without = np.mean([failures(ModelBased, seed) for seed in seeds])
    assert with_classifier < without - 0.2


@pytest.mark.parametrize("objective", [lambda string: float(string.count("01")), lambda string: float("nan")])
def test_without_both_kinds_it_is_model_based_to_the_last_bit(objective):
    found = [
        run(strategy("ssk", "logei", RandomSearch(200)), 2, objective=objective).observations.rows
        for strategy in (FeasibleModelBased, ModelBased)
    ]
    for row, other in zip(*found, strict=True):
        assert row.string == other.string
        assert row.details["acquisition"] == other.details["acquisition"]


@pytest.mark.parametrize("acquisition", ["logei", "gibbon"])
def test_the_score_is_that_of_its_two_factors(acquisition):
    strategy = FeasibleModelBased("ssk", acquisition)
    optimizer = run(strategy, 0, space=CandidateSet(POOL))
    assert isinstance(strategy, Strategy)
    state = optimizer.state()
    strategy.propose(1, state, np.random.default_rng(0))  # fits
    scoring = strategy.scoring(1, state, np.random.default_rng(7))
    assert isinstance(scoring, FeasibilityScoring)
    plain = GaussianScoring(strategy.surrogate, strategy.acquisition, rng=np.random.default_rng(7))
    told = [query.key for query in state.data.queries]
    predictor = strategy.classifier.fit(told, ~state.data.failed, rng=np.random.default_rng(0))
    p = 1 / (1 + np.exp(-predictor.logits(POOL)))
    a = plain.scorer(POOL).scores(POOL)
    expected = a + np.log(p) if acquisition == "logei" else a * p
    np.testing.assert_allclose(scoring.scorer(POOL).scores(POOL), expected, rtol=1e-10)
    assert scoring.incumbents(4) == plain.incumbents(4)


def test_state_goes_on_identically():
    def made():
        return Optimizer(
            StringSpace("01", 8), strategy=FeasibleModelBased("ssk", "logei", RandomSearch(200)), initial=8,
            batch_size=2, seed=3,
        )  # fmt: skip

    def go(optimizer, batches):
        for _ in range(batches):
            strings = optimizer.ask()
            optimizer.tell(strings, [value(string) for string in strings])
        return optimizer

    whole, part, restored = go(made(), 4), go(made(), 2), made()
    restored.load_state_dict(part.state_dict())
    go(restored, 2)
    assert [row.string for row in restored.observations.rows] == [row.string for row in whole.observations.rows]
    assert restored.recommend().string == whole.recommend().string


def test_another_classifier_can_be_given():
    optimizer = run(FeasibleModelBased("ssk", classifier=NgramTrees(trees=10)), 2, space=CandidateSet(POOL))
    assert len(optimizer.observations.seen) == 24


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="'ucb' has no known zero"):
        FeasibleModelBased(acquisition="ucb")
    assert FeasibleModelBased(acquisition="ucb", combine="add").combine == "add"
    with pytest.raises(InputError, match="expected 'add' or 'multiply'"):
        FeasibleModelBased(combine="times")
    strategy = FeasibleModelBased("ssk", search=Gradients())
    with pytest.raises(InputError, match="Gradients follows the acquisition function alone"):
        strategy.start(CandidateSet(POOL))
