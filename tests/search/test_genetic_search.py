"""Genetic search against enumeration of small spaces, and what it promises of every population."""

import math

import numpy as np
import pytest
import torch

from seqopt import Optimizer
from seqopt.acquisition import GIBBON, LogExpectedImprovement, ThompsonSampling, UpperConfidenceBound
from seqopt.errors import InputError
from seqopt.grammar import load_grammar
from seqopt.models import FullyBayesianGP, FullyBayesianStringGP, StringGP
from seqopt.scorers import GaussianScoring
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.spaces import CodonSpace, GrammarSpace, LocalSpace, StringSpace


def fitted(space, count=12, seed=0, surrogate=None):
    rng = np.random.default_rng(seed)
    strings = space.sample(count, rng)
    gp = StringGP(restarts=1) if surrogate is None else surrogate
    gp.bind(space)
    gp.fit(strings, [float(s.count("11") - 0.2 * s.count("000")) for s in strings], rng=rng)
    return gp, strings


def suggest(search, n, space, gp, acquisition, excluded=(), pending=(), seed=1):
    rng = np.random.default_rng(seed)
    scoring = GaussianScoring(gp, acquisition, pending=pending, batch_size=n + len(pending), rng=rng)
    return search.propose(n, space=space, scoring=scoring, excluded=set(excluded), rng=rng)


def values_of(gp, acquisition, strings, conditioned):
    posterior = gp.conditioned(conditioned).at(strings)
    return acquisition.prepare(posterior, np.random.default_rng(0), 1)(posterior).numpy()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("surrogate", [StringGP(restarts=1), FullyBayesianStringGP(draws=4)])
def test_it_finds_the_maximum_of_a_space_that_can_be_enumerated(seed, surrogate):
    space = StringSpace("01", 12)
    gp, evaluated = fitted(space, seed=seed, surrogate=surrogate)
    everything = [s for s in space.enumerate() if s not in evaluated]
    acquisition = LogExpectedImprovement()
    best = values_of(gp, acquisition, everything, []).max()
    (found,) = suggest(GeneticSearch(sample=100), 1, space, gp, acquisition, excluded=evaluated, seed=seed)
    # Ranks are of single precision.
    assert found.acquisition == pytest.approx(best, abs=1e-4)
    assert found.string in everything


def test_every_element_of_a_batch_is_best_given_those_before_it():
    space = StringSpace("01", 10)
    gp, evaluated = fitted(space)
    acquisition = UpperConfidenceBound()
    pending = ["1100110011"]
    batch = suggest(
        GeneticSearch(sample=200), 4, space, gp, acquisition, excluded={*evaluated, *pending}, pending=pending
    )
    chosen = list(pending)
    for element in batch:
        left = [s for s in space.enumerate() if s not in evaluated and s not in chosen]
        values = values_of(gp, acquisition, left, chosen)
        # Ranks are of single precision.
        assert element.acquisition == pytest.approx(values.max(), abs=1e-4)
        assert element.string in left
        chosen.append(element.string)
    assert len(set(chosen)) == 5


def test_predictions_are_those_of_the_surrogate():
    space = StringSpace("01", 10)
    gp, evaluated = fitted(space, surrogate=FullyBayesianStringGP(draws=4))
    (found,) = suggest(GeneticSearch(evolutions=3), 1, space, gp, GIBBON(), excluded=evaluated)
    mean, std = gp.predict([found.string])
    assert (found.predicted_mean, found.predicted_std) == (pytest.approx(mean[0]), pytest.approx(std[0]))


@pytest.mark.parametrize("seeded", [True, False])
def test_what_the_surrogate_nominates_is_in_the_first_population_where_it_is_seeded(seeded):
    space = StringSpace("01", 40)
    gp, evaluated = fitted(space)
    told = []
    # One of the two is not in the space.
    gp.nominated = lambda strings: told.extend(strings) or ["1" * 40, "2" * 40]
    search = GeneticSearch(evolutions=0, sample=100, seeded=seeded)
    (found,) = suggest(search, 1, space, gp, UpperConfidenceBound(), excluded=evaluated)
    assert (found.string == "1" * 40) == seeded
    assert set(told) <= set(evaluated)
    assert len(told) == 10 * seeded


