"""Campaigns with the files of a laboratory: workbooks, structures, semicolons, decimal commas, other units, InChI."""

import io
import logging
from pathlib import Path

import openpyxl
import pytest
from rdkit import Chem

from seqopt.campaign import Campaign, CampaignError, read_results
from seqopt.campaign.tables import DRAWING
from seqopt.datasets import read_sheet
from seqopt.errors import InputError

SMILES = [
    "CCO",
    "CCCO",
    "CC(=O)O",
    "CC(=O)OCC",
    "c1ccccc1O",
    "c1ccccc1N",
    "CC(=O)Nc1ccc(O)cc1",
    "NC(=O)c1cccnc1",
    "CCN",
]


def library(folder: Path, name: str = "library.xlsx") -> Path:
    path = folder / name
    rows = [["id", "smiles", "price", "lot"]]
    rows += [[f"A{index}", smiles, 10.5 + 20 * index, f"00{index}"] for index, smiles in enumerate(SMILES)]
    if name.endswith(".xlsx"):
        book = openpyxl.Workbook()
        book.active.title = "Library"
        for row in rows:
            book.active.append(row)
        book.create_sheet("Notes").append(["made on Monday"])
        book.save(path)
    else:
        path.write_text("\n".join(";".join(str(cell).replace(".", ",") for cell in row) for row in rows) + "\n")
    return path


def begun(folder: Path, name: str = "library.xlsx", objective: str = "pIC50", **settings: object) -> Campaign:
    return Campaign.create(folder / "a.seqopt", library(folder, name), objective=objective, batch_size=3, **settings)


def test_a_workbook_goes_to_the_laboratory_and_comes_back(tmp_path: Path) -> None:
    with begun(tmp_path, filters=[{"kind": "column", "column": "price", "operator": "<=", "value": "150"}]) as campaign:
        batch = campaign.suggest()
        path = tmp_path / "batch.xlsx"
        campaign.write_batch(path)
        book = openpyxl.load_workbook(path)
        sheet = book.active
        header = [cell.value for cell in sheet[1]]
        assert header[:4] == ["identifier", "id", "smiles", DRAWING]
        assert header[-3:] == ["pIC50", "standard_error", "failure"]
        assert [image.anchor._from.row for image in sheet._images] == [1, 2, 3]
        found = [dict(zip(header, [cell.value for cell in row], strict=True)) for row in sheet.iter_rows(min_row=2)]
        assert [row["identifier"] for row in found] == [item.name for item in batch]
        prices = {smiles: 10.5 + 20 * index for index, smiles in enumerate(SMILES)}
        assert [(row["price"], row["lot"][:2]) for row in found] == [(prices[item.string], "00") for item in batch]
        for number, value in enumerate([6.5, 7, "5,5"], start=2):
            sheet.cell(number, header.index("pIC50") + 1, value)
        book.create_sheet("How it was done").append(["by hand"])
        book.save(path)
        with pytest.raises(CampaignError, match=r"line 4, column 'pIC50': '5,5' has a comma"):
            campaign.record_file(path)
        with pytest.raises(InputError, match="holds results in lines 2, 3, 4"):
            campaign.write_batch(path)
        taken, _ = campaign.record_file(path, decimal_comma=True)
        assert [row.value for row in taken] == [6.5, 7.0, 5.5]
        campaign.export(tmp_path / "all.xlsx")
        rows = read_sheet(tmp_path / "all.xlsx").rows
        assert [row[rows[0].index("pIC50")] for row in rows] == ["pIC50", "6.5", "7", "5.5"]
    # The same sheet of the same workbook is read again, also when both were moved.
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in ("a.seqopt", "library.xlsx"):
        (tmp_path / file).rename(moved / file)
    with Campaign.open(moved / "a.seqopt") as campaign:
        assert campaign.store.library["path"] == f"{moved / 'library.xlsx'}#Library"
        assert len(campaign.space) == len(SMILES)
        with pytest.raises(InputError, match="is the library of the campaign"):
            campaign.export(moved / "library.xlsx")


def test_cells_that_a_spreadsheet_spoiled_are_refused_with_their_place(tmp_path: Path) -> None:
    import datetime

    with begun(tmp_path) as campaign:
        campaign.suggest()
        book = openpyxl.Workbook()
        cells = [datetime.datetime(2026, 6, 5), "#DIV/0!", "=1+1", datetime.time(6, 5)]
        for row in [["smiles", "pIC50"], *zip(SMILES, cells, strict=False)]:
            book.active.append(list(row))
        book.save(tmp_path / "r.xlsx")
        with pytest.raises(CampaignError) as caught:
            campaign.record_file(tmp_path / "r.xlsx")
        for text in (
            "line 2, column 'pIC50': '2026-06-05' looks like a date that a spreadsheet made",
            "line 3, column 'pIC50': '#DIV/0!' is an error of the spreadsheet",
            "line 4, column 'pIC50': '=1+1' is a formula without a result",
            "line 5, column 'pIC50': '06:05:00' looks like a time",
        ):
            assert text in str(caught.value)


