"""Random strings of the space that a search chose from, and how well random choice would have done.

With n values known of random strings, v_1 <= ... <= v_n, the best of k drawn from them without replacement is at most
v_i with probability C(i, k) / C(n, k). Its mean estimates, without bias, the expected best of k random draws from the
space that the n strings were drawn from. Where the n are but a sample of that space, quantiles of the best of k say
little about it unless k is much smaller than n: of k = n draws without replacement there is only one choice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammaln

from seqopt.errors import SeqoptError
from seqopt.report.library import LARGEST_FILE, Library
from seqopt.report.results import Run, as_number
from seqopt.strings.identity import KINDS, identity_keys

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

POOL_SAMPLE = 1_500
"""Random strings of a pool that a map shows at most."""

MOST_PREDICTED = 20_000
"""Strings of a pool that are predicted for a page at most."""

SCORED = 500
"""Random strings that are scored for the random baseline."""

SCORING_SECONDS = 2.0
"""Time that this may take, by the times of the run."""

BASELINE_POINTS = 200
"""Numbers of draws that a baseline is computed for."""

PER_DRAW = 20
"""Values of a sample per draw that the 90% range needs: below, its upper end would be the best value of the sample."""


@dataclass(frozen=True)
class Candidates:
    """Random strings of a pool or space.

    Attributes:
        strings: As they are written there.
        keys: Their identities.
        values: For a pool, the values of all its rows, where a column of the file is the objective.
        source: What they are a sample of, in words; empty where there are none.
        missing: Why there are none, a sentence.
        total: Rows of the pool.
        complete: Whether the strings are all that the pool has.
    """

    strings: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    values: FloatArray | None = None
    source: str = ""
    missing: str = ""
    total: int = 0
    complete: bool = False


def sample_candidates(run: Run, kind: str, n: int, *, seed: int = 0, library: Library | None = None) -> Candidates:
    """Random strings of what a search chose from.

    Args:
        run: The search.
        kind: What its strings are.
        n: How many at most.
        seed: Of the draw.
        library: The rows of the pool's file, where they have been read.
    """
    rng = np.random.default_rng(seed)
    try:
        if run.settings.get("pool"):
            return _of_pool(run, kind, n, rng, library)
        space = space_of(run)
    except (SeqoptError, OSError, ValueError, TypeError, KeyError) as error:
        logger.debug("no sample of candidates", exc_info=True)
        return Candidates(missing=f"What was searched could not be opened again ({error}).")
    if space is None:
        return Candidates(missing="What was searched cannot be sampled: the settings do not say enough of it.")
    strings = list(dict.fromkeys(space.sample(n, rng)))
    return Candidates(tuple(strings), tuple(map(space.key, strings)), source="the space of the search")


def _of_pool(run: Run, kind: str, n: int, rng: np.random.Generator, library: Library | None) -> Candidates:
    name = str(run.settings["pool"])
    shown = Path(name).name
    found = _pool_rows(run, name, library)
    if isinstance(found, str):
        return Candidates(missing=found)
    strings, values = found
    chosen = rng.permutation(len(strings))[: n + n // 10]
    sample = list(dict.fromkeys(strings[int(index)].strip() for index in chosen))
    if kind not in KINDS:
        kind = "text"
    keys = identity_keys(sample, kind, standardize=bool(run.settings.get("standardize")))
    distinct = {key: string for string, key in zip(sample, keys, strict=True) if key}
    chosen_keys = list(distinct)[:n]
    return Candidates(
        tuple(distinct[key] for key in chosen_keys),
        tuple(map(str, chosen_keys)),
        values,
        f"the {len(strings):,} rows of {shown}",
        total=len(strings),
        complete=len(chosen) == len(strings) and len(distinct) <= n,
    )


def _pool_rows(run: Run, name: str, library: Library | None) -> tuple[Sequence[str], FloatArray | None] | str:
    """Strings of a pool, and values where its file holds them; or why it cannot be read."""
    from seqopt.campaign.parents import parent_in
    from seqopt.datasets.named import DATASETS
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.structures import as_smiles
    from seqopt.datasets.tables import read_table
    from seqopt.strings.mutations import readable_variants

    objective = "" if run.campaign else str(run.settings.get("objective") or "")
    wanted = objective.removeprefix("column:") if objective.startswith("column:") else None
    if name in DATASETS:
        return _named(name, wanted)
    path = Path(name)
    file, _ = file_and_part(path)
    if not file.is_file():
        return f"The pool {path.name} is not where it was: a sample of it is missing."
    if file.stat().st_size > LARGEST_FILE:
        return f"The pool {path.name} is too large to be read for this page: a sample of it is missing."
    column = str(run.settings.get("column") or "string")
    strings: Sequence[str]
    if library is not None and library.strings:
        strings, columns = library.strings, library.columns
    else:
        table = read_table(path, expected={plain_name(column)})
        if column not in table.columns:
            return f"The pool {path.name} has no column {column!r} any more: a sample of it is missing."
        strings = readable_variants(parent_in(run.settings), as_smiles(table.columns[column]))
        columns = table.columns
    values = None
    if wanted is not None and wanted in columns:
        numbers = [as_number(cell) for cell in columns[wanted]]
        values = np.array([number for number in numbers if number is not None])
        if run.settings.get("transform") == "log10":
            values = values[values > 0]
    return strings, values


def _named(name: str, wanted: str | None) -> tuple[Sequence[str], FloatArray | None] | str:
    from seqopt.datasets.named import load
    from seqopt.utils.cache import cache_dir

    own = os.environ.get("SEQOPT_DATA")
    for folder in [*([Path(own).expanduser()] if own else []), cache_dir()]:
        try:
            # A folder is named, so that nothing is downloaded for a page.
            dataset = load(name, folder)
        except SeqoptError:
            continue
        known = dataset.values is not None and wanted in (dataset.target, "value")
        return dataset.strings, dataset.values if known else None
    return f"The data set {name} is not on this machine: a sample of it is missing."


def space_of(run: Run) -> Any:
    """The space of a search without a pool, or `None` where no description of it is kept, or only a custom one.

    Raises:
        CampaignError: If it cannot be made any more, as where its grammar has changed.
    """
    from seqopt.campaign.spaces import restored_space

    kept = run.settings.get("space")
    return None if not isinstance(kept, dict) or kept.get("custom") else restored_space(kept)


def size_of(run: Run) -> str:
    """How many strings the space of a search holds, what narrows it not counted, in figures; empty if not known."""
    kept = run.settings.get("space")
    if not isinstance(kept, dict):
        return ""
    from seqopt.spaces.populations import SequenceSpace, described_size

    # A predicate cannot be made again, but without it the space can be.
    whole = {name: value for name, value in kept.items() if name not in ("custom", "accept")}
    try:
        space = space_of(replace(run, settings={"space": whole}))
    except (SeqoptError, OSError, ValueError, TypeError, KeyError):
        logger.debug("the space of the search could not be made", exc_info=True)
        return ""
    return described_size(space) if isinstance(space, SequenceSpace) else ""


@dataclass(frozen=True)
class Baseline:
    """The best of k strings that are chosen at random.

    Attributes:
        table: Columns ``draws`` (k), ``mean``, ``low`` and ``high`` (90% of all such choices lie between them; NaN
            where a sample is too small to tell).
        source: What the numbers rest on, in words.
    """

    table: pd.DataFrame
    source: str

    @property
    def banded(self) -> int:
        """The largest number of draws with a range; 0 if there is none to draw."""
        known = self.table.loc[self.table["low"].notna(), "draws"]
        return int(known.max()) if len(known) > 1 else 0


def best_of_random(values: FloatArray, draws: Sequence[int], direction: str) -> pd.DataFrame:
    """The best of k values drawn at random, without replacement, for each k of ``draws``.

    Args:
        values: n values.
        draws: Numbers k from 1 to n.
        direction: ``"maximize"`` or ``"minimize"``.

    Returns:
        Columns ``draws``, ``mean``, and ``low`` and ``high``, the 5% and 95% quantiles.

    Example:
        >>> best_of_random(np.array([1.0, 2.0, 6.0]), [1, 2, 3], "maximize")["mean"].round(6).tolist()
        [3.0, 4.666667, 6.0]
    """
    sign = -1.0 if direction == "minimize" else 1.0
    ordered = np.sort(sign * np.asarray(values, dtype=np.float64))
    n, ranks = len(ordered), np.arange(1, len(ordered) + 1)
    rows = []
    for k in draws:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = gammaln(ranks + 1) - gammaln(np.maximum(ranks - k, 0) + 1) - (gammaln(n + 1) - gammaln(n - k + 1))
        below = np.where(ranks >= k, np.exp(logs), 0.0)
        mean = float(ordered @ np.diff(below, prepend=0.0))
        ends = [float(ordered[min(int(np.searchsorted(below, share)), n - 1)]) for share in (0.05, 0.95)]
        rows.append((int(k), sign * mean, *sorted(sign * end for end in ends)))
    return pd.DataFrame(rows, columns=["draws", "mean", "low", "high"])


def random_baseline(
    run: Run, candidates: Candidates, score: Callable[[list[str]], npt.ArrayLike] | None, *, log10: bool = False
) -> Baseline | None:
    """How well random choice would have done, where that is known.

    It rests on the values of the whole pool where they are known; else on random strings scored for the page, where
    that is quick and gives the values of the run again; else on strings that the search itself chose at random, for as
    many draws as there were. Values that were imported or recorded by hand are not a random choice and never count.

    Of a sample, the mean is without bias for any number of draws; the 90% range is given only for up to one draw per
    `PER_DRAW` values.

    Args:
        run: The search.
        candidates: Random strings.
        score: The objective, if it may be called here.
        log10: Average logarithms.
    """
    table = run.evaluations
    evaluated = int((table["status"] != "pending").sum())
    values, source, complete = _known_values(run, candidates, score)
    if log10:
        values = np.log10(values[values > 0])
    values = values[np.isfinite(values)]
    most = min(evaluated, len(values))
    if most < 2:
        return None
    draws = sorted({round(k) for k in np.linspace(1, most, min(most, BASELINE_POINTS))})
    found = best_of_random(values, draws, run.direction)
    if not complete:
        found.loc[found["draws"] * PER_DRAW > len(values), ["low", "high"]] = np.nan
    if log10:
        found[["mean", "low", "high"]] = 10.0 ** found[["mean", "low", "high"]]
    return Baseline(found, source)


def _known_values(
    run: Run, candidates: Candidates, score: Callable[[list[str]], npt.ArrayLike] | None
) -> tuple[FloatArray, str, bool]:
    """Values of random strings, what they are in words, and whether they are all that there are."""
    if candidates.values is not None and len(candidates.values):
        return candidates.values, f"all {len(candidates.values):,} values of the pool", True
    table = run.evaluations
    measured = table[table["measured"]]
    if score is not None and candidates.strings and len(measured):
        sample = list(candidates.strings[:SCORED])
        seconds = float(measured["seconds"].median())
        if seconds * len(sample) <= SCORING_SECONDS and _reproduces(score, measured):
            scored = _scored(score, sample)
            if len(scored) == len(sample):
                return scored, f"{len(sample):,} random strings of {candidates.source}, scored for this page", False
    initial = table.loc[_chosen_at_random(run) & table["measured"], "value"]
    source = f"the {len(initial)} measured strings that were chosen at random, as far as they reach"
    return initial.to_numpy(dtype=np.float64), source, False


def _chosen_at_random(run: Run) -> pd.Series:
    """Whether each string was chosen at random: the initial design of a run, random suggestions of a campaign."""
    table = run.evaluations
    if run.campaign:
        return table["why"] == "random"
    if run.settings.get("design") or run.settings.get("include"):
        return pd.Series(False, index=table.index)
    asked = as_number(run.settings.get("initial")) or 0.0
    first = (table["batch"] == 0) & table["predicted_mean"].isna()
    return first & (first.cumsum() <= asked)


def _reproduces(score: Callable[[list[str]], npt.ArrayLike], measured: pd.DataFrame) -> bool:
    """Whether the objective gives the values of the run again: a name may mean something else there."""
    few = measured.head(3)
    again = _scored(score, few["string"].tolist())
    return len(again) == len(few) and bool(np.allclose(again, few["value"], rtol=1e-6, atol=1e-9))


def _scored(score: Callable[[list[str]], npt.ArrayLike], strings: list[str]) -> FloatArray:
    try:
        values = np.asarray(score(strings), dtype=np.float64)
    except Exception:  # whatever an objective raises, the page is written without it
        logger.debug("the objective could not be called for the page", exc_info=True)
        return np.zeros(0)
    return values if values.shape == (len(strings),) and np.isfinite(values).all() else np.zeros(0)


def own_objective(run: Run) -> Callable[[list[str]], npt.ArrayLike] | None:
    """The objective of a run, if it is one of seqopt's own; a user's functions are never called for a page."""
    from seqopt.objectives import OBJECTIVES, resolve_objective

    spec = str(run.settings.get("objective") or "")
    if run.campaign or spec.partition(":")[0] not in OBJECTIVES:
        return None
    try:
        return resolve_objective(spec)
    except (SeqoptError, OSError, ValueError):
        return None
