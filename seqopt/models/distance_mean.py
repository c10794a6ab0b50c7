"""A prior mean that falls with the distance from a lead: "near my lead, further if it pays".

Outside a box, something has to hold a search back where nothing is known. Shahriari et al. let the prior mean fall with
the distance from the box, so that every acquisition function keeps near what is known until values show that it pays to
go on. Here a distance between strings takes the place of that from a box.

References:
    Shahriari, B., Bouchard-Cote, A., de Freitas, N. (2016). Unbounded Bayesian optimization via regularization.
        AISTATS.
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, University of British Columbia, sections 6.1 to 6.3.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.models.lead_distances import LeadDistance
from seqopt.models.prior_means import PriorMean
from seqopt.utils.config import Configurable, argument_names

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

Shape = Literal["hinge", "quadratic"]

LONG = 1_000
"""Strings of a list from which on their distances are kept, until another such list is looked at."""

T = TypeVar("T")


@runtime_checkable
class Neighbourhood(Protocol):
    """Something that strings can be near to: a prior mean that has a radius."""

    distance: LeadDistance
    radius: float

    def distances(self, keys: Sequence[str]) -> FloatArray:
        """Distances of n strings."""
        ...


def penalty(distance: npt.ArrayLike, radius: float, shape: Shape = "hinge", beta: float = 1.0) -> FloatArray:
    r"""What a distance d costs, in units of the scale.

    The hinge is 0 within the radius R and :math:`((d - R) / (\beta R))^2` beyond, so 1 at twice the radius where beta
    is 1; the quadratic is :math:`(d / R)^2`.

    Args:
        distance: d, n of them, at least 0.
        radius: R, positive.
        shape: Which of them.
        beta: Of the hinge.

    Example:
        >>> penalty([0.2, 0.4, 0.6, 0.8], 0.4).round(3).tolist(), penalty([0.2, 0.4], 0.4, "quadratic").tolist()
        ([0.0, 0.0, 0.25, 1.0], [0.25, 1.0])
    """
    d = np.asarray(distance, dtype=np.float64)
    found: FloatArray = (
        (d / radius) ** 2 if shape == "quadratic" else (np.maximum(d - radius, 0.0) / (beta * radius)) ** 2
    )
    return found


class DistanceMean(Configurable):
    r"""The prior mean :math:`-\text{scale} \cdot \text{sd}(y) \cdot \xi(d(s))` of a string s at a distance d.

    :math:`\xi` is `penalty`, sd(y) the standard deviation of the values that the model is fitted to, so that ``scale``
    means the same for all objectives; a constant is learned besides. The distance, the radius and the scale are fixed:
    the marginal likelihood of values near the lead would take the penalty away. What has been measured stays as it was
    measured, and its neighbours are predicted from it: where values far from the lead are good, a search follows them.

    A bounded distance bounds the penalty: of molecules, with a radius of 0.4, it is at most 2.25 scale.

    Args:
        distance: A `seqopt.models.LeadDistance`; `seqopt.models.StringLength` for a penalty on length.
        radius: How far is near, in units of the distance.
        scale: How many standard deviations of the values a penalty of 1 is.
        shape: ``"hinge"``, which costs nothing within the radius, or ``"quadratic"``.
        beta: Of the hinge: it costs one scale at (1 + beta) radii.

    Raises:
        InputError: If the radius is not positive or at least the largest distance there is, or another number or name
            is out of range.

    Example:
        >>> from seqopt.models import EditDistance
        >>> mean = DistanceMean(EditDistance("MKLV"), radius=1)
        >>> (0.0 + mean(["MKLV", "MKLA", "MKAA", "MAAA"])).tolist()
        [0.0, 0.0, -1.0, -4.0]
        >>> mean.given(["MKLV", "MKLA"], np.array([1.0, 5.0]))(["MKAA"]).round(3).tolist()
        [-2.828]
    """

    def __init__(
        self,
        distance: LeadDistance,
        radius: float,
        scale: float = 1.0,
        shape: Shape = "hinge",
        beta: float = 1.0,
    ) -> None:
        if not isinstance(distance, LeadDistance) or isinstance(distance, type):
            raise InputError(
                f"{distance!r} is not a distance from a lead: give one of seqopt.models, EditDistance(...)"
            )
        limit = f" and below {distance.largest:.4g}" if math.isfinite(distance.largest) else ""
        unit = f", which is measured as {distance.label}" if distance.label else ""
        self.radius = _number("radius", radius, f"expected a number above 0{limit}{unit}")
        if self.radius >= distance.largest:
            raise InputError(f"radius is {radius:g}; expected a number above 0{limit}{unit}: all strings are nearer")
        self.scale = _number("scale", scale, "expected a number above 0 of standard deviations of the values")
        self.beta = _number("beta", beta, "expected a number above 0")
        if shape not in ("hinge", "quadratic"):
            raise InputError(f"shape is {shape!r}; expected 'hinge' or 'quadratic'")
        self.distance, self.shape = distance, shape
        self._unit = 1.0
        self._looked_at: tuple[Sequence[str], FloatArray] | None = None

    def given(self, strings: Sequence[str], values: FloatArray) -> PriorMean:
        """See `seqopt.models.DataMean`: the penalty in units of the values; as it is, where all are equal."""
        found = copy.copy(self)
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        found._unit = spread if spread > 0.0 and math.isfinite(spread) else 1.0
        return found

    def distances(self, keys: Sequence[str]) -> FloatArray:
        """Distances of n strings; of a long list, they are kept until another is looked at."""
        if self._looked_at is not None and self._looked_at[0] is keys:
            return self._looked_at[1]
        found = self.distance(keys)
        if len(keys) >= LONG:
            self._looked_at = keys, found
        return found

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Prior means of n strings, at most 0."""
        return -self.scale * self._unit * penalty(self.distances(strings), self.radius, self.shape, self.beta)

    def describe(self) -> str:
        """In words.

        Example:
            >>> from seqopt.models import EditDistance
            >>> DistanceMean(EditDistance("MKLV"), 3).describe()
            'within 3 by edit distance from MKLV, further if it pays'
        """
        return f"within {self.radius:g} by {self.distance.label}, further if it pays"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_looked_at": None}


def with_mean(surrogate: T, mean: PriorMean) -> T:
    """A surrogate like another one, not fitted, with a prior mean; the other stays as it is.

    Args:
        surrogate: One of ours with a Gaussian posterior: a `seqopt.models.StringGP`, a `seqopt.models.FullyBayesianGP`.
        mean: The prior mean.

    Raises:
        InputError: For a surrogate that takes no prior mean, or that has one.

    Example:
        >>> from seqopt.models import StringGP
        >>> with_mean(StringGP(restarts=3), lambda strings: [0.0] * len(strings)).restarts
        3
    """
    name = type(surrogate).__name__
    describe = getattr(surrogate, "config_arguments", None)
    if "mean" not in argument_names(type(surrogate)) or describe is None:
        raise InputError(f"{name} takes no prior mean, and so no lead: choose ssk, ngrams, mixture, tanimoto, ...")
    arguments = dict(describe())
    if arguments.get("mean") is not None:
        raise InputError(f"this {name} has a prior mean already: leave the lead out, or the other mean")
    if arguments.get("levels") is not None:
        raise InputError(f"this {name} has levels with units of their own, and a lead goes with one unit: leave it out")
    found: T = type(surrogate)(**{**copy.deepcopy(arguments), "mean": mean})
    return found


def _number(name: str, value: object, expected: str) -> float:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, bool) or not 0.0 < found < math.inf:
        raise InputError(f"{name} is {value!r}; {expected}")
    return found
