"""The notebooks run from top to bottom, and what they saved is fit to be read.

They run here in a short form: the cell with the tag ``parameters`` has shorter values in its metadata, under ``short``,
which replace those of the cell. Cells run one after the other in one namespace and an empty folder; what a cell ends
with is shown as a notebook would show it. ``notebooks/execute.py`` runs them in full and saves the outputs.
"""

from __future__ import annotations

import ast
import importlib.util
import linecache
import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = ("fidelities", "genes", "grammar", "kernel_map", "molecules", "order", "own_parts", "your_own_lab")
LARGEST = 1_500_000


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    with matplotlib.rc_context():
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_execute", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def show(*values: Any) -> None:
    """What a notebook does with what a cell ends with."""
    for value in values:
        if value is not None:
            assert repr(value)
            assert getattr(value, "_repr_html_", lambda: "shown")()


def run_cell(source: str, location: str, namespace: dict[str, Any]) -> None:
    # A traceback shows the line of the cell.
    linecache.cache[location] = (len(source), None, source.splitlines(keepends=True), location)
    body = ast.parse(source, location).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), location, "exec"), namespace)
    if isinstance(last, ast.Expr):
        show(eval(compile(ast.Expression(last.value), location, "eval"), namespace))


def test_all_notebooks_are_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Notebooks may silence warnings, and share the process of the other tests."""
    loggers = [logging.getLogger(name) for name in ("seqopt", "seqopt.campaign", "seqopt.models")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "molecules" else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_a_notebook_runs_from_top_to_bottom(name: str) -> None:
    namespace: dict[str, Any] = {"__name__": f"notebook_{name}", "display": show}
    shortened = 0
    for number, cell in enumerate(code_cells(read(name)), start=1):
        run_cell(cell.source, f"{name}.ipynb, code cell {number}", namespace)
        if "parameters" in cell.metadata.get("tags", []):
            assert set(cell.metadata["short"]) <= set(namespace)
            namespace.update(cell.metadata["short"])
            shortened += 1
    assert shortened == 1


@pytest.mark.parametrize("name", NAMES)
def test_saved_outputs_can_be_read(name: str, execute: ModuleType) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    outputs = [output for cell in cells for output in cell.outputs]
    # Run in order, as a whole, and without complaint.
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert {output.name for output in outputs if output.output_type == "stream"} <= {"stdout"}
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1
    # Nothing tells when, where and by whom.
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags", "short"} for cell in notebook.cells)
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert execute.machine_paths(text) == []
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert len(text.encode()) < LARGEST


@pytest.mark.parametrize("text", ["saved in /home/me/x", "'/tmp/a'", r"C:\\Users\\me", "(/opt/venv/lib)"])
def test_a_path_of_a_machine_is_found(execute: ModuleType, text: str) -> None:
    assert execute.machine_paths(text)


@pytest.mark.parametrize(
    "text", ["https://example.org/home/me", "docs/opt/x", "C/C=C/tmp/", "A" * 300 + "/tmp/" + "B" * 300]
)
def test_other_slashes_are_not_paths(execute: ModuleType, text: str) -> None:
    assert execute.machine_paths(text) == []
