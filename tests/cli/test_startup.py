"""What commands load: those that are typed often must be quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seqopt.campaign import CampaignStore, NewMeasurement, NewSnapshot, NewSuggestion, Settings

MODELS = {"torch", "gpytorch", "botorch", "scipy", "sklearn", "pandas", "pyarrow", "numba", "plotly", "nltk"}
"""Packages that take a tenth of a second or more to load."""

CODE = """
import json, sys
from seqopt.cli import main
status = main(sys.argv[1:])
print()
print(json.dumps([status, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign of molecules whose library is not even there: it is not needed."""
    path = tmp_path / "a.seqopt"
    pool = {"path": str(tmp_path / "away.csv"), "column": "smiles", "kind": "molecule", "standardize": False}
    settings = Settings("activity", pool=pool | {"size": 3, "keys_sha256": ""}, space={"type": "pool"})
    with CampaignStore.create(path, settings) as store:
        with store.transaction("suggest", {}, expected_state=store.state) as change:
            summary = {"r2": 0.5, "within_90": 0.9, "parameters": {}}
            snapshot = change.add_snapshot(NewSnapshot("StringGP", 2, summary, {}))
            change.add_suggestions([NewSuggestion("CCO", "CCO"), NewSuggestion("CCN", "CCN")], snapshot=snapshot)
        with store.transaction("record", {}) as change:
            change.add_measurements([NewMeasurement("CCO", "CCO", 1.0)])
    return path


def loaded(campaign: Path, *command: str) -> set[str]:
    """Packages that a command for a campaign loads."""
    status, packages, said = ran("campaign", *command, "--campaign", str(campaign))
    assert status == 0, said
    return packages


def ran(*command: str) -> tuple[int, set[str], str]:
    """How a command ended, the packages that it loaded, and what it said."""
    line = [sys.executable, "-c", CODE, *command]
    done = subprocess.run(line, check=True, capture_output=True, encoding="utf-8")
    status, packages = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    return status, set(packages), done.stdout + done.stderr


@pytest.mark.parametrize("command", [["status"], ["history"]])
def test_a_look_at_a_campaign_loads_no_model_and_no_chemistry(campaign: Path, command: list[str]) -> None:
    assert not loaded(campaign, *command) & (MODELS | {"rdkit"})


def test_recording_loads_chemistry_only_and_reads_no_library(campaign: Path, tmp_path: Path) -> None:
    assert not loaded(campaign, "record", "B01-02", "2.5") & (MODELS | {"rdkit"})
    assert not loaded(campaign, "record", "OCCC", "2.5") & MODELS
    table = tmp_path / "results.csv"
    table.write_text("smiles,activity\nCCCCO,1.5\nCCCCN,2.5\n")
    assert not loaded(campaign, "record", str(table)) & MODELS
    with CampaignStore.open(campaign) as store:
        assert store.counts().values == 5


def test_a_search_that_cannot_begin_is_refused_before_models_are_loaded(tmp_path: Path) -> None:
    status, packages, said = ran("search", "--lead", "CCO", "--radius", "0.5", "-o", "qed")
    assert (status, "say what to search" in said) == (2, True)
    assert not packages & (MODELS | {"rdkit"})
    pool, taken = tmp_path / "pool.csv", tmp_path / "taken"
    pool.write_text("smiles\nCCO\nCCN\n")
    taken.mkdir()
    (taken / "evaluations.csv").write_text("string,value\n")
    status, packages, said = ran("search", str(pool), "-o", "qed", "--out", str(taken))
    assert (status, "which a run would overwrite" in said) == (2, True)
    assert not packages & {"torch", "gpytorch", "botorch", "pandas", "rdkit"}
