"""A campaign that is killed again and again loses nothing."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from seqopt.bench import faults
from seqopt.bench.faults import MODES, kill_repeatedly, main
from seqopt.errors import SeqoptError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")


@pytest.mark.slow
def test_nothing_is_lost_in_thirty_kills(tmp_path: Path) -> None:
    tally = kill_repeatedly(tmp_path, 30, seed=11)
    assert tally.violations == []
    assert tally.kills == 30
    assert set(tally.modes) == set(MODES)
    # The kills were in the middle of commands, and between them; commands went on in spite of them.
    assert tally.dropped > 0
    assert tally.commands > 30
    assert tally.measurements > 0
    assert sum(tally.during.values()) == 30


@pytest.mark.parametrize(
    "damage",
    ids=["nothing", "twice", "half", "rounded"],
    argvalues=[
        # Success is reported, and nothing was written.
        "faults.perform = lambda store, operation: None",
        # Every command is done twice.
        "perform = faults.perform; faults.perform = lambda *given: (perform(*given), perform(*given))",
        # A command is written without its rows.
        """
insert = store.Change._insert
def half(self, table, rows):
    numbers = insert(self, table, rows)
    if table == "measurements":
        self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN")
    return numbers
store.Change._insert = half
""",
        # A value is rounded on its way.
        """
def rounded(entry):
    object.__setattr__(entry, "value", entry.value and round(entry.value, 9))
changes._check_measurement = rounded
""",
    ],
)
def test_a_store_that_loses_something_is_found_out(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = "import sys; from seqopt.bench import faults; from seqopt.campaign import changes, store\n"
    monkeypatch.setattr(faults, "CHILD", f"{begin}{damage}\nfaults.child(sys.argv[1:])")
    monkeypatch.setattr(faults, "LONGEST_DELAY", 1.0)
    assert kill_repeatedly(tmp_path, 20, seed=4).violations


def test_what_came_of_it_is_written_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, out = tmp_path / "results.md", tmp_path / "results" / "faults.json"
    main(["--kills", "4", "--seed", "3", "--document", str(document), "--out", str(out)])
    found = json.loads(out.read_text())
    assert (found["kills"], found["violations"]) == (4, [])
    assert found["record"]["command"].startswith("seqopt bench faults --kills 4 --seed 3")
    assert "4 kills (1 by delay, 1 by statement, 1 by step, 1 by commit)" in document.read_text()
    assert "0 violations" in capsys.readouterr().out


def test_a_violation_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(
        faults, "kill_repeatedly", lambda *_, **__: faults.Tally(kills=1, violations=["a value is lost"])
    )
    with pytest.raises(SeqoptError, match="a value is lost"):
        main(["--document", str(tmp_path / "results.md"), "--out", str(tmp_path / "faults.json")])
    assert json.loads((tmp_path / "faults.json").read_text())["violations"] == ["a value is lost"]
    assert not (tmp_path / "results.md").exists()
