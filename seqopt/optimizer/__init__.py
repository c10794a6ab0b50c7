"""The optimiser: ask and tell."""

from seqopt.data.observations import Observation, Observations
from seqopt.evaluation import Evaluation, Evaluator
from seqopt.optimizer.batch import Batch
from seqopt.optimizer.optimizer import Optimizer

__all__ = [
    "Batch",
    "Evaluation",
    "Evaluator",
    "Observation",
    "Observations",
    "Optimizer",
]
