"""``seqopt genes``: synonymous genes of one protein or of several."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from seqopt.cli.exact_genes import made_exactly, named, shown_gene, solved, write_solved
from seqopt.cli.gene_options import GeneFiles, GeneOptions
from seqopt.cli.running import (
    Plan,
    check_free,
    check_plan,
    console,
    default_folder,
    note,
    note_opposites,
    origin,
    print_best,
    print_continuation,
    safe_name,
    show_notes,
    watched_search,
)
from seqopt.datasets import Protein, read_proteins
from seqopt.errors import InputError, RunFolderError
from seqopt.evaluation import Direction
from seqopt.objectives import (
    CodonAdaptationIndex,
    LogOf,
    MinimumFreeEnergy,
    Objective,
    WeightedSum,
    by_code,
    check_genes,
    exact_instead,
    exact_score,
    in_context,
    resolve_objective,
)
from seqopt.spaces import CodonSpace
from seqopt.spaces.codons import checked_flank
from seqopt.spaces.populations import described_size

if TYPE_CHECKING:
    from seqopt.models import Surrogate

LONGEST_NAME = 24
"""Residues of a protein that names its genes."""


@dataclass(frozen=True)
class _Task:
    protein: Protein
    space: CodonSpace
    folder: Path


def run_genes(
    source: str,
    objective_spec: str,
    plan: Plan,
    *,
    direction: Direction | None,
    options: GeneOptions,
    representation: str,
    partitions: int | None,
    best: int | None,
    out: Path | None,
    best_asked_for: bool = False,
    files: GeneFiles = GeneFiles(),  # noqa: B008
) -> None:
    """Design genes for each protein, and say what is happening; see ``seqopt genes --help``.

    Args:
        source: A protein or a FASTA file.
        objective_spec: What makes a gene good.
        plan: Of a search.
        direction: Of the objective, where it is not the usual one.
        options: Which genes.
        representation: What the model of a search compares.
        partitions: In how many parts.
        best: How many of the best genes are computed where that can be done exactly; `None` to search all the same.
        out: The folder.
        best_asked_for: Whether that number was given, and is no default.
        files: How genes are written.
    """
    started = time.perf_counter()
    show_notes()
    objective = by_code(resolve_objective(objective_spec), options.code or "standard")
    objective = in_context(
        objective,
        checked_flank(options.upstream or "", "upstream"),
        checked_flank(options.downstream or "", "downstream"),
    )
    if not objective.applies_to("dna"):
        raise InputError(f"the objective {objective.name} is for {objective.strings}, not for genes")
    proteins = proteins_of(source)
    folder = out if out is not None else default_folder(_label(source, proteins), objective_spec)
    # Every protein and every constraint is judged before the first gene is scored.
    spaces = [_space(protein, options, representation) for protein in proteins]
    for protein, space in zip(proteins, spaces, strict=True):
        _check(objective, protein, space)
    folders = [folder] if len(proteins) == 1 else [folder / name for name in folder_names(proteins)]
    if len({protein.name for protein in proteins}) < len(proteins):
        proteins = [replace(protein, name=own.name) for protein, own in zip(proteins, folders, strict=True)]
    tasks = [_Task(*parts) for parts in zip(proteins, spaces, folders, strict=True)]
    goal = direction or objective.direction
    if best is None or plan.known is not None or any(exact_score(objective, space, goal) is None for space in spaces):
        check_plan(plan)
    if plan.known is not None and len(tasks) > 1:
        raise InputError(
            f"--known gives results of one protein, and {source} holds {len(tasks)}: search each by itself, with the "
            "results of its genes"
        )
    if partitions is not None and plan.surrogate != "auto":
        raise InputError(f"--partitions is for the default surrogate: leave it out with --surrogate {plan.surrogate}")
    from seqopt.campaign.run_folders import CAMPAIGN, check_folder, holds_something
    from seqopt.report.exports import BEST_CSV, BEST_FASTA, GENES_CSV, GENES_FASTA, GENES_GENBANK, write_best_genes

    begun = {task.folder for task in tasks if plan.resume and holds_something(task.folder)}
    if plan.resume and not begun:
        raise RunFolderError(f"{folder} holds no run to resume (no {CAMPAIGN}): leave --resume out to start one")
    for task in tasks:
        check_folder(task.folder, task.folder in begun)
        check_free(task.folder, (GENES_FASTA, GENES_CSV, GENES_GENBANK), task.folder in begun)
    if len(tasks) > 1:
        check_free(folder, (BEST_FASTA, BEST_CSV), plan.resume)
    note_opposites(objective, direction)
    if best_asked_for and all(exact_score(objective, space, goal) is None for space in spaces):
        note(
            f"--best is left aside: no exact optimum is known for {objective.name}, which is searched for; --budget is "
            "how many genes are scored"
        )
    if len(tasks) > 1:
        console.print(f"[bold]{len(tasks)} proteins[/bold] from {escape(source)}, one after the other")
    most = 0
    for number, task in enumerate(tasks, start=1):
        if len(tasks) > 1:
            console.print(f"\n[bold]{number}/{len(tasks)}[/bold] ", end="")
        try:
            evaluated = _design(
                task,
                objective,
                replace(plan, resume=task.folder in begun),
                goal,
                partitions=partitions,
                best=best,
                started=time.perf_counter() if len(tasks) > 1 else started,
                files=files,
            )
            most = max(most, evaluated)
        finally:
            if len(tasks) > 1:
                table = write_best_genes(
                    folder, [(task.protein.name, task.folder) for task in tasks[:number]], rna=files.rna
                )
    if len(tasks) > 1:
        _print_summary(folder, table, objective)
    print_continuation(plan, most)


def proteins_of(source: str) -> list[Protein]:
    """The protein that was typed, or those of a FASTA file.

    What names a file, or looks as if it did because of a dot or a slash, is read as a file.
    """
    text = source.strip()
    if os.path.isfile(text) or any(mark in text for mark in (".", "/", os.sep)):
        return read_proteins(text)
    sequence = "".join(text.split()).upper()
    short = len(sequence) <= LONGEST_NAME
    return [Protein(sequence if short else f"{sequence[:LONGEST_NAME]}-{len(sequence)}aa", sequence)]


def folder_names(proteins: list[Protein]) -> list[str]:
    """A different folder name for each protein, after its name, with letters that every file system takes.

    Example:
        >>> folder_names([Protein("sp|P1", "M"), Protein("SP/p1", "MK"), Protein("?", "MR")])
        ['sp-P1', 'SP-p1-2', 'protein']
    """
    names: list[str] = []
    # Some file systems take capital and small letters for the same.
    taken: set[str] = set()
    for protein in proteins:
        plain = safe_name(protein.name)[:60] or "protein"
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _label(source: str, proteins: list[Protein]) -> str:
    return Path(source).name.split(".")[0] if proteins[0].location else proteins[0].name


def _space(protein: Protein, options: GeneOptions, representation: str) -> CodonSpace:
    try:
        return options.space(protein.sequence, representation=representation)
    except InputError as error:
        if protein.location:
            raise InputError(f"{protein.location}: {error}") from error
        if "is not an amino acid" in str(error):
            raise InputError(f"{error}; there is no file {protein.sequence!r} either") from error
        raise


def _check(objective: Objective, protein: Protein, space: CodonSpace) -> None:
    try:
        check_genes(objective, space)
    except InputError as error:
        if protein.location:
            raise InputError(f"{protein.location}: {error}") from error
        raise


def _design(
    task: _Task,
    objective: Objective,
    plan: Plan,
    goal: Direction,
    *,
    partitions: int | None,
    best: int | None,
    started: float,
    files: GeneFiles,
) -> int:
    """Solve or search one space; returns the number of evaluations of a search."""
    from seqopt.report.exports import GENES_CSV, GENES_FASTA

    protein, space, folder = task.protein, task.space, task.folder
    _describe(protein, space)
    warn_of_protein(protein)
    searched = plan.resume and not made_exactly(folder)
    if best is not None and plan.known is None and not searched:
        found = solved(objective, goal, space, best)
        if found is not None:
            write_solved(found, objective, protein, space, plan, goal, folder, best=best, files=files)
            return 0
    check_plan(plan)
    _warn(space, plan)
    _mention_exact_folding(space, objective, goal)
    if best is not None and plan.known is None and not searched:
        _mention_logarithms(space, objective)
    result = watched_search(
        objective,
        space,
        plan,
        goal,
        folder,
        started=started,
        settings={"subject": f"of genes for {protein.name}"},
        export=lambda: files.write(folder, protein.name, space),
        surrogate=_surrogate(space, partitions),
    )
    table = files.write(folder, protein.name, space)
    terms = objective.function.names if isinstance(objective.function, WeightedSum) else ()
    print_best(
        f"Best of {len(table)} genes by {named(objective)}",
        {"value": "right", **dict.fromkeys(terms, "right"), "GC": "right", "batch": "right", "gene": "left"},
        [
            (
                f"{row['value']:,.5g}",
                *(f"{row[term]:,.5g}" for term in terms),
                f"{row['gc']:.2f}",
                origin(row["batch"]),
                shown_gene(row["gene"]),
            )
            for row in table.head(5).to_dict("records")
        ],
    )
    failed = int((result.evaluations["status"] == "failed").sum())
    if failed:
        note(f"{failed} evaluations failed; evaluations.csv says why")
    console.print(
        f"\nAll of them, the best first: {escape(str(folder / GENES_FASTA))} and {GENES_CSV} there; "
        f"open {escape(str(folder / 'report.html'))} to look at them."
    )
    return len(result.evaluations)


def _surrogate(space: CodonSpace, partitions: int | None) -> Surrogate | None:
    if partitions is None:
        return None
    from seqopt.models import default_surrogate

    return default_surrogate(space, partitions=partitions)


def _describe(protein: Protein, space: CodonSpace) -> None:
    residues = len(space.protein)
    code = "" if space.code.number == 1 else f", genetic code {space.code.number} ({space.code.names[0]})"
    kept = space.kept_to
    console.print(
        f"[bold]{escape(protein.name)}[/bold]: {residues:,} residue{'s' if residues > 1 else ''}{code}, "
        f"{described_size(space)} synonymous gene{'s' if space.size > 1 else ''}"
        + (f"; kept to: {escape(', '.join(kept))}" if kept else "")
    )
    for flank, motif in space.motifs_in_flanks():
        note(f"the {flank} bases hold {motif} themselves: genes are kept from it, those bases stay as they are")


def warn_of_protein(protein: Protein) -> None:
    """What is worth a second look of a protein, before its genes are designed."""
    if protein.remark:
        note(f"{protein.location}: {protein.remark}")
    if len(protein.sequence) >= 9 and set(protein.sequence.upper()) <= set("ACGTN"):
        note("these letters could be bases as well as amino acids: give the protein, not the gene, if they are bases")


def _warn(space: CodonSpace, plan: Plan) -> None:
    if plan.initial + (plan.evaluations or 0) > space.size:
        note(
            f"{plan.initial} initial and {plan.evaluations} further evaluations are more than the {space.size:,} "
            "genes: the search ends when all have been scored"
        )


def _mention_exact_folding(space: CodonSpace, objective: Objective, goal: Direction) -> None:
    """Without constraints a search for the least energy is not the best that there is."""
    if space.forbidden or space.gc:
        return
    begin = "--known begins a search from it"
    if isinstance(objective.function, MinimumFreeEnergy) and goal == "minimize":
        note(f"seqopt fold computes the gene of least energy without dangling ends; {begin}")
    if not isinstance(objective.function, WeightedSum):
        return
    sign = 1.0 if goal == "minimize" else -1.0
    energy = {term.objective.name: sign * term.weight for term in objective.function.terms if term.weight}
    folded = energy.pop("mfe", 0.0)
    if folded > 0 and len(energy) == 1:
        ((name, weight),) = energy.items()
        index = next(term.objective.function for term in objective.function.terms if term.objective.name == name)
        if isinstance(index, LogOf) and isinstance(index.index, CodonAdaptationIndex) and weight < 0:
            note(
                f"seqopt fold --cai {index.index.organism} --codon-weight {-weight / folded / space.length:.4g} "
                f"computes the best gene of this sum without dangling ends, its energy weighing 1; {begin}"
            )


def _mention_logarithms(space: CodonSpace, objective: Objective) -> None:
    """Say what to write so that there is an exact optimum, where a geometric mean is all that hinders it."""
    instead = None if space.accept is not None else exact_instead(objective, space)
    if instead is not None:
        note(
            f"{objective.name} is searched for, since geometric means such as cai are no sums over codons: the best "
            f"genes by -o {shlex.quote(instead)}, whose weights are of logarithms, are computed exactly"
        )


def _print_summary(folder: Path, best: Any, objective: Objective) -> None:
    from seqopt.report.exports import BEST_CSV, BEST_FASTA

    print_best(
        f"Best gene of each protein by {named(objective)}",
        {"protein": "left", "bases": "right", "value": "right", "GC": "right", "folder": "left"},
        [
            (str(row.protein), f"{row.bases:,}", f"{row.value:,.5g}", f"{row.gc:.2f}", str(row.folder))
            for row in best.itertuples()
        ],
    )
    console.print(f"\nThey are in {escape(str(folder / BEST_FASTA))} and {BEST_CSV} there.")
