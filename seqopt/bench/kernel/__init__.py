"""Speed and memory of the sub-sequence kernel: ``seqopt bench kernel``.

`sections` holds what is measured, `timing` how, `yardstick` the hand-vectorised C++ loop that the `cpu` engine is
measured against, `gauche` the published implementation, `memory` the peak memory of a process of its own, `report` the
tables and plots, and `command` the command.
"""

from seqopt.bench.kernel.command import main

__all__ = ["main"]
