"""Pattern counts, against windows compared one by one, dynamic programming and enumeration."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.evaluation import evaluate
from seqopt.objectives import PATTERN_TASKS, PatternCount, resolve_objective
from seqopt.objectives.patterns import PatternTask


def matches(pattern: str, window: str) -> bool:
    return len(window) == len(pattern) and all(p in ("?", c) for p, c in zip(pattern, window, strict=True))


def most_occurrences(pattern: str, string: str, overlapping: bool) -> int:
    """The size of the largest set of occurrences, by dynamic programming over the end of the string."""
    best = [0]
    for end in range(1, len(string) + 1):
        begin = end - len(pattern)
        hit = begin >= 0 and matches(pattern, string[begin:end])
        before = best[-1] if overlapping else best[max(begin, 0)]
        best.append(max(best[-1], before + 1) if hit else best[-1])
    return best[-1]


def largest_count(task: PatternTask) -> int:
    """The largest count over all strings of a task, by dynamic programming over their last characters."""
    size = len(task.pattern)
    scores: dict[tuple[str, int], int] = {("", 0): 0}
    for position in range(task.length):
        after: dict[tuple[str, int], int] = {}
        for (tail, blocked), score in scores.items():
            for letter in task.alphabet:
                window = (tail + letter)[-size:]
                inside = task.first is None or position < task.first
                hit = inside and blocked == 0 and matches(task.pattern, window)
                wait = size - 1 if hit and not task.overlapping else max(blocked - 1, 0)
                state = (window[1:] if len(window) == size else window, wait)
                after[state] = max(after.get(state, 0), score + hit)
        scores = after
    return max(scores.values())


@given(
    pattern=st.text("01?", min_size=1, max_size=4),
    strings=st.lists(st.text("01", max_size=12), max_size=6),
    overlapping=st.booleans(),
    extra=st.none() | st.integers(0, 6),
)
def test_counts_are_those_of_windows(pattern: str, strings: list[str], overlapping: bool, extra: int | None) -> None:
    first = None if extra is None else len(pattern) + extra
    expected = [most_occurrences(pattern, string[:first], overlapping) for string in strings]
    assert PatternCount(pattern, overlapping, first)(strings).tolist() == expected


def test_counts_of_literal_patterns_are_pythons_own() -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("abc"), size)) for size in rng.integers(0, 40, 200)]
    for pattern in ("a", "ab", "aa", "aba"):
        assert PatternCount(pattern, overlapping=False)(strings).tolist() == [s.count(pattern) for s in strings]


def test_letters_of_a_pattern_are_literal_and_of_any_script() -> None:
    assert PatternCount("a.*")(["a.*b", "abb"]).tolist() == [1, 0]
    assert PatternCount("[?]")(["[x][y", "x"]).tolist() == [1, 0]
    assert PatternCount("βα\N{DNA DOUBLE HELIX}")(["αβα\N{DNA DOUBLE HELIX}"]).tolist() == [1]
    # Characters that padding could be mistaken for.
    assert PatternCount("a?")(["a", "a\0", "bba\0\0"]).tolist() == [0, 1, 1]
    assert PatternCount("\0")(["a\0\0", "aaaa"]).tolist() == [2, 0]
    assert PatternCount("?")(["", "abc"]).tolist() == [0, 3]


def test_the_seven_tasks_are_those_of_the_table() -> None:
    assert [task.largest for task in PATTERN_TASKS.values()] == [9, 6, 8, 5, 9, 10, 5]
    assert [task.steps for task in PATTERN_TASKS.values()] == [10, 15, 25, 40, 25, 20, 50]
    assert [task.initial for task in PATTERN_TASKS.values()] == [2, 2, 2, 2, 2, 4, 5]
    assert [(len(task.alphabet), task.length) for task in PATTERN_TASKS.values()] == [
        *[(2, 20)] * 3,
        (2, 30),
        (2, 20),
        (4, 30),
        (5, 20),
    ]
    assert [task.noise_variance for task in PATTERN_TASKS.values()] == [0, 0, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("name", PATTERN_TASKS)
def test_the_largest_counts_are_the_largest(name: str) -> None:
    assert largest_count(PATTERN_TASKS[name]) == PATTERN_TASKS[name].largest


def test_the_largest_counts_over_all_binary_strings() -> None:
    bits = (np.arange(2**20)[:, None] >> np.arange(20)) & 1
    codes = (bits + ord("0")).astype(np.uint32)
    lengths = np.full(len(codes), 20)
    for name in ("101", "101-disjoint", "10??1"):
        task = PATTERN_TASKS[name]
        assert task.objective()._count(codes, lengths).max() == task.largest


def test_the_oracle_of_the_largest_counts_agrees_with_enumeration() -> None:
    for overlapping, first in product((True, False), (None, 6)):
        task = PatternTask("1?0", "012", 8, steps=1, largest=0, overlapping=overlapping, first=first)
        strings = ["".join(letters) for letters in product(task.alphabet, repeat=task.length)]
        assert largest_count(task) == task.objective()(strings).max()


def test_noise_has_its_variance_and_is_none_of_the_noiseless_count() -> None:
    strings = [format(number, "016b") for number in range(20_000)]
    noisy = PatternCount("101", noise_variance=2.0, seed=3)
    noise = noisy(strings) - noisy.noiseless(strings)
    assert abs(noise.mean()) < 4 * np.sqrt(2 / len(strings))
    # The variance of a sample of n normals has standard deviation 2 * sqrt(2 / n) when their variance is 2.
    assert abs(noise.var() - 2) < 4 * 2 * np.sqrt(2 / len(strings))
    assert noisy.noiseless(strings).tolist() == PatternCount("101")(strings).tolist()


def test_noise_of_a_seed_depends_on_seed_string_and_repeat_only() -> None:
    strings = ["1010", "0101", "1111", "111", ""]

    def fresh(seed: int = 5) -> PatternCount:
        return PatternCount("101", noise_variance=1.0, seed=seed)

    together = fresh()(strings)
    assert len(set((together - fresh().noiseless(strings)).tolist())) == len(strings)
    one = fresh()
    assert [float(one([string])[0]) for string in reversed(strings)] == together.tolist()[::-1]
    assert not np.isin(fresh(6)(strings), together).any()
    # Asked again, a string gets other noise; a copy in another process begins anew.
    again = fresh()
    assert again(strings).tolist() == together.tolist()
    assert not np.isin(again(strings), together).any()
    assert pickle.loads(pickle.dumps(fresh()))(strings).tolist() == together.tolist()
    assert [result.value for result in evaluate(fresh(), strings)] == together.tolist()


def test_noise_can_come_from_a_generator() -> None:
    noisy = PatternCount("1", noise_variance=4.0, seed=np.random.default_rng(1))
    expected = 2 * np.random.default_rng(1).standard_normal(3)
    assert np.allclose([*noisy(["0", "1"]), *noisy(["11"])], expected + np.array([0, 1, 2]))


def test_unusable_arguments_are_explained() -> None:
    with pytest.raises(InputError, match="at least one character, got ''"):
        PatternCount("")
    with pytest.raises(InputError, match="at least the pattern's length 3, not 2"):
        PatternCount("101", first=2)
    for variance in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="noise_variance must be a finite number from 0"):
            PatternCount("101", noise_variance=variance, seed=0)
    with pytest.raises(InputError, match="variance 2 needs a seed"):
        PATTERN_TASKS["101-noisy"].objective()
    with pytest.raises(InputError, match="seed must be a number from 0"):
        PatternCount("101", seed=-1)
    with pytest.raises(InputError, match=r"write \['101'\]"):
        PatternCount("101")("101")


def test_pattern_counts_are_found_by_name() -> None:
    objective = resolve_objective("pattern_count:10??1")
    assert objective(["10001", "10111"]).tolist() == [1, 1]
    assert objective.direction == "maximize"
    assert objective.applies_to("text")
    assert objective.applies_to("protein")
    assert PatternCount("101")([]).shape == (0,)
