"""The command keeps what it measured and measures what is missing."""

from __future__ import annotations

import json

import pytest

from seqopt.bench.kernel import command, main
from seqopt.bench.kernel.settings import Settings

RECORD = {"command": "seqopt bench kernel", "versions": {"seqopt": "1"}, "machine": {"cores": 2}}
QUICK = Settings(threads=(1, 2)).quick()


@pytest.fixture
def counted(monkeypatch):
    """Two sections that count how often they are measured."""
    calls = []

    def section(name):
        def measure(settings):
            calls.append(name)
            return {"rows": []}

        return measure

    monkeypatch.setattr(command, "SECTIONS", {"first": section("first"), "second": section("second")})
    return calls


def test_finished_sections_are_kept_unless_fresh_ones_are_wanted(counted, tmp_path):
    out = tmp_path / "new" / "kernel.json"
    command.run(["first"], QUICK, RECORD, out)
    command.run(["first", "second"], QUICK, RECORD, out)
    assert counted == ["first", "second"]
    found = command.run(["second"], QUICK, RECORD, out, fresh=True)
    assert counted == ["first", "second", "second"]
    assert list(found) == ["first", "second"]
    assert json.loads(out.read_text())["sections"] == found


@pytest.mark.parametrize(
    ("settings", "record"),
    [
        (Settings(threads=(1, 2), seed=1).quick(), RECORD),
        (QUICK, RECORD | {"versions": {"seqopt": "2"}}),
        (QUICK, RECORD | {"machine": {"cores": 4}}),
    ],
    ids=["settings", "versions", "machine"],
)
def test_what_was_measured_differently_is_measured_again(counted, tmp_path, settings, record):
    out = tmp_path / "kernel.json"
    command.run(["first"], QUICK, RECORD, out)
    found = command.run(["first"], settings, record, out)
    assert counted == ["first", "first"]
    assert found["first"]["settings"] == settings.to_json()
    assert found["first"]["record"] == record


def test_an_interruption_loses_only_the_section_it_hits(counted, tmp_path, monkeypatch):
    def stop(settings):
        raise KeyboardInterrupt

    out = tmp_path / "kernel.json"
    whole = dict(command.SECTIONS)
    monkeypatch.setitem(command.SECTIONS, "second", stop)
    with pytest.raises(KeyboardInterrupt):
        command.run(["first", "second"], QUICK, RECORD, out)
    assert list(json.loads(out.read_text())["sections"]) == ["first"]
    monkeypatch.setattr(command, "SECTIONS", whole)
    command.run(["first", "second"], QUICK, RECORD, out)
    assert counted == ["first", "second"]


def test_what_was_unavailable_is_tried_again(counted, tmp_path, monkeypatch, capsys):
    out = tmp_path / "kernel.json"
    whole = dict(command.SECTIONS)
    monkeypatch.setitem(command.SECTIONS, "first", lambda settings: {"rows": [], "unavailable": "no such thing"})
    command.run(["first"], QUICK, RECORD, out)
    assert "first: no such thing" in capsys.readouterr().out
    monkeypatch.setattr(command, "SECTIONS", whole)
    command.run(["first"], QUICK, RECORD, out)
    assert counted == ["first"]


def test_what_another_machine_measured_outlives_a_machine_that_cannot(counted, tmp_path, monkeypatch, capsys):
    out = tmp_path / "kernel.json"
    rows = [{"pairs": 3, "skipped": "a row"}]
    monkeypatch.setitem(command.SECTIONS, "first", lambda settings: {"rows": rows})
    monkeypatch.setattr(command, "table_of", lambda name, section: None)
    command.run(["first"], QUICK, RECORD, out)
    monkeypatch.setitem(command.SECTIONS, "first", lambda settings: {"rows": [], "unavailable": "no GPU"})
    found = command.run(["first"], QUICK, RECORD, out, fresh=True)
    assert found["first"]["rows"] == rows
    assert "unavailable" not in json.loads(out.read_text())["sections"]["first"]
    assert "first: kept as it is" in capsys.readouterr().out


def test_a_file_of_an_earlier_form_is_replaced(counted, tmp_path):
    out = tmp_path / "kernel.json"
    out.write_text('{"record": {}, "rows": []}')
    assert list(command.run(["first"], QUICK, RECORD, out)) == ["first"]


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--quick", "--sections", "partitions", "--threads", "2", "1", "1"]
    main(options)
    assert list(tmp_path.iterdir()) == []  # tiny sizes replace no results by themselves
    main([*options, "--out", "kernel.json", "--document", "performance.md"])
    (stored,) = json.loads((tmp_path / "kernel.json").read_text())["sections"].values()
    assert stored["settings"] == QUICK.to_json()
    assert stored["record"]["command"].startswith("seqopt bench kernel --quick --sections partitions")
    assert "| length | partitions |" in (tmp_path / "performance.md").read_text()
    assert "Partitions, `cpu` engine" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--threads", "0"])
