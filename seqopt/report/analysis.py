"""What a surrogate says of a finished search: leave-one-out predictions, nearest neighbours, and the kernel's map.

The surrogate is that of the search, with the parameters of its kernel where they were kept; it is conditioned on all
values for the page. What cannot be restored is fitted afresh or left out, and the page says so.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from seqopt.campaign.ranking import rank_among
from seqopt.campaign.reasons import label
from seqopt.data.transforms import LearnedTransform, learned, resolve_transform
from seqopt.errors import InputError
from seqopt.models import BinomialGP, FullyBayesianGP, StringGP, mean_effects
from seqopt.models.transforms import fit_with_transform
from seqopt.report.explaining import Explained, costly_kernel, explained, symbol_counts
from seqopt.report.kernel_pca import FEWEST, kernel_pca
from seqopt.report.library import Library
from seqopt.report.restored import candidates_of, restore_surrogate, search_space
from seqopt.report.results import Run, limit_of, log10_moments
from seqopt.report.samples import MOST_PREDICTED, POOL_SAMPLE, Candidates
from seqopt.report.unmeasured import MOST_PAIRS, BestUnmeasured, best_unmeasured
from seqopt.report.view import MOST_OF_BATCH

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

MOST_MEASURED = 2_000
"""Measured strings that the model of a page is conditioned on, and that its map shows."""

SYMBOLS = 200_000
"""Strings of a map times their mean length, for a kernel on symbols: beyond, the sample of candidates is smaller."""

MOST_WORK = 4e9
"""Sum, over all pairs of strings, of the products of their lengths beyond which no kernel on symbols is fitted for a
page: 2,000 molecules and 30 proteins of 2,000 residues stay below; a fit of this size takes some minutes."""

MOST_AVERAGED = 600
"""Strings of a map whose kernel is averaged over draws."""


@dataclass(frozen=True)
class MapData:
    """Coordinates of strings in the map of a kernel.

    Attributes:
        strings: What is shown of each.
        keys: Their identities.
        group: ``"pool"``, ``"measured"`` or ``"suggested"`` for each.
        coordinates: ``n x 2``.
        explained: Shares of the variance along both components.
        mean: Predicted values of strings without a measured one, NaN elsewhere, in the user's units.
        std: Standard deviations of these predictions.
        whole: Whether every candidate of the pool is in the map.
    """

    strings: list[str]
    keys: list[str]
    group: list[str]
    coordinates: FloatArray
    explained: FloatArray
    mean: FloatArray
    std: FloatArray
    whole: bool = False


@dataclass(frozen=True)
class Analysis:
    """What the model of a page says.

    Attributes:
        kernel: The kernel, in words.
        how: How the model was made, a sentence.
        scale: How the model sees the values, in words, where it has learned a transform of them; else empty.
        held_out: Leave-one-out predictions as `seqopt.report.results.predictions` returns predictions; `None` without.
        r2: Leave-one-out R2, of log10 values where those are modelled; `None` where unknown.
        within_90: Share of the values within the central 90% of their leave-one-out predictions.
        reasons: By number of the evaluation: why it was chosen, the nearest string measured before, the similarity.
        map: The map; `None` where there is none.
        unmeasured: The candidates that are predicted to be best; `None` where there are none.
        explained: What the predictions of open suggestions and of those candidates rest on.
        missing: What is not there and why, a sentence each.
        seconds: Time that all this took.
    """

    kernel: str = ""
    how: str = ""
    scale: str = ""
    held_out: pd.DataFrame | None = None
    r2: float | None = None
    within_90: float | None = None
    reasons: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    map: MapData | None = None
    unmeasured: BestUnmeasured | None = None
    explained: Explained = field(default_factory=Explained)
    missing: tuple[str, ...] = ()
    seconds: float = 0.0


def analyse(
    run: Run, kind: str, candidates: Candidates, *, seed: int = 0, predicted: int = 0, library: Library | None = None
) -> Analysis:
    """Fit the model of a search again and ask it what a page shows.

    Whatever goes wrong is said in `Analysis.missing`.

    Args:
        run: The search.
        kind: What its strings are.
        candidates: Random strings of what was searched; a map shows the first `POOL_SAMPLE` of them.
        seed: Of the random choices.
        predicted: How many of the best unmeasured candidates of a pool are wanted.
        library: What the file of candidates says of them.
    """
    started = time.perf_counter()
    if run.evaluations["measured"].sum() < FEWEST:
        return Analysis(missing=(f"The map of the kernel needs at least {FEWEST} measured strings.",))
    try:
        # Values near the largest float overflow in a model; what comes of it is left out.
        with np.errstate(over="ignore", invalid="ignore"):
            found = _analyse(run, kind, candidates, np.random.default_rng(seed), predicted, library or Library())
    except Exception as error:  # a page without a map is better than none, whatever a custom model raises
        logger.debug("no model for the page", exc_info=True)
        return Analysis(
            missing=(f"No model could be fitted for this page, so that the map of the kernel is missing ({error}).",),
            seconds=time.perf_counter() - started,
        )
    return Analysis(**{**vars(found), "seconds": time.perf_counter() - started})


def _analyse(
    run: Run, kind: str, candidates: Candidates, rng: np.random.Generator, predicted: int, library: Library
) -> Analysis:
    table = run.evaluations
    measured = _few(table[table["measured"]], run.direction, rng)
    waiting = table[table["status"] == "pending"].drop_duplicates("key")
    space = search_space(run, kind, [*measured["key"], *waiting["key"], *candidates.keys])
    surrogate, kernel, remark = restore_surrogate(run, space)
    transform = resolve_transform(str(run.settings.get("transform") or "none"))
    sign = -1.0 if run.direction == "minimize" else 1.0
    rows = _single(run, measured)
    # Parameters that were kept are those of the search's own model.
    source = replace(run, model=None, steps=[]) if remark else run
    sides = (sign * limit_of(rows).map({"": 0, "<": -1, ">": 1}).to_numpy()).astype(np.int8)
    said = []

    def fit() -> None:
        targets = np.array([sign * transform.forward(value) for value in rows["value"]])
        noise = [
            transform.variance(value, error**2) if error > 0 and not run.yes_no else 0.0
            for value, error in zip(rows["value"], rows["standard_error"], strict=True)
        ]
        wells = rows["wells"].tolist() if run.yes_no and "wells" in rows else None
        said.append(_fit(source, surrogate, rows["key"].tolist(), targets, noise, sides, rng, wells))

    fit_with_transform(transform, rows["value"].to_numpy(dtype=np.float64), sides == 0, fit, surrogate)
    effects = [effect.describe() for effect in mean_effects(surrogate)]
    how = " ".join([remark, said[-1], *(f"{text[:1].upper()}{text[1:]}." for text in effects)]).strip()
    scale = (
        transform.describe() if isinstance(transform, LearnedTransform) and learned(transform).name != "none" else ""
    )
    found: dict[str, Any] = {"kernel": kernel, "how": how, "scale": scale}
    # Of one result that is yes or no, no interval holds or misses it: how probabilities hold is said by itself.
    if hasattr(surrogate, "leave_one_out") and not run.yes_no:
        loo = surrogate.leave_one_out()
        found |= {"r2": loo.r2 if np.isfinite(loo.r2) else None, "within_90": loo.within_90}
        held_out = pd.DataFrame(
            {
                "number": rows["number"].to_numpy(),
                "batch": rows["batch"].to_numpy(),
                "mean": sign * loo.mean,
                "std": loo.std,
                "value": sign * loo.values,
            }
        )
        held_out = held_out.replace([np.inf, -np.inf], np.nan).dropna()
        found["held_out"] = held_out if len(held_out) else None
    # A batch of an asynchronous run is one ask: which results had come before it is not known.
    if hasattr(surrogate, "similarity") and not run.campaign and not run.settings.get("asynchronous"):
        found["reasons"] = _reasons(surrogate, measured, waiting, sign, log10=transform.name == "log10")
    shown = measured.drop_duplicates("key")
    known = {*shown["key"], *waiting["key"]}
    room = MOST_PREDICTED
    if _is_symbolic(surrogate):
        draws = MOST_AVERAGED // 10 if isinstance(surrogate, FullyBayesianGP) else 1
        room = MOST_PAIRS // (max(len(shown), 1) * draws)
    found["unmeasured"] = best_unmeasured(
        surrogate,
        run,
        kind,
        candidates,
        n=predicted,
        measured=(shown["string"].tolist(), shown["key"].tolist()),
        transform=transform,
        room=room,
        library=library,
    )
    best = () if found["unmeasured"] is None else found["unmeasured"].best
    asked = [*waiting["key"].head(MOST_OF_BATCH), *(one.key for one in best)]
    if not run.yes_no:  # contributions are to log odds, which the page does not show
        found["explained"] = explained(surrogate, asked, rows["key"].tolist(), sign, transform)
    pairs = zip(candidates.strings, candidates.keys, strict=True)
    others = [pair for pair in pairs if pair[1] not in known]
    unmapped, others = len(others), others[:POOL_SAMPLE]
    others = others[: _room(surrogate, [key for _, key in others], len(known))]
    keys = [*(key for _, key in others), *shown["key"], *waiting["key"]]
    group = ["pool"] * len(others) + ["measured"] * len(shown) + ["suggested"] * len(waiting)
    drawn = kernel_pca(keys, surrogate, space=candidates_of(keys, kind, space), components=2)
    mean, std = _predictions(surrogate, keys, group, sign, transform)
    found["map"] = MapData(
        [*(string for string, _ in others), *shown["string"], *waiting["string"]],
        keys,
        group,
        drawn.coordinates,
        drawn.explained_variance_ratio,
        mean,
        std,
        whole=candidates.complete and len(others) == unmapped,
    )
    return Analysis(**found)


def _few(measured: pd.DataFrame, direction: str, rng: np.random.Generator) -> pd.DataFrame:
    """All measured rows; of very many the best half and a random choice of the others."""
    if len(measured) <= MOST_MEASURED:
        return measured
    ordered = measured.sort_values("value", ascending=direction == "minimize", kind="stable")
    best, rest = ordered.head(MOST_MEASURED // 2), ordered.iloc[MOST_MEASURED // 2 :]
    chosen = rng.choice(len(rest), MOST_MEASURED - len(best), replace=False)
    return pd.concat([best, rest.iloc[chosen]]).sort_values("number")


def _single(run: Run, measured: pd.DataFrame) -> pd.DataFrame:
    """One row per measurement: those that a campaign has of one string are rows of their own, as in its model."""
    if run.measurements is None:
        return measured
    return measured[["number", "batch", "key"]].merge(run.measurements, on="key", how="inner")


def _fit(
    run: Run,
    surrogate: Any,
    keys: list[str],
    targets: FloatArray,
    noise: list[float],
    sides: npt.NDArray[np.int8],
    rng: np.random.Generator,
    wells: list[int] | None = None,
) -> str:
    """Condition on all values at the parameters of the search, where they are known; returns how, in words."""
    known: dict[str, Any] = {}
    if any(noise) and getattr(surrogate, "takes_noise_variance", False):
        known["noise_variance"] = noise
    if sides.any() and getattr(surrogate, "takes_censored", False):
        known["censored"] = sides
    if wells is not None and getattr(surrogate, "takes_trials", False):
        known["trials"] = wells
    conditioned = f"It is conditioned on all {len(keys):,} values."
    if isinstance(surrogate, BinomialGP) and run.model is not None:
        surrogate.load_state_dict(run.model)
        surrogate.fit(keys, targets, rng=rng, full=False, **known)
        return f"The kernel has the parameters of the last suggestions. {conditioned}"
    if isinstance(surrogate, StringGP):
        if run.model is not None:
            surrogate.load_state_dict(run.model)
            surrogate.fit(keys, targets, rng=rng, full=False, **known)
            return f"The kernel has the parameters of the last suggestions. {conditioned}"
        kept = _set_kernel(surrogate, run)
        if not kept:
            _check_work(surrogate, keys)
        surrogate.fit(keys, targets, rng=rng, full=not kept, **known)
        return (
            f"The kernel has the parameters of the last batch. {conditioned}"
            if kept
            else f"Its parameters were fitted to all {len(keys):,} values when this page was written."
        )
    _check_work(surrogate, keys)
    surrogate.fit(keys, targets, rng=rng, **known)
    return f"Its parameters were fitted to all {len(keys):,} values when this page was written."


def _check_work(surrogate: Any, keys: Sequence[str]) -> None:
    """Refuse a fit that would take very long; a kernel on symbols takes time in proportion to pairs x length^2."""
    if not _is_symbolic(surrogate):
        return
    lengths = symbol_counts(surrogate.encoder.encode(keys))
    # The sum of l_i l_j over all pairs, each string with itself included.
    work = (lengths.sum() ** 2 + (lengths**2).sum()) / 2
    if work > MOST_WORK:
        raise InputError(
            f"the parameters of its kernel are not known, and fitting them to {len(keys):,} strings of up to "
            f"{int(lengths.max()):,} symbols would take too long for a page"
        )


def _is_symbolic(surrogate: Any) -> bool:
    return costly_kernel(surrogate) is not None


def _set_kernel(surrogate: StringGP, run: Run) -> bool:
    """Give the kernel the parameters that the run ended with; returns whether all of them are known."""
    kernel = surrogate.kernel
    last: dict[str, Any] = next((step["kernel"] for step in reversed(run.steps) if step.get("kernel")), {})
    learned = [name for name, parameter in kernel.named_parameters() if parameter.requires_grad]
    names = [name.rpartition(".")[2].removeprefix("raw_") for name in learned]
    simple = all("." not in name for name in learned) and all(
        isinstance(last.get(name), float)
        and isinstance(getattr(kernel, name, None), torch.Tensor)
        and getattr(kernel, name).numel() == 1
        for name in names
    )
    if not simple:
        return False
    try:
        for name in names:
            setattr(kernel, name, last[name])
    except (RuntimeError, ValueError, TypeError):
        return False
    return bool(last) or not names


def _reasons(
    surrogate: Any, measured: pd.DataFrame, waiting: pd.DataFrame, sign: float, *, log10: bool
) -> dict[int, tuple[str, str, float]]:
    """Why strings were chosen, by what was known before their batch; with ``log10``, medians are compared.

    Of the candidates that were left then nothing is known: what counts is the rank beside what was measured.
    """
    rows = pd.concat([measured, waiting])
    chosen = rows[rows["predicted_mean"].notna()]
    if not len(chosen):
        return {}
    similarity = np.asarray(surrogate.similarity(chosen["key"].tolist(), measured["key"].tolist()))
    written, batches, values = (measured[name].to_numpy() for name in ("string", "batch", "value"))
    predicted = chosen["predicted_mean"].tolist()
    if log10:
        # The mean of a wide log-normal distribution lies far above its middle, which is what the model predicted.
        moments = zip(predicted, chosen["predicted_std"].fillna(0.0), strict=True)
        predicted = [log10_moments(mean, std)[0] if mean > 0 else math.nan for mean, std in moments]
        values = np.log10(values)
    sizes = chosen["batch"].value_counts()
    found: dict[int, tuple[str, str, float]] = {}
    for row, mean, own in zip(chosen.to_dict("records"), predicted, similarity, strict=True):
        before = np.flatnonzero(batches < row["batch"])
        if len(before):
            nearest = int(own[before].argmax())
            why = label(rank_among(sign * mean, sign * values[before]), int(sizes[row["batch"]]))
            found[int(row["number"])] = why, str(written[before][nearest]), float(own[before][nearest])
    return found


def _room(surrogate: Any, keys: Sequence[str], taken: int) -> int:
    """How many further strings the map takes in reasonable time."""
    if not keys:
        return 0
    if not _is_symbolic(surrogate):
        return len(keys)
    length = float(np.mean([len(key) for key in keys]))
    most = SYMBOLS / max(length, 1.0)
    if isinstance(surrogate, FullyBayesianGP):
        most = min(most / 2, MOST_AVERAGED)
    return int(max(0, min(len(keys), most - taken)))


def _predictions(
    surrogate: Any, keys: Sequence[str], group: Sequence[str], sign: float, transform: Any
) -> tuple[FloatArray, FloatArray]:
    mean, std = np.full(len(keys), np.nan), np.full(len(keys), np.nan)
    indices = [index for index, name in enumerate(group) if name != "measured"]
    if indices:
        found = surrogate.predict([keys[index] for index in indices])
        for index, centre, spread in zip(indices, *map(np.ndarray.tolist, map(np.asarray, found)), strict=True):
            mean[index], std[index] = transform.moments(sign * centre, spread)
    return mean, std
