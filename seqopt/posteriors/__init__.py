"""What a model says: immutable posteriors at queries, and the moments of targets and of measurements."""

from seqopt.posteriors.anchors import AnchoredPosterior, AnchorMoments, Anchors, BelievingPosterior
from seqopt.posteriors.dense import DensePosterior, Outcomes
from seqopt.posteriors.linalg import stable_cholesky
from seqopt.posteriors.moments import Moments
from seqopt.posteriors.protocols import Posterior

__all__ = [
    "AnchorMoments",
    "AnchoredPosterior",
    "Anchors",
    "BelievingPosterior",
    "DensePosterior",
    "Moments",
    "Outcomes",
    "Posterior",
    "stable_cholesky",
]
