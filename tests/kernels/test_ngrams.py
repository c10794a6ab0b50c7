"""The bag-of-n-grams kernel: counts by brute force and by scikit-learn, invariances, gradients, memory, fitting."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import tracemalloc
import unittest
from collections import Counter

import gpytorch
import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.utils import get_parameters_and_bounds, sample_all_priors
from gpytorch.kernels import ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel

from seqopt.encoding import Alphabet, EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel, compiled_ngrams, ngrams
from seqopt.kernels.ngrams import ngram_counts
from seqopt.kernels.threads import one_thread
from seqopt.models import StringGP
from seqopt.spaces import StringSpace

text = st.text(alphabet="abc", max_size=10)

PATHS = ("dense", "numbered", "no table", "one by one", "table", "rows", "threads", "program", "sorted")


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    """One after the other, the ways in which inner products are computed."""
    force(monkeypatch, request.param)
    return request.param


def force(monkeypatch, path):
    monkeypatch.setattr(ngrams, "DENSE_FEATURES", 10**6 if path == "dense" else 0)
    monkeypatch.setattr(ngrams, "DENSE_RATIO", 10**6)
    monkeypatch.setattr(ngrams, "FEW_SYMBOLS", 10**9 if path == "program" else -1)
    monkeypatch.setattr(ngrams, "SORTED_FROM", 1 if path == "sorted" else 10**9)
    if path == "no table":
        monkeypatch.setattr(compiled_ngrams, "TABLE_ELEMENTS", 0)
    if path == "one by one":
        monkeypatch.setattr(compiled_ngrams, "TABULATED", 10**9)
        monkeypatch.setattr(compiled_ngrams, "DENSE_SHARE", 2.0)
    if path == "table":
        monkeypatch.setattr(compiled_ngrams, "TABULATED", 0)
    if path == "rows":
        monkeypatch.setattr(compiled_ngrams, "DENSE_SHARE", 0.0)
    if path == "threads":
        monkeypatch.setattr(compiled_ngrams, "THREADED", 0)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


def tokens(strings, width=None):
    return Encoder().encode(strings).to_tensor(width)


def random_strings(count, rng, shortest=0, longest=14, alphabet="abcd"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(shortest, longest + 1))) for _ in range(count)]


def brute_force(string, longest):
    """Counts of all contiguous n-grams."""
    return Counter(
        tuple(string[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(string) - length + 1)
    )


def covariance(a, b, longest, lengthscale):
    of_a, of_b = brute_force(a, longest), brute_force(b, longest)
    squared = sum((of_a[ngram] - of_b[ngram]) ** 2 for ngram in {*of_a, *of_b})
    return np.exp(-squared / (2 * lengthscale**2))


class TestCounts:
    @pytest.mark.parametrize("longest", [1, 2, 5, 7])
    def test_are_those_of_brute_force(self, longest):
        strings = ["", "a", "aaaa", *random_strings(12, np.random.default_rng(0))]
        encoder = Encoder()
        counts, found = ngram_counts(encoder.encode(strings), longest)
        symbols = {number: symbol for symbol, number in encoder.alphabet.numbers.items()}
        spelt = [tuple(symbols[number] for number in ngram) for ngram in found]
        expected = [brute_force(string, longest) for string in strings]
        assert set(spelt) == set().union(*expected)
        assert len(spelt) == len(set(spelt))
        np.testing.assert_array_equal(counts.toarray(), [[count[ngram] for ngram in spelt] for count in expected])

    def test_are_those_of_scikit_learn(self):
        strings = random_strings(30, np.random.default_rng(1), 1, 40, "ACGTacgt()=#")
        vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, 5), lowercase=False)
        expected = vectorizer.fit_transform(strings).toarray()
        encoder = Encoder()
        counts, found = ngram_counts(encoder.encode(strings))
        symbols = {number: symbol for symbol, number in encoder.alphabet.numbers.items()}
        columns = [vectorizer.vocabulary_["".join(symbols[number] for number in ngram)] for ngram in found]
        np.testing.assert_array_equal(counts.toarray(), expected[:, columns])
        assert counts.shape == expected.shape

    @pytest.mark.parametrize("longest", [1, 2, 5, 7, 8])  # eight symbols of nine bits are more than 64
    @pytest.mark.parametrize("alphabet", ["a", "ab", "".join(map(chr, range(60, 500)))])
    def test_squared_lengths_of_long_strings_are_those_of_brute_force(self, alphabet, longest, monkeypatch):
        monkeypatch.setattr(ngrams, "SORTED_ELEMENTS", 300)
        rng = np.random.default_rng(2)
        strings = ["", alphabet[0], alphabet[0] * 260, *random_strings(6, rng, 0, 260, alphabet)]
        for length in (ngrams.SORTED_FROM - 1, ngrams.SORTED_FROM):
            strings += random_strings(1, rng, length, length, alphabet)
        expected = [sum(count**2 for count in brute_force(string, longest).values()) for string in strings]
        kernel = NgramKernel(longest=longest)
        assert kernel.self_similarity(Encoder().encode(strings)).tolist() == expected

    def test_unsorted_ngrams_count(self):
        # A list of sorted n-grams only ("00", "01", "11") could not tell these two apart.
        kernel = NgramKernel(longest=2, lengthscale=1.0)
        a, b = Encoder().encode(["1010", "0101"]).take([0]), Encoder().encode(["1010", "0101"]).take([1])
        assert brute_force("1010", 2)[("1", "0")] == 2
        assert kernel.cross(a, b).item() == pytest.approx(np.exp(-1.0), rel=1e-15)

    def test_all_binary_ngrams_are_features(self):
        # A string that holds every n-gram of five bits, hence of fewer, and then one of each.
        every = "00000100011001010011101011011111" + "0000"
        assert len(brute_force(every, 5)) == 62
        counts, found = ngram_counts(Encoder().encode([every]))
        assert counts.shape == (1, 62) == (1, len(set(found)))
        assert counts.toarray()[0, -32:].tolist() == [1.0] * 32

    def test_no_strings_and_empty_ones(self):
        assert ngram_counts(Encoder().encode([]))[0].shape == (0, 0)
        assert ngram_counts(Encoder().encode(["", ""]))[0].shape == (2, 0)


@pytest.mark.parametrize("longest", [1, 3, 5])
def test_covariances_are_those_of_enumeration(path, longest):
    strings = ["", "x", *random_strings(6, np.random.default_rng(0), 0, 9, "ab"), "yyxy"]
    kernel = NgramKernel(longest, 3.0)
    expected = np.array([[covariance(a, b, longest, 3.0) for b in strings] for a in strings])
    encoded = Encoder().encode(strings)
    few, more = encoded.take(slice(0, 3)), encoded.take(slice(3, None))
    for values, wanted in (
        (kernel.cross(encoded), expected),
        (kernel.cross(encoded, encoded), expected),
        (kernel.cross(few, more), expected[:3, 3:]),
        (kernel.cross(more, few), expected[3:, :3]),
        (kernel.cross(few, encoded, kernel.self_similarity(few), kernel.self_similarity(encoded)), expected[:3]),
    ):
        np.testing.assert_allclose(values, wanted, rtol=1e-14, atol=0)
    x = encoded.to_tensor()
    with torch.no_grad():
        for values, wanted in (
            (kernel(x).to_dense(), expected),
            (kernel(x[2:], x).to_dense(), expected[2:]),
            (kernel(x, x[2:]).to_dense(), expected[:, 2:]),
            (kernel(x, diag=True), np.diagonal(expected)),
            (kernel(x, x.flip(0), diag=True), np.diagonal(expected[:, ::-1])),
        ):
            np.testing.assert_allclose(values, wanted, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("alphabet", "shortest", "longest", "how"),
    [
        ("01", 20, 20, "dense"),
        ("01234", 20, 20, "sparse"),
        ("ACGT", 500, 600, "dense"),
        ("abcdefghijklmno", 0, 40, "sparse"),
    ],
)
def test_covariances_are_those_of_scikit_learn(alphabet, shortest, longest, how):
    strings = random_strings(40, np.random.default_rng(2), shortest, longest, alphabet)
    vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, 5), lowercase=False)
    counts = vectorizer.fit_transform(strings).toarray().astype(float)
    encoded = Encoder().encode(strings)
    assert (ngrams._dense_letters(5, encoded) is not None) == (how == "dense")
    kernel = NgramKernel(lengthscale=12.5)
    expected = rbf_kernel(counts, gamma=0.5 / 12.5**2)
    np.testing.assert_allclose(kernel.cross(encoded), expected, rtol=1e-10)
    np.testing.assert_allclose(kernel.self_similarity(encoded), np.square(counts).sum(axis=1))
    np.testing.assert_array_equal(kernel.variance(encoded), np.ones(40))


def test_squared_distances_are_exact_beyond_single_precision(path):
    # |phi|^2 of a^L is the sum of (L - i + 1)^2; those of the longer strings are not float32 numbers.
    lengths = np.array([6001, 6000, 2])
    squared = np.add.reduce([(lengths - i).clip(min=0) ** 2 for i in range(3)])
    assert np.float32(squared[0]) != squared[0]
    encoded = Encoder().encode(["a" * length for length in lengths])
    kernel = NgramKernel(3, 100.0)
    np.testing.assert_array_equal(kernel.self_similarity(encoded), squared)
    counts = np.array([[max(length - i, 0) for i in range(3)] for length in lengths])
    distances = np.square(counts[:, None] - counts[None]).sum(-1)
    (found,) = [values for _, values in ngrams._squared_distances(encoded, encoded, 3)]
    np.testing.assert_array_equal(found, distances)
    assert distances[0, 1] == 3


def test_it_works_where_nothing_compiled_can_be_kept():
    script = """
