"""A campaign as a report sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from seqopt.campaign import Campaign, CampaignStore, Observed, Settings, Snapshot, Suggestion
from seqopt.campaign.costs import costs_by_string
from seqopt.campaign.leads import FROM_LEAD, distances_from_lead
from seqopt.campaign.parents import PARENT, parent_of
from seqopt.campaign.rows import TERMS, Measurement, comparable
from seqopt.campaign.run_settings import RUN
from seqopt.campaign.wording import means_in_words
from seqopt.data import Context
from seqopt.report.results import Run, of_latent, of_other_contexts, terms_of, tidy_evaluations, with_contexts

STATUSES = {
    "open": "pending",
    "measured": "ok",
    "failed": "failed",
    "discarded": "discarded",
    "withdrawn": "withdrawn",
    "lost": "lost",
}
"""What a report calls the states of suggestions."""


def read_campaign(path: str | os.PathLike[str]) -> Run:
    """Read the file of a campaign; nothing in it is changed.

    Strings stand in the order in which they were measured, discarded, open and withdrawn ones last. What no model has
    chosen (random strings, controls, what was imported) is of batch 0. The value of a string is the mean of its
    replicates: the geometric one, where the campaign's transform is ``"log10"``.

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
        suggestions = [row for row in store.suggestions() if settings.latent or row.context == settings.target]
        everything = store.observations()
        observed = comparable(settings, everything)
        answered = suggestions if settings.latent else store.suggestions()
        costs = costs_by_string(store)
        elsewhere = 0 if settings.latent else sum(row.context != settings.target for row in store.measurements())
        notes = _Notes.read(store, settings)
        candidates, excluded = store.library_hashes()[0], frozenset(row.key for row in store.exclusions())
        latest = snapshots[-1] if snapshots else None
        state = None if latest is None else store.snapshot_state(latest.id)
        status = Campaign(store).status()
        calibration = status.calibration
        judged = [calibration.describe()] if calibration is not None and calibration.count else []
        remarks = tuple(f"{text[:1].upper()}{text[1:]}." for text in (*status.warnings, *judged))
        if settings.latent and settings.contexts is not None:
            remarks = (*remarks, of_latent(settings.contexts))
    facts = _facts(settings)
    beside = [term.column for term in terms_of(facts)]
    table = pd.DataFrame(_rows(settings, suggestions, observed, notes, beside), columns=[*_COLUMNS, *beside])
    far = distances_from_lead(settings, table["key"].tolist())
    evaluations = tidy_evaluations(
        table if far is None else table.assign(**{FROM_LEAD: pd.Series(far, dtype="float64")}), beside
    )
    missing = [] if evaluations["measured"].any() else ["Nothing has been measured yet."]
    if not suggestions:
        missing.append("Nothing has been suggested yet: seqopt campaign suggest does that.")
    return Run(
        folder=path.parent,
        evaluations=evaluations,
        settings=facts,
        versions=dict((latest.summary.get("versions") or {}) if latest else {}),
        steps=_steps(snapshots, suggestions),
        campaign=path.stem,
        measurements=_measurements(observed),
        cells={row.key: row.cells for row in suggestions if row.cells},
        reasons={row.key: row.reason for row in suggestions if row.reason},
        candidates=candidates,
        added=tuple(
            (str(one["path"]), str(one.get("column") or "string"), str(one.get("id_column") or ""))
            for one in (settings.pool or {}).get("added") or []
        ),
        excluded=excluded,
        # A model of several ways has parameters that one of the target alone, as the page fits it, has no place for.
        model=state.get("surrogate")
        if isinstance(state, dict) and (settings.latent or not settings.contexts)
        else None,
        missing=tuple(missing),
        everything=None if settings.contexts is None else _in_contexts(settings, everything, answered, costs),
        learned=tuple(status.model.get("plates" if settings.plates else "learned", ())),
        recommended=status.expected,
        remarks=(*means_in_words(status.model), *remarks)
        if settings.contexts is None or not elsewhere
        else (*remarks, of_other_contexts(elsewhere, settings.contexts)),
    )


