"""What a campaign's model can be asked: predictions of any strings, rankings, and what a prediction rests on."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seqopt.campaign.errors import CampaignError
from seqopt.errors import InputError
from seqopt.utils.arguments import checked_integer

if TYPE_CHECKING:
    from seqopt.campaign.inquiry import Criterion, Explanation, Predicted, PredictedStrings
    from seqopt.campaign.labels import Label
    from seqopt.campaign.naming import Naming
    from seqopt.campaign.session import Session
    from seqopt.campaign.store import CampaignStore
    from seqopt.spaces import Space

logger = logging.getLogger("seqopt.campaign.campaign")

SHOWN = 3
"""Most strings that an error names."""


class Inquiring:
    """The part of `seqopt.campaign.Campaign` that says what its model thinks; nothing is written."""

    store: CampaignStore

    if TYPE_CHECKING:

        @property
        def space(self) -> Space: ...

        @property
        def _naming(self) -> Naming: ...

        def session(self) -> Session: ...

        def _check_by_hand(self) -> None: ...

        def _labels(self, strings: Sequence[str]) -> list[Label]: ...

    def predict(self, strings: Iterable[str]) -> PredictedStrings:
        """What is predicted of any strings, from everything recorded so far; they need not be candidates.

        A model is fitted, as for a suggestion; nothing is written.

        Args:
            strings: Strings of the kind that is searched, names of suggestions, identifiers of the library or, where a
                parent is known, names of variants.

        Returns:
            In their order, for each the central prediction, the central 90 % of a measurement and of the true value in
            the user's units, whether it was measured already, and the nearest measured string.

        Raises:
            InputError: For strings that are not valid, or the name of a suggestion that there is not; it says which and
                why.
            ModelError: Before two values have been recorded, or if the campaign has no model.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from seqopt.campaign import Campaign
            >>> from seqopt.spaces import StringSpace
            >>> folder = tempfile.TemporaryDirectory()
            >>> campaign = Campaign.create(
            ...     Path(folder.name, "a.seqopt"), StringSpace("01", 12), objective="activity", batch_size=4
            ... )
            >>> for suggestion in campaign.suggest():
            ...     _ = campaign.record(suggestion.name, suggestion.string.count("1"))
            >>> (found,) = campaign.predict(["111111111111"])
            >>> found.low < found.true_low < found.predicted < found.true_high < found.high, found.status
            (True, '')
            >>> campaign.close(); folder.cleanup()
        """
        from seqopt.campaign.inquiry import PredictedStrings, predict

        if isinstance(strings, str):
            raise InputError(f"predict takes a list of strings: predict([{strings!r}])")
        strings = list(strings)
        found, wrong = [], []
        for number, what in enumerate(strings, 1):
            try:
                string, identifier = self._meant(what)
                found.append((string, self._naming.key(string), identifier))
            except (InputError, CampaignError) as error:
                wrong.append(f"string {number} of {len(strings)}: {error}")
        if wrong:
            further = "; and others" if len(wrong) > SHOWN else ""
            raise InputError("; ".join(wrong[:SHOWN]) + further)
        if said := self._naming.describe_left_out(one[0] for one in found):
            logger.warning("%s", said)
        rows = predict(self.session().optimizer, [one[0] for one in found], [one[1] for one in found])
        return PredictedStrings(self._identified(rows, [one[2] for one in found]), self.store.settings)

    def _meant(self, what: str) -> tuple[str, str | None]:
        """The string that is meant, and what its owner calls it, where it was named."""
        if not isinstance(what, str):
            raise InputError(f"{what!r} is no string")
        if (suggestion := self._naming.suggestion(what)) is not None:
            return suggestion.string, suggestion.identifier
        if (owned := self._naming.owned(what)) is not None:
            return owned, what
        return self._naming.called(what), None

    def predict_file(self, path: str | os.PathLike[str], *, column: str | None = None) -> PredictedStrings:
        """What is predicted of the strings of a file; of equal ones the first is taken.

        The table of the predictions (`seqopt.campaign.inquiry.PredictedStrings.to_pandas`) has the other columns of the
        file, too, such as names and notes. What of the file cannot be used is left out, and logged as a warning with
        its line.

        Args:
            path: A file as `seqopt.datasets.read_pool` takes.
            column: The column of strings, if it is not to be recognised.

        Raises:
            InputError: If the file cannot be read, or holds nothing that is valid.
            ModelError: As `predict`.
        """
        from seqopt.campaign.inquiry import PredictedStrings, predict, read_strings

        found = read_strings(path, column, self.store.settings, self.space, self._naming.key)
        for text in (*found.left_out, self._naming.describe_left_out(found.strings)):
            if text:
                logger.warning("%s", text)
        rows = self._identified(predict(self.session().optimizer, found.strings, found.keys))
        return PredictedStrings(rows, self.store.settings, found.beside)

    def rank(self, n: int | None = 20, *, by: Criterion = "mean") -> PredictedStrings:
        """The best candidates that have no result yet and pass the `filters`, the best first.

        Args:
            n: How many; `None` for all.
            by: ``"mean"``: what is predicted of them; ``"improvement"``: the probability that their true value is
                better than what is expected of the best measured one; ``"acquisition"``: what the next suggestion is
                chosen by, given the open ones, which are left out.

        Raises:
            InputError: For another criterion, or where strings are generated.
            ModelError: As `predict`; or if the model cannot say.
        """
        from seqopt.campaign.inquiry import PredictedStrings, rank

        n = None if n is None else checked_integer("the number of candidates", n, 1)
        self._check_by_hand()  # which knows what passes the filters of a run
        rows = rank(self.session().optimizer, n, by)
        return PredictedStrings(self._identified(rows), self.store.settings)

    def _identified(self, rows: Sequence[Predicted], given: Sequence[str | None] | None = None) -> list[Predicted]:
        """Predictions with what the library calls their strings, where its user has not said it."""
        own = [None] * len(rows) if given is None else given
        labels = self._labels([row.string for row in rows])
        return [
            replace(row, identifier=name or label.identifier)
            for row, name, label in zip(rows, own, labels, strict=True)
        ]

    def recommend(self) -> PredictedStrings:
        """The answer of the campaign: the measured string whose target is expected to be the best, and its prediction.

        Of several ways to measure, a string counts in whichever it was measured: also one that was only docked may be
        expected to be the best.

        Raises:
            ModelError: As `predict`; or before two values.
        """
        return self.predict([self.session().optimizer.recommend().string])

    def explain(self, what: str) -> Explanation:
        """What is predicted of a suggestion or any string, how it stands, and what the prediction rests on.

        Args:
            what: The name of a suggestion (``"B03-07"``, or ``"b3-7"``), an identifier of the library, or a string.

        Raises:
            InputError: If it is none of these.
            ModelError: As `predict`.
        """
        from seqopt.campaign.inquiry import explain

        if not isinstance(what, str):
            raise InputError(f"explain takes the name of a suggestion or a string, not {what!r}")
        found = self._naming.suggestion(what)
        string = self._naming.called(what) if found is None else found.string
        key = self._naming.key(string) if found is None else found.key
        name, reason = ("", {}) if found is None else (found.name, found.reason)
        explanation = explain(self.session().optimizer, self.store.settings, name, string, key, reason)
        identifier = found.identifier if found is not None else self._labels([string])[0].identifier
        return replace(explanation, prediction=replace(explanation.prediction, identifier=identifier))
