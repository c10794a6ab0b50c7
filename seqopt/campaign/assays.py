"""Results of another assay: a task of their own, from which the model learns, and what they are worth."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.entries import Remark, Results, first_of
from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError, ModelError
from seqopt.utils.progress import doing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.rows import NewMeasurement, Settings
    from seqopt.campaign.store import CampaignStore
    from seqopt.datasets.sheets import Sheet
    from seqopt.optimizer import Optimizer
    from seqopt.strategies.warm import OtherAssay

FEWEST = 8
"""Results of the campaign below which nothing is said of what another assay is worth."""

MOST = 5_000
"""Values of other assays that a campaign takes: the model looks at each, and what that costs grows with their cube."""

CLEAR = 2.0
"""Standard errors from which on a difference is more than chance."""


@dataclass(frozen=True)
class Worth:
    """What other assays are worth: how well each result of the campaign is predicted from all others, with and without.

    Parameters of the models are those fitted to all results. The model without is the one that the campaign has
    without the assay, which may be of another kind (see `seqopt.strategies.warm.WarmStart`).

    Attributes:
        name: The assay.
        objective: What the campaign measures.
        count: Results of the campaign that are predicted, limits left out; in the order of the models.
        error: Root mean squared error with the assay; NaN where there are too few results.
        error_without: The same without it.
        density: Mean logarithm of the predictive density of a result with the assay, in the user's units.
        density_without: The same without it; NaN for a transform that has no density.
        standard_error: Of the mean difference of both.
        logarithmic: Whether errors are of log10 of the values.
    """

    name: str
    objective: str
    count: int
    error: float = math.nan
    error_without: float = math.nan
    density: float = math.nan
    density_without: float = math.nan
    standard_error: float = math.nan
    logarithmic: bool = False

    @property
    def verdict(self) -> str:
        """``"too few"``, ``"better"``, ``"worse"`` or ``"no difference"``: by the densities."""
        gain = self.density - self.density_without
        if self.count < FEWEST or not math.isfinite(gain):
            return "too few"
        if abs(gain) <= CLEAR * self.standard_error:
            return "no difference"
        return "better" if gain > 0 else "worse"

    def describe(self) -> str:
        """In words.

        Example:
            >>> Worth("old", "pIC50", 5).describe()
            '5 results of pIC50 are too few to tell what old is worth: 8 or more are needed'
            >>> Worth("old", "pIC50", 12, 0.5, 0.8, -0.9, -1.2, 0.1).describe().split("; ")[1]
            'log predictive density -0.90 with and -1.20 without, a difference of +0.30 ± 0.10: old helps'
        """
        if self.verdict == "too few":
            return (
                f"{self.count} results of {self.objective} are too few to tell what {self.name} is worth: {FEWEST} or "
                "more are needed"
            )
        meant = {
            "better": f"{self.name} helps",
            "worse": f"predictions are worse with {self.name}: take it back (seqopt campaign undo)",
            "no difference": f"no more than chance may make, so that {self.count} results cannot tell",
        }[self.verdict]
        scale = " of log10" if self.logarithmic else ""
        gain = self.density - self.density_without
        text = (
            f"each of {self.count} results of {self.objective}, predicted from the others, is off by {self.error:.3g} "
            f"with {self.name} and by {self.error_without:.3g} without (root mean square{scale}); log predictive "
            f"density {self.density:.2f} with and {self.density_without:.2f} without, a difference of {gain:+.2f} ± "
            f"{self.standard_error:.2f}: {meant}"
        )
        return text


@dataclass(frozen=True)
class Imported:
    """What was taken of a file of another assay.

    Attributes:
        name: The assay.
        taken: Strings with a value.
        common: How many of these have a result in the campaign, too.
        source: The file.
        worth: What the values are worth.
        empty: Rows without a value, failures among them.
        warnings: What is worth a second look.
        problems: What is wrong with rows that were left out.
    """

    name: str
    taken: int
    common: int
    source: str
    worth: Worth
    empty: int = 0
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def describe(self) -> str:
        """In words, without what they are worth."""
        return (
            f"{self.taken:,} values of {self.name}, {self.common:,} of them of strings with a result in this campaign; "
            "the model learns from them, and they are no results"
        )


def import_assay(
    campaign: Campaign,
    path: str | os.PathLike[str],
    name: str,
    *,
    value_column: str | None,
    string_column: str | None,
    decimal_comma: bool | None,
    replicates: bool,
    partial: bool,
) -> Imported:
    """See `seqopt.campaign.Campaign.import_assay`."""
    from seqopt.strategies.warm import OtherAssay

    store, settings = campaign.store, campaign.store.settings
    name = _checked_name(name, settings)
    known = store.assays()
    with doing(f"reading {Path(path).name}"):
        sheet, results = _read(campaign, path, value_column, string_column, decimal_comma, replicates=replicates)
    state, problems = store.state, list(results.problems)
    limits = [row for row in results.records if row.censored is not None]
    hint = "leave the row out: of another assay, values alone are taken"
    problems += [Remark("is a limit", results.source, row.line, value=row.string, hint=hint) for row in limits]
    values: dict[str, list[NewMeasurement]] = {}
    for row in results.records:
        if row.value is not None and row.censored is None:
            values.setdefault(row.key, []).append(row)
    shown = first_of(problems)
    if problems and not (partial and values):
        raise CampaignError("nothing was recorded:\n" + "\n".join(f"  {text}" for text in shown))
    if twice := [key for key in values if key in known.get(name, {})]:
        number = known[name][twice[0]][1]
        raise CampaignError(
            f"nothing was recorded: {len(twice):,} of {len(values):,} strings have a value of {name} already, such as "
            f"{values[twice[0]][0].string}, by command {number}: undo that first (seqopt campaign undo {number}), or "
            "give these values another name"
        )
    total = len(values) + sum(map(len, known.values()))
    if total > MOST:
        raise CampaignError(
            f"nothing was recorded: with these there would be {total:,} values of other assays, and {MOST:,} are the "
            "most that a model looks at: take those of the strings that matter"
        )
    found = {key: sum(row.value or 0.0 for row in rows) / len(rows) for key, rows in values.items()}
    before = {one: {key: value for key, (value, _) in rows.items()} for one, rows in known.items()}
    try:
        # Whether the values that are there now would do is looked at first: with others they may.
        OtherAssay(name, before.get(name, {}) | found)
        after = [OtherAssay(one, rows) for one, rows in {**before, name: before.get(name, {}) | found}.items()]
        with_them = campaign._new_session(after).optimizer
        without = campaign._new_session(known_assays(store)).optimizer
    except InputError as error:
        raise CampaignError(f"nothing was recorded: {error}") from error
    own = {row.key for row in store.measurements() if row.value is not None}
    worth = worth_of(name, settings, with_them, without)
    arguments = {"file": sheet.source, "assay": name, "what": f"{len(found):,} values of {name}"}
    rows = [
        {
            "string": rows[0].string,
            "key": key,
            "value": float(found[key]),
            "source": sheet.source,
            "line": rows[0].line,
        }
        for key, rows in values.items()
    ]
    with store.transaction("import", arguments, expected_state=state) as change:
        change.save_assay(name, rows)
    empty = len(results.unfilled) + sum(row.value is None for row in results.records)
    notes = tuple(map(str, results.warnings))
    return Imported(name, len(found), len(own & found.keys()), sheet.source, worth, empty, notes, tuple(shown))


def known_assays(store: CampaignStore) -> list[OtherAssay]:
    """Other assays of a campaign, in the order in which they came."""
    kept = store.assays()
    if not kept:
        return []
    from seqopt.strategies.warm import OtherAssay

    return [OtherAssay(name, {key: value for key, (value, _) in rows.items()}) for name, rows in kept.items()]


def assay_worth(campaign: Campaign, name: str) -> Worth:
    """See `seqopt.campaign.Campaign.assay_worth`."""
    known = known_assays(campaign.store)
    if name not in [one.name for one in known]:
        names = ", ".join(one.name for one in known) or "none"
        raise InputError(f"there is no other assay {name!r} in this campaign; it has {names}")
    others = [one for one in known if one.name != name]
    with_them, without = campaign._new_session(known).optimizer, campaign._new_session(others).optimizer
    return worth_of(name, campaign.store.settings, with_them, without)


def worth_of(name: str, settings: Settings, with_them: Optimizer, without: Optimizer) -> Worth:
    """What another assay is worth: see `Worth`.

    Args:
        name: The assay.
        settings: Of the campaign.
        with_them: An optimiser that has been told all results of the campaign, and knows the assay.
        without: One that does not know it.
    """
    import numpy as np

    from seqopt.campaign.reasons import measured_values

    known = sum(side is None for _, side in measured_values(without).values())
    if known < FEWEST:
        return Worth(name, settings.objective, known)
    logarithmic = settings.transform == "log10"
    try:
        with doing(f"working out what {name} is worth"):
            errors, densities = _predicted(with_them, logarithmic)
            errors_without, densities_without = _predicted(without, logarithmic)
    except ModelError:
        return Worth(name, settings.objective, 0)
    gains = densities - densities_without
    return Worth(
        name,
        settings.objective,
        len(errors),
        float(np.sqrt(np.mean(errors**2))),
        float(np.sqrt(np.mean(errors_without**2))),
        float(densities.mean()),
        float(densities_without.mean()),
        float(gains.std(ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else math.nan,
        logarithmic,
    )


def _predicted(optimizer: Optimizer, logarithmic: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Errors, and logarithms of the density, of each result of the target, predicted from all others."""
    import numpy as np
    from scipy.stats import norm

    from seqopt.data import LearnedTransform, context_of
    from seqopt.data.transforms import log_slopes
    from seqopt.models.gaussian import GaussianSurrogate

    surrogate = optimizer.fitted
    if not isinstance(surrogate, GaussianSurrogate):
        raise ModelError(f"{type(surrogate).__name__} cannot predict a result from the others")
    target = () if optimizer.contexts is None else optimizer.contexts.target
    found = surrogate.leave_one_out()
    own = np.array([context_of(item) in ((), target) for item in surrogate.fitted.keys]) & ~np.isnan(found.values)
    transform: Any = optimizer.transform
    if isinstance(transform, LearnedTransform):
        transform = transform.current
    sign = optimizer.outcome.sign
    seen, mean, std = (np.asarray(part, dtype=np.float64)[own] for part in (found.values, found.mean, found.std))
    values = np.array([transform.inverse(sign * number) for number in seen.tolist()])
    middles = np.array([transform.inverse(sign * number) for number in mean.tolist()])
    errors = sign * (mean - seen) if logarithmic else middles - values
    densities = norm.logpdf(seen, mean, std)
    try:
        densities += [log_slopes(transform, values[place : place + 1]) for place in range(len(values))]
    except InputError:
        densities[:] = math.nan
    return errors, densities


