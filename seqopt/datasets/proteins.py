"""Proteins to design genes for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from seqopt.datasets.genbank import ENDINGS, coding_name, parse_genbank
from seqopt.datasets.sheets import decoded
from seqopt.datasets.sources import open_source
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.strings.genetic_codes import STOP


@dataclass(frozen=True)
class Protein:
    """A protein.

    Attributes:
        name: The first word of its record.
        sequence: Its letters, as they are written.
        location: Where its record begins, for messages.
        remark: What is worth a second look of it; empty where nothing is.
    """

    name: str
    sequence: str
    location: str = ""
    remark: str = ""


def read_proteins(source: str | os.PathLike[str]) -> list[Protein]:
    """The proteins of a FASTA file, or of the coding sequences of a GenBank file, in their order.

    Letters are left as they are: which of them are amino acids is a matter of the genetic code, see
    `seqopt.spaces.CodonSpace`. A record without a name is called after its number, ``"protein-2"``. Of a GenBank file
    pseudogenes are left out.

    Args:
        source: A .fasta, .fa or .faa file, or a .gb, .gbk, .gbff or .genbank file, also with .gz.

    Raises:
        InputError: For a file that is missing, of another format, or without records, a record without a sequence or a
            coding sequence that cannot be read (with its line).

    Example:
        >>> from seqopt.utils.resources import data_path
        >>> [(protein.name, len(protein.sequence)) for protein in read_proteins(data_path("test_proteins.fasta"))]
        [('peptide-10', 10), ('thesis-60', 60), ('thesis-121', 121), ('abl1-1130', 1130), ('spike-1273', 1273)]
    """
    path = Path(source)
    if path.name.lower().removesuffix(".gz").endswith(ENDINGS):
        return _of_genbank(path)
    table = read_table(path)
    if table.format != "fasta":
        raise InputError(
            f"{path}: proteins are read from FASTA files, which end in .fasta, .fa or .faa, and from GenBank files, "
            "which end in .gb, .gbk or .gbff"
        )
    proteins: list[Protein] = []
    for line, header, sequence in zip(table.lines, table.columns["name"], table.columns["string"], strict=True):
        name = (header.split() or [f"protein-{len(proteins) + 1}"])[0]
        location = f"{path}, line {line} (>{name})"
        if not sequence:
            raise InputError(f"{location}: the record has no sequence: add it, or remove the record")
        proteins.append(Protein(name, sequence, location))
    if not proteins:
        raise InputError(f"{path} holds no protein: a FASTA file has a line '>name', then lines of sequence")
    return proteins


def _of_genbank(path: Path) -> list[Protein]:
    found = open_source(path)
    text, _ = decoded(path, found.data)
    proteins: list[Protein] = []
    for record in parse_genbank(text, str(path)):
        for feature in record.features:
            if feature.kind != "CDS" or {"pseudo", "pseudogene"} & feature.qualifiers.keys():
                continue
            name = coding_name(feature, f"{record.name}-{len(proteins) + 1}")
            location = f"{path}, line {feature.line} (CDS {name})"
            try:
                sequence = record.protein_of(feature)
            except InputError as error:
                raise InputError(f"{location}: {error}") from error
            if not sequence:
                raise InputError(f"{location}: it codes for no amino acid")
            if (stop := sequence.find(STOP)) >= 0 and "translation" not in feature.qualifiers:
                raise InputError(
                    f"{location}: codon {stop + 1} of its bases is a stop codon: check its location, /codon_start and "
                    "/transl_table, or give the protein as /translation"
                )
            proteins.append(Protein(name, sequence, location, record.remark_on(feature)))
    if not proteins:
        raise InputError(f"{path} holds no coding sequence: a feature CDS, with /translation or the bases to translate")
    return proteins
