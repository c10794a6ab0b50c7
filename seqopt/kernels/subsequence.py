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

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from torch import Tensor

from seqopt.encoding import EncodedStrings, Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel, shown
from seqopt.kernels.cache import SumsCache
from seqopt.kernels.covariances import (
    Batches,
    Covariances,
    CovariancesOf,
    Matrix,
    Pairs,
    Program,
    check_finite,
    inverse_root,
    sums_key,
)
from seqopt.kernels.engines import check_engine, check_order, order_sums, self_order_sums
from seqopt.kernels.engines.bounds import largest_sum
from seqopt.kernels.interpolation import InterpolatedGram

FloatArray = npt.NDArray[np.floating]

LOWEST_DECAY = 1e-4
"""Default lower bound of both decays; the upper bound is 1."""

ORDER_WEIGHTS = (1e-6, 1e6)
"""Smallest and largest weight of an order."""

CACHE_BYTES = 2**30
"""Default memory budget of the sums that a kernel keeps: enough for 5,000 strings at order 5 with gradients."""

FLOAT32_LIMIT = 34.0
"""Base-10 logarithm of the sums up to which float32 is used for float32 inputs; it ends at 38."""

SCALED_ELEMENTS = 1 << 20
"""Covariances normalised at a time by `SubsequenceKernel.cross`, so that no second matrix is needed."""

RECENT_BYTES = 1 << 26
"""Memory of the per-order sums of recent Gram matrices that copies of a kernel share, for as long as any lives
(64 MiB)."""

RECENT_DECAYS = 8
"""Gap decays whose Gram matrices must fit into it: those of a grid are asked for in turn, and fewer would be forgotten
before they are asked for again."""

SMALL_MATRIX = 1 << 12
"""Pairs up to which the matrices of a batch are computed together, pair by pair."""


