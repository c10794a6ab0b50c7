"""Scores of strings.

An objective is a function from a list of strings to as many numbers. `resolve_objective` finds one by its
name; `seqopt.evaluation` calls it.
Nothing here imports the models or the loop.
"""

from seqopt.objectives.additive import CodonAdditive, by_code, exact_score
from seqopt.objectives.codon_usage import (
    CodonPairBias,
    CodonShares,
    CodonWeights,
    Harmonisation,
    MotifContent,
    TRNAAdaptationIndex,
)
from seqopt.objectives.constants import ConstantFit, fit_constants
from seqopt.objectives.ehrlich import Ehrlich
from seqopt.objectives.expressions import Expression, ExpressionError, parse_expression, published_regression
from seqopt.objectives.fidelities import ByFidelity, Fidelities, Fidelity
from seqopt.objectives.formula_tasks import FORMULA_TASKS, FormulaTask
from seqopt.objectives.genes import CodonAdaptationIndex, GCContent, MinimumFreeEnergy
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
from seqopt.objectives.patterns import PATTERN_TASKS, PatternCount, PatternTask

__all__ = [
    "FORMULA_TASKS",
    "OBJECTIVES",
    "PATTERN_TASKS",
    "ByFidelity",
    "CodonAdaptationIndex",
    "CodonAdditive",
    "CodonPairBias",
    "CodonShares",
    "CodonWeights",
    "ConstantFit",
    "Ehrlich",
    "Expression",
    "ExpressionError",
    "Fidelities",
    "Fidelity",
    "FormulaTask",
    "GCContent",
    "Harmonisation",
    "MinimumFreeEnergy",
    "MotifContent",
    "Objective",
    "ObjectiveInfo",
    "PatternCount",
    "PatternTask",
    "Similarity",
    "TRNAAdaptationIndex",
    "by_code",
    "exact_score",
    "fit_constants",
    "logp",
    "molecular_weight",
    "parse_expression",
    "penalized_logp",
    "penalized_logp_terms",
    "published_regression",
    "qed",
    "resolve_objective",
    "sa_score",
]
