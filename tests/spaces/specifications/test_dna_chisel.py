"""Exact genes as DNA Chisel judges them, where it is installed.

Hairpins are left out: it counts halves with a loop of fewer than three bases, too.
"""

from __future__ import annotations

import pytest

from seqopt.objectives import CodonAdaptationIndex
from seqopt.spaces import CodonSpace, ExactGenes
from seqopt.spaces.specifications import GCWindow, LongestRun, UniqueKmers

chisel = pytest.importorskip("dnachisel", reason="DNA Chisel is not installed")

PROTEIN = "MSKGEELFTGVVPILVELDGDVNGHKFSVSGEGEGDATYGKLTLKFICTTGKLPVPWPTLVTTFSYG"


def test_the_optimum_keeps_to_what_another_program_checks_and_is_no_worse() -> None:
    constraints = [GCWindow(50, 0.35, 0.6), UniqueKmers(9), LongestRun(4)]
    sites = ["EcoRI", "BsaI", "BsmBI"]
    space = CodonSpace(PROTEIN, forbidden=sites, both_strands=True, gc=(0.4, 0.55), constraints=constraints)
    index = CodonAdaptationIndex("e_coli")
    gene = ExactGenes(space, index.codon_score(space)).best().best.gene
    theirs = [
        chisel.EnforceTranslation(),
        *(chisel.AvoidPattern(f"{site}_site") for site in sites),
        *(chisel.AvoidPattern(5 * base) for base in "ACGT"),
        chisel.EnforceGCContent(mini=0.4, maxi=0.55),
        chisel.EnforceGCContent(mini=0.35, maxi=0.6, window=50),
        chisel.UniquifyAllKmers(9),
    ]
    assert chisel.DnaOptimizationProblem(gene, constraints=theirs, logger=None).all_constraints_pass()
    problem = chisel.DnaOptimizationProblem(
        gene, constraints=theirs, objectives=[chisel.MaximizeCAI(species="e_coli")], logger=None
    )
    problem.optimize()
    assert index([problem.sequence])[0] <= index([gene])[0] + 1e-9
