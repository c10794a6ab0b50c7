"""Tables come back as they were, and hold nothing that a spreadsheet runs."""

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.datasets.sheets import NUMBER, neutralise, plain_name, read_sheet, restore, write_sheet
from seqopt.errors import InputError

PARTS = st.sampled_from(
    ["=", "+", "-", "@", "'", " ", "\t", "\r", "\n", ",", ";", '"', "|", "1", ".5", "CC", "\u00b5", "\uff1d"]
)
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.lists(PARTS, max_size=6).map("".join),
)
DANGEROUS = "=+-@\t\r"


@given(TEXT)
def test_neutral_text_is_restored(text: str) -> None:
    assert restore(neutralise(text)) == text


@given(TEXT)
def test_no_text_is_run(text: str) -> None:
    cell = neutralise(text)
    assert not cell.startswith(tuple(DANGEROUS)) or NUMBER.fullmatch(cell)
    assert not cell.strip().startswith(("=", "@"))
    if not text.lstrip("' ").startswith(tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")) and not text[:1].isspace():
        assert cell == text


@pytest.mark.parametrize("text", ["-5", "+1e-3", "-.5", "-1E+10", "+7."])
def test_numbers_are_left_alone(text: str) -> None:
    assert neutralise(text) == text
    assert restore(text) == text


@pytest.mark.parametrize(
    "text", ["-5+cmd|' /C calc'!A0", "-1_000", "+1,5", "-", "=1", "@SUM(1)", "\t=1", "-inf", "--1"]
)
def test_what_only_resembles_a_number_is_neutralised(text: str) -> None:
    assert neutralise(text) == f"'{text}"


@settings(max_examples=60, deadline=None)
@given(
    table=st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(TEXT, min_size=width, max_size=width), min_size=1)),
    ending=st.sampled_from([".csv", ".tsv"]),
)
def test_any_table_of_text_comes_back(tmp_path_factory: pytest.TempPathFactory, table: list, ending: str) -> None:
    path = tmp_path_factory.mktemp("sheet") / f"table{ending}"
    write_sheet(path, table[0], table[1:])
    if not "".join("".join(row) for row in table).strip():
        return
    sheet = read_sheet(path, separator="\t" if ending == ".tsv" else ",")
    assert [list(row) for row in sheet.rows] == table
    assert sheet.encoding == "utf-8"
    # Python's own reader sees the cells that were written, not others.
    cells = list(
        csv.reader(io.StringIO(path.read_text("utf-8-sig", errors="strict"), newline=""), delimiter=sheet.separator)
    )
    if "\r" not in "".join("".join(row) for row in table):
        assert [[restore(cell) for cell in row] for row in cells] == table


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(
        st.one_of(st.none(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
    )
)
def test_numbers_are_written_to_the_last_digit(tmp_path_factory: pytest.TempPathFactory, numbers: list) -> None:
    path = tmp_path_factory.mktemp("sheet") / "numbers.csv"
    write_sheet(path, ["value", "other"], [[number, "text"] for number in numbers])
    read = [row[0] for row in read_sheet(path).rows[1:]]
    assert [None if cell == "" else type(number)(cell) for cell, number in zip(read, numbers, strict=True)] == numbers


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "numpy.csv"
    write_sheet(path, ["a", "b", "c", "d"], [[np.float64(-0.1), np.int64(-3), np.float32(0.5), math.nan]])
    assert path.read_text() == "a,b,c,d\n-0.1,-3,0.5,\n"


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_sheet(path, ["a"], [["old"]])
    for rows, message in (([["a", "b"]], "2 cells for 1 columns"), ([["\ud800"]], "not text"), ([["\0"]], "NUL")):
        with pytest.raises(InputError, match=message):
            write_sheet(path, ["a"], rows)
    with pytest.raises(InputError, match=r"cannot write .* close it there"):
        write_sheet(tmp_path / "nowhere" / "table.csv", ["a"], [])
    assert path.read_text() == "a\nold\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_files_of_all_programs_are_read(tmp_path: Path, encoding: str, end: str, separator: str) -> None:
    rows = [("identifier", "IC50 (\u00b5M)", "note"), ("B01-01", "6.5", "a,b;c"), ("B01-02", "", 'two"\nlines')]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end).writerows(rows)
    path = tmp_path / "results.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    sheet = read_sheet(path, expected={"identifier"})
    assert sheet.rows == tuple(rows)
    assert (sheet.lines, sheet.separator) == ((1, 2, 3), separator)
    assert sheet.guessed == ((1, separator.join(rows[0])) if encoding == "cp1252" else None)


def test_the_separator_is_told_by_names_and_by_equal_rows(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    for text, expected, separator in (
        ("identifier;IC50, nM\nB01-01;6,5\nB01-02;7,5\n", {"identifier"}, ";"),
        ("identifier;IC50, nM\nB01-01;6\nB01-02;7\n", set(), ";"),
        ("identifier\tIC50, nM\nB01-01\t6\n", set(), "\t"),
        ("identifier,IC50\nB01-01,6,5\n", set(), ","),
        ("sep=|\nidentifier|a,b,c\nB01-01|1,2,3\n", set(), "|"),
        ("identifier\nB01-01\n", set(), ","),
    ):
        path.write_text(text)
        assert read_sheet(path, expected=expected).separator == separator, text


def test_lines_are_counted_from_the_first_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text('sep=,\na,b\n\n"x\ny",1\n,\nz,2\n\n\n')
    sheet = read_sheet(path)
    assert sheet.rows == (("a", "b"), ("x\ny", "1"), ("", ""), ("z", "2"))
    assert sheet.lines == (2, 4, 6, 7)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04 and so on", "an Excel workbook"),
        (b"\xd0\xcf\x11\xe0 and so on", "an old Excel workbook"),
        (b"\x89PNG\x00\x01", "a picture"),
        (b"\x1f\x8b and so on", "not a complete gzip file"),
        (b"a,b\n1,\x81\xff\n", "line 2: byte 0x81: this is not text in a known encoding"),
        (b"a,b\n1,\xff\x02\n", "not text in a known encoding"),
        (b"\xff\xfea", "not text in a known encoding"),
        (b"a\0b\0c", "not text in a known encoding"),
        (b" \n\n", "is empty"),
        (b"", "is empty"),
        (b'a,b\n"1,2\n3,4\n', "line 2: .*quotation marks"),
        (b'a,b\n1,2\n"1"x,2\n', "line 3: .*quotation marks"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_sheet(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_sheet(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_sheet(tmp_path)


def test_names_of_columns_are_compared_without_their_dress() -> None:
    names = ["IC50 (nM)", "ic50_nm", " IC50 [nM]", "\ufeffIC50-nM", "\u00ef\u00bb\u00bfIC50 nM", "IC50\u00a0nM"]
    assert {plain_name(name) for name in names} == {"ic50_nm"}
    assert plain_name("\u00b5M") == plain_name("\u03bcM")
    assert plain_name("%") == "%"


def test_numbers_with_decimal_commas_are_left_alone_where_they_are_numbers(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a.csv", ["expt"], [["-4,1"], ["-4,1,2"]], decimal_comma=True)
    assert (tmp_path / "a.csv").read_text("utf-8-sig").splitlines()[1:] == ['"-4,1"', '"\'-4,1,2"']
    assert [row[0] for row in read_sheet(tmp_path / "a.csv").rows[1:]] == ["-4,1", "-4,1,2"]
