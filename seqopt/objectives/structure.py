r"""How a stretch of a gene folds in what stands around it: energies, and whether it is open to a ribosome.

Bases are counted along the gene: 1 is the first of its own, -1 the one before it, and there is no base 0. A window is
written ``FIRST..LAST``, such as ``-15..20``; ``end`` is the last base of the gene.

With Z the partition function of an RNA, the sum of exp(-E / RT) over its structures without pseudo-knots, and Z_w that
of the structures in which no base of window w is paired,

    ensemble free energy   G = -RT ln Z,
    opening energy         G_w - G = RT ln(Z / Z_w)   (0 or more),
    accessibility          Z_w / Z = exp(-(G_w - G) / RT)   (0 to 1),

the last being the probability that the whole window is unpaired in equilibrium. Z is ViennaRNA's with its defaults, as
RNAfold -p has it: energies of dangling ends are smoothed, so that G may lie some 0.02 kcal/mol off the exact sum.

References:
    McCaskill, J. S. (1990). The equilibrium partition function and base pair binding probabilities for RNA secondary
        structure. Biopolymers 29, 1105-1119.
    Mückstein, U. et al. (2006). Thermodynamics of RNA-RNA binding. Bioinformatics 22, 1177-1182. (opening energies)
    Kudla, G. et al. (2009). Coding-sequence determinants of gene expression in Escherichia coli. Science 324, 255-258.
        (the energy of bases -4 to 37)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.objectives.genes import MinimumFreeEnergy, read_bases

REACH = 100
"""Bases on either side of a window that may pair with it, where nothing else is said."""

END = "end"

_WINDOW = re.compile(r"(-?\d+)\.\.(-?\d+|end)")

_TO_RNA = str.maketrans("T", "U")

FloatArray = npt.NDArray[np.float64]

Own = TypeVar("Own", bound="InContext")


@dataclass(frozen=True)
class Window:
    """A stretch of a gene, by its first and last base; it may reach into what stands before and behind.

    Args:
        first: Its first base: 1 is that of the gene, -1 the one before it.
        last: Its last base; `None` for the last of the gene.

    Raises:
        InputError: For a base 0, or a window that ends before it begins.

    Example:
        >>> window = Window.parse("-2..3")
        >>> window.within("ATGAAA", "GGCC", "")
        (2, 7)
        >>> str(window), len("GGCCATGAAA"[2:7])
        ('-2..3', 5)
    """

    first: int
    last: int | None

    def __post_init__(self) -> None:
        if self.first == 0 or self.last == 0:
            raise InputError(f"the window {self} has a base 0: the first base of a gene is 1, and the one before it -1")
        if self.last is not None and self.last < self.first:
            raise InputError(f"the window {self} ends before it begins")

    @classmethod
    def parse(cls, text: str) -> Window:
        """The window that is written ``FIRST..LAST``.

        Raises:
            InputError: If it is written in another way.
        """
        found = _WINDOW.fullmatch(text.strip())
        if found is None:
            raise InputError(
                f"{text.strip()!r} is not a window: write FIRST..LAST, such as -15..20 (1 is the first base of the "
                "gene, -1 the one before it, end its last)"
            )
        return cls(int(found[1]), None if found[2] == END else int(found[2]))

    def __str__(self) -> str:
        return f"{self.first}..{END if self.last is None else self.last}"

    def within(self, gene: str, upstream: str, downstream: str) -> tuple[int, int]:
        """Where it begins and ends in ``upstream + gene + downstream``.

        Raises:
            InputError: If it reaches beyond.
        """
        length = len(gene)
        last = length if self.last is None else self.last
        # There is no base 0.
        begin = len(upstream) + self.first - (self.first > 0)
        stop = len(upstream) + last + (last < 0)
        if begin < 0:
            raise InputError(
                f"the window {self} begins {-self.first} bases before the gene, and {_so_many(len(upstream))} there: "
                "give what stands before the gene (--upstream, or upstream=BASES behind the window)"
            )
        if stop > len(upstream) + length + len(downstream):
            behind = f" with {len(downstream)} behind it" if downstream else ""
            raise InputError(
                f"the window {self} ends at base {last}, and the gene has {length}{behind}: give a window that lies "
                "in it, or what stands behind the gene (--downstream, or downstream=BASES behind the window)"
            )
        if stop <= begin:
            raise InputError(f"the window {self} has no base in a gene of {length}")
        return begin, stop


@dataclass(frozen=True)
class InContext:
    """What scores of a window have in common.

    Args:
        window: The stretch; `None` for the whole string alone, whatever stands around it.
        upstream: Bases before each gene; `None` if they are not given here but by who designs the genes.
        downstream: Bases behind it.
        temperature: In degrees Celsius.

    Raises:
        InputError: For bases that are none, or a temperature that is not a finite number above absolute zero.
    """

    window: Window | None = None
    upstream: str | None = None
    downstream: str | None = None
    temperature: float = 37.0

    def __post_init__(self) -> None:
        for which in ("upstream", "downstream"):
            bases = getattr(self, which)
            if bases is not None:
                checked = "".join(bases.split()).upper().replace("U", "T")
                for position, base in enumerate(checked, start=1):
                    if base not in "ACGT":
                        raise InputError(
                            f"{base!r} at position {position} of what stands {which} of the gene is not a base: use "
                            "A, C, G and T or U"
                        )
                object.__setattr__(self, which, checked)
        # Whether ViennaRNA is there, and the temperature one at which something can fold.
        MinimumFreeEnergy(self.temperature)

    @classmethod
    def parse(cls: type[Own], text: str) -> Own:
        """What is written behind the colon of an objective's name: ``WINDOW,KEY=VALUE,...``.

        Keys are the other arguments; the window may be left out where it may be `None`.

        Raises:
            InputError: For another key, or a value that cannot be used.
        """
        words = [word.strip() for word in text.split(",")] if text.strip() else []
        given: dict[str, Any] = {}
        if words and "=" not in words[0]:
            given["window"] = Window.parse(words.pop(0))
        numbers = {"temperature": float, "reach": int}
        keys = [key for key in cls.__dataclass_fields__ if key != "window"]
        for word in words:
            key, equals, value = (part.strip() for part in word.partition("="))
            if not equals or key not in keys:
                raise InputError(f"{word!r} is not a setting of this score: write WINDOW, then {_written(keys)}")
            if key in given:
                raise InputError(f"{key} is given twice")
            try:
                given[key] = numbers[key](value) if key in numbers else value
            except ValueError:
                raise InputError(f"{key} is {value!r}; expected a number") from None
        return cls(**given)

    def in_context(self: Own, upstream: str, downstream: str) -> Own:
        """The same score of genes that stand between these bases.

        Raises:
            InputError: If it says already that they stand between others.
        """
        if self.window is None:
            return self
        for which, bases in (("upstream", upstream), ("downstream", downstream)):
            own = getattr(self, which)
            if own is not None and bases and own != bases:
                raise InputError(
                    f"the objective says that {own or 'nothing'} stands {which} of the gene, and --{which} that it is "
                    f"{bases}: say it once"
                )
        return replace(
            self,
            upstream=upstream if self.upstream is None else self.upstream,
            downstream=downstream if self.downstream is None else self.downstream,
        )

    def check_length(self, bases: int) -> None:
        """Refuse genes of so many bases if the window does not lie within.

        Raises:
            InputError: If it does not.
        """
        if self.window is not None:
            self.window.within("N" * bases, self.upstream or "", self.downstream or "")

    def _cut(self, gene: str, around: int = 0) -> tuple[str, int, int]:
        """The RNA that is folded, and where the window begins and ends in it."""
        if self.window is None:
            return gene.translate(_TO_RNA), 0, len(gene)
        before, behind = self.upstream or "", self.downstream or ""
        begin, stop = self.window.within(gene, before, behind)
        whole = before + gene + behind
        low, high = max(begin - around, 0), min(stop + around, len(whole))
        return whole[low:high].translate(_TO_RNA), begin - low, stop - low


@dataclass(frozen=True)
class WindowEnergy(InContext):
    """Minimum free energy of a window folded by itself, in kcal/mol; see `MinimumFreeEnergy`.

    Args:
        window: See `InContext`.
        upstream: See `InContext`.
        downstream: See `InContext`.
        temperature: In degrees Celsius.

    Example:
        >>> WindowEnergy.parse("-4..7,upstream=AAGGG")(["AAATCCC"]).tolist()
        [-2.7]
        >>> WindowEnergy()(["GGGAAATCCC"]).tolist()
        [-2.5]
    """

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Energies of ``strings`` (``n``).

        Raises:
            InputError: For a string that is empty, has a letter other than A, C, G, T and U, or is too short.
        """
        return MinimumFreeEnergy(self.temperature)([self._cut(bases)[0] for bases in read_bases(strings)])


