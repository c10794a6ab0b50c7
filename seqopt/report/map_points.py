"""What a map shows: strings of a file, of a run or of a campaign, with what was measured of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from seqopt.datasets import Pool, Rejected, read_pool
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.report.library import read_library
from seqopt.report.results import Run
from seqopt.report.sources import read_source
from seqopt.strings.identity import recognize_kind
from seqopt.utils.workers import Progress

MEASURED, UNMEASURED = "measured", "not measured"
"""Groups of the strings of a file."""

INITIAL, CHOSEN, SUGGESTED, FAILED = "initial design", "chosen by the model", "suggested", "failed"
"""Groups of the strings of a run or a campaign."""

PROJECTED = "projected"
"""Group of strings that are put into a map made of others."""

EXAMPLES = 3
"""Unusable lines that a note names."""


@dataclass(frozen=True, eq=False)
class MapPoints:
    """Strings that a map is to show.

    Attributes:
        strings: As their owner wrote them.
        keys: What identifies each; models see these.
        kind: What they are: one of `seqopt.strings.identity.KINDS`.
        values: Measured values, NaN where there is none.
        groups: What each string is, in words: `MEASURED`, `INITIAL`, ...
        labels: Their names; empty where they have none.
        value_label: Name and unit of the values; empty where there are none.
        log10: Whether the values span decades, so that models and colours take their logarithms.
        minimize: Whether low values are good.
        notes: What the user may want to know, such as lines that could not be read, or what a run folder lacks.
        total: Strings that there were before a sample was drawn.
        run: The search that the first of them are of; `None` without one.
        further: Further columns of the table, such as identifiers and prices of the library of a search.
    """

    strings: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    values: npt.NDArray[np.float64]
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    value_label: str = ""
    log10: bool = False
    minimize: bool = False
    notes: tuple[str, ...] = ()
    total: int = 0
    run: Run | None = None
    further: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def model_values(self) -> npt.NDArray[np.float64] | None:
        """The values as a model learns them: on a logarithmic scale if so wished, `None` where there is none."""
        if not np.isfinite(self.values).any():
            return None
        return np.log10(self.values) if self.log10 else self.values

    def take(self, indices: npt.NDArray[np.intp]) -> MapPoints:
        """The points at ``indices``."""
        return replace(
            self,
            strings=tuple(self.strings[index] for index in indices),
            keys=tuple(self.keys[index] for index in indices),
            values=self.values[indices],
            groups=tuple(self.groups[index] for index in indices),
            labels=tuple(self.labels[index] for index in indices),
            further={name: tuple(cells[index] for index in indices) for name, cells in self.further.items()},
        )

    def sampled(self, size: int, rng: np.random.Generator) -> MapPoints:
        """A random choice of ``size`` points in their order, those that are not `UNMEASURED` first of all."""
        if size < 1:
            raise InputError(f"sample is {size}; expected at least 1")
        if len(self) <= size:
            return self
        shuffled = rng.permutation(len(self))
        later = np.array([self.groups[index] == UNMEASURED for index in shuffled])
        return self.take(np.sort(shuffled[np.argsort(later, kind="stable")][:size]))

    def joined(self, others: MapPoints) -> MapPoints:
        """These points, followed by those of ``others`` that are not among them.

        Raises:
            InputError: If the strings are of different kinds.
        """
        if self.kind != others.kind:
            raise InputError(f"{self.kind} strings and {others.kind} strings have no common map: set kind= (--kind)")
        known = set(self.keys)
        rest = others.take(
            np.array([index for index, key in enumerate(others.keys) if key not in known], dtype=np.intp)
        )
        return replace(
            self,
            strings=self.strings + rest.strings,
            keys=self.keys + rest.keys,
            values=np.concatenate([self.values, rest.values]),
            groups=self.groups + rest.groups,
            labels=self.labels + rest.labels,
            further=_joined(self, rest),
            value_label=self.value_label or rest.value_label,
            notes=self.notes + rest.notes,
            total=self.total + len(rest),
        )

    def table(self, coordinates: npt.NDArray[np.float64], names: Sequence[str]) -> pd.DataFrame:
        """One row per point: ``string``, coordinates, ``value``, ``group``, and ``name`` and further columns if any."""
        columns: dict[str, Any] = {"string": self.strings}
        columns |= dict(zip(names, coordinates.T, strict=True))
        columns |= {"value": self.values, "group": self.groups}
        if any(self.labels):
            columns["name"] = self.labels
        taken = {*columns, "name"}
        columns |= {name if name not in taken else f"{name} (library)": cells for name, cells in self.further.items()}
        return pd.DataFrame(columns)


def _joined(first: MapPoints, rest: MapPoints) -> dict[str, tuple[str, ...]]:
    empty = ("",) * len(first), ("",) * len(rest)
    names = dict.fromkeys([*first.further, *rest.further])
    return {name: first.further.get(name, empty[0]) + rest.further.get(name, empty[1]) for name in names}


def _of_library(run: Run, strings: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Identifiers and prices, as far as the library of a search has them."""
    library = read_library(run)
    names = {library.id_column: "identifier", library.price_column: library.price_column}
    cells = [library.cells(string) for string in strings]
    return {
        called: tuple(row.get(name, "").strip() for row in cells)
        for name, called in names.items()
        if name and any(row.get(name, "").strip() for row in cells)
    }


