"""Pools on disk: what is read, how a preparation goes on after it was cut off, and what damage does."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seqopt.datasets import pool_index, pool_makers, pool_store, prepare_pool, read_pool
from seqopt.datasets.pool_shards import make_shard
from seqopt.datasets.pool_store import PoolStore, Preparation
from seqopt.encoding import MorganFingerprint
from seqopt.errors import InputError
from seqopt.spaces import StoredPool
from seqopt.utils.array_files import DamagedFileError, read_arrays, write_arrays
from seqopt.utils.config import described, from_config

MOLECULES = ["OCC", "c1ccccc1", "C(C)N", "CN(C)C", "O=C=O", "CC(=O)[O-].[Na+]", "C[C@H](O)F", "F/C=C/F"]


def _prepared(source: Any, folder: Path, **options: Any) -> PoolStore:
    return prepare_pool(source, **{"folder": folder / "store", "workers": 1, "rows": 3, **options})


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    rows = [*MOLECULES, "CCO", "C1CC", "", "*CC", "N(C)(C)C", "Cl"]
    return _write(tmp_path / "library.csv", "id,smiles\n" + "".join(f"{n},{one}\n" for n, one in enumerate(rows)))


def test_a_store_holds_what_a_pool_in_memory_holds(library: Path, tmp_path: Path) -> None:
    store, pool = _prepared(library, tmp_path), read_pool(library)
    places = np.arange(len(store))
    assert store.keys(places) == list(pool.keys)
    assert [store.string(place) for place in places] == list(pool.strings)
    assert [store.line(place)[1] for place in places] == pool.lines.tolist()
    found = [(one.line, one.value, one.reason) for _, one in store.rejected_rows()]
    assert found == [(one.line, one.value, one.reason) for one in pool.rejected]
    assert (store.rejected, store.duplicates, store.kind) == (3, pool.duplicates, "molecule")
    assert store.summary().splitlines()[-1] == pool.summary().splitlines()[-1]


@pytest.mark.parametrize("counts", [False, True])
def test_stored_fingerprints_are_those_that_are_computed(library: Path, tmp_path: Path, counts: bool) -> None:
    store = _prepared(library, tmp_path)
    computed = MorganFingerprint(counts=counts)(store.keys(np.arange(len(store))))
    for places in (np.arange(len(store)), np.array([7, 0, 3, 3]), np.array([2]), np.array([], dtype=np.int64)):
        stored = store.fingerprints(places, counts=counts)
        assert (stored != computed[places]).nnz == 0
        assert stored.shape == (len(places), 2048)


def test_formats_and_files_make_no_difference(library: Path, tmp_path: Path) -> None:
    wanted = _prepared(library, tmp_path).keys(np.arange(9))
    text = library.read_bytes()
    (tmp_path / "zipped.csv.gz").write_bytes(gzip.compress(text))
    table = pd.read_csv(library)
    table.to_parquet(tmp_path / "table.parquet")
    table.to_csv(tmp_path / "tabs.tsv", sep="\t", index=False)
    lines = text.decode().splitlines()
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, rows in enumerate((lines[1:5], lines[5:])):
        (parts / f"{number}.csv").write_text("\n".join([lines[0], *rows, ""]))
    for source in ("zipped.csv.gz", "table.parquet", "tabs.tsv", "parts", "parts/*.csv"):
        store = _prepared(tmp_path / source if source == "parts" else str(tmp_path / source), tmp_path)
        assert store.keys(np.arange(len(store))) == wanted, source
        assert store.rejected == 3, source
    store = _prepared([parts / "0.csv", parts / "1.csv"], tmp_path)
    assert store.line(5) == (str(parts / "1.csv"), 3)


def test_files_of_other_columns_are_refused_with_both_names(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.csv", "smiles\nCCO\n")
    second = _write(tmp_path / "b.csv", "structure,price\nCCN,3\n")
    with pytest.raises(InputError, match=r"b\.csv has no column 'smiles'.*'structure'.*a\.csv has 'smiles'"):
        _prepared([first, second], tmp_path)


def test_rows_that_cannot_be_read_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b'smiles,name\nCCO,a\nCCN\nC\xff,b\nCCCC,c\nCC"C,d\n"C"C,e\n\nCCF,f\nC1CC,g\n\n')
    store = _prepared(path, tmp_path)
    assert store.keys(np.arange(len(store))) == ["CCO", "CCCC", "CCF"]
    found = {one.line: one.reason for _, one in store.rejected_rows()}
    assert found[3] == "1 cells where the header has 2"
    assert found[4] == "not text in UTF-8"
    assert "quotation marks" in found[7]
    assert found[8] == "blank line"
    assert sorted(found) == [3, 4, 6, 7, 8, 10]
    with pytest.raises(InputError, match=r"6 unusable rows: line 3 .*C1CC.*SMILES.*; 1 blank or empty: correct them"):
        _prepared(path, tmp_path, strict=True)


def test_other_bad_files_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"smiles\n" + b"CCO\nCCN\n" * 3_000)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    for source, said in (
        (tmp_path / "nothing.csv", "there is no file"),
        (cut, "is cut off and can be read up to line"),
        (_write(tmp_path / "one.sdf", ""), "sdf file, which cannot be read in blocks"),
        (_write(tmp_path / "names.csv", "smiles\n50-00-0\n64-17-5\n"), "no usable molecule"),
        (_write(tmp_path / "empty.csv", ""), "no header"),
        (_write(tmp_path / "fake.parquet", "PAR"), "not a readable parquet file"),
        ([], "no file of candidates"),
    ):
        with pytest.raises(InputError, match=said):
            _prepared(source, tmp_path)


def test_what_was_made_is_not_made_again(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(path: str, *rest: Any) -> Any:
        made.append(Path(path).name)
        return make_shard(path, *rest)

    monkeypatch.setattr(pool_makers, "make_shard", counted)
    store = _prepared(library, tmp_path)
    keys, count = store.keys(np.arange(len(store))), len(made)
    assert count == 5
    assert len(_prepared(library, tmp_path)) == len(store)
    assert len(made) == count
    (store.folder / "index.bin").unlink()
    (store.folder / "shard-000003.bin").unlink()
    told: list[Preparation] = []
    again = _prepared(library, tmp_path, progress=told.append)
    assert made[count:] == ["shard-000003.bin"]
    assert told[-1].made < told[-1].rows == 14
    assert again.keys(np.arange(len(again))) == keys


@pytest.mark.parametrize("damage", ["flipped", "cut", "header"])
def test_a_damaged_shard_is_found_and_made_again(
    library: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = _prepared(library, tmp_path)
    keys = store.keys(np.arange(len(store)))
    path = store.folder / "shard-000001.bin"
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-1]
    else:
        data[-70 if damage == "flipped" else 40] ^= 1
    path.write_bytes(data)
    again = _prepared(library, tmp_path)
    assert "made again" in caplog.text
    assert again.keys(np.arange(len(again))) == keys
    read_arrays(path)


@pytest.mark.slow
def test_a_preparation_that_was_killed_is_finished(tmp_path: Path) -> None:
    path = _write(tmp_path / "many.txt", "".join(f"string {number}\n" for number in range(20_000)))
    script = (
        "from seqopt.datasets import prepare_pool\n"
        f"prepare_pool({str(path)!r}, kind='text', folder={str(tmp_path / 'store')!r}, workers=1, rows=20)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    ended = time.monotonic() + 60
    while not list(tmp_path.glob("store/*/shard-*.bin")) and time.monotonic() < ended:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {one: one.stat().st_mtime_ns for one in tmp_path.glob("store/*/shard-*.bin")}
    assert 1 <= len(before) < 1_000
    told: list[Preparation] = []
    store = prepare_pool(path, kind="text", folder=tmp_path / "store", workers=1, rows=20, progress=told.append)
    assert all(one.stat().st_mtime_ns == written for one, written in before.items())
    assert told[-1].made == 20_000 - 20 * len(before)
    assert store.keys(np.arange(len(store))) == path.read_text().splitlines()


def test_a_hash_that_two_keys_share_does_not_merge_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.datasets import pool_shards

    monkeypatch.setattr(pool_shards, "key_hashes", lambda keys: np.full(len(keys), 7, dtype=np.uint64))
    store = _prepared(_write(tmp_path / "list.txt", "b\na\nb\nc\na\n"), tmp_path, kind="text")
    assert store.keys(np.arange(len(store))) == ["b", "a", "c"]
    assert [store.find(key, 7) for key in "abcd"] == [1, 0, 2, None]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = _write(
            tmp_path / f"{count}.txt", "\n".join(f"a string of some length, number {n}" for n in range(count))
        )
        tracemalloc.start()
        try:
            store = prepare_pool(path, kind="text", folder=tmp_path / "store", workers=1, rows=1_000)
            assert len(store) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(2_000), peak(20_000)
    # A list of these strings is 90 bytes for each; the index takes 40 while it is made.
    assert large - small < 60 * 18_000


def test_arrays_are_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "arrays.bin"
    write_arrays(path, {"a": np.arange(5.0), "none": np.empty((0, 3)), "b": np.eye(2, dtype=np.uint8)}, {"x": [1]})
    found = read_arrays(path)
    assert found.facts == {"x": [1]}
    assert found.arrays["a"].tolist() == [0, 1, 2, 3, 4]
    assert found.arrays["none"].shape == (0, 3)
    assert found.arrays["b"].dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        found.arrays["a"][0] = 1
    path.write_bytes(b"something else")
    with pytest.raises(DamagedFileError):
        read_arrays(path)


def test_identifiers_are_found_and_only_they_and_prices_are_kept(library: Path, tmp_path: Path) -> None:
    store, pool = _prepared(library, tmp_path), read_pool(library)
    assert (store.id_column, store.price_column, pool.id_column) == ("id", None, "id")
    assert [store.identifier(place) for place in range(len(store))] == list(pool.identifiers or ())
    assert [store.called(one) for one in pool.identifiers or ()] == list(range(len(store)))
    # Of a duplicate, the first row counts, and what was rejected is called nothing.
    assert [store.called(one) for one in ("8", "9", "", "C")] == [None] * 4
    table = pd.read_csv(library, keep_default_na=False).assign(price=lambda one: one["id"] * 2, note="x")
    table.to_parquet(tmp_path / "table.parquet")
    other = _prepared(tmp_path / "table.parquet", tmp_path, price_column="price")
    assert other.cells(3) == {"id": "3", "price": "6"}
    lines = [f"{one}\tname {number}" for number, one in enumerate(MOLECULES)]
    listed = _prepared(_write(tmp_path / "list.smi", "\n".join(lines)), tmp_path)
    assert (listed.id_column, listed.identifier(2), listed.called("name 4")) == ("name", "name 2", 4)


@pytest.mark.slow
def test_an_identifier_of_two_candidates_finds_neither(tmp_path: Path) -> None:
    rows = [f"A{number},{'C' * (number + 1)}" for number in range(1_200)]
    path = _write(tmp_path / "many.csv", "id,smiles\n" + "\n".join([*rows, "A7,CCO", ",CCN"]))
    store = _prepared(path, tmp_path, rows=500, fingerprints=False)
    assert store.id_column == "id"
    assert store.called("A8") == 8
    with pytest.raises(InputError, match=r"'A7' in the column 'id' is what 2 different candidates are called.*'CCO'"):
        store.called("A7")
    assert store.identifier(len(store) - 1) is None


def test_a_column_that_does_not_tell_candidates_apart_identifies_nothing(tmp_path: Path) -> None:
    path = _write(tmp_path / "same.csv", "id,name,smiles\n1,a,CCO\n1,b,CCN\n")
    assert _prepared(path, tmp_path).id_column == "name"
    assert _prepared(path, tmp_path, id_column="id").id_column == "id"
    other = _write(tmp_path / "other.csv", "name,smiles\na,CCC\n")
    assert _prepared([path, other], tmp_path).id_column is None
    # A column that is named is taken; a file that lacks it is asked for another one.
    store = _prepared([path, other], tmp_path, id_column="id")
    assert [store.identifier(place) for place in range(3)] == ["1", "1", "a"]
    with pytest.raises(InputError, match=r"same\.csv has no column of identifiers 'code'; its columns are 'id'"):
        _prepared([path, other], tmp_path, id_column="code")


def _called(store: PoolStore) -> dict[str, str | None]:
    return {store.string(place): store.identifier(place) for place in range(len(store))}


@pytest.mark.parametrize("explicit", [False, True])
def test_identifiers_are_kept_where_there_are_some_and_the_others_are_named(tmp_path: Path, explicit: bool) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    _write(folder / "a.csv", "id,smiles\nA1,CCO\nA2,CCN\nA3,CCC\nA4,OCC\n")
    _write(folder / "b.csv", "ID,smiles\nB1,CCO\nA2,CCF\n,CCS\nB4,CCCC\n")
    _write(folder / "c.smi", "CCCO C1\nCCCN C2\n")
    _write(folder / "d.csv", "smiles\nCCCF\nCCCS\n")
    _write(folder / "e.csv", "code,smiles\nE1,CCCCO\nE2,CCCCN\n")
    store = _prepared(folder, tmp_path, **({"id_column": "id"} if explicit else {}))
    wanted = {"CCO": "A1", "CCN": "A2", "CCC": "A3", "CCF": "A2", "CCS": None, "CCCC": "B4", "CCCO": "C1", "CCCN": "C2"}
    assert _called(store) == wanted | {"CCCF": None, "CCCS": None, "CCCCO": "E1", "CCCCN": "E2"}
    assert store.line(store.called("C2") or 0) == (str(folder / "c.smi"), 2)
    assert [store.called(one) for one in ("A1", "B1", "A4")] == [0, None, None]
    with pytest.raises(InputError, match=r"'A2' in the column 'id' is what 2 different"):
        store.called("A2")
    assert store.summary().splitlines()[1:] == [
        f"identifiers are those of the column 'id', but in {folder}/e.csv (column 'code')",
        f"{folder}/d.csv has no column of identifiers such as 'id': its candidates have none",
        f"1 candidate has no identifier: 'CCS' ({folder}/b.csv, line 4)",
        "1 identifier is that of several candidates, which are recorded by their strings: "
        f"'A2' of 'CCN' ({folder}/a.csv, line 3) and 'CCF' ({folder}/b.csv, line 3)",
        "2 duplicates of earlier rows left out; the first identifier of each is kept",
    ]
    # What a campaign keeps of the pool finds the same store.
    again = from_config(described(StoredPool(store)))
    assert isinstance(again, StoredPool)
    assert again.store.folder == store.folder


def test_identifiers_of_many_candidates_are_counted_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    called = [f"n{number}" if number > 9 else "" for number in rng.integers(0, 150, 200)]
    rows = [f"{one},{number:x}z\n" for number, one in enumerate(called)]
    path = _write(tmp_path / "many.csv", "id,text\n" + "".join(rows))
    shared = [one for one in dict.fromkeys(called) if one and called.count(one) > 1]
    first, empty = called.index(shared[0]), called.count("")
    second = called.index(shared[0], first + 1)
    for block in (1, 2, 7, 1_000):
        monkeypatch.setattr(pool_store, "BLOCK", block)
        store = _prepared(path, tmp_path, rows=30, kind="text", id_column="id")
        said = store.summary()
        assert f"{empty} candidates have no identifier: '{called.index(''):x}z'" in said
        assert f"{len(shared)} identifiers are those of several candidates" in said
        assert said.endswith(f"{shared[0]!r} of '{first:x}z' (line {first + 2}) and '{second:x}z' (line {second + 2})")


def test_numbers_that_begin_anew_in_each_file_identify_nothing_and_that_is_said(tmp_path: Path) -> None:
    paths = [
        _write(tmp_path / f"{name}.csv", "id,smiles\n" + "".join(f"{row},{'C' * row}{name}\n" for row in (1, 2, 3)))
        for name in "NO"
    ]
    store = _prepared(paths, tmp_path)
    assert store.id_column is None
    assert f"'1' is that of 'CN' ({paths[0]}, line 2) and of 'CO' ({paths[1]}, line 2)" in store.summary()
    # An older store without identifiers is found as it is.
    assert _prepared(paths, tmp_path, id_column="").folder == store.folder


def test_what_a_folder_holds_besides_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    (folder / "more").mkdir(parents=True)
    for name in ("book.xlsx", "notes.md", "old.zip", ".hidden", "more/b.csv", "x1", "x2"):
        _write(folder / name, "smiles\nCCN\n")
    with pytest.raises(InputError, match=r"holds no \.csv.*, but book\.xlsx \(save it as \.csv\)"):
        _prepared(folder, tmp_path)
    _write(folder / "a.csv", "smiles\nCCO\n")
    assert _prepared(folder, tmp_path).summary().splitlines()[1:] == [
        f"{folder}: 6 of what is in the folder are not read: book.xlsx (save it as .csv), more (a folder: the pattern "
        f"'{folder}/**/*.csv' reads the files in it, too), old.zip (an archive: unpack it), notes.md, x1 and 1 more"
    ]
    assert len(_prepared(f"{folder}/**/*.csv", tmp_path)) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_text_in_utf_16_is_read(tmp_path: Path, encoding: str, end: str) -> None:
    data = "id,smiles\nä,CCO\nö,C1CC\nü,CCN\n".encode(encoding)
    path = tmp_path / f"wide{end}"
    path.write_bytes(gzip.compress(data) if end.endswith(".gz") else data)
    store = _prepared(path, tmp_path)
    assert _called(store) == {"CCO": "ä", "CCN": "ü"}
    assert [one.line for _, one in store.rejected_rows()] == [3]


def test_a_damaged_file_is_called_damaged_and_not_its_columns(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.csv", "smiles\nCCO\n")
    text = "smiles\n" + "".join(f"{'C' * (number % 90 + 1)}{number % 7}\n" for number in range(20_000))
    whole = gzip.compress(text.encode())
    table = tmp_path / "table.parquet"
    pd.DataFrame({"smiles": ["CCO", "CCN"]}).to_parquet(table)
    parquet = table.read_bytes()
    for name, data, said in (
        ("cut.csv.gz", whole[:-40], "is cut off and can be read up to line "),
        ("short.csv.gz", whole[:30], "is cut off and has not one line that can be read"),
        ("sum.csv.gz", whole[:-8] + b"\0" * 8, "is damaged and can be read up to line 20,001 (CRC"),
        ("text.csv.gz", text.encode(), "is not compressed by gzip, or damaged"),
        ("half.parquet", parquet[: len(parquet) // 2], "is cut off, and nothing of a parquet file can be read without"),
        ("hole.parquet", parquet[:4] + b"\xff" * 40 + parquet[44:], "is damaged, and its first rows cannot be read"),
        ("half.csv", text.encode("utf-16")[:-1], "is text in UTF-16 that is cut off or damaged"),
        ("nul.csv", text.replace("C", "\0", 1).encode(), "holds NUL bytes"),
        ("book.csv", b"PK\x03\x04" + bytes(300), "is an Excel workbook or another zip archive"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError) as caught:
            _prepared([first, path], tmp_path, kind="text")
        message = str(caught.value)
        assert f"{path} {said}" in message, message
        assert "rename the column" not in message
        path.unlink()


def test_how_far_a_cut_file_can_be_read_is_exact(tmp_path: Path) -> None:
    text = "smiles\n" + "".join(f"{number:x}\n" for number in range(30_000))
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(text.encode())[:-5_000])
    unpacked = zlib.decompressobj(31).decompress(path.read_bytes())
    with pytest.raises(InputError, match=f"can be read up to line {unpacked.count(10):,} "):
        _prepared(path, tmp_path, kind="text", rows=1_000)


def _contents(store: PoolStore) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(store.folder.iterdir())}


def test_an_index_that_is_sorted_in_parts_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 4)) for _ in range(700)]
    text = "name,sequence\n" + "".join(f"n{number},{one}\n" for number, one in enumerate(strings))
    path = _write(tmp_path / "genes.csv", text)
    whole = _prepared(path, tmp_path, rows=50, id_column="name")
    monkeypatch.setattr(pool_index, "PART", 20)
    monkeypatch.setattr(pool_index, "BLOCK", 7)
    parts = _prepared(path, tmp_path / "again", rows=50, id_column="name")
    assert _contents(parts) == _contents(whole)
    first = list(dict.fromkeys(strings))
    assert parts.keys(np.arange(len(parts))) == first
    assert parts.duplicates == 700 - len(first)
    assert (np.diff(parts.sorted_hashes.astype(object)) > 0).all()
    assert (parts.hashes(parts.in_order_of_hashes().astype(np.int64)) == parts.sorted_hashes).all()
    assert all(parts.called(f"n{strings.index(one)}") == place for place, one in enumerate(first))
    assert not list(parts.folder.glob(".*"))


def test_an_index_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 200_000
    path = _write(tmp_path / "names.txt", "".join(f"{number:x}\n" for number in range(rows)))
    store = _prepared(path, tmp_path, kind="text", rows=rows // 20)
    facts = {**store.facts, "id_column": None}
    monkeypatch.setattr(pool_index, "PART", rows // 16)
    monkeypatch.setattr(pool_index, "BLOCK", rows // 16)
    tracemalloc.start()
    pool_index.write_index(tmp_path / "index.bin", store._shards, facts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read_arrays(tmp_path / "index.bin").arrays["rows"].tolist() == list(range(rows))
    # Sorted at once it takes more than 30 bytes for each row.
    assert peak < 10 * rows


def test_another_executor_makes_the_same_store(library: Path, tmp_path: Path) -> None:
    alone = _prepared(library, tmp_path)
    with ThreadPoolExecutor(2) as executor:
        store = _prepared(library, tmp_path / "again", executor=executor, workers=2)
    assert _contents(store) == _contents(alone)


class _Losing(ThreadPoolExecutor):
    """Loses every second task."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.count = getattr(self, "count", 0) + 1
        return super().submit(self._lose if self.count % 2 else fn, *args, **kwargs)

    def _lose(self, *_: Any) -> None:
        raise ConnectionError("the worker is gone")


def test_shards_that_an_executor_loses_are_made_here(
    library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alone = _prepared(library, tmp_path)
    with _Losing(2) as executor:
        store = _prepared(library, tmp_path / "again", executor=executor, workers=2)
    assert _contents(store) == _contents(alone)
    assert "a shard is made in this process: its worker did not make it (the worker is gone)" in caplog.text
