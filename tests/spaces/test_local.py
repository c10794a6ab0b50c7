"""Strings with a set of symbols per position."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.errors import InputError
from seqopt.spaces import LocalSpace
from seqopt.spaces.local import LocalTokenizer

SEEDS = st.integers(0, 2**32 - 1)
LETTERS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)
# Symbols of one length, and symbols of different lengths that may spell one string in several ways.
PAIRS = st.lists(st.sampled_from(["ab", "ba", "cc", "cd"]), min_size=1, max_size=4, unique=True)
MIXED = st.lists(st.sampled_from(["a", "b", "ab", "aa", "bab"]), min_size=1, max_size=4, unique=True)
CHOICES = st.one_of(*(st.lists(sets, min_size=1, max_size=5) for sets in (LETTERS, PAIRS, MIXED)))


@settings(deadline=None, max_examples=200)
@given(CHOICES, SEEDS)
def test_samples_and_children_lie_in_the_space(choices: list[list[str]], seed: int) -> None:
    space = LocalSpace(choices)
    every = {"".join(symbols) for symbols in product(*choices)}

    def everything(rng: np.random.Generator) -> list[list[str]]:
        first, second = space.sample_individuals(12, rng), space.sample_individuals(12, rng)
        return [first, second, space.mutate(first, rng), *space.cross(first, second, rng), space.sample(9, rng)]

    found = everything(np.random.default_rng(seed))
    assert all(set(strings) <= every for strings in found)
    assert [len(strings) for strings in found] == [12, 12, 12, 12, 12, min(9, len(every))]
    assert len(set(found[-1])) == len(found[-1])
    assert found == everything(np.random.default_rng(seed))
    assert all(map(space.contains, every))


@settings(deadline=None, max_examples=100)
@given(CHOICES)
def test_sizes_are_those_of_enumeration(choices: list[list[str]]) -> None:
    space = LocalSpace(choices)
    assert list(space.enumerate()) == ["".join(symbols) for symbols in product(*choices)]
    assert len(list(space.enumerate())) == space.size
    assert space.log10_size == pytest.approx(np.log10(space.size))


@settings(deadline=None, max_examples=100)
@given(CHOICES, st.text("abcd", max_size=8))
def test_membership_is_that_of_enumeration(choices: list[list[str]], string: str) -> None:
    space = LocalSpace(choices)
    assert space.contains(string) == (string in {"".join(symbols) for symbols in product(*choices)})


@settings(deadline=None, max_examples=100)
@given(st.lists(LETTERS, min_size=2, max_size=6), SEEDS)
def test_children_hold_parental_symbols_in_their_places(choices: list[list[str]], seed: int) -> None:
    space = LocalSpace(choices)
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(10, rng), space.sample_individuals(10, rng)
    for a, b, c, d in zip(first, second, *space.cross(first, second, rng), strict=True):
        assert (c, d) in {(b[:cut] + a[cut:], a[:cut] + b[cut:]) for cut in range(1, len(choices))}


def test_every_inner_cut_is_as_likely() -> None:
    space = LocalSpace([["a", "xx"]] * 5)
    children, _ = space.cross(["aaaaa"] * 4000, ["xx" * 5] * 4000, np.random.default_rng(0))
    counts = Counter(children)
    assert set(counts) == {"xxaaaa", "xxxxaaa", "xxxxxxaa", "xxxxxxxxa"}
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_samples_are_uniform() -> None:
    space = LocalSpace(["ab", ["xx", "y", "z"], "q", "01234"])
    counts = Counter(space.sample_individuals(6000, np.random.default_rng(0)))
    assert len(counts) == 30
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_mutation_samples_a_position_with_a_choice_uniformly_from_its_set() -> None:
    space = LocalSpace(["ab", "q", ["xx", "y", "z"]])
    counts = Counter(space.mutate(["aqxx"] * 6000, np.random.default_rng(0)))
    shares = {"aqxx": 1 / 4 + 1 / 6, "bqxx": 1 / 4, "aqy": 1 / 6, "aqz": 1 / 6}
    assert set(counts) == set(shares)
    assert chisquare([counts[s] for s in shares], [6000 * p for p in shares.values()]).pvalue > 1e-3


def test_without_a_choice_nothing_changes() -> None:
    space = LocalSpace(["a", "b"])
    rng = np.random.default_rng(0)
    assert space.mutate(["ab", "ab"], rng) == ["ab", "ab"]
    assert space.cross(["ab"], ["ab"], rng) == (["ab"], ["ab"])
    assert LocalSpace(["ab"]).cross(["a"], ["b"], rng) == (["a"], ["b"])


@settings(deadline=None, max_examples=30)
@given(SEEDS)
def test_accept_narrows_sampling_and_moves(seed: int) -> None:
    space = LocalSpace(["abc"] * 6, accept=lambda s: s.count("a") <= 2)
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(20, rng), space.sample(20, rng)
    for strings in (first, second, space.mutate(first, rng), *space.cross(first, second, rng)):
        assert all(s.count("a") <= 2 for s in strings)


def test_symbols_are_tokens() -> None:
    space = LocalSpace([["C", "CC"], ["Cl", "N"]])
    encoded = space.encoder.encode(["CCl", "CCN"])
    assert encoded.tokens.tolist() == [[1, 3], [2, 4]]
    assert LocalSpace(["ab", "bc"]).encoder.encode(["ab", "bb"]).tokens.tolist() == [[1, 2], [2, 2]]


@settings(deadline=None, max_examples=100)
@given(CHOICES, st.data())
def test_tokens_are_permitted_symbols_that_spell_the_string(choices: list[list[str]], data: st.DataObject) -> None:
    string = "".join(data.draw(st.sampled_from(symbols)) for symbols in choices)
    tokens = LocalTokenizer(choices).tokenize(string)
    assert "".join(tokens) == string
    assert all(token in symbols for token, symbols in zip(tokens, choices, strict=True))


def test_molecules_are_read_by_rdkit() -> None:
    space = LocalSpace([["C", "N"], ["", "=", "#"][1:], ["O", "C"]], kind="molecule")
    assert set(space.sample(20, np.random.default_rng(0))) <= {"C=O", "N=O", "C=C", "N=C", "C#C", "N#C"}
    assert not space.contains("C#O")


@pytest.mark.parametrize(
    ("choices", "options", "said"),
    [
        ([], {}, "at least one position"),
        (["ab", ""], {}, "position 2: no symbols"),
        (["ab", "aca"], {}, "position 2: 'a' is repeated"),
        ([["a", ""]], {}, "position 1: '' is not a symbol"),
        ([["a", "b c"]], {}, "position 1: 'b c' holds a blank"),
        ([["a", 3]], {}, "position 1: 3 is not a symbol"),
        (["ab"], {"kind": "words"}, "unknown kind"),
        (["A", "CQ"], {"kind": "rna"}, "position 2: 'Q' is not a symbol of kind rna"),
    ],
)
def test_bad_settings(choices: list, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LocalSpace(choices, **options)


@pytest.mark.parametrize(
    ("string", "said"),
    [
        ("abq", "position 3 of 3 takes c, d, but 'q' at letter 3"),
        ("ab", "position 3 of 3 takes c, d, but the string ends"),
        ("abcc", "letter 4, 'c', comes after the last of 3 positions"),
        ("abd", r"accept\(\) refuses it"),
    ],
)
def test_why_a_string_is_outside(string: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LocalSpace(["ab", "ab", "cd"], accept=lambda s: s != "abd").from_string(string)
