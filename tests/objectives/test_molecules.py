"""Scores of molecules, against RDKit put together by hand and published values."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import QED, AllChem, Crippen, Descriptors

from seqopt.datasets import load_zinc250k
from seqopt.errors import InputError
from seqopt.objectives import (
    OBJECTIVES,
    Similarity,
    logp,
    molecular_weight,
    penalized_logp,
    penalized_logp_terms,
    qed,
    resolve_objective,
    sa_score,
)
from seqopt.objectives.molecules import _largest_cycle, _largest_ring


@pytest.fixture(scope="module")
def zinc() -> list[str]:
    strings = load_zinc250k()
    chosen = np.random.default_rng(0).choice(len(strings), 1500, replace=False)
    return [strings[index] for index in chosen]


def test_penalized_logp_is_the_published_sum() -> None:
    for smiles, beyond_six in (("c1ccccc1", 0), ("CCO", 0), ("C1CCCCCCC1", 2), ("C1CCCCCCCCCCC1CC", 6)):
        mol = Chem.MolFromSmiles(smiles)
        (sa,) = sa_score([smiles])
        expected = (
            (Crippen.MolLogP(mol) - 2.45710) / 1.43432 + (-sa + 3.05258) / 0.83352 + (-beyond_six + 0.04857) / 0.28602
        )
        assert penalized_logp([smiles])[0] == pytest.approx(expected, rel=1e-12)
        assert penalized_logp([smiles], ring="sssr")[0] == pytest.approx(expected, rel=1e-12)


def test_benzene_by_hand() -> None:
    # Wildman and Crippen give each of six aromatic CH .1581 + .1230, and benzene is easiest to make.
    assert logp(["c1ccccc1"])[0] == pytest.approx(6 * (0.1581 + 0.1230))
    assert sa_score(["c1ccccc1"])[0] == pytest.approx(1.0)
    assert penalized_logp(["c1ccccc1"])[0] == pytest.approx(2.0952, abs=1e-4)


def test_the_best_molecule_of_zinc_has_its_published_score() -> None:
    # 4.52 is the largest score in the set (You et al. 2018, Graph convolutional policy network, table 1).
    assert penalized_logp(["COc1ccc(-c2cc(-c3ccccc3)cc(-c3ccc(Br)cc3)[o+]2)cc1"])[0] == pytest.approx(4.52, abs=0.005)


@pytest.mark.slow
def test_the_terms_are_standardised_over_zinc(zinc: list[str]) -> None:
    terms = penalized_logp_terms(zinc)
    assert np.allclose(terms.sum(axis=1), penalized_logp(zinc), rtol=0, atol=1e-10)
    assert np.abs(terms.mean(axis=0)).max() < 0.12
    assert np.abs(terms[:, :2].std(axis=0) - 1).max() < 0.1
    # Few molecules have rings beyond six atoms, so the spread of this term is itself uncertain.
    assert 0.3 < terms[:, 2].std() < 2


def test_the_largest_ring_is_that_of_the_published_cycle_basis(zinc: list[str]) -> None:
    mols = [Chem.MolFromSmiles(smiles) for smiles in zinc]
    for mol in mols[:500]:
        cycles = nx.cycle_basis(nx.Graph(Chem.GetAdjacencyMatrix(mol)))
        assert _largest_cycle(mol) == max(map(len, cycles), default=0)
    differing = np.mean([max(6, _largest_cycle(mol)) != max(6, _largest_ring(mol)) for mol in mols])
    assert 0.001 < differing < 0.02


def test_other_scores_are_rdkits(zinc: list[str]) -> None:
    some = zinc[:40]
    mols = [Chem.MolFromSmiles(smiles) for smiles in some]
    assert np.allclose(logp(some), [Crippen.MolLogP(mol) for mol in mols])
    assert np.allclose(qed(some), [QED.qed(mol) for mol in mols])
    assert np.allclose(molecular_weight(some), [Descriptors.MolWt(mol) for mol in mols])
    assert molecular_weight(["O"])[0] == pytest.approx(18.015)
    scores = sa_score(zinc[:200])
    assert ((scores >= 1) & (scores <= 10)).all()
    # Morphine is harder to make than paracetamol.
    easy, hard = sa_score(["CC(=O)Nc1ccc(O)cc1", "CN1CCC23C4C1Cc1ccc(O)c(c12)OC3C(O)C=C4"])
    assert easy < 2 < 4 < hard


def test_similarity_is_tanimoto_of_morgan_bits() -> None:
    target, others = "CC(=O)Oc1ccccc1C(=O)O", ["OC(=O)c1ccccc1OC(C)=O", "CCO", "Oc1ccccc1C(=O)O"]

    def bits(smiles: str) -> set[int]:
        return set(AllChem.GetMorganFingerprintAsBitVect(Chem.MolFromSmiles(smiles), 2, 2048).GetOnBits())

    expected = [len(bits(target) & bits(other)) / len(bits(target) | bits(other)) for other in others]
    assert np.allclose(Similarity(target)(others), expected)
    assert expected[0] == 1
    with pytest.raises(InputError, match="'C1CC' is not a readable SMILES"):
        Similarity("C1CC")


def test_scores_do_not_depend_on_the_spelling_and_bad_strings_are_nan() -> None:
    spellings = ["CC(=O)Oc1ccccc1C(=O)O", " OC(=O)c1ccccc1OC(C)=O\n", "C1CC", "", "MKV", "[H][H]"]
    for name in (name for name, info in OBJECTIVES.items() if info.kinds == ("molecule",)):
        values = resolve_objective(f"{name}:CCO" if name == "similarity" else name)(spellings)
        assert values.dtype == np.float64
        assert values[0] == pytest.approx(values[1])
        assert np.isnan(values).tolist()[:5] == [False, False, True, True, True]
    assert logp([]).shape == (0,)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="cycle_basis or sssr"):
        penalized_logp(["C"], ring="largest")
    with pytest.raises(InputError, match=r"write \['CCO'\]"):
        logp("CCO")


def test_scoring_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    penalized_logp(["C1CC", "xyz"])
    assert capfd.readouterr() == ("", "")
