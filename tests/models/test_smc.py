"""Particles and random directions against dense grids, warm starts, and what cannot be sampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from seqopt.encoding import Encoder
from seqopt.encoding.features import FeatureRows
from seqopt.errors import InputError, ModelError
from seqopt.kernels import NgramKernel, SubsequenceKernel, TanimotoKernel
from seqopt.models import FullyBayesianGP
from seqopt.models.sampling import GridSampler, LogPosterior, Sampler, SliceSampler, SMCSampler
from seqopt.utils.config import config_of, from_config

STRINGS = ["GATTACAA", "GATTTACA", "TTACATGC", "CATCATCA", "AAAATAAA", "GGCGCGCC", "ATGCATGC", "CCATGGTA"]
TARGETS = stats.zscore([2.0, 1.0, 1.5, 0.3, -1.0, 0.2, 0.5, 0.4], ddof=1)
COUNTS = FeatureRows((np.random.default_rng(1).poisson(1.0, size=(8, 12)) > 0).astype(float))


def density(count: int = 8, targets: np.ndarray = TARGETS) -> LogPosterior:
    rows = COUNTS.take(np.arange(count))
    return LogPosterior(TanimotoKernel(), rows, targets[:count], np.zeros(count))


def exact(of: LogPosterior) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, means and variances of log output scale and log noise, by a dense grid of the density."""
    axes = [
        np.linspace(max(one.lower, middle - 6), min(one.upper, middle + 6), 90)
        for one, middle in zip(of.coordinates, (0, -4), strict=True)
    ]
    table = np.array([[of(np.array([a, b])) for b in axes[1]] for a in axes[0]])
    weights = np.exp(table - table.max())
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    evidence = math.log(weights.sum() * cell) + table.max()
    weights /= weights.sum()
    means = np.array([weights.sum(1 - place) @ axis for place, axis in enumerate(axes)])
    spreads = np.array([weights.sum(1 - place) @ (axis - means[place]) ** 2 for place, axis in enumerate(axes)])
    return evidence, means, spreads


def moments(sample) -> tuple[np.ndarray, np.ndarray]:
    logs = np.log(np.stack([sample.values["outputscale"], sample.values["noise_variance"]]))
    return logs.mean(1), logs.var(1)


def test_particles_have_the_moments_and_the_evidence_of_a_dense_grid():
    evidence, means, spreads = exact(density())
    found = [SMCSampler(100).sample(density(), np.random.default_rng(seed), evidence=True) for seed in range(3)]
    for place, name in enumerate(("outputscale", "noise_variance")):
        size = sum(one.effective_size[name] for one in found)
        assert size > 150
        mean = np.mean([moments(one)[0][place] for one in found])
        assert abs(mean - means[place]) < 4 * math.sqrt(spreads[place] / size)
        assert np.mean([moments(one)[1][place] for one in found]) == pytest.approx(spreads[place], rel=0.35)
        assert all(one.r_hat[name] < 1.1 for one in found)
    logs = np.array([one.log_evidence for one in found])
    error = np.mean([one.log_evidence_error for one in found])
    assert 0.0 < error < 0.3
    assert abs(logs.mean() - evidence) < 4 * error / math.sqrt(3) + 0.01
    assert len(np.unique(found[0].values["outputscale"])) == 200  # no copies of a mode


def test_the_stated_error_of_the_evidence_is_its_scatter():
    found = [SMCSampler(16).sample(density(), np.random.default_rng(seed), evidence=True) for seed in range(40)]
    scatter = np.std([one.log_evidence for one in found], ddof=1)
    stated = math.sqrt(np.mean([one.log_evidence_error**2 for one in found]))
    # A standard deviation of 40 runs is known within 23 %, twice its standard error.
    assert 0.6 < stated / scatter < 1.5
    assert min(one.log_evidence_error for one in found) > 0.2 * scatter


def test_random_directions_have_the_moments_of_a_dense_grid():
    _, means, spreads = exact(density())
    sampler = SliceSampler(400, burn_in=20, directions="random", extensions=0)
    sample = sampler.sample(density(), np.random.default_rng(0))
    assert max(sample.r_hat.values()) < 1.05
    for place, name in enumerate(("outputscale", "noise_variance")):
        size = sample.effective_size[name]
        assert size > 100
        assert abs(moments(sample)[0][place] - means[place]) < 4 * math.sqrt(spreads[place] / size)
        assert moments(sample)[1][place] == pytest.approx(spreads[place], rel=0.35)


