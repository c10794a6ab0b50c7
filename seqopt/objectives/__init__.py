"""Scores of strings, and evaluating them.

An objective is a function from a list of strings to as many numbers. `resolve_objective` finds one by its
name, `Evaluator` calls it string by string, so that failures and time-outs are recorded and never a crash.
Nothing here imports the models or the loop.
"""

from seqopt.objectives.evaluation import Evaluation, Evaluator, evaluate
from seqopt.objectives.molecules import (
    Similarity,
    logp,
    molecular_weight,
    penalized_logp,
    penalized_logp_terms,
    qed,
    sa_score,
)
from seqopt.objectives.objective import OBJECTIVES, Direction, Objective, ObjectiveInfo, resolve_objective

__all__ = [
    "OBJECTIVES",
    "Direction",
    "Evaluation",
    "Evaluator",
    "Objective",
    "ObjectiveInfo",
    "Similarity",
    "evaluate",
    "logp",
    "molecular_weight",
    "penalized_logp",
    "penalized_logp_terms",
    "qed",
    "resolve_objective",
    "sa_score",
]
