"""The pages in a real browser: what they show, what can be done with them, and that they do nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import CanonSmiles
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from seqopt.campaign import Campaign, Settings, Suggestion, Suggestions
from seqopt.datasets.sheets import neutralise, restore
from seqopt.report import MapPoint, write_map_page, write_report

INSTALL = "install one, such as Debian's: apt-get install chromium"

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"there is no Chromium on this machine: {INSTALL}")

HOSTILE = "<img src=x onerror=\"document.title='ran'\"></script><script>document.title='ran'</script>"

CORE = ["C", "CC", "CCC", "C(C)C", "c1ccccc1", "C1CCCCC1", "c1ccncc1", "C(=O)C", "C=C", "CSC"]
SMILES = [f"O{a}{b}" if i % 2 else f"N{a}{b}" for i, a in enumerate(CORE) for b in ("C", "CC", "CO", "F")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # A sandbox needs rights that a container does not give; only our own pages are opened.
        try:
            found = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
        except playwright.Error as error:
            pytest.skip(f"{BROWSER} does not start: {error.message}")
        yield found
        found.close()


class Visit:
    """A page in the browser, with all that went wrong in it."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.as_uri()
        self.page.goto(self.address)

    def close(self) -> None:
        """Check that nothing was complained about or asked for."""
        self.context.close()
        assert self.problems == []
        assert self.requests == [self.address]


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; everything that every page must keep is checked at the end."""
    visits: list[Visit] = []

    def open_page(path: Path, **options: Any) -> Any:
        visits.append(Visit(browser, path, **options))
        return visits[-1].page

    yield open_page
    for one in visits:
        one.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a search among 40 molecules: 12 at random, two batches of six, and one failure."""
    folder = tmp_path_factory.mktemp("run")
    pd.DataFrame({"smiles": SMILES}).to_csv(folder / "library.csv", index=False)
    rows: list[dict[str, Any]] = []
    for number, smiles in enumerate(SMILES[:24], start=1):
        batch = max(0, (number - 7) // 6)
        value = smiles.upper().count("C") + 0.25 * number
        row: dict[str, Any] = {
            "number": number,
            "string": smiles,
            "key": CanonSmiles(smiles),
            "status": "ok",
            "value": value,
        }
        row |= {"batch": batch}
        if batch:
            row |= {"predicted_mean": value + 0.5, "predicted_std": 0.75}
        rows.append(row)
    rows[4] |= {"status": "failed", "value": None, "error": HOSTILE}
    rows.append({"number": 25, "string": SMILES[30], "key": CanonSmiles(SMILES[30]), "status": "pending", "batch": 3,
                 "predicted_mean": 9.0, "predicted_std": 1.0})  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "evaluations.csv", index=False)
    settings = {
        "kind": "molecule",
        "objective": "activity",
        "pool": str(folder / "library.csv"),
        "column": "smiles",
        "pool_size": len(SMILES),
        "details": {"surrogate": {"type": "StringGP", "kernel": {"type": "MinMaxKernel"},
                                  "tokenizer": "morgan(radius=2, size=2048, counts=True, use_chirality=True)"}},
        "unit": HOSTILE,
        HOSTILE: HOSTILE,
    }  # fmt: skip
    steps = [{"step": step, "kernel": {"noise_variance": 0.1 / step, HOSTILE: 1.0}} for step in (1, 2)]
    summary = {"status": "finished", "settings": settings, "steps": steps, "versions": {HOSTILE: "javascript:alert(1)"}}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return write_report(folder)


def numbers(page: Any) -> list[int]:
    """Numbers of the rows that are to be seen, from top to bottom."""
    found: list[int] = page.eval_on_selector_all(
        "#strings-table tbody tr", "rows => rows.filter(row => !row.hidden).map(row => Number(row.dataset.n))"
    )
    return found


def wait_for_order(page: Any, column: str, way: str) -> None:
    """Wait until the table is sorted: a busy browser answers a click or a key later than it is told of it."""
    page.locator(f"#strings-table th[aria-sort={way}]").filter(has_text=column).wait_for()


def dot(page: Any, number: int) -> tuple[float, float]:
    """Where the dot of an evaluation lies in the window."""
    index: int = page.evaluate(
        "number => JSON.parse(document.querySelector('#data').textContent).points.findIndex(p => p[6] === number)",
        number,
    )
    assert index >= 0
    box = page.locator(".plane > svg :is(circle, path):not(.ring)").nth(index).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.slow
