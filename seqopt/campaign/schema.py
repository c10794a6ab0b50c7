"""The tables of a campaign file.

A campaign file is an SQLite database with the tables

- ``commands``: what was done; the last id is the *state* of the campaign,
- ``settings``: what the campaign is about; the last row that was not undone counts,
- ``snapshots``: models that made suggestions,
- ``suggestions``: strings to be measured,
- ``measurements``: values and failures, one row per replicate,
- ``discards``: measurements that are kept and shown, but not modelled,
- ``withdrawals``: suggestions that will not be measured,
- ``exclusions``: other strings that shall not be suggested,
- ``screens``: values of a cheap measurement of a whole library, one row for each table,
- ``assays``: values of another assay, one row for each string: the model learns from them, and they are no results,
- ``libraries``: which candidates there are, where they are in files.

Invariants, which hold after every commit (`seqopt.campaign.CampaignStore.check` looks at each):

1. Commands are numbered from 1 without gaps, and none is ever changed. The first creates the campaign.
2. Nothing is deleted. Of a row that was written, only ``undone_by`` ever changes, once, from NULL to the undo that took
   it back. Triggers in the file refuse everything else.
3. Every row names the command that made it (``made_by``). A command's own row is written last, with the number of rows
   that it made (``changes``): a command is there with all its rows or not at all.
4. An undo (``undoes``) takes back a whole command of a kind that can be, on which nothing that counts depends. No
   command is undone twice, and an undo is not undone.
5. A measurement has a value of the objective or a reason for its failure, not both, or only values of further
   outcomes, which also a failure may have. A standard error is positive, and of a value of the objective.
6. A measurement that answers a suggestion has its key and context, and does not outlive it: while the measurement
   counts, so does the suggestion.
7. A key is open at most once in each context: of the suggestions that count, at most one of them has neither a value
   of the objective, nor a failure, nor a withdrawal. Values of further outcomes leave it open.
8. A suggestion's name and its batch number are never given again, even when it is undone: a list that was printed
   never means something else.
9. A correction is a measurement that replaces an earlier one (``replaces``) of the same key, context and suggestion,
   which does not count while the correction does. Of the corrections of one measurement, one at most counts. A
   discarded measurement counts, too, but not as a result.
10. A censored value is a limit: the measurement is below (``<``) or above (``>``) ``value``.
11. What a measurement has cost is positive; NULL where it cost what its context says.
12. A screen is of a context that is not the target, and as long as it says. Its values are known, never suggested; a
    measurement of the same key in the same context counts before it.
13. A value of another assay is a number, and of one key an assay has one value that counts.

A context (how a string is measured, where there are several ways) is a JSON list of names and values, sorted by name,
and ``[]`` where there is only one way. ``value`` is that of the objective; values of further outcomes are a JSON
object, ``further``, by their names.

The status of a suggestion is worked out from measurements and withdrawals, never stored, so that they cannot disagree.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import seqopt
from seqopt.campaign.errors import CampaignError

APPLICATION_ID = 0x73716F70
"""``sqop``: marks an SQLite database as a campaign."""

VERSION = 5
"""Version of the tables that this seqopt reads and writes; kept in the file as ``PRAGMA user_version``."""

UPGRADED = 3
"""The oldest version that `upgrade` brings to this one."""

TABLES = (
    "settings",
    "snapshots",
    "suggestions",
    "measurements",
    "discards",
    "withdrawals",
    "exclusions",
    "libraries",
    "screens",
    "assays",
)
"""Tables of rows that commands make and undo."""

_ORIGIN = """
    made_by INTEGER NOT NULL REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED,
    undone_by INTEGER REFERENCES commands (id) DEFERRABLE INITIALLY DEFERRED CHECK (undone_by > made_by)
