"""Run notebooks from top to bottom and save their outputs.

    python notebooks/execute.py [NAME.ipynb ...]

Each runs in a folder of its own, so that the files it writes leave no trace, and is saved without times, without
execution metadata, and with nothing that tells the machine; an output that names a folder of it is an error.
``tests/test_notebooks.py`` runs them in a short form.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat

FOLDER = Path(__file__).parent
TIMEOUT = 1800
"""Seconds that one cell may take."""

ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|opt|var|work|Users|private|mnt)/|\b[A-Z]:\\")
"""Paths that only one machine has."""

ENCODED = re.compile(r"[A-Za-z0-9+/=]{200,}")
"""Pictures, in which anything may stand."""


def execute(path: Path) -> float:
    """Run a notebook, save it with its outputs, and return how many seconds it took."""
    from nbclient import NotebookClient  # of the extra `notebooks`, which the test does without

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        client = NotebookClient(
            notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
        seconds = time.perf_counter() - started
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    found = machine_paths(nbformat.writes(notebook))
    if found:
        raise SystemExit(f"{path.name} holds paths of this machine ({', '.join(found)}); it was not saved")
    nbformat.validate(notebook)
    nbformat.write(notebook, path)
    return seconds


def machine_paths(text: str) -> list[str]:
    """Beginnings of paths in the text of a notebook, encoded pictures left aside."""
    return sorted({found.group() for found in ABSOLUTE.finditer(ENCODED.sub("", text))})


def _merged(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs in which text that was printed in pieces is in one piece, as the pieces depend on timing."""
    merged: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


if __name__ == "__main__":
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    for given in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(FOLDER.glob("*.ipynb")):
        print(f"{given.name}: {execute(given):.0f} s, {given.stat().st_size / 1e6:.2f} MB", flush=True)
