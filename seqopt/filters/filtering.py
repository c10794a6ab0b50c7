"""Filters applied: to all candidates of a library at once, to strings as they are generated, to a few strings.

Conditions on columns and patterns cost nothing. Features of molecules do (see `seqopt.filters.properties`): they are
computed in several processes, what is cheap first, for each molecule up to the first filter that it fails, and kept in
the cache folder, feature by feature, for the next time, whatever the bounds are then.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.filters.conditions import (
    Column,
    ColumnCondition,
    Filter,
    MoleculeFilter,
    Pattern,
    passing,
)
from seqopt.filters.listed import Listed
from seqopt.filters.properties import cost, measure, within
from seqopt.strings.identity import identity_keys
from seqopt.strings.mutations import readable_variants
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet, PoolSpace, Space

CACHE_FROM = 1_000
"""Molecules from which on features are kept in the cache folder."""

CHUNK = 500
"""Molecules that a process is given at a time."""

SAMPLE = 500
"""Random strings on which filters are tried where strings are generated."""

SHOWN = 3
"""Suggestions or cells that a sentence names."""

REMEMBERED = 100_000
"""Strings whose answer is remembered while strings are generated."""

Cells = Mapping[str, Sequence[str]]
"""Columns of a library, for each a cell for every candidate."""

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
AnySpace = TypeVar("AnySpace", bound="Space")


@dataclass(frozen=True)
class FilterStep:
    """What one filter does.

    Attributes:
        filter: The filter in words.
        reached: Candidates that pass all filters before it.
        passed: Those of them that pass it, too.
        note: What else is worth knowing.
    """

    filter: str
    reached: int
    passed: int
    note: str = ""


@dataclass(frozen=True)
class FilterReport:
    """What filters do to a space, in the order in which they are asked: the cheap ones first.

    Attributes:
        candidates: How many strings they were tried on.
        allowed: How many pass all.
        steps: What each filter does.
        sampled: Whether the strings are random ones, of a space that generates its strings, and not all that there are.
    """

    candidates: int
    allowed: int
    steps: tuple[FilterStep, ...]
    sampled: bool = False

    def lines(self) -> list[str]:
        """The report in words, a line for each filter after one for all.

        Example:
            >>> steps = FilterStep("price <= 10", 40, 12), FilterStep("MW >= 50", 12, 9)
            >>> print(*FilterReport(40, 9, steps).lines(), sep="\\n")
            9 of 40 candidates pass the filters
              price <= 10: 12 of 40
              MW >= 50: 9 of 12
        """
        what = "random strings" if self.sampled else "candidates"
        return [
            f"{self.allowed:,} of {self.candidates:,} {what} pass the filters",
            *(
                f"  {step.filter}: {step.passed:,} of {step.reached:,}" + (f" ({step.note})" if step.note else "")
                for step in self.steps
            ),
        ]

    def refusal(self) -> str:
        """Why nothing is left, in a sentence: which filter removes how many."""
        removed = ", then ".join(
            f"{step.filter!r} removes {step.reached - step.passed:,} of {step.reached:,}"
            for step in self.steps
            if step.passed < step.reached
        )
        what = "random strings" if self.sampled else "candidates"
        notes = "".join(f". Of {step.filter!r}: {step.note}" for step in self.steps if step.note)
        return f"none of {self.candidates:,} {what} passes the filters: {removed}{notes}"

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return asdict(self)


def check_filters(
    filters: Sequence[Filter], kind: str, space: Space | None, cells: Cells | None, *, standardize: bool = False
) -> list[Filter]:
    """Refuse filters that do not fit what is searched, and give columns the names that they have in the library.

    Args:
        filters: Filters that are right by themselves: see `seqopt.filters.conditions.checked`.
        kind: What the strings are.
        space: The space; may be left out for a library.
        cells: Of a library, its columns, if it has any.
        standardize: Whether molecules are identified by their charge parents.

    Raises:
        InputError: For a filter of molecules where strings are none, a column that is not there or of the wrong kind,
            or a space that filters cannot narrow.
    """
    found: list[Filter] = []
    for item in filters:
        if isinstance(item, MoleculeFilter) and kind != "molecule":
            raise InputError(
                f"the filter {item.describe()!r} is for molecules; this campaign searches strings of kind {kind!r}"
                + (" (a grammar of SMILES needs --kind molecule)" if kind == "text" else "")
            )
        if isinstance(item, ColumnCondition):
            item = _fitting(item, cells)
        if isinstance(item, Listed):
            item = item.keyed(kind, standardize=standardize)
        found.append(item)
    if found and space is not None and not _is_pool(space) and not hasattr(space, "accept"):
        raise InputError(f"a {type(space).__name__} has no accept attribute, by which filters could narrow it")
    return found


def check_columns(filters: Sequence[Filter], names: Sequence[str] | None) -> None:
    """Refuse conditions on columns that a library does not have; this can be asked before its strings are looked at.

    Args:
        filters: Filters that are right by themselves: see `seqopt.filters.conditions.checked`.
        names: Its columns besides the strings; `None` where it has none, as a data set that goes by its name.

    Raises:
        InputError: For such a condition; the message lists the columns.

    Example:
        >>> check_columns([ColumnCondition.parse("cost <= 100")], ["id", "price"])
        Traceback (most recent call last):
        seqopt.errors.InputError: the library has no column 'cost'; its columns are 'id', 'price'
    """
    for item in filters:
        if isinstance(item, ColumnCondition):
            _named_in(item, names)


def narrowed_pool(
    pool: PoolSpace, filters: Sequence[Filter], cells: Cells | None, *, progress: Progress | None = None
) -> tuple[CandidateSet | None, FilterReport]:
    """The candidates of a pool that pass, in their order (`None` if none does), and what each filter does.

    Args:
        pool: The candidates.
        filters: The filters, checked.
        cells: The columns of the library besides the candidates.
        progress: Told how many molecules are done, of those whose features have to be computed.

    Raises:
        InputError: For a condition on a column that does not fit (any more).
    """
    from seqopt.spaces import CandidateSet

    mask, report = filter_pool([pool[i] for i in range(len(pool))], pool.keys, pool.kind, filters, cells, progress)
    rows = np.flatnonzero(mask).tolist()
    if not rows:
        return None, report
    keys = pool.keys
    space = CandidateSet(
        [pool[row] for row in rows],
        kind=pool.kind,
        tokenizer=pool.encoder.tokenizer,
        keys=[keys[row] for row in rows],
        standardize=getattr(pool, "standardize", False),
    )
    return space, report


def filter_pool(
    strings: Sequence[str],
    keys: Sequence[str],
    kind: str,
    filters: Sequence[Filter],
    cells: Cells | None = None,
    progress: Progress | None = None,
    *,
    apart: bool = True,
) -> tuple[BoolArray, FilterReport]:
    """Which candidates pass all filters, and what each filter does.

    Args:
        strings: The N candidates as they are written.
        keys: Their keys; features of molecules are those of the keys.
        kind: What they are.
        filters: The filters, checked.
        cells: The columns of the library besides the candidates.
        progress: Told how many molecules are done, of those whose features have to be computed.
        apart: Whether features are computed in several processes and kept in the cache folder.

    Returns:
        A mask of length N, and the report.

    Example:
        >>> from seqopt.filters import PropertyRange, Substructure
        >>> mask, report = filter_pool(
        ...     ["CCO", "CCCCCCO", "CCN"], ["CCO", "CCCCCCO", "CCN"], "molecule",
        ...     [Substructure("O"), PropertyRange("heavy_atoms", high=5)],
        ... )
        >>> mask.tolist()
        [True, False, False]
    """
    alive = np.ones(len(strings), dtype=np.bool_)
    steps: list[FilterStep] = []

    def keep(item: Filter, passing: BoolArray, note: str = "") -> None:
        reached = int(alive.sum())
        np.logical_and(alive, passing, out=alive)
        steps.append(FilterStep(item.describe(), reached, int(alive.sum()), note))

    for item in filters:
        if isinstance(item, ColumnCondition):
            column = _cells_of(item, cells)
            keep(item, np.array(item.mask(column), dtype=np.bool_), _unread_note(item, column, alive))
    for item in filters:
        if isinstance(item, Pattern):
            keep(item, np.fromiter((item.matches(string, kind) for string in strings), np.bool_, len(strings)))
        if isinstance(item, Listed):
            keep(item, np.fromiter(map(item.allows, keys), np.bool_, len(keys)))
    of_molecules = sorted((item for item in filters if isinstance(item, MoleculeFilter)), key=_cost)
    if of_molecules:
        features = _features(keys, of_molecules, alive, progress, apart)
        for item in of_molecules:
            # Known wherever all filters before are passed.
            keep(item, passing(item, features[item.feature].values))
    return alive, FilterReport(len(strings), int(alive.sum()), tuple(steps))


def narrow(space: AnySpace, filters: Sequence[Filter]) -> AnySpace:
    """A space of the strings of another, generated as there, that pass filters; the other is left as it is."""
    own: Callable[[str], bool] | None = getattr(space, "accept", None)
    passes = acceptor(filters, space.kind)
    found = copy.copy(space)

    def accept(string: str) -> bool:
        return (own is None or bool(own(string))) and passes(string)

    found.accept = accept  # type: ignore[attr-defined]
    return found


def acceptor(filters: Sequence[Filter], kind: str) -> Callable[[str], bool]:
    """Whether one string passes all filters, none of them of a column; what was asked before is remembered.

    Example:
        >>> accept = acceptor([Pattern("11"), Pattern("000", required=False)], "text")
        >>> [accept(string) for string in ("0110", "0101", "11000")]
        [True, False, False]
    """
    patterns = [item for item in filters if isinstance(item, Pattern)]
    lists = [item for item in filters if isinstance(item, Listed)]
    of_molecules = sorted((item for item in filters if isinstance(item, MoleculeFilter)), key=_cost)
    features, bounds = [item.feature for item in of_molecules], [item.bounds for item in of_molecules]

    @lru_cache(maxsize=REMEMBERED)
    def accept(string: str) -> bool:
        if not all(item.matches(string, kind) for item in patterns):
            return False
        if lists:
            (key,) = identity_keys([string], kind)
            if key is None or not all(item.allows(key) for item in lists):
                return False
        if not of_molecules:
            return True
        (values,) = measure([string], features, bounds)
        return len(values) == len(features) and within(values[-1], **bounds[-1])

    return accept


def try_filters(space: Space, filters: Sequence[Filter], seed: int) -> FilterReport:
    """What filters do to `SAMPLE` random strings of a space that generates its strings.

    Args:
        space: The space, not narrowed.
        filters: The filters, checked.
        seed: Of the random strings.
    """
    strings = list(dict.fromkeys(_drawn(space, np.random.default_rng([seed, SAMPLE]))))
    _, report = filter_pool(strings, [space.key(string) for string in strings], space.kind, filters)
    return FilterReport(report.candidates, report.allowed, report.steps, sampled=True)


def failing(
    strings: Mapping[str, tuple[str, str]], kind: str, filters: Sequence[Filter], cells: Cells | None
) -> dict[str, str]:
    """Which of a few strings fail a filter, and why.

    Args:
        strings: By a name, each string and its key.
        kind: What the strings are.
        filters: The filters, checked.
        cells: The columns of the library, for each a cell for every string.

    Returns:
        For the names of those that fail, the reasons.
    """
    found: dict[str, str] = {}
    of_molecules = sorted((item for item in filters if isinstance(item, MoleculeFilter)), key=_cost)
    features = [item.feature for item in of_molecules]
    for index, (name, (string, key)) in enumerate(strings.items()):
        reasons = []
        for item in filters:
            if isinstance(item, ColumnCondition):
                column = _cells_of(item, cells)
                if not item.mask(column)[index]:
                    cell = column[index].strip()
                    reasons.append(f"{item.column} is {repr(cell) if cell else 'empty'}, wanted is {item.describe()}")
            elif isinstance(item, Listed) and not item.allows(key):
                reasons.append(
                    f"it is {'not ' if item.required else ''}one of the strings in {item.source or 'a list'}"
                )
            elif isinstance(item, Pattern) and not item.matches(string, kind):
                reasons.append(f"it {'lacks' if item.required else 'has'} the pattern {item.pattern}")
        if of_molecules:
            (values,) = measure([key], features)
            values += [math.nan] * (len(features) - len(values))
            reasons += [
                item.why_not(key, value)
                for item, value in zip(of_molecules, values, strict=True)
                if not within(value, **item.bounds)
            ]
        if reasons:
            found[name] = "; ".join(reasons)
    return found


def library_cells(
    facts: Mapping[str, Any] | None, strings: Sequence[str] | None = None, *, as_written: bool = False
) -> dict[str, list[str]] | None:
    """The cells of a library besides its strings, as filters compare them; of the first row of equal strings.

    The cells of some of its strings are a `seqopt.filters.conditions.Column`, so that what is asked of a column as
    a whole has one answer whichever strings it is asked for.

    Args:
        facts: What a campaign keeps of its library.
        strings: Candidates as they are written there; others have empty cells. By default all rows count.
        as_written: Whether cells are given as they are in the file.

    Returns:
        Every column but that of the strings; `None` where there is no library, or none with columns.
    """
    found = library_table(facts, as_written=as_written)
    if found is None:
        return None
    written, columns = found
    if strings is None:
        return columns
    rows: dict[str, int] = {}
    for row, string in enumerate(written):
        rows.setdefault(string.strip(), row)
    indices = [rows.get(string) for string in strings]
    return {
        name: Column(("" if index is None else cells[index] for index in indices), whole=cells)
        for name, cells in columns.items()
    }


def library_table(
    facts: Mapping[str, Any] | None, *, as_written: bool = False
) -> tuple[list[str], dict[str, list[str]]] | None:
    """The strings of a library and its other columns, the files one below the other.

    Where a file lacks a column of another one, its cells are empty. Where commas are decimal in the library, its
    numbers are given with points.

    Args:
        facts: What a campaign keeps of its library.
        as_written: Whether cells are given as they are in the file.

    Returns:
        `None` where there is no library that is a file, or none with columns.
    """
    from seqopt.datasets.numbers import comparable
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.structures import as_smiles
    from seqopt.datasets.tables import read_table

    if facts is None or not file_and_part(facts["path"])[0].is_file():
        return None
    comma = bool(facts.get("decimal_comma"))
    files = [facts, *facts.get("added", [])]
    strings: list[str] = []
    columns: dict[str, list[str]] = {}
    for number, facts in enumerate(files):
        path, column = Path(facts["path"]), facts["column"] or "string"
        table = None
        if file_and_part(path)[0].is_file():
            table = read_table(path, expected={plain_name(column)}, decimal_comma=comma and as_written)
        if table is None or column not in table.columns:
            if not number:
                return None
            continue
        own = list(table.columns[column])
        if facts.get("kind") == "molecule":
            own = list(as_smiles(own))
        own = readable_variants(facts.get("parent"), own)
        others = {name: list(cells) for name, cells in table.columns.items() if name != column}
        for name in dict.fromkeys([*columns, *others]):
            before = columns.get(name, [""] * len(strings))
            columns[name] = before + others.get(name, [""] * len(own))
        strings += own
    if comma and not as_written:
        columns = {name: list(map(comparable, cells)) for name, cells in columns.items()}
    return strings, columns


def failing_note(found: Mapping[str, str]) -> str:
    """A sentence on open suggestions that fail, from their names and reasons.

    Example:
        >>> failing_note({"B01-02": "it has [#7]"})
        '1 open suggestion would not be suggested any more: B01-02 (it has [#7])'
    """
    shown = [f"{name} ({why})" for name, why in list(found.items())[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    what = "1 open suggestion" if len(found) == 1 else f"{len(found)} open suggestions"
    return f"{what} would not be suggested any more: {', '.join(shown)}{more}"


def _fitting(item: ColumnCondition, cells: Cells | None) -> ColumnCondition:
    found = ColumnCondition(_named_in(item, None if cells is None else list(cells)), item.operator, item.value)
    if cells is not None:
        found.check_cells(cells[found.column])
    return found


def _named_in(item: ColumnCondition, names: Sequence[str] | None) -> str:
    if names is None:
        raise InputError(
            f"the filter {item.describe()!r} needs a library that is a file with named columns; this campaign has none"
        )
    return item.found_in(names)


def _cells_of(item: ColumnCondition, cells: Cells | None) -> Sequence[str]:
    if cells is None:
        raise InputError(f"the filter {item.describe()!r} needs a library with columns, which no longer exists")
    return cells[item.found_in(list(cells))]


def _unread_note(item: ColumnCondition, cells: Sequence[str], reached: BoolArray) -> str:
    """How many of the cells that are reached fail because they are empty or no numbers."""
    if not item.numeric(cells):
        return ""
    shown = set(item.unread(cells))
    met = [cell.strip() for cell, here in zip(cells, reached.tolist(), strict=True) if here]
    empty, unread = met.count(""), [cell for cell in met if cell in shown]
    notes = [f"{empty:,} empty"] if empty else []
    if unread:
        examples = list(dict.fromkeys(unread))
        listed = ", ".join(map(repr, examples[:SHOWN])) + (", ..." if len(examples) > SHOWN else "")
        notes.append(f"{len(unread):,} not a number: {listed}")
    return ", ".join(notes)


def _cost(item: MoleculeFilter) -> float:
    return cost(item.feature)


@dataclass
class _Feature:
    """A feature of all molecules of a library, as far as it is known."""

    values: FloatArray
    known: BoolArray


def _features(
    keys: Sequence[str], filters: Sequence[MoleculeFilter], alive: BoolArray, progress: Progress | None, apart: bool
) -> dict[str, _Feature]:
    """The filters' features, of each molecule at least up to the first filter that it fails."""
    import rdkit

    names = list(dict.fromkeys(item.feature for item in filters))
    library = digest(keys) if apart and len(keys) >= CACHE_FROM else ""
    files = {name: f"filter-{digest([name, rdkit.__version__, library])[:32]}.txt" for name in names} if library else {}
    found = {name: _read(files.get(name), len(keys)) for name in names}
    todo = np.flatnonzero(alive & _undecided(filters, found)).tolist()
    if not todo:
        return found
    asked: dict[str, Any] = {
        "features": [item.feature for item in filters],
        "conditions": [item.bounds for item in filters],
    }
    wanted = [keys[row] for row in todo]
    computed = (
        map_strings("seqopt.filters.properties:measure", wanted, arguments=asked, chunk=CHUNK, progress=progress)
        if apart
        else measure(wanted, **asked)
    )
    for row, values in zip(todo, computed, strict=True):
        # Shorter than the filters where one of them is failed.
        for item, value in zip(filters, values, strict=False):
            found[item.feature].values[row] = value
            found[item.feature].known[row] = True
    for name, file in files.items():
        pairs = zip(found[name].values.tolist(), found[name].known.tolist(), strict=True)
        write_cached(file, [repr(value) if known else "" for value, known in pairs])
    return found


