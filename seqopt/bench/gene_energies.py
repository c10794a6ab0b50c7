"""Folding energies of genes: of stored designs, and of our search beside the exact optimum.

Energies of designs are computed once for each gene and stored beside the runs, so that runs of a program that is not
installed keep theirs. The search is that of `seqopt.maximize` with its defaults, for the energy without dangling ends,
of which `seqopt.folding.ExactFolding` gives the least over all genes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from seqopt.bench.records import Run, append_record, read_records, run_key
from seqopt.bench.runner import machine_line, with_error
from seqopt.utils.cache import digest

ENERGY_FIELDS = ("gene",)
"""What energies are known by: a digest of the gene."""

SEARCH_FIELDS = ("residues", "seed", "evaluations")
"""What tells searches apart."""

LENGTHS = (10, 20, 40, 60, 100)
"""Residues of the random proteins that are searched for."""

EVALUATIONS = 100

Energies = dict[str, float]
"""Minimum free energies in kcal/mol by gene."""


def energies_of(genes: Iterable[str], path: Path, record: dict[str, Any]) -> Energies:
    """Minimum free energies by ViennaRNA's default, those that are not stored computed and added to the file.

    Args:
        genes: In DNA letters.
        path: A file of energies.
        record: How what is added was made.
    """
    from seqopt.objectives import MinimumFreeEnergy

    stored = {run["gene"]: float(run["mfe"]) for run in read_records(path, ENERGY_FIELDS)}
    score = MinimumFreeEnergy()
    record = {**record, "versions": {**record["versions"], "viennarna": version("viennarna")}}
    found = {}
    for gene in dict.fromkeys(genes):
        key = digest([gene])[:24]
        if key not in stored:
            stored[key] = float(score([gene])[0])
            append_record(path, {"gene": key, "mfe": stored[key], "record": record}, ENERGY_FIELDS)
        found[gene] = stored[key]
    return found


def search_runs(
    path: Path, lengths: Sequence[int], seeds: int, evaluations: int, record: dict[str, Any]
) -> Sequence[Run]:
    """All searches of a file, those that are missing done first."""
    known = {run_key(run, SEARCH_FIELDS) for run in read_records(path, SEARCH_FIELDS)}
    record = {**record, "versions": {**record["versions"], "viennarna": version("viennarna")}}
    for seed in range(seeds):
        for residues in lengths:
            job = {"residues": residues, "seed": seed, "evaluations": evaluations}
            if run_key(job, SEARCH_FIELDS) not in known:
                append_record(path, {**job, **searched(residues, seed, evaluations), "record": record}, SEARCH_FIELDS)
    return read_records(path, SEARCH_FIELDS)


def searched(residues: int, seed: int, evaluations: int) -> dict[str, Any]:
    """What a search for the least energy of a random protein finds, and what there is to be found."""
    from seqopt import maximize
    from seqopt.bench.genes import random_protein
    from seqopt.folding import ExactFolding
    from seqopt.spaces import CodonSpace

    protein = random_protein(residues)
    folding = ExactFolding(protein, threads=1)
    started = time.process_time()
    least = folding.optimum.energy
    exact_seconds = time.process_time() - started

    def energy(genes: Sequence[str]) -> np.ndarray:
        return np.array(folding.energies_of(genes))

    started = time.process_time()
    result = maximize(energy, CodonSpace(protein), budget=evaluations, seed=seed, direction="minimize")
    seconds = time.process_time() - started
    values = [float(value) for value in result.evaluations["value"]]
    return {
        "found": result.best_value,
        "gene": result.best_string,
        "random": min(values[: len(values) // 5]),
        "least": least,
        "optimum": folding.optimum.gene,
        "seconds": seconds,
        "exact_seconds": exact_seconds,
    }


def search_table(runs: Sequence[Run]) -> str:
    """What searches find beside the optimum, by protein and evaluations."""
    lines = [
        "| residues | evaluations | runs | after the first fifth | found | exact optimum | share of it | processor "
        "seconds of the search | of the optimum |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for residues, evaluations in sorted({(run["residues"], run["evaluations"]) for run in runs}):
        own = [run for run in runs if (run["residues"], run["evaluations"]) == (residues, evaluations)]
        least = own[0]["least"]
        share = "" if least >= 0 else f"{mean(run['found'] / least for run in own):.0%}"
        lines.append(
            f"| {residues} | {evaluations} | {len(own)} | {with_error([run['random'] for run in own], 2)} | "
            f"{with_error([run['found'] for run in own], 2)} | {least:,.2f} | {share} | "
            f"{mean(run['seconds'] for run in own):,.0f} | {mean(run['exact_seconds'] for run in own):.2f} |"
        )
    lines.append(
        "\nMinimum free energies without dangling ends in kcal/mol, mean and one standard error over seeds; random "
        "proteins. The search is that of `seqopt.maximize` by its defaults, the first fifth random genes."
    )
    for line in dict.fromkeys(
        f"\nMeasured by `{run['record']['command']}` on {machine_line(run['record']['machine'])}; viennarna "
        f"{run['record']['versions']['viennarna']}."
        for run in runs
    ):
        lines.append(line)
    return "\n".join(lines)
