"""What is read from the tables of a campaign file, and the rows that it is read as."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seqopt.campaign.rows import Command, Measurement, Snapshot, Suggestion

if TYPE_CHECKING:
    from seqopt.data import Context

CONTEXT = 9
"""The column of `SUGGESTIONS` that holds contexts."""

CORRECTION = "(SELECT r.id FROM measurements r WHERE r.replaces = m.id AND r.undone_by IS NULL)"
"""The measurement that corrects ``m``, if there is one."""

DISCARD = "(SELECT d.reason FROM discards d WHERE d.measurement = m.id AND d.undone_by IS NULL)"
"""Why ``m`` was discarded, if it was."""

STANDS = f"m.undone_by IS NULL AND NOT EXISTS {CORRECTION}"
"""Whether a measurement ``m`` is what was measured, by all that is known now."""

COUNTS = f"{STANDS} AND NOT EXISTS {DISCARD}"
"""Whether it is modelled, too."""

_BLANKS = "char(32, 9, 10, 11, 12, 13, 160)"
_REASON = f"lower(trim(m.failure, {_BLANKS}))"
IS_LOST = f"rtrim(substr({_REASON}, 1, instr({_REASON} || ':', ':') - 1), {_BLANKS}) = 'lost'"
"""Whether it was lost, as `seqopt.utils.losses.is_lost` has it."""

STATUS = f"""CASE
    WHEN s.undone_by IS NOT NULL THEN 'undone'
    WHEN EXISTS (SELECT 1 FROM measurements m
        WHERE m.suggestion = s.id AND m.value IS NOT NULL AND {COUNTS}) THEN 'measured'
    WHEN EXISTS (SELECT 1 FROM measurements m
        WHERE m.suggestion = s.id AND m.failure IS NOT NULL AND {COUNTS}) THEN 'failed'
    WHEN EXISTS (SELECT 1 FROM measurements m
        WHERE m.suggestion = s.id AND (m.value IS NOT NULL OR m.failure IS NOT NULL) AND {STANDS}) THEN 'discarded'
    WHEN EXISTS (SELECT 1 FROM withdrawals w WHERE w.suggestion = s.id AND w.undone_by IS NULL) THEN 'withdrawn'
    ELSE 'open' END"""

ONLY_LOST = f"""({STATUS}) = 'failed' AND NOT EXISTS (SELECT 1 FROM measurements m
    WHERE m.suggestion = s.id AND m.failure IS NOT NULL AND {COUNTS} AND NOT ({IS_LOST}))"""
"""Whether all that is known of a suggestion ``s`` is that it was lost."""

TRANSFORM = """(SELECT coalesce(json_extract(t.contents, '$.transform'), 'none') FROM settings t
    WHERE t.made_by <= s.made_by AND (t.undone_by IS NULL OR t.undone_by > s.made_by) ORDER BY t.id DESC LIMIT 1)"""
"""The transform that a campaign had when ``s`` was suggested, of commands that do not say it themselves."""

SUGGESTIONS = f"""SELECT s.string, s.key, s.mean, s.std, s.low, s.high, s.acquisition, s.score, s.reason, s.context,
    s.identifier, s.cells, s.id, s.name, s.batch, s.position, s.snapshot, {STATUS} AS status, s.made_by, s.undone_by,
    coalesce((SELECT json_extract(c.arguments, '$.transform') FROM commands c WHERE c.id = s.made_by), {TRANSFORM})
    FROM suggestions s"""

MEASUREMENTS = f"""SELECT m.string, m.key, m.value, m.failure, m.standard_error, m.replicate, m.source, m.line,
    s.name, m.details, m.context, m.further, m.identifier, m.censored, m.replaces, m.cost, m.id, m.made_by, m.undone_by,
    {DISCARD}, {CORRECTION} FROM measurements m LEFT JOIN suggestions s ON s.id = m.suggestion"""

WITHDRAWALS = """SELECT w.id, s.name, w.reason, w.made_by, w.undone_by
    FROM withdrawals w JOIN suggestions s ON s.id = w.suggestion"""

EXCLUSIONS = "SELECT e.string, e.key, e.reason, e.identifier, e.id, e.made_by, e.undone_by FROM exclusions e"

COMMANDS = """SELECT c.id, c.time, c.kind, c.arguments, c.version, c.changes, c.undoes, u.id
    FROM commands c LEFT JOIN commands u ON u.undoes = c.id"""


def suggestion_row(row: tuple[Any, ...]) -> Suggestion:
    cells = _loaded(row, 8, CONTEXT, CONTEXT + 2)
    cells[CONTEXT] = context_row(cells[CONTEXT])
    return Suggestion(*cells)


def measurement_row(row: tuple[Any, ...]) -> Measurement:
    cells = _loaded(row, 9, 10, 11)
    cells[10] = context_row(cells[10])
    return Measurement(*cells)


def context_row(pairs: list[list[Any]]) -> Context:
    """A context as it was written."""
    return tuple((name, value) for name, value in pairs)


def snapshot_row(row: tuple[Any, ...]) -> Snapshot:
    return Snapshot(*_loaded(row, 3))


def command_row(row: tuple[Any, ...]) -> Command:
    return Command(*_loaded(row, 3, 5))


def _loaded(row: tuple[Any, ...], *indices: int) -> list[Any]:
    """A row with the JSON at some indices read."""
    return [json.loads(cell) if index in indices else cell for index, cell in enumerate(row)]
