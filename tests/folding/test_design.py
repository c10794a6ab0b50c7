"""Exact folding against enumeration, ViennaRNA and published optima."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import RNA

import seqopt.folding.design as design
from seqopt.errors import InputError
from seqopt.folding import ExactFolding, refine
from seqopt.folding.energies import UNIT
from seqopt.objectives import CodonAdaptationIndex, MinimumFreeEnergy
from seqopt.spaces import CodonSpace
from seqopt.spaces.specifications import FixedStretch, GCWindow, LongestRun, NoRareCodons
from seqopt.strings.genetic_codes import genetic_code

SYNONYMS = genetic_code("standard").synonyms

GLYCOPHORIN_E = "MYGKIIFVLLLSGIVSISASSTTGVAMHTSTSSSVTKSYISSQTNGITLINWWAMARVIFEVMLVVVGMIILISYCIR"
"""UniProt P15421."""

THREE_HELICES = "CACAGCCTACCTCGATTGAAAAATCGAGGATGGCTAGCTTCGGCTAGCCAAAGGCTGTGA"
"""Two hairpins in a helix: ((((((((.((((((((....)))))))).((((((((....)))))))).)))))))). by ViennaRNA."""


def genes_of(choices):
    return ["".join(codons) for codons in product(*choices)]


def evaluated(folding, gene, structure):
    details = design.model(folding.temperature)
    return round(RNA.fold_compound(gene.replace("T", "U"), details).eval_structure(structure), 2)


def most_helices_in_a_loop(structure):
    """Of all loops that a pair closes, this pair included."""
    counts, most = [], 0
    for symbol in structure:
        if symbol == "(":
            if counts:
                counts[-1] += 1
            counts.append(1)
        elif symbol == ")":
            most = max(most, counts.pop())
    return most


def random_choices(rng, *, codons=22, free=6):
    """Codons of a random protein, most of them fixed, rich in G and C so that they fold."""
    residues = rng.choice(list("LSRGPAIVTKCW"), size=codons)
    choices = [(str(rng.choice(SYNONYMS[residue])),) for residue in residues]
    for at in rng.permutation(codons)[:free]:
        options = rng.permutation(SYNONYMS[residues[at]])
        choices[at] = tuple(options[:2].tolist())
    return choices


def check_optimum(folding, *, tolerance=1e-9):
    genes = genes_of(folding.choices)
    energies = np.array(folding.energies_of(genes))
    scores = energies - folding.codon_weight * np.array([folding.log_adaptiveness(gene) for gene in genes])
    best = folding.optimum
    assert folding.least_score == pytest.approx(scores.min(), abs=tolerance)
    assert best.score == pytest.approx(scores.min(), abs=tolerance)
    assert best.energy == evaluated(folding, best.gene, best.structure) == energies[genes.index(best.gene)]


@pytest.mark.parametrize("seed", range(6))
def test_optimum_of_random_codons_is_that_of_enumeration(seed):
    check_optimum(ExactFolding(random_choices(np.random.default_rng(seed))))


@pytest.mark.parametrize("protein", ["MNDTEAI", "LSRM", "WCSGF"])
def test_optimum_of_all_genes_of_short_proteins_is_that_of_enumeration(protein):
    check_optimum(ExactFolding(protein))


@pytest.mark.parametrize("seed", range(3))
def test_multiloops_are_found(seed):
    rng = np.random.default_rng(seed)
    codons = [THREE_HELICES[at : at + 3] for at in range(0, len(THREE_HELICES), 3)]
    choices = [(codon,) for codon in codons]
    for at in rng.permutation(len(codons))[:5]:
        choices[at] = (codons[at], codons[at][:2] + str(rng.choice([base for base in "ACGT" if base != codons[at][2]])))
    folding = ExactFolding(choices)
    check_optimum(folding)
    assert most_helices_in_a_loop(folding.optimum.structure) == 3


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_codons_count(seed):
    choices = random_choices(np.random.default_rng(100 + seed), free=6)
    index = CodonAdaptationIndex("human")
    folding = ExactFolding(choices, adaptation=index, codon_weight=2.5)
    check_optimum(folding, tolerance=len(choices) * UNIT / 2)
    gene = folding.optimum.gene
    counted = sum(gene[at : at + 3] in index.adaptiveness for at in range(0, len(gene), 3))
    assert folding.log_adaptiveness(gene) == pytest.approx(counted * np.log(index([gene])[0]))


@pytest.mark.parametrize("options", [{"temperature": 55.0}, {"span": 25}, {"temperature": 20.0, "span": 40}])
def test_temperature_and_span_are_those_of_viennarna(options):
    check_optimum(ExactFolding(random_choices(np.random.default_rng(7)), **options))


def test_published_optima():
    folding = ExactFolding(GLYCOPHORIN_E)
    best = folding.optimum
    assert best.energy == -148.7
    assert folding.energies_of([best.gene]) == [-148.7]
    assert evaluated(folding, best.gene, best.structure) == -148.7
    assert CodonSpace(GLYCOPHORIN_E).contains(best.gene)
    assert ExactFolding("MNDTEAI").optimum.energy == -1.1


def test_all_best_genes_of_a_peptide_are_reached():
    # All 55,296 genes were folded without dangling ends: 8 have -10.10 kcal/mol, and none has less.
    genes = ExactFolding("TIKENIFGVS").near_optimal(8, 0.0, np.random.default_rng(5), diverse=False)
    assert len({gene.gene for gene in genes}) == 8
    assert {gene.energy for gene in genes} == {-10.1}


@pytest.mark.slow
def test_optimum_of_a_peptide_is_that_of_enumeration():
    folding = ExactFolding("TIKENIFGVS")
    energies = np.array(folding.energies_of(list(CodonSpace("TIKENIFGVS").enumerate())))
    assert energies.min() == folding.optimum.energy == -10.1
    assert (energies < -10.095).sum() == 8


@pytest.mark.parametrize("weight", [0.0, 1.5])
def test_genes_close_to_the_optimum(weight):
    protein = GLYCOPHORIN_E[:40]
    folding = ExactFolding(protein, adaptation=CodonAdaptationIndex("e_coli"), codon_weight=weight)
    genes = folding.near_optimal(6, 4.0, np.random.default_rng(6))
    assert len({gene.gene for gene in genes}) == 6
    assert [gene.score for gene in genes] == sorted(gene.score for gene in genes)
    assert genes[0] == folding.optimum
    space = CodonSpace(protein)
    for gene in genes:
        assert space.contains(gene.gene)
        assert gene.score <= folding.least_score + 4.0 + len(protein) * UNIT
        assert gene.energy == evaluated(folding, gene.gene, gene.structure)
        assert folding.energies_of([gene.gene])[0] <= gene.energy
    again = folding.near_optimal(6, 4.0, np.random.default_rng(6))
    assert again == genes


def test_fewer_genes_where_there_are_no_more():
    genes = ExactFolding([("ATG",), ("TTT", "TTC")]).near_optimal(5, 10.0, np.random.default_rng(0))
    assert {gene.gene for gene in genes} == {"ATGTTT", "ATGTTC"}
    assert {gene.structure for gene in genes} == {"......"}


def test_diverse_genes_differ_more():
    folding = ExactFolding(GLYCOPHORIN_E[:30])

    def least_difference(genes):
        letters = np.array([list(gene.gene) for gene in genes])
        different = (letters[:, None] != letters).sum(axis=2)
        return different[~np.eye(len(genes), dtype=bool)].min()

    spread = folding.near_optimal(5, 3.0, np.random.default_rng(8))
    drawn = folding.near_optimal(5, 3.0, np.random.default_rng(8), diverse=False)
    assert least_difference(spread) >= least_difference(drawn)


@pytest.mark.parametrize("beam", [1, 5, 40])
def test_a_beam_gives_true_energies_that_are_not_below_the_optimum(beam):
    protein = GLYCOPHORIN_E[:50]
    exact = ExactFolding(protein)
    kept = ExactFolding(protein, beam=beam)
    assert exact.least_score <= kept.optimum.energy <= 0
    assert kept.optimum.energy == evaluated(kept, kept.optimum.gene, kept.optimum.structure)
    assert ExactFolding(protein, beam=10_000).least_score == exact.least_score


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(design, "THREADED", 1)
    protein = GLYCOPHORIN_E[:30]
    done = []
    several = ExactFolding(protein, threads=3, progress=lambda *numbers: done.append(numbers))
    assert several.optimum == ExactFolding(protein, threads=1).optimum
    assert done[-1] == (90, 90)


def test_the_tables_are_as_large_as_was_said():
    folding = ExactFolding(GLYCOPHORIN_E[:20])
    said = folding.memory
    assert said == sum(table.nbytes for table in folding._tables)


def test_start_and_stop_are_kept():
    space = CodonSpace("MKTW", start="ATG", stop="TAA")
    assert space.contains(ExactFolding(space).optimum.gene)


def test_constraints_that_leave_codons_out_are_kept_to():
    space = CodonSpace("MKLRSIA", constraints=[FixedStretch(2, "AAGCTN"), NoRareCodons("human", 0.15)])
    folding = ExactFolding(space)
    genes = list(space.enumerate())
    assert folding.optimum.gene in genes
    assert folding.optimum.energy == min(folding.energies_of(genes))


def test_refined_genes_cannot_be_improved_by_one_codon():
    protein = "MKTAYIAK"
    folding = ExactFolding(protein)
    usual = MinimumFreeEnergy()
    gene, energy, spent = refine(folding.optimum.gene, folding.choices, usual)
    neighbours = [
        gene[: 3 * at] + codon + gene[3 * at + 3 :] for at, codons in enumerate(folding.choices) for codon in codons
    ]
    assert energy == usual([gene])[0] == min(usual(neighbours))
    assert energy <= usual([folding.optimum.gene])[0]
    assert refine(gene, folding.choices, usual, evaluations=1)[2] == 1 < spent


@pytest.mark.parametrize(
    ("protein", "options", "message"),
    [
        ("MXK", {}, "'X' at position 2"),
        (CodonSpace("MEFK", forbidden=["GAATTC"], gc=(0.2, 0.6)), {}, "motifs to avoid and bounds of the GC content"),
        (CodonSpace("MEFK", accept=len), {}, "a condition"),
        (CodonSpace("MEFK", constraints=[LongestRun(3)]), {}, "cannot keep to"),
        (CodonSpace("MEFK" * 5, constraints=[GCWindow(12, 0.0, 0.9)]), {}, "cannot keep to"),
        ([("ATG",), ("AT",)], {}, "position 2"),
        ([], {}, "no codons"),
        ("MK", {"codon_weight": 1.0}, "needs adaptation"),
        ("MK", {"codon_weight": -1.0}, "codon_weight is -1"),
        ("MK", {"span": 4}, "span is 4"),
        ("MK", {"beam": 0}, "beam is 0"),
        ("MK", {"temperature": float("nan")}, "temperature"),
        ([("ATG",)] * 9_001, {}, "9,001 codons"),
    ],
)
def test_what_cannot_be_folded_is_refused(protein, options, message):
    with pytest.raises(InputError, match=message):
        ExactFolding(protein, **options)


@pytest.mark.parametrize(("number", "within", "message"), [(0, 1.0, "number is 0"), (1, -1.0, "within is -1")])
def test_designs_out_of_range_are_refused(number, within, message):
    with pytest.raises(InputError, match=message):
        ExactFolding("MK").near_optimal(number, within, np.random.default_rng(0))
