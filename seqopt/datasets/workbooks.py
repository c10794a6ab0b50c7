"""Workbooks of spreadsheet programs (.xlsx): cells as text, and tables with numbers, drawings and no formulas.

The cells are given as the program would write them to a file of text: a number with a point (or a comma, where the user
says that commas are decimal), a date that it made of a value as ``2026-06-05``, a percentage as ``65%``, an error as
``#DIV/0!``. So whoever reads them finds what is wrong with a workbook as with any other table. A formula is the value
that was saved with it; one without is its text, which is neither a number nor a string.

References:
    ECMA-376 (2016). Office Open XML file formats. Fifth edition, part 1, section 18 (SpreadsheetML).
"""

from __future__ import annotations

import datetime
import io
import math
import re
import warnings
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from seqopt.datasets.sheets import Cell, plain_name, restore
from seqopt.datasets.sources import LARGEST_UNPACKED, PART, Source, choose_part, shown_parts
from seqopt.errors import InputError

MOST_CELLS = 20_000_000
"""Cells of a sheet that are read."""

LOOKED_AT = 10
"""Rows of each sheet in which names of columns are looked for."""

WIDEST = 60
"""Characters to which a column is widened at most."""

PICTURE = (200, 140)
"""Width and height of a drawing, in pixels."""

_EXACT = 10**15
"""Integers up to which a spreadsheet keeps every digit."""

# What XML cannot hold stands in workbooks by its number, and so does an underscore that would begin such a number.
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")

Row = tuple[str, ...]


@dataclass(frozen=True)
class WorkbookCells:
    """The cells of a sheet.

    Attributes:
        rows: Its rows; empty ones are left out, and empty cells at the end of a row.
        lines: The number of each row in the sheet, counted from 1.
        blank: The numbers of empty rows between others.
        sheet: Its name.
        several: Whether the workbook holds other sheets with cells.
    """

    rows: list[Row]
    lines: list[int]
    blank: list[int]
    sheet: str
    several: bool


def read_workbook(source: Source, *, expected: Collection[str] = (), decimal_comma: bool = False) -> WorkbookCells:
    """The cells of the sheet that is asked for or, if none is, of the one with a table.

    That is the only one that is neither hidden nor empty or, of several, the only one with a column of an ``expected``
    name.

    Args:
        source: The workbook.
        expected: Names of columns that may be there, as `plain_name` gives them.
        decimal_comma: Whether numbers are given as ``6,5``.

    Raises:
        InputError: For a workbook that cannot be read or is too large, a sheet that is not there, or if it is not clear
            which is meant.
    """
    name = source.name
    if source.data.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError(f"{name} is protected by a password, or an old Excel workbook: save it as .xlsx without one")
    _check_size(source)
    with warnings.catch_warnings():
        # Of parts that are not cells, such as rules for what may be filled in.
        warnings.simplefilter("ignore")
        import openpyxl

        try:
            book = openpyxl.load_workbook(io.BytesIO(source.data), read_only=True, data_only=True, keep_links=False)
            sheet, several = _chosen(book, source, expected)
            values = _cells(book[sheet], name, decimal_comma)
            rows = _with_formulas(values, source, sheet) if _has_formulas(source.data) else values
        except (InputError, MemoryError):
            raise
        except Exception as error:  # a damaged file may fail anywhere in the reader
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(f"{name} is not a readable Excel workbook ({reason}): save it again as .xlsx") from error
    filled = [number for number, row in rows.items() if row]
    last = filled[-1] if filled else 0
    present = set(filled)
    return WorkbookCells(
        [rows[number] for number in filled],
        filled,
        [number for number in range(1, last) if number not in present] if last < 2 * len(filled) + 1000 else [],
        sheet,
        several,
    )


