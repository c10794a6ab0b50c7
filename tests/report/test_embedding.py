"""Maps with their files."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.errors import InputError
from seqopt.report.embedding import embed, map_files
from seqopt.report.map_plot import plot_map, value_norm
from seqopt.report.map_points import MapInput, gather_points

MOLECULES = ["".join(p) for p in itertools.product(["C", "CCC", "OC", "c1ccccc1"], ["C", "N", "O"], ["C", "F", "CBr"])]


@pytest.fixture
def points(tmp_path: Path) -> MapInput:
    rows = [f"{string},{len(string) if index % 3 else ''}" for index, string in enumerate(MOLECULES)]
    path = tmp_path / "assay.csv"
    path.write_text("smiles,length\n" + "\n".join(rows), encoding="utf-8")
    others = tmp_path / "others.csv"
    others.write_text("smiles\nCCCCN\nCNF\n", encoding="utf-8")
    return gather_points(path, values_column="length", project=others)


def test_the_table_holds_coordinates_values_and_groups(points: MapInput, tmp_path: Path) -> None:
    found = embed(points, "ssk", components=3, learn_from=15)
    paths = found.write(tmp_path / "out" / "map.csv", title="A map")
    assert [path.name for path in paths] == ["map.csv", "map.png", "map.svg", "map.html", "map.json"]
    table = pd.read_csv(paths[0])
    assert table.columns.tolist() == ["string", "x", "y", "component_3", "value", "group"]
    assert len(table) == len(MOLECULES) + 2
    assert np.allclose(table[["x", "y", "component_3"]][: len(MOLECULES)], found.map.coordinates)
    assert table["group"].tolist()[-2:] == ["projected"] * 2
    assert np.allclose(table[["x", "y"]][-2:], found.map.project(["CCCCN", "CNF"])[:, :2])
    page = paths[3].read_text()
    assert re.findall(r"</svg>([a-z ]+) <span", page) == ["not measured", "measured", "projected"]
    record = json.loads(paths[4].read_text())
    assert record["explained_variance_ratio"] == found.map.explained_variance_ratio.tolist()
    assert record["settings"]["surrogate"] == "ssk"
    assert record["smoothness"]["points"] == 24
    assert found.smoothness is not None
    said = "\n".join(found.summary())
    assert "match decay" in said
    assert "2 further strings" in said
    assert f"Smoothness of length: {found.smoothness.correlation:.2f}" in said


def test_what_a_user_wrote_stays_text_in_the_page(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    path = tmp_path / "texts.csv"
    path.write_text(f'text,"{evil}"\n{evil},1\nabc,2\nabd,3\nxyz,4\n', encoding="utf-8")
    found = embed(gather_points(path, column="text", values_column=evil, kind="text"))
    page = found.write(tmp_path / "map.csv", title=evil)[3].read_text(encoding="utf-8")
    assert evil not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_too_few_strings_to_map_or_to_judge(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("smiles,v\nCCO,1\nOCC,2\nC1CC,3\nCCN,4\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least 3 different strings; here 2"):
        embed(gather_points(path, values_column="v"))
    path.write_text("smiles,v\nCCO,1\nCCC,2\nCCN,4\n", encoding="utf-8")
    found = embed(gather_points(path, values_column="v"))
    assert found.smoothness is None
    assert "from 20 measured strings on" in "\n".join(found.summary())


def test_a_file_that_no_map_has_written_is_not_overwritten(tmp_path: Path) -> None:
    assert map_files(tmp_path / "new") == tmp_path / "new" / "map.csv"
    library = tmp_path / "library.csv"
    library.write_text("smiles,price\nCCO,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="not overwritten"):
        map_files(library)
    library.write_text("string,x,y,value,group\nCCO,0,0,,\n", encoding="utf-8")
    assert map_files(library) == library
    (tmp_path / "odd.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        map_files(tmp_path / "odd.csv")


def test_the_picture_is_the_same_each_time_and_takes_any_text(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 1.0], "value": [1.0, 2.0, np.nan, np.nan]}
    ).assign(group=["measured", "projected", "failed", "not measured"])
    first = plot_map(table, tmp_path / "a", title="$\\frac$ <b>", value_label="$x", remark="\x00")
    second = plot_map(table, tmp_path / "b", title="$\\frac$ <b>", value_label="$x", remark="\x00")
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    svg = first[1].read_text()
    assert "not measured" in svg
    assert "<b>" not in svg
    nothing = table.assign(value=np.nan, group="")
    assert plot_map(nothing, tmp_path / "c", title="t", value_label="")[0].exists()


def test_colours_leave_outliers_out() -> None:
    values = pd.Series([*np.linspace(0, 1, 101), 1e9, np.nan])
    norm = value_norm(values)
    assert norm.vmax is not None
    assert 0.9 < norm.vmax < 1.1
    assert value_norm(pd.Series([2.0, 2.0, 5.0])).vmax == pytest.approx(4.88)
    decades = value_norm(pd.Series([1.0, 10.0, 100.0]), log10=True)
    assert decades(10.0) == pytest.approx(0.5)
