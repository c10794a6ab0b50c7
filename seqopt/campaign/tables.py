"""Tables that a campaign writes: batches to be filled in, and everything that was measured."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from seqopt.campaign.answers import CHANCES, HITS, WELLS
from seqopt.campaign.batches import REASON_COLUMNS, REASONS, reason_cell
from seqopt.campaign.cells import LIMIT_SIGNS
from seqopt.campaign.columns import (
    COST,
    FAILURE,
    IDENTIFIER,
    REMARK,
    REPLICATE,
    STANDARD_ERROR,
    STATUS,
    TOLD,
    Header,
    check_column_names,
    further_role,
    has_costs,
    told_apart,
    wanted_names,
)
from seqopt.campaign.costs import stated_costs
from seqopt.campaign.entries import listed
from seqopt.campaign.leads import FROM_LEAD, distances_from_lead
from seqopt.campaign.parents import MUTATIONS, parent_of
from seqopt.campaign.rows import Exclusion, Measurement, Settings, Suggestion, Withdrawal
from seqopt.campaign.store import CampaignStore
from seqopt.datasets.sheets import WORKBOOK, Cell, check_format, plain_name, read_sheet, write_file, write_sheet
from seqopt.datasets.sources import STRUCTURES, file_and_part
from seqopt.errors import InputError
from seqopt.strings.mutations import mutation_names

_TOLD: Mapping[str, Callable[[Suggestion, Settings], Cell]] = {
    "predicted": lambda row, settings: row.predicted(settings.transform),
    "predicted_low": lambda row, _: row.low,
    "predicted_high": lambda row, _: row.high,
    "acquisition": lambda row, _: row.acquisition,
    "acquisition_value": lambda row, _: row.score,
    **{
        column: lambda row, _, name=name: reason_cell(row.reason, name)  # type: ignore[misc]
        for column, name in zip(REASON_COLUMNS, REASONS, strict=True)
    },
}

_NEAREST_VALUE = REASON_COLUMNS[REASONS.index("value")]

BEATS = "chance_to_beat_best"
"""The column that says how likely a string is to be better than the best measured one."""

_ABOUT = ("key", "source", "line", "command", "recorded")
"""Columns of an export that say where a result came from."""

_OF_RUNS = ("number", "key", "batch", "predicted_mean", "predicted_std", "acquisition", "seconds", "error")
"""Further columns of the evaluations of a run."""

_FILLED_IN = ("value", HITS, WELLS, "standard_error", "failure", "status", "replicate")
"""Roles of columns that are filled in; those of further values, too."""

CHANCE_DIGITS = 4

TELLS = "tells_of_target"
"""The column that says how much of what is unknown of the target a measurement would tell, from 0 to 1."""

DRAWING = "structure drawing"
"""The column of drawings in a workbook."""

_WRITTEN = {plain_name(name) for name in (*_TOLD, *CHANCES.values(), TELLS, FROM_LEAD, DRAWING, MUTATIONS)}
_TOLD_APART = re.compile(r"_(suggestion|seqopt|library|of_the_parent)(_\d+)?")

_BESIDE = ("", "-wal", "-shm", "-journal", "-run")  # a campaign's file, and the files next to it while it is open


def write_batch(
    path: str | os.PathLike[str],
    suggestions: Sequence[Suggestion],
    settings: Settings,
    further: Mapping[str, Sequence[Cell]] | None = None,
) -> None:
    """Write suggestions as a table that `read_results` reads once the last columns are filled in.

    The columns are the identifier, the string, its name as a variant where there is a parent (``S121E``), how it is to
    be measured and what that costs, what was predicted (the central prediction, and the ends of the central 90 % of a
    measurement), acquisition function and its value, why it was chosen (``why``, its rank by prediction, its chance to
    be better than the best measured string, the nearest measured string, what was measured of that, how similar it is
    and what differs), how much of the target it would tell where there are several ways to measure, how far it is from
    the lead where there is one, the further ones, and empty ones for the value, its standard error, what else is
    measured, and a reason for failure.

    Args:
        path: A .csv, .tsv, .xlsx or, for molecules, .sdf file. In a workbook each molecule has a drawing.
        suggestions: In the order in which they shall stand.
        settings: Of the campaign.
        further: More columns, each as long as ``suggestions``. One whose name would be taken for that of another column
            is called ``NAME (library)``; of those about a suggestion, one by the name of the objective or of the column
            of strings is called ``NAME (suggestion)``. One that holds just the names of the variants is left out.

    Raises:
        InputError: If a column is of another length, the file cannot be written, or for names as in
            `check_column_names`.
    """
    # Some name the objective with its unit.
    unit = f" ({settings.unit})" if settings.unit and not settings.objective.endswith(f"({settings.unit})") else ""
    value = settings.objective + unit
    check_column_names(settings)
    wanted = wanted_names(settings, None, None)
    own = {plain_name(settings.string_column)}.union(
        *(names for role, names in wanted.items() if role not in ("string", *TOLD))
    )
    told = told_apart(_TOLD, own, "suggestion")
    if settings.yes_no:
        # Of hits, none is better than another.
        told = told_apart([CHANCES.get(name, name) for name in _TOLD], own, "suggestion")
        told = {name: told[CHANCES.get(name, name)] for name in _TOLD if name != BEATS}
    table: dict[str, Sequence[Cell]] = {
        IDENTIFIER: [row.name for row in suggestions],
    }
    further = dict(further or {})
    own_column = settings.listed.get("id_column")
    if own_column is not None:
        # Where the library cannot be read, what it said when they were suggested.
        cells = further.pop(own_column, [None] * len(suggestions))
        called = [row.identifier or cell for row, cell in zip(suggestions, cells, strict=True)]
        table[owned_name(settings)] = called
    table[settings.string_column] = [row.string for row in suggestions]
    if (parent := parent_of(settings)) is not None:
        variants = mutation_names(parent, [row.key for row in suggestions])
        table[_names_of_variants(settings)] = variants
        # A library of variants has these names in a column of its own.
        for name in [name for name, cells in further.items() if variants and list(cells) == variants]:
            del further[name]
    table |= {name: [dict(row.context).get(name) for row in suggestions] for name in settings.context_names}
    costs = stated_costs(suggestions, settings)
    if costs is not None:
        table[COST] = costs
    table |= {
        told[name]: [_rounded(_TOLD[name](row, settings), name, settings) for row in suggestions] for name in told
    }
    if settings.contexts is not None:
        table[told_apart([TELLS], own, "suggestion")[TELLS]] = [row.reason.get("tells") for row in suggestions]
    far = distances_from_lead(settings, [row.key for row in suggestions])
    if far is not None:
        table[told_apart([FROM_LEAD], own, "suggestion")[FROM_LEAD]] = far
    for name, shown in told_apart(further, own | {plain_name(name) for name in table}, "library").items():
        cells = further[name]
        if len(cells) != len(suggestions):
            raise InputError(f"column {name!r} has {len(cells)} cells for {len(suggestions)} suggestions")
        if Path(path).suffix.lower() == WORKBOOK:
            from seqopt.datasets.workbooks import as_numbers

            texts = ["" if cell is None else str(cell) for cell in cells]
            cells = as_numbers(texts, decimal_comma=settings.decimal_comma)
        table[shown] = cells
    beside = WELLS if settings.yes_no else STANDARD_ERROR
    to_fill = (value, beside, *settings.further_names, FAILURE)
    table |= {name: [None] * len(suggestions) for name in to_fill}
    limits = [told[_NEAREST_VALUE]] if _NEAREST_VALUE in told else []
    write_table(path, settings, table, limits=limits, drawn=True)


def _names_of_variants(settings: Settings) -> str:
    """What the column of names of variants is called."""
    others = {plain_name(name) for name in (settings.objective, settings.string_column, *settings.further_names)}
    return told_apart([MUTATIONS], others, "of the parent")[MUTATIONS]


def _rounded(cell: Cell, name: str, settings: Settings) -> Cell:
    """Probabilities to as many digits as mean something."""
    return round(cell, CHANCE_DIGITS) if settings.yes_no and name in CHANCES and isinstance(cell, float) else cell


def write_table(
    path: str | os.PathLike[str],
    settings: Settings,
    table: Mapping[str, Sequence[Cell]],
    *,
    limits: Collection[str] = (),
    drawn: bool = False,
) -> None:
    """Write a table of a campaign, as the spreadsheet of its user opens it.

    A .csv has semicolons where the library has them or its commas are decimal, and decimal commas if those are.
    A limit, which is text in a workbook, too, has its number written likewise.

    Args:
        path: A .csv, .tsv, .xlsx or, for molecules, .sdf file.
        settings: Of the campaign.
        table: Columns by their names; the strings are in the one that the campaign calls so.
        limits: The columns that may hold limits such as ``<0.1``.
        drawn: Whether a workbook has drawings of molecules.

    Raises:
        InputError: For another kind of file, or one that cannot be written.
    """
    strings = [str(string) for string in table[settings.string_column]]
    if Path(path).suffix.lower() in STRUCTURES:
        check_batch_format(path, settings)
        from seqopt.datasets.sdf import sdf_bytes

        names = ["" if cell is None else str(cell) for cell in table[IDENTIFIER]]
        properties = {name: cells for name, cells in table.items() if name != settings.string_column}
        write_file(Path(path), sdf_bytes(strings, names, properties))
        return
    pictures = {}
    if drawn and Path(path).suffix.lower() == WORKBOOK and settings.space.get("kind") == "molecule":
        from seqopt.strings.depictions import molecule_png

        pictures = {DRAWING: list(map(molecule_png, strings))}
        columns = list(table.items())
        index = 1 + list(table).index(settings.string_column)
        table = dict([*columns[:index], (DRAWING, [None] * len(strings)), *columns[index:]])
    if settings.decimal_comma:
        table = {**table, **{name: list(map(_with_comma, table[name])) for name in limits}}
    write_like_library(path, settings, list(table), zip(*table.values(), strict=True), pictures=pictures)


def write_like_library(
    path: str | os.PathLike[str],
    settings: Settings,
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    pictures: Mapping[str, Sequence[bytes | None]] | None = None,
) -> None:
    """Write any table with the semicolons and decimal commas that the library of a campaign has.

    Args:
        path: A .csv, .tsv or .xlsx file.
        settings: Of the campaign.
        header: Names of the columns.
        rows: The rows, each as long as ``header``.
        pictures: See `seqopt.datasets.sheets.write_sheet`.

    Raises:
        InputError: See `seqopt.datasets.sheets.write_sheet`.
    """
    comma = settings.decimal_comma
    separator = ";" if comma else (settings.pool or {}).get("separator")
    write_sheet(path, header, rows, separator=separator, decimal_comma=comma, pictures=pictures)


def _with_comma(cell: Cell) -> Cell:
    """A limit with a decimal comma; any other cell as it is."""
    return cell.replace(".", ",", 1) if isinstance(cell, str) and cell.startswith(LIMIT_SIGNS) else cell


def check_batch_format(path: str | os.PathLike[str], settings: Settings) -> None:
    """Refuse the name of a file that no table of a campaign is written to.

    Raises:
        InputError: See `seqopt.datasets.sheets.check_format`; for an .sdf, if the strings are not molecules.
    """
    if Path(path).suffix.lower() not in STRUCTURES:
        check_format(path)
    elif settings.space.get("kind") != "molecule":
        raise InputError(f"{path}: an .sdf holds molecules, which this campaign does not search: write a .csv")


def owned_name(settings: Settings) -> str:
    """What the column of the owner's identifiers is called in tables of a campaign whose library has one."""
    column = str(settings.listed["id_column"])
    wanted = wanted_names(settings, None, None)
    others = set().union(*(names for role, names in wanted.items() if role != "owned"))
    return told_apart([column], others, "library")[column]


