"""Genes for E. coli and human cells: exact optima beside DNA Chisel and the most frequent codons.

Twenty proteins, three of ``data/test_proteins.fasta`` and random ones with the composition of UniProtKB, are written
for two hosts under the same constraints: no site of EcoRI, BamHI or BsaI on either strand, no run of six of one base,
GC content between 0.35 and 0.65 in every 50 bases. What is maximised is the codon adaptation index, by the same tables.
All genes are judged by the same code, that of seqopt; DNA Chisel judges those that it made by its own, too. It is left
out, and said so, where it is not installed (``pip install 'seqopt[chisel]'``); what is stored of it stands. The energy
with which each gene folds is given, which nothing here looks at.

With ``--search`` our search for the least folding energy stands beside the exact optimum instead, for random proteins.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.gene_energies import EVALUATIONS, Energies, energies_of, search_runs, search_table
from seqopt.bench.gene_energies import LENGTHS as LENGTHS_SEARCHED
from seqopt.bench.records import Run, append_record, read_records, run_key
from seqopt.bench.runner import header, machine_line, replace_section
from seqopt.datasets import Protein, read_proteins
from seqopt.utils.resources import data_path

if TYPE_CHECKING:
    from seqopt.objectives import CodonAdaptationIndex
    from seqopt.spaces import CodonSpace

FIELDS = ("protein", "host", "method")
"""What tells runs apart."""

HOSTS: Mapping[str, str] = {"e_coli": "e_coli", "human": "h_sapiens"}
"""Organisms, and what DNA Chisel calls them."""

METHODS: Mapping[str, str] = {
    "exact": "seqopt, exact",
    "frequent": "most frequent codons",
    "chisel": "DNA Chisel",
}

SITES = ("EcoRI", "BamHI", "BsaI")
RUN, WINDOW, LOW, HIGH = 5, 50, 0.35, 0.65

NATURAL = ("thesis-60", "thesis-121", "abl1-1130")
"""Proteins of ``data/test_proteins.fasta`` that are compared; the spike is as long as the longest."""

LENGTHS = (50, 60, 75, 90, 110, 130, 160, 190, 230, 280, 330, 400, 480, 580, 700, 840, 1000)
"""Residues of the random proteins."""

COMPOSITION: Mapping[str, float] = {
    **{"A": 8.25, "R": 5.52, "N": 4.06, "D": 5.46, "C": 1.38, "Q": 3.93, "E": 6.71, "G": 7.07, "H": 2.27, "I": 5.91},
    **{"L": 9.64, "K": 5.79, "M": 2.41, "F": 3.86, "P": 4.74, "S": 6.65, "T": 5.36, "W": 1.10, "Y": 2.92, "V": 6.85},
}
"""Percent of amino acids in UniProtKB/Swiss-Prot."""


def proteins() -> list[Protein]:
    """The twenty proteins, the shortest first.

    Example:
        >>> [len(protein.sequence) for protein in proteins()][:4], len(proteins())
        ([50, 60, 60, 75], 20)
    """
    drawn = [Protein(f"random-{length}", random_protein(length)) for length in LENGTHS]
    natural = [one for one in read_proteins(data_path("test_proteins.fasta")) if one.name in NATURAL]
    return sorted([*drawn, *natural], key=lambda protein: (len(protein.sequence), protein.name))


def random_protein(length: int) -> str:
    """Methionine and random residues as frequent as in `COMPOSITION`, the same ones each time.

    Example:
        >>> random_protein(6)
        'MGNRPS'
    """
    shares = np.array(list(COMPOSITION.values()))
    rest = np.random.default_rng([length, 24]).choice(list(COMPOSITION), length - 1, p=shares / shares.sum())
    return "M" + "".join(rest)


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table of all runs."""
    parser = argparse.ArgumentParser(prog="seqopt bench genes", description=str(__doc__).split("\n\n")[0])
    names = [protein.name for protein in proteins()]
    parser.add_argument("--proteins", nargs="+", choices=names, default=names, metavar="NAME", help="default: all 20")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--results", type=Path, default=Path("results/genes.jsonl"), help="file of the runs")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument(
        "--energies",
        type=Path,
        help="file of the folding energies of all genes (default: NAME-energies.jsonl beside --results)",
    )
    parser.add_argument(
        "--search", action="store_true", help="our search for the least folding energy beside the exact optimum instead"
    )
    parser.add_argument("--residues", nargs="+", type=int, default=list(LENGTHS_SEARCHED), help="of --search")
    parser.add_argument("--seeds", type=int, default=3, help="of --search (default: %(default)s)")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help="of --search (default: %(default)s)")
    parser.add_argument(
        "--searches", type=Path, default=Path("results/gene-search.jsonl"), help="file of the runs of --search"
    )
    options = parser.parse_args(list(argv))
    if options.search:
        if min(options.residues) < 1 or options.seeds < 1 or options.evaluations < 1:
            parser.error("--residues, --seeds and --evaluations take numbers from 1")
        runs = search_runs(
            options.searches, options.residues, options.seeds, options.evaluations, header(argv, "genes")
        )
        text = search_table(runs)
        print(text)
        replace_section(options.document, "gene-search", text)
        return
    methods = list(options.methods)
    if "chisel" in methods and importlib.util.find_spec("dnachisel") is None:
        print("DNA Chisel is not installed, and left out: pip install 'seqopt[chisel]'")
        methods.remove("chisel")
    record = header(argv, "genes")
    if "chisel" in methods:
        record["versions"]["dnachisel"] = version("dnachisel")
    # What is imported and built at first use is no part of what is measured.
    for method in methods:
        measured(proteins()[0].sequence[:20] * 2, "human", method)
    known = {run_key(run, FIELDS) for run in read_records(options.results, FIELDS)}
    for protein in proteins():
        for host in HOSTS:
            for method in methods if protein.name in options.proteins else ():
                job = {"protein": protein.name, "host": host, "method": method}
                if run_key(job, FIELDS) not in known:
                    found = measured(protein.sequence, host, method)
                    append_record(options.results, {**job, **found, "record": record}, FIELDS)
    runs = read_records(options.results, FIELDS)
    place = options.energies or options.results.with_name(f"{options.results.stem}-energies.jsonl")
    text = table(runs, energies_of((run["gene"] for run in runs), place, record))
    print(text)
    replace_section(options.document, "genes", text)


