"""Triton kernel of the cuda engine: one pair of strings per lane, the dynamic program in registers.

The recurrence is that of `seqopt.kernels.engines.compiled`. A program is one warp. It takes pieces of work from a
queue until none is left. A piece is 32 strings, one per lane, against one string of the other side; of aligned pairs,
32 strings with a partner each. The strings of the lanes are the rows of the dynamic program. They are sorted by length,
so that lanes finish together. The other side is the columns, cut into tiles.

Within a tile the column accumulators C_i[k] stay in registers: the loops over columns and orders are unrolled, the loop
over rows is not. The row accumulators R_i leave a tile at its right edge, wait in scratch memory, one set per row, and
enter the next tile at its left edge. So memory is read and written once per row of a tile, not once per cell, and what
row j + 1 needs is loaded before row j is computed.

At order 5 a cell takes about 21 instructions in float32, of which the recurrence needs 19: one comparison, 5 selections
and 13 additions and fused multiply-additions.
"""

# Triton reads annotations in kernels as code, so that only its own may stand there, and has no iterable unpacking.
# mypy: allow-untyped-defs, allow-incomplete-defs, disable-error-code="assignment"
# ruff: noqa: RUF005
from __future__ import annotations

import triton
import triton.language as tl

LANES = 32
"""Lanes of a program, one pair each: a warp."""

_VARYING = [
    "row_stride",
    "n_lanes",
    "column_stride",
    "n_columns",
    "n_weights",
    "plane",
    "lane_stride",
    "column_result_stride",
    "scratch_stride",
    "n_pieces",
]


@triton.jit
def _sweep_row(
    symbol,
    symbols,
    c,
    dc,
    r,
    dr,
    h,
    dh,
    gap,
    zero,
    ORDER: tl.constexpr,
    TILE: tl.constexpr,
    DERIVATIVE: tl.constexpr,
):
    """One row of one tile: C by column and order, R and h by order; the derivatives are () if not wanted."""
    next_c = ()
    next_dc = ()
    for k in tl.static_range(TILE):
        match = symbol == symbols[k]
        p = tl.where(match, zero + 1, zero)
        dp = zero
        next_r = ()
        next_dr = ()
        next_h = ()
        next_dh = ()
        for i in tl.static_range(ORDER):
            next_h = next_h + (h[i] + p,)
            if DERIVATIVE:
                # P_1 counts matches, which no gap decay changes: its derivative is left out, here and below.
                next_dh = next_dh + (dh[i] if i == 0 else dh[i] + dp,)
            if i < ORDER - 1:
                old = c[k * (ORDER - 1) + i]
                next_c = next_c + (tl.fma(gap, old, p),)
                next_r = next_r + (tl.fma(gap, r[i], old),)
                if DERIVATIVE:
                    old_slope = dc[k * (ORDER - 1) + i]
                    next_dc = next_dc + (tl.fma(gap, old_slope, old if i == 0 else old + dp),)
                    next_dr = next_dr + (tl.fma(gap, dr[i], r[i] + old_slope),)
                    dp = tl.where(match, dr[i], zero)
                p = tl.where(match, r[i], zero)
        r = next_r
        dr = next_dr
        h = next_h
        dh = next_dh
    return next_c, next_dc, r, dr, h, dh


@triton.jit
def _load_edge(edge, wanted, SIZE: tl.constexpr, LANES: tl.constexpr):
    """R (or dR) of one row at the left edge of a tile: what the tile before left, or zeros."""
    r = ()
    for i in tl.static_range(SIZE):
        r = r + (tl.load(edge + i * LANES, mask=wanted, other=0),)
    return r


@triton.jit
def _added(a, b, SIZE: tl.constexpr):
    total = ()
    for i in tl.static_range(SIZE):
        total = total + (a[i] + b[i],)
    return total


@triton.jit
def _store_weighted(
    h,
    weights,
    n_weights,
    results,
    plane,
    offset,
    mirror,
    used,
    zero,
    ORDER: tl.constexpr,
    SYMMETRIC: tl.constexpr,
):
    """Store every weighted sum of h at ``offset``, and at ``mirror`` if the Gram matrix is symmetric."""
    for _ in range(n_weights):
        total = zero
        for i in tl.static_range(ORDER):
            weight = tl.load(weights + i)
            # Skipping zeros also keeps an overflowed sum of another order out.
            total += tl.where(weight != 0, weight * h[i], zero)
        tl.store(results + offset, total, mask=used)
        if SYMMETRIC:
            tl.store(results + mirror, total, mask=used)
        weights += ORDER
        results += plane
    return results