def _measurements(observed: Sequence[Observed]) -> pd.DataFrame:
    rows = [
        (one.key, value, error, limit or "", wells)
        for one in observed
        for value, error, limit, wells in zip(
            one.values, one.standard_errors, one.limits, one.wells_of_values, strict=True
        )
    ]
    table = pd.DataFrame(rows, columns=["key", "value", "standard_error", "censored", "wells"])
    return table.astype({"value": "float64", "standard_error": "float64"})


_COLUMNS = (
    *("number", "string", "key", "status", "value", "batch", "predicted_mean", "predicted_std", "acquisition"),
    *("predicted_low", "predicted_high"),
    *("error", "name", "why", "nearest", "similarity", "measurements", "standard_error"),
    *("identifier", "censored", "note"),
)


@dataclass(frozen=True)
class _Notes:
    """What was corrected and discarded.

    Attributes:
        discarded: By key, what was discarded.
        texts: By key, what is to be said of its measurements.
    """

    discarded: dict[str, list[Measurement]]
    texts: dict[str, list[str]]

    @classmethod
    def read(cls, store: CampaignStore, settings: Settings) -> _Notes:
        rows = [row for row in store.measurements(discarded=True) if settings.latent or row.context == settings.target]
        found = cls({}, {})
        corrections = [row for row in rows if row.replaces is not None]
        if corrections:
            before = {row.id: row for row in store.measurements(undone=True, discarded=True)}
            reasons = {command.id: command.arguments.get("reason") for command in store.history()}
            for row in corrections:
                was, why = before.get(row.replaces or 0), reasons.get(row.made_by)
                text = f"corrected from {was.told if was else 'another value'}{f' ({why})' if why else ''}"
                found.texts.setdefault(row.key, []).append(text)
        for row in rows:
            if row.discarded is not None:
                found.discarded.setdefault(row.key, []).append(row)
                why = f" ({row.discarded})" if row.discarded else ""
                found.texts.setdefault(row.key, []).append(f"{row.told} was discarded{why}")
        return found

    def of(self, key: str) -> str:
        """What is to be said of a string; empty where nothing is."""
        return "; ".join(self.texts.get(key, ()))


def _rows(
    settings: Settings,
    suggestions: Sequence[Suggestion],
    observed: Sequence[Observed],
    notes: _Notes,
    beside: Sequence[str] = (),
) -> list[dict[str, Any]]:
    chosen: dict[str, Suggestion] = {}
    for suggestion in suggestions:
        # The suggestion that a result answers is the latest one of its key.
        chosen[suggestion.key] = suggestion
    geometric = settings.transform == "log10"
    rows = [
        _measured(one, chosen.get(one.key), geometric=geometric) | {name: one.further(name) for name in beside}
        for one in observed
    ]
    done = {one.key for one in observed}
    for key, discarded in notes.discarded.items():
        if key not in done:
            row, last = {} if key not in chosen else _identity(chosen[key]), discarded[-1]
            rows.append({"identifier": last.identifier, "key": key} | row | _discarded(last))
            done.add(key)
    rows += [
        _identity(suggestion) | {"string": suggestion.string, "status": STATUSES.get(suggestion.status, "pending")}
        for suggestion in suggestions
        if suggestion.key not in done and chosen[suggestion.key] is suggestion
    ]
    return [{"number": number} | row | {"note": notes.of(row["key"])} for number, row in enumerate(rows, start=1)]


