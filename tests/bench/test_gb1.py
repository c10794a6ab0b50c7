"""The benchmark of directed evolution: its protocol and its table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import gb1
from seqopt.bench.gb1 import LIBRARIES, Job, among_the_best, best_so_far, main, read_runs, space_of, table, work
from seqopt.bench.records import append_record
from seqopt.kernels import SitesKernel
from seqopt.models import StringGP, default_surrogate, registry
from seqopt.spaces import CandidateSet

VARIANTS = ["".join(pair) for pair in itertools.product("ACDEFGHIKLMNPQRSTVWY", repeat=2)]
FITNESS = np.array([2.0 + (one in "ILVM") + (other in "DE") - 0.5 * (one == "P") for one, other in VARIANTS])
FITNESS[VARIANTS.index("VD")] = 5.0


@pytest.fixture(autouse=True)
def small_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    small = replace(LIBRARIES["gb1"], load=lambda: (VARIANTS, FITNESS), plate=12)
    monkeypatch.setattr(gb1, "LIBRARIES", {**LIBRARIES, "gb1": small})
    gb1.space_of.cache_clear()
    monkeypatch.setattr(registry, "SITES_POOL", 300)
    yield
    gb1.space_of.cache_clear()


def test_what_counts_is_the_best_so_far_in_units_of_the_best() -> None:
    indices = [VARIANTS.index(string) for string in ["AA"] * 12 + ["AD", *["AA"] * 11, "VD", *["AA"] * 11]]
    assert best_so_far({"indices": indices}, FITNESS, 12).tolist() == [0.4, 0.6, 1.0]


def test_the_best_hundredth_is_counted_with_its_ties() -> None:
    # The four best are VD and three of the seven with 4.0, all of which count.
    tied = [VARIANTS.index(string) for string in ("VD", "VE", "ID", "AA")]
    assert among_the_best({"indices": tied}, FITNESS) == 3
    assert among_the_best({"indices": list(range(len(FITNESS)))}, FITNESS) == 8


def test_a_run_has_a_random_plate_and_four_chosen_ones(tmp_path: Path) -> None:
    runs = {name: work(Job(name, 1)) for name in ("auto-gibbon", "random")}
    for name, run in runs.items():
        assert len(set(run["indices"])) == 60
        assert len(run["suggest_seconds"]) == 5
        append_record(tmp_path / f"{name}.jsonl", run, ["job"])
    assert runs["auto-gibbon"]["indices"][:12] == runs["random"]["indices"][:12]
    reached = {name: best_so_far(run, FITNESS, 12)[-1] for name, run in runs.items()}
    assert reached["auto-gibbon"] >= reached["random"]
    text = table("gb1", read_runs(tmp_path))
    assert f"{reached['auto-gibbon']:.3f}" in text.splitlines()[2]
    assert f"| {among_the_best(runs['auto-gibbon'], FITNESS)}.0 |" in text.splitlines()[2]
    assert "| best of ALDE | 70 | | | | | 0.930 | | | |" in text


def test_the_variants_that_come_with_seqopt_are_searched_in_smaller_plates(tmp_path: Path) -> None:
    places = "--results", str(tmp_path / "runs"), "--document", str(tmp_path / "page.md")
    (tmp_path / "page.md").write_text("<!-- begin variants -->\n<!-- end variants -->\n")
    main(["--library", "variants", "--methods", "random", "--seeds", "2", "--jobs", "1", *places])
    runs = read_runs(tmp_path / "runs")["random"]
    assert [run["job"] for run in runs] == [{"method": "random", "seed": seed} for seed in range(2)]
    assert {len(set(run["indices"])) for run in runs} == {120}
    space, scores = space_of("variants")
    # What the line below the table says of the score.
    assert (len(space), int((scores > 0).sum())) == (3000, 178)
    text = (tmp_path / "page.md").read_text()
    assert "highest score after | runs | 24 | 48 | 72 | 96 | 120 | found the best | of the best 30 |" in text
    assert "the score is synthetic" in text
    assert "ALDE" not in text


def test_stored_runs_are_done_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append_record(tmp_path / "random.jsonl", work(Job("random", 0, "variants")), ["job"])
    (tmp_path / "page.md").write_text("<!-- begin variants -->\n<!-- end variants -->\n")
    places = "--results", str(tmp_path), "--document", str(tmp_path / "page.md")
    main(["--library", "variants", "--methods", "random", "--seeds", "1", *places])
    assert "1 of 1 runs are there already" in capsys.readouterr().out


def test_a_large_library_of_variants_is_compared_site_by_site() -> None:
    space = CandidateSet(["MKLL" + variant + "GG" for variant in VARIANTS], kind="protein")
    found = default_surrogate(space)
    assert isinstance(found, StringGP)
    assert isinstance(found.kernel, SitesKernel)
    assert found.kernel.sites == 2
    # Strings whose letters mean nothing to their neighbours are not.
    assert not isinstance(default_surrogate(CandidateSet(VARIANTS, kind="text")), StringGP)
