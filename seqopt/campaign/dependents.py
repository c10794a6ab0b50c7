"""What depends on a command: the reasons why it cannot be undone before something else is."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from seqopt.campaign.queries import STANDS
from seqopt.campaign.rows import UNDOABLE, Command

SHOWN = 3
"""Dependents that a message names."""

_OPEN_TWICE = "its string would be open twice, as {0} was suggested by command {1}"

_ANSWERED = "(m.value IS NOT NULL OR m.failure IS NOT NULL)"

_DEPENDENTS: Sequence[tuple[str, str]] = (
    (
        "{0} has a result, by command {1}",
        """SELECT s.name, m.made_by FROM suggestions s JOIN measurements m ON m.suggestion = s.id
        WHERE s.made_by = :id AND m.undone_by IS NULL""",
    ),
    (
        "{0} was withdrawn by command {1}",
        """SELECT s.name, w.made_by FROM suggestions s JOIN withdrawals w ON w.suggestion = s.id
        WHERE s.made_by = :id AND w.undone_by IS NULL""",
    ),
    (
        "{0} was chosen by its model, by command {1}",
        """SELECT s.name, s.made_by FROM suggestions s JOIN snapshots p ON p.id = s.snapshot
        WHERE p.made_by = :id AND s.made_by <> :id AND s.undone_by IS NULL""",
    ),
    (
        "what was measured of {0} was corrected by command {1}",
        """SELECT m.string, r.made_by FROM measurements m JOIN measurements r ON r.replaces = m.id
        WHERE m.made_by = :id AND r.undone_by IS NULL""",
    ),
    (
        "what was measured of {0} was discarded by command {1}",
        """SELECT m.string, d.made_by FROM measurements m JOIN discards d ON d.measurement = m.id
        WHERE m.made_by = :id AND d.undone_by IS NULL""",
    ),
    (
        "settings or candidates were changed again, by command {1}",
        """SELECT '', later.made_by FROM settings earlier JOIN settings later ON later.id > earlier.id
        WHERE earlier.made_by = :id AND later.undone_by IS NULL""",
    ),
    # A string is open once: of what would be open again, nothing may have been suggested since.
    (
        _OPEN_TWICE,
        f"""SELECT other.name, other.made_by FROM suggestions s
        JOIN suggestions other ON other.key = s.key AND other.context = s.context AND other.id <> s.id
        WHERE s.undone_by IS NULL AND other.undone_by IS NULL
        AND s.id IN (
            SELECT suggestion FROM measurements WHERE made_by = :id UNION SELECT suggestion FROM withdrawals
            WHERE made_by = :id)
        AND NOT EXISTS (SELECT 1 FROM measurements m WHERE m.suggestion = s.id AND m.made_by <> :id AND {_ANSWERED}
            AND {STANDS})
        AND NOT EXISTS (SELECT 1 FROM measurements m WHERE m.suggestion = other.id AND {_ANSWERED} AND {STANDS})
        AND NOT EXISTS (SELECT 1 FROM withdrawals w WHERE w.suggestion = other.id AND w.undone_by IS NULL)
        AND NOT EXISTS (SELECT 1 FROM withdrawals w WHERE w.suggestion = s.id AND w.undone_by IS NULL
            AND w.made_by <> :id)""",
    ),
)


def why_not(command: Command, connection: sqlite3.Connection) -> str | None:
    """Why a command cannot be undone; `None` if it can.

    Args:
        command: The command.
        connection: The open file.
    """
    if command.undone_by is not None:
        return f"command {command.undone_by} did that already"
    if command.kind == "undo":
        return "an undo is not undone: do again what it took back"
    if command.kind not in UNDOABLE:
        return f"a command of kind {command.kind} cannot be"
    for message, query in _DEPENDENTS:
        rows = connection.execute(query, {"id": command.id}).fetchall()
        if rows:
            shown = "; ".join(message.format(*row) for row in dict.fromkeys(rows[:SHOWN]))
            first = ", then ".join(map(str, sorted({row[1] for row in rows}, reverse=True)))
            # A suggestion that is withdrawn is in nobody's way, and can be where it cannot be undone.
            names = ", ".join(sorted({row[0] for row in rows})) if message == _OPEN_TWICE else ""
            other = f", or withdraw {names}" if names else ""
            return f"{shown}{'; and others' if len(rows) > SHOWN else ''}: undo {first} first{other}"
    return None