class Watched:
    """A surrogate that notes which strings are scored together."""

    def __init__(self, gp):
        self.gp, self.calls = gp, []

    def conditioned(self, pending=()):
        process = self.gp.conditioned(pending)
        at = process.at
        process.at = process.roughly = lambda keys: (self.calls.append(list(keys)), at(keys))[1]
        return process

    def untransform(self, mean, variance):
        return self.gp.untransform(mean, variance)


def test_a_population_is_scored_in_one_call_and_no_string_twice():
    space = StringSpace("01", 14)
    gp, evaluated = fitted(space)
    watched = Watched(gp)
    search = GeneticSearch(population=30, sample=50, evolutions=8, patience=8)
    suggest(search, 1, space, watched, LogExpectedImprovement(), excluded=evaluated)
    prepared, *scored, chosen = watched.calls
    assert len(chosen) == 1
    assert 1 <= len(scored) <= 8
    assert all(len(call) <= 30 for call in scored)
    # The first population is what the score was prepared on, and has its values from there.
    everything = [s for call in [prepared, *scored] for s in call]
    assert len(everything) == len(set(everything))


def test_seeding_starts_from_the_evaluated_strings_of_largest_mean():
    space = StringSpace("01", 14)
    gp, _ = fitted(space, count=30)
    best = gp.conditioned().best_observed_keys(10)
    for seeded in (True, False):
        watched = Watched(gp)
        suggest(GeneticSearch(evolutions=0, seeded=seeded), 1, space, watched, LogExpectedImprovement())
        first = set(watched.calls[0])
        assert (set(best) <= first) is seeded


def test_evaluated_strings_outside_the_space_do_no_harm():
    space = StringSpace("01", 10)
    gp = StringGP(restarts=1)
    gp.fit(["0101010101", "1111100000", "22222"], [0.0, 1.0, 2.0], rng=np.random.default_rng(0))
    (found,) = suggest(GeneticSearch(evolutions=3), 1, space, gp, LogExpectedImprovement())
    assert space.contains(found.string)


@pytest.mark.parametrize(
    "space",
    [
        StringSpace("01", min_length=3, max_length=9),
        LocalSpace([["0", "1"], ["11", "000"], ["1", "0"]]),
        CodonSpace("MKTFFV", forbidden=["AAAA"]),
        CodonSpace("MKTFFV", representation="bases"),
        GrammarSpace(load_grammar("arithmetic"), min_length=3, max_length=12),
        StringSpace("01", 8, accept=lambda string: string.count("1") > 3),
    ],
    ids=lambda space: type(space).__name__,
)
def test_batches_lie_in_the_space_are_distinct_and_new(space):
    gp, evaluated = fitted(space, count=5)
    pending = [s for s in space.sample(8, np.random.default_rng(9)) if s not in evaluated][:2]
    search = GeneticSearch(population=20, sample=20, evolutions=5)
    batch = suggest(search, 3, space, gp, GIBBON(), excluded={*evaluated, *pending}, pending=pending)
    strings = [element.string for element in batch]
    assert len(set(strings)) == len(strings)
    assert all(space.contains(s) for s in strings)
    assert not {element.key for element in batch} & {*evaluated, *pending}


def test_nothing_is_proposed_where_nothing_is_left():
    space = StringSpace("01", 2)
    gp, evaluated = fitted(space, count=4)
    assert suggest(GeneticSearch(), 2, space, gp, LogExpectedImprovement(), excluded=evaluated) == []
    left = suggest(GeneticSearch(), 2, space, gp, LogExpectedImprovement(), excluded=evaluated[1:])
    assert [element.string for element in left] == evaluated[:1]


def test_trees_are_not_parsed_again_during_a_search(monkeypatch):
    space = GrammarSpace(load_grammar("arithmetic"), min_length=3, max_length=12)
    gp, evaluated = fitted(space, count=6)
    parsed = []
    original = type(space).from_string
    monkeypatch.setattr(type(space), "from_string", lambda self, s: (parsed.append(s), original(self, s))[1])
    suggest(GeneticSearch(evolutions=5), 2, space, gp, LogExpectedImprovement(), excluded=evaluated)
    assert sorted(parsed) == sorted(gp.conditioned().best_observed_keys(10))


