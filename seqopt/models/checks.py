"""What every surrogate checks of its data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

ROUNDING = 1e-12
"""Range of values, relative to the largest, up to which they count as equal: sums of some thousand terms round so."""


def checked_values(strings: Sequence[str], values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """``values`` as an array, one finite number for each of at least two strings.

    Raises:
        InputError: If they are not.
    """
    targets = np.asarray(values, dtype=np.float64)
    if targets.shape != (len(strings),):
        raise InputError(f"{len(strings)} strings but values of shape {targets.shape}; give one value per string")
    if len(strings) < 2:
        raise InputError(f"a model needs at least two evaluated strings, got {len(strings)}")
    if not np.isfinite(targets).all():
        bad = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise InputError(f"the value of {strings[bad]!r} is {targets[bad]}; only finite values can be fitted")
    return targets


def differ(values: npt.NDArray[np.floating]) -> bool:
    """Whether the values differ by more than rounding: their range exceeds `ROUNDING` of the largest of them.

    Example:
        >>> differ(np.array([0.3, 0.1 + 0.2])), differ(np.array([0.0, 1e-300]))
        (False, True)
    """
    with np.errstate(over="ignore"):
        return bool(np.ptp(values) > ROUNDING * np.abs(values).max())


def checked_noise(strings: Sequence[str], noise_variance: npt.ArrayLike | None) -> npt.NDArray[np.float64]:
    """Known variances of the noise of values, one for each string; zeros if nothing is known.

    Raises:
        InputError: If they do not fit, or one is negative or not finite.
    """
    if noise_variance is None:
        return np.zeros(len(strings))
    known = np.asarray(noise_variance, dtype=np.float64)
    if known.shape != (len(strings),):
        raise InputError(f"{len(strings)} strings but noise variances of shape {known.shape}; give one per string")
    if not (np.isfinite(known) & (known >= 0)).all():
        bad = int(np.flatnonzero(~(np.isfinite(known) & (known >= 0)))[0])
        raise InputError(f"the noise variance of {strings[bad]!r} is {known[bad]}; expected 0 (unknown) or more")
    return known
