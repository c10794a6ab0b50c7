"""Files are found, unpacked and named, and what unpacks to too much is refused."""

import gzip
import io
import zipfile
from pathlib import Path

import openpyxl
import pytest

import seqopt.datasets.sources as sources
from seqopt.datasets import read_pool, read_sheet
from seqopt.datasets.sources import file_and_part, named, unchanged
from seqopt.errors import InputError


def archive(path: Path, files: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return path


def workbook(**sheets: list) -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pool.csv", b"smiles,y\nCCO,1\nCCN,2\n"),
        ("pool.smi", b"CCO\nCCN\n"),
        ("pool.txt", b"CCO\nCCN\n"),
        ("pool.csv.gz", gzip.compress(b"smiles,y\nCCO,1\nCCN,2\n", mtime=0)),
        ("in/a folder/pool.xlsx", workbook(Sheet=[["smiles"], ["CCO"], ["CCN"]])),
    ],
)
def test_an_archive_of_one_table_is_that_table(tmp_path: Path, name: str, data: bytes) -> None:
    path = archive(tmp_path / "pool.zip", {"__MACOSX/._pool.csv": b"x", "folder/": b"", ".DS_Store": b"y", name: data})
    pool = read_pool(path)
    assert pool.strings == ("CCO", "CCN")
    assert pool.source == f"{path}#{name}"
    assert read_pool(pool.source).sha256 == pool.sha256


def test_of_several_files_one_has_to_be_named(tmp_path: Path) -> None:
    both = workbook(A=[["smiles"], ["CCN"]], B=[["smiles"], ["CCO"]])
    path = archive(tmp_path / "all.zip", {"a/one.csv": "smiles\nC\n", "two.csv": "smiles\nCC\n", "book.xlsx": both})
    for read in (read_pool, read_sheet):
        with pytest.raises(
            InputError, match=r"archive of 3 files, 'a/one.csv', .* all\.zip#a/one\.csv|say which is meant"
        ):
            read(path)
    assert read_pool(f"{path}#a/one.csv").strings == ("C",)
    assert read_pool(f"{path}#one.csv").strings == ("C",)
    assert read_pool(f"{path}#TWO.csv").strings == ("CC",)
    assert read_pool(f"{path}#book.xlsx#B").strings == ("CCO",)
    assert read_pool(f"{path}#one.csv").sha256 != read_pool(f"{path}#two.csv").sha256
    with pytest.raises(InputError, match=r"has no file 'three.csv'; it has 'a/one.csv', 'two.csv', 'book.xlsx'"):
        read_pool(f"{path}#three.csv")
    only = archive(tmp_path / "only.zip", {"book.xlsx": both})
    assert read_pool(f"{only}#B").strings == ("CCO",)


def test_a_file_is_known_by_the_checksum_of_its_table(tmp_path: Path) -> None:
    both = {"A": [["smiles"], ["CCN"]], "B": [["smiles"], ["CCO"]]}
    one, two = workbook(A=both["A"]), workbook(**both)
    (tmp_path / "a#1.csv").write_text("smiles\nC\n")
    (tmp_path / "one.xlsx").write_bytes(one)
    (tmp_path / "two.xlsx").write_bytes(two)
    names = ["a#1.csv", "one.xlsx", "one.xlsx#A", "two.xlsx#A", "two.xlsx#B", "lone.zip"]
    archive(tmp_path / "lone.zip", {"x.csv": "smiles\nC\n"})
    archive(tmp_path / "all.zip", {"a/x#y.csv": "smiles\nC\n", "b.xlsx": two, "c.xlsx": one})
    archive(tmp_path / "only.zip", {"b.xlsx": two})
    names += ["all.zip#a/x#y.csv", "all.zip#b.xlsx#B", "all.zip#c.xlsx", "only.zip#A", "only.zip#b.xlsx#B"]
    for name in names:
        pool = read_pool(tmp_path / name)
        # Under the name that was given, and under the one that it has been given since.
        assert unchanged(pool.source, pool.sha256) is True, name
        assert unchanged(tmp_path / name, pool.sha256) is True, name
        file, _ = file_and_part(pool.source)
        before = file.read_bytes()
        file.write_bytes(before + b" ")
        assert unchanged(pool.source, pool.sha256) is False, name
        file.write_bytes(before)
    first, second = (read_pool(f"{tmp_path / 'two.xlsx'}#{sheet}") for sheet in "AB")
    assert unchanged(first.source, second.sha256) is False
    assert unchanged(tmp_path / "none.csv", first.sha256) is None
    assert unchanged(tmp_path, first.sha256) is None


def test_results_may_be_compressed(tmp_path: Path) -> None:
    text = "identifier;y\nB01-01;6,5\n"
    plain, packed = tmp_path / "r.csv", tmp_path / "r.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    zipped = archive(tmp_path / "r.zip", {"r.csv": text})
    tables = [read_sheet(path).rows for path in (plain, packed, zipped)]
    assert tables == [(("identifier", "y"), ("B01-01", "6,5"))] * 3


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"smiles\n" + b"C\n" * 10_000))
    zipped = archive(tmp_path / "a.zip", {"a.csv": b"smiles\n" + b"C\n" * 10_000})
    assert len(read_pool(packed)) == len(read_pool(zipped)) == 1
    monkeypatch.setattr(sources, "LARGEST_UNPACKED", 1_000)
    for path in (packed, zipped):
        with pytest.raises(InputError, match="unpacks to more than"):
            read_pool(path)


def test_archives_that_cannot_be_used_are_explained(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a.csv": "smiles\nCCO\n" * 99})
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(InputError, match="not a complete zip archive"):
        read_pool(path)
    archive(path, {".hidden": "x"})
    with pytest.raises(InputError, match="archive without a file"):
        read_pool(path)
    archive(path, {"a.csv": ""})
    with pytest.raises(InputError, match=r"a\.zip#a\.csv is empty"):
        read_pool(path)
    archive(path, {"a.json": "x"})
    with pytest.raises(InputError, match="cannot tell from its name"):
        read_pool(path)
    protected = bytearray(whole)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        protected[protected.index(signature) + offset] |= 1
    path.write_bytes(protected)
    with pytest.raises(InputError, match="protected by a password"):
        read_pool(path)


def test_a_number_sign_in_the_name_of_a_file_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "plate#1.xlsx#2.csv"
    path.write_text("smiles\nC#N\n")
    assert file_and_part(path) == (path, None)
    assert read_pool(path).strings == ("C#N",)
    assert file_and_part("C#CC#N") == (Path("C#CC#N"), None)
    for file, part in (("a.xlsx", "Sheet 1"), ("a.zip", "b.xlsx#S"), ("a.csv", None)):
        assert file_and_part(named(file, part)) == (Path(file), part)
    with pytest.raises(InputError, match=r"there is no file .*nowhere\.xlsx"):
        read_pool(tmp_path / "nowhere.xlsx#Sheet")
