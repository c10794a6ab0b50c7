"""Filters: which strings may be suggested.

A string is suggested only if it passes every filter. What was measured teaches the model all the same. There are
filters for molecules (`PropertyRange`, `Substructure`, `Alerts`), for libraries (`ColumnCondition`) and for any strings
(`Pattern`, `Listed`); each says in words what it asks for, and is kept with the campaign as JSON values.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from seqopt.datasets.sheets import NUMBER
from seqopt.errors import InputError
from seqopt.filters.listed import Listed
from seqopt.filters.properties import (
    ALERTS,
    PROPERTY,
    SMARTS,
    catalog_name,
    check_smarts,
    first_alert,
    property_name,
)

ORDERINGS = ("<=", ">=", "<", ">")
"""Comparisons of numbers."""

EQUALITIES = ("==", "!=")
"""Comparisons of numbers or of text."""

MEMBERSHIPS = ("in", "not in")
"""Comparisons with each of several values."""

SHOWN = 3
"""Values of a column that messages show."""

_OPERATOR = "<=|>=|==|!=|<|>|="
_CONDITION = re.compile(rf"\s*(?:\"([^\"]+)\"|'([^']+)'|([^<>=!\s].*?))\s*({_OPERATOR})\s*(.*?)\s*", re.DOTALL)
# Behind the brackets there is nothing: a unit in the name of a column, amount in (mg) <= 5, is not meant.
_MEMBERSHIP = re.compile(
    r"\s*(?:\"([^\"]+)\"|'([^']+)'|([^<>=!\s\"'(][^<>=!\"'(]*?))\s+(not\s+in|in)\s*\((.*)\)\s*",
    re.DOTALL | re.IGNORECASE,
)
_ONE_OF = re.compile(r"\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"',()][^,()]*?))\s*(,|\Z)", re.DOTALL)
_RANGE = re.compile(r"\s*(\S*?)\s*\.\.\s*(\S*)\s*")
_PROPERTY = re.compile(rf"\s*(.*?[^\W\d_]\w*)\s*(?:({_OPERATOR})\s*(\S+)|\s+([-+.\d][^<>=]*))\s*", re.DOTALL)


@dataclass(frozen=True)
class PropertyRange:
    """A property of a molecule lies within bounds.

    Args:
        name: One of `seqopt.filters.properties.PROPERTIES`, or a descriptor of RDKit.
        low: Lower bound.
        high: Upper bound.
        low_open: Whether the lower bound itself fails.
        high_open: Whether the upper bound itself fails.

    Example:
        >>> PropertyRange("MW", 200, 500).describe()
        'MW 200 to 500'
        >>> PropertyRange.parse("logP <= 5"), PropertyRange.parse("rings 1..").describe()
        (PropertyRange(name='logP', low=None, high=5.0, low_open=False, high_open=False), 'rings >= 1')
    """

    name: str
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    kind: ClassVar[str] = "property"

    @classmethod
    def parse(cls, text: str) -> PropertyRange:
        """Read ``MW 200..500``, ``rings 1..``, ``TPSA ..140``, ``logP <= 5`` or ``charge 0``.

        Raises:
            InputError: For anything else.
        """
        wrong = InputError(
            f"{text!r} is not a range of a property; expected 'MW 200..500', 'logP <= 5' or 'charge == 0'"
        )
        found = _PROPERTY.fullmatch(text)
        if found is None:
            raise wrong
        name, operator, bound, rest = found.groups()
        if operator is None:
            ends = _RANGE.fullmatch(rest)
            if ends is None and not NUMBER.fullmatch(rest.strip()):
                raise wrong
            low, high = (rest.strip(), rest.strip()) if ends is None else ends.groups()
            return cls(name, _bound(low, text), _bound(high, text))
        if operator == "!=":
            raise wrong
        number = _bound(bound, text)
        low_or_high = {
            "<": {"high": number, "high_open": True},
            "<=": {"high": number},
            ">": {"low": number, "low_open": True},
            ">=": {"low": number},
        }
        return cls(name, **low_or_high.get(operator, {"low": number, "high": number}))  # type: ignore[arg-type]

    def checked(self) -> PropertyRange:
        """The filter with the property's proper name.

        Raises:
            InputError: For an unknown property, no bounds, or bounds between which there is nothing.
        """
        name = property_name(self.name)
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        if not bounds or not all(isinstance(bound, int | float) and math.isfinite(bound) for bound in bounds):
            raise InputError(f"the range of {name} has no bounds: expected one or two numbers, '{name} 200..500'")
        if self.low is not None and self.high is not None:
            if self.low > self.high:
                raise InputError(
                    f"the range of {name} is reversed: {self.low:g} is above {self.high:g}; write "
                    f"'{name} {self.high:g}..{self.low:g}'"
                )
            if self.low == self.high and (self.low_open or self.high_open):
                raise InputError(f"the range of {name} is empty: nothing lies between {self.low:g} and itself")
        return PropertyRange(name, self.low, self.high, self.low_open, self.high_open)

    def describe(self) -> str:
        """What it asks for, in words."""
        low = None if self.low is None else f"{'>' if self.low_open else '>='} {self.low:g}"
        high = None if self.high is None else f"{'<' if self.high_open else '<='} {self.high:g}"
        if low and high:
            if self.low == self.high:
                return f"{self.name} = {self.low:g}"
            if not (self.low_open or self.high_open):
                return f"{self.name} {self.low:g} to {self.high:g}"
        return f"{self.name} {' and '.join(part for part in (low, high) if part)}"

    @property
    def feature(self) -> str:
        """What has to be computed of a molecule."""
        return PROPERTY + self.name

    @property
    def bounds(self) -> dict[str, Any]:
        """Between which the feature has to lie; arguments of `seqopt.filters.properties.within`."""
        return {"low": self.low, "high": self.high, "low_open": self.low_open, "high_open": self.high_open}

    def why_not(self, smiles: str, value: float) -> str:
        """Why a molecule with this value of the feature fails."""
        return f"{self.name} is {'unknown' if math.isnan(value) else f'{value:.4g}'}, wanted is {self.describe()}"


@dataclass(frozen=True)
class Substructure:
    """A molecule has a substructure, or has it not.

    Args:
        smarts: The substructure.
        required: Whether it must be there; else it must not.

    Example:
        >>> Substructure("c1ccncc1", required=False).describe()
        'without c1ccncc1'
    """

    smarts: str
    required: bool = True

    kind: ClassVar[str] = "substructure"

    def checked(self) -> Substructure:
        """The filter itself.

        Raises:
            InputError: For what RDKit does not read as SMARTS.
        """
        check_smarts(self.smarts)
        return self

    def describe(self) -> str:
        """What it asks for, in words."""
        return f"{'with' if self.required else 'without'} {self.smarts}"

    @property
    def feature(self) -> str:
        """What has to be computed of a molecule."""
        return SMARTS + self.smarts

    @property
    def bounds(self) -> dict[str, Any]:
        """Between which the feature has to lie."""
        return {"low": 1.0} if self.required else {"high": 0.0}

    def why_not(self, smiles: str, value: float) -> str:
        """Why a molecule fails."""
        return f"it {'lacks' if self.required else 'has'} {self.smarts}"


@dataclass(frozen=True)
class Alerts:
    """A molecule has none of the substructures of a catalogue that often spoil an assay or a drug.

    Args:
        catalog: ``"PAINS"``, ``"BRENK"``, ``"NIH"`` or another of `seqopt.filters.properties.catalog_names`.

    Example:
        >>> Alerts("pains").checked().describe()
        'no PAINS alert'
    """

    catalog: str

    kind: ClassVar[str] = "alerts"

    def checked(self) -> Alerts:
        """The filter with the catalogue's proper name.

        Raises:
            InputError: For an unknown one.
        """
        return Alerts(catalog_name(self.catalog))

    def describe(self) -> str:
        """What it asks for, in words."""
        return f"no {self.catalog} alert"

    @property
    def feature(self) -> str:
        """What has to be computed of a molecule."""
        return ALERTS + self.catalog

    @property
    def bounds(self) -> dict[str, Any]:
        """Between which the feature has to lie."""
        return {"high": 0.0}

    def why_not(self, smiles: str, value: float) -> str:
        """Why a molecule fails."""
        return f"it has the {self.catalog} alert {first_alert(smiles, self.catalog)}"


class Column(list[str]):
    """Some cells of a column, which know the others: all of them decide whether it is one of numbers or of text.

    Args:
        cells: The cells.
        whole: All cells of the column.

    Example:
        >>> condition = ColumnCondition.parse("stock == 5")
        >>> condition.mask(["5.0"]), condition.mask(Column(["5.0"], whole=["5.0", "5", "on request"]))
        ([True], [False])
    """

    def __init__(self, cells: Iterable[str], whole: Sequence[str]) -> None:
        super().__init__(cells)
        self.whole = whole


@dataclass(frozen=True)
class ColumnCondition:
    """A cell of the library, in the row of the candidate, compares with a value.

    ``<``, ``<=``, ``>`` and ``>=`` compare numbers. ``==`` and ``!=`` compare numbers where the value and all filled
    cells of the column are numbers, and else text, whatever the case of its letters and blanks around it; so do ``in``
    and ``not in``, with each of several values. In a comparison of numbers a cell that is empty, or no number, fails.
    In one of text an empty cell is the text ``""``.

    Args:
        column: Its name, whatever the case of its letters.
        operator: One of `ORDERINGS`, `EQUALITIES` and `MEMBERSHIPS`.
        value: What cells are compared with; of `MEMBERSHIPS`, a list.

    Example:
        >>> condition = ColumnCondition.parse("price <= 100")
        >>> condition.describe(), condition.mask(["99.5", "", "101", "on request"])
        ('price <= 100', [True, False, False, False])
        >>> ColumnCondition.parse("supplier != acme").mask(["ACME", "Enamine", ""])
        [False, True, True]
        >>> ColumnCondition.parse("supplier in (acme, 'Fisher, Inc.')").mask(["ACME", "Fisher, Inc.", "Fisher"])
        [True, True, False]
    """

    column: str
    operator: str
    value: str | Sequence[str]

    kind: ClassVar[str] = "column"

    def __post_init__(self) -> None:
        if not isinstance(self.value, str | int | float):
            object.__setattr__(self, "value", tuple(self.value))

    @classmethod
    def parse(cls, text: str) -> ColumnCondition:
        """Read ``price <= 100``, ``supplier == ACME``, ``"in stock" != no`` or ``supplier in (ACME, "Fisher, Inc.")``.

        Quotation marks around the column and around a value may be left out, those around one with a comma not.

        Raises:
            InputError: For anything else.
        """
        member = _MEMBERSHIP.fullmatch(text)
        if member:
            double, single, bare, operator, listed = member.groups()
            return cls(double or single or bare, " ".join(operator.lower().split()), _listed(listed, text))
        found = _CONDITION.fullmatch(text)
        if found is None:
            if re.search(r"\sin\s", text, re.IGNORECASE):
                raise InputError(f"{text!r}: write the values in brackets: 'supplier in (ACME, \"Fisher, Inc.\")'")
            raise InputError(
                f"{text!r} is not a condition on a column; expected a column, one of {_COMPARISONS}, and a value: "
                "'price <= 100', 'supplier == ACME', 'supplier in (ACME, Enamine)'"
            )
        double, single, bare, operator, value = found.groups()
        if value[:1] and value[0] in "<>=":
            raise InputError(f"{text!r}: unknown comparison {operator + value[0]!r}; choose {_COMPARISONS}")
        quoted = re.fullmatch(r"\"(.*)\"|'(.*)'", value, re.DOTALL)
        if quoted:
            value = quoted.group(1) if quoted.group(1) is not None else quoted.group(2)
        elif not value:
            raise InputError(f'{text!r} compares with nothing: write "" for an empty cell')
        return cls(double or single or bare, "==" if operator == "=" else operator, value)

    def checked(self) -> ColumnCondition:
        """The filter itself.

        Raises:
            InputError: For an unknown operator, the order of something that is not a number, or a list of values where
                one is expected or the reverse.
        """
        if self.operator not in (*ORDERINGS, *EQUALITIES, *MEMBERSHIPS):
            raise InputError(f"unknown comparison {self.operator!r} of column {self.column!r}: choose {_COMPARISONS}")
        if self.operator in MEMBERSHIPS:
            if not isinstance(self.value, tuple) or not self.value:
                raise InputError(
                    f"{self.column} {self.operator} {self.value!r}: {self.operator} compares with a list of at least "
                    "one value"
                )
            return ColumnCondition(self.column, self.operator, [str(value) for value in self.value])
        if isinstance(self.value, tuple):
            raise InputError(
                f"{self.column} {self.operator} {list(self.value)}: {self.operator} compares with one value; "
                "of several, write in or not in"
            )
        value = str(self.value)
        if self.operator in ORDERINGS and not _is_number(value):
            comma = ": write 6.5, not 6,5" if _is_number(value.replace(",", ".")) else ""
            raise InputError(
                f"{self.column} {self.operator} {value}: {self.operator} compares numbers, and {value!r} is not "
                f"one{comma}"
            )
        return ColumnCondition(self.column, self.operator, value)

    def describe(self) -> str:
        """What it asks for, in words."""
        if self.operator in MEMBERSHIPS:
            return f"{self.column} {self.operator} ({', '.join(map(_in_list, self.values))})"
        return f"{self.column} {self.operator} {self.value or _EMPTY}"

    @property
    def values(self) -> tuple[str, ...]:
        """All that cells are compared with."""
        return (self.value,) if isinstance(self.value, str) else tuple(self.value)

    def found_in(self, names: Sequence[str]) -> str:
        """The name of its column among those of a library.

        Raises:
            InputError: If it is not there; the message lists them.
        """
        if self.column in names:
            return self.column
        folded = self.column.strip().casefold()
        matches = [name for name in names if name.strip().casefold() == folded]
        if len(matches) == 1:
            return matches[0]
        if not names:
            raise InputError(f"the library has no columns besides its strings, so there is no {self.column!r}")
        close = difflib.get_close_matches(folded, [name.casefold() for name in names], n=1)
        guess = next((name for name in names if close and name.casefold() == close[0]), None)
        raise InputError(
            f"the library has {'several columns' if matches else 'no column'} {self.column!r}; its columns are "
            f"{', '.join(map(repr, names))}" + (f". Did you mean {guess!r}?" if guess and not matches else "")
        )

    def check_cells(self, cells: Iterable[str]) -> None:
        """Refuse to compare a number with a column of text, or text with a column of numbers.

        Raises:
            InputError: With a few cells.
        """
        filled = list(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))
        numbers = sum(map(_is_number, filled))
        shown = ", ".join(map(repr, filled[:SHOWN]))
        for value in self.values:
            if not filled or value == "":
                continue
            if _is_number(value) and not numbers:
                comma = (
                    ": write 6.5 there, not 6,5" if any(_is_number(cell.replace(",", ".")) for cell in filled) else ""
                )
                what = f"holds no numbers ({shown}, ...), but {value} is one{comma}"
                raise InputError(f"{self.describe()}: column {self.column!r} {what}")
            wanted = value.strip().casefold()
            if not _is_number(value) and 2 * numbers > len(filled) and wanted not in map(str.casefold, filled):
                raise InputError(
                    f"{self.describe()}: column {self.column!r} holds numbers ({shown}, ...), but {value!r} is not one"
                )

    def mask(self, cells: Sequence[str]) -> list[bool]:
        """For each cell of its column, whether it passes."""
        if self.numeric(cells):
            bounds = [float(value) for value in self.values]
            return [(number := _number(cell)) is not None and self._compares(number, bounds) for cell in cells]
        wanted = {value.strip().casefold() for value in self.values}
        return [(cell.strip().casefold() in wanted) == (self.operator in ("==", "in")) for cell in cells]

    def unread(self, cells: Sequence[str]) -> list[str]:
        """Cells that are neither empty nor numbers and so fail a comparison of numbers, each once."""
        if not self.numeric(cells):
            return []
        return list(dict.fromkeys(cell.strip() for cell in cells if cell.strip() and _number(cell) is None))

    def numeric(self, cells: Iterable[str]) -> bool:
        """Whether the cells of its column are compared as numbers; of a `Column`, its whole is looked at."""
        if self.operator in ORDERINGS:
            return True
        whole = cells.whole if isinstance(cells, Column) else cells
        return all(map(_is_number, self.values)) and all(_is_number(cell) for cell in whole if cell.strip())

    def _compares(self, number: float, bounds: Sequence[float]) -> bool:
        bound = bounds[0]
        answers = {
            "in": number in bounds,
            "not in": number not in bounds,
            "<=": number <= bound,
            ">=": number >= bound,
            "<": number < bound,
            ">": number > bound,
            "==": number == bound,
            "!=": number != bound,
        }
        return answers[self.operator]


@dataclass(frozen=True)
class Pattern:
    """A regular expression is found in a string, or is not.

    Strings are looked at as they are written; sequences in upper case.

    Args:
        pattern: The expression, in the syntax of Python's `re`.
        required: Whether it must be found; else it must not be.

    Example:
        >>> Pattern("GAATTC|GGATCC", required=False).matches("ACGAATTC", "dna")
        False
    """

    pattern: str
    required: bool = True

    kind: ClassVar[str] = "pattern"

    def checked(self) -> Pattern:
        """The filter itself.

        Raises:
            InputError: For what is not a regular expression.
        """
        try:
            re.compile(self.pattern)
        except (re.error, OverflowError) as error:
            raise InputError(f"{self.pattern!r} is not a regular expression: {error}") from error
        if not self.pattern:
            raise InputError("a pattern is empty: it would be found everywhere")
        return self

    def describe(self) -> str:
        """What it asks for, in words."""
        return f"{'with' if self.required else 'without'} the pattern {self.pattern}"

    def matches(self, string: str, kind: str) -> bool:
        """Whether a string of a kind (`seqopt.strings.identity.KINDS`) passes."""
        text = string.strip() if kind in ("molecule", "text") else string.strip().upper()
        return (re.search(self.pattern, text) is not None) == self.required


MoleculeFilter = PropertyRange | Substructure | Alerts
"""Filters that need a molecule."""

Filter = MoleculeFilter | ColumnCondition | Pattern | Listed
"""A condition on what may be suggested: on a molecule, a column of the library, or the string itself."""

KINDS: dict[str, type[Filter]] = {
    kind.kind: kind for kind in (PropertyRange, Substructure, Alerts, ColumnCondition, Pattern, Listed)
}
"""Filters by the name under which they are kept."""

_EMPTY = '""'

_COMPARISONS = " ".join((*ORDERINGS, *EQUALITIES, "in")) + " or not in"


def to_json(filters: Iterable[Filter]) -> list[dict[str, Any]]:
    """Filters as JSON values; `from_json` reads them back.

    Example:
        >>> to_json([Alerts("PAINS")])
        [{'kind': 'alerts', 'catalog': 'PAINS'}]
        >>> from_json(to_json([PropertyRange("MW", 200, 500)])) == [PropertyRange("MW", 200, 500)]
        True
    """
    found = [{"kind": item.kind, **asdict(item)} for item in filters]
    return [{name: list(value) if isinstance(value, tuple) else value for name, value in one.items()} for one in found]


def from_json(values: Iterable[Mapping[str, Any]]) -> list[Filter]:
    """Filters from what `to_json` gave; they are not checked.

    Raises:
        InputError: For what is none.
    """
    found: list[Filter] = []
    for value in values:
        arguments = dict(value)
        kind = arguments.pop("kind", None)
        if kind not in KINDS:
            raise InputError(f"unknown kind of filter {kind!r}: choose {', '.join(KINDS)}")
        try:
            found.append(KINDS[kind](**arguments))
        except TypeError as error:
            raise InputError(f"{dict(value)!r} is not a filter: {error}") from error
    return found


def checked(filters: Iterable[Filter | Mapping[str, Any]]) -> list[Filter]:
    """Filters in order, each once, with the proper names of what they refer to.

    Args:
        filters: Filters, or their JSON values.

    Raises:
        InputError: For what is not a filter, or one that cannot be used.
    """
    found: list[Filter] = []
    for item in filters:
        given = from_json([item])[0] if isinstance(item, Mapping) else item
        if not isinstance(given, Filter):
            raise InputError(
                f"{given!r} is not a filter: give objects of seqopt.filters, such as "
                "PropertyRange('MW', 200, 500) or ColumnCondition.parse('price <= 100')"
            )
        found.append(given.checked())
    return list(dict.fromkeys(found))


def describe(filters: Iterable[Filter]) -> str:
    """Filters in words.

    Example:
        >>> describe([PropertyRange("MW", 200, 500), Alerts("PAINS")])
        'MW 200 to 500; no PAINS alert'
    """
    return "; ".join(item.describe() for item in filters)


def passing(item: MoleculeFilter, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which molecules pass, by their values of the filter's feature; `seqopt.filters.properties.within` for many."""
    low, high = item.bounds.get("low"), item.bounds.get("high")
    found = ~np.isnan(values)
    if low is not None:
        found &= values > low if item.bounds.get("low_open") else values >= low
    if high is not None:
        found &= values < high if item.bounds.get("high_open") else values <= high
    return found


