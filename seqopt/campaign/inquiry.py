"""What a campaign's model says of any strings, of all that is left, and of what a prediction rests on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from seqopt.campaign.answers import CHANCES
from seqopt.campaign.costs import way_of
from seqopt.campaign.ranking import measured_here, outlook_at, pool_outlook, unmeasured
from seqopt.campaign.reasons import compared_keys, found_reasons, measured_values, nearest_of, wells_of
from seqopt.campaign.rows import Settings
from seqopt.data import shown_number, told_answer
from seqopt.data.transforms import LearnedTransform
from seqopt.datasets.sheets import Cell, plain_name
from seqopt.errors import InputError, ModelError
from seqopt.models import ExplainedSurrogate, PoolSurrogate, contributions_of
from seqopt.spaces import PoolSpace
from seqopt.utils.shown import Shown, Tabulated

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.campaign.rows import Censoring
    from seqopt.datasets import Pool
    from seqopt.models import Contributions
    from seqopt.optimizer import Optimizer
    from seqopt.spaces import Space

Criterion: TypeAlias = Literal["mean", "improvement", "acquisition"]
"""By what candidates are ranked: what is predicted of them, the probability to beat the best, or what choosing them is
worth by the acquisition function."""

STATES = {"ok": "measured", "pending": "open", "failed": "failed", "withdrawn": "withdrawn", "lost": "lost"}
"""What has become of a string, by the status of its row in the optimiser's table."""

NOTE = "predicted is the median; chance: that the true value is better than what is expected of the best measured one"
"""What the numbers of a short table mean."""

NOTE_CHANCE = "chance of a hit: the mean of what it may be, and the central 90 % of that"
"""The same where results are yes or no."""

NOTE_OUT = "--out writes the nearest measured strings and the 90 % of the true value, too"
"""What else commands that write tables tell."""


@dataclass(frozen=True)
class Predicted:
    """What is predicted of one string, in the user's units.

    Attributes:
        string: As it was given, or as its library writes it.
        key: Its identity.
        predicted: Central prediction: the median, of which the mean of a prediction on a log scale says little.
        low: Lower end of the central 90 % of a measurement, noise included.
        high: Upper end of it.
        true_low: Lower end of the central 90 % of the true value, without the noise of a measurement.
        true_high: Upper end of it.
        status: ``"measured"``, ``"failed"``, ``"open"``, ``"withdrawn"``, ``"lost"``, or empty for a string that
            nobody asked for. Of several ways to measure it is that of the target; of a string that was never asked for
            as its target, it says how it was measured: ``"measured as docking"``.
        measured: Mean of what was measured of it, as the target; `None` without a value.
        improvement: Probability that its true value is better than the best measured string is expected to be; `None`
            where the model cannot say.
        nearest: The measured string that the model takes to be most like it; `None` where it cannot say.
        nearest_value: What was measured of that one.
        similarity: How similar the two are, up to 1.
        rank: From 1, in a ranking; else `None`.
        acquisition: Acquisition value, in a ranking by it.
        identifier: What its owner calls it, where that is known.
        measured_censored: ``"<"`` or ``">"`` where ``measured`` is only a limit.
        nearest_censored: The same of ``nearest_value``.
        wells: Where results are yes or no, of how many wells ``measured`` is the share of hits. What is predicted is
            the probability of a hit then: its mean, and the central 90 % of what it may be.
    """

    string: str
    key: str
    predicted: float
    low: float
    high: float
    true_low: float
    true_high: float
    status: str = ""
    measured: float | None = None
    improvement: float | None = None
    nearest: str | None = None
    nearest_value: float | None = None
    similarity: float | None = None
    rank: int | None = None
    acquisition: float | None = None
    identifier: str | None = None
    measured_censored: Censoring | None = None
    nearest_censored: Censoring | None = None
    wells: int | None = None

    @property
    def known(self) -> str:
        """What is known of it in words, if anything: what was measured, or what else has become of it.

        Example:
            >>> numbers = (0.3, 0.1, 0.6, 0.1, 0.6)
            >>> Predicted("CCO", "CCO", *numbers, "measured", 5 / 12, wells=12).known
            'measured 5 of 12'
            >>> Predicted("CCO", "CCO", *numbers, "measured", 0.1, measured_censored="<").known
            'measured <0.1'
        """
        return self.status if self.measured is None else f"measured {self.measured_words}"

    @property
    def measured_words(self) -> str:
        """What was measured of it, without the unit; empty without a value."""
        if self.measured is None:
            return ""
        if self.wells is not None:
            return told_answer(self.measured, self.wells)
        return f"{self.measured_censored or ''}{shown_number(self.measured)}"


