"""Ask and tell."""

import itertools
import json

import gpytorch
import numpy as np
import pytest
import torch

from seqopt import Optimizer
from seqopt.errors import ExhaustedError, InputError, ModelError
from seqopt.models import StringGP
from seqopt.search import PoolSearch
from seqopt.spaces import CandidateSet, StringSpace

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=7)]


def score(string: str) -> float:
    return float(string.count("AB") - 0.1 * string.count("BB"))


def run(optimizer: Optimizer, asks: int) -> list[str]:
    asked: list[str] = []
    for _ in range(asks):
        strings = optimizer.ask()
        asked += strings
        optimizer.tell(strings, [score(s) for s in strings])
    return asked


def make(**options: object) -> Optimizer:
    return Optimizer(CandidateSet(POOL, kind="text"), **({"initial": 6, "batch_size": 3, "seed": 4} | options))


def test_finds_the_best_of_a_small_space_faster_than_chance() -> None:
    # Two of 128 strings reach 3; 18 random draws find one with probability 0.26, three times in a row with 0.02.
    found = [max(score(s) for s in run(make(seed=seed), 5)) for seed in range(3)]
    assert found == [max(map(score, POOL))] * 3


@pytest.mark.parametrize("acquisition", ["gibbon", "logei", "ucb", "thompson", "mean", "random"])
def test_every_acquisition_proposes_distinct_new_strings_and_is_fixed_by_the_seed(acquisition: str) -> None:
    first, second = (run(make(acquisition=acquisition), 3) for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first) == 12
    assert first[:6] != make(acquisition=acquisition, seed=5).ask()


def test_order_of_telling_does_not_matter() -> None:
    one, other = make(), make()
    strings = one.ask()
    assert strings == other.ask()
    one.tell(strings, [score(s) for s in strings])
    for string in reversed(strings):
        other.tell([string], [score(string)])
    assert one.ask() == other.ask()


def test_pending_strings_are_not_asked_again_and_change_the_next_batch() -> None:
    waiting, ignorant = (make(acquisition="ucb", surrogate="ssk") for _ in range(2))
    for optimizer in (waiting, ignorant):
        run(optimizer, 1)
    first = waiting.ask(3)
    second = waiting.ask(3)
    assert not set(first) & set(second)
    assert waiting.pending == first + second
    # UCB with hallucinated observations draws nothing at random, so two asks fill the batch that one ask does ...
    assert ignorant.ask(6) == first + second
    # ... and knowing the first three without conditioning on them gives another batch.
    forgetful = make(acquisition="ucb", surrogate="ssk")
    run(forgetful, 1)
    forgetful.observations._seen |= {forgetful.space.key(string) for string in first}
    assert forgetful.ask(3) != second


def test_failures_are_recorded_and_left_out() -> None:
    optimizer = make()
    strings = optimizer.ask()
    values = [score(s) for s in strings]
    values[2] = float("nan")
    optimizer.tell(strings, values, errors=[None, None, "it boiled over", None, None, None])
    assert [row.status for row in optimizer.observations.rows].count("failed") == 1
    frame = optimizer.observations.to_frame()
    assert frame.loc[2, "error"] == "it boiled over"
    later = optimizer.ask(len(POOL) - 6)
    assert strings[2] not in later
    assert len(later) == len(POOL) - 6


