"""What measurements cost: stated for each context, or learned from what has been paid.

References:
    Snoek, J., Larochelle, H. and Adams, R. P. (2012). Practical Bayesian optimization of machine learning algorithms.
        NeurIPS, section 3.2. Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD
        thesis, section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast, runtime_checkable

import numpy as np

from seqopt.data import Contexts, Data, Query
from seqopt.errors import InputError
from seqopt.models import BlockwisePosterior, StringSurrogate, Surrogate, in_units_of, unsupported
from seqopt.scorers.gaussian import BLOCK
from seqopt.scorers.protocols import FloatArray

FEWEST = 2
"""Costs that a model needs."""

LEAST_SPREAD = 1e-9
"""Logarithms of costs that differ by less are one number, of which there is nothing to learn."""

FARTHEST = 7.0
"""Largest logarithm of a predicted cost as a multiple of the stated one: beyond a factor of 1,000 nothing is known."""


@runtime_checkable
class Costs(Protocol):
    """What measurements cost."""

    def of(self, queries: Sequence[Query]) -> FloatArray:
        """One positive number for each of n queries."""
        ...


class StatedCosts:
    """Costs that depend on the context only.

    Args:
        contexts: State them.

    Example:
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> StatedCosts(contexts).of([Query("CCO", {"fidelity": "docking"})])
        array([0.01])
    """

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts

    def of(self, queries: Sequence[Query]) -> FloatArray:
        """See `Costs`."""
        stated = {context: self.contexts.cost(Query("", context)) for context in {query.context for query in queries}}
        return np.array([stated[query.context] for query in queries], dtype=np.float64)


class LearnedCosts:
    """Expected costs of queries, from a Gaussian process on the logarithm of paid as a multiple of stated costs.

    With l = log(paid / stated) of mean m and variance v at a query, noise included, what will be paid for it is
    log-normal, and its expectation is

        E[cost] = stated exp(m + v / 2).

    The expectation is divided by, and not the median exp(E log cost) = stated exp(m): over many measurements a budget
    is spent by what is paid on average, so information per budget is a ratio of expectations. Where nothing has been
    paid near a query, its cost tends to the stated one times a constant.

    Args:
        surrogate: A surrogate of queries; it is fitted here.
        contexts: State costs.
        data: What has been told of costs, those of failed evaluations included.
        rng: For the fit.

    Raises:
        InputError: If fewer than `FEWEST` costs were told: ask `costs_of` for what is right then.
    """

    def __init__(self, surrogate: Surrogate, contexts: Contexts, data: Data, rng: np.random.Generator) -> None:
        told = paid_rows(data)
        if len(told) < FEWEST:
            raise InputError(f"{len(told)} costs have been told; a model of costs needs {FEWEST}")
        assert data.costs is not None
        self._stated = StatedCosts(contexts)
        self._surrogate = surrogate
        queries = [data.queries[row] for row in told]
        values = np.log(data.costs[told]) - np.log(self._stated.of(queries))
        # What failed may be nothing that a model can compare.
        refused = unsupported(surrogate, cast("list[str]", queries))
        kept = [place for place in range(len(queries)) if place not in refused]
        self._constant = float(values.mean()) if len(kept) < FEWEST or np.ptp(values[kept]) < LEAST_SPREAD else None
        if self._constant is None:
            surrogate.fit(cast("list[str]", [queries[place] for place in kept]), values[kept], rng=rng)

    def of(self, queries: Sequence[Query]) -> FloatArray:
        """See `Costs`."""
        if self._constant is not None:
            return self._stated.of(queries) * np.exp(self._constant)
        surrogate = cast("StringSurrogate", self._surrogate)
        moments = BlockwisePosterior(surrogate.conditioned(), list(queries), BLOCK).moments
        mean, variance = moments.outcome_mean, moments.outcome_variance
        # Of a mixture, where parameters are averaged over.
        centre = mean.reshape(-1, len(queries)).mean(0)
        spread = variance.reshape(-1, len(queries)).mean(0) + mean.reshape(-1, len(queries)).var(0, unbiased=False)
        means, stds = in_units_of(surrogate, queries, centre.numpy(), spread.numpy())
        logs = np.asarray(means) + 0.5 * np.square(np.asarray(stds))
        return self._stated.of(queries) * np.exp(np.clip(logs, -FARTHEST, FARTHEST))


def paid_rows(data: Data) -> list[int]:
    """Which rows have a cost.

    Example:
        >>> paid_rows(Data.of([]))
        []
    """
    return [] if data.costs is None else np.flatnonzero(~np.isnan(data.costs)).tolist()
