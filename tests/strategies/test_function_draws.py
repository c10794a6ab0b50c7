"""Thompson sampling of whole functions on a pool."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace, maximize
from seqopt.errors import InputError
from seqopt.models.weight_space import NgramMap, WeightSpaceGP, scaled
from seqopt.scorers.limits import BatchLimits
from seqopt.strategies import FunctionDraws
from seqopt.utils.config import from_config

POOL = CandidateSet(["".join("AB"[i >> k & 1] for k in range(8)) for i in range(256)], kind="text")


def score(strings: list[str]) -> list[float]:
    return [float(string.count("AB")) for string in strings]


def test_it_finds_the_best_and_predicts() -> None:
    result = maximize(score, POOL, strategy=FunctionDraws(), initial=10, budget=20, batch_size=5)
    assert result.best_value == 4.0
    table = result.evaluations[10:]
    assert table["predicted_mean"].notna().all()
    assert (table["predicted_std"] >= 0).all()
    assert len(set(result.evaluations["key"])) == 30


def test_choices_are_as_likely_as_they_are_best() -> None:
    pool = CandidateSet(["AAA", "AAB", "ABB", "BBB", "BBC", "CCC"], kind="text")
    told = {"AAB": 1.0, "ABB": 1.5}
    features = NgramMap(1)
    features.fit(pool.keys)
    process = WeightSpaceGP(features(list(told)), list(told.values()))
    draws = process.values(features(pool.keys), process.draw(40_000, np.random.default_rng(1)))
    shares = np.bincount(draws.argmax(0), minlength=6) / 40_000
    # Brute force: joint normal draws of all candidates.
    rows = scaled(features(pool.keys)).toarray()
    train = scaled(features(list(told))).toarray()
    v, e = process.scale, process.noise
    gram = v * train @ train.T + e * np.eye(2)
    cross = v * rows @ train.T
    covariance = v * rows @ rows.T - cross @ np.linalg.solve(gram, cross.T)
    targets = (np.array(list(told.values())) - process.offset) / process.unit
    mean = cross @ np.linalg.solve(gram, targets)
    joint = np.random.default_rng(2).multivariate_normal(mean, covariance, 40_000)
    brute = np.bincount(joint.argmax(1), minlength=6) / 40_000
    np.testing.assert_allclose(shares, brute, atol=0.015)
    # And so are the choices of the strategy, among what has no value yet.
    asked = []
    for seed in range(60):
        optimizer = Optimizer(pool, strategy=FunctionDraws(NgramMap(1)), initial=2, seed=seed, transform=None)
        optimizer.tell(list(told), list(told.values()))
        asked += optimizer.ask(1)
    new = np.bincount(draws[[0, 3, 4, 5]].argmax(0), minlength=4) / 40_000
    for key, share in zip(["AAA", "BBB", "BBC", "CCC"], new, strict=True):
        assert abs(asked.count(key) / 60 - share) <= 4 * np.sqrt(share * (1 - share) / 60)
    assert 0.05 < new.max() < 0.95


def test_limits_seeds_and_descriptions_are_kept() -> None:
    def asked(seed: int, strategy: FunctionDraws) -> list[str]:
        optimizer = Optimizer(
            POOL, strategy=strategy, initial=4, limits=BatchLimits(max_similarity=0.8), batch_size=6, seed=seed
        )
        first = POOL.keys[::64]
        optimizer.tell(first, score(first))
        return optimizer.ask(6)

    one = FunctionDraws(NgramMap(3))
    again = from_config(one.config())
    assert asked(0, one) == asked(0, again) != asked(1, again)


def test_a_batch_may_be_larger_than_what_is_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.strategies.function_draws.AT_A_TIME", 3)
    optimizer = Optimizer(POOL, strategy=FunctionDraws(), initial=4)
    first = optimizer.ask(4)
    optimizer.tell(first, score(first))
    assert len(set(optimizer.ask(100)) | set(first)) == 104
    assert len(optimizer.ask(200)) == 152


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="StringSpace generates its strings: take the acquisition function thompson"):
        Optimizer(StringSpace("AB", 4), strategy=FunctionDraws())
