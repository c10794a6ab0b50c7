"""Molecules of section 4.6.4: every step sees its own candidates, and all methods see the same ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seqopt.bench.boss import molecules
from seqopt.bench.boss.report import molecules as table_of
from seqopt.bench.boss.runs import Job, check, initial_strings, work
from seqopt.bench.boss.tasks import TASKS
from seqopt.spaces import CandidateSet

pytestmark = pytest.mark.usefixtures("own_process")

STRINGS = ["C" * length + end for length in range(1, 11) for end in ("O", "N", "F", "Cl", "C(=O)O", "C#N", "OC")]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> tuple[CandidateSet, np.ndarray]:
    """Seventy molecules in place of ZINC, of which a run sees 4 + 3 x 6."""
    space = CandidateSet(STRINGS, kind="molecule")
    scores = np.array([len(string) + string.count("O") for string in STRINGS], dtype=float)
    monkeypatch.setattr("seqopt.bench.zinc.zinc", lambda: (space, scores))
    for name, number in (("INITIAL", 4), ("STEPS", 3), ("FRESH", 6)):
        monkeypatch.setattr(molecules, name, number)
    monkeypatch.setattr(molecules.FreshCandidates.__init__, "__defaults__", (4, 6))
    monkeypatch.setitem(TASKS, "molecules", replace(TASKS["molecules"], initial=4, steps=3))  # type: ignore[misc]
    molecules.drawn.cache_clear()
    yield space, scores
    molecules.drawn.cache_clear()


@pytest.mark.parametrize("method", ["boss", "fresh", "random"])
def test_each_step_chooses_among_its_own_candidates(method: str) -> None:
    run = work(Job("molecules", method, 1))
    drawn = list(molecules.candidates(1).strings)
    assert len(drawn) == len(set(drawn)) == 4 + 3 * 6
    assert run["initial"] == drawn[:4] == initial_strings("molecules", 1)
    if method != "random":
        for step, string in enumerate(run["chosen"]):
            assert string in drawn[4 + 6 * step : 10 + 6 * step]
    assert len(run["chosen"]) == 3
    check(run)


def test_boss_takes_the_candidate_of_largest_expected_improvement() -> None:
    from scipy import stats

    from seqopt.strategies import maximum_likelihood_gp

    run = work(Job("molecules", "boss", 2, steps=1))
    space = molecules.candidates(2)
    gp = maximum_likelihood_gp()
    gp.bind(space)
    keys = [space.key(string) for string in run["initial"]]
    gp.fit(keys, run["values"][:4], rng=np.random.default_rng([2, 0]))
    mean, std = gp.predict(space.keys[4:10])
    gamma = (mean - max(run["values"][:4])) / std
    improvement = std * (gamma * stats.norm.cdf(gamma) + stats.norm.pdf(gamma))
    assert run["chosen"] == [space[4 + int(np.argmax(improvement))]]


def test_seeds_have_candidates_of_their_own_and_ranks_count_all_molecules(few) -> None:
    assert list(molecules.candidates(0).strings) != list(molecules.candidates(1).strings)
    _, scores = few
    assert molecules.rank_of(scores.max()) == 1
    assert molecules.rank_of(np.sort(scores)[-2]) == 1 + (scores > np.sort(scores)[-2]).sum()
    runs = [work(Job("molecules", "random", seed)) | {"suggest_seconds": 1.0} for seed in range(2)]
    table = table_of({"random": runs})
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["runs"] == "2"
    best = sorted(molecules.rank_of(max(run["values"])) for run in runs)
    assert row["rank in ZINC"] == f"{np.median(best):,.0f} ({best[0]}-{best[1]})"


def test_molecules_that_an_autoencoder_cannot_read_leave_the_steps_of_the_others_as_they_are() -> None:
    class Reader:
        def unsupported(self, keys: list[str]) -> dict[int, str]:
            return dict.fromkeys([index for index, key in enumerate(keys) if "N" in key], "has nitrogen")

    drawn = ["C", "CN", "CC", "CCC", "CCN", "CCCC", "CCCCN", "CCO", "CCCO", "NCN", "O", "CO"]
    space = CandidateSet(drawn, kind="molecule")
    kept, left_out = molecules.readable(space, Reader())  # type: ignore[arg-type]
    assert left_out == [1, 4, 6, 9]
    assert kept.strings == [molecule for molecule in drawn if "N" not in molecule]
    whole, part = molecules.FreshCandidates(3, 3), molecules.FreshCandidates(3, 3, left_out=left_out)
    for step in range(3):
        expected = [drawn[index] for index in whole.of_step(3 + step)]
        found = [kept.strings[index] for index in part.of_step(2 + step)]
        assert found == [molecule for molecule in expected if "N" not in molecule]
