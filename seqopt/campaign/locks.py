"""One run at a time: the lock of those who evaluate a campaign's suggestions by themselves.

SQLite keeps commands apart; this keeps two runs from evaluating the same suggestion. The lock is a file next to the
campaign, ``NAME-run``, held by its process and dropped by the system when that ends, however it ends. A child that
outlives its parent does not hold it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path
from types import TracebackType

from seqopt.campaign.errors import CampaignError

ENDING = "-run"
"""Added to the name of a campaign for that of its lock."""

_held: set[str] = set()
"""Locks of this process, which the system would grant a second time."""

_taking = threading.Lock()
"""Held by the thread that looks into `_held` and takes a lock."""


class RunLock:
    """Held by the one who runs a campaign, from its making until `release`.

    Args:
        campaign: The file of the campaign; it need not be there yet, but its folder must.

    Raises:
        CampaignError: If another one holds it, in this process or in another.
        OSError: If the lock cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with RunLock(Path(folder, "a.seqopt")):
        ...         sorted(os.listdir(folder))
        ...     sorted(os.listdir(folder))
        ['a.seqopt-run']
        []
    """

    def __init__(self, campaign: Path) -> None:
        real = campaign.resolve()
        self._path = real.with_name(real.name + ENDING)
        refused = CampaignError(f"another process is running {campaign}: wait for it, or stop it")
        with _taking:
            if str(self._path) in _held:
                raise refused
            descriptor = _locked(self._path)
            if descriptor is None:
                raise refused
            self._descriptor: int | None = descriptor
            _held.add(str(self._path))

    def release(self) -> None:
        """Let others run the campaign; releasing again does nothing."""
        if self._descriptor is None:
            return
        # Removed while it is held: who has opened it meanwhile sees that it is gone, and opens anew. One that stays is
        # taken by the next.
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None
        _held.discard(str(self._path))

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def _locked(path: Path) -> int | None:
    """A descriptor of the locked file at ``path``, or `None` if another process has locked it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _lock(descriptor):
                os.close(descriptor)
                return None
            if os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows has no advisory locks of this kind
        return True
    try:
        # A record lock belongs to the process; that of flock would pass to forked workers and outlive it there.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network file systems know no locks; the run is as safe there as its user is careful.
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True
