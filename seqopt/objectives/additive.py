"""Which objectives have an exact optimum over the genes of a protein."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seqopt.errors import InputError
from seqopt.evaluation import Direction
from seqopt.objectives.codon_usage import CodonShares, Harmonisation, HasLogScore, LogOf, TRNAAdaptationIndex
from seqopt.objectives.genes import CodonAdaptationIndex
from seqopt.objectives.objective import Objective
from seqopt.objectives.structure import InContext
from seqopt.objectives.weighted import WeightedSum
from seqopt.strings.genetic_codes import genetic_code

if TYPE_CHECKING:
    from seqopt.spaces import CodonScore, CodonSpace


@runtime_checkable
class CodonAdditive(Protocol):
    """A function of genes whose value increases with a sum over codons, pairs of codons, motifs and G and C.

    One whose value *is* the sum, up to a constant, says so by an attribute ``adds_up`` that is true: weighted sums of
    such functions (`seqopt.objectives.WeightedSum`) are solved exactly, too.
    """

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

    def changed(function: Any) -> Any:
        if isinstance(function, CodonAdaptationIndex):
            return CodonAdaptationIndex(function.organism, code=dict(genetic_code(code).amino_acids))
        if isinstance(function, CodonShares | Harmonisation):
            return replace(function, code=genetic_code(code).number)
        return LogOf(changed(function.index)) if isinstance(function, LogOf) else function

    return _changed(objective, changed)


def in_context(objective: Objective, upstream: str, downstream: str) -> Objective:
    """The objective of genes that stand between these bases, where it depends on them.

    Raises:
        InputError: If the objective says already that they stand between others.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> in_context(resolve_objective("mfe:-4..3"), "AGGC", "").function.upstream
        'AGGC'
    """
    return _changed(
        objective,
        lambda function: function.in_context(upstream, downstream) if isinstance(function, InContext) else function,
    )


def exact_instead(objective: Objective, space: CodonSpace) -> str | None:
    """Of a weighted sum without an exact optimum, the sum of logarithms that has one; `None` if there is none.

    An index that is a geometric mean, such as the CAI, is the exponential of a mean over codons: by itself it increases
    with that, but a sum of it and another score is a sum over codons no more. With the logarithm it is.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> from seqopt.spaces import CodonSpace
        >>> exact_instead(resolve_objective("cai:human + 0.5*gc"), CodonSpace("MLK"))
        'log_cai:human + 0.5*gc'
        >>> exact_instead(resolve_objective("mfe + 0.5*cai:human"), CodonSpace("MLK"))
    """
    total = objective.function
    if not isinstance(total, WeightedSum) or total.codon_score(space) is not None:
        return None

    def logarithm(function: Any) -> Any:
        return LogOf(function) if isinstance(function, HasLogScore) else function

    if total.with_terms(lambda one: _changed(one, logarithm)).codon_score(space) is None:
        return None
    return re.sub(r"(?<!\w)(cai|tai|usage)(?=:)", r"log_\1", objective.name)


def check_genes(objective: Objective, space: CodonSpace) -> None:
    """Refuse an objective that has no value for any gene, before one is scored.

    Raises:
        InputError: For a window that does not lie in the genes, or an index of a protein in which no codon counts.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> from seqopt.spaces import CodonSpace
        >>> check_genes(resolve_objective("mfe:1..60"), CodonSpace("MKT"))
        Traceback (most recent call last):
            ...
        seqopt.errors.InputError: objective mfe:1..60: the window 1..60 ends at base 60, and the gene has 9: ...
    """
    function: object = objective.function
    if isinstance(function, WeightedSum):
        for term in function.terms:
            check_genes(term.objective, space)
        return
    if isinstance(function, InContext):
        try:
            function.check_length(3 * space.length)
        except InputError as error:
            raise InputError(f"objective {objective.name}: {error}") from error
    index = function.index if isinstance(function, LogOf) else function
    counted: Mapping[str, float] | None = None
    if isinstance(index, CodonAdaptationIndex):
        counted = index.adaptiveness
    elif isinstance(index, TRNAAdaptationIndex):
        counted = index.weights
    if counted is not None and not any(codon in counted for codons in space.choices for codon in codons):
        raise InputError(
            f"objective {objective.name}: no codon of the protein {space.protein} counts, as its residues have no "
            "synonymous codons: all its genes are equally good, and the index has no value"
        )


def _changed(objective: Objective, change: Callable[[Any], Any]) -> Objective:
    """The objective with another function; of a sum, with others in its terms."""
    function = objective.function
    if isinstance(function, WeightedSum):
        return replace(objective, function=function.with_terms(lambda one: _changed(one, change)))
    changed = change(function)
    return objective if changed is function else replace(objective, function=changed)


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
