"""Compiled loops of exact folding: the tables of least energies, and the genes and structures that have them.

Let u, v be nodes of the graph of bases (`seqopt.folding.graph`) at positions i <= j. Over all paths from u to v and all
structures of their bases, with the weight of the edges included,

    P[u, v]    least energy with u and v paired,
    M1[u, v]   within a multiloop, one helix that begins at u, unpaired bases after it,
    M[u, v]    within a multiloop, one helix or more,
    B[u, v]    likewise two or more, B[u, v] = min over x of M[u, x] + min over edges x -> y of (edge + M1[y, v]),
    F[v]       from the first position to v, outside all pairs.

These are Zuker and Stiegler's recurrences, with nodes in the place of positions (Terai et al., 2016). What couples
bases beyond the four of two pairs is treated so that the minimum stays exact:

- Hairpins of 3, 4 and 6 bases, whose energies depend on all of them, are enumerated along the graph.
- Interior loops of 1 x 1, 1 x 2, 2 x 1 and 2 x 2 bases are enumerated with their unpaired bases.
- In all others the energy is a sum of one term for the outer pair and its neighbours, one for the inner pair and its
  neighbours, and one for the numbers of bases. The inner term and P are minimised over the pair for each two
  neighbours, once (``inner``), then over the places of these neighbours for each two neighbours of the outer pair.

Columns j are computed one after another; within one, all i are independent. ``inner`` keeps the last `RING` columns.

Tables are packed by rows: entry (u, v) is at ``offset[u] + v``. Numbers are those of `seqopt.folding.energies`.
Everything compiled is in this one file, because Numba's cache on disk notices changes of this file only.

References:
    Zuker, M., Stiegler, P. (1981). Optimal computer folding of large RNA sequences using thermodynamics and auxiliary
        information. Nucleic Acids Res. 9, 133-148.
    Terai, G., Kamegai, S., Asai, K. (2016). CDSfold: an algorithm for designing a protein-coding sequence with the most
        stable secondary structure. Bioinformatics 32, 828-834.
    Gu, X., Qi, Y., El-Kebir, M. (2024). DERNA enables Pareto optimal RNA design. J. Comput. Biol. 31, 179-196.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.folding.energies import INFINITE, LARGEST_LOOP, ORDINARY, Energies
from seqopt.folding.graph import MOST, BaseGraph
from seqopt.utils.compiling import compiled, compiled_part

IntArray = npt.NDArray[np.int32]

RING = 32
"""Columns of ``inner`` that are kept: an interior loop reaches no further."""

POSSIBLE = 100_000_000
"""Larger numbers are those of what cannot be."""

LEAST_HAIRPIN = 3
"""Unpaired bases of a hairpin at least."""

_FAR = np.int32(INFINITE)
_LARGEST = LARGEST_LOOP
_ORDINARY = ORDINARY
_MOST = MOST


class Tables(NamedTuple):
    """What is computed; ``n`` nodes, ``L`` positions.

    Attributes:
        offset: ``n``: see above.
        paired, one, several: P, M1 and M, packed.
        two: ``2 x 4 x n``: B of the last two columns' nodes, by the parity of the column.
        after: ``4 x n``: of the nodes v of the current column, min over edges x -> y of edge + M1[y, v], for each x.
        kept: ``4 x (beam + 1)``: with a beam, which nodes x of ``after`` count for each v, and at the end how many.
        outside: ``n``: F.
        inner: ``RING x L x 3 x 4 x 4``: by kind of loop; first the position on the right.
        least_inner: ``RING x L x 3``: its least entries.
        least: ``RING x L``: least P by positions, first that on the right.
        small: ``3 x L x 4 x 4``: hairpins of 3, 4 and 6 bases that begin at a position.
    """

    offset: npt.NDArray[np.int64]
    paired: IntArray
    one: IntArray
    several: IntArray
    two: IntArray
    after: IntArray
    kept: IntArray
    outside: IntArray
    inner: IntArray
    least_inner: IntArray
    least: IntArray
    small: IntArray


@compiled
def path_weight(graph: BaseGraph, a: int, b: int) -> int:
    """Least weight of the edges from node a to node b, no earlier in the gene."""
    if graph.codon[a] != graph.codon[b]:
        return graph.leave[a] + graph.enter[b]
    distance = graph.position[b] - graph.position[a]
    if distance == 0:
        return 0 if a == b else INFINITE
    number = b - graph.starts[graph.position[b]]
    return graph.edge[a, number] if distance == 1 else graph.second[a, number]


@compiled_part
def _energy_of_small_hairpin(
    graph: BaseGraph, energies: Energies, special: IntArray, path: IntArray, size: int, kind_of_pair: int
) -> int:
    """Of a loop of ``size`` bases whose nodes, those of the pair too, are the first of ``path``."""
    name = 0
    for place in range(size + 2):
        name = 4 * name + graph.base[path[place]] - 1
    energy = special[name]
    if energy != _ORDINARY:
        return energy
    energy = energies.hairpin[size]
    if size == 3:
        return energy + energies.terminal[kind_of_pair]
    return energy + energies.mismatch_hairpin[kind_of_pair, graph.base[path[1]], graph.base[path[size]]]


@compiled
def small_hairpins(graph: BaseGraph, energies: Energies, small: IntArray) -> None:
    """Fill ``small`` by walking along all paths of the hairpins' length."""
    length = len(graph.starts) - 1
    path = np.zeros(8, dtype=np.int64)
    weight = np.zeros(8, dtype=np.int64)
    following = np.zeros(8, dtype=np.int64)
    small[:] = _FAR
    for kind in range(3):
        size = 3 + kind if kind < 2 else 6
        special = energies.triloops if kind == 0 else (energies.tetraloops if kind == 1 else energies.hexaloops)
        last = size + 1
        for i in range(length - last):
            for u in range(graph.starts[i], graph.starts[i + 1]):
                path[0] = u
                weight[0] = 0
                following[0] = 0
                depth = 0
                while depth >= 0:
                    number = following[depth]
                    first = graph.starts[i + depth + 1]
                    if first + number == graph.starts[i + depth + 2]:
                        depth -= 1
                        continue
                    following[depth] += 1
                    edge = graph.edge[path[depth], number]
                    if edge >= POSSIBLE:
                        continue
                    path[depth + 1] = first + number
                    weight[depth + 1] = weight[depth] + edge
                    if depth + 1 < last:
                        depth += 1
                        following[depth] = 0
                        continue
                    v = first + number
                    kind_of_pair = energies.pair[graph.base[u], graph.base[v]]
                    if kind_of_pair == 0:
                        continue
                    total = _energy_of_small_hairpin(graph, energies, special, path, size, kind_of_pair) + weight[last]
                    if total < small[kind, i, u - graph.starts[i], number]:
                        small[kind, i, u - graph.starts[i], number] = total


