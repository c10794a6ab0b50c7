"""Proteins from FASTA files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from seqopt.datasets import read_proteins
from seqopt.errors import InputError


def test_records_keep_their_order_names_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "mine.faa"
    path.write_text(">sp|P1|GFP a protein\nMSK GEE\nLFT\n\n; a comment\n>\nmkv\n")
    first, second = read_proteins(path)
    assert (first.name, first.sequence, first.location) == ("sp|P1|GFP", "MSKGEELFT", f"{path}, line 1 (>sp|P1|GFP)")
    assert (second.name, second.sequence) == ("protein-2", "mkv")
    zipped = tmp_path / "mine.faa.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert [protein.sequence for protein in read_proteins(zipped)] == ["MSKGEELFT", "mkv"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("void.fasta", "", "is empty"),
        ("comments.fasta", "; none\n", "holds no protein"),
        ("hollow.fasta", ">a\nMK\n>b\n", r"line 3 \(>b\): the record has no sequence"),
        ("list.txt", "MKV\n", "FASTA files, which end in"),
    ],
)
def test_what_holds_no_protein_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_proteins(path)
