"""The formulas of a grammar, each function once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seqopt.errors import InputError
from seqopt.grammar import DISCOUNT, ParseTree
from seqopt.objectives.canonical import Canonical, Spelling
from seqopt.objectives.expressions import parse_expression
from seqopt.spaces import GrammarSpace

if TYPE_CHECKING:
    from nltk import CFG

MOST_FORMS = 200_000
"""Canonical forms that are remembered."""


class FormulaSpace(GrammarSpace):
    """Formulas of a grammar; of those that describe the same functions only one is ever drawn or suggested.

    It is the canonical form (`seqopt.objectives.Canonical`), which other formulas are reduced to: ``c*c*x``,
    ``x*c-x*c`` and ``x/c`` to ``c*x``. A formula stands aside only if its form belongs to the grammar and the limits
    and is no longer than itself; where a form is shorter than the limits, brackets around it fill them. So nothing that
    the grammar can express within the limits is lost. All formulas of the grammar belong to the space, and have the
    form as their key: what was measured of one is known of all that are written otherwise.

    Args:
        grammar: As for `seqopt.spaces.GrammarSpace`.
        min_length: Fewest terminals.
        max_length: Most terminals.
        variables: Names that formulas may use.
        constant: What stands for a constant that is yet to be found, each time for another one; `None` for none.
        discount: As for `seqopt.spaces.GrammarSpace`.
        fingerprint: Likewise.

    Raises:
        InputError: As `seqopt.spaces.GrammarSpace` does.

    Example:
        >>> space = FormulaSpace("formulas:x+c", 3, 12, constant="c")
        >>> space.keys_of(["x*c-x*c", "c*x", "(c)", "c+sin(c)"]), space.contains("x*c-x*c")
        (['c*x', 'c*x', '(c)', '(c)'], True)
        >>> space.is_canonical("x*c-x*c"), space.is_canonical("c*x")
        (False, True)
    """

    def __init__(
        self,
        grammar: str | os.PathLike[str] | CFG,
        min_length: int = 1,
        max_length: int = 50,
        *,
        variables: Sequence[str] = ("x",),
        constant: str | None = None,
        discount: float = DISCOUNT,
        fingerprint: str | None = None,
    ) -> None:
        super().__init__(grammar, min_length, max_length, discount=discount, fingerprint=fingerprint)
        self.variables = tuple(variables)
        self.constant = constant
        spelling = Spelling.of(self.rules.terminals, constant)
        self._canonical = Canonical(spelling)
        self._spelled_out = Canonical(replace(spelling, powers=()))
        self._forms: dict[str, str] = {}
        self._trees: dict[str, ParseTree | None] = {}

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        found = super().config_arguments()
        kept = {name: value for name, value in found.items() if name not in ("accept", "kind")}
        return kept | {"variables": list(self.variables), "constant": self.constant}

    def form(self, string: str) -> str:
        """The formula that is drawn and suggested of those that describe the same functions; see the class.

        A string that is no formula in these variables is its own.
        """
        string = self._trimmed(string)
        found = self._forms.get(string)
        if found is None:
            if len(self._forms) >= MOST_FORMS:
                self._forms.clear()
            found = self._forms[string] = self._form(string)
        return found

    def _form(self, string: str) -> str:
        try:
            formula = parse_expression(string, self.variables, constant=self.constant)
        except InputError:
            return string
        text = self._canonical(formula)
        if text == string:
            return string
        if self._length(text) < self.min_length:
            text = self._filled(text)
        fits = self._length(text) <= min(self._length(string), self.max_length)
        return text if fits and self._tree(text) is not None else string

    def _filled(self, text: str) -> str:
        """A form that is too short, brought within the limits: without powers, or in brackets."""
        formula = parse_expression(text, self.variables, constant=self.constant)
        spelled = self._spelled_out(formula)
        while self._length(text) < self.min_length:
            text = f"({text})"
        within = self.min_length <= self._length(spelled) <= self._length(text)
        return spelled if within and self._tree(spelled) is not None else text

    def _length(self, text: str) -> int:
        return len(self._parser.tokenizer.tokenize(text))

    def _tree(self, text: str) -> ParseTree | None:
        """The tree of a form; `None` if it lies outside the space."""
        if text not in self._trees:
            if len(self._trees) >= MOST_FORMS:
                self._trees.clear()
            try:
                self._trees[text] = self.from_string(text)
            except InputError:
                self._trees[text] = None
        return self._trees[text]

    def is_canonical(self, string: str) -> bool:
        """Whether a formula is the one that is drawn and suggested of those that describe the same functions."""
        return self.form(string) == self._trimmed(string)

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The canonical form of each of ``strings``, or itself where the space has none; see the class.

        Raises:
            InputError: If one is not a string.
        """
        return [self.form(string) for string in strings]

    def _kept(self, tree: ParseTree) -> ParseTree | None:
        """See `seqopt.spaces.GrammarSpace`: the tree of the canonical form."""
        if not self._admits(tree):
            return None
        string = self.to_string(tree)
        form = self.form(string)
        return tree if form == string else self._tree(form)

    def __repr__(self) -> str:
        return f"Formula{super().__repr__().removeprefix('Grammar')}"
