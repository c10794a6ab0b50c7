"""What `seqopt bench kernel` measures, and how much of it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Sizes of all sections; the defaults take about ten minutes on two cores.

    Attributes:
        order: Longest sub-sequence, where it is not what is varied.
        threads: Numbers of threads besides the hand-vectorised loop; elsewhere the largest of them.
        seed: Of every choice of strings.
        rounds: Interleaved rounds of the comparisons with the hand-vectorised loop and with GAUCHE.
        sweep_rounds: Interleaved rounds of everything else.
        gram: ZINC strings of the Gram matrix computed by the `cpu` engine and by the hand-vectorised loop.
        gauche: ZINC strings of the Gram matrix that GAUCHE computes, without and with gradients, which take it
            gigabytes of memory.
        gauche_many: ZINC strings, those of ``gauche`` among them, of a Gram matrix that makes up for fixed costs.
        memory: ZINC strings of the Gram matrix whose peak memory is measured.
        gauche_memory: The same for GAUCHE.
        counts: ZINC strings of the sweep over n.
        lengths: Of the random strings of the sweep over lengths.
        length_strings: How many of them.
        orders: Of the sweep over orders.
        order_strings: ZINC strings of that sweep.
        alphabets: Numbers of symbols of the sweep over alphabets.
        alphabet_strings: How many strings of it.
        alphabet_length: Their length.
        partitions: Numbers of partitions, 1 among them.
        partition_lengths: Lengths of the DNA strings that are cut.
        partition_strings: How many of each.
        features: DNA strings of the Gram matrix computed by the `features` and the `cpu` engine.
        features_length: Their length.
        pools: ZINC strings of the pools whose covariances with training strings are computed with and without sharing.
        training: How many training strings: the last ones of ZINC, so that none is in a pool.
        variants: Strings of each library of variants.
        nodes: Random strings and ZINC molecules of fits whose nodes in the gap decay are counted, besides ``variants``.
        fit: ZINC molecules of the full fit, and its restarts.
        fit_interpolated: ZINC molecules of the fits with and without interpolation, and their restarts.
    """

    order: int = 5
    threads: tuple[int, ...] = tuple(sorted({1, os.cpu_count() or 1}))
    seed: int = 0
    rounds: int = 5
    sweep_rounds: int = 3
    gram: int = 1000
    gauche: tuple[int, int] = (100, 60)
    gauche_many: int = 1000
    memory: int = 5000
    gauche_memory: int = 30
    counts: tuple[int, ...] = (50, 100, 200, 500, 1000, 2000, 3000)
    lengths: tuple[int, ...] = (20, 60, 180, 360, 720, 1080)
    length_strings: int = 64
    orders: tuple[int, ...] = tuple(range(1, 11))
    order_strings: int = 300
    alphabets: tuple[int, ...] = (2, 4, 5, 20, 60, 1000)
    alphabet_strings: int = 300
    alphabet_length: int = 60
    partitions: tuple[int, ...] = (1, 2, 4, 8, 16)
    partition_lengths: tuple[int, ...] = (360, 1080)
    partition_strings: int = 128
    features: int = 2000
    features_length: int = 180
    pools: tuple[int, ...] = (10_000, 100_000, 249_000)
    training: int = 100
    variants: int = 120
    nodes: int = 100
    gpu_counts: tuple[int, ...] = (50, 200, 1000, 4000)
    gpu_pool: tuple[int, int] = (100_000, 200)
    gpu_lengths: tuple[int, ...] = (360, 1080)
    gpu_strings: int = 128
    fit: tuple[int, int] = (400, 5)
    fit_interpolated: tuple[int, int] = (200, 10)

    def quick(self) -> Settings:
        """The same sections, as small as they can be: to try the command, not to measure."""
        return replace(
            self,
            rounds=1,
            sweep_rounds=1,
            gram=40,
            gauche=(6, 4),
            gauche_many=20,
            memory=60,
            gauche_memory=4,
            counts=(10, 30),
            lengths=(10, 20),
            length_strings=6,
            orders=(1, 5, 10),
            order_strings=12,
            alphabets=(2, 20, 1000),
            alphabet_strings=8,
            alphabet_length=12,
            partitions=(1, 2, 4),
            partition_lengths=(40,),
            partition_strings=6,
            features=20,
            features_length=24,
            pools=(30,),
            training=5,
            variants=9,
            nodes=9,
            gpu_counts=(10,),
            gpu_pool=(30, 5),
            gpu_lengths=(30,),
            gpu_strings=6,
            fit=(12, 2),
            fit_interpolated=(14, 2),
        )

    def to_json(self) -> dict[str, Any]:
        """All values as JSON has them."""
        return dict(json.loads(json.dumps(asdict(self))))
