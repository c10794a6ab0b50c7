"""Search in latent space: it stays in its box, proposes new members of the space, and minds what decodes to nothing."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement as BotorchLogEI

from seqopt.acquisition import GIBBON, LogExpectedImprovement
from seqopt.encoding import FeatureEncoder
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.optimizer import Optimizer
from seqopt.scorers import GaussianScoring
from seqopt.search import latent
from seqopt.search.latent import LatentSearch
from seqopt.spaces import GrammarSpace, StringSpace
from seqopt.vae import CharacterCodec, GrammarCodec, NetworkSizes, StringVAE, TrainingSettings, train

SPACE = GrammarSpace("arithmetic", 1, 5)


def trained(model: str) -> StringVAE:
    strings = SPACE.sample(150, np.random.default_rng(0))
    codec = CharacterCodec.of(strings) if model == "character" else GrammarCodec.of("arithmetic", strings)
    settings = TrainingSettings(epochs=15, batch_size=16, learning_rate=4e-3, kl_weight=0.05)
    sizes = NetworkSizes(latent=4, hidden=48, embedding=8, features=24, memory=16)
    return train(strings, codec, sizes, settings, rng=np.random.default_rng(1)).vae


@pytest.fixture(scope="module")
def vae() -> StringVAE:
    return trained("grammar")


def value(string: str) -> float:
    return string.count("x") + 0.1 * len(string)


def fitted(vae: StringVAE, n: int = 12) -> tuple[StringGP, list[str]]:
    strings = SPACE.sample(n, np.random.default_rng(3))
    surrogate = StringGP(gpytorch.kernels.RBFKernel(), encoder=FeatureEncoder(vae), restarts=1)
    surrogate.fit(strings, [value(string) for string in strings], rng=np.random.default_rng(4))
    return surrogate, strings


def suggest(search: LatentSearch, surrogate: StringGP, n: int = 1, **options: object) -> list:
    arguments = {
        "space": SPACE,
        "acquisition": LogExpectedImprovement(),
        "excluded": set(),
        "pending": [],
        "rng": np.random.default_rng(7),
    } | options
    scoring = GaussianScoring(
        surrogate, arguments.pop("acquisition"), pending=arguments.pop("pending"), rng=arguments["rng"]
    )
    return search.propose(n, scoring=scoring, **arguments)  # type: ignore[arg-type]


class Recording(StringVAE):
    """Remembers the points that were decoded, and may decode some of them to nothing."""

    def __init__(self, vae: StringVAE, refuses: bool | None = None) -> None:
        super().__init__(vae.codec, vae.network, vae.quantiles)
        self.points: list[np.ndarray] = []
        self.refuses = refuses
        self.first = True

    def decode(self, points: object) -> list[str]:
        array = np.asarray(points)
        self.points.append(array)
        strings = super().decode(array)
        if self.refuses or (self.refuses is None and self.first):
            strings = ["+*)"] * len(strings)
        self.first = False
        return strings


def test_the_optimum_of_the_acquisition_is_decoded(vae: StringVAE) -> None:
    surrogate, strings = fitted(vae)
    search = LatentSearch(Recording(vae, refuses=False))
    (found,) = suggest(search, surrogate)
    (points,) = search.vae.points  # type: ignore[attr-defined]
    assert (search.bounds[0] - 1e-9 <= points).all()
    assert (points <= search.bounds[1] + 1e-9).all()
    assert found.string == vae.decode(points[:1])[0]
    # Against BoTorch's own function on the surrogate's own model, at many points.
    mean = surrogate.model.posterior(surrogate.encode(strings)).mean
    function = BotorchLogEI(surrogate.model, best_f=mean.max())
    box = torch.from_numpy(search.bounds)
    anywhere = box[0] + (box[1] - box[0]) * torch.rand(2000, 4, generator=torch.Generator().manual_seed(0)).double()
    unit = surrogate.model.outcome_transform.stdvs.log().item()
    with torch.no_grad():
        assert found.acquisition + unit >= function(anywhere[:, None]).max().item() - 1e-3
        at = function(torch.from_numpy(points[:1])[:, None]).item()
    assert found.acquisition + unit == pytest.approx(at, abs=1e-3)
    mean_there, std_there = surrogate.predict([found.key])
    assert (found.predicted_mean, found.predicted_std) == (mean_there[0], std_there[0])


def test_the_box_holds_the_central_three_quarters_of_encodings_unless_another_share_is_asked_for(
    vae: StringVAE,
) -> None:
    # Quantiles are kept at levels 0, 0.005, ..., 1: the 25th is that of 0.125, the 175th that of 0.875.
    search = LatentSearch(vae)
    assert search.coverage == 0.75
    np.testing.assert_allclose(search.bounds, vae.quantiles[[25, 175]], atol=1e-12)
    assert (np.diff(search.bounds, axis=0) > 1e-3).all()
    np.testing.assert_allclose(vae.box(), vae.quantiles[[25, 175]], atol=1e-12)
    np.testing.assert_allclose(LatentSearch(vae, coverage=0.5).bounds, vae.quantiles[[50, 150]], atol=1e-12)


@pytest.mark.slow
def test_batches_are_new_members_of_the_space(vae: StringVAE) -> None:
    surrogate, strings = fitted(vae)
    first = suggest(LatentSearch(vae), surrogate, 1, excluded=set(strings))
    pending = [first[0].key]
    quick = {"restarts": 2, "raw_samples": 32, "attempts": 2}
    found = suggest(LatentSearch(vae, **quick), surrogate, 6, excluded={*strings, *pending}, pending=pending)
    keys = [suggestion.key for suggestion in found]
    assert len(set(keys)) == 6
    assert not set(keys) & {*strings, *pending}
    assert all(SPACE.contains(suggestion.string) for suggestion in found)
    again = suggest(LatentSearch(vae, **quick), surrogate, 6, excluded={*strings, *pending}, pending=pending)
    assert [suggestion.string for suggestion in again] == [suggestion.string for suggestion in found]


def test_what_is_pending_is_conditioned_on(vae: StringVAE) -> None:
    surrogate, _ = fitted(vae)
    (first,) = suggest(LatentSearch(vae), surrogate)
    process = latent._LatentProcess.of(surrogate.model, vae.size)
    at = torch.from_numpy(vae([first.key]))
    before = process.acquisition()(at[:, None]).item()
    mean = process.mean(at)
    process.observe(at.numpy())
    assert process.acquisition()(at[:, None]).item() < before
    torch.testing.assert_close(process.mean(at), mean)  # believed, so no mean changes
    assert process.incumbent >= float(mean)


def test_points_that_decode_to_nothing_are_counted_and_left(vae: StringVAE) -> None:
    surrogate, _ = fitted(vae)
    search = LatentSearch(Recording(vae))
    (found,) = suggest(search, surrogate)
    points = search.vae.points  # type: ignore[attr-defined]
    assert search.undecodable == 1
    assert SPACE.contains(found.string)
    np.testing.assert_array_equal(search.rejected, points[0][:1])
    process = latent._LatentProcess.of(surrogate.model, vae.size)
    before = float(process.mean(torch.from_numpy(search.rejected)))
    process.refuse(search.rejected)
    after = float(process.mean(torch.from_numpy(search.rejected)))
    assert process.worst < after < before
    assert process.worst == float(surrogate.model.train_targets.min())
    (second,) = suggest(search, surrogate)  # the point is remembered in later calls
    assert search.undecodable == 1
    assert second.string == found.string


def test_where_nothing_decodes_random_strings_are_left(vae: StringVAE) -> None:
    surrogate, strings = fitted(vae)
    search = LatentSearch(Recording(vae, refuses=True), attempts=2)
    found = suggest(search, surrogate, 2, excluded=set(strings))
    assert search.undecodable == 4
    assert len({suggestion.key for suggestion in found} - set(strings)) == 2
    assert all(SPACE.contains(suggestion.string) for suggestion in found)


def test_an_exhausted_space_gives_nothing(vae: StringVAE) -> None:
    surrogate, _ = fitted(vae)
    small = GrammarSpace("arithmetic", 1, 1)
    search = LatentSearch(vae, restarts=1, raw_samples=16, attempts=1)
    found = suggest(search, surrogate, 9, space=small, excluded={"x"})
    assert sorted(suggestion.string for suggestion in found) == ["1", "2", "3"]


class Longwinded(StringVAE):
    """Writes one formula only, whose tree is too large for it to read."""

    def decode(self, points: object) -> list[str]:
        return ["1+1+1+1+1"] * len(np.asarray(points))


def test_strings_that_the_model_cannot_read_back_are_of_no_use(vae: StringVAE) -> None:
    surrogate, _ = fitted(vae)
    search = LatentSearch(Longwinded(vae.codec, vae.network, vae.quantiles), attempts=1)
    (found,) = suggest(search, surrogate, 1, space=GrammarSpace("arithmetic", 1, 9))
    assert search.undecodable == 1
    assert vae.unsupported([found.string]) == {}  # a random one that it can read
    with pytest.raises(InputError, match="cannot read strings of this space: the parse tree"):
        suggest(search, surrogate, 1, space=GrammarSpace("arithmetic", 7, 9))  # all its trees are too large


@pytest.mark.parametrize("model", ["character", "grammar"])
def test_a_whole_search(model: str, vae: StringVAE) -> None:
    own = vae if model == "grammar" else trained("character")
    search = LatentSearch(own, restarts=2, raw_samples=32, attempts=2)
    optimizer = Optimizer(
        SPACE,
        surrogate=StringGP(gpytorch.kernels.RBFKernel(), encoder=FeatureEncoder(own), restarts=1),
        acquisition="logei",
        search=search,
        initial=5,
        batch_size=2,
    )
    for _ in range(3):
        strings = optimizer.ask()
        optimizer.tell(strings, [value(string) for string in strings])
    assert len(optimizer.observations.seen) == 9
    assert all(SPACE.contains(row.string) for row in optimizer.observations.rows)


def test_arguments_out_of_range(vae: StringVAE) -> None:
    for options, words in (
        ({"coverage": 0.0}, "coverage"),
        ({"restarts": 0}, "restarts is 0"),
        ({"raw_samples": 4}, "raw_samples is 4"),
        ({"attempts": 1.5}, "attempts is 1.5"),
    ):
        with pytest.raises(InputError, match=words):
            LatentSearch(vae, **options)  # type: ignore[arg-type]
    surrogate, strings = fitted(vae)
    with pytest.raises(InputError, match="acquisition='logei'"):
        suggest(LatentSearch(vae), surrogate, acquisition=GIBBON())
    on_tokens = StringGP(restarts=1)
    on_tokens.fit(strings, [value(string) for string in strings], rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="this StringGP is not"):
        suggest(LatentSearch(vae), on_tokens)
    with pytest.raises(InputError, match=r"'arithmetic' of 11 rules.*the one given of \d+ rules"):
        suggest(LatentSearch(vae), surrogate, space=GrammarSpace("regex", 1, 5))
    reader = StringVAE(CharacterCodec("x+", 15), vae.network, vae.quantiles)
    with pytest.raises(InputError, match=r"alphabet x \+ 7 was asked for, and it lacks 7"):
        suggest(LatentSearch(reader), surrogate, space=StringSpace("x+7", 3))


def test_a_point_that_changes_nothing_changes_nothing_where_noise_is_known(vae: StringVAE) -> None:
    strings = SPACE.sample(12, np.random.default_rng(3))
    surrogate = StringGP(gpytorch.kernels.RBFKernel(), encoder=FeatureEncoder(vae), restarts=1)
    known = np.zeros(12)
    known[:2] = 1e4
    surrogate.fit(strings, [value(string) for string in strings], rng=np.random.default_rng(4), noise_variance=known)
    process = latent._LatentProcess.of(surrogate.model, vae.size)
    before = process.mean(process.points)
    process.observe(vae(SPACE.sample(1, np.random.default_rng(9))))
    torch.testing.assert_close(process.mean(process.points)[:12], before, rtol=1e-5, atol=1e-7)


def test_a_resumed_search_remembers_what_decoded_to_nothing(vae: StringVAE) -> None:
    def begun() -> Optimizer:
        surrogate = StringGP(gpytorch.kernels.RBFKernel(), encoder=FeatureEncoder(vae), restarts=1)
        return Optimizer(
            SPACE, surrogate=surrogate, acquisition="logei", search=LatentSearch(Recording(vae)), initial=8, seed=5
        )

    optimizer = begun()
    for _ in range(2):
        strings = optimizer.ask()
        optimizer.tell(strings, [value(string) for string in strings])
    assert optimizer.search.undecodable >= 1  # type: ignore[attr-defined]
    again = begun()
    again.load_state_dict(optimizer.state_dict())
    again.search.vae.first = False  # type: ignore[attr-defined]
    assert again.search.undecodable == optimizer.search.undecodable  # type: ignore[attr-defined]
    assert again.ask() == optimizer.ask()


def test_what_does_not_go_with_the_search_is_refused_before_anything_is_evaluated(vae: StringVAE) -> None:
    surrogate = StringGP(gpytorch.kernels.RBFKernel(), encoder=FeatureEncoder(vae))
    for options, message in (
        ({"surrogate": surrogate}, "not 'gibbon'"),
        ({"surrogate": "ssk", "acquisition": "logei"}, "this StringGP is not"),
        ({"acquisition": "logei"}, "this FullyBayesianGP is not"),
    ):
        with pytest.raises(InputError, match=message):
            Optimizer(SPACE, search=LatentSearch(vae), **options)  # type: ignore[arg-type]
    other = GrammarSpace("regex", 1, 5)
    with pytest.raises(InputError, match="asked for"):
        Optimizer(other, surrogate=surrogate, acquisition="logei", search=LatentSearch(vae))