@dataclass(frozen=True)
class EnsembleFreeEnergy(InContext):
    """Free energy -RT ln Z of all structures together, in kcal/mol: below the minimum free energy, as a rule.

    Args:
        window: The stretch, folded by itself; `None` for the whole string.
        upstream: See `InContext`.
        downstream: See `InContext`.
        temperature: In degrees Celsius.

    Example:
        >>> EnsembleFreeEnergy()(["GGGAAATCCC", "AAAA"]).round(2).tolist()
        [-2.55, 0.0]
    """

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Free energies of ``strings`` (``n``); raises what `WindowEnergy` does."""
        cut = [self._cut(bases)[0] for bases in read_bases(strings)]
        return np.array([_free_energy(rna, self.temperature)[0] for rna in cut], dtype=np.float64)


@dataclass(frozen=True)
class OpeningEnergy(InContext):
    """Energy that it takes to keep a window free of pairs, in kcal/mol, 0 or more.

    Args:
        window: The stretch.
        upstream: See `InContext`.
        downstream: See `InContext`.
        temperature: In degrees Celsius.
        reach: Bases on either side of the window that are folded with it: the time grows as the cube of both together.

    Raises:
        InputError: Without a window, or for a negative reach.

    Example:
        >>> opening = OpeningEnergy(Window(1, 4))
        >>> opening(["GGGGAAAACCCC", "AAAAAAAAAAAA"]).round(2).tolist()
        [5.51, 0.0]
    """

    reach: int = REACH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is None:
            raise InputError("whether a stretch is open depends on which: write its window, such as -15..20")
        if self.reach < 0:
            raise InputError(f"the reach around the window is {self.reach}; expected bases, 0 or more")

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Energies of ``strings`` (``n``); raises what `WindowEnergy` does."""
        return np.array([self._opened(bases)[0] for bases in read_bases(strings)], dtype=np.float64)

    def _opened(self, bases: str) -> tuple[float, float]:
        """The energy, and it in units of RT."""
        rna, begin, stop = self._cut(bases, self.reach)
        free, thermal = _free_energy(rna, self.temperature)
        # ViennaRNA computes in single precision, in which the difference of equal energies need not be 0.
        energy = max(_free_energy(rna, self.temperature, range(begin, stop))[0] - free, 0.0)
        return energy, energy / thermal