@compiled_part
def _worst(best: IntArray, types: IntArray, rows: int, columns: int) -> int:
    """The largest of the entries that can still fall: a loop that is no better than this one need not be looked at."""
    largest = -INFINITE
    for x in range(rows):
        for y in range(columns):
            if types[x, y] and best[x, y] > largest:
                largest = best[x, y]
    return largest


@compiled_part
def _hairpins(
    graph: BaseGraph, energies: Energies, tables: Tables, i: int, j: int, types: IntArray, best: IntArray
) -> None:
    size = j - i - 1
    u0, u1, v0, v1 = graph.starts[i], graph.starts[i + 1], graph.starts[j], graph.starts[j + 1]
    if size == 3 or size == 4 or size == 6:
        kind = size - 3 if size < 5 else 2
        for x in range(u1 - u0):
            for y in range(v1 - v0):
                best[x, y] = min(best[x, y], tables.small[kind, i, x, y])
        return
    for c in range(graph.starts[i + 1], graph.starts[i + 2]):
        for d in range(graph.starts[j - 1], graph.starts[j]):
            between = path_weight(graph, c, d)
            if between >= POSSIBLE:
                continue
            between += energies.hairpin[size]
            for x in range(u1 - u0):
                left = graph.edge[u0 + x, c - u1]
                if left >= POSSIBLE:
                    continue
                for y in range(v1 - v0):
                    right = graph.edge[d, y]
                    if types[x, y] and right < POSSIBLE:
                        mismatch = energies.mismatch_hairpin[types[x, y], graph.base[c], graph.base[d]]
                        best[x, y] = min(best[x, y], between + left + right + mismatch)


@compiled_part
def _stacks_and_bulges(
    graph: BaseGraph, energies: Energies, tables: Tables, i: int, j: int, types: IntArray, best: IntArray
) -> None:
    u0, u1, v0, v1 = graph.starts[i], graph.starts[i + 1], graph.starts[j], graph.starts[j + 1]
    lowest = 0
    for size in range(_LARGEST + 1):
        for side in range(1 if size == 0 else 2):
            p = i + 1 + (size if side == 0 else 0)
            q = j - 1 - (size if side == 1 else 0)
            if q - p <= LEAST_HAIRPIN:
                continue
            inside = tables.least[q % RING, p]
            if inside >= POSSIBLE:
                continue
            if size > 1 and inside + energies.bulge[size] + lowest >= _worst(best, types, u1 - u0, v1 - v0):
                continue
            for a in range(graph.starts[p], graph.starts[p + 1]):
                for b in range(graph.starts[q], graph.starts[q + 1]):
                    within = tables.paired[tables.offset[a] + b]
                    if within >= POSSIBLE:
                        continue
                    turned = energies.pair[graph.base[b], graph.base[a]]
                    for x in range(u1 - u0):
                        left = path_weight(graph, u0 + x, a)
                        if left >= POSSIBLE:
                            continue
                        for y in range(v1 - v0):
                            if not types[x, y]:
                                continue
                            right = path_weight(graph, b, v0 + y)
                            if right >= POSSIBLE:
                                continue
                            total = within + left + right
                            if size == 0:
                                total += energies.stack[types[x, y], turned]
                            elif size == 1:
                                total += energies.bulge[1] + energies.stack[types[x, y], turned]
                            else:
                                total += (
                                    energies.bulge[size] + energies.terminal[types[x, y]] + energies.terminal[turned]
                                )
                            best[x, y] = min(best[x, y], total)


