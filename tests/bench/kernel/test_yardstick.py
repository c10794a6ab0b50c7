"""The hand-written loop computes what the reference engine computes."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from seqopt.bench.kernel import yardstick
from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.engines import order_sums

TOLERANCE = {"float64": 1e-11, "float32": 1e-4}


@pytest.fixture(scope="module")
def loop():
    try:
        return yardstick.load()
    except yardstick.NoCompilerError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the reference works on tiny matrices here
    yield
    torch.set_num_threads(before)


def random_strings(count, longest, seed, alphabet=4):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, alphabet + 1, size=(count, longest), dtype=np.uint16)
    lengths = rng.integers(longest + 1, size=count)
    tokens[np.arange(longest)[None, :] >= lengths[:, None]] = 0
    return EncodedStrings.from_tokens(tokens)


def assert_equal_to_reference(loop, a, b, gap, weights, settings):
    expected = order_sums(a, b, gap, len(weights), weights=weights, derivative=True, engine="reference")
    packed = loop.pack(a), None if b is None else loop.pack(b)
    for dtype, tolerance in TOLERANCE.items():
        for options in settings:
            both = loop.sums(*packed, gap, weights, derivative=True, dtype=dtype, **options)
            alone, nothing = loop.sums(*packed, gap, weights, dtype=dtype, **options)
            assert nothing is None
            for values, oracle in zip((*both, alone), (*expected, expected[0]), strict=True):
                assert values.dtype == dtype
                scale = np.abs(oracle).max(initial=1.0)
                np.testing.assert_allclose(values, oracle, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("order", yardstick.ORDERS)
def test_every_order_precision_and_number_of_rows(loop, order):
    a, b = random_strings(21, 17, order), random_strings(9, 14, order + 100)
    weights = np.random.default_rng(order).uniform(0.1, 1.0, size=order)
    for other in (b, None):
        assert_equal_to_reference(loop, a, other, 0.7, weights, [{"block": block} for block in yardstick.BLOCKS])


# Around the number of lanes and groups, either side the longer.
@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (37, 1), (16, 17), (35, 18), (3, 32)], ids=str)
def test_every_shape_and_number_of_threads(loop, shape):
    a, b = random_strings(shape[0], 15, 1), random_strings(shape[1], 11, 2)
    for other in (b, None):
        assert_equal_to_reference(loop, a, other, 0.5, 0.64 ** np.arange(1, 4), [{"threads": 1}, {"threads": 3}])


@pytest.mark.parametrize("gap", [1e-3, 1.0])
def test_ends_of_the_gap_decay_and_large_alphabets(loop, gap):
    a, b = random_strings(18, 40, 3, alphabet=300), random_strings(5, 40, 4, alphabet=3)
    assert_equal_to_reference(loop, a, b, gap, np.ones(5), [{}])
    assert_equal_to_reference(loop, b, None, gap, np.ones(5), [{}])


def test_no_strings_and_empty_strings(loop):
    none = EncodedStrings.from_tokens(np.zeros((0, 3), dtype=np.uint8))
    empty = EncodedStrings.from_tokens(np.zeros((2, 3), dtype=np.uint8))
    some = random_strings(5, 8, 5)
    for a, b in ((none, some), (some, none), (none, None), (empty, some), (some, empty), (empty, None)):
        assert_equal_to_reference(loop, a, b, 0.5, np.ones(3), [{"threads": 2}])


def test_floating_point_mode_is_left_as_found(loop):
    strings = loop.pack(random_strings(5, 8, 6))
    loop.sums(strings, None, 0.5, np.ones(5))
    assert np.float64(1e-310) * np.float64(0.5) > 0


def test_orders_beyond_the_compiled_ones_are_refused(loop):
    strings = loop.pack(random_strings(2, 5, 7))
    with pytest.raises(InputError, match="orders 1 to 8"):
        loop.sums(strings, None, 0.5, np.ones(9))
    del strings
    gc.collect()


def test_a_missing_or_failing_compiler_is_explained(monkeypatch, tmp_path):
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    yardstick.load.cache_clear()
    try:
        monkeypatch.setenv("CXX", "no-such-compiler")
        with pytest.raises(yardstick.NoCompilerError, match=r"no-such-compiler.*\$CXX"):
            yardstick.load()
        monkeypatch.setenv("CXX", "false")
        with pytest.raises(yardstick.NoCompilerError, match=r"failed.*\$CXX"):
            yardstick.load()
    finally:
        yardstick.load.cache_clear()
