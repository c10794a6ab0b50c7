"""The Gaussian-process posterior over many candidates in every context, conditioned on queries one by one.

A covariance of queries is made of covariances of strings and of levels: of a pool, those of strings are computed once
and used in all contexts (`seqopt.kernels.composite.sharing_columns`). The formulas are those of
`seqopt.models.pool_posterior`, with one row of V for the outcomes in each context, and one for the targets.

Memory: 8 D C N bytes of float64 for every training or conditioned query, for C contexts (the target among them) of N
candidates and D draws of the parameters, and blocks of fixed size. Where strings are compared by a kernel without
parameters, 8 N bytes more for every string among them: a new fit does not compute these covariances again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.data.contexts import Contexts
from seqopt.data.query import Context, Item, Query, key_of
from seqopt.encoding import Encoded, FeatureRows
from seqopt.encoding.fields import ContextEncoder, FieldEncoder, Fields
from seqopt.kernels.composite import OnField, sharing_columns
from seqopt.models.column_cache import BLOCK_CANDIDATES
from seqopt.models.conditioned import BlockwisePosterior, GaussianProcess
from seqopt.models.covariance import Evaluator, FloatArray
from seqopt.models.gp_state import BatchedGPState, stacked
from seqopt.posteriors import AnchorMoments, Anchors, Moments
from seqopt.utils.config import described


class ContextsCache:
    """Prior covariances, without output scale, between a list of candidates in every context and queries.

    Args:
        evaluator: The kernel.
        encoder: Encodes queries; its variables of the context are encoded once for all candidates.
        strings: The N candidates, encoded in any context.
        contexts: The ways to measure.
        draws: D.
        earlier: Covariances of strings by kernels without parameters, which other fits have left, and this one leaves.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        encoder: FieldEncoder,
        strings: Fields,
        contexts: Contexts,
        draws: int,
        earlier: dict[str, StringColumns] | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.encoder = encoder
        self.strings = strings
        self.contexts = contexts
        self.draws = draws
        self.ways: list[Context] = list(contexts.possible)
        if contexts.latent:
            self.ways.append(())
        self.target = self.ways.index(contexts.target)
        # What is computed of candidates alone serves all queries.
        self._own: list[list[FloatArray | None]] = []
        shape = len(self.ways), draws, len(strings)
        self.variance, self.with_target = (torch.empty(shape, dtype=torch.float64) for _ in range(2))
        for block, ways in self._blocks():
            targets = ways[self.target]
            kept = [evaluator.self_similarity(fields) for fields in ways]
            self._own.append(kept)
            own_of_targets = kept[self.target]
            for way, (fields, own) in enumerate(zip(ways, kept, strict=True)):
                self.variance[way, :, block] = self._lined(evaluator.variance(fields, own))
                found = evaluator.paired(fields, targets, own, own_of_targets)
                self.with_target[way, :, block] = self._lined(found)
        self._table = torch.empty(0, *shape, dtype=torch.float64)
        self._places: dict[Item, int] = {}
        self._columns = {} if earlier is None else earlier
        for name, part in _unchanging(evaluator, encoder).items():
            compared = strings[part.field]
            if name not in self._columns or self._columns[name].candidates is not compared:
                self._columns[name] = StringColumns(compared)

    def __len__(self) -> int:
        return len(self.strings)

    def rows(self, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        """Covariances of queries with all candidates in every context, len(keys) x C x D x N.

        They are those of the cache itself where no query comes twice, valid until the next call.
        """
        places = self._found(keys, encoded)
        return self._table[: len(keys)] if places == list(range(len(keys))) else self._table[places]

    def weighted(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        """Sums over queries of their covariances with all candidates, C x D x N.

        Args:
            weights: Of each draw and query, D x len(keys).
            keys: The queries.
            encoded: The same, encoded.
        """
        places = torch.tensor(self._found(keys, encoded), dtype=torch.int64)
        used = int(places.max()) + 1 if len(places) else 0
        by_place = torch.zeros(self.draws, used, dtype=torch.float64).index_add_(1, places, weights)
        found = torch.empty(self._table.shape[1:], dtype=torch.float64)
        for way in range(len(self.ways)):
            for draw in range(self.draws):
                found[way, draw] = by_place[draw] @ self._table[:used, way, draw]
        return found

    def _found(self, keys: Sequence[Item], encoded: Encoded) -> list[int]:
        """Places of queries in the table; what is missing is computed."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [key for key in first if key not in self._places]
        # Strings that are new do not cause others to be compared again.
        new = {key for key in missing if not all(key_of(key) in known for known in self._columns.values())}
        for some in ([key for key in missing if key not in new], [key for key in missing if key in new]):
            if some:
                self._compute(some, encoded.take(np.array([first[key] for key in some])))
        return [self._places[key] for key in keys]

    def _compute(self, keys: Sequence[Item], encoded: Any) -> None:
        used = len(self._places)
        held = len(self._table)
        if used + len(keys) > held:
            grown = torch.empty(
                max(used + len(keys), held + held // 8 + 16), *self._table.shape[1:], dtype=torch.float64
            )
            grown[:used] = self._table[:used]
            self._table = grown
        rows = self._table[used : used + len(keys)]
        own = self.evaluator.self_similarity(encoded)
        strings = [key_of(key) for key in keys]
        parts = [(part, self._columns[name]) for name, part in _unchanging(self.evaluator, self.encoder).items()]
        new = [columns.new(strings) for _, columns in parts]
        for (block, ways), kept in zip(self._blocks(), self._own, strict=True):
            for part, columns in parts:
                if (lent := columns.of(strings, block)) is not None:
                    part.lend(encoded, ways[0], lent)
            for way, (fields, others) in enumerate(zip(ways, kept, strict=True)):
                found = stacked(self.evaluator.cross(encoded, fields, own, others), self.draws)
                rows[:, way, :, block] = found.transpose(0, 1)
            for (part, _), fresh in zip(parts, new, strict=True):
                if len(fresh) and (values := part.latest(encoded, ways[0])) is not None:
                    fresh.columns[:, block] = values[fresh.rows]
        for (_, columns), fresh in zip(parts, new, strict=True):
            columns.keep(fresh)
        self._places.update({key: used + offset for offset, key in enumerate(keys)})

    def _blocks(self) -> Iterator[tuple[slice, list[Fields]]]:
        """Blocks of candidates, in all contexts; what is computed of their strings is shared."""
        columns = [
            {
                name: encoder.encode([Query("", way)])
                for name, encoder in self.encoder.fields.items()
                if isinstance(encoder, ContextEncoder)
            }
            for way in self.ways
        ]
        with sharing_columns(self.evaluator.kernels):
            for start in range(0, max(len(self.strings), 1), BLOCK_CANDIDATES):
                block = slice(start, min(start + BLOCK_CANDIDATES, len(self.strings)))
                strings = self.strings.take(block)
                yield block, [_in_context(strings, of_way) for of_way in columns]

    def _lined(self, values: npt.NDArray[np.floating]) -> Tensor:
        return stacked(values[..., None, :], self.draws)[:, 0]


class ContextsPosterior:
    """Posterior at N candidates in every context; implements `seqopt.posteriors.Posterior`.

    Queries are in the order of `seqopt.data.Contexts.queries`: all candidates in the first context, all in the second.

    Args:
        process: The fitted processes, with the queries whose results are awaited.
        cache: Prior covariances with the candidates, at the same kernel parameters.
        keys: Keys of the candidates.
    """

    def __init__(self, process: GaussianProcess, cache: ContextsCache, keys: Sequence[str]) -> None:
        self._process = process
        self._cache = cache
        self._keys = keys
        self._moments = self._given_data()

    @property
    def state(self) -> BatchedGPState:
        """The fitted processes."""
        return self._process.state

    @property
    def moments(self) -> Moments:
        """See `seqopt.posteriors.Posterior`."""
        return self._moments

    @property
    def target_moments(self) -> Moments:
        """Those of the N candidates alone, measured as the target is."""
        moments, count = self._moments, len(self._keys)
        return Moments.of_target(
            moments.mean[:, :count],
            moments.variance[:, :count],
            moments.conditional_variance[:, :count],
            self.state.noise_variance,
        )

    @property
    def observed_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.observed_mean

    @property
    def conditioned_mean(self) -> Tensor:
        """See `seqopt.posteriors.Posterior`."""
        return self._process.conditioning.mean

    @property
    def best_observed(self) -> float:
        """See `seqopt.posteriors.Posterior`."""
        return self.state.best_observed

    def believed_mean(self) -> Tensor:
        """See `seqopt.posteriors.BelievingPosterior`; computed anew."""
        return self._blockwise.believed_mean()

    def anchors(self, indices: Tensor, observed: Tensor) -> Any:
        """See `seqopt.posteriors.AnchoredPosterior`."""
        return self._blockwise.anchors(indices, observed)

    def at_anchors(self, anchors: Anchors, pending: bool = True) -> AnchorMoments:
        """See `seqopt.posteriors.AnchoredPosterior`; computed anew."""
        return self._blockwise.at_anchors(anchors, pending)

    @property
    def _blockwise(self) -> BlockwisePosterior:
        """The same posterior without what is kept of the candidates."""
        count = len(self._moments)
        return BlockwisePosterior(self._process, [self.query(index) for index in range(count)])

    def query(self, index: int) -> Query:
        """The query at ``index``."""
        way, place = divmod(index, len(self._keys))
        return Query(self._keys[place], self._cache.contexts.possible[way])

    def given(self, index: int) -> ContextsPosterior:
        """The posterior given an outcome, of unknown value, of the query at ``index``."""
        query, before, cache = self.query(index), self._process.conditioning, self._cache
        encoded = cache.encoder.encode([query])
        _, weights, corner = before.given(query, encoded, cache.encoder.encode([query.key]))
        (own,) = cache.rows([query], encoded).clone()
        update = own.sub_(cache.weighted(weights, before.keys, before.encoded))
        update *= (self.state.scale / corner)[:, None]
        found = object.__new__(ContextsPosterior)
        found.__dict__.update(self.__dict__)
        found._process = self._process.given(query)
        found._moments = self._less(self._moments, update.square_())
        return found

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and noiseless covariance of targets; see `seqopt.models.conditioned.StringsPosterior.joint`."""
        chosen = self._process.at([self.query(int(index)) for index in indices])
        return chosen.joint(torch.arange(len(indices)), include_observed)

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances of targets given the data between all queries and some, D x (C N) x k."""
        state, cache = self.state, self._cache
        chosen = [self.query(int(index)).key for index in indices]
        encoded = cache.encoder.encode(chosen)
        own = state.evaluator.self_similarity(encoded)
        data = state.unconditioned
        weights = data.inverse.mT @ (data.inverse @ data.prior_rows(encoded, own))
        found = cache.rows(chosen, encoded)[:, cache.target].permute(1, 2, 0).clone()
        rows = cache.rows(state.keys, state.encoded)[:, cache.target]
        for draw in range(state.draws):
            found[draw] -= rows[:, draw].T @ weights[draw]
        found *= state.scale[:, None, None]
        return found.repeat(1, len(cache.contexts.possible), 1)

    def _given_data(self) -> Moments:
        state, cache = self.state, self._cache
        conditioning, n = self._process.conditioning, len(self.state.keys)
        scale = state.scale[:, None, None]
        shape = len(cache.ways), state.draws, len(cache)
        mean, lost, crossed, later = (torch.empty(shape, dtype=torch.float64) for _ in range(4))
        rows = cache.rows(conditioning.keys, conditioning.encoded)
        inverse = conditioning.inverse
        for start in range(0, max(len(cache), 1), BLOCK_CANDIDATES):
            block = slice(start, min(start + BLOCK_CANDIDATES, len(cache)))
            # The target comes first: what is solved for it is needed beside that of each other way.
            order = sorted(range(len(cache.ways)), key=lambda way: way != cache.target)
            for way in order:
                columns = scale * rows[:, way, :, block].transpose(0, 1)
                solved = inverse @ columns
                if way == cache.target:
                    solved_of_targets = solved
                mean[way, :, block] = (state.alpha[:, None] @ columns[:, :n])[:, 0]
                lost[way, :, block] = solved[:, :n].square().sum(1)
                crossed[way, :, block] = (solved[:, :n] * solved_of_targets[:, :n]).sum(1)
                later[way, :, block] = solved[:, n:].square().sum(1)
        scale = state.scale[None, :, None]
        floor = state.floor[None, :, None]
        mean += state.mean(self._keys)[None]
        own = torch.maximum(scale * cache.variance - lost, floor)
        covariance = scale * cache.with_target - crossed
        variance = own[cache.target]
        noise = self._noise()
        residual = (own - covariance.square() / variance).clamp_min_(0.0)
        return Moments(
            *(
                self._lined(part)
                for part in (
                    mean[cache.target].expand_as(mean),
                    variance.expand_as(own),
                    mean,
                    own + noise,
                    covariance,
                    residual + noise,
                    torch.maximum(variance - later[cache.target], state.floor[:, None]).expand_as(own),
                    torch.maximum(own - later, floor) + noise,
                )
            )
        )

    def _noise(self) -> Tensor:
        """C x D x 1."""
        of_ways = self.state.noise_at([Query("", way) if way else "" for way in self._cache.ways])
        return of_ways.expand(self.state.draws, len(self._cache.ways)).T[..., None]

    def _lined(self, values: Tensor) -> Tensor:
        """From all ways, C' x D x N, to those that are possible, D x (C N)."""
        possible = values[: len(self._cache.contexts.possible)]
        return possible.transpose(0, 1).reshape(self.state.draws, -1)

    def _less(self, moments: Moments, squares: Tensor) -> Moments:
        floor = self.state.floor[:, None]
        target = squares[self._cache.target].repeat(1, len(self._cache.contexts.possible))
        left = torch.maximum(moments.conditional_variance - target, floor)
        noise = self._lined(self._noise().expand_as(squares))
        return moments.given(left, torch.maximum(moments.remaining_variance - self._lined(squares), noise + floor))


class _New(NamedTuple):
    """Strings whose covariances are being computed, and where they stand among the queries."""

    strings: list[str]
    rows: list[int]
    columns: FloatArray

    def __len__(self) -> int:
        return len(self.strings)


class StringColumns:
    """Covariances of strings with candidates by a kernel without parameters, which no fit changes.

    Args:
        candidates: The candidates, encoded as the kernel takes them.
    """

    def __init__(self, candidates: Encoded) -> None:
        self.candidates = candidates
        self._known: dict[str, FloatArray] = {}

    def __contains__(self, string: str) -> bool:
        return string in self._known

    def new(self, strings: Sequence[str]) -> _New:
        """What is not known of some strings yet, to be filled."""
        first = {string: place for place, string in reversed(list(enumerate(strings)))}
        missing = [string for string in first if string not in self._known]
        return _New(missing, [first[string] for string in missing], np.empty((len(missing), len(self.candidates))))

    def of(self, strings: Sequence[str], block: slice) -> FloatArray | None:
        """What is known of some strings and a block of candidates; `None` if that is not all."""
        if not all(string in self._known for string in strings):
            return None
        return np.stack([self._known[string][block] for string in strings])

    def keep(self, new: _New) -> None:
        """Remember what was filled."""
        self._known.update(zip(new.strings, new.columns, strict=True))


def _unchanging(evaluator: Evaluator, encoder: FieldEncoder) -> dict[str, OnField]:
    """Kernels on strings that have no parameters, by what they are."""
    found: dict[str, OnField] = {}
    for kernel in evaluator.kernels:
        for part in kernel.modules():
            on_strings = isinstance(part, OnField) and not isinstance(encoder.fields[part.field], ContextEncoder)
            if on_strings and not part.batch_shape and next(part.kernel.parameters(), None) is None:
                found.setdefault(f"{part.field}: {described(part.kernel)}", part)
    return found


def _in_context(strings: Fields, columns: dict[str, FeatureRows]) -> Fields:
    """The same strings in another context."""
    count = len(strings)
    return Fields(
        {
            # One row stands for all: kernels are asked for one value (`seqopt.kernels.OnField`).
            name: FeatureRows(np.broadcast_to(columns[name].dense(), (count, columns[name].width)))
            if name in columns
            else part
            for name, part in strings.parts.items()
        }
    )
