"""The weighted mean of a kernel on tokens and one on features."""

import pickle

import numpy as np
import pytest
import torch
from gpytorch.kernels import ScaleKernel

from seqopt.encoding import Encoder, FeatureEncoder, JointEncoder, TokensAndFeatures
from seqopt.encoding.fingerprints import MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import JointKernel, NgramKernel, SubsequenceKernel, TanimotoKernel

SMILES = ["CCO", "CCN", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CCCCCC", "OCC(O)CO"]
FINGERPRINT = MorganFingerprint(size=64)


def encoded(strings: list[str] = SMILES) -> TokensAndFeatures:
    return JointEncoder(FeatureEncoder(FINGERPRINT)).encode(strings)


def kernel(weight: float = 0.3) -> JointKernel:
    return JointKernel(SubsequenceKernel(order=3), TanimotoKernel(), FINGERPRINT.size, weight=weight)


def expected(weight: float) -> torch.Tensor:
    by_text = SubsequenceKernel(order=3).gram(SMILES)
    by_bits = TanimotoKernel()(encoded().features.to_tensor()).to_dense()
    return weight * by_text + (1 - weight) * by_bits


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_it_is_the_weighted_mean_of_its_kernels(weight: float) -> None:
    joint, strings = kernel(weight), encoded()
    wanted = expected(weight)
    for values in (joint(strings.to_tensor(width=100)).to_dense(), torch.from_numpy(joint.cross(strings))):
        torch.testing.assert_close(values, wanted, rtol=1e-12, atol=1e-12)
    assert torch.linalg.eigvalsh(wanted).min() > -1e-10


def test_rows_against_columns_and_diagonals_agree_with_the_whole() -> None:
    joint, strings = kernel(), encoded()
    whole, x = expected(0.3), strings.to_tensor()
    part = joint.cross(strings.take([4, 1]), strings)
    np.testing.assert_allclose(part, whole[[4, 1]].detach().numpy(), rtol=1e-12)
    torch.testing.assert_close(joint(x[[4, 1]], x).to_dense(), whole[[4, 1]])
    torch.testing.assert_close(joint(x, diag=True), torch.ones(6, dtype=torch.float64))
    own = joint.self_similarity(strings)
    np.testing.assert_allclose(joint.variance(strings, own), 1.0)
    np.testing.assert_allclose(joint.cross(strings, strings, own, own), whole.detach().numpy(), rtol=1e-12)
    # A string that is nothing to the one kernel may be something to the other.
    empty = TokensAndFeatures(Encoder().encode([""]), strings.features.take([0]))
    np.testing.assert_allclose(joint.variance(empty), 0.7)


def test_gradients_reach_the_weight_and_both_decays() -> None:
    joint, x = kernel().double(), encoded().to_tensor()
    joint(x).to_dense().sum().backward()
    found = {name: float(parameter.grad) for name, parameter in joint.named_parameters()}
    by_text = SubsequenceKernel(order=3).gram(SMILES)
    by_bits = TanimotoKernel()(encoded().features.to_tensor()).to_dense()
    assert found["raw_weight"] == pytest.approx(float((by_text - by_bits).sum()), rel=1e-9)
    alone = SubsequenceKernel(order=3).double()
    alone(x[:, FINGERPRINT.size :]).to_dense().sum().backward()
    assert found["tokens.raw_gap_decay"] == pytest.approx(0.3 * float(alone.raw_gap_decay.grad), rel=1e-9)


def test_the_gram_matrix_of_features_is_kept_only_for_the_same_rows() -> None:
    joint, calls = kernel(), []
    inner = joint.features.forward

    def counting(*arguments: torch.Tensor, **options: bool) -> torch.Tensor:
        calls.append(1)
        return inner(*arguments, **options)

    joint.features.forward = counting  # type: ignore[method-assign]
    x = encoded().to_tensor()
    first, second = joint.forward(x, x), joint.forward(x, x)
    assert len(calls) == 1
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    x[0, : FINGERPRINT.size] = 0.0  # changed in place
    changed = joint.forward(x, x)
    assert len(calls) == 2
    assert not torch.allclose(changed[0], first[0])
    joint.forget()
    joint.forward(x, x)
    assert len(calls) == 3


def test_a_kernel_on_features_that_learns_is_evaluated_anew() -> None:
    class Learning(TanimotoKernel):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter("exponent", torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64)))

        def forward(self, x1: torch.Tensor, x2: torch.Tensor, **options: bool) -> torch.Tensor:  # type: ignore[override]
            return super().forward(x1, x2, **options) ** self.exponent

    joint, x = JointKernel(SubsequenceKernel(), Learning(), FINGERPRINT.size), encoded().to_tensor()
    with torch.no_grad():
        before = joint.forward(x, x)
        joint.features.exponent.fill_(3.0)
        assert not torch.allclose(joint.forward(x, x), before)
    joint.forward(x, x).sum().backward()
    assert joint.features.exponent.grad is not None
    with torch.inference_mode():
        kernel().forward(x.clone(), x.clone())
        inner = x.clone()
        kernel().forward(inner, inner)


def test_interpolation_covers_the_tokens() -> None:
    joint, x = kernel(), encoded().to_tensor()
    exact = joint(x).to_dense()
    with joint.interpolating(x) as interpolated:
        assert interpolated
        torch.testing.assert_close(joint(x).to_dense(), exact, rtol=0, atol=1e-8)


def test_it_is_a_kernel_of_gpytorch_and_survives_pickling() -> None:
    x = encoded().to_tensor()
    scaled = ScaleKernel(kernel())
    scaled.outputscale = 2.0
    torch.testing.assert_close(scaled(x).to_dense().double(), 2 * expected(0.3), rtol=1e-6, atol=1e-6)
    again = pickle.loads(pickle.dumps(scaled.base_kernel))
    torch.testing.assert_close(again(x).to_dense(), expected(0.3))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: kernel(1.2), "weight is 1.2"),
        (lambda: JointKernel(TanimotoKernel(), TanimotoKernel(), 3), "normalised SubsequenceKernel"),  # type: ignore[arg-type]
        (lambda: JointKernel(SubsequenceKernel(normalize=False), TanimotoKernel(), 3), "normalised SubsequenceKernel"),
        (lambda: JointKernel(SubsequenceKernel(), torch.nn.Linear(1, 1), 3), "Linear is not a kernel"),
        (lambda: JointKernel(SubsequenceKernel(), NgramKernel(), 3), "NgramKernel is not a kernel"),
        (lambda: JointKernel(SubsequenceKernel(), TanimotoKernel(), 0), "feature_columns is 0"),
    ],
)
def test_what_does_not_fit_is_refused(build: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()  # type: ignore[operator]


def test_gradients_in_the_features_can_be_taken_again() -> None:
    joint, rows = kernel(), encoded().to_tensor().requires_grad_()
    gradients = []
    for _ in range(2):
        rows.grad = None
        joint.forward(rows, rows).sum().backward()
        assert rows.grad is not None
        gradients.append(rows.grad.clone())
    torch.testing.assert_close(gradients[0], gradients[1])
    assert gradients[0].abs().sum() > 0
