"""What every surrogate checks of its data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError


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
