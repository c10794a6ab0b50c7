"""A run on disk: a campaign file that is the truth, and readable exports of it.

``campaign.seqopt`` holds the settings, every batch as it was suggested (with what the optimiser needs to continue from
there) and every result as it came, each a transaction that is on disk before the run continues. It is a campaign like
any other: the run drives it (`seqopt.campaign.automatic`), and the commands for campaigns work on it, too.
``evaluations.csv`` and ``summary.json`` are exports, rewritten from the state in memory and safe to delete.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.campaign.campaign import Campaign
from seqopt.campaign.candidates import CandidateChanges, keep_candidates, kept_candidates
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.failures import failures_in
from seqopt.campaign.journal import Journal, Step
from seqopt.campaign.leads import FROM_LEAD, distances_of
from seqopt.campaign.locks import RunLock
from seqopt.campaign.parents import parent_of, with_mutations
from seqopt.campaign.rows import Settings
from seqopt.campaign.run_folders import CAMPAIGN, EVALUATIONS, SUMMARY, check_folder
from seqopt.campaign.run_settings import RUN, compare_settings, plain
from seqopt.campaign.store import CampaignStore
from seqopt.errors import RunFolderError
from seqopt.evaluation import Evaluation
from seqopt.optimizer import Optimizer
from seqopt.optimizer.learned import learned_contexts, recommended
from seqopt.optimizer.replayed import replayed
from seqopt.strategies.near import neighbourhood_of
from seqopt.utils.config import differences
from seqopt.utils.files import write_atomically
from seqopt.utils.versions import versions

logger = logging.getLogger(__name__)

REMOVED = "no longer among the candidates"
"""Why a suggestion was withdrawn when a run was resumed."""


class RunFolder:
    """The folder of one run: its campaign, and the tables that are exported from it while it goes on.

    Use `begin`, then `campaign` with the optimiser of the run, `watched` around the search, and `close` it.

    Attributes:
        path: The folder.
        settings: What describes the run.
        status: ``"running"``, ``"interrupted"`` or ``"finished"``.
        store: The open campaign.
        known_values: The value of each candidate of the pool, where all are known; then the summary says how much of
            the best was found.
    """

    def __init__(self, path: Path, settings: dict[str, Any], store: CampaignStore, lock: RunLock) -> None:
        self.path = path
        self.settings = settings
        self.status = "running"
        self.store = store
        self.known_values: npt.NDArray[np.float64] | None = None
        self._lock = lock
        self._campaign: Campaign | None = None
        self._spent = 0.0
        self._started = time.perf_counter()
        self._exported = 0.0
        self._export_seconds = 0.0
        self._learned: list[dict[str, Any]] = []
        self._recommended: dict[str, Any] | None = None

    @classmethod
    def begin(
        cls,
        path: str | os.PathLike[str],
        settings: Mapping[str, Any],
        campaign: Settings | None = None,
        *,
        resume: bool = False,
        candidates: Sequence[str] | None = None,
    ) -> RunFolder:
        """Start a run in a folder that holds none, or open one to continue it.

        Args:
            path: The folder.
            settings: What describes the run; kept as JSON, other objects as their `str`. Those outside `ADJUSTABLE`
                must be the same on resumption.
            campaign: What the commands for campaigns know of it: see `seqopt.campaign.run_settings.run_settings`. Of a
                run that is resumed it is needed only if it was killed before it had made its file.
            resume: Whether there is a run to continue.
            candidates: Of a pool, the keys of all that may be suggested. A run that is resumed takes up what was added
                and leaves what was removed; a warning says how many.

        Raises:
            RunFolderError: If the folder already holds a run, or none that could be resumed; if it is resumed with
                other candidates altogether; if it is being written by another process, its file is damaged or cannot be
                written, or settings that decide the course of the run differ.
        """
        check_folder(path, resume)
        folder, facts = Path(path), plain(settings)
        if campaign is None:
            campaign = Settings("value", extra={RUN: {"settings": facts, "versions": versions()}})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = RunLock(folder / CAMPAIGN)
        except OSError as error:
            raise RunFolderError(f"cannot write into {folder}: {error.strerror or error}") from error
        except CampaignError as error:
            raise RunFolderError(f"another process is writing the run in {folder}: wait for it, or stop it") from error
        try:
            with _explained(folder):
                return cls(folder, facts, _store(folder, facts, campaign, candidates, resume=resume), lock)
        except BaseException:
            lock.release()
            raise

    def campaign(self, optimizer: Optimizer) -> Campaign:
        """The campaign, with an optimiser that is brought where the campaign is.

        What was suggested, recorded or withdrawn by hand since counts as what the run did; what was undone does not.

        Args:
            optimizer: Made as that of the run was; it has neither asked nor been told anything.
        """
        with _explained(self.path):
            campaign = Campaign(self.store, optimizer=optimizer)
            journal = campaign.session().journal
        self._campaign, self._spent = campaign, journal.seconds
        if journal.asked:
            self.export()
        return campaign

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Errors of the campaign inside the block are told as those of the run."""
        with _explained(self.path):
            yield

    def evaluated(self, evaluation: Evaluation) -> None:
        """Rewrite the tables after an evaluation, if that has not been done for a while."""
        del evaluation  # which the campaign has already
        # They are rewritten often while they are small and rarely once that takes long: the campaign has every result.
        if time.perf_counter() - self._exported > 20 * self._export_seconds:
            self.export()

    def stepped(self, step: Step) -> None:
        """Rewrite the tables after a step."""
        del step
        self.export()

    def steps(self) -> list[Step]:
        """Every complete step of the run.

        A step is a batch; of an asynchronous run, which has none, it is as many results, in the order in which they
        came.
        """
        optimizer, journal = self._state()
        return journal.steps(optimizer, by_results=bool(self.settings.get("asynchronous")))

    def export(self) -> None:
        """Rewrite ``evaluations.csv`` and ``summary.json``; a failure is reported, the campaign has everything."""
        started = time.perf_counter()
        optimizer, _ = self._state()
        frame = optimizer.to_pandas()
        near = neighbourhood_of(optimizer.strategy.then)
        if near is not None:
            frame[FROM_LEAD] = distances_of(near, frame["key"].tolist())
        steps = self.steps()
        best = optimizer.best_of(optimizer.observations.rows)
        summary = {
            "status": self.status,
            "settings": self.settings,
            "best": None
            if best is None
            else {
                "string": best.string,
                "value": best.value,
                **({"censored": best.censored} if best.censored else {}),
                "number": next(i for i, row in enumerate(optimizer.observations.rows, start=1) if row is best),
            },
            "evaluations": len(frame),
            "failed": int((frame["status"] == "failed").sum()),
            **({} if self.known_values is None else {"replay": replayed(optimizer, self.known_values).to_json()}),
            "failures": failures_in(frame),
            **({} if optimizer.contexts is None else {"costs": _costs(optimizer)}),
            **({"learned": self._learned} if self._learned else {}),
            **({"recommended": self._recommended} if self._recommended else {}),
            "steps": [asdict(step) for step in steps],
            "timings": {
                "total_seconds": round(self._spent + started - self._started, 2),
                "suggest_seconds": round(sum(step.seconds["suggest"] for step in steps), 2),
                "evaluate_seconds": round(sum(step.seconds["evaluate"] for step in steps), 2),
            },
            "versions": versions(),
        }
        try:
            named = with_mutations(frame, parent_of(self.store.settings))
            write_atomically(self.path / EVALUATIONS, named.to_csv(index=False))
            write_atomically(self.path / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            logger.warning(
                "the tables in %s could not be rewritten (%s); %s has every result that was recorded",
                self.path,
                error.strerror or error,
                CAMPAIGN,
            )
        self._exported = time.perf_counter()
        self._export_seconds = self._exported - started

    def close(self, status: str) -> None:
        """Write the exports a last time with ``status`` (``"finished"`` or ``"interrupted"``) and let go of the run."""
        self.status = status
        try:
            if self._campaign is not None:
                # An interruption may have come between the file and the optimiser.
                with contextlib.suppress(CampaignError):
                    self._campaign.session()
                optimizer, _ = self._state()
                if status == "finished" and optimizer.contexts is not None:
                    self._learned, self._recommended = learned_contexts(optimizer), recommended(optimizer)
                self.export()
        finally:
            self.store.close()
            self._lock.release()

    def _state(self) -> tuple[Optimizer, Journal]:
        """The optimiser and the journal of the run as they were left, whatever others have done to the file since."""
        assert self._campaign is not None  # see `campaign`
        return self._campaign.left()


def _costs(optimizer: Optimizer) -> list[dict[str, Any]]:
    """What was measured in each context, and what it cost."""
    return [
        {"context": dict(context), "measurements": number, "cost": cost}
        for context, (number, cost) in optimizer.spent().items()
    ]


def _store(
    folder: Path, facts: dict[str, Any], campaign: Settings, candidates: Sequence[str] | None, *, resume: bool
) -> CampaignStore:
    """The open campaign of a folder, made where there is none yet."""
    file = folder / CAMPAIGN
    if not CampaignStore.begun(file):
        if candidates is not None:
            _keep(folder, candidates)
        return CampaignStore.create(file, campaign)
    # Another process may have begun a run since the folder was looked at.
    check_folder(folder, resume)
    store = CampaignStore.open(file)
    try:
        compare_settings(store.settings, facts, folder, surrogate=campaign.surrogate)
        if candidates is not None:
            _take_up(store, folder, facts, campaign, candidates)
    except BaseException:
        store.close()
        raise
    return store


def _take_up(
    store: CampaignStore, folder: Path, facts: dict[str, Any], campaign: Settings, candidates: Sequence[str]
) -> None:
    """Go on with candidates that may have changed: say what has, keep it, and withdraw what is no longer there."""
    settings = store.settings
    run = settings.extra[RUN]
    old = run["settings"]
    names = ("pool_sha256", "values_sha256")
    if all(old.get(name) == facts.get(name) for name in names):
        if kept_candidates(folder) is None:
            _keep(folder, candidates)  # of a run that was begun before they were kept
        return
    if old.get("pool_sha256") != facts.get("pool_sha256"):
        evaluated = {row.key for row in store.measurements()}
        changes = CandidateChanges.between(
            kept_candidates(folder), int(old.get("pool_size") or 0), candidates, evaluated
        )
        changes.check(folder, len(evaluated))
        logger.warning("the candidates have changed: %s", changes.describe())
        told: dict[str, Any] = {"candidates": changes.to_json()}
    else:
        logger.warning("values in the file have changed: what was evaluated keeps the value that it had")
        told = {"values": "changed"}
    present = set(candidates)
    gone = [row.name for row in store.open_suggestions() if row.key not in present]
    if gone:
        with store.transaction("withdraw", {"suggestions": gone, "reason": REMOVED}) as change:
            change.withdraw(gone, REMOVED)
    # The surrogate "auto" is chosen by looking at the candidates.
    now = {name: facts[name] for name in ("pool_size", *names, "surrogate", "details") if name in facts}
    if changed := differences(*({"surrogate": one.get("details", {}).get("surrogate")} for one in (old, facts))):
        logger.warning("for these candidates the default surrogate is another one: %s", "; ".join(changed))
    kept = {**settings.extra, RUN: {**run, "settings": {**old, **now}}}
    with store.transaction("configure", {"what": "candidates", **told}) as change:
        change.save_settings(replace(settings, pool=campaign.pool, extra=kept))
    _keep(folder, candidates)


def _keep(folder: Path, candidates: Sequence[str]) -> None:
    """Write down which candidates there are; a run goes on without, and can then say less of what has changed."""
    try:
        keep_candidates(folder, candidates)
    except OSError as error:
        logger.warning("which candidates there are could not be written to %s: %s", folder, error.strerror or error)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Errors of the campaign as those of the run that it belongs to."""
    try:
        yield
    except CampaignError as error:
        raise RunFolderError(
            f"{error}. When that is fixed, resume (--resume); what was measured is in {folder / EVALUATIONS}, "
            "too, unless a warning says that it could not be written"
        ) from error