def test_fewer_than_two_successes_fall_back_to_random(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = make()
    strings = optimizer.ask()
    optimizer.tell(strings, [float("nan")] * 5 + [1.0])
    again = optimizer.ask()
    assert len(again) == 3
    assert "1 of 6 evaluations succeeded" in caplog.text
    optimizer.tell(again, [1.0, 2.0, 3.0])
    optimizer.ask()
    assert optimizer.hyperparameters


def test_all_values_equal_go_on() -> None:
    optimizer = make()
    for _ in range(3):
        strings = optimizer.ask()
        optimizer.tell(strings, [1.0] * len(strings))
    assert len(optimizer.observations) == 12


def test_minimising_mirrors_maximising() -> None:
    up, down = make(), make(direction="minimize")
    for _ in range(3):
        a, b = up.ask(), down.ask()
        assert a == b
        up.tell(a, [score(s) for s in a])
        down.tell(b, [-score(s) for s in b])
    assert up.best.value == -down.best.value
    np.testing.assert_allclose(
        up.observations.to_frame()["predicted_mean"].dropna().astype(float),
        -down.observations.to_frame()["predicted_mean"].dropna().astype(float),
        rtol=1e-9,
    )


def test_predictions_are_in_the_users_units() -> None:
    optimizer = Optimizer(POOL, surrogate="ssk", initial=60, batch_size=10, seed=0)
    strings = optimizer.ask()
    optimizer.tell(strings, [1000 + 50 * score(s) for s in strings])
    chosen = optimizer.ask()
    frame = optimizer.observations.to_frame().tail(10)
    truth = np.array([1000 + 50 * score(s) for s in chosen])
    assert np.abs(frame["predicted_mean"].astype(float) - truth).max() < 50
    assert (frame["predicted_std"].astype(float) < 100).all()


def test_log10_gives_the_run_of_the_logarithms_in_the_units_of_the_values() -> None:
    plain, logged = make(), make(transform="log10")
    for _ in range(3):
        a, b = plain.ask(), logged.ask()
        assert a == b
        plain.tell(a, [np.log10(10 ** score(s)) for s in a])
        logged.tell(b, [10 ** score(s) for s in b])
    frame = logged.observations.to_frame()
    assert (frame["predicted_mean"].dropna().astype(float) > 0).all()
    with pytest.raises(InputError, match="positive"):
        logged.tell([POOL[0]], [0.0])


def test_log10_moments_are_those_of_the_log_normal() -> None:
    from seqopt.data.transforms import Log10

    draws = 10 ** np.random.default_rng(0).normal(1.0, 0.2, size=2_000_000)
    mean, std = Log10().moments(1.0, 0.2)
    assert mean == pytest.approx(draws.mean(), rel=2e-3)
    assert std == pytest.approx(draws.std(), rel=5e-3)


def test_state_survives_json() -> None:
    one = make()
    run(one, 2)
    one.ask()
    other = make()
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert other.pending == one.pending
    for optimizer in (one, other):
        strings = optimizer.pending
        optimizer.tell(strings, [score(s) for s in strings])
    assert one.ask() == other.ask()
    one.tell(one.pending, [score(s) for s in one.pending])
    other.tell(other.pending, [score(s) for s in other.pending])
    assert one.ask() == other.ask()


def test_strings_that_were_never_asked_for_teach_the_model() -> None:
    optimizer = make(initial=4)
    known = ["ABABABA", "BBBBBBB", "AAAAAAA", "BABABAB", "ABBBBBB"]
    optimizer.tell(known, [score(s) for s in known])
    asked = optimizer.ask()
    assert not set(asked) & set(known)
    assert optimizer.hyperparameters  # chosen by a model, without a random design


def test_the_same_molecule_in_another_writing_is_the_same() -> None:
    optimizer = Optimizer(CandidateSet(["OCC", "CCN", "CCC", "CCCl"], kind="molecule"), initial=2)
    optimizer.tell(["CCO", "NCC"], [1.0, 2.0])
    assert set(optimizer.ask(4)) == {"CCC", "CCCl"}
    asked = Optimizer(CandidateSet(["OCC", "CCN"], kind="molecule"), initial=2)
    asked.ask()
    asked.tell(["C(O)C"], [1.0])
    assert asked.pending == ["CCN"]


def test_every_part_can_be_ones_own() -> None:
    class Shortest:
        """An acquisition function that needs no model."""

        name = "shortest"

        def prepare(self, posterior: object, rng: np.random.Generator, batch_size: int = 1) -> object:
            return lambda posterior: -torch.arange(len(posterior.moments), dtype=torch.float64)

    pool = CandidateSet([letter * n for n in range(1, 12) for letter in "AB"], kind="text")
    surrogate = StringGP(gpytorch.kernels.RBFKernel(), restarts=1)
    optimizer = Optimizer(pool, surrogate=surrogate, acquisition=Shortest(), initial=4, batch_size=3, seed=2)
    random = optimizer.ask()
    assert max(map(len, random)) < 11  # the kernel has seen no string as long as the pool's longest
    optimizer.tell(random, [float(len(string)) for string in random])
    assert optimizer.ask() == [string for string in pool.strings if string not in random][:3]
    assert surrogate.encode(["A" * 11]).shape == (1, 11)
    own = Optimizer(pool, surrogate=StringGP(gpytorch.kernels.RBFKernel()), initial=4, batch_size=3, seed=2)
    run(own, 4)
    assert max(row.value for row in own.observations.rows) >= 0


def test_an_exhausted_space_says_so() -> None:
    optimizer = Optimizer(CandidateSet(["A", "B", "C"], kind="text"), initial=2)
    assert len(optimizer.ask(5)) == 3
    with pytest.raises(InputError, match="nothing is left"):
        optimizer.ask()


def test_fresh_random_candidates_each_step() -> None:
    optimizer = make(search=PoolSearch(candidates=5), batch_size=5)
    strings = optimizer.ask()
    optimizer.tell(strings, [score(s) for s in strings])
    first = optimizer.ask()
    assert len(set(first)) == 5
    assert not set(first) & set(strings)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"initial": 1}, "initial is 1"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None; expected 0 or a positive integer"),
        ({"batch_size": 2.5}, "batch_size is 2.5; expected an integer, at least 1"),
        ({"surrogate": "forest"}, "unknown surrogate 'forest'"),
        ({"acquisition": "magic"}, "magic"),
        ({"search": "magic"}, "unknown search"),
        ({"transform": "sqrt"}, "unknown transform 'sqrt'"),
    ],
)
def test_bad_arguments(options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**options)


