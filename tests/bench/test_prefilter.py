"""What a prefilter loses, measured on a few molecules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqopt.bench import prefilter


def test_shares_and_searches_of_few_molecules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.jsonl"
    sizes = ["--size", "300", "--keep", "20", "300", "--search-keep", "60", "--known", "30", "--batch", "5"]
    arguments = [*sizes, "--batches", "2", "--seeds", "1", "--out", str(out)]
    prefilter.main(arguments)
    runs = [json.loads(line) for line in out.read_text().splitlines()]
    by_job = {(run["job"]["what"], run["job"].get("prefilter")): run for run in runs}
    assert len(by_job) == len(runs) == 4
    for one in by_job["shares", None]["result"]:
        assert 0.0 <= one["survives"] <= 1.0
        # A shortlist of all loses nobody.
        if one["keep"] == 300:
            assert one["survives"] == one["chosen"] == 1.0
    for by in ("none", *prefilter.PREFILTERS):
        run = by_job["searches", by]
        regrets = run["result"]["regrets"]
        assert len(regrets) == 3
        assert regrets == sorted(regrets, reverse=True)
        assert regrets[0] == by_job["searches", "none"]["result"]["regrets"][0]
        assert regrets[-1] == run["result"]["regret"] >= 0.0
        assert run["record"]["versions"]["seqopt"]
    said = capsys.readouterr().out
    assert "regret after 20 | regret after 25 | regret after 30" in said
    before = out.read_bytes()
    prefilter.main(arguments)
    assert out.read_bytes() == before


def test_regrets_are_means_with_standard_errors() -> None:
    job = {"what": "searches", "size": 1000, "keep": 50, "batches": 1, "batch": 10, "prefilter": "mean"}
    runs = [
        {"job": {**job, "seed": seed}, "result": {"best": 1.0, "regret": end, "regrets": [start, end]}}
        for seed, start, end in ((0, 2.0, 1.0), (1, 4.0, 2.0))
    ]
    lines = prefilter.table(runs).splitlines()
    assert lines[-1] == "| 1,000 | mean | 50 | 3.00 ± 1.00 | 1.50 ± 0.50 | 2 |"
    assert lines[-3] == "| pool | prefilter | keep | regret after 20 | regret after 30 | seeds |"
    # Runs of other budgets have a table of their own, in whatever order they were done.
    longer = {"job": {**job, "batches": 2}, "result": {"best": 1.0, "regret": 0.0, "regrets": [2.0, 1.0, 0.0]}}
    both = prefilter.table([runs[0], longer, runs[1]]).splitlines()
    assert both[: len(lines)] == lines
    assert both[-1] == "| 1,000 | mean | 50 | 2.00 | 1.00 | 0.00 | 1 |"
