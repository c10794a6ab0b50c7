"""Improving genes codon by codon, under a score for which there is no dynamic program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError


def refine(
    gene: str,
    choices: Sequence[Sequence[str]],
    score: Callable[[Sequence[str]], npt.NDArray[np.float64]],
    *,
    evaluations: int | None = None,
) -> tuple[str, float, int]:
    """The gene after the best change of one codon has been made again and again, until none lowers the score.

    Ties go to the first codon and to the first of its choices, so that a gene always ends at the same one.

    Args:
        gene: In DNA letters, of the codons in ``choices``.
        choices: The codons that are allowed at each position.
        score: From genes to numbers; less is better.
        evaluations: Genes scored at most; `None` for any number. A round is not begun that would go beyond.

    Returns:
        The gene, its score, and the number of genes scored.

    Raises:
        InputError: If the gene does not fit the choices.

    Example:
        >>> from seqopt.objectives import GCContent
        >>> refine("TTAGGG", [["TTA", "CTC"], ["GGG", "GGA"]], GCContent())
        ('TTAGGA', 0.3333333333333333, 5)
    """
    codons = [gene[start : start + 3] for start in range(0, len(gene), 3)]
    if len(codons) != len(choices) or any(
        codon not in allowed for codon, allowed in zip(codons, choices, strict=False)
    ):
        raise InputError(f"the gene {gene[:40]!r} does not have one of the allowed codons at each position")
    best = float(score([gene])[0])
    spent = 1
    while True:
        changed = [
            "".join([*codons[:at], other, *codons[at + 1 :]])
            for at, allowed in enumerate(choices)
            for other in allowed
            if other != codons[at]
        ]
        if not changed or (evaluations is not None and spent + len(changed) > evaluations):
            return gene, best, spent
        scores = np.asarray(score(changed), dtype=np.float64)
        spent += len(changed)
        lowest = int(np.nanargmin(scores)) if np.isfinite(scores).any() else 0
        if not scores[lowest] < best:
            return gene, best, spent
        gene, best = changed[lowest], float(scores[lowest])
        codons = [gene[start : start + 3] for start in range(0, len(gene), 3)]
