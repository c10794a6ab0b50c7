"""The invariants of a campaign file, looked at one by one: see `seqopt.campaign.schema`."""

from __future__ import annotations

import json
import sqlite3

from seqopt.campaign import schema
from seqopt.campaign.queries import STANDS
from seqopt.campaign.rows import KINDS, UNDOABLE

_OPEN = f"""s.undone_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM measurements m WHERE m.suggestion = s.id AND {STANDS}
        AND (m.value IS NOT NULL OR m.failure IS NOT NULL))
    AND NOT EXISTS (SELECT 1 FROM withdrawals w WHERE w.suggestion = s.id AND w.undone_by IS NULL)"""

_OUTLIVES = """{0}.made_by <= {1}.made_by OR ({0}.undone_by IS NULL AND {1}.undone_by IS NOT NULL)
    OR {0}.undone_by > {1}.undone_by"""

_QUERIES = {
    "measurement {} answers a suggestion of another string, or in another context": """SELECT m.id FROM measurements m
        JOIN suggestions s ON s.id = m.suggestion WHERE m.key <> s.key OR m.context <> s.context""",
    "measurement {} answers a suggestion that is undone, or was made later": f"""SELECT m.id FROM measurements m
        JOIN suggestions s ON s.id = m.suggestion WHERE {_OUTLIVES.format("m", "s")}""",
    "withdrawal {} is of a suggestion that is undone, or was made later": f"""SELECT w.id FROM withdrawals w
        JOIN suggestions s ON s.id = w.suggestion WHERE {_OUTLIVES.format("w", "s")}""",
    "measurement {} corrects one of another string, context or suggestion": """SELECT r.id FROM measurements r
        JOIN measurements m ON m.id = r.replaces
        WHERE r.key <> m.key OR r.context <> m.context OR r.suggestion IS NOT m.suggestion""",
    "measurement {} corrects one that is undone, or was made later": f"""SELECT r.id FROM measurements r
        JOIN measurements m ON m.id = r.replaces WHERE {_OUTLIVES.format("r", "m")}""",
    "measurement {} is corrected more than once": """SELECT replaces FROM measurements
        WHERE replaces IS NOT NULL AND undone_by IS NULL GROUP BY replaces HAVING count(*) > 1""",
    "discard {} is of a measurement that is undone, or was made later": f"""SELECT d.id FROM discards d
        JOIN measurements m ON m.id = d.measurement WHERE {_OUTLIVES.format("d", "m").replace("<=", "<")}""",
    "measurement {} is censored, and has no limit": """SELECT id FROM measurements
        WHERE censored IS NOT NULL AND value IS NULL""",
    "measurement {} is neither a value nor a failure": """SELECT id FROM measurements
        WHERE value IS NULL AND failure IS NULL AND further = '{}'""",
    "measurement {} is a value and a failure": """SELECT id FROM measurements
        WHERE value IS NOT NULL AND failure IS NOT NULL""",
    "screen {} is of the target": """SELECT c.id FROM screens c WHERE EXISTS (SELECT 1 FROM settings t
        WHERE t.made_by <= c.made_by AND json_extract(t.contents, '$.contexts.target') = c.context)""",
    "screen {} does not hold as many values as it says": "SELECT id FROM screens WHERE length(contents) <> 16 * size",
    "key {} has two values of one assay": """SELECT key FROM assays WHERE undone_by IS NULL
        GROUP BY name, key HAVING count(*) > 1""",
    "key {} is open more than once": f"""SELECT s.key FROM suggestions s WHERE {_OPEN} GROUP BY s.key, s.context
        HAVING count(*) > 1""",
    "batch {} was made by several commands": """SELECT batch FROM suggestions GROUP BY batch
        HAVING count(DISTINCT made_by) > 1""",
    "suggestion {} has a name that does not fit its batch": """SELECT id FROM suggestions
        WHERE name <> printf('B%02d-%02d', batch, position)""",
    "suggestion {} was chosen by a model that is undone": """SELECT s.id FROM suggestions s
        JOIN snapshots p ON p.id = s.snapshot WHERE s.undone_by IS NULL AND p.undone_by IS NOT NULL""",
}


def violations(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with a campaign file, in words; empty if nothing is."""
    found = [f"damaged: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [
        f"row {row[1]} of {row[0]} refers to no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")
    ]
    found += _wrong_commands(connection)
    for message, query in _QUERIES.items():
        found += [message.format(row[0]) for row in connection.execute(query)]
    if not connection.execute("SELECT count(*) FROM settings WHERE undone_by IS NULL").fetchone()[0]:
        found.append("there are no settings")
    return found


def _wrong_commands(connection: sqlite3.Connection) -> list[str]:
    found = []
    commands = connection.execute("SELECT id, kind, changes, undoes FROM commands ORDER BY id").fetchall()
    if [row[0] for row in commands] != list(range(1, len(commands) + 1)) or not commands or commands[0][1] != "create":
        found.append("commands are not numbered from 1 without gaps, or the first does not create the campaign")
    kinds = {number: kind for number, kind, _, _ in commands}
    undone = {undoes: number for number, _, _, undoes in commands if undoes is not None}
    standing: set[int] = set()
    for number, kind, _, undoes in commands:
        if kind not in KINDS:
            found.append(f"command {number} is of unknown kind {kind!r}")
        elif kind in UNDOABLE:
            standing.add(number)
        elif kind == "undo" and undoes not in standing:
            found.append(f"command {number} undoes command {undoes}, which cannot be undone")
        else:
            standing.discard(undoes)
    made: dict[int, dict[str, int]] = {}
    for table in schema.TABLES:
        query = f"SELECT made_by, undone_by, count(*) FROM {table} GROUP BY made_by, undone_by"
        for made_by, undone_by, count in connection.execute(query):
            if undone_by != undone.get(made_by):
                found.append(f"{count} rows of {table} made by command {made_by} are undone by {undone_by}, it is not")
            made.setdefault(made_by, {})[table] = made.get(made_by, {}).get(table, 0) + count
    for number, kind, changes, undoes in commands:
        expected = json.loads(changes)
        rows = made.get(undoes if kind == "undo" else number, {})
        if rows != expected:
            found.append(f"command {number} ({kind}) claims {expected}, but there is {rows}")
    found += [f"rows made by command {number}, which is not there" for number in made if number not in kinds]
    return found
