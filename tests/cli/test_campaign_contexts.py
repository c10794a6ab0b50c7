"""The commands of a campaign in which strings are measured in several ways."""

from __future__ import annotations

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
