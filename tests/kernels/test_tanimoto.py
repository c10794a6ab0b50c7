"""The Tanimoto and MinMax kernels: RDKit's values, fractions, invariances, and bounded memory."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import unittest
from fractions import Fraction

import gpytorch
import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from scipy import sparse
from torch.utils._python_dispatch import TorchDispatchMode

from seqopt.encoding import Encoder, FeatureEncoder, FeatureRows, Fragprints, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import MinMaxKernel, TanimotoKernel, tanimoto

KERNELS = [TanimotoKernel, MinMaxKernel]

SMILES = [
    "CCO",
    "CCCO",
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC(=O)Nc1ccc(O)cc1",
    "CCCCCCCCCCCCCCCCCC(=O)O",
    "CCCCCCCC(=O)OCC",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "C",
]

counts = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.integers(0, 4).map(float)
)
positive = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 7), st.integers(1, 6)),
    elements=st.sampled_from([0.0, 0.25, 0.1, 1 / 3, 1.0, 2.7, 1e3]),
)
rows_of_numbers = counts | positive


def by_definition(kernel, a, b):
    """The formula, in fractions."""
    a, b = [Fraction(x) for x in a], [Fraction(x) for x in b]
    if isinstance(kernel, MinMaxKernel):
        shared, whole = sum(map(min, a, b)), sum(map(max, a, b))
    else:
        shared = sum(x * y for x, y in zip(a, b, strict=True))
        whole = sum(x * x for x in a) + sum(y * y for y in b) - shared
    return float(shared / whole) if whole else 1.0


def gram_by_definition(kernel, first, second):
    return np.array([[by_definition(kernel, a, b) for b in second] for a in first])


def with_graph(kernel, x1, x2=None):
    """What torch computes where gradients are wanted, or there is a GPU."""
    x1 = x1.clone().requires_grad_()
    return kernel(x1, x1 if x2 is None else x2).to_dense().detach()


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param()


class TestAgainstOtherLibraries:
    @pytest.mark.parametrize("radius", [2, 3])
    def test_tanimoto_of_bits_is_that_of_rdkit(self, radius):
        generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=2048, includeChirality=True)
        prints = [generator.GetFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
        expected = [DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints]
        rows = FeatureEncoder(MorganFingerprint(radius)).encode(SMILES)
        for kernel in (TanimotoKernel(), MinMaxKernel()):
            np.testing.assert_allclose(kernel.cross(rows), expected, rtol=0, atol=1e-15)
            np.testing.assert_allclose(kernel(rows.to_tensor()).to_dense(), expected, rtol=0, atol=1e-15)

    def test_minmax_of_counts_is_what_rdkit_calls_tanimoto(self):
        generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048, includeChirality=True)
        prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
        expected = np.array([DataStructs.BulkTanimotoSimilarity(one, prints) for one in prints])
        rows = FeatureEncoder(MorganFingerprint(2, counts=True)).encode(SMILES)
        np.testing.assert_allclose(MinMaxKernel().cross(rows), expected, rtol=0, atol=1e-15)
        np.testing.assert_allclose(MinMaxKernel()(rows.to_tensor()).to_dense(), expected, rtol=0, atol=1e-15)
        # On counts the two kernels differ.
        assert np.abs(TanimotoKernel().cross(rows) - expected).max() > 0.1

    def test_both_are_those_of_gauche(self):
        fingerprint_kernels = pytest.importorskip("gauche.kernels.fingerprint_kernels")
        x = FeatureEncoder(Fragprints(counts=True)).encode(SMILES).to_tensor()
        for ours, theirs in (
            (TanimotoKernel(), fingerprint_kernels.tanimoto_kernel.TanimotoKernel()),
            (MinMaxKernel(), fingerprint_kernels.minmax_kernel.MinMaxKernel()),
        ):
            # It adds 1e-6 to numerators and denominators.
            torch.testing.assert_close(ours(x).to_dense(), theirs(x).to_dense(), rtol=0, atol=2e-6)
            torch.testing.assert_close(ours(x[:3], x).to_dense(), theirs(x[:3], x).to_dense(), rtol=0, atol=2e-6)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(rows=rows_of_numbers, split=st.integers(0, 6))
@pytest.mark.parametrize("make", KERNELS)
def test_every_form_is_the_formula(make, rows, split):
    kernel, x, first = make(), torch.from_numpy(rows), rows[: max(1, split)]
    gram, part = gram_by_definition(kernel, rows, rows), gram_by_definition(kernel, first, rows)
    close = {"rtol": 1e-13, "atol": 1e-13}
    some = torch.from_numpy(first)
    for stored in (np.asarray, sparse.csr_array):
        for other in (np.asarray, sparse.csr_array):
            a, b = FeatureRows(stored(first)), FeatureRows(other(rows))
            np.testing.assert_allclose(kernel.cross(a, b), part, **close)
            np.testing.assert_allclose(kernel.cross(b, a), part.T, **close)
            sizes = kernel.self_similarity(a), kernel.self_similarity(b)
            np.testing.assert_array_equal(kernel.cross(a, b, *sizes), kernel.cross(a, b))
        np.testing.assert_allclose(kernel.cross(FeatureRows(stored(rows))), gram, **close)
    np.testing.assert_allclose(kernel(x).to_dense(), gram, **close)
    np.testing.assert_allclose(kernel(some, x).to_dense(), part, **close)
    np.testing.assert_allclose(with_graph(kernel, x), gram, **close)
    np.testing.assert_allclose(with_graph(kernel, some, x), part, **close)
    flipped = torch.from_numpy(rows[::-1].copy())
    np.testing.assert_allclose(kernel(x, flipped, diag=True), np.diagonal(gram[:, ::-1]), **close)
    # Products of a thousand and of a tenth leave fewer digits of the small one, in single precision.
    np.testing.assert_allclose(kernel(x.float()).to_dense(), gram, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=60)
@given(rows=rows_of_numbers, seed=st.integers(0, 99))
@pytest.mark.parametrize("make", KERNELS)
def test_gram_is_symmetric_positive_semidefinite_and_bounded(make, rows, seed):
    kernel = make()
    for gram in (kernel(torch.from_numpy(rows)).to_dense().numpy(), kernel.cross(FeatureRows(sparse.csr_array(rows)))):
        np.testing.assert_array_equal(gram, gram.T)
        np.testing.assert_array_equal(np.diagonal(gram), 1.0)
        assert np.all(gram >= 0)
        assert np.all(gram <= 1 + 1e-12)
        assert np.linalg.eigvalsh(gram).min() > -1e-10
        shares = (rows[:, None, :] * rows[None, :, :]).any(-1) | ~(rows[:, None, :] + rows[None, :, :]).any(-1)
        assert np.array_equal(gram > 0, shares)
        rng = np.random.default_rng(seed)
        order, columns = rng.permutation(len(rows)), rng.permutation(rows.shape[1])
        moved = kernel(torch.from_numpy(rows[order][:, columns])).to_dense().numpy()
        np.testing.assert_allclose(moved, gram[np.ix_(order, order)], rtol=1e-13)


@settings(deadline=None, max_examples=40)
@given(
    rows=arrays.arrays(
        np.float64, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.floats(-3, 3, allow_subnormal=False)
    )
)
def test_tanimoto_is_positive_semidefinite_on_all_real_rows(rows):
    gram = TanimotoKernel()(torch.from_numpy(rows)).to_dense().numpy()
    assert np.linalg.eigvalsh(gram).min() > -1e-9


@settings(deadline=None, max_examples=40)
@given(
    rows=arrays.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.sampled_from([0, 1]))
)
def test_kernels_of_zeros_and_ones_agree(rows):
    x = torch.from_numpy(rows.astype(np.float64))
    assert torch.equal(TanimotoKernel()(x).to_dense(), MinMaxKernel()(x).to_dense())


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("shapes", [((2, 5), (2, 4)), ((3, 1, 5), (2, 4)), ((5,), (2, 4)), ((2, 5), (4,))])
def test_batches_are_their_matrices_one_by_one(kernel, shapes, graph):
    generator = torch.Generator().manual_seed(0)
    x1, x2 = (torch.randint(0, 4, (*shape, 6), generator=generator).double() for shape in shapes)
    value = kernel(x1.requires_grad_(graph), x2).to_dense()
    batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    left, right = x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:])
    assert value.shape == (*batch, x1.shape[-2], x2.shape[-2])
    for index in np.ndindex(*batch):
        assert torch.equal(value[index], kernel(left[index], right[index]).to_dense())
    again = kernel(left, left.flip(-2), diag=True)
    assert torch.equal(again, kernel(left, left.flip(-2)).to_dense().diagonal(dim1=-2, dim2=-1))
    assert torch.equal(kernel(left, diag=True), torch.ones(*batch, x1.shape[-2]).double())


@pytest.mark.parametrize("graph", [False, True])
def test_single_columns_can_be_a_batch(kernel, graph):
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], requires_grad=graph)
    value = kernel.forward(x, x, last_dim_is_batch=True)
    expected = torch.stack([kernel(column[:, None]).to_dense() for column in x.T])
    assert torch.equal(value, expected)


def test_rows_of_zeros_are_equal_and_like_nothing_else(kernel):
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    expected = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    for stored in (rows, sparse.csr_array(rows)):
        assert kernel.cross(FeatureRows(stored)).tolist() == expected
        assert kernel.cross(FeatureRows(stored), FeatureRows(stored)).tolist() == expected
    x = torch.from_numpy(rows).requires_grad_()
    value = kernel(x).to_dense()
    assert value.tolist() == expected
    assert kernel(x, x.flip(0), diag=True).tolist() == [0.0, 1.0, 0.0]
    value.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_what_is_no_number_stays_none(kernel):
    x = torch.tensor([[float("nan"), 1.0], [1.0, 1.0]], dtype=torch.float64)
    for value in (kernel(x, x.clone()).to_dense(), kernel(x.requires_grad_(), x.detach()).to_dense()):
        assert value[0].isnan().all()
        assert value[1, 1] == 1.0


def test_gradients_are_those_of_finite_differences(kernel):
    generator = torch.Generator().manual_seed(1)
    # No two features are equal, where sums of minima have a kink.
    x1, x2 = (torch.rand(2, n, 5, generator=generator, dtype=torch.float64).requires_grad_() for n in (4, 3))
    assert torch.autograd.gradcheck(lambda a, b: kernel(a, b).to_dense(), (x1, x2))
    assert torch.autograd.gradcheck(lambda a, b: kernel(a, b[:, [0, 0, 1, 2]], diag=True), (x1, x2))
    if isinstance(kernel, TanimotoKernel):
        # Of equal rows the similarity is at its maximum: its gradient is 0, not that of rounding errors.
        (gradient,) = torch.autograd.grad(kernel(x1).to_dense().diagonal(dim1=-2, dim2=-1).sum(), x1)
        assert gradient.abs().max() < 1e-12
        assert torch.autograd.gradcheck(lambda a: kernel(a).to_dense(), (x1,))


def test_gradients_are_those_of_the_argument_they_are_asked_for_even_where_both_hold_the_same_rows(kernel):
    generator = torch.Generator().manual_seed(3)
    a, weights = (torch.rand(3, n, generator=generator, dtype=torch.float64) for n in (4, 3))
    for diag in (False, True):

        def weighted(x1, x2, diag=diag):
            return ((weights.diagonal() if diag else weights) * kernel.forward(x1, x2, diag=diag)).sum()

        assert torch.autograd.gradcheck(weighted, (a.clone().requires_grad_(), a.clone()))
        assert torch.autograd.gradcheck(weighted, (a.clone(), a.clone().requires_grad_()))
        assert torch.autograd.gradcheck(weighted, (a.clone().requires_grad_(), a.clone().requires_grad_()))
        # Rows that share their memory are two arguments none the less.
        shared = a.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(weighted(shared, shared.detach()), shared)
        apart = a.clone().requires_grad_()
        (expected,) = torch.autograd.grad(weighted(apart, a + 0.0), apart)
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)


def test_rows_are_at_exactly_one_with_themselves(kernel):
    x = torch.rand(40, 30, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    ones = torch.ones(40, dtype=torch.float64)
    # Without a graph rows may come as a copy.
    for value in (kernel.forward(x, x), kernel.forward(x, x.clone()), with_graph(kernel, x)):
        assert torch.equal(value.diagonal(), ones)
    with torch.no_grad():
        tracked = x.clone().requires_grad_()
        assert torch.equal(kernel.forward(tracked, x), kernel.forward(x, x))


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_values_come_in_the_dtype_and_on_the_device_of_the_rows(kernel, device, graph):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    x = torch.randint(0, 5, (6, 9), generator=torch.Generator().manual_seed(2))
    exact = kernel(x.double()).to_dense()
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64):
        expected = dtype if dtype.is_floating_point else torch.float64
        there = x.to(device, dtype).requires_grad_(graph and dtype.is_floating_point)
        for value in (kernel.forward(there, there), kernel.forward(there, there.flip(0)).flip(1)):
            assert (value.dtype, value.device.type) == (expected, device)
            torch.testing.assert_close(value.double().cpu(), exact, rtol=torch.finfo(expected).eps, atol=0)
        assert kernel.forward(there, there, diag=True).dtype == expected


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_and_threads_make_no_difference(kernel, threads, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.2, (300, 40)) * rng.choice([1.0, 0.3], (300, 40))
    expected = gram_by_definition(kernel, rows[:10], rows)
    everything = kernel.cross(FeatureRows(rows))
    np.testing.assert_allclose(everything[:10], expected, rtol=1e-13)
    assert np.array_equal(everything, everything.T)
    assert np.all(np.diagonal(everything) == 1.0)
    monkeypatch.setattr(tanimoto, "DENSE_ROWS", 17)
    monkeypatch.setattr(tanimoto, "SPARSE_ROWS", 41)
    monkeypatch.setattr(tanimoto, "DENSE_ELEMENTS", 40 * 23)
    monkeypatch.setattr(tanimoto, "THREADING_COST", 100)
    monkeypatch.setattr(tanimoto, "MINIMA", 700)
    kernel.threads = threads
    for stored in (rows, sparse.csr_array(rows)):
        assert np.array_equal(kernel.cross(FeatureRows(stored)), everything)
        part = FeatureRows(stored[:50])
        assert np.array_equal(kernel.cross(part, FeatureRows(stored)), everything[:50])
        assert np.array_equal(kernel.cross(FeatureRows(stored), part), everything[:, :50])
    x = torch.from_numpy(rows)
    assert np.array_equal(kernel(x).to_dense(), everything)
    assert np.array_equal(kernel(x, x[:50]).to_dense(), everything[:, :50])
    np.testing.assert_allclose(with_graph(kernel, x[:50], x), everything[:50], rtol=1e-13)


def test_repeated_and_unsorted_entries_of_sparse_rows_are_added(kernel):
    rows = sparse.csr_array((np.array([2.0, 1.0, 1.0, 3.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = rows.indices.copy()
    expected = kernel.cross(FeatureRows(np.array([[1.0, 0.0, 3.0], [0.0, 3.0, 0.0]])), FeatureRows(np.eye(3)))
    assert np.array_equal(kernel.cross(FeatureRows(rows), FeatureRows(np.eye(3))), expected)
    assert np.array_equal(rows.indices, before)


def test_results_of_either_precision_agree(kernel):
    rows = FeatureEncoder(Fragprints(counts=True)).encode(SMILES)
    single = kernel.cross(rows, rows.take(slice(0, 3)), dtype=np.float32)
    assert single.dtype == np.float32
    assert np.array_equal(single, kernel.cross(rows, rows.take(slice(0, 3))).astype(np.float32))


def test_variances_are_one(kernel):
    rows = FeatureRows(np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert kernel.variance(rows).tolist() == [1.0, 1.0]
    own = [0.0, 3.0] if isinstance(kernel, MinMaxKernel) else [0.0, 5.0]
    assert kernel.self_similarity(rows).tolist() == own
    batched = type(kernel)(batch_shape=torch.Size([3, 2]))
    assert batched.variance(rows).shape == batched.self_similarity(rows).shape == (3, 2, 2)
    value = batched.cross(rows, rows.take([1]), batched.self_similarity(rows))
    assert np.array_equal(value, np.broadcast_to([[0.0], [1.0]], (3, 2, 2, 1)))
    assert torch.equal(batched(rows.to_tensor()).to_dense(), torch.eye(2).double().expand(3, 2, 2, 2))


class Largest(TorchDispatchMode):
    """The most elements that any tensor made by torch has."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return made


