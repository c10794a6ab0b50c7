"""What filters of a campaign cost: the time to compute properties, substructures and alerts of molecules.

Features of random molecules of ZINC are computed by one thread, reading the SMILES included, several times in turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqopt.bench.runner import header, machine_line, replace_section
from seqopt.datasets import load
from seqopt.utils.files import write_atomically

FEATURES = {
    "reading the SMILES": (),
    "`MW`, `rings` and all other counts": (
        *("property MW", "property HBD", "property HBA", "property rings", "property aromatic_rings"),
        *("property heavy_atoms", "property heteroatoms", "property fsp3", "property charge", "property TPSA"),
    ),
    "`rotatable_bonds`": ("property rotatable_bonds",),
    "a substructure": ("smarts c1ccncc1",),
    "`logP`": ("property logP",),
    "`SA`": ("property SA",),
    "`QED`": ("property QED",),
    "alerts: BRENK": ("alerts BRENK",),
    "alerts: NIH": ("alerts NIH",),
    "alerts: PAINS": ("alerts PAINS",),
}
"""What is timed, by its label."""

ALL = 249_456
"""Molecules of ZINC, which the last column is for."""


def main(argv: Sequence[str]) -> None:
    """Measure, and write the table and the raw times."""
    from seqopt.filters.properties import measure

    parser = argparse.ArgumentParser(prog="seqopt bench filters", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--molecules", type=int, default=2000, help="random molecules (default 2000)")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="draws the molecules (default 0)")
    parser.add_argument("--results", type=Path, default=Path("results/filters.json"), help="file of the raw results")
    parser.add_argument("--document", type=Path, default=Path("docs/performance.md"), help="where the table goes")
    options = parser.parse_args(list(argv))
    record = header(argv, "filters")
    pool = load("zinc250k").strings
    chosen = np.random.default_rng(options.seed).choice(len(pool), options.molecules, replace=False)
    molecules = [pool[int(index)] for index in chosen]
    for features in FEATURES.values():
        measure(molecules[:20], features)  # catalogues and tables are loaded before the clock starts
    times: dict[str, list[float]] = {label: [] for label in FEATURES}
    for _ in range(options.repeats):
        for label, features in FEATURES.items():
            started = time.perf_counter()
            measure(molecules, features)
            times[label].append(1000 * (time.perf_counter() - started) / len(molecules))
    lines = ["| computed | milliseconds a molecule | minutes for all of ZINC |", "|---|---|---|"]
    for label, found in sorted(times.items(), key=lambda item: float(np.median(item[1]))):
        median = float(np.median(found))
        lines.append(f"| {label} | {median:.2f} | {median * ALL / 60_000:.1f} |")
    lines.append(
        f"\nMedians of {options.repeats} rounds over {options.molecules:,} random molecules (seed {options.seed}), one "
        f"thread, reading included; {ALL:,} molecules extrapolated. {machine_line(record['machine'])}; "
        f"rdkit {record['versions']['rdkit']}."
    )
    print("\n".join(lines))
    replace_section(options.document, "filters", "\n".join(lines))
    options.results.parent.mkdir(parents=True, exist_ok=True)
    found_all = {"record": record, "seed": options.seed, "molecules": options.molecules, "milliseconds": times}
    write_atomically(options.results, json.dumps(found_all, indent=1) + "\n")
