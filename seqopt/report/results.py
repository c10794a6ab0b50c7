"""A search as a report sees it, and what is read off its table of evaluations.

`Run` is the common view of a run folder (`read_run`) and of a campaign (`seqopt.report.campaigns.read_campaign`).
"""

from __future__ import annotations

import json
import logging
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from seqopt.campaign.leads import FROM_LEAD
from seqopt.data import COLUMNS, Contexts, central, interval
from seqopt.data.missed import Judged, latest
from seqopt.data.replay import Replay
from seqopt.data.transforms import LEARNED
from seqopt.datasets.sheets import restore
from seqopt.errors import InputError, RunFolderError
from seqopt.report.formats import NumberFormat

logger = logging.getLogger(__name__)

ROUTES_CSV = "routes.csv"
"""How the products of a run are made."""

ROUTE_COLUMNS = ("reaction", "reagents", "reagents_smiles", "reagents_price")
"""What it says of each; see `seqopt.campaign.routes`."""

TEXT_COLUMNS = ("string", "key", "status", "error", "name", "why", "nearest", "identifier", "censored", "note")
NUMBER_COLUMNS = (
    *("number", "value", "batch", "predicted_mean", "predicted_std", "acquisition", "seconds"),
    *("predicted", "predicted_low", "predicted_high"),
    *("similarity", "measurements", "standard_error", FROM_LEAD),
)


CONTEXT_FACTS = ("possible", "target", "costs", "open", "open_cost")
"""What the description of contexts holds."""

EVALUATIONS, SUMMARY = "evaluations.csv", "summary.json"

CAMPAIGN_IN_RUN = "campaign.seqopt"
"""The campaign's file in a folder of a run."""


