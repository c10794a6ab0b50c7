"""Which strings are allowed, and how to sample and check them."""

from seqopt.spaces.candidate_set import CandidateSet, as_space
from seqopt.spaces.candidates import candidate_strings
from seqopt.spaces.codon_library import CodonLibrary
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.codons import CodonSpace
from seqopt.spaces.combinatorial import CombinatorialSpace
from seqopt.spaces.exact import ExactGene, ExactGenes, ExactRanking
from seqopt.spaces.grammar_space import GrammarSpace
from seqopt.spaces.local import LocalSpace
from seqopt.spaces.parent_space import ParentSpace
from seqopt.spaces.protocols import EvolvableSpace, PoolSpace, RestrictedSpace, Space, keys_at, left_out
from seqopt.spaces.stored_pool import StoredPool
from seqopt.spaces.template_space import TemplateSpace
from seqopt.spaces.unconstrained import StringSpace

__all__ = [
    "CandidateSet",
    "CodonLibrary",
    "CodonScore",
    "CodonSpace",
    "CombinatorialSpace",
    "EvolvableSpace",
    "ExactGene",
    "ExactGenes",
    "ExactRanking",
    "GrammarSpace",
    "LocalSpace",
    "ParentSpace",
    "PoolSpace",
    "RestrictedSpace",
    "Space",
    "StoredPool",
    "StringSpace",
    "TemplateSpace",
    "as_space",
    "candidate_strings",
    "keys_at",
    "left_out",
]
