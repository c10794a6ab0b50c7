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
