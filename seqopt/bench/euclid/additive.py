r"""Additive Gaussian processes whose decomposition is sampled: which variables belong together.

A state assigns each of D variables to one of G groups; f is the sum of one function for each group that has variables,

.. math:: k(x, x') = \sigma_f^2 \sum_g \exp\left(-\tfrac12 \sum_{j \in g} (x_j - x'_j)^2 / \ell_j^2\right),

and :math:`\ell`, :math:`\sigma_f` and the noise are set, for each assignment, to those of the largest marginal
likelihood, of which the chain visits states in proportion to. A move assigns one variable anew: it is as likely as the
move back, and reaches every state, which the move of the paper (two variables to one group) does not.

References:
    Gardner, J. et al. (2017). Discovering and exploiting additive structure for Bayesian optimization. AISTATS.
    Hvarfner, C. et al. (2023). Self-correcting Bayesian optimization through Bayesian active learning. NeurIPS,
        appendix A.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg, optimize

from seqopt.errors import InputError

FloatArray = npt.NDArray[np.float64]
Groups = tuple[int, ...]
"""The group of each variable."""

Move = Literal["single", "pair"]

START = (math.log(0.5), 0.0, math.log(0.05))
"""Logarithms of length scales, variance and noise variance from which a fit begins."""

BOUNDS = ((-4.0, 4.0), (-4.0, 4.0), (-9.0, 2.0))
"""Of these."""


def partition(groups: Groups) -> Groups:
    """The same groups, numbered in the order of their first variables: equal for equal partitions.

    Example:
        >>> partition((2, 0, 2, 1))
        (0, 1, 0, 2)
    """
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(group, len(numbers)) for group in groups)


class AdditiveModel:
    """Marginal likelihoods of decompositions, each at the best parameters; they are remembered.

    Args:
        points: ``n x D``.
        values: n, standardised.
    """

    def __init__(self, points: FloatArray, values: FloatArray) -> None:
        self.points, self.values = points, values
        self._squares = (points[:, None, :] - points[None, :, :]) ** 2
        self._known: dict[Groups, float] = {}

    def log_likelihood(self, groups: Groups) -> float:
        """Logarithm of the largest marginal likelihood of a decomposition; the numbers of its groups do not matter."""
        key = partition(groups)
        if key not in self._known:
            self._known[key] = self._fitted(key)
        return self._known[key]

    def log_likelihood_at(self, groups: Groups, logarithms: FloatArray) -> float:
        """The same at given logarithms of the D length scales, of the variance and of the noise variance."""
        dim = self.points.shape[1]
        scaled = self._squares / np.exp(2.0 * logarithms[:dim])
        own = np.asarray(groups)
        gram = sum(np.exp(-0.5 * scaled[:, :, own == group].sum(-1)) for group in sorted(set(groups)))
        variance, noise = np.exp(logarithms[dim:])
        covariance = variance * np.asarray(gram) + noise * np.eye(len(self.values))
        factor = linalg.cholesky(covariance, lower=True)
        white = linalg.solve_triangular(factor, self.values, lower=True)
        return float(
            -0.5 * white @ white - np.log(np.diag(factor)).sum() - 0.5 * len(self.values) * math.log(2.0 * math.pi)
        )

    def _fitted(self, groups: Groups) -> float:
        dim = self.points.shape[1]
        start = np.array([START[0]] * dim + list(START[1:]))
        bounds = [BOUNDS[0]] * dim + list(BOUNDS[1:])
        found = optimize.minimize(
            lambda logarithms: -self.log_likelihood_at(groups, logarithms), start, method="L-BFGS-B", bounds=bounds
        )
        return -float(found.fun)


class DecompositionSampler:
    """A Metropolis chain over assignments of variables to groups.

    It keeps its state after a rejection, and goes on from its last one when it is given a new model.

    Args:
        dim: Variables D.
        groups: Groups G at most.
        move: ``"single"``, one variable to a random other group; ``"pair"``, the paper's, two variables to a random
            group, which has no move back out of many states, so that no distribution is known for what it visits.

    Raises:
        InputError: For fewer than two variables or groups, or another move.
    """

    def __init__(self, dim: int, groups: int, move: Move = "single") -> None:
        if dim < 2 or groups < 2:
            raise InputError(f"{dim} variables in {groups} groups: at least two of each are needed")
        if move not in ("single", "pair"):
            raise InputError(f"move is {move!r}; expected 'single' or 'pair'")
        self.dim, self.groups, self.move = dim, groups, move
        self.state: Groups = tuple(index % groups for index in range(dim))

    def sample(self, model: AdditiveModel, steps: int, rng: np.random.Generator) -> list[Groups]:
        """The states after each of some steps, as they are numbered."""
        level = model.log_likelihood(self.state)
        visited = []
        for _ in range(steps):
            proposed = self._moved(rng)
            other = model.log_likelihood(proposed)
            if other - level > math.log(max(rng.random(), 1e-300)):
                self.state, level = proposed, other
            visited.append(self.state)
        return visited

    def _moved(self, rng: np.random.Generator) -> Groups:
        found = list(self.state)
        if self.move == "pair":
            group = int(rng.integers(self.groups))
            for variable in rng.choice(self.dim, 2, replace=False):
                found[int(variable)] = group
            return tuple(found)
        variable = int(rng.integers(self.dim))
        found[variable] = (found[variable] + int(rng.integers(1, self.groups))) % self.groups
        return tuple(found)
