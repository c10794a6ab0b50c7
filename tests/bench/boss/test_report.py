"""Tables state what the runs hold."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from seqopt.bench.boss import report
from seqopt.bench.boss.plots import _panel


@pytest.fixture
def runs(make_run):
    """Two seeds of some tasks and methods."""

    def of(task, method, finals, **extra):
        # Something worse first: zeros are the worst counts, and the worst energies and errors are positive.
        worst = 0.0 if task in ("101", "01xx4", "101-noisy") else 6.0
        strings = ["x"] * 14 + ["x+1"] if task == "regression" else None
        length = len(strings) if strings else 6
        return [
            make_run(task, method, seed, [worst] * (length - 1) + [value], strings, **extra)
            for seed, value in enumerate(finals)
        ]

    noisy = {"noiseless": [0.0] * 4 + [9.0, 8.0], "recommended": "s4"}
    return {
        "101": {"default": of("101", "default", [9, 8]), "random": of("101", "random", [5, 4])},
        "101-noisy": {"default": of("101-noisy", "default", [9.5, 9.1], **noisy)},
        "01xx4": {"default": of("01xx4", "default", [3, 3])},
        "peptide-10": {
            "default": of("peptide-10", "default", [-10.2, -10.2]),
            "random": of("peptide-10", "random", [-4, -5]),
        },
        "regression": {"default": of("regression", "default", [0.3, 0.1])},
    }


ENERGIES = np.array([-10.2] * 8 + [-5.0] * 100 + [0.0] * 55_188)


def rows_of(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_verdicts(runs) -> None:
    first, noisy, last = rows_of(report.verdicts({name: runs[name] for name in ("101", "101-noisy", "01xx4")}))
    assert (first["objective"], first["space"], first["steps"]) == ('"101"', "{0,1}^20", "4")
    assert (first["runs"], first["ours"], first["published"]) == ("2", "94.4 ± 5.6", "100 ± 0.0")
    assert (first["at least"], first["reached"], first["aim"], first["aim reached"]) == ("88.7", "yes", "95", "no")
    assert noisy["ours"] == "88.9 ± 0.0"
    assert last["ours"] == "60.0 ± 0.0 (3.00 ± 0.00 occurrences)"
    assert last["published"] == "67 ± 4.5 (2.7 ± 0.18 occurrences)"
    assert (last["at least"], last["reached"], last["aim reached"]) == ("2.34 occurrences", "yes", "no")


def test_counts_of_all_methods(runs) -> None:
    table = rows_of(report.counts({name: runs[name] for name in ("101", "101-noisy")}))
    ours, random, noisy, model = table
    assert (ours["count"], ours["default less this, paired"], ours["s choosing"]) == ("8.50 ± 0.50 of 9", "", "1.5")
    assert (ours["at the largest"], random["at the largest"]) == ("1 of 2", "0 of 2")
    assert (random["method"], random["published, %"]) == ("random", "58 ± 2.6")
    assert random["default less this, paired"] == "4.00 ± 0.00"
    assert noisy["count"] == "8.00 ± 0.00 of 9"
    assert (model["method"], model["count"]) == ("default, largest posterior mean", "9.00 ± 0.00 of 9")


def test_runs_of_a_learned_transform_are_shown_where_there_are_too_few_without(runs) -> None:
    def shown(plain, learned):
        found = {"default": runs["101"]["default"]}
        for name, count in (("boss", plain), ("boss-auto", learned)):
            if count:
                found[name] = runs["101"]["random"][:count]
        return [row["method"] for row in rows_of(report.tables({"101": found}, {}, {})[1])]

    published, learned = "BOSS as published", "BOSS as published, transform learned"
    assert shown(2, 2) == ["default", published]
    assert shown(1, 2) == ["default", published, learned]
    assert shown(0, 1) == ["default", learned]


def test_curves_of_a_learned_transform_are_drawn_where_there_are_none_without(runs) -> None:
    def drawn(*methods):
        axes = Figure().subplots()
        _panel(axes, "101", dict.fromkeys(methods, runs["101"]["random"]))
        return [line.get_label() for line in axes.get_lines() if line.get_label()[0] != "_"]

    assert drawn("boss", "boss-auto") == ["BOSS as published"]
    assert drawn("default", "boss-auto") == ["default", "BOSS as published, transform learned"]
    assert drawn("default", "boss-code-auto", "boss-code") == ["default"]


def test_genes_with_all_energies(runs) -> None:
    table = report.genes("peptide-10", runs["peptide-10"], ENERGIES)
    ours, random = rows_of(table)
    assert (ours["5"], ours["6"]) == ("6.00 ± 0.00", "-10.20 ± 0.00")
    assert (ours["best found within 50"], ours["rank of the best"]) == ("2 of 2, aim reached", "1 (1-1)")
    # -4 is worse than the 108 genes of -5 and less; -5 is one of 100 behind 8.
    assert (random["best found within 50"], random["rank of the best"]) == ("0 of 2", "59 (9-109)")
    assert random["default less this, paired"] == "-5.70 ± 0.50"
    assert "8 of all 55,296 genes have the least energy, -10.20 kcal/mol" in table.note
    assert "once in 139 runs" in table.note
    without = report.genes("peptide-10", runs["peptide-10"], None)
    assert "rank of the best" not in without.columns


def test_the_exact_optimum_stands_beside_what_searches_find(runs) -> None:
    folding = {"energy": -10.1, "mfe": -10.15, "seconds": 0.04, "refined": {"mfe": -10.2}}
    table = report.genes("peptide-10", runs["peptide-10"], ENERGIES, folding)
    *_, exact = rows_of(table)
    assert {name: cell for name, cell in exact.items() if cell} == {
        "method": "exact folding",
        "6": "-10.20",
        "s choosing": "0.0",
    }
    assert "no gene has less than -10.10" in table.note
    assert "refined codon by codon" in table.note
    del folding["refined"]
    assert rows_of(report.genes("peptide-10", runs["peptide-10"], None, folding))[-1]["6"] == "-10.15"


def test_regression_names_the_best_formula(runs) -> None:
    (row,) = rows_of(report.regression("regression", runs["regression"]))
    assert row["15"] == "0.200 ± 0.100"
    assert (row["median at the end"], row["best of all runs"]) == ("0.200", "`x+1` (0.100)")


def test_checkpoints_are_round_numbers_within_the_budget(make_run) -> None:
    for task, total, expected in (
        ("peptide-10", 55, ["5", "10", "20", "30", "40", "50", "55"]),
        ("thesis-60", 105, ["5", "25", "50", "75", "100", "105"]),
    ):
        table = report.genes(task, {"random": [make_run(task, "random", 0, [0.0] * total)]}, None)
        assert [column for column in table.columns if column.isdigit()] == expected
    table = report.regression("regression", {"random": [make_run("regression", "random", 0, [0.0] * 40)]})
    assert [column for column in table.columns if column.isdigit()] == ["15", "20", "30", "40"]


def test_document_holds_a_section_for_each_part(runs, tmp_path) -> None:
    document = tmp_path / "results.md"
    document.write_text("# Results\n\n<!-- begin boss-genes -->\nworn\n<!-- end boss-genes -->\nafter\n")
    report.write_document(document, runs, {"peptide-10": ENERGIES}, {})
    text = document.read_text()
    assert "worn" not in text
    assert "<!-- end boss-genes -->\nafter\n" in text
    assert "`seqopt bench boss` on Abacus, 2 cores, Clay; seqopt 1.2." in text
    for part in ("synthetic", "genes", "regression"):
        section = text.split(f"<!-- begin boss-{part} -->")[1].split(f"<!-- end boss-{part} -->")[0]
        assert f"(img/boss-{part}.png)" in section
        assert "| default | 2 |" in section
        assert (tmp_path / "img" / f"boss-{part}.png").read_bytes().startswith(b"\x89PNG")


def test_parts_without_runs_keep_their_sections(runs, tmp_path) -> None:
    document = tmp_path / "results.md"
    document.write_text("<!-- begin boss-genes -->\nworn\n<!-- end boss-genes -->\n")
    report.write_document(document, {"101": runs["101"]}, {}, {})
    assert "worn" in document.read_text()
    assert not (tmp_path / "img" / "boss-genes.png").exists()
