"""GenBank files: coding sequences read as the format means them, genes written so that others can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.datasets import read_proteins
from seqopt.datasets.genbank import Construct, Feature, Record, genbank, parse_genbank
from seqopt.errors import InputError
from seqopt.strings.genetic_codes import genetic_code

RECORD = """\
LOCUS       pMade                     60 bp    DNA     circular SYN 01-JAN-2020
DEFINITION  a plasmid of nothing
            in particular.
FEATURES             Location/Qualifiers
     source          1..60
                     /organism="synthetic construct"
     CDS             4..15
                     /gene="first one"
                     /note="said ""so"" by
                     /someone"
                     /translation="MK
                     L*"
     CDS             complement(join(31..36,19..24))
                     /locus_tag="B_02"
                     /transl_table=11
     CDS             <40..48
                     /product="middle"
                     /codon_start=2
     CDS             50..58
                     /pseudo
ORIGIN
        1 cccatgaaac tttaaccccg gtaaccccct ttcatccccc accgaaagaa gttgaaataa
//
"""


def test_coding_sequences_are_translated_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "made.gb"
    path.write_text(RECORD)
    proteins = read_proteins(path)
    assert [(one.name, one.sequence) for one in proteins] == [
        ("first_one", "MKL"),  # of its translation
        ("B_02", translated("complement")),
        ("middle", translated("middle")),
    ]
    assert proteins[1].location == f"{path}, line 13 (CDS B_02)"


def translated(which: str) -> str:
    """By hand: the reverse complement of bases 31-36 and 19-24 joined, and bases 41-48."""
    bases = "".join(line[10:].replace(" ", "") for line in RECORD.splitlines() if line.startswith("        1"))
    code = genetic_code(11)
    if which == "middle":
        return code.translate(bases[40:46])
    joined = bases[30:36] + bases[18:24]
    return code.translate(joined[::-1].translate(str.maketrans("acgt", "tgca"))).removesuffix("*")


def test_quotation_marks_and_slashes_within_a_qualifier_stay() -> None:
    (record,) = parse_genbank(RECORD, "here")
    assert record.features[1].qualifiers["note"] == 'said "so" by /someone'
    assert (record.name, len(record.sequence), record.features[0].kind) == ("pMade", 60, "source")


def test_a_start_codon_is_methionine_only_where_a_gene_begins() -> None:
    record = Record("x", "GTGAAATAA")
    assert record.protein_of(Feature("CDS", "1..9", {"transl_table": "11"})) == "MK"
    assert record.protein_of(Feature("CDS", "<1..9", {"transl_table": "11"})) == "VK"


def test_what_is_written_is_read_again_and_holds_what_stands_beside_the_gene() -> None:
    gene = "TTGAAACTG" * 12 + "TAA"
    construct = Construct("ggaggauuu", "ccc", genetic_code(11), 'a "fine" protein', start=True, stop=True)
    text = genbank("long name of a gene_1", "the best, " * 20, gene, construct)
    assert max(map(len, text.splitlines())) < 80
    (record,) = parse_genbank(text, "here")
    assert record.sequence == "GGAGGATTT" + gene + "CCC"
    coding = next(feature for feature in record.features if feature.kind == "CDS")
    assert record.bases_of(coding.location) == gene
    assert record.protein_of(coding) == "M" + genetic_code(11).translate(gene)[1:-1]
    assert coding.qualifiers["product"] == 'a "fine" protein'
    again = record.protein_of(Feature("CDS", coding.location, {"transl_table": "11"}))
    assert again == record.protein_of(coding)
    part = genbank("x", "", "CTGAAA", Construct())
    assert "     CDS             <1..>6\n" in part
    assert parse_genbank(part, "here")[0].protein_of(Feature("CDS", "<1..>6")) == "LK"


def test_biopython_reads_it_alike() -> None:
    seqio = pytest.importorskip("Bio.SeqIO")
    import io

    construct = Construct("GGAGG", "CC", genetic_code(11), "p", start=True, stop=True, rna=True)
    text = genbank("gene_1", "rank=1 cai=0.9", "ATGAAACTGTAA", construct) * 2
    first, second = seqio.parse(io.StringIO(text), "genbank")
    assert str(first.seq) == str(second.seq) == "GGAGGATGAAACTGTAACC"
    coding = next(feature for feature in first.features if feature.type == "CDS")
    assert str(coding.extract(first.seq)) == "ATGAAACTGTAA"
    assert coding.qualifiers["translation"] == ["MKL"]
    assert (first.description, first.annotations["molecule_type"]) == ("rank=1 cai=0.9", "mRNA")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello\n", "line 1: expected a line that begins with LOCUS"),
        ("LOCUS       x\nORIGIN\n        1 acgt\n", "the record of line 1 does not end with //"),
        ("LOCUS       x\nLOCUS       y\n//\n", "line 2: a record begins before that of line 1 has ended"),
        ("LOCUS       x\nORIGIN\n        1 ac!t\n//\n", "line 3: '!' is not a base"),
        ("LOCUS       x\n//\n", "holds no coding sequence"),
        (
            RECORD.replace("4..15", "4..150").replace("/translation", "/other"),
            "line 7 .*does not lie within .* 60 bases",
        ),
        (
            RECORD.replace("4..15", "J00194.1:4..15").replace("/translation", "/other"),
            "is not a stretch of this record",
        ),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "made.gbk"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_proteins(path)


def test_names_of_any_length_and_with_quotation_marks_are_read_as_they_were_written() -> None:
    long = "variant_" * 9
    for product in ('protein "X"', long, f"a {long} of it", '"'):
        construct = Construct("GGG", product=product, start=True, stop=True)
        (record,) = parse_genbank(genbank("my gene 1", "a gene", "ATGAAATAA", construct), "here")
        assert record.features[-1].qualifiers["product"] == product
    assert genbank("my gene 1", "a gene", "ATGAAATAA", construct).split()[1] == "my_gene_1"


@pytest.mark.parametrize(
    ("location", "protein"),
    [
        ("join(complement(7..>9),complement(1..6))", "L"),
        ("join(complement(7..9),complement(<1..6))", "M"),
        ("complement(1..>9)", "L"),
        ("complement(<1..9)", "M"),
    ],
)
def test_a_gene_that_begins_before_the_bases_has_no_start_codon(location: str, protein: str) -> None:
    # TTG, read on the other strand, is M where a gene begins.
    record = Record("x", "TTACTTCAA", (Feature("CDS", location, {}, 1),))
    assert record.protein_of(record.features[0])[0] == protein


GENE = "ATGAAACTTTAA"


@pytest.mark.parametrize(
    ("bases", "location", "qualifiers", "wanted"),
    [
        (GENE, "1..12", {"translation": "MKL"}, ""),
        (GENE, "1..12", {}, ""),
        (GENE, "1..12", {"translation": "MKI*"}, "has I at position 3, and its bases code for L there"),
        (GENE, "1..12", {"translation": "MKLL"}, "has 4 residues, and its bases code for 3"),
        ("ATGTGAAAATAA", "1..12", {"translation": "MUK"}, "has U at position 2, and its bases code for a stop there"),
        ("ATGTGAAAATAA", "1..12", {"translation": "MWK", "transl_table": "4"}, ""),
        (GENE, "1..11", {}, "its 11 bases are no whole number of codons: the last 2 count for nothing"),
        (GENE, "1..>11", {}, ""),  # it goes on beyond them
        (GENE, "1..99", {"translation": "MKI"}, ""),  # there are no such bases to compare with
        ("", "1..12", {"translation": "MKI"}, ""),
    ],
)
def test_translations_that_are_not_those_of_the_bases_are_remarked_on(
    bases: str, location: str, qualifiers: dict[str, str], wanted: str
) -> None:
    remark = Record("x", bases).remark_on(Feature("CDS", location, qualifiers))
    assert (wanted in remark) if wanted else not remark


def test_a_stop_codon_within_a_coding_sequence_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.gb"
    record = genbank("x_1", "a gene", "ATGAAATAA", Construct(start=True, stop=True))
    path.write_text(record.replace("1 atgaaataa", "1 atgtaataa").replace('/translation="MK"', '/note="none"'))
    with pytest.raises(InputError, match=r"x.gb, line \d+ \(CDS x_1\): codon 2 of its bases is a stop codon"):
        read_proteins(path)
    path.write_text(record.replace("1 atgaaataa", "1 atgagataa"))
    (protein,) = read_proteins(path)
    assert (protein.sequence, protein.remark.split(":")[0]) == (
        "MK",
        "its /translation has K at position 2, and its bases code for R there",
    )
