"""Campaigns whose objective is computed: the scores of a weighted sum are recorded beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seqopt import maximize
from seqopt.campaign import Campaign, CampaignError, CampaignStore
from seqopt.campaign.computed import evaluated, recorded, suited
from seqopt.campaign.rows import Measurement, Observed
from seqopt.data import Contexts, Outcome
from seqopt.errors import InputError, ObjectiveError
from seqopt.objectives import CodonAdaptationIndex, GCContent, resolve_objective
from seqopt.report.campaigns import read_campaign
from seqopt.report.string_table import string_table
from seqopt.report.view import view_of
from seqopt.spaces import CodonSpace, StringSpace

SUM = "gc - 0.5*cai:human"
GENES = CodonSpace("MSKGEEL")
PARTS: dict[str, Any] = {"batch_size": 3, "surrogate": "one-hot", "acquisition": "mean", "seed": 1}


def campaign(path: Path, **options: Any) -> Campaign:
    return Campaign.create(path, GENES, **(PARTS | {"computed": SUM} | options))


def scores(genes: list[str]) -> list[tuple[float, float]]:
    return list(zip(GCContent()(genes).tolist(), CodonAdaptationIndex("human")(genes).tolist(), strict=True))


def test_a_sum_is_the_target_and_its_scores_are_recorded_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "genes.seqopt"
    with campaign(path) as begun:
        settings = begun.store.settings
        assert (settings.objective, settings.direction, settings.computed_by) == (SUM, "maximize", SUM)
        assert [(one.name, one.role, one.direction) for one in settings.outcomes()[1:]] == [
            ("gc", "recorded", "maximize"),
            ("cai:human", "recorded", "maximize"),
        ]
        assert begun.run(budget=3) == 3
    with Campaign.open(path) as resumed:
        # What is kept needs no objective to be named, and nothing is evaluated twice.
        assert resumed.run(budget=6) == 3
        assert resumed.store.check() == []
        rows = resumed.store.measurements()
        genes = [row.string for row in rows]
        assert len(set(genes)) == 6
        for row, (gc, cai) in zip(rows, scores(genes), strict=True):
            assert row.further == {"gc": pytest.approx(gc), "cai:human": pytest.approx(cai)}
            assert row.value == pytest.approx(gc - 0.5 * cai)
        # The model learns from the sum alone.
        assert resumed.store.latest_snapshot() is not None
        found = resumed.to_pandas()
    assert found[SUM].tolist() == pytest.approx([row.value for row in rows])
    assert found["cai:human"].tolist() == pytest.approx([cai for _, cai in scores(genes)])


def test_the_model_of_a_sum_is_the_one_without_its_scores(tmp_path: Path) -> None:
    with campaign(tmp_path / "sum.seqopt") as one:
        one.run(budget=6)
        strings = [row.string for row in one.store.measurements()]
    with campaign(tmp_path / "alone.seqopt", computed=None, objective=SUM) as other:
        other.run(lambda genes: [gc - 0.5 * cai for gc, cai in scores(genes)], budget=6)
        assert [row.string for row in other.store.measurements()] == strings
        assert other.store.settings.further_names == ()


def test_tables_and_pages_show_the_scores(tmp_path: Path) -> None:
    path = tmp_path / "genes.seqopt"
    with campaign(path) as begun:
        begun.run(budget=3)
        batch = begun.suggest()
        begun.write_batch(tmp_path / "batch.csv", batch)
        begun.export(tmp_path / "all.csv")
        measured = {row.string: row.further for row in begun.store.measurements()}
    table = pd.read_csv(tmp_path / "batch.csv")
    assert table.columns[-5:].tolist() == [SUM, "standard_error", "gc", "cai:human", "failure"]
    exported = pd.read_csv(tmp_path / "all.csv").set_index("string")
    for string, further in measured.items():
        assert exported.loc[string, "gc"] == pytest.approx(further["gc"])
    run = read_campaign(path)
    page = string_table(view_of(run, "genes"))
    headings = [column.title for column in page.columns]
    at = headings.index("Measured")
    assert headings[at + 1 : at + 3] == ["+1 x gc", "-0.5 x cai:human"]
    first = next(row for row in page.rows if row.string == max(measured, key=lambda one: _sum(measured[one])))
    assert first.cells[at + 2][0] == f"{measured[first.string]['cai:human']:,.5g}"


def _sum(further: dict[str, float]) -> float:
    return further["gc"] - 0.5 * further["cai:human"]


def test_replicates_have_one_mean_of_a_score_as_of_the_sum() -> None:
    rows = [Measurement("ATG", "ATG", value, further={"gc": gc}) for value, gc in ((1.0, 0.35), (2.0, 0.45))]
    found = Observed("ATG", "ATG", (*rows, Measurement("ATG", "ATG", 3.0)))
    assert found.further("gc") == pytest.approx(0.4)
    assert found.further("mfe") is None


def test_scores_are_recorded_by_hand_and_undone(tmp_path: Path) -> None:
    with campaign(tmp_path / "genes.seqopt") as begun:
        first, second, third = begun.suggest()
        begun.record(first.name, 0.25, further={"gc": 0.5, "cai:human": 0.5})
        table = pd.DataFrame(
            {"identifier": [second.name], SUM: [0.1], "gc": [0.35], "cai:human": [0.5]},
        )
        table.to_csv(tmp_path / "by_hand.csv", index=False)
        begun.record_file(tmp_path / "by_hand.csv")
        assert [row.further for row in begun.store.measurements()] == [
            {"gc": 0.5, "cai:human": 0.5},
            {"gc": 0.35, "cai:human": 0.5},
        ]
        begun.undo()
        assert [row.further for row in begun.store.measurements()] == [{"gc": 0.5, "cai:human": 0.5}]
        # A score alone is kept, and the sum still awaited: by a run, for instance, which begins with it.
        begun.record(third.name, further={"gc": 0.4})
        assert {row.name for row in begun.store.suggestions() if row.status == "open"} == {second.name, third.name}
        assert begun.run(budget=3) == 2
        best = begun.status().best
        assert best is not None
        assert best.further("gc") is not None
        # What is not a number of the score is refused with its column.
        table[["gc"]].assign(identifier=second.name, gc="high").to_csv(tmp_path / "wrong.csv", index=False)
        with pytest.raises(CampaignError, match=r"column 'gc': 'high' is not a number"):
            begun.record_file(tmp_path / "wrong.csv", replicates=True)


def test_scores_are_those_of_the_genes_of_the_campaign(tmp_path: Path) -> None:
    """By their genetic code, and between what stands beside them."""
    space = CodonSpace("MKTW", 2, upstream="GGGCCC", downstream="GGGCCC")
    total = suited(resolve_objective("mfe:-6..6 - cai:human"), space)
    energy, index = (term.objective.function for term in total.function.terms)  # type: ignore[attr-defined]
    assert energy.upstream == "GGGCCC"
    assert "TGA" in index.adaptiveness
    spec = "mfe:-6..6 - cai:human"
    with Campaign.create(tmp_path / "a.seqopt", space, computed=spec, **PARTS) as begun:
        begun.run(budget=2)
        for row in begun.store.measurements():
            assert row.further["cai:human"] == pytest.approx(index([row.string])[0])
            assert row.further["mfe:-6..6"] == pytest.approx(energy([row.string])[0])


def test_a_constraint_by_the_name_of_a_score_is_measured_as_it(tmp_path: Path) -> None:
    constraint = Outcome("gc", role="constraint", bound=0.3)
    options = PARTS | {"surrogate": None, "acquisition": None}
    with campaign(tmp_path / "a.seqopt", constraints=[constraint], **options) as begun:
        assert [(one.name, one.role) for one in begun.store.settings.outcomes()[1:]] == [
            ("gc", "constraint"),
            ("cai:human", "recorded"),
        ]
        begun.run(budget=3)
        for row in begun.store.measurements():
            assert row.further["gc"] == pytest.approx(GCContent()([row.string])[0])


def test_a_run_by_another_sum_says_what_it_lacks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with campaign(tmp_path / "a.seqopt") as begun:
        with pytest.raises(InputError, match="the campaign records cai:human, too, and 2\\*gc has the scores gc"):
            begun.run("2*gc", budget=3)
        assert begun.store.measurements() == []
        # Others may take part.
        assert begun.run("cai:human + 0.1*mfe - gc", budget=2) == 2
        assert set(begun.store.measurements()[0].further) == {"gc", "cai:human"}
    with campaign(tmp_path / "b.seqopt", computed=None, objective="y") as other:
        with pytest.raises(InputError, match="y of this campaign is measured, and nothing computes it"):
            other.run(budget=3)
        assert other.run(SUM, budget=2) == 2
        assert "only the sum is recorded" in caplog.text
        assert other.store.measurements()[0].further == {}


def test_what_cannot_be_computed_is_refused_before_there_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with pytest.raises(InputError, match="the objective needs a name"):
        Campaign.create(path, GENES)
    with pytest.raises(ObjectiveError, match=r"position 6: there is no module 'cia'.*did you mean cai:human"):
        campaign(path, computed="gc - cia:human")
    with pytest.raises(InputError, match="is for molecules, but this campaign searches strings of kind 'dna'"):
        campaign(path, computed="qed")
    with pytest.raises(InputError, match="looks values up in a file"):
        campaign(path, computed="column:y")
    with pytest.raises(InputError, match=r"the window 1\.\.60 ends at base 60, and the gene has 21"):
        campaign(path, computed="mfe:1..60")
    with pytest.raises(InputError, match="a computed objective has no plates"):
        campaign(path, plates=12)
    with pytest.raises(InputError, match="a computed objective has one way to measure"):
        campaign(path, contexts=Contexts.of_levels("fidelity", {"a": 1.0, "b": 2.0}, "b"))
    with pytest.raises(InputError, match="the objective is called 'gc', as one of the scores of gc"):
        campaign(path, objective="gc")
    assert not path.exists()


def test_a_single_score_has_its_direction_and_unit_and_nothing_beside_it(tmp_path: Path) -> None:
    with campaign(tmp_path / "a.seqopt", computed="mfe") as begun:
        settings = begun.store.settings
        assert (settings.objective, settings.direction, settings.unit) == ("mfe", "minimize", "kcal/mol")
        assert settings.outcomes()[1:] == ()
        assert begun.run(budget=3) == 3
    with campaign(tmp_path / "b.seqopt", computed="mfe", objective="energy", direction="maximize") as other:
        assert (other.store.settings.objective, other.store.settings.direction) == ("energy", "maximize")


def test_the_campaign_of_a_run_shows_its_scores_on_the_page(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "surrogate": "one-hot",
        "acquisition": "mean",
        "initial": 3,
        "budget": 2,
        "batch_size": 2,
    }
    maximize(SUM, GENES, run_folder=tmp_path / "run", **options)
    run = read_campaign(tmp_path / "run" / "campaign.seqopt")
    assert "-0.5 x cai:human" in [column.title for column in string_table(view_of(run, "genes")).columns]
    assert run.evaluations["cai:human"].notna().all()


def test_functions_are_evaluated_as_they_are() -> None:
    function = resolve_objective("gc")
    assert evaluated(function, [Outcome("gc")]) is function
    assert recorded(function) == []
    with pytest.raises(InputError, match="is for DNA or RNA"):
        suited(function, StringSpace("AB", 4))


def test_a_failure_of_one_score_is_one_of_the_sum(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def odd(genes):\n    return [float('nan') if gene.endswith('G') else 1.0 for gene in genes]\n")
    with campaign(tmp_path / "a.seqopt", computed=f"gc + {file}:odd", objective="y", batch_size=6) as begun:
        begun.run(budget=6)
        rows = begun.store.measurements()
        with CampaignStore.open(begun.store.path) as store:
            assert store.check() == []
    failed = [row for row in rows if row.failure is not None]
    assert {row.string[-1] for row in failed} == {"G"}
    assert all(not row.further for row in failed)
    assert all(len(row.further) == 2 for row in rows if row.failure is None)