def test_the_page_loads_and_is_whole(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    assert page.locator("h1").inner_text() == "activity in library.csv"
    assert page.locator(".plane g.pool circle").count() == 16  # of 40 molecules, 23 are measured and one is awaited
    assert page.locator(".plane g.measured circle").count() == 23
    assert page.locator(".plane g.suggested path").count() == 1
    assert report.stat().st_size < 12_000_000


def test_pointing_at_the_map_shows_a_structure(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator("#map").scroll_into_view_if_needed()
    page.locator(".plane > svg").scroll_into_view_if_needed()
    page.mouse.move(*dot(page, 24))
    tip = page.locator(".tip.shown")
    tip.wait_for()
    assert tip.locator("svg.molecule line").count() >= 3
    assert SMILES[23] in tip.inner_text()
    page.mouse.move(5, 5)
    page.locator(".tip:not(.shown)").wait_for(state="attached")


def test_a_point_and_its_row_are_chosen_together(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator(".plane > svg").scroll_into_view_if_needed()
    page.mouse.click(*dot(page, 2))
    row = page.locator("#row-2")
    assert row.get_attribute("aria-selected") == "true"
    assert page.locator("tr[aria-selected=true]").count() == 1
    # The row has been scrolled into the part of the table that is to be seen.
    box, frame = row.bounding_box(), page.locator(".strings").bounding_box()
    assert frame["y"] <= box["y"]
    assert box["y"] + box["height"] <= frame["y"] + frame["height"]
    assert SMILES[1] in page.locator("#inspector").inner_text()
    page.locator("#row-24 td").first.click()
    assert SMILES[23] in page.locator("#inspector").inner_text()
    x, y = dot(page, 24)
    ring = page.locator(".plane .ring:not(.hover)").bounding_box()
    assert abs(ring["x"] + ring["width"] / 2 - x) < 1
    assert abs(ring["y"] + ring["height"] / 2 - y) < 1


def test_the_map_and_the_table_obey_the_keyboard(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator("[data-zoom=in]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.plane') !== null")
    page.locator(".tip.shown").wait_for()
    before = page.locator(".tip").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".tip").inner_text() != before
    page.keyboard.press("Enter")
    assert page.locator(".tip strong").inner_text() == page.locator("#inspector strong").inner_text()
    page.locator("#strings-table tr[tabindex='0']").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    chosen = page.locator("tr[aria-selected=true]").get_attribute("data-n")
    assert int(chosen) == numbers(page)[-2]


def test_the_table_is_sorted_and_filtered(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    first = numbers(page)
    assert first[0] == 25  # what is awaited comes first, what failed last
    assert first[-1] == 5
    page.get_by_role("button", name="No.", exact=True).click()
    wait_for_order(page, "No.", "ascending")
    assert numbers(page) == sorted(first)
    page.keyboard.press("Enter")
    wait_for_order(page, "No.", "descending")
    assert numbers(page) == sorted(first, reverse=True)
    page.get_by_role("button", name="Measured").click()
    wait_for_order(page, "Measured", "descending")
    page.get_by_role("button", name="Measured").click()
    wait_for_order(page, "Measured", "ascending")
    ascending = numbers(page)
    values = {n: smiles.upper().count("C") + 0.25 * n for n, smiles in enumerate(SMILES[:24], start=1) if n != 5}
    assert ascending[:23] == sorted(values, key=lambda n: values[n])
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Measured")
    page.locator("#filter").fill("explore")
    explored = numbers(page)
    assert 0 < len(explored) < 25
    assert page.locator("#count").inner_text() == f"{len(explored)} of 25 rows"
    page.locator("#filter").fill("")
    page.locator("#status").select_option("failed")
    assert numbers(page) == [5]


def test_the_dots_of_the_plots_choose_rows(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator(".panel.progress [data-rows] use").nth(2).dispatch_event("click")
    assert page.locator("#row-3").get_attribute("aria-selected") == "true"


def test_hostile_text_stays_text(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator("#row-5 td").first.click()
    assert page.title().startswith("activity")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert HOSTILE in page.locator("#row-5").inner_text()
    assert HOSTILE in page.locator("section[aria-labelledby=settings]").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 820, 1400])
def test_nothing_overflows(report: Path, scheme: str, width: int, visit: Callable[..., Any]) -> None:
    page = visit(report, viewport={"width": width, "height": 800}, color_scheme=scheme, has_touch=width < 500)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 248)"
    assert light == (scheme == "light")


def test_a_tap_on_a_telephone_chooses(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report, viewport={"width": 360, "height": 740}, has_touch=True)
    page.locator(".plane > svg").scroll_into_view_if_needed()
    page.touchscreen.tap(*dot(page, 24))
    assert SMILES[23] in page.locator("#inspector").inner_text()


def test_print_and_a_page_without_script_hold_everything(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.emulate_media(media="print")
    table, scroll = page.locator("#strings-table").bounding_box(), page.locator(".strings").bounding_box()
    assert scroll["height"] >= table["height"]  # no row is hidden in a part that would have to be scrolled
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    silent = visit(report, java_script_enabled=False)
    assert silent.locator(".plane > svg").is_visible()
    assert silent.locator("#strings-table tbody tr").count() == 25
    assert not silent.locator("#filter").is_visible()
    assert not silent.locator("#inspector").is_visible()


def test_the_map_has_a_page_of_its_own(tmp_path: Path, visit: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    points = [
        MapPoint(smiles, *rng.normal(size=2).tolist(), value=float(i), label=HOSTILE, group=group, kind="molecule")
        for group in ("measured", "pool", "suggested")
        for i, smiles in enumerate(SMILES[:20])
    ]
    points.append(MapPoint(HOSTILE, 4.0, 4.0, None, "", "pool", "molecule"))
    path = write_map_page(tmp_path / "map.html", points, title=HOSTILE, value_label=HOSTILE)
    page = visit(path)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator(".plane g.pool circle").count() == 21
    box = page.locator(".plane g.pool circle").last.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.locator(".tip.shown").wait_for()
    before = page.locator(".plane g.measured circle").first.get_attribute("transform")
    page.locator("[data-zoom=in]").click()
    assert page.locator(".plane g.measured circle").first.get_attribute("transform") != before
    page.locator("[data-zoom=reset]").click()
    assert page.locator(".plane g.measured circle").first.get_attribute("transform") == before
    page.locator("[data-group=measured]").uncheck()
    assert not page.locator(".plane g.measured circle").first.is_visible()


TRICKY = [
    *("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/Cl", "F/C=C\\Cl", "FC=CCl", "C[N+](C)(C)CC([O-])=O", "[13CH3]CO"),
    *("c1ccc2[nH]ccc2c1", "O=[N+]([O-])c1ccccc1", "CS(=O)(=O)N", "O=P(O)(O)OC", "[Na+].[Cl-]", "C#N", "[2H]C([2H])O"),
    *("OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O", "C1CC2CCC1CC2", "N[C@@H](Cc1c[nH]c2ccccc12)C(=O)O", "[NH4+]"),
    *("CC(C)=C", "C/C=C/C=C/C", "CC[O]", "S(F)(F)(F)(F)(F)F", "B(O)(O)c1ccccc1"),
    *("C[Si](C)(C)C", "O=C1CCCN1", "[C-]#[O+]"),
]  # fmt: skip
NAMES = {0: "=cmd()", 1: HOSTILE, 2: 'a, "b"', 3: "-1", 4: "@SUM(A1)", 5: "[bold]x"}


@pytest.fixture(scope="module")
def plain_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page without a model, of molecules that are hard to write down, with identifiers and prices."""
    folder = tmp_path_factory.mktemp("plain")
    names = [NAMES.get(i, f"CPD-{i}") for i in range(len(TRICKY))]
    pd.DataFrame({"id": names, "smiles": TRICKY, "price": range(len(TRICKY))}).to_csv(
        folder / "library.csv", index=False
    )
    rows: list[dict[str, Any]] = [
        {"string": smiles, "key": smiles, "status": "ok", "value": 0.123456789 + i} for i, smiles in enumerate(TRICKY)
    ]
    for row in rows[2:]:
        row |= {"status": "withdrawn", "value": None}
    pd.DataFrame(rows).to_csv(folder / "evaluations.csv", index=False)
    facts = {"kind": "molecule", "objective": "y", "pool": str(folder / "library.csv"), "column": "smiles"}
    facts |= {"id_column": "id", "price_column": "price"}
    (folder / "summary.json").write_text(json.dumps({"settings": facts}), encoding="utf-8")
    return write_report(folder, highlight=["C=C"])


def saved(page: Any, kind: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.locator(f"[data-save={kind}]").click()
    path = folder / str(waiting.value.suggested_filename)
    waiting.value.save_as(path)
    return path


def test_rows_are_saved_as_csv_that_no_spreadsheet_runs(
    plain_report: Path, visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit(plain_report)
    path = saved(page, "csv", tmp_path)
    text = path.read_text(encoding="utf-8")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert sorted(map(restore, table["Molecule"])) == sorted(TRICKY)
    assert sorted(map(restore, table["id"])) == sorted(NAMES.get(i, f"CPD-{i}") for i in range(len(TRICKY)))
    assert all(neutralise(restore(cell)) == cell for cell in table["id"])
    assert not any(line.startswith(("=", "@")) or ",=" in line for line in text.splitlines())
    assert sorted(table["Measured"])[:2] == ["0.123456789", "1.123456789"]  # all digits, not those of the page
    page.locator("#filter").fill("CPD-10")
    assert len(pd.read_csv(saved(page, "csv", tmp_path))) == 1


def test_rows_are_saved_as_sdf_that_rdkit_reads_as_the_same_molecules(
    plain_report: Path, visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit(plain_report)
    path = saved(page, "sdf", tmp_path)
    molecules = list(Chem.SDMolSupplier(str(path), removeHs=False))
    assert len(molecules) == len(TRICKY)
    found = {mol.GetProp("Molecule"): Chem.MolToSmiles(Chem.RemoveHs(mol)) for mol in molecules}
    assert found == {smiles: CanonSmiles(smiles) for smiles in TRICKY}
    assert {mol.GetProp("price") for mol in molecules} == {str(i) for i in range(len(TRICKY))}


def test_identifiers_and_substructures_filter_rows(plain_report: Path, visit: Callable[..., Any]) -> None:
    page = visit(plain_report)
    page.locator("#filter").fill("cpd-10")
    assert numbers(page) == [11]
    page.locator("#filter").fill("")
    page.locator("#fragment").select_option(label=f"with C=C ({sum(holds(smiles, 'C=C') for smiles in TRICKY)})")
    assert sorted(numbers(page)) == [i for i, smiles in enumerate(TRICKY, 1) if holds(smiles, "C=C")]


def holds(smiles: str, smarts: str) -> bool:
    return bool(Chem.MolFromSmiles(smiles).HasSubstructMatch(Chem.MolFromSmarts(smarts)))


def test_a_filter_works_on_the_map_too(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    assert page.locator(".plane g.pool circle:visible").count() == 16
    unmeasured = next(smiles for i, smiles in enumerate(SMILES) if i > 24 and i != 30)
    page.locator("#filter").fill(unmeasured)
    # A row may hold the text, too, in a longer SMILES; all others are gone.
    left = page.locator(".plane > svg :is(circle, path):not(.ring):visible").count()
    assert 1 <= left < 6
    assert "more on the map" in page.locator("#count").inner_text()
    page.locator("#filter").fill("")
    assert page.locator(".plane g.pool circle:visible").count() == 16


def test_rows_are_grouped_by_scaffolds(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report)
    page.locator("#grouped").check()
    groups = page.locator("tr.scaffold")
    scaffolds = [MurckoScaffoldSmiles(smiles) for smiles in [*SMILES[:24], SMILES[30]]]
    assert groups.count() == len(set(scaffolds))
    assert numbers_shown(page) == []
    benzene = page.locator("tr.scaffold", has=page.locator("code", has_text=re.compile("^c1ccccc1$")))
    of_benzene = [i for i, frame in enumerate(scaffolds[:24], 1) if frame == "c1ccccc1"]
    best = max(SMILES[i - 1].upper().count("C") + 0.25 * i for i in of_benzene if i != 5)
    assert f"{len(of_benzene)} molecules" in benzene.inner_text()
    assert f"best {best:.2f}" in benzene.inner_text()
    benzene.get_by_role("button").click()
    assert sorted(numbers_shown(page)) == of_benzene
    page.get_by_role("button", name="No.", exact=True).click()
    assert numbers_shown(page) == of_benzene
    page.locator("a[href='#row-1']").first.evaluate("link => link.click()")
    assert page.locator("#row-1").is_visible()
    page.locator("#grouped").uncheck()
    assert len(numbers_shown(page)) == 25


def numbers_shown(page: Any) -> list[int]:
    found: list[int] = page.eval_on_selector_all(
        "#strings-table tr[data-n]", "rows => rows.filter(row => !row.hidden).map(row => Number(row.dataset.n))"
    )
    return found


def test_drawings_are_made_when_their_rows_come_into_view(report: Path, visit: Callable[..., Any]) -> None:
    page = visit(report, viewport={"width": 1200, "height": 500})
    assert page.locator("td.thumb svg").count() == 0
    page.locator("#strings-table tbody tr").first.scroll_into_view_if_needed()
    page.locator("td.thumb svg.molecule").first.wait_for()
    page.locator("#strings-table tbody tr").last.scroll_into_view_if_needed()
    page.locator("#strings-table tbody tr:last-child td.thumb svg.molecule").wait_for()


def test_nothing_of_a_drawing_is_cut_off(plain_report: Path, visit: Callable[..., Any]) -> None:
    page = visit(plain_report, viewport={"width": 1200, "height": 4000})
    # On paper there is no scrolling: everything is drawn.
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("td.thumb svg.molecule").count() == len(TRICKY)
    cut = page.evaluate(
        """Array.from(document.querySelectorAll("td.thumb svg text")).filter(text => {
            const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
            return box.x < view.x - 1 || box.x + box.width > view.x + view.width + 1;
        }).map(text => text.textContent)"""
    )
    assert cut == []


def test_suggestions_in_a_notebook_do_not_overlap(tmp_path: Path, visit: Callable[..., Any]) -> None:
    long = "CC(C)(C)OC(=O)N[C@@H](Cc1ccccc1)C(=O)N[C@@H](CC(C)C)C(=O)OCc1ccc(cc1)S(=O)(=O)N"
    rows = [
        Suggestion(long, f"key{i}", 1.0, 0.5, 0.2, 1.8, name=f"B01-0{i}", identifier="CPD-" + "0123456789" * 4,
                   reason={"kind": "explore", "nearest": long, "similarity": 0.5, "value": 123456.0,
                           "difference": "a very long difference that has no end " * 3, "rank": 1, "of": 10})
        for i in range(6)
    ]  # fmt: skip
    shown = Suggestions(rows, Settings("a rather long name", space={"kind": "molecule"}))._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body style="white-space: pre">{shown}</body>', "utf-8")
    page = visit(path)
    beyond = page.evaluate(
        """Array.from(document.querySelectorAll("div")).filter(card => card.style.display === "inline-block")
            .flatMap(card => Array.from(card.querySelectorAll("*")).filter(part =>
                part.getBoundingClientRect().right > card.getBoundingClientRect().right + 1
            ).map(part => part.outerHTML))"""
    )
    assert beyond == []
    boxes = [page.locator("img").nth(i).bounding_box() for i in range(6)]
    assert all(box["x"] >= other["x"] + other["width"] or box["y"] != other["y"] for other, box in pairwise(boxes))


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_what_predictions_rest_on_is_opened_on_a_light_ground(
    tmp_path: Path, scheme: str, width: int, visit: Callable[..., Any]
) -> None:
    library = tmp_path / "library.csv"
    library.write_text("smiles\n" + "".join(f"{smiles}\n" for smiles in SMILES))
    with Campaign.create(tmp_path / "c.seqopt", library, objective=HOSTILE, batch_size=5, seed=1) as campaign:
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, float(suggestion.string.count("C")))
        campaign.suggest()
    page = visit(write_report(tmp_path / "c.seqopt"), color_scheme=scheme, viewport={"width": width, "height": 900})
    rests = page.locator("#batch ~ .cards details.rests")
    assert rests.count() == 5
    assert not rests.first.locator("svg").is_visible()
    rests.first.locator("summary").click()
    assert rests.first.locator("svg").is_visible()
    ground = rests.first.locator(".drawing").evaluate("one => getComputedStyle(one).backgroundColor")
    assert min(map(int, re.findall(r"\d+", ground))) > 240
    # Every disc is whole, and nothing makes the page wider.
    boxes = "one => [...one.querySelectorAll('circle, svg')].map(one => one.getBoundingClientRect().toJSON())"
    picture, *discs = rests.first.evaluate(boxes)
    assert discs
    for disc in discs:
        assert picture["left"] <= disc["left"] < disc["right"] <= picture["right"]
        assert picture["top"] <= disc["top"] < disc["bottom"] <= picture["bottom"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "ran"
