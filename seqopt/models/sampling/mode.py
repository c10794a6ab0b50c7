"""The mode of a posterior of parameters: one point, for kernels with too many of them for a grid or for chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from botorch.models import SingleTaskGP

from seqopt.errors import InputError
from seqopt.models.fitting import PointEstimate, TrainingData, parameters_of
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.parameters import NOISE_VARIANCE, OUTPUTSCALE, KernelParameters
from seqopt.models.sampling.protocols import ParameterSample
from seqopt.utils.config import Configurable

GRAM_BYTES = 1 << 28
"""Memory of the distances of all pairs of the strings that parameters are learned from; see `ModeSampler`."""

FOLDS = 5
"""Parts of the values without which a mode is found again, to weigh its kernel."""

Point = dict[str, float]
"""Values of all parameters: the kernel's own in its order, then the output scale and the noise variance."""


class ModeSampler(Configurable):
    """The most probable parameters alone, found by gradients (`seqopt.models.fitting`).

    A kernel with a parameter for each of many positions (`seqopt.kernels.SitesKernel`) has too many for a
    `GridSampler`, and a `SliceSampler` moves them one by one, for minutes. One point says nothing of how sure the
    parameters are, and the mode of many parameters explains the values it was found for better than it predicts
    others. So where kernels are weighed by what they predict, each value is predicted from all others at the mode that
    was found without its fold, one of `FOLDS` (`without_folds`). There is no marginal likelihood: kernels with a mode
    are weighed by stacking only.

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
        return f"ModeSampler({self.restarts}, fit_size={self.fit_size})"

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
        data = TrainingData(density.encoded, density.targets, density.known, density.sides)
        point = self._mode(density, data, rng)
        return ParameterSample({name: np.array([value]) for name, value in point.items()}, np.ones(1))

    def without_folds(
        self, density: LogPosterior, point: Point, rng: np.random.Generator
    ) -> list[tuple[npt.NDArray[np.int64], Point]]:
        """Indices of the values of each fold, and the mode that was found without them.

        Args:
            density: Of n values, none of them a limit.
            point: The mode, where the others are looked for.
            rng: Shares out the values to folds.
        """
        n = len(density.targets)
        data = TrainingData(density.encoded, density.targets, density.known)
        folds = [np.sort(fold) for fold in np.array_split(rng.permutation(n), min(FOLDS, n))]
        rest = [np.setdiff1d(np.arange(n), fold) for fold in folds]
        return [
            (fold, self._mode(density, data.take(kept), rng, point)) for fold, kept in zip(folds, rest, strict=True)
        ]

    def _mode(
        self, density: LogPosterior, data: TrainingData, rng: np.random.Generator, near: Point | None = None
    ) -> Point:
        """The mode given some of the values of a density; with ``near``, looked for from there alone."""
        size = min(self.fit_size, max(2, math.isqrt(GRAM_BYTES // (16 * max(1, len(density.parameters.names))))))
        estimate = PointEstimate(density.kernel, fit_size=size, mean=0.0 if density.mean_std == 0.0 else None)
        model = estimate.build(data)
        if near is not None:
            _set(model, near)
            estimate = replace(estimate, start=parameters_of(model))
        if data.differ:
            estimate.learn(model, data, rng, self.restarts if near is None else 1, full=True)
        own = KernelParameters(model.covar_module.base_kernel, copied=False)
        found = dict(zip(own.names, own.values, strict=True))
        # The model standardises what it is given once more.
        unit = float(model.outcome_transform.stdvs.squeeze()) ** 2
        found[OUTPUTSCALE] = unit * float(model.covar_module.outputscale.detach())
        found[NOISE_VARIANCE] = unit * float(model.likelihood.noise_covar.noise.detach().reshape(-1)[0])
        return found


def _set(model: SingleTaskGP, point: Point) -> None:
    """Put a model at a point."""
    kernel = KernelParameters(model.covar_module.base_kernel, copied=False)
    kernel.set([point[name] for name in kernel.names])
    unit = float(model.outcome_transform.stdvs.squeeze()) ** 2
    for owner, name in ((model.covar_module, OUTPUTSCALE), (model.likelihood.noise_covar, NOISE_VARIANCE)):
        attribute = name.removesuffix("_variance")
        constraint = getattr(owner, f"raw_{attribute}_constraint")
        setattr(owner, attribute, constraint.nearest(point[name] / unit))
