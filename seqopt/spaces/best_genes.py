r"""The best paths of a graph of genes, in their order, and random ones by their score: dynamic programming.

For node v before position i let C(v, r) be the best score of a completion with r bases G or C:

    C(v, r) = max over edges e from v of  weight(e) + C(target(e), r - gc(e)),

and L(v, r) the same with log-sum-exp for the maximum, the weights divided by a temperature. One sweep from the end
fills either for all r at once. The best gene follows from the start by taking edges that attain the maximum; a random
gene of probability proportional to exp(S / T) by drawing edges in proportion to exp(weight / T + L); and the next best
genes are the best deviations from those before, which C gives without a further sweep.

References:
    Bellman, R. (1957). Dynamic Programming. Princeton University Press.
    Lawler, E. L. (1972). A procedure for computing the K best solutions to discrete optimization problems and its
        application to the shortest path problem. Manag. Sci. 18(7), 401-405.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, IntractableError
from seqopt.spaces.codon_graph import CodonGraph, Layer

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LARGEST_TABLE = 2**28
"""Completions that are kept at most: two gigabytes of them."""


class BestGenes:
    """Genes of a graph by their score.

    Args:
        graph: Its edges carry the weights.
        gc: The least and the greatest number of G and C that a gene may have; `None` for any.
        of_gc: What the number of G and C adds to the score (of an array of numbers, as many values).

    Raises:
        InputError: If there is no such gene.
        IntractableError: If the table would be too large.

    Example:
        >>> from seqopt.spaces.codon_scores import CodonScore
        >>> from seqopt.spaces.motifs import MotifAutomaton
        >>> choices = [("GAA", "GAG"), ("TTT", "TTC")]
        >>> weights = CodonScore({"GAA": 1.0, "TTC": 0.5})
        >>> best = BestGenes(CodonGraph(choices, MotifAutomaton(["GAATTC"]), weights))
        >>> list(best.ranked())
        [(1.0, (0, 0)), (0.5, (1, 1)), (0.0, (1, 0))]
    """

    def __init__(
        self,
        graph: CodonGraph,
        gc: tuple[int, int] | None = None,
        of_gc: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        self.graph = graph
        self.by_count = gc is not None or of_gc is not None
        self._of_gc = of_gc
        least, most = graph.least_and_most_gc()
        if self.by_count:
            low, high = (int(least[0]), int(most[0])) if gc is None else gc
            # Before position i there are between least[0] - least[i] and most[0] - most[i] of G and C.
            self._low = np.maximum(least, low - (most[0] - most))
            self._high = np.minimum(most, high - (least[0] - least))
        else:
            self._low = self._high = np.zeros(len(least), dtype=np.int64)
        nodes = [*(layer.nodes for layer in graph.layers), 1]
        size = sum(max(int(high - low) + 1, 0) * n for low, high, n in zip(self._low, self._high, nodes, strict=True))
        if size > LARGEST_TABLE:
            raise IntractableError(
                f"an exact optimum of these genes needs a table of {size:,} numbers, {LARGEST_TABLE:,} at most: give "
                "fewer motifs, leave out the bounds of GC content, or search"
            )
        if not graph.feasible or not np.isfinite(self._starts).any():
            raise InputError("no gene keeps to these constraints")

    @cached_property
    def _best(self) -> list[FloatArray]:
        return self._swept(np.maximum, 1.0)

    @cached_property
    def _starts(self) -> FloatArray:
        """The best score for each number of G and C."""
        if not self.graph.feasible or self._high[0] < self._low[0]:
            return np.full(1, -np.inf)
        return self._at_start(self._best, 1.0)

    def _at_start(self, table: list[FloatArray], scale: float) -> FloatArray:
        values = table[0][0].copy()
        if self._of_gc is not None:
            counts = np.arange(self._low[0], self._high[0] + 1)
            values += scale * np.asarray(self._of_gc(counts), dtype=np.float64)
        return values

    def _swept(self, add: np.ufunc, scale: float) -> list[FloatArray]:
        """The table of completions, one array of nodes and numbers of G and C for each position and the end."""
        low, high = self._low.tolist(), self._high.tolist()
        last = np.full((1, max(high[-1] - low[-1] + 1, 0)), -np.inf)
        if low[-1] <= 0 <= high[-1]:
            last[0, -low[-1]] = 0.0
        tables = [last]
        for index in range(len(self.graph.layers) - 1, -1, -1):
            layer = self.graph.layers[index]
            following = tables[-1]
            here = np.full((layer.nodes, max(high[index] - low[index] + 1, 0)), -np.inf)
            gcs = layer.gc.tolist() if self.by_count else [0] * len(layer.gc)
            for source, target, weight, gc in zip(
                layer.source.tolist(), layer.target.tolist(), layer.weight.tolist(), gcs, strict=True
            ):
                first = max(low[index], low[index + 1] + gc)
                stop = min(high[index], high[index + 1] + gc) + 1
                if first < stop:
                    into = here[source, first - low[index] : stop - low[index]]
                    shift = gc + low[index + 1]
                    add(into, following[target, first - shift : stop - shift] + scale * weight, out=into)
            tables.append(here)
        tables.reverse()
        return tables

    @property
    def best_score(self) -> float:
        """The best score there is."""
        return float(self._starts.max())

    def best_by_gc(self) -> dict[int, float]:
        """The best score for each number of G and C that is possible, where they are told apart; key 0 otherwise."""
        found = np.flatnonzero(np.isfinite(self._starts))
        return {int(self._low[0]) + int(index): float(self._starts[index]) for index in found}

    def ranked(self, most: int | None = None) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Scores and options of the genes, the best first, each gene once; equal ones in a fixed order.

        Args:
            most: How many are wanted, which keeps memory and time small: n log n for each beyond the first.
        """
        order = itertools.count()
        # Score, order, position, node, G and C that are left, score so far, options before, option taken before.
        heap: list[tuple[float, int, int, int, int, float, list[int], int]] = []
        kept: list[float] = []

        def push(
            score: float, position: int, node: int, left: int, gained: float, options: list[int], option: int
        ) -> None:
            # Each entry stands for at least one gene of its score, so what is worse than `most` others can go.
            if most is not None:
                if len(kept) >= most and score <= kept[0]:
                    return
                heapq.heappush(kept, score)
                if len(kept) > most:
                    heapq.heappop(kept)
            heapq.heappush(heap, (-score, next(order), position, node, left, gained, options, option))

        table, low, high = self._best, self._low.tolist(), self._high.tolist()
        for place in np.flatnonzero(np.isfinite(self._starts)).tolist():
            start = float(self._starts[place])
            push(start, 0, 0, low[0] + place, start - float(table[0][0, place]), [], -1)
        given = 0
        while heap and (most is None or given < most):
            negative, _, position, node, left, gained, before, option = heapq.heappop(heap)
            options = [*before[: position - 1], option] if position else []
            branches: list[tuple[float, int, int, int, float, int]] = []
            for index in range(position, len(self.graph.layers)):
                best = -math.inf
                chosen: tuple[int, int, int, float] | None = None
                for taken, target, weight, gc in self.graph.out[index][node]:
                    rest = left - gc if self.by_count else 0
                    if not low[index + 1] <= rest <= high[index + 1]:
                        continue
                    total = weight + float(table[index + 1][target, rest - low[index + 1]])
                    if total == -math.inf:
                        continue
                    if total > best:
                        if chosen is not None:
                            branches.append((gained + best, index + 1, chosen[1], chosen[2], chosen[3], chosen[0]))
                        best, chosen = total, (taken, target, rest, gained + weight)
                    else:
                        branches.append((gained + total, index + 1, target, rest, gained + weight, taken))
                assert chosen is not None
                options.append(chosen[0])
                node, left, gained = chosen[1:]
            yield -negative, tuple(options)
            given += 1
            if most is None or given < most:
                for score, index, target, rest, sofar, taken in branches:
                    push(float(score), index, target, rest, sofar, options, taken)

    def sampler(self, temperature: float = 1.0) -> Callable[[int, np.random.Generator], IntArray]:
        """Draws genes of probability proportional to exp(S / T), independently, as options (``n x positions``).

        Args:
            temperature: T, above 0; infinity for all genes alike.

        Raises:
            InputError: For a temperature that is not above 0.
        """
        if not temperature > 0:
            raise InputError(f"the temperature is {temperature}; expected a number above 0")
        scale = 1.0 / temperature
        table = self._swept(np.logaddexp, scale)
        at_start = self._at_start(table, scale)
        padded = [_padded(layer, scale, by_count=self.by_count) for layer in self.graph.layers]

        def draw(n: int, rng: np.random.Generator) -> IntArray:
            options = np.empty((n, len(padded)), dtype=np.int64)
            node = np.zeros(n, dtype=np.int64)
            left = self._low[0] + _drawn(np.broadcast_to(at_start, (n, len(at_start))), rng)
            for index, (option, target, weight, gc) in enumerate(padded):
                following = table[index + 1]
                rest = left[:, None] - gc[node] - self._low[index + 1]
                inside = (rest >= 0) & (rest < following.shape[1])
                after = following[target[node], np.where(inside, rest, 0)]
                chosen = _drawn(np.where(inside, weight[node] + after, -np.inf), rng)
                options[:, index] = option[node, chosen]
                left = left - gc[node, chosen]
                node = target[node, chosen]
            return options

        return draw


def _padded(layer: Layer, scale: float, *, by_count: bool) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Option, target, weight and G and C of the edges from each node, ``nodes x most edges``; padding weighs -inf."""
    degrees = np.bincount(layer.source, minlength=layer.nodes)
    place = np.arange(len(layer.source)) - (degrees.cumsum() - degrees)[layer.source]
    shape = (layer.nodes, int(degrees.max()))
    option, target, gc = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    weight = np.full(shape, -np.inf)
    option[layer.source, place] = layer.option
    target[layer.source, place] = layer.target
    weight[layer.source, place] = scale * layer.weight
    if by_count:
        gc[layer.source, place] = layer.gc
    return option, target, weight, gc


def _drawn(logits: FloatArray, rng: np.random.Generator) -> IntArray:
    """Of each row one column, in proportion to exp(logit) (the Gumbel-max trick)."""
    return np.asarray((logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
