"""``seqopt expressions``: a formula for points."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path

import numpy as np
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
from seqopt.datasets import read_points
from seqopt.errors import InputError
from seqopt.evaluation import Direction
from seqopt.grammar import GrammarWarning
from seqopt.objectives import ExpressionError, Objective, parse_expression
from seqopt.spaces import GrammarSpace
from seqopt.utils.cache import digest

VARIABLE = "x"
"""What formulas call the inputs, whatever their column is called."""

TRIED = 500
"""Random formulas that are read before work starts."""


def run_expressions(
    data: Path,
    grammar: str,
    plan: Plan,
    *,
    x: str | None,
    y: str | None,
    min_length: int,
    max_length: int,
    out: Path | None,
) -> None:
    """Fit a formula to points, and say what is happening; see ``seqopt expressions --help``."""
    started = time.perf_counter()
    show_notes()
    points = read_points(data, x, y)
    space = formula_space(grammar, min_length, max_length)
    folder = out if out is not None else default_folder(data.name.split(".")[0], Path(grammar).stem)
    check_plan(plan)
    from seqopt.campaign.runs import check_folder
    from seqopt.report.exports import EXPRESSIONS_CSV, write_expressions

    check_folder(folder, plan.resume)
    check_free(folder, (EXPRESSIONS_CSV,), plan.resume)
    renamed = "" if points.x_name.casefold() == VARIABLE else f"; formulas call {points.x_name!r} x"
    console.print(
        f"[bold]{len(points):,} points[/bold] from {escape(str(data))}: {escape(points.y_name)} by "
        f"{escape(points.x_name)}{escape(renamed)}; formulas of {min_length} to {max_length} terminals of the grammar "
        f"{escape(space.name)}"
    )
    goal: Direction = "minimize"
    objective = Objective(
        "expression_error",
        ExpressionError({VARIABLE: points.x}, points.y),
        "log(1 + MSE), with the mean squared error MSE of the formula counted up to 1,000",
        goal,
    )

    def terminals(formula: str) -> int:
        return len(space.encoder.tokenizer.tokenize(formula))

    result = watched_search(
        objective,
        space,
        plan,
        goal,
        folder,
        started=started,
        settings={
            "subject": f"of formulas for {data.name}",
            "data": {
                "x": points.x_name,
                "y": points.y_name,
                "points": len(points),
                "sha256": digest(map(repr, [*points.x.tolist(), *points.y.tolist()])),
            },
        },
        export=lambda: write_expressions(folder, terminals),
    )
    table = write_expressions(folder, terminals)
    print_best(
        f"Best of {len(table)} formulas for {points.y_name}",
        {"MSE": "right", "log(1+MSE)": "right", "terminals": "right", "batch": "right", "formula": "left"},
        [
            (
                "1,000 or more" if math.isnan(row["mse"]) else f"{row['mse']:,.4g}",
                f"{row['score']:.4f}",
                str(row["terminals"]),
                origin(row["batch"]),
                row["expression"],
            )
            for row in table.head(8).to_dict("records")
        ],
    )
    console.print(
        f"\nAll of them, the best first: {escape(str(folder / EXPRESSIONS_CSV))}; open "
        f"{escape(str(folder / 'report.html'))} to look at them."
    )
    print_continuation(plan, len(result.evaluations))


def formula_space(grammar: str, min_length: int, max_length: int) -> GrammarSpace:
    """The formulas of a grammar.

    Raises:
        InputError: For a grammar that cannot be used, that has nothing within the limits, or whose strings are not all
            formulas that `seqopt.objectives.parse_expression` reads; the message shows one that is not.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        space = GrammarSpace(grammar, min_length, max_length)
    for warning in caught:
        note(str(warning.message))
    rng = np.random.default_rng(0)
    for tree in space.sample_individuals(TRIED, rng):
        try:
            parse_expression(space.to_string(tree), (VARIABLE,))
        except InputError as error:
            raise InputError(
                f"the grammar {space.name} has strings that are not formulas in {VARIABLE}: {error}. Formulas are made "
                f"of {VARIABLE}, numbers, + - * / **, brackets, sin, cos, exp, log and sqrt: choose arithmetic, or a "
                "custom grammar with such terminals"
            ) from error
    return space