"""

_DISCARDS = f"""CREATE TABLE discards (
    id INTEGER PRIMARY KEY,
    measurement INTEGER NOT NULL REFERENCES measurements (id),
    reason TEXT NOT NULL,
    {_ORIGIN})"""

_EXCLUSIONS = f"""CREATE TABLE exclusions (
    id INTEGER PRIMARY KEY,
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    identifier TEXT,
    reason TEXT NOT NULL,
    {_ORIGIN})"""

_LIBRARIES = f"""CREATE TABLE libraries (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL CHECK (size > 0),
    hashes BLOB,
    removed BLOB,
    {_ORIGIN})"""

_SCREENS = f"""CREATE TABLE screens (
    id INTEGER PRIMARY KEY,
    context TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size > 0),
    contents BLOB NOT NULL,
    source TEXT,
    {_ORIGIN})"""

_ASSAYS = f"""CREATE TABLE assays (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    value REAL NOT NULL CHECK (typeof(value) = 'real' AND abs(value) <= 1e150),
    source TEXT,
    line INTEGER,
    {_ORIGIN})"""

_COST = "cost REAL CHECK (cost IS NULL OR (typeof(cost) = 'real' AND cost > 0 AND cost <= 1e150))"

_INDICES = (
    "CREATE INDEX corrections ON measurements (replaces) WHERE replaces IS NOT NULL",
    "CREATE INDEX discards_of_measurement ON discards (measurement)",
)

_STATEMENTS = (
    """CREATE TABLE commands (
    id INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    arguments TEXT NOT NULL,
    version TEXT NOT NULL,
    changes TEXT NOT NULL DEFAULT '{}',
    undoes INTEGER UNIQUE REFERENCES commands (id) CHECK (undoes < id),
    CHECK ((kind = 'undo') = (undoes IS NOT NULL))
    )""",
    f"""CREATE TABLE settings (
    id INTEGER PRIMARY KEY,
    contents TEXT NOT NULL,
    {_ORIGIN})""",
    f"""CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY,
    surrogate TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 0),
    summary TEXT NOT NULL,
    state BLOB,
    {_ORIGIN})""",
    f"""CREATE TABLE suggestions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    batch INTEGER NOT NULL CHECK (batch > 0),
    position INTEGER NOT NULL CHECK (position > 0),
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    context TEXT NOT NULL DEFAULT '[]',
    mean REAL,
    std REAL CHECK (std >= 0),
    low REAL,
    high REAL,
    acquisition TEXT,
    score REAL,
    reason TEXT NOT NULL,
    snapshot INTEGER REFERENCES snapshots (id),
    identifier TEXT,
    cells TEXT NOT NULL DEFAULT '{{}}',
    {_ORIGIN},
    UNIQUE (batch, position))""",
    f"""CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    string TEXT NOT NULL CHECK (string <> ''),
    key TEXT NOT NULL CHECK (key <> ''),
    context TEXT NOT NULL DEFAULT '[]',
    value REAL CHECK (typeof(value) IN ('real', 'null') AND abs(value) <= 1e150),
    further TEXT NOT NULL DEFAULT '{{}}',
    failure TEXT,
    standard_error REAL CHECK (standard_error IS NULL OR (standard_error > 0 AND value IS NOT NULL)),
    source TEXT,
    line INTEGER,
    suggestion INTEGER REFERENCES suggestions (id),
    replicate TEXT,
    details TEXT NOT NULL DEFAULT '{{}}',
    identifier TEXT,
    censored TEXT CHECK (censored IS NULL OR (censored IN ('<', '>') AND value IS NOT NULL)),
    replaces INTEGER REFERENCES measurements (id) CHECK (replaces < id),
    {_COST},
    {_ORIGIN},
    CHECK (value IS NULL OR failure IS NULL),
    CHECK (value IS NOT NULL OR failure IS NOT NULL OR further <> '{{}}'))""",
    f"""CREATE TABLE withdrawals (
    id INTEGER PRIMARY KEY,
    suggestion INTEGER NOT NULL REFERENCES suggestions (id),
    reason TEXT NOT NULL,
    {_ORIGIN})""",
    _DISCARDS,
    _EXCLUSIONS,
    _LIBRARIES,
    _SCREENS,
    _ASSAYS,
    "CREATE INDEX suggestions_of_key ON suggestions (key)",
    "CREATE INDEX measurements_of_key ON measurements (key)",
    "CREATE INDEX measurements_of_suggestion ON measurements (suggestion)",
    "CREATE INDEX withdrawals_of_suggestion ON withdrawals (suggestion)",
    *_INDICES,
)


def _guard(connection: sqlite3.Connection, table: str) -> None:
    """Let the file itself refuse to lose a row, or to change anything of one but, once, that it is undone."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "undone_by"]
    refuse = f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are kept as they are'); END"
    connection.execute(f"CREATE TRIGGER {table}_stay BEFORE DELETE ON {table} {refuse}")
    connection.execute(f"CREATE TRIGGER {table}_never_change BEFORE UPDATE OF {', '.join(columns)} ON {table} {refuse}")
    connection.execute(
        f"CREATE TRIGGER {table}_undone_once BEFORE UPDATE OF undone_by ON {table} "
        f"WHEN old.undone_by IS NOT NULL OR new.undone_by IS NULL {refuse}"
    )