def _listed(text: str, whole: str) -> list[str]:
    """The values between the brackets of a condition.

    Raises:
        InputError: If there is none, one is empty without quotation marks, or they cannot be told apart.
    """
    if not text.strip():
        raise InputError(f"{whole!r} compares with nothing: write the values in the brackets")
    values, start, comma = [], 0, ","
    while comma:
        found = _ONE_OF.match(text, start)
        if found is None:
            rest = text[start:].strip()
            if not rest or rest.startswith(","):
                raise InputError(f'{whole!r} has an empty value: write "" for an empty cell')
            raise InputError(
                f"{whole!r}: {rest!r} is not a value, or several with commas between them; put quotation marks around "
                "one that holds commas, brackets or quotation marks"
            )
        double, single, bare, comma = found.groups()
        values.append(next(value for value in (double, single, bare) if value is not None))
        start = found.end()
    return values


def _in_list(value: str) -> str:
    """A value as `ColumnCondition.parse` reads it in a list."""
    plain = _ONE_OF.fullmatch(value)
    if plain and plain.group(3) == value:
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


def _bound(text: str, whole: str) -> float | None:
    if not text:
        return None
    number = _number(text)
    if number is None:
        hint = ": write 6.5, not 6,5" if _number(text.replace(",", ".")) is not None else ""
        raise InputError(f"{whole!r}: {text!r} is not a number{hint}")
    return number


def _is_number(text: str) -> bool:
    return _number(text) is not None


def _number(text: str) -> float | None:
    stripped = text.strip()
    return float(stripped) if NUMBER.fullmatch(stripped) else None
