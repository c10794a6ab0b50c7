"""Results on their way into a campaign: as somebody gave them, while they are looked at, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seqopt.campaign.rows import Censoring, NewExclusion, NewMeasurement, Suggestion

if TYPE_CHECKING:
    from seqopt.data import Context, ContextValue

Identify = Callable[[str], str]
"""From a string to its key; raises `InputError` for a string that is not allowed."""

Owned = Callable[[str], str | None]
"""From what the owner of a library calls a candidate to its string; `None` for what nothing is called."""


@dataclass(frozen=True)
class Remark:
    """Something that is wrong with a file, or worth a second look.

    Attributes:
        message: What, and what was expected.
        source: The file.
        line: The line, counted from 1; `None` for what concerns the whole file.
        column: The column.
        value: What stands there.
        hint: What to do about it, where that is the same for many rows; see `listing`.
    """

    message: str
    source: str = ""
    line: int | None = None
    column: str | None = None
    value: str | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = [self.source] if self.source else []
        where += [f"line {self.line}"] if self.line is not None else []
        where += [f"column {self.column!r}"] if self.column is not None else []
        shown = "" if self.value is None else f"{short(self.value)} "
        said = self.message + (f": {self.hint}" if self.hint else "")
        return (", ".join(where) + ": " if where else "") + shown + said


def listing(remarks: Iterable[Remark]) -> list[str]:
    """Remarks that are shown together, each in words; of those with the same hint, only the first gives it.

    Example:
        >>> listing([Remark("is 0", line=line, hint="leave it empty") for line in (2, 3)])
        ['line 2: is 0: leave it empty', 'line 3: is 0']
    """
    found, given = [], {""}
    for remark in remarks:
        found.append(str(replace(remark, hint="") if remark.hint in given else remark))
        given.add(remark.hint)
    return found


MOST_LISTED = 20
"""Remarks of one kind that a message lists; a file that was recorded before may have hundreds."""


def first_of(remarks: Sequence[Remark]) -> list[str]:
    """As `listing`, of the first `MOST_LISTED`; the last line says how many others there are.

    Example:
        >>> first_of([Remark("is 0", line=line) for line in range(1, 201)])[-2:]
        ['line 20: is 0', 'and 180 others']
    """
    shown = listing(remarks[:MOST_LISTED])
    return shown if len(remarks) <= MOST_LISTED else [*shown, f"and {len(remarks) - MOST_LISTED:,} others"]


@dataclass(frozen=True)
class ResultEntry:
    """A result as somebody gave it.

    Attributes:
        string: The string, if it is given.
        identifier: The name of a suggestion, if it is given.
        value: The value.
        failure: Why there is none.
        standard_error: Of the value.
        replicate: What tells it from other results of the string.
        line: Its line in a file.
        context: How it was measured, as far as that is said.
        further: Values of what was measured besides the objective, by name.
        owned: What the owner of the library calls the string, if that is given.
        status: ``"discarded"`` or ``"withdrawn"``, if the row says so.
        remark: Why.
        prediction: What was predicted before, as far as the row says: ``predicted``, ``predicted_low``,
            ``predicted_high``.
        censored: ``"<"`` or ``">"`` where the value is only a limit.
        cost: What the measurement has cost, if that is said.
        wells: Of how many wells the value is the share of hits, where results are yes or no.
        named: The name of the variant, where the row has one beside its string.
    """

    string: str | None = None
    identifier: str | None = None
    value: float | None = None
    failure: str | None = None
    standard_error: float | None = None
    replicate: str | None = None
    line: int | None = None
    context: Mapping[str, ContextValue] = field(default_factory=dict)
    further: Mapping[str, float] = field(default_factory=dict)
    owned: str | None = None
    status: str | None = None
    remark: str = ""
    prediction: Mapping[str, float] = field(default_factory=dict)
    censored: Censoring | None = None
    cost: float | None = None
    wells: int | None = None
    named: str | None = None


@dataclass(frozen=True)
class Results:
    """What became of a file of results.

    Attributes:
        records: Results that can be recorded, in the order of the file.
        problems: All that is wrong, by line. A row with a problem is not among ``records``; a problem of the whole file
            leaves none.
        warnings: What is worth a second look, and hinders nothing.
        unfilled: Lines that name a string and have no result yet.
        source: The file.
        sha256: Its checksum.
        columns: Which column was taken for what.
        discards: Why some of ``records`` are discarded, by their index.
        exclusions: Strings that the table says were withdrawn.
        unused: Columns that hold something and were taken for nothing, whoever wrote them.
    """

    records: tuple[NewMeasurement, ...]
    problems: tuple[Remark, ...]
    warnings: tuple[Remark, ...]
    unfilled: tuple[int, ...] = ()
    source: str = ""
    sha256: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    discards: Mapping[int, str] = field(default_factory=dict)
    exclusions: tuple[NewExclusion, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        """What belongs among the arguments of the command that records them."""
        return {"file": self.source, "sha256": self.sha256} if self.source else {}


@dataclass
class Row:
    """An entry while it is looked at."""

    entry: ResultEntry
    source: str
    problems: list[Remark] = field(default_factory=list)
    key: str | None = None
    suggestion: Suggestion | None = None
    context: Context = ()
    written: str | None = None
    """How the string was given, where that was a name."""

    @property
    def has_value(self) -> bool:
        return self.entry.value is not None

    @property
    def has_result(self) -> bool:
        return self.has_value or self.entry.failure is not None or bool(self.entry.further)

    @property
    def shown(self) -> str:
        called = self.written or self.entry.string
        return " ".join(part for part in (self.entry.identifier, self.entry.owned, called) if part)

    def remark(self, message: str, value: str | None = None, column: str | None = None, hint: str = "") -> Remark:
        shown = (self.shown if value is None else value) or None
        return Remark(message, self.source, self.entry.line, column, shown, hint)

    def wrong(self, message: str, value: str | None = None, column: str | None = None, hint: str = "") -> None:
        self.problems.append(self.remark(message, value, column, hint))


def lines_of(rows: Sequence[Row]) -> str:
    lines = [row.entry.line for row in rows if row.entry.line is not None]
    return listed(lines) if lines else "another entry"


def listed(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    return f"line{'s' if len(lines) > 1 else ''} {shown}"


def short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
