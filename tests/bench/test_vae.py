"""The benchmark of autoencoders: a training that is stopped goes on, and what was measured meanwhile is kept."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from seqopt.bench import vae as bench
from seqopt.errors import InputError
from seqopt.vae import Epoch, StringVAE

NAME = "molecules-symbols"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forty alkyl halides, and a network of a few units."""
    task = bench.TASKS[NAME]
    settings = {**task.settings, "portion": 15, "batch_size": 8, "held_out": 0.25}
    little = {"channels": 4, "decoder": 2, "features": 6, "memory": 8, "hidden": 16}
    monkeypatch.setattr(bench, "TASKS", {NAME: dataclasses.replace(task, epochs=3, settings=settings, sizes=little)})
    strings = ["C" * n + end for n in range(1, 11) for end in ("F", "Cl", "Br", "O")]
    monkeypatch.setattr(bench, "strings_of", lambda task: strings)
    monkeypatch.setattr(bench, "GLIMPSED", 20)
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def command(folder: Path, *options: str) -> None:
    files = ["--results", "vae.jsonl", "--epochs", "curve.jsonl", "--document", "results.md", "--figure", "curve.png"]
    placed = [str(folder / part) if "." in part else part for part in files]
    bench.main(["--tasks", NAME, *placed, *options])


def test_a_training_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path / "whole")
    whole = StringVAE.load(bench.model_path(NAME))
    bench.model_path(NAME).unlink()
    original = bench.watch

    def stopped(epoch: Epoch, *rest: Any) -> None:
        if epoch.epoch == 2:  # its checkpoint is there, its line is not
            raise KeyboardInterrupt
        original(epoch, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(bench, "watch", stopped)
        with pytest.raises(KeyboardInterrupt):
            command(tmp_path)
    assert [line["epoch"] for line in lines(tmp_path / "curve.jsonl")] == [1]
    command(tmp_path, "--curve")
    assert StringVAE.load(bench.model_path(NAME)).name == whole.name
    assert not bench.model_path(NAME).with_suffix(".part").exists()
    found, expected = lines(tmp_path / "curve.jsonl"), lines(tmp_path / "whole" / "curve.jsonl")
    assert [line["epoch"] for line in found] == [1, 2, 3]
    assert [line["strings"] for line in found] == [15, 30, 45]
    assert [line["valid"] is None for line in found] == [False, True, False]
    for one, other in zip(found, expected, strict=True):
        for name in ("train_loss", "loss", "kl", "strings_right"):
            assert one[name] == other[name]
    assert found[2]["valid"] == expected[2]["valid"]
    (run,) = lines(tmp_path / "vae.jsonl")
    assert run["task"] == NAME
    assert "wall" not in run["seconds"]  # it was not done at one go
    text = (tmp_path / "results.md").read_text()
    assert "| character, symbols of SMILES | 40 | 0.005 |" in text
    assert "<!-- begin vae-curve -->" in text
    assert (tmp_path / "curve.png").stat().st_size > 1000
    command(tmp_path)  # it is there already
    assert len(lines(tmp_path / "vae.jsonl")) == 1


def test_processor_time_adds_up_over_epochs(tmp_path: Path) -> None:
    path = tmp_path / "curve.jsonl"
    for epoch in (2, 1, 3):
        line = {
            **{"task": NAME, "epoch": epoch, "strings": 100 * epoch, "train_loss": 3.0, "loss": 2.0, "kl": 5.0},
            **{"symbols_right": 0.5, "strings_right": 0.25 * epoch, "seconds": 90.0, "valid": 0.5},
            "processor": None if epoch == 2 else 60.0,
        }
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
    epochs = bench.curves(path)
    assert [line["epoch"] for line in epochs[NAME]] == [1, 2, 3]
    rows = bench.curve_table(epochs).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["1.0", "2.5", "3.5"]  # the clock's where there is no other
    assert rows[2].endswith("| 300 | 3.00 | 2.00 | 5 | 50.0% | 75.0% | 50% |")


def test_a_curve_of_nothing_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no epochs: train a model first, seqopt bench vae"):
        bench.curves(tmp_path / "none.jsonl")
