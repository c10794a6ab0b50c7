"""The store of a campaign: commands are whole or not at all, and nothing is lost."""

import dataclasses
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqopt
import seqopt.campaign.checking  # processes without privileges may not be able to load it
from seqopt.bench.faults import CREATE, Expected, perform, plan, settings_of
from seqopt.campaign import (
    CampaignError,
    CampaignStore,
    NewMeasurement,
    NewSnapshot,
    NewSuggestion,
    Settings,
    StaleStateError,
)
from seqopt.errors import InputError
from seqopt.utils.losses import LOST, is_lost

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and limits of POSIX systems")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CampaignStore]:
    with CampaignStore.create(tmp_path / "campaign.seqopt", Settings("pIC50", unit="M")) as made:
        yield made


def suggest(store: CampaignStore, *strings: str) -> list[str]:
    return suggest_rows(store, [NewSuggestion(text, text.upper()) for text in strings])


def suggest_rows(
    store: CampaignStore,
    rows: list[NewSuggestion],
    *,
    snapshot: int | None = None,
    expected_state: int | None = None,
) -> list[str]:
    with store.transaction("suggest", {"n": len(rows)}, expected_state=expected_state or store.state) as change:
        return [row.name for row in change.add_suggestions(rows, snapshot=snapshot)]


def record_rows(store: CampaignStore, *parts: Iterable[NewMeasurement]) -> None:
    with store.transaction("record") as change:
        for part in parts:
            change.add_measurements(part)


def interrupted() -> Iterator[NewMeasurement]:
    yield NewMeasurement("b", "B", 1.0)
    raise KeyboardInterrupt


def record(store: CampaignStore, string: str, value: float | None, **options: Any) -> None:
    if value is None:
        options.setdefault("failure", "no yield")
    with store.transaction("record", {"string": string}) as change:
        change.add_measurements([NewMeasurement(string, string.upper(), value, **options)])


def statuses(store: CampaignStore) -> dict[str, str]:
    return {row.name: row.status for row in store.suggestions(undone=True)}


def contents(store: CampaignStore) -> Any:
    """All that counts now, without the traces of what does not."""
    rows = [store.suggestions(), store.measurements(), store.withdrawals(), store.snapshots(), [store.settings]]
    return [[dataclasses.replace(row) for row in table] for table in rows]


def test_what_is_written_is_read(store: CampaignStore) -> None:
    path = store.path
    new = NewSuggestion(
        "ccO", "CCO", 1 / 3, 0.1, -1.0, 2.0, "gibbon", 1e-300, {"nearest": "c\u00e9", "similarity": 0.5}
    )
    with store.transaction("suggest", {"n": 1, "more": True}, expected_state=1) as change:
        model = change.add_snapshot(NewSnapshot("ssk", 17, {"loo": {"r2": 0.5}}, {"draws": [0.1, None, "x"]}))
        change.add_suggestions([new, NewSuggestion("b", "B")], snapshot=model)
    rows = [
        NewMeasurement("CCO ", "CCO", 0.1 + 0.2, None, 1e-9, "a", "r.csv", 7, "B01-01", {"well": "A1"}),
        NewMeasurement("x", "X", failure="dissolved", source="r.csv", line=8),
    ]
    with store.transaction("record", {"file": "r.csv", "sha256": "0"}) as change:
        change.add_measurements(rows)
    store.close()
    with CampaignStore.open(path) as again:
        first, second = again.suggestions()
        assert NewSuggestion(*(getattr(first, field.name) for field in dataclasses.fields(new))) == new
        assert (first.name, first.batch, first.position, first.snapshot, first.status) == (
            "B01-01",
            1,
            1,
            1,
            "measured",
        )
        assert (second.name, second.status, second.mean) == ("B01-02", "open", None)
        assert [_as_new(row) for row in again.measurements()] == rows
        assert again.settings == Settings("pIC50", unit="M")
        assert again.latest_snapshot() == again.snapshots()[0]
        assert (again.snapshots()[0].summary, again.snapshots()[0].n) == ({"loo": {"r2": 0.5}}, 17)
        assert again.snapshot_state(1) == {"draws": [0.1, None, "x"]}
        assert [(row.id, row.kind, row.arguments, row.changes) for row in again.history()] == [
            (1, "create", {}, {"settings": 1}),
            (2, "suggest", {"n": 1, "more": True}, {"snapshots": 1, "suggestions": 2}),
            (3, "record", {"file": "r.csv", "sha256": "0"}, {"measurements": 2}),
        ]
        assert {row.version for row in again.history()} == {seqopt.__version__}
        assert again.recorded_files() == {"0": again.command(3)}
        assert again.check() == []


