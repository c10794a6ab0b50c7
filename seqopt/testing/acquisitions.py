"""What searches rely on in an acquisition function."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from seqopt.acquisition import Acquisition, MonotoneAcquisition, resolve_acquisition
from seqopt.posteriors import DensePosterior

POINTS, OBSERVED = 12, 4


class AcquisitionConformance:
    """Tests of a `seqopt.acquisition.Acquisition`: inherit them, and override the fixture ``acquisition``.

    Attributes:
        random: Whether every call is a draw of its own, so that no two calls agree.
        rtol: Relative difference that is allowed between two ways to the same score.

    Example:
        >>> from seqopt.acquisition import UpperConfidenceBound
        >>> class TestUCB(AcquisitionConformance):
        ...     @pytest.fixture
        ...     def acquisition(self) -> Acquisition:
        ...         return UpperConfidenceBound()
    """

    random: bool = False
    rtol: float = 1e-9

    @pytest.fixture
    def acquisition(self) -> Acquisition:
        """The acquisition function."""
        raise NotImplementedError("override the fixture acquisition, so that it returns the one to be tested")

    def test_it_is_an_acquisition_function_with_a_name(self, acquisition: Acquisition) -> None:
        assert isinstance(acquisition, Acquisition), f"{acquisition!r} lacks name or prepare"
        assert isinstance(acquisition.name, str)
        assert acquisition.name
        assert resolve_acquisition(acquisition) is acquisition

    @pytest.mark.parametrize("draws", [None, 1, 3])
    def test_each_point_has_one_score(self, acquisition: Acquisition, draws: int | None) -> None:
        for observed in (OBSERVED, 0):
            posterior = example_posterior(observed=observed, draws=draws)
            prepared = acquisition.prepare(posterior, _rng(), batch_size=3)
            for _ in range(3):
                scores = _checked(prepared(posterior), POINTS)
                posterior = posterior.given(int(scores.argmax()))

    def test_one_point_is_enough(self, acquisition: Acquisition) -> None:
        posterior = example_posterior(points=1)
        _checked(acquisition.prepare(posterior, _rng())(posterior), 1)

    def test_the_generator_alone_decides(self, acquisition: Acquisition) -> None:
        posterior, found = example_posterior(), []
        for global_seed in (1, 2):
            torch.manual_seed(global_seed)
            prepared = acquisition.prepare(posterior, _rng(), batch_size=2)
            found.append(torch.stack([prepared(posterior), prepared(posterior.given(0))]))
        assert torch.equal(found[0], found[1]), "scores with equal generators differ"

    def test_the_posterior_is_left_as_it_was(self, acquisition: Acquisition) -> None:
        posterior = example_posterior()
        names = list(posterior.moments.__dataclass_fields__)
        before = {name: getattr(posterior.moments, name).clone() for name in names}
        acquisition.prepare(posterior, _rng())(posterior)
        for name in names:
            assert torch.equal(getattr(posterior.moments, name), before[name]), f"{name} has been changed"

    def test_the_same_point_has_the_same_score_among_others(self, acquisition: Acquisition) -> None:
        if self.random:
            pytest.skip("every call is a draw of its own")
        prepared = acquisition.prepare(example_posterior(), _rng())
        scores = prepared(example_posterior())
        self._same(prepared(example_posterior()), scores, "differ between two calls")
        for indices in (torch.tensor([3]), torch.tensor([7, 0, 5]), torch.arange(POINTS).flip(0)):
            self._same(prepared(example_posterior(take=indices)), scores[indices], "depend on what else is scored")

    @pytest.mark.parametrize("draws", [None, 3])
    def test_more_uncertainty_is_never_worse_where_it_says_so(
        self, acquisition: Acquisition, draws: int | None
    ) -> None:
        if not (isinstance(acquisition, MonotoneAcquisition) and acquisition.monotone):
            pytest.skip("it does not say so")
        posterior = example_posterior(draws=draws)
        prepared = acquisition.prepare(posterior, _rng())
        last: Tensor | None = None
        for share in (0.0, 1e-12, 1e-3, 0.1, 0.5, 0.9, 1.0):
            scores = prepared(example_posterior(draws=draws, conditional=share))
            if last is not None:
                falls = scores < last - self.rtol * last.abs()
                assert not bool(falls.any()), "a score falls as the conditional variance grows: monotone is wrong"
            last = scores
        assert last is not None
        for point in range(2):
            alone = torch.ones(POINTS, dtype=torch.float64)
            alone[point] = 0.25
            changed = prepared(example_posterior(draws=draws, conditional=alone))
            others = torch.arange(POINTS) != point
            self._same(changed[others], last[others], "depend on the conditional variances of other points")

    def test_every_draw_of_the_parameters_counts(self, acquisition: Acquisition) -> None:
        if self.random:
            pytest.skip("every call is a draw of its own")

        def scored(raised: Tensor) -> float:
            posterior = example_posterior(draws=3, raised=raised)
            return float(acquisition.prepare(posterior, _rng())(posterior)[0])

        nothing = torch.zeros(3, POINTS, dtype=torch.float64)
        everywhere = nothing.clone()
        everywhere[:, 0] = 0.5
        if scored(everywhere) == scored(nothing):
            pytest.skip("means make no difference")
        for draw in range(3):
            here = nothing.clone()
            here[draw, 0] = 0.5
            assert scored(here) != scored(nothing), f"the means of draw {draw} make no difference: average over draws"

    def test_equal_draws_are_as_good_as_one(self, acquisition: Acquisition) -> None:
        if self.random:
            pytest.skip("every call is a draw of its own")
        one, several = example_posterior(), example_posterior(draws=3, equal=True)
        prepared = acquisition.prepare(example_posterior(draws=1), _rng())
        self._same(
            prepared(example_posterior(draws=1)),
            acquisition.prepare(one, _rng())(one),
            "differ between one draw and no leading dimension",
        )
        scores = [acquisition.prepare(several, _rng(seed))(several) for seed in range(2)]
        if not torch.equal(scores[0], scores[1]):
            return  # it draws maxima, of each draw of the parameters others
        self._same(scores[0], acquisition.prepare(one, _rng())(one), "differ between a draw and three equal ones")

    @pytest.mark.parametrize("shift", [-1e3, -40.0, 40.0, 1e3])
    @pytest.mark.parametrize("noise", [1e-12, 0.1])
    def test_far_tails_are_scored(self, acquisition: Acquisition, shift: float, noise: float) -> None:
        posterior = example_posterior(noise=noise, raised=torch.full((POINTS,), shift, dtype=torch.float64))
        prepared = acquisition.prepare(example_posterior(noise=noise), _rng())
        _checked(prepared(posterior), POINTS)
        _checked(acquisition.prepare(posterior, _rng())(posterior), POINTS)

    @pytest.mark.parametrize("noise", [0.0, 1e-12, 0.1])
    def test_points_without_variance_are_scored(self, acquisition: Acquisition, noise: float) -> None:
        for certain in (slice(0, 3), slice(None)):
            keep = torch.ones(POINTS, dtype=torch.float64)
            keep[certain] = 0.0
            posterior = example_posterior(noise=noise, scaled=keep)
            prepared = acquisition.prepare(posterior, _rng())
            _checked(prepared(posterior), POINTS)
            _checked(prepared(posterior.given(0)), POINTS)

    def _same(self, found: Tensor, expected: Tensor, how: str) -> None:
        assert torch.allclose(found, expected, rtol=self.rtol, atol=self.rtol), f"scores {how}: {found}, {expected}"


def example_posterior(
    *,
    points: int = POINTS,
    observed: int = OBSERVED,
    draws: int | None = None,
    noise: float = 0.1,
    equal: bool = False,
    raised: Tensor | None = None,
    scaled: Tensor | None = None,
    conditional: Tensor | float | None = None,
    take: Tensor | None = None,
) -> DensePosterior:
    """A small posterior of correlated points with unequal variances.

    Args:
        points: N.
        observed: Evaluated strings.
        draws: Draws of the parameters; by default there is no leading dimension.
        noise: Variance of the noise.
        equal: Whether all draws are the same.
        raised: Added to the means, N or draws x N.
        scaled: Factors of the standard deviations, N.
        conditional: Shares of the variances that are left given pending points, 0 to 1; by default nothing is pending.
        take: Only those of the points, in this order.
    """
    rng = _rng(7)
    count = observed + points
    lead = () if draws is None else (draws,)
    shape = (*((1,) * len(lead) if equal else lead), count)
    factor = rng.standard_normal((*shape, 3)) * rng.uniform(0.3, 1.5, size=(*shape, 1))
    mean = torch.from_numpy(rng.normal(scale=0.7, size=shape)).expand(*lead, count)
    covariance = torch.from_numpy(factor @ np.swapaxes(factor, -1, -2) + 0.05 * np.eye(count))
    covariance = covariance.expand(*lead, count, count)
    if scaled is not None:
        factors = torch.cat([torch.ones(observed, dtype=torch.float64), scaled])
        covariance = covariance * factors[:, None] * factors
    mean_at = mean[..., observed:] if raised is None else mean[..., observed:] + raised
    inside = covariance[..., observed:, observed:]
    kept = None
    if conditional is not None:
        roots = torch.as_tensor(conditional, dtype=torch.float64).expand(points).sqrt()
        kept = inside * roots[:, None] * roots
    posterior = DensePosterior(
        mean_at,
        inside,
        noise,
        conditional_covariance=kept,
        observed_mean=mean[..., :observed],
        observed_covariance=covariance[..., :observed, :observed],
        cross_covariance=covariance[..., :observed, observed:],
        best_observed=1.0,
    )
    return posterior if take is None else posterior.take(take)


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _checked(scores: Tensor, points: int) -> Tensor:
    assert isinstance(scores, Tensor), f"scores are a {type(scores).__name__}, expected a torch.Tensor"
    assert tuple(scores.shape) == (points,), (
        f"scores of {points} points have the shape {tuple(scores.shape)}: give one for each, averaged over draws"
    )
    assert scores.dtype == torch.float64, f"scores are {scores.dtype}, expected float64"
    assert not bool(scores.isnan().any()), f"scores are not numbers: {scores}"
    assert bool((scores < float("inf")).all()), f"scores are infinite: {scores}"
    return scores
