"""Why a string was chosen: how it stands among all candidates, what it is most like, and how it differs from that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.campaign.costs import way_of
from seqopt.campaign.differences import difference
from seqopt.campaign.rows import averaged
from seqopt.data import Query, told_answer

if TYPE_CHECKING:
    from seqopt.campaign.rows import Censoring
    from seqopt.data import Contexts, Observation
    from seqopt.models import ExplainedSurrogate
    from seqopt.optimizer import Optimizer
    from seqopt.strategies import ModelBased

FloatArray = npt.NDArray[np.float64]

BLOCK = 1024
"""Strings whose similarities to the measured ones are held at a time."""

EXPLOIT, EXPLORE, LEARN, RANDOM = "exploit", "explore", "learn", "random"
"""Kinds of reasons. A random string was drawn before there was a model; what is to be learned from is not the best."""


@dataclass(frozen=True)
class Reason:
    """Why one string was chosen.

    Attributes:
        kind: `EXPLOIT` or `EXPLORE` (see `label`), or `LEARN`.
        nearest: The measured string that the model takes to be most like it.
        similarity: How similar the two are, up to 1.
        value: What was measured of that string, in the user's units; `None` where it has no value of the target.
        difference: What changes from that string to this one; see `seqopt.campaign.differences.difference`.
        rank: Its rank by predicted mean among the candidates of a pool without a result; among the measured strings
            where strings are generated.
        of: How many candidates, or measured strings, these are.
        among: What was counted: ``"unmeasured"`` or ``"measured"``.
        improvement: Probability that its true value is better than the best measured string is expected to be; `None`
            where the model cannot say.
        censored: ``"<"`` or ``">"`` where ``value`` is only a limit.
        told: The value in words, where results are yes or no.
        beside: Why another string of the batch may have the same rank: ``"measured before"``, and so not among those
            that were counted; ``"once more in this batch"``; or ``"tied"``, since as good is expected of another one.
    """

    kind: str
    nearest: str
    similarity: float
    value: float | None = None
    difference: str = ""
    rank: int | None = None
    of: int | None = None
    among: str | None = None
    improvement: float | None = None
    censored: Censoring | None = None
    told: str | None = None
    beside: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is kept: numbers rounded, and nothing that is not known."""
        rounded = {"similarity": round(self.similarity, 4)}
        if self.improvement is not None:
            rounded["improvement"] = float(f"{self.improvement:.3g}")
        return {name: cell for name, cell in (asdict(self) | rounded).items() if cell is not None and cell != ""}


def label(rank: int, awaited: int) -> str:
    """Whether a string exploits what is known, or explores what is not.

    It exploits if its predicted mean alone would have chosen it: if no more candidates are expected to be better than
    are awaited with it. Everything else was chosen for what its result would tell.

    Args:
        rank: By predicted mean, from 1.
        awaited: Strings that are open, its own batch included.

    Example:
        >>> label(3, 10), label(11, 10)
        ('exploit', 'explore')
    """
    return EXPLOIT if rank <= awaited else EXPLORE


def reasons_of(
    optimizer: Optimizer, rows: Sequence[Observation], learner: ModelBased | None = None
) -> list[dict[str, Any]]:
    """Why an optimiser has just chosen these rows of its table, as JSON values; empty where its model cannot say.

    Of several ways to measure, strings are compared as their targets.

    Args:
        optimizer: The optimiser.
        rows: The rows.
        learner: What has chosen them to learn from, in place of the optimiser's own strategy.
    """
    from seqopt.models import ExplainedSurrogate
    from seqopt.strategies import ModelBased
    from seqopt.strategies.fidelity import LEAST_TARGETS

    if learner is not None:
        if not learner.hyperparameters or not isinstance(learner.surrogate, ExplainedSurrogate):
            return [{"kind": RANDOM} for _ in rows]
        told = found_reasons(optimizer, learner.surrogate, [row.key for row in rows], len(optimizer.pending))
        return [replace(one, kind=LEARN).to_json() for one in told]
    strategy = optimizer.strategy.then
    # A classifier may have no hyperparameters when it has chosen.
    if not isinstance(strategy, ModelBased):
        return [{} for _ in rows]
    if not optimizer.hyperparameters:
        return [{"kind": RANDOM} for _ in rows]
    if not isinstance(strategy.surrogate, ExplainedSurrogate):
        return [{} for _ in rows]
    awaited = len(optimizer.pending)
    found = found_reasons(optimizer, strategy.surrogate, [row.key for row in rows], awaited)
    known = len(measured_values(optimizer)) >= LEAST_TARGETS
    ways = told_by(strategy.surrogate, optimizer.contexts, [row.query for row in rows], known=known)
    if optimizer.contexts is not None and not known:
        # Nor is it known what the best of them is expected to be.
        found = [replace(one, improvement=None) for one in found]
    return [one.to_json() | way for one, way in zip(found, ways, strict=True)]


