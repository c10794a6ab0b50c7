"""Evaluating an objective on strings, so that a string that fails harms no other."""

from seqopt.evaluation.evaluator import (
    FAILED,
    OK,
    Direction,
    Evaluation,
    Evaluator,
    ObjectiveFunction,
    OnResult,
    Supply,
    call,
    describe,
    evaluate,
)

__all__ = [
    "FAILED",
    "OK",
    "Direction",
    "Evaluation",
    "Evaluator",
    "ObjectiveFunction",
    "OnResult",
    "Supply",
    "call",
    "describe",
    "evaluate",
]
