"""What learning the transform of the values is worth: searches of lists with ``transform="auto"`` and with none.

Two lists have values with heavy tails: the variants of an enzyme that come with seqopt (most of them dead), and a
random part of all variants of four sites of protein G (Wu et al. 2016; few of them bind). Three have none: docking
scores, and measured solubilities and lipophilicities of molecules. Both searches of a seed begin with the same strings,
and leave all else to the defaults. Given is how many of the best strings of the list each has found in the end.

References:
    Wu, N. C., Dai, L., Olson, C. A., Lloyd-Smith, J. O., Sun, R. (2016). Adaptation in protein fitness landscapes is
        facilitated by indirect paths. eLife 5, e16965.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, Run
from seqopt.bench.runner import header, run_into_section, with_error
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.datasets.tables import Table
    from seqopt.evaluation import Direction
    from seqopt.spaces import CandidateSet

TRANSFORMS = ("none", "auto")
SEEDS = 10
DRAWN = 20_000
"""Variants of protein G that are drawn of all 149,361."""

SITES = "gb1_four_sites.csv.gz"
"""In the folder SEQOPT_DATA."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A list, and how it is searched.

    Attributes:
        label: In the table.
        load: Strings, values and kind.
        batch: Strings in a batch.
        initial: Random strings that it begins with.
        batches: Batches after these.
        best: How many of the best strings of the list count.
        direction: ``"maximize"`` or ``"minimize"``.
    """

    label: str
    load: Callable[[], tuple[list[str], Numbers, str]]
    batch: int
    initial: int
    batches: int
    best: int
    direction: Direction = "maximize"


def variants() -> tuple[list[str], Numbers, str]:
    """The variants of a protein that come with seqopt, their synthetic scores, and their kind."""
    from seqopt.datasets.tables import read_table
    from seqopt.utils.resources import data_path

    return (*_columns(read_table(data_path("protein_variants.csv")), "sequence", "score"), "protein")


def _sites() -> tuple[list[str], Numbers, str]:
    from seqopt.datasets.tables import read_table

    strings, values = _columns(read_table(sites_file()), "variant", "fitness")
    chosen = np.sort(np.random.default_rng(1).choice(len(strings), DRAWN, replace=False))
    return [strings[index] for index in chosen], values[chosen], "protein"


def sites_file() -> Path:
    """The table of all variants of four sites, which is not among the data sets that are loaded by name.

    Raises:
        InputError: If it is not there.
    """
    path = Path(os.environ.get("SEQOPT_DATA", ".")) / SITES
    if not path.is_file():
        raise InputError(
            f"{path} is not there: write columns variant and fitness of the 149,361 variants of Wu et al. (2016), such "
            "as FLIP has them (splits/gb1), to it, or leave sites out of --tasks"
        )
    return path


def _molecules(name: str) -> Callable[[], tuple[list[str], Numbers, str]]:
    def build() -> tuple[list[str], Numbers, str]:
        from seqopt.datasets import load

        data = load(name)
        assert data.values is not None
        return list(data.strings), data.values, "molecule"

    return build


def _columns(table: Table, string: str, value: str) -> tuple[list[str], Numbers]:
    return list(table.columns[string]), np.array([float(text) for text in table.columns[value]])


TASKS: Mapping[str, Task] = {
    "variants": Task("variants of an enzyme", variants, 10, 20, 8, 30),
    "sites": Task("four sites of protein G", _sites, 50, 50, 6, 100),
    "docking": Task("docking scores", _molecules("enamine10k_docking"), 100, 100, 5, 100, "minimize"),
    "esol": Task("solubility", _molecules("esol"), 10, 20, 10, 30),
    "lipophilicity": Task("lipophilicity", _molecules("lipophilicity"), 10, 20, 10, 30),
}
"""All tasks by name."""


@dataclass(frozen=True)
class Job:
    """One search.

    Attributes:
        task: One of `TASKS`.
        transform: One of `TRANSFORMS`.
        seed: Fixes the first strings and every draw.
    """

    task: str
    transform: str
    seed: int


def work(job: Job) -> Run:
    """Do one search, in one thread."""
    import torch

    from seqopt.data.transforms import LearnedTransform
    from seqopt.optimizer import Optimizer

    torch.set_num_threads(1)
    task = TASKS[job.task]
    space, values = _space(task)
    optimizer = Optimizer(
        space,
        batch_size=task.batch,
        initial=task.initial,
        direction=task.direction,
        transform=job.transform,
        seed=job.seed,
    )
    seconds = 0.0
    learned: list[str] = []
    for _ in range(1 + task.batches):
        started = time.process_time()
        strings = optimizer.ask(task.batch if len(optimizer.observations) else task.initial)
        seconds += time.process_time() - started
        if isinstance(optimizer.transform, LearnedTransform):
            learned.append(optimizer.transform.current.name)
        optimizer.tell(strings, [float(values[space.index_of(string)]) for string in strings])
    return {
        "job": asdict(job),
        "indices": [space.index_of(row.string) for row in optimizer.observations.rows],
        "values": [round(row.value, 6) for row in optimizer.observations.rows],
        "learned": learned,
        "suggest_seconds": round(seconds, 3),
    }


def _space(task: Task) -> tuple[CandidateSet, Numbers]:
    """The list as a space, and the value of each of its strings (of the first of equal ones)."""
    from seqopt.spaces import CandidateSet

    strings, values, kind = task.load()
    space = CandidateSet(strings, kind=kind)
    first: dict[str, float] = {}
    for string, value in zip(strings, values.tolist(), strict=True):
        try:
            first.setdefault(space.key(string), value)
        except InputError:
            continue  # no molecule
    return space, np.array([first[key] for key in space.keys])


def found(run: Run, values: Numbers, task: Task) -> int:
    """How many of the best strings of a list a search has evaluated; ties with the last of them count, too.

    Example:
        >>> task = Task("digits", lambda: ([], np.empty(0), "text"), 1, 1, 1, 2)
        >>> found({"indices": [0, 3, 2]}, np.array([1.0, 5.0, 2.0, 2.0]), task)
        2
    """
    sign = 1.0 if task.direction == "maximize" else -1.0
    least = np.sort(sign * values)[-task.best]
    return int((sign * values[run["indices"]] >= least).sum())


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(prog="seqopt bench transforms", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="searches of each list (default %(default)s)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results") / f"transforms{ENDING}",
        help="file of the raw results, a JSON object a line (default %(default)s)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default %(default)s)")
    options = parser.parse_args(list(argv))
    jobs = [
        Job(task, transform, seed)
        for seed in range(options.seeds)
        for task in options.tasks
        for transform in TRANSFORMS
    ]
    run_into_section(
        "transforms",
        jobs,
        work,
        table,
        results=options.results,
        document=options.document,
        processes=options.jobs,
        record=header(argv, "transforms"),
        every=10,
    )


def table(runs: Sequence[Run]) -> str:
    """Means over seeds, with standard errors, and how much more is found, seed by seed."""
    lines = [
        "| list | best | evaluations | searches | found, none | found, auto | more, paired | chosen in the end | "
        "s none | s auto |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        own = {
            transform: {run["job"]["seed"]: run for run in runs if _of(run, name, transform)}
            for transform in TRANSFORMS
        }
        seeds = sorted(own["none"].keys() & own["auto"].keys())
        if not seeds:
            continue
        _, values = _space(task)
        counts = {
            transform: np.array([found(several[seed], values, task) for seed in seeds])
            for transform, several in own.items()
        }
        chosen = [own["auto"][seed]["learned"][-1] for seed in seeds]
        ends = ", ".join(f"{one} {chosen.count(one)}" for one in dict.fromkeys(sorted(chosen)))
        spent = [np.median([several[seed]["suggest_seconds"] for seed in seeds]) for several in own.values()]
        cells = [with_error(each, 1) for each in (counts["none"], counts["auto"], counts["auto"] - counts["none"])]
        lines.append(
            f"| {task.label} ({len(values):,}) | {task.best} | {task.initial + task.batch * task.batches} | "
            f"{len(seeds)} | {' | '.join(cells)} | {ends} | {spent[0]:.0f} | {spent[1]:.0f} |"
        )
    lines.append(
        "\nMean ± one standard error over seeds of how many of the best strings were found; s: median of the processor "
        "time spent on all suggestions of a search."
    )
    return "\n".join(lines)


def _of(run: Run, task: str, transform: str) -> bool:
    job = run["job"]
    return bool(job["task"] == task and job["transform"] == transform)