def test_directions_that_leave_the_bounds_are_cut_off():
    """A density that is flat between bounds stays flat: all of the square is visited alike."""
    from seqopt.models.sampling.parameters import Coordinate
    from seqopt.models.sampling.slice_sampler import sweep_of

    square = [Coordinate(name, 0.5, 0.0, 1.0, 1.0, False, lambda _: 0.0, lambda u: u) for name in "ab"]
    rng, point, seen = np.random.default_rng(0), np.array([0.5, 0.5]), []
    for _ in range(1500):
        sweep_of(
            lambda at: 0.0 if (at >= 0).all() and (at <= 1).all() else -math.inf, square, point, 0.0, rng, "random"
        )
        seen.append(point.copy())
    for column in np.array(seen)[::3].T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_without_data_particles_are_the_prior():
    flat = LogPosterior(TanimotoKernel(), COUNTS, TARGETS, np.full(8, 1e12))
    sample = SMCSampler(150).sample(flat, np.random.default_rng(1))
    for name, middle in (("outputscale", 0.0), ("noise_variance", -4.0)):
        assert stats.kstest(np.log(sample.values[name]), stats.norm(middle, 1.0).cdf).pvalue > 1e-3


@pytest.mark.slow
def test_the_match_decay_of_patterns_of_one_length_is_its_prior():
    """With patterns of one length only, a normalised kernel does not depend on the match decay."""
    kernel = SubsequenceKernel(2, order_weights=[1e-6, 1e6])
    kernel.raw_order_weights.requires_grad_(False)
    kernel.raw_gap_decay.requires_grad_(False)
    of = LogPosterior(kernel, Encoder().encode(STRINGS), TARGETS, np.zeros(8))
    (place,) = [place for place, one in enumerate(of.coordinates) if one.name == "match_decay"]
    sample = SMCSampler(40, extensions=0).sample(of, np.random.default_rng(0))
    expected = of.coordinates[place].quantiles((np.arange(2000) + 0.5) / 2000)
    assert stats.ks_2samp(sample.values["match_decay"], expected).pvalue > 1e-3


def test_particles_go_on_from_the_last_posterior():
    sampler, rng = SMCSampler(60), np.random.default_rng(0)
    first = sampler.sample(density(7), rng)
    assert np.array(first.ends).shape == (120, 3)
    second = sampler.sample(density(), rng, first.ends)
    assert second.evaluations < 0.5 * first.evaluations
    _, means, spreads = exact(density())
    for place, name in enumerate(("outputscale", "noise_variance")):
        size = second.effective_size[name]
        assert abs(moments(second)[0][place] - means[place]) < 4 * math.sqrt(spreads[place] / size)
    # Particles of something else begin anew, and so they do for a marginal likelihood.
    again = sampler.sample(density(), rng, first.ends, evidence=True)
    assert again.evaluations > second.evaluations
    assert math.isfinite(again.log_evidence)
    far = [[20.0 * np.sign(row[0]), -4.0, 50.0] if place else [0.0, -4.0, -1e6] for place, row in enumerate(first.ends)]
    assert sampler.sample(density(), rng, far).evaluations > second.evaluations
    assert sampler.sample(density(), rng, [row[:2] for row in first.ends]).evaluations > second.evaluations


