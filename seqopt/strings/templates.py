"""Readable templates of sequences: a fixed framework, positions with a choice, optional parts, stretches of any length.

A template is read from left to right; blanks and line breaks do not count, and ``#`` begins a remark that ends with the
line.

========================  ==============================================================================
``EVQLVES``               these letters
``[AST]``                 one of these letters
``[^CP]``                 any letter but these
``x``                     any letter (of DNA and RNA ``N``, and the other IUPAC letters for their bases; ``.`` for all)
``W?``                    optional: the letter or nothing
``x{8}``, ``x{5-12}``     so many in a row, each chosen by itself; ``{5,12}`` is the same
``(GGGGS){1-3}``          a group, repeated
========================  ==============================================================================

A template describes strings by *columns*: one for each letter that a string can have. A string fills all columns of the
fixed parts, and of a part of variable length the first ones. Where a template can be read in several ways, a letter
takes the first column that leaves a way to read the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.strings.genetic_codes import AMBIGUITY
from seqopt.strings.identity import AMINO_ACIDS

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

EMPTY = -1
"""Stands in a column that a string does not fill, and after its last letter."""

MOST_COLUMNS = 20_000
"""Columns of a template."""

WORKSPACE = 1 << 25
"""Bytes that reading strings by a template may take at a time."""

LETTERS = {"protein": "".join(sorted(AMINO_ACIDS)), "dna": "ACGT", "rna": "ACGU"}
"""The letters of each kind of string."""


@dataclass(frozen=True)
class Block:
    """A part of a template.

    Attributes:
        choices: The letters of each position, one repetition.
        least: Fewest repetitions.
        most: Most repetitions.
    """

    choices: tuple[str, ...]
    least: int = 1
    most: int = 1

    @property
    def varies(self) -> bool:
        """Whether its number of repetitions does."""
        return self.least < self.most


class Template:
    """A template, and how strings are laid out on its columns.

    Args:
        text: The template; see the module.
        kind: What the strings are: ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``.
        letters: What ``x`` and ``.`` stand for, and what ``[^...]`` is taken out of; by default the twenty amino acids
            or four bases.

    Attributes:
        blocks: Its parts; neighbouring positions that each string has are one part.
        choices: The letters of each column.
        block_of: For each column the number of its part.

    Raises:
        InputError: For a template that cannot be read; the message says at which character.

    Example:
        >>> template = Template("MK[AV]x{2-3}(GS)?W")
        >>> template.width, template.shortest, [len(letters) for letters in template.choices]
        (9, 6, [1, 1, 2, 20, 20, 20, 1, 1, 1])
        >>> Template("MK[AVx")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: the template 'MK[AVx': the bracket '[' at character 3 is not closed: add ']'
    """

    def __init__(self, text: str, kind: str = "protein", letters: Iterable[str] | None = None) -> None:
        if not isinstance(text, str):
            raise InputError(f"a template is a text, such as 'MK[AV]x{{5-8}}W'; got {text!r}")
        self.text = text
        self.kind = kind
        self.letters = checked_letters(letters, kind)
        self.blocks = tuple(_merged(_Reader(text, kind, self.letters).blocks()))
        self.choices = tuple(letters for block in self.blocks for letters in block.choices * block.most)
        if len(self.choices) > MOST_COLUMNS:
            raise InputError(f"the template has strings of {len(self.choices):,} letters; at most {MOST_COLUMNS:,} may")
        self.block_of = np.repeat(
            np.arange(len(self.blocks)), [len(block.choices) * block.most for block in self.blocks]
        )
        if not self.shortest:
            raise InputError(f"{self.named}: all of it is optional: something must be there")

    @property
    def named(self) -> str:
        """The template, for messages."""
        return _named(self.text)

    @property
    def width(self) -> int:
        """Number of columns, which is the length of the longest string."""
        return len(self.choices)

    @property
    def shortest(self) -> int:
        """Length of the shortest string."""
        return sum(len(block.choices) * block.least for block in self.blocks)

    @property
    def one_length(self) -> bool:
        """Whether all strings have one length."""
        return not any(block.varies for block in self.blocks)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The letters that occur, sorted."""
        return tuple(sorted({letter for letters in self.choices for letter in letters}))

    @cached_property
    def permitted(self) -> BoolArray:
        """Which symbols each column permits, ``C x A``."""
        return np.array([[symbol in letters for symbol in self.symbols] for letters in self.choices], dtype=np.bool_)

    @cached_property
    def free(self) -> IntArray:
        """The columns that not all strings fill with the same letter, from 0."""
        return np.array(
            [
                column
                for column, letters in enumerate(self.choices)
                if len(letters) > 1 or self.blocks[self.block_of[column]].varies
            ],
            dtype=np.intp,
        )

    @cached_property
    def entries(self) -> list[list[int]]:
        """For each part the columns that can come first of it and what follows; the last list is the end alone."""
        starts = np.cumsum([0, *(len(block.choices) * block.most for block in self.blocks)]).tolist()
        found: list[list[int]] = [[self.width]]
        for block, start in zip(reversed(self.blocks), reversed(starts[:-1]), strict=True):
            found.append([start, *(found[-1] if block.least == 0 else [])])
        return found[::-1]

    @cached_property
    def follow(self) -> list[list[int]]:
        """For each column those that a string can fill next; `width` is the end of the string."""
        found: list[list[int]] = []
        for number, block in enumerate(self.blocks):
            size = len(block.choices)
            for column in range(len(found), len(found) + size * block.most):
                repetition, place = divmod(column - self.entries[number][0], size)
                following = []
                if place < size - 1 or repetition < block.most - 1:
                    following.append(column + 1)
                if place == size - 1 and repetition + 1 >= block.least:
                    following += self.entries[number + 1]
                found.append(following)
        return found

    def laid_out(self, rows: IntArray) -> tuple[IntArray, BoolArray]:
        """Where on the columns strings are.

        Args:
            rows: ``n x W`` numbers of `symbols`, `EMPTY` after the last letter of a string.

        Returns:
            ``n x C`` symbol numbers, `EMPTY` in columns that a string does not fill, and which of the ``n`` strings the
            template permits; the rows of others are all `EMPTY`.
        """
        n = len(rows)
        columns = np.full((n, self.width), EMPTY, dtype=np.intp)
        fits = np.zeros(n, dtype=np.bool_)
        if self.one_length:
            if rows.shape[1] >= self.width:
                inside = rows[:, : self.width]
                known = (inside != EMPTY).all(axis=1) & (rows[:, self.width :] == EMPTY).all(axis=1)
                fits = known & self.permitted[np.arange(self.width), inside].all(axis=1)
                columns[fits] = inside[fits]
            return columns, fits
        at_once = max(1, WORKSPACE // ((rows.shape[1] + 1) * (self.width + 1)))
        for start in range(0, n, at_once):
            block = slice(start, start + at_once)
            columns[block], fits[block] = self._read(rows[block])
        return columns, fits

    def _read(self, rows: IntArray) -> tuple[IntArray, BoolArray]:
        n, width = rows.shape
        lengths = (rows != EMPTY).sum(axis=1)
        # The last row is that of EMPTY.
        permitted = np.concatenate([self.permitted.T, np.zeros((1, self.width), dtype=np.bool_)])
        # possible[i, k]: in which column letter i of string k can be, given that the letters after it can be read.
        possible = np.zeros((width + 1, n, self.width + 1), dtype=np.bool_)
        possible[lengths, np.arange(n), self.width] = True
        adjacent, jumps = self._steps
        for index in range(width - 1, -1, -1):
            after = possible[index + 1]
            onwards = after[:, 1:] & adjacent
            for sources, targets in jumps:
                onwards[:, sources] |= after[:, targets].any(axis=1)[:, None]
            possible[index, :, : self.width] = onwards & permitted[rows[:, index]]
        columns = np.full((n, self.width), EMPTY, dtype=np.intp)
        first = np.zeros(self.width + 1, dtype=np.bool_)
        first[self.entries[0]] = True
        starts = possible[0] & first
        fits = starts.any(axis=1) & (lengths > 0)
        column = np.where(fits, starts.argmax(axis=1), self.width)
        dense = self._dense_follow
        for index in range(width):
            there = np.flatnonzero(fits & (index < lengths))
            columns[there, column[there]] = rows[there, index]
            # The first column that leaves a way on.
            column[there] = (dense[column[there]] & possible[index + 1][there]).argmax(axis=1)
        return columns, fits

    @cached_property
    def _steps(self) -> tuple[BoolArray, list[tuple[IntArray, IntArray]]]:
        """Which columns can be followed by their neighbour, and what else follows: sources with their targets."""
        adjacent = np.array([column + 1 in after for column, after in enumerate(self.follow)], dtype=np.bool_)
        groups: dict[tuple[int, ...], list[int]] = {}
        for column, after in enumerate(self.follow):
            if further := tuple(other for other in after if other != column + 1):
                groups.setdefault(further, []).append(column)
        return adjacent, [(np.array(sources), np.array(targets)) for targets, sources in groups.items()]

    @cached_property
    def _dense_follow(self) -> BoolArray:
        dense = np.zeros((self.width, self.width + 1), dtype=np.bool_)
        for column, following in enumerate(self.follow):
            dense[column, following] = True
        return dense

    def refusal(self, string: str) -> str:
        """Why a string does not fit; empty if it does.

        Example:
            >>> template = Template("MK[AV]x{2-3}W")
            >>> template.refusal("MKTGGW"), template.refusal("MKAGGW")
            ('T at position 3 does not fit the template, which has A or V there', '')
        """
        now = set(self.entries[0])
        for position, letter in enumerate(string, start=1):
            there = {column for column in now if column < self.width and letter in self.choices[column]}
            if not there:
                wanted = sorted({letter for column in now if column < self.width for letter in self.choices[column]})
                if not wanted:
                    return f"it goes on with {letter} at position {position}, where the template ends"
                return f"{letter} at position {position} does not fit the template, which has {_either(wanted)} there"
            now = {column for found in there for column in self.follow[found]}
        if self.width not in now:
            wanted = sorted({letter for column in now for letter in self.choices[column]})
            return f"it ends after position {len(string)}, where the template goes on with {_either(wanted)}"
        return ""


def checked_letters(letters: Iterable[str] | None, kind: str) -> str:
    """The letters of a space, sorted; by default those of the kind.

    Raises:
        InputError: If there are none, or for one that is no single character, is repeated, or is none of the kind.
    """
    known = LETTERS.get(kind)
    if letters is None:
        if known is None:
            raise InputError(f"say which letters there are: a {kind} has none by default")
        return known
    found = list(letters)
    for letter in found:
        if not isinstance(letter, str) or len(letter) != 1 or not letter.isprintable() or letter.isspace():
            raise InputError(f"{letter!r} is not a letter: give single characters")
        if known is not None and letter not in known:
            hint = ": use capital letters" if letter.upper() in known else ""
            raise InputError(f"{letter!r} is not a letter of kind {kind}, which has {known}{hint}")
        if found.count(letter) > 1:
            raise InputError(f"the letter {letter!r} is given twice")
    if not found:
        raise InputError("no letters: give at least one")
    return "".join(sorted(found))


class _Reader:
    """Reads a template from left to right."""

    def __init__(self, text: str, kind: str, letters: str) -> None:
        self.text = text
        self.kind = kind
        self.letters = letters
        self.at = 0

    def blocks(self) -> list[Block]:
        found: list[Block] = []
        while (mark := self._peek()) is not None:
            place = self.at
            if mark == "(":
                choices = self._group()
            elif mark in ")]}":
                raise self._error(f"{mark!r} at character {place + 1} closes nothing that is open: remove it")
            elif mark in "?{":
                raise self._error(f"{mark!r} at character {place + 1} must follow a letter, a bracket or a group")
            else:
                choices = (self._letters(),)
            least, most = self._repeats()
            found.append(Block(choices, least, most))
        if not found:
            raise InputError("the template is empty: give letters, such as 'MK[AV]x{5-8}W'")
        return found

    def _peek(self) -> str | None:
        """The next mark that counts."""
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif mark.isspace():
                self.at += 1
            else:
                return mark
        return None

    def _group(self) -> tuple[str, ...]:
        start = self.at
        self.at += 1
        choices: list[str] = []
        while (mark := self._peek()) != ")":
            if mark is None:
                raise self._error(f"the group '(' at character {start + 1} is not closed: add ')'")
            if mark in "(?{":
                raise self._error(
                    f"{mark!r} at character {self.at + 1} stands within a group: only letters and brackets can be "
                    "repeated together"
                )
            if mark in "]}":
                raise self._error(f"{mark!r} at character {self.at + 1} closes nothing that is open: remove it")
            choices.append(self._letters())
        self.at += 1
        if not choices:
            raise self._error(f"the group at character {start + 1} is empty: remove it, or put letters into it")
        return tuple(choices)

    def _letters(self) -> str:
        """The letters that one position permits."""
        place, mark = self.at, self.text[self.at]
        self.at += 1
        if mark != "[":
            return self._meant(mark, place)
        found: list[str] = []
        negated = False
        while (mark_or_end := self._peek()) != "]":
            if mark_or_end is None or mark_or_end in "[(){}":
                raise self._error(f"the bracket '[' at character {place + 1} is not closed: add ']'")
            if mark_or_end == "^" and not found and not negated:
                negated = True
                self.at += 1
                continue
            inside, at = mark_or_end, self.at
            self.at += 1
            for letter in self._meant(inside, at):
                if letter in found and len(self._meant(inside, at)) == 1:
                    raise self._error(f"{letter!r} at character {at + 1} is in its bracket twice: give it once")
                found += [letter] if letter not in found else []
        self.at += 1
        if not found:
            raise self._error(f"the bracket at character {place + 1} is empty: put letters into it")
        kept = "".join(letter for letter in self.letters if letter not in found) if negated else "".join(sorted(found))
        if not kept:
            raise self._error(f"the bracket at character {place + 1} leaves no letter: take some out of it")
        return kept

    def _meant(self, mark: str, place: int) -> str:
        """The letters that one mark stands for."""
        if mark == ".":
            return self.letters
        if self.kind == "text":
            if mark in "^-,*":
                raise self._error(f"{mark!r} at character {place + 1} is no letter: leave it out")
            return mark
        upper = mark.upper()
        if self.kind in ("dna", "rna"):
            bases = AMBIGUITY.get("T" if upper == "U" and self.kind == "rna" else upper)
            if bases is not None and not (upper == "T" and self.kind == "rna"):
                found = bases.replace("T", "U") if self.kind == "rna" else bases
                return "".join(letter for letter in found if letter in self.letters) if upper == "N" else found
        elif upper == "X":
            return self.letters
        elif upper in LETTERS["protein"]:
            return upper
        known = "amino acid" if self.kind == "protein" else "base"
        raise self._error(f"{mark!r} at character {place + 1} is no {known}; expected {self._expected()}")

    def _expected(self) -> str:
        return (
            "one of ACDEFGHIKLMNPQRSTVWY, x for any, [...], (...), ? or {...}"
            if self.kind == "protein"
            else "A, C, G, T or U, an IUPAC letter such as N, [...], (...), ? or {...}"
        )

    def _repeats(self) -> tuple[int, int]:
        """The fewest and most repetitions of what was just read."""
        mark = self._peek()
        if mark == "?":
            self.at += 1
            return 0, 1
        if mark != "{":
            return 1, 1
        start = self.at
        end = self.text.find("}", start)
        if end < 0:
            raise self._error(f"the brace '{{' at character {start + 1} is not closed: add '}}'")
        inside = self.text[start + 1 : end]
        first, dash, last = inside.replace(",", "-").partition("-")
        if not first.strip().isdecimal() or not (last.strip().isdecimal() or not dash):
            raise self._error(
                f"'{{{inside}}}' at character {start + 1} is no number of repetitions: write {{8}} or {{5-12}}"
            )
        least, most = int(first), int(last if dash else first)
        if not 0 <= least <= most or not most:
            raise self._error(
                f"'{{{inside}}}' at character {start + 1}: the fewest repetitions come first, and the most are at "
                "least 1"
            )
        if most > MOST_COLUMNS:
            raise self._error(f"'{{{inside}}}' at character {start + 1}: at most {MOST_COLUMNS:,} repetitions")
        self.at = end + 1
        return least, most

    def _error(self, text: str) -> InputError:
        return InputError(f"{_named(self.text)}: {text}")


def _merged(blocks: Sequence[Block]) -> list[Block]:
    """Neighbouring blocks without variable repetitions as one."""
    found: list[Block] = []
    for block in blocks:
        if block.varies:
            found.append(block)
            continue
        choices = block.choices * block.most
        if found and not found[-1].varies:
            choices = found.pop().choices + choices
        found.append(Block(choices))
    return found


def _either(letters: Sequence[str]) -> str:
    if len(letters) > 8:
        return f"one of {''.join(letters)}"
    return letters[0] if len(letters) == 1 else f"{', '.join(letters[:-1])} or {letters[-1]}"


def _named(text: str) -> str:
    shown = " ".join(text.split())
    return f"the template {shown if len(shown) <= 60 else shown[:57] + '...'!r}"
