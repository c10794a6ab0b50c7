"""Kernels that compare strings of one length position by position, with one lengthscale for how far changes reach.

`HammingKernel` counts the positions at which two strings differ. `PositionalKernel` is what it shares with
`seqopt.kernels.SubstitutionKernel`: distances that are sums over positions, computed once for the strings that a model
is fitted to, and a lengthscale whose default prior takes their scale.

References:
    Schoenberg, I. J. (1938). Metric spaces and positive definite functions. Trans. Am. Math. Soc. 44, 522-536.
    Kondor, R. I. and Lafferty, J. (2002). Diffusion kernels on graphs and other discrete input spaces. ICML
        (on hypercubes: a product over positions).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sized
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel, shown
from seqopt.kernels.one_hot import agreements, common_length

FloatArray = npt.NDArray[np.floating]
Tokens = npt.NDArray[np.unsignedinteger]

LENGTHSCALE_RATIO = 3.0
"""Median of the default prior of the lengthscale, in median distances of the strings that a model is fitted to."""

LENGTHSCALE_SPREAD = 1.0
"""Standard deviation of the logarithm of the lengthscale in its default prior."""

LENGTHSCALE_BOUNDS = (0.02, 1e4)
"""Default lowest and highest lengthscale."""

KEPT_BYTES = 1 << 28
"""Largest matrix of distances that a kernel keeps."""


class DistanceKernel(DescribedKernel):
    r"""What kernels with :math:`k(a, b) = \exp(-d(a, b) / \ell)` share: a lengthscale of the scale of distances.

    A subclass says what the distances are (`_new_distances`).

    Args:
        lengthscale: :math:`\ell`, in the unit of the distances; a float, or a tensor that expands to
            ``batch_shape x 1 x 1``. Default: 3, until `adapt` sees strings.
        lengthscale_prior: A gpytorch prior on the lengthscale. Default: log-normal about three median distances of the
            strings that a model is fitted to, with 95 % of its mass within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that are compared (default: all).
    """

    has_lengthscale = True

    normalize = False
    """`cross` does not need `self_similarity`."""

    _name = "distance"
    _first_lengthscale = LENGTHSCALE_RATIO
    _ratio = LENGTHSCALE_RATIO
    _lengthscales: int | None = None
    """How many there are, where there is one for each position; `None` for a single one."""

    def __init__(
        self,
        lengthscale: float | Tensor | None = None,
        *,
        lengthscale_prior: gpytorch.priors.Prior | None = None,
        lengthscale_bounds: tuple[float, float] = LENGTHSCALE_BOUNDS,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        lower, upper = lengthscale_bounds
        if not 0.0 < lower < upper < math.inf:
            raise InputError(f"lengthscale_bounds are {lengthscale_bounds}; expected 0 < lowest < highest")
        first = min(max(self._first_lengthscale, lower), upper)
        prior = LogNormalPrior(math.log(first), LENGTHSCALE_SPREAD) if lengthscale_prior is None else lengthscale_prior
        super().__init__(
            batch_shape=batch_shape,
            active_dims=active_dims,
            ard_num_dims=self._lengthscales,
            lengthscale_prior=prior,
            lengthscale_constraint=NonTransformedInterval(lower, upper, initial_value=lower),
        )
        self._bounds = (float(lower), float(upper))
        self._kept: tuple[Tensor, Tensor] | None = None
        self._adapts = lengthscale_prior is None, lengthscale is None
        self.lengthscale = first if lengthscale is None else lengthscale

    @property
    def lengthscale(self) -> Tensor:
        """The lengthscale, ``batch_shape x 1 x 1``. Assign a float or tensor to change it."""
        raw: Tensor = self.raw_lengthscale
        return raw.clamp(*self._bounds)

    @lengthscale.setter
    def lengthscale(self, value: float | Tensor) -> None:
        lower, upper = self._bounds
        try:
            tensor = torch.as_tensor(value, dtype=torch.float64).detach()
        except (TypeError, ValueError, RuntimeError):
            raise InputError(f"lengthscale is {value!r}; expected a number in [{lower:g}, {upper:g}]") from None
        if not bool(((tensor >= lower) & (tensor <= upper)).all()):
            raise InputError(f"lengthscale is {value!r}; it must lie in [{lower:g}, {upper:g}]")
        try:
            tensor = tensor.expand(self.raw_lengthscale.shape)
        except RuntimeError:
            raise InputError(
                f"lengthscale has shape {tuple(tensor.shape)}; expected one that expands to "
                f"{tuple(self.raw_lengthscale.shape)}"
            ) from None
        # The constraint's bounds are rounded, as the parameter is.
        constraint = self.raw_lengthscale_constraint
        self._set_lengthscale(tensor.to(self.raw_lengthscale).clamp(constraint.lower_bound, constraint.upper_bound))

    def _argument(self, name: str) -> Any:
        # What adapts to the strings is no choice of the user's.
        default_prior, default_lengthscale = self._adapts
        if (name == "lengthscale" and default_lengthscale) or (name == "lengthscale_prior" and default_prior):
            return None
        return self._bounds if name == "lengthscale_bounds" else super()._argument(name)

    def _described(self) -> Mapping[str, object]:
        return {"lengthscale": shown(self.lengthscale[..., 0, 0])}

    def adapt(self, x: Tensor) -> None:
        """Centre the default prior on three median distances of ``n x W`` tokens, and begin there.

        What was chosen by hand (the prior, the lengthscale) stays, and so does all where no two strings differ.

        Example:
            >>> from seqopt.encoding import Encoder
            >>> from seqopt.kernels import HammingKernel
            >>> kernel = HammingKernel()
            >>> kernel.adapt(Encoder().encode(["AAAA", "AABB", "BBBB"]).to_tensor())
            >>> kernel.lengthscale.item()  # distances are 2, 2 and 4
            6.0
        """
        prior, start = self._adapts
        n = x.shape[-2]
        distances = self._distances(x, x, False)[..., *torch.triu_indices(n, n, 1)]
        apart = distances[distances > 0]
        if not len(apart):
            return
        typical = min(max(self._ratio * float(apart.median()), self._bounds[0]), self._bounds[1])
        if prior:
            # The prior that is registered stays where it is, with its dtype and its closures.
            self.lengthscale_prior.loc = self.lengthscale_prior.loc.new_tensor(math.log(typical))
        if start:
            self.lengthscale = typical

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> Tensor:
        """Covariances of tokens, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x W`` tokens.
            x2: ``... x m x W`` tokens.
            diag: Only k(x1_i, x2_i), ``... x n``.
            last_dim_is_batch: Treat every column as a batch of strings of one symbol.
            params: Ignored.

        Returns:
            ``... x n x m`` on the device and in the dtype of ``x1``, float64 for integers.

        Raises:
            InputError: As the class says.
        """
        scale = self.lengthscale.double()
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
            scale = scale.unsqueeze(-3)
        found = self._covariances(x1, x2, diag, scale)
        return found.to(x1.device, x1.dtype if x1.is_floating_point() else torch.float64)

    def _covariances(self, x1: Tensor, x2: Tensor, diag: bool, scale: Tensor) -> Tensor:
        distances = self._distances(x1, x2, diag).to(scale.device)
        return (-distances / (scale[..., 0] if diag else scale)).exp()

    def _distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        """Distances of tokens, ``... x n x m`` or ``... x n``, float64; those of the latest Gram matrix are kept."""
        same = x1 is x2 or (x1.shape == x2.shape and x1.dtype == x2.dtype and torch.equal(x1, x2))
        if diag or not same:
            return self._new_distances(x1, x2, diag)
        kept = self._kept
        if kept is not None and kept[0].shape == x1.shape and torch.equal(kept[0], x1.detach().double()):
            return kept[1]
        distances = self._new_distances(x1, x1, diag)
        if distances.nbytes <= KEPT_BYTES:
            self._kept = x1.detach().double().clone(), distances
        return distances

    def _new_distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        """Distances of rows, ``... x n x m`` or ``... x n``, float64."""
        raise NotImplementedError

    def self_similarity(self, a: Sized) -> FloatArray:
        """k(s, s) of each string, which is 1: float64, ``batch_shape x len(a)``."""
        return np.ones((*self.batch_shape, len(a)))

    def variance(self, a: Sized, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, which is 1: float64, ``batch_shape x len(a)``.

        Args:
            a: The strings.
            self_a: Ignored.
        """
        return self.self_similarity(a)

    def _scales(self) -> npt.NDArray[np.float64]:
        """The lengthscales of a batch, B."""
        found: npt.NDArray[np.float64] = self.lengthscale.detach().double().cpu().reshape(-1).numpy()
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}


