"""The one-call search: names, files, pools."""

from pathlib import Path

import pandas as pd
import pytest

import seqopt
from seqopt.datasets import read_pool
from seqopt.errors import InputError
from seqopt.objectives import logp
from seqopt.spaces import CandidateSet

ALKANES = ["C" * n + end for n in range(1, 9) for end in ("", "O", "N", "Cl")]
QUICK = {"initial": 4, "budget": 4, "batch_size": 2, "seed": 1}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.csv"
    rows = [f"{smiles},{i % 7},m{i}" for i, smiles in enumerate(ALKANES)]
    path.write_text("smiles,potency,name\n" + "\n".join([*rows, "C1CC,3,bad"]))
    return path


def test_a_named_score_on_a_file(library: Path, tmp_path: Path) -> None:
    result = seqopt.maximize("logp", library, run_folder=tmp_path / "run", **QUICK)
    assert result.best_value == pytest.approx(logp([result.best_string])[0])
    assert (result.evaluations["value"] == logp(result.evaluations["string"].tolist())).all()
    assert pd.read_csv(tmp_path / "run" / "rejected.csv")["value"].tolist() == ["C1CC"]
    assert [step.evaluations for step in result.steps] == [4, 6, 8]


def test_a_column_of_the_file_is_looked_up(library: Path) -> None:
    result = seqopt.minimize("column:potency", str(library), **QUICK)
    known = dict(zip(ALKANES, (i % 7 for i in range(len(ALKANES))), strict=True))
    assert [known[string] for string in result.evaluations["string"]] == result.evaluations["value"].tolist()
    assert result.best_value == result.evaluations["value"].min()


def test_a_pool_that_was_read_before(library: Path) -> None:
    pool = read_pool(library, values_column="potency")
    one = seqopt.maximize("column:potency", pool, **QUICK)
    other = seqopt.maximize("column:potency", library, **QUICK)
    pd.testing.assert_frame_equal(
        one.evaluations.drop(columns="seconds"), other.evaluations.drop(columns="seconds"), check_exact=True
    )


def test_standardised_keys_stay_those_of_the_pool(tmp_path: Path) -> None:
    path = tmp_path / "salts.smi"
    path.write_text("\n".join([*(f"{'C' * n}C(=O)[O-].[Na+]" for n in range(1, 9)), "CC(=O)O"]))
    pool = read_pool(path, standardize=True)
    result = seqopt.maximize(lambda strings: [len(s) for s in strings], pool, **QUICK)
    assert len(result.evaluations) == 8
    # Keys of one's own making that the space cannot recompute are found by the spelling.
    space = CandidateSet(pool.strings, kind="molecule", keys=pool.keys)
    assert len(seqopt.maximize(lambda strings: [len(s) for s in strings], space, **QUICK).evaluations) == 8


def test_a_score_for_another_kind_of_string_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "genes.fasta"
    path.write_text("".join(f">g{i}\n{'ACGT' * 3}{base}\n" for i, base in enumerate("ACGT")))
    with pytest.raises(InputError, match="qed is for molecules"):
        seqopt.maximize("qed", path, **QUICK)


@pytest.mark.parametrize("budget", [-1, None, 2.5])
def test_a_budget_is_a_whole_number(budget: object) -> None:
    with pytest.raises(InputError, match="budget is"):
        seqopt.maximize(len, ["a", "b"], budget=budget)  # type: ignore[arg-type]
