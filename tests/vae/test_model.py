"""Models as featurisers and decoders, and their files."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqopt.encoding import FeatureEncoder, Featurizer
from seqopt.errors import InputError
from seqopt.grammar import Rules, load_grammar
from seqopt.spaces import GrammarSpace
from seqopt.vae import CharacterCodec, GrammarCodec, NetworkSizes, StringVAE, evaluate_vae
from seqopt.vae.checkpoint import read_checkpoint, write_checkpoint
from seqopt.vae.model import LEVELS, build_network

GRAMMARS = {name: GrammarSpace(name, 1, 30) for name in ("arithmetic", "regex", "smiles")}


def untrained(codec: CharacterCodec | GrammarCodec, seed: int = 0, spread: float = 2.0) -> StringVAE:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_network(codec, NetworkSizes(4, 16, 4, 8, 8))
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=spread)
    return StringVAE(codec, network, np.linspace(-1, 1, len(LEVELS))[:, None] * np.ones(4))


@given(st.sampled_from(["arithmetic", "regex"]), st.integers(0, 2**31), st.integers(0, 30), st.floats(0.1, 50.0))
@example("smiles", 1, 30, 3.0)
@settings(max_examples=8, deadline=None)
def test_whatever_a_grammar_model_decodes_is_grammatical(name: str, seed: int, room: int, spread: float) -> None:
    rules = GRAMMARS[name].rules
    least = GrammarCodec(rules, 1 << 20, name).needs[rules.start]
    codec = GrammarCodec(rules, least + room, name)
    points = np.random.default_rng(seed).normal(scale=spread, size=(8, 4))
    for string in untrained(codec, seed).decode(points):
        codec.parser.parse(string)


@pytest.mark.slow
def test_trained_models_decode_random_points_to_strings(trained: dict[str, StringVAE]) -> None:
    points = np.random.default_rng(0).normal(scale=4.0, size=(300, 6))
    for string in trained["grammar"].decode(points):
        assert len(trained["grammar"].codec.parser.parse(string).rules) <= trained["grammar"].codec.steps
    decoded = trained["character"].decode(points)
    assert set("".join(decoded)) <= set(trained["character"].codec.alphabet)
    assert max(map(len, decoded)) <= trained["character"].codec.max_length


def test_what_is_decoded_is_most_likely_symbol_by_symbol() -> None:
    codec = CharacterCodec("ab", 4)
    vae = untrained(codec)
    # No weights belong to the last step alone, so models of before it was masked are read as they are.
    assert vae.network.context.weight.shape[0] == 2
    points = np.random.default_rng(2).normal(scale=3.0, size=(200, 4))
    strings = vae.decode(points)
    assert {0, 4} < set(map(len, strings))
    rows = torch.from_numpy(codec.encode(strings))
    contexts = torch.from_numpy(codec.contexts(rows.numpy()))
    likelihood, right = vae.network.log_likelihood(torch.from_numpy(points).float(), rows, contexts)
    assert right.all()
    # The last symbol of a string of the greatest length is certain: that a longer one had been likely changes nothing.
    longest = rows[:, -1] > 0
    begun, _ = vae.network.log_likelihood(torch.from_numpy(points).float(), rows[:, :-1], contexts[:, :-1])
    torch.testing.assert_close(likelihood[longest], begun[longest])


def test_decoding_does_not_depend_on_the_company(trained: dict[str, StringVAE]) -> None:
    points = np.random.default_rng(1).normal(size=(600, 6))
    for vae in trained.values():
        together = vae.decode(points)
        assert together[:5] == vae.decode(points[:5])
        assert together[595:] == [vae.decode(point[None])[0] for point in points[595:]]
        assert vae.decode(points[:0]) == []


def test_a_model_is_a_featurizer(trained: dict[str, StringVAE], tiny: list[str]) -> None:
    for vae in trained.values():
        assert isinstance(vae, Featurizer)
        rows = FeatureEncoder(vae).encode(tiny)
        assert rows.values.dtype == np.float64
        assert rows.width == vae.size == 6
        mean, deviation = vae.posterior(tiny)
        np.testing.assert_array_equal(rows.values, mean)
        assert (deviation > 0).all()
        assert vae([]).shape == (0, 6)
    assert trained["character"].name != trained["grammar"].name


def test_boxes_are_nested_and_hold_their_share(trained: dict[str, StringVAE], tiny: list[str]) -> None:
    vae = trained["grammar"]
    whole, most, half = vae.box(1.0), vae.box(0.75), vae.box(0.5)
    assert (whole[0] <= most[0]).all()
    assert (most[0] < half[0]).all()
    assert (half[1] < most[1]).all()
    codes = vae(tiny)
    inside = ((codes >= most[0]) & (codes <= most[1])).mean(axis=0)
    # Part of the strings were held out, and what a model learns differs in its last digits between machines.
    np.testing.assert_allclose(inside, 0.75, atol=0.12)
    for coverage in (0.0, 1.1, float("nan")):
        with pytest.raises(InputError, match="coverage"):
            vae.box(coverage)


def test_points_of_a_wrong_shape(trained: dict[str, StringVAE]) -> None:
    vae = trained["character"]
    for points in (np.zeros(6), np.zeros((2, 5))):
        with pytest.raises(InputError, match="expected n x 6"):
            vae.decode(points)
    with pytest.raises(InputError, match="not finite"):
        vae.decode(np.full((1, 6), np.nan))


@pytest.mark.parametrize("model", ["character", "grammar"])
def test_files_give_the_model_back(model: str, trained: dict[str, StringVAE], tiny: list[str], tmp_path: Path) -> None:
    vae = trained[model]
    path = tmp_path / "deep" / "model.vae"
    vae.save(path)
    again = StringVAE.load(path)
    assert again.name == vae.name
    assert again.facts == vae.facts
    np.testing.assert_array_equal(again(tiny), vae(tiny))
    np.testing.assert_array_equal(again.box(), vae.box())
    points = np.random.default_rng(0).normal(size=(20, 6))
    assert again.decode(points) == vae.decode(points)
    assert os.listdir(path.parent) == ["model.vae"]
    with np.load(path, allow_pickle=False) as archive:  # arrays of numbers, nothing else
        assert all(archive[name].dtype.kind in "fiu" for name in archive.files)


def test_a_file_for_something_else_is_refused(trained: dict[str, StringVAE], tmp_path: Path) -> None:
    for name, vae in trained.items():
        vae.save(tmp_path / name)
    StringVAE.load(tmp_path / "grammar", model="grammar", grammar="arithmetic")
    StringVAE.load(tmp_path / "grammar", grammar=Rules.of(load_grammar("arithmetic")))
    StringVAE.load(tmp_path / "character", model="character", alphabet="x+1")
    for name, expected, words in (
        ("grammar", {"grammar": "smiles"}, r"grammar 'arithmetic' of 11 rules.*grammar 'smiles' of \d+ rules"),
        ("grammar", {"model": "character"}, "is a grammar model.*a character model was asked for"),
        ("character", {"grammar": "arithmetic"}, "is a character model.*grammar 'arithmetic'"),
        ("character", {"alphabet": ["x", "N", "Q"]}, r"alphabet of \d+ symbols.*alphabet x N Q.*lacks N Q"),
    ):
        with pytest.raises(InputError, match=words) as error:
            StringVAE.load(tmp_path / name, **expected)  # type: ignore[arg-type]
        assert str(tmp_path / name) in str(error.value)


class Harmful:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_file_is_never_run(trained: dict[str, StringVAE], tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    plain, archive, tensors = (tmp_path / name for name in ("plain", "archive", "tensors"))
    plain.write_bytes(pickle.dumps(Harmful(mark)))
    torch.save({"weights": Harmful(mark)}, tensors)
    facts, arrays = trained["character"].to_checkpoint()
    text = np.frombuffer(json.dumps({"format": "seqopt vae", "version": 1, **facts}).encode(), dtype=np.uint8)
    harmful = np.empty(1, dtype=object)
    harmful[0] = Harmful(mark)
    with open(archive, "wb") as stream:
        np.savez(stream, facts=text, **{**arrays, "quantiles": harmful})
    for path in (plain, archive, tensors):
        with pytest.raises(InputError, match="not a model that seqopt train-vae wrote"):
            StringVAE.load(path)
    assert not mark.exists()


def test_files_that_are_no_models(trained: dict[str, StringVAE], tmp_path: Path) -> None:
    vae = trained["grammar"]
    good = tmp_path / "good"
    vae.save(good)
    facts, arrays = read_checkpoint(good)
    content = good.read_bytes()
    empty_zip = tmp_path / "zip"
    with zipfile.ZipFile(empty_zip, "w"):
        pass
    np.save(tmp_path / "array.npy", np.zeros(3))
    files = {"empty": b"", "text": b"x+1\nx+2\n", "cut": content[: len(content) // 2], "garbage": b"PK\x03\x04junk"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in (*files, "zip", "array.npy"):
        with pytest.raises(InputError, match="not a model that seqopt train-vae wrote"):
            StringVAE.load(tmp_path / name)
    for name in ("absent", "."):
        with pytest.raises(InputError, match="there is no model file"):
            StringVAE.load(tmp_path / name)

    own = {name: fact for name, fact in facts.items() if name not in ("format", "version")}
    short = {name: array for name, array in arrays.items() if name != "weights/output.bias"}
    wrong = arrays | {"weights/output.bias": arrays["weights/output.bias"].astype(np.int64)}
    bad = tmp_path / "bad"
    for changed, contents, words in (
        ({"version": 99}, arrays, "later seqopt"),
        ({"format": "other"}, arrays, "not a model that"),
        ({"codec": {"model": "telepathy"}}, arrays, "does not describe a model"),
        ({"sizes": {"latent": 0}}, arrays, "does not describe a model"),
        ({}, short, "weights output.bias do not fit"),
        ({}, wrong, "weights output.bias do not fit"),
        ({"sizes": own["sizes"] | {"hidden": 9}}, arrays, "do not fit"),
        ({}, {name: array for name, array in arrays.items() if name != "quantiles"}, "quantiles"),
    ):
        write_checkpoint(bad, own | changed, contents)
        with pytest.raises(InputError, match=words):
            StringVAE.load(bad)


def test_evaluation_by_hand() -> None:
    class Echo(StringVAE):
        def decode(self, points: object) -> list[str]:
            return ["x+1", "xx", ""] if len(np.asarray(points)) == 3 else ["x", "x", "", "2"]

    vae = untrained(CharacterCodec.of(["x+1", "x", "2"]), spread=0.1)
    vae.__class__ = Echo
    measured = evaluate_vae(vae, ["x+1", "x", "2"], rng=np.random.default_rng(0), samples=4, valid=str.isdigit)
    assert measured.characters_right == (3 + 1 + 0) / (3 + 2 + 1)
    assert measured.strings_right == pytest.approx(1 / 3)
    assert (measured.samples, measured.valid, measured.distinct) == (4, 0.25, 0.75)
    assert measured.active == int((vae(["x+1", "x", "2"]).var(axis=0) > 0.01).sum())
    assert list(measured.kl_per_dimension) == sorted(measured.kl_per_dimension, reverse=True)
    with pytest.raises(InputError, match="no strings"):
        evaluate_vae(vae, [], rng=np.random.default_rng(0))
