"""A prior mean that is a function: the posterior is that of what is left without it, with the mean added again."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from seqopt import CandidateSet, Optimizer
from seqopt.errors import InputError
from seqopt.models import StringGP, gaussian

STRINGS = list(dict.fromkeys("".join(one) for one in np.random.default_rng(0).choice(list("ABC"), (60, 7)).tolist()))
POOL = CandidateSet(STRINGS, kind="text")
TRAIN = POOL.keys[:14]


def rough(strings: Sequence[str]) -> list[float]:
    """What a cheaper method says."""
    return [10.0 * string.count("A") for string in strings]


VALUES = np.array(rough(TRAIN)) + [string.count("BC") + 0.2 * string.count("C") for string in TRAIN]


def fitted(values: np.ndarray, **options: object) -> StringGP:
    gp = StringGP(restarts=1, **options)  # type: ignore[arg-type]
    gp.bind(POOL)
    gp.fit(TRAIN, values, rng=np.random.default_rng(1))
    return gp


@pytest.mark.slow
def test_predictions_are_those_of_the_rest_with_the_mean_added() -> None:
    with_mean, rest = fitted(VALUES, mean=rough), fitted(VALUES - rough(TRAIN))
    strings = POOL.keys[14:30]
    mean, std = with_mean.predict(strings)
    rest_mean, rest_std = rest.predict(strings)
    np.testing.assert_allclose(mean, rest_mean + rough(strings), rtol=1e-9)
    np.testing.assert_allclose(std, rest_std, rtol=1e-12)
    shift = torch.tensor(rough(strings), dtype=torch.float64)
    torch.testing.assert_close(with_mean.posterior(strings)[0], rest.posterior(strings)[0] + shift)
    torch.testing.assert_close(with_mean.posterior(strings)[1], rest.posterior(strings)[1])
    draws = with_mean.sample(strings, 3, np.random.default_rng(2))
    torch.testing.assert_close(draws, rest.sample(strings, 3, np.random.default_rng(2)) + shift)
    ours, theirs = with_mean.leave_one_out(), rest.leave_one_out()
    np.testing.assert_allclose(ours.values, VALUES, rtol=1e-12)
    np.testing.assert_allclose(ours.mean - rough(TRAIN), theirs.mean, rtol=1e-6, atol=1e-8)


def test_every_posterior_has_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    gp = fitted(VALUES, mean=rough)
    kept = gp.pool_posterior(POOL, pending=["ABCABCA"])
    at = gp.conditioned(["ABCABCA"]).at(POOL.keys)
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    streamed = gp.pool_posterior(POOL, pending=["ABCABCA"])
    offset, unit = gp.units
    expected = gp.predict(POOL.keys)[0]
    assert np.abs(expected - rough(POOL.keys)).max() < 8.0
    for posterior in (kept, at, streamed):
        mean = offset + unit * posterior.moments.mean[0].numpy()
        np.testing.assert_allclose(mean, expected, rtol=1e-6)
        np.testing.assert_allclose(offset + unit * posterior.observed_mean[0].numpy(), mean[:14], rtol=1e-6)
        assert posterior.best_observed == pytest.approx((VALUES.max() - offset) / unit)
        chosen = posterior.given(20).conditioned_mean[0].numpy()
        np.testing.assert_allclose(offset + unit * chosen, gp.predict(["ABCABCA", POOL.keys[20]])[0], rtol=1e-6)


def test_a_search_follows_the_mean_before_it_has_seen_more() -> None:
    optimizer = Optimizer(POOL, surrogate=StringGP(restarts=1, mean=rough), acquisition="mean", initial=2)
    worst = sorted(POOL.keys, key=lambda key: rough([key])[0])[:3]
    optimizer.tell(worst, [rough([key])[0] + 0.1 * place for place, key in enumerate(worst)])
    (found,) = optimizer.ask(1)
    assert rough([found])[0] == max(rough(POOL.keys))
    twin = pickle.loads(pickle.dumps(optimizer))
    assert twin.ask(2) == optimizer.ask(2)


def test_a_mean_that_is_not_a_number_for_each_string_is_refused() -> None:
    with pytest.raises(InputError, match=r"an array of shape \(1,\) for 14 strings"):
        fitted(VALUES, mean=lambda strings: [1.0])
    with pytest.raises(InputError, match="a number that is not finite for 14 strings"):
        fitted(VALUES, mean=lambda strings: [np.nan] * len(strings))