def test_one_seed_gives_the_same_particles():
    one, two = (SMCSampler(20).sample(density(), np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.values["outputscale"], two.values["outputscale"])


def test_a_surrogate_keeps_how_its_chains_mixed(caplog):
    gp = FullyBayesianGP(NgramKernel(2), SMCSampler(8, extensions=0), draws=4)
    with caplog.at_level("WARNING", "seqopt"):
        gp.fit(STRINGS, TARGETS, rng=np.random.default_rng(0))
    (found,) = gp.diagnostics
    assert found.sampler == "SMCSampler(particles=8, populations=2, moves=1)"
    assert set(found.r_hat) == {"lengthscale", "outputscale", "noise_variance"}
    assert ("have not mixed" in caplog.text) == (max(found.r_hat.values()) > 1.05)
    restored = FullyBayesianGP(NgramKernel(2), SMCSampler(8, extensions=0), draws=4)
    state = gp.state_dict()
    import json

    restored.load_state_dict(json.loads(json.dumps(state, allow_nan=False)))
    assert restored.diagnostics[0].r_hat == found.r_hat
    assert restored.diagnostics[0].effective_size == found.effective_size
    assert math.isnan(restored.diagnostics[0].log_evidence)
    for one in (gp, restored):
        one.fit(STRINGS, TARGETS + 0.0, rng=np.random.default_rng(1))
    assert restored.hyperparameters == gp.hyperparameters


def test_chains_that_do_not_mix_are_warned_of_with_their_r_hat(monkeypatch, caplog):
    from seqopt.models import fully_bayesian

    monkeypatch.setattr(fully_bayesian, "GOOD_R_HAT", 0.5)
    gp = FullyBayesianGP(NgramKernel(2), SliceSampler(8, burn_in=0, extensions=0))
    with caplog.at_level("WARNING", "seqopt"):
        gp.fit(STRINGS, TARGETS, rng=np.random.default_rng(0))
    assert "draws of the parameters of NgramKernel have not mixed: split R-hat of lengthscale (" in caplog.text
    assert "SliceSampler" in caplog.text


def test_the_prior_of_a_grid_can_be_seen_and_changed():
    of = LogPosterior(SubsequenceKernel(2), Encoder().encode(STRINGS), TARGETS, np.zeros(8), 0.0)
    shown = GridSampler().probabilities(SubsequenceKernel(2))
    assert list(shown) == ["gap_decay", "match_decay", "outputscale", "noise_variance"]
    for name, found in shown.items():
        assert sum(found.values()) == pytest.approx(1.0), name
    gap = np.array(list(shown["gap_decay"]))
    np.testing.assert_allclose(
        list(shown["gap_decay"].values()), (weights := np.exp(-0.5 * ((gap - 0.5) / 0.5) ** 2)) / weights.sum()
    )
    scales = np.array(list(shown["outputscale"]))
    np.testing.assert_allclose(
        list(shown["outputscale"].values()), (weights := np.exp(-0.5 * np.log(scales) ** 2)) / weights.sum()
    )
    # Nearly all on one value: the posterior has it, whatever the data say, and the rest follows its ratio.
    certain = [1.0 if value == 0.2 else 1e-300 for value in gap]
    sampler = GridSampler(priors={"gap_decay": certain})
    sample = sampler.sample(of, np.random.default_rng(0), evidence=True)
    assert sample.weights[sample.values["gap_decay"] == 0.2].sum() == pytest.approx(sample.weights.sum(), rel=1e-12)
    assert sampler.probabilities(SubsequenceKernel(2))["gap_decay"][0.2] == pytest.approx(1.0)
    plain = GridSampler().sample(of, np.random.default_rng(0))
    here = plain.values["gap_decay"] == 0.2
    np.testing.assert_allclose(
        sample.weights[here] / sample.weights[here].sum(), plain.weights[here] / plain.weights[here].sum(), atol=1e-12
    )
    again = from_config(config_of(sampler))
    assert again.probabilities(SubsequenceKernel(2)) == sampler.probabilities(SubsequenceKernel(2))
    other = GridSampler({"lengthscale": [1.0, 2.0]}, priors={"lengthscale": [3, 1], "noise_variance": [1] * 8})
    assert other.probabilities(NgramKernel(2))["lengthscale"] == pytest.approx({1.0: 0.75, 2.0: 0.25})
    assert list(other.probabilities(NgramKernel(2))["noise_variance"].values()) == pytest.approx([0.125] * 8)


def test_what_is_out_of_range_is_refused():
    with pytest.raises(InputError, match="particles is 2; it must be an integer of at least 8"):
        SMCSampler(2)
    with pytest.raises(InputError, match="populations is 1"):
        SMCSampler(populations=1)
    with pytest.raises(InputError, match="share is 1"):
        SMCSampler(share=1)
    with pytest.raises(InputError, match="share is 'a'; expected a number between 0 and 1"):
        SMCSampler(share="a")
    with pytest.raises(InputError, match="directions is 'up'; expected one of coordinates, random"):
        SliceSampler(directions="up")
    with pytest.raises(InputError, match="the prior of gap_decay has 2 numbers, and its grid 8 values"):
        GridSampler(priors={"gap_decay": [1, 2]}).probabilities(SubsequenceKernel(2))
    with pytest.raises(InputError, match="the prior of decay is for no parameter of the grid: gap_decay"):
        GridSampler(priors={"decay": [1, 2]}).probabilities(SubsequenceKernel(2))
    with pytest.raises(InputError, match="the prior of gap_decay is"):
        GridSampler(priors={"gap_decay": [-1.0] * 8})
    with pytest.raises(ModelError, match="likelihood is 0 at all 50 draws"):
        SMCSampler().sample(density(targets=np.full(8, math.nan)), np.random.default_rng(0))
    assert isinstance(SMCSampler(), Sampler)
    assert repr(from_config(config_of(SMCSampler(9)))) == repr(SMCSampler(9))
