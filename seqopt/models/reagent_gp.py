"""Gaussian process on tuples of building blocks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import cho_solve, solve_triangular

from seqopt.data.query import Item, key_of
from seqopt.encoding import Encoder, FeatureEncoder, FeatureRows
from seqopt.errors import InputError, ModelError
from seqopt.kernels.products import ProductSimilarities
from seqopt.kernels.reagents import BlockSimilarities, ReagentKernel, numbers_of, subsets
from seqopt.models.checks import checked_noise, checked_values, differ
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState, Conditioning
from seqopt.models.reagent_fit import ReagentParameters, fitted
from seqopt.posteriors import stable_cholesky
from seqopt.spaces import Space
from seqopt.spaces.combinatorial import CombinatorialSpace
from seqopt.utils.cache import digest
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]


class TupleFeatures:
    """Products as their tuples: the reaction, then the blocks; implements `seqopt.encoding.Featurizer`.

    Args:
        space: Knows the tuples.
    """

    def __init__(self, space: CombinatorialSpace) -> None:
        self.space = space
        self.size = 1 + space.slots
        self.name = f"tuples({space.slots} components, {len(space.reagents)} building blocks)"

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """One row for each product, n x (1 + S).

        Raises:
            InputError: For a string that is not a product.
        """
        return self.space.rows_of(strings).astype(np.float64)

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Which strings are not products."""
        return {
            index: f"{string!r} is not a product of the reactions and building blocks"
            for index, string in enumerate(strings)
            if not self.space.makes(string)
        }


