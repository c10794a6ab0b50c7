"""Gaussian-process surrogate on strings whose kernel parameters are integrated out.

Model: standardised values = f(s) + noise, f ~ GP(0, outputscale * k), with k the normalised sub-sequence kernel. Its
parameters (gap decay, match decay, output scale, noise variance) are those of a grid: the prior is discrete. Each gap
decay costs one dynamic program over the training strings and each pair of decays one eigendecomposition
K = U diag(e) U^T; all output scales a and noise variances s2 then follow from

    log p(y) = -1/2 sum_i [ (U^T y)_i^2 / (a e_i + s2) + log(a e_i + s2) + log 2 pi ].

Draws are taken from the grid by systematic resampling, so a few of them represent it well. Acquisition functions are
averaged over the draws: with few evaluations many parameters explain them, and a point estimate is overconfident.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 5.2 and 5.4.
    Snoek, J., Larochelle, H. and Adams, R. P. (2012). Practical Bayesian optimization of machine learning algorithms.
        NeurIPS, section 3.2.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings, Encoder, Tokenizer
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels.engines import order_sums
from seqopt.models.checks import checked_noise, checked_values
from seqopt.models.conditioned import BatchedGPState, BlockwisePosterior, ConditionedGaussianProcess
from seqopt.models.covariance import FloatArray, KernelEvaluator, correlations
from seqopt.models.leave_one_out import LeaveOneOut, leave_one_out
from seqopt.models.protocols import Posterior
from seqopt.spaces import PoolSpace

logger = logging.getLogger(__name__)

# The decays lie closest at small gap and large match decays, where short patterns are. This spacing is part of the
# prior. It was chosen on pattern tasks of the BOSS experiments, with seeds that `seqopt bench boss` does not report.
GAP_DECAYS = (0.01, 0.04, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
MATCH_DECAYS = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
OUTPUT_SCALES = tuple(np.exp(np.linspace(-2.0, 2.5, 7)).tolist())
NOISE_VARIANCES = tuple(np.exp(np.linspace(-9.0, 0.0, 8)).tolist())
"""The grid. Scales and variances are those of standardised values."""

CANDIDATE_MEMORY = 1 << 30
"""Bytes up to which the posterior at all candidates of a pool is held at once."""

ALWAYS_REFITTED = 100
"""Number of training strings up to which every fit draws parameters anew."""


class FullyBayesianStringGP:
    """Gaussian process over strings, averaged over draws from the posterior of its parameters.

    Its posteriors are mixtures over the draws: `conditioned`, which searches use, keeps the draws apart in a leading
    dimension; `predict` and `posterior` give the moments of the mixture.

    A fit to n strings takes at most 16 dynamic programs and 56 eigendecompositions of n x n matrices. Beyond 100
    strings the parameters are drawn anew only when the data have grown by ``refit_growth``.

    Args:
        kernel: Order, partitions, order weights, engine and threads are taken from it; its decays are not. Default:
            order 5.
        tokenizer: How strings are split into symbols: a name or a `Tokenizer`. Default: the space's own, or characters
            where there is none.
        draws: Number of draws.
        refit_growth: See above.

    Raises:
        InputError: If ``draws`` < 1, ``refit_growth`` < 0, or the kernel is not normalised or has a batch shape.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> gp = FullyBayesianStringGP()
        >>> gp.fit(["AAAA", "AAAT", "TTTA", "TTTT"], [0.0, 1.0, 3.0, 4.0], rng=rng)
        >>> mean, std = gp.predict(["ATAA", "TTAT"])
        >>> bool(mean[0] < mean[1])
        True
    """

    def __init__(
        self,
        kernel: SubsequenceKernel | None = None,
        *,
        tokenizer: str | Tokenizer | None = None,
        draws: int = 8,
        refit_growth: float = 0.1,
    ) -> None:
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
            raise InputError(f"draws is {draws!r}; it must be an integer of at least 1")
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        self.kernel = SubsequenceKernel() if kernel is None else kernel
        if not isinstance(self.kernel, SubsequenceKernel):
            raise InputError(f"the kernel is a {type(self.kernel).__name__}; only a SubsequenceKernel can be averaged")
        if not self.kernel.normalize or self.kernel.batch_shape:
            raise InputError("the kernel must be normalised and have no batch shape")
        self.draws = int(draws)
        self.refit_growth = refit_growth
        self.encoder = Encoder("characters" if tokenizer is None else tokenizer)
        self._tokenizer_chosen = tokenizer is not None
        self._parameters: dict[str, list[float]] | None = None
        self._full_fit_size = 0
        self._units = (0.0, 1.0)
        self._state: BatchedGPState | None = None

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    def bind(self, space: Any) -> None:
        """Take the encoder of ``space``, unless a tokeniser was chosen. Called by the optimiser."""
        if not self._tokenizer_chosen and self._state is None:
            self.encoder = space.encoder

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Means over the draws: decays, output scale and noise variance (the last two for standardised values)."""
        return {name: float(np.mean(values)) for name, values in (self._parameters or {}).items()}

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
    ) -> None:
        """Fit to ``strings`` and ``values``.

        Args:
            strings: n strings.
            values: n finite values, larger is better.
            rng: Draws the parameters.
            noise_variance: Known variance of the noise of each value (squared standard errors), 0 where unknown, in the
                values' units squared. A variance that all values share is learned besides; while it is, each value
                counts as having the mean of the known ones.

        Raises:
            InputError: If there are fewer than two strings, the numbers differ, a value is not finite, or a noise
                variance is negative.
        """
        targets = checked_values(strings, values)
        known = checked_noise(strings, noise_variance)
        spread = float(targets.std(ddof=1)) if np.ptp(targets) > 0 else 0.0
        if spread == 0.0:
            logger.warning("all %d values equal %g: the model cannot tell strings apart yet", len(targets), targets[0])
        self._units = float(targets.mean()), spread or 1.0
        standardized = (targets - self._units[0]) / self._units[1]
        known = known / self._units[1] ** 2
        encoded = self.encoder.encode(strings)
        change = abs(len(strings) - self._full_fit_size)
        if (
            len(strings) <= ALWAYS_REFITTED
            or self._parameters is None
            or change >= self.refit_growth * self._full_fit_size
        ):
            self._parameters = self._draw(encoded, standardized, float(known.mean()), rng)
            self._full_fit_size = len(strings)
        assert self._parameters is not None
        drawn = {name: torch.tensor(numbers, dtype=torch.float64) for name, numbers in self._parameters.items()}
        kernel = SubsequenceKernel(
            self.kernel.order,
            drawn["match_decay"],
            drawn["gap_decay"],
            order_weights=self.kernel.order_weights,
            partitions=self.kernel.partitions,
            engine=self.kernel.engine,
            threads=self.kernel.threads,
            match_decay_bounds=(1e-9, 1.0),
            gap_decay_bounds=(1e-9, 1.0),
            batch_shape=torch.Size([self.draws]),
        )
        self._state = BatchedGPState.build(
            KernelEvaluator(kernel, encoded.width),
            list(strings),
            encoded,
            torch.from_numpy(standardized),
            torch.zeros(self.draws, dtype=torch.float64),
            drawn["outputscale"],
            drawn["noise_variance"],
            torch.from_numpy(known),
        )

    def _draw(
        self, encoded: EncodedStrings, targets: FloatArray, known_noise: float, rng: np.random.Generator
    ) -> dict[str, list[float]]:
        density = self.log_density(encoded, targets, known_noise)
        weights = np.exp(density - density.max()).ravel()
        # Systematic resampling: equally spaced points with one random offset.
        points = (rng.random() + np.arange(self.draws)) / self.draws
        places = np.searchsorted(np.cumsum(weights / weights.sum()), points).clip(max=weights.size - 1)
        chosen = np.unravel_index(places, density.shape)
        grids = {
            "gap_decay": GAP_DECAYS,
            "match_decay": MATCH_DECAYS,
            "outputscale": OUTPUT_SCALES,
            "noise_variance": NOISE_VARIANCES,
        }
        return {name: [grid[place] for place in axis] for (name, grid), axis in zip(grids.items(), chosen, strict=True)}

    def log_density(self, encoded: EncodedStrings, targets: FloatArray, known_noise: float = 0.0) -> FloatArray:
        """Logarithm of marginal likelihood times prior on the grid: gap decays x match decays x scales x noises.

        The prior of a point is in proportion to the densities there of N(0.5, 0.5) for both decays and, per unit of the
        logarithm, of log-normal distributions (0, 1) for the output scale and (-4, 1) for the noise variance.

        Args:
            encoded: The n strings.
            targets: Standardised values, n.
            known_noise: Known part of their noise variance.
        """
        scales, noises = np.array(OUTPUT_SCALES), np.array(NOISE_VARIANCES)
        orders = np.arange(1, self.kernel.order + 1)
        weights: FloatArray = np.array(MATCH_DECAYS, dtype=np.float64)[:, None] ** (2 * orders)
        if (own := self.kernel.order_weights) is not None:
            weights = weights * own.detach().numpy()
        table = np.empty((len(GAP_DECAYS), len(MATCH_DECAYS), len(scales), len(noises)))
        for place, gap in enumerate(GAP_DECAYS):
            grams, _ = order_sums(
                encoded,
                None,
                gap,
                self.kernel.order,
                weights=weights,
                engine=self.kernel.engine,
                threads=self.kernel.threads,
                partitions=self.kernel.partitions,
            )
            table[place] = _log_likelihoods(grams, targets, scales, noises + known_noise)
        decays = [-0.5 * ((np.array(grid) - 0.5) / 0.5) ** 2 for grid in (GAP_DECAYS, MATCH_DECAYS)]
        table += decays[0][:, None, None, None] + decays[1][:, None, None]
        table += -0.5 * np.log(scales)[:, None] ** 2 - 0.5 * (np.log(noises) + 4.0) ** 2
        return table

    def conditioned(self, pending: Sequence[str] = ()) -> ConditionedGaussianProcess:
        """Posterior in standardised units, draws kept apart; see `seqopt.models.StringSurrogate`.

        Raises:
            ModelError: Before the first fit.
        """
        return ConditionedGaussianProcess(self._fitted, self.encoder, pending)

    def pool_posterior(
        self,
        pool: PoolSpace,
        indices: npt.NDArray[np.int64] | None = None,
        pending: Sequence[str] = (),
    ) -> Posterior:
        """Posterior in standardised units, draws kept apart; see `seqopt.models.PoolSurrogate`.

        Nothing is kept from one step to the next: for N candidates and n evaluated ones a step takes D N n kernel
        evaluations, D being the number of draws. Up to 1 GB, at 24 D N n bytes, the candidates are held at once;
        beyond, they are looked at in blocks, anew for each element of a batch.

        Raises:
            ModelError: Before the first fit.
        """
        keys = pool.keys if indices is None else [pool.keys[int(place)] for place in indices]
        process = self.conditioned(pending)
        needed = 24 * self.draws * len(keys) * (len(self._fitted.keys) + len(pending) + 1)
        return process.at(keys) if needed <= CANDIDATE_MEMORY else BlockwisePosterior(process, keys)

    def predict(self, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Mean and noiseless standard deviation of the mixture at each string, in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        posterior = BlockwisePosterior(self.conditioned(), strings)
        return self.untransform(
            posterior.mean.mean(0), posterior.variance.mean(0) + posterior.mean.var(0, correction=0)
        )

    def posterior(self, strings: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Joint mean (n) and noiseless covariance (n x n) of the mixture, in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        mean, covariance = self._joint(strings)
        offset, unit = self._units
        return offset + unit * mean.mean(0), unit**2 * (covariance.mean(0) + _covariance_of_means(mean))

    def covariance(self, a: Sequence[str], b: Sequence[str]) -> Tensor:
        """Posterior covariance (len(a) x len(b)) of the noiseless objective, in the values' units squared.

        Raises:
            ModelError: Before the first fit.
        """
        return self.posterior([*a, *b])[1][: len(a), len(a) :]

    def sample(self, strings: Sequence[str], n: int, rng: np.random.Generator) -> Tensor:
        """``n`` joint draws of the noiseless objective (n x len(strings)), each at a random draw of the parameters.

        Raises:
            ModelError: Before the first fit.
        """
        mean, covariance = self._joint(strings)
        values, vectors = torch.linalg.eigh(covariance)
        chosen = torch.from_numpy(rng.integers(self.draws, size=n))
        normal = torch.from_numpy(rng.standard_normal((n, len(strings), 1)))
        roots = vectors * values.clamp_min(0).sqrt()[:, None]
        offset, unit = self._units
        return offset + unit * (mean[chosen] + (roots[chosen] @ normal)[..., 0])

    def similarity(self, a: Sequence[str], b: Sequence[str]) -> FloatArray:
        """Prior correlation (len(a) x len(b)) at two lists of strings, mean over the draws: 1 for equal ones.

        Raises:
            ModelError: Before the first fit.
        """
        found = correlations(self._fitted.evaluator, self.encoder.encode(a), self.encoder.encode(b))
        return found.mean(axis=0)

    def leave_one_out(self) -> LeaveOneOut:
        """Predictions for each value from the others: moments of the mixture over the draws.

        Raises:
            ModelError: Before the first fit.
        """
        state = self._fitted
        mean, variance = leave_one_out(state.cholesky, state.alpha, state.targets)
        spread = variance.mean(0) + mean.var(0, correction=0)
        offset, unit = self._units
        return LeaveOneOut(
            offset + unit * state.targets.numpy(), *self.untransform(mean.mean(0).numpy(), spread.numpy())
        )

    def untransform(self, mean: npt.ArrayLike, variance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation in the values' units, from standardised mean and variance."""
        offset, unit = self._units
        return offset + unit * np.asarray(mean), unit * np.sqrt(np.asarray(variance))

    def state_dict(self) -> dict[str, Any]:
        """The drawn parameters and the number of strings they were drawn for, as JSON values."""
        return {"parameters": self._parameters, "full_fit_size": self._full_fit_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there."""
        self._parameters = state["parameters"]
        self._full_fit_size = state["full_fit_size"]
        self._state = None

    def _joint(self, strings: Sequence[str]) -> tuple[Tensor, Tensor]:
        return self.conditioned().at(strings).joint(torch.arange(len(strings)))

    @property
    def _fitted(self) -> BatchedGPState:
        if self._state is None:
            raise ModelError("this surrogate has not been fitted yet: call fit(strings, values, rng=...)")
        return self._state


def _log_likelihoods(grams: FloatArray, targets: FloatArray, scales: FloatArray, noises: FloatArray) -> FloatArray:
    """Log marginal likelihoods, M x scales x noises, of unnormalised Gram matrices M x n x n."""
    own = np.diagonal(grams, axis1=1, axis2=2)
    with np.errstate(divide="ignore"):
        roots = np.where(own > 0, own**-0.5, 0.0)
    normalized = grams * roots[:, :, None] * roots[:, None, :]
    values, vectors = np.linalg.eigh(normalized)
    projected = np.einsum("mij,i->mj", vectors, targets) ** 2
    variances = scales[:, None, None] * values.clip(min=0.0)[:, None, None, :] + noises[:, None]
    quadratic: FloatArray = -0.5 * (projected[:, None, None] / variances + np.log(2 * np.pi * variances)).sum(-1)
    return quadratic


def _covariance_of_means(mean: Tensor) -> Tensor:
    centred = mean - mean.mean(0)
    return centred.T @ centred / len(mean)
