"""The thrombin library: as the package has it, where it is installed, and as files that are wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from seqopt.datasets.thrombin import REACTION, load_thrombin, scores_of
from seqopt.errors import InputError
from seqopt.spaces.combinatorial import CombinatorialSpace, Reaction


def test_scores_stand_at_their_products() -> None:
    text = "Product_Code,Scores\n" + "\n".join(
        f"A{a}_X{x}_X{y},{100 * a + 10 * x + y}" for a in range(2) for x in range(3) for y in range(3)
    )
    found = scores_of(text, ["A1", "A0"], ["X0", "X2", "X1"])
    assert found.shape == (2, 3, 3)
    assert found[0, 1, 2] == 121


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["A_X_X,1", "A_Y_X,1"], "line 3: 'A_Y_X,1' is not a product"),
        (["A_X,1"], "line 2"),
        (["A_X_X,low"], "line 2"),
        ([], "lacks the scores of 1 products"),
    ],
)
def test_tables_that_are_wrong_are_refused(lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scores_of("\n".join(["Product_Code,Scores", *lines]), ["A"], ["X"])


def test_files_that_are_missing_or_changed_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pip install --no-deps chem-tactics==1\.2\.0"):
        load_thrombin(tmp_path)
    for name in ("acids.smi", "amino_acids_no_fmoc.smi", "product_scores.csv"):
        (tmp_path / name).write_text("changed\n")
    with pytest.raises(InputError, match=r"acids\.smi has the SHA-256"):
        load_thrombin(tmp_path)


def test_products_are_those_of_the_package() -> None:
    """Two amino acids coupled by the reaction are the SMILES that the package lists beside the scores."""
    try:
        data = load_thrombin()
    except InputError as error:
        pytest.skip(str(error))
    assert data.scores.shape == (130, 62, 62)
    assert np.isfinite(data.scores).all()
    from rdkit import Chem

    spec = importlib.util.find_spec("TACTICS")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("the package is not installed")
    listed = Path(spec.submodule_search_locations[0]) / "data" / "thrombin" / "coupled_aa_sub.smi"
    coupled = {name: smiles for smiles, name in map(str.split, listed.read_text().splitlines())}
    space = CombinatorialSpace(
        [Reaction("peptide", REACTION, ("acids", "amino_acids", "amino_acids"))],
        {"acids": ["CC(=O)O"], "amino_acids": list(data.amino_acids.values())},
    )
    assert space.size == 62 * 62
    names = list(data.amino_acids)
    amine = Chem.MolFromSmarts("[N;X3;H1,H2;!$(N[C,S]=[O,N,S])]")
    acetyl = Chem.MolFromSmiles("C(C)=O")
    for name in sorted(coupled)[::97]:
        first, second = (1 + names.index(one) for one in name.split("_"))
        dipeptide = Chem.MolFromSmiles(coupled[name])
        # An acetyl on the free amine of what the package lists.
        (place,) = dipeptide.GetSubstructMatches(amine)[:1]
        editable = Chem.RWMol(Chem.CombineMols(dipeptide, acetyl))
        editable.AddBond(place[0], dipeptide.GetNumAtoms(), Chem.BondType.SINGLE)
        product = editable.GetMol()
        Chem.SanitizeMol(product)
        assert space.to_string((0, 0, first, second)) == Chem.CanonSmiles(Chem.MolToSmiles(product))
