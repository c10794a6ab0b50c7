"""Synthetic run folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

SMILES = [
    "CCO",
    "c1ccccc1O",
    "CC(=O)Nc1ccc(O)cc1",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "C[C@H](N)C(=O)O",
    "O=C(O)c1ccccc1OC(C)=O",
    "FC(F)(F)c1ccc(Cl)cc1Br",
]

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write a run folder from rows and settings; further keywords go into the summary."""

    def make(rows: list[dict[str, Any]], settings: dict[str, Any] | None = None, **summary: Any) -> Path:
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        columns = "number string key status value batch predicted_mean predicted_std acquisition seconds error"
        filled = [
            {"number": i, "status": "ok", "batch": 0, "key": row["string"]} | row for i, row in enumerate(rows, start=1)
        ]
        frame = pd.DataFrame(filled, columns=columns.split())
        frame.to_csv(folder / "evaluations.csv", index=False)
        text = json.dumps({"status": "finished", "settings": settings or {}} | summary)
        (folder / "summary.json").write_text(text, encoding="utf-8")
        return folder

    return make


@pytest.fixture
def molecule_rows() -> list[dict[str, Any]]:
    """Three initial ones (the second fails) and batches of three and two with predictions."""
    values = [1.0, None, 3.0, 2.0, 5.0, 4.0, 0.5, 5.0]
    rows: list[dict[str, Any]] = [
        {"string": smiles, "value": value, "batch": batch, "status": "failed" if value is None else "ok"}
        for smiles, value, batch in zip(SMILES, values, (0, 0, 0, 1, 1, 1, 2, 2), strict=True)
    ]
    rows[1]["error"] = "TimeoutError: gave up after 60 s"
    for row, mean in zip(rows[3:], (2.5, 4.0, 4.5, 1.0, 2.0), strict=True):
        row |= {"predicted_mean": mean, "predicted_std": 0.75}
    return rows
