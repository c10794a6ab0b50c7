"""The parent of a campaign, such as a wild type: its variants are named by what they change of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seqopt.campaign.rows import Settings
from seqopt.errors import InputError
from seqopt.strings.mutations import is_mutation_name, looks_like_a_name, mutant, mutation_name, mutation_names

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.campaign.entries import Row

PARENT = "parent"
"""Where settings and descriptions keep it."""

MUTATIONS = "mutations"
"""The column of names of variants."""


INCLUDED = "to be included in the first batch"
"""What strings are, in messages of `written_out`."""

CONTROLS = "to be measured on every plate"
"""What controls are, in these messages."""


def parent_of(settings: Settings) -> str | None:
    """The parent of a campaign; `None` where none is known.

    Example:
        >>> parent_of(Settings("activity", extra={"parent": "MKV"})), parent_of(Settings("activity"))
        ('MKV', None)
    """
    return parent_in(settings.extra, settings.space, settings.pool)


def parent_in(*facts: Mapping[str, Any] | None) -> str | None:
    """The first parent that facts name: settings, the description of a space, what is known of a pool."""
    for one in facts:
        found = (one or {}).get(PARENT)
        if isinstance(found, str) and found:
            return found
    return None


def parent_of_space(space: object) -> str | None:
    """The parent that a space or a pool has by itself."""
    found = getattr(space, PARENT, None)
    return found if isinstance(found, str) and found else None


def checked_parent_of(parent: str, space: Any) -> str:
    """A parent as the strings of a space are written; it need not be one of them.

    Raises:
        InputError: If it is empty or no sequence of the kind (with its position), the space has another parent, or
            holds molecules.
    """
    from seqopt.spaces.parent_space import checked_parent

    if space.kind == "molecule":
        raise InputError("a parent names variants of sequences, and these are molecules: leave it out")
    checked = checked_parent(parent, space.kind)
    own = parent_of_space(space)
    if own is not None and own != checked:
        raise InputError("the space has another parent than the one given: leave one of them out")
    return checked


def with_mutations(frame: pd.DataFrame, parent: str | None) -> pd.DataFrame:
    """A table of evaluations with the names of variants after their strings, if a parent is known.

    Example:
        >>> import pandas as pd
        >>> with_mutations(pd.DataFrame({"string": ["MKI"], "key": ["MKI"]}), "MKV").columns.tolist()
        ['string', 'mutations', 'key']
    """
    if parent is None or MUTATIONS in frame:
        return frame
    frame = frame.copy()
    frame.insert(list(frame.columns).index("string") + 1, MUTATIONS, mutation_names(parent, frame["key"]))
    return frame


def hint_at_parent(text: str, parent: str | None, kind: str | None) -> str:
    """What to do where a text is no string, and looks like the name of a variant of a parent that nobody has named.

    Example:
        >>> hint_at_parent("S121E", None, "protein")
        '. If it names a variant, say of what: --parent (parent=) when a search or a campaign is begun'
        >>> hint_at_parent("S121E", "MKV", "protein"), hint_at_parent("C2O", None, "molecule")
        ('', '')
    """
    if parent is not None or kind == "molecule" or not is_mutation_name(text):
        return ""
    return ". If it names a variant, say of what: --parent (parent=) when a search or a campaign is begun"


def variant_of(name: str, parent: str, settings: Settings) -> str:
    """The string that a name of a variant stands for.

    Raises:
        InputError: If it does not fit the parent: see `seqopt.strings.mutations.mutant`.

    Example:
        >>> variant_of("K2R", "MKV", Settings("activity", space={"kind": "protein"}))
        'MRV'
    """
    # With numpy, which a campaign is opened without.
    from seqopt.strings.templates import LETTERS

    return mutant(parent, name, LETTERS.get(str((settings.pool or settings.space).get("kind"))))


def written_out(strings: Iterable[str], parent: str | None, kind: str, what: str) -> list[str]:
    """Strings in place of names of variants, where a parent is known; all others as they are.

    Args:
        strings: Strings, or names.
        parent: The parent, or `None`.
        kind: What the strings are, which says what letters there are.
        what: What they are, for messages.

    Raises:
        InputError: For a name that does not fit the parent.

    Example:
        >>> written_out(["V3I", "MKL"], "MKV", "protein", "to be measured")
        ['MKI', 'MKL']
        >>> written_out(["A3I"], "MKV", "protein", "to be measured")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: to be measured: 'A3I': position 3 of the parent is V, not A
    """
    if parent is None:
        return list(strings)
    from seqopt.strings.templates import LETTERS

    letters = LETTERS.get(kind)
    found = []
    for text in strings:
        try:
            found.append(mutant(parent, text, letters) if looks_like_a_name(text, parent) else text)
        except InputError as error:
            raise InputError(f"{what}: {error}") from error
    return found


def read_mutations(rows: Iterable[Row], settings: Settings) -> None:
    """Names of variants in results become their strings; one that does not fit the parent is a problem of its row."""
    # Columns ask for the parent of a campaign, too.
    from seqopt.campaign.columns import is_named_like_suggestion

    parent = parent_of(settings)
    if parent is None:
        return
    for row in rows:
        name = row.entry.string
        if name is not None and looks_like_a_name(name, parent):
            try:
                row.entry = replace(row.entry, string=variant_of(name, parent, settings))
                row.written = name.strip()
            except InputError as error:
                if is_named_like_suggestion(name):
                    row.wrong("is not an identifier of a suggestion, and no variant of the parent", name)
                else:
                    row.wrong("is no variant of the parent: " + str(error).removeprefix(f"{name.strip()!r}: "), name)
                row.entry = replace(row.entry, string=None)


def compare_names(rows: Iterable[Row], settings: Settings) -> None:
    """A row that names another variant than its string or suggestion is wrong: a column was sorted by itself.

    What is no name of a variant of this parent, such as one by another numbering, is left aside.
    """
    parent = parent_of(settings)
    if parent is None:
        return
    for row in rows:
        name = row.entry.named
        if name is None or row.key is None or row.problems or not is_mutation_name(name):
            continue
        try:
            meant = mutant(parent, name)
        except InputError:
            continue
        if meant != row.key:
            beside = "the identifier" if row.entry.string is None else "the string"
            row.wrong(
                f"is not {mutation_name(parent, row.key)}, the variant of {beside} in the same row: was one column "
                "sorted by itself?",
                name,
            )
