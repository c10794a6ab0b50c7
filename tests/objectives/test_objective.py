"""Finding objectives by name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqopt.datasets import read_pool
from seqopt.errors import InputError, ObjectiveError
from seqopt.objectives import OBJECTIVES, resolve_objective


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "helper_of_mine.py").write_text("SCALE = 2\n")
    (tmp_path / "mine.py").write_text(
        "from helper_of_mine import SCALE\n"
        "NUMBER = 3\n"
        "def lengths(strings):\n"
        "    return [SCALE * len(s) for s in strings]\n"
        "class Scorer:\n"
        "    def score(self, strings):\n"
        "        return [1.0] * len(strings)\n"
        "scorer = Scorer()\n"
    )
    return tmp_path


def test_the_registry_knows_directions_and_units() -> None:
    assert {name: info.direction for name, info in OBJECTIVES.items()} == {
        "penalized_logp": "maximize",
        "logp": "maximize",
        "qed": "maximize",
        "sa_score": "minimize",
        "molecular_weight": "minimize",
        "similarity": "maximize",
        "mfe": "minimize",
        "ensemble_energy": "minimize",
        "opening_energy": "minimize",
        "accessibility": "maximize",
        "cai": "maximize",
        "log_cai": "maximize",
        "gc": "maximize",
        "gc_distance": "minimize",
        "tai": "maximize",
        "log_tai": "maximize",
        "codon_pairs": "maximize",
        "harmonization": "minimize",
        "usage": "maximize",
        "log_usage": "maximize",
        "content": "minimize",
        "codon_weights": "maximize",
        "pattern_count": "maximize",
        "expression_error": "minimize",
    }
    objective = resolve_objective("molecular_weight")
    assert (objective.name, objective.unit, objective.direction) == ("molecular_weight", "g/mol", "minimize")
    assert objective.description
    assert objective.applies_to("molecule")
    assert not objective.applies_to("protein")


def test_similarity_keeps_the_colons_of_its_argument() -> None:
    objective = resolve_objective("similarity:[CH3:1][OH:2]")
    assert objective(["[OH:2][CH3:1]"]).tolist() == [1.0]


def test_functions_of_modules_and_files_are_found(folder: Path) -> None:
    for spec in ("mine:lengths", "mine.py:lengths", "./mine.py:lengths", f"{folder / 'mine.py'}:lengths"):
        objective = resolve_objective(spec)
        assert objective(["C", "CCO"]).tolist() == [2.0, 6.0]
        assert objective.name == spec
        assert objective.applies_to("protein")
    assert resolve_objective("mine:scorer.score")(["x"]).tolist() == [1.0]


def test_a_file_named_like_an_objective_can_still_be_named(folder: Path) -> None:
    (folder / "qed.py").write_text("def own(strings):\n    return [7.0] * len(strings)\n")
    assert resolve_objective("./qed.py:own")(["C"]).tolist() == [7.0]
    with pytest.raises(InputError, match=r"takes no argument; write qed\..*\./qed\.py:own"):
        resolve_objective("qed:own")


def test_an_edited_file_is_read_again(folder: Path) -> None:
    assert resolve_objective("./mine.py:lengths")(["CC"]).tolist() == [4.0]
    (folder / "mine.py").write_text("def lengths(strings):\n    return [0.5] * len(strings)\n")
    assert resolve_objective("./mine.py:lengths")(["CC"]).tolist() == [0.5]


def test_objectives_can_be_sent_to_another_process(folder: Path, tmp_path: Path) -> None:
    (folder / "pool.csv").write_text("smiles,y\nOCC,2.5\n")
    pool = read_pool(folder / "pool.csv", values_column="y")
    specs = ["mine:lengths", "./mine.py:lengths", "logp", "similarity:CCO", "column:y"]
    objectives = [resolve_objective(spec, pool) for spec in specs]
    (folder / "objectives.pickle").write_bytes(pickle.dumps(objectives))
    code = "import pickle, sys; print([float(f(['CCO'])[0]) for f in pickle.load(open(sys.argv[1], 'rb'))])"
    root = Path(sys.modules["seqopt"].__file__ or "").resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, folder / "objectives.pickle"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected = [float(objective(["CCO"])[0]) for objective in objectives]
    assert done.stdout.strip() == str(expected)
    assert expected[0] == expected[1] == 6.0
    assert expected[3:] == [1.0, 2.5]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("penalised_logp", "did you mean 'penalized_logp'.*Built in are penalized_logp, logp"),
        ("zzz", "Built in are .*similarity:SMILES.*module:function.*column:NAME"),
        ("", "unknown objective ''"),
        ("similarity", "needs an argument: write similarity:SMILES"),
        ("similarity:", "needs an argument"),
        ("similarity:C1CC", "'C1CC' is not a readable SMILES"),
        ("column", "needs the name of a column"),
        ("column:y", "there is no pool"),
        (":function", "incomplete"),
        ("module:", "incomplete"),
        ("not a module:function", "neither a module nor a .py file"),
    ],
)
def test_unusable_names_are_explained(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_objective(spec)


def test_modules_that_cannot_be_used_are_explained(folder: Path) -> None:
    (folder / "broken.py").write_text("x = 1\nraise ValueError('the licence has expired')\n")
    (folder / "needy.py").write_text("import no_such_library\n")
    (folder / "wrong.py").write_text("def f(:\n")
    (folder / "quitter.py").write_text("import sys\nsys.exit('bye')\n")
    cases = {
        "nowhere_at_all:f": "there is no module 'nowhere_at_all'.*path/to/nowhere_at_all.py:f",
        "broken:f": r"ValueError: the licence has expired \(.*broken\.py, line 2\)",
        "broken.py:f": r"ValueError: the licence has expired \(.*broken\.py, line 2\)",
        "needy:f": "ModuleNotFoundError: No module named 'no_such_library'",
        "wrong.py:f": "(?s)SyntaxError",
        "quitter:f": "SystemExit: bye",
        "mine:length": "no function 'length', only lengths.*Did you mean 'lengths'",
        "mine:NUMBER": "an object of type int",
        "mine:Scorer": "a class",
        "absent.py:f": "there is no file .*absent.py",
    }
    for spec, message in cases.items():
        with pytest.raises(ObjectiveError, match=message):
            resolve_objective(spec)


def test_columns_are_looked_up_by_string_and_by_key(folder: Path) -> None:
    (folder / "pool.csv").write_text("smiles,Affinity\nOCC,1.5\nCCO,2.5\nc1ccccc1,3\nCCN,\n")
    pool = read_pool(folder / "pool.csv", values_column="affinity")
    objective = resolve_objective("column:affinity", pool)
    assert objective.kinds == ("molecule",)
    values = objective(["OCC", "C(C)O", "C1=CC=CC=C1", "CCN", "C1CC"])
    assert np.array_equal(values, [2.0, 2.0, 3.0, np.nan, np.nan], equal_nan=True)
    (folder / "salts.csv").write_text("smiles,y\nCC(=O)[O-].[Na+],4\n")
    salts = read_pool(folder / "salts.csv", values_column="y", standardize=True)
    assert resolve_objective("column:y", salts)(["CC(=O)O", "CC(=O)[O-]", "CC"])[:2].tolist() == [4.0, 4.0]
    with pytest.raises(InputError, match=r"needs the pool's column 'other', but the pool has .*Affinity"):
        resolve_objective("column:other", pool)
    with pytest.raises(InputError, match="the pool has no values"):
        resolve_objective("column:affinity", read_pool(folder / "pool.csv"))
