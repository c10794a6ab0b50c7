"""``seqopt search``: the best of a list of candidates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from seqopt.campaign.run_folders import check_folder
from seqopt.cli.clusters import check_scheduler, connected_to, on_disk_for
from seqopt.cli.large import (
    check_large,
    chosen_strategy,
    is_on_disk,
    prepared,
    write_store_rejected,
)
from seqopt.cli.running import (
    Plan,
    check_plan,
    console,
    default_folder,
    note,
    note_opposites,
    origin,
    print_best,
    show_notes,
    watched_search,
)
from seqopt.cli.variant_options import VariantOptions
from seqopt.cli.variants import run_variants
from seqopt.datasets import Pool, read_pool
from seqopt.datasets.named import kind_of
from seqopt.errors import InputError
from seqopt.evaluation import Direction
from seqopt.objectives import Fidelities, Fidelity, Objective, column_of, resolve_objective
from seqopt.strings.identity import KINDS

if TYPE_CHECKING:
    from seqopt.cli.informed import Informed
    from seqopt.search import PoolSearch


def run_search(
    source: str | None,
    objective_spec: str,
    plan: Plan,
    *,
    column: str | None,
    kind: str | None,
    direction: Direction | None,
    transform: str | None,
    standardize: bool,
    attachment_points: bool,
    strict: bool,
    decimal_comma: bool,
    candidates: int | None,
    tokenizer: str | None,
    out: Path | None,
    fidelities: Sequence[str],
    target_cost: float,
    choosing: dict[str, Any],
    large: dict[str, Any],
    variants: VariantOptions,
    informed: Informed,
) -> None:
    """Read the pool, search it, and say what is happening; see ``seqopt search --help``."""
    if source is None:
        idle = {
            "--column": column is not None,
            "--standardize": standardize,
            "--attachment-points": attachment_points,
            "--strict": strict,
            "--decimal-comma": decimal_comma and plan.known is None,
            "--candidates": candidates is not None,
            "--tokenizer": tokenizer is not None,
            "--fidelity": bool(fidelities),
            "--target-cost": target_cost != 1.0,
            "--budget-cost": plan.budget_cost is not None,
            f"--strategy {large['strategy']}": large["strategy"] != "model",
            "--prefilter": large["prefilter"] is not None,
            "--on-disk": large["on_disk"] is not None,
        }
        informed.check(pool=None, strategy="model", prefilter=None, fidelities=False, plates=False)
        found = run_variants(
            variants,
            objective_spec,
            plan,
            kind=kind,
            direction=direction,
            transform=transform,
            out=out,
            idle=idle,
            choosing=choosing,
        )
        _finish(*found)
        return
    parent = variants.sequence()
    started = time.perf_counter()
    show_notes()
    objective_spec = objective_spec.strip()
    values_column = column_of(objective_spec)
    # A folder that is taken, or an objective that cannot be loaded, is said before a large pool is read.
    folder = out if out is not None else default_folder(Path(source).name.split(".")[0], objective_spec)
    check_folder(folder, plan.resume)
    objective = None if values_column else resolve_objective(objective_spec)
    from seqopt.filters.conditions import checked
    from seqopt.filters.filtering import check_columns
    from seqopt.spaces import as_space
    from seqopt.strategies.designs import check_design

    ways = _fidelities(fidelities, objective_spec, target_cost, plan)
    _check_strings(source, kind, objective)
    informed.check(
        pool=source,
        strategy=large["strategy"],
        prefilter=large["prefilter"],
        fidelities=bool(ways),
        plates=False,
    )
    alone = informed.features is not None and plan.surrogate.strip().lower() == "features"
    check_plan(replace(plan, surrogate="auto") if alone else plan)
    check_design(choosing["design"])
    conditions = checked(choosing["filters"])
    inner_search = _parts(plan, candidates, tokenizer, transform)
    check_large(large, plan, fidelities=bool(ways))
    check_scheduler(large.get("scheduler"), plan.acquisition, large["strategy"])
    scheduler = large.get("scheduler")
    on_disk = large["on_disk"] if scheduler is None else on_disk_for(scheduler, large["on_disk"])
    if is_on_disk(source, on_disk, values=values_column is not None or ways is not None or informed.given):
        assert objective is not None
        # A scheduler that does not answer is said before a large pool is prepared.
        with connected_to(scheduler) as client:
            store = prepared(
                source,
                column=column,
                kind=kind,
                standardize=standardize,
                attachment_points=attachment_points,
                strict=strict,
                filters=conditions,
                client=client,
            )
            goal = direction or objective.direction
            note_opposites(objective, direction)
            first, *notes = store.summary().splitlines()
            console.print(f"[bold]{escape(first)}[/bold] ({time.perf_counter() - started:.0f} s)")
            for text in notes:
                note(text)
            _warn_of_budget(plan, len(store))
            result = watched_search(
                objective,
                store,
                plan,
                goal,
                folder,
                started=started,
                tokenizer=tokenizer,
                search=inner_search,
                transform=transform,
                strategy=chosen_strategy(large, plan, inner_search, store.kind, len(store)),
                client=client,
                parent=parent,
                **{**choosing, "filters": ()},
            )
        write_store_rejected(store, folder)
        _finish(result, objective.name, goal, folder)
        return
    with console.status(f"reading {escape(source)}") as status:
        pool = read_pool(
            source,
            column=column,
            kind=kind,
            strict=strict,
            standardize=standardize,
            attachment_points=attachment_points,
            values_column=values_column,
            further_values=[] if ways is None else ways.columns,
            parent=parent,
            log_values=transform == "log10",
            decimal_comma=decimal_comma,
            check_columns=partial(check_columns, conditions),
            progress=lambda done, total: status.update(f"reading molecules: {done:,} of {total:,}"),
        )
    if objective is None:
        objective = resolve_objective(objective_spec, pool)
    surrogate = None
    if informed.given:
        surrogate = informed.plan(
            plan.surrogate,
            source,
            column=column,
            kind=kind or pool.kind,
            standardize=standardize,
            parent=parent,
        )
        # What does not fit the pool is said before anything is scored.
        surrogate.for_space(as_space(pool))
    goal = direction or objective.direction
    note_opposites(objective, direction)
    _describe_pool(pool, time.perf_counter() - started)
    if ways is None:
        _warn_of_budget(plan, len(pool.strings))
    result = watched_search(
        objective,
        pool,
        plan,
        goal,
        folder,
        started=started,
        surrogate=surrogate,
        settings=None if surrogate is None else surrogate.facts,
        tokenizer=tokenizer,
        search=inner_search,
        transform=transform,
        strategy=chosen_strategy(large, plan, inner_search, pool.kind, len(pool)),
        **(choosing if ways is None else choosing | _passed(ways)),
    )
    _finish(result, objective.name, goal, folder)


def _finish(result: Any, name: str, goal: str, folder: Path) -> None:
    """Say what was found, and where it is."""
    _describe_result(result, name, goal)
    from seqopt.models import mean_effects

    for effect in mean_effects(getattr(result.optimizer.strategy.then, "surrogate", None)):
        console.print(f"\n{escape(effect.describe())}")
    console.print(
        f"\nOpen {escape(str(folder / 'report.html'))} to see them; every result is in evaluations.csv there."
    )


def _fidelities(given: Sequence[str], objective: str, target_cost: float, plan: Plan) -> Fidelities | None:
    """The cheaper ways to measure, checked before anything is read.

    Raises:
        InputError: For one that cannot be used, or a budget in cost that does not go with them.
    """
    from seqopt.acquisition import OutcomeAcquisition, resolve_acquisition
    from seqopt.campaign.automatic import check_budget

    if not given:
        if target_cost != 1.0:
            raise InputError("--target-cost goes with --fidelity column:NAME:COST: leave it out")
        check_budget(plan.budget_cost, None, plan.initial, "target")
        return None
    ways = Fidelities.of([Fidelity.parse(text) for text in given], objective, _short(objective), target_cost)
    if not isinstance(resolve_acquisition(plan.acquisition), OutcomeAcquisition):
        raise InputError(
            f"the acquisition function {plan.acquisition} does not see in which way something is measured: choose "
            "gibbon or mumbo"
        )
    from seqopt.strategies.initial import usual_beginning

    check_budget(plan.budget_cost, ways.contexts, plan.initial, usual_beginning(ways.contexts))
    for one in ways.others:
        if one.column is None:
            resolve_objective(str(one.score))
    return ways


def _passed(ways: Fidelities) -> dict[str, Any]:
    """What `seqopt.maximize` is told of the ways to measure."""
    return {"fidelities": ways.others, "target": ways.target, "target_cost": ways.target_cost}


def _short(objective: str) -> str:
    """What an objective is called where it is one of several ways to measure."""
    return (
        objective.rpartition(":")[2].strip() or objective
        if objective.startswith("column:") or ".py:" in objective
        else objective
    )


def _check_strings(source: str, kind: str | None, objective: Objective | None) -> None:
    """Refuse a kind that there is not, or an objective for others, as far as that is known before strings are read.

    Raises:
        InputError: As said.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose auto, {', '.join(KINDS)}")
    known = kind_of(source) or kind
    if objective is not None and known is not None and not objective.applies_to(known):
        raise InputError(
            f"the objective {objective.name} is for {objective.strings}, but the strings of {source} are "
            f"of kind {known!r}: choose another objective"
        )


