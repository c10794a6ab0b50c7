"""``seqopt campaign``: what to measure next, over weeks."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from seqopt.cli.running import console, note, show_notes
from seqopt.errors import InputError
from seqopt.utils.files import CAMPAIGN_SUFFIX

if TYPE_CHECKING:
    from rich.status import Status as RichStatus

    from seqopt.campaign import Campaign, Results, Suggestion
    from seqopt.data import ContextValue
    from seqopt.filters.conditions import Filter
    from seqopt.spaces import Space
    from seqopt.utils.workers import Progress

WHAT, HOW, FILTERS = "What to search", "How to search", "What may be suggested"

app = typer.Typer(
    name="campaign",
    help="A search that lasts for weeks, with a laboratory as its objective; everything is kept in one file.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Which = Annotated[
    Path | None,
    typer.Option(
        "--campaign", "-c", help="The campaign: its name or file. Default: the only one in this folder.", metavar="NAME"
    ),
]
DecimalComma = Annotated[bool, typer.Option("--decimal-comma", help="Numbers in the table are written 6,5.")]
Partial = Annotated[bool, typer.Option("--partial", help="Take the good rows of a table that has bad ones.")]
Replicate = Annotated[
    bool, typer.Option("--replicate", help="Results of strings that have one are further measurements of them.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="RANGE",
        help="Bounds of a property of molecules: 'MW 200..500', 'logP <= 5'. One of MW, logP, TPSA, HBD, HBA, "
        "rotatable_bonds, rings, aromatic_rings, heavy_atoms, heteroatoms, fsp3, charge, SA, QED, or a descriptor of "
        "RDKit. May be given several times, as may all of these.",
        rich_help_panel=FILTERS,
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(metavar="SMARTS", help="A substructure that molecules must have.", rich_help_panel=FILTERS),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(metavar="SMARTS", help="A substructure that molecules must not have.", rich_help_panel=FILTERS),
]
AlertNames = Annotated[
    list[str] | None,
    typer.Option(
        "--alerts",
        metavar="NAMES",
        help="Catalogues of alerts that molecules must not match: pains,brenk (or nih, zinc, chembl, ...).",
        rich_help_panel=FILTERS,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="On a column of the library: 'price <= 100', 'supplier == ACME', 'stock != no', 'supplier in (ACME, "
        "Enamine)'.",
        rich_help_panel=FILTERS,
    ),
]
RequirePattern = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="A regular expression that strings must hold.", rich_help_panel=FILTERS),
]
ForbidPattern = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="A regular expression that strings must not hold.", rich_help_panel=FILTERS),
]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="What to call it; its file is NAME.seqopt.")],
    objective: Annotated[
        str, typer.Option("--objective-name", help="What is measured, such as pIC50.", rich_help_panel=WHAT)
    ],
    pool: Annotated[
        Path | None, typer.Option(help="A file of candidates, as for seqopt search.", rich_help_panel=WHAT)
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Column of the candidates, if not recognised.", rich_help_panel=WHAT)
    ] = None,
    kind: Annotated[
        str, typer.Option(help="molecule, protein, dna, rna, text, or auto to recognise it.", rich_help_panel=WHAT)
    ] = "auto",
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Treat salts and charge states as one.", rich_help_panel=WHAT)
    ] = False,
    alphabet: Annotated[
        str | None,
        typer.Option(help="Instead of a pool: all strings over these letters.", rich_help_panel=WHAT),
    ] = None,
    length: Annotated[
        str | None, typer.Option(help="Their length, 20, or lengths, 5-20.", rich_help_panel=WHAT)
    ] = None,
    protein: Annotated[
        str | None, typer.Option(help="Instead of a pool: all genes of this protein.", rich_help_panel=WHAT)
    ] = None,
    grammar: Annotated[
        str | None,
        typer.Option(help="Instead of a pool: the strings of a grammar, with --length.", rich_help_panel=WHAT),
    ] = None,
    maximize: Annotated[
        bool, typer.Option("--maximize/--minimize", help="Whether large values are good.", rich_help_panel=WHAT)
    ] = True,
    unit: Annotated[str | None, typer.Option(help="Of the values.", rich_help_panel=WHAT)] = None,
    transform: Annotated[
        str,
        typer.Option(help="log10 for positive values that span decades, such as IC50 in nM.", rich_help_panel=WHAT),
    ] = "none",
    batch: Annotated[int, typer.Option(help="Suggestions at a time.", rich_help_panel=HOW, min=2)] = 10,
    surrogate: Annotated[str, typer.Option(help="The model; see seqopt search --help.", rich_help_panel=HOW)] = "auto",
    acquisition: Annotated[
        str, typer.Option(help="How batches are chosen; see seqopt search --help.", rich_help_panel=HOW)
    ] = "gibbon",
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same suggestions.", rich_help_panel=HOW, min=0)
    ] = 0,
    properties: Properties = None,
    require: Require = None,
    forbid: Forbid = None,
    alerts: AlertNames = None,
    where: Where = None,
    require_pattern: RequirePattern = None,
    forbid_pattern: ForbidPattern = None,
    debug: Debug = False,
) -> None:
    """Begin a campaign.

    seqopt campaign new kinase --pool library.csv --objective-name pIC50 --maximize
    seqopt campaign new kinase --pool library.csv --objective-name pIC50 --property "MW 200..500" --where "price <= 100"
    seqopt campaign new enzyme --protein MKV...  --objective-name expression --batch 8
    """
    del debug  # read by seqopt.cli.main
    path = _file_of(Path(name))
    if path.exists():
        raise InputError(f"{path} already exists: choose another name, or continue it")
    show_notes()
    with console.status("reading the candidates"):
        from seqopt.campaign import Campaign

        campaign = Campaign.create(
            path,
            _space(pool, alphabet, protein, grammar, length, kind, column, standardize),
            objective=objective,
            direction="maximize" if maximize else "minimize",
            unit=unit,
            column=column,
            kind=None if kind == "auto" else kind,
            standardize=standardize,
            batch_size=batch,
            surrogate=surrogate,
            acquisition=acquisition,
            transform=None if transform == "none" else transform,
            seed=seed,
            filters=_filters(properties, require, forbid, alerts, where, require_pattern, forbid_pattern),
        )
    with campaign:
        facts, filters = campaign.store.library, campaign.status().filters
    what = f"{facts['size']:,} candidates of {facts['path']}" if facts else "generated strings"
    console.print(f"[bold]{escape(str(path))}[/bold]: {escape(objective)} of {escape(what)}")
    if filters:
        console.print(f"suggested is only: {escape('; '.join(filters))}")
    console.print("next: seqopt campaign suggest --out batch.csv")


@app.command()
def suggest(
    n: Annotated[int | None, typer.Option("-n", help="How many. Default: the campaign's batch.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write them as a table to be filled in: .csv or .tsv.")] = None,
    more: Annotated[bool, typer.Option("--more", help="Suggest further ones although some are open.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Say what to measure next: the open suggestions, or new ones if there are none."""
    del debug
    from seqopt.campaign.tables import check_batch_target
    from seqopt.filters.filtering import failing_note

    with _open(which) as campaign:
        if out is not None:
            check_batch_target(out, campaign.store)  # before minutes are spent on choosing
        waiting = len(campaign.store.open_suggestions())
        with console.status("choosing") as progress:
            if more or not waiting:
                report = campaign.filter_report(_progress(progress))
                if report is not None:
                    _print_lines(report.lines())
            progress.update("choosing")
            batch = campaign.suggest(n, more=more)
        if waiting and not more:
            note(f"{waiting} suggestions are open: record their results, withdraw them, or add others with --more")
        asked = campaign.store.settings.batch_size if n is None else n
        if (more or not waiting) and len(batch) < asked:
            note(f"{len(batch)} instead of {asked}: no other candidate was found that may be suggested")
        failing = campaign.status().failing
        if failing:
            note(f"{failing_note(failing)}. Withdraw what should not be measured")
        _print_batch(campaign, batch)
        if out is not None:
            campaign.write_batch(out, batch)
            console.print(f"written to {escape(str(out))}: fill in the last columns, then seqopt campaign record {out}")


