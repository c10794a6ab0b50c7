"""Codon features: counting by hand, DNA and RNA letters, scale, errors, use in a model."""

from __future__ import annotations

from collections import Counter

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel, ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import CodonFeatures, FeatureEncoder, Featurizer, codon_features
from seqopt.errors import InputError
from seqopt.spaces import CodonSpace

CODONS = [a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]
codon = st.text(alphabet="ACGT", min_size=3, max_size=3)
genes = st.lists(st.lists(codon, min_size=1, max_size=12).map("".join), min_size=1, max_size=6)


def by_hand(gene, typical=None):
    """The formula, string by string."""
    n = len(gene) // 3
    counts = Counter(gene[start : start + 3] for start in range(0, len(gene), 3))
    gc = sum(base in "GC" for base in gene)
    at = sum(base in "AT" for base in gene)
    size = n if typical is None else typical
    codons = [(counts[name] / n - 1 / 64) / (np.sqrt(63 / size) / 64) / 8 for name in CODONS]
    contents = [(share - 0.5) / (1 / np.sqrt(12 * size)) / 4 for share in (gc / (3 * n), at / (3 * n))]
    ratios = [(ratio - 1.0) / (4 / np.sqrt(12 * size)) / 4 for ratio in ((gc + 1) / (at + 1), (at + 1) / (gc + 1))]
    return [*codons, *contents, *ratios]


def test_is_a_featurizer_with_named_columns():
    features = CodonFeatures()
    assert isinstance(features, Featurizer)
    assert features.size == len(features.columns) == 68
    assert list(features.columns[:64]) == CODONS
    assert features.columns[64:] == ("GC content", "AT content", "GC ratio", "AT ratio")
    assert features.name != CodonFeatures(30).name != CodonFeatures(40).name


@settings(deadline=None, max_examples=50)
@given(strings=genes, typical=st.sampled_from([None, 1, 50]))
def test_rows_are_those_counted_by_hand(strings, typical):
    rows = CodonFeatures(typical)(strings)
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows, [by_hand(gene, typical) for gene in strings], rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(strings=genes)
def test_dna_rna_and_lower_case_are_the_same(strings):
    features = CodonFeatures()
    expected = features(strings)
    for other in (str.lower, lambda gene: gene.replace("T", "U"), lambda gene: gene.lower().replace("t", "u")):
        np.testing.assert_array_equal(features([other(gene) for gene in strings]), expected)


@settings(deadline=None, max_examples=30)
@given(strings=genes, seed=st.integers(0, 99))
def test_the_order_of_codons_makes_no_difference_but_their_frame_does(strings, seed):
    rng = np.random.default_rng(seed)
    shuffled = ["".join(rng.permutation([gene[i : i + 3] for i in range(0, len(gene), 3)])) for gene in strings]
    np.testing.assert_array_equal(CodonFeatures()(shuffled), CodonFeatures()(strings))
    shifted = CodonFeatures()(["ATGGCA", "TGGCAA"])
    assert not np.allclose(shifted[0, :64], shifted[1, :64])
    np.testing.assert_array_equal(shifted[0, 64:], shifted[1, 64:])


def test_genes_without_some_bases_have_finite_features():
    rows = CodonFeatures()(["GGC" * 500, "ATA" * 500])
    assert np.isfinite(rows).all()
    ratio, other = CodonFeatures.columns.index("GC ratio"), CodonFeatures.columns.index("AT ratio")
    assert rows[0, ratio] == pytest.approx(1500 * np.sqrt(12 * 500) / 16)
    assert rows[1, other] == rows[0, ratio]


@pytest.mark.parametrize("length", [50, 400])
def test_random_bases_have_the_stated_scale(length):
    rng = np.random.default_rng(0)
    bases = rng.choice(list("ACGT"), (1500, 3 * length))
    rows = CodonFeatures()(["".join(gene) for gene in bases])
    squares = np.square(rows[:750] - rows[750:])
    assert squares[:, :64].sum(1).mean() == pytest.approx(2.0, rel=0.05)
    assert squares[:, 64:].sum(1).mean() == pytest.approx(0.5, rel=0.25)
    for column in range(64, 68):
        assert rows[:, column].std() == pytest.approx(0.25, rel=0.15)