def measured(protein: str, host: str, method: str) -> dict[str, Any]:
    """The gene that a method makes of a protein, and how it is judged."""
    from seqopt.objectives import CodonAdaptationIndex

    index = CodonAdaptationIndex(host)
    made = {"exact": _exact, "frequent": _frequent, "chisel": _chisel}[method]
    seconds, wall = time.process_time(), time.perf_counter()
    gene, facts = made(protein, host, index)
    return {
        "residues": len(protein),
        "gene": gene,
        "cai": float(index([gene])[0]),
        "violations": violations(_space(protein), gene),
        "seconds": time.process_time() - seconds,
        "wall_seconds": time.perf_counter() - wall,
        **facts,
    }


def _space(protein: str) -> CodonSpace:
    from seqopt.spaces import CodonSpace
    from seqopt.spaces.specifications import GCWindow, LongestRun

    return CodonSpace(
        protein, forbidden=SITES, both_strands=True, constraints=[LongestRun(RUN), GCWindow(WINDOW, LOW, HIGH)]
    )


def violations(space: CodonSpace, gene: str) -> int:
    """Sites, runs and stretches of windows of a gene that are not permitted.

    Example:
        >>> violations(_space("MEFKKKK" * 4), "ATGGAATTCAAAAAAAAAAAA" * 4)
        9
    """
    from seqopt.spaces.codon_scores import occurrences
    from seqopt.spaces.motifs import strands
    from seqopt.spaces.specifications import LongestRun

    found = sum(occurrences(gene, motif) for _, motif in strands(space.forbidden, True))
    for base in LongestRun(RUN).bases:
        found += sum(len(run) > RUN for run in "".join(one if one == base else " " for one in gene).split())
    counts = np.cumsum([0, *(base in "GC" for base in gene)])
    inside = counts[WINDOW:] - counts[: max(len(counts) - WINDOW, 0)]
    outside = (inside < np.ceil(LOW * WINDOW)) | (inside > np.floor(HIGH * WINDOW))
    return found + int((np.diff(outside.astype(int), prepend=0) > 0).sum())


