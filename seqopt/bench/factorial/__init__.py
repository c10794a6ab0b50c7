"""What matters in a search of strings, one factor at a time: ``seqopt bench factorial``.

`design` holds factors, tasks and which cells a seed runs, `effects` turns runs into differences, `command` is the
command and writes the tables.
"""

from seqopt.bench.factorial.command import main

__all__ = ["main"]
