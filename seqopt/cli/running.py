"""What the commands that search share: saying what happens while the library works."""

from __future__ import annotations

import logging
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from seqopt.errors import InputError, ObjectiveError, RunFolderError, SeqoptError, StoppedRunError
from seqopt.utils.progress import shown_by

if TYPE_CHECKING:
    from seqopt.campaign.journal import Step
    from seqopt.evaluation import Direction
    from seqopt.objectives import Objective

logger = logging.getLogger(__name__)

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Plan:
    """The options that all searches have: see ``seqopt search --help``."""

    initial: int
    batch: int
    budget: int | None
    surrogate: str
    acquisition: str
    seed: int
    resume: bool
    retry_failed: bool
    timeout: float | None
    workers: int
    asynchronous: bool = False
    chunk_size: int | None = None
    known: Path | None = None
    stop_after_failures: int | None = 10
    isolate: bool | None = None
    budget_cost: float | None = None
    decimal_comma: bool = False

    @property
    def evaluations(self) -> int | None:
        """How many are scored after the initial ones; `None` where the cost alone is limited."""
        return 100 if self.budget is None and self.budget_cost is None else self.budget


def check_plan(plan: Plan) -> None:
    """Refuse what cannot be used before anything is read or said; loads the model's libraries.

    Raises:
        InputError: If the plan's acquisition function or surrogate is unknown, its time-out is not positive, or there
            is no file of known results.
    """
    from seqopt.evaluation.evaluator import check_limits

    check_limits(plan.workers, plan.timeout)
    if plan.known is not None and not plan.known.is_file():
        raise InputError(f"there is no file {plan.known} of known results")
    with console.status("loading the model"):
        from seqopt.acquisition import resolve_acquisition
        from seqopt.models.registry import check_surrogate
    resolve_acquisition(plan.acquisition)
    check_surrogate(plan.surrogate)


def show_notes() -> None:
    """Let what the library logs stand among the lines of a command."""
    logging.basicConfig(format="  note: %(message)s", level=logging.WARNING)


def note(text: str) -> None:
    """A remark that the user may want to act on."""
    console.print(f"  note: {escape(text)}")


def note_opposites(objective: Objective, direction: Direction | None) -> None:
    """Say where a weighted sum makes one of its scores worse than is usual, unless a direction was given."""
    from seqopt.objectives import WeightedSum, usual_direction

    if direction is not None or not isinstance(objective.function, WeightedSum):
        return
    usual, against = usual_direction(objective.function.terms)
    if against:
        note(
            f"{objective.name} is {usual[:-1]}ed, which makes {', '.join(against)} worse than it could be: turn the "
            f"sign{'s' if len(against) > 1 else ''} round if that is not meant, or give --maximize or --minimize"
        )


def default_folder(*parts: str) -> Path:
    """A folder in ``runs`` named after ``parts``, with only letters that every file system takes."""
    return Path("runs") / (safe_name("-".join(parts))[:80] or "run")


