"""The regression benchmark: splits, measures and tables."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from seqopt.bench import regression
from seqopt.bench.records import append_record
from seqopt.bench.regression import Job, read_runs, tables, work

MOLECULES = ["C" * n + end for n in range(1, 11) for end in ("O", "N", "C(=O)O", "F")]


@pytest.fixture(autouse=True)
def small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([len(string) + 0.5 * string.count("O") for string in MOLECULES])
    monkeypatch.setattr(regression, "molecules", lambda dataset: (MOLECULES, values))


def test_all_models_see_the_same_split_and_measures_are_those_of_the_test_molecules() -> None:
    found = {model: work(Job("freesolv", model, 3)) for model in ("ssk", "tanimoto")}
    for result in found.values():
        assert (result["training"], result["test"]) == (36, 4)
        assert result["mae"] <= result["rmse"]
        assert result["coverage"]["0.5"] <= result["coverage"]["0.8"] <= result["coverage"]["0.95"] <= 1.0
    # A constant prediction would have an R2 of at most 0 on what it is tested on.
    assert found["ssk"]["r2"] > 0.5
    assert work(Job("freesolv", "ssk", 3))["rmse"] == found["ssk"]["rmse"]
    assert work(Job("freesolv", "ssk", 4))["rmse"] != found["ssk"]["rmse"]


def test_negative_log_predictive_density_counts_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    class Known:
        """Predicts 0 with standard deviation 3 and noise of standard deviation 4."""

        hyperparameters: ClassVar = {"noise_variance": 4.0}

        def fit(self, strings: list[str], values: np.ndarray, *, rng: np.random.Generator) -> None:
            pass

        def predict(self, strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(len(strings)), np.full(len(strings), 3.0)

        def untransform(self, mean: float, variance: float) -> tuple[float, float]:
            return mean, 2.0 * variance**0.5  # a unit of 2

    monkeypatch.setitem(regression.MODELS, "ssk", regression.Model("known", Known))  # type: ignore[arg-type]
    monkeypatch.setattr(regression, "molecules", lambda dataset: (["C"] * 50, np.array([5.0, -5.0] * 25)))
    result = work(Job("freesolv", "ssk", 1))
    assert result["rmse"] == result["mae"] == 5.0
    assert result["nlpd"] == pytest.approx(0.5 * np.log(2 * np.pi * 25.0) + 0.5)
    assert result["coverage"] == {"0.5": 0.0, "0.8": 1.0, "0.9": 1.0, "0.95": 1.0}


def test_r2_compares_errors_with_the_variance_of_what_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class AlwaysOneTooHigh:
        """Predicts one more than the length of a string."""

        hyperparameters: ClassVar = {"noise_variance": 1.0}

        def fit(self, strings: list[str], values: np.ndarray, *, rng: np.random.Generator) -> None:
            pass

        def predict(self, strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
            asked.extend(map(len, strings))
            return np.array(asked) + 1.0, np.ones(len(strings))

        def untransform(self, mean: float, variance: float) -> tuple[float, float]:
            return mean, variance

    molecules = ["C" * n for n in range(1, 51)]
    monkeypatch.setitem(regression.MODELS, "ssk", regression.Model("known", AlwaysOneTooHigh))  # type: ignore[arg-type]
    monkeypatch.setattr(regression, "molecules", lambda dataset: (molecules, np.arange(1.0, 51.0)))
    result = work(Job("freesolv", "ssk", 1))
    others = sorted(set(range(1, 51)).difference(asked))
    assert (len(asked), len(others)) == (5, 45)
    # The two variances must differ, or nothing would be seen.
    assert abs(np.var(asked) / np.var(others) - 1) > 0.1
    assert result["r2"] == pytest.approx(1 - 1 / np.var(asked))


def stored(folder: Path, task: str, model: str, errors: list[float]) -> None:
    for split, rmse in enumerate(errors):
        run = {
            "job": {"task": task, "model": model, "split": split},
            "rmse": rmse,
            "r2": 0.5,
            "nlpd": 1.0,
            "coverage": {"0.9": 0.8},
            "fit_seconds": 2.0,
            "predict_seconds": 1.0,
        }
        append_record(folder / f"{model}.jsonl", run, ["job"])


def test_the_table_has_means_errors_the_best_of_each_column_and_the_published(tmp_path: Path) -> None:
    stored(tmp_path, "esol", "ssk", [0.5, 0.7])
    stored(tmp_path, "esol", "tanimoto", [0.8, 0.9])
    stored(tmp_path, "esol", "minmax", [0.6, 0.9, 7.0])  # paired on the first two splits
    stored(tmp_path, "photoswitch", "tanimoto", [20.0, 22.0])
    text = tables(read_runs(tmp_path))
    first, *_ = text.split("\n\n")
    assert "| RMSE | Photoswitch (nm) | ESOL (log10(mol/l)) |" in first
    assert "| sub-sequence kernel (ssk) |  | **0.600 ± 0.100** |" in first
    assert "| tanimoto | **21.0 ± 1.0** | 0.850 ± 0.050 |" in first
    assert "| *FlowMO, sub-sequence kernel* | 26.0 ± 3.6 | 0.65 ± 0.04 |" in first
    tanimoto = "| tanimoto | 2 | 0.850 ± 0.050 | 0.250 ± 0.050 | 0.500 ± 0.000 | 1.000 ± 0.000 | 80 % | 2.0 | 1.0 |"
    assert tanimoto in text
    assert "| minmax | 3 | 2.833 ± 2.085 | 0.150 ± 0.050 |" in text
    assert "| sub-sequence kernel (ssk) | 2 | 0.600 ± 0.100 |  | 0.500" in text
    assert "| tanimoto | 2 | 21.0 ± 1.0 |  | 0.500" in text  # no run of ssk
