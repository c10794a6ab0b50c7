"""The cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.utils.cache import cache_dir, digest, read_cached, write_cached


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("SEQOPT_CACHE")
    assert "seqopt" in cache_dir().parts


def test_items_come_back_and_leave_nothing_else_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "new"))
    items = ["C", "", "é", " x "]
    assert read_cached("items.txt", 4) is None
    write_cached("items.txt", items)
    assert read_cached("items.txt", 4) == items
    assert read_cached("items.txt", 3) is None
    write_cached("items.txt", [])
    assert read_cached("items.txt", 0) == []
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["items.txt"]


def test_digests_tell_lists_apart() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"]) != digest(["a", "b", "c"])
