"""Pools of millions in ``seqopt search``: prepared on disk, and searched by a classifier or through a prefilter."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from seqopt.cli.running import console, note
from seqopt.datasets import DATASETS
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.datasets import PoolStore
    from seqopt.filters import Filter

LARGE_FILE = 100_000_000
"""Bytes of a file from which on its candidates are prepared on disk; a third of that where it is compressed."""

CLASSIFIERS = ("lfbo", "bore")
"""What ``--strategy`` may be, where a classifier decides."""

PORTFOLIOS = {"esp": "esp", "hedge": "hedge", "random-portfolio": "random"}
"""What it may be, where a portfolio does, with the rule by which that chooses."""

FUNCTIONS = "functions"
"""What it may be, where the best candidates of random functions are taken."""

STRATEGIES = ("model", *CLASSIFIERS, FUNCTIONS, *PORTFOLIOS)
"""All that it may be."""


class Model(Protocol):
    """What decides where no classifier does, by name."""

    @property
    def surrogate(self) -> str:
        """The surrogate."""

    @property
    def acquisition(self) -> str:
        """The acquisition function."""


def check_large(large: Mapping[str, Any], plan: Model, *, fidelities: bool) -> None:
    """Refuse options that do not go together, before anything is read.

    Raises:
        InputError: As said.
    """
    from seqopt.strategies.prefilter import PREFILTERS

    strategy, prefilter = large["strategy"], large["prefilter"]
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}: choose {', '.join(STRATEGIES)}")
    if prefilter is not None and prefilter not in (*PREFILTERS, "none"):
        raise InputError(f"unknown prefilter {prefilter!r}: choose {', '.join(PREFILTERS)} or none")
    if strategy in CLASSIFIERS and prefilter is not None:
        raise InputError(f"--prefilter goes with --strategy model: {strategy} scores every candidate itself")
    parts = plan.surrogate.strip().lower(), plan.acquisition.strip().lower()
    if strategy == FUNCTIONS and parts != ("auto", "gibbon"):
        raise InputError(f"--surrogate and --acquisition go with --strategy model: {strategy} has a linear model")
    if strategy == FUNCTIONS and prefilter is not None:
        raise InputError(f"--prefilter goes with --strategy model: {strategy} looks at every candidate itself")
    if strategy in CLASSIFIERS and plan.surrogate.strip().lower() != "auto":
        raise InputError(f"--surrogate goes with --strategy model: {strategy} has a classifier")
    if strategy in CLASSIFIERS and plan.acquisition.strip().lower() != "gibbon":
        raise InputError(f"--acquisition goes with --strategy model: {strategy} is an acquisition function itself")
    if strategy in PORTFOLIOS and plan.acquisition.strip().lower() != "gibbon":
        raise InputError(
            f"--acquisition goes with --strategy model: {strategy} has several; for others, give "
            "seqopt.strategies.Portfolio([...]) to seqopt.maximize"
        )
    if large["keep"] is not None and strategy not in CLASSIFIERS and prefilter in (None, "none"):
        raise InputError("--keep says how many candidates a prefilter keeps: give --prefilter lfbo or mean, too")
    if fidelities and (prefilter is not None or strategy != "model"):
        raise InputError("--fidelity has a strategy of its own: leave --strategy and --prefilter out")


def is_on_disk(source: str, wanted: bool | None, *, values: bool) -> bool:
    """Whether a pool is prepared on disk.

    Args:
        source: As it was given.
        wanted: What its user says of it.
        values: Whether values of candidates are read from its columns.

    Raises:
        InputError: If columns of values are to be read from the disk, or several files into memory.
    """
    path = Path(source)
    several = path.is_dir() or (not path.exists() and any(sign in source for sign in "*?["))
    compressed = path.name.lower().endswith((".gz", ".parquet", ".pq"))
    big = path.is_file() and path.stat().st_size >= LARGE_FILE / (3 if compressed else 1)
    if values and (wanted or several):
        raise InputError(
            "columns of values are read into memory, and only from one file: leave --on-disk out, or give an "
            "objective that is a function"
        )
    if wanted and source in DATASETS:
        raise InputError(f"{source} is a built-in data set, which fits into memory: leave --on-disk out")
    if wanted is False and several:
        raise InputError(f"{source} is several files, which are searched on disk: leave --in-memory out")
    return several or (big and not values if wanted is None else wanted)


def prepared(source: str, *, filters: Sequence[Filter] = (), client: Any = None, **options: Any) -> PoolStore:
    """A pool on disk, with a line that says how far it is.

    Args:
        source: As it was given.
        filters: Which rows become candidates.
        client: Of a cluster whose workers prepare it; `None` for processes of this machine.
        **options: Of `seqopt.datasets.prepare_pool`.

    Raises:
        InputError: As `seqopt.datasets.prepare_pool`.
        ClusterError: As `seqopt.distributed.prepare_by`.
        KeyboardInterrupt: After saying that nothing is lost.
    """
    from seqopt.datasets import prepare_pool

    if filters:
        from seqopt.filters import Sieve

        options["sieve"] = Sieve(filters)
    try:
        with console.status("preparing candidates") as status:
            options["progress"] = lambda state: status.update(state.describe())
            if client is not None:
                from seqopt.distributed import prepare_by

                return prepare_by(client, source, **options)
            return prepare_pool(source, **options)
    except KeyboardInterrupt:
        note("what has been prepared is kept: the same command goes on from there")
        raise


def chosen_strategy(large: Mapping[str, Any], plan: Model, search: Any, kind: str, size: int) -> Any | None:
    """The strategy that the options name; `None` where surrogate, acquisition function and search say all.

    Args:
        large: The options.
        plan: Names the surrogate and the acquisition function.
        search: The inner search.
        kind: Of the candidates.
        size: How many there are.
    """
    from seqopt.strategies import BORE, LFBO, FunctionDraws, ModelBased, Portfolio, Prefilter
    from seqopt.strategies.prefilter import KEEP, classifier_of

    if large["strategy"] == FUNCTIONS:
        return FunctionDraws()
    keep = large["keep"]
    if large["strategy"] not in CLASSIFIERS:
        wanted = large["prefilter"]
        chosen = None if wanted in (None, "none") else Prefilter(wanted, KEEP if keep is None else keep)
        if large["strategy"] in PORTFOLIOS:
            rule = PORTFOLIOS[large["strategy"]]
            return Portfolio(rule=rule, surrogate=plan.surrogate, search=search, prefilter=chosen)
        if wanted is None:
            return None
        return ModelBased(plan.surrogate, plan.acquisition, search, prefilter=chosen)
    if keep is None and size > KEEP:
        keep = KEEP
    decides = LFBO if large["strategy"] == "lfbo" else BORE
    return decides(classifier_of(kind), search=search, keep=keep)


def write_store_rejected(store: PoolStore, folder: Path) -> None:
    """Write what was rejected as a table with the columns file, line, value and reason.

    Raises:
        InputError: If the file cannot be written.
    """
    if not store.rejected:
        return
    path = folder / "rejected.csv"
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["file", "line", "value", "reason"])
            writer.writerows((name, one.line, one.value, one.reason) for name, one in store.rejected_rows())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    note("all rejected lines are listed in rejected.csv")
