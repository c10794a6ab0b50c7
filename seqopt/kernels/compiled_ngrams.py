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


class Ngrams(NamedTuple):
    """The n-grams that occur in r strings, numbered from 1; 0 stands for all others.

    Numbers ascend with the length, and within a length with the number of the n-gram without its last symbol, then with
    that symbol.

    Attributes:
        symbols: Tokens that occur, ascending: the n-grams of one symbol.
        keys: Of each n-gram of two symbols or more, in the order of their numbers: the number of the n-gram without its
            last symbol, times one more than there are symbols, plus the place of that symbol, from 1. They ascend.
        heads: Of each number where the strings that have it begin in ``rows``, and where the last ones end.
        rows: Strings, which ascend for each n-gram.
        counts: How often each has the n-gram.
    """

    symbols: Integers
    keys: Integers
    heads: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]

    @property
    def base(self) -> int:
        """One more than there are symbols: the first number of an n-gram of two."""
        return len(self.symbols) + 1


def _places(symbols: Integers) -> Integers:
    """Of each token that there can be the place of its symbol, from 1; 0 for others."""
    found = np.zeros(np.iinfo(np.uint16).max + 1, dtype=np.int64)
    found[symbols] = np.arange(1, len(symbols) + 1)
    return found


def ngrams_of(strings: EncodedStrings, longest: int) -> Ngrams:
    """The n-grams of 1 to ``longest`` symbols of some strings."""
    tokens = strings.tokens[:, : int(strings.lengths.max(initial=0))]
    symbols = np.flatnonzero(np.bincount(tokens.reshape(-1), minlength=1)[1:]) + 1
    base = len(symbols) + 1
    placed = _places(symbols)[tokens]
    rows, ends, numbers, symbols_of = np.empty((4, placed.size), dtype=np.int64)
    here = _begun(placed, rows, ends, numbers)
    size, first = base, 1
    keys = [np.empty(0, dtype=np.int64)]
    heads = [np.zeros(2, dtype=np.int32)]
    lists: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
    for length in range(1, longest + 1):
        if length > 1:
            here = _extended(placed, rows[:here], ends, numbers, symbols_of)
            found = np.empty(here, dtype=np.int64)
            found = found[: _ranked(numbers[:here], symbols_of[:here], first, base, found)]
            numbers[:here] += size
            first, size = size, size + len(found)
            keys.append(found)
        ending = np.zeros(size - first, dtype=np.int32)
        own, counts = np.empty((2, here), dtype=np.int32)
        held = _listed(rows[:here], numbers, first, ending, own, counts)
        heads.append(ending + heads[-1][-1:])
        lists.append((own[:held], counts[:held]))
    return Ngrams(
        symbols,
        np.concatenate(keys),
        np.concatenate(heads, dtype=np.int32),
        np.concatenate([own for own, _ in lists]),
        np.concatenate([counts for _, counts in lists]),
    )


@compiled
def _ranked(numbers: Any, symbols: Any, first: Any, base: Any, keys: Any) -> Any:
    """Number extended occurrences, sorted by their last symbols and then by what these extend; returns how many differ.

    Args:
        numbers: Of each occurrence the number of the n-gram that it extends; becomes its own, counted from 0.
        symbols: Of each the place of its last symbol.
        first: The first of these numbers.
        base: One more than there are symbols.
        keys: Becomes the keys, ascending.
    """
    count = len(numbers)
    highest = first
    for occurrence in range(count):
        highest = max(highest, numbers[occurrence])
    by_symbol = np.zeros(base + 1, dtype=np.int64)
    by_number = np.zeros(highest - first + 2, dtype=np.int64)
    for occurrence in range(count):
        by_symbol[symbols[occurrence] + 1] += 1
        by_number[numbers[occurrence] - first + 1] += 1
    by_symbol = by_symbol.cumsum()
    by_number = by_number.cumsum()
    order, places = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    for occurrence in range(count):
        symbol = symbols[occurrence]
        order[by_symbol[symbol]] = occurrence
        by_symbol[symbol] += 1
    for place in range(count):
        number = numbers[order[place]] - first
        places[by_number[number]] = order[place]
        by_number[number] += 1
    size = 0
    for place in range(count):
        occurrence = places[place]
        key = numbers[occurrence] * base + symbols[occurrence]
        if size == 0 or keys[size - 1] != key:
            keys[size] = key
            size += 1
        numbers[occurrence] = size - 1
    return size


@compiled
def _begun(placed: Any, rows: Any, ends: Any, numbers: Any) -> Any:
    """Fill in string, place and symbol of all occurrences of symbols; returns how many there are."""
    size = 0
    for row in range(placed.shape[0]):
        for end in range(placed.shape[1]):
            if placed[row, end] == 0:
                break
            rows[size], ends[size], numbers[size] = row, end, placed[row, end]
            size += 1
    return size


