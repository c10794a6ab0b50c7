"""Filters: which strings may be suggested, and what they leave of a space.

A string may be suggested only if it passes every filter. `PropertyRange`, `Substructure` and `Alerts` are for
molecules, `ColumnCondition` for libraries, `Pattern` and `Listed` for any strings. `filter_pool` says which strings of
a list pass, `narrow` restricts a space to what passes; a `Sieve` asks while a pool is
prepared on disk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqopt.filters.conditions import Alerts, ColumnCondition, Filter, Pattern, PropertyRange, Substructure
    from seqopt.filters.filtering import FilterReport, filter_pool, narrow
    from seqopt.filters.listed import Listed
    from seqopt.filters.sieve import Sieve

_HOMES = {
    **dict.fromkeys(
        ("Alerts", "ColumnCondition", "Filter", "Pattern", "PropertyRange", "Substructure"), "seqopt.filters.conditions"
    ),
    "Listed": "seqopt.filters.listed",
    "Sieve": "seqopt.filters.sieve",
    **dict.fromkeys(("FilterReport", "filter_pool", "narrow"), "seqopt.filters.filtering"),
}

__all__ = [
    "Alerts",
    "ColumnCondition",
    "Filter",
    "FilterReport",
    "Listed",
    "Pattern",
    "PropertyRange",
    "Sieve",
    "Substructure",
    "filter_pool",
    "narrow",
]


def __getattr__(name: str) -> Any:
    # A look at a campaign without filters loads neither numpy nor RDKit for them.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt.filters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
