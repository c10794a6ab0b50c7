"""What failed evaluations teach: which strings will succeed, and random strings by the probability of that.

A measurement that fails leaves the search where it was. So a score that says what a success is worth counts with the
probability p of it, in log space where scores are logarithms:

- Log expected improvement is the logarithm of what is gained: log a + log p.
- GIBBON's increments are information, of which a failure brings none: a p. In a batch they can be negative, by what
  strings share with those chosen before; a factor below 1 would make these better, so they are divided by p.
- Confidence bounds, draws of the posterior and its mean are values, which have no zero: values of standardised targets,
  of which the largest are looked for. Taken as logarithms of a utility, so that one more standard deviation is worth a
  factor e, they are a + log p, whatever the zero is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from seqopt.data import Data, key_of
from seqopt.errors import InputError
from seqopt.models.classifiers import Classifier, Predictor, log_probability
from seqopt.scorers.feasibility import Combine
from seqopt.search import Proposal
from seqopt.search.growing import grown
from seqopt.spaces import EvolvableSpace
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import drawn

COMBINE: Mapping[str, Combine] = dict.fromkeys(
    ("gibbon", "scorebo", "sal", "bald", "bqbc", "balm", "qbmgp"), "multiply"
)
"""How the scores of acquisition functions, by name, are made to allow for failures; of all others ``"add"``."""

CANDIDATES = 500
"""Random strings that random ones are chosen from, and mutants of those that succeeded."""


def success_predictor(classifier: Classifier, data: Data, rng: np.random.Generator) -> Predictor | None:
    """What tells which evaluations succeed; `None` until some have and others have not.

    A string that succeeded in any evaluation is one that does. Nothing is drawn from ``rng`` where `None` is returned.

    Args:
        classifier: Learns it; the label true stands for success.
        data: What was measured and what failed.
        rng: The only source of randomness.
    """
    if not data.failed.any() or data.failed.all():
        return None
    found: dict[str, bool] = {}
    for query, failed in zip(data.queries, data.failed.tolist(), strict=True):
        found[query.key] = found.get(query.key, False) or not failed
    keys = list(found)
    refused = classifier.unsupported(keys)
    keys = [key for row, key in enumerate(keys) if row not in refused]
    succeeded = np.array([found[key] for key in keys], dtype=np.bool_)
    if succeeded.all() or not succeeded.any():
        return None
    return classifier.fit(keys, succeeded, rng=rng)


def likely_proposals(
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    predictor: Predictor,
    *,
    unsupported: Callable[[Sequence[str]], dict[int, str]],
) -> list[Proposal]:
    """Up to ``n`` random strings that are not excluded, each drawn in proportion to the probability of its success.

    Where strings can be mutated, one is a mutant of those that succeeded instead, with the probability with which a
    random string fails: where most succeed they are random ones, and where hardly any does, these would teach little.

    Args:
        n: How many.
        state: Where the search stands.
        rng: The only source of randomness.
        predictor: Of `success_predictor`.
        unsupported: Why a model cannot take some strings; those are not chosen.
    """
    space = state.space
    strings = drawn(state, CANDIDATES + n + len(state.excluded), rng)
    count = len(strings)
    if isinstance(space, EvolvableSpace):
        parents = []
        for item in state.data.measured().items:
            with suppress(InputError):  # what was measured may lie outside the space
                parents.append(space.from_string(key_of(item)))
        if parents:
            strings += space.to_strings(grown(space, CANDIDATES + len(parents), parents, rng))
    mutated: dict[str, bool] = {}
    found: dict[str, str] = {}
    for place, string in enumerate(strings):
        key = space.key(string)
        found[key] = string
        mutated.setdefault(key, place >= count)
    keys = [key for key in found if key not in state.excluded]
    without = unsupported(keys)
    keys = [key for index, key in enumerate(keys) if index not in without]
    if not keys:
        return []
    chances = log_probability(predictor.logits(keys))
    mutants = np.array([mutated[key] for key in keys])
    success = float(np.exp(chances[~mutants]).mean()) if not mutants.all() else 0.0
    # The largest of log p with Gumbel noise are a sample without replacement.
    order = np.argsort(-(chances + rng.gumbel(size=len(keys))))
    waiting = [[keys[int(place)] for place in order if mutants[place] == kind][::-1] for kind in (False, True)]
    ordered = []
    for kind in (rng.random(len(keys)) >= success).astype(int).tolist():
        ordered.append((waiting[kind] or waiting[1 - kind]).pop())
    return _allowed(n, ordered, found, state)


def _allowed(n: int, keys: Sequence[str], strings: Mapping[str, str], state: SearchState) -> list[Proposal]:
    """The first ``n`` that may join the batch."""
    context = () if state.contexts is None else state.contexts.target
    chosen: list[Proposal] = []
    for key in keys:
        if len(chosen) == n:
            break
        if state.batch is not None:
            if not state.batch.allows([key])[0]:
                continue
            state.batch.add(key)
        chosen.append(Proposal(strings[key], key, context))
    return chosen
