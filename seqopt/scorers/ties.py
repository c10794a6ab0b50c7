"""An order of candidates with equal scores that is random, and the same wherever they are looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class TieOrder:
    """Ranks candidates by a hash of their numbers: every order of few candidates is about as likely as any other.

    Unlike a permutation of all, the ranks of some are known without the others, on any machine. The hash is the
    finaliser of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", OOPSLA),
    which maps different numbers to different ones.

    Args:
        rng: The only source of randomness: one number is drawn.

    Example:
        >>> order = TieOrder(np.random.default_rng(0))
        >>> ranks = order(np.arange(5))
        >>> bool((order(np.array([3, 1])) == ranks[[3, 1]]).all()), len(set(ranks.tolist()))
        (True, 5)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.seed = np.uint64(rng.integers(1 << 63))

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """A rank for each number."""
        with np.errstate(over="ignore"):
            mixed = places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + self.seed
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
            return found
