"""Random search in the latent space of a variational autoencoder.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        section 4.6.3 and figure 4.6.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqopt.errors import InputError
from seqopt.search import Proposal
from seqopt.spaces import Space
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import RandomStrategy, random_proposals
from seqopt.vae import StringVAE

ATTEMPTS = 1000
"""Points drawn for each string that is asked for, before random strings of the space take their place."""

BLOCK = 16
"""Points decoded at a time."""


class RandomLatentStrategy(RandomStrategy):
    """Decodes uniform points of the box that holds the central share of the training encodings in each dimension.

    A string that is known already is drawn again. A point that decodes to nothing of the space counts in `undecodable`:
    a benchmark charges an evaluation for it, as it does for `seqopt.search.LatentSearch`.

    Args:
        vae: The autoencoder.
        coverage: Share of the training encodings in the box, in (0, 1].

    Attributes:
        undecodable: How many points have decoded to nothing of the space so far.

    Raises:
        InputError: If ``coverage`` is out of its range.
    """

    def __init__(self, vae: StringVAE, coverage: float = 0.75) -> None:
        self.vae = vae
        self.coverage = coverage
        self.bounds = vae.box(coverage)
        self.undecodable = 0

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        found: dict[str, Proposal] = {}
        for _ in range(0, ATTEMPTS * n, BLOCK):
            lower, upper = self.bounds
            points = rng.uniform(lower, upper, size=(BLOCK, len(lower)))
            for string in self.vae.decode(points):
                if len(found) == n:
                    return list(found.values())
                key = usable_key(state.space, string)
                if key is None:
                    self.undecodable += 1
                elif key not in state.excluded:
                    found.setdefault(key, Proposal(string, key))
        return list(found.values()) + random_proposals(n - len(found), state, rng, also_excluded=found.keys())

    def state_dict(self) -> dict[str, Any]:
        """The number of points that decoded to nothing of the space."""
        return {"undecodable": self.undecodable}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.undecodable = int(state["undecodable"])


def usable_key(space: Space, string: str) -> str | None:
    """The key of a decoded string; `None` where it lies outside the space."""
    if not string:
        return None
    try:
        return space.key(string) if space.contains(string) else None
    except InputError:
        return None


def through_autoencoder(vae: StringVAE, space: Space, strings: list[str], rng: np.random.Generator) -> list[str | None]:
    """What comes back of strings that are encoded, at a draw from the posterior of each, and decoded greedily.

    So the paper begins searches in latent space (section 4.6.3).

    Args:
        vae: The autoencoder.
        space: The space of the strings.
        strings: n strings.
        rng: Draws the points.

    Returns:
        n strings; `None` for one that comes back as nothing of the space.
    """
    mean, deviation = vae.posterior(strings)
    points = mean + deviation * rng.standard_normal(mean.shape)
    return [string if usable_key(space, string) is not None else None for string in vae.decode(points)]