@dataclass(frozen=True)
class Accessibility(OpeningEnergy):
    """Probability that no base of a window is paired, 0 to 1.

    For long windows it is minute, and `OpeningEnergy`, the same on another scale, is easier to compare and to learn.

    Args:
        window: The stretch.
        upstream: See `InContext`.
        downstream: See `InContext`.
        temperature: In degrees Celsius.
        reach: See `OpeningEnergy`.

    Example:
        >>> Accessibility(Window(1, 4))(["GGGGAAAACCCC", "AAAAAAAAAAAA"]).round(3).tolist()
        [0.0, 1.0]
    """

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Probabilities of ``strings`` (``n``); raises what `WindowEnergy` does."""
        return np.array([math.exp(-self._opened(bases)[1]) for bases in read_bases(strings)], dtype=np.float64)


def _free_energy(rna: str, temperature: float, unpaired: range = range(0)) -> tuple[float, float]:
    """Ensemble free energy of an RNA in which some bases are kept unpaired, and RT, in kcal/mol."""
    import RNA

    model = RNA.md()
    model.temperature = temperature
    folded = RNA.fold_compound(rna, model)
    for base in unpaired:
        folded.hc_add_up(base + 1)
    # The sum is taken relative to its largest term, which overflows for no length.
    folded.exp_params_rescale(folded.mfe()[1])
    # The open strand counts 1, so no free energy is above 0; the sum turns -0.0 into 0.0.
    return min(float(folded.pf()[1]), 0.0) + 0.0, float(folded.exp_params.kT) / 1000


def _so_many(number: int) -> str:
    return "nothing stands" if not number else f"{number} stand{'s' if number == 1 else ''}"


def _written(keys: Sequence[str]) -> str:
    return " or ".join(f"{key}=..." for key in keys)
