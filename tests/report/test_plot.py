"""The plot of a search, in any state of it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from seqopt.errors import InputError
from seqopt.report import plot_search
from seqopt.report.drawing import ROWS
from seqopt.report.plot import describe_quality, draw_predictions, draw_progress, far_from, plot_style
from seqopt.report.results import tidy_evaluations

STATES: dict[str, dict[str, list[Any]]] = {
    "empty": {"string": []},
    "one": {"string": ["A"], "value": [1.0]},
    "pending": {"string": ["A", "B"], "status": ["pending", "pending"], "value": [None, None]},
    "all failed": {"string": ["A", "B"], "status": ["failed", "failed"], "value": [None, None]},
    "all equal": {
        "string": ["A", "B", "C"],
        "value": [2.0, 2.0, 2.0],
        "batch": [0, 0, 1],
        "predicted_mean": [None, None, 2.0],
        "predicted_std": [None, None, 0.0],
    },
    "largest floats": {
        "string": ["A", "B", "C"],
        "value": [1.7e308, -1.7e308, 0.0],
        "batch": [0, 1, 1],
        "predicted_mean": [None, 0.0, 1.0],
        "predicted_std": [None, 1.0, 1.0],
    },
    "decades": {
        "string": ["A", "B", "C"],
        "value": [1e-9, 1e3, 5.0],
        "batch": [0, 1, 1],
        "predicted_mean": [None, 10.0, 1e200],
        "predicted_std": [None, 1e3, 1e300],
    },
}


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("log10", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_every_state_is_drawn_without_a_warning(state: str, log10: bool, tmp_path: Path) -> None:
    png, svg = plot_search(
        pd.DataFrame(STATES[state]),
        tmp_path / "a.b",
        direction="minimize",
        title="$x_1$ & <b> \x00 分子",
        value_label=r"$\frac{1}{0}$ \x",
        log10=log10,
    )
    assert (png.name, svg.name) == ("a.b.png", "a.b.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    texts = [element.text for element in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert r"$x_1$ & <b> \x00 分子" in texts


def test_what_is_drawn_is_what_was_measured(molecule_rows: list[dict[str, Any]]) -> None:
    table = tidy_evaluations(pd.DataFrame(molecule_rows))
    axes = Figure().subplots()
    draw_progress(axes, table, direction="maximize", value_label="activity")
    initial, chosen = (collection.get_offsets() for collection in axes.collections)
    assert np.asarray(initial).tolist() == [[1, 1], [3, 3]]
    assert np.asarray(chosen).tolist() == [[4, 2], [5, 5], [6, 4], [7, 0.5], [8, 5]]
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert np.asarray(lines["best so far"].get_ydata()).tolist() == [1, 1, 3, 3, 5, 5, 5, 5]
    assert lines["best so far"].get_drawstyle() == "steps-post"  # a value holds from its own evaluation on
    assert np.asarray(lines["failed"].get_xdata()).tolist() == [2]
    assert "5.00" in [text.get_text() for text in axes.texts]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("evaluation", "activity (higher is better)")


def test_the_best_keeps_the_sign_of_a_limit() -> None:
    rows = {"string": list("abc"), "value": [1.0, 3.0, 9.0], "censored": ["", ">", "<"], "batch": [0, 0, 1]}
    axes = Figure().subplots()
    draw_progress(axes, tidy_evaluations(pd.DataFrame(rows)), direction="maximize", value_label="activity")
    assert ">3.00" in [text.get_text() for text in axes.texts]


def test_predictions_are_drawn_with_one_standard_deviation(molecule_rows: list[dict[str, Any]]) -> None:
    table = tidy_evaluations(pd.DataFrame(molecule_rows))
    axes = Figure().subplots()
    draw_predictions(axes, table, direction="maximize", value_label="activity (mM)")
    bars, points = axes.collections
    assert np.asarray(points.get_offsets()).tolist() == [[2.5, 2], [4, 5], [4.5, 4], [1, 0.5], [2, 5]]
    assert bars.get_paths()[0].vertices[:, 0].tolist() == [1.75, 3.25]
    assert axes.get_ylabel() == "measured activity (mM)"
    # Off by 0.5, 1, 0.5, 0.5 and 3, with a standard deviation of 0.75: the mean square is 10.75 / 5 = 2.15.
    # Ranks 3 4 5 1 2 and 2 4.5 3 1 4.5: their correlation is 4 / sqrt(10 x 9.5) = 0.41.
    text = describe_quality(table)
    assert "RMSE 1.47 (5 predicted)" in text
    assert "60% within 1 sd" in text
    assert "80% within 2 sd" in text
    assert "rank correlation 0.41" in text


def test_the_same_search_gives_the_same_files(molecule_rows: list[dict[str, Any]], tmp_path: Path) -> None:
    table = pd.DataFrame(molecule_rows)
    options = {"direction": "maximize", "title": "t", "value_label": "v"}
    first = plot_search(table, tmp_path / "a", **options)
    second = plot_search(table, tmp_path / "b", **options)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_users_own_style_is_neither_used_nor_changed(molecule_rows: list[dict[str, Any]], tmp_path: Path) -> None:
    table = pd.DataFrame(molecule_rows)
    options = {"direction": "maximize", "title": "t", "value_label": "v"}
    plain, _ = plot_search(table, tmp_path / "a", **options)
    with matplotlib.rc_context({"figure.facecolor": "red", "text.usetex": True, "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        styled, _ = plot_search(table, tmp_path / "b", **options)
        assert dict(matplotlib.rcParams) == before
    assert plain.read_bytes() == styled.read_bytes()


def test_another_direction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'up'"):
        plot_search(pd.DataFrame({"string": []}), tmp_path / "a", direction="up", title="", value_label="")


@pytest.mark.slow
def test_neither_torch_nor_pyplot_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "evaluations.csv").write_text("string,value\nCCO,1\n")
    code = (
        "import sys, seqopt.report; assert 'matplotlib' not in sys.modules; "
        f"seqopt.report.write_report({str(tmp_path)!r}); "
        "print([name for name in ('torch', 'matplotlib.pyplot') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_notebook_that_imports_pyplot_while_a_plot_is_drawn_goes_on_showing_figures() -> None:
    before = matplotlib.is_interactive()
    try:
        matplotlib.interactive(False)
        with plot_style():
            matplotlib.interactive(True)
        assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(before)


def _with_hopeless_values(sign: float) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(0.0, 1.5, 80)
    values[[7, 60]] = -62.0, -30.0
    means, stds = np.full(80, np.nan), np.full(80, np.nan)
    means[10:], stds[10:] = 0.5 * values[10:], 1.0
    return pd.DataFrame(
        {
            "string": [f"s{number}" for number in range(80)],
            "value": sign * values,
            "batch": np.arange(80) // 10,
            "predicted_mean": sign * means,
            "predicted_std": stds,
        }
    )


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_a_few_hopeless_values_do_not_squeeze_the_others(direction: str, sign: float) -> None:
    table = tidy_evaluations(_with_hopeless_values(sign))
    with plot_style():
        left, right = Figure().subplots(1, 2)
        draw_progress(left, table, direction=direction, value_label="y")
        draw_predictions(right, table, direction=direction, value_label="y")
    others = table["value"][table["value"].abs() < 20]
    for axes, rows in ((left, [8, 61]), (right, [61])):
        low, high = axes.get_ylim()
        assert low < others.min()
        assert others.max() < high
        assert high - low < 1.3 * (others.max() - others.min())
        # Each of them is still there, under its own number, which the report links to its row.
        (triangles,) = (points for points in axes.collections if str(points.get_label()).startswith(f"{len(rows)} "))
        assert f"{len(rows)} {'below -' if sign > 0 else 'above '}" in str(triangles.get_label())
        assert triangles.get_gid() == ROWS + ",".join(map(str, rows))
        drawn = [str(points.get_gid()).removeprefix(ROWS) for points in axes.collections if points.get_gid()]
        numbers = sorted(int(number) for text in drawn for number in text.split(","))
        assert numbers == sorted(table.loc[table["predicted_mean"].notna() | (axes is left), "number"])


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_better_side_holds_every_value(direction: str) -> None:
    sign = 1.0 if direction == "maximize" else -1.0
    values = pd.Series([*np.random.default_rng(1).normal(size=60), sign * 50.0])
    assert far_from(values, direction) is None
    assert far_from(-values, direction) is not None


def test_values_that_are_not_few_or_not_far_stay_on_the_axis() -> None:
    spread = list(np.linspace(0.0, 3.0, 40))
    assert far_from(pd.Series([*spread, *[-60.0] * 3]), "maximize") is None
    assert far_from(pd.Series([*spread, -3.5]), "maximize") is None
    assert far_from(pd.Series([1.0] * 40 + [-60.0]), "maximize") is None
    assert far_from(pd.Series([], dtype=float), "maximize") is None


def test_limits_that_may_be_good_and_the_curve_of_chance_stay_on_the_axis() -> None:
    table = _with_hopeless_values(1.0).assign(censored="")
    table.loc[[7, 60], "censored"] = ">"
    with plot_style():
        axes = Figure().subplots()
        draw_progress(axes, tidy_evaluations(table), direction="maximize", value_label="y")
        assert axes.get_ylim()[0] < -62
        assert not any("below -" in str(points.get_label()) for points in axes.collections)
        axes = Figure().subplots()
        baseline = pd.DataFrame({"draws": [1, 80], "mean": [0.0, 9.0], "low": [-1.0, 7.0], "high": [1.0, 11.0]})
        rows = tidy_evaluations(_with_hopeless_values(1.0))
        draw_progress(axes, rows, direction="maximize", value_label="y", baseline=baseline)
        assert axes.get_ylim()[1] > 11
        assert axes.get_ylim()[0] > -20
