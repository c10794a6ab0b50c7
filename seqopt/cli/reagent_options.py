"""Options of reactions and building blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqopt.errors import InputError

REAGENTS_PANEL = "Reactions and building blocks"

Reactions = Annotated[
    Path | None,
    typer.Option(
        "--reactions",
        metavar="FILE",
        help="Instead of a pool: the products of reactions. A .csv with the columns smarts, name and reagents (names "
        "of files, acids;amines), or lines of SMARTS, name and names of files.",
        rich_help_panel=REAGENTS_PANEL,
    ),
]
Reagents = Annotated[
    list[Path] | None,
    typer.Option(
        "--reagents",
        metavar="FOLDER|FILE",
        help="With --reactions: the building blocks, .smi or .csv files with SMILES, identifiers and prices, or their "
        "folder. May be given several times.",
        rich_help_panel=REAGENTS_PANEL,
    ),
]

_OF_POOLS = (
    *("column", "kind", "standardize", "attachment_points", "strict", "decimal_comma", "id_column", "price_column"),
    *("fidelity", "target_cost", "budget_cost", "candidates", "strategy", "prefilter", "keep", "on_disk", "tokenizer"),
    *("features", "features_kernel", "features_column", "prior_mean"),
)
_OF_VARIANTS = ("parent", "mutations", "positions", "letters", "template", "library")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name) if name in context.params else None
    return source is not None and source.name != "DEFAULT"


def chosen_acquisition(context: typer.Context, acquisition: str) -> str:
    """The acquisition function that was asked for; Thompson sampling where none was.

    On combinatorial libraries exact draws of all tuples are ahead (``docs/results.md``).
    """
    return acquisition if is_given(context, "acquisition") else "thompson"


def refuse_pool_options(context: typer.Context, pool: object) -> None:
    """Refuse what goes with a list of candidates only.

    Raises:
        InputError: For the first such option that is given.
    """
    if pool is not None:
        raise InputError(f"{pool} is a list of candidates, and --reactions makes others: give one of the two")
    for name in _OF_VARIANTS:
        if is_given(context, name):
            raise InputError(f"--{name} makes variants, and --reactions products: give one of the two")
    # Known results may have decimal commas, whatever is searched.
    alone = {"decimal_comma"} if is_given(context, "known") else set()
    for name in _OF_POOLS:
        if name not in alone and is_given(context, name):
            instead = "or with --known FILE" if name == "decimal_comma" else "not with --reactions"
            raise InputError(f"--{name.replace('_', '-')} goes with a file of candidates, {instead}: leave it out")
