"""The files of candidates that a campaign searches: which candidates there are, and what has changed about them.

A candidate is known by the hash of its key, whatever row it stands in: the order of rows, and columns beside the
strings, may change. The file of a campaign holds the hashes of those candidates that count, and of those that were
removed and still stand in a file. What has come into a file since does not count before it is added; what has gone from
it has to be accepted before anything is suggested, since half a file looks the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError
from seqopt.strings.mutations import readable_variants
from seqopt.utils.progress import doing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from seqopt.datasets import Pool
    from seqopt.spaces import CandidateSet

    Hashes = npt.NDArray[np.uint64]

HASHED = 20_000_000
"""Most candidates whose hashes are kept, of 8 bytes each."""

RECOGNISED = "recognised"
"""In place of the name of a column of prices: the one that is called so, if there is any."""

WAY_OUT = "seqopt campaign pool --replace FILE (Campaign.change_pool) accepts the file as it is"


@dataclass(frozen=True)
class Library:
    """Candidates as they were read.

    Attributes:
        facts: What a campaign keeps of them: ``path``, ``column``, ``kind``, ``standardize``, ``attachment_points``,
            ``size``, ``sha256`` of the file, ``keys_sha256``, ``id_column`` and ``price_column`` (`None` where there is
            none), and ``added``, the facts of further files.
        space: The candidates, ordered by their hashes, so that no suggestion depends on the order of rows.
        hashes: Of their keys, sorted.
        string_column: What the column of strings is called.
        left_out: What of the files is left out and why, in words.
        notes: What has changed since, in words.
    """

    facts: dict[str, Any]
    space: CandidateSet
    hashes: Hashes
    string_column: str = "string"
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def key_hashes(keys: Sequence[str]) -> Hashes:
    """See `seqopt.strings.packed.key_hashes`."""
    # With numpy, which a campaign is opened without.
    from seqopt.strings import packed

    return packed.key_hashes(keys)


def packed(hashes: Hashes) -> bytes | None:
    """Hashes as the file of a campaign holds them; `None` if there are too many."""
    return hashes.astype("<u8").tobytes() if len(hashes) <= HASHED else None


def unpacked(raw: bytes | None) -> Hashes | None:
    """The hashes that `packed` gave."""
    import numpy as np

    return None if raw is None else np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def read_library(
    path: str | os.PathLike[str],
    column: str | None,
    kind: str | None,
    standardize: bool,
    *,
    attachment_points: bool = False,
    id_column: str | None = None,
    price_column: str | None = None,
    decimal_comma: bool = False,
    parent: str | None = None,
    check_columns: Callable[[Sequence[str] | None], object] | None = None,
) -> Library:
    """Read a file of candidates for the first time.

    Args:
        path: The file, or the name of a data set.
        column: Column of the strings, if it is not to be recognised.
        kind: What they are, if it is not to be recognised.
        standardize: Whether salts and charge states are one candidate.
        attachment_points: Whether molecules may have attachment points.
        id_column: Column of the owner's identifiers, if it is not to be recognised: every candidate needs one of its
            own.
        price_column: Column of prices, if there is one; `RECOGNISED` for the one column that is called so, such as
            ``price`` or ``price_usd``, if there is any.
        decimal_comma: Whether numbers in the file are written ``6,5``.
        parent: What candidates are variants of, if they may be written as ``S121E/D57G``.
        check_columns: Called with the names of the other columns: see `seqopt.datasets.read_pool`.

    Raises:
        InputError: For a file or a column that cannot be used.
    """
    from seqopt.datasets import read_pool
    from seqopt.datasets.pool_columns import price_column as price_in
    from seqopt.datasets.sources import file_and_part, named

    guessed = price_column == RECOGNISED
    columns: list[str] = []

    def see(names: Sequence[str] | None) -> None:
        columns.extend(names or ())
        if check_columns is not None:
            check_columns(names)

    pool = read_pool(
        path,
        column=column,
        kind=kind,
        standardize=standardize,
        attachment_points=attachment_points,
        id_column=id_column,
        further_column=None if guessed else price_column,
        decimal_comma=decimal_comma,
        parent=parent,
        check_columns=see,
    )
    remarks = pool.summary().splitlines()[1:]
    if guessed and (price_column := price_in(columns)) is not None:
        remarks.append(f"prices are those of the column {price_column!r} (--price-column none to leave them aside)")
    file, part = file_and_part(pool.source)
    facts = {
        "path": named(file.resolve(), part) if file.exists() else pool.source,
        "column": pool.column,
        "kind": pool.kind,
        "standardize": pool.standardized,
        "attachment_points": attachment_points,
        "id_column": pool.id_column,
        "price_column": price_column,
        "sha256": pool.sha256,
    }
    # How tables of this campaign are written, so that the spreadsheet of its user opens them as it does the library.
    if pool.separator == ";":
        facts["separator"] = ";"
    if decimal_comma:
        facts["decimal_comma"] = True
    if parent is not None:
        facts["parent"] = parent
    from seqopt.datasets.pool_columns import written_column

    return _library(facts, [pool], written_column(pool.column), remarks)


def same_library(facts: Mapping[str, Any], kept: bytes | None = None, removed: bytes | None = None) -> Library:
    """The candidates by the facts that `read_library` returned.

    Args:
        facts: What the campaign keeps of them.
        kept: Hashes of those that count, as the file of the campaign holds them.
        removed: Hashes of those that were removed.

    Raises:
        CampaignError: If a file no longer exists, or lacks candidates that count. The message says how many, and what
            to do.
    """
    import numpy as np

    pools = [_pool(one) for one in (facts, *facts.get("added", []))]
    wanted = unpacked(kept)
    # Of a campaign that holds no hashes, as that of a run, the order of rows decides, too.
    from seqopt.datasets.pool_columns import written_column

    found = _library(dict(facts), pools, written_column(facts["column"]), [], ordered=wanted is not None)
    if wanted is None:
        if not _is_same(pools, facts):
            raise CampaignError(
                f"the library {facts['path']} has changed since the campaign began: it held {facts['size']:,} "
                f"candidates then and holds {len(found.space):,} now. Restore it, or accept it: {WAY_OUT}"
            )
        return found
    gone = np.setdiff1d(wanted, found.hashes, assume_unique=True)
    if len(gone):
        come = len(found.hashes) + len(gone) - len(wanted)
        more = f" and holds {come:,} others" if come > 0 else ""
        raise CampaignError(
            f"the library {facts['path']} has changed: it lacks {len(gone):,} of {len(wanted):,} candidates{more}. "
            f"Restore it, or accept it: {WAY_OUT}, and seqopt campaign pool --remove FILE removes some"
        )
    notes = []
    come_in = len(found.hashes) - len(wanted)
    known = unpacked(removed)
    if known is not None:
        come_in -= int(np.isin(known, found.hashes, assume_unique=True).sum())
    if come_in:
        what = "1 candidate has" if come_in == 1 else f"{come_in:,} candidates have"
        notes.append(
            f"{what} come into {facts['path']} since, and will not be suggested before seqopt campaign pool --add "
            f"{Path(facts['path']).name} (Campaign.change_pool)"
        )
    elif pools[0].sha256 != facts.get("sha256") and facts.get("sha256"):
        notes.append(f"{facts['path']} has changed, and holds the same candidates: other columns, or another order")
    if len(found.hashes) > len(wanted):
        found = _only(found, wanted)
    return Library(found.facts, found.space, found.hashes, found.string_column, found.left_out, notes)


def strings_in(facts: Mapping[str, Any]) -> set[str]:
    """All strings of the files of a library as they stand there, without looking at what they are."""
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.structures import as_smiles
    from seqopt.datasets.tables import read_table

    found: set[str] = set()
    for one in (facts, *facts.get("added", [])):
        if file_and_part(one["path"])[0].is_file():
            column = one["column"] or "string"
            cells = read_table(one["path"], expected={plain_name(column)}).columns.get(column, [])
            written = as_smiles(cells) if one.get("kind") == "molecule" else cells
            found |= {cell.strip() for cell in readable_variants(facts.get("parent"), written)}
    return found


def with_added(library: Library, added: Library, removed: Hashes | None = None) -> Library:
    """A library with the candidates of another file; of the same candidate, the first file counts.

    Args:
        library: The library.
        added: The other file, or the library's own after rows were added to it.
        removed: Hashes of candidates that were removed: those of the library's own files stay so.

    Raises:
        InputError: If the strings are of another kind.
    """
    import numpy as np

    from seqopt.spaces import CandidateSet

    if added.space.kind != library.space.kind or added.facts["standardize"] != library.facts["standardize"]:
        raise InputError(
            f"{added.facts['path']} holds {added.space.kind} strings, and the campaign searches {library.space.kind}"
        )
    own = any(_same_path(one["path"], added.facts["path"]) for one in (library.facts, *library.facts.get("added", [])))
    if own and removed is not None and len(rest := np.setdiff1d(added.hashes, removed)):
        added = _only(added, rest)
    strings = [*library.space.strings, *added.space.strings]
    keys = [*library.space.keys, *added.space.keys]
    space = CandidateSet(strings, kind=library.space.kind, keys=keys, standardize=library.facts["standardize"])
    files = [*library.facts.get("added", [])]
    if not own:
        files.append(
            {
                name: added.facts[name]
                for name in ("path", "column", "kind", "standardize", "attachment_points", "id_column", "sha256")
            }
            | ({"parent": library.facts["parent"]} if "parent" in library.facts else {})
        )
    return _ordered(library.facts | {"added": files}, space, library.string_column, added.left_out)


def without(library: Library, keys: Sequence[str]) -> Library:
    """A library without some of its candidates.

    Raises:
        CampaignError: If nothing is left.
    """
    import numpy as np

    rest = np.setdiff1d(library.hashes, key_hashes(keys))
    if not len(rest):
        raise CampaignError("no candidate would be left: nothing was changed")
    return _only(library, rest)


def _pool(facts: Mapping[str, Any]) -> Pool:
    from seqopt.datasets import read_pool
    from seqopt.datasets.sources import file_and_part

    path = Path(facts["path"])
    if path.suffix and not file_and_part(path)[0].exists():
        raise CampaignError(
            f"the library {path} no longer exists: restore it, or put it next to the file of the campaign"
        )
    with doing(f"reading {path}"):
        return read_pool(
            facts["path"],
            column=facts["column"],
            kind=facts["kind"],
            standardize=facts["standardize"],
            attachment_points=allows_attachment_points(facts),
            decimal_comma=bool(facts.get("decimal_comma")),
            parent=facts.get("parent"),
        )


def allows_attachment_points(facts: Mapping[str, Any]) -> bool:
    """Whether a campaign's candidates may have attachment points: of campaigns from before there was this option, all
    that their file holds.
    """
    return bool(facts.get("attachment_points", True))


def _library(
    facts: dict[str, Any], pools: Sequence[Pool], column: str, left_out: list[str], *, ordered: bool = True
) -> Library:
    from seqopt.spaces import CandidateSet

    strings = [string for pool in pools for string in pool.strings]
    keys = [key for pool in pools for key in pool.keys]
    space = CandidateSet(strings, kind=pools[0].kind, keys=keys, standardize=pools[0].standardized)
    if not ordered:
        return Library(facts, space, key_hashes(space.keys), column, left_out)
    return _ordered(facts, space, column, left_out)


def _ordered(facts: dict[str, Any], space: CandidateSet, column: str, left_out: list[str]) -> Library:
    import numpy as np

    from seqopt.spaces import CandidateSet

    hashes = key_hashes(space.keys)
    order = np.argsort(hashes, kind="stable")
    strings, keys = space.strings, space.keys
    ordered = CandidateSet(
        [strings[row] for row in order],
        kind=space.kind,
        keys=[keys[row] for row in order],
        standardize=bool(facts["standardize"]),
    )
    hashes = hashes[order]
    facts = facts | {"size": len(ordered), "keys_sha256": hashlib.sha256(hashes.astype("<u8").tobytes()).hexdigest()}
    return Library(facts, ordered, hashes, column, left_out)


def _only(library: Library, wanted: Hashes) -> Library:
    import numpy as np

    from seqopt.spaces import CandidateSet

    rows = np.flatnonzero(np.isin(library.hashes, wanted))
    strings, keys = library.space.strings, library.space.keys
    space = CandidateSet(
        [strings[row] for row in rows],
        kind=library.space.kind,
        keys=[keys[row] for row in rows],
        standardize=bool(library.facts["standardize"]),
    )
    return _ordered(library.facts, space, library.string_column, library.left_out)


def _is_same(pools: Sequence[Pool], facts: Mapping[str, Any]) -> bool:
    """Whether the candidates, in their order, are those of a campaign that holds no hashes."""
    from seqopt.utils.cache import digest

    return digest(pools[0].keys) == facts["keys_sha256"]


def _same_path(first: str, second: str) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)
