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


def test_names_take_the_place_of_x_and_a_constant_that_of_numbers() -> None:
    productions = [str(production) for production in load_grammar("arithmetic:day,dose_1+c").productions()]
    own = [str(production) for production in load_grammar("arithmetic").productions()]
    assert [p for p in own if p not in productions] == ["T -> 'x'", "T -> '1'", "T -> '2'", "T -> '3'"]
    assert [p for p in productions if p not in own] == ["T -> 'day'", "T -> 'dose_1'", "T -> 'c'"]
    assert load_grammar("arithmetic:x").productions() == load_grammar("arithmetic").productions()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("arithmetic:a,a", "the names a, a for the grammar arithmetic hold a twice"),
        ("arithmetic:a,c+c", "hold c twice"),
        ("smiles:a,b", "the grammar smiles has no rule that produces a 'x' alone, which a, b could"),
        ("regex:a+c", "no rule that produces a 'x' alone"),
        ("algebra:a", "seqopt has no file 'algebra.cfg'"),
        ("arithmetic:", "there is"),
        ("arithmetic:a b", "there is"),
    ],
)
def test_names_that_have_no_place_are_refused(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_grammar(source)


def test_names_go_into_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.cfg"
    path.write_text("S -> S '+' T | T\nT -> 'x' | 'x' '*' N | N\nN -> '1' | '2.5'\n", encoding="utf-8")
    found = [str(production) for production in load_grammar(f"{path}:u,v+k").productions()]
    assert found == ["S -> S '+' T", "S -> T", "T -> 'u'", "T -> 'v'", "T -> 'x' '*' N", "T -> N", "N -> 'k'"]


def test_formulas_are_unambiguous_and_have_the_precedence_of_arithmetic() -> None:
    parser = nltk.ChartParser(load_grammar("formulas"))
    for tokens in (
        ["x", "+", "1", "*", "x", "**2", "-", "3"],
        ["(", "x", "-", "1", ")", "**3", "/", "log(", "x", "*", "2", ")"],
    ):
        assert len(list(parser.parse(tokens))) == 1
    (tree,) = parser.parse(["x", "-", "x", "*", "2", "-", "1"])
    assert [" ".join(child.leaves()) for child in tree] == ["x - x * 2", "-", "1"]
