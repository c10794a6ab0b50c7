"""Campaigns whose results are hit and no hit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.hits import first_answers
from seqopt.campaign.summary import render, summarize
from seqopt.cli import main
from seqopt.cli.app import app
from seqopt.data.hits import tried_rows
from seqopt.errors import InputError
from seqopt.spaces import CandidateSet

WORDS = [f"{one}{two}{three}{four}" for one in "AB" for two in "ABC" for three in "ABC" for four in "ABC"]


def _begin(folder: Path, name: str = "hits", **options: object) -> Campaign:
    given = {"objective": "binds", "transform": "yes/no", "batch_size": 6, "surrogate": "ngrams"} | options
    return Campaign.create(folder / f"{name}.seqopt", CandidateSet(WORDS, kind="text"), **given)


def _hit(word: str) -> bool:
    return "AB" in word


def _file(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _known(folder: Path, count: int = 24) -> Path:
    lines = [f"{word},{'Active' if _hit(word) else 'Inactive'}" for word in WORDS[::2][:count]]
    return _file(folder, "string,outcome\n" + "\n".join(lines) + "\n", "known.csv")


def test_a_screen_from_import_to_report(tmp_path: Path) -> None:
    with _begin(tmp_path) as campaign:
        taken, _ = campaign.record_file(_known(tmp_path), history=True)
        assert {row.told for row in taken} == {"hit", "no hit"}
        batch = campaign.suggest()
        assert batch[0].acquisition == "gibbon"
        for row in batch:
            assert row.mean is not None
            assert 0 < row.low < row.mean < row.high < 1
        campaign.write_batch(tmp_path / "batch.csv")
        with (tmp_path / "batch.csv").open(encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream))
        assert [float(row["chance_of_hit"]) for row in rows] == pytest.approx([row.mean for row in batch], abs=1e-4)
        assert all(float(r["chance_low"]) < float(r["chance_of_hit"]) < float(r["chance_high"]) for r in rows)
        assert {"nearest_value", "wells", "failure"} <= set(rows[0])
        assert not {"standard_error", "chance_to_beat_best"} & set(rows[0])
        assert {row["nearest_value"] for row in rows} <= {"hit", "no hit"}
        for row, answer in zip(rows, ["hit", "no", "inconclusive", "3 of 4", "1", "FALSE"], strict=True):
            row["binds"] = answer
        with (tmp_path / "batch.csv").open("w", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        taken, _ = campaign.record_file(tmp_path / "batch.csv")
        assert [row.told for row in taken] == ["hit", "no hit", "inconclusive", "3 of 4", "hit", "no hit"]
        status = campaign.status()
        assert status.calibration is None
        hits = status.hits
        assert hits is not None
        assert (hits.strings, hits.inconclusive, hits.wells) == (29, 1, 32)
        assert hits.hits == sum(_hit(word) for word in WORDS[::2][:24]) + 3
        assert hits.calibration.count == 5
        assert hits.calibration.expected == pytest.approx(sum(r.mean for r in batch if r.name != batch[2].name))
        text = render(summarize(campaign))
        for what in ("Hits found", "inconclusive: 1", "3 of 4", "chance of a hit", "not suggested"):
            assert what in text
        # What was inconclusive has been tried.
        again = campaign.suggest()
        assert batch[2].string not in [row.string for row in again]
        assert campaign.record(batch[2].name, "hit")[0].value == 1.0


def test_what_is_inconclusive_teaches_nothing(tmp_path: Path) -> None:
    told = []
    for name in ("with", "without"):
        with _begin(tmp_path, name) as campaign:
            campaign.record_file(_known(tmp_path), history=True)
            if name == "with":
                campaign.record(WORDS[1], "inconclusive")
            told.append({row.string: row.mean for row in campaign.suggest(20)})
    assert WORDS[1] not in told[0]
    for string, mean in told[0].items():
        if string in told[1]:
            assert mean == pytest.approx(told[1][string], abs=1e-9)


def test_only_inconclusive_results_are_kept(tmp_path: Path) -> None:
    with _begin(tmp_path) as campaign:
        batch = campaign.suggest()
        for row in batch:
            campaign.record(row.name, "inconclusive")
        assert campaign.status().hits.inconclusive == 6
        assert len(campaign.suggest()) == 6
        assert "No hits so far" in render(summarize(campaign))


def test_a_campaign_goes_on_as_if_it_had_not_been_closed(tmp_path: Path) -> None:
    space = CandidateSet(WORDS, kind="text")
    with _begin(tmp_path, "one") as one:
        one.record_file(_known(tmp_path), history=True)
        for row in one.suggest():
            one.record(row.name, _hit(row.string))
        one.record(WORDS[3], "2 of 8", replicate=True)
        expected = [(row.string, row.mean) for row in one.suggest()]
    with _begin(tmp_path, "two") as two:
        two.record_file(_known(tmp_path), history=True)
        batch = two.suggest()
    with Campaign.open(tmp_path / "two.seqopt", space) as two:
        for row in batch:
            two.record(row.name, _hit(row.string))
    with Campaign.open(tmp_path / "two.seqopt", space) as two:
        two.record(WORDS[3], "2 of 8", replicate=True)
        assert [(row.string, row.mean) for row in two.suggest()] == expected


def test_wells_are_rows_cells_or_columns(tmp_path: Path) -> None:
    tables = {
        "rows": "string,binds\n" + "".join(f"{WORDS[0]},{text}\n" for text in ("hit", "no", "0", "yes", "no hit")),
        "cell": f"string,binds\n{WORDS[0]},2 of 5\n",
        "columns": f"string,hits,wells\n{WORDS[0]},2,5\n",
        "value": f"string,binds,wells\n{WORDS[0]},2,5\n",
    }
    for name, text in tables.items():
        with _begin(tmp_path, name) as campaign:
            campaign.record_file(_file(tmp_path, text, f"{name}.csv"), history=True)
            (one,) = campaign.store.observations()
            assert (one.told, one.wells, one.mean()) == ("2 of 5", 5, pytest.approx(0.4))


def test_what_was_exported_is_read_back(tmp_path: Path) -> None:
    with _begin(tmp_path, "one") as one, _begin(tmp_path, "two") as two:
        one.record_file(_known(tmp_path), history=True)
        one.record(WORDS[1], "3 of 8")
        one.record(WORDS[3], "inconclusive")
        one.record(WORDS[5], failure="precipitated")
        one.export(tmp_path / "export.csv")
        two.record_file(tmp_path / "export.csv", history=True)
        first, second = (
            [(r.string, r.told, r.discarded) for r in c.store.measurements(discarded=True)] for c in (one, two)
        )
        assert first == second


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("string,binds\nAAAA,hit\nAAAB,maybe\n", "line 3, column 'binds': 'maybe' is not a yes/no result"),
        ("string,binds\nAAAA,6.4\n", "line 2, column 'binds': '6.4' is a number, and results are yes or no"),
        ("string,binds\nAAAA,nan\n", "line 2, column 'binds': 'nan' is not a yes/no result"),
        ("string,hits,wells\nAAAA,9,8\n", "line 2, column 'hits': '9' has more hits"),
        ("string,hits,wells\nAAAA,1,0\n", "'1' is of"),
        ("string,hits,wells\nAAAA,1.5,4\n", "expected a whole number from 0 to 4"),
        ("string,hits,wells\nAAAA,1,many\n", "line 2, column 'wells': 'many' is not a number of wells"),
        ("string,hits,wells\nAAAA,2,\n", "does not say of how many wells"),
        ("string,binds,wells\nAAAA,hit,8\n", "does not say how many of its 8 wells"),
        ("string,binds,hits,wells\nAAAA,1,3,8\n", "disagrees with"),
        ("string,binds,standard_error\nAAAA,hit,0.1\n", "is a standard error"),
        ("string,binds,failure\nAAAA,hit,precipitated\n", "there is a value, too"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    with _begin(tmp_path) as campaign:
        with pytest.raises(CampaignError) as caught:
            campaign.record_file(_file(tmp_path, text), history=True)
        assert what in str(caught.value)
        assert not campaign.store.measurements()


@pytest.mark.parametrize("value", ["maybe", "5 of 4", 6.4, float("nan"), "6.4", ""])
def test_a_value_that_is_none_is_refused(tmp_path: Path, value: object) -> None:
    with _begin(tmp_path) as campaign:
        with pytest.raises(InputError, match="the value"):
            campaign.record(WORDS[0], value)
        assert not campaign.store.measurements()


def test_results_are_corrected_and_discarded(tmp_path: Path) -> None:
    with _begin(tmp_path) as campaign:
        campaign.record(WORDS[0], "hit")
        assert campaign.correct(WORDS[0], "no hit").told == "no hit"
        assert campaign.correct(WORDS[0], "1 of 2").told == "1 of 2"
        with pytest.raises(CampaignError, match="discard it"):
            campaign.correct(WORDS[0], "inconclusive")
        campaign.discard(WORDS[0], "wrong plate", was="1 of 2")
        assert campaign.status().hits.strings == 0
        with pytest.raises(InputError, match="no other transform"):
            campaign.change(transform="log10")


def test_a_number_campaign_is_as_before(tmp_path: Path) -> None:
    with _begin(tmp_path, transform="auto") as campaign:
        assert campaign.record(WORDS[0], 6.4)[0].details == {}
        with pytest.raises(InputError):
            campaign.record(WORDS[1], "hit")
        assert campaign.status().hits is None


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, "string\n" + "\n".join(WORDS) + "\n", "pool.csv")
    _known(tmp_path)
    run = CliRunner()

    def call(line: str) -> str:
        found = run.invoke(app, line.split())
        assert found.exit_code == 0, found.output + str(found.exception)
        return " ".join(found.output.split())

    said = call("campaign new screen --pool pool.csv --kind text --objective-name binds --results yes/no --batch 4")
    assert "results are yes or no" in said
    assert "recorded 24 results" in call("campaign import known.csv")
    assert "chance of a hit, 90 %:" in call("campaign suggest --out batch.csv")
    assert "recorded B01-01: hit" in call("campaign record B01-01 hit")
    assert "inconclusive: it is kept and shown" in call("campaign record B01-02 inconclusive")
    assert "is no hit now, and was hit" in " ".join(
        run.invoke(app, ["campaign", "correct", "B01-01", "no hit"]).output.split()
    )
    assert "hits:" in call("campaign status")
    facts = json.loads(run.invoke(app, ["campaign", "status", "--json"]).output)
    assert facts["hits"]["inconclusive"] == 1
    assert "Hits found" in call("campaign report")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("--results maybe", "expected numbers, or yes/no"),
        ("--results yes/no --plates", "do not go together yet"),
        ("--results yes/no --transform log10", "leave it out"),
        ("--results yes/no --unit nM", "have no unit"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, "string\n" + "\n".join(WORDS) + "\n", "pool.csv")
    found = CliRunner().invoke(app, f"campaign new a --pool pool.csv --kind text --objective-name b {options}".split())
    assert found.exit_code != 0
    assert what in str(found.exception)
    assert not (tmp_path / "a.seqopt").exists()


def test_the_page_counts_hits(tmp_path: Path) -> None:
    from seqopt.report import write_report

    with _begin(tmp_path) as campaign:
        campaign.record_file(_known(tmp_path), history=True)
        for row in campaign.suggest():
            campaign.record(row.name, "inconclusive" if row.position == 1 else _hit(row.string))
        campaign.suggest()
        hits = campaign.status().hits
    text = write_report(tmp_path / "hits.seqopt").read_text(encoding="utf-8")
    assert f"{hits.hits} of {hits.strings}" in text
    for what in ("Hits found", "Hits so far", "hits were expected", "inconclusive was discarded", "% (90 %:"):
        assert what in text
    for what in ("Highest value found", "R²", "off by", "most likely nan"):
        assert what not in text


def test_wells_on_rows_of_their_own_are_held_against_told_chances_like_counts(tmp_path: Path) -> None:
    found = {}
    for form in ("rows", "counts"):
        with _begin(tmp_path, form) as campaign:
            campaign.record_file(_known(tmp_path), history=True)
            batch = campaign.suggest()
            hits = {row.name: place % 4 for place, row in enumerate(batch)}
            if form == "counts":
                lines = [f"{name},{number} of 3" for name, number in hits.items()]
            else:
                # The first of the wells is no hit wherever that can be.
                lines = [f"{name},{int(well >= 3 - number)}" for well in range(3) for name, number in hits.items()]
            campaign.record_file(_file(tmp_path, "identifier,binds\n" + "\n".join(lines) + "\n"))
            # What is measured again is often a hit, and is not what the chance was told of.
            campaign.record(batch[3].name, "hit", replicate=True)
            status = campaign.status()
            missed = [(one.trials, one.share) for one in tried_rows(campaign.session().optimizer.observations.rows)]
            found[form] = (status.hits.calibration, status.hits.batches[-1], sorted(missed))
    assert found["rows"] == found["counts"]
    assert found["rows"][1].hits == pytest.approx(sum(number / 3 for number in hits.values()))
    assert [trials for trials, _ in found["rows"][2]] == [3] * 6


def test_predictions_are_chances_of_a_hit_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _begin(tmp_path) as campaign:
        campaign.record_file(_known(tmp_path), history=True)
        campaign.record(WORDS[1], "5 of 12")
        (one, *_) = found = campaign.predict([WORDS[1], WORDS[3]])
        assert (one.known, one.improvement) == ("measured 5 of 12", None)
        table = found.to_pandas()
        assert list(table.columns[:5]) == ["string", "chance_of_hit", "chance_low", "chance_high", "status"]
        assert table["wells"].tolist()[0] == 12
        assert not {"true_low", "chance_to_beat_best"} & set(table.columns)
        assert "chance of a hit" in found._repr_html_()
        explanation = campaign.explain(WORDS[1])
        assert "chance of a hit, 90 %:" in explanation._repr_html_()
        assert campaign.store.settings.modelled == "log odds of a hit, binds"
        assert "measurement" not in explanation._repr_html_()
        with pytest.raises(InputError, match="no hit is better than another"):
            campaign.rank(3, by="improvement")
        assert [row.predicted for row in campaign.rank(3)] == sorted(
            (r.predicted for r in campaign.rank(3)), reverse=True
        )
    for words in (["rank", "-n", "3"], ["predict", WORDS[1]], ["recommend"], ["explain", WORDS[1]]):
        assert main(["campaign", *words, "--campaign", str(tmp_path / "hits.seqopt")]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "chance of a hit" in said
        assert "median" not in said


def test_a_hit_in_few_wells_is_listed_and_said_not_to_count(tmp_path: Path) -> None:
    with _begin(tmp_path) as campaign:
        campaign.record_file(_known(tmp_path), history=True)
        campaign.record(WORDS[1], "1 of 4")
        text = render(summarize(campaign))
        assert "1 of these is a hit in half of its wells or fewer" in " ".join(text.split())


def test_a_correction_stands_where_what_it_corrects_was_recorded(tmp_path: Path) -> None:
    with _begin(tmp_path) as campaign:
        campaign.record_file(_known(tmp_path), history=True)
        first, second, *_ = campaign.suggest()
        campaign.record(first.name, "0 of 4")
        campaign.record(first.name, "hit", replicate=True)
        campaign.correct(first.name, "1 of 4", was="0 of 4")
        rows = "".join(f"{second.name},{answer}\n" for answer in ("no hit", "hit", "1 of 2"))
        campaign.record_file(_file(tmp_path, "identifier,binds\n" + rows))
        campaign.correct(second.name, "hit", was="no hit")
        store = campaign.store
        found = first_answers(store.measurements(), store.measurements(undone=True))
        assert found[first.name] == (pytest.approx(0.25), 4)
        assert found[second.name] == (pytest.approx(0.75), 4)
        assert campaign.status().hits.batches[-1].hits == pytest.approx(1.0)
