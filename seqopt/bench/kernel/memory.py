"""Peak memory of a Gram matrix with gradients, each measured in a separate process."""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WARM_UP = 32
"""Strings of a first, small Gram matrix that loads and compiles everything."""


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """`peak_of`, in a fresh process."""
    command = [sys.executable, "-c", "from seqopt.bench.kernel import memory; memory.main()", json.dumps(job)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_of(job: dict[str, Any]) -> dict[str, Any]:
    """Rise of the peak memory of this process over the memory in use after a small Gram matrix.

    The Gram matrix is normalised, float64 for ours and float32 for GAUCHE (its default), and the gradient of the sum
    of its entries in both decays is taken.

    Args:
        job: ``kernel`` (``"seqopt"`` or ``"gauche"``), ``strings``, ``order``, ``seed``, and for ours ``cache_bytes``
            (`None`: the default).

    Returns:
        ``before_bytes``, ``peak_bytes``, their difference ``bytes``, and ``triangles``: that difference in arrays of
        n (n + 1) / 2 double-precision numbers.
    """
    import torch

    from seqopt.bench.kernel.gauche import forward_and_backward, gauche_kernel
    from seqopt.bench.kernel.timing import encoded_zinc
    from seqopt.kernels import SubsequenceKernel

    count = job["strings"]
    encoded = encoded_zinc(count, job["seed"])
    if job["kernel"] == "gauche":
        tokens = encoded.to_tensor(int(encoded.lengths.max())).to(torch.float32)
        kernel = gauche_kernel(tokens, job["order"], 0.8, 0.5)
        small = tokens[:2]
    else:
        tokens = encoded.to_tensor()
        budget = {} if job["cache_bytes"] is None else {"cache_bytes": job["cache_bytes"]}
        kernel = SubsequenceKernel(order=job["order"], match_decay=0.8, gap_decay=0.5, **budget).to(tokens.dtype)
        small = tokens[:WARM_UP]
    forward_and_backward(kernel, small)
    gc.collect()
    _reset_peak()
    before = _memory("VmRSS")
    gram = forward_and_backward(kernel, tokens)
    peak = _memory("VmHWM")
    return {
        "shape": list(gram.shape),
        "before_bytes": before,
        "peak_bytes": peak,
        "bytes": peak - before,
        "triangles": (peak - before) / (8 * count * (count + 1) / 2),
    }


def _reset_peak() -> None:
    # Where this fails, the peak so far is that of loading the libraries, below what follows.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _memory(field: str) -> int:
    """Bytes of memory in use (VmRSS) or its peak (VmHWM); elsewhere than on Linux the peak for both."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])


def main() -> None:
    """The separate process: takes a job as JSON, prints `peak_of` as JSON."""
    print(json.dumps(peak_of(json.loads(sys.argv[1]))))
