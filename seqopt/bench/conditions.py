"""The lines below tables that say what measured them: commands, machines and versions of packages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqopt.bench.runner import PLACES, machine_line

LEFT_OUT = ("--seeds", "--first-seed", "--jobs", *PLACES)
"""Options that say how many runs there are, which tables do, how many go on at a time, and where results go."""

MERGED = ("--methods", "--tasks", "--parts", "--sections")
"""Options with lists: two commands that differ in one of them only are one command with both lists."""

Options = dict[str, tuple[str, ...]]


def measured_by(records: Iterable[Mapping[str, Any]], packages: Sequence[str] | None = None) -> str:
    """Commands, machines and versions of stored runs, each as often as they differ.

    Args:
        records: As `seqopt.bench.runner.header` makes them, one of each run.
        packages: Those whose versions matter. Default: all.

    Example:
        >>> machine = {"processor": "Xeon", "cores": 2, "platform": "Linux"}
        >>> commands = ["seqopt bench boss --methods a --seeds 2", "seqopt bench boss --methods b a --seeds 5 --jobs 1"]
        >>> measured_by({"command": one, "machine": machine, "versions": {"seqopt": "1.0"}} for one in commands)
        'Measured by `seqopt bench boss --methods a b` on Xeon, 2 cores, Linux; seqopt 1.0.'
    """
    found: dict[str, dict[str, list[str]]] = {}
    for record in records:
        known = record["versions"]
        versions = ", ".join(f"{name} {known[name]}" for name in (known if packages is None else packages))
        commands = found.setdefault(versions, {}).setdefault(machine_line(record["machine"]), [])
        if record["command"] not in commands:
            commands.append(record["command"])
    return " ".join(
        "Measured by "
        + "; by ".join(f"{_listed(shortened(commands))} on {machine}" for machine, commands in by_machine.items())
        + f"; {versions}."
        for versions, by_machine in found.items()
    )


def shortened(commands: Iterable[str]) -> list[str]:
    """Commands that do the same runs as these, without how many and how fast.

    Example:
        >>> shortened(["do --tasks a --methods x --seeds 3", "do --methods y --tasks a", "do --tasks b --methods y x"])
        ['do --tasks a b --methods x y']
    """
    split = [_split(command) for command in commands]
    for name in MERGED:
        merged: dict[tuple[Any, ...], tuple[tuple[str, ...], Options]] = {}
        for words, options in split:
            # An option that is not there is not the same as any list: it stands for all there are.
            rest = frozenset((one, frozenset(values)) for one, values in options.items() if one != name)
            _, both = merged.setdefault((words, rest, name in options), (words, options))
            if name in options:
                both[name] = tuple(dict.fromkeys([*both[name], *options[name]]))
        split = list(merged.values())
    return list(dict.fromkeys(_joined(words, options) for words, options in split))


def _listed(commands: Sequence[str]) -> str:
    return " and ".join(f"`{command}`" for command in commands)


def _split(command: str) -> tuple[tuple[str, ...], Options]:
    """The words before the first option, and the options with what follows each."""
    words: list[str] = []
    options: dict[str, list[str]] = {}
    last = words
    for word in shlex.split(command):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            last = options.setdefault(name, [])
            if equals:
                last.append(value)
        else:
            last.append(word)
    return tuple(words), {name: tuple(values) for name, values in options.items() if name not in LEFT_OUT}


def _joined(words: Sequence[str], options: Mapping[str, Sequence[str]]) -> str:
    return " ".join([*words, *(word for name, values in options.items() for word in (name, *values))])
