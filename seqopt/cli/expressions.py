"""``seqopt expressions``: a formula for points."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from seqopt.objectives import FormulaSpace, Objective, parse_expression
from seqopt.objectives.formulas import CONSTANT, VARIABLE, FormulaData
from seqopt.spaces import GrammarSpace

TRIED = 500
"""Random formulas that are read before work starts."""


def run_expressions(
    data: Path,
    grammar: str,
    plan: Plan,
    *,
    x: list[str] | None,
    y: str | None,
    min_length: int,
    max_length: int,
    out: Path | None,
    constants: bool = False,
    holdout: float | None = None,
    relative: bool | None = None,
    skip_missing: bool = False,
) -> None:
    """Fit a formula to points, and say what is happening; see ``seqopt expressions --help``."""
    started = time.perf_counter()
    show_notes()
    points = read_points(data, x, y, skip_missing=skip_missing, decimal_comma=plan.decimal_comma)
    formulas = FormulaData.of(
        points,
        constant=CONSTANT if constants else None,
        relative=relative,
        holdout=holdout,
        seed=plan.seed,
    )
    folder = out if out is not None else default_folder(data.name.split(".")[0], Path(grammar).stem)
    variables, constant = formulas.error.variables, formulas.error.constant
    every = constant is None or (plan.resume and _begun_with_every_formula(folder))
    space = formula_space(grammar, min_length, max_length, variables, constant, every=every)
    check_plan(plan)
    from seqopt.campaign.run_folders import check_folder
    from seqopt.report.exports import EXPRESSIONS_CSV, write_expressions

    check_folder(folder, plan.resume)
    check_free(folder, (EXPRESSIONS_CSV,), plan.resume)
    _introduce(data, formulas, points.left_out, space)
    goal: Direction = "minimize"
    error = formulas.error
    fitted = " of the formula, its constants fitted," if constants else " of the formula"
    description = f"log(1 + MSE), with the mean squared error MSE{fitted} counted up to 1,000"
    if error.relative:
        description = f"log(1 + MSE / variance), with the mean squared error MSE{fitted} counted up to 1,000 variances"
    objective = Objective("expression_error", error, description, goal)

    def terminals(formula: str) -> int:
        return len(space.encoder.tokenizer.tokenize(formula))

    result = watched_search(
        objective,
        space,
        plan,
        goal,
        folder,
        started=started,
        settings={"subject": f"of formulas for {data.name}", "data": dict(formulas.facts)},
        export=lambda: write_expressions(folder, terminals, formulas),
    )
    table = write_expressions(folder, terminals, formulas)
    rows = table.to_dict("records")
    held_out = formulas.held_out is not None
    heading = "log(1+MSE/var)" if error.relative else "log(1+MSE)"
    print_best(
        f"Best of {len(table)} formulas for {points.y_name}",
        {"MSE": "right", heading: "right"}
        | ({"R2 held out": "right"} if held_out else {})
        | {"terminals": "right", "batch": "right", "formula": "left"},
        [
            (
                _mse(row["mse"]),
                f"{row['score']:.4f}",
                *((_share(row["held_out_r2"]),) if held_out else ()),
                str(row["terminals"]),
                origin(row["batch"]),
                row["fitted"],
            )
            for row in rows[:8]
        ],
    )
    best_of_length = sorted((row for row in rows if row["pareto"]), key=lambda row: row["terminals"])
    print_best(
        "Error against length: no shorter formula fits as well as one of these",
        {"terminals": "right", "MSE": "right", "R2": "right"}
        | ({"R2 held out": "right"} if held_out else {})
        | {"formula": "left"},
        [
            (
                str(row["terminals"]),
                _mse(row["mse"]),
                _share(row["r2"]),
                *((_share(row["held_out_r2"]),) if held_out else ()),
                row["fitted"],
            )
            for row in best_of_length
        ],
    )
    if held_out:
        _advise(best_of_length)
    console.print(
        f"\nAll of them, the best first, as text, for Python, spreadsheets and LaTeX: "
        f"{escape(str(folder / EXPRESSIONS_CSV))}; open {escape(str(folder / 'report.html'))} to look at them."
    )
    print_continuation(plan, len(result.evaluations))


def _advise(front: Sequence[Mapping[Any, Any]]) -> None:
    """Which formula of those that no shorter one fits as well as to take, by the rows that were held out."""
    judged = [row for row in front if not math.isnan(row["held_out_mse"])]
    if not judged:
        console.print("\nNone of these has a value at every row that was held out.")
        return
    least = min(judged, key=lambda row: row["held_out_mse"])
    r2 = "" if math.isnan(least["held_out_r2"]) else f", R2 {least['held_out_r2']:.4f}"
    console.print(
        f"\nThe one to take: of these, {escape(least['fitted'])} has the least error on the rows held out "
        f"(MSE {_mse(least['held_out_mse'])}{r2}; {least['terminals']} terminals)."
    )


def _begun_with_every_formula(folder: Path) -> bool:
    """Whether a run that is resumed was begun when formulas with constants were searched however they are written."""
    from seqopt.campaign.run_folders import CAMPAIGN
    from seqopt.campaign.run_settings import RUN
    from seqopt.campaign.store import CampaignStore

    if not CampaignStore.begun(folder / CAMPAIGN):
        return False
    store = CampaignStore.open(folder / CAMPAIGN)
    try:
        space = store.settings.extra.get(RUN, {}).get("settings", {}).get("space")
    finally:
        store.close()
    return isinstance(space, dict) and space.get("type") == GrammarSpace.config_name


def _introduce(data: Path, formulas: FormulaData, left_out: int, space: GrammarSpace) -> None:
    """What is fitted to what, and what the user may not expect of it."""
    error, held_out = formulas.error, formulas.held_out
    renamed = "".join(f"; formulas call {column!r} {name}" for column, name in formulas.renamed.items())
    console.print(
        f"[bold]{len(error.target):,} points[/bold] from {escape(str(data))}: {escape(formulas.target)} by "
        f"{escape(', '.join(formulas.columns.values()))}{escape(renamed)}; formulas of {space.min_length} to "
        f"{space.max_length} terminals of the grammar {escape(space.name)}"
        + (f"; {len(held_out):,} more points are held out" if held_out is not None else "")
    )
    if left_out:
        note(f"{left_out:,} row{'s are' if left_out > 1 else ' is'} left out for a missing value")
    if np.ptp(error.target) == 0:
        note(f"all values of {formulas.target} are {error.target[0]:g}: there is nothing but a constant to find")
    if error.relative:
        note(
            f"errors are divided by the variance of {formulas.target}, {np.var(error.target):.4g}"
            " (--no-relative for errors in its own unit)"
        )


def _mse(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:,.4g}"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def formula_space(
    grammar: str,
    min_length: int,
    max_length: int,
    variables: tuple[str, ...] = (VARIABLE,),
    constant: str | None = None,
    *,
    every: bool = False,
) -> GrammarSpace:
    """The formulas of a grammar in some variables; with constants, each function once.

    Args:
        grammar: The name of one of seqopt's grammars, in which the variables take the place of x and the constants that
            of the numbers; or the path of a file or ``NAME:x1,x2+c``, which are used as they are.
        min_length: Fewest terminals.
        max_length: Most terminals.
        variables: What formulas may use.
        constant: What stands for a constant; `None` for none.
        every: Search all formulas, also those that describe the same functions.

    Raises:
        InputError: For a grammar that cannot be used, that has nothing within the limits, that lacks the constants, or
            whose strings are not all formulas that `seqopt.objectives.parse_expression` reads; the message shows one
            that is not.
    """
    own = not Path(grammar).is_file() and ":" not in grammar and Path(grammar).name == grammar
    # A grammar of seqopt keeps its plain name where nothing takes the place of anything.
    if own and (variables != (VARIABLE,) or constant is not None):
        grammar = f"{grammar}:{','.join(variables)}" + (f"+{constant}" if constant is not None else "")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        space = (
            GrammarSpace(grammar, min_length, max_length)
            if constant is None or every
            else FormulaSpace(grammar, min_length, max_length, variables=variables, constant=constant)
        )
    for warning in caught:
        note(str(warning.message))
    terminals = space.rules.terminals
    if constant is not None and constant not in terminals:
        raise InputError(
            f"the grammar {space.name} has no terminal {constant!r}, which stands for a constant that is to be fitted: "
            "add it to a rule, or leave --constants out"
        )
    unused = [name for name in variables if name not in terminals]
    if unused:
        note(f"no formula of the grammar {space.name} holds {', '.join(unused)}")
    rng = np.random.default_rng(0)
    for tree in space.sample_individuals(TRIED, rng):
        try:
            parse_expression(space.to_string(tree), variables, constant=constant)
        except InputError as error:
            names = ", ".join(variables) + ("" if constant is None else f" and {constant}")
            raise InputError(
                f"the grammar {space.name} has strings that are not formulas in {names}: {error}. Formulas are made "
                f"of {names}, numbers, + - * / **, brackets, sin, cos, exp, log and sqrt: choose arithmetic or "
                "formulas, or a custom grammar with such terminals"
            ) from error
    return space
