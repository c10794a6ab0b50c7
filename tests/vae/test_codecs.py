"""Strings as rows of symbols, masks, and derivations that always end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk import CFG

from seqopt.errors import InputError
from seqopt.grammar import Parser, ParseTree, Rules
from seqopt.spaces import GrammarSpace
from seqopt.vae import CharacterCodec, Codec, GrammarCodec
from seqopt.vae.grammar import shortest_derivations

SMALL = [
    "S -> S '+' T | T\nT -> 'x' | '(' S ')'",
    "S -> 'a' S 'b' S | ",
    "S -> A B | 'c'\nA -> 'a' A | \nB -> 'b' B | 'b'",
    "S -> A\nA -> B | 'a' S\nB -> A | 'b'",
    "S -> A B C\nA -> 'a' | 'p' S\nB -> A A\nC -> 'c' | B",
]


def rules_of(text: str) -> Rules:
    return Rules.of(CFG.fromstring(text))


def derivations(rules: Rules, most: int) -> set[tuple[int, ...]]:
    """All derivations of at most ``most`` rules, by expansion."""
    found = set()
    pending: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), (rules.start,))]
    while pending:
        taken, stack = pending.pop()
        if not stack:
            found.add(taken)
        elif len(taken) < most:
            for rule in rules.by_head[stack[0]]:
                below = tuple(symbol for symbol in rules.bodies[rule] if isinstance(symbol, int))
                pending.append(((*taken, rule), below + stack[1:]))
    return found


def written(codec: Codec) -> set[tuple[int, ...]]:
    """Everything that can be written, by trying every allowed symbol at every step."""
    found = set()
    pending: list[tuple[int, ...]] = [()]
    while pending:
        prefix = pending.pop()
        writing = codec.writing(1)
        for symbol in prefix:
            writing.write(np.array([symbol]))
        if not writing.contexts()[0]:
            found.add(prefix)
            continue
        allowed = np.flatnonzero(writing.allowed()[0])
        assert len(allowed)
        assert 0 not in allowed
        pending += [(*prefix, int(symbol)) for symbol in allowed]
    return found


@pytest.mark.parametrize("text", SMALL)
def test_what_can_be_written_are_all_derivations_that_fit(text: str) -> None:
    rules = rules_of(text)
    for most in range(shortest_derivations(rules)[rules.start], 9):
        codec = GrammarCodec(rules, most, "small")
        expected = derivations(rules, most)
        assert {tuple(symbol - 1 for symbol in row) for row in written(codec)} == expected


@pytest.mark.parametrize("text", SMALL)
def test_shortest_derivations_by_enumeration(text: str) -> None:
    rules = rules_of(text)
    for symbol, need in enumerate(shortest_derivations(rules)):
        of_symbol = Rules(rules.names, symbol, rules.heads, rules.bodies, rules.locations)
        assert min(map(len, derivations(of_symbol, 8))) == need


def test_characters_may_follow_in_any_order_and_end_in_time() -> None:
    codec = CharacterCodec("ab", 3)
    expected = {"".join(p) for length in range(4) for p in itertools.product("ab", repeat=length)}
    rows = [list(row) + [0] * (4 - len(row)) for row in written(codec)]
    assert sorted(codec.decode(np.array(rows))) == sorted(expected)
    assert len(rows) == len(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 40))
@settings(max_examples=20, deadline=None)
def test_random_choices_give_strings_of_the_grammar(seed: int, count: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    codec = GrammarCodec.of("arithmetic", [], max_rules=most)
    writing = codec.writing(count)
    rows = np.zeros((count, most), dtype=np.int64)
    for step in range(most):
        allowed = writing.allowed()
        for row in range(count):
            rows[row, step] = rng.choice(np.flatnonzero(allowed[row]))
        writing.write(rows[:, step])
    assert not writing.contexts().any()
    for string in codec.decode(rows):
        codec.parser.parse(string)


def test_rows_are_the_derivation_and_its_heads_the_contexts(expressions: list[str]) -> None:
    codec = GrammarCodec.of("arithmetic", expressions)
    rows = codec.encode(expressions)
    parser = Parser(codec.rules)
    assert [tuple(row[row > 0] - 1) for row in rows] == [parser.parse(string).rules for string in expressions]
    assert codec.decode(rows) == expressions
    contexts = codec.contexts(rows)
    for row, of_row in zip(rows, contexts, strict=True):
        for symbol, context in zip(row, of_row, strict=True):
            assert context == (codec.rules.heads[symbol - 1] + 1 if symbol else 0)
            assert np.flatnonzero(codec.possible[context]).tolist() == (
                [rule + 1 for rule in codec.rules.by_head[context - 1]] if context else [0]
            )


def test_contexts_while_writing_are_those_of_the_finished_row(expressions: list[str]) -> None:
    for codec in (GrammarCodec.of("arithmetic", expressions), CharacterCodec.of(expressions)):
        rows = codec.encode(expressions)
        expected = codec.contexts(rows)
        writing = codec.writing(len(rows))
        for step in range(codec.steps):
            assert np.array_equal(writing.contexts(), expected[:, step])
            assert writing.allowed()[np.arange(len(rows)), rows[:, step]].all()
            writing.write(rows[:, step])


@pytest.mark.parametrize("tokenizer", ["characters", "smiles", "smiles-split"])
def test_characters_round_trip(tokenizer: str) -> None:
    strings = ["C[C@@H](Cl)c1c[nH]cc1", "CC", "Brc1ccccc1"]
    codec = CharacterCodec.of(strings, tokenizer=tokenizer)
    assert codec.decode(codec.encode(strings)) == strings
    again = CharacterCodec.from_json(codec.to_json())
    assert np.array_equal(again.encode(strings), codec.encode(strings))
    assert ("Cl" in codec.alphabet) == (tokenizer != "characters")


def test_a_grammar_survives_json() -> None:
    space = GrammarSpace("smiles", 2, 20)
    strings = space.sample(20, np.random.default_rng(0))
    codec = GrammarCodec.of("smiles", strings)
    again = GrammarCodec.from_json(codec.to_json())
    assert again.same_rules(space.rules)
    assert np.array_equal(again.encode(strings), codec.encode(strings))
    assert not again.same_rules(GrammarSpace("arithmetic", 1, 5).rules)


@pytest.mark.parametrize(
    ("string", "words"),
    [
        ("x+z", ["'z'", "position 3", "'x+z'", "alphabet of 4 symbols"]),
        ("1+x+1+x", ["7 symbols", "up to 5"]),
    ],
)
def test_strings_that_a_character_model_cannot_read(string: str, words: list[str]) -> None:
    codec = CharacterCodec.of(["x+1+2", "x"])
    with pytest.raises(InputError) as error:
        codec.encode(["x", string])
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    ("string", "words"),
    [
        ("x+*1", ["'x+*1'", "position 3", "expected one of"]),
        ("x+y", ["position 3", "'y'"]),
        ("x+1+2", ["8 rules"[2:], "up to 4", "'x+1+2'"]),
        ("", ["empty"]),
    ],
)
def test_strings_that_a_grammar_model_cannot_read(string: str, words: list[str]) -> None:
    codec = GrammarCodec.of("arithmetic", ["x+1"])
    with pytest.raises(InputError) as error:
        codec.encode(["x", string])
    assert all(word in str(error.value) for word in words)


def test_strings_that_a_grammar_does_not_derive_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    original = Parser.parse

    def parse(parser: Parser, string: str) -> ParseTree:
        parsed.append(string)
        return original(parser, string)

    monkeypatch.setattr(Parser, "parse", parse)
    strings = ["x+1", "x+*1", "x", "x*x*x", "?"]
    codec = GrammarCodec.of("arithmetic", strings, skip=True)
    assert codec.derived(strings) == ["x+1", "x", "x*x*x"]
    assert codec.steps == codec.max_rules == 6
    assert codec.encode(codec.derived(strings)).shape == (3, 6)
    assert parsed == strings  # each of them once
    with pytest.raises(InputError, match="position 3"):
        GrammarCodec.of("arithmetic", strings)
    with pytest.raises(InputError, match="the grammar arithmetic derives none of the 2 strings"):
        GrammarCodec.of("arithmetic", ["+", "?"], skip=True)
    with pytest.raises(InputError, match="there are no strings"):
        GrammarCodec.of("arithmetic", [], skip=True)


def test_codecs_that_cannot_be() -> None:
    for make, words in (
        (lambda: CharacterCodec.of([]), "no symbols"),
        (lambda: CharacterCodec.of([""]), "no symbols"),
        (lambda: CharacterCodec.of("abc"), "single string"),
        (lambda: CharacterCodec.of(["a", 3]), "item 1 is 3"),  # type: ignore[list-item]
        (lambda: CharacterCodec("ab", 0), "max_length is 0"),
        (lambda: CharacterCodec([], 3), "alphabet is empty"),
        (lambda: CharacterCodec.of(["abc"], max_length=2), "up to 2"),
        (lambda: CharacterCodec.of(["abc"], tokenizer="words"), "unknown tokenizer 'words'"),
        (lambda: GrammarCodec.of("arithmetic", []), "no strings"),
        (lambda: GrammarCodec.of("arithmetic", ["x"], max_rules=1), "needs 2 rules"),
        (lambda: GrammarCodec.of("latin", ["x"]), "latin"),
    ):
        with pytest.raises(InputError, match=words):
            make()