@triton.jit(do_not_specialize=_VARYING)
def order_sums_kernel(
    rows,
    row_stride,
    row_lengths,
    lane_numbers,
    n_lanes,
    columns,
    column_stride,
    column_lengths,
    column_numbers,
    n_columns,
    gap_decay,
    weights,
    n_weights,
    results,
    plane,
    lane_stride,
    column_result_stride,
    scratch,
    scratch_stride,
    queue,
    n_pieces,
    ORDER: tl.constexpr,
    TILE: tl.constexpr,
    LANES: tl.constexpr,
    DERIVATIVE: tl.constexpr,
    SYMMETRIC: tl.constexpr,
    PAIRED: tl.constexpr,
):
    """Weighted sums of the strings of the lanes with those of the columns.

    Args:
        rows: int32 symbols of the lanes, position by position: position j of lane p at ``j * row_stride + p``. One
            position more than the longest string has; padding differs from that of the columns.
        row_stride: See ``rows``.
        row_lengths: int32, of the longest string in each block of ``LANES`` lanes.
        lane_numbers: int64, number of the string of each lane.
        n_lanes: How many lanes hold a string.
        columns: int32 symbols, one string after the other: position k of string s at ``s * column_stride + k``.
        column_stride: See ``columns``.
        column_lengths: int32, of each string.
        column_numbers: int64, the strings of the columns in the order of treatment; if ``SYMMETRIC``,
            ``lane_numbers``. Not read if ``PAIRED``.
        n_columns: How many; 1 if ``PAIRED``.
        gap_decay: Pointer to the gap decay, so that it is not a constant of the code and keeps its precision.
        weights: ``n_weights x ORDER``.
        n_weights: r.
        results: ``(1 + DERIVATIVE) x r x pairs``; a pair is at lane number * ``lane_stride`` + column number *
            ``column_result_stride``.
        plane: Number of pairs in ``results``.
        lane_stride: See ``results``.
        column_result_stride: See ``results``.
        scratch: Room for R and dR of each program, ``ORDER - 1`` numbers a part, row and lane.
        scratch_stride: Numbers per program.
        queue: int64 counter, 0 at first.
        n_pieces: Blocks of lanes times columns.
        ORDER: Longest sub-sequence, at least 2.
        TILE: Columns of a tile.
        LANES: 32 times the number of warps.
        DERIVATIVE: Whether derivatives are wanted.
        SYMMETRIC: Whether rows and columns are the same strings: pairs are then computed once and stored twice.
        PAIRED: Whether string s meets string s only.
    """
    EDGE: tl.constexpr = (ORDER - 1) * (1 + DERIVATIVE)
    lanes = tl.arange(0, LANES)
    zero = tl.zeros((LANES,), gap_decay.dtype.element_ty)
    gap = zero + tl.load(gap_decay)
    edges = scratch + tl.program_id(0).to(tl.int64) * scratch_stride + lanes
    piece = tl.atomic_add(queue, 1, sem="relaxed")
    while piece < n_pieces:
        # The longest strings first, so that programs end at about the same time.
        block = tl.cdiv(n_lanes, LANES) - 1 - piece // n_columns
        lane = block * LANES + lanes
        used = lane < n_lanes
        number = tl.load(lane_numbers + lane, mask=used, other=0)
        column_number = number
        if not PAIRED:
            position = piece % n_columns
            column_number = tl.load(column_numbers + position) + tl.zeros((LANES,), tl.int64)
        if SYMMETRIC:
            used = used & (position <= lane)
        offset = number * lane_stride + column_number * column_result_stride
        mirror = number * column_result_stride + column_number * lane_stride
        column = columns + column_number * column_stride
        width = tl.load(column_lengths + column_number, mask=used, other=0)
        n_rows = tl.load(row_lengths + block)
        total = (zero,) * ORDER
        slope = (zero,) * (ORDER * DERIVATIVE)
        for tile in range(tl.cdiv(tl.max(width, 0), TILE)):
            first = tile * TILE + tl.zeros((LANES,), tl.int32)
            symbols = ()
            for k in tl.static_range(TILE):
                symbols = symbols + (tl.load(column + first + k, mask=first + k < width, other=0),)
            c = (zero,) * (TILE * (ORDER - 1))
            dc = (zero,) * (TILE * (ORDER - 1) * DERIVATIVE)
            # Each tile is summed up by itself: one by one, float32 counts no further than 2^24.
            h = (zero,) * ORDER
            dh = (zero,) * (ORDER * DERIVATIVE)
            row = rows + lane
            edge = edges
            enters = first > 0
            leaves = first + TILE < width
            symbol = tl.load(row)
            r = _load_edge(edge, enters, ORDER - 1, LANES)
            dr = ()
            if DERIVATIVE:
                dr = _load_edge(edge + (ORDER - 1) * LANES, enters, ORDER - 1, LANES)
            for _ in range(n_rows):
                row += row_stride
                next_edge = edge + EDGE * LANES
                next_symbol = tl.load(row)
                next_r = _load_edge(next_edge, enters, ORDER - 1, LANES)
                next_dr = ()
                if DERIVATIVE:
                    next_dr = _load_edge(next_edge + (ORDER - 1) * LANES, enters, ORDER - 1, LANES)
                c, dc, r, dr, h, dh = _sweep_row(
                    symbol, symbols, c, dc, r, dr, h, dh, gap, zero, ORDER, TILE, DERIVATIVE
                )
                for i in tl.static_range(ORDER - 1):
                    tl.store(edge + i * LANES, r[i], mask=leaves)
                    if DERIVATIVE:
                        tl.store(edge + (ORDER - 1 + i) * LANES, dr[i], mask=leaves)
                edge = next_edge
                symbol = next_symbol
                r = next_r
                dr = next_dr
            total = _added(total, h, ORDER)
            slope = _added(slope, dh, ORDER * DERIVATIVE)
        end = _store_weighted(total, weights, n_weights, results, plane, offset, mirror, used, zero, ORDER, SYMMETRIC)
        if DERIVATIVE:
            _store_weighted(slope, weights, n_weights, end, plane, offset, mirror, used, zero, ORDER, SYMMETRIC)
        piece = tl.atomic_add(queue, 1, sem="relaxed")
