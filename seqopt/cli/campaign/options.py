"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seqopt.filters.conditions import Filter

WHAT, HOW, FILTERS = "What to search", "How to search", "What may be suggested"

Which = Annotated[
    Path | None,
    typer.Option(
        "--campaign", "-c", help="The campaign: its name or file. Default: the only one in this folder.", metavar="NAME"
    ),
]
DecimalComma = Annotated[
    bool | None,
    typer.Option(
        "--decimal-comma/--decimal-point",
        help="Numbers are written 6,5. Default: as in the library of the campaign, but 6.5 in a table with commas "
        "between its cells.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        help="What the values are given in, if not in the campaign's unit: M, mM, uM, nM, pM, or pIC50, pKi, pEC50. "
        "They are converted.",
    ),
]
Partial = Annotated[bool, typer.Option("--partial", help="Take the good rows of a table that has bad ones.")]
Replicate = Annotated[
    bool, typer.Option("--replicate", help="Results of strings that have one are further measurements of them.")
]
Force = Annotated[bool, typer.Option("--force", help="Take values that lie far outside all others, too.")]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of your identifiers, if not recognised.", rich_help_panel=WHAT)
]
PriceColumn = Annotated[
    str | None, typer.Option(help="Column of prices, to show what suggestions cost.", rich_help_panel=WHAT)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="RANGE",
        help="Bounds of a property of molecules: 'MW 200..500', 'logP <= 5'. One of MW, logP, TPSA, HBD, HBA, "
        "rotatable_bonds, rings, aromatic_rings, heavy_atoms, heteroatoms, fsp3, charge, SA, QED, or a descriptor of "
        "RDKit. May be given several times, as may all of these.",
        rich_help_panel=FILTERS,
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(metavar="SMARTS", help="A substructure that molecules must have.", rich_help_panel=FILTERS),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(metavar="SMARTS", help="A substructure that molecules must not have.", rich_help_panel=FILTERS),
]
AlertNames = Annotated[
    list[str] | None,
    typer.Option(
        "--alerts",
        metavar="NAMES",
        help="Catalogues of alerts that molecules must not match: pains,brenk (or nih, zinc, chembl, ...).",
        rich_help_panel=FILTERS,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="On a column of the library: 'price <= 100', 'supplier == ACME', 'stock != no', 'supplier in (ACME, "
        "Enamine)'.",
        rich_help_panel=FILTERS,
    ),
]
RequirePattern = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="A regular expression that strings must hold.", rich_help_panel=FILTERS),
]
ForbidPattern = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="A regular expression that strings must not hold.", rich_help_panel=FILTERS),
]


def given_filters(
    properties: list[str] | None,
    require: list[str] | None,
    forbid: list[str] | None,
    alerts: list[str] | None,
    where: list[str] | None,
    require_pattern: list[str] | None,
    forbid_pattern: list[str] | None,
) -> list[Filter]:
    from seqopt.filters.conditions import Alerts, ColumnCondition, Pattern, PropertyRange, Substructure

    catalogs = [name.strip() for names in alerts or [] for name in names.split(",") if name.strip()]
    return [
        *map(ColumnCondition.parse, where or []),
        *map(PropertyRange.parse, properties or []),
        *(Substructure(smarts) for smarts in require or []),
        *(Substructure(smarts, required=False) for smarts in forbid or []),
        *map(Alerts, catalogs),
        *(Pattern(pattern) for pattern in require_pattern or []),
        *(Pattern(pattern, required=False) for pattern in forbid_pattern or []),
    ]
