"""The commands of a campaign in which strings are measured in several ways."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from seqopt.campaign import Campaign
from seqopt.cli import main
from seqopt.data import Contexts, Outcome
from seqopt.report.campaigns import read_campaign
from seqopt.spaces import StringSpace
from seqopt.strategies import MultiFidelity

LEVELS = Contexts.of_levels("fidelity", {"docking": 0.05, "assay": 1.0}, target="assay")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "a.seqopt"
    solubility = Outcome("solubility", role="constraint", bound=2.0)
    Campaign.create(
        path,
        StringSpace("AB", 8),
        objective="y",
        batch_size=3,
        strategy=MultiFidelity(),
        contexts=LEVELS,
        constraints=[solubility],
        initial_contexts="target",
    ).close()
    return path


def test_commands_show_and_take_how_strings_are_measured(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        assert main(["campaign", *arguments]) == status
        said = capsys.readouterr()
        return " ".join((said.out + said.err).split())

    shown = run("suggest", "--out", "batch.csv")
    assert "fidelity" in shown
    assert "assay" in shown
    assert file.with_name("batch.csv").read_text().splitlines()[0].split(",")[:3] == [
        "identifier",
        "string",
        "fidelity",
    ]
    assert "recorded B01-01 (fidelity assay): 1.5, solubility=3.5" in run(
        "record", "B01-01", "1.5", "--also", "solubility=3.5"
    )
    run("record", "B01-02", "--also", "solubility=0.5")
    said = run("record", "AAAABBBB", "0.25", "--context", "fidelity=docking", "--cost", "7")
    assert "recorded AAAABBBB (fidelity docking): 0.25, for 7" in said
    said = run("record", "ABABABAB", "0.5", "--context", "fidelity=guess", status=2)
    assert "'guess' is not a fidelity of this search: expected one of docking, assay" in said
    said = run("record", "ABABABAB", "0.5", "--context", "docking", status=2)
    assert "'docking' is not a name and a value" in said
    said = run("record", "ABABABAB", "0.5", "--also", "ki=1", status=2)
    assert "'ki' is not measured besides 'y' in this campaign: it has 'solubility'" in said
    assert "best: " in run("status")
    assert "fidelity" in run("report")
    run("export", "all.csv")
    header, *rows = file.with_name("all.csv").read_text().splitlines()
    assert header.startswith("identifier,string,fidelity,cost,y,standard_error,solubility,failure")
    assert len(rows) == 3
    run("undo")
    with Campaign.open(file) as campaign:
        values = [(row.value, row.further, row.context) for row in campaign.store.measurements()]
    assert values == [(1.5, {"solubility": 3.5}, LEVELS.target), (None, {"solubility": 0.5}, LEVELS.target)]


def test_a_report_shows_what_can_be_compared(file: Path) -> None:
    with Campaign.open(file) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, 1.0)
        campaign.record("AAAABBBB", 99.0, context={"fidelity": "docking"})
    run_ = read_campaign(file)
    assert run_.evaluations["value"].tolist() == [1.0, 1.0, 1.0]
    assert any("Shown is what was measured with fidelity assay; 1 measurements" in text for text in run_.remarks)


def test_slips_of_costs_budgets_and_files_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        assert main(["campaign", *arguments]) == status
        said = capsys.readouterr()
        return " ".join((said.out + said.err).split())

    run("record", "AAAABBBB", "1.5", "--context", "fidelity=assay")
    said = run("correct", "AAAABBBB", "1.5", "--cost", "0,01", status=2)
    assert "--cost is '0,01'; expected what the measurement has cost, a number (write 0.01, not 0,01)" in said
    assert "a number (write 0.5, not 0,5)" in run("record", "ABABABAB", "1", "--cost", "0,5", status=2)
    run("record", "ABABABAB", "1.25", "--context", "fidelity=assay", "--cost", "0.5")
    said = run("set", "--budget-cost", "1.2")
    assert "the budget is less than what was spent: nothing more is suggested until it is raised" in said
    assert "less than" not in run("set", "--budget-cost", "9")
    rows = [f"{number:08b}".replace("0", "A").replace("1", "B") + f",{number}.5" for number in range(101, 161)]
    file.with_name("old.csv").write_text("\n".join(["string,y", *rows]) + "\n")
    run("import", "old.csv")
    said = run("import", "old.csv", status=2)
    assert said.count("has a result already") == 20
    assert "and 40 others" in said


def test_a_batch_is_written_before_it_is_printed(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("seqopt.cli.campaign.suggesting.print_batch", broken)
    with contextlib.suppress(BrokenPipeError, SystemExit):
        main(["campaign", "suggest", "--out", "batch.csv"])
    assert len(file.with_name("batch.csv").read_text().splitlines()) == 4


def test_controls_may_be_identifiers_of_the_pool(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.with_name("pool.csv").write_text("sequence,id\nAAAA,K-1\nAAAB,K-2\nABBB,K-3\nBBBB,K-4\n")
    command = ["campaign", "new", "wells", "--pool", "pool.csv", "--kind", "text", "--objective-name", "y"]
    assert main([*command, "--plates", "--batch", "2", "--controls", "K-2,BABA"]) == 0
    assert "on each: K-2, BABA" in capsys.readouterr().out