import numba
original = numba.njit
def refuse(*arguments, cache=False, **options):
    if cache:
        raise RuntimeError("cannot cache function: no locator available")
    return original(*arguments, **options)
numba.njit = refuse
from seqopt.encoding import Encoder
from seqopt.kernels import HelixKernel, NgramKernel, bind_symbols
encoder = Encoder()
strings = encoder.encode([word * 40 for word in ("ACGTT", "GCGCATT", "TTTACG")])
print(NgramKernel(5, 100.0).cross(strings)[0, 1].round(6))
kernel = HelixKernel(10.0)
bind_symbols(kernel, encoder)
print(kernel.cross(strings.take([0, 0]))[0, 1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=True)
    expected = covariance("ACGTT" * 40, "GCGCATT" * 40, 5, 100.0)
    assert [float(line) for line in done.stdout.split()] == pytest.approx([expected, 1.0], abs=1e-6)


@pytest.mark.parametrize("way", ["no table", "one by one", "table"])
def test_symbols_that_many_others_follow(way, monkeypatch):
    force(monkeypatch, way)
    rng = np.random.default_rng(5)
    strings = random_strings(8, rng, 60, 80, "abcdefghijklmnopqrst")
    found = NgramKernel(3, 9.0).cross(Encoder().encode(strings))
    np.testing.assert_allclose(found, [[covariance(a, b, 3, 9.0) for b in strings] for a in strings], rtol=1e-12)


def test_blocks_of_tries_and_of_products_make_no_difference(monkeypatch):
    force(monkeypatch, "numbered")
    rng = np.random.default_rng(4)
    a, b = (Encoder(alphabet=Alphabet("abcd")).encode(random_strings(count, rng)) for count in (9, 13))
    expected = NgramKernel(3, 5.0).cross(a, b)
    monkeypatch.setattr(ngrams, "PRODUCTS", 7)
    for remembered in (4, 0):
        monkeypatch.setattr(ngrams, "TRIE_NGRAMS", 20)
        monkeypatch.setattr(ngrams, "REMEMBERED_BLOCKS", remembered)
        again = a.take(np.arange(9))
        assert len(list(ngrams._tries(again, 3, np.float64))) > 1
        np.testing.assert_array_equal(NgramKernel(3, 5.0).cross(again, b), expected)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["numbered", "no table", "program"])
