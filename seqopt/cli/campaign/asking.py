"""``seqopt campaign predict``, ``rank`` and ``explain``: what the model says when it is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import one_of, opened, print_aligned, print_whole, progress_in
from seqopt.cli.campaign.options import Debug, Name, Which
from seqopt.cli.running import console, note, show_notes
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign import Campaign
    from seqopt.campaign.inquiry import Criterion, Explanation, PredictedStrings
    from seqopt.models import Contributions

LISTED = 40
"""Rows of a table in the terminal."""

Strings = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|STRING...",
        help="A file as for --pool, or strings, such as SMILES, or names of suggestions such as B03-07.",
    ),
]
Column = Annotated[str | None, typer.Option(help="Column of the strings in a file, if not recognised.")]
Out = Annotated[Path | None, typer.Option(help="Write the whole table: .csv or .tsv.")]


@app.command()
def predict(
    what: Strings,
    column: Column = None,
    out: Out = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Say what is predicted of any strings, whether they are candidates or not.

    seqopt campaign predict CCO "CC(=O)O"
    seqopt campaign predict ideas.csv --out predicted.csv
    """
    del debug
    with opened(which) as campaign:
        predict_and_print(campaign, what, column, out)


@app.command()
def rank(
    name: Name = None,
    n: Annotated[int, typer.Option("-n", help="How many.", min=1)] = 20,
    by: Annotated[
        str,
        typer.Option(
            help="mean: what is predicted; improvement: the chance to be better than the best measured one; "
            "acquisition: what suggestions are chosen by."
        ),
    ] = "mean",
    everything: Annotated[bool, typer.Option("--all", help="All candidates; with --out.")] = False,
    out: Out = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """List the best candidates that have no result yet, of those that pass the filters.

    seqopt campaign rank -n 50 --by improvement --out best.csv
    """
    del debug
    if everything and out is None:
        raise InputError("--all goes with --out FILE, which may hold so many rows")
    _check_out(out)
    criterion: Criterion = by  # type: ignore[assignment]  # the library refuses another one
    with opened(one_of(name, which)) as campaign:
        with console.status("predicting") as progress:
            campaign.filter_report(progress_in(progress))
            progress.update("predicting")
            found = campaign.rank(None if everything else n, by=criterion)
        _show(found, out)


@app.command()
def recommend(name: Name = None, which: Which = None, debug: Debug = False) -> None:
    """Name the measured string that is expected to be the best as the target, and say what is predicted of it.

    seqopt campaign recommend
    """
    del debug
    show_notes()
    with opened(one_of(name, which)) as campaign:
        with console.status("predicting"):
            found = campaign.recommend()
        _show(found, None, writes=False)


@app.command()
def explain(
    what: Annotated[str, typer.Argument(metavar="NAME|STRING", help="A suggestion, such as B03-07, or any string.")],
    out: Annotated[Path | None, typer.Option(help="Draw it: .svg, .png or .html.")] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Say what a prediction rests on: how a string stands, what it is most like, and what each part of it adds.

    seqopt campaign explain B03-07
    seqopt campaign explain B03-07 --out B03-07.svg
    """
    del debug
    if out is not None:
        from seqopt.report.explanations import check_format

        check_format(out)  # before a model is fitted
    with opened(which) as campaign:
        with console.status("predicting"):
            found = campaign.explain(what)
        _print_explanation(campaign, found)
    if out is not None:
        from seqopt.report.explanations import write_explanation

        write_explanation(found, out)
        console.print(f"drawn in {escape(str(out))}")


def predict_and_print(campaign: Campaign, what: list[str], column: str | None, out: Path | None) -> None:
    """Predict strings, or those of a file, and show and write the table.

    Raises:
        InputError: For files and strings at once, or what cannot be read.
    """
    show_notes()
    _check_out(out)
    files = [text for text in what if os.path.exists(text)]
    if files and len(what) > 1:
        raise InputError(f"{files[0]} is a file: give one file, or strings")
    if column is not None and not files:
        raise InputError("--column goes with a file: leave it out")
    with console.status("predicting"):
        found = campaign.predict_file(files[0], column=column) if files else campaign.predict(what)
    _show(found, out)


def _check_out(out: Path | None) -> None:
    if out is not None:
        from seqopt.datasets.sheets import check_format

        check_format(out)  # before minutes are spent


def _show(found: PredictedStrings, out: Path | None, *, writes: bool = True) -> None:
    from seqopt.campaign.inquiry import NOTE, NOTE_CHANCE, NOTE_OUT
    from seqopt.campaign.parents import MUTATIONS, parent_of
    from seqopt.campaign.wording import percent
    from seqopt.data import shown_interval, shown_number
    from seqopt.strings.mutations import mutation_name

    settings = found.settings
    if out is not None:
        from seqopt.campaign.tables import write_like_library

        table = found.to_pandas().astype(object)
        written = table.where(table.notna(), None).itertuples(index=False, name=None)
        write_like_library(out, settings, list(table.columns), written)
    ranked = any(row.rank is not None for row in found)
    owned = any(row.identifier is not None for row in found)
    header = [f"predicted {settings.objective}", "90 % of a measurement", "chance", "known"]
    if settings.yes_no:
        header = ["chance of a hit", "90 %", "known"]
    parent = parent_of(settings)
    named = [MUTATIONS] * (parent is not None)
    header += [*(["identifier"] * owned), *named, settings.string_column]
    rows = []
    for row in found[:LISTED]:
        variant = [] if parent is None else [mutation_name(parent, row.key)]
        if settings.yes_no:
            told = [percent(row.predicted), f"{percent(row.low)} to {percent(row.high)}"]
        else:
            interval = shown_interval(row.low, row.high, settings.transform, settings.objective, settings.unit)
            chance = "" if row.improvement is None else percent(row.improvement)
            told = [shown_number(row.predicted), interval, chance]
        cells = [
            *told,
            row.known,
            *([row.identifier or ""] * owned),
            *variant,
            row.string,
        ]
        rows.append([*([str(row.rank)] * ranked), *cells])
    print_aligned([*(["rank"] * ranked), *header], rows)
    if len(found) > LISTED:
        note(f"{LISTED} of {len(found):,} are shown" + ("" if out is not None else ": --out FILE writes all"))
    meaning = NOTE_CHANCE if settings.yes_no else NOTE
    note(f"{meaning}. {NOTE_OUT}" if writes and not settings.yes_no else meaning)
    if out is not None:
        console.print(f"written to {escape(str(out))}")


def _print_explanation(campaign: Campaign, found: Explanation) -> None:
    from seqopt.campaign.hits import chance
    from seqopt.campaign.parents import parent_of
    from seqopt.campaign.wording import in_words, nearest_in_words, percent
    from seqopt.data import shown_interval, shown_number
    from seqopt.strings.mutations import mutation_name

    settings, row = campaign.store.settings, found.prediction
    parent = parent_of(settings)
    called = "" if parent is None else mutation_name(parent, row.key)
    scale = settings.transform, settings.objective, settings.unit
    unit = f" {settings.unit}" if settings.unit else ""
    print_whole(f"[bold]{escape('  '.join(filter(None, (found.name, row.identifier, called, row.string))))}[/bold]")
    if row.measured is not None:
        console.print(f"measured: {escape(row.measured_words + unit)}")
    elif row.status in ("failed", "lost"):
        console.print(f"{row.status}: what follows is predicted as if it could be measured")
    if settings.yes_no:
        console.print(f"predicted: {escape(chance(row.predicted, row.low, row.high))}")
    else:
        console.print(
            f"predicted: {shown_number(row.predicted)}{escape(unit)}; 90 % of a measurement "
            f"{escape(shown_interval(row.low, row.high, *scale))}, 90 % of the true value "
            f"{escape(shown_interval(row.true_low, row.true_high, *scale))}"
        )
    if row.improvement is not None:
        console.print(f"chance to be better than the best measured one is expected to be: {percent(row.improvement)}")
    if found.reason:
        console.print(f"stands now: {escape(in_words(found.reason))}")
        if row.measured is None:
            print_whole(f"nearest measured: {escape(nearest_in_words(found.reason, parent))}")
    if found.at_suggestion.get("kind") and found.at_suggestion != found.reason:
        console.print(f"when suggested: {escape(in_words(found.at_suggestion))}")
        if found.at_suggestion.get("nearest"):
            print_whole(f"nearest measured then: {escape(nearest_in_words(found.at_suggestion, parent))}")
    if found.contributions is None:
        note(f"what it rests on is not known: {found.without}")
        return
    _print_contributions(found.contributions, settings.modelled, row.key if row.key != row.string else "")


def _print_contributions(found: Contributions, what: str, key: str) -> None:
    from seqopt.data import shown_number

    alone = found.method == "leave-one-out"
    rest = abs(found.rest) > 1e-6 * max(1.0, abs(found.prediction))
    by = "by how much it would change without each" if alone else "they sum to the prediction"
    if rest and not alone:
        by = "with the last line they sum to the prediction"
    console.print(
        f"rests on ({escape(what)}): {shown_number(found.prior_mean)} of a string like none that was measured, and "
        f"what each {found.unit} adds ({by})"
    )
    if key:
        print_whole(f"written as {escape(key)}:")
    adds = [f"{value:+.3g}" for value in found.values]
    numbered = enumerate(zip(adds, found.parts, strict=True), 1)
    print_aligned(["", "adds", found.unit], [[str(number), added, part] for number, (added, part) in numbered])
    if rest:
        note(f"{found.rest:+.3g} belongs to no single {found.unit}")
