"""Back from the tables of least energies to a gene and its structure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqopt.folding.compiled import (
    HAIRPIN,
    LOOP,
    ONE,
    PLACES,
    SHORTER,
    SMALL_HAIRPIN,
    SPLIT,
    STEM,
    STEP,
    Choice,
    Tables,
    ways_along,
    ways_in_multiloop,
    ways_of_pair,
    ways_outside,
    ways_to_end,
)
from seqopt.folding.energies import Energies, IntArray
from seqopt.folding.graph import BaseGraph


class Program(NamedTuple):
    """What has been computed, and what it was computed from.

    Attributes:
        graph: The genes.
        energies: Of loops.
        tables: All columns.
        floor: Least energies of interior loops, by unpaired bases on the left and on the right.
    """

    graph: BaseGraph
    energies: Energies
    tables: Tables
    floor: IntArray


class Traced(NamedTuple):
    """A gene with a structure.

    Attributes:
        nodes: Of each position.
        partner: The position that each is paired with, -1 for none.
        above: How far energy and weights are above the least.
    """

    nodes: list[int]
    partner: list[int]
    above: int


_PAIR, _ONE, _SEVERAL, _OUTSIDE, _PATH = range(5)


def trace(program: Program, slack: int, warmth: float, rng: np.random.Generator) -> Traced:
    """A gene and a structure that are above the least by no more than ``slack``.

    Args:
        program: What has been computed.
        slack: From 0.
        warmth: See `seqopt.folding.compiled.Choice`; 0 chooses without drawing.
        rng: Source of draws.

    Raises:
        AssertionError: If an entry of the tables has no way to it, which would be an error in this package.
    """
    graph = program.graph
    choice = Choice(np.zeros(PLACES, dtype=np.int64), np.zeros(2), np.array([slack], dtype=np.int64), warmth)
    nodes, partner = [0] * graph.length, [-1] * graph.length
    position: list[int] = graph.position.tolist()
    ways_to_end(graph, program.tables, choice, rng)
    waiting = [(_OUTSIDE, -1, _taken(choice)[1])]
    while waiting:
        # Whatever is left open, in random order: otherwise what comes first would use up the slack.
        at = -1 if warmth == 0 else int(rng.integers(len(waiting)))
        waiting[at], waiting[-1] = waiting[-1], waiting[at]
        kind, u, v = waiting.pop()
        nodes[position[v]] = v
        if u >= 0:
            nodes[position[u]] = u
        if kind == _PATH:
            if position[v] - position[u] < 2:
                continue
            ways_along(graph, u, v, choice, rng)
        elif kind == _PAIR:
            partner[position[u]], partner[position[v]] = position[v], position[u]
            ways_of_pair(graph, program.energies, program.tables, u, v, program.floor, choice, rng)
        elif kind == _OUTSIDE:
            ways_outside(graph, program.energies, program.tables, v, choice, rng)
        else:
            ways_in_multiloop(graph, program.energies, program.tables, kind == _ONE, u, v, choice, rng)
        what, *picked = _taken(choice)
        a, b, c, d, e, f = picked[:6]
        if what == SMALL_HAIRPIN:
            size = position[v] - position[u] - 1
            nodes[position[u] + 1 : position[v]] = picked[:size]
        elif what in (HAIRPIN, STEP):
            waiting.append((_PATH, a, b))
        elif what == LOOP:
            waiting.append((_PAIR, a, b))
            if position[a] - position[u] > 1:
                waiting.append((_PATH, c, e))
            if position[v] - position[b] > 1:
                waiting.append((_PATH, f, d))
        elif what == SPLIT:
            waiting += [(_SEVERAL, a, c), (_ONE, d, b)]
        elif what == ONE:
            waiting.append((_ONE, a, b))
        elif what == STEM and kind == _OUTSIDE:
            waiting.append((_PAIR, a, v))
            if b >= 0:
                waiting.append((_OUTSIDE, -1, b))
        elif what == STEM:
            waiting.append((_PAIR, a, b))
        elif what == SHORTER:
            waiting.append((_OUTSIDE, -1, a) if kind == _OUTSIDE else (kind, a, b))
    return Traced(nodes, partner, slack - int(choice.slack[0]))


def _taken(choice: Choice) -> list[int]:
    """What was chosen; its cost is taken from the slack, and the choice is open again."""
    if choice.sums[0] == 0:
        raise AssertionError("an entry of the tables has no way to it")
    choice.slack[0] -= int(choice.sums[1])
    choice.sums[:] = 0
    picked: list[int] = choice.picked.tolist()
    return picked
