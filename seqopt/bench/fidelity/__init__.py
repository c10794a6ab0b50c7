"""Is a cheap measurement worth its cost? ``seqopt bench fidelity``.

`tasks` holds what is searched and what is cheap, `methods` what is compared, `runs` does one run, `measures` says what
it is judged by, `command` is the command and writes the tables.
"""

from seqopt.bench.fidelity.command import main

__all__ = ["main"]
