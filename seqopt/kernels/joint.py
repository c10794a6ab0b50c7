"""The sum of a kernel on tokens and a kernel on features of the same strings."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from gpytorch.priors import NormalPrior
from torch import Tensor

from seqopt.encoding import TokensAndFeatures
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel, shown
from seqopt.kernels.counts import CountsKernel
from seqopt.kernels.ngrams import NgramKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.subsequence import SubsequenceKernel

FloatArray = npt.NDArray[np.floating]

ON_TOKENS = (SubsequenceKernel, NgramKernel, OneHotKernel)
"""Kernels that compare symbols."""


class JointKernel(DescribedKernel):
    r"""What two strings share as text, and what they share in features: a weighted mean of two kernels.

    .. math:: k(a, b) = w\, k_s(a, b) + (1 - w)\, k_f(a, b)

    with k_s, the sub-sequence kernel or that of n-grams, a kernel k_f on features (fingerprints, say) and a learned
    weight w in [0, 1]. A sum of covariances says that the objective is a sum of two functions, one smooth in each sense
    (Rasmussen and Williams 2006, section 4.2.4); the output scale of the whole stands outside.

    Inputs are rows of features followed by tokens, ``... x n x (d + W)``: those of `seqopt.encoding.JointEncoder`.

    The Gram matrix of the latest features is kept while ``features`` has nothing to learn, so that a step of a fit
    costs no new one.

    Args:
        tokens: k_s, a normalised `SubsequenceKernel` or an `NgramKernel`, without batch shape.
        features: k_f: a kernel of seqopt on features, without batch shape. Where its variance is not 1, as that of
            `CountsKernel`, the weights are not those of variances.
        feature_columns: Number of features d.
        weight: w to begin with.
        weight_prior: A gpytorch prior on w. Default: N(0.5, 0.5), weak.

    Raises:
        InputError: If ``weight`` is outside [0, 1], or a kernel does not fit.

    Example:
        >>> from seqopt.encoding import FeatureEncoder, JointEncoder
        >>> from seqopt.encoding.fingerprints import MorganFingerprint
        >>> from seqopt.kernels import TanimotoKernel
        >>> fingerprint = MorganFingerprint()
        >>> kernel = JointKernel(SubsequenceKernel(), TanimotoKernel(), fingerprint.size)
        >>> encoded = JointEncoder(FeatureEncoder(fingerprint)).encode(["CCO", "CCN"])
        >>> kernel(encoded.to_tensor()).to_dense().shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        tokens: SubsequenceKernel | NgramKernel,
        features: Any,
        feature_columns: int,
        *,
        weight: float = 0.5,
        weight_prior: gpytorch.priors.Prior | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(tokens, SubsequenceKernel | NgramKernel) or not tokens.normalize or tokens.batch_shape:
            raise InputError(
                "the kernel on tokens must be a normalised SubsequenceKernel, or an NgramKernel, without batch shape"
            )
        if not hasattr(features, "cross") or isinstance(features, ON_TOKENS) or features.batch_shape:
            raise InputError(f"{type(features).__name__} is not a kernel of seqopt on features, without batch shape")
        if feature_columns < 1:
            raise InputError(f"feature_columns is {feature_columns}; it must be at least 1")
        self.tokens = tokens
        self.features = features
        self.feature_columns = feature_columns
        self.register_parameter("raw_weight", torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64)))
        # The raw parameter is the weight, with bounds for L-BFGS-B, so that either end is reached.
        self.register_constraint("raw_weight", NonTransformedInterval(0.0, 1.0).double())
        prior = NormalPrior(0.5, 0.5) if weight_prior is None else weight_prior
        self.register_prior("weight_prior", prior, _weight, _set_weight)
        self.weight = weight
        self._kept: tuple[weakref.ref[Tensor], int, Tensor] | None = None

    normalize = True
    """`cross` and `variance` take what `self_similarity` returns."""

    @property
    def weight(self) -> Tensor:
        """w, the share of the kernel on tokens. Assign a float to change it."""
        raw: Tensor = self.raw_weight
        return raw.clamp(0.0, 1.0)

    @weight.setter
    def weight(self, value: float | Tensor) -> None:
        number = float(value)
        if not 0.0 <= number <= 1.0:
            raise InputError(f"weight is {number}; it must lie in [0, 1]")
        self.initialize(raw_weight=number)

    @property
    def costly(self) -> bool:
        """Whether covariances with a large pool are worth keeping on disk: where those of the kernel on tokens are."""
        return bool(getattr(self.tokens, "costly", False))

    @property
    def threads(self) -> int | None:
        """Those of the kernel on tokens."""
        return self.tokens.threads if isinstance(self.tokens, SubsequenceKernel) else None

    @threads.setter
    def threads(self, number: int | None) -> None:
        if isinstance(self.tokens, SubsequenceKernel):
            self.tokens.threads = number

    def adapt(self, x: Tensor) -> None:
        """Let the kernel on tokens take the scale of the rows ``x``, ``n x (d + W)``, where it learns from it."""
        if isinstance(self.tokens, NgramKernel):
            self.tokens.adapt(x[..., self.feature_columns :])

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows of features and tokens, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x (d + W)``.
            x2: ``... x m x (d + W)``.
            diag: Only k(x1_i, x2_i), ``... x n``.
            params: Ignored, but for ``last_dim_is_batch``.

        Returns:
            ``... x n x m``.

        Raises:
            InputError: If ``last_dim_is_batch`` is asked for: single columns are not strings.
        """
        if params.get("last_dim_is_batch"):
            raise InputError("a JointKernel has no covariances of single columns (last_dim_is_batch)")
        d = self.feature_columns
        by_text = self.tokens.forward(x1[..., d:], x2[..., d:], diag=diag)
        return self.weight * by_text + (1.0 - self.weight) * self._of_features(x1, x2, diag)

    def _of_features(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        kept = self._kept
        # What has parameters keeps its own, which may be set though they are not learned.
        learning = any(True for _ in self.features.parameters())
        # What carries a graph cannot be kept: it can be walked backwards once.
        same = x1 is x2 and not (diag or learning or x1.requires_grad or x1.is_inference())
        if same and kept is not None and kept[0]() is x1 and kept[1] == x1._version:
            return kept[2]
        d = self.feature_columns
        first = x1[..., :d]
        values: Tensor = self.features.forward(first, first if x1 is x2 else x2[..., :d], diag=diag)
        if same:
            self._kept = weakref.ref(x1), x1._version, values
        return values

    def _described(self) -> Mapping[str, object]:
        return {
            "*tokens": self.tokens,
            "*features": self.features,
            "*feature_columns": self.feature_columns,
            "weight": shown(self.weight),
        }

    def self_similarity(self, a: TokensAndFeatures) -> FloatArray:
        """What `cross` needs of each string alone: k_s(s, s) before normalisation, and k_f(s, s), ``2 x n``."""
        return np.stack([self.tokens.self_similarity(a.tokens), self.features.self_similarity(a.features)])

    def variance(self, a: TokensAndFeatures, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, float64."""
        weight = float(self.weight.detach())
        own = self.self_similarity(a) if self_a is None else self_a
        by_text = self.tokens.variance(a.tokens, own[0])
        return weight * by_text + (1.0 - weight) * self.features.variance(a.features, own[1])

    def cross(
        self,
        a: TokensAndFeatures,
        b: TokensAndFeatures | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings, without a graph: see `SubsequenceKernel.cross`.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again.
            self_a: `self_similarity` of ``a``, if at hand.
            self_b: `self_similarity` of ``b``.
            dtype: float64 or float32.

        Returns:
            ``len(a) x len(b)``.
        """
        weight = float(self.weight.detach())
        rows = (None, None) if self_a is None else (self_a[0], self_a[1])
        columns = (None, None) if self_b is None else (self_b[0], self_b[1])
        values: FloatArray = self.tokens.cross(
            a.tokens, None if b is None else b.tokens, rows[0], columns[0], dtype=dtype
        )
        values *= weight
        by_features = self.features.cross(
            a.features, None if b is None else b.features, rows[1], columns[1], dtype=dtype
        )
        by_features *= 1.0 - weight
        values += by_features
        return values

    @contextmanager
    def interpolating(self, x: Tensor) -> Iterator[bool]:
        """Within this context, `SubsequenceKernel.interpolating` holds for the tokens of ``x``."""
        if not isinstance(self.tokens, SubsequenceKernel):
            yield False
            return
        with self.tokens.interpolating(x[..., self.feature_columns :]) as interpolated:
            yield interpolated

    def forget(self) -> None:
        """Free what is kept for further evaluations of the same strings, as after a fit."""
        self._kept = None
        for part in (self.tokens, self.features):
            if isinstance(part, SubsequenceKernel | CountsKernel):
                part.forget()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}  # a weak reference cannot be copied


def _weight(kernel: JointKernel) -> Tensor:
    return kernel.weight


def _set_weight(kernel: JointKernel, value: Tensor) -> None:
    try:
        kernel.weight = value
    except InputError as error:
        # botorch.optim.utils.sample_all_priors draws again when it reads these words in a RuntimeError.
        raise RuntimeError(f"{error} (out of bounds of its current constraints)") from error
