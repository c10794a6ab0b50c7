"""Exact optima, rankings and samples of genes, against the enumeration of all genes with tests on strings."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.datasets import read_proteins
from seqopt.errors import InputError
from seqopt.objectives import CodonAdaptationIndex
from seqopt.spaces import CodonScore, CodonSpace, ExactGenes
from seqopt.spaces.exact import DYNAMIC, INTEGER
from seqopt.spaces.specifications import EndMelting, GCWindow, Hairpins, LongestRun, UniqueKmers
from seqopt.strings.genetic_codes import genetic_code
from seqopt.utils.resources import data_path

CODONS = ["".join(bases) for bases in product("ACGT", repeat=3)]
SHORT = st.text("FILKMEWSR", min_size=1, max_size=4)
SITES = st.lists(
    st.sampled_from(["GAATTC", "AAG", "TTT", "CTN", "GGTCTC", "TCTR", "AA", "TTAG"]), max_size=3, unique=True
)
FLANKS = st.text("ACGT", max_size=4)
IUPAC = {"N": "[ACGT]", "R": "[AG]", "Y": "[CT]"}


def other_strand(motif: str) -> str:
    return motif[::-1].translate(str.maketrans("ACGTRYN", "TGCAYRN"))


def pattern(motif: str) -> re.Pattern[str]:
    return re.compile("(?=" + "".join(IUPAC.get(letter, letter) for letter in motif) + ")")


def gc(gene: str) -> int:
    return sum(base in "GC" for base in gene)


def genes_of(protein, start=None, stop=None, sites=(), bounds=None, before="", behind=""):
    synonyms = genetic_code(1).synonyms
    choices = [list(synonyms[residue]) for residue in protein]
    if start:
        choices = [[start], *choices[protein[0] == "M" :]]
    if stop:
        choices.append([stop])
    both = {*sites, *map(other_strand, sites)}
    found = []
    for gene in map("".join, product(*choices)):
        whole = before + gene + behind
        inside = range(len(before), len(before) + len(gene))
        hit = any(
            set(range(match.start(), match.start() + len(site))) & set(inside)
            for site in both
            for match in pattern(site).finditer(whole)
        )
        if not hit and (bounds is None or bounds[0] <= gc(gene) / len(gene) <= bounds[1]):
            found.append(gene)
    return found


def scored(gene: str, codons, pairs, motifs, of_gc) -> float:
    own = [gene[i : i + 3] for i in range(0, len(gene), 3)]
    total = sum(codons.get(codon, 0) for codon in own)
    total += sum(pairs.get(pair, 0) for pair in pairwise(own))
    total += sum(weight * len(pattern(motif).findall(gene)) for motif, weight in motifs.items())
    return total + (0 if of_gc is None else -abs(gc(gene) - of_gc))


@st.composite
def scores(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codons = {codon: float(rng.normal()) for codon in CODONS}
    pairs = {}
    if draw(st.booleans()):
        pairs = {(a, b): float(rng.normal()) for a in CODONS for b in CODONS if rng.random() < 0.5}
    motifs = draw(st.dictionaries(st.sampled_from(["CG", "T", "AAAA", "CTNNA", "TTT"]), st.floats(-2, 2), max_size=2))
    return codons, pairs, motifs, draw(st.one_of(st.none(), st.integers(0, 9)))


def as_score(codons, pairs, motifs, target) -> CodonScore:
    of_gc = None if target is None else lambda counts: -np.abs(counts - target).astype(float)
    return CodonScore(codons, None, pairs, motifs, of_gc)


@settings(deadline=None, max_examples=60)
@given(
    SHORT,
    st.booleans(),
    st.booleans(),
    SITES,
    st.one_of(st.none(), st.sampled_from([(0.0, 0.4), (0.25, 0.5), (0.4, 1.0)])),
    FLANKS,
    FLANKS,
    scores(),
)
def test_rankings_are_those_of_all_genes(protein, with_start, with_stop, sites, bounds, before, behind, parts) -> None:
    start, stop = ("ATG" if with_start else None), ("TAA" if with_stop else None)
    expected = genes_of(protein, start, stop, sites, bounds, before, behind)
    options = {"start": start, "stop": stop, "forbidden": sites, "gc": bounds, "both_strands": True}
    if not expected:
        with pytest.raises(InputError, match=r"no gene|impossible"):
            CodonSpace(protein, upstream=before, downstream=behind, **options)
        return
    space = CodonSpace(protein, upstream=before, downstream=behind, **options)
    assert set(space.enumerate()) == set(expected)
    assert {gene for gene in genes_of(protein, start, stop) if space.contains(gene)} == set(expected)
    exact = ExactGenes(space, as_score(*parts))
    ranking = exact.best(40)
    values = sorted((scored(gene, *parts) for gene in expected), reverse=True)
    assert [one.score for one in ranking.genes] == pytest.approx(values[:40])
    assert [scored(one.gene, *parts) for one in ranking.genes] == pytest.approx(values[:40])
    assert len({one.gene for one in ranking.genes}) == min(40, len(expected))
    assert {one.gene for one in ranking.genes} <= set(expected)
    assert exact.graph.count() >= len(expected)
    assert ranking.method == DYNAMIC
    rng = np.random.default_rng(0)
    assert set(exact.sample(20, rng)) <= set(expected)


@settings(deadline=None, max_examples=8)
@given(st.text("FILKMEWSR", min_size=4, max_size=5), scores(), st.sampled_from([5, 6, 7]), st.sampled_from([4, 5]))
def test_windows_and_repeats_are_kept_by_the_best(protein, parts, window, k) -> None:
    constraints = [GCWindow(window, 0.2, 0.6), UniqueKmers(k, both_strands=False), LongestRun(3)]

    def keeps(gene: str) -> bool:
        windows = [gc(gene[i : i + window]) / window for i in range(len(gene) - window + 1)]
        words = [gene[i : i + k] for i in range(len(gene) - k + 1)]
        return (
            all(0.2 <= share <= 0.6 for share in windows)
            and len(set(words)) == len(words)
            and not re.search("AAAA|CCCC|GGGG|TTTT", gene)
        )

    expected = list(filter(keeps, genes_of(protein)))
    if not expected:
        with pytest.raises(InputError, match="no gene"):
            CodonSpace(protein, constraints=constraints)
        return
    space = CodonSpace(protein, constraints=constraints)
    values = sorted((scored(gene, *parts) for gene in expected), reverse=True)
    ranking = ExactGenes(space, as_score(*parts)).best(3)
    assert [one.score for one in ranking.genes] == pytest.approx(values[:3], abs=1e-7)
    assert {one.gene for one in ranking.genes} <= set(expected)
    assert {gene for gene in genes_of(protein) if space.contains(gene)} == set(expected)
    assert set(space.sample(5, np.random.default_rng(0))) <= set(expected)


def test_the_program_finds_what_enumeration_does_where_the_first_genes_all_break_something() -> None:
    # The best by content are all outside: 4^9 genes of glycine and its like, of which next to none is balanced.
    protein = "GAGPGARGAGP"
    space = CodonSpace(protein, constraints=[GCWindow(9, 0.3, 0.7), Hairpins(4, 14)])
    score = CodonScore(motifs={"G": 1.0, "C": 1.1})
    ranking = ExactGenes(space, score).best(4)
    assert ranking.method == INTEGER
    assert ranking.tolerance < 1e-6

    def keeps(gene: str) -> bool:
        if not all(0.3 <= gc(gene[i : i + 9]) / 9 <= 0.7 for i in range(len(gene) - 8)):
            return False
        return not any(
            gene[j : j + 4] == other_strand(gene[i : i + 4])
            for i in range(len(gene) - 3)
            for j in range(i + 7, min(i + 14 - 4, len(gene) - 4) + 1)
        )

    # The bases that are free are the third of each codon, and of arginine the first: few enough with the ends pruned.
    best: list[float] = []
    prefixes = [""]
    for residue in protein:
        prefixes = [
            p + codon for p in prefixes for codon in genetic_code(1).synonyms[residue] if keeps_so_far(p + codon)
        ]
    best = sorted((score.of(gene) for gene in prefixes if keeps(gene)), reverse=True)
    assert [one.score for one in ranking.genes] == pytest.approx(best[:4])


def keeps_so_far(prefix: str) -> bool:
    return all(0.3 <= gc(prefix[i : i + 9]) / 9 <= 0.7 for i in range(max(len(prefix) - 11, 0), len(prefix) - 8))


@pytest.mark.parametrize("temperature", [0.5, 2.0, math.inf])
def test_samples_are_distributed_as_the_score_says(temperature: float) -> None:
    space = CodonSpace("IKSE", forbidden=["AAAA"], gc=(0.1, 0.5), constraints=[GCWindow(6, 0.1, 0.7)])
    score = CodonScore({"ATT": 1.0, "AAG": -0.5, "AGC": 0.7}, pairs={("AAA", "TCT"): 0.8}, motifs={"GA": 0.3})
    genes = list(space.enumerate())
    weights = np.array([math.exp(score.of(gene) / temperature) for gene in genes])
    drawn = Counter(ExactGenes(space, score).sample(6000, np.random.default_rng(3), temperature))
    assert set(drawn) <= set(genes)
    assert chisquare([drawn[gene] for gene in genes], 6000 * weights / weights.sum()).pvalue > 1e-3


def test_the_longest_protein_has_its_optimum_at_once() -> None:
    proteins = {one.name: one.sequence for one in read_proteins(data_path("test_proteins.fasta"))}
    protein = proteins["abl1-1130"]
    sites = ["GAATTC", "GGATCC", "GGTCTC"]
    space = CodonSpace(
        protein, start="ATG", stop="TAA", forbidden=sites, both_strands=True, gc=(0.4, 0.6), constraints=[LongestRun(5)]
    )
    index = CodonAdaptationIndex("human")
    score = CodonScore({codon: math.log(weight) for codon, weight in index.adaptiveness.items()})
    best = ExactGenes(space, score).best(10)
    assert space.contains(best.best.gene)
    assert [one.score for one in best.genes] == sorted((one.score for one in best.genes), reverse=True)
    # Whatever would be better by one codon is not permitted.
    gene = best.best.gene
    for place in range(3, len(gene) - 3, 3):
        own = score.codons.get(gene[place : place + 3], 0.0)
        for codon in space.choices[place // 3]:
            if score.codons.get(codon, 0.0) > own + 1e-9:
                assert not space.contains(gene[:place] + codon + gene[place + 3 :])


def test_what_cannot_be_exact_is_refused() -> None:
    with pytest.raises(InputError, match="accept"):
        ExactGenes(CodonSpace("MK", accept=lambda gene: True), CodonScore())
    with pytest.raises(InputError, match="3 positions, and the genes have 2 codons"):
        ExactGenes(CodonSpace("MK"), CodonScore(positions=[{}] * 3))
    with pytest.raises(InputError, match="the weight of AAA is nan"):
        CodonScore({"AAA": math.nan})
    with pytest.raises(InputError, match="'X' at position 2 of the motif"):
        CodonScore(motifs={"AXA": 1.0})
    exact = ExactGenes(CodonSpace("MK"), CodonScore())
    with pytest.raises(InputError, match="temperature is 0"):
        exact.sample(1, np.random.default_rng(0), 0.0)
    with pytest.raises(InputError, match="k is 0"):
        exact.best(0)


@pytest.mark.parametrize("of_gc", [None, lambda counts: -abs(counts - 7) / 10])
def test_few_genes_are_looked_at_one_by_one_where_rounds_of_conditions_do_not_end(of_gc) -> None:  # type: ignore[no-untyped-def]
    # Each melting temperature that is wrong excludes next to nothing but the gene that has it.
    space = CodonSpace("ASQRG", constraints=[EndMelting(13, 26, 36), UniqueKmers(6)], upstream="CCC", downstream="TTTA")
    score = CodonScore(motifs={"T": -1.0}, of_gc=of_gc)
    code = genetic_code("standard")
    genes = ["".join(codons) for codons in product(*(code.synonyms[residue] for residue in "ASQRG"))]
    permitted = [gene for gene, good in zip(genes, space.keep(genes).tolist(), strict=True) if good]
    found = ExactGenes(space, score).best(10)
    assert len(found.genes) == len(permitted) == 9
    assert {one.gene for one in found.genes} == set(permitted)
    assert [one.score for one in found.genes] == pytest.approx(sorted(map(score.of, permitted), reverse=True))
