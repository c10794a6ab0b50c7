"""Constraints in words, as they are typed: ``gc-window 50 0.3 0.7``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seqopt.errors import InputError
from seqopt.spaces.specifications.base import Specification
from seqopt.spaces.specifications.codons import FixedStretch, NoRareCodons
from seqopt.spaces.specifications.composition import EndMelting, GCWindow
from seqopt.spaces.specifications.motifs import ForbiddenMotif, ForbiddenSignal, LongestRun, TandemRepeats
from seqopt.spaces.specifications.repeats import Hairpins, UniqueKmers

SYNTHESIS: tuple[Specification, ...] = (
    LongestRun(9, "AT"),
    LongestRun(6, "CG"),
    TandemRepeats(2, 10),
    TandemRepeats(3, 7),
    GCWindow(100, 0.2, 0.8),
    UniqueKmers(20),
    Hairpins(14, 60),
)
"""What most suppliers of double-stranded fragments can make, by no supplier's own rules.

No run of more than 9 of A or T or 6 of C or G; no two bases ten times or three bases seven times in a row; GC content
0.2 to 0.8 in every 100 bases; no 20 bases twice, on either strand; no stem of 14 bases within 60.
"""


@dataclass(frozen=True)
class ConstraintForm:
    """How a constraint is typed.

    Attributes:
        name: Its first word.
        arguments: Its others, as they are called.
        optional: How many of the last of them may be left out.
        description: One line.
        build: From the words to the constraints.
    """

    name: str
    arguments: tuple[str, ...]
    optional: int
    description: str
    build: Callable[[Sequence[str]], Sequence[Specification]]

    @property
    def usage(self) -> str:
        """As it is typed, what may be left out in brackets."""
        needed = len(self.arguments) - self.optional
        shown = [*self.arguments[:needed], *(f"[{argument}]" for argument in self.arguments[needed:])]
        return " ".join([self.name, *shown])


def _integer(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{what} is {text!r}; expected an integer") from None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} is {text!r}; expected a number") from None


CONSTRAINTS: Mapping[str, ConstraintForm] = {
    form.name: form
    for form in (
        ConstraintForm(
            "avoid",
            ("MOTIF|ENZYME",),
            0,
            "no such site on either strand",
            lambda words: [ForbiddenMotif(words[0])],
        ),
        ConstraintForm(
            "avoid-one-strand",
            ("MOTIF|ENZYME",),
            0,
            "no such site on the strand of the gene",
            lambda words: [ForbiddenMotif(words[0], both_strands=False)],
        ),
        ConstraintForm(
            "signal",
            ("NAME",),
            0,
            "no poly-a, splice-donor, splice-acceptor, shine-dalgarno, chi or tata signals",
            lambda words: [ForbiddenSignal(words[0].lower())],
        ),
        ConstraintForm(
            "gc-window",
            ("BASES", "LOW", "HIGH"),
            0,
            "fraction of G and C in every window",
            lambda words: [GCWindow(_integer(words[0], "BASES"), _number(words[1], "LOW"), _number(words[2], "HIGH"))],
        ),
        ConstraintForm(
            "longest-run",
            ("BASES", "LETTERS"),
            1,
            "longest run of one base, of those of LETTERS or of any",
            lambda words: [LongestRun(_integer(words[0], "BASES"), words[1] if len(words) > 1 else "ACGT")],
        ),
        ConstraintForm(
            "tandem",
            ("UNIT", "TIMES"),
            0,
            "no unit of two or three bases so many times in a row",
            lambda words: [TandemRepeats(_integer(words[0], "UNIT"), _integer(words[1], "TIMES"))],
        ),
        ConstraintForm(
            "unique-kmers",
            ("BASES",),
            0,
            "no stretch of so many bases twice, on either strand: no longer repeats",
            lambda words: [UniqueKmers(_integer(words[0], "BASES"))],
        ),
        ConstraintForm(
            "hairpins",
            ("STEM", "WINDOW"),
            0,
            "no stem of so many bases within a window",
            lambda words: [Hairpins(_integer(words[0], "STEM"), _integer(words[1], "WINDOW"))],
        ),
        ConstraintForm(
            "end-melting",
            ("BASES", "LOW", "HIGH"),
            0,
            "melting temperature of the first and last bases, in degrees Celsius",
            lambda words: [
                EndMelting(_integer(words[0], "BASES"), _number(words[1], "LOW"), _number(words[2], "HIGH"))
            ],
        ),
        ConstraintForm(
            "no-rare",
            ("ORGANISM", "SHARE"),
            0,
            "no codon of a smaller share among its synonyms",
            lambda words: [NoRareCodons(words[0], _number(words[1], "SHARE"))],
        ),
        ConstraintForm(
            "fixed",
            ("CODON", "BASES"),
            0,
            "bases that stay as they are, from a codon on, counted from 1 (N any)",
            lambda words: [FixedStretch(_integer(words[0], "CODON"), words[1])],
        ),
        ConstraintForm(
            "synthesis",
            (),
            0,
            "runs, repeats, hairpins and GC windows that most suppliers can make",
            lambda words: SYNTHESIS,
        ),
    )
}
"""The constraints that can be typed, by their first word."""


def parse_constraint(text: str) -> list[Specification]:
    """The constraints that a text names.

    Args:
        text: A name of `CONSTRAINTS` and its arguments, with blanks between them.

    Raises:
        InputError: For an unknown name, too few or too many arguments, or one that cannot be used.

    Example:
        >>> [one.text for one in parse_constraint("gc-window 50 0.3 0.7")]
        ['GC content 0.3 to 0.7 in every window of 50 bases']
        >>> parse_constraint("gc-window 50 0.3")
        Traceback (most recent call last):
            ...
        seqopt.errors.InputError: constraint 'gc-window 50 0.3': 2 words after gc-window; write gc-window BASES LOW HIGH
    """
    name, *words = text.split() or [""]
    form = CONSTRAINTS.get(name.lower())
    if form is None:
        close = difflib.get_close_matches(name.lower(), CONSTRAINTS, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown constraint {text!r}: {guess}There are {', '.join(CONSTRAINTS)}")
    if not len(form.arguments) - form.optional <= len(words) <= len(form.arguments):
        raise InputError(f"constraint {text!r}: {len(words)} words after {form.name}; write {form.usage}")
    try:
        return list(form.build(words))
    except InputError as error:
        raise InputError(f"constraint {text!r}: {error}") from error
