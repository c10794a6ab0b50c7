"""Shards of a pool on disk: some ten thousand rows of its files, judged, with what identifies them and fingerprints.

A shard depends on its rows and on the settings alone, and is written at once: it is there as a whole, or has to be
made. Strings are bytes one after another; the strings as they were written are kept only where they are not the keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.datasets.pool_rows import RowFilter
from seqopt.datasets.row_blocks import RowBlock
from seqopt.strings.identity import (
    canonical_molecule,
    explain_attachment,
    explain_rejection,
    identity_keys,
    quiet_rdkit,
)
from seqopt.strings.notations import is_inchi, reference_to_structure, without_inchi
from seqopt.strings.packed import key_hashes, packed_strings
from seqopt.utils.array_files import Array, write_arrays

BLOCK = 1_000
"""Molecules that are held at a time; RDKit takes some ten kilobytes for each."""

ATTACHMENT_OPTION = "attachment_points=True (--attachment-points)"


def make_shard(path: str, block: RowBlock, settings: Mapping[str, Any]) -> tuple[int, int]:
    """Judge the rows of a block, and write the shard.

    Args:
        path: The shard.
        block: Its rows.
        settings: ``kind``, ``standardize``, ``attachment_points``; ``fingerprint``: radius, size and chirality, or
            `None` for none; ``read``, the columns that the block has cells of; ``kept``, those whose cells are kept,
            and which of them identifies, ``id_column``; and ``sieve``, a `seqopt.datasets.pool_rows.RowFilter` or
            `None`.

    Returns:
        How many rows are usable, and how many are not.

    Raises:
        OSError: If it cannot be written.
    """
    kind = settings["kind"]
    rejected = list(block.unread)
    strings = without_inchi(block.strings) if kind == "molecule" else block.strings
    keys: list[str] = []
    kept: list[int] = []
    parts: list[dict[str, Array]] = []
    columns = dict(zip(settings["read"], block.cells, strict=True))
    sieve: RowFilter | None = settings["sieve"]
    steps: list[tuple[str, int, int]] = []
    shape = settings["fingerprint"]
    featurizer = None
    if shape is not None:
        # Imports torch, which other strings do without.
        from seqopt.encoding.fingerprints import MorganFingerprint

        featurizer = MorganFingerprint(shape[0], shape[1], True, shape[2])
    for start in range(0, len(strings), BLOCK):
        usable: list[tuple[int, str, Any]] = []
        for row, one in enumerate(_judged(strings[start : start + BLOCK], settings), start):
            why = why_rejected(strings[row], kind) if one is None else None
            if one is not None and kind == "molecule" and not settings["attachment_points"]:
                why = explain_attachment(one[0], option=ATTACHMENT_OPTION)
            if one is None or why is not None:
                rejected.append((block.lines[row], block.strings[row], str(why)))
            else:
                usable.append((row, *one))
        if sieve is not None:
            asked = {name: [columns[name][row] for row, _, _ in usable] for name in sieve.columns}
            passes, done = sieve([strings[row] for row, _, _ in usable], [key for _, key, _ in usable], asked)
            usable = [one for one, fits in zip(usable, passes.tolist(), strict=True) if fits]
            steps = summed_steps([steps, done])
        kept += [row for row, _, _ in usable]
        keys += [key for _, key, _ in usable]
        mols = [mol for _, _, mol in usable]
        if featurizer is not None:
            rows = featurizer.of_molecules(mols)
            parts.append(
                {"columns": rows.indices.astype(np.uint16), "counts": rows.data, "sizes": np.diff(rows.indptr)}
            )
    written = [place for place, (row, key) in enumerate(zip(kept, keys, strict=True)) if strings[row] != key]
    rejected.sort(key=lambda record: record[0])
    arrays: dict[str, Array] = {
        "lines": np.array([block.lines[row] for row in kept], dtype=np.uint32),
        "hashes": key_hashes(keys),
        "written_rows": np.array(written, dtype=np.uint32),
        "rejected_lines": np.array([line for line, _, _ in rejected], dtype=np.int64),
    }
    besides = [
        (f"cells_{number}", [columns[name][row] for row in kept]) for number, name in enumerate(settings["kept"])
    ]
    if settings["id_column"] is not None:
        arrays["id_hashes"] = key_hashes([columns[settings["id_column"]][row] for row in kept])
    for name, texts in (
        ("keys", keys),
        ("written", [strings[kept[place]] for place in written]),
        ("rejected", [value for _, value, _ in rejected]),
        ("reasons", [why for _, _, why in rejected]),
        *besides,
    ):
        arrays[name], arrays[f"{name}_ends"] = packed_strings(texts)
    if parts or featurizer is not None:
        arrays |= _fingerprints(parts)
    facts = {"file": block.file, "rows": len(keys), "rejected": len(rejected), "steps": steps}
    write_arrays(Path(path), arrays, facts)
    return len(keys), len(rejected)


def shard_bytes(block: RowBlock, settings: Mapping[str, Any]) -> bytes:
    """The content of the file that `make_shard` would write, for machines that do not share a disk.

    Args:
        block: See `make_shard`.
        settings: See `make_shard`.
    """
    with tempfile.TemporaryDirectory(prefix="seqopt-") as folder:
        path = Path(folder) / "shard.bin"
        make_shard(str(path), block, settings)
        return path.read_bytes()


def summed_steps(parts: Iterable[Sequence[Sequence[Any]]]) -> list[tuple[str, int, int]]:
    """What filters did to several parts of a pool: of each filter, how many reached it and how many passed it.

    Example:
        >>> summed_steps([[("MW <= 500", 3, 2)], [], [("MW <= 500", 5, 1)]])
        [('MW <= 500', 8, 3)]
    """
    found: dict[str, tuple[int, int]] = {}
    for part in parts:
        for name, reached, passed in part:
            before = found.get(name, (0, 0))
            found[name] = before[0] + int(reached), before[1] + int(passed)
    return [(name, *both) for name, both in found.items()]


def _judged(strings: Sequence[str], settings: Mapping[str, Any]) -> list[tuple[str, Any] | None]:
    if settings["kind"] != "molecule":
        keys = identity_keys(strings, settings["kind"])
        return [None if key is None else (key, None) for key in keys]
    with quiet_rdkit():
        return [canonical_molecule(string, standardize=settings["standardize"]) for string in strings]


def why_rejected(string: str, kind: str) -> str:
    """Why a string cannot be used, in words.

    Args:
        string: It.
        kind: What it should be.
    """
    if kind == "molecule":
        if is_inchi(string):
            return "an InChI that RDKit cannot read"
        if (what := reference_to_structure(string)) is not None:
            return f"{what}, which does not say how the molecule is made: expected a SMILES or an InChI"
    return explain_rejection(string, kind)


def _fingerprints(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    columns, counts, sizes = (
        np.concatenate([part[name] for part in parts]) if parts else np.empty(0)
        for name in ("columns", "counts", "sizes")
    )
    ends = np.zeros(len(sizes) + 1, dtype=np.uint32)
    np.cumsum(sizes, out=ends[1:])
    # Few molecules have more than 255 equal environments.
    kind = np.uint8 if counts.max(initial=0) < 256 else np.uint16
    return {
        "fingerprint_columns": columns.astype(np.uint16),
        "fingerprint_counts": counts.astype(kind),
        "fingerprint_ends": ends,
    }
