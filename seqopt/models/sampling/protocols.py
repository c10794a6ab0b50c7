"""What draws parameters from a posterior density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.parameters import Numbers

GOOD_R_HAT = 1.05
"""Largest R-hat of chains that count as converged."""


@dataclass(frozen=True, eq=False)
class ParameterSample:
    """N weighted points of a posterior of parameters.

    Attributes:
        values: The parameters by name, N each: those of the kernel, output scale and noise variance.
        weights: N numbers of at least 0, in proportion to which points count.
        log_evidence: Logarithm of the marginal likelihood of the kernel, or NaN where it was not asked for.
        log_evidence_error: Its standard error.
        r_hat: Split R-hat by parameter (of logarithms, where these are sampled); empty for independent points.
        effective_size: Effective number of draws by parameter; likewise.
        ends: Where each chain ended, in coordinates; empty where there are no chains.
        evaluations: Evaluations of the density.
        grams: Gram matrices among them.
        predictive: Logarithms of the densities of the n values, each from the others, where the sampler knows them
            better than they follow from some of its points.
    """

    values: dict[str, Numbers]
    weights: Numbers
    log_evidence: float = float("nan")
    log_evidence_error: float = 0.0
    r_hat: dict[str, float] = field(default_factory=dict)
    effective_size: dict[str, float] = field(default_factory=dict)
    ends: list[list[float]] = field(default_factory=list)
    evaluations: int = 0
    grams: int = 0
    predictive: Numbers | None = None


@runtime_checkable
class Sampler(Protocol):
    """Draws the parameters of one kernel."""

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """Weighted points that stand for ``density``.

        Args:
            density: The log posterior density over named coordinates.
            rng: For all that is random.
            starts: `ParameterSample.ends` of an earlier sample of the same kernel to go on from, on other data.
            evidence: Whether the marginal likelihood is asked for.
        """
        ...
