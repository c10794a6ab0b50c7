"""What every surrogate with a Gaussian posterior, or a mixture of Gaussians over draws of its parameters, can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.contexts import Contexts
from seqopt.data.query import Item, key_of
from seqopt.encoding import Encoded, JointEncoder, StringEncoder, TokensAndFeatures
from seqopt.encoding.featured import featured
from seqopt.encoding.fields import FieldEncoder, Fields
from seqopt.errors import InputError, ModelError
from seqopt.kernels import bind_symbols
from seqopt.models.carried import width_of
from seqopt.models.column_cache import ColumnCache
from seqopt.models.conditioned import BlockwisePosterior, GaussianProcess
from seqopt.models.contexts_posterior import ContextsCache, ContextsPosterior, StringColumns
from seqopt.models.covariance import Correlations, FloatArray, correlations
from seqopt.models.distances import KernelDistances
from seqopt.models.gp_state import BatchedGPState, Conditioning, stacked
from seqopt.models.leave_one_out import LeaveOneOut, leave_one_out
from seqopt.models.levels import Levels, LevelScales
from seqopt.models.pool_posterior import PoolPosterior
from seqopt.models.prior_means import PriorMean, mean_given, prior_mean_of
from seqopt.models.stored_columns import stored_columns
from seqopt.models.streamed_posterior import StreamedPosterior
from seqopt.posteriors import Posterior
from seqopt.spaces import PoolSpace, keys_at
from seqopt.spaces.spread import spread_of

COLUMN_MEMORY = 1 << 30
"""Bytes of prior covariances with the candidates of a pool that are kept: at 250,000 candidates and one draw, those of
some 500 strings. Beyond, they are computed anew in blocks whenever they are needed; see
`seqopt.models.streamed_posterior`."""

MEAN_ELEMENTS = 1 << 24
"""Covariances that are held at once while means are predicted (128 MiB)."""


class GaussianSurrogate:
    """Predictions, joint draws and posteriors from a `BatchedGPState`; surrogates inherit it and set the state.

    Args:
        encoder: Turns strings into what the kernel takes.
        mean: Prior mean of the values at strings, in their units, besides a constant (see
            `seqopt.models.prior_means`); `None` for a constant alone.
        levels: Levels of the context that have noise, mean and scale of their own.

    Raises:
        InputError: For levels with a prior mean, or an encoder that does not see contexts.
    """

    encoder: StringEncoder

    draws: int = 1
    """Draws of the parameters that predictions are averaged over; 1 for a point estimate."""

    def __init__(self, encoder: StringEncoder, mean: PriorMean | None = None, levels: Levels | None = None) -> None:
        if levels is not None and mean is not None:
            raise InputError("a prior mean is in one unit, and levels have units of their own: give one of the two")
        if levels is not None and not isinstance(encoder, FieldEncoder):
            raise InputError(
                f"levels of {levels.variable} are told apart by the context, which {type(encoder).__name__} does not "
                "encode: give a seqopt.encoding.fields.FieldEncoder"
            )
        self.encoder = encoder
        self.mean = mean
        self._mean_given = mean
        self.levels = levels
        self._level_scales: LevelScales | None = None
        self._state: BatchedGPState | None = None
        self._pools: WeakKeyDictionary[PoolSpace, Encoded] = WeakKeyDictionary()
        self._caches: WeakKeyDictionary[PoolSpace, ColumnCache] = WeakKeyDictionary()
        self._posteriors: WeakKeyDictionary[PoolSpace, PoolPosterior | StreamedPosterior] = WeakKeyDictionary()
        self._of_contexts: WeakKeyDictionary[PoolSpace, ContextsCache] = WeakKeyDictionary()
        self._of_strings: WeakKeyDictionary[PoolSpace, dict[str, StringColumns]] = WeakKeyDictionary()

    @property
    def chosen_encoder(self) -> StringEncoder | None:
        """The encoder, if one, or a tokeniser, was given; `None` where that of the space is taken."""
        found: StringEncoder | None = getattr(self, "_chosen_encoder", None)
        return found

    @property
    def fitted(self) -> BatchedGPState:
        """The fitted processes, in standardised units.

        Raises:
            ModelError: Before the first fit.
        """
        if self._state is None:
            raise ModelError("this surrogate has not been fitted yet: call fit(strings, values, rng=...)")
        return self._state

    def _prior_mean(self) -> Callable[[Sequence[Item]], Tensor] | None:
        """The prior mean at queries in units of the model, where there is one that is not constant."""
        if self._mean_given is None:
            return None
        return partial(_standardized_prior_mean, self._mean_given, self.units[1])

    def _less_mean(self, items: Sequence[Item], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Values less their prior means, which those that depend on values are given first."""
        if self.mean is None:
            return values
        keys = [key_of(item) for item in items]
        self._mean_given = mean_given(self.mean, keys, values)
        return values - prior_mean_of(self._mean_given, keys)

    @property
    def units(self) -> tuple[float, float]:
        """Mean and standard deviation by which values are standardised."""
        raise NotImplementedError

    def units_at(self, items: Sequence[Item]) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation by which values of queries are standardised, each in its own context: N each."""
        if self.levels is None or self._level_scales is None:
            offset, unit = self.units
            return np.full(len(items), offset), np.full(len(items), unit)
        numbers = self.levels.numbers(items)
        return self._level_scales.offsets[numbers], self._level_scales.units[numbers]

    def untransform_outcomes(
        self, items: Sequence[Item], mean: npt.ArrayLike, variance: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """As `untransform`, of the outcomes of queries, in the units in which each is measured.

        Args:
            items: N queries.
            mean: Standardised means, N.
            variance: Standardised variances, N.
        """
        offset, unit = self.units_at(items)
        return offset + unit * np.asarray(mean), unit * np.sqrt(np.asarray(variance))

    def _target_units(self) -> tuple[float, float] | None:
        """Mean and scale of the target, where levels have their own."""
        if self.levels is None or self._level_scales is None:
            return None
        number = self.levels.target_number
        return float(self._level_scales.offsets[number]), float(self._level_scales.units[number])

    def untransform(self, mean: npt.ArrayLike, variance: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of targets in the values' units, from standardised mean and variance."""
        offset, unit = self.units
        return offset + unit * np.asarray(mean), unit * np.sqrt(np.asarray(variance))

    def conditioned(self, pending: Sequence[Item] = ()) -> GaussianProcess:
        """Posterior in standardised units at any strings, draws apart; see `seqopt.models.StringSurrogate`.

        Args:
            pending: Suggestions whose results are awaited.

        Raises:
            ModelError: Before the first fit.
        """
        return GaussianProcess(self.fitted, self.encoder, pending)

    def pool_posterior(
        self,
        pool: PoolSpace,
        indices: npt.NDArray[np.int64] | None = None,
        pending: Sequence[Item] = (),
    ) -> Posterior:
        """Posterior in standardised units at the candidates of ``pool``, draws apart.

        Prior covariances with the whole pool are kept until the kernel's parameters change, as long as they fit into
        `COLUMN_MEMORY`; beyond, those of a costly kernel are kept in the cache folder. With ``indices`` only those
        candidates are looked at, and nothing is kept.

        Args:
            pool: The candidates.
            indices: Positions of the candidates to look at; default all.
            pending: Suggestions whose results are awaited.

        Raises:
            ModelError: Before the first fit.
        """
        state = self.fitted
        conditioning = self.conditioned(pending).conditioning
        if indices is not None:
            return self._posterior_at(conditioning, self._encoded_at(pool, indices), keys_at(pool, indices))
        encoded = self._encoded_pool(pool)
        known = self._posteriors.get(pool)
        if known is not None and known.state is state:
            # What the data say of the candidates is computed once.
            return known.conditioned_on(conditioning)
        found: PoolPosterior | StreamedPosterior
        if not self._fits(encoded):
            self._caches.pop(pool, None)
            store = None
            if state.evaluator.costly and state.draws == 1:
                store = stored_columns(state.evaluator.kernel, self.encoder.name, pool.keys)
            found = StreamedPosterior(conditioning, encoded, pool.keys, store)
        else:
            if pool not in self._caches:
                self._caches[pool] = ColumnCache(state.evaluator, encoded, state.draws)
            found = PoolPosterior(conditioning, self._caches[pool], pool.keys)
        self._posteriors[pool] = found
        return found

    def pool_mean(self, pool: PoolSpace) -> FloatArray:
        """Predicted mean of the target at each candidate of a pool, N, in the values' units.

        It costs a covariance for each candidate and value, and nothing is kept: candidates are looked at in blocks.

        Args:
            pool: The candidates.

        Raises:
            ModelError: Before the first fit.
        """
        state, conditioning = self.fitted, self.conditioned().conditioning
        found = np.empty(len(pool))
        size = max(1, MEAN_ELEMENTS // (state.draws * max(1, len(state.keys))))
        for start in range(0, len(pool), size):
            places = np.arange(start, min(start + size, len(pool)))
            block = self._encoded_at(pool, places)
            rows = conditioning.prior_rows(block, state.evaluator.self_similarity(block))
            mean = state.mean(keys_at(pool, places)) + (state.alpha[:, None] @ rows)[:, 0]
            found[places] = mean.mean(0).numpy()
        return self.untransform(found, np.zeros(len(found)))[0]

    def contexts_posterior(
        self,
        pool: PoolSpace,
        contexts: Contexts,
        indices: npt.NDArray[np.int64] | None = None,
        pending: Sequence[Item] = (),
    ) -> ContextsPosterior | BlockwisePosterior:
        """Posterior in standardised units at the candidates of ``pool`` in every context, draws apart.

        Queries are in the order of `seqopt.data.Contexts.queries`. What a kernel says of strings is computed once for
        all contexts, and kept until its parameters change, as long as it fits into `COLUMN_MEMORY`; beyond, only
        moments are kept.

        Args:
            pool: The candidates.
            contexts: The ways to measure.
            indices: Positions of the candidates to look at; default all.
            pending: Suggestions whose results are awaited.

        Raises:
            ModelError: Before the first fit.
        """
        state, process = self.fitted, self.conditioned(pending)
        keys = pool.keys if indices is None else [pool.keys[int(index)] for index in indices]
        count = len(keys) * (len(contexts.possible) + contexts.latent)
        fits = 8 * state.draws * count * len(set(state.keys)) <= COLUMN_MEMORY
        if not (fits and isinstance(self.encoder, FieldEncoder) and len(contexts.possible)):
            return BlockwisePosterior(process, contexts.queries(keys))
        known = self._of_contexts.get(pool) if indices is None else None
        if known is None or known.contexts != contexts:
            strings = self._encoded_pool(pool)
            strings = strings if indices is None else strings.take(indices)
            earlier = self._of_strings.setdefault(pool, {}) if indices is None else {}
            if 8 * len(pool) * sum(len(columns.rows) for columns in earlier.values()) > COLUMN_MEMORY:
                earlier.clear()
            fields = cast("Fields", strings)
            known = ContextsCache(state.evaluator, self.encoder, fields, contexts, state.draws, earlier)
            if indices is None:
                self._of_contexts[pool] = known
        return ContextsPosterior(process, known, keys)

    def predict(self, strings: Sequence[Item]) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and noiseless standard deviation at each string, in the values' units.

        They are those of the mixture over the draws of the parameters.

        Raises:
            ModelError: Before the first fit.
        """
        process = self.conditioned()
        if self.fitted.draws > 1 or any(not isinstance(item, str) for item in strings):
            moments = BlockwisePosterior(process, strings).moments
        else:
            keys = [key_of(item) for item in strings]
            moments = self._posterior_at(process.conditioning, self.encoder.encode(keys), keys).moments
        mean, variance = moments.mean, moments.variance
        return self.untransform(mean.mean(0), variance.mean(0) + mean.var(0, correction=0))

    def posterior(self, strings: Sequence[Item]) -> tuple[Tensor, Tensor]:
        """Joint mean (n) and noiseless covariance (n x n) at ``strings``, in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        mean, covariance = self._joint(strings)
        offset, unit = self.units
        return offset + unit * mean.mean(0), unit**2 * (covariance.mean(0) + _covariance_of_means(mean, mean))

    def covariance(self, a: Sequence[Item], b: Sequence[Item]) -> Tensor:
        """Posterior covariance (len(a) x len(b)) of the noiseless objective, in the values' units squared.

        Raises:
            ModelError: Before the first fit.
        """
        state = self.fitted
        data, evaluator = state.unconditioned, state.evaluator
        found = []
        for keys in ([key_of(item) for item in a], [key_of(item) for item in b]):
            encoded = self.encoder.encode(keys)
            own = evaluator.self_similarity(encoded)
            rows = data.prior_rows(encoded, own)
            found.append((encoded, own, state.mean(keys) + (state.alpha[:, None] @ rows)[:, 0], data.inverse @ rows))
        (first, own_a, mean_a, solved_a), (second, own_b, mean_b, solved_b) = found
        prior = state.scale[:, None, None] * stacked(evaluator.cross(first, second, own_a, own_b), state.draws)
        covariance = prior - solved_a.mT @ solved_b
        return self.units[1] ** 2 * (covariance.mean(0) + _covariance_of_means(mean_a, mean_b))

    def sample(self, strings: Sequence[Item], n: int, rng: np.random.Generator) -> Tensor:
        """``n`` joint draws of the noiseless objective (n x len(strings)), in the values' units.

        With several draws of the parameters each is at one of them, chosen at random.

        Raises:
            ModelError: Before the first fit.
        """
        mean, covariance = self._joint(strings)
        values, vectors = torch.linalg.eigh(covariance)
        draws = self.fitted.draws
        chosen = torch.zeros(n, dtype=torch.int64) if draws == 1 else torch.from_numpy(rng.integers(draws, size=n))
        normal = torch.from_numpy(rng.standard_normal((n, len(strings), 1)))
        roots = vectors * values.clamp_min(0).sqrt()[:, None]
        offset, unit = self.units
        found = torch.empty(n, len(strings), dtype=torch.float64)
        for draw in range(draws):
            those = chosen == draw
            found[those] = mean[draw] + normal[those, :, 0] @ roots[draw].T
        return offset + unit * found

    def prior_distances(self, candidates: PoolSpace | Sequence[str], others: Sequence[str] = ()) -> KernelDistances:
        """Kernel distances before any fit; see `seqopt.models.DistanceSurrogate`.

        Raises:
            ModelError: If there are several kernels to average over.
        """
        kernel = getattr(self, "kernel", None)
        kernels = getattr(self, "kernels", [] if kernel is None else [kernel])
        if len(kernels) != 1 or kernels[0].batch_shape:
            raise ModelError(
                f"a {type(self).__name__} of {len(kernels)} kernels has no one distance between strings: choose the "
                "design random, or a surrogate of one kernel"
            )
        (kernel,) = kernels
        bind_symbols(kernel, self.encoder)
        if isinstance(candidates, PoolSpace):
            encoded = self._encoded_pool(candidates)
        else:
            encoded = self.encoder.encode(candidates)
        return KernelDistances(kernel, encoded.joined(self.encoder.encode(others)) if others else encoded)

    def similarity(self, a: Sequence[Item], b: Sequence[Item]) -> FloatArray:
        """Prior correlation (len(a) x len(b)) at two lists of strings, mean over the draws: 1 for equal ones.

        Raises:
            ModelError: Before the first fit.
        """
        found = correlations(self.fitted.evaluator, self.encoder.encode(a), self.encoder.encode(b))
        return found if found.ndim == 2 else found.mean(axis=0)

    def similarities_to(
        self, candidates: PoolSpace | Sequence[Item], indices: npt.NDArray[np.int64] | None = None
    ) -> Callable[[Sequence[Item]], FloatArray]:
        """From m strings to `similarity` of N candidates to them, N x m, where it is asked for often.

        Candidates are encoded once, those of a pool for all models of the surrogate. Memory is that of the result, for
        each draw.

        Args:
            candidates: A pool, or a list of strings.
            indices: Which candidates of a pool; by default all.

        Raises:
            ModelError: Before the first fit.

        Example:
            >>> from seqopt.models import StringGP
            >>> gp = StringGP(restarts=1)
            >>> gp.fit(["AAB", "ABB", "BBB"], [0.0, 1.0, 2.0], rng=np.random.default_rng(0))
            >>> gp.similarities_to(["AAB", "BBA"])(["AAB"]).shape
            (2, 1)
        """
        if not isinstance(candidates, PoolSpace):
            encoded: Encoded = self.encoder.encode(candidates)
        elif indices is None:
            encoded = self._encoded_pool(candidates)
        else:
            encoded = self._encoded_at(candidates, indices)
        prior = Correlations(self.fitted.evaluator, encoded)

        def of(others: Sequence[Item]) -> FloatArray:
            found = prior.columns(self.encoder.encode(others))
            return found if found.ndim == 2 else found.mean(axis=0)

        return of

    def leave_one_out(self) -> LeaveOneOut:
        """Predictions for each value from the others at the fitted parameters: moments of the mixture over the draws.

        What stands for censored values stays as it is when others are left out.

        Raises:
            ModelError: Before the first fit.
        """
        state = self.fitted
        mean, variance = leave_one_out(state.cholesky, state.alpha, state.values)
        values = state.values
        if state.limits is not None:
            censored = state.limits.sides != 0
            # A measurement has noise, but not the variance of the factor that stands for a limit.
            without = (variance - state.observed_noise).clamp_min(0.0) + state.noise_at(state.keys)
            variance = torch.where(censored, without, variance)
            values = torch.where(censored, math.nan, state.known_values)
        spread = variance.mean(0) + mean.var(0, correction=0)
        offset, unit = self.units_at(state.keys)
        predicted = self.untransform_outcomes(state.keys, mean.mean(0).numpy(), spread.numpy())
        return LeaveOneOut(offset + unit * values.numpy(), *predicted)

    def __getstate__(self) -> dict[str, Any]:
        # What is kept of pools belongs to objects of this process, and is computed again where it is needed.
        kept = ("_pools", "_caches", "_posteriors", "_of_contexts", "_of_strings")
        return {**self.__dict__, **dict.fromkeys(kept)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pools, self._caches, self._posteriors = WeakKeyDictionary(), WeakKeyDictionary(), WeakKeyDictionary()
        self._of_contexts, self._of_strings = WeakKeyDictionary(), WeakKeyDictionary()

    def _forget_columns(self) -> None:
        """Drop covariances with pools: the kernel has changed."""
        self._caches, self._posteriors = WeakKeyDictionary(), WeakKeyDictionary()
        self._of_contexts = WeakKeyDictionary()

    def _posterior_at(
        self, conditioning: Conditioning, encoded: Encoded, keys: Sequence[str]
    ) -> PoolPosterior | StreamedPosterior:
        if not self._fits(encoded):
            return StreamedPosterior(conditioning, encoded, keys)
        return PoolPosterior(conditioning, ColumnCache(self.fitted.evaluator, encoded, self.fitted.draws), keys)

    def _fits(self, candidates: Encoded) -> bool:
        state = self.fitted
        return 8 * state.draws * len(candidates) * len(set(state.keys)) <= COLUMN_MEMORY

    def _encoded_at(self, pool: PoolSpace, indices: npt.NDArray[np.int64]) -> Encoded:
        """Some candidates; of a pool on disk, whose features are not all at hand, these are computed for them alone."""
        keys = keys_at(pool, indices)
        if spread_of(pool) is not None:
            chosen: Encoded = self.encoder.encode(keys)
            return chosen
        if pool in self._pools or pool.encoder is self.encoder or featured(keys) is None:
            return self._encoded_pool(pool).take(indices)
        if isinstance(self.encoder, JointEncoder) and self.encoder.tokens is pool.encoder:
            return TokensAndFeatures(pool.encoded.take(indices), self.encoder.features.encode(keys))
        found: Encoded = self.encoder.encode(keys)
        return found

    def _pool_width(self, pool: PoolSpace) -> int:
        """Columns that are enough for every candidate."""
        longest = getattr(getattr(pool, "store", None), "longest", None)
        if spread_of(pool) is None or longest is None:
            return self._encoded_pool(pool).width
        return width_of(self.encoder, pool.keys[0], int(longest))

    def _encoded_pool(self, pool: PoolSpace) -> Encoded:
        if spread_of(pool) is not None:
            raise InputError(
                "this would look at all candidates of a pool in one process, and they are spread over many: choose "
                "the strategy model with gibbon, mes, logei, ucb or mean, or lfbo or bore; a design among a sample "
                "(random); or search without a scheduler"
            )
        if pool.encoder is self.encoder:
            return pool.encoded
        if pool not in self._pools:
            if isinstance(self.encoder, JointEncoder) and self.encoder.tokens is pool.encoder:
                self._pools[pool] = TokensAndFeatures(pool.encoded, self.encoder.features.encode(pool.keys))
            else:
                self._pools[pool] = self.encoder.encode(pool.keys)
        return self._pools[pool]

    def _joint(self, strings: Sequence[Item]) -> tuple[Tensor, Tensor]:
        return self.conditioned().at(strings).joint(torch.arange(len(strings)))


def _standardized_prior_mean(mean: PriorMean, unit: float, items: Sequence[Item]) -> Tensor:
    return torch.from_numpy(prior_mean_of(mean, [key_of(item) for item in items])) / unit


def _covariance_of_means(a: Tensor, b: Tensor) -> Tensor:
    """Covariance over the draws, len(a) x len(b), of means ``D x len(a)`` and ``D x len(b)``."""
    return (a - a.mean(0)).T @ (b - b.mean(0)) / len(a)
