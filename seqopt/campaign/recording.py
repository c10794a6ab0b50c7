"""Results on their way into the file of a campaign: one by one, and as tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqopt.campaign.answers import answered
from seqopt.campaign.cells import LIMIT_SIGNS, read_value
from seqopt.campaign.entries import Remark, ResultEntry, Results, first_of
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.naming import Naming
from seqopt.campaign.plates import PLATE
from seqopt.campaign.results import check_entries, read_results
from seqopt.campaign.rows import Censoring, Measurement
from seqopt.campaign.units import conversion_to, converted
from seqopt.errors import InputError, SeqoptError
from seqopt.utils.losses import is_lost

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.confirming import Well
    from seqopt.data import ContextValue

logger = logging.getLogger(__name__)


class Recorder:
    """Holds results against what a campaign knows, and writes them into its file.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.store = campaign.store
        self.naming = Naming(campaign)

    def record(
        self,
        what: str,
        value: float | str | None,
        *,
        failure: str | None,
        standard_error: float | None,
        replicate: bool,
        context: Mapping[str, ContextValue] | None,
        further: Mapping[str, float] | None,
        unit: str | None,
        force: bool,
        cost: float | None = None,
    ) -> list[Measurement]:
        """See `Campaign.record`."""
        if not isinstance(what, str):
            raise InputError(f"record takes the name of a suggestion or a string, not {what!r}; context= says how")
        if context is not None and not isinstance(context, Mapping):
            raise InputError(f"context is {context!r}; expected names and values, such as {{'fidelity': 'assay'}}")
        yes_no, answer = self.store.settings.yes_no, value
        value, censored = (None, None) if yes_no else as_limit(value)
        numbers = {"the value": value, "the standard error": standard_error, **(further or {})}
        value, standard_error, *others = (as_float(name, number) for name, number in numbers.items())
        further = {name: number for name, number in zip(further or {}, others, strict=True) if number is not None}
        if yes_no and unit is not None:
            raise InputError(f"results that are yes or no have no unit: leave {unit} out")
        conversion = None if unit is None else conversion_to(self.store.settings, unit)
        named = self.naming.is_named(what)
        well = None if named else self._well(what)
        if well is not None:
            replicate = True
            context = {**({} if well.plate is None else {PLATE: well.plate}), **(context or {})}
        entry = ResultEntry(
            string=well.string if well is not None else None if named else what,
            identifier=what if named else None,
            replicate=None if well is None else well.label,
            value=value,
            failure=failure,
            standard_error=standard_error,
            context=dict(context or {}),
            further=dict(further or {}),
            censored=censored,
            cost=as_float("the cost", cost),
        )
        if yes_no and answer is not None:
            entry = as_answer(entry, answer)
        arguments = {"string": what}
        if conversion is not None:
            entry, arguments["unit"] = converted(entry, conversion), conversion.source.name
        with self.store.transaction("record", arguments) as change:
            results = check_entries(
                [entry], self.store, self.naming.key, self.naming.lookup(), replicates=replicate, force=force
            )
            _refuse(results, partial=False)
            results = self._with_left_out(results)
            taken = change.add_measurements(results.records)
            for number, reason in results.discards.items():
                change.discard([taken[number].id], reason)
            change.arguments["told"] = ", ".join(row.told for row in taken)
        for remark in results.warnings:
            logger.warning("%s", remark)
        return taken

    def _well(self, what: str) -> Well | None:
        """The well of a confirmation that a label names, such as C2-001; `None` for anything else."""
        from seqopt.campaign.confirming import label_of, well_named

        if not (label := label_of(what)):
            return None
        try:
            self.naming.key(what)
        except SeqoptError:
            return well_named(label, self.store.settings)
        return None  # it is a string of the space

    def _with_left_out(self, results: Results) -> Results:
        """Results, with a warning of strings that constraints leave out of the space."""
        learned = (row.key for row in results.records if not is_lost(row.failure))
        if not (said := self.naming.describe_left_out(learned)):
            return results
        remark = Remark(f"{said}; the model learns from what is left out, but does not suggest it", results.source)
        return replace(results, warnings=(*results.warnings, remark))

    def record_file(
        self,
        path: str | os.PathLike[str],
        *,
        value_column: str | None,
        string_column: str | None,
        replicates: bool,
        partial: bool,
        history: bool,
        decimal_comma: bool | None,
        force: bool,
        unit: str | None,
        context: Mapping[str, ContextValue] | None = None,
    ) -> tuple[list[Measurement], Results]:
        """See `Campaign.record_file`."""
        arguments = {"file": Path(path).name, "partial": partial, "replicates": replicates}
        arguments |= {name: True for name, given in {"decimal_comma": decimal_comma, "force": force}.items() if given}
        if unit is not None:
            arguments["unit"] = unit
        if context:
            arguments["context"] = dict(context)
        with self.store.transaction("import" if history else "record", arguments) as change:
            results = read_results(
                path,
                self.store,
                self.naming.key,
                self.naming.lookup(),
                value_column=value_column,
                string_column=string_column,
                replicates=replicates,
                history=history,
                decimal_comma=decimal_comma,
                unit=unit,
                force=force,
                context=context,
            )
            _refuse(results, partial=partial)
            results = self._with_left_out(results)
            change.arguments.update(results.arguments)
            taken = change.add_measurements(results.records)
            for number, reason in results.discards.items():
                change.discard([taken[number].id], reason)
            known = {row.key for row in self.store.exclusions()}
            change.exclude(row for row in results.exclusions if row.key not in known)
            return taken, results


def as_answer(entry: ResultEntry, value: object) -> ResultEntry:
    """An entry with a result that is yes or no: a word, a truth value, 1 or 0, or hits of wells such as ``"3 of 8"``.

    Raises:
        InputError: For what is no such result; the message names it.
    """
    if type(value).__name__ in ("bool", "bool_"):  # numpy's own, too, which is not loaded for this
        value = "hit" if value else "no hit"
    number = None if isinstance(value, str) else as_float("the value", value)
    text = value if isinstance(value, str) else f"{number:g}"
    try:
        return answered(entry, text)
    except InputError as error:
        raise InputError(f"the value {text!r} {error}") from error


def as_limit(value: float | str | None) -> tuple[float | str | None, Censoring | None]:
    """A value, or the number of a limit that is given as text, and its side.

    Raises:
        InputError: For a limit whose number cannot be read.
    """
    if not isinstance(value, str) or value.strip()[:1] not in LIMIT_SIGNS:
        return value, None
    number, censored, problem = read_value(value.strip())
    if problem:
        raise InputError(f"the value {value!r} {problem}")
    return number, censored


def as_float(name: str, number: object) -> float | None:
    """A number as somebody gave it.

    Raises:
        InputError: If it is none; a truth value and a text are none, either.
    """
    if number is None:
        return None
    if isinstance(number, bool | str) or not hasattr(number, "__float__"):
        raise InputError(f"{name} is {number!r}; expected a number")
    return float(number)


def _refuse(results: Results, *, partial: bool) -> None:
    if results.problems and not (partial and results.records):
        listed = "\n".join(f"  {problem}" for problem in first_of(results.problems))
        raise CampaignError(f"nothing was recorded:\n{listed}")
    if not results.records and not results.exclusions:
        raise CampaignError(f"nothing was recorded: {results.source or 'the entry'} holds no result")