def _parts(plan: Plan, candidates: int | None, tokenizer: str | None, transform: str | None) -> PoolSearch:
    """The inner search, after all that goes by name has been looked up: reading a large pool takes long.

    Raises:
        InputError: For what cannot be used.
    """
    from seqopt.data import resolve_transform
    from seqopt.encoding import Encoder
    from seqopt.models.registry import looks_at_symbols
    from seqopt.search import PoolSearch

    resolve_transform(transform)
    if tokenizer is not None:
        Encoder(tokenizer)
        if plan.surrogate.strip().lower() != "auto" and not looks_at_symbols(plan.surrogate):
            raise InputError(f"the surrogate {plan.surrogate} does not look at symbols: leave --tokenizer out")
    return PoolSearch(candidates)


def _warn_of_budget(plan: Plan, size: int) -> None:
    if plan.evaluations is not None and plan.initial + plan.evaluations > size:
        note(
            f"{plan.initial} initial and {plan.evaluations} further evaluations are more than the {size:,} candidates: "
            "the search ends when all have been scored. Lower --initial or --budget to score only some of them."
        )


def _describe_pool(pool: Pool, seconds: float) -> None:
    first, *notes = pool.summary().splitlines()
    console.print(f"[bold]{escape(first)}[/bold] ({seconds:.0f} s)")
    for text in notes:
        note(text)
    if pool.rejected:
        note("all rejected lines are listed in rejected.csv")


