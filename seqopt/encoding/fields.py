"""Rows of several named fields: what a kernel can tell two queries apart by.

A query is a string with a context: the fidelity at which it was measured, the plate it was on. `FieldEncoder` encodes
lists of such items field by field, the string's own fields (tokens, fingerprints) by the encoders of this package and
each variable of the context by a `ContextEncoder`. A kernel says which field it reads: `seqopt.kernels.OnField`.

As a tensor, the fields stand side by side, those of a fixed number of columns first and tokens, whose number differs,
last. So all columns of a field have the same numbers whatever the strings are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding.encoded import EncodedStrings, Encoder
from seqopt.encoding.features import Encoded, FeatureRows, StringEncoder
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

Level: TypeAlias = float | str
"""A value of a context variable: a number or a name."""


class HasContext(Protocol):
    """A string with the context in which it is, or was, measured."""

    @property
    def key(self) -> str:
        """The string's key."""
        ...

    @property
    def context(self) -> Mapping[str, Level] | Sequence[tuple[str, Level]]:
        """Variables of the context with their values, as a mapping or as pairs."""
        ...


Item: TypeAlias = str | HasContext
"""What is encoded; a plain ``str`` has no context."""


@dataclass(frozen=True)
class Fields:
    """n items as named fields, with the methods of `Encoded`.

    Attributes:
        parts: The fields, in the order of their columns. Tokens (`EncodedStrings`) come last.

    Raises:
        InputError: For no field, fields of different lengths, or tokens that are not last.

    Example:
        >>> tokens = Encoder().encode(["AB", "A"])
        >>> fields = Fields({"fidelity": FeatureRows(np.array([[0.0], [1.0]])), "tokens": tokens})
        >>> fields.to_tensor(width=4)
        tensor([[0., 1., 2., 0.],
                [1., 1., 0., 0.]], dtype=torch.float64)
        >>> fields.columns
        {'fidelity': slice(0, 1, None), 'tokens': slice(1, None, None)}
    """

    parts: Mapping[str, Encoded]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("there are no fields; give at least one")
        lengths = {name: len(part) for name, part in self.parts.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InputError(f"fields hold different numbers of items: {shown}")
        for name in list(self.parts)[:-1]:
            if isinstance(self.parts[name], EncodedStrings):
                raise InputError(f"the field {name!r} holds tokens, whose width differs; it must be the last field")

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def __getitem__(self, name: str) -> Any:
        """One field.

        Raises:
            InputError: If there is none of this name.
        """
        if name not in self.parts:
            raise InputError(f"there is no field {name!r}; the fields are {', '.join(self.parts)}")
        return self.parts[name]

    @property
    def width(self) -> int:
        """Number of columns of all fields."""
        return sum(part.width for part in self.parts.values())

    @property
    def columns(self) -> dict[str, slice]:
        """Where each field stands in a row: those of tokens run to the end of it."""
        found, start = {}, 0
        for name, part in self.parts.items():
            end = start + part.width
            found[name] = slice(start, None if isinstance(part, EncodedStrings) else end)
            start = end
        return found

    def take(self, indices: npt.ArrayLike | slice) -> Fields:
        """The items at ``indices`` (any numpy row index)."""
        return Fields({name: part.take(indices) for name, part in self.parts.items()})

    def padded(self, width: int) -> Fields:
        """The same items in ``width`` columns; tokens take what the other fields leave.

        Raises:
            InputError: If a string does not fit, or there are no tokens and the width is another.
        """
        if width == self.width:
            return self
        *_, (name, last) = self.parts.items()
        return Fields({**self.parts, name: last.padded(width - self.width + last.width)})

    def joined(self, other: Fields) -> Fields:
        """These items, followed by those of ``other``.

        Raises:
            InputError: If the fields differ.
        """
        if list(self.parts) != list(other.parts):
            raise InputError(f"fields {', '.join(self.parts)} cannot be joined with {', '.join(other.parts)}")
        return Fields({name: part.joined(other.parts[name]) for name, part in self.parts.items()})

    def to_tensor(self, width: int | None = None, device: torch.device | str | None = None) -> torch.Tensor:
        """Rows as float64, the form in which models hold inputs: the columns of the fields one after the other."""
        fields = self if width is None else self.padded(width)
        return torch.cat([part.to_tensor(device=device) for part in fields.parts.values()], dim=1)


class ContextEncoder(Configurable):
    """Encodes one variable of the context as one column.

    Args:
        name: The variable.
        levels: Its possible values; the column then holds their numbers from 0. By default values are numbers, which
            the column holds as they are.
        default: The value for items that lack the variable. By default such items are refused.

    Raises:
        InputError: For levels that are repeated or none, or a default that is not a possible value.

    Example:
        >>> encoder = ContextEncoder("assay", levels=["screen", "dose response"], default="screen")
        >>> encoder.encode(["CCO", "CCN"]).values.tolist()
        [[0.0], [0.0]]
    """

    def __init__(self, name: str, levels: Sequence[Level] | None = None, default: Level | None = None) -> None:
        self.variable = name
        self.levels = None if levels is None else tuple(levels)
        self._numbers: dict[Level, int] = {level: number for number, level in enumerate(self.levels or ())}
        if self.levels is not None and (not self.levels or len(self._numbers) < len(self.levels)):
            raise InputError(f"levels of {name} are {list(self.levels)}; expected at least one, each once")
        self.default = default
        if default is not None:
            self._number(default)

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"name": self.variable, "levels": self.levels, "default": self.default}

    @property
    def name(self) -> str:
        """The variable and its levels."""
        return self.variable if self.levels is None else f"{self.variable} ({len(self.levels)} levels)"

    def encode(self, items: Sequence[Item]) -> FeatureRows:
        """The column, ``n x 1``.

        Raises:
            InputError: For an item that lacks the variable, where there is no default, or has a value that is none of
                the levels, or no finite number; the message gives its position and the value.
        """
        values = np.empty((len(items), 1))
        for position, item in enumerate(items):
            try:
                values[position] = self._number(self._value(item))
            except InputError as error:
                raise InputError(f"item {position} ({_key(item)!r}): {error}") from None
        return FeatureRows(values)

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """Why items have no value that can be encoded, by their indices; empty where all have."""
        found = {}
        for position, item in enumerate(items):
            try:
                self._number(self._value(item))
            except InputError as error:
                found[position] = f"{_key(item)!r}: {error}"
        return found

    def _value(self, item: Item) -> Level:
        value = None if isinstance(item, str) else dict(item.context).get(self.variable)
        value = self.default if value is None else value
        if value is None:
            raise InputError(f"its context has no {self.variable}; give one, or a default")
        return value

    def _number(self, value: Level) -> float:
        if self.levels is not None:
            if value not in self._numbers:
                known = ", ".join(map(repr, self.levels))
                raise InputError(f"{self.variable} is {value!r}, which is none of its levels: {known}")
            return float(self._numbers[value])
        if isinstance(value, str | bool) or not math.isfinite(value):
            raise InputError(f"{self.variable} is {value!r}; expected a finite number, because it has no named levels")
        return float(value)


