"""The parts of a page that say how a search went: headline, batches, parameters, failures, settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from seqopt.errors import SeqoptError
from seqopt.report.drawing import sparkline
from seqopt.report.formats import NumberFormat, compact, duration, shortened, significant
from seqopt.report.results import Run, as_number, only_worse, ranked
from seqopt.report.view import LONGEST_LISTED, View, checked_integer, space_facts
from seqopt.utils.parameter_names import described_parameter

LISTED_ERRORS = 12
"""Different error messages that are listed."""

LONGEST_TEXT = 60
"""Characters of a text inside a setting that are shown, as of a protein."""

LONGEST_LIST = 40
"""Items of a list inside a setting that are shown."""


def subject_of(run: Run) -> str:
    """What was searched, in words that follow the objective's name; empty where the settings do not say."""
    pool = run.settings.get("pool")
    return f"in {Path(str(pool)).name}" if pool else str(run.settings.get("subject") or "")


def choice_of(run: Run, names: tuple[str, str]) -> str:
    """How many strings there were to choose from, in words; empty where the settings do not say."""
    pool_size = checked_integer(run.settings.get("pool_size"))
    if pool_size:
        return f"{pool_size:,} candidates"
    from seqopt.report.samples import size_of

    size = size_of(run)
    narrowed = any(space_facts(run).get(name) for name in ("forbidden", "gc", "accept"))
    return f"{'at most ' if narrowed else ''}{size} {names[1]}" if size else ""


def headline(view: View, best: pd.DataFrame) -> dict[str, Any]:
    """The numbers at the top."""
    run, show, log10 = view.run, view.show, view.log10
    table = run.evaluations
    initial = table[table["batch"] == 0]
    initial_best = ranked(initial[~only_worse(initial, run.direction)], run.direction).head(1)
    seconds = run.total_seconds
    choosing, scoring = _seconds(run, ("suggest", "select", "fit")), _seconds(run, ("evaluate", "objective"))
    return {
        "best": None if not len(best) else _hits(best) if run.yes_no else _told(best, show),
        "number": int(best["number"].iloc[0]) if len(best) else None,
        "batch": int(best["batch"].iloc[0]) if len(best) else None,
        # Of genes that were computed none is a first guess that others could improve on.
        "gain": None
        if run.yes_no or "exact" in run.settings
        else _gain(best, initial_best, run.direction, show, log10),
        "initial_best": _told(initial_best, show) if len(initial_best) else None,
        "initial": _initial(run, initial),
        "initial_ones": "those that no model chose" if run.campaign else f"the {len(initial)} initial ones",
        "first": _origin_of(run, best),
        "evaluations": int((~table["status"].isin(["pending", "withdrawn"])).sum()),
        "pending": int((table["status"] == "pending").sum()),
        "failed": int((table["status"] == "failed").sum()),
        "withdrawn": int((table["status"] == "withdrawn").sum()),
        "discarded": int((table["status"] == "discarded").sum()),
        "batches": int(table.loc[table["batch"] > 0, "batch"].nunique()),
        "time": None if seconds is None else duration(seconds),
        "choosing": None if choosing is None else duration(choosing),
        "scoring": None if scoring is None else duration(scoring),
    }


def _told(best: pd.DataFrame, show: NumberFormat) -> str:
    """The first value of a table, with the sign of a limit."""
    return f"{best['censored'].iloc[0]}{show(best['value'].iloc[0])}"


def _hits(best: pd.DataFrame) -> str:
    """How many of the measured strings are hits, where results are yes or no."""
    return f"{int((best['value'] > 0.5).sum()):,} of {len(best):,}"


def replay_of(run: Run) -> list[dict[str, str]]:
    """What a search of known results found of the best: for each tile a title, a share, and the same of chance."""
    if run.replay is None:
        return []
    return [
        {
            "title": f"Found of the {top.name}",
            "share": f"{100 * top.share:.3g} %",
            "text": f"{top.found:,} of {top.size:,}, ties with the last included; {run.replay.evaluated:,} random "
            f"evaluations find {top.expected:,.1f} on average (90 %: {top.low:,} to {top.high:,})",
        }
        for top in run.replay.tops
    ]


