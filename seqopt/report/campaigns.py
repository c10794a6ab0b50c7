"""A campaign as a report sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from seqopt.campaign import Campaign, CampaignStore, Observed, Settings, Snapshot, Suggestion
from seqopt.report.results import Run, of_other_contexts, tidy_evaluations

STATUSES = {"open": "pending", "measured": "ok", "failed": "failed", "withdrawn": "withdrawn"}
"""What a report calls the states of suggestions."""


def read_campaign(path: str | os.PathLike[str]) -> Run:
    """Read the file of a campaign; nothing in it is changed.

    Strings stand in the order in which they were measured, open and withdrawn suggestions last. What was chosen at
    random or imported is of batch 0. The value of a string is the mean of its replicates: the geometric one, where the
    campaign's transform is ``"log10"``.

    Args:
        path: The file.

    Raises:
        CampaignError: If there is no such campaign, or its file is damaged.

    Example:
        >>> import tempfile
        >>> from seqopt.campaign import Campaign
        >>> from seqopt.spaces import StringSpace
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "first.seqopt")
        ...     with Campaign.create(path, StringSpace("01", 12), objective="activity", batch_size=4) as campaign:
        ...         for suggestion in campaign.suggest()[:3]:
        ...             _ = campaign.record(suggestion.name, 1.5)
        ...     run = read_campaign(path)
        >>> run.campaign, run.evaluations["status"].tolist()
        ('first', ['ok', 'ok', 'ok', 'pending'])
    """
    path = Path(path)
    with CampaignStore.open(path) as store, store.reading():
        settings, snapshots = replace(store.settings, pool=store.library), store.snapshots()
        # What was measured in another way than the target's is not comparable.
        suggestions = [row for row in store.suggestions() if row.context == settings.target]
        observed = [one for one in store.observations() if one.context == settings.target]
        elsewhere = sum(row.context != settings.target for row in store.measurements())
        latest = snapshots[-1] if snapshots else None
        state = None if latest is None else store.snapshot_state(latest.id)
        status = Campaign(store).status()
        calibration = status.calibration
        judged = [calibration.describe()] if calibration is not None and calibration.count else []
        remarks = tuple(f"{text[:1].upper()}{text[1:]}." for text in (*status.warnings, *judged))
    evaluations = tidy_evaluations(pd.DataFrame(_rows(settings, suggestions, observed), columns=_COLUMNS))
    missing = [] if evaluations["measured"].any() else ["Nothing has been measured yet."]
    if not suggestions:
        missing.append("Nothing has been suggested yet: seqopt campaign suggest does that.")
    return Run(
        folder=path.parent,
        evaluations=evaluations,
        settings=_facts(settings),
        versions=dict((latest.summary.get("versions") or {}) if latest else {}),
        steps=_steps(snapshots, suggestions),
        campaign=path.stem,
        measurements=_measurements(observed),
        model=state.get("surrogate") if isinstance(state, dict) else None,
        missing=tuple(missing),
        remarks=remarks
        if settings.contexts is None or not elsewhere
        else (*remarks, of_other_contexts(elsewhere, settings.contexts)),
    )


def _measurements(observed: Sequence[Observed]) -> pd.DataFrame:
    rows = [
        (one.key, value, error, limit or "")
        for one in observed
        for value, error, limit in zip(one.values, one.standard_errors, one.limits, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["key", "value", "standard_error", "censored"])
    return table.astype({"value": "float64", "standard_error": "float64"})


_COLUMNS = (
    *("number", "string", "key", "status", "value", "batch", "predicted_mean", "predicted_std", "acquisition"),
    *("predicted_low", "predicted_high"),
    *("error", "name", "why", "nearest", "similarity", "measurements", "standard_error", "censored"),
)


def _rows(settings: Settings, suggestions: Sequence[Suggestion], observed: Sequence[Observed]) -> list[dict[str, Any]]:
    chosen: dict[str, Suggestion] = {}
    for suggestion in suggestions:
        # The suggestion that a result answers is the latest one of its key.
        chosen[suggestion.key] = suggestion
    rows = [_measured(one, chosen.get(one.key), geometric=settings.transform == "log10") for one in observed]
    done = {one.key for one in observed}
    rows += [
        _identity(suggestion) | {"string": suggestion.string, "status": STATUSES.get(suggestion.status, "pending")}
        for suggestion in suggestions
        if suggestion.key not in done and chosen[suggestion.key] is suggestion
    ]
    return [{"number": number} | row for number, row in enumerate(rows, start=1)]


def _measured(one: Observed, suggestion: Suggestion | None, *, geometric: bool) -> dict[str, Any]:
    errors = one.standard_errors
    row = {} if suggestion is None else _identity(suggestion)
    row |= {"string": one.string, "key": one.key, "measurements": len(one.values)}
    if one.values:
        return row | {
            "status": "ok",
            "value": one.mean(geometric=geometric),
            "censored": one.censored or "",
            "standard_error": errors[0] if len(errors) == 1 else None,
        }
    return row | {"status": "failed", "error": one.failures[-1] if one.failures else ""}


def _identity(suggestion: Suggestion) -> dict[str, Any]:
    reason = suggestion.reason
    return {
        "key": suggestion.key,
        "name": suggestion.name,
        "batch": 0 if suggestion.mean is None else suggestion.batch,
        "predicted_mean": suggestion.mean,
        "predicted_std": suggestion.std,
        "predicted_low": suggestion.low,
        "predicted_high": suggestion.high,
        "acquisition": suggestion.score,
        "why": reason.get("kind"),
        "nearest": reason.get("nearest"),
        "similarity": reason.get("similarity"),
    }


def _facts(settings: Settings) -> dict[str, Any]:
    facts = settings.to_json()
    pool: Mapping[str, Any] = facts.pop("pool", None) or {}
    space: Mapping[str, Any] = facts.pop("space", None) or {}
    facts = {name: value for name, value in facts.items() if value not in (None, [], {})}
    if pool:
        facts |= {"kind": pool.get("kind"), "pool": pool.get("path"), "pool_size": pool.get("size")}
        return facts | {"column": pool.get("column"), "standardize": pool.get("standardize")}
    kind = space.get("kind") or ("dna" if space.get("type") == "CodonSpace" else None)
    return facts | {"space": dict(space)} | ({"kind": kind} if kind else {})


def _steps(snapshots: Sequence[Snapshot], suggestions: Sequence[Suggestion]) -> list[dict[str, Any]]:
    batches = {suggestion.snapshot: suggestion.batch for suggestion in suggestions if suggestion.snapshot is not None}
    return [
        {"step": batches.get(snapshot.id, number), "kernel": snapshot.summary.get("parameters") or {}}
        for number, snapshot in enumerate(snapshots, start=1)
    ]
