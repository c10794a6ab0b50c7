"""Synonymous genes: sizes, translation, constraints, repair, errors; genetic codes and the codon tokeniser."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.encoding import Tokenizer
from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.spaces import CodonSpace, left_out
from seqopt.spaces.specifications import NoRareCodons
from seqopt.strings.genetic_codes import genetic_code

SEEDS = st.integers(0, 2**32 - 1)
PROTEINS = st.text("ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=25)
SHORT = st.text("FILKMEW", min_size=1, max_size=4)
MOTIFS = st.lists(st.text("ACGTNR", min_size=2, max_size=5).filter(lambda m: set(m) != {"N"}), max_size=3)
BOUNDS = st.one_of(st.none(), st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda pair: (min(pair), max(pair))))
CODES = st.sampled_from([1, 2, 3, 4, 11])
LETTERS = {"N": "[ACGT]", "R": "[AG]", "Y": "[CT]"}


def brute_force(protein, code=1, start=None, stop=None, motifs=(), gc=None, both_strands=False):
    """All genes by the product of synonyms and tests on strings."""
    synonyms = genetic_code(code).synonyms
    choices = [list(synonyms[residue]) for residue in protein]
    if start:
        choices = [[start], *choices[protein[0] == "M" :]]
    if stop:
        choices.append([stop])
    both = [*motifs, *(reverse_complement(m) for m in motifs if both_strands)]
    patterns = [re.compile("".join(LETTERS.get(letter, letter) for letter in motif)) for motif in both]
    return [
        gene
        for gene in map("".join, product(*choices))
        if not any(pattern.search(gene) for pattern in patterns) and (gc is None or gc[0] <= gc_content(gene) <= gc[1])
    ]


def reverse_complement(motif):
    return motif[::-1].translate(str.maketrans("ACGTRYN", "TGCAYRN"))


def gc_content(gene):
    return sum(base in "GC" for base in gene) / len(gene)


def test_size_of_the_published_protein() -> None:
    space = CodonSpace("TIKENIFGVS")
    assert space.size == 55_296
    assert space.log10_size == pytest.approx(4.7427, abs=1e-4)
    genes = list(space.enumerate())
    assert len(genes) == len(set(genes)) == 55_296
    assert {space.code.translate(gene) for gene in genes} == {"TIKENIFGVS"}


def test_huge_sizes_are_exact() -> None:
    space = CodonSpace("L" * 1130)
    assert space.size == 6**1130
    assert space.log10_size == pytest.approx(1130 * np.log10(6))
    with pytest.raises(InputError, match=r"10\^879\.\d\d strings; at most 1,000,000"):
        space.enumerate()


@settings(deadline=None, max_examples=100)
@given(PROTEINS, CODES, SEEDS)
def test_genes_and_children_translate_to_the_protein(protein: str, code: int, seed: int) -> None:
    space = CodonSpace(protein, code)

    def everything(rng: np.random.Generator) -> list[list[str]]:
        first, second = space.sample_individuals(10, rng), space.sample_individuals(10, rng)
        return [first, second, space.mutate(first, rng), *space.cross(first, second, rng), space.sample(9, rng)]

    found = everything(np.random.default_rng(seed))
    assert {space.code.translate(gene) for genes in found for gene in genes} == {protein}
    assert all(space.contains(gene) for genes in found for gene in genes)
    assert [len(genes) for genes in found] == [10] * 5 + [min(9, space.size)]
    assert len(set(found[-1])) == len(found[-1])
    assert found == everything(np.random.default_rng(seed))


@settings(deadline=None, max_examples=50)
@given(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=2, max_size=20), SEEDS)
def test_crossing_swaps_prefixes_at_codon_boundaries(protein: str, seed: int) -> None:
    space = CodonSpace(protein)
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(10, rng), space.sample_individuals(10, rng)
    for a, b, c, d in zip(first, second, *space.cross(first, second, rng), strict=True):
        cuts = range(3, len(a), 3)
        assert (c, d) in {(b[:cut] + a[cut:], a[:cut] + b[cut:]) for cut in cuts}


def test_mutation_changes_one_codon_to_a_uniform_synonym() -> None:
    space = CodonSpace("MIWK")
    counts = Counter(space.mutate(["ATGATTTGGAAA"] * 6000, np.random.default_rng(0)))
    shares = {
        "ATGATTTGGAAA": 1 / 6 + 1 / 4,
        "ATGATCTGGAAA": 1 / 6,
        "ATGATATGGAAA": 1 / 6,
        "ATGATTTGGAAG": 1 / 4,
    }
    assert set(counts) == set(shares)
    assert chisquare([counts[s] for s in shares], [6000 * p for p in shares.values()]).pvalue > 1e-3


def test_samples_are_uniform() -> None:
    space = CodonSpace("MIKLE")
    genes = list(space.enumerate())
    counts = Counter(space.sample_individuals(7200, np.random.default_rng(1)))
    assert chisquare([counts[gene] for gene in genes]).pvalue > 1e-3
    rng = np.random.default_rng(2)
    distinct = Counter(gene for _ in range(1000) for gene in space.sample(5, rng))
    assert chisquare([distinct[gene] for gene in genes]).pvalue > 1e-3


@settings(deadline=None, max_examples=300)
@given(
    SHORT,
    CODES,
    st.booleans(),
    st.booleans(),
    MOTIFS,
    BOUNDS,
    st.booleans(),
    SEEDS,
)
def test_constraints_keep_exactly_the_genes_that_meet_them(
    protein: str,
    code: int,
    with_start: bool,
    with_stop: bool,
    motifs: list[str],
    gc: tuple[float, float] | None,
    both_strands: bool,
    seed: int,
) -> None:
    start = genetic_code(code).starts[0] if with_start else None
    stop = genetic_code(code).stops[0] if with_stop else None
    expected = brute_force(protein, code, start, stop, motifs, gc, both_strands)
    options = {"start": start, "stop": stop, "forbidden": motifs, "gc": gc, "both_strands": both_strands}
    if not expected:
        # The check before any sampling is exact: it refuses these settings, and no others.
        with pytest.raises(InputError, match=r"no gene|impossible"):
            CodonSpace(protein, code, **options)
        return
    space = CodonSpace(protein, code, **options)
    assert list(space.enumerate()) == expected
    assert {gene for gene in brute_force(protein, code, start, stop) if space.contains(gene)} == set(expected)
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(8, rng), space.sample_individuals(8, rng)
    for genes in (first, second, space.mutate(first, rng), *space.cross(first, second, rng)):
        assert set(genes) <= set(expected)
    assert set(space.sample(len(expected) + 1, rng)) == set(expected)


@settings(deadline=None, max_examples=40)
@given(
    st.text("ACDEFGHIKLNPQRSTVY", min_size=30, max_size=120),
    st.lists(st.sampled_from(["GAATTC", "GANTC", "GGATCC", "AAAA", "GCGC", "CCWGG"]), max_size=4, unique=True),
    st.floats(0.05, 0.9),
    st.sampled_from([0.02, 0.1]),
    SEEDS,
)
def test_long_genes_meet_tight_constraints(
    protein: str, motifs: list[str], position: float, width: float, seed: int
) -> None:
    synonyms = genetic_code(1).synonyms
    least, most = (sum(pick(map(gc_content, synonyms[r])) for r in protein) / len(protein) for pick in (min, max))
    low = least + position * (most - least)
    try:
        space = CodonSpace(protein, forbidden=motifs, gc=(low, low + width), both_strands=True)
    except InputError:
        assume(False)
    rng = np.random.default_rng(seed)
    first, second = space.sample(10, rng), space.sample_individuals(10, rng)
    patterns = [m.replace("N", "[ACGT]").replace("W", "[AT]") for m in motifs]
    for genes in (first, second, space.mutate(first, rng), *space.cross(first, second, rng)):
        for gene in genes:
            assert space.code.translate(gene) == protein
            assert low <= gc_content(gene) <= low + width
            for strand in (gene, reverse_complement(gene)):
                assert not any(re.search(pattern, strand) for pattern in patterns)


def test_a_gene_is_found_where_repair_by_chance_would_not_find_it() -> None:
    # Two genes of 2^200 are left. Drawing codons again moves the seams between their pieces about at random.
    pure = CodonSpace("F" * 200, forbidden=["TTCTTT", "TTTTTC"])
    rng = np.random.default_rng(0)
    assert set(pure.sample(2, rng)) == {"TTC" * 200, "TTT" * 200}
    # A third of the bases exactly, and the codons with one G or C may hardly stand side by side.
    motifs = ["CTTCTT", "TTGTTG", "CTTTTG", "TTGTTA", "CTTTTA", "TTACTA"]
    few = CodonSpace("L" * 40, gc=(1 / 3, 1 / 3), forbidden=motifs)
    assert all(gene.count("G") + gene.count("C") == 40 for gene in few.sample(20, rng))


def test_children_that_break_constraints_are_repaired() -> None:
    # The only cut makes GAGTTT and GAATTC. Rejection alone would give back the parent of the second.
    space = CodonSpace("EF", forbidden=["GAATTC"])
    first, second = space.cross(["GAATTT"] * 100, ["GAGTTC"] * 100, np.random.default_rng(0))
    assert set(first) == {"GAGTTT"}
    assert set(second) == {"GAATTT", "GAGTTT", "GAGTTC"}


def test_gc_content_is_repaired_by_other_residues() -> None:
    # Five of ten codons are AAG: a change of one must be made up for by another.
    space = CodonSpace("K" * 10, gc=(1 / 6, 1 / 6))
    parent = "AAAAAG" * 5
    children = space.mutate([parent] * 200, np.random.default_rng(0))
    differing = Counter(sum(a != b for a, b in zip(child, parent, strict=True)) for child in children)
    assert set(differing) == {0, 2}
    assert all(child.count("G") == 5 for child in children)


def test_accept_narrows_sampling_and_moves() -> None:
    space = CodonSpace("TIKENIFGVS", accept=lambda gene: "AAA" not in gene)
    rng = np.random.default_rng(0)
    first, second = space.sample(40, rng), space.sample_individuals(40, rng)
    for genes in (first, second, space.mutate(first, rng), *space.cross(first, second, rng)):
        assert all("AAA" not in gene for gene in genes)
    assert all("AAA" not in gene for gene in space.enumerate())


def test_a_space_passes_to_another_process() -> None:
    space = CodonSpace("TIKENIFGVS", forbidden=["GATC"], gc=(0.2, 0.5))
    copy = pickle.loads(pickle.dumps(space))
    assert copy.code == space.code
    assert copy.sample(5, np.random.default_rng(0)) == space.sample(5, np.random.default_rng(0))


def test_rna_letters_and_lower_case_are_read() -> None:
    space = CodonSpace("mkf", stop="uaa", forbidden=["uuuu"])
    assert space.from_string(" auGAAguucuaa\n") == "ATGAAGTTCTAA"
    assert space.key("augaaguucuaa") == "ATGAAGTTCTAA"
    assert space.forbidden == ("TTTT",)


def test_codons_or_bases_are_tokens() -> None:
    codons, bases = CodonSpace("MKF"), CodonSpace("MKF", representation="bases")
    assert codons.kind == bases.kind == "dna"
    assert isinstance(CodonTokenizer(), Tokenizer)
    assert len(codons.encoder.alphabet) == 61
    assert len(CodonSpace("MKF", stop="TAA").encoder.alphabet) == 62
    assert codons.encoder.encode(["ATGAAATTT"]).lengths.tolist() == [3]
    assert bases.encoder.encode(["ATGAAATTT"]).tokens.tolist() == [[1, 4, 3, 1, 1, 1, 4, 4, 4]]
    assert CodonTokenizer().tokenize_all(["ATGTGG", ""]) == [["ATG", "TGG"], []]
    with pytest.raises(InputError, match="'ATGT' has 4 letters"):
        codons.encoder.encode(["ATGT"])


def test_the_start_codon_is_that_of_a_leading_methionine_or_stands_before_the_protein() -> None:
    assert list(CodonSpace("MW", 11, start="GTG").enumerate()) == ["GTGTGG"]
    assert list(CodonSpace("W", 11, start="GTG", stop="TGA").enumerate()) == ["GTGTGGTGA"]


def test_genetic_codes_differ_where_they_should() -> None:
    assert genetic_code("standard").translate("TGAATACTTAGA") == "*ILR"
    assert genetic_code("vertebrate mitochondrial").translate("TGAATACTTAGA") == "WML*"
    assert genetic_code("yeast-mitochondrial").translate("TGAATACTTAGA") == "WMTR"
    assert genetic_code(4).translate("TGAATACTTAGA") == "WILR"
    assert genetic_code("11").translate("UGAAUACUUAGA") == "*ILR"
    assert genetic_code(11).starts == ("TTG", "CTG", "ATT", "ATC", "ATA", "ATG", "GTG")
    degeneracy = Counter(map(len, genetic_code(1).synonyms.values()))
    assert degeneracy == {1: 2, 2: 9, 3: 1, 4: 5, 6: 3}
    assert len(genetic_code(1).sense_codons) == 61
    with pytest.raises(
        InputError, match=r"unknown genetic code 'martian': choose a number or a name of 1 \(standard\)"
    ):
        genetic_code("martian")
    with pytest.raises(InputError, match="4 bases, which is not a multiple of three"):
        genetic_code(1).translate("ATGA")
    with pytest.raises(InputError, match="'X' at position 2"):
        genetic_code(1).translate("AXG")


@pytest.mark.parametrize(
    ("protein", "options", "said"),
    [
        ("", {}, "the protein is empty"),
        ("  ", {}, "the protein is empty"),
        ("MKBT", {}, "'B' at position 3 of the protein is not an amino acid"),
        ("MK1", {}, "'1' at position 3"),
        ("MK*T", {}, r"stop symbol '\*' at position 3"),
        (b"MK", {}, "expected str"),
        ("MK", {"code": 7}, "unknown genetic code 7"),
        ("MK", {"representation": "letters"}, "unknown representation 'letters'"),
        ("MK", {"start": "AAA"}, "'AAA' is not a start codon of genetic code 1"),
        ("MK", {"stop": "TGG"}, r"'TGG' is not a stop codon of genetic code 1 \(standard\): choose TAA, TAG, TGA"),
        ("MK", {"stop": "AGA"}, "choose TAA, TAG, TGA"),
        ("MK", {"forbidden": "GAATTC"}, "give a list of motifs"),
        ("MK", {"forbidden": [""]}, "'' is not a motif"),
        ("MK", {"forbidden": ["GAXTTC"]}, "'X' at position 3 of the motif 'GAXTTC'"),
        ("MK", {"gc": (0.6, 0.4)}, r"gc is \(0\.6, 0\.4\)"),
        ("MK", {"gc": (40, 60)}, r"gc is \(40, 60\)"),
        ("MK", {"gc": 0.5}, r"gc is 0\.5; it must be two fractions"),
        ("KMWK", {"forbidden": ["ACGT", "ATGTGG"]}, r"avoid the motif 'ATGTGG': .* end of codon 3 \(K-M-W\)"),
        ("MW", {"forbidden": ["CCACAT"], "both_strands": True}, "reverse complement of 'CCACAT'"),
        ("KK", {"gc": (0.5, 0.6)}, r"between 0\.5 and 0\.6 is impossible.* 0\.0000 and 0\.3333 \(0 to 2 of 6 bases\)"),
        ("GG", {"gc": (0, 0.6)}, r"0\.6667 and 1\.0000 \(4 to 6 of 6 bases\)"),
        ("KK", {"gc": (0.2, 0.3)}, "no number of G and C out of 6 bases"),
        ("FKE", {"forbidden": ["TTTA", "GGGG", "TTCA"]}, "no gene meets all of them: without TTTA, without TTCA$"),
        ("FKFK", {"forbidden": ["GGGG", "CAAG"], "gc": (0.3, 1)}, "without CAAG, with a GC content between 0.3 and 1$"),
    ],
)
def test_bad_settings(protein: str, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CodonSpace(protein, **options)


@pytest.mark.parametrize(
    ("gene", "said"),
    [
        ("ATGGAATTTAAAATGTAA", "it has 18 bases, not 15"),
        ("GAXTTTAAAATGTAA", "'X' at position 3 is not a base"),
        ("GAATTTAATATGTAA", r"codon 3 \(AAT, bases 7 to 9\) codes for N, but residue 3 is K"),
        ("GAATTTTAAATGTAA", "is a stop codon, but residue 3 is K"),
        ("GAATTTAAAATGTAG", "is not the stop codon TAA"),
        ("GAATTCAAAATGTAA", "it holds 'GAATTC' at base 1"),
        ("GAATTTAAAATGTAA", r"its GC content is 0\.1333 \(2 of 15\), not between 0\.2 and 0\.4"),
        ("GAGTTTAAGATGTAA", r"accept\(\) refuses it"),
    ],
)
def test_why_a_gene_is_outside(gene: str, said: str) -> None:
    space = CodonSpace("EFKM", stop="TAA", forbidden=["GAATTC"], gc=(0.2, 0.4), accept=lambda g: g != "GAGTTTAAGATGTAA")
    assert not space.contains(gene)
    with pytest.raises(InputError, match=said):
        space.from_string(gene)


@pytest.mark.parametrize(
    ("gene", "reason"),
    [
        ("GAATTTAAGATGTAA", None),
        ("GAATTCAAAATGTAA", "it holds 'GAATTC' at base 1"),
        ("GAATTTAAAATGTAA", "its GC content is 0.1333 (2 of 15), not between 0.2 and 0.4"),
        ("GAGTTTAAGATGTAA", "accept() refuses it"),
        ("gaauucaaaauguaa", "it holds 'GAATTC' at base 1"),
    ],
)
def test_why_a_gene_of_the_protein_is_left_out(gene: str, reason: str | None) -> None:
    space = CodonSpace("EFKM", stop="TAA", forbidden=["GAATTC"], gc=(0.2, 0.4), accept=lambda g: g != "GAGTTTAAGATGTAA")
    assert space.left_out(gene) == left_out(space, gene) == reason
    assert space.contains(gene) == (reason is None)


def test_genes_that_cannot_be_read_are_not_left_out_but_refused() -> None:
    space = CodonSpace("EFKM", stop="TAA", constraints=[NoRareCodons("e_coli", 0.3)])
    assert "left out by a constraint" in str(space.left_out("GAATTTAAGATGTAA"))
    for gene, said in {
        "GAATTTAAAATGTAG": "is not the stop codon TAA",
        "GAATTTAATATGTAA": "codes for N",
        "GAATTTAAAATG": "it has 12 bases",
        "GANTTTAAAATGTAA": "is not a base",
    }.items():
        with pytest.raises(InputError, match=said):
            space.left_out(gene)


def test_a_long_protein_is_sampled_mutated_and_crossed() -> None:
    rng = np.random.default_rng(0)
    protein = "M" + "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), size=1129))
    space = CodonSpace(protein, start="ATG", stop="TAA", forbidden=["GAATTC", "GGATCC"], gc=(0.4, 0.6))
    genes = space.sample(100, rng)
    children = space.mutate(genes, rng)
    assert all(map(space.contains, [*children, *space.cross(genes, children[::-1], rng)[0]]))
    differing = [
        sum(a[i : i + 3] != b[i : i + 3] for i in range(0, len(a), 3)) for a, b in zip(genes, children, strict=True)
    ]
    assert max(differing) >= 1
    assert np.median(differing) <= 1
