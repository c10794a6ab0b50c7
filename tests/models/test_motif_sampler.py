"""The posterior of motifs: all of them enumerated by hand, what stands for many, and searches that find them."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy import special, stats

from seqopt import Optimizer
from seqopt.encoding import Alphabet, Encoder, FeatureEncoder, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import MotifKernel, NgramKernel, OnField, SubsequenceKernel, Sum
from seqopt.models import (
    Features,
    FullyBayesianGP,
    GridSampler,
    Levels,
    ModeSampler,
    MotifSampler,
    SliceSampler,
    SurrogatePlan,
)
from seqopt.models.registry import mixture, resolve_surrogate
from seqopt.models.sampling import LogPosterior
from seqopt.models.sampling import motif as module
from seqopt.models.sampling.density import NOISE_PRIOR, SCALE_PRIOR
from seqopt.models.stacking import stacking_weights
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, StringSpace
from seqopt.utils.config import from_config
from seqopt.utils.parameter_names import described_parameter

RNG = np.random.default_rng(0)
ENCODER = Encoder(alphabet=Alphabet("AB"))
SHORT = ["".join(RNG.choice(list("AB"), RNG.integers(1, 8))) for _ in range(9)]
VALUES = RNG.standard_normal(9)
KNOWN = 0.1 * RNG.random(9)


def density(strings, values, known=None, mean_std=0.0, kernel=None, encoder=ENCODER, **options):
    kernel = MotifKernel(3, 4) if kernel is None else kernel
    kernel.read_by(encoder.alphabet)
    known = np.zeros(len(strings)) if known is None else known
    return LogPosterior(kernel, encoder.encode(strings), np.asarray(values, float), known, mean_std, **options)


def all_motifs(order, width, symbols):
    """Every motif, and the logarithm of its prior probability: first the number of symbols, then the rest."""
    for size in range(1, order + 1):
        distances = [(0, *rest) for rest in itertools.combinations(range(1, width), size - 1)]
        for places in distances:
            for chosen in itertools.product(symbols, repeat=size):
                text = ["?"] * (places[-1] + 1)
                for place, symbol in zip(places, chosen, strict=True):
                    text[place] = symbol
                yield "".join(text), -math.log(order * len(distances)) - size * math.log(len(symbols))


def occurrences(text, motif, overlapping):
    pattern = motif.replace("?", ".")
    return len(re.findall(f"(?={pattern})" if overlapping else pattern, text))


def points():
    """All pairs of output scales and noise variances, with the logarithms of their prior probabilities."""
    scales, noises = (
        special.log_softmax(-0.5 * ((np.log(grid) - mean) / std) ** 2)
        for grid, (mean, std) in ((module.OUTPUT_SCALES, SCALE_PRIOR), (module.NOISE_VARIANCES, NOISE_PRIOR))
    )
    for scale, own in zip(module.OUTPUT_SCALES, scales, strict=True):
        for noise, other in zip(module.NOISE_VARIANCES, noises, strict=True):
            yield scale, noise, own + other


def enumerated(known, mean_std, keep):
    """Log prior of all points, and the covariance of ``keep`` there."""
    for motif, prior in all_motifs(3, 4, "AB"):
        for overlapping in (True, False):
            found = np.array([occurrences(text, motif, overlapping) for text in SHORT], float)[keep]
            for scale, noise, own in points():
                covariance = scale * (1.0 + np.outer(found, found)) + mean_std**2 + np.diag(noise + known[keep])
                yield prior - math.log(2.0) + own, covariance


@pytest.mark.parametrize(("known", "mean_std"), [(np.zeros(9), 0.0), (KNOWN, 0.0), (KNOWN, 1.5), (np.zeros(9), 1.0)])
def test_evidence_and_predictions_are_those_of_all_motifs_written_out(known, mean_std):
    sample = MotifSampler().sample(density(SHORT, VALUES, known, mean_std), np.random.default_rng(0), evidence=True)
    everything = np.arange(9)
    logs = [
        p + stats.multivariate_normal.logpdf(VALUES, np.zeros(9), c) for p, c in enumerated(known, mean_std, everything)
    ]
    assert sample.log_evidence == pytest.approx(special.logsumexp(logs), abs=1e-9)
    for left_out in (0, 4, 8):
        rest = np.delete(everything, left_out)
        order = np.append(rest, left_out)
        weights, densities = [], []
        for prior, covariance in enumerated(known, mean_std, order):
            inner, cross = covariance[:8, :8], covariance[:8, 8]
            solved = np.linalg.solve(inner, cross)
            weights.append(prior + stats.multivariate_normal.logpdf(VALUES[rest], np.zeros(8), inner))
            std = math.sqrt(covariance[8, 8] - solved @ cross)
            densities.append(stats.norm.logpdf(VALUES[left_out], solved @ VALUES[rest], std))
        expected = special.logsumexp(np.array(weights) + densities) - special.logsumexp(weights)
        assert sample.predictive[left_out] == pytest.approx(expected, abs=1e-9)


def test_motifs_that_no_string_has_count_by_their_number():
    """A third letter, which no string has, makes most motifs of such."""
    encoder = Encoder(alphabet=Alphabet("ABC"))
    sample = MotifSampler().sample(density(SHORT[:4], VALUES[:4], encoder=encoder), RNG, evidence=True)
    logs = []
    for motif, prior in all_motifs(3, 4, "ABC"):
        for overlapping in (True, False):
            found = np.array([occurrences(text, motif, overlapping) for text in SHORT[:4]], float)
            for scale, noise, own in points():
                covariance = scale * (1.0 + np.outer(found, found)) + noise * np.eye(4)
                logs.append(
                    prior - math.log(2.0) + own + stats.multivariate_normal.logpdf(VALUES[:4], None, covariance)
                )
    assert sample.log_evidence == pytest.approx(special.logsumexp(logs), abs=1e-9)


def test_of_motifs_that_no_string_has_one_is_drawn():
    encoder = Encoder(alphabet=Alphabet("AB"))
    kernel = MotifKernel(2, 2)
    kernel.read_by(encoder.alphabet)
    encoded = encoder.encode(["AAB"])
    drawn = {tuple(module._unseen(kernel, encoded, 2, np.random.default_rng(seed))[0].tolist()) for seed in range(40)}
    assert drawn == {(2, 1), (2, 2)}


def test_those_that_are_kept_stand_for_all():
    places, more = module._thinned(np.linspace(0.0, 1.0, 1_000), 60, 40, np.random.default_rng(0))
    assert len(set(places.tolist())) == 100
    assert set(range(940, 1_000)) <= set(places.tolist())
    assert special.logsumexp(more) == pytest.approx(math.log(1_000))


def test_kernels_are_weighed_by_what_all_their_motifs_predict():
    kernels = [MotifKernel(1, 1), MotifKernel(3, 4)]
    gp = FullyBayesianGP(kernels, weights="stacking", encoder=ENCODER, mean_std=0.5)
    gp.fit(SHORT, VALUES, rng=np.random.default_rng(0))
    standardized = (VALUES - VALUES.mean()) / VALUES.std(ddof=1)
    samples = [
        MotifSampler().sample(density(SHORT, standardized, mean_std=0.5, kernel=kernel), RNG) for kernel in kernels
    ]
    weights = stacking_weights(np.stack([sample.predictive for sample in samples]), np.array([0.5, 0.5]))
    assert [one.weight for one in gp.diagnostics] == pytest.approx(weights.tolist(), abs=1e-9)


def test_draws_have_the_posterior_of_the_motifs():
    of = density(SHORT, VALUES)
    logs: dict[tuple[str, bool], list[float]] = {}
    places = iter(enumerated(np.zeros(9), 0.0, np.arange(9)))
    for motif, _ in all_motifs(3, 4, "AB"):
        for overlapping in (True, False):
            own = [next(places) for _ in points()]
            logs[motif, overlapping] = [
                prior + stats.multivariate_normal.logpdf(VALUES, np.zeros(9), covariance) for prior, covariance in own
            ]
    total = special.logsumexp(list(itertools.chain(*logs.values())))
    # Motifs with the same occurrences stand for each other, so what is compared is how often AB and its like occur.
    probable = {key: math.exp(special.logsumexp(own) - total) for key, own in logs.items()}
    rng = np.random.default_rng(1)
    share = np.zeros(9)
    rounds = 60
    for _ in range(rounds):
        values = MotifSampler().sample(of, rng).values
        for place in range(module.DRAWS):
            symbols = [int(values[f"motif[{column}]"][place]) for column in range(4)]
            motif = "".join("?AB"[number] for number in symbols).rstrip("?")
            share += [occurrences(text, motif, bool(values["overlapping"][place])) for text in SHORT]
    expected = sum(p * np.array([occurrences(text, *key) for text in SHORT]) for key, p in probable.items())
    np.testing.assert_allclose(share / (rounds * module.DRAWS), expected, atol=0.05)


def test_a_part_that_stands_for_the_least_probable_changes_little(monkeypatch):
    rng = np.random.default_rng(3)
    encoder = Encoder(alphabet=Alphabet("ABCD"))
    strings = ["".join(rng.choice(list("ABCD"), 25)) for _ in range(40)]
    values = np.array([occurrences(text, "A?C", True) for text in strings]) + 0.3 * rng.standard_normal(40)
    values = (values - values.mean()) / values.std()
    of = density(strings, values, kernel=MotifKernel(), encoder=encoder)
    whole = MotifSampler().sample(of, np.random.default_rng(0), evidence=True)
    monkeypatch.setattr(module, "KEPT", 60)
    monkeypatch.setattr(module, "REST", 40)
    part = [MotifSampler().sample(of, np.random.default_rng(seed), evidence=True) for seed in range(8)]
    assert np.mean([one.log_evidence for one in part]) == pytest.approx(whole.log_evidence, abs=0.02)
    assert np.mean([one.predictive for one in part], axis=0) == pytest.approx(whole.predictive, abs=0.1)


def test_a_motif_that_no_value_speaks_for_is_one_that_no_string_has():
    strings = ["AAAAAA", "AAAAA", "AAAA", "AAA"]
    values = [0.1, -0.1, 0.05, -0.05]
    of = density(strings, values, kernel=MotifKernel(3, 4), encoder=Encoder(alphabet=Alphabet("ABCDEFGH")))
    sample = MotifSampler().sample(of, np.random.default_rng(0))
    symbols = np.stack([sample.values[f"motif[{place}]"] for place in range(4)], axis=1)
    unseen = (symbols > 1).any(axis=1)
    assert unseen.mean() > 0.7
    assert symbols.max() <= 8
    assert (symbols[:, 0] > 0).all()
    again = MotifSampler().sample(of, np.random.default_rng(0))
    assert {name: found.tolist() for name, found in again.values.items()} == {
        name: found.tolist() for name, found in sample.values.items()
    }


def counted(strings, motif="AB??D"):
    return [float(occurrences(text, motif, True)) for text in strings]


SPACE = StringSpace("ABCD", 20)


def test_a_mixture_finds_the_motif_that_values_count():
    strings = SPACE.sample(40, np.random.default_rng(0))
    gp = mixture(SPACE)
    gp.bind(SPACE)
    gp.fit(strings, counted(strings), rng=np.random.default_rng(0))
    weights = {one.kernel: one.weight for one in gp.diagnostics}
    assert weights["MotifKernel"] > 0.8
    others = SPACE.sample(200, np.random.default_rng(1))
    mean, _ = gp.predict(others)
    assert np.corrcoef(mean, counted(others))[0, 1] > 0.95
    # The number of a symbol has no mean that would say anything.
    assert not any("motif[" in name or "overlapping" in name for name in gp.hyperparameters)
    named = [name for name in gp.hyperparameters if "motif " in name]
    assert named == ["kernels[4].motif AB??D"]
    assert described_parameter(named[0], gp.state_dict()["kernel_types"])[0] == "one motif: motif AB??D"
    planted = gp.nominated(strings[:3])
    assert max(counted(planted)) >= 4.0
    assert all(SPACE.contains(string) for string in planted)
    restored = mixture(SPACE)
    restored.bind(SPACE)
    restored.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    assert restored.nominated(strings[:3]) == planted


def test_a_search_ends_at_strings_that_are_full_of_the_motif():
    optimizer = Optimizer(SPACE, initial=20, seed=0)
    seen: list[float] = []
    for _ in range(13):
        strings = optimizer.ask()
        seen += counted(strings)
        optimizer.tell(strings, counted(strings))
    assert max(seen) >= 4.0


def test_only_free_strings_are_looked_through_for_motifs():
    def has(space):
        return any(isinstance(kernel, MotifKernel) for kernel in mixture(space).kernels)

    assert has(StringSpace("ACGT", min_length=3, max_length=9))
    assert not has(CodonSpace("MAKVL"))
    assert not has(GrammarSpace("arithmetic", 3, 9))
    assert isinstance(resolve_surrogate("motifs", SPACE).kernels[0], MotifKernel)


def test_an_alphabet_that_grows_gives_symbols_the_numbers_that_they_had():
    strings = SPACE.sample(30, np.random.default_rng(0))
    gp = FullyBayesianGP(MotifKernel(), encoder=Encoder())
    gp.fit(strings, counted(strings), rng=np.random.default_rng(0))
    state = json.loads(json.dumps(gp.state_dict()))
    restored = FullyBayesianGP(MotifKernel(), encoder=Encoder())
    restored.load_state_dict(state)
    assert restored.nominated(strings[3:5]) == gp.nominated(strings[3:5]) != []
    other = FullyBayesianGP(MotifKernel(), encoder=Encoder())
    other.encoder.encode(["Z"])
    other.load_state_dict(state)
    assert not other.drawn


def test_it_is_written_down():
    gp = FullyBayesianGP([MotifKernel(), NgramKernel()], [MotifSampler(), GridSampler()], weights="stacking", null=0.5)
    assert from_config(gp.config()).config() == gp.config()


def test_more_motifs_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_CODE", 80)
    with pytest.raises(InputError, match="2 different symbols make too many motifs of 4"):
        MotifSampler().sample(density(SHORT, VALUES, kernel=MotifKernel(4, 4)), RNG)


def test_of_strings_with_features_it_takes_no_part(tmp_path):
    pool = CandidateSet(SPACE.sample(30, np.random.default_rng(0)), kind="text")
    np.save(tmp_path / "features.npy", RNG.standard_normal((30, 2)))
    features = Features(tmp_path / "features.npy")
    with pytest.raises(InputError, match="motifs takes no features"):
        SurrogatePlan("motifs", features=features).for_space(pool)
    planned = SurrogatePlan("mixture", features=features).for_space(pool)
    assert not any(isinstance(kernel, MotifKernel) for kernel in planned.kernels)


def test_limits_are_for_other_kernels(caplog):
    assert mixture(SPACE).takes_censored
    assert not FullyBayesianGP(MotifKernel()).takes_censored
    strings = SPACE.sample(20, np.random.default_rng(0))
    gp = mixture(SPACE)
    gp.bind(SPACE)
    gp.fit(strings, counted(strings), rng=np.random.default_rng(0), censored=[1] + [0] * 19)
    assert "one motif" in caplog.text
    assert {one.kernel: one.weight for one in gp.diagnostics}.get("MotifKernel", 0.0) == 0.0


def test_what_it_cannot_take_is_refused():
    with pytest.raises(InputError, match="the motif of a MotifKernel"):
        MotifSampler().sample(LogPosterior(SubsequenceKernel(), ENCODER.encode(SHORT), VALUES, np.zeros(9)), RNG)
    with pytest.raises(InputError, match="not found from limits"):
        MotifSampler().sample(density(SHORT, VALUES, sides=np.array([1] + [0] * 8)), RNG)
    for kernel, sampler in (
        (MotifKernel(), SliceSampler()),
        (MotifKernel(), ModeSampler()),
        (Sum(MotifKernel(), NgramKernel()), None),
        (OnField(MotifKernel(), "strings"), MotifSampler()),
    ):
        with pytest.raises(InputError, match="only a MotifSampler draws motifs"):
            FullyBayesianGP(kernel, sampler)
    frozen = MotifKernel()
    frozen.raw_motif.requires_grad_(False)
    with pytest.raises(InputError, match="cannot be fixed"):
        FullyBayesianGP(frozen)
    with pytest.raises(InputError, match="SliceSampler"):
        FullyBayesianGP(MotifKernel(), MotifSampler(), levels=Levels("plate", ("a", "b"), "a"))
    gp = FullyBayesianGP(MotifKernel(), encoder=FeatureEncoder(MorganFingerprint()))
    with pytest.raises(InputError, match="strings of symbols"):
        gp.fit(["CCO", "CCC", "CCN"], [0.0, 1.0, 2.0], rng=RNG)


def test_occurrences_of_a_shape_are_those_that_are_counted_one_by_one():
    from seqopt.models.sampling import compiled_motif

    rng = np.random.default_rng(5)
    for base, shortest, longest in ((1, 0, 6), (2, 0, 9), (3, 7, 7), (9, 5, 30), (90, 20, 60)):
        lengths = rng.integers(shortest, longest + 1, size=8)
        digits = rng.integers(base, size=(8, longest + 1))
        for places in ((0,), (0, 1), (0, 2), (0, 1, 3), (0, 1, 2, 5)):
            found = compiled_motif.entries(digits, lengths, np.array(places), base)
            expected: dict[int, dict[int, list[int]]] = {}
            for string, length in enumerate(lengths.tolist()):
                for start in range(length - places[-1]):
                    code = 0
                    for place in places:
                        code = code * base + int(digits[string, start + place])
                    expected.setdefault(code, {}).setdefault(string, []).append(start)
            assert found.codes.tolist() == sorted(expected)
            assert len(found.heads) == len(found.codes) + 1
            for motif, code in enumerate(found.codes.tolist()):
                own = slice(found.heads[motif], found.heads[motif + 1])
                assert found.strings[own].tolist() == sorted(expected[code])
                for string, overlapping, apart in zip(
                    found.strings[own].tolist(), found.overlapping[own], found.apart[own], strict=True
                ):
                    starts = expected[code][string]
                    free, count = 0, 0
                    for start in starts:
                        if start >= free:
                            free, count = start + places[-1] + 1, count + 1
                    assert (overlapping, apart) == (len(starts), count)


def test_where_motifs_occur_is_looked_for_once_for_all_values(monkeypatch):
    calls = []
    encoded = ENCODER.encode(SHORT)
    found = module._found
    monkeypatch.setattr(module, "_remembered", module.once_per_strings(lambda *a: calls.append(1) or found(*a)))
    kernel = MotifKernel(3, 4)
    kernel.read_by(ENCODER.alphabet)
    samples = []
    for values in (VALUES, -VALUES, np.exp(VALUES)):
        density = LogPosterior(kernel, encoded, values - values.mean(), np.zeros(9))
        samples.append(MotifSampler().sample(density, np.random.default_rng(0)).predictive)
    assert len(calls) == 7  # distances of one, two or three symbols within four
    monkeypatch.setattr(module, "REMEMBERED", 0)
    for values, before in zip((VALUES, -VALUES, np.exp(VALUES)), samples, strict=True):
        density = LogPosterior(kernel, encoded, values - values.mean(), np.zeros(9))
        assert np.array_equal(MotifSampler().sample(density, np.random.default_rng(0)).predictive, before)
    assert len(calls) == 7
