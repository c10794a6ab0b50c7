"""Intervals of what a campaign predicts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import seqopt
from seqopt.campaign import Campaign
from seqopt.data import interval
from seqopt.spaces import CandidateSet

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=8)]


@pytest.mark.parametrize("noise", [0.05, 2.0])
def test_nine_of_ten_noisy_measurements_lie_in_their_interval(noise: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def measure(string: str) -> float:
        return string.count("AB") + noise * rng.normal()

    library, history = tmp_path / "pool.csv", tmp_path / "history.csv"
    library.write_text("string\n" + "\n".join(POOL) + "\n")
    known = [POOL[index] for index in rng.permutation(len(POOL))[:150]]
    history.write_text("string,y\n" + "".join(f"{string},{measure(string)!r}\n" for string in known))
    with Campaign.create(
        tmp_path / "a.seqopt", library, objective="y", batch_size=30, surrogate="ngrams", acquisition="ucb", seed=3
    ) as campaign:
        campaign.record_file(history, history=True)
        batch = campaign.suggest()
    inside = [row.low <= measure(row.string) <= row.high for row in batch for _ in range(40)]
    assert 0.8 < np.mean(inside) < 0.98
    # The standard deviation beside it is that of the noiseless objective.
    assert all(row.std < (row.high - row.low) / 3 for row in batch)


@pytest.mark.slow
def test_a_run_keeps_the_same_interval_as_a_campaign(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    optimizer = seqopt.maximize(
        lambda strings: [10 ** (string.count("AB") + 0.5 * rng.normal()) for string in strings],
        CandidateSet(POOL, kind="text"),
        surrogate="ngrams",
        batch_size=2,
        initial=40,
        budget=2,
        transform="log10",
        seed=1,
        run_folder=tmp_path / "run",
    ).optimizer
    with Campaign.open(tmp_path / "run" / "campaign.seqopt") as campaign:
        stored = campaign.store.suggestions()[-2:]
    assert [row.string for row in stored] == [row.string for row in optimizer.observations.rows[-2:]]
    for row in stored:
        mean, std = optimizer.predicted_measurement(row.key)
        assert (row.low, row.high) == interval(mean, std, "log10")
        assert row.std is not None
        assert std is not None
        assert std > row.std