@dataclass(frozen=True)
class Run:
    """A search, read from a run folder or from a campaign.

    Attributes:
        folder: Where it lies.
        evaluations: See `tidy_evaluations`.
        status: ``"finished"``, ``"interrupted"``, ``"running"``, or empty when nothing says.
        settings: What the search was told.
        versions: Of the packages that decided its course.
        steps: One mapping per step, as in ``summary.json``.
        total_seconds: Time of the whole run, `None` when unknown.
        campaign: Name of the campaign; empty for a run folder.
        model: The surrogate's state when it last made suggestions, as `Surrogate.state_dict` gave it; `None` where it
            was not kept.
        replay: Of a column of known results, how much of the best was found; `None` elsewhere.
        measurements: One row per measurement, with columns ``key``, ``value`` and ``standard_error`` (NaN where
            unknown), where ``evaluations`` has means of several; else `None`.
        missing: What is not there and why, a sentence each.
        remarks: What its owner should know, a sentence each.
        cells: By key, what the library said of a string when it was suggested, by column.
        reasons: By key, why a string was suggested, as the campaign keeps it.
        candidates: What tells the candidates of a campaign's library apart, as `seqopt.campaign.library.packed` gives
            it; `None` where all rows of the library are candidates.
        excluded: Keys of strings that shall not be suggested.
        everything: Where strings were measured in several ways, one row for each measurement in any of them, with the
            columns ``context`` (a text) and ``cost``, too; else `None`.
        learned: What the model has learned of each way: see `seqopt.optimizer.learned.learned_contexts`.
        recommended: The string that the search takes for the best by its target, and what is predicted of it: see
            `seqopt.optimizer.learned.recommended`; empty where that was not kept.
        added: Files that were added to the library: path, column of strings, column of identifiers (or empty).
    """

    folder: Path
    evaluations: pd.DataFrame
    status: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    total_seconds: float | None = None
    campaign: str = ""
    model: dict[str, Any] | None = None
    measurements: pd.DataFrame | None = None
    replay: Replay | None = None
    missing: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    cells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    candidates: bytes | None = None
    excluded: frozenset[str] = frozenset()
    added: tuple[tuple[str, str, str], ...] = ()
    everything: pd.DataFrame | None = None
    learned: tuple[dict[str, Any], ...] = ()
    recommended: Mapping[str, Any] = field(default_factory=dict)

    @property
    def yes_no(self) -> bool:
        """Whether results are yes or no: values are shares of wells that were hits."""
        return self.settings.get("transform") == "yes/no"

    @property
    def direction(self) -> str:
        """``"maximize"`` unless the settings say ``"minimize"``."""
        return "minimize" if self.settings.get("direction") == "minimize" else "maximize"


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Read ``evaluations.csv`` and ``summary.json``.

    Only ``evaluations.csv`` with a column ``string`` is indispensable; what else is missing is said in `Run.missing`.

    Args:
        folder: The run folder.

    Raises:
        RunFolderError: If ``evaluations.csv`` is missing or damaged.
    """
    folder = Path(folder)
    settings = _mapping(_read_summary(folder / SUMMARY)[0].get("settings"))
    contexts = _contexts(settings.get("contexts"))
    evaluations, everything = _read_evaluations(
        folder / EVALUATIONS, contexts, [one.column for one in terms_of(settings)]
    )
    others = len(everything) - len(evaluations)
    remarks = (of_other_contexts(others, contexts),) if others else ()
    if contexts and not contexts.get("target"):
        remarks = (of_latent(contexts),)
    found = _summarized(folder, evaluations)
    routes = _routes(folder / ROUTES_CSV, evaluations)
    return replace(
        found, remarks=(*_missed(found), *remarks), everything=everything if contexts else None, cells=routes
    )


def _routes(path: Path, evaluations: pd.DataFrame) -> dict[str, dict[str, str]]:
    """How products are made, by key, of a run that searched reactions and building blocks; empty for others."""
    if not path.is_file():
        return {}
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows = table[["smiles", *(name for name in ROUTE_COLUMNS if name in table)]].to_dict("records")
    except (OSError, ValueError, KeyError) as error:
        logger.warning("cannot read %s, so the page does not say how products are made: %s", path, error)
        return {}
    told = {str(row.pop("smiles")): {str(name): str(cell) for name, cell in row.items()} for row in rows}
    pairs = zip(evaluations["key"], evaluations["string"], strict=True)
    return {str(key): told[string] for key, string in pairs if string in told}


def _missed(run: Run) -> tuple[str, ...]:
    """That the results of the last batch are not what was predicted of them, where it is so."""
    rows = run.evaluations[run.evaluations["measured"] & (limit_of(run.evaluations) == "")]
    table = rows[["batch", "predicted_low", "predicted", "predicted_high", "value"]].dropna()
    judged = [Judged(int(batch), *map(float, numbers)) for batch, *numbers in table.itertuples(index=False)]
    learned = run.settings.get("transform") in LEARNED
    warning = latest(judged, -1.0 if run.direction == "minimize" else 1.0).warning(learned=learned)
    return (f"{warning[:1].upper()}{warning[1:]}.",) if warning else ()


def read_what_is_there(folder: str | os.PathLike[str]) -> Run:
    """As `read_run`, but ``evaluations.csv`` may be missing or damaged where ``summary.json`` is there.

    Raises:
        RunFolderError: If there is neither.
    """
    folder = Path(folder)
    try:
        return read_run(folder)
    except RunFolderError as error:
        if not (folder / SUMMARY).is_file():
            raise
        return _summarized(folder, tidy_evaluations(pd.DataFrame({"string": []})), (f"{error}.",))


def _read_evaluations(
    table: Path, contexts: Mapping[str, Any], further: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What was measured as the target of some contexts, and everything."""
    try:
        # Strings such as "NA" and "None" are strings here, not gaps in the table.
        raw = pd.read_csv(table, dtype=str, keep_default_na=False, encoding="utf-8", encoding_errors="replace")
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{table} is missing: give the folder of a run (what seqopt search --out named)"
        ) from error
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot read {table}: {error}. Resuming the run writes it afresh") from error
    if "identifier" in raw:
        raw["identifier"] = raw["identifier"].map(restore)
    meant = of_target(raw, contexts)
    try:
        return tidy_evaluations(meant, further), with_contexts(raw, contexts)
    except InputError as error:
        raise RunFolderError(f"{table}: {error}") from error


