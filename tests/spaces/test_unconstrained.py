"""Free strings: sizes, sampling, moves, membership, errors."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seqopt.errors import InputError
from seqopt.spaces import StringSpace

SEEDS = st.integers(0, 2**32 - 1)
BOUNDS = st.tuples(st.integers(1, 8), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
ALPHABETS = st.lists(st.sampled_from("abcxyz01"), min_size=1, max_size=6, unique=True).map("".join)


def oddly(string: str) -> bool:
    """A predicate that about half of the strings meet."""
    return sum(map(ord, string)) % 2 == 0


@settings(deadline=None, max_examples=150)
@given(ALPHABETS, BOUNDS, SEEDS)
def test_samples_and_children_lie_in_the_space(alphabet: str, bounds: tuple[int, int], seed: int) -> None:
    space = StringSpace(alphabet, min_length=bounds[0], max_length=bounds[1])

    def inside(strings: list[str]) -> bool:
        return all(bounds[0] <= len(s) <= bounds[1] and set(s) <= set(alphabet) for s in strings)

    def everything(rng: np.random.Generator) -> list[list[str]]:
        first, second = space.sample_individuals(12, rng), space.sample_individuals(12, rng)
        children = space.cross(first, second, rng)
        return [first, second, space.mutate(first, rng), *children, space.sample(9, rng)]

    found = everything(np.random.default_rng(seed))
    assert all(inside(strings) for strings in found)
    assert [len(strings) for strings in found] == [12, 12, 12, 12, 12, min(9, space.size)]
    assert found == everything(np.random.default_rng(seed))
    assert len(set(found[-1])) == len(found[-1])
    assert all(space.from_string(space.to_string(s)) == s for strings in found for s in strings)


@settings(deadline=None, max_examples=60)
@given(BOUNDS, SEEDS)
def test_children_swap_prefixes_of_their_parents(bounds: tuple[int, int], seed: int) -> None:
    space = StringSpace("abcd", min_length=bounds[0], max_length=bounds[1])
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(10, rng), space.sample_individuals(10, rng)
    for a, b, c, d in zip(first, second, *space.cross(first, second, rng), strict=True):
        swaps = {(b[:cut] + a[cut:], a[:cut] + b[cut:]) for cut in range(min(len(a), len(b)) + 1)}
        assert (c, d) in swaps


def test_every_inner_cut_is_as_likely() -> None:
    space = StringSpace("ab", 5)
    children, _ = space.cross(["aaaaa"] * 4000, ["bbbbb"] * 4000, np.random.default_rng(0))
    counts = Counter(children)
    assert set(counts) == {"baaaa", "bbaaa", "bbbaa", "bbbba"}
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_mutation_samples_a_uniform_position_uniformly() -> None:
    space = StringSpace("abc", 4)
    counts = Counter(space.mutate(["aaaa"] * 6000, np.random.default_rng(0)))
    changed = {"aaaa"[:i] + letter + "aaaa"[i + 1 :] for i in range(4) for letter in "bc"}
    assert set(counts) == changed | {"aaaa"}
    # One symbol in three is the old one.
    expected = [6000 / 12] * 8 + [6000 / 3]
    assert chisquare([counts[s] for s in sorted(changed)] + [counts["aaaa"]], expected).pvalue > 1e-3


@pytest.mark.parametrize(
    ("parent", "shares"),
    [
        ("abab", {3: 1 / 3, 4: 1 / 3, 5: 1 / 3}),
        ("ababa", {4: 1 / 3, 5: 1 / 3, 6: 1 / 3}),
        ("ab", {2: 1 / 2, 3: 1 / 2}),
        ("ababab", {5: 1 / 2, 6: 1 / 2}),
    ],
)
def test_insertions_and_deletions_have_the_stated_probabilities(parent: str, shares: dict[int, float]) -> None:
    space = StringSpace("ab", min_length=2, max_length=6)
    children = space.mutate([parent] * 3000, np.random.default_rng(1))
    lengths = Counter(map(len, children))
    assert set(lengths) == set(shares)
    assert chisquare([lengths[n] for n in shares], [3000 * p for p in shares.values()]).pvalue > 1e-3


def test_an_insertion_or_a_deletion_changes_one_place() -> None:
    space = StringSpace("abcdef", min_length=3, max_length=7)
    for child in space.mutate(["abcde"] * 500, np.random.default_rng(2)):
        if len(child) == 6:
            assert any(child[:i] + child[i + 1 :] == "abcde" for i in range(6))
        elif len(child) == 4:
            assert any("abcde"[:i] + "abcde"[i + 1 :] == child for i in range(5))
        else:
            assert sum(x != y for x, y in zip(child, "abcde", strict=True)) <= 1


def test_insertions_and_deletions_are_as_likely_at_every_place() -> None:
    space = StringSpace("abcdz", min_length=3, max_length=5)
    counts = Counter(space.mutate(["abcd"] * 9000, np.random.default_rng(6)))
    insertions = [counts["abcd"[:gap] + "z" + "abcd"[gap:]] for gap in range(5)]
    deletions = [counts["abcd"[:index] + "abcd"[index + 1 :]] for index in range(4)]
    assert chisquare(insertions).pvalue > 1e-3
    assert chisquare(deletions).pvalue > 1e-3


@pytest.mark.parametrize(("alphabet", "low", "high"), [("01", 1, 5), ("xyz", 3, 3), ("a", 2, 6), ("abcd", 1, 3)])
def test_sizes_are_those_of_enumeration(alphabet: str, low: int, high: int) -> None:
    space = StringSpace(alphabet, min_length=low, max_length=high)
    strings = list(space.enumerate())
    assert len(strings) == len(set(strings)) == space.size
    assert all(map(space.contains, strings))
    assert set(space.sample(10 * space.size, np.random.default_rng(0))) == set(strings)
    assert space.log10_size == pytest.approx(np.log10(space.size))


def test_huge_sizes_are_exact() -> None:
    space = StringSpace("ACGT", 1000, kind="dna")
    assert space.size == 4**1000
    assert space.log10_size == pytest.approx(1000 * np.log10(4))
    with pytest.raises(InputError, match=r"10\^602\.06 strings"):
        space.enumerate()


def test_samples_are_uniform() -> None:
    space = StringSpace("abc", 3)
    counts = Counter(space.sample_individuals(8100, np.random.default_rng(3)))
    assert len(counts) == 27
    assert chisquare(list(counts.values())).pvalue > 1e-3
    rng = np.random.default_rng(4)
    distinct = Counter(string for _ in range(900) for string in space.sample(3, rng))
    assert chisquare([distinct[s] for s in space.enumerate()]).pvalue > 1e-3


def test_lengths_are_uniform() -> None:
    space = StringSpace("ab", min_length=2, max_length=6)
    counts = Counter(map(len, space.sample_individuals(5000, np.random.default_rng(5))))
    assert chisquare([counts[n] for n in range(2, 7)]).pvalue > 1e-3


@settings(deadline=None, max_examples=40)
@given(SEEDS)
def test_accept_narrows_sampling_and_moves(seed: int) -> None:
    space = StringSpace("abcd", min_length=3, max_length=8, accept=oddly)
    rng = np.random.default_rng(seed)
    first, second = space.sample_individuals(20, rng), space.sample(20, rng)
    for strings in (first, second, space.mutate(first, rng), *space.cross(first, second, rng)):
        assert all(map(oddly, strings))
        assert all(map(space.contains, strings))
    assert space.contains("aab")
    assert not space.contains("abb")


def test_what_accept_leaves_of_a_small_space_is_found_completely() -> None:
    rare = {"0110100110010110", "1111000011110000"}
    space = StringSpace("01", 16, accept=rare.__contains__)
    rng = np.random.default_rng(0)
    assert set(space.sample(5, rng)) == rare
    assert set(space.sample_individuals(5, rng)) <= rare
    # No neighbour is accepted, so parents are kept.
    assert set(space.mutate(sorted(rare), rng)) == rare


def test_nothing_accepted_is_an_error() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="the space is empty: none of its 16 strings"):
        StringSpace("01", 4, accept=lambda s: False).sample(3, rng)
    with pytest.raises(InputError, match="none of 2,000 random strings is accepted"):
        StringSpace("01", 60, accept=lambda s: False).sample_individuals(2, rng)


def test_too_few_distinct_strings_of_a_large_space_are_an_error() -> None:
    space = StringSpace("01", max_length=30, accept=lambda s: len(s) == 1)
    assert set(space.sample(2, np.random.default_rng(0))) == {"0", "1"}
    with pytest.raises(InputError, match="3 distinct strings were asked for, but 3,000 random ones hold only 2"):
        space.sample(3, np.random.default_rng(0))


def test_molecules_are_valid_and_told_apart_by_their_canonical_smiles() -> None:
    space = StringSpace("CO=", 3, kind="molecule")
    found = space.sample(1000, np.random.default_rng(0))
    keys = [space.key(string) for string in found]
    # Of C, O and double bonds: six chains of three atoms, and three double bonds.
    assert sorted(keys) == ["C=C", "C=O", "CCC", "CCO", "COC", "COO", "O=O", "OCO", "OOO"]
    assert space.contains("OCC")
    assert not space.contains("C==")
    assert space.key("OCC") == "CCO"
    assert space.encoder.encode(keys).lengths.max() == 3


def test_encoding_has_one_symbol_per_letter_of_a_closed_alphabet() -> None:
    space = StringSpace("10", 3)
    assert space.encoder.encode(["101", "000"]).tokens.tolist() == [[1, 2, 1], [2, 2, 2]]
    with pytest.raises(InputError, match="'2' is not in the alphabet"):
        space.encoder.encode(["102"])


def test_case_follows_the_kind() -> None:
    assert StringSpace("ACGT", 4, kind="dna").from_string(" acgt") == "ACGT"
    assert not StringSpace("ACGT", 4).contains("acgt")


@pytest.mark.parametrize("string", ["", "0\0" + "1", "01\0", "\0" * 3, "0 1", "0112"])
def test_odd_strings_are_outside(string: str) -> None:
    assert not StringSpace("01", min_length=1, max_length=3).contains(string)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("", 3), {}, "the alphabet: no symbols"),
        (("aba", 3), {}, "the alphabet: 'a' is repeated"),
        (("a b", 3), {}, "blank or an unprintable"),
        ((["a", ""], 3), {}, "'' is not a symbol"),
        ((["a", "bc"], 3), {}, "'bc' has more than one character; LocalSpace"),
        (("ab",), {}, "no length: give length"),
        (("ab", 3), {"max_length": 4}, "not both"),
        (("ab", 0), {}, "length is 0"),
        (("ab", 2.5), {}, r"length is 2\.5"),
        (("ab",), {"max_length": 4, "min_length": 0}, "min_length is 0"),
        (("ab",), {"max_length": 4, "min_length": 5}, "min_length is 5, above max_length, 4"),
        (("ab", 3), {"kind": "words"}, "unknown kind 'words'"),
        (("ACGZ", 3), {"kind": "dna"}, "'Z' is not a symbol of kind dna"),
        (("acgt", 3), {"kind": "dna"}, "'a' is not a symbol of kind dna: use capital letters"),
    ],
)
def test_bad_settings(arguments: tuple, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        StringSpace(*arguments, **options)


@pytest.mark.parametrize(
    ("string", "said"),
    [
        ("0121", "'2' at position 3 is not in the alphabet '01'"),
        ("0", "it has 1 symbols, not between 2 and 4"),
        ("01010", "it has 5 symbols, not between 2 and 4"),
        ("11", r"accept\(\) refuses it"),
    ],
)
def test_why_a_string_is_outside(string: str, said: str) -> None:
    space = StringSpace("01", min_length=2, max_length=4, accept=lambda s: s != "11")
    with pytest.raises(InputError, match=said):
        space.from_string(string)


def test_moves_refuse_what_is_outside() -> None:
    space = StringSpace("01", 3)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="'012' is not in the space: '2' at position 3"):
        space.mutate(["000", "012"], rng)
    with pytest.raises(InputError, match="2 first but 1 second"):
        space.cross(["000", "001"], ["000"], rng)
    with pytest.raises(InputError, match="n is -1"):
        space.sample(-1, rng)
    assert space.mutate([], rng) == []
    assert space.cross([], [], rng) == ([], [])
    assert space.sample(0, rng) == []
