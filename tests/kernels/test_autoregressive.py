"""Levels that are multiples of the one before, against independent parts that are combined by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Encoder, FeatureRows
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import AutoregressiveKernel, NgramKernel, OnField, Product, RecursiveKernel, SubsequenceKernel

NUMBERS = st.floats(-2.0, 2.0)


def recursion(factors, variances):
    """Weights of the independent parts in each level, by carrying the recursion out."""
    rows = [np.eye(len(variances))[0]]
    for t, factor in enumerate(factors):
        rows.append(factor * rows[-1] + np.eye(len(variances))[t + 1])
    weights = np.array(rows)
    return weights, weights @ np.diag(variances) @ weights.T


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(
    st.lists(NUMBERS, min_size=n - 1, max_size=n - 1), st.lists(st.floats(1e-3, 10.0), min_size=n, max_size=n)
)))  # fmt: skip
def test_covariances_are_those_of_the_recursion(drawn):
    factors, variances = drawn
    kernel = AutoregressiveKernel(len(variances), factors=factors, variances=variances)
    _, expected = recursion(factors, variances)
    np.testing.assert_allclose(kernel.covariance.detach(), expected, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(expected).min() > -1e-9 * np.abs(expected).max()
    items = FeatureRows(np.arange(len(variances), dtype=np.float64)[::-1].copy()[:, None])
    np.testing.assert_allclose(kernel.cross(items), expected[::-1, ::-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        kernel(items.to_tensor()).to_dense().detach(), expected[::-1, ::-1], rtol=1e-9, atol=1e-12
    )


def test_levels_begin_alike():
    found = AutoregressiveKernel(3).covariance.detach().numpy()
    np.testing.assert_allclose(found, [[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]])


def test_gradients_are_those_of_differences():
    kernel = AutoregressiveKernel(3, factors=[0.5, -1.5], variances=[1.0, 0.3, 0.7])
    weights = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    (kernel.covariance * weights).sum().backward()
    for parameter in (kernel.raw_factors, kernel.raw_variances):
        for place in range(parameter.numel()):
            sides = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    parameter.view(-1)[place] += step
                    sides.append(float((kernel.covariance * weights).sum()))
                    parameter.view(-1)[place] -= step
            assert float(parameter.grad.view(-1)[place]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)


def items():
    encoder = FieldEncoder({"level": ContextEncoder("level", levels=["a", "b"], default="b"), "tokens": Encoder()})
    from seqopt.data import Query

    return encoder, encoder.encode([Query(key, {"level": level}) for level in "ab" for key in ("ABA", "BA", "AAB")])


def test_every_part_has_a_kernel_of_its_own():
    encoder, encoded = items()
    first, second = SubsequenceKernel(2), NgramKernel(2)
    levels = AutoregressiveKernel(2, factors=1.5, variances=[0.5, 2.0])
    kernel = RecursiveKernel([OnField(first, "tokens"), OnField(second, "tokens")], levels, "level")
    tokens = encoded["tokens"]
    k1, k2 = np.asarray(first.cross(tokens)), np.asarray(second.cross(tokens))
    numbers = [0] * 3 + [1] * 3
    # f_1 = d_1 and f_2 = 1.5 d_1 + d_2
    w = np.array([[1.0, 0.0], [1.5, 1.0]])[numbers]
    expected = 0.5 * k1 * np.outer(w[:, 0], w[:, 0]) + 2.0 * k2 * np.outer(w[:, 1], w[:, 1])
    np.testing.assert_allclose(kernel.cross(encoded), expected, rtol=1e-9)
    np.testing.assert_allclose(kernel.variance(encoded), np.diag(expected), rtol=1e-9)
    np.testing.assert_allclose(kernel.paired(encoded, encoded), np.diag(expected), rtol=1e-9)
    for part in kernel.modules():
        if isinstance(part, OnField):
            part.columns = encoder.columns[part.field]
    np.testing.assert_allclose(kernel(encoded.to_tensor()).to_dense().detach(), expected, rtol=1e-6)
    assert len([name for name, _ in kernel.named_parameters() if "raw_factors" in name]) == 1  # shared
    # With one kernel for all it is the tied model.
    tied = Product(OnField(first, "tokens"), OnField(levels, "level"))
    same = RecursiveKernel([OnField(first, "tokens")] * 2, levels, "level")
    np.testing.assert_allclose(same.cross(encoded), tied.cross(encoded), rtol=1e-9)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="factors are"):
        AutoregressiveKernel(2, factors=[1.0, 2.0])
    with pytest.raises(InputError, match="must lie in"):
        AutoregressiveKernel(2, variances=0.0)
    with pytest.raises(InputError, match="1 kernels for 2 levels"):
        RecursiveKernel([SubsequenceKernel()], AutoregressiveKernel(2), "level")
