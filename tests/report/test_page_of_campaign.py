"""The page of a campaign with a library of its own: identifiers, prices, neighbours, candidates, corrections."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from seqopt.campaign import Campaign
from seqopt.errors import InputError
from seqopt.filters import ColumnCondition, Substructure
from seqopt.models import StringGP
from seqopt.report import write_report
from seqopt.report.campaigns import read_campaign
from seqopt.report.cards import current_batch
from seqopt.report.html import value_label
from seqopt.report.library import read_library
from seqopt.report.string_table import string_table
from seqopt.report.view import Evidence, rows_of, view_of

HOSTILE = "<script>document.title='ran'</script>"
ENDS = ("O", "N", "C(=O)O", "F", "Cl", "c1ccccc1", "c1ccncc1", "C1CCCCC1")
SMILES = ["C" * n + end for n in range(1, 8) for end in ENDS]
FORMULA = "=cmd()"


def written(path: Path) -> Path:
    """A library; the first identifiers try to do harm, and the last molecule costs too much."""
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["compound", "smiles", "price", "supplier"])
        for i, smiles in enumerate(SMILES):
            name = {0: HOSTILE, 1: FORMULA, 2: '[bold]a, "b"'}.get(i, f"CPD-{i:05d}")
            rows.writerow([name, smiles, 900 if i == len(SMILES) - 1 else 10 + i, "Fisher, Inc."])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    filters = [ColumnCondition.parse("price <= 500"), Substructure("Cl", required=False)]
    with Campaign.create(
        folder / "mine.seqopt",
        written(folder / "library.csv"),
        objective="activity",
        batch_size=5,
        seed=3,
        filters=filters,
        id_column="compound",
        price_column="price",
    ) as campaign:
        for smiles in SMILES[:3]:
            campaign.record(smiles, 1.0)
        for _ in range(2):
            for suggestion in campaign.suggest():
                campaign.record(suggestion.name, 1.0 + suggestion.string.count("C"))
        campaign.correct("B01-01", 2.25, reason="typo <b>")
        campaign.discard("B01-02", reason="outlier")
        campaign.suggest()
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return write_report(folder / "mine.seqopt", predicted=6, highlight=["c1ccncc1"]).read_text(encoding="utf-8")


@pytest.fixture
def campaign(folder: Path) -> Iterator[Campaign]:
    with Campaign.open(folder / "mine.seqopt") as found:
        yield found


def section(page: str, name: str) -> str:
    """The text of a section, with the tags taken out."""
    found = re.search(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub("<[^>]*>", " ", found[1]).split())


@pytest.mark.slow
def test_identifiers_prices_and_suppliers_are_shown(page: str, campaign: Campaign) -> None:
    for suggestion in campaign.store.open_suggestions():
        assert suggestion.identifier is not None
        assert suggestion.identifier in section(page, "batch")
        assert f"price {suggestion.cells['price']} · supplier Fisher, Inc." in section(page, "batch")
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', page)
    assert {"compound", "price", "supplier"} <= set(heads)
    assert HOSTILE not in page
    assert "&lt;script&gt;document.title=&#39;ran&#39;&lt;/script&gt;" in page
    assert "[bold]a, &#34;b&#34;" in page


def test_filters_stand_in_words(page: str) -> None:
    assert "price &lt;= 500; without Cl" in page
    assert "&#34;kind&#34;" not in page


def test_a_whole_pool_is_not_called_random(page: str) -> None:
    assert "random molecules" not in page
    assert "not measured <span" in page


def test_corrected_and_discarded_results_are_seen(page: str, campaign: Campaign) -> None:
    assert "corrected from" in section(page, "all")
    assert "(typo &lt;b&gt;)" in section(page, "all")
    assert "was discarded (outlier)" in section(page, "all")
    assert "1 discarded" in page
    table = read_campaign(campaign.store.path).evaluations
    discarded = table[table["status"] == "discarded"]
    assert discarded["measured"].tolist() == [False]
    assert discarded["name"].tolist() == ["B01-02"]
    assert np.isfinite(discarded["value"]).all()


def test_a_neighbour_is_drawn_beside_its_suggestion_with_its_value(page: str, campaign: Campaign) -> None:
    batch = page[page.index('aria-labelledby="batch"') : page.index('aria-labelledby="next"')]
    suggestions = campaign.store.open_suggestions()
    assert batch.count("The most similar measured one, structure of") == len(suggestions)
    for suggestion in suggestions:
        value = float(suggestion.reason["value"])
        assert re.search(rf"measured {value:.2f}\b", section(page, "batch"))


def test_the_best_unmeasured_are_those_that_the_campaign_ranks_first(page: str, campaign: Campaign) -> None:
    known = {row.key for row in campaign.store.suggestions()} | {one.key for one in campaign.store.observations()}
    ranked = [row for row in campaign.rank(len(SMILES), by="mean") if row.key not in known]
    found = re.search(r'<section aria-labelledby="next">(.*?)</section>', page, re.DOTALL)
    assert found is not None
    strings = re.findall(r'<p class="text"><code class="whole">([^<]*)</code>', found[1])
    assert strings == [row.string for row in ranked[:6]]
    values = re.findall(r'<span class="state">([^<]*)</span>', found[1])
    assert [float(value) for value in values] == pytest.approx([row.predicted for row in ranked[:6]], abs=0.006)
    # The filters leave out what is too expensive, and chlorides.
    assert SMILES[-1] not in strings
    assert not any("Cl" in string for string in strings)


def test_nothing_is_fitted_for_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[bool] = []
    fit = StringGP.fit

    def watched(self: StringGP, *arguments: object, **options: object) -> StringGP:
        fits.append(bool(options.get("full", True)))
        return fit(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(StringGP, "fit", watched)
    write_report(folder / "mine.seqopt", out=folder / "again.html")
    assert fits == [False]  # values are conditioned on, at the parameters that were kept


def test_what_was_removed_or_excluded_is_not_recommended(tmp_path: Path) -> None:
    from seqopt.report.analysis import analyse
    from seqopt.report.samples import sample_candidates

    path = tmp_path / "a.seqopt"
    with Campaign.create(
        path, written(tmp_path / "library.csv"), objective="y", batch_size=4, seed=1, id_column="compound"
    ) as campaign:
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, 1.0 + suggestion.string.count("C"))
        campaign.suggest()
    run = read_campaign(path)
    candidates = sample_candidates(run, "molecule", 100)
    first = analyse(run, "molecule", candidates, predicted=3).unmeasured
    assert first is not None
    with Campaign.open(path) as campaign:
        (tmp_path / "gone.csv").write_text(f"smiles\n{first.best[0].string}\n")
        campaign.change_pool(remove=tmp_path / "gone.csv")
    second = analyse(read_campaign(path), "molecule", candidates, predicted=2).unmeasured
    assert second is not None
    assert [one.string for one in second.best] == [one.string for one in first.best[1:]]
    excluded = replace(read_campaign(path), excluded=frozenset({first.best[1].key}))
    third = analyse(excluded, "molecule", candidates, predicted=1).unmeasured
    assert third is not None
    assert [one.string for one in third.best] == [first.best[2].string]


def test_censored_values_keep_their_sign(folder: Path) -> None:
    run = read_campaign(folder / "mine.seqopt")
    table = run.evaluations
    table.loc[0, "censored"] = "<"
    view = view_of(run, value_label(run.settings))
    texts = {row.number: [text for text, _ in row.cells] for row in string_table(view).rows}
    assert f"<{view.show(table.loc[0, 'value'])}" in texts[1]
    assert not any(text.startswith("<") for number, row in texts.items() if number != 1 for text in row[:4])


def test_substructures_of_rows_and_of_the_map_are_those_that_rdkit_finds(page: str) -> None:
    names = re.findall(r'<option value="(\d+)">(.*?) \((\d+)\)</option>', page)
    assert names[0][1] == "with c1ccncc1"
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    queries = {"with c1ccncc1": "c1ccncc1", "carboxylic acid": "C(=O)[OH]", "pyridine": "n1ccccc1"}
    rows = re.findall(r'<tr id="row-\d+".*?data-f="([0-9a-f]+)".*?<code class="whole">([^<]*)</code>', page)
    pairs = [*rows, *((point[8], point[2]) for point in data["points"])]
    assert len(pairs) > 60
    bits = {name: int(bit) for bit, name, _ in names}
    for name, smarts in queries.items():
        query = Chem.MolFromSmarts(smarts)
        for mask, smiles in pairs:
            assert bool(int(mask, 16) >> bits[name] & 1) == Chem.MolFromSmiles(smiles).HasSubstructMatch(query)


def test_only_molecules_have_substructures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SMARTS"):
        write_report(tmp_path, highlight=["not smarts ("])
    (tmp_path / "evaluations.csv").write_text("string,value\nMKVLAAMKVLAA,1\nMKVLAAMKVLAG,2\n")
    with pytest.raises(InputError, match="--highlight marks substructures of molecules"):
        write_report(tmp_path, highlight=["CC"])


def test_a_library_with_an_added_file(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with Campaign.create(
        path, written(tmp_path / "library.csv"), objective="y", seed=1, id_column="compound", price_column="price"
    ) as campaign:
        (tmp_path / "more.csv").write_text("compound,smiles,price\nNEW-1,CCCCBr,5\n")
        campaign.change_pool(add=tmp_path / "more.csv")
        campaign.record("CCCCBr", 3.0)
    library = read_library(read_campaign(path))
    assert (library.identifier("CCCCBr"), library.cells("CCCCBr")["price"]) == ("NEW-1", "5")
    assert library.cells("CCCCBr")["supplier"] == ""
    assert library.identifier(SMILES[5]) == "CPD-00005"
    assert library.identifier("not there") == ""


def test_numbers_of_a_library_with_decimal_commas_have_points_on_the_page(tmp_path: Path) -> None:
    rows = [f"{smiles};{10 + i},5;Fisher, Inc." for i, smiles in enumerate(SMILES)]
    (tmp_path / "library.csv").write_text("\n".join(["smiles;price;supplier", *rows]))
    path = tmp_path / "a.seqopt"
    with Campaign.create(path, tmp_path / "library.csv", objective="y", seed=1, decimal_comma=True) as campaign:
        campaign.record(SMILES[3], 3.0)
        campaign.suggest(2)
    view = view_of(read_campaign(path), "y")
    table = string_table(view)
    place = next(i for i, column in enumerate(table.columns) if column.title == "price")
    cells = [row.cells[place] for row in table.rows]
    assert ("13.5", "13.5") in cells
    assert all(text == number for text, number in cells)
    assert table.columns[place].numeric
    assert view.library.cells(SMILES[4]) == {"price": "14.5", "supplier": "Fisher, Inc."}


def test_what_the_nearest_string_was_measured_at_keeps_the_sign_of_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    library = written(tmp_path / "library.csv")
    with Campaign.create(path, library, objective="y", seed=1, batch_size=8, surrogate="tanimoto") as campaign:
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, 1.0 if suggestion.name == "B01-01" else ">7.5")
        campaign.suggest()
    view = view_of(read_campaign(path), "y")
    evidence = [view.evidence(row) for row in rows_of(view.run.evaluations)]
    told = [view.nearest_value(one) for one in evidence if one.nearest]
    assert ">7.50" in told
    assert set(told) <= {">7.50", "1.00"}
    table = string_table(view)
    place = next(i for i, column in enumerate(table.columns) if column.title == "Nearest before")
    assert {row.cells[place][0].partition(": ")[2] for row in table.rows} <= {"", ">7.50", "1.00"}
    assert {card.nearest_value for card in current_batch(view).cards} <= {"", ">7.50", "1.00"}


def test_what_is_missing_in_a_reason_stays_unknown() -> None:
    assert Evidence.read({}).words() == []
    told = Evidence.read({"kind": "explore", "rank": "x", "improvement": None, "difference": ["+O", "-N"]})
    assert (told.rank, told.difference, told.words()) == (0, "+O, -N", [])