def test_alphabets_of_sixty_thousand_symbols(path, monkeypatch):
    force(monkeypatch, path)
    rng = np.random.default_rng(3)
    symbols = rng.permutation(np.arange(1, 65_535)).astype(np.uint16)[:60_000].reshape(30, 2_000)
    symbols[1, 100:105] = symbols[0, 7:12]  # one run of five in common
    strings = EncodedStrings.from_tokens(symbols)
    own = sum(2_000 - i for i in range(5))
    np.testing.assert_array_equal(NgramKernel(5).self_similarity(strings), [own] * 30)
    products = own * np.eye(30)
    products[0, 1] = products[1, 0] = 5 + 4 + 3 + 2 + 1
    distances = np.empty((30, 30))
    for block, values in ngrams._squared_distances(strings, strings, 5):
        distances[block] = values
    np.testing.assert_array_equal(distances, 2.0 * (own - products))


@pytest.mark.parametrize("path", ["numbered", "no table", "program"])
def test_large_symbol_numbers_do_not_collide(path, monkeypatch):
    force(monkeypatch, path)
    # Written as digits to the base of the largest number, five of these symbols need eighty bits.
    high = np.array([[65_534, 65_533, 65_534, 65_533, 65_532], [65_534, 65_533, 65_534, 65_533, 65_531]])
    low = np.array([[3, 2, 3, 2, 1], [3, 2, 3, 2, 4]])
    kernel = NgramKernel(5, 3.0)
    values = [kernel.cross(EncodedStrings.from_tokens(rows.astype(np.uint16))) for rows in (high, low)]
    np.testing.assert_array_equal(*values)
    assert values[0][0, 1] == pytest.approx(np.exp(-10 / 18), rel=1e-15)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(strings=st.lists(text, min_size=1, max_size=8), lengthscale=st.floats(0.5, 50.0), longest=st.integers(1, 6))
