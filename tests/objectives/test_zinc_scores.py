"""Scores of ZINC 250k, computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqopt.datasets import cache_dir
from seqopt.objectives import penalized_logp, zinc_scores
from seqopt.objectives.zinc_scores import penalized_logp_of_zinc


def test_scores_are_those_of_the_objective_and_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    strings = ["CCO", "C1CCCCCCC1", "c1ccc2ccccc2c1"]
    monkeypatch.setattr(zinc_scores, "load_zinc250k", lambda: strings)
    expected = penalized_logp(strings)
    assert np.array_equal(penalized_logp_of_zinc(), expected)
    assert len(list(cache_dir().iterdir())) == 1

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(zinc_scores, "map_strings", refuse)
    assert np.array_equal(penalized_logp_of_zinc(), expected)
    with pytest.raises(AssertionError, match="computed again"):
        penalized_logp_of_zinc(ring="sssr")
