"""Features of a user's own model, from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.encoding import FeatureEncoder, feature_file
from seqopt.encoding.feature_file import FileFeatures, MappedRows, read_features
from seqopt.errors import InputError

STRINGS = ["ACD", "ACE", "AKE", "WWW"]
VALUES = np.array([[1.0, 7.0, 0.5], [2.0, 7.0, -0.5], [4.0, 7.0, 0.0], [9.0, 7.0, 2.0]])
TABLE = pd.DataFrame({"sequence": STRINGS, "a": VALUES[:, 0], "b": VALUES[:, 1], "c": VALUES[:, 2]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "f.npy", VALUES.astype(np.float32))
    np.savez(tmp_path / "f.npz", names=np.array(STRINGS), embedding=VALUES)
    TABLE.to_parquet(tmp_path / "f.parquet")
    TABLE.to_csv(tmp_path / "f.csv", index=False)
    TABLE.to_csv(tmp_path / "f.tsv", index=False, sep="\t")
    TABLE.to_csv(tmp_path / "f.csv.gz", index=False)
    return tmp_path


@pytest.mark.parametrize("name", ["f.npy", "f.npz", "f.parquet", "f.csv", "f.tsv", "f.csv.gz"])
def test_all_forms_hold_the_same(folder: Path, name: str) -> None:
    found = read_features(folder / name)
    kept = VALUES[:, [0, 2]]  # the constant column tells nothing
    np.testing.assert_allclose(found.rows(np.arange(4)), (kept - kept.mean(0)) / kept.std(0), rtol=1e-6)
    np.testing.assert_allclose(found.rows(np.array([2, 0]), standardized=False), kept[[2, 0]], rtol=1e-6)
    assert found.strings == (None if name == "f.npy" else tuple(STRINGS))
    assert "1 of 3 columns" in found.remark()
    assert not found.non_negative


def test_a_matrix_is_mapped_and_not_read(folder: Path) -> None:
    assert isinstance(read_features(folder / "f.npy").values, np.memmap)


def test_blocks_are_looked_through_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_features(folder / "f.csv")
    monkeypatch.setattr(feature_file, "BLOCK_ROWS", 1)
    parts = read_features(folder / "f.csv")
    np.testing.assert_allclose(parts.spread, whole.spread)
    np.testing.assert_array_equal(parts.kept, whole.kept)


def test_large_means_do_not_hide_small_spreads(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", 1e9 + np.array([[0.0], [1.0], [2.0]]))
    assert read_features(tmp_path / "f.npy").spread[0] == pytest.approx(np.std([0.0, 1.0, 2.0]))


def nan(folder: Path) -> Path:
    values = VALUES.copy()
    values[2, 1] = np.nan
    np.savez(folder / "bad.npz", names=np.array(STRINGS), embedding=values)
    return folder / "bad.npz"


class Code:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("was-run",)


def objects(folder: Path) -> Path:
    np.save(folder / "bad.npy", np.array([[Code()]], dtype=object), allow_pickle=True)
    return folder / "bad.npy"


def object_strings(folder: Path) -> Path:
    np.savez(folder / "bad.npz", names=np.array(STRINGS, dtype=object), embedding=VALUES)
    return folder / "bad.npz"


def disagreeing(folder: Path) -> Path:
    pd.concat([TABLE, TABLE.iloc[[1]].assign(c=5.0)]).to_csv(folder / "bad.csv", index=False)
    return folder / "bad.csv"


def text(folder: Path) -> Path:
    TABLE.astype({"a": object}).assign(a=["1", "2", "three", "4"]).to_csv(folder / "bad.csv", index=False)
    return folder / "bad.csv"


def empty_cell(folder: Path) -> Path:
    TABLE.assign(a=[1.0, np.nan, 3.0, 4.0]).to_csv(folder / "bad.csv", index=False)
    return folder / "bad.csv"


def saved(name: str, array: np.ndarray) -> Callable[[Path], Path]:
    def save(folder: Path) -> Path:
        np.save(folder / name, array)
        return folder / name

    return save


def damaged(folder: Path) -> Path:
    (folder / "bad.npy").write_bytes((folder / "f.npy").read_bytes()[:90])
    return folder / "bad.npy"


def other(folder: Path) -> Path:
    (folder / "bad.pkl").write_bytes(b"")
    return folder / "bad.pkl"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (nan, r"has nan in row 3 \('AKE'\), column 2: expected finite numbers"),
        (objects, "holds Python objects, which are not read because that would run code"),
        (object_strings, "the array 'names' of .* holds Python objects"),
        (disagreeing, r"has 'ACE' in the rows 2 and 5 with other features \(column 3: -0.5 and 5\): keep one"),
        (text, "the column 'a' holds 'three' in row 3, of 'AKE': expected a number"),
        (empty_cell, "the column 'a' holds '' in row 2, of 'ACE'"),
        (saved("bad.npy", np.zeros((4, 3, 2))), r"an array of shape \(4, 3, 2\): .*average over residues first"),
        (saved("bad.npy", np.zeros(4)), r"an array of shape \(4,\)"),
        (saved("bad.npy", np.ones((4, 2))), "all 2 columns of .* are constant"),
        (saved("bad.npy", np.array([["a"]])), "expected real numbers"),
        (damaged, "cannot be read"),
        (other, "cannot tell from its name how to read bad.pkl"),
        (lambda folder: folder / "none.npy", "there is no file"),
    ],
)
def test_bad_files_are_refused(
    folder: Path, make: Callable[[Path], Path], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    path = make(folder)
    with pytest.raises(InputError, match=match):
        read_features(path)
    assert not (folder / "was-run").exists()


def test_equal_repeats_are_no_harm(folder: Path) -> None:
    pd.concat([TABLE, TABLE.iloc[[1]]]).to_csv(folder / "twice.csv", index=False)
    assert len(read_features(folder / "twice.csv")) == 5


def test_a_column_of_strings_can_be_named(folder: Path) -> None:
    TABLE.assign(name=list("wxyz")).to_csv(folder / "two.csv", index=False)
    with pytest.raises(InputError, match="has 2 columns of text"):
        read_features(folder / "two.csv")
    with pytest.raises(InputError, match="the column 'name' holds 'w' in row 1"):
        read_features(folder / "two.csv", column="sequence")
    with pytest.raises(InputError, match="has no column 'seq'"):
        read_features(folder / "f.csv", column="seq")
    assert read_features(folder / "f.npz", column="names").strings == tuple(STRINGS)


def test_missing_strings_are_counted_and_the_first_is_named(folder: Path) -> None:
    found = FileFeatures(read_features(folder / "f.csv"), {string: row for row, string in enumerate(STRINGS)})
    with pytest.raises(InputError, match=r"f\.csv has no features of 2 strings, the first of them 'GGG'"):
        found(["ACD", "GGG", "AAA"])
    assert list(found.unsupported(["ACD", "GGG"])) == [1]


def test_features_of_a_large_pool_stay_in_their_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    featurizer = FileFeatures(read_features(folder / "f.npy"), {string: row for row, string in enumerate(STRINGS)})
    held = FeatureEncoder(featurizer).encode(STRINGS)
    monkeypatch.setattr(feature_file, "HELD_BYTES", 2 * 2 * 8)
    mapped = FeatureEncoder(featurizer).encode(STRINGS)
    assert isinstance(mapped, MappedRows)
    assert (len(mapped), mapped.width) == (4, 2)
    np.testing.assert_array_equal(mapped.values, held.values)
    np.testing.assert_array_equal(mapped.take([3, 0]).values, held.values[[3, 0]])
    assert isinstance(mapped.take(slice(0, 3)), MappedRows)
    np.testing.assert_array_equal(mapped.take(slice(1, 4)).take([0]).values, held.values[[1]])
