"""Prior covariances between the candidates of a pool and other strings, kept while the kernel stays the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.query import Item
from seqopt.encoding import Encoded
from seqopt.models.covariance import Evaluator
from seqopt.models.gp_state import stacked

BLOCK_CANDIDATES = 1 << 15
"""Candidates whose V is held at once while variances are computed."""

PANEL = 512
"""Rows of V that are computed at once: they need only as many columns of the triangular inverse."""

NEW_ELEMENTS = 1 << 25
"""Prior covariances that are computed at once before they are put in their place (256 MiB)."""


class ColumnCache:
    """Prior covariances, without output scale, between a list of candidates and strings.

    Memory: 8 D N bytes for each string, for D draws of the kernel's parameters and N candidates.

    Args:
        evaluator: The kernel.
        candidates: The N candidates.
        draws: D.

    Attributes:
        own: What the kernel needs of each candidate alone (`KernelEvaluator.self_similarity`).
    """

    def __init__(self, evaluator: Evaluator, candidates: Encoded, draws: int = 1) -> None:
        self.evaluator = evaluator
        self.candidates = candidates
        self.draws = draws
        self.own = evaluator.self_similarity(candidates)
        self.prior_variance = stacked(evaluator.variance(candidates, self.own)[..., None, :], draws)[:, 0]
        self._rows = torch.empty(0, draws, len(candidates), dtype=torch.float64)
        self._positions: dict[Item, int] = {}

    def row(self, key: Item, encoded: Encoded) -> Tensor:
        """Covariances D x N of one string with all candidates: a copy, which later calls leave alone."""
        self._compute([key], encoded)
        return self._rows[self._positions[key]].clone()

    def rows(self, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        """Covariances len(keys) x D x N of the strings ``encoded`` (named by ``keys``) with all candidates.

        They are those of the cache itself, valid until the next call for other strings.
        """
        self._compute(keys, encoded)
        wanted = list(dict.fromkeys(self._positions[key] for key in keys))
        if wanted != list(range(len(wanted))):
            self._reorder(wanted)
        if len(wanted) == len(keys):
            return self._rows[: len(wanted)]
        return self._rows[[self._positions[key] for key in keys]]  # a string that was measured several times

    def among(self, indices: npt.NDArray[np.int64]) -> Tensor:
        """Prior covariances D x k x k among the candidates at ``indices``."""
        chosen = self.candidates.take(indices)
        own = None if self.own is None else self.own[..., indices]
        return stacked(self.evaluator.cross(chosen, None, own), self.draws)

    def _compute(self, keys: Sequence[Item], encoded: Encoded) -> None:
        missing = [i for i, key in enumerate(dict.fromkeys(keys)) if key not in self._positions]
        if missing:
            unique = list(dict.fromkeys(keys))
            first = {key: position for position, key in reversed(list(enumerate(keys)))}
            new = encoded.take(np.array([first[unique[i]] for i in missing]))
            used = len(self._positions)
            self._reserve(used + len(missing))
            step = max(1, NEW_ELEMENTS // max(1, self.draws * len(self.candidates)))
            for start in range(0, len(missing), step):
                part = new.take(slice(start, start + step))
                own = self.evaluator.self_similarity(part)
                found = stacked(self.evaluator.cross(part, self.candidates, own, self.own), self.draws)
                self._rows[used + start : used + start + len(part)] = found.transpose(0, 1)
            self._positions.update({unique[i]: used + offset for offset, i in enumerate(missing)})

    def _reorder(self, first: list[int]) -> None:
        """Move the rows ``first`` to the front, so that they can be used without a copy from now on."""
        chosen = set(first)
        order = [*first, *(row for row in range(len(self._positions)) if row not in chosen)]
        for start in range(0, self._rows.shape[-1], BLOCK_CANDIDATES):
            block = self._rows[: len(order), :, start : start + BLOCK_CANDIDATES]
            block.copy_(block[order])
        keys = sorted(self._positions, key=self._positions.__getitem__)
        self._positions = {keys[old]: new for new, old in enumerate(order)}

    def _reserve(self, rows: int) -> None:
        if rows > self._rows.shape[0]:
            held = self._rows.shape[0]
            grown = torch.empty(max(rows, held + held // 8 + 32), *self._rows.shape[1:], dtype=torch.float64)
            used = len(self._positions)
            grown[:used] = self._rows[:used]
            self._rows = grown


def explained(inverse: Tensor, rows: Tensor) -> Tensor:
    """Column sums of the squares of ``inverse @ rows``, N; ``inverse`` (n x n) is lower triangular, ``rows`` n x N."""
    sums = torch.empty(rows.shape[1], dtype=torch.float64)
    for start in range(0, rows.shape[1], BLOCK_CANDIDATES):
        block = slice(start, start + BLOCK_CANDIDATES)
        part = torch.zeros(1, dtype=torch.float64)
        for top in range(0, max(len(inverse), 1), PANEL):
            end = min(top + PANEL, len(inverse))
            squares = (inverse[top:end, :end] @ rows[:end, block]).square_().sum(0)
            part = part + squares if top else squares
        sums[block] = part
    return sums
