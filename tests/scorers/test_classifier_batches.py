"""Large batches by a classifier: when it is fitted again, and what is computed of candidates for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from seqopt import CandidateSet, Optimizer
from seqopt.encoding import MorganFingerprint, held
from seqopt.encoding.held import HeldStrings
from seqopt.models.classifiers import LogisticRegression
from seqopt.scorers import diverse
from seqopt.scorers.classifier import ClassifierScoring
from seqopt.search import PoolSearch
from seqopt.strategies import BORE


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
        self.calls = 0
        self.stored_from: float = math.inf

    def __call__(self, strings: Sequence[str]) -> Any:
        self.calls += 1
        self.computed += len(strings)
        rows = np.array([[float(len(string))] for string in strings])
        return rows if self.dense else sparse.csr_array(rows)


def check_rows_three_times(strings: HeldStrings, lengths: Lengths, step: int) -> None:
    for _ in range(3):
        for start in range(0, len(strings), step):
            part = strings[start : start + step]
            rows = part.rows(lengths)
            found = rows if lengths.dense else rows.toarray()
            assert found[:, 0].tolist() == [len(string) for string in part]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("room", "times"), [(1 << 20, 1), (0, 3)])
def test_features_are_computed_once_where_there_is_room(
    dense: bool, room: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "HELD_BYTES", room)
    strings = HeldStrings(["A" * length for length in range(25)])
    lengths = Lengths(dense=dense)
    check_rows_three_times(strings, lengths, step=10)
    assert lengths.computed == 25 * times


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("room", "calls"), [(1 << 20, 3), (0, 9)])
def test_features_of_long_lists_are_asked_for_in_equal_parts(
    dense: bool, room: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "HELD_BYTES", room)
    monkeypatch.setattr(held, "TOGETHER", 10)
    strings = HeldStrings(["A" * length for length in range(25)])
    lengths = Lengths(dense=dense)
    lengths.stored_from = 25
    check_rows_three_times(strings, lengths, step=6)  # some lie in two parts of 8 and 9
    assert lengths.calls == calls
    assert len(strings[3:3]) == 0
    lengths.stored_from = 26  # too short a list to be stored: as asked for
    strings[:2].rows(lengths)
    assert lengths.computed == {1 << 20: 25, 0: 75}[room] + 2


@pytest.mark.parametrize("stored_from", [1, math.inf])
@pytest.mark.parametrize(
    "part", [slice(None, None, 2), slice(None, None, -1), slice(8, 1, -3), slice(4, 4), slice(-3, 99)]
)
def test_slices_of_held_strings_are_those_of_a_list(part: slice, stored_from: float) -> None:
    strings = ["A" * length for length in range(1, 11)]
    lengths = Lengths(dense=True)
    lengths.stored_from = stored_from
    found = HeldStrings(strings)[part]
    assert list(found) == strings[part]
    assert len(found) == len(strings[part])
    if len(found):
        assert found.rows(lengths)[:, 0].tolist() == [len(string) for string in strings[part]]
    assert HeldStrings(strings)[np.int64(3)] == strings[3]


def test_a_diverse_batch_asks_for_the_features_of_a_long_list_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diverse, "BLOCK", 7)
    strings = ["A" * length + "B" * (length % 3) for length in range(1, 40)]
    found = []
    for stored_from in (10, 1_000):
        lengths = Lengths(dense=False)
        lengths.stored_from = stored_from
        classifier = LogisticRegression(lengths)
        labels = np.array([len(string) > 20 for string in strings[:30:3]])
        optimizer = Optimizer(CandidateSet(strings, kind="text"), strategy=BORE(classifier, batch="dpp"), initial=10)
        optimizer.tell(strings[:30:3], labels.astype(float).tolist())
        before = lengths.calls
        found.append(optimizer.ask(4))
        # Once for the fit, and once, or for each block, for the pool.
        assert lengths.calls - before == 1 + (1 if stored_from == 10 else 6)
    assert found[0] == found[1]


@pytest.mark.parametrize("batch", ["refit", "dpp"])
def test_features_of_a_pool_are_computed_once_for_all_steps(batch: str) -> None:
    strings = ["A" * length + "B" * (length % 3) for length in range(1, 40)]
    lengths = Lengths(dense=False)
    optimizer = Optimizer(
        CandidateSet(strings, kind="text"),
        strategy=BORE(LogisticRegression(lengths), batch=batch),
        initial=10,
        batch_size=2,
        seed=0,
    )
    computed = []
    for _ in range(4):
        before = lengths.computed
        asked = optimizer.ask()
        computed.append(lengths.computed - before)
        optimizer.tell(asked, [float(len(string)) for string in asked])
    # Those of the pool, then only what is fitted anew: once or, where each choice counts, twice.
    assert computed[1] >= len(strings)
    assert computed[3] <= 2 * len(optimizer.observations)
    assert computed[3] < len(strings)


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
