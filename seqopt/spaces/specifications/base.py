"""What a constraint on genes offers: what of it moves can keep by themselves, and what must be checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqopt.spaces.motifs import BoolArray, IntArray
from seqopt.spaces.specifications.windows import Changes, cut_out, within
from seqopt.strings.genetic_codes import BASES, GeneticCode
from seqopt.utils.config import Configurable


@dataclass(frozen=True)
class Frame:
    """The genes that a constraint speaks of.

    Attributes:
        choices: The codons of each position, before any constraint.
        residues: The residue of each position; ``"start"`` before a protein that does not begin with M, ``"stop"``
            behind it.
        code: The genetic code.
        upstream: Bases before the gene.
        downstream: Bases behind it.
    """

    choices: tuple[tuple[str, ...], ...]
    residues: tuple[str, ...]
    code: GeneticCode
    upstream: str = ""
    downstream: str = ""

    @property
    def bases(self) -> int:
        """Length of the genes."""
        return 3 * len(self.choices)

    def permitted(self, constraints: Iterable[Specification]) -> list[tuple[str, ...]]:
        """The codons of each position that all constraints leave; of a position none if they exclude each other."""
        left = [tuple(codons) for codons in self.choices]
        for constraint in constraints:
            left = [tuple(constraint.permitted(self, index, codons)) for index, codons in enumerate(left)]
        return left


@dataclass(frozen=True)
class Cut:
    """A linear condition that every permitted gene meets and a given one does not.

    Attributes:
        codons: Of each position that counts the coefficients of its codons; others count 0.
        low: The sum of the gene's coefficients is at least this,
        high: and at most this.
    """

    codons: Mapping[int, Mapping[str, float]]
    low: float
    high: float


class Specification(Configurable, ABC):
    """A constraint on the genes of a protein.

    What can be is *compiled*: `permitted` leaves codons out, and `motifs` go into the automaton that random genes,
    moves and exact optima follow, so that no gene ever breaks them. What is left, `marked` finds in whole populations
    at once. A child of permitted genes is looked at by `breaks_near`: only in the windows that a move has changed
    where a breach has a `reach`, as a whole otherwise.
    """

    checked: ClassVar[bool] = False
    """Whether anything is left to `marked` after `permitted` and `motifs`."""

    beside: ClassVar[bool] = True
    """Whether a breach may reach into what stands before and behind the gene."""

    @property
    def reach(self) -> int | None:
        """Most bases of a stretch in which a breach lies, and by which alone `marked` finds it, wherever it stands.

        `None` if there is no such number, so that genes are looked at as a whole.
        """
        return None

    @property
    @abstractmethod
    def text(self) -> str:
        """What genes are kept to, such as ``"no GAATTC on either strand"``."""

    def check(self, frame: Frame) -> None:
        """Refuse a constraint that does not fit the genes.

        Raises:
            InputError: If it speaks of more bases than they have, or of codons that cannot be.
        """

    def permitted(self, frame: Frame, position: int, codons: Sequence[str]) -> Sequence[str]:
        """The codons that a position may take, of those that it may take without this constraint."""
        return codons

    def motifs(self) -> list[tuple[str, str]]:
        """Motifs that no gene may hold, as they are named and as they are written, the other strand's included."""
        return []

    def marked(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """The bases that take part in a breach, ``n x L``.

        Args:
            bases: Numbers of bases (`seqopt.strings.genetic_codes.BASES`), ``n x L``, with what stands before and
                behind the genes.
            first: Where the genes begin.
            stop: Where they end. What is marked outside does not count: a breach that lies there is not the gene's.
        """
        return np.zeros(bases.shape, dtype=np.bool_)

    def breaks(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """Which genes break it, by `marked` if nothing is quicker: see there for the arguments."""
        return np.asarray(self.marked(bases, first, stop)[:, first:stop].any(axis=1))

    def breaks_near(self, bases: IntArray, first: int, stop: int, changes: Changes) -> BoolArray:
        """`breaks`, of genes that begin and end as permitted ones do: see `Changes`."""
        if self.reach is None:
            return self.breaks(bases, first, stop)
        low, high = (0, bases.shape[1]) if self.beside else (first, stop)
        broken = np.zeros(len(bases), dtype=np.bool_)
        for rows, begin, width in changes.windows(self.reach, low, high):
            part = cut_out(bases, rows, begin, width)
            if (low, high) == (first, stop):
                broken[rows] = self.breaks(part, 0, width)
            else:
                inside = within(begin, width, first, stop)
                broken[rows] = (self.marked(part, 0, width) & inside).any(axis=1)
        return broken

    def wanted_gc(self, bases: IntArray, first: int, stop: int) -> IntArray | None:
        """Of each marked base whether there is too little (1) or too much (-1) G and C; `None` if that is no matter."""
        return None

    def broken(self, bases: IntArray, first: int, stop: int) -> str:
        """How a ``1 x L`` gene breaks it."""
        indices = np.flatnonzero(self.marked(bases, first, stop)[0, first:stop])
        return f"it does not keep to {self.text}: see bases {indices[0] + 1} to {indices[-1] + 1}"

    def cuts(self, gene: Sequence[str], bases: IntArray, first: int, stop: int) -> list[Cut]:
        """Linear conditions that permitted genes meet and this gene does not; empty if it breaks nothing.

        By default one: not all codons of the breach as they are here. That is right where a breach depends on the bases
        that are marked and no others.

        Args:
            gene: Its codons.
            bases: Its bases, ``1 x L``.
            first: Where it begins in ``bases``.
            stop: Where it ends.
        """
        marked = self.marked(bases, first, stop)[0, first:stop]
        positions = np.flatnonzero(marked.reshape(-1, 3).any(axis=1)).tolist()
        return [all_but(gene, positions)] if positions else []


def all_but(gene: Sequence[str], positions: Sequence[int]) -> Cut:
    """Not all of these codons as they are in this gene."""
    return Cut({position: {gene[position]: 1.0} for position in positions}, 0.0, len(positions) - 1.0)


def cuts_of(frame: Frame, constraints: Iterable[Specification], gene: str) -> list[Cut]:
    """The `Specification.cuts` of all constraints for one gene in DNA letters."""
    first, stop = len(frame.upstream), len(frame.upstream) + len(gene)
    bases = np.array([[BASES.index(base) for base in frame.upstream + gene + frame.downstream]])
    codons = [gene[begin : begin + 3] for begin in range(0, len(gene), 3)]
    return [cut for constraint in constraints for cut in constraint.cuts(codons, bases, first, stop)]
