"""Best-arm identification: which of a few strings is the best, by a fixed number of repeated measurements."""

from seqopt.strategies.arms.confirmation import Confirmation, Standing
from seqopt.strategies.arms.decision import Forecast, forecast, probability_best, simulate
from seqopt.strategies.arms.posterior import ArmPosterior
from seqopt.strategies.arms.rules import (
    RULES,
    UCBE,
    BayesGap,
    EqualReplication,
    Rule,
    Situation,
    TopTwoThompson,
    UGap,
    resolve_rule,
)

__all__ = [
    "RULES",
    "UCBE",
    "ArmPosterior",
    "BayesGap",
    "Confirmation",
    "EqualReplication",
    "Forecast",
    "Rule",
    "Situation",
    "Standing",
    "TopTwoThompson",
    "UGap",
    "forecast",
    "probability_best",
    "resolve_rule",
    "simulate",
]
