"""Counts of a pattern in a string: synthetic tasks whose best value is known.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6.1 and table 4.6.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.spaces import CodonScore, CodonSpace

WILDCARD = "?"
"""The character of a pattern that matches any one character."""


@dataclass(frozen=True)
class PatternCount:
    """How often a pattern occurs in a string.

    An occurrence is a window of the string, as long as the pattern, that equals it in every position where the
    pattern has no ``?``. All other characters stand for themselves: it is not a regular expression. Without
    overlaps, occurrences are taken from left to right, each beginning after the end of the last, which yields as many
    as possible.

    Noise, where there is any, is normal with mean 0. With an ``int`` for ``seed`` it depends only on the seed, on the
    string, and on how often this object has been asked for that string: the order of the calls and the number of
    processes do not matter. With a generator it is drawn from that, call after call.

    Args:
        pattern: At least one character; ``?`` matches any one.
        overlapping: Whether occurrences may share characters.
        first: Count in the first so many characters only; occurrences must end there.
        noise_variance: Variance of the noise; 0 for none.
        seed: Of the noise, a number from 0 or a generator; needed where there is noise.

    Raises:
        InputError: For an empty pattern, a ``first`` too small to hold it, a variance that is negative or not finite,
            or noise without a seed.

    Example:
        >>> PatternCount("101")(["10101", "0101", "11"]).tolist()
        [2.0, 1.0, 0.0]
        >>> PatternCount("101", overlapping=False)(["10101"]).tolist()
        [1.0]
        >>> PatternCount("1?1", first=3)(["11111", "1.1"]).tolist()
        [1.0, 1.0]
    """

    chunk_size: ClassVar[int] = 1_000
    """Many strings are counted in hardly more time than one; see `seqopt.evaluation.Evaluator`."""

    adds_up: ClassVar[bool] = True

    pattern: str
    overlapping: bool = True
    first: int | None = None
    noise_variance: float = 0.0
    seed: int | np.random.Generator | None = None
    _asked: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise InputError(f"a pattern needs at least one character, got {self.pattern!r}")
        if self.first is not None and self.first < len(self.pattern):
            raise InputError(
                f"first must be at least the pattern's length {len(self.pattern)}, not {self.first}: "
                f"{self.pattern!r} cannot occur in fewer characters"
            )
        if not (math.isfinite(self.noise_variance) and self.noise_variance >= 0):
            raise InputError(f"noise_variance must be a finite number from 0, not {self.noise_variance}")
        if isinstance(self.seed, int) and self.seed < 0:
            raise InputError(f"seed must be a number from 0, or a generator, not {self.seed}")
        if self.noise_variance and self.seed is None:
            raise InputError(f"noise of variance {self.noise_variance:g} needs a seed: give a number or a generator")

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """The counts of ``strings`` with noise (``n``)."""
        values = self.noiseless(strings)
        if self.noise_variance:
            values += math.sqrt(self.noise_variance) * self._standard_normal(strings)
        return values

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """Overlapping occurrences in the whole gene: see `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        if not self.overlapping or self.first is not None or self.noise_variance:
            return None
        motif = self.pattern.replace(WILDCARD, "N")
        # Genes are written in capital DNA letters; a pattern with another one does not occur in them.
        return CodonScore(motifs={motif: 1.0} if set(self.pattern) <= set("ACGT" + WILDCARD) else {})

    def noiseless(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """The counts of ``strings`` (``n``)."""
        if isinstance(strings, str):
            raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
        kept = [string[: self.first] for string in strings]
        width = max(map(len, kept), default=0)
        if width < len(self.pattern):
            return np.zeros(len(kept))
        codes = np.array(kept, dtype=f"<U{width}").view("<u4").reshape(len(kept), width)
        return self._count(codes, np.array([len(string) for string in kept]))

    def _count(self, codes: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        size = len(self.pattern)
        windows = codes.shape[1] - size + 1
        # The lengths keep wildcards from matching the padding of shorter strings.
        found = np.arange(windows) + size <= lengths[:, None]
        for offset, letter in enumerate(self.pattern):
            if letter != WILDCARD:
                found &= codes[:, offset : offset + windows] == ord(letter)
        if self.overlapping:
            return found.sum(axis=1).astype(np.float64)
        counts = np.zeros(len(codes))
        begins = np.zeros(len(codes), dtype=np.int64)
        for position in range(windows):
            taken = found[:, position] & (begins <= position)
            counts += taken
            begins[taken] = position + size
        return counts

    def _standard_normal(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        if isinstance(self.seed, np.random.Generator):
            return self.seed.standard_normal(len(strings))
        assert self.seed is not None
        draws = []
        for string in strings:
            entropy = [self.seed, self._asked[string], len(string), *map(ord, string)]
            draws.append(np.random.default_rng(entropy).standard_normal())
            self._asked[string] += 1
        return np.array(draws, dtype=np.float64)


@dataclass(frozen=True)
class PatternTask:
    """A row of table 4.6.1: maximise a count over all strings of one length.

    Attributes:
        pattern: As in `PatternCount`.
        alphabet: The characters of the strings.
        length: Of every string.
        steps: Evaluations after the initial ones.
        largest: The largest count without noise that any of the strings has.
        overlapping: As in `PatternCount`.
        first: As in `PatternCount`.
        noise_variance: As in `PatternCount`.
    """

    pattern: str
    alphabet: str
    length: int
    steps: int
    largest: int
    overlapping: bool = True
    first: int | None = None
    noise_variance: float = 0.0

    @property
    def initial(self) -> int:
        """The number of random strings to begin with: min(5, size of the alphabet)."""
        return min(5, len(self.alphabet))

    def objective(self, seed: int | np.random.Generator | None = None) -> PatternCount:
        """The count; ``seed`` is that of the noise, where the task has noise.

        Raises:
            InputError: If the task has noise and there is no seed.
        """
        return PatternCount(self.pattern, self.overlapping, self.first, self.noise_variance, seed)


PATTERN_TASKS: Mapping[str, PatternTask] = {
    "101": PatternTask("101", "01", 20, steps=10, largest=9),
    "101-disjoint": PatternTask("101", "01", 20, steps=15, largest=6, overlapping=False),
    "10??1": PatternTask("10??1", "01", 20, steps=25, largest=8),
    "101-disjoint-first-15": PatternTask("101", "01", 30, steps=40, largest=5, overlapping=False, first=15),
    "101-noisy": PatternTask("101", "01", 20, steps=25, largest=9, noise_variance=2.0),
    "123-disjoint": PatternTask("123", "0123", 30, steps=20, largest=10, overlapping=False),
    "01??4": PatternTask("01??4", "01234", 20, steps=50, largest=5),
}
"""The seven tasks of table 4.6.1, by name, in its order."""
