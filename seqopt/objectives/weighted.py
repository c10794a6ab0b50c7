r"""Weighted sums of scores, as they are typed: ``mfe - 5*log_cai:human``.

    value = constant + sum_k weight_k score_k,

each score in its own unit: a weight says how many units of the sum one unit of a score is worth.

Read by a parser of its own; nothing is ever run as Python:

    sum     = ["+" | "-"] product { ("+" | "-") product }
    product = factor { "*" factor }
    factor  = number | score | ("+" | "-") factor | "(" sum ")"

A score is a name that `seqopt.objectives.resolve_objective` takes, with its argument: ``cai:human``. It ends at a
blank, or at a bracket that closes one from before it, so an operator behind an argument needs a blank before it. What
holds blanks itself is written in quotes: ``'cai:my usage.csv'``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, ObjectiveError

if TYPE_CHECKING:
    from seqopt.evaluation import Direction
    from seqopt.objectives.objective import Objective
    from seqopt.spaces import CodonScore, CodonSpace

FloatArray = npt.NDArray[np.float64]

DEEPEST = 50
"""Brackets within each other that are read."""

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.])")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = "+-*()"
_UNREAD = ("/", "^", "**", "%")


@dataclass(frozen=True)
class Term:
    """One score of a sum.

    Attributes:
        weight: Units of the sum for one unit of the score.
        objective: The score.
    """

    weight: float
    objective: Objective


@dataclass(frozen=True)
class WeightedSum:
    """A sum of scores, each times a weight, and a constant.

    Args:
        terms: The scores; each is reported by itself, too, one of the weight 0 included.
        constant: What is added.

    Raises:
        InputError: Without a score, for a weight that is not finite, or for scores of different kinds of strings.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> score = resolve_objective("mfe - 5*log_cai:human").function
        >>> score(["GGGCUGAAACCC"]).round(2).tolist(), score.rows(["GGGCUGAAACCC"]).round(2).tolist()
        ([-1.56], [[-1.56, -2.3, -0.15]])
    """

    terms: tuple[Term, ...]
    constant: float = 0.0

    adds_up = True

    def __post_init__(self) -> None:
        if not self.terms:
            raise InputError("a weighted sum needs a score")
        for term in self.terms:
            if not math.isfinite(term.weight):
                raise InputError(f"the weight of {term.objective.name} is {term.weight}; expected a finite number")
        if not self.kinds and any(term.objective.kinds for term in self.terms):
            said = "; ".join(
                f"{term.objective.name} is for {term.objective.strings}" for term in self.terms if term.objective.kinds
            )
            raise InputError(f"no string can be scored by all of these: {said}")

    @property
    def names(self) -> tuple[str, ...]:
        """What the scores are called, the columns of `rows` after the first."""
        return tuple(term.objective.name for term in self.terms)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of strings that all scores apply to; empty for all, or none."""
        limited = [term.objective.kinds for term in self.terms if term.objective.kinds]
        return tuple(kind for kind in limited[0] if all(kind in kinds for kinds in limited)) if limited else ()

    @property
    def chunk_size(self) -> int:
        """The largest number of strings that all scores should be called with at a time."""
        return min(term.objective.chunk_size for term in self.terms)

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Sums of ``strings`` (``n``)."""
        return self.rows(strings)[:, 0]

    def rows(self, strings: Sequence[str]) -> FloatArray:
        """Sums and scores of ``strings`` (``n x (1 + terms)``): a row is NaN throughout where a score is."""
        scores = np.stack([term.objective(strings) for term in self.terms], axis=1)
        weights = np.array([term.weight for term in self.terms])
        sums = self.constant + (scores * weights).sum(axis=1)
        rows = np.concatenate([sums[:, None], scores], axis=1)
        rows[~np.isfinite(scores).all(axis=1)] = np.nan
        return rows

    def with_terms(self, change: Callable[[Objective], Objective]) -> WeightedSum:
        """The same sum of scores that are made of these one by one."""
        return replace(self, terms=tuple(replace(term, objective=change(term.objective)) for term in self.terms))

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The sum, if each score is one over codons itself: see `seqopt.objectives.CodonAdditive`.

        Of a single score, such as 2 x CAI, it is enough that it increases with one.
        """
        from seqopt.objectives.additive import CodonAdditive
        from seqopt.spaces import CodonScore

        counted = [term for term in self.terms if term.weight]
        total = CodonScore()
        for term in counted:
            function: object = term.objective.function
            if len(counted) == 1 and isinstance(function, CodonAdditive):
                score = function.codon_score(space)
                return None if score is None else score.scaled(term.weight)
            if not isinstance(function, CodonAdditive) or not getattr(function, "adds_up", False):
                return None
            score = function.codon_score(space)
            if score is None:
                return None
            total += score.scaled(term.weight)
        return total


