"""Interleaved timing of calls that compute the same thing in different ways."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from seqopt.bench.kernel import yardstick
from seqopt.encoding import EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels.engines import order_sums

Row = dict[str, Any]

MATCH_DECAY = 0.8
AFFORDABLE = 1e10
"""Floating-point operations of one call beyond which the slow engines are left out (under a second)."""

PAUSE = 0.01
"""Seconds before each case, for the threads of the call before to go to sleep: OpenMP's wait for work on a core."""

REPEATED = 0.1
"""Seconds for which a case is repeated in a round, so that a call of a millisecond is not that of cold caches."""


class Case(NamedTuple):
    """One way to compute something.

    Attributes:
        facts: What identifies it in the record.
        pairs: Distinct pairs of strings.
        call: Computes them at a gap decay.
    """

    facts: Row
    pairs: int
    call: Callable[[float], object]


def interleaved(cases: Sequence[Case], rounds: int) -> list[Row]:
    """Time all cases, every case once a round, so that a machine that is busy for a while slows all of them.

    Each round has its own gap decay, the same for all cases: nothing computed for one serves the next.

    Returns:
        One row per case: its facts, ``pairs``, ``first_seconds`` (of the first call, which packs the strings and
        compiles or loads the code) and the mean ``seconds`` of a call in each round; or its facts and ``skipped``,
        the reason why it cannot be computed.
    """
    rows: list[Row] = []
    timed: list[tuple[Row, Case]] = []
    for case in cases:
        row = dict(case.facts)
        rows.append(row)
        try:
            row["first_seconds"] = _seconds(case.call, 0.35, repeated=0.0)
        except (InputError, yardstick.NoCompilerError) as error:
            row["skipped"] = str(error)
            continue
        row |= {"pairs": case.pairs, "seconds": []}
        timed.append((row, case))
    for gap_decay in np.linspace(0.4, 0.6, rounds):
        for row, case in timed:
            row["seconds"].append(_seconds(case.call, float(gap_decay), REPEATED))
    return rows


def _seconds(call: Callable[[float], object], gap_decay: float, repeated: float) -> float:
    """Mean seconds of a call, repeated at neighbouring gap decays for ``repeated`` seconds, called once at least."""
    time.sleep(PAUSE)
    started, calls = time.perf_counter(), 0
    while True:
        call(gap_decay + 1e-7 * calls)
        calls += 1
        elapsed = time.perf_counter() - started
        if elapsed > repeated:
            return elapsed / calls


def median(row: Row) -> float:
    """Median seconds of a row."""
    return float(np.median(row["seconds"]))


def rate(row: Row) -> float:
    """Pairs per second of a row at the median."""
    return float(row["pairs"] / median(row))


def ratio(slow: Row, fast: Row) -> float:
    """How many times faster the second row is: the median over rounds, which were interleaved."""
    return float(np.median(np.divide(slow["seconds"], fast["seconds"])))


def rate_ratio(slow: Row, fast: Row) -> float:
    """How many times as many pairs per second the second row has, likewise."""
    return ratio(slow, fast) * float(fast["pairs"]) / float(slow["pairs"])


