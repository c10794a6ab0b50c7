"""Active learning: values by hand, identities between criteria, BoTorch, batches."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from seqopt.acquisition import BALD, BALM, BQBC, QBMGP, SAL, DensePosterior
from seqopt.acquisition.distances import mixture_moments
from seqopt.acquisition.learning import diversity
from seqopt.errors import InputError

TWO = torch.tensor([[0.0], [2.0]], dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64)


def several(draws=3, points=6, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(draws, points, points))
    covariance = factor @ factor.swapaxes(1, 2) / points
    noise = torch.from_numpy(rng.uniform(0.05, 0.5, size=draws))
    return DensePosterior(torch.from_numpy(rng.normal(size=(draws, points))), torch.from_numpy(covariance), noise)


def scores(acquisition, posterior):
    return acquisition.prepare(posterior, np.random.default_rng(0), batch_size=3)(posterior)


def test_two_draws_by_hand():
    expected = {SAL(): 1.082392, SAL("hellinger"): 0.326576, BQBC(): 1.0, BALM(): 1.0, QBMGP(): 2.0}
    for acquisition, value in expected.items():
        assert float(acquisition.of_outcomes(*TWO)) == pytest.approx(value, abs=5e-7), acquisition.name
    assert float(BALD().of_outcomes(*TWO)) == pytest.approx(0.5 * math.log(2))


def test_noise_is_part_of_what_is_compared():
    posterior = several()
    silent = DensePosterior(posterior.moments.mean, posterior.joint(torch.arange(6))[1], 0.0)
    for acquisition in (SAL(), SAL("hellinger"), BALD(), BALM()):
        assert not torch.allclose(scores(acquisition, posterior), scores(acquisition, silent), rtol=1e-2)


def test_bald_is_sal_with_the_kullback_leibler_divergence():
    posterior = several()
    torch.testing.assert_close(scores(BALD(), posterior), scores(SAL("kl"), posterior))
    torch.testing.assert_close(scores(BALD("mixture"), posterior), scores(SAL("kl", "mixture"), posterior))


def test_bald_of_the_mixture_is_the_mutual_information():
    posterior = several(points=2)
    mean, std = posterior.moments.outcome_mean.numpy(), posterior.moments.outcome_variance.sqrt().numpy()
    found = scores(BALD("mixture", points=4096), posterior)
    for place in range(2):

        def density(y, place=place):
            return stats.norm.pdf(y, mean[:, place], std[:, place]).mean()

        entropy, _ = integrate.quad(lambda y: -density(y) * math.log(density(y)), -12, 12, limit=300)
        within = np.mean([stats.norm(0.0, one).entropy() for one in std[:, place]])
        assert float(found[place]) == pytest.approx(entropy - within, abs=1e-3)


@pytest.mark.parametrize("marginal", ["moments", "mixture"])
@pytest.mark.parametrize("distance", ["hellinger", "wasserstein", "kl"])
def test_one_draw_or_equal_draws_have_nothing_to_disagree_about(distance, marginal):
    one = several(draws=1)
    equal = DensePosterior(*(part.expand(3, *part.shape[1:]) for part in one.joint(torch.arange(6))), 0.1)
    for posterior in (one, equal):
        for acquisition in (SAL(distance, marginal), BQBC(), BALD(marginal)):
            assert float(scores(acquisition, posterior).abs().max()) < 1e-6


def test_one_draw_is_warned_of(caplog):
    with caplog.at_level(logging.WARNING, "seqopt"):
        BALM().prepare(several(draws=1), np.random.default_rng(0))
        assert not caplog.records
        SAL().prepare(several(draws=1), np.random.default_rng(0))
    assert "sal compares what draws" in caplog.text
    assert "fully Bayesian" in caplog.text


def test_scores_are_those_of_botorch():
    learning = pytest.importorskip("botorch_community.acquisition.bayesian_active_learning")
    from botorch.acquisition.bayesian_active_learning import qBayesianActiveLearningByDisagreement
    from botorch.models.model import Model
    from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
    from botorch.sampling.normal import SobolQMCNormalSampler
    from gpytorch.distributions import MultivariateNormal

    posterior = several(draws=3, points=5, seed=3)
    mean, covariance = posterior.joint(torch.arange(5))
    noise = posterior.moments.residual_variance[:, :1]

    class Lookup(Model):
        """Points are numbers of rows of one Gram matrix for each draw of the parameters."""

        num_outputs = 1
        batch_shape = torch.Size([3])
        _is_fully_bayesian = _is_ensemble = True

        def posterior(self, X, observation_noise=False, **options):
            rows = X[..., 0].long()
            at = [mean[draw][rows] for draw in range(3)]
            part = [covariance[draw][rows[..., :, None], rows[..., None, :]] for draw in range(3)]
            eye = torch.eye(rows.shape[-1], dtype=torch.float64)
            noisy = [one + (noise[draw] * eye if observation_noise else 0) for draw, one in enumerate(part)]
            # The dimension of draws is the third but last of points.
            return GaussianMixturePosterior(MultivariateNormal(torch.stack(at, -2), torch.stack(noisy, -3)))

    X = torch.arange(5, dtype=torch.float64).reshape(5, 1, 1)
    theirs = learning.qStatisticalDistanceActiveLearning(Lookup(), distance_metric="hellinger")(X)
    torch.testing.assert_close(scores(SAL("hellinger"), posterior), theirs.reshape(-1), rtol=1e-10, atol=1e-10)
    theirs = learning.qBayesianVarianceReduction(Lookup())(X)  # the variance of the mixture
    torch.testing.assert_close(scores(QBMGP(), posterior).log(), theirs.reshape(-1).log(), rtol=0.05, atol=0.05)
    sampler = SobolQMCNormalSampler(sample_shape=torch.Size([4096]), seed=0)
    theirs = qBayesianActiveLearningByDisagreement(Lookup(), sampler=sampler)(X)
    own = scores(BALD("mixture", points=2048), posterior)
    torch.testing.assert_close(own, theirs.reshape(-1), rtol=0.05, atol=0.01)


@pytest.mark.parametrize("name", ["sal", "bqbc", "qbmgp", "bald"])
def test_what_was_chosen_is_not_chosen_again(name):
    from seqopt.acquisition import resolve_acquisition

    acquisition, posterior = resolve_acquisition(name), several(seed=2)
    prepared = acquisition.prepare(posterior, np.random.default_rng(0))
    first = prepared(posterior)
    best = int(first.argmax())
    assert float(prepared(posterior.given(best))[best]) < 0.7 * float(first[best])


def test_near_copies_of_what_was_chosen_are_believed_to_agree():
    """Two draws that disagree about A and its near copy A', and, less, about an unrelated B."""
    covariance = torch.tensor([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    mean = torch.tensor([[2.0, 1.95, 1.0], [-2.0, -1.95, -1.0]], dtype=torch.float64)
    posterior = DensePosterior(mean, covariance.expand(2, 3, 3), 0.05)
    for acquisition in (SAL(), BQBC(), SAL("hellinger"), BALD(), SAL(batch="diversity", repulsion=3.0)):
        prepared = acquisition.prepare(posterior, np.random.default_rng(0))
        assert int(prepared(posterior).argmax()) == 0
        assert int(prepared(posterior.given(0)).argmax()) == 2, acquisition


def test_diversity_adds_the_determinant_of_correlations():
    posterior = several(seed=4)
    acquisition = SAL(batch="diversity", repulsion=0.5)
    prepared = acquisition.prepare(posterior, np.random.default_rng(0))
    alone = prepared(posterior)
    torch.testing.assert_close(alone, scores(SAL(), posterior))
    after = prepared(posterior.given(1).given(4))
    _, covariance = posterior.joint(torch.arange(6))
    noisy = covariance + posterior.moments.residual_variance[:, :1, None] * torch.eye(6)
    roots = noisy.diagonal(dim1=1, dim2=2).sqrt()
    correlation = noisy / (roots[:, :, None] * roots[:, None])
    for point in (0, 2, 3, 5):
        chosen = torch.tensor([1, 4, point])
        grown = torch.logdet(correlation[:, chosen][:, :, chosen])
        before = torch.logdet(correlation[:, chosen[:2]][:, :, chosen[:2]])
        expected = float(alone[point]) + 0.5 * 0.5 * float((grown - before).mean())
        assert float(after[point]) == pytest.approx(expected, abs=1e-10)
    assert float(diversity(posterior.moments).abs().max()) == 0.0


def test_a_mixture_has_the_variance_that_total_variance_says():
    posterior = several()
    _, variance = mixture_moments(posterior.moments.outcome_mean, posterior.moments.outcome_variance)
    torch.testing.assert_close(variance, scores(BALM(), posterior) + scores(BQBC(), posterior))
    torch.testing.assert_close(variance, scores(QBMGP(), posterior))


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="unknown distance"):
        SAL("euclid")
    with pytest.raises(InputError, match="batch is 'joint'; expected one of believer, diversity"):
        SAL(batch="joint")
    with pytest.raises(InputError, match="repulsion is -1"):
        BQBC(repulsion=-1)
