"""Runs repeat exactly, share their beginnings, and can be checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from seqopt.bench.boss.runs import (
    Job,
    _with_additions,
    check,
    describe,
    initial_strings,
    read_runs,
    with_undecodable,
    work,
)
from seqopt.bench.boss.tasks import TASKS
from seqopt.bench.records import append_record
from seqopt.data import Data
from seqopt.errors import InputError
from seqopt.strategies import RandomLatentStrategy, SearchState

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


@pytest.mark.parametrize("method", ["boss", "boss-patient"])
def test_published_methods_repeat_exactly(method) -> None:
    first, second = (work(Job("101", method, 1, steps=2)) for _ in range(2))
    assert without_times(first) == without_times(second)
    settings = first["settings"]
    assert (settings["surrogate"]["priors"], settings["acquisition"]["incumbent"]) == (False, "value")
    assert "symbols" not in settings["surrogate"]
    bases = work(Job("peptide-10", "boss-bases-parts", 1, steps=1))["settings"]["surrogate"]
    assert (bases["symbols"], bases["kernel"]["partitions"]) == ("characters", 6)


def test_runs_from_before_an_argument_was_added_are_of_the_same_method(make_run, tmp_path) -> None:
    old, new = (
        {"search": {"class": "GeneticSearch", "patience": 8, **more}} for more in ({}, {"elitist": True, "novel": True})
    )
    for seed, settings in enumerate((old, new)):
        run = make_run("101", "ssk-ga", seed, [0, 1, 2]) | {"settings": settings}
        append_record(Job("101", "ssk-ga", seed).path(tmp_path), run, ["job"])
    assert len(read_runs(tmp_path)["101"]["ssk-ga"]) == 2
    run = make_run("101", "ssk-ga", 2, [0, 1, 2])
    run["settings"] = {"search": {"class": "GeneticSearch", "patience": 8, "elitist": False, "novel": True}}
    append_record(Job("101", "ssk-ga", 2).path(tmp_path), run, ["job"])
    with pytest.raises(InputError, match="different settings"):
        read_runs(tmp_path)


def test_runs_with_and_without_a_transform_are_not_of_one_method(make_run, tmp_path) -> None:
    learned = {"acquisition": {"class": "GIBBON"}, "transform": "auto"}
    of_before = {"acquisition": {"class": "GIBBON"}}
    at_random = [{"acquisition": {"class": "RandomAcquisition"}, "transform": name} for name in ("auto", "none")]
    latent = [{"strategy": {"class": "RandomLatentStrategy"}, "transform": name} for name in ("auto", "none")]
    stored = {
        "random": at_random,
        "cvae-random": latent,
        "ssk-ga": [of_before, of_before | {"transform": "none"}],
        "ssk-ga-auto": [learned, learned],
    }
    for method, several in stored.items():
        for seed, settings in enumerate(several):
            run = make_run("101", method, seed, [0, 1, 2]) | {"settings": settings}
            append_record(Job("101", method, seed).path(tmp_path), run, ["job"])
    assert {method: len(runs) for method, runs in read_runs(tmp_path)["101"].items()} == dict.fromkeys(stored, 2)
    run = make_run("101", "ssk-ga", 2, [0, 1, 2]) | {"settings": learned}
    append_record(Job("101", "ssk-ga", 2).path(tmp_path), run, ["job"])
    with pytest.raises(InputError, match=r"ssk-ga on 101 .* different settings"):
        read_runs(tmp_path)


@pytest.mark.parametrize(
    ("method", "transform"), [("boss", "none"), ("boss-auto", "auto"), ("ssk-ga", "none"), ("default", "auto")]
)
def test_runs_say_what_transform_they_had(method, transform) -> None:
    assert work(Job("101", method, 0, steps=1))["settings"]["transform"] == transform


@pytest.fixture(scope="module")
def vae():
    from seqopt.vae import CharacterCodec, NetworkSizes, TrainingSettings, train

    space = TASKS["regression"].space()
    strings = space.sample(300, np.random.default_rng(0))
    sizes = NetworkSizes(latent=4, hidden=24)
    settings = TrainingSettings(epochs=4)
    return train(strings, CharacterCodec.of(strings), sizes, settings, rng=np.random.default_rng(0)).vae


class TestAutoencoders:
    """A small model of expressions in place of the one that takes minutes."""

    @pytest.fixture
    def small(self, vae, monkeypatch):
        for module in ("methods", "runs"):
            monkeypatch.setattr(f"seqopt.bench.boss.{module}.autoencoder", lambda part, model: vae)
        return vae

    @pytest.mark.parametrize("method", ["cvae-random", "boss-cvae"])
    def test_every_evaluation_is_accounted_for(self, method, small) -> None:
        run = work(Job("regression", method, 0, steps=2))
        spent = with_undecodable(run, run["values"])
        assert len(spent) == TASKS["regression"].initial + 2
        lost = [place for place in run.get("undecodable", ()) if place < 0]
        assert lost, "so small a model brings some expressions back as nothing"
        assert len(run["initial"]) == TASKS["regression"].initial - len(lost)
        for place in run["undecodable"]:
            assert spent[TASKS["regression"].initial + place] == np.inf
        assert all(map(TASKS["regression"].space().contains, [*run["initial"], *run["chosen"]]))
        # Points that decoded to nothing differ from run to run, and settings must not.
        assert "undecodable" not in run["settings"].get("strategy", {})
        check(run)

    def test_random_points_fill_the_box(self, small) -> None:
        seen = []

        class Noting:
            size = small.size

            def box(self, coverage):
                return small.box(coverage)

            def decode(self, points):
                seen.extend(points)
                return ["x+x+1"] + ["?"] * (len(points) - 1)

        strategy = RandomLatentStrategy(Noting(), coverage=0.5)
        state = SearchState(TASKS["regression"].space(), Data.of([]))
        found = strategy.propose(1, state, np.random.default_rng(0))
        assert [proposal.string for proposal in found] == ["x+x+1"]
        lower, upper = small.box(0.5)
        scaled = (np.array(seen) - lower) / (upper - lower)
        assert ((scaled >= 0) & (scaled <= 1)).all()
        assert (np.ptp(scaled, axis=0) > 0.5).all()
        assert strategy.undecodable == 0  # the string that was asked for came first


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


def test_settings_of_older_runs_are_read_as_they_would_be_written_now() -> None:
    """What a part has got since stands for what was done in its place; without that, old and new runs differ."""
    run = work(Job("peptide-10", "ssk-ga", 0, steps=1))
    now = run["settings"]
    older = json.loads(json.dumps(now))
    for name in ("upstream", "downstream"):
        assert older["space"].pop(name) == ""
    assert _with_additions(older) == _with_additions(now) == now
    older["space"]["upstream"] = "GG"
    assert _with_additions(older) != now
