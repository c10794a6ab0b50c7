"""The features engine: features against their definition, sums of products against enumeration and the reference."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from math import inf

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import engines
from seqopt.kernels.engines import features, reference
from seqopt.kernels.engines.features import cost, feature_count, subsequence_features

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def random_strings(count, longest, rng, alphabet="abc"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(longest + 1))) for _ in range(count)]


def encode_both(first, second):
    encoder = Encoder()
    return encoder.encode(first), encoder.encode(second)


def order_sums(a, b, gap, weights, engine=features, *, derivative=True, dtype=np.float64, threads=1):
    matrix = np.eye(weights) if isinstance(weights, int) else np.asarray(weights, dtype=np.float64)
    return engine.order_sums(a, b, gap, matrix, derivative=derivative, dtype=np.dtype(dtype), threads=threads)


def paired(a, b, gap, weights, engine=features, *, derivative=True, dtype=np.float64, threads=1):
    matrix = np.eye(weights) if isinstance(weights, int) else np.asarray(weights, dtype=np.float64)
    return engine.paired_order_sums(a, b, gap, matrix, derivative=derivative, dtype=np.dtype(dtype), threads=threads)


def close(actual, expected, dtype=np.float64):
    for values, oracle in zip(actual, expected, strict=True):
        for part, own in zip(values, oracle, strict=True):
            scale = np.abs(own).max(initial=1.0)
            np.testing.assert_allclose(part, own, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale * 1e-2)
        assert values.dtype == dtype


def columns_of(alphabet, order):
    """Sub-sequences in the stated order of columns, by the stated formula."""
    spelt = {}
    for length in range(1, order + 1):
        for numbers in product(range(len(alphabet)), repeat=length):
            within = sum(number * len(alphabet) ** index for index, number in enumerate(numbers))
            spelt[feature_count(len(alphabet), length - 1) + within] = "".join(alphabet[i] for i in numbers)
    return [spelt[column] for column in range(len(spelt))]


@pytest.mark.parametrize(
    ("alphabet", "order"), [("ab", 5), ("abc", 4), ("abc", 1), ("abcd", 3), ("a", 6), ("abcde", 2)]
)
def test_features_are_those_of_the_definition(alphabet, order, brute_force):
    rng = np.random.default_rng(order)
    strings = ["", alphabet, *random_strings(3, 10, rng, alphabet)]
    columns = columns_of(alphabet, order)
    found, slopes = subsequence_features(Encoder(alphabet=None).encode(strings), 0.7, order, derivative=True)
    assert found.shape == slopes.shape == (len(strings), feature_count(len(alphabet), order))
    for row, string in enumerate(strings):
        for column, spelt in enumerate(columns):
            # The only sub-sequence that is as long as `spelt` is `spelt`.
            values, derivatives = brute_force.order_sums(string, spelt, len(spelt), 0.7)
            assert found[row, column] == pytest.approx(values[-1], rel=1e-13)
            assert slopes[row, column] == pytest.approx(derivatives[-1], rel=1e-13)


def test_columns_are_in_the_stated_order():
    strings = Encoder().encode(["AC", "CCA"])
    expected = [[1, 1, 0, 0, 1, 0], [1, 2, 0, 1.5, 0, 1]]  # A, C, AA, CA, AC, CC
    np.testing.assert_array_equal(subsequence_features(strings, 0.5, 2)[0], expected)
    swapped = subsequence_features(strings, 0.5, 2, symbols=[2, 1])[0]
    np.testing.assert_array_equal(swapped, np.array(expected)[:, [1, 0, 5, 4, 3, 2]])
    only_a = subsequence_features(strings, 0.5, 2, symbols=[1])[0]
    np.testing.assert_array_equal(only_a, [[1, 0], [1, 0]])


def test_feature_of_the_thesis():
    # Moss (2021), table 4.4.1: c_genic(genetics) = match^5 gap^2.
    strings = Encoder().encode(["genetics"])
    match, gap = 0.8, 0.3
    found, _ = subsequence_features(strings, gap, 5)
    column = columns_of("genti" + "cs", 5).index("genic")
    assert match**5 * found[0, column] == pytest.approx(match**5 * gap**2)


def test_the_kernel_is_linear_in_the_features():
    strings = Encoder().encode(random_strings(5, 12, np.random.default_rng(0)))
    found, slopes = subsequence_features(strings, 0.6, 3, derivative=True)
    sums, derivatives = order_sums(strings, None, 0.6, np.ones((1, 3)))
    np.testing.assert_allclose(found @ found.T, sums[0], rtol=1e-12)
    np.testing.assert_allclose(found @ slopes.T + slopes @ found.T, derivatives[0], rtol=1e-12)


@pytest.mark.parametrize(("order", "gap"), [(1, 0.5), (3, 1.0), (5, 0.3), (5, 0.9)])
def test_sums_and_derivatives_are_those_of_enumeration(order, gap, brute_force):
    rng = np.random.default_rng(order)
    first, second = ["", "a", *random_strings(3, 9, rng), "zzz"], [*random_strings(3, 9, rng), "", "cabba"]
    a, b = encode_both(first, second)
    sums, derivatives = order_sums(a, b, gap, order)
    for (i, left), (j, right) in product(enumerate(first), enumerate(second)):
        expected, expected_derivatives = brute_force.order_sums(left, right, order, gap)
        np.testing.assert_allclose(sums[:, i, j], expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(derivatives[:, i, j], expected_derivatives, rtol=1e-12, atol=1e-14)


# Around the rows of a tile and the strings of a panel in either precision, and either side the longer.
SHAPES = [(1, 1), (1, 37), (37, 1), (8, 16), (17, 33), (70, 9)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("derivative", [False, True])
def test_sums_agree_with_the_reference_in_every_shape(shape, dtype, derivative):
    rng = np.random.default_rng(shape)
    a, b = encode_both(random_strings(shape[0], 15, rng), random_strings(shape[1], 11, rng, "bcd"))
    options = {"derivative": derivative, "dtype": dtype}
    for left, right in ((a, b), (a, None), (b, None)):
        actual, expected = (order_sums(left, right, 0.7, 3, engine, **options) for engine in (features, reference))
        if not derivative:
            assert actual[1] is None
            actual, expected = actual[:1], expected[:1]
        close(actual, expected, dtype)
    shorter = min(shape)
    a, b = a.take(np.arange(shorter)), b.take(np.arange(shorter))
    for left, right in ((a, b), (a, a)):
        actual, expected = (paired(left, right, 0.7, 3, engine, **options) for engine in (features, reference))
        if not derivative:
            assert actual[1] is None
            actual, expected = actual[:1], expected[:1]
        close(actual, expected, dtype)


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("gap", [1e-4, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_agree_with_the_reference_at_the_ends_of_order_and_decay(order, gap, dtype):
    rng = np.random.default_rng(0)
    a, b = encode_both(random_strings(18, 40, rng), random_strings(3, 25, rng))
    expected = order_sums(a, b, gap, order, reference)
    close(order_sums(a, b, gap, order, dtype=dtype), expected, dtype)
    expected = paired(b, b, gap, order, reference)
    close(paired(b, b, gap, order, dtype=dtype), expected, dtype)


WEIGHTS = {
    "one sum": [[0.5, 0.25, 0.125, 0.1]],
    "one order": [[0, 0, 1, 0]],
    "a gap": [[0.5, 0.5, 0, 2]],
    "a negative weight": [[0.5, -0.25, 0.0, 1]],
    "two sums": [[0.5, 0.25, 0.125, 0.1], [1, 0, 0.75, 0.75]],
    "all orders": np.eye(4),
    "none": np.zeros((2, 4)),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_are_sums_over_orders(weights):
    rng = np.random.default_rng(1)
    a, b = encode_both(random_strings(19, 15, rng), random_strings(10, 15, rng))
    for left, right in ((a, b), (a, None)):
        expected = [np.einsum("ri,iab->rab", weights, part) for part in order_sums(left, right, 0.6, 4, reference)]
        close(order_sums(left, right, 0.6, weights), expected)
    expected = [np.einsum("ri,ia->ra", weights, part) for part in paired(a, a, 0.6, 4, reference)]
    close(paired(a, a, 0.6, weights), expected)


@pytest.mark.parametrize("weights", [[[0.5, 0.25, 0.125]], np.eye(3)], ids=["one sum", "all orders"])
def test_blocks_and_memory_change_nothing(weights, monkeypatch):
    rng = np.random.default_rng(2)
    a, b = encode_both(random_strings(75, 12, rng), random_strings(150, 12, rng))
    whole = [order_sums(*pair, 0.6, weights) for pair in ((a, b), (b, a), (b, None))]
    whole.append(paired(a, a, 0.6, weights))
    # The features of 48 strings at once, half of them of either side.
    monkeypatch.setattr(features, "FEATURE_BYTES", 48 * 2 * 8 * feature_count(3, 3))
    parts = [order_sums(*pair, 0.6, weights) for pair in ((a, b), (b, a), (b, None))]
    parts.append(paired(a, a, 0.6, weights))
    for actual, expected in zip(parts, whole, strict=True):
        close(actual, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_number_of_threads_computes_the_same(dtype, monkeypatch):
    monkeypatch.setattr(features, "THREADING_COST", 0)
    rng = np.random.default_rng(3)
    a, b = encode_both(random_strings(90, 12, rng), random_strings(40, 12, rng))
    calls = (
        lambda threads: order_sums(a, b, 0.6, 3, dtype=dtype, threads=threads),
        lambda threads: order_sums(a, None, 0.6, [[0.5, 0.2, 0.1]], dtype=dtype, threads=threads),
        lambda threads: paired(b, b, 0.6, 3, dtype=dtype, threads=threads),
        lambda threads: subsequence_features(a, 0.6, 3, derivative=True, dtype=dtype, threads=threads),
    )
    for call in calls:
        alone = call(1)
        for threads in (2, 3, None):
            for part, own in zip(call(threads), alone, strict=True):
                np.testing.assert_array_equal(part, own)


def test_threads_may_call_at_once(monkeypatch):
    monkeypatch.setattr(features, "THREADING_COST", 0)
    strings = Encoder().encode(random_strings(60, 30, np.random.default_rng(4)))
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(_sum_of, [strings] * 8)) == {_sum_of(strings)}


def _sum_of(strings):
    return float(order_sums(strings, None, 0.5, 3, derivative=False, threads=2)[0].sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", [3, [[0.5, 0.2, 0.1]]], ids=["all orders", "one sum"])
def test_symmetric_gram_is_exactly_symmetric(dtype, weights):
    strings = Encoder().encode(random_strings(70, 20, np.random.default_rng(5)))
    for part in order_sums(strings, None, 0.8, weights, dtype=dtype):
        np.testing.assert_array_equal(part, part.transpose(0, 2, 1))


def test_no_strings_and_empty_strings():
    none = EncodedStrings.from_tokens(np.zeros((0, 4), dtype=np.uint8))
    some, empty = encode_both(["ab", "c"], ["", ""])
    assert order_sums(none, some, 0.5, 3)[0].shape == (3, 0, 2)
    assert order_sums(some, none, 0.5, 3)[1].shape == (3, 2, 0)
    assert order_sums(none, None, 0.5, 3)[0].shape == (3, 0, 0)
    assert paired(none, none, 0.5, 3)[0].shape == (3, 0)
    assert subsequence_features(none, 0.5, 3)[0].shape == (0, 0)
    assert subsequence_features(none, 0.5, 2, symbols=[1, 2])[0].shape == (0, 6)
    assert subsequence_features(empty, 0.5, 3)[0].shape == (2, 0)
    assert not subsequence_features(empty, 0.5, 2, symbols=[4, 9])[0].any()
    for sums, _ in (
        order_sums(empty, some, 0.5, 3),
        order_sums(some, empty, 0.5, 3),
        order_sums(empty, None, 0.5, 3),
        paired(empty, some, 0.5, 3),
    ):
        assert not sums.any()
    mixed = Encoder().encode(["", "ab", "", "b"])
    close(order_sums(mixed, None, 0.5, 3), order_sums(mixed, None, 0.5, 3, reference))


def test_symbols_of_one_side_only_widen_gaps():
    a, b = encode_both(["axxbxa", "xx", "ab"], ["ayb", "yyy", "bya"])
    gap = 0.3
    close(order_sums(a, b, gap, 3), order_sums(a, b, gap, 3, reference))
    sums, derivatives = order_sums(a, b, gap, 3)
    assert sums[1, 0, 0] == pytest.approx(gap**2 * gap)  # ab, two symbols apart in one and one in the other
    assert derivatives[1, 0, 0] == pytest.approx(3 * gap**2)
    # Letters of one side only have no features.
    wide, _ = encode_both(["axxbxa" + "cdefghij", "xx", "ab"], ["ayb"])
    assert cost(wide, b, 5, derivative=False) < 1.5 * cost(a, b, 5, derivative=False)


def test_symbols_beyond_a_byte():
    rng = np.random.default_rng(6)
    tokens = rng.choice([1, 256, 257, 513, 65_535], size=(19, 11)).astype(np.uint16)
    wide = EncodedStrings.from_tokens(tokens)
    narrow = EncodedStrings.from_tokens(np.full((3, 5), 1, dtype=np.uint8))
    for a, b in ((wide, narrow), (narrow, wide), (wide, None)):
        close(order_sums(a, b, 0.5, 3), order_sums(a, b, 0.5, 3, reference))


STRINGS = st.lists(st.text("abc", max_size=9), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None)
@given(STRINGS, STRINGS, st.permutations(range(1, 9)), st.integers(0, 5), st.floats(1e-4, 1.0))
def test_numbers_of_symbols_and_padding_make_no_difference(first, second, permutation, padding, gap):
    a, b = encode_both(first, second)
    relabelled = []
    for strings in (a, b):
        wider = strings.padded(strings.width + padding).tokens
        relabelled.append(EncodedStrings.from_tokens(np.array([0, *permutation], dtype=np.uint8)[wider]))
    close(order_sums(*relabelled, gap, 4), order_sums(a, b, gap, 4))
    close(order_sums(relabelled[0], None, gap, 4), order_sums(a, None, gap, 4))


def test_fading_states_do_not_disturb_float32():
    # Powers of the gap decay reach the denormal range of float32 within a string.
    strings = Encoder().encode(["ab" + "x" * 60 + "ab", "ab" + "y" * 60 + "ab"])
    expected = order_sums(strings, None, 0.1, 3)
    close(order_sums(strings, None, 0.1, 3, dtype=np.float32), expected, np.float32)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("gap", [1.0, 0.999, 0.5, 0.1, 1.1e-4, 0.9e-4, 1e-9, 1e-30])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_features_without_derivatives_are_those_with_them(order, gap, dtype):
    # One way divides sums by decays and the other multiplies them, symbol by symbol.
    strings = Encoder().encode([*random_strings(6, 120, np.random.default_rng(1)), "a" * 90 + "b" + "c" * 90, "", "a"])
    alone, nothing = subsequence_features(strings, gap, order, dtype=dtype, threads=1)
    with_slopes, _ = subsequence_features(strings, gap, order, derivative=True, dtype=dtype, threads=1)
    assert nothing is None
    np.testing.assert_allclose(alone, with_slopes, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-37)
    # Symbols without features widen gaps both ways.
    options = {"symbols": [1, 2], "dtype": dtype, "threads": 1}
    alone, _ = subsequence_features(strings, gap, order, **options)
    with_slopes, _ = subsequence_features(strings, gap, order, derivative=True, **options)
    np.testing.assert_allclose(alone, with_slopes, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-37)


def test_sums_beyond_float32_are_infinite():
    strings = Encoder().encode(["a" * 200, "a" * 14, "b"])
    sums, derivatives = order_sums(strings, None, 1.0, 13, dtype=np.float32)
    exact = order_sums(strings, None, 1.0, 13)
    for part, own in zip((sums, derivatives), exact, strict=True):
        beyond = own > np.finfo(np.float32).max
        assert beyond.any()
        np.testing.assert_array_equal(np.isinf(part), beyond)
        np.testing.assert_allclose(part[~beyond], own[~beyond], rtol=1e-4)


def test_floating_point_mode_is_left_as_found():
    strings = Encoder().encode(["abab", "ba"])
    order_sums(strings, None, 0.5, 3)
    paired(strings, strings, 0.5, 3)
    subsequence_features(strings, 0.5, 3)
    assert np.float64(1e-310) * np.float64(0.5) > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_in_child_processes_after_use(method, monkeypatch):
    if method not in multiprocessing.get_all_start_methods() or (method == "fork" and sys.platform == "darwin"):
        pytest.skip(f"no {method} on this platform")
    monkeypatch.setattr(features, "THREADING_COST", 0)
    strings = Encoder().encode(random_strings(40, 20, np.random.default_rng(7)))
    expected = _sum_of(strings)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        assert pool.submit(_child_sum, strings).result(timeout=100) == expected


def _child_sum(strings):
    features.THREADING_COST = 0
    return _sum_of(strings)


def test_feature_counts():
    assert [feature_count(symbols, 5) for symbols in (0, 1, 2, 4, 5, 20)] == [0, 5, 62, 1364, 3905, 3368420]


def test_too_many_features_are_refused():
    proteins = EncodedStrings.from_tokens(np.arange(1, 21, dtype=np.uint8)[None, :])
    with pytest.raises(InputError, match=r"20 common symbols have 67,368,420 sub-sequences.*at most.*engine='cpu'"):
        order_sums(proteins, None, 0.5, 6)
    with pytest.raises(InputError, match="20 common symbols"):
        paired(proteins, proteins, 0.5, 6)
    assert cost(proteins, None, 6, derivative=False) == inf
    assert cost(proteins, None, 5, derivative=False) < inf
    few = EncodedStrings.from_tokens(np.arange(1, 4, dtype=np.uint8)[None, :])
    assert order_sums(proteins, few, 0.5, 6)[0].sum() > 0


@pytest.mark.parametrize(
    ("alphabet", "length", "count", "expected"),
    [
        ("ab", 180, 200, "features"),
        ("acgt", 180, 300, "features"),
        ("acdefghiklmnpqrstvwy", 60, 60, "cpu"),
        ("ab", 9, 3, "cpu"),
    ],
)
def test_auto_takes_features_where_they_cost_less(alphabet, length, count, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    rng = np.random.default_rng(8)
    strings = Encoder().encode(["".join(rng.choice(list(alphabet), length)) for _ in range(count)])
    assert engines._cheapest(strings, None, 5, False) == expected
    if expected == "features":
        monkeypatch.setattr(engines, "ENGINES", {**engines.ENGINES, "features": "seqopt.no_such_module"})
        assert engines._cheapest(strings, None, 5, False) == "cpu"


def test_features_that_may_overflow_are_refused():
    strings = Encoder().encode(["a" * 200])
    with pytest.raises(
        InputError, match=r"strings of 200 symbols.* of 60 symbols than float32 can express; choose engine='cpu'"
    ):
        order_sums(strings, None, 0.5, 60, dtype=np.float32)
    assert order_sums(strings, None, 0.5, 60)[0].max() < inf
    assert cost(strings, None, 60, derivative=False) == inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gap_decay": 0.0}, r"gap decay is 0.0; it must lie in \(0, 1\]"),
        ({"order": 0}, "order is 0"),
        ({"dtype": np.int64}, "int64.*float64 or float32"),
        ({"threads": 0}, "threads is 0"),
        ({"symbols": [0, 1]}, "symbols lie between 0 and 1; token numbers are 1 to 65,535"),
        ({"symbols": [1, 70_000]}, "70000"),
        ({"symbols": [2, 1, 2]}, r"symbols are \[2, 1, 2\]; each must be given once"),
        ({"symbols": [1.5]}, r"\[1.5\]; expected a list of token numbers"),
    ],
)
def test_bad_arguments_are_explained(change, message):
    strings = Encoder().encode(["ab"])
    with pytest.raises(InputError, match=message):
        subsequence_features(strings, **{"gap_decay": 0.5, "order": 3, **change})


def test_costs_grow_with_work():
    def strings(count, length):
        return EncodedStrings.from_tokens(np.random.default_rng(0).integers(1, 5, (count, length)).astype(np.uint8))

    few, many, long = strings(50, 60), strings(100, 60), strings(50, 120)
    base = cost(few, None, 5, derivative=False)
    assert base < cost(few, None, 5, derivative=True)
    assert base < cost(few, few.take(slice(None)), 5, derivative=False)
    assert base < cost(many, None, 5, derivative=False)
    assert base < cost(long, None, 5, derivative=False) < 2 * base
    assert base > cost(few, None, 4, derivative=False)
    assert base > cost(few, few, 5, derivative=False, paired=True)
