"""Kernels that compare position by position: formulas spelt out, another library, invariances, gradients."""

from __future__ import annotations

import copy
import json
import tracemalloc

import numpy as np
import pytest
import torch
from botorch.models.kernels.categorical import CategoricalKernel
from gpytorch.priors import LogNormalPrior
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from seqopt.encoding import Alphabet, EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import HammingKernel, OneHotKernel, SubstitutionKernel, one_hot, substitution
from seqopt.kernels.substitution import BLOSUM62_LENGTHSCALE, substitution_matrix, symbol_distances
from seqopt.utils.config import from_config
from seqopt.utils.resources import data_path

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
KERNELS = {
    "hamming": lambda **options: HammingKernel(**options),
    "product": lambda **options: SubstitutionKernel(**options),
    "sum": lambda **options: SubstitutionKernel(form="sum", **options),
}

every_kernel = pytest.mark.parametrize("name", KERNELS)


@st.composite
def proteins(draw):
    """Two lists of proteins of one length, with letters that are no amino acids."""
    length = draw(st.integers(1, 7))
    letters = st.text(alphabet="ILVDEW*X", min_size=length, max_size=length)
    return draw(st.lists(letters, min_size=1, max_size=6)), draw(st.lists(letters, min_size=1, max_size=6))


def spelt_out(name, lengthscale, first, second):
    """The kernels as their formulas say, symbol by symbol."""
    table = dict(zip(AMINO_ACIDS, range(20), strict=True))
    scores = np.array(json.loads(data_path("blosum62.json").read_text())["scores"], dtype=float)
    raw = np.diag(scores)[:, None] + np.diag(scores)[None, :] - 2 * scores
    raw = raw / raw[~np.eye(20, dtype=bool)].mean()

    def distance(x, y):
        if name == "hamming" or x == y or not {x, y} & set(table):
            return float(x != y)
        if x not in table or y not in table:
            # From the middle of all amino acids, and half a unit at right angles to them.
            listed = raw[table[x if x in table else y]]
            return 0.5 + listed.mean() - raw.sum() / (2 * 20**2)
        return raw[table[x], table[y]]

    found = np.empty((len(first), len(second)))
    for i, s in enumerate(first):
        for j, t in enumerate(second):
            terms = [distance(x, y) / lengthscale for x, y in zip(s, t, strict=True)]
            found[i, j] = np.mean(np.exp(-np.array(terms))) if name == "sum" else np.exp(-sum(terms))
    return found


@every_kernel
@settings(deadline=None, max_examples=25)
@given(lists=proteins(), lengthscale=st.floats(0.1, 30.0), extra=st.integers(0, 3), seed=st.integers(0, 99))
def test_covariances_are_those_of_the_formula_whatever_the_padding_and_the_order(name, lists, lengthscale, extra, seed):
    kernel = KERNELS[name](lengthscale=lengthscale).double()
    kernel.lengthscale = lengthscale
    encoder = SubstitutionKernel().encoder()
    a, b = (encoder.encode(part) for part in lists)
    expected = spelt_out(name, lengthscale, *lists)
    length = len(lists[0][0])
    np.testing.assert_allclose(kernel.cross(a, b), expected, rtol=1e-9)
    np.testing.assert_allclose(kernel.cross(a.padded(length + extra), b), expected, rtol=1e-9)
    rng = np.random.default_rng(seed)
    rows, columns, positions = rng.permutation(len(a)), rng.permutation(len(b)), rng.permutation(length)
    moved = [EncodedStrings(part.tokens[:, positions], part.lengths) for part in (a.take(rows), b.take(columns))]
    np.testing.assert_allclose(kernel.cross(*moved), expected[np.ix_(rows, columns)], rtol=1e-9)
    with torch.no_grad():
        x1, x2 = a.to_tensor(length + extra), b.to_tensor(length + extra)
        np.testing.assert_allclose(kernel(x1, x2).to_dense(), expected, rtol=1e-9)
        few = min(len(a), len(b))
        pairs = kernel(x1[:few], x2[:few], diag=True)
        np.testing.assert_allclose(pairs, np.diagonal(expected), rtol=1e-9)


