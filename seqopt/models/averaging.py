"""Surrogates at point estimates, with their parameters averaged over instead."""

from __future__ import annotations

import copy

from seqopt.errors import InputError
from seqopt.models.fully_bayesian import FullyBayesianGP, default_sampler
from seqopt.models.sampling import GridSampler, KernelParameters
from seqopt.models.string_gp import StringGP

ON_GRID = 2
"""Parameters of a kernel up to which a grid stands for their posterior."""


def averaged(surrogate: object, draws: int = 8) -> FullyBayesianGP:
    """A fully Bayesian surrogate with the kernel of another one, which stays as it is.

    Parameters of a kernel that has at most two are drawn on a grid of the quantiles of their priors, others by slice
    sampling; those of the sub-sequence kernel on the grid of `seqopt.models.GridSampler`.

    Args:
        surrogate: A `StringGP`; a `FullyBayesianGP` of two draws or more is returned as it is.
        draws: Draws of the parameters.

    Raises:
        InputError: For a surrogate of another kind, or one whose noise is known and not learned.

    Example:
        >>> from seqopt.kernels import NgramKernel
        >>> gp = averaged(StringGP(NgramKernel()))
        >>> type(gp).__name__, gp.draws
        ('FullyBayesianGP', 8)
    """
    if isinstance(surrogate, FullyBayesianGP) and surrogate.draws > 1:
        return surrogate
    if isinstance(surrogate, FullyBayesianGP):
        arguments = {**surrogate.config_arguments(), "draws": draws}
        return copy.deepcopy(type(surrogate)(**arguments))
    if not isinstance(surrogate, StringGP):
        raise InputError(
            f"the parameters of a {type(surrogate).__name__} cannot be averaged over: take a fully Bayesian surrogate, "
            "such as ssk-bayes or mixture"
        )
    if surrogate.noise is not None:
        raise InputError("the parameters of a surrogate with a noise that is known cannot be averaged over")
    kernel = copy.deepcopy(surrogate.kernel)
    sampler = default_sampler(kernel)
    if surrogate.levels is None and not isinstance(sampler, GridSampler):
        sampler = GridSampler() if len(KernelParameters(kernel).names) <= ON_GRID else sampler
    return FullyBayesianGP(
        kernel,
        None if surrogate.levels is not None else sampler,
        encoder=surrogate.encoder,
        draws=draws,
        mean=surrogate.mean,
        levels=surrogate.levels,
    )
