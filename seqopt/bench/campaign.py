"""How long the commands of a large campaign take: a quarter of a million candidates, thousands of measurements.

The library is ZINC 250k, written to a .csv; the measurements are the penalised logP of random molecules of it, imported
as a laboratory's history. Then the commands a user would type run one after the other, each as a separate process,
with the time from its start to its end, the processor time, and the largest memory of it and its workers. The cache
folder is empty at the beginning, so that the first command that needs something computes it.

Each surrogate has a separate campaign. After the first suggestions, which learn the kernel's parameters, their values
are recorded, and the second suggestions come between two full fits, as nineteen of twenty do at that size.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.runner import header, machine_line, replace_section
from seqopt.errors import SeqoptError

GOALS = {"status": 2.0, "record": 1.0, "suggest": 90.0}
"""Seconds that a command may take."""

LIBRARY, HISTORY = "library.csv", "history.csv"

LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
process = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, usage = os.wait4(process, 0)
seconds = time.perf_counter() - started
facts = [os.waitstatus_to_exitcode(status), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]
print()
print(json.dumps(facts))
"""
"""Starts a command: a process counts the memory of the one that started it as its own, so that one must be small."""

REPEATS = 5
"""How often a quick command is run; the median counts."""


@dataclass(frozen=True)
class Timing:
    """One command.

    Attributes:
        command: What was typed after ``seqopt campaign``.
        what: What it does, for the table.
        surrogate: The campaign's model.
        seconds: From start to end, of each run.
        processor: Seconds of all processors, of each run.
        memory: Largest resident memory in MB, of the largest of its processes and over runs.
    """

    command: str
    what: str
    surrogate: str
    seconds: tuple[float, ...]
    processor: tuple[float, ...]
    memory: float

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)


class Bench:
    """Runs commands in a folder and times them.

    Args:
        folder: Where the library and the campaigns are.
        cache: Cache folder of the commands.
        report: Told of every timing.
    """

    def __init__(self, folder: Path, cache: Path, report: Callable[[Timing], None] = lambda timing: None) -> None:
        self.folder = folder
        self.environment = os.environ | {"SEQOPT_CACHE": str(cache)}
        self.timings: list[Timing] = []
        self._report = report

    def run(self, what: str, surrogate: str, *commands: Sequence[str]) -> Timing:
        """Time a command; several ones of the same kind count as its repeats.

        Raises:
            SeqoptError: If one fails.
        """
        found = [self._once([*command, "--campaign", surrogate], command[0] != "new") for command in commands]
        seconds, processor, memory = zip(*found, strict=True)
        timing = Timing(" ".join(commands[0]), what, surrogate, seconds, processor, max(memory))
        self.timings.append(timing)
        self._report(timing)
        return timing

    def _once(self, command: list[str], named: bool) -> tuple[float, float, float]:
        command = command if named else command[:-2]
        line = ["-m", "seqopt", "campaign", *command]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, *line],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        said, _, facts = done.stdout.rstrip("\n").rpartition("\n")
        status, seconds, processor, memory = json.loads(facts) if done.returncode == 0 else (done.returncode, 0, 0, 0)
        if status:
            raise SeqoptError(f"seqopt {' '.join(line[2:])} failed with status {status}:\n{said}{done.stderr}")
        kilobyte = 1 if sys.platform == "darwin" else 1024
        return round(seconds, 3), round(processor, 3), round(memory * kilobyte / 1e6, 1)


def write_tables(folder: Path, measurements: int, seed: int, candidates: int | None = None) -> dict[str, float]:
    """The library and the history of a campaign; returns the value of each molecule.

    Args:
        folder: Where `LIBRARY` and `HISTORY` go.
        measurements: Molecules in the history.
        seed: Draws them.
        candidates: Take only so many molecules of ZINC, the first ones.
    """
    from seqopt.datasets import load_zinc250k
    from seqopt.objectives.zinc_scores import penalized_logp_of_zinc

    strings, values = load_zinc250k(), penalized_logp_of_zinc()
    strings = strings[:candidates]
    with (folder / LIBRARY).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["compound_id", "smiles"])
        writer.writerows((f"Z{number:06d}", string) for number, string in enumerate(strings))
    chosen = np.random.default_rng(seed).choice(len(strings), measurements, replace=False)
    with (folder / HISTORY).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["smiles", "penalized_logp"])
        writer.writerows((strings[index], repr(float(values[index]))) for index in chosen.tolist())
    return dict(zip(strings, values.tolist(), strict=False))


def fill_in(batch: Path, value_of: dict[str, float]) -> list[tuple[str, float]]:
    """Fill in the values of a batch as a laboratory would; returns identifiers and values."""
    with batch.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        names, rows = list(reader.fieldnames or ()), list(reader)
    for row in rows:
        row["penalized_logp"] = repr(value_of[row["smiles"]])
    with batch.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return [(row["identifier"], float(row["penalized_logp"])) for row in rows]