def _in_contexts(
    settings: Settings,
    observed: Sequence[Observed],
    suggestions: Sequence[Suggestion],
    costs: Mapping[tuple[str, Context], float] | None,
) -> pd.DataFrame:
    """What was measured: a row for each string in each way, with its cost; of plates, wells are counted."""
    chosen = {(row.key, row.context): row for row in suggestions}
    geometric = settings.transform == "log10"
    rows = [
        {"number": number, **_measured(one, chosen.get((one.key, one.context)), geometric=geometric)}
        | {
            **dict(one.context),
            "cost": float(len(one.measurements)) if costs is None else costs.get((one.key, one.context), 0.0),
        }
        for number, one in enumerate(observed, start=1)
    ]
    # What was discarded was paid for.
    shown = {(one.key, one.context) for one in observed}
    rows += [
        {
            "number": len(observed) + number,
            "key": key,
            "string": key,
            "status": "discarded",
            "cost": cost,
            **dict(context),
        }
        for number, ((key, context), cost) in enumerate((costs or {}).items(), start=1)
        if (key, context) not in shown
    ]
    columns = [*_COLUMNS, *settings.context_names, "cost"]
    return with_contexts(pd.DataFrame(rows, columns=columns), settings.contexts or {})


def _discarded(row: Measurement) -> dict[str, Any]:
    return {
        "string": row.string,
        "status": "discarded",
        "value": row.value,
        "censored": row.censored,
        "error": row.failure or "",
    }


def _measured(one: Observed, suggestion: Suggestion | None, *, geometric: bool) -> dict[str, Any]:
    errors = one.standard_errors
    named = one.identifier
    row = {"identifier": named} | ({} if suggestion is None else _identity(suggestion))
    row |= {"string": one.string, "key": one.key, "measurements": len(one.values)}
    row["identifier"] = row["identifier"] or named
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
        # Where values of the target lie may not be known yet when a model chooses the first: it scores them.
        "batch": 0 if suggestion.mean is None and suggestion.score is None else suggestion.batch,
        "predicted_mean": suggestion.mean,
        "predicted_std": suggestion.std,
        "predicted_low": suggestion.low,
        "predicted_high": suggestion.high,
        "acquisition": suggestion.score,
        "why": reason.get("kind"),
        "nearest": reason.get("nearest"),
        "similarity": reason.get("similarity"),
        "identifier": suggestion.identifier,
    }


def _facts(settings: Settings) -> dict[str, Any]:
    facts = settings.to_json()
    columns = {name: settings.listed[name] for name in ("id_column", "price_column") if settings.listed.get(name)}
    pool: Mapping[str, Any] = facts.pop("pool", None) or {}
    space: Mapping[str, Any] = facts.pop("space", None) or {}
    facts = {name: value for name, value in facts.items() if value not in (None, [], {})}
    # Of a pool it is known with the file.
    facts |= {PARENT: parent} if (parent := parent_of(settings)) is not None else {}
    if pool:
        facts |= {"kind": pool.get("kind"), "pool": pool.get("path"), "pool_size": pool.get("size")}
        added = [Path(str(one["path"])).name for one in pool.get("added") or []]
        columns |= {"added": ", ".join(added)} if added else {}
        columns |= {"decimal_comma": True} if pool.get("decimal_comma") else {}
        return facts | {"column": pool.get("column"), "standardize": pool.get("standardize")} | columns
    # Of a run, they stand among what it was told.
    run: Mapping[str, Any] = (facts.get(RUN) or {}).get("settings") or {}
    facts |= {TERMS: run[TERMS]} if TERMS not in facts and run.get(TERMS) else {}
    kind = space.get("kind") or ("dna" if space.get("type") == "CodonSpace" else None)
    return facts | {"space": dict(space)} | ({"kind": kind} if kind else {}) | columns


def _steps(snapshots: Sequence[Snapshot], suggestions: Sequence[Suggestion]) -> list[dict[str, Any]]:
    batches = {suggestion.snapshot: suggestion.batch for suggestion in suggestions if suggestion.snapshot is not None}
    return [
        {"step": batches.get(snapshot.id, number), "kernel": snapshot.summary.get("parameters") or {}}
        for number, snapshot in enumerate(snapshots, start=1)
    ]
