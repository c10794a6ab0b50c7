"""``seqopt fold``: the genes of a protein that fold most tightly, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqopt.cli.gene_options import Code, Constraints, GenBank, GeneFiles, GeneOptions, Rna, Start, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from seqopt.datasets import Protein
    from seqopt.datasets.genbank import Construct
    from seqopt.folding import ExactFolding
    from seqopt.objectives import MinimumFreeEnergy
    from seqopt.spaces import CodonSpace

WHAT, HOW = "What is wanted", "How it is computed"

MOST_SHOWN = 5
"""Genes that the terminal shows."""


def fold_command(
    protein: Annotated[
        str,
        typer.Argument(
            metavar="PROTEIN|FASTA",
            help="A protein in one-letter amino acids, or a FASTA file of one or several.",
        ),
    ],
    designs: Annotated[
        int,
        typer.Option(help="Genes: the best, and others close to it that differ much.", rich_help_panel=WHAT, min=1),
    ] = 10,
    within: Annotated[
        float,
        typer.Option(help="kcal/mol that a gene may be above the best.", rich_help_panel=WHAT, min=0.0),
    ] = 3.0,
    cai: Annotated[
        str | None,
        typer.Option(
            help="Weigh codons by the codon adaptation index of an organism: e_coli, yeast, human, ...",
            metavar="ORGANISM",
            rich_help_panel=WHAT,
        ),
    ] = None,
    codon_weight: Annotated[
        float | None,
        typer.Option(
            help="Weight of log CAI, in kcal/mol for each codon: energy - WEIGHT x codons x log CAI is minimised. "
            "Default with --cai: 1.",
            metavar="WEIGHT",
            rich_help_panel=WHAT,
            min=0.0,
        ),
    ] = None,
    code: Code = None,
    start: Start = None,
    stop: Stop = None,
    constraint: Constraints = None,
    rna: Rna = False,
    genbank: GenBank = False,
    temperature: Annotated[float, typer.Option(help="In degrees Celsius.", rich_help_panel=WHAT)] = 37.0,
    refine: Annotated[
        bool,
        typer.Option(
            "--refine",
            help="Improve each gene codon by codon under mfe, the energy with dangling ends, for which there is no "
            "exact optimum.",
            rich_help_panel=HOW,
        ),
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            help="Keep only so many of the bases at which a helix that ends at one can begin: no longer exact, and a "
            "saving, if any, for very long proteins only.",
            rich_help_panel=HOW,
            min=1,
        ),
    ] = None,
    span: Annotated[
        int | None,
        typer.Option(help="Largest number of bases from one of a pair to the other.", rich_help_panel=HOW, min=5),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draws of genes close to the best.", rich_help_panel=HOW, min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="Default: one for each core.", rich_help_panel=HOW, min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results. Default: runs/PROTEIN-fold.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Find the gene of a protein that folds most tightly: no other has less energy.

    All genes and all structures are searched at once by dynamic programming, in the energy model of ViennaRNA without
    dangling ends. Constraints that leave codons out (fixed stretches, no rare codons) are kept to. Energies are checked
    by ViennaRNA, and given with its default dangling ends, too.

    **Examples**

    The ten genes, and the best of energy and codon adaptation to human cells together:

        seqopt fold TIKENIFGVS

        seqopt fold protein.fasta --cai human --codon-weight 2 --start ATG --stop TAA

    Where a search for another objective begins:

        seqopt fold TIKENIFGVS --designs 20 --out folds

        seqopt genes TIKENIFGVS --objective mfe --known folds/genes.csv

    The folder of results holds genes.fasta and genes.csv, the best gene first, and with --genbank genes.gb; with
    several proteins one folder each, and best.fasta and best.csv.
    """
    del debug  # read by seqopt.cli.main
    import numpy as np

    from seqopt.cli.genes import folder_names, proteins_of, warn_of_protein
    from seqopt.cli.running import check_free, console, default_folder, show_notes
    from seqopt.errors import InputError
    from seqopt.objectives import CodonAdaptationIndex
    from seqopt.report.exports import BEST_CSV, BEST_FASTA, GENES_CSV, GENES_FASTA, GENES_GENBANK
    from seqopt.strings.genetic_codes import genetic_code

    show_notes()
    if codon_weight is not None and cai is None:
        raise InputError("--codon-weight weighs the codons of an organism: say of which with --cai")
    adaptation = None
    if cai is not None:
        adaptation = CodonAdaptationIndex(cai, code=dict(genetic_code(code or "standard").amino_acids))
    options = GeneOptions(code=code, start=start, stop=stop, constraints=constraint or ())
    proteins = proteins_of(protein)
    several = len(proteins) > 1
    label = Path(protein).name.split(".")[0] if proteins[0].location else proteins[0].name
    folder = out if out is not None else default_folder(label, "fold")
    folders = [folder / name for name in folder_names(proteins)] if several else [folder]
    from seqopt.folding import ExactFolding

    spaces = [_space(one, options) for one in proteins]
    foldings = [
        ExactFolding(
            space,
            adaptation=adaptation,
            codon_weight=(1.0 if codon_weight is None else codon_weight) if adaptation is not None else 0.0,
            temperature=temperature,
            span=span,
            beam=beam,
            threads=threads,
        )
        for space in spaces
    ]
    for place in folders:
        check_free(place, (GENES_FASTA, GENES_CSV, GENES_GENBANK), False)
    if several:
        check_free(folder, (BEST_FASTA, BEST_CSV), False)
    rng = np.random.default_rng(seed)
    best = []
    for one, space, folding, place in zip(proteins, spaces, foldings, folders, strict=True):
        warn_of_protein(one)
        table = _designs(one, folding, designs, within, rng, refined=refine, rna=rna)
        _write(place, table, GeneFiles(rna, True).construct(one.name, space) if genbank else None)
        best.append((one.name, place.name, table.iloc[0]))
        console.print(f"\nThey are in {place / GENES_FASTA} and {GENES_CSV} there.", markup=False)
    if several:
        _write_best(folder, best)
        console.print(f"\nThe best of each are in {folder / BEST_FASTA} and {BEST_CSV} there.", markup=False)


