"""``seqopt search``: prints what happens while the library works."""

from __future__ import annotations

import logging
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from seqopt.datasets import Pool, read_pool
from seqopt.evaluation import Direction
from seqopt.objectives import Objective, resolve_objective

console = Console(highlight=False, soft_wrap=True)


def run_search(
    source: str,
    objective_spec: str,
    *,
    column: str | None,
    kind: str | None,
    direction: Direction | None,
    transform: str | None,
    standardize: bool,
    strict: bool,
    initial: int,
    batch: int,
    budget: int,
    acquisition: str,
    candidates: int | None,
    tokenizer: str | None,
    seed: int,
    out: Path | None,
    resume: bool,
    timeout: float | None,
    workers: int,
) -> None:
    """Read the pool, search it, and say what is going on; see ``seqopt search --help``."""
    started = time.perf_counter()
    logging.basicConfig(format="  note: %(message)s", level=logging.WARNING)
    objective_spec = objective_spec.strip()
    values_column = objective_spec.removeprefix("column:") if objective_spec.startswith("column:") else None
    # An objective that cannot be loaded, or a folder that is taken, is said before a large pool is read.
    objective = None if values_column else resolve_objective(objective_spec)
    folder = out if out is not None else default_folder(source, objective_spec)
    with console.status("loading the model"):
        from seqopt.api import maximize
        from seqopt.models import StringGP
        from seqopt.optimizer.run_folder import check_folder
        from seqopt.search import PoolSearch
    check_folder(folder, resume)
    with console.status(f"reading {escape(source)}") as status:
        pool = read_pool(
            source,
            column=column,
            kind=kind,
            strict=strict,
            standardize=standardize,
            values_column=values_column,
            log_values=transform == "log10",
            progress=lambda done, total: status.update(f"reading molecules: {done:,} of {total:,}"),
        )
    if objective is None:
        objective = resolve_objective(objective_spec, pool)
    goal = direction or objective.direction
    _describe_pool(pool, time.perf_counter() - started)
    _warn_of_budget(initial, budget, len(pool.strings))
    steps = -(-budget // batch)
    batches = "1 batch" if steps == 1 else f"{steps} batches"
    console.print(
        f"{goal[:-1]}ing [bold]{escape(objective.name)}[/bold]: {initial} random, then {budget} in {batches} "
        f"of {batch} by {acquisition}; seed {seed}; results in {escape(str(folder))}"
    )
    console.print(
        f"\n{'step':>7} {'scored':>7} {'failed':>7} {'best so far':>14} {'choosing':>10} {'scoring':>9} {'time':>7}"
    )
    clock = _Clock(started)

    def show(step: Any) -> None:
        best = "-" if step.best is None else f"{step.best:,.5g}"
        name = "start" if step.step == 0 else f"{step.step}/{steps}"
        console.print(
            f"{name:>7} {step.evaluations:>7} {step.failed or '':>7} {best:>14} {step.seconds['suggest']:>9.1f}s "
            f"{step.seconds['evaluate']:>8.1f}s {clock.elapsed():>7}"
        )

    try:
        with console.status("searching") as status:
            result = maximize(
                objective,
                pool,
                budget=budget,
                initial=initial,
                batch_size=batch,
                surrogate="auto" if tokenizer is None else StringGP(tokenizer=tokenizer),
                acquisition=acquisition,
                search=PoolSearch(candidates),
                transform=transform,
                seed=seed,
                workers=workers,
                timeout=timeout,
                run_folder=folder,
                resume=resume,
                settings={
                    "objective_description": objective.description,
                    "unit": objective.unit,
                    "command": command_line(),
                },
                on_step=show,
                on_evaluation=lambda evaluation: status.update(f"scored {escape(evaluation.string[:60])}"),
                direction=goal,
            )
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. Everything scored so far is in {escape(str(folder))}; go on with\n"
            f"  {escape(command_line())} --resume"
        )
        raise
    _describe_result(result, objective, goal)
    console.print(
        f"\nOpen {escape(str(folder / 'report.html'))} to see them; every result is in evaluations.csv there."
    )


def default_folder(source: str, objective: str) -> Path:
    """``runs/POOL-OBJECTIVE``, with only letters that every file system takes."""
    stem = Path(source).name.split(".")[0]
    return Path("runs") / (re.sub(r"[^A-Za-z0-9]+", "-", f"{stem}-{objective}").strip("-")[:80] or "run")


def command_line() -> str:
    """The command as it was typed, without ``--resume``, for the user to repeat."""
    return shlex.join(["seqopt", *(argument for argument in sys.argv[1:] if argument != "--resume")])


class _Clock:
    def __init__(self, started: float) -> None:
        self.started = started

    def elapsed(self) -> str:
        seconds = int(time.perf_counter() - self.started)
        return f"{seconds // 60}:{seconds % 60:02d}"


def _warn_of_budget(initial: int, budget: int, size: int) -> None:
    if initial + budget > size:
        console.print(
            f"  note: {initial} initial and {budget} further evaluations are more than the {size:,} candidates: the "
            "search ends when all have been scored. Lower --initial or --budget to be choosy."
        )


def _describe_pool(pool: Pool, seconds: float) -> None:
    first, *notes = pool.summary().splitlines()
    console.print(f"[bold]{escape(first)}[/bold] ({seconds:.0f} s)")
    for note in notes:
        console.print(f"  note: {escape(note)}")
    if pool.rejected:
        console.print("  note: all rejected lines are listed in rejected.csv")


def _describe_result(result: Any, objective: Objective, direction: str) -> None:
    measured = result.evaluations[result.evaluations["status"] == "ok"]
    top = measured.sort_values("value", ascending=direction == "minimize", kind="stable").head(5)
    table = Table(box=None, padding=(0, 1), title=None)
    for name in ("value", "batch", "string"):
        table.add_column(name, justify="left" if name == "string" else "right", overflow="fold")
    for row in top.itertuples():
        table.add_row(f"{row.value:,.5g}", "start" if row.batch == 0 else str(int(row.batch)), escape(str(row.string)))
    console.print(f"\nBest of {len(measured)} by {escape(objective.name)}")
    console.print(table)
