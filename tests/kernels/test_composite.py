"""Sums and products of kernels on fields: by gpytorch, and on the fast path, against dense matrices."""

from __future__ import annotations

import copy
import pickle

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from numpy.testing import assert_allclose

from seqopt.encoding import ContextEncoder, Encoder, FeatureEncoder, FieldEncoder, Fields, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import (
    CoregionalizationKernel,
    HammingKernel,
    NgramKernel,
    OneHotKernel,
    OnField,
    Product,
    SameLevelKernel,
    SubsequenceKernel,
    Sum,
    TanimotoKernel,
    bind_fields,
)
from seqopt.models.covariance import AdaptiveKernel, FittedKernel, KernelEvaluator, StringKernel

STRINGS = ["CCO", "CCN", "CCO", "c1ccccc1O", "CC(=O)O", "CCN", "CCCCCC"]
FIDELITY = [0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 1.0]
PLATE = [3.0, 3.0, 5.0, 5.0, 5.0, 7.0, 3.0]
DOSE = [0.1, 0.2, 0.7, 0.7, 1.5, 0.2, 0.4]


class Item:
    def __init__(self, key: str, **context: float) -> None:
        self.key = key
        self.context = context


def encoder() -> FieldEncoder:
    names = ("fidelity", "plate", "dose")
    return FieldEncoder(
        {
            "tokens": Encoder(),
            "bits": FeatureEncoder(MorganFingerprint(size=32)),
            **{name: ContextEncoder(name, default=0.0) for name in names},
        }
    )


def items() -> Fields:
    columns = zip(STRINGS, FIDELITY, PLATE, DOSE, strict=True)
    return encoder().encode([Item(s, fidelity=f, plate=p, dose=d) for s, f, p, d in columns])


FACTORS = [[1.0], [0.5], [-0.3]]
B = np.array(FACTORS) @ np.array(FACTORS).T + np.diag([0.2, 0.4, 0.1])


def tokens_gram() -> np.ndarray:
    return SubsequenceKernel(3, 0.7, 0.4).gram(STRINGS).numpy()


def bits_gram() -> np.ndarray:
    return TanimotoKernel().cross(items()["bits"])


def dose_gram() -> np.ndarray:
    difference = np.subtract.outer(DOSE, DOSE) / 0.6
    return np.exp(-0.5 * difference**2)


def levels_gram() -> np.ndarray:
    numbers = np.array(FIDELITY, dtype=int)
    return np.array([[B[i, j] for j in numbers] for i in numbers])


def same_plate() -> np.ndarray:
    return np.array([[float(one == other) for other in PLATE] for one in PLATE])


def tokens() -> OnField:
    return OnField(SubsequenceKernel(3, 0.7, 0.4), "tokens")


def dose() -> OnField:
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.6
    return OnField(kernel, "dose")


def levels() -> OnField:
    return OnField(CoregionalizationKernel(3, factors=FACTORS, variances=[0.2, 0.4, 0.1]), "fidelity")


def scaled(kernel: gpytorch.kernels.Kernel, scale: float) -> ScaleKernel:
    found = ScaleKernel(kernel).double()
    found.outputscale = scale
    return found


# Every kernel with its Gram matrix, computed by hand from those of the parts.
CASES = {
    "tokens": (tokens, tokens_gram),
    "levels": (levels, levels_gram),
    "product": (lambda: tokens() * levels(), lambda: tokens_gram() * levels_gram()),
    "sum": (lambda: tokens() + OnField(TanimotoKernel(), "bits"), lambda: tokens_gram() + bits_gram()),
    "plates": (
        lambda: tokens() + OnField(SameLevelKernel(), "plate") * scaled(OnField(TanimotoKernel(), "bits"), 0.3),
        lambda: tokens_gram() + same_plate() * 0.3 * bits_gram(),
    ),
    "foreign": (lambda: Product(tokens(), dose(), levels()), lambda: tokens_gram() * dose_gram() * levels_gram()),
    "nested": (
        lambda: Sum(scaled(Sum(tokens(), dose()), 2.0), Product(levels(), Sum(tokens(), levels()))),
        lambda: 2 * (tokens_gram() + dose_gram()) + levels_gram() * (tokens_gram() + levels_gram()),
    ),
    "unnormalised": (
        lambda: OnField(SubsequenceKernel(2, normalize=False), "tokens") + OnField(NgramKernel(2, 3.0), "tokens"),
        lambda: (
            SubsequenceKernel(2, normalize=False).gram(STRINGS).numpy()
            + NgramKernel(2, 3.0).cross(Encoder().encode(STRINGS))
        ),
    ),
}


