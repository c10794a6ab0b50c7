r"""Logistic regression with a kernel on strings.

With latent values f ~ N(c, K) at n strings and weights w+ and w- of the two labels (1 and 0 for a plain label), the
mode of

.. math:: \sum_i [w^+_i \log \sigma(f_i) + w^-_i \log \sigma(-f_i)] - \tfrac12 (f - c)^\top K^{-1} (f - c)

satisfies f = c + K g with g = w+ (1 - s) - w- s, s = sigma(f). Newton's steps need no inverse of K: with
W = (w+ + w-) s (1 - s) and b = W (f - c) + g they are

.. math:: a = b - W^{1/2} (I + W^{1/2} K W^{1/2})^{-1} W^{1/2} K b, \qquad f \leftarrow c + K a.

A new string has the latent value c + k(x, X) g.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, algorithm 3.1 and equation
        3.32 (the evidence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gpytorch
import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from seqopt.encoding import Encoded, Encoder, FeatureEncoder, JointEncoder, StringEncoder
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel, bind_symbols
from seqopt.models.classifiers.protocols import BoolArray, FloatArray, checked_weights, log_probability
from seqopt.models.covariance import KernelEvaluator, StringKernel
from seqopt.spaces import Space
from seqopt.utils.config import Configurable

GAP_DECAYS = (0.1, 0.5)
"""Gap decays that are tried: at 0.1 what matters is symbols side by side, at 0.5 also those further apart."""

SCALES = (1.0, 4.0, 16.0, 64.0)
"""Prior variances of the logit that are tried: at 1 strings hardly differ, at 64 they are all but certain."""

ROUNDING = 1e-12
"""Loss of the objective, relative to 1 + its size, that is no overshooting."""

STEPS, HALVINGS = 200, 40
"""Newton's method is done after some ten steps; those that overshoot are halved."""

TOLERANCE = 1e-8
"""Largest change of f in the last step, relative to 1 + |f|: convergence is quadratic, so what is left is rounding."""


@dataclass(frozen=True, eq=False)
class LaplaceMode:
    """Where the posterior of the latent values is largest.

    Attributes:
        latent: f, n.
        gradient: g, n.
        log_evidence: Laplace's approximation of the log marginal likelihood.
    """

    latent: FloatArray
    gradient: FloatArray
    log_evidence: float


def laplace_mode(
    gram: npt.ArrayLike, positive: npt.ArrayLike, negative: npt.ArrayLike, constant: float = 0.0
) -> LaplaceMode:
    """The mode of the latent values; see the module.

    Args:
        gram: K, n x n, output scale included; it may be singular.
        positive: w+, n, at least 0: how much each string speaks for the label true.
        negative: w-, n, at least 0.
        constant: c.

    Raises:
        InputError: If shapes do not fit, or a weight is negative.
        ModelError: If Newton's method does not converge, as for covariances that are not numbers.

    Example:
        >>> mode = laplace_mode(np.diag([1e6, 1e6]), [1.0, 5.0], [1.0, 1.0])  # two strings that share nothing
        >>> np.exp(mode.latent).round(3).tolist()  # the odds are those of the weights
        [1.0, 5.0]
    """
    K = np.asarray(gram, dtype=np.float64)
    plus, minus = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    if not (plus.ndim == 1 and plus.shape == minus.shape and K.shape == (len(plus), len(plus))):
        raise InputError(f"a Gram matrix of shape {K.shape} with weights of shapes {plus.shape} and {minus.shape}")
    if not np.isfinite(K).all():
        raise InputError("a Gram matrix must hold finite numbers")
    if not (np.isfinite(plus) & np.isfinite(minus) & (plus >= 0) & (minus >= 0)).all():
        raise InputError("weights of labels must be finite numbers from 0")

    def slope(f: FloatArray) -> FloatArray:
        return plus * np.exp(log_probability(-f)) - minus * np.exp(log_probability(f))

    def objective(a: FloatArray, f: FloatArray) -> float:
        return float(plus @ log_probability(f) + minus @ log_probability(-f) - 0.5 * a @ (f - constant))

    def factor(f: FloatArray) -> tuple[FloatArray, FloatArray]:
        root = np.sqrt((plus + minus) * np.exp(log_probability(f) + log_probability(-f)))
        lower = np.linalg.cholesky(np.eye(len(f)) + root[:, None] * K * root)
        return root, np.asarray(lower, dtype=np.float64)

    a = np.zeros(len(plus))
    f = np.full(len(plus), float(constant))
    reached = objective(a, f)
    for _ in range(STEPS):
        gradient = slope(f)
        try:
            root, lower = factor(f)
        except np.linalg.LinAlgError:
            break
        b = root**2 * (f - constant) + gradient
        newton = b - root * scipy.linalg.cho_solve((lower, True), root * (K @ b), check_finite=False)
        step, before = 1.0, f
        for _ in range(HALVINGS):
            trial = a + step * (newton - a)
            f = constant + K @ trial
            value = objective(trial, f)
            if value >= reached - ROUNDING * (1.0 + abs(reached)):
                break
            step /= 2
        a, reached = trial, value
        if np.abs(f - before).max(initial=0.0) <= TOLERANCE * (1.0 + np.abs(f).max(initial=0.0)):
            evidence = reached - float(np.log(np.diag(lower)).sum())
            return LaplaceMode(f, slope(f), evidence)
    raise ModelError(
        f"logistic regression on {len(plus)} strings did not converge: check that the kernel's covariances are finite "
        "and positive semi-definite"
    )


