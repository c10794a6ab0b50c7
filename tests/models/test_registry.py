"""Surrogates by name."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from seqopt import Optimizer, maximize
from seqopt.encoding import JointEncoder, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import (
    CountsKernel,
    HammingKernel,
    JointKernel,
    MotifKernel,
    NgramKernel,
    OneHotKernel,
    SubsequenceKernel,
)
from seqopt.models import (
    SURROGATES,
    FullyBayesianGP,
    FullyBayesianStringGP,
    JointSurrogate,
    PoolSurrogate,
    StringGP,
    StringSurrogate,
    default_surrogate,
    gaussian,
    resolve_surrogate,
)
from seqopt.models.registry import latent_gp, looks_at_symbols, surrogate_name
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, Space, StringSpace
from seqopt.vae import CharacterCodec, GrammarCodec, NetworkSizes, StringVAE, TrainingSettings, train
from seqopt.vae.model import build_network

MOLECULES = ["C" * n + end for n in range(1, 7) for end in ("O", "N", "C(=O)O", "c1ccccc1", "Cl")]
SPACES: dict[str, Space] = {
    "molecule": CandidateSet(MOLECULES, kind="molecule"),
    "dna": CodonSpace("MAGIC"),
    "protein": StringSpace("ACDW", 6, kind="protein"),
}


def space_for(name: str) -> Space:
    kinds = SURROGATES[name].kinds
    return SPACES[kinds[0]] if kinds else StringSpace("01", 8)


@pytest.mark.parametrize("name", SURROGATES)
def test_every_named_surrogate_learns_and_has_a_joint_posterior(name: str) -> None:
    space = space_for(name)
    surrogate = resolve_surrogate(name, space)
    surrogate.bind(space)  # type: ignore[attr-defined]
    strings = [space.key(string) for string in space.sample(20, np.random.default_rng(0))]
    values = np.array([string.count("C") + 2.0 * string.count("1") for string in strings])
    surrogate.fit(strings, values, rng=np.random.default_rng(1))
    mean, std = surrogate.predict(strings)
    assert np.corrcoef(mean, values)[0, 1] > 0.7
    assert isinstance(surrogate, JointSurrogate)
    joint_mean, covariance = surrogate.posterior(strings)
    np.testing.assert_allclose(joint_mean.numpy(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(covariance.diagonal().sqrt().numpy(), std, rtol=1e-3, atol=1e-3)
    assert isinstance(surrogate, StringSurrogate)
    # The posterior that genetic searches use is the same one.
    at = surrogate.conditioned().at(strings)
    np.testing.assert_allclose(surrogate.untransform(at.moments.mean.mean(0), 0.0)[0], mean, rtol=1e-6, atol=1e-6)
    again = resolve_surrogate(name, space)
    again.load_state_dict(surrogate.state_dict())
    assert again.state_dict() == surrogate.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", SURROGATES)
def test_pools_are_searched_with_every_surrogate(name: str) -> None:
    genes = ["".join(codons) for codons in itertools.product(("ATG", "GCC", "TTA"), repeat=3)]
    molecules = "molecule" in SURROGATES[name].kinds
    kind = "protein" if "protein" in SURROGATES[name].kinds else "dna"
    pool = CandidateSet(MOLECULES, kind="molecule") if molecules else CandidateSet(genes, kind=kind)
    optimizer = Optimizer(pool, surrogate=name, initial=6, batch_size=3, seed=1)
    assert isinstance(optimizer.surrogate, PoolSurrogate)
    for _ in range(3):
        strings = optimizer.ask()
        optimizer.tell(strings, [len(string) if molecules else string.count("C") for string in strings])
    pending = optimizer.ask()  # conditioned on
    more = optimizer.ask()
    assert len({*pending, *more}) == 6
    chosen = [row.value for row in optimizer.observations.rows if row.status == "ok"]
    assert np.mean(chosen[6:]) > np.mean(chosen[:6])


def test_one_hot_is_refused_where_lengths_differ_before_anything_is_evaluated() -> None:
    for space in (StringSpace("01", min_length=3, max_length=9), SPACES["molecule"]):
        with pytest.raises(InputError, match=r"strings of \d and of \d+ symbols: choose another"):
            Optimizer(space, surrogate="one-hot")


@pytest.mark.parametrize(
    ("name", "strings", "kind", "message"),
    [
        ("one-hot", ["ATG", "GCC", "ATGG"], "dna", "has . symbols, but this surrogate compares strings of one length"),
        ("codons", ["ATG", "GCC", "ATGG"], "dna", "'ATGG'.*: leave this candidate out, or choose another surrogate"),
    ],
)
def test_a_surrogate_object_looks_at_the_pool_before_anything_is_evaluated(
    name: str, strings: list[str], kind: str, message: str
) -> None:
    surrogate = SURROGATES[name].build()
    with pytest.raises(InputError, match=message):
        Optimizer(CandidateSet(strings, kind=kind), surrogate=surrogate)
    Optimizer(CandidateSet(strings[:2], kind=kind), surrogate=surrogate)


def test_strings_that_a_kernel_cannot_take_end_a_fit_with_its_own_message() -> None:
    surrogate = SURROGATES["one-hot"].build()
    with pytest.raises(InputError, match="strings of one length"):
        surrogate.fit(["01", "011", "1"], [0.0, 1.0, 2.0], rng=np.random.default_rng(0))


@pytest.mark.slow
def test_an_autoencoder_is_a_surrogate_by_the_name_of_its_file(tmp_path: Path) -> None:
    space = GrammarSpace("arithmetic", 1, 5)
    strings = space.sample(200, np.random.default_rng(0))
    sizes, settings = NetworkSizes(latent=3, hidden=16), TrainingSettings(epochs=1)
    vae = train(strings, GrammarCodec.of("arithmetic", strings), sizes, settings, rng=np.random.default_rng(0)).vae
    vae.save(tmp_path / "My.vae")
    optimizer = Optimizer(space, surrogate=f"vae:{tmp_path / 'My.vae'}", initial=5)
    for _ in range(2):
        chosen = optimizer.ask()
        optimizer.tell(chosen, [string.count("x") for string in chosen])
    assert optimizer.surrogate.encode(strings[:2]).shape == (2, 3)  # type: ignore[attr-defined]
    assert optimizer.hyperparameters["lengthscale"] > 0
    with pytest.raises(InputError, match="nowhere"):
        resolve_surrogate("vae:nowhere.vae", space)


@pytest.mark.parametrize(("latent", "median"), [(1, 1.0), (9, 3.0), (25, 5.0)])
def test_length_scales_in_latent_space_have_the_median_of_the_square_root_of_its_dimensions(
    latent: int, median: float
) -> None:
    codec, sizes = CharacterCodec("ab", 3), NetworkSizes(latent, 4, 4, 4, 4)
    vae = StringVAE(codec, build_network(codec, sizes), np.zeros((201, latent)))
    kernel = latent_gp(vae).kernel
    prior = kernel.lengthscale_prior  # type: ignore[attr-defined]
    assert float(prior.icdf(torch.tensor(0.5))) == pytest.approx(median)
    assert float(prior.icdf(torch.tensor(0.8413447))) == pytest.approx(median * np.e, rel=1e-4)  # one deviation above
    assert kernel.lengthscale.item() == pytest.approx(median)  # type: ignore[operator, union-attr]


def test_auto_is_the_default_of_the_space() -> None:
    for name in ("auto", "mixture"):
        found = resolve_surrogate(name, StringSpace("01", 8))
        assert isinstance(found, FullyBayesianGP)
        assert [type(kernel) for kernel in found.kernels] == [
            SubsequenceKernel,
            NgramKernel,
            OneHotKernel,
            HammingKernel,
            MotifKernel,
        ]
        assert surrogate_name(found) == "mixture"
    assert isinstance(resolve_surrogate(" SSK-bayes ", StringSpace("01", 8)), FullyBayesianStringGP)


def test_an_object_is_taken_as_it_is() -> None:
    surrogate = FullyBayesianStringGP()
    assert resolve_surrogate(surrogate, StringSpace("01", 8)) is surrogate


@pytest.mark.parametrize(
    ("surrogate", "message"),
    [
        ("forest", "unknown surrogate 'forest': choose auto, ssk"),
        ("tanimoto", "tanimoto is for molecule strings, but those of this space are of kind 'text'"),
        (FullyBayesianStringGP, "is not a surrogate"),
        (7, "7 is not a surrogate"),
    ],
)
def test_what_is_no_surrogate_is_refused(surrogate: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Optimizer(StringSpace("01", 8), surrogate=surrogate)  # type: ignore[arg-type]


def test_the_default_of_molecules_looks_at_their_environments_and_of_other_pools_at_symbols() -> None:
    molecules = default_surrogate(CandidateSet(MOLECULES, kind="molecule"))
    assert isinstance(molecules, StringGP)
    assert isinstance(molecules.encoder, JointEncoder)
    assert molecules.encoder.features.name == MorganFingerprint(counts=True).name
    assert isinstance(molecules.kernel, JointKernel)
    assert isinstance(molecules.kernel.tokens, NgramKernel)
    assert isinstance(molecules.kernel.features, CountsKernel)
    with pytest.raises(InputError, match="no partitions"):
        default_surrogate(CandidateSet(MOLECULES, kind="molecule"), partitions=2)
    texts = default_surrogate(CandidateSet(["ab", "ba"]), partitions=2)
    assert isinstance(texts, FullyBayesianGP)
    assert [type(kernel) for kernel in texts.kernels] == [SubsequenceKernel, NgramKernel, OneHotKernel, HammingKernel]
    assert texts.kernels[0].partitions == 2


def test_a_large_pool_has_one_kernel_at_point_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = CandidateSet(["abcab", "bacab", "cabab"])
    assert isinstance(default_surrogate(pool), FullyBayesianGP)
    monkeypatch.setattr("seqopt.models.registry.LARGE_POOL", 2)
    large = default_surrogate(pool, partitions=2)
    assert isinstance(large, StringGP)
    assert isinstance(large.kernel, SubsequenceKernel)
    assert large.kernel.partitions == 2


def test_parts_of_a_pool_are_those_of_its_median_candidate() -> None:
    many = ["ACGT" * 10 + tail for tail in ("A", "CC", "GGG")]
    assert default_surrogate(CandidateSet([*many, "A" * 5000])).kernels[0].partitions == 1  # type: ignore[union-attr]
    assert default_surrogate(CandidateSet([4 * one for one in many])).kernels[0].partitions == 3  # type: ignore[union-attr]


def test_a_tokeniser_asks_for_a_model_of_symbols() -> None:
    found = [maximize("logp", MOLECULES, initial=4, budget=1, tokenizer=name) for name in (None, "characters")]
    encoders = [result.optimizer.surrogate.encoder.name for result in found]
    assert encoders == [f"smiles-split + {MorganFingerprint(counts=True).name}", "characters"]
    with pytest.raises(InputError, match="StringSpace has its own tokeniser"):
        maximize(len, StringSpace("01", 8), tokenizer="characters")


def test_strings_without_features_are_refused_before_anything_is_evaluated(tmp_path: Path) -> None:
    genes = CandidateSet(["ATGACC", "ATGAC", "GCCGCC"], kind="dna")
    with pytest.raises(InputError, match=r"cannot read 'ATGAC' \(candidate 2 of 3\), which has 5 letters"):
        Optimizer(genes, surrogate="codons")
    space = GrammarSpace("arithmetic", 1, 5)
    strings = space.sample(100, np.random.default_rng(0))
    sizes, settings = NetworkSizes(latent=3, hidden=16), TrainingSettings(epochs=1)
    vae = train(strings, GrammarCodec.of("arithmetic", strings), sizes, settings, rng=np.random.default_rng(0)).vae
    vae.save(tmp_path / "a.vae")
    for other in (StringSpace("ab", 6), GrammarSpace("arithmetic", 15, 20)):
        with pytest.raises(InputError):
            Optimizer(other, surrogate=f"vae:{tmp_path / 'a.vae'}")


def test_a_tokeniser_means_nothing_to_features() -> None:
    with pytest.raises(InputError, match="minmax does not look at symbols"):
        maximize("logp", MOLECULES, surrogate="minmax", tokenizer="characters")
    featured = ["codons", "tanimoto", "minmax", "fragprints", "counts"]
    assert [name for name in SURROGATES if not looks_at_symbols(name)] == featured


def test_models_that_differ_are_described_differently() -> None:
    from gpytorch.kernels import RBFKernel

    from seqopt.encoding import CodonFeatures
    from seqopt.kernels import JointKernel, NgramKernel, TanimotoKernel
    from seqopt.models.registry import smooth_gp
    from seqopt.utils.config import described

    models = [
        StringGP(),
        StringGP(fit_size=50),
        StringGP(interpolate=False),
        StringGP(NgramKernel()),
        StringGP(NgramKernel(lengthscale=3.0)),
        StringGP(RBFKernel()),
        smooth_gp(CodonFeatures()),
        smooth_gp(CodonFeatures(), 2.0),
        StringGP(JointKernel(SubsequenceKernel(3), TanimotoKernel(), 8)),
        StringGP(JointKernel(SubsequenceKernel(5), TanimotoKernel(), 8)),
        StringGP(JointKernel(SubsequenceKernel(5), CountsKernel(), 8)),
    ]
    found = [json.dumps(described(model), sort_keys=True) for model in models]
    assert len(set(found)) == len(models)
    assert found == [json.dumps(described(model), sort_keys=True) for model in models]


def test_a_pool_too_large_to_be_held_is_searched_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    genes = ["".join(bases) for bases in itertools.product("ACGT", repeat=4)]
    found = []
    for memory in (gaussian.COLUMN_MEMORY, 0):
        monkeypatch.setattr(gaussian, "COLUMN_MEMORY", memory)
        optimizer = Optimizer(genes, surrogate="ssk-bayes", initial=6, batch_size=3)
        for _ in range(3):
            strings = optimizer.ask()
            optimizer.tell(strings, [string.count("GC") - string.count("A") for string in strings])
        found.append([row.string for row in optimizer.observations.rows])
    assert found[0] == found[1]
    assert optimizer.best.value > 0
