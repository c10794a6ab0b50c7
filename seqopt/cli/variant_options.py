"""Options on variants, which several commands take: a parent with a few mutations, a template, degenerate codons."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.spaces import Space

VARIANTS = "Variants, in place of a list of candidates"

SUFFIXES = (".fasta", ".fa", ".faa", ".fna")
"""Endings of files of sequences."""

_FILE = re.compile(r"[^\[\](){}?#\n]*\.[A-Za-z]{1,8}")
"""What may have been meant as the name of a file."""

ParentSequence = Annotated[
    str | None,
    typer.Option(
        "--parent",
        metavar="SEQUENCE|FASTA",
        help="The wild type, or another parent. With --mutations, --positions or --library its variants are searched. "
        "With a list of candidates it gives them names such as S121E, and they may be written so.",
        rich_help_panel=VARIANTS,
    ),
]
Mutations = Annotated[
    int | None,
    typer.Option(
        "--mutations",
        help="Most positions at which a variant differs from the parent.",
        rich_help_panel=VARIANTS,
        min=1,
    ),
]
Positions = Annotated[
    str | None,
    typer.Option(
        "--positions",
        metavar="12,45-60",
        help="Positions of the parent that may change, counted from 1. Default: all.",
        rich_help_panel=VARIANTS,
    ),
]
Letters = Annotated[
    str | None,
    typer.Option(
        "--letters",
        help="What positions may change to, and x stands for in a template. Default: the 20 amino acids, or 4 bases.",
        rich_help_panel=VARIANTS,
    ),
]
TemplateText = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="TEMPLATE|FILE",
        help="Variants of a template: letters are fixed, [AST] is one of these, x any, x{5-12} five to twelve of any, "
        "W? optional, (GGGGS){1-3} a repeated group. With --parent and --mutations, if all have one length, it says "
        "what each position may change to.",
        rich_help_panel=VARIANTS,
    ),
]
LibraryCodons = Annotated[
    str | None,
    typer.Option(
        "--library",
        metavar="NNK,...",
        help="Degenerate codons at the --positions of the --parent (or alone): one for all, or one for each. Random "
        "variants are drawn as they occur in such a library.",
        rich_help_panel=VARIANTS,
    ),
]


@dataclass(frozen=True)
class VariantOptions:
    """What these options say."""

    parent: str | None = None
    mutations: int | None = None
    positions: str | None = None
    letters: str | None = None
    template: str | None = None
    library: str | None = None

    @property
    def are_searched(self) -> bool:
        """Whether they say what to search, and not only what variants are called."""
        return self.named is not None

    @property
    def named(self) -> str | None:
        """The option that says what to search."""
        given = {
            "--template": self.template,
            "--library": self.library,
            "--mutations": self.mutations,
            "--positions": self.positions,
            "--letters": self.letters,
        }
        return next((name for name, value in given.items() if value is not None), None)

    def check(self, source: str | None) -> None:
        """Refuse what does not say what to search: a list of candidates or variants.

        Args:
            source: The list.

        Raises:
            InputError: For neither of them, or both.
        """
        if source is not None and self.are_searched:
            raise InputError(f"give a list of candidates, {source}, or variants, {self.named}: not both")
        if source is None and not self.are_searched:
            raise InputError(
                "say what to search: a file of candidates, or variants: of a parent (--parent with --mutations), of a "
                "--template, or of a --library; or products, of --reactions FILE with --reagents FOLDER"
            )

    def sequence(self) -> str | None:
        """The parent; read from its file where it is one.

        Raises:
            InputError: For a file that cannot be read, or that holds several sequences.
        """
        if self.parent is None:
            return None
        text = self.parent.strip()
        if not (os.path.isfile(text) or any(mark in text for mark in (".", "/", os.sep))):
            return text
        return sequence_in(text, "--parent", "parent")

    def space(self, kind: str | None) -> Space:
        """The space that is to be searched.

        Args:
            kind: What its strings are; `None` to recognise it of a parent, and else proteins.

        Raises:
            InputError: For options that do not go together, and as the spaces say.
        """
        from seqopt.spaces import CodonLibrary, ParentSpace, TemplateSpace

        parent = self.sequence()
        if self.library is not None:
            for option, idle in {
                "--template": self.template,
                "--mutations": self.mutations,
                "--letters": self.letters,
            }.items():
                if idle is not None:
                    raise InputError(
                        f"{option} does not go with --library, whose codons say what is made: leave it out"
                    )
            if kind not in (None, "protein"):
                raise InputError(f"--library makes proteins: leave --kind {kind} out")
            return CodonLibrary(self.library, parent=parent, positions=self.positions)
        kind = kind or _kind_of(parent)
        if self.template is None:
            if parent is None:
                raise InputError(f"{self.named} is of a parent: give --parent SEQUENCE|FASTA, too")
            return ParentSpace(parent, self.mutations, positions=self.positions, letters=self.letters, kind=kind)
        if self.positions is not None:
            raise InputError("--positions does not go with --template, which says what each position may be")
        try:
            space = TemplateSpace(_template(self.template), letters=self.letters, parent=parent, kind=kind)
        except InputError as error:
            if _FILE.fullmatch(self.template) and not os.path.isfile(self.template):
                raise InputError(f"{error}; there is no file {self.template} either") from error
            raise
        if self.mutations is None:
            return space
        if space.parent is None:
            raise InputError("--mutations counts from a parent: give --parent SEQUENCE|FASTA, too")
        if space.choices is None:
            raise InputError(
                "--mutations counts positions, and the template has strings of several lengths: leave it out, or give "
                "a template of one length"
            )
        own = {place: "".join(letters) for place, letters in enumerate(space.choices, start=1) if len(letters) > 1}
        return ParentSpace(space.parent, self.mutations, letters=own, kind=kind)


def sequence_in(text: str, option: str, what: str) -> str:
    """The sequence of a FASTA file that an option names.

    Args:
        text: The file.
        option: The option, for messages.
        what: What the sequence is, for messages.

    Raises:
        InputError: For a file of another ending, that cannot be read, or that holds several sequences.
    """
    from seqopt.datasets.tables import read_table

    if not is_fasta(text):
        raise InputError(f"{option} {text}: expected a sequence, or a FASTA file (.fasta, .fa, .faa, .fna)")
    found = [sequence for sequence in read_table(Path(text)).columns["string"] if sequence.strip()]
    if len(found) != 1:
        raise InputError(f"{option} {text}: the file holds {len(found)} sequences; expected one, the {what}")
    return found[0].strip()


def is_fasta(text: str) -> bool:
    """Whether a text is called as FASTA files are, compressed ones among them.

    Example:
        >>> is_fasta("wt.fasta"), is_fasta("WT.fa.gz"), is_fasta("CC(=O)[O-].[Na+]"), is_fasta("pool.csv.gz")
        (True, True, False, False)
    """
    return text.lower().removesuffix(".gz").endswith(SUFFIXES)


def _kind_of(parent: str | None) -> str:
    from seqopt.strings.identity import recognize_kind

    found = "protein" if parent is None else recognize_kind([parent])
    return found if found in ("dna", "rna") else "protein"


def _template(text: str) -> str:
    """A template that was typed, or that of a file."""
    try:
        path = Path(text)
        return path.read_text(encoding="utf-8") if path.is_file() else text
    except UnicodeDecodeError as error:
        raise InputError(f"--template {text}: the file is no text in UTF-8") from error
    except OSError:  # such as a name that is too long to be one
        return text
