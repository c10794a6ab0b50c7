"""Files are written whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seqopt.utils.files import write_atomically


def test_text_and_bytes_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for contents, expected in (
        ("caf\u00e9\r\n", "caf\u00e9\r\n".encode()),
        (b"\xff\x00", b"\xff\x00"),
        ("\udce9", b"\\udce9"),
    ):
        write_atomically(path, contents)
        assert path.read_bytes() == expected
    assert [other.name for other in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [other.name for other in tmp_path.iterdir()] == ["a.txt"]


def test_two_that_write_at_once_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    flush = os.fsync

    def overtaken(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", flush)
        write_atomically(path, "second")
        assert path.read_text() == "second"

    monkeypatch.setattr(os, "fsync", overtaken)
    write_atomically(path, "the first")
    assert path.read_text() == "the first"


def test_all_is_on_the_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    steps: list[tuple[int, bool]] = []
    flush = os.fsync

    def noted(descriptor: int) -> None:
        steps.append((os.fstat(descriptor).st_size, path.exists()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_atomically(path, b"x" * 5000)
    assert steps == [(5000, False)]
    assert path.stat().st_size == 5000