def test_tables_are_written_as_the_library_is_and_read_back(tmp_path: Path) -> None:
    expensive = {"kind": "column", "column": "price", "operator": "<=", "value": "100"}
    with pytest.raises(InputError, match="holds no numbers"):
        begun(tmp_path, "library.csv", filters=[expensive])
    with begun(tmp_path, "library.csv", decimal_comma=True, filters=[expensive]) as campaign:
        batch = campaign.suggest()
        assert all(SMILES.index(item.string) <= 4 for item in batch)
        path = tmp_path / "batch.csv"
        campaign.write_batch(path)
        lines = path.read_text().splitlines()
        assert lines[0].startswith("identifier;id;smiles;")
        assert f'"{10.5 + 20 * SMILES.index(batch[0].string)}"'.replace(".", ",") in lines[1]
        lines[1:3] = [
            line.removesuffix(";;;") + f';"{value}";0,5;' for line, value in zip(lines[1:3], ("6,5", "7"), strict=True)
        ]
        path.write_text("\n".join(lines) + "\n")
        taken, _ = campaign.record_file(path)
        assert [(row.value, row.standard_error) for row in taken] == [(6.5, 0.5), (7.0, 0.5)]
        # An instrument writes points, and commas between cells.
        other = tmp_path / "instrument.csv"
        other.write_text(f"identifier,pIC50\n{batch[2].name},5.25\n")
        assert [row.value for row in campaign.record_file(other)[0]] == [5.25]
        campaign.suggest()
        campaign.export(tmp_path / "all.csv")
        assert ";6,5;" in (tmp_path / "all.csv").read_text().replace('"', "")
        campaign.write_batch(tmp_path / "next.csv")
        # What was predicted is a number in that locale, too.
        sheet = read_sheet(tmp_path / "next.csv")
        column = sheet.rows[0].index("predicted")
        campaign.write_batch(tmp_path / "next.xlsx")
        book = openpyxl.load_workbook(tmp_path / "next.xlsx").active
        header = [cell.value for cell in book[1]]
        number = book.cell(2, header.index("predicted") + 1).value
        assert isinstance(number, float)
        assert "," in sheet.rows[1][column]
        assert float(sheet.rows[1][column].replace(",", ".")) == number
    other.write_text("smiles;pIC50\nCCN;6.5\n")
    with Campaign.open(tmp_path / "a.seqopt") as campaign:
        with pytest.raises(CampaignError, match="has a point, but commas are decimal"):
            campaign.record_file(other)
        assert [row.value for row in campaign.record_file(other, decimal_comma=False)[0]] == [6.5]


@pytest.mark.parametrize("decimal_comma", [False, True])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx", ".sdf"])
def test_limits_are_written_as_numbers_are_and_read_back(tmp_path: Path, ending: str, decimal_comma: bool) -> None:
    values = dict(zip(SMILES, ["<4.5", ">7.25", 6.5, "<-0.5"], strict=False))
    with begun(tmp_path, "library.csv", decimal_comma=decimal_comma) as campaign:
        for smiles, value in values.items():
            campaign.record(smiles, value)
        exported = tmp_path / f"all{ending}"
        campaign.export(exported)
        batch = campaign.suggest(5)
        written = tmp_path / f"batch{ending}"
        campaign.write_batch(written)
        told = [row.reason["value"] for row in batch if row.reason.get("censored")]
        assert told
    sheet = read_sheet(exported, decimal_comma=decimal_comma)
    expected = ["<4.5", ">7.25", "6.5", "<-0.5"]
    if decimal_comma and ending != ".sdf":
        expected = [text.replace(".", ",") for text in expected]
    assert [row[sheet.rows[0].index("pIC50")] for row in sheet.rows[1:]] == expected
    sheet = read_sheet(written, decimal_comma=decimal_comma)
    limits = [cell for row in sheet.rows[1:] if (cell := row[sheet.rows[0].index("nearest_value")])[0] in "<>"]
    assert len(limits) == len(told)
    assert all(limit in expected for limit in limits)
    again = tmp_path / "again"
    again.mkdir()
    with begun(again, "library.csv", decimal_comma=decimal_comma) as campaign:
        taken, results = campaign.record_file(exported, history=True, replicates=True)
        assert not results.problems
        # Structures come back as other SMILES of the same molecules.
        assert {row.key: f"{row.censored or ''}{row.value}" for row in taken} == {
            campaign.space.key(smiles): str(value) for smiles, value in values.items()
        }


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".sdf"])
def test_only_columns_that_nobody_knows_are_said_to_be_unused(tmp_path: Path, ending: str) -> None:
    with begun(tmp_path, "library.csv", id_column="id") as campaign:
        for smiles in SMILES[:3]:
            campaign.record(smiles, 6.5)
        campaign.suggest()
        batch, exported = tmp_path / f"batch{ending}", tmp_path / f"all{ending}"
        campaign.write_batch(batch)
        campaign.export(exported)
        for path in (batch, exported):
            found = read_results(path, campaign.store, str, history=True, replicates=True)
            # Of structures, a column in which nothing is filled in is not there, such as that of values.
            assert found.unused or (path, ending) == (batch, ".sdf")
            assert not [remark for remark in found.warnings if "not used" in remark.message]
        mail = tmp_path / "mail.csv"
        mail.write_text("smiles,pIC50,lot,Stdabw\nCCN,5.5,007,0.2\n")
        _, results = campaign.record_file(mail)
        assert [remark.message for remark in results.warnings if "not used" in remark.message] == [
            "1 column is not used: 'Stdabw'"
        ]


