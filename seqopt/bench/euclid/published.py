"""Overheads that the thesis prints, in seconds a step: tables 5.7.1 and 5.7.2."""

from __future__ import annotations

from collections.abc import Mapping

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "currin": {"gibbon": 4.0, "mumbo": 13.7},
    "hartmann3": {"gibbon": 9.9, "mumbo": 18.6},
    "hartmann6": {"gibbon": 50.2, "mumbo": 79.9},
    "borehole": {"gibbon": 46.1, "mumbo": 51.5},
    "shekel-1": {"ei": 0.2, "mes": 0.5, "nei": 3.5, "kg": 13.0, "gibbon-one": 0.6},
    "ackley-1": {"ei": 0.2, "mes": 0.5, "nei": 3.0, "kg": 22.0, "gibbon-one": 0.8},
    "hartmann6-1": {"ei": 0.8, "mes": 1.0, "nei": 8.9, "kg": 66.6, "gibbon-one": 1.5},
    "shekel-5": {"dpp-ei": 0.8, "lp-ei": 1.4, "lp-mes": 2.9, "nei": 21.3, "kg": 58.1, "gibbon-one": 5.0},
    "ackley-5": {"dpp-ei": 0.8, "lp-ei": 2.3, "lp-mes": 3.3, "nei": 23.4, "kg": 53.0, "gibbon-one": 5.8},
    "hartmann6-5": {"dpp-ei": 1.2, "lp-ei": 2.9, "lp-mes": 3.5, "nei": 43.0, "kg": 103.4, "gibbon-one": 13.3},
}
"""By task and method; the whole overhead, fits included, on four cores of a 2.3 GHz Xeon."""
