"""Pages of searches with features and a prior mean show their own model, not the usual one."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from seqopt import maximize
from seqopt.models import ColumnMean, Features, SurrogatePlan
from seqopt.report.analysis import analyse
from seqopt.report.results import read_run
from seqopt.report.samples import Candidates
from seqopt.spaces import CandidateSet

STRINGS = ["".join(symbols) for symbols in itertools.product("AB", repeat=5)]


def test_the_model_of_a_page_has_features_and_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {string: float(string.count("AB")) for string in STRINGS}
    np.savez(tmp_path / "f.npz", strings=np.array(STRINGS), embedding=np.array(list(values.values()))[:, None])
    guess = {string: value + 0.2 * (string[0] == "A") for string, value in values.items()}
    plan = SurrogatePlan("ngrams", features=Features(tmp_path / "f.npz"), mean=ColumnMean(guess, "guess"))
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    maximize(
        lambda string: values[string],
        CandidateSet(STRINGS, kind="text"),
        surrogate=plan,
        initial=8,
        budget=4,
        batch_size=4,
        run_folder=tmp_path / "run",
    )
    found = analyse(read_run(tmp_path / "run"), "text", Candidates())
    assert "cannot be rebuilt" not in found.how
    assert re.search(r"Prior mean: results are 0\.\d+ standard deviations better where guess is one higher", found.how)
    np.savez(tmp_path / "f.npz", strings=np.array(STRINGS), embedding=np.zeros((32, 1)))
    assert "cannot be rebuilt" in analyse(read_run(tmp_path / "run"), "text", Candidates()).how
