"""Weighted sums of scores: read as they are meant, solved exactly where they can be."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqopt
from seqopt.datasets import read_pool
from seqopt.errors import InputError, ObjectiveError
from seqopt.objectives import (
    CodonAdaptationIndex,
    GCContent,
    MinimumFreeEnergy,
    WeightedSum,
    column_of,
    exact_instead,
    exact_score,
    resolve_objective,
)
from seqopt.objectives.weighted import is_sum
from seqopt.spaces import CodonSpace, ExactGenes

GENES = ["ATGCTGAAATAA", "ATGCTAAAGTAA", "ATGTTGCGCTAA"]

SCORES = {"mfe": MinimumFreeEnergy(), "gc": GCContent(), "cai:human": CodonAdaptationIndex("human")}

number = st.floats(0, 100, allow_nan=False).map(lambda value: f"{value:.3g}").filter(lambda text: "e" not in text)


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-"]), parts).map(lambda three: " ".join(three)),
        parts.map(lambda one: f"({one} )"),
        parts.map(lambda one: f"-({one} )"),
        st.tuples(number, parts).map(lambda two: f"{two[0]}*({two[1]} )"),
        st.tuples(parts, number).map(lambda two: f"({two[0]} )*{two[1]}"),
    )


linear = st.recursive(st.sampled_from(sorted(SCORES)), combined, max_leaves=6)


def by_python(text: str, values: dict[str, float]) -> float:
    """The value by Python's own rules of arithmetic."""
    for name, value in values.items():
        text = text.replace(name, f"({value!r})")
    return float(eval(compile(ast.parse(text, mode="eval"), "sum", "eval"), {"__builtins__": {}}))


@given(linear)
def test_sums_are_read_by_the_rules_of_arithmetic(text: str) -> None:
    objective = resolve_objective(text)
    values = {name: float(score(GENES[:1])[0]) for name, score in SCORES.items()}
    assert objective(GENES[:1])[0] == pytest.approx(by_python(text, values), rel=1e-9, abs=1e-6)


def test_a_sum_is_one_objective_and_keeps_its_scores() -> None:
    objective = resolve_objective(" 2*(gc - 0.5) - 0.5*cai:human + 0*mfe ")
    total = objective.function
    assert isinstance(total, WeightedSum)
    assert objective.name == "2*(gc - 0.5) - 0.5*cai:human + 0*mfe"
    assert total.names == ("gc", "cai:human", "mfe")
    gc, cai, mfe = (SCORES[name](GENES) for name in total.names)
    np.testing.assert_allclose(total.rows(GENES), np.stack([2 * gc - 1 - 0.5 * cai, gc, cai, mfe], axis=1))
    assert (objective.direction, objective.kinds) == ("maximize", ("dna", "rna"))
    assert "-0.5 x cai:human" in objective.description
    assert "+0 x mfe (kcal/mol)" in objective.description
    assert pickle.loads(pickle.dumps(objective))(GENES).tolist() == objective(GENES).tolist()


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("mfe + gc", "minimize"),
        ("-1*mfe", "maximize"),
        ("mfe - 3*cai:human", "minimize"),
        ("cai:human - mfe", "maximize"),
        ("0*mfe + gc", "maximize"),
    ],
)
def test_the_direction_is_that_of_the_first_score_that_counts(text: str, direction: str) -> None:
    assert resolve_objective(text).direction == direction


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mfe + 0.5*", r"expected a number, a score or '\(' at position 11, and it ends"),
        ("mfe + * gc", r"expected a number, a score or '\(' at position 7, not '\*'"),
        ("mfe*gc", "the '\\*' at position 4 is between two scores"),
        ("2*(gc", r"expected '\)' for the '\(' at position 3 at position 6, and it ends"),
        ("gc)", r"expected '\+', '-' or '\*' at position 3, not '\)'"),
        ("gc gc + 1", "at position 4, not 'gc'"),
        ("mfe / 2", "at position 5, not '/': weights are multiplied, such as 0.1\\*mfe"),
        ("5", "is a number for all strings: name a score"),
        ("1e999*gc", "the number 1e999 at position 1 is too large"),
        ("gc + 'cai:human", "the quotation mark at position 6 is not closed"),
        ("qed + mfe", "no string can be scored by all of these: qed is for molecules; mfe is for DNA or RNA"),
        ("gc + mfee", "position 6: unknown objective 'mfee': did you mean 'mfe'"),
        ("gc + cai:marsian", "position 6: there is no codon usage of 'marsian'"),
        ("cai:human*0.5", "an operator behind an argument needs a blank before it"),
        ("gc + 2*column:pIC50", "position 8: .* there is no pool"),
        ("(" * 60 + "gc" + ")" * 60, "more than 50 brackets"),
        ("__import__('os') + gc", "position"),
    ],
)
def test_what_is_no_sum_is_said_with_its_place(text: str, reason: str) -> None:
    with pytest.raises((InputError, ObjectiveError), match=reason):
        resolve_objective(text)