def test_gram_is_symmetric_positive_semidefinite_and_bounded(strings, lengthscale, longest):
    encoded = Encoder().encode(strings)
    gram = NgramKernel(longest, lengthscale).cross(encoded)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diagonal(gram), np.ones(len(strings)))
    assert np.all((gram >= 0) & (gram <= 1))
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@settings(deadline=None, max_examples=30)
@given(
    strings=st.lists(text, min_size=1, max_size=6),
    others=st.lists(text, min_size=1, max_size=6),
    extra=st.integers(0, 7),
    seed=st.integers(0, 99),
)
def test_padding_numbering_and_order_make_no_difference(strings, others, extra, seed):
    kernel = NgramKernel(3, 4.0)
    encoder = Encoder()
    a, b = encoder.encode(strings), encoder.encode(others)
    expected = kernel.cross(a, b)
    np.testing.assert_array_equal(kernel.cross(a.padded(a.width + extra), b), expected)
    np.testing.assert_array_equal(kernel.cross(a, b.padded(b.width + extra)), expected)
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([[0], 1 + rng.permutation(600)]).astype(np.uint16)
    renumbered = [EncodedStrings(numbers[part.tokens], part.lengths) for part in (a, b)]
    np.testing.assert_array_equal(kernel.cross(*renumbered), expected)
    rows, columns = rng.permutation(len(a)), rng.permutation(len(b))
    np.testing.assert_array_equal(kernel.cross(a.take(rows), b.take(columns)), expected[np.ix_(rows, columns)])
    np.testing.assert_array_equal(kernel.cross(b, a), expected.T)
    width = max(a.width, b.width) + extra
    with torch.no_grad():
        dense = kernel(a.to_tensor(width), b.to_tensor(width)).to_dense()
        np.testing.assert_allclose(dense, expected, rtol=1e-14)
        np.testing.assert_array_equal(kernel(a.to_tensor(), diag=True), np.ones(len(a)))


@pytest.mark.slow
def test_reversing_both_strings_makes_no_difference(path):
    strings = random_strings(10, np.random.default_rng(4))
    kernel = NgramKernel(4, 5.0)
    forwards = kernel.cross(Encoder().encode(strings))
    backwards = kernel.cross(Encoder().encode([string[::-1] for string in strings]))
    np.testing.assert_array_equal(forwards, backwards)


