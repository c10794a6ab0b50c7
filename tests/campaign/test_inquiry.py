"""What a campaign says when it is asked, against the posterior of its model over all candidates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors
from scipy import stats

import seqopt.models.gaussian
from seqopt.campaign import Campaign, NewSuggestion, read_sheet
from seqopt.campaign.summary import summarize
from seqopt.data import Log10
from seqopt.datasets.sheets import write_sheet
from seqopt.errors import InputError, ModelError
from seqopt.filters import PropertyRange
from seqopt.spaces import CodonSpace, StringSpace

TAILS = ["O", "N", "Cl", "Br", "C(=O)O", "C#N", "C(F)(F)F", "OC", "NC(C)=O", "S"]
SMILES = [f"{'C' * length}{tail}" for length in range(1, 9) for tail in TAILS]


def potency(smiles: str) -> float:
    return 10 ** (0.3 * smiles.count("C") - 0.5 * smiles.count("O"))


def library(folder: Path) -> Path:
    path = folder / "library.csv"
    path.write_text("id,smiles\n" + "".join(f"CPD-{row:03d},{smiles}\n" for row, smiles in enumerate(SMILES)))
    return path


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = Campaign.create(
        tmp_path / "c.seqopt",
        library(tmp_path),
        objective="IC50",
        unit="nM",
        direction="minimize",
        transform="log10",
        surrogate="minmax",
        batch_size=8,
        seed=1,
    )
    for row in made.suggest():
        made.record(row.name, potency(row.string))
    made.suggest()
    return made


def test_predictions_are_those_of_the_posterior_in_the_users_units(campaign: Campaign) -> None:
    optimizer = campaign.optimizer()
    mean, std = optimizer.fitted.predict([Chem.CanonSmiles("CCCCCCCCCCO"), "CCO"])
    found = campaign.predict(["OCCCCCCCCCC", "CCO"])
    measured = {row.key: row.value for row in campaign.store.measurements()}
    for row, centre, spread in zip(found, mean, std, strict=True):
        assert row.predicted == pytest.approx(10**-centre)
        ends = 10 ** np.array(stats.norm.interval(0.9, -centre, spread))
        np.testing.assert_allclose([row.true_low, row.true_high], ends, rtol=1e-6)
        # Noise widens the interval of a measurement about the same median.
        assert row.low < row.true_low < row.predicted < row.true_high < row.high
        assert row.low * row.high == pytest.approx(row.predicted**2)
        assert row.measured == measured.get(row.key)
        assert row.nearest_value == pytest.approx(measured[Chem.CanonSmiles(row.nearest)])
    assert found[0].string == "OCCCCCCCCCC"
    # The mean of the log-normal distribution is another number, and a larger one.
    assert found[0].predicted < optimizer.predict(["OCCCCCCCCCC"])[0][0]
    table = found.to_pandas()
    assert table["predicted"].tolist() == [row.predicted for row in found]
    assert "rank" not in table.columns
    assert "identifier" in table.columns  # what the library calls them
    assert "OCCCCCCCCCC" in str(found)


def test_what_became_of_a_string_is_said(campaign: Campaign) -> None:
    measured, waiting = campaign.store.measurements()[0], campaign.store.open_suggestions()
    campaign.record(waiting[0].name, failure="did not dissolve")
    campaign.withdraw([waiting[1].name])
    strings = [measured.string, *(row.string for row in waiting[:3]), "CCCCCCCCCCCCC"]
    found = campaign.predict(strings)
    assert [row.status for row in found] == ["measured", "failed", "withdrawn", "open", ""]
    assert [row.measured for row in found] == [pytest.approx(measured.value), None, None, None, None]


def test_strings_are_named_where_they_are_wrong_and_identifiers_understood(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"string 2 of 3: 'C\(' is not a valid molecule"):
        campaign.predict(["CCO", "C(", "CCN"])
    with pytest.raises(
        InputError, match=r"string 1 of 5: 'C1' .*; string 2 of 5: 'C2' .*; string 4 of 5: 'C4' .*; and others$"
    ):
        campaign.predict(["C1", "C2", "CCO", "C4", "C5"])
    with pytest.raises(InputError, match="predict takes a list of strings"):
        campaign.predict("CCO")
    (row,) = campaign.predict(["CPD-007"])
    assert (row.identifier, row.string) == ("CPD-007", SMILES[7])
    suggestion = campaign.store.suggestions()[-1]
    by_name, by_string = campaign.predict([suggestion.name]), campaign.predict([suggestion.string])
    assert [row.predicted for row in by_name] == [row.predicted for row in by_string]
    assert (by_name[0].key, by_name[0].identifier) == (suggestion.key, suggestion.identifier)
    with pytest.raises(InputError, match=r"string 2 of 2: there is no suggestion 'B99-01'"):
        campaign.predict(["CCO", "B99-01"])
    assert campaign.predict([]) == []


def test_a_file_is_predicted_but_for_what_cannot_be_read(
    campaign: Campaign, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ideas = tmp_path / "ideas.csv"
    ideas.write_text("smiles,note\nCCCO,a\nC(,b\nOCCC,the same\nCCCCCCCCCN,c\n")
    found = campaign.predict_file(ideas)
    assert [row.string for row in found] == ["CCCO", "CCCCCCCCCN"]
    assert "line 3 'C('" in caplog.text
    assert "line 4 'OCCC' is line 2" in caplog.text
    assert found == campaign.predict(["CCCO", "CCCCCCCCCN"])


@pytest.mark.parametrize("ending", ["csv", "xlsx", "smi"])
def test_predictions_of_a_file_have_its_other_columns(campaign: Campaign, tmp_path: Path, ending: str) -> None:
    ideas = tmp_path / f"ideas.{ending}"
    if ending == "smi":
        ideas.write_text("CCCO first\nC( bad\nCCCCCCCCCN last\n")
    else:
        header, rows = (
            ["Name", "Predicted", "smiles", "dose"],
            [["first", "6,5", "CCCO", 6.5], ["bad", "", "C(", None], ["last", "=1", "CCCCCCCCCN", 12]],
        )
        write_sheet(ideas, header, rows)
    table = campaign.predict_file(ideas).to_pandas()
    assert table["string"].tolist() == ["CCCO", "CCCCCCCCCN"]
    assert table["name" if ending == "smi" else "Name"].tolist() == ["first", "last"]
    if ending != "smi":
        # Columns are told apart whatever the case of their letters.
        assert table["Predicted (file)"].tolist() == ["6,5", "=1"]
        assert table.columns.tolist()[-3:] == ["Name", "Predicted (file)", "dose"]
        # In a workbook numbers are numbers; a file of text says how its owner writes them.
        assert table["dose"].tolist() == ([6.5, 12] if ending == "xlsx" else ["6.5", "12"])
        assert pd.api.types.is_numeric_dtype(table["predicted"])


def test_a_file_of_genes_may_be_written_in_rna(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Campaign.create(tmp_path / "genes.seqopt", CodonSpace("MKVLA"), objective="y", batch_size=6) as campaign:
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, float(suggestion.string.count("G")))
        ideas = tmp_path / "ideas.csv"
        ideas.write_text("name,gene\na,AUGAAAGUUCUUGCU\nb,atgaaggttcttgct\nc,ATGAAAGTTCTTGCT\nd,ATGAAAGTTCTTGGT\n")
        found = campaign.predict_file(ideas)
        assert [row.string for row in found] == ["AUGAAAGUUCUUGCU", "atgaaggttcttgct"]
        assert found.to_pandas()["name"].tolist() == ["a", "b"]
        assert found == campaign.predict(["AUGAAAGUUCUUGCU", "atgaaggttcttgct"])
    assert "line 4 is left out: it is line 2 once more" in caplog.text
    assert "line 5 is left out" in caplog.text
    assert "codes for G, but residue 5 is A" in caplog.text


@pytest.mark.parametrize("streamed", [False, True])
def test_a_ranking_is_that_of_all_predictions(
    campaign: Campaign, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if streamed:  # as with a pool whose covariances do not fit into memory
        monkeypatch.setattr(seqopt.models.gaussian, "COLUMN_MEMORY", 0)
    done = {row.string for row in campaign.store.measurements()}
    left = [smiles for smiles in SMILES if smiles not in done]
    everything = campaign.predict(left)
    by_mean = campaign.rank(None)
    assert sorted(row.string for row in by_mean) == sorted(left)
    assert [row.rank for row in by_mean] == list(range(1, len(left) + 1))
    assert [row.predicted for row in by_mean] == pytest.approx(sorted(row.predicted for row in everything))
    by_chance = campaign.rank(5, by="improvement")
    best = sorted((row.improvement for row in everything), reverse=True)[:5]
    assert [row.improvement for row in by_chance] == pytest.approx(best, rel=1e-6)
    assert by_mean[0].identifier == f"CPD-{SMILES.index(by_mean[0].string):03d}"
    # Open ones count, and are marked.
    waiting = {row.string for row in campaign.store.open_suggestions()}
    assert {row.string for row in by_mean if row.status == "open"} == waiting
    by_worth = campaign.rank(10, by="acquisition")
    assert not waiting & {row.string for row in by_worth}
    values = [row.acquisition for row in by_worth]
    assert values == sorted(values, reverse=True)


def test_a_ranking_by_acquisition_begins_with_the_next_suggestion(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "c.seqopt", library(tmp_path), objective="size", acquisition="logei", batch_size=12
    ) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, float(row.string.count("C")))
        (first, *_) = campaign.rank(3, by="acquisition")
        (suggested,) = campaign.suggest(1)
        assert first.string == suggested.string
        assert first.acquisition == pytest.approx(suggested.score, rel=1e-3)


def test_filters_count_and_a_ranking_needs_a_pool(campaign: Campaign, tmp_path: Path) -> None:
    campaign.set_filters([PropertyRange.parse("MW <= 90")])
    assert {row.string for row in campaign.rank(None)} == {
        row.string for row in campaign.rank(None) if Descriptors.MolWt(Chem.MolFromSmiles(row.string)) <= 90
    }
    with pytest.raises(InputError, match="by is 'size'; choose mean, improvement, acquisition"):
        campaign.rank(3, by="size")  # type: ignore[arg-type]
    with Campaign.create(tmp_path / "d.seqopt", StringSpace("AB", 6), objective="y", batch_size=3) as generated:
        with pytest.raises(ModelError, match="0 values have been told"):
            generated.predict(["ABABAB"])
        for row in generated.suggest():
            generated.record(row.name, float(row.string.count("A")))
        with pytest.raises(InputError, match="there is no pool to rank"):
            generated.rank()
        with pytest.raises(InputError, match="string 1 of 1"):
            generated.predict(["ABABABAB"])
        (found,) = generated.predict(["AAAAAA"])
        assert found.predicted == pytest.approx(float(generated.optimizer().predict(["AAAAAA"])[0][0]))


def test_a_suggestion_is_explained_by_what_its_atoms_add(campaign: Campaign) -> None:
    suggestion = campaign.store.open_suggestions()[0]
    found = campaign.explain(suggestion.name.lower())
    assert (found.name, found.prediction.key, found.without) == (suggestion.name, suggestion.key, "")
    assert found.at_suggestion == suggestion.reason
    # The model has learned nothing since.
    assert found.reason == suggestion.reason
    rests = found.contributions
    assert rests is not None
    atoms = Chem.MolFromSmiles(suggestion.key).GetNumAtoms()
    assert (rests.unit, rests.method, len(rests.values)) == ("atom", "shares", atoms)
    # In log10 of the user's units, and in the user's direction.
    assert rests.prior_mean + rests.values.sum() == pytest.approx(math.log10(found.prediction.predicted))
    oxygen, carbon = campaign.explain("CPD-070"), campaign.explain("CCCCCCCCC")
    assert oxygen.prediction.string == SMILES[70]
    assert carbon.contributions is not None
    assert carbon.contributions.values.mean() > min(rests.values.mean(), oxygen.contributions.values.mean())


def test_a_campaign_of_an_older_version_is_shown_by_the_median(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", StringSpace("AB", 6), objective="IC50", transform="log10", batch_size=2
    ) as campaign:
        mean, std = Log10().moments(2.0, 1.0)  # as older versions kept them
        old = NewSuggestion("ABABAB", "ABABAB", mean, std, 5.0, 2000.0, reason={"kind": "explore"})
        with campaign.store.transaction("suggest", expected_state=campaign.store.state) as change:
            change.add_suggestions([old])
        (row,) = campaign.suggest()
        assert row.predicted("log10") == pytest.approx(100.0)
        assert campaign.suggest().to_pandas().loc[0, "predicted"] == pytest.approx(100.0)
        campaign.write_batch(tmp_path / "batch.csv")
        assert "100" in str(campaign.suggest())
    assert float(read_sheet(tmp_path / "batch.csv").rows[1][2]) == pytest.approx(100.0)


def test_a_suggestion_does_not_leave_older_predictions_behind(campaign: Campaign) -> None:
    for row in campaign.store.open_suggestions()[:3]:
        campaign.record(row.name, potency(row.string))
    campaign.predict(SMILES[:5])  # a fit from before the suggestion
    campaign.suggest(3, more=True)
    with Campaign.open(campaign.store.path) as other:
        assert list(campaign.predict(SMILES[:5])) == list(other.predict(SMILES[:5]))


def test_limits_are_told_as_limits_wherever_a_measured_value_is_shown(campaign: Campaign) -> None:
    """Held against what the campaign itself says of the same replicates."""
    campaign.record("CCCCCCCCCCO", ">5000")
    for value in ("<0.5", ">0.01", 0.2, 0.3):
        campaign.record("OCCO", value, replicate=True)
    campaign.record("OCCCO", "<0.5")
    campaign.record("OCCCO", 0.1, replicate=True)
    found = campaign.predict(["CCCCCCCCCCO", "OCCO", "OCCCO", "CCCCCCCCCCCCO"])
    known = {one.key: one for one in campaign.store.observations()}
    for row in found[:3]:
        assert row.measured == pytest.approx(known[row.key].mean(geometric=True))
        assert row.measured_censored == known[row.key].censored
    assert [row.measured_censored for row in found] == [">", None, "<", None]
    last = found[3]
    assert (last.nearest, last.nearest_value, last.nearest_censored) == ("CCCCCCCCCCO", pytest.approx(5000), ">")
    table = found.to_pandas()
    assert table["measured_censored"].tolist()[0] == table["nearest_censored"].tolist()[3] == ">"
    assert campaign.explain("CCCCCCCCCCCCO").reason["censored"] == ">"
    (made, *_) = [row for row in campaign.suggest(70, more=True) if row.reason.get("nearest") == "CCCCCCCCCCO"]
    assert made.reason["censored"] == ">"
    batch = campaign.store.open_suggestions()
    shown = [value for value in campaign.suggest().to_pandas()["nearest_value"] if value == ">5000"]
    assert len(shown) == sum(row.reason.get("nearest") == "CCCCCCCCCCO" for row in batch) > 0


def test_reports_and_explanations_say_what_the_owner_calls_a_string(campaign: Campaign) -> None:
    owned = {row.string: row.identifier for row in campaign.store.suggestions()}
    seen = set()
    for section in summarize(campaign):
        if "identifier" in section.header:
            place, string = section.header.index("identifier"), section.header.index("smiles")
            assert section.header[place - 1] == "name"
            assert all(row[place] == owned[row[string]] for row in section.rows)
            seen.add(section.title)
    assert {"Best measured", "Last batch with results", "Open suggestions"} <= seen
    (row, *_) = campaign.store.open_suggestions()
    for asked in (row.name, str(row.identifier), row.string):
        assert campaign.explain(asked).prediction.identifier == row.identifier
