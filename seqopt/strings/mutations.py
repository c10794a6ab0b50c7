"""Names of variants: what they change of a parent, such as ``S121E/D57G``.

A name is a list of changes with slashes between them, in the order of the positions, which are counted from 1 in the
parent: a substitution ``S121E``, a deletion ``V7del`` or ``V7_K9del``, an insertion ``K23_L24insRSQ``, and
``M1delinsGSM`` for a letter that is replaced by several. The parent itself is ``wt``. Insertions and deletions are
written as in the recommendations of the Human Genome Variation Society, letters as in their one-letter form.

References:
    den Dunnen, J. T. et al. (2016). HGVS recommendations for the description of sequence variants: 2016 update. Human
        Mutation 37, 564-569.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from seqopt.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WILD_TYPE = "wt"
"""The name of the parent."""

JOINT = "/"
"""Stands between the changes of a name."""

MUTATION_COLUMNS = ("mutations", "mutation", "mutant", "mutants", "variant", "variants")
"""Names of columns that hold names of variants, such as S121E/D57G, where a parent is known."""

_PARENT_NAMES = frozenset({"wt", "wildtype", "wild type", "wild-type", "parent"})
_AMINO_ACIDS = dict(
    zip(
        re.findall("[A-Z][a-z]{2}", "AlaCysAspGluPheGlyHisIleLysLeuMetAsnProGlnArgSerThrValTrpTyr"),
        "ACDEFGHIKLMNPQRSTVWY",
        strict=True,
    )
)
"""Amino acids as names of variants in publications write them: Ser65Thr."""

_SUBSTITUTION = re.compile(r"([A-Za-z*])(\d+)([A-Za-z*])")
_DELETION = re.compile(r"([A-Za-z*])(\d+)(?:_([A-Za-z*])(\d+))?del(?:ins([A-Za-z]+))?")
_INSERTION = re.compile(r"([A-Za-z*])(\d+)_([A-Za-z*])(\d+)ins([A-Za-z]+)")
# An underscore or a dash between two whole changes; in V7_K9del it stands between positions.
_APART = re.compile(r"[/,;:+&|\s]+|(?<=[A-Za-z*])[_\-\u2010-\u2013](?=[A-Za-z*]{1,3}\d)")
_RESIDUE = f"(?:{'|'.join(_AMINO_ACIDS)})"
_THREE_LETTERS = re.compile(
    rf"(?<![A-Za-z]){_RESIDUE}(?=\d)|(?<=\d){_RESIDUE}(?![A-Za-z])|(?<=ins){_RESIDUE}+(?![A-Za-z])"
)
_OF_PROTEIN = re.compile(r"p\.\s*(?:\[(.*)\]|\((.*)\)|(.*))")
_QUOTED = 60


def mutation_name(parent: str, string: str) -> str:
    """What a string changes of its parent.

    Strings of the parent's length are compared position by position. Others are aligned with as few changed letters as
    possible (substitutions, insertions and deletions count one for each letter); of several such alignments the one
    with its gaps further to the end is taken, as is the rule for names of variants.

    Args:
        parent: The parent, such as a wild type.
        string: The variant.

    Returns:
        Its name; ``"wt"`` for the parent itself. `mutant` makes the string from it again.

    Raises:
        InputError: For an empty parent.

    Example:
        >>> mutation_name("MKVLS", "MRVLE"), mutation_name("MKVLS", "MKVLS")
        ('K2R/S5E', 'wt')
        >>> mutation_name("MKVLS", "MKGVLS"), mutation_name("MKVLS", "MKS"), mutation_name("MKVLS", "GMKVLS")
        ('K2_V3insG', 'V3_L4del', 'M1delinsGM')
    """
    if not parent:
        raise InputError("the parent is empty: give the string that variants are compared with")
    if string == parent:
        return WILD_TYPE
    if len(string) == len(parent):
        replaced = {
            place: letter for place, (letter, before) in enumerate(zip(string, parent, strict=True)) if letter != before
        }
        return _written(parent, replaced, {})
    return _written(parent, *_edits(parent, string))


def short_name(parent: str | None, string: str) -> str | None:
    """What a string changes of a parent; `None` where none is known, or a name would be no shorter than the string.

    The latter is so for what is no variant of it, such as a control that is another protein.

    Example:
        >>> short_name("MKVLSA", "MKVLTA"), short_name("MKVLSA", "GGGGGG"), short_name(None, "MKVLTA")
        ('S5T', None, None)
    """
    name = mutation_name(parent, string) if parent else ""
    return name if 0 < len(name) < len(string) else None


def mutation_names(parent: str, strings: Iterable[str]) -> list[str]:
    """The name of each string; see `mutation_name`.

    Example:
        >>> mutation_names("MKV", ["MKV", "MRV", "MK"])
        ['wt', 'K2R', 'V3del']
    """
    return [mutation_name(parent, string) for string in strings]


def mutant(parent: str, name: str, letters: Iterable[str] | None = None) -> str:
    """The string that a name stands for.

    Changes may be separated by slashes, commas, semicolons, colons, plus signs, blanks, dashes or underscores, and
    stand in any order; case does not count. Three-letter names of amino acids (``p.Ser65Thr``) are read, too.

    Args:
        parent: The parent.
        name: Such as ``"S121E/D57G"`` or ``"wt"``.
        letters: Those that a variant may have; by default all.

    Raises:
        InputError: If the name cannot be read, or does not fit the parent: another letter stands at a position, a
            position is outside or changed twice, a letter is unknown, or nothing is left.

    Example:
        >>> mutant("MKVLS", "S5E/K2R"), mutant("MKVLS", "k2_v3insG, L4del"), mutant("MKVLS", "WT")
        ('MRVLE', 'MKGVS', 'MKVLS')
        >>> mutant("MKVLS", "K2R_S5E"), mutant("MKVLS", "p.[Lys2Arg;Ser5Glu]")
        ('MRVLE', 'MRVLE')
        >>> mutant("MKVLS", "A2R")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: 'A2R': position 2 of the parent is K, not A
    """
    text = name.strip()
    if text.casefold() in _PARENT_NAMES:
        return parent
    changes = _changes(text)
    if not changes:
        raise InputError(f"{_shown(name)} names no mutation: write S121E, several as S121E/D57G, or wt")
    known = None if letters is None else frozenset(letters)
    replaced: dict[int, str] = {}
    inserted: dict[int, str] = {}
    for change in changes:
        _apply(parent, change, name, known, replaced, inserted)
    found = "".join(
        inserted.get(place, "") + replaced.get(place, letter) for place, letter in enumerate(f"{parent}\0")
    ).replace("\0", "")
    if not found:
        raise InputError(f"{_shown(name)} deletes the whole parent: a variant needs a letter")
    return found


def is_mutation_name(text: str) -> bool:
    """Whether a text is a name of a variant by its form, and no sequence; ``wt`` is one.

    Example:
        >>> [is_mutation_name(text) for text in ("S121E/D57G", "wt", "V7_K9del", "MKVLS", "S121", "")]
        [True, True, True, False, False, False]
    """
    text = text.strip()
    if text.casefold() in _PARENT_NAMES:
        return True
    changes = _changes(text)
    return bool(changes) and all(
        pattern is not None
        for pattern in (
            _SUBSTITUTION.fullmatch(change) or _DELETION.fullmatch(change) or _INSERTION.fullmatch(change)
            for change in changes
        )
    )


def looks_like_a_name(text: str, parent: str) -> bool:
    """Whether a text is meant as a name of a variant, perhaps a misspelt one: it says wild type, or has a digit.

    Where the parent has digits itself, only what has the form of a name is one.

    Example:
        >>> looks_like_a_name("S121", "MKV"), looks_like_a_name("MKV", "MKV"), looks_like_a_name("0110", "0101")
        (True, False, False)
    """
    if any(map(str.isdecimal, parent)):
        return is_mutation_name(text)
    return text.strip().casefold() in _PARENT_NAMES or any(map(str.isdecimal, text))


def variants_of(
    parent: str, texts: Sequence[str], letters: Iterable[str] | None = None, places: Sequence[str] | None = None
) -> list[str]:
    """Strings in place of names of variants, and all other texts as they are.

    Args:
        parent: The parent.
        texts: Strings, or names such as ``"S121E/D57G"``: what has a digit, or is ``wt``.
        letters: Those that a variant may have; by default all.
        places: Where each text stands, for messages; by default its number, from 1.

    Raises:
        InputError: For the first name that does not fit; see `mutant`. The message says where it is.

    Example:
        >>> variants_of("MKVLS", ["wt", "K2R", "MKVLE"])
        ['MKVLS', 'MRVLS', 'MKVLE']
    """
    known = None if letters is None else frozenset(letters)
    found = []
    for index, text in enumerate(texts):
        if not looks_like_a_name(text, parent):
            found.append(text)
            continue
        try:
            found.append(mutant(parent, text, known))
        except InputError as error:
            where = f"string {index + 1}" if places is None else places[index]
            raise InputError(f"{where}: {error}") from error
    return found


def readable_variants(parent: str | None, texts: Iterable[str]) -> list[str]:
    """Strings in place of names of variants, as `variants_of` has them; names that do not fit stay as they are.

    Args:
        parent: The parent; `None` for none, and then all texts are strings.
        texts: Strings, or names.

    Example:
        >>> readable_variants("MKVLS", ["K2R", "A2R", "MKVLE"])
        ['MRVLS', 'A2R', 'MKVLE']
    """
    if parent is None:
        return list(texts)
    found = []
    for text in texts:
        try:
            found += variants_of(parent, [text])
        except InputError:
            found.append(text)
    return found


def _changes(text: str) -> list[str]:
    """The changes of a name, each in the form that is read here: ``p.[Ser65Thr;Lys9del]`` is S65T and K9del."""
    if found := _OF_PROTEIN.fullmatch(text):
        text = next(part for part in found.groups() if part is not None)
    text = _THREE_LETTERS.sub(
        lambda found: "".join(_AMINO_ACIDS[found[0][at : at + 3]] for at in range(0, len(found[0]), 3)), text
    )
    return [change for change in _APART.split(text) if change]


def _apply(
    parent: str,
    change: str,
    name: str,
    known: frozenset[str] | None,
    replaced: dict[int, str],
    inserted: dict[int, str],
) -> None:
    """Enter one change into what is replaced at places, from 0, and inserted before them."""
    where = f"{_shown(change)}" if change == name.strip() else f"{_shown(change)} of {_shown(name)}"

    def place_of(letter: str, number: str) -> int:
        place = int(number) - 1
        if not 0 <= place < len(parent):
            raise InputError(f"{where}: there is no position {number}; the parent has those from 1 to {len(parent)}")
        if parent[place] != letter.upper() and parent[place] != letter:
            raise InputError(f"{where}: position {number} of the parent is {parent[place]}, not {letter}")
        return place

    def checked(letters: str) -> str:
        letters = letters.upper() if parent.isupper() else letters
        for letter in letters:
            if known is not None and letter not in known:
                raise InputError(f"{where}: unknown letter {letter!r}; a variant may have {''.join(sorted(known))}")
        return letters

    def replace(place: int, letters: str) -> None:
        if place in replaced:
            raise InputError(f"{where}: position {place + 1} is changed twice")
        replaced[place] = letters

    if found := _SUBSTITUTION.fullmatch(change):
        replace(place_of(found[1], found[2]), checked(found[3]))
    elif found := _DELETION.fullmatch(change):
        first = place_of(found[1], found[2])
        last = first if found[3] is None else place_of(found[3], found[4])
        if last < first:
            raise InputError(f"{where}: position {last + 1} is before {first + 1}; write the first one first")
        replace(first, checked(found[5] or ""))
        for place in range(first + 1, last + 1):
            replace(place, "")
    elif found := _INSERTION.fullmatch(change):
        before, after = place_of(found[1], found[2]), place_of(found[3], found[4])
        if after != before + 1:
            raise InputError(f"{where}: an insertion is between neighbours, such as {before + 1} and {before + 2}")
        if after in inserted:
            raise InputError(f"{where}: something is inserted there twice")
        inserted[after] = checked(found[5])
    else:
        raise InputError(
            f"{where} is no mutation: write S121E, V7del, V7_K9del, K23_L24insRSQ or M1delinsGSM, several with "
            f"{JOINT} between them, or wt for the parent"
        )


def _written(parent: str, replaced: dict[int, str], inserted: dict[int, str]) -> str:
    """The name of changes: letters in the place of others, empty for none, and letters inserted before places."""
    replaced, inserted = dict(replaced), dict(inserted)
    # There is no neighbour before the first and after the last letter.
    if 0 in inserted:
        replaced[0] = inserted.pop(0) + replaced.get(0, parent[0])
    last = len(parent) - 1
    if last + 1 in inserted:
        replaced[last] = replaced.get(last, parent[last]) + inserted.pop(last + 1)
    parts: list[tuple[int, str]] = [
        (place, f"{parent[place - 1]}{place}_{parent[place]}{place + 1}ins{letters}")
        for place, letters in inserted.items()
    ]
    deleted = sorted(place for place, letters in replaced.items() if not letters)
    runs: list[list[int]] = []
    for place in deleted:
        if runs and place == runs[-1][1] + 1 and place not in inserted:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    for first, end in runs:
        to = "" if first == end else f"_{parent[end]}{end + 1}"
        parts.append((first, f"{parent[first]}{first + 1}{to}del"))
    for place, letters in replaced.items():
        if letters:
            text = letters if len(letters) == 1 else f"delins{letters}"
            parts.append((place, f"{parent[place]}{place + 1}{text}"))
    return JOINT.join(text for _, text in sorted(parts))


def _edits(parent: str, string: str) -> tuple[dict[int, str], dict[int, str]]:
    """What is replaced and inserted at which places, for strings of different lengths."""
    start = 0
    while start < min(len(parent), len(string)) and parent[start] == string[start]:
        start += 1
    # As few letters as possible are compared; those in common at the end come first, so that gaps stand further there.
    shared = min(len(parent), len(string))
    end = 0
    while end < shared - start and parent[len(parent) - 1 - end] == string[len(string) - 1 - end]:
        end += 1
    before, after = parent[start : len(parent) - end], string[start : len(string) - end]
    costs = _costs(before, after)
    replaced: dict[int, str] = {}
    inserted: dict[int, str] = {}
    row, column = len(before), len(after)
    last = ""
    while row or column:
        here = costs[row, column]
        ways = []
        if row and costs[row - 1, column] + 1 == here:
            ways.append("delete")
        if column and costs[row, column - 1] + 1 == here:
            ways.append("insert")
        if row and column and costs[row - 1, column - 1] + (before[row - 1] != after[column - 1]) == here:
            ways.append("keep")
        # A gap goes on where it can, so that there are few of them.
        way = last if last in ways and last != "keep" else ways[0]
        place = start + row
        if way == "delete":
            replaced[place - 1] = ""
            row -= 1
        elif way == "insert":
            inserted[place] = after[column - 1] + inserted.get(place, "")
            column -= 1
        else:
            if before[row - 1] != after[column - 1]:
                replaced[place - 1] = after[column - 1]
            row, column = row - 1, column - 1
        last = way
    return replaced, inserted


def _costs(first: str, second: str) -> npt.NDArray[np.int64]:
    """Edit distances of all prefixes, ``(m + 1) x (n + 1)``."""
    # With numpy, which a campaign is opened without.
    import numpy as np

    places = np.arange(len(second) + 1)
    letters = np.array(list(second), dtype="U1")
    costs = np.empty((len(first) + 1, len(second) + 1), dtype=np.int64)
    costs[0] = places
    for row, letter in enumerate(first, start=1):
        above = costs[row - 1]
        found = above + 1
        np.minimum(found[1:], above[:-1] + (letters != letter), out=found[1:])
        # Insertions run along a row: the least of cost - place so far, plus place.
        costs[row] = np.minimum.accumulate(found - places) + places
    return costs


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…")
