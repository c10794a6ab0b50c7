"""How good a variational autoencoder is: what it reconstructs, what its code holds, what its prior gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from seqopt.errors import InputError
from seqopt.vae.model import StringVAE

ACTIVE = 0.01
"""A dimension is active if the variance of its posterior means over strings exceeds this (Burda et al. 2016)."""


@dataclass(frozen=True)
class VAEEvaluation:
    """What was measured on strings that the model has not seen.

    Attributes:
        strings: Number of strings.
        characters_right: Share of characters that are the same, position by position, after encoding to the posterior
            mean and greedy decoding; of two strings of different length the longer one counts.
        strings_right: Share of strings that come back whole.
        kl: KL(q(z|s) || N(0, I)), mean over strings, in nats.
        kl_per_dimension: Its parts, the largest first.
        active: Number of active dimensions, see `ACTIVE`.
        samples: Number of points drawn from the prior N(0, I) and decoded.
        valid: Share of these that are valid; `None` if nothing says what is.
        distinct: Share of these that are different strings.
    """

    strings: int
    characters_right: float
    strings_right: float
    kl: float
    kl_per_dimension: tuple[float, ...]
    active: int
    samples: int
    valid: float | None
    distinct: float

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "kl_per_dimension": list(self.kl_per_dimension)}


def evaluate_vae(
    vae: StringVAE,
    strings: Sequence[str],
    *,
    rng: np.random.Generator,
    samples: int = 1_000,
    valid: Callable[[str], bool] | None = None,
) -> VAEEvaluation:
    """Measure a model.

    Args:
        vae: The model.
        strings: Strings that it has not seen.
        rng: Draws the samples.
        samples: Points drawn from the prior.
        valid: Says whether a decoded string is valid: grammatical, readable by RDKit.

    Raises:
        InputError: If there are no strings, or one that the model cannot read.

    References:
        Burda, Y., Grosse, R., Salakhutdinov, R. (2016). Importance weighted autoencoders. ICLR, section 5.2 (active
            dimensions).
    """
    if not strings:
        raise InputError("there are no strings to evaluate the model on")
    means, deviations = vae.posterior(strings)
    back = vae.decode(means)
    same = sum(a == b for string, other in zip(strings, back, strict=True) for a, b in zip(string, other, strict=False))
    longest = sum(max(len(string), len(other)) for string, other in zip(strings, back, strict=True))
    variances = deviations**2
    divergences = 0.5 * (means**2 + variances - 1.0 - np.log(variances)).mean(axis=0)
    drawn = vae.decode(rng.standard_normal((samples, vae.size)))
    return VAEEvaluation(
        strings=len(strings),
        characters_right=same / longest if longest else 1.0,
        strings_right=float(np.mean([string == other for string, other in zip(strings, back, strict=True)])),
        kl=float(divergences.sum()),
        kl_per_dimension=tuple(sorted(divergences.tolist(), reverse=True)),
        active=int((means.var(axis=0) > ACTIVE).sum()),
        samples=samples,
        valid=None if valid is None or not samples else float(np.mean([valid(string) for string in drawn])),
        distinct=len(set(drawn)) / samples if samples else 1.0,
    )
