"""Strings of a readable template: a framework with choices, optional parts and stretches of variable length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces.automaton import template_automaton
from seqopt.spaces.populations import PADDING, BoolArray, Population, SequenceSpace, checked_kind, described_size
from seqopt.strings.templates import Template

FloatArray = npt.NDArray[np.float64]


class TemplateSpace(SequenceSpace):
    """The strings of a template, such as the variants of an antibody with loops of several lengths.

    Templates are described in `seqopt.strings.templates`: ``EVQL[AST]``, ``x{5-12}`` for five to twelve letters of any
    kind, ``W?``, ``(GGGGS){1-3}``.

    *Sampling* draws each string of the space with the same probability, by counting completions in an automaton that
    knows each string once. So most have stretches near their greatest lengths, since most strings do.

    *Mutation* substitutes a letter, inserts one repetition into a part of variable length, or deletes one; each of the
    three that is possible is as likely as the others, and so is each place. A substituted letter is another one than
    before. *Crossover* swaps the columns of two parents up to a uniform cut between those that vary, so that a loop of
    a child has the letters of the first up to the cut and of the second after it; its length lies between theirs. Both
    keep to the template.

    Args:
        template: The template.
        letters: What ``x`` stands for, for example all amino acids without cysteine.
        parent: A string of the space that is known, such as the wild type: results are named by what they change of it.
        accept: Keeps only strings for which this predicate holds.
        kind: What the strings are: ``"protein"``, ``"dna"``, ``"rna"``, or ``"text"``, which needs ``letters``.

    Raises:
        InputError: For a template that cannot be read (with the character), unknown letters, a molecule, or a parent
            that is not in the space (with the position).

    Example:
        >>> space = TemplateSpace("CAR[DG]x{2-3}FDY")
        >>> space.size, space.contains("CARDSSFDY"), space.contains("CARDSFDY")
        (16800, True, False)
        >>> rng = np.random.default_rng(0)
        >>> all(space.contains(child) for child in space.mutate(space.sample(50, rng), rng))
        True
    """

    def __init__(
        self,
        template: str,
        *,
        letters: Iterable[str] | None = None,
        parent: str | None = None,
        accept: Callable[[str], bool] | None = None,
        kind: str = "protein",
    ) -> None:
        if checked_kind(kind) == "molecule":
            raise InputError("a template is of sequences: for molecules use GrammarSpace or a pool")
        self.template = Template(template, kind, letters)
        self._automaton = template_automaton(self.template)
        symbols = self.template.symbols
        super().__init__(
            symbols,
            self.template.width,
            kind=kind,
            accept=accept,
            encoder=Encoder("characters", Alphabet(symbols)),
        )
        blocks = self.template.blocks
        starts = np.cumsum([0, *(len(block.choices) * block.most for block in blocks)])
        self._starts = starts[:-1]
        self._varying = np.array([number for number, block in enumerate(blocks) if block.varies], dtype=np.intp)
        self._units = np.array([len(block.choices) for block in blocks])
        self._least = np.array([block.least for block in blocks])
        self._most = np.array([block.most for block in blocks])
        self._free = self.template.free
        # Children are cut from their parents between columns that vary, and between whole repetitions.
        of = self.template.block_of[self._free]
        whole = ~np.isin(of, self._varying) | ((self._free - self._starts[of]) % self._units[of] == 0)
        self._cuts = self._free[1:][whole[1:]]
        self._counts = self.template.permitted.sum(axis=1)
        # The permitted symbols of each column come first, in their order.
        self._options = np.argsort(~self.template.permitted, axis=1, kind="stable")
        self._places = np.argsort(self._options, axis=1)
        self.parent = None
        if parent is not None:
            try:
                self.parent = self.from_string(parent)
            except InputError as error:
                raise InputError(f"the parent {error}") from error

    @property
    def size(self) -> int:
        """Number of different strings, ``accept`` not counted: exact, however large."""
        return self._automaton.size

    @property
    def choices(self) -> tuple[tuple[str, ...], ...] | None:
        """The letters of each position, where all strings have one length; else `None`."""
        return tuple(map(tuple, self.template.choices)) if self.template.one_length else None

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "template": self.template.text,
            "letters": self.template.letters,
            "parent": self.parent,
            "accept": self.accept,
            "kind": self.kind,
        }

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        return self._automaton.drawn(n, rng)

    def _unranked(self, ranks: npt.NDArray[np.int64]) -> Population:
        return self._automaton.unranked(ranks)

    def _rows(self, strings: Sequence[str]) -> Population | None:
        lengths = np.fromiter(map(len, strings), dtype=np.intp, count=len(strings))
        if (lengths > self.template.width).any():
            return None
        rows = self._numbered(strings, self.template.width)
        if rows is None or not ((rows != PADDING).sum(axis=1) == lengths).all():
            return None
        # From here on, rows are columns of the template: each string is read once.
        columns, fits = self.template.laid_out(rows)
        return columns if fits.all() else None

    def _strings(self, rows: Population) -> list[str]:
        return super()._strings(_packed(rows))

    def _explained(self, string: str) -> str:
        return self.template.refusal(string) or "it holds a blank or an unprintable character"

    def _changed(self, rows: Population, rng: np.random.Generator) -> Population:
        repeats = self._repeats(rows)
        filled = rows[:, self._free] != PADDING
        several = filled & (self._counts[self._free] > 1)[None, :]
        longer = repeats < self._most[self._varying][None, :]
        shorter = repeats > self._least[self._varying][None, :]
        possible = np.stack([several.any(axis=1), longer.any(axis=1), shorter.any(axis=1)], axis=1)
        kind = _chosen(possible, rng)
        kind[~possible.any(axis=1)] = -1
        found = rows.copy()
        rows_of = [np.flatnonzero(kind == number) for number in range(3)]
        if len(rows_of[0]):
            self._substitute(found, rows_of[0], several[rows_of[0]], rng)
        for sign, allowed in ((1, longer), (-1, shorter)):
            there = rows_of[1 if sign > 0 else 2]
            if len(there):
                part = _chosen(allowed[there], rng)
                found[there] = self._resized(rows[there], self._varying[part], repeats[there, part], sign, rng)
        return found

    def _substitute(
        self, columns: Population, there: npt.NDArray[np.intp], possible: BoolArray, rng: np.random.Generator
    ) -> None:
        """Write another letter into one of the possible free columns of each of these rows."""
        column = self._free[_chosen(possible, rng)]
        now = self._places[column, columns[there, column]]
        other = rng.integers(self._counts[column] - 1)
        columns[there, column] = self._options[column, other + (other >= now)]

    def _resized(
        self,
        columns: Population,
        parts: npt.NDArray[np.intp],
        repeats: npt.NDArray[np.intp],
        sign: int,
        rng: np.random.Generator,
    ) -> Population:
        """Rows with one repetition of a part more (1), of random letters, or one less (-1)."""
        width = columns.shape[1]
        start, unit = self._starts[parts][:, None], self._units[parts][:, None]
        place = rng.integers(repeats + (1 if sign > 0 else 0))[:, None]
        index = np.arange(width)[None, :]
        repetition = np.where(index >= start, (index - start) // unit, -1)
        inside = (repetition >= 0) & (repetition < self._most[parts][:, None])
        if sign > 0:
            source = index - unit * (inside & (repetition > place))
            found = np.take_along_axis(columns, source, axis=1)
            fresh = inside & (repetition == place)
            at = np.nonzero(fresh)
            found[at] = self._options[at[1], rng.integers(self._counts[at[1]])]
            return found
        source = np.minimum(index + unit * (inside & (repetition >= place)), width - 1)
        found = np.take_along_axis(columns, source, axis=1)
        found[inside & (repetition >= repeats[:, None] - 1)] = PADDING
        return found

    def _crossed(
        self, first: Population, second: Population, rng: np.random.Generator
    ) -> tuple[Population, Population]:
        if not len(self._cuts):
            return first.copy(), second.copy()
        cut = self._cuts[rng.integers(len(self._cuts), size=len(first))]
        swapped = np.arange(self.template.width)[None, :] < cut[:, None]
        return np.where(swapped, second, first), np.where(swapped, first, second)

    def _repeats(self, columns: Population) -> npt.NDArray[np.intp]:
        """How often each part of variable length is repeated, ``n x V``."""
        found = np.zeros((len(columns), len(self._varying)), dtype=np.intp)
        for place, part in enumerate(self._varying.tolist()):
            start, unit = int(self._starts[part]), int(self._units[part])
            end = start + unit * int(self._most[part])
            found[:, place] = (columns[:, start:end] != PADDING).sum(axis=1) // unit
        return found

    def __repr__(self) -> str:
        text = "".join(self.template.text.split())
        return f"TemplateSpace({text if len(text) <= 40 else text[:37] + '...'!r}: {described_size(self)} strings)"


def _packed(columns: Population) -> Population:
    """Rows with their symbols first, in their order."""
    order = np.argsort(columns == PADDING, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _chosen(possible: BoolArray, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The index of one of the possible items of each row, each as likely as the others; 0 where there is none."""
    counts = possible.sum(axis=1)
    wanted = rng.integers(np.maximum(counts, 1)) + 1
    found: npt.NDArray[np.intp] = (np.cumsum(possible, axis=1) >= wanted[:, None]).argmax(axis=1)
    return found
