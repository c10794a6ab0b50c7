"""What MkDocs needs besides its configuration: formulas without scripts, and links that leave the documentation."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

REPOSITORY = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
DIRECTIVE = re.compile(r"^( *)\.\. math::(.*)$")
logger = logging.getLogger("mkdocs.hooks.site")


def formula(latex: str, display: str) -> str:
    """MathML of a formula; browsers draw it without fonts or scripts of ours."""
    # The converter sets the names of functions without a space behind them.
    spaced = re.sub(r"\\log(?=\s*(?:[\w\\]))(?!\s*\\left)", r"\\log\\,", " ".join(latex.split()))
    return convert(spaced, display=display)


class MathDirectives(Preprocessor):
    """Docstrings write formulas as Sphinx does, ``.. math::`` and ``:math:`x```; pages as ``$$`` and ``$``."""

    def run(self, lines: list[str]) -> list[str]:
        """Lines with the notation of pages."""
        found: list[str] = []
        rest = iter([*lines, ""])
        line = next(rest, None)
        while line is not None:
            match = DIRECTIVE.match(line)
            if match is None:
                found.append(re.sub(r":math:`([^`]+)`", r"$\1$", line))
                line = next(rest, None)
                continue
            indent, body = match[1], [match[2]]
            line = next(rest, None)
            while line is not None and (not line.strip() or line.startswith(indent + " ")):
                body.append(line)
                line = next(rest, None)
            found += ["", f"{indent}$$", *(indent + part.strip() for part in body if part.strip()), f"{indent}$$", ""]
        return found


class Doctests(Preprocessor):
    """Examples in docstrings, ``>>> ...`` up to the next empty line, are blocks of code."""

    def run(self, lines: list[str]) -> list[str]:
        """Lines with fences around the examples."""
        found: list[str] = []
        inside = fenced = False
        for line in lines:
            fenced ^= line.lstrip().startswith("```")
            if not inside and not fenced and line.lstrip().startswith(">>> "):
                indent = line[: len(line) - len(line.lstrip())]
                found += ["", f"{indent}```pycon"]
                inside = True
            elif inside and not line.strip():
                found += [f"{indent}```"]
                inside = False
            found.append(line)
        return [*found, f"{indent}```"] if inside else found


class DisplayMath(BlockProcessor):
    """A paragraph between ``$$`` and ``$$``."""

    def test(self, parent: Element, block: str) -> bool:
        """Whether a block is a formula."""
        return block.strip().startswith("$$") and block.strip().endswith("$$") and len(block.strip()) > 4

    def run(self, parent: Element, blocks: list[str]) -> None:
        """Put the formula in the tree."""
        paragraph = Element("p", {"class": "formula"})
        paragraph.text = self.parser.md.htmlStash.store(formula(blocks.pop(0).strip()[2:-2], "block"))
        parent.append(paragraph)


class InlineMath(InlineProcessor):
    """``$x$`` within a line; a dollar sign with a blank or a digit behind the closing one is a dollar sign."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802 (the base class's name)
        """The formula in the place of its text."""
        return self.md.htmlStash.store(formula(m[1], "inline")), m.start(0), m.end(0)


class NameLinks(InlineProcessor):
    """`seqopt.room.Name` in backticks leads to its place in the API reference."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802 (as above)
        """A reference that is plain code where there is no such place."""
        link = Element("autoref", {"identifier": m[1], "optional": ""})
        code = Element("code")
        code.text = self.md.htmlStash.store(m[1])
        link.append(code)
        return link, m.start(0), m.end(0)


class Site(Extension):
    """Formulas and references."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (as above)
        """Register the parts."""
        md.preprocessors.register(MathDirectives(md), "math-directives", 29)
        md.preprocessors.register(Doctests(md), "doctests", 28)
        md.parser.blockprocessors.register(DisplayMath(md.parser), "display-math", 95)
        md.inlinePatterns.register(NameLinks(r"(?<!`)`(seqopt(?:\.\w+)+)`(?!`)", md), "name-links", 195)
        md.inlinePatterns.register(
            InlineMath(r"(?<![\\$\w])\$(?![\s$])([^$]*?[^\s\\$])\$(?![\w$])", md), "inline-math", 185
        )


def on_config(config: Any) -> Any:
    """Add the extension."""
    config["markdown_extensions"].append(Site())
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files of the repository become their text: on the site there is nothing to lead to."""
    folder = (REPOSITORY / "docs" / page.file.src_uri).parent

    def text(match: re.Match[str]) -> str:
        target = (folder / match[2].split("#")[0]).resolve()
        if (REPOSITORY / "docs") in target.parents:
            return match[0]
        if not target.exists():
            logger.warning("%s: the link to %s leads nowhere", page.file.src_uri, match[2])
        return match[1]

    return LINK.sub(text, markdown)
