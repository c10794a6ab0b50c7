"""How stretches of genes fold in their context: against sums over all structures."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
import RNA
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.objectives import (
    Accessibility,
    EnsembleFreeEnergy,
    MinimumFreeEnergy,
    OpeningEnergy,
    Window,
    WindowEnergy,
    check_genes,
    in_context,
    resolve_objective,
)
from seqopt.spaces import CodonSpace

RT = 1.98717e-3 * (273.15 + 37.0)
"""In kcal/mol, with the gas constant that ViennaRNA has."""

PAIRS = {"AU", "UA", "CG", "GC", "GU", "UG"}

strand = st.text("ACGU", min_size=6, max_size=13)


def structures(rna: str) -> Iterator[str]:
    """All structures in dot-bracket notation, without pseudo-knots, loops of at least three bases."""
    if len(rna) < 5:
        yield "." * len(rna)
        return
    for rest in structures(rna[1:]):
        yield "." + rest
    for close in range(4, len(rna)):
        if rna[0] + rna[close] in PAIRS:
            for inner in structures(rna[1:close]):
                for rest in structures(rna[close + 1 :]):
                    yield f"({inner}){rest}"


def weights(rna: str) -> dict[str, float]:
    """Boltzmann weight of each structure."""
    folded = RNA.fold_compound(rna)
    return {structure: math.exp(-folded.eval_structure(structure) / RT) for structure in structures(rna)}


class Unsmoothed(RNA.md):
    """The partition function takes the same energies of dangling ends as the evaluation of a structure does.

    By default ViennaRNA makes them differentiable in the temperature, which changes them by some 0.02 kcal/mol.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pf_smooth = 0


@pytest.fixture(scope="module", autouse=True)
def _unsmoothed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RNA, "md", Unsmoothed)
        yield


@settings(max_examples=25, deadline=None)
@given(strand)
def test_the_ensemble_is_that_of_all_structures(rna: str) -> None:
    total = sum(weights(rna).values())
    assert EnsembleFreeEnergy()([rna])[0] == pytest.approx(-RT * math.log(total), abs=2e-4)
    assert EnsembleFreeEnergy()([rna])[0] <= MinimumFreeEnergy()([rna])[0] + 1e-4


@settings(max_examples=25, deadline=None)
@given(strand, st.data())
def test_accessibility_is_the_share_of_structures_that_leave_the_window_open(rna: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(rna)))
    last = data.draw(st.integers(first, len(rna)))
    found = weights(rna)
    open_ones = sum(weight for structure, weight in found.items() if set(structure[first - 1 : last]) == {"."})
    share = open_ones / sum(found.values())
    assert Accessibility(Window(first, last))([rna])[0] == pytest.approx(share, rel=1e-4, abs=1e-6)
    assert OpeningEnergy(Window(first, last))([rna])[0] == pytest.approx(-RT * math.log(share), abs=1e-3)


def test_one_base_is_open_as_often_as_its_pairs_leave_it() -> None:
    rna = "".join(np.random.default_rng(3).choice(list("ACGU"), 90))
    folded = RNA.fold_compound(rna, RNA.md())
    folded.pf()
    paired = np.array(folded.bpp())[1:, 1:]
    for base in (1, 30, 77):
        probability = 1 - (paired[base - 1].sum() + paired[:, base - 1].sum())
        assert Accessibility(Window(base, base))([rna])[0] == pytest.approx(probability, abs=1e-4)


def test_what_stands_before_and_behind_counts_and_only_so_far_as_it_reaches() -> None:
    gene, before, behind = "AUGAAAGGGCCC", "GGGAAAACC", "CCUUUUGG"
    whole = before + gene + behind
    window = {"upstream": before, "downstream": behind}
    begin = len(before) - 4
    assert Accessibility(Window(-4, 6), **window)([gene]) == pytest.approx(
        Accessibility(Window(begin + 1, begin + 10))([whole]), rel=1e-5
    )
    near = Accessibility(Window(-4, 6), **window, reach=2)([gene])
    assert near == pytest.approx(Accessibility(Window(3, 12))([whole[begin - 2 : begin + 12]]), rel=1e-5)
    assert WindowEnergy(Window(-4, 6), **window)([gene]) == MinimumFreeEnergy()([whole[begin : begin + 10]])
    assert WindowEnergy(Window(-9, None), **window)([gene]) == MinimumFreeEnergy()([before + gene])
    assert WindowEnergy(Window(10, 15), **window)([gene]) == MinimumFreeEnergy()([whole[18:24]])
    assert WindowEnergy()([gene]) == MinimumFreeEnergy()([gene])
    # DNA letters of either case are the same gene.
    assert Accessibility(Window(-4, 6), **window)([gene.lower().replace("u", "t")]) == Accessibility(
        Window(-4, 6), **window
    )([gene])


