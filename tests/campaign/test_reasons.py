"""Why a string was chosen, against what the model itself says."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from seqopt.campaign import Campaign
from seqopt.campaign.reasons import Reason, reason
from seqopt.spaces import CandidateSet

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=6)]


@pytest.mark.parametrize(
    ("mean", "best", "expected"), [(2.0, 1.0, "exploit"), (1.0, 1.0, "exploit"), (0.5, 1.0, "explore")]
)
def test_what_is_expected_to_be_as_good_as_the_best_exploits(mean: float, best: float, expected: str) -> None:
    assert reason(mean, best, [0.5, 0.75, 0.75], ["a", "b", "c"]) == Reason(expected, "b", 0.75)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_reasons_of_a_batch_are_those_of_its_model(tmp_path: Path, direction: str) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", CandidateSet(POOL, kind="text"), objective="hits", direction=direction, batch_size=4
    ) as campaign:
        assert {row.reason["kind"] for row in campaign.suggest()} == {"random"}
        for row in campaign.suggest():
            campaign.record(row.name, float(row.string.count("AB")))
        batch = campaign.suggest()
        measured = [row.string for row in campaign.store.measurements()]
        sign = 1.0 if direction == "maximize" else -1.0
        for row in batch:
            assert row.reason["nearest"] in measured
            assert 0 < row.reason["similarity"] <= 1
            # Without noise to speak of the best expected value of what was measured is close to the best value.
            margin = sign * row.mean - max(sign * one.value for one in campaign.store.measurements())
            if abs(margin) > 0.3:
                assert row.reason["kind"] == ("exploit" if margin > 0 else "explore")
