"""The best candidates of all shards, by the workers of a Dask cluster.

Each worker is given a few shards at a time, those first of which it has a copy. Of what comes back only the best are
kept, and shards that are asked later are told what a candidate has to reach: this process holds as many numbers as
candidates were asked for, however large the pool is. What a worker says depends on nothing but what it was sent, so
that a shard whose worker was lost, or is slow, is asked for again elsewhere.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.datasets.named import DATASETS
from seqopt.datasets.pool_store import PoolStore, prepare_pool
from seqopt.distributed.connection import TIMEOUT, address_of, check_versions, reconnected, roll_call, wait_for_workers
from seqopt.distributed.errors import ClusterError, DamagedShardError, MissingShardError
from seqopt.distributed.shards import PoolFacts, ShardRef, held_shards, receive_shard
from seqopt.distributed.tasks import Request, merged, score_shard, versions
from seqopt.errors import InputError, SeqoptError
from seqopt.spaces import StoredPool
from seqopt.spaces.spread import Places, Ranks, Scores, ShardScore
from seqopt.utils.array_files import DamagedFileError, read_arrays
from seqopt.utils.progress import doing, telling

if TYPE_CHECKING:
    from distributed import Client, Future

logger = logging.getLogger(__name__)

AHEAD = 2
"""Shards that a worker is given at a time, for each of its threads."""

RETRIES = 8
"""Times that a shard is asked for again after its worker was lost."""

PATIENCE = 60.0
"""Seconds for which a scheduler that is gone is waited for."""

SLOW = 4.0
"""A shard that takes so many times as long as the slowest of the others is asked for elsewhere, too."""

LEAST_SLOW = 20.0
"""But not before so many seconds."""

POLL = 0.5
"""Seconds for which an answer is waited for before others are looked after."""

AROUND = 2.0
"""Seconds after which it is looked again who is there."""

ROLL_CALL = 5.0
"""Seconds in which workers say which shards they have: who does not is given any."""


def spread_pool(
    pool: StoredPool | PoolStore, client: Client, *, patience: float = PATIENCE, timeout: float = TIMEOUT
) -> StoredPool:
    """The same pool, searched by the workers of a Dask cluster.

    Batches are those that one machine chooses. Works for `seqopt.strategies.ModelBased` with a Gaussian process and the
    acquisition functions gibbon, mes, logei, ucb and mean, with or without a prefilter, and for
    `seqopt.strategies.LFBO` and `seqopt.strategies.BORE`; others are refused.

    Args:
        pool: A prepared pool (`seqopt.datasets.prepare_pool`): it is changed, and returned.
        client: A client of the cluster. Workers need the same versions of seqopt, Python and RDKit.
        patience: Seconds for which a scheduler that is gone is waited for.
        timeout: Seconds in which there has to be a worker.

    Raises:
        InputError: For what is no prepared pool.
        ClusterError: If there are no workers, or their versions differ; it names them.
    """
    if isinstance(pool, PoolStore):
        pool = StoredPool(pool)
    if not isinstance(pool, StoredPool):
        raise InputError(
            "only a pool on disk is searched by a cluster: prepare it (seqopt.datasets.prepare_pool, or --on-disk)"
        )
    wait_for_workers(client, timeout)
    check_versions(client)
    pool.spread = DaskSpread(pool, client, patience=patience)
    return pool


def prepare_by(client: Client, source: Any, **options: Any) -> PoolStore:
    """A pool prepared by the workers of a cluster: `seqopt.datasets.prepare_pool`, whose shards they make.

    This machine reads the files and keeps the store; a shard's rows are sent to a worker, and come back judged, with
    fingerprints: some 220 bytes a candidate. The store is the one that this machine would make alone.

    Args:
        client: Of the cluster.
        source: See `seqopt.datasets.prepare_pool`.
        **options: Likewise.

    Raises:
        InputError: As `seqopt.datasets.prepare_pool`.
        ClusterError: If there are no workers, or their versions differ; it names them.
    """
    wait_for_workers(client, TIMEOUT)
    check_versions(client)
    threads = sum(client.nthreads().values())
    return prepare_pool(source, **{"workers": threads, "executor": client.get_executor(pure=False), **options})


def for_client(space: Any, client: Client, executor: Executor | None, objective: object) -> tuple[Any, Executor]:
    """What a search by the workers of a cluster is made of: files of candidates as a prepared pool, and an executor.

    Args:
        space: Where is searched.
        client: Of the cluster.
        executor: Evaluates, if it is given.
        objective: What is evaluated.

    Raises:
        InputError: If values are read from the file of candidates: they are read into memory.
    """
    if isinstance(space, str | os.PathLike) and str(space) not in DATASETS:
        if isinstance(objective, str) and objective.strip().startswith("column:"):
            raise InputError(
                "columns of values are read into memory, and need no cluster: leave the client (--scheduler) out"
            )
        space = prepare_by(client, space)
    return space, client.get_executor(pure=False) if executor is None else executor


class DaskSpread:
    """Implements `seqopt.spaces.spread.Spread`: made by `spread_pool`.

    Args:
        pool: The pool.
        client: Of the cluster.
        patience: Seconds for which a scheduler that is gone is waited for.
    """

    def __init__(self, pool: StoredPool, client: Client, *, patience: float = PATIENCE) -> None:
        self.client = client
        self.address = address_of(client)
        self.patience = patience
        self.shards = _refs(pool.store)
        self.files = pool.store.files
        self.facts = PoolFacts(pool.store.folder.name, pool.store.facts, pool.encoder.tokenizer)
        self._versions = versions()

    def __reduce__(self) -> Any:
        # A copy of the pool in another process has no client there, and is searched in that process.
        return type(None), ()

    def best(
        self, score: ShardScore, count: int, left_out: Places, *, ranks: Ranks | None = None, what: str = "scoring"
    ) -> tuple[Places, Scores]:
        """See `seqopt.spaces.spread.Spread`.

        Raises:
            ClusterError: If the scheduler does not come back, workers keep dying over one shard, or one is damaged.
        """
        from distributed.protocol.pickle import dumps

        request = Request(score, self.facts, count, ranks, self._versions)
        payload: bytes = dumps(request)
        return _Pass(self, score.name, payload, count, ranks, np.sort(left_out), what).run()

    def shard_file(self, shard: ShardRef) -> bytes:
        """The file of a shard, which is whole.

        Raises:
            DamagedShardError: If it is not.
        """
        path = Path(shard.path)
        try:
            read_arrays(path)
            return path.read_bytes()
        except (OSError, DamagedFileError) as error:
            raise DamagedShardError(
                f"{error}: it holds candidates of {_listed(self.files)}. Give the same command again: damaged parts of "
                "a prepared pool are made again when it is opened. Nothing that was measured is lost"
            ) from error


@dataclass
class _Asked:
    """A shard that a worker was asked for.

    Attributes:
        shard: Its number.
        worker: Who was asked.
        since: When.
    """

    shard: int
    worker: str
    since: float = field(default_factory=time.monotonic)


class _Pass:
    """One look at all shards.

    Args:
        spread: Whose shards.
        name: What is done, in a word.
        payload: The pickled request.
        count: How many candidates are wanted.
        ranks: Order equal scores.
        left_out: Places that are not wanted, ascending.
        what: What is done, in words.
    """

    def __init__(
        self,
        spread: DaskSpread,
        name: str,
        payload: bytes,
        count: int,
        ranks: Ranks | None,
        left_out: Places,
        what: str,
    ) -> None:
        self.spread = spread
        self.name = name
        self.payload = payload
        self.count = count
        self.ranks = ranks
        self.left_out = left_out
        self.what = what
        self.digest = hashlib.sha256(payload).hexdigest()[:12]
        self.places: Places = np.empty(0, dtype=np.int64)
        self.scores: Scores = np.empty(0)
        # A shard whose rows are all duplicates, or pass no filter, has nothing to score.
        self.left = {shard.number for shard in spread.shards if shard.count}
        self.attempts: dict[int, int] = {}
        self.sent: set[tuple[int, str]] = set()
        self.asked: dict[Future[Any], _Asked] = {}
        self.finished: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self.waiting: dict[str, deque[int]] = {}
        self.threads: dict[str, int] = {}
        self.carried: Future[Any] | None = None
        self.longest = 0.0
        self.looked = 0.0
        self.number = 0

    def run(self) -> tuple[Places, Scores]:
        """All of it."""
        total, shards = sum(shard.count for shard in self.spread.shards), len(self.left)
        words = f"{self.what} {total:,} candidates on {{workers}} workers"
        try:
            with doing(words.format(workers=len(self._look_around(first=True)))):
                while self.left:
                    self._submit()
                    self._collect()
                    telling(bar(self.what, shards - len(self.left), shards))
        finally:
            for future in self.asked:
                _cancelled(future)
        return self.places, self.scores

    def _submit(self) -> None:
        """Give every worker what it can be given now."""
        if self.carried is None:
            self.number += 1
            key = f"seqopt-model-{self.digest}-{self.number}"
            self.carried = self.spread.client.submit(_carried, self.payload, key=key, pure=False)
        busy: dict[str, int] = {}
        for one in self.asked.values():
            busy[one.worker] = busy.get(one.worker, 0) + 1
        for worker, threads in self.threads.items():
            while busy.get(worker, 0) < AHEAD * threads:
                shard = self._next(worker)
                if shard is None:
                    break
                self._ask(shard, worker)
                busy[worker] = busy.get(worker, 0) + 1

    def _next(self, worker: str) -> int | None:
        """A shard for a worker: one of its own, or of whoever has most left, or one that takes long elsewhere."""
        own = self.waiting.get(worker)
        if own:
            return own.popleft()
        most = max(self.waiting.values(), key=len, default=None)
        if most:
            return most.pop()
        now, patience = time.monotonic(), max(LEAST_SLOW, SLOW * self.longest)
        asked: dict[int, list[_Asked]] = {}
        for one in self.asked.values():
            asked.setdefault(one.shard, []).append(one)
        for number, ones in asked.items():
            if all(one.worker != worker and now - one.since > patience for one in ones):
                logger.warning("shard %d takes long on %s: another worker is asked, too", number, ones[0].worker)
                return number
        return None

    def _ask(self, number: int, worker: str) -> None:
        shard = self.spread.shards[number]
        first, last = np.searchsorted(self.left_out, [shard.first, shard.first + shard.count])
        numbers = self.left_out[first:last] - shard.first
        floor = float(self.scores[-1]) if len(self.scores) == self.count else None
        self.number += 1
        future = self.spread.client.submit(
            score_shard,
            self.carried,
            shard,
            numbers,
            floor,
            key=f"seqopt-{self.name}-shard-{number:06d}-{self.digest}-{self.number}",
            workers=[worker],
            allow_other_workers=True,
            pure=False,
        )
        self.asked[future] = _Asked(number, worker)
        future.add_done_callback(self.finished.put)

    def _collect(self) -> None:
        """Take what is there, and look after what is not."""
        self._look_around()
        try:
            future = self.finished.get(timeout=POLL)
        except queue.Empty:
            return
        asked = self.asked.pop(future, None)
        if asked is None:
            return
        if asked.shard not in self.left:
            _cancelled(future)
            return
        try:
            found = future.result(timeout=TIMEOUT) if future.status == "finished" else None
            error = future.exception(timeout=TIMEOUT) if future.status == "error" else None
        except Exception as lost:
            found, error = None, lost
        if found is not None:
            self.longest = max(self.longest, time.monotonic() - asked.since)
            self.left.discard(asked.shard)
            places, scores = np.concatenate([self.places, found[0]]), np.concatenate([self.scores, found[1]])
            self.places, self.scores = merged(places, scores, self.count, self.ranks)
            future.release()
            return
        future.release()
        self._again(asked, error)

    def _again(self, asked: _Asked, error: BaseException | None) -> None:
        """What is to be done about a shard that did not come back."""
        number = asked.shard
        if isinstance(error, MissingShardError):
            self._send(number, asked.worker)
        elif isinstance(error, SeqoptError):
            raise error
        elif error is not None and not _infrastructure(error):
            raise ClusterError(
                f"scoring shard {number} failed on {asked.worker}: {type(error).__name__}: {error}"
            ) from error
        else:
            self.attempts[number] = self.attempts.get(number, 0) + 1
            if self.attempts[number] > RETRIES:
                raise ClusterError(
                    f"shard {number} was lost {self.attempts[number]} times with the workers that scored it "
                    f"({error or 'they are gone'}): perhaps they have too little memory (some 1 GB each is enough for "
                    "a shard of 65,536 candidates and 1,000 values). Nothing that was measured is lost"
                )
            self._look_around(force=True)
        waits = any(number in queue for queue in self.waiting.values())
        if not waits and not any(one.shard == number for one in self.asked.values()):
            self.waiting.setdefault(asked.worker, deque()).appendleft(number)

    def _send(self, number: int, worker: str) -> None:
        """Send the file of a shard to all machines that it may be asked of."""
        shard = self.spread.shards[number]
        self.attempts[number] = self.attempts.get(number, 0) + 1
        if self.attempts[number] > RETRIES:
            raise ClusterError(
                f"shard {number} was sent {RETRIES} times, and the workers do not keep it: check that there is room in "
                "their cache folder ($SEQOPT_CACHE)"
            )
        content = self.spread.shard_file(shard)
        # Who was asked need not be who answered: Dask may have moved the task.
        first = self.attempts[number] == 1 and worker in self.threads
        where = [worker] if first else list(self.threads)
        self.spread.client.run(receive_shard, self.spread.facts.name, number, content, workers=where, on_error="return")

    def _look_around(self, *, first: bool = False, force: bool = False) -> list[str]:
        """Who is there: shards of workers that are gone are given to others."""
        now = time.monotonic()
        if not (first or force) and now - self.looked < AROUND:
            return list(self.threads)
        self.looked = now
        client = self.spread.client
        if client.status != "running":
            self.spread.client = client = reconnected(client, self.spread.address, self.spread.patience)
            self._begin_anew()
        try:
            workers: dict[str, Any] = dict(client.scheduler_info()["workers"])
        except Exception:
            # A connection breaks in many ways, none of which says more than that nobody is known: they are waited for.
            workers = {}
        if not workers:
            try:
                wait_for_workers(client, self.spread.patience)
                workers = dict(client.scheduler_info()["workers"])
            except (OSError, TimeoutError):
                workers = {}
        threads = {address: int(facts["nthreads"]) for address, facts in workers.items()}
        if first or set(threads) != set(self.threads):
            self.threads = threads
            self._deal()
        return list(threads)

    def _begin_anew(self) -> None:
        """After the scheduler was lost, with all that it knew."""
        self.asked.clear()
        self.finished = queue.SimpleQueue()
        self.carried = None
        self.threads = {}

    def _deal(self) -> None:
        """Share out what is left among the workers: to whom has it, as far as that is fair."""
        if not self.threads:
            return
        under_way = {one.shard for one in self.asked.values() if one.worker in self.threads}
        held = roll_call(self.spread.client, held_shards, self.spread.facts.name, timeout=ROLL_CALL)
        has = {worker: set(found) for worker, found in held.items() if isinstance(found, list)}
        self.waiting = {worker: deque() for worker in self.threads}
        left = sorted(self.left - under_way)
        share = -(-len(left) // max(1, sum(self.threads.values())))
        for number in left:
            room = {
                worker: len(self.waiting[worker]) / threads
                for worker, threads in self.threads.items()
                if len(self.waiting[worker]) < share * threads
            }
            owners = {worker: load for worker, load in room.items() if number in has.get(worker, ())}
            chosen = owners or room
            self.waiting[min(chosen, key=chosen.__getitem__)].append(number)


def bar(what: str, done: int, total: int, width: int = 20) -> str:
    """How many shards are done, in a line.

    Example:
        >>> bar("scoring", 3, 10, width=10)
        'scoring ###....... 3 of 10 shards'
    """
    filled = width * done // max(1, total)
    return f"{what} {'#' * filled}{'.' * (width - filled)} {done:,} of {total:,} shards"


def _carried(payload: bytes) -> bytes:
    """A request as a task, so that a worker that is lost takes nothing with it."""
    return payload


def _cancelled(future: Future[Any]) -> None:
    try:
        future.cancel()
    except Exception as error:
        logger.debug("a task could not be cancelled: %s", error)


def _infrastructure(error: BaseException) -> bool:
    """Whether an error is about workers and connections, and says nothing of the shard."""
    from asyncio import CancelledError
    from concurrent.futures import CancelledError as Cancelled

    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    kinds = KilledWorker, FutureCancelledError, CommClosedError, CancelledError, Cancelled, TimeoutError
    return isinstance(error, (*kinds, OSError, EOFError))


def _refs(store: PoolStore) -> list[ShardRef]:
    """The shards of a store, with the places of their candidates."""
    found: list[ShardRef] = []
    start = place = 0
    for number, rows in enumerate(store.shard_rows):
        last = int(np.searchsorted(store.rows, start + rows))
        kept = np.zeros(rows, dtype=np.bool_)
        kept[np.asarray(store.rows[place:last], dtype=np.int64) - start] = True
        path = str(store.shard_path(number).resolve())
        found.append(ShardRef(number, path, place, last - place, np.flatnonzero(~kept)))
        start, place = start + rows, last
    return found


def _listed(files: Iterable[str]) -> str:
    names = list(files)
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} other files"
