"""Files as they come: plain, compressed, in an archive, or one sheet of a workbook.

A file is named by its path. Where it holds several tables, one is named after a ``#``: ``plates.xlsx#Plate 2`` is a
sheet of a workbook, ``delivery.zip#results.csv`` a file of an archive, ``delivery.zip#plates.xlsx#Plate 2`` both. A
file whose own name has a ``#`` is that file.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seqopt.errors import InputError

PART = "#"
"""What stands between the name of a file and that of one of its tables."""

LARGEST_UNPACKED = 2 << 30
"""Bytes that a compressed file may unpack to; more are refused, since a small file may claim to hold any number."""

WORKBOOKS = (".xlsx", ".xlsm")
"""Endings of workbooks that are read."""

STRUCTURES = (".sdf", ".sd")
"""Endings of structure-data files."""

_HOLDERS = (*WORKBOOKS, ".zip")

_REFUSED = {
    ".xls": "an old Excel workbook: save it as .xlsx or CSV (UTF-8)",
    ".xlsb": "a binary Excel workbook: save it as .xlsx or CSV (UTF-8)",
    ".ods": "a spreadsheet of OpenDocument: save it as .xlsx or CSV (UTF-8)",
    ".numbers": "a spreadsheet of Numbers: export it as .xlsx or CSV",
    ".rar": "an archive that is not read: unpack it, or make a .zip of it",
    ".7z": "an archive that is not read: unpack it, or make a .zip of it",
}


@dataclass(frozen=True)
class Source:
    """The bytes of a table, unpacked.

    Attributes:
        name: What messages call it: as the user named it, with the file of an archive that was taken.
        ending: Of the name, in small letters, without that of compression: ``".csv"``, ``".xlsx"``.
        data: Its bytes.
        sha256: Checksum of the file on the disk and, where it holds several tables, of the name of this one: the same
            table has the same checksum.
        sheet: The sheet of a workbook that is asked for, if one is.
    """

    name: str
    ending: str
    data: bytes
    sha256: str
    sheet: str | None = None

    def of_part(self, part: str) -> str:
        """The checksum of one of several tables of this source."""
        return _of_part(self.sha256, part)


def file_and_part(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file on the disk that a path leads to, and which of its tables.

    Example:
        >>> file_and_part("plates.xlsx#Plate 2"), file_and_part("a#1.csv")
        ((PosixPath('plates.xlsx'), 'Plate 2'), (PosixPath('a#1.csv'), None))
    """
    text = os.fspath(path)
    if PART in text and not os.path.exists(text):
        for index, sign in enumerate(text):
            if sign == PART and text[:index].lower().endswith(_HOLDERS):
                return Path(text[:index]), text[index + 1 :]
    return Path(text), None


def named(file: str | os.PathLike[str], part: str | None) -> str:
    """How a table of a file is named; the inverse of `file_and_part`.

    Example:
        >>> named("plates.xlsx", "Plate 2"), named("library.csv", None)
        ('plates.xlsx#Plate 2', 'library.csv')
    """
    return os.fspath(file) if part is None else f"{os.fspath(file)}{PART}{part}"


def unchanged(path: str | os.PathLike[str], sha256: str) -> bool | None:
    """Whether a file still is the one of which a table had a checksum; it is not unpacked for that.

    Args:
        path: The file; where it holds several tables, with the name of the table: ``FILE#TABLE``, as `Source.name` and
            `named` write it.
        sha256: The checksum of the table, as `Source.sha256` and `Source.of_part` give it. It depends on all of the
            file: a change of another of its tables is one.

    Returns:
        `None` where there is no such file, as of a data set that goes by its name, or none that can be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "library.csv")
        ...     _ = file.write_text("CCO")
        ...     source = open_source(file)
        ...     before = unchanged(file, source.sha256)
        ...     _ = file.write_text("CCN")
        ...     before, unchanged(file, source.sha256), unchanged("zinc250k", source.sha256)
        (True, False, None)
    """
    file, part = file_and_part(path)
    try:
        with open(file, "rb") as stream:
            whole = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
    found = {whole}
    if part is not None:
        found.add(_of_part(whole, part))
        # A sheet of a workbook in an archive, be it the only file there or not.
        for index in (number for number, sign in enumerate(part) if sign == PART):
            sheet = part[index + 1 :]
            found |= {_of_part(whole, sheet), _of_part(_of_part(whole, part[:index]), sheet)}
    return sha256 in found