class SubsequenceKernel(DescribedKernel):
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

    With ``order_weights`` u each order counts u_i times, k = sum_i u_i match^(2i) h_i. With ``partitions`` m every
    string is cut into m contiguous parts at fractions of its own length, and the kernel is the sum over p of that of
    part p of one string with part p of the other (Moss 2021, section 4.5.1), normalised as a whole. It costs m times
    less, and overlooks sub-sequences that cross a cut.

    The raw parameters ``raw_match_decay``, ``raw_gap_decay`` and ``raw_order_weights`` *are* the decays and weights.
    Their bounds reach L-BFGS-B through `botorch.fit.fit_gpytorch_mll` (no sigmoid), so a decay may be exactly 1, with
    a finite gradient, and ``kernel.raw_gap_decay.requires_grad_(False)`` freezes it there. Should another optimiser
    leave the box, the nearest value inside is used.

    Gradients are analytic (once differentiable). The dynamic program depends on the gap decay only; the per-order
    sums of the latest Gram matrices are kept, up to ``cache_bytes``, so that a step that changes the match decay, the
    weights, an output scale or the noise costs no new one. Beyond that budget they are computed again for the
    gradient, block by block, and memory is that of the result and 200 MB.

    Copies of a kernel share the sums of the latest Gram matrices that were computed without a gradient, in another
    64 MiB, or in as much as ``cache_bytes`` if that is less: a model that averages over decays looks at the same
    strings again for every transform of their values.

    Sums are computed in the precision of the inputs; in float64 for float32 inputs whose sums might exceed float32.

    Args:
        order: Longest sub-sequence n >= 1.
        match_decay: :math:`\lambda_m`, in the bounds; a float, or a tensor that expands to ``batch_shape``.
        gap_decay: :math:`\lambda_g`, likewise.
        normalize: Divide by the self-similarities.
        order_weights: A positive weight for each order, ``n`` or ``batch_shape x n``, learned unless frozen. Default:
            none, which is a weight of 1 each.
        partitions: Number m >= 1 of contiguous parts, at most the length of the shortest string. 1 is exact.
        engine: What computes: ``"auto"`` or a name in `seqopt.kernels.engines.ENGINES`, see
            `seqopt.kernels.engines.order_sums`.
        match_decay_prior: A gpytorch prior on the match decay.
        gap_decay_prior: A gpytorch prior on the gap decay.
        match_decay_bounds: Lowest and highest match decay, within (0, 1].
        gap_decay_bounds: Lowest and highest gap decay, within (0, 1].
        threads: Number of threads of the engine (default: that of `torch.get_num_threads`).
        cache_bytes: Memory budget of the sums kept: a Gram matrix of N strings takes n N (N + 1) / 2 numbers (a
            quarter more below a thousand strings), twice that with a gradient in the gap decay. While a fit is
            interpolated, half of this goes to the interpolant.
        batch_shape: Batch shape of the decays.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: For an order or partitions below 1, decays, weights or bounds out of range, or an unknown engine.
            When evaluated: for inputs that are not tokens, strings shorter than ``partitions``, or covariances that
            exceed double precision before they are normalised (a gap decay near 1 with orders beyond about 40).

    Example:
        >>> kernel = SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5)
        >>> kernel.gram(["genomic", "genomes"])
        tensor([[1.0000, 0.6242],
                [0.6242, 1.0000]], dtype=torch.float64)
        >>> tokens = Encoder().encode(["ACGT", "AGT"]).to_tensor(width=6)
        >>> kernel(tokens).to_dense().shape
        torch.Size([2, 2])
    """

    costly = True
    """Covariances with a large pool are worth keeping on disk."""

    def __init__(
        self,
        order: int = 5,
        match_decay: float | Tensor = 0.8,
        gap_decay: float | Tensor = 0.5,
        normalize: bool = True,
        *,
        order_weights: Sequence[float] | Tensor | None = None,
        partitions: int = 1,
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
        check_order(order)
        check_engine(engine)
        if isinstance(partitions, bool) or not isinstance(partitions, int | np.integer) or partitions < 1:
            raise InputError(f"partitions is {partitions!r}; it must be an integer of at least 1")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is {threads!r}; it must be an integer of at least 1")
        if cache_bytes < 0:
            raise InputError(f"cache_bytes is {cache_bytes}; it must be at least 0")
        self.order = int(order)
        self.normalize = bool(normalize)
        self.partitions = int(partitions)
        self.engine = engine
        self.threads = threads
        self._cache = SumsCache(cache_bytes)
        self._recent = SumsCache(min(cache_bytes, RECENT_BYTES), shared=True)
        self._interpolated: InterpolatedGram | None = None
        self._worked_out: tuple[tuple[bytes, ...], tuple[npt.NDArray[np.float64], FloatArray, float]] | None = None
        self._bounds: dict[str, tuple[float, float]] = {}
        # Parameters start in torch's default precision, as in every gpytorch kernel; what was asked for is kept.
        self._given: dict[str, Tensor] = {}
        self._register("match_decay", match_decay, match_decay_bounds, match_decay_prior)
        self._register("gap_decay", gap_decay, gap_decay_bounds, gap_decay_prior)
        if order_weights is not None:
            self._register("order_weights", order_weights, ORDER_WEIGHTS, None)

    def _register(
        self,
        name: str,
        value: float | Sequence[float] | Tensor,
        bounds: tuple[float, float],
        prior: gpytorch.priors.Prior | None,
    ) -> None:
        lower, upper = bounds
        if name.endswith("decay") and not 0.0 < lower < upper <= 1.0:
            raise InputError(f"{name}_bounds are {bounds}; expected 0 < lowest < highest <= 1")
        shape = (*self.batch_shape, self.order) if name == "order_weights" else self.batch_shape
        self._bounds[name] = bounds
        self._given[name] = _checked(name, value, *bounds, shape)
        raw = _rounded(self._given[name], torch.get_default_dtype(), bounds)
        self.register_parameter(f"raw_{name}", torch.nn.Parameter(raw))
        constraint = NonTransformedInterval(lower, upper).double()
        # It keeps bounds in torch's default precision, which rounds them.
        constraint.lower_bound.fill_(lower)
        constraint.upper_bound.fill_(upper)
        self.register_constraint(f"raw_{name}", constraint)
        if prior is not None:
            self.register_prior(f"{name}_prior", prior, _Getter(name), _Setter(name))

    def _apply(self, fn: Any, recurse: bool = True) -> SubsequenceKernel:
        super()._apply(fn, recurse)
        for name, given in self._given.items():
            raw = getattr(self, f"raw_{name}")
            single = _rounded(given, torch.float32, self._bounds[name]).to(raw.device)
            if raw.dtype == torch.float64 and raw.shape == single.shape and torch.equal(raw.detach(), single.double()):
                # Now there is room for what was asked for.
                raw.data.copy_(given)
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in self._bounds:
            if not keep_vars:
                destination[f"{prefix}raw_{name}"] = self._actual(name).detach().double()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        for name, (lower, upper) in self._bounds.items():
            saved = state_dict.get(f"{prefix}raw_{name}")
            if isinstance(saved, Tensor):
                # The parameter may be in single precision; what was saved is kept next to it.
                self._given[name] = saved.detach().double().clamp(lower, upper).cpu().clone()

    @property
    def match_decay(self) -> Tensor:
        """Decay per matched symbol, a tensor of the batch shape. Assign a float or tensor to change it."""
        return self._actual("match_decay")

    @match_decay.setter
    def match_decay(self, value: float | Tensor) -> None:
        self._set("match_decay", value)

    @property
    def gap_decay(self) -> Tensor:
        """Decay per skipped symbol, a tensor of the batch shape. Assign a float or tensor to change it."""
        return self._actual("gap_decay")

    @gap_decay.setter
    def gap_decay(self, value: float | Tensor) -> None:
        self._set("gap_decay", value)

    @property
    def order_weights(self) -> Tensor | None:
        """Weight of each order, ``batch_shape x order``, if the kernel was given any. Assign to change them."""
        return self._actual("order_weights") if hasattr(self, "raw_order_weights") else None

    @order_weights.setter
    def order_weights(self, value: Sequence[float] | Tensor) -> None:
        if not hasattr(self, "raw_order_weights"):
            raise InputError("this kernel was built without order weights: pass order_weights to its constructor")
        self._set("order_weights", value)

    def _argument(self, name: str) -> Any:
        if name.endswith("_bounds"):
            return self._bounds[name.removesuffix("_bounds")]
        return self._cache.budget if name == "cache_bytes" else super()._argument(name)

    def _described(self) -> Mapping[str, object]:
        arguments: dict[str, object] = {
            "order": self.order,
            "match_decay": shown(self.match_decay),
            "gap_decay": shown(self.gap_decay),
        }
        if not self.normalize:
            arguments["normalize"] = False
        if (weights := self.order_weights) is not None:
            arguments["order_weights"] = shown(weights)
        if self.partitions > 1:
            arguments["partitions"] = self.partitions
        if self.engine != "auto":
            arguments["engine"] = repr(self.engine)
        return arguments

    def _actual(self, name: str) -> Tensor:
        raw: Tensor = getattr(self, f"raw_{name}")
        given = self._given[name].to(raw.device)
        if raw.shape == given.shape:
            single = _rounded(given, torch.float32, self._bounds[name])
            if torch.equal(raw.detach().double(), given) or torch.equal(raw.detach().double(), single.double()):
                return raw.double() + (given - raw.detach().double())
        return raw.clamp(*self._bounds[name])

    def _set(self, name: str, value: float | Sequence[float] | Tensor) -> None:
        raw: Tensor = getattr(self, f"raw_{name}")
        given = _checked(name, value, *self._bounds[name], raw.shape)
        self.initialize(**{f"raw_{name}": _rounded(given, raw.dtype, self._bounds[name]).to(raw.device)})
        self._given[name] = given.cpu()

    @property
    def _weights(self) -> Tensor:
        """Weight of each per-order sum, ``batch_shape x order``, float64."""
        orders = torch.arange(1, self.order + 1, device=self.raw_match_decay.device)
        weights = self.match_decay.double().unsqueeze(-1) ** (2 * orders)
        own = self.order_weights
        return weights if own is None else weights * own.double()

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
        weights, gaps = self._weights.cpu(), self.gap_decay.double().cpu()
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
            weights, gaps = weights.unsqueeze(-2), gaps.unsqueeze(-1)
        batch = torch.Size(np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], gaps.shape))
        n, m = x1.shape[-2], x2.shape[-2]
        together = batch.numel() == 1 or diag or n * m <= SMALL_MATRIX or unexpanded(x2) is not None
        if gaps.numel() == 1 and together:
            value = self._evaluate(x1, x2, weights.reshape(-1), gaps.reshape(()), batch, diag)
        else:
            rows = x1.expand(*batch, *x1.shape[-2:]).reshape(batch.numel(), *x1.shape[-2:])
            columns = x2.expand(*batch, *x2.shape[-2:]).reshape(batch.numel(), *x2.shape[-2:])
            own_weights = weights.expand(*batch, self.order).reshape(-1, self.order)
            one = torch.Size([])
            parts = [
                self._evaluate(*element, one, diag)
                for element in zip(rows, columns, own_weights, gaps.expand(batch).reshape(-1), strict=True)
            ]
            value = torch.stack(parts) if parts else x1.new_zeros(0)
        return value.reshape(*batch, n) if diag else value.reshape(*batch, n, m)

    def _evaluate(self, x1: Tensor, x2: Tensor, weights: Tensor, gap: Tensor, batch: torch.Size, diag: bool) -> Tensor:
        """Covariances at one gap decay, of matrices of a batch; the caller brings them into shape."""
        same = x1 is x2 or (x1.shape == x2.shape and torch.equal(x1, x2))
        dtype = x1.dtype if x1.is_floating_point() else torch.float64
        if diag and same and self.normalize:
            # 1 for all but the empty string, whatever the parameters are.
            _encoded(x1).check_parts(self.partitions)
            return (x1 != 0).any(-1).to(dtype).expand(*batch, x1.shape[-2])
        pairs = self._pairs(x1, x2, same, batch, diag)
        graph = torch.is_grad_enabled()
        slopes = graph and gap.requires_grad
        program = self._program(gap.item(), pairs, dtype)
        # Gram matrices come back, in the next step of a fit or in a prediction; other matrices only for a gradient.
        keep = pairs.symmetric or slopes or (graph and weights.requires_grad)
        shared = not graph and self._is_recent(pairs, program) and sums_key(pairs, program) not in self._cache
        cache = self._recent if shared else self._cache
        covariances = Covariances(pairs, program, normalize=self.normalize, cache=cache, slopes=slopes, keep=keep)
        return CovariancesOf.apply(weights, gap, covariances).to(x1.device, dtype)  # type: ignore[no-untyped-call]

    def _pairs(self, x1: Tensor, x2: Tensor, same: bool, batch: torch.Size, diag: bool) -> Pairs:
        count = batch.numel()
        if diag:
            rows = _encoded(x1, batch)
            return Batches(rows, rows if same else _encoded(x2, batch), len(rows))
        if count == 1 and same:
            gram = Matrix(_encoded(x1), None)
            known = self._interpolated
            return known if known is not None and known.same_strings(gram) else gram
        shared = x2 if count == 1 else unexpanded(x2)
        if shared is not None:
            # All matrices have the same columns: their rows make up one matrix.
            return Matrix(_encoded(x1, batch), _encoded(shared))
        return Batches(_encoded(x1, batch), _encoded(x2, batch), count)

    def _program(self, gap: float, pairs: Pairs, dtype: torch.dtype, heaviest: float | None = None) -> Program:
        """The dynamic program at a gap decay; ``heaviest`` is the largest sum of all weights, if it is at hand."""
        single = False
        if dtype in (torch.float32, torch.float16, torch.bfloat16):
            longest = (int(strings.lengths.max(initial=0)) for strings in (pairs.rows, pairs.columns))
            if heaviest is None:
                heaviest = float(self._weights.detach().sum(-1).max())
            single = largest_sum(self.order, gap, *longest) + math.log10(max(heaviest, 1e-300)) < FLOAT32_LIMIT
        precision = np.float32 if single else np.float64
        return Program(self.order, gap, np.dtype(precision), self.engine, self.threads, self.partitions)

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

        Memory is that of the result and a fixed workspace; nothing is kept, but for sums of parts of strings within a
        search (`seqopt.kernels.engines.PartSums`).

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again and costs half.
            self_a: `self_similarity` of ``a``, if at hand; used only by a normalised kernel.
            self_b: `self_similarity` of ``b``.
            dtype: float64 or float32.

        Returns:
            ``batch_shape x len(a) x len(b)``, normalised if the kernel is. Decays of a batch that share their gap
            decay share its dynamic program.

        Raises:
            InputError: If an argument does not fit.
        """
        pairs = Matrix(a, b)
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        precision = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
        if self.batch_shape:
            return self._cross_of_batch(pairs, precision, self_a, self_b)
        ((program, _, weights),) = self._programs(pairs, precision)
        values = order_sums(a, b, weights=weights, dtype=program.dtype, **program.options)[0][0]
        if not self.normalize:
            check_finite(torch.from_numpy(values), b if b is not None else a, self.order, program.gap)
            return values.astype(dtype, copy=False)
        if b is None:
            own = np.diagonal(values).copy() if self_a is None else self_a
            check_finite(torch.from_numpy(own), a, self.order, program.gap)
            scale_a = scale_b = _scale(own)
        else:
            scale_a = _scale(self._own_sums(a) if self_a is None else self_a)
            scale_b = _scale(self._own_sums(b) if self_b is None else self_b)
        step = max(1, SCALED_ELEMENTS // max(1, len(pairs.columns)))
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            # The product of the two scales first: it is symmetric to the last bit.
            values[rows] *= scale_a[rows, None] * scale_b[None, :]
        if b is None:
            np.fill_diagonal(values, scale_a > 0)
        return values.astype(dtype, copy=False)

    def _cross_of_batch(
        self, pairs: Pairs, precision: torch.dtype, self_a: FloatArray | None, self_b: FloatArray | None
    ) -> FloatArray:
        a, b = pairs.rows, None if pairs.symmetric else pairs.columns
        values = np.empty((self.batch_shape.numel(), len(pairs.rows), len(pairs.columns)), dtype=_numpy(precision))
        for program, indices, weights in self._programs(pairs, precision):
            sums, _ = order_sums(a, b, weights=weights, dtype=program.dtype, **program.options)
            if not self.normalize:
                check_finite(torch.from_numpy(sums), pairs.columns, self.order, program.gap)
            values[indices] = sums
        if self.normalize:
            scale_a = _scale(self._own_sums(a) if self_a is None else self_a).reshape(len(values), len(a))
            scale_b = scale_a
            if b is not None:
                scale_b = _scale(self._own_sums(b) if self_b is None else self_b).reshape(len(values), len(b))
            for matrix, left, right in zip(values, scale_a, scale_b, strict=True):
                matrix *= left[:, None] * right[None, :]
                if b is None:
                    np.fill_diagonal(matrix, left > 0)
        return values.reshape(*self.batch_shape, *values.shape[1:])

    @contextmanager
    def interpolating(self, x: Tensor) -> Iterator[bool]:
        """Within this context, Gram matrices of ``x`` come from interpolation in the gap decay.

        Setting it up takes some 40 dynamic programs, about as long as 20 evaluations with a gradient; no evaluation
        from then on takes any. Meant for fits from several starts and for draws of decays from a
        posterior. Normalised covariances hold to 1e-8 over all gap decays within the kernel's bounds: see
        `seqopt.kernels.interpolation`. Everything else, and everything after, is computed as always.

        Nothing is interpolated where that does not pay or is not possible: if the kernel is not normalised, has a
        batch shape or a frozen gap decay, if the strings are too long, or if the interpolant (about 40 Gram matrices
        times the order) exceeds ``cache_bytes``.

        Args:
            x: Tokens, ``n x W``.

        Yields:
            Whether Gram matrices of ``x`` are interpolated.

        Example:
            >>> kernel, x = SubsequenceKernel(), Encoder().encode(["ACGT", "AGT"]).to_tensor()
            >>> exact = kernel(x).to_dense()
            >>> with kernel.interpolating(x) as interpolated:
            ...     print(interpolated, bool((kernel(x).to_dense() - exact).abs().max() < 1e-8))
            True True
        """
        before, self._interpolated = self._interpolated, self._interpolant(x)
        try:
            yield self._interpolated is not None
        finally:
            self._interpolated = before
            self.forget()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_interpolated": None, "_worked_out": None}

    def _interpolant(self, x: Tensor) -> InterpolatedGram | None:
        if not self.normalize or self.batch_shape or not self.raw_gap_decay.requires_grad:
            return None
        strings = _encoded(x)
        bounds = self.raw_gap_decay_constraint
        lower, upper = float(bounds.lower_bound), float(bounds.upper_bound)
        program = self._program(upper, Matrix(strings, None), torch.float64)
        return InterpolatedGram.build(strings, program, lower, upper, self._cache.budget // 2)

    def forget(self) -> None:
        """Free the per-order sums that are kept for further evaluations of the same strings, as after a fit."""
        self._cache.clear()
        self._recent.clear()

    def self_similarity(self, a: EncodedStrings) -> FloatArray:
        """Unnormalised k(s, s) of each string at the current decays, float64, ``batch_shape x len(a)``."""
        return self._own_sums(a)

    def _own_sums(self, a: EncodedStrings) -> FloatArray:
        values = np.empty((self.batch_shape.numel(), len(a)))
        for program, indices, weights in self._programs(Matrix(a, None), torch.float64):
            values[indices] = self_order_sums(a, weights=weights, **program.options)[0]
            check_finite(torch.from_numpy(values[indices]), a, self.order, program.gap)
        return values.reshape(*self.batch_shape, len(a))

    def variance(self, a: EncodedStrings, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string as `cross` has it, float64, ``batch_shape x len(a)``: 1, or 0 for the empty string, if
        normalised.

        Args:
            a: The strings.
            self_a: Their `self_similarity`, if at hand.
        """
        own = self.self_similarity(a) if self_a is None else self_a
        return (own > 0).astype(np.float64) if self.normalize else own

    def _programs(self, pairs: Pairs, dtype: torch.dtype) -> list[tuple[Program, npt.NDArray[np.intp], FloatArray]]:
        """Each distinct gap decay of the batch: its program, and the indices and weights (r x order) that share it."""
        gaps, weights, heaviest = self._decays()
        found = []
        for gap in np.unique(gaps):
            indices = np.flatnonzero(gaps == gap)
            found.append((self._program(float(gap), pairs, dtype, heaviest), indices, weights[indices]))
        return found

    def _decays(self) -> tuple[npt.NDArray[np.float64], FloatArray, float]:
        """Gap decays, weights of the orders and the largest sum of these, worked out when parameters have changed."""
        names = [name for name in ("match_decay", "gap_decay", "order_weights") if hasattr(self, f"raw_{name}")]
        raw = [getattr(self, f"raw_{name}").detach().cpu() for name in names]
        # NumPy has no bfloat16.
        now = tuple(one.double().numpy().tobytes() for one in (*raw, *(self._given[name] for name in names)))
        if self._worked_out is None or self._worked_out[0] != now:
            weights = self._weights.detach().cpu().reshape(-1, self.order).numpy()
            gaps = self.gap_decay.detach().double().cpu().reshape(-1).numpy()
            self._worked_out = now, (gaps, weights, float(weights.sum(axis=-1).max(initial=0.0)))
        return self._worked_out[1]

    def at(self, match_decay: Tensor, gap_decay: Tensor) -> SubsequenceKernel:
        """This kernel at other decays, a batch of them; those that share their gap decay share its dynamic program.

        Args:
            match_decay: r match decays.
            gap_decay: r gap decays.
        """
        return type(self)(
            self.order,
            match_decay,
            gap_decay,
            self.normalize,
            order_weights=self.order_weights,
            partitions=self.partitions,
            engine=self.engine,
            threads=self.threads,
            match_decay_bounds=(1e-9, 1.0),
            gap_decay_bounds=(1e-9, 1.0),
            batch_shape=match_decay.shape,
        )

    def sums(
        self,
        a: EncodedStrings,
        match_decays: Sequence[float],
        gap_decay: float,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Gram matrices of n strings before they are normalised, at r match decays and one gap decay.

        Args:
            a: The strings.
            match_decays: The match decays.
            gap_decay: The gap decay.
            dtype: What sums of the orders are computed in, float64 or, where that cannot overflow, float32.

        Returns:
            ``r x n x n``, float64.
        """
        weights = np.array(match_decays, dtype=np.float64)[:, None] ** (2 * np.arange(1, self.order + 1))
        if (own := self.order_weights) is not None:
            weights = weights * own.detach().cpu().numpy()
        pairs = Matrix(a, None)
        precision = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
        program = self._program(gap_decay, pairs, precision, float(weights.sum(axis=1).max()))
        if self._is_recent(pairs, program):
            whole = Covariances(pairs, program, normalize=False, cache=self._recent, slopes=False, keep=True)
            return whole.weighted_sums(torch.from_numpy(weights)).numpy()
        values, _ = order_sums(a, None, weights=weights, dtype=program.dtype, **program.options)
        return values.astype(np.float64, copy=False)

    def _is_recent(self, pairs: Pairs, program: Program) -> bool:
        """Whether per-order sums of these pairs are among those that copies share."""
        return (
            type(pairs) is Matrix
            and pairs.symmetric
            and (RECENT_DECAYS * pairs.size(program, False) <= self._recent.budget)
        )

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
            InputError: For an item that is no ``str``.

        Example:
            >>> SubsequenceKernel(order=2, normalize=False, match_decay=1.0).gram(["AB"], ["AB", "AXB", ""])
            tensor([[3.0000, 2.5000, 0.0000]], dtype=torch.float64)
        """
        encoder = Encoder(tokenizer)
        a = encoder.encode(strings)
        b = None if others is None else encoder.encode(others)
        return torch.from_numpy(self.cross(a, b))


class _Getter:
    """Reads a parameter off a kernel; a class rather than a lambda so that kernels with priors pickle."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kernel: SubsequenceKernel) -> Tensor:
        return kernel._actual(self.name)


class _Setter:
    """Sets a parameter of a kernel."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kernel: SubsequenceKernel, value: Tensor) -> None:
        try:
            kernel._set(self.name, value)
        except InputError as error:
            # botorch.optim.utils.sample_all_priors draws again when it reads these words in a RuntimeError.
            raise RuntimeError(f"{error} (out of bounds of its current constraints)") from error


def _rounded(values: Tensor, dtype: torch.dtype, bounds: tuple[float, float]) -> Tensor:
    """``values`` in another precision, without leaving the bounds by rounding."""
    rounded = values.to(dtype)
    for beyond, inwards in ((rounded.double() < bounds[0], torch.inf), (rounded.double() > bounds[1], -torch.inf)):
        rounded = torch.where(beyond, torch.nextafter(rounded, torch.full_like(rounded, inwards)), rounded)
    return rounded


def _numpy(dtype: torch.dtype) -> npt.DTypeLike:
    return np.float32 if dtype == torch.float32 else np.float64


def _scale(values: FloatArray) -> FloatArray:
    return inverse_root(torch.from_numpy(values.astype(np.float64))).numpy()


def _encoded(x: Tensor, batch: torch.Size | None = None) -> EncodedStrings:
    """The strings of all matrices of a batch, one after the other."""
    expanded = x if batch is None else x.expand(*batch, *x.shape[-2:])
    return EncodedStrings.from_tensor(expanded.reshape(expanded.shape[:-1].numel(), x.shape[-1]))


def unexpanded(x: Tensor) -> Tensor | None:
    """The one matrix of which ``x`` is a batch of views, if it is."""
    if any(stride and size > 1 for size, stride in zip(x.shape[:-2], x.stride()[:-2], strict=True)):
        return None
    return x[(0,) * (x.dim() - 2)] if x.shape[:-2].numel() else None


def _checked(
    name: str, value: float | Sequence[float] | Tensor, lower: float, upper: float, shape: torch.Size | tuple[int, ...]
) -> Tensor:
    kind = "a number" if name.endswith("decay") else "numbers"
    try:
        tensor = torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} is {value!r}; expected {kind} in [{lower:g}, {upper:g}]") from None
    if not bool(((tensor >= lower) & (tensor <= upper)).all()):
        raise InputError(f"{name} is {value!r}; it must lie in [{lower:g}, {upper:g}]")
    try:
        return tensor.expand(shape).clone()
    except RuntimeError:
        raise InputError(
            f"{name} has shape {tuple(tensor.shape)}; expected one that expands to {tuple(shape)}"
        ) from None
