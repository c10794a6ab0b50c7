"""Cheap scores of a whole library: read at once, kept as one column, known to the model.

A column is held as pairs of 16 bytes, the hash of a key (`seqopt.campaign.library.key_hashes`) and the value, sorted by
the hashes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from seqopt.campaign.cells import rows_of
from seqopt.campaign.columns import Header, wanted_names
from seqopt.campaign.costs import way_of
from seqopt.campaign.entries import Remark, first_of
from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError
from seqopt.utils.progress import doing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.rows import Settings
    from seqopt.campaign.store import CampaignStore
    from seqopt.data import Context, ContextValue
    from seqopt.datasets.sheets import Sheet
    from seqopt.spaces import CandidateSet, Space
    from seqopt.strategies.screened import KnownColumn

    Values = dict[str, float]

FEWEST = 2_000
"""Values of a cheap measurement from which on ``seqopt campaign import --fidelity`` keeps them as a column: so many
would make a model that looks at each of them slow."""

MOST = 0.5
"""Share of candidates without a value above which a warning says so."""


@dataclass(frozen=True)
class Screened:
    """What was taken of a file of cheap scores.

    Attributes:
        way: How they were measured, in words.
        taken: Strings with a value.
        candidates: How many of these are candidates.
        size: Candidates in all.
        empty: Rows without a value.
        source: The file.
        warnings: What is worth a second look.
        problems: What is wrong with rows that were left out.
    """

    way: str
    taken: int
    candidates: int
    size: int
    empty: int
    source: str
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def describe(self) -> str:
        """In words.

        Example:
            >>> Screened("docking", 995, 990, 1000, 5, "screen.csv").describe()
            '995 values of docking, of 990 of 1,000 candidates'
        """
        return f"{self.taken:,} values of {self.way}, of {self.candidates:,} of {self.size:,} candidates"


def import_screen(
    campaign: Campaign,
    path: str | os.PathLike[str],
    context: Mapping[str, ContextValue],
    *,
    value_column: str | None,
    string_column: str | None,
    decimal_comma: bool | None,
    replicates: bool,
    partial: bool,
) -> Screened:
    """See `seqopt.campaign.Campaign.import_screen`."""
    from seqopt.campaign.parts import restored_parts
    from seqopt.strategies.screened import KnownColumn, with_columns

    store, settings = campaign.store, campaign.store.settings
    measured = campaign._one_way(context)
    assert measured is not None
    way = way_of(measured)
    if measured == settings.target:
        raise InputError(f"{way} is the target: import its values without saying so, as results")
    if settings.pool is None:
        raise CampaignError("only the candidates of a file have scores for all of them: record what was measured")
    with_columns(restored_parts(settings).get("strategy"), {})
    file, space = Path(path), cast("CandidateSet", campaign.space)
    with doing(f"reading {file.name}"):
        sheet, usual = _sheet(file, settings, value_column, string_column, decimal_comma)
    state, warnings = store.state, []
    with doing(f"reading the values of {file.name}"):
        values, problems, empty = _values(
            sheet, settings, space, value_column, string_column, usual, replicates=replicates
        )
    shown = first_of(problems)
    if problems and not (partial and values):
        raise CampaignError("nothing was recorded:\n" + "\n".join(f"  {text}" for text in shown))
    if not values:
        raise CampaignError(f"nothing was recorded: {file} holds no value")
    try:
        KnownColumn(way, values)
    except InputError as error:
        raise CampaignError(f"nothing was recorded: {sheet.source}: {error}") from error
    found = len(values.keys() & set(space.keys))
    if not found:
        raise CampaignError(f"nothing was recorded: none of the {len(values):,} strings of {file} is a candidate")
    missing = len(space) - found
    if missing > MOST * len(space):
        warnings.append(
            f"{missing:,} of {len(space):,} candidates have no value of {way}: of these the model takes the mean"
        )
    pairs = _packed(values)
    _refuse_known(store, measured, way, pairs)
    arguments = {
        "file": sheet.source,
        "sha256": sheet.sha256,
        "context": dict(measured),
        "what": f"{len(values):,} values of {way}",
    }
    with store.transaction("import", arguments, expected_state=state) as change:
        change.save_screen(measured, len(values), pairs.tobytes(), sheet.source)
    return Screened(way, len(values), found, len(space), empty, sheet.source, tuple(warnings), tuple(shown))


def counted_lines(path: str | os.PathLike[str], most: int) -> int:
    """Rows of a table of text, as far as ``most`` and one more; of another kind of file, those that can be read.

    Raises:
        InputError: If it cannot be read.
    """
    from seqopt.datasets.sheets import read_sheet

    file = Path(path)
    if file.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return len(read_sheet(file).rows)
    try:
        with file.open("rb") as lines:
            return sum(1 for _ in itertools.islice(lines, most + 2))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from error


def known_columns(store: CampaignStore, space: Space) -> dict[Context, KnownColumn]:
    """The columns of a campaign, by how they were measured; what was recorded since counts before them.

    Args:
        store: The campaign.
        space: The candidates; other strings are looked up by what was measured of them.
    """
    screens = store.screens()
    if not screens:
        return {}
    import numpy as np

    from seqopt.campaign.library import key_hashes
    from seqopt.spaces import PoolSpace
    from seqopt.strategies.screened import KnownColumn

    assert isinstance(space, PoolSpace)
    measurements = store.measurements()
    keys = list(dict.fromkeys([*space.keys, *(row.key for row in measurements)]))
    hashes = key_hashes(keys)
    found: dict[Context, dict[str, float]] = {}
    for context, _, contents, _, _ in screens:
        pairs = np.frombuffer(contents, dtype=_pair())
        places = np.searchsorted(pairs["hash"], hashes).clip(max=len(pairs) - 1)
        here = np.flatnonzero(pairs["hash"][places] == hashes)
        values = pairs["value"][places[here]].tolist()
        found.setdefault(context, {}).update(zip((keys[place] for place in here.tolist()), values, strict=True))
    later: dict[tuple[Context, str], list[float]] = {}
    for row in measurements:
        if row.context in found and row.value is not None:
            later.setdefault((row.context, row.key), []).append(row.value)
    for (context, key), numbers in later.items():
        found[context][key] = sum(numbers) / len(numbers)
    return {context: KnownColumn(way_of(context), values) for context, values in found.items()}


def _pair() -> npt.DTypeLike:
    return [("hash", "<u8"), ("value", "<f8")]


def _packed(values: Values) -> npt.NDArray[np.void]:
    import numpy as np

    from seqopt.campaign.library import key_hashes

    pairs = np.empty(len(values), dtype=_pair())
    pairs["hash"] = key_hashes(list(values))
    pairs["value"] = np.fromiter(values.values(), dtype=np.float64, count=len(values))
    pairs.sort(order="hash")
    return pairs


def _refuse_known(store: CampaignStore, context: Context, way: str, pairs: npt.NDArray[np.void]) -> None:
    """Refuse a second value of a string in the same column.

    Raises:
        CampaignError: It says by which command the first one came.
    """
    import numpy as np

    for known, _, contents, _, made_by in store.screens():
        if known == context:
            twice = int(np.isin(np.frombuffer(contents, dtype=_pair())["hash"], pairs["hash"]).sum())
            if twice:
                raise CampaignError(
                    f"nothing was recorded: {twice:,} strings have a value of {way} already, by command {made_by}: "
                    f"undo that first (seqopt campaign undo {made_by}), or record single values"
                )


def _sheet(
    file: Path, settings: Settings, value_column: str | None, string_column: str | None, decimal_comma: bool | None
) -> tuple[Sheet, bool]:
    from seqopt.campaign.results import expected_names
    from seqopt.datasets.sheets import read_sheet

    usual = settings.decimal_comma
    expected = expected_names(settings, value_column, string_column)
    sheet = read_sheet(file, expected=expected, decimal_comma=usual if decimal_comma is None else decimal_comma)
    return sheet, usual and sheet.may_have_commas if decimal_comma is None else decimal_comma


def _values(
    sheet: Sheet,
    settings: Settings,
    space: CandidateSet,
    value_column: str | None,
    string_column: str | None,
    decimal_comma: bool,
    *,
    replicates: bool,
) -> tuple[Values, list[Remark], int]:
    """Values by keys, what is wrong with rows, and how many rows have no value."""
    wanted = wanted_names(settings, value_column, string_column)
    names = value_column or settings.objective, string_column or settings.string_column
    columns, header, problems = Header(wanted, settings, *names, True).find(sheet, sheet.source)
    if problems:
        return {}, problems, 0
    columns = {role: columns[role] for role in ("string", "value") if role in columns}
    if "string" not in columns or "value" not in columns:
        lacking = "strings" if "string" not in columns else "values"
        return {}, [Remark(f"there is no column of {lacking}", sheet.source, sheet.lines[header])], 0
    lines: list[tuple[str, float, int | None]] = []
    empty = 0
    for row in rows_of(sheet, header, columns, sheet.source, settings, decimal_comma):
        entry = row.entry
        if row.problems:
            problems += row.problems
        elif entry.string is None:
            row.wrong("the row has no string")
            problems += row.problems
        elif entry.censored is not None:
            row.wrong("is a limit, and a column of scores has none: leave the row out, or record it by itself")
            problems += row.problems
        elif entry.value is None:
            empty += 1
        else:
            lines.append((entry.string, entry.value, entry.line))
    return _by_key(lines, space, sheet.source, problems, replicates=replicates), problems, empty


def _by_key(
    lines: list[tuple[str, float, int | None]],
    space: CandidateSet,
    source: str,
    problems: list[Remark],
    *,
    replicates: bool,
) -> Values:
    from seqopt.strings.identity import identity_keys

    known = {string: space.known_key(string) for string, _, _ in lines}
    others = [string for string, key in known.items() if key is None]
    if others:
        known.update(zip(others, identity_keys(others, space.kind, standardize=space.standardize), strict=True))
    found: dict[str, list[tuple[float, int | None]]] = {}
    for string, value, line in lines:
        key = known[string]
        if key is None:
            problems.append(Remark(f"is not a valid {space.kind}", source, line, value=string))
            continue
        before = found.setdefault(key, [])
        if before and before[0][0] != value and not replicates:
            hint = "keep one, or say that they are replicates (--replicate): their mean is taken"
            problems.append(
                Remark(
                    f"has another value, {before[0][0]!r}, in line {before[0][1]}",
                    source,
                    line,
                    value=string,
                    hint=hint,
                )
            )
            continue
        before.append((value, line))
    return {key: sum(value for value, _ in rows) / len(rows) for key, rows in found.items()}
