"""The candidates of a run: kept beside its campaign, so that a list that has changed is taken up where it was left.

Candidates are known by their keys, whatever the order of the rows and whatever else the rows hold. Those that were
there before stay in their old order and new ones follow, so that a run whose file was only sorted anew goes on exactly
as it would have.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqopt.errors import RunFolderError
from seqopt.spaces import CandidateSet
from seqopt.utils.files import write_atomically

FILE = "candidates.json.gz"
"""Keys of all candidates, a JSON list, in the folder of a run. Without it nobody knows what has changed."""

LEAST_KEPT = 0.5
"""Share of the candidates that must still be there: with fewer it is another list."""


def keep_candidates(folder: Path, keys: Sequence[str]) -> None:
    """Write down which candidates a run has.

    Raises:
        OSError: If that cannot be written.
    """
    # Without a time inside, so that equal candidates make equal files.
    write_atomically(folder / FILE, gzip.compress(json.dumps(list(keys)).encode(), compresslevel=6, mtime=0))


def kept_candidates(folder: Path) -> list[str] | None:
    """Keys of the candidates that a run had; `None` where its folder does not say."""
    try:
        found = json.loads(gzip.decompress((folder / FILE).read_bytes()))
    except (OSError, ValueError, EOFError):
        return None
    return found if isinstance(found, list) and all(isinstance(key, str) for key in found) else None


def in_order_of(before: Sequence[str], space: CandidateSet) -> CandidateSet:
    """The same candidates: those of the keys ``before`` in that order, then the others in theirs.

    Example:
        >>> list(in_order_of(["B", "X", "A"], CandidateSet(["A", "C", "B"], kind="text")).keys)
        ['B', 'A', 'C']
    """
    known = [index for key in before if (index := space.index_of(key)) is not None]
    order = list(dict.fromkeys([*known, *range(len(space))]))
    if order == list(range(len(space))):
        return space
    keys = space.keys
    return CandidateSet(
        [space[index] for index in order],
        kind=space.kind,
        tokenizer=space.encoder.tokenizer,
        keys=[keys[index] for index in order],
        standardize=space.standardize,
    )


@dataclass(frozen=True)
class CandidateChanges:
    """How the candidates of a run differ from those that it had.

    Attributes:
        before: How many there were.
        now: How many there are.
        added: How many are new; `None` where that is not known.
        removed: How many are no longer there; `None` where that is not known.
        evaluated: How many of the latter were evaluated, or are.
    """

    before: int
    now: int
    added: int | None
    removed: int | None
    evaluated: int

    @classmethod
    def between(
        cls, before: Sequence[str] | None, count: int, now: Sequence[str], evaluated: Iterable[str]
    ) -> CandidateChanges:
        """What has changed.

        Args:
            before: Keys of the candidates that there were; `None` if they are not known.
            count: How many there were.
            now: Keys of those that there are.
            evaluated: Keys of what was evaluated.
        """
        present = set(now)
        gone = sum(key not in present for key in set(evaluated))
        if before is None:
            return cls(count, len(present), None, None, gone)
        old = set(before)
        return cls(len(old), len(present), len(present - old), len(old - present), gone)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(vars(self))

    def describe(self) -> str:
        """In words.

        Example:
            >>> CandidateChanges(100, 103, 5, 2, 1).describe()
            '103 candidates instead of 100: 5 added, 2 removed, of which 1 was evaluated and stays measured'
        """
        said = f"{self.now:,} candidates instead of {self.before:,}"
        one = self.evaluated == 1
        gone = f"{self.evaluated:,} {'was' if one else 'were'} evaluated and stay{'s' if one else ''} measured"
        if self.added is None or self.removed is None:
            return f"{said}" + (f"; of those removed {gone}" if self.evaluated else "")
        said = f"{said}: {self.added:,} added, {self.removed:,} removed"
        return f"{said}, of which {gone}" if self.evaluated else said

    def check(self, folder: Path, known_evaluated: int) -> None:
        """Refuse a list that has little to do with the one before.

        Args:
            folder: Of the run.
            known_evaluated: How many different strings were evaluated.

        Raises:
            RunFolderError: If less than half of the candidates are still there or, where these are not known, of what
                was evaluated.
        """
        if self.removed is not None:
            kept = 1 - self.removed / max(self.before, 1)
        else:
            kept = 1 - self.evaluated / max(known_evaluated, 1)
        if kept < LEAST_KEPT:
            raise RunFolderError(
                f"these are other candidates than those of the run in {folder}: {self.describe()}. Resume it with the "
                "same file, in which rows may have been added or removed, or start a new run with --out"
            )
