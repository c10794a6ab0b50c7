"""The order of the rooms is the same in the contract that `make lint` checks, in CONTRIBUTING, and on the disk."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
(CONTRACT,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_the_table_of_rooms_is_that_of_the_contract() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("| room |") : text.index("What passes between rooms")].splitlines()[2:]
    rows = [set(re.findall(r"`seqopt/([a-z_]+)(?:\.py)?`", row.split("|")[1])) for row in table if row.startswith("|")]
    layers = [set(layer.split(" | ")) for layer in CONTRACT["layers"]]
    assert rows == layers[::-1]


def test_every_room_has_its_place() -> None:
    rooms = {
        path.stem
        for path in (ROOT / "seqopt").iterdir()
        if (path.suffix == ".py" and not path.name.startswith("__")) or (path / "__init__.py").exists()
    }
    assert rooms == {room for layer in CONTRACT["layers"] for room in layer.split(" | ")}
    assert CONTRACT["exhaustive"] is True
    assert "ignore_imports" not in CONTRACT


@pytest.mark.parametrize("line", ["import seqopt.report", "def late():\n    from seqopt.campaign import Campaign"])
def test_the_contract_notices_an_import_of_a_room_above(tmp_path: Path, line: str) -> None:
    # A copy of the two rooms and the rest as stubs: enough for the contract, and quick.
    package = tmp_path / "seqopt"
    for layer in CONTRACT["layers"]:
        for room in layer.split(" | "):
            (package / room).mkdir(parents=True)
            (package / room / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {"PYTHONPATH": str(tmp_path)}
    assert subprocess.run([*command, "--no-cache"], cwd=tmp_path, env=environment, check=False).returncode == 0
    (package / "models" / "__init__.py").write_text(line + "\n")
    done = subprocess.run([*command, "--no-cache"], cwd=tmp_path, env=environment, check=False, capture_output=True)
    assert done.returncode == 1
    assert b"seqopt.models" in done.stdout