class KeptTerm(NamedTuple):
    """A score of a weighted sum, as a run keeps it.

    Attributes:
        column: Its name, that of its column in the tables.
        weight: Units of the sum for one unit of the score.
        unit: Of the score; may be empty.
    """

    column: str
    weight: float
    unit: str


def terms_of(settings: Mapping[str, Any]) -> list[KeptTerm]:
    """The scores of the weighted sum that a run searched by; a file that was edited may hold anything.

    Example:
        >>> terms_of({"terms": [["mfe", 1.0, "kcal/mol"], ["cai:human", -5.0, ""], 3]})[1]
        KeptTerm(column='cai:human', weight=-5.0, unit='')
    """
    found = []
    for one in _listed(settings.get("terms")):
        name, weight, unit = (*one, None, None, None)[:3] if isinstance(one, list) else (None, None, None)
        number = as_number(weight)
        if isinstance(name, str) and number is not None and name not in (*TEXT_COLUMNS, *NUMBER_COLUMNS):
            found.append(KeptTerm(name, number, str(unit or "")))
    return found


def _contexts(kept: object) -> dict[str, Any]:
    """The description of contexts, as a summary has it; a file that was edited may hold anything."""
    facts = _mapping(kept)
    try:
        Contexts(**{name: facts[name] for name in CONTEXT_FACTS if name in facts})
    except (TypeError, ValueError, InputError):
        return {}
    return facts


def context_names(contexts: Mapping[str, Any]) -> list[str]:
    """What contexts differ in, by their description."""
    found = {str(name) for one in contexts.get("possible", ()) for name, _ in one}
    return sorted(found | ({str(contexts["open"])} if contexts.get("open") else set()))


def with_contexts(evaluations: pd.DataFrame, contexts: Mapping[str, Any]) -> pd.DataFrame:
    """A tidy table of all measurements, with their contexts as texts and their costs.

    Args:
        evaluations: The columns of ``evaluations.csv``, as numbers or as text.
        contexts: Description of the contexts; empty if there are none.
    """
    names = context_names(contexts)
    columns = {name: name if name not in COLUMNS else f"{name} (context)" for name in names}
    table = tidy_evaluations(evaluations)
    order = evaluations.reset_index(drop=True)
    if "number" in order:
        numbers = pd.to_numeric(order["number"], errors="coerce")
        order = order.iloc[np.argsort(numbers.fillna(np.inf), kind="stable")].reset_index(drop=True)
    texts = [
        ", ".join(
            (f"{name} " if len(names) > 1 else "") + context_text(row[columns[name]])
            for name in names
            if columns[name] in row and not _is_gap(row[columns[name]]) and row[columns[name]] != ""
        )
        for row in order.to_dict("records")
    ]
    costs = [as_number(cost) for cost in _column(order, "cost")]
    table["context"] = pd.Series(texts, dtype=object)
    table["cost"] = np.array([0.0 if cost is None else cost for cost in costs], dtype=np.float64)
    return table


def context_text(value: object) -> str:
    """A part of a context as pages write it.

    Example:
        >>> context_text("docking"), context_text("0.5"), context_text(1.0)
        ('docking', '0.5', '1')
    """
    number = as_number(value)
    return str(value) if number is None else f"{number:g}"


