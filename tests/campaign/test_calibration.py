"""Predictions held against the results that came later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import seqopt
from seqopt.campaign import Campaign
from seqopt.campaign.calibration import Calibration, calibration_of
from seqopt.campaign.rows import Measurement, Suggestion
from seqopt.report.campaigns import read_campaign
from seqopt.report.results import read_run
from seqopt.spaces import StringSpace


def test_the_first_value_that_answers_a_suggestion_is_held_against_its_interval() -> None:
    def suggested(name: str, low: float | None = 1.0, high: float | None = 2.0) -> Suggestion:
        return Suggestion("s", "s", mean=1.5, std=0.1, low=low, high=high, name=name)

    def told(name: str | None, value: float | None, **others: object) -> Measurement:
        return Measurement("s", "s", value, suggestion=name, **others)  # type: ignore[arg-type]

    suggestions = [suggested(name) for name in ("inside", "below", "above", "edge", "failed", "cut", "discarded")]
    suggestions += [suggested("random", None, None), suggested("open")]
    measurements = [
        told("inside", 1.5),
        told("inside", 9.0),  # a replicate
        told("below", 0.5),
        told("above", 2.5),
        told("edge", 2.0),
        told("failed", None, failure="lost"),
        told("cut", 5.0, censored=">"),
        told("discarded", 9.0, discarded="a bubble"),
        told("random", 7.0),
        told(None, 7.0),
    ]
    found = calibration_of(suggestions, measurements)
    assert found == Calibration(4, 1, 1)
    assert (found.inside, found.expected) == (2, pytest.approx(3.6))


@pytest.mark.parametrize("count", [1, 5, 40, 300])
def test_only_what_chance_does_not_explain_is_said_of_the_intervals(count: int) -> None:
    for inside in range(count + 1):
        few, many = stats.binom.cdf(inside, count, 0.9) < 0.05, stats.binom.sf(inside - 1, count, 0.9) < 0.05
        verdict = Calibration(count, count - inside, 0).verdict()
        assert verdict == (
            "the intervals are too narrow" if few else "the intervals are wider than they need be" if many else ""
        )
        assert count == 1 or verdict in Calibration(count, count - inside, 0).describe()


def test_one_prediction_is_spoken_of_alone() -> None:
    assert Calibration(1, 0, 0).describe() == "the one prediction with a result lay inside its 90 % interval"
    assert Calibration(1, 1, 0).describe() == "the one prediction with a result lay outside its 90 % interval"


def test_intervals_that_are_right_are_seldom_blamed() -> None:
    rng = np.random.default_rng(0)
    blamed = [bool(Calibration(60, int(rng.binomial(60, 0.1)), 0).verdict()) for _ in range(500)]
    assert np.mean(blamed) < 0.1


def test_campaigns_say_in_their_status_that_the_last_batch_missed(tmp_path: Path) -> None:
    path, space = tmp_path / "a.seqopt", StringSpace("AB", 8)
    with Campaign.create(path, space, objective="y", batch_size=6, surrogate="hamming", seed=1) as campaign:
        for last in (False, False, True):
            for row in campaign.suggest():
                campaign.record(row.name, float(row.string.count("A")) + (1000.0 if last else 0.0))
            missed = [text for text in campaign.status().warnings if "missed what was predicted" in text]
            assert bool(missed) == last
    assert "6 were better" in missed[0]
    assert any("missed what was predicted" in text for text in read_campaign(path).remarks)


@pytest.mark.slow
def test_pages_of_runs_say_that_the_last_batch_missed(tmp_path: Path) -> None:
    seen: list[str] = []

    def score(strings: list[str]) -> list[float]:
        seen.extend(strings)
        return [string.count("A") + (1000.0 if string in seen[18:] else 0.0) for string in strings]

    given = {"surrogate": "hamming", "initial": 12, "batch_size": 6, "seed": 1}
    result = seqopt.maximize(score, StringSpace("AB", 8), budget=12, run_folder=tmp_path / "run", **given)
    assert "missed what was predicted" in result.optimizer.missed()
    assert any("missed what was predicted" in text for text in read_run(tmp_path / "run").remarks)