def _as_new(row: Any) -> NewMeasurement:
    return NewMeasurement(*(getattr(row, field.name) for field in dataclasses.fields(NewMeasurement)))


def test_a_look_whether_there_is_a_campaign_changes_nothing(tmp_path: Path, store: CampaignStore) -> None:
    suggest(store, "a")
    assert CampaignStore.begun(store.path)  # with its log beside it
    store.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert CampaignStore.begun(store.path)
    assert not CampaignStore.begun(tmp_path / "other")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "blank").touch()
    (tmp_path / "text").write_text("not a database " * 100)
    assert not CampaignStore.begun(tmp_path / "blank")
    assert CampaignStore.begun(tmp_path / "text")


def test_a_command_that_fails_leaves_nothing(store: CampaignStore) -> None:
    suggest(store, "a")
    before = contents(store), store.history()
    for wrong, error in (
        (NewMeasurement("b", "B"), InputError),
        (NewMeasurement("b", "B", 1.0, "failed, too"), InputError),
        (NewMeasurement("b", "B", math.nan), InputError),
        (NewMeasurement("b", "B", math.inf), InputError),
        (NewMeasurement("b", "B", 1.0, None, 0.0), InputError),
        (NewMeasurement("b", "B", None, "failed", 0.1), InputError),
        (NewMeasurement("", "", 1.0), CampaignError),
        (NewMeasurement("\ud800", "B", 1.0), InputError),
        (NewMeasurement("b", "B", 1.0, suggestion="B01-01"), CampaignError),
        (NewMeasurement("b", "B", 1.0, suggestion="B07-01"), CampaignError),
        (NewMeasurement("b", "B", 1.0, details={"x": math.nan}), InputError),
    ):
        with pytest.raises(error):
            record_rows(store, [NewMeasurement("a", "A", 1.0)], [NewMeasurement("c", "C", 1.0), wrong])
    with pytest.raises(KeyboardInterrupt):
        record_rows(store, [NewMeasurement("a", "A", 1.0)], interrupted())
    for arguments in ({"n": math.nan}, {"n": object()}):
        with pytest.raises(InputError, match="JSON"), store.transaction("record", arguments) as change:
            change.add_measurements([NewMeasurement("a", "A", 1.0)])
    with pytest.raises(CampaignError, match="would change nothing"), store.transaction("record") as change:
        change.add_measurements([])
    with pytest.raises(InputError, match="unknown kind"), store.transaction("create"):
        pass
    with pytest.raises(InputError, match="makes no suggestions"), store.transaction("record") as change:
        change.add_suggestions([NewSuggestion("b", "B")])
    with pytest.raises(InputError, match="mean of suggestion"):
        suggest_rows(store, [NewSuggestion("b", "B", mean=math.inf)])
    with pytest.raises(CampaignError, match="inside another"), store.transaction("fit"), store.transaction("fit"):
        pass
    assert (contents(store), store.history()) == before
    assert store.check() == []


