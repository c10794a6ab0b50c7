"""Values of which only a limit is told."""

import json
import math

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.data import Data, Outcome
from seqopt.errors import InputError
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.strategies import BORE, RandomStrategy

POOL = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA", "ATAT", "TAAT"]


def make(**options: object) -> Optimizer:
    return Optimizer(POOL, **({"initial": 3, "seed": 1, "surrogate": StringGP(restarts=1)} | options))


def told(optimizer: Optimizer) -> Optimizer:
    strings = POOL[:6]
    values = [0.5, 1.0, 2.0, 2.5, 2.5, 2.5]
    optimizer.tell(strings, values, censored=["<", None, None, ">", ">", None])
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"surrogate": FullyBayesianStringGP()}, {"strategy": BORE(), "surrogate": None}]
)
def test_limits_are_told_kept_and_learned_from(options: dict[str, object]) -> None:
    optimizer = told(make(**options))
    batch = optimizer.ask(2)
    assert len(set(batch) - set(POOL[:6])) == 2
    assert [row.told for row in optimizer.observations.rows[:4]] == ["<0.5", "1", "2", ">2.5"]
    frame = optimizer.to_pandas()
    assert frame["censored"].tolist() == ["<", "", "", ">", ">", "", "", ""]
    restored = make(**options)
    restored.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    assert restored.to_pandas().equals(frame)
    assert restored.ask(1) == optimizer.ask(1)


def test_the_model_expects_values_beyond_their_limits() -> None:
    modelled, taken = make(), make()
    told(modelled)
    taken.tell(POOL[:6], [0.5, 1.0, 2.0, 2.5, 2.5, 2.5])
    assert (modelled.predict(["ATTT", "TTTT"])[0] > taken.predict(["ATTT", "TTTT"])[0]).all()
    assert modelled.predict(["AAAA"])[0] < taken.predict(["AAAA"])[0]
    assert modelled.recommend().string in {"ATTT", "TTTT"}


def test_directions_turn_limits_and_log10_takes_them() -> None:
    minimized = make(direction="minimize", transform="log10")
    minimized.tell(POOL[:4], [10.0, 1.0, 100.0, 1000.0], censored=[None, None, None, ">"])
    measured = minimized.state().data.measured()
    assert measured.targets == pytest.approx([-1.0, 0.0, -2.0, -3.0])
    assert measured.censored is not None
    assert measured.censored.tolist() == [0, 0, 0, -1]
    with pytest.raises(InputError, match="log10 needs positive values"):
        minimized.tell(["TTTT"], [0.0], censored=["<"])


def test_without_limits_nothing_is_said_of_them() -> None:
    optimizer = make()
    optimizer.tell(POOL[:3], [0.0, 1.0, 2.0], censored=[None, None, None])
    assert optimizer.state().data.measured().censored is None
    assert "censored" not in optimizer.to_pandas()


@pytest.mark.parametrize(
    ("direction", "rows", "best"),
    [
        ("maximize", [(">", 100), (None, 99), ("<", 500)], ">100"),
        ("maximize", [(None, 100), (">", 100), ("<", 500)], ">100"),
        ("maximize", [(None, 101), (">", 100)], "101"),
        ("maximize", [("<", 3), ("<", 5)], "<5"),
        ("minimize", [("<", 0.1), (None, 0.2), (">", 0.01)], "<0.1"),
        ("minimize", [(">", 0.1), (">", 0.01)], ">0.01"),
    ],
)
def test_the_best_is_what_is_certain(direction: str, rows: list[tuple[str | None, float]], best: str) -> None:
    optimizer = make(direction=direction)
    optimizer.tell(POOL[: len(rows)], [value for _, value in rows], censored=[side for side, _ in rows])
    assert optimizer.best.told == best


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0, 2.0], {"censored": ["<"]}, "2 strings but 1 signs of limits"),
        ([1.0, 2.0], {"censored": ["<", "="]}, "is censored as '='; expected '<', '>' or None"),
        ([math.nan, 2.0], {"censored": ["<", None]}, "the limit of 'AAAA' is nan; expected a number"),
        ([1.0, 2.0], {"censored": ["<", None], "standard_errors": [0.1, None]}, "has a limit, <1, and a standard"),
    ],
)
def test_what_is_no_limit_is_refused(values: list[float], options: dict[str, object], message: str) -> None:
    optimizer = make()
    with pytest.raises(InputError, match=message):
        optimizer.tell(POOL[:2], values, **options)
    assert len(optimizer.observations) == 0


def test_a_surrogate_that_knows_no_limits_is_told_of_none() -> None:
    class Own(StringGP):
        takes_censored = False

    optimizer = make(surrogate=Own())
    with pytest.raises(InputError, match="Own cannot learn from censored values: leave censored out"):
        optimizer.tell(["AAAA"], [1.0], censored=["<"])
    assert len(optimizer.observations) == 0
    optimizer.tell(["AAAA"], [1.0], censored=[None])
    assert optimizer.best.told == "1"


def test_values_that_say_nothing_of_each_other_leave_strings_random(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = make()
    optimizer.tell(POOL[:3], [1.0, 1.0, -5.0], censored=[None, None, ">"])
    assert len(optimizer.ask(2)) == 2
    assert "values equal 1, so the next strings are random" in caplog.text


def test_a_classifier_learns_from_limits_that_decide() -> None:
    strategy = BORE(gamma=0.5)
    optimizer = Optimizer(POOL, strategy=strategy, initial=3)
    optimizer.tell(POOL[:6], [5.0, 4.0, 3.0, 2.0, 1.0, 0.5], censored=["<", ">", None, "<", ">", None])
    keys, labels, targets = strategy._labelled(optimizer.state(), np.random.default_rng(0))
    # Below 5 may be anything, and so may what is above 1.
    assert dict(zip(keys, labels.tolist(), strict=True)) == {"AAAT": True, "AATT": True, "ATTT": False, "TTTA": False}
    assert targets.tolist() == [4.0, 3.0, 2.0, 0.5]


def test_random_strategies_recommend_what_is_certain() -> None:
    optimizer = Optimizer(POOL, strategy=RandomStrategy(), initial=2)
    optimizer.tell(POOL[:3], [9.0, 2.0, 1.0], censored=["<", ">", None])
    assert optimizer.recommend().told == ">2"


def test_data_of_several_outcomes_say_which_column_has_limits() -> None:
    optimizer = Optimizer(POOL, outcomes=[Outcome(), Outcome("solubility", role="constraint", bound=1.0)], initial=2)
    optimizer.tell(POOL[:2], [[1.0, 2.0], [3.0, 0.5]], censored=[">", None])
    data: Data = optimizer.state().data
    assert data.measured().censored is not None
    assert data.measured(1).censored is None
