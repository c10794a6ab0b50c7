"""Runs from before there were campaigns: ``log.jsonl``, one JSON object per line, read once into a campaign.

Its events are ``settings``, then ``asked`` and ``evaluated`` in the order in which they happened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqopt.campaign.predictions import interval
from seqopt.campaign.rows import NewMeasurement, NewSnapshot, NewSuggestion, Settings, storable
from seqopt.campaign.run_settings import RUN, compare_settings
from seqopt.campaign.store import LARGEST_VALUE, CampaignStore
from seqopt.errors import RunFolderError

OLD_LOG = "log.jsonl"
FORMAT = 1


def holds_run(log: Path) -> bool:
    """Whether the first line of a log is complete: a process killed before that has lost nothing."""
    try:
        with open(log, "rb") as stream:
            return stream.readline().endswith(b"\n")
    except OSError:
        return False


def carry_over(log: Path, file: Path, campaign: Settings, settings: Mapping[str, Any]) -> None:
    """Make a campaign of a log; the log stays as it is.

    Args:
        log: The log; a last line cut short by a crash is left out.
        file: The campaign. Interrupted, there is none, and the log can be read again.
        campaign: What the commands for campaigns know of the run.
        settings: Those of the run now; compared with those in the log.

    Raises:
        RunFolderError: If the log is damaged, of another version, or of a run with other settings.
    """
    first, *events = _read(log)
    run = {**campaign.extra.get(RUN, {}), "settings": first["settings"], "versions": first["versions"]}
    campaign = replace(campaign, extra={**campaign.extra, RUN: run})
    compare_settings(campaign, settings, log.parent)
    temporary = file.with_name(file.name + ".part")
    for ending in ("", "-wal", "-shm", "-journal"):
        temporary.with_name(temporary.name + ending).unlink(missing_ok=True)
    with CampaignStore.create(temporary, campaign, {"file": log.name}) as store:
        for event in events:
            if event["event"] == "asked":
                _ask(store, event, campaign)
            elif event["event"] == "evaluated":
                _record(store, event)
    os.replace(temporary, file)


def _ask(store: CampaignStore, event: Mapping[str, Any], campaign: Settings) -> None:
    state, new = event["state"], []
    for row in event["rows"]:
        mean, std, score = (row["context"][name] for name in ("predicted_mean", "predicted_std", "acquisition"))
        low, high = interval(mean, std, campaign.transform)
        acquisition = "random" if mean is None else campaign.acquisition
        new.append(NewSuggestion(row["string"], row["key"], mean, std, low, high, acquisition, score))
    arguments = {"asks": state["asks"], "batches": state["batches"], "seconds": event["seconds"]}
    with store.transaction("suggest", arguments, expected_state=store.state) as change:
        number = None
        if state["hyperparameters"]:
            model = state["surrogate"] | ({"search": state["search"]} if "search" in state else {})
            summary = {"parameters": state["hyperparameters"], "seed": campaign.seed}
            number = change.add_snapshot(NewSnapshot(campaign.surrogate, store.counts().values, summary, model))
        change.add_suggestions(new, snapshot=number)


def _record(store: CampaignStore, event: Mapping[str, Any]) -> None:
    (asked,) = (row for row in store.open_suggestions() if row.string == event["string"])
    value, failure = event["value"], storable(event["error"]) or None
    if value is not None and abs(value) > LARGEST_VALUE:
        value, failure = None, f"the value is {value:g}"
    details = {"seconds": event["seconds"]}
    entry = NewMeasurement(asked.string, asked.key, value, failure, suggestion=asked.name, details=details)
    with store.transaction("record", {"string": asked.string}) as change:
        change.add_measurements([entry])


def _read(log: Path) -> list[dict[str, Any]]:
    """All complete events."""
    data = log.read_bytes()
    events = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise RunFolderError(
                f"{log}, line {number}: damaged: {line[:60]!r}. Put a copy of the file back if there is one; otherwise "
                "start a new run with --out. What was measured is in evaluations.csv, for seqopt campaign import"
            ) from error
    if events[0].get("event") != "settings" or events[0].get("format") != FORMAT:
        raise RunFolderError(f"{log}, line 1: not the settings of a run of an earlier version of seqopt")
    return events