@pytest.mark.parametrize("remembered", [0, 100])
def test_blocks_make_no_difference(path, remembered, monkeypatch):
    encoded = Encoder().encode(random_strings(50, np.random.default_rng(5)))
    kernel = NgramKernel(4, 5.0)
    few = encoded.take(slice(0, 20))
    expected = kernel.cross(few, encoded), kernel.cross(encoded)
    lengths = kernel.self_similarity(encoded)
    monkeypatch.setattr(ngrams, "BLOCK_ELEMENTS", 1000)
    monkeypatch.setattr(ngrams, "REMEMBERED_BLOCKS", remembered)
    fresh = Encoder().encode(random_strings(50, np.random.default_rng(5)))
    np.testing.assert_array_equal(kernel.cross(fresh.take(slice(0, 20)), fresh), expected[0])
    np.testing.assert_array_equal(kernel.cross(fresh), expected[1])
    np.testing.assert_array_equal(kernel.cross(fresh, fresh.take(slice(0, 2))), expected[1][:, :2])
    np.testing.assert_array_equal(kernel.self_similarity(fresh), lengths)


def test_memory_of_a_pool_is_that_of_the_result_and_a_workspace():
    rng = np.random.default_rng(6)
    pool = EncodedStrings.from_tokens(rng.integers(1, 30, (40_000, 40)).astype(np.uint8))
    kernel = NgramKernel()
    train = pool.take(slice(0, 50))
    own = kernel.self_similarity(train), kernel.self_similarity(pool)
    kernel.cross(train, train)
    tracemalloc.start()
    values = kernel.cross(train, pool, *own)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All n-grams of the pool as counts, 1.5 GB even if they were single bytes, or 1 GB for the train's own alone.
    assert peak < values.nbytes + 200 * 2**20


def test_single_precision_and_other_types():
    encoded = Encoder().encode(random_strings(9, np.random.default_rng(7)))
    kernel = NgramKernel()
    expected = kernel.cross(encoded)
    single = kernel.cross(encoded, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-6)
    x = encoded.to_tensor()
    for dtype in (torch.int64, torch.uint8):
        values = kernel(x.to(dtype)).to_dense()
        assert values.dtype == torch.float64
        torch.testing.assert_close(values, torch.from_numpy(expected), rtol=1e-14, atol=0)
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 1e-2)):
        values = kernel(x.to(dtype)).to_dense()
        assert values.dtype == dtype
        torch.testing.assert_close(values.double(), torch.from_numpy(expected), rtol=tolerance, atol=tolerance)
    with pytest.raises(InputError, match="int64; covariances are float64 or float32"):
        kernel.cross(encoded, dtype=np.int64)