def measure(bench: Bench, surrogate: str, value_of: dict[str, float], n: int, seed: int) -> None:
    """All commands of one campaign, named after its surrogate."""
    new = ["new", surrogate, "--pool", LIBRARY, "--objective-name", "penalized_logp", "--surrogate", surrogate]
    bench.run("begin a campaign", surrogate, [*new, "--batch", str(n), "--seed", str(seed)])
    bench.run("import the history", surrogate, ["import", HISTORY])
    batch, next_batch = f"{surrogate}-1.csv", f"{surrogate}-2.csv"
    suggest = ["suggest", "-n", str(n), "--out"]
    bench.run(f"suggest {n}, full fit", surrogate, [*suggest, batch])
    bench.run("status", surrogate, *[["status"]] * REPEATS)
    results = fill_in(bench.folder / batch, value_of)
    single = [["record", name, repr(value)] for name, value in results[: min(REPEATS, n - 1)]]
    bench.run("record one value", surrogate, *single)
    bench.run(f"record a table of {n}", surrogate, ["record", batch, "--partial"])
    bench.run(f"suggest {n}, later", surrogate, [*suggest, next_batch])


def goal_of(timing: Timing) -> float | None:
    """Seconds that a command may take, `None` where no goal is set."""
    return GOALS.get(timing.command.split()[0])


def table(timings: Sequence[Timing], sizes: dict[str, int], facts: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        f"{facts['candidates']:,} candidates, {facts['measurements']:,} measurements, seed {facts['seed']}; "
        f"{machine_line(facts['machine'])}; "
        + ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
        + ".",
        "",
        "| surrogate | command | seconds | goal | met | processor seconds | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for timing in timings:
        goal = goal_of(timing)
        met = "" if goal is None else ("yes" if timing.median <= goal else "no")
        several = f" (median of {len(timing.seconds)})" if len(timing.seconds) > 1 else ""
        lines.append(
            f"| {timing.surrogate} | {timing.what}{several} | {timing.median:.2f} | "
            f"{'' if goal is None else f'{goal:g}'} | {met} | {statistics.median(timing.processor):.2f} | "
            f"{timing.memory:,.0f} MB |"
        )
    files = ", ".join(f"{size / 1e6:.2f} MB ({name})" for name, size in sizes.items())
    lines += ["", f"File of the campaign at the end: {files}. Cache folder: {facts['cache_bytes'] / 1e6:,.0f} MB."]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Build the campaigns, time the commands, print and write down the results."""
    parser = argparse.ArgumentParser(prog="seqopt bench campaign", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--measurements", type=int, default=2000, help="molecules in the history (default 2,000)")
    parser.add_argument("--candidates", type=int, help="only the first so many molecules of ZINC (default: all)")
    parser.add_argument("-n", type=int, default=10, help="suggestions at a time (default 10)")
    parser.add_argument("--surrogates", nargs="+", default=["auto", "ssk"], help="models (default: auto ssk)")
    parser.add_argument("--seed", type=int, default=0, help="draws the history, and that of the campaigns (default 0)")
    parser.add_argument("--document", type=Path, default=Path("docs/performance.md"), help="where the table goes")
    parser.add_argument("--out", type=Path, default=Path("results/campaign.json"), help="the raw results, as JSON")
    options = parser.parse_args(list(argv))
    record = header(argv, "campaign")
    print(f"seed: {options.seed}", flush=True)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    folder = Path(tempfile.mkdtemp(prefix="seqopt-campaign-"))
    try:
        value_of = write_tables(folder, options.measurements, options.seed, options.candidates)
        bench = Bench(folder, folder / "cache", _say)
        for surrogate in options.surrogates:
            measure(bench, surrogate, value_of, options.n, options.seed)
        sizes = {name: (folder / f"{name}.seqopt").stat().st_size for name in options.surrogates}
        cached = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
    finally:
        shutil.rmtree(folder)
    facts = {
        "candidates": len(value_of),
        "measurements": options.measurements,
        "seed": options.seed,
        "versions": record["versions"],
        "machine": record["machine"],
        "load_before": load,
        "cache_bytes": cached,
    }
    result = facts | {"file_bytes": sizes, "timings": [asdict(timing) for timing in bench.timings], "record": record}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = table(bench.timings, sizes, facts)
    print(text)
    replace_section(options.document, "campaign", text)


def _say(timing: Timing) -> None:
    print(f"{timing.surrogate}: {timing.what}: {timing.median:.2f} s, {timing.memory:,.0f} MB", flush=True)
