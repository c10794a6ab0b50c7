"""Runs from before there were campaigns: their log is read once, and nothing of it is lost."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import seqopt
from seqopt.campaign import CampaignStore
from seqopt.campaign.old_logs import OLD_LOG
from seqopt.campaign.runs import CAMPAIGN
from seqopt.errors import RunFolderError
from seqopt.spaces import CandidateSet

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=5)]
POOL += [string + "\u00e9\u2603" for string in POOL]
OPTIONS: dict[str, Any] = {"budget": 9, "initial": 5, "batch_size": 3, "seed": 2}

LOG = (Path(__file__).parent / "data" / "log_of_0.1.0.jsonl").read_bytes()
"""The log of a run of version 0.1.0 with `OPTIONS` on `POOL`: five initial evaluations, three batches of three."""

EVENTS = [json.loads(line) for line in LOG.splitlines()]


@pytest.fixture(autouse=True)
def _no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


def space() -> CandidateSet:
    return CandidateSet(POOL, kind="text")


def score(strings: list[str]) -> list[float]:
    return [string.count("AB") + 0.25 * string.startswith("A") for string in strings]


def resume(folder: Path, calls: list[str], **options: Any) -> Any:
    def objective(strings: list[str]) -> list[float]:
        calls.extend(strings)
        return score(strings)

    objective.name = "old"  # type: ignore[attr-defined]
    return seqopt.maximize(objective, space(), run_folder=folder, resume=True, **(OPTIONS | options))


def test_a_finished_run_is_carried_over_as_it_was(tmp_path: Path) -> None:
    (tmp_path / OLD_LOG).write_bytes(LOG)
    calls: list[str] = []
    result = resume(tmp_path, calls)
    assert calls == []
    told = [event for event in EVENTS if event["event"] == "evaluated"]
    asked = [row for event in EVENTS if event["event"] == "asked" for row in event["rows"]]
    frame = result.evaluations
    assert frame["string"].tolist() == [row["string"] for row in asked]
    assert [None if value != value else value for value in frame["value"]] == [event["value"] for event in told]
    assert frame["error"].tolist() == [event["error"] for event in told]
    assert frame["seconds"].tolist() == [event["seconds"] for event in told]
    for column, name in (("predicted_mean", "predicted_mean"), ("acquisition", "acquisition"), ("batch", "batch")):
        expected = [row["context"][name] for row in asked]
        assert [None if value != value else value for value in frame[column]] == expected
    kernels = [event["state"]["hyperparameters"] for event in EVENTS if event["event"] == "asked"]
    assert [step.kernel for step in result.steps] == kernels
    with CampaignStore.open(tmp_path / CAMPAIGN) as store:
        assert store.check() == []
        assert store.settings.extra["run"]["settings"] == EVENTS[0]["settings"]
    assert (tmp_path / OLD_LOG).read_bytes() == LOG


@pytest.mark.parametrize("share", [0.3, 0.65, 0.95])
def test_a_killed_run_goes_on(tmp_path: Path, share: float) -> None:
    part = LOG[: int(len(LOG) * share)]
    done = [json.loads(line) for line in part[: part.rfind(b"\n")].splitlines()]
    (tmp_path / OLD_LOG).write_bytes(part)
    calls: list[str] = []
    result = resume(tmp_path, calls)
    kept = [event["string"] for event in done if event["event"] == "evaluated"]
    assert len(kept) + len(calls) == 14
    assert result.evaluations["string"].tolist()[: len(kept)] == kept
    assert set(kept).isdisjoint(calls)
    # The log is not read again.
    (tmp_path / OLD_LOG).write_bytes(b"nonsense\n")
    resume(tmp_path, calls)
    assert len(kept) + len(calls) == 14


def test_other_settings_and_damage_are_refused_and_leave_no_campaign(tmp_path: Path) -> None:
    (tmp_path / OLD_LOG).write_bytes(LOG)
    with pytest.raises(RunFolderError, match="seed was 2, is now 3"):
        resume(tmp_path, [], seed=3)
    lines = LOG.splitlines(keepends=True)
    (tmp_path / OLD_LOG).write_bytes(b"".join([*lines[:3], lines[3][:20] + b"%%" + lines[3][25:], *lines[4:]]))
    with pytest.raises(RunFolderError, match=r"log\.jsonl, line 4: damaged"):
        resume(tmp_path, [])
    (tmp_path / OLD_LOG).write_bytes(b'{"event": "settings", "format": 99}\n')
    with pytest.raises(RunFolderError, match=r"log\.jsonl, line 1: not the settings"):
        resume(tmp_path, [])
    with pytest.raises(RunFolderError, match="already holds a run"):
        seqopt.maximize(score, space(), run_folder=tmp_path, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == [OLD_LOG]
