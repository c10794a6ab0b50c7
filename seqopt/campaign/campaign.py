"""A campaign: what to measure next, for as long as it takes.

Everything is in one file (`seqopt.campaign.CampaignStore`). A suggestion follows from that file, the space and the seed
alone: the same file gives the same suggestions on another machine, but for ties of rounding.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from seqopt.campaign.batches import Suggestions
from seqopt.campaign.by_way import counts_by_way, relations
from seqopt.campaign.calibration import calibration_of
from seqopt.campaign.confirming import Confirming
from seqopt.campaign.costs import Costs, costs_so_far, refuse_rest, refuse_unpayable, way_of
from seqopt.campaign.creating import new_campaign
from seqopt.campaign.entries import Results
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.failures import STOP_AFTER, lost_reason
from seqopt.campaign.files import stamp
from seqopt.campaign.hits import hits_of
from seqopt.campaign.inquiring import Inquiring
from seqopt.campaign.labels import Label, Labels, spending, stored_labels
from seqopt.campaign.library import Library, packed, same_library
from seqopt.campaign.narrowing import Narrowed, fitting, narrowed
from seqopt.campaign.plates import PLATE, offsets_in, plates_of, same_plate, stand_of
from seqopt.campaign.plating import Plating
from seqopt.campaign.recording import Recorder
from seqopt.campaign.revising import Revising, located
from seqopt.campaign.routes import labels_by_route
from seqopt.campaign.rows import (
    Command,
    Measurement,
    Suggestion,
)
from seqopt.campaign.spaces import restored_space
from seqopt.campaign.status import Status, missed_by, untold, warnings_of, warnings_of_plates
from seqopt.campaign.store import CampaignStore
from seqopt.campaign.tables import check_batch_target, check_target, measurements_table, write_batch, write_table
from seqopt.datasets.sources import file_and_part
from seqopt.errors import ExhaustedError, InputError
from seqopt.utils.arguments import checked_integer
from seqopt.utils.shown import Tabulated

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd

    from seqopt.acquisition import Acquisition
    from seqopt.campaign.assays import Imported, Worth
    from seqopt.campaign.journal import Journal, Step
    from seqopt.campaign.screens import Screened
    from seqopt.campaign.session import Session
    from seqopt.data import Context, Contexts, ContextValue, Outcome
    from seqopt.datasets import Pool, PoolStore
    from seqopt.evaluation import Direction, Evaluation, ObjectiveFunction, QueryObjective
    from seqopt.filters.conditions import Filter
    from seqopt.filters.filtering import FilterReport
    from seqopt.models import PlannedSurrogate, Surrogate
    from seqopt.optimizer import Optimizer
    from seqopt.scorers.limits import BatchLimits
    from seqopt.search.protocols import SomeSearch
    from seqopt.spaces import Space, StoredPool
    from seqopt.strategies import Gain, ModelBased, Near, Strategy
    from seqopt.strategies.warm import OtherAssay
    from seqopt.utils.workers import Progress

logger = logging.getLogger(__name__)


class Campaign(Confirming, Plating, Revising, Inquiring, Tabulated):
    """A search that lasts for weeks, with a laboratory as its objective.

    Args:
        store: The open file.
        space: The space, where the file cannot hold it.
        optimizer: Suggests instead of one that is made again from the file: that of a run, which may have parts that no
            file can hold. It has neither asked nor been told anything.

    Example:
        >>> import tempfile
        >>> from seqopt.spaces import StringSpace
        >>> folder = tempfile.TemporaryDirectory()
        >>> campaign = Campaign.create(
        ...     Path(folder.name, "first.seqopt"), StringSpace("01", 12), objective="activity", batch_size=4
        ... )
        >>> batch = campaign.suggest()
        >>> [suggestion.name for suggestion in batch]
        ['B01-01', 'B01-02', 'B01-03', 'B01-04']
        >>> campaign.suggest() == batch  # the same until results arrive
        True
        >>> for suggestion in batch:
        ...     _ = campaign.record(suggestion.name, suggestion.string.count("101"))
        >>> second = campaign.suggest()
        >>> second[0].reason["kind"] in ("exploit", "explore")
        True
        >>> campaign.close(); folder.cleanup()
    """

    def __init__(self, store: CampaignStore, space: Space | None = None, *, optimizer: Optimizer | None = None) -> None:
        self.store = store
        self._given = space
        self._client: Any = None
        self._given_optimizer = optimizer
        self._space: Space | None = None if optimizer is None else optimizer.space
        self._session: Session | None = None
        self._learned: tuple[ModelBased, list[Suggestion]] | None = None
        self._facts: Any = None
        self._known_labels: tuple[Any, Labels] | None = None
        self._narrowed: Narrowed | None = None
        self._narrowed_from: Space | None = None
        self._session_from: Space | Narrowed | None = None
        self._recorder = Recorder(self)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        space: Space | Pool | PoolStore | Iterable[Any] | str | os.PathLike[str],
        *,
        objective: str | None = None,
        direction: Direction | None = None,
        unit: str | None = None,
        column: str | None = None,
        kind: str | None = None,
        standardize: bool = False,
        decimal_comma: bool = False,
        attachment_points: bool = False,
        id_column: str | None = None,
        price_column: str | None = None,
        batch_size: int = 10,
        surrogate: Surrogate | PlannedSurrogate | str | None = None,
        acquisition: Acquisition | str | None = None,
        search: SomeSearch | str | None = None,
        strategy: Strategy | None = None,
        transform: str | None = "auto",
        contexts: Contexts | None = None,
        constraints: Sequence[Outcome] = (),
        seed: int = 0,
        filters: Iterable[Filter | Mapping[str, Any]] = (),
        design: str = "auto",
        include: Sequence[str] | str | os.PathLike[str] = (),
        limits: BatchLimits | None = None,
        near: Near | None = None,
        budget: float | None = None,
        plates: int | None = None,
        controls: Sequence[str] | str | os.PathLike[str] = (),
        initial_contexts: Literal["target", "all", "cheap"] | None = None,
        parent: str | None = None,
        computed: str | None = None,
    ) -> Campaign:
        """Begin a campaign in a new file.

        Args:
            path: The file; by convention it ends in ``.seqopt``.
            space: Where to search: a space of `seqopt.spaces`, a file of candidates, or candidates as
                `seqopt.spaces.CandidateSet` takes them (a list, a Series, a DataFrame, RDKit molecules; of more than
                1,000 the campaign has to be given them again when it is opened: write them to a file), or what
                `seqopt.datasets.prepare_pool` prepared of files of millions, whose paths and checksums are kept. What
                of the file is left out, since it cannot be read or is there already, is logged as a warning.
            objective: What is measured, such as ``"pIC50"``. May be left out if it is ``computed``.
            direction: ``"maximize"`` or ``"minimize"``; by default what is usual for what is computed, else
                ``"maximize"``.
            unit: Of the values.
            column: Column of the candidates in their file, if it is not to be recognised.
            kind: What candidates are, if it is not to be recognised; see `seqopt.datasets.read_pool`. That of a space
                is known.
            standardize: Whether salts and charge states of a molecule are one candidate.
            decimal_comma: Whether numbers in the file of candidates are written ``6,5``; tables of the campaign are
                then written so, too.
            attachment_points: Whether candidates of a file may have attachment points (``*``).
            id_column: Column of the identifiers that the owner of the file uses, if it is not to be recognised.
            price_column: Column of prices, if what suggestions cost is to be shown; ``"recognised"`` for the one that
                is called so (``price``, ``price_usd``), if there is any.
            batch_size: Suggestions at a time, and strings to begin with.
            surrogate: The model, or its name; see `seqopt.models.resolve_surrogate`.
            acquisition: The acquisition function, or its name.
            search: The inner search, or ``"auto"``.
            strategy: Decides instead of these three: see `seqopt.strategies`. The file keeps all parts with their
                parameters, so they have to be ones that can be written down (`seqopt.utils.config.Configurable`), as
                seqopt's own are.
            transform: What the model sees of the values: ``"auto"``, which learns it in each step, ``"log10"`` for
                values that span decades, or `None`: see `seqopt.optimizer.Optimizer`. ``"yes/no"`` says that results
                are hit or no hit: predictions are probabilities of a hit.
            contexts: The ways in which strings can be measured, where there are several; suggestions say which. Tables
                have a column for each thing in which they differ, such as ``fidelity``. A result of which nobody says
                how it was measured was measured as its suggestion or, if there is none, the target says.
            constraints: What is measured besides the objective, each an `seqopt.data.Outcome` of the role
                ``"constraint"``, or ``"recorded"`` for what is only kept. Tables have a column for each.
            seed: Fixes every random draw.
            filters: What strings have to pass in order to be suggested: see `seqopt.filters`.
            design: How the first batch is chosen, by name: see `seqopt.Optimizer`.
            include: Strings that are suggested first of all: a list of candidates, or a file of them.
            limits: How much alike the strings of one batch may be: see `seqopt.BatchLimits`.
            near: A lead to search near, further if it pays: see `seqopt.Near`.
            budget: Cost that may be spent, where ``contexts`` have costs; by default there is no limit.
            plates: Wells of a plate, where measurements are made on plates: each has an offset of its own, and what is
                searched for is what all have in common (`seqopt.strategies.PlateSearch`).
            controls: What is measured on every plate, in wells of its own: a list of strings, or a file of them.
            parent: The string of which the candidates are variants, such as a wild type: tables and pages name them by
                what they change of it (``S121E/D57G``), and a file of candidates and results may do so, too. Spaces
                with a parent need none.
            computed: What computes the objective, by name as `seqopt.maximize` takes it: `run` needs no function then.
                Of a weighted sum, such as ``"mfe - 5*log_cai:human"``, each score is recorded beside the sum, in its
                own unit; no model learns from the scores.
            initial_contexts: How strings of the first batch are measured where there are several ways: as the
                ``"target"``, each in ``"all"``, or in those that cost less than the target
                (``"cheap"``). By default as in automatic searches: see `seqopt.strategies.initial.usual_beginning`.

        Raises:
            InputError: For what cannot be used.
            CampaignError: If there is such a file already.
        """
        library, made, settings = new_campaign(
            space,
            objective=objective,
            direction=direction,
            unit=unit,
            column=column,
            kind=kind,
            standardize=standardize,
            decimal_comma=decimal_comma,
            attachment_points=attachment_points,
            id_column=id_column,
            price_column=price_column,
            batch_size=batch_size,
            parts={"surrogate": surrogate, "acquisition": acquisition, "search": search, "strategy": strategy},
            transform=transform,
            contexts=contexts,
            constraints=constraints,
            seed=seed,
            filters=filters,
            design=design,
            include=include,
            limits=limits,
            near=near,
            budget=budget,
            plates=plates,
            controls=controls,
            initial_contexts=initial_contexts,
            parent=parent,
            computed=computed,
        )
        kept = None
        if library is not None:
            kept = len(library.space), packed(library.hashes)
            settings = replace(settings, pool=located(library.facts, Path(path)))
        store = CampaignStore.create(path, settings, library=kept)
        campaign = cls(store, made if settings.space.get("custom") else None)
        campaign._space, campaign._facts = made, campaign._stand_of_library()
        return campaign

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], space: Space | Iterable[Any] | None = None, *, client: Any = None
    ) -> Campaign:
        """Go on with a campaign.

        Args:
            path: Its file.
            space: The space, if it is a custom one, or the candidates, if they are a long list; else it is made again
                when it is needed.
            client: A `distributed.Client` of a Dask cluster whose workers look at the candidates of a pool on disk:
                see `seqopt.distributed.spread_pool`. What is suggested is the same.

        Raises:
            CampaignError: If there is no such campaign.
        """
        store = CampaignStore.open(path)
        if space is not None:
            from seqopt.spaces import Space, as_space

            try:
                # Candidates are of the kind that the campaign was begun with, which need not be the one they look like.
                kept = {} if isinstance(space, Space) else store.settings.space
                space = as_space(space, kind=kept.get("kind"), standardize=bool(kept.get("standardize")))
            except InputError:
                store.close()
                raise
        found = cls(store, space)
        found._client = client
        return found

    def close(self) -> None:
        """Close the file."""
        self._session = None
        self.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def space(self) -> Space:
        """Where the campaign searches.

        Raises:
            CampaignError: If a file that it needs is missing or has changed.
        """
        facts = self._stand_of_library()
        if self._space is None or facts != self._facts:
            library = self.library()
            self._space = restored_space(self.store.settings.space, self._given) if library is None else library.space
            self._facts = facts
            if self._client is not None:
                from seqopt.distributed.spreading import spread_pool

                spread_pool(cast(Any, self._space), self._client)
        return self._space

    def _stand_of_library(self) -> Any:
        """What tells whether the candidates that are searched have changed, without reading them."""
        return None if self._given_optimizer is not None else _stand_of(self.store.library)

    def library(self) -> Library | None:
        """The files of candidates, read anew; `None` where the campaign searches none. What has changed is logged.

        Raises:
            CampaignError: If a file is missing, or lacks candidates.
        """
        facts = self.store.library
        if facts is None:
            return None
        found = same_library(facts, *self.store.library_hashes())
        for note in found.notes:
            logger.warning("%s", note)
        return found

    @property
    def filters(self) -> list[Filter]:
        """What strings have to pass in order to be suggested."""
        kept = self.store.settings.filters
        if not kept:  # as a rule there are none, and the commands that only look load nothing for them
            return []
        from seqopt.filters.conditions import from_json

        return from_json(kept)

    @property
    def _sieved(self) -> list[Filter]:
        """The filters by which its candidates were chosen when they were prepared on disk; they do not change."""
        kept = self.store.settings.space.get("sieve")
        if not kept:
            return []
        from seqopt.filters.sieve import Sieve
        from seqopt.utils.config import from_config

        sieve = from_config(kept)
        return sieve.filters if isinstance(sieve, Sieve) else []

    def set_filters(self, filters: Iterable[Filter | Mapping[str, Any]]) -> dict[str, str]:
        """Let these filters count from now on, instead of those before; a command that can be undone.

        Open suggestions stay open, and what was measured teaches the model whether it passes or not.

        Args:
            filters: All filters, see `seqopt.filters`; none lets everything pass.

        Returns:
            Open suggestions that fail, by name, and why; `status` says so, too.

        Raises:
            InputError: For filters that cannot be used, or do not fit what is searched. Nothing has been changed.
            CampaignError: If a file that is needed is missing or has changed.

        Example:
            >>> import tempfile
            >>> from seqopt.filters import Pattern
            >>> from seqopt.spaces import StringSpace
            >>> folder = tempfile.TemporaryDirectory()
            >>> campaign = Campaign.create(
            ...     Path(folder.name, "a.seqopt"), StringSpace("01", 12), objective="activity", batch_size=4
            ... )
            >>> campaign.set_filters([Pattern("^1"), Pattern("000", required=False)])
            {}
            >>> all(row.string[0] == "1" and "000" not in row.string for row in campaign.suggest())
            True
            >>> campaign.close(); folder.cleanup()
        """
        from seqopt.filters.conditions import checked, describe, to_json
        from seqopt.filters.filtering import failing, library_cells

        pool = self.store.library
        # A library itself, which may be large, is not needed for that.
        space = self.space if pool is None else None
        kind = pool["kind"] if pool is not None else self.space.kind
        wanted = fitting(checked(filters), kind, space, pool)
        with self.store.transaction("configure") as change:
            settings = self.store.settings
            if to_json(wanted) == settings.filters:
                raise CampaignError("these are the filters already: nothing was changed")
            waiting = self.store.open_suggestions()
            found: dict[str, str] = {}
            if wanted and waiting:
                cells = library_cells(pool, [row.string for row in waiting])
                found = failing({row.name: (row.string, row.key) for row in waiting}, kind, wanted, cells)
            change.arguments.update(what=f"filters ({describe(wanted) or 'none'})", failing=found)
            change.save_settings(replace(settings, filters=to_json(wanted)))
        return found

    def filter_report(self, progress: Progress | None = None) -> FilterReport | None:
        """How many candidates pass each filter and all of them; `None` without filters.

        Of a library, all candidates are looked at, the first time for minutes if there are many: see
        `seqopt.filters.filtering`. Where strings are generated, 500 random ones are.

        Args:
            progress: Told how many molecules are done, of those whose properties have to be computed.

        Raises:
            CampaignError: If a file that is needed is missing or has changed.
            InputError: If a filter does not fit the library any more.
        """
        narrowed = self._narrow(progress)
        return None if narrowed is None else narrowed.report

    def suggest(
        self,
        n: int | None = None,
        *,
        more: bool = False,
        context: Mapping[str, ContextValue] | None = None,
        shared: bool = False,
        learn: bool = False,
    ) -> Suggestions:
        """What to measure next: only what passes the `filters`.

        While suggestions are open they are returned again, whatever ``n`` is; ``more`` adds others, conditioned on the
        open ones.

        Args:
            n: How many new ones; by default the campaign's batch size.
            more: Whether to suggest although others are open.
            context: The one way to measure that is free today, where there are several: ``{"fidelity": "docking"}``.
                Only open suggestions of that kind count as such.
            shared: Whether all of a batch has to be measured in one way, which is chosen. On plates, a batch goes on
                one anyhow if it fits on one that is open, and else fills those and then fresh ones; the controls of a
                plate come with the first candidates, besides the ``n``.
            learn: Suggest what teaches the model most (`seqopt.acquisition.SAL`) instead of what may be best. The
                model is the campaign's own, averaged over its parameters; `gain` says what it expects to learn.

        Raises:
            InputError: If ``n`` < 1, or ``context`` is none of the campaign's.
            ExhaustedError: If nothing is left to suggest.
            CampaignError: If no candidate passes the filters; it says which removes how many. Or if the budget does not
                pay for another measurement.
            StaleStateError: If another process has changed the campaign meanwhile.
        """
        n = None if n is None else checked_integer("the number of strings", n, 1)
        settings, only = self.store.settings, self._one_way(context)
        if only is not None and only in self.store.screened():
            raise CampaignError(
                f"{way_of(only)} is known of the candidates by an imported column of scores, and is not suggested"
            )
        waiting = self.waiting(context)
        if waiting and not more:
            return Suggestions(waiting, settings)
        arguments: dict[str, Any] = {"n": n, "more": more}
        if only is not None:
            arguments["only"] = dict(only)
        if shared:
            arguments["shared"] = True
        count, learner = settings.batch_size if n is None else n, None
        if learn:
            from seqopt.campaign.learning import started_learner

            learner = started_learner(self.session().optimizer)
            arguments["learn"] = True
        made = self._suggest(count, arguments, only=only, shared=shared, by=learner)
        self._learned = None if learner is None else (learner, made)
        return Suggestions(made, settings)

    def gain(self) -> Gain | None:
        """How much better predictions of the other candidates should become by the batch that `suggest` has chosen to
        ``learn``, if its model is right; `None` where nothing was, or nothing else is left to predict.
        """
        if self._learned is None:
            return None
        from seqopt.campaign.learning import expected_gain

        return expected_gain(self.left()[0], *self._learned)

    def waiting(self, context: Mapping[str, ContextValue] | None = None) -> list[Suggestion]:
        """Suggestions that await a result.

        Args:
            context: Only those that are measured so.

        Raises:
            InputError: If it is none of the campaign's.
        """
        only = self._one_way(context)
        return [row for row in self.store.open_suggestions() if only in (None, row.context)]

    def _one_way(self, context: Mapping[str, ContextValue] | None) -> Context | None:
        """One way to measure, checked."""
        if context is None:
            return None
        contexts = self.store.contexts
        if contexts is None:
            raise InputError("the campaign knows one way to measure only: leave the context (--fidelity) out")
        from seqopt.data import as_context

        if self.store.settings.plates and set(context) == {PLATE}:
            context = {PLATE: same_plate(str(context[PLATE]), [plate.name for plate in self._plates()])}
        found = as_context(context)
        contexts.check(found)
        return found

    def costs(self) -> Costs | None:
        """What the campaign has cost so far, by ways to measure; `None` where measurements have no costs."""
        return costs_so_far(self.store)

    def suggest_more(self, n: int, *, explained: bool = True, remaining: float | None = None) -> list[Suggestion]:
        """As `suggest` with ``more``, for a run that evaluates its suggestions itself.

        Args:
            n: How many.
            explained: Whether the reasons are worked out and kept.
            remaining: Evaluations, or cost where there are several ways to measure, that may still be asked for, these
                included; `None` where there is no limit.
        """
        return self._suggest(n, {"n": n, "more": True}, explained=explained, remaining=remaining)

    def _suggest(
        self,
        n: int,
        arguments: dict[str, Any],
        *,
        explained: bool = True,
        remaining: float | None = None,
        only: Context | None = None,
        shared: bool = False,
        by: ModelBased | None = None,
    ) -> list[Suggestion]:
        self._check_by_hand()
        costs, contexts = costs_so_far(self.store), self.store.contexts
        if costs is not None and contexts is not None and costs.left is not None:
            refuse_unpayable(costs, contexts, only)
            remaining = costs.left
        room, shared = self._room(n, only, shared)
        session, report = self.session(), self.filter_report()
        noted = {}
        if report is not None:
            arguments = arguments | {"filters": report.to_json()}
            # What is left was counted among what passes.
            noted = {"filtered": True}
        try:
            return session.suggest(
                n,
                arguments,
                explained=explained,
                noted=noted,
                remaining=remaining,
                only=only,
                shared=shared,
                room=room,
                by=by,
                besides=self._controls,
            )
        except (ExhaustedError, InputError) as error:
            if isinstance(error, ExhaustedError) and costs is not None and contexts is not None:
                refuse_rest(costs, contexts)
            narrowed = self._narrow()
            if narrowed is None:
                raise
            raise narrowed.explained(error) from error

    def session(self) -> Session:
        """The optimiser that stands where the file does, with what has been done so far; kept between suggestions.

        Raises:
            CampaignError: As `optimizer`; or if the settings of a run have been changed during the run.
        """
        if self._given_optimizer is None and self._session is not None:
            # Rows of the library may have changed, and with them what passes the filters.
            narrowed = self._narrow()
            if self._session_from is not (self.space if narrowed is None else narrowed):
                self._session = None
        if self._session is not None and not self._session.catch_up():
            if self._given_optimizer is not None:
                raise CampaignError(f"the settings of {self.store.path} were changed by another command during the run")
            self._session = None
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def left(self) -> tuple[Optimizer, Journal]:
        """The optimiser and the journal as the last command of this object left them, whatever others have done since.

        The file is looked at only if there is nothing yet.
        """
        session = self.session() if self._session is None or not self._session.state else self._session
        return session.optimizer, session.journal

    def optimizer(self) -> Optimizer:
        """An optimiser as the file has it: everything measured is told, and open suggestions are pending.

        It asks for strings that pass the filters only. It is the caller's own: what it is asked or told does not reach
        the campaign.

        Raises:
            CampaignError: If no candidate of a library passes them, a file that is needed is missing or has changed, or
                the campaign is that of a run with parts that the file cannot name.
        """
        self._check_by_hand()
        return self._new_session().optimizer

    def _check_by_hand(self) -> None:
        """Refuse to suggest what a run that this campaign belongs to would not."""
        from seqopt.campaign.run_settings import check_by_hand

        if self._given_optimizer is None:
            check_by_hand(self.store.settings, self.store.path)

    def _new_session(self, assays: Sequence[OtherAssay] | None = None) -> Session:
        """An optimiser that has caught up with the file.

        Args:
            assays: Other assays that its model learns from; by default those in the file. With these it learns from
                the beginning, whatever the last suggestion was chosen by.
        """
        from seqopt.campaign.assays import known_assays
        from seqopt.campaign.parts import made_optimizer
        from seqopt.campaign.run_settings import check_by_hand
        from seqopt.campaign.screens import known_columns
        from seqopt.campaign.session import Session

        settings = self.store.settings
        if self._given_optimizer is not None:
            session = Session(self.store, self._given_optimizer, labels=self._labels)
        else:
            check_by_hand(settings, self.store.path, predictions=True)
            narrowed = self._narrow()
            allowed = self.space if narrowed is None else narrowed.allowed
            self._session_from = self.space if narrowed is None else narrowed
            others = known_assays(self.store) if assays is None else assays
            made = made_optimizer(settings, self.space, allowed, known_columns(self.store, self.space), others)
            session = Session(self.store, made, allowed, self._labels, restored=assays is None)
        session.catch_up()
        return session

    def record(
        self,
        what: str,
        value: float | str | None = None,
        *,
        failure: str | None = None,
        lost: str | None = None,
        standard_error: float | None = None,
        replicate: bool = False,
        context: Mapping[str, ContextValue] | None = None,
        further: Mapping[str, float] | None = None,
        unit: str | None = None,
        force: bool = False,
        cost: float | None = None,
    ) -> list[Measurement]:
        """Record one result.

        Args:
            what: The name of a suggestion (``"B03-07"``, or ``"b3-7"``), an identifier of the library, or a string.
            value: What was measured, a number, or a limit of it as text, such as ``"<0.1"``; `None` for a failure.
                Where results are yes or no: ``"hit"``, ``"no hit"``, `True`, 0, ``"3 of 8"`` wells, or
                ``"inconclusive"``, which is kept and shown and teaches nothing.
            failure: Why there is no value. Failures teach which strings fail, so it should be the string's fault.
            lost: What happened, if it was not: the robot dropped it. That teaches nothing, and the string is suggested
                again, before any others. In a table it is a failure whose reason begins with ``lost:``.
            standard_error: Known standard error of the value.
            replicate: Whether this is a further measurement of a string that has one.
            context: How it was measured, where there are several ways and it is neither a suggestion's nor the target.
            further: Values of what is measured besides the objective, by name.
            unit: What the value is given in, if it is not the campaign's: it is converted with its standard error, see
                `seqopt.campaign.units`.
            force: Take a value that lies far outside all others.
            cost: What it has cost, if that is not what ``contexts`` of the campaign say.

        Raises:
            CampaignError: If the result does not fit; the message says why. What is only worth a second look, such as a
                value a thousandfold off or far outside all others, is recorded, and logged as a warning.
        """
        return self._recorder.record(
            what,
            value,
            failure=lost_reason(failure, lost),
            standard_error=standard_error,
            replicate=replicate,
            context=context,
            further=further,
            unit=unit,
            force=force,
            cost=cost,
        )

    def record_file(
        self,
        path: str | os.PathLike[str],
        *,
        value_column: str | None = None,
        string_column: str | None = None,
        replicates: bool = False,
        partial: bool = False,
        history: bool = False,
        decimal_comma: bool | None = None,
        unit: str | None = None,
        force: bool = False,
        context: Mapping[str, ContextValue] | None = None,
    ) -> tuple[list[Measurement], Results]:
        """Record a file of results; see `seqopt.campaign.results.read_results`.

        Args:
            path: The file.
            value_column: The column of values, if it is not to be recognised.
            string_column: The column of strings, if it is not to be recognised.
            replicates: Whether results of strings that have one are further measurements of them.
            partial: Whether to take the good rows of a file that has bad ones.
            history: Whether the results are from elsewhere, and their strings were never suggested.
            decimal_comma: Whether numbers are written 6,5; by default as in the library of the campaign, but with
                points in a table whose cells are separated by commas.
            unit: What the values are given in, if it is not the campaign's: they are converted, see
                `seqopt.campaign.units`.
            force: Whether to take values that lie far outside all others.
            context: How all was measured of which the file does not say it, and which answers no suggestion.

        Returns:
            What was recorded, and what the file holds: the problems and warnings with their lines.

        Raises:
            CampaignError: If something is wrong and ``partial`` is not set, or nothing could be taken. It lists every
                problem; nothing has been recorded.
        """
        return self._recorder.record_file(
            path,
            value_column=value_column,
            string_column=string_column,
            replicates=replicates,
            partial=partial,
            history=history,
            decimal_comma=decimal_comma,
            unit=unit,
            force=force,
            context=context,
        )

    def import_screen(
        self,
        path: str | os.PathLike[str],
        context: Mapping[str, ContextValue],
        *,
        value_column: str | None = None,
        string_column: str | None = None,
        decimal_comma: bool | None = None,
        replicates: bool = False,
        partial: bool = False,
    ) -> Screened:
        """Take a cheap score of the whole library, one value for each candidate; a command that can be undone.

        Its values are kept as one column. From then on the model expects of a candidate what its score lets expect,
        besides what it is like: a term that is linear in the score, whose slope is learned from what is measured
        otherwise. So a quarter of a million values cost next to nothing, and this way to measure is not suggested any
        more. What is recorded of a candidate in this way later counts before its value in the column.

        Args:
            path: A table with a column of strings and one of values.
            context: How they were measured; not the target.
            value_column: The column of values, if it is not to be recognised.
            string_column: The column of strings, if it is not to be recognised.
            decimal_comma: Whether numbers are written 6,5; by default as in the library of the campaign.
            replicates: Whether several values of a string are replicates, of which the mean is taken.
            partial: Whether to take the good rows of a file that has bad ones.

        Returns:
            What was taken.

        Raises:
            CampaignError: If the campaign does not search a library, another strategy than
                `seqopt.strategies.MultiFidelity` with its own model decides, or something is wrong with the file:
                every problem is listed, and nothing has been kept.
            InputError: If there is no such context, or it is the target.
        """
        from seqopt.campaign.screens import import_screen

        return import_screen(
            self,
            path,
            context,
            value_column=value_column,
            string_column=string_column,
            decimal_comma=decimal_comma,
            replicates=replicates,
            partial=partial,
        )

    def import_assay(
        self,
        path: str | os.PathLike[str],
        name: str,
        *,
        value_column: str | None = None,
        string_column: str | None = None,
        decimal_comma: bool | None = None,
        replicates: bool = False,
        partial: bool = False,
    ) -> Imported:
        """Let the model learn from results of another assay; a command that can be undone.

        They are a task of their own: their unit, direction, offset, scale and noise are, and how they go with what the
        campaign measures is learned. They are no results of the campaign: neither the best, nor counts, budgets and
        intervals know of them, and the other assay is never suggested.

        Args:
            path: A table with a column of strings and one of values.
            name: What the assay is called.
            value_column: The column of values, if it is not to be recognised.
            string_column: The column of strings, if it is not to be recognised.
            decimal_comma: Whether numbers are written 6,5; by default as in the library of the campaign.
            replicates: Whether several values of a string are replicates, of which the mean is taken.
            partial: Whether to take the good rows of a file that has bad ones.

        Returns:
            What was taken, and what it is worth.

        Raises:
            CampaignError: If something is wrong with the file (every problem is listed), its values are fewer than two
                or all equal, or a string has a value of this assay already; or if the model of the campaign cannot
                learn from several assays: it says what to do. Nothing has been kept.
            InputError: For a name that cannot be used.

        Example:
            >>> import tempfile
            >>> from seqopt.spaces import CandidateSet
            >>> folder = tempfile.TemporaryDirectory()
            >>> pool = CandidateSet(["AAA", "AAB", "ABB", "BBB", "BAA", "BBA"])
            >>> campaign = Campaign.create(Path(folder.name, "a.seqopt"), pool, objective="activity", batch_size=2)
            >>> _ = Path(folder.name, "old.csv").write_text("string,value\\nAAA,10\\nABB,30\\nBAB,20\\n")
            >>> campaign.import_assay(Path(folder.name, "old.csv"), "old").worth.describe()
            '0 results of activity are too few to tell what old is worth: 8 or more are needed'
            >>> campaign.status().counts.values
            0
            >>> campaign.close(); folder.cleanup()
        """
        from seqopt.campaign.assays import import_assay

        self._check_by_hand()
        return import_assay(
            self,
            path,
            name,
            value_column=value_column,
            string_column=string_column,
            decimal_comma=decimal_comma,
            replicates=replicates,
            partial=partial,
        )

    def assay_worth(self, name: str) -> Worth:
        """What an imported assay is worth by the results that are there now; nothing is changed.

        Raises:
            InputError: If there is no such assay.
        """
        from seqopt.campaign.assays import assay_worth

        return assay_worth(self, name)

    def run(
        self,
        objective: ObjectiveFunction | QueryObjective | str | None = None,
        *,
        budget: int,
        executor: Executor | None = None,
        workers: int = 1,
        asynchronous: bool = False,
        timeout: float | None = None,
        chunk_size: int | None = None,
        isolated: bool = False,
        stop_after_failures: int | None = STOP_AFTER,
        on_evaluation: Callable[[Evaluation], Any] | None = None,
        on_step: Callable[[Step], Any] | None = None,
    ) -> int:
        """Let a function evaluate what the campaign suggests, until it holds ``budget`` results.

        Open suggestions are evaluated first, so the same call continues after a crash, and no evaluation is repeated.
        Each result is on the disk before the next suggestion is made.

        Args:
            objective: A function from a list of strings to a list of their values, called with one string at a time, or
                the name of one: see `seqopt.maximize`; by default what the campaign says that it is computed by. What
                it cannot evaluate is recorded as a failure. Scores of a weighted sum that the campaign records are
                kept beside it.
            budget: Results in the campaign when it ends, those that are there now and failures among them.
            executor: Evaluates in parallel: any `concurrent.futures.Executor`.
            workers: Evaluations at a time.
            asynchronous: Whether a free worker gets another string at once, instead of batches; see `seqopt.maximize`.
            timeout: Seconds after which one evaluation is given up as failed.
            chunk_size: The largest number of strings in one call of ``objective``; see `seqopt.maximize`. What is
                withdrawn before its call begins is not evaluated.
            isolated: Evaluate in a separate process, so that an objective that crashes does not end this one; see
                `seqopt.maximize`.
            stop_after_failures: Stop after so many failures in a row of this call, all for the same reason; `None` for
                never.
            on_evaluation: Called after each evaluation.
            on_step: Called after each batch; see `seqopt.maximize`.

        Returns:
            How many evaluations were made.

        Raises:
            InputError: Without an objective, for one of other strings, or of other scores than the campaign records.
            StoppedRunError: If nothing has ever succeeded, the same failure comes again and again, or the objective
                does not return one value for each string; see `seqopt.maximize`.
            ObjectiveError: If the executor breaks or takes no more: the strings that were in flight stay open, and are
                named.
            CampaignError: If another process is running the campaign, or it cannot be written.

        Example:
            >>> import tempfile
            >>> from seqopt.spaces import StringSpace
            >>> folder = tempfile.TemporaryDirectory()
            >>> campaign = Campaign.create(
            ...     Path(folder.name, "a.seqopt"), StringSpace("01", 12), objective="activity", batch_size=4
            ... )
            >>> count = lambda strings: [string.count("101") for string in strings]
            >>> campaign.run(count, budget=6)
            6
            >>> campaign.run(count, budget=6)
            0
            >>> campaign.close(); folder.cleanup()
        """
        from seqopt.campaign.automatic import drive, useful_workers
        from seqopt.campaign.computed import evaluated, suited
        from seqopt.campaign.locks import RunLock
        from seqopt.evaluation import Evaluator
        from seqopt.objectives import Objective, resolve_objective

        budget = checked_integer("budget", budget, 0, "expected an integer of results")
        if asynchronous and executor is not None and workers < 2:
            raise InputError(
                "an asynchronous run needs to know how many evaluations the executor makes at once: workers=4"
            )
        path, settings = self.store.path, self.store.settings
        given = settings.computed_by if objective is None else objective
        if given is None:
            raise InputError(
                f"{settings.objective} of this campaign is measured, and nothing computes it: give the function"
            )
        score = resolve_objective(given) if isinstance(given, str) else given
        if isinstance(score, Objective):
            score = suited(score, self.space)
        outcomes = settings.outcomes()
        evaluating = Evaluator(
            evaluated(score, outcomes),
            executor=executor,
            workers=useful_workers(workers, budget if asynchronous else max(settings.initial, settings.batch_size)),
            timeout=timeout,
            chunk_size=chunk_size,
            columns=len(outcomes),
            isolated=isolated,
        )
        try:
            lock = RunLock(path)
        except OSError as error:
            raise CampaignError(f"cannot write next to {path}: {error.strerror or error}") from error
        with lock, evaluating as evaluator:
            return drive(
                self,
                evaluator,
                budget,
                executor=executor is not None,
                asynchronous=asynchronous,
                stop_after_failures=stop_after_failures,
                on_evaluation=on_evaluation,
                on_step=on_step,
            )

    def history(self) -> list[Command]:
        """All commands, the first one first."""
        return self.store.history()

    def status(self) -> Status:
        """How the campaign stands; what it says of the model is from the last suggestion, so no model is fitted."""
        with self.store.reading():
            settings, counts, best = self.store.settings, self.store.counts(), self.store.best()
            latest, failing = self.store.latest_snapshot(), self._failing()
            suggestions, library = self.store.suggestions(), self.store.library
            measurements = self.store.measurements()
            calibration = None if settings.yes_no else calibration_of(suggestions, measurements)
            everything = self.store.measurements(discarded=True) if settings.plates else []
            hits = None
            superseded = self.store.measurements(undone=True) if settings.yes_no else []
            if settings.yes_no:
                counted_ones = self.store.measurements(discarded=True)
                hits = hits_of(suggestions, counted_ones, self.store.observations(), superseded)
        model = {} if latest is None else {"surrogate": latest.surrogate, "n": latest.n, **latest.summary}
        warnings = warnings_of(settings, counts, model)
        if missed := missed_by(settings, suggestions, measurements, superseded):
            warnings.append(missed)
        if silent := untold(settings, measurements):
            warnings.append(silent)
        # What an earlier model says of plates is not what one would say now.
        current = bool(settings.plates) and model.get("stand") == stand_of(settings, measurements)
        offsets = offsets_in(model.get("plates", [])) if current else {}
        plates = plates_of(settings, suggestions, everything, offsets)
        of_plates = warnings_of_plates(plates, model if current else {}, settings.transform, measurements)
        warnings += of_plates
        if failing:
            from seqopt.filters.filtering import failing_note

            warnings.append(failing_note(failing))
        filters = tuple(item.describe() for item in (*self.filters, *self._sieved))
        return Status(
            settings,
            counts,
            best,
            model,
            tuple(warnings),
            filters,
            failing,
            spending(suggestions, settings),
            None if library is None else library["path"],
            calibration,
            () if library is None else tuple(one["path"] for one in library["added"]),
            costs_so_far(self.store),
            {way_of(context): size for context, size in self.store.screened().items()},
            {name: len(rows) for name, rows in self.store.assays().items()},
            tuple(plates),
            _identified(model.pop("recommended", {}), (*suggestions, *measurements)),
            hits,
            counts_by_way(settings, measurements),
            tuple(of_plates),
            relations(settings, measurements, model),
        )

    def write_batch(self, path: str | os.PathLike[str], suggestions: Sequence[Suggestion] | None = None) -> None:
        """Write suggestions (by default the open ones) as a table to be filled in and recorded.

        A workbook (``.xlsx``) has a drawing of each molecule; an ``.sdf`` has the molecules with what is known of them.
        A ``.csv`` is written as the library is, with semicolons or decimal commas, so that the same spreadsheet opens
        it. Besides what was predicted it says why each was chosen: ``why`` (exploit or explore), the nearest measured
        string and how similar the model takes the two to be. Every other column of the library comes last; one by the
        name of another column is called ``NAME (library)``.

        Raises:
            InputError: If there is such a file already, unless it is a batch of the campaign without any result.
        """
        from seqopt.filters.filtering import library_cells

        check_batch_target(path, self.store)
        chosen = list(self.store.open_suggestions() if suggestions is None else suggestions)
        further = library_cells(self.store.library, [row.string for row in chosen], as_written=True)
        if further is None:
            # Where the library cannot be read, what it said when they were suggested.
            columns = dict.fromkeys(name for row in chosen for name in row.cells)
            further = {name: [row.cells.get(name, "") for row in chosen] for name in columns}
        write_batch(path, chosen, self.store.settings, further)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all measurements one by one, to a .csv, .tsv, .xlsx, .sdf or .parquet file.

        A .csv has semicolons and decimal commas where the library of the campaign has them.

        Raises:
            InputError: For the library of the campaign, the file of one, or another kind of file.
        """
        target = Path(path)
        check_target(target, self.store)
        if target.suffix.lower() == ".parquet":
            self.to_pandas().to_parquet(target)
            return
        header, rows = measurements_table(self.store)
        columns = {name: [row[index] for row in rows] for index, name in enumerate(header)}
        write_table(target, self.store.settings, columns, limits=[self.store.settings.objective])

    def to_pandas(self) -> pd.DataFrame:
        """All measurements one by one, failures too; of limits the numbers, with their signs in ``censored``."""
        import pandas as pd

        header, rows = measurements_table(self.store, numeric=True)
        return pd.DataFrame(rows, columns=header)

    def _labels(self, strings: Sequence[str]) -> list[Label]:
        pool = self.store.library
        if self.store.settings.space.get("type") == "StoredPool":
            return stored_labels(cast("StoredPool", self.space), strings)
        if pool is None and (routes := labels_by_route(self.space, strings)) is not None:
            return routes
        if self._given_optimizer is not None and not (pool or {}).get("id_column"):
            return [Label() for _ in strings]
        stand = _stand_of(pool)
        if self._known_labels is None or self._known_labels[0] != stand:
            self._known_labels = stand, Labels(pool)
        return [self._known_labels[1].of(string) for string in strings]

    def _narrow(self, progress: Progress | None = None) -> Narrowed | None:
        """The space as the filters leave it, worked out once; `None` without filters."""
        settings = self.store.settings
        if not settings.filters:
            return None
        space = self.space
        if self._narrowed is None or self._narrowed.filters != settings.filters or self._narrowed_from is not space:
            self._narrowed_from = space
            self._narrowed = narrowed(space, replace(settings, pool=self.store.library), progress)
        return self._narrowed


def _identified(expected: Mapping[str, Any], rows: Iterable[Suggestion | Measurement]) -> dict[str, Any]:
    """What is said of a string, with what its owner calls it."""
    called = {row.string: row.identifier for row in rows if row.identifier}
    identifier = called.get(str(expected.get("string")))
    return dict(expected) | ({} if identifier is None else {"identifier": identifier})


def _stand_of(pool: dict[str, Any] | None) -> Any:
    """What tells whether a library has changed: what the campaign keeps of it, and when its files were written."""
    if pool is None:
        return None
    return pool, [stamp(file_and_part(one["path"])[0]) for one in (pool, *pool["added"])]
