"""The optimiser (ask and tell), and the loops around it."""

from seqopt.data.observations import Observation, Observations
from seqopt.evaluation import Evaluation, Evaluator
from seqopt.optimizer.batch import Batch
from seqopt.optimizer.loop import RunLog, Step, run_asynchronously, run_loop
from seqopt.optimizer.optimizer import Optimizer

__all__ = [
    "Batch",
    "Evaluation",
    "Evaluator",
    "Observation",
    "Observations",
    "Optimizer",
    "RunLog",
    "Step",
    "run_asynchronously",
    "run_loop",
]
