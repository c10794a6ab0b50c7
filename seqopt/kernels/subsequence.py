"""The sub-sequence string kernel as a gpytorch kernel.

References:
    Lodhi, H., Saunders, C., Shawe-Taylor, J., Cristianini, N., Watkins, C. (2002). Text classification using
    string kernels. JMLR 2, 419-444.
    Beck, D., Cohn, T. (2017). Learning kernels over strings using Gaussian processes. IJCNLP.
    Moss, H., Leslie, D., Beck, D., Gonzalez, J., Rayson, P. (2020). BOSS: Bayesian optimization over string
    spaces. NeurIPS.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
    University, section 4.4 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqopt.encoding import EncodedStrings, Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.kernels.cache import Sums, SumsCache, fingerprint
from seqopt.kernels.engines import check_engine, order_sums, paired_order_sums, self_order_sums

FloatArray = npt.NDArray[np.floating]

LOWEST_DECAY = 1e-4
"""Default lower bound of both decays; the upper bound is 1."""

CACHE_BYTES = 256 * 2**20
"""Default memory budget of the per-order sums that a kernel keeps."""

SCALED_ROWS = 1024
"""Rows normalised at a time by `SubsequenceKernel.cross`, so that no second matrix is needed."""


class SubsequenceKernel(gpytorch.kernels.Kernel):
    r"""Similarity of two strings by the sub-sequences they share, with gaps.

    .. math::

        k_n(a, b) = \sum_{1 \le |u| \le n} c_u(a)\, c_u(b), \qquad
        c_u(s) = \lambda_m^{|u|} \sum_{i_1 < \dots < i_{|u|},\; s_{i_1} \dots s_{i_{|u|}} = u}
                 \lambda_g^{\,i_{|u|} - i_1 + 1 - |u|}

    where the sum runs over all sub-sequences u of at most n symbols, contiguous or not, :math:`\lambda_m` is
    the match decay and :math:`\lambda_g` the gap decay per skipped symbol. Normalised (the default), the
    kernel is :math:`k_n(a,b) / \sqrt{k_n(a,a)\, k_n(b,b)}`: 1 for a string with itself. The empty string has
    no sub-sequence, so its covariance is 0 with every string, itself included, normalised or not.

    Inputs are tokens, ``... x n x W`` (float64 as models hold them), 0 = padding after the last symbol: see
    `seqopt.encoding`. The width W makes no difference, nor does the numbering of the symbols. Raw strings:
    `gram`; encoded strings without a graph, for pools: `cross`.

    The raw parameters ``raw_match_decay`` and ``raw_gap_decay`` *are* the decays. Their bounds reach L-BFGS-B
    through `botorch.fit.fit_gpytorch_mll` (no sigmoid), so a decay may be exactly 1, with a finite gradient,
    and ``kernel.raw_gap_decay.requires_grad_(False)`` freezes it there. Should another optimiser leave the
    box, the nearest decay inside is used.

    Gradients with respect to both decays are analytic (once differentiable). The dynamic program depends on
    the gap decay only; its results are kept, up to ``cache_bytes``, so that a step that changes the match
    decay, an output scale or the noise costs no new one.

    Args:
        order: Longest sub-sequence n >= 1.
        match_decay: :math:`\lambda_m`, in the bounds; a float, or a tensor that expands to ``batch_shape``.
        gap_decay: :math:`\lambda_g`, likewise.
        normalize: Divide by the self-similarities.
        engine: What computes: ``"auto"``, ``"cpu"`` or ``"reference"``, see
            `seqopt.kernels.engines.order_sums`.
        match_decay_prior: A gpytorch prior on the match decay.
        gap_decay_prior: A gpytorch prior on the gap decay.
        match_decay_bounds: Lowest and highest match decay, within (0, 1].
        gap_decay_bounds: Lowest and highest gap decay, within (0, 1].
        threads: Number of threads of the engine (default: that of `torch.get_num_threads`).
        cache_bytes: Memory budget of the sums kept, in bytes: n x rows x columns x 8, twice that with
            gradients. Larger Gram matrices are computed without storing per-order sums, and not kept.
        batch_shape: Batch shape of the decays.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: For an order below 1, decays or bounds outside (0, 1], or an unknown engine.

    Example:
        >>> kernel = SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5)
        >>> kernel.gram(["genomic", "genomes"])
        tensor([[1.0000, 0.6242],
                [0.6242, 1.0000]], dtype=torch.float64)
        >>> tokens = Encoder().encode(["ACGT", "AGT"]).to_tensor(width=6)
        >>> kernel(tokens).to_dense().shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        order: int = 5,
        match_decay: float | Tensor = 0.8,
        gap_decay: float | Tensor = 0.5,
        normalize: bool = True,
        *,
        engine: str = "auto",
        match_decay_prior: gpytorch.priors.Prior | None = None,
        gap_decay_prior: gpytorch.priors.Prior | None = None,
        match_decay_bounds: tuple[float, float] = (LOWEST_DECAY, 1.0),
        gap_decay_bounds: tuple[float, float] = (LOWEST_DECAY, 1.0),
        threads: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(batch_shape=batch_shape, active_dims=active_dims)
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
            raise InputError(f"order is {order!r}; it must be a whole number of at least 1")
        check_engine(engine)
        self.order = int(order)
        self.normalize = bool(normalize)
        self.engine = engine
        self.threads = threads
        self._cache = SumsCache(cache_bytes)
        self._register_decay("match_decay", match_decay, match_decay_bounds, match_decay_prior)
        self._register_decay("gap_decay", gap_decay, gap_decay_bounds, gap_decay_prior)

    def _register_decay(
        self,
        name: str,
        value: float | Tensor,
        bounds: tuple[float, float],
        prior: gpytorch.priors.Prior | None,
    ) -> None:
        lower, upper = bounds
        if not 0.0 < lower < upper <= 1.0:
            raise InputError(f"{name}_bounds are {bounds}; expected 0 < lowest < highest <= 1")
        constraint = NonTransformedInterval(lower, upper).double()
        # It keeps bounds in torch's default dtype, which rounds them in single precision.
        constraint.lower_bound.fill_(lower)
        constraint.upper_bound.fill_(upper)
        checked = _decay_tensor(name, value, lower, upper).expand(self.batch_shape).clone()
        self.register_parameter(f"raw_{name}", torch.nn.Parameter(checked))
        self.register_constraint(f"raw_{name}", constraint)
        if prior is not None:
            self.register_prior(
                f"{name}_prior",
                prior,
                _DecayGetter(name),
                _DecaySetter(name),
            )

    @property
    def match_decay(self) -> Tensor:
        """Decay per matched symbol, a tensor of the batch shape. Assign a float or tensor to change it."""
        return self._decay("match_decay")

    @match_decay.setter
    def match_decay(self, value: float | Tensor) -> None:
        self._set_decay("match_decay", value)

    @property
    def gap_decay(self) -> Tensor:
        """Decay per skipped symbol, a tensor of the batch shape. Assign a float or tensor to change it."""
        return self._decay("gap_decay")

    @gap_decay.setter
    def gap_decay(self, value: float | Tensor) -> None:
        self._set_decay("gap_decay", value)

    def _decay(self, name: str) -> Tensor:
        raw: Tensor = getattr(self, f"raw_{name}")
        constraint = getattr(self, f"raw_{name}_constraint")
        return raw.clamp(constraint.lower_bound.to(raw), constraint.upper_bound.to(raw))

    def _set_decay(self, name: str, value: float | Tensor) -> None:
        constraint = getattr(self, f"raw_{name}_constraint")
        bounds = float(constraint.lower_bound), float(constraint.upper_bound)
        raw: Tensor = getattr(self, f"raw_{name}")
        self.initialize(**{f"raw_{name}": _decay_tensor(name, value, *bounds).to(raw).expand_as(raw)})

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
            ``... x n x m`` in the dtype and on the device of ``x1``, computed in that dtype.

        Raises:
            InputError: If the inputs are no tokens.
        """
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
        match, gap = self.match_decay, self.gap_decay
        if last_dim_is_batch:
            match, gap = match.unsqueeze(-1), gap.unsqueeze(-1)
        batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], match.shape)  # type: ignore[no-untyped-call]
        same = x1 is x2 or (x1.shape == x2.shape and torch.equal(x1, x2))
        rows = x1.expand(*batch, *x1.shape[-2:]).reshape(batch.numel(), *x1.shape[-2:])
        columns = x2.expand(*batch, *x2.shape[-2:]).reshape(batch.numel(), *x2.shape[-2:])
        matches, gaps = match.expand(batch).reshape(-1), gap.expand(batch).reshape(-1)
        parts = []
        for row, column, element_match, element_gap in zip(rows, columns, matches, gaps, strict=True):
            a = EncodedStrings.from_tensor(row)
            b = None if same else EncodedStrings.from_tensor(column)
            at = _Evaluation.of(element_match, element_gap, _numpy_dtype(x1.dtype))
            terms = self._diagonal(a, b, at) if diag else self._matrix(a, b, at)
            values = (None if part is None else torch.from_numpy(part) for part in terms)
            parts.append(
                _WithDerivatives.apply(element_match.cpu(), element_gap.cpu(), *values)  # type: ignore[no-untyped-call]
            )
        shape = (*batch, x1.shape[-2]) if diag else (*batch, x1.shape[-2], x2.shape[-2])
        if not parts:
            return x1.new_zeros(shape)
        return torch.stack(parts).reshape(shape).to(x1)

    def _matrix(self, a: EncodedStrings, b: EncodedStrings | None, at: _Evaluation) -> _Terms:
        columns = a if b is None else b
        size = self.order * len(a) * len(columns) * at.dtype.itemsize * (1 + at.by_gap)
        if size <= self._cache.budget:
            key = ("pairs", fingerprint(a), None if b is None else fingerprint(b), at.gap, at.dtype)
            sums = self._cache.get(key, at.by_gap, lambda: order_sums(a, b, at.gap, **self._options(at)))
            values = self._weighted(sums, at)
        else:
            sums = order_sums(a, b, at.gap, weights=self._weights(at), **self._options(at))
            values = _terms(*sums)
        if not self.normalize:
            return values
        if b is None:
            diagonal = values.map(lambda part: np.diagonal(part).copy())
            return _normalized(values, diagonal.map(_as_column), diagonal.map(_as_row), ones=np.eye(len(a), dtype=bool))
        return _normalized(values, self._selves(a, at).map(_as_column), self._selves(b, at).map(_as_row))

    def _diagonal(self, a: EncodedStrings, b: EncodedStrings | None, at: _Evaluation) -> _Terms:
        if b is not None:
            sums = paired_order_sums(a, b, at.gap, weights=self._weights(at), **self._options(at))
            values = _terms(*sums)
            return _normalized(values, self._selves(a, at), self._selves(b, at)) if self.normalize else values
        if self.normalize:
            constant = (a.lengths > 0).astype(at.dtype)
            return _Terms(constant, np.zeros_like(constant), np.zeros_like(constant))
        return self._selves(a, at)

    def _selves(self, a: EncodedStrings, at: _Evaluation) -> _Terms:
        key = ("selves", fingerprint(a), at.gap, at.dtype)
        return self._weighted(
            self._cache.get(key, at.by_gap, lambda: self_order_sums(a, at.gap, **self._options(at))), at
        )

    def _options(self, at: _Evaluation) -> dict[str, Any]:
        return {
            "order": self.order,
            "derivative": at.by_gap,
            "dtype": at.dtype,
            "engine": self.engine,
            "threads": self.threads,
        }

    def _weights(self, at: _Evaluation) -> npt.NDArray[np.float64]:
        """Weights of the value and, where needed, of its derivative in the match decay."""
        orders = np.arange(1.0, self.order + 1.0)
        rows = [at.match ** (2.0 * orders)]
        if at.by_match:
            rows.append(2.0 * orders * at.match ** (2.0 * orders - 1.0))
        return np.stack(rows)

    def _weighted(self, sums: Sums, at: _Evaluation) -> _Terms:
        weights = self._weights(at).astype(at.dtype)
        by_gap = np.tensordot(weights[:1], sums[1], 1) if at.by_gap and sums[1] is not None else None
        return _terms(np.tensordot(weights, sums[0], 1), by_gap)

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings at the current decays, without a graph: the form for whole
        pools.

        Memory is that of the result and a fixed workspace; nothing is kept.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again and costs half.
            self_a: `self_similarity` of ``a``, if at hand; used only by a normalised kernel.
            self_b: `self_similarity` of ``b``.
            dtype: float64 or float32.

        Returns:
            ``len(a) x len(b)``, normalised if the kernel is.

        Raises:
            InputError: If the kernel has a batch shape, or an argument does not fit.
        """
        weights = self._current_weights()
        values, _ = order_sums(
            a,
            b,
            float(self.gap_decay.detach()),
            self.order,
            weights=weights,
            dtype=dtype,
            engine=self.engine,
            threads=self.threads,
        )
        if not self.normalize:
            return values
        if b is None:
            scale_a = scale_b = _inverse_root(np.diagonal(values).copy() if self_a is None else self_a)
        else:
            scale_a = _inverse_root(self.self_similarity(a) if self_a is None else self_a)
            scale_b = _inverse_root(self.self_similarity(b) if self_b is None else self_b)
        scale_a, scale_b = scale_a.astype(values.dtype), scale_b.astype(values.dtype)
        for start in range(0, len(values), SCALED_ROWS):
            rows = slice(start, start + SCALED_ROWS)
            # The product of the two scales first: it is symmetric to the last bit.
            values[rows] *= scale_a[rows, None] * scale_b[None, :]
        if b is None:
            np.fill_diagonal(values, scale_a > 0)
        return values

    def forget(self) -> None:
        """Free the per-order sums that are kept for further evaluations of the same strings, as after a fit."""
        self._cache.clear()

    def self_similarity(self, a: EncodedStrings) -> FloatArray:
        """Unnormalised k(s, s) of each string at the current decays, float64, ``len(a)``.

        Raises:
            InputError: If the kernel has a batch shape.
        """
        values, _ = self_order_sums(
            a,
            float(self.gap_decay.detach()),
            self.order,
            weights=self._current_weights(),
            engine=self.engine,
            threads=self.threads,
        )
        return values

    def _current_weights(self) -> FloatArray:
        if self.batch_shape:
            raise InputError(
                f"this kernel has decays of batch shape {tuple(self.batch_shape)}; index it first: kernel[i]"
            )
        return self.match_decay.item() ** (2.0 * np.arange(1.0, self.order + 1.0))

    def gram(
        self,
        strings: Sequence[str],
        others: Sequence[str] | None = None,
        tokenizer: str | Tokenizer = "characters",
    ) -> Tensor:
        """Covariances of raw strings at the current decays, dense, float64, without a graph.

        Args:
            strings: The strings of the rows.
            others: The strings of the columns (default: ``strings``).
            tokenizer: How strings are split into symbols, see `seqopt.encoding.resolve_tokenizer`.

        Raises:
            InputError: For an item that is no ``str``, or a kernel with a batch shape.

        Example:
            >>> SubsequenceKernel(order=2, normalize=False, match_decay=1.0).gram(["AB"], ["AB", "AXB", ""])
            tensor([[3.0000, 2.5000, 0.0000]], dtype=torch.float64)
        """
        encoder = Encoder(tokenizer)
        a = encoder.encode(strings)
        b = None if others is None else encoder.encode(others)
        return torch.from_numpy(self.cross(a, b))


