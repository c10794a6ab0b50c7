"""What a fitted model says of the ways to measure: how much each tells of the target, and its offset from it.

Let K_ab be the n x n matrix of prior covariances of the values of n strings in context a with those in context b, and H
the matrix that subtracts means. The correlation of context c with the target t is

    r_c = tr(H K_ct H) / sqrt(tr(H K_cc H) tr(H K_tt H)),

that of differences between strings, so that what all strings of a context have in common does not count. For intrinsic
coregionalisation it is B_ct / sqrt(B_cc B_tt), whatever the strings. The offset of a context is the mean of
f_c(x) - g(x) over the strings that were measured there, a linear functional of one Gaussian process, whose posterior is
exact for each draw of the parameters. That of a plate under point estimates is averaged over the variances of
departures (`seqopt.models.offset_posterior`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from seqopt.data import Context, Query
from seqopt.data.query import context_of, key_of
from seqopt.encoding import Encoded
from seqopt.models.conditioned import GaussianProcess
from seqopt.models.correlation_interval import correlation_interval
from seqopt.models.covariance import Evaluator
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.offset_posterior import Mixture, OffsetPosterior
from seqopt.models.protocols import StringSurrogate

MOST = 60
"""Strings of a context over which is averaged: the first ones."""

FEWEST = 2
"""Strings without which there are no differences."""

COVERAGE = 0.9
"""Probability of the intervals."""


@dataclass(frozen=True)
class ContextFacts:
    """What a model has learned of one context.

    Attributes:
        correlation: Of differences between strings with those of the target, a priori; the mean over draws of the
            parameters.
        correlation_low: Lower end of the central 90 % of the draws; for a point estimate that of an interval by the
            profile likelihood (`seqopt.models.correlation_interval`) or, where there is none, ``correlation`` itself.
        correlation_high: Upper end.
        offset: By how much values in this context lie above the target, on average over the strings measured there; on
            the scale of the model's values. NaN where contexts have units of their own.
        offset_std: Standard deviation of that.
        offset_low: Lower end of the central 90 % of the offset.
        offset_high: Upper end.
    """

    correlation: float
    correlation_low: float
    correlation_high: float
    offset: float
    offset_std: float
    offset_low: float
    offset_high: float


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
    levels = getattr(surrogate, "levels", None)
    # Where levels have units of their own, what they differ by is no number in any of them.
    common = levels is None or levels.units == "common"
    scale = _scale(surrogate) if common else math.nan
    # Differences need two strings.
    sample = list(dict.fromkeys(key for keys in measured.values() for key in keys))[:MOST]
    if len(sample) < FEWEST:
        return {}
    averaged = OffsetPosterior.of_fit(surrogate)
    found = {}
    for context, keys in measured.items():
        if context == target or not keys:
            continue
        some = list(dict.fromkeys(keys))[:MOST]
        draws = _correlations(process, sample, context)
        tail = (1 - COVERAGE) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        if len(draws) == 1 and levels is not None and isinstance(surrogate, GaussianSurrogate):
            ends = correlation_interval(surrogate, dict(context)[levels.variable])
            low, high = (low, high) if ends is None else (min(ends[0], low), max(ends[1], high))
        offset = _offset(process, some, context) if common else (math.nan,) * 4
        if averaged is not None:
            places = {
                key: place for place, key in reversed([*enumerate(_keys_in(process, context))]) if key is not None
            }
            mixture = averaged[0].of(averaged[1][context], np.array([places[key] for key in some]))
            offset = mixture.mean, mixture.std, mixture.quantile(tail), mixture.quantile(1 - tail)
        found[context] = ContextFacts(float(draws.mean()), float(low), float(high), *(scale * one for one in offset))
    return found


def _correlations(process: GaussianProcess, keys: Sequence[str], context: Context) -> npt.NDArray[np.float64]:
    """With the target, one for each draw of the parameters."""
    evaluator = process.state.evaluator
    own, target = (process.encoder.encode(items) for items in ([Query(key, context) for key in keys], list(keys)))
    sums = [_centred(evaluator, *pair) for pair in ((own, target), (own, own), (target, target))]
    scale = np.sqrt(np.maximum(sums[1] * sums[2], 0.0))
    found: npt.NDArray[np.float64] = np.divide(sums[0], scale, out=np.zeros_like(scale), where=scale > 0)
    return found


def _centred(evaluator: Evaluator, a: Encoded, b: Encoded) -> npt.NDArray[np.float64]:
    """tr(H K H), for each draw."""
    covariance = evaluator.cross(a, b, evaluator.self_similarity(a), evaluator.self_similarity(b))
    covariance = covariance.reshape(-1, *covariance.shape[-2:])
    found: npt.NDArray[np.float64] = np.trace(covariance, axis1=-2, axis2=-1) - covariance.sum((-2, -1)) / len(a)
    return found


def _keys_in(process: GaussianProcess, context: Context) -> list[str | None]:
    """The strings of the training queries, `None` for those in another context."""
    return [key_of(item) if context_of(item) == context else None for item in process.state.keys]


def _offset(process: GaussianProcess, keys: Sequence[str], context: Context) -> tuple[float, float, float, float]:
    """Mean, standard deviation and ends of the central 90 % of the offset, of the mixture over draws."""
    count = len(keys)
    mean, covariance = process.functions([*(Query(key, context) for key in keys), *keys])
    weights = torch.full((2 * count,), 1.0 / count, dtype=mean.dtype)
    weights[count:] *= -1.0
    offsets = mean @ weights
    variance = ((covariance @ weights) @ weights).clamp_min(0.0)
    shares = np.full(len(offsets), 1.0 / len(offsets))
    mixture = Mixture(shares, offsets.double().numpy(), variance.double().sqrt().numpy())
    tail = (1 - COVERAGE) / 2
    return mixture.mean, mixture.std, mixture.quantile(tail), mixture.quantile(1 - tail)


def _scale(surrogate: StringSurrogate) -> float:
    """How many of the values' units one unit of the standardised values is."""
    ends, _ = surrogate.untransform(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    return float(ends[1] - ends[0])
