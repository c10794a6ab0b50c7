"""Searches under a classifier of failures."""

import itertools

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.data import Data, Observation
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.models.classifiers import CrossValidated, NgramHazards, NgramTrees
from seqopt.search import RandomSearch
from seqopt.strategies import FeasibleModelBased, ModelBased, Strategy
from seqopt.strategies.failures import likely_proposals, success_predictor
from seqopt.strategies.protocols import SearchState
from seqopt.utils.config import from_config

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


def ignoring(*arguments, **options):
    return ModelBased(*arguments, **options, failures=None)


@pytest.mark.slow
def test_fewer_proposals_fail_than_where_failures_teach_nothing():
    def failures(strategy, seed):
        gp = StringGP(restarts=1, refit_growth=100.0)
        space = StringSpace("012", 10)
        rows = run(strategy(gp, "gibbon", RandomSearch(150)), 5, space=space, seed=seed).observations.rows
        return np.mean([row.status == "failed" for row in rows[16:]])

    seeds = range(3)
    learning = np.mean([failures(ModelBased, seed) for seed in seeds])
    assert learning < np.mean([failures(ignoring, seed) for seed in seeds]) - 0.2


@pytest.mark.parametrize("objective", [lambda string: float(string.count("01")), lambda string: float("nan")])
def test_without_both_kinds_nothing_changes_to_the_last_bit(objective):
    found = [
        run(strategy("ssk", "logei", RandomSearch(200)), 2, objective=objective).observations.rows
        for strategy in (ModelBased, ignoring)
    ]
    for row, other in zip(*found, strict=True):
        assert row.string == other.string
        assert row.details["acquisition"] == other.details["acquisition"]


@pytest.mark.parametrize("acquisition", ["logei", "ucb", "mean"])  # GIBBON draws maxima
def test_the_score_of_a_proposal_is_that_of_its_two_factors(acquisition):
    classifier = NgramHazards()
    strategy = ModelBased("ssk", acquisition, failures=classifier)
    optimizer = run(strategy, 0, space=CandidateSet(POOL))
    state = optimizer.state()
    assert isinstance(strategy, Strategy)
    (proposal,) = strategy.propose(1, state, np.random.default_rng(0))
    told = [query.key for query in state.data.queries]
    p = 1 / (1 + np.exp(-classifier.fit(told, ~state.data.failed, rng=np.random.default_rng(0)).logits(POOL)))
    plain = strategy.scoring(1, state, np.random.default_rng(0)).pool_scorer(optimizer.space)
    allowed = np.array([key not in state.excluded for key in optimizer.space.keys])
    indices, a = plain.best(allowed, len(POOL))
    p = p[[POOL.index(optimizer.space[int(index)]) for index in indices]]
    expected = a + np.log(p)
    assert proposal.string == optimizer.space[int(indices[expected.argmax()])]
    np.testing.assert_allclose(proposal.acquisition, expected.max(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["thompson", "ucb", "mean"])
def test_any_acquisition_function_avoids_what_fails(acquisition):
    rows = run(ModelBased("ssk", acquisition, RandomSearch(150)), 5, seed=1).observations.rows[16:]
    assert np.mean([row.status == "failed" for row in rows]) < 0.35  # of random ones 89 % do


def test_while_there_is_no_model_random_strings_are_likely_to_succeed():
    def flat(string):
        return float("nan") if "00" in string else 1.0  # equal values: a model has nothing to learn

    learning = run(ModelBased("ssk"), 5, objective=flat).observations.rows[16:]
    rest = run(ignoring("ssk"), 5, objective=flat).observations.rows[16:]
    failed = [np.mean([row.status == "failed" for row in rows]) for rows in (learning, rest)]
    assert failed[0] < failed[1] - 0.2
    assert len({row.string for row in learning}) == len(learning)


def test_a_string_that_succeeded_once_counts_as_one_that_does():
    data = Data.of([Observation("AB", "AB", "failed"), Observation("AB", "AB", "ok", (1.0,))])
    assert success_predictor(NgramHazards(), data, np.random.default_rng(0)) is None


def test_failures_that_have_nothing_to_do_with_strings_make_no_difference_between_them():
    rng = np.random.default_rng(3)
    rows = [Observation(string, string, "failed" if rng.random() < 0.4 else "ok", (1.0,)) for string in POOL]
    predictor = success_predictor(CrossValidated(), Data.of(rows), rng)
    assert predictor is not None
    assert np.ptp(predictor.logits(POOL)) < 2.0
    clear = [Observation(string, string, "failed" if "00" in string else "ok", (1.0,)) for string in POOL]
    predictor = success_predictor(CrossValidated(), Data.of(clear), rng)
    assert predictor is not None
    assert np.ptp(predictor.logits(POOL)) > 6.0


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
    assert FeasibleModelBased(acquisition="ucb").combine == "add"
    assert FeasibleModelBased(acquisition="gibbon").combine == "multiply"
    assert FeasibleModelBased(acquisition="gibbon", combine="add").combine == "add"
    with pytest.raises(InputError, match="expected 'add' or 'multiply'"):
        FeasibleModelBased(combine="times")
    for failures in ("forget", object(), NgramTrees):
        with pytest.raises(InputError, match=r"learn|not a classifier"):
            ModelBased(failures=failures)
    strategy = FeasibleModelBased("ssk", search=Gradients())
    with pytest.raises(InputError, match="Gradients follows the acquisition function alone"):
        strategy.start(CandidateSet(POOL))


def test_what_is_written_down_is_made_again():
    assert "failures" not in ModelBased().config()
    for strategy in (ModelBased(failures=None), ModelBased(failures=NgramHazards(3)), FeasibleModelBased()):
        assert from_config(strategy.config()).config() == strategy.config()
    assert from_config(ModelBased(failures=None).config()).classifier is None


class Fixed:
    """Strings succeed with one probability, but for those with 'z', which never do."""

    def __init__(self, chance):
        self.chance = chance

    def logits(self, strings):
        chance = np.array([1e-9 if "z" in string else self.chance for string in strings])
        return np.log(chance) - np.log1p(-chance)


def likely(n, state, chance, seed):
    rng = np.random.default_rng(seed)
    return [one.key for one in likely_proposals(n, state, rng, Fixed(chance), unsupported=lambda _: {})]


@pytest.mark.parametrize("chance", [0.95, 0.5, 0.02])
def test_random_strings_are_mutants_as_often_as_random_strings_fail(chance):
    space = StringSpace("ACGT", 20)
    rng = np.random.default_rng(0)
    measured = [space.key(string) for string in space.sample(10, rng)]
    rows = [Observation(string, string, "ok", (1.0,)) for string in measured]
    state = SearchState(space, Data.of(rows), excluded=set(measured))
    found = [key for seed in range(20) for key in likely(10, state, chance, seed)]
    assert len(found) == 200
    assert not set(found) & set(measured)
    near = [min(sum(a != b for a, b in zip(one, other, strict=True)) for other in measured) for one in found]
    # Random strings of 20 letters differ from the nearest of ten at 8 to 15 places, mutants at one or a few.
    assert np.mean(np.array(near) <= 4) == pytest.approx(1 - chance, abs=0.1)


def test_random_strings_of_a_pool_are_drawn_by_their_chances():
    pool = CandidateSet(["aa", "ab", "az", "bz", "ba"])
    state = SearchState(pool, Data.of([]))
    found = [
        one.key for one in likely_proposals(3, state, np.random.default_rng(0), Fixed(0.5), unsupported=lambda _: {})
    ]
    assert sorted(found) == ["aa", "ab", "ba"]
