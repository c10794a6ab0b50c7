"""Suggestions that teach the model, and what they should teach it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.rows import Suggestion
from seqopt.campaign.wording import counted
from seqopt.data import Query
from seqopt.errors import InputError
from seqopt.models import FullyBayesianGP
from seqopt.optimizer import Optimizer
from seqopt.strategies import Gain, ModelBased, gain_of, learner_of

GAIN = 0x9A1
"""Sets the random numbers of a gain apart from those that choose."""


def started_learner(optimizer: Optimizer) -> ModelBased:
    """What suggests what teaches the model of a campaign most.

    Args:
        optimizer: That of the campaign; nothing of it changes.

    Raises:
        CampaignError: Before two values are known, with several ways to measure, of results that are yes or no, or if
            its model cannot be averaged over its parameters; it says what to do.
    """
    if optimizer.contexts is not None:
        raise CampaignError(
            "what teaches most is worked out where strings are measured in one way, and this campaign has several "
            "(or plates): leave --learn out"
        )
    if optimizer.outcome.yes_no:
        raise CampaignError(
            "what teaches most is worked out for models of numbers, and results of this campaign are yes or no: leave "
            "--learn out"
        )
    known = int(np.isfinite(optimizer.state().data.values[:, 0]).sum())
    if known < 2:
        raise CampaignError(
            f"{counted(known, 'value')} recorded so far, and a model needs two to say what teaches it: leave "
            "--learn out"
        )
    try:
        return learner_of(optimizer.strategy.then, optimizer.space)
    except InputError as error:
        raise CampaignError(f"--learn is not for this campaign: {error}") from error


def expected_gain(optimizer: Optimizer, learner: ModelBased, batch: Sequence[Suggestion]) -> Gain | None:
    """How much better predictions should become by a batch that a learner has chosen.

    Args:
        optimizer: That of the campaign, in which the batch is pending.
        learner: What has chosen it, as it was fitted for that.
        batch: The batch.

    Returns:
        `None` where the learner had no model, or nothing else is left to predict.
    """
    surrogate = cast(FullyBayesianGP, learner.surrogate)
    if not surrogate.drawn:
        return None
    keys = [row.key for row in batch]
    state = optimizer.state()
    pending = [item for item in state.pending if (item.key if isinstance(item, Query) else item) not in keys]
    refused = surrogate.unsupported([str(item) for item in pending])
    return gain_of(
        surrogate,
        optimizer.space,
        keys,
        known=[item for item in state.data.measured().items if isinstance(item, str)],
        pending=[item for place, item in enumerate(pending) if place not in refused],
        rng=np.random.default_rng([optimizer.seed, *optimizer.counters.values(), GAIN]),
    )


def gain_in_words(gain: Gain, count: int) -> str:
    """A gain as a sentence.

    Args:
        gain: The gain.
        count: Strings of the batch.

    Example:
        >>> gain_in_words(Gain(300, 0.8, 0.6, 0.72), 6).partition(" of other strings ")[2]
        'should be off by 25 % less than now (6 random ones: 10 %), if the model is right'
        >>> gain_in_words(Gain(300, 0.8, 0.72, 0.6), 6).rpartition(": ")[2]
        'by that, 6 random ones would do as well'
    """
    these = "this one is" if count == 1 else f"these {count} are"
    chance = "a random one" if count == 1 else f"{count} random ones"
    text = (
        f"once {these} measured, predictions of other strings should be off by {100 * gain.saved:.0f} % less than now "
        f"({chance}: {100 * gain.saved_at_random:.0f} %), if the model is right"
    )
    if gain.saved >= gain.saved_at_random:
        return text
    # What tells most of the model's parameters need not tell most of other strings.
    return f"{text}: by that, {chance} would do as well"
