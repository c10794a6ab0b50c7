"""Which strings are allowed, and how to sample and check them."""

from seqopt.spaces.candidate_set import CandidateSet, as_space
from seqopt.spaces.candidates import candidate_strings
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.codons import CodonSpace
from seqopt.spaces.exact import ExactGene, ExactGenes, ExactRanking
from seqopt.spaces.grammar_space import GrammarSpace
from seqopt.spaces.local import LocalSpace
from seqopt.spaces.protocols import EvolvableSpace, PoolSpace, Space
from seqopt.spaces.unconstrained import StringSpace

__all__ = [
    "CandidateSet",
    "CodonScore",
    "CodonSpace",
    "EvolvableSpace",
    "ExactGene",
    "ExactGenes",
    "ExactRanking",
    "GrammarSpace",
    "LocalSpace",
    "PoolSpace",
    "Space",
    "StringSpace",
    "as_space",
    "candidate_strings",
]
