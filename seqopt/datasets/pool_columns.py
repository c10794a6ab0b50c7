"""Which columns of a table hold the strings of a pool, and their identifiers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seqopt.datasets.tables import Table
from seqopt.errors import InputError
from seqopt.strings.mutations import MUTATION_COLUMNS

# Names by which a column of strings is recognised, the first that is present winning, with the kind that it
# suggests.
STRING_COLUMNS: dict[str, str | None] = {
    "smiles": "molecule",
    "canonical_smiles": "molecule",
    "isomeric_smiles": "molecule",
    "smi": "molecule",
    "inchi": "molecule",
    "standard_inchi": "molecule",
    "structure": None,
    "molecule": None,
    "sequence": None,
    "seq": None,
    "protein": "protein",
    "protein_sequence": "protein",
    "aa_sequence": "protein",
    "peptide": "protein",
    "dna": "dna",
    "dna_sequence": "dna",
    "rna": "rna",
    "rna_sequence": "rna",
    "mrna": "rna",
    "gene": "dna",
    "string": None,
    "strings": None,
    "text": "text",
}
# Names by which a column of identifiers is recognised, the first that tells all candidates apart winning.
ID_COLUMNS = (
    *(
        "compound_id",
        "id",
        "identifier",
        "molecule_id",
        "mol_id",
        "cmpd_id",
        "catalog_id",
        "catalogue_id",
        "catalog_number",
    ),
    *(
        "catalogue_number",
        "sample_id",
        "substance_id",
        "entry_id",
        "zinc_id",
        "chembl_id",
        "cmpd_chemblid",
        "accession",
    ),
    *("barcode", "code", "sku", "cas", "cas_number", "entry", "mutant", "variant", "name", "title"),
)
LABEL_COLUMNS = frozenset({*ID_COLUMNS, "compound_name", "iupac"})
"""Names of columns that say what strings are called."""


_PRICE = re.compile(
    r"(?:(?:unit|list|net|catalog|catalogue)_)?prices?"
    r"(?:_(?:in_)?[(\[]?(?:usd|eur|gbp|chf|jpy|cny|cad|aud|inr|krw|sek|dkk|nok|pln|[$\u20ac\u00a3\u00a5])[)\]]?)?"
    r"(?:(?:_per_|/|_/_)\d*_?(?:mg|g|mmol|umol|\u00b5mol|item|piece|well))?"
)


def price_column(names: Sequence[str]) -> str | None:
    """The column of prices, by its name; `None` where none is called so, or several are.

    Example:
        >>> price_column(["smiles", "Price (USD)"]), price_column(["price_per_mg"]), price_column(["price class"])
        ('Price (USD)', 'price_per_mg', None)
        >>> price_column(["price_usd", "price_eur"])
    """
    found = [name for name in names if _PRICE.fullmatch(plain_column(name))]
    return found[0] if len(found) == 1 else None


def plain_column(name: str) -> str:
    return "_".join(name.strip().casefold().replace("-", " ").replace("_", " ").split())


def kind_hint(column: str) -> str | None:
    plain = plain_column(column)
    if plain in STRING_COLUMNS:
        return STRING_COLUMNS[plain]
    words = {"smiles": "molecule", "protein": "protein", "peptide": "protein", "rna": "rna", "dna": "dna"}
    return next((kind for word, kind in words.items() if word in plain), None)


def written_column(column: str | None) -> str:
    """What a column of strings is called where they are written: of names of variants, that of the sequences.

    Example:
        >>> written_column("seq"), written_column("Mutations"), written_column(None)
        ('seq', 'sequence', 'string')
    """
    if column is None:
        return "string"
    return "sequence" if plain_column(column) in MUTATION_COLUMNS else column


def recognize_column(table: Table, where: str, kind: str | None) -> str:
    plain = {plain_column(name): name for name in table.columns}
    known = [name for name in STRING_COLUMNS if name in plain]
    # With a kind given, a column whose name suggests another kind is not the one that is meant.
    fitting = [name for name in known if kind is None or STRING_COLUMNS[name] in (None, kind)] or known
    if fitting:
        return plain[fitting[0]]
    for word in ("smiles", "sequence"):
        holding = [name for name in table.columns if word in plain_column(name)]
        if len(holding) == 1:
            return holding[0]
    if len(table.columns) == 1:
        return next(iter(table.columns))
    textual = [name for name, cells in table.columns.items() if is_textual(cells)]
    unnamed = [name for name in textual if plain_column(name) not in LABEL_COLUMNS]
    for candidates in (unnamed, textual):
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(repr(name) for name in table.columns)
    raise InputError(
        f"cannot tell which column of {where} holds the strings; its columns are {listed}: "
        "name one of them with column= (--column)"
    )


def string_column(cells: Mapping[str, Sequence[object]], where: str) -> tuple[str, str | None]:
    """Which column of a table in memory holds the strings, and the kind that its name suggests.

    Args:
        cells: The cells of each column.
        where: What messages call the table.

    Raises:
        InputError: If that cannot be told; the message lists the columns.

    Example:
        >>> string_column({"name": ["ethanol"], "SMILES": ["CCO"], "price": [3.5]}, "the table")
        ('SMILES', 'molecule')
    """
    if not cells:
        raise InputError(f"{where} has no columns")
    looked_at = {name: ["" if cell is None else str(cell) for cell in column[:200]] for name, column in cells.items()}
    # With numpy, which a campaign is opened without.
    import numpy as np

    table = Table(looked_at, np.arange(0), format="", sha256="", headed=True)
    column = recognize_column(table, where, None)
    return column, kind_hint(column)


def is_textual(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells[:200] if cell.strip()]
    return bool(filled) and sum(number_in(cell) is None for cell in filled) > len(filled) / 2


def number_in(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None  # Python reads 1_0 as 10; in a file it is a slip
    except ValueError:
        return None


def short(string: str) -> str:
    """A string as messages show it."""
    return repr(string if len(string) <= 40 else string[:37] + "...")
