"""How suggested products are made: what a batch and a page say of reactions and building blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqopt.campaign.labels import Label
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.spaces import Space
    from seqopt.spaces.combinatorial import Route

REACTION, REAGENTS, SMILES, PRICE = "reaction", "reagents", "reagents_smiles", "reagents_price"
"""Columns of a route."""


def route_cells(route: Route) -> dict[str, str]:
    """A route as cells of a table: the reaction, the names and SMILES of its building blocks, and their price.

    Example:
        >>> from seqopt.spaces import CombinatorialSpace
        >>> space = CombinatorialSpace(
        ...     ["[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"], {"acids": ["CC(=O)O"], "amines": ["CN"]}
        ... )
        >>> route_cells(space.route("CNC(C)=O"))
        {'reaction': 'reaction1', 'reagents': 'CC(=O)O + CN', 'reagents_smiles': 'CC(=O)O.CN'}
    """
    found = {
        REACTION: route.reaction,
        REAGENTS: route.names,
        SMILES: ".".join(block.smiles for block in route.blocks),
    }
    return found if route.price is None else found | {PRICE: f"{route.price:.10g}"}


def labels_by_route(space: Space, strings: Sequence[str]) -> list[Label] | None:
    """Routes of strings in place of what a library says of them; `None` for a space without reactions."""
    from seqopt.spaces import CombinatorialSpace

    if not isinstance(space, CombinatorialSpace):
        return None
    found = []
    for string in strings:
        try:
            found.append(Label(None, route_cells(space.route(string))))
        except InputError:  # a control, or what its user has asked for besides
            found.append(Label())
    return found
