"""Searches of tuples of building blocks, against enumeration of all products."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.acquisition import resolve_acquisition
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel
from seqopt.models import ReagentGP, StringGP
from seqopt.models.reagent_grid import TupleGrid
from seqopt.scorers import GaussianScoring
from seqopt.scorers.limits import BatchLimits, limited
from seqopt.search import GeneticSearch, ReagentSearch
from seqopt.spaces import CombinatorialSpace, StringSpace
from seqopt.strategies import ModelBased

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"
AMINATION = "[C;H1:1]=O.[N;H1,H2;!$(NC=O):2]>>[C:1][N:2]"


@pytest.fixture(scope="module")
def space() -> CombinatorialSpace:
    return CombinatorialSpace(
        [AMIDE, AMINATION],
        {
            "acids": ["C" * n + "C(=O)O" for n in range(1, 9)],
            "amines": ["N" + "C" * n + "F" for n in range(2, 12)],
            "aldehydes": ["C" * n + "C=O" for n in range(1, 6)],
        },
    )


@pytest.fixture(scope="module")
def fitted(space: CombinatorialSpace) -> ReagentGP:
    gp, rng = ReagentGP(), np.random.default_rng(0)
    gp.bind(space)
    strings = space.sample(40, rng)
    gp.fit(strings, [-abs(len(string) - 13) + 0.1 * string.count("O") for string in strings], rng=rng)
    return gp


def _scoring(gp: ReagentGP, name: str) -> GaussianScoring:
    return GaussianScoring(gp, resolve_acquisition(name), batch_size=5, rng=np.random.default_rng(1))


@pytest.mark.parametrize("largest", [2_000_000, 1])
def test_the_first_of_a_greedy_batch_has_the_largest_mean_of_all_products(
    space: CombinatorialSpace, fitted: ReagentGP, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqopt.search.reagents.LARGEST", largest)
    everything = space.sample(1000, np.random.default_rng(0))
    excluded = {str(key) for key in fitted.fitted.keys}
    search, rng = ReagentSearch(draws=4, shortlist=100), np.random.default_rng(2)
    found = search.propose(5, space=space, scoring=_scoring(fitted, "mean"), excluded=excluded, rng=rng)
    means = dict(zip(everything, fitted.predict(everything)[0].tolist(), strict=True))
    best = sorted((value for key, value in means.items() if key not in excluded), reverse=True)
    assert [means[one.key] for one in found] == pytest.approx(best[:5], abs=1e-4)
    assert all(one.key not in excluded for one in found)


def test_draws_put_their_best_into_the_batch(space: CombinatorialSpace, fitted: ReagentGP) -> None:
    search, rng = ReagentSearch(draws=3), np.random.default_rng(0)
    found = search.propose(6, space=space, scoring=_scoring(fitted, "thompson"), excluded=set(), rng=rng)
    again = search.propose(
        6, space=space, scoring=_scoring(fitted, "thompson"), excluded=set(), rng=np.random.default_rng(0)
    )
    assert [one.key for one in found] == [one.key for one in again]
    assert len({one.key for one in found}) == 6
    means = fitted.predict([one.key for one in found])[0]
    assert [one.predicted_mean for one in found] == pytest.approx(means.tolist(), abs=1e-6)
    # Of each draw the better one comes first.
    scores = [one.acquisition or 0.0 for one in found]
    assert all(scores[place] >= scores[place + 1] for place in (0, 2, 4))


def test_limits_of_a_batch_hold(space: CombinatorialSpace, fitted: ReagentGP) -> None:
    batch = BatchLimits(max_similarity=0.6).open("molecule")
    scoring = limited(_scoring(fitted, "thompson"), batch)
    found = ReagentSearch(draws=4, shortlist=80).propose(
        4, space=space, scoring=scoring, excluded=set(), rng=np.random.default_rng(0)
    )
    assert found
    assert batch.allows([one.key for one in found]).tolist() == [False] * len(found)  # each is like itself


def test_another_surrogate_searches_by_moves(space: CombinatorialSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "seqopt.search.reagents.GeneticSearch", lambda: GeneticSearch(evolutions=2, population=10, sample=20)
    )
    surrogate = StringGP(NgramKernel(), restarts=1)
    optimizer = Optimizer(space, strategy=ModelBased(surrogate, "logei"), initial=8, batch_size=2, seed=0)
    for _ in range(2):
        strings = optimizer.ask(8 if not len(optimizer.observations) else 2)
        optimizer.tell(strings, [float(len(string)) for string in strings])
    assert all(space.contains(row.string) for row in optimizer.observations.rows)


def test_a_search_is_better_than_chance(space: CombinatorialSpace) -> None:
    def value(string: str) -> float:
        _, one, two = space.from_string(string)
        return -((one % 7 - 3) ** 2) * (1 + (two % 5))

    optimizer = Optimizer(space, acquisition="thompson", initial=20, batch_size=10, seed=3)
    for _ in range(4):
        strings = optimizer.ask()
        optimizer.tell(strings, [value(string) for string in strings])
    rows = optimizer.observations.rows
    everything = np.array([value(string) for string in space.sample(1000, np.random.default_rng(0))])
    assert np.mean([row.value for row in rows[20:]]) > everything.mean()
    assert max(row.value for row in rows) == everything.max()


def test_grids_hold_reactions_of_two_and_three_components() -> None:
    space = CombinatorialSpace(
        [AMIDE, "[C;H1:1]=O.[N;H2:2].[C:3](=[O:4])[OH]>>[C:1](C#N)[N:2][C:3]=[O:4]"],
        {"acids": ["CC(=O)O", "CCC(=O)O"], "amines": ["CN", "CCN"], "aldehydes": ["CC=O"]},
    )
    grid = TupleGrid(space)
    pairs, triples = grid.tuples(0, np.arange(4)), grid.tuples(1, np.arange(4))
    assert (pairs[:, 3] == -1).all()
    assert (triples[:, 3] >= 0).all()
    for rows in (pairs, triples):
        assert len({space.product(tuple(n for n in row.tolist() if n >= 0)) for row in rows}) == 4


def test_other_spaces_and_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="a StringSpace has none"):
        ReagentSearch().check_space(StringSpace("01", 4))
    for options in ({"draws": 0}, {"shortlist": True}, {"starts": 0}, {"dispersion": 0.0}, {"new_pairs": 1.5}):
        with pytest.raises(InputError, match=next(iter(options))):
            ReagentSearch(**options)  # type: ignore[arg-type]


STRECKER = "[C;H1:1]=O.[N;H2:2].[C:3](=[O:4])[OH]>>[C:1](C#N)[N:2][C:3]=[O:4]"


@pytest.fixture(scope="module", params=[[STRECKER], [STRECKER, AMIDE]], ids=["three", "three and two"])
def triples(request: pytest.FixtureRequest) -> tuple[CombinatorialSpace, ReagentGP]:
    space = CombinatorialSpace(
        request.param,
        {
            "aldehydes": ["C" * n + "C=O" for n in range(1, 6)],
            "amines": ["N" + "C" * n + "F" for n in range(2, 9)],
            "acids": ["C" * n + "C(=O)O" for n in range(1, 7)],
        },
    )
    gp, rng = ReagentGP(), np.random.default_rng(0)
    gp.bind(space)
    strings = space.sample(25, rng)
    gp.fit(strings, [-abs(len(string) - 19) + 2.0 * string.count("CCF") for string in strings], rng=rng)
    return space, gp


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_batch_goes_to_new_pairs(triples: tuple[CombinatorialSpace, ReagentGP], share: float) -> None:
    space, gp = triples
    known = {str(key) for key in gp.fitted.keys}
    found = ReagentSearch(new_pairs=share).propose(
        12, space=space, scoring=_scoring(gp, "mean"), excluded=known, rng=np.random.default_rng(0)
    )
    # All products one by one, the largest mean first.
    keys = [key for key in space.sample(10_000, np.random.default_rng(1)) if key not in known]
    means = dict(zip(keys, gp.predict(keys)[0].tolist(), strict=True))
    keys.sort(key=means.__getitem__, reverse=True)

    def pairs(key: str) -> set[tuple[int, ...]]:
        reaction, *blocks = space.from_string(key)
        return {
            (reaction, one, other, blocks[one], blocks[other]) for other in range(len(blocks)) for one in range(other)
        }

    later = int(12 * share)
    batch = keys[: 12 - later]
    together = set().union(*map(pairs, [*known, *batch]))
    left = [key for key in keys if key not in batch]
    for _ in range(later):
        able = [key for key in left if len(pairs(key) - together) >= len(space.from_string(key)) - 2]
        taken = (able or left)[0]
        batch.append(taken)
        left.remove(taken)
        together |= pairs(taken)
    assert [means[one.key] for one in found] == pytest.approx([means[key] for key in batch], abs=1e-4)
    assert len({one.key for one in found}) == 12
    assert [one.predicted_mean for one in found] == pytest.approx([means[one.key] for one in found], abs=1e-4)


def test_what_new_pairs_leave_is_filled_by_the_largest_means(triples: tuple[CombinatorialSpace, ReagentGP]) -> None:
    space, gp = triples
    everything = space.sample(10_000, np.random.default_rng(1))
    found = ReagentSearch(new_pairs=0.5).propose(
        10_000, space=space, scoring=_scoring(gp, "mean"), excluded={everything[0]}, rng=np.random.default_rng(0)
    )
    assert sorted(one.key for one in found) == sorted(everything[1:])


def test_draws_have_no_share_of_new_pairs(triples: tuple[CombinatorialSpace, ReagentGP]) -> None:
    space, gp = triples
    batches = [
        ReagentSearch(draws=3, new_pairs=share).propose(
            6, space=space, scoring=_scoring(gp, "thompson"), excluded=set(), rng=np.random.default_rng(0)
        )
        for share in (0.0, 1.0)
    ]
    assert [one.key for one in batches[0]] == [one.key for one in batches[1]]


def test_pairs_of_two_components_are_products_and_need_no_share(
    space: CombinatorialSpace, fitted: ReagentGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("new pairs were looked for")

    monkeypatch.setattr("seqopt.search.reagents._with_new_pairs", refuse)
    search, rng = ReagentSearch(new_pairs=0.5), np.random.default_rng(0)
    assert len(search.propose(6, space=space, scoring=_scoring(fitted, "mean"), excluded=set(), rng=rng)) == 6
