"""Workbooks are read as their programs show them, and written with numbers, text and drawings, but no formulas."""

import datetime
import io
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.exceptions import IllegalCharacterError

import seqopt.datasets.workbooks as workbooks
from seqopt.datasets import read_pool, read_sheet, write_sheet
from seqopt.datasets.workbooks import as_numbers
from seqopt.errors import InputError
from seqopt.strings.depictions import molecule_png

CELLS = st.one_of(
    st.none(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8),
    st.sampled_from(
        [
            "=1+1",
            "'=1",
            "''@x",
            "-CC",
            "+1",
            "#N/A",
            "TRUE",
            "2026-01-01",
            " a ",
            "x\ny",
            "007",
            "_x000D_",
            "_x0041_",
            "a\rb",
        ]
    ),
)


def book(path: Path, **sheets: list) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=5))
def test_any_table_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("book") / "table.xlsx"
    write_sheet(path, ["a", "b", "c"], rows)
    read = {line: row for row, line in zip(*(lambda sheet: (sheet.rows, sheet.lines))(read_sheet(path)), strict=True)}
    for number, row in enumerate(rows, start=2):
        cells = read.get(number, ())
        cells = [*cells, *[""] * (3 - len(cells))]
        for cell, text in zip(row, cells, strict=True):
            if isinstance(cell, str):
                assert text == cell or not cell.strip()
            elif cell is None:
                assert text == ""
            else:
                assert type(cell)(text) == cell


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=4))
def test_no_cell_is_a_formula(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("book") / "table.xlsx"
    write_sheet(path, ["=a", "@b"], rows)
    with zipfile.ZipFile(path) as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
    for row in openpyxl.load_workbook(path).active.iter_rows():
        assert {cell.data_type for cell in row} <= {"n", "s"}


def test_numbers_are_numbers_and_the_header_stays_in_view(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    write_sheet(path, ["name", "value"], [["=1", 6.5], ["a", np.int64(3)], ["b", float("nan")], ["c", 10**17]])
    sheet = openpyxl.load_workbook(path).active
    assert [cell.value for cell in sheet["B"]] == ["value", 6.5, 3, None, str(10**17)]
    assert [cell.value for cell in sheet["A"]][:2] == ["name", "=1"]
    assert sheet["A2"].quotePrefix
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["A"].width < sheet.column_dimensions["B"].width


def test_what_a_workbook_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    write_sheet(path, ["a"], [["old"]])
    for cell, message in (("\x00", "not text"), ("\ud800", "not text"), ("x" * 40_000, "32,767")):
        with pytest.raises(InputError, match=message):
            write_sheet(path, ["a"], [[cell]])
    assert read_sheet(path).rows == (("a",), ("old",))
    assert issubclass(IllegalCharacterError, Exception)


def test_each_molecule_has_a_drawing_in_its_row(tmp_path: Path) -> None:
    path = tmp_path / "batch.xlsx"
    drawings = [molecule_png("CCO"), None, molecule_png("c1ccccc1")]
    rows = [["CCO", None, 1], ["?", None, 2], ["c1ccccc1", None, 3]]
    write_sheet(path, ["smiles", "structure drawing", "y"], rows, pictures={"structure drawing": drawings})
    sheet = openpyxl.load_workbook(path).active
    assert [cell.value for cell in sheet[1]] == ["smiles", "structure drawing", "y"]
    assert [(image.anchor._from.row, image.anchor._from.col) for image in sheet._images] == [(1, 1), (3, 1)]
    assert sheet.row_dimensions[2].height >= 0.75 * workbooks.PICTURE[1]
    assert sheet.row_dimensions[3].height is None
    with pytest.raises(InputError, match="not a SMILES"):
        molecule_png("C1CC")


def test_cells_are_given_as_a_spreadsheet_shows_them(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.append(["what", "cell"])
    values = {
        "text": " CCO ",
        "integer": 5,
        "number": 0.25,
        "small": 1e-9,
        "yes": True,
        "date": datetime.datetime(2026, 6, 5),
        "moment": datetime.datetime(2026, 6, 5, 12, 30),
        "time": datetime.time(6, 5),
        "duration": datetime.timedelta(hours=30, minutes=5),
        "error": "#DIV/0!",
        "neutral": "'=CC",
    }
    for item in values.items():
        sheet.append(list(item))
    sheet.append(["percent", 0.65])
    sheet.cell(sheet.max_row, 2).number_format = "0.0%"
    sheet.append(["price", 12.5])
    sheet.cell(sheet.max_row, 2).number_format = '"50%" 0.00'
    made.save(tmp_path / "a.xlsx")
    read = dict(read_sheet(tmp_path / "a.xlsx").rows)
    assert read == {
        "what": "cell",
        "text": " CCO ",
        "integer": "5",
        "number": "0.25",
        "small": "1e-09",
        "yes": "TRUE",
        "date": "2026-06-05",
        "moment": "2026-06-05 12:30:00",
        "time": "06:05:00",
        "duration": "30:05:00",
        "error": "#DIV/0!",
        "neutral": "=CC",
        "percent": "65%",
        "price": "12.5",
    }
    assert dict(read_sheet(tmp_path / "a.xlsx", decimal_comma=True).rows)["price"] == "12,5"


def test_formulas_are_their_saved_values_and_nothing_is_taken_for_empty(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Sheet=[["smiles", "y"], ["CCO", "=1+1"], ["CCN", "=2+2"]])
    assert read_sheet(path).rows == (("smiles", "y"), ("CCO", "=1+1"), ("CCN", "=2+2"))
    pool_error = "is a formula without a result"
    with pytest.raises(InputError, match=pool_error):
        read_pool(path, values_column="y")
    # As a spreadsheet saves it: the formula with its value.
    saved = tmp_path / "saved.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(saved, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "xl/worksheets/sheet1.xml":
                assert b"<f>1+1</f>" in data
                data = data.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>").replace(
                    b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>"
                )
            new.writestr(item, data)
    assert read_sheet(saved).rows == (("smiles", "y"), ("CCO", "2"), ("CCN", "=2+2"))


def test_the_sheet_with_the_table_is_read_and_others_are_named(tmp_path: Path) -> None:
    table, notes = [["smiles", "y"], ["CCO", 1]], [["made on Monday"]]
    path = book(tmp_path / "one.xlsx", Empty=[], Table=table)
    pool = read_pool(path)
    assert (pool.strings, pool.lines.tolist(), pool.source) == (("CCO",), [2], str(path))
    path = book(tmp_path / "two.xlsx", Notes=notes, Table=table)
    assert read_pool(path).source == f"{path}#Table"
    assert read_sheet(path, expected={"smiles"}).source == f"{path}#Table"
    with pytest.raises(InputError, match=r"several sheets, 'Notes', 'Table': say which is meant, .*two.xlsx#Notes"):
        read_sheet(path)
    assert read_sheet(f"{path}#notes").rows == (("made on Monday",),)
    path = book(tmp_path / "both.xlsx", A=table, B=[["smiles", "y"], ["CCN", 2]])
    with pytest.raises(InputError, match=r"several sheets, 'A', 'B'.*both\.xlsx#A"):
        read_pool(path)
    first, second = read_pool(f"{path}#A"), read_pool(f"{path}#B")
    assert (first.strings, second.strings) == (("CCO",), ("CCN",))
    assert first.sha256 != second.sha256
    with pytest.raises(InputError, match="has no sheet 'C'; it has 'A', 'B'"):
        read_pool(f"{path}#C")
    made = openpyxl.load_workbook(path)
    made["A"].sheet_state = "hidden"
    made.save(path)
    assert read_pool(path).strings == ("CCN",)
    assert read_pool(f"{path}#A").strings == ("CCO",)


def test_rows_of_a_workbook_are_numbered_as_it_shows_them(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Sheet=[["smiles", "y"], [], ["CCO", 1], ["C1CC"], ["CCN", None]])
    pool = read_pool(path)
    assert pool.lines.tolist() == [3, 5]
    assert [(record.line, record.value) for record in pool.rejected] == [(2, ""), (4, "C1CC")]


def test_damaged_protected_and_huge_workbooks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.xlsx"
    for data, message in (
        (b"not a workbook", "not a readable Excel workbook"),
        (b"\xd0\xcf\x11\xe0 and so on", "protected by a password"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=message):
            read_sheet(path)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("xl/workbook.xml", "<broken")
    path.write_bytes(stream.getvalue())
    with pytest.raises(InputError, match="not a readable Excel workbook"):
        read_sheet(path)
    book(path, Empty=[])
    with pytest.raises(InputError, match="is empty"):
        read_sheet(path)
    book(path, Sheet=[["a", "b"]] * 6)
    monkeypatch.setattr(workbooks, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="more than 10 cells"):
        read_sheet(path)
    monkeypatch.setattr(workbooks, "LARGEST_UNPACKED", 100)
    with pytest.raises(InputError, match="unpacks to more"):
        read_sheet(path)


def test_a_cell_far_away_costs_nothing(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.append(["smiles", "y"])
    made.active.append(["CCO", 1])
    made.active.cell(200_000, 1, "CCN")
    made.save(tmp_path / "a.xlsx")
    pool = read_pool(tmp_path / "a.xlsx")
    assert pool.strings == ("CCO", "CCN")
    assert pool.lines.tolist() == [2, 200_000]
    assert not pool.rejected


@pytest.mark.parametrize("ending", ["xls", "xlsb", "ods", "numbers"])
def test_other_workbooks_are_refused_with_the_way_out(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"library.{ending}"
    path.write_bytes(b"PK\x03\x04 and so on")
    for read in (read_sheet, read_pool):
        with pytest.raises(InputError, match=rf"{ending} is .*as \.xlsx or CSV"):
            read(path)


def test_only_what_is_surely_a_number_becomes_one() -> None:
    assert as_numbers(["1", "-2.5", ""]) == [1, -2.5, None]
    assert as_numbers(["6,5", "7"], decimal_comma=True) == [6.5, 7]
    for text in ("007", "1E5", "+1", "1,5", "12345678901234567", "1-2", "MARCH1", "1.234.5"):
        assert as_numbers(["1", text]) == ["1", text]
    assert as_numbers(["1.5"], decimal_comma=True) == ["1.5"]
