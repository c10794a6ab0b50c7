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

from seqopt.encoding import EncodedStrings, Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels.engines import order_sums
from seqopt.models.checks import checked_noise, checked_values
from seqopt.models.covariance import FloatArray, KernelEvaluator
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

# The decays lie closest at small gap and large match decays, where short patterns are. This spacing is part of the
# prior. It was chosen on pattern tasks of the BOSS experiments, with seeds that `seqopt bench boss` does not report.
GAP_DECAYS = (0.01, 0.04, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
MATCH_DECAYS = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
OUTPUT_SCALES = tuple(np.exp(np.linspace(-2.0, 2.5, 7)).tolist())
NOISE_VARIANCES = tuple(np.exp(np.linspace(-9.0, 0.0, 8)).tolist())
"""The grid. Scales and variances are those of standardised values."""

ALWAYS_REFITTED = 100
"""Number of training strings up to which every fit draws parameters anew."""


class FullyBayesianStringGP(GaussianSurrogate, Configurable):
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
        super().__init__(Encoder("characters" if tokenizer is None else tokenizer))
        self._tokenizer_chosen = tokenizer is not None
        self._parameters: dict[str, list[float]] | None = None
        self._full_fit_size = 0
        self._units = (0.0, 1.0)

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        tokenizer = self.encoder.tokenizer if self._tokenizer_chosen and isinstance(self.encoder, Encoder) else None
        return {"kernel": self.kernel, "tokenizer": tokenizer, "draws": self.draws, "refit_growth": self.refit_growth}

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    @property
    def units(self) -> tuple[float, float]:
        """See `GaussianSurrogate`."""
        return self._units

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
            self._forget_columns()
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

    def state_dict(self) -> dict[str, Any]:
        """The drawn parameters and the number of strings they were drawn for, as JSON values."""
        return {"parameters": self._parameters, "full_fit_size": self._full_fit_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there."""
        self._parameters = state["parameters"]
        self._full_fit_size = state["full_fit_size"]
        self._state = None
        self._forget_columns()


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