def test_gradients_are_those_of_finite_differences():
    x = tokens(["", *random_strings(5, np.random.default_rng(8))])
    stacked = torch.stack([x[:3], x[2:5]])
    kernel = NgramKernel(3)

    def values(lengthscale, rows, columns, **options):
        kernel._parameters["raw_lengthscale"] = lengthscale
        return kernel.forward(rows, columns, **options)

    at = torch.tensor([[4.0]], dtype=torch.float64, requires_grad=True)
    for rows, columns, options in (
        (x, x, {}),
        (x[:3], x[2:], {}),
        (stacked, stacked.flip(0), {}),
        (x, x.flip(0), {"diag": True}),
    ):
        assert torch.autograd.gradcheck(
            lambda scale, r=rows, c=columns, o=options: values(scale, r, c, **o), (at,), eps=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("batch_shape", [(), (3,), (2, 1)])
def test_a_batch_is_its_elements_one_by_one(batch_shape):
    rng = np.random.default_rng(9)
    x1 = tokens(random_strings(8, rng, 9, 9)).reshape(2, 1, 4, -1)
    x2 = tokens(random_strings(9, rng, 9, 9)).reshape(3, 3, -1)
    scales = torch.from_numpy(rng.uniform(2.0, 9.0, batch_shape))[..., None, None] if batch_shape else 4.0
    kernel = NgramKernel(3, scales, batch_shape=torch.Size(batch_shape))
    result = kernel(x1, x2).to_dense()
    assert result.shape == (2, 3, 4, 3)
    every = kernel.lengthscale.expand(2, 3, 1, 1)
    for i, j in np.ndindex(2, 3):
        alone = NgramKernel(3, every[i, j].item())
        torch.testing.assert_close(result[i, j], alone(x1[i, 0], x2[j]).to_dense(), rtol=1e-14, atol=0)
    diagonal = kernel(x1[:, :, :3], x2, diag=True)
    torch.testing.assert_close(diagonal, result[..., :3, :].diagonal(dim1=-2, dim2=-1))


def test_lengthscales_of_a_batch_share_distances_in_cross():
    encoded = Encoder().encode(random_strings(6, np.random.default_rng(10)))
    scales = torch.tensor([2.0, 5.0, 9.0])
    kernel = NgramKernel(3, scales[:, None, None], batch_shape=torch.Size([3]))
    expected = np.stack([NgramKernel(3, scale.item()).cross(encoded) for scale in scales])
    np.testing.assert_array_equal(kernel.cross(encoded), expected)
    assert kernel.variance(encoded).shape == (3, 6)
    assert kernel.self_similarity(encoded).shape == (6,)
    assert kernel[1].lengthscale.item() == 5.0


def test_nothing_is_computed_anew_for_another_lengthscale(monkeypatch):
    x = tokens(random_strings(20, np.random.default_rng(11), 5))
    kernel = NgramKernel(lengthscale=4.0)
    calls = []
    original = ngrams._squared_distances
    monkeypatch.setattr(ngrams, "_squared_distances", lambda *a: (calls.append(1), original(*a))[1])
    kernel(x).to_dense()
    kernel.lengthscale = 9.0
    # Models pass copies of their inputs.
    again = kernel(x.clone(), x.clone()).to_dense()
    assert len(calls) == 1
    torch.testing.assert_close(again, NgramKernel(lengthscale=9.0)(x).to_dense())
    changed = x.clone()
    changed[0, 0] = 3 - changed[0, 0].clamp(max=2)
    torch.testing.assert_close(kernel(changed).to_dense(), NgramKernel(lengthscale=9.0)(changed).to_dense())
    assert len(calls) == 4
    kernel(x).to_dense()
    x[0, 0] = x[0, 0].item() % 4 + 1  # in place
    torch.testing.assert_close(kernel(x).to_dense(), NgramKernel(lengthscale=9.0)(x).to_dense())
    monkeypatch.setattr(ngrams, "KEPT_BYTES", 0)
    fresh = NgramKernel()
    fresh(x).to_dense()
    assert fresh._kept is None


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
def test_every_column_as_a_batch_of_symbols():
    x = tokens(["ab", "aa", "b"])
    kernel = NgramKernel(3, torch.tensor([[[1.0]], [[2.0]]]), batch_shape=torch.Size([2]))
    gram = kernel(x, last_dim_is_batch=True).to_dense()
    assert gram.shape == (2, 2, 3, 3)
    # In the first column a, a, b; in the second b, a, and nothing. One symbol for another is a distance of 2.
    apart = [[[0, 0, 2], [0, 0, 2], [2, 2, 0]], [[0, 2, 1], [2, 0, 1], [1, 1, 0]]]
    expected = torch.stack([torch.exp(-torch.tensor(apart, dtype=torch.float64) / width) for width in (2.0, 8.0)])
    torch.testing.assert_close(gram, expected)


def test_active_dims_and_composition():
    x = tokens(["genetics", "genomic", "genomes"])
    other = torch.linspace(0, 1, 3, dtype=torch.float64)[:, None]
    both = torch.cat([x, other], dim=-1)
    width = x.shape[-1]
    strings = NgramKernel(3, active_dims=tuple(range(width)))
    smooth = gpytorch.kernels.RBFKernel(active_dims=(width,)).double()
    k, r = strings(both).to_dense(), smooth(both).to_dense()
    torch.testing.assert_close(k, NgramKernel(3)(x).to_dense())
    torch.testing.assert_close((strings + smooth)(both).to_dense(), k + r)
    torch.testing.assert_close(ScaleKernel(strings)(both, diag=True), ScaleKernel(strings)(both).diagonal())


def test_copies_pickles_and_state_dicts():
    x = tokens(["genetics", "genomic", "genomes"])
    kernel = NgramKernel(3, 7.25)
    expected = kernel(x).to_dense()
    for clone in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert clone._kept is None
        torch.testing.assert_close(clone(x).to_dense(), expected)
        clone.lengthscale = 2.0
    torch.testing.assert_close(kernel(x).to_dense(), expected)
    fresh = NgramKernel(3)
    fresh.load_state_dict(kernel.state_dict())
    assert fresh.lengthscale.item() == 7.25
    torch.testing.assert_close(fresh(x).to_dense(), expected)


class TestFitting:
    def make(self, **options):
        strings = random_strings(40, np.random.default_rng(12), 20, 20, "01")
        y = torch.tensor([[float(string.count("101"))] for string in strings], dtype=torch.float64)
        kernel = ScaleKernel(NgramKernel(**options))
        return SingleTaskGP(tokens(strings), (y - y.mean()) / y.std(), covar_module=kernel, outcome_transform=None)

    def test_the_lengthscale_moves_within_bounds_that_reach_the_optimiser(self):
        model = self.make(lengthscale_bounds=(1.5, 40.0))
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        kernel = model.covar_module.base_kernel
        _, bounds = get_parameters_and_bounds(mll)
        assert tuple(map(float, bounds["model.covar_module.base_kernel.raw_lengthscale"])) == (1.5, 40.0)
        before = mll(model(*model.train_inputs), model.train_targets).item()
        with one_thread():
            fit_gpytorch_mll(mll)
        mll.train()
        assert mll(model(*model.train_inputs), model.train_targets).item() > before
        # The objective is nearly linear in the counts.
        assert 16.0 < kernel.lengthscale.item() <= 40.0

    def test_a_fit_is_where_the_gradient_vanishes(self):
        model = self.make()
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        with one_thread():
            fit_gpytorch_mll(mll)
        mll.train()
        kernel = model.covar_module.base_kernel
        found = kernel.lengthscale.item()

        def value(lengthscale):
            kernel.lengthscale = lengthscale
            with torch.no_grad():
                return mll(model(*model.train_inputs), model.train_targets).item()

        assert value(found) >= max(value(0.9 * found), value(1.1 * found))

    def test_the_prior_enters_the_likelihood_and_can_be_sampled(self):
        model = self.make(lengthscale_bounds=(5.0, 50.0))
        kernel = model.covar_module.base_kernel
        assert any(name.endswith("lengthscale_prior") for name, *_ in model.named_priors())
        assert float(kernel.lengthscale_prior.icdf(torch.tensor(0.5))) == pytest.approx(15.0)
        drawn = set()
        for seed in range(20):
            torch.manual_seed(seed)
            sample_all_priors(model)
            drawn.add(kernel.lengthscale.item())
        assert len(drawn) > 10
        assert all(5.0 <= scale <= 50.0 for scale in drawn)
        other = NgramKernel(lengthscale_prior=gpytorch.priors.GammaPrior(2.0, 0.1))
        assert isinstance(other.lengthscale_prior, gpytorch.priors.GammaPrior)

    def test_the_default_prior_follows_the_distances_of_the_strings(self):
        strings = StringSpace("ACGT", 200).sample(40, np.random.default_rng(0))
        encoded = Encoder().encode(strings)
        _, found = zip(*ngrams._squared_distances(encoded, encoded, 5), strict=True)
        typical = np.median(np.sqrt(np.concatenate(found)[np.triu_indices(40, 1)]))
        kernel = NgramKernel()
        kernel.adapt(encoded.to_tensor())
        assert kernel.lengthscale.item() == pytest.approx(1.5 * typical, rel=0.02)
        assert float(kernel.lengthscale_prior.icdf(torch.tensor(0.5))) == pytest.approx(1.5 * typical, rel=0.02)
        chosen = NgramKernel(lengthscale=3.0, lengthscale_prior=gpytorch.priors.LogNormalPrior(0.0, 1.0))
        chosen.adapt(encoded.to_tensor())
        assert chosen.lengthscale.item() == 3.0
        assert float(chosen.lengthscale_prior.icdf(torch.tensor(0.5))) == pytest.approx(1.0)
        # One string far from the others takes the mean of the distances with it, and the median less so.
        uneven = NgramKernel(longest=1)
        uneven.adapt(Encoder().encode(["AAAA", "AAAB", "AABB", "C" * 40]).to_tensor())
        # Squared distances are 2, 2 and 8, and 1616, 1610 and 1608; the lower of the two in the middle is taken.
        assert uneven.lengthscale.item() == pytest.approx(1.5 * 8**0.5)
        assert float(uneven.lengthscale_prior.icdf(torch.tensor(0.5))) == pytest.approx(1.5 * 8**0.5)
        equal = NgramKernel()
        equal.adapt(Encoder().encode(["AB", "AB"]).to_tensor())
        assert equal.lengthscale.item() == 15.0

    def test_a_fit_to_noise_does_not_take_strings_for_strangers(self):
        space = StringSpace("01", 20)
        rng = np.random.default_rng(3)
        strings = space.sample(12, rng)
        gp = StringGP(NgramKernel())
        gp.fit(strings, rng.standard_normal(12), rng=rng)
        # Of random strings of 20 bits the median distance is about 10.
        assert 5.0 < gp.hyperparameters["lengthscale"] < 40.0
        prior = gp.model.covar_module.base_kernel.lengthscale_prior
        assert 10.0 < float(prior.icdf(torch.tensor(0.5))) < 25.0
        assert gp.kernel.lengthscale.item() == 15.0

    def test_another_optimiser_may_leave_the_box(self):
        kernel = NgramKernel(lengthscale_bounds=(1.0, 90.0))
        with torch.no_grad():
            kernel.raw_lengthscale.fill_(-3.0)
        assert kernel.lengthscale.item() == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"longest": 0}, "longest is 0; it must be an integer of at least 1"),
        ({"longest": True}, "longest is True"),
        ({"longest": 2.0}, "longest is 2.0"),
        ({"lengthscale": 0.0}, r"lengthscale is 0.0; it must lie in \[0.1, 10000\]"),
        ({"lengthscale": float("nan")}, "lengthscale is nan"),
        ({"lengthscale": "long"}, "lengthscale is 'long'; expected a number"),
        ({"lengthscale": [1.0, 2.0]}, r"lengthscale has shape \(2,\); expected one that expands to \(1, 1\)"),
        ({"lengthscale_bounds": (0.0, 1.0)}, r"lengthscale_bounds are \(0.0, 1.0\)"),
        ({"lengthscale_bounds": (5.0, 1.0)}, "lengthscale_bounds"),
    ],
)
def test_bad_settings_are_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        NgramKernel(**arguments)


