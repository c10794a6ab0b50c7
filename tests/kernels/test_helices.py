"""The kernel of helices: places and bonds by brute force, invariances, errors, and its place in the default."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Alphabet, Encoder, VaryingPositions
from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.kernels import HelixKernel, LetterHammingKernel, LetterOneHotKernel, bind_symbols
from seqopt.kernels import helices as module
from seqopt.kernels.helices import SymbolBases
from seqopt.models import FullyBayesianGP, StringGP
from seqopt.models.registry import HELIX_BASES, mixture
from seqopt.models.sampling import GridSampler
from seqopt.spaces import CodonSpace

BONDS = {"AT": 2, "TA": 2, "CG": 3, "GC": 3, "GT": 1, "TG": 1}

bases = st.integers(1, 24).flatmap(
    lambda length: st.lists(st.text(alphabet="ACGTN", min_size=length, max_size=length), min_size=2, max_size=6)
)


def brute_force(string: str) -> dict[tuple[int, int], int]:
    """Bonds of the helix that begins with each pair, straight from the definition."""
    found = {}
    for i in range(len(string)):
        for j in range(i + 1, len(string)):
            pairs = []
            while j - len(pairs) - (i + len(pairs)) > 3:
                pair = string[i + len(pairs)] + string[j - len(pairs)]
                if pair not in BONDS:
                    break
                pairs.append(BONDS[pair])
            if len(pairs) >= 2:
                found[i, j] = sum(pairs)
    return found


def covariance(a: str, b: str, lengthscale: float) -> float:
    of_a, of_b = brute_force(a), brute_force(b)
    squares = sum((of_a.get(pair, 0) - of_b.get(pair, 0)) ** 2 for pair in {*of_a, *of_b})
    return float(np.exp(-squares / (2 * lengthscale**2)))


def kernel_of(encoder: Encoder, lengthscale: Any = 7.0, **arguments: Any) -> HelixKernel:
    kernel = HelixKernel(lengthscale, **arguments).double()
    if lengthscale is not None:
        kernel.lengthscale = lengthscale  # in double precision
    bind_symbols(kernel, encoder)
    return kernel


def random_genes(count: int, length: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), length)) for _ in range(count)]


@settings(deadline=None)
@given(bases)
def test_helices_are_those_of_brute_force(strings: list[str]) -> None:
    encoder = Encoder(alphabet=Alphabet("ACGTN"))
    tokens = SymbolBases(encoder.alphabet).table()[encoder.encode(strings).tokens][..., 0]
    found = module.helices(tokens)
    for row, string in enumerate(strings):
        own = found.take(slice(row, row + 1))
        pairs = [tuple(pair) for pair in own.pairs.tolist()]
        assert dict(zip(pairs, own.bonds.tolist(), strict=True)) == brute_force(string)
        assert len(set(pairs)) == len(pairs)
        assert (np.diff(own.places) > 0).all()
        assert own.squares.tolist() == [sum(bonds**2 for bonds in brute_force(string).values())]


@settings(deadline=None)
@given(bases, st.floats(0.5, 50.0), st.integers(0, 3))
def test_covariances_are_those_of_brute_force(strings: list[str], lengthscale: float, padding: int) -> None:
    encoder = Encoder()
    kernel = kernel_of(encoder, lengthscale)
    encoded = encoder.encode(strings)
    expected = np.array([[covariance(a, b, lengthscale) for b in strings] for a in strings])
    np.testing.assert_allclose(kernel.cross(encoded), expected, atol=1e-12)
    np.testing.assert_allclose(kernel.cross(encoded, encoded.take([1])), expected[:, [1]], atol=1e-12)
    np.testing.assert_allclose(kernel.cross(encoded, dtype=np.float32), expected, atol=1e-6)
    x = encoded.to_tensor(width=encoded.width + padding)
    np.testing.assert_allclose(kernel(x).to_dense().detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(x, x.flip(0)).to_dense().detach().numpy(), expected[:, ::-1], atol=1e-12)
    diagonal = kernel(x, x.flip(0), diag=True).detach().numpy()
    np.testing.assert_allclose(diagonal, np.diagonal(expected[:, ::-1]), atol=1e-12)
    assert np.linalg.eigvalsh(expected).min() > -1e-9
    order = np.random.default_rng(0).permutation(len(strings))
    np.testing.assert_allclose(kernel.cross(encoded.take(order)), expected[np.ix_(order, order)], atol=1e-12)


@pytest.mark.parametrize("remembered", [10**9, 0])
@pytest.mark.parametrize("elements", [20, 400])
def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch, elements: int, remembered: int) -> None:
    encoder = Encoder()
    kernel = kernel_of(encoder)
    a, b = (encoder.encode(random_genes(9, 40, seed)) for seed in (0, 1))
    whole, rest = kernel.cross(a, b), kernel.cross(a, b.take([2]))
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", elements)
    monkeypatch.setattr(module, "REMEMBERED_BLOCKS", remembered)
    a, b = a.take(range(9)), b.take(range(9))
    for _ in range(2):
        np.testing.assert_array_equal(kernel.cross(a, b), whole)
    monkeypatch.setattr(module, "FEWER", 1)  # the side of fewer strings is indexed
    np.testing.assert_array_equal(kernel.cross(a, b.take([2])), rest)
    batch = torch.stack([a.to_tensor(), b.to_tensor()])
    found = kernel(batch, b.to_tensor()).to_dense()
    np.testing.assert_allclose(found[0].detach().numpy(), whole, atol=1e-12)


def test_no_strings() -> None:
    encoder = Encoder()
    kernel, rows = kernel_of(encoder), encoder.encode(random_genes(4, 60))
    none = rows.take(slice(0, 0))
    assert kernel.cross(none, rows).shape == (0, 4)
    assert kernel.cross(rows, none).shape == (4, 0)
    assert kernel.cross(none).shape == (0, 0)
    assert kernel(rows.to_tensor()[:0], rows.to_tensor()).to_dense().shape == (0, 4)
    assert kernel(rows.to_tensor(), rows.to_tensor()[:0]).to_dense().shape == (4, 0)


def test_what_is_held_of_a_pool_does_not_grow_with_it() -> None:
    encoder = Encoder()
    kernel = kernel_of(encoder)
    rows = encoder.encode(random_genes(20, 300))
    rng = np.random.default_rng(1)
    pool = encoder.encode(["".join(rng.choice(list("ACGT"), 300)) for _ in range(3_000)])
    kernel.cross(rows, pool.take(slice(0, 30)))  # compiles
    tracemalloc.start()
    kernel.cross(rows, pool)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All helices of the pool would be 3,000 x 300^2 / 14 of 6 bytes: 116 MB.
    assert kept < 30e6
    assert peak < 80e6


def test_lengthscales_of_a_batch_share_the_helices() -> None:
    encoder = Encoder()
    rows = encoder.encode(random_genes(4, 30))
    kernel = kernel_of(encoder, torch.tensor([[[5.0]], [[9.0]]]), batch_shape=torch.Size([2]))
    for element, lengthscale in enumerate((5.0, 9.0)):
        np.testing.assert_allclose(kernel.cross(rows)[element], kernel_of(encoder, lengthscale).cross(rows), atol=1e-6)


def test_u_is_t_and_letters_have_no_case_and_others_pair_with_nothing() -> None:
    encoder = Encoder()
    kernel = kernel_of(encoder)
    same = kernel.cross(encoder.encode(["GCTAAAAAGC", "gcuaaaaagc", "GCUAAAAAGC"]))
    np.testing.assert_array_equal(same, np.ones((3, 3)))
    apart = kernel.cross(encoder.encode(["GCTAAAAAGC", "NNNNNNNNNN", "GXTAAAAAGC"]))
    assert apart[1, 2] == 1.0  # none has a helix
    assert apart[0, 1] < 1.0


def test_a_helix_of_codons_is_that_of_their_bases() -> None:
    codons, letters = Encoder(CodonTokenizer()), Encoder()
    genes = [gene[:30] for gene in random_genes(6, 30)]
    np.testing.assert_array_equal(
        kernel_of(codons).cross(codons.encode(genes)), kernel_of(letters).cross(letters.encode(genes))
    )


def test_other_kernels_of_letters_read_the_same_strings_their_own_way() -> None:
    # What is remembered of strings for one must not be taken for that of another.
    encoder = Encoder(CodonTokenizer())
    genes = encoder.encode(random_genes(5, 30))
    expected = kernel_of(encoder).cross(encoder.encode(random_genes(5, 30)))
    for first in (LetterHammingKernel(2.0), LetterOneHotKernel()):
        bind_symbols(first, encoder)
        alone = first.cross(encoder.encode(random_genes(5, 30)))
        np.testing.assert_array_equal(first.cross(genes), alone)
        np.testing.assert_array_equal(kernel_of(encoder).cross(genes), expected)
        np.testing.assert_array_equal(first.cross(genes), alone)


def test_its_prior_adapts_to_the_median_distance() -> None:
    encoder = Encoder()
    genes = random_genes(12, 40)
    kernel = kernel_of(encoder, None)
    kernel.adapt(encoder.encode(genes).to_tensor())
    distances = [
        np.sqrt(-2 * np.log(covariance(a, b, 1e3)) * 1e6) for place, a in enumerate(genes) for b in genes[:place]
    ]
    # torch takes the lower of two middle ones
    assert kernel.lengthscale.item() == pytest.approx(np.sort(distances)[(len(distances) - 1) // 2], rel=1e-6)
    assert float(kernel.lengthscale_prior.loc.exp()) == pytest.approx(kernel.lengthscale.item(), rel=1e-6)
    chosen = kernel_of(encoder, 3.0)
    chosen.adapt(encoder.encode(genes).to_tensor())
    assert chosen.lengthscale.item() == 3.0


def test_copies_and_what_is_written_down_are_the_same_kernel() -> None:
    encoder = Encoder()
    kernel, rows = kernel_of(encoder, 4.0), encoder.encode(random_genes(4, 20))
    expected = kernel.cross(rows)
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(other.cross(rows), expected)
    read = HelixKernel.from_config(kernel.config())
    bind_symbols(read, encoder)
    np.testing.assert_allclose(read.cross(rows), expected, rtol=1e-6)
    assert repr(kernel) == "HelixKernel(lengthscale=4)"


def test_what_it_cannot_compare_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder()
    kernel = kernel_of(encoder)
    with pytest.raises(InputError, match="helix kernel compares strings of one length"):
        kernel.cross(encoder.encode(["ACGT", "ACG"]))
    with pytest.raises(InputError, match="float64 or float32"):
        kernel.cross(encoder.encode(["ACGT"]), dtype=np.int64)
    with pytest.raises(InputError, match="does not know yet which symbols"):
        HelixKernel().cross(encoder.encode(["ACGT"]))
    whole = Encoder()
    for positioned in (True, False):
        left_out = VaryingPositions(whole, "ACGTACGTAC", [1, 4], positioned=positioned)
        with pytest.raises(InputError, match="HelixKernel compares whole strings, and this encoder leaves out"):
            bind_symbols(HelixKernel(), left_out)
    monkeypatch.setattr(module, "LONGEST", 5)
    with pytest.raises(InputError, match="strings have 6 bases, and a HelixKernel compares up to 5"):
        kernel.cross(encoder.encode(["ACGTAC"]))


def test_a_score_of_helices_is_learned_by_helices() -> None:
    # A score that depends on which bases face each other: no base, and no codon, says anything by itself.
    space = CodonSpace("TIKENIFGVSLR")
    rng = np.random.default_rng(3)
    genes, others = space.sample(80, rng), space.sample(200, rng)
    score = [float(max(brute_force(gene).values(), default=0)) for gene in genes]
    truth = np.array([float(max(brute_force(gene).values(), default=0)) for gene in others])
    errors = {}
    for name, kernel in (("helices", HelixKernel()), ("bases", LetterHammingKernel())):
        model = FullyBayesianGP([kernel], GridSampler(), encoder=space.encoder)
        model.fit(genes, score, rng=np.random.default_rng(0))
        errors[name] = float(((np.asarray(model.predict(others)[0]) - truth) ** 2).mean())
    assert errors["helices"] < 0.75 * errors["bases"]


def test_genes_of_one_length_are_compared_by_helices_up_to_a_limit() -> None:
    assert HelixKernel in [type(kernel) for kernel in mixture(CodonSpace("MAKVL")).kernels]
    most = HELIX_BASES // 3
    assert HelixKernel in [type(kernel) for kernel in mixture(CodonSpace("M" * most)).kernels]
    assert HelixKernel not in [type(kernel) for kernel in mixture(CodonSpace("M" * (most + 1))).kernels]


def test_point_estimates_find_a_lengthscale() -> None:
    space = CodonSpace("TIKENIFG")
    genes = space.sample(30, np.random.default_rng(0))
    model = StringGP(HelixKernel(), encoder=space.encoder, restarts=1)
    model.fit(genes, [float(len(brute_force(gene))) for gene in genes], rng=np.random.default_rng(0))
    assert np.isfinite(np.asarray(model.predict(genes)[0])).all()
    assert model.hyperparameters["lengthscale"] != pytest.approx(10.0, rel=1e-3)
