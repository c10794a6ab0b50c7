"""The least folding energy of all genes of a protein, and what it costs to know it.

Each protein is folded exactly (`seqopt.folding.ExactFolding`), or with a beam, in one thread. Its gene is then folded
by ViennaRNA without dangling ends, which has to agree, and with ViennaRNA's default ones; with ``--refine`` it is
improved codon by codon under the default energy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from seqopt.bench.conditions import measured_by
from seqopt.bench.genes import random_protein
from seqopt.bench.records import Run, append_record, read_records, run_key
from seqopt.bench.runner import header, replace_section
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.utils.resources import data_path

FIELDS = ("protein", "beam", "refine")
"""What tells runs apart."""

PROTEINS = ("peptide-10", "thesis-60", "thesis-121")
"""Those of the search benchmark that can be folded in seconds."""

BRANCHED = "CACAGCCTACCTCGATTGAAAAATCGAGGATGGCTAGCTTCGGCTAGCCAAAGGCTGTGA"
"""A sequence that folds into a multiloop."""


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table of all runs."""
    parser = argparse.ArgumentParser(prog="seqopt bench folding", description=str(__doc__).split("\n\n")[0])
    parser.add_argument(
        "--proteins",
        nargs="+",
        default=list(PROTEINS),
        help="proteins of data/test_proteins.fasta, or random-N: N residues as frequent as in UniProtKB, by a seed of "
        "their number; NAME:N for the first N residues (default: %(default)s)",
    )
    parser.add_argument("--beam", type=int, default=None, help="keep so many places (default: all, exactly)")
    parser.add_argument("--refine", action="store_true", help="improve the gene under the default energy")
    parser.add_argument("--results", type=Path, default=Path("results/folding.jsonl"), help="file of the runs")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    options = parser.parse_args(list(argv))
    record = header(argv, "folding")
    record["versions"]["viennarna"] = version("viennarna")
    sequences = {name: sequence_of(name) for name in options.proteins}
    _compile()
    known = {run_key(run, FIELDS) for run in read_records(options.results, FIELDS)}
    for name, sequence in sequences.items():
        job = {"protein": name, "beam": options.beam, "refine": options.refine}
        if run_key(job, FIELDS) not in known:
            append_record(options.results, {**job, **measured(sequence, options), "record": record}, FIELDS)
    text = table(read_records(options.results, FIELDS))
    print(text)
    replace_section(options.document, "folding", text)


def sequence_of(name: str) -> str:
    """A protein of the test file or a random one, or its first residues.

    Example:
        >>> sequence_of("peptide-10:4"), len(sequence_of("random-1273"))
        ('TIKE', 1273)
    """
    found = read_table(data_path("test_proteins.fasta")).columns
    sequences: Mapping[str, str] = dict(zip(found["name"], found["string"], strict=True))
    protein, _, residues = name.partition(":")
    length = protein.removeprefix("random-")
    if length != protein and length.isdecimal() and int(length):
        sequences = {protein: random_protein(int(length))}
    if protein not in sequences or not (residues.isdecimal() or not residues):
        raise InputError(
            f"there is no protein {name!r}: choose {', '.join(sequences)} or random-N, or NAME:N for the first N "
            "residues"
        )
    return sequences[protein][: int(residues) if residues else None]


def measured(sequence: str, options: argparse.Namespace) -> dict[str, Any]:
    """What is known of one protein after folding it."""
    from seqopt.folding import ExactFolding, refine
    from seqopt.objectives import MinimumFreeEnergy

    folding = ExactFolding(sequence, beam=options.beam, threads=1)
    started = time.process_time()
    best = folding.optimum
    seconds = time.process_time() - started
    usual = MinimumFreeEnergy()
    found = {
        "residues": len(sequence),
        "gene": best.gene,
        "energy": best.energy,
        "least_score": folding.least_score,
        "viennarna": folding.energies_of([best.gene])[0],
        "mfe": float(usual([best.gene])[0]),
        "seconds": seconds,
        "memory": folding.memory,
    }
    if options.refine:
        gene, energy, scored = refine(best.gene, folding.choices, usual)
        found["refined"] = {"gene": gene, "mfe": energy, "scored": scored}
    return found


def table(runs: Sequence[Run]) -> str:
    """All runs as a Markdown table."""
    lines = [
        "| protein | residues | kept | least energy, no dangling ends | of the same gene, ViennaRNA | with its default "
        "dangling ends | refined under these | processor seconds | MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        refined = run.get("refined")
        lines.append(
            f"| `{run['protein']}` | {run['residues']:,} | {'all' if run['beam'] is None else run['beam']} | "
            f"{run['energy']:,.2f} | {run['viennarna']:,.2f} | {run['mfe']:,.2f} | "
            f"{'' if refined is None else format(refined['mfe'], ',.2f')} | {run['seconds']:,.1f} | "
            f"{run['memory'] / 2**20:,.0f} |"
        )
    lines.append(
        "\nkcal/mol at 37 degrees Celsius. Kept: places of helices for each end of one; all is exact. Seconds are of "
        "one thread, tracing back included."
    )
    lines.append("\n" + measured_by((run["record"] for run in runs), ["viennarna"]))
    return "\n".join(lines)


def _compile() -> None:
    """Compile before a clock starts everything that is needed, what traces multiloops included."""
    from seqopt.folding import ExactFolding

    codons = [(BRANCHED[at : at + 3],) for at in range(0, len(BRANCHED), 3)]
    for beam in (None, 4):
        _ = ExactFolding(codons, beam=beam, threads=1).optimum
