"""What the commands for campaigns share: which campaign is meant, and how values are given and shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from seqopt.cli.running import console, note
from seqopt.errors import InputError
from seqopt.utils.files import CAMPAIGN_SUFFIX
from seqopt.utils.interruptions import interrupted
from seqopt.utils.progress import shown_by

if TYPE_CHECKING:
    from rich.status import Status as RichStatus

    from seqopt.campaign import Campaign, Results, Suggestion
    from seqopt.data import ContextValue
    from seqopt.utils.workers import Progress


FIDELITY = "fidelity"
"""What the ways to measure of ``--fidelity`` differ in."""


def file_of(name: Path) -> Path:
    return name if name.suffix == CAMPAIGN_SUFFIX else name.with_name(name.name + CAMPAIGN_SUFFIX)


def opened(which: Path | None, client: Any = None) -> Campaign:
    from seqopt.campaign import Campaign

    if which is not None:
        return Campaign.open(file_of(which), client=client)
    here = sorted(Path().glob(f"*{CAMPAIGN_SUFFIX}"))
    if len(here) != 1:
        found = f"{len(here)} campaigns in this folder ({', '.join(path.stem for path in here)})" if here else ""
        raise InputError(
            f"{found or 'there is no campaign in this folder'}: "
            + ("say which with --campaign NAME" if here else "begin one with seqopt campaign new, or say where it is")
        )
    return Campaign.open(here[0], client=client)


def one_of(name: Path | None, which: Path | None) -> Path | None:
    """The campaign that a command was given, by its argument or by ``--campaign``."""
    if name is not None and which is not None and file_of(name).resolve() != file_of(which).resolve():
        raise InputError(f"two campaigns are named, {name} and --campaign {which}: keep one of them")
    return name if which is None else which


def refuse_idle(given: dict[str, bool], goes_with: str, instead: str = "leave it out") -> None:
    """Refuse options that would do nothing."""
    for option, idle in given.items():
        if idle:
            raise InputError(f"{option} goes with {goes_with}: {instead}")


def progress_in(shown: RichStatus) -> Progress:
    return lambda done, total: shown.update(f"properties of {done:,} of {total:,} molecules, kept for the next time")


def shown_in(status: RichStatus, usually: str) -> AbstractContextManager[None]:
    """Lets a status line show what takes long, and ``usually`` in between."""
    return shown_by(lambda text: status.update(escape(text) or usually))


@contextmanager
def told_if_stopped(campaign: Campaign) -> Iterator[None]:
    """Of an interruption inside the block, the user is told whether the campaign is as it was."""
    before = campaign.store.state
    try:
        yield
    except BaseException as error:
        if not interrupted(error):
            raise
        same = campaign.store.state == before
        console.print(
            "\nStopped: nothing was suggested, and the campaign is as it was."
            if same
            else "\nStopped, but what was suggested is kept: give the same command again to see it."
        )
        raise


def print_lines(lines: list[str]) -> None:
    for line in lines:
        console.print(escape(line))


def with_comma(campaign: Campaign, text: str | None, decimal_comma: bool | None = None) -> bool:
    """Whether a number on the command line is one with a decimal comma.

    Args:
        campaign: Where its library has decimal commas, so has what is written with a comma.
        text: The number.
        decimal_comma: What ``--decimal-comma`` or ``--decimal-point`` says instead.
    """
    usual = campaign.store.settings.decimal_comma and "," in (text or "")
    return usual if decimal_comma is None else decimal_comma


def number_of(text: str, decimal_comma: bool = False, *, optional: bool = True) -> float:
    """A number, where ``optional`` says whether the command has an option for decimal commas that may be named."""
    if decimal_comma:
        from seqopt.datasets.numbers import read_number

        number = read_number(text, True)
        if number is None:
            raise InputError(f"the value is {text!r}; expected a number with a decimal comma such as 6,5, or --failed")
        return number
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        say = ", or say --decimal-comma" if optional else ""
        comma = f" (write 6.5, not 6,5{say})" if "," in text else ""
        raise InputError(f"the value is {text!r}; expected a number{comma}, or --failed REASON")
    return number


def number_in(
    campaign: Campaign, option: str, text: str | None, what: str, decimal_comma: bool | None = None
) -> float | None:
    """A number as an option says it; it may have a point even where commas are decimal.

    Args:
        campaign: As in `with_comma`.
        option: The option.
        text: What it was given.
        what: What it says.
        decimal_comma: As in `with_comma`.

    Raises:
        InputError: If it is no number.
    """
    if text is None:
        return None
    from seqopt.datasets.numbers import read_number

    number = read_number(text, with_comma(campaign, text, decimal_comma) and "," in text)
    if number is None or not math.isfinite(number):
        point = f" (write {text.replace(',', '.')}, not {text})" if text.count(",") == 1 else ""
        raise InputError(f"{option} is {text!r}; expected {what}, a number{point}")
    return number


def cost_of(campaign: Campaign, text: str | None, decimal_comma: bool | None = None) -> float | None:
    """What a measurement has cost, as an option says it; see `number_in`."""
    return number_in(campaign, "--cost", text, "what the measurement has cost", decimal_comma)


def error_of(campaign: Campaign, text: str | None, decimal_comma: bool | None = None) -> float | None:
    """The standard error of a value, as an option says it; see `number_in`."""
    return number_in(campaign, "--standard-error", text, "the standard error of the value", decimal_comma)


def value_of(text: str, decimal_comma: bool = False, *, optional: bool = True) -> float | str:
    """A value, or a limit as a campaign takes it; ``optional`` as in `number_of`."""
    from seqopt.campaign.cells import LIMIT_SIGNS, read_value

    # What is rough is no limit, and says so.
    if not decimal_comma and text.strip()[:1] not in (*LIMIT_SIGNS, "~", "\u2248"):
        return number_of(text, optional=optional)
    number, side, problem = read_value(text.strip(), decimal_comma)
    if problem and "," in text and not (decimal_comma or optional):
        # Of a table the problem would name an option.
        number_of(text, optional=False)
    if problem or number is None:
        raise InputError(f"the value {text!r} {problem}")
    return number if side is None else f"{side}{number!r}"


def result_of(
    campaign: Campaign, text: str, decimal_comma: bool | None = None, *, optional: bool = True
) -> float | str:
    """A result as a campaign takes it: a number, a limit or, where results are yes or no, what was written.

    Args:
        campaign: As in `with_comma`.
        text: The result.
        decimal_comma: As in `with_comma`.
        optional: As in `number_of`.
    """
    if campaign.store.settings.yes_no:
        return text
    return value_of(text, with_comma(campaign, text, decimal_comma), optional=optional)


def pair_of(text: str) -> tuple[str, str]:
    """A name and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"{text!r} is not a name and a value: write NAME=VALUE")
    return name.strip(), value.strip()


