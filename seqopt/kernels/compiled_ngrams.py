"""Inner products of counts of contiguous n-grams: one list of strings as a trie, which those of another walk down.

The n-grams that occur in the r strings of a list are the nodes of a trie. A string of the other list starts at each of
its positions at the root and goes down while its symbols lead on, so that an n-gram that the list does not have, and
every longer one that begins like it, is never looked at. At each node,

- where many of the r strings have the n-gram, it is counted; when the string has ended, each count is multiplied by a
  row of r counts, as in the product of two dense matrices;
- where few have it, as is so of nearly all long n-grams, their counts are added one by one.

Memory is that of the trie, some 30 bytes for each n-gram and string that has it, and of the dense rows, at most four
times as much. What is computed is a sum of integers: exact in float32 up to 2^24, in float64 up to 2^53.

Everything compiled is in this one file, because Numba's cache on disk notices changes of this file only.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from seqopt.encoding import EncodedStrings
from seqopt.utils.compiling import compiled

FloatArray = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]

DENSE_SHARE = 0.25
"""Share of the strings that have an n-gram from which its counts are kept as a dense row."""

TABULATED = 4
"""Children of a node from which they are looked up in a table, and not one by one."""

TABLE_ELEMENTS = 1 << 21
"""Largest table of children (8 MiB); nodes beyond it, as of alphabets of thousands of symbols, are searched."""

THREADED = 1 << 21
"""Symbols times strings from which a product is worth a second thread: some milliseconds."""


class Trie(NamedTuple):
    """The n-grams of r strings as compiled code reads them; node 0 is none, and the first ones are single symbols.

    Attributes:
        indices: Of each token the place of its symbol among those that occur, from 1; 0 for others.
        children: Of each node the first child; those of the next node follow.
        symbols: Of each node its last symbol, as a place.
        tabled: Of each node its row in the table of children, or -1.
        table: Of each such node, and each symbol, the child; 0 where there is none.
        heads: Of each node where the strings that have it begin in ``rows``.
        rows: Strings.
        counts: How often each has the n-gram.
        dense: Of each node its dense row, or -1.
        matrix: The dense rows, D x r.
    """

    indices: npt.NDArray[np.uint16]
    children: npt.NDArray[np.int32]
    symbols: npt.NDArray[np.uint16]
    tabled: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    counts: FloatArray
    dense: npt.NDArray[np.int32]
    matrix: FloatArray


def build(indices: Integers, keys: Integers, base: int, occurrences: sparse.csr_array, dtype: npt.DTypeLike) -> Trie:
    """A trie of numbered n-grams.

    Args:
        indices: Of each token its symbol among those that occur, from 1; 0 for others.
        keys: Of each n-gram of two symbols or more, in the order of their numbers, which begin at ``base``: the number
            of the n-gram without its last symbol, times base, plus that symbol. They ascend.
        base: One more than there are symbols.
        occurrences: r x numbers; entries of one place add up.
        dtype: Of counts and products, float32 or float64.
    """
    size = base + len(keys)
    counts = occurrences.copy()
    counts.sum_duplicates()
    counts = counts.tocsc()
    having = np.diff(counts.indptr)
    dense = np.full(size, -1, dtype=np.int32)
    # Number 0 stands for all that is none of them.
    many = np.flatnonzero(having >= max(2.0, DENSE_SHARE * occurrences.shape[0]))
    many = many[many > 0]
    dense[many] = np.arange(len(many))
    parents, symbols = np.divmod(keys, base)
    children = (base + np.searchsorted(parents, np.arange(size + 1))).astype(np.int32)
    tabled = np.full(size, -1, dtype=np.int32)
    # The shortest come first, and are met most often.
    fertile = np.flatnonzero(np.diff(children) > TABULATED)[: TABLE_ELEMENTS // base]
    tabled[fertile] = np.arange(len(fertile))
    table = np.zeros((len(fertile), base), dtype=np.int32)
    rows = tabled[parents]
    table[rows[rows >= 0], symbols[rows >= 0]] = np.flatnonzero(rows >= 0) + base
    return Trie(
        indices.astype(np.uint16),
        children,
        np.concatenate([np.arange(base), symbols]).astype(np.uint16),
        tabled,
        table,
        counts.indptr.astype(np.int32),
        counts.indices.astype(np.int32),
        counts.data.astype(dtype),
        dense,
        np.ascontiguousarray(counts[:, many].toarray().T, dtype=dtype),
    )


def products(trie: Trie, strings: EncodedStrings, longest: int) -> FloatArray:
    """Inner products of the counts of the strings with those of the trie, n x r.

    Args:
        trie: Of r strings.
        strings: n strings.
        longest: Symbols of the longest n-grams.
    """
    tokens = np.ascontiguousarray(strings.tokens, dtype=np.uint16)
    lengths = strings.lengths.astype(np.int64)
    found = np.zeros((len(tokens), trie.matrix.shape[1]), dtype=trie.counts.dtype)
    threads = torch.get_num_threads()
    if threads == 1 or float(lengths.sum()) * found.shape[1] < THREADED:
        _walk(tokens, lengths, longest, trie, found)
        return found
    # Slices of rows are views: each thread fills its own.
    cuts = np.linspace(0, len(tokens), 4 * threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        parts = [slice(*ends) for ends in pairwise(cuts)]
        for done in [pool.submit(_walk, tokens[one], lengths[one], longest, trie, found[one]) for one in parts]:
            done.result()
    return found


@compiled
def _walk(tokens: Any, lengths: Any, longest: Any, trie: Any, found: Any) -> None:
    """Fill ``found``, n x r, which is 0."""
    seen = np.zeros(len(trie.matrix), dtype=found.dtype)
    for string in range(len(tokens)):
        row = found[string]
        seen[:] = 0
        length = lengths[string]
        for start in range(length):
            node = np.int64(trie.indices[tokens[string, start]])
            end = start + 1
            last = min(length, start + longest)
            while node > 0:
                place = trie.dense[node]
                if place >= 0:
                    seen[place] += 1
                else:
                    for entry in range(trie.heads[node], trie.heads[node + 1]):
                        row[trie.rows[entry]] += trie.counts[entry]
                if end == last:
                    break
                symbol = trie.indices[tokens[string, end]]
                end += 1
                place = trie.tabled[node]
                if place >= 0:
                    node = np.int64(trie.table[place, symbol])
                    continue
                child, after = np.int64(trie.children[node]), np.int64(trie.children[node + 1])
                # They ascend by their symbols, of which there may be thousands.
                while after - child > 8:
                    middle = (child + after) // 2
                    if trie.symbols[middle] <= symbol:
                        child = middle
                    else:
                        after = middle
                node = np.int64(0)
                while child < after:
                    if trie.symbols[child] == symbol:
                        node = child
                        break
                    child += 1
        for place in range(len(seen)):
            if seen[place] > 0:
                often = seen[place]
                counts = trie.matrix[place]
                for other in range(len(row)):
                    row[other] += often * counts[other]
