"""Runs repeat exactly, share their beginnings, and can be checked."""

from __future__ import annotations

import json

import pytest

from seqopt.bench.boss.runs import Job, check, describe, initial_strings, read_runs, work
from seqopt.bench.boss.tasks import TASKS
from seqopt.bench.records import append_record
from seqopt.errors import InputError

pytestmark = pytest.mark.usefixtures("own_process")

TIMES = ("suggest_seconds", "longest_suggest_seconds")


def without_times(run):
    return {name: value for name, value in run.items() if name not in TIMES}


@pytest.mark.parametrize("method", ["ssk-ga", "random"])
def test_a_seed_fixes_a_run(method) -> None:
    first, second = (work(Job("101", method, 3, steps=2)) for _ in range(2))
    assert without_times(first) == without_times(second)
    assert len(first["values"]) == TASKS["101"].initial + 2
    assert json.loads(json.dumps(first)) == first
    check(first)


def test_methods_of_one_seed_begin_with_the_same_strings_and_noise() -> None:
    runs = [work(Job("101-noisy", method, 1, steps=1)) for method in ("ssk-ga", "ssk-rs", "random")]
    assert all(run["initial"] == initial_strings("101-noisy", 1) for run in runs)
    assert all(run["values"][:2] == runs[0]["values"][:2] for run in runs)
    assert [run["settings"]["search"]["class"] for run in runs] == ["GeneticSearch", "RandomSearch", "GeneticSearch"]
    assert runs[0]["noiseless"][:2] != runs[0]["values"][:2]
    other = work(Job("101-noisy", "random", 2, steps=1))
    assert other["initial"] != runs[0]["initial"]
    for run in (*runs, other):
        assert run["recommended"] in [*run["initial"], *run["chosen"]]
        check(run)


def test_tasks_begin_with_strings_of_their_own() -> None:
    assert initial_strings("101", 0) != initial_strings("101-disjoint", 0)


@pytest.mark.parametrize("task", ["peptide-10", "regression"])
def test_genes_and_formulas_are_minimised(task) -> None:
    run = work(Job(task, "ssk-ga", 0, steps=2))
    assert run["settings"]["direction"] == "minimize"
    assert all(map(TASKS[task].space().contains, run["chosen"]))
    assert len(run["initial"]) == TASKS[task].initial
    check(run)


def test_settings_say_what_the_defaults_were() -> None:
    settings = work(Job("101", "random", 0, steps=1))["settings"]
    assert settings["steps"] == 1
    assert settings["acquisition"]["class"] == "RandomAcquisition"
    assert settings["search"]["class"] == "GeneticSearch"
    assert settings["search"]["population"] == 100
    assert "allow_repeats" not in settings
    assert work(Job("101-noisy", "random", 0, steps=1))["settings"]["allow_repeats"] is True
    assert describe(Job("a", "b", 0)) == {"class": "Job", "task": "a", "method": "b", "seed": 0}


def test_a_wrong_value_is_found(make_run) -> None:
    run = make_run("101", "random", 0, [1, 2, 0], ["1010" + "0" * 16, "10101" + "0" * 15, "0" * 20])
    check(run)
    run["values"][1] = 3
    with pytest.raises(InputError, match=r"'101010*' has the value 2, not 3"):
        check(run)


def test_runs_are_read_by_task_and_method_in_the_order_of_seeds(make_run, tmp_path) -> None:
    for seed in (10, 2):
        for method in ("random", "ssk-ga"):
            path = Job("101", method, seed).path(tmp_path)
            append_record(path, make_run("101", method, seed, [0, 1, 2]), ["job"])
    found = read_runs(tmp_path)
    assert list(found) == ["101"]
    assert list(found["101"]) == ["ssk-ga", "random"]
    assert [run["job"]["seed"] for run in found["101"]["random"]] == [2, 10]
    append_record(path, make_run("101", method, seed, [0, 1]), ["job"], again=True)
    with pytest.raises(InputError, match="have 2 and 3 evaluations"):
        read_runs(tmp_path)
