"""Compiled loops of the kernel of helices: where bases could pair, and what two strings have in common of that.

Everything compiled is in this one file, because Numba's cache on disk notices changes of this file only.
"""

from __future__ import annotations

from typing import Any

from seqopt.utils.compiling import compiled

HAIRPIN = 3
"""Bases that a strand needs at least to turn back."""

SHORTEST = 2
"""Pairs of a helix at least: a single pair stacks on nothing."""


@compiled
def found(bases: Any, table: Any, places: Any, bonds: Any, counts: Any, squares: Any) -> None:
    """The helices of some strings.

    Args:
        bases: n strings of L bases, ``n x L``.
        table: Hydrogen bonds of each two bases.
        places: Filled with the place of each helix, string after string, ascending in each: i + j times L, plus
            L - 1 - i.
        bonds: Filled with its bonds.
        counts: Filled with the number of helices of each string, n.
        squares: Filled with the sum of the squares of its bonds, n.
    """
    length = bases.shape[1]
    entry = 0
    for row in range(len(bases)):
        own = bases[row]
        first, square = entry, 0
        for total in range(HAIRPIN + 1, 2 * length - HAIRPIN - 2):
            pairs, bound = 0, 0
            # From the innermost pair outwards.
            for i in range((total - HAIRPIN - 1) // 2, max(0, total - length + 1) - 1, -1):
                more = table[own[i], own[total - i]]
                if more == 0:
                    pairs, bound = 0, 0
                    continue
                pairs += 1
                bound += more
                if pairs >= SHORTEST:
                    places[entry] = total * length + length - 1 - i
                    bonds[entry] = bound
                    square += bound * bound
                    entry += 1
        counts[row] = entry - first
        squares[row] = square


@compiled
def multiplied(
    starts: Any, rows: Any, counts: Any, dense: Any, matrix: Any, heads: Any, places: Any, bonds: Any, products: Any
) -> None:
    """Add up products of bonds at places that two strings have in common.

    Args:
        starts: Of each place where the first strings that have a helix there begin, and those of the last one end.
        rows: Those strings.
        counts: The bonds of their helices.
        dense: Of each place a row of ``matrix``, or -1.
        matrix: Bonds of all n first strings at some places.
        heads: Where the helices of each of the m other strings begin, and those of the last one end.
        places: Their places.
        bonds: Their bonds.
        products: ``m x n``, 0 at first.
    """
    for string in range(len(products)):
        row = products[string]
        for entry in range(heads[string], heads[string + 1]):
            place, own = places[entry], bonds[entry]
            if dense[place] >= 0:
                theirs = matrix[dense[place]]
                for other in range(len(row)):
                    row[other] += own * theirs[other]
            else:
                for other in range(starts[place], starts[place + 1]):
                    row[rows[other]] += own * counts[other]


@compiled
def paired(
    heads: Any, places: Any, bonds: Any, other_heads: Any, other_places: Any, other_bonds: Any, products: Any
) -> None:
    """Add up products of bonds at places that string i of both lists has, n."""
    for string in range(len(products)):
        other, end = other_heads[string], other_heads[string + 1]
        for entry in range(heads[string], heads[string + 1]):
            while other < end and other_places[other] < places[entry]:
                other += 1
            if other < end and other_places[other] == places[entry]:
                products[string] += bonds[entry] * other_bonds[other]
