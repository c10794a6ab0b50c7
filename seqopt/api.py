"""The whole search in one call: `maximize` and `minimize`."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from seqopt.acquisition import Acquisition
from seqopt.datasets import read_pool
from seqopt.errors import InputError
from seqopt.evaluation import Direction, ObjectiveFunction
from seqopt.models import Surrogate
from seqopt.objectives import resolve_objective
from seqopt.optimizer import Evaluation, Evaluator, Optimizer, RunFolder, Step, run_loop
from seqopt.search import Search
from seqopt.spaces import CandidateSet, PoolSpace, Space

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """Outcome of a search.

    Attributes:
        best_string: The best measured string, as its owner wrote it.
        best_value: Its value.
        evaluations: One row per evaluation: string, key, status, value, batch, predictions when it was chosen.
        steps: What happened in each step.
        optimizer: Ask it for more.
        run_folder: Where the run was kept, if it was.
    """

    best_string: str
    best_value: float
    evaluations: pd.DataFrame
    steps: list[Step] = field(repr=False)
    optimizer: Optimizer = field(repr=False)
    run_folder: Path | None = None


def maximize(
    objective: ObjectiveFunction | str,
    space: Space | Iterable[str] | str | os.PathLike[str],
    *,
    budget: int = 100,
    initial: int = 20,
    batch_size: int = 10,
    surrogate: Surrogate | str = "auto",
    acquisition: Acquisition | str = "gibbon",
    search: Search | str = "auto",
    transform: str | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    workers: int = 1,
    timeout: float | None = None,
    run_folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    settings: dict[str, Any] | None = None,
    on_step: Callable[[Step], Any] | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
    direction: Direction = "maximize",
) -> Result:
    """Find a string with a large value, with few evaluations of the objective.

    Args:
        objective: A function from a list of strings to their values, or the name of a built-in objective. An
            exception, a NaN or a time-out is a recorded failure of that string, never a crash.
        space: The allowed strings: a `seqopt.spaces.Space`, a list of candidates, a file of candidates, or the name
            of a candidate set (``"zinc250k"``).
        budget: Evaluations after the initial ones.
        initial: Random strings evaluated first.
        batch_size: Strings per batch.
        surrogate: See `Optimizer`.
        acquisition: See `Optimizer`.
        search: See `Optimizer`.
        transform: ``"log10"`` for values that span decades.
        seed: Fixes every random draw.
        executor: Runs evaluations in parallel: any `concurrent.futures.Executor`.
        workers: Without an executor, evaluations at a time.
        timeout: Seconds after which one evaluation is given up as failed.
        run_folder: Keep the run here: log, ``evaluations.csv``, ``summary.json``, plot, ``report.html``.
        resume: Continue the run in ``run_folder``.
        settings: Further facts to keep in ``summary.json``; they must be the same when the run is resumed.
        on_step: Called after each step.
        on_evaluation: Called after each evaluation.
        direction: ``"minimize"`` is what `minimize` sets.

    Returns:
        The best string, its value, and everything evaluated on the way.

    Raises:
        SeqoptError: For input that cannot be used, or an objective that never succeeds; the message says what to do.
        KeyboardInterrupt: As usual on Ctrl-C, after everything evaluated so far has been written to ``run_folder``.

    Example:
        >>> import itertools
        >>> pool = ["".join(letters) for letters in itertools.product("AB", repeat=7)]
        >>> count = lambda strings: [string.count("AB") for string in strings]
        >>> result = maximize(count, pool, budget=12, initial=4, batch_size=4)
        >>> result.best_value
        3.0
    """
    if budget < 0:
        raise InputError(f"budget is {budget}; expected 0 or more evaluations after the initial ones")
    if resume and run_folder is None:
        raise InputError("resume needs the run_folder to continue")
    score: ObjectiveFunction = resolve_objective(objective) if isinstance(objective, str) else objective
    if isinstance(space, str | os.PathLike):
        pool = read_pool(space)
        space = CandidateSet(pool.strings, kind=pool.kind, keys=pool.keys)
    optimizer = Optimizer(
        space,
        surrogate=surrogate,
        acquisition=acquisition,
        search=search,
        batch_size=batch_size,
        initial=initial,
        direction=direction,
        transform=transform,
        seed=seed,
    )
    facts = {
        "objective": getattr(score, "name", None) or getattr(score, "__qualname__", type(score).__name__),
        "direction": direction,
        "transform": transform,
        "seed": seed,
        "initial": initial,
        "batch_size": batch_size,
        "budget": budget,
        "acquisition": optimizer.acquisition.name,
        "surrogate": type(optimizer.surrogate).__name__,
        "search": type(optimizer.search).__name__,
        "candidates_per_step": getattr(optimizer.search, "candidates", None),
        "kind": optimizer.space.kind,
        "tokenizer": optimizer.space.encoder.tokenizer.name,
        "timeout": timeout,
        "workers": workers,
        **_space_facts(optimizer.space),
        **(settings or {}),
    }
    folder: RunFolder | None = None
    if run_folder is not None:
        folder = RunFolder.resume(run_folder, facts) if resume else RunFolder.create(run_folder, facts)
    steps: list[Step] = list(folder.steps) if folder else []

    def stepped(step: Step) -> None:
        steps.append(step)
        if on_step is not None:
            on_step(step)

    status = "interrupted"
    try:
        if folder is not None:
            folder.restore(optimizer)
        with Evaluator(score, executor=executor, workers=workers, timeout=timeout) as evaluator:
            run_loop(optimizer, evaluator, budget, log=folder, on_step=stepped, on_evaluation=on_evaluation)
        status = "finished"
    finally:
        if folder is not None:
            folder.close(optimizer, status)
            _write_report(folder.path)
    best = optimizer.best
    return Result(
        best.string,
        best.value,
        optimizer.observations.to_frame(),
        steps,
        optimizer,
        folder.path if folder else None,
    )


def minimize(
    objective: ObjectiveFunction | str, space: Space | Iterable[str] | str | os.PathLike[str], **options: Any
) -> Result:
    """Find a string with a small value; takes the options of `maximize`."""
    return maximize(objective, space, direction="minimize", **options)


def _write_report(folder: Path) -> None:
    """Write plot and page; results are on disk already, so a failure here must not hide them or an interruption."""
    try:
        from seqopt.report import write_report  # matplotlib is needed only here

        write_report(folder)
    except Exception as error:
        logger.warning("the report in %s could not be written (%s: %s)", folder, type(error).__name__, error)


def _space_facts(space: Space) -> dict[str, Any]:
    if not isinstance(space, PoolSpace):
        return {}
    return {"pool_size": len(space), "pool_sha256": _digest(space.keys)}


def _digest(keys: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(keys).encode("utf-8", "surrogatepass")).hexdigest()