class TestMemory:
    def test_cross_takes_little_beside_the_result(self, kernel):
        rng = np.random.default_rng(0)
        pool = FeatureRows(sparse.random_array((40_000, 2048), density=0.01, format="csr", rng=rng))
        rows = pool.take(slice(0, 100))
        kernel.cross(rows, rows)
        tracemalloc.start()
        result = kernel.cross(rows, pool)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # The pool itself, dense, would take 655 MB.
        assert peak < result.nbytes + 30e6

    def test_forward_holds_nothing_of_rows_times_rows_times_columns(self, kernel):
        x = torch.randint(0, 3, (400, 2048), generator=torch.Generator().manual_seed(0)).double()
        with Largest():  # What is loaded when first used is not memory of rows.
            kernel(x[:2], x[:3]).to_dense()
        tracemalloc.start()
        with Largest() as largest:
            kernel(x, x[:300]).to_dense()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert largest.elements <= x.numel()
        assert peak < 4 * 8 * x.numel()

    def test_gradients_hold_nothing_of_rows_times_rows_times_columns(self, kernel):
        x = torch.rand(620, 512, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        rows, columns = x[:20].clone().requires_grad_(), x[20:]
        kept = {}

        def keep(saved):
            kept[saved.untyped_storage().data_ptr()] = saved.untyped_storage().nbytes()
            return saved

        with Largest() as largest, torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
            kernel(rows, columns).to_dense().sum().backward()
        assert largest.elements <= tanimoto.MINIMA
        assert sum(kept.values()) < 3 * x.untyped_storage().nbytes()


class TestModels:
    def test_has_no_parameters_and_can_be_copied(self, kernel):
        assert not list(kernel.parameters())
        x = torch.eye(3)
        for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
            assert torch.equal(other(x).to_dense(), torch.eye(3))

    def test_is_fitted_with_a_scale(self, kernel):
        x = FeatureEncoder(MorganFingerprint(counts=True)).encode(SMILES).to_tensor()
        y = torch.tensor([len(smiles) for smiles in SMILES], dtype=torch.float64)[:, None]
        model = SingleTaskGP(x, (y - y.mean()) / y.std(), covar_module=gpytorch.kernels.ScaleKernel(kernel))
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        model.train()
        before = likelihood(model(x), model.train_targets).item()
        fit_gpytorch_mll(likelihood)
        model.train()
        assert likelihood(model(x), model.train_targets).item() > before

    def test_picks_its_columns(self, kernel):
        x = torch.tensor([[9.0, 1.0, 0.0], [8.0, 0.0, 1.0]])
        assert torch.equal(type(kernel)(active_dims=(1, 2))(x).to_dense(), torch.eye(2))


class TestBadInput:
    def test_features_of_cross_must_fit(self, kernel):
        rows = FeatureRows(np.ones((2, 3)))
        with pytest.raises(InputError, match="rows of 3 and of 4 features"):
            kernel.cross(rows, FeatureRows(np.ones((2, 4))))
        with pytest.raises(InputError, match="got EncodedStrings: encode strings by a FeatureEncoder"):
            kernel.cross(Encoder().encode(["CCO"]))
        with pytest.raises(InputError, match="dtype is int64"):
            kernel.cross(rows, dtype=np.int64)

    def test_threads_are_at_least_one(self, kernel):
        for wrong in (0, 1.5, True):
            with pytest.raises(InputError, match=f"threads is {wrong}"):
                type(kernel)(threads=wrong)

    def test_minima_need_features_of_at_least_zero(self):
        rows = np.array([[1.0, -0.5], [1.0, 2.0]])
        good = FeatureRows(np.ones((1, 2)))
        for stored in (rows, sparse.csr_array(rows)):
            for call in (MinMaxKernel().cross, MinMaxKernel().self_similarity):
                with pytest.raises(InputError, match=r"MinMaxKernel compares features of at least 0; one is -0\.5"):
                    call(FeatureRows(stored))
            with pytest.raises(InputError, match=r"one is -0\.5"):
                MinMaxKernel().cross(good, FeatureRows(stored))
        with pytest.raises(InputError, match=r"one is -0\.5"):
            MinMaxKernel()(torch.from_numpy(rows), torch.ones(1, 2).double()).to_dense()

    def test_no_rows_have_no_covariances(self, kernel):
        none, one = FeatureRows(np.empty((0, 3))), FeatureRows(sparse.csr_array(np.ones((1, 3))))
        assert kernel.cross(none).shape == (0, 0)
        assert kernel.cross(none, one).shape == (0, 1)
        assert kernel.cross(one, none).shape == (1, 0)
        for graph in (False, True):
            x = torch.empty(0, 3, requires_grad=graph)
            assert kernel.forward(x, x).shape == (0, 0)
            assert kernel.forward(x, torch.ones(2, 3)).shape == (0, 2)
            batch = torch.empty(0, 4, 3, requires_grad=graph)
            assert kernel.forward(batch, torch.ones(2, 3)).shape == (0, 4, 2)


def count_rows(*shape):
    return torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestTanimotoInGpytorch(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return TanimotoKernel(**kwargs)

    def create_data_no_batch(self):
        return count_rows(50, 10)

    def create_data_single_batch(self):
        return count_rows(2, 50, 2)

    def create_data_double_batch(self):
        return count_rows(3, 2, 50, 2)

    def test_kernel_dtype_device(self):
        # A kernel without parameters has no precision of its own: results have that of the rows.
        kernel = self.create_kernel_no_ard()
        for dtype in (torch.float32, torch.float64):
            assert kernel.to(dtype)(count_rows(3, 2).to(dtype)).to_dense().dtype == dtype


class TestMinMaxInGpytorch(TestTanimotoInGpytorch):
    def create_kernel_no_ard(self, **kwargs):
        return MinMaxKernel(**kwargs)
