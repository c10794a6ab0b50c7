"""Times of Thompson sampling, on a few molecules."""

from __future__ import annotations

import json

import pytest

from seqopt.bench.thompson import main


@pytest.mark.slow
def test_times_are_measured_and_written(tmp_path) -> None:
    document = tmp_path / "results.md"
    options = ["--results", str(tmp_path / "t.json"), "--document", str(document)]
    main(["--candidates", "400", "--methods", "functions", *options])
    (run,) = json.loads((tmp_path / "t.json").read_text())["runs"]
    assert len(run["seconds"]) == 3
    assert run["candidates"] == 400
    assert "| whole functions of a linear model, at all candidates | 400 |" in document.read_text()