@dataclass(frozen=True)
class Rows:
    """The function `WeightedSum.rows`, which can be sent to another process.

    Args:
        of: The sum.
        names: The scores of which the rows have columns, behind that of the sum; by default all.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> total = resolve_objective("gc - 0.5*cai:human + 0*mfe").function
        >>> Rows(total, ("mfe", "gc"))(["GCTGCC"]).round(2).tolist()
        [[0.42, 0.0, 0.83]]
    """

    of: WeightedSum
    names: tuple[str, ...] | None = None

    @property
    def chunk_size(self) -> int:
        """See `WeightedSum`."""
        return self.of.chunk_size

    def __call__(self, strings: list[str]) -> FloatArray:
        """See `WeightedSum.rows`."""
        rows = self.of.rows(strings)
        if self.names is None:
            return rows
        return rows[:, [0, *(1 + self.of.names.index(name) for name in self.names)]]


class _Token(NamedTuple):
    """A piece of an expression and where it begins, counted from 1."""

    what: str
    text: str
    position: int


def is_sum(spec: str) -> bool:
    """Whether an objective is written as a sum, and not as the name of one score.

    What names a file that is there is no sum, whatever its name holds.

    Example:
        >>> is_sum("mfe + cai:human"), is_sum("cai:e_coli"), is_sum("-1*mfe")
        (True, False, True)
    """
    text = spec.strip()
    _, colon, argument = text.partition(":")
    location = text.rpartition(":")[0]
    if (colon and os.path.exists(argument.strip())) or (location.endswith(".py") and os.path.exists(location)):
        return False
    try:
        tokens = _tokens(text)
    except InputError:
        return True
    begins = bool(tokens) and (tokens[0].what == "number" or text[0] in "'\"")
    return begins or any(token.what in _OPERATORS or token.text in _UNREAD for token in tokens)


def column_of(spec: str) -> str | None:
    """The column of the pool that an objective, or a score of a sum, looks values up in; `None` without one.

    Raises:
        InputError: For a sum of several columns.

    Example:
        >>> column_of("column:pIC50"), column_of("2*column:pIC50 - qed"), column_of("qed")
        ('pIC50', 'pIC50', None)
    """
    text = spec.strip()
    if not is_sum(text):
        return text.removeprefix("column:") if text.startswith("column:") else None
    try:
        tokens = _tokens(text)
    except InputError:
        return None
    found = list(dict.fromkeys(token.text[7:].strip() for token in tokens if token.text.startswith("column:")))
    if len(found) > 1:
        raise InputError(
            f"the objective {text!r} looks up the columns {' and '.join(found)}: one column at most; make their sum a "
            "column of the file"
        )
    return found[0] if found else None


def parse_sum(spec: str, resolve: Callable[[str], Objective]) -> WeightedSum:
    """The weighted sum that a text says.

    Args:
        spec: The sum.
        resolve: From the name of a score to the score.

    Raises:
        InputError: For something that is not a sum, with its position, or a score that is not there.
        ObjectiveError: As ``resolve`` does, with the position.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> found = parse_sum("2*(gc - 0.5) + cai:e_coli", resolve_objective)
        >>> [(term.weight, term.objective.name) for term in found.terms], found.constant
        ([(2.0, 'gc'), (1.0, 'cai:e_coli')], -1.0)
        >>> parse_sum("mfe + 0.5*", resolve_objective)
        Traceback (most recent call last):
            ...
        seqopt.errors.InputError: objective 'mfe + 0.5*': expected a number, a score or '(' at position 11, and it ends
    """
    text = spec.strip()
    parser = _Parser(text, _tokens(text))
    constant, weights = parser.whole()
    if not weights:
        raise InputError(f"objective {text!r} is a number for all strings: name a score, such as cai:human")
    terms = []
    for name, (weight, position) in weights.items():
        try:
            objective = resolve(name)
        except (InputError, ObjectiveError) as error:
            raise type(error)(f"objective {text!r}, position {position}: {error}") from error
        terms.append(Term(weight, objective))
    return WeightedSum(tuple(terms), constant)


def usual_direction(terms: Sequence[Term]) -> tuple[Direction, list[str]]:
    """What is usually wanted of the first score of a sum, and the names of those of which it wants the opposite.

    Example:
        >>> from seqopt.objectives import resolve_objective
        >>> usual_direction(resolve_objective("mfe + 0.5*cai:human").function.terms)
        ('minimize', ['cai:human'])
    """
    signs = [(1 if term.objective.direction == "maximize" else -1) * math.copysign(1, term.weight) for term in terms]
    counted = [sign for sign, term in zip(signs, terms, strict=True) if term.weight]
    first = counted[0] if counted else 1.0
    against = [term.objective.name for sign, term in zip(signs, terms, strict=True) if term.weight and sign != first]
    return ("maximize" if first > 0 else "minimize"), against


