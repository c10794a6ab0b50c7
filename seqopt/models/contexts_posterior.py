"""The Gaussian-process posterior over many candidates in every context, conditioned on queries one by one.

A covariance of queries is made of covariances of strings and of levels: of a pool, those of strings are computed once
and used in all contexts (`seqopt.kernels.composite.sharing_columns`). The formulas are those of
`seqopt.models.pool_posterior`, with one row of V for the outcomes in each context, and one for the targets.

Memory: where a covariance is an affine function of what one kernel says of two strings, and parameters are estimated,
8 N bytes of float64 for every string that was measured or joins the batch, and N candidates; a new fit computes these
anew only where the kernel on strings has parameters. Else 8 D C N bytes for every training or conditioned query, for C
contexts (the target among them) and D draws of the parameters. And blocks of fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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

Products = Callable[[int, slice], Tensor]
"""Sums at some candidates in a context, by its number."""

BLOCK_PRODUCTS = 1 << 11
"""Candidates whose sums over a hundred queries fit into a processor's cache."""

CHECKED = 16
"""Candidates with which it is looked whether covariances are affine, for each query."""


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
        self.columns = [
            {
                name: one.encode([Query("", way)])
                for name, one in encoder.fields.items()
                if isinstance(one, ContextEncoder)
            }
            for way in self.ways
        ]
        # What is computed of candidates alone serves all queries.
        self.own: list[list[FloatArray | None]] = []
        shape = len(self.ways), draws, len(strings)
        self.variance, self.with_target = (torch.empty(shape, dtype=torch.float64) for _ in range(2))
        for block, ways in self.blocks():
            targets = ways[self.target]
            kept = [evaluator.self_similarity(fields) for fields in ways]
            self.own.append(kept)
            own_of_targets = kept[self.target]
            for way, (fields, own) in enumerate(zip(ways, kept, strict=True)):
                self.variance[way, :, block] = self._lined(evaluator.variance(fields, own))
                found = evaluator.paired(fields, targets, own, own_of_targets)
                self.with_target[way, :, block] = self._lined(found)
        self._affine = _Affine.of(self, {} if earlier is None else earlier)
        self._table = _Table(self)

    def __len__(self) -> int:
        return len(self.strings)

    def rows(self, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        """Covariances of a few queries with all candidates in every context, len(keys) x C x D x N."""
        return self._prior_of(keys, encoded).rows(keys, encoded)

    def products(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Products:
        """Sums over queries of their covariances with candidates in a context.

        Args:
            weights: D x m x len(keys).
            keys: The queries.
            encoded: The same, encoded.

        Returns:
            A function of the number of the context and a slice of the candidates, whose value is D x m x (candidates).
        """
        return self._prior_of(keys, encoded).products(weights, keys, encoded)

    def _prior_of(self, keys: Sequence[Item], encoded: Encoded) -> _Affine | _Table:
        """Where covariances come from: those of a table, once a query is met for which they are not affine."""
        if self._affine is not None and not self._affine.holds(keys, encoded):
            self._affine = None
        return self._table if self._affine is None else self._affine

    def weighted(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        """Sums over queries of their covariances with all candidates, C x D x N, for weights D x len(keys)."""
        return self._prior_of(keys, encoded).weighted(weights, keys, encoded)

    def blocks(self) -> Iterator[tuple[slice, list[Fields]]]:
        """Blocks of candidates, in all contexts; what is computed of their strings is shared."""
        with sharing_columns(self.evaluator.kernels):
            for start in range(0, max(len(self.strings), 1), BLOCK_CANDIDATES):
                block = slice(start, min(start + BLOCK_CANDIDATES, len(self.strings)))
                strings = self.strings.take(block)
                yield block, [_in_context(strings, of_way) for of_way in self.columns]

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
        found -= cache.products(weights.mT, state.keys, state.encoded)(cache.target, slice(None)).mT
        found *= state.scale[:, None, None]
        return found.repeat(1, len(cache.contexts.possible), 1)

    def _given_data(self) -> Moments:
        state, cache = self.state, self._cache
        conditioning, n = self._process.conditioning, len(self.state.keys)
        scale = state.scale[:, None, None]
        shape = len(cache.ways), state.draws, len(cache)
        mean, lost, crossed, later = (torch.empty(shape, dtype=torch.float64) for _ in range(4))
        # The mean and all that is solved in one product.
        weights = scale * torch.cat([conditioning.inverse, _padded(state.alpha, conditioning.inverse)], 1)
        # The target comes first: what is solved for it is needed beside that of each other way.
        order = sorted(range(len(cache.ways)), key=lambda way: way != cache.target)
        products = cache.products(weights, conditioning.keys, conditioning.encoded)
        for start in range(0, max(len(cache), 1), BLOCK_PRODUCTS):
            block = slice(start, min(start + BLOCK_PRODUCTS, len(cache)))
            for way in order:
                both = products(way, block)
                solved = both[:, :-1]
                if way == cache.target:
                    of_target = solved
                mean[way, :, block] = both[:, -1]
                lost[way, :, block] = solved[:, :n].square().sum(1)
                crossed[way, :, block] = (solved[:, :n] * of_target[:, :n]).sum(1)
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


def _padded(alpha: Tensor, inverse: Tensor) -> Tensor:
    """Weights of the data, as a row that weighs nothing else, D x 1 x (all queries)."""
    found = torch.zeros(len(alpha), 1, inverse.shape[-1], dtype=torch.float64)
    found[:, 0, : alpha.shape[-1]] = alpha
    return found


class _Table:
    """Covariances of queries with all candidates in all contexts, as they are."""

    def __init__(self, cache: ContextsCache) -> None:
        self._cache = cache
        self._rows = torch.empty(0, len(cache.ways), cache.draws, len(cache), dtype=torch.float64)
        self._places: dict[Item, int] = {}

    def rows(self, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        places = self._found(keys, encoded)  # which may make another table
        return self._rows[places]

    def products(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Products:
        places = torch.tensor(self._found(keys, encoded), dtype=torch.int64)
        by_place = _gathered(weights, places, len(self._places))
        rows, draws = self._rows[: len(self._places)], range(self._cache.draws)
        return lambda way, block: torch.stack([by_place[draw] @ rows[:, way, draw, block] for draw in draws])

    def weighted(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        products = self.products(weights[:, None], keys, encoded)
        return torch.stack([products(way, slice(None))[:, 0] for way in range(len(self._cache.ways))])

    def _found(self, keys: Sequence[Item], encoded: Encoded) -> list[int]:
        """Places of queries in the table; what is missing is computed."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [key for key in first if key not in self._places]
        if missing:
            self._compute(missing, encoded.take(np.array([first[key] for key in missing])))
        return [self._places[key] for key in keys]

    def _compute(self, keys: Sequence[Item], encoded: Any) -> None:
        cache, used = self._cache, len(self._places)
        self._rows = _with_room(self._rows, used, used + len(keys))
        rows = self._rows[used : used + len(keys)]
        own = cache.evaluator.self_similarity(encoded)
        for (block, ways), kept in zip(cache.blocks(), cache.own, strict=True):
            for way, (fields, others) in enumerate(zip(ways, kept, strict=True)):
                found = stacked(cache.evaluator.cross(encoded, fields, own, others), cache.draws)
                rows[:, way, :, block] = found.transpose(0, 1)
        self._places.update({key: used + offset for offset, key in enumerate(keys)})


class _Affine:
    """The same, where each is an affine function a + b k(x, y) of what one kernel says of the two strings.

    So it is wherever one kernel on strings is multiplied by what contexts have in common, and offsets are added. Of a
    pool only the covariances k of strings are held, N numbers for each string, whatever the number of contexts; the
    numbers a and b of queries and contexts follow from two values of the whole kernel, and a third says whether it is
    one.

    Args:
        cache: That of the candidates.
        kernels: All parts of the kernel that compare strings: they are equal.
        columns: Covariances k.
    """

    def __init__(self, cache: ContextsCache, kernels: Sequence[OnField], columns: StringColumns) -> None:
        self._cache = cache
        self._kernels = kernels
        self._columns = columns
        self._factors: dict[Item, tuple[Tensor, Tensor]] = {}

    @classmethod
    def of(cls, cache: ContextsCache, earlier: dict[str, StringColumns]) -> _Affine | None:
        """The affine form of a kernel; `None` where it has none, or where draws have kernels of their own.

        Args:
            cache: That of the candidates.
            earlier: What other fits have left; where the kernel on strings has no parameters, it is used and filled.
        """
        parts = [
            part
            for kernel in cache.evaluator.kernels
            for part in kernel.modules()
            if isinstance(part, OnField) and not isinstance(cache.encoder.fields[part.field], ContextEncoder)
        ]
        names = {f"{part.field}: {described(part.kernel)} {_parameters(part)}" for part in parts}
        if len(names) != 1 or not len(cache) or any(part.batch_shape for part in parts):
            return None
        (name,), first = names, parts[0]
        compared = cache.strings[first.field]
        if compared.width == 1:
            return None
        columns = earlier.get(name) if _parameters(first) == "" else None
        if columns is None or columns.candidates is not compared:
            columns = StringColumns(compared)
        # Of a kernel whose description may be incomplete nothing is taken over.
        if _parameters(first) == "" and not described(first.kernel).get("custom"):
            earlier[name] = columns
        return cls(cache, parts, columns)

    def rows(self, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        offset, slope = self._of(keys)
        columns = self._strings(keys, encoded)
        places = [self._columns.places[key_of(key)] for key in keys]
        return offset[..., None] + slope[..., None] * columns[places][:, None, None]

    def products(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Products:
        by_place, offset, columns = self._by_place(weights, keys, encoded)
        return lambda way, block: (by_place[way] @ columns[:, block]).add_(offset[way])

    def weighted(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> Tensor:
        # In one product for all contexts, which reads the columns once.
        by_place, offset, columns = self._by_place(weights[:, None], keys, encoded)
        found: Tensor = by_place.reshape(-1, len(columns)) @ columns
        return found.reshape(*by_place.shape[:2], -1).add_(offset[:, :, 0])

    def _by_place(self, weights: Tensor, keys: Sequence[Item], encoded: Encoded) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the columns in each context, C x D x m x n, what is added, C x D x m x 1, and the columns."""
        offset, slope = (part.permute(1, 2, 0)[:, :, None] for part in self._of(keys))
        columns = self._strings(keys, encoded)
        places = torch.tensor([self._columns.places[key_of(key)] for key in keys], dtype=torch.int64)
        by_place = _gathered(weights * slope, places, len(columns))
        return by_place, (weights * offset).sum(-1, keepdim=True), columns

    def holds(self, keys: Sequence[Item], encoded: Any) -> bool:
        """Whether the covariances of queries are affine; what is found out is kept."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        missing = [key for key in first if key not in self._factors]
        if missing:
            new = encoded.take(np.array([first[key] for key in missing]))
            probed = self._probed(new)
            if probed is None or not self._agrees(new, *probed):
                return False
            self._factors.update({key: (probed[0][row], probed[1][row]) for row, key in enumerate(missing)})
        return True

    def _agrees(self, encoded: Any, offset: Tensor, slope: Tensor) -> bool:
        """Whether covariances with some candidates are what the whole kernel says."""
        cache, kernel = self._cache, self._kernels[0]
        places = np.unique(np.linspace(0, len(cache) - 1, min(len(cache), CHECKED)).astype(np.int64))
        strings, own = cache.strings.take(places), cache.evaluator.self_similarity(encoded)
        compared = torch.from_numpy(
            kernel.cross(encoded, strings, kernel.self_similarity(encoded), kernel.self_similarity(strings))
        )
        for way, columns in enumerate(cache.columns):
            fields = _in_context(strings, columns)
            others = cache.evaluator.self_similarity(fields)
            expected = stacked(cache.evaluator.cross(encoded, fields, own, others), cache.draws).transpose(0, 1)
            found = offset[:, way, :, None] + slope[:, way, :, None] * compared[:, None]
            if not torch.allclose(found, expected, rtol=1e-9, atol=1e-12 * float(expected.abs().max())):
                return False
        return True

    def _of(self, keys: Sequence[Item]) -> tuple[Tensor, Tensor]:
        """The numbers a and b of queries in all contexts, len(keys) x C x D each."""
        found = [self._factors[key] for key in keys]
        empty = torch.empty(0, len(self._cache.ways), self._cache.draws, dtype=torch.float64)
        parts = [torch.stack(part) if part else empty for part in ([a for a, _ in found], [b for _, b in found])]
        return parts[0], parts[1]

    def _probed(self, encoded: Any) -> tuple[Tensor, Tensor] | None:
        cache = self._cache
        evaluator = cache.evaluator
        values = torch.empty(3, len(encoded), len(cache.ways), cache.draws, dtype=torch.float64)
        own = evaluator.self_similarity(encoded)
        # One candidate stands for all: contexts are all that is asked for.
        strings = cache.strings.take(slice(0, 1))
        for way, columns in enumerate(cache.columns):
            fields = _in_context(strings, columns)
            others = evaluator.self_similarity(fields)
            for value in range(3):
                with sharing_columns(evaluator.kernels):
                    for part in self._kernels:
                        part.lend(encoded, fields, np.full((len(encoded), 1), float(value)))
                    found = stacked(evaluator.cross(encoded, fields, own, others), cache.draws)
                values[value, :, way] = found[..., 0].T
        offset, slope = values[0], values[1] - values[0]
        affine = torch.allclose(values[2], offset + 2 * slope, rtol=1e-9, atol=1e-12)
        return (offset, slope) if affine else None

    def _strings(self, keys: Sequence[Item], encoded: Any) -> Tensor:
        """Covariances k of all strings that were ever asked for, those of `keys` among them, with the candidates."""
        first = {key_of(key): place for place, key in reversed(list(enumerate(keys)))}
        missing = [string for string in first if string not in self._columns.places]
        if missing:
            new = encoded.take(np.array([first[string] for string in missing]))
            self._columns.add(missing, self._kernels[0], new, self._cache.strings)
        return self._columns.rows


class StringColumns:
    """Covariances of strings with candidates by one kernel, whatever they are measured in.

    Args:
        candidates: The candidates, encoded as the kernel takes them.

    Attributes:
        rows: One row for each string, n x N.
        places: Rows of strings.
    """

    def __init__(self, candidates: Encoded) -> None:
        self.candidates = candidates
        self.places: dict[str, int] = {}
        self._rows = torch.empty(0, len(candidates), dtype=torch.float64)
        self._own: FloatArray | None = None

    @property
    def rows(self) -> Tensor:
        """Those of all strings, n x N."""
        return self._rows[: len(self.places)]

    def add(self, strings: Sequence[str], kernel: OnField, encoded: Fields, candidates: Fields) -> None:
        """Compute what is known of further strings."""
        if self._own is None:
            self._own = kernel.self_similarity(candidates)
        used = len(self.places)
        self._rows = _with_room(self._rows, used, used + len(strings))
        rows, own = self._rows[used : used + len(strings)], kernel.self_similarity(encoded)
        for start in range(0, len(candidates), BLOCK_CANDIDATES):
            block = slice(start, min(start + BLOCK_CANDIDATES, len(candidates)))
            part = kernel.cross(encoded, candidates.take(block), own, self._own[..., block])
            rows[:, block] = torch.from_numpy(part)
        self.places.update({string: used + place for place, string in enumerate(strings)})


def _with_room(rows: Tensor, used: int, wanted: int) -> Tensor:
    """A table with room for so many rows, some of which are used."""
    if wanted <= len(rows):
        return rows
    grown = torch.empty(max(wanted, len(rows) + len(rows) // 8 + 16), *rows.shape[1:], dtype=torch.float64)
    grown[:used] = rows[:used]
    return grown


def _gathered(weights: Tensor, places: Tensor, count: int) -> Tensor:
    """Weights of queries, ... x n, added up by their places in a table of so many rows."""
    found = torch.zeros(*weights.shape[:-1], count, dtype=torch.float64)
    return found.index_add_(-1, places, weights)


def _parameters(part: OnField) -> str:
    """Values of a kernel's parameters; empty where it has none."""
    return ", ".join(f"{name}={value.detach().tolist()}" for name, value in part.kernel.named_parameters())


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
