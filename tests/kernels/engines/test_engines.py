"""Every engine against enumeration, and the compiled one against the reference."""

from __future__ import annotations

import importlib.util
import multiprocessing
import platform
import subprocess
import sys
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import torch

from seqopt.encoding import EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import engines
from seqopt.kernels.engines import order_sums, paired_order_sums, self_order_sums
from seqopt.kernels.engines.packing import GROUP, PADDING, pack
from seqopt.kernels.engines.reference import pair_order_sums

ENGINES = ["reference", "cpu"]
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def random_strings(count, longest, rng, alphabet="abcd"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(longest + 1))) for _ in range(count)]


def encode_both(first, second):
    encoder = Encoder()
    return encoder.encode(first), encoder.encode(second)


def close(actual, expected, dtype):
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale * 1e-2)
    assert actual.dtype == dtype


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("order", "gap"), [(1, 0.5), (3, 1.0), (5, 0.3), (5, 0.9)])
def test_sums_and_derivatives_are_those_of_enumeration(engine, order, gap, brute_force):
    rng = np.random.default_rng(order)
    first = ["", "a", *random_strings(3, 9, rng, "abc"), "zzz"]
    second = [*random_strings(3, 9, rng, "abc"), "", "cabba"]
    a, b = encode_both(first, second)
    sums, derivatives = order_sums(a, b, gap, order, derivative=True, engine=engine)
    for i, left in enumerate(first):
        for j, right in enumerate(second):
            expected, expected_derivatives = brute_force.order_sums(left, right, order, gap)
            np.testing.assert_allclose(sums[:, i, j], expected, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(derivatives[:, i, j], expected_derivatives, rtol=1e-12, atol=1e-14)


# Around the number of lanes and groups, either side the longer, and more strings than a thread's share.
SHAPES = [(1, 1), (1, 37), (37, 1), (GROUP, GROUP + 1), (35, 18), (3, 2 * GROUP)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_cpu_agrees_with_reference_in_every_shape(shape, dtype, threads, monkeypatch):
    monkeypatch.setattr("seqopt.kernels.engines.cpu.THREADING_COST", 0)
    rng = np.random.default_rng(shape)
    a, b = encode_both(random_strings(shape[0], 15, rng), random_strings(shape[1], 11, rng))
    options = {"gap_decay": 0.7, "order": 3, "derivative": True}
    fast = {"dtype": dtype, "engine": "cpu", "threads": threads}
    for other in (b, None):
        expected = order_sums(a, other, engine="reference", **options)
        actual = order_sums(a, other, **fast, **options)
        for values, oracle in zip(actual, expected, strict=True):
            close(values, oracle, dtype)
        values_only, nothing = order_sums(a, other, 0.7, 3, **fast)
        close(values_only, expected[0], dtype)
        assert nothing is None
    for values, oracle in zip(
        self_order_sums(a, **fast, **options), self_order_sums(a, engine="reference", **options), strict=True
    ):
        close(values, oracle, dtype)
    shorter = min(shape)
    a, b = a.take(np.arange(shorter)), b.take(np.arange(shorter))
    for values, oracle in zip(
        paired_order_sums(a, b, **fast, **options),
        paired_order_sums(a, b, engine="reference", **options),
        strict=True,
    ):
        close(values, oracle, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 5, 12])
@pytest.mark.parametrize("gap", [1e-4, 0.5, 1.0])
def test_cpu_agrees_with_reference_at_the_ends_of_order_and_decay(order, gap):
    rng = np.random.default_rng(0)
    a, b = encode_both(random_strings(18, 30, rng), random_strings(3, 25, rng))
    expected = order_sums(a, b, gap, order, derivative=True, engine="reference")
    for dtype in (np.float64, np.float32):
        actual = order_sums(a, b, gap, order, derivative=True, dtype=dtype, engine="cpu")
        for values, oracle in zip(actual, expected, strict=True):
            for i in range(order):
                close(values[i], oracle[i], dtype)


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_are_sums_over_orders(engine):
    rng = np.random.default_rng(1)
    a, b = encode_both(random_strings(9, 15, rng), random_strings(4, 15, rng))
    matrix = rng.uniform(size=(3, 5))
    matrix[1, 2] = 0.0
    sums, derivatives = order_sums(a, b, 0.6, 5, derivative=True, engine=engine)
    for weights, pattern in ((matrix, "ri,iab->rab"), (matrix[0], "i,iab->ab")):
        values, slopes = order_sums(a, b, 0.6, 5, derivative=True, weights=weights, engine=engine)
        np.testing.assert_allclose(values, np.einsum(pattern, weights, sums), rtol=1e-12)
        np.testing.assert_allclose(slopes, np.einsum(pattern, weights, derivatives), rtol=1e-12)
    own, _ = self_order_sums(a, 0.6, 5, weights=matrix[0], engine=engine)
    full, _ = order_sums(a, None, 0.6, 5, weights=matrix[0], engine=engine)
    np.testing.assert_allclose(own, np.diagonal(full), rtol=1e-12)


def test_derivatives_are_those_of_autograd():
    rng = np.random.default_rng(2)
    a, b = encode_both(random_strings(4, 12, rng), random_strings(4, 12, rng))
    gap = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    sums = pair_order_sums(a.to_tensor(12), b.to_tensor(12), gap, 3)
    _, derivatives = paired_order_sums(a, b, 0.4, 3, derivative=True, engine="cpu")
    for i in range(3):
        for j in range(4):
            (slope,) = torch.autograd.grad(sums[i, j], gap, retain_graph=True)
            assert derivatives[i, j] == pytest.approx(slope.item(), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_symmetric_gram_is_exactly_symmetric(engine):
    strings = Encoder().encode(random_strings(40, 20, np.random.default_rng(3)))
    sums, derivatives = order_sums(strings, None, 0.8, 3, derivative=True, engine=engine)
    for part in (*sums, *derivatives):
        np.testing.assert_allclose(part, part.T, rtol=1e-12 if engine == "reference" else 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_strings_and_empty_strings(engine):
    none = EncodedStrings.from_tokens(np.zeros((0, 4), dtype=np.uint8))
    some = Encoder().encode(["ab", "c"])
    empty = Encoder().encode(["", ""])
    assert order_sums(none, some, 0.5, 3, engine=engine)[0].shape == (3, 0, 2)
    assert order_sums(some, none, 0.5, 3, engine=engine)[0].shape == (3, 2, 0)
    assert order_sums(none, None, 0.5, 3, engine=engine)[0].shape == (3, 0, 0)
    assert self_order_sums(none, 0.5, 3, engine=engine)[0].shape == (3, 0)
    for sums, _ in (
        order_sums(empty, some, 0.5, 3, engine=engine),
        order_sums(some, empty, 0.5, 3, engine=engine),
        order_sums(empty, None, 0.5, 3, engine=engine),
        self_order_sums(empty, 0.5, 3, engine=engine),
        paired_order_sums(empty, some, 0.5, 3, engine=engine),
    ):
        assert not sums.any()


def test_symbols_beyond_a_byte():
    rng = np.random.default_rng(4)
    tokens = rng.choice([1, 256, 257, 513, PADDING - 1], size=(19, 11)).astype(np.uint16)
    wide = EncodedStrings.from_tokens(tokens)
    narrow = EncodedStrings.from_tokens(np.full((3, 5), 1, dtype=np.uint8))
    for a, b in ((wide, narrow), (narrow, wide), (wide, None)):
        actual, expected = (order_sums(a, b, 0.5, 3, engine=engine)[0] for engine in ("cpu", "reference"))
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_fading_accumulators_do_not_disturb_float32():
    # Powers of the gap decay reach the denormal range of float32 within a string.
    strings = Encoder().encode(["ab" + "x" * 60 + "ab", "ab" + "y" * 60 + "ab"])
    actual, expected = (
        order_sums(strings, None, 0.1, 3, dtype=dtype, engine="cpu")[0] for dtype in (np.float32, np.float64)
    )
    close(actual, expected, np.float32)


def test_floating_point_mode_is_left_as_found():
    strings = Encoder().encode(["abab", "ba"])
    order_sums(strings, None, 0.5, 3, engine="cpu")
    self_order_sums(strings, 0.5, 3, engine="cpu")
    assert np.float64(1e-310) * np.float64(0.5) > 0


def test_packing_keeps_every_string_and_forgets_dead_ones():
    rng = np.random.default_rng(5)
    strings = Encoder().encode(random_strings(3 * GROUP + 5, 12, rng))
    packed = pack(strings)
    assert pack(strings) is packed
    assert np.all(np.diff(packed.lengths) >= 0)
    for position, number in enumerate(packed.order):
        group, lane = divmod(position, GROUP)
        width = packed.widths[group]
        column = packed.tokens[packed.starts[group] + lane :][: width * GROUP : GROUP][:width]
        length = strings.lengths[number]
        assert np.array_equal(column[:length], strings.tokens[number, :length])
        assert np.all(column[length:] == PADDING)
    alive = weakref.ref(packed)
    del packed, strings
    assert alive() is None


def _sum_of(strings):
    return float(order_sums(strings, None, 0.5, 3, engine="cpu")[0].sum())


def test_threads_may_call_at_once():
    strings = Encoder().encode(random_strings(60, 30, np.random.default_rng(6)))
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(_sum_of, [strings] * 12)) == {_sum_of(strings)}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_in_child_processes_after_use(method, monkeypatch):
    if method not in multiprocessing.get_all_start_methods() or (method == "fork" and sys.platform == "darwin"):
        pytest.skip(f"no {method} on this platform")
    monkeypatch.setattr("seqopt.kernels.engines.cpu.THREADING_COST", 0)
    strings = Encoder().encode(random_strings(40, 20, np.random.default_rng(7)))
    expected = order_sums(strings, None, 0.5, 3, engine="cpu", threads=2)[0].sum()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        assert pool.submit(_child_sum, strings).result(timeout=100) == expected


def _child_sum(strings):
    from seqopt.kernels.engines import cpu

    cpu.THREADING_COST = 0
    return order_sums(strings, None, 0.5, 3, engine="cpu", threads=2)[0].sum()


@pytest.mark.parametrize("partitions", [2, 5])
def test_parts_add_up_in_any_number_of_threads(partitions):
    rng = np.random.default_rng(9)
    a, b = encode_both(
        ["".join(rng.choice(list("abcd"), 5 + i % 9)) for i in range(30)],
        ["".join(rng.choice(list("abcd"), 6 + i % 5)) for i in range(7)],
    )
    options = {"gap_decay": 0.6, "order": 3, "derivative": True}
    pieces = list(zip(a.split(partitions), b.split(partitions), strict=True))
    for other, parts in ((b, pieces), (None, [(piece, None) for piece, _ in pieces])):
        separate = [order_sums(*part, engine="reference", **options) for part in parts]
        for threads in (1, 2):
            whole = order_sums(a, other, engine="cpu", threads=threads, partitions=partitions, **options)
            for values, added in zip(whole, zip(*separate, strict=True), strict=True):
                np.testing.assert_allclose(values, sum(added), rtol=1e-10)
    selves, _ = self_order_sums(a, 0.6, 3, partitions=partitions, threads=2)
    np.testing.assert_allclose(selves, np.diagonal(whole[0], axis1=1, axis2=2), rtol=1e-12)


def test_parts_of_more_symbols_than_the_first_have_an_engine_of_their_own():
    rng = np.random.default_rng(4)
    letters = [chr(ord("a") + number) for number in range(20)]
    strings = ["".join([*rng.choice(letters[:2], 200), *rng.choice(letters, 200)]) for _ in range(40)]
    a, b = encode_both(strings, strings[:20])
    for other in (b, None):
        first = a.split(2)[0], None if other is None else other.split(2)[0]
        assert engines._cheapest(*first, 5, derivative=False) == "features"
        sums, _ = order_sums(a, other, 0.5, 5, partitions=2)
        np.testing.assert_allclose(sums, order_sums(a, other, 0.5, 5, partitions=2, engine="pairs")[0], rtol=1e-10)


@pytest.mark.parametrize("rows", [None, 1, 17, 20])
def test_orders_beyond_single_precision_spoil_no_others(rows):
    a, b = encode_both(["ab" * 300, "ba" * 310], ["ab" * 300])
    weights = None if rows is None else np.vstack([np.eye(16)[:1], np.zeros((rows - 1, 16))])
    options = {"dtype": np.float32, "partitions": 2, "engine": "pairs", "weights": weights}
    for other in (b, None):
        sums, _ = order_sums(a, other, 1.0, 16, **options)
        assert np.isinf(order_sums(a, other, 1.0, 16, dtype=np.float32)[0][-1]).all()
        np.testing.assert_allclose(sums[0, :, 0], [2 * 2 * 150**2, 2 * 2 * 150 * 155], rtol=1e-6)
        assert rows is None or (sums[1:] == 0).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("engine", ["cpu", "features"])
def test_weighted_sums_of_parts_are_those_of_all_orders(engine, rows):
    rng = np.random.default_rng(rows)
    a, b = encode_both(
        ["".join(rng.choice(list("abcd"), 8 + i % 9)) for i in range(9)],
        ["".join(rng.choice(list("abcd"), 9 + i % 5)) for i in range(7)],
    )
    matrix = rng.uniform(size=(rows, 4))
    matrix[0, 2] = 0.0
    options = {"gap_decay": 0.6, "order": 4, "derivative": True, "partitions": 3}
    for other in (b, None):
        every = order_sums(a, other, engine="reference", **options)
        for weights, pattern in ((matrix, "ri,iab->rab"), (matrix[0], "i,iab->ab")):
            weighted = order_sums(a, other, weights=weights, engine=engine, **options)
            for values, all_orders in zip(weighted, every, strict=True):
                np.testing.assert_allclose(values, np.einsum(pattern, weights, all_orders), rtol=1e-10)
                assert other is not None or np.array_equal(values, values.swapaxes(-1, -2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partitions": 3}, "partitions is 3, but string 0 has 2 symbols"),
        ({"gap_decay": 0.0}, r"gap decay is 0.0; it must lie in \(0, 1\]"),
        ({"gap_decay": 1.5}, r"1.5.*\(0, 1\]"),
        ({"gap_decay": float("nan")}, "nan"),
        ({"order": 0}, "order is 0"),
        ({"order": 2.5}, "order is 2.5"),
        ({"weights": [1.0]}, r"shape \(1,\); expected \(3,\)"),
        ({"dtype": np.int64}, "int64.*float64 or float32"),
        ({"engine": "abacus"}, "'abacus': choose auto, cuda, features, cpu, pairs, shared, reference"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_bad_arguments_are_explained(change, message):
    strings = Encoder().encode(["ab"])
    with pytest.raises(InputError, match=message):
        order_sums(strings, None, **{"gap_decay": 0.5, "order": 3, **change})


def test_pairs_need_equal_numbers():
    with pytest.raises(InputError, match="1 and 2 strings"):
        paired_order_sums(Encoder().encode(["a"]), Encoder().encode(["a", "b"]), 0.5, 2)


def test_reserved_symbol_is_refused():
    tokens = EncodedStrings.from_tokens(np.array([[PADDING]], dtype=np.uint16))
    with pytest.raises(InputError, match="65535 is reserved"):
        order_sums(tokens, None, 0.5, 2, engine="cpu")


@pytest.mark.slow
def test_without_numba_auto_computes_and_cpu_explains():
    script = """
import sys
sys.modules["numba"] = None
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
kernel = SubsequenceKernel(5, 0.8, 0.5)
print(kernel.gram(["genetics", "genomic"])[0, 1].item())
try:
    SubsequenceKernel(engine="cpu")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=True)
    value, message = done.stdout.splitlines()
    assert float(value) == pytest.approx(0.423125604, abs=1e-9)
    assert "engine 'cpu' cannot be used here" in message
    assert "numba" in message


def test_a_missing_extra_is_named():
    if importlib.util.find_spec("triton") is None:
        with pytest.raises(InputError, match=r"engine 'cuda' cannot be used here.*seqopt\[cuda\]"):
            engines.check_engine("cuda")
    elif not torch.cuda.is_available():
        with pytest.raises(InputError, match=r"engine 'cuda' cannot be used here.*GPU"):
            engines.check_engine("cuda")


@pytest.mark.parametrize(
    ("count", "length", "threads", "expected"),
    [
        (400, 60, 2, "cuda"),
        (400, 60, 16, "cuda"),
        (400, 60, 100, "cpu"),
        (60, 60, 2, "cpu"),
        # A few pairs of long strings are much work, but leave most of a GPU idle.
        (16, 2000, 1, "cuda"),
        (16, 2000, 4, "cpu"),
    ],
)
def test_auto_takes_the_gpu_for_large_problems_that_the_cores_would_take_longer_for(
    count, length, threads, expected, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: False)
    monkeypatch.setattr(engines, "_why_not", lambda module: None)
    rng = np.random.default_rng(5)
    proteins = Encoder().encode(["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), length)) for _ in range(count)])
    assert engines._cheapest(proteins, None, 5, False, threads) == expected


@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (16, 2000), (30, None), (5, None)], ids=str)
def test_few_groups_are_shared_out_too(shape, monkeypatch):
    monkeypatch.setattr("seqopt.kernels.engines.cpu.THREADING_COST", 0)
    rng = np.random.default_rng(shape[0])
    a = Encoder().encode(random_strings(shape[0], 15, rng))
    b = None if shape[1] is None else Encoder().encode(random_strings(shape[1], 12, rng))
    alone = order_sums(a, b, 0.7, 3, engine="cpu", threads=1)[0]
    for threads in (2, 3):
        np.testing.assert_array_equal(order_sums(a, b, 0.7, 3, engine="cpu", threads=threads)[0], alone)


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="done for these processors only")
def test_vectors_that_are_kept_on_the_stack_lie_within_cache_lines():
    import numba

    from seqopt.kernels.engines.compiled import align_stack

    @numba.njit
    def aligned():
        align_stack()
        return 1

    assert aligned() == 1
    assert "alignstack(64)" in aligned.inspect_llvm(aligned.signatures[0])
