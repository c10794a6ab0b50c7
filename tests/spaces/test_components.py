"""Best paths part by part: the same as of the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.spaces.codon_graph import CodonGraph
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.components import Components
from seqopt.spaces.motifs import MotifAutomaton
from seqopt.spaces.specifications import Cut

CODONS = ("GAA", "GAG", "TTC", "AAA")


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=6),
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=4), max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_all_paths_come_in_their_order_and_meet_the_conditions(sizes, conditions, seed) -> None:
    choices = [CODONS[:size] for size in sizes]
    rng = np.random.default_rng(seed)
    positions = [dict(zip(CODONS, rng.normal(size=4).tolist(), strict=True)) for _ in choices]
    score = CodonScore(positions=positions)
    graph = CodonGraph(choices, MotifAutomaton(["GAATTC", "GAAGAG"]), score)
    cuts = []
    for condition in conditions:
        codons: dict[int, dict[str, float]] = {}
        for position, codon in condition:
            codons.setdefault(position % len(choices), {})[CODONS[codon]] = 1.0
        cuts.append(Cut(codons, 0.0, len(codons) - 0.5))
    expected = []
    for codons_of in itertools.product(*choices):
        gene = "".join(codons_of)
        sums = [sum(own.get(codons_of[place], 0.0) for place, own in cut.codons.items()) for cut in cuts]
        if "GAATTC" in gene or "GAAGAG" in gene or any(total > cut.high for total, cut in zip(sums, cuts, strict=True)):
            continue
        expected.append((score.of(gene), gene))
    expected.sort(reverse=True)
    parts = Components(graph)
    # Some paths are looked at before all conditions are known, as those do who find them one by one.
    for cut in cuts:
        next(parts.ranked(), None)
        parts.add([cut])
    found = list(itertools.islice(parts.ranked(), 12))
    assert [graph.gene(options) for _, options, _ in found] == [gene for _, gene in expected[:12]]
    assert [total for total, _, _ in found] == pytest.approx([total for total, _ in expected[:12]])


def test_conditions_leave_the_rest_as_it_is() -> None:
    graph = CodonGraph([CODONS] * 8, MotifAutomaton([]), CodonScore({"GAA": 1.0}))
    parts = Components(graph)
    parts.add([Cut({1: {"GAA": 1.0}, 2: {"GAA": 1.0}}, 0.0, 1.0), Cut({6: {"GAA": 1.0}}, 0.0, 0.0)])
    total, _, _ = next(parts.ranked())
    assert total == pytest.approx(6.0)
    before = [part for part in parts._components() if part.positions == [1, 2]]
    parts.add([Cut({6: {"GAG": 1.0}}, 0.0, 0.0)])
    assert next(parts.ranked())[0] == pytest.approx(6.0)
    assert [part for part in parts._components() if part.positions == [1, 2]] == before
