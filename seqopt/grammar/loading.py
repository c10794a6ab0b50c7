"""Reading context-free grammars from files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.errors import InputError
from seqopt.grammar.analysis import check_grammar
from seqopt.grammar.rules import Rules
from seqopt.utils.resources import grammar_path

if TYPE_CHECKING:
    from nltk import CFG

VARIABLE = "x"
"""The terminal that names take the place of."""

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_NAMED = re.compile(rf"(?P<grammar>[^:]+):(?P<names>{_NAME}(?:,{_NAME})*)(?:\+(?P<constant>{_NAME}))?")
_NUMBER = re.compile(r"[0-9]+\.?[0-9]*")


def load_grammar(source: str | os.PathLike[str]) -> CFG:
    """A context-free grammar, in the notation of `nltk.CFG`.

    One rule stands on a line, ``S -> S '+' T | T``: a non-terminal, an arrow, and alternatives separated by
    ``|``, in which terminals are quoted. An empty alternative, or the terminal ``''``, produces nothing. ``#``
    begins a comment, a backslash at the end of a line continues it, and ``%start S`` names the start symbol,
    which otherwise is the left side of the first rule.

    ``"arithmetic:day,dose"`` is the grammar ``"arithmetic"`` with the names in place of its terminal ``x``: formulas in
    ``day`` and ``dose``. In ``"arithmetic:day,dose+c"``, c takes the place of its numbers, for constants that are to be
    fitted: see `seqopt.objectives.fit_constants`. That goes for ``"formulas"`` and the path of a file, too.

    What is odd about the grammar is issued as `seqopt.grammar.GrammarWarning`: see `seqopt.grammar.check_grammar`.

    Args:
        source: The path of a ``.cfg`` file, or the name of one that comes with seqopt: ``"arithmetic"``,
            ``"formulas"``, ``"smiles"`` or ``"regex"``; each with names after a colon, if they are to take the place of
            the terminal ``x``.

    Raises:
        InputError: For a file that is missing or no text, a line that is no rule, a non-terminal that no
            rule defines, or one whose derivations never end; the message names the file, the line and the reason.

    Example:
        >>> grammar = load_grammar("arithmetic")
        >>> grammar.start(), len(grammar.productions())
        (S, 11)
        >>> len(load_grammar("arithmetic:day,dose").productions())
        12
    """
    from nltk import CFG

    grammar, locations = read_grammar(source)
    check_grammar(Rules.of(grammar, locations), warn=True)
    return CFG(grammar.start(), grammar.productions())


def read_grammar(source: str | os.PathLike[str]) -> tuple[CFG, list[str]]:
    """A grammar with the location of each production, ``"smiles.cfg, line 12"``, not yet checked.

    It lacks the tables that nltk's left-corner parsers need, which take long to compute for many rules.

    Args:
        source: As for `load_grammar`.

    Raises:
        InputError: As `load_grammar` does, but for derivations that never end.
    """
    from nltk import CFG, Nonterminal

    named = None if Path(source).is_file() else _NAMED.fullmatch(os.fspath(source))
    if named is not None:
        return _renamed(named["grammar"], named["names"].split(","), named["constant"])
    path = _find(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read the grammar {path}: {error.strerror}") from error
    productions: list[Any] = []
    locations: list[str] = []
    used: dict[str, int] = {}
    start = None
    for line, rule in _rules(text):
        if rule.startswith("%"):
            start = _start(path, line, rule)
            used.setdefault(start, line)
            continue
        fresh = _productions(path, line, rule)
        productions += fresh
        locations += [f"{path}, line {line}"] * len(fresh)
        for production in fresh:
            for symbol in production.rhs():
                if isinstance(symbol, Nonterminal):
                    used.setdefault(str(symbol), line)
    if not productions:
        raise InputError(f"the grammar {path} has no rules: write one a line, such as S -> 'a' S | 'b'")
    defined = {str(production.lhs()) for production in productions}
    for symbol, line in used.items():
        if symbol not in defined:
            raise InputError(
                f"{path}, line {line}: no rule defines {symbol}: add one, or put {symbol!r} in quotes "
                "to make it a terminal"
            )
    start_symbol = Nonterminal(start) if start else productions[0].lhs()
    return CFG(start_symbol, productions, calculate_leftcorners=False), locations


def _renamed(source: str, names: list[str], constant: str | None) -> tuple[CFG, list[str]]:
    """A grammar with the names in place of its terminal x, and the constant in place of its numbers."""
    from nltk import CFG
    from nltk.grammar import Production

    grammar, locations = read_grammar(source)
    all_names = [*names, *([] if constant is None else [constant])]
    repeated = sorted({name for name in all_names if all_names.count(name) > 1})
    if repeated:
        raise InputError(f"the names {', '.join(all_names)} for the grammar {source} hold {', '.join(repeated)} twice")
    productions: dict[Any, str] = {}
    variable = number = False
    for production, location in zip(grammar.productions(), locations, strict=True):
        alone = production.rhs()[0] if len(production.rhs()) == 1 else None
        made = [production]
        if alone == VARIABLE:
            variable, made = True, [Production(production.lhs(), [name]) for name in names]
        elif constant is not None and isinstance(alone, str) and _NUMBER.fullmatch(alone):
            number, made = True, [Production(production.lhs(), [constant])]
        for one in made:
            productions.setdefault(one, location)
    if not variable or (constant is not None and not number):
        lacking, wanted = ("number", constant) if variable else (repr(VARIABLE), ", ".join(names))
        raise InputError(
            f"the grammar {source} has no rule that produces a {lacking} alone, which {wanted} could take the place of"
        )
    return CFG(grammar.start(), list(productions), calculate_leftcorners=False), list(productions.values())


def _find(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if path.name != str(source):
        raise InputError(f"there is no grammar file {path}")
    return grammar_path(path.name if path.suffix else f"{path.name}.cfg")


def _rules(text: str) -> Iterator[tuple[int, str]]:
    """Rules and directives with the line on which each begins."""
    begun, start = "", 0
    for line, content in enumerate(text.split("\n"), start=1):
        stripped = content.strip()
        if not begun:
            start = line
            if not stripped or stripped.startswith("#"):
                continue
        if stripped.endswith("\\"):
            begun += stripped[:-1].rstrip() + " "
            continue
        yield start, begun + stripped
        begun = ""
    if begun:
        yield start, begun.strip()


def _start(path: Path, line: int, rule: str) -> str:
    directive = rule.split()
    if directive[0] != "%start" or len(directive) != 2:
        raise InputError(f"{path}, line {line}: {rule!r} is not a directive: the only one is %start SYMBOL")
    return directive[1]


def _productions(path: Path, line: int, rule: str) -> list[Any]:
    from nltk import grammar

    try:
        # The first half of CFG.fromstring, which then analyses the single line as a separate grammar.
        _, productions = grammar.read_grammar(rule, grammar.standard_nonterm_parser)
        return list(productions)
    except ValueError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"{path}, line {line}: {rule!r} is not a rule ({reason}): write SYMBOL -> alternatives separated "
            "by |, with terminals in quotes"
        ) from error
