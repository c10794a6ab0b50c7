"""Files that nobody's training wrote: each is refused with a message, before it has cost time or memory."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqopt.errors import InputError
from seqopt.vae import CharacterCodec, GrammarCodec, NetworkSizes, StringVAE
from seqopt.vae import checkpoint as checkpoint_module
from seqopt.vae.checkpoint import open_checkpoint, read_checkpoint, write_checkpoint
from seqopt.vae.model import LEVELS, build_network
from seqopt.vae.networks import VariationalNetwork

STRINGS = ["x+1", "x*(2)", "sin(x)", "3"]
NOT_ONE = "not a model that seqopt train-vae wrote, or is damaged"


def model(codec: CharacterCodec | GrammarCodec) -> StringVAE:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build_network(codec, NetworkSizes(3, 8, 4, 4, 4))
    return StringVAE(codec, network, np.linspace(-1, 1, len(LEVELS))[:, None] * np.ones(3))


@pytest.fixture(params=["character", "grammar"])
def vae(request: pytest.FixtureRequest) -> StringVAE:
    if request.param == "character":
        return model(CharacterCodec.of(STRINGS))
    return model(GrammarCodec.of("arithmetic", STRINGS))


@pytest.fixture
def characters() -> StringVAE:
    return model(CharacterCodec.of(STRINGS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.vae"


def entry(array: Any) -> bytes:
    """An array as it stands in a file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def header(shape: str, dtype: str = "<f4", version: tuple[int, int] = (1, 0)) -> bytes:
    """An array that declares a shape, and holds 16 bytes."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".ljust(117).encode() + b"\n"
    size = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text + bytes(16)


def rewrite(
    vae: StringVAE, path: Path, changes: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED
) -> Path:
    """The file of ``vae`` with other, further, or without some entries."""
    vae.save(path)
    with zipfile.ZipFile(path) as archive:
        entries: dict[str, bytes | None] = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in (entries | changes).items():
            if content is not None:
                archive.writestr(name, content)
    return path


def refused(path: Path, words: str) -> str:
    """The message, which names the file, with which it is refused at the cost of little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=words) as error:
            StringVAE.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["quantiles", "weights/output.bias", "weights/further", "training/generator", "facts"])
@pytest.mark.parametrize("shape", ["(1000000000000,)", "(0, 10000000000000000000000)", "(-1, -4)", "(5,)"])
def test_headers_that_declare_what_the_file_does_not_hold(
    name: str, shape: str, characters: StringVAE, path: Path
) -> None:
    said = refused(rewrite(characters, path, {f"{name}.npy": header(shape)}), NOT_ONE)
    assert f"'{name}' is declared as" in said
    assert "expected what its 16 bytes hold" in said
    with pytest.raises(InputError, match=NOT_ONE):
        read_checkpoint(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantiles", "further", "weights/further"])
def test_compressed_arrays_are_not_unpacked(name: str, characters: StringVAE, path: Path) -> None:
    zeros = entry(np.zeros(1 << 23))
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        rewrite(characters, path, {f"{name}.npy": zeros}, compression)
        assert path.stat().st_size < 1 << 20
        assert "compressed" in refused(path, NOT_ONE)


def test_damaged_compression_is_refused_like_any_other(characters: StringVAE, path: Path) -> None:
    generator = random.Random(0)
    content = rewrite(characters, path, {}, zipfile.ZIP_LZMA).read_bytes()
    for _ in range(20):
        changed = bytearray(content)
        for index in generator.sample(range(40, len(content) // 2), 20):
            changed[index] ^= 0xFF
        path.write_bytes(changed)
        refused(path, NOT_ONE)


def test_a_file_with_changed_bytes_loads_or_is_refused(vae: StringVAE, path: Path) -> None:
    generator = random.Random(1)
    vae.save(path)
    content = path.read_bytes()
    for _ in range(150):
        changed = bytearray(content)
        for index in generator.sample(range(len(content)), 3):
            changed[index] = generator.randrange(256)
        path.write_bytes(changed)
        with contextlib.suppress(InputError):
            StringVAE.load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"further.npy": entry([1.0])}, "'further.npy', which no model has"),
        ({"readme.txt": b"hello"}, "'readme.txt', which no model has"),
        ({"weights/further.npy": entry(np.zeros(2, dtype=np.float32))}, "has no weights 'further'"),
        ({"quantiles.npy": header("(4,)", version=(3, 0))}, r"a header of version \(3, 0\)"),
        ({"quantiles.npy": header("(2,)", "<U2")}, "the type '<U2', expected numbers"),
        ({"quantiles.npy": header("(2,)", "|O")}, "the type 'object', expected numbers"),
        ({"quantiles.npy": header("(1,)", "<c16")}, "the type 'complex128', expected numbers"),
        ({"quantiles.npy": header("((((")}, NOT_ONE),
        ({"quantiles.npy": b""}, NOT_ONE),
        ({"facts.npy": None}, "holds no facts"),
        ({"facts.npy": entry(np.zeros(3))}, "its facts have type float64 and shape"),
        ({"facts.npy": entry(np.zeros((1, 3), dtype=np.uint8))}, "its facts have type uint8 and shape"),
    ],
)
def test_entries_that_no_model_has(changes: dict[str, bytes | None], words: str, vae: StringVAE, path: Path) -> None:
    refused(rewrite(vae, path, changes), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, NOT_ONE),
        ("3", "its format is 3, expected 'seqopt vae'"),
        ('{"version": 1}', "its format is None"),
        ('{"format": "seqopt vae"}', "version of its format is None"),
        ('{"format": "seqopt vae", "version": Infinity}', "version of its format is inf"),
        ('{"format": "seqopt vae", "version": true}', "version of its format is True"),
        ('{"format": "seqopt vae", "version": 1}', "does not describe a model"),
    ],
)
def test_facts_that_are_no_facts(text: str, words: str, characters: StringVAE, path: Path) -> None:
    facts = entry(np.frombuffer(text.encode(), dtype=np.uint8))
    refused(rewrite(characters, path, {"facts.npy": facts}), words)