def _space(protein: Protein, options: GeneOptions) -> CodonSpace:
    from seqopt.errors import InputError

    try:
        return options.space(protein.sequence)
    except InputError as error:
        if not protein.location:
            raise
        raise InputError(f"{protein.location}: {error}") from error


def _designs(
    protein: Protein,
    folding: ExactFolding,
    designs: int,
    within: float,
    rng: np.random.Generator,
    *,
    refined: bool,
    rna: bool,
) -> pd.DataFrame:
    """Compute, check and show the genes of one protein."""
    import time

    import pandas as pd
    from rich.markup import escape

    from seqopt.cli.exact_genes import shown_gene
    from seqopt.cli.running import console, note, print_best
    from seqopt.objectives import MinimumFreeEnergy
    from seqopt.report.exports import TO_RNA, gc_fraction

    started = time.perf_counter()
    console.print(
        f"[bold]{escape(protein.name)}[/bold]: {len(protein.sequence):,} residues, "
        f"{folding.memory / 2**20:,.0f} MiB of tables"
    )
    with console.status("preparing to fold (compiled on first use, which takes half a minute)") as status:

        def show(done: int, total: int) -> None:
            status.update(f"folding all genes: {done:,} of {total:,} bases")

        folding.progress = show
        best = folding.optimum
    exact = "no gene has less" if folding.beam is None else "kept by the beam: others may have less"
    console.print(f"least score {folding.least_score:,.4g} kcal/mol in {time.perf_counter() - started:.1f} s; {exact}")
    found = [best] if designs == 1 else folding.near_optimal(designs, within, rng)
    if len(found) < designs:
        note(f"{len(found)} of {designs} genes were found within {within:g} kcal/mol: --within allows more")
    genes = [one.gene for one in found]
    usual = MinimumFreeEnergy(temperature=folding.temperature, span=folding.span)
    if refined:
        genes = list(dict.fromkeys(_refined(folding, genes, usual)))
    structures, energies = map(list, zip(*folding.folded(genes), strict=True))
    scores = [
        energy - folding.codon_weight * folding.log_adaptiveness(gene)
        for gene, energy in zip(genes, energies, strict=True)
    ]
    columns = {
        "mfe": usual(genes),
        "energy": energies,
        "score": [round(score, 4) for score in scores],
        **({} if folding.adaptation is None else {"cai": folding.adaptation(genes).round(4)}),
        "gc": [round(gc_fraction(gene), 4) for gene in genes],
        "gene": genes,
        "dot_bracket": structures,
    }
    table = pd.DataFrame(columns)
    first = "mfe" if refined else "score"
    table = table.sort_values([first, "gene"], kind="stable").reset_index(drop=True)
    if rna:
        table["gene"] = [gene.translate(TO_RNA) for gene in table["gene"]]
    word = "_".join(protein.name.split()) or "gene"
    table.insert(0, "name", [f"{word}_{rank}" for rank in range(1, len(table) + 1)])
    table.insert(0, "rank", range(1, len(table) + 1))
    shown = ["mfe", "energy", *(["score", "cai"] if folding.adaptation is not None else []), "gc", "gene"]
    print_best(
        f"Best of {len(table)} genes, kcal/mol: mfe as ViennaRNA's default has it, energy without dangling ends",
        {name: "left" if name == "gene" else "right" for name in shown},
        [
            tuple(shown_gene(row[name]) if name == "gene" else f"{row[name]:,.4g}" for name in shown)
            for row in table.head(MOST_SHOWN).to_dict("records")
        ],
    )
    return table


