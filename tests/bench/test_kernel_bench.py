"""The speed benchmark measures every case and writes what it measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from seqopt.bench import kernel


def test_every_case_is_measured():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("CNO"), size=8)) for _ in range(1120)]
    rows = kernel.measure(strings, order=3, threads=[1, 2], rounds=2, seed=1)
    assert len(rows) == len(kernel.cases([1, 2])) == 3 * 2 * 2 * 2 + 4
    pairs = {(row["engine"], row["shape"]): row["pairs"] for row in rows}
    assert pairs == {
        ("cpu", "pool"): 1120,
        ("cpu", "train"): 120_000,
        ("cpu", "square"): 500 * 501 // 2,
        ("reference", "train"): kernel.SLOW_STRINGS**2,
    }
    for row in rows:
        assert len(row["seconds"]) == len(row["processor_seconds"]) == 2
        assert row["pairs_per_second"] == pytest.approx(row["pairs"] / np.median(row["seconds"]))


def test_the_record_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kernel, "load_zinc250k", lambda: ["CCO", "c1ccccc1"] * 600)
    document = tmp_path / "performance.md"
    options = ["--rounds", "1", "--order", "3", "--threads", "1", "--document", str(document)]
    kernel.main(["--out", str(tmp_path / "new" / "kernel.json"), *options])
    assert "| cpu | square | float32 | yes | 1 |" in document.read_text(encoding="utf-8")
    written = json.loads((tmp_path / "new" / "kernel.json").read_text(encoding="utf-8"))
    assert written["record"]["command"].startswith("seqopt bench kernel --out")
    assert {row["engine"] for row in written["rows"]} == {"cpu", "reference"}
    assert "million pairs/s" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        kernel.main(["--strings", "10"])
