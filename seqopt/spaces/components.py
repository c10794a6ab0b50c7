"""The best paths of a graph of genes under linear conditions, part by part where parts do not touch.

Before a position with a single node nothing of what came before matters: there the graph falls into *segments*, whose
paths can be chosen independently. A condition ties the segments together in which it has coefficients. What is tied is
a *component*, a mixed-integer program of its own; the segments without conditions are one, left to dynamic
programming. The best gene is made of the best paths of all components, and the k best are the k best sums of one path
of each, taken from lists that are only made as far as they are needed (Lawler, 1972).

So a long gene costs as much as the stretches of it in which something has to be avoided, each by itself, and a
condition that is added later only has its own component solved again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from seqopt.spaces.best_genes import BestGenes
from seqopt.spaces.codon_graph import CodonGraph
from seqopt.spaces.path_program import PathProgram
from seqopt.spaces.specifications.base import Cut

Path = tuple[float, tuple[int, ...], float]
"""Score, the option of each position, and how much better another path may be that is not listed yet."""


class _Paths(Protocol):
    """The paths of a component, the best first."""

    positions: list[int]

    def __call__(self, rank: int) -> Path | None:
        """The path of a rank, from 0; `None` where there are no more."""
        ...


class _Free:
    """Paths without conditions."""

    def __init__(self, graph: CodonGraph, positions: list[int]) -> None:
        self.positions = positions
        self._ranked = BestGenes(graph.part(positions)).ranked()
        self._found: list[Path] = []

    def __call__(self, rank: int) -> Path | None:
        while len(self._found) <= rank:
            one = next(self._ranked, None)
            if one is None:
                return None
            self._found.append((*one, 0.0))
        return self._found[rank]


class _Tied:
    """Paths under conditions, one mixed-integer program after another."""

    def __init__(self, graph: CodonGraph, positions: list[int], cuts: Sequence[Cut]) -> None:
        self.positions = positions
        self._graph = graph.part(positions)
        self._program = PathProgram(self._graph)
        place = {position: index for index, position in enumerate(positions)}
        self._program.add(
            replace(cut, codons={place[position]: codons for position, codons in cut.codons.items()}) for cut in cuts
        )
        self._found: list[Path] = []

    def __call__(self, rank: int) -> Path | None:
        while len(self._found) <= rank:
            if self._found:
                taken = self._found[-1][1]
                codons = {
                    index: {self._graph.choices[index][option]: 1.0}
                    for index, option in enumerate(taken)
                    if len(self._graph.choices[index]) > 1
                }
                if not codons:
                    return None
                self._program.add([Cut(codons, 0.0, len(codons) - 1.0)])
            solution = self._program.solve()
            if solution is None:
                return None
            weight = self._graph.weight(solution.options)
            self._found.append((weight, solution.options, max(solution.bound - weight, 0.0)))
        return self._found[rank]


class Components:
    """Best paths under conditions that are added one after another; what they leave as it was is not solved again.

    Args:
        graph: Its edges carry the weights.

    Example:
        >>> from seqopt.spaces.codon_scores import CodonScore
        >>> from seqopt.spaces.motifs import MotifAutomaton
        >>> graph = CodonGraph([("AAA", "AAG")] * 3, MotifAutomaton([]), CodonScore({"AAG": 1.0}))
        >>> parts = Components(graph)
        >>> parts.add([Cut({0: {"AAG": 1.0}, 2: {"AAG": 1.0}}, 0, 1)])
        >>> [round(score) for score, _, _ in parts.ranked()]
        [2, 2, 1, 1, 1, 0]
    """

    def __init__(self, graph: CodonGraph) -> None:
        self.graph = graph
        starts = [index for index, layer in enumerate(graph.layers) if layer.nodes == 1]
        ends = [*starts[1:], len(graph.layers)]
        self._segments = [list(range(*both)) for both in zip(starts, ends, strict=True)]
        self._segment_of = [index for index, segment in enumerate(self._segments) for _ in segment]
        self._cuts: list[Cut] = []
        self._kept: dict[tuple[tuple[int, ...], tuple[int, ...]], _Paths] = {}

    def add(self, cuts: Sequence[Cut]) -> None:
        """Add conditions."""
        self._cuts += cuts

    def ranked(self) -> Iterator[Path]:
        """All paths that meet the conditions, the best first."""
        parts = self._components()
        firsts = [part(0) for part in parts]
        if any(first is None for first in firsts):
            return
        order = 0
        total = sum(first[0] for first in firsts if first is not None)
        heap: list[tuple[float, int, int, tuple[int, ...]]] = [(-total, order, 0, (0,) * len(parts))]
        while heap:
            negative, _, last, ranks = heapq.heappop(heap)
            chosen = [part(rank) for part, rank in zip(parts, ranks, strict=True)]
            options = [0] * len(self.graph.layers)
            slack = 0.0
            for part, path in zip(parts, chosen, strict=True):
                assert path is not None
                slack += path[2]
                for position, option in zip(part.positions, path[1], strict=True):
                    options[position] = option
            yield -negative, tuple(options), slack
            # Each combination of ranks is reached once: by raising them from left to right.
            for index in range(last, len(parts)):
                here, after = chosen[index], parts[index](ranks[index] + 1)
                if after is not None and here is not None:
                    order += 1
                    raised = (*ranks[:index], ranks[index] + 1, *ranks[index + 1 :])
                    heapq.heappush(heap, (negative + here[0] - after[0], order, index, raised))

    def _components(self) -> list[_Paths]:
        roots = list(range(len(self._segments)))

        def root(segment: int) -> int:
            while roots[segment] != segment:
                roots[segment] = segment = roots[roots[segment]]
            return segment

        first = []
        for cut in self._cuts:
            touched = [root(self._segment_of[position]) for position in cut.codons]
            first.append(touched[0])
            for other in touched[1:]:
                roots[root(other)] = root(touched[0])
        of_root: dict[int, list[int]] = {}
        for number, segment in enumerate(first):
            of_root.setdefault(root(segment), []).append(number)
        tied: dict[int, list[int]] = {}
        free: list[int] = []
        for segment, positions in enumerate(self._segments):
            (tied.setdefault(root(segment), []) if root(segment) in of_root else free).extend(positions)
        keys = [(tuple(positions), tuple(of_root[key])) for key, positions in tied.items()]
        keys += [(tuple(free), ())] if free else []
        self._kept = {key: self._kept.get(key) or self._made(*key) for key in keys}
        return list(self._kept.values())

    def _made(self, positions: tuple[int, ...], numbers: tuple[int, ...]) -> _Paths:
        if not numbers:
            return _Free(self.graph, list(positions))
        return _Tied(self.graph, list(positions), [self._cuts[number] for number in numbers])
