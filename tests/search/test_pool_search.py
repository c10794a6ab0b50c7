"""Filling a batch over a pool."""

import itertools

import numpy as np
import pytest
import torch

from seqopt.acquisition import GIBBON, PosteriorMean, gibbon
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.scorers import GaussianScoring
from seqopt.search import PoolSearch
from seqopt.spaces import CandidateSet

SPACE = CandidateSet(["".join(p) for p in itertools.product("ABC", repeat=4)], kind="text")


class GivenMaxValues:
    """Max-values that a test knows."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __call__(self, posterior: object, num_samples: int, rng: np.random.Generator) -> torch.Tensor:
        return torch.tensor(self.values, dtype=torch.float64)


@pytest.fixture
def surrogate() -> StringGP:
    rng = np.random.default_rng(2)
    train = SPACE.sample(12, rng)
    gp = StringGP(restarts=1)
    gp.bind(SPACE)
    gp.fit(train, [s.count("AB") + 0.3 * s.count("C") + 0.1 * rng.normal() for s in train], rng=rng)
    return gp


def suggest(surrogate: StringGP, n: int, **options: object) -> list:
    arguments = {
        "acquisition": GIBBON(sampler=GivenMaxValues([1.9, 2.4]), repulsion=1.0),
        "excluded": set(),
        "pending": [],
        "rng": np.random.default_rng(0),
        "candidates": None,
    } | options
    rng, pending = arguments["rng"], arguments["pending"]
    scoring = GaussianScoring(
        surrogate, arguments["acquisition"], pending=pending, batch_size=n + len(pending), rng=rng
    )
    search = PoolSearch(arguments["candidates"])
    return search.propose(n, space=SPACE, scoring=scoring, excluded=arguments["excluded"], rng=rng)


def test_a_batch_is_the_greedy_maximiser_of_the_joint_value(surrogate: StringGP) -> None:
    posterior = surrogate.pool_posterior(SPACE)
    mean, covariance = (moment[0] for moment in posterior.joint(torch.arange(len(SPACE))))
    noise = posterior.moments.residual_variance[0, 0]
    max_values = torch.tensor([1.9, 2.4], dtype=torch.float64)
    chosen: list[int] = []
    previous, increments = 0.0, []
    for _ in range(4):
        values = []
        for candidate in range(len(SPACE)):
            rows = [*chosen, candidate]
            value = gibbon(mean[rows], covariance[rows][:, rows], noise, max_values)
            values.append(-np.inf if candidate in chosen else float(value))
        chosen.append(int(np.argmax(values)))
        increments.append(max(values) - previous)
        previous = max(values)
    suggestions = suggest(surrogate, 4)
    assert [s.string for s in suggestions] == [SPACE[i] for i in chosen]
    np.testing.assert_allclose([s.acquisition for s in suggestions], increments, rtol=1e-5, atol=1e-9)


def test_predictions_are_those_of_the_surrogate(surrogate: StringGP) -> None:
    suggestions = suggest(surrogate, 5)
    mean, std = surrogate.predict([s.key for s in suggestions])
    np.testing.assert_allclose([s.predicted_mean for s in suggestions], mean, rtol=1e-9)
    np.testing.assert_allclose([s.predicted_std for s in suggestions], std, rtol=1e-6)


def test_excluded_strings_are_never_suggested_and_pending_ones_shape_the_batch(surrogate: StringGP) -> None:
    first = suggest(surrogate, 1)[0].key
    second = suggest(surrogate, 1, excluded={first})[0]
    informed = suggest(surrogate, 1, excluded={first}, pending=[first])[0]
    batch = suggest(surrogate, 2)
    assert second.key != first
    assert informed.key == batch[1].key
    assert informed.acquisition == pytest.approx(batch[1].acquisition, rel=1e-9)


def test_no_candidate_is_chosen_twice_in_a_batch(surrogate: StringGP) -> None:
    mean = surrogate.pool_posterior(SPACE).moments.mean[0].numpy()
    batch = suggest(surrogate, 5, acquisition=PosteriorMean())
    assert [s.string for s in batch] == [SPACE[i] for i in np.argsort(-mean, kind="stable")[:5]]


def test_a_random_part_of_the_pool(surrogate: StringGP) -> None:
    mean = PosteriorMean()
    excluded = set(SPACE.keys[:60])
    seen = {
        s.key
        for seed in range(20)
        for s in suggest(
            surrogate, 3, acquisition=mean, candidates=4, excluded=excluded, rng=np.random.default_rng(seed)
        )
    }
    assert not seen & excluded
    assert len(seen) > 6  # fresh candidates each time
    assert len(suggest(surrogate, 9, acquisition=mean, candidates=4)) == 4


def test_what_is_left_is_returned(surrogate: StringGP) -> None:
    assert len(suggest(surrogate, 5, excluded=set(SPACE.keys[2:]))) == 2
    assert suggest(surrogate, 5, excluded=set(SPACE.keys)) == []
    assert suggest(surrogate, 5, excluded=set(SPACE.keys), candidates=10) == []


def test_bad_argument() -> None:
    with pytest.raises(InputError, match="candidates is 0"):
        PoolSearch(0)