def told_by(
    surrogate: object, contexts: Contexts | None, queries: Sequence[Query], *, known: bool
) -> list[dict[str, Any]]:
    """How much each measurement would tell of the target of its string, and what that costs; empty with one way.

    A measurement y tells the share cov(y, g)^2 / (var(g) var(y)) of the variance of the target g, given what is known:
    the squared correlation, averaged over draws of the parameters.

    Args:
        surrogate: Fitted.
        contexts: The ways to measure.
        queries: What is to be measured, and how.
        known: Whether enough targets are known to learn that from; else only costs are given.
    """
    from seqopt.models import StringSurrogate

    if contexts is None or not isinstance(surrogate, StringSurrogate) or not queries:
        return [{} for _ in queries]
    if not known:
        return [_way_and_cost(one, contexts) for one in queries]
    possible = not contexts.latent
    targets = [Query(one.key, contexts.target) for one in queries] if possible else []
    moments = surrogate.conditioned().at([*queries, *targets]).moments
    total = (moments.variance * moments.outcome_variance).clamp_min(1e-300)
    shares = (moments.covariance.square() / total).clamp(0.0, 1.0).reshape(-1, len(queries) + len(targets)).mean(0)
    told = [float(f"{share:.3g}") for share in shares.tolist()]
    found: list[dict[str, Any]] = []
    for place, query in enumerate(queries):
        one = _way_and_cost(query, contexts) | {"tells": told[place]}
        if possible and query.context != contexts.target:
            target_cost = contexts.cost(targets[place])
            one |= {"target": way_of(contexts.target), "target_cost": target_cost}
            one["target_tells"] = told[len(queries) + place]
        found.append(one)
    return found


def _way_and_cost(query: Query, contexts: Contexts) -> dict[str, Any]:
    """Where the target is no measurement but what plates have in common, wells have no costs, but a number."""
    way: dict[str, Any] = {"way": way_of(query.context)}
    return way if contexts.latent else way | {"cost": contexts.cost(query)}


def found_reasons(
    optimizer: Optimizer, surrogate: ExplainedSurrogate, keys: Sequence[str], awaited: int
) -> list[Reason]:
    """How strings stand, by a fitted surrogate.

    Args:
        optimizer: Knows what was measured.
        surrogate: Fitted to that.
        keys: The strings.
        awaited: How many strings are open: see `label`.
    """
    from seqopt.campaign.ranking import measured_here, outlook_at, pool_outlook, rank_among, unmeasured
    from seqopt.spaces import PoolSpace

    observed, space = optimizer.observations, optimizer.space
    measured = compared_keys(optimizer)
    written = {row.key: row.string for row in observed.rows}
    values = measured_values(optimizer)
    here = measured_here(optimizer)
    pool = pool_outlook(surrogate, space, here)
    places: list[int | None] = [None for _ in keys]
    if pool is not None and isinstance(space, PoolSpace):
        places = [space.index_of(key) for key in keys]
    if pool is not None and isinstance(space, PoolSpace) and None not in places:
        chosen = np.array(places, dtype=np.int64)
        counted = unmeasured(optimizer, space)
        means, others, new = pool.mean[chosen], pool.mean[counted], counted[chosen].tolist()
        chances: FloatArray | None = pool.improvement[chosen]
    else:
        # Where strings are generated, those that were measured are all that can be counted.
        means, others = (np.asarray(surrogate.predict(list(of))[0], dtype=np.float64) for of in (keys, measured))
        new = [True] * len(keys)
        expected = outlook_at(surrogate, keys, here)
        chances = None if expected is None else expected.improvement
    found = []
    for index, (key, (place, similarity)) in enumerate(zip(keys, nearest_of(surrogate, keys, measured), strict=True)):
        rank, nearest = rank_among(means[index], others), measured[place]
        value, censored = values.get(nearest, (None, None))
        told = None
        if optimizer.outcome.yes_no and value is not None:
            told = told_answer(value, wells_of(optimizer, nearest))
        found.append(
            Reason(
                label(rank, awaited),
                written[nearest],
                similarity,
                value,
                difference(nearest, key, space.kind),
                rank,
                len(others),
                "measured" if pool is None or None in places else "unmeasured",
                # Of hits, none is better than another.
                None if chances is None or optimizer.outcome.yes_no else float(chances[index]),
                censored,
                told,
                "once more in this batch"
                if key in keys[:index]
                else "measured before"
                if not new[index]
                else "tied"
                if pool is not None and int((others == means[index]).sum()) > 1
                else "",
            )
        )
    return found


