"""Files of models: arrays and JSON, nothing that could run when it is read.

A file is a zip archive of numpy arrays (the format of `numpy.savez`), read with pickling forbidden, so an untrusted
file can at worst be refused. The entry ``facts`` holds JSON text as bytes, every other entry an array. A file is
written beside its place and then renamed: a reader, or a crash, sees the old file or the new one, never a part.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

FORMAT = "seqopt vae"
VERSION = 1

_FACTS = "facts"

Arrays = Mapping[str, npt.NDArray[Any]]


def write_checkpoint(path: str | os.PathLike[str], facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write ``facts`` (JSON values) and ``arrays`` (of numbers) into the file ``path``.

    Raises:
        InputError: If the file cannot be written.
    """
    target = Path(path)
    text = json.dumps({"format": FORMAT, "version": VERSION, **facts}, allow_nan=True)
    entries = {_FACTS: np.frombuffer(text.encode("utf-8"), dtype=np.uint8), **arrays}
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


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What `write_checkpoint` wrote: facts and arrays.

    Raises:
        InputError: If there is no such file, or it is not one of seqopt's model files, or is damaged, or was written
            by a later version.
    """
    target = Path(path)
    if not target.is_file():
        raise InputError(f"there is no model file {target}")
    try:
        with np.load(target, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(arrays.pop(_FACTS).tobytes().decode("utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError("another format")
        version = int(facts["version"])
    except OSError as error:
        raise InputError(f"cannot read {target}: {error.strerror or error}") from error
    except (
        *(ValueError, KeyError, TypeError, EOFError, AttributeError, OverflowError),
        *(NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error),
    ) as error:
        raise InputError(
            f"{target} is no model that seqopt train-vae wrote, or is damaged: expected its archive of arrays and facts"
        ) from error
    if version > VERSION:
        raise InputError(f"{target} was written by a later seqopt (version {version} of the format): update seqopt")
    return facts, arrays


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
