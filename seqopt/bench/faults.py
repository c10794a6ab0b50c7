"""Kills a campaign at random moments, hundreds of times, and looks whether anything was lost.

A child process works through a campaign as a laboratory would: it creates the file, suggests, records values, failures
and replicates, with plates and costs, imports results from elsewhere, withdraws, changes settings (which plates are
closed among them) and undoes. It says what it is about to do
before each command, and that it is done after the command has reported success. It is killed (``SIGKILL``, which no
process can handle) in one of four ways:

- ``delay``: after a random time, by the parent;
- ``statement``: before a random SQL statement;
- ``step``: within a statement, after a random number of steps of SQLite's virtual machine;
- ``commit``: a random time of up to a few milliseconds after a commit, or the closing of the file, has begun: while
  the log is written and flushed, or is copied into the file.

The parent then opens the file and compares all that is in it, row by row, with a separate model in plain Python, to
which it has applied the commands that were reported as done, and nothing else: every recorded value must be there
exactly once. The command that was in the middle must be there as a whole or not at all. The next child continues from
there, every second time without the parent's having opened the file itself, so that it recovers alone.

A kill ends the process, not the machine: what the process had handed to the operating system survives it. That a
commit survives a power failure as well rests on SQLite's flushing it to the disk (``synchronous = FULL``), and is not
shown here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqopt.campaign import (
    CampaignError,
    CampaignStore,
    NewMeasurement,
    NewSnapshot,
    NewSuggestion,
    Settings,
    StaleStateError,
)
from seqopt.campaign.plates import PlateRules
from seqopt.campaign.rows import Measurement, Suggestion
from seqopt.data import Context, Contexts, as_context
from seqopt.errors import SeqoptError

MODES = ("delay", "statement", "step", "commit")
"""Ways to be killed; the next kill takes the next one."""

LONGEST_DELAY = 0.2
"""Seconds within which the parent kills; a child does some tens of commands in that time."""

LAST = {"delay": 0, "statement": 400, "step": 200_000, "commit": 20}
"""Statements, steps, or commits and closings, within which a child is killed."""

WHILE_CREATING = 0.1
"""Share of these within which every second child that begins a campaign is killed: in the middle of making the file."""

STRIDE = 50
"""Steps that are counted at once."""

LONGEST_COMMIT = 0.004
"""Seconds after the beginning of a commit within which the kill comes."""

COMMANDS_OF_CHILD, COMMANDS_OF_CAMPAIGN = 40, 80
"""Commands after which a child is done, and after which a new campaign begins, so that its making is killed, too."""

CHILD = "import sys; from seqopt.bench.faults import child; child(sys.argv[1:])"
"""What the process that is killed runs."""

FILE = "campaign.seqopt"

PLATES = ("P1", "P2", "P3")
"""On which strings are measured."""

Operation = dict[str, Any]
"""What a command does, as JSON: its kind and what it is given."""

CREATE: Operation = {"kind": "create", "token": "create", "batch_size": 7, "closed": []}
"""With which a campaign begins."""


# What a laboratory does


def plan(store: CampaignStore, rng: random.Random) -> Operation:
    """The next command of the script, by what the campaign holds."""
    with store.reading():
        waiting, known, state = store.open_suggestions(), store.observations(), store.state
        undo, results = store.next_undo(), store.measurements()
    kinds = ["record", "import", "configure", "fit"]
    kinds += ["record"] * 4 if waiting else ["suggest"] * 4
    kinds += ["suggest", "withdraw"] if waiting else []
    kinds += ["undo"] if undo is not None else []
    kinds += ["correct", "discard"] if results else []
    kind = rng.choice(kinds)
    token = f"{state + 1}-{rng.randrange(10**9)}"
    operation: Operation = {"kind": kind, "token": token}
    if kind == "undo":
        operation["undone"] = undo.id if undo is not None else None
    if kind == "suggest":
        fresh = [f"S{state + 1}.{number}" for number in range(rng.choice([1, 4, 10, 60]))]
        again = sorted({group.string for group in known} - {row.string for row in waiting})
        strings = fresh + rng.sample(again, min(len(again), rng.randrange(3)))
        operation["strings"] = [[string, rng.choice(PLATES)] for string in strings]
        operation["model"] = [rng.random() for _ in range(rng.choice([0, 3, 1000]))]
    elif kind in ("record", "import"):
        rows = []
        for suggestion in rng.sample(waiting, min(len(waiting), rng.randrange(8))) if kind == "record" else []:
            for _ in range(rng.choice([1, 1, 1, 3])):
                named = suggestion.name if rng.random() < 0.5 else None
                rows.append(_result(suggestion.string, rng, named, dict(suggestion.context).get("plate")))
        for number in range(rng.choice([1, 5, 5, 200]) if kind == "import" else 1):
            rows.append(_result(f"elsewhere {token} {number}", rng, None, rng.choice(PLATES)))
        operation["rows"] = rows
    elif kind == "correct":
        operation |= {"number": rng.choice(results).id, "value": rng.gauss(0, 1)}
    elif kind == "discard":
        operation["discarded"] = [row.id for row in rng.sample(results, rng.randint(1, min(3, len(results))))]
    elif kind == "undo" and rng.random() < 0.5:
        # Any command that may be.
        chosen = rng.choice([row for row in store.history() if store.hindrance(row) is None])
        operation["undone"] = chosen.id
    elif kind == "withdraw":
        operation["names"] = [row.name for row in rng.sample(waiting, rng.randint(1, min(3, len(waiting))))]
    elif kind == "configure":
        operation |= {"batch_size": rng.randrange(1, 100), "closed": rng.sample(PLATES, rng.randrange(3))}
    elif kind == "fit":
        operation["model"] = [rng.random() for _ in range(rng.choice([3, 1000]))]
    return operation


def _result(string: str, rng: random.Random, suggestion: str | None, plate: object) -> dict[str, Any]:
    row: dict[str, Any] = {"string": string, "suggestion": suggestion, "value": None, "failure": None, "error": None}
    row |= {"plate": plate, "cost": rng.random() if rng.random() < 0.3 else None}
    if rng.random() < 0.2:
        return row | {"failure": f"no yield {rng.random()}"}
    return row | {"value": rng.gauss(0, 1), "error": rng.random() + 0.01 if rng.random() < 0.3 else None}


def perform(store: CampaignStore, operation: Operation) -> None:
    """Do one command of the script."""
    kind = operation["kind"]
    with store.transaction(kind, {"token": operation["token"]}, expected_state=store.state) as change:
        if kind in ("suggest", "fit"):
            model = operation["model"]
            number = change.add_snapshot(NewSnapshot("toy", len(model), {}, model)) if model else None
        if kind == "suggest":
            new = [
                NewSuggestion(string, string.upper(), mean=0.5, context=_on(plate))
                for string, plate in operation["strings"]
            ]
            change.add_suggestions(new, snapshot=number)
        elif kind in ("record", "import"):
            change.add_measurements(
                NewMeasurement(
                    row["string"],
                    row["string"].upper(),
                    row["value"],
                    row["failure"],
                    row["error"],
                    suggestion=row["suggestion"],
                    context=_on(row["plate"]),
                    cost=row["cost"],
                )
                for row in operation["rows"]
            )
        elif kind == "correct":
            old = next(row for row in store.measurements() if row.id == operation["number"])
            corrected = NewMeasurement(old.string, old.key, operation["value"], context=old.context, replaces=old.id)
            change.add_measurements([corrected])
        elif kind == "discard":
            change.discard(operation["discarded"], operation["token"])
        elif kind == "withdraw":
            change.withdraw(operation["names"], operation["token"])
        elif kind == "configure":
            change.save_settings(settings_of(operation))
        elif kind == "undo":
            change.undo(operation["undone"])


def settings_of(operation: Operation) -> Settings:
    """The settings that the command ``create`` or ``configure`` gives."""
    rules = PlateRules(96, closed=tuple(operation["closed"])).to_json()
    contexts = Contexts.of_plates().config()
    return Settings("value", contexts=contexts, batch_size=operation["batch_size"], plates=rules)


def _on(plate: str) -> Context:
    return as_context({"plate": plate})


# What must be in the file


@dataclass
class _Made:
    """A row of the model."""

    what: dict[str, Any]
    made_by: int
    undone_by: int | None = None


@dataclass
class Expected:
    """What a campaign must hold after some commands: a model in plain Python that knows nothing of the store.

    Attributes:
        commands: Kind and token of each command.
    """

    commands: list[tuple[str, str]] = field(default_factory=list)
    settings: list[_Made] = field(default_factory=list)
    snapshots: list[_Made] = field(default_factory=list)
    suggestions: list[_Made] = field(default_factory=list)
    measurements: list[_Made] = field(default_factory=list)
    discards: list[_Made] = field(default_factory=list)
    withdrawals: list[_Made] = field(default_factory=list)
    undoable: list[int] = field(default_factory=list)

    def apply(self, operation: Operation) -> None:
        """Take over a command that is in the file."""
        kind = operation["kind"]
        number = len(self.commands) + 1
        self.commands.append((kind, operation["token"]))
        if kind == "undo":
            target = operation["undone"]
            self.undoable.remove(target)
            for row in self._rows():
                if row.made_by == target:
                    row.undone_by = number
            return
        if kind not in ("create", "fit"):
            self.undoable.append(number)
        if kind in ("create", "configure"):
            self.settings.append(_Made({item: operation[item] for item in ("batch_size", "closed")}, number))
        if operation.get("model"):
            self.snapshots.append(_Made({"state": operation["model"]}, number))
        batch = 1 + max((row.what["batch"] for row in self.suggestions), default=0)
        for position, (string, plate) in enumerate(operation.get("strings", ()), start=1):
            name = f"B{batch:02d}-{position:02d}"
            self.suggestions.append(_Made({"string": string, "plate": plate, "batch": batch, "name": name}, number))
        answers: dict[tuple[str, str], str | None] = {}
        for row in operation.get("rows", ()):
            # All rows of a command see the suggestions as they were before it.
            asked = row["string"], row["plate"]
            if asked not in answers:
                answers[asked] = self._answered(*asked)
            answered = row["suggestion"] or answers[asked]
            values = {item: row[item] for item in ("string", "plate", "value", "failure", "error", "cost")}
            self.measurements.append(_Made(values | {"suggestion": answered, "replaces": None}, number))
        if kind == "correct":
            old = self.measurements[operation["number"] - 1].what
            self.measurements.append(
                _Made(
                    {"string": old["string"], "plate": old["plate"], "value": operation["value"], "failure": None}
                    | {"error": None, "cost": None, "suggestion": old["suggestion"], "replaces": operation["number"]},
                    number,
                )
            )
        for measurement in operation.get("discarded", ()):
            self.discards.append(_Made({"measurement": measurement, "reason": operation["token"]}, number))
        for name in operation.get("names", ()):
            self.withdrawals.append(_Made({"suggestion": name, "reason": operation["token"]}, number))

    def differences(self, store: CampaignStore) -> list[str]:
        """What of the file is not as it must be."""
        found = store.check()
        with store.reading():
            there = {
                "commands": [(row.kind, row.arguments.get("token")) for row in store.history()],
                "suggestions": [
                    (
                        {"string": row.string, "plate": _plate(row), "batch": row.batch, "name": row.name},
                        row.status,
                        row.made_by,
                    )
                    for row in store.suggestions(undone=True)
                ],
                "measurements": [
                    (
                        {
                            "string": row.string,
                            "plate": _plate(row),
                            "value": row.value,
                            "failure": row.failure,
                            "error": row.standard_error,
                            "cost": row.cost,
                            "suggestion": row.suggestion,
                            "replaces": row.replaces,
                        },
                        row.made_by,
                        row.undone_by,
                    )
                    for row in store.measurements(undone=True)
                ],
                "standing": [(row.id, row.discarded) for row in store.measurements(discarded=True)],
                "withdrawals": [
                    ({"suggestion": row.suggestion, "reason": row.reason}, row.made_by, row.undone_by)
                    for row in store.withdrawals(undone=True)
                ],
                "snapshots": [
                    ({"state": store.snapshot_state(row.id)}, row.made_by, row.undone_by)
                    for row in store.snapshots(undone=True)
                ],
                "settings": {"batch_size": store.settings.batch_size, "closed": _closed(store.settings)},
            }
        must: dict[str, Any] = {
            "commands": self.commands,
            "suggestions": [(row.what, self._status(row), row.made_by) for row in self.suggestions],
            "settings": next(row.what for row in reversed(self.settings) if row.undone_by is None),
        }
        must["standing"] = [
            (number, self._discarded(number))
            for number, row in enumerate(self.measurements, start=1)
            if row.undone_by is None and not self._corrected(number)
        ]
        for table in ("measurements", "withdrawals", "snapshots"):
            must[table] = [(row.what, row.made_by, row.undone_by) for row in getattr(self, table)]
        return found + [
            f"{table}: {_first_difference(there[table], must[table])}" for table in must if there[table] != must[table]
        ]

    def _rows(self) -> Iterator[_Made]:
        yield from (*self.settings, *self.snapshots, *self.suggestions, *self.measurements, *self.discards)
        yield from self.withdrawals

    def _corrected(self, number: int) -> bool:
        return any(row.what["replaces"] == number and row.undone_by is None for row in self.measurements)

    def _discarded(self, number: int) -> str | None:
        """Why a measurement is discarded, if it is."""
        found = [row for row in self.discards if row.what["measurement"] == number and row.undone_by is None]
        return str(found[0].what["reason"]) if found else None

    def _answered(self, string: str, plate: str) -> str | None:
        """The suggestion that a result of a string on a plate answers: an open one, or else the latest."""
        known = [
            row
            for row in self.suggestions
            if row.what["string"].upper() == string.upper() and row.what["plate"] == plate and not row.undone_by
        ]
        waiting = [row for row in known if self._status(row) == "open"]
        return str((waiting or known)[-1].what["name"]) if known else None

    def _status(self, suggestion: _Made) -> str:
        name = suggestion.what["name"]
        standing = [
            (number, row.what)
            for number, row in enumerate(self.measurements, start=1)
            if row.what["suggestion"] == name and row.undone_by is None and not self._corrected(number)
        ]
        results = [what for number, what in standing if self._discarded(number) is None]
        if suggestion.undone_by is not None:
            return "undone"
        if standing and not results:
            return "discarded"
        if results:
            return "measured" if any(row["value"] is not None for row in results) else "failed"
        withdrawn = any(row.what["suggestion"] == name and row.undone_by is None for row in self.withdrawals)
        return "withdrawn" if withdrawn else "open"


def _plate(row: Suggestion | Measurement) -> object:
    return dict(row.context).get("plate")


def _closed(settings: Settings) -> list[str]:
    rules = PlateRules.of(settings)
    return [] if rules is None else list(rules.closed)


def _first_difference(there: Any, must: Any) -> str:
    if not isinstance(there, list):
        return f"{there!r} instead of {must!r}"
    for number, (row, expected) in enumerate(zip(there, must, strict=False), start=1):
        if row != expected:
            return f"row {number} is {row!r} instead of {expected!r}"
    return f"{len(there)} rows instead of {len(must)}"


# The process that is killed


class Doomed(sqlite3.Connection):
    """A connection that kills its process at a chosen moment, counted over all connections of the class.

    Attributes:
        mode: One of `MODES`.
        left: Statements, steps or commits that are let pass.
        delay: Seconds after the beginning of a commit.
    """

    mode = ""
    left = 0
    delay = 0.0

    def arm(self) -> None:
        """Begin to count."""
        if self.mode in ("statement", "commit"):
            self.set_trace_callback(self._statement)
        elif self.mode == "step":
            self.set_progress_handler(self._steps, STRIDE)

    def close(self) -> None:
        """Close the file; for a death by commit, this is one."""
        if self.mode == "commit":
            self._count()
        super().close()

    def _statement(self, text: str) -> None:
        if self.mode == "statement" or text == "COMMIT":
            self._count()

    def _steps(self) -> int:
        self._count(STRIDE)
        return 0

    def _count(self, number: int = 1) -> None:
        type(self).left -= number
        if self.left < 0:
            _die(self.delay)


def _die(after: float) -> None:
    """Kill this process: at once, or from a separate thread after some seconds."""
    if after <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

    def wait() -> None:
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def child(arguments: Sequence[str]) -> None:
    """Work through the script until killed; the arguments are those that `_kill_once` gives."""
    given = json.loads(arguments[0])
    path, rng = Path(given["path"]), random.Random(given["seed"])

    class Connection(Doomed):
        mode, left, delay = given["mode"], given["left"], given["delay"]

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if given["checkpoint"] is not None:
                # A small log is copied into the file often, and the kill may come in the middle of that.
                self.execute(f"PRAGMA wal_autocheckpoint = {given['checkpoint']}")
            self.arm()

    _say({"ready": True})
    done = 0
    while done < given["commands"]:
        if given["create"] and not done:
            operation: Operation = dict(CREATE)
            _say({"begin": operation})
            settings = settings_of(operation)
            store = CampaignStore.create(path, settings, {"token": "create"}, factory=Connection)
            _say({"done": 1})
            done += 1
        else:
            store = CampaignStore.open(path, factory=Connection)
        with store:
            for _ in range(given["until_closed"]):
                operation = plan(store, rng)
                _say({"begin": operation})
                perform(store, operation)
                _say({"done": store.state})
                done += 1
    _say({"finished": True})


def _say(message: dict[str, Any]) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())


# The process that kills


@dataclass
class Tally:
    """What came of some kills.

    Attributes:
        kills: Processes that were killed.
        survived: Processes that were done before it was their time.
        commands: Commands that were reported as done.
        measurements: Values and failures that they recorded.
        modes: Kills by the way it was done.
        during: Kills by the command in the middle of which they were; ``"none"`` if between two.
        kept: Commands that were in the middle and are in the file.
        dropped: Commands that were in the middle and are not.
        campaigns: Campaigns that were begun.
        violations: What was wrong; empty if nothing was.
    """

    kills: int = 0
    survived: int = 0
    commands: int = 0
    measurements: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    during: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    dropped: int = 0
    campaigns: int = 0
    violations: list[str] = field(default_factory=list)


def kill_repeatedly(folder: Path, kills: int, seed: int, *, every: int = 0) -> Tally:
    """Kill a campaign so many times, and compare the file with what must be in it after each.

    Args:
        folder: An empty folder; after a violation, the file is left in it.
        kills: How many.
        seed: Fixes commands and moments (but not where a kill by time finds the process).
        every: Print a line after so many kills; 0 for none.

    Returns:
        What came of it; the first violation ends it.
    """
    rng = random.Random(seed)
    tally = Tally()
    expected = Expected()
    path = folder / FILE
    while tally.kills < kills and not tally.violations:
        if len(expected.commands) > COMMANDS_OF_CAMPAIGN:
            for part in folder.iterdir():
                part.unlink()
            expected = Expected()
        tally.campaigns += not expected.commands
        mode = MODES[tally.kills % len(MODES)]
        before = tally.kills
        _kill_once(path, expected, mode, rng, tally)
        if every and tally.kills > before and tally.kills % every == 0:
            print(f"{tally.kills} kills, {tally.commands} commands, {len(tally.violations)} violations", flush=True)
    return tally


def _kill_once(path: Path, expected: Expected, mode: str, rng: random.Random, tally: Tally) -> None:
    share = WHILE_CREATING if not expected.commands and rng.random() < 0.5 else 1.0
    given = {
        "path": str(path),
        "seed": rng.randrange(2**62),
        "mode": mode,
        "left": rng.randint(0, int(share * LAST[mode])),
        "delay": rng.uniform(0, LONGEST_COMMIT) if mode == "commit" else 0.0,
        "checkpoint": rng.choice([None, 1, 20]),
        "until_closed": rng.choice([1, 4, 1000]),
        "create": not expected.commands,
        "commands": COMMANDS_OF_CHILD,
    }
    delay = rng.uniform(0, share * LONGEST_DELAY)
    with subprocess.Popen([sys.executable, "-c", CHILD, json.dumps(given)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if mode == "delay":
            time.sleep(delay)
            process.kill()
        said += process.stdout.read()
        status = process.wait()
    # A line cut short was not said: the kill was in the middle of it.
    messages = [json.loads(line) for line in said.split(b"\n")[:-1]]
    if status not in (0, -signal.SIGKILL):
        tally.violations.append(f"the process ended with status {status} after {messages[-1:]}")
        return
    open_command: Operation | None = None
    for message in messages:
        if "begin" in message:
            open_command = message["begin"]
        elif "done" in message and open_command is not None:
            expected.apply(open_command)
            tally.commands += 1
            tally.measurements += len(open_command.get("rows", ()))
            open_command = None
            if message["done"] != len(expected.commands):
                tally.violations.append(f"command {len(expected.commands)} reported state {message['done']}")
    if status == 0:
        tally.survived += 1
    else:
        tally.kills += 1
        tally.modes[mode] += 1
        tally.during[open_command["kind"] if open_command else "none"] += 1
    _compare(path, expected, open_command, rng, tally)


def _compare(path: Path, expected: Expected, open_command: Operation | None, rng: random.Random, tally: Tally) -> None:
    """Hold the file, or every second time a copy of it and its log, against what must be in it."""
    with contextlib.ExitStack() as stack:
        file = path
        if rng.random() < 0.5:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory()), path.name)
            for part in (path, path.with_name(path.name + "-wal")):
                if part.exists():
                    shutil.copyfile(part, file.with_name(part.name))
        try:
            store = stack.enter_context(CampaignStore.open(file))
        except CampaignError as error:
            if expected.commands:
                tally.violations.append(f"cannot be opened: {error}")
            elif open_command is not None:
                # Nothing was reported yet: there is no file, or an empty one that the next attempt takes.
                tally.dropped += 1
            return
        if open_command is not None:
            if store.state == len(expected.commands) + 1:
                expected.apply(open_command)
                tally.kept += 1
            else:
                tally.dropped += 1
        tally.violations += expected.differences(store)


# Two at once


def race(path: str, worker: str, seed: int, commands: int) -> list[str]:
    """Suggest and record, with another process at it, too; returns the tokens of what was reported as done."""
    rng = random.Random(f"{worker} {seed}")
    done: list[str] = []
    with CampaignStore.open(path) as store:
        while len(done) < commands:
            state = store.state
            token = f"{worker}-{len(done)}"
            waiting = store.open_suggestions()
            try:
                if len(waiting) < 5:
                    # The strings follow from the state alone, as a model's do: without care, both would suggest them.
                    new = [NewSuggestion(f"S{state}.{number}", f"S{state}.{number}") for number in range(3)]
                    with store.transaction("suggest", {"token": token}, expected_state=state) as change:
                        change.add_suggestions(new)
                else:
                    chosen = rng.choice(waiting)
                    with store.transaction("record", {"token": token}, expected_state=state) as change:
                        change.add_measurements([NewMeasurement(chosen.string, chosen.key, rng.random())])
            except StaleStateError:
                continue
            done.append(token)
    return done


def main(argv: Sequence[str]) -> None:
    """Kill so many times, print what came of it, and write it down."""
    parser = argparse.ArgumentParser(prog="seqopt bench faults", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=500, help="processes to kill (default 500)")
    parser.add_argument("--seed", type=int, default=0, help="fixes commands and moments (default 0)")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the line goes")
    parser.add_argument("--out", type=Path, default=Path("results/faults.json"), help="the raw results, as JSON")
    options = parser.parse_args(list(argv))
    # It imports the models, which the process that is killed shall not wait for.
    from seqopt.bench.runner import header, replace_section

    record = header(argv, "faults") | {"sqlite": sqlite3.sqlite_version}
    print(f"SQLite {sqlite3.sqlite_version}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="seqopt-faults-"))
    started = time.perf_counter()
    tally = kill_repeatedly(folder, options.kills, options.seed, every=50)
    seconds = time.perf_counter() - started
    options.out.parent.mkdir(parents=True, exist_ok=True)
    result = {"seconds": round(seconds, 1), **vars(tally), "record": record}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    line = _line(tally)
    print(f"{line}\n{seconds:.0f} s")
    if tally.violations:
        raise SeqoptError(f"the campaign in {folder} is not as it must be: " + "; ".join(tally.violations[:5]))
    shutil.rmtree(folder)
    replace_section(options.document, "faults", line)


def _line(tally: Tally) -> str:
    ways = ", ".join(f"{tally.modes[mode]} by {mode}" for mode in MODES)
    return (
        f"{tally.kills:,} kills ({ways}) in {tally.campaigns} campaigns: {tally.commands:,} commands were reported as "
        f"done and are all there, with {tally.measurements:,} measurements, each exactly once. Of the "
        f"{tally.kept + tally.dropped} commands that a kill hit in the middle, {tally.kept} are there as a whole and "
        f"{tally.dropped} not at all. {len(tally.violations)} violations."
    )
