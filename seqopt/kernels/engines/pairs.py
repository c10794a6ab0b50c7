"""The `cpu` engine pair by pair: nothing that strings share is computed once. See `seqopt.kernels.engines.cpu`."""

from __future__ import annotations

from functools import partial

from seqopt.kernels.engines import cpu

order_sums = partial(cpu.order_sums, sharing=False)
paired_order_sums = cpu.paired_order_sums
