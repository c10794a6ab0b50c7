"""Filters for pools on disk: asked once of each row, while a pool is prepared (`seqopt.datasets.prepare_pool`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from seqopt.filters.conditions import Column, ColumnCondition, Filter, checked, to_json
from seqopt.filters.filtering import BoolArray, FilterReport, FilterStep, check_filters, filter_pool
from seqopt.utils.config import Configurable


class Sieve(Configurable):
    """Which rows of the files of a pool become candidates; implements `seqopt.datasets.pool_rows.RowFilter`.

    What does not pass is not kept on disk, so that no later search or suggestion has to look at it; other filters make
    another pool of the same files. Whether a column is one of numbers is decided by the first rows of all files.

    Args:
        filters: The filters, or their JSON values.

    Raises:
        InputError: For what is not a filter, or one that cannot be used.

    Example:
        >>> from seqopt.filters import PropertyRange
        >>> sieve = Sieve([PropertyRange("heavy_atoms", high=3), ColumnCondition.parse("price < 10")])
        >>> sieve = sieve.fitted("molecule", {"price": ["3", "12", "4"]})
        >>> sieve.columns
        ['price']
        >>> mask, steps = sieve(["CCO", "CC", "CCCCC"], ["CCO", "CC", "CCCCC"], {"price": ["3", "12", "4"]})
        >>> mask.tolist(), steps
        ([True, False, False], [('price < 10', 3, 2), ('heavy_atoms <= 3', 2, 1)])
    """

    def __init__(self, filters: Iterable[Filter | Mapping[str, Any]]) -> None:
        self.filters = checked(filters)
        self._heads: dict[str, list[str]] = {}

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"filters": to_json(self.filters)}

    def fitted(self, kind: str, heads: Mapping[str, Sequence[str]], *, standardize: bool = False) -> Sieve:
        """The same for strings of some kind, in files with some columns.

        Args:
            kind: What the strings are.
            heads: Columns beside the strings, with their first cells.
            standardize: Whether molecules are identified by their charge parents.

        Raises:
            InputError: For a filter that does not fit them.
        """
        cells = {name: list(column) for name, column in heads.items()}
        made = Sieve(check_filters(self.filters, kind, None, cells, standardize=standardize))
        made._heads = {name: cells[name] for name in made.columns}
        made._kind = kind
        return made

    _kind = "text"

    @property
    def columns(self) -> list[str]:
        """Columns that are asked about."""
        return list(dict.fromkeys(item.column for item in self.filters if isinstance(item, ColumnCondition)))

    def __call__(
        self, strings: Sequence[str], keys: Sequence[str], cells: Mapping[str, Sequence[str]]
    ) -> tuple[BoolArray, list[tuple[str, int, int]]]:
        """Which rows pass; and of each filter, in the order in which they are asked, how many reach it and pass it.

        Args:
            strings: As they are written.
            keys: Their keys.
            cells: Of each of the `columns`.
        """
        if not len(strings):
            return np.zeros(0, dtype=np.bool_), []
        columns = {name: Column(cells[name], whole=self._heads[name]) for name in self.columns}
        mask, report = filter_pool(strings, keys, self._kind, self.filters, columns, apart=False)
        return mask, [(step.filter, step.reached, step.passed) for step in report.steps]

    @staticmethod
    def described(steps: Sequence[tuple[str, int, int]]) -> list[str]:
        """What the filters did to a pool, in words: a line for all, and one for each.

        Example:
            >>> Sieve.described([("price < 10", 3, 2), ("MW <= 500", 2, 1)])
            ['1 of 3 candidates pass the filters', '  price < 10: 2 of 3', '  MW <= 500: 1 of 2']
        """
        found = tuple(FilterStep(*step) for step in steps)
        return FilterReport(found[0].reached, found[-1].passed, found).lines() if found else []