def test_a_string_is_open_once(store: CampaignStore) -> None:
    suggest(store, "a", "b")
    for strings in (("c", "A"), ("c", "d", "C")):
        with pytest.raises(CampaignError, match="is suggested already"):
            suggest(store, *strings)
    record(store, "a", 1.0)
    with store.transaction("withdraw") as change:
        change.withdraw(["B01-02"], "too dear")
    assert suggest(store, "a", "b") == ["B02-01", "B02-02"]
    assert store.check() == []


def test_results_find_their_suggestions(store: CampaignStore) -> None:
    suggest(store, "a", "b", "c", "d")
    record(store, "a", None)
    assert statuses(store)["B01-01"] == "failed"
    record(store, "A", 1.0)
    assert statuses(store)["B01-01"] == "measured"
    suggest(store, "a")
    record(store, "a", 2.0, suggestion="B01-01")
    assert statuses(store)["B02-01"] == "open"
    record(store, "a", 3.0)
    record(store, "a", 4.0)
    assert [row.suggestion for row in store.measurements(key="A")] == ["B01-01"] * 3 + ["B02-01"] * 2
    with store.transaction("withdraw") as change:
        change.withdraw(["B01-02", "B01-03"])
    for name, message in (("B01-02", "is withdrawn, not open"), ("B01-01", "is measured"), ("B09-01", "no suggestion")):
        with pytest.raises(CampaignError, match=message), store.transaction("withdraw") as change:
            change.withdraw([name])
    record(store, "b", 5.0)
    record(store, "never", 6.0)
    assert statuses(store) == {
        "B01-01": "measured",
        "B01-02": "measured",
        "B01-03": "withdrawn",
        "B01-04": "open",
        "B02-01": "measured",
    }
    counts = store.counts()
    assert dataclasses.astuple(counts) == (1, 3, 0, 1, 2, 3, 6, 1, 0, 0, 0, 0, 0)
    assert [row.name for row in store.suggestions(("open", "withdrawn"), batch=1)] == ["B01-03", "B01-04"]
    assert store.check() == []


def test_suggestions_that_were_lost_or_discarded_are_not_among_those_that_failed(store: CampaignStore) -> None:
    suggest(store, "a", "b", "c", "d")
    for string, reason in (("a", "no product"), ("b", "lost: dropped"), ("c", "Lost")):
        record(store, string, None, failure=reason)
    counts = store.counts()
    assert (counts.failed, counts.lost_suggestions, counts.discarded_suggestions) == (1, 2, 0)
    assert counts.of_suggestions == "0 measured, 1 failed, 2 lost, 0 withdrawn, 1 open"
    with store.transaction("discard") as change:
        change.discard([store.measurements(key="A")[0].id], "wrong vial")
    assert store.counts().of_suggestions == "0 measured, 0 failed, 2 lost, 1 discarded, 0 withdrawn, 1 open"


def test_replicates_are_kept_one_by_one(store: CampaignStore) -> None:
    assert store.best() is None
    for value, error in ((1.0, 0.1), (4.0, None)):
        record(store, "a", value, standard_error=error)
    record(store, "b", None)
    record(store, "A", None, failure="spilled")
    record(store, "c", 2.4)
    first, second, third = store.observations()
    assert (first.key, first.string, first.values, first.failures) == ("A", "a", (1.0, 4.0), ("spilled",))
    assert (first.standard_errors, first.mean(), first.mean(geometric=True)) == ((0.1, None), 2.5, pytest.approx(2.0))
    assert (second.values, second.failures) == ((), ("no yield",))
    assert math.isnan(second.mean())
    assert store.best() == first
    for changed, best in ((Settings("v", transform="log10"), third), (Settings("v", direction="minimize"), third)):
        with store.transaction("configure") as change:
            change.save_settings(changed)
        assert store.best() == best
        store.undo()
    assert store.settings.objective == "pIC50"


