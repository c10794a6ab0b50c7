"""Spaces of templates hold what a regular expression matches, each string once, are drawn evenly, and moves stay."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.errors import InputError
from seqopt.spaces import TemplateSpace

TEMPLATES = ["A?A?C{1-2}", "[AC]{0-3}[CD]{0-2}A", "(AC){1-3}C?[AC]{0-2}", "CA[CD]x{0-2}D?", "(A[CD]){0-2}AC"]


def brute(template: str, longest: int) -> list[str]:
    pattern = re.compile(template.replace("-", ",").replace("x", "[ACD]"))
    strings = ("".join(letters) for length in range(longest + 1) for letters in product("ACD", repeat=length))
    return sorted(string for string in strings if pattern.fullmatch(string))


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_string_is_there_once_however_it_can_be_read(template: str) -> None:
    space = TemplateSpace(template, letters="ACD")
    listed = list(space.enumerate())
    assert listed == brute(template, space.template.width) == sorted(set(listed))
    assert space.size == len(listed)
    assert sorted(space.sample(len(listed), np.random.default_rng(0))) == listed


@pytest.mark.parametrize("template", TEMPLATES)
def test_draws_are_even(template: str) -> None:
    space = TemplateSpace(template, letters="ACD")
    drawn = space.sample_individuals(200 * space.size, np.random.default_rng(1))
    counts = [drawn.count(string) for string in space.enumerate()]
    assert chisquare(counts).pvalue > 1e-3


PARTS = st.sampled_from(["A", "[CD]", "x", "C?", "x{0-3}", "A{1-2}", "(AC){0-2}", "([AD]C){1-2}", "[AC]{2-4}"])


@given(st.lists(PARTS, min_size=1, max_size=6), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_every_child_is_in_the_space(parts: list[str], seed: int) -> None:
    template, rng = "D" + "".join(parts), np.random.default_rng(seed)
    space = TemplateSpace(template, letters="ACD")
    pattern = re.compile(template.replace("-", ",").replace("x", "[ACD]"))
    parents = space.sample_individuals(16, rng)
    for _ in range(3):
        children = [
            *space.mutate(parents, rng),
            *(one for side in space.cross(parents, parents[::-1], rng) for one in side),
        ]
        assert all(pattern.fullmatch(child) for child in [*parents, *children])
        parents = children[:16]


def test_moves_reach_every_string() -> None:
    space, rng = TemplateSpace("C[AD]x{0-2}(AC){0-2}D?", letters="ACD"), np.random.default_rng(0)
    population, seen = space.sample_individuals(1, rng) * 64, set()
    for _ in range(60):
        population = space.mutate(population, rng)
        seen |= set(population)
    assert seen == set(space.enumerate())


def test_one_mutation_substitutes_inserts_or_deletes_one_repetition() -> None:
    space, rng = TemplateSpace("MKx{2-4}(GS){1-3}W"), np.random.default_rng(0)
    parents = space.sample_individuals(300, rng)
    steps = set()
    for parent, child in zip(parents, space.mutate(parents, rng), strict=True):
        assert child != parent
        if len(child) == len(parent):
            assert sum(a != b for a, b in zip(parent, child, strict=True)) == 1
        steps.add(len(child) - len(parent))
    assert steps == {-2, -1, 0, 1, 2}


def test_children_have_loops_between_those_of_their_parents() -> None:
    space, rng = TemplateSpace("Cx{2-8}W", letters="ACD"), np.random.default_rng(0)
    first, second = ["CAAAAAAAAW"] * 50, ["CDDDW"] * 50
    children = [child for side in space.cross(first, second, rng) for child in side]
    assert all(re.fullmatch("CA*D*W|CD*A*W", child) and 5 <= len(child) <= 10 for child in children)
    assert len({len(child) for child in children}) > 2


def test_large_spaces_are_counted_exactly() -> None:
    space = TemplateSpace("Cx{5-20}DY")
    # The only letters that can be read in two ways are none: the end is fixed, and so is the beginning.
    assert space.size == sum(20**length for length in range(5, 21))
    assert TemplateSpace("x{3-5}A?", letters="AC").size == sum(2**length for length in range(3, 6)) + 2**5


def test_a_predicate_is_a_further_filter() -> None:
    space, rng = (
        TemplateSpace("Mx{1-4}", letters="ACD", accept=lambda string: "A" not in string),
        np.random.default_rng(0),
    )
    parents = space.sample(20, rng)
    assert not any("A" in string for string in [*parents, *space.mutate(parents, rng)])
    with pytest.raises(InputError, match=r"accept\(\) refuses it"):
        space.from_string("MA")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parent": "MKT"}, "the parent 'MKT' is not in the space: T at position 3 does not fit the template"),
        ({"parent": "MKX"}, "the parent 'MKX' is not in the space: X at position 3"),
        ({"letters": "AB"}, "'B' is not a letter of kind protein"),
        ({"letters": "AA"}, "the letter 'A' is given twice"),
        ({"kind": "molecule"}, "a template is of sequences"),
    ],
)
def test_bad_input_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        TemplateSpace("MK[AV]x?", **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_strings_of_one_length_have_choices() -> None:
    assert TemplateSpace("MK[AV]").choices == (("M",), ("K",), ("A", "V"))
    assert TemplateSpace("MK[AV]?").choices is None
