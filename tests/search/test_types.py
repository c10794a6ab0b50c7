"""What mypy says about searches and spaces that do not fit each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import seqopt

ROOT = Path(seqopt.__file__).parent.parent

PROGRAM = """
from collections.abc import Set

import numpy as np

from seqopt import CandidateSet, GrammarSpace, Optimizer, StringSpace, maximize, minimize
from seqopt.scorers import Scoring
from seqopt.search import GeneticSearch, PoolSearch, Proposal, RandomSearch
from seqopt.spaces import Space
from seqopt.strategies import BORE, ModelBased, Strategy


class OwnSearch:
    def propose(
        self, n: int, *, space: StringSpace, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        return []


def count(strings: list[str]) -> list[float]:
    return [0.0 for _ in strings]


def any_space(space: Space) -> None:
    Optimizer(space)
    maximize(count, space, search=RandomSearch())
    Optimizer(space, search=PoolSearch())  # refused


strings, pool, grammar = StringSpace("01", 5), CandidateSet(["A", "B"]), GrammarSpace("arithmetic", 1, 5)
Optimizer(pool, search=PoolSearch())
Optimizer(["A", "B"], search=PoolSearch())
Optimizer(strings, search=GeneticSearch())
Optimizer(grammar, search=GeneticSearch())
Optimizer(strings, search=OwnSearch())
Optimizer(strings, search="auto")
Optimizer(strings)
maximize(count, pool, search=PoolSearch())
maximize(count, "pool.csv", search=PoolSearch())
maximize(count, strings, search=GeneticSearch())
minimize(count, strings, search=GeneticSearch(), budget=3)
minimize(count, strings)
strategy = ModelBased("ssk", search=PoolSearch())
strategies: list[Strategy] = [strategy, BORE(search=OwnSearch())]

Optimizer(strings, search=PoolSearch())  # refused
Optimizer(pool, search=GeneticSearch())  # refused
Optimizer(grammar, search=OwnSearch())  # refused
maximize(count, strings, search=PoolSearch())  # refused
minimize(count, strings, search=PoolSearch())  # refused
minimize(count, strings, search=GeneticSearch(), budget="3")  # refused
ModelBased(search=CandidateSet(["A"]))  # refused


def propose(scoring: Scoring, rng: np.random.Generator) -> None:
    strategy.search.propose(1, space=strings, scoring=scoring, excluded=set(), rng=rng)  # refused
"""


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_mypy_refuses_a_search_of_other_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    said, errors, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", str(program)])
    assert not errors
    found = {int(line) for line in re.findall(r"^\S*program\.py:(\d+): error", said, re.MULTILINE)}
    refused = {number for number, line in enumerate(PROGRAM.splitlines(), start=1) if line.endswith("# refused")}
    assert found == refused, said