def gram_case(
    engine: str,
    strings: EncodedStrings,
    order: int,
    *,
    derivative: bool,
    dtype: str,
    threads: int,
    partitions: int = 1,
    **facts: Any,
) -> Case:
    """The Gram matrix of ``strings`` (weighted sums over orders, unnormalised) by an engine or by the yardstick."""
    count = len(strings)
    weights = MATCH_DECAY ** (2.0 * np.arange(1, order + 1))
    facts = {
        "engine": engine,
        "strings": count,
        "mean_length": round(float(strings.lengths.mean()), 2),
        "symbols": int(np.count_nonzero(np.unique(strings.tokens))),
        "order": order,
        "partitions": partitions,
        "derivative": derivative,
        "dtype": dtype,
        "threads": threads,
        **facts,
    }

    def by_engine(gap_decay: float) -> object:
        return order_sums(
            strings,
            None,
            gap_decay,
            order,
            derivative=derivative,
            weights=weights,
            dtype=dtype,
            engine=engine,
            threads=threads,
            partitions=partitions,
        )

    packed: list[yardstick.Packed] = []

    def by_yardstick(gap_decay: float) -> object:
        loop = yardstick.load()
        if not packed:
            packed.append(loop.pack(strings))
        return loop.sums(packed[0], None, gap_decay, weights, derivative=derivative, dtype=dtype, threads=threads)

    return Case(facts, count * (count + 1) // 2, by_yardstick if engine == "yardstick" else by_engine)


def cross_case(
    engine: str,
    a: EncodedStrings,
    b: EncodedStrings,
    order: int,
    *,
    derivative: bool,
    threads: int,
    dtype: str = "float64",
    **facts: Any,
) -> Case:
    """Every string of a with every string of b by an engine: weighted sums over orders, unnormalised."""
    weights = MATCH_DECAY ** (2.0 * np.arange(1, order + 1))
    facts = {
        "engine": engine,
        "strings": len(a),
        "columns": len(b),
        "mean_length": round(float(a.lengths.mean()), 2),
        "order": order,
        "derivative": derivative,
        "dtype": dtype,
        "threads": threads,
        **facts,
    }

    def call(gap_decay: float) -> object:
        return order_sums(
            a, b, gap_decay, order, derivative=derivative, weights=weights, dtype=dtype, engine=engine, threads=threads
        )

    return Case(facts, len(a) * len(b), call)


def device_case(a: EncodedStrings, b: EncodedStrings | None, order: int, case: Case) -> Case:
    """A case of the `cuda` engine once more, with strings and results that stay in the memory of the GPU."""
    weights = np.atleast_2d(MATCH_DECAY ** (2.0 * np.arange(1.0, order + 1.0))).astype(np.float64)
    there: list[Any] = []
    derivative, dtype = bool(case.facts["derivative"]), np.dtype(str(case.facts["dtype"]))

    def call(gap_decay: float) -> object:
        import torch

        from seqopt.kernels.engines import cuda

        if not there:
            there.extend(None if strings is None else cuda.to_device(strings) for strings in (a, b))
        left, right = there
        sums = cuda.order_sums_on_device(left, right, gap_decay, weights, derivative=derivative, dtype=dtype)
        if not cuda.INTERPRETED:
            torch.cuda.synchronize()
        return sums

    return Case({**case.facts, "engine": "device"}, case.pairs, call)


def affordable(engine: str, strings: EncodedStrings, order: int) -> EncodedStrings | None:
    """As many of ``strings`` as the slow engines can treat in about a second, or `None` if that is less than two.

    The reference multiplies matrices as large as the strings are long for every pair, the `features` engine rows as
    long as there are sub-sequences; the latter is given all strings or none. The others always get all.
    """
    count, length = len(strings), float(strings.lengths.max())
    if engine == "reference":
        most = int((AFFORDABLE / (4.0 * order * length**3)) ** 0.5)
        return None if most < 2 else strings.take(slice(0, min(count, most)))
    if engine == "features":
        symbols = float(np.count_nonzero(np.unique(strings.tokens)))
        features = sum(symbols**i for i in range(1, order + 1))
        return None if count * features * (count + 2.0 * length / symbols) > AFFORDABLE else strings
    return strings


def engines() -> list[str]:
    """What is compared, the `cuda` engine only where there is a GPU."""
    import torch

    return ["cpu", "yardstick", "features", "reference", *(["cuda"] if torch.cuda.is_available() else [])]


def zinc(count: int, seed: int) -> list[str]:
    """The first ``count`` of the shuffled ZINC SMILES."""
    return _shuffled_zinc(seed)[:count]


@lru_cache(maxsize=1)
def _shuffled_zinc(seed: int) -> list[str]:
    from seqopt.datasets import load_zinc250k

    strings = load_zinc250k()
    return [strings[i] for i in np.random.default_rng(seed).permutation(len(strings))]


def encoded_zinc(count: int, seed: int) -> EncodedStrings:
    """`zinc`, encoded by characters."""
    return Encoder().encode(zinc(count, seed))


def random_strings(count: int, length: int, symbols: int, seed: int) -> EncodedStrings:
    """Strings of one length with independent, equally likely symbols."""
    rng = np.random.default_rng([seed, count, length, symbols])
    return EncodedStrings.from_tokens(rng.integers(1, symbols + 1, size=(count, length), dtype=np.uint16))


def variants(count: int, length: int, mutations: tuple[int, int], symbols: int, seed: int) -> EncodedStrings:
    """Variants of a random string, each with a random number of substitutions at random places.

    Args:
        count: How many.
        length: Of the string.
        mutations: Least and largest number of substitutions, equally likely.
        symbols: Size of the alphabet; all are equally likely.
        seed: Of all choices.
    """
    rng = np.random.default_rng([seed, count, length, *mutations, symbols])
    tokens = np.tile(rng.integers(1, symbols + 1, length), (count, 1))
    for row in tokens:
        places = rng.choice(length, rng.integers(mutations[0], mutations[1] + 1), replace=False)
        # Any symbol but the one that is there.
        row[places] = (row[places] - 1 + rng.integers(1, symbols, len(places))) % symbols + 1
    return EncodedStrings.from_tokens(tokens.astype(np.uint8))


def load_average() -> float | None:
    """Processes that wanted to run during the last minute, where the system tells: how busy the machine was."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
