"""Files of other versions and other programs, and what the file itself refuses."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from seqopt.campaign import CampaignError, CampaignStore, NewMeasurement, NewSnapshot, NewSuggestion, Settings
from seqopt.campaign.rows import NewExclusion
from seqopt.campaign.schema import APPLICATION_ID, TABLES, UPGRADED, VERSION

OTHERS = [UPGRADED - 1, VERSION + 5]
"""Versions that this seqopt does not read: an older and a newer one."""


def contents(path: Path) -> dict[str, bytes]:
    """What is stored of a campaign: the file, and what has not been moved into it yet."""
    parts = [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal")]
    return {part.name: part.read_bytes() for part in parts if part.exists()}


def file_of_version(path: Path, version: int, *, crashed: bool) -> Path:
    """A campaign that says it is of another version, whose writer was killed or not."""
    made = path.with_name("made.seqopt")
    CampaignStore.create(made, Settings("value")).close()
    connection = sqlite3.connect(made, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA user_version = {version}")
    # While the connection is open, what it wrote is in the log only: a copy is what a crash leaves.
    if not crashed:
        connection.close()
    for ending in ("", "-wal"):
        if made.with_name(made.name + ending).exists():
            shutil.copyfile(f"{made}{ending}", f"{path}{ending}")
    connection.close()
    return path


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("version", OTHERS)
def test_a_file_of_another_version_is_refused_and_stays_as_it_is(tmp_path: Path, version: int, crashed: bool) -> None:
    path = file_of_version(tmp_path / "other.seqopt", version, crashed=crashed)
    before = contents(path)
    assert crashed == bool(before.get("other.seqopt-wal"))
    wanted = rf"of version {version}; seqopt .* reads version {VERSION}\..*"
    wanted += "newer seqopt: update" if version > VERSION else "older seqopt: export"
    for _ in range(2):
        with pytest.raises(CampaignError, match=wanted):
            CampaignStore.open(path)
        assert contents(path) == before
    with pytest.raises(CampaignError, match="exists already"):
        CampaignStore.create(path, Settings("value"))
    assert contents(path) == before


def file_of_version_3(path: Path) -> Path:
    """A campaign as version 3 wrote it: three suggestions, one measured, one failed, a withdrawal that was undone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript((Path(__file__).parent / "files" / "version-3.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_of_version_3_is_brought_to_this_version_with_all_that_it_holds(tmp_path: Path, read_only: bool) -> None:
    path = file_of_version_3(tmp_path / "old.seqopt")
    if read_only:
        path.chmod(0o444)
    with CampaignStore.open(path) as store:
        assert store.check() == []
        assert [command.kind for command in store.history()] == [
            "create",
            "suggest",
            "record",
            "record",
            "withdraw",
            "undo",
        ]
        assert [(row.name, row.string, row.status, row.mean) for row in store.suggestions()] == [
            ("B01-01", "CCO", "measured", 6.1),
            ("B01-02", "CCN", "failed", None),
            ("B01-03", "CCC", "open", None),
        ]
        assert [row.told for row in store.measurements()] == ["6.5", "failed: did not dissolve"]
        assert store.snapshot_state(1) == {"a": 1}
    if read_only:
        return
    with CampaignStore.open(path) as store:
        assert store.undo(4).describe() == "record B01-02: 1 measurement"
        with store.transaction("correct", {"string": "B01-01"}) as change:
            change.add_measurements([NewMeasurement("CCO", "CCO", 5.5, replaces=1)])
        assert [row.told for row in store.measurements()] == ["5.5"]
        assert store.check() == []
    connection = sqlite3.connect(path)
    for statement in (
        "UPDATE suggestions SET cells = ''",
        "UPDATE measurements SET censored = '<'",
        "DELETE FROM discards",
    ):
        if "DELETE" in statement:
            connection.execute("INSERT INTO discards (measurement, reason, made_by) VALUES (2, '', 3)")
        with pytest.raises(sqlite3.IntegrityError, match="kept"):
            connection.execute(statement)
    connection.close()


def test_a_file_of_version_4_is_brought_to_this_version_with_all_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "old.seqopt"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript((Path(__file__).parent / "files" / "version-4.sql").read_text())
    connection.close()
    docking = (("fidelity", "docking"),)
    with CampaignStore.open(path) as store:
        assert store.check() == []
        assert [row.status for row in store.suggestions()] == ["measured", "open"]
        assert [(row.told, row.cost, row.replaces) for row in store.measurements()] == [
            ("6.5", None, None),
            ("4.5", None, 2),
        ]
        with store.transaction("record", {"string": "CCN"}) as change:
            change.add_measurements([NewMeasurement("CCN", "CCN", 5.5, context=docking, cost=0.02)])
        assert store.measurements()[-1].cost == 0.02
        assert store.undo().describe() == "record CCN: 1 measurement"
        assert store.check() == []
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    with pytest.raises(sqlite3.IntegrityError, match="kept"):
        connection.execute("UPDATE measurements SET cost = 3.0")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute(
            "INSERT INTO measurements (string, key, value, cost, made_by) VALUES ('C', 'C', 1.0, -1.0, 3)"
        )
    connection.close()


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
        (empty, "is empty: perhaps its creation was interrupted"),
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


def test_the_file_itself_refuses_to_lose_or_change_a_row(tmp_path: Path) -> None:
    path = tmp_path / "campaign.seqopt"
    with CampaignStore.create(path, Settings("value")) as store:
        with store.transaction("suggest", expected_state=1) as change:
            model = change.add_snapshot(NewSnapshot("ssk", 3, {"noise": 0.5}, [1, 2, 3]))
            change.add_suggestions([NewSuggestion("a", "a"), NewSuggestion("b", "b")], snapshot=model)
        with store.transaction("record") as change:
            change.add_measurements([NewMeasurement("a", "a", 1.0)])
        with store.transaction("withdraw") as change:
            change.withdraw(["B01-02"])
        store.undo()
        with store.transaction("discard") as change:
            change.discard([1], "an outlier")
        with store.transaction("pool") as change:
            change.save_library(2, b"0123456789abcdef")
        with store.transaction("import") as change:
            change.exclude([NewExclusion("c", "c", "sold out")])
            change.save_screen((("fidelity", "docking"),), 1, b"0123456789abcdef", "screen.csv")
            change.save_assay("old", [{"string": "d", "key": "d", "value": 1.0, "source": "old.csv", "line": 2}])
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
        "INSERT INTO measurements (string, key, value, censored, made_by) VALUES ('x', 'x', 1, '=', 2)",
        "INSERT INTO measurements (string, key, failure, censored, made_by) VALUES ('x', 'x', 'no', '<', 2)",
        "INSERT INTO measurements (string, key, value, replaces, made_by) VALUES ('x', 'x', 1, 99, 2)",
        "INSERT INTO measurements (string, key, value, cost, made_by) VALUES ('x', 'x', 1, 0, 2)",
        "INSERT INTO assays (name, string, key, value, made_by) VALUES ('', 'x', 'x', 1.0, 2)",
        "INSERT INTO assays (name, string, key, value, made_by) VALUES ('old', 'x', 'x', 'text', 2)",
        "INSERT INTO screens (context, size, contents, made_by) VALUES ('[]', 0, '', 2)",
        "INSERT INTO suggestions (name, batch, position, string, key, reason, made_by) "
        "SELECT name, 9, 9, 'x', 'x', '', 2 FROM suggestions",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()
    with CampaignStore.open(path) as store:
        assert store.check() == []
