"""Shortlists by a cheap score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqopt import Optimizer
from seqopt.errors import InputError
from seqopt.models.classifiers import LogisticRegression
from seqopt.scorers.shortlist import largest
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.strategies import LFBO, ModelBased, Prefilter, RandomStrategy

POOL = CandidateSet([a + b + c + d for a in "ABCD" for b in "ABCD" for c in "ABCD" for d in "ABCD"], kind="text")


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), max_size=30),
    st.integers(0, 35),
    st.randoms(use_true_random=False),
)
def test_the_largest_are_those_of_a_full_sort(scores: list[float], count: int, random: object) -> None:
    found = np.array(scores)
    order = np.random.default_rng(len(scores)).permutation(len(scores))
    for ranks in (None, order):
        ties = np.arange(len(scores)) if ranks is None else ranks
        wanted = np.lexsort((ties, -found))[:count]
        wanted = wanted[found[wanted] > -np.inf]
        indices, values = largest(found, count, ranks)
        assert indices.tolist() == wanted.tolist()
        assert values.tolist() == found[wanted].tolist()


def _asked(strategy: object, n: int = 5) -> list[str]:
    optimizer = Optimizer(POOL, strategy=strategy, initial=10, seed=1)  # type: ignore[arg-type]
    strings = optimizer.ask()
    optimizer.tell(strings, [one.count("A") + 0.1 * one.count("B") for one in strings])
    return list(optimizer.ask(n))


@pytest.mark.parametrize("by", ["lfbo", "mean"])
def test_a_shortlist_of_all_changes_nothing(by: str) -> None:
    # Everything that may be chosen is kept, and the score draws nothing.
    assert _asked(ModelBased("ngrams", "ucb", prefilter=Prefilter(by, 250))) == _asked(ModelBased("ngrams", "ucb"))


def test_a_batch_comes_from_the_candidates_of_largest_mean() -> None:
    optimizer = Optimizer(
        POOL, strategy=ModelBased("ngrams", "gibbon", prefilter=Prefilter("mean", 12)), initial=10, seed=4
    )
    strings = optimizer.ask(10)
    optimizer.tell(strings, [float(one.count("A")) for one in strings])
    chosen = optimizer.ask(12)
    # The surrogate is as it was fitted for that batch.
    left = [key for key in POOL.keys if key not in strings]
    means = optimizer.surrogate.predict(left)[0]
    assert set(chosen) == {left[index] for index in np.argsort(-means, kind="stable")[:12]}


def test_lfbo_keeps_those_of_largest_odds() -> None:
    kept = _asked(LFBO(LogisticRegression(), keep=8), n=8)
    first = Optimizer(POOL, strategy=LFBO(LogisticRegression()), initial=10, seed=1)
    strings = first.ask()
    first.tell(strings, [one.count("A") + 0.1 * one.count("B") for one in strings])
    scoring = first.strategy.then.scoring(first.state(), np.random.default_rng([1, 1]))  # type: ignore[attr-defined]
    left = [key for key in POOL.keys if key not in set(strings)]
    logits = scoring.predictor.logits(left)
    assert set(kept) == {left[index] for index in np.argsort(-logits, kind="stable")[:8]}


def test_a_batch_that_is_larger_than_the_shortlist_is_filled() -> None:
    assert len(set(_asked(ModelBased("ngrams", "ucb", prefilter=Prefilter("mean", 1)), n=20))) == 20


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Prefilter("best"), "unknown prefilter 'best': choose lfbo, mean"),
        (lambda: Prefilter("mean", keep=0), "keep"),
        (lambda: ModelBased(prefilter=3), "no prefilter"),  # type: ignore[arg-type]
        (lambda: LFBO(keep=0), "keep"),
        (
            lambda: Optimizer(StringSpace("AB", 4), strategy=ModelBased(prefilter="mean")),
            "chooses among the candidates",
        ),
        (lambda: Prefilter(RandomStrategy()), "unknown prefilter"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()  # type: ignore[operator]


def test_a_prefilter_is_kept_in_a_description() -> None:
    from seqopt.utils.config import from_config

    strategy = ModelBased("ngrams", "ucb", prefilter=Prefilter("mean", 30))
    again = from_config(strategy.config())
    assert _asked(again) == _asked(ModelBased("ngrams", "ucb", prefilter=Prefilter("mean", 30)))
    assert "prefilter" not in ModelBased("ngrams", "ucb").config()
    assert "keep" not in LFBO().config()
    assert from_config(LFBO(keep=9).config()).keep == 9


def test_a_large_pool_is_shortened_where_nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.strategies import LocalPenalisation, prefilter

    monkeypatch.setattr(prefilter, "ALL", len(POOL) - 1)
    monkeypatch.setattr(prefilter, "KEEP", 12)
    monkeypatch.setattr(Prefilter.__init__, "__defaults__", ("lfbo", 12))
    strategy = ModelBased("ngrams", "gibbon")
    shortened = _asked(strategy)
    assert strategy.prefilter is not None
    assert strategy.prefilter.by == "mean"
    assert "prefilter" not in strategy.config()
    assert shortened == _asked(ModelBased("ngrams", "gibbon", prefilter=Prefilter("mean", 12)))
    for whole in (
        ModelBased("ngrams", "gibbon", prefilter=None),
        ModelBased("ngrams", "gibbon", prefilter="none"),
        ModelBased("ngrams", "random"),
        LocalPenalisation("ngrams"),
    ):
        whole.start(POOL)
        assert whole.prefilter is None
    # The same object in a smaller pool.
    strategy.start(CandidateSet(list(POOL.keys)[:-1], kind="text"))
    assert strategy.prefilter is None


def test_that_all_are_looked_at_is_kept_in_a_description() -> None:
    from seqopt.utils.config import from_config

    strategy = ModelBased("ngrams", "ucb", prefilter=None)
    assert strategy.config()["prefilter"] is None
    again = from_config(strategy.config())
    assert again.config() == strategy.config()
