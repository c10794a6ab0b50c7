"""Commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find good molecules, genes, proteins and other strings with few expensive evaluations.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from seqopt import __version__

        typer.echo(f"seqopt {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


WHAT, HOW, RUN = "What to search", "How to search", "The run"


@app.command(no_args_is_help=True)
def search(
    pool: Annotated[
        str,
        typer.Argument(
            metavar="POOL",
            help="The candidates you could make or buy: a .csv, .tsv, .smi, .txt, .fasta or .parquet file, or the name "
            "of a built-in set (zinc250k: a quarter of a million drug-like molecules).",
        ),
    ],
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            "-o",
            help="What makes a candidate good: a built-in score (penalized_logp, logp, qed, sa_score, "
            "molecular_weight, similarity:SMILES), a column of your file (column:NAME, to replay known results), or "
            "your own Python function (module:function or file.py:function, from a list of strings to a list of "
            "numbers).",
            rich_help_panel=WHAT,
        ),
    ],
    column: Annotated[
        str | None,
        typer.Option(help="Column that holds the strings. Recognised if not given.", rich_help_panel=WHAT),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(help="molecule, protein, dna, rna, text, or auto to recognise it.", rich_help_panel=WHAT),
    ] = "auto",
    maximize: Annotated[
        bool | None,
        typer.Option(
            "--maximize/--minimize",
            help="Whether large or small values are good. Built-in scores know; otherwise large is.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    transform: Annotated[
        str,
        typer.Option(
            help="log10 for positive values that span decades, such as IC50 in nM; results stay in your units.",
            rich_help_panel=WHAT,
        ),
    ] = "none",
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Molecules only: treat salts and charge states of one parent as the same candidate.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop at the first unreadable line, instead of listing such lines in rejected.csv.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    initial: Annotated[
        int, typer.Option(help="Random candidates scored first, to learn from.", rich_help_panel=HOW, min=2)
    ] = 20,
    batch: Annotated[int, typer.Option(help="Candidates per batch, scored together.", rich_help_panel=HOW, min=1)] = 10,
    budget: Annotated[
        int,
        typer.Option(help="Candidates scored after the initial ones, in batches.", rich_help_panel=HOW, min=0),
    ] = 100,
    acquisition: Annotated[
        str,
        typer.Option(
            help="How a batch is chosen: gibbon (information about the best value), logei (expected improvement), ucb, "
            "thompson, mean (greedy), or random (no model, for comparison).",
            rich_help_panel=HOW,
        ),
    ] = "gibbon",
    candidates: Annotated[
        int | None,
        typer.Option(
            help="Look at this many random candidates per batch instead of the whole pool.",
            rich_help_panel=HOW,
        ),
    ] = None,
    tokenizer: Annotated[
        str,
        typer.Option(
            help="Symbols the model compares: smiles-split (Cl and Br are one symbol; the default for molecules), "
            "smiles (so are bracket atoms such as [nH]), characters, or auto.",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.", rich_help_panel=HOW, min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results. Default: runs/POOL-OBJECTIVE.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run: give the same command again, with --resume. A larger --budget extends "
            "a finished run.",
            rich_help_panel=RUN,
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Give one evaluation up after this many seconds and record it as failed.",
            rich_help_panel=RUN,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Evaluations at the same time.", rich_help_panel=RUN, min=1)] = 1,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.", rich_help_panel=RUN)
    ] = False,
) -> None:
    """Search a list of candidates for the best ones, scoring only a few.

    A few random candidates are scored first. A Gaussian process then learns how the score depends on the text of a
    candidate (its SMILES, its sequence), predicts every candidate of the pool, and picks the next batch; after each
    batch it learns again.

    **Examples**

    A built-in score on a built-in set:

        seqopt search zinc250k --objective penalized_logp

    Your own file and score, smallest is best:

        seqopt search library.csv --objective scoring.py:dock --minimize --batch 10 --budget 100

    How well would it have done on results you have already?

        seqopt search assay.csv --objective column:IC50_nM --minimize --transform log10

    The folder of results holds evaluations.csv (every candidate scored, with what was predicted), report.html (the
    best ones drawn), search.png (a plot), summary.json and, if lines could not be read, rejected.csv. Ctrl-C stops at
    any time; nothing that was scored is lost.
    """
    del debug  # read by seqopt.cli.main
    from seqopt.cli.search import run_search

    run_search(
        pool,
        objective,
        column=column,
        kind=None if kind == "auto" else kind,
        direction=None if maximize is None else ("maximize" if maximize else "minimize"),
        transform=None if transform == "none" else transform,
        standardize=standardize,
        strict=strict,
        initial=initial,
        batch=batch,
        budget=budget,
        acquisition=acquisition,
        candidates=candidates,
        tokenizer=None if tokenizer == "auto" else tokenizer,
        seed=seed,
        out=out,
        resume=resume,
        timeout=timeout,
        workers=workers,
    )


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="zinc, samplers, batch, tokens or kernel; NAME --help shows its options."),
    ] = "",
) -> None:
    """Repeat a published experiment, or measure speed."""
    from importlib import import_module

    known = {name: f"seqopt.bench.{name}" for name in ("zinc", "samplers", "batch", "tokens", "kernel")}
    if name not in known:
        from seqopt.errors import InputError

        raise InputError(f"unknown benchmark {name!r}: choose {', '.join(known)}")
    import_module(known[name]).main(context.args)
