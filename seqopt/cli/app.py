"""Commands and their options."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqopt.cli.benchmarks import BENCHMARKS
from seqopt.cli.campaign import app as campaign_app
from seqopt.cli.choosing import (
    AlertNames,
    DesignName,
    Exclude,
    Forbid,
    ForbidPattern,
    Include,
    Lead,
    LeadDistance,
    LeadScale,
    MaxSimilarity,
    PerScaffold,
    Properties,
    Radius,
    Require,
    RequirePattern,
    Where,
    given_filters,
    given_lead,
    given_limits,
)
from seqopt.cli.embed import embed_command
from seqopt.cli.fold import fold_command
from seqopt.cli.gene_options import (
    GC,
    Avoid,
    BothStrands,
    Code,
    Constraints,
    Downstream,
    GenBank,
    GeneFiles,
    GeneOptions,
    ListTables,
    Rna,
    Start,
    Stop,
    Upstream,
)
from seqopt.cli.informed import FeaturesColumn, FeaturesFile, FeaturesKernel, Informed, PriorMeanName
from seqopt.cli.large_options import Keep, OnDisk, PrefilterName, Scheduler, StrategyName
from seqopt.cli.predict import predict_command
from seqopt.cli.reagent_options import Reactions, Reagents, chosen_acquisition, refuse_pool_options
from seqopt.cli.report import report_command
from seqopt.cli.run_options import RUN, Asynchronous, ChunkSize, Isolate, StopAfterFailures, Timeout, Workers
from seqopt.cli.train_vae import train_vae_command
from seqopt.cli.variant_options import (
    Letters,
    LibraryCodons,
    Mutations,
    ParentSequence,
    Positions,
    TemplateText,
    VariantOptions,
)

if TYPE_CHECKING:
    from seqopt.evaluation import Direction

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


WHAT, HOW = "What to search", "How to search"
FIDELITIES = "Cheap and expensive measurements"

Initial = Annotated[int, typer.Option(help="How many are scored first, to learn from.", rich_help_panel=HOW, min=2)]
Batch = Annotated[int, typer.Option(help="How many are chosen and scored together.", rich_help_panel=HOW, min=1)]
Budget = Annotated[
    int, typer.Option(help="How many are scored after the initial ones, in batches.", rich_help_panel=HOW, min=0)
]
SurrogateName = Annotated[
    str,
    typer.Option(
        help="The model of the score: auto (ngrams+counts for lists of molecules, sites for large ones of proteins "
        "that vary at few positions, ssk for other large ones, else mixture), ssk (sub-sequence kernel), ssk-bayes, "
        "ngrams, motifs, mixture (of several, by what predicts); for strings of one length one-hot, hamming, sites, "
        "for such proteins blosum62; for molecules tanimoto, minmax, counts, fragprints (fingerprints), ngrams+minmax, "
        "ngrams+counts, ssk+tanimoto, ssk+minmax, ssk+fragprints; for genes codons and, of one length, helices; "
        "vae:FILE for a model of seqopt train-vae; features for --features alone.",
        rich_help_panel=HOW,
    ),
]
AcquisitionName = Annotated[
    str,
    typer.Option(
        help="How a batch is chosen: gibbon (information about the best value), mes and mumbo (the same, exact for "
        "single strings: without and with noise), logei (expected improvement), scorebo (the optimum and the model at "
        "once), dpp-ei, ucb, thompson, mean (greedy), or random (no model, for comparison). What teaches the model "
        "most, whatever is best: sal, bald, bqbc (these need --surrogate ssk-bayes or mixture), qbmgp, balm.",
        rich_help_panel=HOW,
    ),
]
Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Results that are known already: a table with a column of strings and one of values, which is called as "
        "the objective, or value. They teach the model, take the place of random candidates, and cost no budget.",
        rich_help_panel=WHAT,
    ),
]
KnownComma = Annotated[
    bool, typer.Option("--decimal-comma", help="Numbers in --known are written 6,5.", rich_help_panel=WHAT)
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same run.", rich_help_panel=HOW, min=0)]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue an interrupted run: give the same command again, with --resume. A larger --budget extends "
        "a finished run.",
        rich_help_panel=RUN,
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="With --resume: score again first what only failed so far, on top of the budget.",
        rich_help_panel=RUN,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.", rich_help_panel=RUN)]


def known_comma(decimal_comma: bool, known: Path | None) -> bool:
    """Whether known results have decimal commas, where nothing else may have them.

    Raises:
        InputError: If that is said, and nothing is known.
    """
    if decimal_comma and known is None:
        from seqopt.errors import InputError

        raise InputError("--decimal-comma goes with --known FILE: leave it out")
    return decimal_comma


def _direction(maximize: bool | None) -> Direction | None:
    return None if maximize is None else ("maximize" if maximize else "minimize")


@app.command(no_args_is_help=True)
def search(
    context: typer.Context,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            "-o",
            help="What makes a candidate good: a built-in score (penalized_logp, logp, qed, sa_score, "
            "molecular_weight, similarity:SMILES), a column of your file (column:NAME, to replay known results), or "
            "a Python function (module:function or file.py:function, from a list of strings to a list of "
            "numbers, or from a string to a number if annotated so: def f(smiles: str)).",
            rich_help_panel=WHAT,
        ),
    ],
    pool: Annotated[
        str | None,
        typer.Argument(
            metavar="POOL",
            help="The candidates you could make or buy: a .csv, .tsv, .xlsx, .sdf, .smi, .txt, .fasta or .parquet file "
            "(FILE#SHEET for one of several sheets), or the name of a built-in set (zinc250k: a quarter of a million "
            "drug-like molecules). Without it, products of --reactions, or variants: --parent, --template, --library.",
        ),
    ] = None,
    reactions: Reactions = None,
    reagents: Reagents = None,
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
            help="Whether large or small values are good. Default: what is usual for a built-in score, or large.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    transform: Annotated[
        str,
        typer.Option(
            help="What the model sees of the values: auto, learned in each step (often the values themselves); log10 "
            "for positive ones that span decades, such as IC50 in nM; yeo-johnson, winsorised, ranks; none. Results "
            "stay in your units.",
            rich_help_panel=WHAT,
        ),
    ] = "auto",
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Molecules only: treat salts and charge states of one parent as the same candidate; drop atom maps.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    attachment_points: Annotated[
        bool,
        typer.Option(
            "--attachment-points",
            help="Molecules only: keep those with attachment points (*), which are rejected otherwise.",
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
    decimal_comma: Annotated[
        bool,
        typer.Option(
            "--decimal-comma", help="Numbers in the file, and in --known, are written 6,5.", rich_help_panel=WHAT
        ),
    ] = False,
    initial: Initial = 20,
    batch: Batch = 10,
    budget: Annotated[
        int | None,
        typer.Option(
            help="How many are scored after the initial ones, in batches. Default: 100; with --budget-cost what that "
            "pays for.",
            rich_help_panel=HOW,
            show_default=False,
            min=0,
        ),
    ] = None,
    fidelity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT:COST",
            help="A cheaper measurement of the same thing, and what one costs: column:docking:0.01 or "
            "scoring.py:dock:0.01. The search chooses which candidate is measured in which way. May be given several "
            "times.",
            rich_help_panel=FIDELITIES,
        ),
    ] = None,
    target_cost: Annotated[
        float,
        typer.Option(help="With --fidelity: what one score of the objective costs.", rich_help_panel=FIDELITIES),
    ] = 1.0,
    budget_cost: Annotated[
        float | None,
        typer.Option(
            help="With --fidelity: what all scores may cost together, the initial ones included. It is never exceeded.",
            rich_help_panel=FIDELITIES,
        ),
    ] = None,
    surrogate: SurrogateName = "auto",
    acquisition: AcquisitionName = "gibbon",
    candidates: Annotated[
        int | None,
        typer.Option(
            help="Look at this many random candidates per batch instead of the whole pool.",
            rich_help_panel=HOW,
        ),
    ] = None,
    strategy: StrategyName = "model",
    prefilter: PrefilterName = None,
    features: FeaturesFile = None,
    features_kernel: FeaturesKernel = "rbf",
    features_column: FeaturesColumn = None,
    prior_mean: PriorMeanName = None,
    keep: Keep = None,
    on_disk: OnDisk = None,
    scheduler: Scheduler = None,
    tokenizer: Annotated[
        str,
        typer.Option(
            help="Symbols that a sub-sequence or n-gram model compares: smiles-split (Cl and Br are one symbol; the "
            "default for molecules), smiles (so are bracket atoms such as [nH]), characters, or auto.",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    known: Known = None,
    parent: ParentSequence = None,
    mutations: Mutations = None,
    positions: Positions = None,
    letters: Letters = None,
    template: TemplateText = None,
    library: LibraryCodons = None,
    properties: Properties = None,
    require: Require = None,
    forbid: Forbid = None,
    alerts: AlertNames = None,
    where: Where = None,
    require_pattern: RequirePattern = None,
    forbid_pattern: ForbidPattern = None,
    exclude: Exclude = None,
    include: Include = None,
    design: DesignName = "auto",
    per_scaffold: PerScaffold = None,
    max_similarity: MaxSimilarity = None,
    lead: Lead = None,
    radius: Radius = None,
    lead_distance: LeadDistance = "auto",
    lead_scale: LeadScale = 1.0,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results. Default: runs/POOL-OBJECTIVE.", rich_help_panel=RUN),
    ] = None,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    timeout: Timeout = None,
    workers: Workers = 1,
    asynchronous: Asynchronous = False,
    chunk_size: ChunkSize = None,
    stop_after_failures: StopAfterFailures = 10,
    isolate: Isolate = None,
    debug: Debug = False,
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

    Only what you would buy, and at most three of a scaffold in a batch:

        seqopt search library.csv -o scoring.py:dock --where "price <= 100" --alerts pains --per-scaffold 3

    How well would it have done on results you have already?

        seqopt search assay.csv --objective column:IC50_nM --minimize --transform log10

    Ten million candidates in many files, read once, scored by a classifier:

        seqopt search "parts/*.csv.gz" -o scoring.py:dock --strategy lfbo --batch 1000

    The same by the workers of a cluster:

        seqopt search "parts/*.csv.gz" -o scoring.py:dock --prefilter lfbo --scheduler tcp://head-node:8786

    Products of your reactions and building blocks, which no file lists:

        seqopt search --reactions reactions.csv --reagents blocks/ -o scoring.py:dock --minimize

    A column of docking scores, a hundred times cheaper than the assay:

        seqopt search library.csv -o column:assay --fidelity column:docking:0.01 --budget-cost 50

    Variants of a wild type with at most three mutations at positions of its active site:

        seqopt search --parent wt.fasta --mutations 3 --positions 12,45-60 -o scoring.py:activity

    The folder of results holds evaluations.csv (every candidate scored, with what was predicted), report.html (the
    best ones drawn), search.png (a plot), summary.json and, if lines could not be read, rejected.csv. Ctrl-C stops at
    any time; nothing that was scored is lost.
    """
    del debug  # read by seqopt.cli.main
    from seqopt.cli.running import Plan

    variants = VariantOptions(parent, mutations, positions, letters, template, library)
    products = reactions is not None or bool(reagents)
    if not products:
        variants.check(pool)  # before anything that a lead or filters need is loaded
    plan = Plan(
        initial=initial,
        batch=batch,
        budget=budget,
        surrogate=surrogate,
        acquisition=acquisition,
        seed=seed,
        resume=resume,
        retry_failed=retry_failed,
        timeout=timeout,
        workers=workers,
        asynchronous=asynchronous,
        chunk_size=chunk_size,
        known=known,
        decimal_comma=decimal_comma,
        stop_after_failures=stop_after_failures or None,
        isolate=isolate,
        budget_cost=budget_cost,
    )
    choosing = {
        "filters": given_filters(properties, require, forbid, alerts, where, require_pattern, forbid_pattern, exclude),
        "include": include or (),
        "design": design,
        "limits": given_limits(per_scaffold, max_similarity),
        **({} if (near := given_lead(lead, radius, lead_distance, lead_scale)) is None else {"near": near}),
    }
    if products:
        from seqopt.cli.reagents import run_reagents

        refuse_pool_options(context, pool)
        run_reagents(
            reactions,
            reagents,
            objective,
            replace(plan, acquisition=chosen_acquisition(context, acquisition)),
            direction=_direction(maximize),
            transform=None if transform == "none" else transform,
            out=out,
            choosing=choosing,
        )
        return
    from seqopt.cli.search import run_search

    run_search(
        pool,
        objective,
        plan,
        fidelities=fidelity or [],
        target_cost=target_cost,
        column=column,
        kind=None if kind == "auto" else kind,
        direction=_direction(maximize),
        transform=None if transform == "none" else transform,
        standardize=standardize,
        attachment_points=attachment_points,
        strict=strict,
        decimal_comma=decimal_comma,
        candidates=candidates,
        informed=Informed(features, features_kernel, features_column, prior_mean),
        large={
            "strategy": strategy,
            "prefilter": prefilter,
            "keep": keep,
            "on_disk": on_disk,
            "scheduler": scheduler,
        },
        tokenizer=None if tokenizer == "auto" else tokenizer,
        out=out,
        variants=variants,
        choosing=choosing,
    )


