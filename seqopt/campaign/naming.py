"""Which string is meant by what somebody writes: a suggestion's name, the owner's identifier, or the string itself."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from seqopt.campaign.columns import is_named_like_suggestion, suggestion_name
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.labels import missing_library, strings_by_identifier
from seqopt.campaign.parents import hint_at_parent, parent_of, variant_of
from seqopt.campaign.rows import Exclusion, Measurement, Suggestion
from seqopt.campaign.wording import counted
from seqopt.errors import InputError, SeqoptError
from seqopt.strings.mutations import is_mutation_name

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.entries import Owned
    from seqopt.spaces import CandidateSet, StoredPool
    from seqopt.strategies import Strategy

logger = logging.getLogger(__name__)

SELECTIVE = ("one-hot", "hamming", "blosum62", "sites", "helices", "codons", "vae:")
"""How the names of surrogates begin that may refuse a string; for all others, recording a result loads no model."""

SHOWN = 3
"""Rows that are there twice which a message shows."""

COMPARED = 10_000
"""Identifiers that are compared with one that is unknown: more take seconds."""


def not_an_identifier(what: str, library: Collection[str]) -> str:
    """A clause on what is not a string: that it is not an identifier either, and which one may be meant.

    Args:
        what: What somebody wrote.
        library: The identifiers; without any nothing is said.

    Example:
        >>> not_an_identifier("CPD-1", ["CPD-01", "XYZ"]), not_an_identifier("CPD-1", [])
        ('; nor is it an identifier of the library: is CPD-01 meant?', '')
    """
    if not library:
        return ""
    meant = {name.casefold(): name for name in library}
    asked = what.strip().casefold()
    # Close ones are looked for where that does not take long.
    close = [asked] if asked in meant else []
    close = close or difflib.get_close_matches(asked, list(meant)[:COMPARED], n=1, cutoff=0.75)
    return "; nor is it an identifier of the library" + (f": is {meant[close[0]]} meant?" if close else "")


class Naming:
    """Finds what a campaign knows by what somebody calls it.

    A name such as ``B03-07`` is that of a suggestion; then identifiers of the library count, then names of variants
    of the parent, then strings.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._store = campaign.store
        self._selective: Strategy | None = None
        self._library: tuple[int, dict[str, str], set[str]] | None = None

    def suggestion(self, what: str) -> Suggestion | None:
        """The suggestion that is meant by its name, however its letters, dashes and zeros were changed."""
        exact = self._store.suggestion(what)
        if exact is not None:
            return exact
        found = self._store.suggestion(suggestion_name(what))
        return None if found is None or any(row.string == what for row in self._store.suggestions()) else found

    def is_named(self, what: str) -> bool:
        """Whether a text is the name of a suggestion, or an identifier: what it names may not exist."""
        return self.suggestion(what) is not None or self._misnamed(what) or self.owned(what) is not None

    def owned(self, identifier: str) -> str | None:
        """The string that its owner calls so; `None` if nothing is, or it is a string itself."""
        return self.lookup()(identifier)

    def lookup(self) -> Owned:
        """As `owned`, for many identifiers at one state of the campaign."""
        rows: list[Suggestion | Measurement | Exclusion] = [
            *self._store.suggestions(),
            *self._store.measurements(undone=True),
            *self._store.exclusions(),
        ]
        known = {row.identifier: row.string for row in rows if row.identifier is not None}
        several: dict[str, dict[str, str]] = {}
        if self._stored:
            # Whose identifiers need not tell candidates apart.
            for row in rows:
                several.setdefault(row.identifier or "", {})[row.key] = row.string
        strings = {row.string for row in rows}
        pool = self._store.settings.pool or {}
        has_identifiers = any(one.get("id_column") for one in (pool, *pool.get("added", [])))
        stored = self._stored

        def string_of(identifier: str) -> str | None:
            identifier = identifier.strip()
            if identifier in known:
                called = list(several.get(identifier, {}).values())
                if len(called) > 1:
                    which = " and ".join(map(repr, called[:2]))
                    raise InputError(
                        f"{identifier!r} is what {len(called):,} different candidates are called, {which} among "
                        "them: give the string itself"
                    )
                if stored:
                    pool_on_disk = None
                    with contextlib.suppress(SeqoptError):  # results may be recorded while its files are away
                        pool_on_disk = cast("StoredPool", self._campaign.space).store
                    if pool_on_disk is not None:
                        # It may be what candidates are called, too, of which nothing is known yet.
                        pool_on_disk.called(identifier)
                return known[identifier]
            if stored and identifier not in strings:
                on_disk = cast("StoredPool", self._campaign.space)
                # What is written as a candidate is one.
                place = None if on_disk.known_key(identifier) is not None else on_disk.store.called(identifier)
                return None if place is None else on_disk[place]
            if not has_identifiers or identifier in strings:
                return None
            library, written = self._identifiers()
            # What is written as a candidate is one.
            return None if identifier in written else library.get(identifier)

        return string_of

    def results(self, what: str) -> list[Measurement]:
        """What was measured of a suggestion or string, or in a well by its label; discarded results included.

        Raises:
            InputError: If it is not a valid string.
            CampaignError: If it is the name of a suggestion that there is not.
        """
        rows = self._store.measurements(discarded=True)
        suggestion = self.suggestion(what)
        if suggestion is not None:
            return [row for row in rows if row.suggestion == suggestion.name]
        labelled = [row for row in rows if row.replicate == what]
        if labelled:
            with contextlib.suppress(SeqoptError):
                key = self.key(self.string_of(what))
                # A string that is called as the wells of others are.
                labelled = [row for row in rows if row.key == key] or labelled
            return labelled
        self._refuse_misnamed(what)
        key = self.key(self.string_of(what))
        return [row for row in rows if row.key == key]

    def called(self, what: str) -> str:
        """The name of the suggestion, or the string, that is meant."""
        suggestion = self.suggestion(what)
        if suggestion is not None:
            return suggestion.name
        self._refuse_misnamed(what)
        return self.string_of(what)

    def withdrawable(self, what: str) -> Suggestion | None:
        """The suggestion that is meant, if there is one that was not undone: by its name, or of a string that is open.

        Raises:
            CampaignError: If it is the name of a suggestion that there is not.
        """
        suggestion = self.suggestion(what)
        if suggestion is not None:
            return suggestion
        self._refuse_misnamed(what)
        key = self.key(self.string_of(what))
        found = [row for row in self._store.suggestions() if row.key == key]
        return next((row for row in reversed(found) if row.status == "open"), found[-1] if found else None)

    def candidate(self, what: str) -> tuple[str, str, str | None]:
        """A candidate that was never suggested: its string, its key, and what its owner calls it.

        Raises:
            CampaignError: If it is none.
        """
        string = self.owned(what)
        identifier = what if string is not None else None
        string = string or self.string_of(what)
        key = self.key(string)
        if self._store.settings.pool is not None:
            space = cast("CandidateSet", self._campaign.space)
            index = space.index_of(key)
            if index is None:
                raise CampaignError(f"{what} is neither a suggestion nor a candidate")
            string = space[index]
        return string, key, identifier

    def identified(self, what: str) -> tuple[str, str]:
        """The string that is meant by the name of a suggestion, an identifier, a name of a variant or itself; its key.

        Raises:
            InputError: If it is none of these.
            CampaignError: If it is the name of a suggestion that there is not.
        """
        from seqopt.strings.notations import is_inchi

        if not isinstance(what, str):
            raise InputError(f"{what!r} is no string: give what was measured, or what it is called, as a str")
        suggestion = self.suggestion(what)
        string = self.called(what) if suggestion is None else suggestion.string
        key = self.key(string)
        return (key if self._store.settings.space.get("kind") == "molecule" and is_inchi(string) else string), key

    def identified_in(self, path: str | os.PathLike[str], column: str | None = None) -> tuple[list[str], list[str]]:
        """The strings that the rows of a file mean, as `identified` finds them, each once, and their keys.

        Of what is there twice the first is taken, and it is logged as a warning, with the lines.

        Args:
            path: A file as `seqopt.filters.listed.read_list` takes.
            column: Its column of strings, identifiers or names, if that is not to be recognised.

        Raises:
            InputError: If the file cannot be read, or a row means nothing; the message says which.
            CampaignError: If a row has the name of a suggestion that there is not.
        """
        from seqopt.filters.listed import read_listed

        found = read_listed(path, column, variants=parent_of(self._store.settings) is not None)
        known = getattr(self._campaign.space, "known_key", lambda _: None)
        if found.column is not None and (self.owned(found.column) or known(found.column)) is not None:
            raise InputError(
                f"{path}: the first line, {found.column!r}, was taken for the name of the column, and is a candidate: "
                "write a name above it, such as id"
            )
        strings: dict[str, str] = {}
        lines: dict[str, int] = {}
        twice = [f"line {one.line} is line {one.first_line}" for one in found.duplicate_examples]
        count = found.duplicates
        for text, line in zip(found.strings, found.lines, strict=True):
            try:
                string, key = self.identified(text)
            except (InputError, CampaignError) as error:
                raise type(error)(f"{path}, line {line}: {error}") from error
            if key in strings:
                count += 1
                twice.append(f"line {line} is line {lines[key]}")
            else:
                strings[key], lines[key] = string, int(line)
        if count:
            shown = ", ".join(twice[:SHOWN]) + (", ..." if count > len(twice[:SHOWN]) else "")
            rows = counted(count, "row")
            logger.warning("%s: %s left out that an earlier one says already (%s)", path, rows, shown)
        return list(strings.values()), list(strings)

    def keys_in(
        self, path: str | os.PathLike[str], column: str | None, id_column: str | None
    ) -> tuple[list[str], tuple[str, ...]]:
        """The keys of the candidates that a file lists, by their strings or identifiers, and what it lists besides.

        Raises:
            InputError: If the file cannot be used.
        """
        from seqopt.datasets import read_pool
        from seqopt.datasets.tables import read_table
        from seqopt.strings.identity import identity_keys

        pool = self._store.settings.pool or {}
        space = cast("CandidateSet", self._campaign.space)
        library, _ = self._identifiers()
        table = read_table(Path(path))
        own = id_column or next((name for name in table.columns if name == pool.get("id_column")), None)
        strings = column or next((name for name in table.columns if name == pool.get("column")), None)
        listed: list[str]
        if strings is None and own is None and library:
            # A list of identifiers, without a header or with another one.
            listed = [cell.strip() for cells in table.columns.values() for cell in cells if cell.strip() in library]
            if listed:
                keys = identity_keys([library[cell] for cell in listed], pool["kind"], standardize=pool["standardize"])
                return [key for key in keys if key is not None], ()
        if strings is None and own is not None:
            listed = [cell.strip() for cell in table.columns[table.column(own, str(path))] if cell.strip()]
            known = [library[cell] for cell in listed if cell in library]
            keys = identity_keys(known, pool["kind"], standardize=pool["standardize"])
            unknown = tuple(cell for cell in listed if cell not in library)
            return [key for key in keys if key is not None and space.index_of(key) is not None], unknown
        found = read_pool(
            path, column=strings, kind=pool["kind"], standardize=pool["standardize"], attachment_points=True
        )
        pairs = list(zip(found.keys, found.strings, strict=True))
        present = [key for key, _ in pairs if space.index_of(key) is not None]
        return present, tuple(string for key, string in pairs if space.index_of(key) is None)

    def key(self, string: str) -> str:
        """Identity of a string that the campaign may learn from.

        Raises:
            InputError: If it is not of the campaign's kind, or the model cannot take it.
        """
        key = self._key(string)
        settings = self._store.settings
        name = settings.surrogate.strip().lower()
        # The default of large lists of proteins may be one that compares position by position.
        proteins = name == "auto" and settings.space.get("kind") == "protein"
        chosen = settings.parts.keys() & {"surrogate", "strategy"}
        if not chosen and not proteins and not name.startswith(SELECTIVE):
            return key
        from seqopt.campaign.parts import made_optimizer

        if self._selective is None:
            self._selective = made_optimizer(settings, self._campaign.space, self._campaign.space).strategy
        for message in self._selective.unsupported([key]).values():
            what = settings.surrogate or settings.acquisition
            raise InputError(
                f"the {'surrogate' if settings.surrogate else 'strategy'} {what} cannot learn from it: {message}"
            )
        return key

    def string_of(self, what: str) -> str:
        """The string that an identifier, a name of a variant such as S121E/D57G, or the string itself stands for.

        Raises:
            InputError: For a name of a variant that does not fit the parent.
        """
        found = self.owned(what)
        if found is not None:
            return found
        settings = self._store.settings
        parent = parent_of(settings)
        return what if parent is None or not is_mutation_name(what) else variant_of(what, parent, settings)

    @property
    def _stored(self) -> bool:
        """Whether the candidates are on disk and have identifiers."""
        settings = self._store.settings
        return settings.pool is None and bool(settings.listed.get("id_column"))

    def _other_identifier(self, what: str) -> str:
        """Of what is not a string: that it is not an identifier either, and which one may be meant."""
        if gone := missing_library(self._store.library):
            return f"; nor can identifiers be looked up: the library {gone} is not there any more"
        return not_an_identifier(what, self._identifiers()[0])

    def _identifiers(self) -> tuple[dict[str, str], set[str]]:
        """The strings of the library by their identifiers, and all of them; read once for each state of the file."""
        state = self._store.state
        if self._library is None or self._library[0] != state:
            found = strings_by_identifier(self._store.library)
            self._library = state, found, set(found.values())
        return self._library[1:]

    def _refuse_misnamed(self, what: str) -> None:
        if self._misnamed(what) or (is_named_like_suggestion(what) and self._store.settings.pool is not None):
            name = suggestion_name(what)
            close = difflib.get_close_matches(name, [row.name for row in self._store.suggestions()], n=1)
            raise CampaignError(f"there is no suggestion {name!r}" + (f": is {close[0]} meant?" if close else ""))

    def _misnamed(self, what: str) -> bool:
        """Whether a text is the name of a suggestion that there is not, and no string that the campaign knows.

        Where any text is a string, a slip of the pen would teach the model a candidate that there is not.
        """
        from seqopt.strings.identity import identity_keys

        pool = self._store.settings.pool
        if pool is None or not is_named_like_suggestion(what):
            return False
        (key,) = identity_keys([what], pool["kind"], standardize=pool["standardize"])
        if key is None:
            return True
        known = any(row.key == key for row in self._store.measurements())
        return not known and cast("CandidateSet", self._campaign.space).index_of(key) is None

    def _key(self, string: str) -> str:
        settings = self._store.settings
        try:
            return self._key_of(string)
        except InputError as error:
            hint = hint_at_parent(string, parent_of(settings), (settings.pool or settings.space).get("kind"))
            if not hint:
                raise
            raise InputError(f"{error}{hint}") from error

    def _key_of(self, string: str) -> str:
        from seqopt.strings.identity import explain_rejection, identity_keys, quoted
        from seqopt.strings.notations import is_inchi, reference_to_structure, smiles_of_inchi

        pool = self._store.settings.pool
        if self._store.settings.space.get("kind") == "molecule" and is_inchi(string):
            string = smiles_of_inchi(string) or string
        if pool is not None:
            # The library itself, which may be large, is not needed for that.
            (found,) = identity_keys([string], pool["kind"], standardize=pool["standardize"])
            if found is None:
                what = reference_to_structure(string) if pool["kind"] == "molecule" else None
                why = f"{what}, which does not say how it is made" if what else explain_rejection(string, pool["kind"])
                raise InputError(
                    f"{quoted(string)} is not a valid {pool['kind']}: {why}{self._other_identifier(string)}"
                )
            return found
        from seqopt.spaces import left_out

        key = self._campaign.space.key(string)
        left_out(self._campaign.space, string)  # refuses what it cannot read
        return key

    def describe_left_out(self, strings: Iterable[str]) -> str:
        """Which strings constraints leave out of the space, and why; empty if none."""
        distinct = dict.fromkeys(strings)
        reasons = [reason for string in distinct if (reason := self.left_out(string)) is not None]
        if not reasons:
            return ""
        if len(reasons) == 1:
            return f"one string is left out of the space: {reasons[0]}"
        return f"{len(reasons)} strings are left out of the space, the first because {reasons[0]}"

    def left_out(self, string: str) -> str | None:
        """Why the space of the campaign leaves out a string that it can learn from; `None` if it does not."""
        # Candidates are a list, which need not be loaded for that, and what is measured need not stand in it.
        if self._store.settings.pool is not None:
            return None
        from seqopt.spaces import RestrictedSpace

        space = self._campaign.space
        return space.left_out(string) if isinstance(space, RestrictedSpace) else None
