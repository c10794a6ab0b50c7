"""Whether any gene keeps to some constraints, and if not, which of them exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from seqopt.errors import InputError, IntractableError
from seqopt.spaces.codon_graph import CodonGraph
from seqopt.spaces.motifs import MotifAutomaton
from seqopt.spaces.path_program import PathProgram, optimum
from seqopt.spaces.specifications import ForbiddenMotif, Frame, Specification, cuts_of

SHOWN_OF_FLANK = 20
"""Bases beside the genes that messages show."""

Window = tuple[int, int] | None
"""The least and the greatest number of G and C."""


def gc_bits(window: Window) -> int:
    """Numbers of G and C as the bits of an integer; bit 0 where they do not matter.

    Example:
        >>> bin(gc_bits((1, 2))), gc_bits(None)
        ('0b110', 1)
    """
    return 1 if window is None else (1 << (window[1] + 1)) - (1 << window[0])


def check_feasible(
    frame: Frame,
    forbidden: Sequence[str],
    constraints: Sequence[Specification],
    *,
    both_strands: bool,
    gc: tuple[float, float] | None,
    gc_numbers: Window,
) -> None:
    """Refuse constraints that no gene keeps to, naming as few as exclude each other.

    That is exact. Only where constraints beyond motifs, codons and GC content take more rounds of conditions than
    `seqopt.spaces.path_program.MOST_ROUNDS` it stays open, and nothing is refused.

    Args:
        frame: The genes.
        forbidden: Motifs.
        constraints: Further constraints.
        both_strands: Whether the motifs count on both strands.
        gc: Bounds of GC content, as they were given.
        gc_numbers: What they are in numbers of G and C.

    Raises:
        InputError: If there is no such gene.
    """
    if gc_numbers is not None and gc is not None:
        total = frame.bases
        least = sum(min(map(_gc, choices)) for choices in frame.choices)
        most = sum(max(map(_gc, choices)) for choices in frame.choices)
        if gc_numbers[1] < least or gc_numbers[0] > most:
            raise InputError(
                f"GC content between {gc[0]:g} and {gc[1]:g} is impossible: the genes of this protein "
                f"have between {least / total:.4f} and {most / total:.4f} ({least} to {most} of {total} bases)"
            )
    sites: list[Specification] = [ForbiddenMotif(motif, both_strands) for motif in forbidden]
    for one in [*sites, *constraints]:
        for written, motif in one.motifs():
            index = _forced(frame, MotifAutomaton([motif]))
            if index is not None:
                first = max(index - (len(motif) + 1) // 3, 0)
                by_flank = _forced(replace(frame, upstream=""), MotifAutomaton([motif])) != index
                where = f" {_beside(frame, 'upstream')}" if by_flank else ""
                raise InputError(
                    f"no gene can avoid the motif {written}{where}: every gene holds it by the end of codon "
                    f"{index + 1} ({'-'.join(frame.residues[first : index + 1])})"
                )
    everything: list[Specification] = [*sites, *constraints]
    if _feasible(frame, everything, gc_numbers):
        return
    left, window = everything, gc_numbers
    for one in everything:
        fewer = [other for other in left if other is not one]
        if not _feasible(frame, fewer, window):
            left = fewer
    if window is not None and not _feasible(frame, left, None):
        window = None
    parts = [f"without {one.motif}" if any(one is site for site in sites) else one.text for one in left]  # type: ignore[attr-defined]
    # What stands beside the gene is a constraint, too, where a site reaches across.
    beside = frame
    for side in ("upstream", "downstream"):
        alone = replace(beside, upstream="") if side == "upstream" else replace(beside, downstream="")
        if not _feasible(alone, left, window):
            beside = alone
    parts += [_beside(frame, side) for side in ("upstream", "downstream") if getattr(beside, side)]
    if window is not None and gc is not None:
        parts.append(f"with a GC content between {gc[0]:g} and {gc[1]:g}")
    strand = " (motifs on both strands)" if both_strands and any(one in sites for one in left) else ""
    if len(parts) == 1:
        raise InputError(f"no gene of this protein keeps to this constraint: {parts[0]}{strand}")
    raise InputError(f"these constraints exclude each other, no gene meets all of them: {', '.join(parts)}{strand}")


def _feasible(frame: Frame, constraints: Sequence[Specification], window: Window) -> bool:
    """Whether a gene keeps to all of these, or that could not be settled."""
    choices = frame.permitted(constraints)
    if not all(choices):
        return False
    automaton = MotifAutomaton([motif for one in constraints for _, motif in one.motifs()])
    graph = CodonGraph(choices, automaton, upstream=frame.upstream, downstream=frame.downstream)
    if not graph.feasible or not graph.completions(by_count=window is not None)[0][0] & gc_bits(window):
        return False
    checked = [one for one in constraints if one.checked]
    if not checked:
        return True
    try:
        return optimum(PathProgram(graph, window), partial(cuts_of, frame, checked)) is not None
    except IntractableError:
        return True


def _beside(frame: Frame, side: str) -> str:
    """What stands beside the genes, in words; of many bases those next to them.

    Example:
        >>> from seqopt.strings.genetic_codes import genetic_code
        >>> _beside(Frame((), (), genetic_code(1), upstream="ACGT" * 10, downstream="GG"), "upstream")
        'behind the bases ...ACGTACGTACGTACGTACGT (--upstream)'
    """
    if side == "upstream":
        bases = frame.upstream
        shown = bases if len(bases) <= SHOWN_OF_FLANK else f"...{bases[-SHOWN_OF_FLANK:]}"
        return f"behind the bases {shown} (--upstream)"
    bases = frame.downstream
    shown = bases if len(bases) <= SHOWN_OF_FLANK else f"{bases[:SHOWN_OF_FLANK]}..."
    return f"before the bases {shown} (--downstream)"


def _forced(frame: Frame, automaton: MotifAutomaton) -> int | None:
    """The position at which no gene is left that avoids the motifs, if there is one."""
    states = {automaton.after(frame.upstream)}
    for index, codons in enumerate(frame.choices):
        states = {after for state in states for codon in codons if (after := automaton.step(state, codon)) is not None}
        if not states:
            return index
    return None


def _gc(codon: str) -> int:
    return codon.count("G") + codon.count("C")
