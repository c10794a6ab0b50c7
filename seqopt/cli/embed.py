"""``seqopt embed``: a map of strings by the kernel of a surrogate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

WHAT, HOW = "What to map", "How to map it"


def embed_command(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|POOL]",
            help="Strings: a .csv, .tsv, .xlsx, .sdf, .smi, .txt, .fasta or .parquet file, or the name of a built-in "
            "set such as zinc250k. May be left out with --run.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="The folder of a run, or a campaign (its file or its name): its strings and values come first.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Column of the strings, if not recognised.", rich_help_panel=WHAT)
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            help="Column of measured values: they colour the map, and the kernel is tuned to them. Cells may be empty.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="molecule, protein, dna, rna, text, or auto to recognise it.", rich_help_panel=WHAT)
    ] = "auto",
    transform: Annotated[
        str,
        typer.Option(help="log10 for positive values that span decades, such as IC50 in nM.", rich_help_panel=WHAT),
    ] = "none",
    minimize: Annotated[
        bool,
        typer.Option(
            "--minimize",
            help="Low values are good: good ones are bright. A run or campaign says so itself.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            help="Map at most so many strings: measured ones first, then random ones.", rich_help_panel=WHAT, min=3
        ),
    ] = 4000,
    project: Annotated[
        Path | None,
        typer.Option(
            help="Another file, whose strings are put into the map that the others make.", rich_help_panel=WHAT
        ),
    ] = None,
    surrogate: Annotated[
        str,
        typer.Option(
            help="Whose kernel: auto (that of the run; without one minmax for molecules, else ssk), ssk, ssk-bayes, "
            "ngrams, one-hot, hamming, blosum62, tanimoto, minmax, fragprints, ssk+tanimoto, ssk+minmax, "
            "ssk+fragprints, codons, or vae:FILE.",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    tokenizer: Annotated[
        str,
        typer.Option(
            help="Symbols that a sub-sequence or n-gram kernel compares: smiles-split, smiles, characters, or auto.",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    components: Annotated[
        int, typer.Option(help="Components in map.csv; the picture shows the first two.", rich_help_panel=HOW, min=2)
    ] = 2,
    learn_from: Annotated[
        int,
        typer.Option(help="Tune the kernel to at most so many measured strings.", rich_help_panel=HOW, min=2),
    ] = 500,
    neighbours: Annotated[
        int, typer.Option(help="Nearest neighbours that the smoothness is judged by.", rich_help_panel=HOW, min=1)
    ] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same map.", rich_help_panel=HOW, min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for map.csv, map.png, map.svg, map.html and map.json, or the path of the .csv."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Map strings: similar ones, by the kernel of a surrogate, lie close together.

    Kernel principal component analysis finds the two directions in which the strings differ most, as the model sees
    them. With values, the kernel is tuned to them first, and it is said how smooth they are in the map: where
    neighbours have similar values, the model can learn from few of them.

    **Examples**

    Molecules with a measured activity, and those you could buy in the same map:

        seqopt embed assay.csv --column smiles --values activity --project catalogue.csv

    The same for another model:

        seqopt embed assay.csv --values activity --surrogate ssk

    A search, with a sample of its pool behind it:

        seqopt embed zinc250k --run runs/demo

    Open map.html to point at molecules and see them.
    """
    del debug  # read by seqopt.cli.main
    from rich.markup import escape

    from seqopt.cli.running import console, default_folder, note, show_notes
    from seqopt.errors import InputError

    show_notes()
    if source is None and run is None:
        raise InputError("nothing to map: give a file, the name of a built-in set, or --run FOLDER")
    if transform not in ("none", "log10"):
        raise InputError(f"--transform is {transform!r}; expected none or log10")
    name = _name_of(Path(source or str(run)))
    started = time.perf_counter()
    with console.status("loading the model") as status:
        from seqopt.models.registry import check_surrogate
        from seqopt.report.embedding import embed, map_files
        from seqopt.report.map_points import gather_points

        check_surrogate(surrogate)
        files = map_files(default_folder(name, "map") if out is None else out)
        status.update("reading strings")
        points = gather_points(
            source,
            run,
            column=column,
            values_column=values,
            kind=None if kind == "auto" else kind,
            log10=transform == "log10",
            minimize=minimize,
            sample=sample,
            project=project,
            seed=seed,
            progress=lambda done, total: status.update(f"reading molecules: {done:,} of {total:,}"),
        )
        status.update(f"mapping {len(points.mapped):,} strings")
        embedding = embed(
            points,
            surrogate,
            components=components,
            tokenizer=None if tokenizer == "auto" else tokenizer,
            learn_from=learn_from,
            neighbours=neighbours,
            seed=seed,
        )
    for remark in (*points.notes, *embedding.notes):
        note(remark)
    console.print("\n".join(escape(line) for line in embedding.summary()))
    with console.status("drawing"):
        written = embedding.write(files, title=f"{name}: {embedding.map.surrogate}")
    console.print(
        f"[bold]{escape(str(written[0].parent))}[/bold]: {', '.join(path.name for path in written)} "
        f"({time.perf_counter() - started:.0f} s)"
    )


def _name_of(path: Path) -> str:
    """The name of a file without its endings; a number after a dot is none."""
    root, _, ending = path.name.removesuffix(".gz").rpartition(".")
    return root if root and ending.isalpha() else path.name