def points_of_file(
    source: str | os.PathLike[str],
    *,
    column: str | None = None,
    values_column: str | None = None,
    kind: str | None = None,
    log10: bool = False,
    standardize: bool = False,
    progress: Progress | None = None,
) -> MapPoints:
    """The strings of a file or of a named data set.

    Strings without a value stay, as `UNMEASURED`. Lines whose string cannot be read are left out and named in the
    notes; so are cells that should hold a value and hold something else.

    Args:
        source: See `seqopt.datasets.read_pool`, also for ``column`` and ``kind``.
        column: Column of strings.
        values_column: Column of values; strings that occur several times have their mean.
        kind: Kind of strings.
        log10: Whether the values span decades.
        standardize: See `seqopt.datasets.read_pool`, also for ``progress``.
        progress: Told how many molecules have been read.

    Raises:
        InputError: As `seqopt.datasets.read_pool` does, or if no cell of ``values_column`` is a number.
    """
    pool = read_pool(source, column=column, kind=kind, standardize=standardize, progress=progress)
    notes = pool.summary().splitlines()[1:]
    values = np.full(len(pool), np.nan)
    if values_column is not None:
        measured = read_pool(
            source,
            column=column,
            kind=pool.kind,
            standardize=standardize,
            values_column=values_column,
            log_values=log10,
            progress=progress,
        )
        assert measured.values is not None
        found = dict(zip(measured.keys, measured.values.tolist(), strict=True))
        values = np.array([found.get(key, math.nan) for key in pool.keys])
        notes += _notes_of_values(pool, measured, int(np.isnan(values).sum()))
    groups = ["" if values_column is None else UNMEASURED if math.isnan(value) else MEASURED for value in values]
    return MapPoints(
        strings=pool.strings,
        keys=pool.keys,
        kind=pool.kind,
        values=values,
        groups=tuple(groups),
        labels=pool.names or ("",) * len(pool),
        value_label=(measured.values_column or values_column) if values_column is not None else "",
        log10=log10,
        notes=tuple(notes),
        total=len(pool),
    )


def _notes_of_values(pool: Pool, measured: Pool, missing: int) -> list[str]:
    known = {record.line for record in pool.rejected}
    wrong = [record for record in measured.rejected if record.line not in known and not record.reason.endswith("empty")]
    notes = []
    if wrong:
        notes.append(f"{len(wrong):,} cell{'s' * (len(wrong) > 1)} without a usable value: {_listed(wrong)}")
    if missing:
        notes.append(f"{missing:,} of {len(pool):,} strings have no value; they are in the map anyway")
    return notes


def _listed(records: Sequence[Rejected]) -> str:
    shown = "; ".join(f"line {record.line} ({record.reason})" for record in records[:EXAMPLES])
    return shown + (f"; and {len(records) - EXAMPLES:,} more" if len(records) > EXAMPLES else "")


def points_of_run(path: str | os.PathLike[str], *, kind: str | None = None) -> MapPoints:
    """The strings of a run folder, or of a campaign, once each, with the means of their values.

    Args:
        path: A folder that a search wrote, or a campaign: its file, or its name.
        kind: Kind of strings; default: what the run says, or recognised.

    Raises:
        RunFolderError: If there is no run in the folder, or it is damaged.
        CampaignError: Likewise for a campaign.
        InputError: If there are no strings yet.
    """
    run = read_source(path)
    table = run.evaluations
    if not len(table):
        raise InputError(f"{path} holds no strings yet: a map needs some")
    values = table["value"].where(table["measured"])
    log10 = run.settings.get("transform") == "log10" and bool((values.dropna() > 0).all())
    scaled = np.log10(values) if log10 else values
    means = scaled.groupby(table["key"]).mean()
    first = table.drop_duplicates("key")
    numbers = first["key"].map(10**means if log10 else means).to_numpy(dtype=np.float64)
    return MapPoints(
        strings=tuple(first["string"]),
        keys=tuple(first["key"]),
        kind=kind or _kind(run, first["string"].tolist()),
        values=numbers,
        groups=tuple(
            _group(status, batch, value)
            for status, batch, value in zip(first["status"], first["batch"], numbers, strict=True)
        ),
        labels=tuple(first["name"].astype(str)) if "name" in first else ("",) * len(first),
        value_label=_value_label(run.settings),
        log10=log10,
        minimize=run.direction == "minimize",
        notes=tuple(note.rstrip(".") for note in run.missing),
        total=len(first),
        run=run,
        further=_of_library(run, first["string"].tolist()),
    )


def _kind(run: Run, strings: list[str]) -> str:
    kind = run.settings.get("kind")
    return kind if isinstance(kind, str) and kind else recognize_kind(strings)


def _group(status: str, batch: float, value: float) -> str:
    if not math.isnan(value):
        return CHOSEN if batch > 0 else INITIAL
    return {"failed": FAILED, "pending": SUGGESTED}.get(status, UNMEASURED)


