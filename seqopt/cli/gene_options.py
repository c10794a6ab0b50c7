"""Options on the genes of a protein, which `seqopt genes` and `seqopt campaign new` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from seqopt.datasets.genbank import Construct
    from seqopt.spaces import CodonSpace

GENES = "Which genes"

Code = Annotated[
    str | None,
    typer.Option(
        "--code",
        help="Genetic code, by its name or its number at NCBI. Default: standard.",
        rich_help_panel=GENES,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="Start codon, such as ATG: that of the first residue if it is M, otherwise put before it.",
        rich_help_panel=GENES,
    ),
]
Stop = Annotated[str | None, typer.Option(help="Stop codon, such as TAA, put at the end.", rich_help_panel=GENES)]
Avoid = Annotated[
    list[str] | None,
    typer.Option(
        help="A motif that no gene may hold: a restriction enzyme, such as EcoRI, or IUPAC letters (N is any base). "
        "May be given several times.",
        metavar="MOTIF|ENZYME",
        rich_help_panel=GENES,
    ),
]
BothStrands = Annotated[
    bool,
    typer.Option(
        "--both-strands/--one-strand",
        help="Whether motifs are avoided on both strands, or on the strand of the gene only.",
        rich_help_panel=GENES,
    ),
]
GC = Annotated[
    tuple[float, float] | None,
    typer.Option(
        help="Lowest and highest fraction of G and C in a gene, such as 0.4 0.6.",
        metavar="LOW HIGH",
        rich_help_panel=GENES,
    ),
]
Constraints = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        help="A further constraint, such as 'gc-window 50 0.3 0.7', 'longest-run 6', 'tandem 3 5', 'unique-kmers 15', "
        "'hairpins 12 60', 'end-melting 20 50 65', 'no-rare e_coli 0.1', 'fixed 2 CAYCAY', 'signal poly-a', 'avoid "
        "BsaI', or 'synthesis', a set of them. May be given several times.",
        metavar="WORDS",
        rich_help_panel=GENES,
    ),
]
Upstream = Annotated[
    str | None,
    typer.Option(
        help="Bases before the gene: sites across the junction count. They are no part of the gene.",
        metavar="BASES",
        rich_help_panel=GENES,
    ),
]
Downstream = Annotated[str | None, typer.Option(help="Bases behind the gene.", metavar="BASES", rich_help_panel=GENES)]

Rna = Annotated[bool, typer.Option("--rna", help="Write genes as RNA, with U for T.", rich_help_panel=GENES)]
GenBank = Annotated[
    bool,
    typer.Option(
        "--genbank",
        help="Write genes.gb, too: each gene with what stands before and behind it, as GenBank files have it.",
        rich_help_panel=GENES,
    ),
]


def _list_tables(wanted: bool) -> None:
    if wanted:
        from seqopt.strings.codon_usage import listed_tables

        typer.echo("\n".join(listed_tables()))
        raise typer.Exit


ListTables = Annotated[
    bool,
    typer.Option(
        "--list-tables",
        callback=_list_tables,
        is_eager=True,
        help="List the tables of codon usage that there are, and stop.",
        rich_help_panel=GENES,
    ),
]


@dataclass(frozen=True)
class GeneFiles:
    """How the genes that are found are written.

    Attributes:
        rna: With U for T.
        genbank: Also as a GenBank file.
    """

    rna: bool = False
    genbank: bool = False

    def write(self, folder: Path, name: str, space: CodonSpace) -> pd.DataFrame:
        """Write the genes of a run; see `seqopt.report.exports.write_genes`."""
        from seqopt.report.exports import write_genes

        return write_genes(folder, name, rna=self.rna, construct=self.construct(name, space) if self.genbank else None)

    def construct(self, name: str, space: CodonSpace) -> Construct:
        """What the genes of a space stand in."""
        from seqopt.datasets.genbank import Construct

        return Construct(
            space.upstream,
            space.downstream,
            space.code,
            name,
            start=space.start is not None,
            stop=space.stop is not None,
            rna=self.rna,
        )


@dataclass(frozen=True)
class GeneOptions:
    """What these options say."""

    code: str | None = None
    start: str | None = None
    stop: str | None = None
    avoid: Sequence[str] = ()
    both_strands: bool = True
    gc: tuple[float, float] | None = None
    constraints: Sequence[str] = ()
    upstream: str | None = None
    downstream: str | None = None

    @property
    def given(self) -> dict[str, bool]:
        """Which options were given, by name, for commands where they may be idle."""
        return {
            "--code": self.code is not None,
            "--start": self.start is not None,
            "--stop": self.stop is not None,
            "--avoid": bool(self.avoid),
            "--one-strand": not self.both_strands,
            "--gc": self.gc is not None,
            "--constraint": bool(self.constraints),
            "--upstream": self.upstream is not None,
            "--downstream": self.downstream is not None,
        }

    def space(self, protein: str, **further: Any) -> CodonSpace:
        """The genes of a protein.

        Args:
            protein: One-letter amino acids; a stop symbol at the end is left out.
            **further: Further arguments of `seqopt.spaces.CodonSpace`.

        Raises:
            InputError: As `seqopt.spaces.CodonSpace` says, and for a constraint that cannot be read.
        """
        from seqopt.spaces import CodonSpace
        from seqopt.spaces.specifications import parse_constraint

        letters = protein.strip()
        return CodonSpace(
            letters[:-1] if len(letters) > 1 and letters.endswith("*") else letters,
            "standard" if self.code is None else self.code,
            start=self.start,
            stop=self.stop,
            forbidden=self.avoid,
            gc=self.gc,
            both_strands=self.both_strands,
            constraints=[one for text in self.constraints for one in parse_constraint(text)],
            upstream=self.upstream or "",
            downstream=self.downstream or "",
            **further,
        )
