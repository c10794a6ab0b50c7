"""Functions drawn through BoTorch's pathwise sampling."""

import numpy as np
import pytest
import torch
from botorch.sampling.pathwise import draw_kernel_feature_paths, draw_matheron_paths

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.models import StringGP
from seqopt.models.pathwise import SubsequenceFeatures

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("AB"), RNG.integers(4, 9))) for _ in range(12)]
VALUES = np.array([50 + 30.0 * s.count("AB") for s in STRINGS]) + RNG.normal(size=12)
ELSEWHERE = ["ABABAB", "BBBB", "AABBA", "BABA"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": False}, {"partitions": 2}, {"order_weights": [1.0, 0.3, 2.0]}, {"gap_decay": 1.0}],
)
def test_products_of_features_are_covariances(options: dict) -> None:
    kernel = SubsequenceKernel(order=3, **options)
    rows = Encoder().encode(["ABCA", "CAB", "BBBBBB", "AC"]).to_tensor()
    features = SubsequenceFeatures(kernel, symbols=3)(rows[None])
    assert features.shape == (1, 4, kernel.partitions * 39)
    expected = kernel(rows).to_dense().detach().numpy()
    np.testing.assert_allclose((features[0] @ features[0].T).numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("noise", [None, np.linspace(0.0, 900.0, 12)])
def test_draws_have_the_moments_of_the_posterior(noise: np.ndarray | None) -> None:
    gp = StringGP(SubsequenceKernel(order=3), restarts=1)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0), noise_variance=noise)
    torch.manual_seed(0)
    with torch.no_grad():
        drawn = draw_matheron_paths(gp.model, torch.Size([20_000]))(gp.encode(ELSEWHERE))
    mean, covariance = (moment.numpy() for moment in gp.posterior(ELSEWHERE))
    drawn = drawn.reshape(20_000, len(ELSEWHERE)).numpy()
    largest = np.sqrt(np.diag(covariance).max())
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.03 * largest)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.05 * largest**2)


def test_what_cannot_be_drawn_is_refused_with_a_reason() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    gp = StringGP(restarts=1)
    gp.fit([letters, letters[::-1]], [0.0, 1.0], rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="order 5 over 26 symbols has 12,356,630 features"):
        draw_kernel_feature_paths(gp.model, torch.Size([2]))
    with pytest.raises(InputError, match="symbol number 3, but when the model was fitted there were 2"):
        SubsequenceFeatures(SubsequenceKernel(), 2)(torch.tensor([[1.0, 3.0]]))
    with pytest.raises(InputError, match="batch shape"):
        SubsequenceFeatures(SubsequenceKernel(batch_shape=torch.Size([2])), 2)
