"""Covariance functions over strings, each a `gpytorch.kernels.Kernel` on rows of tokens or
of features.
"""

from seqopt.kernels import foreign as foreign  # gpytorch kernels are written down as ours are
from seqopt.kernels.autoregressive import AutoregressiveKernel, RecursiveKernel
from seqopt.kernels.composite import OnField, Product, Sum, bind_fields
from seqopt.kernels.context import CoregionalizationKernel, SameLevelKernel
from seqopt.kernels.degenerate import DegenerateKernel
from seqopt.kernels.hamming import HammingKernel
from seqopt.kernels.hierarchical import HierarchicalKernel
from seqopt.kernels.joint import JointKernel
from seqopt.kernels.levels import LevelKernel
from seqopt.kernels.mean_level import MeanLevelKernel
from seqopt.kernels.ngrams import NgramKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.reagents import BlockSimilarities, ReagentKernel
from seqopt.kernels.subsequence import SubsequenceKernel
from seqopt.kernels.substitution import SubstitutionKernel
from seqopt.kernels.tanimoto import MinMaxKernel, TanimotoKernel

__all__ = [
    "AutoregressiveKernel",
    "BlockSimilarities",
    "CoregionalizationKernel",
    "DegenerateKernel",
    "HammingKernel",
    "HierarchicalKernel",
    "JointKernel",
    "LevelKernel",
    "MeanLevelKernel",
    "MinMaxKernel",
    "NgramKernel",
    "OnField",
    "OneHotKernel",
    "Product",
    "ReagentKernel",
    "RecursiveKernel",
    "SameLevelKernel",
    "SubsequenceKernel",
    "SubstitutionKernel",
    "Sum",
    "TanimotoKernel",
    "bind_fields",
]
