"""Points to fit a formula to: which columns, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from seqopt.datasets import read_points
from seqopt.errors import InputError


@pytest.mark.parametrize(
    ("header", "names", "chosen"),
    [
        ("x,y", {}, ("x", "y")),
        ("Y,X", {}, ("X", "Y")),  # by name, whatever the order
        ("day,mass", {}, ("day", "mass")),
        ("day,mass", {"y": "day"}, ("mass", "day")),  # a named one leaves the other
        ("y,day", {}, ("day", "y")),
        ("x,y,z", {}, ("x", "y")),
        ("x,y,z", {"y": "Z"}, ("x", "z")),
        ("name,day,mass", {}, ("day", "mass")),  # the first column has text
    ],
)
def test_columns_are_recognised(header: str, names: dict[str, str], chosen: tuple[str, str], tmp_path: Path) -> None:
    columns = header.split(",")
    rows = [
        [f"a{i}" if column == "name" else str(10 * i + index) for index, column in enumerate(columns)] for i in (1, 2)
    ]
    path = tmp_path / "points.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]))
    points = read_points(path, **names)
    assert (points.x_name, points.y_name) == chosen
    assert points.x.tolist() == [10 * i + columns.index(chosen[0]) for i in (1, 2)]
    assert points.y.tolist() == [10 * i + columns.index(chosen[1]) for i in (1, 2)]
    assert len(points) == 2


def test_tables_of_other_formats(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [0.1, 0.2], "y": [1.0, 2.0]})
    table.to_csv(tmp_path / "points.tsv", sep="\t", index=False)
    table.to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    table.to_parquet(tmp_path / "points.parquet")
    for name in ("points.tsv", "semicolons.csv", "points.parquet"):
        points = read_points(tmp_path / name)
        assert (points.x.tolist(), points.y.tolist()) == ([0.1, 0.2], [1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y\n1,2\n\n3,high\n", r"points.csv, line 4, column 'y': 'high' is not a finite number"),
        ("x,y\n1,2\n3,1_0\n", r"line 3, column 'y': '1_0' is not a finite number"),
        ("x,y\n1,2\n3,nan\n", r"line 3, column 'y': 'nan'"),
        ("x,y\n1,2\n,4\n", r"line 3, column 'x': the cell is empty"),
        ("x,y\n1,2\n", r"has 1 point: a formula is fitted to at least 2"),
        ("x,y\n", r"has no points"),
        ("a,b,c\n1,2,3\n4,5,6\n", r"which column of .* is x and which is y; its columns are 'a', 'b', 'c'"),
        ("a,x,c\n1,2,3\n4,5,6\n", r"which column of .* is y; .*: name it with y \(--y\)"),
        ("1,2\n3,4\n5,6\n", r"line 1: 1, 2 are numbers: begin the file with the names"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_points(path)


def test_a_list_of_strings_has_no_points(tmp_path: Path) -> None:
    path = tmp_path / "points.txt"
    path.write_text("1 2\n3 4\n")
    with pytest.raises(InputError, match="no named columns"):
        read_points(path)


COLUMNS = "run,x1,x2,T [K],y\nr1,1,2,3,4\nr2,5,6,7,8\nr3,,NA,9,10\nr4,11,12,,14\n"


@pytest.mark.parametrize(
    ("x", "y", "chosen", "rows"),
    [
        (None, None, ["x1", "x2"], 3),
        ("x2,T [K]", None, ["x2", "T [K]"], 2),
        (["t [k]", "X1"], "y", ["T [K]", "x1"], 2),
        (["x1", "x2,T [K]"], None, ["x1", "x2", "T [K]"], 2),
        ("y", "T [K]", ["y"], 3),
    ],
)
def test_several_inputs_and_rows_without_values(
    x: list[str] | str | None, y: str | None, chosen: list[str], rows: int, tmp_path: Path
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(COLUMNS)
    points = read_points(path, x, y, skip_missing=True)
    assert list(points.inputs) == chosen
    assert (len(points), points.left_out) == (rows, 4 - rows)
    frame = pd.read_csv(path)[[*chosen, y or "y"]].dropna()
    for name in chosen:
        assert points.inputs[name].tolist() == frame[name].tolist()
    assert points.y.tolist() == frame[y or "y"].tolist()


def test_a_name_may_hold_a_comma(tmp_path: Path) -> None:
    path = tmp_path / "points.tsv"
    path.write_text("a,b\ta\tb\ty\n1\t2\t3\t4\n5\t6\t7\t8\n")
    assert list(read_points(path, "a,b").inputs) == ["a,b"]
    assert list(read_points(path, ["a,b", "b"]).inputs) == ["a,b", "b"]
    assert list(read_points(path, "b,a").inputs) == ["b", "a"]


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ("x1,x2", r"line 4, column 'x1': the cell is empty: .*--skip-missing"),
        ("x2", r"line 4, column 'x2': 'NA' is not a finite number: .*--skip-missing"),
        ("x1,X1", "column 'x1' of .* is named twice as x"),
        ("x1,dose", "no column 'dose'"),
        ("run", r"line 2, column 'run': 'r1' is not a finite number: correct it, or leave the point out$"),
        ("x1,y", "column 'y' of .* cannot be both x and y"),
        ([], "no column of .* is named as x"),
    ],
)
def test_what_is_wrong_with_several_inputs_is_said(x: list[str] | str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(COLUMNS)
    with pytest.raises(InputError, match=said):
        read_points(path, x)


def test_too_few_rows_have_all_values(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("x,y\n1,2\n,4\n5,n/a\n")
    with pytest.raises(InputError, match="has 1 point without missing values: a formula is fitted to at least 2"):
        read_points(path, skip_missing=True)
