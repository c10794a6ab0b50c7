"""Constraints on composition within windows: GC content, and the melting temperature of the ends.

References:
    SantaLucia, J. (1998). A unified view of polymer, dumbbell, and oligonucleotide DNA nearest-neighbor
        thermodynamics. PNAS 95, 1460-1465.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np

from seqopt.errors import InputError
from seqopt.spaces.motifs import BoolArray, IntArray
from seqopt.spaces.specifications.base import Cut, Frame, Specification, all_but
from seqopt.spaces.specifications.windows import Changes
from seqopt.strings.genetic_codes import BASES
from seqopt.utils.arguments import checked_integer

_IS_GC = np.array([base in "GC" for base in BASES])

GAS_CONSTANT = 1.987
"""In cal / (K mol)."""

_STACKS = {
    **{"AA": (-7.9, -22.2), "AT": (-7.2, -20.4), "TA": (-7.2, -21.3), "CA": (-8.5, -22.7), "GT": (-8.4, -22.4)},
    **{"CT": (-7.8, -21.0), "GA": (-8.2, -22.2), "CG": (-10.6, -27.2), "GC": (-9.8, -24.4), "GG": (-8.0, -19.9)},
}
"""Enthalpy in kcal/mol and entropy in cal/(K mol) of neighbouring base pairs: table 2 of SantaLucia (1998)."""

_INITIATION = {"G": (0.1, -2.8), "A": (2.3, 4.1)}
"""Of an end with a GC and with an AT pair."""


class GCWindow(Specification):
    """GC content within bounds in every window of the gene.

    Windows lie wholly within the gene. The number of G and C is compared, so a bound that falls between two numbers is
    kept as exactly as it can be.

    Args:
        window: Bases of a window.
        low: Lowest fraction of G and C.
        high: Highest.

    Example:
        >>> GCWindow(50, 0.3, 0.7).text
        'GC content 0.3 to 0.7 in every window of 50 bases'
    """

    checked = True
    beside = False

    def __init__(self, window: int, low: float, high: float) -> None:
        self.window = checked_integer("the window of GC content", window, 1, "expected an integer of bases")
        self.low, self.high = float(low), float(high)
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(
                f"the GC content of windows is bounded by {low} and {high}; expected two fractions in order, 0 to 1"
                + (f", such as {self.low / 100:g} and {self.high / 100:g}" if 1 < self.high <= 100 else "")
            )
        numbers = np.arange(self.window + 1) / self.window
        inside = np.flatnonzero((numbers >= self.low) & (numbers <= self.high))
        if not len(inside):
            raise InputError(
                f"no number of G and C out of {window} bases is between {low:g} and {high:g} of them: widen the bounds "
                "or the window"
            )
        self._least, self._most = int(inside[0]), int(inside[-1])

    @property
    def reach(self) -> int:
        """See `Specification`."""
        return self.window

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"GC content {self.low:g} to {self.high:g} in every window of {self.window} bases"

    def check(self, frame: Frame) -> None:
        """See `Specification`."""
        if self.window > frame.bases:
            raise InputError(
                f"the window of GC content is {self.window} bases, and the gene has {frame.bases}: give a shorter "
                "window, or bound the content of the whole gene (--gc)"
            )

    def marked(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        found = np.zeros(bases.shape, dtype=np.bool_)
        outside = self._outside(bases, first, stop) != 0
        if outside.size:
            found[:, first:stop] = _covered(outside, self.window, stop - first)
        return found

    def breaks(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        return np.asarray((self._outside(bases, first, stop) != 0).any(axis=1))

    def wanted_gc(self, bases: IntArray, first: int, stop: int) -> IntArray | None:
        """See `Specification`."""
        wanted = np.zeros(bases.shape, dtype=np.int64)
        outside = self._outside(bases, first, stop)
        if outside.size:
            wanted[:, first:stop] = np.where(_covered(outside > 0, self.window, stop - first), 1, 0)
            wanted[:, first:stop] -= np.where(_covered(outside < 0, self.window, stop - first), 1, 0)
        return wanted

    def broken(self, bases: IntArray, first: int, stop: int) -> str:
        """See `Specification`."""
        begin = int(np.flatnonzero(self._outside(bases, first, stop)[0])[0])
        count = int(_IS_GC[bases[0, first + begin : first + begin + self.window]].sum())
        return (
            f"its GC content in bases {begin + 1} to {begin + self.window} is {count / self.window:.4f}, not between "
            f"{self.low:g} and {self.high:g}"
        )

    def cuts(self, gene: Sequence[str], bases: IntArray, first: int, stop: int) -> list[Cut]:
        """See `Specification`: of each stretch of windows outside the one that is furthest outside."""
        outside = self._outside(bases, first, stop)[0]
        found = []
        for begin in _worst(np.abs(outside), self.window):
            end = begin + self.window
            codons = {
                position: (max(begin - 3 * position, 0), min(end - 3 * position, 3))
                for position in range(begin // 3, -(-end // 3))
            }
            found.append((codons, float(self._least), float(self._most)))
        return [Cut(_GCInside(codons), low, high) for codons, low, high in found]

    def _outside(self, bases: IntArray, first: int, stop: int) -> IntArray:
        """G and C that each window lacks (positive) or has too many (negative)."""
        totals = np.zeros((len(bases), stop - first + 1), dtype=np.int64)
        _IS_GC[bases[:, first:stop]].cumsum(axis=1, out=totals[:, 1:])
        counts = totals[:, self.window :] - totals[:, : max(totals.shape[1] - self.window, 0)]
        return np.maximum(self._least - counts, 0) - np.maximum(counts - self._most, 0)


class _GCInside(dict[int, dict[str, float]]):
    """Of each position the G and C of every codon in a part of it."""

    def __init__(self, parts: dict[int, tuple[int, int]]) -> None:
        super().__init__({position: _gc_inside(*part) for position, part in parts.items()})


@cache
def _gc_inside(low: int, high: int) -> dict[str, float]:
    codons = ["".join((a, b, c)) for a in BASES for b in BASES for c in BASES]
    return {codon: float(sum(base in "GC" for base in codon[low:high])) for codon in codons}


class EndMelting(Specification):
    r"""Melting temperature of the first and the last bases of the gene within bounds, as primers will bind there.

    By the nearest-neighbour model of SantaLucia (1998),

        T = 1000 dH / (dS + R ln(c / 4)) - 273.15,   dS = dS(1 M) + 0.368 (n - 1) ln [Na+],

    for n bases at a strand concentration c = 0.25 uM and 50 mM of sodium, the terms of initiation at both ends included
    and those of self-complementary strands not.

    Args:
        bases: How many at each end.
        low: Lowest temperature in degrees Celsius.
        high: Highest.

    Example:
        >>> EndMelting(20, 50, 65).text
        'melting temperature of the first and last 20 bases 50 to 65 degrees Celsius'
    """

    checked = True
    concentration: ClassVar[float] = 0.25e-6
    sodium: ClassVar[float] = 0.05

    def __init__(self, bases: int, low: float, high: float) -> None:
        self.bases = checked_integer("the bases of an end", bases, 8, "expected an integer of at least 8")
        self.low, self.high = float(low), float(high)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise InputError(f"melting temperatures are bounded by {low} and {high}; expected two numbers in order")

    @property
    def text(self) -> str:
        """See `Specification`."""
        return (
            f"melting temperature of the first and last {self.bases} bases {self.low:g} to {self.high:g} degrees "
            "Celsius"
        )

    def check(self, frame: Frame) -> None:
        """See `Specification`."""
        if self.bases > frame.bases:
            raise InputError(f"an end of {self.bases} bases is longer than the gene, which has {frame.bases}")

    def marked(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        found = np.zeros(bases.shape, dtype=np.bool_)
        for begin, end in self._ends(first, stop):
            found[:, begin:end] |= self._outside(bases[:, begin:end])[:, None]
        return found

    def breaks(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        begun, ended = (self._outside(bases[:, begin:end]) for begin, end in self._ends(first, stop))
        return begun | ended

    def breaks_near(self, bases: IntArray, first: int, stop: int, changes: Changes) -> BoolArray:
        """See `Specification`: an end is new if it is as in neither of the genes."""
        broken = np.zeros(len(bases), dtype=np.bool_)
        for begin, end in self._ends(first, stop):
            rows = np.flatnonzero((changes.begin < end) & (changes.end >= begin))
            broken[rows] |= self._outside(bases[rows, begin:end])
        return broken

    def _ends(self, first: int, stop: int) -> tuple[tuple[int, int], tuple[int, int]]:
        return (first, first + self.bases), (stop - self.bases, stop)

    def _outside(self, ends: IntArray) -> BoolArray:
        temperatures = self.temperatures(ends)
        return np.asarray((temperatures < self.low) | (temperatures > self.high))

    def wanted_gc(self, bases: IntArray, first: int, stop: int) -> IntArray | None:
        """See `Specification`."""
        wanted = np.zeros(bases.shape, dtype=np.int64)
        for begin, end in self._ends(first, stop):
            temperatures = self.temperatures(bases[:, begin:end])
            wanted[:, begin:end] += ((temperatures < self.low) * 1 - (temperatures > self.high) * 1)[:, None]
        return np.sign(wanted)

    def broken(self, bases: IntArray, first: int, stop: int) -> str:
        """See `Specification`."""
        begun = float(self.temperatures(bases[:, first : first + self.bases])[0])
        ended = float(self.temperatures(bases[:, stop - self.bases : stop])[0])
        return (
            f"its first {self.bases} bases melt at {begun:.1f} and its last at {ended:.1f} degrees Celsius, not both "
            f"between {self.low:g} and {self.high:g}"
        )

    def cuts(self, gene: Sequence[str], bases: IntArray, first: int, stop: int) -> list[Cut]:
        """See `Specification`: one for each end."""
        found = []
        width = -(-self.bases // 3)
        for begin, end, positions in (
            (first, first + self.bases, list(range(width))),
            (stop - self.bases, stop, list(range(len(gene) - width, len(gene)))),
        ):
            temperature = float(self.temperatures(bases[:, begin:end])[0])
            if not self.low <= temperature <= self.high:
                found.append(all_but(gene, positions))
        return found

    def temperatures(self, bases: IntArray) -> np.ndarray:
        """Melting temperatures of ``n x L`` numbers of bases, in degrees Celsius."""
        stacks = _STACK_TABLE[bases[:, :-1], bases[:, 1:]].sum(axis=1)
        ends = _END_TABLE[bases[:, 0]] + _END_TABLE[bases[:, -1]]
        enthalpy, entropy = (stacks + ends).T
        entropy = entropy + 0.368 * (bases.shape[1] - 1) * math.log(self.sodium)
        kelvin = 1000 * enthalpy / (entropy + GAS_CONSTANT * math.log(self.concentration / 4))
        return np.asarray(kelvin - 273.15)


def _stack(first: str, second: str) -> tuple[float, float]:
    pair = first + second
    return _STACKS[pair] if pair in _STACKS else _STACKS[pair.translate(str.maketrans("ACGT", "TGCA"))[::-1]]


_STACK_TABLE = np.array([[_stack(first, second) for second in BASES] for first in BASES])
_END_TABLE = np.array([_INITIATION["G" if base in "GC" else "A"] for base in BASES])


def _covered(windows: BoolArray, width: int, length: int) -> BoolArray:
    """The places that windows cover, from where they begin."""
    edges = np.zeros((len(windows), length + 1), dtype=np.int64)
    edges[:, : windows.shape[1]] += windows
    edges[:, width : width + windows.shape[1]] -= windows
    return np.asarray(edges.cumsum(axis=1)[:, :length] > 0)


def _worst(outside: IntArray, width: int) -> list[int]:
    """Beginnings of windows that do not overlap, the furthest outside first."""
    left = outside.copy()
    found = []
    while left.any():
        begin = int(left.argmax())
        found.append(begin)
        left[max(begin - width // 2, 0) : begin + width // 2 + 1] = 0
    return found
