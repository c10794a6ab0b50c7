"""Which objectives have an exact optimum over the genes of a protein."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from seqopt.evaluation import Direction
from seqopt.objectives.codon_usage import CodonShares, Harmonisation
from seqopt.objectives.genes import CodonAdaptationIndex
from seqopt.objectives.objective import Objective
from seqopt.strings.genetic_codes import genetic_code

if TYPE_CHECKING:
    from seqopt.spaces import CodonScore, CodonSpace


@runtime_checkable
class CodonAdditive(Protocol):
    """A function of genes whose value increases with a sum over codons, pairs of codons, motifs and G and C."""

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The sum: of two genes of ``space`` the one of the larger sum has the larger value.

        `None` where there is none for these settings or these genes.
        """
        ...


def by_code(objective: Objective, code: str | int) -> Objective:
    """The objective by the genetic code of the genes, where it depends on one.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> index = by_code(resolve_objective("cai:human"), 2).function
        >>> "TGA" in index.adaptiveness
        True
    """
    function = objective.function
    if isinstance(function, CodonAdaptationIndex):
        own = dict(genetic_code(code).amino_acids)
        return replace(objective, function=CodonAdaptationIndex(function.organism, code=own))
    if isinstance(function, CodonShares | Harmonisation):
        return replace(objective, function=replace(function, code=genetic_code(code).number))
    return objective


def exact_score(objective: Objective, space: CodonSpace, direction: Direction) -> CodonScore | None:
    """What an exact optimum of an objective maximises; `None` if it can only be searched for.

    Args:
        objective: Its function may be a `CodonAdditive`.
        space: The genes.
        direction: Of the objective: to minimise it, the sum is taken negative.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> from seqopt.spaces import CodonSpace
        >>> space = CodonSpace("MLK")
        >>> exact_score(resolve_objective("mfe"), space, "minimize") is None
        True
        >>> score = exact_score(resolve_objective("cai:e_coli"), space, "maximize")
        >>> score.of("ATGCTGAAA")
        0.0
    """
    function: object = objective.function
    if space.accept is not None or not isinstance(function, CodonAdditive):
        return None
    score = function.codon_score(space)
    if score is None or direction == "maximize":
        return score
    return -score
