"""Files of models: arrays and JSON, nothing that could run when it is read.

A file is a zip archive of numpy arrays (the format of `numpy.savez`), uncompressed and read with pickling forbidden,
so an untrusted file can at worst be refused. The entry ``facts`` holds JSON text as bytes, every other entry an array.
What the headers of arrays declare is compared with what the file holds before anything is read. A file is written
next to its path and then renamed: a reader, or a crash, sees the old file or the new one, never a part.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import math
import os
import reprlib
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

FORMAT = "seqopt vae"
VERSION = 1

QUANTILES, WEIGHTS, TRAINING = "quantiles", "weights/", "training/"
"""The names of arrays: one of quantiles, and those that begin like the other two."""

LARGEST_FACTS = 1 << 25
"""Most bytes of facts. A model has some thousands; 150,000 epochs would fit."""

_FACTS, _SUFFIX = "facts", ".npy"

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Arrays = Mapping[str, npt.NDArray[Any]]


def write_checkpoint(path: str | os.PathLike[str], facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write ``facts`` (JSON values) and ``arrays`` (of numbers) into the file ``path``.

    Raises:
        InputError: If the file cannot be written, or the facts are larger than `LARGEST_FACTS`.
    """
    target = Path(path)
    text = json.dumps({"format": FORMAT, "version": VERSION, **facts}, allow_nan=True).encode("utf-8")
    if len(text) > LARGEST_FACTS:
        raise InputError(f"cannot write {target}: its facts are {len(text):,} bytes, at most {LARGEST_FACTS:,} can be")
    entries = {_FACTS: np.frombuffer(text, dtype=np.uint8), **arrays}
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **entries)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        # Temporary files are private; a finished one is as readable as any other.
        with contextlib.suppress(OSError):
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


@dataclass(frozen=True)
class Entry:
    """An array of a file, as its header declares it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Checkpoint:
    """An open file: its facts, and which arrays it holds. An array is read when it is asked for.

    Args:
        path: The file.
        archive: The same, open.

    Attributes:
        path: The file.
        facts: Its facts.
        entries: What its arrays look like, by name. Together they are no larger than the file.

    Raises:
        InputError: If it is not one of seqopt's model files, or is damaged, or was written by a later version.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        with _explained(path):
            # A later version may hold other entries, so the facts come first.
            self.facts = self._read_facts()
            self.entries = self._read_entries()

    def read(self, name: str) -> npt.NDArray[Any]:
        """The array ``name``, one of `entries`.

        Raises:
            InputError: If it is damaged.
        """
        with _explained(self.path), self._archive.open(name + _SUFFIX) as stream:
            array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        return array

    def _read_facts(self) -> dict[str, Any]:
        entry = self._entry(_FACTS)
        if entry.dtype != np.uint8 or len(entry.shape) != 1:
            raise ValueError(
                f"its facts have type {entry.dtype} and shape {reprlib.repr(entry.shape)}, expected a row of bytes"
            )
        if entry.shape[0] > LARGEST_FACTS:
            raise ValueError(f"its facts are {entry.shape[0]:,} bytes, expected at most {LARGEST_FACTS:,}")
        facts = json.loads(self.read(_FACTS).tobytes().decode("utf-8"))
        told = facts.get("format") if isinstance(facts, dict) else facts
        if not isinstance(facts, dict) or told != FORMAT:
            raise ValueError(f"its format is {reprlib.repr(told)}, expected {FORMAT!r}")
        version = facts.get("version")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise ValueError(f"the version of its format is {reprlib.repr(version)}, expected an integer from 1")
        if version > VERSION:
            raise InputError(
                f"{self.path} was written by a later seqopt (version {reprlib.repr(version)} of the format): update "
                "seqopt"
            )
        return facts

    def _read_entries(self) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        stored = 0
        for info in self._archive.infolist():
            name = info.filename.removesuffix(_SUFFIX)
            if name == info.filename or not (name in (_FACTS, QUANTILES) or name.startswith((WEIGHTS, TRAINING))):
                raise ValueError(f"it holds {reprlib.repr(info.filename)}, which no model has")
            if name in entries:
                raise ValueError(f"it holds {reprlib.repr(name)} twice")
            entries[name] = self._entry(name)
            stored += info.file_size
        size = self.path.stat().st_size
        if stored > size:
            raise ValueError(f"its entries are {stored:,} bytes, expected no more than its own {size:,}")
        del entries[_FACTS]
        return entries

    def _entry(self, name: str) -> Entry:
        """What the header of an array declares, once it is known that the file holds as much."""
        try:
            info = self._archive.getinfo(name + _SUFFIX)
        except KeyError:
            raise ValueError(f"it holds no {name}") from None
        # A few compressed bytes can become any amount of memory, and no model has ever been written so.
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"{reprlib.repr(name)} is compressed, expected it as it is")
        with self._archive.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            if version not in _HEADERS:
                raise ValueError(f"{reprlib.repr(name)} has a header of version {version}, expected 1.0 or 2.0")
            shape, _, dtype = _HEADERS[version](stream)
            held = info.file_size - stream.tell()
        if dtype.kind not in "fiu":
            raise ValueError(f"{reprlib.repr(name)} has the type {reprlib.repr(str(dtype))}, expected numbers")
        if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != held:
            raise ValueError(
                f"{reprlib.repr(name)} is declared as {reprlib.repr(shape)} of {dtype}, expected what its {held:,} "
                "bytes hold"
            )
        return Entry(shape, dtype)


@contextlib.contextmanager
def open_checkpoint(path: str | os.PathLike[str]) -> Iterator[Checkpoint]:
    """What `write_checkpoint` wrote, open for reading.

    Raises:
        InputError: If there is no such file, or it is not one of seqopt's model files, or is damaged, or was written
            by a later version.
    """
    target = Path(path)
    with _explained(target):
        if not target.is_file():
            raise InputError(f"there is no model file {target}")
        archive = zipfile.ZipFile(target)
    with archive:
        yield Checkpoint(target, archive)


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What `write_checkpoint` wrote: facts and arrays.

    Raises:
        InputError: As for `open_checkpoint`.
    """
    with open_checkpoint(path) as checkpoint:
        return checkpoint.facts, {name: checkpoint.read(name) for name in checkpoint.entries}


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Whatever goes wrong with a file while it is read becomes a message that names it."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {target}: {error.strerror or error}") from error
    except MemoryError as error:
        raise InputError(f"cannot read {target}: it needs more memory than there is") from error
    except (
        *(ValueError, KeyError, TypeError, EOFError, AttributeError, OverflowError, IndexError, SyntaxError),
        *(NotImplementedError, RuntimeError, struct.error, tokenize.TokenError),
        *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    ) as error:
        raise InputError(
            f"{target} is not a model that seqopt train-vae wrote, or is damaged: expected its archive of arrays and "
            f"facts ({error_line(error)})"
        ) from error


def error_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind where there is none."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
