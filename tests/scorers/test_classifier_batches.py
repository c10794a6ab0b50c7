"""Large batches by a classifier: when it is fitted again, and what is computed of candidates for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from seqopt import CandidateSet
from seqopt.encoding import MorganFingerprint, held
from seqopt.encoding.held import HeldStrings
from seqopt.models.classifiers import LogisticRegression
from seqopt.scorers.classifier import ClassifierScoring
from seqopt.search import PoolSearch


class Shortest:
    """Prefers short strings, and remembers what it learned from."""

    def __init__(self) -> None:
        self.fits: list[list[str]] = []

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        return {}

    def fit(self, strings: Sequence[str], labels: npt.NDArray[np.bool_], *, rng: np.random.Generator) -> Shortest:
        self.fits.append([string for string, label in zip(strings, labels, strict=True) if not label])
        return self

    def logits(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([-float(len(string)) for string in strings])

    hyperparameters: dict[str, float] = {}  # noqa: RUF012


def batch_of(size: int) -> tuple[list[str], list[list[str]]]:
    """A batch, and what of it each fit knew."""
    pool = CandidateSet(["A" * length for length in range(1, size + 60)], kind="text")
    classifier = Shortest()
    rng = np.random.default_rng(0)
    scoring = ClassifierScoring(classifier, ["B", "BB"], np.array([True, False]), rng=rng)
    chosen = PoolSearch().propose(size, space=pool, scoring=scoring, excluded=set(), rng=rng)
    return [one.key for one in chosen], [fit[1:] for fit in classifier.fits]


@pytest.mark.parametrize("size", [1, 20, 40])
def test_each_member_of_a_usual_batch_knows_all_before_it(size: int) -> None:
    chosen, fits = batch_of(size)
    assert fits == [chosen[:count] for count in range(size)]


def test_a_large_batch_is_known_but_for_a_twentieth() -> None:
    chosen, fits = batch_of(1_000)
    assert chosen == ["A" * length for length in range(1, 1_001)]
    known = [len(fit) for fit in fits]
    assert fits == [chosen[:count] for count in known]
    assert known[:40] == list(range(40))
    # Just before a fit, what the last one did not know is the most.
    assert all(later - before <= max(1, later // 20) for before, later in itertools.pairwise(known))
    assert 1_000 - known[-1] <= 50
    assert len(fits) < 110


class Lengths:
    """Features that count how often they are computed."""

    name, size = "length", 1

    def __init__(self, *, dense: bool) -> None:
        self.dense = dense
        self.computed = 0

    def __call__(self, strings: Sequence[str]) -> Any:
        self.computed += len(strings)
        rows = np.array([[float(len(string))] for string in strings])
        return rows if self.dense else sparse.csr_array(rows)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("room", "times"), [(1 << 20, 1), (0, 3)])
def test_features_are_computed_once_where_there_is_room(
    dense: bool, room: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "HELD_BYTES", room)
    strings = HeldStrings(["A" * length for length in range(25)])
    lengths = Lengths(dense=dense)
    for _ in range(3):
        for start in range(0, 25, 10):
            part = strings[start : start + 10]
            rows = part.rows(lengths)
            found = rows if dense else rows.toarray()
            assert found[:, 0].tolist() == [len(string) for string in part]
    assert lengths.computed == 25 * times


def test_sparse_tables_teach_what_dense_ones_do() -> None:
    class Dense(LogisticRegression):
        takes_sparse = False

    strings = [start + "C" * length + end for start in ("", "N") for length in range(1, 9) for end in "OFS"]
    weights = np.random.default_rng(0).random(len(strings))
    features = MorganFingerprint(counts=True)
    one, other = (
        kind(features).fit_weighted(strings, weights, np.ones(len(strings)), rng=np.random.default_rng(0))
        for kind in (LogisticRegression, Dense)
    )
    np.testing.assert_allclose(one.logits(strings), other.logits(strings), atol=1e-3)
    assert np.ptp(one.logits(strings)) > 0.1
