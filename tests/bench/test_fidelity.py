"""The benchmark of fidelities: what is paid, what counts as reached, and the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.bench.fidelity import command, main
from seqopt.bench.fidelity.measures import CHECKPOINTS, costs_of, measures
from seqopt.bench.fidelity.methods import METHODS
from seqopt.bench.fidelity.runs import Job, search, work
from seqopt.bench.fidelity.tasks import CHEAP, SPOILT, TARGET, TASKS, Candidates, Task
from seqopt.bench.records import append_record
from seqopt.spaces import CandidateSet

pytestmark = pytest.mark.usefixtures("own_process")

STRINGS = ["".join("AB"[int(bit)] for bit in f"{number:06b}") for number in range(64)]
COUNTS = np.array([one.count("A") + 0.01 * number for number, one in enumerate(STRINGS)])
PARTS = Candidates(CandidateSet(STRINGS), COUNTS, COUNTS + np.sin(np.arange(64)))
TASK = Task("letters", lambda seed: PARTS, "maximize", "ssk", initial=4, budget=20.0)


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "letters", TASK)  # type: ignore[arg-type]
    command._candidates.cache_clear()


def _run(method: str, bought: list[tuple[int, int]]) -> dict[str, Any]:
    return {"job": {"task": "letters", "method": method, "seed": 0}, "bought": [list(one) for one in bought]}


def test_costs_are_paid_until_a_target_was_measured() -> None:
    ranks = np.argsort(-COUNTS).tolist()
    # The best is measured cheaply first, which finds nothing; then the worst and the third as targets, then the best.
    found = measures(_run("mf-gibbon", [(ranks[0], 0), (ranks[-1], 1), (ranks[2], 1), (ranks[0], 1)]), PARTS)
    assert found.first == pytest.approx(2.1)
    assert found.best == pytest.approx(3.1)
    assert found.half == TASK.budget
    assert found.reached == (True, False, True)
    assert found.share == pytest.approx(0.1 / 3.1)


def test_five_of_the_ten_best_are_half_of_them() -> None:
    ranks = np.argsort(-COUNTS).tolist()
    found = measures(_run("gibbon", [(index, 1) for index in [*ranks[10:14], *ranks[5:10]]]), PARTS)
    assert (found.first, found.half, found.best) == (5.0, 9.0, TASK.budget)
    signed = [COUNTS.max() - COUNTS[ranks[5]], COUNTS.max() - COUNTS[ranks[5]]]
    np.testing.assert_allclose(found.regret[:2], np.array(signed) / COUNTS.std())


def test_regret_counts_what_the_cost_has_paid_for() -> None:
    ranks = np.argsort(-COUNTS).tolist()
    late = [(ranks[30], 1), *((index, 0) for index in range(64)), *((index, 0) for index in range(31)), (ranks[0], 1)]
    found = measures(_run("mf-gibbon", late), PARTS)
    assert CHECKPOINTS[0] == 10.0
    assert found.regret[0] == pytest.approx((COUNTS.max() - COUNTS[ranks[30]]) / COUNTS.std())
    assert found.regret[1] == 0.0
    assert np.isnan(measures(_run("column", [(index, 0) for index in range(64)]), PARTS).regret[0])


def test_a_known_column_costs_nothing() -> None:
    bought = [(0, CHEAP), (0, TARGET)]
    assert costs_of(TASK, bought, known=False).tolist() == [0.1, 1.0]
    assert costs_of(TASK, bought, known=True).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("start", ["both", "halves"])
def test_searches_of_a_seed_begin_with_the_same_candidates(start: Any) -> None:
    task = replace(TASK, start=start, initial=5)
    single = task.beginning(3, 64, cheap=False)
    double = task.beginning(3, 64, cheap=True)
    costly = [index for index, level in double if level == TARGET]
    assert [index for index, _ in single][: len(costly)] == costly
    assert len(single) == 5
    assert len(set(double)) == len(double)
    paid = costs_of(task, double, known=False).sum()
    # Half of the cost on each, or the same candidates cheaply besides.
    assert paid == pytest.approx(4.5 if start == "halves" else 5.5)
    assert task.beginning(4, 64, cheap=False) != single


def test_a_small_screen_costs_what_one_of_half_costs() -> None:
    task = replace(TASK, start="screen", initial=4)
    begun = task.beginning(3, 64, cheap=True)
    assert {level for _, level in begun} == {CHEAP}
    assert len({index for index, _ in begun}) == 20
    assert costs_of(task, begun, known=False).sum() == pytest.approx(2.0)


def test_spoilt_columns_lose_what_they_told_and_nothing_else() -> None:
    noisy = [replace(TASK, spoil="noise").candidates(seed) for seed in range(40)]
    added = np.array([one.cheap - PARTS.cheap for one in noisy])
    assert added.std() == pytest.approx(SPOILT * PARTS.cheap.std(), rel=0.05)
    permuted = replace(TASK, spoil="permuted").candidates(0)
    assert sorted(permuted.cheap) == sorted(PARTS.cheap)
    assert abs(np.corrcoef(permuted.cheap, PARTS.target)[0, 1]) < 0.5
    assert all((one.target == PARTS.target).all() for one in (*noisy, permuted))
    assert (noisy[0].cheap != noisy[1].cheap).all()


def test_the_column_is_bought_before_it_says_which_is_best() -> None:
    paid, _ = search(TASK, METHODS["column"], PARTS, 0)
    known, _ = search(TASK, METHODS["column-known"], PARTS, 0)
    assert paid[:64] == [(index, CHEAP) for index in range(64)]
    assert [index for index, _ in paid[64:]] == np.argsort(-PARTS.cheap).tolist()[: len(paid) - 64]
    assert known[: len(paid) - 64] == paid[64:]
    smallest, _ = search(replace(TASK, direction="minimize"), METHODS["column-known"], PARTS, 0)
    assert smallest[0][0] == int(PARTS.cheap.argmin())


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_search_pays_more_than_its_budget_or_twice(method: str) -> None:
    task = replace(TASK, budget=6.0)
    bought, _ = search(task, METHODS[method], PARTS, 1)
    assert costs_of(task, bought, known=METHODS[method].known).sum() <= 6.0 + 1e-6
    assert len(set(bought)) == len(bought)


@pytest.mark.slow
def test_a_cheap_column_that_tells_all_is_worth_its_cost() -> None:
    exact = replace(TASK, data=lambda seed: Candidates(PARTS.space, COUNTS, 3.0 * COUNTS - 5.0))
    paid = {
        name: np.mean(
            [
                costs_of(exact, search(exact, METHODS[name], exact.data(seed), seed)[0], known=False).sum()
                for seed in (0, 1)
            ]
        )
        for name in ("mf-gibbon", "random")
    }
    assert paid["mf-gibbon"] < paid["random"]


@pytest.mark.slow
def test_a_run_is_fixed_by_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "letters", replace(TASK, budget=6.0))  # type: ignore[arg-type]
    runs = [work(Job("letters", "mf-gibbon", 0)) for _ in range(2)]
    assert runs[0]["bought"] == runs[1]["bought"]


def test_the_table_pairs_by_seed_and_says_what_was_not_reached(tmp_path: Path) -> None:
    ranks = np.argsort(-COUNTS).tolist()
    for seed, (single, double) in enumerate(((4, 2), (9, 3), (9, 30))):
        for method, wait in (("gibbon", single), ("mf-gibbon", double)):
            bought = [(index, 1) for index in ranks[-wait:]][:20]
            bought += [(ranks[0], 1)] if wait < 20 else []
            run = _run(method, bought)
            run["job"]["seed"] = seed
            append_record(tmp_path / "letters.jsonl", run, ["job"])
    text = command.tables(command.read_runs(tmp_path))
    assert "**letters**: 64 candidates, a cheap value costs 0.1, budget 20" in text
    # 5, 10 and 10; then 3, 4 and more than 20: differences -2, -6 and 10.
    single, double = (line.split("|") for line in text.splitlines() if line.startswith(("| one", "| two")))
    assert single[3].strip() == "8.3 ± 1.7"
    assert double[3].strip() == "9.0 ± 5.5 (67 %)"
    assert double[4].strip() == "0.7 ± 4.8"


def test_what_sees_the_same_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "spoilt", replace(TASK, label="spoilt", spoil="noise", base="letters"))  # type: ignore[arg-type]
    jobs = command.planned(["letters", "spoilt"], ["gibbon", "random", "mf-gibbon", "screened"], 1)
    assert [(job.task, job.method) for job in jobs] == [
        *[("letters", method) for method in ("gibbon", "random", "mf-gibbon", "screened")],
        *[("spoilt", method) for method in ("mf-gibbon", "screened")],
    ]
    monkeypatch.setitem(TASKS, "halves", replace(TASK, label="halves", start="halves", base="letters"))  # type: ignore[arg-type]
    jobs = command.planned(["halves"], ["gibbon", "mf-gibbon", "screened", "column"], 1)
    assert [job.task for job in jobs] == ["letters", "halves", "letters", "letters"]
    for method in ("random", "gibbon"):
        # The chooser of a blind method gives the same whatever the cheap column holds.
        runs = [
            search(replace(task, budget=5.0), METHODS[method], task.candidates(0), 0)
            for task in (TASK, TASKS["spoilt"])
        ]
        assert runs[0][0] == runs[1][0]
    append_record(tmp_path / "letters.jsonl", _run("gibbon", [(0, 1)]), ["job"])
    append_record(
        tmp_path / "spoilt.jsonl",
        {**_run("screened", [(0, 1)]), "job": {"task": "spoilt", "method": "screened", "seed": 0}},
        ["job"],
    )
    found = command.read_runs(tmp_path)
    assert set(found["spoilt"]) == {"gibbon", "screened"}
    assert set(found["letters"]) == {"gibbon"}


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.base])
def test_tasks_that_share_runs_differ_in_nothing_else(name: str) -> None:
    task, base = TASKS[name], TASKS[str(TASKS[name].base)]
    assert replace(task, label="", start="both", spoil=None, base=None) == replace(base, label="")


def test_the_command_resumes_and_writes_its_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Job] = []

    def run_here(jobs: Any, file_of: Any, identity: Any, work: Any, *, record: Any, **options: Any) -> None:
        for job in jobs:
            done.append(job)
            append_record(file_of(job), work(job) | {"record": record}, list(identity(job)))

    monkeypatch.setattr(command, "run_jobs", run_here)
    document = tmp_path / "results.md"
    document.write_text("# Results\n\n<!-- begin fidelity -->\n<!-- end fidelity -->\n\nafter\n")
    options = ["--tasks", "letters", "--results", str(tmp_path), "--document", str(document)]
    main([*options, "--methods", "random", "column-known", "--seeds", "2"])
    assert [(job.method, job.seed) for job in done] == [
        (method, seed) for seed in (0, 1) for method in ("random", "column-known")
    ]
    text = document.read_text()
    assert text.endswith("<!-- end fidelity -->\n\nafter\n")
    assert "| random | 2 |" in text
    main([*options, "--report-only"])
    assert len(done) == 4
    assert document.read_text() == text
