"""The mode of a posterior of parameters, and the kernel of sites in a mixture of kernels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import HammingKernel, NgramKernel, SitesKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, GridSampler, Levels, ModeSampler, StringGP
from seqopt.models.fitting import PointEstimate, TrainingData, parameters_of
from seqopt.models.registry import mixture
from seqopt.models.sampling import LogPosterior, mode
from seqopt.models.sampling import grid as grid_module
from seqopt.models.stacking import cross_fitted_densities
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.utils.config import from_config

RNG = np.random.default_rng(0)
PARENT = "MKTAYIAKQRQISFVKSHFS"
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def variants(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        symbols = list(PARENT)
        for position in rng.integers(len(PARENT), size=2):
            symbols[position] = str(rng.choice(list(AMINO_ACIDS)))
        found["".join(symbols)] = None
    return list(found)


VARIANTS = variants(160)
POOL = CandidateSet(VARIANTS, kind="protein")


def scores(strings: list[str]) -> NDArray[np.float64]:
    """Substitutions at three positions cost much, others nothing."""
    cost = {3: 2.0, 9: 1.5, 14: 3.0}
    return np.array([-sum(c for p, c in cost.items() if string[p] != PARENT[p]) for string in strings])


def density(mean_std: float, kernel: SitesKernel | HammingKernel | None = None) -> LogPosterior:
    encoded = Encoder().encode(VARIANTS[:60])
    values = scores(VARIANTS[:60]) + 0.1 * RNG.standard_normal(60)
    standardized = (values - values.mean()) / values.std(ddof=1)
    return LogPosterior(HammingKernel() if kernel is None else kernel, encoded, standardized, np.zeros(60), mean_std)


def test_it_finds_what_a_surrogate_of_point_estimates_finds() -> None:
    values = scores(VARIANTS[:60]) + 0.1 * RNG.standard_normal(60)
    gp = StringGP(HammingKernel(), restarts=1)
    gp.fit(VARIANTS[:60], values, rng=np.random.default_rng(0))
    standardized = (values - values.mean()) / values.std(ddof=1)
    of = LogPosterior(HammingKernel(), Encoder().encode(VARIANTS[:60]), standardized, np.zeros(60))
    found = ModeSampler().sample(of, np.random.default_rng(0))
    for name in ("lengthscale", "outputscale", "noise_variance"):
        assert found.values[name].tolist() == pytest.approx([gp.hyperparameters[name]], rel=0.02)
    assert found.weights.tolist() == [1.0]
    assert np.isnan(found.log_evidence)


def test_with_a_mean_of_0_no_parameters_near_it_are_more_probable() -> None:
    of = density(0.0)
    sample = ModeSampler().sample(of, np.random.default_rng(0))
    best = [float(values[0]) for values in sample.values.values()]
    prior = of.kernel.lengthscale_prior

    def log_density(lengthscale: float, scale: float, noise: float) -> float:
        priors = -0.5 * np.log(scale) ** 2 - 0.5 * (np.log(noise) + 4.0) ** 2
        own = float(prior.log_prob(prior.loc.new_tensor(lengthscale)))
        return float(of.log_likelihood([lengthscale], scale, noise) + priors + own)

    for place in range(3):
        for factor in (0.8, 1.25):
            moved = [value * factor if at == place else value for at, value in enumerate(best)]
            assert log_density(*moved) < log_density(*best) + 1e-3


def test_parameters_are_learned_from_as_many_strings_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    build = PointEstimate.build

    def counted(self: PointEstimate, data: TrainingData) -> object:
        sizes.append(len(data.targets))
        return build(self, data)

    monkeypatch.setattr(PointEstimate, "build", counted)
    of = density(1.0, SitesKernel(len(PARENT), None))
    ModeSampler().sample(of, np.random.default_rng(0))
    assert sizes == [60]
    monkeypatch.setattr(mode, "GRAM_BYTES", 25**2 * 16 * (len(PARENT)))
    ModeSampler().sample(of, np.random.default_rng(0))
    assert sizes[1:] == [60, 25]
    ModeSampler(fit_size=10).sample(of, np.random.default_rng(0))
    assert sizes[3:] == [60, 10]


@pytest.mark.parametrize("arguments", [{"restarts": 0}, {"restarts": 1.5}, {"fit_size": 1}, {"restarts": True}])
def test_arguments_out_of_range_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be an integer of at least"):
        ModeSampler(**arguments)


def test_each_value_is_predicted_at_parameters_that_were_found_without_it() -> None:
    of = density(1.0, SitesKernel(len(PARENT), None))
    sampler, rng = ModeSampler(), np.random.default_rng(0)
    point = {name: float(values[0]) for name, values in sampler.sample(of, rng).values.items()}
    folds = sampler.without_folds(of, point, np.random.default_rng(1))
    assert len(folds) == mode.FOLDS
    assert sorted(np.concatenate([indices for indices, _ in folds]).tolist()) == list(range(60))
    found = cross_fitted_densities(of, folds)
    # Other values of a fold, of whatever size, do not move its parameters, and the others' do.
    first, (indices, without) = folds[0][0], folds[1]
    values = of.targets.copy()
    values[first] += 3.0
    changed = LogPosterior(SitesKernel(len(PARENT), None), of.encoded, values, np.zeros(60), 1.0)
    again = sampler.without_folds(changed, point, np.random.default_rng(1))
    assert again[0][0].tolist() == first.tolist()
    assert again[0][1] == folds[0][1]
    assert again[1][1] != without
    # The density of a value from the others, by the formula of a conditional normal distribution.
    own = [without[name] for name in of.parameters.names]
    covariance = without["outputscale"] * of.gram(own) + 1.0 + np.eye(60) * without["noise_variance"]
    for place in indices.tolist():
        rest = np.setdiff1d(np.arange(60), [place])
        weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, place])
        variance = covariance[place, place] - weights @ covariance[rest, place]
        expected = stats.norm.logpdf(of.targets[place], weights @ of.targets[rest], np.sqrt(variance))
        assert found[place] == pytest.approx(expected, rel=1e-6)


def test_modes_without_a_fold_are_looked_for_from_the_mode_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    of = density(0.0, SitesKernel(len(PARENT), None))
    point = {name: 1.5 + 0.1 * place for place, name in enumerate(of.parameters.names)}
    point |= {"outputscale": 0.7, "noise_variance": 0.05}
    starts = []

    def learn(self: PointEstimate, model: object, *arguments: object, **options: object) -> None:
        starts.append((self.start, parameters_of(model)))  # type: ignore[arg-type]

    monkeypatch.setattr(PointEstimate, "learn", learn)
    found = ModeSampler().without_folds(of, point, np.random.default_rng(0))
    assert sorted(np.concatenate([fold for fold, _ in found]).tolist()) == list(range(60))
    for _, own in found:
        assert own == pytest.approx(point, rel=1e-6)
    assert len(starts) == len(found) == 5
    # What adapts to the strings is put back to where the estimate says that it starts.
    for start, here in starts:
        assert start == here


def test_strings_that_tell_nothing_are_doubted_as_without_the_kernel_of_sites() -> None:
    doubts = []
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal(60)
        gp = mixture(POOL)
        without = FullyBayesianGP(gp.kernels[:5], gp.samplers[:5], weights="stacking", null=0.5, mean_std=1.0)
        for one in (gp, without):
            one.fit(VARIANTS[:60], values, rng=np.random.default_rng(seed))
        doubts.append((gp.doubt, without.doubt))
    with_sites, without_sites = np.mean(doubts, axis=0)
    assert with_sites > 0.8 * without_sites > 0.2


def test_what_is_frozen_stays_while_others_are_learned() -> None:
    kernel = SitesKernel(len(PARENT), None)
    kernel.raw_lengthscale.requires_grad_(False)
    chosen = SitesKernel(len(PARENT), None, lengthscale=float(kernel.lengthscale.max()))
    chosen.raw_lengthscale.requires_grad_(False)
    scales = []
    for one in (kernel, chosen):
        gp = StringGP(one, restarts=1)
        gp.fit(VARIANTS[:60], scores(VARIANTS[:60]), rng=np.random.default_rng(0))
        scales.append(gp.hyperparameters["outputscale"])
        assert gp.hyperparameters["lengthscale"] == pytest.approx(3.0 * len(PARENT))
    assert scales[0] == pytest.approx(scales[1], rel=0.02)


def test_it_has_no_evidence_and_no_levels() -> None:
    with pytest.raises(InputError, match="a mode has no evidence"):
        ModeSampler().sample(density(1.0), np.random.default_rng(0), evidence=True)
    with pytest.raises(InputError, match="choose weights="):
        FullyBayesianGP([HammingKernel(), NgramKernel()], [ModeSampler(), GridSampler()])
    with pytest.raises(InputError, match="noise of levels"):
        FullyBayesianGP(HammingKernel(), ModeSampler(), levels=Levels("assay", ("cheap", "dear"), "dear"))
    # A single kernel needs no weight.
    gp = FullyBayesianGP(HammingKernel(), ModeSampler())
    gp.fit(VARIANTS[:30], scores(VARIANTS[:30]), rng=np.random.default_rng(0))
    assert gp.diagnostics[0].weight == 1.0


def test_a_mixture_of_kernels_finds_the_sites_that_matter() -> None:
    gp = mixture(POOL)
    gp.bind(POOL)
    train, test = VARIANTS[:100], VARIANTS[100:]
    gp.fit(train, scores(train), rng=np.random.default_rng(0))
    weights = {found.kernel: found.weight for found in gp.diagnostics}
    assert max(weights, key=lambda name: weights[name]) == "SitesKernel"
    drawn = [gp.state_dict()["parameters"][f"kernels[5].lengthscale[{place}]"] for place in range(len(PARENT))]
    scales = [next(value for value in values if value is not None) for values in drawn]
    assert {3, 9, 14} == set(np.argsort(scales)[:3].tolist())
    # Shown is their mean: nobody reads twenty of them.
    assert gp.hyperparameters["kernels[5].lengthscale"] == pytest.approx(np.mean(scales))
    assert len(gp.hyperparameters) < 15
    without = FullyBayesianGP(gp.kernels[:5], gp.samplers[:5], weights="stacking", mean_std=1.0)
    without.fit(train, scores(train), rng=np.random.default_rng(0))
    errors = [np.abs(one.predict(test)[0] - scores(test)).mean() for one in (gp, without)]
    assert errors[0] < 0.6 * errors[1]
    again = from_config(json.loads(json.dumps(gp.config())))
    assert again.config() == gp.config()
    again.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    again.fit(train, scores(train), rng=np.random.default_rng(0))
    assert again.predict(test)[0] == pytest.approx(gp.predict(test)[0])


def test_limits_are_learned_from_without_what_has_no_evidence(caplog: pytest.LogCaptureFixture) -> None:
    gp = mixture(POOL)
    gp.bind(POOL)
    values, sides = scores(VARIANTS[:60]), np.zeros(60, dtype=np.int64)
    sides[values <= -3.0] = -1
    for _ in range(2):
        gp.fit(VARIANTS[:60], values, rng=np.random.default_rng(0), censored=sides)
    assert "SitesKernel" not in {found.kernel for found in gp.diagnostics}
    (said,) = [message for message in caplog.messages if "limit" in message]
    assert "(sites, each by its weight)" in said
    both = FullyBayesianGP([HammingKernel(), SitesKernel(len(PARENT))], ModeSampler(), weights="stacking")
    both.fit(VARIANTS[:60], values, rng=np.random.default_rng(0), censored=sides)
    assert [found.weight for found in both.diagnostics] == [0.5, 0.5]
    alone = FullyBayesianGP(SitesKernel(len(PARENT)), ModeSampler())
    alone.fit(VARIANTS[:60], values, rng=np.random.default_rng(0), censored=sides)
    assert np.isfinite(alone.predict(VARIANTS[60:])[0]).all()


def test_strings_of_another_length_leave_the_kernel_of_sites_out(caplog: pytest.LogCaptureFixture) -> None:
    gp = mixture(StringSpace(AMINO_ACIDS, 20, kind="protein"))
    shorter = [string[:-3] for string in VARIANTS[:40]]
    gp.fit(shorter, scores(VARIANTS[:40]), rng=np.random.default_rng(0))
    names = {found.kernel for found in gp.diagnostics}
    assert "HammingKernel" in names
    assert "SitesKernel" not in names
    assert "the measured strings have 17 symbols" in caplog.text


@pytest.mark.parametrize("known", [0.0, 0.3])
def test_a_grid_of_decays_is_the_same_one_matrix_at_a_time(monkeypatch: pytest.MonkeyPatch, known: float) -> None:
    """With a mean that is integrated out, Gram matrices of a gap decay share a dynamic program, too."""
    encoded = Encoder().encode(VARIANTS[:20])
    found = []
    for shared in (True, False):
        if not shared:
            monkeypatch.setattr(grid_module, "EncodedStrings", str)
        of = LogPosterior(SubsequenceKernel(3), encoded, np.linspace(-1.5, 1.5, 20), np.full(20, known))
        found.append(GridSampler().sample(of, np.random.default_rng(0), evidence=True))
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, rel=1e-9)
    assert found[0].weights == pytest.approx(found[1].weights, rel=1e-6, abs=1e-12)
