"""The benchmark of pools on disk: what is measured once is not measured again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seqopt.bench.pool import files_of, main


def test_files_that_are_gone_are_written_again_and_their_row_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command[command.index("--child") + 1])
        line = json.dumps({"seconds": 1.0, "bytes": 7, "peak_mb": 1.0, "worker_peak_mb": 0.0, "processor": 1.0})
        return subprocess.CompletedProcess(command, 0, stdout=line + "\n")

    rows = tmp_path / "pool.jsonl"
    options = ["--size", "10", "--steps", "write", "--folder", str(tmp_path), "--out", str(rows)]
    main(options, run)
    files_of(tmp_path, 10, 0).mkdir()
    main(options, run)
    assert asked == ["write"]
    assert "write: measured already" in capsys.readouterr().out
    files_of(tmp_path, 10, 0).rmdir()
    main(options, run)
    assert asked == ["write", "write"]
    assert len(rows.read_text().splitlines()) == 1