def _initial(run: Run, initial: pd.DataFrame) -> str:
    """How many strings no model chose, in words: in a campaign they may have been imported or recorded by hand."""
    if not run.campaign:
        first = 0 if run.everything is None else int((run.everything["batch"] == 0).sum())
        # Of a small screen nothing was measured as the target.
        return f"{len(initial)} initial" if len(initial) or not first else f"{first} initial in other ways, none so"
    done = initial[~initial["status"].isin(["pending", "withdrawn"])]
    suggested = done[done["name"] != ""]
    counts = Counter(map(_way, suggested["why"]))
    counts["imported or by hand"] = len(done) - len(suggested)
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none without a model"


def _way(why: object) -> str:
    """How a string was suggested that no model chose."""
    return {
        "included": "asked for",
        "lost": "once more, after a loss",
        "maxmin": "spread out",
        "medoids": "as representatives",
        "near the lead": "near the lead",
        "control": "as controls",
    }.get(str(why), str(why) if str(why).startswith("spread over ") else "at random")


def _origin_of(run: Run, best: pd.DataFrame) -> str | None:
    """Where the best string comes from, in words."""
    if not len(best):
        return None
    batch = int(best["batch"].iloc[0])
    if batch:
        return f"in batch {batch}"
    if not run.campaign:
        return "in the initial design"
    return f"suggested {_way(best['why'].iloc[0])}" if best["name"].iloc[0] else "imported or recorded by hand"


def _gain(best: pd.DataFrame, initial: pd.DataFrame, direction: str, show: NumberFormat, log10: bool) -> str | None:
    """How much better than the best initial value, in words; `None` where there is nothing to compare.

    Args:
        best: The best first.
        initial: The best of those that no model chose, first.
        direction: ``"maximize"`` or ``"minimize"``.
        show: Format of values.
        log10: Whether ratios are told instead of differences.
    """
    if not len(best) or not len(initial):
        return None
    found, start = float(best["value"].iloc[0]), float(initial["value"].iloc[0])
    word = "lower" if direction == "minimize" else "higher"
    # What is better than a limit is so by more than the limit is.
    limit = bool(best["censored"].iloc[0])
    if found == start:
        return f"{word} than" if limit and not initial["censored"].iloc[0] else "no better than"
    more = "more than " if limit else ""
    if log10:
        return f"{more}{significant(max(found, start) / min(found, start), 3)} times {word} than"
    return f"{more}{show(abs(found - start))} {word} than"


def _seconds(run: Run, names: tuple[str, ...]) -> float | None:
    spent = [
        number
        for step in run.steps
        if isinstance(step.get("seconds"), dict)
        for name in names
        if (number := as_number(step["seconds"].get(name))) is not None
    ]
    return sum(spent) if spent else None


def batches_of(run: Run, show: NumberFormat) -> list[dict[str, Any]]:
    """What each batch brought; times are those of steps, which are not batches of an asynchronous run."""
    table = run.evaluations
    # In a campaign some strings of a batch are chosen without the model, and measured in any order.
    own_number = table["name"].str.extract(r"^B(\d+)-")[0] if run.campaign else table["batch"]
    own_number = own_number.astype(float).fillna(0.0)
    known = [] if run.settings.get("asynchronous") else run.steps
    steps = {int(number): step for step in known if (number := as_number(step.get("step"))) is not None}
    batches: list[dict[str, Any]] = []
    hits_so_far = 0.0
    best: tuple[float, str] | None = None
    sign = -1.0 if run.direction == "minimize" else 1.0
    worse = "<" if sign > 0 else ">"

    def standing(one: tuple[float, str]) -> tuple[bool, float, bool]:
        """By which values and limits are compared, as `ranked` does: the best is the largest."""
        value, limit = one
        return limit != worse, sign * value, limit not in ("", worse)

    def told(one: tuple[float, str] | None) -> str:
        return "–" if one is None else f"{one[1]}{show(one[0])}"

    for batch, rows in table.groupby(own_number, sort=True):
        measured = rows[rows["measured"]]
        values = measured["value"]
        hits_so_far += float(values.sum())
        own = max(zip(values, measured["censored"], strict=True), key=standing, default=None)
        number = int(float(str(batch)))
        before, chosen = best, bool((rows["batch"] > 0).any())
        if own is not None and own[1] != worse:
            best = own if best is None else max(best, own, key=standing)
        seconds = steps.get(number, {}).get("seconds")
        spent = [as_number(value) for value in seconds.values()] if isinstance(seconds, dict) else []
        batches.append(
            {
                "name": _batch_name(number, chosen, run),
                "evaluated": int((~rows["status"].isin(["pending", "withdrawn"])).sum()),
                "failed": int((rows["status"] == "failed").sum()),
                "own": f"{values.sum():.4g}" if run.yes_no else told(own),
                "best": f"{hits_so_far:.4g}" if run.yes_no else told(best),
                "better": chosen and own is not None and own == best and before != best,
                "seconds": duration(sum(value or 0.0 for value in spent)) if spent else "",
            }
        )
    return batches


