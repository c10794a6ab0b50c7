"""What acquisition functions and searches rely on in a posterior."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from torch import Tensor

from seqopt.posteriors import Moments, Posterior


class PosteriorConformance:
    """Tests of a `seqopt.posteriors.Posterior`: inherit them, and override the fixture ``posterior``.

    Attributes:
        rtol: Relative difference that is allowed between two ways to the same number; absolute ones are relative to the
            largest variance, or to the spread of the means.

    Example:
        >>> from seqopt.posteriors import DensePosterior
        >>> class TestTwoPoints(PosteriorConformance):
        ...     @pytest.fixture
        ...     def posterior(self) -> Posterior:
        ...         return DensePosterior(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]), 0.25)
    """

    rtol: float = 1e-6

    @pytest.fixture
    def posterior(self) -> Posterior:
        """A posterior at two queries or more, best with some observed strings, and with correlated queries."""
        raise NotImplementedError("override the fixture posterior, so that it returns the posterior to be tested")

    def test_it_is_a_posterior_at_several_queries(self, posterior: Posterior) -> None:
        assert isinstance(posterior, Posterior), f"{type(posterior).__name__} is not a seqopt.posteriors.Posterior"
        assert len(posterior.moments) >= 2, "the fixture posterior must be one at two queries or more"

    def test_moments_are_finite_numbers_of_one_shape(self, posterior: Posterior) -> None:
        shape = posterior.moments.mean.shape
        assert len(shape) in (1, 2), f"means have the shape {tuple(shape)}, expected N or draws x N"
        for name, values in _moments(posterior).items():
            assert values.dtype == torch.float64, f"{name} is {values.dtype}, expected float64"
            assert values.shape == shape, f"{name} has the shape {tuple(values.shape)}, expected {tuple(shape)}"
            assert bool(values.isfinite().all()), f"{name} is not finite"

    def test_no_variance_is_negative(self, posterior: Posterior) -> None:
        for name, values in _moments(posterior).items():
            if name.endswith("variance") and name != "covariance":
                assert bool((values >= 0).all()), f"{name} has negative entries"

    def test_moments_fit_together(self, posterior: Posterior) -> None:
        m = posterior.moments
        spare = self.rtol * float(m.outcome_variance.max())
        assert bool((m.covariance.square() <= m.variance * m.outcome_variance + spare * m.variance.max()).all()), (
            "covariance^2 exceeds variance * outcome_variance: no two quantities have a correlation above 1"
        )
        explained = torch.where(m.variance > 0, m.covariance.square() / m.variance.clamp_min(1e-300), 0.0)
        self._close(m.residual_variance, m.outcome_variance - explained, spare, "residual_variance")
        assert bool((m.conditional_variance <= m.variance + spare).all()), "conditional_variance exceeds variance"
        assert bool((m.remaining_variance <= m.outcome_variance + spare).all()), (
            "remaining_variance exceeds outcome_variance"
        )

    def test_what_is_known_of_the_data_has_as_many_draws(self, posterior: Posterior) -> None:
        draws = posterior.moments.mean.shape[:-1]
        for name in ("observed_mean", "conditioned_mean"):
            values: Tensor = getattr(posterior, name)
            assert values.shape[:-1] == draws, f"{name} has the shape {tuple(values.shape)}, expected {(*draws, 'k')}"
            assert values.dtype == torch.float64
            assert bool(values.isfinite().all())
        assert isinstance(posterior.best_observed, float)

    def test_the_joint_distribution_has_the_moments(self, posterior: Posterior) -> None:
        every = torch.arange(len(posterior.moments))
        for indices in (every, every.flip(0), every[-1:]):
            mean, covariance = posterior.joint(indices)
            moments = posterior.moments.take(indices)
            assert covariance.shape == (*mean.shape, mean.shape[-1])
            self._close(mean, moments.mean, self._mean_spare(posterior), "the mean of joint")
            spare = self._spare(posterior)
            self._close(covariance.diagonal(dim1=-2, dim2=-1), moments.variance, spare, "the diagonal of joint")
            self._close(covariance, covariance.transpose(-1, -2), spare, "the transposed covariance of joint")
            smallest = float(torch.linalg.eigvalsh((covariance + covariance.transpose(-1, -2)) / 2).min())
            assert smallest >= -len(indices) * spare, f"the covariance has the eigenvalue {smallest}"

    def test_evaluated_strings_come_first_in_the_joint_distribution(self, posterior: Posterior) -> None:
        indices = torch.arange(2)
        mean, covariance = posterior.joint(indices)
        observed = posterior.observed_mean.shape[-1]
        whole_mean, whole = posterior.joint(indices, include_observed=True)
        assert whole_mean.shape[-1] == whole.shape[-1] == whole.shape[-2] == observed + 2
        self._close(whole_mean[..., :observed], posterior.observed_mean, self._mean_spare(posterior), "observed means")
        self._close(whole_mean[..., observed:], mean, self._mean_spare(posterior), "means with evaluated strings")
        spare = self._spare(posterior)
        self._close(whole[..., observed:, observed:], covariance, spare, "the covariance with evaluated strings")
        smallest = float(torch.linalg.eigvalsh((whole + whole.transpose(-1, -2)) / 2).min())
        assert smallest >= -len(whole_mean) * spare - spare, f"the covariance has the eigenvalue {smallest}"

    def test_cross_covariances_are_those_of_the_joint_distribution(self, posterior: Posterior) -> None:
        every = torch.arange(len(posterior.moments))
        chosen = every[torch.tensor([-1, 0])]
        expected = posterior.joint(every)[1][..., chosen]
        self._close(posterior.cross(chosen), expected, self._spare(posterior), "cross")

    def test_given_leaves_the_original_as_it_was(self, posterior: Posterior) -> None:
        before = {name: values.clone() for name, values in _moments(posterior).items()}
        joint = posterior.joint(torch.arange(2))[1].clone()
        conditioned = posterior.conditioned_mean.clone()
        posterior.given(0).given(1)
        for name, values in _moments(posterior).items():
            assert torch.equal(values, before[name]), f"given has changed {name} of the posterior that it was called on"
        assert torch.equal(posterior.joint(torch.arange(2))[1], joint)
        assert torch.equal(posterior.conditioned_mean, conditioned)

    def test_an_outcome_lowers_variances_and_moves_nothing_else(self, posterior: Posterior) -> None:
        before, spare = posterior.moments, self._spare(posterior)
        index = int(before.variance.reshape(-1, len(before)).sum(0).argmax())
        given = posterior.given(index)
        after = given.moments
        for name in ("mean", "variance", "outcome_mean", "outcome_variance", "covariance", "residual_variance"):
            self._close(getattr(after, name), getattr(before, name), 0.0, name)
        for name in ("conditional_variance", "remaining_variance"):
            old, new = getattr(before, name), getattr(after, name)
            assert bool((new <= old + spare).all()), f"{name} has grown given an outcome"
            assert bool((new[..., index] < old[..., index]).all()), f"{name} of the query itself has not fallen"
        expected = torch.cat([posterior.conditioned_mean, before.mean[..., index, None]], -1)
        self._close(given.conditioned_mean, expected, self._mean_spare(posterior), "conditioned_mean")
        self._close(
            given.joint(torch.arange(2))[1], posterior.joint(torch.arange(2))[1], spare, "joint, given the data alone,"
        )

    def test_an_outcome_lowers_variances_by_what_it_explains(self, posterior: Posterior) -> None:
        m = posterior.moments
        if posterior.conditioned_mean.shape[-1] or not torch.allclose(m.covariance, m.variance, rtol=self.rtol):
            pytest.skip("something is pending already, or outcomes are not targets with noise")
        index = len(m) - 1
        explained = posterior.cross(torch.tensor([index]))[..., 0].square() / m.outcome_variance[..., index, None]
        self._close(
            posterior.given(index).moments.conditional_variance,
            (m.variance - explained).clamp_min(0.0),
            self._spare(posterior),
            "conditional_variance",
        )

    def test_the_order_of_outcomes_does_not_matter(self, posterior: Posterior) -> None:
        one, other = posterior.given(0).given(1).moments, posterior.given(1).given(0).moments
        for name in ("conditional_variance", "remaining_variance"):
            self._close(getattr(one, name), getattr(other, name), self._spare(posterior), name)

    def _spare(self, posterior: Posterior) -> float:
        return self.rtol * float(posterior.moments.variance.max())

    def _mean_spare(self, posterior: Posterior) -> float:
        return self.rtol * float(posterior.moments.mean.abs().max() + posterior.moments.variance.max().sqrt())

    def _close(self, found: Tensor, expected: Tensor, spare: float, what: str) -> None:
        assert found.shape == expected.shape, f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}"
        difference = (found - expected).abs()
        wrong = bool((difference > spare + self.rtol * expected.abs()).any())
        assert not wrong, f"{what}: {found} instead of {expected}"


def _moments(posterior: Posterior) -> dict[str, Tensor]:
    return {field.name: getattr(posterior.moments, field.name) for field in fields(Moments)}