@compiled
def _extended(placed: Any, rows: Any, ends: Any, numbers: Any, symbols: Any) -> Any:
    """Extend occurrences by one symbol, those first for which there is one; returns how many these are.

    Args:
        placed: Symbols of the strings, n x W, 0 beyond the ends.
        rows: Of each occurrence the string.
        ends: And where its last symbol stands.
        numbers: And its number.
        symbols: Becomes the place of the symbol by which it is extended.
    """
    size = 0
    for occurrence in range(len(rows)):
        row, end = rows[occurrence], ends[occurrence] + 1
        if end == placed.shape[1] or placed[row, end] == 0:
            continue
        rows[size], ends[size] = row, end
        numbers[size], symbols[size] = numbers[occurrence], placed[row, end]
        size += 1
    return size


@compiled
def _listed(rows: Any, numbers: Any, first: Any, heads: Any, strings: Any, counts: Any) -> Any:
    """List the strings that have each n-gram, from occurrences string by string; returns how many are listed.

    Args:
        rows: Of each occurrence the string; they ascend.
        numbers: And the n-gram.
        first: The first of these numbers.
        heads: Becomes where the strings of each n-gram end; zeros.
        strings: Becomes the strings, one n-gram after the other.
        counts: Becomes how often each has the n-gram.
    """
    last = np.full(len(heads), -1, dtype=np.int64)
    for occurrence in range(len(rows)):
        number = numbers[occurrence] - first
        if last[number] != rows[occurrence]:
            last[number] = rows[occurrence]
            heads[number] += 1
    total = 0
    for number in range(len(heads)):
        last[number] = -1
        having = heads[number]
        heads[number] = total - 1
        total += having
    for occurrence in range(len(rows)):
        number = numbers[occurrence] - first
        if last[number] != rows[occurrence]:
            last[number] = rows[occurrence]
            heads[number] += 1
            strings[heads[number]] = rows[occurrence]
            counts[heads[number]] = 0
        counts[heads[number]] += 1
    for number in range(len(heads)):
        heads[number] += 1
    return total


def build(ngrams: Ngrams, n: int, dtype: npt.DTypeLike) -> Trie:
    """A trie of numbered n-grams.

    Args:
        ngrams: Those of n strings.
        n: Number of strings.
        dtype: Of counts and products, float32 or float64.
    """
    base = ngrams.base
    size = base + len(ngrams.keys)
    having = np.diff(ngrams.heads)
    dense = np.full(size, -1, dtype=np.int32)
    # Number 0 stands for all that is none of them.
    many = np.flatnonzero(having >= max(2.0, DENSE_SHARE * n))
    dense[many] = np.arange(len(many))
    counts = ngrams.counts.astype(dtype)
    matrix = np.zeros((len(many), n), dtype=dtype)
    _write_rows(ngrams.heads, ngrams.rows, counts, many, matrix)
    parents, symbols = np.divmod(ngrams.keys, base)
    children = (base + np.searchsorted(parents, np.arange(size + 1))).astype(np.int32)
    tabled = np.full(size, -1, dtype=np.int32)
    # The shortest come first, and are met most often.
    fertile = np.flatnonzero(np.diff(children) > TABULATED)[: TABLE_ELEMENTS // base]
    tabled[fertile] = np.arange(len(fertile))
    table = np.zeros((len(fertile), base), dtype=np.int32)
    rows = tabled[parents]
    table[rows[rows >= 0], symbols[rows >= 0]] = np.flatnonzero(rows >= 0) + base
    return Trie(
        _places(ngrams.symbols).astype(np.uint16),
        children,
        np.concatenate([np.arange(base), symbols]).astype(np.uint16),
        tabled,
        table,
        ngrams.heads,
        ngrams.rows,
        counts,
        dense,
        matrix,
    )


@compiled
def _write_rows(heads: Any, rows: Any, counts: Any, chosen: Any, matrix: Any) -> None:
    for place in range(len(chosen)):
        for entry in range(heads[chosen[place]], heads[chosen[place] + 1]):
            matrix[place, rows[entry]] = counts[entry]


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


@compiled
def count_all(tokens: Any, lengths: Any, letters: int, starts: Any, counts: Any) -> None:
    """Count the n-grams of strings over the symbols 1 to ``letters``, those of i symbols from ``starts[i - 1]`` on.

    Args:
        tokens: ``n x W``.
        lengths: Of the strings.
        letters: Number of symbols.
        starts: One for each length of n-grams, and one more.
        counts: ``n x starts[-1]``, zeros.
    """
    longest = len(starts) - 1
    size = letters ** (longest - 1)
    for string in range(len(lengths)):
        own, code = counts[string], 0
        for position in range(lengths[string]):
            # Of the last symbols as many as the longest n-grams have.
            if position >= longest:
                code -= (tokens[string, position - longest] - 1) * size
            code = code * letters + tokens[string, position] - 1
            if position >= longest - 1:
                own[starts[longest - 1] + code] += 1
        # Every n-gram but the last of a string begins one that is a symbol longer.
        for length in range(longest - 1, 0, -1):
            into, longer = starts[length - 1], starts[length]
            for ngram in range(letters**length):
                total = own[into + ngram]
                for symbol in range(letters):
                    total += own[longer + ngram * letters + symbol]
                own[into + ngram] = total
            if lengths[string] >= length:
                own[into + code % letters**length] += 1