def test_bad_assignments_and_inputs_are_explained():
    kernel = NgramKernel()
    with pytest.raises(InputError, match=r"lengthscale is -1\.0"):
        kernel.lengthscale = -1.0
    assert kernel.lengthscale.item() == 15.0
    for options in ({}, {"diag": True}):
        with pytest.raises(InputError, match="integers"):
            kernel.forward(*[torch.tensor([[0.5, 1.0]], dtype=torch.float64)] * 2, **options)
        with pytest.raises(InputError, match="padding"):
            kernel.forward(*[torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)] * 2, **options)


def test_no_strings(path):
    kernel = NgramKernel()
    none, some = Encoder().encode([]), Encoder().encode(["ab", ""])
    assert kernel.cross(none).shape == (0, 0)
    assert kernel.cross(none, some).shape == (0, 2)
    assert kernel.cross(some, none).shape == (2, 0)
    assert kernel.self_similarity(none).shape == kernel.variance(none).shape == (0,)
    assert kernel(torch.zeros(2, 0, 5), torch.ones(2, 3, 5)).to_dense().shape == (2, 0, 3)
    empty = Encoder().encode(["", ""])
    np.testing.assert_array_equal(kernel.cross(empty), np.ones((2, 2)))
    np.testing.assert_array_equal(kernel.cross(empty, some), [[kernel.cross(empty, some)[0, 0], 1.0]] * 2)


def token_rows(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, 6, shape, generator=generator).double()


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestSuiteOfGpytorch(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return NgramKernel(3, **kwargs)

    def create_data_no_batch(self):
        return token_rows(50, 10)

    def create_data_single_batch(self):
        return token_rows(2, 50, 2)

    def create_data_double_batch(self):
        return token_rows(3, 2, 50, 2)