def workbook_bytes(
    header: Sequence[str], rows: Iterable[Sequence[Cell]], pictures: Mapping[str, Sequence[bytes | None]], title: str
) -> bytes:
    """A workbook of one sheet: its header stays in view, its columns are as wide as their cells.

    Numbers are numbers and text is text, whatever it begins with: no cell is a formula.

    Args:
        header: Names of the columns.
        rows: As many cells each.
        pictures: For columns of ``header``, a PNG or nothing for each row, which is shown in its cell.
        title: Name of the sheet.

    Raises:
        InputError: For text that a workbook cannot hold.
    """
    import openpyxl
    from openpyxl.drawing.image import Image
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = re.sub(r"[\\/?*\[\]:]", " ", title)[:31].strip("' ") or "table"
    widths = [len(name) for name in header]
    for number, row in enumerate((header, *rows), start=1):
        for column, cell in enumerate(row, start=1):
            _put(sheet.cell(number, column), cell)
            # A number is shown with as many digits as there is room for.
            shown = "" if cell is None else cell if isinstance(cell, str) else f"{cell:.6g}"
            widths[column - 1] = max(widths[column - 1], *map(len, shown.split("\n")))
    for column, width in enumerate(widths, start=1):
        sheet.column_dimensions[get_column_letter(column)].width = min(width, WIDEST) + 2
        sheet.cell(1, column).font = Font(bold=True)
    for name, drawn in pictures.items():
        letter = get_column_letter(header.index(name) + 1)
        # Of the usual font a character is 7 pixels wide; heights are in points, three for four pixels.
        sheet.column_dimensions[letter].width = max(PICTURE[0] / 7 + 1, len(name) + 2)
        for number, picture in enumerate(drawn, start=2):
            if picture is not None:
                image = Image(io.BytesIO(picture))
                image.width, image.height = PICTURE
                sheet.add_image(image, f"{letter}{number}")
                sheet.row_dimensions[number].height = PICTURE[1] * 0.75 + 4
    if pictures:
        for line in sheet.iter_rows(min_row=2):
            for cell in line:
                cell.alignment = Alignment(vertical="center")
    sheet.freeze_panes = "A2"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def as_numbers(cells: Sequence[str], *, decimal_comma: bool = False) -> Sequence[Cell]:
    """The cells of a column as numbers, if all that are not empty are numbers and none loses a sign of its writing.

    What may be a name stays text: ``007``, ``1E5``, digits beyond those that a spreadsheet keeps.

    Example:
        >>> as_numbers(["12.5", "", "100"]), as_numbers(["12.5", "007"]), as_numbers(["6,5"], decimal_comma=True)
        ([12.5, None, 100], ['12.5', '007'], [6.5])
    """
    found: list[Cell] = []
    for cell in cells:
        text = cell.strip()
        if decimal_comma:
            text = text.replace(",", ".", 1) if "." not in text else "text"
        if not text:
            found.append(None)
        elif re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", text, re.ASCII) and len(re.sub(r"\D", "", text)) <= 15:
            found.append(float(text) if "." in text else int(text))
        else:
            return list(cells)
    return found


def _check_size(source: Source) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            size = sum(item.file_size for item in archive.infolist())
    except zipfile.BadZipFile as error:
        raise InputError(f"{source.name} is not a readable Excel workbook ({error}): save it again as .xlsx") from error
    if size > LARGEST_UNPACKED:
        raise InputError(
            f"{source.name} unpacks to more than {LARGEST_UNPACKED >> 30} GB, which is not read: divide it, or save "
            "the sheet as CSV"
        )


