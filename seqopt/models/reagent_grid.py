"""Means and joint posterior draws of all tuples of a combinatorial space at once.

The kernel is a sum of products over components, so on a grid of blocks every term is a Kronecker product: with K_s the
matrix of one component and S_T the weights of the data, summed over the components that a term T leaves out,

    mean = sum_T w_T (prod over s in T: K_s along axis s) S_T,

at the cost of some multiplications of small matrices, and no covariance with any tuple is formed. A draw of the prior
comes from the Cholesky factors of the K_s in the same way. By Matheron's rule a draw f of the prior becomes one of the
posterior, f + k(., X) (K + noise)^-1 (y - f(X) - e) with a draw e of the noise.

References:
    Saatci, Y. (2011). Scalable inference for structured Gaussian process models. PhD thesis, Cambridge, chapter 5.
    Wilson, J. T. et al. (2021). Pathwise conditioning of Gaussian processes. JMLR 22 (equation 13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import cho_solve

from seqopt.kernels.reagents import OFFSET, numbers_of, subsets
from seqopt.models.reagent_gp import ReagentGP
from seqopt.posteriors import stable_cholesky
from seqopt.spaces.combinatorial import CombinatorialSpace

Values = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

LARGEST = 2_000_000
"""Elements of a grid up to which all tuples are looked at."""

JITTER = 1e-6
"""What is added to the diagonal of the matrix of a component before it is factorised."""


class TupleGrid:
    """All tuples of a space as parts of one grid: an axis for each component, with the blocks of all reactions.

    Args:
        space: The space.
    """

    def __init__(self, space: CombinatorialSpace) -> None:
        self.reactions = len(space.reactions)
        self._parts = [
            [
                space.component(reaction, slot) if slot < space.components(reaction) else np.array([-1])
                for slot in range(space.slots)
            ]
            for reaction in range(self.reactions)
        ]
        self.axes = [np.unique(np.concatenate([part[slot] for part in self._parts])) for slot in range(space.slots)]
        self._places = [
            [np.searchsorted(axis, numbers) for axis, numbers in zip(self.axes, part, strict=True)]
            for part in self._parts
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the grid."""
        return tuple(map(len, self.axes))

    @property
    def size(self) -> int:
        """Elements of the grid."""
        return math.prod(self.shape)

    def part_shape(self, reaction: int) -> tuple[int, ...]:
        """Numbers of blocks that the components of one reaction have; 1 for each component that it lacks."""
        return tuple(map(len, self._parts[reaction]))

    def part(self, values: Values, reaction: int) -> Values:
        """Values of the tuples of one reaction, flat."""
        return np.ascontiguousarray(values[np.ix_(*self._places[reaction])]).reshape(-1)

    def tuples(self, reaction: int, flat: Numbers) -> Numbers:
        """Tuples of one reaction by their places in `part`, as rows of a reaction and blocks."""
        part = self._parts[reaction]
        places = np.unravel_index(flat, tuple(map(len, part)))
        columns = [numbers[place] for numbers, place in zip(part, places, strict=True)]
        return np.stack([np.full(len(flat), reaction), *columns], axis=1)

    def flat(self, tuples: Numbers) -> tuple[Numbers, Numbers]:
        """For rows of a reaction and blocks: the reaction of each, and its place in `part`."""
        found = np.empty(len(tuples), dtype=np.int64)
        for reaction in range(self.reactions):
            mine = np.flatnonzero(tuples[:, 0] == reaction)
            part = self._parts[reaction]
            places = [np.searchsorted(numbers, tuples[mine, slot]) for slot, numbers in enumerate(part, 1)]
            found[mine] = np.ravel_multi_index(tuple(places), tuple(map(len, part)))
        return tuples[:, 0], found

    def places(self, tuples: Numbers) -> tuple[Numbers, ...]:
        """Places of tuples in the grid, one array for each axis."""
        return tuple(np.searchsorted(axis, tuples[:, slot]) for slot, axis in enumerate(self.axes, 1))


