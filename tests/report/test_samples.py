"""Random samples of what was searched, and the baseline of random choice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seqopt.report.results import read_run
from seqopt.report.samples import (
    Candidates,
    best_of_random,
    own_objective,
    random_baseline,
    sample_candidates,
    size_of,
    space_of,
)
from seqopt.spaces import CodonSpace, GrammarSpace, LocalSpace, StringSpace
from seqopt.utils.config import described

MakeRun = Callable[..., Path]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_of_random_draws_agrees_with_enumeration(direction: str) -> None:
    values = np.array([3.0, -1.0, 4.0, 1.5, 4.0, 9.0, 2.0])
    best = max if direction == "maximize" else min
    table = best_of_random(values, range(1, 8), direction)
    for row in table.to_dict("records"):
        every = [best(chosen) for chosen in combinations(values, int(row["draws"]))]
        assert row["mean"] == pytest.approx(np.mean(every))
        assert np.mean(np.array(every) >= row["low"] - 1e-12) >= 0.95 - 1e-12
        assert np.mean(np.array(every) <= row["high"] + 1e-12) >= 0.95 - 1e-12


def test_a_baseline_rests_on_the_pool_where_its_values_are_known(make_run: MakeRun, tmp_path: Path) -> None:
    pool = pd.DataFrame({"sequence": [f"MK{a}{b}" for a in "ACDEF" for b in "ACDEF"], "score": np.arange(25.0)})
    pool.to_csv(tmp_path / "pool.csv", index=False)
    rows = [{"string": text, "value": score} for text, score in pool.head(6).to_numpy().tolist()]
    facts = {"kind": "protein", "objective": "column:score", "pool": str(tmp_path / "pool.csv"), "column": "sequence"}
    run = read_run(make_run(rows, facts))
    candidates = sample_candidates(run, "protein", 10)
    assert len(candidates.keys) == len(set(candidates.keys)) == 10
    assert set(candidates.strings) <= set(pool["sequence"])
    baseline = random_baseline(run, candidates, None)
    assert baseline is not None
    assert baseline.source == "all 25 values of the pool"
    assert baseline.table["mean"].iloc[0] == pytest.approx(12.0)
    assert len(baseline.table) == 6


def test_an_objective_is_called_only_if_it_gives_the_values_again(make_run: MakeRun) -> None:
    calls: list[int] = []

    def score(strings: list[str]) -> list[float]:
        calls.append(len(strings))
        return [float(len(text)) for text in strings]

    candidates = Candidates(("CCCC", "CCCCC", "CC"), ("CCCC", "CCCCC", "CC"), source="a pool")
    rows = [{"string": "C" * n, "value": float(n), "seconds": 0.001} for n in (1, 2, 3)]
    baseline = random_baseline(read_run(make_run(rows)), candidates, score)
    assert baseline is not None
    assert baseline.source == "3 random strings of a pool, scored for this page"
    other = [row | {"value": row["value"] + 1} for row in rows]
    calls.clear()
    baseline = random_baseline(read_run(make_run(other, {"initial": 3})), candidates, score)
    assert baseline is not None
    assert baseline.source == "the 3 measured strings that were chosen at random, as far as they reach"
    assert calls == [3]  # the strings of the run, and no others
    slow = [row | {"seconds": 60.0} for row in rows]
    calls.clear()
    random_baseline(read_run(make_run(slow)), candidates, score)
    assert calls == []


def test_imported_values_are_no_random_choice(tmp_path: Path) -> None:
    from seqopt.campaign import Campaign
    from seqopt.report.campaigns import read_campaign

    path = tmp_path / "first.seqopt"
    with Campaign.create(path, StringSpace("AB", 8), objective="y", batch_size=4) as campaign:
        for index in range(6):
            campaign.record("A" * (8 - index) + "B" * index, 100.0 + index)
        assert random_baseline(read_campaign(path), Candidates(), None) is None
    second = tmp_path / "second.seqopt"
    with Campaign.create(second, StringSpace("AB", 8), objective="y", batch_size=4) as campaign:
        for value, suggestion in enumerate(campaign.suggest()):
            campaign.record(suggestion.name, float(value))
        campaign.record("AAAAAAAA", 100.0)
    baseline = random_baseline(read_campaign(second), Candidates(), None)
    assert baseline is not None
    assert baseline.table["mean"].iloc[0] == pytest.approx(1.5)


def test_of_a_run_only_the_initial_design_that_was_asked_for_is_random(make_run: MakeRun) -> None:
    rows = [{"string": "C" * n, "value": float(n)} for n in range(1, 6)]
    assert random_baseline(read_run(make_run(rows)), Candidates(), None) is None
    baseline = random_baseline(read_run(make_run(rows, {"initial": 2})), Candidates(), None)
    assert baseline is not None
    assert baseline.table["mean"].tolist() == pytest.approx([1.5, 2.0])


def test_the_range_of_a_sample_ends_where_the_sample_is_too_small(make_run: MakeRun) -> None:
    values = np.random.default_rng(0).normal(size=200)
    rows = [{"string": f"{n}", "value": float(value), "seconds": 0.001} for n, value in enumerate(values)]
    run = read_run(make_run(rows, {"initial": 200}))
    sampled = random_baseline(run, Candidates(), None)
    whole = random_baseline(run, Candidates(values=values), None)
    assert sampled is not None
    assert whole is not None
    assert sampled.banded == 10
    assert sampled.table.loc[sampled.table["draws"] <= 10, "high"].lt(values.max()).all()
    assert sampled.table["mean"].notna().all()
    assert whole.banded == 200
    assert whole.table["mean"].tolist() == pytest.approx(sampled.table["mean"].tolist())


def test_functions_of_users_are_never_called_for_a_page(make_run: MakeRun) -> None:
    row = {"string": "CCO", "value": 1.0}
    assert own_objective(read_run(make_run([row], {"objective": "os:getcwd"}))) is None
    assert own_objective(read_run(make_run([row], {"objective": "qed"}))) is not None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"pool": "gone.csv"}, "gone.csv is not where it was"),
        ({}, "do not say enough"),
        ({"space": {"type": "GrammarSpace", "grammar": "gone.cfg", "fingerprint": "x"}}, "could not be opened again"),
        ({"space": {"type": ["unhashable"]}}, "could not be opened again"),
        ({"space": {"type": "StringSpace", "alphabet": "AB", "custom": True}}, "do not say enough"),
    ],
)
def test_what_cannot_be_sampled_is_said(facts: dict[str, Any], words: str, make_run: MakeRun) -> None:
    found = sample_candidates(read_run(make_run([{"string": "A", "value": 1.0}], facts)), "text", 5)
    assert found.strings == ()
    assert words in found.missing


@pytest.mark.parametrize(
    "space",
    [
        CodonSpace("MKV", gc=(0.2, 0.8)),
        CodonSpace("MKVLAT" * 20),
        StringSpace("AB", 3),
        StringSpace([chr(0x4E00 + n) for n in range(80)], 6),
        GrammarSpace("arithmetic", 3, 9),
        LocalSpace(["AGS", "KR"] * 6, kind="protein"),
    ],
    ids=repr,
)
def test_the_space_of_a_run_is_made_again(space: Any, make_run: MakeRun) -> None:
    run = read_run(make_run([{"string": "A", "value": 1.0}], {"space": space.config(), "kind": space.kind}))
    assert space_of(run).config() == space.config()
    assert sample_candidates(run, str(space.kind), 5).strings == tuple(space.sample(5, np.random.default_rng(0)))


def test_the_size_of_a_space_is_known_without_its_predicate(make_run: MakeRun) -> None:
    for space, size in (
        (StringSpace("AB", 4), "16"),
        (StringSpace("AB", 4, accept=str.isupper), "16"),
        (CodonSpace("MK", accept=str.isupper, gc=(0.0, 0.9)), "2"),
        (GrammarSpace("arithmetic", 3, 9), ""),
    ):
        run = read_run(make_run([{"string": "A", "value": 1.0}], {"space": described(space)}))
        assert size_of(run) == size
    for kept in (None, {"type": "G"}, {"type": "StringSpace", "alphabet": 7}, {"type": "PoolSearch"}):
        assert size_of(read_run(make_run([{"string": "A", "value": 1.0}], {"space": kept}))) == ""
