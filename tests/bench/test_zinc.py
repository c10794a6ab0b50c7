"""The molecule search: which stored runs are one method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.bench import zinc
from seqopt.bench.records import append_record, read_records
from seqopt.bench.zinc import METHODS, read_runs
from seqopt.errors import InputError
from seqopt.search import PoolSearch
from seqopt.spaces import CandidateSet
from seqopt.strategies import LFBO

STORED = Path(__file__).parents[2] / "results" / "zinc"


def run(name: str, seed: int, **settings: Any) -> dict[str, Any]:
    return {"job": {"method": name, "seed": seed}, "method": METHODS[name].settings | settings}


def test_runs_are_read_in_the_order_of_seeds(tmp_path: Path) -> None:
    for seed in (12, 3):
        append_record(tmp_path / "gibbon-10-b.jsonl", run("gibbon-10-b", seed), ["job"])
    found = read_runs(tmp_path)
    assert [one["job"]["seed"] for one in found["gibbon-10-b"]] == [3, 12]
    assert found["gibbon-10"] == []


def test_a_repulsion_may_be_stored_as_its_value(tmp_path: Path) -> None:
    append_record(tmp_path / "gibbon-10-b.jsonl", run("gibbon-10-b", 0, repulsion=0.1), ["job"])
    append_record(tmp_path / "gibbon-10-b2.jsonl", run("gibbon-10-b2", 0, repulsion=0.01), ["job"])
    assert len(read_runs(tmp_path)["gibbon-10-b"]) == 1


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gibbon-10-b", {"repulsion": 1.0}),
        ("gibbon-10", {"repulsion": "1/B"}),
        ("gibbon-10", {"sampler": "gumbel"}),
        ("mean-1", {"batch": 10}),
        ("mean-1", {"surrogate": "minmax"}),
        ("published-10", {"transform": "auto"}),
        ("full-mean-10", {"candidates": 1000}),
    ],
)
def test_a_method_whose_settings_changed_under_its_name_is_refused(
    tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    append_record(tmp_path / f"{name}.jsonl", run(name, 0), ["job"])
    append_record(tmp_path / f"{name}.jsonl", run(name, 7, **settings), ["job"])
    with pytest.raises(InputError, match=rf"{name}\.jsonl, seed 7: made with the settings"):
        read_runs(tmp_path)


def test_density_ratios_are_methods_with_settings_of_their_own() -> None:
    lfbo, bore = METHODS["lfbo-10-trees"], METHODS["full-bore-10-kernel"]
    assert lfbo.chose(lfbo.settings)
    assert not lfbo.chose(METHODS["lfbo-10-logistic"].settings)
    assert not bore.chose(METHODS["full-lfbo-10-kernel"].settings)
    search = PoolSearch(7)
    strategy = lfbo.build_strategy(search)
    assert type(strategy) is LFBO
    assert strategy.config_arguments()["search"] is search


def test_what_does_not_matter_to_a_method_may_differ() -> None:
    greedy = METHODS["mean-1"]
    assert greedy.chose(greedy.settings | {"repulsion": 0.3, "label": "another"})
    assert not METHODS["gibbon-1"].chose(replace(METHODS["gibbon-1"], repulsion=0.5).settings)


@pytest.mark.parametrize(
    ("name", "transform"), [("published-5", "none"), ("published-5-auto", "auto"), ("gibbon-1", "none")]
)
def test_what_the_model_sees_of_the_values_is_what_the_method_says(
    name: str, transform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Any] = []

    class Seen(Optimizer):
        def ask(self, n: int | None = None, **options: Any) -> list[str]:
            built.append(self.transform.name)
            raise KeyboardInterrupt

    monkeypatch.setattr("seqopt.optimizer.Optimizer", Seen)
    monkeypatch.setattr(zinc, "zinc", lambda: (CandidateSet(["C", "CC", "CCC"], kind="molecule"), np.zeros(3)))
    with pytest.raises(KeyboardInterrupt):
        zinc.work(zinc.Job(name, 0))
    assert built == [transform] == [METHODS[name].settings["transform"]]


def test_what_only_tells_causes_apart_runs_when_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planned: list[set[str]] = []
    monkeypatch.setattr(zinc, "zinc", lambda: None)
    monkeypatch.setattr(zinc, "report", lambda *paths: None)
    monkeypatch.setattr(zinc, "run_jobs", lambda jobs, *others, **options: planned.append({job.method for job in jobs}))
    for named in ([], ["--methods", "published-1-auto"]):
        zinc.main(["--results", str(tmp_path), "--seeds", "1", *named])
    everything, one = planned
    assert one == {"published-1-auto"}
    assert everything == set(METHODS) - {name for name in METHODS if METHODS[name].studied}
    assert {"published-1", "full-gibbon-10-ngrams+counts"} <= everything
    assert not {"published-1-auto", "gibbon-10-b-auto", "full-gibbon-10-ngrams+counts-none"} & everything


def test_runs_of_before_there_was_a_transform_had_none() -> None:
    stored = {name: value for name, value in METHODS["gibbon-1"].settings.items() if name != "transform"}
    assert METHODS["gibbon-1"].chose(stored)
    assert not replace(METHODS["gibbon-1"], transform="auto").chose(stored)


@pytest.mark.skipif(not STORED.exists(), reason="no stored results in an installed package")
def test_no_label_of_stored_runs_stands_for_two_methods() -> None:
    methods: dict[str, set[str]] = {}
    for path in STORED.glob("*.jsonl"):
        for one in read_records(path, ["job"]):
            assert one["job"]["method"] == path.stem
            if "label" in one["method"]:
                methods.setdefault(one["method"]["label"], set()).add(path.stem)
    assert all(len(names) == 1 for names in methods.values()), methods
    assert sum(map(len, read_runs(STORED).values())) == sum(
        len(read_records(path, ["job"])) for path in STORED.glob("*.jsonl")
    )