def test_undo_takes_back_one_command_after_another(store: CampaignStore) -> None:
    suggest(store, "a", "b")
    record(store, "a", 1.0)
    with store.transaction("fit") as change:
        change.add_snapshot(NewSnapshot("ssk", 1))
    undone = store.undo()
    assert (undone.kind, undone.id) == ("record", 3)
    assert statuses(store) == {"B01-01": "open", "B01-02": "open"}
    # What was undone is kept, and an undo is not undone: the next one goes further back.
    assert [row.undone_by for row in store.measurements(undone=True)] == [5]
    assert store.undo().kind == "suggest"
    assert store.suggestions() == []
    assert statuses(store) == {"B01-01": "undone", "B01-02": "undone"}
    with pytest.raises(CampaignError, match="nothing to undo"):
        store.undo()
    assert [(row.kind, row.undone_by, row.undoes) for row in store.history()] == [
        ("create", None, None),
        ("suggest", 6, None),
        ("record", 5, None),
        ("fit", None, None),
        ("undo", None, 3),
        ("undo", None, 2),
    ]
    assert [row.describe() for row in store.history()[1:3]] == [
        "suggest: 2 suggestions (undone by command 6)",
        "record a: 1 measurement (undone by command 5)",
    ]
    # A list that was printed never means something else.
    assert suggest(store, "a") == ["B02-01"]
    with pytest.raises(CampaignError, match="was undone"):
        record(store, "a", 1.0, suggestion="B01-01")
    assert store.check() == []


def test_a_model_that_was_undone_chooses_nothing(store: CampaignStore) -> None:
    with store.transaction("suggest", expected_state=1) as change:
        change.add_suggestions([NewSuggestion("a", "A")], snapshot=change.add_snapshot(NewSnapshot("ssk", 1)))
    store.undo()
    assert store.latest_snapshot() is None
    with pytest.raises(CampaignError, match="no stored model 1"):
        suggest_rows(store, [NewSuggestion("a", "A")], snapshot=1)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_commands_do_what_a_model_in_plain_python_does_and_undo_restores(seed: int) -> None:
    rng = random.Random(seed)
    expected = Expected()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "campaign.seqopt")
        with CampaignStore.create(path, settings_of(CREATE), {"token": "create"}) as store:
            expected.apply(CREATE)
            before: list[tuple[int, Any]] = []
            for _ in range(20):
                operation = plan(store, rng)
                if operation["kind"] not in ("fit", "undo"):
                    before.append((store.state + 1, contents(store)))
                perform(store, operation)
                expected.apply(operation)
                if operation["kind"] == "undo":
                    last, as_it_was = before[-1]
                    if operation["undone"] == last:
                        assert as_it_was is None or _without_fits(contents(store)) == _without_fits(as_it_was)
                    # Of what stands on a command in the middle, nothing is as it was before.
                    rest = [(number, one) for number, one in before if number != operation["undone"]]
                    before = rest if operation["undone"] == last else [(number, None) for number, _ in rest]
            assert expected.differences(store) == []


def _without_fits(tables: Any) -> Any:
    """An undo leaves models that were kept without suggestions."""
    return [*tables[:3], [], tables[4]]


def test_the_comparison_with_the_model_sees_what_is_wrong(store: CampaignStore) -> None:
    expected = Expected()
    expected.apply({"kind": "create", "token": None, "batch_size": 10, "closed": []})
    assert expected.differences(store) == []
    row = {"string": "a", "plate": None, "value": 1.0, "failure": None, "error": None, "cost": None}
    row |= {"suggestion": None}
    expected.apply({"kind": "record", "token": None, "rows": [row]})
    assert [text.split(":")[0] for text in expected.differences(store)] == [
        "commands",
        "standing",
        "measurements",
    ]
    record(store, "a", 1.0)
    assert expected.differences(store) == []
    record(store, "a", 1.0)
    assert expected.differences(store)


