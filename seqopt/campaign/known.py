"""Results that are known before an automatic search begins: read like others, and kept in the campaign of its run."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from seqopt.campaign.entries import Identify, Remark, Results, listing
from seqopt.campaign.results import expected_names, results_of_sheet
from seqopt.campaign.rows import NewMeasurement, Settings
from seqopt.campaign.store import CampaignStore
from seqopt.datasets.sheets import Sheet, read_sheet
from seqopt.errors import InputError
from seqopt.utils.cache import digest

KnownResults = pd.DataFrame | Mapping[str, float | str | Sequence[float | str]] | str | os.PathLike[str]
"""A table, strings with a value (or a limit, such as ``"<0.1"``) or those of replicates, or the path of a table."""

logger = logging.getLogger(__name__)

IN_MEMORY = "known results"
"""What messages call a table that is not a file."""


def read_known(
    known: KnownResults, settings: Settings, identify: Identify, *, decimal_comma: bool | None = None
) -> list[NewMeasurement]:
    """Read results that are known already, by the rules of `seqopt.campaign.read_results` for results from elsewhere.

    Several results of one string are replicates. Rows without a result are left out, and said so in a warning.

    Args:
        known: A table with a column of strings and one of values (and, if there are any, standard errors, failures and
            labels of replicates), or the path of one; or a mapping from strings to a value, or to the values of
            replicates.
        settings: The names of the objective and of the column of strings, and the transform.
        identify: From a string to its key; raises `InputError` for a string that cannot be learned from.
        decimal_comma: Whether numbers are written ``6,5``; by default as in the pool of the settings, but with points
            in a table with commas between its cells.

    Returns:
        The results, in their order.

    Raises:
        InputError: For anything that cannot be read; it lists every problem with its line or row, and the reason.

    Example:
        >>> rows = read_known({"CCO": 1.5, "CCN": [2.0, 2.25]}, Settings("activity"), str.upper)
        >>> [(row.string, row.value) for row in rows]
        [('CCO', 1.5), ('CCN', 2.0), ('CCN', 2.25)]
    """
    usual = settings.decimal_comma
    if isinstance(known, str | os.PathLike):
        source = str(Path(known))
        comma = usual if decimal_comma is None else decimal_comma
        sheet = read_sheet(known, expected=expected_names(settings), decimal_comma=comma)
    else:
        source = IN_MEMORY
        sheet = _mapped(known) if isinstance(known, Mapping) else _tabulated(known)
    if decimal_comma is None:
        decimal_comma = usual and sheet.may_have_commas
    results = results_of_sheet(
        sheet, source, settings, identify, replicates=True, history=True, decimal_comma=decimal_comma
    )
    if results.problems:
        listed = "\n".join(f"  {problem}" for problem in listing(map(_placed, results.problems)))
        raise InputError(f"the known results cannot be used:\n{listed}")
    _warn(results)
    if not results.records:
        raise InputError(f"{source} holds no result: leave it out, or fill in the values")
    return list(results.records)


def digest_of(measurements: Sequence[NewMeasurement]) -> str:
    """Tells results from others, in whatever file or order of columns they came."""
    return digest(
        repr(
            (row.string, row.key, row.value, row.failure, row.standard_error, row.replicate)
            + ((row.context, sorted(row.further.items())) if row.context or row.further else ())
            + ((row.censored,) if row.censored else ())
        )
        for row in measurements
    )


def keep_known(store: CampaignStore, measurements: Sequence[NewMeasurement]) -> None:
    """Record known results in a campaign as imported ones, unless that was done before.

    Args:
        store: The campaign.
        measurements: What `read_known` returned.

    Raises:
        CampaignError: If the file cannot be written.
    """
    if not measurements:
        return
    checksum = digest_of(measurements)
    # What was taken back by hand stays so.
    if any(command.arguments.get("known_sha256") == checksum for command in store.history()):
        return
    source = measurements[0].source
    named = {} if source in (None, IN_MEMORY) else {"file": Path(str(source)).name}
    with store.transaction("import", {**named, "known_sha256": checksum}) as change:
        change.add_measurements(measurements)


def _mapped(known: Mapping[str, float | str | Sequence[float | str]]) -> Sheet:
    rows = [("string", "value")]
    for string, value in known.items():
        if not isinstance(string, str):
            raise InputError(f"known results: expected a string for each value, got {string!r}")
        # Of a replicate without a label any number may be given.
        values = [value] if isinstance(value, int | float | str) or not isinstance(value, Sequence) else list(value)
        rows += [(string, _cell(one)) for one in values]
    return _sheet(rows)


def _tabulated(known: pd.DataFrame) -> Sheet:
    rows = [tuple(map(str, known.columns))]
    rows += [tuple(map(_cell, row)) for row in known.itertuples(index=False, name=None)]
    return _sheet(rows)


def _sheet(rows: Sequence[tuple[str, ...]]) -> Sheet:
    # The header is row 0, as rows are counted where there are no lines.
    return Sheet(tuple(rows), tuple(range(len(rows))), ",", "utf-8", "")


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
    return "" if math.isnan(number) else repr(number)


def _placed(problem: Remark) -> Remark:
    """A remark with its location in words: a table that is not a file has rows, not lines."""
    if problem.source != IN_MEMORY or problem.line is None:
        return problem
    return replace(problem, source=f"{IN_MEMORY}, row {problem.line}" if problem.line else IN_MEMORY, line=None)


def _warn(results: Results) -> None:
    for remark in results.warnings:
        logger.warning("%s", _placed(remark))
    if results.unfilled:
        number = len(results.unfilled)
        logger.warning(
            "%s: %d row%s no value and no failure, and %s left out",
            results.source,
            number,
            " has" if number == 1 else "s have",
            "is" if number == 1 else "are",
        )