class _Evaluation(NamedTuple):
    """Where the kernel is evaluated, which derivatives are needed, and in what precision."""

    match: float
    gap: float
    by_match: bool
    by_gap: bool
    dtype: np.dtype

    @classmethod
    def of(cls, match: Tensor, gap: Tensor, dtype: np.dtype) -> _Evaluation:
        graph = torch.is_grad_enabled()
        return cls(match.item(), gap.item(), graph and match.requires_grad, graph and gap.requires_grad, dtype)


class _Terms(NamedTuple):
    """Values of the kernel and their derivatives in the match decay and the gap decay."""

    value: FloatArray
    by_match: FloatArray | None
    by_gap: FloatArray | None

    def map(self, function: Callable[[FloatArray], FloatArray]) -> _Terms:
        by_match, by_gap = (None if part is None else function(part) for part in self[1:])
        return _Terms(function(self.value), by_match, by_gap)


class _WithDerivatives(torch.autograd.Function):
    """Attaches known derivatives in the two decays to known values."""

    @staticmethod
    def forward(
        ctx: Any, match: Tensor, gap: Tensor, value: Tensor, by_match: Tensor | None, by_gap: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(by_match, by_gap)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # Summed in double precision: an entry is small against the sum over a large Gram matrix.
        totals = (
            None if derivative is None else (gradient.double() * derivative).sum() for derivative in ctx.saved_tensors
        )
        return (*totals, None, None, None)


class _DecayGetter:
    """Reads a decay off a kernel; a class rather than a lambda so that kernels with priors pickle."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kernel: SubsequenceKernel) -> Tensor:
        return kernel._decay(self.name)


class _DecaySetter:
    """Sets a decay of a kernel."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kernel: SubsequenceKernel, value: Tensor) -> None:
        try:
            kernel._set_decay(self.name, value)
        except InputError as error:
            # botorch.optim.utils.sample_all_priors draws again when it reads these words in a RuntimeError.
            raise RuntimeError(f"{error} (out of bounds of its current constraints)") from error


def _terms(rows: FloatArray, gap_rows: FloatArray | None) -> _Terms:
    """Terms of sums weighted by `SubsequenceKernel._weights`."""
    return _Terms(rows[0], rows[1] if len(rows) > 1 else None, None if gap_rows is None else gap_rows[0])


def _normalized(values: _Terms, of_a: _Terms, of_b: _Terms, ones: npt.NDArray[np.bool_] | None = None) -> _Terms:
    """Values and derivatives of k(a, b) / sqrt(k(a, a) k(b, b)), and 0 where a self-similarity is 0.

    Args:
        values: k(a, b).
        of_a: k(a, a), broadcastable against ``values``.
        of_b: k(b, b), likewise.
        ones: Where a string meets itself, so that rounding leaves an exact 1 there.
    """
    scale = _inverse_root(of_a.value) * _inverse_root(of_b.value)
    value = values.value * scale
    if ones is not None:
        value[ones] = value[ones] > 0

    def derivative(of_value: FloatArray | None, a: FloatArray | None, b: FloatArray | None) -> FloatArray | None:
        if of_value is None or a is None or b is None:
            return None
        relative = a * _inverse_root(of_a.value) ** 2 + b * _inverse_root(of_b.value) ** 2
        result = of_value * scale - 0.5 * value * relative
        if ones is not None:
            result[ones] = 0.0
        return result

    return _Terms(
        value,
        derivative(values.by_match, of_a.by_match, of_b.by_match),
        derivative(values.by_gap, of_a.by_gap, of_b.by_gap),
    )


def _as_column(values: FloatArray) -> FloatArray:
    return values[:, None]


def _as_row(values: FloatArray) -> FloatArray:
    return values[None, :]


def _inverse_root(values: FloatArray) -> FloatArray:
    """1 / sqrt(values), 0 where a value is 0."""
    result = np.zeros_like(values)
    np.divide(1.0, np.sqrt(values), out=result, where=values > 0)
    return result


def _decay_tensor(name: str, value: float | Tensor, lower: float, upper: float) -> Tensor:
    try:
        tensor = torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} is {value!r}; expected a number in [{lower:g}, {upper:g}]") from None
    if not bool(((tensor >= lower) & (tensor <= upper)).all()):
        raise InputError(f"{name} is {value!r}; it must lie in [{lower:g}, {upper:g}]")
    return tensor


def _numpy_dtype(dtype: torch.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype in (torch.float32, torch.float16, torch.bfloat16) else np.dtype(np.float64)