def not_written(names: Iterable[str], others: Iterable[str] = ()) -> list[str]:
    """Those columns of a table that neither batches nor exports of a campaign have by themselves.

    Args:
        names: All columns in question.
        others: Further columns that are known, those of the library.

    Example:
        >>> not_written(["why", "predicted (suggestion)", "line", "price", "sd"], ["price"])
        ['line', 'sd']
        >>> not_written(["number", "key", "predicted_mean", "acquisition"]), not_written(["number"])
        ([], ['number'])
    """
    given = list(names)
    known = _WRITTEN | set(map(plain_name, others))
    plain = [plain_name(name) for name in given]
    # These names are common, a line may be one of cells; what an export always holds tells.
    known |= set(_ABOUT) if {"key", "command", "recorded"} <= {_TOLD_APART.sub("", name) for name in plain} else set()
    known |= set(_OF_RUNS) if {"key", "predicted_mean", "acquisition"} <= set(plain) else set()
    return [
        name for name, of in zip(given, plain, strict=True) if of not in known and _TOLD_APART.sub("", of) not in known
    ]


def check_target(path: str | os.PathLike[str], store: CampaignStore) -> None:
    """Refuse to write over the library of a campaign, or over a campaign.

    Raises:
        InputError: If the path leads to one of them, by whatever name.
    """
    target, pool = Path(path), store.library
    if pool is not None and _same_file(target, file_and_part(pool["path"])[0]):
        raise InputError(f"{target} is the library of the campaign, which it needs as it is: choose another name")
    beside = (store.path.with_name(store.path.name + ending) for ending in _BESIDE)
    if target.suffix == ".seqopt" or any(_same_file(target, file) for file in beside):
        raise InputError(f"{target} is the file of a campaign: choose another name")


