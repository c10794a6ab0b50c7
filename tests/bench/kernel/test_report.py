"""Tables state what the rows hold, and goals are met only where they are."""

from __future__ import annotations

import pytest

from seqopt.bench.kernel import report


def section(rows, **extra):
    record = {
        "command": "seqopt bench kernel",
        "versions": {"seqopt": "1.2"},
        "machine": {"processor": "Abacus", "cores": 2, "platform": "Clay"},
    }
    return {"rows": rows, "record": record, "load_average": [0.5, 2.0], **extra}


def row(seconds, pairs=1_000_000, **facts):
    common = {
        "engine": "cpu",
        "strings": 1413,
        "mean_length": 44.0,
        "order": 5,
        "dtype": "float64",
        "derivative": False,
        "threads": 2,
        "partitions": 1,
    }
    return common | facts | {"pairs": pairs, "seconds": [seconds] * 3}


def goals(**sections):
    return {cells[0]: cells[1:] for cells in report.goals(sections).rows}


@pytest.mark.parametrize(("seconds", "met"), [(1.6, "yes"), (1.7, "no")])
def test_goal_beside_the_hand_written_loop(seconds, met):
    rows = [row(1.0), row(0.9, engine="yardstick"), row(seconds, threads=1), row(1.0, engine="yardstick", threads=1)]
    ((_, measured, verdict),) = goals(yardstick=section(rows)).values()
    assert (verdict, measured) == (met, f"{1 / seconds:.2f} (highest 0.90)")


def test_goal_beside_gauche_compares_times_for_the_same_strings():
    facts = {"gradients": False, "dtype": "float32"}
    rows = [
        row(2.0, pairs=100, kernel="gauche", **facts | {"strings": 10}),
        row(0.01, pairs=55, kernel="seqopt", **facts | {"strings": 10}),
        row(1.0, pairs=20_000, kernel="seqopt", **facts | {"strings": 200}),
    ]
    ((goal, measured, verdict),) = goals(gauche=section(rows)).values()
    assert (goal, measured, verdict) == ("at least 300 times faster", "200 times faster (highest 200)", "no")


@pytest.mark.parametrize(("cache", "arrays"), [("everything", 12), ("default", 12), ("nothing", 3)])
def test_memory_goals_are_arrays_and_500_mb(cache, arrays):
    limit = arrays * 8 * 5000 * 5001 / 2 + 500e6
    for size, met in ((limit, "yes"), (limit + 1, "no")):
        rows = [{"cache": cache, "strings": 5000, "order": 5, "bytes": size, "triangles": 1.0}]
        ((_, _, verdict),) = goals(memory=section(rows)).values()
        assert verdict == met


def test_goals_of_partitions_features_and_fits():
    rows = [row(8.0, length=360), row(4.0, length=360, partitions=2), row(1.0, length=360, partitions=8)]
    found = goals(
        partitions=section(rows),
        features=section([row(2.0, engine="features"), row(30.0)]),
        fit=section([{"strings": 400, "restarts": 5, "interpolate": True, "seconds": [9.0, 9.5, 20.0]}]),
    )
    assert list(found.values()) == [
        ("8", "8.0", "yes"),
        ("at least 20 times", "15.0", "no"),
        ("at most 10 s", "9.5 s", "yes"),
    ]


def test_what_was_not_measured_has_no_goal():
    skipped = {"engine": "features", "dtype": "float64", "derivative": False, "threads": 2, "skipped": "no"}
    assert goals(features=section([skipped, row(1.0)]), gauche=section([], unavailable="not here")) == {}


def test_sweeps_have_a_column_for_each_engine_and_dashes_for_gaps():
    rows = [
        row(1.0, count=50),
        row(2.0, count=50, derivative=True),
        row(0.5, count=50, engine="reference"),
        row(4.0, count=1000),
        {"engine": "features", "count": 50, "skipped": "too many symbols", "threads": 2},
    ]
    table = report.table_of("count", section(rows))
    assert table.columns == ("n", "cpu", "reference")
    assert table.rows == [("50", "1 / 0.5", "2"), ("1,000", "0.25", "-")]


def test_gpu_rows_stand_beside_those_of_the_processor():
    facts = {"what": "Gram matrix", "cells": 4e9}
    rows = [row(1.0, **facts), row(0.25, engine="cuda", **facts), row(0.2, engine="device", **facts)]
    found = section(rows, differences_from_cpu={"float64": 2e-16, "float32": 3e-7})
    found["record"]["machine"]["gpu"] = "Loom"
    table = report.table_of("gpu", found)
    assert table.rows == [("Gram matrix", "float64", "no", "1", "4", "5", "4.0", "20")]
    assert "Loom" in table.title
    assert "2e-16 (float64) and 3e-07 (float32)" in table.note


def test_document_holds_conditions_tables_and_plots(tmp_path):
    document = tmp_path / "performance.md"
    document.write_text("# Performance\n\n<!-- begin kernel -->\nold\n<!-- end kernel -->\nafter\n")
    facts = [{"kind": kind, "length": length} for kind in ("DNA", "protein") for length in (20, 60)]
    sections = {
        "count": section([row(1.0, count=count, engine=engine) for engine in ("cpu", "yardstick") for count in (5, 9)]),
        "length": section([row(1.0, **fact) for fact in facts]),
        "gauche": section([], unavailable="GAUCHE is not installed"),
    }
    report.write_document(document, sections)
    text = document.read_text()
    assert "old" not in text
    assert text.endswith("<!-- end kernel -->\nafter\n")
    for words in ("Abacus, 2 cores, Clay; seqopt 1.2", "`seqopt bench kernel`", "0.5 to 2", "GAUCHE is not installed."):
        assert words in text
    assert "No GPU was at hand" in text
    for name in ("count", "length"):
        assert f"(img/kernel-{name}.png)" in text
        assert (tmp_path / "img" / f"kernel-{name}.png").read_bytes().startswith(b"\x89PNG")
    sections["count"]["rows"].append(row(0.1, count=5, engine="cuda"))
    report.write_document(document, sections)
    assert "No GPU" not in document.read_text()


def test_tables_are_printed_whole(capsys):
    long = "a cell that is rather long, " * 4
    report.Table("Title", ("first", "second"), [(long, "1")], "A note.").print()
    printed = capsys.readouterr().out
    assert long.strip() in printed
    assert "A note." in printed
