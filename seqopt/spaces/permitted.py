"""Genes that are known to keep to constraints, so that their children need not be looked at as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

MOST_BASES = 2**24
"""Letters of the genes that are remembered, of which a search mostly holds the same objects."""


class PermittedGenes:
    """A set of genes that forgets all when it is full; what is forgotten is looked at once more.

    It is not copied to other processes.

    Args:
        most: Letters of all genes together.

    Example:
        >>> genes = PermittedGenes(most=8)
        >>> genes.add(["ATGAAA"])
        >>> "ATGAAA" in genes, "ATGAAG" in genes
        (True, False)
        >>> genes.add(["ATGAAG"])
        >>> "ATGAAA" in genes, "ATGAAG" in genes
        (False, True)
    """

    def __init__(self, most: int = MOST_BASES) -> None:
        self._most = most
        self._genes: set[str] = set()
        self._letters = 0
        self._lock = Lock()

    def __contains__(self, gene: str) -> bool:
        return gene in self._genes

    def __reduce__(self) -> tuple[type[PermittedGenes], tuple[int]]:
        return PermittedGenes, (self._most,)

    def add(self, genes: Iterable[str]) -> None:
        """Remember some genes."""
        with self._lock:
            for gene in genes:
                if gene in self._genes:
                    continue
                if self._letters + len(gene) > self._most:
                    # Readers in other threads keep the set that they look at.
                    self._genes, self._letters = set(), 0
                self._genes.add(gene)
                self._letters += len(gene)
