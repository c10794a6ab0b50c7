"""A given, possibly large, collection of allowed strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from seqopt.datasets.pool_store import PoolStore
from seqopt.datasets.pools import Pool
from seqopt.encoding import EncodedStrings, Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.spaces.candidates import Candidates, hinted_strings
from seqopt.spaces.listed import Listed
from seqopt.spaces.predicates import accepted
from seqopt.spaces.protocols import Space
from seqopt.spaces.stored_pool import StoredPool
from seqopt.strings.identity import (
    KINDS,
    explain_attachment,
    explain_rejection,
    identity_keys,
    quoted,
    recognize_kind,
)
from seqopt.utils.cache import digest
from seqopt.utils.config import Config, Configurable, NotConfigurableError
from seqopt.utils.shown import Shown

LISTED = 1_000
"""Most candidates that a description lists."""


def _refuse_attachment_points(strings: Sequence[str], keys: Sequence[str]) -> None:
    for index, key in enumerate(keys):
        why = explain_attachment(key, option="CandidateSet(..., attachment_points=True)")
        if why is not None:
            raise InputError(f"candidates[{index}] ({quoted(strings[index])}) has {why}")


class CandidateSet(Listed, Shown, Configurable):
    """A finite pool of candidate strings, the fourth kind of space of the BOSS paper (thesis, section 4.5).

    Every candidate is kept as it was written. For molecules the *key* that identifies it, and that models see, is its
    isomeric canonical SMILES; for other kinds the key is the string itself without surrounding blanks (sequences in
    upper case). Candidates with equal keys are one candidate, shown as the first of them was written.

    Args:
        strings: The candidates: a list, a Series, the column of strings of a DataFrame, RDKit molecules, ...; see
            `seqopt.spaces.candidate_strings`.
        kind: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"``, ``"text"``, or ``"auto"`` to recognise it.
        tokenizer: A tokeniser or its name. By default SMILES symbols with the parts of bracket
            atoms apart for molecules (``"smiles-split"``, which predicts better than whole brackets), else characters.
        keys: Keys of ``strings`` where they are known already, to save canonicalising them again.
        accept: Keeps only candidates for which this predicate of the string holds.
        standardize: Identify molecules by their charge parent, so that salts and charge states of one parent are one
            candidate: see `seqopt.strings.identity.canonical_smiles`.
        attachment_points: Whether molecules may have attachment points (``*``), as building blocks and repeat units of
            polymers do. They are not whole molecules, so by default they are refused; where ``keys`` are
            given, their owner has judged them.

    Raises:
        InputError: For an empty pool, an item that is no ``str``, an unreadable SMILES (with its index and the reason),
            an attachment point, or an unknown kind.

    Example:
        >>> pool = CandidateSet(["OCC", "CCO", "c1ccccc1"], kind="molecule")
        >>> len(pool), pool[0], pool.key("C(C)O"), pool.index_of("C(O)C")
        (2, 'OCC', 'CCO', 0)
    """

    def __init__(
        self,
        strings: Candidates,
        *,
        kind: str = "auto",
        tokenizer: str | Tokenizer | None = None,
        keys: Sequence[str] | None = None,
        accept: Callable[[str], bool] | None = None,
        standardize: bool = False,
        attachment_points: bool = False,
    ) -> None:
        items, hint = hinted_strings(strings)
        if kind != "auto" and kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}: choose auto, {', '.join(KINDS)}")
        self.standardize = standardize
        self.kind = recognize_kind(items, hint=hint) if kind == "auto" else kind
        if keys is None:
            found = identity_keys(items, self.kind, standardize=standardize)
            bad = [position for position, key in enumerate(found) if key is None]
            if bad:
                first = items[bad[0]]
                raise InputError(
                    f"candidates[{bad[0]}] ({quoted(first)}) is not a valid {self.kind}"
                    + (f", nor are {len(bad) - 1} others" if len(bad) > 1 else "")
                    + f" ({explain_rejection(first, self.kind)}): leave it out"
                    + (f", or set kind= (these were taken for {self.kind} strings)" if kind == "auto" else "")
                )
            keys = [key for key in found if key is not None]
            if self.kind == "molecule" and not attachment_points:
                _refuse_attachment_points(items, keys)
        elif len(keys) != len(items):
            raise InputError(f"{len(items)} strings but {len(keys)} keys; give one key for each string")
        self._strings: list[str] = []
        self._index: dict[str, int] = {}
        self._key_of: dict[str, str] = dict(zip(items, keys, strict=True))
        for string, key in self._key_of.items():
            if key not in self._index and accepted(string, accept):
                self._index[key] = len(self._strings)
                self._strings.append(string)
        if not self._strings:
            raise InputError(
                "the candidate set is empty: give at least one string" + (" that accept() keeps" if accept else "")
            )
        if tokenizer is None:
            tokenizer = "smiles-split" if self.kind == "molecule" else "characters"
        self.encoder = Encoder(tokenizer)

    def config(self) -> Config:
        """The set as JSON values: its candidates, those that ``accept`` left, with their keys.

        Raises:
            NotConfigurableError: If there are more than `LISTED` of them, or the tokeniser cannot be written down.

        Example:
            >>> from seqopt.utils.config import from_config
            >>> config = CandidateSet(["OCC", "CCO", "c1ccccc1"], kind="molecule").config()
            >>> config["strings"], config["keys"], len(from_config(config))
            (['OCC', 'c1ccccc1'], ['CCO', 'c1ccccc1'], 2)
        """
        if len(self) > LISTED:
            raise NotConfigurableError(
                f"{len(self):,} candidates are too many to be listed in a description (at most {LISTED:,}): keep them "
                "in a file, and name that"
            )
        return super().config()

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; of more than `LISTED` candidates the number and the SHA-256 of their
        keys, which tell sets apart.
        """
        listed = {"strings": self._strings, "keys": self.keys}
        known = {"size": len(self), "keys_sha256": digest(self.keys)}
        return {
            **(listed if len(self) <= LISTED else known),
            "kind": self.kind,
            "tokenizer": self.encoder.tokenizer,
            "accept": None,
            "standardize": self.standardize,
        }

    @cached_property
    def strings(self) -> list[str]:
        """The candidates as they were written."""
        return list(self._strings)

    @cached_property
    def keys(self) -> list[str]:
        """The candidates' keys, in the order of the pool."""
        return list(self._index)

    @cached_property
    def encoded(self) -> EncodedStrings:
        """All keys, encoded once."""
        return self.encoder.encode(self.keys)

    def known_key(self, string: str) -> str | None:
        """The key of what is written as a candidate, or as a candidate's key, without reading it; else `None`."""
        return self._key_of.get(string) or (string if string in self._index else None)

    def index_of(self, string: str) -> int | None:
        """Position of the candidate that has the key of ``string``, or `None`."""
        return self._index.get(self.key(string))

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, index: int) -> str:
        return self._strings[index]

    def __repr__(self) -> str:
        return f"CandidateSet({len(self):,} x {self.kind}, tokenizer={self.encoder.tokenizer.name!r})"


