"""A campaign: what to measure next, for as long as it takes.

Everything is in one file (`seqopt.campaign.CampaignStore`). A suggestion follows from that file, the space and the seed
alone: the same file gives the same suggestions on another machine, but for ties of rounding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.results import Entry, Results, check_entries, measurements_table, read_results, write_batch
from seqopt.campaign.rows import (
    Command,
    Counts,
    Measurement,
    NewSnapshot,
    NewSuggestion,
    Observed,
    Settings,
    Suggestion,
)
from seqopt.campaign.sheets import Cell, write_sheet
from seqopt.campaign.spaces import build_space, describe_space
from seqopt.campaign.store import CampaignStore
from seqopt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.evaluation import Direction
    from seqopt.optimizer import Optimizer
    from seqopt.spaces import CandidateSet, Space

INTERVAL = 1.6448536269514722
"""Half the width of the central 90 % of a normal distribution, in standard deviations."""

WITHDRAWN, FAILED = "withdrawn", "failed"


@dataclass(frozen=True)
class Status:
    """How a campaign stands.

    Attributes:
        settings: What it is about.
        counts: Suggestions and measurements.
        best: The best string so far, `None` before the first value.
        model: What was known of the model when it last made suggestions; empty before.
        warnings: What the user should know of it.
    """

    settings: Settings
    counts: Counts
    best: Observed | None
    model: dict[str, Any]
    warnings: tuple[str, ...]


class Campaign:
    """A search that goes on over weeks, with a laboratory as its objective.

    Args:
        store: The open file.
        space: The space, where the file cannot hold it.

    Example:
        >>> import tempfile
        >>> from seqopt.spaces import StringSpace
        >>> folder = tempfile.TemporaryDirectory()
        >>> campaign = Campaign.create(
        ...     Path(folder.name, "first.seqopt"), StringSpace("01", 12), objective="activity", batch_size=4
        ... )
        >>> batch = campaign.suggest()
        >>> [suggestion.name for suggestion in batch]
        ['B01-01', 'B01-02', 'B01-03', 'B01-04']
        >>> campaign.suggest() == batch  # the same until results arrive
        True
        >>> for suggestion in batch:
        ...     _ = campaign.record(suggestion.name, suggestion.string.count("101"))
        >>> second = campaign.suggest()
        >>> second[0].reason["kind"] in ("exploit", "explore")
        True
        >>> campaign.close(); folder.cleanup()
    """

    def __init__(self, store: CampaignStore, space: Space | None = None) -> None:
        self.store = store
        self._given = space
        self._space: Space | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        space: Space | str | os.PathLike[str],
        *,
        objective: str,
        direction: Direction = "maximize",
        unit: str | None = None,
        column: str | None = None,
        kind: str | None = None,
        standardize: bool = False,
        batch_size: int = 10,
        surrogate: str = "auto",
        acquisition: str = "gibbon",
        transform: str | None = None,
        seed: int = 0,
    ) -> Campaign:
        """Begin a campaign in a new file.

        Args:
            path: The file; by convention it ends in ``.seqopt``.
            space: Where to search: a space of `seqopt.spaces`, or a file of candidates.
            objective: What is measured, such as ``"pIC50"``.
            direction: ``"maximize"`` or ``"minimize"``.
            unit: Of the values.
            column: Column of the candidates in their file, if it is not to be recognised.
            kind: What candidates are, if it is not to be recognised; see `seqopt.datasets.read_pool`.
            standardize: Whether salts and charge states of a molecule are one candidate.
            batch_size: Suggestions at a time, and random ones to begin with.
            surrogate: Name of the model; see `seqopt.models.resolve_surrogate`.
            acquisition: Name of the acquisition function.
            transform: ``"log10"`` for values that span decades.
            seed: Fixes every random draw.

        Raises:
            InputError: For what cannot be used.
            CampaignError: If there is such a file already.
        """
        from seqopt.optimizer import Optimizer

        pool, string_column = None, "string"
        if isinstance(space, str | os.PathLike):
            pool, space, string_column = _library(Path(space), column, kind, standardize)
        facts = describe_space(space) if pool is None else {"type": "pool", "kind": space.kind}
        if batch_size < 2:
            raise InputError(f"batch_size is {batch_size}; a model needs at least 2 values to begin with")
        # Whatever an optimiser would refuse is refused before there is a file.
        Optimizer(
            space,
            surrogate=surrogate,
            acquisition=acquisition,
            batch_size=batch_size,
            initial=batch_size,
            direction=direction,
            transform=transform,
            seed=seed,
        )
        settings = Settings(
            objective,
            direction,
            unit,
            string_column,
            batch_size=batch_size,
            initial=batch_size,
            surrogate=surrogate,
            acquisition=acquisition,
            transform=transform,
            seed=seed,
            space=facts,
            pool=pool,
        )
        campaign = cls(CampaignStore.create(path, settings), space if facts["type"] == "own" else None)
        campaign._space = space
        return campaign

    @classmethod
    def open(cls, path: str | os.PathLike[str], space: Space | None = None) -> Campaign:
        """Go on with a campaign.

        Args:
            path: Its file.
            space: The space, if it is one of the user's own; else it is made again when it is needed.

        Raises:
            CampaignError: If there is no such campaign.
        """
        return cls(CampaignStore.open(path), space)

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def space(self) -> Space:
        """Where the campaign searches.

        Raises:
            CampaignError: If a file that it needs is missing or has changed.
        """
        if self._space is None:
            settings = self.store.settings
            self._space = (
                build_space(settings.space, self._given) if settings.pool is None else _same_library(settings.pool)
            )
        return self._space

    def suggest(self, n: int | None = None, *, more: bool = False) -> list[Suggestion]:
        """What to measure next.

        While suggestions are open they are returned again, whatever ``n`` is; ``more`` adds others, conditioned on the
        open ones.

        Args:
            n: How many new ones; by default the campaign's batch size.
            more: Whether to suggest although others are open.

        Raises:
            InputError: If ``n`` < 1.
            ExhaustedError: If nothing is left to suggest.
            StaleStateError: If another process has changed the campaign meanwhile.
        """
        state, waiting = self.store.state, self.store.open_suggestions()
        if waiting and not more:
            return waiting
        settings = self.store.settings
        optimizer = self.optimizer()
        before = len(optimizer.observations)
        optimizer.ask(settings.batch_size if n is None else n)
        rows = optimizer.observations.rows[before:]
        reasons = self._reasons(optimizer, [row.key for row in rows])
        new = []
        for row, reason in zip(rows, reasons, strict=True):
            mean, std = row.context["predicted_mean"], row.context["predicted_std"]
            low, high = _interval(mean, std, settings.transform)
            new.append(
                NewSuggestion(
                    row.string,
                    row.key,
                    mean,
                    std,
                    low,
                    high,
                    optimizer.acquisition.name if mean is not None else "random",
                    row.context["acquisition"],
                    reason,
                )
            )
        with self.store.transaction("suggest", {"n": n, "more": more}, expected_state=state) as change:
            snapshot = change.add_snapshot(self._snapshot(optimizer)) if optimizer.hyperparameters else None
            return change.add_suggestions(new, snapshot=snapshot)

    def optimizer(self) -> Optimizer:
        """The optimiser as the file has it: everything measured is told, and open suggestions are pending."""
        from seqopt.optimizer import Optimizer

        settings = self.store.settings
        optimizer = Optimizer(
            self.space,
            surrogate=settings.surrogate,
            acquisition=settings.acquisition,
            batch_size=settings.batch_size,
            initial=settings.initial,
            direction=settings.direction,
            transform=settings.transform,
            seed=settings.seed,
        )
        with self.store.reading():
            observed, counts = self.store.observations(), self.store.counts()
            suggestions = self.store.suggestions()
            latest = self.store.latest_snapshot()
            model = None if latest is None else self.store.snapshot_state(latest.id)
        for one in observed:
            if one.values:
                strings = [one.string] * len(one.values)
                optimizer.tell(strings, one.values, standard_errors=one.standard_errors)
            else:
                optimizer.tell([one.string], [math.nan], errors=[one.failures[-1]])
        measured = {one.key for one in observed}
        for suggestion in suggestions:
            if suggestion.status == WITHDRAWN and suggestion.key not in measured:
                optimizer.tell([suggestion.string], [math.nan], errors=[WITHDRAWN])
                measured.add(suggestion.key)
        pending = [
            {"string": suggestion.string, "key": suggestion.key, "context": {"batch": suggestion.batch}}
            for suggestion in suggestions
            if suggestion.status == "open"
        ]
        batches = max((suggestion.batch for suggestion in suggestions), default=0)
        surrogate = optimizer.surrogate.state_dict() if model is None else model
        optimizer.replay_ask(
            pending, {"asks": counts.batches, "batches": batches, "surrogate": surrogate, "hyperparameters": {}}
        )
        return optimizer

    def record(
        self,
        what: str,
        value: float | None = None,
        *,
        failure: str | None = None,
        standard_error: float | None = None,
        replicate: bool = False,
    ) -> list[Measurement]:
        """Record one result.

        Args:
            what: The name of a suggestion (``"B03-07"``), or a string.
            value: What was measured; `None` for a failure.
            failure: Why there is no value.
            standard_error: Known standard error of the value.
            replicate: Whether this is a further measurement of a string that has one.

        Raises:
            CampaignError: If the result does not fit; the message says why.
        """
        named = self.store.suggestion(what)
        entry = Entry(
            string=None if named is not None else what,
            identifier=what if named is not None else None,
            value=value,
            failure=failure,
            standard_error=standard_error,
        )
        with self.store.transaction("record", {"string": what}) as change:
            results = check_entries([entry], self.store, self._identify, replicates=replicate)
            _refuse(results, partial=False)
            return change.add_measurements(results.records)

    def record_file(
        self,
        path: str | os.PathLike[str],
        *,
        value_column: str | None = None,
        string_column: str | None = None,
        replicates: bool = False,
        partial: bool = False,
        history: bool = False,
    ) -> tuple[list[Measurement], Results]:
        """Record a file of results; see `seqopt.campaign.results.read_results`.

        Args:
            path: The file.
            value_column: The column of values, if it is not to be recognised.
            string_column: The column of strings, if it is not to be recognised.
            replicates: Whether results of strings that have one are further measurements of them.
            partial: Whether to take the good rows of a file that has bad ones.
            history: Whether the results are from elsewhere, and their strings were never suggested.

        Returns:
            What was recorded, and what the file holds: the problems and warnings with their lines.

        Raises:
            CampaignError: If something is wrong and ``partial`` is not set, or nothing could be taken. It lists every
                problem; nothing has been recorded.
        """
        arguments = {"file": Path(path).name, "partial": partial, "replicates": replicates}
        with self.store.transaction("import" if history else "record", arguments) as change:
            results = read_results(
                path,
                self.store,
                self._identify,
                value_column=value_column,
                string_column=string_column,
                replicates=replicates,
                history=history,
            )
            _refuse(results, partial=partial)
            change.arguments.update(results.arguments)
            return change.add_measurements(results.records), results

    def withdraw(self, names: Iterable[str], reason: str = "") -> None:
        """Withdraw open suggestions that will not be measured; their strings are not suggested again.

        Raises:
            CampaignError: If one is unknown, or not open.
        """
        names = list(names)
        with self.store.transaction("withdraw", {"suggestions": names, "reason": reason}) as change:
            change.withdraw(names, reason)

    def undo(self) -> Command:
        """Take back the last command that recorded, imported, suggested or withdrew something, and return it.

        Raises:
            CampaignError: If there is nothing to undo.
        """
        return self.store.undo()

    def history(self) -> list[Command]:
        """All commands, the first one first."""
        return self.store.history()

    def status(self) -> Status:
        """How the campaign stands; what it says of the model is from the last suggestion, so no model is fitted."""
        with self.store.reading():
            settings, counts, best = self.store.settings, self.store.counts(), self.store.best()
            latest = self.store.latest_snapshot()
        model = {} if latest is None else {"surrogate": latest.surrogate, "n": latest.n, **latest.summary}
        return Status(settings, counts, best, model, tuple(_warnings(settings, counts, model)))

    def write_batch(self, path: str | os.PathLike[str], suggestions: Sequence[Suggestion] | None = None) -> None:
        """Write suggestions (by default the open ones) as a table to be filled in and recorded.

        Besides what was predicted it says why each was chosen: ``why`` (exploit or explore), the nearest measured
        string and how similar the model takes the two to be. Every other column of the library comes last.
        """
        chosen = list(self.store.open_suggestions() if suggestions is None else suggestions)
        further: dict[str, list[Cell]] = {
            "why": [row.reason.get("kind") for row in chosen],
            "nearest_measured": [row.reason.get("nearest") for row in chosen],
            "similarity": [row.reason.get("similarity") for row in chosen],
            **_library_columns(self.store.settings.pool, [row.string for row in chosen]),
        }
        write_batch(path, chosen, self.store.settings, further)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all measurements one by one, to a .csv, .tsv or .parquet file.

        Raises:
            InputError: For another ending.
        """
        target = Path(path)
        if target.suffix == ".parquet":
            self.to_pandas().to_parquet(target)
            return
        header, rows = measurements_table(self.store)
        write_sheet(target, header, rows)

    def to_pandas(self) -> pd.DataFrame:
        """All measurements one by one, failures too."""
        import pandas as pd

        header, rows = measurements_table(self.store)
        return pd.DataFrame(rows, columns=header)

    def _identify(self, string: str) -> str:
        from seqopt.identity import identity_keys

        pool = self.store.settings.pool
        if pool is not None:
            # The library itself, which may be large, is not needed for that.
            (found,) = identity_keys([string], pool["kind"], standardize=pool["standardize"])
            if found is None:
                raise InputError(f"{string!r} is not a valid {pool['kind']}")
            return found
        from seqopt.spaces import EvolvableSpace

        key = self.space.key(string)
        if isinstance(self.space, EvolvableSpace):
            self.space.from_string(string)  # complains of a string outside the space
        return key

    def _reasons(self, optimizer: Optimizer, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Why each string was chosen: whether it exploits or explores, and what measured string it is most like."""
        from seqopt.models import ExplainedSurrogate

        surrogate = optimizer.surrogate
        if not optimizer.hyperparameters:
            return [{"kind": "random"} for _ in keys]
        if not isinstance(surrogate, ExplainedSurrogate):
            return [{} for _ in keys]
        measured = list(dict.fromkeys(row.key for row in optimizer.observations.with_status("ok")))
        written = {row.key: row.string for row in optimizer.observations.rows}
        similarity = surrogate.similarity(keys, measured)
        best = float(surrogate.predict(measured)[0].max())
        means = surrogate.predict(list(keys))[0]
        nearest = similarity.argmax(axis=1)
        return [
            {
                "kind": "exploit" if mean >= best else "explore",
                "nearest": written[measured[int(place)]],
                "similarity": round(float(row[place]), 4),
            }
            for mean, place, row in zip(means.tolist(), nearest, similarity, strict=True)
        ]

    def _snapshot(self, optimizer: Optimizer) -> NewSnapshot:
        from seqopt.models import ExplainedSurrogate
        from seqopt.optimizer.run_folder import versions
        from seqopt.spaces import PoolSpace

        surrogate = optimizer.surrogate
        summary: dict[str, Any] = {
            "parameters": optimizer.hyperparameters,
            "seed": optimizer.seed,
            "versions": versions(),
        }
        if isinstance(surrogate, ExplainedSurrogate):
            found = surrogate.leave_one_out()
            summary["r2"] = None if math.isnan(found.r2) else round(found.r2, 4)
            summary["within_90"] = round(found.within_90, 4)
        if isinstance(self.space, PoolSpace):
            summary["left"] = len(self.space) - len(optimizer.observations.seen)
        measured = len(optimizer.observations.with_status("ok"))
        return NewSnapshot(type(surrogate).__name__, measured, summary, surrogate.state_dict())


def _interval(mean: float | None, std: float | None, transform: str | None) -> tuple[float | None, float | None]:
    """The central 90 % of a prediction in the user's units."""
    if mean is None or std is None:
        return None, None
    if transform != "log10" or mean <= 0:
        return mean - INTERVAL * std, mean + INTERVAL * std
    # The moments are those of a log-normal distribution, whose quantiles follow from them.
    spread = math.log1p((std / mean) ** 2)
    centre, half = math.log(mean) - spread / 2, INTERVAL * math.sqrt(spread)
    return math.exp(centre - half), math.exp(centre + half)


def _refuse(results: Results, *, partial: bool) -> None:
    if results.problems and not (partial and results.records):
        listed = "\n".join(f"  {problem}" for problem in results.problems)
        raise CampaignError(f"nothing was recorded:\n{listed}")
    if not results.records:
        raise CampaignError(f"nothing was recorded: {results.source or 'the entry'} holds no result")


def _warnings(settings: Settings, counts: Counts, model: dict[str, Any]) -> list[str]:
    found = []
    r2 = model.get("r2")
    if r2 is not None and r2 <= 0:
        found.append(
            f"the model predicts no better than the mean (leave-one-out R2 {r2:.2f} at {model['n']} values): its "
            "suggestions are little better than random ones"
        )
    noise, scale = (model.get("parameters", {}).get(name) for name in ("noise_variance", "outputscale"))
    if noise is not None and scale is not None and noise > scale:
        found.append("the noise swallows the signal: replicates, or a better assay, would help more than new strings")
    left = model.get("left")
    if left is not None and left < 10 * settings.batch_size:
        found.append(f"the pool is nearly exhausted: {left:,} candidates were left at the last suggestion")
    if counts.failures > counts.values and counts.failures >= settings.batch_size:
        found.append(f"most measurements fail ({counts.failures} of {counts.failures + counts.values})")
    return found


def _library(
    path: Path, column: str | None, kind: str | None, standardize: bool
) -> tuple[dict[str, Any], CandidateSet, str]:
    """Facts of a file of candidates, the space of them, and the name of their column."""
    from seqopt.datasets import read_pool
    from seqopt.spaces import CandidateSet

    pool = read_pool(path, column=column, kind=kind, standardize=standardize)
    space = CandidateSet(pool.strings, kind=pool.kind, keys=pool.keys, standardize=pool.standardized)
    facts = {
        "path": str(pool.source if not Path(path).exists() else Path(path).resolve()),
        "column": pool.column,
        "kind": pool.kind,
        "standardize": pool.standardized,
        "size": len(space),
        "keys_sha256": _digest(space),
    }
    return facts, space, pool.column or "string"


def _same_library(facts: dict[str, Any]) -> CandidateSet:
    path = Path(facts["path"])
    if path.suffix and not path.exists():
        raise CampaignError(f"the library {path} is not there any more: put it back")
    _, space, _ = _library(path, facts["column"], facts["kind"], facts["standardize"])
    if _digest(space) != facts["keys_sha256"]:
        raise CampaignError(
            f"the library {path} has changed since the campaign began: it held {facts['size']:,} candidates then and "
            f"holds {len(space):,} now. Restore it, or begin another campaign and import what was measured"
        )
    return space


def _library_columns(facts: dict[str, Any] | None, strings: Sequence[str]) -> dict[str, list[Cell]]:
    """The cells of a library beside its strings, as they stand in the file; of the first row of equal strings."""
    if facts is None or not Path(facts["path"]).is_file():
        return {}
    from seqopt.datasets.tables import read_table

    table = read_table(Path(facts["path"]))
    column = facts["column"] or "string"
    if column not in table.columns:
        return {}
    rows: dict[str, int] = {}
    for row, string in enumerate(table.columns[column]):
        rows.setdefault(string.strip(), row)
    places = [rows.get(string) for string in strings]
    return {
        name: [None if place is None else cells[place] for place in places]
        for name, cells in table.columns.items()
        if name != column
    }


def _digest(space: CandidateSet) -> str:
    from seqopt.cache import digest

    return digest(space.keys)
