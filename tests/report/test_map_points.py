"""What goes into a map, from files, runs and campaigns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.errors import InputError, RunFolderError
from seqopt.report.map_points import (
    CHOSEN,
    FAILED,
    INITIAL,
    MEASURED,
    PROJECTED,
    UNMEASURED,
    gather_points,
    points_of_file,
    points_of_run,
    points_to_project,
)

MakeRun = Callable[..., Path]
CELLS = "smiles,activity,name\nCCO,5,ethanol\nCCN,nope,\nC1CC,4,\nCCCC,,butane\nOCC,7,\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_strings_without_a_value_stay_and_bad_lines_are_named(tmp_path: Path) -> None:
    points = points_of_file(write(tmp_path, "assay.csv", CELLS), values_column="activity")
    assert points.strings == ("CCO", "CCN", "CCCC")
    # The two spellings of ethanol have one value, their mean.
    assert points.values[0] == 6.0
    assert np.isnan(points.values[1:]).all()
    assert points.groups == (MEASURED, UNMEASURED, UNMEASURED)
    assert points.labels == ("ethanol", "", "butane")
    assert points.value_label == "activity"
    said = "\n".join(points.notes)
    assert "line 4 'C1CC' (not a SMILES" in said
    assert "1 cell without a usable value: line 3 (column 'activity' holds 'nope'" in said
    assert "2 of 3 strings have no value" in said


def test_without_a_column_of_values_all_points_are_alike(tmp_path: Path) -> None:
    points = points_of_file(write(tmp_path, "assay.csv", CELLS))
    assert set(points.groups) == {""}
    assert points.model_values is None
    with pytest.raises(InputError, match="no usable molecule"):
        points_of_file(write(tmp_path, "words.csv", "smiles,activity\nCCO,high\nCCN,low\n"), values_column="activity")


def test_values_on_a_logarithmic_scale(tmp_path: Path) -> None:
    path = write(tmp_path, "ic50.csv", "smiles,nM\nCCO,10\nOCC,1000\nCCN,-5\nCCC,1\n")
    points = points_of_file(path, values_column="nM", log10=True)
    assert points.values[[0, 2]].tolist() == [pytest.approx(100.0), 1.0]
    assert points.model_values is not None
    assert points.model_values[0] == pytest.approx(2.0)
    assert any("has no logarithm" in note for note in points.notes)


def test_a_sample_takes_what_was_measured_first_and_keeps_the_order(tmp_path: Path) -> None:
    rows = [f"{'C' * n}O,{n if n % 10 == 0 else ''}" for n in range(1, 51)]
    points = points_of_file(write(tmp_path, "many.csv", "smiles,v\n" + "\n".join(rows)), values_column="v")
    sample = points.sampled(12, np.random.default_rng(0))
    assert np.isfinite(sample.values).sum() == 5
    lengths = [len(string) for string in sample.strings]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 12
    assert np.isfinite(points.sampled(3, np.random.default_rng(0)).values).all()
    assert points.sampled(12, np.random.default_rng(0)).strings == sample.strings
    assert points.sampled(12, np.random.default_rng(1)).strings != sample.strings
    assert points.sampled(50, np.random.default_rng(1)) is points


def test_a_run_has_groups_means_and_a_direction(make_run: MakeRun) -> None:
    folder = make_run(
        [
            {"number": 1, "string": "CCO", "key": "CCO", "status": "ok", "value": 1.0, "batch": 0},
            {"number": 2, "string": "CCN", "key": "CCN", "status": "failed", "batch": 0},
            {"number": 3, "string": "CCC", "key": "CCC", "status": "ok", "value": 4.0, "batch": 1},
            {"number": 4, "string": "OCC", "key": "CCO", "status": "ok", "value": 3.0, "batch": 1},
        ],
        {"direction": "minimize", "objective": "docking", "unit": "kcal/mol", "kind": "molecule"},
    )
    points = points_of_run(folder)
    assert points.strings == ("CCO", "CCN", "CCC")
    assert points.groups == (INITIAL, FAILED, CHOSEN)
    assert points.values[[0, 2]].tolist() == [2.0, 4.0]
    assert (points.minimize, points.value_label, points.kind) == (True, "docking (kcal/mol)", "molecule")
    with pytest.raises(RunFolderError, match="is missing"):
        points_of_run(folder / "nowhere")


def test_a_campaign_is_read_too(tmp_path: Path) -> None:
    from seqopt.campaign import Campaign
    from seqopt.spaces import StringSpace

    path = tmp_path / "first.seqopt"
    with Campaign.create(path, StringSpace("01", 12), objective="activity", batch_size=4) as campaign:
        for number, suggestion in enumerate(campaign.suggest()[:3]):
            campaign.record(suggestion.name, float(number))
    points = points_of_run(path)
    assert sorted(points.values[:3].tolist()) == [0.0, 1.0, 2.0]
    assert points.groups[3] == "suggested"


def test_a_run_with_its_pool_behind_it_and_strings_to_project(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run([{"number": 1, "string": "OCC", "key": "CCO", "status": "ok", "value": 1.0, "batch": 0}], {})
    pool = write(tmp_path, "pool.csv", "smiles\nCCO\nCCN\nCCC\nCCF\n")
    other = write(tmp_path, "other.smi", "CCCl\nC1CC\nCCBr\n")
    points = gather_points(pool, folder, sample=3, project=other)
    # The measured string comes first, as the run wrote it, and once.
    assert points.mapped.strings[0] == "OCC"
    assert len(set(points.mapped.keys)) == 3
    assert points.mapped.groups[1:] == (UNMEASURED, UNMEASURED)
    assert points.projected is not None
    assert points.projected.strings == ("CCCl", "CCBr")
    assert set(points.projected.groups) == {PROJECTED}
    assert any("other.smi: 1 rejected: line 2" in note for note in points.notes)
    assert any("sample of 3 of 4" in note for note in points.notes)


def test_projected_strings_have_values_where_their_file_has_the_column(tmp_path: Path) -> None:
    with_values = write(tmp_path, "a.csv", "structure,activity\nCCO,5\n")
    without = write(tmp_path, "b.csv", "smiles\nCCO\n")
    for path, value in ((with_values, 5.0), (without, np.nan)):
        points = points_to_project(path, column="SMILES", values_column="activity", kind="molecule")
        assert points.values == pytest.approx([value], nan_ok=True)


def test_projected_strings_need_no_usable_values(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "structure,activity\nCCO,0\nCCN,-1\n")
    points = points_to_project(path, column="structure", values_column="activity", kind="molecule", log10=True)
    assert len(points) == 2
    assert np.isnan(points.values).all()
    assert any("no usable values in the column activity" in note for note in points.notes)
    bad = write(tmp_path, "b.csv", "structure,activity\nno molecule,0\n")
    with pytest.raises(InputError):
        points_to_project(bad, column="structure", values_column="activity", kind="molecule", log10=True)


def test_strings_of_different_kinds_do_not_mix(make_run: MakeRun, tmp_path: Path) -> None:
    row = {"number": 1, "string": "0110", "key": "0110", "status": "ok", "value": 1.0, "batch": 0}
    first = points_of_run(make_run([row], {"kind": "text"}))
    with pytest.raises(InputError, match="no common map"):
        first.joined(points_of_file(write(tmp_path, "m.csv", "smiles\nCCO\n")))
    with pytest.raises(InputError, match="nothing to map"):
        gather_points(None)


def test_a_map_of_a_campaign_has_identifiers_and_prices(tmp_path: Path) -> None:
    from seqopt.campaign import Campaign
    from seqopt.report.embedding import embed

    smiles = ["C" * n + end for n in range(1, 6) for end in ("O", "N", "F")]
    names = ["=cmd()", *(f"CPD-{i}" for i in range(1, len(smiles)))]
    pd.DataFrame({"id": names, "smiles": smiles, "price": range(len(smiles))}).to_csv(
        tmp_path / "library.csv", index=False
    )
    path = tmp_path / "a.seqopt"
    with Campaign.create(
        path, tmp_path / "library.csv", objective="y", id_column="id", price_column="price"
    ) as campaign:
        for i in range(4):
            campaign.record(smiles[i], float(i))
    found = embed(gather_points(tmp_path / "library.csv", path))
    found.write(tmp_path / "map.csv", title="A map")
    table = pd.read_csv(tmp_path / "map.csv", dtype=str)
    called = dict(zip(smiles, ["'=cmd()", *names[1:]], strict=True))
    assert dict(zip(table["string"], table["identifier"], strict=True)) == called
    assert dict(zip(table["string"], table["price"], strict=True)) == {text: str(i) for i, text in enumerate(smiles)}
    assert "CPD-3, initial design" in (tmp_path / "map.html").read_text(encoding="utf-8")