def safe_name(text: str) -> str:
    """``text`` with only letters, digits and single hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def command_line(without: str = "") -> str:
    """The command as it was typed, for the user to repeat, without ``--resume``, ``--retry-failed`` and ``without``."""
    kept: list[str] = []
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if without and argument == without:
            next(arguments, None)
        elif argument not in ("--resume", "--retry-failed") and not (without and argument.startswith(f"{without}=")):
            kept.append(argument)
    return shlex.join(["seqopt", *kept])


def check_free(folder: Path, names: tuple[str, ...], resume: bool) -> None:
    """Refuse to overwrite files in ``folder`` that no run has written.

    Raises:
        RunFolderError: If one of ``names`` is there and ``resume`` is not set.
    """
    taken = [name for name in names if (folder / name).exists()]
    if taken and not resume:
        raise RunFolderError(
            f"{folder} holds {', '.join(taken)}, which a run would overwrite: choose another folder with --out"
        )


def watched_search(
    objective: Objective,
    space: Any,
    plan: Plan,
    goal: Direction,
    folder: Path,
    *,
    started: float,
    surrogate: Any = None,
    settings: dict[str, Any] | None = None,
    export: Callable[[], Any] | None = None,
    heading: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Search, with a table of what happens.

    Args:
        objective: What is optimised.
        space: Where; anything that `seqopt.maximize` takes.
        plan: How much and how.
        goal: The direction.
        folder: Where the run is kept.
        started: When the command started, by `time.perf_counter`.
        surrogate: A surrogate in place of the plan's.
        settings: Facts to keep besides those of the objective and the command.
        export: Writes further files into the folder. It is called after each step and once more however the search
            ends, if anything was evaluated.
        heading: Lines that stand above the table.
        **options: Further options of `seqopt.maximize`.

    Returns:
        The `seqopt.api.Result`.

    Raises:
        KeyboardInterrupt: After telling the user how to continue.
        StoppedRunError: Likewise.
        ObjectiveError: If everything failed; all is in the folder.
    """
    from seqopt.api import maximize

    # A strategy decides by itself, and has its own search.
    strategy = options.get("strategy")
    if strategy is not None:
        options.pop("search", None)
    steps = None if plan.evaluations is None else -(-plan.evaluations // plan.batch)
    batches = f"{'1 batch' if steps == 1 else f'{steps} batches'} of {plan.batch}"
    costly = options.get("fidelities") is not None
    first = {"maxmin": "spread out", "medoids": "representative"}.get(str(options.get("design")), "random")
    if options.get("near") is not None and first == "random":
        first = "near the lead"
    if plan.asynchronous:
        batches = f"turn, {plan.workers} at a time"

    def begin() -> None:
        # Only now: what is wrong with known results, for instance, would stand below a table without lines.
        for line in heading:
            console.print(escape(line))
        if plan.known is not None:
            note(f"what is known from {plan.known} takes the place of as many random candidates")
        console.print(
            f"{goal[:-1]}ing [bold]{escape(objective.name)}[/bold]: {plan.initial} {first}, "
            f"then {_amount(plan, batches)}, by {_decides(plan, strategy)}; seed {plan.seed}; results in "
            f"{escape(str(folder))}"
        )
        print_heading(costly=costly)

    def show(step: Step) -> None:
        print_step(step, started, steps=steps, costly=costly)
        write()

    def write() -> None:
        if export is not None:
            try:
                export()
            except (OSError, SeqoptError) as error:
                logger.warning("%s; evaluations.csv and campaign.seqopt in %s have every result", error, folder)

    before = _written(folder)
    try:
        with console.status("searching") as status, shown_by(lambda text: status.update(escape(text) or "searching")):
            result = maximize(
                objective,
                space,
                budget=plan.evaluations,
                budget_cost=plan.budget_cost,
                initial=plan.initial,
                batch_size=plan.batch,
                surrogate=None if strategy is not None else plan.surrogate if surrogate is None else surrogate,
                acquisition=None if strategy is not None else plan.acquisition,
                seed=plan.seed,
                workers=plan.workers,
                asynchronous=plan.asynchronous,
                timeout=plan.timeout,
                chunk_size=plan.chunk_size,
                isolated=(objective.custom or options_custom(options)) if plan.isolate is None else plan.isolate,
                stop_after_failures=plan.stop_after_failures,
                run_folder=folder,
                resume=plan.resume,
                retry_failed=plan.retry_failed,
                settings={
                    "objective_description": objective.description,
                    "unit": objective.unit,
                    "command": command_line(),
                    **(settings or {}),
                },
                on_begin=begin,
                on_step=show,
                direction=goal,
                known=plan.known,
                decimal_comma=plan.decimal_comma,
                **options,
            )
        print_failures(result.failures)
        if not result.optimizer.observations.with_status("ok"):
            raise ObjectiveError(
                f"none of the {len(result.evaluations):,} evaluations gave a value, so there is no best one. Why each "
                f"failed stands in {folder / 'evaluations.csv'}. To go on, once the reason is mended:\n"
                f"  {command_line()} --resume --retry-failed"
            )
        if missed := result.optimizer.missed():
            note(missed)
        return result
    except (KeyboardInterrupt, StoppedRunError):
        console.print(
            f"\nStopped. Everything scored so far is in {escape(str(folder))}; continue with\n"
            f"  {escape(command_line())} --resume"
        )
        raise
    finally:
        # A run that was refused has written nothing, and its files are not ours to write.
        if _written(folder) != before:
            write()


def print_heading(*, costly: bool = False) -> None:
    """The heading of the table of steps."""
    console.print(
        f"\n{'step':>7} {'scored':>7}{' ' + format('cost', '>9') if costly else ''} {'failed':>7} {'best so far':>14} "
        f"{'choosing':>10} {'scoring':>9} {'time':>7}"
    )


def print_step(step: Step, started: float, *, steps: int | None = None, costly: bool = False) -> None:
    """A line of the table of steps.

    Args:
        step: What happened.
        started: When the command started, by `time.perf_counter`.
        steps: How many there will be, where that is known.
        costly: Whether there is a column of costs.
    """
    best = "-" if step.best is None else f"{step.best:,.5g}"
    name = "start" if step.step == 0 else f"{step.step}" if steps is None else f"{step.step}/{steps}"
    cost = f" {step.cost:>9,.5g}" if costly and step.cost is not None else ""
    elapsed = int(time.perf_counter() - started)
    console.print(
        f"{name:>7} {step.evaluations:>7}{cost} {step.failed or '':>7} {best:>14} {step.seconds['suggest']:>9.1f}s "
        f"{step.seconds['evaluate']:>8.1f}s {elapsed // 60:>4}:{elapsed % 60:02d}"
    )


def _decides(plan: Plan, strategy: Any) -> str:
    """What decides, in a word."""
    if hasattr(strategy, "members"):
        return f"a portfolio ({type(strategy.rule).__name__}) of {', '.join(strategy.names)}"
    return plan.acquisition if strategy is None or hasattr(strategy, "acquisition") else type(strategy).__name__


def options_custom(options: Mapping[str, Any]) -> bool:
    """Whether a way to measure is a function of the user, or a command."""
    return any(one.column is None for one in options.get("fidelities") or ())


def _amount(plan: Plan, batches: str) -> str:
    """How much is scored after the start, in words."""
    if plan.evaluations is None:
        return f"as much as a cost of {plan.budget_cost:g} in all pays for, in batches of {plan.batch}"
    limit = "" if plan.budget_cost is None else f", at a cost of {plan.budget_cost:g} at most"
    return f"{plan.evaluations} in {batches}{limit}"


REASONS = 5
"""Reasons of failures that are listed."""


def print_failures(failures: Mapping[str, int]) -> None:
    """How many evaluations failed, and why."""
    if not failures:
        return
    console.print(f"\n{sum(failures.values())} failed:")
    for reason, number in list(failures.items())[:REASONS]:
        console.print(f"  {number:>5}  {escape(reason[:200])}")
    if len(failures) > REASONS:
        console.print(f"         and {len(failures) - REASONS} other reasons, all in summary.json")


def _written(folder: Path) -> int:
    """When the table of a run was last written; 0 if there is none."""
    table = folder / "evaluations.csv"
    return table.stat().st_mtime_ns if table.exists() else 0


def print_best(title: str, columns: dict[str, str], rows: list[tuple[str, ...]]) -> None:
    """A small table.

    Args:
        title: Stands above it.
        columns: Names and whether they stand ``"left"`` or ``"right"``.
        rows: Texts.
    """
    table = Table(box=None, padding=(0, 1), title=None)
    for name, side in columns.items():
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(f"\n{escape(title)}")
    console.print(table)


def origin(batch: float) -> str:
    """The batch of an evaluation, in words."""
    return "start" if batch == 0 else str(int(batch))


def print_continuation(plan: Plan, evaluated: int) -> None:
    """How to spend more on a finished search, unless it has scored all that there is."""
    if plan.evaluations is None or evaluated < plan.initial + plan.evaluations:
        return
    console.print(f"For more, continue with a larger budget:\n  {escape(command_line('--budget'))} ", end="")
    console.print(f"--budget {max(2 * plan.evaluations, plan.batch)} --resume")
