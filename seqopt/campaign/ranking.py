"""How candidates stand among all that may still be suggested: by what is expected of them, and by their chances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.models import PoolSurrogate, StringSurrogate
from seqopt.spaces import PoolSpace
from seqopt.spaces.spread import spread_of

if TYPE_CHECKING:
    from torch import Tensor

    from seqopt.models import Surrogate
    from seqopt.optimizer import Optimizer
    from seqopt.posteriors import Posterior

FloatArray = npt.NDArray[np.float64]


class Outlook(NamedTuple):
    """What a model expects of N strings; larger is better.

    Attributes:
        mean: Posterior mean, in the units of the model, N.
        improvement: Probability that the true value is better than the best measured string is expected to be, N.
    """

    mean: FloatArray
    improvement: FloatArray


def outlook(posterior: Posterior, best: Tensor | None = None) -> Outlook:
    """What a posterior expects of its strings.

    The true value g of a string is better than the best measured one with the probability Phi((mean - best) / std),
    where best is the largest posterior mean of a measured string: noise is counted neither for it nor for the string.
    The mean over draws of the model's parameters is taken.

    Args:
        posterior: At the strings.
        best: That largest mean, ``... x 1``; by default of all strings that the model was fitted to.

    Example:
        >>> import torch
        >>> from seqopt.posteriors import DensePosterior
        >>> mean, known = torch.tensor([1.0, 2.0]), torch.tensor([2.0])
        >>> found = outlook(DensePosterior(mean, torch.eye(2), 0.1, observed_mean=known))
        >>> found.improvement.round(4).tolist()  # one standard deviation below the best, and as good
        [0.1587, 0.5]
    """
    import torch

    moments = posterior.moments
    if best is None:
        best = posterior.observed_mean.max(-1, keepdim=True).values
    chances = torch.special.ndtr((moments.mean - best) / moments.variance.sqrt())
    n = moments.mean.shape[-1]
    return Outlook(*(part.reshape(-1, n).mean(0).numpy() for part in (moments.mean, chances)))


def pool_outlook(surrogate: Surrogate, space: object, measured: Sequence[str] | None = None) -> Outlook | None:
    """What a surrogate expects of all candidates of a pool; `None` where there is no pool, it is spread over other
    processes, or the surrogate cannot say.

    Memory: some numbers for each candidate and draw; what is too much to be kept is computed in blocks.

    Args:
        surrogate: Fitted.
        space: The pool.
        measured: See `measured_here`.
    """
    if not isinstance(space, PoolSpace) or not isinstance(surrogate, PoolSurrogate):
        return None
    if spread_of(space) is not None:
        # The numbers of all candidates are held nowhere.
        return None
    return outlook(surrogate.pool_posterior(space), _best_of(surrogate, measured))


def outlook_at(surrogate: Surrogate, keys: Sequence[str], measured: Sequence[str] | None = None) -> Outlook | None:
    """What a surrogate expects of any strings; `None` where it cannot say.

    Args:
        surrogate: Fitted.
        keys: The strings.
        measured: See `measured_here`.
    """
    if not isinstance(surrogate, StringSurrogate) or not keys:
        return None
    from seqopt.models import BlockwisePosterior

    return outlook(BlockwisePosterior(surrogate.conditioned(), keys), _best_of(surrogate, measured))


def measured_here(optimizer: Optimizer) -> list[str] | None:
    """The strings that count as measured where the model was fitted to others, too; `None` where it was not."""
    if not getattr(optimizer.strategy.then, "assays", ()):
        return None
    return list(dict.fromkeys(row.key for row in optimizer.observations.with_status("ok")))


def _best_of(surrogate: object, measured: Sequence[str] | None) -> Tensor | None:
    """The largest posterior mean of the targets of some strings, for each draw."""
    if not measured or not isinstance(surrogate, StringSurrogate):
        return None
    return surrogate.conditioned().at(measured).moments.mean.max(-1, keepdim=True).values


def unmeasured(optimizer: Optimizer, space: PoolSpace) -> npt.NDArray[np.bool_]:
    """Which candidates of a pool have no result yet, and were not withdrawn.

    Where there are several ways to measure, one of which is the target, a result is one of the target.
    """
    contexts = optimizer.contexts
    target = None if contexts is None or contexts.latent else contexts.target
    found = np.ones(len(space), dtype=bool)
    for row in optimizer.observations.rows:
        counts = row.status == "withdrawn" or (row.status != "pending" and target in {None, row.context})
        index = space.index_of(row.key) if counts else None
        if index is not None:
            found[index] = False
    return found


def rank_among(value: float, others: npt.ArrayLike) -> int:
    """The rank, from 1, of a value among others, the largest first; of equal ones it is the first.

    Example:
        >>> rank_among(2.0, [3.0, 2.0, 1.0])
        2
    """
    return 1 + int((np.asarray(others) > value).sum())
