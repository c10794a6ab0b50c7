"""The one-call search: names, files, pools, spaces of every kind."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import seqopt
from seqopt.datasets import read_pool
from seqopt.encoding import Encoder
from seqopt.errors import InputError, RunFolderError
from seqopt.models import registry
from seqopt.objectives import logp
from seqopt.report import write_report
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, LocalSpace, Space, StringSpace

ALKANES = ["C" * n + end for n in range(1, 9) for end in ("", "O", "N", "Cl")]
QUICK = {"initial": 4, "budget": 4, "batch_size": 2, "seed": 1}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.csv"
    rows = [f"{smiles},{i % 7},m{i}" for i, smiles in enumerate(ALKANES)]
    path.write_text("smiles,potency,name\n" + "\n".join([*rows, "C1CC,3,bad"]))
    return path


@pytest.mark.slow
def test_a_named_score_on_a_file(library: Path, tmp_path: Path) -> None:
    result = seqopt.maximize("logp", library, run_folder=tmp_path / "run", **QUICK)
    assert result.best_value == pytest.approx(logp([result.best_string])[0])
    assert (result.evaluations["value"] == logp(result.evaluations["string"].tolist())).all()
    assert pd.read_csv(tmp_path / "run" / "rejected.csv")["value"].tolist() == ["C1CC"]
    assert [step.evaluations for step in result.steps] == [4, 6, 8]


@pytest.mark.slow
def test_identifiers_of_the_file_stand_in_the_table_of_a_run(library: Path, tmp_path: Path) -> None:
    seqopt.maximize("logp", library, run_folder=tmp_path / "run", **QUICK)
    table = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    assert table["identifier"].tolist() == [f"m{ALKANES.index(string)}" for string in table["string"]]
    assert f"<td>m{ALKANES.index(table['string'][0])}</td>" in write_report(tmp_path / "run").read_text("utf-8")


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
    # Custom keys that the space cannot recompute are found by the spelling.
    space = CandidateSet(pool.strings, kind="molecule", keys=pool.keys)
    assert len(seqopt.maximize(lambda strings: [len(s) for s in strings], space, **QUICK).evaluations) == 8


def test_a_score_for_another_kind_of_string_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "genes.fasta"
    path.write_text("".join(f">g{i}\n{'ACGT' * 3}{base}\n" for i, base in enumerate("ACGT")))
    with pytest.raises(InputError, match="qed is for molecules"):
        seqopt.maximize("qed", path, **QUICK)


@pytest.mark.parametrize("budget", [-1, "ten", 2.5])
def test_a_budget_is_a_whole_number(budget: object) -> None:
    with pytest.raises(InputError, match="budget is"):
        seqopt.maximize(len, ["a", "b"], budget=budget)  # type: ignore[arg-type]


def starts_low(string: str) -> bool:
    return string[0] in "0a"


SPACES: dict[str, Callable[[], Space]] = {
    "strings": lambda: StringSpace("01", 8),
    "lengths": lambda: StringSpace("ab", min_length=2, max_length=6, accept=starts_low),
    "positions": lambda: LocalSpace(["ab", "cd", "ef", "gh", "ij"]),
    "genes": lambda: CodonSpace("TIKENIFGVS", gc=(0.3, 0.5)),
    "grammar": lambda: GrammarSpace("arithmetic", 3, 9),
}


def weight(strings: list[str]) -> list[float]:
    return [sum((index + 1) * ord(letter) for index, letter in enumerate(string)) % 101 for string in strings]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if kind != "strings" else kind for kind in SPACES],
)
def test_every_kind_of_space_is_searched_and_resumed(kind: str, tmp_path: Path) -> None:
    space = SPACES[kind]()
    options = {"initial": 6, "batch_size": 1, "seed": 1, "acquisition": "mean"}
    whole = seqopt.minimize(weight, space, run_folder=tmp_path / "whole", budget=2, **options)
    strings = whole.evaluations["string"].tolist()
    assert len(strings) == len(set(strings)) == 8
    assert all(space.contains(string) for string in strings)
    assert whole.best_value == min(weight(strings))
    # Half the budget, and then the rest in a space made anew.
    seqopt.minimize(weight, SPACES[kind](), run_folder=tmp_path / "half", budget=1, **options)
    resumed = seqopt.minimize(weight, SPACES[kind](), run_folder=tmp_path / "half", budget=2, resume=True, **options)
    pd.testing.assert_frame_equal(
        whole.evaluations.drop(columns="seconds"), resumed.evaluations.drop(columns="seconds"), check_exact=True
    )
    settings = json.loads((tmp_path / "whole" / "summary.json").read_text())["settings"]
    assert settings["space"]["type"] == type(space).__name__


def test_a_run_goes_on_when_the_default_surrogate_has_got_another_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    space = StringSpace("01", 8)
    options: dict[str, Any] = {"initial": 6, "batch_size": 3, "seed": 0, "run_folder": tmp_path}
    with monkeypatch.context() as before:
        # As it was before motifs were among the kernels.
        before.setattr(registry, "mixture", lambda space, *, partitions=None: registry._mixed(1, sites=8))
        seqopt.maximize(weight, space, budget=3, **options)
    with pytest.raises(RunFolderError, match=r"details\.surrogate"):
        seqopt.maximize(weight, space, budget=6, resume=True, surrogate="ssk", **options)
    resumed = seqopt.maximize(weight, space, budget=6, resume=True, **options)
    assert len(resumed.evaluations) == 12
    assert "substitutions then, " in caplog.text
    assert "one motif now" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("began", "other", "said"),
    [
        (StringSpace("01", 8), StringSpace("012", 8), "space.alphabet was '01', is now '012'"),
        (
            StringSpace("01", 8),
            StringSpace("01", 8, accept=starts_low),
            "(space.accept was None, is now 'starts_low')",
        ),
        (CodonSpace(40 * "TIK"), CodonSpace(39 * "TIK" + "TIR"), "(120 characters; another from 120 on)"),
        (StringSpace("01", 8), LocalSpace(["01"] * 8), "space.type was 'StringSpace', is now 'LocalSpace'"),
        (CodonSpace("TIK"), CodonSpace("TIR"), "space.protein was 'TIK', is now 'TIR'"),
        (
            GrammarSpace("arithmetic", 3, 9),
            GrammarSpace("regex", 3, 9),
            "; space.grammar was 'arithmetic', is now 'regex')",
        ),
        (StringSpace("01", 4), CandidateSet(["0001", "0010"]), "space.type was 'StringSpace', is now None"),
    ],
)
def test_a_run_is_not_resumed_in_another_space(began: Space, other: Space, said: str, tmp_path: Path) -> None:
    options = {"initial": 2, "budget": 0, "run_folder": tmp_path / "run"}
    seqopt.maximize(weight, began, **options)
    before = (tmp_path / "run" / "evaluations.csv").read_bytes()
    with pytest.raises(RunFolderError, match=re.escape(said)):
        seqopt.maximize(weight, other, resume=True, **options)
    assert (tmp_path / "run" / "evaluations.csv").read_bytes() == before


class Dice:
    """A custom space without moves."""

    kind = "text"

    def __init__(self) -> None:
        self.encoder = Encoder("characters")

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        throws = rng.permutation(216)[:n].tolist()
        return ["".join(str(1 + throw // 6**index % 6) for index in range(3)) for throw in throws]

    def contains(self, string: str) -> bool:
        return len(string) == 3 and set(string) <= set("123456")

    def key(self, string: str) -> str:
        return string

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        return list(strings)


@pytest.mark.slow
def test_a_space_of_ones_own(tmp_path: Path) -> None:
    result = seqopt.maximize(weight, Dice(), run_folder=tmp_path / "run", **QUICK)
    assert result.evaluations["string"].map(Dice().contains).all()
    settings = json.loads((tmp_path / "run" / "summary.json").read_text())["settings"]
    assert settings["space"] == {"type": f"{Dice.__module__}.Dice", "custom": True}
    assert settings["details"]["search"]["type"] == "RandomSearch"


def test_repeats_are_for_those_who_ask_and_belong_to_the_run(tmp_path: Path) -> None:
    space = StringSpace("01", 2)
    options = {"initial": 4, "batch_size": 1, "budget": 2, "run_folder": tmp_path / "run"}
    result = seqopt.maximize(weight, space, allow_repeats=True, **options)
    assert len(result.evaluations) == 6
    assert result.evaluations["key"].nunique() == 4
    with pytest.raises(RunFolderError, match="allow_repeats was True, is now None"):
        seqopt.maximize(weight, space, resume=True, **options)


def test_an_objective_for_another_kind_of_string_is_refused_for_a_space_too() -> None:
    with pytest.raises(InputError, match="mfe is for DNA or RNA, but those of StringSpace are of kind 'text'"):
        seqopt.minimize("mfe", StringSpace("ACGT", 9), **QUICK)
    assert seqopt.minimize("mfe", StringSpace("ACGT", 9, kind="dna"), initial=2, budget=0).best_value <= 0


@pytest.mark.parametrize(
    ("space", "string", "said"),
    [
        (StringSpace("01", 4), "0121", "'2' at position 3 is not in the alphabet"),
        (LocalSpace(["ab", "cd"]), "ba", "position 2 of 2 takes c, d, but 'a' at letter 2"),
        (CodonSpace("TIK"), "ACGATTAAC", "codes for N, but residue 3 is K"),
        (GrammarSpace("arithmetic", 3, 9), "x+*1", "parsing stopped at position 3"),
    ],
)
def test_a_string_outside_the_space_is_explained(space: Space, string: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        space.from_string(string)  # type: ignore[attr-defined]


def test_a_noisy_pool_may_be_measured_again_and_again() -> None:
    noise = np.random.default_rng(0)
    result = seqopt.maximize(
        lambda strings: [len(s) + noise.normal() for s in strings],
        ["a", "aa", "aaa", "aaaa"],
        initial=4,
        budget=6,
        batch_size=2,
        allow_repeats=True,
    )
    assert len(result.evaluations) == 10
    assert result.evaluations["string"].nunique() == 4
