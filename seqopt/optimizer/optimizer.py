"""The ask/tell optimiser."""

from __future__ import annotations

import copy
import itertools
import logging
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from seqopt.acquisition import Acquisition, RandomAcquisition, resolve_acquisition
from seqopt.errors import ExhaustedError, InputError, ModelError
from seqopt.evaluation import Direction
from seqopt.models import NoiseAwareSurrogate, Surrogate, resolve_surrogate, unsupported
from seqopt.optimizer.batch import Batch
from seqopt.optimizer.observations import Observation, Observations
from seqopt.optimizer.transforms import Transform, resolve_transform
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch, Search, Suggestion
from seqopt.search.protocols import CheckedSearch, StatefulSearch
from seqopt.spaces import CandidateSet, EvolvableSpace, PoolSpace, Space
from seqopt.utils.arguments import checked_integer
from seqopt.utils.shown import Tabulated

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

RECOMMENDATION = 1
"""Keeps the random numbers of `Optimizer.recommend` apart from those of `Optimizer.ask`."""

REDRAWS = 10
"""Times that random strings are drawn again in place of those that the surrogate cannot take."""

LARGEST_VALUE = 1e150
"""Larger values are not measurements, and their squares would overflow."""


@runtime_checkable
class SpaceBound(Protocol):
    """A surrogate that takes its tokeniser from the space."""

    def bind(self, space: Space) -> None:
        """Called once, before the first fit."""
        ...


def default_search(space: Space) -> Search:
    """The inner search of a space where none is chosen; see `Optimizer`."""
    if isinstance(space, PoolSpace):
        return PoolSearch()
    return GeneticSearch() if isinstance(space, EvolvableSpace) else RandomSearch()


