"""Children are judged by the windows that a move has changed exactly as whole genes are."""

from __future__ import annotations

import pickle
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.spaces import CodonSpace
from seqopt.spaces.motifs import MotifSearch
from seqopt.spaces.populations import Parents
from seqopt.spaces.specifications import (
    SYNTHESIS,
    EndMelting,
    FixedStretch,
    ForbiddenMotif,
    ForbiddenSignal,
    GCWindow,
    Hairpins,
    LongestRun,
    NoRareCodons,
    Specification,
    TandemRepeats,
    UniqueKmers,
)
from seqopt.spaces.specifications.windows import Changes
from seqopt.strings.genetic_codes import AMBIGUITY, BASES

PROTEIN = "MSKGRELFTGVLPRAVELDGSVNKGRKFSLS"
SEEDS = st.integers(0, 2**32 - 1)

FLANKS = {"alone": ("", ""), "beside": ("ATTGAATTCGAGCGCAAAT", "CTCGAATTCAAGCTTTTGC")}

CONSTRAINTS: dict[str, Specification] = {
    "motif": ForbiddenMotif("GANNTC"),
    "signal": ForbiddenSignal("poly-a"),
    "run": LongestRun(4),
    "tandem": TandemRepeats(2, 3),
    "gc": GCWindow(20, 0.3, 0.7),
    "gc-wide": GCWindow(80, 0.42, 0.58),
    "k-mers": UniqueKmers(7),
    "hairpins": Hairpins(4, 21),
    "ends": EndMelting(14, 34, 46),
    "rare": NoRareCodons("e_coli", 0.1),
    "fixed": FixedStretch(3, "AAR"),
}


@cache
def space_of(name: str, flanks: str) -> CodonSpace:
    before, behind = FLANKS[flanks]
    some = list(CONSTRAINTS.values())[:9:2] if name == "several" else [CONSTRAINTS[name]]
    gc = (0.4, 0.62) if name == "several" else None
    return CodonSpace(PROTEIN, gc=gc, constraints=some, upstream=before, downstream=behind)


@cache
def parents_of(name: str, flanks: str) -> list[str]:
    return space_of(name, flanks).sample_individuals(30, np.random.default_rng(0))


def changed(rows: np.ndarray, space: CodonSpace, rng: np.random.Generator) -> np.ndarray:
    """Up to three moves one after another, so that what changed lies apart."""
    for _ in range(rng.integers(1, 4)):
        rows = space._changed(rows, rng)
    return rows


@pytest.mark.parametrize("flanks", FLANKS)
@pytest.mark.parametrize("name", [*CONSTRAINTS, "several"])
@settings(deadline=None, max_examples=8)
@given(seed=SEEDS)
def test_children_of_permitted_parents_are_judged_as_whole_genes_are(name: str, flanks: str, seed: int) -> None:
    space, rng = space_of(name, flanks), np.random.default_rng(seed)
    parents = space._parents(parents_of(name, flanks))
    assert parents.permitted.all()
    other = parents[rng.permutation(len(parents.rows))]
    left, right = space._crossed(parents.rows, other.rows, rng)
    for rows, head, tail in (
        (changed(parents.rows, space, rng), parents, parents),
        (left, other, parents),
        (right, parents, other),
        (changed(left, space, rng), other, parents),
    ):
        assert space._allowed_near(rows, head, tail).tolist() == space._allowed(rows).tolist()


@pytest.mark.parametrize("flanks", FLANKS)
def test_some_of_the_children_break_each_constraint_that_moves_can_break(flanks: str) -> None:
    # Otherwise the test before this one would say nothing.
    for name, constraint in CONSTRAINTS.items():
        space, rng = space_of(name, flanks), np.random.default_rng(0)
        parents = space._parents(parents_of(name, flanks))
        share = np.mean([space._allowed_near(changed(parents.rows, space, rng), parents, parents) for _ in range(8)])
        assert share > 0
        assert (share < 1) == bool(constraint.checked or constraint.motifs()), name