@every_kernel
@settings(deadline=None, max_examples=25)
@given(lists=proteins(), lengthscale=st.floats(0.05, 100.0))
def test_gram_is_symmetric_with_a_unit_diagonal_and_positive_semidefinite(name, lists, lengthscale):
    kernel = KERNELS[name](lengthscale=lengthscale)
    strings = SubstitutionKernel().encoder().encode(list(dict.fromkeys(lists[0] + lists[1])))
    gram = kernel.cross(strings)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(gram), 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


def random_strings(count, length, symbols, seed):
    tokens = np.random.default_rng(seed).integers(1, symbols + 1, (count, length))
    return EncodedStrings.from_tokens(tokens.astype(np.uint8))


@every_kernel
def test_positions_that_are_the_same_in_all_strings_change_no_product_and_cost_nothing(name, monkeypatch):
    strings = random_strings(12, 5, 20, 0)
    background = np.broadcast_to(np.arange(1, 21, dtype=np.uint8), (12, 20))
    longer = EncodedStrings.from_tokens(np.hstack([strings.tokens[:, :3], background, strings.tokens[:, 3:]]))
    kernel = KERNELS[name](lengthscale=2.0)
    compared = []
    counted = {"hamming": (one_hot, "agreements"), "product": (substitution, "_sums"), "sum": (substitution, "_sums")}
    module, function = counted[name]
    original = getattr(module, function)

    def watched(rows, *others):
        compared.append(rows.shape[-1])
        return original(rows, *others)

    monkeypatch.setattr(f"seqopt.kernels.{'hamming' if name == 'hamming' else 'substitution'}.{function}", watched)
    short, long = kernel.cross(strings), kernel.cross(longer)
    assert compared == [5, 5]
    np.testing.assert_allclose(long, (20 + 5 * short) / 25 if name == "sum" else short, rtol=1e-12)


def test_hamming_is_the_categorical_kernel_of_botorch_and_becomes_one_hot():
    strings = random_strings(15, 9, 4, 1)
    x = strings.to_tensor()
    theirs = CategoricalKernel().double()
    theirs.lengthscale = 0.4
    np.testing.assert_allclose(
        HammingKernel(lengthscale=0.4 * 9).cross(strings), theirs(x).to_dense().detach(), rtol=1e-6
    )
    # To first order in 1 / lengthscale it is the linear kernel about a constant.
    far = HammingKernel(lengthscale=1e4).cross(strings)
    np.testing.assert_allclose(1 + 1e4 * (far - 1) / 9, OneHotKernel().cross(strings), atol=1e-3)


def test_a_sum_at_a_short_lengthscale_is_one_hot():
    strings = random_strings(15, 9, 20, 2)
    np.testing.assert_allclose(
        SubstitutionKernel(form="sum", lengthscale=0.02).cross(strings), OneHotKernel().cross(strings), atol=2e-3
    )