def _has_formulas(data: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for item in archive.infolist():
            if item.filename.startswith("xl/worksheets/"):
                with archive.open(item) as stream:
                    end = b""
                    while piece := stream.read(1 << 20):
                        if re.search(rb"<(?:\w+:)?f[ >/]", end + piece):
                            return True
                        end = piece[-16:]
    return False


def _chosen(book: Any, source: Source, expected: Collection[str]) -> tuple[str, bool]:
    """The sheet that is meant, and whether there are others."""
    # Charts are sheets, too, but hold no cells.
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets:
        raise InputError(f"{source.name} holds no sheet with cells")
    heads = {title: _head(sheet) for title, sheet in sheets.items()}
    full = [title for title, head in heads.items() if head]
    if source.sheet is not None:
        chosen = choose_part(source.name, "sheet", list(sheets), source.sheet)
        if not heads[chosen]:
            raise InputError(f"sheet {chosen!r} of {source.name} is empty")
        return chosen, full != [chosen]
    seen = [title for title in full if sheets[title].sheet_state == "visible"]
    if not full:
        raise InputError(f"{source.name} is empty")
    known = [
        title for title in seen if any(plain_name(restore(cell)) in expected for row in heads[title] for cell in row)
    ]
    for candidates in (seen, known):
        if len(candidates) == 1:
            return candidates[0], len(full) > 1
    listed = known or seen or full
    what = "hidden sheets only" if not seen else "several sheets"
    raise InputError(
        f"{source.name} has {what}, {shown_parts(listed)}: say which is meant, {source.name}{PART}{listed[0]}"
    )


def _head(sheet: Any) -> list[Row]:
    """The first rows of a sheet that are not empty."""
    sheet.reset_dimensions()  # what the file says of its size may be wrong, and makes every row as long
    found = []
    for cells in sheet.iter_rows(max_row=1000):
        row = tuple(_text(cell, False) for cell in cells)
        if any(text.strip() for text in row):
            found.append(row)
        if len(found) == LOOKED_AT:
            break
    return found


def _cells(sheet: Any, name: str, decimal_comma: bool) -> dict[int, Row]:
    """Rows of text by their number."""
    sheet.reset_dimensions()
    rows, count = {}, 0
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        row = [_text(cell, decimal_comma) for cell in cells]
        while row and not row[-1].strip():
            row.pop()
        count += len(row)
        if count > MOST_CELLS:
            raise InputError(
                f"sheet {sheet.title!r} of {name} has more than {MOST_CELLS:,} cells, which are not read: divide it, "
                "or save it as CSV"
            )
        if row:
            rows[number] = tuple(row)
    return rows


def _with_formulas(values: dict[int, Row], source: Source, sheet: str) -> dict[int, Row]:
    """The rows with the text of formulas that were saved without a value."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(source.data), read_only=True, keep_links=False)
    written = book[sheet]
    written.reset_dimensions()
    rows = dict(values)
    for number, cells in enumerate(written.iter_rows(), start=1):
        for index, cell in enumerate(cells):
            if cell.data_type == "f":
                row = list(rows.get(number, ()))
                row += [""] * (index + 1 - len(row))
                if not row[index]:
                    row[index] = str(getattr(cell.value, "text", None) or cell.value)
                    rows[number] = tuple(row)
    return dict(sorted(rows.items()))


def _text(cell: Any, decimal_comma: bool) -> str:
    """A cell as a program would write it to a file of text."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return restore(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), value))
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ") if value.time() != datetime.time() else value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(int(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    text = number_text(value)
    if "%" in re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", str(cell.number_format)):
        text = f"{value * 100:.15g}%"
    return text.replace(".", ",") if decimal_comma else text


def number_text(value: float) -> str:
    """A number as text: integers without a point.

    Example:
        >>> number_text(5), number_text(5.0), number_text(0.1), number_text(1e-7)
        ('5', '5', '0.1', '1e-07')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return repr(value)


def _put(target: Any, cell: Cell) -> None:
    """Set a cell of a workbook; text is never a formula, a date or an error."""
    if cell is None:
        return
    if isinstance(cell, str):
        # Readers take an apostrophe away before what a spreadsheet would run.
        text = f"'{cell}" if restore(cell) != cell else cell
        text = _ESCAPED.sub("_x005F_", text).replace("\r", "_x000D_")
        if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text) or not _encodable(text):
            raise InputError(f"a workbook cannot hold {text!r}: it has a character that is not text")
        if len(text) > 32_767:
            raise InputError(f"a cell of a workbook holds up to 32,767 characters, not {len(text):,}: write a .csv")
        if text:
            target.value = text
            target.data_type = "s"
            # A spreadsheet then leaves it text also when it is edited.
            target.quotePrefix = text != cell or text[:1] in ("=", "+", "-", "@")
        return
    number: Any = int(cell) if isinstance(cell, SupportsIndex) else float(cell)
    if isinstance(number, float) and not math.isfinite(number):
        if not math.isnan(number):
            target.value, target.data_type = repr(number), "s"
        return
    if isinstance(number, int) and abs(number) > _EXACT:
        target.value, target.data_type = str(number), "s"  # a spreadsheet would round it
        return
    # As text of the type number: the writer of openpyxl would round a float to 16 digits.
    target.value, target.data_type = repr(number), "n"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
