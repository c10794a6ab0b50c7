"""The mode of a posterior of parameters: one point, for kernels with too many of them for a grid or for chains."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seqopt.errors import InputError
from seqopt.models.fitting import PointEstimate, TrainingData
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.parameters import NOISE_VARIANCE, OUTPUTSCALE, KernelParameters
from seqopt.models.sampling.protocols import ParameterSample
from seqopt.utils.config import Configurable

GRAM_BYTES = 1 << 28
"""Memory of the distances of all pairs of the strings that parameters are learned from; see `ModeSampler`."""


class ModeSampler(Configurable):
    """The most probable parameters alone, found by gradients (`seqopt.models.fitting`).

    A kernel with a parameter for each of many positions (`seqopt.kernels.SitesKernel`) has too many for a
    `GridSampler`, and a `SliceSampler` moves them one by one, for minutes. One point says nothing of how sure the
    parameters are, and the mode of many parameters explains the values it was found for better than it predicts
    others: where kernels are weighed by what they predict, it weighs somewhat more than it is worth. It has no marginal
    likelihood, so that kernels with it are weighed by stacking only.

    Where the mean is known to be 0 it is 0; otherwise the best one is taken while the others are found.

    Args:
        restarts: Number of starts: the kernel's own parameters, then draws from the priors.
        fit_size: Parameters are learned from at most so many values, chosen at random, and from fewer where distances
            of all pairs at all positions would take more than `GRAM_BYTES`.

    Raises:
        InputError: If ``restarts`` < 1 or ``fit_size`` < 2. When sampling: if the marginal likelihood is asked for, or
            levels have noise of their own.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> encoded = Encoder().encode(["AAB", "ABB", "BA", "BBB"])
        >>> density = LogPosterior(NgramKernel(2), encoded, np.array([-1.0, 0.0, 0.2, 1.0]), np.zeros(4))
        >>> sample = ModeSampler().sample(density, np.random.default_rng(0))
        >>> sorted(sample.values), len(sample.weights)
        (['lengthscale', 'noise_variance', 'outputscale'], 1)
    """

    def __init__(self, restarts: int = 1, *, fit_size: int = 500) -> None:
        for name, number, least in (("restarts", restarts, 1), ("fit_size", fit_size, 2)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least {least}")
        self.restarts = int(restarts)
        self.fit_size = int(fit_size)

    def __repr__(self) -> str:
        return "ModeSampler()" if self.restarts == 1 else f"ModeSampler({self.restarts})"

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """The mode; see `Sampler.sample`. ``starts`` are not needed."""
        if evidence:
            raise InputError("a mode has no evidence: weigh its kernel by stacking, or choose another sampler")
        if density.others:
            raise InputError("noise of levels is sampled by a SliceSampler: a mode has none of them")
        size = min(self.fit_size, max(2, math.isqrt(GRAM_BYTES // (16 * max(1, len(density.parameters.names))))))
        mean = 0.0 if density.mean_std == 0.0 else None
        estimate = PointEstimate(density.kernel, fit_size=size, mean=mean)
        data = TrainingData(density.encoded, density.targets, density.known, density.sides)
        model = estimate.build(data)
        if data.differ:
            estimate.learn(model, data, rng, self.restarts, full=True)
        found = KernelParameters(model.covar_module.base_kernel)
        values = dict(zip(found.names, found.values, strict=True))
        # The model standardises what it is given once more.
        unit = float(model.outcome_transform.stdvs.squeeze()) ** 2
        values[OUTPUTSCALE] = unit * float(model.covar_module.outputscale.detach())
        values[NOISE_VARIANCE] = unit * float(model.likelihood.noise_covar.noise.detach().reshape(-1)[0])
        return ParameterSample({name: np.array([value]) for name, value in values.items()}, np.ones(1))
