"""Variants of a parent: as many as enumeration finds, drawn evenly, and never with more mutations than allowed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.errors import InputError
from seqopt.spaces import ParentSpace


def brute(parent: str, mutations: int, positions: list[int], letters: str) -> set[str]:
    choices = [
        sorted({*letters, letter}) if place in positions else [letter] for place, letter in enumerate(parent, start=1)
    ]
    strings = map("".join, product(*choices))
    return {string for string in strings if sum(a != b for a, b in zip(string, parent, strict=True)) <= mutations}


@pytest.mark.parametrize(
    ("parent", "mutations", "positions", "letters"),
    [
        ("MKVL", 2, [1, 2, 3, 4], "AV"),
        ("MKVL", 3, [1, 2, 4], "ACD"),
        ("AAAAA", 2, [2, 3, 5], "ACD"),
        ("M", 1, [1], "AC"),
    ],
)
def test_the_variants_are_those_of_enumeration_and_drawn_evenly(
    parent: str, mutations: int, positions: list[int], letters: str
) -> None:
    space = ParentSpace(parent, mutations, positions=positions, letters=letters)
    expected = brute(parent, mutations, positions, letters)
    listed = list(space.enumerate())
    assert set(listed) == expected
    assert space.size == len(listed) == len(expected)
    assert listed[0] == parent
    drawn = space.sample_individuals(200 * space.size, np.random.default_rng(1))
    assert chisquare([drawn.count(string) for string in listed]).pvalue > 1e-3


@given(st.text("ACDM", min_size=2, max_size=10), st.data())
@settings(deadline=None, max_examples=60)
def test_no_child_has_more_mutations_or_one_elsewhere(parent: str, data: st.DataObject) -> None:
    places = st.lists(st.integers(1, len(parent)), min_size=1, unique=True)
    positions = sorted(data.draw(places))
    mutations = data.draw(st.integers(1, len(positions)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    space = ParentSpace(parent, mutations, positions=positions)
    parents = space.sample_individuals(12, rng)
    for _ in range(3):
        children = [
            *space.mutate(parents, rng),
            *(one for side in space.cross(parents, parents[::-1], rng) for one in side),
        ]
        for child in [*parents, *children]:
            changed = [at for at, (a, b) in enumerate(zip(child, parent, strict=True), start=1) if a != b]
            assert len(changed) <= mutations
            assert set(changed) <= set(positions)
        assert all(child != before for child, before in zip(children, parents, strict=False))
        parents = children[:12]


def test_moves_reach_every_variant() -> None:
    space, rng = ParentSpace("MKVL", 2, positions="1-3", letters="ACD"), np.random.default_rng(0)
    population, seen = ["MKVL"] * 64, set()
    for _ in range(40):
        population = space.mutate(population, rng)
        seen |= set(population)
    assert seen == set(space.enumerate())


def test_wild_type_plus_three_of_a_whole_protein_is_counted() -> None:
    parent = "MKVLSTPEAG" * 25
    space = ParentSpace(parent, 3)
    n = 250
    assert space.size == 1 + n * 19 + n * (n - 1) // 2 * 19**2 + n * (n - 1) * (n - 2) // 6 * 19**3
    counts = np.bincount(space.distances(space.sample(2000, np.random.default_rng(0))), minlength=4)
    share = n * (n - 1) * (n - 2) // 6 * 19**3 / space.size
    assert abs(counts[3] / 2000 - share) < 4 * np.sqrt(share * (1 - share) / 2000)
    assert counts.sum() == 2000


def test_a_predicate_is_a_further_filter() -> None:
    space, rng = ParentSpace("MKVL", 2, accept=_without_proline), np.random.default_rng(0)
    parents = space.sample(200, rng)
    assert not any("P" in string for string in [*parents, *space.mutate(parents, rng)])


def _without_proline(string: str) -> bool:
    return "P" not in string


def test_why_a_string_is_outside_is_said() -> None:
    space = ParentSpace("MKVLS", 1, positions="2-4", letters="AVK")
    for string, message in {
        "MKVL": "it has 4 letters, and the parent 5",
        "AKVLS": "it has A at position 1, which may not change from M",
        "MRVLS": "it has R at position 2, where A, K, V are allowed",
        "MAALS": "it has 2 mutations, and at most 1 are allowed",
    }.items():
        with pytest.raises(InputError) as caught:
            space.from_string(string)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("",), {}, "the parent is empty"),
        (("MKXL",), {}, "the parent has 'X' at position 3, which is no amino acid"),
        (("MK*L",), {}, "'*' at position 3"),
        (("MKVL", 3), {"positions": "1,2"}, "mutations is 3, but only 2 positions may change"),
        (("MKVL", 0), {}, "mutations is 0; it must be an integer of at least 1"),
        (("MKVL", 1), {"positions": "3-5"}, "there is no position 5; the sequence has those from 1 to 4"),
        (("MKVL",), {"letters": {2: "AV"}}, "the letters of position 2, AV, are without K, which the parent has there"),
        (("MKVL",), {"letters": {2: "K"}}, "position 2 has K and no other letter"),
        (("MKVL",), {"letters": {2: "KB"}}, "position 2: 'B' is not a letter of kind protein"),
        (("MKVL",), {"positions": "1,2", "letters": {2: "KA"}}, "letters: those of position 1 are missing"),
        (("MKVL",), {"positions": "2", "letters": {2: "KA", 3: "V"}}, "letters: position 3 is not among the positions"),
        (("MKVL",), {"letters": "A1"}, "'1' is not a letter"),
        (("ACGN",), {"kind": "dna"}, "the parent has 'N' at position 4, which is no DNA base"),
        (("MKVL",), {"kind": "molecule"}, "are of sequences"),
    ],
)
def test_bad_input_is_named(arguments: tuple[object, ...], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ParentSpace(*arguments, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_variants_with_more_mutations_are_left_out_and_those_of_another_length_refused() -> None:
    space = ParentSpace("MKVLS", 2)
    assert space.left_out("MKVLS") is None
    assert space.left_out("MAAAS") == "it has 3 mutations, and at most 2 are allowed"
    with pytest.raises(InputError, match="MKVL"):
        space.left_out("MKVL")
