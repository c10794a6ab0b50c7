"""Molecules as SELFIES: there and back against RDKit, whatever is written is a molecule, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import selfies
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from seqopt.errors import InputError
from seqopt.vae import NetworkSizes, SelfiesCodec, StringVAE, TrainingSettings, train
from seqopt.vae import selfies as room

MOLECULES = [
    "CCO",
    "C[C@@H](Cl)c1c[nH]cc1",
    "C[C@H](N)C(=O)O",
    "CC(C)(C)OC(=O)N1CCC2(CC1)OCCO2",
    "O=[N+]([O-])c1ccccc1",
    "F/C=C/Br",
    "CS(=O)(=O)N",
]


def canonical(smiles: str) -> str:
    return str(Chem.MolToSmiles(Chem.MolFromSmiles(smiles)))


def test_molecules_come_back_as_the_same_ones() -> None:
    codec = SelfiesCodec.of(MOLECULES)
    assert codec.decode(codec.encode(MOLECULES)) == [canonical(smiles) for smiles in MOLECULES]
    again = SelfiesCodec.from_json(codec.to_json())
    assert np.array_equal(again.encode(MOLECULES), codec.encode(MOLECULES))


def test_rows_are_the_symbols_of_the_package() -> None:
    codec = SelfiesCodec.of(MOLECULES)
    rows = codec.encode(MOLECULES)
    for smiles, row in zip(MOLECULES, rows, strict=True):
        symbols = list(selfies.split_selfies(selfies.encoder(smiles)))
        assert [codec.alphabet[symbol - 1] for symbol in row[: len(symbols)]] == symbols
        assert row[len(symbols)] == codec.symbols  # the end
        assert not row[len(symbols) + 1 :].any()
    assert (
        codec.steps == rows.shape[1] == 1 + max(len(list(selfies.split_selfies(selfies.encoder(s)))) for s in MOLECULES)
    )


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_whatever_is_written_is_a_molecule_or_nothing(seed: int) -> None:
    codec, rng = SelfiesCodec.of(MOLECULES), np.random.default_rng(seed)
    writing = codec.writing(3)
    rows = np.zeros((3, codec.steps), dtype=np.int64)
    for step in range(codec.steps):
        if not writing.contexts().any():
            break
        allowed = writing.allowed()
        rows[:, step] = [rng.choice(np.flatnonzero(row)) for row in allowed]
        writing.write(rows[:, step])
    for smiles in codec.decode(rows):
        assert smiles == "" or smiles == canonical(smiles)


def test_contexts_while_writing_are_those_of_the_finished_row() -> None:
    codec = SelfiesCodec.of(MOLECULES)
    rows = codec.encode(MOLECULES)
    expected, writing = codec.contexts(rows), codec.writing(len(rows))
    for step in range(codec.steps):
        assert np.array_equal(writing.contexts(), expected[:, step])
        writing.write(rows[:, step])


@pytest.mark.parametrize(
    ("string", "words"),
    [
        ("CC(", ["'CC('", "no SELFIES", "parse"]),
        ("C[Si](C)(C)C", ["'C[Si](C)(C)C'", "as SELFIES", "'[Si]'"]),
        ("C" * 40, ["40 symbols", "up to"]),
        ("", ["empty string", "at least one atom"]),
        ("CF(C)C", ["no SELFIES", "constraints"]),
    ],
)
def test_strings_that_cannot_be_read(string: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        SelfiesCodec.of(MOLECULES).encode(["CCO", string])
    assert all(word in str(error.value) for word in words)


def test_strings_without_selfies_are_passed_over() -> None:
    codec = SelfiesCodec.of(["CCO", "CC(", "", "C=O"], skip=True)
    assert codec.derived(["CCO", "CC(", "", "C=O", "CBr"]) == ["CCO", "C=O"]
    with pytest.raises(InputError, match="none of the 1 strings"):
        SelfiesCodec.of(["CC("], skip=True)
    with pytest.raises(InputError, match="up to 2"):
        SelfiesCodec.of(["CCO"], max_length=2)
    with pytest.raises(InputError, match="'C' is no symbol of SELFIES"):
        SelfiesCodec.from_json({"model": "selfies", "alphabet": ["C"], "max_length": 3})


def test_without_the_package_a_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(room, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'seqopt\[selfies\]'"):
        SelfiesCodec.of(["CCO"])


def alkyl_halides() -> Sequence[str]:
    return [canonical("C" * n + end) for n in range(1, 7) for end in ("F", "Cl", "Br", "O")]


def test_a_model_learns_molecules_and_survives_its_file(tmp_path: object) -> None:
    strings = alkyl_halides()
    codec = SelfiesCodec.of(strings)
    fitted = TrainingSettings(epochs=80, batch_size=8, learning_rate=6e-3, kl_weight=0.01, held_out=0.0)
    sizes = NetworkSizes(latent=4, hidden=64, embedding=8, features=16, memory=16)
    vae = train(strings, codec, sizes, fitted, rng=np.random.default_rng(0)).vae
    assert np.mean([a == b for a, b in zip(vae.reconstruct(strings), strings, strict=True)]) > 0.5  # at random 1 of 24
    path = f"{tmp_path}/molecules.vae"
    vae.save(path)
    again = StringVAE.load(path, model="selfies")
    assert np.array_equal(again(strings), vae(strings))
    assert again.name.startswith("selfies-vae-")
    assert again.decode(np.zeros((1, 4))) == vae.decode(np.zeros((1, 4)))
    with pytest.raises(InputError, match=r"is a SELFIES model.*a grammar model was asked for"):
        StringVAE.load(path, model="grammar")
