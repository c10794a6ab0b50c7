"""What users give as candidates: lists, columns of tables, molecules of RDKit. All become lists of strings."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from seqopt.datasets.pool_columns import string_column
from seqopt.errors import InputError
from seqopt.strings.identity import quoted

Candidates = Iterable[Any]
"""What stands for a list of candidate strings: see `candidate_strings`."""

_WANTED = "give a list of strings, a column of strings of a DataFrame, or RDKit molecules"


def candidate_strings(candidates: Candidates) -> list[str]:
    """The strings that a user means by ``candidates``.

    Args:
        candidates: A list or another iterable of strings, such as a Series or an array of one dimension. RDKit
            molecules stand for their isomeric SMILES. Of a DataFrame the column of strings, recognised as by
            `seqopt.datasets.read_pool`. A set has no order, and one of strings another each time that Python starts, so
            it is sorted: only then does the seed of a search fix it.

    Raises:
        InputError: For anything else: a single string, bytes, a mapping (it does not say whether keys or values are
            meant), a table without a column that can be told, or an item that is no string, with its index.

    Example:
        >>> import pandas as pd
        >>> candidate_strings(pd.DataFrame({"id": ["A1", "A2"], "smiles": ["CCO", "CCN"], "price": [3.0, 5.0]}))
        ['CCO', 'CCN']
        >>> candidate_strings({"CCO", "CCN"})
        ['CCN', 'CCO']
    """
    return hinted_strings(candidates)[0]


def hinted_strings(candidates: Candidates) -> tuple[list[str], str | None]:
    """The same, and the kind that the name of their column suggests."""
    items, hint = _items(candidates)
    molecules = _molecules(items)
    strings = [item if type(item) is str else _string(item, index, molecules) for index, item in enumerate(items)]
    # Views of the keys of a dict are sets, too, but have an order.
    return (sorted(strings) if isinstance(candidates, set | frozenset) else strings), hint


def _items(candidates: Any) -> tuple[list[Any], str | None]:
    if isinstance(candidates, str):
        raise InputError(
            f"a candidate set needs a list of strings, got the single string {quoted(candidates)}: for a file use "
            "seqopt.datasets.read_pool, for one candidate a list of it"
        )
    if isinstance(candidates, os.PathLike):
        raise InputError(f"{candidates!r} is no list of candidates: read it by seqopt.datasets.read_pool")
    if isinstance(candidates, Mapping):
        raise InputError(
            "a dict does not say whether its keys or its values are the candidates: give list(candidates) for the "
            "keys, list(candidates.values()) for the values"
        )
    if hasattr(candidates, "columns") and not isinstance(candidates, type):
        return _column_of(candidates)
    dimensions = getattr(candidates, "ndim", 1)
    if dimensions != 1:
        raise InputError(f"an array of {dimensions} dimensions is no list of candidates: {_WANTED}")
    if not isinstance(candidates, Iterable) or isinstance(candidates, bytes | bytearray | type):
        raise InputError(f"{candidates!r} of type {type(candidates).__name__} is no list of candidates: {_WANTED}")
    return list(candidates), None


def _column_of(table: Any) -> tuple[list[Any], str | None]:
    """The column of strings of a DataFrame, and the kind that its name suggests."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        if not hasattr(table, "to_pandas"):
            raise InputError(f"a {type(table).__name__} is no list of candidates: {_WANTED}")
        table = table.to_pandas()
    names = [str(name) for name in table.columns]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        shown = ", ".join(map(repr, repeated))
        raise InputError(f"the DataFrame has several columns called {shown}: rename all but one")
    cells = {name: table.iloc[:, place].tolist() for place, name in enumerate(names)}
    column, hint = string_column(cells, "the DataFrame")
    return cells[column], hint


def _molecules(items: list[Any]) -> type | tuple[()]:
    """RDKit's class of molecules, if there can be any among the items: otherwise RDKit need not be imported."""
    if "rdkit.Chem" not in sys.modules or all(type(item) is str for item in items):
        return ()
    from rdkit.Chem import Mol

    molecule: type = Mol
    return molecule


def _string(item: Any, index: int, molecules: type | tuple[()]) -> str:
    if isinstance(item, str):
        return str(item)  # of a subclass, such as that of numpy
    if isinstance(item, molecules):
        from rdkit import Chem

        return str(Chem.MolToSmiles(item))
    which = f"candidates[{index}] is"
    if item is None:
        raise InputError(f"{which} None, as RDKit returns it for a SMILES that it cannot read: leave it out")
    if isinstance(item, float) and math.isnan(item):
        raise InputError(f"{which} NaN, so it is missing: leave it out (of a pandas object, by dropna())")
    way = "decode it: [string.decode() for string in strings]" if isinstance(item, bytes) else _WANTED
    raise InputError(f"{which} {item!r} of type {type(item).__name__}, expected str: {way}")