class NameEncoder(ContextEncoder):
    """Encodes a variable of the context that may be any text, as plates are, as a column of numbers: equal ones for
    equal texts.

    An item without the variable becomes NaN, which equals nothing: see `seqopt.kernels.SameLevelKernel`. Two different
    texts have equal numbers with a probability of 2e-16.

    Args:
        name: The variable.

    Example:
        >>> from seqopt.data import Query
        >>> values = NameEncoder("plate").encode([Query("A", {"plate": "P1"}), Query("B", {"plate": "P1"}), "A"]).values
        >>> bool(values[0] == values[1]), bool(np.isnan(values[2]))
        (True, True)
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"name": self.variable}

    def _value(self, item: Item) -> Level:
        value = None if isinstance(item, str) else dict(item.context).get(self.variable)
        return "" if value is None else value

    def _number(self, value: Level) -> float:
        if not isinstance(value, str):
            raise InputError(f"{self.variable} is {value!r}; expected a text")
        if not value:
            return math.nan
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return float(int.from_bytes(digest) >> 11)  # all bits of it are those of a float64


class FieldEncoder(Configurable):
    """Encodes items into `Fields`, each field by an encoder of its own.

    Args:
        fields: Encoders by the names of their fields. Those of strings see the items' keys, those of the context the
            items. At most one makes tokens; its columns come last, the others' in the order given.

    Raises:
        InputError: For no field, or two that hold tokens.

    Example:
        >>> encoder = FieldEncoder({"tokens": Encoder(), "fidelity": ContextEncoder("fidelity", default=1.0)})
        >>> encoder.encode(["AB", "A"]).to_tensor()
        tensor([[1., 1., 2.],
                [1., 1., 0.]], dtype=torch.float64)
        >>> encoder.columns
        {'fidelity': slice(0, 1, None), 'tokens': slice(1, None, None)}
    """

    def __init__(self, fields: Mapping[str, StringEncoder | ContextEncoder]) -> None:
        if not fields:
            raise InputError("there are no fields; give at least one encoder")
        tokens = [name for name, encoder in fields.items() if isinstance(encoder, Encoder)]
        if len(tokens) > 1:
            raise InputError(f"the fields {' and '.join(tokens)} hold tokens; at most one can")
        self.fields = {name: fields[name] for name in [*(name for name in fields if name not in tokens), *tokens]}

    @property
    def name(self) -> str:
        """Those of all encoders."""
        return " + ".join(encoder.name for encoder in self.fields.values())

    @property
    def columns(self) -> dict[str, slice]:
        """Where each field stands in a row of a tensor: see `Fields.columns`."""
        return self.encode([]).columns

    def with_encoder(self, field: str, encoder: StringEncoder | ContextEncoder) -> FieldEncoder:
        """The same with another encoder of one field, as that of a space for its tokens."""
        return FieldEncoder({**self.fields, field: encoder})

    def encode(self, items: Sequence[Item]) -> Fields:
        """All fields of ``items``.

        Raises:
            InputError: For a single string, an item without a key, or one that an encoder refuses.
        """
        if isinstance(items, str):
            raise InputError(f"expected a list of items, got the single string {items!r}: write [{items!r}]")
        keys = [_key(item) for item in items]
        return Fields(
            {
                name: encoder.encode(items) if isinstance(encoder, ContextEncoder) else encoder.encode(keys)
                for name, encoder in self.fields.items()
            }
        )

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """Why items cannot be encoded, by their indices: what the encoders of fields say that can tell."""
        keys = [_key(item) for item in items]
        found: dict[int, str] = {}
        for encoder in self.fields.values():
            if isinstance(encoder, ContextEncoder):
                reasons = encoder.unsupported(items)
            else:
                tell = getattr(encoder, "unsupported", None)
                reasons = {} if tell is None else tell(keys)
            found = {**reasons, **found}
        return dict(sorted(found.items()))


def _key(item: Item) -> str:
    if isinstance(item, str):
        return item
    key = getattr(item, "key", None)
    if not isinstance(key, str):
        raise InputError(f"{item!r} of type {type(item).__name__} is neither a str nor has it a key that is one")
    return key