def nearest_of(surrogate: ExplainedSurrogate, keys: Sequence[str], measured: Sequence[str]) -> list[tuple[int, float]]:
    """The measured string that a surrogate takes to be most like each string, the first of equals, and how like it is.

    A string that was measured itself is held against the others: of several ways to measure, it may be asked for in
    another one.

    Args:
        surrogate: Fitted.
        keys: N strings; they are looked at in blocks.
        measured: At least one.
    """
    found: list[tuple[int, float]] = []
    places = {key: place for place, key in enumerate(measured)} if len(measured) > 1 else {}
    for start in range(0, len(keys), BLOCK):
        block = list(keys[start : start + BLOCK])
        similarity = np.asarray(surrogate.similarity(block, list(measured)))
        own = [(row, places[key]) for row, key in enumerate(block) if key in places]
        others = similarity.copy() if own else similarity
        for row, place in own:
            others[row, place] = -np.inf
        best = others.argmax(axis=1)
        found += zip(best.tolist(), similarity[np.arange(len(best)), best].tolist(), strict=True)
    return found


def compared_keys(optimizer: Optimizer) -> list[str]:
    """The keys that strings are compared with: all that were measured; of several ways, in the target if any was."""
    measured = list(dict.fromkeys(row.key for row in optimizer.observations.with_status("ok")))
    if optimizer.contexts is None:
        return measured
    values = measured_values(optimizer)
    return [key for key in measured if key in values] or measured


def measured_values(optimizer: Optimizer) -> dict[str, tuple[float, Censoring | None]]:
    """What was measured of each key, as its target: the mean, and its side where it is only a limit.

    Where that cannot be measured itself, as it was measured anyhow. See `seqopt.campaign.rows.averaged`; on a
    logarithmic scale it is the geometric mean.
    """
    log10 = optimizer.transform.name == "log10"
    if optimizer.outcome.yes_no:
        counted: dict[str, tuple[float, int]] = {}
        for row in optimizer.observations.with_status("ok"):
            share, wells = counted.get(row.key, (0.0, 0))
            counted[row.key] = share + row.value * row.trials, wells + row.trials
        return {key: (share / wells, None) for key, (share, wells) in counted.items()}
    contexts = optimizer.contexts
    found: dict[str, list[Observation]] = {}
    for row in optimizer.observations.with_status("ok"):
        if not math.isnan(row.value) and (contexts is None or contexts.latent or row.context == contexts.target):
            found.setdefault(row.key, []).append(row)
    return {
        key: averaged([row.value for row in rows], [row.censored for row in rows], geometric=log10)
        for key, rows in found.items()
    }


def wells_of(optimizer: Optimizer, key: str) -> int:
    """In how many wells a string was measured, where results are yes or no."""
    return sum(row.trials for row in optimizer.observations.with_status("ok") if row.key == key)
