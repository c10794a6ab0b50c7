"""Runs whose list of candidates has changed."""

import csv
import gzip
import itertools
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from seqopt import maximize
from seqopt.campaign.candidates import FILE, CandidateChanges, kept_candidates
from seqopt.campaign.store import CampaignStore
from seqopt.errors import RunFolderError

WORDS = ["".join(letters) for letters in itertools.product("AB", repeat=5)]


@pytest.fixture(autouse=True)
def _without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    # They have tests of their own, and take most of the time of a short run.
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


def score(strings: list[str]) -> list[float]:
    return [string.count("AB") + 0.1 * string.count("B") for string in strings]


def write(path: Path, words: list[str], **columns: Any) -> Path:
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["text", *columns])
        rows.writerows([word, *(value(word) for value in columns.values())] for word in words)
    return path


def search(pool: Path, folder: Path, budget: int, *, resume: bool = False, **options: Any) -> list[str]:
    options = {"initial": 5, "batch_size": 3, "surrogate": "ssk", "seed": 3} | options
    objective = options.pop("objective", score)
    result = maximize(objective, pool, budget=budget, run_folder=folder, resume=resume, **options)
    return [str(key) for key in result.evaluations["key"]]


@pytest.mark.slow
@pytest.mark.parametrize("objective", [score, "column:value"])
def test_rows_in_another_order_and_other_columns_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, objective: Any
) -> None:
    def value(word: str) -> float:
        return score([word])[0]

    pool = write(tmp_path / "pool.csv", WORDS, value=value, price=lambda word: 1)
    whole = search(pool, tmp_path / "whole", 9, objective=objective)
    search(pool, tmp_path / "run", 3, objective=objective)
    shuffled = random.Random(0).sample(WORDS, len(WORDS))
    write(pool, shuffled, supplier=lambda word: "A", value=value, price=lambda word: 2)
    with caplog.at_level(logging.WARNING):
        assert search(pool, tmp_path / "run", 9, resume=True, objective=objective) == whole
    assert "have changed" not in caplog.text


@pytest.mark.slow
def test_added_rows_are_taken_up_and_removed_ones_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = write(tmp_path / "pool.csv", WORDS[:20])
    before = search(pool, tmp_path / "run", 3)
    gone = [before[0], next(word for word in WORDS[:20] if word not in before)]
    write(pool, [word for word in reversed(WORDS) if word not in gone])
    with caplog.at_level(logging.WARNING):
        after = search(pool, tmp_path / "run", 100, resume=True)
    assert (
        "the candidates have changed: 30 candidates instead of 20: 12 added, 2 removed, of which 1 was evaluated and "
        "stays measured"
    ) in caplog.text
    assert after[: len(before)] == before
    # Everything but what was removed without having been evaluated.
    assert sorted(after) == sorted(set(WORDS) - {gone[1]})
    caplog.clear()
    # It has been said once.
    search(pool, tmp_path / "run", 100, resume=True)
    assert "candidates have changed" not in caplog.text


@pytest.mark.slow
def test_a_suggestion_that_is_no_longer_a_candidate_is_withdrawn(tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.csv", WORDS)
    calls: list[str] = []

    def objective(strings: list[str]) -> list[float]:
        if len(calls) == 6:
            calls.append("stopped")
            raise KeyboardInterrupt
        calls.extend(strings)
        return score(strings)

    with pytest.raises(KeyboardInterrupt):
        search(pool, tmp_path / "run", 9, objective=objective)
    with CampaignStore.open(tmp_path / "run" / "campaign.seqopt") as store:
        first, *others = store.open_suggestions()
    write(pool, [word for word in WORDS if word != first.string])
    after = search(pool, tmp_path / "run", 9, resume=True, objective=objective)
    assert first.string not in calls
    assert {row.string for row in others} <= set(calls)
    with CampaignStore.open(tmp_path / "run" / "campaign.seqopt") as store:
        assert [row.suggestion for row in store.withdrawals()] == [first.name]
    # A withdrawn suggestion is no result: the budget is spent on others.
    assert len(after) == 15


def test_known_values_that_were_changed_leave_what_was_evaluated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pool = write(tmp_path / "pool.csv", WORDS, value=lambda word: score([word])[0])
    search(pool, tmp_path / "run", 3, objective="column:value")
    write(pool, WORDS, value=lambda word: 100 + score([word])[0])
    with caplog.at_level(logging.WARNING):
        result = maximize(
            "column:value",
            pool,
            initial=5,
            budget=6,
            batch_size=3,
            surrogate="ssk",
            seed=3,
            run_folder=tmp_path / "run",
            resume=True,
        )
    assert "values in the file have changed: what was evaluated keeps the value that it had" in caplog.text
    values = result.evaluations["value"]
    assert (values[:8] < 100).all()
    assert (values[8:] >= 100).all()


def test_another_list_altogether_is_refused(tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.csv", WORDS)
    before = search(pool, tmp_path / "run", 3)
    write(pool, [f"{word}C" for word in WORDS])
    with pytest.raises(RunFolderError, match="other candidates than those of the run"):
        search(pool, tmp_path / "run", 6, resume=True)
    # Also where nobody has kept which candidates there were.
    (tmp_path / "run" / FILE).unlink()
    with pytest.raises(RunFolderError, match="other candidates than those of the run"):
        search(pool, tmp_path / "run", 6, resume=True)
    write(pool, WORDS)
    assert search(pool, tmp_path / "run", 6, resume=True)[: len(before)] == before


def test_a_damaged_list_is_as_good_as_none(tmp_path: Path) -> None:
    for contents in (b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b"[1]")):
        (tmp_path / FILE).write_bytes(contents)
        assert kept_candidates(tmp_path) is None


def test_changes_are_counted_as_sets() -> None:
    changes = CandidateChanges.between(["A", "B", "C"], 3, ["C", "D", "B", "E"], ["A", "A", "B"])
    assert changes == CandidateChanges(3, 4, 2, 1, 1)
    assert CandidateChanges.between(None, 3, ["C"], ["A"]).describe() == (
        "1 candidates instead of 3; of those removed 1 was evaluated and stays measured"
    )
