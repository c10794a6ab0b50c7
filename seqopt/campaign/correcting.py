"""What people change their minds about: typing errors, outliers, failures that deserve another try, settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, get_args

from seqopt.campaign.cells import NO_ERROR, is_reason, unfit, wrong_cost
from seqopt.campaign.columns import check_column_names
from seqopt.campaign.costs import check_budget
from seqopt.campaign.entries import ResultEntry, Row
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.rows import WELLS, Censoring, Measurement, NewMeasurement, NewSuggestion, Observed, Settings
from seqopt.campaign.scale import refuse_absurd
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign.changes import Change
    from seqopt.campaign.store import CampaignStore

CHANGEABLE = ("direction", "unit", "batch_size", "transform", "budget")
"""Settings that `changed` takes."""

RETRY = "retry"
"""The kind of reason of a suggestion that was made because an earlier one failed."""


def chosen_results(found: Sequence[Measurement], what: str, was: float | str | None) -> list[Measurement]:
    """Those results of a string that are meant.

    Args:
        found: All of them.
        what: What the user calls the string.
        was: The value as it stands, where there are several results; or the reason of a failure.

    Raises:
        CampaignError: If there is none.
    """
    if not found:
        raise CampaignError(f"nothing was measured of {what}: there is nothing to change")
    chosen = [row for row in found if was is None or was in (row.value, row.told, row.failure)]
    if not chosen:
        raise CampaignError(f"no result of {what} is {was}: there {_listed(found)}")
    return chosen


def one_result(found: Sequence[Measurement], what: str, was: float | str | None) -> Measurement:
    """The one result of a string that is meant; see `chosen_results`. Of several that nothing tells apart, the last.

    Raises:
        CampaignError: If there is none, or there are several that differ.
    """
    chosen = chosen_results(found, what, was)
    if len({(row.key, row.context, row.replicate, row.told, row.standard_error) for row in chosen}) > 1:
        ways = ["how it was measured (--context)"] if len({row.context for row in chosen}) > 1 else []
        ways += ["what it was (--was)"] if len({row.told for row in chosen}) > 1 else []
        if any(row.replicate for row in chosen):
            ways.append(f"the label of its well (in place of {what})")
        how = " or ".join(ways) or "undoing its command (seqopt campaign undo)"
        raise CampaignError(f"{what} has several results: there {_listed(chosen)}; say which, by {how}")
    return max(chosen, key=lambda row: (row.discarded is None, row.id))


def _listed(found: Sequence[Measurement]) -> str:
    shown = ", ".join(
        f"{row.told} of {f'well {row.replicate}, ' if row.replicate else ''}command {row.made_by}" for row in found
    )
    return f"{'are' if len(found) > 1 else 'is'} {shown}"


def correction(
    old: Measurement,
    value: float | None,
    failure: str | None,
    standard_error: float | None,
    others: Iterable[Measurement],
    settings: Settings,
    *,
    censored: Censoring | None = None,
    force: bool = False,
    cost: float | None = None,
    wells: int | None = None,
) -> NewMeasurement:
    """A measurement as it should have been.

    Args:
        old: As it is.
        value: The right value; `None` if it failed, or only its standard error was wrong.
        failure: Why it failed, if it did.
        standard_error: The right standard error; where none is given, a value keeps that which it has, and a limit has
            none.
        others: Other measurements, which show how large values are.
        settings: Of the campaign.
        censored: The side of the right value, if that is a limit.
        force: Whether a value is taken that lies far outside all others.
        cost: What it has cost, if that was wrong.
        wells: Of how many wells the right value is, where results are yes or no.

    Raises:
        CampaignError: If nothing would change, or what is given cannot be right.
    """
    if value is None and failure is None and standard_error is None and cost is None:
        raise CampaignError("a correction needs the right value, the reason for a failure, a standard error or a cost")
    if value is None and failure is None:
        value, censored, failure = old.value, old.censored, old.failure
    row = Row(
        ResultEntry(old.string, value=value, failure=failure, standard_error=standard_error, censored=censored), ""
    )
    if value is not None and failure is not None:
        row.wrong("needs a value or a reason for its failure, and not both")
    if value is not None and (problem := unfit(value, settings.transform)):
        row.wrong(problem, repr(value))
    if censored is not None and standard_error is not None:
        row.wrong(NO_ERROR, repr(standard_error))
    if failure is not None and not is_reason(failure):
        row.wrong("is not a reason for a failure: say what happened", failure if failure.strip() else "an empty text")
    if cost is not None and (problem := wrong_cost(cost, settings)):
        row.wrong(problem, repr(cost))
    if not force and not row.problems and value is not None and not settings.yes_no:
        refuse_absurd([row], [one for one in others if one.id != old.id and one.context == old.context], settings)
    if row.problems:
        raise CampaignError(f"nothing was changed: {row.problems[0]}")
    error = standard_error
    if error is None and failure is None and censored is None:
        error = old.standard_error
    made = replace(
        NewMeasurement(**{item.name: getattr(old, item.name) for item in fields(NewMeasurement)}),
        value=value,
        failure=failure,
        standard_error=error,
        censored=censored,
        replaces=old.id,
        cost=old.cost if cost is None else cost,
        # Which was of the evaluation that gave the wrong value.
        details={name: detail for name, detail in old.details.items() if name != "error"}
        | ({} if wells is None else {WELLS: wells}),
    )
    if (made.told, made.value, made.standard_error, made.cost) == (
        old.told,
        old.value,
        old.standard_error,
        old.cost,
    ):
        raise CampaignError(f"{old.string} is {old.told} already: nothing was changed")
    return made


def retried(store: CampaignStore, names: Iterable[str] | None) -> list[NewSuggestion]:
    """Suggestions of what only failed so far, to be measured again.

    Args:
        store: The campaign.
        names: Names of suggestions, or strings, that failed; by default all.

    Raises:
        CampaignError: If one has not failed, is open again, or nothing has failed.
    """
    suggestions = {row.name: row for row in store.suggestions()}
    waiting = {(row.key, row.context) for row in store.open_suggestions()}
    failed = {
        (one.key, one.context): one
        for one in store.observations()
        if one.failures and not one.values and (one.key, one.context) not in waiting
    }
    chosen = list(failed.values())
    if names is not None:
        wanted: dict[Any, Observed] = {}
        for name in names:
            suggestion = suggestions.get(name)
            found = [
                one
                for query, one in failed.items()
                if (suggestion is not None and query == (suggestion.key, suggestion.context)) or one.string == name
            ]
            if not found:
                raise CampaignError(f"{name} has not failed, or has a value or is open by now: nothing was suggested")
            wanted |= {(one.key, one.context): one for one in found}
        chosen = list(wanted.values())
    if not chosen:
        raise CampaignError("nothing has failed that could be tried again")
    return [_again(one, list(suggestions.values())) for one in chosen]


def _again(one: Observed, suggestions: Sequence[Any]) -> NewSuggestion:
    before = [row for row in suggestions if (row.key, row.context) == (one.key, one.context)]
    last = before[-1] if before else None
    return NewSuggestion(
        last.string if last is not None else one.string,
        one.key,
        reason={"kind": RETRY, "failure": one.failures[-1]},
        acquisition=RETRY,
        context=one.context,
        identifier=last.identifier if last is not None else one.measurements[-1].identifier,
        cells=last.cells if last is not None else {},
    )


def changed(settings: Settings, wanted: dict[str, Any], measurements: Sequence[Measurement]) -> Settings:
    """Settings with some of them changed.

    Args:
        settings: As they are.
        wanted: New values by the names in `CHANGEABLE`.
        measurements: What was measured, which has to fit.

    Raises:
        InputError: For a value that cannot be used.
        CampaignError: If nothing would change, or what was measured does not fit.
    """
    from seqopt.data import TRANSFORMS, Direction
    from seqopt.utils.arguments import checked_integer

    unknown = sorted(wanted.keys() - set(CHANGEABLE))
    if unknown:
        raise InputError(f"{', '.join(unknown)} cannot be changed: only {', '.join(CHANGEABLE)}")
    if wanted.get("direction", settings.direction) not in get_args(Direction):
        raise InputError(f"direction is {wanted['direction']!r}; expected one of {', '.join(get_args(Direction))}")
    if settings.yes_no and "transform" in wanted and wanted["transform"] != settings.transform:
        raise InputError(
            "results of this campaign are yes or no, which have no other transform: numbers go into a campaign of "
            "their own"
        )
    if not settings.yes_no and wanted.get("transform", settings.transform) not in (None, *TRANSFORMS[1:]):
        raise InputError(f"transform is {wanted['transform']!r}; expected None, {', '.join(map(repr, TRANSFORMS[1:]))}")
    if "batch_size" in wanted:
        wanted = wanted | {"batch_size": checked_integer("batch_size", wanted["batch_size"], 1)}
    if wanted.get("budget") is not None:
        wanted = wanted | {"budget": check_budget(wanted["budget"], settings.made_contexts())}
    made = replace(settings, **wanted)
    if made == settings:
        raise CampaignError("these are the settings already: nothing was changed")
    check_column_names(made)
    bad = [row for row in measurements if row.value is not None and unfit(row.value, made.transform)]
    if bad:
        shown = ", ".join(f"{row.told} of {row.string}" for row in bad[:3])
        raise CampaignError(
            f"{len(bad)} values have no logarithm: {shown}. Correct or discard them first, or keep the values as they "
            "are. Nothing was changed"
        )
    return made


def _shown(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    return "none" if value is None else str(value)


def note_settings(change: Change, settings: Settings, made: Settings, failing: dict[str, str]) -> None:
    """Write changed settings, and what the history says of them.

    Args:
        change: The command.
        settings: As they were.
        made: As they are from now on.
        failing: Open suggestions that may not be suggested any more, and why.
    """
    what = [
        f"{'batch' if name == 'batch_size' else name} {_shown(settings, name)} -> {_shown(made, name)}"
        for name in CHANGEABLE
        if getattr(settings, name) != getattr(made, name)
    ]
    change.arguments.update(what="; ".join(what), failing=failing)
    change.save_settings(made)
