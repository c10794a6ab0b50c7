"""What a search maximises: scores of strings by acquisition functions, classifiers, costs, and combinations of them."""

from seqopt.scorers.checks import checked_scores
from seqopt.scorers.classifier import ClassifierScoring
from seqopt.scorers.costs import Costs, LearnedCosts, StatedCosts
from seqopt.scorers.feasibility import FeasibilityScoring, feasible_scores
from seqopt.scorers.gaussian import GaussianScoring
from seqopt.scorers.limits import BatchLimits, LimitedScoring, OpenBatch
from seqopt.scorers.per_cost import PerCostScoring, value_per_cost
from seqopt.scorers.protocols import Choice, PoolScorer, Scorer, Scoring

__all__ = [
    "BatchLimits",
    "Choice",
    "ClassifierScoring",
    "Costs",
    "FeasibilityScoring",
    "GaussianScoring",
    "LearnedCosts",
    "LimitedScoring",
    "OpenBatch",
    "PerCostScoring",
    "PoolScorer",
    "Scorer",
    "Scoring",
    "StatedCosts",
    "checked_scores",
    "feasible_scores",
    "value_per_cost",
]
