"""The sub-sequence kernel: published values, enumeration, gradients, and use inside gpytorch and botorch."""

from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import gpytorch
import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel, covariances, subsequence
from seqopt.kernels.engines import order_sums

WORDS = ["genetics", "genomic", "genomes"]
ENGINES = ["reference", "cpu", "features"]

text = st.text(alphabet="abc", max_size=10)
decays = st.floats(0.01, 1.0)


def tokens(strings, width=None):
    return Encoder().encode(strings).to_tensor(width)


def random_strings(count, rng, shortest=4, longest=14, alphabet="abcd"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(shortest, longest + 1))) for _ in range(count)]


@pytest.mark.parametrize("engine", ENGINES)
class TestPublishedValues:
    def test_thesis_example(self, engine):
        raw = SubsequenceKernel(5, 0.8, 0.5, normalize=False, engine=engine).gram(WORDS).numpy()
        assert raw[0, 0] == pytest.approx(16.040100870, abs=1e-9)
        assert raw[0, 1] == pytest.approx(5.721640166, abs=1e-9)
        assert raw[0, 2] == pytest.approx(6.165169523, abs=1e-9)
        assert raw[1, 2] == pytest.approx(7.535275622, abs=1e-9)
        normalised = SubsequenceKernel(5, 0.8, 0.5, engine=engine).gram(WORDS).numpy()
        assert normalised[0, 1] == pytest.approx(0.423125604, abs=1e-9)
        assert normalised[1, 2] == pytest.approx(0.624186955, abs=1e-9)
        other = SubsequenceKernel(3, 0.5, 0.9, engine=engine).gram(WORDS).numpy()
        assert other[0, 2] == pytest.approx(0.569084516, abs=1e-9)

    def test_derivatives_of_the_thesis_example(self, engine):
        kernel = SubsequenceKernel(5, 0.8, 0.5, engine=engine).double()
        x = tokens(WORDS)
        for value in (kernel(x[:1], x[2:]).to_dense(), kernel(x).to_dense()[0, 2]):
            gradients = torch.autograd.grad(value, [kernel.raw_match_decay, kernel.raw_gap_decay])
            assert gradients[0].item() == pytest.approx(-0.814014988, abs=1e-9)
            assert gradients[1].item() == pytest.approx(-0.262545504, abs=1e-9)

    @pytest.mark.parametrize(("decay", "expected"), [(2.0, 504.0), (0.8, 5.9437056)])
    def test_decay_by_span(self, engine, decay, expected, brute_force):
        # Decaying by span with one lambda is a match decay and a gap decay of lambda. A lambda of 2 is
        # outside the box, but the kernel is a polynomial in lambda, which enumeration evaluates anywhere.
        assert brute_force.kernel("cata", "gatta", 5, decay, decay) == pytest.approx(expected, rel=1e-12)
        if decay <= 1.0:
            kernel = SubsequenceKernel(5, decay, decay, normalize=False, engine=engine)
            assert kernel.gram(["cata"], ["gatta"]).item() == pytest.approx(expected, rel=1e-12)

    def test_contribution_of_a_gappy_subsequence(self, engine, brute_force):
        match, gap = 0.7, 0.6
        assert brute_force.contribution("genetics", "genic", match, gap) == pytest.approx(match**5 * gap**2)
        # The only sub-sequences of order 5 that "genic" shares with "genetics" are its own.
        encoder = Encoder()
        sums, _ = order_sums(encoder.encode(["genetics"]), encoder.encode(["genic"]), gap, 5, engine=engine)
        assert match**5 * sums[4].item() == pytest.approx(match**5 * gap**2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", [True, False])
def test_gram_is_that_of_enumeration(engine, normalize, brute_force):
    rng = np.random.default_rng(0)
    strings = ["", "x", *random_strings(4, rng, 0, 9, "ab"), "yyxy"]
    expected = np.array([[brute_force.kernel(a, b, 3, 0.7, 0.4) for b in strings] for a in strings])
    if normalize:
        roots = np.sqrt(np.diagonal(expected))
        roots[0] = 1.0
        expected = expected / np.outer(roots, roots)
    kernel = SubsequenceKernel(3, 0.7, 0.4, normalize, engine=engine)
    np.testing.assert_allclose(kernel.gram(strings), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel.gram(strings[:3], strings), expected[:3], rtol=1e-12, atol=1e-15)
    x = tokens(strings)
    with torch.no_grad():
        np.testing.assert_allclose(kernel(x).to_dense(), expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(kernel(x[2:], x).to_dense(), expected[2:], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(kernel(x, diag=True), np.diagonal(expected), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(
            kernel(x, x.flip(0), diag=True), np.diagonal(expected[:, ::-1]), rtol=1e-12, atol=1e-15
        )


@settings(deadline=None, max_examples=25)
@given(strings=st.lists(text, min_size=1, max_size=8), match=decays, gap=decays)
def test_gram_is_symmetric_positive_semidefinite_and_bounded(strings, match, gap):
    gram = SubsequenceKernel(3, match, gap).gram(strings).numpy()
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(np.diagonal(gram), [float(len(string) > 0) for string in strings])
    assert np.all(gram >= 0)
    assert np.all(gram <= 1 + 1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@settings(deadline=None, max_examples=25)
@given(strings=st.lists(text, min_size=1, max_size=6), extra=st.integers(0, 7), seed=st.integers(0, 99))
def test_padding_and_numbering_make_no_difference(strings, extra, seed):
    kernel = SubsequenceKernel(3)
    x = tokens(strings)
    expected = kernel(x).to_dense()
    padded = torch.nn.functional.pad(x, (0, extra))
    renumbered = np.concatenate([[0], 1 + np.random.default_rng(seed).permutation(600)])
    torch.testing.assert_close(kernel(padded).to_dense(), expected, rtol=0, atol=1e-15)
    torch.testing.assert_close(kernel(padded, padded.flip(0)).to_dense(), expected.flip(1), rtol=1e-12, atol=1e-15)
    other = torch.from_numpy(renumbered[x.long().numpy()].astype(np.float64))
    torch.testing.assert_close(kernel(other).to_dense(), expected, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=25)
@given(a=text, b=text)
def test_reversing_both_strings_makes_no_difference(a, b):
    kernel = SubsequenceKernel(3, normalize=False)
    forwards, backwards = kernel.gram([a], [b]).item(), kernel.gram([a[::-1]], [b[::-1]]).item()
    assert forwards == pytest.approx(backwards, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("cache_bytes", "partitions"), [(0, 1), (2**20, 1), (2**20, 2)])
def test_gradients_are_those_of_finite_differences(engine, normalize, cache_bytes, partitions):
    rng = np.random.default_rng(1)
    x = tokens(["" if partitions == 1 else "ab", *random_strings(4, rng)])
    kernel = SubsequenceKernel(
        3, normalize=normalize, engine=engine, cache_bytes=cache_bytes, partitions=partitions, order_weights=[1, 1, 1]
    )

    def gram(match, gap, weights, rows, columns, **options):
        kernel._parameters["raw_match_decay"], kernel._parameters["raw_gap_decay"] = match, gap
        kernel._parameters["raw_order_weights"] = weights
        return kernel.forward(rows, columns, **options)

    at = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.6, 0.7, (1.0, 0.5, 2.0))]
    stacked = torch.stack([x[:3], x[2:]])
    for rows, columns, options in (
        (x, x, {}),
        (stacked, stacked.flip(0), {}),
        (stacked, x[:2].expand(2, 2, -1), {}),
        (x[:3], x[2:], {}),
        (x, x, {"diag": True}),
        (x, x.flip(0), {"diag": True}),
    ):
        assert torch.autograd.gradcheck(
            lambda m, g, w, r=rows, c=columns, o=options: gram(m, g, w, r, c, **o), at, eps=1e-6, atol=1e-6
        )


def test_decay_of_exactly_one_is_allowed_and_has_a_finite_gradient():
    kernel = SubsequenceKernel(3, match_decay=1.0, gap_decay=1.0)
    value = kernel(tokens(["abcab"]), tokens(["abacb"])).to_dense().sum()
    gradients = torch.autograd.grad(value, list(kernel.parameters()))
    assert kernel.match_decay.item() == kernel.gap_decay.item() == 1.0
    assert all(torch.isfinite(gradient) and gradient != 0 for gradient in gradients)


def test_only_wanted_gradients_are_computed():
    kernel = SubsequenceKernel(3)
    kernel.raw_gap_decay.requires_grad_(False)
    kernel(tokens(WORDS)).to_dense().sum().backward()
    assert kernel.raw_match_decay.grad is not None
    assert kernel.raw_gap_decay.grad is None
    with torch.no_grad():
        assert not kernel(tokens(WORDS)).to_dense().requires_grad


def test_decays_are_exact_whatever_the_precision_of_the_parameters():
    kernel = SubsequenceKernel(5, match_decay=0.8, gap_decay=0.1, gap_decay_bounds=(0.1, 0.9))
    assert kernel.dtype == torch.get_default_dtype()
    for other in (kernel, copy.deepcopy(kernel).double(), pickle.loads(pickle.dumps(kernel))):
        assert (other.match_decay.item(), other.gap_decay.item()) == (0.8, 0.1)
        other.gap_decay = 0.7
        assert other.gap_decay.item() == 0.7
        with torch.no_grad():
            other.raw_gap_decay.fill_(0.75)
        assert other.gap_decay.item() == 0.75
    lowest = SubsequenceKernel(3, gap_decay=1e-4)
    assert lowest.gap_decay.item() == 1e-4
    lowest.gap_decay = 1e-4
    assert lowest.double().gap_decay.item() == 1e-4
    batch = SubsequenceKernel(3, gap_decay=torch.tensor([0.3, 0.6]), batch_shape=torch.Size([2]))
    assert batch[1].gap_decay.item() == pytest.approx(0.6, rel=1e-7)


class TestDynamicProgramsAreNotRepeated:
    @pytest.fixture
    def runs(self, monkeypatch):
        count = []
        original = covariances.order_sums
        monkeypatch.setattr(covariances, "order_sums", lambda *a, **k: (count.append(1), original(*a, **k))[1])
        return count

    def test_by_other_parameters_but_by_the_gap_decay(self, runs):
        kernel, x = SubsequenceKernel(3), tokens(WORDS)
        scaled = ScaleKernel(kernel)
        scaled(x).to_dense().sum().backward()
        kernel.match_decay = 0.3
        scaled.outputscale = 2.0
        fresh = ScaleKernel(SubsequenceKernel(3, 0.3))
        fresh.outputscale = 2.0
        torch.testing.assert_close(scaled(x).to_dense(), fresh(x).to_dense())
        assert len(runs) == 1 + 1
        kernel.gap_decay = 0.9
        scaled(x).to_dense()
        assert len(runs) == 3

    def test_unless_a_derivative_is_missing(self, runs):
        kernel, x = SubsequenceKernel(3), tokens(WORDS)
        with torch.no_grad():
            kernel(x).to_dense()
        kernel(x).to_dense()
        kernel(x).to_dense()
        assert len(runs) == 2

    def test_nor_by_order_weights(self, runs):
        kernel, x = SubsequenceKernel(3, order_weights=[1.0, 1.0, 1.0]), tokens(WORDS)
        kernel(x).to_dense().sum().backward()
        kernel.order_weights = [0.5, 2.0, 1.0]
        kernel(x).to_dense().sum().backward()
        assert len(runs) == 1

    def test_by_a_prediction_after_a_loss(self, runs):
        kernel, x = SubsequenceKernel(3), tokens(WORDS)
        kernel(x).to_dense().sum().backward()
        with torch.no_grad():
            kernel(x).to_dense()
        assert len(runs) == 1

    def test_by_copies_that_ask_for_the_same_strings(self, runs):
        kernel, encoded = SubsequenceKernel(3).double(), Encoder().encode(WORDS)
        found = kernel.sums(encoded, [0.5, 0.8], 0.3)
        assert found.shape == (2, len(WORDS), len(WORDS))
        other = copy.deepcopy(kernel)
        np.testing.assert_array_equal(other.sums(Encoder().encode(WORDS), [0.8], 0.3), found[1:])
        other.gap_decay, other.match_decay = 0.3, 0.5
        with torch.no_grad():
            gram = other(encoded.to_tensor()).to_dense()
        assert len(runs) == 1
        own = np.sqrt(np.diagonal(found[0]))
        np.testing.assert_allclose(gram, found[0] / own[:, None] / own, rtol=1e-12)
        for strings, gap in ((WORDS, 0.4), ([*WORDS, "gen"], 0.3)):
            other.sums(Encoder().encode(strings), [0.8], gap)
        assert len(runs) == 3
        pickle.loads(pickle.dumps(kernel)).sums(encoded, [0.8], 0.3)
        assert len(runs) == 4
        kernel.forget()
        other.sums(encoded, [0.8], 0.3)
        assert len(runs) == 5

    @pytest.mark.parametrize("strings", [WORDS, WORDS * 40])  # one block, and several
    def test_and_are_what_they_are_without_memory(self, strings):
        encoded = Encoder().encode(strings)
        weights = np.array([0.5, 0.8])[:, None] ** (2 * np.arange(1, 4))
        expected, _ = order_sums(encoded, None, 0.3, 3, weights=weights)
        for budget in (2**30, 0):
            kernel = SubsequenceKernel(3, cache_bytes=budget)
            for _ in range(2):
                np.testing.assert_allclose(kernel.sums(encoded, [0.5, 0.8], 0.3), expected, rtol=1e-13)
            assert (len(kernel._recent) == 0) is (budget == 0)

    def test_within_the_memory_budget(self, runs):
        # Sums and derivatives of 9 pairs, and of 3 strings with themselves.
        kernel, x = SubsequenceKernel(3, cache_bytes=2 * 3 * (9 + 3) * 8), tokens(WORDS)
        for _ in range(2):
            kernel(x).to_dense()
        assert len(runs) == 1
        larger = tokens([*WORDS, "gen"])
        for _ in range(2):
            kernel(larger).to_dense()
        assert len(runs) == 3
        assert kernel._cache._bytes <= kernel._cache.budget

    def test_but_matrices_of_predictions_are_not_kept(self, runs):
        kernel, x = SubsequenceKernel(3), tokens([*WORDS, "gen"])
        with torch.no_grad():
            for _ in range(2):
                kernel(x[:2], x[2:]).to_dense()
        assert len(runs) == 2


@pytest.mark.slow
@pytest.mark.parametrize("cache_bytes", [0, 2**30])
@pytest.mark.parametrize("normalize", [True, False])
def test_blocks_of_large_gram_matrices_fit_together(normalize, cache_bytes, monkeypatch):
    rng = np.random.default_rng(8)
    x = tokens(["", *random_strings(140, rng)])
    upstream = torch.from_numpy(rng.standard_normal((141, 141)))
    results = []
    for whole, rows, block_bytes in ((1024, 256, 2**26), (0, 50, 4000)):
        monkeypatch.setattr(covariances, "WHOLE_GRAM", whole)
        monkeypatch.setattr(covariances, "GRAM_ROWS", rows)
        monkeypatch.setattr(covariances, "BLOCK_BYTES", block_bytes)
        kernel = SubsequenceKernel(
            3, normalize=normalize, order_weights=[1.0, 0.5, 2.0], cache_bytes=cache_bytes if whole else 0
        )
        gram = kernel(x).to_dense()
        cross = kernel(x[:90], x[40:]).to_dense()
        ((gram * upstream).sum() + (cross * upstream[:90, 40:]).sum()).backward()
        assert torch.equal(gram, gram.T)
        results.append((gram.detach(), cross.detach(), *(parameter.grad for parameter in kernel.parameters())))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("normalize", [True, False])
def test_order_weights_are_those_of_the_definition(normalize, brute_force):
    rng = np.random.default_rng(9)
    strings, weights = random_strings(4, rng, 0, 8, "ab"), np.array([0.3, 2.0, 1.5])
    expected = np.array(
        [
            [weights * 0.7 ** (2 * np.arange(1, 4)) @ brute_force.order_sums(a, b, 3, 0.4)[0] for a in strings]
            for b in strings
        ]
    )
    if normalize:
        expected /= np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    kernel = SubsequenceKernel(3, 0.7, 0.4, normalize, order_weights=weights)
    np.testing.assert_allclose(kernel.gram(strings), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(tokens(strings)).to_dense().detach(), expected, rtol=1e-12)
    plain = SubsequenceKernel(3, 0.7, 0.4, normalize)
    ones = SubsequenceKernel(3, 0.7, 0.4, normalize, order_weights=[1.0, 1.0, 1.0])
    torch.testing.assert_close(ones.gram(strings), plain.gram(strings))
    assert plain.order_weights is None
    assert "raw_order_weights" not in dict(plain.named_parameters())
    with pytest.raises(InputError, match="without order weights"):
        plain.order_weights = [1.0, 1.0, 1.0]


def parts_of(string, partitions):
    edges = [part * len(string) // partitions for part in range(partitions + 1)]
    return [string[start:stop] for start, stop in pairwise(edges)]


@pytest.mark.parametrize("partitions", [2, 3])
@pytest.mark.parametrize("normalize", [True, False])
def test_partitioned_kernel_adds_that_of_part_with_part(partitions, normalize, brute_force):
    rng = np.random.default_rng(10)
    strings = random_strings(5, rng, 3, 11, "ab")
    expected = np.array(
        [
            [
                sum(
                    brute_force.kernel(part, other, 3, 0.7, 0.4)
                    for part, other in zip(parts_of(a, partitions), parts_of(b, partitions), strict=True)
                )
                for a in strings
            ]
            for b in strings
        ]
    )
    if normalize:
        expected /= np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    kernel = SubsequenceKernel(3, 0.7, 0.4, normalize, partitions=partitions)
    np.testing.assert_allclose(kernel.gram(strings), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.gram(strings[:2], strings), expected[:2], rtol=1e-12)
    x = tokens(strings)
    np.testing.assert_allclose(kernel(x).to_dense().detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(x, x.flip(0), diag=True).detach(), np.diagonal(expected[:, ::-1]), rtol=1e-12)


def test_one_partition_is_the_exact_kernel():
    strings = random_strings(6, np.random.default_rng(11))
    torch.testing.assert_close(
        SubsequenceKernel(3, partitions=1).gram(strings), SubsequenceKernel(3).gram(strings), rtol=0, atol=0
    )


def test_partitions_need_strings_that_are_long_enough():
    kernel = SubsequenceKernel(3, partitions=4)
    with pytest.raises(InputError, match="partitions is 4, but string 1 has 3 symbols: at most 3 partitions"):
        kernel.gram(["abcde", "abc"])
    with pytest.raises(InputError, match="string 1 has 3 symbols"):
        kernel(tokens(["abcde", "abc"])).to_dense()


@pytest.mark.parametrize("normalize", [True, False])
def test_cross_and_self_similarity_agree_with_forward(normalize):
    rng = np.random.default_rng(2)
    encoder = Encoder()
    a, b = encoder.encode(["", *random_strings(20, rng)]), encoder.encode(random_strings(7, rng))
    kernel = SubsequenceKernel(5, 0.9, 0.6, normalize)
    width = max(a.width, b.width)
    expected = kernel(a.to_tensor(width), b.to_tensor(width)).to_dense().detach().numpy()
    own_a, own_b = kernel.self_similarity(a), kernel.self_similarity(b)
    np.testing.assert_allclose(kernel.cross(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.cross(a, b, own_a, own_b), expected, rtol=1e-12)
    single = kernel.cross(a, b, own_a, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    symmetric = kernel.cross(a)
    np.testing.assert_allclose(symmetric, kernel.cross(a, a), rtol=1e-12, atol=1e-15)
    raw = SubsequenceKernel(5, 0.9, 0.6, normalize=False)
    np.testing.assert_allclose(own_a, np.diagonal(raw.cross(a)), rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_batches_of_inputs_and_of_decays(shape):
    rng = np.random.default_rng(3)
    count = int(np.prod(shape))
    x = tokens(random_strings(4 * count, rng, 14)).reshape(*shape, 4, -1)
    matches = torch.from_numpy(rng.uniform(0.2, 1.0, shape))
    gaps = torch.from_numpy(rng.uniform(0.2, 1.0, shape))
    batch = SubsequenceKernel(3, matches, gaps, batch_shape=torch.Size(shape))
    one = SubsequenceKernel(3, 0.5, 0.5)
    for inputs, kernel in ((x, one), (x, batch), (x[(0,) * len(shape)], batch)):
        gram, cross = kernel(inputs).to_dense(), kernel(inputs, inputs[..., :2, :]).to_dense()
        assert gram.shape == (*shape, 4, 4)
        assert cross.shape == (*shape, 4, 2)
        for index in np.ndindex(shape):
            element = SubsequenceKernel(
                3,
                kernel.match_decay.expand(shape)[index].item(),
                kernel.gap_decay.expand(shape)[index].item(),
            )
            alone = element(inputs[index] if inputs.dim() > 2 else inputs).to_dense()
            torch.testing.assert_close(gram[index], alone)
            torch.testing.assert_close(cross[index], alone[:, :2])
    torch.testing.assert_close(batch(x, diag=True), torch.ones(*shape, 4, dtype=torch.float64))
    batch(x).to_dense().sum().backward()
    assert batch.raw_gap_decay.grad.shape == shape
    index = (0,) * len(shape)
    assert batch[index].match_decay.item() == pytest.approx(matches[index].item(), rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"partitions": 2}, {"order_weights": [1.0, 0.5, 2.0]}])
def test_covariances_of_encoded_strings_at_a_batch_of_decays(options):
    rng = np.random.default_rng(5)
    a, b = (Encoder("characters", Alphabet("abcd")).encode(random_strings(count, rng, 14)) for count in (5, 7))
    matches = torch.tensor([[0.5, 0.9, 0.5], [0.8, 1.0, 0.3]], dtype=torch.float64)
    gaps = torch.tensor([[0.3, 0.3, 0.7], [1.0, 0.3, 0.7]], dtype=torch.float64)
    batch = SubsequenceKernel(3, matches, gaps, batch_shape=torch.Size([2, 3]), **options)
    own = batch.self_similarity(a)
    cross, given, gram = batch.cross(a, b), batch.cross(a, b, own), batch.cross(a)
    assert own.shape == (2, 3, 5)
    assert cross.shape == (2, 3, 5, 7)
    for index in np.ndindex(2, 3):
        alone = SubsequenceKernel(3, matches[index].item(), gaps[index].item(), **options)
        np.testing.assert_allclose(cross[index], alone.cross(a, b), rtol=1e-12)
        np.testing.assert_allclose(given[index], alone.cross(a, b), rtol=1e-12)
        np.testing.assert_allclose(gram[index], alone.cross(a), rtol=1e-12)
        np.testing.assert_allclose(own[index], alone.self_similarity(a), rtol=1e-12)
    assert batch.cross(a, b, dtype=np.float32).dtype == np.float32


def test_decays_of_a_batch_that_share_a_gap_decay_share_its_dynamic_program(monkeypatch):
    calls = []
    original = subsequence.order_sums
    monkeypatch.setattr(subsequence, "order_sums", lambda *a, **k: (calls.append(1), original(*a, **k))[1])
    gaps = torch.tensor([0.3, 0.7, 0.3, 0.3], dtype=torch.float64)
    SubsequenceKernel(3, 0.5, gaps, batch_shape=torch.Size([4])).gram(["AB", "BA"], ["ABA"])
    assert len(calls) == 2


def test_batches_of_inputs_share_one_call(monkeypatch):
    rng = np.random.default_rng(12)
    x = tokens(random_strings(12, rng, 14, 14)).reshape(2, 2, 3, -1)
    train = tokens(random_strings(5, rng, 14, 14))
    kernel = SubsequenceKernel(3)
    expected = kernel(x.reshape(12, -1), train).to_dense().reshape(2, 2, 3, 5)
    inner = kernel(x.reshape(12, -1), x.reshape(12, -1)).to_dense()
    expected, inner = expected.detach(), inner.detach()
    kernel.requires_grad_(False)  # nothing is kept for a gradient
    calls = []
    for name in ("order_sums", "paired_order_sums"):
        original = getattr(covariances, name)
        monkeypatch.setattr(covariances, name, lambda *a, f=original, **k: (calls.append(1), f(*a, **k))[1])
    torch.testing.assert_close(kernel(x, train.expand(2, 2, 5, -1)).to_dense(), expected)
    torch.testing.assert_close(kernel(x, train.repeat(2, 2, 1, 1)).to_dense(), expected)
    torch.testing.assert_close(kernel(train, x).to_dense(), expected.mT)
    torch.testing.assert_close(kernel(x).to_dense()[1, 0], inner[6:9, 6:9])
    assert len(calls) == 4


def test_large_matrices_of_a_batch_are_those_of_each_alone(monkeypatch):
    rng = np.random.default_rng(14)
    x = tokens(random_strings(24, rng, 14, 14)).reshape(2, 12, -1)
    expected = [SubsequenceKernel(3)(part).to_dense() for part in x]
    monkeypatch.setattr(subsequence, "SMALL_MATRIX", 10)
    kernel = SubsequenceKernel(3)
    gram = kernel(x).to_dense()
    torch.testing.assert_close(gram, torch.stack(expected))
    gram.sum().backward()
    assert kernel.raw_gap_decay.grad is not None


@pytest.mark.parametrize("batch_shape", [(), (3,), (2, 1)])
@pytest.mark.parametrize("order_weights", [None, [1.0, 0.5, 2.0]])
def test_batches_that_broadcast(batch_shape, order_weights):
    rng = np.random.default_rng(15)
    x1 = tokens(random_strings(8, rng, 9, 9)).reshape(2, 1, 4, -1)
    x2 = tokens(random_strings(9, rng, 9, 9)).reshape(3, 3, -1)
    gaps = torch.from_numpy(rng.uniform(0.2, 0.9, batch_shape)) if batch_shape else 0.4
    kernel = SubsequenceKernel(3, 0.7, gaps, order_weights=order_weights, batch_shape=torch.Size(batch_shape)).double()
    result = kernel(x1, x2).to_dense()
    assert result.shape == (2, 3, 4, 3)
    all_gaps = kernel.gap_decay.expand(2, 3)
    for i, j in np.ndindex(2, 3):
        alone = SubsequenceKernel(3, 0.7, all_gaps[i, j].item(), order_weights=order_weights)
        torch.testing.assert_close(result[i, j], alone(x1[i, 0], x2[j]).to_dense(), rtol=1e-9, atol=0)
    if batch_shape and order_weights:
        index = (0,) * len(batch_shape)
        assert kernel[index].order_weights.tolist() == order_weights


def test_inputs_of_other_types():
    x = tokens(["abc", "acb", "b"])
    kernel = SubsequenceKernel(3)
    expected = kernel(x).to_dense()
    for dtype in (torch.int64, torch.uint8):
        assert torch.equal(kernel(x.to(dtype)).to_dense(), expected)
    assert kernel(x.long(), diag=True).dtype == torch.float64
    for dtype, tolerance in ((torch.bfloat16, 1e-2), (torch.float16, 1e-3)):
        result = kernel(x.to(dtype)).to_dense()
        assert result.dtype == dtype
        torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)
    assert kernel(torch.zeros(2, 0, 5), torch.ones(2, 3, 5)).to_dense().shape == (2, 0, 3)
    with pytest.raises(InputError, match="int64; covariances are float64 or float32"):
        kernel.cross(Encoder().encode(["a"]), dtype=np.int64)


def test_the_diagonal_is_checked_as_the_matrix_is():
    with pytest.raises(InputError, match="padding"):
        SubsequenceKernel(3)(torch.tensor([[1.0, 0.0, 2.0]]), diag=True)
    with pytest.raises(InputError, match=r"row 0, column 1 holds 1\.5"):
        SubsequenceKernel(3)(torch.tensor([[1.0, 1.5, 2.0]]), diag=True)
    with pytest.raises(InputError, match="partitions is 3"):
        SubsequenceKernel(3, partitions=3)(tokens(["abc", "ab"]), diag=True)


def test_threads_may_share_a_kernel():
    rng = np.random.default_rng(16)
    inputs = [tokens(random_strings(30, rng)) for _ in range(3)]
    kernel = SubsequenceKernel(3, cache_bytes=100_000)

    def total(x):
        with torch.no_grad():
            return float(kernel(x).to_dense().sum())

    expected = [total(x) for x in inputs]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(total, inputs * 6)) == expected * 6


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
def test_every_column_as_a_batch_of_symbols():
    x = tokens(["ab", "aa", "b"])
    gram = SubsequenceKernel(3)(x, last_dim_is_batch=True).to_dense()
    expected = [[[1, 1, 0], [1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    torch.testing.assert_close(gram, torch.tensor(expected, dtype=torch.float64))


def test_active_dims_dtype_and_composition():
    x = tokens(WORDS)
    other = torch.linspace(0, 1, 3, dtype=torch.float64)[:, None]
    both = torch.cat([x, other], dim=-1)
    width = x.shape[-1]
    strings = SubsequenceKernel(3, active_dims=tuple(range(width)))
    smooth = gpytorch.kernels.RBFKernel(active_dims=(width,)).double()
    k, r = strings(both).to_dense(), smooth(both).to_dense()
    torch.testing.assert_close((strings + smooth)(both).to_dense(), k + r)
    torch.testing.assert_close((strings * smooth)(both).to_dense(), k * r)
    torch.testing.assert_close(ScaleKernel(strings)(both, diag=True), ScaleKernel(strings)(both).diagonal())
    single = SubsequenceKernel(3)(x.float()).to_dense()
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), k, rtol=1e-5, atol=1e-6)


def test_copies_pickles_and_state_dicts():
    x = tokens(WORDS)
    kernel = SubsequenceKernel(
        3,
        0.7,
        0.3,
        match_decay_prior=gpytorch.priors.UniformPrior(0.0, 1.0),
        gap_decay_prior=gpytorch.priors.NormalPrior(0.5, 0.2),
    )
    expected = kernel(x).to_dense()
    for clone in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert len(clone._cache) == 0
        torch.testing.assert_close(clone(x).to_dense(), expected)
        clone.gap_decay = 0.9
    torch.testing.assert_close(kernel(x).to_dense(), expected)
    fresh = SubsequenceKernel(3)
    fresh.load_state_dict(kernel.state_dict(), strict=False)
    torch.testing.assert_close(fresh(x).to_dense(), expected)


class TestExtremes:
    """Strings of one symbol have closed forms: at a gap decay of 1, h_i(a^L, a^M) = C(L, i) C(M, i)."""

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    @pytest.mark.parametrize("order", [5, 12])
    def test_large_sums_do_not_overflow(self, dtype, order):
        lengths = [2000, 1500, 3]
        x = tokens(["a" * length for length in lengths]).to(dtype)
        kernel = SubsequenceKernel(order, match_decay=1.0, gap_decay=1.0)
        counts = np.array([[math.comb(length, i) for i in range(1, order + 1)] for length in lengths], dtype=np.float64)
        raw = counts @ counts.T
        expected = raw / np.sqrt(np.outer(np.diagonal(raw), np.diagonal(raw)))
        gram = kernel(x).to_dense()
        tolerance = 1e-10 if dtype == torch.float64 else 1e-4
        np.testing.assert_allclose(gram.detach(), expected, rtol=tolerance)
        np.testing.assert_allclose(kernel(x[:1], x).to_dense().detach(), expected[:1], rtol=tolerance)
        gram.sum().backward()
        assert all(torch.isfinite(parameter.grad) for parameter in kernel.parameters())
        encoded = Encoder().encode(["a" * length for length in lengths])
        single = kernel.cross(encoded, dtype=np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-4)

    @pytest.mark.slow
    @pytest.mark.parametrize("normalize", [True, False])
    @pytest.mark.filterwarnings("ignore:overflow")
    def test_sums_beyond_double_precision_are_explained(self, normalize):
        kernel = SubsequenceKernel(100, match_decay=1.0, gap_decay=1.0, normalize=normalize, engine="cpu")
        message = r"100 symbols at gap decay 1 in strings of (2000|1999) symbols"
        for evaluate in (
            lambda: kernel.gram(["a" * 2000]),
            lambda: kernel.gram(["a" * 2000], ["a" * 1999]),
            lambda: kernel(tokens(["a" * 2000])).to_dense(),
        ):
            with pytest.raises(InputError, match=message):
                evaluate()

    @pytest.mark.slow
    def test_order_weights_do_not_overflow_single_precision(self):
        x = tokens(["a" * 140, "a" * 130])
        heavy = SubsequenceKernel(12, 1.0, 1.0, order_weights=[1e6] * 12)
        expected = SubsequenceKernel(12, 1.0, 1.0)(x).to_dense()
        torch.testing.assert_close(heavy(x.float()).to_dense().double(), expected, rtol=1e-5, atol=0)

    def test_strings_of_ten_thousand_symbols(self):
        rng = np.random.default_rng(13)
        strings = ["ab" * 5000, "".join(rng.choice(list("ab"), 9000)), "b"]
        kernel = SubsequenceKernel(2, match_decay=1.0, gap_decay=1.0, normalize=False, engine="cpu")
        gram = kernel.gram(strings).numpy()
        counts = np.array(
            [
                [string.count("a"), string.count("b"), *(pairs(string, u) for u in ("aa", "ab", "ba", "bb"))]
                for string in strings
            ],
            dtype=np.float64,
        )
        np.testing.assert_allclose(gram, counts @ counts.T, rtol=1e-12)

    def test_alphabets_of_thirty_thousand_symbols(self):
        symbols = "".join(chr(0x4E00 + i) for i in range(20_000)) + "".join(chr(0xAC00 + i) for i in range(10_000))
        # Far apart, the two halves share one sub-sequence of two symbols, "ab", and those of one symbol.
        strings = [symbols[:15_000], symbols[15_000:], symbols[14_999:15_001]]
        kernel = SubsequenceKernel(2, match_decay=1.0, gap_decay=0.5, normalize=False)
        encoded = Encoder().encode([strings[0][-20:], strings[1][:20], strings[2]])
        full = Encoder()
        full.encode([symbols])
        renumbered = full.encode([strings[0][-20:], strings[1][:20], strings[2]])
        assert renumbered.tokens.max() > 15_000
        np.testing.assert_allclose(kernel.cross(renumbered), kernel.cross(encoded), rtol=1e-12)
        assert kernel.cross(renumbered)[0, 2] == 1.0
        assert kernel.cross(renumbered)[2, 2] == 2.0 + 1.0


def pairs(string, u):
    """Number of pairs of positions i < j that spell ``u``."""
    first = np.cumsum(np.array(list(string)) == u[0])
    return int(sum(first[j - 1] for j in range(1, len(string)) if string[j] == u[1]))


class TestFitting:
    def make(self, **options):
        rng = np.random.default_rng(4)
        strings = random_strings(20, rng, 8, 14)
        y = torch.tensor([[string.count("ab") + string.count("c")] for string in strings], dtype=torch.float64)
        kernel = ScaleKernel(SubsequenceKernel(3, **options))
        return SingleTaskGP(tokens(strings), (y - y.mean()) / y.std(), covar_module=kernel, outcome_transform=None)

    def test_bounds_reach_the_optimiser_and_hold(self):
        model = self.make(gap_decay_bounds=(0.3, 0.6), match_decay_bounds=(0.2, 1.0))
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        _, bounds = get_parameters_and_bounds(mll)
        kernel = model.covar_module.base_kernel
        for name, expected in (("raw_gap_decay", (0.3, 0.6)), ("raw_match_decay", (0.2, 1.0))):
            found = bounds[f"model.covar_module.base_kernel.{name}"]
            assert tuple(map(float, found)) == pytest.approx(expected)
        before = mll(model(*model.train_inputs), model.train_targets).item()
        fit_gpytorch_mll(mll)
        mll.train()
        assert mll(model(*model.train_inputs), model.train_targets).item() > before
        assert 0.3 <= kernel.raw_gap_decay.item() <= 0.6
        assert 0.2 <= kernel.raw_match_decay.item() <= 1.0

    def test_frozen_at_one(self):
        model = self.make(gap_decay=1.0)
        kernel = model.covar_module.base_kernel
        kernel.raw_gap_decay.requires_grad_(False)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        assert kernel.gap_decay.item() == 1.0
        assert kernel.match_decay.item() != 0.8

    def test_priors_enter_the_likelihood_and_can_be_sampled(self):
        prior = gpytorch.priors.UniformPrior(0.4, 0.5)
        model = self.make(gap_decay=0.45, gap_decay_prior=prior)
        names = [name for name, *_ in model.named_priors()]
        assert any(name.endswith("gap_decay_prior") for name in names)
        sampled = model.covar_module.base_kernel.sample_from_prior("gap_decay_prior")
        assert sampled is None
        assert 0.4 <= model.covar_module.base_kernel.gap_decay.item() <= 0.5

    def test_another_optimiser_may_leave_the_box(self):
        kernel = SubsequenceKernel(3, gap_decay_bounds=(0.1, 0.9))
        with torch.no_grad():
            kernel.raw_gap_decay.fill_(1.7)
        assert kernel.gap_decay.item() == pytest.approx(0.9, rel=1e-6)
        torch.testing.assert_close(
            kernel.gram(WORDS), SubsequenceKernel(3, gap_decay=0.9).gram(WORDS), rtol=1e-6, atol=0
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "order is 0"),
        ({"order": True}, "order is True"),
        ({"match_decay": 0.0}, r"match_decay is 0.0; it must lie in \[0.0001, 1\]"),
        ({"gap_decay": 1.2}, r"gap_decay is 1.2; it must lie in \[0.0001, 1\]"),
        ({"gap_decay": float("nan")}, "gap_decay is nan"),
        ({"gap_decay": "much"}, "gap_decay is 'much'; expected a number"),
        ({"gap_decay_bounds": (0.0, 1.0)}, r"gap_decay_bounds are \(0.0, 1.0\)"),
        ({"match_decay_bounds": (0.5, 1.5)}, "match_decay_bounds"),
        ({"engine": "abacus"}, "abacus"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"cache_bytes": -1}, "cache_bytes is -1"),
        ({"partitions": 0}, "partitions is 0; it must be an integer of at least 1"),
        ({"partitions": 1.5}, "partitions is 1.5"),
        ({"order_weights": [1.0, 2.0]}, r"order_weights has shape \(2,\); expected one that expands to \(5,\)"),
        ({"order_weights": [1.0, 1.0, 1.0, 1.0, -1.0]}, r"order_weights is .*-1.0.*must lie in \[1e-06, 1e\+06\]"),
        ({"match_decay": [0.5, 0.6]}, r"match_decay has shape \(2,\)"),
    ],
)
def test_bad_settings_are_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        SubsequenceKernel(**arguments)


def test_bad_assignments_and_inputs_are_explained():
    kernel = SubsequenceKernel()
    with pytest.raises(InputError, match=r"gap_decay is 2.0; it must lie in \[0.0001, 1\]"):
        kernel.gap_decay = 2.0
    assert kernel.gap_decay.item() == 0.5
    with pytest.raises(InputError, match="item 1 is 3 of type int"):
        kernel.gram(["a", 3])
    with pytest.raises(InputError, match="integers"):
        kernel(torch.tensor([[0.5, 1.0]], dtype=torch.float64)).to_dense()
    with pytest.raises(InputError, match="padding"):
        kernel(torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)).to_dense()