def test_facts_of_any_size_are_not_read(characters: StringVAE, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    characters.save(path)
    monkeypatch.setattr(checkpoint_module, "LARGEST_FACTS", 100)
    refused(path, r"its facts are \d+ bytes, expected at most 100")
    with pytest.raises(InputError, match=r"its facts are \d+ bytes, at most 100"):
        characters.save(path)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("cannot"), OSError("cannot")])
def test_what_goes_wrong_while_an_array_is_read(
    error: Exception, characters: StringVAE, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise error

    characters.save(path)
    with open_checkpoint(path) as checkpoint:
        monkeypatch.setattr(np.lib.format, "read_array", read)
        with pytest.raises(InputError, match=re.escape(str(path))):
            checkpoint.read("quantiles")


def test_an_entry_that_stands_there_twice(characters: StringVAE, path: Path) -> None:
    characters.save(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("quantiles.npy", entry(characters.quantiles))
    refused(path, "'quantiles' twice")


@pytest.mark.parametrize("name", ["quantiles", "facts"])
def test_a_directory_of_entries_that_are_larger_than_the_file(name: str, characters: StringVAE, path: Path) -> None:
    declared = header("(1000000000000,)", "|u1" if name == "facts" else "<f4")
    rewrite(characters, path, {f"{name}.npy": None})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{name}.npy", declared)
        info = archive.getinfo(f"{name}.npy")
        info.file_size = info.compress_size = len(declared) - 16 + 10**12 * (1 if name == "facts" else 4)
    refused(path, r"entries are [\d,]+ bytes, expected no more|facts are 1,000,000,000,000 bytes, expected at most")


@pytest.mark.parametrize("hidden", [12_000, 10**6, 10**12, 10**30])
def test_sizes_that_the_weights_do_not_have_cost_no_memory(
    hidden: int, vae: StringVAE, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, arrays = vae.to_checkpoint()
    facts["sizes"]["hidden"] = hidden
    write_checkpoint(path, facts, arrays)
    devices = []
    original = VariationalNetwork.__init__

    def recorded(network: VariationalNetwork, *arguments: Any, **options: Any) -> None:
        original(network, *arguments, **options)
        devices.append(network.output.weight.device.type)

    with monkeypatch.context() as patch:
        patch.setattr(VariationalNetwork, "__init__", recorded)
        said = refused(path, "do not fit the model that it describes|does not describe a model")
    assert set(devices) <= {"meta"}
    if hidden < 10**12:
        assert "weights encoder.0.weight" in said
        assert f"expected float32 of shape ({hidden}, " in said


def test_loading_leaves_the_global_generator_alone(vae: StringVAE, path: Path) -> None:
    vae.save(path)
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    again = StringVAE.load(path)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(weights.device.type == "cpu" for weights in again.network.state_dict().values())
    assert again.network.possible.device.type == "cpu"
    np.testing.assert_array_equal(again(STRINGS), vae(STRINGS))


@pytest.mark.slow
def test_shapes_are_compared_without_what_torch_imports_for_random_numbers_on_no_device(
    vae: StringVAE, path: Path
) -> None:
    vae.save(path)
    text = (
        "import sys; from seqopt.vae import StringVAE; before = 'sympy' in sys.modules; "
        f"StringVAE.load({str(path)!r}); assert before or 'sympy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


@pytest.mark.parametrize("value", [1e30, float("nan"), float("inf"), "9", None, True, [], 10**30, -(10**30), 0])
@pytest.mark.parametrize("name", ["max_length", "max_rules"])
def test_lengths_that_are_none(name: str, value: object, path: Path) -> None:
    codec = CharacterCodec.of(STRINGS) if name == "max_length" else GrammarCodec.of("arithmetic", STRINGS)
    facts, arrays = model(codec).to_checkpoint()
    facts["codec"][name] = value
    write_checkpoint(path, facts, arrays)
    refused(path, "does not describe a model")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer": 3}, "tokenizer is 3; expected text"),
        ({"tokenizer": ["characters"]}, r"tokenizer is \['characters'\]; expected text"),
        ({"tokenizer": None}, "tokenizer is None; expected text"),
        ({"tokenizer": "words"}, "unknown tokenizer"),
        ({"alphabet": [1, 2, 3]}, "item 0 of alphabet is 1; expected text"),
        ({"alphabet": ["x", None]}, "item 1 of alphabet is None; expected text"),
        ({"alphabet": ["x", ["y"]]}, "item 1 of alphabet is"),
        ({"alphabet": ["x", ""]}, "a symbol of the alphabet is empty"),
        ({"alphabet": "abc"}, "alphabet is 'abc'; expected a list"),
        ({"alphabet": {"x": 1}}, "alphabet is .*expected a list"),
        ({"alphabet": []}, "the alphabet is empty"),
        ({"model": "grammar"}, "names is None; expected a list"),
        ({"model": ["character"]}, "unhashable"),
    ],
)
def test_characters_that_are_none(changes: dict[str, Any], words: str, characters: StringVAE, path: Path) -> None:
    facts, arrays = characters.to_checkpoint()
    facts["codec"] |= changes
    write_checkpoint(path, facts, arrays)
    said = refused(path, words)
    assert "does not describe a model" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "name is 3; expected text"),
        ({"names": ["S", 1]}, "item 1 of names is 1; expected text"),
        ({"start": 1.0}, "start is 1.0; expected an integer"),
        ({"start": 2}, "is 2; expected text, or the number of one of 2 names"),
        ({"heads": [0.0]}, "item 0 of heads is 0.0"),
        ({"heads": [0]}, "1 heads and 11 bodies"),
        ({"heads": [], "bodies": []}, "0 heads and 0 bodies"),
        ({"heads": [-1] * 11}, "is -1; expected"),
        ({"bodies": ["x"] * 11}, "item 0 of bodies is 'x'; expected a list"),
        ({"bodies": [[0, None]] * 11}, "is None; expected"),
        ({"bodies": [[0, ""]] * 11}, "is ''; expected"),
        ({"bodies": [[True]] * 11}, "is True; expected"),
        ({"bodies": [[0]] * 11}, "never end"),
        ({"names": ["S"] * 20_000, "heads": [0] * 20_000, "bodies": [["x"]] * 20_000}, "table would have 400,"),
    ],
)
def test_grammars_that_are_none(changes: dict[str, Any], words: str, path: Path) -> None:
    facts, arrays = model(GrammarCodec.of("arithmetic", STRINGS)).to_checkpoint()
    facts["codec"] |= changes
    write_checkpoint(path, facts, arrays)
    said = refused(path, words)
    assert "does not describe a model" in said