def check_batch_target(path: str | os.PathLike[str], store: CampaignStore) -> None:
    """Refuse to write a batch over anything but a batch without any result.

    Raises:
        InputError: For a file that is something else, or in which results were filled in; see also `check_target` and
            `seqopt.datasets.sheets.check_format`.
    """
    check_batch_format(path, store.settings)
    check_target(path, store)
    file = Path(path)
    if not file.is_dir() and (not file.exists() or not file.stat().st_size):
        return
    settings = store.settings
    wanted = wanted_names(settings, None, None)
    other = f"{file} already exists, and is not a batch of this campaign that waits for results: choose another name"
    try:
        sheet = read_sheet(file, expected=set().union(*wanted.values()))
    except InputError as error:
        raise InputError(f"{other} ({error})") from error
    names = settings.objective, settings.string_column
    columns, _ = Header(wanted, settings, *names, history=False).columns(sheet.rows[0])
    # Of a structure-data file the structures come first, and what is not filled in is not there.
    structures = file.suffix.lower() in STRUCTURES
    first = sheet.rows[0] if structures else sheet.rows[0][:1]
    if IDENTIFIER not in map(plain_name, first) or not ("value" in columns or structures):
        raise InputError(other)
    roles = (*_FILLED_IN, *map(further_role, settings.further_names))
    indices = [index for role in roles for index, _ in columns.get(role, [])]
    filled = [
        line
        for cells, line in zip(sheet.rows[1:], sheet.lines[1:], strict=True)
        if any(index < len(cells) and cells[index].strip() for index in indices)
    ]
    if filled:
        raise InputError(
            f"{file} holds results in {listed(filled)}, which would be lost: record it (seqopt campaign record), if "
            "that is not done yet, and choose another name"
        )