def _refined(folding: ExactFolding, genes: list[str], usual: MinimumFreeEnergy) -> list[str]:
    import numpy as np

    from seqopt.cli.running import console
    from seqopt.folding import refine

    def score(several: Sequence[str]) -> npt.NDArray[np.float64]:
        logs = np.array([folding.log_adaptiveness(gene) for gene in several])
        return usual(several) - folding.codon_weight * logs

    with console.status("refining genes under mfe") as status:
        found = []
        for number, gene in enumerate(genes, start=1):
            status.update(f"refining genes under mfe: {number} of {len(genes)}")
            found.append(refine(gene, folding.choices, score)[0])
    return found


def _heading(row: pd.Series) -> str:
    return f"{row['name']} rank={row['rank']} mfe={row['mfe']:g} kcal/mol energy={row['energy']:g} kcal/mol"


def _write(folder: Path, table: pd.DataFrame, construct: Construct | None) -> None:
    from seqopt.datasets.genbank import genbank
    from seqopt.report.exports import GENES_CSV, GENES_FASTA, GENES_GENBANK, fasta
    from seqopt.utils.files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for _, row in table.iterrows()]
    write_atomically(folder / GENES_FASTA, fasta((_heading(row), row["gene"]) for row in rows))
    if construct is not None:
        records = [genbank(row["name"], _heading(row), row["gene"], construct) for row in rows]
        write_atomically(folder / GENES_GENBANK, "".join(records))
    write_atomically(folder / GENES_CSV, table.to_csv(index=False))


def _write_best(folder: Path, best: Sequence[tuple[str, str, Any]]) -> None:
    import pandas as pd

    from seqopt.report.exports import BEST_CSV, BEST_FASTA, fasta
    from seqopt.utils.files import write_atomically

    write_atomically(folder / BEST_FASTA, fasta((_heading(row), row["gene"]) for _, _, row in best))
    rows = [{"protein": name, "folder": place, **row.drop(["rank", "name"])} for name, place, row in best]
    write_atomically(folder / BEST_CSV, pd.DataFrame(rows).to_csv(index=False))
