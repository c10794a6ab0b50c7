"""Files of other versions and other programs, and what the file itself refuses."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from seqopt.campaign import CampaignError, CampaignStore, NewMeasurement, NewSnapshot, NewSuggestion, Settings
from seqopt.campaign.schema import APPLICATION_ID, MIGRATIONS, TABLES, VERSION

OLD = Path(__file__).parent / "data" / "version_1.seqopt"


def old_copy(folder: Path) -> Path:
    return Path(shutil.copyfile(OLD, folder / "old.seqopt"))


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


def assert_holds_what_it_held(store: CampaignStore) -> None:
    assert store.check() == []
    assert [row.kind for row in store.history()][:6] == ["create", "suggest", "record", "withdraw", "import", "undo"]
    assert [(row.name, row.status, row.mean, row.reason) for row in store.suggestions()] == [
        ("B01-01", "measured", 6.25, {"why": "explore"}),
        ("B01-02", "failed", 6.25, {"why": "explore"}),
        ("B01-03", "withdrawn", 6.25, {"why": "explore"}),
    ]
    rows = store.measurements(undone=True)
    assert [row.value for row in rows] == [6.1, 0.1 + 0.2, None, 7.0]
    assert [(row.standard_error, row.failure, row.line, row.undone_by) for row in rows] == [
        (0.2, None, 2, None),
        (None, None, 3, None),
        (None, "no yield", 4, None),
        (None, None, 2, 6),
    ]
    assert [(row.replicate, row.details) for row in rows] == [(None, {})] * 4
    assert store.settings == Settings("pIC50", seed=3, extra={"of_another_version": 1})
    assert store.snapshot_state(1) == {"scale": 0.1}
    assert store.recorded_files().keys() == {64 * "a"}


def test_an_old_file_is_brought_up_to_date_and_loses_nothing(tmp_path: Path) -> None:
    path = old_copy(tmp_path)
    assert version_of(path) == 1 < VERSION
    with CampaignStore.open(path) as store:
        assert_holds_what_it_held(store)
        last = store.history()[-1]
        assert (last.kind, last.arguments) == ("migrate", {"from": 1, "to": 2})
        with store.transaction("record") as change:
            change.add_measurements([NewMeasurement("CCO", "CCO", 1.0, replicate="b", details={"well": "A1"})])
        assert store.measurements()[-1].details == {"well": "A1"}
        # What was done before the update can still be undone.
        assert [store.undo().id for _ in range(3)] == [8, 4, 3]
        assert [row.status for row in store.suggestions()] == ["open"] * 3
        assert store.check() == []
    assert version_of(path) == VERSION
    with CampaignStore.open(path) as store:
        assert [row.kind for row in store.history()].count("migrate") == VERSION - 1


KILLED = """
import os, signal, sqlite3, sys
from seqopt.campaign import CampaignStore

class Doomed(sqlite3.Connection):
    left = int(sys.argv[2])
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.set_trace_callback(self.count)
    def count(self, statement):
        Doomed.left -= 1
        if Doomed.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

CampaignStore.open(sys.argv[1], factory=Doomed).close()
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")
def test_an_update_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = old_copy(tmp_path)
    versions = set()
    for statement in (0, 5, 8, 9, 10, 12, 15, 18, 20, 22):
        status = subprocess.run([sys.executable, "-c", KILLED, path, str(statement)], check=False).returncode
        assert status in (0, -signal.SIGKILL)
        copy = tmp_path / "copy.seqopt"
        for part in ("", "-wal"):
            if Path(f"{path}{part}").exists():
                shutil.copyfile(f"{path}{part}", f"{copy}{part}")
        versions.add(version_of(copy))
        with CampaignStore.open(copy) as store:
            assert_holds_what_it_held(store)
        copy.unlink()
    assert 1 in versions


def test_a_newer_file_is_refused_by_both_versions_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new.seqopt"
    CampaignStore.create(path, Settings("value")).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 5}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CampaignError, match=rf"of version {VERSION + 5}; seqopt .* up to {VERSION}\..*newer"):
        CampaignStore.open(path)
    assert path.read_bytes() == before


