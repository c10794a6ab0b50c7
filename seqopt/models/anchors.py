"""Covariances of the queries of one posterior with points of another, for several draws of the parameters.

With the notation of `seqopt.models.gp_state`, the covariance of an anchor a and a query q is k(a, q) - V_a^T V_q. Where
V_q is not kept, V_a^T V_q = (L^-T V_a)^T k(X, q).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqopt.data.query import key_of
from seqopt.encoding import Encoded
from seqopt.models.covariance import FloatArray
from seqopt.models.gp_state import BatchedGPState, Conditioning, stacked
from seqopt.posteriors import Anchors

BLOCK_ELEMENTS = 1 << 22
"""Prior covariances computed at once (32 MiB)."""


@dataclass(frozen=True, eq=False)
class EncodedPoints:
    """K points as models see them: what `seqopt.posteriors.Anchors.points` of these posteriors is.

    Attributes:
        keys: Their keys.
        encoded: The same, encoded, as targets.
    """

    keys: tuple[str, ...]
    encoded: Encoded


@dataclass(frozen=True, eq=False)
class SolvedAnchors:
    """What posteriors need of anchors.

    Attributes:
        mean: Of targets, D x S; those that are believed if pending queries are taken into account.
        variance: Noiseless, D x S.
        solved: V at the anchors, D x m x S.
    """

    mean: Tensor
    variance: Tensor
    solved: Tensor


def encoded_points(
    state: BatchedGPState, keys: Sequence[str], encoded: Encoded, indices: Tensor, observed: Tensor
) -> EncodedPoints:
    """Evaluated strings and some of the queries of a posterior.

    Args:
        state: Holds the evaluated strings.
        keys: Of all queries of the posterior.
        encoded: The same, as targets.
        indices: Which of them.
        observed: Which evaluated strings, which come first.
    """
    known = state.encoded if state.wanted is None else state.wanted
    names = [key_of(state.keys[int(index)]) for index in observed]
    points = encoded.take(indices.numpy())
    if len(observed):
        points = known.take(observed.numpy()).joined(points)
    return EncodedPoints((*names, *(keys[int(index)] for index in indices)), points)


def solved_anchors(conditioning: Conditioning, anchors: Anchors, pending: bool) -> SolvedAnchors:
    """Moments of anchors and their V.

    Args:
        conditioning: What they are conditioned on.
        anchors: Those of any posterior of the same model and data.
        pending: Whether queries without values count; if not, their rows of V are 0.
    """
    state, points, n = conditioning.state, anchors.points, len(conditioning.state.keys)
    own = state.evaluator.self_similarity(points.encoded)
    rows = conditioning.prior_rows(points.encoded, own)
    mean = state.mean(points.keys) + (state.alpha[:, None] @ rows[:, :n])[:, 0]
    solved = conditioning.inverse @ rows
    if pending:
        mean = mean + (conditioning.belief[:, None] @ rows)[:, 0]
    else:
        solved[:, n:] = 0.0
    prior = stacked(state.evaluator.variance(points.encoded, own)[..., None, :], state.draws)[:, 0]
    variance = torch.maximum(state.scale[:, None] * prior - solved.square().sum(1), state.floor[:, None])
    places = anchors.places
    return SolvedAnchors(
        mean.gather(1, places),
        variance.gather(1, places),
        solved.gather(2, places[:, None].expand(-1, solved.shape[1], -1)),
    )


def prior_with_anchors(state: BatchedGPState, anchors: Anchors, encoded: Encoded, own: FloatArray | None) -> Tensor:
    """Prior covariances of the anchors of each draw with N queries, output scale included, D x S x N.

    Args:
        state: The fitted processes.
        anchors: The anchors.
        encoded: The queries.
        own: What the kernel needs of each of them alone.
    """
    points, places = anchors.points, anchors.places
    found = torch.empty(*places.shape, len(encoded), dtype=torch.float64)
    step = max(1, BLOCK_ELEMENTS // max(1, state.draws * len(encoded)))
    for start in range(0, len(points.keys), step):
        part = points.encoded.take(slice(start, start + step))
        raw = state.evaluator.cross(part, encoded, state.evaluator.self_similarity(part), own)
        rows = stacked(raw, state.draws)
        for draw in range(state.draws):
            here = torch.nonzero((places[draw] >= start) & (places[draw] < start + step))[:, 0]
            found[draw, here] = state.scale[draw] * rows[draw, places[draw, here] - start]
    return found
