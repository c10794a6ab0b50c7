"""The benchmark of hit confirmation on plates: what is simulated, and the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench import confirmplates as bench
from seqopt.bench.confirmplates import DESIGNS, HITS, ORDER, WELLS, Job, confirm, setup_of, tables, work
from seqopt.bench.records import append_record
from seqopt.strategies.arms import RULES, ArmPosterior

pytestmark = pytest.mark.usefixtures("own_process")

RECORD = {
    "command": "seqopt bench confirmplates",
    "versions": {"seqopt": "1.0", "python": "3.11", "numpy": "2.0"},
    "machine": {"processor": "Xeon", "cores": 2, "platform": "Linux"},
}


def run(design: str, block: int, **wrong: str) -> dict[str, Any]:
    answers = dict.fromkeys(ORDER, "0000") | wrong
    return {"job": {"design": design, "block": block}, "wrong": answers, "record": RECORD}


@pytest.mark.parametrize("name", DESIGNS)
def test_each_design_is_run_by_all_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BLOCK", 3)
    found = work(Job(name, 0))
    assert set(found["wrong"]) == set(found["regret"]) == set(RULES)
    for rule, answers in found["wrong"].items():
        assert len(answers) == 3
        assert set(answers) <= {"0", "1"}
        assert ("1" in answers) == (found["regret"][rule] > 0)
    again = work(Job(name, 0))
    assert again["wrong"] == found["wrong"]


def test_an_answer_is_wrong_if_another_hit_is_truly_better() -> None:
    """Measured all but exactly, the best hit is named, and costs nothing."""
    setup = setup_of(DESIGNS["no-plates"], 0, 40)
    exact = ArmPosterior.of(setup.posterior.mean, setup.posterior.covariance, 1e-8)
    sure = confirm(DESIGNS["no-plates"], replace(setup, posterior=exact, noise=0.0 * setup.noise), "equal", rng())
    assert (sure == 0.0).all()
    usual = confirm(DESIGNS["no-plates"], setup, "equal", rng())
    assert usual.min() == 0.0
    assert usual.max() > 0.0


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_posterior_describes_what_is_simulated(name: str) -> None:
    design = DESIGNS[name]
    setup = setup_of(design, 0, 2000)
    assert WELLS % design.wells == 0
    assert setup.truth.shape == (2000, HITS + design.controls)
    assert len(setup.shifts) == WELLS // design.wells
    # Contrasts, since the level of all is one draw for each simulation.
    error = setup.truth - setup.posterior.mean
    covariance = setup.posterior.covariance[0]
    contrast = np.zeros(HITS + design.controls)
    contrast[[0, HITS - 1]] = 1.0, -1.0
    expected = float(contrast @ covariance @ contrast)
    assert np.var(error @ contrast) == pytest.approx(expected, rel=0.15)
    assert np.var(error[:, 0]) == pytest.approx(covariance[0, 0], rel=0.15)
    assert setup.shifts.std() == pytest.approx(np.hypot(design.offset, design.effects), rel=0.05, abs=1e-12)


def test_designs_share_hits_and_offsets() -> None:
    one, other = (setup_of(DESIGNS[name], 3, 4) for name in ("controls", "bare"))
    assert (one.truth[:, :HITS] == other.truth).all()
    assert (one.noise[:, :HITS] == other.noise).all()
    assert (one.shifts[:, :, :HITS] == other.shifts).all()
    assert (setup_of(DESIGNS["bare"], 4, 4).truth != other.truth).all()


def test_an_offset_is_that_of_the_plate() -> None:
    """It changes no answer where all hits are on each plate once."""
    design = DESIGNS["bare"]
    setup = setup_of(design, 0, 50)
    shifted = replace(setup, shifts=setup.shifts + np.array([0.0, 1.0, -2.0, 0.5])[:, None, None])
    regret = [confirm(design, one, "equal", np.random.default_rng(0)) for one in (setup, shifted)]
    assert (regret[0] == regret[1]).all()


def test_runs_are_read_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, document = tmp_path / "runs.jsonl", tmp_path / "results.md"
    # The later block comes first: pairs are of one block.
    append_record(results, run("bare", 1, equal="0011"), ["job"])
    append_record(results, run("bare", 0, equal="1000", ugap="1000"), ["job"])
    bench.main(["--report-only", "--results", str(results), "--document", str(document)])
    text = document.read_text(encoding="utf-8")
    assert text.startswith("<!-- begin confirmplates -->")
    assert text.split("\n", 1)[1].rsplit("\n", 2)[0].strip() == capsys.readouterr().out.strip()
    assert "| wrong in % | 15 wells (of 8) |" in text
    assert "| `equal` | 37.5 ± 17.1 |" in text
    assert "| `ugap` | 12.5 ± 11.7 |" in text
    assert "| `ugap` | -25.0 ± 16.4 |" in text
    assert text.count("| `equal` |") == 1
    assert "Measured by `seqopt bench confirmplates` on Xeon" in text


def test_without_runs_there_is_no_table() -> None:
    assert tables([]) == "No run is stored."
