"""What the predictions of a page rest on, asked of its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.data.transforms import Identity, LearnedTransform, Transform
from seqopt.encoding.features import TokensAndFeatures
from seqopt.encoding.fields import Fields
from seqopt.errors import ModelError
from seqopt.models import Contributions, FullyBayesianGP, contributions_of

IDENTITY = Identity()

MOST_EXPLAINED = 60
"""Strings of a page whose predictions are explained: as many suggestions as are drawn, and the best predicted."""

MOST_SHARED = 4e9
"""Products of the lengths of two strings, over all those compared for explanations, for a kernel on symbols: about
five seconds."""


EVALUATIONS = 2048
"""Predictions with parts left out for each string of a page: a quarter of what is asked for a single one."""

MASKED, MASKED_SYMBOL = 20.0, 160.0
"""Such products that take as long as one measured string, and as one symbol, costs such a prediction."""


@dataclass(frozen=True)
class Explained:
    """What the predictions of several strings rest on.

    Attributes:
        found: By key, in the user's direction and units.
        missing: Why it is not known of all of them, a sentence without its full stop; empty where it is.
    """

    found: Mapping[str, Contributions] = field(default_factory=dict)
    missing: str = ""


def explained(
    surrogate: Any,
    keys: Sequence[str],
    measured: Sequence[str],
    sign: float,
    transform: Transform = IDENTITY,
) -> Explained:
    """What the predictions of some strings rest on; nothing is fitted.

    Args:
        surrogate: Fitted.
        keys: The strings; the first `MOST_EXPLAINED` are explained.
        measured: What the surrogate was fitted to.
        sign: -1.0 where values of the model are those of the user times -1, else 1.0.
        transform: What the model has seen of the values; contributions under one that was learned are turned back.
    """
    found: dict[str, Contributions] = {}
    room = MOST_SHARED
    for key in list(dict.fromkeys(keys))[:MOST_EXPLAINED]:
        try:
            room -= _work(surrogate, key, measured)
            if room < 0:
                return Explained(found, "it would take too long for strings of this length and number")
            one = contributions_of(surrogate, key, evaluations=EVALUATIONS).signed(sign)
            if one.method == "shapley":
                room -= EVALUATIONS * (MASKED * len(measured) + MASKED_SYMBOL * len(key))
            found[key] = one.in_units(transform.inverse) if isinstance(transform, LearnedTransform) else one
        except ModelError as error:
            return Explained(found, str(error))
    return Explained(found)


def costly_kernel(surrogate: object) -> Any:
    """The kernel of a surrogate whose covariances take long: one with sub-sequences; `None` where there is none."""
    several = getattr(surrogate, "kernels", None) or [getattr(surrogate, "kernel", None)]
    return next((kernel for kernel in several if getattr(kernel, "costly", False)), None)


def symbol_counts(encoded: Any) -> npt.NDArray[np.float64]:
    """Numbers of symbols of encoded strings, whatever else stands beside their tokens."""
    symbols: Any = list(encoded.parts.values())[-1] if isinstance(encoded, Fields) else encoded
    symbols = symbols.tokens if isinstance(symbols, TokensAndFeatures) else symbols
    return np.asarray(symbols.lengths, dtype=np.float64)


def _work(surrogate: Any, key: str, measured: Sequence[str]) -> float:
    """Products of lengths: a string is compared with all measured ones, once for each of its symbols."""
    if costly_kernel(surrogate) is None:
        return 0.0
    lengths = symbol_counts(surrogate.encoder.encode([key, *measured]))
    # Sums are shared by draws that differ in the match decay alone: eight gap decays are what costs.
    draws = 8 if isinstance(surrogate, FullyBayesianGP) else 1
    return float(lengths[0] ** 2 * lengths[1:].sum() * draws)
