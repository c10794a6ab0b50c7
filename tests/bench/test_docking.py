"""The docking benchmark: what counts as found, and the table."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from seqopt.bench import docking
from seqopt.bench.density_ratios import classifier_of
from seqopt.bench.docking import found_so_far, read_runs, table, work
from seqopt.bench.records import append_record
from seqopt.errors import InputError
from seqopt.spaces import CandidateSet
from seqopt.strategies import BORE, LFBO

MOLECULES = ["C" * n + end for n in range(1, 31) for end in ("O", "N", "F", "Cl")]
SCORES = -np.array([string.count("C") - string.count("Cl") for string in MOLECULES], dtype=float)


@pytest.fixture(autouse=True)
def small_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docking, "library", lambda: (CandidateSet(MOLECULES, kind="molecule"), SCORES))
    monkeypatch.setattr(docking, "BATCH", 10)
    monkeypatch.setattr(docking, "BUDGET", 40)
    monkeypatch.setattr(docking, "TOP", 10)
    monkeypatch.setattr(docking, "CHECKPOINTS", (10, 20, 40))


def test_a_molecule_counts_when_it_scores_as_well_as_the_last_of_the_top() -> None:
    scores = np.array([-5.0, -4.0, -4.0, -1.0])
    docking.TOP = 2
    assert found_so_far({"indices": [3, 2, 0, 1]}, scores).tolist() == [0.0, 0.5, 1.0, 1.0]


def test_without_ties_only_the_top_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.array([-5.0, -4.0, -3.0, -1.0])
    monkeypatch.setattr(docking, "library", lambda: (CandidateSet(MOLECULES[:4], kind="molecule"), scores))
    monkeypatch.setattr(docking, "TOP", 2)
    monkeypatch.setattr(docking, "CHECKPOINTS", (1, 2, 3))
    run = {"job": {"method": "ssk-mean", "seed": 0}, "indices": [2, 1, 0, 3], "suggest_seconds": [1.0]}
    assert found_so_far(run, scores).tolist() == [0.0, 0.5, 1.0, 1.0]
    append_record(tmp_path / "ssk-mean.jsonl", run, ["job"])
    text = table(read_runs(tmp_path))
    assert "| ssk, greedy mean | 1 | 0.0 | 50.0 | 100.0 | 1 |" in text
    assert "4 molecules, of which 2 score as well as the 2th or better" in text


def test_a_model_finds_more_than_random_molecules_do() -> None:
    runs = {name: work(docking.Job(name, 1)) for name in ("minmax-mean", "random")}
    for run in runs.values():
        assert len(set(run["indices"])) == 40
        assert len(run["suggest_seconds"]) == 4
    assert runs["minmax-mean"]["indices"][:10] == runs["random"]["indices"][:10]
    assert found_so_far(runs["minmax-mean"], SCORES)[-1] > found_so_far(runs["random"], SCORES)[-1]


@pytest.mark.parametrize("method", ["logistic-lfbo", "logistic-bore"])
def test_a_classifier_finds_more_than_random_molecules_do(method: str) -> None:
    runs = {name: work(docking.Job(name, 1)) for name in (method, "random")}
    assert len(set(runs[method]["indices"])) == 40
    assert runs[method]["indices"][:10] == runs["random"]["indices"][:10]
    assert found_so_far(runs[method], SCORES)[-1] > found_so_far(runs["random"], SCORES)[-1]


def test_density_ratios_have_labels_and_one_fit_a_batch() -> None:
    assert docking.METHODS["kernel-bore"].label == "string kernel classifier, BORE"
    for kind, made in (("bore", BORE), ("lfbo", LFBO)):
        strategy = docking.METHODS[f"trees-{kind}"].build_strategy("trees")
        assert type(strategy) is made
        assert strategy.batch == "dpp"
    with pytest.raises(InputError, match="choose trees, logistic, kernel"):
        classifier_of("forest")


def test_the_table_has_percentages_at_the_checkpoints(tmp_path: Path) -> None:
    best = np.argsort(SCORES, kind="stable")
    for seed, indices in enumerate(([*best[30:70]], [*best[5:45]])):
        job = {"method": "ssk-mean", "seed": seed}
        run = {"job": job, "indices": [int(i) for i in indices], "suggest_seconds": [1.0, 2.5]}
        append_record(tmp_path / "ssk-mean.jsonl", run, ["job"])
    text = table(read_runs(tmp_path))
    # The top 10 are the 12 molecules of 30, 29 and 28 carbons; the second run finds 7 of them at once.
    assert "| ssk, greedy mean | 2 | 35.0 ± 35.0 | 35.0 ± 35.0 | 35.0 ± 35.0 | 4 |" in text
    assert "120 molecules, of which 12 score as well as the 10th or better" in text
    assert "the number found of these 12, divided by 10, and at most 100 %" in text
    # A third of all molecules hold a third of the 12.
    assert "random molecules are expected to reach 40.0 % after 40." in text


def lab(colour: str) -> np.ndarray:
    """CIE 1976 L*a*b* coordinates of an sRGB colour under D65."""
    rgb = np.array([int(colour[index : index + 2], 16) for index in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_no_two_lines_of_the_plot_look_alike() -> None:
    colours = {name: method.colour for name, method in docking.METHODS.items() if method.colour is not None}
    assert len(colours) > 5
    # Differences above some ten units are plain to see side by side; lines of a plot lie apart.
    apart = {pair: np.linalg.norm(lab(colours[pair[0]]) - lab(colours[pair[1]])) for pair in combinations(colours, 2)}
    assert {pair: distance for pair, distance in apart.items() if distance < 25} == {}
