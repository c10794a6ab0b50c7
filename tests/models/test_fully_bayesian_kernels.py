"""Averaging over the parameters of any kernel, and over kernels."""

import json

import gpytorch
import numpy as np
import pytest
import torch
from scipy import special, stats

from seqopt import CandidateSet
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import (
    HammingKernel,
    HelixKernel,
    LetterHammingKernel,
    LetterNgramKernel,
    NgramKernel,
    OneHotKernel,
    SubsequenceKernel,
)
from seqopt.kernels.composite import OnField, Sum
from seqopt.models import FullyBayesianGP, FullyBayesianStringGP, GridSampler, SliceSampler, fully_bayesian
from seqopt.models.covariance import KernelEvaluator, StackedEvaluator
from seqopt.spaces import CodonSpace

STRINGS = ["GATTACAA", "GATTTACA", "TTACATGC", "CATCATCA", "AAAATAAA", "GGCGCGCC", "ATGCATGC", "CCATGGTA"]
VALUES = np.array([2.0, 1.0, 1.5, 0.3, -1.0, 0.2, 0.5, 0.4])
NEW = ["GATTACAT", "CCCCCCCC", "ATATATAT"]
SHORT = SliceSampler(draws=10, burn_in=5, extensions=0, proposals=20)


def fitted(*arguments, seed=3, **options):
    gp = FullyBayesianGP(*arguments, **options)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(seed))
    return gp


def mixture(gp, kernels):
    """Predictions of the mixture, by textbook formulas from the parameters of the draws."""
    unit = VALUES.std(ddof=1)
    targets = (VALUES - VALUES.mean()) / unit
    state = gp.state_dict()["parameters"]
    means, variances = [], []
    for draw, kernel in enumerate(kernels):
        scale, noise, constant = (state[name][draw] for name in ("outputscale", "noise_variance", "mean"))
        tokens = Encoder().encode([*STRINGS, *NEW])
        gram = scale * kernel.double().cross(tokens)
        known, cross = gram[:8, :8] + noise * np.eye(8), gram[8:, :8]
        means.append(constant + cross @ np.linalg.solve(known, targets - constant))
        variances.append(np.diag(gram)[8:] - np.diag(cross @ np.linalg.solve(known, cross.T)))
    mean = np.mean(means, axis=0)
    return VALUES.mean() + unit * mean, unit * np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