class Flat:
    """An acquisition function that prefers nothing."""

    name = "flat"

    def prepare(self, posterior, rng, batch_size=1):
        return lambda posterior: torch.zeros(len(posterior.moments), dtype=torch.float64)


@pytest.mark.parametrize(("patience", "restarts"), [(1, 0), (3, 0), (2, 3)])
def test_a_search_without_improvement_ends_when_patience_does(patience, restarts):
    space = StringSpace("01", 20)
    gp, evaluated = fitted(space)
    watched = Watched(gp)
    search = GeneticSearch(20, sample=20, evolutions=50, patience=patience, restarts=restarts)
    suggest(search, 1, space, watched, Flat(), excluded=evaluated)
    # The first population, every evolution and new population, and the chosen string.
    assert len(watched.calls) == 1 + patience * (1 + restarts) + restarts + 1


def test_the_best_string_stays_in_the_population(monkeypatch):
    space = StringSpace("01", 16)
    gp, evaluated = fitted(space)
    best = []
    original = GeneticSearch._children

    def noted(self, space, individuals, values, rng):
        best.append(values.max())
        return original(self, space, individuals, values, rng)

    monkeypatch.setattr(GeneticSearch, "_children", noted)
    search = GeneticSearch(20, tournament=0.1, mutation=1.0, sample=20, patience=30, evolutions=30)
    (found,) = suggest(search, 1, space, gp, LogExpectedImprovement(), excluded=evaluated)
    assert len(best) == 30
    assert best == sorted(best)
    assert found.acquisition >= best[-1]


def test_the_same_seed_gives_the_same_batch():
    space = StringSpace("01", 16)
    gp, evaluated = fitted(space)
    batches = [
        [e.string for e in suggest(GeneticSearch(), 3, space, gp, GIBBON(), excluded=evaluated, seed=seed)]
        for seed in (3, 3, 4)
    ]
    assert batches[0] == batches[1]
    assert batches[0] != batches[2]


def test_tournaments_prefer_the_better():
    rng = np.random.default_rng(0)
    values = np.arange(10.0)
    assert set(GeneticSearch(tournament=1.0)._winners(values, 50, rng)) == {9}
    # The best of 5 of 10: place k wins in C(k, 4) of C(10, 5) = 252 tournaments.
    won = np.bincount(GeneticSearch(tournament=0.5)._winners(values, 20_000, rng), minlength=10) / 20_000
    expected = np.array([0, 0, 0, 0, 1, 5, 15, 35, 70, 126]) / 252
    np.testing.assert_allclose(won, expected, atol=0.015)