def test_a_half_command_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "campaign.seqopt"
    for number, damage in enumerate(
        (
            "INSERT INTO measurements (string, key, value, made_by) VALUES ('x', 'x', 1, 2)",
            "INSERT INTO measurements (string, key, value, made_by) VALUES ('x', 'x', 1, 9)",
            "INSERT INTO measurements (string, key, value, suggestion, made_by) VALUES ('x', 'x', 1, 1, 3)",
            "INSERT INTO commands (id, time, kind, arguments, version) VALUES (9, '', 'record', '{}', '')",
            "UPDATE measurements SET undone_by = 4",
            "INSERT INTO commands (id, time, kind, arguments, version, undoes) VALUES (4, '', 'undo', '{}', '', 2)",
            "INSERT INTO suggestions (name, batch, position, string, key, reason, made_by) "
            "VALUES ('B02-01', 2, 1, 'B', 'B', '{}', 2)",
            "UPDATE settings SET undone_by = 3",
        )
    ):
        path.unlink(missing_ok=True)
        with CampaignStore.create(path, Settings("value")) as store:
            suggest(store, "a", "b")
            record(store, "a", 1.0)
            assert store.check() == []
        connection = sqlite3.connect(path)
        connection.execute(damage)
        connection.commit()
        connection.close()
        with CampaignStore.open(path) as store:
            assert store.check(), number


def test_a_suggestion_from_an_old_state_is_refused(tmp_path: Path, store: CampaignStore) -> None:
    with CampaignStore.open(store.path) as other:
        state = other.state
        record(store, "a", 1.0)
        with pytest.raises(StaleStateError, match="command 2 is the last one now, it was 1 then"):
            suggest_rows(other, [NewSuggestion("b", "B")], expected_state=state)
        assert suggest(other, "b") == ["B01-01"]
        assert [row.name for row in store.open_suggestions()] == ["B01-01"]
    with pytest.raises(InputError, match="needs expected_state"), store.transaction("suggest"):
        pass


def test_reads_in_a_block_agree_with_each_other(store: CampaignStore) -> None:
    with CampaignStore.open(store.path) as other:
        with other.reading():
            assert other.measurements() == []
            record(store, "a", 1.0)
            assert (other.state, other.measurements()) == (1, [])
        assert (other.state, len(other.measurements())) == (2, 1)


class Interrupted(sqlite3.Connection):
    """Ctrl-C as soon as the statement ``after`` has been executed."""

    after = ""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        done = super().execute(sql, *arguments)
        if sql == self.after:
            self.after = ""
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize(
    ("after", "command"),
    [
        ("BEGIN", CampaignStore.counts),
        ("COMMIT", CampaignStore.counts),
        ("BEGIN IMMEDIATE", lambda store: record(store, "a", 1.0)),
    ],
)
def test_an_interruption_leaves_no_transaction_open(
    store: CampaignStore, after: str, command: Callable[[CampaignStore], Any]
) -> None:
    with CampaignStore.open(store.path, factory=Interrupted) as other:
        assert isinstance(other._connection, Interrupted)
        other._connection.after = after
        with pytest.raises(KeyboardInterrupt):
            command(other)
        record(other, "b", 2.0)
        assert [row.string for row in other.measurements()] == ["b"]


def test_one_process_waits_for_the_other_or_says_so(store: CampaignStore) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with CampaignStore.open(store.path) as other, other.transaction("record") as change:
            change.add_measurements([NewMeasurement("first", "FIRST", 1.0)])
            entered.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(30)
    with CampaignStore.open(store.path, timeout=0.05) as impatient:
        assert impatient.state == 1
        with pytest.raises(CampaignError, match=r"another process is writing .* intact"):
            record(impatient, "second", 2.0)
    threading.Timer(0.1, leave.set).start()
    record(store, "second", 2.0)
    holder.join()
    assert [row.string for row in store.measurements()] == ["first", "second"]


