"""Constraints on genes, one class each.

`seqopt.spaces.CodonSpace` takes any of them as ``constraints``, and so does ``--constraint`` in text
(`parse_constraint`).
"""

from seqopt.spaces.specifications.base import Cut, Frame, Specification, cuts_of
from seqopt.spaces.specifications.codons import FixedStretch, NoRareCodons
from seqopt.spaces.specifications.composition import EndMelting, GCWindow
from seqopt.spaces.specifications.motifs import (
    SIGNALS,
    ForbiddenMotif,
    ForbiddenSignal,
    LongestRun,
    TandemRepeats,
    restriction_sites,
    site_of,
)
from seqopt.spaces.specifications.parsing import CONSTRAINTS, SYNTHESIS, ConstraintForm, parse_constraint
from seqopt.spaces.specifications.repeats import Hairpins, UniqueKmers

__all__ = [
    "CONSTRAINTS",
    "SIGNALS",
    "SYNTHESIS",
    "ConstraintForm",
    "Cut",
    "EndMelting",
    "FixedStretch",
    "ForbiddenMotif",
    "ForbiddenSignal",
    "Frame",
    "GCWindow",
    "Hairpins",
    "LongestRun",
    "NoRareCodons",
    "Specification",
    "TandemRepeats",
    "UniqueKmers",
    "cuts_of",
    "parse_constraint",
    "restriction_sites",
    "site_of",
]
