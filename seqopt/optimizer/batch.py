"""What the optimiser has asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqopt.data import Observation, Query, observation_table
from seqopt.utils.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


class Batch(Shown, list[str]):
    """A list of strings to evaluate, which a notebook and ``print`` show with what was predicted of each.

    In every other way it is a ``list[str]``: it equals one, has its ``repr``, and a slice or a sum of it is one.

    Args:
        rows: The rows of the optimiser's table, in order. They are looked at whenever the batch is shown, so that
            results that have arrived since are among them.
        kind: What the strings are.
        outcomes: Names of what is measured, the objective first.

    Attributes:
        rows: As given.
        kind: As given.
        outcomes: As given.

    Example:
        >>> from seqopt import Optimizer
        >>> optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT", "TTTT"], initial=2)
        >>> batch = optimizer.ask()
        >>> batch == list(batch), batch.to_pandas().columns.tolist()[:3]
        (True, ['number', 'string', 'key'])
    """

    def __init__(self, rows: Sequence[Observation], kind: str, outcomes: Sequence[str] = ()) -> None:
        super().__init__(row.string for row in rows)
        self.rows = tuple(rows)
        self.kind = kind
        self.outcomes = tuple(outcomes)

    @property
    def queries(self) -> list[Query]:
        """What is to be measured, and how."""
        return [row.query for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """One row per string, with the columns of ``evaluations.csv``; ``number`` counts from 1 within the batch."""
        return observation_table(self.rows, self.outcomes)
