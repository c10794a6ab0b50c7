"""Parameters of the kernel on tuples of building blocks, by their posterior density.

The marginal likelihood of Rasmussen and Williams (2006), equation 2.30, with its gradient in closed form
(equation 5.9), and priors on the logarithms of weights and noise and on the logits of shares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from seqopt.kernels.products import ProductSimilarities
from seqopt.kernels.reagents import OFFSET, BlockSimilarities, ReagentKernel, subsets

FloatArray = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

WEIGHT_PRIOR = (-2.0, 1.5)
"""Mean and standard deviation of the logarithm of a weight, in units of the values' variance."""

NOISE_PRIOR = (-3.0, 1.5)
"""The same of the variance of the noise."""

SHARE_PRIOR = (-1.0, 1.0)
"""The same of the logit of a share."""

LEAST_NOISE = 1e-6
"""What is added to the variance of the noise."""

ITERATIONS = 40
"""Most iterations of L-BFGS-B."""

TOLERANCE = 1e-6
"""Relative change of the log density, hundreds, below which they end: less than a thousandth of a unit."""


@dataclass(frozen=True)
class ReagentParameters:
    """Parameters of `seqopt.kernels.ReagentKernel` and the noise, for standardised values.

    Attributes:
        log_weights: Of the terms of blocks, and of that of products where there is one.
        log_noise: Of the variance of the noise.
        logit_same: Of the shares that fingerprints do not tell, one for each component.
        logit_between: Of the covariance of tuples of two reactions.
    """

    log_weights: tuple[float, ...]
    log_noise: float
    logit_same: tuple[float, ...]
    logit_between: float = 0.0

    @classmethod
    def first(cls, slots: int, products: bool = False) -> ReagentParameters:
        """Where a first fit begins: the prior's centres."""
        terms = len(subsets(slots)) + products
        return cls((WEIGHT_PRIOR[0],) * terms, NOISE_PRIOR[0], (SHARE_PRIOR[0],) * slots)

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return float(np.exp(self.log_noise)) + LEAST_NOISE

    def kernel(self, similarities: BlockSimilarities, products: ProductSimilarities | None = None) -> ReagentKernel:
        """The kernel at these parameters."""
        slots = len(self.logit_same)
        weights = np.exp(self.log_weights).tolist()
        terms = len(subsets(slots))
        return ReagentKernel(
            similarities,
            slots,
            weights[:terms],
            _share(np.array(self.logit_same)).tolist(),
            float(_share(np.array(self.logit_between))),
            products,
            0.0 if products is None else weights[terms],
        )

    def vector(self) -> FloatArray:
        """All in one row."""
        return np.array([*self.log_weights, self.log_noise, *self.logit_same, self.logit_between])

    def moved(self, vector: FloatArray) -> ReagentParameters:
        """Those of `vector`."""
        terms = len(self.log_weights)
        return replace(
            self,
            log_weights=tuple(vector[:terms].tolist()),
            log_noise=float(vector[terms]),
            logit_same=tuple(vector[terms + 1 : -1].tolist()),
            logit_between=float(vector[-1]),
        )


