"""Parsing: against nltk's chart parser, enumeration, and the stated order of trees."""

from __future__ import annotations

import random
from itertools import product

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.datasets import load_zinc250k
from seqopt.errors import InputError
from seqopt.grammar import Parser, ParseTree, Rules, Sampler, TerminalTokenizer, load_grammar

GRAMMARS = {
    "left": "S -> S '+' T | T\nT -> 'x' | '(' S ')'",
    "brackets": "S -> 'a' S 'b' S | ",
    "ambiguous": "S -> S S | 'a' | 'b'",
    "palindromes": "S -> 'a' S 'a' | 'b' S 'b' | 'a' | 'b' | ",
    "cyclic": "S -> S S | A | \nA -> S | 'a' B\nB -> 'b' | A",
    "nothing first": "S -> A B A 'a' | B B\nA -> | 'b'\nB -> 'a' | A 'a'",
    "hidden left recursion": "S -> A S 'b' | 'a'\nA -> | 'a'",
}


def parser_of(text: str) -> Parser:
    return Parser(Rules.of(nltk.CFG.fromstring(text)))


@pytest.mark.parametrize("text", GRAMMARS.values(), ids=GRAMMARS)
def test_every_short_string_is_judged_as_nltk_does(text: str) -> None:
    grammar = nltk.CFG.fromstring(text)
    oracle, parser = nltk.ChartParser(grammar), parser_of(text)
    letters = parser.rules.terminals
    for length in range(5):
        for terminals in product(letters, repeat=length):
            expected = next(iter(oracle.parse(list(terminals))), None) is not None
            try:
                tree = parser.parse("".join(terminals))
            except InputError:
                assert not expected
            else:
                assert expected
                assert parser.rules.terminals_of(tree) == terminals
                productions = grammar.productions()
                assert all(production in productions for production in parser.rules.to_nltk(tree).productions())


def order(rules: Rules, tree: ParseTree) -> tuple:
    """What the stated order compares: the number of rules, then node by node its rule and the widths of its parts."""
    _, ends, lengths = rules.subtrees(tree)
    nodes = []
    for node, rule in enumerate(tree.rules):
        widths, child = [], node + 1
        while child < ends[node]:
            widths.append(lengths[child])
            child = ends[child]
        nodes.append((rule, *reversed(widths)))
    return len(tree.rules), nodes


AMBIGUOUS = ["S -> S S | 'a' | 'b'", "S -> A A | S 'a' | 'a'\nA -> 'a' | 'a' A | A 'a'", GRAMMARS["cyclic"]]


@pytest.mark.parametrize("text", AMBIGUOUS)
@pytest.mark.parametrize("string", ["a", "ab", "aab", "aa", "aaa", "abab", "aabab"])
def test_the_first_tree_has_the_fewest_rules_and_then_the_first_of_them(text: str, string: str, enumeration) -> None:
    parser = parser_of(text)
    most = 10
    trees = [
        ParseTree(taken)
        for taken, terminals in enumeration.derivations(parser.rules, len(string), most)
        if "".join(terminals) == string
    ]
    try:
        first = parser.parse(string)
    except InputError:
        assert not trees
    else:
        if trees or len(first.rules) <= most:
            assert first == min(trees, key=lambda tree: order(parser.rules, tree))


def test_ambiguous_operators_group_to_the_left() -> None:
    parser = parser_of("S -> S '-' S | 'x'")
    assert str(parser.rules.to_nltk(parser.parse("x-x-x"))) == "(S (S (S x) - (S x)) - (S x))"


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["arithmetic", "regex"]), st.integers(0, 2**32 - 1))
def test_unambiguous_grammars_give_the_sampled_tree_back(name: str, seed: int) -> None:
    rules = Rules.of(load_grammar(name))
    tree = Sampler(rules, 40).tree(rules.start, 1, 40, np.random.default_rng(seed))
    assert Parser(rules).parse("".join(rules.terminals_of(tree))) == tree


def test_the_target_of_the_experiment() -> None:
    parser = Parser(Rules.of(load_grammar("arithmetic")))
    (expected,) = nltk.ChartParser(load_grammar("arithmetic")).parse(
        ["1", "/", "3", "+", "x", "+", "sin(", "x", "*", "x", ")"]
    )
    assert parser.rules.to_nltk(parser.parse("1/3+x+sin(x*x)")) == expected
    assert parser.parse_terminals(expected.leaves()) == parser.parse("1/3+x+sin(x*x)")


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("x+*1", r"position 3 \('\*'\); expected one of \( sin\( exp\( x 1 2 3$"),
        ("x)", r"position 2 \('\)'\); expected one of \+ \* /$"),
        ("sin(x", r"ends too early; expected one of \+ \* / \)$"),
        ("", "it is empty; expected one of"),
        ("sin(y)", "no terminal .* position 5: 'y'"),
        ("sin(sin()", r"position 9 \('\)'\)"),
    ],
)
def test_errors_say_where_parsing_stopped_and_what_was_expected(string: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Parser(Rules.of(load_grammar("arithmetic"))).parse(string)


def test_nothing_may_follow_a_finished_sentence() -> None:
    with pytest.raises(InputError, match=r"position 2 \('a'\); nothing may follow"):
        parser_of("S -> 'a'").parse("aa")


def test_the_longest_terminal_is_read_first() -> None:
    tokenizer = TerminalTokenizer(["s", "in", "sin", "C", "Cl", "l"])
    assert tokenizer.split("sinsClC") == ["sin", "s", "Cl", "C"]
    assert tokenizer.tokenize("s?Cl\n") == ["s", "?", "Cl", "\n"]
    assert tokenizer.tokenize_all(["Cl", ""]) == [["Cl"], []]
    with pytest.raises(InputError, match=r"position 2: '\?'"):
        tokenizer.split("s?")


def test_long_strings_need_no_recursion() -> None:
    parser = Parser(Rules.of(load_grammar("arithmetic")))
    assert len(parser.parse("(" * 400 + "x" + ")" * 400).rules) == 802
    assert len(parser.parse("+".join("x" * 400)).rules) == 800


def test_the_smiles_grammar_covers_zinc() -> None:
    parser = Parser(Rules.of(load_grammar("smiles")))
    read = 0
    for smiles in random.Random(0).sample(load_zinc250k(), 100):
        try:
            tree = parser.parse(smiles)
        except InputError:
            continue
        assert "".join(parser.rules.terminals_of(tree)) == smiles
        read += 1
    assert read >= 95


def test_regular_expressions_of_the_regex_grammar_compile() -> None:
    import re

    rules = Rules.of(load_grammar("regex"))
    sampler, rng = Sampler(rules, 30), np.random.default_rng(0)
    for _ in range(100):
        re.compile("".join(rules.terminals_of(sampler.tree(rules.start, 1, 30, rng))))
    assert Parser(rules).parse("(a|b)*abb")
