"""Options on what may be suggested, and on how batches are put together, which several commands take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.filters.conditions import Filter
    from seqopt.scorers.limits import BatchLimits
    from seqopt.strategies import Near

FILTERS, CHOICE = "What may be suggested", "How batches are put together"

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

Exclude = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Strings that must not be suggested, such as patented ones: a file like those of candidates.",
        rich_help_panel=FILTERS,
    ),
]
Include = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Candidates that come first of all, such as reference compounds: a file like those of candidates.",
        rich_help_panel=CHOICE,
    ),
]
DesignName = Annotated[
    str,
    typer.Option(
        "--design",
        help="How the first ones are chosen: random (which auto is), maxmin (each as far as can be from those before "
        "it, by the model's kernel), or medoids (representatives of a random sample).",
        rich_help_panel=CHOICE,
    ),
]
PerScaffold = Annotated[
    int | None,
    typer.Option(
        "--per-scaffold",
        help="Most molecules of one Bemis-Murcko scaffold in a batch. What awaits a result counts.",
        rich_help_panel=CHOICE,
        min=1,
    ),
]
MaxSimilarity = Annotated[
    float | None,
    typer.Option(
        "--max-similarity",
        help="Largest similarity of any two in a batch, from 0 to 1: Tanimoto of counts of Morgan environments for "
        "molecules, else 1 - edit distance / length. What awaits a result counts.",
        rich_help_panel=CHOICE,
    ),
]

Lead = Annotated[
    str | None,
    typer.Option(
        metavar="STRING|FASTA",
        help="Search near this string, such as a SMILES or a sequence (or its FASTA file), and further where results "
        "show that it pays; with --radius.",
        rich_help_panel=CHOICE,
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        help="How far from the lead is near: 1 - Tanimoto similarity for molecules (0.4), else edits (3).",
        rich_help_panel=CHOICE,
    ),
]
LeadDistance = Annotated[
    str,
    typer.Option(
        metavar="auto|tanimoto|edit|kernel",
        help="How the distance from the lead is measured.",
        rich_help_panel=CHOICE,
    ),
]
LeadScale = Annotated[
    float,
    typer.Option(
        help="What a string at twice the radius has to promise besides, in standard deviations of the values.",
        rich_help_panel=CHOICE,
    ),
]


def given_lead(lead: str | None, radius: float | None, distance: str, scale: float) -> Near | None:
    """The lead that options name, if there is one.

    Raises:
        InputError: For a lead without a radius, or the other way round, or a file that holds no single sequence.
    """
    if lead is None:
        idle = next(
            (
                option
                for option, given in {
                    "--radius": radius is not None,
                    "--lead-distance": distance != "auto",
                    "--lead-scale": scale != 1.0,
                }.items()
                if given
            ),
            None,
        )
        if idle is not None:
            raise InputError(f"{idle} goes with --lead STRING: give the lead, or leave it out")
        return None
    if radius is None:
        raise InputError("--lead needs --radius, how far from it is near: 0.4 of molecules, 3 edits of others")
    from seqopt.cli.variant_options import is_fasta, sequence_in
    from seqopt.strategies import Near

    # SMILES have points and slashes, too, so that these do not tell a file.
    if is_fasta(lead.strip()) or ("." in lead and os.path.isfile(lead.strip())):
        lead = sequence_in(lead.strip(), "--lead", "lead")
    return Near(lead, radius, distance, scale)


def given_limits(per_scaffold: int | None, max_similarity: float | None) -> BatchLimits | None:
    """The limits of a batch that options name, if there are any.

    Raises:
        InputError: For a number out of its range.
    """
    if per_scaffold is None and max_similarity is None:
        return None
    from seqopt.scorers.limits import BatchLimits

    return BatchLimits(per_scaffold, max_similarity)


def given_filters(
    properties: list[str] | None,
    require: list[str] | None,
    forbid: list[str] | None,
    alerts: list[str] | None,
    where: list[str] | None,
    require_pattern: list[str] | None,
    forbid_pattern: list[str] | None,
    exclude: list[Path] | None = None,
) -> list[Filter]:
    """The filters that options name, what is quick to look at first.

    Raises:
        InputError: For one that cannot be read, or a list of strings that cannot.
    """
    from seqopt.filters.conditions import Alerts, ColumnCondition, Pattern, PropertyRange, Substructure
    from seqopt.filters.listed import Listed, read_list

    catalogs = [name.strip() for names in alerts or [] for name in names.split(",") if name.strip()]
    return [
        *map(ColumnCondition.parse, where or []),
        *map(PropertyRange.parse, properties or []),
        *(Substructure(smarts) for smarts in require or []),
        *(Substructure(smarts, required=False) for smarts in forbid or []),
        *map(Alerts, catalogs),
        *(Pattern(pattern) for pattern in require_pattern or []),
        *(Pattern(pattern, required=False) for pattern in forbid_pattern or []),
        *(Listed(read_list(path), source=path.name) for path in exclude or []),
    ]
