r"""A small neural network of the labels of strings.

The loss of a row with weights w+ and w- and logit f is :math:`w^+ \log(1 + e^{-f}) + w^- \log(1 + e^{f})`, finite for
any logit.

References:
    Tiao, L. C. et al. (2021). BORE: Bayesian optimization by density-ratio estimation. ICML (two hidden layers of 32
        units; Adam, 100 steps on batches of 64).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.encoding import Featurizer, Tokenizer
from seqopt.models.classifiers.protocols import BoolArray, FloatArray
from seqopt.models.classifiers.tabular import Logits, TabularClassifier
from seqopt.utils.arguments import checked_integer

RATE = 1e-3
"""Learning rate of Adam."""


class Perceptron(TabularClassifier):
    """Two hidden layers on features of strings, trained anew at each fit; see the module.

    Args:
        features: See `TabularClassifier`; by default ``"one-hot"``.
        units: Of each hidden layer.
        steps: Gradient steps; see `epochs_of`.
        batch: Rows of a step.
        longest: See `TabularClassifier`.
        tokenizer: See `TabularClassifier`.

    Raises:
        InputError: For features that are none, or a number out of its range.

    Example:
        >>> strings, labels = ["AAB", "ABA", "AAA", "BBB", "BAB", "BBA"], np.array([True] * 3 + [False] * 3)
        >>> logits = Perceptron().fit(strings, labels, rng=np.random.default_rng(0)).logits(["AAA", "BBB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    default_features = "one-hot"

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        units: int = 32,
        steps: int = 100,
        batch: int = 64,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        self.units = checked_integer("units", units, 1)
        self.steps = checked_integer("steps", steps, 1)
        self.batch = checked_integer("batch", batch, 1)

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return super().config_arguments() | {"units": self.units, "steps": self.steps, "batch": self.batch}

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        rows = torch.from_numpy(np.ascontiguousarray(table, dtype=np.float32))
        signs = torch.from_numpy(np.where(labels, 1.0, -1.0).astype(np.float32))
        importance = torch.from_numpy((weights / weights.mean()).astype(np.float32))
        generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        network = _network(rows.shape[1], self.units, generator)
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        for _ in range(epochs_of(self.steps, self.batch, len(rows))):
            order = torch.randperm(len(rows), generator=generator)
            for part in torch.split(order, self.batch):
                optimizer.zero_grad()
                margins = signs[part] * network(rows[part])[:, 0]
                loss = (importance[part] * torch.nn.functional.softplus(-margins)).mean()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()

        def logits(some: FloatArray) -> FloatArray:
            with torch.no_grad():
                found: Tensor = network(torch.from_numpy(np.ascontiguousarray(some, dtype=np.float32)))[:, 0]
            return np.asarray(found.numpy(), dtype=np.float64)

        return logits


def epochs_of(steps: int, batch: int, n: int) -> int:
    """Passes over n rows that make about ``steps`` gradient steps on batches, and at least one.

    Example:
        >>> [epochs_of(100, 64, n) for n in (64, 65, 512, 6401)]
        [100, 50, 12, 1]
    """
    return max(1, steps // math.ceil(n / batch))


def _network(inputs: int, units: int, generator: torch.Generator) -> torch.nn.Sequential:
    layers = [
        torch.nn.Linear(inputs, units),
        torch.nn.ReLU(),
        torch.nn.Linear(units, units),
        torch.nn.ReLU(),
        torch.nn.Linear(units, 1),
    ]
    for layer in layers:
        if isinstance(layer, torch.nn.Linear):
            # As Keras begins, whose defaults the experiments take; PyTorch would draw from a global generator.
            bound = math.sqrt(6.0 / (layer.in_features + layer.out_features))
            with torch.no_grad():
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
    return torch.nn.Sequential(*layers)