def pairs_of(option: str, texts: list[str]) -> dict[str, str]:
    """Names and their values, each name once."""
    found: dict[str, str] = {}
    for name, value in map(pair_of, texts):
        if name in found:
            raise InputError(f"{option} gives {name} twice, as {found[name]} and {value}: keep one of them")
        found[name] = value
    return found


def levels_of(campaign: Campaign, texts: list[str]) -> dict[str, ContextValue]:
    """How something was measured, as the contexts of the campaign write it."""
    pairs = pairs_of("--context", texts)
    contexts = campaign.store.settings.made_contexts() if pairs else None
    if contexts is None:
        return dict(pairs)
    found = {}
    for name, text in pairs.items():
        try:
            found[name] = contexts.level(name, text)
        except InputError as error:
            raise InputError(f"{name}={text}: {text!r} {error}") from error
    return found


def on_plate(campaign: Campaign, name: str | None) -> dict[str, ContextValue] | None:
    """The plate that an option names, as a context; `None` without one."""
    if name is None:
        return None
    from seqopt.campaign.plates import PLATE

    refuse_idle({"--plate": not campaign.store.settings.plates}, "a campaign that has plates")
    if not name.strip():
        raise InputError("--plate is empty; expected the name of a plate, such as P3")
    return {PLATE: name.strip()}


def print_batch(campaign: Campaign, batch: list[Suggestion]) -> None:
    """Suggestions one below the other, each string on a line of its own, from which it can be copied."""
    from seqopt.campaign.costs import way_of
    from seqopt.campaign.parents import parent_of
    from seqopt.campaign.wording import in_words, nearest_in_words
    from seqopt.data import shown_interval, shown_number
    from seqopt.strings.mutations import mutation_name

    settings = campaign.store.settings
    parent = parent_of(settings)
    for row in batch:
        ways = "".join(f", {name} {value}" for name, value in row.context)
        called = f"{row.identifier}  " if row.identifier else ""
        called += f"{mutation_name(parent, row.key)}  " if parent is not None else ""
        print_whole(f"[bold]{escape(row.name)}[/bold]  {escape(called + row.string + ways)}")
        central = row.predicted(settings.transform)
        # A cheap measurement may be in other units.
        other = row.context != settings.target and bool(settings.target)
        what, unit = (way_of(row.context), None) if other else (settings.objective, settings.unit)
        interval = shown_interval(row.low, row.high, settings.transform, what, unit)
        if central is not None and settings.yes_no:
            from seqopt.campaign.hits import chance

            console.print(f"        {escape(chance(central, row.low, row.high))}")
        elif central is not None:
            of = f", 90 % of a measurement {interval}" if interval else ""
            console.print(f"        predicted {escape(f'{what} {shown_number(central)}{of}')}")
        if row.reason.get("kind"):
            console.print(f"        {escape(in_words(row.reason))}")
        if row.reason.get("nearest"):
            print_whole(f"        nearest measured: {escape(nearest_in_words(row.reason, parent))}")


def print_whole(line: str) -> None:
    """A line that is broken by the terminal only, so that what stands in it can be copied."""
    console.print(line, soft_wrap=True, highlight=False)


def print_aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table without markup whose last column may be as long as it likes: strings, which are copied from it."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header) - 1)]
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print_whole(escape("  ".join([*cells, row[-1]])))


def print_cost(campaign: Campaign, batch: list[Suggestion]) -> None:
    """What suggestions cost, where a column of prices is named."""
    from seqopt.campaign.labels import price_of, spending

    settings, costs = campaign.store.settings, campaign.costs()
    if costs is not None:
        console.print(escape(costs.describe()))
    total = spending(campaign.store.suggestions(), settings)
    if total is None:
        return
    prices = [price_of(row, settings) for row in batch]
    known = [price for price in prices if price is not None]
    unknown = f"; {len(prices) - len(known)} without a price" if len(known) < len(prices) else ""
    console.print(f"these cost {sum(known):,.10g}{unknown}; spent so far: {total.spent:,.10g}")


def print_results(taken: int, results: Results) -> None:
    from seqopt.campaign.entries import first_of
    from seqopt.campaign.wording import counted

    console.print(f"recorded {counted(taken, 'result')} of {escape(results.source)}")
    for problem in first_of(results.problems):
        note(f"not recorded: {problem}")
    for remark in first_of(results.warnings):
        note(remark)
    if results.unfilled:
        rows = counted(len(results.unfilled), "row")
        note(f"{rows} {'has' if len(results.unfilled) == 1 else 'have'} no result")
