"""All genes of the short protein."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench.boss import genes
from seqopt.bench.boss.tasks import TASKS


@pytest.fixture
def three_genes(monkeypatch, tmp_path):
    """Three genes in the place of all, and a cache of its own."""
    some = ["ACTATTAAAGAAAATATTTTTGGTGTTTCT", "ACTATTAAAGAAAATATTTTTGGTGTTTCC", "GGGAAATCCC"]

    class Few:
        def enumerate(self):
            return iter(some)

    task = TASKS[genes.SMALL]
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(genes, "TASKS", {genes.SMALL: type(task)(**(vars(task) | {"space": Few}))})
    return some


def test_energies_are_computed_once(three_genes, monkeypatch) -> None:
    told = []
    first = genes.all_energies(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
    assert first.tolist() == TASKS[genes.SMALL].objective(0)(three_genes).tolist()
    monkeypatch.setattr(genes, "map_strings", None)  # from here on only the cache can answer
    assert np.array_equal(genes.all_energies(), first)
    three_genes[0] = three_genes[1]
    with pytest.raises(TypeError):
        genes.all_energies()
