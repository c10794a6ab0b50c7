"""Results that are yes or no, in cells of tables and as they are given one by one.

An inconclusive result is kept and shown: its string has been tried and is not suggested again, but the model learns
nothing of it, neither that it is a hit or none, nor that it fails. So it is a measurement without a value that is
discarded as it is recorded; what comes of a repetition counts as any other result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seqopt.campaign.rows import INCONCLUSIVE, Settings
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign.entries import ResultEntry, Row

DISCARDED = "discarded"

HITS, WELLS = "hits", "wells"
"""Roles of columns: how many wells were hits, and how many there were."""

NAMES = {
    "value": ("hit", "active", "activity", "outcome", "activity_outcome", "pubchem_activity_outcome", "call"),
    HITS: ("hits", "n_hits", "number_of_hits", "actives"),
    WELLS: ("wells", "n_wells", "number_of_wells", "trials", "tested"),
}
"""By what else columns of yes/no results are recognised."""


CHANCES = {"predicted": "chance_of_hit", "predicted_low": "chance_low", "predicted_high": "chance_high"}
"""What columns of predictions are called where results are yes or no: the probability of a hit, and its 90 %."""


def answered(entry: ResultEntry, text: str, wells: int | None = None) -> ResultEntry:
    """An entry with the result that somebody wrote.

    Args:
        entry: Without a result.
        text: See `seqopt.data.read_answer`.
        wells: Likewise.

    Raises:
        InputError: For what is no such result.

    Example:
        >>> from seqopt.campaign.entries import ResultEntry
        >>> found = answered(ResultEntry("CCO"), "inactive")
        >>> found.value, found.wells
        (0.0, 1)
    """
    from seqopt.data import read_answer

    found = read_answer(text, wells)
    if found.share is None:
        return replace(entry, failure=INCONCLUSIVE, status=DISCARDED, remark=entry.remark or INCONCLUSIVE)
    return replace(entry, value=found.share, wells=found.trials)


def read_answer_cells(row: Row, entry: ResultEntry, texts: dict[str, list[tuple[str, str]]]) -> ResultEntry:
    """An entry with the yes/no result of its row; what is wrong is noted.

    Args:
        row: The row.
        entry: What is known of it besides.
        texts: Cells with the names of their columns, by role.
    """
    text_of_wells, column_of_wells = texts.get(WELLS, [("", "")])[0]
    wells: int | None = None
    if text_of_wells:
        if not text_of_wells.removesuffix(".0").isdigit():
            row.wrong("is not a number of wells: expected one such as 8", text_of_wells, column_of_wells)
            return entry
        wells = int(text_of_wells.removesuffix(".0"))
    found = entry
    given: tuple[str, str] | None = None
    for text, column in [*texts.get(HITS, []), *texts.get("value", [])]:
        if not text:
            continue
        if column in [name for _, name in texts.get(HITS, [])] and wells is None:
            row.wrong("is a number of hits, and a column 'wells' does not say of how many wells", text, column)
            return entry
        try:
            one = answered(entry, text, wells)
        except InputError as error:
            row.wrong(str(error), text, column)
            return entry
        if given is not None and (one.value, one.wells, one.failure) != (found.value, found.wells, found.failure):
            row.wrong(f"disagrees with {given[0]} in column {given[1]!r} of the same row: keep one", text, column)
            return entry
        found, given = one, (text, column)
    if given is not None and entry.failure not in (None, INCONCLUSIVE):
        row.wrong("says that it failed, but there is a result, too: keep one of them", entry.failure)
        return entry
    return found


def check_answer(row: Row, settings: Settings) -> None:
    """Note what is wrong with a result of a campaign whose results are yes or no, or of another one."""
    entry = row.entry
    if not settings.yes_no:
        if entry.wells is not None:
            row.wrong("has a number of wells, which go with results that are yes or no (--results yes/no)")
        return
    if entry.censored is not None:
        row.wrong("is a limit, and results of this campaign are yes or no", f"{entry.censored}{entry.value!r}")
    if entry.standard_error is not None:
        row.wrong("is a standard error, which results that are yes or no do not have", repr(entry.standard_error))