def bound(name: str) -> gpytorch.kernels.Kernel:
    kernel = CASES[name][0]()
    bind_fields(kernel, encoder().columns)
    return kernel


@pytest.mark.parametrize("name", CASES)
class TestAgainstDenseMatrices:
    def test_by_gpytorch(self, name: str) -> None:
        kernel, gram = bound(name), CASES[name][1]()
        x = items().to_tensor(width=60)
        with torch.no_grad():
            assert_allclose(kernel(x).to_dense(), gram, rtol=1e-6, atol=1e-12)
            assert_allclose(kernel(x[:3], x[2:]).to_dense(), gram[:3, 2:], rtol=1e-6, atol=1e-12)
            assert_allclose(kernel(x, diag=True), np.diag(gram), rtol=1e-6)
            assert_allclose(kernel(x[:3], x[2:5], diag=True), np.diag(gram[:3, 2:5]), rtol=1e-6, atol=1e-12)
        assert np.linalg.eigvalsh(gram).min() > -1e-10

    def test_on_the_fast_path(self, name: str) -> None:
        kernel, gram = CASES[name][0](), CASES[name][1]()
        assert isinstance(kernel, StringKernel)
        rows, columns = items().take(slice(0, 3)), items().take([4, 2, 6, 0])
        evaluator = KernelEvaluator(kernel, 60)
        own, others = evaluator.self_similarity(rows), evaluator.self_similarity(columns)
        assert own is not None or not kernel.normalize
        expected = gram[:3][:, [4, 2, 6, 0]]
        assert_allclose(kernel.cross(items()), gram, rtol=1e-6, atol=1e-12)
        for given in ((None, None), (own, others)):
            assert_allclose(kernel.cross(rows, columns, *given), expected, rtol=1e-6, atol=1e-12)
            single = kernel.cross(rows, columns, *given, dtype=np.float32)
            assert single.dtype == np.float32
            assert_allclose(single, expected, rtol=1e-5, atol=1e-6)
        before = None if own is None else own.copy()
        for given_own in (None, own):
            assert_allclose(kernel.variance(rows, given_own), np.diag(gram)[:3], rtol=1e-6)
        if before is not None:
            np.testing.assert_array_equal(own, before)
            # Pools are scored in blocks: what is known of items can be cut along the last axis.
            part = kernel.cross(rows.take(slice(1, 3)), columns, own[..., 1:3], others)
            assert_allclose(part, expected[1:], rtol=1e-6, atol=1e-12)

    def test_in_pairs(self, name: str) -> None:
        kernel, gram = CASES[name][0](), CASES[name][1]()
        whole = items()
        assert_allclose(kernel.paired(whole, whole), np.diag(gram), rtol=1e-6)
        # The same strings in other contexts, and other strings.
        for left, right in (([0, 1, 5], [2, 5, 1]), ([0, 3, 4], [6, 2, 1])):
            expected = gram[left, right]
            assert_allclose(kernel.paired(whole.take(left), whole.take(right)), expected, rtol=1e-6, atol=1e-12)

    def test_gradients_are_finite_differences(self, name: str) -> None:
        kernel = bound(name).double()
        x = items().to_tensor(width=60)
        weights = torch.randn(len(x), len(x), dtype=torch.float64, generator=torch.Generator().manual_seed(0))

        def value() -> torch.Tensor:
            return (kernel(x).to_dense() * weights).sum()

        value().backward()
        for parameter in kernel.parameters():
            gradient = parameter.grad.clone().reshape(-1)
            for entry in range(parameter.numel()):
                found = []
                for step in (1e-6, -1e-6):
                    with torch.no_grad():
                        parameter.view(-1)[entry] += step
                        found.append(float(value()))
                        parameter.view(-1)[entry] -= step
                assert float(gradient[entry]) == pytest.approx((found[0] - found[1]) / 2e-6, rel=2e-4, abs=1e-6)

    def test_survives_copies(self, name: str) -> None:
        kernel, x = bound(name), items().to_tensor()
        with torch.no_grad():
            expected = kernel(x).to_dense()
            for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
                torch.testing.assert_close(again(x).to_dense(), expected)
                assert repr(again) == repr(kernel)