@compiled_part
def _small_interior(
    graph: BaseGraph,
    energies: Energies,
    tables: Tables,
    i: int,
    j: int,
    left_size: int,
    right_size: int,
    lowest: int,
    types: IntArray,
    best: IntArray,
) -> None:
    """Loops of 1 x 1, 1 x 2, 2 x 1 and 2 x 2 bases; ``lowest`` bounds their energies from below."""
    p, q = i + 1 + left_size, j - 1 - right_size
    u0, u1, v0, v1 = graph.starts[i], graph.starts[i + 1], graph.starts[j], graph.starts[j + 1]
    if q - p <= LEAST_HAIRPIN:
        return
    inside = tables.least[q % RING, p]
    if inside >= POSSIBLE or inside + lowest >= _worst(best, types, u1 - u0, v1 - v0):
        return
    base, edge = graph.base, graph.edge
    for a in range(graph.starts[p], graph.starts[p + 1]):
        for b in range(graph.starts[q], graph.starts[q + 1]):
            within = tables.paired[tables.offset[a] + b]
            if within >= POSSIBLE:
                continue
            turned = energies.pair[base[b], base[a]]
            # The neighbours of the inner pair, then those of the outer one; with one base on a side they are the same.
            for c in range(graph.starts[p - 1], graph.starts[p]):
                left = within + edge[c, a - graph.starts[p]]
                if left >= POSSIBLE:
                    continue
                for d in range(graph.starts[q + 1], graph.starts[q + 2]):
                    inner = left + edge[b, d - graph.starts[q + 1]]
                    if inner >= POSSIBLE:
                        continue
                    for e in range(u1 if left_size == 2 else c, graph.starts[i + 2] if left_size == 2 else c + 1):
                        third = inner + (edge[e, c - graph.starts[p - 1]] if left_size == 2 else 0)
                        if third >= POSSIBLE:
                            continue
                        for f in range(graph.starts[j - 1] if right_size == 2 else d, v0 if right_size == 2 else d + 1):
                            fourth = third + (edge[d, f - graph.starts[j - 1]] if right_size == 2 else 0)
                            if fourth >= POSSIBLE:
                                continue
                            for x in range(u1 - u0):
                                before = fourth + edge[u0 + x, e - u1]
                                if before >= POSSIBLE:
                                    continue
                                for y in range(v1 - v0):
                                    outer = types[x, y]
                                    total = before + edge[f, y]
                                    if not outer or total >= POSSIBLE:
                                        continue
                                    if left_size == 1 and right_size == 1:
                                        total += energies.one_one[outer, turned, base[c], base[d]]
                                    elif left_size == 1:
                                        total += energies.one_two[outer, turned, base[c], base[f], base[d]]
                                    elif right_size == 1:
                                        total += energies.two_one[outer, turned, base[e], base[c], base[d]]
                                    else:
                                        total += energies.two_two[outer, turned, base[e], base[c], base[f], base[d]]
                                    best[x, y] = min(best[x, y], total)


@compiled_part
def _kind(left: int, right: int) -> int:
    """Which mismatches a loop of ``left`` x ``right`` bases has; -1 for those that are enumerated."""
    if left <= 2 and right <= 2:
        return -1
    if left == 1 or right == 1:
        return 1
    return 2 if left + right == 5 else 0