def test_a_table_of_concentrations_in_a_campaign_of_their_logarithms(tmp_path: Path) -> None:
    with begun(tmp_path, unit="-log10 M") as campaign:
        path = tmp_path / "mail.csv"
        path.write_text("smiles,IC50 (nM)\nCCO,1000\nCCN,>100000\n")
        with pytest.raises(CampaignError, match=r"If 'IC50 \(nM\)' is it, --unit nM"):
            campaign.record_file(path)
        assert [row.told for row in campaign.record_file(path, unit="nM")[0]] == ["6", "<4"]
        path.write_text("smiles,pIC50\nCCCO,6.5\n")
        taken, results = campaign.record_file(path, unit="pIC50")
        assert [row.told for row in taken] == ["6.5"]
        assert all("convert" not in remark.message for remark in results.warnings)


def test_thousands_are_not_taken_for_small_numbers(tmp_path: Path) -> None:
    path = tmp_path / "library.csv"
    path.write_text("smiles;price\nCCO;99,5\nCCN;1.234\nCCC;2,5\nCCCC;3\n")
    with Campaign.create(
        tmp_path / "a.seqopt",
        path,
        objective="y",
        batch_size=2,
        decimal_comma=True,
        filters=[{"kind": "column", "column": "price", "operator": "<", "value": "100"}],
    ) as campaign:
        report = campaign.filter_report()
        assert report is not None
        assert "1.234" in " ".join(report.lines())
        assert {item.string for item in campaign.suggest(3)} == {"CCO", "CCC", "CCCC"}


def test_structures_go_out_and_come_back(tmp_path: Path) -> None:
    with begun(tmp_path) as campaign:
        batch = campaign.suggest()
        path = tmp_path / "batch.sdf"
        campaign.write_batch(path)
        campaign.write_batch(path)  # nothing is filled in yet
        mols = list(Chem.SDMolSupplier(str(path)))
        assert [mol.GetProp("identifier") for mol in mols] == [item.name for item in batch]
        assert [mol.GetProp("_Name") for mol in mols] == [item.name for item in batch]
        assert [mol.GetProp("price") for mol in mols] == [str(10.5 + 20 * SMILES.index(item.string)) for item in batch]
        stream = io.StringIO()
        with Chem.SDWriter(stream) as writer:
            for mol, value in zip(mols, (6.5, 7.0, 5.5), strict=True):
                mol.SetDoubleProp("pIC50", value)
                writer.write(mol)
        path.write_text(stream.getvalue() + "broken\n\n\nM  END\n$$$$\n")
        with pytest.raises(CampaignError, match=r"line \d+: 'record 4 broken' cannot be read"):
            campaign.record_file(path)
        with pytest.raises(InputError, match="holds results"):
            campaign.write_batch(path)
        taken, results = campaign.record_file(path, partial=True)
        assert [row.value for row in taken] == [6.5, 7.0, 5.5]
        assert len(results.problems) == 1
        campaign.export(tmp_path / "all.sdf")
        assert [mol.GetDoubleProp("pIC50") for mol in Chem.SDMolSupplier(str(tmp_path / "all.sdf"))] == [6.5, 7.0, 5.5]
    path = tmp_path / "t.txt"
    path.write_text("".join(f"{number:04b}\n" for number in range(16)))
    with Campaign.create(tmp_path / "t.seqopt", path, objective="y", batch_size=2) as campaign:
        campaign.suggest()
        with pytest.raises(InputError, match=r"an \.sdf holds molecules"):
            campaign.write_batch(tmp_path / "t.sdf")
        campaign.write_batch(tmp_path / "t.xlsx")
        assert DRAWING not in read_sheet(tmp_path / "t.xlsx").rows[0]


