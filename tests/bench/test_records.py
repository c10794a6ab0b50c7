"""Files of runs: what is there is kept, processes do not mix their lines, and a crash costs one run."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from seqopt.bench.records import append_record, read_records
from seqopt.errors import InputError

FIELDS = ("job",)


def run(seed: int, value: float = 0.1) -> dict[str, object]:
    return {"job": {"method": "a", "seed": seed}, "values": [value, -1 / 3, 1e-300, None]}


def test_runs_come_back_exactly_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.jsonl"
    assert read_records(path, FIELDS) == []
    assert all(append_record(path, run(seed, 0.1 + 0.2), FIELDS) for seed in (3, 1, 2))
    assert read_records(path, FIELDS) == [run(3, 0.1 + 0.2), run(1, 0.1 + 0.2), run(2, 0.1 + 0.2)]
    table = pd.read_json(path, lines=True)
    assert [job["seed"] for job in table["job"]] == [3, 1, 2]


def test_a_run_that_is_there_is_kept_unless_it_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert append_record(path, run(1, 5.0), FIELDS)
    assert not append_record(path, run(1, 6.0), FIELDS)
    assert read_records(path, FIELDS) == [run(1, 5.0)]
    assert append_record(path, run(1, 7.0), FIELDS, again=True)
    assert read_records(path, FIELDS) == [run(1, 7.0)]


@pytest.mark.parametrize("left", [b'{"job": {"meth', json.dumps(run(9)).encode()])
def test_what_a_crash_left_of_a_line_does_not_count_and_is_cut_off(
    tmp_path: Path, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    append_record(path, run(1), FIELDS)
    whole = path.read_bytes()
    path.write_bytes(whole + left)
    with caplog.at_level(logging.WARNING, "seqopt"):
        assert read_records(path, FIELDS) == [run(1)]
    assert "a.jsonl is incomplete" in caplog.text
    assert path.read_bytes() == whole + left  # who only reads changes nothing
    append_record(path, run(2), FIELDS)
    assert path.read_bytes().startswith(whole)
    assert read_records(path, FIELDS) == [run(1), run(2)]


@pytest.mark.parametrize("broken", ['{"job": ', "[1, 2]", ""])
def test_another_broken_line_is_named(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(run(1))}\n{broken}\n{json.dumps(run(2))}\n")
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: expected a run"):
        read_records(path, FIELDS)
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 2"):
        append_record(path, run(3), FIELDS)
    assert path.read_bytes() == before


APPEND = """
import sys
from pathlib import Path
from seqopt.bench.records import append_record

for seed in range(8):
    run = {"job": {"writer": int(sys.argv[2]), "seed": seed}, "values": [seed] * 2000}
    append_record(Path(sys.argv[1]), run, ["job"])
    append_record(Path(sys.argv[1]), run | {"job": {"writer": "both", "seed": seed}}, ["job"])
"""


def test_processes_that_append_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, str(path), str(number)]) for number in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["values"] == [line["job"]["seed"]] * 2000 for line in lines)
    # Each run once, those that both wanted to append included.
    assert sorted((str(line["job"]["writer"]), line["job"]["seed"]) for line in lines) == sorted(
        (writer, seed) for writer in ("0", "1", "both") for seed in range(8)
    )