class ReagentLikelihood:
    """Posterior density of the parameters, up to a constant, and its gradient.

    Args:
        tuples: n rows of a reaction and blocks; -1 where there is no block.
        targets: Standardised values, n.
        known: Known variances of the noise of each besides the learned one, n.
        similarities: Of the blocks.
        products: Of the products, where these are compared.
    """

    def __init__(
        self,
        tuples: Numbers,
        targets: FloatArray,
        known: FloatArray,
        similarities: BlockSimilarities,
        products: ProductSimilarities | None = None,
    ) -> None:
        plain = ReagentKernel(similarities, tuples.shape[1] - 1, same=[0.0] * (tuples.shape[1] - 1))
        self._slots = plain.slots
        self._similar = [plain.looked_up(slot, tuples[:, slot + 1], tuples[:, slot + 1]) for slot in range(plain.slots)]
        self._equal = [(tuples[:, slot, None] == tuples[None, :, slot]).astype(np.float64)
                       for slot in range(1, plain.slots + 1)]  # fmt: skip
        self._other = (tuples[:, 0, None] != tuples[None, :, 0]).astype(np.float64)
        self._several = bool(self._other.any())
        self._targets, self._known = targets, known
        self._terms = subsets(self._slots)
        self._made = [] if products is None else [products.between(tuples)]

    def __call__(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """Negative log density at parameters (`ReagentParameters.vector`), and its gradient."""
        terms, n = len(self._terms) + len(self._made), len(self._targets)
        weights, noise = np.exp(vector[:terms]), float(np.exp(vector[terms]))
        shares, between = _share(vector[terms + 1 : -1]), float(_share(vector[-1]))
        factors = [
            (1 - share) * similar + share * equal
            for share, similar, equal in zip(shares, self._similar, self._equal, strict=True)
        ]
        products = [*(_product([factors[slot] for slot in term]) for term in self._terms), *self._made]
        strings = OFFSET + sum(weight * product for weight, product in zip(weights, products, strict=True))
        reactions = 1.0 - (1.0 - between) * self._other if self._several else 1.0
        covariance = strings * reactions
        covariance[np.diag_indices(n)] += noise + LEAST_NOISE + self._known
        factor = np.linalg.cholesky(covariance)
        alpha = cho_solve((factor, True), self._targets)
        density = -0.5 * float(self._targets @ alpha) - float(np.log(np.diag(factor)).sum())
        # potri takes a third of the time of n solutions; it fills one triangle.
        inverse, _ = dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        outer = 0.5 * (np.outer(alpha, alpha) - inverse)
        within = outer * reactions
        gradient = np.zeros(len(vector))
        for index, (weight, product) in enumerate(zip(weights, products, strict=True)):
            gradient[index] = weight * np.vdot(within, product)
        gradient[terms] = noise * np.trace(outer)
        for slot, share in enumerate(shares):
            change = sum(
                weight * _product([factors[other] for other in term if other != slot])
                for weight, term in zip(weights[: len(self._terms)], self._terms, strict=True)
                if slot in term
            )
            difference = (self._equal[slot] - self._similar[slot]) * change
            gradient[terms + 1 + slot] = share * (1 - share) * np.vdot(within, difference)
        if self._several:
            gradient[-1] = between * (1 - between) * np.vdot(outer, strings * self._other)
        centre = np.array([WEIGHT_PRIOR[0]] * terms + [NOISE_PRIOR[0]] + [SHARE_PRIOR[0]] * self._slots + [0.0])
        spread = np.array([WEIGHT_PRIOR[1]] * terms + [NOISE_PRIOR[1]] + [SHARE_PRIOR[1]] * (self._slots + 1))
        away = (vector - centre) / spread
        return -(density - 0.5 * float(away @ away)), -(gradient - away / spread)


def fitted(
    tuples: Numbers,
    targets: FloatArray,
    known: FloatArray,
    similarities: BlockSimilarities,
    start: ReagentParameters,
    products: ProductSimilarities | None = None,
) -> ReagentParameters:
    """Parameters of largest posterior density, from a start."""
    likelihood = ReagentLikelihood(tuples, targets, known, similarities, products)
    vector = start.vector()
    # Where weights vanish, nothing can be factorised any more.
    bounds = [(-14.0, 8.0)] * len(vector)
    options = {"maxiter": ITERATIONS, "ftol": TOLERANCE}
    found = minimize(likelihood, vector, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return start.moved(found.x) if np.isfinite(found.fun) else start


def _share(logit: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-np.asarray(logit)))


def _product(factors: list[FloatArray]) -> FloatArray | float:
    found: FloatArray | float = 1.0
    for factor in factors:
        found = found * factor
    return found