class Optimizer(Tabulated):
    """Proposes strings to evaluate, learns from their values, and proposes again.

    Ask for any number of strings, tell results in any order and any number, ask again before all have arrived: the
    strings still out are pending, and a new batch is conditioned on them. Strings that were never asked for may be
    told too. A value of NaN is a failed evaluation: that string is not asked for again and no model sees it.

    Args:
        space: Where to search: a `seqopt.spaces.Space`, or a list of candidate strings.
        surrogate: A `seqopt.models.Surrogate`, the name of one of `seqopt.models.SURROGATES`, or ``"auto"``: see
            `seqopt.models.default_surrogate`.
        acquisition: A name (``gibbon``, ``logei``, ``ucb``, ``thompson``, ``mean``, ``random``) or an object.
        search: The inner search. ``"auto"`` scores the whole pool of a candidate set (`PoolSearch`), evolves strings
            where they can be mutated and crossed (`GeneticSearch`), and else takes the best of random ones
            (`RandomSearch`).
        batch_size: Strings per `ask`.
        initial: Random strings asked for before the model is used.
        direction: ``"maximize"`` or ``"minimize"``.
        transform: ``"log10"`` lets the model see log10 of the values; the user's units stay outside.
        seed: Fixes every random draw: the same seed and the same results told give the same suggestions.
        allow_repeats: For noisy objectives: whether measured strings may be suggested again. Pending and failed ones
            never are.

    Raises:
        InputError: For an argument out of its range.

    Example:
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, initial=3, batch_size=2, seed=1)
        >>> for _ in range(2):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [s.count("T") for s in strings])
        >>> len(optimizer.observations), optimizer.best.value
        (5, 4.0)
    """

    def __init__(
        self,
        space: Space | Iterable[str],
        *,
        surrogate: Surrogate | str = "auto",
        acquisition: Acquisition | str = "gibbon",
        search: Search | str = "auto",
        batch_size: int = 1,
        initial: int = 20,
        direction: Direction = "maximize",
        transform: Transform | str | None = None,
        seed: int = 0,
        allow_repeats: bool = False,
    ) -> None:
        self.batch_size = checked_integer("batch_size", batch_size, 1)
        self.initial = checked_integer(
            "initial", initial, 2, "expected an integer, at least 2: a model starts from so many values"
        )
        if direction not in ("maximize", "minimize"):
            raise InputError(f"direction is {direction!r}; expected 'maximize' or 'minimize'")
        self.seed = checked_integer("seed", seed, 0, "expected 0 or a positive integer")
        self.space: Space = space if isinstance(space, Space) else CandidateSet(space)
        self.surrogate = resolve_surrogate(surrogate, self.space)
        if isinstance(self.surrogate, SpaceBound):
            self.surrogate.bind(self.space)
        self.acquisition = resolve_acquisition(acquisition)
        self.search: Search
        if isinstance(search, str):
            if search != "auto":
                raise InputError(f"unknown search {search!r}: choose auto, or give an object")
            self.search = default_search(self.space)
        else:
            self.search = search
        if isinstance(self.search, CheckedSearch):
            self.search.check(self.space, self.surrogate, self.acquisition)
        self.direction: Direction = direction
        self.transform = resolve_transform(transform)
        self.allow_repeats = allow_repeats
        self.observations = Observations()
        self._asks = 0
        self._batches = 0
        self._hyperparameters: dict[str, float] = {}
        self._measurements: dict[str, tuple[float | None, float | None]] = {}
        self._sign = 1.0 if direction == "maximize" else -1.0

    def ask(self, n: int | None = None) -> Batch:
        """The next strings to evaluate, as the space's owner wrote them; they are pending from now on.

        Args:
            n: How many. Default: what the initial design still lacks, then ``batch_size``. Fewer come back only when
                the space holds no more.

        Returns:
            A list of strings, which a notebook shows with what is predicted of each.

        Raises:
            InputError: If ``n`` < 1.
            ExhaustedError: If nothing is left to suggest.
        """
        if n is None:
            missing = self.initial - len(self.observations)
            n = missing if missing > 0 else self.batch_size
        n = checked_integer("the number of strings", n, 1)
        rng = np.random.default_rng([self.seed, self._asks])
        batch = self._batches + 1 if len(self.observations) >= self.initial else 0
        suggestions = self._suggest(n, rng) if self._model_ready() else self._random(n, rng)
        if not suggestions:
            raise ExhaustedError(
                f"all {len(self.observations.seen):,} strings have been suggested already: nothing is left"
            )
        self._asks += 1
        self._measurements = {}
        self._batches = batch
        for suggestion in suggestions:
            mean, std = self._in_user_units(suggestion.predicted_mean, suggestion.predicted_std)
            spread = suggestion.measurement_std
            measurement = self._in_user_units(
                suggestion.predicted_mean, suggestion.predicted_std if spread is None else spread
            )
            self._measurements[suggestion.key] = measurement
            context = {
                "batch": batch,
                "predicted_mean": mean,
                "predicted_std": std,
                "acquisition": suggestion.acquisition,
            }
            self.observations.add(Observation(suggestion.string, suggestion.key, "pending", context=context))
        return Batch(self.observations.rows[-len(suggestions) :], self.space.kind)

    def predicted_measurement(self, key: str) -> tuple[float | None, float | None]:
        """Mean and standard deviation of a measurement, noise included, of a string of the last `ask`.

        Args:
            key: Identity of the string.

        Returns:
            Both in the user's units; `None` for a random string.

        Raises:
            KeyError: For a string that was not in the last batch.
        """
        return self._measurements[key]

    def tell(
        self,
        strings: Sequence[str],
        values: Sequence[float],
        *,
        standard_errors: Sequence[float | None] | None = None,
        errors: Sequence[str | None] | None = None,
        seconds: Sequence[float | None] | None = None,
    ) -> None:
        """Record results.

        Args:
            strings: Any strings, asked for or not. One that is pending is so no longer. They must be of the space's
                kind, and in the space where strings are made up (a pool may learn from strings that it does not hold).
            values: One value per string, in the user's units. NaN, infinity, or more than 1e150 in size (a sentinel,
                not a measurement) records a failed evaluation.
            standard_errors: Known standard error of each value, in the user's units; `None` where it is not known. The
                model learns how noisy values are besides.
            errors: Why each failed evaluation failed.
            seconds: How long each evaluation took.

        Raises:
            InputError: If the numbers differ, a string is invalid or not in the space, a value is no number, or has no
                image under the transform, or if the surrogate cannot take a string (of another length for ``one-hot``,
                unreadable for an autoencoder); then nothing is recorded.
        """
        if isinstance(strings, str):
            raise InputError(f"tell takes lists: tell([{strings!r}], [value])")
        try:
            numbers = [float(value) for value in np.asarray(values, dtype=np.float64).reshape(-1)]
        except (TypeError, ValueError):
            raise InputError(f"values must be numbers, one per string; got {values!r}") from None
        # Of a table's column, only the values count.
        standard_errors = None if standard_errors is None else list(standard_errors)
        lists: tuple[tuple[str, Sequence[Any] | None], ...] = (
            ("values", numbers),
            ("standard errors", standard_errors),
            ("errors", errors),
            ("seconds", seconds),
        )
        for name, given in lists:
            if given is not None and len(given) != len(strings):
                raise InputError(f"{len(strings)} strings but {len(given)} {name}; give one for each string")
        known = [None if standard_errors is None else _known_variance(standard_errors[i]) for i in range(len(strings))]
        if any(known) and not getattr(self.surrogate, "takes_noise_variance", False):
            raise InputError(
                f"{type(self.surrogate).__name__} cannot take standard errors into account: leave them out"
            )
        keys = [self.space.key(string) for string in strings]
        if isinstance(self.space, EvolvableSpace):
            for string, key in zip(strings, keys, strict=True):
                if key not in self.observations.seen:
                    self.space.from_string(string)
        measured = [math.isfinite(value) and abs(value) <= LARGEST_VALUE for value in numbers]
        for message in unsupported(self.surrogate, list(itertools.compress(keys, measured))).values():
            raise InputError(f"{message}: leave this string out, or choose another surrogate")
        for value, usable in zip(numbers, measured, strict=True):
            if usable:
                self.transform.forward(value)
        for i, (string, key, value) in enumerate(zip(strings, keys, numbers, strict=True)):
            row = self.observations.resolve(key)
            if row is None:
                row = Observation(string, key, "pending", context={"batch": self._batches})
                self.observations.add(row)
                self.observations.resolve(key)
            row.status = "ok" if measured[i] else "failed"
            row.values = (value,) if row.status == "ok" else ()
            variance = known[i]
            row.noise_variance = (variance,) if row.values and variance is not None else None
            row.context["error"] = (errors[i] if errors else None) or ("" if row.values else f"the value is {value:g}")
            row.context["seconds"] = seconds[i] if seconds else None

    @property
    def best(self) -> Observation:
        """The best measured row.

        Raises:
            ModelError: Before any value has been told.
        """
        best = self.best_of(self.observations.rows)
        if best is None:
            raise ModelError("nothing has been measured yet: tell some values first")
        return best

    def best_of(self, rows: Sequence[Observation]) -> Observation | None:
        """The best measured one of some rows, the first of equals; `None` if none is measured."""
        measured = [row for row in rows if row.status == "ok"]
        return max(measured, key=lambda row: self._sign * row.value) if measured else None

    def to_pandas(self) -> pd.DataFrame:
        """Everything suggested or told, one row each, with the columns of ``evaluations.csv``."""
        return self.observations.to_frame()

    @property
    def pending(self) -> list[str]:
        """Suggested strings that await a result."""
        return [row.string for row in self.observations.pending]

    @property
    def batches(self) -> int:
        """Batches suggested since the initial design."""
        return self._batches

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Parameters of the model that chose the last batch; empty before the first fit."""
        return dict(self._hyperparameters)

    def state_dict(self) -> dict[str, Any]:
        """Everything that `ask` depends on besides the constructor's arguments, as JSON values."""
        return {
            "asks": self._asks,
            "batches": self._batches,
            "surrogate": self.surrogate.state_dict(),
            **({"search": self.search.state_dict()} if isinstance(self.search, StatefulSearch) else {}),
            "hyperparameters": self.hyperparameters,
            "observations": [
                {
                    "string": row.string,
                    "key": row.key,
                    "status": row.status,
                    "values": list(row.values),
                    "noise_variance": None if row.noise_variance is None else list(row.noise_variance),
                    "context": row.context,
                }
                for row in self.observations.rows
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`, in an optimiser made with the same arguments: it goes on as the saved one would."""
        self.observations = Observations()
        for row in state["observations"]:
            noise = row["noise_variance"]
            self.observations.add(
                Observation(
                    row["string"],
                    row["key"],
                    row["status"],
                    tuple(row["values"]),
                    None if noise is None else tuple(noise),
                    dict(row["context"]),
                )
            )
        self.replay_ask([], state)

    def replay_ask(self, rows: Sequence[dict[str, Any]], state: dict[str, Any]) -> None:
        """Repeat a recorded `ask` without computing it: ``rows`` become pending, counters and surrogate as recorded."""
        for row in rows:
            self.observations.add(Observation(row["string"], row["key"], "pending", context=dict(row["context"])))
        self._asks = state["asks"]
        self._batches = state["batches"]
        self.surrogate.load_state_dict(state["surrogate"])
        if isinstance(self.search, StatefulSearch) and "search" in state:
            self.search.load_state_dict(state["search"])
        self._hyperparameters = dict(state["hyperparameters"])

    def _model_ready(self) -> bool:
        values = [row.value for row in self.observations.with_status("ok")]
        if len(self.observations) < self.initial:
            return False
        if len(values) < 2 and self.observations.pending:
            return False  # of an asynchronous run, whose first results have yet to come
        if len(values) < 2:
            logger.warning(
                "%d of %d evaluations succeeded; a model needs two, so the next strings are random",
                len(values),
                len(self.observations),
            )
            return False
        if min(values) == max(values):
            # A model of equal values only knows which strings differ most from those seen, and they are odd ones.
            logger.warning("all %d values equal %g, so the next strings are random", len(values), values[0])
            return False
        return True

    def _suggest(self, n: int, rng: np.random.Generator) -> list[Suggestion]:
        if isinstance(self.acquisition, RandomAcquisition):
            return self._random(n, rng)
        self._fit(self.surrogate, self.observations.with_status("ok"), rng)
        self._hyperparameters = dict(getattr(self.surrogate, "hyperparameters", {}))
        pending = [row.key for row in self.observations.pending]
        refused = unsupported(self.surrogate, pending)
        suggestions = self.search.suggest(
            n,
            space=self.space,
            surrogate=self.surrogate,
            acquisition=self.acquisition,
            excluded=self._unavailable,
            pending=[key for place, key in enumerate(pending) if place not in refused],
            rng=rng,
        )
        if len(suggestions) < n:
            chosen = {suggestion.key for suggestion in suggestions}
            suggestions += self._random(n - len(suggestions), rng, chosen)
        return suggestions

    def recommend(self) -> Observation:
        """The measured string with the best posterior mean: the answer of a search whose measurements are noisy.

        `best` is the one with the best measurement, which noise flatters.

        Returns:
            Its last measured row.

        Raises:
            ModelError: Before two values have been told.
        """
        measured = self.observations.with_status("ok")
        if len(measured) < 2:
            raise ModelError(f"{len(measured)} values have been told; a model needs two to recommend a string")
        # What is fitted here must leave no trace in later suggestions: a fit replaces what a surrogate holds.
        surrogate = copy.copy(self.surrogate)
        self._fit(surrogate, measured, np.random.default_rng([self.seed, self._asks, RECOMMENDATION]))
        mean, _ = surrogate.predict([row.key for row in measured])
        key = measured[int(np.argmax(mean))].key
        return next(row for row in reversed(measured) if row.key == key)

    def _fit(self, surrogate: Surrogate, measured: Sequence[Observation], rng: np.random.Generator) -> None:
        targets = [self._sign * self.transform.forward(row.value) for row in measured]
        keys = [row.key for row in measured]
        if not any(row.noise_variance for row in measured):
            surrogate.fit(keys, targets, rng=rng)
            return
        assert isinstance(surrogate, NoiseAwareSurrogate)  # `tell` takes no standard errors for another
        known = [
            self.transform.variance(row.value, row.noise_variance[0]) if row.noise_variance else 0.0 for row in measured
        ]
        surrogate.fit(keys, targets, rng=rng, noise_variance=known)

    @property
    def _unavailable(self) -> set[str]:
        """Keys that must not be suggested."""
        if not self.allow_repeats:
            return self.observations.seen
        return {row.key for row in self.observations.rows if row.status != "ok"}

    def _random(
        self, n: int, rng: np.random.Generator, excluded: set[str] | frozenset[str] = frozenset()
    ) -> list[Suggestion]:
        unavailable = self._unavailable | excluded
        found: dict[str, Suggestion] = {}
        refused: dict[int, str] = {}
        for _ in range(REDRAWS):
            # Enough are drawn that n are left even when every unavailable one is among them.
            drawn = self.space.sample(n + len(unavailable), rng)
            keys = [self.space.key(string) for string in drawn]
            refused = unsupported(self.surrogate, keys)
            for place, (string, key) in enumerate(zip(drawn, keys, strict=True)):
                if key not in unavailable and place not in refused:
                    found.setdefault(key, Suggestion(string, key))
            if len(found) >= n or not refused:
                break
        if refused and not found and not self.observations.seen:
            raise InputError(f"no string was found that the surrogate can take: {next(iter(refused.values()))}")
        return list(found.values())[:n]

    def _in_user_units(self, mean: float | None, std: float | None) -> tuple[float | None, float | None]:
        if mean is None or std is None:
            return None, None
        moments = self.transform.moments(self._sign * mean, std)
        return moments if all(map(math.isfinite, moments)) else (None, None)


def _known_variance(standard_error: float | None) -> float | None:
    """The square of a standard error; `None` where it is not known.

    Raises:
        InputError: If it is no number from 0.
    """
    if standard_error is None:
        return None
    try:
        number = float(standard_error)
    except (TypeError, ValueError):
        number = -1.0
    if math.isnan(number):
        return None
    if not 0 <= number <= LARGEST_VALUE:
        raise InputError(f"a standard error is {standard_error!r}; expected a number from 0, or None if it is unknown")
    return number**2
