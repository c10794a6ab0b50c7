import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seqopt import Optimizer
from seqopt.data import Query
from seqopt.encoding import Encoder, FeatureEncoder, JointEncoder, MorganFingerprint
from seqopt.encoding.codons import CodonTokenizer
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import (
    HammingKernel,
    JointKernel,
    MinMaxKernel,
    NgramKernel,
    OneHotKernel,
    OnField,
    SubsequenceKernel,
)
from seqopt.models import DoubtingSurrogate, FullyBayesianGP, StringGP
from seqopt.models.conditioned import SAFE_NOISE
from seqopt.models.fully_bayesian import PER_GAP_DECAY, _shared
from seqopt.models.registry import mixture
from seqopt.models.sampling import GridSampler
from seqopt.models.stacking import independent_densities
from seqopt.spaces import CandidateSet, CodonSpace, StringSpace
from seqopt.utils.config import from_config

SPACE = StringSpace("ACGT", 12)


def sampled(n, seed=0):
    return SPACE.sample(n, np.random.default_rng(seed))


def fitted(values_of, n=40, seed=0):
    gp = mixture(SPACE)
    gp.bind(SPACE)
    strings = sampled(n, seed)
    gp.fit(strings, values_of(strings), rng=np.random.default_rng(seed))
    return gp


def counts(strings):
    return [float(string.count("A") + 2 * string.count("CG")) for string in strings]


def noise(strings):
    return np.random.default_rng(7).normal(size=len(strings))