def test_batch_shapes() -> None:
    batch = torch.Size([2])
    gaps = torch.tensor([0.2, 0.6])
    covariances = torch.tensor(FACTORS).expand(2, 3, 1) * torch.tensor([1.0, 2.0])[:, None, None]
    strings = SubsequenceKernel(3, 0.7, gaps, batch_shape=batch)
    of_levels = CoregionalizationKernel(3, factors=covariances, variances=0.1, batch_shape=batch)
    kernel = OnField(strings, "tokens") * OnField(of_levels, "fidelity") + OnField(SameLevelKernel(), "plate")
    bind_fields(kernel, encoder().columns)
    assert kernel.batch_shape == batch
    whole = items()
    own = kernel.self_similarity(whole)
    x = whole.to_tensor()
    for element in range(2):
        w = covariances[element].double().numpy()
        numbers = np.array(FIDELITY, dtype=int)
        gram = SubsequenceKernel(3, 0.7, float(gaps[element])).gram(STRINGS).numpy()
        expected = gram * (w @ w.T + 0.1 * np.eye(3))[numbers[:, None], numbers] + same_plate()
        with torch.no_grad():
            assert_allclose(kernel(x).to_dense()[element], expected, rtol=1e-6)
            assert_allclose(kernel(x, diag=True)[element], np.diag(expected), rtol=1e-6)
            assert_allclose(kernel[element](x).to_dense(), expected, rtol=1e-6)
            # Batches of rows meet batches of kernels.
            both = kernel(x.expand(3, 2, *x.shape)).to_dense()
            assert_allclose(both[1, element], expected, rtol=1e-6)
        assert_allclose(kernel.cross(whole, whole, own, own)[element], expected, rtol=1e-6)
        assert_allclose(kernel.cross(whole)[element], expected, rtol=1e-6)
        assert_allclose(kernel.variance(whole, own)[element], np.diag(expected), rtol=1e-6)
        assert_allclose(kernel.paired(whole, whole)[element], np.diag(expected), rtol=1e-6)
        assert_allclose(kernel[element].cross(whole), expected, rtol=1e-6)


def test_fits_reach_the_parts() -> None:
    ngrams = NgramKernel(2)
    strings = SubsequenceKernel(3)
    kernel = scaled(OnField(strings, "tokens"), 2.0)
    whole = Sum(kernel, OnField(ngrams, "tokens") * levels())
    assert isinstance(whole, FittedKernel)
    assert isinstance(whole, AdaptiveKernel)
    assert whole.costly
    assert not levels().costly
    bind_fields(whole, encoder().columns)
    x = items().to_tensor()
    whole.threads = 1
    assert (whole.threads, strings.threads) == (1, 1)
    whole.adapt(x)
    alone = NgramKernel(2)
    alone.adapt(x[:, encoder().columns["tokens"]])
    assert ngrams.lengthscale.item() == alone.lengthscale.item() != NgramKernel(2).lengthscale.item()
    with torch.no_grad():
        exact = whole(x).to_dense()
        with whole.interpolating(x) as interpolated:
            assert interpolated
            assert strings._interpolated is not None
            torch.testing.assert_close(whole(x).to_dense(), exact, rtol=0, atol=1e-7)
    assert strings._interpolated is None
    with levels().interpolating(x) as interpolated:
        assert not interpolated