def of_target(evaluations: pd.DataFrame, contexts: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that were measured as the target is; what was measured in other ways is not comparable.

    Args:
        evaluations: The columns of ``evaluations.csv``, as numbers or as text.
        contexts: Description of the contexts, as `seqopt.data.Contexts.config` gives it; empty if there are none.
    """
    meant = pd.Series(True, index=evaluations.index)
    for name, value in contexts.get("target", ()):
        column = name if name not in COLUMNS else f"{name} (context)"
        if column in evaluations:
            meant &= evaluations[column].map(lambda cell, value=value: cell == value or as_number(cell) == value)
    return evaluations[meant]


def of_other_contexts(count: int, contexts: Mapping[str, Any]) -> str:
    """That some measurements are not shown among the others."""
    target = ", ".join(f"{name} {value}" for name, value in contexts.get("target", ()))
    return (
        f"Shown is what was measured with {target}; {count} measurements were made in other ways. The search learned "
        "from all of them; the model and the map of this page leave the others out."
    )


def of_latent(contexts: Mapping[str, Any]) -> str:
    """That values of several contexts stand side by side."""
    names = " and ".join(context_names(contexts))
    return (
        f"The search is for what every {names} has in common, which no value shows by itself: the best value owes "
        f"something to its {names}. The model and the map of this page do not tell one {names} from another; the "
        "search does."
    )


def _summarized(folder: Path, evaluations: pd.DataFrame, missing: tuple[str, ...] = ()) -> Run:
    summary, problem = _read_summary(folder / SUMMARY)
    timings = _mapping(summary.get("timings"))
    settings = _mapping(summary.get("settings"))
    return Run(
        folder=folder,
        evaluations=evaluations,
        status=str(summary.get("status") or ""),
        settings=settings,
        versions=_mapping(summary.get("versions")) or _mapping(settings.get("versions")),
        steps=[step for step in _listed(summary.get("steps")) if isinstance(step, dict)],
        total_seconds=as_number(timings.get("total_seconds", timings.get("total"))),
        replay=_replay(summary.get("replay")),
        recommended=_mapping(summary.get("recommended")),
        learned=tuple(one for one in _listed(summary.get("learned")) if isinstance(one, dict)),
        missing=(*missing, *([problem] if problem else [])),
    )


def _replay(kept: object) -> Replay | None:
    """What a summary says of known results; a file that was edited may hold anything."""
    try:
        return None if kept is None else Replay.from_json(_mapping(kept))
    except (KeyError, TypeError, ValueError):
        return None


def _read_summary(path: Path) -> tuple[dict[str, Any], str]:
    """The summary, and what is wrong with it."""
    without = "settings, versions, times and the parameters of the model are not known"
    try:
        return _mapping(json.loads(path.read_text(encoding="utf-8"))), ""
    except FileNotFoundError:
        return {}, f"{path.name} is missing: {without}. Resuming the run writes it afresh."
    except (OSError, ValueError) as error:
        return {}, f"{path.name} cannot be read ({error}): {without}. Resuming the run writes it afresh."


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_number(value: object) -> float | None:
    """A finite float, or `None` for anything that is none.

    Example:
        >>> as_number("1.5"), as_number("high"), as_number(None), as_number(float("nan"))
        (1.5, None, None, None)
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def option_of(command: str, *names: str) -> str:
    """The value of an option in a command line, empty if it is not there.

    Example:
        >>> option_of("seqopt search 'my pool.csv' --surrogate=ssk", "--surrogate")
        'ssk'
        >>> option_of("seqopt expressions -d 'two words.csv'", "--data", "-d"), option_of("an 'open quote", "-d")
        ('two words.csv', '')
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else (words[index + 1 : index + 2] or [""])[0]
    return ""


def tidy_evaluations(evaluations: pd.DataFrame, further: Sequence[str] = ()) -> pd.DataFrame:
    """A table of evaluations with every column there and of its type.

    Args:
        evaluations: The columns of ``evaluations.csv``, as numbers or as text; all but ``string`` may be missing.
        further: Names of further columns of numbers that are kept.

    Returns:
        A new table in the order of ``number``, with `TEXT_COLUMNS` as text and `NUMBER_COLUMNS` as float64 (NaN where
        empty), and a column ``measured``: whether the row is a success with a finite value. A missing ``key`` is the
        string, a missing ``batch`` 0, a missing ``number`` the row's position from 1.

    Raises:
        InputError: If there is no column ``string``.
    """
    if "string" not in evaluations:
        raise InputError(f"no column 'string' among {', '.join(map(repr, evaluations.columns)) or 'no columns'}")
    table = pd.DataFrame(index=range(len(evaluations)))
    for name in TEXT_COLUMNS:
        texts = ["" if _is_gap(text) else str(text) for text in _column(evaluations, name)]
        table[name] = pd.Series(texts, dtype=object)
    for name in (*NUMBER_COLUMNS, *further):
        numbers = (as_number(value) for value in _column(evaluations, name))
        table[name] = np.array([math.nan if number is None else number for number in numbers], dtype=np.float64)
    table["key"] = table["key"].where(table["key"] != "", table["string"])
    table["batch"] = table["batch"].fillna(0.0)
    table["number"] = table["number"].fillna(pd.Series(np.arange(1.0, len(table) + 1)))
    table["measured"] = table["status"].isin(["ok", ""]) & table["value"].notna()
    return table.sort_values("number", kind="stable", ignore_index=True)


def _column(table: pd.DataFrame, name: str) -> list[object]:
    return list(table[name]) if name in table else [None] * len(table)


def _is_gap(text: object) -> bool:
    return text is None or (isinstance(text, float) and math.isnan(text))


def best_so_far(evaluations: pd.DataFrame, direction: str) -> pd.Series:
    """Best measured value up to and including each row; NaN before the first success.

    Args:
        evaluations: See `tidy_evaluations`.
        direction: ``"maximize"`` or ``"minimize"``.
    """
    values = evaluations["value"].where(evaluations["measured"] & ~only_worse(evaluations, direction))
    return (values.cummin() if direction == "minimize" else values.cummax()).ffill()


def limit_of(evaluations: pd.DataFrame) -> pd.Series:
    """Of each row the side of its limit, ``"<"`` or ``">"``, empty where the value is known."""
    if "censored" not in evaluations:
        return pd.Series("", index=evaluations.index, dtype=object)
    return evaluations["censored"]


def only_worse(evaluations: pd.DataFrame, direction: str) -> pd.Series:
    """Which rows are only known to be worse than a limit."""
    return limit_of(evaluations) == (">" if direction == "minimize" else "<")


def ranked(evaluations: pd.DataFrame, direction: str) -> pd.DataFrame:
    """Measured rows, best first, each key once.

    A key measured several times is ranked by its best value; the column ``measurements`` says how many there were,
    unless the table does. Equal values keep the order in which they were measured, but for limits: what is better than
    one comes before a value that equals it, and what is only known to be worse than one comes last.
    """
    measured = evaluations[evaluations["measured"]]
    counts = measured["measurements"].fillna(measured["key"].map(measured["key"].value_counts()))
    measured = measured.assign(measurements=counts).sort_values(
        "value", ascending=direction == "minimize", kind="stable"
    )
    limits = limit_of(measured) != ""
    if limits.any():
        worse = only_worse(measured, direction)
        sign = 1.0 if direction == "minimize" else -1.0
        order = np.lexsort((~(limits & ~worse), sign * measured["value"], worse))
        measured = measured.iloc[order]
    return measured.drop_duplicates("key")


def log10_moments(mean: float, std: float) -> tuple[float, float]:
    """Mean m and standard deviation s of X where 10^X is log-normal with mean M > 0 and standard deviation S.

    With v = ln(1 + S^2 / M^2): s = sqrt(v) / ln 10 and m = log10 M - v / (2 ln 10).

    Example:
        >>> [round(value, 6) for value in log10_moments(1026.863993, 239.613073)]
        [3.0, 0.1]
    """
    variance = math.log1p((std / mean) ** 2)
    return math.log10(mean) - variance / (2 * math.log(10)), math.sqrt(variance) / math.log(10)


def predictions(evaluations: pd.DataFrame, *, log10: bool = False) -> pd.DataFrame:
    """What was predicted of each measured string when it was chosen, next to what came out.

    Args:
        evaluations: See `tidy_evaluations`.
        log10: Compare log10 of the values; predictions are turned back by `log10_moments`.

    Limits are no values to compare with.

    Returns:
        Columns ``number``, ``batch``, ``mean``, ``std`` (0 where none was given), ``value``.
    """
    known = evaluations["measured"] & (limit_of(evaluations) == "")
    rows = evaluations[known & evaluations["predicted_mean"].notna()]
    table = rows[["number", "batch"]].copy()
    mean, std = rows["predicted_mean"], rows["predicted_std"].fillna(0.0)
    value = rows["value"]
    if log10:
        positive = (mean > 0) & (value > 0)
        table, mean, std, value = table[positive], mean[positive], std[positive], value[positive]
        exponents = [log10_moments(*moments) for moments in zip(mean, std, strict=True)]
        mean = pd.Series([centre for centre, _ in exponents], index=mean.index, dtype=float)
        std = pd.Series([spread for _, spread in exponents], index=std.index, dtype=float)
        value = value.map(math.log10)
    table = table.assign(mean=mean, std=std, value=value)
    return table[np.isfinite(table["mean"]) & np.isfinite(table["std"])]


def predicted_text(row: Mapping[str, Any], show: NumberFormat, *, log10: bool) -> str:
    """A prediction in words: the median, and the central 90 % of a measurement; empty where nothing was predicted.

    Args:
        row: Of a tidy table of evaluations. Where it has no interval, as runs of older versions have none, that of the
            true value stands in its place.
        show: Format of the values.
        log10: Whether the moments are those of a log-normal distribution.
    """
    mean, std, low, high, middle = (
        None if math.isnan(row[name]) else float(row[name])
        for name in ("predicted_mean", "predicted_std", "predicted_low", "predicted_high", "predicted")
    )
    transform = "log10" if log10 else None
    middle = central(mean, std, transform) if middle is None else middle
    if middle is None:
        return ""
    if low is None or high is None:
        low, high = interval(mean, std, transform)
    return show(middle) if low is None or high is None else f"{show(middle)} (90 %: {show(low)} to {show(high)})"


@dataclass(frozen=True)
class PredictionQuality:
    """How well predictions met measurements.

    Attributes:
        count: Strings that were predicted and then measured.
        rank_correlation: Spearman's; `None` for fewer than three strings, or when either side is constant.
        rmse: Root mean squared error; of log10 values where those were compared.
        within_one: Share of measurements at most one predicted standard deviation off (68% of a normal variable).
        within_two: Share at most two off (95%).
    """

    count: int
    rank_correlation: float | None
    rmse: float
    within_one: float
    within_two: float


def prediction_quality(predicted: pd.DataFrame) -> PredictionQuality | None:
    """Summary of a table of `predictions`; `None` when it is empty.

    Example:
        >>> table = pd.DataFrame({"mean": [1.0, 2.0, 3.0], "std": [1.0, 1.0, 1.0], "value": [1.5, 5.0, 4.5]})
        >>> quality = prediction_quality(table)
        >>> f"{quality.rank_correlation:.2f} {quality.within_one:.2f} {quality.within_two:.2f}"
        '0.50 0.33 0.67'
    """
    if not len(predicted):
        return None
    errors = (predicted["value"] - predicted["mean"]).abs()
    ranks = predicted[["mean", "value"]].rank()
    varied = len(ranks) >= 3 and bool((ranks.nunique() > 1).all())
    return PredictionQuality(
        count=len(predicted),
        # Pearson's correlation of average ranks is Spearman's, ties included.
        rank_correlation=float(ranks["mean"].corr(ranks["value"])) if varied else None,
        rmse=float(np.sqrt((errors**2).mean())),
        within_one=float((errors <= predicted["std"]).mean()),
        within_two=float((errors <= 2 * predicted["std"]).mean()),
    )
