"""Libraries of degenerate codons: distributions by translating every codon, drawn and counted as such."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from seqopt.errors import InputError
from seqopt.spaces import CodonLibrary
from seqopt.spaces.codon_library import codon_distribution
from seqopt.strings.genetic_codes import genetic_code


def genes(*degenerate: str) -> list[str]:
    meant = {"N": "ACGT", "K": "GT", "S": "CG", "D": "AGT", "T": "T", "A": "A", "R": "AG"}
    return ["".join(bases) for bases in product(*(meant[base] for codon in degenerate for base in codon))]


@pytest.mark.parametrize(
    ("codon", "codons", "amino_acids", "stops"),
    [
        ("NNN", 64, 20, 3),
        ("NNK", 32, 20, 1),
        ("NNS", 32, 20, 1),
        ("NDT", 12, 12, 0),
        ("TAR", 2, 0, 2),
        ("ATA", 1, 1, 0),
    ],
)
def test_the_usual_codons_make_what_is_published(codon: str, codons: int, amino_acids: int, stops: int) -> None:
    counts = codon_distribution(codon)
    assert sum(counts.values()) == codons
    assert len(set(counts) - {"*"}) == amino_acids
    assert counts.get("*", 0) == stops
    assert Counter(map(genetic_code("standard").translate, genes(codon))) == Counter(counts)


def test_probabilities_are_shares_of_all_genes() -> None:
    library = CodonLibrary("NNK,NDT", parent="MAVA", positions="2,4")
    proteins = Counter("M" + a + "V" + b for a, b in map(genetic_code(1).translate, genes("NNK", "NDT")))
    total = sum(proteins.values())
    assert library.genes == total
    strings = list(library.enumerate())
    assert set(strings) == {protein for protein in proteins if "*" not in protein}
    assert library.size == len(strings)
    assert np.allclose(library.probability(strings), [proteins[string] / total for string in strings], rtol=1e-12)
    stopped = sum(count for protein, count in proteins.items() if "*" in protein) / total
    assert library.stop_probability == pytest.approx(stopped)
    assert library.probability(strings).sum() == pytest.approx(1 - stopped)
    assert library.probability(["MAVA", "MAV*", "AAVA", ""]).tolist()[1:] == [0, 0, 0]


def test_draws_have_the_distribution_of_the_library() -> None:
    library = CodonLibrary(["NNK"])
    strings = list(library.enumerate())
    drawn = library.sample_individuals(20_000, np.random.default_rng(0))
    expected = library.probability(strings)
    counts = np.array([drawn.count(string) for string in strings])
    assert chisquare(counts, expected / expected.sum() * len(drawn)).pvalue > 1e-3


def test_the_expected_number_of_variants_is_the_sum_over_all() -> None:
    library = CodonLibrary("NNK,NNS")
    probabilities = library.probability(list(library.enumerate()))
    for clones in (0, 1, 50, 3000):
        assert library.expected_variants(clones) == pytest.approx((1 - (1 - probabilities) ** clones).sum())
    assert CodonLibrary("ATA").expected_variants(1) == 1
    drawn = np.random.default_rng(0)
    picked = [len(set(library.sample_individuals(50, drawn))) for _ in range(300)]
    # Of 50 clones without stops somewhat more differ than of 50 with them.
    assert library.expected_variants(50) < np.mean(picked) < library.expected_variants(60)


def test_a_parent_that_its_codons_do_not_make_is_not_in_the_library() -> None:
    library = CodonLibrary("NDT", parent="MKVL", positions="2")
    assert not library.contains("MKVL")
    assert library.contains("MHVL")


@pytest.mark.parametrize(
    ("codons", "options", "message"),
    [
        ("NNX", {}, "'X' at place 3 of the codon 'NNX' is no IUPAC letter"),
        ("NN", {}, "'NN' is no degenerate codon"),
        ("", {}, "no codons"),
        ("TAA", {}, "the codon TAA makes nothing but stops"),
        ("NNK", {"positions": "2"}, "positions are those of a parent"),
        ("NNK", {"parent": "MKVL"}, "say at which positions"),
        ("NNK,NDT,NNK", {"parent": "MKVL", "positions": "1,2"}, "3 codons for 2 positions"),
        ("NNK", {"parent": "MKVL", "positions": "5"}, "there is no position 5"),
        ("NNK", {"parent": "MKXL", "positions": "1"}, "the parent has 'X' at position 3"),
        ("NNK", {"code": "martian"}, "unknown genetic code"),
    ],
)
def test_bad_input_is_named(codons: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        CodonLibrary(codons, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_library_of_one_protein_is_called_so() -> None:
    assert repr(CodonLibrary("TGG", parent="MKV", positions="2")) == "CodonLibrary(TGG at 1 position: 1 protein)"


def test_a_clone_with_a_stop_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="a clone with a stop codon is no protein of the library"):
        CodonLibrary(["NNK", "NNK"]).from_string("A*")
