"""Strings that a surrogate cannot take: they are never proposed, and results of them are refused with the reason."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.naming import SELECTIVE
from seqopt.encoding import (
    CodonFeatures,
    FeatureEncoder,
    Fragprints,
    JointEncoder,
    MorganFingerprint,
    SelectiveFeaturizer,
)
from seqopt.errors import ExhaustedError, InputError
from seqopt.models import StringGP, registry, resolve_surrogate, unsupported
from seqopt.search import LatentSearch, RandomSearch
from seqopt.spaces import CandidateSet, GrammarSpace, StringSpace
from seqopt.vae import CharacterCodec, Codec, GrammarCodec, NetworkSizes, StringVAE, TrainingSettings, train

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=4)]


def model(codec: Codec, strings: list[str], seed: int = 0) -> StringVAE:
    sizes, settings = NetworkSizes(latent=2, hidden=8), TrainingSettings(epochs=1, batch_size=8, held_out=0.0)
    return train(strings, codec, sizes, settings, rng=np.random.default_rng(seed)).vae


@pytest.fixture
def words(tmp_path: Path) -> str:
    path = tmp_path / "words.vae"
    model(CharacterCodec.of(WORDS), WORDS).save(path)
    return f"vae:{path}"


def test_every_refusal_names_its_place_and_reason() -> None:
    one_hot = StringGP(registry.SURROGATES["one-hot"].build().kernel)  # type: ignore[attr-defined]
    assert unsupported(one_hot, ["a", "ab"]) == {}  # until it knows the space
    one_hot.bind(StringSpace("ab", 2))
    assert list(unsupported(one_hot, ["ab", "a", "ba", "aba"])) == [1, 3]
    assert "'a' has 1 symbols" in unsupported(one_hot, ["a"])[0]
    for encoder in (FeatureEncoder(CodonFeatures()), JointEncoder(FeatureEncoder(CodonFeatures()))):
        found = encoder.unsupported(["ATG", "AT", "ATGTAA", "AXG"])
        assert list(found) == [1, 3]
        assert "'AT'" in found[1]
    assert unsupported(StringGP(), ["", "anything"]) == {}
    assert unsupported(object(), ["anything"]) == {}


def test_results_of_such_strings_are_refused_and_nothing_is_recorded(words: str) -> None:
    for surrogate, message in (
        ("one-hot", "'aab' has 3 symbols, but .* those of the space have 4: leave this string out"),
        (words, "symbol 'c' at position 2 of 'acb' is not in the model's alphabet"),
    ):
        optimizer = Optimizer(WORDS, surrogate=surrogate, initial=3)
        with pytest.raises(InputError, match=message):
            optimizer.tell(["aabb", "aab" if surrogate == "one-hot" else "acb"], [1.0, 2.0])
        assert len(optimizer.observations) == 0


@pytest.mark.slow
@pytest.mark.parametrize("search", ["auto", RandomSearch(200)])
def test_a_search_of_formulas_proposes_none_that_the_model_cannot_read(tmp_path: Path, search: object) -> None:
    space = GrammarSpace("arithmetic", 1, 8)
    short = [string for string in space.sample(400, np.random.default_rng(0)) if len(string) <= 10]
    codec = CharacterCodec.of(short)
    model(codec, short).save(tmp_path / "short.vae")
    looked_at = [space.key(string) for string in space.sample(20, np.random.default_rng(0))]
    if any(len(string) > codec.max_length for string in looked_at):
        pytest.fail("the strings looked at first are not to show what this test is about")
    unreadable = [string for string in space.sample(2000, np.random.default_rng(1)) if len(string) > codec.max_length]
    assert unreadable  # so the space holds some
    optimizer = Optimizer(
        space,
        surrogate=f"vae:{tmp_path / 'short.vae'}",
        search=search,  # type: ignore[arg-type]
        acquisition="mean",
        initial=40,
        batch_size=5,
    )
    for _ in range(3):
        strings = optimizer.ask()
        assert max(map(len, strings)) <= codec.max_length
        optimizer.tell(strings, [float(len(string)) for string in strings])  # the longest would be best


def test_lengths_are_those_of_what_is_compared_and_not_of_what_was_written() -> None:
    salts = CandidateSet(["CCO", "CCN", "CCS", "CCC.Cl"], kind="molecule", standardize=True)
    assert len(Optimizer(salts, surrogate="one-hot", initial=2).ask(4)) == 4


def test_a_space_of_which_all_that_can_be_read_is_known_is_exhausted() -> None:
    space = GrammarSpace("arithmetic", 1, 3)
    everything = space.sample(200, np.random.default_rng(0))
    short = [string for string in everything if len(string) == 1]
    vae = model(CharacterCodec.of(short, max_length=1), short)
    optimizer = Optimizer(space, surrogate=registry.latent_gp(vae), initial=2, acquisition="mean")
    known: list[str] = []
    while len(known) < len(short):
        strings = optimizer.ask(2)
        known += strings
        optimizer.tell(strings, [float(ord(string)) for string in strings])
    assert sorted(known) == sorted(short)
    with pytest.raises(ExhaustedError):
        optimizer.ask()
    optimizer.tell(["exp(x)"], [float("nan")])  # that it failed may be told
    with pytest.raises(InputError, match="leave this string out"):
        optimizer.tell(["exp(x)"], [1.0])


def test_a_model_for_other_strings_is_named_before_anything_is_evaluated(tmp_path: Path, words: str) -> None:
    formulas = GrammarSpace("arithmetic", 1, 5)
    with pytest.raises(InputError, match=r"words.vae is a character model for the alphabet of 2 symbols: a b, and"):
        Optimizer(formulas, surrogate=words)
    strings = formulas.sample(100, np.random.default_rng(0))
    grammar = model(GrammarCodec.of("arithmetic", strings), strings)
    grammar.save(tmp_path / "g.vae")
    with pytest.raises(InputError, match=r"g.vae is a grammar model .*, and cannot read all strings of this space"):
        Optimizer(WORDS, surrogate=f"vae:{tmp_path / 'g.vae'}")
    with pytest.raises(InputError, match=r"g.vae is a grammar model .* asked for"):
        Optimizer(GrammarSpace("regex", 1, 5), surrogate=f"vae:{tmp_path / 'g.vae'}")
    for space, vae in ((formulas, StringVAE.load(words[4:])), (StringSpace("x+1", 5), grammar)):
        with pytest.raises(InputError, match="cannot read strings of this space"):
            Optimizer(space, surrogate=registry.latent_gp(vae), acquisition="logei", search=LatentSearch(vae))


def test_all_symbols_of_a_pool_are_looked_at(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(registry, "TRIED", 3)
    pool = CandidateSet([*WORDS[:-1], "abca"], kind="text")
    with pytest.raises(InputError, match="symbol 'c'"):
        resolve_surrogate(words, pool)


def test_what_is_of_another_kind_is_said_before_that_it_is_too_long() -> None:
    with pytest.raises(InputError, match="symbol '\\+' at position 2"):
        CharacterCodec("ab", 3).encode(["a+bab"])


def test_recording_a_result_loads_the_models_that_may_refuse_it() -> None:
    for name, named in registry.SURROGATES.items():
        featurizer = getattr(getattr(named.build(), "encoder", None), "featurizer", None)
        # Fingerprints take every key of a molecule, which RDKit can read by definition.
        refuses = isinstance(featurizer, SelectiveFeaturizer) and not isinstance(
            featurizer, MorganFingerprint | Fragprints
        )
        assert (refuses or named.one_length) == name.startswith(SELECTIVE)
    assert registry.LATENT in SELECTIVE


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.csv"
    path.write_text("\n".join(["string", *WORDS]))
    return path


@pytest.mark.parametrize("surrogate", ["one-hot", "words"])
def test_a_campaign_refuses_lines_that_its_model_cannot_learn_from(
    tmp_path: Path, library: Path, words: str, surrogate: str
) -> None:
    name = words if surrogate == "words" else surrogate
    results = tmp_path / "older.csv"
    results.write_text("string,y\naabb,1\nbbbbbb,2\nabab,3\n")
    options = {"objective": "y", "kind": "text", "surrogate": name, "batch_size": 2}
    with Campaign.create(tmp_path / "c.seqopt", library, **options) as campaign:  # type: ignore[arg-type]
        with pytest.raises(CampaignError, match=r"older.csv, line 3: 'bbbbbb' .* cannot learn from it: 'bbbbbb' has 6"):
            campaign.record_file(results, history=True)
        assert campaign.store.counts().values == 0
        campaign.record_file(results, history=True, partial=True)
        assert len(campaign.suggest()) == 2


def test_a_campaign_keeps_to_the_model_that_it_was_begun_with(
    tmp_path: Path, library: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Campaign.create("c.seqopt", library, objective="y", kind="text", surrogate="vae:words.vae") as campaign:
        assert campaign.store.settings.surrogate == words
        for string in WORDS[:4]:
            campaign.record(string, float(string.count("a")))
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.copy(tmp_path / "words.vae", tmp_path / "kept.vae")
    model(CharacterCodec.of(WORDS), WORDS, seed=1).save(tmp_path / "words.vae")
    with Campaign.open(tmp_path / "c.seqopt") as campaign:
        with pytest.raises(CampaignError, match="was begun with character-vae-"):
            campaign.suggest()
        with pytest.raises(CampaignError, match="put that file back"):
            campaign.record("bbbb", 0.0)
        shutil.copy(tmp_path / "kept.vae", tmp_path / "words.vae")
    with Campaign.open(tmp_path / "c.seqopt") as campaign:
        assert len(campaign.suggest(3)) == 3


def test_results_that_an_older_campaign_took_are_left_out_of_the_model(
    tmp_path: Path, library: Path, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.seqopt"
    with Campaign.create(path, library, objective="y", kind="text", surrogate=words, batch_size=2) as campaign:
        monkeypatch.setattr("seqopt.campaign.naming.SELECTIVE", ("none",))
        for string, value in (("aaaa", 1.0), ("bbbbbb", 2.0), ("abab", 3.0), ("bbab", 2.0)):
            campaign.record(string, value)
        suggested = campaign.suggest(3)
    assert len(suggested) == 3
    assert "the model does not learn from 'bbbbbb'" in caplog.text


def test_a_pending_string_that_the_model_cannot_take_is_not_conditioned_on(words: str) -> None:
    optimizer = Optimizer(StringSpace("ab", 4), surrogate=words, initial=3, acquisition="mean")
    optimizer.tell(["aaaa", "abab", "bbba"], [4.0, 2.0, 1.0])
    optimizer.replay_ask([{"string": "abbaab", "key": "abbaab", "details": {}}], optimizer.state_dict())
    assert len(optimizer.ask(2)) == 2
    assert "abbaab" in optimizer.pending
