"""Exact design of genes by their secondary structure."""

from seqopt.folding.design import ExactFolding, FoldedGene
from seqopt.folding.refining import refine

__all__ = ["ExactFolding", "FoldedGene", "refine"]
