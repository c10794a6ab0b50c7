"""The map of a page: where points lie, their colours, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.report.map_page import GROUPS, HEIGHT, STRUCTURES, WIDTH, MapPoint, colour, draw_map, write_map_page


def points(count: int = 30) -> list[MapPoint]:
    rng = np.random.default_rng(1)
    return [
        MapPoint("C" * (1 + i % 9), *rng.normal(size=2).tolist(), float(i), f"p{i}", list(GROUPS)[i % 3], "molecule")
        for i in range(count)
    ]


def test_limits_keep_their_signs() -> None:
    given = [
        MapPoint("C" * i, float(i), 0.0, float(i), f"p{i}", "measured", censored=">" * (i == 3)) for i in (1, 2, 3)
    ]
    drawn = draw_map(given, value_label="activity")
    assert {row[5]: row[4] for row in drawn.data} == {"p1": "1.00", "p2": "2.00", "p3": ">3.00"}


def test_points_lie_as_their_coordinates_say() -> None:
    given = points()
    drawn = draw_map(given, value_label="activity")
    by_label = {row[5]: row for row in drawn.data}
    x, y = np.array([(by_label[point.label][0], by_label[point.label][1]) for point in given], dtype=float).T
    assert np.corrcoef(x, [point.x for point in given])[0, 1] > 0.9999
    assert np.corrcoef(y, [point.y for point in given])[0, 1] < -0.9999  # up is larger
    assert (x >= 0).all()
    assert (x <= WIDTH).all()
    assert (y >= 0).all()
    assert (y <= HEIGHT).all()
    # The page's data are in the order of the drawing, the pool below and suggestions on top.
    positions = [tuple(map(int, index)) for index in re.findall(r"translate\((\d+) (\d+)\)", drawn.svg)]
    assert positions == [(row[0], row[1]) for row in drawn.data]
    assert [row[7] for row in drawn.data] == sorted(row[7] for row in drawn.data)


def test_bright_is_good() -> None:
    def lightness(value: float, *, minimize: bool) -> float:
        text = colour(value, 0.0, 1.0, minimize=minimize)
        red, green, blue = (int(text[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    rising = [lightness(value, minimize=False) for value in np.linspace(0, 1, 50)]
    assert rising == sorted(rising)
    assert [lightness(value, minimize=True) for value in np.linspace(1, 0, 50)] == pytest.approx(rising)


def test_single_extremes_do_not_take_all_the_colours() -> None:
    given = [MapPoint("C", float(i), 0.0, float(i % 10), kind="text") for i in range(200)]
    given.append(MapPoint("C", 1.0, 1.0, 1e6, kind="text"))
    drawn = draw_map(given, value_label="v")
    assert drawn.clipped
    assert float(drawn.high.replace(",", "")) < 20


def test_colours_on_a_logarithmic_scale_are_those_of_the_logarithms() -> None:
    values = 10.0 ** np.arange(-3, 7)
    logarithmic = draw_map(
        [MapPoint("C", float(i), 0.0, value) for i, value in enumerate(values)], value_label="v", log10=True
    )
    linear = draw_map([MapPoint("C", float(i), 0.0, np.log10(v)) for i, v in enumerate(values)], value_label="v")
    fills = re.findall(r'fill="(#\w+)"', logarithmic.svg)
    assert fills == re.findall(r'fill="(#\w+)"', linear.svg)
    assert len(set(fills)) == len(values)
    # Texts are of the values themselves.
    assert float(logarithmic.data[-1][4].replace(",", "")) == pytest.approx(1e6)
    assert float(logarithmic.low.replace(",", "")) == pytest.approx(10 ** float(linear.low), rel=0.1)


@pytest.mark.filterwarnings("error")
def test_the_largest_floats_have_colours() -> None:
    values = (1.7e308, -1.7e308, 0.0)
    drawn = draw_map([MapPoint("C", float(i), 0.0, value) for i, value in enumerate(values)], value_label="v")
    assert len(set(re.findall(r'fill="(#\w+)"', drawn.svg))) == 3


def test_points_without_a_value_or_a_spread_are_drawn() -> None:
    drawn = draw_map([MapPoint("A", 1.0, 1.0), MapPoint("B", 1.0, 1.0, float("nan"))], value_label="v")
    assert drawn.svg.count("<circle") == 2
    assert "fill=" not in drawn.svg
    assert drawn.low == ""


def test_a_large_map_stays_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = [
        MapPoint("CC(=O)Nc1ccc(O)cc1", *rng.normal(size=2).tolist(), 1.0, "", "pool", "molecule", 0, "m" + "1,2 " * 90)
        for _ in range(11_999)
    ]
    given.append(MapPoint("CCO", 0.0, 0.0, 1.0, "", "measured", "molecule"))
    assert write_map_page(tmp_path / "m.html", given, title="t", value_label="v").stat().st_size < 12_000_000
    assert STRUCTURES < 12_000


def test_bad_points_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one"):
        draw_map([], value_label="v")
    with pytest.raises(InputError, match="point 1 is of the group 'best'"):
        draw_map([MapPoint("A", 0, 0), MapPoint("B", 0, 0, group="best")], value_label="v")
    with pytest.raises(InputError, match=r"point 0 \('A'\) lies at \(nan, 0\)"):
        write_map_page(tmp_path / "m.html", [MapPoint("A", float("nan"), 0)], title="t", value_label="v")