def _batch_name(number: int, chosen: bool, run: Run) -> str:
    if not run.campaign:
        return str(number) if number else "initial"
    if not number:
        return "imported or recorded by hand"
    return str(number) if chosen else f"{number} (chosen without a model)"


def _kernel_types(run: Run) -> list[str] | None:
    """The types of the kernels that were averaged over: from the state of the surrogate, or from its settings."""
    known = (run.model or {}).get("kernel_types")
    if isinstance(known, list):
        return [str(kind) for kind in known]
    details = run.settings.get("details")
    surrogate = details.get("surrogate") if isinstance(details, dict) else None
    kernels = surrogate.get("kernel") if isinstance(surrogate, dict) else None
    if not isinstance(kernels, list):
        return None
    return [str(kernel.get("type", "")) if isinstance(kernel, dict) else "" for kernel in kernels]


def parameters_of(run: Run) -> list[dict[str, Any]]:
    """The kernel's parameters by step; only those that are numbers."""
    kernels = [
        (int(number), step["kernel"])
        for step in run.steps
        if isinstance(step.get("kernel"), dict)
        and step["kernel"]
        and (number := as_number(step.get("step"))) is not None
    ]
    names = list(dict.fromkeys(str(name) for _, kernel in kernels for name in kernel))
    kinds = _kernel_types(run)
    parameters = []
    for name in names:
        values = [(step, as_number(kernel.get(name))) for step, kernel in kernels]
        known = [value for _, value in values if value is not None]
        if not known:
            continue
        title, meaning = described_parameter(name, kinds)
        curve = sparkline([value for _, value in values])
        parameters.append(
            {
                "name": title,
                "meaning": meaning,
                "latest": "–" if values[-1][1] is None else compact(values[-1][1]),
                "range": f"{compact(min(known))} to {compact(max(known))}",
                "curve": curve,
                "end": curve.rpartition(" ")[2].split(",") if curve else [],
                "steps": [(step, "–" if value is None else compact(value)) for step, value in values],
            }
        )
    return parameters


def failures_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Failures by their messages."""
    failed = table[table["status"] == "failed"]
    counts = failed["error"].value_counts(sort=True)
    return [
        {
            "error": shortened(str(error), 300) or "no reason recorded",
            "count": int(count),
            "example": shortened(failed.loc[failed["error"] == error, "string"].iloc[0], LONGEST_LISTED),
        }
        for error, count in counts.head(LISTED_ERRORS).items()
    ] + (
        [
            {
                "error": f"{len(counts) - LISTED_ERRORS} other messages, see evaluations.csv",
                "count": int(counts.iloc[LISTED_ERRORS:].sum()),
                "example": "",
            }
        ]
        if len(counts) > LISTED_ERRORS
        else []
    )


def resume_command(settings: Mapping[str, Any]) -> str:
    """How to continue a run; empty where that is not known."""
    command = str(settings.get("command") or "").strip()
    if not command:
        return ""
    return command if "--resume" in command.split() else f"{command} --resume"


def filters_text(value: object) -> str:
    """Filters of a campaign in words, as far as they can be read."""
    from seqopt.filters.conditions import from_json

    try:
        return "; ".join(item.describe() for item in from_json(value)) or "none"  # type: ignore[arg-type]
    except (SeqoptError, TypeError, ValueError, AttributeError):
        return setting_text(value)


def setting_text(value: object) -> str:
    """A setting in words."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(_abridged(value), ensure_ascii=False)


def _abridged(value: object) -> object:
    """A nested setting without the middle of its long texts and lists, such as the letters of a protein."""
    if isinstance(value, str):
        return shortened(value, LONGEST_TEXT)
    if isinstance(value, list) and len(value) > LONGEST_LIST:
        return [*map(_abridged, value[:LONGEST_LIST]), f"{len(value) - LONGEST_LIST:,} more"]
    if isinstance(value, list):
        return list(map(_abridged, value))
    return {name: _abridged(item) for name, item in value.items()} if isinstance(value, dict) else value
