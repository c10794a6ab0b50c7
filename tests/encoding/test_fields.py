"""Items as named fields, side by side in a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from seqopt.encoding import (
    ContextEncoder,
    EncodedStrings,
    Encoder,
    FeatureEncoder,
    FeatureRows,
    FieldEncoder,
    Fields,
    MorganFingerprint,
)
from seqopt.errors import InputError


@dataclass(frozen=True)
class Measured:
    """A string with its context, as pairs."""

    key: str
    context: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True)
class Tagged:
    """A string with its context, as a mapping."""

    key: str
    context: Mapping[str, float | str]


ITEMS = [
    Measured("CCO", (("assay", "screen"), ("dose", 0.5))),
    Tagged("c1ccccc1", {"dose": 2.0, "assay": "full"}),
    "CCN",
    Measured("C"),
]


def encoder() -> FieldEncoder:
    return FieldEncoder(
        {
            "tokens": Encoder(),
            "bits": FeatureEncoder(MorganFingerprint(size=16)),
            "assay": ContextEncoder("assay", ["screen", "full"], default="full"),
            "dose": ContextEncoder("dose", default=1.0),
        }
    )


def test_columns_of_the_fields_stand_one_after_the_other_tokens_last() -> None:
    fields = encoder().encode(ITEMS)
    strings = ["CCO", "c1ccccc1", "CCN", "C"]
    tokens, bits = Encoder().encode(strings), MorganFingerprint(size=16)(strings).toarray()
    expected = np.hstack([bits, [[0], [1], [1], [1]], [[0.5], [2.0], [1.0], [1.0]], tokens.tokens])
    assert list(fields.parts) == ["bits", "assay", "dose", "tokens"]
    np.testing.assert_array_equal(fields.to_tensor().numpy(), expected)
    assert fields.width == 16 + 1 + 1 + 8
    wide = fields.to_tensor(width=30)
    assert wide.shape == (4, 30)
    assert wide.dtype == torch.float64
    np.testing.assert_array_equal(wide[:, :26].numpy(), expected)
    assert not wide[:, 26:].any()


def test_every_field_knows_its_columns_whatever_the_strings() -> None:
    fields = encoder().encode(ITEMS)
    assert fields.columns == encoder().columns
    x = fields.to_tensor(width=40)
    for name, columns in fields.columns.items():
        part = fields[name]
        seen = x[:, columns]
        np.testing.assert_array_equal(seen[:, : part.width].numpy(), part.to_tensor().numpy())
        assert not seen[:, part.width :].any()
        assert isinstance(part, EncodedStrings) or seen.shape[1] == part.width


def test_rows_can_be_taken_joined_and_padded() -> None:
    fields = encoder().encode(ITEMS)
    picked = fields.take([2, 0])
    assert len(picked) == 2
    np.testing.assert_array_equal(picked.to_tensor().numpy(), fields.to_tensor()[[2, 0]].numpy())
    again = fields.take(slice(0, 1)).joined(fields.take(slice(1, None)))
    np.testing.assert_array_equal(again.to_tensor().numpy(), fields.to_tensor().numpy())
    assert fields.padded(50).width == 50
    assert fields.padded(26) is fields
    with pytest.raises(InputError, match="8 symbols does not fit into 7"):
        fields.padded(25)
    without = FieldEncoder({"dose": ContextEncoder("dose", default=1.0)}).encode(ITEMS)
    with pytest.raises(InputError, match="no 2 columns"):
        without.padded(2)
    with pytest.raises(InputError, match="fields bits, assay, dose, tokens cannot be joined with dose"):
        fields.joined(without)


def test_an_encoder_of_a_field_can_be_replaced() -> None:
    other = encoder().with_encoder("tokens", Encoder("smiles"))
    assert other.encode(["CCl"])["tokens"].lengths.tolist() == [2]
    assert encoder().encode(["CCl"])["tokens"].lengths.tolist() == [3]
    bits = "morgan(radius=2, size=16, counts=False, use_chirality=True)"
    assert other.name == f"{bits} + assay (2 levels) + dose + smiles"


def test_what_cannot_be_encoded_is_named() -> None:
    items = ["C1CC", Measured("CC", (("assay", "none"),)), "C", Measured("C1C", (("dose", "much"),))]
    reasons = encoder().unsupported(items)
    assert list(reasons) == [0, 1, 3]
    assert reasons[0].startswith("'C1CC' is not a molecule")
    assert reasons[1] == "'CC': assay is 'none', which is none of its levels: 'screen', 'full'"
    assert "not a molecule" in reasons[3]
    assert encoder().unsupported(ITEMS) == {}


@pytest.mark.parametrize(
    ("made", "items", "message"),
    [
        (
            ContextEncoder("plate", ["A", "B"]),
            [Measured("C", (("plate", "Z"),))],
            r"item 0 \('C'\): plate is 'Z'.*'A', 'B'",
        ),
        (ContextEncoder("plate", ["A"]), ["C"], r"item 0 \('C'\): its context has no plate"),
        (ContextEncoder("dose"), [Measured("C", (("dose", "1"),))], "dose is '1'; expected a finite number"),
        (ContextEncoder("dose"), [Measured("C", (("dose", float("nan")),))], "dose is nan; expected a finite number"),
        (FieldEncoder({"t": Encoder()}), "CC", "single string 'CC'"),
        (FieldEncoder({"t": Encoder()}), [3], "3 of type int is neither a str"),
    ],
)
def test_bad_items_are_refused(made: ContextEncoder | FieldEncoder, items: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made.encode(items)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FieldEncoder({}), "no fields"),
        (lambda: FieldEncoder({"a": Encoder(), "b": Encoder()}), "a and b hold tokens"),
        (lambda: ContextEncoder("x", []), "expected at least one"),
        (lambda: ContextEncoder("x", ["a", "a"]), "each once"),
        (lambda: ContextEncoder("x", ["a"], default="b"), "x is 'b'"),
        (lambda: Fields({}), "no fields"),
        (lambda: Fields({"a": FeatureRows(np.ones((2, 1))), "b": FeatureRows(np.ones((3, 1)))}), "a 2, b 3"),
        (lambda: Fields({"a": Encoder().encode(["A"]), "b": FeatureRows(np.ones((1, 1)))}), "must be the last"),
        (lambda: Fields({"a": Encoder().encode(["A"])})["b"], "no field 'b'; the fields are a"),
    ],
)
def test_bad_fields_are_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]
