"""The fenced blocks of a page of documentation, and how they are run.

A fenced block says what it is:

- ``python`` runs. The blocks of a page run one after the other, in one namespace and one folder.
- ``bash`` runs where every line is a ``seqopt`` command.
- A block with a title, ````` ```csv title="library.csv" `````, is a file that later blocks find in the folder.
- ``<!-- not run: the reason -->`` above a block says why it is not run. What it calls must exist all the same.
- ``<!-- refused: some words -->`` above a block says that each of its commands is refused, with these words.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest

from seqopt.cli import main

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)(.*)$")
REMARK = re.compile(r"^<!-- (not run|refused): (.+) -->$")


@dataclass
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    reason: str | None
    refused: str | None
    heading: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def location(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def shell(self) -> list[str]:
        """Lines of a shell block, continued ones joined, without comments."""
        joined = self.text.replace("\\\n", " ").splitlines()
        return [line for line in joined if shlex.split(line, comments=True)]


def blocks_of(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    above, heading, block = "", "", None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if block is None and fence:
            title = re.search(r'title="([^"]+)"', fence[2])
            remark = REMARK.match(above)
            said = {remark[1]: remark[2]} if remark else {}
            reason, refused = said.get("not run"), said.get("refused")
            block = Block(page, number, fence[1], title[1] if title else None, reason, refused, heading)
        elif block is not None and line == "```":
            yield block
            above, block = "", None
        elif block is not None:
            block.lines.append(line)
        elif line.strip():
            above = line.strip()
            heading = above.removeprefix("## ") if above.startswith("## ") else heading
    assert block is None, f"{page}: the block of line {block.line if block else 0} does not end"


def run_blocks(blocks: Iterable[Block], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Block, str]]:
    """Run blocks in a folder, one at a time; after each, what its commands printed, errors included."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("MPLBACKEND", "agg")
    known = set(sys.modules)
    for shared in ("data", "grammars"):
        Path(shared).symlink_to(ROOT / shared)
    namespace: dict[str, object] = {"__name__": "__main__"}
    try:
        for block in blocks:
            said = StringIO()
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python" and block.reason is None:
                exec(compile("\n" * block.line + block.text, block.page.name, "exec", dont_inherit=True), namespace)
            elif block.language == "bash" and block.reason is None:
                for line in block.shell:
                    said.write(_run(line, block, monkeypatch))
            yield block, said.getvalue()
    finally:
        for name in set(sys.modules) - known:
            # Files of a page must not be found by the next.
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def _run(line: str, block: Block, monkeypatch: pytest.MonkeyPatch) -> str:
    words = shlex.split(line, comments=True)
    monkeypatch.setattr(sys, "argv", words)
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(words[1:])
    text = said.getvalue()
    assert status == (0 if block.refused is None else 2), f"{block.location}: {line}\n{text}"
    if block.refused is not None:
        assert block.refused in " ".join(text.split()), f"{block.location}: {line}\n{text}"
    return text
