"""Covariance functions over strings, each a `gpytorch.kernels.Kernel` on rows of tokens or
of features.
"""

from seqopt.kernels import foreign as foreign  # gpytorch kernels are written down as ours are
from seqopt.kernels.composite import OnField, Product, Sum, bind_fields
from seqopt.kernels.context import CoregionalizationKernel, SameLevelKernel
from seqopt.kernels.hamming import HammingKernel
from seqopt.kernels.joint import JointKernel
from seqopt.kernels.ngrams import NgramKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.subsequence import SubsequenceKernel
from seqopt.kernels.substitution import SubstitutionKernel
from seqopt.kernels.tanimoto import MinMaxKernel, TanimotoKernel

__all__ = [
    "CoregionalizationKernel",
    "HammingKernel",
    "JointKernel",
    "MinMaxKernel",
    "NgramKernel",
    "OnField",
    "OneHotKernel",
    "Product",
    "SameLevelKernel",
    "SubsequenceKernel",
    "SubstitutionKernel",
    "Sum",
    "TanimotoKernel",
    "bind_fields",
]