def test_values_in_other_units_are_converted_where_one_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "r.csv"
    with begun(tmp_path, objective="IC50", unit="uM", transform="log10") as campaign:
        path.write_text("smiles,IC50 (nM),se\nCCO,250,25\nCCN,1000,\n")
        with pytest.raises(CampaignError, match=r"If 'IC50 \(nM\)' is it, --unit nM .*converts it"):
            campaign.record_file(path)
        taken, results = campaign.record_file(path, unit="nM")
        assert [(row.value, row.standard_error) for row in taken] == [(0.25, 0.025), (1.0, None)]
        assert "converted from nM to uM" in str(results.warnings[0])
        path.write_text("smiles,pIC50,se\nCCCO,6,0.1\nCC(=O)O,9.5,\n")
        taken, results = campaign.record_file(path, unit="pIC50")
        assert [row.value for row in taken] == pytest.approx([1.0, 10**-3.5])
        assert taken[0].standard_error == pytest.approx(0.1 * 2.302585092994046)
        assert "delta method" in str(results.warnings[0])
        path.write_text("smiles,IC50 (nM)\nc1ccccc1O,500\n")
        _, results = campaign.record_file(path, value_column="IC50 (nM)")
        assert any("the column says nM" in str(remark) for remark in results.warnings)
        (row,) = campaign.record("c1ccccc1N", 300.0, unit="nM", standard_error=30.0)
        assert (row.value, row.standard_error) == (0.3, 0.03)
        with pytest.raises(InputError, match="ug/ml"):
            campaign.record("CC(=O)OCC", 1.0, unit="ug/ml")
        assert any(command.arguments.get("unit") == "nM" for command in campaign.history())
    (tmp_path / "a.seqopt").unlink()
    with begun(tmp_path) as campaign:
        path.write_text("smiles,IC50 (\u00b5M)\nCCO,1\nCCN,0\n", encoding="utf-8")
        with pytest.raises(CampaignError, match=r"line 3: 'CCN' 0.0 has no logarithm"):
            campaign.record_file(path, unit="uM")
        taken, _ = campaign.record_file(path, unit="uM", partial=True)
        assert [row.value for row in taken] == [6.0]
        with pytest.raises(InputError, match="pKi is not pIC50"):
            campaign.record_file(path, unit="pKi")


def test_results_may_name_molecules_by_inchi(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with begun(tmp_path) as campaign, caplog.at_level(logging.WARNING):
        (row,) = campaign.record(Chem.MolToInchi(Chem.MolFromSmiles("CC(=O)Nc1ccc(O)cc1")), 6.5)
        assert (row.string, row.key) == ("CC(=O)Nc1ccc(O)cc1", "CC(=O)Nc1ccc(O)cc1")
        with pytest.raises(CampaignError, match="is an InChI that RDKit cannot read"):
            campaign.record("InChI=1S/none", 6.5)
        with pytest.raises(CampaignError, match="an InChIKey, which does not say how it is made"):
            campaign.record("LFQSCWFLJHTTHZ-UHFFFAOYSA-N", 6.5)
        path = tmp_path / "r.csv"
        path.write_text(f"structure;pIC50\n{Chem.MolToInchi(Chem.MolFromSmiles('CCO'))};7\n")
        taken, _ = campaign.record_file(path)
        assert [(row.string, row.value) for row in taken] == [("CCO", 7.0)]


def test_columns_of_a_library_of_inchi_reach_filters_and_batches(tmp_path: Path) -> None:
    path = tmp_path / "library.csv"
    rows = [f"{Chem.MolToInchi(Chem.MolFromSmiles(smiles))};{index}" for index, smiles in enumerate(SMILES)]
    path.write_text("\n".join(["InChI;price", *rows]) + "\n")
    cheap = {"kind": "column", "column": "price", "operator": "<", "value": "3"}
    with Campaign.create(tmp_path / "a.seqopt", path, objective="y", batch_size=3, filters=[cheap]) as campaign:
        assert {item.key for item in campaign.suggest()} == {"CCO", "CCCO", "CC(=O)O"}
        campaign.write_batch(tmp_path / "batch.csv")
        sheet = read_sheet(tmp_path / "batch.csv")
        prices = {row[sheet.rows[0].index("price")] for row in sheet.rows[1:]}
        assert prices == {"0", "1", "2"}
