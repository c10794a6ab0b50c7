"""Compiled loops of the cpu engine: the dynamic program in vector registers, and the loops over pairs.

One row of the dynamic program (Moss 2021, B.1, with match decay 1), for as many pairs of strings at once as a
vector register has lanes. With P_i[j, k] the gap-weighted number of common sub-sequences of length i that end
with a_j and b_k,

    column accumulators   C_i[k] = sum over j' < j of gap^(j-j'-1) P_i[j', k]
    row accumulators      R_i    = sum over k' < k of gap^(k-k'-1) C_i[k']
    at cell (j, k)        P_1 = [a_j = b_k],   P_{i+1} = [a_j = b_k] R_i,   h_i += P_i,
                          R_i <- gap R_i + C_i[k],   C_i[k] <- gap C_i[k] + P_i,

and the same differentiated in the gap decay: dP_{i+1} = [a_j = b_k] dR_i, dh_i += dP_i,
dR_i <- gap dR_i + R_i + dC_i[k], dC_i[k] <- gap dC_i[k] + C_i[k] + dP_i, all with the old R_i and C_i on the
right.

Numba keeps R_i and h_i in memory, because it indexes them by i, and so reads and writes them at every cell.
The row is therefore written in LLVM's intermediate representation, where they are values of a loop whose body
is unrolled over the orders; LLVM maps vectors onto whatever registers the processor has. No compiler is
needed but the one in Numba.

Everything compiled is in this one file, because Numba's cache on disk notices changes of this file only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from seqopt.kernels.engines.packing import GROUP, STEP
from seqopt.utils.compiling import compiled, compiled_part

FloatArray = npt.NDArray[np.floating]

_CPU_FEATURES = llvm.get_host_cpu_features()
REGISTER_BYTES = 64 if _CPU_FEATURES.get("avx512f") else 32 if _CPU_FEATURES.get("avx2") else 16
"""Width of the vector registers of this processor; at most `GROUP` float32 lanes."""

_IS_X86 = llvm.get_process_triple().split("-")[0] in ("x86_64", "amd64")

SMALLEST_SCALE = 1e-4
"""Product of gap decays from which `fill_features` multiplies all its sums by it, and least that it divides by."""

CACHE_LINE = 64
"""Bytes of a cache line, a multiple of every vector register."""

_FLUSH_DENORMALS = 0x8040
"""The bits flush-to-zero and denormals-are-zero of the x86 floating-point control register."""


class Groups(NamedTuple):
    """The part of `PackedStrings` that compiled code reads."""

    tokens: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


class Workspace(NamedTuple):
    """Scratch memory of one thread: row symbols, C and dC, h and dh, those of a row, weighted; last axis lanes."""

    symbols: npt.NDArray[np.uint16]
    state: FloatArray
    sums: FloatArray
    row_sums: FloatArray
    weighted: FloatArray


class Program(NamedTuple):
    """What the dynamic program computes; the lengths of the two tuples specialise the code.

    Attributes:
        gap: Gap decay, in the precision of the computation.
        weights: r x order.
        orders: Any tuple as long as the order.
        parts: Any tuple of length 1 (values only) or 2 (values and derivatives).
    """

    gap: np.floating
    weights: FloatArray
    orders: tuple[int, ...]
    parts: tuple[int, ...]


@intrinsic
def sweep_row(
    typingctx: Any,
    symbols: Any,
    first_symbol: Any,
    columns: Any,
    first_column: Any,
    width: Any,
    states: Any,
    from_state: Any,
    to_state: Any,
    sums: Any,
    from_sums: Any,
    to_sums: Any,
    row_sums: Any,
    gap: Any,
    orders: Any,
    parts: Any,
) -> Any:
    """One row of the dynamic program for one vector of pairs.

    Args:
        typingctx: Numba's typing context.
        symbols: uint16; the symbol a_j of each lane starts at index ``first_symbol``.
        first_symbol: See ``symbols``.
        columns: uint16; the symbol b_k of each lane starts at ``first_column + k * GROUP``.
        first_column: See ``columns``.
        width: Number of columns, a multiple of `STEP`.
        states: Holds C_i[k] and dC_i[k], ``width x (order - 1) x parts x lanes``, before and after the row.
        from_state: Where those before the row begin.
        to_state: Where those after the row go; it may be the same place.
        sums: Holds h_i and dh_i, ``order x parts x lanes``, before and after the row.
        from_sums: As with ``states``.
        to_sums: As with ``states``.
        row_sums: Zeros, ``order x parts x lanes``; used meanwhile.
        gap: The gap decay.
        orders: See `Program`.
        parts: See `Program`.
    """
    order, with_derivative = len(orders), len(parts) == 2
    # Sums of the row and accumulators of order 5 with derivatives are 17 vectors. Where there are 16 registers the sums
    # are kept in memory, since a compiler that has to choose moves all of them back and forth, and all positions of a
    # step are added to them at once. Without derivatives all have their registers, and one position takes the fewest.
    in_registers = not with_derivative or REGISTER_BYTES == 64
    step = STEP if with_derivative else 1
    places = (types.intp, types.intp)
    arguments = (
        *(symbols, types.intp, columns, types.intp, types.intp, states, *places, sums, *places),
        *(row_sums, gap, orders, parts),
    )

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        itemsize = 4 if gap == types.float32 else 8
        lanes = REGISTER_BYTES // itemsize
        index, number = ir.IntType(64), context.get_value_type(gap)
        vector, tokens = ir.VectorType(number, lanes), ir.VectorType(ir.IntType(16), lanes)
        zero, one = ir.Constant(vector, [0.0] * lanes), ir.Constant(vector, [1.0] * lanes)
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{lanes}f{8 * itemsize}"
        )

        def address(array: int, offset: Any, kind: Any) -> Any:
            base = context.make_array(signature.args[array])(context, builder, args[array]).data
            return builder.bitcast(builder.gep(base, [offset]), kind.as_pointer())

        def gap_times(x: Any, plus: Any) -> Any:
            return builder.call(fma, [decay, x, plus])

        def before_row(offset: Any) -> Any:
            return address(5, builder.add(args[6], offset), vector)

        def after_row(offset: Any) -> Any:
            return address(5, builder.add(args[7], offset), vector)

        decay = zero
        for lane in range(lanes):
            decay = builder.insert_element(decay, args[12], ir.IntType(32)(lane))
        symbol = builder.load(address(0, args[1], tokens), align=2)
        sums_kept = order * len(parts)
        # P_1 counts matches, which no gap decay changes: its derivative is left out, here and below.
        used = [i for i in range(sums_kept) if not (with_derivative and i == 1)]
        totals = {i: address(8, builder.add(args[9], index(i * lanes)), vector) for i in used}
        totals_after = {i: address(8, builder.add(args[10], index(i * lanes)), vector) for i in used}
        in_row = {i: address(11, index(i * lanes), vector) for i in used}

        entry = builder.block
        loop, end = builder.append_basic_block("column"), builder.append_basic_block("end_of_row")
        builder.branch(loop)
        builder.position_at_end(loop)

        def loop_value(initial: Any) -> Any:
            phi = builder.phi(initial.type)
            phi.add_incoming(initial, entry)
            return phi

        k = loop_value(index(0))
        # Summed row by row and then over rows: one sum over all cells would lose digits in single precision.
        row = {i: loop_value(zero) for i in used} if in_registers else {}
        next_row = {}

        def add(i: int, x: Any) -> None:
            """Add to the i-th sum of the row."""
            if in_registers:
                next_row[i] = builder.fadd(row[i], x)
            else:
                builder.store(builder.fadd(builder.load(in_row[i], align=itemsize), x), in_row[i], align=itemsize)

        r = [loop_value(zero) for _ in range(order - 1)]
        dr = [loop_value(zero) for _ in range(order - 1)] if with_derivative else []

        positions = [builder.add(k, index(ahead)) for ahead in range(step)]
        matches, p = [], []
        for position in positions:
            column = builder.add(args[3], builder.mul(position, index(GROUP)))
            here = builder.load(address(2, column, tokens), align=2)
            matches.append(builder.icmp_unsigned("==", here, symbol))
            p.append(builder.select(matches[-1], one, zero))
        dp: list[Any] = []
        next_r, next_dr = [], []
        # Order by order, and for each of them all positions of the step: that takes few registers.
        for i in range(order):
            add(i * len(parts), reduce(builder.fadd, p))
            if dp:
                add(i * len(parts) + 1, reduce(builder.fadd, dp))
            if i == order - 1:
                break
            so_far, slope = r[i], dr[i] if with_derivative else None
            next_p, next_dp = [], []
            for position, match, matched, *matched_slope in zip(
                positions, matches, p, *([dp] if dp else []), strict=True
            ):
                offset = builder.mul(
                    builder.add(builder.mul(position, index(order - 1)), index(i)), index(len(parts) * lanes)
                )
                c = builder.load(before_row(offset), align=itemsize)
                builder.store(gap_times(c, plus=matched), after_row(offset), align=itemsize)
                next_p.append(builder.select(match, so_far, zero))
                if with_derivative:
                    offset = builder.add(offset, index(lanes))
                    dc = builder.load(before_row(offset), align=itemsize)
                    gained = builder.fadd(c, matched_slope[0]) if matched_slope else c
                    builder.store(gap_times(dc, plus=gained), after_row(offset), align=itemsize)
                    next_dp.append(builder.select(match, slope, zero))
                    slope = gap_times(slope, plus=builder.fadd(so_far, dc))
                so_far = gap_times(so_far, plus=c)
            p, dp = next_p, next_dp
            next_r.append(so_far)
            next_dr += [slope] if with_derivative else []

        next_k = builder.add(k, index(step))
        before = [k, *row.values(), *r, *dr]
        for phi, value in zip(before, [next_k, *next_row.values(), *next_r, *next_dr], strict=True):
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", next_k, args[4]), loop, end)
        builder.position_at_end(end)
        for i in used:
            of_row = next_row[i] if in_registers else builder.load(in_row[i], align=itemsize)
            builder.store(
                builder.fadd(builder.load(totals[i], align=itemsize), of_row), totals_after[i], align=itemsize
            )
            if not in_registers:
                builder.store(zero, in_row[i], align=itemsize)
        return context.get_dummy_value()

    return types.void(*arguments), codegen


@intrinsic
def store_reversed(
    typingctx: Any,
    states: Any,
    from_state: Any,
    shelf: Any,
    to_shelf: Any,
    width: Any,
    gap: Any,
    orders: Any,
    parts: Any,
) -> Any:
    """Turn the state of a suffix, read backwards, into weights of the state of a prefix.

    With C_i[k] the accumulators after the suffix, of which all columns were read from the last to the first, the weight
    E_i[k] = sum over k' > k of gap^(k'-k-1) C_i[k'] is what a sub-sequence that ends in column k of the prefix gains by
    going on with i symbols of the suffix.

    Args:
        typingctx: Numba's typing context.
        states: Holds C_i and dC_i, column ``width - 1 - k`` in the place of k.
        from_state: Where they begin.
        shelf: Takes E_i and dE_i, ``width x (order - 1) x parts x lanes``.
        to_shelf: Where they go.
        width: Number of columns.
        gap: The gap decay.
        orders: See `Program`.
        parts: See `Program`.
    """
    order, with_derivative = len(orders), len(parts) == 2
    arguments = (states, types.intp, shelf, types.intp, types.intp, gap, orders, parts)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args, gap)
        size = (order - 1) * len(parts)
        if size == 0:
            return context.get_dummy_value()
        decay = vectors.everywhere(args[5])
        column, done = vectors.begin_loop(args[4])
        e = [vectors.loop_value(vectors.zero) for _ in range(size)]
        from_end = builder.sub(builder.sub(args[4], column), vectors.index(1))
        here = builder.add(args[1], builder.mul(column, vectors.index(size * vectors.lanes)))
        there = builder.add(args[3], builder.mul(from_end, vectors.index(size * vectors.lanes)))
        after = []
        for i in range(size):
            vectors.store(e[i], 2, there, i)
            c = vectors.load(0, here, i)
            if with_derivative and i % 2:
                c = builder.fadd(c, e[i - 1])
            after.append(vectors.fma(decay, e[i], c))
        vectors.end_loop(column, done, [*zip(e, after, strict=True)])
        return context.get_dummy_value()

    return types.void(*arguments), codegen


@intrinsic
def join(
    typingctx: Any,
    states: Any,
    from_state: Any,
    shelf: Any,
    from_shelf: Any,
    width: Any,
    sums: Any,
    orders: Any,
    parts: Any,
) -> Any:
    """Add the sub-sequences that begin in a prefix and end in a suffix: h_i += sum over k and u of C_u[k] E_{i-u}[k].

    Args:
        typingctx: Numba's typing context.
        states: Holds C_i and dC_i after the prefix.
        from_state: Where they begin.
        shelf: Holds E_i and dE_i of the suffix, see `store_reversed`.
        from_shelf: Where they begin.
        width: Number of columns.
        sums: h_i and dh_i, ``order x parts x lanes``.
        orders: See `Program`.
        parts: See `Program`.
    """
    order, with_derivative = len(orders), len(parts) == 2
    arguments = (states, types.intp, shelf, types.intp, types.intp, sums, orders, parts)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if order == 1:
            return context.get_dummy_value()
        vectors = _Vectors(context, builder, signature, args, sums.dtype)
        size = (order - 1) * len(parts)
        column, done = vectors.begin_loop(args[4])
        totals = [vectors.loop_value(vectors.zero) for _ in range(size)]
        offset = builder.mul(column, vectors.index(size * vectors.lanes))
        prefix, suffix = builder.add(args[1], offset), builder.add(args[3], offset)
        c = [vectors.load(0, prefix, i) for i in range(size)]
        e = [vectors.load(2, suffix, i) for i in range(size)]
        added = list(totals)
        step = len(parts)
        for u in range(order - 1):
            for v in range(order - 1 - u):
                i = (u + v) * step
                added[i] = vectors.fma(c[u * step], e[v * step], added[i])
                if with_derivative:
                    added[i + 1] = vectors.fma(c[u * step + 1], e[v * step], added[i + 1])
                    added[i + 1] = vectors.fma(c[u * step], e[v * step + 1], added[i + 1])
        vectors.end_loop(column, done, [*zip(totals, added, strict=True)])
        for i, total in enumerate(added):
            known = vectors.load(5, vectors.index(step * vectors.lanes), i)
            vectors.store(builder.fadd(known, total), 5, vectors.index(step * vectors.lanes), i)
        return context.get_dummy_value()

    return types.void(*arguments), codegen


class _Vectors:
    """Loads, stores and one loop over columns, for code that is written in LLVM's intermediate representation.

    Args:
        context: Of the code generator, like the rest.
        builder: See ``context``.
        signature: Of the intrinsic.
        args: Its arguments.
        number: Numba's type of a lane.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, number: Any) -> None:
        self._context, self._builder, self._signature, self._args = context, builder, signature, args
        self._itemsize = 4 if number == types.float32 else 8
        self.lanes = REGISTER_BYTES // self._itemsize
        self.index = ir.IntType(64)
        self._vector = ir.VectorType(context.get_value_type(number), self.lanes)
        self.zero = ir.Constant(self._vector, [0.0] * self.lanes)
        self._fma = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self._vector, [self._vector] * 3),
            f"llvm.fmuladd.v{self.lanes}f{8 * self._itemsize}",
        )

    def everywhere(self, value: Any) -> Any:
        """A number in every lane."""
        vector = self.zero
        for lane in range(self.lanes):
            vector = self._builder.insert_element(vector, value, ir.IntType(32)(lane))
        return vector

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """The vector x y + z."""
        return self._builder.call(self._fma, [x, y, z])

    def _address(self, array: int, start: Any, number: int) -> Any:
        kept = self._context.make_array(self._signature.args[array])(self._context, self._builder, self._args[array])
        offset = self._builder.add(start, self.index(number * self.lanes))
        return self._builder.bitcast(self._builder.gep(kept.data, [offset]), self._vector.as_pointer())

    def load(self, array: int, start: Any, number: int) -> Any:
        """Vector ``number`` after ``start`` of the argument ``array``."""
        return self._builder.load(self._address(array, start, number), align=self._itemsize)

    def store(self, value: Any, array: int, start: Any, number: int) -> None:
        """The inverse of `load`."""
        self._builder.store(value, self._address(array, start, number), align=self._itemsize)

    def begin_loop(self, width: Any) -> tuple[Any, Any]:
        """Begin a loop over ``width`` columns, at least one; returns the column and what `end_loop` needs."""
        builder = self._builder
        self._entry, self._width = builder.block, width
        self._loop, end = builder.append_basic_block("column"), builder.append_basic_block("end_of_columns")
        builder.branch(self._loop)
        builder.position_at_end(self._loop)
        return self.loop_value(self.index(0)), end

    def loop_value(self, initial: Any) -> Any:
        """A value that changes from column to column."""
        phi = self._builder.phi(initial.type)
        phi.add_incoming(initial, self._entry)
        return phi

    def end_loop(self, column: Any, end: Any, changes: Sequence[tuple[Any, Any]]) -> None:
        """End the loop, in which every loop value changed as stated."""
        builder = self._builder
        following = builder.add(column, self.index(1))
        for phi, value in [(column, following), *changes]:
            phi.add_incoming(value, self._loop)
        builder.cbranch(builder.icmp_signed("<", following, self._width), self._loop, end)
        builder.position_at_end(end)


