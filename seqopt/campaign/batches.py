"""What a campaign has suggested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqopt.campaign.leads import FROM_LEAD, distances_from_lead
from seqopt.campaign.rows import Settings, Suggestion
from seqopt.utils.shown import Tabulated

if TYPE_CHECKING:
    import pandas as pd

IDENTIFIER = "identifier"
"""The column of what the owner of the library calls candidates, where there is one."""

COLUMNS = ("name", "string", "predicted", "predicted_low", "predicted_high", "acquisition", "acquisition_value")
REASONS = ("kind", "rank", "improvement", "nearest", "value", "similarity", "difference")
"""What is told of the reason for a suggestion, by its name there."""

REASON_COLUMNS = (
    "why",
    "rank_by_prediction",
    "chance_to_beat_best",
    "nearest_measured",
    "nearest_value",
    "similarity",
    "difference",
)
"""The same as columns of tables."""


def reason_cell(reason: Mapping[str, Any], name: str) -> Any:
    """What a table says of a reason: a limit with its sign.

    Example:
        >>> reason_cell({"value": 0.1, "censored": "<"}, "value"), reason_cell({"value": 0.1}, "value")
        ('<0.1', 0.1)
    """
    cell = reason.get(name)
    if name == "value" and reason.get("told"):
        return reason["told"]
    return f"{reason['censored']}{cell:.10g}" if name == "value" and reason.get("censored") else cell


class Suggestions(Tabulated, list[Suggestion]):
    """A list of suggestions that shows itself as a table, with what was predicted of each and why it was chosen.

    Args:
        rows: The suggestions.
        settings: Of their campaign.

    Attributes:
        settings: As given.
    """

    def __init__(self, rows: Sequence[Suggestion], settings: Settings) -> None:
        super().__init__(rows)
        self.settings = settings

    @property
    def kind(self) -> str:
        """What the strings are: ``"molecule"``, ...; ``"text"`` where the campaign's file does not say."""
        facts = self.settings.space if self.settings.pool is None else self.settings.pool
        return str(facts.get("kind") or ("dna" if facts.get("type") == "CodonSpace" else "text"))

    def to_pandas(self) -> pd.DataFrame:
        """One row per suggestion, with the columns of ``batch.csv`` under names that are always the same.

        Example:
            >>> Suggestions([Suggestion("CCO", "CCO", name="B01-01")], Settings("pIC50")).to_pandas().loc[0, "name"]
            'B01-01'
        """
        import pandas as pd

        contexts = self.settings.context_names
        owned = any(row.identifier is not None for row in self)
        cells = [
            (
                row.name,
                *([row.identifier] if owned else []),
                row.string,
                *(dict(row.context).get(name) for name in contexts),
                *(row.predicted(self.settings.transform), row.low, row.high, row.acquisition, row.score),
                *(reason_cell(row.reason, name) for name in REASONS),
                row.status,
            )
            for row in self
        ]
        far = distances_from_lead(self.settings, [row.key for row in self])
        columns = [
            COLUMNS[0],
            *([IDENTIFIER] if owned else []),
            COLUMNS[1],
            *contexts,
            *COLUMNS[2:],
            *REASON_COLUMNS,
            "status",
        ]
        found = pd.DataFrame(cells, columns=columns)
        return found if far is None else found.assign(**{FROM_LEAD: pd.Series(far, index=found.index, dtype="float64")})
