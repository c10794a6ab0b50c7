"""A cheap score that is known of (nearly) all candidates: a term of the model that is linear in it.

What is measured otherwise is expected to be

    y(x, s) = b d(x) + f(x, s) + noise,        b ~ N(0, w), w learned,

with the score d of a candidate, standardised over all candidates, and a Gaussian process f over strings and levels. It
is the recursive form of Kennedy and O'Hagan's model where the cheap level is known without error, and 250,000 scores
cost it no more than 250,000 numbers.

References:
    Kennedy, M. C., O'Hagan, A. (2000). Predicting the output from a complex computer code when fast approximations are
        available. Biometrika 87, 1-13.
    Le Gratiet, L., Garnier, J. (2014). Recursive co-kriging model for design of computer experiments with multiple
        levels of fidelity. International Journal for Uncertainty Quantification 4, 365-386.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.data import Context, Contexts, Query, context_of
from seqopt.encoding import FeatureRows
from seqopt.encoding.fields import FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import DegenerateKernel, OnField, Sum
from seqopt.models import StringGP
from seqopt.models.contexts import coregionalized
from seqopt.search import Proposal
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.fidelity import LEAST_TARGETS, MultiFidelity
from seqopt.strategies.model_based import _measured
from seqopt.strategies.protocols import SearchState, paid_by
from seqopt.utils.config import Configurable, NotConfigurableError

FIELD = "screen {}"
"""Names of fields of scores."""


class KnownColumn(Configurable):
    """Scores of strings, standardised; of a string without one, the mean is taken.

    Args:
        name: What the score is called.
        values: Scores by the keys of strings, at least two different ones.

    Raises:
        InputError: If all are equal, or one is not finite.

    Example:
        >>> column = KnownColumn("docking", {"CCO": -6.0, "CCN": -8.0})
        >>> column.encode(["CCN", "CCC"]).dense().tolist()
        [[-1.0], [0.0]]
    """

    def __init__(self, name: str, values: Mapping[str, float]) -> None:
        numbers = np.fromiter(values.values(), dtype=np.float64, count=len(values))
        if not np.isfinite(numbers).all():
            raise InputError(f"a value of {name} is not finite")
        if not len(numbers) or numbers.min() == numbers.max():
            raise InputError(f"all values of {name} are equal, or there are none: they tell nothing")
        self.name = name
        self.values = values
        self.mean = float(numbers.mean())
        self.std = float(numbers.std())

    def config_arguments(self) -> dict[str, Any]:
        """Scores are no parameters: they are kept elsewhere.

        Raises:
            NotConfigurableError: Always.
        """
        raise NotConfigurableError(f"the {len(self.values):,} values of {self.name} are too many for a description")

    def standardised(self, keys: Sequence[str]) -> npt.NDArray[np.float64]:
        """Scores of strings, of mean 0 and variance 1 over all; 0 where there is none."""
        get, mean = self.values.get, self.mean
        found = np.fromiter((get(key, mean) for key in keys), dtype=np.float64, count=len(keys))
        return (found - mean) / self.std

    def encode(self, strings: Sequence[str]) -> FeatureRows:
        """`standardised` scores as rows, ``n x 1``."""
        return FeatureRows(self.standardised(strings)[:, None])


class ScreenedFidelity(MultiFidelity):
    """`MultiFidelity` where some cheap scores are known already, and enter as linear terms.

    They are not suggested. Until there are two results of the target, a batch is spread over the first score, from
    its lowest to its highest value: so the slope is learned fastest, whatever its sign.

    Args:
        columns: Scores by how they were measured.
        parts: The other arguments of `MultiFidelity`, but for a surrogate.
    """

    def __init__(self, columns: Mapping[Context, KnownColumn], **parts: Any) -> None:
        super().__init__(None, **parts)
        self.columns = dict(columns)
        self.begins_itself = True
        self.closed = frozenset(columns)

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `MultiFidelity.start`."""
        if contexts is not None and contexts.target in self.columns:
            raise InputError("the target itself is what a search measures: its values are results, not a score")
        super().start(space, contexts)

    def _own_model(self, space: Space, contexts: Contexts) -> StringGP:
        return screened(space, contexts, list(self.columns.values()))

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `MultiFidelity.propose`."""
        assert state.contexts is not None
        target = state.contexts.target
        if state.only is not None and state.only in self.closed:
            return []
        known = sum(context_of(item) in ((), target) for item in _measured(state.data).items)
        payable = state.remaining is None or paid_by(state.remaining, state.contexts.cost(Query("any", target)))
        elsewhere = state.only not in (None, target) or not payable
        if known >= LEAST_TARGETS or elsewhere or not isinstance(state.space, PoolSpace):
            return super().propose(n, self._without_scores(state), rng)
        return self._spread(n, state, rng)

    def _without_scores(self, state: SearchState) -> SearchState:
        """The state without results that are in the columns already."""
        kept = np.array([query.context not in self.closed for query in state.data.queries], dtype=np.bool_)
        if kept.all():
            return state
        data = state.data
        censored = None if data.censored is None else data.censored[kept]
        queries = tuple(query for query, keep in zip(data.queries, kept, strict=True) if keep)
        rest = replace(
            data,
            queries=queries,
            values=data.values[kept],
            noise_variance=data.noise_variance[kept],
            failed=data.failed[kept],
            censored=censored,
        )
        return replace(state, data=rest)

    def _spread(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        assert isinstance(state.space, PoolSpace)
        assert state.contexts is not None
        pool, keys = state.space, state.space.keys
        column = next(iter(self.columns.values()))
        allowed = np.array([place for place, key in enumerate(keys) if key not in state.excluded], dtype=np.int64)
        # Of equal scores, chance decides.
        allowed = rng.permutation(allowed)
        scores = column.standardised([keys[place] for place in allowed])
        order = allowed[np.argsort(scores, kind="stable")]
        places = np.unique(np.linspace(0, len(order) - 1, min(n, len(order))).round().astype(np.int64))
        chosen: list[Proposal] = []
        for place in order[places].tolist():
            key = keys[place]
            if state.batch is None or state.batch.allows([key])[0]:
                if state.batch is not None:
                    state.batch.add(key)
                chosen.append(Proposal(pool[place], key, state.contexts.target, why=f"spread over {column.name}"))
        return chosen

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """See `ModelBased.recommend`."""
        return super().recommend(self._without_scores(state), rng)

    def fitted(self, state: SearchState, rng: np.random.Generator) -> Any:
        """See `ModelBased.fitted`."""
        return super().fitted(self._without_scores(state), rng)


def screened(space: Space, contexts: Contexts, columns: Sequence[KnownColumn]) -> StringGP:
    """The model of `coregionalized`, and a linear term in each known score.

    Args:
        space: Gives the tokeniser.
        contexts: That differ in one variable.
        columns: The scores.
    """
    base = coregionalized(space, contexts)
    assert isinstance(base, StringGP)
    encoder, kernel = base.encoder, base.kernel
    assert isinstance(encoder, FieldEncoder)
    for column in columns:
        field = FIELD.format(column.name)
        encoder = FieldEncoder({field: column, **encoder.fields})
        kernel = Sum(kernel, OnField(DegenerateKernel("slope"), field))
    return StringGP(kernel, encoder=encoder, levels=base.levels)


def with_columns(strategy: object, columns: Mapping[Context, KnownColumn]) -> ScreenedFidelity:
    """A strategy that takes known scores into account.

    Args:
        strategy: A `MultiFidelity` with its own model.
        columns: Scores by how they were measured.

    Raises:
        InputError: For another strategy or model.
    """
    if type(strategy) is not MultiFidelity or strategy.config_arguments()["surrogate"] is not None:
        raise InputError(
            "a column of scores goes with the strategy MultiFidelity and its own model, and another one decides here"
        )
    given = strategy.config_arguments()
    chosen = {name: part for name, part in given.items() if name != "surrogate"}
    return ScreenedFidelity(columns, **chosen)
