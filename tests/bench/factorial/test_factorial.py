"""The factorial study: a balanced plan, effects that are recovered, runs that resume."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from seqopt.bench.factorial import main
from seqopt.bench.factorial.command import Job, main_effects, planned, tables, work
from seqopt.bench.factorial.design import FACTORS, TASKS, Cell, cells_of, third_of
from seqopt.bench.factorial.effects import balanced, effect, pair_means, worth, worths
from seqopt.bench.records import read_records
from seqopt.errors import InputError

pytestmark = pytest.mark.usefixtures("own_process")


@pytest.mark.parametrize("task", TASKS)
def test_three_seeds_run_every_cell_once_and_each_is_balanced(task: str) -> None:
    every = cells_of(task)
    sizes = {"regression": 36, "molecules": 12}
    assert len(every) == len(set(every)) == sizes.get(TASKS[task].part, 54)
    thirds = [third_of(task, seed) for seed in range(3)]
    if TASKS[task].part in ("regression", "molecules"):
        assert thirds == [every] * 3
        return
    assert Counter(itertools.chain(*thirds)) == Counter(every)
    assert third_of(task, 4) == thirds[1]
    for cells in thirds:
        for one, other in itertools.combinations(FACTORS, 2):
            met = Counter((getattr(cell, one), getattr(cell, other)) for cell in cells)
            pairs = len({getattr(cell, one) for cell in every}) * len({getattr(cell, other) for cell in every})
            assert len(met) == pairs
            assert len(set(met.values())) == 1


def made(task: str, cell: Cell, seed: int, value: float) -> dict:
    """A run whose best string is worth that much; larger is better."""
    sign = TASKS[task].sign
    return {
        "job": {"task": task, "cell": vars(cell), "seed": seed},
        "values": [sign * (value - 1), sign * value, sign * (value - 2)],
        "record": {
            "command": "seqopt bench factorial",
            "versions": {"seqopt": "1"},
            "machine": {"processor": "Abacus", "cores": 2, "platform": "Clay"},
        },
    }


EFFECTS = {"ngrams": 1.0, "one-hot": -2.0, "averaged": 0.5, "gibbon": 0.25, "mean": -1.0, "ours": 3.0, "random": 0.75}


def additive(task: str, seeds: range, noise: float = 0.0) -> list[dict]:
    """Runs of an additive model with the effects above and a level for each seed."""
    rng = np.random.default_rng(0)
    return [
        made(task, cell, seed, 10 * seed + sum(EFFECTS.get(level, 0.0) for level in vars(cell).values()) + noise * e)
        for seed in seeds
        for cell in third_of(task, seed)
        for e in rng.standard_normal(1)
    ]


@pytest.mark.parametrize("task", ["peptide-10", "regression", "zinc"])
def test_effects_of_an_additive_model_are_recovered_exactly(task: str) -> None:
    by_seed = balanced(task, worths(additive(task, range(3))))
    for factor, levels in FACTORS.items():
        for level in levels[1:]:
            found = effect(by_seed, factor, level, levels[0])
            if found is None:
                assert (factor, task) in {("search", "zinc"), ("kernel", "zinc"), ("kernel", "regression")}
                continue
            assert found == pytest.approx((EFFECTS[level], 0.0), abs=1e-9)


def test_standard_errors_are_those_over_seeds() -> None:
    by_seed = balanced("peptide-10", worths(additive("peptide-10", range(300), noise=1.0)))
    found = effect(by_seed, "parameters", "averaged", "point")
    # Nine cells a level and seed: the variance of a difference is 2 / 9.
    assert found.error == pytest.approx(np.sqrt(2 / 9 / 300), rel=0.15)
    assert abs(found.mean - 0.5) < 4 * found.error


def test_an_interaction_is_seen_where_it_is() -> None:
    runs = [
        made("peptide-10", cell, seed, 5.0 * (cell.kernel == "ngrams" and cell.parameters == "averaged"))
        for seed in range(3)
        for cell in third_of("peptide-10", seed)
    ]
    by_seed = worths(runs)
    assert pair_means(by_seed, {"kernel": "ngrams", "parameters": "averaged"}) == (5.0, 0.0)
    assert pair_means(by_seed, {"kernel": "ssk", "parameters": "averaged"}) == (0.0, 0.0)


def test_seeds_that_lack_a_cell_do_not_count() -> None:
    runs = additive("peptide-10", range(2))
    assert list(worths(runs)) == [0, 1]
    assert list(worths(runs[1:])) == [1]
    whole = [made("peptide-10", cell, 0, 1.0) for cell in cells_of("peptide-10")]
    assert len(worths(whole)[0]) == 54
    assert len(balanced("peptide-10", worths(whole))[0]) == 18


def test_what_a_run_is_worth() -> None:
    cell = cells_of("101")[0]
    assert worth(made("101", cell, 0, 4.5)) == pytest.approx(50.0)
    assert worth(made("peptide-10", cell, 0, 9.0)) == 9.0
    noisy = made("101-noisy", cell, 0, 7.0) | {"noiseless": [9.0, 3.0, 1.0]}
    assert worth(noisy) == pytest.approx(100 * 3 / 9)


def test_tables_hold_every_level_and_task() -> None:
    runs = {name: additive(name, range(3)) if name in ("101", "zinc") else [] for name in TASKS}
    effects, *pairs = tables(runs)
    assert [row[0] for row in effects.rows] == [f for f, levels in FACTORS.items() for _ in levels[1:]]
    rows = {row[1].split(",")[0]: dict(zip(effects.columns, row, strict=True)) for row in effects.rows}
    assert rows["averaged over"]["penalised logP of ZINC"] == "0.50 ± 0.00"
    assert rows["averaged over"]['"101"'] == f"{100 * 0.5 / 9:.1f} ± 0.0"
    assert rows["best of 10"]["penalised logP of ZINC"] == ""
    assert [len(table.rows) for table in pairs] == [6, 9]
    assert main_effects({}).rows == [] or all(cell == "" for row in main_effects({}).rows for cell in row[2:])


def test_targets_of_the_formulas_are_those_of_their_names() -> None:
    for name, task in TASKS.items():
        if name.startswith("formula"):
            assert task.objective(0)([task.label])[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "cell",
    [
        Cell("ssk", "point", "ei", "published"),
        Cell("ngrams", "point", "gibbon", "ours"),
        Cell("one-hot", "averaged", "mean", "random"),
        Cell("ssk", "averaged", "mean", "published"),
    ],
    ids=lambda cell: cell.name,
)
def test_cells_are_what_they_are_called(cell: Cell) -> None:
    run = work(Job("101", cell, 0, steps=1))
    settings = run["settings"]
    kernels = {"ssk": "SubsequenceKernel", "ngrams": "NgramKernel", "one-hot": "OneHotKernel"}
    arguments = cell.arguments()
    surrogate = arguments["surrogate"]
    (kernel,) = getattr(surrogate, "kernels", [getattr(surrogate, "kernel", None)])
    assert type(kernel).__name__ == kernels[cell.kernel]
    assert ("priors" in settings["surrogate"]) == (cell.parameters == "point")
    assert (
        settings["acquisition"]["class"]
        == {
            "ei": "LogExpectedImprovement",
            "gibbon": "GIBBON",
            "mean": "PosteriorMean",
        }[cell.acquisition]
    )
    assert settings["search"].get("patience") == {"published": 1, "ours": 8}.get(cell.search)
    assert settings["search"].get("candidates") == (10_000 if cell.search == "random" else None)
    assert settings["transform"] == arguments["transform"] == "auto"
    assert len(run["values"]) == 3
    assert json.loads(json.dumps(run)) == run


@pytest.mark.slow
def test_the_command_resumes_and_reports(tmp_path, capsys) -> None:
    options = ["--results", str(tmp_path / "runs"), "--jobs", "1"]
    stored = tmp_path / "runs" / "101.jsonl"
    stored.parent.mkdir()
    runs = additive("101", range(2))
    stored.write_text("".join(json.dumps(run) + "\n" for run in runs[:-1]))
    main([*options, "--tasks", "101", "--seeds", "2", "--steps", "1"])
    assert "35 of 36 runs are there already" in capsys.readouterr().out
    assert len(read_records(stored, ["job"])) == 36
    document = tmp_path / "results.md"
    main([*options, "--report-only", "--document", str(document)])
    text = document.read_text()
    assert "<!-- begin factorial -->" in text
    assert "Abacus" in text
    assert "Means by acquisition and search" in text


def test_a_plan_goes_seed_by_seed_and_options_out_of_range_are_refused(capsys) -> None:
    jobs = planned(["101", "zinc"], 2, first_seed=3)
    assert len(jobs) == len(set(jobs)) == 2 * (18 + 12)
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert len(planned(["101"], 1, every_cell=True)) == 54
    for wrong in (["--seeds", "0"], ["--steps", "3"], ["--first-seed", "-1"]):
        with pytest.raises(SystemExit):
            main(wrong)
    capsys.readouterr()


def test_a_level_that_does_not_go_with_a_task_is_refused_by_it() -> None:
    with pytest.raises(InputError, match="one length"):
        work(Job("regression", Cell("one-hot", "point", "ei", "published"), 0, steps=1))
