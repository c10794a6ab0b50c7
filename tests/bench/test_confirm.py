"""The benchmark of hit confirmation: who is named, and the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import confirm as bench
from seqopt.bench.confirm import METHODS, Block, Job, confirm, read_runs, tables, work
from seqopt.bench.records import append_record
from seqopt.strategies.arms import ArmPosterior, resolve_rule

pytestmark = pytest.mark.usefixtures("own_process")


def block(noise: float = 0.5, count: int = 40) -> Block:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((count, 6))
    first = truth + noise * rng.standard_normal(truth.shape)
    posterior = ArmPosterior.of(np.zeros((count, 6)), np.eye(6), noise**2)
    for arm in range(6):
        posterior = posterior.given(np.full(count, arm), first[:, arm])
    return Block(posterior, truth, truth[:, :, None] + noise * rng.standard_normal((count, 6, 192)))


@pytest.mark.parametrize("name", METHODS)
def test_many_wells_find_the_best(name: str) -> None:
    found = block()
    method = METHODS[name]
    rule = resolve_rule(method.rule)
    wrong = [(confirm(found, rule, method, wells, np.random.default_rng(1)) > 0).mean() for wells in (1, 96)]
    assert wrong[1] < wrong[0]
    assert wrong[1] < 0.3


def test_hits_that_are_equally_good_are_both_right() -> None:
    found = block()
    same = Block(found.posterior, np.zeros_like(found.truth), found.readings)
    regret = confirm(same, resolve_rule("equal"), METHODS["equal"], 12, np.random.default_rng(0))
    assert not bench.is_wrong(regret).any()


def test_runs_are_read_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "block_of", lambda task, number: block(count=8))
    monkeypatch.setattr(bench, "WELLS", (6, 12))
    for task in ("docking", "freesolv"):
        append_record(tmp_path / f"{task}.jsonl", work(Job(task, 0)), ["job"])
    runs = read_runs(tmp_path)
    assert set(runs) == {"docking", "freesolv"}
    assert all(len(after["12"]) == 8 for after in runs["docking"].values())
    text = tables(runs)
    assert text.count("| equal replication, means |") == 3
    assert "wrong in % of 8" in text


def test_a_simulation_measures_what_its_table_says() -> None:
    table = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
    read = bench._read(table, 0.0, 400, np.random.default_rng(0))
    assert set(read[0]) == {1.0, 2.0, 3.0, 4.0}
    assert set(read[1]) == {5.0}
    noisy = bench._read(table[:, :1], 0.5, 4000, np.random.default_rng(0))
    assert noisy[0].mean() == pytest.approx(1.0, abs=0.05)
    assert noisy[0].std() == pytest.approx(0.5, abs=0.03)
