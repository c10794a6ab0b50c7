"""Interpolation in the gap decay against the kernel itself."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from seqopt.encoding import Encoder
from seqopt.kernels import SubsequenceKernel, covariances, interpolation
from seqopt.kernels.covariances import Program
from seqopt.kernels.engines import order_sums
from seqopt.kernels.interpolation import TOLERANCE, ChebyshevNodes, InterpolatedGram


def molecules(count, seed=0, longest=45):
    """Strings with the repeats of SMILES."""
    rng = np.random.default_rng(seed)
    pieces = ["c1ccccc1", "C(=O)", "N", "CC", "O", "(C)", "F", "n1cc1", "S(=O)(=O)", "[nH]"]
    drawn = ("".join(rng.choice(pieces, rng.integers(2, 14))) for _ in range(10 * count))
    return [string for string in drawn if len(string) <= longest][:count]


def evaluate(kernel, x, gap, upstream):
    kernel.zero_grad()
    kernel.gap_decay = gap
    gram = kernel(x).to_dense()
    (gram * upstream).sum().backward()
    return gram.detach(), *(parameter.grad.clone() for parameter in kernel.parameters())


@pytest.mark.parametrize("order_weights", [None, [0.2, 1.0, 3.0, 1.0, 0.5]])
def test_covariances_and_gradients_at_any_gap_decay(order_weights):
    rng = np.random.default_rng(1)
    x = Encoder().encode([*molecules(70), "C", "CCCC"]).to_tensor()
    upstream = torch.from_numpy(rng.standard_normal((len(x), len(x))))
    kernel = SubsequenceKernel(5, match_decay=0.9, order_weights=order_weights).double()
    gaps = [1e-4, 0.01, *rng.uniform(1e-4, 1.0, 4), 0.99, 1.0]
    exact = [evaluate(kernel, x, gap, upstream) for gap in gaps]
    with kernel.interpolating(x) as interpolated:
        assert interpolated
        close = [evaluate(kernel, x, gap, upstream) for gap in gaps]
    for (gram, *gradients), (expected, *expected_gradients) in zip(close, exact, strict=True):
        assert (gram - expected).abs().max() < TOLERANCE
        assert not torch.equal(gram, expected)  # interpolated indeed
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(evaluate(kernel, x, gaps[2], upstream)[0], exact[2][0], rtol=0, atol=0)


def test_many_pairs_of_short_strings_are_not_built_twice(monkeypatch):
    built = []
    build = interpolation._build
    monkeypatch.setattr(interpolation, "_build", lambda *arguments: built.append(1) or build(*arguments))
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(200)]
    worst = spread(Encoder().encode(strings).to_tensor())
    assert worst is not None
    assert worst < TOLERANCE
    assert len(built) == 1


def test_an_evaluation_needs_no_dynamic_program(monkeypatch):
    x = Encoder().encode(molecules(30)).to_tensor()
    kernel = SubsequenceKernel(3)
    with kernel.interpolating(x):
        for name in ("order_sums", "self_order_sums"):
            monkeypatch.setattr(covariances, name, None)
        for gap in (0.1, 0.7):
            kernel.gap_decay = gap
            kernel(x).to_dense().sum().backward()
        with pytest.raises(TypeError):
            kernel(x[:5]).to_dense()  # other strings are computed as always


@pytest.mark.parametrize(
    "kernel",
    [
        SubsequenceKernel(3, normalize=False),
        SubsequenceKernel(3, batch_shape=torch.Size([2])),
        SubsequenceKernel(3, cache_bytes=10_000),
    ],
)
def test_what_cannot_be_interpolated_is_computed(kernel):
    x = Encoder().encode(molecules(20)).to_tensor()
    expected = kernel(x).to_dense()
    with kernel.interpolating(x) as interpolated:
        assert not interpolated
        assert torch.equal(kernel(x).to_dense(), expected)


def test_strings_that_need_too_many_nodes_are_computed(monkeypatch):
    monkeypatch.setattr(interpolation, "SAMPLE_NODES", (8, 16))
    kernel = SubsequenceKernel(5)
    for strings, expected in ((["abab", "baab", "bb"], True), (molecules(20), False)):
        with kernel.interpolating(Encoder().encode(strings).to_tensor()) as interpolated:
            assert interpolated == expected


def spread(x, gaps=(0.003, 0.2, 0.77, 0.9993)):
    """Largest error of interpolation over some gap decays, or nothing if it is refused."""
    kernel = SubsequenceKernel(5).double()
    exact = [SubsequenceKernel(5, gap_decay=gap)(x).to_dense() for gap in gaps]
    with kernel.interpolating(x) as interpolated, torch.no_grad():
        if not interpolated:
            return None
        worst = 0.0
        for gap, expected in zip(gaps, exact, strict=True):
            kernel.gap_decay = gap
            worst = max(worst, (kernel(x).to_dense() - expected).abs().max().item())
    return worst


def test_strings_unlike_their_shortest_and_longest_are_held_to_the_same_error():
    # The twenty shortest and longest have no symbol twice: for them alone, hardly any node would do.
    letters = "".join(chr(0x4E00 + i) for i in range(2000))
    shortest = [letters[30 * i : 30 * i + 6] for i in range(20)]
    longest = [letters[600 + 60 * i : 660 + 60 * i] for i in range(20)]
    between = ["ab" * 5 + "c" * i + "ba" * 5 for i in range(20)]
    worst = spread(Encoder().encode([*shortest, *between, *longest]).to_tensor())
    assert worst is None or worst < TOLERANCE


def test_repeated_measurements_do_not_crowd_out_other_strings():
    strings = molecules(40)
    strings = [*strings, *[min(strings, key=len)] * 12, *[max(strings, key=len)] * 12]
    worst = spread(Encoder().encode(strings).to_tensor())
    assert worst is not None
    assert worst < TOLERANCE


def test_too_few_nodes_are_noticed_and_added_to(monkeypatch):
    monkeypatch.setattr(interpolation, "_choose_nodes", lambda rows, program, *ends: ChebyshevNodes(12, *ends))
    worst = spread(Encoder().encode(molecules(40)).to_tensor())
    assert worst is not None
    assert worst < TOLERANCE


def test_copies_made_meanwhile_are_exact():
    kernel, x = SubsequenceKernel(3), Encoder().encode(molecules(20)).to_tensor()
    expected = kernel(x).to_dense()
    with kernel.interpolating(x):
        clone = copy.deepcopy(kernel)
        with kernel.interpolating(x[:5]):
            pass
        assert not torch.equal(kernel(x).to_dense(), expected)
    assert torch.equal(clone(x).to_dense(), expected)


def test_a_frozen_gap_decay_needs_no_interpolation():
    kernel = SubsequenceKernel(3)
    kernel.raw_gap_decay.requires_grad_(False)
    with kernel.interpolating(Encoder().encode(["ab", "ba"]).to_tensor()) as interpolated:
        assert not interpolated


def direct(tokens, order, gap):
    """Per-order sums of all pairs and their derivatives in the gap decay: the recurrence, with a complex step."""
    left, right = np.triu_indices(len(tokens))
    columns = np.where(tokens == 0, -1, tokens)[right]
    z = gap + 1e-40j
    # What ends in each column so far, of each length, decayed by the symbols of the row string since.
    ending = np.zeros((order, *columns.shape), dtype=complex)
    sums = np.zeros((order, len(tokens), len(tokens)), dtype=complex)
    for symbols in tokens[left].T:
        match = (columns == symbols[:, None]).astype(complex)
        new = match
        for i in range(order):
            sums[i, left, right] += new.sum(-1)
            before = lfilter([0.0, 1.0], [1.0, -z], ending[i], axis=-1)
            ending[i] = z * ending[i] + new
            new = match * before
    sums[:, right, left] = sums[:, left, right]
    return sums.real, sums.imag / z.imag


def measure(strings, order, gaps, partitions=1):
    """Largest errors of normalised sums and of their derivatives in the gap decay, and the number of nodes.

    Derivatives are relative to the largest of each order and gap decay, and never to less than 1.
    """
    encoded = Encoder().encode(strings)
    program = Program(order, 1.0, np.dtype(np.float64), "auto", None, partitions)
    gram = InterpolatedGram.build(encoded, program, 1e-4, 1.0, 2**30)
    assert gram is not None
    errors = np.zeros(2)
    for gap in gaps:
        parts = [direct(part.tokens.astype(int), order, gap) for part in encoded.split(partitions)]
        exact, slopes = (sum(found) for found in zip(*parts, strict=True))
        own, own_slopes = (np.diagonal(part, axis1=1, axis2=2) for part in (exact, slopes))
        roots = np.sqrt(np.where(own > 0, own, 1.0))
        scale = roots[:, :, None] * roots[:, None, :]
        relative = 0.5 * own_slopes / roots**2
        normalized = exact / scale
        expected = slopes / scale - normalized * (relative[:, :, None] + relative[:, None, :])
        values, derivatives = gram.known_selves(replace(program, gap=gap), True)
        errors[0] = max(errors[0], np.abs(values.numpy() / roots**2 - (own > 0)).max())
        (block,) = gram.blocks(replace(program, gap=gap), True)
        found, found_slopes = block.values[:, 0].numpy(), block.slopes[:, 0].numpy()
        found_relative = 0.5 * derivatives.numpy() / np.where(own > 0, values.numpy(), 1.0)
        found = found / scale
        found_slopes = found_slopes / scale - found * (found_relative[:, :, None] + found_relative[:, None, :])
        errors[0] = max(errors[0], np.abs(found - normalized).max())
        size = np.abs(expected).max(axis=(1, 2), keepdims=True)
        errors[1] = max(errors[1], (np.abs(found_slopes - expected) / np.maximum(size, 1.0)).max())
    return *errors, gram.nodes.count


def mutants(count, length, seed=3):
    rng = np.random.default_rng(seed)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    template = rng.choice(letters, length)
    found = []
    for _ in range(count):
        string = template.copy()
        string[rng.choice(length, rng.integers(1, 5), replace=False)] = rng.choice(letters)
        found.append("".join(string))
    return found


HARD = {
    "one letter": ["a" * length for length in (1, 4, 5, 290)],
    "blocks": ["a" * 60 + "b" * 60, "b" * 60 + "a" * 60, "ab" * 60, "abc" * 40],
    "variants": mutants(3, 290),
    "random": ["".join(np.random.default_rng(n).choice(list("ACGT"), 40 * n)) for n in range(1, 6)],
    "short and long": ["abcde", "ab", "", "edcba" * 20],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_errors_at_many_gap_decays(name):
    rng = np.random.default_rng(4)
    gaps = [1e-4, *rng.uniform(1e-4, 1.0, 2), *(1.0 - 10.0 ** rng.uniform(-4, -1, 3)), 1.0]
    value, slope, nodes = measure(HARD[name], 5, gaps)
    assert value < TOLERANCE
    # A sequence of blocks of 60 and its reverse go from 1 to 0.01 within 0.05 of the right end.
    assert slope < (5e-5 if name == "blocks" else 1e-5)
    assert nodes <= (60 if name == "blocks" else 44)


@pytest.mark.parametrize(("order", "partitions"), [(1, 1), (2, 3), (8, 1)])
def test_errors_at_other_orders_and_partitions(order, partitions):
    value, slope, _ = measure([*molecules(5), "ab" * 20], order, [2e-4, 0.6, 0.98, 1.0], partitions)
    assert value < TOLERANCE
    assert slope < 1e-5


def test_sums_beyond_double_precision_are_not_interpolated(monkeypatch):
    def overflowing(rows, columns, gap_decay, **options):
        sums, slopes = order_sums(rows, columns, gap_decay, **options)
        return (sums if gap_decay < 0.9 else sums * np.inf), slopes

    monkeypatch.setattr(interpolation, "order_sums", overflowing)
    program = Program(3, 1.0, np.dtype(np.float64), "cpu", None, 1)
    with np.errstate(all="ignore"):
        assert InterpolatedGram.build(Encoder().encode(["abcba"] * 3), program, 0.5, 1.0, 2**30) is None


@pytest.mark.parametrize("core", [np.inf, 0.02, 3.0])
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_basis_reproduces_polynomials_and_their_derivatives(count, core):
    nodes = ChebyshevNodes(count, 0.2, 0.9, core)
    rng = np.random.default_rng(count)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(count))

    def mapped(x):
        if np.isinf(core):
            return 1.0 - 2.0 * (0.9 - x) / 0.7
        return 1.0 - 2.0 * np.arcsinh((0.9 - x) / core) / np.arcsinh(0.7 / core)

    assert nodes.points.min() > 0.2
    assert nodes.points.max() < 0.9
    for x in (0.2, 0.55, 0.9):
        values, slopes = nodes.basis(x) @ polynomial(mapped(nodes.points))
        assert values == pytest.approx(polynomial(mapped(x)), rel=1e-9, abs=1e-9)
        steps = 1e-6 * np.array([0.0 if x == 0.2 else -1.0, 0.0 if x == 0.9 else 1.0])
        difference = np.diff(polynomial(mapped(x + steps)))[0] / np.diff(steps)[0]
        assert slopes == pytest.approx(difference, rel=1e-2 if core < 0.1 else 1e-3, abs=1e-3)
    coefficients = nodes.transform @ polynomial(mapped(nodes.points))
    chebyshev = np.polynomial.Chebyshev(coefficients, domain=[-1.0, 1.0])
    assert chebyshev(mapped(0.37)) == pytest.approx(polynomial(mapped(0.37)), rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(count=st.integers(2, 96), lower=st.floats(1e-4, 0.9), width=st.floats(1e-3, 1.0), longest=st.floats(0, 5000))
def test_interpolation_is_well_conditioned(count, lower, width, longest):
    upper = min(1.0, lower + width)
    nodes = ChebyshevNodes.for_strings(count, lower, upper, longest)
    points = nodes.points
    assert (np.diff(points) < 0).all()
    bound = 2.0 / np.pi * np.log(count) + 1.0  # of Chebyshev nodes (Trefethen 2013, theorem 15.2)
    for x in (lower, *nodes.between(), 0.3 * lower + 0.7 * upper, upper):
        values, slopes = nodes.basis(x)
        assert np.abs(values).sum() < bound + 1e-6
        assert values.sum() == pytest.approx(1.0, abs=1e-9)
        assert slopes.sum() == pytest.approx(0.0, abs=1e-6 * np.abs(slopes).sum())
