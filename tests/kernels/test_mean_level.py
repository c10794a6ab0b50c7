"""The mean over levels: FASTCV's variance and correlation by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, MeanLevelKernel, SameLevelKernel


def test_variance_and_correlation_of_the_mean_by_hand():
    # Three folds with covariances 1 + 0.5 on the diagonal and 1 elsewhere.
    kernel = MeanLevelKernel(CoregionalizationKernel(3, factors=1.0, variances=0.5))
    found = kernel.covariance.detach().numpy()
    variance = (3 * 1.5 + 6 * 1.0) / 9  # 1 / K^2 times the sum of all
    between = (1.5 + 1.0 + 1.0) / 3  # mean over folds
    assert found[3, 3] == pytest.approx(variance)
    np.testing.assert_allclose(found[3, :3], between)
    rho = found[3, 0] / np.sqrt(found[3, 3] * found[0, 0])
    assert rho == pytest.approx(between / np.sqrt(variance * 1.5))
    assert rho == pytest.approx(0.8819171)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 2), st.data())
def test_the_mean_is_that_of_draws(levels, rank, data):
    numbers = st.floats(-2.0, 2.0)
    factors = np.array(data.draw(st.lists(numbers, min_size=levels * rank, max_size=levels * rank))).reshape(
        levels, rank
    )
    own = CoregionalizationKernel(levels, rank, factors=factors, variances=0.3)
    found = MeanLevelKernel(own).covariance.detach().numpy()
    b = factors @ factors.T + 0.3 * np.eye(levels)
    np.testing.assert_allclose(found[:-1, :-1], b, atol=1e-12)
    np.testing.assert_allclose(found[-1, :-1], b.mean(0), atol=1e-12)
    assert found[-1, -1] == pytest.approx(b.mean())
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_only_kernels_on_levels_have_a_mean():
    with pytest.raises(InputError, match="no kernel on levels"):
        MeanLevelKernel(SameLevelKernel())
