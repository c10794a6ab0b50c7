r"""What an observation would leave uncertain of where the maximum is.

Let f be normal at R *representers*, the places where the maximum may be, and p* the distribution of the place of the
largest of them. The utility of observing a point x is minus the expected entropy of p* after it,

.. math:: u(x) = -\mathbb{E}_{y \mid x} \Big[ -\sum_i p^*_i(y) \log p^*_i(y) \Big], \qquad
    p^*_i(y) = P(f_i = \max_j f_j \mid y),

estimated with N outcomes y and S draws of f for each. All draws come from *one* Cholesky factor, that of the joint
covariance before y: a joint draw of f at the representers and of an outcome :math:`y_s` at x becomes one given y by

.. math:: f_s + \operatorname{cov}(f, y) \operatorname{var}(y)^{-1} (y - y_s),

which is exact, so that neither the outcomes nor the points that are compared need a factor of their own. The outcomes
of x are quantiles in the middle of N equal shares. Elements of a batch that are under evaluation are observed as well,
with outcomes drawn from their joint distribution with that of x.

References:
    Shahriari, B., Wang, Z., Hoffman, M. W., Bouchard-Côté, A., de Freitas, N. (2014). An entropy search portfolio for
        Bayesian optimization. arXiv:1406.4625, algorithm 2.
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, University of British Columbia, algorithm 4 and equation 5.3.
    Wilson, J. T. et al. (2020). Efficiently sampling functions from Gaussian process posteriors. ICML (the rule of
        Matheron, by which a joint draw becomes a conditional one).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtri
from torch import Tensor

from seqopt.acquisition.sampling import draw_joint
from seqopt.posteriors import stable_cholesky

FloatArray = npt.NDArray[np.float64]

BLOCK = 2_000_000
"""Numbers of a block of draws that are held at a time: 16 MB."""


def entropy(counts: Tensor) -> Tensor:
    """Entropy in nats of relative frequencies, 0 log 0 being 0.

    It is too low by about (K - 1) / (2S) for S draws and K places that are met.

    Args:
        counts: ``... x R``, at least 0, not all 0.

    Returns:
        ``...``

    Example:
        >>> entropy(torch.tensor([[3.0, 3.0, 0.0], [5.0, 0.0, 0.0]], dtype=torch.float64))
        tensor([0.6931, 0.0000], dtype=torch.float64)
    """
    shares = counts / counts.sum(-1, keepdim=True)
    return torch.special.entr(shares).sum(-1)


def utilities(
    mean: Tensor,
    covariance: Tensor,
    noise_variance: Tensor,
    representers: Sequence[int],
    nominees: Sequence[int],
    observed: Sequence[int] = (),
    *,
    fantasies: int = 5,
    draws: int = 1_000,
    rng: np.random.Generator,
) -> FloatArray:
    """Minus the expected entropy of the place of the maximum, in nats, after each of several points.

    The same draws serve all points, so that differences between them are less noisy than each is.

    Args:
        mean: Of f at U points given the data, ``U``, or ``D x U`` for D draws of the model's parameters, over which
            entropies are averaged.
        covariance: Noiseless, ``U x U`` or ``D x U x U``.
        noise_variance: Of a measurement at each point, of the shape of ``mean``.
        representers: Numbers of the points where the maximum may be; one that is there twice counts once.
        nominees: Numbers of the K points that are compared.
        observed: Numbers of points whose outcomes are awaited.
        fantasies: Outcomes N.
        draws: Draws S of f for each outcome and each draw of the parameters.
        rng: The only source of randomness.

    Returns:
        K utilities, at most 0; larger is better.

    Raises:
        ModelError: If the covariance cannot be factorised.

    Example:
        >>> mean, covariance = torch.tensor([0.0, 0.5]).double(), torch.diag(torch.tensor([1.0, 0.25])).double()
        >>> noise = torch.full((2,), 0.25).double()
        >>> rng = np.random.default_rng(0)
        >>> utilities(mean, covariance, noise, [0, 1], [0, 1], fantasies=50, draws=4000, rng=rng).round(1)
        array([-0.4, -0.6])
    """
    size = mean.shape[-1]
    mean, noise = mean.reshape(-1, size), noise_variance.reshape(-1, size)
    covariance = covariance.reshape(-1, size, size)
    factor, _ = stable_cholesky(covariance)
    places = torch.tensor(sorted(set(representers)))
    quantiles = ndtri((np.arange(fantasies) + 0.5) / fantasies)
    others = rng.standard_normal((fantasies, len(observed)))
    innovations = torch.from_numpy(np.concatenate([quantiles[:, None], others], axis=1))
    total = np.zeros(len(nominees))
    for d in range(len(mean)):
        functions = draw_joint(mean[d], factor[d], draws, rng).mT  # S x U
        measured = functions + noise[d].sqrt() * torch.from_numpy(rng.standard_normal(functions.shape))
        for k, nominee in enumerate(nominees):
            # The nominee comes first, so that its own outcomes are the quantiles.
            seen = torch.tensor(list(dict.fromkeys([nominee, *observed])))
            root, _ = stable_cholesky(covariance[d][seen][:, seen] + torch.diag(noise[d][seen]))
            gain = torch.cholesky_solve(covariance[d][seen][:, places], root).mT  # R x O
            before = functions[:, places] - measured[:, seen] @ gain.mT
            outcomes = mean[d][seen] + innovations[:, : len(seen)] @ root.mT  # N x O
            total[k] -= sum(_entropy_of(before, gain @ outcome) for outcome in outcomes) / fantasies
    return total / len(mean)


def _entropy_of(functions: Tensor, shift: Tensor) -> float:
    """Entropy of the place of the maximum of S functions, ``S x R``, all of which are shifted by ``shift``, ``R``."""
    count = max(1, BLOCK // max(1, functions.shape[1]))
    found = torch.cat([(block + shift).argmax(-1) for block in torch.split(functions, count)])
    return float(entropy(torch.bincount(found, minlength=functions.shape[1]).double()))