class PositionalKernel(DistanceKernel):
    """What kernels share whose distances are sums over positions of strings of one length."""

    one_length = True
    """It compares strings of one length only."""

    _name = "positional"

    def _new_distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        batch, a, b = paired_tokens(x1, x2, self._name)
        if diag:
            found = self._paired(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))
            return torch.from_numpy(found).reshape(*batch, x1.shape[-2])
        values = np.empty((*batch, x1.shape[-2], x2.shape[-2]))
        for element in np.ndindex(*batch):
            for block, distances in self._blocks(a[element], b[element]):
                values[element][block] = distances
        return torch.from_numpy(values)

    def _blocks(self, rows: Tokens, columns: Tokens) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
        """Distances of n strings of L symbols from m others, in blocks: where a block stands, and what stands there."""
        raise NotImplementedError

    def _paired(self, rows: Tokens, columns: Tokens) -> FloatArray:
        """Distances of n strings of L symbols from the n others at the same indices, float64."""
        raise NotImplementedError

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings, at the parameters as they are: the form for whole pools.

        Memory is that of the result, the tokens that differ at all once more, and a fixed workspace.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again.
            self_a: Ignored.
            self_b: Ignored.
            dtype: float64 or float32.

        Returns:
            ``batch_shape x len(a) x len(b)``. Lengthscales of a batch share the distances.

        Raises:
            InputError: For strings that are empty or differ in length, or another dtype.
        """
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        columns = a if b is None else b
        length = common_length(a.lengths, columns.lengths, kernel=self._name)
        scales = self._scales()
        values = np.empty((len(scales), len(a), len(columns)), dtype=dtype)
        self._fill(values, a.tokens[:, :length], columns.tokens[:, :length], scales)
        return values.reshape(*self.batch_shape, len(a), len(columns))

    def _fill(self, values: FloatArray, rows: Tokens, columns: Tokens, scales: npt.NDArray[np.float64]) -> None:
        for block, distances in self._blocks(rows, columns):
            for matrix, scale in zip(values, scales, strict=True):
                matrix[block] = np.exp(-distances / scale)


class HammingKernel(PositionalKernel):
    r"""Exponential of the number of positions at which two strings of one length differ.

    .. math:: k(a, b) = \exp\left(-\frac{1}{\ell} \sum_{p=1}^{L} [a_p \ne b_p]\right)

    The prior variance is 1; an output scale stands outside. The kernel is a product over positions of a factor 1 for
    equal symbols and :math:`e^{-1/\ell}` for unequal ones: a random function under it has interactions of all orders,
    whose shares of the variance fall with the order, the faster the longer the lengthscale, until it is the additive
    function of `seqopt.kernels.OneHotKernel` about a constant. The lengthscale is a number of substitutions: after so
    many, the correlation has fallen to 1/e. Positions that are the same in all strings make no difference, and are not
    compared. With :math:`\ell = L \ell'` it is the ``CategoricalKernel`` of BoTorch of lengthscale :math:`\ell'`.

    Inputs are tokens, ``... x n x W`` (float64 as models hold them), 0 = padding after the last symbol: see
    `seqopt.encoding`. The width W makes no difference, nor does the numbering of the symbols. Encoded strings, for
    pools: `cross`. Distances are computed on the processor, and those of the latest Gram matrix are kept (up to
    256 MiB), so that a step of a fit costs an exponential.

    Args:
        lengthscale: :math:`\ell`, in substitutions; a float, or a tensor that expands to ``batch_shape x 1 x 1``.
            Default: 3, until `adapt` sees strings.
        lengthscale_prior: A gpytorch prior on the lengthscale. Default: log-normal about three median distances of the
            strings that a model is fitted to, with 95 % of its mass within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: If the lengthscale or its bounds are out of range. When evaluated: for strings that are empty or
            differ in length, or padding inside a string.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> kernel = HammingKernel(lengthscale=2.0)
        >>> strings = Encoder().encode(["ACGT", "ACTT", "TGCA"])
        >>> kernel.cross(strings).round(4)
        array([[1.    , 0.6065, 0.1353],
               [0.6065, 1.    , 0.1353],
               [0.1353, 0.1353, 1.    ]])
    """

    _name = "Hamming"

    def _blocks(self, rows: Tokens, columns: Tokens) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
        rows, columns = differing(rows, columns)
        for block, agreeing in agreements(rows, columns):
            yield block, np.subtract(rows.shape[-1], agreeing, dtype=np.float64)

    def _paired(self, rows: Tokens, columns: Tokens) -> FloatArray:
        found: FloatArray = (rows != columns).sum(axis=-1, dtype=np.float64)
        return found

    def _fill(self, values: FloatArray, rows: Tokens, columns: Tokens, scales: npt.NDArray[np.float64]) -> None:
        rows, columns = differing(rows, columns)
        # There are few distances, and many pairs.
        powers = np.exp(-np.arange(rows.shape[-1], -1, -1) / scales[:, None]).astype(values.dtype)
        for block, agreeing in agreements(rows, columns):
            for matrix, table in zip(values, powers, strict=True):
                np.take(table, agreeing, out=matrix[block], mode="clip")


def differing(rows: Tokens, columns: Tokens) -> tuple[Tokens, Tokens]:
    """The positions at which not all of n and m strings agree, ``n x V`` and ``m x V``."""
    chosen = differing_positions(rows, columns)
    return (rows, columns) if chosen.all() else (rows[:, chosen], columns[:, chosen])


def differing_positions(rows: Tokens, columns: Tokens) -> npt.NDArray[np.bool_]:
    """At which of L positions not all of n and m strings agree; all where there are none."""
    if not len(rows) or not len(columns):
        return np.ones(rows.shape[-1], np.bool_)
    found: npt.NDArray[np.bool_] = (rows != rows[:1]).any(axis=0) | (columns != rows[:1]).any(axis=0)
    return found


def paired_tokens(x1: Tensor, x2: Tensor, kernel: str) -> tuple[torch.Size, Tokens, Tokens]:
    """Tokens of two batches of strings of one length, with what their batch shapes broadcast to.

    Args:
        x1: ``... x n x W``.
        x2: ``... x m x W``.
        kernel: What a message calls the kernel.

    Raises:
        InputError: For strings that are empty or differ in length, or rows that are not tokens.
    """
    batch = torch.Size(np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
    encoded = [EncodedStrings.from_tensor(x.reshape(x.shape[:-1].numel(), x.shape[-1])) for x in (x1, x2)]
    length = common_length(*(strings.lengths for strings in encoded), kernel=kernel)
    a, b = (
        np.broadcast_to(strings.tokens[:, :length].reshape(*x.shape[:-1], length), (*batch, x.shape[-2], length))
        for strings, x in zip(encoded, (x1, x2), strict=True)
    )
    return batch, a, b
