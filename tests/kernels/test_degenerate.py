"""Kernels of two functions of a number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels import DegenerateKernel

BASES = {
    "linear": lambda z: np.stack([np.ones_like(z), (1 - z) ** 2], 1),
    "thesis": lambda z: np.stack([z, (1 - z) ** 2], 1),
    "slope": lambda z: z[:, None],
}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(BASES)),
    st.lists(st.floats(-5.0, 20.0), min_size=1, max_size=6),
    st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3),
)
def test_covariances_are_those_of_weights_of_functions(basis, numbers, root):
    root = root[:1] if basis == "slope" else root
    kernel = DegenerateKernel(basis, 2.0, 12.0, root=root)
    lower = np.array([[root[0]]]) if basis == "slope" else np.array([[root[0], 0.0], [root[1], root[2]]])
    sigma = lower @ lower.T + 1e-6 * np.eye(len(lower))
    features = BASES[basis]((np.array(numbers) - 2.0) / 10.0)
    expected = features @ sigma @ features.T
    encoded = FeatureRows(np.array(numbers)[:, None])
    tolerance = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(kernel.cross(encoded), expected, **tolerance)
    np.testing.assert_allclose(kernel(encoded.to_tensor()).to_dense().detach(), expected, **tolerance)
    np.testing.assert_allclose(kernel.variance(encoded), np.diag(expected), **tolerance)
    np.testing.assert_allclose(kernel.forward(encoded.to_tensor(), encoded.to_tensor(), diag=True).detach(),
                               np.diag(expected), **tolerance)  # fmt: skip
    assert np.linalg.eigvalsh(expected).min() >= -1e-9 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("basis", sorted(BASES))
def test_gradients_are_those_of_differences(basis):
    kernel = DegenerateKernel(basis, root=[0.7] if basis == "slope" else [0.7, -0.2, 0.4])
    rows = torch.tensor([[0.1], [0.5], [1.0]], dtype=torch.float64)
    weights = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    (kernel.forward(rows, rows) * weights).sum().backward()
    for place in range(kernel.raw_root.numel()):
        sides = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                kernel.raw_root[place] += step
                sides.append(float((kernel.forward(rows, rows) * weights).sum()))
                kernel.raw_root[place] -= step
        assert float(kernel.raw_root.grad[place]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)


def test_both_bases_have_the_target_alone_at_one():
    target = FeatureRows(np.array([[1.0]]))
    for basis in ("linear", "thesis"):
        found = DegenerateKernel(basis, root=[2.0, 1.0, 3.0]).cross(target)
        np.testing.assert_allclose(found, [[4.0 + 1e-6]])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: DegenerateKernel("cubic"), "the basis is 'cubic'; expected one of linear, thesis, slope"),
        (lambda: DegenerateKernel("linear", 1.0, 1.0), "two different numbers"),
        (lambda: DegenerateKernel("linear", 0.0, float("nan")), "two different numbers"),
        (lambda: DegenerateKernel("linear", root=[1.0, 2.0]), "root are"),
        (lambda: DegenerateKernel().cross(FeatureRows(np.ones((1, 2)))), "one column"),
    ],
)
def test_what_does_not_fit_is_refused(act, message):
    with pytest.raises(InputError, match=message):
        act()
