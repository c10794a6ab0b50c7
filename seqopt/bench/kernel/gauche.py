"""GAUCHE's sub-sequence kernel, set up to compute what ours does.

`SubsequenceStringKernel` of GAUCHE 0.1.6 (Griffiths et al. 2023) evaluates the matrix form of the recursion for every
entry of a Gram matrix. Its decays and order coefficients are logistic functions of its raw parameters. Normalised, as
by default, only the ratios of the coefficients matter; all equal, the kernel is `SubsequenceKernel`. It computes in
single precision; ``tensor_kwargs`` is all that needs to change for double precision.

References:
    Griffiths, R.-R., Klarner, L., Moss, H. et al. (2023). GAUCHE: a library for Gaussian processes in chemistry.
    NeurIPS.
"""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqopt.bench.kernel.timing import MATCH_DECAY, Case, Row
from seqopt.kernels import SubsequenceKernel

HOW_TO_INSTALL = (
    "GAUCHE is not installed: run 'pip install --no-deps gauche==0.1.6' (pip 26.2 or older, or uv: newer versions of "
    "pip refuse its metadata) and measure again"
)


def installed() -> str | None:
    """GAUCHE's version, or `None` where it cannot be imported."""
    return metadata.version("gauche") if importlib.util.find_spec("gauche") is not None else None


def gauche_kernel(tokens: Tensor, order: int, match_decay: float, gap_decay: float) -> Any:
    """GAUCHE's kernel for rows of tokens of exactly this width, in their precision."""
    module = importlib.import_module("gauche.kernels.string_kernels.sskkernel")
    embeddings, index = module.build_one_hot(list(range(1, int(tokens.max()) + 1)))
    kernel = module.SubsequenceStringKernel(
        embeddings.to(tokens), index, maxlen=tokens.shape[-1], _order_coefs=[0.5] * order, normalize=True
    )
    kernel.to(tokens.dtype)
    kernel.tensor_kwargs = kernel.tensor_kwargs | {"dtype": tokens.dtype, "device": tokens.device}
    kernel.match_decay = torch.tensor([match_decay], dtype=tokens.dtype)
    kernel.gap_decay = torch.tensor([gap_decay], dtype=tokens.dtype)
    kernel.raw_order_coefs.requires_grad_(False)
    return kernel


def forward(kernel: Any, tokens: Tensor) -> Tensor:
    """The Gram matrix, without a graph."""
    with torch.no_grad():
        return torch.as_tensor(kernel(tokens).to_dense())


def forward_and_backward(kernel: Any, tokens: Tensor) -> Tensor:
    """The Gram matrix, and the gradients of the sum of its entries in both decays."""
    kernel.zero_grad()
    gram: Tensor = kernel(tokens).to_dense()
    gram.sum().backward()  # type: ignore[no-untyped-call]
    return gram.detach()


def largest_differences(
    tokens: Tensor, order: int, match_decay: float = 0.8, gap_decay: float = 0.5
) -> dict[str, float]:
    """How far our normalised Gram matrix, and its derivatives in the decays, are from GAUCHE's.

    Returns:
        ``"gram"``: the largest difference of two entries; ``"match_decay"`` and ``"gap_decay"``: the relative
        difference of the derivatives of the sum of all entries.
    """
    theirs = gauche_kernel(tokens, order, match_decay, gap_decay)
    ours = SubsequenceKernel(order=order, match_decay=match_decay, gap_decay=gap_decay).to(tokens.dtype)
    difference = forward_and_backward(theirs, tokens) - forward_and_backward(ours, tokens)
    found = {"gram": float(difference.abs().max())}
    for name, value in (("match_decay", match_decay), ("gap_decay", gap_decay)):
        expected = float(getattr(theirs, f"raw_{name}").grad) / (value * (1.0 - value))
        actual = float(getattr(ours, f"raw_{name}").grad)
        found[name] = float(np.abs(actual - expected) / np.abs(expected))
    return found


def their_case(tokens: Tensor, order: int, gradients: bool) -> Case:
    """GAUCHE's Gram matrix of ``tokens``, as something to time. It evaluates every entry, so all count as pairs."""
    kernel = gauche_kernel(tokens, order, MATCH_DECAY, 0.5)

    def call(gap_decay: float) -> object:
        kernel.gap_decay = torch.tensor([gap_decay]).to(tokens)
        return (forward_and_backward if gradients else forward)(kernel, tokens)

    return Case(_facts("gauche", tokens, gradients), len(tokens) ** 2, call)


def our_case(tokens: Tensor, order: int, gradients: bool) -> Case:
    """The same by `SubsequenceKernel` with nothing cached; its distinct pairs count."""
    kernel = SubsequenceKernel(order=order, match_decay=MATCH_DECAY).to(tokens.dtype)

    def call(gap_decay: float) -> object:
        kernel.forget()
        kernel.gap_decay = gap_decay
        return (forward_and_backward if gradients else forward)(kernel, tokens)

    return Case(_facts("seqopt", tokens, gradients), len(tokens) * (len(tokens) + 1) // 2, call)


def _facts(kernel: str, tokens: Tensor, gradients: bool) -> Row:
    return {
        "kernel": kernel,
        "strings": len(tokens),
        "dtype": str(tokens.dtype).removeprefix("torch."),
        "gradients": gradients,
        "threads": torch.get_num_threads(),
    }