def test_the_gram_matrix_of_a_kernel_without_parameters_is_kept_for_the_same_rows() -> None:
    calls = []

    class Counting(TanimotoKernel):
        def forward(self, *arguments: torch.Tensor, **options: bool) -> torch.Tensor:  # type: ignore[override]
            calls.append(1)
            return super().forward(*arguments, **options)

    kernel = OnField(Counting(), "bits", encoder().columns["bits"])
    x = items().to_tensor()
    first = kernel.forward(x, x)
    assert torch.equal(kernel.forward(x, x), first)
    assert len(calls) == 1
    x[0, :32] = 0.0  # changed in place
    assert not torch.equal(kernel.forward(x, x), first)
    kernel.forget()
    kernel.forward(x, x)
    assert len(calls) == 3
    # What has parameters is computed anew: they may change.
    learning, y = OnField(SubsequenceKernel(), "tokens", encoder().columns["tokens"]), items().to_tensor()
    with torch.no_grad():
        before = learning.forward(y, y)
        learning.kernel.gap_decay = 0.9
        assert not torch.allclose(learning.forward(y, y), before)


def test_a_model_learns_through_sums_and_products() -> None:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP

    kernel = scaled(tokens(), 1.0) + OnField(SameLevelKernel(), "plate")
    kernel = kernel * levels()
    bind_fields(kernel, encoder().columns)
    x, y = items().to_tensor(), torch.tensor([[0.1], [0.4], [0.3], [1.0], [0.2], [0.5], [0.9]], dtype=torch.float64)
    model = SingleTaskGP(x, y, covar_module=kernel, outcome_transform=None)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    before = {name: value.detach().clone() for name, value in kernel.named_parameters()}
    with torch.no_grad():
        started = float(mll(model(x), y[:, 0]))
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 15}})
    model.train()
    with torch.no_grad():
        assert float(mll(model(x), y[:, 0])) > started
    assert all(not torch.equal(before[name], value) for name, value in kernel.named_parameters())


def test_what_a_kernel_shows() -> None:
    kernel = Sum(tokens(), OnField(SameLevelKernel(), "plate"))
    assert repr(kernel) == (
        "Sum(OnField(SubsequenceKernel(order=3, match_decay=0.7, gap_decay=0.4), 'tokens'), "
        "OnField(SameLevelKernel(), 'plate'))"
    )


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Sum(), "Sum needs at least one kernel"),
        (lambda: Product(3), "Product takes kernels; got 3 of type int"),  # type: ignore[arg-type]
        (lambda: OnField(torch.nn.Linear(1, 1), "a"), "OnField takes kernels"),
        (lambda: tokens().forward(torch.ones(1, 1), torch.ones(1, 1)), "'tokens' does not know its columns"),
        (lambda: tokens().cross(items()["tokens"]), "compares Fields; got EncodedStrings"),
        (lambda: OnField(OneHotKernel(), "nothing").cross(items()), "no field 'nothing'; the fields are bits"),
        (lambda: bind_fields(tokens() + levels(), {"tokens": slice(0, 3)}), "reads the field 'fidelity'"),
        (lambda: tokens().paired(items(), items().take([0])), "7 items cannot be paired with 1"),
        (lambda: Sum(tokens())(torch.ones(2, 2), last_dim_is_batch=True).to_dense(), "single columns"),
    ],
)
@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
def test_what_does_not_fit_is_refused(act: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act()  # type: ignore[operator]


def test_the_batch_shape_of_a_composed_kernel_is_that_of_all_parts_at_any_depth() -> None:
    batched = OnField(HammingKernel(batch_shape=torch.Size([3, 1])), "string")
    other = OnField(HammingKernel(batch_shape=torch.Size([2])), "string")
    assert Product(OnField(HammingKernel(), "string")).batch_shape == torch.Size()
    assert Sum(Product(batched), other).batch_shape == torch.Size([3, 2])
    kernel = Sum(other)
    kernel.batch_shape = torch.Size([5, 1])
    assert kernel.batch_shape == torch.Size([5, 2])
