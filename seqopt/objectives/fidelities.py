"""Objectives that are measured in several ways, each by a function, or a column, of its own."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seqopt.data import Contexts, ContextValue, Query, as_context
from seqopt.errors import InputError
from seqopt.evaluation import PerString
from seqopt.evaluation.judging import describe
from seqopt.evaluation.single import on_one, refuses_lists, takes_one_string
from seqopt.objectives.objective import ColumnLookup, Objective, resolve_objective

logger = logging.getLogger(__name__)

FIDELITY = "fidelity"
"""The variable of the contexts that `Fidelities.contexts` makes."""

COLUMN = "column:"

Score = Callable[[list[str]], npt.ArrayLike]


class FurtherPool(Protocol):
    """A pool with several columns of numbers, such as `seqopt.datasets.Pool`."""

    @property
    def strings(self) -> Sequence[str]: ...

    @property
    def keys(self) -> Sequence[str]: ...

    @property
    def kind(self) -> str: ...

    @property
    def standardized(self) -> bool: ...

    @property
    def further(self) -> Mapping[str, npt.NDArray[np.float64]]: ...


@dataclass(frozen=True)
class ByFidelity:
    """An objective of queries, made of one function of strings for each fidelity.

    Attributes:
        name: What the target is called.
        scores: For each level, a function from strings to as many numbers.
        chunk_size: The largest number of queries in one call.

    Example:
        >>> both = ByFidelity("count", {"rough": lambda s: [1.0 for _ in s], "exact": lambda s: [2.0 for _ in s]})
        >>> both([Query("CCO", {"fidelity": "exact"}), Query("CCO", {"fidelity": "rough"})]).tolist()
        [2.0, 1.0]
    """

    name: str
    scores: Mapping[str, Score]
    chunk_size: int = 1

    def __call__(self, queries: Sequence[Query]) -> npt.NDArray[np.float64]:
        """The values, NaN where there is none.

        Raises:
            ValueError: If a function does not return one number for each string.
        """
        values = np.full(len(queries), np.nan)
        for level, score in self.scores.items():
            places = [place for place, query in enumerate(queries) if query.get(FIDELITY) == level]
            if not places:
                continue
            found = _numbers(score, [queries[place].key for place in places])
            if found.shape != (len(places),):
                raise ValueError(f"the function of {level} returned {found.size} numbers for {len(places)} strings")
            values[places] = found
        return values


def _numbers(score: Score, strings: list[str]) -> npt.NDArray[np.float64]:
    try:
        found: Any = score(strings)
    except (TypeError, AttributeError) as error:
        if not refuses_lists(error, strings, describe(error)):
            raise
        found = [on_one(score, string) for string in strings]
    if found is None or any(
        isinstance(value, str | bytes | None) for value in np.atleast_1d(np.asarray(found, object))
    ):
        raise TypeError(f"returned {found!r}; expected one number per string")
    return np.atleast_1d(np.asarray(found, dtype=np.float64))


@dataclass(frozen=True)
class Fidelity:
    """A way to measure that is cheaper than the target.

    Attributes:
        name: What it is called.
        score: A function of strings, or what `seqopt.objectives.resolve_objective` takes; `None` where the objective
            itself is given queries.
        cost: Of a measurement; positive.
    """

    name: str
    score: Score | str | None
    cost: float

    @classmethod
    def parse(cls, text: str) -> Fidelity:
        """A fidelity as the command line writes it: ``column:NAME:COST`` or ``FILE.py:FUNCTION:COST``.

        Raises:
            InputError: If it has not this form, or the cost is not a positive number.

        Example:
            >>> Fidelity.parse("column:docking:0.01").cost, Fidelity.parse("scoring.py:dock:0.5").name
            (0.01, 'dock')
        """
        spec, colon, cost = text.strip().rpartition(":")
        name = spec.rpartition(":")[2].strip()
        if not colon or ":" not in spec or not name:
            raise InputError(
                f"the fidelity {text!r} is incomplete: write column:NAME:COST, such as column:docking:0.01, or "
                "FILE.py:FUNCTION:COST"
            )
        try:
            number = float(cost)
        except ValueError:
            raise InputError(
                f"the fidelity {text!r} ends with {cost!r}; expected what a measurement costs, such as {spec}:0.01"
            ) from None
        return cls(name, spec, _checked_cost(name, number))

    @property
    def column(self) -> str | None:
        """The column that it is looked up in, if it is."""
        of_column = isinstance(self.score, str) and self.score.strip().startswith(COLUMN)
        return str(self.score).strip().removeprefix(COLUMN).strip() if of_column else None


@dataclass(frozen=True)
class Fidelities:
    """The ways to measure of one search, the target among them.

    Attributes:
        target: What the target is called.
        target_cost: What it costs.
        others: The cheaper ones.
    """

    target: str
    target_cost: float
    others: tuple[Fidelity, ...]

    @classmethod
    def of(
        cls, given: Mapping[str, Any] | Sequence[Fidelity], objective: object, target: str | None, target_cost: float
    ) -> Fidelities:
        """What `seqopt.maximize` was given, checked.

        Raises:
            InputError: For no fidelity, one that is named twice or as the target, one without function or cost, or a
                cost that is not positive.
        """
        named = target or (_column_of(objective) if _is_column(objective) else "target")
        if isinstance(given, Mapping):
            others = tuple(_given(str(name), value) for name, value in given.items())
        else:
            others = tuple(given)
        if not others:
            raise InputError("fidelities is empty: name a cheap measurement, such as {'docking': (dock, 0.01)}")
        names = [named, *(one.name for one in others)]
        for name in names:
            if not name or name != name.strip():
                raise InputError(f"a fidelity is called {name!r}; expected a text that neither begins nor ends blank")
            if [other.casefold() for other in names].count(name.casefold()) > 1:
                what = "is the target, too" if name.casefold() == named.casefold() else "is given twice"
                raise InputError(f"the fidelity {name!r} {what}: give each another name, and each column once")
        columns = [one.column for one in others] + ([_column_of(objective)] if _is_column(objective) else [])
        for column in filter(None, columns):
            if [(other or "").casefold() for other in columns].count(column.casefold()) > 1:
                raise InputError(f"column {column!r} is given twice: a column is one way to measure")
        if len({one.score is None for one in others}) > 1:
            raise InputError(
                "some fidelities have a function and some have only a cost: give each a pair (function, cost), or, if "
                "the objective takes queries and measures all of them, each a cost"
            )
        return cls(named, _checked_cost(named, target_cost), others)

    @property
    def by_query(self) -> bool:
        """Whether the objective itself takes queries."""
        return self.others[0].score is None

    @property
    def columns(self) -> list[str]:
        """The columns that are looked up."""
        return [one.column for one in self.others if one.column is not None]

    @property
    def contexts(self) -> Contexts:
        """The contexts of the search, the target first."""
        costs: dict[ContextValue, float] = {self.target: self.target_cost}
        costs |= {one.name: one.cost for one in self.others}
        return Contexts.of_levels(FIDELITY, costs, target=self.target)

    def described(self) -> dict[str, str]:
        """What each is measured by, as far as that is a text: what a run keeps."""
        return {one.name: one.score if isinstance(one.score, str) else _named(one.score) for one in self.others}

    def objective(self, target: Score, pool: FurtherPool | None) -> ByFidelity:
        """The objective of queries.

        Args:
            target: The function of the target.
            pool: Where columns are looked up.

        Raises:
            InputError: For a column that there is not, or that holds no number.
        """
        scores: dict[str, Score] = {self.target: _per_string(target)}
        for one in self.others:
            assert one.score is not None  # see `by_query`
            scores[one.name] = _resolved(one, pool) if isinstance(one.score, str) else _per_string(one.score)
        sizes = [int(getattr(score, "chunk_size", 1) or 1) for score in scores.values()]
        name = str(getattr(target, "name", None) or getattr(target, "__qualname__", None) or self.target)
        return ByFidelity(name, scores, min(sizes))

    @property
    def custom(self) -> bool:
        """Whether one of them is a function of the user."""
        return any(one.column is None for one in self.others)

    def unavailable(self, pool: FurtherPool) -> frozenset[Query]:
        """Queries that cannot be made, since the cell of their column is empty."""
        found: set[Query] = set()
        for one in self.others:
            if one.column is not None:
                values, context = _values(one, pool), as_context({FIDELITY: one.name})
                found.update(Query(pool.keys[int(row)], context) for row in np.flatnonzero(np.isnan(values)))
        return frozenset(found)

    def remarks(self, pool: FurtherPool) -> list[str]:
        """What is worth knowing of the columns: cells that are empty, and values that tell nothing."""
        found = []
        for one in self.others:
            if one.column is None:
                continue
            values = _values(one, pool)
            missing, known = int(np.isnan(values).sum()), values[~np.isnan(values)]
            if missing:
                most = ", most of them" if 2 * missing > len(values) else ""
                found.append(
                    f"{missing:,} of {len(values):,} candidates{most} have no number in column {one.column!r}: "
                    f"they are never measured by {one.name}"
                )
            if known.min() == known.max():
                found.append(f"column {one.column!r} holds {known[0]:g} throughout: {one.name} tells nothing")
        return found


def _given(name: str, value: Any) -> Fidelity:
    if isinstance(value, Fidelity):
        return value
    if isinstance(value, tuple | list):
        if len(value) != 2 or not (callable(value[0]) or isinstance(value[0], str)):
            raise InputError(
                f"the fidelity {name!r} is {value!r}; expected a pair of a function (or 'column:NAME') and a cost"
            )
        return Fidelity(name, value[0], _checked_cost(name, value[1]))
    return Fidelity(name, None, _checked_cost(name, value))


def _checked_cost(name: str, cost: Any) -> float:
    try:
        number = math.nan if isinstance(cost, bool) else float(cost)
    except (TypeError, ValueError):
        raise InputError(
            f"the fidelity {name!r} is {cost!r}; expected its cost, or a pair of a function and a cost"
        ) from None
    if not 0 < number < math.inf:
        raise InputError(f"the cost of {name} is {cost}; expected a positive number, in units of your choice")
    return number


def _is_column(objective: object) -> bool:
    return isinstance(objective, str) and objective.strip().startswith(COLUMN)


def _column_of(objective: object) -> str:
    return str(objective).strip().removeprefix(COLUMN).strip()


def _named(score: object) -> str:
    return str(getattr(score, "name", None) or getattr(score, "__qualname__", None) or type(score).__name__)


def _per_string(score: Score) -> Score:
    return PerString(score) if takes_one_string(score) else score


def _values(one: Fidelity, pool: FurtherPool) -> npt.NDArray[np.float64]:
    folded = {name.strip().casefold(): values for name, values in pool.further.items()}
    values = folded.get((one.column or "").casefold())
    if values is None:
        raise InputError(
            f"the fidelity {one.name!r} is looked up in the pool's column {one.column!r}, which was not read: "
            f"read_pool(..., further_values=[{one.column!r}])"
        )
    if np.isnan(values).all():
        raise InputError(f"column {one.column!r} holds no number: leave the fidelity {one.name!r} out")
    return values


def _resolved(one: Fidelity, pool: FurtherPool | None) -> Score:
    if one.column is None:
        assert isinstance(one.score, str)
        return resolve_objective(one.score)
    if pool is None:
        raise InputError(f"the fidelity {one.name!r} is a column, and the candidates were not read from a file")
    values = _values(one, pool).tolist()
    table = dict(zip(pool.keys, values, strict=True)) | dict(zip(pool.strings, values, strict=True))
    lookup = ColumnLookup(table, pool.kind, pool.standardized)
    return Objective(f"{COLUMN}{one.column}", lookup, f"the pool's column {one.column!r}", kinds=(pool.kind,))