COLUMNS = {
    "rank": "rank",
    "identifier": "identifier",
    "string": "string",
    "predicted": "predicted",
    "predicted_low": "low",
    "predicted_high": "high",
    "true_low": "true_low",
    "true_high": "true_high",
    "acquisition_value": "acquisition",
    "chance_to_beat_best": "improvement",
    "status": "status",
    "measured": "measured",
    "measured_censored": "measured_censored",
    "wells": "wells",
    "nearest_measured": "nearest",
    "nearest_value": "nearest_value",
    "nearest_censored": "nearest_censored",
    "similarity": "similarity",
}
"""Columns of a table of predictions, and the attribute of `Predicted` that each holds."""


class PredictedStrings(Tabulated, list[Predicted]):
    """A list of predictions that shows itself as a table.

    Args:
        rows: The predictions.
        settings: Of the campaign.
        beside: Further columns of the file that the strings are from: by name, a cell for each row. Those of a workbook
            that hold nothing but numbers are numbers.

    Attributes:
        settings: As given.
        beside: As given.
    """

    def __init__(
        self, rows: Sequence[Predicted], settings: Settings, beside: Mapping[str, Sequence[Cell]] | None = None
    ) -> None:
        super().__init__(rows)
        self.settings = settings
        self.beside = dict(beside or {})

    def to_pandas(self) -> pd.DataFrame:
        """One row per string; columns that hold nothing are left out. The sign of a limit has a column of its own.

        Where results are yes or no, predictions are called as in batches, ``chance_of_hit`` and so on. Columns of a
        file stand behind those of the predictions, as they are written there; one of the same name is called
        ``"predicted (file)"`` and so on.
        """
        import pandas as pd

        table = pd.DataFrame([[getattr(row, name) for name in COLUMNS.values()] for row in self], columns=list(COLUMNS))
        # A number of wells is a whole one.
        table["wells"] = table["wells"].astype("Int64")
        seldom = ("rank", "identifier", "acquisition_value", "measured_censored", "nearest_censored", "wells")
        idle = [name for name in seldom if table[name].isna().all()]
        if self.settings.yes_no:
            # No well says more of a chance than that is, and no hit is better than another.
            idle += ["true_low", "true_high", "chance_to_beat_best"]
        table = table.drop(columns=idle).rename(columns=CHANCES if self.settings.yes_no else {})
        for name, cells in self.beside.items():
            taken = {plain_name(str(column)) for column in table.columns}
            table[f"{name} (file)" if plain_name(name) in taken else name] = pd.Series(list(cells), index=table.index)
        return table


@dataclass(frozen=True)
class Explanation(Shown):
    """What is predicted of a string, why, and what that rests on; it shows itself with a drawing in a notebook.

    Attributes:
        name: What a campaign calls it, for a suggestion; else empty.
        prediction: What is predicted of it now.
        reason: How it stands now, as suggestions keep it: see `seqopt.campaign.reasons.Reason`.
        contributions: What each symbol or atom of the string, written as its key, adds to the prediction, in the
            user's direction and units; of log10 of the values where these are on a log scale. `None` where the model
            cannot say.
        without: Why there are no contributions; empty where there are.
        at_suggestion: The reason that was kept when it was suggested; empty for other strings.
        settings: Of the campaign.
    """

    name: str
    prediction: Predicted
    reason: dict[str, object]
    contributions: Contributions | None
    without: str
    at_suggestion: dict[str, object]
    settings: Settings


class FileStrings(NamedTuple):
    """The strings of a file.

    Attributes:
        strings: As they are written.
        keys: Their identities, all different.
        beside: The other columns of the file, by name, as they are written; a cell for each string.
        left_out: What of the file was left out, with its lines.
    """

    strings: list[str]
    keys: list[str]
    beside: dict[str, Sequence[Cell]]
    left_out: list[str]