def test_bad_results_record_nothing() -> None:
    optimizer = make()
    strings = optimizer.ask()
    with pytest.raises(InputError, match="6 strings but 2 values"):
        optimizer.tell(strings, [1.0, 2.0])
    with pytest.raises(InputError, match="takes lists"):
        optimizer.tell("ABABABA", [1.0])
    assert optimizer.pending == strings
    with pytest.raises(ModelError, match="nothing has been measured"):
        _ = optimizer.best
    molecules = Optimizer(CandidateSet(["CCO", "CCN"], kind="molecule"), initial=2)
    with pytest.raises(InputError, match="'C1CC' is not a valid molecule"):
        molecules.tell(["CCO", "C1CC"], [1.0, 2.0])
    assert len(molecules.observations) == 0


def test_what_is_withdrawn_is_not_asked_for_and_teaches_nothing() -> None:
    optimizer = Optimizer(POOL, surrogate="one-hot", initial=4, batch_size=2, seed=1)
    first, second, *others = optimizer.ask()
    optimizer.tell(others, [1.0, 2.0])
    optimizer.withdraw([first], "sold out")
    never = next(string for string in POOL if string not in [first, second, *others])
    optimizer.withdraw([never])
    assert optimizer.pending == [second]
    state = optimizer.state()
    assert (len(state.data), state.withdrawn, state.size) == (2, 2, 5)
    table = optimizer.to_pandas().set_index("string")
    assert (table.loc[first, "status"], table.loc[first, "error"]) == ("withdrawn", "sold out")
    assert not {first, never} & set(optimizer.ask(20))
    # What was withdrawn may be measured all the same.
    optimizer.tell([first], [5.0])
    assert optimizer.best.string == first
    again = Optimizer(POOL, surrogate="one-hot", initial=4, batch_size=2, seed=1)
    again.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    assert again.ask(3) == optimizer.ask(3)


COMPLEMENT = str.maketrans("ACGT", "TGCA")


def is_palindrome(string: str) -> bool:
    return string == string[::-1].translate(COMPLEMENT)


@pytest.mark.parametrize(("size", "seed"), [(4, 0), (4, 4), (1, 0), (1, 1), (1, 2)])
def test_a_search_grows_from_told_strings_where_places_are_tied_together(size: int, seed: int) -> None:
    """One change of a palindrome is none, and a random string is one with a probability of 1.5e-5: also those that
    would be drawn at random, since the surrogate doubts, are found by the search.
    """
    optimizer = Optimizer(StringSpace("ACGT", 16, accept=is_palindrome), batch_size=size, initial=4, seed=seed)
    halves = ["AAAACCCC", "GATTACAG", "CCCCGGTT", "TTGCATGA"]
    optimizer.tell([half + half[::-1].translate(COMPLEMENT) for half in halves], [1.0, 2.0, 3.0, 0.0])
    asked = optimizer.ask()
    assert len(asked) == size
    assert all(is_palindrome(string) for string in asked)


def test_that_accept_takes_nothing_further_is_not_said_to_be_the_end(caplog: pytest.LogCaptureFixture) -> None:
    known = ["ACGT" * 4, "TTTT" * 4, "GGGG" * 4]
    optimizer = Optimizer(StringSpace("ACGT", 16, accept=known.__contains__), batch_size=2, initial=2, seed=0)
    optimizer.tell(known[:2], [1.0, 2.0])
    with pytest.raises(ExhaustedError, match=r"no further string was found that accept\(\) takes \(2 strings are"):
        optimizer.ask()
    small = Optimizer(StringSpace("ACGT", 4, accept={"ACGT", "TTTT"}.__contains__), batch_size=2, initial=2, seed=0)
    small.tell(["ACGT", "TTTT"], [1.0, 2.0])
    with pytest.raises(ExhaustedError, match="nothing is left to suggest: 2 strings"):
        small.ask()