@compiled_part
def _interior(
    graph: BaseGraph, energies: Energies, tables: Tables, i: int, j: int, types: IntArray, best: IntArray
) -> None:
    """All other interior loops."""
    u0, u1, v0, v1 = graph.starts[i], graph.starts[i + 1], graph.starts[j], graph.starts[j + 1]
    c0, c1, d0, d1 = u1, graph.starts[i + 2], graph.starts[j - 1], v0
    # Least inner term and loop for the neighbours c, d of the outer pair, by kind.
    found = np.full((3, _MOST, _MOST), _FAR, dtype=np.int32)
    bound = np.full(3, INFINITE, dtype=np.int64)
    for y in range(1, _LARGEST):
        q = j - y
        if q - i <= 5:
            break
        slot = q % RING
        for x in range(1, _LARGEST - y + 1):
            p = i + x
            if q - p <= LEAST_HAIRPIN + 2:
                break
            kind = _kind(x, y)
            if kind < 0:
                continue
            loop = energies.interior[x, y]
            if tables.least_inner[slot, p, kind] + loop >= bound[kind]:
                continue
            for a in range(graph.starts[p], graph.starts[p + 1]):
                for b in range(graph.starts[q], graph.starts[q + 1]):
                    within = tables.inner[slot, p, kind, a - graph.starts[p], b - graph.starts[q]]
                    if within >= POSSIBLE:
                        continue
                    within += loop
                    for c in range(c0, c1):
                        left = path_weight(graph, c, a)
                        for d in range(d0, d1):
                            total = within + left + path_weight(graph, b, d)
                            if total < found[kind, c - c0, d - d0]:
                                found[kind, c - c0, d - d0] = total
            largest = -INFINITE
            for c in range(c1 - c0):
                for d in range(d1 - d0):
                    largest = max(largest, found[kind, c, d])
            bound[kind] = largest
    for kind in range(3):
        for c in range(c0, c1):
            for d in range(d0, d1):
                within = found[kind, c - c0, d - d0]
                if within >= POSSIBLE:
                    continue
                for x in range(u1 - u0):
                    left = within + graph.edge[u0 + x, c - c0]
                    if left >= POSSIBLE:
                        continue
                    for y in range(v1 - v0):
                        outer = types[x, y]
                        total = left + graph.edge[d, y]
                        if outer and total < POSSIBLE:
                            total += energies.mismatch[kind, outer, graph.base[c], graph.base[d]]
                            best[x, y] = min(best[x, y], total)


@compiled_part
def _multiloops(
    graph: BaseGraph, energies: Energies, tables: Tables, i: int, j: int, types: IntArray, best: IntArray
) -> None:
    u0, u1, v0, v1 = graph.starts[i], graph.starts[i + 1], graph.starts[j], graph.starts[j + 1]
    two = tables.two[(j - 1) % 2]
    for c in range(u1, graph.starts[i + 2]):
        for d in range(graph.starts[j - 1], v0):
            within = two[d - graph.starts[j - 1], c]
            if within >= POSSIBLE:
                continue
            within += energies.multi_closing
            for x in range(u1 - u0):
                left = within + graph.edge[u0 + x, c - u1]
                if left >= POSSIBLE:
                    continue
                for y in range(v1 - v0):
                    total = left + graph.edge[d, y]
                    if types[x, y] and total < POSSIBLE:
                        turned = energies.pair[graph.base[v0 + y], graph.base[u0 + x]]
                        best[x, y] = min(best[x, y], total + energies.multi_stem[turned])


@compiled_part
def _keep_inner(graph: BaseGraph, energies: Energies, tables: Tables, i: int, j: int) -> None:
    """Minimise the inner term over the pairs at i and j for their neighbours outside."""
    p, q = i - 1, j + 1
    slot = q % RING
    block = tables.inner[slot, p]
    block[:] = _FAR
    for kind in range(3):
        tables.least_inner[slot, p, kind] = _FAR
    if tables.least[j % RING, i] >= POSSIBLE:
        return
    for u in range(graph.starts[i], graph.starts[i + 1]):
        for v in range(graph.starts[j], graph.starts[j + 1]):
            within = tables.paired[tables.offset[u] + v]
            if within >= POSSIBLE:
                continue
            turned = energies.pair[graph.base[v], graph.base[u]]
            for a in range(graph.starts[p], graph.starts[p + 1]):
                left = within + graph.edge[a, u - graph.starts[i]]
                if left >= POSSIBLE:
                    continue
                for b in range(graph.starts[q], graph.starts[q + 1]):
                    total = left + graph.edge[v, b - graph.starts[q]]
                    if total >= POSSIBLE:
                        continue
                    for kind in range(3):
                        energy = total + energies.mismatch[kind, turned, graph.base[b], graph.base[a]]
                        x, y = a - graph.starts[p], b - graph.starts[q]
                        if energy < block[kind, x, y]:
                            block[kind, x, y] = energy
                            tables.least_inner[slot, p, kind] = min(tables.least_inner[slot, p, kind], energy)


@compiled
def fill_pairs(
    graph: BaseGraph, energies: Energies, tables: Tables, j: int, first: int, step: int, span: int, floor: IntArray
) -> None:
    """P of column ``j``, of every ``step``-th position from ``first`` on.

    Args:
        graph: The genes.
        energies: Of loops.
        tables: Whose columns before ``j`` are complete.
        j: The column.
        first: First position.
        step: Number of threads that share the column.
        span: Largest number of bases from one of a pair to the other, both included.
        floor: Least energies of interior loops, by unpaired bases on the left and on the right.
    """
    v0, v1 = graph.starts[j], graph.starts[j + 1]
    types = np.zeros((_MOST, _MOST), dtype=np.int32)
    best = np.zeros((_MOST, _MOST), dtype=np.int32)
    for i in range(first, j + 1, step):
        u0, u1 = graph.starts[i], graph.starts[i + 1]
        best[:] = _FAR
        allowed = False
        if LEAST_HAIRPIN < j - i < span:
            for u in range(u0, u1):
                for v in range(v0, v1):
                    types[u - u0, v - v0] = energies.pair[graph.base[u], graph.base[v]]
                    allowed = allowed or types[u - u0, v - v0] > 0
        if not allowed:
            continue
        _hairpins(graph, energies, tables, i, j, types, best)
        _stacks_and_bulges(graph, energies, tables, i, j, types, best)
        for sizes in range(4):
            left, right = 1 + sizes // 2, 1 + sizes % 2
            _small_interior(graph, energies, tables, i, j, left, right, floor[left, right], types, best)
        _interior(graph, energies, tables, i, j, types, best)
        _multiloops(graph, energies, tables, i, j, types, best)
        for u in range(u0, u1):
            for v in range(v0, v1):
                if types[u - u0, v - v0] and best[u - u0, v - v0] < POSSIBLE:
                    tables.paired[tables.offset[u] + v] = best[u - u0, v - v0]


