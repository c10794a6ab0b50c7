"""Grammars from files."""

from __future__ import annotations

from pathlib import Path

import nltk
import pytest

from seqopt.errors import InputError
from seqopt.grammar import load_grammar


def test_the_arithmetic_grammar_has_the_rules_of_the_paper() -> None:
    grammar = load_grammar("arithmetic")
    rules = {(str(rule.lhs()), " ".join(str(part) for part in rule.rhs())) for rule in grammar.productions()}
    assert str(grammar.start()) == "S"
    assert rules == {
        *(("S", f"S {sign} T") for sign in "+*/"),
        ("S", "T"),
        ("T", "( S )"),
        ("T", "sin( S )"),
        ("T", "exp( S )"),
        *(("T", terminal) for terminal in "x123"),
    }


def test_it_derives_the_target_of_the_experiment_and_no_empty_brackets() -> None:
    parser = nltk.ChartParser(load_grammar("arithmetic.cfg"))
    assert any(parser.parse(["1", "/", "3", "+", "x", "+", "sin(", "x", "*", "x", ")"]))
    assert not any(parser.parse(["(", ")"]))


def test_a_file_of_ones_own_with_comments_continuations_and_a_start_symbol(tmp_path: Path) -> None:
    path = tmp_path / "own.cfg"
    path.write_text("# twice\n%start W\n\nA -> 'a' | \\\n  'b'\nW -> A W | A\n", encoding="utf-8")
    grammar = load_grammar(path)
    assert str(grammar.start()) == "W"
    assert len(grammar.productions()) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> 'a'\nS - 'b'\n", r"bad.cfg, line 2: .*is not a rule"),
        ("# only a comment\n", "has no rules"),
        ("\n\nS -> 'a' T\n", r"bad.cfg, line 3: no rule defines T.*'T' in quotes"),
        ("S -> 'a\n", "line 1: .*is not a rule"),
        ("%begin S\nS -> 'a'\n", "line 1: .*%start"),
        ("%start Q\nS -> 'a'\n", "line 1: no rule defines Q"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.cfg"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_grammar(path)


def test_missing_and_undecodable_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="arithmetic"):
        load_grammar("algebra")
    with pytest.raises(InputError, match="there is no grammar file"):
        load_grammar(tmp_path / "none.cfg")
    path = tmp_path / "latin.cfg"
    path.write_bytes("S -> 'é'".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        load_grammar(path)
