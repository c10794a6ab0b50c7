"""Speed of the sub-sequence kernel's engines on ZINC SMILES: pairs per second, forward and with the
derivative.

Every case is repeated in rounds, all cases once per round, so that a machine that is busy for a while slows
all of them; medians are reported, per second of the clock and per second of processor time, which other work
on the machine affects less. A time is that of the whole call, `seqopt.kernels.engines.order_sums` from
encoded strings to the weighted sum over orders, with all its overheads; a symmetric Gram matrix counts its
distinct pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.runner import header, replace_section
from seqopt.datasets import load_zinc250k
from seqopt.encoding import EncodedStrings, Encoder
from seqopt.kernels.engines import order_sums
from seqopt.optimizer.run_folder import write_atomically

SLOW_STRINGS = 16
"""Rows and columns given to the reference engine, which is some thousand times slower."""


@dataclass(frozen=True)
class Case:
    """One measured call.

    Attributes:
        engine: Name of the engine.
        shape: ``"pool"`` (all strings x one of average length), ``"train"`` (1,000 x 120) or ``"square"``
            (symmetric, 500 x 500).
        dtype: ``"float32"`` or ``"float64"``.
        derivative: Whether the derivative in the gap decay is computed too.
        threads: Threads of the engine.
    """

    engine: str
    shape: str
    dtype: str
    derivative: bool
    threads: int


def cases(threads: Sequence[int]) -> list[Case]:
    """All cases, for each number of threads."""
    shapes = {"cpu": ("pool", "train", "square"), "reference": ("train",)}
    return [
        Case(engine, shape, dtype, derivative, count)
        for engine in shapes
        for shape in shapes[engine]
        for dtype in ("float32", "float64")
        for derivative in (False, True)
        for count in (threads if engine == "cpu" else threads[:1])
    ]


def measure(strings: Sequence[str], order: int, threads: Sequence[int], rounds: int, seed: int) -> list[dict[str, Any]]:
    """Pairs per second of every case.

    Args:
        strings: At least 1,120 strings.
        order: Longest sub-sequence.
        threads: Numbers of threads to measure with.
        rounds: Rounds of one call per case.
        seed: Of the choice of strings.

    Returns:
        One row per case: its fields, ``pairs``, ``seconds`` of each round, ``first_seconds`` (of the first
        call, which packs the strings and compiles or loads the code) and ``pairs_per_second`` at the median.
    """
    chosen = np.random.default_rng(seed).permutation(len(strings))
    encoded = Encoder().encode([strings[i] for i in chosen])
    weights = 0.8 ** (2.0 * np.arange(1, order + 1))
    sides = _sides(encoded)

    def call_of(case: Case) -> tuple[Callable[[], object], int]:
        a, b = sides["reference" if case.engine == "reference" else case.shape]
        pairs = len(a) * len(b) if b is not None else len(a) * (len(a) + 1) // 2

        def call() -> object:
            return order_sums(
                a,
                b,
                0.5,
                order,
                derivative=case.derivative,
                weights=weights,
                dtype=case.dtype,
                engine=case.engine,
                threads=case.threads,
            )

        return call, pairs

    measured = [(case, *call_of(case)) for case in cases(threads)]
    first = [_seconds(call)[0] for _, call, _ in measured]
    times = np.array([[_seconds(call) for _, call, _ in measured] for _ in range(rounds)])
    medians = np.median(times, axis=0)
    return [
        {
            **asdict(case),
            "pairs": pairs,
            "first_seconds": first[i],
            "seconds": times[:, i, 0].tolist(),
            "processor_seconds": times[:, i, 1].tolist(),
            "pairs_per_second": pairs / medians[i, 0],
            "pairs_per_processor_second": pairs / medians[i, 1],
        }
        for i, (case, _, pairs) in enumerate(measured)
    ]


def _sides(encoded: EncodedStrings) -> dict[str, tuple[EncodedStrings, EncodedStrings | None]]:
    train, others = encoded.take(slice(0, 120)), encoded.take(slice(120, 1120))
    average = int(np.abs(encoded.lengths - encoded.lengths.mean()).argmin())
    return {
        "pool": (encoded, encoded.take([average])),
        "train": (others, train),
        "square": (others.take(slice(0, 500)), None),
        "reference": (others.take(slice(0, SLOW_STRINGS)), train.take(slice(0, SLOW_STRINGS))),
    }


def _seconds(call: Callable[[], object]) -> tuple[float, float]:
    start, processor_start = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - processor_start


def _table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| engine | strings | precision | derivative in the gap decay | threads | million pairs/s |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['engine']} | {row['shape']} | {row['dtype']} | {'yes' if row['derivative'] else 'no'} "
            f"| {row['threads']} | {row['pairs_per_second'] / 1e6:.3g} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench kernel", description=__doc__.split("\n\n")[0])
    parser.add_argument("--strings", type=int, default=50_000, help="ZINC SMILES in the pool (default 50000)")
    parser.add_argument("--order", type=int, default=5, help="longest sub-sequence (default 5)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (default 1 2)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default 7)")
    parser.add_argument("--seed", type=int, default=0, help="choice of strings (default 0)")
    parser.add_argument("--document", type=Path, default=Path("docs/performance.md"), help="where the table goes")
    parser.add_argument("--out", type=Path, help="write the measurements to this JSON file")
    arguments = parser.parse_args(argv)
    if arguments.strings < 1120:
        parser.error("--strings must be at least 1120")
    record = header(list(argv or []), "kernel")
    pool = load_zinc250k()[: arguments.strings]
    rows = measure(pool, arguments.order, arguments.threads, arguments.rounds, arguments.seed)
    print(
        f"{'engine':10}{'shape':8}{'dtype':9}{'derivative':11}{'threads':>8}"
        f"{'million pairs/s':>17}{'per processor s':>17}"
    )
    for row in rows:
        print(
            f"{row['engine']:10}{row['shape']:8}{row['dtype']:9}{'yes' if row['derivative'] else 'no':11}"
            f"{row['threads']:8d}{row['pairs_per_second'] / 1e6:17.4f}"
            f"{row['pairs_per_processor_second'] / 1e6:17.4f}"
        )
    replace_section(arguments.document, "kernel", _table(rows))
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(arguments.out, json.dumps({"record": record, "rows": rows}, indent=1) + "\n")
