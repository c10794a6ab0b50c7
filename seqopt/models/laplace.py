r"""The evidence of a Gaussian process whose values are yes or no, by Laplace's approximation, and its gradient.

Of n strings with latent log odds f ~ N(c, K), :math:`w^+_i` of :math:`w^+_i + w^-_i` trials were yes. At the mode of
`seqopt.models.classifiers.kernel_logistic.laplace_mode`, with g the gradient of the log likelihood, W minus its second
derivatives and :math:`R = (K + W^{-1})^{-1}`,

.. math:: \log q = \log p(w \mid f) - \tfrac12 (f - c)^\top K^{-1} (f - c) - \tfrac12 \log |I + W^{1/2} K W^{1/2}| .

The mode moves with K, and W with it. With :math:`\Sigma = K - K R K`, the derivatives
:math:`t_i = -\tfrac12 \Sigma_{ii} \, dW_i / df_i` of the last term and :math:`u = (I - R K) t`,

.. math:: d \log q = \langle \tfrac12 (g g^\top - R) + u g^\top, dK \rangle + \sum_i (g_i + u_i) \, dc .

Strings that share nothing apart, k hits of n wells of one string count as k wells that were hits and n - k that were
not: the binomial coefficients, which depend on no parameter, are left out.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 3.4 and 5.5.1
        (algorithm 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.special import expit

from seqopt.models.classifiers.kernel_logistic import laplace_mode

FloatArray = npt.NDArray[np.float64]

LEAST_CURVATURE = 1e-10
"""W is kept above this, so that a string of whose label the model is certain still has a finite pseudo-variance 1 / W:
it then tells nothing, as it should."""


@dataclass(frozen=True, eq=False)
class LaplaceEvidence:
    """Laplace's approximation at one kernel.

    Attributes:
        latent: f at the mode, n.
        gradient: g, n.
        curvature: W, n.
        log_evidence: log q.
        by_gram: Derivative of log q with respect to K, n x n, symmetric.
        by_constant: Derivative with respect to c.
    """

    latent: FloatArray
    gradient: FloatArray
    curvature: FloatArray
    log_evidence: float
    by_gram: FloatArray
    by_constant: float


def laplace_evidence(
    gram: npt.ArrayLike, positive: npt.ArrayLike, negative: npt.ArrayLike, constant: float = 0.0
) -> LaplaceEvidence:
    """The approximation and its gradient; see the module.

    Args:
        gram: K, n x n, output scale included.
        positive: Trials of each string that were yes, n.
        negative: Those that were no, n.
        constant: c.

    Raises:
        InputError: See `seqopt.models.classifiers.kernel_logistic.laplace_mode`.
        ModelError: Likewise.

    Example:
        >>> found = laplace_evidence([[4.0, 2.0], [2.0, 4.0]], [3.0, 0.0], [0.0, 1.0])
        >>> found.latent.round(2).tolist()
        [1.47, -0.44]
    """
    K = np.asarray(gram, dtype=np.float64)
    plus, minus = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    mode = laplace_mode(K, plus, minus, constant)
    share, trials = expit(mode.latent), plus + minus
    curvature = trials * share * expit(-mode.latent)
    root = np.sqrt(curvature)
    lower = scipy.linalg.cholesky(np.eye(len(K)) + root[:, None] * K * root, lower=True, check_finite=False)
    inverse = scipy.linalg.cho_solve((lower, True), np.diag(root), check_finite=False)
    R = root[:, None] * inverse
    left = R @ K
    posterior = np.diag(K) - (K * left).sum(0)
    tilt = -0.5 * posterior * curvature * (1.0 - 2.0 * share)
    moved = tilt - left @ tilt
    g = mode.gradient
    crossed = np.outer(moved, g)
    by_gram = 0.5 * (np.outer(g, g) - R + crossed + crossed.T)
    return LaplaceEvidence(mode.latent, g, curvature, mode.log_evidence, by_gram, float((g + moved).sum()))


def pseudo_values(evidence: LaplaceEvidence) -> tuple[FloatArray, FloatArray]:
    """Values with noise that a Gaussian process would have the same posterior of: f + g / W, of variances 1 / W.

    With them everything that is known of Gaussian processes holds of the approximation: joint moments, conditioning on
    further queries, draws.
    """
    curvature = np.maximum(evidence.curvature, LEAST_CURVATURE)
    return evidence.latent + evidence.gradient / curvature, 1.0 / curvature