def _describe_fidelities(measured: Any, everything: Any, target: str) -> Any:
    """Say what was measured in which way, and what it cost; what was measured as the target is returned."""
    tried = everything[everything["status"].isin(["ok", "failed"])]
    parts = [
        f"{len(rows):,} by {name} ({rows['cost'].sum():,.5g})" for name, rows in tried.groupby("fidelity", sort=False)
    ]
    console.print(f"\nMeasured: {escape(', '.join(parts))}; cost {tried['cost'].sum():,.5g} in all")
    meant = measured[measured["fidelity"] == target]
    if not len(meant):
        note(f"nothing was measured by {target} yet, which is what is searched for")
    return meant


def _describe_result(result: Any, name: str, direction: str) -> None:
    measured = result.evaluations[result.evaluations["status"] == "ok"]
    contexts = result.optimizer.contexts
    if contexts is not None:
        target = contexts.target[0][1]
        measured = _describe_fidelities(measured, result.evaluations, str(target))
        if not len(measured):
            return
    top = measured.sort_values("value", ascending=direction == "minimize", kind="stable").head(5)
    called = [column for column in ("identifier", "mutations") if column in top]
    terms = [outcome.name for outcome in result.optimizer.outcomes if outcome.role == "recorded"]
    print_best(
        f"Best of {len(measured)} by {name}",
        {
            "value": "right",
            **dict.fromkeys(terms, "right"),
            "batch": "right",
            **dict.fromkeys(called, "left"),
            "string": "left",
        },
        [
            (
                f"{row['value']:,.5g}",
                *(f"{row[term]:,.5g}" for term in terms),
                origin(row["batch"]),
                # A known string that is no candidate has no identifier.
                *("" if row[column] is None or row[column] != row[column] else str(row[column]) for column in called),
                str(row["string"]),
            )
            for row in top.to_dict("records")
        ],
    )
    if result.replay is not None and result.replay.tops:
        console.print("\nHow much of the best it found (candidates that tie with the last of them included)")
        for line in result.replay.lines():
            console.print(f"  {line}")