HOLD = """
import sys, time
from seqopt.campaign import CampaignStore, NewMeasurement
with CampaignStore.open(sys.argv[1]) as store, store.transaction("record") as change:
    change.add_measurements([NewMeasurement("first", "FIRST", 1.0)])
    print("written, not committed", flush=True)
    time.sleep(60)
"""


def test_who_is_killed_holds_nobody_up(store: CampaignStore) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(store.path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        threading.Timer(0.1, holder.kill).start()
        record(store, "second", 2.0)
    assert [row.string for row in store.measurements()] == ["second"]
    assert store.check() == []


RACE = """
import json, sys
from seqopt.bench.faults import race
print(json.dumps(race(sys.argv[1], sys.argv[2], 0, 25)))
"""


def test_two_processes_at_once_neither_corrupt_nor_suggest_twice(store: CampaignStore) -> None:
    command = [sys.executable, "-c", RACE, str(store.path)]
    processes = [subprocess.Popen([*command, name], stdout=subprocess.PIPE) for name in ("first", "second")]
    tokens = []
    for process in processes:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        tokens += json.loads(said)
    assert store.check() == []
    assert sorted(row.arguments["token"] for row in store.history()[1:]) == sorted(tokens)
    assert len(tokens) == 50
    keys = [row.key for row in store.suggestions()]
    assert len(set(keys)) == len(keys)
    answered = [row.key for row in store.measurements()]
    assert len(set(answered)) == len(answered)


class Full(sqlite3.Connection):
    """A file that may not grow, as on a full disk."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        pages = self.execute("PRAGMA page_count").fetchone()[0]
        self.execute(f"PRAGMA max_page_count = {pages + 2}")


def test_a_full_disk_leaves_what_was_committed(store: CampaignStore) -> None:
    record(store, "a", 1.0)
    store.close()
    with CampaignStore.open(store.path, factory=Full) as full:
        with (
            pytest.raises(CampaignError, match=r"disk is full.*intact.*make room"),
            full.transaction("import") as change,
        ):
            change.add_measurements([NewMeasurement(f"{number:0500}", "x", 1.0) for number in range(200)])
        assert [row.string for row in full.measurements()] == ["a"]
        assert full.check() == []
        record(full, "b", 2.0)
    with CampaignStore.open(store.path) as again:
        assert [row.string for row in again.measurements()] == ["a", "b"]


FILL = """
import json, os, resource, sys
from seqopt.campaign import CampaignError, CampaignStore, NewMeasurement
path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
done, message = 0, ""
try:
    with CampaignStore.open(path) as store:
        while done < 2000:
            with store.transaction("record", {"done": done}) as change:
                change.add_measurements([NewMeasurement(f"S{done} " + 900 * "x", f"S{done}", float(done))] * 3)
            done += 1
except CampaignError as error:
    message = str(error)
try:
    with CampaignStore.open(path) as store:
        readable = len(store.measurements())
except CampaignError as error:
    readable = str(error)
print(json.dumps([done, message, readable]))
"""


@posix
@pytest.mark.parametrize("limit", [150_000, 300_001])
def test_a_file_that_reaches_a_limit_leaves_what_was_committed(store: CampaignStore, limit: int) -> None:
    store.close()
    said = subprocess.run(
        [sys.executable, "-c", FILL, str(store.path), str(limit)], check=True, capture_output=True, timeout=120
    ).stdout
    done, message, readable = json.loads(said)
    assert 0 < done < 2000
    assert "is intact" in message
    assert readable == 3 * done
    _holds_exactly(store.path, done)


def _holds_exactly(path: Path, done: int) -> None:
    with CampaignStore.open(path) as again:
        assert again.check() == []
        assert [row.value for row in again.measurements()] == [float(n) for n in range(done) for _ in range(3)]
        record(again, "more", 1.0)


@posix
def test_a_disk_that_is_really_full_leaves_what_was_committed(store: CampaignStore, tmp_path: Path) -> None:
    store.close()
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=400k tmpfs {disk} && cp {store.path} {disk}/c.seqopt && "
        f'"$1" -c "$2" {disk}/c.seqopt 0; status=$?; cp {disk}/c.seqopt* {tmp_path}; exit $status'
    )
    command = ["unshare", "-Urm", "sh", "-c", script, "sh", sys.executable, FILL]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("no small disk can be made here")
    ran = subprocess.run(command, check=False, capture_output=True, timeout=120, text=True)
    if "mount" in ran.stderr:
        pytest.skip(f"no small disk can be made here: {ran.stderr}")
    done, message, readable = json.loads(ran.stdout)
    assert 0 < done < 2000
    assert "the disk is full" in message or "refused to" in message
    assert "is intact" in message
    assert readable == 3 * done
    _holds_exactly(tmp_path / "c.seqopt", done)


def reachable(folder: Path) -> bool:
    """Whether those without privileges come to a folder."""
    return os.getuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in folder.resolve().parents)


def unprivileged(work: Callable[[], None]) -> None:
    """Run in a process that may do no more than its owner: the super-user may write anywhere."""
    process = os.fork()
    if not process:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            work()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that processes without privileges reach, and may write."""
    folder = Path(tempfile.mkdtemp())
    if not reachable(folder):
        folder.rmdir()
        pytest.skip(f"only the super-user comes to {folder}, who may do everything")
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


def make_in(folder: Path, *, killed: bool = False) -> Path:
    """A campaign of a process that ended as usual, or left its log behind."""
    path = folder / "campaign.seqopt"
    store = CampaignStore.create(path, Settings("value"))
    record(store, "a", 1.0)
    store.close()
    if killed:
        code = (
            "import os, sys; from seqopt.campaign import *; store = CampaignStore.open(sys.argv[1])\n"
            "with store.transaction('record') as change: change.add_measurements([NewMeasurement('b', 'B', 2.0)])\n"
            "os.kill(os.getpid(), 9)"
        )
        assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -signal.SIGKILL
        assert Path(f"{path}-wal").stat().st_size
    for part in folder.iterdir():
        part.chmod(0o666)
    return path


@posix
@pytest.mark.parametrize(
    # A log that may be written stands in for the folder, so that case is not one.
    ("protected", "killed"),
    [("file", False), ("file", True), ("folder", False), ("both", False), ("both", True)],
)
def test_what_is_read_only_is_read_and_not_written(public_folder: Path, protected: str, killed: bool) -> None:
    path = make_in(public_folder, killed=killed)
    if protected != "folder":
        for part in public_folder.iterdir():
            part.chmod(0o444)
    if protected != "file":
        public_folder.chmod(0o555)

    def work() -> None:
        with CampaignStore.open(path) as store:
            assert [row.string for row in store.measurements()] == ["a", "b"][: 1 + killed]
            assert store.check() == []
            with pytest.raises(CampaignError, match=r"(read-only|cannot be written).*intact, and can be read"):
                record(store, "c", 3.0)
            assert len(store.measurements()) == 1 + killed

    unprivileged(work)
    public_folder.chmod(0o777)
    for part in public_folder.iterdir():
        part.chmod(0o666)
    with CampaignStore.open(path) as store:
        assert [row.string for row in store.measurements()] == ["a", "b"][: 1 + killed]
        assert store.check() == []


@posix
def test_what_may_not_be_read_or_made_says_so(public_folder: Path) -> None:
    path = make_in(public_folder)
    path.chmod(0)
    public_folder.chmod(0o555)

    def work() -> None:
        with pytest.raises(CampaignError, match=r"cannot be opened.*permission.*intact"):
            CampaignStore.open(path)
        with pytest.raises(CampaignError, match="cannot be opened"):
            CampaignStore.create(public_folder / "new.seqopt", Settings("value"))

    unprivileged(work)


@posix
def test_a_process_that_was_forked_off_does_not_write(store: CampaignStore) -> None:
    def work() -> None:
        with pytest.raises(CampaignError, match="opened by another process"):
            record(store, "a", 1.0)

    unprivileged(work)


def test_a_damaged_file_is_not_hidden(store: CampaignStore) -> None:
    with store.transaction("import") as change:
        change.add_measurements([NewMeasurement(f"S{number}" * 50, f"S{number}", 1.0) for number in range(500)])
    store.close()
    data = bytearray(store.path.read_bytes())
    for page in range(5, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = bytes(64)
    store.path.write_bytes(data)
    with pytest.raises(CampaignError, match="damaged"), CampaignStore.open(store.path) as again:
        again.check()


def test_thousands_of_measurements_make_a_small_file(store: CampaignStore) -> None:
    rows = [
        NewMeasurement(
            f"CC(=O)Nc1ccc(O)cc1N{number}CCOC(=O)c1ccccc1", f"CC(=O)Nc1ccc(O)cc1N{number}CCOC(=O)c1ccccc1", 0.5
        )
        for number in range(2000)
    ]
    with store.transaction("import") as change:
        assert len(change.add_measurements(rows)) == 2000
    store.close()
    assert store.path.stat().st_size < 1_000_000
    assert not list(store.path.parent.glob("*-wal"))


def test_names_of_files_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "50% of \u00e9 #1? &mode=memory.seqopt"
    CampaignStore.create(path, Settings("value")).close()
    with CampaignStore.open(path) as store:
        record(store, "a", 1.0)
    assert [part.name for part in tmp_path.iterdir()] == [path.name]


def test_opening_and_recording_need_no_models(tmp_path: Path) -> None:
    code = (
        "import sys, seqopt.campaign.campaign, seqopt.campaign.results, seqopt.campaign.summary, seqopt.cli.campaign\n"
        "heavy = {'torch', 'numpy', 'pandas', 'rdkit', 'gpytorch', 'botorch', 'scipy', 'numba'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_times_are_utc_and_decide_nothing(store: CampaignStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that is set back changes neither order nor state.
    monkeypatch.setattr("seqopt.campaign.schema.now", lambda: "1999-01-01T00:00:00.000Z")
    record(store, "a", 1.0)
    monkeypatch.undo()
    record(store, "b", 2.0)
    assert [row.id for row in store.history()] == [1, 2, 3]
    last = time.strptime(store.history()[-1].time[:19], "%Y-%m-%dT%H:%M:%S")
    assert abs(time.mktime(last) - time.mktime(time.gmtime())) < 3700
    assert store.undo().id == 3


def test_suggestions_keep_the_transform_that_the_campaign_had(store: CampaignStore) -> None:
    settings = store.settings
    for transform in ("log10", None):
        suggest_rows(store, [NewSuggestion(f"S{transform}", f"S{transform}", mean=2.0, std=1.0)])
        with store.transaction("configure") as change:
            change.save_settings(dataclasses.replace(settings, transform=transform))
    first, second = store.suggestions()
    assert (first.transform, second.transform) == ("none", "log10")
    assert first.predicted(store.settings.transform) == 2.0
    store.undo()
    assert [row.transform for row in store.suggestions()] == ["none", "log10"]


@pytest.mark.parametrize(
    "reason",
    [
        *(f"{LOST}dropped", " Lost: dropped", "lost:dropped", "LOST", "lost : dropped", "\tlost\t: x", "\nlost: a"),
        *("lost activity", "it was lost: dropped", "lost at 4: spilled", "lo st: dropped", "lostness: high"),
    ],
)
def test_what_is_lost_is_counted_as_the_optimiser_has_it(store: CampaignStore, reason: str) -> None:
    record(store, "a", None, failure=reason)
    counts = store.counts()
    assert (counts.lost, counts.failures) == ((1, 0) if is_lost(reason) else (0, 1))
