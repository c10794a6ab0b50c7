"""The cuda engine against the reference: through Triton's interpreter, and on a GPU where there is one."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from packaging.version import Version

from seqopt.encoding import EncodedStrings, Encoder
from seqopt.kernels.engines import cpu, reference

MODULE = "seqopt.kernels.engines.cuda"
HAS_TRITON = importlib.util.find_spec("triton") is not None
HAS_GPU = torch.cuda.is_available()
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}

needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed: pip install 'seqopt[cuda]'")
needs_compiler = pytest.mark.skipif(
    not HAS_TRITON or "TRITON_INTERPRET" in os.environ, reason="needs Triton, and not its interpreter"
)


def call(name, *args, settings=None, **options):
    """A function of the engine by name, with some of its constants replaced for the time of the call."""
    module = importlib.import_module(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        for constant, value in (settings or {}).items():
            patch.setattr(module, constant, value)
        return getattr(module, name)(*args, **options)


def sums_on_device(a, b, *args, paired=False, **options):
    """The device-resident form, brought to the host."""
    module = importlib.import_module(MODULE)
    there = [None if strings is None else module.to_device(strings) for strings in (a, b)]
    compute = module.paired_order_sums_on_device if paired else module.order_sums_on_device
    sums, derivatives = compute(*there, *args, **options)
    assert sums.device == there[0].columns.device
    return sums.cpu().numpy(), None if derivatives is None else derivatives.cpu().numpy()


@pytest.fixture(scope="module", params=["interpreter", *(["gpu"] if HAS_GPU else [])])
def run(request):
    """Runs a function where the kernel is interpreted, or compiled for a GPU."""
    if not HAS_TRITON:
        pytest.skip("Triton is not installed: pip install 'seqopt[cuda]'")
    if request.param == "gpu":
        yield lambda function, *args, **options: function(*args, **options)
        return
    if Version(version("triton")) < Version("3.7") and Version(np.__version__) >= Version("2.4"):
        pytest.skip("Triton before 3.7 cannot interpret with NumPy from 2.4 on")
    # Triton decides at import whether to interpret; a process of its own keeps that from other tests.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            pool.submit(os.getpid).result()
        yield lambda function, *args, **options: pool.submit(function, *args, **options).result(timeout=200)


@pytest.fixture(scope="module")
def engine(run):
    """The two functions of the engine, as of a module."""
    return SimpleNamespace(
        order_sums=partial(run, call, "order_sums"), paired_order_sums=partial(run, call, "paired_order_sums")
    )


def random_strings(count, longest, rng, alphabet="abc"):
    return ["".join(rng.choice(list(alphabet), size=rng.integers(longest + 1))) for _ in range(count)]


def encode_both(first, second):
    encoder = Encoder()
    return encoder.encode(first), encoder.encode(second)


def options_of(dtype=np.float64, derivative=True):
    return {"derivative": derivative, "dtype": np.dtype(dtype), "threads": None}


def agree(actual, expected, dtype=np.float64):
    """Every plane of values and derivatives is close in relation to its own largest entry."""
    for values, oracle in zip(actual, expected, strict=True):
        assert (values is None) == (oracle is None)
        if oracle is None:
            continue
        assert values.dtype == dtype
        assert values.shape == oracle.shape
        for plane, oracle_plane in zip(values, oracle, strict=True):
            scale = np.abs(oracle_plane).max(initial=0)
            np.testing.assert_allclose(plane, oracle_plane, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale * 1e-2)


@pytest.mark.parametrize(
    ("order", "gap", "dtype", "derivative"),
    [
        pytest.param(1, 0.5, np.float64, True, marks=pytest.mark.slow),
        (2, 1e-4, np.float64, False),
        (2, 1.0, np.float32, True),
        (5, 0.5, np.float64, True),
        (5, 0.5, np.float32, False),
        (5, 1e-4, np.float32, True),
        (5, 1.0, np.float64, False),
        pytest.param(8, 0.5, np.float64, False, marks=pytest.mark.slow),
        pytest.param(8, 1.0, np.float32, True, marks=pytest.mark.slow),
    ],
)
def test_agrees_with_reference(engine, order, gap, dtype, derivative):
    rng = np.random.default_rng(order)
    # Of the columns, one is empty, one fills part of a tile and one is wider than a tile at every order.
    a, b = encode_both(["", *random_strings(4, 9, rng), "abcabcabc"], ["", "cabba", "abcacbabbcacbabc"])
    weights = np.eye(order)
    options = options_of(dtype, derivative)
    oracle = options_of(np.float64, derivative)
    agree(engine.order_sums(a, b, gap, weights, **options), reference.order_sums(a, b, gap, weights, **oracle), dtype)
    partners = b.take([2, 1, 0, 2, 2, 1])
    agree(
        engine.paired_order_sums(a, partners, gap, weights, **options),
        reference.paired_order_sums(a, partners, gap, weights, **oracle),
        dtype,
    )


@pytest.mark.parametrize("shape", [(1, 1), (35, 2), (2, 35)], ids=str)
def test_either_side_may_fill_several_warps(engine, shape):
    rng = np.random.default_rng(shape)
    a, b = encode_both(random_strings(shape[0], 6, rng), random_strings(shape[1], 5, rng))
    weights = np.eye(3)
    agree(
        engine.order_sums(a, b, 0.7, weights, **options_of()), reference.order_sums(a, b, 0.7, weights, **options_of())
    )


def test_many_tiles_pass_the_row_accumulators_on(engine):
    rng = np.random.default_rng(1)
    a, b = encode_both(random_strings(3, 7, rng, "ab"), ["".join(rng.choice(list("ab"), size=41))])
    weights = np.eye(4)
    expected = reference.order_sums(a, b, 0.9, weights, **options_of())
    for widest in (1, 5, 41):
        agree(engine.order_sums(a, b, 0.9, weights, settings={"WIDEST_TILE": widest}, **options_of()), expected)


@pytest.mark.slow
@pytest.mark.parametrize("block_bytes", [1 << 30, 4000])
def test_symmetric_gram_is_exactly_symmetric_in_any_blocks(engine, block_bytes):
    strings = Encoder().encode(random_strings(35, 3, np.random.default_rng(3)))
    weights, settings = np.eye(2), {"BLOCK_BYTES": block_bytes}
    actual = engine.order_sums(strings, None, 0.8, weights, settings=settings, **options_of())
    agree(actual, reference.order_sums(strings, None, 0.8, weights, **options_of()))
    for part in (*actual[0], *actual[1]):
        np.testing.assert_array_equal(part, part.T)


def test_blocks_do_not_change_results(engine):
    rng = np.random.default_rng(4)
    a, b = encode_both(random_strings(6, 5, rng), random_strings(6, 5, rng))
    weights = np.eye(2)
    for compute in (engine.order_sums, engine.paired_order_sums):
        whole = compute(a, b, 0.6, weights, **options_of())
        # One row, or one pair, at a time.
        pieces = compute(a, b, 0.6, weights, settings={"BLOCK_BYTES": 1}, **options_of())
        for values, expected in zip(pieces, whole, strict=True):
            np.testing.assert_array_equal(values, expected)


def test_weights_are_sums_over_orders(engine):
    rng = np.random.default_rng(5)
    a, b = encode_both(random_strings(4, 8, rng), random_strings(2, 8, rng))
    weights = rng.uniform(size=(3, 4))
    weights[1, 2] = 0.0
    for compute, oracle in (
        (engine.order_sums, reference.order_sums),
        (engine.paired_order_sums, reference.paired_order_sums),
    ):
        left = a if compute is engine.order_sums else a.take([0, 1])
        sums = oracle(left, b, 0.6, np.eye(4), **options_of())
        agree(
            compute(left, b, 0.6, weights, **options_of()),
            [np.einsum("ri,i...->r...", weights, part) for part in sums],
        )


def test_no_strings_and_empty_strings(engine):
    none = EncodedStrings.from_tokens(np.zeros((0, 4), dtype=np.uint8))
    some, empty = encode_both(["ab", "c"], ["", ""])
    weights = np.eye(3)
    for a, b, shape in ((none, some, (3, 0, 2)), (some, none, (3, 2, 0)), (none, None, (3, 0, 0))):
        assert engine.order_sums(a, b, 0.5, weights, **options_of())[0].shape == shape
    assert engine.paired_order_sums(none, none, 0.5, weights, **options_of())[0].shape == (3, 0)
    for sums, derivatives in (
        engine.order_sums(empty, some, 0.5, weights, **options_of()),
        engine.order_sums(some, empty, 0.5, weights, **options_of()),
        engine.order_sums(empty, None, 0.5, weights, **options_of()),
        engine.paired_order_sums(empty, some, 0.5, weights, **options_of()),
    ):
        assert not sums.any()
        assert not derivatives.any()


def test_symbols_beyond_a_byte_and_beyond_fifteen_bits(engine):
    rng = np.random.default_rng(6)
    tokens = rng.choice([1, 256, 257, 40_000, 65_534], size=(5, 7)).astype(np.uint16)
    wide = EncodedStrings.from_tokens(tokens)
    narrow = EncodedStrings.from_tokens(np.array([[1, 1, 200], [200, 1, 0]], dtype=np.uint8))
    weights = np.eye(3)
    for a, b in ((wide, narrow), (narrow, wide), (wide, None)):
        agree(
            engine.order_sums(a, b, 0.5, weights, **options_of()),
            reference.order_sums(a, b, 0.5, weights, **options_of()),
        )


def test_results_may_stay_on_the_device(run, engine):
    rng = np.random.default_rng(7)
    a, b = encode_both(random_strings(3, 6, rng), random_strings(3, 6, rng))
    weights, choice = np.eye(3), {"derivative": True, "dtype": np.dtype(np.float64)}
    for right, paired in ((b, False), (None, False), (b, True)):
        compute = engine.paired_order_sums if paired else engine.order_sums
        expected = compute(a, right, 0.5, weights, **options_of())
        actual = run(sums_on_device, a, right, 0.5, weights, paired=paired, **choice)
        for values, oracle in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(values, oracle)


@pytest.mark.skipif(not (HAS_TRITON and HAS_GPU), reason="needs Triton and a CUDA GPU")
def test_many_programs_at_once_and_long_strings_on_a_gpu():
    rng = np.random.default_rng(8)
    weights = np.eye(5)
    a, b = encode_both(random_strings(3000, 110, rng, "abcdefgh"), random_strings(700, 110, rng, "abcdefgh"))
    long = Encoder().encode(["".join(rng.choice(list("abcd"), size=size)) for size in (10_000, 9_999, 400)])
    for left, right in ((a, b), (b, a), (b, None), (long, None)):
        for dtype in (np.float64, np.float32):
            expected = cpu.order_sums(left, right, 0.3, weights, **options_of())
            agree(call("order_sums", left, right, 0.3, weights, **options_of(dtype)), expected, dtype)


@pytest.mark.skipif(not (HAS_TRITON and HAS_GPU), reason="needs Triton and a CUDA GPU")
def test_weight_zero_keeps_an_overflowed_order_out_on_a_gpu():
    # The square of 90 choose 26 is beyond float32.
    strings = Encoder().encode(["a" * 90])
    weights = np.eye(26)[[0, 25]]
    sums, _ = call("paired_order_sums", strings, strings, 1.0, weights, **options_of(np.float32, False))
    assert sums[0, 0] == 90 * 90
    assert np.isinf(sums[1, 0])


def test_interpreter_passes_the_check(run):
    assert run(call, "check") is None


@needs_compiler
@pytest.mark.skipif(HAS_GPU, reason="there is a GPU here")
def test_without_a_gpu_the_check_explains():
    with pytest.raises(ImportError, match=r"needs an NVIDIA GPU: (this torch was built without CUDA|torch finds none)"):
        call("check")


def test_without_triton_the_import_explains(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(ImportError, match=r"needs Triton, pip install 'seqopt\[cuda\]'"):
        importlib.import_module(MODULE)


@needs_compiler
def test_scratch_is_bounded(monkeypatch):
    module = importlib.import_module(MODULE)
    gpu = SimpleNamespace(multi_processor_count=132, total_memory=140 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    most = module._most_programs
    assert most(50_000, None) == most(0, None) == 132 * module.PROGRAMS_PER_MULTIPROCESSOR
    assert 1 < most(20_000_000, None) <= module.SCRATCH_BYTES // 20_000_000
    assert most(1 << 40, None) == 1
    gpu.total_memory = 4 << 30
    assert most(20_000_000, None) * 20_000_000 <= gpu.total_memory // 8


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("order", "dtype", "derivative", "form"),
    [
        (1, np.float32, False, None),
        (5, np.float32, False, None),
        (5, np.float32, True, "SYMMETRIC"),
        (5, np.float64, False, "PAIRED"),
        (5, np.float64, True, None),
    ],
)
def test_state_stays_in_registers_on_compute_capability_9(order, dtype, derivative, form, monkeypatch, tmp_path):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    disassembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not disassembler.exists():
        pytest.skip("this Triton comes without cuobjdump")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    module = importlib.import_module(MODULE)
    kernel = module.order_sums_kernel
    constants = {
        "ORDER": order,
        "TILE": module.tile_width(order, derivative, np.dtype(dtype)),
        "LANES": module.LANES,
        "DERIVATIVE": derivative,
        "SYMMETRIC": form == "SYMMETRIC",
        "PAIRED": form == "PAIRED",
    }
    number = "fp64" if dtype == np.float64 else "fp32"
    types = dict.fromkeys(["rows", "row_lengths", "columns", "column_lengths"], "*i32")
    types |= dict.fromkeys(["lane_numbers", "column_numbers", "queue"], "*i64")
    types |= dict.fromkeys(["gap_decay", "weights", "results", "scratch"], f"*{number}")
    types |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(
        fn=kernel,
        signature={name: types.get(name, "i32") for name in kernel.arg_names},
        constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()},
    )
    compiled = triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1, "enable_fp_fusion": True}
    )
    (tmp_path / "kernel.cubin").write_bytes(compiled.asm["cubin"])
    usage = subprocess.run(
        [disassembler, "--dump-resource-usage", tmp_path / "kernel.cubin"], capture_output=True, text=True, check=True
    ).stdout
    # What does not fit into registers is spilt to the stack.
    assert re.search(r"\bSTACK:0\b", usage)
    assert re.search(r"\bLOCAL:0\b", usage)
