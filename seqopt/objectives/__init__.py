"""Scores of strings.

An objective is a function from a list of strings to as many numbers. `resolve_objective` finds one by its
name; `seqopt.evaluation` calls it.
Nothing here imports the models or the loop.
"""

from seqopt.objectives.molecules import (
    Similarity,
    logp,
    molecular_weight,
    penalized_logp,
    penalized_logp_terms,
    qed,
    sa_score,
)
from seqopt.objectives.objective import OBJECTIVES, Objective, ObjectiveInfo, resolve_objective

__all__ = [
    "OBJECTIVES",
    "Objective",
    "ObjectiveInfo",
    "Similarity",
    "logp",
    "molecular_weight",
    "penalized_logp",
    "penalized_logp_terms",
    "qed",
    "resolve_objective",
    "sa_score",
]
