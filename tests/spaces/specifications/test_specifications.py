"""Constraints on genes, each against tests on strings; what cannot be used; what excludes each other."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.spaces import CodonSpace
from seqopt.spaces.specifications import (
    CONSTRAINTS,
    SIGNALS,
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
    cuts_of,
    parse_constraint,
    restriction_sites,
    site_of,
)
from seqopt.strings.genetic_codes import genetic_code
from seqopt.utils.config import from_config

PROTEIN = "MKKGRSE"
FLANKS = st.text("ACGT", max_size=9)


def other_strand(gene: str) -> str:
    return gene[::-1].translate(str.maketrans("ACGT", "TGCA"))


def genes_of(protein: str) -> list[str]:
    return list(map("".join, product(*(genetic_code(1).synonyms[residue] for residue in protein))))


def touches(begin: int, width: int, before: str, gene: str) -> bool:
    return begin + width > len(before) and begin < len(before) + len(gene)


def windows_ok(before: str, gene: str, behind: str) -> bool:
    return all(0.25 <= sum(map(gene[i : i + 8].count, "GC")) / 8 <= 0.625 for i in range(len(gene) - 7))


def run_ok(before: str, gene: str, behind: str) -> bool:
    whole = before + gene + behind
    return not any(
        touches(match.start(), 4, before, gene) for match in re.finditer(r"(?=(AAAA|CCCC|GGGG|TTTT))", whole)
    )


def tandem_ok(before: str, gene: str, behind: str) -> bool:
    whole = before + gene + behind
    return not any(
        whole[i : i + 2] * 3 == whole[i : i + 6] and touches(i, 6, before, gene) for i in range(len(whole) - 5)
    )


def unique_ok(before: str, gene: str, behind: str) -> bool:
    whole, k = before + gene + behind, 5
    for i in range(len(whole) - k + 1):
        for j in range(i + 1, len(whole) - k + 1):
            first, second = whole[i : i + k], whole[j : j + k]
            same = first in (second, other_strand(second))
            if same and (touches(i, k, before, gene) or touches(j, k, before, gene)):
                return False
    return True


def hairpin_ok(before: str, gene: str, behind: str) -> bool:
    whole, stem, window = before + gene + behind, 4, 14
    for i in range(len(whole) - stem + 1):
        for j in range(i + stem + 3, min(i + window - stem, len(whole) - stem) + 1):
            if whole[j : j + stem] == other_strand(whole[i : i + stem]) and (
                touches(i, stem, before, gene) or touches(j, stem, before, gene)
            ):
                return False
    return True


def signal_ok(before: str, gene: str, behind: str) -> bool:
    whole = before + gene + behind
    return not any(touches(match.start(), 6, before, gene) for match in re.finditer("(?=AATAAA|ATTAAA)", whole))


def fixed_ok(before: str, gene: str, behind: str) -> bool:
    return gene[3:6] == "AAG" and gene[6:8] == "AA"


def rare_ok(before: str, gene: str, behind: str) -> bool:
    return all(gene[i : i + 3] not in ("AGA", "AGG", "CGA") for i in range(0, len(gene), 3))


CASES: list[tuple[Specification, object]] = [
    (GCWindow(8, 0.25, 0.625), windows_ok),
    (LongestRun(3), run_ok),
    (TandemRepeats(2, 3), tandem_ok),
    (UniqueKmers(5), unique_ok),
    (Hairpins(4, 14), hairpin_ok),
    (ForbiddenSignal("poly-a"), signal_ok),
    (FixedStretch(2, "AAGAAN"), fixed_ok),
    (NoRareCodons("e_coli", 0.09), rare_ok),
]


@settings(deadline=None, max_examples=2)
@pytest.mark.parametrize(("constraint", "keeps"), CASES, ids=lambda case: type(case).__name__)
@given(before=FLANKS, behind=FLANKS)
def test_what_is_left_is_what_the_words_say(constraint: Specification, keeps, before: str, behind: str) -> None:
    everything = genes_of(PROTEIN)
    expected = {gene for gene in everything if keeps(before, gene, behind)}
    if not expected:
        with pytest.raises(InputError, match="no gene"):
            CodonSpace(PROTEIN, constraints=[constraint], upstream=before, downstream=behind)
        return
    space = CodonSpace(PROTEIN, constraints=[constraint], upstream=before, downstream=behind)
    rows = space._rows([gene for gene in everything if space._rows([gene]) is not None])
    assert rows is not None
    allowed = space._allowed(rows)
    assert {gene for gene, good in zip(space._strings(rows), allowed.tolist(), strict=True) if good} == expected
    assert set(space.sample(6, np.random.default_rng(0))) <= expected
    parents = space.sample_individuals(6, np.random.default_rng(1))
    assert set(space.mutate(parents, np.random.default_rng(2))) <= expected
    # What a broken gene is held against, every permitted gene meets, and the gene does not.
    broken = sorted(set(everything) - expected)[:3] if constraint.checked else []
    for gene in broken:
        cuts = cuts_of(space.frame, [constraint], gene)
        assert cuts
        for cut in cuts:
            assert not cut.low <= weight(cut, gene) <= cut.high
            assert all(cut.low <= weight(cut, other) <= cut.high for other in sorted(expected)[:200])
        with pytest.raises(InputError, match="is not in the space"):
            space.from_string(gene)


def weight(cut, gene: str) -> float:
    return sum(codons.get(gene[3 * place : 3 * place + 3], 0.0) for place, codons in cut.codons.items())


def test_a_site_across_the_junction_is_seen() -> None:
    assert CodonSpace("EF").contains("GAATTC")
    space = CodonSpace("FK", upstream="CCGAA", forbidden=["EcoRI"], both_strands=True)
    assert not space.contains("TTCAAA")
    assert space.contains("TTTAAA")
    with pytest.raises(InputError, match="it holds 'GAATTC', 3 bases before its beginning"):
        space.from_string("TTCAAA")
    behind = CodonSpace("KE", downstream="UUC", forbidden=["GAATTC"])
    assert {gene for gene in genes_of("KE") if not behind.contains(gene)} == {"AAAGAA", "AAGGAA"}
    # What the flanks hold by themselves is not for the gene to avoid.
    assert CodonSpace("KE", upstream="GAATTC", downstream="GAATTC", forbidden=["GAATTC"]).size == 4


def test_melting_temperatures_are_those_of_the_nearest_neighbour_model() -> None:
    # By hand for ATGCATGC at 0.25 uM and 50 mM Na+: stacks AT TG GC CA AT TG GC.
    enthalpy = -7.2 - 8.5 - 9.8 - 8.5 - 7.2 - 8.5 - 9.8 + 2.3 + 0.1
    entropy = -20.4 - 22.7 - 24.4 - 22.7 - 20.4 - 22.7 - 24.4 + 4.1 - 2.8 + 0.368 * 7 * math.log(0.05)
    expected = 1000 * enthalpy / (entropy + 1.987 * math.log(0.25e-6 / 4)) - 273.15
    bases = np.array([["TCAG".index(base) for base in "ATGCATGC"]])
    ends = EndMelting(8, 0, 60)
    assert ends.temperatures(bases)[0] == pytest.approx(expected)
    space = CodonSpace("MKKGRSEKL", constraints=[EndMelting(12, 35, 45)])
    sample = space.sample(30, np.random.default_rng(0))
    for gene in sample:
        for end in (gene[:12], gene[-12:]):
            numbers = np.array([["TCAG".index(base) for base in end]])
            assert 35 <= ends.temperatures(numbers)[0] <= 45


def test_sites_by_name_are_motifs() -> None:
    sites = restriction_sites()
    assert len(sites) > 180
    assert (sites["EcoRI"], sites["BsaI"], sites["SfiI"]) == ("GAATTC", "GGTCTC", "GGCCNNNNNGGCC")
    assert all(site_of(site) == site for site in sites.values())
    assert site_of(" ecorv ") == "GATATC"
    # A name that could be read as a motif would be ambiguous.
    assert not any(set(name.upper()) <= set("ACGTRYSWKMBDHVN") for name in sites)
    space = CodonSpace("MGLEF", forbidden=["xhoI"], both_strands=True)
    assert space.forbidden == ("CTCGAG",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gc-window 50 0.3 0.7", GCWindow(50, 0.3, 0.7)),
        ("Longest-Run 5", LongestRun(5)),
        ("longest-run 4 GC", LongestRun(4, "GC")),
        ("tandem 3 4", TandemRepeats(3, 4)),
        ("unique-kmers 12", UniqueKmers(12)),
        ("hairpins 10 60", Hairpins(10, 60)),
        ("end-melting 18 50 60", EndMelting(18, 50, 60)),
        ("no-rare human 0.1", NoRareCodons("human", 0.1)),
        ("fixed 2 CAYCAC", FixedStretch(2, "CAYCAC")),
        ("signal splice-donor", ForbiddenSignal("splice-donor")),
        ("avoid bsmbi", ForbiddenMotif("CGTCTC")),
        ("avoid-one-strand GGWCC", ForbiddenMotif("GGWCC", both_strands=False)),
    ],
)
def test_constraints_are_typed_and_written_down(text: str, expected: Specification) -> None:
    (constraint,) = parse_constraint(text)
    assert constraint.config() == expected.config()
    again = from_config(json.loads(json.dumps(constraint.config())))
    assert (again.text, type(again)) == (expected.text, type(expected))
    assert {form.split()[0] for form in CONSTRAINTS} == set(CONSTRAINTS)


def test_a_space_with_constraints_is_made_again() -> None:
    space = CodonSpace("MKKGRSE", constraints=parse_constraint("synthesis")[:2], upstream="ATTA", downstream="CC")
    again = from_config(json.loads(json.dumps(space.config())))
    assert again.config() == space.config()
    assert "constraints" not in CodonSpace("MK").config()
    assert "upstream" not in CodonSpace("MK").config()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unknown constraint ''"),
        ("gc-windw 50 0.3 0.7", "did you mean 'gc-window'"),
        ("gc-window 50 0.3", "2 words after gc-window; write gc-window BASES LOW HIGH"),
        ("gc-window fifty 0.3 0.7", "BASES is 'fifty'; expected an integer"),
        ("gc-window 50 0.3 x", "HIGH is 'x'; expected a number"),
        ("gc-window 50 0.7 0.3", "two fractions in order"),
        ("gc-window 10 0.51 0.59", "no number of G and C out of 10 bases"),
        ("longest-run 0", "the longest run is 0"),
        ("longest-run 4 N", "single bases"),
        ("tandem 4 3", "expected 2 or 3"),
        ("tandem 2 1", "the number of repetitions is 1"),
        ("unique-kmers 40", "from 4 to 31"),
        ("hairpins 10 20", "expected at least 23"),
        ("end-melting 4 50 60", "at least 8"),
        ("end-melting 20 60 50", "two numbers in order"),
        ("no-rare martian 0.1", "there is no codon usage of 'martian'"),
        ("no-rare human 2", "a number from 0 to 1"),
        ("fixed 0 AAA", "begins at codon 0"),
        ("fixed 2 AAAA", "give three for each codon"),
        ("signal smoke", f"unknown signal 'smoke': choose {', '.join(SIGNALS)}"),
        ("avoid XyzI", "neither an enzyme of the list nor a motif"),
        ("avoid EcoR1", "did you mean EcoRI?"),
        ("avoid Bsa1", "did you mean BsaI?"),
        ("avoid BamHl", "did you mean BamHI?"),
        ("avoid GAXTC", "'X' at position 3"),
    ],
)
def test_constraints_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        parse_constraint(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constraints": [GCWindow(50, 0.3, 0.7)]}, "the window of GC content is 50 bases, and the gene has 12"),
        ({"constraints": [UniqueKmers(20)]}, "longer than the gene, which has 12"),
        ({"constraints": [EndMelting(20, 50, 60)]}, "an end of 20 bases is longer than the gene"),
        ({"constraints": [Hairpins(8, 30)]}, "longer than the gene"),
        ({"constraints": [FixedStretch(4, "AAAAAA")]}, "would end at codon 5, and the gene has 4"),
        ({"constraints": [FixedStretch(2, "TTT")]}, "codon 2 of the gene cannot be TTT: K has AAA, AAG"),
        ({"constraints": "gc-window"}, "give a list"),
        ({"constraints": ["gc-window 5 0 1"]}, "is not a constraint"),
        ({"upstream": "ACGN"}, "'N' at position 4 of what stands upstream of the gene (--upstream) is not a base"),
        ({"downstream": "AXG"}, "'X' at position 2 of what stands downstream"),
        (
            {"constraints": [FixedStretch(2, "AAA"), LongestRun(5), FixedStretch(3, "AAA")]},
            "no gene meets all of them: codon 2 AAA, no run of more than 5 of one base, codon 3 AAA",
        ),
        (
            {"constraints": [GCWindow(6, 0.5, 1), LongestRun(4)], "forbidden": ["GGGG"]},
            "no gene of this protein keeps to this constraint: GC content 0.5 to 1 in every window of 6 bases",
        ),
        (
            {"constraints": [FixedStretch(4, "AGA"), NoRareCodons("e_coli", 0.1), LongestRun(6)]},
            "no gene meets all of them: codon 4 AGA, no codon of a share below 0.1 in e_coli",
        ),
    ],
)
def test_what_does_not_fit_the_genes_is_named(options: dict, said: str) -> None:
    with pytest.raises(InputError) as error:
        CodonSpace("MKKR", **options)
    assert said in str(error.value)
    assert "6 of one base" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"forbidden": ["TCATG"], "upstream": "ACGGGTC"},
            r"no gene can avoid the motif 'TCATG' behind the bases ACGGGTC \(--upstream\): every gene holds it by the "
            r"end of codon 1 \(M\)$",
        ),
        (
            {"forbidden": ["AAACTG", "AAGCTG", "GAATTC"], "upstream": "GGTA", "downstream": "CTG"},
            r"exclude each other.*: without AAACTG, without AAGCTG, before the bases CTG \(--downstream\)$",
        ),
        (
            {"forbidden": ["CTGATG"], "constraints": [LongestRun(3)], "upstream": "AC" * 20 + "CTG"},
            r"behind the bases \.\.\.CACACACACACACACACCTG \(--upstream\)",
        ),
        # What stands beside the genes is not named where it has no part in it.
        (
            {"forbidden": ["ATGAAA", "ATGAAG"], "upstream": "GGTA", "downstream": "CTG"},
            r": without ATGAAA, without ATGAAG$",
        ),
        ({"forbidden": ["ATG"], "upstream": "CC"}, r"avoid the motif 'ATG': every gene"),
    ],
)
def test_conflicts_name_what_stands_beside_the_genes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CodonSpace("MK", **options, both_strands=False)