def _undecided(filters: Sequence[MoleculeFilter], features: Mapping[str, _Feature]) -> BoolArray:
    """Molecules that meet an unknown feature before a filter that they fail."""
    size = len(features[filters[0].feature].known)
    failed, undecided = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for item in filters:
        feature = features[item.feature]
        undecided |= ~failed & ~feature.known
        failed |= feature.known & ~passing(item, feature.values)
    return undecided


def _read(file: str | None, size: int) -> _Feature:
    items = None if file is None else read_cached(file, size)
    if items is None:
        return _Feature(np.full(size, np.nan), np.zeros(size, dtype=np.bool_))
    values = np.array([float(item) if item else math.nan for item in items])
    return _Feature(values, np.array([bool(item) for item in items], dtype=np.bool_))


def _is_pool(space: Space) -> bool:
    # Spaces bring torch along, which takes seconds to load.
    from seqopt.spaces import PoolSpace

    return isinstance(space, PoolSpace)


def _drawn(space: Space, rng: np.random.Generator) -> list[str]:
    from seqopt.spaces import EvolvableSpace

    if isinstance(space, EvolvableSpace):
        # Individuals need not be distinct, so that a space of few strings is not a problem.
        return [space.to_string(individual) for individual in space.sample_individuals(SAMPLE, rng)]
    return space.sample(SAMPLE, rng)
