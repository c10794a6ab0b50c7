"""What a page says of fidelities and plates."""

import json

import pandas as pd
import pytest

from seqopt.report import write_report
from seqopt.report.results import read_run
from seqopt.report.ways import ways_of

NASTY = "<b>dock & roll</b>"


def written(folder, contexts, rows, learned=(), **settings):
    frame = pd.DataFrame(rows)
    frame.insert(0, "number", range(1, len(frame) + 1))
    frame.to_csv(folder / "evaluations.csv", index=False)
    summary = {"status": "finished", "settings": {"contexts": contexts, **settings}, "learned": list(learned)}
    (folder / "summary.json").write_text(json.dumps(summary))
    return read_run(folder)


def fidelities(names=("assay", "docking")):
    return {
        "possible": [[["fidelity", name]] for name in names],
        "target": [["fidelity", names[0]]],
        "costs": [1.0, 0.1],
    }


def row(string, value, fidelity="assay", cost=1.0, status="ok", batch=0):
    return {
        "string": string, "key": string, "status": status, "value": value, "batch": batch, "fidelity": fidelity,
        "cost": cost,
    }  # fmt: skip


ROWS = [
    row("AA", 1.0),
    row("AA", 5.0, "docking", 0.1),
    row("AB", 2.0, batch=1),
    row("BB", None, "docking", 0.1, "failed", 1),
    row("BA", None, "docking", 0.1, "pending", 2),
]
LEARNED = {
    "context": {"fidelity": "docking"},
    **{"correlation": 0.9, "correlation_low": 0.8, "correlation_high": 0.95},
    **{"offset": 4.0, "offset_low": 3.0, "offset_high": 5.0},
}


def test_counts_costs_and_what_was_learned(tmp_path):
    run = written(tmp_path, fidelities(), ROWS, [LEARNED])
    assert run.evaluations["string"].tolist() == ["AA", "AB"]  # the target's
    found = ways_of(run, "activity")
    assert (found.target, found.kind, found.offsets) == ("assay", "fidelity", False)
    target, docking = found.rows
    assert (target.measured, target.failed, target.cost, target.is_target) == (2, 0, 2.0, True)
    # What awaits a result has cost nothing yet.
    assert (docking.measured, docking.failed, docking.cost) == (1, 1, pytest.approx(0.2))
    assert docking.share == pytest.approx(0.2 / 2.2)
    assert docking.correlation == "0.90 (90%: 0.8 to 0.95)"
    (few,) = found.sentences
    assert found.curve.lstrip().startswith("<?xml")
    # Of the two strings with a value of the target, docking has one of one.
    assert (target.both, docking.both) == (None, 1)
    assert few.startswith("Only one string was measured both by docking and as assay, too few to judge")
    assert "correlation of 0.90 (90%: 0.8 to 0.95)" in few


@pytest.mark.slow
@pytest.mark.parametrize(("both", "few"), [(0, "No string was"), (7, "Only 7 strings were"), (8, None)])
def test_few_strings_that_were_measured_in_both_ways_are_warned_of(tmp_path, both, few):
    strings = ["A" * length for length in range(1, 15)]
    rows = [row(string, 1.0 * len(string)) for string in strings[:both]]
    rows += [row(string, 1.0 * len(string), "docking", 0.1) for string in strings]
    rows += [row("B", 3.0), row("BB", None, status="failed"), row("BB", 4.0, "docking", 0.1)]
    found = ways_of(written(tmp_path, fidelities(), rows, [LEARNED]), "activity")
    assert found.rows[1].both == both
    warned = [text for text in found.sentences if "measured both" in text]
    assert [text.split(" measured")[0] for text in warned] == ([few] if few else [])
    worth = [text for text in found.sentences if "docking tells most of assay" in text]
    assert ["leaves 19% of the variance" in text for text in worth] == ([] if few else [True])
    if both == 7:
        page = write_report(tmp_path).read_text()
        assert "strings with the target, too" in page
        assert '<td class="number">7</td>' in page


