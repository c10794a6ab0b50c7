"""The whole search in one call: `maximize` and `minimize`."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from seqopt.acquisition import Acquisition
from seqopt.campaign.automatic import check_budget, drive, useful_workers
from seqopt.campaign.campaign import Campaign
from seqopt.campaign.candidates import in_order_of, kept_candidates
from seqopt.campaign.correcting import RETRY
from seqopt.campaign.creating import refuse_lead
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.failures import STOP_AFTER, failures_in
from seqopt.campaign.journal import Step
from seqopt.campaign.known import KnownResults, digest_of, keep_known, read_known
from seqopt.campaign.parents import (
    INCLUDED,
    PARENT,
    checked_parent_of,
    hint_at_parent,
    parent_of_space,
    with_mutations,
    written_out,
)
from seqopt.campaign.parts import kept_parts, named_surrogate
from seqopt.campaign.rows import NewMeasurement
from seqopt.campaign.run_settings import run_settings
from seqopt.campaign.runs import RunFolder
from seqopt.campaign.store import CampaignStore
from seqopt.data import DEFAULT_TRANSFORM, Contexts, Outcome, Query, resolve_transform
from seqopt.data.replay import Replay
from seqopt.datasets import Pool, PoolStore, read_pool, write_rejected
from seqopt.datasets.pool_columns import written_column
from seqopt.encoding import Tokenizer
from seqopt.errors import InputError
from seqopt.evaluation import Direction, ObjectiveFunction, QueryObjective
from seqopt.filters.conditions import ColumnCondition, Filter, checked, to_json
from seqopt.filters.filtering import check_columns, check_filters, library_cells, narrow, narrowed_pool, try_filters
from seqopt.filters.listed import read_list
from seqopt.models import PlannedSurrogate, Surrogate
from seqopt.models.contexts import coregionalized, hierarchical
from seqopt.models.registry import looks_at_symbols
from seqopt.objectives import Fidelities, Fidelity, Objective, Term, WeightedSum, column_of, resolve_objective
from seqopt.objectives.weighted import Rows
from seqopt.optimizer import Evaluation, Evaluator, Optimizer
from seqopt.optimizer.replayed import replayed
from seqopt.report.descriptions import describe_result
from seqopt.scorers.limits import BatchLimits
from seqopt.search import Search
from seqopt.search.protocols import AnySpace
from seqopt.spaces import CandidateSet, EvolvableSpace, PoolSpace, Space, StoredPool, as_space
from seqopt.strategies import Design, ModelBased, MultiFidelity, Near, PlateSearch, Strategy
from seqopt.strategies.initial import usual_beginning
from seqopt.utils.arguments import checked_integer
from seqopt.utils.cache import digest
from seqopt.utils.config import NotConfigurableError, described
from seqopt.utils.progress import doing
from seqopt.utils.shown import Tabulated, register_renderer

logger = logging.getLogger(__name__)

BAYES = "-bayes"
"""Ends the name of a surrogate that averages over its parameters."""

UNLIMITED = sys.maxsize // 2
"""A number of evaluations that nobody reaches."""

GivenFidelities = Mapping[str, float | tuple[Callable[[list[str]], Any] | str, float] | Fidelity] | Sequence[Fidelity]
"""Cheaper ways to measure: see `maximize`."""


@dataclass(frozen=True)
class Recommendation:
    """A measured string, and what is predicted of it after a search.

    Attributes:
        string: As its owner wrote it.
        predicted_mean: Predicted value of the objective, from all results, in their units.
        predicted_std: Standard deviation of that prediction, the noise of a measurement left out.
        values: All that was measured of it, in order; where there are several ways to measure, as its target: empty if
            it was only measured in other ways.
    """

    string: str
    predicted_mean: float
    predicted_std: float
    values: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Result(Tabulated):
    """Outcome of a search.

    Attributes:
        best_string: The string of the best measured value, as its owner wrote it. Where there are several ways to
            measure, values of the target count; empty if there is none yet, as where everything failed.
        best_value: That value, as it was measured: where measurements are noisy the luckiest of all, so better than a
            second measurement of the string will be on average. `recommend` corrects for that. NaN if there is none.
        evaluations: One row per evaluation: string, key, status, value, batch, predictions when it was chosen; where a
            parent is known, what each changes of it (``mutations``).
        steps: What happened in each step.
        optimizer: Ask it for more.
        run_folder: Where the run was kept, if it was.
        replay: Of a column of known results, how much of the best was found, beside random search; else `None`.
    """

    best_string: str
    best_value: float
    evaluations: pd.DataFrame
    steps: list[Step]
    optimizer: Optimizer
    run_folder: Path | None = None
    replay: Replay | None = None

    @property
    def failures(self) -> dict[str, int]:
        """How many evaluations failed for each reason, the commonest first; ``...`` stands for the string."""
        return failures_in(self.evaluations)

    def to_pandas(self) -> pd.DataFrame:
        """`evaluations`, as a table that may be changed."""
        return self.evaluations.copy()

    def recommend(self) -> Recommendation:
        """The measured string of the best posterior mean: the answer of a search whose measurements are noisy.

        Where there are several ways to measure, it is the mean of the target; the string may have been measured in
        another way only. A model is fitted to all results (under a transform, to what it makes of the values). Without
        noise the string is `best_string`, or one that the model cannot tell from it.

        Raises:
            ModelError: If fewer than two values were measured.

        Example:
            >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
            >>> result = maximize(lambda strings: [s.count("T") for s in strings], pool, initial=4, budget=4)
            >>> result.recommend().string
            'TTTT'
        """
        row = self.optimizer.recommend()
        mean, std = self.optimizer.predict([row.string])
        measured = self.optimizer.observations.with_status("ok")
        contexts = self.optimizer.contexts
        meant = None if contexts is None or contexts.latent else contexts.target
        values = tuple(
            other.value for other in measured if other.key == row.key and (meant is None or other.context == meant)
        )
        return Recommendation(row.string, float(mean[0]), float(std[0]), values)


def maximize(
    objective: ObjectiveFunction | QueryObjective | str,
    space: AnySpace | Pool | PoolStore | Iterable[Any] | str | os.PathLike[str],
    *,
    budget: int | None = None,
    budget_cost: float | None = None,
    initial: int = 20,
    design: Design | str = "auto",
    include: Sequence[str] | str | os.PathLike[str] = (),
    batch_size: int = 10,
    limits: BatchLimits | None = None,
    near: Near | None = None,
    filters: Iterable[Filter | Mapping[str, Any]] = (),
    surrogate: Surrogate | PlannedSurrogate | str | None = None,
    tokenizer: str | Tokenizer | None = None,
    acquisition: Acquisition | str | None = None,
    search: Search[AnySpace] | str | None = None,
    strategy: Strategy | None = None,
    transform: str | None = DEFAULT_TRANSFORM,
    contexts: Contexts | None = None,
    fidelities: GivenFidelities | None = None,
    target: str | None = None,
    target_cost: float = 1.0,
    plates: Sequence[str] | bool | None = None,
    constraints: Sequence[Outcome] = (),
    seed: int = 0,
    allow_repeats: bool = False,
    executor: Executor | None = None,
    client: Any = None,
    workers: int = 1,
    asynchronous: bool = False,
    timeout: float | None = None,
    chunk_size: int | None = None,
    isolated: bool = False,
    stop_after_failures: int | None = STOP_AFTER,
    run_folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    settings: dict[str, Any] | None = None,
    on_step: Callable[[Step], Any] | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
    direction: Direction = "maximize",
    known: KnownResults | None = None,
    parent: str | None = None,
    decimal_comma: bool = False,
    on_begin: Callable[[], Any] | None = None,
) -> Result:
    """Find a string with a large value, with few evaluations of the objective.

    Args:
        objective: A function from a list of strings to a list of their values (it is called with one string at a time,
            if ``chunk_size`` does not say otherwise), or what `resolve_objective` takes: the name of a built-in
            objective, ``"module:function"``, ``"column:NAME"`` of the file of candidates, or a weighted sum of such,
            ``"mfe - 5*log_cai:human"``, whose scores are columns of `Result.evaluations`, too. An exception, a NaN or a
            time-out is a recorded failure of that string, never a crash.
        space: The allowed strings: a space of `seqopt.spaces` (strings over an alphabet, genes of a protein, strings of
            a grammar, ...) or a custom one; candidates as `seqopt.spaces.CandidateSet` takes them (a list, a Series,
            the column of strings of a DataFrame, RDKit molecules); a file of candidates or the name of a candidate set
            (``"zinc250k"``), or what `seqopt.datasets.read_pool` returned for one.
        budget: Evaluations after the initial ones; 100 by default, or as many as ``budget_cost`` pays for.
        budget_cost: What all measurements of the run may cost together, the initial ones included, where there are
            several ways to measure. The run ends when what is left is less than the dearest way costs; it is never
            exceeded. Known results cost nothing.
        initial: Strings evaluated first; each result in ``known`` takes the place of one.
        design: How these are chosen: see `Optimizer`.
        include: Strings that are evaluated first of all: a list of candidates, or a file of them.
        batch_size: Strings per batch.
        limits: How much alike the strings of one batch may be: see `seqopt.BatchLimits`.
        near: A lead to search near, further if it pays: see `seqopt.Near`.
        filters: Conditions on what may be evaluated: see `seqopt.filters`. Those on columns are for files.
        surrogate: See `Optimizer`.
        tokenizer: How candidates are split into symbols; see `seqopt.spaces.CandidateSet`. With it, the surrogate
            ``"auto"`` is ``"ssk"``, which looks at symbols. A space has its own.
        acquisition: See `Optimizer`.
        search: See `Optimizer`.
        strategy: Decides instead of these three; see `Optimizer`.
        transform: What the model sees of the values: ``"auto"``, which learns it in each step, ``"log10"`` for values
            that span decades, or `None`: see `seqopt.optimizer.Optimizer`.
        contexts: The ways in which strings can be measured, where there are several; see `seqopt.data.Contexts`. The
            objective is then given a list of `seqopt.data.Query`: the string is its ``key``, and ``get`` says how it is
            to be measured. The best value is one of the target.
        fidelities: Cheaper ways to measure, by name: a pair of a function (or ``"column:NAME"``) and what a measurement
            costs, ``{"docking": (dock, 0.01)}``. Then ``objective`` is that of the target. Where ``objective`` takes
            queries and measures in all ways, give costs alone: ``{"docking": 0.01}``. It is a short form of
            ``contexts`` and ``strategy=MultiFidelity()``; the strings of the initial design are measured in the ways
            that cost less than the target (in all where none does). Where a column has no number, the string is not
            measured in that way.
        target: What the target is called: by default as its column, or ``"target"``.
        target_cost: What a measurement of the target costs.
        plates: Whether values depend on a plate (a day, a batch of reagents, a random seed), which may shift all of
            them: `True`, or the names of the plates that there are. Then ``objective`` is given queries, whose
            ``get("plate")`` says on which plate a string is to be measured; new plates are opened as ``P1``, ``P2``,
            ... What is searched for is what plates have in common. Short for ``contexts=Contexts.of_plates(...)``.
        constraints: What the objective measures besides the value that is optimised, each an `seqopt.data.Outcome` of
            the role ``"constraint"``. It then returns a row of numbers for each string, its own value first; NaN for
            what was not measured.
        seed: Fixes every random draw.
        allow_repeats: Whether strings that were evaluated may be evaluated again, for objectives with noise; see
            `Optimizer`.
        executor: Runs evaluations in parallel: any `concurrent.futures.Executor`.
        client: A `distributed.Client` of a Dask cluster, whose workers evaluate and, where ``space`` is a pool on disk
            or files of candidates, look at these: see `seqopt.distributed.spread_pool`. What is chosen is the same.
        workers: Evaluations at a time; an executor is given whole batches, and decides for itself.
        asynchronous: Do without batches: whenever one of the ``workers`` is free, it is given a string at once, chosen
            given the results so far and what the others are busy with. The model is then fitted each time, and the run
            depends on the order in which results come. ``batch_size`` is how many results make a step of the reports.
            An executor is given at most ``workers`` strings at a time.
        timeout: Seconds after which one evaluation is given up as failed; a chunk has as many times that as it has
            strings.
        chunk_size: The largest number of strings in one call of ``objective``, for those that score a list faster than
            its strings one by one; by default the objective's attribute ``chunk_size``, or 1 if it has none. A string
            that fails harms no other: see `seqopt.evaluation.Evaluator`. Without batches a free worker is given so many
            strings.
        isolated: Evaluate in a separate process even if there is one worker and no time-out, so that an objective that
            crashes (a segmentation fault, ``os._exit``, memory that runs out) is the failure of a string and not the
            end of this process. By default a function is called in this process: it may be a closure, keep what it
            likes between calls, and needs no ``if __name__ == "__main__"`` in the script. (The commands isolate custom
            functions by default.)
        stop_after_failures: Stop with an error after so many failures in a row, all for the same reason; `None` for
            never. A run that is resumed counts anew.
        run_folder: Keep the run here: the campaign file ``campaign.seqopt``, and what is exported from it,
            ``evaluations.csv``, ``summary.json``, plot, ``report.html``.
        resume: Continue the run in ``run_folder``. The space must be the same, by its description
            (`seqopt.utils.config.described`: its alphabet, its protein, its grammar, ...). To a pool candidates may
            have been added, and removed, in any order; what was evaluated stays measured, and a warning says what has
            changed.
        retry_failed: Of a run that is resumed, evaluate again first what only failed so far. These evaluations come on
            top of the ``budget``.
        settings: Further facts to keep in ``summary.json``; they must be the same when the run is resumed.
        on_step: Called after each step.
        on_evaluation: Called after each evaluation.
        direction: ``"minimize"`` is what `minimize` sets.
        known: Results that are known already: a table with a column of strings and one of values (called as the
            objective, or ``value``), the path of such a file, or a mapping from strings to values. Several results of a
            string are replicates. They are told before the first string is asked for and count towards ``initial``, not
            towards ``budget``; none of their strings is evaluated again unless ``allow_repeats`` is set. A run is
            resumed with the same ones.
        parent: The string of which the candidates are variants, such as a wild type: results are named by what they
            change of it (``S121E/D57G``), and a file of candidates and known results may be written so. Spaces with a
            parent need none.
        decimal_comma: Whether numbers in a file of candidates and in ``known`` are written ``6,5``. Known results of
            candidates whose file is so need not say it, and may have points in a table with commas between its cells.
        on_begin: Called when everything has been checked and read, before the first string is evaluated.

    Returns:
        The best string, its value, and everything evaluated on the way.

    Raises:
        SeqoptError: For input that cannot be used; the message says what to do.
        StoppedRunError: If the objective never succeeds, fails for the same reason again and again (see
            ``stop_after_failures``) or does not return one value for each string. What was measured is in
            ``run_folder``; the traceback of the objective is a note of the error.
        KeyboardInterrupt: As usual on Ctrl-C, after everything evaluated so far has been written to ``run_folder``.

    Example:
        >>> import itertools
        >>> pool = ["".join(letters) for letters in itertools.product("AB", repeat=7)]
        >>> count = lambda strings: [string.count("AB") for string in strings]
        >>> result = maximize(count, pool, budget=12, initial=4, batch_size=4)
        >>> result.best_value
        3.0
    """
    counted = 100 if budget is None and budget_cost is None else UNLIMITED if budget is None else budget
    counted = checked_integer("budget", counted, 0, "expected an integer of evaluations after the initial ones")
    ways = None if fidelities is None else Fidelities.of(fidelities, objective, target, target_cost)
    if ways is None and (target is not None or target_cost != 1.0):
        raise InputError("target and target_cost go with fidelities={'docking': (dock, 0.01)}: leave them out")
    if ways is not None:
        if contexts is not None:
            raise InputError("fidelities is a short form of contexts: give one of them")
        contexts = ways.contexts
    if plates is not None and plates is not False:
        if contexts is not None:
            raise InputError("plates is a short form of contexts: give one of them, or fidelities")
        contexts = Contexts.of_plates(known=() if plates is True else checked_plates(plates))
    short = ways is not None or (contexts is not None and contexts.open is not None)
    check_budget(budget_cost, contexts, initial, "target" if ways is None else usual_beginning(contexts))
    if resume and run_folder is None:
        raise InputError("resume needs the run_folder to continue")
    if retry_failed and not resume:
        raise InputError("retry_failed goes with resume: a new run has not failed yet")
    if client is not None:
        from seqopt.distributed.spreading import for_client

        space, executor = for_client(space, client, executor, objective)
    if asynchronous and executor is not None and workers < 2:
        raise InputError("an asynchronous run needs to know how many evaluations the executor makes at once: workers=4")
    wanted = checked(filters)
    if isinstance(space, str | os.PathLike):
        column = column_of(objective) if isinstance(objective, str) else None
        with doing(f"reading {os.fspath(space)}"):
            space = read_pool(
                space,
                values_column=column,
                log_values=transform == "log10",
                further_values=[] if ways is None else ways.columns,
                parent=parent,
                decimal_comma=decimal_comma,
                check_columns=partial(check_columns, wanted),
            )
    pool = space if isinstance(space, Pool) else None
    score: ObjectiveFunction | QueryObjective = (
        resolve_objective(objective, pool) if isinstance(objective, str) else objective
    )
    unavailable: frozenset[Query] = frozenset()
    if ways is not None and not ways.by_query:
        score = ways.objective(score, pool)  # type: ignore[arg-type]
        if pool is not None:
            unavailable = ways.unavailable(pool)
            for remark in ways.remarks(pool):
                logger.warning("%s", remark)
    if pool is not None and pool.rejected:
        logger.info(pool.summary())
    if isinstance(space, PoolStore):
        space, tokenizer = cast(Any, StoredPool(space, tokenizer=tokenizer)), None
    if isinstance(score, Objective) and isinstance(space, Pool | Space):
        _check_kind(score, space)
    whole = as_space(cast(Any, space), tokenizer=tokenizer)
    # The space in which is searched knows its own parent; of a pool and of other strings it is a fact of the run.
    if parent is not None:
        parent = checked_parent_of(parent, whole)
    said = parent or parent_of_space(pool)
    parent = said or parent_of_space(whole)
    if client is not None and isinstance(whole, StoredPool):
        from seqopt.distributed.spreading import spread_pool

        spread_pool(whole, client)
    candidates, filtered = _narrowed(whole, wanted, pool, seed)
    if resume and run_folder is not None and type(candidates) is CandidateSet:
        before = kept_candidates(Path(run_folder))
        candidates = candidates if before is None else in_order_of(before, candidates)
    if isinstance(include, str | os.PathLike):
        include = read_list(include, variants=parent is not None)
    include = written_out(include, parent_of_space(whole) or parent, whole.kind, INCLUDED)
    for string in include if filtered else ():
        if whole.contains(string) and not candidates.contains(string):
            raise InputError(f"{string!r} is to be included in the first batch, and does not pass the filters")
    if short and contexts is not None and strategy is None:
        strategy = context_strategy(surrogate, acquisition, search, candidates, contexts)
        surrogate = acquisition = search = None
    if near is not None:
        refuse_lead(strategy=strategy is not None, contexts=contexts is not None, transform=transform)
        if isinstance(surrogate, PlannedSurrogate):
            raise InputError(
                "a lead has a prior mean of its own, which does not go together with features and other prior means "
                "yet: leave near or the plan out"
            )
        like = "ssk" if tokenizer is not None and surrogate in (None, "auto") else surrogate
        surrogate = near.surrogate(like, candidates)
    unrepeatable, parts = "" if tokenizer is None else "it has its own tokenizer", {}
    given: dict[str, Any] = {
        "surrogate": surrogate,
        "acquisition": acquisition,
        "search": search,
        "strategy": strategy,
    }
    try:
        parts = kept_parts(given)
    except NotConfigurableError as error:
        unrepeatable = unrepeatable or str(error)
    # What hinders suggestions by hand, but not predictions.
    by_hand = ""
    if not isinstance(design, str):
        by_hand = "its initial design was given as an object"
    elif filtered:
        by_hand = "it filters its candidates"
    elif pool is not None and pool.values is not None:
        by_hand = "its values are looked up in a column"
    elif ways is not None:
        by_hand = "its first strings are measured in several ways, and some perhaps cannot be"
    if tokenizer is not None and strategy is None and not (surrogate is not None and not isinstance(surrogate, str)):
        if surrogate is None or surrogate.strip().lower() == "auto":
            given["surrogate"] = "ssk"
        elif not looks_at_symbols(surrogate):
            raise InputError(f"the surrogate {surrogate} does not look at symbols: leave the tokenizer out")
    name = str(getattr(score, "name", None) or getattr(score, "__qualname__", type(score).__name__))
    terms = _terms(score) if contexts is None and not constraints else ()
    recorded = [Outcome(term.objective.name, term.objective.direction, role="recorded") for term in terms]
    optimizer = Optimizer(
        candidates,
        **given,
        batch_size=batch_size,
        initial=initial,
        design=design,
        include=include,
        limits=limits,
        outcomes=(Outcome(name, direction, transform=resolve_transform(transform)), *constraints, *recorded),
        contexts=contexts,
        unavailable=unavailable,
        initial_contexts="target" if ways is None else usual_beginning(contexts),
        seed=seed,
        allow_repeats=allow_repeats,
    )
    measured = [] if known is None else _read_known(known, optimizer, name, pool, parent, decimal_comma)
    values = _known_values(pool, optimizer.space)
    facts = {
        "objective": name,
        "direction": direction,
        "transform": transform,
        "seed": seed,
        "initial": initial,
        "batch_size": batch_size,
        "budget": None if counted == UNLIMITED else counted,
        **({} if budget_cost is None else {"budget_cost": float(budget_cost)}),
        "acquisition": optimizer.chosen_by,
        **_part_facts(optimizer, strategy),
        "kind": optimizer.space.kind,
        "tokenizer": optimizer.space.encoder.name,
        "timeout": timeout,
        "workers": workers,
        # Left out where it is the default, so that runs from before there was this setting can be resumed.
        **({"allow_repeats": True} if allow_repeats else {}),
        **_choosing_facts(optimizer, filtered),
        **({} if near is None else {"near": near.config()}),
        **({"asynchronous": True} if asynchronous else {}),
        **({} if contexts is None else {"contexts": contexts.config()}),
        **({} if ways is None else {"fidelities": ways.described()}),
        **({"constraints": [outcome.config() for outcome in constraints]} if constraints else {}),
        **({"terms": [[one.objective.name, one.weight, one.objective.unit] for one in terms]} if terms else {}),
        **({"known": {"results": len(measured), "sha256": digest_of(measured)}} if measured else {}),
        **({} if said is None or parent_of_space(whole) == said else {PARENT: said}),
        **_space_facts(optimizer.space),
        **(_pool_facts(pool, values) if pool is not None else {}),
        **(settings or {}),
    }
    # Those that are known beyond the initial ones are not part of the budget.
    results = initial + counted + max(0, len(measured) - initial)
    campaign = run_settings(
        optimizer,
        facts,
        surrogate=named_surrogate(optimizer, surrogate),
        pool=pool,
        parts=parts,
        not_reproducible_because=unrepeatable or by_hand,
        no_predictions_because=unrepeatable,
    )
    evaluating = Evaluator(
        Rows(cast(WeightedSum, cast(Objective, score).function)) if terms else score,
        executor=executor,
        workers=useful_workers(workers, results if asynchronous else max(initial, batch_size)),
        timeout=timeout,
        chunk_size=chunk_size,
        columns=len(optimizer.outcomes),
        isolated=isolated,
    )
    driven = partial(
        drive,
        evaluator=evaluating,
        results=results,
        executor=executor is not None,
        asynchronous=asynchronous,
        initial_at_once=True,
        explained=False,
        stop_after_failures=stop_after_failures,
        budget_cost=None if budget_cost is None else float(budget_cost),
    )
    steps: list[Step] = []
    with evaluating:
        if run_folder is None:
            with CampaignStore.in_memory(campaign) as store:
                keep_known(store, measured)
                if on_begin is not None:
                    on_begin()
                listening = _all_of(steps.append, on_step)
                driven(Campaign(store, optimizer=optimizer), on_evaluation=on_evaluation, on_step=listening)
        else:
            status = "interrupted"
            # Of a pool on disk the description tells whether it is the same: it is not written down again.
            kept = isinstance(optimizer.space, PoolSpace) and not isinstance(optimizer.space, StoredPool)
            listed = cast(PoolSpace, optimizer.space).keys if kept else None
            folder = RunFolder.begin(run_folder, facts, campaign, resume=resume, candidates=listed)
            folder.known_values = values
            try:
                with folder.watched():
                    if pool is not None and pool.rejected:
                        write_rejected(pool, folder.path / "rejected.csv")
                    keep_known(folder.store, measured)
                    running = folder.campaign(optimizer)
                    if retry_failed:
                        _try_again(running)
                    again = sum(row.acquisition == RETRY for row in folder.store.suggestions())
                    if on_begin is not None:
                        on_begin()
                    driven(
                        running,
                        results=results + again,
                        on_evaluation=_all_of(folder.evaluated, on_evaluation),
                        on_step=_all_of(folder.stepped, on_step),
                    )
                status = "finished"
            finally:
                folder.close(status)
                if len(optimizer.observations):
                    _write_report(folder.path)
            steps = folder.steps()
    best = optimizer.best_of(optimizer.observations.rows)
    if best is None and optimizer.observations.with_status("ok"):
        logger.warning("nothing was measured as the target yet: recommend() says which string is predicted to be best")
    elif best is None and run_folder is None:
        logger.warning("no evaluation gave a value: the failures of the result say why")
    return Result(
        "" if best is None else best.string,
        math.nan if best is None else best.value,
        with_mutations(optimizer.to_pandas(), parent),
        steps,
        optimizer,
        None if run_folder is None else Path(run_folder),
        None if values is None else replayed(optimizer, values),
    )


class SearchOptions(TypedDict, Generic[AnySpace], total=False):
    """The options of `maximize`, for functions that pass them on; `maximize` says what each means."""

    budget: int | None
    budget_cost: float | None
    initial: int
    design: Design | str
    include: Sequence[str] | str | os.PathLike[str]
    batch_size: int
    limits: BatchLimits | None
    near: Near | None
    filters: Iterable[Filter | Mapping[str, Any]]
    surrogate: Surrogate | PlannedSurrogate | str | None
    tokenizer: str | Tokenizer | None
    acquisition: Acquisition | str | None
    search: Search[AnySpace] | str | None
    strategy: Strategy | None
    transform: str | None
    contexts: Contexts | None
    fidelities: GivenFidelities | None
    target: str | None
    target_cost: float
    plates: Sequence[str] | bool | None
    constraints: Sequence[Outcome]
    seed: int
    allow_repeats: bool
    executor: Executor | None
    client: Any
    workers: int
    asynchronous: bool
    chunk_size: int | None
    isolated: bool
    stop_after_failures: int | None
    timeout: float | None
    run_folder: str | os.PathLike[str] | None
    resume: bool
    retry_failed: bool
    settings: dict[str, Any] | None
    on_step: Callable[[Step], Any] | None
    on_evaluation: Callable[[Evaluation], Any] | None
    known: KnownResults | None
    parent: str | None
    decimal_comma: bool
    on_begin: Callable[[], Any] | None


def minimize(
    objective: ObjectiveFunction | QueryObjective | str,
    space: AnySpace | Pool | PoolStore | Iterable[Any] | str | os.PathLike[str],
    **options: Unpack[SearchOptions[AnySpace]],
) -> Result:
    """Find a string with a small value; takes the options of `maximize`, and raises what it raises.

    Example:
        >>> minimize(lambda strings: [len(string) for string in strings], ["aaaa", "aa", "a"], initial=2).best_value
        1.0
    """
    return maximize(objective, space, direction="minimize", **options)


T = TypeVar("T")


def _terms(objective: object) -> tuple[Term, ...]:
    """The scores of a weighted sum, which are kept beside it."""
    total = objective.function if isinstance(objective, Objective) else None
    return total.terms if isinstance(total, WeightedSum) else ()


def context_strategy(
    surrogate: Surrogate | PlannedSurrogate | str | None,
    acquisition: Acquisition | str | None,
    search: Any,
    space: Space,
    contexts: Contexts,
) -> Strategy:
    """What decides where strings can be measured in several ways.

    Args:
        surrogate: Of queries; or the name of one of `seqopt.models.SURROGATES`, whose kernel on strings is taken.
        acquisition: One that sees measurements: ``"gibbon"`` by default, or ``"mumbo"``.
        search: See `Optimizer`.
        space: Where is searched.
        contexts: The ways to measure.

    Raises:
        InputError: For a surrogate without a kernel on strings, or an acquisition function that sees no measurements.
    """
    if isinstance(surrogate, PlannedSurrogate):
        raise InputError(
            "features and prior means go with one way to measure yet: leave the plan out, or fidelities and plates "
            "(strings can be measured as the target alone)"
        )
    learner: Any = surrogate
    if isinstance(surrogate, str):
        name = surrogate.strip().lower()
        averaged = name.endswith(BAYES)
        made = hierarchical if contexts.open is not None else coregionalized
        learner = None if name == "auto" else made(space, contexts, name.removesuffix(BAYES), averaged)
    decides = PlateSearch if contexts.open is not None else MultiFidelity
    chosen: Any = acquisition or "gibbon"  # the strategy refuses what sees no measurements
    return decides(learner, chosen, search or "auto")


def checked_plates(plates: object) -> list[str]:
    """Names of plates.

    Raises:
        InputError: If they are no list of texts, or one is given twice.
    """
    if isinstance(plates, str) or not isinstance(plates, Sequence):
        raise InputError(f"plates is {plates!r}; expected True, or a list of the names of plates")
    for name in plates:
        if not isinstance(name, str):
            raise InputError(f"a plate is called {name!r}; expected a text")
    if len(set(plates)) < len(plates):
        raise InputError(f"a plate is given twice: {', '.join(plates)}")
    return list(plates)


def _try_again(campaign: Campaign) -> None:
    """Suggest again what only failed so far."""
    try:
        found = campaign.retry_failed()
    except CampaignError as error:
        logger.info("%s", error)
        return
    logger.info("%d strings that failed are evaluated again", len(found))


def _all_of(*listeners: Callable[[T], Any] | None) -> Callable[[T], None]:
    """One listener in place of several, some of which may not be there."""

    def tell(what: T) -> None:
        for listener in listeners:
            if listener is not None:
                listener(what)

    return tell


def _narrowed(space: Space, wanted: list[Filter], pool: Pool | None, seed: int) -> tuple[Space, list[Filter]]:
    """What filters leave of a space, and the filters as they fit it.

    Raises:
        InputError: For filters that do not fit it, or that leave nothing; it says which removes how many.
    """
    if not wanted:
        return space, []
    if isinstance(space, StoredPool):
        raise InputError(
            "the filters of a pool on disk are asked while it is prepared: give them to seqopt.datasets.prepare_pool "
            "(sieve=seqopt.filters.Sieve(...)), or read the pool into memory (seqopt.datasets.read_pool)"
        )
    columns = None
    if pool is not None and any(isinstance(item, ColumnCondition) for item in wanted):
        facts = {"kind": pool.kind, "decimal_comma": pool.decimal_comma}
        columns = {"path": str(pool.source), "column": pool.column} | facts
    wanted = check_filters(
        wanted, space.kind, space, library_cells(columns), standardize=bool(getattr(space, "standardize", False))
    )
    if not isinstance(space, PoolSpace):
        report = try_filters(space, wanted, seed)
        logger.warning("%s", report.lines()[0])
        return narrow(space, wanted), wanted
    cells = library_cells(columns, [space[index] for index in range(len(space))])
    allowed, report = narrowed_pool(space, wanted, cells)
    if allowed is None:
        raise InputError(f"{report.refusal()}. Loosen or leave out one of them")
    logger.warning("%s", "; ".join(line.strip() for line in report.lines()))
    return allowed, wanted


def _choosing_facts(optimizer: Optimizer, filters: list[Filter]) -> dict[str, Any]:
    """What narrows a choice; left out where nothing does, so that runs from before there was this can be resumed."""
    initial = optimizer.strategy
    found: dict[str, Any] = {}
    if initial.design_name != "random":
        found["design"] = described(initial.design) if not isinstance(initial.design, str) else initial.design_name
    if initial.include:
        found["include"] = list(dict.fromkeys(map(optimizer.space.key, initial.include)))
    if optimizer.limits is not None:
        found["limits"] = optimizer.limits.config()
    if filters:
        found["filters"] = to_json(filters)
    return found


def _read_known(
    known: KnownResults,
    optimizer: Optimizer,
    objective: str,
    pool: Pool | None,
    parent: str | None,
    decimal_comma: bool,
) -> list[NewMeasurement]:
    """Known results, refused before anything is evaluated if the optimiser could not be told one of them."""
    space, strategy = optimizer.space, optimizer.strategy

    def identify(string: str) -> str:
        try:
            key = space.key(string)
            if isinstance(space, EvolvableSpace):
                space.from_string(string)  # the files of the best hold what is known, too
        except InputError as error:
            raise InputError(f"{error}{hint_at_parent(string, parent, space.kind)}") from error
        for message in strategy.unsupported([key]).values():
            raise InputError(message)
        return key

    facts = {"objective": objective.removeprefix("column:"), PARENT: parent}
    settings = run_settings(optimizer, facts, pool=None)
    column = written_column(None if pool is None else pool.column)
    # What is said is said of the candidates, too, whose tables need not be like that of the results.
    usual = decimal_comma if pool is None else None
    if pool is not None and (decimal_comma or pool.decimal_comma):
        settings = replace(settings, pool={"kind": pool.kind, "decimal_comma": True})
    found = read_known(known, replace(settings, string_column=column), identify, decimal_comma=usual)
    if pool is not None and pool.identifiers is not None:
        called = dict(zip(pool.keys, pool.identifiers, strict=True))
        found = [replace(row, identifier=row.identifier or called.get(row.key)) for row in found]
    if not strategy.takes_noise_variance:
        for row in found:
            if row.standard_error is not None:
                raise InputError(
                    f"known results: {row.string!r} has a standard error, which {optimizer.learner} cannot take into "
                    "account: leave that column out, or choose another surrogate"
                )
    return found


def _write_report(folder: Path) -> None:
    """Write plot and page; results are on disk already, so a failure here must not hide them or an interruption."""
    try:
        from seqopt.report import write_report  # matplotlib is needed only here

        with doing(f"writing the report in {folder}"):
            write_report(folder)
    except Exception as error:
        logger.warning("the report in %s could not be written (%s: %s)", folder, type(error).__name__, error)


def _check_kind(score: Objective, space: Pool | Space) -> None:
    if score.applies_to(space.kind):
        return
    wanted = f"the objective {score.name} is for {score.strings}"
    if isinstance(space, Pool):
        raise InputError(
            f"{wanted}, but the strings of {space.source} were taken for {space.kind}: choose another objective, or "
            "say what the strings are: read_pool(..., kind=), --kind"
        )
    raise InputError(
        f"{wanted}, but those of {type(space).__name__} are of kind {space.kind!r}: choose another objective, or give "
        "the space another kind"
    )


def _known_values(pool: Pool | None, space: Space) -> npt.NDArray[np.float64] | None:
    """The value of each candidate, where the objective is a column of the pool."""
    if pool is None or pool.values is None or not isinstance(space, PoolSpace):
        return None
    of = dict(zip(pool.keys, pool.values.tolist(), strict=True))
    return np.array([of[key] for key in space.keys])


def _part_facts(optimizer: Optimizer, strategy: Strategy | None) -> dict[str, Any]:
    """What decides in a search: a strategy, or the three parts of the usual one."""
    if strategy is not None:
        return {"details": {"strategy": described(strategy)}}
    names = ("acquisition", "surrogate", "search")
    parts = {name: described(getattr(optimizer, name)) for name in names}
    decides = optimizer.strategy.then
    if isinstance(decides, ModelBased) and decides.planned is not None:
        parts["surrogate"] = described(decides.planned)  # the same model can be made again from that
    return {"surrogate": type(optimizer.surrogate).__name__, "details": parts}


def _space_facts(space: Space) -> dict[str, Any]:
    if isinstance(space, PoolSpace) and not isinstance(space, StoredPool):
        return {"pool_size": len(space), "pool_sha256": digest(space.keys)}
    return {"space": described(space)}


def _pool_facts(pool: Pool, values: npt.NDArray[np.float64] | None) -> dict[str, Any]:
    return {
        "pool": str(pool.source),
        "column": pool.column,
        "id_column": pool.id_column,
        "standardize": pool.standardized,
        "rejected": len(pool.rejected),
        "duplicates": pool.duplicates,
        # In the order of the search, so that rows may be sorted anew.
        "values_sha256": None if values is None else digest(map(repr, values.tolist())),
    }


register_renderer(Result, describe_result)
