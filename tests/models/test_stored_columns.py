"""Covariances on disk: what is not exactly as it was written is computed again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seqopt.kernels import SubsequenceKernel
from seqopt.models import stored_columns
from seqopt.models.stored_columns import Rows, StoredColumns

WIDTH = 5
TRUTH = {key: np.random.default_rng(number).random(WIDTH).astype(np.float32) for number, key in enumerate("abcdef")}


class Counted:
    """Computes rows, and counts them."""

    def __init__(self, truth: dict[str, Rows] = TRUTH) -> None:
        self.truth = truth
        self.count = 0

    def of(self, keys: str) -> Callable[[list[int]], Rows]:
        def compute(indices: list[int]) -> Rows:
            self.count += len(indices)
            return np.stack([self.truth[keys[offset]] for offset in indices])

        return compute

    def read(self, store: StoredColumns, keys: str) -> int:
        """Ask for rows, which must be right; returns how many were computed."""
        before = self.count
        rows = store.rows("block", WIDTH, list(keys), self.of(keys))
        np.testing.assert_array_equal(rows, np.stack([self.truth[key] for key in keys]))
        return self.count - before


def test_rows_are_computed_once_in_any_order(tmp_path: Path) -> None:
    counted, folder = Counted(), tmp_path / "not" / "yet"
    assert counted.read(StoredColumns(folder), "abc") == 3
    assert counted.read(StoredColumns(folder), "cab") == 1  # the one that is compared
    assert counted.read(StoredColumns(folder), "ebda") == 1 + 2
    assert counted.read(StoredColumns(folder), "abcde") == 1


@pytest.mark.parametrize("offset", [0, 20, 60, 130, -1])
def test_damage_is_found_and_repaired(tmp_path: Path, offset: int) -> None:
    counted = Counted()
    for keys in ("ab", "cd"):
        counted.read(StoredColumns(tmp_path), keys)
    data = bytearray((tmp_path / "block").read_bytes())
    data[offset] ^= 1
    (tmp_path / "block").write_bytes(data)
    assert counted.read(StoredColumns(tmp_path), "abcd") >= 2
    assert counted.read(StoredColumns(tmp_path), "abcd") == 1
    assert (tmp_path / "block").stat().st_size <= len(data)


@pytest.mark.parametrize("lost", [1, 30, 90, 150])
def test_a_write_that_was_cut_short_costs_what_it_held(tmp_path: Path, lost: int) -> None:
    counted = Counted()
    for keys in ("ab", "cd"):
        counted.read(StoredColumns(tmp_path), keys)
    size = (tmp_path / "block").stat().st_size
    os.truncate(tmp_path / "block", size - lost)
    counted.read(StoredColumns(tmp_path), "abcd")
    assert counted.read(StoredColumns(tmp_path), "abcd") == 1
    assert size - 48 <= (tmp_path / "block").stat().st_size <= size  # written together, the rows share a header


def test_rows_of_another_kernel_or_width_are_not_used(tmp_path: Path) -> None:
    Counted().read(StoredColumns(tmp_path), "abc")
    other = Counted({key: row + 0.01 for key, row in TRUTH.items()})
    assert other.read(StoredColumns(tmp_path), "abc") == 1 + 3
    assert other.read(StoredColumns(tmp_path), "abc") == 1
    rows = StoredColumns(tmp_path).rows("block", 2, ["a"], lambda indices: np.ones((1, 2), dtype=np.float32))
    assert rows.tolist() == [[1, 1]]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    counted = Counted()
    for _ in range(2):
        assert counted.read(StoredColumns(tmp_path / "file" / "folder"), "abc") == 3


def test_kernels_and_pools_have_folders_of_their_own_and_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    kernel = SubsequenceKernel(order=3)
    stores = [stored_columns.stored_columns(kernel, "characters", ["a", "b"]) for _ in range(2)]
    assert stores[0].folder == stores[1].folder
    folders = {stores[0].folder}
    kernel.gap_decay = 0.123
    for chosen, encoder, keys in (
        (kernel, "characters", ["a", "b"]),
        (kernel, "smiles", ["a", "b"]),
        (kernel, "smiles", ["b", "a"]),
        (SubsequenceKernel(order=4), "characters", ["a", "b"]),
    ):
        folders.add(stored_columns.stored_columns(chosen, encoder, keys).folder)
    assert len(folders) == 5
    for age, folder in enumerate(sorted(folders)):
        (folder / "000000000").write_bytes(b"x" * 100)
        os.utime(folder, (1000 - age, 1000 - age))
    monkeypatch.setattr(stored_columns, "STORED", 250)
    latest = stored_columns.stored_columns(SubsequenceKernel(order=2), "characters", ["a"]).folder
    assert set(latest.parent.iterdir()) == {latest, *sorted(folders)[:2]}