@every_kernel
def test_gradients_are_finite_differences(name):
    x = random_strings(8, 6, 20, 3).to_tensor()
    kernel = KERNELS[name](lengthscale=1.7).double()
    weights = torch.randn(8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def total(value):
        kernel.raw_lengthscale.data.fill_(value)
        return (kernel(x).to_dense() * weights).sum()

    total(1.7).backward()
    with torch.no_grad():
        expected = float(total(1.7 + 1e-5) - total(1.7 - 1e-5)) / 2e-5
    assert float(kernel.raw_lengthscale.grad) == pytest.approx(expected, rel=1e-6)


@every_kernel
def test_a_batch_of_lengthscales_is_its_elements(name):
    strings = random_strings(6, 5, 20, 4)
    scales = torch.tensor([0.5, 3.0]).reshape(2, 1, 1)
    kernel = KERNELS[name](lengthscale=scales, batch_shape=torch.Size([2]))
    expected = [KERNELS[name](lengthscale=float(scale)).cross(strings) for scale in scales]
    np.testing.assert_allclose(kernel.cross(strings), expected, rtol=1e-6)
    x = strings.to_tensor()
    with torch.no_grad():
        np.testing.assert_allclose(kernel(x).to_dense(), expected, rtol=1e-6)
        np.testing.assert_allclose(kernel(torch.stack([x, x.flip(0)])).to_dense()[0], expected[0], rtol=1e-6)
        assert kernel(x, diag=True).shape == (2, 6)


@every_kernel
def test_blocks_and_precision_make_no_difference(name, monkeypatch):
    a, b = random_strings(30, 12, 20, 5), random_strings(70, 12, 20, 6)
    kernel = KERNELS[name]()
    expected = kernel.cross(a, b)
    single = kernel.cross(a, b, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    monkeypatch.setattr(one_hot, "BLOCK_ELEMENTS", 100)
    monkeypatch.setattr(one_hot, "WIDEST_BLOCK", 16)
    monkeypatch.setattr(substitution, "BLOCK_ELEMENTS", 2000)
    np.testing.assert_allclose(kernel.cross(a, b), expected, rtol=1e-12)
    with pytest.raises(InputError, match="int64; covariances are float64 or float32"):
        kernel.cross(a, dtype=np.int64)


@every_kernel
def test_memory_is_that_of_the_result_the_tokens_and_a_workspace(name):
    pool = random_strings(40_000, 50, 20, 7)
    tracemalloc.start()
    values = KERNELS[name]().cross(pool.take(slice(0, 10)), pool)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One-hot codes of the pool would take 336 MB.
    assert peak < values.nbytes + 2 * pool.tokens.nbytes + 120 * 2**20


@every_kernel
def test_default_prior_takes_the_scale_of_the_strings(name):
    strings = random_strings(20, 40, 20, 8)
    kernel = KERNELS[name]()
    before = kernel.lengthscale.item()
    kernel.adapt(strings.to_tensor())
    if name == "sum":
        assert kernel.lengthscale.item() == before == pytest.approx(BLOSUM62_LENGTHSCALE)
        return
    unit = KERNELS[name](lengthscale=1.0).cross(strings)
    typical = 3 * np.median(-np.log(unit[np.triu_indices(20, 1)]))
    assert kernel.lengthscale.item() == pytest.approx(typical, rel=0.02)
    assert float(kernel.lengthscale_prior.loc) == pytest.approx(np.log(kernel.lengthscale.item()), rel=1e-5)
    chosen = KERNELS[name](lengthscale=2.0, lengthscale_prior=LogNormalPrior(0.0, 1.0))
    chosen.adapt(strings.to_tensor())
    assert (chosen.lengthscale.item(), float(chosen.lengthscale_prior.loc)) == (2.0, 0.0)


@every_kernel
def test_kernels_are_written_down_and_copied(name):
    strings = random_strings(5, 6, 20, 9)
    kernel = KERNELS[name](lengthscale=1.25)
    for again in (from_config(json.loads(json.dumps(kernel.config()))), copy.deepcopy(kernel)):
        assert repr(again) == repr(kernel)
        np.testing.assert_array_equal(again.cross(strings), kernel.cross(strings))


def test_blosum62_is_the_published_matrix():
    scores, symbols = substitution_matrix("BLOSUM62 ")
    # Amino-acid frequencies of Robinson and Robinson (1991), with which NCBI's BLAST states lambda 0.3176.
    frequencies = dict(
        zip(
            "ARNDCQEGHILKMFPSTWYV",
            [
                *(0.07805, 0.05129, 0.04487, 0.05364, 0.01925, 0.04264, 0.06295, 0.07377, 0.02199, 0.05142),
                *(0.09019, 0.05744, 0.02243, 0.03856, 0.05203, 0.07120, 0.05841, 0.01330, 0.03216, 0.06441),
            ],
            strict=True,
        )
    )
    p = np.array([frequencies[symbol] for symbol in symbols])
    scale = brentq(lambda number: (np.outer(p, p) * np.exp(number * scores)).sum() - 1, 0.1, 0.6)
    assert scale == pytest.approx(0.3176, abs=5e-5)
    # The kernel at its natural scale is the odds ratio, 1 on the diagonal.
    similar = np.exp(-symbol_distances(scores) / BLOSUM62_LENGTHSCALE)
    odds = np.exp(scale * scores)
    np.testing.assert_allclose(similar, odds / np.sqrt(np.outer(np.diag(odds), np.diag(odds))), rtol=6e-3)


def test_other_matrices_are_made_positive_semidefinite():
    rng = np.random.default_rng(10)
    scores = rng.normal(size=(6, 6))
    scores = scores + scores.T + np.eye(6)
    centring = np.eye(6) - 1 / 6
    assert np.linalg.eigvalsh(centring @ scores @ centring).min() < -0.1  # not fit for a kernel as it stands
    kernel = SubstitutionKernel(scores, "ABCDEF", lengthscale=0.3)
    every = kernel.encoder().encode([a + b for a in "ABCDEF" for b in "ABCDEF"])
    assert np.linalg.eigvalsh(kernel.cross(every)).min() > -1e-10
    # The embedding of scores that are inner products is that of their vectors.
    vectors = rng.normal(size=(5, 3))
    distances = ((vectors[:, None] - vectors[None]) ** 2).sum(-1)
    np.testing.assert_allclose(symbol_distances(vectors @ vectors.T), distances / (distances.sum() / 20), atol=1e-7)
    again = from_config(json.loads(json.dumps(kernel.config())))
    np.testing.assert_allclose(again.cross(every), kernel.cross(every), rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": "pam250"}, "unknown substitution matrix 'pam250': choose 'blosum62'"),
        ({"symbols": "ABC"}, "leave symbols out"),
        ({"matrix": np.eye(3)}, "give the symbols"),
        ({"matrix": np.eye(3), "symbols": "AAB"}, "two or more different characters"),
        ({"matrix": np.eye(3), "symbols": "AB"}, r"shape \(3, 3\); expected 2 x 2"),
        ({"matrix": [[1, 2], [0, 1]], "symbols": "AB"}, "not symmetric: A, B has 2, and B, A has 0"),
        ({"matrix": [[1, np.nan], [np.nan, 1]], "symbols": "AB"}, "score of A and B is nan"),
        ({"matrix": np.ones((2, 2)), "symbols": "AB"}, "takes all symbols for the same"),
        ({"form": "mean"}, "expected 'product' or 'sum'"),
        ({"lengthscale": -1.0}, "must lie in"),
        ({"lengthscale": "long"}, "expected a number"),
        ({"lengthscale": torch.ones(3, 1, 1)}, "expected one that expands"),
        ({"lengthscale_bounds": (0.0, 1.0)}, "0 < lowest < highest"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        SubstitutionKernel(**arguments)


@every_kernel
def test_strings_of_several_lengths_and_none(name):
    kernel, encode = KERNELS[name](), Encoder().encode
    word = "Hamming" if name == "hamming" else "substitution"
    with pytest.raises(
        InputError, match=f"the {word} kernel compares strings of one length, .* these have 2, 3 symbols"
    ):
        kernel.cross(encode(["abc", "ab"]))
    with pytest.raises(InputError, match=f"the {word} kernel compares .* but these are empty"):
        kernel(encode(["", ""]).to_tensor(3)).to_dense()
    with pytest.raises(InputError, match="padding"):
        kernel(torch.tensor([[1.0, 0.0, 2.0]])).to_dense()
    assert kernel.cross(encode([]), encode(["ab"])).shape == (0, 1)
    assert kernel.cross(encode(["ab"]), encode([])).shape == (1, 0)


@pytest.mark.parametrize("lengthscale", [1.0, 3.0, 10.0])
def test_symbols_that_a_matrix_does_not_list_keep_it_positive_semidefinite(lengthscale):
    symbols = "ARNDCQEGHILKMFPSTWYV" + "BZX*JOU-"
    kernel = SubstitutionKernel("blosum62", lengthscale=lengthscale)
    gram = kernel.cross(kernel.encoder().encode(list(symbols)))
    assert np.linalg.eigvalsh(gram).min() > -1e-12
    on_a_line = [[0.0, -1.0, -4.0], [-1.0, 0.0, -1.0], [-4.0, -1.0, 0.0]]
    collinear = SubstitutionKernel(on_a_line, "ABC", lengthscale=lengthscale)
    gram = collinear.cross(Encoder("characters", Alphabet("ABCDEFGH")).encode(list("ABCDEFGH")))
    assert np.linalg.eigvalsh(gram).min() > -1e-12
