"""``seqopt search`` over variants of a parent, of a template or of a library of codons, in place of candidates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.cli.running import Plan, check_plan, default_folder, show_notes, watched_search
from seqopt.cli.variant_options import VariantOptions
from seqopt.errors import InputError
from seqopt.objectives import resolve_objective

if TYPE_CHECKING:
    from seqopt.evaluation import Direction

FOLDER = "variants"
"""What the folder of results is named after, where no file says it."""


def run_variants(
    variants: VariantOptions,
    objective_spec: str,
    plan: Plan,
    *,
    kind: str | None,
    direction: Direction | None,
    transform: str | None,
    out: Path | None,
    idle: dict[str, bool],
    choosing: dict[str, Any],
) -> Any:
    """Search variants, and say what is happening; see ``seqopt search --help``.

    Args:
        variants: Which ones.
        objective_spec: What makes one good.
        plan: Of the search.
        kind: What the strings are, if it was said.
        direction: Of the objective, where it is not the usual one.
        transform: Of its values.
        out: The folder.
        idle: Options that are for lists of candidates, by name, and whether they were given.
        choosing: Filters and the like.

    Returns:
        The result, the name of the objective, the direction and the folder.

    Raises:
        InputError: For options that do not go together, or a column as the objective.
    """
    started = time.perf_counter()
    show_notes()
    _refuse([option for option, given in idle.items() if given])
    objective_spec = objective_spec.strip()
    if objective_spec.startswith("column:"):
        raise InputError(f"-o {objective_spec} is of a list of candidates, and variants are made: give a score")
    source = Path(variants.parent).stem if variants.parent and Path(variants.parent).suffix else FOLDER
    folder = out if out is not None else default_folder(source, objective_spec)
    from seqopt.campaign.run_folders import check_folder

    check_folder(folder, plan.resume)
    objective = resolve_objective(objective_spec)
    space: Any = variants.space(kind)
    if not objective.applies_to(space.kind):
        raise InputError(
            f"the objective {objective.name} is for {objective.strings}, but the variants are of kind "
            f"{space.kind!r}: choose another objective, or say --kind"
        )
    from seqopt.data import resolve_transform
    from seqopt.strategies.designs import check_design

    check_plan(plan)
    check_design(choosing["design"])
    resolve_transform(transform)
    goal = direction or objective.direction
    result = watched_search(
        objective,
        space,
        plan,
        goal,
        folder,
        started=started,
        transform=transform,
        heading=described_variants(space),
        **choosing,
    )
    return result, objective.name, goal, folder


def described_variants(space: Any) -> list[str]:
    """What is searched, in words: how many variants there are, and of a library how many clones stop.

    Example:
        >>> from seqopt.spaces import CodonLibrary
        >>> described_variants(CodonLibrary("NNK", parent="MKVLS", positions="2,4"))
        ['CodonLibrary(NNK at 2 positions: 400 proteins)', '1,024 genes, of which 6.2 % have a stop codon']
    """
    lines = [repr(space)]
    if hasattr(space, "stop_probability"):
        genes = f"{space.genes:,} gene{'' if space.genes == 1 else 's'}"
        lines.append(f"{genes}, of which {100 * space.stop_probability:.1f} % have a stop codon")
    return lines


def _refuse(options: Sequence[str]) -> None:
    if options:
        raise InputError(f"{options[0]} is for a list of candidates, and variants are made: leave it out")
