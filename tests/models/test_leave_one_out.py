"""Leave-one-out predictions and prior correlations."""

import numpy as np
import pytest
import torch

from seqopt.models import ExplainedSurrogate, FullyBayesianStringGP, LeaveOneOut, StringGP
from seqopt.models.conditioned import BatchedGPState

STRINGS = ["ACGT", "ACGA", "TTTT", "TTTA", "GGCC", "GACC", "GACC"]
VALUES = np.array([1.0, 1.4, -2.0, -1.0, 0.5, 0.1, 0.3])


def test_equal_values_have_no_share_that_is_explained_also_if_they_differ_by_rounding() -> None:
    values = np.array([0.9719821743444818, 0.9719821743444819, 0.9719821743444817])
    assert np.isnan(LeaveOneOut(values, values, np.ones(3)).r2)
    assert LeaveOneOut(np.array([0.0, 1e-9, 2e-9]), np.array([0.0, 1e-9, 2e-9]), np.ones(3)).r2 == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("gp", [StringGP(restarts=1), FullyBayesianStringGP(draws=3)])
def test_each_prediction_is_that_of_a_model_without_the_value(gp: StringGP | FullyBayesianStringGP) -> None:
    known = np.array([0.0, 1.0, 0, 0, 0.5, 0, 0])
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0), noise_variance=known)
    assert isinstance(gp, ExplainedSurrogate)
    found = gp.leave_one_out()
    np.testing.assert_allclose(found.values, VALUES)
    whole = gp.fitted
    for i in range(len(STRINGS)):
        others = [j for j in range(len(STRINGS)) if j != i]
        noise = whole.observed_noise[:, others]
        shared = noise.min(dim=1).values
        state = BatchedGPState.build(
            whole.evaluator,
            [STRINGS[j] for j in others],
            whole.encoded.take(others),
            whole.targets[others],
            whole.constant,
            whole.scale,
            shared,
            (noise - shared[:, None])[0],
        )
        known_rows = whole.encoded.take(others)
        cross = torch.from_numpy(whole.evaluator.cross(whole.encoded.take([i]), known_rows)).reshape(-1, 1, len(others))
        row = whole.scale[:, None] * cross[:, 0]
        mean = whole.constant + (row * state.alpha).sum(-1)
        solved = torch.cholesky_solve(row[..., None], state.cholesky)[..., 0]
        variance = whole.scale - (row * solved).sum(-1) + whole.observed_noise[:, i]
        expected = gp.untransform(mean.mean(), variance.mean() + mean.var(correction=0))
        assert found.mean[i] == pytest.approx(float(expected[0]), rel=1e-6)
        assert found.std[i] == pytest.approx(float(expected[1]), rel=1e-6)


@pytest.mark.parametrize("gp", [StringGP(restarts=1), FullyBayesianStringGP()])
def test_correlations_are_one_for_equal_strings_and_less_for_others(gp: StringGP | FullyBayesianStringGP) -> None:
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(0))
    found = gp.similarity(["ACGT", "TTTT", ""], ["ACGT", "ACGA", "GGGG"])
    assert found.shape == (3, 3)
    assert found[0, 0] == pytest.approx(1.0)
    assert 0 < found[0, 1] < 1
    assert found[0, 1] > found[1, 1]
    assert not found[2].any()


def test_a_model_that_predicts_the_mean_of_the_others_explains_nothing() -> None:
    values = np.array([1.0, 2.0, 4.0])
    others = np.array([3.0, 2.5, 1.5])
    assert LeaveOneOut(values, others, np.ones(3)).r2 == pytest.approx(0.0)
    assert LeaveOneOut(values, values, np.ones(3)).r2 == 1.0
    assert np.isnan(LeaveOneOut(np.ones(3), np.ones(3), np.ones(3)).r2)
    assert LeaveOneOut(values, np.array([1.0, 2.0, 2.0]), np.ones(3)).within_90 == pytest.approx(2 / 3)
