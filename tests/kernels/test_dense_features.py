"""Kernels on dense features."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch

from seqopt.encoding import Encoder, FeatureRows
from seqopt.errors import InputError
from seqopt.kernels import LinearFeatureKernel, SmoothFeatureKernel, dense_features

ROWS = np.random.default_rng(0).standard_normal((9, 4))


@pytest.mark.parametrize(
    ("form", "other"), [("rbf", gpytorch.kernels.RBFKernel()), ("matern", gpytorch.kernels.MaternKernel(2.5))]
)
def test_smooth_kernels_are_those_of_gpytorch(
    form: str, other: gpytorch.kernels.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = other.double()
    other.lengthscale = 1.7
    rows = torch.from_numpy(ROWS)
    expected = other(rows).to_dense().detach().numpy()
    kernel = SmoothFeatureKernel(form, lengthscale=1.7).double()  # type: ignore[arg-type]
    np.testing.assert_allclose(kernel(rows).to_dense().detach(), expected, atol=1e-7)
    monkeypatch.setattr(dense_features, "BLOCK_ELEMENTS", 20)
    np.testing.assert_allclose(kernel.cross(FeatureRows(ROWS[:3]), FeatureRows(ROWS)), expected[:3], atol=1e-7)
    np.testing.assert_allclose(kernel.variance(FeatureRows(ROWS)), 1.0)


def test_a_lengthscale_begins_at_the_median_distance() -> None:
    kernel = SmoothFeatureKernel().double()
    kernel.adapt(torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64))
    assert float(kernel.lengthscale.detach()) == pytest.approx(2.0)


def test_a_linear_kernel_is_an_inner_product(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ROWS @ ROWS.T * 3.0 / 4
    kernel = LinearFeatureKernel(3.0)
    np.testing.assert_allclose(kernel(torch.from_numpy(ROWS)).to_dense().detach(), expected)
    monkeypatch.setattr(dense_features, "BLOCK_ELEMENTS", 8)
    np.testing.assert_allclose(kernel.cross(FeatureRows(ROWS)), expected)
    np.testing.assert_allclose(kernel.variance(FeatureRows(ROWS)), np.diag(expected))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="form is 'cubic'"):
        SmoothFeatureKernel("cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rows of 4 and of 3 features"):
        SmoothFeatureKernel().cross(FeatureRows(ROWS), FeatureRows(ROWS[:, :3]))
    with pytest.raises(InputError, match="compares features"):
        LinearFeatureKernel().cross(Encoder().encode(["AC"]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a positive number"):
        LinearFeatureKernel(0.0)
