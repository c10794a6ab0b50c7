"""FASTA files and ranked tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seqopt.datasets.points import Points
from seqopt.errors import RunFolderError
from seqopt.objectives import ExpressionError
from seqopt.objectives.formulas import FormulaData
from seqopt.report.exports import write_best_genes, write_expressions, write_genes

MakeRun = Callable[..., Path]
GENES = ["ATGGCC", "ATGGCA", "ATGGCG", "ATGGCT"]


def rows(values: list[float | None]) -> list[dict[str, Any]]:
    return [
        {"string": gene, "value": value, "status": "ok" if value is not None else "failed", "batch": int(i > 1)}
        for i, (gene, value) in enumerate(zip(GENES, values, strict=True))
    ]


@pytest.mark.parametrize(
    ("direction", "order"), [("maximize", ["ATGGCG", "ATGGCA", "ATGGCC"]), ("minimize", ["ATGGCC", "ATGGCA", "ATGGCG"])]
)
def test_genes_are_ranked_by_the_direction_without_failures(
    direction: str, order: list[str], make_run: MakeRun
) -> None:
    folder = make_run(rows([1.25, 2.0, 3.0, None]), {"direction": direction, "objective": "mfe", "unit": "kcal/mol"})
    table = write_genes(folder, "my gene")
    assert table["gene"].tolist() == order
    pd.testing.assert_frame_equal(pd.read_csv(folder / "genes.csv"), table, check_dtype=False)
    text = (folder / "genes.fasta").read_text()
    assert text.count(">") == 3
    assert f">my_gene_{order.index('ATGGCC') + 1} rank={order.index('ATGGCC') + 1} mfe=1.25 kcal/mol\nATGGCC\n" in text


def test_genes_are_written_alike_however_they_were_given(make_run: MakeRun) -> None:
    folder = make_run([{"string": "auggcc", "key": "ATGGCC", "value": 2.0}, {"string": "ATGGCA", "value": 1.0}])
    assert write_genes(folder, "p")["gene"].tolist() == ["ATGGCC", "ATGGCA"]
    assert "auggcc" not in (folder / "genes.fasta").read_text() + (folder / "genes.csv").read_text()
    assert write_genes(folder, "p", rna=True)["gene"].tolist() == ["AUGGCC", "AUGGCA"]
    assert write_best_genes(folder, [("p", folder)])["gene"].tolist() == ["ATGGCC"]


def test_long_genes_are_wrapped(make_run: MakeRun) -> None:
    gene = "ATG" * 41
    folder = make_run([{"string": gene, "value": 1.0}])
    write_genes(folder, "long")
    lines = (folder / "genes.fasta").read_text().splitlines()
    assert [len(line) for line in lines[1:]] == [60, 60, 3]
    assert "".join(lines[1:]) == gene


def test_nothing_measured_gives_empty_files(make_run: MakeRun) -> None:
    folder = make_run(rows([None] * 4))
    assert len(write_genes(folder, "p")) == 0
    assert (folder / "genes.fasta").read_text() == ""
    assert len(pd.read_csv(folder / "genes.csv")) == 0


def test_the_best_of_several_runs(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(rows([1.25, 2.0, 3.0, None]), {"objective": "cai:e_coli"})
    found = write_best_genes(tmp_path, [("one", folder), ("none", tmp_path / "missing")])
    assert found[["protein", "gene", "value", "evaluated"]].to_numpy().tolist() == [["one", "ATGGCG", 3.0, 4]]
    assert (tmp_path / "best.fasta").read_text() == ">one cai:e_coli=3.0\nATGGCG\n"


def test_errors_of_formulas_are_those_of_the_points(make_run: MakeRun) -> None:
    x, y = [0.0, 1.0, 2.0], [1.0, 2.0, 5.0]
    formulas = ["x", "x*x+1", "1/x", "exp(exp(x))*3"]
    scores = ExpressionError(x, y)(formulas).tolist()
    folder = make_run(
        [{"string": formula, "value": score} for formula, score in zip(formulas, scores, strict=True)],
        {"direction": "minimize"},
    )
    table = write_expressions(folder, len)
    assert table["expression"].tolist() == ["x*x+1", "x", "1/x", "exp(exp(x))*3"]
    assert table["mse"].tolist()[:2] == [0.0, pytest.approx((1 + 1 + 9) / 3)]
    assert all(map(math.isnan, table["mse"].tolist()[2:]))  # infinite at 0, and far beyond 1,000
    assert table["terminals"].tolist() == [len(text) for text in table["expression"]]


def test_formulas_with_constants_are_judged_and_written_for_others(make_run: MakeRun) -> None:
    x = np.linspace(1, 4, 12)
    points = Points({"x [s]": x}, 2 * x + 1, "y")
    data = FormulaData.of(points, constant="c", holdout=0.25)
    formulas = ["c*x+c", "c", "c*x+c+c", "c*x", "log(0-x)"]
    scores = data.error(formulas).tolist()
    folder = make_run(
        [{"string": formula, "value": score} for formula, score in zip(formulas, scores, strict=True)],
        {"direction": "minimize"},
    )
    table = write_expressions(folder, len, data).set_index("expression")
    assert table.loc["c*x+c", "fitted"] == "2*x+1"
    assert table.loc["c*x+c", "spreadsheet"] == "2*[@[x '[s']]]+1"
    assert table.loc["c*x+c", "held_out_r2"] == pytest.approx(1)
    assert math.isnan(table.loc["log(0-x)", "mse"])
    # A longer formula that fits as well is not on the front, nor is one without an error.
    assert sorted(table[table["pareto"]].index, key=len) == ["c", "c*x", "c*x+c"]
    again = pd.read_csv(folder / "expressions.csv")
    assert again["latex"].tolist() == table["latex"].tolist()
    assert again["pareto"].tolist() == table["pareto"].tolist()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"evaluations\.csv is missing"):
        write_genes(tmp_path, "p")
