"""``seqopt search`` with cheap and expensive measurements."""

import itertools
import json
from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main
from seqopt.strategies import fidelity

STRINGS = ["".join(symbols) for symbols in itertools.product("AB", repeat=6)]
SCORING = "def dock(string: str) -> float:\n    return string.count('AB') + 0.25\n"


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder; the model's kernel is fitted once, from one start, and no page is written."""
    usual = fidelity.default_contexts

    def quick(*arguments, **options):
        gp = usual(*arguments, **options)
        gp.restarts, gp.refit_growth = 1, 100.0
        return gp

    monkeypatch.setattr(fidelity, "default_contexts", quick)
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{s},{s.count('AB') + 0.25 if i % 3 else ''},{2 if i else ''},{s.count('AB')}" for i, s in enumerate(STRINGS)
    ]
    Path("pool.csv").write_text("\n".join(["sequence,docking,flat,assay", *rows]))
    Path("scoring.py").write_text(SCORING)


def search(*arguments: str, out: str = "out") -> int:
    usual = ["pool.csv", "--kind", "text", "-o", "column:assay", "--initial", "6", "--batch", "3", "--out", out]
    return main(["search", *usual, *arguments])


def table(folder: str = "out") -> pd.DataFrame:
    return pd.read_csv(Path(folder) / "evaluations.csv")


@pytest.mark.slow
def test_columns_of_known_results_as_fidelities(capsys: pytest.CaptureFixture[str]) -> None:
    assert search("--fidelity", "column:docking:0.05", "--budget-cost", "6") == 0
    frame = table()
    assert set(frame["fidelity"]) == {"assay", "docking"}
    assert (frame["status"] == "ok").all()
    lacking = {s for i, s in enumerate(STRINGS) if i % 3 == 0}
    assert not lacking & set(frame.loc[frame["fidelity"] == "docking", "string"])
    assert 5 < frame["cost"].sum() <= 6
    summary = json.loads(Path("out", "summary.json").read_text())
    assert summary["settings"]["budget_cost"] == 6
    assert summary["settings"]["fidelities"] == {"docking": "column:docking"}
    assert sum(one["cost"] for one in summary["costs"]) == pytest.approx(frame["cost"].sum())
    assert summary["best"]["value"] == frame.loc[frame["fidelity"] == "assay", "value"].max()
    said = capsys.readouterr().out
    assert "cost" in said
    assert "by docking" in said
    # Progress shows what had been spent after each step.
    assert f" {summary['steps'][-1]['cost']:,.5g} " in said


@pytest.mark.slow
def test_an_interrupted_run_resumes_exactly() -> None:
    arguments = ["--fidelity", "column:docking:0.05"]
    assert search(*arguments, "--budget", "6", out="whole") == 0
    assert search(*arguments, "--budget", "3", out="part") == 0
    assert search(*arguments, "--budget", "6", "--resume", out="part") == 0
    columns = ["string", "fidelity", "value", "batch", "cost"]
    assert table("part")[columns].equals(table("whole")[columns])


def test_functions_as_fidelities_in_a_process_of_their_own() -> None:
    assert search("--fidelity", "scoring.py:dock:0.05", "--budget", "0", "--acquisition", "mumbo") == 0
    frame = table()
    assert frame.loc[frame["fidelity"] == "dock", "value"].tolist() == [
        string.count("AB") + 0.25 for string in frame.loc[frame["fidelity"] == "dock", "string"]
    ]


def test_a_constant_column_works_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert search("--fidelity", "column:flat:0.1", "--budget", "3") == 0
    assert "holds 2 throughout: flat tells nothing" in caplog.text
    assert "1 of 64 candidates have no number in column 'flat'" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fidelity", "column:docking:0"], "cost of docking is 0"),
        (["--fidelity", "column:docking:-1"], "cost of docking is -1"),
        (["--fidelity", "column:dockin:0.1"], "Did you mean 'docking'"),
        (["--fidelity", "column:docking"], "is incomplete"),
        (["--fidelity", "column:docking:0.1", "--fidelity", "column:docking:0.2"], "is given twice"),
        (["--fidelity", "column:assay:0.1"], "is the target, too"),
        (["--fidelity", "scoring.py:nothing:0.1"], "has no function 'nothing'"),
        (["--fidelity", "column:docking:0.1", "--budget-cost", "0.5"], "one measurement of the target costs 1"),
        (["--fidelity", "column:docking:0.1", "--budget-cost", "1.5"], "more than the budget of 1.5"),
        (["--fidelity", "column:docking:0.1", "--target-cost", "0"], "cost of assay is 0"),
        (["--fidelity", "column:docking:0.1", "--surrogate", "sssk"], "sssk"),
        (["--fidelity", "column:docking:0.1", "--acquisition", "logei"], "logei"),
        (["--budget-cost", "5"], "needs several ways to measure"),
        (["--target-cost", "5"], "goes with --fidelity"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(*arguments) != 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("out").exists()