def test_predictions_are_those_of_the_mixture_of_the_draws_of_slice_sampling():
    gp = fitted(NgramKernel(2), SHORT, draws=5)
    lengthscales = gp.state_dict()["parameters"]["lengthscale"]
    assert len(set(lengthscales)) > 1
    expected = mixture(gp, [NgramKernel(2, value) for value in lengthscales])
    for found, wanted in zip(gp.predict(NEW), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    moments = gp.pool_posterior(CandidateSet(NEW)).moments
    np.testing.assert_allclose(gp.untransform(moments.mean.mean(0), 0.0)[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [HammingKernel(), LetterNgramKernel(2), LetterHammingKernel(), HelixKernel()],
    ids=lambda one: repr(one)[:9],
)
def test_draws_that_differ_in_a_lengthscale_share_distances_and_nothing_else(kernel, monkeypatch):
    space = CodonSpace("TIKENIFG")
    rng = np.random.default_rng(0)
    genes, others = space.sample(12, rng), space.sample(5, rng)
    gp = FullyBayesianGP(kernel, GridSampler(), draws=6, encoder=space.encoder, mean_std=0.0)
    values = rng.standard_normal(12)
    gp.fit(genes, values, rng=np.random.default_rng(1))
    assert len(set(gp.state_dict()["parameters"]["lengthscale"])) > 1
    together = gp.predict(others)
    monkeypatch.setattr(fully_bayesian, "OF_DISTANCES", ())
    apart = FullyBayesianGP(kernel, GridSampler(), draws=6, encoder=space.encoder, mean_std=0.0)
    apart.fit(genes, values, rng=np.random.default_rng(1))
    assert type(apart.evaluator(8)) is StackedEvaluator
    for found, wanted in zip(together, apart.predict(others), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_predictions_over_kernels_are_those_of_the_mixture_of_all_draws():
    gp = fitted([NgramKernel(2), SubsequenceKernel(3), OneHotKernel()], [SHORT, GridSampler(), GridSampler()], draws=12)
    state = json.loads(json.dumps(gp.state_dict()))
    named = state["parameters"]
    built = []
    for draw, number in enumerate(state["kernels"]):
        ngrams, ssk = named.get("kernels[0].lengthscale"), named.get("kernels[1].gap_decay")
        assert (ngrams is not None and ngrams[draw] is not None) == (number == 0)
        assert (ssk is not None and ssk[draw] is not None) == (number == 1)
        if number == 0:
            built.append(NgramKernel(2, ngrams[draw]))
        elif number == 1:
            match = named["kernels[1].match_decay"][draw]
            built.append(SubsequenceKernel(3, match, ssk[draw], match_decay_bounds=(1e-9, 1.0)))
        else:
            built.append(OneHotKernel())
    assert len(set(state["kernels"])) == 3
    expected = mixture(gp, built)
    for found, wanted in zip(gp.predict(NEW), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    shares = [gp.hyperparameters[f"kernels[{number}].weight"] for number in range(3)]
    # Systematic resampling gives each kernel its share, to one draw either way.
    np.testing.assert_allclose(shares, [found.weight for found in gp.diagnostics], atol=2 / 12)
    searched = gp.conditioned(["GATTACAT"]).at(NEW)
    assert bool((searched.moments.conditional_variance[:, 0] < searched.moments.variance[:, 0]).all())


def test_weights_of_kernels_are_their_evidences_times_the_prior():
    """On a grid, with the mean integrated out, against densities of normal distributions."""
    scales, noises = [0.5, 2.0], [0.01, 0.3]
    targets = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    grid = GridSampler(outputscales=scales, noise_variances=noises)
    gp = fitted([OneHotKernel(), frozen()], grid, prior=[3.0, 1.0], mean_std=0.7, draws=400)
    evidences = []
    for kernel in (OneHotKernel(), NgramKernel(2, 3.0)):
        gram = kernel.double().cross(Encoder().encode(STRINGS))
        logs, priors = [], []
        for scale in scales:
            for noise in noises:
                normal = stats.multivariate_normal(np.zeros(8), scale * gram + noise * np.eye(8) + 0.49)
                priors.append(stats.norm.logpdf([np.log(scale), np.log(noise) + 4]).sum())
                logs.append(normal.logpdf(targets) + priors[-1])
        evidences.append(special.logsumexp(logs) - special.logsumexp(priors))
    np.testing.assert_allclose([found.log_evidence for found in gp.diagnostics], evidences, rtol=1e-6)
    weights = special.softmax(np.array(evidences) + np.log([0.75, 0.25]))
    np.testing.assert_allclose([found.weight for found in gp.diagnostics], weights, rtol=1e-5)
    assert np.mean(gp.state_dict()["kernels"]) == pytest.approx(weights[1], abs=1 / 400)


def frozen():
    kernel = NgramKernel(2, 3.0)
    kernel.raw_lengthscale.requires_grad_(False)
    return kernel


def test_chains_and_a_grid_agree_on_the_weights_of_kernels():
    scales, noises = np.exp(np.linspace(-4.5, 4.5, 25)), np.exp(np.linspace(-9.2, 1.5, 36))
    kernels = [OneHotKernel(), frozen()]
    by_grid = fitted(kernels, GridSampler(outputscales=scales, noise_variances=noises)).diagnostics
    by_chains = fitted(kernels, SliceSampler(draws=150, extensions=1)).diagnostics
    for one, other in zip(by_grid, by_chains, strict=True):
        assert other.log_evidence == pytest.approx(one.log_evidence, abs=4 * other.log_evidence_error + 0.01)
        assert max(other.r_hat.values()) < 1.05
        assert min(other.effective_size.values()) > 60
        assert (one.r_hat, one.effective_size) == ({}, {})


def test_drawn_means_follow_their_distribution():
    gp = fitted(OneHotKernel(), GridSampler(outputscales=[1.5], noise_variances=[0.1]), draws=4000, mean_std=2.0)
    covariance = 1.5 * OneHotKernel().cross(Encoder().encode(STRINGS)) + 0.1 * np.eye(8)
    targets = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    precision = np.linalg.inv(covariance)
    variance = 1.0 / (0.25 + precision.sum())
    drawn = np.array(gp.state_dict()["parameters"]["mean"])
    assert drawn.mean() == pytest.approx(variance * (precision @ targets).sum(), abs=4 * np.sqrt(variance / 4000))
    assert drawn.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 4000))


def test_a_restored_surrogate_continues_as_the_original():
    options = {"kernel": [NgramKernel(2), OneHotKernel()], "sampler": SHORT, "draws": 6}
    gp = fitted(**options)
    restored = FullyBayesianGP(**options)
    restored.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    assert restored.hyperparameters == gp.hyperparameters
    for surrogate in (gp, restored):
        surrogate.fit([*STRINGS, "GGGGAAAA"], [*VALUES, 0.1], rng=np.random.default_rng(5))
    assert gp.state_dict() == restored.state_dict()
    np.testing.assert_array_equal(gp.predict(NEW)[0], restored.predict(NEW)[0])


def test_the_named_surrogate_is_the_grid_on_the_sub_sequence_kernel():
    named, spelt = FullyBayesianStringGP(), FullyBayesianGP(SubsequenceKernel(), GridSampler(), mean_std=0.0)
    for gp in (named, spelt):
        gp.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    assert named.state_dict() == spelt.state_dict()
    np.testing.assert_array_equal(named.predict(NEW)[1], spelt.predict(NEW)[1])


def test_kernels_on_fields_of_queries():
    encoder = FieldEncoder({"tokens": Encoder(), "dose": ContextEncoder("dose", default=1.0)})
    kernel = Sum(OnField(OneHotKernel(), "tokens"), OnField(gpytorch.kernels.RBFKernel(), "dose"))
    gp = fitted(kernel, SHORT, encoder=encoder, draws=3)
    assert list(gp.hyperparameters) == ["kernels.1.kernel.lengthscale", "outputscale", "noise_variance", "mean"]
    mean, std = gp.predict([*NEW, STRINGS[0]])
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_chains_that_have_not_converged_are_named(caplog, monkeypatch):
    monkeypatch.setattr(fully_bayesian, "GOOD_R_HAT", 0.5)
    fitted(OneHotKernel(), SHORT)
    assert "draws of the parameters of OneHotKernel have not mixed: split R-hat of outputscale (" in caplog.text
    assert "noise_variance (" in caplog.text


def test_values_that_differ_by_rounding_only_are_equal(caplog):
    gp = FullyBayesianStringGP()
    gp.fit(STRINGS[:3], [0.3, 0.1 + 0.2, 0.3], rng=np.random.default_rng(0))
    assert "cannot tell strings apart" in caplog.text
    assert gp.units[1] == 1.0


def test_a_stacked_evaluator_is_its_members_one_after_the_other():
    strings, others = Encoder().encode(STRINGS), Encoder().encode(NEW)
    batch = SubsequenceKernel(3, torch.tensor([0.5, 0.9]), 0.4, batch_shape=torch.Size([2])).double()
    rbf = gpytorch.kernels.RBFKernel().double()
    members = [KernelEvaluator(kernel, 8) for kernel in (NgramKernel(2).double(), rbf, batch)]
    index = [2, 0, 3, 1, 0]
    stacked = StackedEvaluator(members, index)

    def all_of(method):
        found = [np.asarray(method(member)) for member in members]
        return np.concatenate([found[0][None], found[1][None], found[2]])[index]

    own, other = stacked.self_similarity(strings), stacked.self_similarity(others)
    assert own.shape[-1] == 8
    for pair in ((own, other), (None, None)):
        found = stacked.cross(strings, others, *pair)
        np.testing.assert_allclose(found, all_of(lambda member: member.cross(strings, others)), rtol=1e-12)
    expected = all_of(lambda member: member.variance(strings, member.self_similarity(strings)))
    np.testing.assert_allclose(stacked.variance(strings, own), expected)
    # Some strings, and strings joined, as posteriors ask for them.
    part = stacked.cross(strings.take([3, 1]), None, own[..., [3, 1]])
    np.testing.assert_allclose(part, stacked.cross(strings, None)[:, [3, 1]][:, :, [3, 1]], rtol=1e-12)
    both = np.concatenate([own, other], axis=-1)
    joined = stacked.cross(strings.joined(others), None, both)
    np.testing.assert_allclose(joined[:, :8, 8:], found, rtol=1e-12)
    assert stacked.costly
    assert stacked.kernel is members[0].kernel
    with pytest.raises(InputError, match="but there are 4"):
        StackedEvaluator(members, [4])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": []}, "no kernel"),
        ({"kernel": ["ssk"]}, "is not a kernel"),
        ({"kernel": NgramKernel(batch_shape=torch.Size([2]))}, "batch shape"),
        ({"sampler": 3}, "is not a sampler"),
        ({"sampler": [SHORT, SHORT]}, "2 samplers for 1 kernels"),
        ({"prior": [1.0, 2.0]}, "2 prior probabilities for 1 kernels"),
        ({"prior": [0.0]}, "expected positive numbers"),
        ({"mean_std": -1.0}, "mean_std is -1"),
        ({"draws": 0}, "draws is 0"),
        ({"refit_growth": -1}, "refit_growth is -1"),
        ({"tokenizer": "smiles", "encoder": Encoder()}, "not both"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        FullyBayesianGP(**options)
    with pytest.raises(InputError, match="not a SubsequenceKernel"):
        FullyBayesianStringGP(NgramKernel())


def test_the_same_strings_are_encoded_once_and_others_anew():
    space = CodonSpace("TIKENIFG")
    rng = np.random.default_rng(0)
    genes = space.sample(8, rng)
    gp = FullyBayesianGP(NgramKernel(2), GridSampler(), draws=4, encoder=space.encoder)
    gp.fit(genes, VALUES, rng=np.random.default_rng(1))
    first = gp._state.encoded
    gp.fit(list(genes), VALUES**3, rng=np.random.default_rng(1))
    assert gp._state.encoded is first
    fresh = FullyBayesianGP(NgramKernel(2), GridSampler(), draws=4, encoder=space.encoder)
    fresh.fit(genes, VALUES**3, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(gp.predict(genes[:3])[0], fresh.predict(genes[:3])[0])
    for strings in (genes[::-1], genes[:7]):
        gp.fit(strings, VALUES[: len(strings)], rng=np.random.default_rng(1))
        assert gp._state.encoded is not first
        assert len(gp._state.encoded) == len(strings)
    gp.encoder = Encoder()
    gp.fit(genes[:7], VALUES[:7], rng=np.random.default_rng(1))
    assert gp._state.encoded.width == 24  # bases
