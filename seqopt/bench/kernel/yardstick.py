"""A hand-vectorised C++ loop for the same sums as the engines: what to measure them against.

``yardstick.cpp`` next to this module is compiled when it is first needed, by ``$CXX`` or ``c++`` for the processor at
hand, and kept in the cache folder. It is not part of the library: it shows how far the `cpu` engine, which needs no
compiler, is from what the machine can do.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
import weakref
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.utils.cache import cache_dir, digest

FloatArray = npt.NDArray[np.floating]

SOURCE = Path(__file__).with_name("yardstick.cpp")
FLAGS = ("-std=c++20", "-O3", "-march=native", "-shared", "-fPIC", "-pthread")
ORDERS = range(1, 9)
"""The orders that the loop is compiled for."""

BLOCKS = (1, 2, 3)
"""Rows of the dynamic program in one pass."""


class NoCompilerError(RuntimeError):
    """The loop cannot be compiled or loaded here; the message says why and what to do."""


class Packed:
    """Strings in the layout of the loop, sorted by length and in groups of 16; freed with this object."""

    def __init__(self, library: ctypes.CDLL, strings: EncodedStrings) -> None:
        tokens = np.ascontiguousarray(strings.tokens, dtype=np.uint16)
        lengths = np.ascontiguousarray(strings.lengths, dtype=np.int32)
        self.count = len(lengths)
        self.pointer: int = library.yardstick_pack(tokens.ctypes.data, lengths.ctypes.data, *tokens.shape)
        weakref.finalize(self, library.yardstick_free, self.pointer)


class Yardstick:
    """The compiled loop.

    Args:
        library: As loaded by `load`.
        compiler: What compiled it, for the record.

    Attributes:
        compiler: As given.
        instructions: The vector instructions in use, such as ``"AVX-512"``.
    """

    def __init__(self, library: ctypes.CDLL, compiler: str) -> None:
        pointer, whole, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
        library.yardstick_instructions.restype = ctypes.c_char_p
        library.yardstick_pack.restype = pointer
        library.yardstick_pack.argtypes = [pointer, pointer, whole, whole]
        library.yardstick_free.restype = None
        library.yardstick_free.argtypes = [pointer]
        for name in ("yardstick_float32", "yardstick_float64"):
            function = getattr(library, name)
            function.restype = None
            function.argtypes = [pointer, pointer, real, whole, pointer, pointer, pointer, whole, whole]
        self._library = library
        self.compiler = compiler
        self.instructions: str = library.yardstick_instructions().decode()
        self._blocks: dict[tuple[int, bool, np.dtype], int] = {}

    def pack(self, strings: EncodedStrings) -> Packed:
        """The form of ``strings`` that `sums` takes."""
        return Packed(self._library, strings)

    def sums(
        self,
        a: Packed,
        b: Packed | None,
        gap_decay: float,
        weights: Sequence[float] | npt.NDArray[np.floating],
        *,
        derivative: bool = False,
        dtype: npt.DTypeLike = np.float64,
        threads: int = 1,
        block: int | None = None,
    ) -> tuple[FloatArray, FloatArray | None]:
        """sum_i w_i h_i(a, b) and its derivative in the gap decay, as `seqopt.kernels.engines.order_sums`.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again and costs half.
            gap_decay: In (0, 1].
            weights: One for each order from 1 to n, n at most 8.
            derivative: Also return the derivatives.
            dtype: float64 or float32.
            threads: Number of threads.
            block: Rows in one pass, one of `BLOCKS` (default: what is fastest here, tried once).

        Returns:
            ``len(a) x len(b)``, twice if the derivative is asked for (else `None`).

        Raises:
            InputError: For an order that the loop is not compiled for.
        """
        number = np.dtype(dtype)
        vector = np.ascontiguousarray(weights, dtype=np.float64)
        if vector.ndim != 1 or len(vector) not in ORDERS:
            raise InputError(f"{vector.size} weights; the loop is compiled for orders {ORDERS[0]} to {ORDERS[-1]}")
        rows = self._fastest_block(len(vector), derivative, number) if block is None else block
        other = a if b is None else b
        results = np.empty((1 + derivative, a.count, other.count), dtype=number)
        getattr(self._library, f"yardstick_{number.name}")(
            a.pointer,
            other.pointer,
            gap_decay,
            len(vector),
            vector.ctypes.data,
            results[0].ctypes.data,
            results[1].ctypes.data if derivative else None,
            threads,
            rows,
        )
        return results[0], results[1] if derivative else None

    def _fastest_block(self, order: int, derivative: bool, dtype: np.dtype) -> int:
        key = order, derivative, dtype
        if key not in self._blocks:
            tokens = np.random.default_rng(0).integers(1, 30, size=(96, 48), dtype=np.uint16)
            strings = self.pack(EncodedStrings.from_tokens(tokens))
            seconds = dict.fromkeys(BLOCKS, np.inf)
            for _ in range(5):
                for block in BLOCKS:
                    started = time.perf_counter()
                    self.sums(strings, None, 0.5, np.ones(order), derivative=derivative, dtype=dtype, block=block)
                    seconds[block] = min(seconds[block], time.perf_counter() - started)
            self._blocks[key] = min(BLOCKS, key=seconds.__getitem__)
        return self._blocks[key]


@lru_cache(maxsize=1)
def load() -> Yardstick:
    """Compile the loop, unless that was done before on this machine, and load it.

    Raises:
        NoCompilerError: If there is no compiler, or it fails.
    """
    command = os.environ.get("CXX", "c++")
    compiler = shutil.which(command)
    if compiler is None:
        raise NoCompilerError(f"no C++ compiler {command!r} found: install one (g++ or clang++), or set $CXX")
    version = _run([compiler, "--version"]).partition("\n")[0]
    key = digest([SOURCE.read_text(encoding="utf-8"), compiler, version, *FLAGS, *_processor()])
    name = f"yardstick-{key[:16]}.so"
    try:
        return Yardstick(ctypes.CDLL(str(cache_dir() / name)), version)
    except OSError:
        pass  # not compiled yet
    with TemporaryDirectory() as folder:
        built = Path(folder) / name
        _run([compiler, *FLAGS, "-o", str(built), str(SOURCE)])
        try:
            cache_dir().mkdir(parents=True, exist_ok=True)
            # Copied under another name and renamed: another process may be loading it.
            partial = cache_dir() / f"{name}.{os.getpid()}"
            shutil.copyfile(built, partial)
            built = partial.replace(cache_dir() / name)
        except OSError:
            pass  # without a cache it is compiled again next time
        try:
            return Yardstick(ctypes.CDLL(str(built)), version)
        except OSError as error:
            raise NoCompilerError(f"{compiler} made a library that cannot be loaded: {error}") from error


def _run(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    except (OSError, subprocess.SubprocessError) as error:
        detail = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]
        raise NoCompilerError(
            f"{' '.join(command)} failed ({detail}): set $CXX to GCC 10 or Clang 12, or later"
        ) from error


def _processor() -> list[str]:
    """What the compiler sees of the processor: a library for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        import platform

        return [platform.processor(), platform.machine()]
    return sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
