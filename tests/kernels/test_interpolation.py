"""Interpolation in the gap decay against the kernel itself."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from seqopt.encoding import Encoder
from seqopt.kernels import SubsequenceKernel, covariances, interpolation
from seqopt.kernels.interpolation import TOLERANCE, ChebyshevNodes


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


def test_no_dynamic_program_but_those_of_the_diagonal(monkeypatch):
    x = Encoder().encode(molecules(30)).to_tensor()
    kernel = SubsequenceKernel(3)
    with kernel.interpolating(x):
        monkeypatch.setattr(covariances, "order_sums", None)
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
    monkeypatch.setattr(interpolation, "SAMPLE_NODES", 16)
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


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_basis_reproduces_polynomials_and_their_derivatives(count):
    nodes = ChebyshevNodes(count, 0.2, 0.9)
    rng = np.random.default_rng(count)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(count))
    assert nodes.points.min() > 0.2
    assert nodes.points.max() < 0.9
    for x in (0.2, 0.55, 0.9):
        values, slopes = nodes.basis(x) @ polynomial(nodes.points)
        assert values == pytest.approx(polynomial(x), rel=1e-9, abs=1e-9)
        assert slopes == pytest.approx(polynomial.deriv()(x), rel=1e-6, abs=1e-6)
    coefficients = nodes.transform() @ polynomial(nodes.points)
    chebyshev = np.polynomial.Chebyshev(coefficients, domain=[0.2, 0.9])
    assert chebyshev(0.37) == pytest.approx(polynomial(0.37), rel=1e-9)
