"""The comparison of one asked string: medians and ratios, and the values that are told."""

from __future__ import annotations

from seqopt.bench.ask import table, values_of


def test_values_are_counts_of_the_pattern_with_noise() -> None:
    assert values_of(["AXXC", "AXXXC", "ACAC", "AAC", "CA"], [0, 0, 0, 0, 1.0]) == [1.0, 0.0, 2.0, 2.0, 0.3]


def test_values_of_halves_depend_on_the_first_half_alone() -> None:
    strings = ["AACGAAAA", "CCGTAAAA", "ACGTCCCC"]
    assert values_of(strings, [0, 1.0, 0], half=True) == [1.25, -2.4, 0.0]


def test_the_table_has_ratios_of_medians() -> None:
    runs = [
        {"surrogate": "ssk", "version": version, "seconds": seconds, "processor": 1.0, "memory": 10.0}
        for version, times in {"this": [3.0, 1.0, 9.0], "other": [2.0, 2.0, 50.0]}.items()
        for seconds in times
    ]
    lines = table(runs).splitlines()
    assert "| ssk | s | 2 | 3 | 1.50 |" in lines
    assert "| ssk | MB more at the peak | 10 | 10 | 1.00 |" in lines
    alone = table([run for run in runs if run["version"] == "this"])
    assert "| ssk | s |  | 3 |  |" in alone
