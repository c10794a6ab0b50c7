"""Points that posteriors at other points can be related to: optima that were drawn, say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from seqopt.posteriors.protocols import Posterior


@dataclass(frozen=True, eq=False)
class Anchors:
    """K points at which one posterior was looked at, in a form that others of the same model understand.

    Attributes:
        points: What says which they are; a matter of the posterior.
        places: Which S of them belong to each draw of the parameters, int64 ``... x S``.
    """

    points: Any
    places: Tensor


@dataclass(frozen=True, eq=False)
class AnchorMoments:
    """Moments of the target at anchors, and covariances with the N queries of a posterior.

    Attributes:
        mean: ``... x S``.
        variance: ``... x S``, noiseless.
        covariance: ``... x S x N``, noiseless, of targets.
    """

    mean: Tensor
    variance: Tensor
    covariance: Tensor


@runtime_checkable
class BelievingPosterior(Posterior, Protocol):
    """A posterior that also says what would be predicted if pending and chosen queries turned out as expected."""

    def believed_mean(self) -> Tensor:
        """E[y(q)] at the N queries, ``... x N``, given the data and that every pending or chosen query, one after the
        other, had as its outcome the mean of what all draws of the parameters expect then (a believer).

        With one draw it is the outcome's mean.
        """
        ...


@runtime_checkable
class AnchoredPosterior(BelievingPosterior, Protocol):
    """A posterior whose points can be related to those of others of the same model and data."""

    def anchors(self, indices: Tensor, observed: Tensor) -> Any:
        """What says which points these are: queries by their indices, after evaluated strings by theirs.

        Args:
            indices: Of queries of this posterior, int64.
            observed: Of evaluated strings.
        """
        ...

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """Moments at anchors of this or another posterior of the same model and data.

        Args:
            anchors: The anchors.
            pending: Whether pending and chosen queries are taken into account: in means as in `believed_mean`.
        """
        ...
