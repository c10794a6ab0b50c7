"""Where to put two warehouses: a day of orders, simulated (section D.3.4 of the thesis).

Orders arrive from 8 to 17 o'clock as a Poisson process of 0.3 a minute, over a square whose sides are 30 km, with
density proportional to 1.6 - (|x - 0.8| + |y - 0.8|) in units of the side. The closer warehouse serves an order with
one of its ten trucks, or queues it until one is back. Trucks drive along x and y only, at 30 km/h; to load takes an
exponential time of mean 5 minutes and to unload one of mean 10. Score: the share of orders that are delivered
(unloaded) within 60 minutes of their arrival, in percent.

The thesis runs the code of the SimOpt library, which is not repeated here: this is written from the text, and what
the text leaves open is our reading (loading begins when a truck is free; a truck is back after unloading and the way).
Numbers need not be SimOpt's.

References:
    Pasupathy, R., Ghosh, S. (2013). Simulation optimization: A concise overview and implementation guide. INFORMS
        TutORials (facility allocation).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RATE = 0.3
MINUTES = 540.0
SIDE_MINUTES = 60.0
TRUCKS = 10
LOADING, UNLOADING = 5.0, 10.0
IN_TIME = 60.0
PEAK = 0.8
DENSITY = 1.6
"""See above; times in minutes, SIDE_MINUTES for driving along a side."""


@dataclass(frozen=True)
class Day:
    """The orders of a day.

    Attributes:
        arrivals: In minutes, ascending, ``n``.
        places: In units of the side, ``n x 2``.
        loading: Minutes, ``n``.
        unloading: Minutes, ``n``.
    """

    arrivals: FloatArray
    places: FloatArray
    loading: FloatArray
    unloading: FloatArray


def day_of(rng: np.random.Generator) -> Day:
    """A random day."""
    count = int(rng.poisson(RATE * MINUTES))
    arrivals = np.sort(rng.uniform(0.0, MINUTES, count))
    places = np.empty((0, 2))
    while len(places) < count:
        drawn = rng.random((4 * count, 2))
        kept = DENSITY * rng.random(len(drawn)) < DENSITY - np.abs(drawn - PEAK).sum(-1)
        places = np.concatenate([places, drawn[kept]])
    return Day(arrivals, places[:count], rng.exponential(LOADING, count), rng.exponential(UNLOADING, count))


def share_in_time(warehouses: FloatArray, day: Day) -> float:
    """Percent of a day's orders that are delivered within the hour.

    Args:
        warehouses: ``2 x 2``, in units of the side.
        day: The orders.

    Returns:
        100 where there are no orders.
    """
    ways = SIDE_MINUTES * np.abs(day.places[:, None] - warehouses).sum(-1)
    closer = ways.argmin(-1)
    in_time = 0
    for warehouse in range(len(warehouses)):
        free = [0.0] * TRUCKS
        own = closer == warehouse
        rows = zip(day.arrivals[own], ways[own, warehouse], day.loading[own], day.unloading[own], strict=True)
        for arrival, way, loading, unloading in rows:
            delivered = max(arrival, free[0]) + loading + way + unloading
            heapq.heapreplace(free, delivered + way)
            in_time += delivered - arrival <= IN_TIME
    return 100.0 * in_time / len(day.arrivals) if len(day.arrivals) else 100.0
