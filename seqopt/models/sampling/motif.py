r"""The posterior of which motif decides, over all motifs.

Given the motif m, an output scale a and a noise variance s2, the model of a `seqopt.kernels.MotifKernel` is a linear
regression with two weights,

.. math::

    y = w_0 + w_1 c_m(s) + \epsilon, \quad w_0 \sim N(0, a + \mu^2), \; w_1 \sim N(0, a), \; \epsilon \sim N(0, s2),

with the standard deviation :math:`\mu` of a constant mean that is integrated out. Its marginal likelihood follows from
three sums over the strings in which the motif occurs, so all motifs that occur are looked at, and the posterior is
exact. Motifs that occur in no string that was measured have the same likelihood, and count by their number.

Each value's density given the others averages over the posterior without it. With the posterior :math:`w_t` of the
points t = (m, a, s2) given all values, that is (Gelfand, Dey and Chang 1992)

.. math:: p(y_i | y_{-i}) = 1 \Big/ \sum_t \frac{w_t}{p(y_i | y_{-i}, t)},

exact where all points are summed: it costs the kernel what it owes to having picked its motif after the event.

References:
    Gelfand, A. E., Dey, D. K. and Chang, H. (1992). Model determination using predictive distributions with
        implementation via sampling-based methods. Bayesian Statistics 4.
    Mitchell, T. J. and Beauchamp, J. J. (1988). Bayesian variable selection in linear regression. Journal of the
        American Statistical Association 83(404).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.motifs import MotifKernel, occurrences, shapes
from seqopt.models.sampling.density import NOISE_PRIOR, SCALE_PRIOR, LogPosterior
from seqopt.models.sampling.parameters import NOISE_VARIANCE, OUTPUTSCALE, Numbers
from seqopt.models.sampling.protocols import ParameterSample
from seqopt.utils.config import Configurable

OUTPUT_SCALES = tuple(np.exp([-2.0, 0.0, 2.0]).tolist())
NOISE_VARIANCES = tuple(np.exp([-8.0, -5.0, -2.5, 0.0]).tolist())
"""The grid of output scales and noise variances, of standardised values."""

DRAWS = 64
"""Points that stand for the posterior."""

KEPT, REST = 500, 100
"""Motifs of each shape that are kept: the most probable, and so many of the others, chosen at random, for all of them.
Twice as many of all shapes together predict each value from the others."""

TRIES = 1_000
"""Motifs that are drawn to find one that occurs in no string."""

REMEMBERED = 26 << 17
"""Symbols of all strings, times shapes of motifs, up to which it is kept where motifs occur, as long as the strings are
(110 MB at most)."""

LARGEST_CODE = 2**62
"""Most motifs of one shape that can be numbered."""

Integers = npt.NDArray[np.int64]


class MotifSampler(Configurable):
    """Motifs, output scales and noise variances of a `seqopt.kernels.MotifKernel`, drawn from their exact posterior.

    (Exact while a shape, which is a set of distances between symbols, has no more motifs that occur than `KEPT` and
    `REST`; beyond, a random part stands for the least probable ones.)

    Before values are seen, motifs of each number of symbols have the same probability together, and those of one number
    each the same; occurrences may overlap with probability 1/2. Output scales and noise variances have the priors of
    other kernels, on a small grid.

    It takes time for a sort of all symbols for each shape, and memory for that and for the counts of the motifs that
    are kept: for n strings up to 600 n numbers in single precision for each of the 26 shapes of four symbols in six.

    Raises:
        InputError: When sampling: for another kernel, strings that are no tokens, limits in place of values, or levels
            with noise of their own.

    Example:
        >>> from seqopt.encoding import Alphabet, Encoder
        >>> encoded = Encoder(alphabet=Alphabet("AB")).encode(["ABBA", "AAAA", "BABA", "BBBB", "ABAB", "AABA"])
        >>> values = np.array([1.0, -1.0, 1.0, -1.0, 3.0, 1.0]) - 2 / 3  # twice the number of AB, less 1
        >>> density = LogPosterior(MotifKernel(2, 3), encoded, values, np.zeros(6))
        >>> sample = MotifSampler().sample(density, np.random.default_rng(0))
        >>> [round(float(np.average(sample.values[f"motif[{place}]"], weights=sample.weights))) for place in range(3)]
        [1, 2, 0]
    """

    def __repr__(self) -> str:
        return "MotifSampler()"

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return {}

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """`DRAWS` points of equal weight, and the density of each value from the others; see `Sampler.sample`."""
        kernel, encoded = density.kernel, density.encoded
        if not isinstance(kernel, MotifKernel):
            raise InputError(f"a MotifSampler draws the motif of a MotifKernel; this is a {type(kernel).__name__}")
        if not isinstance(encoded, EncodedStrings):
            raise InputError("a MotifKernel looks for motifs in strings of symbols, and this encoder makes none")
        symbols_used = len(np.unique(encoded.tokens))
        if symbols_used**kernel.order > LARGEST_CODE:
            raise InputError(
                f"{symbols_used - 1:,} different symbols make too many motifs of {kernel.order}: choose a MotifKernel "
                "of a smaller order"
            )
        if density.sides is not None or density.others:
            raise InputError("motifs are not found from limits, nor beside noise of levels: choose another kernel")
        size = _alphabet(kernel, encoded)
        sums = _Sums(density)
        motifs = _motifs(kernel, encoded, size, sums, rng)
        table = motifs.log_prior[:, None, None] + motifs.table + _grid_prior()
        total = float(special.logsumexp(table))
        weights = np.exp(table - total)
        points = (rng.random() + np.arange(DRAWS)) / DRAWS * weights.sum()
        places = np.searchsorted(np.cumsum(weights), points).clip(max=weights.size - 1)
        which, scale, noise = np.unravel_index(places, weights.shape)
        symbols, overlapping = motifs.symbols[which], motifs.overlapping[which].astype(np.float64)
        for place in np.flatnonzero(~symbols.any(axis=1)).tolist():
            symbols[place], overlapping[place] = _unseen(kernel, encoded, size, rng)
        names = [name for name in density.parameters.names if name != "overlapping"]
        return ParameterSample(
            {
                **{name: column.astype(np.float64) for name, column in zip(names, symbols.T, strict=True)},
                "overlapping": overlapping,
                OUTPUTSCALE: np.array(OUTPUT_SCALES)[scale],
                NOISE_VARIANCE: np.array(NOISE_VARIANCES)[noise],
            },
            np.ones(DRAWS),
            total if evidence else float("nan"),
            evaluations=table.size,
            predictive=_predictive(motifs, table, sums, rng),
        )


@dataclass(frozen=True)
class _Motifs:
    """Some motifs, with how often they occur in the n strings.

    Attributes:
        symbols: Their numbers, J x width; all 0 for those that occur nowhere.
        overlapping: Whether occurrences that overlap all count, J.
        counts: J x n; whole numbers, which single precision holds exactly.
        log_prior: Logarithm of the prior probability of each and of the others it stands for, J.
        table: Logarithms of the marginal likelihood, J x output scales x noise variances.
    """

    symbols: Integers
    overlapping: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.float32]
    log_prior: Numbers
    table: Numbers


class _Sums:
    """Marginal likelihoods of linear regressions on counts, from sums over the strings that have any.

    Args:
        density: Has the n values.
    """

    def __init__(self, density: LogPosterior) -> None:
        self.targets = density.targets
        variances = np.array(NOISE_VARIANCES)[:, None] + density.known
        self.variances: Numbers = variances
        self.mean_variance = density.mean_std**2
        # Where noise is equal for all values, sums are the same but for a factor.
        self._equal = bool(np.ptp(density.known) == 0.0)
        self._weights = np.ones((1, len(self.targets))) if self._equal else 1.0 / variances

    def table(self, counts: sparse.csr_array) -> Numbers:
        """Logarithms of p(y), J x output scales x noise variances.

        Args:
            counts: J x n.
        """
        size = counts.shape[0]
        squares = sparse.csr_array((counts.data**2, counts.indices, counts.indptr), shape=counts.shape)
        first, second = ((matrix @ self._weights.T).T for matrix in (counts, squares))
        crossed = (counts @ (self._weights * self.targets).T).T
        if self._equal:
            factor = 1.0 / self.variances[:, :1]
            first, second, crossed = first * factor, second * factor, crossed * factor
        found = np.empty((size, len(OUTPUT_SCALES), len(NOISE_VARIANCES)))
        for place, scale in enumerate(OUTPUT_SCALES):
            for noise, variances in enumerate(self.variances):
                a, b, c, determinant, u, v = self._system(scale, variances, first[noise], second[noise], crossed[noise])
                explained = (u**2 * c - 2.0 * u * v * b + v**2 * a) / determinant
                logarithms = float(np.log(2.0 * np.pi * variances).sum())
                logarithms += math.log((scale + self.mean_variance) * scale)
                squares = float((self.targets**2 / variances).sum())
                found[:, place, noise] = -0.5 * (squares - explained + logarithms + np.log(determinant))
        return found

    def _system(
        self, scale: float, variances: Numbers, first: Numbers, second: Numbers, crossed: Numbers
    ) -> tuple[Numbers, Numbers, Numbers, Numbers, float, Numbers]:
        """Precision of both weights (its entries, and determinant), and the right side that gives their means."""
        a = np.full_like(first, 1.0 / (scale + self.mean_variance) + (1.0 / variances).sum())
        c = 1.0 / scale + second
        return a, first, c, a * c - first**2, float((self.targets / variances).sum()), crossed

    def without(self, counts: Numbers, scale: float, variances: Numbers) -> Numbers:
        """Logarithms of the densities of the n values, each from the others, for J motifs.

        Args:
            counts: J x n.
            scale: Output scale.
            variances: Of the noise of each value, n.

        Returns:
            J x n.
        """
        weighted = counts / variances
        sums = weighted.sum(1), (weighted * counts).sum(1), weighted @ self.targets
        a, b, c, determinant, u, v = (
            part if isinstance(part, float) else part[:, None] for part in self._system(scale, variances, *sums)
        )
        mean = ((c * u - b * v) + (a * v - b * u) * counts) / determinant
        # The share of each value in its own fit.
        share = (c - 2.0 * b * counts + a * counts**2) / determinant / variances
        variance = variances / (1.0 - share)
        error = (self.targets - mean) / (1.0 - share)
        found: Numbers = -0.5 * (error**2 / variance + np.log(2.0 * np.pi * variance))
        return found


def _motifs(kernel: MotifKernel, encoded: EncodedStrings, size: int, sums: _Sums, rng: np.random.Generator) -> _Motifs:
    """All motifs that occur, or what stands for them, and one for all that do not."""
    every = list(shapes(kernel.order, kernel.width))
    of_size = Counter(map(len, every))
    parts: list[_Motifs] = []
    missing = -math.inf
    for places in every:
        each = -math.log(kernel.order * of_size[len(places)]) - len(places) * math.log(size)
        own = _of_shape(places, kernel.width, encoded, each, sums, rng, encoded.tokens.size * len(every) <= REMEMBERED)
        seen = 0
        if own is not None:
            part, seen = own
            parts.append(part)
        if size ** len(places) > seen:
            missing = float(np.logaddexp(missing, each + math.log(size ** len(places) - seen)))
    if missing > -math.inf:
        parts.append(
            _Motifs(
                np.zeros((1, kernel.width), dtype=np.int64),
                np.ones(1, dtype=np.bool_),
                np.zeros((1, len(encoded)), dtype=np.float32),
                np.array([missing]),
                sums.table(sparse.csr_array((1, len(encoded)), dtype=np.float32)),
            )
        )
    names = ("symbols", "overlapping", "counts", "log_prior", "table")
    return _Motifs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _of_shape(
    places: tuple[int, ...],
    width: int,
    encoded: EncodedStrings,
    each: float,
    sums: _Sums,
    rng: np.random.Generator,
    remember: bool,
) -> tuple[_Motifs, int] | None:
    """The motifs of one shape that occur, or what stands for them, and how many these are.

    Args:
        places: Distances of the symbols from the first.
        width: Of the kernel.
        encoded: The n strings.
        each: Logarithm of the prior probability of a motif.
        sums: For the marginal likelihoods.
        rng: Chooses among the least probable.
        remember: Whether to keep where motifs occur.
    """
    # The same strings come again, with values under another transform.
    found = _remembered(encoded, places) if remember else _found(encoded, places)
    if found is None:
        return None
    size, both = len(found.codes), found.both
    log_prior = np.full(size, each)
    log_prior[both] -= math.log(2.0)
    tables = [sums.table(counts) for _, counts in found.ways]
    # Of each motif, once or twice, the row of the tables that it shares with those that occur just as it does.
    which = np.concatenate([np.arange(size), both])
    overlapping = np.arange(len(which)) < size
    shared = found.ways[0][0]
    if len(both):
        shared = np.concatenate([shared, found.ways[1][0][both] + len(tables[0])])
    table = np.concatenate(tables)
    log_prior = log_prior[which]
    chosen, more = _thinned(log_prior + table.max(axis=(1, 2))[shared], KEPT, REST, rng)
    shared = shared[chosen]
    dense = np.zeros((len(chosen), len(encoded)), dtype=np.float32)
    for (_, counts), mine, before in zip(
        found.ways, (shared < len(tables[0]), shared >= len(tables[0])), (0, len(tables[0])), strict=False
    ):
        dense[mine] = counts[shared[mine] - before].toarray()
    which, overlapping = which[chosen], overlapping[chosen]
    symbols = np.zeros((len(chosen), width), dtype=np.int64)
    rest = found.codes[which]
    for place in reversed(places):
        rest, digit = np.divmod(rest, len(found.used))
        symbols[:, place] = found.used[digit]
    return _Motifs(symbols, overlapping, dense, log_prior[chosen] + more, table[shared]), size


@dataclass(frozen=True)
class _Occurring:
    """What occurs of a shape in n strings.

    Attributes:
        codes: Numbers of the J motifs, whose symbols are digits.
        used: The symbols, in the order of the digits.
        both: Motifs of which some string has occurrences that overlap.
        ways: With occurrences that overlap and, where there are any, without: of each motif the row of the counts that
            is its own, which motifs that occur alike share, J; and the counts, rows x n.
    """

    codes: Integers
    used: Integers
    both: Integers
    ways: list[tuple[npt.NDArray[np.int32], sparse.csr_array]]


def _found(encoded: EncodedStrings, places: tuple[int, ...]) -> _Occurring | None:
    """What occurs of a shape; `None` if nothing does."""
    from seqopt.models.sampling.compiled_motif import entries

    if encoded.width <= places[-1]:
        return None
    used = np.flatnonzero(np.bincount(encoded.tokens.reshape(-1)))
    place_of = np.zeros(int(used.max(initial=0)) + 1, dtype=np.int64)
    place_of[used] = np.arange(len(used))
    found = entries(place_of[encoded.tokens], encoded.lengths.astype(np.int64), np.array(places), len(used))
    if not len(found.codes):
        return None
    repeated = np.flatnonzero(found.overlapping != found.apart)
    both = np.unique(np.searchsorted(found.heads, repeated, side="right") - 1)
    ways = [found.overlapping, found.apart] if len(both) else [found.overlapping]
    return _Occurring(
        found.codes,
        used,
        both,
        [_alike(found.heads, found.strings, counts, len(encoded)) for counts in ways],
    )


_remembered = once_per_strings(_found)


def _alike(
    heads: npt.NDArray[np.int32], strings: npt.NDArray[np.int32], counts: npt.NDArray[np.float32], n: int
) -> tuple[npt.NDArray[np.int32], sparse.csr_array]:
    """Merge motifs that occur in a single string, the same one, equally often: of long motifs, most occur in one.

    Args:
        heads: Where the counts of each of J motifs begin, and where the last ones end.
        strings: Of each count the string.
        counts: All that are not 0.
        n: Number of strings.

    Returns:
        Of each motif the row of what stands for it, J, and the counts of these, rows x n.
    """
    having = np.diff(heads)
    alone = having == 1
    by_entry = np.repeat(alone, having)
    most = int(counts.max(initial=0)) + 1
    keys = strings[by_entry].astype(np.int64) * most + counts[by_entry].astype(np.int64)
    several = len(alone) - int(alone.sum())
    used = np.flatnonzero(np.bincount(keys, minlength=1))
    numbers = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int32)
    numbers[used] = several + np.arange(len(used))
    shared = (np.cumsum(~alone) - 1).astype(np.int32)
    shared[alone] = numbers[keys]
    rest = ~by_entry
    matrix = sparse.csr_array(
        (
            np.concatenate([counts[rest], (used % most).astype(np.float32)]),
            np.concatenate([strings[rest], (used // most).astype(np.int32)]),
            # Were these of another type, the strings would be as well.
            np.concatenate([[0], np.append(having[~alone], np.ones(len(used))).cumsum()]).astype(np.int32),
        ),
        shape=(several + len(used), n),
    )
    return shared, matrix


def _thinned(probable: Numbers, kept: int, rest: int, rng: np.random.Generator) -> tuple[Integers, Numbers]:
    """Places of the most probable of J points and of some of the others, and what to add to the logarithms of their
    prior, so that these stand for all others.
    """
    if len(probable) <= kept + rest:
        return np.arange(len(probable)), np.zeros(len(probable))
    order = np.argsort(-probable, kind="stable")
    places = np.concatenate([order[:kept], rng.choice(order[kept:], rest, replace=False)])
    return places, np.append(np.zeros(kept), np.full(rest, math.log((len(order) - kept) / rest)))


def _predictive(motifs: _Motifs, table: Numbers, sums: _Sums, rng: np.random.Generator) -> Numbers:
    """Logarithms of the densities of the n values, each from the others; see the module.

    Args:
        motifs: J of them.
        table: Logarithms of prior times marginal likelihood, J x output scales x noise variances, up to a constant.
        sums: Have the values.
        rng: Chooses among the least probable motifs.
    """
    places, more = _thinned(table.max(axis=(1, 2)), 2 * KEPT, 2 * REST, rng)
    weights = table[places] + more[:, None, None]
    weights -= special.logsumexp(weights)
    counts = motifs.counts[places].astype(np.float64)
    found = np.full(len(sums.targets), -math.inf)
    for scale, own in enumerate(OUTPUT_SCALES):
        for noise, variances in enumerate(sums.variances):
            inverse = weights[:, scale, noise, None] - sums.without(counts, own, variances)
            found = np.logaddexp(found, special.logsumexp(inverse, axis=0))
    return -found


def _unseen(
    kernel: MotifKernel, encoded: EncodedStrings, size: int, rng: np.random.Generator
) -> tuple[Integers, float]:
    """A motif that occurs in no string, drawn from the prior, and whether its occurrences may overlap.

    Where next to all motifs occur, so that `TRIES` draws find none that does not, it is one that does: the posterior
    probability of the others is next to nothing then.
    """
    every = list(shapes(kernel.order, kernel.width))
    symbols = np.zeros(kernel.width, dtype=np.int64)
    for _ in range(TRIES):
        order = int(rng.integers(kernel.order)) + 1
        own = [places for places in every if len(places) == order]
        places = own[int(rng.integers(len(own)))]
        drawn = rng.integers(1, size + 1, len(places))
        symbols[:] = 0
        symbols[list(places)] = drawn
        if not occurrences(encoded.tokens, places, drawn.tolist(), True).any():
            break
    return symbols, float(rng.integers(2))


def _alphabet(kernel: MotifKernel, encoded: EncodedStrings) -> int:
    """How many symbols there are: of a closed alphabet all, of an open one those up to the last that a string has."""
    return max(1, kernel.symbols or 0, int(encoded.tokens.max(initial=0)))


def _grid_prior() -> Numbers:
    """Logarithms of the prior probabilities of output scales x noise variances."""
    scales, noises = (
        special.log_softmax(-0.5 * ((np.log(grid) - mean) / std) ** 2)
        for grid, (mean, std) in ((OUTPUT_SCALES, SCALE_PRIOR), (NOISE_VARIANCES, NOISE_PRIOR))
    )
    found: Numbers = scales[:, None] + noises
    return found