def as_space(
    given: Space | Pool | PoolStore | Candidates,
    *,
    tokenizer: str | Tokenizer | None = None,
    kind: str | None = None,
    standardize: bool = False,
) -> Space:
    """The space that a user means: itself, or the set of the candidates given.

    Args:
        given: A space, what `seqopt.datasets.read_pool` or `seqopt.datasets.prepare_pool` returned, or candidates as
            `CandidateSet` takes them.
        tokenizer: How candidates are split into symbols; see `CandidateSet`.
        kind: What the strings are, where that is not to be recognised (`None` or ``"auto"``). That of a space or a
            pool is known, and can only be confirmed.
        standardize: Whether salts and charge states of a molecule are one candidate; of a space or a pool it can only
            be confirmed.

    Raises:
        InputError: If a space is given a tokeniser, which has its own, another kind than it has, or ``standardize``,
            which it does not do; if the kind is unknown; if a class is given instead of an object; or for candidates
            that cannot be used.

    Example:
        >>> as_space(["CCO", "CCN"])
        CandidateSet(2 x molecule, tokenizer='smiles-split')
        >>> as_space(["CCO", "CCN"], kind="text").kind
        'text'
    """
    kind = "auto" if kind is None else kind
    if kind != "auto" and kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose auto, {', '.join(KINDS)}")
    if isinstance(given, Pool | PoolStore | Space) and not isinstance(given, type) and kind not in ("auto", given.kind):
        raise InputError(f"kind is {kind!r}, and the {type(given).__name__} holds {given.kind} strings: leave kind out")
    known = getattr(given, "standardize", getattr(given, "standardized", False))
    if standardize and isinstance(given, Pool | PoolStore | Space) and not isinstance(given, type) and not known:
        raise InputError(
            f"the {type(given).__name__} was made without standardize: give it there, where molecules are compared"
        )
    if isinstance(given, Pool):
        return CandidateSet(
            given.strings, kind=given.kind, keys=given.keys, standardize=given.standardized, tokenizer=tokenizer
        )
    if isinstance(given, PoolStore):
        return StoredPool(given, tokenizer=tokenizer)
    if isinstance(given, type):
        raise InputError(f"{given.__name__} is a class: give an object of it, {given.__name__}(...)")
    if not isinstance(given, Space):
        return CandidateSet(given, kind=kind, tokenizer=tokenizer, standardize=standardize)
    if tokenizer is not None:
        raise InputError(f"a {type(given).__name__} has its own tokeniser: leave tokenizer out, or choose it there")
    return given
