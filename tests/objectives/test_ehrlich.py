"""Ehrlich functions, against their definition spelled out."""

import itertools
import math

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.objectives import Ehrlich


def value_of(task, string):
    """The definition, symbol by symbol."""
    if any((first, second) in task.banned() for first, second in itertools.pairwise(string)):
        return float("nan")
    product = 1.0
    for motif, offsets in zip(task.motifs.tolist(), task.offsets.tolist(), strict=True):
        best = max(
            sum(string[start + offset] == task.alphabet[symbol] for symbol, offset in zip(motif, offsets, strict=True))
            for start in range(len(string) - offsets[-1])
        )
        unit = math.ceil(len(motif) / task.quanta)
        product *= (best // unit) * unit / len(motif)
    return product


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("quanta", [None, 2, 1])
def test_values_are_those_of_the_definition(seed, quanta):
    task = Ehrlich(6, 10, 2, 4, quanta=quanta, seed=seed)
    rng = np.random.default_rng(seed)
    strings = ["".join(rng.choice(list(task.alphabet), 10)) for _ in range(100)] + task.sample(100, rng)
    np.testing.assert_allclose(task(strings), [value_of(task, string) for string in strings])


@pytest.mark.parametrize("arguments", [(20, 15, 2, 5), (32, 32, 2, 4), (5, 7, 1, 3), (4, 12, 3, 4)])
@pytest.mark.parametrize("seed", range(4))
def test_one_is_reached_by_a_feasible_string(arguments, seed):
    task = Ehrlich(*arguments, seed=seed)
    solution = task.solution()
    assert len(solution) == arguments[1]
    assert task([solution]).tolist() == [1.0]
    assert (task.offsets[:, 0] == 0).all()
    assert (np.diff(task.offsets, axis=1) >= 1).all()
    assert (task.offsets[:, -1] < arguments[1] // arguments[2]).all()  # so that all motifs fit side by side


@pytest.mark.parametrize("letters", [5, 20, 32])
def test_the_chain_is_one_that_reaches_everything(letters):
    task = Ehrlich(letters, letters, 1, 3)
    np.testing.assert_allclose(task.transitions.sum(axis=1), 1.0)
    assert (np.diag(task.transitions) > 0).all()  # a symbol may always be repeated
    assert (np.linalg.matrix_power(task.transitions, letters**2) > 0).all()
    np.testing.assert_allclose(task.stationary @ task.transitions, task.stationary, atol=1e-10)
    # A row of a band of 2 floor(0.4 v) + 1, and its diagonal.
    width = 2 * int(0.4 * letters) + 1
    assert set((task.transitions > 0).sum(axis=1).tolist()) <= {width, width + 1}


def test_sampled_strings_are_distinct_and_feasible_and_a_seed_fixes_all():
    task = Ehrlich(seed=3)
    strings = task.sample(200, np.random.default_rng(0))
    assert len(set(strings)) == 200
    assert task.feasible(strings).all()
    assert task.sample(200, np.random.default_rng(0)) == strings
    again, other = Ehrlich(seed=3), Ehrlich(seed=4)
    assert again.banned() == task.banned() != other.banned()
    assert again.motifs.tolist() == task.motifs.tolist()
    assert Ehrlich(seed=3, infeasible=-1.0)(["".join(pair) * 7 + pair[0] for pair in task.banned()]).tolist()[0] == -1.0
    assert len(task([])) == 0


def test_bad_input_is_named():
    for arguments, message in (
        ({"letters": 99}, "only 62 symbols"),
        ({"length": 9}, "do not fit into strings of 9"),
        ({"quanta": 6}, "no more than that many"),
        ({"motif_length": 1}, "motif_length is 1"),
    ):
        with pytest.raises(InputError, match=message):
            Ehrlich(**arguments)
    with pytest.raises(InputError, match="has 3 symbols"):
        Ehrlich()(["ACD"])
    with pytest.raises(InputError, match=r"position 2: '\*' is not one of"):
        Ehrlich()(["A*" + "A" * 13])
