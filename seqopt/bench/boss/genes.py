"""The folding energies of all genes of a short protein, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.boss.tasks import TASKS
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings

SMALL = "peptide-10"
"""The protein whose genes are few enough: 55,296."""


def all_energies(name: str = SMALL, *, progress: Progress | None = None) -> npt.NDArray[np.float64]:
    """Minimum free energies in kcal/mol of all genes of a task, in the order in which its space enumerates them.

    They are computed in several processes and kept in the cache folder, by the genes and the version of ViennaRNA.

    Args:
        name: A task of the part ``genes``, small enough to be enumerated.
        progress: Called with the numbers of genes folded and in all, when they are not in the cache.
    """
    space: Any = TASKS[name].space()
    genes = list(space.enumerate())
    file = f"mfe-{digest(genes)[:24]}-viennarna{version('viennarna')}.txt"
    cached = read_cached(file, len(genes))
    if cached is None:
        values = map_strings("seqopt.bench.boss.genes:energies", genes, progress=progress)
        cached = [f"{value:.2f}" for value in values]
        write_cached(file, cached)
    return np.array(cached, dtype=np.float64)


def energies(genes: Sequence[str]) -> list[float]:
    """Minimum free energies as a list, which can be sent as JSON."""
    values: list[float] = TASKS[SMALL].objective(0)(genes).tolist()
    return values
