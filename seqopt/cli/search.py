"""``seqopt search``: the best of a list of candidates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.markup import escape

from seqopt.cli.running import (
    Plan,
    check_names,
    console,
    default_folder,
    note,
    origin,
    print_best,
    show_notes,
    watched_search,
)
from seqopt.datasets import Pool, read_pool
from seqopt.evaluation import Direction
from seqopt.objectives import resolve_objective


def run_search(
    source: str,
    objective_spec: str,
    plan: Plan,
    *,
    column: str | None,
    kind: str | None,
    direction: Direction | None,
    transform: str | None,
    standardize: bool,
    strict: bool,
    decimal_comma: bool,
    candidates: int | None,
    tokenizer: str | None,
    out: Path | None,
) -> None:
    """Read the pool, search it, and say what is happening; see ``seqopt search --help``."""
    started = time.perf_counter()
    show_notes()
    objective_spec = objective_spec.strip()
    values_column = objective_spec.removeprefix("column:") if objective_spec.startswith("column:") else None
    # An objective that cannot be loaded, or a folder that is taken, is said before a large pool is read.
    objective = None if values_column else resolve_objective(objective_spec)
    folder = out if out is not None else default_folder(Path(source).name.split(".")[0], objective_spec)
    check_names(plan)
    from seqopt.campaign.runs import check_folder
    from seqopt.search import PoolSearch

    check_folder(folder, plan.resume)
    with console.status(f"reading {escape(source)}") as status:
        pool = read_pool(
            source,
            column=column,
            kind=kind,
            strict=strict,
            standardize=standardize,
            values_column=values_column,
            log_values=transform == "log10",
            decimal_comma=decimal_comma,
            progress=lambda done, total: status.update(f"reading molecules: {done:,} of {total:,}"),
        )
    if objective is None:
        objective = resolve_objective(objective_spec, pool)
    goal = direction or objective.direction
    _describe_pool(pool, time.perf_counter() - started)
    _warn_of_budget(plan, len(pool.strings))
    result = watched_search(
        objective,
        pool,
        plan,
        goal,
        folder,
        started=started,
        tokenizer=tokenizer,
        search=PoolSearch(candidates),
        transform=transform,
    )
    _describe_result(result, objective.name, goal)
    console.print(
        f"\nOpen {escape(str(folder / 'report.html'))} to see them; every result is in evaluations.csv there."
    )


def _warn_of_budget(plan: Plan, size: int) -> None:
    if plan.initial + plan.budget > size:
        note(
            f"{plan.initial} initial and {plan.budget} further evaluations are more than the {size:,} candidates: the "
            "search ends when all have been scored. Lower --initial or --budget to score only some of them."
        )


def _describe_pool(pool: Pool, seconds: float) -> None:
    first, *notes = pool.summary().splitlines()
    console.print(f"[bold]{escape(first)}[/bold] ({seconds:.0f} s)")
    for text in notes:
        note(text)
    if pool.rejected:
        note("all rejected lines are listed in rejected.csv")


def _describe_result(result: Any, name: str, direction: str) -> None:
    measured = result.evaluations[result.evaluations["status"] == "ok"]
    top = measured.sort_values("value", ascending=direction == "minimize", kind="stable").head(5)
    print_best(
        f"Best of {len(measured)} by {name}",
        {"value": "right", "batch": "right", "string": "left"},
        [(f"{row.value:,.5g}", origin(row.batch), str(row.string)) for row in top.itertuples()],
    )
