"""Makes ``version_1.seqopt``, a campaign as the first version of the tables kept it.

Run it in this folder. It applies the first of `seqopt.campaign.schema.MIGRATIONS`, which never changes, and fills the
tables by statements of that version.
"""

import json
import sqlite3
import zlib
from pathlib import Path

from seqopt.campaign.schema import APPLICATION_ID, MIGRATIONS

FILE = Path(__file__).with_name("version_1.seqopt")

COMMANDS = [
    ("create", {}, {"settings": 1}, None),
    ("suggest", {"n": 3}, {"snapshots": 1, "suggestions": 3}, None),
    ("record", {"file": "first.csv", "sha256": 64 * "a"}, {"measurements": 3}, None),
    ("withdraw", {"names": ["B01-03"]}, {"withdrawals": 1}, None),
    ("import", {"file": "wrong.csv", "sha256": 64 * "b"}, {"measurements": 1}, None),
    ("undo", {}, {"measurements": 1}, 5),
]


def main() -> None:
    """Write the file anew."""
    FILE.unlink(missing_ok=True)
    connection = sqlite3.connect(FILE, isolation_level=None)
    connection.execute("PRAGMA page_size = 1024")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    MIGRATIONS[0](connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    for number, (kind, arguments, changes, undoes) in enumerate(COMMANDS, start=1):
        connection.execute(
            "INSERT INTO commands VALUES (?, ?, ?, ?, '0.1.0', ?, ?)",
            (number, f"2026-01-0{number}T12:00:00.000Z", kind, json.dumps(arguments), json.dumps(changes), undoes),
        )
    settings = {"objective": "pIC50", "direction": "maximize", "seed": 3, "of_another_version": 1}
    connection.execute("INSERT INTO settings VALUES (1, ?, 1, NULL)", (json.dumps(settings),))
    state = zlib.compress(json.dumps({"scale": 0.1}).encode())
    connection.execute(
        "INSERT INTO snapshots VALUES (1, 'ssk', 12, ?, ?, 2, NULL)", (json.dumps({"noise": 0.1}), state)
    )
    for position, string in enumerate(["CCO", "c1ccccc1O", "CC(=O)N"], start=1):
        connection.execute(
            "INSERT INTO suggestions VALUES (?, ?, 1, ?, ?, ?, 6.25, 0.5, 5.25, 7.25, 'gibbon', 0.01, ?, 1, 2, NULL)",
            (position, f"B01-0{position}", position, string, string, json.dumps({"why": "explore"})),
        )
    connection.executemany(
        "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (1, "CCO", "CCO", 6.1, None, 0.2, "first.csv", 2, 1, 3, None),
            (2, "OCC", "CCO", 0.1 + 0.2, None, None, "first.csv", 3, 1, 3, None),
            (3, "c1ccccc1O", "c1ccccc1O", None, "no yield", None, "first.csv", 4, 2, 3, None),
            (4, "CCN", "CCN", 7.0, None, None, "wrong.csv", 2, None, 5, 6),
        ],
    )
    connection.execute("INSERT INTO withdrawals VALUES (1, 3, 'too dear', 4, NULL)")
    connection.execute("COMMIT")
    connection.close()


if __name__ == "__main__":
    main()
