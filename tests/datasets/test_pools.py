"""Reading pools: what is usable, what is rejected, and what is the same thing."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rdkit import Chem

from seqopt.datasets import pools, read_pool, write_rejected
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.strings.identity import identity_keys
from seqopt.utils import cache

SMILES = ["CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O", "C[C@@H](N)C(=O)O"]
PROTEINS = ["MKVLAAGIVGLLLAQW", "MTYKLILNGKTLKGETTTEAV", "GSHMRYDEFWPQ"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize("ending", ["csv", "tsv", "smi", "txt", "fasta", "parquet", "csv.gz", "smi.gz", "txt.gz"])
def test_every_format_gives_the_same_pool(tmp_path: Path, ending: str) -> None:
    strings = PROTEINS if ending == "fasta" else SMILES
    names = [f"item {number}" for number in range(len(strings))]
    path = tmp_path / f"pool.{ending}"
    texts = {
        "csv": "Name,SMILES\n" + "".join(f"{n},{s}\n" for n, s in zip(names, strings, strict=True)),
        "tsv": "Name\tSMILES\r\n" + "".join(f"{n}\t{s}\r\n" for n, s in zip(names, strings, strict=True)),
        "smi": "".join(f"{s}\t{n}\n" for n, s in zip(names, strings, strict=True)),
        "txt": "".join(f"{s}\n" for s in strings),
        "fasta": "".join(f">{n}\n{s[:7]}\n{s[7:]}\n\n" for n, s in zip(names, strings, strict=True)),
    }
    if ending == "parquet":
        pq.write_table(pa.table({"Name": names, "SMILES": strings}), path)
    else:
        content = texts[ending.removesuffix(".gz")].encode()
        path.write_bytes(gzip.compress(content, mtime=0) if ending.endswith(".gz") else content)
    pool = read_pool(path)
    assert pool.strings == tuple(strings)
    assert pool.kind == ("protein" if ending == "fasta" else "molecule")
    assert pool.keys == tuple(strings if ending == "fasta" else map(Chem.CanonSmiles, strings))
    assert pool.names == (None if ending.startswith("txt") else tuple(names))
    first = {"csv": 2, "tsv": 2}.get(ending.removesuffix(".gz"), 1)
    step = 4 if ending == "fasta" else 1
    assert pool.lines.tolist() == [first + step * row for row in range(len(strings))]
    assert pool.column == ("SMILES" if ending in ("csv", "tsv", "parquet", "csv.gz") else None)
    assert not pool.rejected
    assert pool.values is None


def test_unreadable_strings_are_set_aside_with_their_lines(write: Write, tmp_path: Path) -> None:
    path = write("pool.csv", "smiles,id\nCCO,a\nC1CC,b\n,c\nc1ccccc1,d\nC(C)(C)(C)(C)C,e\n\nCCN,f\n\n")
    pool = read_pool(path)
    assert pool.strings == ("CCO", "c1ccccc1", "CCN")
    assert pool.lines.tolist() == [2, 5, 8]
    assert [(record.line, record.value) for record in pool.rejected] == [
        (3, "C1CC"),
        (4, ""),
        (6, "C(C)(C)(C)(C)C"),
        (7, ""),
    ]
    assert [record.reason for record in pool.rejected][1::2] == ["empty", "blank line"]
    assert "4 rejected" in pool.summary()
    # What can be corrected is named before rows that hold nothing.
    told = pool.summary().splitlines()[-1]
    assert told.startswith("4 rejected: line 3 'C1CC' (not a SMILES (syntax)); line 6 'C(C)(C)(C)(C)C' (impossible")
    assert told.endswith("; 2 blank or empty")
    blank = read_pool(write("blank.csv", "smiles\n\nCCO\n\n\nCCN\n"))
    assert blank.summary().endswith("3 rejected: line 2 '' (blank line); line 4 '' (blank line); and 1 more")
    write_rejected(pool, tmp_path / "rejected.csv")
    with (tmp_path / "rejected.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["line", "value", "reason"]
    assert rows[1][:2] == ["3", "C1CC"]
    assert len(rows) == 5
    with pytest.raises(InputError, match="cannot write"):
        write_rejected(pool, tmp_path / "no" / "rejected.csv")


def test_strict_names_file_line_and_value(write: Write) -> None:
    path = write("pool.smi", "CCO\nC1CC\nfoo bar\n")
    with pytest.raises(InputError, match=r"pool\.smi: 2 unusable strings: line 2 'C1CC' .*line 3 'foo'"):
        read_pool(path, strict=True)
    assert len(read_pool(write("good.smi", "CCO\n"), strict=True)) == 1


def test_attachment_points_are_rejected_or_asked_for(write: Write) -> None:
    path = write("blocks.smi", "CCO\n*CC(=O)O\n[*:1]c1ccccc1[*:2]\n[R1]CC\n[2*]C\nCCN\n")
    pool = read_pool(path)
    assert pool.strings == ("CCO", "CCN")
    assert [(record.line, "attachment point" in record.reason) for record in pool.rejected] == [
        (2, True),
        (3, True),
        (4, False),
        (5, True),
    ]
    assert "R-group" in pool.rejected[2].reason
    assert "attachment_points=True (--attachment-points)" in pool.rejected[0].reason
    assert read_pool(path, attachment_points=True).strings == ("CCO", "*CC(=O)O", "[*:1]c1ccccc1[*:2]", "[2*]C", "CCN")
    stops = write("stops.csv", "protein\nMKVLA*\nMKV*LA\n")
    assert len(read_pool(stops)) == 2  # a star ends a protein


def test_absurdly_long_smiles_are_rejected_with_their_length(write: Write) -> None:
    path = write("long.csv", "smiles\nCCO\n" + "C" * 100_000 + "\n" + "C1CC1" * 3_000 + "\n")
    pool = read_pool(path)
    assert [record.reason for record in pool.rejected] == [
        "a SMILES of 100,000 characters; at most 2,000 are read",
        "a SMILES of 15,000 characters; at most 2,000 are read",
    ]
    assert len(pool.summary()) < 500


def test_spellings_of_one_molecule_are_merged_and_their_values_averaged(write: Write) -> None:
    path = write("pool.csv", "smiles,y\nOCC,1\nCCO,3\nCC,5\nC(O)C,8\n")
    pool = read_pool(path, values_column="Y")
    assert pool.strings == ("OCC", "CC")
    assert pool.keys == ("CCO", "CC")
    assert pool.values is not None
    assert pool.values.tolist() == [4.0, 5.0]
    assert pool.values_column == "y"
    assert pool.duplicates == 2
    first = pool.duplicate_examples[0]
    assert (first.line, first.string, first.first_line, first.first_string) == (3, "CCO", 2, "OCC")
    assert "2 duplicates merged; their values are the mean" in pool.summary()
    assert len(read_pool(write("dna.txt", "ACGT\nacgt\nGGTA\n"))) == 2


def test_standardize_merges_salts_and_keeps_the_strings(write: Write) -> None:
    path = write("pool.smi", "CC(=O)[O-].[Na+]\nCC(=O)O\n")
    assert len(read_pool(path)) == 2
    pool = read_pool(path, standardize=True)
    assert pool.strings == ("CC(=O)[O-].[Na+]",)
    assert pool.keys == ("CC(=O)O",)
    with pytest.raises(InputError, match="standardize is for molecules"):
        read_pool(write("dna.txt", "ACGT\n"), standardize=True)


def test_rows_without_a_finite_value_are_rejected(write: Write) -> None:
    rows = 'C,1\nCC,\nCCC,n/a\nCCCC,nan\nCCCCC,inf\nCCCCCC, 2.5e0 \nCCCCCCC,1_0\nCCO,"6,5"\n'
    path = write("pool.csv", f"smiles,y\n{rows}")
    pool = read_pool(path, values_column="y")
    assert pool.values is not None
    assert pool.values.tolist() == [1.0, 2.5]
    assert [record.line for record in pool.rejected] == [3, 4, 5, 6, 8, 9]
    assert "'y' is empty" in pool.rejected[0].reason
    assert "'n/a'" in pool.rejected[1].reason
    assert [record.line for record in pool.rejected if "expected a decimal point, as in 6.5" in record.reason] == [9]


@pytest.mark.parametrize(
    ("header", "rows", "column", "kind"),
    [
        ("Canonical_SMILES,score", ["CCO,1", "CCN,2"], "Canonical_SMILES", "molecule"),
        ("id,Sequence", ["a,ACGT", "b,GGTA"], "Sequence", "dna"),
        ("variant,protein", ["a,MKV", "b,MKL"], "protein", "protein"),
        ("score,whatever,id", ["1,MKVLHEW,x", "2,MKQQHEW,y"], "whatever", "protein"),
        ("RDKit SMILES (parent),solvent", ["CCO,water", "CCN,oil"], "RDKit SMILES (parent)", "molecule"),
        ("aptamer rna,n", ["GGACU,1", "GGCCU,2"], "aptamer rna", "rna"),
        ("string", ["0101", "1111"], "string", "text"),
        ("bits", ["0101", "1111"], "bits", "text"),
        ("SMILES;value", ["CCO;1", "CC;2"], "SMILES", "molecule"),
    ],
)
def test_columns_and_kinds_are_recognised(write: Write, header: str, rows: list[str], column: str, kind: str) -> None:
    pool = read_pool(write("pool.csv", "\n".join([header, *rows]) + "\n"))
    assert (pool.column, pool.kind, len(pool)) == (column, kind, 2)


def test_columns_and_kinds_can_be_chosen(write: Write) -> None:
    path = write("pool.csv", "smiles,ligand,y\nCCO,CCN,1\nCC,CCC,2\n")
    assert read_pool(path).strings == ("CCO", "CC")
    assert read_pool(path, column="LIGAND").strings == ("CCN", "CCC")
    assert read_pool(path, kind="text").kind == "text"
    assert read_pool(path, kind="auto").kind == "molecule"
    both = write("both.csv", "smiles,protein\nCCO,MKV\nCC,MKL\n")
    assert read_pool(both, kind="protein").strings == ("MKV", "MKL")
    with pytest.raises(InputError, match=r"no column 'smile'; its columns are 'smiles', 'ligand', 'y'. Did"):
        read_pool(path, column="smile")
    with pytest.raises(InputError, match="no column 'z'"):
        read_pool(path, values_column="z")
    with pytest.raises(InputError, match="unknown kind 'gene'"):
        read_pool(path, kind="gene")


def test_lists_may_carry_the_name_of_their_column(write: Write) -> None:
    assert read_pool(write("a.smi", "smiles name\nCCO x\n")).strings == ("CCO",)
    assert read_pool(write("b.txt", "sequence\nMKVLHEW\n")).strings == ("MKVLHEW",)
    # The word in upper case is a sequence of amino acids.
    assert read_pool(write("c.txt", "SEQUENCE\nMKVLHEW\n")).strings == ("SEQUENCE", "MKVLHEW")


def test_a_blank_line_counts_unless_it_ends_the_file(write: Write) -> None:
    for name in ("a.txt", "a.smi"):
        pool = read_pool(write(name, "CCO\n\nCCN\n\n\n"))
        assert pool.strings == ("CCO", "CCN")
        assert [(record.line, record.reason) for record in pool.rejected] == [(2, "blank line")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "is empty"),
        ("blank.txt", " \n\n", "only blank lines"),
        ("header.csv", "smiles,y\n", "a header but no rows"),
        ("pool.json", "x", "cannot tell from its name.*use .csv"),
        ("pool", "x", "cannot tell from its name"),
        ("odd.csv", b"smiles,name\nCCO,caf\x81\n", "line 2: byte 0x81: this is not text in a known encoding.*save"),
        ("binary.txt", b"CCO\n\x00\x01\n", "line 2: a NUL byte"),
        ("torn.csv.gz", gzip.compress(b"smiles\nCCO\n" * 50, mtime=0)[:-12], "not a complete gzip"),
        ("plain.csv.gz", "smiles\nCCO\n", "not a complete gzip"),
        ("ragged.csv", "smiles,y\nCCO,1\nCC,1,2\n", "line 3: 3 cells where the header has 2"),
        ("short.csv", "smiles,y\nCCO\n", "line 2: 1 cells where the header has 2"),
        ("quote.csv", 'smiles,y\nCCO,1\n"CC,1\nC,2\n', "line 3: .*quotation"),
        ("twice.csv", "smiles,smiles\nCCO,CC\n", "several columns called 'smiles'"),
        ("two.csv", "left,right\nabc,def\n", "cannot tell which column.*'left', 'right'.*column="),
        ("bad.smi", "C1CC\nfoo\n", "no usable molecule: line 1 'C1CC'.*line 2 'foo'"),
        ("bad.csv", "smiles\nMKVLHEWYY\n", "no usable molecule"),
        ("noheader.csv", "CCO\nCCN\nCCC\n", "line 1: 'CCO' looks like a molecule.*header"),
        ("noheader2.csv", "MKVLHEW,1\nMKVLHEY,2\n", "line 1: 'MKVLHEW' looks like a protein"),
        ("headless.fasta", "MKV\n>a\nMKL\n", "line 1: .*before the first '>'"),
        ("bad.parquet", b"PAR1 not really", "not a readable parquet"),
        ("quoted.csv", '""\n', "no header line"),
    ],
)
def test_files_that_cannot_be_used_are_explained(write: Write, name: str, content: str | bytes, message: str) -> None:
    path = write(name, content)
    with pytest.raises(InputError, match=message) as caught:
        read_pool(path)
    assert name in str(caught.value)


def test_missing_files_are_explained(tmp_path: Path, write: Write) -> None:
    write("molecules.csv", "smiles\nC\n")
    with pytest.raises(InputError, match=r"there is no file .*molecule\.csv\. Did you mean .*molecules\.csv"):
        read_pool(tmp_path / "molecule.csv")
    with pytest.raises(InputError, match="nor a folder"):
        read_pool(tmp_path / "none" / "pool.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_pool(tmp_path)
    with pytest.raises(InputError, match=r"neither a file nor a data set 'zinc'.*zinc250k"):
        read_pool("zinc")
    with pytest.raises(InputError, match="has no named columns"):
        read_pool(write("a.txt", "CCO\n"), column="smiles")
    with pytest.raises(InputError, match="has no named columns"):
        read_pool(write("a.smi", "CCO\n"), values_column="y")


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write) -> None:
    pool = read_pool(write("pool.csv", b"\xef\xbb\xbfsmiles,y\r\nCCO,1\r\nCC,2\r\n"))
    assert (pool.column, pool.strings, pool.lines.tolist()) == ("smiles", ("CCO", "CC"), [2, 3])
    assert read_pool(write("wide.csv", "smiles,y\nCCO,1\n".encode("utf-16"))).strings == ("CCO",)


def test_empty_cells_at_the_end_of_a_row_do_no_harm(write: Write) -> None:
    assert read_pool(write("pool.csv", "smiles,y\nCCO,1,,\n")).strings == ("CCO",)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.lists(
        st.tuples(*[st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=8)] * 2),
        min_size=1,
        max_size=8,
    )
)
@example([("a\nb", "c\n\nd"), ("", "e"), ("\n", "")])
def test_tables_hold_the_cells_as_written_and_know_their_lines(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([("first", "second"), *rows])
    path = tmp_path / "table.csv"
    path.write_bytes(stream.getvalue().encode())
    table = read_table(path)
    assert list(zip(table.columns["first"], table.columns["second"], strict=True)) == rows
    lines = 2 + np.cumsum([0] + [1 + sum(cell.count("\n") for cell in row) for row in rows[:-1]])
    assert table.lines.tolist() == lines.tolist()


def _alkanes(number: int) -> list[str]:
    return ["C" * (1 + index % 40) + "(" + "C" * (1 + index // 40) + ")O" for index in range(number)]


def test_keys_of_large_pools_are_computed_in_processes_and_kept(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "PARALLEL_FROM", 100)
    monkeypatch.setattr(pools, "CACHE_FROM", 100)
    strings = [*_alkanes(400), "C1CC"]
    path = write("pool.smi", "\n".join(strings) + "\n")
    seen: list[tuple[int, int]] = []
    pool = read_pool(path, progress=lambda done, total: seen.append((done, total)))
    assert pool.keys == tuple(dict.fromkeys(key for key in identity_keys(strings, "molecule") if key))
    assert [record.line for record in pool.rejected] == [401]
    assert seen[-1] == (401, 401)
    (file,) = cache.cache_dir().iterdir()
    content = file.read_bytes()

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr(pools, "map_strings", refuse)
        assert read_pool(path).keys == pool.keys
        with pytest.raises(AssertionError, match="computed again"):
            read_pool(path, standardize=True)
    for damage in (content[:-30], content.replace(b"CCO", b"CCN"), b"", b"\xff\xfe\x00"):
        file.write_bytes(damage)
        assert read_pool(path).keys == pool.keys
        assert file.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_no_error(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pools, "CACHE_FROM", 2)
    monkeypatch.setattr(pools, "PARALLEL_FROM", 2)
    (tmp_path / "occupied").write_text("")
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "occupied"))
    assert len(read_pool(write("pool.smi", "C\nCC\nCCC\n"))) == 3


def test_reading_leaves_rdkits_log_as_it_was(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    read_pool(write("pool.smi", "CCO\nC1CC\n"))
    assert "SMILES Parse Error" not in capfd.readouterr().err
    Chem.MolFromSmiles("C1CC")
    assert "SMILES Parse Error" in capfd.readouterr().err


def test_replicates_on_a_logarithmic_scale_have_their_geometric_mean(tmp_path):
    path = tmp_path / "assay.csv"
    path.write_text("smiles,IC50\nCCO,1\nOCC,10000\nCCN,7\nCCC,0\n")
    pool = read_pool(path, values_column="IC50", log_values=True)
    assert pool.strings == ("CCO", "CCN")
    assert pool.values.tolist() == [pytest.approx(100.0), 7.0]
    assert [(record.line, record.reason) for record in pool.rejected] == [(5, "its value 0 has no logarithm")]
    assert read_pool(path, values_column="IC50").values.tolist() == [5000.5, 7.0, 0.0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_libraries_are_read_whatever_program_saved_them(write: Write, encoding: str, separator: str) -> None:
    rows = ["smiles;name", "CCO;caf\xe9", "", "'-CC;'tis", 'CCN;"a,b;c|d\te"']
    text = "\r\n".join(row.replace(";", separator, 1) for row in rows)
    table = read_table(write("library.csv", f"{text}\r\n".encode(encoding)))
    assert table.columns == {"smiles": ["CCO", "-CC", "CCN"], "name": ["caf\xe9", "'tis", "a,b;c|d\te"]}
    assert table.lines.tolist() == [2, 4, 5]
    assert table.blank_lines == [3]


def test_a_library_says_what_separates_its_cells(write: Write) -> None:
    table = read_table(write("library.csv", "sep=;\nsmiles;a,b\nCCO;1,5\n"))
    assert table.columns == {"smiles": ["CCO"], "a,b": ["1,5"]}
    assert table.lines.tolist() == [3]
    assert read_table(write("one.csv", "text\na|b\nc;d\n")).columns == {"text": ["a|b", "c;d"]}
    with pytest.raises(InputError, match="an Excel workbook"):
        read_table(write("sheet.csv", b"PK\x03\x04 and so on"))


def test_letters_that_are_no_amino_acid_are_remarked_on(tmp_path: Path) -> None:
    path = tmp_path / "proteins.csv"
    path.write_text("sequence\nMKTAYIAK\nMKTAUXAK\nMK*AYIAK\nmktayiar\n")
    pool = read_pool(path, kind="protein")
    assert len(pool) == 4
    (remark,) = pool.remarks
    assert remark.startswith("2 proteins have letters that stand for none of the twenty amino acids")
    assert "the first on line 3 (U at 5)" in remark
    assert remark in pool.summary()
    path.write_text("sequence\nMKTAYIAK\nMKTAYIAR\n")
    assert not read_pool(path, kind="protein").remarks


def test_why_a_column_is_not_taken_for_identifiers_is_said(write: Write) -> None:
    twice = read_pool(write("twice.csv", "id,smiles\nA,CCO\nB,CCN\nC,CCF\nD,CCS\nA,CCC\nB,NCC\n"))
    assert (twice.identifiers, twice.remarks) == (
        None,
        ("the column 'id' is not taken for identifiers: 'A' is that of line 2 'CCO' and of line 6 'CCC'",),
    )
    empty = read_pool(write("empty.csv", "id,smiles\nA,CCO\nB,CCN\n,CCF\n"))
    assert empty.remarks == ("the column 'id' is not taken for identifiers: it is empty on line 4 'CCF'",)
    # Names of groups were never meant to tell candidates apart; and another column may do so.
    assert not read_pool(write("groups.csv", "name,smiles\na,CCO\na,CCN\nb,CCF\nb,CCS\n")).remarks
    assert not read_pool(write("both.csv", "id,name,smiles\n1,a,CCO\n2,b,CCN\n2,c,CCF\n")).remarks
