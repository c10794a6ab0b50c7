"""Kernels on one variable of the context."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpytorch.kernels import IndexKernel
from scipy import stats

from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, SameLevelKernel


def rows(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_covariances_of_levels_are_those_of_gpytorch(rank: int) -> None:
    reference = IndexKernel(num_tasks=4, rank=rank).double()
    kernel = CoregionalizationKernel(4, rank, factors=reference.covar_factor.detach(), variances=reference.var.detach())
    numbers = torch.tensor([[3], [0], [1], [1], [2], [0]])
    torch.testing.assert_close(kernel(numbers.double()).to_dense(), reference(numbers).to_dense())
    torch.testing.assert_close(kernel.covariance, reference.covar_matrix.to_dense())
    encoded = FeatureRows(numbers.double().numpy())
    expected = reference(numbers).to_dense().detach().numpy()
    np.testing.assert_allclose(kernel.cross(encoded), expected)
    np.testing.assert_allclose(kernel.cross(encoded.take([1, 3]), encoded), expected[[1, 3]])
    np.testing.assert_allclose(kernel.variance(encoded), np.diag(expected))
    np.testing.assert_allclose(kernel.paired(encoded.take([0, 1]), encoded.take([4, 2])), expected[[0, 1], [4, 2]])
    assert np.linalg.eigvalsh(expected).min() > -1e-10


@pytest.mark.parametrize(("levels", "rank"), [(1, 1), (2, 1), (2, 2), (5, 3)])
def test_levels_begin_alike_and_factors_apart(levels: int, rank: int) -> None:
    kernel = CoregionalizationKernel(levels, rank)
    found = kernel.covariance.detach()
    if rank == 1:
        expected = torch.full((levels, levels), 0.8, dtype=torch.float64).fill_diagonal_(1.0)
        torch.testing.assert_close(found, expected)
    (kernel.covariance * torch.arange(levels, dtype=torch.float64)).sum().backward()
    factors = kernel.raw_factors.detach()
    assert len({tuple(column.tolist()) for column in factors.T}) == rank
    assert torch.isfinite(kernel.raw_factors.grad).all()


def test_parameters_are_actual_values() -> None:
    kernel = CoregionalizationKernel(2)
    kernel.factors = [[1.0], [2.0]]
    kernel.variances = 0.5
    assert kernel.covariance.tolist() == [[1.5, 2.0], [2.0, 4.5]]
    assert repr(kernel) == "CoregionalizationKernel(2, rank=1, factors=[1, 2], variances=[0.5, 0.5])"
    loaded = CoregionalizationKernel(2)
    loaded.load_state_dict(kernel.state_dict())
    assert torch.equal(loaded.covariance, kernel.covariance)
    with torch.no_grad():
        kernel.raw_variances.fill_(-1.0)  # an optimiser may leave the box
    assert torch.linalg.eigvalsh(kernel.covariance).min() > 0


def test_same_level() -> None:
    kernel = SameLevelKernel()
    values = rows(1.0, 2.0, 1.0, float("nan"))
    expected = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=float)
    np.testing.assert_array_equal(kernel(values).to_dense(), expected)
    encoded = FeatureRows(values.numpy())
    np.testing.assert_array_equal(kernel.cross(encoded), expected)
    np.testing.assert_array_equal(kernel.cross(encoded.take([0]), encoded, dtype=np.float32), expected[:1])
    np.testing.assert_array_equal(kernel.variance(encoded), np.diag(expected))
    batch = SameLevelKernel(batch_shape=torch.Size([3]))
    assert batch(values).to_dense().shape == (3, 4, 4)
    assert batch.cross(encoded).shape == (3, 4, 4)
    assert batch[0](values).to_dense().shape == (4, 4)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: CoregionalizationKernel(0), "levels is 0"),
        (lambda: CoregionalizationKernel(2, True), "rank is True"),
        (lambda: CoregionalizationKernel(2, factors=[1.0, 2.0, 3.0]), "factors are .* expand to \\(2, 1\\)"),
        (lambda: CoregionalizationKernel(2, variances=0.0), "variances are .* must lie in"),
        (lambda: CoregionalizationKernel(2, factors=float("nan")), "expected finite"),
        (lambda: CoregionalizationKernel(2).forward(rows(2.0), rows(0.0)), "2 is not the number of a level.*0 to 1"),
        (lambda: CoregionalizationKernel(2).cross(FeatureRows(np.array([[0.5]]))), "0.5 is not the number"),
        (lambda: CoregionalizationKernel(2).cross(FeatureRows(np.ones((1, 2)))), "one column; got 2: use OnField"),
        (lambda: SameLevelKernel().forward(torch.ones(2, 3), torch.ones(2, 3)), "one column; got 3"),
    ],
)
def test_what_does_not_fit_is_refused(act: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act()  # type: ignore[operator]


def test_the_variances_of_levels_have_a_prior_that_keeps_them_apart():
    kernel = CoregionalizationKernel(2, variances=[0.05, 0.7])
    ((_, of, prior, reading, _),) = kernel.named_priors()
    density = prior.log_prob(reading(of)).detach().numpy()
    np.testing.assert_allclose(density, stats.lognorm.logpdf([0.05, 0.7], s=1.0, scale=0.3), rtol=1e-5)
    assert stats.lognorm.cdf(1e-3, s=1.0, scale=0.3) < 1e-6  # levels that are one and the same but for rounding