def test_open_strands_cost_nothing_and_heat_opens() -> None:
    assert OpeningEnergy(Window(1, 20))(["A" * 20]).tolist() == [0.0]
    assert Accessibility(Window(1, 20))(["A" * 20]).tolist() == [1.0]
    hairpin = ["GGGGGAAAACCCCC"]
    cold, warm = (Accessibility(Window(1, 5), temperature=degrees)(hairpin)[0] for degrees in (37.0, 70.0))
    assert cold < warm


def test_names_say_window_and_context() -> None:
    objective = resolve_objective("opening_energy:-4..6,upstream=GGGAAAACC,reach=30")
    assert (objective.direction, objective.unit, objective.applies_to("rna")) == ("minimize", "kcal/mol", True)
    assert objective.function == OpeningEnergy(Window(-4, 6), "GGGAAAACC", reach=30)
    assert resolve_objective("accessibility:1..9").direction == "maximize"
    assert resolve_objective("mfe:2..end,temperature=25").function == WindowEnergy(Window(2, None), temperature=25.0)
    assert resolve_objective("mfe").function == MinimumFreeEnergy()
    assert resolve_objective("ensemble_energy").function == EnsembleFreeEnergy()
    assert pickle.loads(pickle.dumps(objective.function)) == objective.function


def test_genes_of_a_design_bring_their_context() -> None:
    placed = in_context(resolve_objective("accessibility:-3..3"), "AGGAGG", "")
    assert placed.function == Accessibility(Window(-3, 3), "AGGAGG", "")
    check_genes(placed, CodonSpace("MKT"))
    assert in_context(resolve_objective("mfe"), "AGGAGG", "").function == MinimumFreeEnergy()
    assert in_context(resolve_objective("cai:e_coli"), "AGGAGG", "").name == "cai:e_coli"
    total = in_context(resolve_objective("mfe:-3..3 + gc"), "AGGAGG", "")
    assert total(["AUGAAA"])[0] == WindowEnergy(Window(-3, 3), "AGGAGG")(["AUGAAA"])[0] + 1 / 6
    with pytest.raises(InputError, match=r"AGG stands upstream of the gene, and --upstream that it is CCC"):
        in_context(resolve_objective("mfe:-3..3,upstream=AGG"), "CCC", "")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("accessibility", "needs an argument: write accessibility:FIRST..LAST"),
        ("mfe:", r"write mfe\[:FIRST..LAST\]"),
        ("mfe:0..5", "has a base 0"),
        ("mfe:9..5", "the window 9..5 ends before it begins"),
        ("mfe:5", "'5' is not a window: write FIRST..LAST"),
        ("accessibility:reach=3", "write its window, such as -15..20"),
        ("accessibility:1..3,reach=-1", "the reach around the window is -1"),
        ("accessibility:1..3,reach=x", "reach is 'x'; expected a number"),
        ("accessibility:1..3,upstream=AXG", "'X' at position 2 of what stands upstream"),
        ("accessibility:1..3,upstream=A,upstream=C", "upstream is given twice"),
        ("mfe:1..3,reach=3", "'reach=3' is not a setting of this score"),
        ("mfe:1..3,temperature=-300", "temperature must be above"),
    ],
)
def test_what_cannot_be_used_is_said(spec: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        resolve_objective(spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("mfe:1..10", r"ends at base 10, and the gene has 9"),
        ("mfe:-4..3", r"begins 4 bases before the gene, and 3 stand there: give what stands before"),
        ("gc + mfe:20..end", r"objective mfe:20..end: the window 20..end has no base in a gene of 9"),
        ("cai:e_coli", "no codon of the protein MWM counts"),
        ("log_cai:e_coli - gc", "objective log_cai:e_coli: no codon"),
    ],
)
def test_what_no_gene_has_is_refused_before_one_is_scored(spec: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_genes(in_context(resolve_objective(spec), "AGG", ""), CodonSpace("MWM"))
