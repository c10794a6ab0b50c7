"""The benchmark of GB1: its protocol and its table."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import gb1
from seqopt.bench.gb1 import Job, best_so_far, read_runs, table, work
from seqopt.bench.records import append_record
from seqopt.kernels import SitesKernel
from seqopt.models import StringGP, default_surrogate, registry
from seqopt.spaces import CandidateSet

VARIANTS = ["".join(pair) for pair in itertools.product("ACDEFGHIKLMNPQRSTVWY", repeat=2)]
FITNESS = np.array([2.0 + (one in "ILVM") + (other in "DE") - 0.5 * (one == "P") for one, other in VARIANTS])
FITNESS[VARIANTS.index("VD")] = 5.0


@pytest.fixture(autouse=True)
def small_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gb1, "library", lambda: (CandidateSet(VARIANTS, kind="protein"), FITNESS))
    monkeypatch.setattr(gb1, "PLATE", 12)
    monkeypatch.setattr(registry, "SITES_POOL", 300)


def test_what_counts_is_the_best_so_far_in_units_of_the_best() -> None:
    indices = [VARIANTS.index(string) for string in ["AA"] * 12 + ["AD", *["AA"] * 11, "VD", *["AA"] * 11]]
    assert best_so_far({"indices": indices}, FITNESS).tolist() == [0.4, 0.6, 1.0]


def test_a_run_has_a_random_plate_and_four_chosen_ones(tmp_path: Path) -> None:
    runs = {name: work(Job(name, 1)) for name in ("auto-gibbon", "random")}
    for name, run in runs.items():
        assert len(set(run["indices"])) == 60
        assert len(run["suggest_seconds"]) == 5
        append_record(tmp_path / f"{name}.jsonl", run, ["job"])
    assert runs["auto-gibbon"]["indices"][:12] == runs["random"]["indices"][:12]
    reached = {name: best_so_far(run, FITNESS)[-1] for name, run in runs.items()}
    assert reached["auto-gibbon"] >= reached["random"]
    text = table(read_runs(tmp_path))
    assert f"{reached['auto-gibbon']:.3f}" in text.splitlines()[2]
    assert "| best of ALDE | 70 | | | | | 0.930 | | |" in text


def test_a_large_library_of_variants_is_compared_site_by_site() -> None:
    space = CandidateSet(["MKLL" + variant + "GG" for variant in VARIANTS], kind="protein")
    found = default_surrogate(space)
    assert isinstance(found, StringGP)
    assert isinstance(found.kernel, SitesKernel)
    assert found.kernel.sites == 2
    # Strings whose letters mean nothing to their neighbours are not.
    assert not isinstance(default_surrogate(CandidateSet(VARIANTS, kind="text")), StringGP)
