"""The tutorial of twelve weeks: after each, the campaign holds what a ledger kept beside it holds.

The ledger is made from the tables that the laboratory filled in and from what the page types, by pandas alone. What the
page shows of outputs stands in them, whatever the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import ROOT, Block, blocks_of, run_blocks
from rdkit import Chem
from rdkit.Chem import Descriptors

from seqopt.campaign import Campaign

PAGE = ROOT / "docs" / "tutorials" / "twelve-weeks.md"
OUTLIER = 96.3
TYPED = {
    # What single commands and the table of the second plate tell, by identifier.
    4: {"PM-0051": ["24.6", "26.1"], "PM-0366": ["5.02"], "PM-0432": ["8.12"], "PM-0384": ["341"], "PM-0024": ["228"]}
    | {"PM-0042": ["655"]},
    10: {"PM-0171": ["<1"]},
}
PARTNER = ["61.5", "0.92", "205", "0.64", "<0.1", ">500"]
TABLES = {
    2: ["week01.csv"],
    3: ["week02.csv"],
    4: ["week03.csv"],
    5: ["week04.csv"],
    6: ["week05.csv", "week05b.csv"],
    7: ["week06.csv"],
    8: ["week07.csv"],
    9: ["week08.csv"],
    10: ["retry.csv", "week09.csv"],
    11: ["week10.csv"],
    12: ["week11.xlsx"],
}
"""Tables that are recorded in a week."""


def filled(name: str) -> pd.DataFrame:
    """A table of a batch as the laboratory gave it back, with a column ``value``."""
    read = pd.read_excel if name.endswith(".xlsx") else pd.read_csv
    table = read(name, dtype=str, keep_default_na=False)
    return table.rename(columns={next(column for column in table if column.startswith("Pe")): "value"})


def number(told: str) -> tuple[str, float]:
    """The sign of a limit, and the number."""
    return ("", float(told)) if told[0] not in "<>" else (told[0], float(told[1:]))


def ledger(week: int) -> list[tuple[str, str, float]]:
    """What the model has to know after a week: identifiers, signs and values, sorted; partners have none."""
    told = []
    for name in (name for number, names in TABLES.items() if number <= week for name in names):
        for row in filled(name).itertuples():
            if row.value:
                wrong = name == "week01.csv" and row.identifier == "B01-02" and week >= 3
                told.append((row.compound_id, *number("318" if wrong else row.value)))
    if week >= 2:
        told.append(("PM-0051", *number("24.6")))
    for since, values in TYPED.items():
        for identifier, more in values.items() if week >= since else ():
            told += [(identifier, *number(one)) for one in more if (identifier, one) != ("PM-0051", "24.6")]
    if week >= 6:
        told += [("", *number(one)) for one in PARTNER]
    return sorted(told)


def known(campaign: Campaign) -> list[tuple[str, str, float]]:
    """The same by what the model learns from."""
    rows = campaign.optimizer().observations.with_status("ok")
    called = {row.key: row.identifier or "" for row in campaign.store.measurements()}
    called |= {row.key: row.identifier or "" for row in campaign.store.suggestions() if row.identifier}
    return sorted((called[row.key], row.censored or "", row.value) for row in rows)


def facts(campaign: Campaign, *, week: int) -> None:
    """What has to be true after every week."""
    assert campaign.store.check() == []
    told, expected = known(campaign), ledger(week)
    assert [row[:2] for row in told] == [row[:2] for row in expected]
    assert [row[2] for row in told] == pytest.approx([row[2] for row in expected])
    found = campaign.store.best()
    if found is not None and len(found.values) == 1:
        assert found.mean() == pytest.approx(max(row[2] for row in expected if row[1] != "<"))
    history = campaign.history()
    assert [command.id for command in history] == list(range(1, len(history) + 1))
    spending = campaign.status().spending
    if week > 1:
        # What was paid when it was ordered: later prices are higher.
        paid = sum(
            float(row.price)
            for name in (name for number, names in TABLES.items() if number <= week for name in names)
            for row in filled(name).itertuples()
            if row.value or row.identifier in ("B01-06", "B01-08", "B08-08")
        )
        assert spending is not None
        assert spending.spent == pytest.approx(paid)


def week_1(campaign: Campaign) -> None:
    library = pd.read_csv("library.csv", index_col="compound_id")
    weights = library["smiles"].map(lambda smiles: Descriptors.MolWt(Chem.MolFromSmiles(smiles)))
    allowed = library[library["supplier"].isin(["Aurora", "Borealis"]) & (library["stock"] == "yes") & (weights <= 400)]
    report = campaign.filter_report()
    assert report is not None
    assert report.allowed == len(allowed)
    batch = campaign.store.open_suggestions()
    assert [row.name for row in batch] == [f"B01-0{number}" for number in range(1, 9)]
    assert {row.identifier for row in batch} <= set(allowed.index)
    assert all(library.loc[str(row.identifier), "smiles"] == row.string for row in batch)


def week_2(campaign: Campaign) -> None:
    assert campaign.status().counts.failures == 1
    told = filled("week02.csv")["predicted"].astype(float).tolist()
    assert campaign.suggest().to_pandas()["predicted"].tolist() == pytest.approx(told)


def week_3(campaign: Campaign) -> None:
    values = {row.identifier: row for row in campaign.store.measurements()}
    assert values["PM-0384"].value == 318
    assert values["PM-0024"].value == float(filled("week01.csv").set_index("identifier").loc["B01-03", "value"])
    assert campaign.history()[10].undone_by == 12
    assert campaign.status().counts.withdrawn == 1


def week_4(campaign: Campaign) -> None:
    (row,) = (row for row in campaign.store.measurements(discarded=True) if row.discarded is not None)
    assert (row.value, row.discarded, row.replicate) == (OUTLIER, "the well dried out", "plate 2")
    assert len([row for row in campaign.store.measurements() if row.replicate == "plate 2"]) == 4


def week_5(campaign: Campaign) -> None:
    sold_out = set(pd.read_csv("sold_out.csv")["compound_id"])
    assert len(campaign.optimizer().space) <= 500 - len(sold_out)
    last = max(row.batch for row in campaign.store.suggestions())
    assert not sold_out & {row.identifier for row in campaign.store.suggestions() if row.batch == last}
    assert [row.identifier for row in campaign.store.exclusions()] == ["PM-0007"]
    assert [str(one) for one in campaign.status().filters][2:] == ["MW <= 420", "without [N+](=O)[O-]"]


def week_6(campaign: Campaign) -> None:
    (mannitol,) = campaign.predict(["OCC(O)C(O)C(O)C(O)CO"])
    assert (mannitol.measured, mannitol.measured_censored) == (pytest.approx(0.1), "<")
    # It is known to lie below that.
    assert mannitol.predicted < 0.1


def week_7(campaign: Campaign) -> None:
    # By hand, of the two files as they are now.
    offered = pd.concat([pd.read_csv("library.csv"), pd.read_csv("dorado.csv")])
    molecules = offered["smiles"].map(Chem.MolFromSmiles)
    nitro = Chem.MolFromSmarts("[N+](=O)[O-]")
    fits = (
        (offered["stock"] == "yes")
        & (offered["supplier"] != "Cygnus")
        & (offered["price"] <= 150)
        & (molecules.map(Descriptors.MolWt) <= 420)
        & ~molecules.map(lambda molecule: molecule.HasSubstructMatch(nitro)).astype(bool)
    )
    report = campaign.filter_report()
    assert report is not None
    assert (report.allowed, report.candidates) == (fits.sum(), len(offered))
    assert {row.identifier for row in campaign.store.open_suggestions()} <= set(offered["compound_id"][fits])


def week_8(campaign: Campaign) -> None:
    with Campaign.open("copy/membrane.seqopt") as copy:
        assert copy.status().library == str(Path("copy/library.csv").resolve())
        assert [command.kind for command in copy.history()[-4:]] == ["configure", "suggest", "undo", "undo"]
        assert copy.store.check() == []
        before = len(copy.history()) - 4
    assert campaign.status().library == str(Path("library.csv").resolve())
    assert [command.kind for command in campaign.history()[before:]] == ["record", "record", "suggest"]


def week_9(campaign: Campaign) -> None:
    ranked = pd.read_csv("ranked.csv")
    assert ranked["acquisition_value"].is_monotonic_decreasing
    assert not set(ranked["identifier"]) & {row.identifier for row in campaign.store.measurements() if row.value}
    assert pd.read_csv("predicted.csv")["string"].tolist() == pd.read_csv("ideas.csv")["smiles"].tolist()
    retried = pd.read_csv("retry.csv")
    assert set(retried["compound_id"]) == {row.identifier for row in campaign.store.measurements() if row.failure}


def week_10(campaign: Campaign) -> None:
    assert campaign.store.settings.batch_size == len(campaign.store.open_suggestions()) == 8
    assert sum(command.undone_by is not None for command in campaign.history()) == 5


def week_11(campaign: Campaign) -> None:
    tables = [pd.read_csv("all.csv", dtype=str), pd.read_csv("all.tsv", dtype=str, sep="\t")]
    pd.testing.assert_frame_equal(*tables)
    assert len(pd.read_parquet("all.parquet")) == len(tables[0])
    with Campaign.open("second.seqopt") as second:
        told = {
            name: sorted(
                (row.key, row.censored or "", row.value) for row in of.optimizer().observations.with_status("ok")
            )
            for name, of in (("first", campaign), ("second", second))
        }
        assert told["first"] == told["second"]
        assert second.status().counts.discarded == 1
        gone = {row.key for row in campaign.store.suggestions() if row.status == "withdrawn"}
        gone |= {row.key for row in campaign.store.exclusions()}
        assert {row.key for row in second.store.exclusions()} == gone
        assert second.store.check() == []


def week_12(campaign: Campaign) -> None:
    table = pd.read_csv("final.csv", dtype=str, keep_default_na=False)
    measured = table[(table["status"] == "measured")]
    column = next(name for name in table if name.startswith("Pe"))
    exported = sorted((row["compound_id"], *number(row[column])) for _, row in measured.iterrows())
    assert [row[:2] for row in exported] == [row[:2] for row in known(campaign)]
    assert [row[2] for row in exported] == pytest.approx([row[2] for row in known(campaign)])
    sold_out = set(pd.read_csv("sold_out.csv")["compound_id"])
    assert not sold_out & {row.identifier for row in campaign.store.suggestions() if row.batch > 5}
    assert len(pd.read_csv("next.csv")) == 10
    best = campaign.store.best()
    assert best is not None
    for name in ("membrane.html", "membrane.txt"):
        assert str(best.measurements[0].identifier) in Path(name).read_text(encoding="utf-8")
    # It did more than draw at random: what it chose late is better than the first batch, by their logarithms.
    logarithms = {batch: [] for batch in ("B01", "B09", "B11", "B13")}
    for row in campaign.store.measurements():
        if row.value and row.suggestion and row.suggestion[:3] in logarithms:
            logarithms[row.suggestion[:3]].append(math.log10(row.value))
    first, *later = logarithms.values()
    assert np.mean(np.concatenate(later)) > np.mean(first)


CHECKS: dict[int, Callable[[Campaign], None]] = dict(
    enumerate(
        (week_1, week_2, week_3, week_4, week_5, week_6, week_7, week_8, week_9, week_10, week_11, week_12), start=1
    )
)


def masked(line: str) -> str:
    """A line without its numbers, which rounding may change."""
    return re.sub(r"[\d.,:-]*\d", "#", " ".join(line.split()))


def shown(block: Block, said: str) -> None:
    """A ``text`` block shows lines of what the commands above it said, in their order."""
    lines = iter([masked(line) for line in said.splitlines()])
    for line in block.lines:
        wanted = masked(line.strip().removesuffix("..."))
        assert any(found.startswith(wanted) for found in lines), f"{block.location}: {line!r} is not in\n{said}"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_twelve_weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = list(blocks_of(PAGE))
    weeks = [int(re.findall(r"Week (\d+)", block.heading)[0]) for block in blocks]
    assert sorted(set(weeks)) == list(CHECKS)
    assert sum(len(block.shell) for block in blocks if block.language == "bash") > 140
    above = ""
    for place, (block, said) in enumerate(run_blocks(blocks, tmp_path, monkeypatch)):
        if block.language == "text":
            shown(block, above)
        above = said if block.language == "bash" else above
        if place + 1 == len(blocks) or weeks[place + 1] > weeks[place]:
            with Campaign.open("membrane.seqopt") as campaign:
                facts(campaign, week=weeks[place])
                CHECKS[weeks[place]](campaign)
