"""The genes that keep to motifs, as the paths of a graph of which no part is there twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, IntractableError
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.motifs import MotifAutomaton

MOST_STATES = 20_000
"""States after a codon, before equal ones are merged, at which a graph is given up."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layer:
    """The edges from the nodes before a codon to those after it, ordered by their source.

    Attributes:
        source: Node before the codon, one entry for each edge.
        option: Which of the position's codons it takes.
        target: Node after the codon.
        weight: What the codon adds to the score.
        gc: Its number of G and C.
        nodes: Number of nodes before the codon.
    """

    source: IntArray
    option: IntArray
    target: IntArray
    weight: npt.NDArray[np.float64]
    gc: IntArray
    nodes: int


class CodonGraph:
    """A layered graph whose paths are the genes without forbidden motifs, each gene one path.

    A node stands for what the bases so far leave possible: the beginnings of motifs that they end with, and the last
    codon where pairs of codons are scored. Nodes from which the same codons lead on, with the same weights, to the same
    nodes are one node: the minimal deterministic graph, built from the end. Of the beginnings of motifs that a protein
    cannot complete nothing is left, so a graph has about one node for each residue in which no site lies.

    Args:
        choices: The codons of each position.
        automaton: Follows the forbidden motifs.
        score: What edges weigh; by default nothing. Its function of G and C is left to those who walk the graph.
        upstream: Bases before the gene: motifs across the junction are seen.
        downstream: Bases behind it.

    Attributes:
        layers: One for each position; there is one node before the first and one behind the last.
        feasible: Whether there is a path.

    Raises:
        InputError: For a score of positions that are not as many as those of the gene.
        IntractableError: If motifs and score tell more than `MOST_STATES` states apart.

    Example:
        >>> graph = CodonGraph([("GAA", "GAG"), ("TTT", "TTC")], MotifAutomaton(["GAATTC"]))
        >>> [layer.nodes for layer in graph.layers], graph.count()
        ([1, 2], 3)
    """

    def __init__(
        self,
        choices: Sequence[Sequence[str]],
        automaton: MotifAutomaton,
        score: CodonScore | None = None,
        *,
        upstream: str = "",
        downstream: str = "",
    ) -> None:
        self.choices = [tuple(codons) for codons in choices]
        score = CodonScore() if score is None else score
        if score.positions is not None and len(score.positions) != len(self.choices):
            raise InputError(
                f"the score weighs the codons of {len(score.positions)} positions, and the genes have "
                f"{len(self.choices)} codons: give as many"
            )
        counting = MotifAutomaton(list(score.motifs))
        amounts = list(score.motifs.values())
        start = (automaton.after(upstream), 0, "")
        reached: list[list[tuple[int, int, str]]] = [[start]]
        # Of each position and state: option, state behind, weight.
        moves: list[list[list[tuple[int, tuple[int, int, str], float]]]] = []
        for index, codons in enumerate(self.choices):
            own = {} if score.positions is None else score.positions[index]
            base = [score.codons.get(codon, 0.0) + own.get(codon, 0.0) for codon in codons]
            following: dict[tuple[int, int, str], None] = {}
            here = []
            for forbidding, counted, last in reached[-1]:
                out = []
                for option, codon in enumerate(codons):
                    after = automaton.step(forbidding, codon)
                    if after is None:
                        continue
                    weight = base[option]
                    behind = counted
                    if amounts:
                        behind, counts = counting.counted(counted, codon)
                        weight += sum(count * amount for count, amount in zip(counts, amounts, strict=True) if count)
                    if score.pairs and last:
                        weight += score.pairs.get((last, codon), 0.0)
                    state = (after, behind, codon if score.pairs else "")
                    following[state] = None
                    out.append((option, state, weight))
                here.append(out)
            if len(following) > MOST_STATES:
                raise IntractableError(
                    f"motifs and score tell more than {MOST_STATES:,} states apart at codon {index + 1}: use fewer or "
                    "shorter motifs, or search"
                )
            moves.append(here)
            reached.append(list(following))
        nodes = {state: 0 for state in reached[-1] if automaton.clear(state[0], downstream)}
        layers: list[Layer] = []
        for index in range(len(self.choices) - 1, -1, -1):
            merged: dict[tuple[tuple[int, int, float], ...], int] = {}
            before: dict[tuple[int, int, str], int] = {}
            for state, out in zip(reached[index], moves[index], strict=True):
                edges = tuple((option, nodes[after], weight) for option, after, weight in out if after in nodes)
                if edges:
                    before[state] = merged.setdefault(edges, len(merged))
            layers.append(_layer(list(merged), self.choices[index]))
            nodes = before
        layers.reverse()
        self.layers = layers
        self.feasible = start in nodes

    def part(self, positions: Sequence[int]) -> CodonGraph:
        """The graph of some positions alone.

        Args:
            positions: In ascending order; what is between them is left out, which makes a graph only where a single
                node stands before each gap and behind it.
        """
        found = object.__new__(CodonGraph)
        found.choices = [self.choices[position] for position in positions]
        found.layers = [self.layers[position] for position in positions]
        found.feasible = self.feasible
        return found

    def count(self) -> int:
        """Number of paths, exact however large; that is, of genes without the motifs."""
        if not self.feasible:
            return 0
        paths = [1]
        for layer in reversed(self.layers):
            here = [0] * layer.nodes
            for source, target in zip(layer.source.tolist(), layer.target.tolist(), strict=True):
                here[source] += paths[target]
            paths = here
        return paths[0]

    def least_and_most_gc(self) -> tuple[IntArray, IntArray]:
        """The fewest and the most G and C behind each position, the motifs not counted, ``n + 1`` each."""
        counts = [[codon.count("G") + codon.count("C") for codon in codons] for codons in self.choices]
        least = np.array([0, *map(min, reversed(counts))]).cumsum()[::-1]
        most = np.array([0, *map(max, reversed(counts))]).cumsum()[::-1]
        return least, most

    def gene(self, options: Sequence[int]) -> str:
        """The gene of a path, given by the option of each position."""
        return "".join(codons[option] for codons, option in zip(self.choices, options, strict=True))

    def weight(self, options: Sequence[int]) -> float:
        """The sum of the weights along a path."""
        weights = []
        node = 0
        for layer, option in zip(self.layers, options, strict=True):
            edge = int(np.flatnonzero((layer.source == node) & (layer.option == option))[0])
            weights.append(float(layer.weight[edge]))
            node = int(layer.target[edge])
        return math.fsum(weights)

    def completions(self, *, by_count: bool) -> list[list[int]]:
        """For each position and node, the numbers of G and C that completions from there can have.

        They are the bits of an integer: bit k is set if some completion has k. Without ``by_count`` bit 0 says whether
        there is a completion at all.
        """
        found = [[1]]
        for layer in reversed(self.layers):
            following = found[-1]
            here = [0] * layer.nodes
            gcs = layer.gc.tolist() if by_count else [0] * len(layer.gc)
            for source, target, gc in zip(layer.source.tolist(), layer.target.tolist(), gcs, strict=True):
                here[source] |= following[target] << gc
            found.append(here)
        found.reverse()
        return found

    @cached_property
    def out(self) -> list[list[list[tuple[int, int, float, int]]]]:
        """The edges from each node of each layer: option, target, weight, and number of G and C."""
        found = []
        for layer in self.layers:
            nodes: list[list[tuple[int, int, float, int]]] = [[] for _ in range(layer.nodes)]
            for source, option, target, weight, gc in zip(
                layer.source.tolist(),
                layer.option.tolist(),
                layer.target.tolist(),
                layer.weight.tolist(),
                layer.gc.tolist(),
                strict=True,
            ):
                nodes[source].append((option, target, weight, gc))
            found.append(nodes)
        return found

    @property
    def edges(self) -> int:
        """Number of edges."""
        return sum(len(layer.source) for layer in self.layers)


def _layer(nodes: list[tuple[tuple[int, int, float], ...]], codons: Sequence[str]) -> Layer:
    rows = [(source, *edge) for source, edges in enumerate(nodes) for edge in edges]
    gc = np.array([codon.count("G") + codon.count("C") for codon in codons], dtype=np.int64)
    option = np.array([row[1] for row in rows], dtype=np.int64)
    return Layer(
        np.array([row[0] for row in rows], dtype=np.int64),
        option,
        np.array([row[2] for row in rows], dtype=np.int64),
        np.array([row[3] for row in rows], dtype=np.float64),
        gc[option],
        len(nodes),
    )
