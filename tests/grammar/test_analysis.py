"""Checks of a grammar before it is used."""

from __future__ import annotations

import random
from itertools import combinations, product
from pathlib import Path

import pytest
from nltk import CFG

from seqopt.errors import InputError
from seqopt.grammar import GrammarReport, GrammarWarning, Rules, check_grammar, load_grammar, read_grammar
from seqopt.grammar.analysis import OVERLAPS_NAMED


def report(text: str) -> GrammarReport:
    return check_grammar(Rules.of(CFG.fromstring(text)))


@pytest.mark.parametrize("name", ["arithmetic", "smiles", "regex"])
def test_the_grammars_that_come_along_are_sound(name: str) -> None:
    assert not check_grammar(Rules.of(load_grammar(name))).warnings


def test_left_recursion_is_reported_but_no_fault() -> None:
    assert report("S -> S 'a' | 'a'").left_recursive == ("S",)
    assert report("S -> A 'a'\nA -> B\nB -> S | 'b'").left_recursive == ("S", "A", "B")
    assert report("S -> N S 'a' | 'a'\nN -> | 'n'").left_recursive == ("S",)
    assert report("S -> 'a' S | 'a'").left_recursive == ()
    assert report("S -> S 'a' | 'a'").warnings == ()


def test_nullable_symbols_are_found() -> None:
    assert report("S -> A A | 'b'\nA -> 'a' | ").nullable == ("S", "A")


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("A -> A | 'a'", (("A",),)),
        ("A -> B | 'a'\nB -> A", (("A", "B"),)),
        ("A -> A E | 'a'\nE -> 'e' | ", (("A",),)),
        ("A -> A A | 'a' | ", (("A",),)),
        ("A -> A A | 'a'", ()),
        ("A -> A 'b' | B\nB -> 'b'", ()),
    ],
)
def test_cycles_are_found(text: str, cycles: tuple) -> None:
    found = report(text)
    assert found.cycles == cycles
    assert len(found.warnings) == len(cycles)


def test_terminals_that_run_together_are_found() -> None:
    assert report("S -> 's' 'in' | 'sin'").overlaps == (("s", "in"),)
    assert report("S -> 'a' T | 'ab'\nT -> U 'c' | 'b'\nU -> | 'bc'").overlaps == (("a", "b"), ("a", "bc"))
    assert report("S -> 's' 'x' | 'sin'").overlaps == ()


def write(folder: Path, text: str) -> Path:
    path = folder / "own.cfg"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> 'a'\nT -> 'b'\n", "own.cfg, line 2: T is unreachable"),
        ("# note\nS -> 'a' S | \\\n 'b'\nS -> 'b'\n", "own.cfg, line 4: the rule S -> 'b' is already at .*line 2"),
        ("S -> 'a' | T\n\nT -> S\n", "own.cfg, line 1: S => T => S is a cycle"),
    ],
)
def test_what_is_odd_is_a_warning_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.warns(GrammarWarning, match=message):
        load_grammar(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> 'a' S\n", "own.cfg, line 1: S is non-terminating"),
        ("S -> 'a' | T 'b'\n\nT -> 'c' T | T T\n", "own.cfg, line 3: T is non-terminating"),
        ("S -> 'a' T\nT -> U\nU -> U 'u'\n", r"own.cfg, line 3: U is non-terminating \(so are S, T\)"),
    ],
)
def test_derivations_that_never_end_are_an_error_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_grammar(write(tmp_path, text))


def side_by_side(rules: Rules) -> set[tuple[str, str]]:
    """Terminals that stand side by side in a derivation, by rewriting every body until nothing new turns up."""
    found: set[tuple[str, str]] = set()
    edges: dict[bool, list[set[str]]] = {}
    empty = [name in check_grammar(rules).nullable for name in rules.names]
    for backwards in (False, True):
        sets: list[set[str]] = [set() for _ in rules.names]
        for _ in range(len(rules.names) + 1):
            for head, body in rules:
                for symbol in reversed(body) if backwards else body:
                    sets[head] |= {symbol} if isinstance(symbol, str) else sets[symbol]
                    if isinstance(symbol, str) or not empty[symbol]:
                        break
        edges[backwards] = sets
    for _, body in rules:
        for left, right in combinations(range(len(body)), 2):
            between = body[left + 1 : right]
            if all(isinstance(symbol, int) and empty[symbol] for symbol in between):
                one, other = body[left], body[right]
                lasts = {one} if isinstance(one, str) else edges[True][one]
                firsts = {other} if isinstance(other, str) else edges[False][other]
                found |= set(product(lasts, firsts))
    return found


def test_overlaps_are_those_of_all_neighbours() -> None:
    rng = random.Random(0)
    terminals = ["a", "b", "ab", "abc", "c", "bc", "ca"]
    seen = 0
    for _ in range(300):
        lines = []
        for symbol in range(4):
            bodies = [
                " ".join(
                    repr(rng.choice(terminals)) if rng.random() < 0.5 else f"N{rng.randrange(4)}"
                    for _ in range(rng.choice([0, 1, 2, 3]))
                )
                for _ in range(2)
            ]
            lines.append(f"N{symbol} -> 'a' | {' | '.join(bodies)}")
        rules = Rules.of(CFG.fromstring("\n".join(lines)))
        expected = [
            (first, second)
            for first, second in sorted(side_by_side(rules))
            for longer in rules.terminals
            if longer != first
            and longer.startswith(first)
            and (longer[len(first) :].startswith(second) or second.startswith(longer[len(first) :]))
        ]
        assert list(check_grammar(rules).overlaps) == expected
        seen += len(expected)
    assert seen > 300


def test_a_grammar_of_thousands_of_rules_and_overlaps(tmp_path: Path) -> None:
    words = ["".join(letters) for length in (1, 2) for letters in product("abcdefghijkl", repeat=length)]
    chain = [f"N{step} -> N{step + 1} | 'n{step}.' N{step}" for step in range(2400)]
    text = "\n".join(["S -> W S | W | N0", *(f"W -> {word!r}" for word in words), *chain, "N2400 -> 'end'"])
    grammar, _ = read_grammar(write(tmp_path, text))
    with pytest.warns(GrammarWarning) as caught:
        check_grammar(Rules.of(grammar), warn=True)
    assert len(grammar.productions()) == 3 + 156 + 4801
    # Where a word of one letter stands before any other word or "end", the two letters that meet are a word themselves.
    found = {(first, second) for first in "abcdefghijkl" for second in [*words, "end"]}
    assert [str(warning.message).split(" can")[0] for warning in caught[:OVERLAPS_NAMED]] == [
        f"the terminals {first!r} and {second!r}" for first, second in sorted(found)[:OVERLAPS_NAMED]
    ]
    assert [str(warning.message) for warning in caught[OVERLAPS_NAMED:]] == [
        f"{len(found) - OVERLAPS_NAMED:,} more such pairs of terminals can stand side by side"
    ]