def _checked_name(name: str, settings: Settings) -> str:
    name = name.strip()
    if not name:
        raise InputError("the assay has no name: say --assay selectivity_2019, say")
    if name == settings.objective:
        raise InputError(
            f"{name} is what this campaign measures: import its results without --assay, or give the assay another name"
        )
    return name


def _read(
    campaign: Campaign,
    path: str | os.PathLike[str],
    value_column: str | None,
    string_column: str | None,
    decimal_comma: bool | None,
    *,
    replicates: bool,
) -> tuple[Sheet, Results]:
    """A table, and what it says; its unit, its ways to measure and what was measured besides are its own affair."""
    from dataclasses import replace

    from seqopt.campaign.results import expected_names, results_of_sheet
    from seqopt.datasets.sheets import read_sheet

    settings, naming = campaign.store.settings, campaign._recorder.naming
    plain = replace(settings, unit=None, contexts=None, constraints=[], transform=None, budget=None)
    usual = settings.decimal_comma
    sheet = read_sheet(
        Path(path),
        expected=expected_names(plain, value_column, string_column),
        decimal_comma=usual if decimal_comma is None else decimal_comma,
    )
    results = results_of_sheet(
        sheet,
        sheet.source,
        plain,
        naming.key,
        naming.lookup(),
        value_column=value_column,
        string_column=string_column,
        replicates=replicates,
        history=True,
        decimal_comma=usual and sheet.may_have_commas if decimal_comma is None else decimal_comma,
        force=True,
        by_option=True,
    )
    return sheet, results
