"""Results on their way into the file of a campaign: one by one, and as tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from seqopt.campaign.columns import is_named_like_suggestion, suggestion_name
from seqopt.campaign.entries import ResultEntry, Results
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.results import check_entries, read_results
from seqopt.campaign.rows import Measurement, Suggestion
from seqopt.campaign.units import conversion_to, converted
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign
    from seqopt.data import ContextValue
    from seqopt.spaces import CandidateSet
    from seqopt.strategies import Strategy

logger = logging.getLogger(__name__)

SELECTIVE = ("one-hot", "codons", "vae:")
"""How the names of surrogates begin that may refuse a string; for all others, recording a result loads no model."""


class Recorder:
    """Holds results against what a campaign knows, and writes them into its file.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self.store = campaign.store
        self._selective: Strategy | None = None

    def record(
        self,
        what: str,
        value: float | None,
        *,
        failure: str | None,
        standard_error: float | None,
        replicate: bool,
        context: Mapping[str, ContextValue] | None,
        further: Mapping[str, float] | None,
        unit: str | None,
    ) -> list[Measurement]:
        """See `Campaign.record`."""
        if not isinstance(what, str):
            raise InputError(f"record takes the name of a suggestion or a string, not {what!r}; context= says how")
        if context is not None and not isinstance(context, Mapping):
            raise InputError(f"context is {context!r}; expected names and values, such as {{'fidelity': 'assay'}}")
        numbers = {"the value": value, "the standard error": standard_error, **(further or {})}
        value, standard_error, *others = (_as_float(name, number) for name, number in numbers.items())
        further = {name: number for name, number in zip(further or {}, others, strict=True) if number is not None}
        conversion = None if unit is None else conversion_to(self.store.settings, unit)
        named = self.store.suggestion(what) is not None or self._alike(what) is not None or self._misnamed(what)
        entry = ResultEntry(
            string=None if named else what,
            identifier=what if named else None,
            value=value,
            failure=failure,
            standard_error=standard_error,
            context=dict(context or {}),
            further=dict(further or {}),
        )
        arguments = {"string": what}
        if conversion is not None:
            entry, arguments["unit"] = converted(entry, conversion), conversion.source.name
        with self.store.transaction("record", arguments) as change:
            results = check_entries([entry], self.store, self._identify, replicates=replicate)
            _refuse(results, partial=False)
            taken = change.add_measurements(results.records)
        for remark in results.warnings:
            logger.warning("%s", remark)
        return taken

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
        unit: str | None,
    ) -> tuple[list[Measurement], Results]:
        """See `Campaign.record_file`."""
        arguments = {"file": Path(path).name, "partial": partial, "replicates": replicates}
        if decimal_comma:
            arguments["decimal_comma"] = True
        if unit is not None:
            arguments["unit"] = unit
        with self.store.transaction("import" if history else "record", arguments) as change:
            results = read_results(
                path,
                self.store,
                self._identify,
                value_column=value_column,
                string_column=string_column,
                replicates=replicates,
                history=history,
                decimal_comma=decimal_comma,
                unit=unit,
            )
            _refuse(results, partial=partial)
            change.arguments.update(results.arguments)
            return change.add_measurements(results.records), results

    def _alike(self, what: str) -> Suggestion | None:
        """The suggestion whose name is meant by ``b3-7``, unless that is a string of the campaign itself."""
        found = self.store.suggestion(suggestion_name(what))
        return None if found is None or any(row.string == what for row in self.store.suggestions()) else found

    def _misnamed(self, what: str) -> bool:
        """Whether a text is the name of a suggestion that there is not, and no string that the campaign knows.

        Where any text is a string, a slip of the pen would teach the model a candidate that there is not.
        """
        from seqopt.strings.identity import identity_keys

        pool = self.store.settings.pool
        if pool is None or not is_named_like_suggestion(what):
            return False
        (key,) = identity_keys([what], pool["kind"], standardize=pool["standardize"])
        if key is None:
            return True
        known = any(row.key == key for row in self.store.measurements())
        return not known and cast("CandidateSet", self._campaign.space).index_of(key) is None

    def _identify(self, string: str) -> str:
        key = self._key(string)
        settings = self.store.settings
        if not settings.parts.keys() & {"surrogate", "strategy"} and not settings.surrogate.strip().lower().startswith(
            SELECTIVE
        ):
            return key
        from seqopt.campaign.parts import made_optimizer

        if self._selective is None:
            self._selective = made_optimizer(settings, self._campaign.space, self._campaign.space).strategy
        for message in self._selective.unsupported([key]).values():
            name = settings.surrogate or settings.acquisition
            raise InputError(
                f"the {'surrogate' if settings.surrogate else 'strategy'} {name} cannot learn from it: {message}"
            )
        return key

    def _key(self, string: str) -> str:
        from seqopt.strings.identity import explain_rejection, identity_keys
        from seqopt.strings.notations import reference_to_structure

        pool = self.store.settings.pool
        if pool is not None:
            # The library itself, which may be large, is not needed for that.
            (found,) = identity_keys([string], pool["kind"], standardize=pool["standardize"])
            if found is None:
                what = reference_to_structure(string) if pool["kind"] == "molecule" else None
                why = f"{what}, which does not say how it is made" if what else explain_rejection(string, pool["kind"])
                raise InputError(f"{string!r} is not a valid {pool['kind']}: {why}")
            return found
        from seqopt.spaces import EvolvableSpace

        key = self._campaign.space.key(string)
        if isinstance(self._campaign.space, EvolvableSpace):
            self._campaign.space.from_string(string)  # complains of a string outside the space
        return key


def _as_float(name: str, number: object) -> float | None:
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
        listed = "\n".join(f"  {problem}" for problem in results.problems)
        raise CampaignError(f"nothing was recorded:\n{listed}")
    if not results.records:
        raise CampaignError(f"nothing was recorded: {results.source or 'the entry'} holds no result")
