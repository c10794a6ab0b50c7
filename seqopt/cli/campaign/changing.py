"""``seqopt campaign correct``, ``discard``, ``undo``, ``set`` and ``pool``: changes of mind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import TakesNegative, app
from seqopt.cli.campaign.common import cost_of, error_of, levels_of, one_of, opened, result_of
from seqopt.cli.campaign.options import Debug, Force, IdColumn, Name, PriceColumn, Which
from seqopt.cli.running import console, note, show_notes
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign import Campaign
    from seqopt.campaign.rows import Settings

What = Annotated[
    str, typer.Argument(metavar="NAME", help="A suggestion (B02-01), an identifier, a string, or the label of a well.")
]
Was = Annotated[str | None, typer.Option(help="The value as it was recorded, where there are several results.")]
Reason = Annotated[str, typer.Option(help="Why.")]
How = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME=VALUE", help="How it was measured, where it was in several ways."),
]


# A negative value is not an option.
@app.command(cls=TakesNegative, context_settings={"ignore_unknown_options": True})
def correct(
    what: What,
    value: Annotated[str | None, typer.Argument(help="The right value, or limit such as '<0.1'.")] = None,
    failed: Annotated[str | None, typer.Option(help="Why there is no value after all.", metavar="REASON")] = None,
    lost: Annotated[
        str | None, typer.Option(help="What happened, if it was lost, by no fault of the string.", metavar="REASON")
    ] = None,
    error: Annotated[
        str | None, typer.Option("--standard-error", help="The right standard error.", metavar="NUMBER")
    ] = None,
    was: Was = None,
    reason: Reason = "",
    cost: Annotated[
        str | None, typer.Option(help="What the measurement has cost, if that was wrong.", metavar="NUMBER")
    ] = None,
    context: How = None,
    force: Force = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Correct a result; what was recorded stays in the history, and counts no more.

    seqopt campaign correct B02-01 5.5 --reason "typo"
    """
    del debug
    show_notes()
    with opened(which) as campaign:
        made = campaign.correct(
            what,
            None if value is None else result_of(campaign, value, optional=False),
            failure=failed,
            lost=lost,
            standard_error=error_of(campaign, error),
            was=_value_of(campaign, was),
            reason=reason,
            force=force,
            context=levels_of(campaign, context or []),
            cost=(paid := cost_of(campaign, cost)),
        )
        command = campaign.history()[-1]
    console.print(f"{escape(what)} is {escape(made.told)} now, and was {escape(str(command.arguments['was']))}")
    if paid is not None:
        console.print(f"its cost is {paid:g} now, and was {command.arguments['cost_was']:g}")