def test_names_of_single_scores_are_no_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my - score + 2.py").write_text("def own(strings):\n    return [1.0] * len(strings)\n")
    Path("my table + two.csv").write_text("codon,weight\nAAA,1\n")
    for text in (
        "similarity:C[N+](C)(C)CC(=O)[O-]",
        "pattern_count:10??1",
        "mfe:-4..37",
        "my - score + 2.py:own",
        "codon_weights:my table + two.csv",
    ):
        assert not is_sum(text)
        assert not isinstance(resolve_objective(text).function, WeightedSum)
    quoted = resolve_objective("2*'codon_weights:my table + two.csv' + 'my - score + 2.py:own'")
    assert quoted(["AAAAAG"]).tolist() == [2.0]
    assert quoted.custom
    molecules = resolve_objective("qed - 0.1*similarity:C[N+](C)(C)CC(=O)[O-] + (2*logp)")
    assert molecules.kinds == ("molecule",)


def test_columns_are_looked_up_in_the_pool(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("smiles,pIC50\nCCO,5\nCCN,6\nCCC,7\n")
    pool = read_pool(path, values_column="pIC50")
    assert resolve_objective("2*column:pIC50 + 0*qed", pool)(["CCO", "CCC"]).tolist() == [10.0, 14.0]
    assert column_of("2*column:pIC50 + qed") == "pIC50"
    with pytest.raises(InputError, match="the columns a and b: one column at most"):
        column_of("column:a + column:b")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(
    "text",
    [
        "log_cai:e_coli - 0.05*content:CG",
        "2*log_usage:human + 3*gc - 0.4*gc_distance:0.5 + 1",
        "pattern_count:GA - 0.2*content:U + 0*mfe",
        # Of a single index that is no sum, order is what counts.
        "2*cai:human - 1",
        "-0.5*usage:e_coli + 0*mfe",
    ],
)
def test_sums_of_sums_over_codons_are_solved_exactly(text: str, direction: str) -> None:
    space = CodonSpace("MKTEL", forbidden=["GAATTC"], stop="TAA")
    objective = resolve_objective(text)
    score = exact_score(objective, space, direction)
    assert score is not None
    genes = list(space.enumerate())
    values = np.sort(objective(genes)) if direction == "minimize" else -np.sort(-objective(genes))
    found = objective([one.gene for one in ExactGenes(space, score).best(12).genes])
    np.testing.assert_allclose(found, values[:12], atol=1e-9)


def test_what_is_no_sum_over_codons_says_which_sum_is() -> None:
    space = CodonSpace("MKTEL")
    for text, instead in (
        ("cai:human + 0.5*gc", "log_cai:human + 0.5*gc"),
        ("gc - 2*usage:e_coli + log_cai:human", "gc - 2*log_usage:e_coli + log_cai:human"),
        ("mfe + 0.5*cai:human", None),
        ("cai:human", None),
        ("log_cai:human + gc", None),
        ("3*cai:human", None),
    ):
        objective = resolve_objective(text)
        assert exact_instead(objective, space) == instead
        if instead is not None:
            assert exact_score(objective, space, "maximize") is None
            assert exact_score(resolve_objective(instead), space, "maximize") is not None


@pytest.mark.slow
def test_a_search_reports_each_score(tmp_path: Path) -> None:
    genes = list(CodonSpace("MKF").enumerate())
    options = {"initial": 4, "budget": 0, "run_folder": tmp_path / "run"}
    result = seqopt.maximize("gc - 0.5*cai:human", genes, **options)
    table = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    assert len(table) == 4
    np.testing.assert_allclose(table["value"], table["gc"] - 0.5 * table["cai:human"])
    np.testing.assert_allclose(table["gc"], GCContent()(table["string"].tolist()))
    assert result.evaluations["cai:human"].tolist() == pytest.approx(table["cai:human"].tolist())
    assert "-0.5 x cai:human" in (tmp_path / "run" / "report.html").read_text()
    assert seqopt.maximize("gc - 0.5*cai:human", genes, resume=True, **options).best_value == result.best_value


def test_a_score_that_fails_is_a_failure_of_its_string(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.py").write_text("def own(strings):\n    return [float('nan') if 'G' in s else 1.0 for s in strings]\n")
    result = seqopt.maximize("odd.py:own + pattern_count:A", ["AG", "AA", "CC"], initial=3, budget=0)
    assert result.evaluations.set_index("string")["status"].to_dict() == {"AG": "failed", "AA": "ok", "CC": "ok"}
    assert result.best_value == 3.0
