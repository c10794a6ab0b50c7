"""The model of a page: the surrogate of the search, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpytorch.kernels import MaternKernel

from seqopt.api import maximize
from seqopt.campaign import Campaign, CampaignStore
from seqopt.data.transforms import LearnedTransform, Log10
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP, resolve_surrogate
from seqopt.models.registry import SURROGATES, surrogate_name
from seqopt.optimizer import Optimizer
from seqopt.report import write_report
from seqopt.report.analysis import analyse
from seqopt.report.campaigns import read_campaign
from seqopt.report.explaining import explained
from seqopt.report.kernel_pca import kernel_pca
from seqopt.report.restored import restore_surrogate, search_space
from seqopt.report.results import Run, read_run
from seqopt.report.samples import Candidates, sample_candidates
from seqopt.spaces import CandidateSet, CodonSpace, Space, StringSpace
from seqopt.utils.config import described

MakeRun = Callable[..., Path]


def count_ab(strings: list[str]) -> list[float]:
    return [float(text.count("AB")) + 0.1 * text.count("A") for text in strings]


def searched(folder: Path, space: Space, surrogate: Any) -> tuple[Run, Any]:
    result = maximize(
        count_ab, space, budget=4, initial=6, batch_size=2, surrogate=surrogate, run_folder=folder / "searched"
    )
    return read_run(folder / "searched"), result.optimizer.surrogate


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssk", "ssk-bayes", "ngrams"])
def test_the_surrogate_of_a_run_is_made_again(name: str, tmp_path: Path) -> None:
    space = StringSpace("AB", 8)
    run, own = searched(tmp_path, space, name)
    found, words, instead = restore_surrogate(run, space)
    assert type(found) is type(own)
    assert type(found.kernel) is type(own.kernel)  # type: ignore[attr-defined]
    assert found.encoder.name == own.encoder.name  # type: ignore[attr-defined]
    assert words
    assert instead == ""


@pytest.mark.parametrize("name", [name for name, known in SURROGATES.items() if known.kinds in ((), ("molecule",))])
@pytest.mark.parametrize("tokenizer", ["smiles", "characters"])
def test_a_model_of_a_library_is_made_again_with_its_symbols(name: str, tokenizer: str, make_run: MakeRun) -> None:
    smiles = ["CCO", "CCN", "CNC", "CCS"]
    own: Any = Optimizer(CandidateSet(smiles, kind="molecule", tokenizer=tokenizer), surrogate=name).surrogate
    facts = {"kind": "molecule", "pool": "mine.csv", "tokenizer": tokenizer, "details": {"surrogate": described(own)}}
    run = read_run(make_run([{"string": one, "value": 1.0} for one in smiles], facts))
    found, words, remark = restore_surrogate(run, search_space(run, "molecule", smiles))
    assert surrogate_name(found) == name
    assert found.encoder.name == own.encoder.name  # type: ignore[attr-defined]
    assert words == SURROGATES[name].summary
    assert remark == ""


@pytest.mark.parametrize("name", ["auto", "ssk", "ssk-bayes", "ngrams", "one-hot", "codons"])
def test_the_model_of_a_campaign_on_a_space_is_made_again(name: str, tmp_path: Path) -> None:
    space = CodonSpace("MAGIC" * 26)
    with Campaign.create(tmp_path / "a.seqopt", space, objective="y", surrogate=name):
        pass
    run = read_campaign(tmp_path / "a.seqopt")
    found: Any = restore_surrogate(run, search_space(run, "dna", []))[0]
    own: Any = resolve_surrogate(name, space)
    own.bind(space)
    assert described(found) == described(own)
    assert name != "auto" or found.kernels[0].partitions == 3


@pytest.mark.parametrize(
    ("surrogate", "kernel"),
    [
        (StringGP(SubsequenceKernel(2)), "of order 2"),
        (StringGP(SubsequenceKernel(order_weights=[1, 1, 1, 1, 0.5])), "sub-sequence kernel, point estimates"),
        (StringGP(NgramKernel(2)), "as NgramKernel(longest=2"),
        (StringGP(MaternKernel()), ""),
    ],
)
def test_a_kernel_of_other_settings_is_made_again_or_it_is_said(
    surrogate: StringGP, kernel: str, make_run: MakeRun
) -> None:
    rows = [{"string": text, "value": 1.0} for text in ("AB", "BA", "AA")]
    run = read_run(make_run(rows, {"kind": "text", "details": {"surrogate": described(surrogate)}}))
    found, words, remark = restore_surrogate(run, search_space(run, "text", ["AB", "BA", "AA"]))
    if kernel:
        assert kernel in words
        assert remark == ""
        assert described(surrogate.kernel) == described(found.kernel)  # type: ignore[attr-defined]
    else:
        assert "cannot be rebuilt from its files: this is the usual one" in remark
        assert "sub-sequences, n-grams" in remark


@pytest.mark.slow
def test_a_page_says_that_its_model_is_another(tmp_path: Path) -> None:
    own = StringGP(MaternKernel())
    run, _ = searched(tmp_path, CandidateSet(["AB", "BA", "AA", "BB", "ABA", "BAB", "AAB", "ABB", "BBA", "BBB"]), own)
    how = analyse(run, "text", Candidates()).how
    assert "cannot be rebuilt" in how
    assert "parameters of the last" not in how
    assert "fitted to all 10 values" in how
    assert "cannot be rebuilt" in write_report(tmp_path / "searched").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_kernel_has_the_parameters_of_the_last_batch(tmp_path: Path) -> None:
    space = CandidateSet(["".join("AB"[(n >> bit) & 1] for bit in range(7)) for n in range(128)], kind="text")
    run, own = searched(tmp_path, space, "ssk")
    # A pool that was given as a list is not kept in the folder.
    found = analyse(run, "text", Candidates(tuple(space.strings[:20]), tuple(space.keys[:20])))
    assert "parameters of the last batch" in found.how
    assert found.map is not None
    # The kernel that chose the last batch gives the same map.
    again = kernel_pca(found.map.keys, own, space=space)
    np.testing.assert_allclose(found.map.coordinates, again.coordinates, atol=1e-6)
    assert found.map.explained == pytest.approx(again.explained_variance_ratio)


def test_leave_one_out_predictions_are_those_of_models_without_the_value(make_run: MakeRun) -> None:
    texts = ["AAAA", "AABB", "ABAB", "BBBB", "BABA", "ABBA", "AAAB"]
    rows = [{"string": text, "value": value} for text, value in zip(texts, count_ab(texts), strict=True)]
    facts = {"kind": "text", "details": {"surrogate": {"type": "StringGP", "kernel": {"type": "SubsequenceKernel"}}}}
    run = read_run(make_run(rows, facts))
    found = analyse(run, "text", Candidates())
    assert found.held_out is not None
    assert found.held_out["value"].tolist() == pytest.approx([row["value"] for row in rows])
    errors = found.held_out["value"] - found.held_out["mean"]
    assert float((errors**2).mean()) > 0
    assert found.r2 is not None
    minimized = analyse(read_run(make_run(rows, facts | {"direction": "minimize"})), "text", Candidates())
    assert minimized.held_out is not None
    assert minimized.held_out["value"].tolist() == pytest.approx([row["value"] for row in rows])


def test_reasons_look_at_what_was_measured_before(make_run: MakeRun) -> None:
    rows: list[dict[str, Any]] = [
        {"string": "AAAA", "value": 1.0},
        {"string": "BBBB", "value": 3.0},
        {"string": "CCCC", "value": 2.0},
        {"string": "BBBA", "value": 9.0, "batch": 1, "predicted_mean": 3.5, "predicted_std": 1.0},
        {"string": "AAAB", "value": 1.0, "batch": 1, "predicted_mean": 1.5, "predicted_std": 1.0},
    ]
    facts = {"kind": "text", "details": {"surrogate": {"type": "StringGP", "kernel": {"type": "SubsequenceKernel"}}}}
    found = analyse(read_run(make_run(rows, facts)), "text", Candidates()).reasons
    assert {number: reason[:2] for number, reason in found.items()} == {
        4: ("exploit", "BBBB"),
        5: ("explore", "AAAA"),
    }
    assert all(0 < reason[2] < 1 for reason in found.values())


def test_reasons_on_a_logarithmic_scale_compare_medians(make_run: MakeRun) -> None:
    # Median 10, one decade of standard deviation: the mean of the log-normal distribution is 142.
    mean, std = Log10().moments(1.0, 1.0)
    rows: list[dict[str, Any]] = [
        {"string": text, "value": value} for text, value in (("AAAA", 50.0), ("BBBB", 500.0), ("CCCC", 5000.0))
    ]
    rows.append({"string": "AAAB", "value": 20.0, "batch": 1, "predicted_mean": mean, "predicted_std": std})
    facts = {"kind": "text", "direction": "minimize", "transform": "log10"}
    for asynchronous, reasons in ((False, {4: "exploit"}), (True, {})):
        # A batch of an asynchronous run does not say what had been measured before it.
        run = read_run(make_run(rows, facts | {"asynchronous": asynchronous}))
        found = analyse(run, "text", Candidates()).reasons
        assert {number: reason[0] for number, reason in found.items()} == reasons


def test_the_model_of_a_campaign_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "noisy.seqopt"
    rng = np.random.default_rng(0)
    with Campaign.create(path, StringSpace("AB", 8), objective="y", batch_size=8, surrogate="ssk") as campaign:
        for suggestion in campaign.suggest():
            for error in (0.05, 0.8):
                value = count_ab([suggestion.string])[0] + error * rng.normal()
                campaign.record(suggestion.name, value, standard_error=error, replicate=error > 0.5)
        campaign.suggest()
        with CampaignStore.open(path) as store:
            r2 = store.snapshots()[-1].summary["r2"]
    run = read_campaign(path)
    found = analyse(run, "text", Candidates())
    assert found.missing == ()
    assert found.r2 == pytest.approx(r2, abs=1e-3)
    assert found.held_out is not None
    assert len(found.held_out) == 16
    # Means of replicates without their standard errors are another model.
    other = analyse(replace(run, measurements=None), "text", Candidates())
    assert other.r2 != pytest.approx(r2, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1e308, 1.7e308])
def test_huge_values_leave_a_page(largest: float, make_run: MakeRun) -> None:
    values = (largest, -largest, 1.0, 2.0, 1e-300)
    rows = [{"string": "C" * n, "value": value} for n, value in enumerate(values, start=1)]
    folder = make_run(rows, {"kind": "molecule", "objective": "x", "initial": 5})
    assert write_report(folder).stat().st_size > 10_000
    found = analyse(read_run(folder), "molecule", Candidates())
    assert found.r2 is None or np.isfinite(found.r2)


def test_very_long_strings_are_not_fitted_for_a_page(make_run: MakeRun) -> None:
    rng = np.random.default_rng(0)
    rows = [{"string": "".join(rng.choice(list("ACDE"), 20_000)), "value": float(n)} for n in range(8)]
    found = analyse(read_run(make_run(rows, {"kind": "protein"})), "protein", Candidates())
    assert found.map is None
    assert "8 strings of up to 20,000 symbols would take too long" in found.missing[0]


@pytest.mark.slow
def test_random_genes_stand_for_the_space_of_a_search(tmp_path: Path) -> None:
    run, _ = searched(tmp_path, CodonSpace("MKVLAT"), "auto")
    candidates = sample_candidates(run, "dna", 30)
    assert {CodonSpace("MKVLAT").code.translate(gene) for gene in candidates.strings} == {"MKVLAT"}
    found = analyse(run, "dna", candidates)
    assert found.map is not None
    assert found.missing == ()
    assert len(set(found.map.keys)) == len(found.map.keys)
    assert set(found.map.group) == {"pool", "measured"}
    predicted = np.isfinite(found.map.mean)
    assert [group == "pool" for group in found.map.group] == predicted.tolist()


def test_what_goes_wrong_is_said(make_run: MakeRun) -> None:
    rows = [{"string": text, "value": float(i)} for i, text in enumerate(["CCO", "no molecule", "CCN", "CCC"])]
    found = analyse(read_run(make_run(rows, {"kind": "molecule", "pool": "x.csv"})), "molecule", Candidates())
    assert found.map is None
    assert "map of the kernel is missing" in found.missing[0]
    few = analyse(read_run(make_run(rows[:2], {"kind": "molecule"})), "molecule", Candidates())
    assert "at least 3" in few.missing[0]


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [True, False])
def test_a_page_says_on_what_scale_its_model_sees_the_values(heavy: bool, tmp_path: Path) -> None:
    def score(strings: list[str]) -> list[float]:
        return [-float(10.0 ** (text.count("B") / 2)) if heavy else float(text.count("B")) for text in strings]

    maximize(
        score,
        StringSpace("AB", 8),
        budget=2,
        initial=20,
        batch_size=2,
        surrogate="one-hot",
        run_folder=tmp_path / "run",
    )
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert ("through a transform that it has learned" in page) == heavy
    assert ("on the scale that it sees" in page) == heavy


def test_what_a_page_explains_is_in_the_units_of_the_values() -> None:
    strings = ["AAAA", "AABA", "BBAA", "BBBB", "ABAB"]
    surrogate = StringGP(NgramKernel())
    surrogate.fit(strings, -np.array([0.0, 1.0, 2.0, 4.0, 2.0]), rng=np.random.default_rng(0))
    transform = LearnedTransform("auto")
    plain = explained(surrogate, ["BABB"], strings, -1.0, transform).found["BABB"]
    transform.current = Log10()
    back = explained(surrogate, ["BABB"], strings, -1.0, transform).found["BABB"]
    assert back.prediction == pytest.approx(10**plain.prediction)
    assert back.prior_mean == pytest.approx(10**plain.prior_mean)
    assert back.rest != plain.rest
    assert explained(surrogate, ["BABB"], strings, -1.0).found["BABB"].prediction == plain.prediction
