"""Campaigns: searches that last for weeks, kept in one SQLite file that never loses a measurement.

`Campaign` says what to measure next, and records what was measured. `CampaignStore` is its file; `read_results` reads
what a laboratory sends back, and `write_sheet` writes tables that a spreadsheet may open. Automatic searches are kept
in the same files: `seqopt.campaign.automatic` drives them, and `seqopt.campaign.runs` keeps their folders. Models are
imported only to make suggestions: opening a campaign and recording results is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqopt.campaign.changes import Change
from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.rows import (
    Command,
    Counts,
    Measurement,
    NewMeasurement,
    NewSnapshot,
    NewSuggestion,
    Observed,
    Settings,
    Snapshot,
    Suggestion,
    Withdrawal,
)
from seqopt.campaign.store import CampaignStore

if TYPE_CHECKING:
    from seqopt.campaign.batches import Suggestions
    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.entries import Remark, ResultEntry, Results
    from seqopt.campaign.journal import Step
    from seqopt.campaign.results import check_entries, read_results
    from seqopt.campaign.status import Status
    from seqopt.campaign.tables import write_batch
    from seqopt.datasets.sheets import read_sheet, write_sheet
    from seqopt.filters.conditions import Alerts, ColumnCondition, Pattern, PropertyRange, Substructure

_HOMES = {
    "Suggestions": "seqopt.campaign.batches",
    "Campaign": "seqopt.campaign.campaign",
    "Status": "seqopt.campaign.status",
    "Step": "seqopt.campaign.journal",
    **dict.fromkeys(("Remark", "ResultEntry", "Results"), "seqopt.campaign.entries"),
    **dict.fromkeys(("check_entries", "read_results"), "seqopt.campaign.results"),
    "write_batch": "seqopt.campaign.tables",
    **dict.fromkeys(
        ("Alerts", "ColumnCondition", "Pattern", "PropertyRange", "Substructure"), "seqopt.filters.conditions"
    ),
    **dict.fromkeys(("read_sheet", "write_sheet"), "seqopt.datasets.sheets"),
}

__all__ = [
    "Alerts",
    "Campaign",
    "CampaignError",
    "CampaignStore",
    "Change",
    "ColumnCondition",
    "Command",
    "Counts",
    "Measurement",
    "NewMeasurement",
    "NewSnapshot",
    "NewSuggestion",
    "Observed",
    "Pattern",
    "PropertyRange",
    "Remark",
    "ResultEntry",
    "Results",
    "Settings",
    "Snapshot",
    "StaleStateError",
    "Status",
    "Step",
    "Substructure",
    "Suggestion",
    "Suggestions",
    "Withdrawal",
    "check_entries",
    "read_results",
    "read_sheet",
    "write_batch",
    "write_sheet",
]


def __getattr__(name: str) -> Any:
    # A look at a campaign reads and writes no tables.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt.campaign' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
