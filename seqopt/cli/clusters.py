"""The option ``--scheduler``: a search by the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rich.markup import escape

from seqopt.cli.running import console
from seqopt.errors import InputError


def check_scheduler(scheduler: str | None, acquisition: str, strategy: str) -> None:
    """Refuse what a cluster cannot do, before anything is read or started.

    Raises:
        InputError: As said.
    """
    if scheduler is None:
        return
    from seqopt.acquisition import resolve_acquisition
    from seqopt.scorers.spread import check_spread_acquisition

    if strategy not in ("model", "lfbo", "bore"):
        raise InputError(
            f"--scheduler goes with --strategy model, lfbo or bore: {strategy} looks at all in one process"
        )
    if strategy == "model" and acquisition.strip().lower() != "random":
        check_spread_acquisition(resolve_acquisition(acquisition))


def on_disk_for(scheduler: str, wanted: bool | None) -> bool:
    """A cluster searches pools on disk.

    Raises:
        InputError: If the pool is to be in memory.
    """
    if wanted is False:
        raise InputError(f"--scheduler {scheduler} searches pools on disk: leave --in-memory out")
    return True


@contextlib.contextmanager
def connected_to(scheduler: str | None) -> Iterator[Any]:
    """The client of a scheduler, with a line on the cluster; `None` where there is none.

    Raises:
        ClusterError: If it does not answer.
    """
    if scheduler is None:
        yield None
        return
    with console.status(f"connecting to {escape(scheduler)}"):
        from seqopt.distributed import connected
    with connected(scheduler) as client:
        assert client is not None
        threads = client.nthreads()
        console.print(
            f"cluster {escape(scheduler)}: {len(threads)} workers, {sum(threads.values())} threads"
            + (f"; dashboard {escape(client.dashboard_link)}" if client.dashboard_link else "")
        )
        yield client
