import numpy as np
import pytest
import torch

from seqopt.bench.euclid.kernels import COMMON, AutoregressiveKernel, DegenerateKernel, HierarchicalKernel


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def matern(x, y, lengthscale):
    r = np.sqrt((((x[:, None] - y[None]) / lengthscale) ** 2).sum(-1))
    return (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def points(rng, ways, count=9):
    return np.column_stack([rng.random((count, 2)), rng.choice(ways, count)])


def dense(kernel, x, y):
    with torch.no_grad():
        return kernel(torch.from_numpy(x), torch.from_numpy(y)).to_dense().numpy()


def test_the_autoregressive_kernel_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    kernel = AutoregressiveKernel(2, 3)
    scales, lengths, slopes = [0.3, 0.7, 1.2], rng.uniform(0.2, 1, (3, 2)), [0.8, -1.3]
    kernel.parts.outputscale = torch.tensor(scales)
    kernel.parts.base_kernel.lengthscale = torch.from_numpy(lengths)[:, None]
    kernel.slopes = torch.nn.Parameter(torch.tensor(slopes))
    # f_2 = d_2, f_1 = a_1 f_2 + d_1, f_0 = a_0 f_1 + d_0, written out.
    weights = {0: [1, 0.8, 0.8 * -1.3], 1: [0, 1, -1.3], 2: [0, 0, 1]}
    x, y = points(rng, [0, 1, 2]), points(rng, [0, 1, 2], 5)
    expected = np.zeros((len(x), len(y)))
    for part in range(3):
        one = np.array([weights[int(level)][part] for level in x[:, 2]])
        two = np.array([weights[int(level)][part] for level in y[:, 2]])
        expected += scales[part] * np.outer(one, two) * matern(x[:, :2], y[:, :2], lengths[part])
    np.testing.assert_allclose(dense(kernel, x, y), expected, atol=1e-10)


def test_the_degenerate_kernel_is_that_of_its_definition():
    rng = np.random.default_rng(1)
    kernel = DegenerateKernel(2)
    kernel.factor = torch.nn.Parameter(torch.tensor([0.9, -0.4, 0.5]))
    kernel.base.lengthscale = torch.tensor([0.3, 0.6])
    x, y = points(rng, [0, 0.3, 1]), points(rng, [0.7, 1], 5)
    factor = np.array([[0.9, 0.0], [-0.4, 0.5]])
    basis = [np.column_stack([z[:, 2], (1 - z[:, 2]) ** 2]) @ factor for z in (x, y)]
    expected = basis[0] @ basis[1].T * matern(x[:, :2], y[:, :2], np.array([0.3, 0.6]))
    np.testing.assert_allclose(dense(kernel, x, y), expected, atol=1e-10)


def test_the_hierarchical_kernel_is_that_of_its_definition():
    rng = np.random.default_rng(2)
    kernel = HierarchicalKernel(2)
    kernel.log_scales = torch.nn.Parameter(torch.tensor([1.5, 0.4, 0.2]).log())
    kernel.base.lengthscale = torch.tensor([0.3, 0.6])
    x, y = points(rng, [COMMON, 1, 2]), points(rng, [COMMON, 1, 3], 7)
    same = (x[:, None, 2] == y[None, :, 2]) & (x[:, None, 2] != COMMON)
    expected = (1.5 + 0.4 * same) * matern(x[:, :2], y[:, :2], np.array([0.3, 0.6])) + 0.2 * same
    np.testing.assert_allclose(dense(kernel, x, y), expected, atol=1e-10)
    # g at a point has the same distribution wherever it is asked for: twice is once.
    g = np.array([[0.2, 0.2, COMMON]] * 2)
    assert np.ptp(dense(kernel, g, g)) < 1e-12


@pytest.mark.parametrize(
    ("kernel", "ways"),
    [(AutoregressiveKernel, [0, 1, 2]), (DegenerateKernel, [0, 0.5, 1]), (HierarchicalKernel, [COMMON, 1, 2])],
)
def test_diagonals_are_those_of_the_matrix_and_covariances_are_positive(kernel, ways):
    rng = np.random.default_rng(3)
    made = kernel(2, 3) if kernel is AutoregressiveKernel else kernel(2)
    x, y = points(rng, ways), points(rng, ways)
    whole = dense(made, x, y)
    with torch.no_grad():
        diagonal = made(torch.from_numpy(x), torch.from_numpy(y), diag=True).numpy()
    np.testing.assert_allclose(diagonal, whole.diagonal(), atol=1e-12)
    assert np.linalg.eigvalsh(dense(made, x, x)).min() > -1e-10
