"""What predictions rest on: contributions that sum where they should, and are those of a model's own predictions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from seqopt.encoding import Encoder, FeatureEncoder, MorganFingerprint, VaryingPositions
from seqopt.errors import ModelError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import Contributions, StringGP, contributions, contributions_of
from seqopt.models.contributions import atoms_of_symbols
from seqopt.models.registry import SURROGATES, smooth_gp

# fmt: off
SMILES = [
    "CCO", "CCCO", "CC(=O)O", "CC(=O)OCC", "c1ccccc1O", "c1ccccc1N", "CC(=O)Nc1ccc(O)cc1", "NC(=O)c1cccnc1",
    "CCCl", "CCCCBr", "C[C@H](N)C(=O)O", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "OCC1OC(O)C(O)C(O)C1O",
    "c1ccc2[nH]ccc2c1", "FC(F)(F)c1ccccc1", "CCCCCCCC", "C1CCCCC1", "C1CCCCC1O", "CCN(CC)CC", "O=C1CCCN1",
]
# fmt: on
KEYS = [Chem.CanonSmiles(smiles) for smiles in SMILES]
TEXTS = ["".join(letters) for letters in np.random.default_rng(0).choice(list("ACGT"), (20, 9))]


def crippen(smiles: str) -> np.ndarray:
    """What each atom adds to logP by Wildman and Crippen."""
    return np.array(rdMolDescriptors._CalcCrippenContribs(Chem.MolFromSmiles(smiles)))[:, 0]


def fitted(name: str) -> tuple[StringGP, list[str]]:
    gp = SURROGATES[name].build()
    molecules = "molecule" in SURROGATES[name].kinds
    keys = KEYS if molecules else TEXTS
    values = [crippen(key).sum() for key in keys] if molecules else [3.0 + key.count("AC") for key in keys]
    gp.fit(keys[:-2], values[:-2], rng=np.random.default_rng(1))
    return gp, keys


@pytest.mark.parametrize("name", ["ssk", "ssk-bayes", "one-hot", "tanimoto", "minmax"])
def test_shares_sum_to_the_prediction_less_the_prior_mean(name: str) -> None:
    gp, keys = fitted(name)
    for key in (keys[0], keys[-1]):
        found = contributions_of(gp, key)
        assert found.method == "shares"
        assert found.prior_mean + found.values.sum() == pytest.approx(found.prediction, abs=1e-8)
        assert found.prediction == pytest.approx(float(gp.predict([key])[0][0]))
        assert abs(found.rest) < 1e-8
        expected = [atom.GetSymbol() for atom in Chem.MolFromSmiles(key).GetAtoms()] if keys is KEYS else list(key)
        assert list(found.parts) == expected
        assert len(found.values) == len(expected)


@pytest.mark.parametrize("name", ["fragprints", "ssk+minmax"])
def test_what_belongs_to_no_atom_is_the_rest(name: str) -> None:
    gp, keys = fitted(name)
    found = contributions_of(gp, keys[-1])
    assert (found.unit, found.method) == ("atom", "shares")
    assert found.prior_mean + found.values.sum() + found.rest == pytest.approx(found.prediction)


def test_an_unnormalised_kernel_is_exact() -> None:
    # A linear model in counts of symbols: what each symbol adds is its weight, wherever it stands.
    gp = StringGP(SubsequenceKernel(order=1, normalize=False))
    gp.fit(TEXTS, [2.0 * text.count("A") - text.count("C") for text in TEXTS], rng=np.random.default_rng(0))
    found = contributions_of(gp, "AACCGGTTA")
    by_symbol = {symbol: {round(value, 9) for part, value in zip(found.parts, found.values, strict=True)
                          if part == symbol} for symbol in "ACGT"}  # fmt: skip
    assert all(len(values) == 1 for values in by_symbol.values())
    weights = {symbol: values.pop() for symbol, values in by_symbol.items()}
    assert weights["A"] - weights["G"] == pytest.approx(2.0, abs=0.1)
    assert weights["C"] - weights["G"] == pytest.approx(-1.0, abs=0.1)
    # Then leaving one out says the same.
    left_out = contributions_of(gp, "AACCGGTTA", "leave-one-out")
    np.testing.assert_allclose(left_out.values, found.values, atol=1e-9)


def test_atoms_that_raise_the_target_are_found() -> None:
    gp, _ = fitted("minmax")
    found = contributions_of(gp, Chem.CanonSmiles("OCCCCCC"))
    worth = dict(zip(found.parts, found.values, strict=True))
    assert worth["O"] == min(found.values)
    assert np.corrcoef(found.values, crippen(Chem.CanonSmiles("OCCCCCC")))[0, 1] > 0.5


@pytest.mark.parametrize("kernel", [NgramKernel(), SubsequenceKernel(order=3)], ids=["ngrams", "ssk"])
def test_leaving_a_symbol_out_is_to_predict_a_string_with_one_that_nobody_has(kernel: NgramKernel) -> None:
    gp = StringGP(kernel)
    gp.fit(TEXTS, [3.0 + text.count("AC") for text in TEXTS], rng=np.random.default_rng(1))
    found = contributions_of(gp, "ACGTACG", "leave-one-out")
    assert found.method == "leave-one-out"
    changed = ["ACGTACG"[:index] + "#" + "ACGTACG"[index + 1 :] for index in range(7)]
    expected = gp.predict(["ACGTACG"])[0][0] - gp.predict(changed)[0]
    np.testing.assert_allclose(found.values, expected, atol=1e-8)


@pytest.mark.parametrize("name", ["ngrams", "hamming"])
def test_shapley_values_are_means_over_all_orders_of_leaving_out(name: str) -> None:
    gp, _ = fitted(name)
    texts = [text[:5] for text in TEXTS] if name == "ngrams" else TEXTS
    string = texts[0]
    found = contributions_of(gp, string)
    assert found.method == "shapley"
    # Predictions of strings with some symbols that nobody has, one at a time.
    predicted: dict[frozenset[int], float] = {}

    def without(gone: frozenset[int]) -> float:
        if gone not in predicted:
            text = "".join("#" if index in gone else symbol for index, symbol in enumerate(string))
            predicted[gone] = float(gp.predict([text])[0][0])
        return predicted[gone]

    number = len(string)
    for part in range(number) if name == "ngrams" else (0, 4):
        others = [index for index in range(number) if index != part]
        expected = 0.0
        for size in range(number):
            weight = 1.0 / (number * math.comb(number - 1, size))
            for gone in map(frozenset, itertools.combinations(others, size)):
                expected += weight * (without(gone) - without(gone | {part}))
        assert found.values[part] == pytest.approx(expected, abs=1e-7)
    assert found.values.sum() == pytest.approx(without(frozenset()) - without(frozenset(range(number))), abs=1e-7)


def test_of_a_mixture_kernels_contribute_what_each_has() -> None:
    gp = SURROGATES["mixture"].build()
    gp.fit(TEXTS, [text.count("AC") + 0.5 * text.count("G") for text in TEXTS], rng=np.random.default_rng(1))
    kernels = {type(member.evaluator.kernel).__name__ for member in contributions._members(gp)}
    assert len(kernels) > 1
    found = contributions_of(gp, TEXTS[0])
    assert found.method == ("shapley" if kernels - {"SubsequenceKernel", "OneHotKernel"} else "shares")
    none, whole = gp.predict(["#" * 9, TEXTS[0]])[0]
    assert found.values.sum() == pytest.approx(whole - none, abs=1e-6)
    # Where all are asked for, shares of kernels are replaced by what leaving symbols out says of them.
    every = contributions_of(gp, TEXTS[0], "shapley")
    assert every.values.sum() == pytest.approx(whole - none, abs=1e-6)
    assert np.corrcoef(every.values, found.values)[0, 1] > 0.9


def test_symbols_that_are_not_compared_contribute_nothing() -> None:
    # Four sites of a long string: exact, though the string has more parts than that.
    background = "MKAVLLAG" * 6
    variants = ["".join(letters) for letters in np.random.default_rng(2).choice(list("ACDE"), (25, 4))]
    sites = [3, 17, 30, 41]

    def whole(four: str) -> str:
        letters = list(background)
        for site, letter in zip(sites, four, strict=True):
            letters[site] = letter
        return "".join(letters)

    strings = [whole(four) for four in variants]
    gp = StringGP(NgramKernel(), encoder=VaryingPositions(Encoder(), background, sites))
    gp.fit(strings, [float(four.count("A") + four.count("CD")) for four in variants], rng=np.random.default_rng(1))
    found = contributions_of(gp, strings[0])
    others = [index for index in range(48) if index not in sites]
    assert not found.values[others].any()
    assert found.values[sites].all()
    again = contributions_of(gp, strings[0], rng=np.random.default_rng(9))
    np.testing.assert_array_equal(again.values, found.values)


def test_of_long_strings_several_symbols_in_a_row_share_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    gp, _ = fitted("ngrams")
    monkeypatch.setattr(contributions, "MOST_PLAYERS", 5)
    found = contributions_of(gp, TEXTS[0])
    # Nine symbols in five groups, the last of one.
    np.testing.assert_array_equal(found.values[:8:2], found.values[1:8:2])
    without = gp.predict([TEXTS[0], "#" * 9])[0]
    assert found.values.sum() == pytest.approx(without[0] - without[1], abs=1e-7)


def test_drawn_orders_come_close_to_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    gp, keys = fitted("ngrams+counts")
    key = next(key for key in keys if Chem.MolFromSmiles(key).GetNumAtoms() == 10)
    exact = contributions_of(gp, key)
    assert exact.method == "shapley"
    monkeypatch.setattr("seqopt.models.contributions.EXACT_PARTS", 5)
    drawn = contributions_of(gp, key)
    largest = np.abs(exact.values).max()
    assert 0.0 < np.abs(drawn.values - exact.values).max() < 0.1 * largest
    assert drawn.values.sum() == pytest.approx(exact.values.sum())
    # The same orders each time, others from another generator.
    np.testing.assert_array_equal(contributions_of(gp, key).values, drawn.values)
    other = contributions_of(gp, key, rng=np.random.default_rng(5))
    assert 0.0 < np.abs(drawn.values - other.values).max() < 0.1 * largest


@pytest.mark.parametrize("counts", [True, False])
def test_leaving_an_atom_out_takes_its_environments_away(counts: bool) -> None:
    featurizer = MorganFingerprint(counts=counts, size=256)
    gp = smooth_gp(featurizer, 5.0)
    gp.fit(KEYS, [crippen(key).sum() for key in KEYS], rng=np.random.default_rng(1))
    assert contributions_of(gp, KEYS[6]).method == "shapley"
    found = contributions_of(gp, KEYS[6], "leave-one-out")
    row = featurizer([KEYS[6]]).toarray()[0]
    environments = featurizer.environments(KEYS[6])
    for atom, value in enumerate(found.values):
        left = np.bincount([column for column, atoms in environments if atom not in atoms], minlength=256)
        values = left if counts else np.minimum(left, 1)
        assert (values <= row).all()
        gp.encoder = FeatureEncoder(_Fixed(values))
        assert found.prediction - value == pytest.approx(float(gp.predict(["C"])[0][0]), abs=1e-8)


class _Fixed:
    """Features that are always the same."""

    name = "fixed"

    def __init__(self, row: np.ndarray) -> None:
        self.row = row

    def __call__(self, strings: list[str]) -> np.ndarray:
        return np.repeat(self.row[None].astype(np.float64), len(strings), axis=0)


@pytest.mark.parametrize(
    "featurizer", [MorganFingerprint(counts=True), MorganFingerprint(radius=3, counts=True, size=64)]
)
def test_environments_are_those_that_a_fingerprint_counts(featurizer: MorganFingerprint) -> None:
    rows = featurizer(KEYS).toarray()
    for key, row in zip(KEYS, rows, strict=True):
        environments = featurizer.environments(key)
        columns = [column for column, _ in environments]
        np.testing.assert_array_equal(np.bincount(columns, minlength=featurizer.size), row)
        atoms = Chem.MolFromSmiles(key).GetNumAtoms()
        assert {atom for _, found in environments for atom in found} == set(range(atoms))


def test_symbols_of_a_smiles_belong_to_its_atoms() -> None:
    for key in KEYS:
        mol = Chem.MolFromSmiles(key)
        for tokenizer in ("characters", "smiles", "smiles-split"):
            symbols = Encoder(tokenizer).tokenizer.tokenize(key)
            atoms = atoms_of_symbols(key, symbols)
            assert set(atoms) - {-1} == set(range(mol.GetNumAtoms()))
            for index, atom in enumerate(mol.GetAtoms()):
                text = "".join(symbol for symbol, owner in zip(symbols, atoms, strict=True) if owner == index)
                assert atom.GetSymbol().lower() in text.lower()
    with pytest.raises(ModelError, match="do not make up the SMILES 'CCO'"):
        atoms_of_symbols("CCO", ["C", "O"])


def test_contributions_of_symbols_are_drawn_on_atoms() -> None:
    gp = StringGP(SubsequenceKernel(order=3), encoder=Encoder("smiles"))
    gp.fit(KEYS, [crippen(key).sum() for key in KEYS], rng=np.random.default_rng(1))
    found = contributions_of(gp, KEYS[4])
    drawn = found.by_atom(KEYS[4])
    assert (found.unit, len(drawn)) == ("symbol", Chem.MolFromSmiles(KEYS[4]).GetNumAtoms())
    owners = atoms_of_symbols(KEYS[4], found.parts)
    assert drawn.sum() == pytest.approx(found.values[owners >= 0].sum())


def test_what_cannot_say_says_so() -> None:
    with pytest.raises(ModelError, match="object is not a Gaussian process"):
        contributions_of(object(), "A")
    gp = StringGP(NgramKernel())
    with pytest.raises(ModelError, match="has not been fitted yet"):
        contributions_of(gp, "A")
    gp.fit(TEXTS, [float(text.count("A")) for text in TEXTS], rng=np.random.default_rng(1))
    with pytest.raises(ModelError, match="it has no shares, take shapley or leave-one-out"):
        contributions_of(gp, TEXTS[0], "shares")
    codons = SURROGATES["codons"].build()
    codons.fit(["ATGGCC", "ATGGCA", "ATGAAA"], [1.0, 2.0, 3.0], rng=np.random.default_rng(1))
    with pytest.raises(ModelError, match="no contributions under the features"):
        contributions_of(codons, "ATGGCC")


def test_where_prediction_and_prior_mean_are_equal_parts_are_scaled_by_the_slope() -> None:
    found = Contributions("symbol", ("A", "B"), np.array([0.5, -0.5]), "shares", 1.0, 1.0)
    back = found.in_units(lambda value: 10**value)
    np.testing.assert_allclose(back.values, [5 * np.log(10), -5 * np.log(10)], rtol=1e-5)
    assert (back.prior_mean, back.prediction) == (10.0, 10.0)
