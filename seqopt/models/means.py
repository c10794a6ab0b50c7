r"""Prior means that are linear in known features of strings, with coefficients that the data decide.

The model of a value is :math:`y = a + \phi(x)^T b + f(x) + \varepsilon`, with f a Gaussian process and coefficients
:math:`b \sim \mathcal N(0, s I)` for s the variance of f. They are integrated out: that is a Gaussian process with the
covariance :math:`s\,(k(x, x') + \phi(x)^T \phi(x'))`, so that whatever is predicted counts what is not known of b, too.
Given n values with covariance C (all of that and the noise),

.. math::

    \mathrm E[b] = s\, \Phi^T C^{-1} (y - a), \qquad \mathrm{Cov}[b] = s I - s^2\, \Phi^T C^{-1} \Phi .

Features have mean 0 and variance 1 over a pool, so one that tells nothing gets a coefficient near 0 after a few values,
and before that adds about as much variance as f has.

References:
    O'Hagan, A. (1978). Curve fitting and optimal design for prediction. J. R. Stat. Soc. B 40, 1-42.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 2.7.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.datasets import read_pool
from seqopt.encoding import FeatureRows
from seqopt.encoding.feature_file import checksum
from seqopt.encoding.fields import Fields
from seqopt.errors import InputError, ModelError
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable, NotConfigurableError
from seqopt.utils.mean_effect import MeanEffect

MEAN_FIELD = "mean"
"""The field of rows that holds features of the prior mean."""

LISTED = 1_000
"""Most values that a description lists."""

Z90 = 1.6448536269514722
"""Half the width of the central 90 % of a normal distribution, in standard deviations."""


@runtime_checkable
class BoundBasis(Protocol):
    """Features of the strings of one space; a `seqopt.encoding.Featurizer`.

    Attributes:
        name: Which ones: equal names mean equal features.
        names: What each is called.
        size: How many there are.
    """

    name: str
    names: tuple[str, ...]
    size: int

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """``n x size``: of about mean 0 and variance 1 over the space."""
        ...

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings have no features, by their indices; empty where all have."""
        ...


@runtime_checkable
class MeanBasis(Protocol):
    """Features that a prior mean is linear in, before it is known of which space."""

    def bound(self, space: Space) -> BoundBasis:
        """The features of the strings of a space.

        Raises:
            InputError: If strings of it have none.
        """
        ...


class ColumnMean(Configurable):
    """A prior mean that is linear in a column of numbers: zero-shot scores of a language model, or a cheap score.

    Args:
        source: The file of a pool that has the column, as `seqopt.datasets.read_pool` takes it; or numbers by strings.
        column: The name of the column; of numbers by strings what they are called.
        strings: The column of strings of the file.
        kind: What the strings are, where the file does not show it.
        standardize: As for `seqopt.datasets.read_pool`.
        parent: As for `seqopt.datasets.read_pool`: strings of the file may be names of its variants.
        sha256: The checksum that the file had; refused if it has another.

    Raises:
        InputError: If there is no such file, it has changed or lacks the column. Later, if strings of a space have no
            number, or all have the same.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> basis = ColumnMean({"AC": 1.0, "AD": 2.0, "AE": 3.0}, "zero_shot").bound(CandidateSet(["AC", "AD", "AE"]))
        >>> basis(["AD", "AE"]).round(3).tolist()
        [[0.0], [1.225]]
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, float],
        column: str,
        *,
        strings: str | None = None,
        kind: str | None = None,
        standardize: bool = False,
        parent: str | None = None,
        sha256: str | None = None,
    ) -> None:
        self.column = column
        self.strings = strings
        self.parent = parent
        self.kind = kind
        self.standardize = standardize
        self.path = None if isinstance(source, Mapping) else Path(source).absolute()
        self.values: dict[str, float] = dict(source) if isinstance(source, Mapping) else {}
        if self.path is not None:
            self.sha256 = unchanged(self.path, sha256, f"the column {column!r} of the prior mean")
            pool = read_pool(
                self.path, column=strings, kind=kind, standardize=standardize, further_values=[column], parent=parent
            )
            numbers = pool.further[column]
            missing = np.flatnonzero(~np.isfinite(numbers))
            if len(missing):
                row = int(missing[0])
                raise InputError(
                    f"{self.path.name} has no number in the column {column!r} for {len(missing):,} of {len(pool):,} "
                    f"strings, the first of them {pool.strings[row]!r} (line {pool.lines[row]}): fill them in, or "
                    "leave these strings out"
                )
            self.values = dict(zip(pool.keys, numbers.tolist(), strict=True))
        else:
            self.sha256 = ""

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; a file is named, with its checksum.

        Raises:
            NotConfigurableError: For more than `LISTED` numbers that are in no file.
        """
        if self.path is None and len(self.values) > LISTED:
            raise NotConfigurableError(
                f"a prior mean of {len(self.values):,} numbers is too long for a description: keep it as a column of a "
                "file, and name that"
            )
        return {
            "source": self.values if self.path is None else str(self.path),
            "column": self.column,
            "strings": self.strings,
            "kind": self.kind,
            "standardize": self.standardize,
            **({} if self.parent is None else {"parent": self.parent}),
            "sha256": self.sha256 or None,
        }

    def bound(self, space: Space) -> ColumnBasis:
        """See `MeanBasis`."""
        if not isinstance(space, PoolSpace):
            raise InputError(
                f"a column has numbers of listed strings, and a {type(space).__name__} makes its own: a prior mean by "
                "column goes with a pool"
            )
        values = self.values
        if self.path is None:
            values = {_key(space, string): number for string, number in values.items()}
        numbers = np.array([values.get(key, math.nan) for key in space.keys])
        missing = np.flatnonzero(~np.isfinite(numbers))
        if len(missing):
            raise InputError(
                f"the column {self.column!r} has no number for {len(missing):,} of {len(space):,} candidates, the "
                f"first of them {space.keys[int(missing[0])]!r}"
            )
        # By all strings of the column, so that filters of a pool do not change what a coefficient means.
        known = np.fromiter(values.values(), dtype=np.float64, count=len(values))
        spread = float(known.std())
        if not spread > 1e-12 * float(np.abs(known).max(initial=0.0)):
            raise InputError(f"the column {self.column!r} has the same number for all strings: it tells none apart")
        return ColumnBasis(self.column, values, float(known.mean()), spread)


