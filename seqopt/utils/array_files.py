"""Arrays in one file, which is written whole, checked by a checksum and mapped into memory.

A file is a fixed line, a header (JSON: names, types, shapes and places of the arrays, and facts), and the arrays. The
header has the CRC-32 of what follows, and a CRC-32 of its own: what a loss of power or a bad disk has left is told from
what was written. It is no protection against somebody who wants to deceive.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import SeqoptError

Array = npt.NDArray[Any]

_MAGIC = b"seqopt arrays 1\n"
_START = struct.Struct("<II")
_ALIGNED = 64
_STEP = 1 << 24

TEMPORARY = ".part"
"""Ends the name of a file that is being written."""


class DamagedFileError(SeqoptError):
    """A file of arrays that is cut off, or does not match its checksum."""


@dataclass(frozen=True)
class ArrayFile:
    """What a file holds.

    Attributes:
        facts: JSON values.
        arrays: By name, mapped into memory: they are read when they are looked at, and cannot be changed.
    """

    facts: dict[str, Any]
    arrays: dict[str, Array]


def write_arrays(path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
    """Write arrays into a file, which is there as a whole or not at all, also after a loss of power.

    Args:
        path: The file.
        arrays: By name.
        facts: JSON values.

    Raises:
        OSError: If it cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "numbers.bin")
        ...     write_arrays(path, {"squares": np.arange(4) ** 2}, {"count": 4})
        ...     found = read_arrays(path)
        ...     found.arrays["squares"].tolist(), found.facts
        ([0, 1, 4, 9], {'count': 4})
    """
    placed, offset, checksum = {}, 0, 0
    parts: list[memoryview | bytes] = []
    for name, array in arrays.items():
        data = np.ascontiguousarray(array)
        data = data.astype(data.dtype.newbyteorder("<"), copy=False)
        placed[name] = {"dtype": data.dtype.str, "shape": list(data.shape), "offset": offset}
        raw: memoryview = data.reshape(-1).view(np.uint8).data if data.size else memoryview(b"")
        padding = bytes(-len(raw) % _ALIGNED)
        checksum = zlib.crc32(padding, zlib.crc32(raw, checksum))
        offset += len(raw) + len(padding)
        parts += [raw, padding]
    header = json.dumps({"arrays": placed, "bytes": offset, "crc32": checksum, "facts": dict(facts)}).encode()
    header += b" " * (-(len(_MAGIC) + _START.size + len(header)) % _ALIGNED)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            file.write(_MAGIC + _START.pack(len(header), zlib.crc32(header)) + header)
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def read_arrays(path: Path, *, check: bool = True) -> ArrayFile:
    """The arrays of a file.

    Args:
        path: The file.
        check: Whether to hold the arrays against their checksum, for which all of the file is read.

    Raises:
        DamagedFileError: If it is no such file, is cut off, or does not match its checksum.
        OSError: If it cannot be read, or is missing.
    """
    start = len(_MAGIC) + _START.size
    with path.open("rb") as file:
        begin = file.read(start)
        if len(begin) < start or not begin.startswith(_MAGIC):
            raise DamagedFileError(f"{path} is not a file of arrays")
        length, own = _START.unpack(begin[len(_MAGIC) :])
        raw = file.read(length)
        if len(raw) != length or zlib.crc32(raw) != own:
            raise DamagedFileError(f"the header of {path} is damaged")
        header = json.loads(raw)
        first = start + length
        if os.fstat(file.fileno()).st_size != first + header["bytes"]:
            raise DamagedFileError(f"{path} is cut off, or something was appended to it")
        if check:
            checksum = 0
            while piece := file.read(_STEP):
                checksum = zlib.crc32(piece, checksum)
            if checksum != header["crc32"]:
                raise DamagedFileError(f"{path} does not match its checksum")
    arrays: dict[str, Array] = {}
    for name, one in header["arrays"].items():
        shape, kind = tuple(one["shape"]), np.dtype(one["dtype"])
        # An empty array cannot be mapped.
        arrays[name] = (
            np.memmap(path, kind, "r", first + one["offset"], shape) if 0 not in shape else np.empty(shape, kind)
        )
    return ArrayFile(header["facts"], arrays)
