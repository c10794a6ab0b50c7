"""The nearest-neighbour energies of ViennaRNA as arrays that compiled code reads.

Everything is asked of ViennaRNA itself, loop by loop, so it holds for whatever parameters and temperature ViennaRNA has
been told to use. Bases count A = 1, C = 2, G = 3, U = 4; pairs CG = 1, GC = 2, GU = 3, UG = 4, AU = 5, UA = 6, 0 for no
pair, as there. There are no dangling ends (``dangles=0``), so that an energy is a sum over loops that reads no base
outside them.

References:
    Lorenz, R. et al. (2011). ViennaRNA Package 2.0. Algorithms Mol. Biol. 6, 26.
    Turner, D. H., Mathews, D. H. (2010). NNDB: the nearest neighbor parameter database for predicting stability of
        nucleic acid secondary structure. Nucleic Acids Res. 38, D280-D282.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.errors import ObjectiveError

IntArray = npt.NDArray[np.int32]

UNIT = 1e-4
"""The unit of all energies here, in kcal/mol: a hundredth of ViennaRNA's, so that the weights of codons fit in."""

PER_VIENNA = 100
"""Units in one hundredth of kcal/mol, that of ViennaRNA."""

LARGEST_LOOP = 30
"""Unpaired bases of an interior loop at most, as in ViennaRNA."""

BASES = "ACGU"
"""In the order of their numbers, from 1."""

PAIRS = ("CG", "GC", "GU", "UG", "AU", "UA")
"""In the order of their numbers, from 1."""

ORDINARY = np.iinfo(np.int32).max
"""In tables of special hairpins: not special."""

INFINITE = 1_000_000_000
"""Larger than every energy; twice as much still fits into 32 bits."""

_IMPOSSIBLE = 10_000_000
"""ViennaRNA's energy of what cannot be, in its unit."""

_MOST_ASYMMETRY = 300
"""ViennaRNA's largest penalty of the asymmetry of a loop, in its unit."""


class Energies(NamedTuple):
    """Energies in units of `UNIT`; axes count bases and pairs as said above, the inner pair of a loop read outwards.

    Attributes:
        pair: Number of a pair, by its two bases.
        stack: By outer and inner pair.
        bulge: By unpaired bases.
        interior: By unpaired bases on the left and on the right, mismatches not counted.
        one_one: By outer and inner pair, and the unpaired bases from the outer pair inwards on the left, and so on the
            right.
        one_two: Likewise, outer, inner, left, right beside the outer pair, right beside the inner pair.
        two_one: Likewise, outer, inner, left beside the outer pair, left beside the inner pair, right.
        two_two: Likewise, outer, inner, left two, right two.
        mismatch: By kind of interior loop (0: any, 1: one base on a side, 2: two and three), pair, and the bases after
            and before it, inside the loop.
        hairpin: By unpaired bases, up to the largest that was asked for.
        mismatch_hairpin: By pair and its neighbours within.
        triloops, tetraloops, hexaloops: Energies of whole hairpins of special sequence, by the number that their bases
            make to the base 4, closing pair included; `ORDINARY` for others.
        terminal: Penalty of each pair that ends a helix at a bulge, in a triloop, a multiloop or outside.
        multi_closing, multi_unpaired: Of a multiloop, and of each base in it.
        multi_stem: Of each pair in a multiloop, `terminal` included.
    """

    pair: IntArray
    stack: IntArray
    bulge: IntArray
    interior: IntArray
    one_one: IntArray
    one_two: IntArray
    two_one: IntArray
    two_two: IntArray
    mismatch: IntArray
    hairpin: IntArray
    mismatch_hairpin: IntArray
    triloops: IntArray
    tetraloops: IntArray
    hexaloops: IntArray
    terminal: IntArray
    multi_closing: int
    multi_unpaired: int
    multi_stem: IntArray


def energies(longest: int, temperature: float = 37.0) -> Energies:
    """The energies of loops at a temperature in degrees Celsius, for RNA of up to ``longest`` bases.

    Raises:
        ObjectiveError: If ViennaRNA is not installed, or its parameters have something that cannot be expressed here.
    """
    vienna = _vienna()
    parameters = vienna.param(model(temperature))
    loops = _loops(temperature, _fingerprint(parameters))
    table = list(parameters.hairpin)
    hairpin = np.full(max(longest, LARGEST_LOOP) + 1, _IMPOSSIBLE, dtype=np.int64)
    hairpin[: LARGEST_LOOP + 1] = table[: LARGEST_LOOP + 1]
    for size in range(LARGEST_LOOP + 1, len(hairpin)):
        hairpin[size] = table[LARGEST_LOOP] + int(parameters.lxc * math.log(size / LARGEST_LOOP))
    return loops._replace(hairpin=_scaled(hairpin))


def model(temperature: float = 37.0, dangles: int = 0) -> Any:
    """ViennaRNA's description of the energy model."""
    details = _vienna().md()
    details.temperature = temperature
    details.dangles = dangles
    return details


def _vienna() -> Any:
    try:
        import RNA
    except ImportError:
        raise ObjectiveError("folding needs the package viennarna: pip install viennarna") from None
    return RNA