class ColumnBasis:
    """A column of numbers, standardised; a `BoundBasis`.

    Args:
        column: Its name.
        values: Numbers by the keys of strings.
        centre: What is taken off.
        spread: What the rest is divided by.
    """

    size = 1

    def __init__(self, column: str, values: Mapping[str, float], centre: float, spread: float) -> None:
        self.name = f"column {column}"
        self.names: tuple[str, ...] = (column,)
        self.values = values
        self.centre = centre
        self.spread = spread

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """``n x 1``.

        Raises:
            InputError: For a string without a number.
        """
        for message in self.unsupported(strings).values():
            raise InputError(message)
        found = np.array([[self.values[string]] for string in strings]).reshape(-1, 1)
        return np.asarray((found - self.centre) / self.spread)

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """See `BoundBasis`."""
        return {
            place: f"{string!r} has no number in the column {self.names[0]!r} of the prior mean"
            for place, string in enumerate(strings)
            if string not in self.values
        }


def mean_effects(surrogate: object) -> list[MeanEffect]:
    """Coefficients of the prior mean of a fitted surrogate, those of its draws averaged; empty where it has none.

    Args:
        surrogate: One that `seqopt.models.SurrogatePlan` has made.

    Raises:
        ModelError: Before the first fit.

    Example:
        >>> from seqopt.models import SurrogatePlan
        >>> from seqopt.spaces import CandidateSet
        >>> strings = [a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]
        >>> rng = np.random.default_rng(0)
        >>> guess = {string: string.count("G") + 0.3 * float(rng.standard_normal()) for string in strings}
        >>> gp = SurrogatePlan("ngrams", mean=ColumnMean(guess, "guess")).for_space(CandidateSet(strings, kind="text"))
        >>> gp.fit(strings[::4], [float(string.count("G")) for string in strings[::4]], rng=rng)
        >>> (effect,) = mean_effects(gp)
        >>> effect.name, effect.lower > 0.0
        ('guess', True)
    """
    encoder = getattr(surrogate, "encoder", None)
    field = getattr(encoder, "fields", {}).get(MEAN_FIELD)
    if not isinstance(surrogate, GaussianSurrogate) or field is None:
        return []
    state = surrogate.fitted
    if not isinstance(state.encoded, Fields):
        raise ModelError("the surrogate was fitted without its prior mean")
    rows = state.encoded[MEAN_FIELD]
    assert isinstance(rows, FeatureRows)
    features = rows.dense()
    inverse = state.unconditioned.inverse
    means, variances = [], []
    for draw in range(state.draws):
        scale = float(state.scale[draw])
        solved = inverse[draw].numpy() @ features
        means.append(scale * (features.T @ state.alpha[draw].numpy()))
        variances.append(scale - scale**2 * np.square(solved).sum(0))
    mean, variance = np.array(means), np.array(variances).clip(min=0.0)
    spread = np.sqrt(variance.mean(0) + mean.var(0))
    names: tuple[str, ...] = field.featurizer.names
    return [
        MeanEffect(name, float(middle), float(middle - Z90 * error), float(middle + Z90 * error))
        for name, middle, error in zip(names, mean.mean(0), spread, strict=True)
    ]


def unchanged(path: Path, sha256: str | None, what: str) -> str:
    """The checksum of a file that a search was begun with.

    Raises:
        InputError: If it is not there, or not as it was.
    """
    if not path.is_file():
        raise InputError(
            f"there is no file {path}, which has {what}: put it there"
            + (" as it was when the search began" if sha256 else "")
        )
    found = checksum(path)
    if sha256 is not None and found != sha256:
        raise InputError(
            f"{path}, which has {what}, has changed since the search began (its SHA-256 is {found[:12]}..., and was "
            f"{sha256[:12]}...): put the file back as it was, or begin another search and import the results"
        )
    return found


def _key(space: PoolSpace, string: str) -> str:
    known = getattr(space, "known_key", None)
    found = known(string) if known is not None else None
    if found is not None:
        return str(found)
    try:
        return space.key(string)
    except InputError:
        return string