# A negative value is not an option.
@app.command(context_settings={"ignore_unknown_options": True})
def record(
    what: Annotated[str, typer.Argument(metavar="FILE|STRING", help="A table of results, a string or an identifier.")],
    value: Annotated[str | None, typer.Argument(help="Its value, if it is not a table.")] = None,
    failed: Annotated[str | None, typer.Option(help="Why there is no value.", metavar="REASON")] = None,
    error: Annotated[float | None, typer.Option("--standard-error", help="Known standard error of the value.")] = None,
    replicate: Replicate = False,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="How it was measured, where there are several ways: fidelity=docking."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="The value of a constraint that was measured, too: solubility=3.5."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of the values in a table, if not recognised.")] = None,
    decimal_comma: DecimalComma = False,
    partial: Partial = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Record what was measured: a table as `suggest --out` wrote it, or one result.

    seqopt campaign record batch.csv
    seqopt campaign record B03-07 6.4
    seqopt campaign record B03-08 --failed "did not dissolve"
    """
    del debug
    table = value is None and failed is None and not also
    _refuse_idle({"--context": bool(context) and table}, "one result, and is a column of a table")
    _refuse_idle(
        {"--standard-error": error is not None and value is None}, "a value, and belongs in a column of a table"
    )
    _refuse_idle(
        {
            "--column": column is not None and not table,
            "--decimal-comma": decimal_comma and not table,
            "--partial": partial and not table,
        },
        "a table",
    )
    if table and not os.path.exists(what):  # which, unlike a path, takes a SMILES too long for the name of a file
        raise InputError(
            f"there is no file {what}. If it is a string or an identifier, give its value, too, or --failed REASON"
        )
    show_notes()
    with _open(which) as campaign:
        if table:
            taken, results = campaign.record_file(
                what, value_column=column, replicates=replicate, partial=partial, decimal_comma=decimal_comma
            )
            _print_results(len(taken), results)
            return
        campaign.record(
            what,
            None if value is None else _number(value),
            failure=failed,
            standard_error=error,
            replicate=replicate,
            context=_levels(campaign, context or []),
            further={name: _number(text) for name, text in _pairs("--also", also or []).items()},
        )
        told = [value] if value is not None else ["failed"] if failed is not None else []
        console.print(f"recorded {escape(what)}: {escape(', '.join(told + (also or [])))}")


@app.command("import")
def import_history(
    file: Annotated[Path, typer.Argument(help="A table of strings and values from elsewhere.")],
    column: Annotated[str | None, typer.Option(help="Column of the values, if not recognised.")] = None,
    string_column: Annotated[str | None, typer.Option(help="Column of the strings, if not recognised.")] = None,
    replicate: Replicate = False,
    decimal_comma: DecimalComma = False,
    partial: Partial = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Add results of strings that were never suggested, from an older project."""
    del debug
    with _open(which) as campaign:
        taken, results = campaign.record_file(
            file,
            value_column=column,
            string_column=string_column,
            replicates=replicate,
            partial=partial,
            history=True,
            decimal_comma=decimal_comma,
        )
        _print_results(len(taken), results)


@app.command()
def withdraw(
    names: Annotated[list[str], typer.Argument(help="Identifiers of open suggestions, such as B03-07.")],
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Withdraw suggestions that will not be measured; they are not suggested again."""
    del debug
    with _open(which) as campaign:
        campaign.withdraw(names, reason)
    console.print(f"withdrawn: {escape(', '.join(names))}")


@app.command("filter")
def filter_suggestions(
    name: Annotated[Path | None, typer.Argument(help="The campaign, as --campaign does.")] = None,
    properties: Properties = None,
    require: Require = None,
    forbid: Forbid = None,
    alerts: AlertNames = None,
    where: Where = None,
    require_pattern: RequirePattern = None,
    forbid_pattern: ForbidPattern = None,
    drop: Annotated[
        list[int] | None, typer.Option(help="Remove this filter, by its number in the list.", min=1)
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all filters, and add those given.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Only list the filters, as without any option.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Show how many candidates pass each filter.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Show or change what may be suggested. Filters add up; a change is in the history, and can be undone.

    seqopt campaign filter --property "MW 200..500" --alerts pains,brenk --where "price <= 100"
    seqopt campaign filter --drop 2
    """
    del debug
    from seqopt.filters.filtering import failing_note

    added = _filters(properties, require, forbid, alerts, where, require_pattern, forbid_pattern)
    if show and (added or drop or clear):
        raise InputError("--list only lists the filters: leave it out to change them")
    if clear and drop:
        raise InputError("--clear removes all filters: leave --drop out")
    with _open(_one(name, which)) as campaign:
        filters = campaign.filters
        for number in drop or []:
            if number > len(filters):
                raise InputError(f"there is no filter {number}: there are {len(filters)}; see --list")
        if added or drop or clear:
            kept = [] if clear else [item for number, item in enumerate(filters, 1) if number not in (drop or [])]
            failing = campaign.set_filters([*kept, *added])
            if failing:
                note(f"{failing_note(failing)}. Withdraw what should not be measured")
        found = campaign.status().filters
        _print_lines([f"{number}  {words}" for number, words in enumerate(found, 1)] or ["no filters: all may pass"])
        if count:
            with console.status("filtering") as progress:
                report = campaign.filter_report(_progress(progress))
            if report is not None:
                _print_lines(report.lines())


@app.command()
def undo(which: Which = None, debug: Debug = False) -> None:
    """Take back the last command that recorded, imported, suggested, withdrew or filtered something."""
    del debug
    with _open(which) as campaign:
        console.print(f"undone: {escape(campaign.undo().describe())}")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """How the campaign stands: open, measured and failed, the best so far, how good the model is."""
    del debug
    from dataclasses import asdict

    with _open(which) as campaign:
        found = campaign.status()
    # As the campaign ranks them, and the report shows them.
    value = None if found.best is None else found.best.mean(geometric=found.settings.transform == "log10")
    best = None if found.best is None else {"string": found.best.string, "value": value}
    if as_json:
        facts = {
            "counts": asdict(found.counts),
            "best": best,
            "model": found.model,
            "filters": found.filters,
            "failing": found.failing,
            "warnings": found.warnings,
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    counts, settings = found.counts, found.settings
    unit = f" {settings.unit}" if settings.unit else ""
    console.print(
        f"[bold]{escape(settings.objective)}[/bold] ({settings.direction}): {counts.values} values of {counts.strings} "
        f"strings, {counts.failures} failures; {counts.batches} batches suggested, {counts.open} suggestions open, "
        f"{counts.withdrawn} withdrawn"
    )
    if found.best is not None:
        console.print(f"best: {escape(found.best.string)} with {value:,.5g}{escape(unit)}")
    if found.model:
        r2 = found.model.get("r2")
        quality = "" if r2 is None else f", leave-one-out R2 {r2:.2f}, {found.model['within_90']:.0%} within 90 %"
        console.print(f"model: {escape(found.model['surrogate'])}, fitted to {found.model['n']} values{quality}")
    if found.filters:
        console.print(f"suggested is only: {escape('; '.join(found.filters))}")
    for warning in found.warnings:
        note(warning)


@app.command()
def report(
    name: Annotated[Path | None, typer.Argument(help="The campaign, as --campaign does.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to a text file instead.")] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """All of a campaign as plain tables: the best, predictions against results, what is open, the model, failures."""
    del debug
    from seqopt.campaign.summary import render, summarize
    from seqopt.campaign.tables import check_target

    with _open(_one(name, which)) as campaign:
        if out is not None:
            check_target(out, campaign.store)
        sections = summarize(campaign)
    if out is None:
        typer.echo(render(sections, width=console.width), nl=False)
        return
    try:
        out.write_text(render(sections), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    console.print(f"written to {escape(str(out))}")


@app.command()
def history(which: Which = None, debug: Debug = False) -> None:
    """All commands of the campaign, and what they did."""
    del debug
    with _open(which) as campaign:
        for command in campaign.history():
            console.print(f"{command.id:>5}  {command.time[:16].replace('T', ' ')}  {escape(command.describe())}")


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Write all measurements, one by one."""
    del debug
    with _open(which) as campaign:
        campaign.export(out)
        console.print(f"{campaign.status().counts.values} values written to {escape(str(out))}")


def _file_of(name: Path) -> Path:
    return name if name.suffix == CAMPAIGN_SUFFIX else name.with_name(name.name + CAMPAIGN_SUFFIX)


def _open(which: Path | None) -> Campaign:
    from seqopt.campaign import Campaign

    if which is not None:
        return Campaign.open(_file_of(which))
    here = sorted(Path().glob(f"*{CAMPAIGN_SUFFIX}"))
    if len(here) != 1:
        found = f"{len(here)} campaigns in this folder ({', '.join(path.stem for path in here)})" if here else ""
        raise InputError(
            f"{found or 'there is no campaign in this folder'}: "
            + ("say which with --campaign NAME" if here else "begin one with seqopt campaign new, or say where it is")
        )
    return Campaign.open(here[0])


def _one(name: Path | None, which: Path | None) -> Path | None:
    """The campaign that a command was given, by its argument or by ``--campaign``."""
    if name is not None and which is not None and _file_of(name).resolve() != _file_of(which).resolve():
        raise InputError(f"two campaigns are named, {name} and --campaign {which}: keep one of them")
    return name if which is None else which


def _refuse_idle(given: dict[str, bool], goes_with: str) -> None:
    """Refuse options that would do nothing."""
    for option, idle in given.items():
        if idle:
            raise InputError(f"{option} goes with {goes_with}: leave it out")


def _filters(
    properties: list[str] | None,
    require: list[str] | None,
    forbid: list[str] | None,
    alerts: list[str] | None,
    where: list[str] | None,
    require_pattern: list[str] | None,
    forbid_pattern: list[str] | None,
) -> list[Filter]:
    from seqopt.filters.conditions import Alerts, ColumnCondition, Pattern, PropertyRange, Substructure

    catalogs = [name.strip() for names in alerts or [] for name in names.split(",") if name.strip()]
    return [
        *map(ColumnCondition.parse, where or []),
        *map(PropertyRange.parse, properties or []),
        *(Substructure(smarts) for smarts in require or []),
        *(Substructure(smarts, required=False) for smarts in forbid or []),
        *map(Alerts, catalogs),
        *(Pattern(pattern) for pattern in require_pattern or []),
        *(Pattern(pattern, required=False) for pattern in forbid_pattern or []),
    ]


def _progress(shown: RichStatus) -> Progress:
    return lambda done, total: shown.update(f"properties of {done:,} of {total:,} molecules, kept for the next time")


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        console.print(escape(line))


def _space(
    pool: Path | None,
    alphabet: str | None,
    protein: str | None,
    grammar: str | None,
    length: str | None,
    kind: str,
    column: str | None,
    standardize: bool,
) -> Space | Path:
    given = [name for name, value in _named(pool, alphabet, protein, grammar).items() if value is not None]
    if len(given) != 1:
        raise InputError(
            "say what to search, by one of --pool FILE, --alphabet LETTERS, --protein SEQUENCE and --grammar NAME"
            + (f" (given: {' and '.join(given)})" if given else "")
        )
    if length is not None and (pool is not None or protein is not None):
        raise InputError(f"--length goes with --alphabet or --grammar, not with {given[0]}")
    if pool is not None:
        return pool
    _refuse_idle({"--column": column is not None, "--standardize": standardize}, f"--pool, not with {given[0]}")
    from seqopt.spaces import CodonSpace, GrammarSpace, StringSpace

    if protein is not None:
        genes = CodonSpace(protein)
        if kind not in ("auto", genes.kind):
            raise InputError(f"--kind {kind} does not go with --protein, which searches {genes.kind}: leave it out")
        return genes
    if length is None:
        raise InputError(f"{given[0]} needs --length, such as 20 or 5-20")
    shortest, longest = _lengths(length)
    kind = "text" if kind == "auto" else kind
    if alphabet is not None:
        return StringSpace(alphabet, min_length=shortest, max_length=longest, kind=kind)
    return GrammarSpace(str(grammar), shortest, longest, kind=kind)


def _named(pool: Any, alphabet: Any, protein: Any, grammar: Any) -> dict[str, Any]:
    return {"--pool": pool, "--alphabet": alphabet, "--protein": protein, "--grammar": grammar}


def _lengths(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise InputError(f"--length is {text!r}; expected a number, 20, or two, 5-20") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        comma = " (write 6.5, not 6,5)" if "," in text else ""
        raise InputError(f"the value is {text!r}; expected a number{comma}, or --failed REASON")
    return number


def _pair(text: str) -> tuple[str, str]:
    """A name and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"{text!r} is not a name and a value: write NAME=VALUE")
    return name.strip(), value.strip()


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    """Names and their values, each name once."""
    found: dict[str, str] = {}
    for name, value in map(_pair, texts):
        if name in found:
            raise InputError(f"{option} gives {name} twice, as {found[name]} and {value}: keep one of them")
        found[name] = value
    return found


def _levels(campaign: Campaign, texts: list[str]) -> dict[str, ContextValue]:
    """How something was measured, as the contexts of the campaign write it."""
    pairs = _pairs("--context", texts)
    contexts = campaign.store.settings.made_contexts() if pairs else None
    if contexts is None:
        return dict(pairs)
    found = {}
    for name, text in pairs.items():
        try:
            found[name] = contexts.level(name, text)
        except InputError as error:
            raise InputError(f"--context {name}={text}: {text!r} {error}") from error
    return found


def _print_batch(campaign: Campaign, batch: list[Suggestion]) -> None:
    settings = campaign.store.settings
    table = Table(box=None, pad_edge=False)
    told = (f"predicted {settings.objective}", "90 %", "why", "nearest measured")
    for heading in ("id", settings.string_column, *settings.context_names, *told):
        table.add_column(escape(heading), overflow="fold")
    for row in batch:
        predicted = "" if row.mean is None else f"{row.mean:,.4g}"
        interval = "" if row.low is None or row.high is None else f"{row.low:,.4g} to {row.high:,.4g}"
        similarity = row.reason.get("similarity")
        nearest = "" if similarity is None else f"{row.reason['nearest']} ({similarity:.2f})"
        ways = [escape(str(dict(row.context).get(name, ""))) for name in settings.context_names]
        why = escape(str(row.reason.get("kind", "")))
        table.add_row(row.name, escape(row.string), *ways, predicted, interval, why, escape(nearest))
    console.print(table)


def _print_results(taken: int, results: Results) -> None:
    console.print(f"recorded {taken} results of {escape(results.source)}")
    for remark in results.problems:
        note(f"not recorded: {remark}")
    for remark in results.warnings:
        note(str(remark))
    if results.unfilled:
        note(f"{len(results.unfilled)} rows have no result yet")