def _fingerprint(parameters: Any) -> tuple[int, ...]:
    """Some of the numbers of a set of parameters: parameters that differ differ here."""
    stacks = [value for row in parameters.stack for value in row]
    return (*stacks, *parameters.hairpin, *parameters.bulge, parameters.MLclosing, parameters.TerminalAU)


@lru_cache(maxsize=4)
def _loops(temperature: float, fingerprint: tuple[int, ...]) -> Energies:
    """All but ``hairpin``; some ten thousand questions to ViennaRNA, 0.02 s."""
    del fingerprint  # part of the key of the cache
    vienna = _vienna()
    parameters = vienna.param(model(temperature))
    pairs, bases = range(1, 7), range(1, 5)

    def interior(left: int, right: int, outer: int, inner: int, *corners: int) -> int:
        return int(vienna.E_IntLoop(left, right, outer, inner, *corners, parameters))

    pair = np.zeros((5, 5), dtype=np.int32)
    for number, name in enumerate(PAIRS, start=1):
        pair[BASES.index(name[0]) + 1, BASES.index(name[1]) + 1] = number
    stack = np.zeros((7, 7), dtype=np.int64)
    one_one = np.zeros((7, 7, 5, 5), dtype=np.int64)
    one_two = np.zeros((7, 7, 5, 5, 5), dtype=np.int64)
    two_one = np.zeros_like(one_two)
    two_two = np.zeros((7, 7, 5, 5, 5, 5), dtype=np.int64)
    # Corners are asked for in the order: after the outer pair's first base, before its second, before the inner pair's
    # first, after its second.
    for outer, inner in product(pairs, pairs):
        stack[outer, inner] = interior(0, 0, outer, inner, 1, 1, 1, 1)
        for a, b in product(bases, bases):
            one_one[outer, inner, a, b] = interior(1, 1, outer, inner, a, b, a, b)
            for c in bases:
                one_two[outer, inner, a, b, c] = interior(1, 2, outer, inner, a, b, a, c)
                two_one[outer, inner, a, b, c] = interior(2, 1, outer, inner, a, c, b, c)
                for d in bases:
                    two_two[outer, inner, a, b, c, d] = interior(2, 2, outer, inner, a, c, b, d)
    sizes = np.array(parameters.internal_loop[: LARGEST_LOOP + 1], dtype=np.int64)
    counts = np.arange(LARGEST_LOOP + 1)
    asymmetry = np.minimum(_MOST_ASYMMETRY, abs(counts[:, None] - counts) * parameters.ninio[2])
    loop = sizes[np.minimum(counts[:, None] + counts, LARGEST_LOOP)] + asymmetry
    mismatch = np.zeros((3, 7, 5, 5), dtype=np.int64)
    for kind, (left, right) in enumerate(((4, 4), (1, 4), (2, 3))):
        for number, a, b in product(pairs, bases, bases):
            # With the same pair and the same neighbours at both ends the mismatch counts twice.
            twice = interior(left, right, number, number, a, b, b, a) - int(loop[left, right])
            if twice % 2:
                raise ObjectiveError("ViennaRNA's parameters of interior loops are not of the form expected here")
            mismatch[kind, number, a, b] = twice // 2
    hairpin_mismatch = np.zeros((7, 5, 5), dtype=np.int64)
    for number, a, b in product(pairs, bases, bases):
        energy = vienna.E_Hairpin(7, number, a, b, "N" * 9, parameters)
        hairpin_mismatch[number, a, b] = energy - parameters.hairpin[7]
    terminal = np.array([0, 0, 0, *[parameters.TerminalAU] * 4], dtype=np.int64)
    return Energies(
        pair=pair,
        stack=_scaled(stack),
        bulge=_scaled(np.array(parameters.bulge[: LARGEST_LOOP + 1], dtype=np.int64)),
        interior=_scaled(loop),
        one_one=_scaled(one_one),
        one_two=_scaled(one_two),
        two_one=_scaled(two_one),
        two_two=_scaled(two_two),
        mismatch=_scaled(mismatch),
        hairpin=np.zeros(0, dtype=np.int32),
        mismatch_hairpin=_scaled(hairpin_mismatch),
        triloops=_special(parameters.Triloops, parameters.Triloop_E, 5),
        tetraloops=_special(parameters.Tetraloops, parameters.Tetraloop_E, 6),
        hexaloops=_special(parameters.Hexaloops, parameters.Hexaloop_E, 8),
        terminal=_scaled(terminal),
        multi_closing=int(parameters.MLclosing) * PER_VIENNA,
        multi_unpaired=int(parameters.MLbase) * PER_VIENNA,
        multi_stem=_scaled(np.array(parameters.MLintern[:7], dtype=np.int64) + terminal),
    )


def _scaled(table: npt.NDArray[np.int64]) -> IntArray:
    scaled: IntArray = np.minimum(table * PER_VIENNA, INFINITE).astype(np.int32)
    return scaled


def _special(names: str, values: list[int], length: int) -> IntArray:
    table = np.full(4**length, ORDINARY, dtype=np.int32)
    for name, value in zip(names.split(), values, strict=False):
        number = 0
        for base in name:
            number = 4 * number + BASES.index(base)
        table[number] = value * PER_VIENNA
    return table