@app.command()
def discard(
    what: What,
    reason: Reason = "",
    was: Was = None,
    every: Annotated[bool, typer.Option("--all", help="All results of it.")] = False,
    context: How = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Keep a result but do not model it, such as an outlier; it is shown as discarded."""
    del debug
    with opened(which) as campaign:
        how = levels_of(campaign, context or [])
        found = campaign.discard(what, reason, was=_value_of(campaign, was), every=every, context=how)
    told = ", ".join(row.told for row in found)
    console.print(f"discarded: {escape(told)} of {escape(what)}; it is kept, and teaches the model nothing")


@app.command()
def undo(
    number: Annotated[int | None, typer.Argument(help="Of the command; see the history. Default: the last.")] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Take back a command, as far as nothing depends on it."""
    del debug
    with opened(which) as campaign:
        console.print(f"undone: {escape(campaign.undo(number).describe())}")


@app.command("set")
def set_settings(
    name: Name = None,
    maximize: Annotated[
        bool | None, typer.Option("--maximize/--minimize", help="Whether large values are good.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Of the values, which stay as they are; none for no unit.")] = None,
    batch: Annotated[int | None, typer.Option(help="Suggestions at a time.", min=1)] = None,
    transform: Annotated[
        str | None, typer.Option(help="log10 for values that span decades, auto for heavy tails, or none.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget-cost", help="Cost that may be spent in all, or none for no limit.")
    ] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Change what the campaign is about; the change is in the history, and can be undone.

    seqopt campaign set --minimize --unit nM --transform log10
    """
    del debug
    given: dict[str, Any] = {}
    if maximize is not None:
        given["direction"] = "maximize" if maximize else "minimize"
    if unit is not None:
        given["unit"] = None if unit == "none" else unit
    if batch is not None:
        given["batch_size"] = batch
    if transform is not None:
        given["transform"] = None if transform == "none" else transform
    if budget is not None:
        given["budget"] = None if budget == "none" else _budget_of(budget)
    if not given:
        raise InputError("say what to change: --maximize or --minimize, --unit, --batch, --transform or --budget-cost")
    with opened(one_of(name, which)) as campaign:
        campaign.change(**given)
        console.print(f"changed: {escape(str(campaign.history()[-1].arguments['what']))}")
        costs = campaign.costs() if "budget" in given else None
        if costs is not None:
            console.print(escape(costs.describe()))
            if costs.budget is not None and costs.spent + costs.committed > costs.budget:
                what = "was spent" if costs.spent > costs.budget else "was spent and open suggestions cost"
                note(f"the budget is less than what {what}: nothing more is suggested until it is raised")


def _budget_of(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--budget-cost is {text!r}; expected a positive number, or none for no limit") from None


@app.command()
def pool(
    name: Name = None,
    add: Annotated[Path | None, typer.Option(help="A file of further candidates.")] = None,
    remove: Annotated[
        Path | None, typer.Option(help="A file of candidates that are none any more: strings or identifiers.")
    ] = None,
    replace: Annotated[
        Path | None, typer.Option(help="A file instead of those before; or the library itself, to accept it as it is.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of the candidates, if not recognised.")] = None,
    id_column: IdColumn = None,
    price_column: PriceColumn = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Show or change which candidates there are; a change is in the history, and can be undone.

    seqopt campaign pool --replace library.csv
    seqopt campaign pool --remove sold_out.csv
    """
    del debug
    show_notes()
    with opened(one_of(name, which)) as campaign:
        facts = campaign.store.library
        if add is None and remove is None and replace is None:
            if facts is None:
                _show_stored(campaign.store.settings)
                return
            found = campaign.library()
            assert found is not None  # there is a library
            console.print(f"{found.facts['size']:,} candidates of {escape(facts['path'])}")
            for one in facts["added"]:
                console.print(f"and of {escape(one['path'])}")
            return
        with console.status("reading the candidates"):
            change = campaign.change_pool(
                add=add, remove=remove, replace=replace, column=column, id_column=id_column, price_column=price_column
            )
    console.print(escape(change.describe()))
    for text in change.notes:
        note(text)
    if change.unknown:
        shown = ", ".join(change.unknown[:5]) + (", ..." if len(change.unknown) > 5 else "")
        note(f"{len(change.unknown)} of the file were no candidates: {shown}")
    for one, why in change.failing.items():
        note(f"{one} is open, and {why}: withdraw it if it should not be measured")


def _show_stored(settings: Settings) -> None:
    """The files of a pool on disk.

    Raises:
        InputError: If the campaign has none.
    """
    if settings.space.get("type") != "StoredPool":
        raise InputError("the campaign does not search a file of candidates")
    first, *others = settings.space["files"]
    console.print(f"{settings.space['size']:,} candidates on disk, of {escape(first)}")
    for path in others:
        console.print(f"and of {escape(path)}")


def _value_of(campaign: Campaign, text: str | None) -> float | str | None:
    """A value as somebody remembers it: a number or limit where it is one, else the reason of a failure."""
    if text is None or campaign.store.settings.yes_no:
        return text
    try:
        found = result_of(campaign, text)
    except InputError:
        return text
    from seqopt.campaign.recording import as_limit

    number, side = as_limit(found)
    # As `Measurement.told` writes it.
    return found if side is None else f"{side}{number:.10g}"