def ending_of(path: str | os.PathLike[str]) -> str:
    """The ending of a name, in small letters, without that of compression.

    Example:
        >>> ending_of("pool.SDF.gz"), ending_of("pool.csv")
        ('.sdf', '.csv')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def open_source(path: str | os.PathLike[str]) -> Source:
    """Read a file, and unpack it.

    Args:
        path: The file; ``FILE#PART`` for one of several tables: see the module.

    Raises:
        InputError: For a file that is missing, empty, damaged, of a format that is not read, or too large when it is
            unpacked; for an archive of several tables of which none is named.
    """
    file, part = file_and_part(path)
    try:
        if file.is_dir():
            raise InputError(f"{file} is a folder; name a file in it")
        data = file.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {file}{_neighbours(file)}") from None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from error
    if not data:
        raise InputError(f"{file} is empty")
    name, ending = str(file), ending_of(file)
    _refuse(name, ending)
    digest = hashlib.sha256(data).hexdigest()
    if data[:2] == b"\x1f\x8b" or file.suffix.lower() == ".gz":
        data = _gunzipped(name, data)
    if ending == ".zip":
        member, part, several, data = _unzipped(name, data, part)
        name, ending = f"{name}{PART}{member}", ending_of(member)
        _refuse(name, ending)
        if several:
            digest = _of_part(digest, member)
        if member.lower().endswith(".gz"):
            data = _gunzipped(name, data)
        if not data:
            raise InputError(f"{name} is empty")
    if part is not None and ending not in WORKBOOKS:
        raise InputError(f"{name} is a single table: leave {PART}{part} out")
    return Source(name, ending, data, digest, part)


def choose_part(name: str, what: str, parts: Sequence[str], wanted: str) -> str:
    """The one of the parts of a file that a user names, in letters of either case.

    Raises:
        InputError: If there is none; it lists them.
    """
    if wanted in parts:
        return wanted
    matches = [part for part in parts if part.strip().casefold() == wanted.strip().casefold()]
    if len(matches) == 1:
        return matches[0]
    raise InputError(f"{name} has no {what} {wanted!r}; it has {shown_parts(parts)}")


def shown_parts(parts: Sequence[str]) -> str:
    """A list of names for a message."""
    listed = ", ".join(map(repr, parts[:10]))
    return listed + (f" and {len(parts) - 10} more" if len(parts) > 10 else "")


def _of_part(digest: str, part: str) -> str:
    return hashlib.sha256(f"{digest}{PART}{part}".encode()).hexdigest()


def _refuse(name: str, ending: str) -> None:
    if ending in _REFUSED:
        raise InputError(f"{name} is {_REFUSED[ending]}")


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" (nor a folder {folder})"
    close = difflib.get_close_matches(path.name, [item.name for item in folder.iterdir()], n=1)
    return f". Did you mean {folder / close[0]}?" if close else ""


def _gunzipped(name: str, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            unpacked = stream.read(LARGEST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name} is not a complete gzip file ({error}): copy or download it again") from error
    if len(unpacked) > LARGEST_UNPACKED:
        raise InputError(f"{name} unpacks to more than {LARGEST_UNPACKED >> 30} GB, which is not read: divide it")
    return unpacked


def _unzipped(name: str, data: bytes, part: str | None) -> tuple[str, str | None, bool, bytes]:
    """The file of an archive that is meant, what is asked for of it, whether there are others, and its bytes."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {
                item.filename: item for item in archive.infolist() if not item.is_dir() and not _aside(item.filename)
            }
            if not files:
                raise InputError(f"{name} is an archive without a file")
            names = list(files)
            if part is None:
                if len(names) > 1:
                    raise InputError(
                        f"{name} is an archive of {len(names)} files, {shown_parts(names)}: say which is meant, "
                        f"{name}{PART}{names[0]}"
                    )
                member, rest = names[0], None
            else:
                member, rest = _member(name, names, part)
            if files[member].file_size > LARGEST_UNPACKED:
                limit = f"{LARGEST_UNPACKED >> 30} GB"
                raise InputError(f"{name}{PART}{member} unpacks to more than {limit}, which is not read: divide it")
            if files[member].flag_bits & 0x1:
                raise InputError(f"{name}{PART}{member} is protected by a password: unpack it first")
            # No more is unpacked than the archive says, whatever is in it.
            return member, rest, len(names) > 1, archive.read(member)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{name} is not a complete zip archive ({error}): copy or download it again") from error


def _aside(name: str) -> bool:
    """Files that programs put beside those of a user."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or parts[-1].startswith(".") or parts[-1].casefold() in ("thumbs.db", "desktop.ini")


def _member(name: str, names: Sequence[str], part: str) -> tuple[str, str | None]:
    """The file of an archive by its name, with or without its folder, and the part of it that is named behind it."""
    if part not in names and PART in part:
        member, _, rest = part.partition(PART)
        if member.lower().endswith(WORKBOOKS):
            return _member(name, names, member)[0], rest
    bare = [item for item in names if PurePosixPath(item).name == part]
    if part not in names and len(bare) == 1:
        return bare[0], None
    # A single sheet of the only file: delivery.zip#Plate 2.
    if len(names) == 1 and names[0].lower().endswith(WORKBOOKS) and part.casefold() != names[0].casefold():
        return names[0], part
    return choose_part(name, "file", names, part), None
