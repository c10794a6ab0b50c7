"""Fitting formulas from the command line, as its users do."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.cli import main
from seqopt.objectives import ExpressionError, FormulaSpace
from seqopt.objectives.formulas import pareto
from seqopt.spaces import GrammarSpace

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
QUICK = ["--initial", "6", "--batch", "3", "--budget", "6", "--seed", "1"]
X = np.linspace(-3, 3, 25)
Y = 1 + X * X


@pytest.fixture(autouse=True)
def _points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("xy.csv", "x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in zip(X.tolist(), Y.tolist(), strict=True)))


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def expressions(*arguments: str, data: str = "xy.csv", out: str = "out", acquisition: str = "random") -> int:
    command = ["expressions", "--data", data, *arguments, "--out", out, "--acquisition", acquisition, *QUICK]
    with pytest.MonkeyPatch.context() as patch:
        # The page of a run finds its points by the command that was typed.
        patch.setattr(sys, "argv", ["seqopt", *command])
        return main(command)


@pytest.mark.slow
def test_formulas_are_scored_ranked_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert expressions(acquisition="mean") == 0
    table = pd.read_csv("out/expressions.csv")
    assert len(table) == 12
    assert table["rank"].tolist() == list(range(1, 13))
    assert table["score"].is_monotonic_increasing
    assert table["score"].tolist() == ExpressionError(X, Y)(table["expression"].tolist()).tolist()
    space = GrammarSpace("arithmetic", 3, 20)
    for row in table.itertuples():
        assert row.expression in space
        assert row.terminals == len(space.rules.terminals_of(space.from_string(row.expression)))
        with np.errstate(all="ignore"):
            values = eval(row.expression, {"sin": np.sin, "exp": np.exp, "x": X}) + 0 * X
        error = np.mean((values - Y) ** 2)
        assert math.isnan(row.mse) if not np.isfinite(error) else row.mse == pytest.approx(error)
    said = capsys.readouterr().out
    for words in ("25 points", "y by x", "3 to 20 terminals", "out/expressions.csv", table["expression"][0]):
        assert words in said
    page = Path("out/report.html").read_text()
    assert "of formulas for xy.csv" in page
    assert table["expression"][0] in page  # in one piece
    assert "molecule" not in re.sub(r"(?s)<(style|script).*?</\1>", "", page)
    assert "candidates" not in page


@pytest.mark.slow
def test_columns_by_name_and_by_what_they_hold() -> None:
    rows = "".join(f"{x!r},a,{y!r}\n" for x, y in zip(X.tolist(), Y.tolist(), strict=True))
    write("named.csv", "day,note,mass\n" + rows)
    write("wide.csv", "id,day,mass\n" + "".join(f"{i},{i},{i * i}\n" for i in range(9)))
    for name, options in (("named.csv", []), ("wide.csv", ["--x", "day", "--y", "MASS"])):
        assert expressions(*options, data=name, out=name[:-4]) == 0
    assert expressions(out="plain") == 0
    scores = [pd.read_csv(f"{name}/expressions.csv")["score"].tolist() for name in ("named", "plain")]
    assert scores[0] == scores[1]


@pytest.mark.slow
def test_a_grammar_of_ones_own_within_limits(capsys: pytest.CaptureFixture[str]) -> None:
    write("mine.cfg", "S -> S '+' T | S '-' T | T\nT -> 'x' '**' N | 'x' | N\nN -> '1' | '2'\n")
    assert expressions("--grammar", "mine.cfg", "--min-length", "3", "--max-length", "7") == 0
    table = pd.read_csv("out/expressions.csv")
    assert table["terminals"].between(3, 7).all()
    assert table["expression"].str.fullmatch(r"[-x+*12]+").all()
    write("mine.cfg", "S -> S '+' T | T\nT -> 'x' | N\nN -> '1' | '2'\n")
    capsys.readouterr()
    assert expressions("--grammar", "mine.cfg", "--min-length", "3", "--max-length", "7", "--resume") == 2
    assert "space.fingerprint" in capsys.readouterr().err


@pytest.mark.slow
def test_other_points_are_refused_on_resumption(capsys: pytest.CaptureFixture[str]) -> None:
    assert expressions() == 0
    write("xy.csv", Path("xy.csv").read_text() + "4,17\n")
    assert expressions("--resume") == 2
    assert "data.points was 25, is now 26" in capsys.readouterr().err


@pytest.mark.slow
def test_stopped_and_resumed(measured: Callable[[str], int]) -> None:
    # The first evaluations fill the initial design, so the model is at work when the search is stopped.
    command = ["--data", "xy.csv", "--acquisition", "mean", "--initial", "6", "--batch", "3", "--budget", "6"]
    process = subprocess.Popen(
        [sys.executable, "-m", "seqopt", "expressions", *command, "--out", "stopped"], env=ENVIRONMENT
    )
    deadline = time.monotonic() + 120
    while measured("stopped") < 6:
        assert time.monotonic() < deadline, "the search did not start"
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert len(pd.read_csv("stopped/expressions.csv")) == measured("stopped")
    assert main(["expressions", *command, "--out", "stopped", "--resume"]) == 0
    assert main(["expressions", *command, "--out", "whole"]) == 0
    assert Path("stopped/expressions.csv").read_text() == Path("whole/expressions.csv").read_text()


@pytest.mark.parametrize(
    ("data", "arguments", "said"),
    [
        ("no.csv", [], "there is no file no.csv"),
        ("void.csv", [], "void.csv is empty"),
        ("letters.csv", [], "letters.csv, line 3, column 'y': 'abc' is not a finite number"),
        ("gap.csv", [], "gap.csv, line 3, column 'y': the cell is empty"),
        ("infinite.csv", [], "infinite.csv, line 2, column 'x': 'inf' is not a finite number"),
        ("three.csv", [], "cannot tell which column of three.csv is x and which is y; its columns are 'a', 'b', 'c'"),
        ("three.csv", ["--x", "a"], "cannot tell which column of three.csv is y"),
        ("three.csv", ["--x", "a", "--y", "d"], "three.csv has no column 'd'; its columns are 'a', 'b', 'c'"),
        ("three.csv", ["--x", "a", "--y", "a"], "cannot be both x and y"),
        ("one.csv", [], "one.csv has 1 point"),
        ("none.csv", [], "none.csv has no points"),
        ("bare.csv", [], "begin the file with the names of its columns"),
        ("xy.csv", ["--grammar", "smiles"], "the grammar smiles has strings that are not formulas in x"),
        ("xy.csv", ["--grammar", "nothing"], "arithmetic.cfg"),
        ("xy.csv", ["--grammar", "my/missing.cfg"], "there is no grammar file"),
        ("xy.csv", ["--grammar", "broken.cfg"], "broken.cfg, line 2: \"T = 'x'\" is not a rule"),
        ("xy.csv", ["--grammar", "lacking.cfg"], "lacking.cfg, line 1: no rule defines T"),
        ("xy.csv", ["--grammar", "endless.cfg"], "S is non-terminating"),
        ("xy.csv", ["--grammar", "short.cfg"], "has no string of 3 to 20 terminals: the nearest lengths are 1"),
        ("xy.csv", ["--min-length", "9", "--max-length", "5"], "the limits are 9 to 5 terminals"),
        ("xy.csv", ["--resume"], "no run to resume"),
    ],
)
def test_bad_input_is_one_clear_message(
    data: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("void.csv", "")
    write("letters.csv", "x,y\n1,2\n2,abc\n")
    write("gap.csv", "x,y\n1,2\n2,\n")
    write("infinite.csv", "x,y\ninf,2\n2,3\n")
    write("three.csv", "a,b,c\n1,2,3\n4,5,6\n")
    write("one.csv", "x,y\n1,2\n")
    write("none.csv", "x,y\n")
    write("bare.csv", "1,2\n3,4\n")
    write("broken.cfg", "S -> T '+' T\nT = 'x'\n")
    write("lacking.cfg", "S -> T '+' T\n")
    write("endless.cfg", "S -> 'x' '+' S\n")
    write("short.cfg", "S -> 'x' | '1'\n")
    assert expressions(*arguments, data=data) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("seqopt:") == 1
    assert "Traceback" not in captured.err
    assert not Path("out").exists()


@pytest.mark.slow
def test_what_is_odd_about_a_grammar_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    write("odd.cfg", "S -> S '+' T | T\nT -> 'x' | '1' | '2'\nU -> 'x'\n")
    assert expressions("--grammar", "odd.cfg") == 0
    assert "note: odd.cfg, line 3: U is unreachable" in capsys.readouterr().out


@pytest.mark.slow
def test_known_formulas_teach_the_model_and_are_not_scored_again(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"1+x*x": 0.125, "x+x*x": 1.5, "sin(x)": 2.5}
    rows = "".join(f"{formula},{score}\n" for formula, score in known.items())
    for text, words in (
        ("string,value\ny+1,0.5\n", "known.csv, line 2"),
        ("string,score\nx+1,0.5\n", "no column of values"),
    ):
        assert expressions("--known", write("bad-known.csv", text)) != 0
        assert words in " ".join(capsys.readouterr().err.split())
        assert not Path("out").exists()
    assert expressions("--known", write("known.csv", "string,value\n" + rows)) == 0
    assert "what is known from known.csv takes the place" in capsys.readouterr().out
    frame = pd.read_csv("out/evaluations.csv")
    assert frame["string"].tolist()[:3] == list(known)
    assert frame["value"].tolist()[:3] == list(known.values())
    assert len(frame) == 6 + 6
    assert frame["string"].is_unique
    assert expressions("--known", "known.csv", "--resume") == 0


RATES = "run,T [K],dose,rate\n" + "".join(
    f"r{i},{300 + 5 * (i % 7)},{1 + i / 4:.2f},{2e4 * (300 + 5 * (i % 7)) * (1 + i / 4) + 7e5:.6g}\n" for i in range(24)
)


@pytest.mark.slow
def test_several_inputs_constants_and_rows_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    write("rates.csv", RATES + "r24,,2,3\n")
    options = ["--x", "T [K],dose", "--y", "rate", "--constants", "--holdout", "0.25", "--skip-missing"]
    assert expressions(*options, "--grammar", "formulas", data="rates.csv") == 0
    said = capsys.readouterr().out
    for words in (
        "18 points from rates.csv: rate by T [K], dose; formulas call 'T [K]' T_K",
        "the grammar formulas:T_K,dose+c",
        "6 more points are held out",
        "1 row is left out for a missing value",
        "errors are divided by the variance of rate",
        "Error against length",
        "R2 held out",
    ):
        assert words in " ".join(said.split())
    table = pd.read_csv("out/expressions.csv")
    frame = pd.read_csv("rates.csv").dropna()
    columns = {"T_K": frame["T [K]"].to_numpy(), "dose": frame["dose"].to_numpy(), "np": np}
    y = frame["rate"].to_numpy()
    judged = 0
    for row in table.itertuples():
        assert "c" not in re.sub(r"cos\(", "", row.fitted) or math.isnan(row.mse)
        if math.isnan(row.mse) or math.isnan(row.held_out_mse):
            continue
        with np.errstate(all="ignore"):
            errors = (eval(row.python, columns) - y) ** 2
        # 18 rows were fitted to, 6 held out.
        assert np.sum(errors) == pytest.approx(18 * row.mse + 6 * row.held_out_mse, rel=1e-2)
        judged += 1
    assert judged >= 4
    front = table[table["pareto"]].sort_values("terminals")
    assert front["mse"].is_monotonic_decreasing
    assert front["terminals"].is_unique
    assert (front["mse"].min(), front["terminals"].min()) == (table["mse"].min(), table["terminals"].min())
    best = pareto(table["terminals"], table["held_out_mse"])
    assert (table["pareto_held_out"] == best).all()
    taken = front.loc[front["held_out_mse"].idxmin(), "fitted"]
    assert f"The one to take: of these, {taken} has the least error on the rows held out" in " ".join(said.split())
    page = Path("out/report.html").read_text()
    for words in ("Error against length", "R² held out", front["fitted"].iloc[0], "6 points were held out"):
        assert words in page
    assert 'aria-label="Formula 1, measured values against its own"' in page
    evaluations = pd.read_csv("out/evaluations.csv")
    assert evaluations["string"].str.contains(r"\bc\b").any()
    options[options.index("0.25")] = "0.5"
    assert expressions(*options, "--grammar", "formulas", "--resume", data="rates.csv") == 2
    assert "data.holdout was 0.25, is now 0.5" in capsys.readouterr().err


@pytest.mark.slow
def test_no_function_is_scored_twice_and_lengths_are_those_of_what_is_printed() -> None:
    assert expressions("--constants", "--grammar", "formulas") == 0
    table = pd.read_csv("out/expressions.csv")
    space = FormulaSpace("formulas:x+c", 3, 20, constant="c")
    assert all(map(space.is_canonical, table["expression"]))
    assert table["expression"].is_unique
    symbol = re.compile(
        r"\*\*[23]|(?:sin|cos|exp|log|sqrt)\(|(?<![\w)])-?[0-9.]+(?:e-?[0-9]+)?|[0-9.]+(?:e-?[0-9]+)?|\S"
    )
    for row in table[table["mse"].notna()].itertuples():
        # The brackets around a negative number are its sign.
        printed = re.sub(r"(?<=[-+*/])\((-[^()*/+]+)\)", r"\1", row.fitted)
        assert len(symbol.findall(printed)) == row.terminals, row.fitted
    front = table[table["pareto"]]
    for row in front.itertuples():
        assert not (table["mse"][table["terminals"] < row.terminals] <= row.mse).any()


@pytest.mark.slow
def test_known_formulas_may_be_written_in_any_way() -> None:
    write("known.csv", "string,value\nx*c*x/c,0.5\nx-c+c,2\n")
    options = ["--constants", "--grammar", "formulas", "--known", "known.csv"]
    assert expressions(*options) == 0
    frame = pd.read_csv("out/evaluations.csv")
    assert frame["string"].tolist()[:2] == ["x*c*x/c", "x-c+c"]
    assert frame["key"].tolist()[:2] == ["c*x**2", "x+c"]
    assert frame["key"].is_unique
    assert expressions(*options, "--resume") == 0


@pytest.mark.slow
def test_a_run_begun_with_every_way_to_write_a_formula_goes_on() -> None:
    def every(name: str, shortest: int, longest: int, **_: object) -> GrammarSpace:
        return GrammarSpace(name, shortest, longest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqopt.cli.expressions.FormulaSpace", every)
        assert expressions("--constants") == 0
    scored = pd.read_csv("out/evaluations.csv")
    command = ["expressions", "--data", "xy.csv", "--constants", "--out", "out", "--acquisition", "random"]
    longer = ["9" if one == "6" and before == "--budget" else one for before, one in pairwise(["", *QUICK])]
    assert main([*command, *longer, "--resume"]) == 0
    after = pd.read_csv("out/evaluations.csv")
    assert len(after) == len(scored) + 3
    assert after["string"].tolist()[: len(scored)] == scored["string"].tolist()


@pytest.mark.slow
def test_decimal_commas_and_values_too_large(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{x};{y}\n".replace(".", ",") for x, y in zip(X.tolist(), Y.tolist(), strict=True) if abs(x) > 0.01)
    write("comma.csv", "x;y\n" + rows)
    assert expressions(data="comma.csv") == 2
    assert "If commas are decimal in this table, say so with --decimal-comma" in capsys.readouterr().err
    assert expressions("--decimal-comma", data="comma.csv") == 0
    table = pd.read_csv("out/expressions.csv")
    kept = np.abs(X) > 0.01
    assert table["score"].tolist() == ExpressionError(X[kept], Y[kept])(table["expression"].tolist()).tolist()
    # The page reads the points again, with their commas.
    assert "its curve and the points" in Path("out/report.html").read_text()
    write("points.csv", "x;y\n1,5;2.5\n2,5;3.5\n")
    assert expressions("--decimal-comma", data="points.csv", out="other") == 2
    assert "has a point, but commas are decimal in this table" in capsys.readouterr().err
    write("huge.csv", "x,y\n1,1e308\n2,-1e308\n3,4\n")
    assert expressions(data="huge.csv", out="other") == 2
    assert "column 'y' has values up to 1e+308, whose squares are larger than any number" in capsys.readouterr().err


@pytest.mark.slow
def test_fitted_formulas_are_drawn_and_names_are_escaped() -> None:
    rows = "".join(f"{x!r},{y!r}\n" for x, y in zip(X.tolist(), Y.tolist(), strict=True))
    write("odd.csv", "<b>x</b>,<img src=x>\n" + rows)
    assert expressions("--constants", data="odd.csv") == 0
    page = Path("out/report.html").read_text()
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page
    assert "its curve and the points" in page
    table = pd.read_csv("out/expressions.csv")
    assert table["fitted"].iloc[0] in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--x", "T [K],dose"], "line 9, column 'rate': the cell is empty"),
        (["--x", "T [K],rate"], "cannot be both x and y"),
        (["--x", "dose", "--holdout", "1.5", "--skip-missing"], "the share of the rows to hold out is 1.5"),
        (["--x", "dose", "--holdout", "0.01", "--skip-missing"], "leaves 23 to fit and 0 to judge by"),
        (["--x", "dose", "--constants", "--grammar", "mine.cfg", "--skip-missing"], "has no terminal 'c'"),
        (["--x", "dose,T [K]", "--grammar", "mine.cfg", "--skip-missing"], "not formulas in dose, T_K"),
        (["--x", "dose,T [K]", "--grammar", "smiles", "--skip-missing"], "no rule that produces a 'x' alone"),
        (["--x", "dose,a b,a_b", "--skip-missing"], "would call both column 'a b' and column 'a_b' a_b"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "run,T [K],dose,a b,a_b,rate",
        *(f"r{i},{i},{i * i % 7},1,{i},{'' if i == 7 else 3 * i}" for i in range(24)),
    ]
    write("rates.csv", "\n".join(lines))
    write("mine.cfg", "S -> S '+' T | T\nT -> 'x' | '1' | '2'\n")
    assert expressions(*arguments, "--y", "rate", data="rates.csv") == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("seqopt:") == 1
    assert not Path("out").exists()