class GridPosterior:
    """The posterior of a fitted surrogate at all tuples of a grid, in standardised units and single precision.

    It is that of the terms of building blocks. Where the surrogate compares products, too, means are exactly those of
    this part of the function; in draws, what products tell of the data counts as noise that is independent, which is
    an approximation: draws then nominate tuples, no more (`seqopt.models.ReagentGP.joint_draws` is exact for some).

    Args:
        surrogate: Fitted.
        grid: Of its space.

    Example:
        >>> space = CombinatorialSpace(
        ...     ["[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"],
        ...     {"acids": ["CC(=O)O", "OC(=O)c1ccccc1"], "amines": ["CN", "CCN", "NC1CC1"]},
        ... )
        >>> gp, rng = ReagentGP(), np.random.default_rng(0)
        >>> gp.bind(space)
        >>> products = space.sample(5, rng)
        >>> gp.fit(products, [float(len(product)) for product in products], rng=rng)
        >>> (mean,) = GridPosterior(gp, TupleGrid(space)).mean()
        >>> mean.shape
        (6,)
    """

    def __init__(self, surrogate: ReagentGP, grid: TupleGrid) -> None:
        self.grid = grid
        self._kernel = surrogate.kernel
        state = surrogate.fitted
        self._factor = state.cholesky[0].numpy()
        self._alpha = state.alpha[0].numpy()
        self._targets = state.targets.numpy()
        self._noise = (state.observed_noise[0] + self._kernel.product).sqrt().numpy()
        self._tuples = numbers_of(state.encoded)
        self._places = grid.places(self._tuples)
        self._terms = list(zip(subsets(self._kernel.slots), self._kernel.weights, strict=True))

    @cached_property
    def _matrices(self) -> list[Values]:
        """K_s."""
        return [self._kernel.slot(slot, axis, axis).astype(np.float32) for slot, axis in enumerate(self.grid.axes)]

    @cached_property
    def _factors(self) -> list[Values]:
        """Their Cholesky factors."""
        found = []
        for slot, axis in enumerate(self.grid.axes):
            matrix = self._kernel.slot(slot, axis, axis) + JITTER * np.eye(len(axis))
            found.append(stable_cholesky(torch.from_numpy(matrix))[0].numpy().astype(np.float32))
        return found

    def mean(self) -> list[Values]:
        """Posterior means of the tuples of each reaction, flat, in the order of `TupleGrid.part`."""
        return self._explained(self._alpha)

    def draws(self, count: int, rng: np.random.Generator) -> list[list[Values]]:
        """Joint posterior draws; of each, the values of the tuples of each reaction.

        Args:
            count: How many.
            rng: The only source of randomness.
        """
        priors = [self._prior(rng) for _ in range(count)]
        residuals = np.stack(
            [
                self._targets - self._at_data(prior) - self._noise * rng.standard_normal(len(self._targets))
                for prior in priors
            ],
            axis=1,
        )
        weights = cho_solve((self._factor, True), residuals, check_finite=False)
        found = []
        for prior, alpha in zip(priors, weights.T, strict=True):
            explained = self._explained(np.ascontiguousarray(alpha))
            parts = [self.grid.part(one, reaction) for reaction, one in enumerate(prior)]
            found.append([one + other for one, other in zip(parts, explained, strict=True)])
        return found

    def _explained(self, alpha: npt.NDArray[np.float64]) -> list[Values]:
        """k(., X) alpha of the tuples of each reaction."""
        between = self._kernel.between if self.grid.reactions > 1 else 1.0
        shared = self._spread(alpha) if between > 0 else None
        found = []
        for reaction in range(self.grid.reactions):
            whole = np.zeros(self.grid.shape, dtype=np.float32) if shared is None else np.float32(between) * shared
            if between < 1:
                own = np.where(self._tuples[:, 0] == reaction, alpha, 0.0)
                whole = whole + np.float32(1 - between) * self._spread(own)
            found.append(self.grid.part(whole, reaction))
        return found

    def _spread(self, alpha: npt.NDArray[np.float64]) -> Values:
        weights = np.zeros(self.grid.shape)
        np.add.at(weights, self._places, alpha)
        everywhere = tuple(range(len(self.grid.shape)))

        def summed(term: Sequence[int], weight: float) -> Values:
            left_out = tuple(axis for axis in everywhere if axis not in term)
            return (weight * weights.sum(axis=left_out)).astype(np.float32)

        return self._field(self._matrices, summed, OFFSET * float(alpha.sum()))

    def _prior(self, rng: np.random.Generator) -> list[Values]:
        """A draw of the prior: the whole grid for each reaction."""

        def normal(term: Sequence[int], weight: float) -> Values:
            shape = tuple(self.grid.shape[axis] for axis in term)
            return np.float32(math.sqrt(weight)) * rng.standard_normal(shape, dtype=np.float32)

        def one() -> Values:
            return self._field(self._factors, normal, math.sqrt(OFFSET) * rng.standard_normal())

        if self.grid.reactions == 1:
            return [one()]
        between = self._kernel.between
        shared = np.float32(math.sqrt(between)) * one()
        return [shared + np.float32(math.sqrt(1 - between)) * one() for _ in range(self.grid.reactions)]

    def _field(
        self, matrices: Sequence[Values], coefficients: Callable[[Sequence[int], float], Values], offset: float
    ) -> Values:
        """The sum over terms of their coefficients, multiplied along each axis by the matrix of its component."""
        found = np.full(self.grid.shape, offset, dtype=np.float32)
        for term, weight in self._terms:
            values = coefficients(term, weight)
            for place, slot in enumerate(term):
                values = np.moveaxis(np.tensordot(matrices[slot], values, axes=(1, place)), 0, place)
            shape = [size if axis in term else 1 for axis, size in enumerate(self.grid.shape)]
            found += values.reshape(shape)
        return found

    def _at_data(self, prior: Sequence[Values]) -> npt.NDArray[np.float64]:
        found = np.empty(len(self._tuples))
        for reaction, values in enumerate(prior):
            mine = self._tuples[:, 0] == reaction
            found[mine] = values[tuple(place[mine] for place in self._places)]
        return found
