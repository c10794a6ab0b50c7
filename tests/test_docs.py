"""What README, CONTRIBUTING and docs show, works: code, commands, links, figures, and the site built from them.

What fenced blocks may say is written in ``support/pages.py``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from io import StringIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pandas as pd
import pytest
from pages import ROOT, Block, blocks_of, run_blocks

from seqopt.cli import main
from seqopt.cli.app import command as all_commands

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
IMAGES = ROOT / "docs" / "img"
LANGUAGES = ("python", "bash", "csv", "cfg", "fasta", "text")
RUNNING = ("python", "bash")
CALL = re.compile(r"(?:^|\s|/)seqopt\s+(?=[a-z-])")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
TESTED_ELSEWHERE = ("twelve-weeks.md",)
"""Pages that a test of their own runs, and looks at what they do."""
RUN = [
    page
    for page in PAGES
    if page.name not in TESTED_ELSEWHERE and any(block.page == page and block.language in RUNNING for block in BLOCKS)
]


@cache
def options_of(words: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """Options of the command at the beginning of ``words``, and how many words name it."""
    command: click.Command = all_commands()
    used = 0
    while hasattr(command, "commands"):
        group: dict[str, click.Command] = command.commands
        if not words[used:] or words[used] not in group:
            # Named as a whole, as in "the commands of seqopt campaign".
            assert used or words[:1] in (("--version",), ("--help",)), f"no command {words}"
            break
        command, used = group[words[used]], used + 1
    if words[:1] == ("bench",):
        named = len(words) > 1 and words[1] != "NAME"
        return options_of_benchmark(words[1]) if named else frozenset({"--help"}), 2
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return frozenset(names | {"--help", "-h", "--version"}), used


@cache
def options_of_benchmark(name: str) -> frozenset[str]:
    """Options of a benchmark, from its help."""
    shown = StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit, match=r"^0$"):
        import_module(f"seqopt.bench.{name}").main(["--help"])
    return frozenset(re.findall(r"--[a-z][a-z-]*", shown.getvalue())) | {"--help"}


def check_call(text: str, location: str) -> None:
    """``text`` stands behind ``seqopt``: the command and all its options exist."""
    words = tuple(word for word in shlex.split(text, comments=True))
    options, used = options_of(words)
    for word in words[used:]:
        if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word):
            assert word.split("=")[0] in options, f"{location}: seqopt {' '.join(words[:used])} has no option {word}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_say_what_they_are(page: Path) -> None:
    for block in BLOCKS:
        if block.page != page:
            continue
        assert block.language in LANGUAGES, f"{block.location}: the block needs a language, one of {LANGUAGES}"
        if block.language == "text":
            assert not any(line.startswith(("seqopt ", "$ ")) for line in block.lines), f"{block.location}: use bash"
        if block.language == "bash" and block.reason is None:
            others = [line for line in block.shell if not line.startswith("seqopt ")]
            assert not others, f"{block.location}: {others} cannot be run here; say why: <!-- not run: the reason -->"


# What a newcomer reads first always runs; the other pages take minutes together.
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=() if page.name in ("README.md", "getting-started.md", "campaigns.md") else pytest.mark.slow,
        )
        for page in RUN
    ],
)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in run_blocks(blocks_of(page), tmp_path, monkeypatch):
        pass


def test_the_protein_pool_of_the_readme_is_searched_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^seqopt (search data/protein_variants.*)$", text, flags=re.MULTILINE)
    arguments = shlex.split(command.replace("data/", f"{ROOT}/data/"))
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--out", "out"]) == 0
    frame = pd.read_csv("out/evaluations.csv")
    known = pd.read_csv(ROOT / "data" / "protein_variants.csv").set_index("sequence")["score"]
    assert (frame["value"] == known[frame["string"]].to_numpy()).all()
    chosen, random = frame[frame["batch"] > 0]["value"].mean(), frame[frame["batch"] == 0]["value"].mean()
    assert chosen > random


LEFT_OUT = [block for block in BLOCKS if block.reason is not None]


@pytest.mark.parametrize("block", LEFT_OUT, ids=[f"{block.location}: {block.reason}" for block in LEFT_OUT])
def test_blocks_that_are_not_run_name_what_exists(block: Block) -> None:
    if block.language == "python":
        compile(block.text, block.location, "exec", dont_inherit=True)
        return
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    for line in block.shell:
        call = CALL.search(line)
        if call and "-m pytest" not in line:
            check_call(line[call.end() :], block.location)
        elif line.startswith("make "):
            assert shlex.split(line, comments=True)[1] in targets, f"{block.location}: the Makefile has no such target"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for call in re.findall(r"`seqopt ([a-z][^`]*)`", text):
        check_call(call, str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", text)):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_measured_numbers_stand_in_the_results() -> None:
    """What README and guides quote with a standard error is in the tables that the benchmarks wrote."""
    measured = {ROOT / "docs" / "results.md", ROOT / "docs" / "performance.md"}
    tables = "".join(path.read_text(encoding="utf-8") for path in measured)
    for page in set(PAGES) - measured:
        for number in re.findall(r"-?\d+\.\d+ ± \d+\.\d+", page.read_text(encoding="utf-8")):
            assert number in tables, f"{page.relative_to(ROOT)} quotes {number}"


@pytest.mark.parametrize("space", ["CandidateSet", "StringSpace", "CodonSpace", "GrammarSpace"])
def test_each_kind_of_space_takes_at_most_ten_lines(space: str) -> None:
    readme = [block for block in BLOCKS if block.page.name == "README.md" and block.language == "python"]
    shown = [block for block in readme if f"space = {space}(" in block.text and "seqopt.m" in block.text]
    assert shown
    assert min(len(block.lines) for block in shown) <= 10


def test_every_figure_is_shown_and_says_how_it_was_made() -> None:
    figures = {path.name for path in IMAGES.iterdir() if path.suffix in (".png", ".svg")}
    shown = {
        Path(target).name
        for page in PAGES
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if "img/" in target
    }
    rows = re.findall(r"^\| `([^`]+)` \| `seqopt ([^`]+)` \|", (IMAGES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert shown == figures
    assert {name for name, _ in rows} == figures
    for name, command in rows:
        check_call(command, f"docs/img/README.md, {name}")


class Links(HTMLParser):
    """Identifiers, links, and what a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {value for key in ("id", "name") if (value := given.get(key))}
        target = given.get("href") or given.get("src")
        if target is not None:
            (self.links if tag == "a" else self.loaded).append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The built site, and what was said while it was built."""
    folder = tmp_path_factory.mktemp("site")
    process = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return folder, process.stdout + process.stderr


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(site: tuple[Path, str]) -> None:
    assert "WARNING" not in site[1]
    assert "ERROR" not in site[1]


@pytest.mark.slow
def test_the_site_needs_no_other_host_and_its_links_hold(site: tuple[Path, str]) -> None:
    folder, _ = site
    pages: dict[Path, Links] = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    assert len(pages) > 30
    for path, page in pages.items():
        for target in (*page.links, *page.loaded):
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "mailto"):
                assert target in page.links, f"{path.name} loads {target}"
                continue
            if path.name == "404.html":
                continue  # written for a site at the top of a host
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert there.exists(), f"{path.relative_to(folder)}: {target}"
            if parts.fragment and there in pages:
                assert unquote(parts.fragment) in pages[there].names, f"{path.relative_to(folder)}: {target}"
    for style in folder.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?https?:|@import", style.read_text(encoding="utf-8")), style.name


@pytest.mark.slow
def test_formulas_are_drawn_without_scripts(site: tuple[Path, str]) -> None:
    text = (site[0] / "methods" / "kernels.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 10
    assert "$$" not in text


@pytest.mark.slow
def test_room_pages_show_their_public_names(site: tuple[Path, str]) -> None:
    """A name of ``__all__`` stands in the API reference."""
    rooms = sorted(path.stem for path in (ROOT / "docs" / "api").glob("*.md") if path.stem not in ("seqopt", "testing"))
    assert len(rooms) >= 18
    for room in rooms:
        text = (site[0] / "api" / f"{room}.html").read_text(encoding="utf-8")
        # A function that is called like its module stands under both.
        missing = [
            name
            for name in import_module(f"seqopt.{room}").__all__
            if not re.search(rf'id="seqopt\.{room}\.(?:{name}\.)?{name}"', text)
        ]
        assert not missing, (room, missing)


@pytest.mark.slow
def test_the_page_of_conformance_suites_shows_all_of_them(site: tuple[Path, str]) -> None:
    text = (site[0] / "api" / "testing.html").read_text(encoding="utf-8")
    found = [
        f"{path.stem}.{suite}"
        for path in (ROOT / "seqopt" / "testing").glob("*.py")
        for suite in re.findall(r"^class (\w+Conformance)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(found) >= 2
    assert [suite for suite in found if f'id="seqopt.testing.{suite}"' not in text] == []