@settings(deadline=None, max_examples=30)
@given(name=st.sampled_from([name for name, one in CONSTRAINTS.items() if one.checked]), seed=SEEDS)
def test_genes_break_what_they_have_marked_bases_of(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Few letters, so that something is there twice.
    bases = rng.choice(4, (20, 110), p=[0.5, 0.3, 0.1, 0.1])
    for first, stop in ((0, 110), (14, 98)):
        whole = CONSTRAINTS[name].marked(bases, first, stop)[:, first:stop].any(axis=1)
        assert CONSTRAINTS[name].breaks(bases, first, stop).tolist() == whole.tolist()


def test_of_a_parent_that_is_not_permitted_children_are_judged_as_a_whole() -> None:
    space = CodonSpace("KKEFKKEF", forbidden=["GAATTC"])
    rows = space._rows(["AAGAAGGAATTCAAGAAGGAATTT"])
    assert rows is not None
    for permitted in (True, False):
        parents = Parents(rows, np.array([permitted]))
        # A site that was there before is not where the fifth codon changes.
        child = rows.copy()
        child[0, 4] = space._rows(["AAAAAGGAATTCAAGAAGGAATTT"])[0, 0]
        assert space._allowed_near(child, parents, parents)[0] == permitted
    assert not space._parents(["AAGAAGGAATTCAAGAAGGAATTT"]).permitted[0]
    children = space.mutate(["AAGAAGGAATTCAAGAAGGAATTT"] * 20, np.random.default_rng(0))
    assert all(space.contains(child) for child in children)


def test_moves_are_the_same_whether_parents_are_known_or_not() -> None:
    space = CodonSpace(
        PROTEIN, forbidden=["GANTC"], gc=(0.4, 0.6), constraints=[UniqueKmers(8), GCWindow(30, 0.3, 0.7)]
    )
    parents = space.sample_individuals(20, np.random.default_rng(1))
    again = pickle.loads(pickle.dumps(space))
    assert parents[0] in space._permitted_genes
    assert parents[0] not in again._permitted_genes
    for move in ("mutate", "cross"):
        arguments = [parents] if move == "mutate" else [parents[:10], parents[10:]]
        found = [getattr(one, move)(*arguments, np.random.default_rng(2)) for one in (space, again)]
        assert found[0] == found[1]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text("ACGTRYN", min_size=1, max_size=6), min_size=1, max_size=5),
    st.lists(st.text("ACGT", min_size=12, max_size=12), min_size=1, max_size=4),
)
def test_motifs_are_found_where_regular_expressions_find_them(motifs: list[str], genes: list[str]) -> None:
    found = MotifSearch(motifs).found(np.array([[BASES.index(base) for base in gene] for gene in genes]))
    expected = [
        (row, match.start(), len(motif))
        for row, gene in enumerate(genes)
        for motif in motifs
        for match in re.finditer("(?=" + "".join(f"[{AMBIGUITY[letter]}]" for letter in motif) + ")", gene)
    ]
    places = zip(found.rows.tolist(), found.starts.tolist(), found.lengths.tolist(), strict=True)
    assert sorted(places) == sorted(expected)


def test_windows_hold_every_stretch_that_is_new_and_little_else() -> None:
    changes = Changes(np.array([30, 0, 40, 90, 50]), np.array([32, 2, 20, 98, 58]))
    found = {}
    for rows, begin, width in changes.windows(10, 0, 100):
        found |= {int(row): (int(one), int(one) + width) for row, one in zip(rows, begin, strict=True)}
    # Of the third, whose ends meet in what is the same in both parents, nothing is new.
    assert sorted(found) == [0, 1, 3, 4]
    for row, (low, high) in found.items():
        for start in range(91):
            if changes.begin[row] - 10 < start <= changes.end[row]:
                assert low <= start <= high - 10
        assert high - low <= 2 * (changes.end[row] - changes.begin[row] + 19)


def test_a_long_gene_of_many_constraints_is_looked_at_in_few_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    space = CodonSpace(PROTEIN * 12, constraints=SYNTHESIS[:4])
    parents = space._parents(space.sample_individuals(10, np.random.default_rng(0)))
    children = space._changed(parents.rows, np.random.default_rng(1))
    seen = []
    real = MotifSearch.found
    monkeypatch.setattr(MotifSearch, "found", lambda self, bases: (seen.append(bases.size), real(self, bases))[1])
    space._allowed_near(children, parents, parents)
    assert 0 < sum(seen) <= 10 * (3 + 2 * 20)
