"""``seqopt search --reactions``: the best products of reactions and building blocks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from seqopt.cli.running import (
    Plan,
    check_free,
    check_plan,
    console,
    default_folder,
    note,
    origin,
    print_best,
    print_continuation,
    show_notes,
    watched_search,
)
from seqopt.errors import InputError
from seqopt.evaluation import Direction

if TYPE_CHECKING:
    from seqopt.spaces import CombinatorialSpace


def space_of(reactions: Path | None, reagents: list[Path] | None) -> CombinatorialSpace:
    """The space of two options, with what is left out said.

    Raises:
        InputError: If one of them is missing, or nothing can be made.
    """
    from seqopt.spaces import CombinatorialSpace

    if reactions is None:
        raise InputError("--reagents goes with --reactions FILE, which says how they react: give both")
    if not reagents:
        raise InputError("--reactions needs building blocks: give --reagents FOLDER, or a file")
    with console.status("reading reactions and building blocks"):
        space = CombinatorialSpace(reactions, reagents)
        first, *notes = space.lines()
    console.print(f"[bold]{escape(first)}[/bold]")
    for text in notes:
        note(text)
    return space


def run_reagents(
    reactions: Path | None,
    reagents: list[Path] | None,
    objective_spec: str,
    plan: Plan,
    *,
    direction: Direction | None,
    transform: str | None,
    out: Path | None,
    choosing: dict[str, Any],
) -> None:
    """Search the products, and say what is happening; see ``seqopt search --help``."""
    from seqopt.campaign.run_folders import check_folder
    from seqopt.filters.conditions import checked
    from seqopt.filters.filtering import check_filters, narrow
    from seqopt.objectives import resolve_objective
    from seqopt.report.results import ROUTES_CSV
    from seqopt.strategies.designs import check_design

    started = time.perf_counter()
    show_notes()
    if objective_spec.strip().startswith("column:"):
        raise InputError("products have no columns: give a built-in score or a Python function as --objective")
    name = reactions.name.split(".")[0] if reactions is not None else "reactions"
    folder = out if out is not None else default_folder(name, objective_spec)
    check_folder(folder, plan.resume)
    objective = resolve_objective(objective_spec.strip())
    if not objective.applies_to("molecule"):
        raise InputError(f"the objective {objective.name} is for {objective.strings}, not for molecules")
    check_free(folder, (ROUTES_CSV,), plan.resume)
    check_plan(plan)
    check_design(choosing["design"])
    space = space_of(reactions, reagents)
    conditions = check_filters(checked(choosing.pop("filters")), "molecule", space, None)
    searched = narrow(space, conditions) if conditions else space
    goal = direction or objective.direction
    result = watched_search(
        objective,
        searched,
        plan,
        goal,
        folder,
        started=started,
        transform=transform,
        export=lambda: write_routes(folder, space),
        **choosing,
    )
    measured = result.evaluations[result.evaluations["status"] == "ok"]
    top = measured.sort_values("value", ascending=goal == "minimize", kind="stable").head(5)
    print_best(
        f"Best of {len(measured)} by {objective.name}",
        {"value": "right", "batch": "right", "route": "left", "string": "left"},
        [
            (f"{row.value:,.5g}", origin(row.batch), str(space.route(str(row.string))), str(row.string))
            for row in top.itertuples()
        ],
    )
    if space.failed:
        first, why = next(iter(space.failed.items()))
        note(f"{len(space.failed):,} tuples that were looked at give no product, such as {first}: {why}")
    console.print(
        f"\nHow each is made: {escape(str(folder / ROUTES_CSV))}; open {escape(str(folder / 'report.html'))} to see "
        "them; every result is in evaluations.csv there."
    )
    print_continuation(plan, len(result.evaluations))


def write_routes(folder: Path, space: CombinatorialSpace) -> None:
    """Write how every product that was measured is made, the best first.

    Raises:
        RunFolderError: If the folder holds no evaluations.
        OSError: If the file cannot be written.
    """
    import pandas as pd

    from seqopt.campaign.routes import route_cells
    from seqopt.report.results import ROUTES_CSV, ranked, read_run
    from seqopt.utils.files import write_atomically

    run = read_run(folder)
    best = ranked(run.evaluations, run.direction)
    rows = [
        {"rank": rank, "smiles": row.string, "value": row.value, **route_cells(space.route(str(row.string)))}
        for rank, row in enumerate(best.itertuples(), 1)
    ]
    write_atomically(folder / ROUTES_CSV, pd.DataFrame(rows).to_csv(index=False))
