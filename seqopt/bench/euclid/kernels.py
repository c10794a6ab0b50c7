"""Covariances over points of the unit cube and a last column that says how they are measured.

References:
    Kennedy, M. C., O'Hagan, A. (2000). Predicting the output from a complex computer code when fast approximations are
        available. Biometrika 87 (the autoregressive kernel).
    Rasmussen, C. E., Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 4.2 (degenerate
        kernels).
    Moss, H. B. (2021). PhD thesis, sections 3.5.3, 6.5.1 and D.3.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from gpytorch.kernels import Kernel, MaternKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

LEAST_SCALE = 1e-10
"""Least variance of k_g, k_f and the constant, in standardised units: well below what any value tells apart."""

COMMON = -1.0
"""What stands in place of a plate for what all plates have in common, g."""


class AutoregressiveKernel(Kernel):
    """f_L = d_L and f_l = a_l f_{l+1} + d_l for levels l = L - 1, ..., 0, where level 0 is the target.

    Every d_l has a Matern-5/2 kernel of its own, so cov(f_i(x), f_j(x')) is the sum over l >= max(i, j) of
    c_il c_jl k_l(x, x') with c_il = a_i ... a_{l-1}.

    Args:
        dim: Number of variables; the level is the next column.
        levels: Number of levels.
    """

    def __init__(self, dim: int, levels: int) -> None:
        super().__init__()
        self.dim, self.levels = dim, levels
        # One kernel with a batch of parameters computes all k_l at once.
        self.parts = get_matern_kernel_with_gamma_prior(dim, batch_shape=torch.Size([levels]))
        self.register_parameter("slopes", torch.nn.Parameter(torch.ones(levels - 1)))
        # Levels are thought to differ little until the data say otherwise.
        self.parts.outputscale = torch.tensor([0.1] * (levels - 1) + [1.0])

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: that of the parts is the levels, and is summed over."""
        return torch.Size([])

    def coefficients(self) -> Tensor:
        """c, of shape ``levels x levels``."""
        rows = [torch.zeros(self.levels, dtype=self.slopes.dtype) for _ in range(self.levels)]
        for i in range(self.levels):
            products = torch.cat([self.slopes.new_ones(1), torch.cumprod(self.slopes[i:], 0)])
            rows[i] = torch.cat([self.slopes.new_zeros(i), products])
        return torch.stack(rows)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances, ``... x n x m``, or ``... x n`` of the diagonal."""
        c = self.coefficients()
        first, second = c[x1[..., self.dim].long()], c[x2[..., self.dim].long()]
        x1, x2 = x1[..., None, :, : self.dim], x2[..., None, :, : self.dim]
        if diag:
            return torch.einsum("...nl,...nl,...ln->...n", first, second, self.parts(x1, x2, diag=True))
        return torch.einsum("...nl,...ml,...lnm->...nm", first, second, self.parts(x1, x2).to_dense())


class DegenerateKernel(Kernel):
    """k(x, x') phi(z)^T S phi(z') with phi(z) = (z, (1 - z)^2), S = L L^T and a Matern-5/2 kernel k (section 3.5.3).

    Args:
        dim: Number of variables; z is the next column.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.base = _matern(dim)
        # cov(f(x, 0), f(x, 1)) is L_10 L_00: to begin with, correlated by 0.8.
        self.register_parameter("factor", torch.nn.Parameter(torch.tensor([1.0, 0.8, 0.6])))

    def covariance(self) -> Tensor:
        """S, ``2 x 2``."""
        a, b, c = self.factor
        factor = torch.stack([torch.stack([a, torch.zeros_like(a)]), torch.stack([b, c])])
        return factor @ factor.T

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances, ``... x n x m``, or ``... x n`` of the diagonal."""
        z1, z2, s = basis(x1[..., self.dim]), basis(x2[..., self.dim]), self.covariance()
        x1, x2 = x1[..., : self.dim], x2[..., : self.dim]
        if diag:
            return (z1 @ s * z2).sum(-1) * self.base(x1, x2, diag=True)
        return (z1 @ s @ z2.transpose(-1, -2)) * self.base(x1, x2).to_dense()


class HierarchicalKernel(Kernel):
    """k_g(x, x') + [s = s'] k_f(x, x'), where k_f has the lengthscales of k_g, and a constant more (section D.3).

    The next column after x is the plate s; `COMMON` stands for g itself, which has no k_f.

    Args:
        dim: Number of variables.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.base = _matern(dim)
        self.register_parameter("log_scales", torch.nn.Parameter(torch.tensor([1.0, 0.1, 0.1]).log()))

    def scales(self) -> Tensor:
        """Variances of k_g and k_f, and the constant."""
        return self.log_scales.clamp_min(math.log(LEAST_SCALE)).exp()

    @torch.no_grad()
    def forget_plates(self) -> int:
        """Set k_f and the constant to their least values, where no gradient moves them; how many these are."""
        self.log_scales[1:] = math.log(LEAST_SCALE) - 1.0
        return len(self.log_scales) - 1

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances, ``... x n x m``, or ``... x n`` of the diagonal."""
        s1, s2 = x1[..., self.dim], x2[..., self.dim]
        x1, x2 = x1[..., : self.dim], x2[..., : self.dim]
        upper, lower, constant = self.scales()
        if diag:
            same = ((s1 == s2) & (s1 != COMMON)).to(x1.dtype)
            base = self.base(x1, x2, diag=True)
        else:
            same = ((s1[..., :, None] == s2[..., None, :]) & (s1[..., :, None] != COMMON)).to(x1.dtype)
            base = self.base(x1, x2).to_dense()
        return (upper + same * lower) * base + same * constant


def basis(z: Tensor) -> Tensor:
    """phi(z) = (z, (1 - z)^2), ``... x 2``."""
    return torch.stack([z, (1.0 - z) ** 2], dim=-1)


def _matern(dim: int) -> MaternKernel:
    return MaternKernel(nu=2.5, ard_num_dims=dim, lengthscale_prior=GammaPrior(3.0, 6.0))
