"""Checks of a grammar before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from nltk import CFG

from seqopt.errors import InputError
from seqopt.grammar import GrammarReport, GrammarWarning, Rules, check_grammar, load_grammar


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
        ("# note\nS -> 'a' S | \\\n 'b'\nS -> 'b'\n", "own.cfg, line 4: the rule S -> 'b' stands already at .*line 2"),
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
