"""The page: safe, whole, and with the right numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rdkit import Chem

from seqopt.errors import InputError
from seqopt.models.registry import mixture
from seqopt.report import write_report
from seqopt.report.html import value_label
from seqopt.report.results import Run
from seqopt.report.sections import LONGEST_TEXT, parameters_of, setting_text
from seqopt.spaces import CodonSpace, StringSpace
from seqopt.utils.parameter_names import KERNELS

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</code><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "a&b;&lt;&#60;",
    "C\x00C\x1b[31m\u202eOCC",
    "javascript:alert(1)",
    "]]><!-- -->",
    "=cmd|' /C calc'!A0",
    "'; DROP TABLE--",
    "line\nbreak\ttab",
    "分子 β",
]

VOID = {"meta", "br", "wbr", "img", "hr", "input", "link"}

MakeRun = Callable[..., Path]


class Page(HTMLParser):
    """What a browser's parser finds: elements, attributes, text; and whether tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for tag, text in self.texts if tag not in ("style", "script")).split())


def read(folder: Path, **options: Any) -> tuple[Page, ElementTree.Element]:
    """The page of a run, as HTML and as XML, after the checks that every page must pass."""
    path = write_report(folder, **options)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    # Two scripts, ours and its data; the policy of the page names the checksum of the one that runs.
    blocks = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [attributes for attributes, _ in blocks] == [' type="application/json" id="data"', ""]
    json.loads(blocks[0][1])
    assert not set(blocks[0][1]) & set("<>&\u2028\u2029")
    checksum = base64.b64encode(hashlib.sha256(blocks[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{checksum}'" in unescape(text)
    assert "'unsafe-eval'" not in text
    plain = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    root = ElementTree.fromstring(plain.removeprefix("<!DOCTYPE html>"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "link", "img", "form", "base", "foreignobject"}
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action", "formaction")]
        href = attributes.get("href", attributes.get("xlink:href", "#"))
        assert href.startswith(("#", "data:image/png;base64,"))
        if href.startswith("#") and len(href) > 1:
            assert href[1:] in ids
        for reference in ("aria-labelledby", "clip-path"):
            value = attributes.get(reference, "")
            assert not value or re.sub(r"url\(#(.*)\)", r"\1", value) in ids
        assert "url(" not in attributes.get("style", "")
    assert not re.search(r"https?://|//[a-z]+\.[a-z]|@import", plain)
    assert len(root.findall(".//h1")) == 1
    for header in root.iter("th"):
        assert header.get("scope") in ("col", "row")
    for drawing in root.iter("svg"):
        assert drawing.get("role") == "img"
        assert drawing.get("aria-label")
    return page, root


def words(element: ElementTree.Element | None) -> str:
    assert element is not None
    return " ".join("".join(element.itertext()).split())


def cells(root: ElementTree.Element, section: str) -> list[list[str]]:
    for candidate in root.iter("section"):
        if candidate.get("aria-labelledby") == section:
            return [[words(cell) for cell in row] for row in candidate.findall(".//tbody/tr")]
    return []


def section(root: ElementTree.Element, name: str) -> ElementTree.Element:
    (found,) = [element for element in root.iter("section") if element.get("aria-labelledby") == name]
    return found


def cards(root: ElementTree.Element, part: str = "value") -> list[str]:
    return [words(element) for element in root.iter() if element.get("class") == part]


def test_a_search_for_high_values(make_run: MakeRun, molecule_rows: list[dict[str, Any]]) -> None:
    steps = [
        {"step": 0, "seconds": {"suggest": 0.0, "evaluate": 2.0}, "kernel": {}},
        {"step": 1, "seconds": {"suggest": 60.0, "evaluate": 5.0}, "kernel": {"match_decay": 0.8, "odd": "x"}},
        {"step": 2, "seconds": {"suggest": 61.0, "evaluate": 4.0}, "kernel": {"match_decay": 0.55}},
    ]
    facts = {"kind": "molecule", "objective": "qed", "pool": "a/b/library.csv", "pool_size": 12345, "seed": 20251}
    page, root = read(
        make_run(molecule_rows, facts, steps=steps, timings={"total_seconds": 140}, versions={"seqopt": "9.8.7"})
    )
    assert words(root.find(".//h1")) == "qed in library.csv"
    tiles = [words(tile) for tile in root.iter("div") if tile.get("class") == "tile"]
    assert tiles[0] == (
        "Highest value found 5.00 2.00 higher than the best of the 3 initial ones (3.00), in batch 1, evaluation 5"
    )
    assert tiles[1] == "Evaluations 8 3 initial, then 2 batches; 1 failed; of 12,345 candidates"
    assert tiles[-1] == "Time 2 min 20 s 2 min 1 s choosing, 11 s measuring"
    assert cards(section(root, "best")) == ["5.00", "5.00", "4.00", "3.00", "2.00", "1.00", "0.50"]
    assert cards(section(root, "best"), "origin")[:2] == ["batch 1, no. 5", "batch 2, no. 8"]
    assert "predicted 4.00 (90 %: 2.77 to 5.23)" in page.text
    # Batch, evaluations, failed, best of batch, best so far, time: by hand from the rows.
    assert cells(root, "batches") == [
        ["initial", "3", "1", "3.00", "3.00", "2.0 s"],
        ["1", "3", "–", "5.00", "5.00", "1 min 5 s"],
        ["2", "2", "–", "5.00", "5.00", "1 min 5 s"],
    ]
    # Batch 2 equals the best of batch 1 and is not an improvement.
    assert [words(row[0]) for row in root.iter("tr") if row.get("class") == "better"] == ["1"]
    # The strings of the last batch come before the best ones, with what was predicted of them.
    assert words(root.find(".//h2[@id='batch']")) == "Last batch, no. 2"
    assert cards(section(root, "batch")) == ["0.50", "5.00"]
    assert "predicted 2.00 (90 %: 0.77 to 3.23) (off by +4.0 sd)" in words(section(root, "batch"))
    # Drawing (by the script), no., measured, predicted, interval, off by, batch: the best first, what failed last.
    rows = [row[1:7] for row in cells(root, "all")]
    assert rows[1] == ["8", "5.00", "2.00", "0.77 to 3.23", "+4.0", "2"]
    assert [row[0] for row in rows] == ["5", "8", "6", "3", "4", "1", "7", "2"]
    assert rows[-1][1] == "failed"
    assert cells(root, "model") == [["1", "0.8"], ["2", "0.55"]]
    assert cells(root, "failures")[0][:2] == ["1", "TimeoutError: gave up after 60 s"]
    assert ["seed", "20251"] in cells(root, "settings")
    assert ["seqopt", "9.8.7"] in cells(root, "settings")
    drawn = [drawing.get("aria-label") or "" for drawing in root.iter("svg")]
    # The two of the last batch, each with the measured molecule that it is most like, and the seven best.
    assert sum("structure of" in label for label in drawn) == 11
    assert "interrupted" not in page.text


@pytest.mark.slow
def test_a_search_for_low_values_on_a_logarithmic_scale(make_run: MakeRun) -> None:
    rows: list[dict[str, Any]] = [
        {"string": "CCO", "value": 300.0},
        {"string": "CCN", "value": 5000.0},
        {"string": "CCC", "value": 30.0, "batch": 1, "predicted_mean": 100.0, "predicted_std": 50.0},
        {"string": "CCF", "value": 80000.0, "batch": 1, "predicted_mean": 90.0, "predicted_std": 40.0},
    ]
    facts = {"kind": "molecule", "objective": "column:IC50_nM", "direction": "minimize", "transform": "log10"}
    page, root = read(make_run(rows, facts))
    assert cards(section(root, "best")) == ["30.0", "300", "5,000", "80,000"]
    assert "Lowest value found 30.0 10.0 times lower than the best of the 2 initial ones (300)" in page.text
    assert [row[3:5] for row in cells(root, "batches")] == [["300", "300"], ["30.0", "30.0"]]
    # m = log10(100) - v / (2 ln 10), s = sqrt(v) / ln 10 with v = ln(1.25): (log10(30) - m) / s = -2.31.
    assert "off by -2.3 sd" in words(section(root, "batch"))


@pytest.mark.slow
def test_steps_of_an_asynchronous_search_are_no_batches(make_run: MakeRun, molecule_rows: list[dict[str, Any]]) -> None:
    steps = [{"step": 1, "seconds": {"suggest": 60.0}, "kernel": {"match_decay": 0.8}}]
    for asynchronous, width, name in ((True, 5, "Step"), (False, 6, "Batch")):
        page, root = read(make_run(molecule_rows, {"kind": "molecule", "asynchronous": asynchronous}, steps=steps))
        assert {len(row) for row in cells(root, "batches")} == {width}
        assert next(words(cell) for cell in section(root, "model").iter("th")) == name
        assert ("without batches" in page.text) == asynchronous


def test_the_folder_of_a_page_is_made(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run([{"string": "CCO", "value": 1.0}])
    assert write_report(folder, out=tmp_path / "new" / "er" / "x.html").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        write_report(folder, out=tmp_path / "file" / "x.html")


def test_replicates_are_one_card(make_run: MakeRun) -> None:
    rows = [
        {"string": "OCC", "key": "CCO", "value": 1.0},
        {"string": "CCO", "value": 3.0},
        {"string": "CC", "value": 2.0},
    ]
    page, root = read(make_run(rows, {"kind": "molecule"}))
    assert cards(root) == ["3.00", "2.00"]
    assert "best of 2 measurements" in page.text


@pytest.mark.slow
def test_proteins_are_marked_against_their_parent(make_run: MakeRun) -> None:
    parent = "MKVLAAGILCRTDE"
    rows = [
        {"string": variant, "value": float(i)}
        for i, variant in enumerate([parent, "MKVLAWGILCRTDE", "MRVLAAGILCRTDE", "MKVLAAGILCRTDK", "MKV"])
    ]
    _, root = read(make_run(rows[:4], {"kind": "protein"}))
    marked = [[words(mark) for mark in item.iter("mark")] for item in root.iter("li")]
    assert marked == [["K"], ["R"], ["W"], []]
    sequences = [
        "".join(item.itertext()) for item in root.iter("p") if (item.get("class") or "").startswith("sequence")
    ]
    assert "".join(sequences[0].split()) == "MKVLAAGILCRTDK"
    assert [len("".join(group.itertext())) for group in root.iter("span") if group.get("class") == "ten"][:2] == [10, 4]
    page, _ = read(make_run(rows, {"kind": "protein"}))
    assert "the best of the initial design" in page.text


def test_a_search_in_which_everything_failed(make_run: MakeRun) -> None:
    rows = [{"string": f"C{'C' * i}", "status": "failed", "error": f"error {i % 15}"} for i in range(20)]
    page, root = read(make_run(rows, {"kind": "molecule", "direction": "minimize"}, status="interrupted"))
    assert "nothing was measured: all 20 evaluations failed" in page.text
    assert cards(root) == []
    failures = cells(root, "failures")
    assert sum(int(row[0]) for row in failures) == 20
    assert failures[-1][1] == "3 other messages, see evaluations.csv"


@pytest.mark.parametrize("acquisition", ["LFBO", "GIBBON"])
def test_the_page_of_a_search_by_a_classifier_says_that_its_model_chose_nothing(
    acquisition: str, make_run: MakeRun, molecule_rows: list[dict[str, Any]]
) -> None:
    rows = molecule_rows + [{"string": "C" * n, "value": float(n % 3), "batch": 3} for n in range(10, 22)]
    page, root = read(make_run(rows, {"kind": "molecule", "acquisition": acquisition}))
    tile = next(words(tile) for tile in root.iter("div") if words(tile).startswith("The model R²"))
    assert tile.endswith("chosen by LFBO, a classifier") == (acquisition == "LFBO")
    assert ("was chosen by" in page.text) == (acquisition == "LFBO")


@pytest.mark.slow
def test_an_interrupted_search_says_how_to_go_on(make_run: MakeRun) -> None:
    rows = [{"string": "CCO", "value": 1.0}, {"string": "CCN", "status": "pending", "batch": 1}]
    command = "seqopt search 'my pool.csv' --objective qed"
    page, root = read(make_run(rows, {"command": command}, status="interrupted"))
    assert "This search was interrupted." in page.text
    assert f"{command} --resume" in [words(code) for code in root.iter("code")]
    assert "1 await a result" in page.text
    page, _ = read(make_run(rows, {"command": f"{command} --resume"}, status="running"))
    assert "still running" in page.text
    assert "--resume --resume" not in page.text
    page, _ = read(make_run(rows, {}, status="interrupted"))
    assert "resume=True" in page.text


@pytest.mark.parametrize(
    ("kind", "hostile"),
    list(zip(["molecule", "protein", "text", "<script>alert(1)</script>", None, 3], HOSTILE, strict=False)),
)
def test_hostile_text_stays_text(kind: Any, hostile: str, make_run: MakeRun) -> None:
    rows: list[dict[str, Any]] = [
        {"string": string, "value": float(i), "error": string} for i, string in enumerate(HOSTILE)
    ]
    rows += [{"string": string + "2", "status": "failed", "error": string, "batch": 1} for string in HOSTILE]
    names = ("objective", "objective_description", "pool", "unit", "command", "direction", "transform")
    facts = dict.fromkeys(names, hostile) | {"kind": kind, hostile: {hostile: [hostile]}, "surrogate": "\ud800"}
    steps = [{"step": 1, "kernel": {hostile: 0.5, "mean": hostile}, "seconds": {hostile: hostile}}]
    page, root = read(
        make_run(rows, facts, status="interrupted", steps=steps, versions={hostile: hostile}, best=hostile)
    )
    tags = {tag for tag, _ in page.elements}
    assert "img" not in tags
    shown = [words(code) for code in root.iter("code")] + ["".join(cards(root, "sequence"))]
    assert any("<img src=x onerror=alert(1)>" in text for text in [*shown, page.text])
    assert r"C\x00C\x1b[31m\u202eOCC" in page.text.replace(" ", "")
    assert "{{ 7 * 7 }}" in page.text


def test_little_or_nothing_is_enough(make_run: MakeRun, tmp_path: Path) -> None:
    page, _ = read(make_run([], status="running"))
    assert "Nothing has been suggested yet." in page.text
    _, root = read(make_run([{"string": "CCO", "value": 7.0}]), top=0)
    assert cards(root) == []
    assert words(root.find(".//h1")) == "value"
    with pytest.raises(InputError, match="top is -1"):
        write_report(tmp_path / "run", top=-1)


@pytest.mark.slow
def test_24_molecules_of_a_usual_size_stay_small(make_run: MakeRun) -> None:
    core = "CC(C)c1nc(CN(C)C(=O)N[C@@H](C(C)C)C(=O)N[C@@H](Cc2ccccc2)C[C@H](O)[C@H](Cc2ccccc2)NC(=O)OCc2cncs2)cs1"
    rows = [{"string": "C" * i + core, "value": float(i)} for i in range(30)]
    assert all(Chem.MolFromSmiles(row["string"]) is not None for row in rows)
    folder = make_run(rows, {"kind": "molecule"})
    _, root = read(folder)
    assert len(cards(root)) == 24
    assert (folder / "report.html").stat().st_size < 2_000_000
    assert {path.name for path in folder.iterdir()} >= {"report.html", "search.png", "search.svg"}


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({"objective": "molecular_weight"}, "molecular_weight (g/mol)"),
        ({"objective": "logp"}, "logp"),
        ({"objective": "column:logp"}, "logp"),
        ({"objective": "models/score.py:dock", "unit": "kcal/mol"}, "dock (kcal/mol)"),
        ({"objective": "similarity:CCO"}, "similarity:CCO"),
        ({}, "value"),
    ],
)
def test_values_are_named_with_their_unit(settings: dict[str, Any], label: str) -> None:
    assert value_label(settings) == label


def test_parameters_of_several_kernels_are_called_by_what_these_compare() -> None:
    names = ["kernels[0].gap_decay", "kernels[1].weight", "kernels[2].lengthscale", "outputscale"]
    steps = [{"step": 1, "kernel": dict.fromkeys(names, 0.5)}]
    kinds = ["SubsequenceKernel", "LetterNgramKernel"]
    found = parameters_of(Run(Path(), pd.DataFrame(), steps=steps, model={"kernel_types": kinds}))
    assert [one["name"] for one in found] == [
        "sub-sequences: gap decay",
        "n-grams of letters: weight",
        "kernel 3: length scale",
        "output scale",
    ]
    assert found[0]["meaning"].startswith("per skipped symbol")
    # What the model of the last batch does not have is not shown at its last value.
    left = parameters_of(Run(Path(), pd.DataFrame(), steps=[*steps, {"step": 2, "kernel": {"outputscale": 0.75}}]))
    assert [one["latest"] for one in left] == ["–", "–", "–", "0.75"]
    older = parameters_of(Run(Path(), pd.DataFrame(), steps=steps, model={"parameters": {}}))
    assert older[0]["name"] == "kernel 1: gap decay"
    # A run of a search keeps no state of its surrogate; its settings say of what kernels it was.
    surrogate = {
        "type": "FullyBayesianGP",
        "kernel": [{"type": "SubsequenceKernel"}, {"type": "SitesKernel"}, "foreign"],
    }
    settings: dict[str, Any] = {"details": {"surrogate": surrogate}}
    of_search = parameters_of(Run(Path(), pd.DataFrame(), steps=steps, settings=settings))
    assert [one["name"] for one in of_search[:3]] == [
        "sub-sequences: gap decay",
        "sites, each by its weight: weight",
        "kernel 3: length scale",
    ]


def test_every_kernel_of_a_mixture_has_a_name() -> None:
    spaces = [CodonSpace("MAK"), StringSpace("ACDE", 5, kind="protein")]
    kinds = {type(kernel).__name__ for space in spaces for kernel in mixture(space).kernels}
    assert len(kinds) == 12
    assert kinds <= set(KERNELS)


def test_long_values_inside_a_setting_are_abridged() -> None:
    shown = setting_text({"protein": 40 * "MKV", "choices": ["AC"] * 300, "part": {"order": 3, "flag": True}})
    assert len(shown) < 500
    assert f'"{(40 * "MKV")[: LONGEST_TEXT - 1]}…"' in shown
    assert '"260 more"]' in shown
    assert '"part": {"order": 3, "flag": true}' in shown
    assert setting_text(40 * "MKV") == 40 * "MKV"


@pytest.mark.slow
def test_genes_and_formulas_are_called_what_they_are(make_run: MakeRun) -> None:
    genes = [{"string": "ATGAAA", "value": 1.0}, {"string": "ATGAAG", "value": 2.0}]
    space = CodonSpace("MK").config()
    settings = {"kind": "dna", "objective": "mfe", "subject": "of genes for <P1>", "space": space}
    page, _ = read(make_run(genes, settings))
    for text in ("of genes for <P1>", "of 2 genes", "2 genes measured"):
        assert text in page.text
    page, _ = read(make_run(genes, settings | {"space": space | {"forbidden": ["GAATTC"]}}))
    assert "of at most 2 genes" in page.text
    formulas = [{"string": "1+sin(x*x)/3+x", "value": 1.0}, {"string": "x", "value": 2.0}]
    page, root = read(make_run(formulas, {"kind": "text", "objective": "expression_error", "space": {"type": "G"}}))
    assert "2 formulas measured" in page.text
    assert "1+sin(x*x)/3+x" in cards(root, "ten")  # in one piece
    for text in ("molecule", "candidates", "Marked"):
        assert text not in page.text


def test_rows_of_tables_show_the_beginning_of_long_strings(make_run: MakeRun) -> None:
    gene = "ATGC" * 900
    _, root = read(make_run([{"string": gene, "value": 1.0}], {"kind": "dna"}))
    (shown,) = cards(root, "string")
    assert shown.endswith("…")
    assert len(shown) <= 200
    assert gene.startswith(shown[:-1])
