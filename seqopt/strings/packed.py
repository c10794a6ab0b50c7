"""Very many strings without an object for each: their bytes one after another, and numbers that stand for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt


def key_hashes(keys: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Eight bytes of the BLAKE2b hash of each key.

    Of 20 million keys, two have the same hash with a probability of 1e-5.

    Example:
        >>> [int(number) % 1000 for number in key_hashes(["CCO", "CCN"])]
        [733, 236]
    """
    raw = b"".join(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def packed_strings(strings: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """Strings as their bytes in UTF-8, one after another, and where each begins and the last one ends (n + 1).

    Example:
        >>> data, ends = packed_strings(["CO", "N"])
        >>> data.tobytes(), ends.tolist()
        (b'CON', [0, 2, 3])
    """
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=ends[1:])
    kind = np.uint32 if ends[-1] < 1 << 32 else np.int64
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends.astype(kind)


def unpacked_string(data: npt.NDArray[np.uint8], ends: npt.NDArray[Any], row: int) -> str:
    """One of `packed_strings`."""
    return bytes(data[int(ends[row]) : int(ends[row + 1])]).decode("utf-8", "surrogatepass")


def unpacked_strings(data: npt.NDArray[np.uint8], ends: npt.NDArray[Any]) -> Iterator[str]:
    """All of `packed_strings`."""
    raw, places = data.tobytes(), ends.tolist()
    for start, end in pairwise(places):
        yield raw[start:end].decode("utf-8", "surrogatepass")