def _exact(protein: str, host: str, index: CodonAdaptationIndex) -> tuple[str, dict[str, Any]]:
    from seqopt.spaces import ExactGenes

    space = _space(protein)
    score = index.codon_score(space)
    assert score is not None
    ranking = ExactGenes(space, score).best()
    return ranking.best.gene, {"how": ranking.method}


def _frequent(protein: str, host: str, index: CodonAdaptationIndex) -> tuple[str, dict[str, Any]]:
    from seqopt.strings.genetic_codes import genetic_code

    synonyms = genetic_code("standard").synonyms
    best = {one: max(codons, key=lambda codon: index.adaptiveness.get(codon, 1)) for one, codons in synonyms.items()}
    return "".join(best[residue] for residue in protein), {}


def _chisel(protein: str, host: str, index: CodonAdaptationIndex) -> tuple[str, dict[str, Any]]:
    """The gene that DNA Chisel makes of the most frequent codons, by its default settings."""
    import dnachisel

    start, _ = _frequent(protein, host, index)
    # Its draws come from numpy's global generator.
    np.random.seed(0)  # noqa: NPY002
    problem = dnachisel.DnaOptimizationProblem(
        start,
        constraints=[
            dnachisel.EnforceTranslation(),
            *(dnachisel.AvoidPattern(f"{site}_site") for site in SITES),
            *(dnachisel.AvoidPattern((RUN + 1) * base) for base in "ACGT"),
            dnachisel.EnforceGCContent(mini=LOW, maxi=HIGH, window=WINDOW),
        ],
        objectives=[dnachisel.MaximizeCAI(species=HOSTS[host])],
        logger=None,
    )
    failed = ""
    try:
        problem.resolve_constraints()
        problem.optimize()
    except dnachisel.NoSolutionError as error:
        failed = str(error).splitlines()[0]
    return problem.sequence, {"passes": bool(problem.all_constraints_pass()), "failed": failed}


def table(runs: Sequence[Run], energies: Energies) -> str:
    """Each protein in a row, by host."""
    lines = []
    by = {(run["protein"], run["host"], run["method"]): run for run in runs}
    for host in HOSTS:
        methods = [name for name in METHODS if any(run["host"] == host and run["method"] == name for run in runs)]
        lines += [
            f"| `{host}`: protein | residues | "
            + " | ".join(f"CAI, {METHODS[name]}" for name in methods)
            + " | energy | violations | processor seconds |",
            "|---|---|" + "---|" * (len(methods) + 3),
        ]
        for protein in dict.fromkeys(run["protein"] for run in runs):
            own = [by.get((protein, host, name)) for name in methods]
            there = [run for run in own if run is not None]
            if not there:
                continue
            cells = (
                *("" if run is None else f"{run['cai']:.4f}" for run in own),
                _each([_folded(run, energies) for run in own], "mfe", ",.1f"),
                _each(own, "violations", "d"),
                _each(own, "seconds", ".2f"),
            )
            lines.append(f"| {protein} | {there[0]['residues']:,} | {' | '.join(cells)} |")
        lines.append("")
    lines.append(
        "CAI: codon adaptation index; that of the most frequent codons is 1, and needs no constraint to be kept. "
        "Energy: minimum free energy in kcal/mol by ViennaRNA's default, which no method looks at. Violations: sites, "
        "runs and stretches of windows that are not permitted; these, energies and processor seconds in the order of "
        "the columns."
    )
    conditions: dict[str, None] = {}
    for run in runs:
        packages = run["record"]["versions"]
        chisel = f"; dnachisel {packages['dnachisel']}" if "dnachisel" in packages else ""
        conditions[
            f"\nMeasured by `{run['record']['command']}` on {machine_line(run['record']['machine'])}{chisel}."
        ] = None
    return "\n".join([*lines, *conditions])


def _folded(run: Run | None, energies: Energies) -> Run | None:
    return None if run is None else {"mfe": energies[run["gene"]]}


def _each(runs: Sequence[Run | None], field: str, form: str) -> str:
    return " / ".join("-" if run is None else format(run[field], form) for run in runs)