@pytest.mark.slow
@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=3, max_size=12, unique=True))
def test_independent_values_have_the_density_of_each_from_the_others(values):
    values = np.array(values)
    found = independent_densities(values)
    for place in range(len(values)):
        others = np.delete(values, place)
        m = len(others)
        if others.var(ddof=1) <= 1e-12:
            expected = stats.norm.logpdf(values[place])
        else:
            scale = others.std(ddof=1) * math.sqrt(1 + 1 / m)
            expected = stats.t.logpdf(values[place], m - 1, others.mean(), scale)
        assert found[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_equal_or_few_values_have_a_density_too():
    assert independent_densities(np.array([0.5, -0.5])) == pytest.approx(stats.norm.logpdf([0.5, -0.5]))
    assert np.isfinite(independent_densities(np.array([0.0, 0.0, 0.0, 1.0]))).all()


def test_values_that_strings_do_not_tell_are_doubted_and_others_are_not():
    assert isinstance(mixture(SPACE), DoubtingSurrogate)
    assert fitted(counts).doubt < 0.1
    assert fitted(noise).doubt > 0.3  # kernels with much noise explain them as well
    assert fitted(counts, n=4).doubt > 0.2  # too few to tell


def test_doubt_is_kept_with_the_state_and_in_the_config():
    gp = fitted(noise)
    again = from_config(json.loads(json.dumps(gp.config())))
    assert again.config() == gp.config()
    again.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    assert again.doubt == gp.doubt > 0.0
    again.fit(sampled(40), noise(sampled(40)), rng=np.random.default_rng(5))
    for null, weights in ((1.0, "stacking"), (-0.1, "stacking"), (0.5, "evidence")):
        with pytest.raises(InputError, match="null is"):
            FullyBayesianGP([NgramKernel()], null=null, weights=weights)


def test_kernels_of_one_length_take_no_part_where_lengths_differ(caplog):
    gp = mixture(SPACE)
    strings = ["ACGT", "ACG", "AACG", "TTTT", "GTGTG", "CC", "ACCA", "GGGA"]
    for _ in range(2):
        gp.fit(strings, counts(strings), rng=np.random.default_rng(0))
    (said,) = [message for message in caplog.messages if "no part" in message]
    assert said == (
        "kernels that compare position by position take no part (positions, each by itself; substitutions): the "
        "measured strings have 2 to 5 symbols"
    )
    assert {found.kernel for found in gp.diagnostics} == {"SubsequenceKernel", "NgramKernel", "MotifKernel"}
    assert np.isfinite(gp.predict(["A", "ACGTACGT"])[0]).all()
    assert gp.unsupported(["A"]) == {}
    positional = FullyBayesianGP([OneHotKernel(), HammingKernel()], GridSampler(), weights="stacking")
    with pytest.raises(InputError, match="strings have 2 to 5 symbols"):
        positional.fit(strings, counts(strings), rng=np.random.default_rng(0))


def test_strings_of_another_length_are_refused_while_positions_are_compared():
    gp = fitted(lambda strings: [float(s[0] == "A") + 2 * (s[5] == "C") + (s[7] == "G") for s in strings], n=60)
    assert max(gp.diagnostics, key=lambda found: found.weight).kernel in ("OneHotKernel", "HammingKernel")
    refused = gp.unsupported(["ACGTACGTACGT", "ACG"])
    assert list(refused) == [1]
    assert "has 3 symbols" in refused[1]
    again = mixture(SPACE)
    again.load_state_dict(json.loads(json.dumps(gp.state_dict())))
    assert list(again.unsupported(["ACG"])) == [0]


def test_draws_that_share_a_gap_decay_still_have_its_distribution():
    values = np.repeat([0.1, 0.3, 0.6, 0.9], 5)
    weights = np.random.default_rng(0).dirichlet(np.full(20, 0.7))
    rng = np.random.default_rng(1)
    seen = np.zeros(20)
    for _ in range(4000):
        drawn = rng.choice(20, size=8, p=weights).tolist()
        found = _shared(values, weights, drawn, rng)
        assert len(found) == 8
        assert len({values[place] for place in found}) <= math.ceil(8 / PER_GAP_DECAY)
        np.add.at(seen, found, 1)
    assert seen / seen.sum() == pytest.approx(weights, abs=0.012)


class Doubtful(FullyBayesianGP):
    share = 1.0

    @property
    def doubt(self):
        return self.share


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_as_many_strings_are_drawn_at_random_as_are_doubted(share):
    surrogate = Doubtful(NgramKernel(2), GridSampler(), mean_std=0.0)
    surrogate.share = share
    optimizer = Optimizer(StringSpace("ACGT", 8), surrogate=surrogate, initial=6, seed=3)
    strings = optimizer.ask()
    optimizer.tell(strings, counts(strings))
    modelled = []
    for _ in range(4):
        strings = optimizer.ask(10)
        assert len(set(strings)) == 10
        optimizer.tell(strings, counts(strings))
        modelled += [row.details["predicted_mean"] is not None for row in optimizer.observations.rows[-10:]]
    assert np.mean(modelled) == pytest.approx(1.0 - share, abs=0.25)
    assert share not in (0.0, 1.0) or np.mean(modelled) == 1.0 - share


def test_ranks_need_single_precision_only_where_noise_allows_it():
    strings, others = sampled(30), sampled(50, seed=9)
    for noise_variance, rough in ((0.05, True), (SAFE_NOISE / 100, False)):
        gp = StringGP(restarts=1)
        gp.fit(strings, counts(strings), rng=np.random.default_rng(0), noise_variance=np.full(30, noise_variance))
        process = gp.conditioned()
        exact, roughly = process.at(others).moments, process.roughly(others).moments
        errors = [float((getattr(exact, name) - getattr(roughly, name)).abs().max()) for name in ("mean", "variance")]
        allowed = bool((process.state.observed_noise.amin(-1) >= SAFE_NOISE * process.state.scale).all())
        assert (max(errors) > 0.0) == allowed
        assert max(errors) < 1e-3
        if rough:
            assert allowed


@pytest.mark.slow
def test_n_grams_and_features_are_added():
    molecules = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "OCCO", "CCOC", "NCC=O"]
    features = MorganFingerprint(counts=True)
    encoder = JointEncoder(FeatureEncoder(features))
    kernel = JointKernel(NgramKernel(3), MinMaxKernel(), features.size, weight=0.3)
    encoded = encoder.encode(molecules)
    kernel.adapt(encoded.to_tensor())
    by_text = kernel.tokens.cross(encoded.tokens)
    by_features = MinMaxKernel().cross(encoded.features)
    assert kernel.cross(encoded) == pytest.approx(0.3 * by_text + 0.7 * by_features)
    rows = encoded.to_tensor()
    assert kernel(rows).to_dense().detach().numpy() == pytest.approx(kernel.cross(encoded))
    assert not kernel.costly
    assert JointKernel(SubsequenceKernel(), MinMaxKernel(), features.size).costly
    gp = StringGP(kernel, encoder=encoder)
    gp.fit(molecules, [float(len(molecule)) for molecule in molecules], rng=np.random.default_rng(0))
    assert np.isfinite(gp.predict(["CCCO"])[0]).all()
    assert from_config(json.loads(json.dumps(gp.config()))).config() == gp.config()


