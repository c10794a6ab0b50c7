"""The genes of a protein as the paths of a graph of bases.

A node stands for a base at one position of the gene, after what the same codon has before it: the second base of
leucine's codons is two nodes, U after C and U after U, since other bases may follow. Edges join nodes of neighbouring
positions, and every path from the first position to the last is one gene. The weight of a codon lies on the edge to its
last base, so any two codons can be put side by side without a word.

References:
    Terai, G., Kamegai, S., Asai, K. (2016). CDSfold: an algorithm for designing a protein-coding sequence with the most
        stable secondary structure. Bioinformatics 32, 828-834.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.folding.energies import BASES, INFINITE

IntArray = npt.NDArray[np.int32]

MOST = 4
"""Nodes of one position at most."""


class BaseGraph(NamedTuple):
    """Nodes are numbered position by position; weights are whole numbers from 0, `INFINITE` where there is no edge.

    Attributes:
        starts: First node of each position, and at the end the number of nodes.
        position: Of each node.
        base: Of each node, A = 1, C = 2, G = 3, U = 4.
        edge: ``n x 4``: weight of the edge to each node of the next position.
        second: ``n x 4``: from the first base of a codon, least weight to each node two positions on, within the codon.
        codon: Of each node.
        enter: Least weight of all codons before a node's, and from the start of its codon to it.
        leave: Least weight from a node to the end of its codon, less that of all codons up to it, its own included: the
            least weight between nodes a and b of different codons is ``leave[a] + enter[b]``.
    """

    starts: IntArray
    position: IntArray
    base: IntArray
    edge: IntArray
    second: IntArray
    codon: IntArray
    enter: IntArray
    leave: IntArray

    @property
    def length(self) -> int:
        """Bases of a gene."""
        return len(self.starts) - 1


def base_graph(choices: Sequence[Sequence[str]], weights: Sequence[Mapping[str, int]] | None = None) -> BaseGraph:
    """The graph of all genes that have one of ``choices[i]`` as codon i.

    Args:
        choices: Codons in DNA or RNA letters.
        weights: Weight of each codon of each position, whole numbers from 0; 0 for all where there is none.

    Raises:
        InputError: If the codons of one position begin in more than four ways.

    Example:
        >>> graph = base_graph([["CTT", "TTA"], ["ATG"]])
        >>> graph.starts.tolist(), ["ACGU"[base - 1] for base in graph.base]
        ([0, 2, 4, 6, 7, 8, 9], ['C', 'U', 'U', 'U', 'A', 'U', 'A', 'U', 'G'])
    """
    labels: list[list[str]] = []
    for codons in choices:
        written = [codon.upper().replace("T", "U") for codon in codons]
        labels += [
            list(dict.fromkeys(codon[0] for codon in written)),
            list(dict.fromkeys(codon[:2] for codon in written)),
            sorted({codon[2] for codon in written}),
        ]
    for index, names in enumerate(labels):
        if len(names) > MOST:
            raise InputError(
                f"the codons of position {index // 3 + 1} begin in {len(names)} ways; at most {MOST} can be"
            )
    starts = np.concatenate([[0], np.cumsum([len(names) for names in labels])]).astype(np.int32)
    count = int(starts[-1])
    position = np.repeat(np.arange(len(labels)), np.diff(starts)).astype(np.int32)
    base = np.array([BASES.index(name[-1]) + 1 for names in labels for name in names], dtype=np.int32)
    edge = np.full((count, MOST), INFINITE, dtype=np.int32)
    second = np.full((count, MOST), INFINITE, dtype=np.int32)
    tail = np.full(count, INFINITE, dtype=np.int32)
    head = np.full(count, INFINITE, dtype=np.int32)
    spent = np.zeros(count, dtype=np.int32)
    total = np.zeros(count, dtype=np.int32)
    so_far = 0
    for index, codons in enumerate(choices):
        at = 3 * index
        least = INFINITE
        for codon in codons:
            rna = codon.upper().replace("T", "U")
            weight = 0 if weights is None else int(weights[index][codon])
            first, middle, last = (
                labels[at + offset].index(name) for offset, name in enumerate((rna[0], rna[:2], rna[2]))
            )
            nodes = starts[at] + first, starts[at + 1] + middle, starts[at + 2] + last
            edge[nodes[0], middle] = 0
            edge[nodes[1], last] = weight
            second[nodes[0], last] = min(second[nodes[0], last], weight)
            tail[nodes[0]] = min(tail[nodes[0]], weight)
            tail[nodes[1]] = min(tail[nodes[1]], weight)
            tail[nodes[2]] = 0
            head[nodes[0]] = head[nodes[1]] = 0
            head[nodes[2]] = min(head[nodes[2]], weight)
            least = min(least, weight)
        if index + 1 < len(choices):
            edge[starts[at + 2] : starts[at + 3], : starts[at + 4] - starts[at + 3]] = 0
        spent[starts[at] : starts[at + 3]] = so_far
        so_far += least
        total[starts[at] : starts[at + 3]] = so_far
    return BaseGraph(starts, position, base, edge, second, position // 3, spent + head, tail - total)


def bases_of(graph: BaseGraph, nodes: Sequence[int]) -> str:
    """The gene of a path, in DNA letters."""
    return "".join(BASES[graph.base[node] - 1] for node in nodes).replace("U", "T")
