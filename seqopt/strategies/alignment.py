"""Values of different measurements on one scale: a docking score is neither as large as a pIC50, nor does it spread so.

What a covariance of levels learns is how much they have in common. Where each level has its mean and its standard
deviation, that is all it has to learn, and also a score of the other sign is one that is correlated negatively.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from seqopt.data import Context, Contexts, Measured, context_of

FEWEST = 3
"""Values of a context from which on its mean and standard deviation are taken for its own."""


@dataclass(frozen=True)
class Alignment:
    """Where values of each context lie, and how far they spread; those of the target stay as they are.

    Attributes:
        target: Mean and standard deviation of the target, or of all values where too few of it are known.
        others: Mean and standard deviation of each other context that has `FEWEST` different values.
    """

    target: tuple[float, float]
    others: Mapping[Context, tuple[float, float]]

    @classmethod
    def of(cls, measured: Measured, contexts: Contexts) -> Alignment:
        """As the values show it.

        Args:
            measured: Values of all contexts.
            contexts: Which of them is meant.

        Example:
            >>> from seqopt.data import Query
            >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
            >>> items = [Query(key, {"fidelity": level}) for level in ("docking", "assay") for key in "abc"]
            >>> measured = Measured(items, np.array([-8.0, -6.0, -7.0, 5.0, 7.0, 6.0]), None, np.arange(6))
            >>> Alignment.of(measured, contexts).aligned(measured).targets.tolist()
            [5.0, 7.0, 6.0, 5.0, 7.0, 6.0]
        """
        if contexts.latent:
            # Offsets of plates, or of folds, are what a model of them is for.
            return cls((0.0, 1.0), {})
        found = {}
        groups: dict[Context, list[float]] = {}
        for item, value in zip(measured.items, measured.targets.tolist(), strict=True):
            groups.setdefault(context_of(item) or contexts.target, []).append(value)
        for context, values in groups.items():
            spread = float(np.std(values)) if len(values) >= FEWEST else 0.0
            if spread > 0.0:
                found[context] = float(np.mean(values)), spread
        target = found.pop(contexts.target, None)
        if target is None:
            # Too little is known of the target: its few values say where it lies, if anything does.
            known = groups.get(contexts.target)
            target = (float(np.mean(known)) if known else 0.0), 1.0
        return cls(target, found)

    def aligned(self, measured: Measured) -> Measured:
        """The same values, those of other contexts with the mean and standard deviation of the target."""
        if not self.others:
            return measured
        scale = np.ones(len(measured))
        targets = measured.targets.copy()
        for index, item in enumerate(measured.items):
            own = self.others.get(context_of(item))
            if own is not None:
                scale[index] = self.target[1] / own[1]
                targets[index] = self.target[0] + (targets[index] - own[0]) * scale[index]
        noise = None if measured.noise_variance is None else measured.noise_variance * scale**2
        return replace(measured, targets=targets, noise_variance=noise)

    def back(self, context: Context, mean: float, std: float) -> tuple[float, float]:
        """Mean and standard deviation of a prediction for a context, on the scale of its own values."""
        own = self.others.get(context)
        if own is None:
            return mean, std
        scale = own[1] / self.target[1]
        return own[0] + (mean - self.target[0]) * scale, std * scale
