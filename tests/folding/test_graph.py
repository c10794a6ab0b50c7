"""The paths of the graph of bases are the genes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.folding.compiled import POSSIBLE, path_weight
from seqopt.folding.graph import base_graph, bases_of
from seqopt.strings.genetic_codes import genetic_code

CODE = genetic_code("standard")


def paths(graph):
    """All paths with their weights."""
    found = [([node], 0) for node in range(graph.starts[1])]
    for position in range(1, graph.length):
        begin, end = graph.starts[position], graph.starts[position + 1]
        found = [
            ([*path, node], weight + int(graph.edge[path[-1], node - begin]))
            for path, weight in found
            for node in range(begin, end)
            if graph.edge[path[-1], node - begin] < POSSIBLE
        ]
    return found


@pytest.mark.parametrize("protein", ["LSR", "MRW", "SIL"])
def test_paths_are_the_genes_with_their_weights(protein):
    rng = np.random.default_rng(3)
    choices = [*(CODE.synonyms[residue] for residue in protein), CODE.stops]
    weights = [{codon: int(rng.integers(50)) for codon in codons} for codons in choices]
    graph = base_graph(choices, weights)
    wanted = {
        "".join(codons): sum(row[codon] for row, codon in zip(weights, codons, strict=True))
        for codons in product(*choices)
    }
    found = [(bases_of(graph, path), weight) for path, weight in paths(graph)]
    assert len(found) == len(wanted)
    assert dict(found) == wanted


def test_weights_of_paths_are_least():
    rng = np.random.default_rng(4)
    choices = [CODE.synonyms[residue] for residue in "LRS"]
    graph = base_graph(choices, [{codon: int(rng.integers(50)) for codon in codons} for codons in choices])
    least: dict[tuple[int, int], int] = {}
    for path, _ in paths(graph):
        for begin in range(len(path)):
            weight = 0
            least[path[begin], path[begin]] = 0
            for before, after in pairwise(path[begin:]):
                weight += int(graph.edge[before, after - graph.starts[graph.position[after]]])
                key = path[begin], after
                least[key] = min(least.get(key, weight), weight)
    for a in range(graph.starts[-1]):
        for b in range(graph.starts[-1]):
            if graph.position[a] <= graph.position[b]:
                found = path_weight(graph, a, b)
                assert found == least[a, b] if (a, b) in least else found >= POSSIBLE


def test_codons_that_begin_in_too_many_ways_are_refused():
    with pytest.raises(InputError, match=r"position 2 begin in 5 ways"):
        base_graph([["ATG"], ["AAA", "ACA", "AGA", "ATA", "CAA"]])