def test_synonymous_genes_are_as_far_apart_in_long_proteins_as_in_short_ones():
    rng = np.random.default_rng(1)
    medians = []
    for length in (20, 300):
        space = CodonSpace("".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), length)))
        rows = CodonFeatures()(space.sample(100, rng))
        medians.append(np.median(np.linalg.norm(rows[:50, None] - rows[None, 50:], axis=-1)))
    assert all(0.7 < median < 1.5 for median in medians)


def test_a_typical_number_of_codons_makes_frequencies_independent_of_length():
    gene = "ATGGCATTTCGA"
    own, typical = CodonFeatures(), CodonFeatures(100)
    np.testing.assert_allclose(typical([gene])[0, :66], typical([gene * 9])[0, :66], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(3.0 * own([gene])[0, :66], own([gene * 9])[0, :66], rtol=1e-12, atol=1e-12)


def test_representations_of_a_space_are_the_same_bases():
    rows = []
    for representation in ("codons", "bases"):
        space = CodonSpace("MAFW", representation=representation)
        rows.append(FeatureEncoder(CodonFeatures()).encode(sorted(space.enumerate())).values)
    np.testing.assert_array_equal(*rows)
    assert rows[0].shape == (8, 68)
    assert len(np.unique(rows[0], axis=0)) == 8


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(2)
    strings = ["".join(rng.choice(list("ACGT"), 3 * rng.integers(1, 20))) for _ in range(30)]
    expected = CodonFeatures()(strings)
    monkeypatch.setattr(codon_features, "BLOCK_STRINGS", 7)
    np.testing.assert_array_equal(CodonFeatures()(strings), expected)
    np.testing.assert_array_equal(CodonFeatures()(strings[3:4]), expected[3:4])
    with pytest.raises(InputError, match=r"string 11 \('ATX'\) has 'X' at position 3"):
        CodonFeatures()([*strings[:11], "ATX"])
    with pytest.raises(InputError, match=r"string 9 \('AT'\) has 2 letters"):
        CodonFeatures()([*strings[:9], "AT"])
    assert CodonFeatures()([]).shape == (0, 68)


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        (["ATG", "ATGA"], r"string 1 \('ATGA'\) has 4 letters: expected an integer of codons"),
        (["ATG", ""], r"string 1 \(''\) has 0 letters"),
        (["ATGATG", "ATGNTG"], r"string 1 \('ATGNTG'\) has 'N' at position 4 \(counting from 1\): a gene is written"),
        (["ATG", "XTG", "ATG"], r"string 1 \('XTG'\) has 'X' at position 1"),
        (["ATG", "AéG", "A-G"], r"string 1 \('AéG'\) has 'é' at position 2"),
        (["🧬TG"], r"string 0 .* has '🧬' at position 1"),
        (["A?G"], r"has '\?' at position 2"),
        (["ATG" * 40 + "AB"], r"string 0 \('(ATG){13}A\.\.\.'\) has 122 letters"),
        (["CCC" * 40 + "ABC"], r"\('C{40}\.\.\.'\) has 'B' at position 122"),
        ("ATG", r"expected a list of genes, got the single string 'ATG': write \['ATG'\]"),
    ],
)
def test_bad_strings_are_explained(strings, message):
    with pytest.raises(InputError, match=message):
        CodonFeatures()(strings)


@pytest.mark.parametrize("codons", [0, -3, 1.5, True, "many"])
def test_bad_settings_are_explained(codons):
    with pytest.raises(InputError, match=r"codons is .*; it must be an integer of at least 1"):
        CodonFeatures(codons)


def test_a_squared_exponential_kernel_learns_codon_usage():
    rng = np.random.default_rng(3)
    space = CodonSpace("LLSSRRAAGG")
    strings = list(dict.fromkeys(space.sample(80, rng)))
    y = torch.tensor([[float(gene.count("CTG") + gene.count("GCC"))] for gene in strings], dtype=torch.float64)
    y = (y - y.mean()) / y.std()
    x = FeatureEncoder(CodonFeatures()).encode(strings).to_tensor()
    kernel = ScaleKernel(RBFKernel(lengthscale_prior=gpytorch.priors.LogNormalPrior(0.0, 1.0))).double()
    kernel.base_kernel.lengthscale = 1.0
    model = SingleTaskGP(x[:50], y[:50], covar_module=kernel, outcome_transform=None)
    model.likelihood.noise = 0.01
    residuals = model.posterior(x[50:]).mean.detach() - y[50:]
    assert float(residuals.square().mean()) < 0.5 * float(y[50:].square().mean())
