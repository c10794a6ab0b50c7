r"""Ehrlich functions: synthetic tasks in which most strings are infeasible, and whose best value, 1, is known.

A string is feasible if a Markov chain with a sparse transition matrix can produce it: some pairs of neighbouring
symbols are banned. The value of a feasible one is a product over c motifs. A motif is k symbols at given distances of
each other; of how many of its symbols are in place at the best position l, whole quanta count:

.. math:: f(x) = \prod_{i=1}^c \max_l \lfloor h_i(x, l) / u \rfloor u / k, \qquad
    h_i(x, l) = \sum_j [x_{l + s_{ij}} = a_{ij}], \qquad u = \lceil k / q \rceil

The definition, draws of the random parts included, is that of holo-bench (``holo.test_functions.closed_form.Ehrlich``,
without epistasis); generators differ, so that functions of one seed do.

References:
    Stanton, S. et al. (2024). Closed-form test functions for biophysical sequence design benchmarking.
        arXiv 2407.00236.
    holo-bench, https://github.com/prescient-design/holo-bench
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.utils.arguments import checked_integer

LETTERS = "ACDEFGHIKLMNPQRSTVWYBJOUXZabcdefghijklmnopqrstuvwxyz0123456789"
"""Symbols, in their order: the first 20 are those of amino acids."""

BAND = 0.4
"""Half the share of transitions that are possible: a row of v has 2 floor(0.4 v) + 1, and the repeat of its symbol."""

TEMPERATURE = 0.5
"""Of the transition probabilities, softmax of normal numbers."""


class Ehrlich:
    """An Ehrlich function of strings of one length; NaN where a string is infeasible.

    Args:
        letters: Size v of the alphabet, the first so many of `LETTERS`.
        length: Symbols of a string.
        motifs: Number c of motifs.
        motif_length: Symbols k of a motif, at least 2.
        quanta: Values q that a motif can contribute besides 0, from 1 to k; by default k.
        seed: Fixes the banned pairs, the motifs and their spacings.
        infeasible: Value of infeasible strings.

    Raises:
        InputError: If a number is out of its range, or the motifs are longer than the strings.

    Example:
        >>> task = Ehrlich(letters=8, length=8, motifs=1, motif_length=3, seed=0)
        >>> best = task.solution()
        >>> task([best]).tolist()
        [1.0]
        >>> first, second = task.banned()[0]
        >>> task([first + second + best[2:]]).tolist()
        [nan]
    """

    chunk_size: ClassVar[int] = 1_000
    """Many strings take hardly more time than one; see `seqopt.evaluation.Evaluator`."""

    def __init__(
        self,
        letters: int = 20,
        length: int = 15,
        motifs: int = 2,
        motif_length: int = 5,
        *,
        quanta: int | None = None,
        seed: int = 0,
        infeasible: float = math.nan,
    ) -> None:
        for name, number, least in (
            ("letters", letters, 3),
            ("length", length, 2),
            ("motifs", motifs, 1),
            ("motif_length", motif_length, 2),
            ("quanta", motif_length if quanta is None else quanta, 1),
            ("seed", seed, 0),
        ):
            checked_integer(name, number, least)
        if letters > len(LETTERS):
            raise InputError(f"letters is {letters}; there are only {len(LETTERS)} symbols")
        if quanta is not None and quanta > motif_length:
            raise InputError(f"quanta is {quanta}; a motif of {motif_length} symbols has no more than that many")
        if motifs * motif_length > length:
            raise InputError(f"{motifs} motifs of {motif_length} symbols do not fit into strings of {length}")
        self.alphabet = LETTERS[:letters]
        self.length = length
        self.quanta = motif_length if quanta is None else quanta
        self.seed = seed
        self.infeasible = infeasible
        rng = np.random.default_rng([seed, letters, length, motifs, motif_length])
        self.transitions = _transitions(letters, rng)
        # One walk, cut into motifs, so that all of them fit into one feasible string.
        walk = self._walks(1, motifs * motif_length, rng)[0]
        self.motifs = walk.reshape(motifs, motif_length)
        self.offsets = np.array([_offsets(motif_length, (length // motifs) - motif_length, rng) for _ in range(motifs)])

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Values from 0 to 1 of n strings, and that of `infeasible` ones.

        Raises:
            InputError: For a string of another length, or with another symbol.
        """
        if not len(strings):
            return np.empty(0)
        rows = self._rows(strings)
        values = np.ones(len(rows))
        k = self.motifs.shape[1]
        step = math.ceil(k / self.quanta)
        for motif, offsets in zip(self.motifs, self.offsets, strict=True):
            places = np.arange(self.length - offsets[-1])[:, None] + offsets
            found = (rows[:, places] == motif).sum(axis=2).max(axis=1)
            values *= found // step * step / k
        return np.where(self.feasible(strings), values, self.infeasible)

    def feasible(self, strings: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which of n strings hold no banned pair."""
        rows = self._rows(strings)
        possible = (self.transitions[rows[:, :-1], rows[:, 1:]] > 0).all(axis=1)
        return np.asarray(possible, dtype=np.bool_)

    def banned(self) -> list[tuple[str, str]]:
        """Pairs of symbols that must not follow each other."""
        return [
            (self.alphabet[first], self.alphabet[second])
            for first, second in zip(*np.nonzero(self.transitions == 0), strict=True)
        ]

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct feasible strings: walks of the chain that begin in its stationary distribution."""
        found: dict[str, None] = {}
        while len(found) < n:
            found.update(dict.fromkeys(self._written(self._walks(n, self.length, rng))))
        return list(found)[:n]

    def solution(self) -> str:
        """A string of value 1: motif after motif, each symbol repeated until the next one's place."""
        symbols: list[int] = []
        for motif, offsets in zip(self.motifs.tolist(), self.offsets.tolist(), strict=True):
            lengths = [*np.diff(offsets).tolist(), 1]
            symbols += [symbol for symbol, times in zip(motif, lengths, strict=True) for _ in range(times)]
        symbols += [symbols[-1]] * (self.length - len(symbols))
        return self._written(np.array([symbols]))[0]

    @cached_property
    def stationary(self) -> npt.NDArray[np.float64]:
        """The distribution of symbols that a transition does not change."""
        v = len(self.alphabet)
        system = np.vstack([np.eye(v) - self.transitions.T, np.ones(v)])
        found = np.clip(np.linalg.lstsq(system, np.append(np.zeros(v), 1.0), rcond=None)[0], 0.0, None)
        return np.asarray(found / found.sum(), dtype=np.float64)

    def _walks(self, n: int, length: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        bounds = np.cumsum(self.transitions, axis=1)
        rows = np.empty((n, length), dtype=np.int64)
        rows[:, 0] = rng.choice(len(self.alphabet), n, p=self.stationary)
        for place in range(1, length):
            # A number that rounding leaves above the last bound belongs to the last possible symbol.
            drawn = np.minimum(rng.random(n), np.nextafter(bounds[:, -1], 0.0)[rows[:, place - 1]])
            rows[:, place] = (bounds[rows[:, place - 1]] <= drawn[:, None]).sum(axis=1)
        return rows

    def _written(self, rows: npt.NDArray[np.int64]) -> list[str]:
        return ["".join(self.alphabet[symbol] for symbol in row) for row in rows.tolist()]

    def _rows(self, strings: Sequence[str]) -> npt.NDArray[np.int64]:
        numbers = {letter: number for number, letter in enumerate(self.alphabet)}
        for string in strings:
            if len(string) != self.length:
                raise InputError(f"{string!r} has {len(string)} symbols; this function is one of {self.length}")
            for place, symbol in enumerate(string, start=1):
                if symbol not in numbers:
                    raise InputError(f"{string!r}, position {place}: {symbol!r} is not one of {self.alphabet}")
        return np.array([[numbers[symbol] for symbol in string] for string in strings], dtype=np.int64)


def _transitions(v: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A transition matrix with zeros: a band that wraps around, its rows in random order, and the diagonal."""
    logits = rng.standard_normal((v, v)) / TEMPERATURE
    distance = (np.arange(v)[None, :] - np.arange(v)[:, None]) % v
    width = int(BAND * v)
    possible = (np.minimum(distance, v - distance) <= width)[rng.permutation(v)] | np.eye(v, dtype=np.bool_)
    weights = np.where(possible, np.exp(logits - logits.max(axis=1, keepdims=True)), 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def _offsets(k: int, slack: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Places of k symbols, from 0: each 1 further than the last and a share of the slack, rounded down."""
    shares = rng.random(k - 1)
    gaps = 1 + np.floor(slack * shares / shares.sum()).astype(np.int64)
    return np.concatenate([[0], np.cumsum(gaps)])
