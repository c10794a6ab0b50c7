"""What all benchmarks share: runs in parallel, those that are stored already left out."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, append_record, read_records, run_key
from seqopt.utils.files import write_atomically
from seqopt.utils.versions import versions

Job = TypeVar("Job")


def machine() -> dict[str, Any]:
    """Processor, width of its vector registers, cores, GPU if any, and platform, for the record of a measurement."""
    import torch

    from seqopt.kernels.engines.compiled import REGISTER_BYTES

    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            model = next((line.split(":", 1)[1].strip() for line in stream if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "processor": model,
        # Virtual machines often name a family of processors only, of which some have registers of twice the width.
        "vector_bits": 8 * REGISTER_BYTES,
        "cores": os.cpu_count(),
        "platform": platform.platform(aliased=True, terse=True),
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
    }


def machine_line(machine: dict[str, Any]) -> str:
    """What `machine` returned, for the line below a table; records of older versions lack the registers' width.

    Example:
        >>> machine_line({"processor": "AMD EPYC", "vector_bits": 256, "cores": 2, "platform": "Linux"})
        'AMD EPYC with vectors of 256 bits, 2 cores, Linux'
        >>> machine_line({"processor": "Xeon", "cores": 16, "gpu": "NVIDIA H100", "platform": "Linux"})
        'Xeon, 16 cores, NVIDIA H100, Linux'
    """
    vectors = f" with vectors of {machine['vector_bits']} bits" if "vector_bits" in machine else ""
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    return f"{machine['processor']}{vectors}, {machine['cores']} cores{gpu}, {machine['platform']}"


def source_digest() -> str:
    """Digest of the package's Python files outside ``bench``, ``cli`` and ``report``: what results may depend on."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.parts[0] not in ("bench", "cli", "report"):
            digest.update(f"{relative.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


PLACES = ("--results", "--document", "--out", "--folder", "--figure", "--epochs")
"""Options that say where on this machine something goes: a stored command is without them.

``--epochs`` is the file that `seqopt bench vae` writes while it trains."""


def without_places(argv: Sequence[str]) -> list[str]:
    """Arguments that say what is run, not where it is written.

    Example:
        >>> without_places(["--seeds", "5", "--results", "elsewhere", "--document=page.md", "--jobs", "1"])
        ['--seeds', '5', '--jobs', '1']
    """
    found: list[str] = []
    place = False
    for argument in argv:
        if not place and not argument.startswith(tuple(f"{name}=" for name in PLACES)) and argument not in PLACES:
            found.append(argument)
        place = not place and argument in PLACES
    return found


def header(argv: Sequence[str], name: str) -> dict[str, Any]:
    """The record that every benchmark prints and stores: command, versions and machine."""
    record: dict[str, Any] = {
        "command": " ".join(["seqopt bench", name, *without_places(argv)]),
        "source_sha256": source_digest(),
        "versions": versions(),
        "machine": machine(),
    }
    print(record["command"])
    print(f"source: {record['source_sha256']}")
    print("versions: " + ", ".join(f"{package} {version}" for package, version in versions().items()))
    print(f"machine: {machine_line(record['machine'])}", flush=True)
    return record


def run_jobs(
    jobs: Sequence[Job],
    file_of: Callable[[Job], Path],
    identity: Callable[[Job], Mapping[str, Any]],
    work: Callable[[Job], dict[str, Any]],
    *,
    processes: int,
    record: dict[str, Any],
    every: int = 1,
) -> None:
    """Do every job whose run is not stored yet, and append its result to its file.

    Args:
        jobs: Picklable descriptions of runs.
        file_of: The JSON-lines file that a job's run goes to; see `seqopt.bench.records`.
        identity: What tells a job's run from others: fields of its result, the same ones for all jobs.
        work: Does one job, in a separate process with one thread; a module-level function.
        processes: Jobs at a time.
        record: Stored with each result.
        every: Print a line after so many runs, and for each that failed.
    """
    fields = list(identity(jobs[0])) if jobs else []
    stored = {file: {run_key(run, fields) for run in read_records(file, fields)} for file in set(map(file_of, jobs))}
    missing = [job for job in jobs if run_key(identity(job), fields) not in stored[file_of(job)]]
    print(f"{len(jobs) - len(missing)} of {len(jobs)} runs are there already", flush=True)
    if not missing:
        return
    started = time.perf_counter()
    # Two busy processes of one thread each finish sooner than one after the other with two.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_leave_with_parent) as pool:
        futures = {pool.submit(work, job): job for job in missing}
        failed: list[BaseException] = []
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                job = futures[future]
                name = " ".join(_values(identity(job)))
                if (problem := future.exception()) is not None:
                    failed.append(problem)
                    print(f"{done}/{len(missing)} {name} FAILED: {problem!r}", flush=True)
                    continue
                append_record(file_of(job), future.result() | {"record": record}, fields)
                if done % every == 0 or done == len(missing):
                    print(f"{done}/{len(missing)} {name} after {time.perf_counter() - started:.0f} s", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("Stopped; the same command resumes from here.", file=sys.stderr)
            raise
    if failed:
        raise failed[0]


def run_into_section(
    name: str,
    jobs: Sequence[Job],
    work: Callable[[Job], dict[str, Any]],
    table: Callable[[Sequence[dict[str, Any]]], str],
    *,
    results: Path,
    document: Path,
    processes: int,
    record: dict[str, Any],
    every: int,
) -> None:
    """Do the jobs that are missing in a file, then print the table of all its runs and put it into a document.

    Args:
        name: Of the section, see `replace_section`.
        jobs: Dataclasses; a run is known by its job.
        work: See `run_jobs`.
        table: Makes the table of runs.
        results: The file.
        document: The document.
        processes: See `run_jobs`.
        record: See `run_jobs`.
        every: See `run_jobs`.
    """
    run_jobs(
        jobs,
        lambda job: results,
        lambda job: {"job": asdict(job)},  # type: ignore[call-overload]
        work,
        processes=processes,
        record=record,
        every=every,
    )
    text = table(read_records(results, ["job"]))
    print(text)
    replace_section(document, name, text)


def _values(identity: Mapping[str, Any]) -> Iterator[str]:
    """What a job is called in a line of progress: the values of its identity."""
    for value in identity.values():
        if isinstance(value, Mapping):
            yield from _values(value)
        else:
            yield str(value)


def _leave_with_parent() -> None:
    """End this process when its parent is gone: a killed benchmark must not leave workers that wait for ever."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class SeedJob:
    """One seed of a benchmark that does everything for one seed at a time."""

    seed: int


def run_seeds(
    argv: Sequence[str],
    name: str,
    description: str,
    seeds: int,
    work: Callable[[SeedJob], dict[str, Any]],
    prepare: Callable[[], Any],
) -> tuple[list[dict[str, Any]], Path]:
    """The command line of a benchmark over seeds: runs what is missing.

    Args:
        argv: Its arguments.
        name: Its name, and that of the file of raw results.
        description: For ``--help``.
        seeds: Default number of seeds.
        work: Does one seed; a module-level function.
        prepare: Called once before processes start, to fill caches.

    Returns:
        The results of all seeds, and the document that takes the table.
    """
    parser = argparse.ArgumentParser(prog=f"seqopt bench {name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds, help=f"random data sets (default {seeds})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results") / f"{name}{ENDING}",
        help=f"file of the raw results, a JSON object a line (default results/{name}{ENDING})",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="seeds at a time (default 2)")
    options = parser.parse_args(list(argv))
    record = header(argv, name)
    print(f"seeds: 0 to {options.seeds - 1}", flush=True)
    prepare()
    run_jobs(
        [SeedJob(seed) for seed in range(options.seeds)],
        lambda job: options.results,
        asdict,
        work,
        processes=options.jobs,
        record=record,
    )
    runs = read_records(options.results, ["seed"])
    return sorted(runs, key=lambda run: int(run["seed"])), options.document


def replace_section(document: Path, name: str, text: str) -> None:
    """Put ``text`` between the markers of section ``name`` in a Markdown document, which is made if need be."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    old = document.read_text(encoding="utf-8") if document.exists() else ""
    block = f"{begin}\n{text.strip()}\n{end}"
    if begin in old and end in old:
        before, rest = old.split(begin, 1)
        new = before + block + rest.split(end, 1)[1]
    else:
        new = old.rstrip("\n") + ("\n\n" if old else "") + block + "\n"
    document.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(document, new)


def with_error(numbers: npt.ArrayLike, digits: int = 3) -> str:
    """Mean and one standard error of it; a single number has none.

    Example:
        >>> with_error([1.0, 2.0, 3.0], 2), with_error([1.0], 2)
        ('2.00 ± 0.58', '1.00')
    """
    values = np.asarray(numbers, dtype=np.float64)
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"