def read_strings(
    path: str | os.PathLike[str], column: str | None, settings: Settings, space: Space, key: Callable[[str], str]
) -> FileStrings:
    """The strings of a file, with its other columns.

    Args:
        path: The file.
        column: Its column of strings, if it is not to be recognised.
        settings: Of the campaign.
        space: Where it searches.
        key: From a string to its key; raises `InputError` for one that is not valid.

    Raises:
        InputError: If the file cannot be read, or holds nothing that is valid.
    """
    from seqopt.datasets import read_pool

    standardize = bool((settings.pool or {}).get("standardize"))
    # What a space reads is up to it: genes may be written in RNA letters.
    kind = "text" if space.kind in ("dna", "rna") and not isinstance(space, PoolSpace) else space.kind
    found = read_pool(path, column=column, kind=kind, standardize=standardize)
    left_out = found.summary().splitlines()[1:]
    if isinstance(space, PoolSpace):
        return FileStrings(list(found.strings), list(found.keys), _beside(path, found, found.lines.tolist()), left_out)
    strings: list[str] = []
    lines: dict[str, int] = {}
    for string, line in zip(found.strings, found.lines.tolist(), strict=True):
        try:
            own = key(string)
        except InputError as error:
            left_out.append(f"line {line} is left out: {error}")
            continue
        if own in lines:
            left_out.append(f"line {line} is left out: it is line {lines[own]} once more")
            continue
        lines[own] = line
        strings.append(string)
    if not strings:
        raise InputError(f"{path} holds no string that can be searched here; {left_out[-1]}")
    return FileStrings(strings, list(lines), _beside(path, found, list(lines.values())), left_out)


def _beside(path: str | os.PathLike[str], found: Pool, lines: Sequence[int]) -> dict[str, Sequence[Cell]]:
    """The columns of a file but that of the strings, at some of its lines."""
    from seqopt.datasets.tables import read_table

    strings = found.column or "string"
    table = read_table(path, expected={plain_name(strings)})
    places = {line: place for place, line in enumerate(table.lines.tolist())}
    if not all(line in places for line in lines):
        return {}  # it has been written anew meanwhile
    named = {name: cells for name, cells in table.columns.items() if name not in ("", strings)}
    written = {name: [cells[places[line]] for line in lines] for name, cells in named.items()}
    if table.format not in ("xlsx", "parquet", "sdf"):
        return dict(written)
    # In a file of text numbers are as its owner writes them; here they are numbers, and written as the library's are.
    from seqopt.datasets.workbooks import as_numbers

    return {name: as_numbers(cells) for name, cells in written.items()}


def predict(optimizer: Optimizer, strings: Sequence[str], keys: Sequence[str]) -> list[Predicted]:
    """What is predicted of any strings, from everything told so far.

    Args:
        optimizer: That of the campaign; nothing of it changes.
        strings: As they are to be shown.
        keys: Their identities.

    Raises:
        ModelError: If there are fewer than two values, or the strategy has no surrogate.
    """
    if not keys:
        return []
    surrogate = optimizer.fitted
    found = optimizer.predictions(keys)
    expected = outlook_at(surrogate, keys, measured_here(optimizer))
    values = measured_values(optimizer)
    rows = optimizer.observations.rows
    states = _states(optimizer)
    written = {row.key: row.string for row in rows}
    known, yes_no = compared_keys(optimizer), optimizer.outcome.yes_no
    nearest: list[tuple[int, float]] | None = None
    if isinstance(surrogate, ExplainedSurrogate):
        nearest = nearest_of(surrogate, keys, known)
    numbers: list[list[float]] = np.column_stack(found).tolist()
    told: list[Predicted] = []
    for index, (string, key, ends) in enumerate(zip(strings, keys, numbers, strict=True)):
        central, low, high, true_low, true_high = ends
        measured, side = values.get(key, (None, None))
        one = Predicted(
            string, key, central, low, high, true_low, true_high, states.get(key, ""), measured, measured_censored=side
        )
        if yes_no and measured is not None:
            one = replace(one, wells=wells_of(optimizer, key))
        if expected is not None and not yes_no:
            one = replace(one, improvement=float(expected.improvement[index]))
        if nearest is not None:
            other, similarity = known[nearest[index][0]], nearest[index][1]
            value, side = values.get(other, (None, None))
            one = replace(
                one, nearest=written[other], nearest_value=value, nearest_censored=side, similarity=similarity
            )
        told.append(one)
    return told


def _states(optimizer: Optimizer) -> dict[str, str]:
    """What has become of each string as the target or, where nothing has, in another way, which is named."""
    contexts = optimizer.contexts
    target = None if contexts is None or contexts.latent else contexts.target
    found: dict[str, str] = {}
    rows = sorted(optimizer.observations.rows, key=lambda row: (target in (None, row.context), row.status == "ok"))
    for row in rows:
        how = "" if target in (None, row.context) else f" as {way_of(row.context)}"
        found[row.key] = STATES[row.status] + how
    return found