def test_children_follow_the_probabilities():
    space = StringSpace("01", 12)
    rng = np.random.default_rng(0)
    parents = space.sample(20, rng)
    values = rng.random(20)
    copies = GeneticSearch(20, crossover=0.0, mutation=0.0, sample=20)._children(space, parents, values, rng)
    assert len(copies) == 20
    assert set(copies) <= set(parents)
    crossed = GeneticSearch(20, tournament=0.1, crossover=1.0, mutation=0.0, sample=20)
    children = crossed._children(space, parents, values, rng)
    assert len(children) == 20
    for child in children:
        assert any(a[:cut] + b[cut:] == child for a in parents for b in parents for cut in range(13))
    assert len(set(children) - set(parents)) > 10
    mutated = GeneticSearch(20, crossover=0.0, mutation=1.0, sample=20)._children(space, parents, values, rng)
    for child in mutated:
        assert min(sum(a != b for a, b in zip(child, parent, strict=True)) for parent in parents) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": 1}, "population is 1"),
        ({"tournament": 0.0}, "tournament is 0.0"),
        ({"crossover": 1.2}, "crossover is 1.2"),
        ({"mutation": -0.1}, "mutation is -0.1"),
        ({"patience": 0}, "patience is 0"),
        ({"sample": 50}, "sample is 50"),
        ({"evolutions": 2.5}, "evolutions is 2.5"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        GeneticSearch(**arguments)


class TestRandomSearch:
    def test_it_takes_the_best_of_what_it_draws(self):
        space = StringSpace("01", 11)
        gp, evaluated = fitted(space, surrogate=FullyBayesianStringGP(draws=4))
        acquisition = UpperConfidenceBound()
        batch = suggest(RandomSearch(10_000), 3, space, gp, acquisition, excluded=evaluated, pending=["11001100110"])
        chosen = ["11001100110"]
        for element in batch:  # all 2,048 strings are drawn
            left = [s for s in space.enumerate() if s not in evaluated and s not in chosen[1:]]
            assert element.acquisition == pytest.approx(values_of(gp, acquisition, left, chosen).max(), abs=1e-9)
            chosen.append(element.string)

    def test_draws_of_the_posterior_can_be_searched(self):
        space = StringSpace("01", 8)
        gp, evaluated = fitted(space, surrogate=FullyBayesianStringGP(draws=4))
        batch = suggest(RandomSearch(200), 3, space, gp, ThompsonSampling(), excluded=evaluated)
        assert len({element.string for element in batch} - set(evaluated)) == 3

    def test_few_candidates_and_nothing_left(self):
        space = StringSpace("01", 3)
        gp, evaluated = fitted(space, count=8)
        assert suggest(RandomSearch(5), 2, space, gp, GIBBON(), excluded=evaluated) == []
        batch = suggest(RandomSearch(100), 5, space, gp, GIBBON(), excluded=evaluated[2:])
        assert {element.string for element in batch} == set(evaluated[:2])

    def test_a_number_below_one_is_refused(self):
        with pytest.raises(InputError, match="candidates is 0"):
            RandomSearch(0)


class TestInTheOptimizer:
    def test_each_kind_of_space_gets_its_search(self):
        class Listless:
            kind = "text"
            encoder = StringSpace("01", 4).encoder

            def sample(self, n, rng):
                return StringSpace("01", 4).sample(n, rng)

            def contains(self, string):
                return True

            def key(self, string):
                return string

            def keys_of(self, strings):
                return list(strings)

        assert isinstance(Optimizer(StringSpace("01", 4)).search, GeneticSearch)
        assert isinstance(Optimizer(Listless()).search, RandomSearch)
        assert isinstance(Optimizer(StringSpace("01", 4)).surrogate, FullyBayesianGP)
        assert isinstance(Optimizer(["a", "b", "c"]).surrogate, FullyBayesianGP)
        assert isinstance(Optimizer(["a", "b", "c"]).search, PoolSearch)

    def test_strings_are_not_suggested_twice_unless_that_is_allowed(self):
        space = StringSpace("01", 3)
        for repeats in (False, True):
            optimizer = Optimizer(space, initial=3, acquisition="mean", allow_repeats=repeats, seed=2)
            told = []
            for _ in range(4):
                strings = optimizer.ask()
                optimizer.tell(strings, [s.count("1") for s in strings])
                told += strings
            assert (len(set(told)) < len(told)) is repeats

    def test_pending_and_failed_strings_are_never_repeated(self):
        space = StringSpace("01", 2)
        optimizer = Optimizer(space, initial=2, acquisition="mean", allow_repeats=True, seed=0)
        optimizer.tell(["00", "01", "10"], [0.0, 1.0, float("nan")])
        first = optimizer.ask()
        second = optimizer.ask()
        assert first != second
        assert "10" not in first + second

    def test_the_recommended_string_is_not_the_luckiest_one(self):
        optimizer = Optimizer(StringSpace("01", 6), initial=2, seed=0, allow_repeats=True)
        optimizer.tell(["000000"] * 8 + ["111111"] * 8, [0.0, 0.1, 3.0, -0.2, 0.1, 0.0, 0.2, -0.1] + [1.0, 1.2] * 4)
        before = optimizer.state_dict()
        assert optimizer.best.string == "000000"
        assert optimizer.recommend().string == "111111"
        assert optimizer.state_dict() == before

    def test_a_recommendation_follows_the_direction_and_the_transform(self):
        optimizer = Optimizer(StringSpace("01", 6), initial=2, direction="minimize", transform="log10")
        optimizer.tell(["000000"] * 4 + ["111111"] * 4, [1000.0, 900.0, 0.05, 1100.0, 10.0, 11.0, 9.0, 10.0])
        assert optimizer.best.string == "000000"
        assert optimizer.recommend().string == "111111"

    def test_strings_are_random_while_all_values_are_equal(self):
        optimizer = Optimizer(StringSpace("01", 12), initial=2)
        for value in (1.0, 1.0, 2.0):
            strings = optimizer.ask()
            assert optimizer.observations.rows[-1].details["predicted_mean"] is None
            optimizer.tell(strings, [value] * len(strings))
        optimizer.ask()
        assert optimizer.observations.rows[-1].details["predicted_mean"] is not None

    def test_a_surrogate_can_be_asked_after_a_recommendation(self):
        optimizer = Optimizer(StringSpace("01", 6), initial=2)
        optimizer.tell(["000000", "111111", "010101"], [0.0, 1.0, 0.5])
        optimizer.ask()
        before = optimizer.surrogate.predict(["000111"])
        optimizer.recommend()
        assert optimizer.surrogate.predict(["000111"]) == before

    def test_a_saved_optimizer_goes_on_as_the_first(self):
        space = StringSpace("01", 12)

        def make():
            return Optimizer(space, initial=4, seed=5)

        first = make()
        for _ in range(2):
            strings = first.ask()
            first.tell(strings, [s.count("101") for s in strings])
        second = make()
        second.load_state_dict(first.state_dict())
        assert first.ask(2) == second.ask(2)

    def test_strings_outside_the_space_are_refused_and_nothing_is_recorded(self):
        optimizer = Optimizer(StringSpace("01", 4), initial=2)
        with pytest.raises(InputError, match="'0021' is not in the space"):
            optimizer.tell(["0000", "0021"], [1.0, 2.0])
        assert len(optimizer.observations) == 0

    def test_strings_that_constraints_leave_out_are_learned_from_and_not_suggested(self):
        space = CodonSpace("EFEFEF", forbidden=["GAATTC"])
        optimizer = Optimizer(space, initial=2, seed=1)
        genes = ["GAATTCGAATTCGAATTC", "GAATTCGAATTTGAATTT", "GAGTTTGAGTTTGAGTTT", "GAGTTCGAGTTTGAATTT"]
        optimizer.tell(genes, [9.0, 8.0, 1.0, 2.0])
        assert [row.value for row in optimizer.observations.with_status("ok")] == [9.0, 8.0, 1.0, 2.0]
        proposals = optimizer.ask(8)
        assert all(map(space.contains, proposals))
        assert not set(proposals) & set(genes)
        with pytest.raises(InputError, match="codes for"):
            optimizer.tell(["GAATTCGAATTCGAATGG"], [1.0])

    def test_what_was_lost_of_strings_that_are_left_out_is_not_suggested_again(self):
        space = CodonSpace("EFEFEF", forbidden=["GAATTC"])
        optimizer = Optimizer(space, initial=2, seed=1)
        optimizer.tell(["GAGTTTGAGTTTGAGTTT", "GAGTTCGAGTTTGAATTT"], [1.0, 2.0])
        lost = ["GAATTCGAATTCGAATTC", "GAGTTTGAATTTGAGTTT"]
        optimizer.tell(lost, [math.nan] * 2, errors=["lost: dropped"] * 2)
        proposals = list(optimizer.ask(3))
        assert proposals[0] == lost[1]
        assert all(map(space.contains, proposals))

    def test_parents_are_those_in_the_space_where_the_best_are_left_out(self):
        free, space = CodonSpace("EF" * 8), CodonSpace("EF" * 8, forbidden=["GAATTC"])
        rng = np.random.default_rng(0)
        outside = [gene for gene in free.sample(200, rng) if not space.contains(gene)][:30]
        inside = space.sample(5, rng)
        found = []

        class Recording(GeneticSearch):
            def _first(self, space, evaluated, rng):
                found.append(evaluated)
                return super()._first(space, evaluated, rng)

        gp = StringGP(encoder=space.encoder)
        gp.fit([*outside, *inside], [9.0] * 30 + [1.0, 2.0, 3.0, 4.0, 5.0], rng=rng)
        suggest(Recording(population=20, evolutions=2), 1, space, gp, LogExpectedImprovement())
        assert found
        assert all(set(parents) == set(inside) for parents in found)