def test_a_state_dict_keeps_parameters_in_double_precision() -> None:
    kernel = SubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.3, order_weights=[1.0, 0.1, 0.7])
    learned = copy.deepcopy(kernel).double()
    assert float(learned.raw_gap_decay) == 0.3
    with torch.no_grad():
        learned.raw_gap_decay.copy_(torch.tensor(1.0 / 3.0, dtype=torch.float64))
    for source in (kernel, learned):
        for target in (SubsequenceKernel(order=3, order_weights=[1.0] * 3), copy.deepcopy(kernel).double()):
            target.load_state_dict(source.state_dict())
            for name in ("match_decay", "gap_decay", "order_weights"):
                assert torch.equal(getattr(target, name).detach(), getattr(source, name).detach())
    with torch.no_grad():
        target.raw_gap_decay.copy_(torch.tensor(0.9))
    assert float(target.gap_decay) == pytest.approx(0.9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_kernels_of_any_precision_compute_covariances_between_strings(dtype):
    strings = Encoder().encode(["ACGT", "AGT", "TTTT"])
    exact = SubsequenceKernel(order=3).cross(strings)
    np.testing.assert_allclose(SubsequenceKernel(order=3).to(dtype).cross(strings), exact, rtol=1e-2)


def test_decays_that_are_changed_in_place_count():
    strings = Encoder().encode(["ACGT", "AGT", "TATT"])
    kernel = SubsequenceKernel(order=3)
    before = kernel.cross(strings)
    for name, value in (("gap_decay", 0.9), ("match_decay", 0.2)):
        with torch.no_grad():
            getattr(kernel, f"raw_{name}").fill_(value)
        after = kernel.cross(strings)
        assert np.abs(after - before).max() > 0.01
        np.testing.assert_allclose(after, kernel(strings.to_tensor(4)).to_dense().detach().numpy(), rtol=1e-6)
        before = after