@pytest.mark.slow
def test_a_string_of_another_length_is_learned_from_also_beyond_a_hundred():
    space = StringSpace("ACGT", 6)
    gp = FullyBayesianGP([HammingKernel(), SubsequenceKernel(order=1)], GridSampler(), weights="stacking")
    strings = space.sample(110, np.random.default_rng(0))
    values = [float(s[0] == "A") + 2 * (s[3] == "C") for s in strings]
    gp.fit(strings, values, rng=np.random.default_rng(0))
    gp.fit([*strings, "ACGTA"], [*values, 1.0], rng=np.random.default_rng(1))
    assert [found.kernel for found in gp.diagnostics] == ["SubsequenceKernel"]
    assert gp.unsupported(["ACG"]) == {}


@pytest.mark.slow
def test_what_an_encoder_refuses_is_named_also_while_positions_are_compared():
    fields = FieldEncoder({"plate": ContextEncoder("plate", levels=["a", "b"], default="a"), "tokens": Encoder()})
    gp = FullyBayesianGP(OnField(HammingKernel(), "tokens"), encoder=fields)
    strings = SPACE.sample(12, np.random.default_rng(0))
    gp.fit(strings, counts(strings), rng=np.random.default_rng(0))
    items = [Query(strings[0], {"plate": "z"}), strings[1], "ACG"]
    assert list(gp.unsupported(items)) == [0, 2]


def test_genes_in_codons_are_compared_by_their_bases_as_well():
    space = CodonSpace("MKRLSVTAGPLRSA")
    rng = np.random.default_rng(0)
    genes = [space.key(gene) for gene in space.sample(120, rng)]
    weights = {codon: rng.normal() for codon in sorted({gene[i : i + 3] for gene in genes for i in range(0, 42, 3)})}
    scores = {
        "codons": [sum(weights[gene[i : i + 3]] for i in range(0, 42, 3)) for gene in genes],
        "bases": [-abs((gene.count("G") + gene.count("C")) / 42 - 0.5) for gene in genes],
    }
    for name, values in scores.items():
        gp = mixture(space)
        gp.bind(space)
        gp.fit(genes[:80], values[:80], rng=np.random.default_rng(0))
        of_bases = sum(one.weight for one in gp.diagnostics if one.kernel.startswith("Letter"))
        assert of_bases > 0.5 if name == "bases" else of_bases < 0.2
        error = np.sqrt(np.mean((gp.predict(genes[80:])[0] - values[80:]) ** 2)) / np.std(values[80:])
        assert error < 0.75


def test_bases_are_compared_in_parts_of_sixty():
    def parts(space, **options):
        return [kernel.partitions for kernel in mixture(space, **options).kernels if hasattr(kernel, "partitions")]

    assert parts(CodonSpace("MA" * 30)) == [1, 3]
    assert parts(CodonSpace("MA" * 31)) == [2, 4]
    assert parts(CodonSpace("MA" * 30), partitions=2) == [2, 6]
    # One length or several, a pool of codons or a space; but nothing with positions left out, and nothing else.
    assert parts(CandidateSet(["ATGGCT", "ATGGCC", "ATG"], kind="dna", tokenizer=CodonTokenizer())) == [1, 1]
    assert parts(CodonSpace("MA" * 30, representation="bases")) == [3]
    assert parts(SPACE) == [1]


def test_a_state_of_other_kernels_is_not_continued():
    strings = sampled(30)
    gp = fitted(counts, n=30)
    state = json.loads(json.dumps(gp.state_dict()))
    named = ["SubsequenceKernel", "NgramKernel", "OneHotKernel", "HammingKernel", "MotifKernel"]
    assert state["kernel_types"] == named
    others = FullyBayesianGP([NgramKernel(), HammingKernel()], GridSampler(), weights="stacking")
    others.load_state_dict(state)
    assert not others.drawn
    others.fit(strings, counts(strings), rng=np.random.default_rng(0))
    fresh = FullyBayesianGP([NgramKernel(), HammingKernel()], GridSampler(), weights="stacking")
    fresh.fit(strings, counts(strings), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(others.predict(["ACGTACGTACGT"])[0], fresh.predict(["ACGTACGTACGT"])[0])
