"""Scores of strings.

An objective is a function from a list of strings to as many numbers. `resolve_objective` finds one by its
name; `seqopt.evaluation` calls it.
Nothing here imports the models or the loop.
"""

from typing import TYPE_CHECKING, Any

from seqopt.objectives.additive import CodonAdditive, by_code, check_genes, exact_instead, exact_score, in_context
from seqopt.objectives.canonical import Canonical
from seqopt.objectives.codon_usage import (
    CodonPairBias,
    CodonShares,
    CodonWeights,
    Harmonisation,
    LogOf,
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
from seqopt.objectives.objective import (
    OBJECTIVES,
    Objective,
    ObjectiveInfo,
    resolve_objective,
    weighted_objective,
)
from seqopt.objectives.patterns import PATTERN_TASKS, PatternCount, PatternTask
from seqopt.objectives.structure import Accessibility, EnsembleFreeEnergy, OpeningEnergy, Window, WindowEnergy
from seqopt.objectives.weighted import Term, WeightedSum, column_of, usual_direction

if TYPE_CHECKING:
    from seqopt.objectives.formula_space import FormulaSpace

__all__ = [
    "FORMULA_TASKS",
    "OBJECTIVES",
    "PATTERN_TASKS",
    "Accessibility",
    "ByFidelity",
    "Canonical",
    "CodonAdaptationIndex",
    "CodonAdditive",
    "CodonPairBias",
    "CodonShares",
    "CodonWeights",
    "ConstantFit",
    "Ehrlich",
    "EnsembleFreeEnergy",
    "Expression",
    "ExpressionError",
    "Fidelities",
    "Fidelity",
    "FormulaSpace",
    "FormulaTask",
    "GCContent",
    "Harmonisation",
    "LogOf",
    "MinimumFreeEnergy",
    "MotifContent",
    "Objective",
    "ObjectiveInfo",
    "OpeningEnergy",
    "PatternCount",
    "PatternTask",
    "Similarity",
    "TRNAAdaptationIndex",
    "Term",
    "WeightedSum",
    "Window",
    "WindowEnergy",
    "by_code",
    "check_genes",
    "column_of",
    "exact_instead",
    "exact_score",
    "fit_constants",
    "in_context",
    "logp",
    "molecular_weight",
    "parse_expression",
    "penalized_logp",
    "penalized_logp_terms",
    "published_regression",
    "qed",
    "resolve_objective",
    "sa_score",
    "usual_direction",
    "weighted_objective",
]


def __getattr__(name: str) -> Any:
    # Spaces load torch, which scores do without.
    if name == "FormulaSpace":
        from seqopt.objectives.formula_space import FormulaSpace

        return FormulaSpace
    raise AttributeError(f"module 'seqopt.objectives' has no attribute {name!r}")
