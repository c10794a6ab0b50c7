"""Encoders of features, alone and beside tokens."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import sparse

from seqopt.encoding import Encoder, FeatureEncoder, FeatureRows, JointEncoder, TokensAndFeatures
from seqopt.encoding.features import refused
from seqopt.errors import InputError


class Counts:
    """How often A and B occur."""

    name, size = "counts of A and B", 2

    def __call__(self, strings: Sequence[str]) -> np.ndarray:
        return np.array([[float(string.count(letter)) for letter in "AB"] for string in strings]).reshape(-1, 2)


class SparseCounts(Counts):
    def __call__(self, strings: Sequence[str]) -> sparse.csr_array:
        return sparse.csr_array(super().__call__(strings))


STRINGS = ["AAB", "B", "", "ABAB"]
EXPECTED = [[2.0, 1.0], [0.0, 1.0], [0.0, 0.0], [2.0, 2.0]]


@pytest.mark.parametrize("featurizer", [Counts(), SparseCounts()])
def test_rows_keep_the_order_of_strings_through_taking_and_joining(featurizer: Counts) -> None:
    encoder = FeatureEncoder(featurizer)
    rows = encoder.encode(STRINGS)
    assert encoder.name == "counts of A and B"
    assert (len(rows), rows.width) == (4, 2)
    assert rows.dense().tolist() == rows.to_tensor().tolist() == EXPECTED
    assert rows.take([3, 0]).dense().tolist() == [EXPECTED[3], EXPECTED[0]]
    assert rows.take(slice(1, 3)).joined(rows.take([0])).dense().tolist() == [*EXPECTED[1:3], EXPECTED[0]]


def test_a_tensor_of_rows_is_a_copy() -> None:
    values = np.array(EXPECTED)
    FeatureRows(values).to_tensor()[0, 0] = 7.0
    assert values[0, 0] == 2.0


def test_features_are_never_padded() -> None:
    rows = FeatureEncoder(Counts()).encode(STRINGS)
    assert rows.padded(2) is rows
    with pytest.raises(InputError, match="2 features have no 5 columns"):
        rows.to_tensor(5)


@pytest.mark.parametrize(("strings", "message"), [("AAB", "expected a list"), (["A", 3], "item 1 is 3")])
def test_what_is_no_list_of_strings_is_refused(strings: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FeatureEncoder(Counts()).encode(strings)  # type: ignore[arg-type]


def test_joint_rows_hold_features_then_padded_tokens() -> None:
    encoder = JointEncoder(FeatureEncoder(SparseCounts()))
    assert encoder.name == "characters + counts of A and B"
    encoded = encoder.encode(STRINGS)
    assert isinstance(encoded, TokensAndFeatures)
    assert (len(encoded), encoded.width) == (4, 2 + 4)
    tensor = encoded.to_tensor(width=8)
    assert tensor[:, :2].tolist() == EXPECTED
    assert tensor[:, 2:].tolist() == encoder.tokens.encode(STRINGS).to_tensor(width=6).tolist()
    again = encoded.take([3]).joined(encoded.take([1]))
    assert again.tokens.lengths.tolist() == [4, 1]
    assert again.features.dense().tolist() == [EXPECTED[3], EXPECTED[1]]


def test_tokens_of_other_widths_are_joined() -> None:
    encoder = Encoder()
    joined = encoder.encode(["AB"]).joined(encoder.encode(["ABAB", ""]))
    assert joined.tokens.tolist() == [[1, 2, 0, 0], [1, 2, 1, 2], [0, 0, 0, 0]]
    assert joined.lengths.tolist() == [2, 4, 0]


@pytest.mark.parametrize("bad", [[], [0], [999], [3, 4, 500, 998], list(range(7))])
def test_strings_that_cannot_be_read_are_found_in_few_readings(bad: list[int]) -> None:
    strings = [f"A{index}" for index in range(1000)]
    unreadable = {strings[index] for index in bad}
    readings = []

    def read(some: Sequence[str]) -> None:
        readings.append(len(some))
        if found := [string for string in some if string in unreadable]:
            raise InputError(f"cannot read {found[0]}")

    assert refused(read, strings) == {index: f"cannot read A{index}" for index in bad}
    assert len(readings) <= 1 + 2 * 10 * len(bad)  # two halves on each way down to a string, ten deep


@pytest.mark.parametrize(
    "chosen",
    [
        slice(0, 3),
        slice(6, 9),
        slice(2, 2),
        slice(5, 2),
        slice(None, None, -1),
        slice(3, None, -1),
        slice(0, 9, 2),
        slice(-2, 40),
    ],
)
def test_rows_of_a_slice_are_those_of_the_dense_array(chosen: slice) -> None:
    dense = np.random.default_rng(0).integers(0, 2, (9, 5)).astype(np.float64)
    for made in (sparse.csr_array, sparse.csc_array):
        found = FeatureRows(made(dense)).take(chosen)
        np.testing.assert_array_equal(found.dense(), dense[chosen])
        assert len(found) == len(dense[chosen])
        assert found.width == 5
