"""Evaluating an objective on strings, so that a string that fails harms no other."""

from seqopt.data.outcome import Direction
from seqopt.evaluation.batch import OnResult, Supply
from seqopt.evaluation.evaluator import Evaluator, evaluate
from seqopt.evaluation.judging import (
    ANSWERED_NAN,
    FAILED,
    OK,
    Evaluation,
    ObjectiveFunction,
    QueryObjective,
    call,
    describe,
)
from seqopt.evaluation.single import PerString, per_string

__all__ = [
    "ANSWERED_NAN",
    "FAILED",
    "OK",
    "Direction",
    "Evaluation",
    "Evaluator",
    "ObjectiveFunction",
    "OnResult",
    "PerString",
    "QueryObjective",
    "Supply",
    "call",
    "describe",
    "evaluate",
    "per_string",
]
