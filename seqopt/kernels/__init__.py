"""Covariance functions over strings, each a `gpytorch.kernels.Kernel` on rows of tokens or
of features.
"""

from seqopt.kernels import foreign as foreign  # gpytorch kernels are written down as ours are
from seqopt.kernels.autoregressive import AutoregressiveKernel, RecursiveKernel
from seqopt.kernels.composite import OnField, Product, Sum, bind_fields
from seqopt.kernels.context import CoregionalizationKernel, SameLevelKernel
from seqopt.kernels.counts import CountsKernel
from seqopt.kernels.degenerate import DegenerateKernel
from seqopt.kernels.dense_features import LinearFeatureKernel, SmoothFeatureKernel
from seqopt.kernels.hamming import HammingKernel
from seqopt.kernels.helices import HelixKernel
from seqopt.kernels.hierarchical import HierarchicalKernel
from seqopt.kernels.joint import JointKernel
from seqopt.kernels.letters import (
    LetterHammingKernel,
    LetterNgramKernel,
    LetterOneHotKernel,
    LetterSubsequenceKernel,
)
from seqopt.kernels.levels import LevelKernel
from seqopt.kernels.mean_level import MeanLevelKernel
from seqopt.kernels.motifs import MotifKernel
from seqopt.kernels.ngrams import NgramKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.products import ProductSimilarities
from seqopt.kernels.reagents import BlockSimilarities, ReagentKernel
from seqopt.kernels.sites import SitesKernel
from seqopt.kernels.subsequence import SubsequenceKernel
from seqopt.kernels.substitution import SubstitutionKernel, SymbolTable, bind_symbols
from seqopt.kernels.tanimoto import MinMaxKernel, TanimotoKernel

__all__ = [
    "AutoregressiveKernel",
    "BlockSimilarities",
    "CoregionalizationKernel",
    "CountsKernel",
    "DegenerateKernel",
    "HammingKernel",
    "HelixKernel",
    "HierarchicalKernel",
    "JointKernel",
    "LetterHammingKernel",
    "LetterNgramKernel",
    "LetterOneHotKernel",
    "LetterSubsequenceKernel",
    "LevelKernel",
    "LinearFeatureKernel",
    "MeanLevelKernel",
    "MinMaxKernel",
    "MotifKernel",
    "NgramKernel",
    "OnField",
    "OneHotKernel",
    "Product",
    "ProductSimilarities",
    "ReagentKernel",
    "RecursiveKernel",
    "SameLevelKernel",
    "SitesKernel",
    "SmoothFeatureKernel",
    "SubsequenceKernel",
    "SubstitutionKernel",
    "Sum",
    "SymbolTable",
    "TanimotoKernel",
    "bind_fields",
    "bind_symbols",
]