def test_what_is_no_campaign_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "library.csv"
    text.write_text("smiles\nCCO\n" * 100)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE commands (id)")
    connection.close()
    empty = tmp_path / "empty.seqopt"
    empty.touch()
    for path, message in (
        (text, "not a campaign of seqopt, nor any other SQLite"),
        (other, "database of another program"),
        (empty, "is empty: perhaps its making was interrupted"),
        (tmp_path, "is a folder"),
        (tmp_path / "none.seqopt", "no campaign"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(CampaignError, match=message):
            CampaignStore.open(path)
        if before:
            with pytest.raises(CampaignError, match="exists already"):
                CampaignStore.create(path, Settings("value"))
        assert (path.read_bytes() if path.is_file() else None) == before
    assert not (tmp_path / "none.seqopt").exists()


def test_the_making_of_a_file_that_was_interrupted_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "campaign.seqopt"
    path.touch()
    CampaignStore.create(path, Settings("value")).close()
    with CampaignStore.open(path) as store:
        assert store.state == 1
        assert store.check() == []
    with pytest.raises(CampaignError, match="exists already"):
        CampaignStore.create(path, Settings("other"))
    with pytest.raises(CampaignError, match="no folder"):
        CampaignStore.create(tmp_path / "nowhere" / "campaign.seqopt", Settings("value"))


@pytest.mark.parametrize("migrated", [False, True])
def test_the_file_itself_refuses_to_lose_or_change_a_row(tmp_path: Path, migrated: bool) -> None:
    path = old_copy(tmp_path) if migrated else tmp_path / "campaign.seqopt"
    if not migrated:
        with CampaignStore.create(path, Settings("value")) as store:
            with store.transaction("suggest", expected_state=1) as change:
                model = change.add_snapshot(NewSnapshot("ssk", 3, {"noise": 0.5}, [1, 2, 3]))
                change.add_suggestions([NewSuggestion("a", "a"), NewSuggestion("b", "b")], snapshot=model)
            with store.transaction("record") as change:
                change.add_measurements([NewMeasurement("a", "a", 1.0)])
            with store.transaction("withdraw") as change:
                change.withdraw(["B01-02"])
            store.undo()
    CampaignStore.open(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    for table in ("commands", *TABLES):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        statements = [f"DELETE FROM {table}"]
        statements += [f"UPDATE {table} SET {column} = {column}" for column in columns if column != "undone_by"]
        if table != "commands":
            statements.append(f"UPDATE {table} SET undone_by = NULL")
        for statement in statements:
            with pytest.raises(sqlite3.IntegrityError, match=r"kept|never change"):
                connection.execute(statement)
    connection.execute("PRAGMA foreign_keys = ON")
    for statement in (
        "INSERT INTO measurements (string, key, made_by) VALUES ('x', 'x', 2)",
        "INSERT INTO measurements (string, key, value, failure, made_by) VALUES ('x', 'x', 1, 'no', 2)",
        "INSERT INTO measurements (string, key, value, made_by) VALUES ('x', 'x', 'text', 2)",
        "INSERT INTO measurements (string, key, value, made_by) VALUES ('x', 'x', 9e999, 2)",
        "INSERT INTO measurements (string, key, value, standard_error, made_by) VALUES ('x', 'x', 1, 0, 2)",
        "INSERT INTO measurements (string, key, value, suggestion, made_by) VALUES ('x', 'x', 1, 77, 2)",
        "INSERT INTO measurements (string, key, value, made_by) VALUES ('x', 'x', 1, 77)",
        "INSERT INTO suggestions (name, batch, position, string, key, reason, made_by) "
        "SELECT name, 9, 9, 'x', 'x', '', 2 FROM suggestions",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()
    with CampaignStore.open(path) as store:
        assert store.check() == []


def test_every_version_has_its_migration() -> None:
    assert len(MIGRATIONS) == VERSION
