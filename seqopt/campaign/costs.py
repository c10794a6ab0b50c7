"""What measurements of a campaign cost, where there are several ways to measure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqopt.campaign.columns import has_costs
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.rows import Measurement, NewMeasurement, Settings, Suggestion
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign.store import CampaignStore
    from seqopt.data import Context, Contexts

ROUNDING = 1e-9
"""Share of a budget that sums of costs may exceed it by."""


WHAT_TO_DO = "Raise it (seqopt campaign set --budget-cost), or withdraw what is open"


@dataclass(frozen=True)
class Paid:
    """What one way to measure has cost.

    Attributes:
        way: How, in words: ``"docking"``.
        count: Measurements that were paid for, failures and replicates among them.
        spent: What they cost.
        open: Suggestions that await a result.
        committed: What those will cost.
    """

    way: str
    count: int
    spent: float
    open: int
    committed: float


@dataclass(frozen=True)
class Costs:
    """What a campaign has cost so far.

    What was imported from elsewhere, or is the column of a screen, was paid for before, and does not count.

    Attributes:
        ways: One for each way to measure, in the order of the campaign.
        budget: What may be spent; `None` for no limit.
    """

    ways: tuple[Paid, ...]
    budget: float | None = None

    @property
    def spent(self) -> float:
        """Of all ways."""
        return sum(one.spent for one in self.ways)

    @property
    def committed(self) -> float:
        """What open suggestions will cost."""
        return sum(one.committed for one in self.ways)

    @property
    def left(self) -> float | None:
        """What is neither spent nor committed; `None` without a budget."""
        return None if self.budget is None else max(self.budget - self.spent - self.committed, 0.0)

    def describe(self) -> str:
        """In words.

        Example:
            >>> Costs((Paid("docking", 40, 0.4, 0, 0.0), Paid("assay", 3, 3.0, 2, 2.0)), budget=10.0).describe()
            'spent 3.4 of 10 (docking 0.4 for 40, assay 3 for 3); open suggestions cost 2; 4.6 is left'
        """
        of = "" if self.budget is None else f" of {self.budget:,.6g}"
        ways = ", ".join(f"{one.way} {one.spent:,.6g} for {one.count:,}" for one in self.ways if one.count)
        text = f"spent {self.spent:,.6g}{of}" + (f" ({ways})" if ways else "")
        if self.committed:
            text += f"; open suggestions cost {self.committed:,.6g}"
        return text if self.left is None else f"{text}; {self.left:,.6g} is left"


def way_of(context: Context) -> str:
    """How something is measured, in a word where that is enough.

    Example:
        >>> way_of((("fidelity", "docking"),)), way_of((("fidelity", "assay"), ("plate", "P1")))
        ('docking', 'assay, P1')
    """
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for _, value in context)


def cost_of(context: Context, contexts: Contexts) -> float:
    """What a measurement is said to cost."""
    from seqopt.data import Query

    return contexts.cost(Query("any", context))


def stated_costs(suggestions: Sequence[Suggestion], settings: Settings) -> list[float] | None:
    """What suggestions are said to cost; `None` where tables have no column of that."""
    contexts = settings.made_contexts() if has_costs(settings) else None
    return None if contexts is None else [cost_of(row.context, contexts) for row in suggestions]


def costs_of(measurements: Sequence[NewMeasurement], settings: Settings) -> list[float]:
    """What measurements have cost; nothing where they have no costs."""
    contexts = settings.made_contexts()
    if contexts is None:
        return [0.0 for _ in measurements]
    return [cost_of(row.context, contexts) if row.cost is None else row.cost for row in measurements]


def paid_costs(
    settings: Settings,
    measurements: Sequence[Measurement],
    waiting: Sequence[Suggestion],
    imported: Collection[int] = (),
    first: Mapping[int, int] | None = None,
) -> Costs | None:
    """What a campaign has cost; `None` where measurements have no costs.

    Args:
        settings: Of the campaign.
        measurements: What was measured by all that is known, discarded results among them.
        waiting: Open suggestions.
        imported: Commands that brought in results from elsewhere.
        first: The commands that first recorded what was corrected since, by the numbers of the corrections.
    """
    contexts = settings.made_contexts()
    if contexts is None:
        return None
    found: dict[Context, list[float]] = {context: [0, 0.0, 0, 0.0] for context in contexts.possible}
    nothing = [0, 0.0, 0, 0.0]
    first = first or {}
    for row in measurements:
        # Values of further outcomes alone come with the measurement that they complete.
        if first.get(row.id, row.made_by) in imported or (row.value is None and row.failure is None):
            continue
        paid = found.setdefault(row.context, list(nothing))
        paid[0] += 1
        paid[1] += cost_of(row.context, contexts) if row.cost is None else row.cost
    for one in waiting:
        paid = found.setdefault(one.context, list(nothing))
        paid[2] += 1
        paid[3] += cost_of(one.context, contexts)
    ways = (
        Paid(way_of(context), int(count), spent, int(awaited), committed)
        for context, (count, spent, awaited, committed) in found.items()
    )
    return Costs(tuple(ways), settings.budget)


def costs_so_far(store: CampaignStore) -> Costs | None:
    """What a campaign has cost so far; `None` where measurements have no costs."""
    with store.reading():
        settings = store.settings
        # Of plates, wells are counted.
        if settings.contexts is None or settings.plates:
            return None
        imported = {command.id for command in store.history() if command.kind == "import"}
        rows = store.measurements(discarded=True)
        return paid_costs(settings, rows, store.open_suggestions(), imported, store.corrected())


def costs_by_string(store: CampaignStore) -> dict[tuple[str, Context], float] | None:
    """What was paid for each string in each way, as `costs_so_far` counts; `None` where measurements have no costs."""
    with store.reading():
        settings = store.settings
        contexts = None if settings.plates else settings.made_contexts()
        if contexts is None:
            return None
        imported = {command.id for command in store.history() if command.kind == "import"}
        first = store.corrected()
        found: dict[tuple[str, Context], float] = {}
        for row in store.measurements(discarded=True):
            if first.get(row.id, row.made_by) in imported or (row.value is None and row.failure is None):
                continue
            cost = cost_of(row.context, contexts) if row.cost is None else row.cost
            found[row.key, row.context] = found.get((row.key, row.context), 0.0) + cost
    return found


def check_budget(budget: float | None, contexts: Contexts | None) -> float | None:
    """A budget that may be used.

    Raises:
        InputError: If measurements have no costs, or it does not pay for one of the target.
    """
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < float("inf"):
        raise InputError(f"the budget is {budget!r}; expected a positive number")
    if contexts is None:
        raise InputError(
            "a budget of costs goes with measurements that have costs: give them too (--fidelity docking:0.01 "
            "--fidelity assay:1)"
        )
    if contexts.open is not None:
        raise InputError(f"a budget of costs does not go with {contexts.open}s: of these, wells are counted")
    # A target that is what several ways have in common is measured by any of them.
    way = min(contexts.possible, key=lambda one: cost_of(one, contexts)) if contexts.latent else contexts.target
    least = cost_of(way, contexts)
    meant = "the cheapest measurement" if contexts.latent else "one measurement of the target"
    if budget < least:
        raise InputError(
            f"a budget of {budget:g} does not pay for {meant} ({way_of(way)}), "
            f"which costs {least:g}: give at least {least:g}, or state costs in the unit of the budget"
        )
    return float(budget)


def refuse_unpayable(costs: Costs, contexts: Contexts, only: Context | None) -> None:
    """Refuse to suggest what cannot be paid for any more.

    Raises:
        CampaignError: If what is left pays for none of what may be measured; it says what to do.
    """
    if costs.left is None:
        return
    meant = contexts.possible if only is None else (only,)
    least = min(meant, key=lambda context: cost_of(context, contexts))
    if cost_of(least, contexts) > costs.left + ROUNDING * (costs.budget or 0.0):
        raise CampaignError(
            f"what is left of the budget does not pay for another measurement: {way_of(least)} costs "
            f"{cost_of(least, contexts):g}, and {costs.describe()}. {WHAT_TO_DO}"
        )


def short_of_money(costs: Costs | None, contexts: Contexts | None, only: Context | None) -> str:
    """That a batch has fewer measurements than were asked for because of the budget; empty where it is not the reason.

    It is where what is left, after one of the cheapest measurements more, would not pay for the dearest: a first screen
    leaves what one measurement of the target costs.

    Args:
        costs: With the batch among what is committed.
        contexts: The ways to measure.
        only: The one that may be suggested; `None` for all.

    Example:
        >>> from seqopt.data import Contexts
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
        >>> costs = Costs((Paid("docking", 4, 0.4, 0, 0.0), Paid("assay", 2, 2.0, 1, 1.0)), budget=4.0)
        >>> short_of_money(costs, contexts, None).split("; ")[-1]
        '0.6 is left, and assay costs 1. Raise it (seqopt campaign set --budget-cost)'
    """
    if costs is None or contexts is None or costs.left is None:
        return ""
    meant = contexts.possible if only is None else (only,)
    prices = {context: cost_of(context, contexts) for context in meant}
    dearest = max(prices, key=lambda context: prices[context])
    more = min(prices.values()) if only is None else 0.0
    if costs.left - more + ROUNDING * (costs.budget or 0.0) >= prices[dearest]:
        return ""
    way = way_of(dearest)
    then = f"which is kept for one {way}" if costs.left >= prices[dearest] else f"and {way} costs {prices[dearest]:g}"
    return f"the budget does not pay for more: {costs.describe()}, {then}. Raise it (seqopt campaign set --budget-cost)"


def refuse_rest(costs: Costs, contexts: Contexts) -> None:
    """Say so where nothing was found to suggest since only cheap measurements can be paid for.

    Raises:
        CampaignError: If what is left does not pay for the dearest measurement.
    """
    dearest = max(contexts.possible, key=lambda context: cost_of(context, contexts))
    if costs.left is not None and cost_of(dearest, contexts) > costs.left + ROUNDING * (costs.budget or 0.0):
        raise CampaignError(
            f"what is left of the budget does not pay for another measurement that would tell anything: "
            f"{way_of(dearest)} costs {cost_of(dearest, contexts):g}, and {costs.describe()}. {WHAT_TO_DO}"
        )
