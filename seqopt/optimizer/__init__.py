"""The optimiser (ask and tell), the loop around it, and the folder that a run leaves behind."""

from seqopt.evaluation import Evaluation, Evaluator
from seqopt.optimizer.loop import Step, run_loop
from seqopt.optimizer.observations import Observation, Observations
from seqopt.optimizer.optimizer import Optimizer
from seqopt.optimizer.run_folder import RunFolder

__all__ = [
    "Evaluation",
    "Evaluator",
    "Observation",
    "Observations",
    "Optimizer",
    "RunFolder",
    "Step",
    "run_loop",
]
