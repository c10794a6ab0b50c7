"""A session stands where its file does, whoever has changed that, and however."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqopt.campaign import Campaign, CampaignError, CampaignStore, NewMeasurement, NewSuggestion, Settings
from seqopt.campaign.session import Session
from seqopt.data import Contexts, Query
from seqopt.errors import ExhaustedError, InputError
from seqopt.filters import Pattern
from seqopt.optimizer import Optimizer
from seqopt.spaces import StringSpace
from seqopt.strategies import BORE, MultiFidelity

SPACE = StringSpace("AB", 6)
LEVELS = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")
PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "one-hot": lambda: {"surrogate": "one-hot", "acquisition": "mean"},
    "bore": lambda: {"strategy": BORE()},
    "contexts": lambda: {"strategy": MultiFidelity(), "contexts": LEVELS},
}

KINDS = ("suggest", "record", "fail", "withdraw", "again", "undo", "filter", "elsewhere")
REVISING = ("correct", "discard", "undo one", "retry", "exclude", "change")
COMMANDS = st.lists(st.tuples(st.sampled_from(KINDS + REVISING), st.integers(0, 7)), min_size=4, max_size=14)


def state(campaign: Campaign) -> Any:
    found = campaign.session()
    optimizer = found.optimizer
    names = list(found.open)
    queries = [row.query for row in optimizer.observations.pending]
    assert sorted(queries) == sorted(Query(row.key, row.context) for row in found.open.values())
    told = [(row.string, row.status, row.values) for row in found.journal.told]
    asked = [([row.string for row in one.rows], one.end, one.told, one.number) for one in found.journal.asked]
    return json.dumps([optimizer.state_dict(), names, told, asked, found.journal.results], sort_keys=True)


def give(campaign: Campaign, kind: str, number: int) -> None:
    """One command; nothing where there is nothing to do."""
    waiting = campaign.store.open_suggestions()
    chosen = waiting[number % len(waiting)] if waiting else None
    measured = campaign.store.measurements()
    if kind == "suggest":
        try:
            campaign.suggest(1 + number % 3, more=True)
        except ExhaustedError:
            return
    elif kind == "record" and chosen is not None:
        campaign.record(chosen.name, float(chosen.string.count("AB")) + 0.5 * number)
    elif kind == "fail" and chosen is not None:
        campaign.record(chosen.name, failure="no yield")
    elif kind == "withdraw" and chosen is not None:
        campaign.withdraw([chosen.name], "sold out")
    elif kind == "again" and measured:
        last = measured[-1]
        context = dict(last.context) or None
        campaign.record(last.string, 0.25 * number, replicate=True, context=context)
    elif kind == "undo" and campaign.store.next_undo() is not None:
        campaign.undo()
    elif kind == "filter":
        wanted = [Pattern("^A")] if number % 2 else []
        if bool(wanted) != bool(campaign.filters):
            campaign.set_filters(wanted)
    elif kind == "correct" and measured:
        chosen_row = measured[number % len(measured)]
        with contextlib.suppress(CampaignError):  # of several results nobody says which
            campaign.correct(chosen_row.suggestion or chosen_row.string, 0.125 + number)
    elif kind == "discard" and measured:
        chosen_row = measured[number % len(measured)]
        with contextlib.suppress(CampaignError):
            campaign.discard(chosen_row.suggestion or chosen_row.string, every=True)
    elif kind == "undo one":
        with contextlib.suppress(CampaignError):  # something depends on it, or it was undone
            campaign.undo(1 + number % campaign.store.state)
    elif kind == "retry":
        with contextlib.suppress(CampaignError):
            campaign.retry_failed()
    elif kind == "exclude":
        text = format(number + 40, "06b").replace("0", "A").replace("1", "B")
        with contextlib.suppress(CampaignError):  # it has a result, or was withdrawn
            campaign.withdraw([text], "patented")
    elif kind == "change":
        with contextlib.suppress(CampaignError):
            campaign.change(direction=("maximize", "minimize")[number % 2])
    elif kind == "elsewhere":
        campaign.record(format(number + 8, "06b").replace("0", "A").replace("1", "B"), float(number), replicate=True)


@pytest.mark.slow
@pytest.mark.parametrize("make", PARTS.values(), ids=PARTS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(commands=COMMANDS, by_other=st.lists(st.booleans(), min_size=14, max_size=14))
def test_a_session_that_goes_on_and_one_that_begins_anew_stand_at_the_same(
    make: Callable[[], dict[str, Any]],
    commands: list[tuple[str, int]],
    by_other: list[bool],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("session") / "a.seqopt"
    with Campaign.create(path, SPACE, objective="y", batch_size=3, seed=1, **make()) as one, Campaign.open(path) as two:
        for (kind, number), other in zip(commands, by_other, strict=False):
            give(two if other else one, kind, number)
            state(two if other else one)  # one sees each command at once, the other later several together
        with Campaign.open(path) as fresh:
            expected = state(fresh)
        assert state(one) == state(two) == expected
        assert one.store.check() == []


def session(store: CampaignStore) -> Session:
    return Session(store, Optimizer(SPACE, surrogate="one-hot", initial=3, batch_size=2))


def test_commands_of_other_programs_count_as_an_ask_would() -> None:
    with CampaignStore.in_memory(Settings("y")) as store:
        ours = session(store)
        for batch in (["AAAAAA", "AAAAAB", "AAAABB"], ["BBBBBB"]):
            with store.transaction("suggest", {}, expected_state=store.state) as change:
                change.add_suggestions([NewSuggestion(string, string) for string in batch])
            assert ours.catch_up()
        assert ours.optimizer.counters == {"asks": 2, "batches": 1}
        with store.transaction("record", {}) as change:
            change.add_measurements([NewMeasurement("BBBBBB", "BBBBBB", 1.0), NewMeasurement("ABABAB", "ABABAB", 2.0)])
        assert ours.catch_up()
        assert [row.string for row in ours.journal.told] == ["BBBBBB", "ABABAB"]
        assert list(ours.open) == ["B01-01", "B01-02", "B01-03"]
        assert ours.journal.results == 2


def test_a_suggestion_that_was_interrupted_is_as_if_it_had_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    with CampaignStore.in_memory(Settings("y")) as store:
        ours, other = session(store), session(store)
        for one in ours.suggest(3, {}):
            with store.transaction("record", {}) as change:
                change.add_measurements([NewMeasurement(one.string, one.key, float(one.string.count("AB")))])
        other.catch_up()
        with monkeypatch.context() as patched:
            patched.setattr(store, "_write", None)
            with pytest.raises(TypeError):
                ours.suggest(2, {})
        assert ours.catch_up()
        assert ours.optimizer.state_dict() == other.optimizer.state_dict()
        assert [row.string for row in ours.suggest(2, {})] == other.optimizer.ask(2)


def test_half_a_replay_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Campaign.create(tmp_path / "a.seqopt", SPACE, objective="y", batch_size=3, surrogate="one-hot") as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, 1.0)
        with Campaign.open(tmp_path / "a.seqopt") as other:
            expected = state(other)

        def interrupted(*arguments: Any, **options: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Optimizer, "tell", interrupted)
            with pytest.raises(KeyboardInterrupt):
                campaign.session()
        assert state(campaign) == expected


def test_a_replicate_of_an_earlier_suggestion_leaves_a_repeated_one_open() -> None:
    with CampaignStore.in_memory(Settings("y", allow_repeats=True)) as store:
        ours = Session(store, Optimizer(SPACE, surrogate="one-hot", initial=3, batch_size=2, allow_repeats=True))
        for batch in range(2):
            with store.transaction("suggest", {}, expected_state=store.state) as change:
                change.add_suggestions([NewSuggestion("ABABAB", "ABABAB")])
            if not batch:
                with store.transaction("record", {}) as change:
                    change.add_measurements([NewMeasurement("ABABAB", "ABABAB", 1.0, suggestion="B01-01")])
        ours.catch_up()
        with store.transaction("record", {}) as change:
            change.add_measurements([NewMeasurement("ABABAB", "ABABAB", 2.0, suggestion="B01-01")])
        ours.catch_up()
        assert list(ours.open) == [row.name for row in store.open_suggestions()] == ["B02-01"]
        assert ours.optimizer.pending == ["ABABAB"]
        assert [row.value for row in ours.journal.told] == [1.0, 2.0]
        with store.transaction("withdraw", {}) as change:
            change.withdraw(["B02-01"])
        ours.catch_up()
        assert (ours.open, ours.optimizer.pending) == ({}, [])
        assert [row.status for row in ours.optimizer.observations.rows] == ["ok", "withdrawn", "ok"]


def test_an_interruption_after_the_suggestion_was_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with Campaign.create(tmp_path / "a.seqopt", SPACE, objective="y", batch_size=3, surrogate="one-hot") as campaign:
        with monkeypatch.context() as patched:
            patched.setattr(Session, "_note_asked", interrupted)
            with pytest.raises(KeyboardInterrupt):
                campaign.suggest()
        assert list(campaign.session().open) == ["B01-01", "B01-02", "B01-03"]
        assert len(campaign.session().journal.asked) == 1
        with Campaign.open(tmp_path / "a.seqopt") as fresh:
            assert state(campaign) == state(fresh)
        assert campaign.run(lambda strings: [float(string.count("A")) for string in strings], budget=3) == 3
        assert campaign.store.open_suggestions() == []


def test_an_older_copy_of_the_file_brings_its_settings_back(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with Campaign.create(path, SPACE, objective="y", batch_size=3, surrogate="one-hot") as campaign:
        with contextlib.closing(sqlite3.connect(tmp_path / "copy")) as copy:
            campaign.store._connection.backup(copy)
            campaign.set_filters([Pattern("^A")])
            campaign.suggest()
            copy.backup(campaign.store._connection)
        session_ = campaign.session()
        assert session_.settings.filters == []
        assert session_.open == {}
        assert session_.optimizer.space is campaign.space


def test_a_result_without_its_context_is_refused_by_the_file() -> None:
    with (
        CampaignStore.in_memory(Settings("y", contexts=LEVELS.config())) as store,
        pytest.raises(InputError, match="no context is not one of this search"),
        store.transaction("record", {}) as change,
    ):
        change.add_measurements([NewMeasurement("A", "A", 1.0)])
    with (
        CampaignStore.in_memory(Settings("y")) as store,
        pytest.raises(InputError, match="this campaign has none"),
        store.transaction("record", {}) as change,
    ):
        change.add_measurements([NewMeasurement("A", "A", 1.0, context=LEVELS.target)])
