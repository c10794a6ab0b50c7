"""Covariance functions over strings, each a `gpytorch.kernels.Kernel` on token tensors."""

from seqopt.kernels.subsequence import SubsequenceKernel

__all__ = ["SubsequenceKernel"]
