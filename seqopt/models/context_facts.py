"""What a fitted model says of the ways to measure: how much each tells of the target, and its offset from it.

With r_c(x) the prior correlation of the value in context c with the target of the same string, averaged over strings x
(for intrinsic coregionalisation it is B_ct / sqrt(B_cc B_tt), whatever the string), and f_c(x) - g(x) what context c
adds to the target: its mean over the strings that were measured there is the offset of the context, a linear functional
of one Gaussian process, whose posterior is exact for each draw of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqopt.data import Context, Query
from seqopt.models.conditioned import GaussianProcess
from seqopt.models.covariance import correlations
from seqopt.models.protocols import StringSurrogate

MOST = 60
"""Strings of a context over which is averaged: the first ones."""

COVERAGE = 0.9
"""Probability of the intervals."""

Z = 1.6448536269514722
"""Standard deviations on either side of the mean that hold `COVERAGE` of a normal distribution."""


@dataclass(frozen=True)
class ContextFacts:
    """What a model has learned of one context.

    Attributes:
        correlation: With the target, before any string is measured; the mean over draws of the parameters.
        correlation_low: Lower end of the central 90 % of the draws; equal to ``correlation`` for a point estimate.
        correlation_high: Upper end.
        offset: By how much values in this context lie above the target, on average over the strings measured there; on
            the scale of the model's values.
        offset_std: Standard deviation of that, which is that of a normal distribution for a point estimate.
    """

    correlation: float
    correlation_low: float
    correlation_high: float
    offset: float
    offset_std: float

    @property
    def offset_interval(self) -> tuple[float, float]:
        """The central 90 % of the offset."""
        return self.offset - Z * self.offset_std, self.offset + Z * self.offset_std


def context_facts(
    surrogate: StringSurrogate, measured: Mapping[Context, Sequence[str]], target: Context = ()
) -> dict[Context, ContextFacts]:
    """What a fitted surrogate says of contexts.

    Args:
        surrogate: Fitted to queries; a plain string stands for its target.
        measured: The keys of strings that were measured in each context; a context without any is left out.
        target: The context that is the target, if one is: it has no offset.

    Returns:
        Facts by context, the target left out; nothing, if the surrogate is not a Gaussian process.
    """
    process = surrogate.conditioned()
    if not isinstance(process, GaussianProcess):
        return {}
    found = {}
    for context, keys in measured.items():
        if context == target or not keys:
            continue
        some = list(dict.fromkeys(keys))[:MOST]
        queries = [Query(key, context) for key in some]
        between = correlations(
            process.state.evaluator, process.encoder.encode(queries), process.encoder.encode(some)
        ).diagonal(axis1=-2, axis2=-1)
        draws = between.reshape(-1, len(some)).mean(-1)
        tail = (1 - COVERAGE) / 2
        mean, covariance = process.functions([*queries, *some])
        weights = torch.full((2 * len(some),), 1.0 / len(some), dtype=mean.dtype)
        weights[len(some) :] *= -1.0
        offsets = mean @ weights
        variance = ((covariance @ weights) @ weights).clamp_min(0.0)
        scale = _scale(surrogate)
        spread = float(variance.mean() + offsets.var(unbiased=False))
        found[context] = ContextFacts(
            float(draws.mean()),
            float(np.quantile(draws, tail)),
            float(np.quantile(draws, 1 - tail)),
            scale * float(offsets.mean()),
            scale * math.sqrt(spread),
        )
    return found


def _scale(surrogate: StringSurrogate) -> float:
    """How many of the values' units one unit of the standardised values is."""
    ends, _ = surrogate.untransform(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    return float(ends[1] - ends[0])
