"""The sampler: its distribution by enumeration, its limits, and that it ends."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import CFG
from scipy import stats

from seqopt.errors import InputError
from seqopt.grammar import ParseTree, Rules, Sampler, load_grammar
from seqopt.grammar.lengths import YieldLengths, differences, interval, runs, sums

SMALL = [
    "S -> S '+' T | T\nT -> 'x' | '(' S ')'",
    "S -> 'a' S 'b' S | ",
    "S -> A B | 'c'\nA -> 'a' A | \nB -> 'b' B | 'b'",
]


def rules_of(text: str) -> Rules:
    return Rules.of(CFG.fromstring(text))


def as_set(bits: int) -> set[int]:
    return {length for length in range(bits.bit_length()) if bits >> length & 1}


@given(st.integers(0, 2**12 - 1), st.integers(0, 2**12 - 1))
def test_sets_of_lengths_as_integers(a: int, b: int) -> None:
    assert as_set(sums(a, b, 15)) == {i + j for i in as_set(a) for j in as_set(b) if i + j <= 15}
    assert as_set(differences(a, b)) == {i - j for i in as_set(a) for j in as_set(b) if i >= j}
    assert as_set(a) == {first + step for first, count in runs(a) for step in range(count)}
    assert as_set(interval(-3, 2)) == {0, 1, 2}
    assert interval(2, 1) == 0


@pytest.mark.parametrize("text", SMALL)
def test_lengths_are_those_of_enumeration(text: str, enumeration) -> None:
    rules = rules_of(text)
    found = {len(string) for _, string in enumeration.derivations(rules, 7, 20)}
    assert as_set(YieldLengths(rules, 7).symbols[rules.start]) == found


@pytest.mark.parametrize("text", SMALL)
@pytest.mark.parametrize("limits", [(1, 5), (4, 6), (5, 5)])
@pytest.mark.parametrize("discount", [0.1, 0.5, 1.0])
def test_the_distribution_is_that_of_enumeration(
    text: str, limits: tuple[int, int], discount: float, enumeration
) -> None:
    rules = rules_of(text)
    within = [taken for taken, string in enumeration.derivations(rules, limits[1], 20) if len(string) >= limits[0]]
    exact = np.array([enumeration.probability(rules, taken, within, discount) for taken in within])
    if not within:
        with pytest.raises(InputError, match="produces no string"):
            Sampler(rules, 9, discount=discount).tree(rules.start, *limits, np.random.default_rng(0))
        return
    assert exact.sum() == pytest.approx(1)
    sampler, rng = Sampler(rules, 9, discount=discount), np.random.default_rng(1)
    counts = Counter(sampler.tree(rules.start, *limits, rng).rules for _ in range(2000))
    assert set(counts) <= set(within)
    likely = exact * 2000 >= 5
    observed = np.array([counts[taken] for taken in within])
    expected = exact * 2000
    if not likely.all():
        observed = np.append(observed[likely], observed[~likely].sum())
        expected = np.append(expected[likely], expected[~likely].sum())
    if len(expected) > 1:
        assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def test_unlimited_samples_follow_the_published_weights() -> None:
    """One symbol, two rules: after k uses of the first, it is taken again with probability c^k / (c^k + 1)."""
    rules = rules_of("S -> 'a' S | 'b'")
    sampler, rng = Sampler(rules, 200), np.random.default_rng(0)
    lengths = Counter(len(sampler.tree(rules.start, 1, 200, rng).rules) - 1 for _ in range(4000))
    going_on = [0.1**k / (0.1**k + 1) for k in range(5)]
    exact = [np.prod(going_on[:k]) * (1 - going_on[k]) for k in range(4)]
    observed = np.array([lengths[k] for k in range(3)] + [sum(lengths[k] for k in lengths if k > 2)])
    expected = 4000 * np.array([*exact[:3], 1 - sum(exact[:3])])
    # The last class is rare: compare it with its own standard error.
    assert (np.abs(observed - expected) <= 5 * np.sqrt(expected) + 1).all()


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["arithmetic", "smiles", "regex"]),
    st.integers(1, 60),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
)
def test_samples_keep_to_the_limits_and_repeat_by_seed(name: str, lowest: int, more: int, seed: int) -> None:
    rules = Rules.of(load_grammar(name))
    sampler = Sampler(rules, lowest + more)
    if not sampler.can_produce(rules.start, lowest, lowest + more):
        return
    tree = sampler.tree(rules.start, lowest, lowest + more, np.random.default_rng(seed))
    assert lowest <= len(rules.terminals_of(tree)) <= lowest + more
    # A sampler that has been used before gives the same tree as a new one.
    assert Sampler(rules, lowest + more).tree(rules.start, lowest, lowest + more, np.random.default_rng(seed)) == tree


@pytest.mark.parametrize("discount", [0.1, 1.0])
def test_a_grammar_that_explodes_under_uniform_sampling_ends(discount: float) -> None:
    """Three in four expansions of S triple it, so unlimited uniform growth never ends with probability above 1/2."""
    rules = rules_of("S -> S S S | 'a' S S S | S S S 'b' | 'a'")
    sampler, rng = Sampler(rules, 50, discount=discount), np.random.default_rng(0)
    for _ in range(50):
        assert 20 <= len(rules.terminals_of(sampler.tree(rules.start, 20, 50, rng))) <= 50


@pytest.mark.parametrize("text", ["S -> S S | S | 'a' | ", "A -> A E | B E\nB -> A E | 'b'\nE -> | 'e'"])
def test_cyclic_grammars_end(text: str) -> None:
    rules = rules_of(text)
    sampler, rng = Sampler(rules, 10, cyclic=True), np.random.default_rng(0)
    for _ in range(200):
        assert 4 <= len(rules.terminals_of(sampler.tree(rules.start, 4, 10, rng))) <= 10


def test_a_cycle_without_discount_is_reported_instead_of_growing_for_ever(monkeypatch) -> None:
    monkeypatch.setattr("seqopt.grammar.sampling.RESTARTS", 20)
    monkeypatch.setattr("seqopt.grammar.sampling.CYCLE_NODES", 0)
    rules = rules_of("S -> S S S | S S | 'a' | ")
    with pytest.raises(InputError, match="remove this cycle"):
        Sampler(rules, 3, discount=1, cyclic=True).tree(rules.start, 0, 3, np.random.default_rng(0))


def test_the_longest_branches_do_not_underflow() -> None:
    rules = rules_of("S -> 'a' S | 'b' S | 'c'")
    tree = Sampler(rules, 2000).tree(rules.start, 2000, 2000, np.random.default_rng(0))
    counts = Counter(tree.rules)
    assert len(tree.rules) == 2000
    # The discount makes each next choice favour the rule used less.
    assert abs(counts[0] - counts[1]) < 10


@pytest.mark.parametrize("discount", [0, -0.1, 1.5, float("nan")])
def test_discounts_lie_between_zero_and_one(discount: float) -> None:
    with pytest.raises(InputError, match="discount"):
        Sampler(rules_of("S -> 'a'"), 3, discount=discount)


def test_a_tree_of_another_head_is_grown_as_from_a_root() -> None:
    rules = Rules.of(load_grammar("arithmetic"))
    term = rules.names.index("T")
    tree = Sampler(rules, 5).tree(term, 1, 1, np.random.default_rng(0))
    assert isinstance(tree, ParseTree)
    assert rules.terminals_of(tree)[0] in "x123"
