"""A pool of very many candidates that are on disk, with their fingerprints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from seqopt.datasets.pool_identifiers import NO_COLUMN
from seqopt.datasets.pool_store import PoolStore, file_checksums, prepare_pool
from seqopt.encoding import EncodedStrings, Encoder, MorganFingerprint, Tokenizer
from seqopt.errors import InputError
from seqopt.spaces.listed import Listed
from seqopt.spaces.spread import Spread
from seqopt.strings.packed import key_hashes
from seqopt.utils.array_files import DamagedFileError, read_arrays, write_arrays
from seqopt.utils.config import Configurable, from_config
from seqopt.utils.progress import doing
from seqopt.utils.shown import Shown

BLOCK = 1 << 14
"""Strings that are made at a time where all are looked at."""


class StoredStrings(Sequence[str]):
    """Keys or strings of candidates on disk, made when they are asked for; `seqopt.encoding.featured.FeaturedStrings`.

    A slice is another one: nothing is read for it.

    Args:
        store: The pool.
        places: Of which candidates; by default all.
        written: Whether as their owner wrote them; by default their keys.
    """

    def __init__(self, store: PoolStore, places: npt.NDArray[np.int64] | range | None = None, *, written: bool = False):
        self._store = store
        self._places = range(len(store)) if places is None else places
        self._written = written

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> StoredStrings: ...

    def __getitem__(self, index: int | slice) -> str | StoredStrings:
        if isinstance(index, slice):
            return StoredStrings(self._store, self._places[index], written=self._written)
        place = int(self._places[index])
        return self._store.string(place) if self._written else self._store.key(place)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            part = self._array(slice(start, start + BLOCK))
            if self._written:
                yield from (self._store.string(place) for place in part.tolist())
            else:
                yield from self._store.keys(part)

    def __repr__(self) -> str:
        return f"StoredStrings({len(self):,})"

    def take(self, indices: npt.ArrayLike | slice) -> StoredStrings:
        """Those at some places."""
        if isinstance(indices, slice):
            return self[indices]
        chosen = np.asarray(indices, dtype=np.int64)
        whole = self._places
        if isinstance(whole, range):
            places = whole.start + whole.step * np.where(chosen < 0, chosen + len(whole), chosen)
        else:
            places = whole[chosen]
        return StoredStrings(self._store, places, written=self._written)

    def has_features(self, name: str) -> bool:
        """Whether the fingerprints of a `seqopt.encoding.MorganFingerprint` of this name are in the store."""
        return not self._written and name in _names(self._store)

    def features(self, name: str) -> Any:
        """Its rows, as it would compute them of these keys."""
        return self._store.fingerprints(self._array(slice(None)), counts=_names(self._store)[name])

    def _array(self, part: slice) -> npt.NDArray[np.int64]:
        places = self._places[part]
        if isinstance(places, range):
            return np.arange(places.start, places.stop, places.step, dtype=np.int64)
        return places


def _names(store: PoolStore) -> dict[str, bool]:
    """Names of fingerprints that are there, and whether they count."""
    if store.fingerprint is None:
        return {}
    radius, size, chirality = store.fingerprint
    return {MorganFingerprint(radius, size, counts, chirality).name: counts for counts in (False, True)}


class StoredPool(Listed, Shown, Configurable):
    """A pool of candidates on disk; implements `seqopt.spaces.PoolSpace`.

    It is the `seqopt.spaces.CandidateSet` of the same files, for so many candidates that an object for each would not
    fit into memory: strings are made when they are asked for, keys are found by their hashes, and tokens and
    fingerprints are mapped into memory. Memory is 12 bytes a candidate for the index, which is mapped as well, and what
    a search itself holds: some numbers of 8 bytes for each.

    Args:
        store: What `seqopt.datasets.prepare_pool` returned.
        tokenizer: See `seqopt.spaces.CandidateSet`.

    Attributes:
        spread: Who looks at the candidates, where that is not this process: see `seqopt.distributed`. It is no part of
            the description, since what a search chooses does not depend on it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from seqopt.datasets import prepare_pool
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "library.smi")
        ...     _ = file.write_text("OCC\\nCCN\\nC(C)O\\n")
        ...     pool = StoredPool(prepare_pool(file, folder=folder, workers=1))
        ...     len(pool), pool[0], pool.key("C(C)O"), pool.index_of("C(O)C"), list(pool.keys)
        (2, 'OCC', 'CCO', 0, ['CCO', 'CCN'])
    """

    def __init__(self, store: PoolStore, *, tokenizer: str | Tokenizer | None = None) -> None:
        if not isinstance(store, PoolStore):
            raise InputError(f"{store!r} is no prepared pool: give what seqopt.datasets.prepare_pool returned")
        self.store = store
        self.spread: Spread | None = None
        self.kind = store.kind
        self.standardize = store.standardized
        if tokenizer is None:
            tokenizer = "smiles-split" if self.kind == "molecule" else "characters"
        self.encoder = Encoder(tokenizer)

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`: of the candidates their number and the SHA-256 of the hashes of their
        keys, which tell pools apart; and the files, by which they are found again.
        """
        return {
            "size": len(self),
            "hashes_sha256": self.hashes_sha256,
            "kind": self.kind,
            "tokenizer": self.encoder.tokenizer,
            "standardize": self.standardize,
            **self.store.origin(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The pool of the files that a description names; they are prepared where the store was deleted.

        Raises:
            InputError: If a file is missing or has changed.
        """
        files = config["files"]
        changed = [path for path, kept in zip(files, config["sha256"], strict=True) if file_checksums([path]) != [kept]]
        if changed:
            raise InputError(f"{changed[0]} has changed since its candidates were prepared: restore it")
        store = prepare_pool(
            files,
            column=config["column"],
            kind=config["kind"],
            standardize=config["standardize"],
            attachment_points=config["attachment_points"],
            fingerprints=config["fingerprints"],
            folder=config["folder"],
            rows=config["rows"],
            # Where none was taken, none is, whatever would be taken today: the store is found as it is.
            id_column=(config["id_column"] or NO_COLUMN) if "id_column" in config else None,
            price_column=config.get("price_column"),
            sieve=from_config(config["sieve"]) if config.get("sieve") else None,
        )
        found = cls(store, tokenizer=from_config(config["tokenizer"]))
        if found.hashes_sha256 != config["hashes_sha256"]:
            raise InputError(
                f"{files[0]}: {len(found):,} candidates are read where {config['size']:,} others were: another version "
                "of RDKit or seqopt writes them in another way"
            )
        return found

    @cached_property
    def hashes_sha256(self) -> str:
        """Of the hashes of all keys, sorted."""
        digest = hashlib.sha256()
        hashes = self.store.sorted_hashes
        for start in range(0, len(hashes), 1 << 20):
            digest.update(np.ascontiguousarray(hashes[start : start + (1 << 20)]).data)
        return digest.hexdigest()

    @property
    def strings(self) -> StoredStrings:
        """The candidates as they were written."""
        return StoredStrings(self.store, written=True)

    @property
    def keys(self) -> StoredStrings:
        """The candidates' keys, in the order of the pool."""
        return StoredStrings(self.store)

    @cached_property
    def encoded(self) -> EncodedStrings:
        """All keys, encoded once, kept in the store and mapped into memory."""
        name = hashlib.sha256(self.encoder.name.encode()).hexdigest()[:12]
        path = self.store.folder / f"tokens-{name}.bin"
        try:
            found = read_arrays(path)
        except (FileNotFoundError, DamagedFileError):
            found = None
        alphabet = self.encoder.alphabet
        # The numbers of symbols are those of an encoder that has seen nothing else.
        if found is not None and found.facts["size"] == len(self) and len(alphabet) == 0:
            for symbol in found.facts["symbols"]:
                alphabet.number(symbol)
            return EncodedStrings(found.arrays["tokens"], found.arrays["lengths"])
        fresh = len(alphabet) == 0
        with doing(f"encoding {len(self):,} candidates"):
            encoded = self._encode()
        if fresh and not alphabet.closed:
            facts = {"size": len(self), "symbols": list(alphabet.numbers)}
            try:
                write_arrays(path, {"tokens": encoded.tokens, "lengths": encoded.lengths}, facts)
            except OSError:
                return encoded
            found = read_arrays(path, check=False)
            return EncodedStrings(found.arrays["tokens"], found.arrays["lengths"])
        return encoded

    def _encode(self) -> EncodedStrings:
        """All keys, encoded in blocks: held in memory, a byte for each symbol."""
        lengths = np.empty(len(self), dtype=np.int32)
        tokens = np.zeros((len(self), 64), dtype=np.uint8)
        keys = self.keys
        for start in range(0, len(self), BLOCK):
            part = self.encoder.encode(list(keys[start : start + BLOCK]))
            wider = max(tokens.shape[1], part.width) > tokens.shape[1]
            if wider or part.tokens.dtype.itemsize > tokens.dtype.itemsize:
                grown = np.zeros((len(self), max(tokens.shape[1], part.width)), dtype=part.tokens.dtype)
                grown[:start, : tokens.shape[1]] = tokens[:start]
                tokens = grown
            tokens[start : start + len(part), : part.width] = part.tokens
            lengths[start : start + len(part)] = part.lengths
        longest = int(lengths.max(initial=0))
        return EncodedStrings(np.ascontiguousarray(tokens[:, :longest]), lengths)

    def known_key(self, string: str) -> str | None:
        """The key of what is written as a candidate's key, without reading it; else `None`."""
        return string if isinstance(string, str) and self._place(string) is not None else None

    def _place(self, key: str) -> int | None:
        return self.store.find(key, int(key_hashes([key])[0]))

    def index_of(self, string: str) -> int | None:
        """Position of the candidate that has the key of ``string``, or `None`."""
        place = self._place(string)
        return self._place(self.key(string)) if place is None else place

    def __len__(self) -> int:
        return len(self.store)

    def __getitem__(self, index: int) -> str:
        return self.strings[index]

    def __repr__(self) -> str:
        return f"StoredPool({len(self):,} x {self.kind}, tokenizer={self.encoder.tokenizer.name!r})"