def now() -> str:
    """The time as it is written into a file: UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether a database holds nothing at all, as when the making of it was interrupted."""
    marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    return marks == [0, 0] and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def version_of(connection: sqlite3.Connection) -> int:
    """The version that a file says it is of."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(connection: sqlite3.Connection, name: str) -> None:
    """Refuse what is not a campaign file of this version; nothing is written.

    Args:
        connection: The open file.
        name: What messages call it.

    Raises:
        CampaignError: If it is not a campaign, or one of another version.
    """
    if is_blank(connection):
        raise CampaignError(
            f"{name} is empty: perhaps its creation was interrupted. Create the campaign again under this name; "
            "nothing is lost"
        )
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    if application != APPLICATION_ID or version < 1:
        raise CampaignError(f"{name} is a database of another program, not a campaign of seqopt")
    if not UPGRADED <= version <= VERSION:
        what_to_do = (
            "It was written by a newer seqopt: update this one"
            if version > VERSION
            else "It was written by an older seqopt: export it with that version, and begin a campaign anew with the "
            "exported measurements"
        )
        raise CampaignError(
            f"{name} is a campaign file of version {version}; seqopt {seqopt.__version__} reads version {VERSION}. "
            f"{what_to_do}. The file was not changed"
        )


def create_tables(connection: sqlite3.Connection) -> None:
    """Make all tables and mark the file; inside the caller's transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute(
        "CREATE TRIGGER commands_stay BEFORE DELETE ON commands BEGIN SELECT RAISE(ABORT, 'commands are kept'); END"
    )
    connection.execute(
        "CREATE TRIGGER commands_never_change BEFORE UPDATE ON commands "
        "BEGIN SELECT RAISE(ABORT, 'commands never change'); END"
    )
    for table in TABLES:
        _guard(connection, table)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a file of version `UPGRADED` or later to this one, inside the caller's transaction: only what it lacks is
    added.
    """
    version, changed = version_of(connection), {"measurements"}
    if version < 4:
        changed.add("suggestions")
        for column in ("identifier TEXT", "cells TEXT NOT NULL DEFAULT '{}'"):
            connection.execute(f"ALTER TABLE suggestions ADD COLUMN {column}")
        for column in (
            "identifier TEXT",
            "censored TEXT CHECK (censored IS NULL OR (censored IN ('<', '>') AND value IS NOT NULL))",
            "replaces INTEGER REFERENCES measurements (id) CHECK (replaces < id)",
        ):
            connection.execute(f"ALTER TABLE measurements ADD COLUMN {column}")
        for statement in (_DISCARDS, _EXCLUSIONS, _LIBRARIES, *_INDICES):
            connection.execute(statement)
    connection.execute(f"ALTER TABLE measurements ADD COLUMN {_COST}")
    connection.execute(_SCREENS)
    connection.execute(_ASSAYS)
    # Those that watch over the columns were made before there were these.
    for table in sorted(changed):
        for trigger in ("stay", "never_change", "undone_once"):
            connection.execute(f"DROP TRIGGER {table}_{trigger}")
        _guard(connection, table)
    for table in (*(("discards", "exclusions", "libraries") if version < 4 else ()), "screens", "assays"):
        _guard(connection, table)
    connection.execute(f"PRAGMA user_version = {VERSION}")
