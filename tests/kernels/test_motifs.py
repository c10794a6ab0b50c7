"""The kernel of one motif: occurrences counted by hand, invariances, and strings that motifs are written into."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.kernels import MotifKernel
from seqopt.kernels.motifs import shapes
from seqopt.models import StringGP
from seqopt.utils.config import from_config

ENCODER = Encoder(alphabet=Alphabet("ABC"))


def motif_of(text: str, width: int = 6) -> list[int]:
    """Numbers of the symbols of a motif such as ``A?B``."""
    found = ["?ABC".index(symbol) for symbol in text]
    return found + [0] * (width - len(found))


def counted(text: str, motif: str, overlapping: bool) -> int:
    """Occurrences, by regular expressions: those without overlaps are what `re` finds from left to right."""
    pattern = motif.replace("?", ".")
    return len(re.findall(f"(?={pattern})" if overlapping else pattern, text))


motifs = st.tuples(st.sampled_from("ABC"), st.text("ABC?", max_size=4)).map("".join).map(lambda text: text.rstrip("?"))
few = motifs.filter(lambda text: len(text.replace("?", "")) <= 4)
texts = st.lists(st.text("ABC", min_size=1, max_size=14), min_size=1, max_size=6)


@settings(deadline=None)
@given(first=texts, second=texts, motif=few, overlapping=st.booleans(), extra=st.integers(0, 3))
def test_covariances_are_those_of_occurrences_counted_by_hand(first, second, motif, overlapping, extra):
    kernel = MotifKernel(motif=motif_of(motif), overlapping=overlapping)
    a, b = ENCODER.encode(first), ENCODER.encode(second)
    left, right = (np.array([counted(text, motif, overlapping) for text in part]) for part in (first, second))
    expected = 1.0 + np.multiply.outer(left, right)
    np.testing.assert_array_equal(kernel.counts(a.padded(a.width + extra)), left)
    np.testing.assert_array_equal(kernel.cross(a, b.padded(b.width + extra)), expected)
    np.testing.assert_array_equal(kernel.variance(a), 1.0 + left**2)
    np.testing.assert_array_equal(kernel.self_similarity(a), 1.0 + left**2)
    rows = a.to_tensor(max(a.width, b.width)), b.to_tensor(max(a.width, b.width))
    np.testing.assert_array_equal(kernel(*rows).to_dense().detach().numpy(), expected)
    np.testing.assert_array_equal(kernel.forward(rows[0], rows[0], diag=True).numpy(), 1.0 + left**2)
    np.testing.assert_array_equal(kernel.paired(a, a), 1.0 + left**2)
    own = kernel.cross(a)
    np.testing.assert_array_equal(own, own.T)
    assert np.linalg.eigvalsh(own).min() > -1e-9 * max(1.0, own.max())


def test_batches_of_rows_and_single_precision_are_taken():
    kernel = MotifKernel(motif=motif_of("A?B"))
    rows = ENCODER.encode(["AABB", "CABB", "ACBA", "BBBB"]).to_tensor().reshape(2, 2, 4).float()
    found = kernel.forward(rows, rows)
    assert found.shape == (2, 2, 2)
    assert found.dtype == torch.float32
    assert found[0].tolist() == [[5.0, 3.0], [3.0, 2.0]]
    assert kernel.cross(ENCODER.encode(["AAB"]), dtype=np.float32).dtype == np.float32


@settings(deadline=None)
@given(motif=few, text=st.text("ABC", min_size=6, max_size=14))
def test_a_planted_motif_occurs_as_often_as_its_period_allows_and_nothing_else_changes(motif, text):
    kernel = MotifKernel(motif=motif_of(motif))
    found = kernel.planted(ENCODER.encode([text]))
    span = len(motif)
    rows = ["".join("?ABC"[number] for number in row) for row in found.tokens.tolist()]
    arrangements = 0
    for period in range(1, span + 1):
        # A string of the motif alone, again and again, says whether it follows itself at this distance.
        places: dict[int, str] = {}
        fits = True
        for start in range(0, 4 * span, period):
            for place, symbol in enumerate(motif):
                if symbol != "?":
                    fits = fits and places.setdefault(start + place, symbol) == symbol
        if not fits:
            continue
        for start in range(period):
            row = rows[arrangements]
            arrangements += 1
            starts = range(start, len(text) - span + 1, period)
            assert all(re.match(motif.replace("?", "."), row[first:]) for first in starts)
            written = {first + place for first in starts for place, symbol in enumerate(motif) if symbol != "?"}
            assert all(row[place] == text[place] for place in range(len(text)) if place not in written)
    assert arrangements == len(rows) > 0


def test_strings_are_taken_in_turn_and_short_ones_stay_as_they_are():
    kernel = MotifKernel(motif=motif_of("AB?C"))
    found = kernel.planted(ENCODER.encode(["CC", "BBBBBBBB"]))
    rows = ["".join("_ABC"[number] for number in row).rstrip("_") for row in found.tokens.tolist()]
    assert rows[0] == "CC"
    assert set(rows[1::2]) <= {row for row in rows if len(row) == 8}
    assert all("AB" in row for row in rows[1::2])


def test_a_motif_of_a_large_alphabet_is_planted_in_strings_of_few_symbols():
    found = MotifKernel(motif=[300, 0, 0, 0, 0, 0]).planted(ENCODER.encode(["ABC"]))
    assert found.tokens.tolist() == [[300, 300, 300]]
    assert len(MotifKernel().planted(ENCODER.encode([]))) == 0


def test_all_shapes_are_there_once():
    found = list(shapes(4, 6))
    assert len(found) == len(set(found)) == 1 + 5 + 10 + 10
    assert all(shape[0] == 0 and shape[-1] < 6 and list(shape) == sorted(set(shape)) for shape in found)


def test_it_is_written_down_without_its_motif_and_shows_it():
    kernel = MotifKernel(order=3, width=5, motif=motif_of("A?C", 5))
    assert from_config(kernel.config()).config() == kernel.config()
    assert kernel.shown == "1?3"
    kernel.read_by(Alphabet("ABC"))
    assert repr(kernel) == "MotifKernel(order=3, width=5, motif=A?C)"
    again = from_config(MotifKernel(motif=motif_of("B?A"), overlapping=False).config())
    assert repr(again) == "MotifKernel(order=4, width=6, motif=2?1, overlapping=False)"
    kernel.read_by(Alphabet(["Ala", "Cys", "Asp"]))
    assert kernel.shown == "Ala ? Asp"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 0}, "order is 0"),
        ({"width": 2.5}, "width is 2.5"),
        ({"order": 5, "width": 4}, "order is 5, and width 4"),
        ({"motif": [0, 1, 0, 0, 0, 0]}, "the first among them"),
        ({"motif": [1, 2]}, "expected 6 numbers"),
        ({"motif": [1, 2, 3, 1, 2, 0]}, "up to 4 are not 0"),
        ({"motif": [1, -1, 0, 0, 0, 0]}, "expected 6 numbers"),
        ({"motif": [math.inf, 0, 0, 0, 0, 0]}, "expected 6 numbers"),
        ({"motif": [1e5, 0, 0, 0, 0, 0]}, "expected 6 numbers"),
        ({"batch_shape": torch.Size([2])}, "has one motif"),
    ],
)
def test_what_is_no_motif_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        MotifKernel(**options)


def test_it_has_no_gradient_and_columns_alone_have_no_motifs():
    with pytest.raises(InputError, match="FullyBayesianGP"):
        StringGP(MotifKernel())
    with pytest.raises(InputError, match="whole strings"):
        MotifKernel().forward(torch.ones(2, 3), torch.ones(2, 3), last_dim_is_batch=True)
    with pytest.raises(InputError, match="float64 or float32"):
        MotifKernel().cross(ENCODER.encode(["A"]), dtype=np.int64)
