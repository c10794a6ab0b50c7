"""Seconds and peak memory of one asked string, with known values on a space of strings.

Strings have 30 letters out of 20, or ``--length`` many; values are counts of a pattern with gaps, with noise, or with
``--half`` depend on the first half of a string alone, which the sub-sequence kernel learns: it is then among the draws
that score what a search looks at, which takes longer. Each measurement is a process of its own, which tells 300 values,
or ``--known`` many, and asks for one string: the model is fitted, and the default inner search finds the largest
acquisition value. With ``--asks`` several are asked for, one after the other, and times are means: a model draws its
parameters anew for the first, and later only at times. With ``--protein`` the letters are amino acids, which the
default compares as such, and with ``--dna`` there are four. With ``--against`` another checkout of the package takes
turns with this one, round by round, so that both meet the same load of the machine. The file runs by itself with either
of them, and uses public names only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SURROGATES = ("auto", "ssk", "ssk-bayes", "ngrams", "one-hot")
"""Those that strings of one length over any alphabet have."""

LETTERS, LENGTH, KNOWN = "ACDEFGHIKLMNPQRSTVWY", 30, 300
MEASURES = {"seconds": "s", "processor": "s of the processor", "memory": "MB more at the peak"}


KINDS = {"text": LETTERS, "protein": LETTERS, "dna": "ACGT"}
"""The letters of each kind of string."""


def values_of(strings: Sequence[str], noise: Any, half: bool = False) -> list[float]:
    """How often an A is followed by a C within three letters, with noise of standard deviation 0.3; or, of the
    ``half`` that comes first, ten times the share of the As less that of the Cs in the string, with noise of 0.1.
    """
    if half:
        firsts = [string[: len(string) // 2] for string in strings]
        shares = [10.0 * (own.count("A") - own.count("C")) / len(s) for own, s in zip(firsts, strings, strict=True)]
        return [share + 0.1 * float(draw) for share, draw in zip(shares, noise, strict=True)]
    counts = [
        sum(letter == "A" and "C" in string[entry + 1 : entry + 4] for entry, letter in enumerate(string))
        for string in strings
    ]
    return [count + 0.3 * float(draw) for count, draw in zip(counts, noise, strict=True)]


def measure(
    surrogate: str,
    known: int,
    seed: int,
    length: int = LENGTH,
    asks: int = 1,
    kind: str = "text",
    half: bool = False,
) -> dict[str, float]:
    """An asked string in this process: wall-clock and processor seconds, and by how many MB the peak memory rose.

    Args:
        surrogate: By name.
        known: Values that are told before.
        seed: Of the strings, their values and the search.
        length: Letters of a string.
        asks: Strings that are asked for in a row, and told; seconds are means.
        kind: One of `KINDS`.
        half: Which values strings have, see `values_of`.
    """
    import resource

    import numpy as np

    from seqopt import Optimizer
    from seqopt.spaces import StringSpace

    def asked(n: int, seed: int, asks: int) -> dict[str, float]:
        space = StringSpace(KINDS[kind], length, kind=kind)
        rng = np.random.default_rng(seed)
        strings = space.sample(n, rng)
        optimizer = Optimizer(space, surrogate=surrogate, initial=n, seed=seed)
        optimizer.tell(strings, values_of(strings, rng.standard_normal(n), half))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started, processor = time.perf_counter(), time.process_time()
        for _ in range(asks):
            found = optimizer.ask(1)
            optimizer.tell(found, values_of(found, rng.standard_normal(1), half))
        return {
            "seconds": (time.perf_counter() - started) / asks,
            "processor": (time.process_time() - processor) / asks,
            # Kilobytes, but bytes on macOS.
            "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
            / (1e6 if sys.platform == "darwin" else 1e3),
        }

    asked(10, seed + 1, 1)  # compiles and loads what every later ask has
    return asked(known, seed, asks)


def _in_process(checkout: str | None, surrogate: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    environment = dict(os.environ) if checkout is None else os.environ | {"PYTHONPATH": checkout}
    numbers = {"--known": options.known, "--seed": seed, "--length": options.length, "--asks": options.asks}
    command = [
        sys.executable,
        __file__,
        "--child",
        surrogate,
        *(str(word) for pair in numbers.items() for word in pair),
        *(f"--{name}" for name in ("protein", "dna", "half") if getattr(options, name)),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{surrogate} with {checkout or 'this checkout'} failed:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Medians, and where there are two versions, ratios of theirs: this one's divided by the other's.

    Args:
        runs: With surrogate, version (``"this"`` or ``"other"``), and the measures.
    """
    lines = ["| surrogate | measure | other | this | ratio |", "|---|---|---|---|---|"]
    for surrogate in dict.fromkeys(run["surrogate"] for run in runs):
        for name, unit in MEASURES.items():
            medians = {
                version: statistics.median(found)
                for version in ("other", "this")
                if (found := [run[name] for run in runs if (run["surrogate"], run["version"]) == (surrogate, version)])
            }
            cells = [f"{medians[version]:.3g}" if version in medians else "" for version in ("other", "this")]
            both = len(medians) == 2 and medians["other"] > 0
            ratio = f"{medians['this'] / medians['other']:.2f}" if both else ""
            lines.append(f"| {surrogate} | {unit} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(prog="seqopt bench ask", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--surrogates", nargs="+", choices=SURROGATES, default=list(SURROGATES), help="default: all")
    parser.add_argument("--against", metavar="PATH", help="another checkout of the package, measured in turns")
    parser.add_argument("--known", type=int, default=KNOWN, help=f"values that are known (default {KNOWN})")
    parser.add_argument("--length", type=int, default=LENGTH, help=f"letters of a string (default {LENGTH})")
    parser.add_argument("--asks", type=int, default=1, help="strings asked for, one after the other (default 1)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--protein", action="store_true", help="letters are amino acids")
    kinds.add_argument("--dna", action="store_true", help="there are four letters, those of DNA")
    parser.add_argument("--half", action="store_true", help="values depend on the first half of a string alone")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round (default 0)")
    parser.add_argument("--out", type=Path, help="write the raw measurements here, as JSON")
    parser.add_argument("--child", choices=SURROGATES, help=argparse.SUPPRESS)
    options = parser.parse_args(list(argv))
    if options.child is not None:
        kind = "protein" if options.protein else "dna" if options.dna else "text"
        found = measure(
            options.child, options.known, options.seed, options.length, options.asks, kind, half=options.half
        )
        print(json.dumps(found))
        return
    import seqopt

    here = str(Path(seqopt.__file__).parents[1])
    versions = {"this": here} | ({} if options.against is None else {"other": str(Path(options.against).resolve())})
    runs: list[dict[str, Any]] = []
    for number in range(options.repeats):
        for surrogate in options.surrogates:
            # Who begins alternates, too.
            for version in sorted(versions, reverse=number % 2 == 0):
                seed = options.seed + number
                found = _in_process(versions[version], surrogate, seed, options)
                runs.append({"surrogate": surrogate, "version": version, "round": number, **found})
                numbers = ", ".join(f"{found[name]:.3g} {unit}" for name, unit in MEASURES.items())
                print(f"round {number + 1}, {surrogate}, {version}: {numbers}", flush=True)
    print(table(runs))
    if options.out is not None:
        options.out.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    # The modules next to this file must not be found instead of packages of the same names.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    main(sys.argv[1:])
