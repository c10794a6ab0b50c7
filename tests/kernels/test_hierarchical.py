"""Departures of plates from what they have in common: BOSH's covariances by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.data import Query
from seqopt.encoding import Encoder
from seqopt.encoding.fields import FieldEncoder, NameEncoder
from seqopt.errors import InputError
from seqopt.kernels import HierarchicalKernel, OnField, SameLevelKernel, SubsequenceKernel, bind_fields

STRINGS = SubsequenceKernel(2)


def kernel(**options):
    return HierarchicalKernel(OnField(STRINGS, "tokens"), OnField(SameLevelKernel(), "plate"), **options)


def encoder():
    return FieldEncoder({"plate": NameEncoder("plate"), "tokens": Encoder()})


KEYS = st.text("AB", min_size=1, max_size=4)
PLATES = st.sampled_from([None, "P1", "P2", "a plate", "ü"])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(KEYS, PLATES), min_size=1, max_size=6), st.floats(0.01, 3.0), st.floats(0.01, 3.0))
def test_covariances_are_those_of_independent_departures(drawn, deviation, offset):
    items = [key if plate is None else Query(key, {"plate": plate}) for key, plate in drawn]
    found = kernel(deviation=deviation, offset=offset)
    encoded = encoder().encode(items)
    gram = np.asarray(STRINGS.cross(Encoder().encode([key for key, _ in drawn])))
    expected = gram.copy()
    for i, (_, p) in enumerate(drawn):
        for j, (_, q) in enumerate(drawn):
            if p is not None and p == q:
                expected[i, j] += deviation * gram[i, j] + offset
    np.testing.assert_allclose(found.cross(encoded), expected, rtol=1e-9)
    np.testing.assert_allclose(found.cross(encoded, encoded.take([0])), expected[:, :1], rtol=1e-9)
    np.testing.assert_allclose(found.variance(encoded), np.diag(expected), rtol=1e-9)
    np.testing.assert_allclose(found.paired(encoded, encoded), np.diag(expected), rtol=1e-9)
    single = found.cross(encoded, None, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    bind_fields(found, encoder().columns)
    np.testing.assert_allclose(found(encoded.to_tensor()).to_dense().detach(), expected, rtol=1e-5)
    assert np.linalg.eigvalsh(expected).min() > -1e-8 * np.abs(expected).max()


def test_gradients_are_those_of_differences():
    found = kernel(deviation=0.4, offset=0.7)
    bind_fields(found, encoder().columns)
    found.double()
    rows = encoder().encode([Query("AB", {"plate": "P"}), Query("BA", {"plate": "P"}), "AB"]).to_tensor()
    found.forward(rows, rows).sum().backward()
    for parameter in (found.raw_deviation, found.raw_offset):
        sides = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step
                sides.append(float(found.forward(rows, rows).sum()))
                parameter -= step
        assert float(parameter.grad) == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5)


def test_a_plate_is_a_text():
    with pytest.raises(InputError, match=r"item 0 .*plate is 3.0; expected a text"):
        encoder().encode([Query("A", {"plate": 3})])
    assert encoder().unsupported([Query("A", {"plate": 3}), "A"]).keys() == {0}
