"""The benchmark of a large campaign, on a small one."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seqopt.bench.campaign import Bench, Timing, fill_in, table
from seqopt.errors import SeqoptError

FACTS = {
    "candidates": 3000,
    "measurements": 100,
    "seed": 0,
    "machine": {"processor": "chip", "vector_bits": 256, "cores": 2, "platform": "Linux"},
    "versions": {"seqopt": "1"},
    "cache_bytes": 5_000_000,
}


@pytest.mark.slow
def test_commands_run_in_their_own_process_and_failures_are_told(tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_text("text\nab\nba\nbb\naa\nabb\n")
    said: list[Timing] = []
    bench = Bench(tmp_path, tmp_path / "cache", said.append)
    new = ["new", "auto", "--pool", "pool.csv", "--objective-name", "value", "--kind", "text", "--batch", "2"]
    bench.run("begin", "auto", new)
    timing = bench.run("status", "auto", ["status"], ["status"])
    assert said == bench.timings
    assert len(timing.seconds) == len(timing.processor) == 2
    assert min(timing.processor) > 0
    # Of the command, not of this process.
    assert 10 < timing.memory < 150
    with pytest.raises(SeqoptError, match="B99-99"):
        bench.run("withdraw", "auto", ["withdraw", "B99-99"])


def test_a_batch_is_filled_in_as_a_laboratory_would(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text("identifier,smiles,penalized_logp,price\nB01-01,CCO,,3\nB01-02,CCN,,4\n")
    assert fill_in(path, {"CCN": 2.5, "CCO": -1.0}) == [("B01-01", -1.0), ("B01-02", 2.5)]
    with path.open(newline="") as stream:
        assert [row["penalized_logp"] for row in csv.DictReader(stream)] == ["-1.0", "2.5"]


def test_the_table_says_what_was_missed() -> None:
    timings = [
        Timing("status", "status", "auto", (1.0, 9.0, 1.5), (0.5, 0.5, 0.6), 60.0),
        Timing("suggest -n 10", "suggest 10", "ssk", (91.0,), (170.0,), 1400.0),
        Timing("import history.csv", "import", "ssk", (3.0,), (3.0,), 100.0),
    ]
    lines = table(timings, {"auto": 1_500_000}, FACTS).splitlines()
    assert "| auto | status (median of 3) | 1.50 | 2 | yes | 0.50 | 60 MB |" in lines
    assert "| ssk | suggest 10 | 91.00 | 90 | no | 170.00 | 1,400 MB |" in lines
    assert "| ssk | import | 3.00 |  |  | 3.00 | 100 MB |" in lines
    assert "1.50 MB (auto)" in lines[-1]
