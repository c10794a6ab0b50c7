"""Kernels on the letters of symbols are kernels on strings of letters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqopt.encoding import Alphabet, EncodedStrings, Encoder, VaryingPositions
from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.kernels import (
    HammingKernel,
    LetterHammingKernel,
    LetterNgramKernel,
    LetterOneHotKernel,
    LetterSubsequenceKernel,
    NgramKernel,
    OneHotKernel,
    SubsequenceKernel,
    bind_symbols,
)
from seqopt.kernels.letters import SymbolLetters, letters_of
from seqopt.kernels.shares import masked, symbol_shares
from seqopt.models import BinomialGP, FullyBayesianGP, StringGP
from seqopt.models.classifiers import KernelLogistic
from seqopt.models.lead_distances import KernelDistance
from seqopt.models.sampling import GridSampler
from seqopt.report.kernel_pca import kernel_pca
from seqopt.spaces import CandidateSet, CodonSpace

GENES = ["GCTGCCAAA", "GCGGCAAAG", "GCTGCCAAG", "GCAGCAAAA", "AAAGCTTTT"]
PAIRS: list[tuple[Any, Any]] = [
    (
        LetterSubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.4, partitions=2),
        SubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.4, partitions=2),
    ),
    (
        LetterSubsequenceKernel(order=2, normalize=False, order_weights=[1.0, 0.3]),
        SubsequenceKernel(order=2, normalize=False, order_weights=[1.0, 0.3]),
    ),
    (LetterNgramKernel(3, 4.0), NgramKernel(3, 4.0)),
    (LetterOneHotKernel(), OneHotKernel()),
    (LetterHammingKernel(2.0), HammingKernel(2.0)),
]


def codons() -> Encoder:
    return Encoder(CodonTokenizer())


def bound(kernel: Any, encoder: Encoder) -> Any:
    found = copy.deepcopy(kernel).double()
    bind_symbols(found, encoder)
    return found


@pytest.mark.parametrize(("of_letters", "of_symbols"), PAIRS)
def test_codons_are_compared_as_their_bases(of_letters: Any, of_symbols: Any) -> None:
    encoder = codons()
    kernel, plain = bound(of_letters, encoder), of_symbols.double()
    a, b = encoder.encode(GENES), Encoder().encode(GENES)
    np.testing.assert_allclose(kernel.cross(a), plain.cross(b), rtol=1e-12)
    np.testing.assert_allclose(kernel.cross(a, a.take([1, 4])), plain.cross(b, b.take([1, 4])), rtol=1e-12)
    np.testing.assert_allclose(kernel.self_similarity(a), plain.self_similarity(b), rtol=1e-12)
    np.testing.assert_allclose(kernel.variance(a), plain.variance(b), rtol=1e-12)
    x, y = a.to_tensor(width=7), b.to_tensor()
    for one, other in ((x, y), (x.expand(2, *x.shape), y), (torch.stack([x, x.flip(0)]), torch.stack([y, y.flip(0)]))):
        torch.testing.assert_close(kernel(one, x).to_dense(), plain(other, y).to_dense().expand(*one.shape[:-2], 5, 5))
    torch.testing.assert_close(kernel(x, x.flip(0), diag=True), plain(y, y.flip(0), diag=True))


def test_gradients_are_those_on_letters() -> None:
    encoder = codons()
    found = []
    for kernel, rows in (
        (bound(LetterSubsequenceKernel(order=3), encoder), encoder.encode(GENES)),
        (SubsequenceKernel(order=3).double(), Encoder().encode(GENES)),
    ):
        kernel(rows.to_tensor()).to_dense().square().sum().backward()
        found.append([float(kernel.raw_match_decay.grad), float(kernel.raw_gap_decay.grad)])
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert min(map(abs, found[0])) > 0.1


def test_interpolation_is_that_on_letters() -> None:
    encoder = codons()
    rng = np.random.default_rng(0)
    genes = ["".join(rng.choice(["GCT", "GCC", "AAA", "AAG"], 12)) for _ in range(30)]
    kernel = bound(LetterSubsequenceKernel(order=4), encoder)
    x = encoder.encode(genes).to_tensor()
    exact = SubsequenceKernel(order=4).double()(Encoder().encode(genes).to_tensor()).to_dense()
    with kernel.interpolating(x) as interpolated:
        assert interpolated
        torch.testing.assert_close(kernel(x).to_dense(), exact, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize(
    ("of_letters", "of_symbols"), [(LetterNgramKernel, NgramKernel), (LetterHammingKernel, HammingKernel)]
)
def test_a_prior_adapts_to_distances_of_letters(of_letters: Any, of_symbols: Any) -> None:
    encoder = codons()
    genes = ["GCTGCCAAA", "TTTGAGCCG", "CAGTGTTGG"]
    kernel, plain = bound(of_letters(), encoder), of_symbols().double()
    kernel.adapt(encoder.encode(genes).to_tensor())
    plain.adapt(Encoder().encode(genes).to_tensor())
    assert kernel.lengthscale.item() == plain.lengthscale.item()
    whole = of_symbols().double()
    whole.adapt(encoder.encode(genes).to_tensor())
    assert kernel.lengthscale.item() != pytest.approx(whole.lengthscale.item(), rel=0.1)


@given(st.lists(st.lists(st.sampled_from(["a", "bc", "cab", "é"]), max_size=5), min_size=1, max_size=6))
def test_symbols_may_have_any_number_of_letters(words: list[list[str]]) -> None:
    alphabet = Alphabet(["a", "bc", "cab", "é"])
    width = max(map(len, words))
    tokens = np.array([[*map(alphabet.number, word), *[0] * (width - len(word))] for word in words], dtype=np.uint8)
    found = letters_of(EncodedStrings.from_tokens(tokens.reshape(len(words), width)), SymbolLetters(alphabet))
    letters = "abcé"
    rows = zip(found.tokens, found.lengths, strict=True)
    read = ["".join(letters[number - 1] for number in row[:length]) for row, length in rows]
    assert read == ["".join(word) for word in words]
    assert found.lengths.tolist() == [len(text) for text in read]


def test_an_alphabet_may_grow() -> None:
    encoder = codons()
    kernel = bound(LetterSubsequenceKernel(order=2), encoder)
    before = kernel.cross(encoder.encode(GENES[:2]))
    encoder.encode(["TTTTTT"])
    strings = [*GENES[:2], "TTTGCT"]
    found = kernel.cross(encoder.encode(strings))
    np.testing.assert_array_equal(found[:2, :2], before)
    np.testing.assert_allclose(found, SubsequenceKernel(order=2).gram(strings).numpy(), rtol=1e-12)


def test_numbers_of_no_symbol_are_unlike_all() -> None:
    encoder = codons()
    strings = encoder.encode(["GCTGCC"])
    without = masked(strings, beyond=len(encoder.alphabet))
    kernel = bound(LetterSubsequenceKernel(order=1, normalize=False, match_decay=1.0), encoder)
    whole = float(kernel.cross(strings)[0, 0])
    first, second = kernel.cross(without, strings)[:, 0]
    assert whole == 2 * 2 + 3 * 3 + 1  # G twice, C three times, T once
    assert (first, second) == (1 * 2 + 2 * 3, 1 * 2 + 1 * 3 + 1)


def test_letters_with_positions_match_at_their_place_only() -> None:
    encoder = VaryingPositions(codons(), "GCTAAAGCT", [0, 2])
    strings = encoder.encode(["GCTAAAGCC", "GCCAAAGCT", "GCTAAAGCT"])
    kernel = bound(LetterSubsequenceKernel(order=1, normalize=False, match_decay=1.0), encoder)
    # Six letters each, of which those of one codon's third place differ, or of two.
    assert kernel.cross(strings).tolist() == [[6.0, 4.0, 5.0], [4.0, 6.0, 5.0], [5.0, 5.0, 6.0]]


def test_symbols_must_be_known() -> None:
    strings = codons().encode(GENES)
    for kernel in (LetterSubsequenceKernel(), LetterNgramKernel(), LetterOneHotKernel(), LetterHammingKernel()):
        with pytest.raises(InputError, match=r"bind_symbols\(kernel, encoder\) first"):
            kernel.cross(strings)
        with pytest.raises(InputError, match="not their columns one by one"):
            kernel.forward(strings.to_tensor(), strings.to_tensor(), last_dim_is_batch=True)


@pytest.mark.parametrize(("of_letters", "of_symbols"), [PAIRS[1], PAIRS[3]])
def test_shares_of_symbols_are_those_of_their_letters(of_letters: Any, of_symbols: Any) -> None:
    encoder = codons()
    kernel, plain = bound(of_letters, encoder), of_symbols.double()
    strings, letters = encoder.encode(GENES), Encoder().encode(GENES)
    found = symbol_shares(kernel, strings.take([0]), strings)
    by_letter = symbol_shares(plain, letters.take([0]), letters)
    np.testing.assert_allclose(found, by_letter.reshape(3, 3, -1).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), kernel.cross(strings.take([0]), strings)[0], rtol=1e-12)


def test_shares_of_normalised_kernels_of_a_batch_sum_to_covariances() -> None:
    encoder = codons()
    strings = encoder.encode(GENES)
    kernel = bound(LetterSubsequenceKernel(order=3), encoder).at(torch.tensor([0.9, 0.5]), torch.tensor([0.3, 0.3]))
    found = symbol_shares(kernel, strings.take([0]), strings)
    assert found.shape == (2, 3, 5)
    np.testing.assert_allclose(found.sum(axis=1), kernel.cross(strings.take([0]), strings)[:, 0], rtol=1e-12)


def test_a_kernel_is_written_down_and_copied() -> None:
    encoder = codons()
    strings = encoder.encode(GENES)
    for kernel in (
        bound(LetterSubsequenceKernel(order=3, gap_decay=0.3), encoder),
        bound(LetterNgramKernel(2), encoder),
    ):
        for other in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
            np.testing.assert_array_equal(other.cross(strings), kernel.cross(strings))
        again = type(kernel).from_config(kernel.config())
        bind_symbols(again, encoder)
        np.testing.assert_array_equal(again.double().cross(strings), kernel.cross(strings))


@pytest.mark.parametrize(
    ("of_letters", "of_symbols"),
    [
        (LetterSubsequenceKernel, SubsequenceKernel),
        (LetterNgramKernel, NgramKernel),
        (LetterOneHotKernel, OneHotKernel),
        (LetterHammingKernel, HammingKernel),
    ],
)
def test_surrogates_learn_from_bases(of_letters: Any, of_symbols: Any) -> None:
    space = CodonSpace("MARNDCLKVS")
    rng = np.random.default_rng(3)
    genes = [space.key(gene) for gene in space.sample(24, rng)]
    values = [float(gene.count("G") - gene.count("TA")) + rng.normal(0, 0.1) for gene in genes]
    found = []
    for kernel, encoder in ((of_letters, space.encoder), (of_symbols, Encoder())):
        for model in (FullyBayesianGP(kernel(), encoder=encoder), StringGP(kernel(), encoder=encoder)):
            model.fit(genes[:18], values[:18], rng=np.random.default_rng(0))
            found.append(np.concatenate(model.predict(genes[18:])))
    # The grid of decays gives the same to the last digits; a fit or a chain may stop a little elsewhere.
    exact = of_letters is LetterSubsequenceKernel
    np.testing.assert_allclose(found[0], found[2], rtol=1e-6 if exact else 1e-3)
    np.testing.assert_allclose(found[1], found[3], rtol=1e-2)


def test_a_kernel_at_other_decays_keeps_everything_else() -> None:
    encoder = codons()
    options: dict[str, Any] = {"order": 3, "normalize": False, "order_weights": [1.0, 0.3, 2.0], "partitions": 2}
    of_letters, plain = bound(LetterSubsequenceKernel(**options), encoder), SubsequenceKernel(**options).double()
    a, b = encoder.encode(GENES), Encoder().encode(GENES)
    match, gap = torch.tensor([0.9, 0.4]), torch.tensor([0.3, 0.6])
    found = of_letters.at(match, gap).cross(a)
    for number in range(2):
        single = SubsequenceKernel(match_decay=float(match[number]), gap_decay=float(gap[number]), **options)
        np.testing.assert_allclose(found[number], single.cross(b), rtol=1e-12)
    np.testing.assert_allclose(found, plain.at(match, gap).cross(b), rtol=1e-12)


def test_sums_are_grams_before_they_are_normalised() -> None:
    encoder = codons()
    options: dict[str, Any] = {"order": 3, "order_weights": [1.0, 0.3, 2.0], "partitions": 2}
    a, b = encoder.encode(GENES), Encoder().encode(GENES)
    found = bound(LetterSubsequenceKernel(**options), encoder).sums(a, [0.9, 0.4], 0.3)
    for match, sums in zip([0.9, 0.4], found, strict=True):
        single = SubsequenceKernel(match_decay=match, gap_decay=0.3, normalize=False, **options)
        np.testing.assert_allclose(sums, single.cross(b), rtol=1e-12)


def test_a_grid_of_parameters_is_that_on_letters() -> None:
    space = CodonSpace("MARNDCLKVS")
    rng = np.random.default_rng(3)
    genes = [space.key(gene) for gene in space.sample(24, rng)]
    values = [float(gene.count("G") - gene.count("TA")) + rng.normal(0, 0.1) for gene in genes]
    found = []
    for kernels, encoder in (
        ([LetterSubsequenceKernel(partitions=3), LetterOneHotKernel()], space.encoder),
        ([SubsequenceKernel(partitions=3), OneHotKernel()], Encoder()),
    ):
        model = FullyBayesianGP(
            kernels, [GridSampler(), GridSampler()], weights="stacking", encoder=encoder, mean_std=0
        )
        model.fit(genes[:18], values[:18], rng=np.random.default_rng(0))
        found.append(np.concatenate(model.predict(genes[18:])))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


def test_more_letters_than_a_byte_holds() -> None:
    symbols = [chr(1000 + 2 * number) + chr(1001 + 2 * number) for number in range(200)]
    alphabet = Alphabet(symbols)
    strings = EncodedStrings.from_tokens(np.array([[1, 200], [200, 129], [1, 129]], dtype=np.uint8))
    found = letters_of(strings, SymbolLetters(alphabet))
    assert found.tokens.tolist() == [[1, 2, 399, 400], [399, 400, 257, 258], [1, 2, 257, 258]]
    two = letters_of(EncodedStrings.from_tokens(np.array([[201, 202]], dtype=np.uint8)), SymbolLetters(alphabet))
    assert two.tokens.tolist() == [[401, 401, 402, 402]]
    many = Alphabet([f"{chr(0x4E00 + number % 20_000)} {number}" for number in range(60_000)])
    with pytest.raises(InputError, match="more than 65,535 different letters"):
        SymbolLetters(many).table(65_540)


def test_precisions_are_those_of_the_kernel_on_symbols() -> None:
    encoder = codons()
    strings = encoder.encode(GENES)
    x = strings.to_tensor()
    for kernel in (bound(LetterSubsequenceKernel(), encoder), bound(LetterNgramKernel(), encoder)):
        assert kernel.cross(strings, dtype=np.float32).dtype == np.float32
        assert kernel.cross(strings).dtype == np.float64
        assert kernel(x.float()).to_dense().dtype == torch.float32
        assert kernel(x.long()).to_dense().dtype == torch.float64


def test_no_strings_have_no_covariances() -> None:
    encoder = codons()
    none, some = encoder.encode([]), encoder.encode(GENES)
    for unbound in (LetterSubsequenceKernel(), LetterNgramKernel(), LetterOneHotKernel(), LetterHammingKernel()):
        kernel = bound(unbound, encoder)
        assert kernel.cross(none, some).shape == (0, 5)
        assert kernel.self_similarity(none).shape == (0,)
        assert kernel(torch.zeros(0, 3).double(), some.to_tensor()).to_dense().shape == (0, 5)
    assert bound(LetterSubsequenceKernel(), encoder)(torch.zeros(2, 0).double()).to_dense().tolist() == [[0, 0], [0, 0]]


def test_shares_of_symbols_of_several_lengths() -> None:
    encoder = Encoder("smiles")
    kernel = bound(LetterSubsequenceKernel(order=2, normalize=False), encoder)
    strings = encoder.encode(["CClC", "ClCC"])
    by_letter = symbol_shares(
        SubsequenceKernel(order=2, normalize=False).double(), *(Encoder().encode([one]) for one in ("CClC", "ClCC"))
    )
    found = symbol_shares(kernel, strings.take([0]), strings.take([1]))[:, 0]
    assert found.tolist() == pytest.approx([by_letter[0, 0], by_letter[1, 0] + by_letter[2, 0], by_letter[3, 0]])


def test_models_of_one_space_share_the_letters_of_its_pool() -> None:
    encoder = codons()
    pool = encoder.encode(GENES)
    first = bound(LetterOneHotKernel(), encoder)
    spelt = first.spelt(pool)
    again = bound(LetterNgramKernel(), encoder)
    bind_symbols(first, encoder)
    assert again.spelt(pool) is spelt
    assert first.spelt(pool) is spelt
    assert bound(LetterOneHotKernel(), codons()).spelt(pool) is not spelt


def test_letter_kernels_are_bound_wherever_a_kernel_is_given() -> None:
    space = CodonSpace("MARNDCLKVS")
    rng = np.random.default_rng(0)
    genes = [space.key(gene) for gene in space.sample(12, rng)]
    pool = CandidateSet(genes, kind="dna", tokenizer=CodonTokenizer())
    labels = np.arange(12) % 2 == 0
    logits = []
    for kernel, encoder in ((LetterSubsequenceKernel(order=3), pool.encoder), (SubsequenceKernel(order=3), Encoder())):
        distances = StringGP(kernel, encoder=encoder).prior_distances(genes).columns([0])[:, 0]
        lead = KernelDistance(genes[0], kernel, encoder)(genes)
        found = kernel_pca(genes, StringGP(kernel, encoder=encoder), space=pool)
        logistic = KernelLogistic(kernel, encoder=encoder).fit(genes, labels, rng=rng).logits(genes)
        logits.append(np.concatenate([distances, lead, logistic, abs(found.coordinates).sum(1)]))
    np.testing.assert_allclose(logits[0], logits[1], rtol=1e-8, atol=1e-10)


def test_plates_of_yes_and_no_learn_from_bases() -> None:
    space = CodonSpace("MARNDCLKVS")
    genes = [space.key(gene) for gene in space.sample(40, np.random.default_rng(0))]
    labels = np.array([1.0 if gene.count("G") > 8 else -1.0 for gene in genes])
    model = BinomialGP("auto")
    model.bind(space)
    model.fit(genes, labels, rng=np.random.default_rng(0), trials=[8] * 40)
    mean, _ = model.predict(genes)
    assert np.mean((mean > 0) == (labels > 0)) > 0.8


def test_models_of_yes_and_no_know_the_letters_of_their_encoder_without_a_space() -> None:
    genes = [
        CodonSpace("MARNDCLKVS").key(gene) for gene in CodonSpace("MARNDCLKVS").sample(30, np.random.default_rng(0))
    ]
    labels = [1.0 if gene.count("G") > 8 else -1.0 for gene in genes]
    found = []
    for kernel, encoder in ((LetterSubsequenceKernel(order=2), codons()), (SubsequenceKernel(order=2), Encoder())):
        model = BinomialGP(StringGP(kernel, encoder=encoder))
        model.fit(genes, labels, rng=np.random.default_rng(0))
        found.append(np.array(model.predict(genes)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)


def test_a_restored_surrogate_evaluates_kernels_before_it_is_fitted() -> None:
    space = CodonSpace("MARNDCLKVS")
    genes = [space.key(gene) for gene in space.sample(12, np.random.default_rng(0))]
    fitted = FullyBayesianGP([LetterSubsequenceKernel(), LetterNgramKernel()], weights="stacking")
    fitted.bind(space)
    fitted.fit(genes, [float(gene.count("G")) for gene in genes], rng=np.random.default_rng(0))
    restored = FullyBayesianGP([LetterSubsequenceKernel(), LetterNgramKernel()], weights="stacking")
    restored.bind(space)
    restored.load_state_dict(fitted.state_dict())
    strings = space.encoder.encode(genes)
    expected = fitted.evaluator(strings.width).cross(strings, strings)
    np.testing.assert_array_equal(restored.evaluator(strings.width).cross(strings, strings), expected)
    # A state of a kernel on symbols is not one of a kernel on their letters.
    on_codons = FullyBayesianGP(SubsequenceKernel())
    on_codons.bind(space)
    on_codons.fit(genes, [float(gene.count("G")) for gene in genes], rng=np.random.default_rng(0))
    other = FullyBayesianGP(LetterSubsequenceKernel())
    other.load_state_dict(on_codons.state_dict())
    assert not other.drawn