@compiled_part
def _in_order(values: IntArray, number: int) -> int:
    """The entry that would have this number, from 0, if ``values`` were sorted; they are left in another order.

    Hoare's selection: what Numba has for ``np.partition`` takes a quarter of the time of compiling all of folding.
    """
    first, last = 0, len(values) - 1
    while first < last:
        pivot = values[(first + last) // 2]
        left, right = first, last
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        # Between the two all are the pivot.
        if number <= right:
            last = right
        elif number >= left:
            first = left
        else:
            break
    return values[number]


@compiled
def keep_best_pairs(graph: BaseGraph, tables: Tables, j: int, beam: int) -> None:
    """Forget all of column ``j``'s P but the ``beam`` best of each node, together with what is before."""
    keys = np.empty(graph.starts[j], dtype=np.int64)
    scratch = np.empty(graph.starts[j], dtype=np.int64)
    for v in range(graph.starts[j], graph.starts[j + 1]):
        for u in range(graph.starts[j]):
            keys[u] = tables.paired[tables.offset[u] + v]
            if keys[u] < POSSIBLE and graph.position[u] > 0:
                before = INFINITE
                for w in range(graph.starts[graph.position[u] - 1], graph.starts[graph.position[u]]):
                    before = min(before, tables.outside[w] + graph.edge[w, u - graph.starts[graph.position[u]]])
                keys[u] += before
        if len(keys) <= beam:
            continue
        scratch[:] = keys
        last = _in_order(scratch, beam - 1)
        for u in range(graph.starts[j]):
            if keys[u] > last:
                tables.paired[tables.offset[u] + v] = _FAR


@compiled
def keep_pairs(graph: BaseGraph, energies: Energies, tables: Tables, j: int, first: int, step: int) -> None:
    """What later columns read of P, and M1, of column ``j`` and every ``step``-th position from ``first`` on."""
    length = len(graph.starts) - 1
    v0, v1 = graph.starts[j], graph.starts[j + 1]
    for i in range(first, j + 1, step):
        u0, u1 = graph.starts[i], graph.starts[i + 1]
        least = _FAR
        for u in range(u0, u1):
            row = tables.offset[u]
            for v in range(v0, v1):
                value = INFINITE
                if tables.paired[row + v] < POSSIBLE:
                    least = min(least, tables.paired[row + v])
                    value = tables.paired[row + v] + energies.multi_stem[energies.pair[graph.base[u], graph.base[v]]]
                if j > i:
                    for w in range(graph.starts[j - 1], v0):
                        value = min(value, tables.one[row + w] + graph.edge[w, v - v0] + energies.multi_unpaired)
                tables.one[row + v] = value if value < POSSIBLE else _FAR
        tables.least[j % RING, i] = least
        if i > 0 and j + 1 < length:
            _keep_inner(graph, energies, tables, i, j)


@compiled
def prepare_two(graph: BaseGraph, tables: Tables, j: int, beam: int) -> None:
    """``after`` of column ``j``, whose M1 is complete, and which of it count."""
    end = graph.starts[j]
    keys = np.empty(end, dtype=np.int64)
    scratch = np.empty(end, dtype=np.int64)
    for v in range(end, graph.starts[j + 1]):
        row = tables.after[v - end]
        for x in range(end):
            y0 = graph.starts[graph.position[x] + 1]
            y1 = graph.starts[graph.position[x] + 2]
            value = INFINITE
            for y in range(y0, y1):
                value = min(value, graph.edge[x, y - y0] + tables.one[tables.offset[y] + v])
            row[x] = value if value < POSSIBLE else _FAR
        if 0 < beam < end:
            for x in range(end):
                keys[x] = np.int64(row[x]) + tables.outside[x]
            scratch[:] = keys
            last = _in_order(scratch, beam - 1)
            count = 0
            for x in range(end):
                if keys[x] <= last and row[x] < POSSIBLE and count < beam:
                    tables.kept[v - end, count] = x
                    count += 1
            tables.kept[v - end, -1] = count


@compiled
def fill_two(graph: BaseGraph, tables: Tables, j: int, first: int, step: int, beam: int) -> None:
    """B of column ``j``, of every ``step``-th position from ``first`` on."""
    v0, v1 = graph.starts[j], graph.starts[j + 1]
    two = tables.two[j % 2]
    for i in range(first, j + 1, step):
        # The first helix needs five bases.
        begin, end = graph.starts[min(i + LEAST_HAIRPIN + 1, j)], v0
        for u in range(graph.starts[i], graph.starts[i + 1]):
            left = tables.several[tables.offset[u] + begin : tables.offset[u] + end]
            for y in range(v1 - v0):
                least = _FAR
                if 0 < beam < end:
                    for number in range(tables.kept[y, -1]):
                        x = tables.kept[y, number]
                        if x >= begin:
                            least = min(least, np.int32(left[x - begin] + tables.after[y, x]))
                else:
                    right = tables.after[y, begin:end]
                    for k in range(end - begin):
                        least = min(least, np.int32(left[k] + right[k]))
                two[y, u] = least if least < POSSIBLE else _FAR


@compiled
def finish_column(graph: BaseGraph, energies: Energies, tables: Tables, j: int) -> None:
    """M and F of column ``j``, from its P, M1 and B."""
    v0, v1 = graph.starts[j], graph.starts[j + 1]
    two = tables.two[j % 2]
    for v in range(v0, v1):
        outside = INFINITE
        if j == 0:
            outside = 0
        else:
            for w in range(graph.starts[j - 1], v0):
                outside = min(outside, tables.outside[w] + graph.edge[w, v - v0])
        for i in range(j, -1, -1):
            for u in range(graph.starts[i], graph.starts[i + 1]):
                at = tables.offset[u] + v
                value = min(tables.one[at], two[v - v0, u])
                if i < j:
                    for x in range(graph.starts[i + 1], graph.starts[i + 2]):
                        beyond = tables.several[tables.offset[x] + v]
                        value = min(value, beyond + graph.edge[u, x - graph.starts[i + 1]] + energies.multi_unpaired)
                tables.several[at] = value if value < POSSIBLE else _FAR
                paired = tables.paired[at]
                if paired < POSSIBLE:
                    paired += energies.terminal[energies.pair[graph.base[u], graph.base[v]]]
                    if i == 0:
                        outside = min(outside, paired)
                    else:
                        for w in range(graph.starts[i - 1], graph.starts[i]):
                            before = tables.outside[w] + graph.edge[w, u - graph.starts[i]]
                            if before < POSSIBLE:
                                outside = min(outside, before + paired)
        tables.outside[v] = outside


SMALL_HAIRPIN, HAIRPIN, LOOP, STEM, SHORTER, SPLIT, ONE, START, STEP = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""What was chosen."""

PLACES = 10
"""Numbers that say what was chosen: what it is, and up to nine nodes."""


class Choice(NamedTuple):
    """One of several ways to reach an entry of a table, drawn while they are gone through.

    Attributes:
        picked: What it is, and the nodes that belong to it.
        sums: Weights of all so far, and how far the chosen one is above the least.
        slack: How far a way may be above the least; what is left of it.
        warmth: Ways of d above the least are drawn with weights exp(-d / warmth); the first of the best, without
            drawing, where it is 0.
    """

    picked: npt.NDArray[np.int64]
    sums: npt.NDArray[np.float64]
    slack: npt.NDArray[np.int64]
    warmth: float


@compiled_part
def _offered(choice: Choice, excess: int, rng: np.random.Generator) -> bool:
    """Whether a way that is ``excess`` above the least takes the place of what was chosen so far."""
    if excess > choice.slack[0]:
        return False
    if choice.warmth == 0:
        if choice.sums[0] > 0 and excess >= choice.sums[1]:
            return False
        choice.sums[0] = 1.0
    else:
        weight = np.exp(-excess / choice.warmth)
        choice.sums[0] += weight
        if rng.random() * choice.sums[0] >= weight:
            return False
    choice.sums[1] = excess
    return True


@compiled_part
def _pick(choice: Choice, what: int, a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    picked = choice.picked
    picked[0], picked[1], picked[2], picked[3], picked[4], picked[5], picked[6] = what, a, b, c, d, e, f


@compiled_part
def _loop_energy(energies: Energies, x: int, y: int, outer: int, turned: int, c: int, d: int, e: int, f: int) -> int:
    """Energy of a loop of ``x`` x ``y`` bases; bases c, d beside the outer pair, e, f beside the inner one."""
    size = x + y
    if size == 0:
        return energies.stack[outer, turned]
    if x == 0 or y == 0:
        if size == 1:
            return energies.bulge[1] + energies.stack[outer, turned]
        return energies.bulge[size] + energies.terminal[outer] + energies.terminal[turned]
    if x == 1 and y == 1:
        return energies.one_one[outer, turned, c, d]
    if x == 1 and y == 2:
        return energies.one_two[outer, turned, c, d, f]
    if x == 2 and y == 1:
        return energies.two_one[outer, turned, c, e, d]
    if x == 2 and y == 2:
        return energies.two_two[outer, turned, c, e, d, f]
    kind = _kind(x, y)
    return energies.interior[x, y] + energies.mismatch[kind, outer, c, d] + energies.mismatch[kind, turned, f, e]


@compiled_part
def _ways_of_small_hairpin(
    graph: BaseGraph, energies: Energies, u: int, v: int, least: int, choice: Choice, rng: np.random.Generator
) -> None:
    i, last = graph.position[u], graph.position[v] - graph.position[u]
    size = last - 1
    special = energies.triloops if size == 3 else (energies.tetraloops if size == 4 else energies.hexaloops)
    outer = energies.pair[graph.base[u], graph.base[v]]
    path = np.zeros(9, dtype=np.int64)
    weight = np.zeros(9, dtype=np.int64)
    following = np.zeros(9, dtype=np.int64)
    path[0] = u
    depth = 0
    while depth >= 0:
        number = following[depth]
        first = graph.starts[i + depth + 1]
        if first + number == graph.starts[i + depth + 2]:
            depth -= 1
            continue
        following[depth] += 1
        edge = graph.edge[path[depth], number]
        if edge >= POSSIBLE or (depth + 1 == last and first + number != v):
            continue
        path[depth + 1] = first + number
        weight[depth + 1] = weight[depth] + edge
        if depth + 1 < last:
            depth += 1
            following[depth] = 0
            continue
        energy = _energy_of_small_hairpin(graph, energies, special, path, size, outer)
        if _offered(choice, energy + weight[last] - least, rng):
            choice.picked[0] = SMALL_HAIRPIN
            for place in range(size):
                choice.picked[1 + place] = path[1 + place]


@compiled
def ways_of_pair(
    graph: BaseGraph,
    energies: Energies,
    tables: Tables,
    u: int,
    v: int,
    floor: IntArray,
    choice: Choice,
    rng: np.random.Generator,
) -> None:
    base, edge, starts = graph.base, graph.edge, graph.starts
    i, j = graph.position[u], graph.position[v]
    least = tables.paired[tables.offset[u] + v]
    outer = energies.pair[base[u], base[v]]
    size = j - i - 1
    if size == 3 or size == 4 or size == 6:
        _ways_of_small_hairpin(graph, energies, u, v, least, choice, rng)
    else:
        for c in range(starts[i + 1], starts[i + 2]):
            for d in range(starts[j - 1], starts[j]):
                weight = edge[u, c - starts[i + 1]] + edge[d, v - starts[j]] + path_weight(graph, c, d)
                energy = energies.hairpin[size] + energies.mismatch_hairpin[outer, base[c], base[d]]
                if weight < POSSIBLE and _offered(choice, weight + energy - least, rng):
                    _pick(choice, HAIRPIN, c, d, 0, 0, 0, 0)
    for x in range(_LARGEST + 1):
        p = i + 1 + x
        for y in range(_LARGEST + 1 - x):
            q = j - 1 - y
            if q - p <= LEAST_HAIRPIN:
                break
            for a in range(starts[p], starts[p + 1]):
                for b in range(starts[q], starts[q + 1]):
                    within = tables.paired[tables.offset[a] + b]
                    if within + floor[x, y] - least > choice.slack[0]:
                        continue
                    turned = energies.pair[base[b], base[a]]
                    # Without unpaired bases on a side the neighbours of one pair are the other pair.
                    c0, c1 = (starts[i + 1], starts[i + 2]) if x else (a, a + 1)
                    d0, d1 = (starts[j - 1], starts[j]) if y else (b, b + 1)
                    for c in range(c0, c1):
                        e0, e1 = (starts[p - 1], starts[p]) if x > 1 else (c, c + 1)
                        for e in range(e0, e1):
                            left = edge[u, c - starts[i + 1]]
                            if x:
                                left += path_weight(graph, c, e) + edge[e, a - starts[p]]
                            if left >= POSSIBLE:
                                continue
                            for d in range(d0, d1):
                                f0, f1 = (starts[q + 1], starts[q + 2]) if y > 1 else (d, d + 1)
                                for f in range(f0, f1):
                                    right = edge[d, v - starts[j]]
                                    if y:
                                        right += path_weight(graph, f, d) + edge[b, f - starts[q + 1]]
                                    if right >= POSSIBLE:
                                        continue
                                    energy = _loop_energy(
                                        energies, x, y, outer, turned, base[c], base[d], base[e], base[f]
                                    )
                                    if _offered(choice, within + left + right + energy - least, rng):
                                        _pick(choice, LOOP, a, b, c, d, e, f)
    turned = energies.pair[base[v], base[u]]
    closing = energies.multi_closing + energies.multi_stem[turned] - least
    for c in range(starts[i + 1], starts[i + 2]):
        for d in range(starts[j - 1], starts[j]):
            around = edge[u, c - starts[i + 1]] + edge[d, v - starts[j]]
            if around < POSSIBLE:
                _ways_of_split(graph, tables, c, d, around + closing, choice, rng)


@compiled_part
def _ways_of_split(
    graph: BaseGraph, tables: Tables, u: int, v: int, besides: int, choice: Choice, rng: np.random.Generator
) -> None:
    """Several helices from u on, and a last one that ends by v."""
    starts, edge = graph.starts, graph.edge
    for at in range(graph.position[u], graph.position[v]):
        for x in range(starts[at], starts[at + 1]):
            left = tables.several[tables.offset[u] + x]
            if left >= POSSIBLE:
                continue
            for y in range(starts[at + 1], starts[at + 2]):
                right = tables.one[tables.offset[y] + v] + edge[x, y - starts[at + 1]]
                if right < POSSIBLE and _offered(choice, left + right + besides, rng):
                    _pick(choice, SPLIT, u, v, x, y, 0, 0)


@compiled
def ways_outside(
    graph: BaseGraph, energies: Energies, tables: Tables, v: int, choice: Choice, rng: np.random.Generator
) -> None:
    starts, edge = graph.starts, graph.edge
    j = graph.position[v]
    least = tables.outside[v]
    if j == 0:
        if _offered(choice, -least, rng):
            _pick(choice, START, 0, 0, 0, 0, 0, 0)
        return
    for w in range(starts[j - 1], starts[j]):
        step = edge[w, v - starts[j]]
        if step < POSSIBLE and _offered(choice, tables.outside[w] + step - least, rng):
            _pick(choice, SHORTER, w, 0, 0, 0, 0, 0)
    for i in range(j - LEAST_HAIRPIN):
        for u in range(starts[i], starts[i + 1]):
            paired = tables.paired[tables.offset[u] + v]
            if paired >= POSSIBLE:
                continue
            paired += energies.terminal[energies.pair[graph.base[u], graph.base[v]]] - least
            if i == 0:
                if _offered(choice, paired, rng):
                    _pick(choice, STEM, u, -1, 0, 0, 0, 0)
                continue
            for w in range(starts[i - 1], starts[i]):
                step = edge[w, u - starts[i]]
                if step < POSSIBLE and _offered(choice, tables.outside[w] + step + paired, rng):
                    _pick(choice, STEM, u, w, 0, 0, 0, 0)


@compiled
def ways_in_multiloop(
    graph: BaseGraph,
    energies: Energies,
    tables: Tables,
    one: bool,
    u: int,
    v: int,
    choice: Choice,
    rng: np.random.Generator,
) -> None:
    starts, edge = graph.starts, graph.edge
    i, j = graph.position[u], graph.position[v]
    at = tables.offset[u] + v
    if one:
        least = tables.one[at]
        paired = tables.paired[at]
        if paired < POSSIBLE:
            stem = energies.multi_stem[energies.pair[graph.base[u], graph.base[v]]]
            if _offered(choice, paired + stem - least, rng):
                _pick(choice, STEM, u, v, 0, 0, 0, 0)
        for w in range(starts[j - 1], starts[j]):
            shorter = tables.one[tables.offset[u] + w] + edge[w, v - starts[j]] + energies.multi_unpaired
            if shorter < POSSIBLE and _offered(choice, shorter - least, rng):
                _pick(choice, SHORTER, u, w, 0, 0, 0, 0)
        return
    least = tables.several[at]
    if tables.one[at] < POSSIBLE and _offered(choice, tables.one[at] - least, rng):
        _pick(choice, ONE, u, v, 0, 0, 0, 0)
    for x in range(starts[i + 1], starts[i + 2]):
        shorter = tables.several[tables.offset[x] + v] + edge[u, x - starts[i + 1]] + energies.multi_unpaired
        if shorter < POSSIBLE and _offered(choice, shorter - least, rng):
            _pick(choice, SHORTER, x, v, 0, 0, 0, 0)
    _ways_of_split(graph, tables, u, v, -least, choice, rng)


@compiled
def ways_along(graph: BaseGraph, u: int, v: int, choice: Choice, rng: np.random.Generator) -> None:
    """The next node on the way from u to v, which are more than one position apart."""
    following = graph.position[u] + 1
    rest = path_weight(graph, u, v)
    for x in range(graph.starts[following], graph.starts[following + 1]):
        weight = graph.edge[u, x - graph.starts[following]] + path_weight(graph, x, v)
        if weight < POSSIBLE and _offered(choice, weight - rest, rng):
            _pick(choice, STEP, x, v, 0, 0, 0, 0)


@compiled
def ways_to_end(graph: BaseGraph, tables: Tables, choice: Choice, rng: np.random.Generator) -> None:
    """The last node of the gene."""
    ends = graph.starts[len(graph.starts) - 2]
    least = INFINITE
    for v in range(ends, graph.starts[-1]):
        least = min(least, tables.outside[v])
    for v in range(ends, graph.starts[-1]):
        if tables.outside[v] < POSSIBLE and _offered(choice, tables.outside[v] - least, rng):
            _pick(choice, START, v, 0, 0, 0, 0, 0)
