"""Thompson sampling of whole functions on a pool: every candidate is looked at, and exactly.

References:
    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another. Biometrika 25, 285-294.
    Kandasamy, K. et al. (2018). Parallelised Bayesian optimisation via Thompson sampling. AISTATS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from seqopt.data import Contexts, Item, key_of
from seqopt.encoding.features import FeatureMatrix
from seqopt.errors import InputError, ModelError
from seqopt.models.weight_space import FeatureMap, FingerprintMap, NgramMap, WeightSpaceGP
from seqopt.search import Proposal
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import filled_up, random_proposals
from seqopt.utils.config import Configurable
from seqopt.utils.progress import doing

AT_A_TIME = 16
"""Functions that are drawn together: of 250,000 candidates their values are 32 MB."""


class FunctionDraws(Configurable):
    """Proposes the best candidate of each of n functions that are drawn from the posterior of a linear model.

    The model is a `seqopt.models.WeightSpaceGP`: a Gaussian process whose kernel is the product of finitely many
    features, normalised: bits of fingerprints of molecules (cosine similarity), counts of n-grams of other strings. A
    draw is exact and has a value at every candidate by one product, where `seqopt.acquisition.ThompsonSampling` draws
    jointly at the 2,000 most promising ones. Features of a pool are computed once. Implements
    `seqopt.strategies.Strategy`; pending strings are not proposed again, and make no other difference.

    Args:
        features: The feature map; by default `seqopt.models.weight_space.FingerprintMap` for molecules, and
            `seqopt.models.weight_space.NgramMap` otherwise.

    Raises:
        InputError: When started, on a space that is not a pool in memory, or with several ways to measure.

    Example:
        >>> from seqopt import Optimizer
        >>> optimizer = Optimizer(["AAA", "AAB", "ABB", "BBB", "BBA"], strategy=FunctionDraws(), initial=3)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings, [string.count("B") for string in strings])
        >>> len(optimizer.ask(2))
        2
    """

    takes_noise_variance = True
    takes_censored = False

    def __init__(self, features: FeatureMap | None = None) -> None:
        self.features = features
        self._map: FeatureMap | None = features
        self._pools: WeakKeyDictionary[PoolSpace, FeatureMatrix] = WeakKeyDictionary()
        self._hyperparameters: dict[str, float] = {}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.protocols.CheckedStrategy`.

        Raises:
            InputError: See the class.
        """
        if contexts is not None:
            raise InputError("functions are drawn of values of one kind: leave the contexts out")
        if not isinstance(space, PoolSpace):
            raise InputError(
                f"functions are drawn at all candidates of a pool, and {type(space).__name__} generates its strings: "
                "take the acquisition function thompson"
            )
        if getattr(space, "store", None) is not None:
            raise InputError("functions are drawn at candidates in memory, and this pool is on disk: take lfbo or bore")
        if self.features is None:
            self._map = FingerprintMap() if space.kind == "molecule" else NgramMap(encoder=space.encoder)
        self._hyperparameters = {}

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        process = self._process(state)
        if process is None:
            return random_proposals(n, state, rng, unsupported=self.unsupported)
        pool = state.space
        assert isinstance(pool, PoolSpace)
        features = self._of_pool(pool)
        self._hyperparameters = process.hyperparameters
        left = np.ones(len(pool), dtype=np.bool_)
        left[[place for key in state.met if (place := pool.index_of(key)) is not None]] = False
        found: list[Proposal] = []
        with doing(f"drawing functions at {len(pool):,} candidates"):
            for start in range(0, n, AT_A_TIME):
                values = process.values(features, process.draw(min(AT_A_TIME, n - start), rng))
                for column in values.T:
                    place = _best(column, left, state, pool)
                    if place is None:  # and there is none for any other function
                        return filled_up(found, n, state, rng, unsupported=self.unsupported)
                    left[place] = False
                    drawn = float(column[place])
                    found.append(self._proposal(place, drawn, process, features, pool, state, len(found)))
        return found

    def _proposal(
        self,
        place: int,
        drawn: float,
        process: WeightSpaceGP,
        features: FeatureMatrix,
        pool: PoolSpace,
        state: SearchState,
        number: int,
    ) -> Proposal:
        mean, std = process.predict(features[[place]])
        spread = float(np.sqrt(std[0] ** 2 + process.unit**2 * process.noise))
        return Proposal(
            pool[place],
            pool.keys[place],
            state.beginning(number),
            acquisition=drawn,
            predicted_mean=float(mean[0]),
            predicted_std=float(std[0]),
            measurement_std=spread,
        )

    def _process(self, state: SearchState) -> WeightSpaceGP | None:
        """The model given what is known; `None` while fewer than two values are."""
        measured = state.data.measured()
        if len(measured) < 2 or self._map is None:
            return None
        if isinstance(state.space, PoolSpace):
            self._of_pool(state.space)  # n-grams are numbered by the pool
        keys = [key_of(item) for item in measured.items]
        return WeightSpaceGP(self._map(keys), measured.targets, measured.noise_variance)

    def _of_pool(self, pool: PoolSpace) -> FeatureMatrix:
        assert self._map is not None
        if pool not in self._pools:
            self._map.fit(pool.keys)
            self._pools[pool] = self._map(pool.keys)
        return self._pools[pool]

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """The key of the measured string with the best posterior mean.

        Raises:
            ModelError: If fewer than two values are known.
        """
        process = self._process(state)
        if process is None or self._map is None:
            raise ModelError("fewer than two values have been told; a model needs two")
        keys = [key_of(item) for item in state.data.measured().items]
        return keys[int(np.argmax(process.predict(self._map(keys))[0]))]

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What has no features."""
        return {} if self._map is None else self._map.unsupported([key_of(item) for item in items])

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Of the last fit."""
        return self._hyperparameters

    def state_dict(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing is restored."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pools = WeakKeyDictionary()


def _best(values: Any, left: Any, state: SearchState, pool: PoolSpace) -> int | None:
    """The place of the largest value among those that are left and may join the batch."""
    masked = np.where(left, values, -np.inf)
    if state.batch is None:
        place = int(np.argmax(masked))
        return place if np.isfinite(masked[place]) else None
    for index in np.argsort(-masked, kind="stable"):
        place = int(index)
        if not np.isfinite(masked[place]):
            return None
        if state.batch.allows([pool.keys[place]])[0]:
            state.batch.add(pool.keys[place])
            return place
    return None
