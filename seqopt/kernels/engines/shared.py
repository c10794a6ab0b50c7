"""The `cpu` engine with shared prefixes and endings computed once, at any cost. See `seqopt.kernels.engines.cpu`."""

from __future__ import annotations

from functools import partial

from seqopt.kernels.engines import cpu

order_sums = partial(cpu.order_sums, sharing=True)
paired_order_sums = cpu.paired_order_sums
