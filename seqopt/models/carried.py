"""A fitted Gaussian process on its way to the shards of a pool: training strings, values and parameters.

What takes n^2 numbers, the factor of the covariance of the n training strings, is left behind and made again where it
is needed. Strings travel as strings: every shard has its own numbering of symbols.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from seqopt.data.query import key_of
from seqopt.encoding import Encoded, FeatureRows, JointEncoder, StringEncoder, TokensAndFeatures
from seqopt.encoding.encoded import EncodedStrings
from seqopt.errors import InputError
from seqopt.models.gp_state import BatchedGPState, Conditioning, stacked
from seqopt.models.stored_columns import StoredColumns
from seqopt.models.streamed_posterior import StreamedPosterior
from seqopt.posteriors import Moments, stable_cholesky
from seqopt.spaces import PoolSpace

if TYPE_CHECKING:
    from seqopt.models.gaussian import GaussianSurrogate

FACTORS = 2
"""Models whose factors a process keeps."""

MOMENTS_BYTES = 1 << 28
"""Bytes of means and variances of shards that a process keeps."""

MEAN_ELEMENTS = 1 << 24
"""Covariances that are held at once while means are predicted (128 MiB)."""

Columns = Callable[[BatchedGPState, str], StoredColumns | None]
"""Where covariances of a costly kernel with the candidates of a shard are kept, from the model and the encoder's
name."""


@dataclass(frozen=True, eq=False)
class CarriedModel:
    """A fitted process without its factor, and what encodes strings for it.

    Attributes:
        state: The process; what it holds of its training strings is their keys.
        encoder: Turns strings into what the kernel takes; `None` for the encoder of the shard, or its features beside
            the tokens of the shard.
        name: Told apart from other models by it.
    """

    state: BatchedGPState
    encoder: StringEncoder | None
    features: StringEncoder | None
    name: str

    def on(self, shard: PoolSpace) -> tuple[BatchedGPState, Encoded, str]:
        """The process with its training strings as the shard encodes them, the candidates, and the encoder's name."""
        encoder: StringEncoder
        if self.encoder is not None:
            encoder = self.encoder
            candidates: Encoded = encoder.encode(shard.keys)
        elif self.features is not None:
            encoder = JointEncoder(self.features, shard.encoder)  # type: ignore[arg-type]
            candidates = TokensAndFeatures(shard.encoded, self.features.encode(shard.keys))
        else:
            encoder, candidates = shard.encoder, shard.encoded
        encoded = encoder.encode([key_of(item) for item in self.state.keys]).padded(self.width)
        bare = replace(self.state, encoded=encoded)
        return replace(bare, cholesky=_factor(self.name, bare)), candidates, encoder.name

    @property
    def width(self) -> int:
        """Columns of the encoded training strings."""
        return self.state.encoded.width

    def moments(self, shard: PoolSpace, columns: Columns | None = None) -> Moments:
        """Mean and variance given the data of each candidate, in double precision: kept until others need the room.

        Args:
            shard: The candidates.
            columns: Where covariances of a costly kernel are kept.
        """
        found = _MOMENTS.get(self.name, shard)
        if found is None:
            state, candidates, encoder = self.on(shard)
            store = columns(state, encoder) if columns is not None and state.evaluator.costly else None
            posterior = StreamedPosterior(
                Conditioning.of(state), candidates, shard.keys, store if state.draws == 1 else None, np.float64
            )
            data = posterior.given_data
            found = data.mean, data.variance
            _MOMENTS.put(self.name, shard, found)
        return Moments.of_target(*found, found[1], self.state.noise_variance)

    def means(self, shard: PoolSpace) -> Tensor:
        """Mean given the data of each candidate, averaged over draws: it needs no factor."""
        known = _MOMENTS.get(self.name, shard)
        if known is not None:
            return known[0].mean(0)
        state, candidates, _ = self.on(shard)
        own = state.evaluator.self_similarity(state.encoded)
        found = torch.empty(len(candidates), dtype=torch.float64)
        size = max(1, MEAN_ELEMENTS // (state.draws * max(1, len(state.keys))))
        for start in range(0, len(candidates), size):
            block = slice(start, min(start + size, len(candidates)))
            part = candidates.take(np.arange(block.start, block.stop))
            theirs = state.evaluator.self_similarity(part)
            rows = stacked(state.evaluator.cross(state.encoded, part, own, theirs), state.draws).double()
            rows = rows.mul_(state.scale[:, None, None])
            mean = state.mean(list(shard.keys[block])) + (state.alpha[:, None] @ rows)[:, 0]
            found[block] = mean.mean(0)
        return found


def carried(surrogate: GaussianSurrogate, pool: PoolSpace) -> CarriedModel:
    """The fitted process of a surrogate, as it is sent to the shards of a pool.

    Args:
        surrogate: A fitted one, of plain strings.
        pool: The candidates.

    Raises:
        InputError: If it knows several ways to measure.
    """
    state = surrogate.fitted
    known = _CARRIED.get(state)
    if known is not None:
        return known
    if state.wanted is not None or state.level_noise is not None:
        raise InputError("a model of several ways to measure cannot be sent to the shards of a pool: search in memory")
    own = surrogate.encoder
    encoder: StringEncoder | None = own
    features: StringEncoder | None = None
    if own is pool.encoder:
        encoder = None
    elif isinstance(own, JointEncoder) and own.tokens is pool.encoder:
        encoder, features = None, own.features
    bare = replace(
        state,
        encoded=_Width(state.encoded.width),  # type: ignore[arg-type]
        cholesky=torch.empty(0, dtype=torch.float64),
    )
    found = CarriedModel(bare, encoder, features, secrets.token_hex(8))
    _CARRIED[state] = found
    return found


def width_of(encoder: StringEncoder, key: str, longest: int) -> int:
    """Columns that are enough for every string of a pool.

    Args:
        encoder: Encodes it.
        key: One of the strings.
        longest: Bytes of the longest of them, each of which is a symbol at most.
    """
    one = encoder.encode([key])
    if isinstance(one, FeatureRows):
        return one.width
    if isinstance(one, TokensAndFeatures):
        return one.features.width + max(one.tokens.width, longest)
    return max(one.width, longest) if isinstance(one, EncodedStrings) else one.width + longest


@dataclass(frozen=True)
class _Width:
    """What is left of encoded strings that do not travel."""

    width: int


_CARRIED: WeakKeyDictionary[BatchedGPState, CarriedModel] = WeakKeyDictionary()
_FACTORS: OrderedDict[str, Tensor] = OrderedDict()
_LOCK = threading.RLock()


def _factor(name: str, state: BatchedGPState) -> Tensor:
    """Lower factors of the training covariance with noise, as `BatchedGPState.build` makes them."""
    with _LOCK:
        found = _FACTORS.get(name)
    if found is None:
        evaluator = state.evaluator
        gram = stacked(evaluator.cross(state.encoded, None, evaluator.self_similarity(state.encoded)), state.draws)
        prior = state.scale[:, None, None] * 0.5 * (gram + gram.mT)
        found, _ = stable_cholesky(prior + state.observed_noise.diag_embed())
        with _LOCK:
            _FACTORS[name] = found
            while len(_FACTORS) > FACTORS:
                _FACTORS.popitem(last=False)
    return found


class _KeptMoments:
    """Means and variances of shards, those that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[Tensor, Tensor]] = OrderedDict()
        self._bytes = 0

    def get(self, model: str, shard: PoolSpace) -> tuple[Tensor, Tensor] | None:
        name: str | None = getattr(shard, "shard_name", None)
        with _LOCK:
            found = None if name is None else self._kept.get((model, name))
            if name is not None and found is not None:
                self._kept.move_to_end((model, name))
            return found

    def put(self, model: str, shard: PoolSpace, moments: tuple[Tensor, Tensor]) -> None:
        name = getattr(shard, "shard_name", None)
        if name is None:
            return
        with _LOCK:
            if (model, name) in self._kept:
                return
            self._kept[model, name] = moments
            self._bytes += sum(8 * part.numel() for part in moments)
            while self._bytes > MOMENTS_BYTES and self._kept:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= sum(8 * part.numel() for part in dropped)


_MOMENTS = _KeptMoments()