def test_a_point_estimate_has_no_interval(tmp_path):
    rows = [row("A" * length, 1.0 * length, *how) for length in range(1, 9) for how in ((), ("docking", 0.1))]
    point = LEARNED | {"correlation": -0.99999, "correlation_low": -0.99999, "correlation_high": -0.99999}
    found = ways_of(written(tmp_path, fidelities(), rows, [point]), "activity")
    assert found.rows[1].correlation == "-1.00"
    assert "where one is high, the other is low" in found.sentences[0]
    assert "leaves less than 1%" in found.sentences[0]


def test_nothing_measured_as_the_target_yet(tmp_path):
    found = ways_of(written(tmp_path, fidelities(), [row("AA", 5.0, "docking", 0.1)]), "activity")
    assert found.sentences == ("Nothing was measured by assay yet, which is what is searched for.",)
    assert found.curve == ""
    page = write_report(tmp_path).read_text()
    assert "Nothing was measured by assay yet" in page


def test_plates_have_offsets(tmp_path):
    contexts = {"possible": [], "target": [], "costs": [], "open": "plate", "open_cost": 2.0}
    rows = [
        {**{k: v for k, v in row(s, v, cost=2.0, batch=b).items() if k != "fidelity"}, "plate": p}
        for s, v, p, b in [("AA", 1.0, "P1", 0), ("AB", 2.0, "P2", 0), ("BB", 3.0, "P2", 1)]
    ]
    learned = [
        {"context": {"plate": "P1"}, "correlation": 0.7, "offset": -0.5, "offset_low": -0.7, "offset_high": -0.3},
        {"context": {"plate": "P2"}, "correlation": 0.7, "offset": 0.1, "offset_low": -0.1, "offset_high": 0.3},
    ]
    run = written(tmp_path, contexts, rows, learned)
    assert len(run.evaluations) == 3
    found = ways_of(run, "activity")
    assert found.title == "Plates"
    assert [one.name for one in found.rows] == ["P1", "P2"]
    assert found.rows[0].offset == "-0.5 (90%: -0.7 to -0.3)"
    assert found.sentences == ("Offsets that are more than chance: P1 reads 0.5 lower than the plates have in common.",)
    assert sum(one.share for one in found.rows) == pytest.approx(1.0)
    assert found.curve == ""  # all cost the same
    assert "what every plate has in common" in run.remarks[-1]


def test_the_recommended_string_is_named_and_escaped(tmp_path):
    written(tmp_path, fidelities(), ROWS)
    summary = json.loads((tmp_path / "summary.json").read_text())
    summary["recommended"] = {"string": "<u>AB</u>", "predicted_mean": 1.95, "predicted_std": 0.25}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    page = write_report(tmp_path).read_text()
    assert "&lt;u&gt;AB&lt;/u&gt;, predicted 1.95 ± 0.25" in page
    assert "<u>" not in page


def test_a_search_with_one_way_to_measure_has_none(tmp_path):
    pd.DataFrame([{"string": "AA", "value": 1.0}]).to_csv(tmp_path / "evaluations.csv", index=False)
    assert ways_of(read_run(tmp_path), "value") is None


def test_what_a_user_typed_is_escaped(tmp_path):
    rows = [one | {"fidelity": NASTY if one["fidelity"] == "docking" else "assay"} for one in ROWS]
    learned = LEARNED | {"context": {"fidelity": NASTY}}
    written(tmp_path, fidelities(("assay", NASTY)), rows, [learned], objective="<i>x</i>")
    page = write_report(tmp_path).read_text()
    assert "What each fidelity contributed" in page
    assert NASTY not in page
    assert "&lt;b&gt;dock &amp; roll&lt;/b&gt;" in page


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [{"possible": 3}, {"possible": [["x"]], "target": []}])
def test_settings_that_were_edited_do_no_harm(tmp_path, damaged):
    pd.DataFrame(ROWS).to_csv(tmp_path / "evaluations.csv", index=False)
    (tmp_path / "summary.json").write_text(json.dumps({"settings": {"contexts": damaged}}))
    assert write_report(tmp_path).is_file()
