"""What the README shows, works."""

import re
import shlex
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_runs_as_written(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[number], f"README.md, block {number}", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("space", ["CandidateSet", "StringSpace", "CodonSpace", "GrammarSpace"])
def test_each_kind_of_space_takes_at_most_ten_lines(space: str) -> None:
    shown = [block for block in BLOCKS if f"space = {space}(" in block and "seqopt.m" in block]
    assert shown
    assert min(len(block.splitlines()) for block in shown) <= 10


def test_the_protein_pool_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from seqopt.cli import main

    (command,) = re.findall(r"^seqopt (search data/protein_variants.*)$", TEXT, flags=re.MULTILINE)
    arguments = shlex.split(command.replace("data/", f"{README.parent}/data/").replace("--budget 60", "--budget 20"))
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--out", "out"]) == 0
    frame = pd.read_csv("out/evaluations.csv")
    assert len(frame) == 40
    known = pd.read_csv(README.parent / "data" / "protein_variants.csv").set_index("sequence")["score"]
    assert (frame["value"] == known[frame["string"]].to_numpy()).all()
    chosen, random = frame[frame["batch"] > 0]["value"].mean(), frame[frame["batch"] == 0]["value"].mean()
    assert chosen > random


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (README.parent / target).exists(), target
