"""Reports of campaigns as plain tables."""

from __future__ import annotations

from pathlib import Path

from scipy import stats

from seqopt.campaign import Campaign, NewMeasurement, NewSnapshot, NewSuggestion
from seqopt.campaign.summary import Section, render, summarize
from seqopt.filters import Pattern
from seqopt.spaces import CodonSpace, StringSpace


def section(campaign: Campaign, title: str) -> Section:
    return next(part for part in summarize(campaign) if part.title == title)


def made(path: Path, predictions: list[float], values: list[float | None]) -> Campaign:
    """A campaign with one batch whose intervals are the predictions plus and minus one."""
    campaign = Campaign.create(path, StringSpace("ab", max_length=8), objective="activity", direction="minimize")
    names = [f"{'a' * number}b" for number in range(len(predictions))]
    new = [
        NewSuggestion(name, name, mean, 0.6, mean - 1, mean + 1, "gibbon", 0.1, {"kind": "explore"})
        for name, mean in zip(names, predictions, strict=True)
    ]
    with campaign.store.transaction("suggest", expected_state=campaign.store.state) as change:
        summary = {"r2": 0.25, "within_90": 0.8, "left": 12, "parameters": {"noise_variance": 0.1}}
        change.add_suggestions(new, snapshot=change.add_snapshot(NewSnapshot("StringGP", 9, summary)))
    with campaign.store.transaction("record") as change:
        change.add_measurements(
            NewMeasurement(name, name, value, "broken" if value is None else None)
            for name, value in zip(names, values, strict=False)
        )
    return campaign


def test_a_campaign_without_results_is_reported(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", StringSpace("01", 8), objective="y", filters=[Pattern("1")]
    ) as campaign:
        text = render(summarize(campaign))
    for line in (
        "y (maximize)",
        "Nothing has been measured yet.",
        "filters: with the pattern 1",
        "None yet: the first",
    ):
        assert line in text


def test_genes_are_reported_with_their_protein_and_what_they_are_kept_to(tmp_path: Path) -> None:
    space = CodonSpace("MKV" * 20, forbidden=["GGTCTC"], gc=(0.3, 0.6), stop="TAA")
    with Campaign.create(tmp_path / "a.seqopt", space, objective="y") as campaign:
        lines = section(campaign, "y (maximize)").lines
    assert lines[0] == f"searched: genes of a protein of 60 residues, {('MKV' * 20)[:37]}..."
    assert lines[1] == "kept to: stop codon TAA, no GGTCTC, GC content 0.3 to 0.6"
    with Campaign.create(tmp_path / "b.seqopt", CodonSpace("MKV"), objective="y") as campaign:
        lines = section(campaign, "y (maximize)").lines
    assert lines[0] == "searched: genes of a protein of 3 residues, MKV"
    assert lines[1].startswith("measured: 0 values")


def test_predictions_are_held_against_results(tmp_path: Path) -> None:
    predictions, values = [1.0, 2.0, 3.0, 4.0, 5.0], [1.5, 0.5, 3.0, 9.0]
    with made(tmp_path / "a.seqopt", predictions, [*values[:3], None, values[3]]) as campaign:
        last = section(campaign, "Last batch with results")
        rank = stats.spearmanr([1, 2, 3, 5], values).statistic
        # Errors 0.5, 1.5, 0 and 4; the first and the third lie within one.
        assert last.lines == (
            f"Batch 1: 2 of 4 results within their 90 % interval, mean error 1.5, rank correlation {rank:.2f}.",
        )
        assert [row[-1] for row in last.rows] == ["inside", "below", "inside", "", "above"]
        assert [row[-2] for row in last.rows] == ["1.5", "0.5", "3", "failed", "9"]
        best = section(campaign, "Best measured")
        assert [row[1] for row in best.rows] == ["B01-02", "B01-01", "B01-03", "B01-05"]  # the smallest first
        assert [row[1:] for row in section(campaign, "Failures").rows] == [("B01-04", "aaab", "broken")]
        assert (
            "leave-one-out: R2 0.25; 80 % of the values within their 90 % interval" in section(campaign, "Model").lines
        )


def test_replicates_imports_and_what_is_open(tmp_path: Path) -> None:
    with made(tmp_path / "a.seqopt", [1.0, 2.0, 3.0], [4.0]) as campaign:
        campaign.record("b", 6.0, replicate=True)
        campaign.record("bbbb", 1.0)
        campaign.set_filters([Pattern("ab$", required=False)])
        best = section(campaign, "Best measured").rows
        assert best == (("1", "not suggested", "bbbb", "1", "1", ""), ("2", "B01-01", "b", "5", "2", "1.414"))
        waiting = section(campaign, "Open suggestions").rows
        assert [row[0] for row in waiting] == ["B01-02", "B01-03"]
        assert {row[4] for row in waiting} == {"explore, fails: it has the pattern ab$"}
        assert any("would not be suggested any more" in line for line in section(campaign, "Warnings").lines)


def test_text_is_shown_as_it_is_and_strings_are_neither_folded_nor_cut() -> None:
    said = (":smile: [red]x", "a sentence that is longer than the terminal is wide, and may be folded")
    text = render([Section("A [b]title[/b]", said, ("one", "two"), (("[nH]" * 40, "y"),))], width=60)
    assert "A [b]title[/b]" in text
    assert ":smile: [red]x" in text
    assert "[nH]" * 40 + "  y" in text.splitlines()
    assert all(len(line) <= 60 for line in text.splitlines()[:-2])  # all but the table