@app.command(no_args_is_help=True)
def genes(
    protein: Annotated[
        str,
        typer.Argument(
            metavar="PROTEIN|FILE",
            help="A protein in one-letter amino acids, or a FASTA or GenBank file of one or several. Several are "
            "designed in turn, each in a separate folder.",
        ),
    ],
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            "-o",
            help="What makes a gene good: mfe (minimum free energy of the folded RNA, kcal/mol; mfe:-4..37 of a part), "
            "ensemble_energy, opening_energy:WINDOW and accessibility:WINDOW (of a stretch, behind --upstream), "
            "cai:ORGANISM (codon adaptation to e_coli, yeast, human, ..., or a table of yours), log_cai:ORGANISM, "
            "usage:ORGANISM, tai:FILE.csv, codon_pairs:GENES.fasta, harmonization:NATIVE.fasta,HOME,HOST, "
            "content:MOTIF, codon_weights:FILE.csv, gc, gc_distance:TARGET, pattern_count:PATTERN, a Python function "
            "(module:function or file.py:function, from a list of genes to a list of numbers), or a weighted sum of "
            "these, such as 'mfe - 5*log_cai:human'.",
            rich_help_panel=WHAT,
        ),
    ] = "mfe",
    maximize: Annotated[
        bool | None,
        typer.Option(
            "--maximize/--minimize",
            help="Whether large or small values are good. Default: what is usual for a built-in score (mfe: small), "
            "or large.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    code: Code = None,
    start: Start = None,
    stop: Stop = None,
    avoid: Avoid = None,
    both_strands: BothStrands = True,
    gc: GC = None,
    constraint: Constraints = None,
    upstream: Upstream = None,
    downstream: Downstream = None,
    rna: Rna = False,
    genbank: GenBank = False,
    list_tables: ListTables = False,
    best: Annotated[
        int | None,
        typer.Option(
            help="Where the best genes can be known exactly: how many of them. Default: 10.",
            rich_help_panel=HOW,
            min=1,
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Search, also where the best genes can be known exactly.", rich_help_panel=HOW),
    ] = False,
    initial: Initial = 20,
    batch: Batch = 10,
    budget: Budget = 100,
    surrogate: SurrogateName = "auto",
    acquisition: AcquisitionName = "gibbon",
    representation: Annotated[
        str,
        typer.Option(help="Symbols the model compares: codons or bases.", rich_help_panel=HOW),
    ] = "codons",
    partitions: Annotated[
        str,
        typer.Option(
            help="Parts that a gene is compared in, 1 for as a whole; auto takes more than one for long genes only.",
            metavar="auto|NUMBER",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    known: Known = None,
    decimal_comma: KnownComma = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results. Default: runs/PROTEIN-OBJECTIVE.", rich_help_panel=RUN),
    ] = None,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    timeout: Timeout = None,
    workers: Workers = 1,
    asynchronous: Asynchronous = False,
    chunk_size: ChunkSize = None,
    stop_after_failures: StopAfterFailures = 10,
    isolate: Isolate = None,
    debug: Debug = False,
) -> None:
    """Design genes that code for a protein.

    Every gene that is scored codes for the protein, and keeps to the constraints: the codons are what is chosen. Where
    a score is a sum over codons (all built-in ones but those of folding), the best genes are computed exactly, at once,
    and the options of a search are not used. Otherwise a few random genes are scored first. A Gaussian process then
    learns how the score depends on the codons, and a genetic algorithm looks for the genes that are most worth scoring
    next; after each batch the model learns again.

    **Examples**

    The gene that folds most tightly:

        seqopt genes TIKENIFGVS --objective mfe --minimize --budget 60

    Genes for E. coli without two restriction sites, of moderate GC content, with start and stop codon:

        seqopt genes proteins.fasta -o cai:e_coli --avoid EcoRI --avoid BamHI --gc 0.4 0.6 --start ATG --stop TAA

    The folder of results holds genes.fasta and genes.csv (every gene scored, the best first), report.html, search.png
    (a plot), evaluations.csv (with what was predicted) and summary.json. Ctrl-C stops at any time; nothing that was
    scored is lost.
    """
    del debug, list_tables  # read by seqopt.cli.main, and by its callback
    from seqopt.cli.genes import run_genes
    from seqopt.cli.running import Plan

    run_genes(
        protein,
        objective,
        Plan(
            initial=initial,
            batch=batch,
            budget=budget,
            surrogate=surrogate,
            acquisition=acquisition,
            seed=seed,
            resume=resume,
            retry_failed=retry_failed,
            timeout=timeout,
            workers=workers,
            asynchronous=asynchronous,
            chunk_size=chunk_size,
            known=known,
            decimal_comma=known_comma(decimal_comma, known),
            stop_after_failures=stop_after_failures or None,
            isolate=isolate,
        ),
        direction=_direction(maximize),
        options=GeneOptions(code, start, stop, avoid or (), both_strands, gc, constraint or (), upstream, downstream),
        representation=representation,
        partitions=_partitions(partitions),
        best=None if search else best or 10,
        best_asked_for=best is not None,
        files=GeneFiles(rna, genbank),
        out=out,
    )


def _partitions(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        from seqopt.errors import InputError

        raise InputError(f"--partitions is {text!r}; expected auto or an integer of at least 1")
    return int(text)


@app.command(no_args_is_help=True)
def expressions(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            "-d",
            help="A .csv, .tsv, .xlsx or .parquet file of points, one a row, with named columns.",
            rich_help_panel=WHAT,
        ),
    ],
    x: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of inputs; several with commas between them, or --x again. Default: x, else x1, x2, ..., or "
            "the first of two columns.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(help="Column of values to fit. Default: y, or the second of two columns.", rich_help_panel=WHAT),
    ] = None,
    grammar: Annotated[
        str,
        typer.Option(
            help="Which formulas are allowed: arithmetic (+ * / sin exp, the numbers 1 to 3), formulas (also - squares "
            "cubes cos log sqrt), or the path of a .cfg file.",
            rich_help_panel=WHAT,
        ),
    ] = "arithmetic",
    constants: Annotated[
        bool,
        typer.Option(
            "--constants",
            help="Fit the constants of each formula by least squares: c stands for one, in place of the numbers of the "
            "grammar.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    holdout: Annotated[
        float | None,
        typer.Option(
            help="Share of rows to hold out, chosen at random: formulas are searched and ranked by their error on the "
            "others; the error on these is shown beside it, and says which one to take.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    relative: Annotated[
        bool | None,
        typer.Option(
            "--relative/--no-relative",
            help="Divide errors by the variance of the values. Default: where it is above 1,000 or below 0.01.",
            rich_help_panel=WHAT,
            show_default=False,
        ),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Leave out rows with an empty cell, NA or the like.", rich_help_panel=WHAT),
    ] = False,
    min_length: Annotated[int, typer.Option(help="Fewest terminals of a formula.", rich_help_panel=WHAT, min=1)] = 3,
    max_length: Annotated[int, typer.Option(help="Most terminals of a formula.", rich_help_panel=WHAT, min=1)] = 20,
    initial: Initial = 15,
    batch: Batch = 10,
    budget: Budget = 100,
    surrogate: SurrogateName = "auto",
    acquisition: AcquisitionName = "gibbon",
    known: Known = None,
    decimal_comma: Annotated[
        bool,
        typer.Option("--decimal-comma", help="Numbers in --data and --known are written 6,5.", rich_help_panel=WHAT),
    ] = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results. Default: runs/DATA-GRAMMAR.", rich_help_panel=RUN),
    ] = None,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    timeout: Timeout = None,
    workers: Workers = 1,
    asynchronous: Asynchronous = False,
    chunk_size: ChunkSize = None,
    stop_after_failures: StopAfterFailures = 10,
    isolate: Isolate = None,
    debug: Debug = False,
) -> None:
    """Fit a formula to points (symbolic regression).

    Formulas are the strings of a context-free grammar. Each is scored by log(1 + MSE), where MSE is the mean squared
    difference between the formula and the values, counted up to 1,000. A few random formulas are scored first; a
    Gaussian process then learns from their text, and a genetic algorithm on parse trees looks for the next ones. With
    --constants, the text has c for each constant, and what is scored and shown has the numbers that fit best.

    **Examples**

    Columns x and y, or the only two columns of numbers:

        seqopt expressions --data points.csv

    Columns by name, short formulas of a custom grammar:

        seqopt expressions --data growth.csv --x day --y mass --grammar mine.cfg --max-length 12 --budget 60

    Several inputs, constants fitted, a quarter of the rows held out to choose among the best by:

        seqopt expressions --data rates.csv --x temperature,dose --y rate --grammar formulas --constants --holdout 0.25

    The folder of results holds expressions.csv (every formula scored, the best first, also for Python, spreadsheets and
    LaTeX; the column pareto marks those that no shorter one fits as well as, pareto_held_out the same by the rows held
    out), report.html, search.png (a plot), evaluations.csv (with what was predicted) and summary.json. Ctrl-C stops at
    any time; nothing that was scored is lost.
    """
    del debug  # read by seqopt.cli.main
    from seqopt.cli.expressions import run_expressions
    from seqopt.cli.running import Plan

    run_expressions(
        data,
        grammar,
        Plan(
            initial=initial,
            batch=batch,
            budget=budget,
            surrogate=surrogate,
            acquisition=acquisition,
            seed=seed,
            resume=resume,
            retry_failed=retry_failed,
            timeout=timeout,
            workers=workers,
            asynchronous=asynchronous,
            chunk_size=chunk_size,
            known=known,
            decimal_comma=decimal_comma,
            stop_after_failures=stop_after_failures or None,
            isolate=isolate,
        ),
        x=x,
        y=y,
        min_length=min_length,
        max_length=max_length,
        out=out,
        constants=constants,
        holdout=holdout,
        relative=relative,
        skip_missing=skip_missing,
    )


app.add_typer(campaign_app)
app.command("train-vae", no_args_is_help=True)(train_vae_command)
app.command("report", no_args_is_help=True)(report_command)
app.command("predict", no_args_is_help=True)(predict_command)
app.command("embed", no_args_is_help=True)(embed_command)
app.command("fold", no_args_is_help=True)(fold_command)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(BENCHMARKS)}; NAME --help shows its options.",
        ),
    ] = "",
) -> None:
    """Repeat a published experiment, or measure speed."""
    from importlib import import_module

    if name in ("", "--help", "-h"):
        typer.echo(context.get_help())
        return
    if name not in BENCHMARKS:
        from seqopt.errors import InputError

        raise InputError(f"unknown benchmark {name!r}: choose {', '.join(BENCHMARKS)}")
    import_module(f"seqopt.bench.{name}").main(context.args)


@cache
def command() -> Any:
    """All commands as they are run; to read all signatures takes as long as a short command, and is done once."""
    return typer.main.get_command(app)
