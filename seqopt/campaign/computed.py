"""Campaigns whose objective is computed: a score, or a weighted sum whose scores are recorded beside it.

The settings of such a campaign keep what computes it and, of a sum, the weights and units of its scores, which are
outcomes of the role ``"recorded"``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqopt.campaign.rows import COMPUTED, TERMS
from seqopt.data import Outcome
from seqopt.errors import InputError
from seqopt.objectives import (
    Objective,
    WeightedSum,
    by_code,
    check_genes,
    column_of,
    in_context,
    resolve_objective,
)
from seqopt.objectives.weighted import Rows
from seqopt.spaces import CodonSpace, Space

if TYPE_CHECKING:
    from seqopt.evaluation import ObjectiveFunction, QueryObjective

logger = logging.getLogger(__name__)


def suited(objective: Objective, space: Space) -> Objective:
    """A score as it is of the strings of a space: of genes by their genetic code, and between what stands beside them.

    Raises:
        InputError: If it is for other strings, or has no value for any gene of the space.

    Example:
        >>> space = CodonSpace("MKT", upstream="AGGC")
        >>> suited(resolve_objective("mfe:-4..3"), space).function.upstream
        'AGGC'
    """
    if not objective.applies_to(space.kind):
        raise InputError(
            f"the objective {objective.name} is for {objective.strings}, but this campaign searches "
            f"strings of kind {space.kind!r}"
        )
    if not isinstance(space, CodonSpace):
        return objective
    found = in_context(by_code(objective, space.code.number), space.upstream, space.downstream)
    check_genes(found, space)
    return found


def computed_objective(spec: str, space: Space) -> Objective:
    """What computes the objective of a new campaign, by its name.

    Raises:
        InputError: As `seqopt.objectives.resolve_objective` says, for a column of a file, and as `suited` does.
        ObjectiveError: As `seqopt.objectives.resolve_objective` says.
    """
    if column_of(spec) is not None:
        raise InputError(
            f"the objective {spec!r} looks values up in a file, and is nothing that a campaign computes: replay known "
            "results with seqopt search"
        )
    return suited(resolve_objective(spec), space)


def terms_of(objective: object) -> list[list[Any]]:
    """Name, weight and unit of each score of a weighted sum; none of another objective.

    Example:
        >>> terms_of(resolve_objective("gc - 0.5*cai:human"))
        [['gc', 1.0, ''], ['cai:human', -0.5, '']]
    """
    total = objective.function if isinstance(objective, Objective) else None
    if not isinstance(total, WeightedSum):
        return []
    return [[term.objective.name, term.weight, term.objective.unit] for term in total.terms]


def recorded(objective: object) -> list[Outcome]:
    """The scores of a weighted sum as outcomes that are only kept."""
    total = objective.function if isinstance(objective, Objective) else None
    if not isinstance(total, WeightedSum):
        return []
    return [Outcome(term.objective.name, term.objective.direction, role="recorded") for term in total.terms]


def evaluated(
    objective: ObjectiveFunction | QueryObjective, outcomes: Sequence[Outcome]
) -> ObjectiveFunction | QueryObjective:
    """What gives the values of the outcomes of a campaign: of a weighted sum, the sum and those scores that it records.

    Args:
        objective: What computes the first outcome.
        outcomes: Of the campaign, the objective first.

    Raises:
        InputError: If a further outcome is none of the scores of a sum.

    Example:
        >>> total = resolve_objective("gc - 0.5*cai:human")
        >>> rows = evaluated(total, [Outcome("y"), *recorded(total)])
        >>> rows(["GCTGCC"]).round(2).tolist()
        [[0.42, 0.83, 0.82]]
    """
    total = objective.function if isinstance(objective, Objective) else None
    if not isinstance(total, WeightedSum):
        return objective
    names = [outcome.name for outcome in outcomes[1:]]
    unknown = [name for name in names if name not in total.names]
    if unknown:
        raise InputError(
            f"the campaign records {', '.join(unknown)}, too, and {objective.name} has the scores "  # type: ignore[union-attr]
            f"{', '.join(total.names)}: add it to the sum (with the weight 0 if it shall only be recorded), or begin a "
            "campaign with this objective"
        )
    if not names:
        logger.warning(
            "only the sum is recorded: for its scores (%s), begin the campaign with it as its objective",
            ", ".join(total.names),
        )
        return objective
    return Rows(total, tuple(names))


def facts_of(spec: str, objective: Objective) -> dict[str, Any]:
    """What settings keep of the objective of a campaign that is computed."""
    terms = terms_of(objective)
    return {COMPUTED: spec} | ({TERMS: terms} if terms else {})
