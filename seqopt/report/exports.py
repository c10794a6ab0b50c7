"""What a search found, in the files that the next tool reads: FASTA for genes, ranked tables for genes and formulas.

Each file is written anew from ``evaluations.csv``, at any time while a run lasts or afterwards.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from seqopt.datasets.genbank import Construct, genbank
from seqopt.objectives.expressions import LARGEST_ERROR
from seqopt.objectives.formulas import FormulaData, pareto
from seqopt.report.results import Run, ranked, read_run, terms_of
from seqopt.utils.files import write_atomically

BEST_FASTA, BEST_CSV = "best.fasta", "best.csv"
GENES_FASTA, GENES_CSV, EXPRESSIONS_CSV = "genes.fasta", "genes.csv", "expressions.csv"
GENES_GENBANK = "genes.gb"

TO_RNA = str.maketrans("Tt", "Uu")

FASTA_WIDTH = 60
"""Bases on a line: twenty codons."""


def write_genes(
    run_folder: str | os.PathLike[str], name: str, *, rna: bool = False, construct: Construct | None = None
) -> pd.DataFrame:
    """Write ``genes.fasta`` and ``genes.csv``, and ``genes.gb`` if asked for: every gene that was measured, best first.

    A record of the FASTA file is headed ``>NAME_1 rank=1 mfe=-10.2 kcal/mol``: identifier, rank, and value with its
    unit.

    Args:
        run_folder: The folder of a run.
        name: What the genes are called; blanks become underscores.
        rna: Write U for T.
        construct: What the genes stand in: then a GenBank file is written, too.

    Returns:
        The table of ``genes.csv``: ``rank`` (from 1), ``name``, ``value``, of a weighted sum one column for each score,
        ``gc`` (fraction of bases that are G or C),
        ``batch`` (0 for the initial design), ``number`` (of the evaluation), ``predicted_mean`` and ``predicted_std``
        (empty where no model chose the gene), ``gene``.

    Raises:
        RunFolderError: If the folder holds no evaluations.
        OSError: If a file cannot be written.
    """
    run = read_run(run_folder)
    best = ranked(run.evaluations, run.direction).reset_index(drop=True)
    identifier = _word(name)
    table = pd.DataFrame(
        {
            "rank": best.index + 1,
            "name": [f"{identifier}_{rank}" for rank in best.index + 1],
            "value": best["value"],
            **{term.column: best[term.column] for term in terms_of(run.settings) if term.column in best},
            "gc": [round(gc_fraction(gene), 4) for gene in best["key"]],
            **_origin(best),
            # As all genes are written, in whatever case or letters a known one was given.
            "gene": best["key"],
        }
    )
    if rna:
        table["gene"] = [gene.translate(TO_RNA) for gene in table["gene"]]
    rows = table.to_dict("records")
    headed = [(f"rank={row['rank']} {_measured(run, row['value'])}", row) for row in rows]
    write_atomically(run.folder / GENES_FASTA, fasta((f"{row['name']} {facts}", row["gene"]) for facts, row in headed))
    if construct is not None:
        records = [genbank(row["name"], f"{row['name']} {facts}", row["gene"], construct) for facts, row in headed]
        write_atomically(run.folder / GENES_GENBANK, "".join(records))
    write_atomically(run.folder / GENES_CSV, table.to_csv(index=False))
    return table


def write_best_genes(
    folder: str | os.PathLike[str], runs: Iterable[tuple[str, Path]], *, rna: bool = False
) -> pd.DataFrame:
    """Write ``best.fasta`` and ``best.csv``: the best gene of each of several runs.

    Args:
        folder: Where the files are written.
        runs: For each run the name of its protein and its folder, which may hold no run yet.
        rna: Write U for T.

    Returns:
        The table of ``best.csv``: ``protein``, ``bases``, ``evaluated`` (genes), ``value``, ``gc``, ``folder`` and
        ``gene``, in the order of the runs; those without a measured gene are left out.

    Raises:
        OSError: If a file cannot be written.
    """
    rows: list[dict[str, Any]] = []
    records: list[tuple[str, str]] = []
    for name, run_folder in runs:
        if not (run_folder / "evaluations.csv").exists():
            continue
        run = read_run(run_folder)
        for row in ranked(run.evaluations, run.direction).head(1).to_dict("records"):
            gene = row["key"].translate(TO_RNA) if rna else row["key"]
            records.append((f"{_word(name)} {_measured(run, row['value'])}", gene))
            rows.append(
                {
                    "protein": name,
                    "bases": len(gene),
                    "evaluated": len(run.evaluations),
                    "value": row["value"],
                    "gc": round(gc_fraction(gene), 4),
                    "folder": run_folder.name,
                    "gene": gene,
                }
            )
    table = pd.DataFrame(rows, columns=["protein", "bases", "evaluated", "value", "gc", "folder", "gene"])
    if rows:
        write_atomically(Path(folder) / BEST_FASTA, fasta(records))
        write_atomically(Path(folder) / BEST_CSV, table.to_csv(index=False))
    return table


def write_expressions(
    run_folder: str | os.PathLike[str],
    terminals: Callable[[str], int],
    data: FormulaData | None = None,
) -> pd.DataFrame:
    """Write ``expressions.csv``: every formula that was measured, the best first.

    Args:
        run_folder: The folder of a run whose objective is `seqopt.objectives.ExpressionError`.
        terminals: The number of terminals of a formula. With ``data`` it is asked for those that are written, with
            numbers for constants (`seqopt.objectives.formulas.Described.outline`).
        data: The points, to judge formulas by.

    Returns:
        The table of ``expressions.csv``: ``rank`` (from 1), ``score``, ``mse`` (the mean squared error, empty where it
        is undefined or, without ``data``, where the score is at its upper limit, so that it is 1,000 or more),
        ``terminals`` (the length; of ``fitted``, if there is one), ``pareto`` (whether no shorter formula fits as well,
        and none of its length better), ``batch``, ``number``, ``predicted_mean``, ``predicted_std`` and ``expression``.
        With ``data`` there follow ``fitted`` (with numbers for constants), ``r2``, ``held_out_mse``, ``held_out_r2``
        and ``pareto_held_out`` (as ``pareto``, by the error on the rows that were held out; all three are empty where
        there are none), ``python``, ``spreadsheet`` and ``latex``.

    Raises:
        RunFolderError: If the folder holds no evaluations.
        OSError: If the file cannot be written.
    """
    run = read_run(run_folder)
    best = ranked(run.evaluations, run.direction).reset_index(drop=True)
    described = None if data is None else [data.describe(text) for text in best["string"]]
    lengths = list(map(terminals, best["string"] if described is None else [one.outline for one in described]))
    errors = (
        [mean_squared_error(score) for score in best["value"]] if described is None else [one.mse for one in described]
    )
    table = pd.DataFrame(
        {
            "rank": best.index + 1,
            "score": best["value"],
            "mse": errors,
            "terminals": lengths,
            "pareto": pareto(lengths, errors, 0.0 if data is None else data.negligible),
            **_origin(best),
            "expression": best["string"],
        }
    )
    if data is not None and described is not None:
        for name in ("fitted", "r2", "held_out_mse", "held_out_r2"):
            table[name] = [getattr(one, name) for one in described]
        unseen = pareto(lengths, [one.held_out_mse for one in described], data.negligible)
        table["pareto_held_out"] = math.nan if data.held_out is None else unseen
        for name in ("python", "spreadsheet", "latex"):
            table[name] = [getattr(one, name) for one in described]
    write_atomically(run.folder / EXPRESSIONS_CSV, table.to_csv(index=False))
    return table


def mean_squared_error(score: float) -> float:
    """The mean squared error behind log(1 + min(MSE, 1000)); NaN where it is 1,000 or more, or undefined.

    Example:
        >>> round(mean_squared_error(math.log(1 + 0.25)), 12), mean_squared_error(math.log(1001))
        (0.25, nan)
    """
    return math.nan if score >= math.log1p(LARGEST_ERROR) else math.expm1(score)


def gc_fraction(gene: str) -> float:
    """Fraction of the letters that are G or C.

    Example:
        >>> gc_fraction("ATGC"), gc_fraction("augc")
        (0.5, 0.5)
    """
    return sum(gene.upper().count(base) for base in "GC") / len(gene)


def fasta(records: Iterable[tuple[str, str]]) -> str:
    """Headers and sequences in FASTA format, `FASTA_WIDTH` letters on a line.

    Example:
        >>> print(fasta([("first", 61 * "A")]), end="")
        >first
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        A
    """
    lines: list[str] = []
    for header, sequence in records:
        lines.append(f">{header}")
        lines += [sequence[start : start + FASTA_WIDTH] for start in range(0, len(sequence), FASTA_WIDTH)]
    return "".join(f"{line}\n" for line in lines)


def _word(name: str) -> str:
    """A name as an identifier of a FASTA record, which ends at the first blank."""
    return "_".join(name.split()) or "gene"


def _measured(run: Run, value: float) -> str:
    unit = run.settings.get("unit")
    return f"{_word(str(run.settings.get('objective') or 'value'))}={value!r}{f' {unit}' if unit else ''}"


def _origin(best: pd.DataFrame) -> dict[str, pd.Series]:
    """When and why each row was evaluated."""
    return {
        "batch": best["batch"].astype(int),
        "number": best["number"].astype(int),
        "predicted_mean": best["predicted_mean"],
        "predicted_std": best["predicted_std"],
    }
