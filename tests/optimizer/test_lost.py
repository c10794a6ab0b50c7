"""Measurements that were lost by no fault of their strings: asked for again, and teaching nothing."""

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.data import Contexts, Query
from seqopt.errors import InputError
from seqopt.strategies import ModelBased, RandomStrategy

POOL = ["".join("AB"[number >> place & 1] for place in range(5)) for number in range(32)]


def made(space=None, **options):
    return Optimizer(
        CandidateSet(POOL) if space is None else space, strategy=RandomStrategy(), initial=4, batch_size=3, **options
    )


def test_what_was_lost_is_asked_for_first_and_once():
    optimizer = made()
    first, second, third, fourth = optimizer.ask()
    optimizer.tell([first, fourth], [1.0, 2.0])
    optimizer.lost([third, second], "the robot dropped it")
    again = optimizer.ask(3)
    assert again[:2] == [second, third]
    assert again[2] not in (first, second, third, fourth)
    assert not set(optimizer.ask(3)) & set(again)
    optimizer.tell([second], [3.0])
    assert [row.status for row in optimizer.observations.rows if row.string == second] == ["lost", "ok"]
    assert optimizer.observations.rows[1].details["error"] == "lost: the robot dropped it"


def test_a_loss_takes_no_place_in_the_initial_design():
    optimizer = made()
    strings = optimizer.ask()
    optimizer.lost(strings, "a power cut")
    assert sorted(optimizer.ask()) == sorted(strings)
    assert optimizer.batches == 0


def test_a_loss_teaches_nothing():
    def told(loss):
        optimizer = Optimizer(StringSpace("AB", 8), strategy=ModelBased("ssk"), initial=4, batch_size=3, seed=3)
        strings = optimizer.ask(5)
        optimizer.tell(strings[:4], [string.count("AB") for string in strings[:4]])
        optimizer.tell(strings[4:], [float("nan")], errors=["lost: spilled" if loss else "does not dissolve"])
        return optimizer.state().data

    assert not told(True).failed.any()
    assert len(told(True)) == 4
    assert told(False).failed.tolist() == [False] * 4 + [True]


def test_what_came_after_all_is_not_asked_for_again():
    optimizer = made()
    strings = optimizer.ask()
    optimizer.lost(strings[:2])
    optimizer.tell(strings[:1], [1.0])
    optimizer.withdraw(strings[1:2])
    assert not set(optimizer.ask(5)) & set(strings)


def test_a_loss_that_answers_no_question_counts_where_nothing_else_is_known():
    optimizer = made()
    first, second, *_ = optimizer.ask()
    optimizer.lost([first])
    assert optimizer.ask(1) == [first]
    optimizer.tell([first], [1.0])
    optimizer.lost([first], "the first vial is lost, too")
    optimizer.lost([POOL[31]])
    assert first not in (again := optimizer.ask(3))
    assert again[0] == POOL[31]
    assert second not in again


def test_what_is_awaited_is_not_asked_for_again():
    optimizer = made()
    first, *_ = optimizer.ask()
    optimizer.lost([first])
    optimizer.ask(1)
    with optimizer.observations.kept_pending([Query(first, ())]):
        optimizer.lost([first], "told of the first name again")
    assert first in optimizer.pending
    assert first not in optimizer.ask(3)


def test_a_search_that_was_saved_asks_again():
    optimizer, restored = made(), made()
    strings = optimizer.ask()
    optimizer.lost(strings[:1])
    restored.load_state_dict(optimizer.state_dict())
    assert restored.ask(2) == optimizer.ask(2)
    assert strings[0] in optimizer.pending


def test_the_way_to_measure_stays():
    contexts = Contexts.of_levels("fidelity", {"rough": 0.1, "fine": 1.0}, target="fine")
    optimizer = made(contexts=contexts)
    optimizer.tell(POOL[:4], np.arange(4.0))
    optimizer.lost([Query(POOL[9], {"fidelity": "rough"})])
    assert optimizer.ask(1).queries == [Query(POOL[9], {"fidelity": "rough"})]


def test_a_list_is_wanted():
    with pytest.raises(InputError, match=r"lost takes lists"):
        made().lost("AAAAA")
