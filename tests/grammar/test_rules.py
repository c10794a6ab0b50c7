"""Parse trees as sequences of rules, against nltk's trees."""

from __future__ import annotations

import pickle

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.grammar import ParseTree, Rules, Sampler, load_grammar

ARITHMETIC = Rules.of(load_grammar("arithmetic"))
SAMPLER = Sampler(ARITHMETIC, 40)


def random_tree(seed: int) -> ParseTree:
    return SAMPLER.tree(ARITHMETIC.start, 1, 40, np.random.default_rng(seed))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_leaves_and_subtrees_are_those_of_nltk(seed: int) -> None:
    tree = random_tree(seed)
    expected = ARITHMETIC.to_nltk(tree)
    grammar = load_grammar("arithmetic")
    assert all(production in grammar.productions() for production in expected.productions())
    assert list(ARITHMETIC.terminals_of(tree)) == expected.leaves()
    heads, ends, lengths = ARITHMETIC.subtrees(tree)
    nodes = list(expected.subtrees())
    assert [ARITHMETIC.names[head] for head in heads] == [node.label() for node in nodes]
    assert lengths == [len(node.leaves()) for node in nodes]
    for node, (start, end) in zip(nodes, enumerate(ends), strict=True):
        assert list(ARITHMETIC.terminals_of(ParseTree(tree.rules[start:end]))) == node.leaves()


def test_trees_are_immutable_hashable_and_survive_pickling_however_deep() -> None:
    deep = ParseTree((0,) * 50_000 + (3, 7) + (7,) * 50_000)
    assert pickle.loads(pickle.dumps(deep)) == deep
    assert hash(deep) == hash(ParseTree(tuple(deep.rules)))
    assert len(ARITHMETIC.terminals_of(deep)) == 100_001
    assert ARITHMETIC.subtrees(deep).lengths[0] == 100_001
    with pytest.raises(AttributeError):
        deep.rules = ()  # type: ignore[misc]


def test_empty_terminals_produce_nothing() -> None:
    rules = Rules.of(nltk.CFG.fromstring("S -> 'a' '' S | ''"))
    assert rules.terminals_of(ParseTree((0, 1))) == ("a",)
    assert rules.terminals == ("a",)


def test_grammars_that_are_no_grammars_are_refused() -> None:
    with pytest.raises(InputError, match="rule 1: no rule defines T"):
        Rules.of(nltk.CFG.fromstring("S -> 'a' T"))
    start = nltk.Nonterminal("S")
    with pytest.raises(InputError, match="rule 1: the terminal 5 is not a str"):
        Rules.of(nltk.CFG(start, [nltk.Production(start, [5])]))
    with pytest.raises(InputError, match="no rule defines the start symbol S"):
        Rules.of(nltk.CFG(start, [nltk.Production(nltk.Nonterminal("T"), ["a"])]))