class KernelLogistic(Configurable):
    """Logistic regression with a kernel on strings; implements `seqopt.models.classifiers.Classifier`.

    Parameters of kernels stay as they are. Of the given kernels and of the prior variances ``scales`` of the logit,
    those of largest evidence are taken. The prior mean is the logarithm of the odds of the labels, each count enlarged
    by 1.

    Args:
        kernel: A kernel of seqopt without batch shape, or several. Default: normalised sub-sequence kernels of order 5
            at match decay 0.8 and the gap decays `GAP_DECAYS`.
        encoder: Turns strings into what the kernels take. By default the one of the space that is searched, or
            characters where there is none.
        scales: Prior variances of the logit, positive.

    Raises:
        InputError: If a kernel is not one of seqopt's, there is none, or a scale is not positive.

    Example:
        >>> strings, labels = ["AAAB", "ABAB", "BBBB", "BBAB"], np.array([True, True, False, False])
        >>> predictor = KernelLogistic().fit(strings, labels, rng=np.random.default_rng(0))
        >>> logits = predictor.logits(["AAAA", "BBBA"])
        >>> bool(logits[0] > logits[1])
        True
    """

    def __init__(
        self,
        kernel: gpytorch.kernels.Kernel | Sequence[gpytorch.kernels.Kernel] | None = None,
        *,
        encoder: StringEncoder | None = None,
        scales: Sequence[float] = SCALES,
    ) -> None:
        if kernel is None:
            kernel = [SubsequenceKernel(order=5, match_decay=0.8, gap_decay=gap) for gap in GAP_DECAYS]
        self.kernels = [kernel] if isinstance(kernel, gpytorch.kernels.Kernel) else list(kernel)
        if not self.kernels:
            raise InputError("there are no kernels; give at least one")
        for one in self.kernels:
            if not isinstance(one, StringKernel) or getattr(one, "batch_shape", None):
                raise InputError(
                    f"{type(one).__name__} is not a kernel on encoded strings without batch shape: give one of "
                    "seqopt.kernels"
                )
        if not scales or not all(0 < scale < float("inf") for scale in scales):
            raise InputError(f"scales are {list(scales)}; expected positive numbers")
        self.scales = tuple(float(scale) for scale in scales)
        self.encoder: StringEncoder = Encoder("characters") if encoder is None else encoder
        self._encoder_chosen = encoder is not None

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        encoder = self.encoder if self._encoder_chosen else None
        return {"kernel": self.kernels, "encoder": encoder, "scales": self.scales}

    def bind(self, space: Space) -> None:
        """Take the encoder of ``space``, unless one was chosen."""
        if not self._encoder_chosen:
            self.encoder = space.encoder

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Strings that have no features, where the kernel compares these; empty where all can be compared."""
        encoder = self.encoder
        return encoder.unsupported(strings) if isinstance(encoder, FeatureEncoder | JointEncoder) else {}

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> KernelLogisticPredictor:
        """See `seqopt.models.classifiers.Classifier`; nothing is drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, or there are no strings.
        """
        found = np.asarray(labels, dtype=np.bool_)
        if found.shape != (len(strings),) or not len(strings):
            raise InputError(f"{len(strings)} strings but labels of shape {found.shape}; give one for each")
        return self._fitted(strings, found.astype(np.float64), (~found).astype(np.float64))

    def fit_weighted(
        self, strings: Sequence[str], positive: FloatArray, negative: FloatArray, *, rng: np.random.Generator
    ) -> KernelLogisticPredictor:
        """See `seqopt.models.classifiers.WeightedClassifier`; nothing is drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, a weight is negative, or only one label has weight.
        """
        return self._fitted(strings, *checked_weights(strings, positive, negative))

    def _fitted(self, strings: Sequence[str], plus: FloatArray, minus: FloatArray) -> KernelLogisticPredictor:
        encoded = self.encoder.encode(list(strings))
        constant = float(np.log((plus.sum() + 1.0) / (minus.sum() + 1.0)))
        best: KernelLogisticPredictor | None = None
        for kernel in self.kernels:
            bind_symbols(kernel, self.encoder)
            evaluator = KernelEvaluator(kernel, encoded.width)
            own = evaluator.self_similarity(encoded)
            gram = np.asarray(evaluator.cross(encoded, None, own), dtype=np.float64)
            gram = 0.5 * (gram + gram.T)
            for scale in self.scales:
                mode = laplace_mode(scale * gram, plus, minus, constant)
                if best is None or mode.log_evidence > best.log_evidence:
                    best = KernelLogisticPredictor(
                        evaluator, self.encoder, encoded, own, mode, constant=constant, scale=scale
                    )
        assert best is not None  # there is a kernel and a scale
        return best


class KernelLogisticPredictor:
    """Fitted `KernelLogistic`; implements `seqopt.models.classifiers.Predictor`.

    Args:
        evaluator: The kernel.
        encoder: Of strings.
        encoded: The n strings learned from.
        own: What the kernel needs of each alone.
        mode: Of the latent values.
        constant: Prior mean of the logit.
        scale: Prior variance of the logit.
    """

    def __init__(
        self,
        evaluator: KernelEvaluator,
        encoder: StringEncoder,
        encoded: Encoded,
        own: npt.NDArray[np.floating] | None,
        mode: LaplaceMode,
        *,
        constant: float,
        scale: float,
    ) -> None:
        self._evaluator = evaluator
        self._encoder = encoder
        self._encoded = encoded
        self._own = own
        self._weights = scale * mode.gradient
        self.log_evidence = mode.log_evidence
        self.constant = constant
        self.scale = scale

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        encoded = self._encoder.encode(list(strings))
        own = self._evaluator.self_similarity(encoded)
        rows = self._evaluator.cross(encoded, self._encoded, own, self._own)
        return np.asarray(self.constant + rows @ self._weights, dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Decays of the kernel, where it has some, and prior mean and variance of the logit."""
        kernel = self._evaluator.kernel
        decays = {
            name: float(getattr(kernel, name).detach().mean())
            for name in ("match_decay", "gap_decay")
            if isinstance(getattr(kernel, name, None), torch.Tensor)
        }
        return decays | {"outputscale": self.scale, "mean": self.constant}
