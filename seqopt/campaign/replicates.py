"""Several results of one string: which of them are measurements, and which a mistake.

Where there are several ways to measure, a string has results in each of them, and what follows is about one.

A second result for a string is only taken if someone says that it is one, so that the same results are never recorded
twice by mistake:

1. Several rows for one string in a file are taken if ``replicates`` is set, or if a column ``replicate`` tells them
   apart. The same label twice is always a problem.
2. A result for a string that has one is taken if ``replicates`` is set, or if the row has a label that no earlier
   result of the string has. An earlier label again is always a problem.
3. A value for a string that so far only failed is taken, and so is what was not measured yet: of a string with a
   solubility its activity, and the other way round.
4. With ``replicates``, a file that was recorded before, byte for byte, is refused.

What was recorded before is kept in every case, replicate by replicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seqopt.campaign.columns import REPLICATE
from seqopt.campaign.entries import Remark, ResultEntry, Row, lines_of
from seqopt.campaign.rows import WELLS, Measurement

if TYPE_CHECKING:
    from seqopt.data import Context


OBJECTIVE = ""
"""Stands for the objective among the names of outcomes."""

_REPEATED = (
    "if these are replicates, say so with --replicate (in Python, replicates=True), or tell them apart by a column "
    f"{REPLICATE!r}"
)

_MEASURED = "if this is another measurement of it, say so with --replicate; what was recorded is kept"


def find_repeats(answered: Sequence[Row], warnings: list[Remark], *, replicates: bool) -> None:
    """Several results of one string in the same file."""
    groups: dict[tuple[str, Context], list[Row]] = {}
    for row in answered:
        if row.key is not None:
            groups.setdefault((row.key, row.context), []).append(row)
    for group in groups.values():
        labelled = all(row.entry.replicate is not None for row in group)
        for row in group:
            others = [other for other in group if other is not row]
            same = [other for other in others if other.entry.replicate == row.entry.replicate]
            if labelled and same:
                message = f"replicate {row.entry.replicate!r} of this string is also in {lines_of(same)}"
                row.wrong(message, hint="give each a different label")
            elif others and not (labelled or replicates):
                row.wrong(f"is also in {lines_of(others)}", hint=_REPEATED)
            elif row is group[0] and row.has_value:
                # Of yes and no, two are as often as not alike.
                alike = same if row.entry.wells is None else []
                equal = [other for other in alike if _values(other.entry) == _values(row.entry)]
                if equal:
                    warnings.append(row.remark(f"has the same value in {lines_of(equal)}: a copy?"))


def compare_with_earlier(row: Row, earlier: Sequence[Measurement], warnings: list[Remark], *, replicates: bool) -> None:
    """Results of a string that has some already."""
    label = row.entry.replicate
    # What is measured later than the rest completes it.
    new = set(row.entry.further) | ({OBJECTIVE} if row.has_value or row.entry.failure is not None else set())
    known = [other for other in earlier if new & _answered(other)]
    if not known and not [other for other in earlier if label is not None and other.replicate == label]:
        return
    measured = [other for other in known if other.failure is None]
    same = [other for other in earlier if label is not None and other.replicate == label]
    if same:
        row.wrong(f"has replicate {label!r} already: {_told(same[0])}")
    elif label is not None:
        return
    elif row.has_value and not measured:
        warnings.append(row.remark(f"has a value now, and so far {_told(known[-1])}"))
    elif not replicates:
        row.wrong(f"has a result already: {_told((measured or known)[-1])}", hint=_MEASURED)
    else:
        equal = [other for other in measured if _values(other) == _values(row.entry)]
        if equal and row.entry.wells is None:
            warnings.append(row.remark(f"has exactly this value already: {_told(equal[0])}. A copy?"))


def _answered(measurement: Measurement) -> set[str]:
    """What is known by a measurement: names of further outcomes, and `OBJECTIVE`."""
    main = measurement.value is not None or measurement.failure is not None
    return set(measurement.further) | ({OBJECTIVE} if main else set())


def _values(result: ResultEntry | Measurement) -> tuple[float | None, str | None, Mapping[str, float]]:
    return result.value, result.censored, result.further


def _told(measurement: Measurement) -> str:
    limit = measurement.censored or ""
    what = f"{limit}{measurement.value!r}" if WELLS not in measurement.details else measurement.told
    what = what if measurement.value is not None else f"it failed ({measurement.failure})"
    if measurement.value is None and measurement.failure is None:
        what = ", ".join(f"{name} {value!r}" for name, value in measurement.further.items())
    where = f" from {measurement.source}" if measurement.source else ""
    line = f", line {measurement.line}," if measurement.source and measurement.line is not None else ""
    return f"{what}{where}{line} by command {measurement.made_by}"
