"""The candidates that have not been measured and are predicted to be best.

They are predicted by the model of the page, which is that of the search conditioned on all its values, so that nothing
is fitted for them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import SeqoptError
from seqopt.report.library import Library
from seqopt.report.results import Run
from seqopt.report.samples import Candidates

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

BLOCK = 1_000
"""Strings that are predicted at a time, so that memory stays bounded."""

MOST_PAIRS = 3_000_000
"""Pairs of a candidate and a measured string for which a kernel on symbols is computed: half a minute at most."""

FILTERED = 200
"""Candidates that filters are tried on at a time, the best predicted first."""


@dataclass(frozen=True)
class Unmeasured:
    """A candidate that has not been measured.

    Attributes:
        string: As the library writes it.
        key: Its identity.
        mean: What is predicted of it, in the user's units.
        std: Standard deviation of that, in the user's units; of a measurement where the model knows its noise.
        nearest: The measured string that the model takes to be most like it; empty if the model cannot say.
        similarity: To that one, NaN without.
    """

    string: str
    key: str
    mean: float
    std: float
    nearest: str = ""
    similarity: float = float("nan")


@dataclass(frozen=True)
class BestUnmeasured:
    """The best of them.

    Attributes:
        best: The best first.
        predicted: How many candidates were predicted.
        candidates: How many have not been measured or suggested; more where only a sample was predicted.
        filtered: Whether what fails the filters of the campaign was left out.
    """

    best: tuple[Unmeasured, ...]
    predicted: int
    candidates: int
    filtered: bool = False


def best_unmeasured(
    surrogate: Any,
    run: Run,
    kind: str,
    candidates: Candidates,
    *,
    n: int,
    measured: tuple[Sequence[str], Sequence[str]],
    transform: Any,
    room: int,
    library: Library,
) -> BestUnmeasured | None:
    """The candidates of a pool that are predicted to be best, of those that were neither measured nor suggested.

    Args:
        surrogate: Fitted; larger values are better for it.
        run: The search.
        kind: What its strings are.
        candidates: The pool, or a random sample of it.
        n: How many.
        measured: Measured strings as they were written, and their keys.
        transform: From the user's values to those of the model.
        room: Candidates that are predicted at most, the first ones.
        library: What the columns say, for filters on them.

    Returns:
        `None` where there is no pool, or nothing is left of it.
    """
    if not run.settings.get("pool") or n < 1:
        return None
    known: Set[str] = {*run.evaluations["key"], *run.excluded}
    left = [pair for pair in zip(candidates.strings, candidates.keys, strict=True) if pair[1] not in known]
    left = _still_there(run, left)
    total = max(len(left), candidates.total - len(known)) if not candidates.complete else len(left)
    left = left[: max(room, 0)]
    if not left:
        return None
    keys = [key for _, key in left]
    blocks = [surrogate.predict(keys[start : start + BLOCK]) for start in range(0, len(keys), BLOCK)]
    centre, spread = (np.concatenate([np.asarray(block[i], dtype=np.float64) for block in blocks]) for i in (0, 1))
    # Of equal predictions the first counts; what could not be predicted comes last.
    order = np.argsort(-np.where(np.isfinite(centre), centre, -np.inf), kind="stable")
    chosen, filtered = _passing(run, kind, [left[int(index)] for index in order], n, library)
    places = [int(order[position]) for position in chosen]
    if not places:
        return None
    sign = -1.0 if run.direction == "minimize" else 1.0
    from seqopt.models import MeasurementSurrogate, measurement_std

    nearest = _nearest(surrogate, [keys[place] for place in places], *measured)
    stds = spread[places]
    if isinstance(surrogate, MeasurementSurrogate):
        stds = measurement_std(surrogate, [keys[place] for place in places], stds)
    best = tuple(
        _predicted(left[place], transform.moments(sign * float(centre[place]), float(std)), near)
        for place, std, near in zip(places, stds, nearest, strict=True)
    )
    return BestUnmeasured(best, len(left), total, filtered)


def _still_there(run: Run, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Candidates without those that were removed from the library, or have come into its file and do not count."""
    from seqopt.campaign.library import key_hashes, unpacked

    kept = unpacked(run.candidates)
    if kept is None or not pairs:
        return pairs
    counts = np.isin(key_hashes([key for _, key in pairs]), kept)
    return [pair for pair, count in zip(pairs, counts.tolist(), strict=True) if count]


def _predicted(pair: tuple[str, str], moments: tuple[float, float], near: tuple[str, float]) -> Unmeasured:
    return Unmeasured(*pair, *moments, *near)


def _passing(
    run: Run, kind: str, ranked: Sequence[tuple[str, str]], n: int, library: Library
) -> tuple[list[int], bool]:
    """Positions of the first ``n`` candidates that pass the filters of the campaign, and whether there are any."""
    kept = run.settings.get("filters")
    if not isinstance(kept, list) or not kept:
        return list(range(min(n, len(ranked)))), False
    from seqopt.filters.conditions import Column, from_json
    from seqopt.filters.filtering import filter_pool

    filters, found = from_json(kept), []
    for start in range(0, len(ranked), FILTERED):
        some = ranked[start : start + FILTERED]
        rows = [library.cells(string) for string, _ in some]
        cells = {
            name: Column([row.get(name, "") for row in rows], whole=column) for name, column in library.columns.items()
        }
        try:
            mask, _ = filter_pool([string for string, _ in some], [key for _, key in some], kind, filters, cells)
        except (SeqoptError, ValueError):
            # Such as a condition on a column that the library lost: then nothing is known to pass.
            logger.debug("the filters could not be applied for the page", exc_info=True)
            return [], True
        found += [start + int(place) for place in np.flatnonzero(mask)]
        if len(found) >= n:
            break
    return found[:n], True


def _nearest(
    surrogate: Any, keys: Sequence[str], strings: Sequence[str], measured: Sequence[str]
) -> list[tuple[str, float]]:
    if not hasattr(surrogate, "similarity") or not measured:
        return [("", float("nan"))] * len(keys)
    similarity = np.asarray(surrogate.similarity(list(keys), list(measured)), dtype=np.float64)
    places = similarity.argmax(axis=1)
    return [(strings[int(place)], float(row[place])) for place, row in zip(places, similarity, strict=True)]