@intrinsic
def align_stack(typingctx: Any) -> Any:
    """Let the function that calls this begin its memory on a cache line, with what it keeps there between registers.

    Otherwise vectors may straddle two lines, by the chance of where a process has its stack, and cost a quarter of the
    speed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_X86:
            attributes = builder.function.attributes
            attributes.alignstack = CACHE_LINE
            # Without another attribute this one is not written down.
            attributes.add("nounwind")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def flush_denormals(typingctx: Any) -> Any:
    """Treat denormal numbers as zero on this thread; returns what `restore_control` takes.

    Decaying accumulators fade through the denormal range, where x86 arithmetic is a hundred times slower.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        if not _IS_X86:
            return word(0)
        slot = cgutils.alloca_once(builder, word)
        _access_control(builder, "stmxcsr", slot)
        saved = builder.load(slot)
        builder.store(builder.or_(saved, word(_FLUSH_DENORMALS)), slot)
        _access_control(builder, "ldmxcsr", slot)
        return saved

    return types.uint32(), codegen


@intrinsic
def restore_control(typingctx: Any, saved: Any) -> Any:
    """Set the floating-point control register back to what `flush_denormals` found."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _IS_X86:
            slot = cgutils.alloca_once(builder, ir.IntType(32))
            builder.store(args[0], slot)
            _access_control(builder, "ldmxcsr", slot)
        return context.get_dummy_value()

    return types.void(types.uint32), codegen


def _access_control(builder: Any, instruction: str, slot: Any) -> None:
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{instruction}")
    builder.call(function, [builder.bitcast(slot, pointer)])


@compiled_part
def _dynamic_program(
    workspace: Workspace, n_rows: int, columns: Any, first_column: int, width: int, program: Program
) -> None:
    """Fill ``workspace.sums`` for the lanes whose row symbols are in ``workspace.symbols``."""
    lanes = len(workspace.weighted)
    workspace.sums[:] = 0
    workspace.row_sums[:] = 0
    workspace.state[: width * (len(program.orders) - 1) * len(program.parts) * lanes] = 0
    if width == 0:
        return
    for row in range(n_rows):
        sweep_row(
            workspace.symbols,
            row * lanes,
            columns,
            first_column,
            width,
            workspace.state,
            0,
            0,
            workspace.sums,
            0,
            0,
            workspace.row_sums,
            program.gap,
            program.orders,
            program.parts,
        )


@compiled_part
def _weigh(workspace: Workspace, program: Program, r: int, part: int) -> None:
    """Put the r-th weighted sum of the lanes into ``workspace.weighted``."""
    lanes = len(workspace.weighted)
    workspace.weighted[:] = 0
    for i in range(len(program.orders)):
        weight = program.weights[r, i]
        # Skipping zeros also keeps an overflowed sum of another order out.
        if weight != 0:
            start = (i * len(program.parts) + part) * lanes
            for lane in range(lanes):
                workspace.weighted[lane] += weight * workspace.sums[start + lane]


@compiled_part
def vector_width(groups: Groups, last: int) -> Any:
    """Positions of a vector of strings up to the one in position ``last``, which is the longest of them."""
    return groups.lengths[last] + -groups.lengths[last] % STEP


@compiled
def sums_of_all_pairs(
    groups: Groups,
    first_group: int,
    last_group: int,
    tokens: Any,
    lengths: Any,
    numbers: Any,
    first_single: int,
    last_single: int,
    symmetric: bool,
    results: Any,
    group_stride: int,
    single_stride: int,
    program: Program,
    workspace: Workspace,
) -> None:
    """Every string of some groups with every single string.

    Args:
        groups: The grouped side.
        first_group: First group treated.
        last_group: One after the last.
        tokens: The single strings, one per row.
        lengths: Their lengths.
        numbers: Which of them, in which order; if ``symmetric``, ``groups.order``.
        first_single: First position in ``numbers`` treated.
        last_single: One after the last.
        symmetric: Whether both sides are the same strings: pairs are then computed once and stored twice.
        results: ``parts x r x pairs``; a pair is at group string * group_stride + single string *
            single_stride.
        group_stride: See ``results``.
        single_stride: See ``results``.
        program: What to compute.
        workspace: Of this thread.
    """
    align_stack()
    lanes = len(workspace.weighted)
    control = flush_denormals()
    for group in range(first_group, last_group):
        for first in range(group * GROUP, min((group + 1) * GROUP, len(groups.order)), lanes):
            used = min(lanes, len(groups.order) - first)
            first_column = groups.starts[group] + first - group * GROUP
            width = vector_width(groups, first + used - 1)
            for position in range(first_single, min(last_single, first + used) if symmetric else last_single):
                single = numbers[position]
                for row in range(lengths[single]):
                    for lane in range(lanes):
                        workspace.symbols[row * lanes + lane] = tokens[single, row]
                _dynamic_program(workspace, lengths[single], groups.tokens, first_column, width, program)
                for part in range(len(program.parts)):
                    for r in range(len(program.weights)):
                        _weigh(workspace, program, r, part)
                        for lane in range(used):
                            grouped = groups.order[first + lane]
                            if symmetric and first + lane < position:
                                continue
                            results[part, r, grouped * group_stride + single * single_stride] = workspace.weighted[lane]
                            if symmetric:
                                results[part, r, single * group_stride + grouped * single_stride] = workspace.weighted[
                                    lane
                                ]
    restore_control(control)


@compiled
def sums_of_aligned_pairs(
    groups: Groups,
    first_group: int,
    last_group: int,
    tokens: Any,
    lengths: Any,
    results: Any,
    program: Program,
    workspace: Workspace,
) -> None:
    """String i of some groups with string i of ``tokens``, one per row; ``results`` is ``parts x r x n``."""
    align_stack()
    lanes = len(workspace.weighted)
    control = flush_denormals()
    for group in range(first_group, last_group):
        for first in range(group * GROUP, min((group + 1) * GROUP, len(groups.order)), lanes):
            used = min(lanes, len(groups.order) - first)
            longest = 0
            for lane in range(used):
                longest = max(longest, lengths[groups.order[first + lane]])
            # 0 as padding of the rows: it differs from that of the columns, so padding matches nothing.
            workspace.symbols[: longest * lanes] = 0
            for lane in range(used):
                string = groups.order[first + lane]
                for row in range(lengths[string]):
                    workspace.symbols[row * lanes + lane] = tokens[string, row]
            first_column = groups.starts[group] + first - group * GROUP
            width = vector_width(groups, first + used - 1)
            _dynamic_program(workspace, longest, groups.tokens, first_column, width, program)
            for part in range(len(program.parts)):
                for r in range(len(program.weights)):
                    _weigh(workspace, program, r, part)
                    for lane in range(used):
                        results[part, r, groups.order[first + lane]] = workspace.weighted[lane]
    restore_control(control)


class Walk(NamedTuple):
    """Strings in an order in which neighbours share prefixes, see `seqopt.kernels.engines.sharing.Walk`."""

    strings: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    commons: npt.NDArray[np.int64]
    smaller: npt.NDArray[np.int64]


class Store(NamedTuple):
    """What one thread keeps of the strings that share prefixes and suffixes; last axis lanes.

    Attributes:
        states: C and dC of the empty string, of the prefixes that come back, and of the current one.
        sums: Their h and dh.
        depths: Lengths of the prefixes that are kept.
        wanted: For each length, whether the prefix of this length comes back.
        shelf: E and dE of the suffixes, see `store_reversed`.
        shelf_sums: Their h and dh.
        reversed_columns: The symbols of the columns, from the last to the first.
        waiting: Results that are not in their places yet, ``parts x r x lanes x strings``. Neighbours in a walk are
            far apart in the results, and one row of those after the other is written faster than all at once.
    """

    states: FloatArray
    sums: FloatArray
    depths: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.bool_]
    shelf: FloatArray
    shelf_sums: FloatArray
    reversed_columns: npt.NDArray[np.uint16]
    waiting: FloatArray


@compiled_part
def follow(
    walk: Walk,
    visit: Any,
    common: Any,
    tokens: Any,
    lengths: Any,
    columns: Any,
    first_column: Any,
    width: Any,
    place: Any,
    store: Store,
    workspace: Workspace,
    program: Program,
) -> None:
    """Go from the state of one string of a walk to that of another, from their common prefix on.

    Args:
        walk: The walk.
        visit: Which of its strings.
        common: Symbols that it shares with the string before it.
        tokens: The strings, one per row.
        lengths: Their lengths.
        columns: Symbols of the columns; all the rest is as `sweep_row` has it.
        first_column: See ``columns``.
        width: See ``columns``.
        place: Where the current state is in ``store``, its length, the number of prefixes that are kept, and whether
            strings are read from the last symbol to the first.
        store: What is kept.
        workspace: Of this thread.
        program: What to compute.
    """
    align_stack()
    lanes = len(workspace.weighted)
    of_sums = len(program.orders) * len(program.parts) * lanes
    of_state = width * (len(program.orders) - 1) * len(program.parts) * lanes
    # Reading them off the tuples in a loop would count references there, which costs as much as many columns.
    symbols, row_sums, states, sums = workspace.symbols, workspace.row_sums, store.states, store.sums
    depths, wanted, gap = store.depths, store.wanted, program.gap
    commons, smaller = walk.commons, walk.smaller
    current = len(depths)
    at, depth, kept, backwards = place[0], place[1], place[2], place[3] != 0
    if depth > common:
        while depths[kept - 1] > common:
            kept -= 1
        at = kept - 1
        depth = depths[at]
    string, stop = walk.strings[visit], walk.stops[visit]
    for row in range(depth, stop):
        symbol = tokens[string, lengths[string] - 1 - row] if backwards else tokens[string, row]
        for lane in range(lanes):
            symbols[row * lanes + lane] = symbol
    later = visit + 1
    while later < len(commons) and commons[later] > depth:
        if commons[later] <= stop:
            wanted[commons[later]] = True
        later = smaller[later]
    for row in range(depth, stop):
        to = current
        if wanted[row + 1]:
            wanted[row + 1] = False
            if kept < current:
                to = kept
                depths[kept] = row + 1
                kept += 1
        sweep_row(
            symbols,
            row * lanes,
            columns,
            first_column,
            width,
            states,
            at * of_state,
            to * of_state,
            sums,
            at * of_sums,
            to * of_sums,
            row_sums,
            gap,
            program.orders,
            program.parts,
        )
        at = to
    place[0], place[1], place[2] = at, stop, kept


@compiled_part
def begin_walk(place: Any, backwards: Any, width: Any, store: Store, workspace: Workspace, program: Program) -> None:
    """Make the empty string the current one, and say in which direction strings are read."""
    of_state = width * (len(program.orders) - 1) * len(program.parts) * len(workspace.weighted)
    store.states[:of_state] = 0
    store.sums[:] = 0
    store.depths[0] = 0
    workspace.row_sums[:] = 0
    place[0], place[1], place[2], place[3] = 0, 0, 1, backwards


@compiled
def sums_of_shared_pairs(
    groups: Groups,
    first_group: int,
    last_group: int,
    tokens: Any,
    lengths: Any,
    numbers: Any,
    walk: Walk,
    endings: Any,
    endings_walk: Walk,
    first_visit: int,
    last_visit: int,
    positions: Any,
    results: Any,
    group_stride: int,
    single_stride: int,
    program: Program,
    workspace: Workspace,
    store: Store,
) -> None:
    """Every string of some groups with single strings that share prefixes and suffixes.

    Args:
        groups: The grouped side.
        first_group: First group treated.
        last_group: One after the last.
        tokens: The single strings, one per row.
        lengths: Their lengths.
        numbers: Which string of the results each of ``walk`` is.
        walk: The single strings without their shared suffixes.
        endings: For each string of ``walk`` the number of its suffix in ``endings_walk``, -1 for none.
        endings_walk: The shared suffixes, read backwards.
        first_visit: First string of ``walk`` treated.
        last_visit: One after the last.
        positions: If both sides are the same strings: the position of each of ``groups.order``; pairs are then computed
            once and stored twice. Else empty.
        results: See `sums_of_all_pairs`, also for the rest.
        group_stride: See ``results``.
        single_stride: See ``results``.
        program: What to compute.
        workspace: Of this thread.
        store: Of this thread.
    """
    align_stack()
    lanes = len(workspace.weighted)
    of_sums = len(program.orders) * len(program.parts) * lanes
    symmetric = len(positions) > 0
    place = np.zeros(4, dtype=np.int64)
    # Of one type with what is no constant, or everything would be compiled twice.
    no, yes = np.int64(0), np.int64(1)
    control = flush_denormals()
    for group in range(first_group, last_group):
        for first in range(group * GROUP, min((group + 1) * GROUP, len(groups.order)), lanes):
            used = min(lanes, len(groups.order) - first)
            first_column = groups.starts[group] + first - group * GROUP
            width = vector_width(groups, first + used - 1)
            of_state = width * (len(program.orders) - 1) * len(program.parts) * lanes
            if width > 0:
                for column in range(width):
                    for lane in range(lanes):
                        store.reversed_columns[(width - 1 - column) * GROUP + lane] = groups.tokens[
                            first_column + column * GROUP + lane
                        ]
                begin_walk(place, yes, width, store, workspace, program)
                for ending in range(len(endings_walk.strings)):
                    common = endings_walk.commons[ending]
                    follow(
                        endings_walk,
                        ending,
                        common,
                        tokens,
                        lengths,
                        store.reversed_columns,
                        no,
                        width,
                        place,
                        store,
                        workspace,
                        program,
                    )
                    store_reversed(
                        store.states,
                        place[0] * of_state,
                        store.shelf,
                        ending * of_state,
                        width,
                        program.gap,
                        program.orders,
                        program.parts,
                    )
                    for i in range(of_sums):
                        store.shelf_sums[ending * of_sums + i] = store.sums[place[0] * of_sums + i]
            begin_walk(place, no, width, store, workspace, program)
            common, waiting = 0, 0
            for visit in range(first_visit, last_visit):
                common = min(common, walk.commons[visit])
                single = numbers[visit]
                if symmetric and positions[single] >= first + used:
                    continue
                if width > 0:
                    follow(
                        walk,
                        visit,
                        common,
                        tokens,
                        lengths,
                        groups.tokens,
                        first_column,
                        width,
                        place,
                        store,
                        workspace,
                        program,
                    )
                common = walk.stops[visit]
                for i in range(of_sums):
                    workspace.sums[i] = store.sums[place[0] * of_sums + i]
                ending = endings[visit]
                if ending >= 0 and width > 0:
                    for i in range(of_sums):
                        workspace.sums[i] += store.shelf_sums[ending * of_sums + i]
                    join(
                        store.states,
                        place[0] * of_state,
                        store.shelf,
                        ending * of_state,
                        width,
                        workspace.sums,
                        program.orders,
                        program.parts,
                    )
                for part in range(len(program.parts)):
                    for r in range(len(program.weights)):
                        _weigh(workspace, program, r, part)
                        if not symmetric:
                            for lane in range(used):
                                store.waiting[part, r, lane, waiting] = workspace.weighted[lane]
                            continue
                        for lane in range(used):
                            if first + lane >= positions[single]:
                                grouped = groups.order[first + lane]
                                value = workspace.weighted[lane]
                                results[part, r, grouped * group_stride + single * single_stride] = value
                                results[part, r, single * group_stride + grouped * single_stride] = value
                waiting += 1
                if not symmetric and (waiting == store.waiting.shape[3] or visit == last_visit - 1):
                    begun = visit + 1 - waiting
                    for part in range(len(program.parts)):
                        for r in range(len(program.weights)):
                            for lane in range(used):
                                base = groups.order[first + lane] * group_stride
                                for late in range(waiting):
                                    place_of = base + numbers[begun + late] * single_stride
                                    results[part, r, place_of] = store.waiting[part, r, lane, late]
                    waiting = 0
    restore_control(control)


@compiled
def number_endings(commons: Any, lengths: Any) -> Any:
    """Numbers 0, 1, ... of the prefixes of sorted strings that have the given lengths, equal for equal prefixes.

    Args:
        commons: Symbols that each string shares with the one before it.
        lengths: Of the prefixes; -1 stands for none, whose number is -1.
    """
    numbers = np.full(len(lengths), -1, dtype=np.int64)
    depths = np.empty(len(lengths) + 1, dtype=np.int64)
    of_depth = np.empty(len(lengths) + 1, dtype=np.int64)
    kept, count = 0, 0
    for i in range(len(lengths)):
        while kept > 0 and depths[kept - 1] > commons[i]:
            kept -= 1
        if lengths[i] < 0:
            continue
        if kept == 0 or depths[kept - 1] != lengths[i]:
            depths[kept], of_depth[kept] = lengths[i], count
            kept += 1
            count += 1
        numbers[i] = of_depth[kept - 1]
    return numbers


@compiled
def next_smaller(values: Any) -> Any:
    """Index of the next smaller value after each, or the number of values."""
    found = np.full(len(values), len(values), dtype=np.int64)
    for i in range(len(values) - 2, -1, -1):
        j = i + 1
        while j < len(values) and values[j] >= values[i]:
            j = found[j]
        found[i] = j
    return found


@compiled
def fill_features(
    tokens: Any,
    lengths: Any,
    numbers: Any,
    starts: Any,
    gap: Any,
    sums: Any,
    features: Any,
) -> None:
    """Features of each string, those of length i from ``starts[i - 1]`` on.

    What S holds is divided by the gap decay once for each symbol since it was last multiplied by all of these: so a
    symbol that is read changes the S of sub-sequences that end with it and no others. By gap decays that are next to
    nothing it is multiplied symbol by symbol.
    """
    control = flush_denormals()
    orders, one = len(starts) - 1, gap * 0 + 1
    divided = gap >= SMALLEST_SCALE
    up = one / gap if divided else one
    for string in range(len(lengths)):
        sums[:] = 0
        scale = one
        for position in range(lengths[string]):
            if scale < SMALLEST_SCALE:
                _scale(sums, scale)
                scale = one
            symbol = numbers[tokens[string, position]]
            if symbol >= 0:
                for i in range(orders - 1, 0, -1):
                    # Longest first, so that S of the shorter ones is still that of before.
                    shorter = sums[starts[i - 1] : starts[i]]
                    size = len(shorter)
                    first = starts[i] + symbol * size
                    _add_scaled(features[string, first : first + size], shorter, scale)
                    if i < orders - 1:
                        if not divided:
                            _scale(sums[starts[i] : starts[i + 1]], gap)
                        _add_scaled(sums[first : first + size], shorter, up)
                features[string, symbol] += 1
                if orders > 1:
                    if not divided:
                        _scale(sums[: starts[1]], gap)
                    sums[symbol] += up / scale
            elif not divided:
                _scale(sums, gap)
            if divided:
                scale *= gap
    restore_control(control)


@compiled
def fill_features_and_slopes(
    tokens: Any,
    lengths: Any,
    numbers: Any,
    starts: Any,
    gap: Any,
    sums: Any,
    sum_slopes: Any,
    features: Any,
    slopes: Any,
) -> None:
    """Features of each string and their derivatives, those of length i from ``starts[i - 1]`` on."""
    control = flush_denormals()
    orders = len(starts) - 1
    for string in range(len(lengths)):
        sums[:] = 0
        sum_slopes[:] = 0
        for position in range(lengths[string]):
            symbol = numbers[tokens[string, position]]
            for i in range(orders - 1, 0, -1):
                # Longest first, so that S of the shorter ones is still that of before.
                shorter = sums[starts[i - 1] : starts[i]]
                size = len(shorter)
                if symbol >= 0:
                    first = starts[i] + symbol * size
                    _add(features[string, first : first + size], shorter)
                    _add(slopes[string, first : first + size], sum_slopes[starts[i - 1] : starts[i]])
                if i < orders - 1:
                    _decay(sums, sum_slopes, starts[i], starts[i + 1], gap)
                    if symbol >= 0:
                        _add(sums[first : first + size], shorter)
                        _add(sum_slopes[first : first + size], sum_slopes[starts[i - 1] : starts[i]])
            if symbol >= 0:
                features[string, symbol] += 1
            if orders > 1:
                _decay(sums, sum_slopes, 0, starts[1], gap)
                if symbol >= 0:
                    sums[symbol] += 1
    restore_control(control)


@compiled_part
def _scale(values: Any, factor: Any) -> None:
    for v in range(len(values)):
        values[v] *= factor


@compiled_part
def _add_scaled(into: Any, values: Any, scale: Any) -> None:
    for v in range(len(into)):
        into[v] += scale * values[v]


@compiled_part
def _add(into: Any, values: Any) -> None:
    for v in range(len(into)):
        into[v] += values[v]


@compiled_part
def _decay(sums: Any, sum_slopes: Any, first: int, last: int, gap: Any) -> None:
    """S <- gap S and dS <- gap dS + S."""
    own, slopes = sums[first:last], sum_slopes[first:last]
    for v in range(len(own)):
        slopes[v] = gap * slopes[v] + own[v]
    _scale(own, gap)


@compiled
def combine_nodes(
    coefficients: Any,
    weights: Any,
    root: Any,
    root_slope: Any,
    other: Any,
    other_slope: Any,
    result: Any,
    derivatives: Any,
) -> None:
    """The sums (coefficients @ weights) r_a r_b and their derivatives, row by row, so that a row stays in the cache.

    Products with so few rows are bound by reading the weights, and those of BLAS would compete with torch's threads.
    """
    rows, rank, columns = weights.shape
    for row in range(rows):
        values = result[row]
        if len(derivatives) == 0:
            for k in range(rank):
                terms, factor = weights[row, k], coefficients[0, k]
                for column in range(columns):
                    values[column] += factor * terms[column]
        else:
            slopes = derivatives[row]
            for k in range(rank):
                terms, factor, slope_factor = weights[row, k], coefficients[0, k], coefficients[1, k]
                for column in range(columns):
                    values[column] += factor * terms[column]
                    slopes[column] += slope_factor * terms[column]
            for column in range(columns):
                slopes[column] = slopes[column] * root[row] * other[column] + values[column] * (
                    root_slope[row] * other[column] + root[row] * other_slope[column]
                )
        for column in range(columns):
            values[column] *= root[row] * other[column]
