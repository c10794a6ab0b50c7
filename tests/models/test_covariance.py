"""Covariances of pairs of strings against the diagonals of dense matrices."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch

from seqopt.data import Query
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.kernels import (
    CoregionalizationKernel,
    NgramKernel,
    OnField,
    Product,
    SameLevelKernel,
    SubsequenceKernel,
    Sum,
    bind_fields,
)
from seqopt.models import StringGP
from seqopt.models.covariance import KernelEvaluator, PairedKernel, StackedEvaluator, StringKernel

LEVELS = ["low", "high"]


class OwnKernel(gpytorch.kernels.Kernel):
    """What a `StringKernel` must have, and no more."""

    normalize = True

    def cross(self, a, b=None, self_a=None, self_b=None, dtype=np.float64):
        b, self_b = (a, self_a) if b is None else (b, self_b)
        assert self_a is None or (len(self_a), len(self_b)) == (len(a), len(b))
        rows, columns = (part.to_tensor(8).numpy() for part in (a, b))
        return (rows[:, None, :] == columns[None, :, :]).mean(-1).astype(dtype)

    def self_similarity(self, a):
        return np.ones(len(a))

    def variance(self, a, self_a=None):
        return np.ones(len(a))


def strings(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), int(rng.integers(2, 9)))) for _ in range(n)]


def fields() -> FieldEncoder:
    return FieldEncoder({"tokens": Encoder(), "fidelity": ContextEncoder("fidelity", LEVELS, default="high")})


def product(*batch: int) -> gpytorch.kernels.Kernel:
    shape = torch.Size(batch)
    levels = CoregionalizationKernel(2, batch_shape=shape)
    return Product(OnField(SubsequenceKernel(batch_shape=shape), "tokens"), OnField(levels, "fidelity"))


KERNELS = {
    "product": product,
    "batch": lambda: product(3),
    "sum": lambda: Sum(
        Product(OnField(NgramKernel(), "tokens"), OnField(SameLevelKernel(), "fidelity")),
        gpytorch.kernels.ScaleKernel(OnField(SubsequenceKernel(normalize=False), "tokens")),
    ),
    "scaled": lambda: gpytorch.kernels.ScaleKernel(product()),
    "tokens": SubsequenceKernel,
    "rows": gpytorch.kernels.RBFKernel,
    "own": OwnKernel,
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_pairs_are_the_diagonal_of_all_pairs(name: str, same: bool, known: bool) -> None:
    left = strings(150, 0)
    right = left if same else strings(150, 1)
    kernel = KERNELS[name]()
    if name in ("tokens", "rows", "own"):
        encoder = Encoder()
        a, b = encoder.encode(left), encoder.encode(right)
    else:
        encoder = fields()
        bind_fields(kernel, encoder.columns)
        a = encoder.encode([Query(string, (("fidelity", "low"),)) for string in left])
        b = encoder.encode([Query(string, (("fidelity", "high"),)) for string in right])
    evaluator = KernelEvaluator(kernel, max(a.width, b.width))
    own, other = (evaluator.self_similarity(part) if known else None for part in (a, b))
    found = evaluator.paired(a, b, own, other)
    dense = evaluator.cross(a, b, own, other).diagonal(axis1=-2, axis2=-1)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, dense, rtol=1e-6 if name in ("rows", "scaled") else 1e-12, atol=1e-12)
    none = a.take(np.zeros(0, dtype=np.int64))
    assert evaluator.paired(none, none).shape == (*dense.shape[:-1], 0)


def test_pairs_of_several_kernels() -> None:
    encoder = fields()
    members = []
    for kernel in (KERNELS["sum"](), product(2)):
        bind_fields(kernel, encoder.columns)
        members.append(KernelEvaluator(kernel, 9))
    evaluator = StackedEvaluator(members, [2, 0, 0, 1])
    a = encoder.encode([Query(string, (("fidelity", "low"),)) for string in strings(20, 2)])
    b = encoder.encode([Query(string, (("fidelity", "high"),)) for string in strings(20, 3)])
    own, other = evaluator.self_similarity(a), evaluator.self_similarity(b)
    dense = evaluator.cross(a, b, own, other).diagonal(axis1=-2, axis2=-1)
    np.testing.assert_allclose(evaluator.paired(a, b, own, other), dense, rtol=1e-12)
    none = encoder.encode([])
    assert evaluator.self_similarity(none).shape == (len(own), 0)
    assert evaluator.variance(none, None).shape == evaluator.paired(none, none).shape == (4, 0)
    assert evaluator.cross(none, a).shape == (4, 0, 20)


def test_a_posterior_of_contexts_takes_no_dense_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    names = list(dict.fromkeys(strings(200, 4)))
    surrogate = StringGP(product(), encoder=fields())
    low = [Query(string, (("fidelity", "low"),)) for string in names]
    high = [Query(string, (("fidelity", "high"),)) for string in names]
    surrogate.fit([*low[:10], *high[10:20]], rng.normal(size=20), rng=rng)
    process = surrogate.conditioned()
    assert isinstance(surrogate.model.covar_module.base_kernel, PairedKernel)
    shapes = []
    original = KernelEvaluator.cross

    def recorded(self, a, b, *arguments, **options):
        shapes.append((len(a), len(b)))
        return original(self, a, b, *arguments, **options)

    monkeypatch.setattr(KernelEvaluator, "cross", recorded)
    process.at(low)
    assert shapes
    assert all(20 in shape for shape in shapes)  # with the data alone


def test_only_kernels_that_know_pairs_are_paired_kernels() -> None:
    assert isinstance(product(), PairedKernel)
    assert isinstance(OwnKernel(), StringKernel)
    assert not isinstance(OwnKernel(), PairedKernel)