def _value_label(settings: dict[str, Any]) -> str:
    name, unit = str(settings.get("objective") or "value"), str(settings.get("unit") or "")
    return f"{name} ({unit})" if unit else name


def points_to_project(
    source: str | os.PathLike[str],
    *,
    column: str | None,
    values_column: str | None,
    kind: str,
    log10: bool = False,
    standardize: bool = False,
) -> MapPoints:
    """The strings of another file, all in the group `PROJECTED`.

    Its columns are taken by the same names as those of the map's file where it has them.

    Args:
        source: A file or a named data set.
        column: Column of strings of the map's file.
        values_column: Column of values of the map's file.
        kind: Kind of the map's strings.
        log10: Whether the values span decades.
        standardize: Whether they are identified by their charge parents.

    Raises:
        InputError: As `points_of_file` does.
    """
    path = Path(source)
    if path.suffix or path.exists():
        columns = read_table(path).columns
        column = column if column in columns else None
        values_column = values_column if values_column in columns else None
    try:
        points = points_of_file(
            source, column=column, values_column=values_column, kind=kind, log10=log10, standardize=standardize
        )
    except InputError:
        if values_column is None:
            raise
        # Only the strings are needed: they are mapped without values where no cell is a usable one.
        points = points_of_file(source, column=column, kind=kind, standardize=standardize)
        without = f"no usable values in the column {values_column}; its strings are in the map anyway"
        points = replace(points, notes=(*points.notes, without))
    notes = tuple(f"{source}: {note}" for note in points.notes)
    return replace(points, groups=(PROJECTED,) * len(points), notes=notes)


@dataclass(frozen=True)
class MapInput:
    """What `seqopt.report.embedding.embed` maps.

    Attributes:
        mapped: The strings that make the map.
        projected: Strings that are put into it; `None` for none.
    """

    mapped: MapPoints
    projected: MapPoints | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of both."""
        mine = self.mapped.notes
        if len(self.mapped) < self.mapped.total:
            mine = (*mine, f"a random sample of {len(self.mapped):,} of {self.mapped.total:,} strings is mapped")
        return mine + (self.projected.notes if self.projected is not None else ())


def gather_points(
    source: str | os.PathLike[str] | None,
    run: str | os.PathLike[str] | None = None,
    *,
    column: str | None = None,
    values_column: str | None = None,
    kind: str | None = None,
    log10: bool = False,
    minimize: bool = False,
    sample: int = 4000,
    project: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> MapInput:
    """Read everything that goes into a map.

    Args:
        source: A file or a named data set; see `points_of_file`, also for ``column``, ``values_column``, ``kind``,
            ``log10`` and ``progress``.
        run: A run folder or a campaign, whose strings come first; see `points_of_run`.
        column: Column of strings.
        values_column: Column of values.
        kind: Kind of strings.
        log10: Whether the values span decades.
        minimize: Whether low values of the file are good; a run says so itself.
        sample: Strings of the map at most; see `MapPoints.sampled`.
        project: A file of strings that are put into the map; see `points_to_project`.
        seed: Draws the sample.
        progress: Called while molecules are read.

    Raises:
        SeqoptError: For anything that cannot be read; see the functions named.
    """
    searched = None if run is None else points_of_run(run, kind=kind)
    standardize = searched is not None and searched.run is not None and bool(searched.run.settings.get("standardize"))
    mapped = searched
    if source is not None:
        if searched is not None and log10 and not searched.log10:
            raise InputError("the values of the search are not on a logarithmic scale: leave --transform log10 out")
        found = points_of_file(
            source,
            column=column,
            values_column=values_column,
            kind=kind if searched is None else searched.kind,
            log10=log10 if searched is None else searched.log10,
            standardize=standardize,
            progress=progress,
        )
        mapped = replace(found, minimize=minimize) if searched is None else _beside(searched, found)
    elif mapped is None:
        raise InputError("nothing to map: give a file, the name of a data set, or a run")
    elif column is not None or values_column is not None or log10 or minimize:
        raise InputError(
            "--column, --values, --transform and --minimize say what is in a file: name the file, or leave them out "
            "(a search says so itself)"
        )
    mapped = mapped.sampled(sample, np.random.default_rng(seed))
    if project is None:
        return MapInput(mapped)
    others = points_to_project(
        project,
        column=column,
        values_column=values_column,
        kind=mapped.kind,
        log10=mapped.log10,
        standardize=standardize,
    )
    return MapInput(mapped, others)


def _beside(searched: MapPoints, found: MapPoints) -> MapPoints:
    """The strings of a search, and then those of a file."""
    if not found.value_label:
        # Beside the strings of a run, those of its pool are what has not been measured.
        named = found if searched.run is None else replace(found, further=_of_library(searched.run, found.strings))
        return searched.joined(replace(named, groups=(UNMEASURED,) * len(found)))
    both = f"the values of the file ({found.value_label}) and of the search ({searched.value_label}) share one scale"
    return searched.joined(replace(found, notes=(*found.notes, both)))
