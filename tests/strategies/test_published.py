"""BOSS as published: its parts against independent implementations of what the paper prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from seqopt import CandidateSet, Optimizer
from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP
from seqopt.search import GeneticSearch, PoolSearch
from seqopt.spaces import CodonSpace, GrammarSpace, StringSpace
from seqopt.strategies import maximum_likelihood_gp, published_boss, published_initial, published_search

STRINGS = StringSpace("01", 12).sample(14, np.random.default_rng(5))
VALUES = np.array([float(string.count("101")) for string in STRINGS])


def log_likelihood(match: float, gap: float, scale: float, noise: float, mean: float) -> float:
    """The log density of standardised values by the multivariate normal distribution of scipy."""
    standardised = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    gram = SubsequenceKernel(order=5, match_decay=match, gap_decay=gap).cross(Encoder().encode(STRINGS))
    covariance = scale * gram + noise * np.eye(len(STRINGS))
    return float(stats.multivariate_normal(np.full(len(STRINGS), mean), covariance).logpdf(standardised))


def reached(gp: StringGP) -> float:
    found = gp.hyperparameters
    return log_likelihood(
        found["match_decay"], found["gap_decay"], found["outputscale"], found["noise_variance"], found["mean"]
    )


def test_parameters_maximise_the_likelihood_and_priors_have_no_say() -> None:
    gp = maximum_likelihood_gp()
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0))

    def negative(point: np.ndarray) -> float:
        return -log_likelihood(*point[:2], *np.exp(point[2:4]), point[4])

    starts = [(0.8, 0.5, 0.0, -4.0, 0.0), (0.3, 0.9, 1.0, -1.0, 0.0), (0.9, 0.1, 0.0, -2.0, 0.5)]
    bounds = [(1e-4, 1.0), (1e-4, 1.0), (-18.0, 9.0), (math.log(1e-4), 9.0), (-9.0, 9.0)]
    best = -min(optimize.minimize(negative, start, method="L-BFGS-B", bounds=bounds).fun for start in starts)
    assert reached(gp) > best - 0.05
    with_priors = StringGP(refit_growth=0.0)
    with_priors.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    assert reached(with_priors) < best - 0.2


def test_parameters_are_learned_anew_at_each_fit() -> None:
    gp = maximum_likelihood_gp()
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    before = gp.hyperparameters["gap_decay"], gp.hyperparameters["match_decay"]
    more = [*STRINGS, "111111111111"]
    gp.fit(more, [*VALUES, 3.0], rng=np.random.default_rng(0))
    assert (gp.hyperparameters["gap_decay"], gp.hyperparameters["match_decay"]) != before


def test_priors_are_part_of_a_configuration() -> None:
    from seqopt.utils.config import from_config

    again = from_config(published_boss(StringSpace("01", 8)).config())
    assert again.config() == published_boss(StringSpace("01", 8)).config()
    assert again._surrogate.priors is False


class Bits:
    """A score of strings of a space: something that is hard to reach by luck, and has ties."""

    def __init__(self) -> None:
        self.populations = 0

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        return {}

    def scorer(self, sample: Sequence[str]) -> Bits:
        return self

    def scores(self, keys: Sequence[str]) -> np.ndarray:
        self.populations += 1
        return np.array([float(worth(key)) for key in keys])

    def choose(self, key: str) -> object:
        from seqopt.scorers import Choice

        return Choice(key, worth(key), (), 0.0, 0.0, 0.0)


def worth(string: str) -> int:
    return string.count("101")


def printed_algorithm(rng: np.random.Generator, length: int = 30, size: int = 100) -> int:
    """Algorithms 4 and 5 of the thesis, line by line, with the corrections that are documented; returns the best."""

    def tournament(population: list[str]) -> str:
        some = rng.choice(len(population), size // 2, replace=False)
        return population[max(some.tolist(), key=lambda index: worth(population[index]))]

    def mutation(string: str) -> str:
        place = int(rng.integers(length))
        return string[:place] + str(rng.integers(2)) + string[place + 1 :]

    population = ["".join(map(str, rng.integers(2, size=length))) for _ in range(size)]
    best = max(map(worth, population))
    for _ in range(100):
        new: list[str] = []
        while len(new) < size:
            first = tournament(population)
            if rng.random() < 0.75:
                second, cut = tournament(population), int(rng.integers(1, length))
                first, second = second[:cut] + first[cut:], first[:cut] + second[cut:]
                new += [mutation(child) if rng.random() < 0.1 else child for child in (first, second)]
            else:
                new.append(mutation(first) if rng.random() < 0.1 else first)
        population = new[:size]
        if max(map(worth, population)) <= best:
            break
        best = max(map(worth, population))
    return best


def test_the_genetic_search_finds_what_the_printed_algorithm_finds() -> None:
    space, runs = StringSpace("01", 30), 80
    search = published_search(space)
    assert isinstance(search, GeneticSearch)
    found = []
    for seed in range(runs):
        (proposal,) = search.propose(1, space=space, scoring=Bits(), excluded=set(), rng=np.random.default_rng(seed))
        found.append(worth(proposal.string))
    printed = [printed_algorithm(np.random.default_rng([seed, 1])) for seed in range(runs)]
    error = math.hypot(np.std(found, ddof=1), np.std(printed, ddof=1)) / math.sqrt(runs)
    assert abs(np.mean(found) - np.mean(printed)) < 4 * error
    # The test can tell: with the additions of the default the search goes on and finds more.
    (longer,) = GeneticSearch().propose(
        1, space=space, scoring=_with_incumbents(), excluded=set(), rng=np.random.default_rng(0)
    )
    assert worth(longer.string) > np.mean(printed) + 4 * error


def _with_incumbents() -> Bits:
    scoring = Bits()
    scoring.incumbents = lambda count: []  # type: ignore[attr-defined]
    return scoring


def test_a_population_may_hold_a_string_twice_and_lose_the_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    space, seen = StringSpace("01", 4), []
    original: Callable[..., list[str]] = GeneticSearch._children

    def noted(self: GeneticSearch, space: StringSpace, parents: list[str], *rest: Any) -> list[str]:
        seen.append(list(parents))
        return original(self, space, parents, *rest)

    monkeypatch.setattr(GeneticSearch, "_children", noted)
    published_search(space).propose(1, space=space, scoring=Bits(), excluded=set(), rng=np.random.default_rng(0))
    assert len(seen[0]) == 100  # of 16 strings
    small = StringSpace("01", 16)
    losing = GeneticSearch(
        4, mutation=1.0, crossover=0.0, sample=4, patience=40, seeded=False, restarts=0, elitist=False, novel=False
    )
    seen.clear()
    losing.propose(1, space=small, scoring=Bits(), excluded=set(), rng=np.random.default_rng(3))
    best = [max(map(worth, population)) for population in seen]
    assert any(later < max(best[:place]) for place, later in enumerate(best) if place)


def test_each_kind_of_space_gets_the_search_of_the_paper() -> None:
    assert isinstance(published_search(CandidateSet(["AAA", "AAB", "BBB"])), PoolSearch)
    assert published_search(CandidateSet(["AAA", "AAB", "BBB"])).candidates == 100
    for space in (CodonSpace("MKV"), GrammarSpace("arithmetic", 3, 20)):
        assert isinstance(published_search(space), GeneticSearch)


def test_initial_strings_are_as_many_as_symbols_but_five_at_most() -> None:
    assert [published_initial(StringSpace(letters, 9)) for letters in ("0", "01", "0123", "01234567")] == [2, 2, 4, 5]
    assert published_initial(CodonSpace("MKV")) == 5
    assert published_initial(CodonSpace("MKV", representation="bases")) == 4


def test_kernels_tokenisers_and_partitions_of_genes() -> None:
    space = CodonSpace("TIKENIFGVS")
    for arguments, symbols in (({}, 10), ({"tokenizer": "characters"}, 30)):
        strategy = published_boss(space, partitions=2, **arguments)
        strategy.start(space)
        (gene,) = space.sample(1, np.random.default_rng(0))
        assert strategy.surrogate.kernel.partitions == 2
        assert int(strategy.surrogate.encoder.encode([gene]).lengths[0]) == symbols
    with pytest.raises(InputError, match="a kernel or partitions"):
        published_boss(space, kernel=NgramKernel(), partitions=2)


def test_a_search_improves_on_where_it_began() -> None:
    space = StringSpace("01", 20)
    optimizer = Optimizer(
        space, strategy=published_boss(space), initial=published_initial(space), transform="none", seed=1
    )
    for _ in range(9):
        strings = optimizer.ask()
        optimizer.tell(strings, [worth(string) for string in strings])
    first = max(row.value for row in list(optimizer.observations.rows)[:2])
    assert optimizer.best.value > first
    assert optimizer.chosen_by == "logei"