def rank(optimizer: Optimizer, n: int | None, by: Criterion) -> list[Predicted]:
    """The best candidates of a pool that have no result yet, the best first; those that are open are among them.

    Memory: some numbers for each candidate; covariances with all candidates are kept or computed in blocks.

    Args:
        optimizer: That of the campaign; nothing of it changes. Its space is what may be suggested.
        n: How many; `None` for all.
        by: See `Criterion`. By the acquisition function, given the open ones, which are left out.

    Raises:
        InputError: For another criterion, or one that the results do not allow, or where strings are generated.
        ModelError: If there are fewer than two values, or the model cannot say.
    """
    if by not in get_args(Criterion):
        raise InputError(f"by is {by!r}; choose {', '.join(get_args(Criterion))}")
    if by == "improvement" and optimizer.outcome.yes_no:
        raise InputError("results are yes or no, and no hit is better than another: rank by mean, the chance of a hit")
    space = optimizer.space
    if not isinstance(space, PoolSpace):
        raise InputError("strings are generated here, not listed: there is no pool to rank; predict strings instead")
    surrogate = optimizer.fitted
    everything = pool_outlook(surrogate, space, measured_here(optimizer))
    if everything is None:
        raise ModelError(f"{type(surrogate).__name__} cannot predict a whole pool")
    allowed = unmeasured(optimizer, space)
    scores = None
    if by == "acquisition":
        for row in optimizer.observations.pending:
            index = space.index_of(row.key)
            if index is not None:
                allowed[index] = False
        order, scores = _by_acquisition(optimizer, space, allowed, n)
    else:
        # Where chances round to nothing, the mean decides.
        keys = (-everything.mean,) if by == "mean" else (-everything.mean, -everything.improvement)
        order = np.flatnonzero(allowed)[np.lexsort(tuple(key[allowed] for key in keys))][:n]
    chosen = [int(index) for index in order]
    rows = predict(optimizer, [space[index] for index in chosen], [space.keys[index] for index in chosen])
    return [
        replace(row, rank=place + 1, acquisition=None if scores is None else float(scores[place]))
        for place, row in enumerate(rows)
    ]


def explain(
    optimizer: Optimizer,
    settings: Settings,
    name: str,
    string: str,
    key: str,
    at_suggestion: dict[str, object] | None = None,
) -> Explanation:
    """What is predicted of a string, why, and what that rests on.

    Args:
        optimizer: That of the campaign; nothing of it changes.
        settings: Of the campaign.
        name: What the campaign calls it, if it was suggested.
        string: The string.
        key: Its identity.
        at_suggestion: The reason that was kept when it was suggested.

    Raises:
        ModelError: If there are fewer than two values, or the strategy has no surrogate.
    """
    surrogate = optimizer.fitted
    (prediction,) = predict(optimizer, [string], [key])
    reason: dict[str, object] = {}
    if isinstance(surrogate, ExplainedSurrogate):
        awaited = max(len(optimizer.pending), optimizer.batch_size)
        reason = found_reasons(optimizer, surrogate, [key], awaited)[0].to_json()
    found, without = None, ""
    try:
        found = contributions_of(surrogate, key).signed(optimizer.outcome.sign)
        if isinstance(optimizer.transform, LearnedTransform):
            found = found.in_units(optimizer.transform.inverse)
    except ModelError as error:
        without = str(error)
    return Explanation(name, prediction, reason, found, without, dict(at_suggestion or {}), settings)


def _by_acquisition(
    optimizer: Optimizer, space: PoolSpace, allowed: npt.NDArray[np.bool_], n: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    from seqopt.acquisition import RandomAcquisition
    from seqopt.models import unsupported
    from seqopt.scorers import GaussianScoring, Scoring
    from seqopt.strategies.warm import WarmStart

    surrogate, acquisition = optimizer.fitted, optimizer.acquisition
    if isinstance(acquisition, RandomAcquisition) or not isinstance(surrogate, PoolSurrogate):
        raise ModelError("what decides here has no acquisition values: rank by mean or improvement")
    state = optimizer.state()
    refused = unsupported(surrogate, state.pending)  # type: ignore[arg-type]
    pending = [item for index, item in enumerate(state.pending) if index not in refused]
    rng = np.random.default_rng([optimizer.seed, *optimizer.counters.values()])
    strategy = optimizer.strategy.then
    scoring: Scoring
    if isinstance(strategy, WarmStart):
        scoring = strategy.scored_by(surrogate, 1, state, rng)
    else:
        scoring = GaussianScoring(surrogate, acquisition, pending=pending, batch_size=1 + len(pending), rng=rng)
    return scoring.pool_scorer(space).best(allowed, int(allowed.sum()) if n is None else n)
