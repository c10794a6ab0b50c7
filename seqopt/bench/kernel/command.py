"""The command ``seqopt bench kernel``."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqopt.bench.kernel import gauche
from seqopt.bench.kernel.report import Sections, goals, table_of, write_document
from seqopt.bench.kernel.sections import SECTIONS
from seqopt.bench.kernel.settings import Settings
from seqopt.bench.kernel.timing import load_average
from seqopt.bench.runner import header
from seqopt.utils.files import write_atomically

DESCRIPTION = """Speed and memory of the sub-sequence kernel, a hand-vectorised C++ loop and GAUCHE.

Sections that were measured before with the same settings, versions and machine are kept."""


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is missing, print the tables, and write them; see ``--help``."""
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="seqopt bench kernel", description=DESCRIPTION)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="default: all")
    parser.add_argument("--fresh", action="store_true", help="measure finished sections again")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to try the command; writes no files by itself"
    )
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=list(defaults.threads),
        help="thread counts besides the hand-vectorised loop; elsewhere the largest (default: 1 and all cores)",
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="choice of strings (default 0)")
    parser.add_argument("--out", type=Path, help="everything raw, as JSON (default results/kernel.json)")
    parser.add_argument("--document", type=Path, help="where the tables go (default docs/performance.md)")
    options = parser.parse_args(argv)
    if min(options.threads) < 1:
        parser.error("--threads must be at least 1")
    settings = Settings(threads=tuple(sorted(set(options.threads))), seed=options.seed)
    if options.quick:
        settings = settings.quick()
    else:
        options.out = options.out or Path("results/kernel.json")
        options.document = options.document or Path("docs/performance.md")
    record = _record(list(argv or []))
    sections = run(options.sections, settings, record, options.out, fresh=options.fresh)
    goals(sections).print()
    if options.document is not None:
        write_document(options.document, sections)


def run(
    names: Sequence[str], settings: Settings, record: dict[str, Any], out: Path | None, *, fresh: bool = False
) -> Sections:
    """Measure the sections that are missing, writing the file after each.

    Args:
        names: Of sections.
        settings: What they measure.
        record: Command, versions and machine, stored with each section.
        out: JSON file, or `None` to keep nothing.
        fresh: Measure finished sections again. A section is finished if it is in the file with the same settings,
            versions and machine, and nothing was unavailable. One of which nothing can be measured here stays as it is.

    Returns:
        All sections of the file, in the order of `SECTIONS`.
    """
    sections = _read(out)
    for name in SECTIONS:
        if name not in names:
            continue
        if not fresh and _finished(sections.get(name), settings, record):
            print(f"{name}: kept as it is in {out}; --fresh measures it again", flush=True)
        else:
            print(f"{name}: measuring", flush=True)
            before, started = load_average(), time.perf_counter()
            result = SECTIONS[name](settings)
            if "unavailable" in result and not result["rows"] and sections.get(name, {}).get("rows"):
                # What needs a GPU, say, was measured on another machine.
                print(f"{name}: kept as it is in {out}; {result['unavailable']}", flush=True)
                continue
            sections[name] = {
                "record": record,
                "settings": settings.to_json(),
                "measured_at": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
                "took_seconds": round(time.perf_counter() - started, 1),
                "load_average": [before, load_average()],
                **result,
            }
            _write(out, sections)
        if (table := table_of(name, sections[name])) is not None:
            table.print()
        if "unavailable" in sections[name]:
            print(f"{name}: {sections[name]['unavailable']}", flush=True)
    return {name: sections[name] for name in SECTIONS if name in sections}


def _finished(section: dict[str, Any] | None, settings: Settings, record: dict[str, Any]) -> bool:
    return (
        section is not None
        and "unavailable" not in section
        and section["settings"] == settings.to_json()
        and all(section["record"][key] == record[key] for key in ("versions", "machine"))
    )


def _record(argv: Sequence[str]) -> dict[str, Any]:
    import torch

    record = header(argv, "kernel")
    record["threads"] = torch.get_num_threads()
    if (version := gauche.installed()) is not None:
        record["versions"]["gauche"] = version
    return record


def _read(out: Path | None) -> Sections:
    """The sections in the file; none if it is not there, or of an earlier form."""
    if out is None or not out.exists():
        return {}
    stored = json.loads(out.read_text(encoding="utf-8"))
    return dict(stored.get("sections", {}))


def _write(out: Path | None, sections: Sections) -> None:
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    ordered = {name: sections[name] for name in SECTIONS if name in sections}
    write_atomically(out, json.dumps({"sections": ordered}, indent=1) + "\n")
