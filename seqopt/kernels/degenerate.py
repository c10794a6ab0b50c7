"""Kernels of few functions of a fidelity that is a number.

References:
    Klein, A., Falkner, S., Bartels, S., Hennig, P. and Hutter, F. (2017). Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS (FABOLAS; its code has the basis (1, (1 - s)^2)).
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, section 3.4
        (which prints the basis (z, (1 - z)^2)).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels.base import shown
from seqopt.kernels.composite import FieldKernel
from seqopt.kernels.levels import FloatArray, column, fitting

Basis = Literal["linear", "thesis", "slope"]
"""Functions of z: (1, (1 - z)^2), (z, (1 - z)^2), or z alone."""

JITTER = 1e-6
"""Added to the diagonal of the covariance, so that no number has variance 0."""


class DegenerateKernel(FieldKernel):
    r"""A kernel of two functions of a number, whose weights have a learned covariance.

    .. math:: k(x, x') = \phi(z)^\top (R R^\top + \epsilon I) \, \phi(z'), \qquad z = (x - l) / (u - l),

    with :math:`\phi(z) = (1, (1 - z)^2)` ("linear": a target at z = 1, and a quadratic departure from it) or
    :math:`(z, (1 - z)^2)` ("thesis"), R lower triangular, and :math:`\epsilon` = 1e-6. At the target, z = 1, both are
    (1, 0). Times a kernel on strings: a training set of growing size, a simulation of growing length. The basis
    ``"slope"``, z alone, makes a value that is known of every string a linear term of the objective.

    By default what a number has in common with the target and its departure begin with variances 1 and 0.5, without
    correlation. The raw parameter ``raw_root`` is R row by row, without the nought above its diagonal.

    Args:
        basis: ``"linear"``, ``"thesis"`` or ``"slope"``.
        lower: l, the number that becomes 0.
        upper: u, the number that becomes 1.
        root: R to begin with, row by row: three numbers, or one for ``"slope"``.
        batch_shape: Batch shape of R.

    Raises:
        InputError: For an unknown basis, bounds that are equal or not finite, or a root that does not fit.

    Example:
        >>> kernel = DegenerateKernel("linear", root=[1.0, 0.0, 0.5])
        >>> kernel(torch.tensor([[0.0], [1.0]])).to_dense().round(decimals=3).tolist()
        [[1.25, 1.0], [1.0, 1.0]]
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    def __init__(
        self,
        basis: Basis = "linear",
        lower: float = 0.0,
        upper: float = 1.0,
        *,
        root: Any = None,
        batch_shape: torch.Size | None = None,
    ) -> None:
        super().__init__(batch_shape=batch_shape)
        if basis not in get_args(Basis):
            raise InputError(f"the basis is {basis!r}; expected one of {', '.join(get_args(Basis))}")
        if not (np.isfinite([lower, upper]).all() and lower != upper):
            raise InputError(f"the fidelities {lower!r} and {upper!r} become 0 and 1; expected two different numbers")
        self.basis = basis
        self.lower, self.upper = float(lower), float(upper)
        start = [1.0] if basis == "slope" else [1.0, 0.0, 0.5**0.5]
        shape = (*self.batch_shape, len(start))
        self.register_parameter("raw_root", torch.nn.Parameter(fitting("root", start if root is None else root, shape)))

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "basis": self.basis,
            "lower": self.lower,
            "upper": self.upper,
            "root": self.raw_root.detach().tolist(),
            "batch_shape": list(self.batch_shape) or None,
        }

    @property
    def weights(self) -> Tensor:
        """Covariance of the weights of the functions, ``batch_shape x d x d``."""
        raw = self.raw_root
        if self.basis == "slope":
            return raw[..., None].square() + JITTER
        zero = torch.zeros_like(raw[..., 0])
        rows = [torch.stack([raw[..., 0], zero], -1), torch.stack([raw[..., 1], raw[..., 2]], -1)]
        root = torch.stack(rows, -2)
        return root @ root.mT + JITTER * torch.eye(2, dtype=raw.dtype, device=raw.device)

    def _described(self) -> Mapping[str, object]:
        return {"*basis": repr(self.basis), "lower": self.lower, "upper": self.upper, "root": shown(self.raw_root)}

    def functions(self, x: Any) -> list[Any]:
        """The functions of rows of one column, each ``... x n``; of tensors or arrays."""
        z = (column(x, self) - self.lower) / (self.upper - self.lower)
        if self.basis == "slope":
            return [z]
        return [z * 0 + 1 if self.basis == "linear" else z, (1 - z) ** 2]

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x 1``.
            x2: ``... x m x 1``.
            diag: Only k(x1_i, x2_i), ``... x n``.
            params: Ignored.

        Raises:
            InputError: For rows of more than one column.
        """
        weights = self.weights.to(x1.device)
        rows = torch.stack(self.functions(x1), -1).to(weights)
        columns = torch.stack(self.functions(x2), -1).to(weights)
        if diag:
            return ((rows @ weights) * columns).sum(-1)
        return rows @ weights @ columns.mT

    def _features(self, a: FeatureRows) -> npt.NDArray[np.float64]:
        return np.stack(self.functions(a.dense().astype(np.float64)), -1)

    def _matrix(self) -> FloatArray:
        weights: FloatArray = self.weights.detach().double().cpu().numpy()
        return weights

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """k(s, s) of each item, float64, ``batch_shape x n``."""
        return self.variance(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each item, float64, ``batch_shape x n``; ``self_a`` is ignored."""
        return self.paired(a, a)

    def paired(self, a: FeatureRows, b: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i), float64, ``batch_shape x n``; ``self_a`` is ignored."""
        found: FloatArray = ((self._features(a) @ self._matrix()) * self._features(b)).sum(-1)
        return found

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded items, without a graph: see `CoregionalizationKernel.cross`."""
        rows = self._features(a)
        columns = rows if b is None else self._features(b)
        found: FloatArray = (rows @ self._matrix() @ columns.T).astype(dtype)
        return found
