"""Connections to a Dask scheduler: made from an address, checked, and made again when the scheduler comes back."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from seqopt.distributed.errors import ClusterError
from seqopt.distributed.tasks import differing, versions
from seqopt.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

TIMEOUT = 20.0
"""Seconds in which a scheduler has to answer."""

LOCAL = re.compile(r"local(?::(\d+))?")


def connect(scheduler: str, *, timeout: float = TIMEOUT) -> Client:
    """A client of a scheduler.

    Args:
        scheduler: Its address, such as ``"tcp://host:8786"``; a file that it has written (``dask scheduler
            --scheduler-file``); or ``"local:4"`` for a cluster of four processes of one thread on this machine, which
            ends with the client (``"local"``: one for each core).
        timeout: Seconds in which it has to answer.

    Raises:
        InputError: If Dask is missing, or ``scheduler`` is no address.
        ClusterError: If nothing answers there, or it has no workers; it names the address.
    """
    distributed = _dask()
    local = LOCAL.fullmatch(scheduler.strip())
    if local is not None:
        return _local(distributed, None if local[1] is None else int(local[1]))
    is_file = scheduler.endswith(".json")
    if not is_file and not re.fullmatch(r"(\w+://)?\S+:\d+", scheduler):
        raise InputError(
            f"{scheduler!r} is no address of a scheduler: write tcp://host:8786, the .json file that dask scheduler "
            "--scheduler-file writes, or local:4 for four processes on this machine"
        )
    given: dict[str, Any] = {"scheduler_file": scheduler} if is_file else {"address": scheduler}
    try:
        client: Client = distributed.Client(**given, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"the scheduler at {scheduler} did not answer within {timeout:g} s ({_first_line(error)}): check that it "
            "runs, and that this machine reaches it (dask scheduler prints its address)"
        ) from error
    try:
        wait_for_workers(client, timeout)
    except ClusterError:
        client.close()
        raise
    return client


@contextlib.contextmanager
def connected(scheduler: str | None, *, timeout: float = TIMEOUT) -> Iterator[Client | None]:
    """The client of a scheduler while the block runs; `None` where none is given.

    Args:
        scheduler: See `connect`.
        timeout: Likewise.
    """
    if scheduler is None:
        yield None
        return
    client = connect(scheduler, timeout=timeout)
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            cluster = getattr(client, "cluster", None)
            client.close()
            if cluster is not None:
                cluster.close()


def wait_for_workers(client: Client, timeout: float = TIMEOUT) -> None:
    """Wait until there is a worker.

    Raises:
        ClusterError: If there is none in time.
    """
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        address = address_of(client)
        raise ClusterError(
            f"the scheduler at {address} has no workers: start some (dask worker {address}), or wait for those that "
            "are queued"
        ) from error


def address_of(client: Client) -> str:
    """Of the scheduler of a client."""
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", None) or "an address that is not known any more")


def check_versions(client: Client) -> None:
    """Refuse workers whose versions differ from those of this process.

    Raises:
        ClusterError: It names the worker, and what differs.
    """
    ours = versions()
    for worker, theirs in roll_call(client, versions, timeout=TIMEOUT).items():
        if isinstance(theirs, ModuleNotFoundError):
            raise ClusterError(
                f"the worker {worker} has no {theirs.name}: install seqopt[dask] there, in the version {ours['seqopt']}"
            )
        if isinstance(theirs, BaseException):
            # One that has just died is no reason not to work with the others.
            logger.warning("the worker %s did not say its versions (%s)", worker, _first_line(theirs))
            continue
        if other := differing(theirs, ours):
            raise ClusterError(
                f"the worker {worker} has {other}: install the same versions everywhere (one container image, or one "
                "environment)"
            )


def roll_call(client: Client, function: Callable[..., Any], *arguments: Any, timeout: float) -> dict[str, Any]:
    """What a function returns on each worker; nothing where one of them does not answer in time.

    Args:
        client: Of the cluster.
        function: Called on each worker.
        arguments: Of it.
        timeout: Seconds.
    """
    found: dict[str, Any] = {}

    def ask() -> None:
        with contextlib.suppress(Exception):
            found.update(client.run(function, *arguments, on_error="return"))

    # Dask waits for all of them, and one may hang.
    asking = threading.Thread(target=ask, name="seqopt-roll-call", daemon=True)
    asking.start()
    asking.join(timeout)
    return {} if asking.is_alive() else found


def reconnected(client: Client, address: str, patience: float) -> Client:
    """A client that works: this one, once it has found its scheduler again, or another one.

    Args:
        client: The one that has lost its scheduler.
        address: Of the scheduler.
        patience: Seconds to wait for it.

    Raises:
        ClusterError: If nothing answers there in time.
    """
    distributed = _dask()
    until = time.monotonic() + patience
    logger.warning("the scheduler at %s is gone: waiting for it for up to %.0f s", address, patience)
    while True:
        if client.status == "running":
            with contextlib.suppress(Exception):
                client.scheduler_info()
                wait_for_workers(client, max(1.0, until - time.monotonic()))
                return client
        elif client.status == "closed":
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                left = max(1.0, min(5.0, until - time.monotonic()))
                client = distributed.Client(address, timeout=left, set_as_default=False)
                continue
        if time.monotonic() > until:
            raise ClusterError(
                f"the scheduler at {address} has not come back within {patience:g} s. Nothing that was measured is "
                "lost: start it again, and ask again"
            )
        time.sleep(0.2)


def _local(distributed: Any, workers: int | None) -> Client:
    if workers == 0:
        raise InputError("local:0 is a cluster without workers: give at least one, such as local:2")
    from seqopt.utils.workers import usable_cores

    cluster = distributed.LocalCluster(
        n_workers=usable_cores() if workers is None else workers,
        threads_per_worker=1,
        processes=True,
        # Any free port.
        dashboard_address=":0",
    )
    client: Client = distributed.Client(cluster, set_as_default=False)
    return client


def _dask() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InputError('a scheduler needs Dask: pip install "seqopt[dask]"') from error
    return distributed


def _first_line(error: BaseException) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__)[:200]