def described(terms: Sequence[Term], constant: float) -> str:
    """A sum in words."""
    parts = [
        f"{term.weight:+g} x {term.objective.name}{f' ({term.objective.unit})' if term.objective.unit else ''}"
        for term in terms
    ]
    return f"weighted sum: {' '.join([*parts, *([f'{constant:+g}'] if constant else [])])}"


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter.isspace():
            at += 1
        elif letter in _OPERATORS:
            found.append(_Token(letter, letter, at + 1))
            at += 1
        elif letter in "'\"":
            end = text.find(letter, at + 1)
            if end < 0:
                raise _wrong(text, f"the quotation mark at position {at + 1} is not closed")
            found.append(_Token("score", text[at + 1 : end], at + 1))
            at = end + 1
        elif number := _NUMBER.match(text, at):
            found.append(_Token("number", number[0], at + 1))
            at = number.end()
        else:
            end = _end_of_score(text, at)
            found.append(_Token("score", text[at:end], at + 1))
            at = end
    return found


def _end_of_score(text: str, at: int) -> int:
    """Where a score ends that begins at a place."""
    from seqopt.objectives.objective import OBJECTIVES

    name = _NAME.match(text, at)
    # Behind a built-in score without an argument an operator needs no blank.
    if name and name[0] in OBJECTIVES and text[name.end() : name.end() + 1] not in (":", "."):
        return name.end()
    depth = 0
    for end in range(at, len(text)):
        letter = text[end]
        if letter.isspace():
            return end
        depth += (letter == "(") - (letter == ")")
        # SMILES hold brackets: one that closes none of theirs is ours.
        if depth < 0:
            return end
    return len(text)


class _Parser:
    """A sum is a constant, and of each score its weight and where it was first named."""

    def __init__(self, text: str, tokens: Sequence[_Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> tuple[float, dict[str, tuple[float, int]]]:
        value = self._sum()
        token = self._token
        if token is not None:
            if token.text in _UNREAD:
                raise self._expected("'+', '-' or '*'", ": weights are multiplied, such as 0.1*mfe")
            hint = " (an operator behind an argument needs a blank before it)" if token.what == "score" else ""
            raise self._expected("'+', '-' or '*'", hint)
        return value

    @property
    def _token(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _taken(self, *kinds: str) -> _Token | None:
        token = self._token
        if token is None or token.what not in kinds:
            return None
        self._next += 1
        return token

    def _expected(self, what: str, hint: str = "") -> InputError:
        token = self._token
        if token is None:
            return _wrong(self.text, f"expected {what} at position {len(self.text) + 1}, and it ends")
        return _wrong(self.text, f"expected {what} at position {token.position}, not {token.text!r}{hint}")

    def _sum(self) -> tuple[float, dict[str, tuple[float, int]]]:
        constant, weights = self._product()
        while sign := self._taken("+", "-"):
            further, others = self._product()
            factor = 1.0 if sign.what == "+" else -1.0
            constant += factor * further
            for name, (weight, position) in others.items():
                before, first = weights.get(name, (0.0, position))
                weights[name] = (before + factor * weight, first)
        return constant, weights

    def _product(self) -> tuple[float, dict[str, tuple[float, int]]]:
        constant, weights = self._factor()
        while star := self._taken("*"):
            further, others = self._factor()
            if weights and others:
                raise _wrong(
                    self.text,
                    f"the '*' at position {star.position} is between two scores, and a weighted sum has numbers for "
                    "weights: for products write a Python function, file.py:function",
                )
            factor = constant if others else further
            weights = {name: (factor * weight, position) for name, (weight, position) in (others or weights).items()}
            constant *= further
        return constant, weights

    def _factor(self) -> tuple[float, dict[str, tuple[float, int]]]:
        if number := self._taken("number"):
            value = float(number.text)
            if not math.isfinite(value):
                raise _wrong(self.text, f"the number {number.text} at position {number.position} is too large")
            return value, {}
        if score := self._taken("score"):
            return 0.0, {score.text.strip(): (1.0, score.position)}
        opening = self._taken("+", "-", "(")
        if opening is None:
            raise self._expected("a number, a score or '('")
        self._depth += 1
        if self._depth > DEEPEST:
            raise _wrong(self.text, f"more than {DEEPEST} brackets and signs within each other")
        if opening.what == "(":
            found = self._sum()
            if not self._taken(")"):
                raise self._expected(f"')' for the '(' at position {opening.position}")
        else:
            constant, weights = self._factor()
            sign = 1.0 if opening.what == "+" else -1.0
            found = sign * constant, {name: (sign * weight, place) for name, (weight, place) in weights.items()}
        self._depth -= 1
        return found


def _wrong(text: str, why: str) -> InputError:
    return InputError(f"objective {text!r}: {why}")