class ReagentGP(GaussianSurrogate, Configurable):
    """Gaussian process over the products of a `seqopt.spaces.CombinatorialSpace`, by their building blocks.

    Its kernel, `seqopt.kernels.ReagentKernel`, sums over all subsets of the components the products of the blocks'
    similarities; the weights of additive terms and interactions, how much of a block its fingerprint does not tell, and
    the noise are learned. Values are standardised inside. Parameters are fitted when the data have grown by
    ``refit_growth`` since the last time; in between the Cholesky factor is extended by the new rows, so that n values
    with m new ones cost O(n^2 m), or O(n^3) where the noise of some is known: in standardised units it is another.

    Args:
        refit_growth: Parameters are fitted when n has grown by this fraction since the last fit.
        fit_size: Parameters are fitted to at most so many values, a random choice of all. The model is always
            conditioned on all.
        products: Whether the kernel also compares the products themselves, with a weight that is learned. Products are
            then made to be compared; searches nominate tuples by their blocks, and make those products only.

    Raises:
        InputError: If ``refit_growth`` < 0 or ``fit_size`` < 2.

    Example:
        >>> space = CombinatorialSpace(
        ...     ["[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"],
        ...     {"acids": ["CC(=O)O", "OC(=O)c1ccccc1"], "amines": ["CN", "CCN", "NC1CC1"]},
        ... )
        >>> gp = ReagentGP()
        >>> gp.bind(space)
        >>> products = space.sample(5, np.random.default_rng(0))
        >>> gp.fit(products, [len(product) for product in products], rng=np.random.default_rng(0))
        >>> mean, std = gp.predict(products)
        >>> mean.shape, bool((std > 0).all())
        ((5,), True)
    """

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    def __init__(self, refit_growth: float = 0.5, fit_size: int = 600, products: bool = False) -> None:
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        if fit_size < 2:
            raise InputError(f"fit_size is {fit_size}; a fit needs at least 2 values")
        super().__init__(Encoder("smiles-split"))
        self.refit_growth = refit_growth
        self.fit_size = fit_size
        self.products = bool(products)
        self._made: ProductSimilarities | None = None
        self._space: CombinatorialSpace | None = None
        self._similarities: BlockSimilarities | None = None
        self._parameters: ReagentParameters | None = None
        self._fitted_to = 0
        self._units = (0.0, 1.0)
        self._steps: tuple[int, ...] = ()
        self._digest = ""
        self._before: tuple[dict[str, Any], BatchedGPState | None] | None = None

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"refit_growth": self.refit_growth, "fit_size": self.fit_size, "products": self.products}

    def bind(self, space: Space) -> None:
        """Take reactions and building blocks from ``space``; called by the optimiser.

        Raises:
            InputError: For a space of another kind.
        """
        if not isinstance(space, CombinatorialSpace):
            raise InputError(
                f"ReagentGP compares the building blocks of products, and a {type(space).__name__} has none: give a "
                "CombinatorialSpace"
            )
        blocks = tuple(block.key for block in space.reagents.blocks)
        if self._similarities is None or self._similarities.smiles != blocks:
            self._similarities = BlockSimilarities(blocks)
        if self.products and (self._made is None or self._made.space is not space):
            self._made = ProductSimilarities(space)
        if self._space is not space:
            self._before = None
        self._space = space
        self.encoder = FeatureEncoder(TupleFeatures(space))

    @property
    def space(self) -> CombinatorialSpace:
        """The space that it is bound to.

        Raises:
            ModelError: Before `bind`.
        """
        if self._space is None:
            raise ModelError("this surrogate knows no reactions and building blocks yet: call bind(space)")
        return self._space

    @property
    def similarities(self) -> BlockSimilarities:
        """Of the building blocks.

        Raises:
            ModelError: Before `bind`.
        """
        if self._similarities is None:
            raise ModelError("this surrogate knows no reactions and building blocks yet: call bind(space)")
        return self._similarities

    @property
    def kernel(self) -> ReagentKernel:
        """The kernel at the parameters of the last fit, or at those that a fit begins with."""
        parameters = self._parameters or ReagentParameters.first(self.space.slots, self.products)
        return parameters.kernel(self.similarities, self._made)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Weights of the terms, shares that fingerprints do not tell, and the variance of the noise (for standardised
        values); empty before the first fit.
        """
        if self._parameters is None:
            return {}
        kernel = self.kernel
        named = ("+".join(str(slot + 1) for slot in term) for term in subsets(kernel.slots))
        found = {f"weight[{name}]": weight for name, weight in zip(named, kernel.weights, strict=True)}
        if self.products:
            found["weight[product]"] = kernel.product
        found |= {f"same[{slot}]": share for slot, share in enumerate(kernel.same, 1)}
        if len(self.space.reactions) > 1:
            found["between"] = kernel.between
        return found | {"noise_variance": self._parameters.noise}

    @property
    def units(self) -> tuple[float, float]:
        """Mean and standard deviation by which values are standardised: those of the values of the last fit."""
        return self._units

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Strings that are not products of the space."""
        return TupleFeatures(self.space).unsupported(strings)

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
    ) -> None:
        """Fit to products and their values.

        Args:
            strings: n products.
            values: n finite values, larger is better.
            rng: Chooses what the parameters are fitted to where that is not all.
            noise_variance: Known variance of the noise of each value, 0 where unknown, in the values' units squared.

        Raises:
            InputError: For fewer than two values, values that are not finite, or strings that are not products.
            ModelError: Before `bind`.
        """
        targets = checked_values(strings, values)
        known = checked_noise(strings, noise_variance)
        encoded = self._encoded(strings)
        tuples = numbers_of(encoded)
        self._before = self.state_dict(), self._state
        grown = len(targets) - self._fitted_to >= self.refit_growth * self._fitted_to
        # Always those of these values: a transform that is learned anew brings others, whatever the parameters are.
        spread = float(targets.std(ddof=1)) if differ(targets) else 1.0
        self._units = float(targets.mean()), spread
        standardized, known = (targets - self._units[0]) / spread, known / spread**2
        earlier = self._steps[-1] if self._steps else 0
        begins = 0 < earlier <= len(strings) and _digest(tuples[:earlier], known[:earlier]) == self._digest
        if grown or self._parameters is None:
            start = self._parameters or ReagentParameters.first(self.space.slots, self.products)
            if differ(targets):
                chosen = np.arange(len(targets))
                if len(targets) > self.fit_size:
                    chosen = np.sort(rng.choice(len(targets), size=self.fit_size, replace=False))
                start = fitted(
                    tuples[chosen],
                    standardized[chosen],
                    known[chosen],
                    self.similarities,
                    start,
                    self._made,
                )
                self._fitted_to = len(targets)
            else:
                logger.warning("all %d values are equal: the model cannot tell products apart yet", len(targets))
            self._parameters, begins = start, False
        assert self._parameters is not None
        noise = self._parameters.noise + known
        if not begins:
            self._steps = (len(strings),)
        elif len(strings) > earlier:
            self._steps = (*self._steps, len(strings))
        self._digest = _digest(tuples, known)
        self._state = _state(
            self._state if begins else None,
            self.kernel,
            list(strings),
            encoded,
            torch.from_numpy(standardized),
            torch.from_numpy(noise),
            self._steps,
        )

    def predict(self, strings: Sequence[Item]) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
        """Posterior mean and noiseless standard deviation at each product, in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        return self.untransform(*self.moments(numbers_of(self._encoded([key_of(item) for item in strings]))))

    def moments(self, tuples: npt.NDArray[np.int64], blocks_only: bool = False) -> tuple[FloatArray, FloatArray]:
        """Standardised posterior means and noiseless variances of tuples: N rows of a reaction and blocks.

        Args:
            tuples: Of a reaction and blocks; -1 where a reaction takes fewer.
            blocks_only: Whether those of the terms of blocks alone are wanted, for which no product is made.

        Raises:
            ModelError: Before the first fit.
        """
        kernel = self.kernel.of_blocks() if blocks_only else self.kernel
        mean, solved = self._solved(kernel, tuples)
        variance = kernel.variance(FeatureRows(tuples.astype(np.float64))) - np.square(solved).sum(axis=0)
        return mean, np.maximum(variance, float(self.fitted.floor[0]))

    def joint_draws(
        self, tuples: npt.NDArray[np.int64], count: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Standardised posterior means of N tuples, and ``count`` joint posterior draws, count x N; O(N^3).

        Raises:
            ModelError: Before the first fit.
        """
        kernel = self.kernel
        mean, solved = self._solved(kernel, tuples)
        covariance = torch.from_numpy(kernel.cross(FeatureRows(tuples.astype(np.float64))) - solved.T @ solved)
        factor = stable_cholesky(0.5 * (covariance + covariance.mT))[0].numpy()
        return mean, mean + rng.standard_normal((count, len(tuples))) @ factor.T

    def _solved(self, kernel: ReagentKernel, tuples: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Means of tuples, and L^-1 k(X, tuples)."""
        state = self.fitted
        data = FeatureRows(numbers_of(state.encoded).astype(np.float64))
        between = kernel.cross(data, FeatureRows(tuples.astype(np.float64)))
        solved = solve_triangular(state.cholesky[0].numpy(), between, lower=True, check_finite=False)
        return state.alpha[0].numpy() @ between, solved

    def measurement_std(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Standard deviation of a measurement, noise included, about the predicted mean of each product.

        Raises:
            ModelError: Before the first fit.
        """
        _, std = self.predict(strings)
        return np.asarray(np.hypot(std, self.units[1] * np.sqrt(float(self.fitted.noise_variance[0]))))

    def state_dict(self) -> dict[str, Any]:
        """Parameters and units of the last fit, and the steps since then, as JSON values."""
        vector = None if self._parameters is None else self._parameters.vector().tolist()
        return {
            "parameters": vector,
            "fitted_to": self._fitted_to,
            "units": list(self._units),
            "steps": list(self._steps),
            "digest": self._digest,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there.

        What the last fit began with is at hand: a fit that is taken back, for other units of the values, costs no
        factorisation of all of them.
        """
        vector = state["parameters"]
        self._parameters = None
        if vector is not None:
            fewer = len(vector) - self.products
            slots = next((one for one in (1, 2, 3) if len(subsets(one)) + one + 2 == fewer), 0)
            if not slots:
                raise InputError(
                    f"{len(vector)} parameters are not those of a model "
                    + ("that compares products" if self.products else "that compares blocks only")
                )
            self._parameters = ReagentParameters.first(slots, self.products).moved(np.array(vector))
        self._fitted_to = int(state["fitted_to"])
        self._units = float(state["units"][0]), float(state["units"][1])
        self._steps, self._digest = tuple(state["steps"]), str(state["digest"])
        kept = self._before
        self._state = kept[1] if kept is not None and kept[0] == state else None
        self._forget_columns()

    def _encoded(self, strings: Sequence[str]) -> FeatureRows:
        found: FeatureRows = FeatureEncoder(TupleFeatures(self.space)).encode(strings)
        return found


@dataclass(frozen=True, eq=False)
class GrownState(BatchedGPState):
    """A fitted process whose factor was extended step by step.

    The same steps give the same numbers, to the last bit, whether they were taken one after another or all at once when
    a search was restored.

    Attributes:
        steps: Numbers of values after each step, the first of which was factorised as a whole.
        inverse: Of the factor of the values before the last step, if it is known.
    """

    steps: tuple[int, ...] = ()
    inverse: torch.Tensor | None = None

    @cached_property
    def unconditioned(self) -> Conditioning:
        """The data alone, with the inverse of their factor: extended like the factor, at the cost of O(n^2 m)."""
        factor, first = self.cholesky[0], self.steps[0]
        known, steps = self.inverse, self.steps[-1:]
        if known is None:
            eye = torch.eye(first, dtype=torch.float64)
            known, steps = torch.linalg.solve_triangular(factor[:first, :first], eye, upper=False), self.steps[1:]
        for total in steps:
            known = _inverted(factor, known, total)
        nothing = torch.empty(1, 0, dtype=torch.float64)
        own = self.evaluator.self_similarity(self.encoded)
        return Conditioning(self, self.encoded, tuple(self.keys), known[None], nothing, own, nothing)


def _inverted(factor: torch.Tensor, known: torch.Tensor, total: int) -> torch.Tensor:
    """The inverse of the first rows of a factor from that of fewer of them."""
    n = len(known)
    eye = torch.eye(total - n, dtype=torch.float64)
    corner = torch.linalg.solve_triangular(factor[n:total, n:total], eye, upper=False)
    found = torch.zeros(total, total, dtype=torch.float64)
    found[:n, :n], found[n:, n:] = known, corner
    found[n:, :n] = -corner @ (factor[n:total, :n] @ known)
    return found


def _state(
    before: BatchedGPState | None,
    kernel: ReagentKernel,
    keys: list[Item],
    encoded: FeatureRows,
    targets: torch.Tensor,
    noise: torch.Tensor,
    steps: tuple[int, ...],
) -> GrownState:
    """The fitted process; ``before`` is that of all steps but the last, at the same parameters."""
    evaluator = KernelEvaluator(kernel, encoded.width)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    first, left = steps[0], steps[1:]
    if before is None:
        gram = torch.from_numpy(kernel.cross(encoded.take(slice(0, first))))
        factor = stable_cholesky(0.5 * (gram + gram.mT) + noise[:first].diag())[0].numpy()
    else:
        factor, left = before.cholesky[0].numpy(), steps[-1:] if len(steps) > 1 else ()
    for total in left:
        factor = _extended(factor, kernel, encoded.take(slice(0, total)), noise[:total].numpy())
    alpha = torch.from_numpy(cho_solve((factor, True), targets.numpy(), check_finite=False))[None]
    cholesky = torch.from_numpy(factor)[None]
    known = None if before is None or not left else before.__dict__.get("unconditioned")
    return GrownState(
        evaluator,
        keys,
        encoded,
        targets,
        zero,
        one,
        noise.mean()[None],
        noise[None],
        cholesky,
        alpha,
        steps=steps,
        inverse=None if known is None else known.inverse[0],
    )


def _extended(factor: FloatArray, kernel: ReagentKernel, encoded: FeatureRows, noise: FloatArray) -> FloatArray:
    """The Cholesky factor with further rows."""
    n, total = len(factor), len(encoded)
    new = encoded.take(slice(n, total))
    link = solve_triangular(factor, kernel.cross(encoded.take(slice(0, n)), new), lower=True, check_finite=False)
    corner = kernel.cross(new) + np.diag(noise[n:]) - link.T @ link
    found = np.zeros((total, total))
    found[:n, :n], found[n:, :n] = factor, link.T
    found[n:, n:] = stable_cholesky(torch.from_numpy(0.5 * (corner + corner.T)))[0].numpy()
    return found


def _digest(tuples: npt.NDArray[np.int64], known: FloatArray) -> str:
    """What tells whether values are the first of others."""
    return digest([*map(repr, tuples.tolist()), *map(repr, known.tolist())])
