"""Searches whose results are yes or no."""

from __future__ import annotations

import itertools
import json
import logging

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.data import Outcome
from seqopt.errors import InputError
from seqopt.models import BinomialGP, StringGP
from seqopt.spaces import CandidateSet
from seqopt.strategies import BORE, ModelBased, RandomStrategy

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=7)]


def _search(**options: object) -> Optimizer:
    given = {"surrogate": "ngrams", "transform": "yes/no", "initial": 16, "batch_size": 8} | options
    return Optimizer(CandidateSet(WORDS, kind="text"), **given)


def _hit(word: str) -> bool:
    return "abba" in word


def _go(optimizer: Optimizer, batches: int) -> list[int]:
    found = []
    for _ in range(batches):
        strings = optimizer.ask()
        optimizer.tell(strings, [_hit(string) for string in strings])
        found.append(sum(map(_hit, strings)))
    return found


def test_hits_are_found_sooner_than_at_random() -> None:
    total = sum(map(_hit, WORDS))
    found, drawn = [], []
    for seed in range(3):
        found.append(sum(_go(_search(seed=seed), 6)))
        drawn.append(sum(_go(_search(seed=seed, surrogate=None, strategy=RandomStrategy()), 6)))
    assert np.mean(found) > 0.75 * total
    assert np.mean(found) > 1.4 * np.mean(drawn)


def test_it_finds_what_is_no_hit_where_that_is_wanted() -> None:
    optimizer = _search(direction="minimize")
    for _ in range(2):
        strings = optimizer.ask()
        optimizer.tell(strings, [not _hit(string) for string in strings])
    told = optimizer.predict([word for word in WORDS if _hit(word)])[0].mean()
    others = optimizer.predict([word for word in WORDS if not _hit(word)])[0].mean()
    assert told < others  # of a hit, which here is what lacks the motif
    assert sum(map(_hit, optimizer.ask())) >= 3


def test_predictions_are_probabilities() -> None:
    optimizer = _search()
    _go(optimizer, 2)
    batch = optimizer.ask()
    table = batch.to_pandas()
    rows = optimizer.observations.rows[-8:]
    for row in rows:
        low, told, high = (row.details[name] for name in ("predicted_low", "predicted", "predicted_high"))
        assert 0 < low < told < high < 1
    assert len(table) == 8
    found = optimizer.predictions(list(batch))
    assert found.central == pytest.approx(optimizer.predict(list(batch))[0], abs=1e-9)
    assert found.low == pytest.approx([row.details["predicted_low"] for row in rows], abs=1e-6)


def test_a_search_is_restored_exactly() -> None:
    first = _search(seed=3)
    _go(first, 3)
    first.tell([WORDS[5]], [0.25], trials=[8])
    second = _search(seed=3)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.observations.rows[-1].trials == 8
    for _ in range(2):
        assert list(first.ask()) == list(second.ask())
        for one in (first, second):
            one.tell(one.pending, [_hit(string) for string in one.pending])


def test_wells_are_told() -> None:
    rows, wells = _search(), _search()
    words = WORDS[:20]
    for index, word in enumerate(words):
        rows.tell([word] * 4, [1.0] * (index % 5) + [0.0] * (4 - index % 5))
        wells.tell([word], [(index % 5) / 4], trials=[4])
    told = [optimizer.predict(WORDS[20:40])[0] for optimizer in (rows, wells)]
    assert told[0] == pytest.approx(told[1], abs=1e-7)


def test_of_results_that_are_all_alike_nothing_is_learned(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = _search()
    strings = optimizer.ask()
    optimizer.tell(strings, [0] * 16)
    with caplog.at_level(logging.WARNING):
        assert len(optimizer.ask()) == 8
    assert "each of 16 results is no hit, so the next strings are random" in caplog.text


def test_a_batch_that_fails_its_probabilities_is_named(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = _search(acquisition="hits")
    _go(optimizer, 4)
    strings = optimizer.ask()
    optimizer.tell(strings, [0.0] * 8)
    assert sum(row.details["predicted"] for row in optimizer.observations.rows[-8:]) > 4
    with caplog.at_level(logging.WARNING):
        optimizer.ask()
    assert "missed what was predicted: 0 hits among 8 results" in caplog.text


@pytest.mark.parametrize(
    ("values", "trials", "what"),
    [
        ([6.4, 1.0], None, "results are yes or no"),
        ([-1.0, 1.0], None, "results are yes or no"),
        ([0.5, 1.0], None, "no whole number of hits"),
        ([0.3, 1.0], [8, 1], "no whole number of hits"),
        ([0.5, 1.0], [0, 1], "trials"),
        ([1.0, 1.0], [1], "2 strings but 1 trials"),
    ],
)
def test_what_is_no_result_is_refused(values: list[float], trials: list[int] | None, what: str) -> None:
    optimizer = _search()
    with pytest.raises(InputError, match=what):
        optimizer.tell(WORDS[:2], values, trials=trials)
    assert not len(optimizer.observations)


def test_standard_errors_limits_and_trials_go_with_other_results() -> None:
    with pytest.raises(InputError, match="BinomialGP cannot take standard errors"):
        _search().tell(WORDS[:1], [1.0], standard_errors=[0.1])
    with pytest.raises(InputError, match="cannot learn from censored"):
        _search().tell(WORDS[:1], [1.0], censored=["<"])
    with pytest.raises(InputError, match="trials go with results that are yes or no"):
        _search(transform="none").tell(WORDS[:1], [1.0], trials=[3])


def test_a_failure_is_neither() -> None:
    optimizer = _search()
    optimizer.tell(WORDS[:3], [1.0, float("nan"), 0.0])
    assert [row.status for row in optimizer.observations.rows] == ["ok", "failed", "ok"]


def test_parts_that_do_not_fit_are_refused() -> None:
    space = CandidateSet(WORDS, kind="text")
    with pytest.raises(InputError, match="StringGP does not learn from results that are yes or no"):
        Optimizer(space, strategy=ModelBased(StringGP()), transform="yes/no")
    with pytest.raises(InputError, match="does not learn from results that are yes or no"):
        Optimizer(space, strategy=BORE(), transform="yes/no")
    with pytest.raises(InputError, match="say so with transform='yes/no'"):
        Optimizer(space, surrogate=BinomialGP())
    chosen = Optimizer(
        space, strategy=ModelBased(BinomialGP("ssk"), "ucb"), outcomes=[Outcome("hit", transform="yes/no")]
    )
    assert isinstance(chosen.surrogate, BinomialGP)
    assert isinstance(_search(surrogate=StringGP()).surrogate, BinomialGP)


def test_a_function_of_truth_values_is_maximized() -> None:
    import seqopt

    found = seqopt.maximize(
        lambda strings: [_hit(string) for string in strings],
        CandidateSet(WORDS, kind="text"),
        budget=30,
        initial=20,
        batch_size=10,
        surrogate="ngrams",
        transform="yes/no",
    )
    assert found.best_value == 1.0