def test_a_symbol_that_needs_more_rules_than_can_be_counted_is_never_begun(path: Path) -> None:
    depth = 70  # each symbol is two of the next, so the first needs 2^70 rules
    names = ["S", *(f"A{number}" for number in range(depth))]
    heads = [0, 0, *range(1, depth), depth]
    bodies = [["x"], [1], *([number + 1, number + 1] for number in range(1, depth)), ["y"]]
    facts = {
        "model": "grammar",
        "name": "deep",
        "max_rules": 9,
        "names": names,
        "start": 0,
        "heads": heads,
        "bodies": bodies,
    }
    codec = GrammarCodec.from_json(facts)
    model(codec).save(path)
    assert set(StringVAE.load(path).decode(np.random.default_rng(0).normal(size=(20, 3)))) == {"x"}


@pytest.mark.parametrize(
    ("quantiles", "words"),
    [
        (np.full((len(LEVELS), 3), np.nan), "not all finite"),
        (np.full((len(LEVELS), 3), np.inf), "not all finite"),
        (np.zeros((len(LEVELS), 3), dtype=np.int64), r"int64 of shape \(201, 3\), expected float64"),
        (np.zeros((len(LEVELS), 4)), r"shape \(201, 4\), expected float64 of shape \(201, 3\)"),
        (np.zeros((len(LEVELS), 3), dtype=np.complex128), "expected numbers"),
        (np.full((len(LEVELS), 3), "a"), "expected numbers"),
    ],
)
def test_quantiles_that_are_none(quantiles: np.ndarray, words: str, vae: StringVAE, path: Path) -> None:
    refused(rewrite(vae, path, {"quantiles.npy": entry(quantiles)}), words)


def test_weights_that_are_not_finite(vae: StringVAE, path: Path) -> None:
    facts, arrays = vae.to_checkpoint()
    arrays["weights/output.bias"][0] = np.nan
    write_checkpoint(path, facts, arrays)
    refused(path, "weights output.bias are not finite")


def test_other_ways_to_write_the_same_file(vae: StringVAE, path: Path) -> None:
    facts, arrays = vae.to_checkpoint()
    text = json.dumps({"format": "seqopt vae", "version": 1, **facts}).encode()
    with open(path, "wb") as stream:
        np.savez(stream, facts=np.frombuffer(text, dtype=np.uint8), **arrays)
    again = StringVAE.load(path)
    assert again.name == vae.name
    np.testing.assert_array_equal(again.box(), vae.box())
    rewrite(vae, path, {"quantiles.npy": entry(np.asfortranarray(vae.quantiles))})
    np.testing.assert_array_equal(StringVAE.load(path).quantiles, vae.quantiles)
