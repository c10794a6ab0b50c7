"""The one-hot kernel: explicit one-hot codes, invariances, lengths, memory, use in a model."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import unittest

import gpytorch
import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel
from sklearn.preprocessing import OneHotEncoder

from seqopt.encoding import EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import OneHotKernel, one_hot
from seqopt.kernels.threads import one_thread

WORDS = ["genomes", "genetic", "general"]


@st.composite
def words(draw):
    """Two lists of words of one length."""
    length = draw(st.integers(1, 8))
    word = st.text(alphabet="abc", min_size=length, max_size=length)
    return draw(st.lists(word, min_size=1, max_size=6)), draw(st.lists(word, min_size=1, max_size=6))


def random_strings(count, length, symbols, rng):
    return EncodedStrings.from_tokens(rng.integers(1, symbols + 1, (count, length)).astype(np.uint16))


@pytest.mark.parametrize(
    ("length", "symbols"), [(1, 2), (20, 2), (255, 4), (256, 4), (300, 1), (700, 1), (700, 3), (40, 9_000)]
)
def test_covariances_are_dot_products_of_one_hot_codes(length, symbols):
    strings = random_strings(25, length, symbols, np.random.default_rng(0))
    codes = OneHotEncoder(sparse_output=False).fit_transform(strings.tokens)
    expected = linear_kernel(codes) / length
    kernel = OneHotKernel()
    few = strings.take(slice(0, 4))
    x = strings.to_tensor(length + 3)
    for values, wanted in (
        (kernel.cross(strings), expected),
        (kernel.cross(few, strings), expected[:4]),
        (kernel.cross(strings, few), expected[:, :4]),
        (kernel(x).to_dense(), expected),
        (kernel(x[:4], x).to_dense(), expected[:4]),
        (kernel(x, diag=True), np.ones(25)),
        (kernel(x, x.flip(0), diag=True), np.diagonal(expected[:, ::-1])),
        (kernel.self_similarity(strings), np.ones(25)),
        (kernel.variance(strings), np.ones(25)),
    ):
        np.testing.assert_allclose(values, wanted, rtol=1e-14)
    np.testing.assert_array_equal(np.diagonal(kernel.cross(strings)), np.ones(25))


@settings(deadline=None, max_examples=40)
@given(lists=words(), extra=st.integers(0, 5), seed=st.integers(0, 99))
def test_padding_numbering_and_order_make_no_difference(lists, extra, seed):
    kernel, encoder = OneHotKernel(), Encoder()
    a, b = (encoder.encode(part) for part in lists)
    length = len(lists[0][0])
    expected = [[sum(x == y for x, y in zip(s, t, strict=True)) / length for t in lists[1]] for s in lists[0]]
    np.testing.assert_array_equal(kernel.cross(a, b), expected)
    np.testing.assert_array_equal(kernel.cross(a.padded(length + extra), b), expected)
    np.testing.assert_array_equal(kernel.cross(b, a), np.transpose(expected))
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([[0], 1 + rng.permutation(600)]).astype(np.uint16)
    renumbered = [EncodedStrings(numbers[part.tokens], part.lengths) for part in (a, b)]
    np.testing.assert_array_equal(kernel.cross(*renumbered), expected)
    rows, columns = rng.permutation(len(a)), rng.permutation(len(b))
    np.testing.assert_array_equal(
        kernel.cross(a.take(rows), b.take(columns)), np.array(expected)[np.ix_(rows, columns)]
    )
    positions = rng.permutation(length)
    moved = [EncodedStrings(part.tokens[:, positions], part.lengths) for part in (a, b)]
    np.testing.assert_array_equal(kernel.cross(*moved), expected)
    with torch.no_grad():
        values = kernel(a.to_tensor(length + extra), b.to_tensor(length + extra)).to_dense()
    np.testing.assert_array_equal(values, expected)


@settings(deadline=None, max_examples=40)
@given(lists=words())
def test_gram_is_symmetric_and_positive_semidefinite(lists):
    gram = OneHotKernel().cross(Encoder().encode(lists[0]))
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diagonal(gram), np.ones(len(gram)))
    assert np.linalg.eigvalsh(gram).min() > -1e-12


def test_the_prior_has_an_intercept_of_the_stated_variance():
    # The intercept of a function is its mean over all strings; the variance of that is the mean of all covariances.
    every = EncodedStrings.from_tokens(np.indices((3, 3, 3)).reshape(3, -1).T.astype(np.uint8) + 1)
    assert OneHotKernel().cross(every).mean() == pytest.approx(1 / 3, rel=1e-14)


def test_a_batch_is_its_elements_one_by_one():
    rng = np.random.default_rng(1)
    x1 = random_strings(8, 9, 3, rng).to_tensor().reshape(2, 1, 4, 9)
    x2 = random_strings(9, 9, 3, rng).to_tensor().reshape(3, 3, 9)
    kernel = OneHotKernel()
    result = kernel(x1, x2).to_dense()
    assert result.shape == (2, 3, 4, 3)
    for i, j in np.ndindex(2, 3):
        torch.testing.assert_close(result[i, j], kernel(x1[i, 0], x2[j]).to_dense(), rtol=0, atol=0)
    diagonal = kernel(x1[:, :, :3], x2, diag=True)
    torch.testing.assert_close(diagonal, result[..., :3, :].diagonal(dim1=-2, dim2=-1), rtol=0, atol=0)
    assert kernel(torch.zeros(2, 0, 5), torch.ones(2, 3, 5)).to_dense().shape == (2, 0, 3)


def test_a_batch_shape_repeats_the_matrix():
    strings = Encoder().encode(WORDS)
    kernel = OneHotKernel(batch_shape=torch.Size([2]))
    expected = OneHotKernel().cross(strings)
    np.testing.assert_array_equal(kernel.cross(strings), [expected, expected])
    assert kernel.variance(strings).shape == (2, 3)
    assert kernel(strings.to_tensor()).to_dense().tolist() == [expected.tolist()] * 2
    assert kernel(strings.to_tensor(), diag=True).shape == (2, 3)
    assert kernel[1](strings.to_tensor()).to_dense().tolist() == expected.tolist()


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(2)
    a, b = random_strings(30, 12, 3, rng), random_strings(70, 12, 3, rng)
    expected = OneHotKernel().cross(a, b)
    monkeypatch.setattr(one_hot, "BLOCK_ELEMENTS", 100)
    monkeypatch.setattr(one_hot, "WIDEST_BLOCK", 16)
    np.testing.assert_array_equal(OneHotKernel().cross(a, b), expected)


def test_memory_is_that_of_the_result_and_the_tokens():
    rng = np.random.default_rng(3)
    pool = random_strings(100_000, 50, 20, rng)
    train = pool.take(slice(0, 40))
    tracemalloc.start()
    values = OneHotKernel().cross(train, pool)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One-hot codes of the pool take 100 MB even as single bits, rows x columns x positions 200 MB as single bytes.
    assert peak < values.nbytes + 2 * pool.tokens.nbytes + 8 * 2**20


def test_precision_and_other_types():
    strings = random_strings(9, 31, 3, np.random.default_rng(4))
    kernel = OneHotKernel()
    expected = torch.from_numpy(kernel.cross(strings))
    single = kernel.cross(strings, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-6)
    x = strings.to_tensor()
    for dtype in (torch.int64, torch.uint8, torch.float32, torch.bfloat16):
        values = kernel(x.to(dtype)).to_dense()
        assert values.dtype == (dtype if dtype.is_floating_point else torch.float64)
        tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-6
        torch.testing.assert_close(values.double(), expected, rtol=tolerance, atol=tolerance)
    with pytest.raises(InputError, match="int64; covariances are float64 or float32"):
        kernel.cross(strings, dtype=np.int64)


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
def test_every_column_as_a_batch_of_symbols():
    x = Encoder().encode(["ab", "aa", "bb"]).to_tensor()
    gram = OneHotKernel()(x, last_dim_is_batch=True).to_dense()
    expected = [[[1, 1, 0], [1, 1, 0], [0, 0, 1]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]]]
    torch.testing.assert_close(gram, torch.tensor(expected, dtype=torch.float64))


def test_active_dims_composition_and_copies():
    x = Encoder().encode(WORDS).to_tensor()
    other = torch.linspace(0, 1, 3, dtype=torch.float64)[:, None]
    both = torch.cat([other, x], dim=-1)
    strings = OneHotKernel(active_dims=tuple(range(1, 8)))
    smooth = gpytorch.kernels.RBFKernel(active_dims=(0,)).double()
    k, r = strings(both).to_dense(), smooth(both).to_dense()
    torch.testing.assert_close(k, OneHotKernel()(x).to_dense())
    torch.testing.assert_close((strings * smooth)(both).to_dense(), k * r)
    for clone in (copy.deepcopy(strings), pickle.loads(pickle.dumps(strings))):
        torch.testing.assert_close(clone(both).to_dense(), k)


def test_a_model_learns_which_symbols_where():
    rng = np.random.default_rng(5)
    strings = random_strings(60, 8, 3, rng)
    effects = rng.standard_normal((8, 4))
    y = effects[np.arange(8), strings.tokens].sum(1)
    y = torch.from_numpy((y - y.mean()) / y.std())[:, None]
    x = strings.to_tensor()
    model = SingleTaskGP(x[:40], y[:40], covar_module=ScaleKernel(OneHotKernel()), outcome_transform=None)
    with one_thread():
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    assert float((model.posterior(x[40:]).mean - y[40:]).detach().abs().max()) < 0.3


class TestLengths:
    def test_strings_of_several_lengths(self):
        kernel = OneHotKernel()
        encode = Encoder().encode
        message = (
            r"compares strings of one length, position by position, but these have 2, 3 symbols: use a space of fixed"
        )
        with pytest.raises(InputError, match=message):
            kernel.cross(encode(["abc", "ab"]))
        with pytest.raises(InputError, match=message):
            kernel.cross(encode(["abc"]), encode(["ab"]))
        x = encode(["abc", "ab"]).to_tensor()
        for rows, columns in ((x, x), (x[:1], x[1:])):
            with pytest.raises(InputError, match=message):
                kernel(rows, columns).to_dense()
            with pytest.raises(InputError, match=message):
                kernel(rows, columns, diag=True)

    def test_many_lengths_are_abridged(self):
        with pytest.raises(InputError, match=r"these have 1, 2, 3, 4, 5, \.\.\. symbols"):
            OneHotKernel().cross(Encoder().encode(["a" * length for length in range(1, 20)]))

    def test_empty_strings(self):
        for evaluate in (lambda s: OneHotKernel().cross(s), lambda s: OneHotKernel()(s.to_tensor(3)).to_dense()):
            with pytest.raises(InputError, match="position by position, but these are empty"):
                evaluate(Encoder().encode(["", ""]))

    def test_no_strings(self):
        none, some = Encoder().encode([]), Encoder().encode(["ab"])
        assert OneHotKernel().cross(none).shape == (0, 0)
        assert OneHotKernel().cross(none, some).shape == (0, 1)
        assert OneHotKernel().cross(some, none).shape == (1, 0)

    def test_inputs_that_are_no_tokens(self):
        with pytest.raises(InputError, match="padding"):
            OneHotKernel()(torch.tensor([[1.0, 0.0, 2.0]])).to_dense()
        with pytest.raises(InputError, match="integers"):
            OneHotKernel()(torch.tensor([[1.0, 1.5, 2.0]]), diag=True)


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestSuiteOfGpytorch(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return OneHotKernel(**kwargs)

    def test_kernel_dtype_device(self):
        # Of the suite's test only this part is about kernels without parameters.
        kernel = self.create_kernel_no_ard(batch_shape=torch.Size([]))
        assert (kernel.device, kernel.dtype) == (None, torch.get_default_dtype())

    def rows(self, *shape):
        return torch.randint(1, 6, shape, generator=torch.Generator().manual_seed(0)).double()

    def create_data_no_batch(self):
        return self.rows(50, 10)

    def create_data_single_batch(self):
        return self.rows(2, 50, 2)

    def create_data_double_batch(self):
        return self.rows(3, 2, 50, 2)