def _cell_of(row: Measurement, settings: Settings, *, numeric: bool) -> Cell:
    """A value as a table has it: of yes/no results what `read_results` reads, where numbers are not asked for."""
    return row.value if row.value is None or numeric or not settings.yes_no else row.told


def measurements_table(store: CampaignStore, *, numeric: bool = False) -> tuple[list[str], list[list[Cell]]]:
    """All that was measured, one by one, and what was withdrawn, as the header and the rows of a table.

    `read_results` reads it: identifiers, strings, values, standard errors, failures and replicates, what is discarded
    or withdrawn (``status``) and why (``remark``). Besides, it says what was predicted before there was a result.

    Args:
        store: The campaign.
        numeric: Whether limits are numbers whose signs stand in a column ``censored``; by default they are texts such
            as ``<0.1``.
    """
    with store.reading():
        settings = store.settings
        times = {command.id: command.time for command in store.history()}
        rows = store.measurements(discarded=True)
        suggestions = {row.name: row for row in store.suggestions()}
        withdrawals, exclusions = store.withdrawals(), store.exclusions()
    contexts, further = settings.context_names, settings.further_names
    apart = numeric and any(row.censored is not None for row in rows)
    owned = [owned_name(settings)] if settings.listed.get("id_column") else []
    paid = [COST] if has_costs(settings) else []
    parent = parent_of(settings)
    named = [] if parent is None else [_names_of_variants(settings)]
    header = [IDENTIFIER, *owned, settings.string_column, *named, *contexts, *paid, settings.objective, STANDARD_ERROR]
    header += further
    header += [FAILURE, REPLICATE]
    wanted, own = wanted_names(settings, None, None), (STATUS, REMARK, *TOLD)
    taken = {plain_name(name) for name in header}.union(*(wanted[role] for role in wanted if role not in own))
    told = (
        STATUS,
        REMARK,
        "predicted",
        "predicted_low",
        "predicted_high",
        *_ABOUT,
        *(["censored"] if apart else []),
    )
    header += told_apart(told, taken, "seqopt").values()
    table: list[list[Cell]] = []
    for row in rows:
        suggestion = suggestions.get(row.suggestion or "")
        status = "discarded" if row.discarded is not None else "failed" if row.failure is not None else "measured"
        identifier = row.identifier or (suggestion.identifier if suggestion is not None else None)
        table.append(
            [
                row.suggestion,
                *([identifier] if owned else []),
                row.string,
                *([] if parent is None else mutation_names(parent, [row.key])),
                *(dict(row.context).get(name) for name in contexts),
                *([row.cost] if paid else []),
                _cell_of(row, settings, numeric=numeric)
                if row.censored is None or apart
                else f"{row.censored}{row.value!r}",
                row.standard_error,
                *(row.further.get(name) for name in further),
                row.failure,
                row.replicate,
                status if row.value is not None or row.failure is not None else None,
                row.discarded,
                *_prediction(suggestion, settings),
                *(row.key, row.source, row.line, row.made_by, times[row.made_by]),
                *([row.censored] if apart else []),
            ]
        )
    # A string that has a result after all is among these already.
    measured = {row.key for row in rows}
    gone: list[tuple[Suggestion | Exclusion, Withdrawal | Exclusion]] = [
        *((suggestions[row.suggestion], row) for row in withdrawals if row.suggestion in suggestions),
        *((row, row) for row in exclusions),
    ]
    for what, why in gone:
        if what.key in measured:
            continue
        suggested = what if isinstance(what, Suggestion) else None
        context = {} if suggested is None else dict(suggested.context)
        table.append(
            [
                None if suggested is None else suggested.name,
                *([what.identifier] if owned else []),
                what.string,
                *([] if parent is None else mutation_names(parent, [what.key])),
                *(context.get(name) for name in contexts),
                *([None] if paid else []),
                *[None] * (2 + len(further) + 2),
                "withdrawn",
                why.reason,
                *_prediction(suggested, settings),
                *(what.key, None, None, why.made_by, times[why.made_by]),
                *([None] if apart else []),
            ]
        )
    return header, table


def _prediction(suggestion: Suggestion | None, settings: Settings) -> list[Cell]:
    return [None if suggestion is None else _TOLD[name](suggestion, settings) for name in TOLD]


def _same_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:  # one of them is not there
        return first.resolve() == second.resolve()
