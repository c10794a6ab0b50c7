r"""How well the offset of a plate is known where parameters are estimated: averaged over the variances of departures.

The offset of a plate is the mean over its strings of what the plate adds (`seqopt.models.context_facts`). How large
offsets tend to be is learned from as many numbers as there are plates, so that an estimate of that variance may be
anything, nil included. The posterior here is a mixture over a grid of both variances of departures, s and o of
`seqopt.kernels.HierarchicalKernel`, in which each pair weighs its marginal likelihood times the priors of a fit; the
kernel on strings, noise and mean are those of the fit. With K_s the covariance of the n values without offsets, Z the
n x P matrix that says on which plate each value lies, and c the output scale,

.. math:: \operatorname{cov} = K_s + c\, o\, Z Z^\top,

is inverted for all o with one factor of K_s (Woodbury), so that the cost is that of a fit's step times the values of s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

from seqopt.data import Context
from seqopt.data.query import context_of
from seqopt.kernels import HierarchicalKernel
from seqopt.kernels.hierarchical import PRIOR
from seqopt.models.string_gp import StringGP

Numbers = npt.NDArray[np.float64]

OFFSETS = np.exp(PRIOR[0] + PRIOR[1] * np.linspace(-3.0, 3.0, 25))
"""Values of o."""

DEVIATIONS = np.exp(PRIOR[0] + PRIOR[1] * np.linspace(-2.5, 2.5, 6))
"""Values of s."""


MOST = 1000
"""Values of a fit beyond which the posterior is that at the fitted variances."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions.

    Attributes:
        weights: Of its parts, which sum to 1.
        means: Of these.
        stds: Their standard deviations.

    Example:
        >>> half = Mixture(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.array([1e-9, 1e-9]))
        >>> half.mean, round(half.std, 3), round(half.quantile(0.75), 3)
        (0.0, 1.0, 1.0)
    """

    weights: Numbers
    means: Numbers
    stds: Numbers

    @property
    def mean(self) -> float:
        """Its mean."""
        return float(self.weights @ self.means)

    @property
    def std(self) -> float:
        """Its standard deviation."""
        return math.sqrt(float(self.weights @ (self.stds**2 + (self.means - self.mean) ** 2)))

    def quantile(self, level: float) -> float:
        """Below which a share ``level`` of it lies."""
        widths = np.maximum(self.stds, 1e-300)

        def beyond(value: float) -> float:
            return float(self.weights @ ndtr((value - self.means) / widths)) - level

        low, high = float((self.means - 9 * widths).min()), float((self.means + 9 * widths).max())
        return float(brentq(beyond, low, high, xtol=1e-10 * max(high - low, 1e-300)))


class OffsetPosterior:
    """The posterior of plates' offsets given a fit, on the scale of its standardised values.

    Args:
        gram: Of the kernel on strings, n x n, times the output scale c.
        plates: Numbers of the plates of the values, n; negative for what lies on none.
        residuals: Values less their mean, n.
        noise: Variances of their noise, n.
        scale: c.
    """

    def __init__(
        self, gram: Numbers, plates: npt.NDArray[np.int64], residuals: Numbers, noise: Numbers, scale: float
    ) -> None:
        self._gram, self._residuals, self._scale = gram, residuals, scale
        self._on = (plates[:, None] == np.arange(plates.max() + 1)).astype(np.float64)
        self._same = self._on @ self._on.T
        self._log_weights = np.empty((len(DEVIATIONS), len(OFFSETS)))
        self._factors: list[Numbers] = []
        self._solved: list[Numbers] = []
        for row, deviation in enumerate(DEVIATIONS):
            factor = cholesky(gram * (1.0 + deviation * self._same) + np.diag(noise), lower=True)
            whole = np.column_stack([residuals, self._on])
            solved = cho_solve((factor, True), whole)
            self._factors.append(factor)
            self._solved.append(solved)
            inner = whole.T @ solved
            determinant = np.log(np.diagonal(factor)).sum()
            prior = -0.5 * ((math.log(deviation) - PRIOR[0]) / PRIOR[1]) ** 2
            for column, offset in enumerate(OFFSETS):
                variance = scale * offset
                middle = np.eye(self._on.shape[1]) + variance * inner[1:, 1:]
                fit = inner[0, 0] - variance * float(inner[0, 1:] @ np.linalg.solve(middle, inner[1:, 0]))
                logdet = 2.0 * determinant + float(np.linalg.slogdet(middle)[1])
                other = -0.5 * ((math.log(offset) - PRIOR[0]) / PRIOR[1]) ** 2
                self._log_weights[row, column] = -0.5 * (fit + logdet) + prior + other
        self._log_weights -= logsumexp(self._log_weights)

    @classmethod
    def of_fit(cls, surrogate: object) -> tuple[OffsetPosterior, dict[Context, int]] | None:
        """Of a fitted surrogate, with the numbers of its plates.

        Returns:
            `None` for one that is not a point estimate of `seqopt.models.contexts.hierarchical`, for more than `MOST`
            values, or where some are limits.
        """
        if not isinstance(surrogate, StringGP):
            return None
        kernel, state = surrogate.model.covar_module.base_kernel, surrogate.fitted
        if not isinstance(kernel, HierarchicalKernel) or state.limits is not None or len(state.keys) > MOST:
            return None
        strings: Any = kernel.kernels[0]
        encoded = state.encoded
        gram = np.array(strings.cross(encoded, None, strings.self_similarity(encoded)), dtype=np.float64)
        scale = float(state.scale[0])
        contexts = [context_of(item) for item in state.keys]
        numbers = {context: number for number, context in enumerate(dict.fromkeys(filter(None, contexts)))}
        if not numbers:
            return None
        found = cls(
            scale * 0.5 * (gram + gram.T),
            np.array([numbers.get(context, -1) for context in contexts]),
            (state.targets.reshape(-1) - state.constant[0]).numpy(),
            state.observed_noise[0].numpy(),
            scale,
        )
        return found, numbers

    def of(self, plate: int, own: npt.NDArray[np.int64]) -> Mixture:
        """The offset of a plate.

        Args:
            plate: Its number.
            own: The places of one value of each of its strings, over which is averaged.
        """
        means, stds = [], []
        on = self._on[:, plate]
        towards = self._gram[:, own].mean(1) * on
        spread = float(self._gram[np.ix_(own, own)].mean())
        for deviation, factor, solved in zip(DEVIATIONS, self._factors, self._solved, strict=True):
            ahead = cho_solve((factor, True), np.column_stack([deviation * towards, on]))
            for offset in OFFSETS:
                variance = self._scale * offset
                covariance = deviation * towards + variance * on
                # (K_s + variance Z Z')^-1 covariance
                weights = ahead[:, 0] + variance * ahead[:, 1]
                middle = np.eye(self._on.shape[1]) + variance * (self._on.T @ solved[:, 1:])
                weights = weights - variance * solved[:, 1:] @ np.linalg.solve(middle, self._on.T @ weights)
                means.append(float(weights @ self._residuals))
                stds.append(math.sqrt(max(deviation * spread + variance - float(weights @ covariance), 0.0)))
        return Mixture(np.exp(self._log_weights).ravel(), np.array(means), np.array(stds))
