r"""A small neural network of the labels of strings.

The loss of a row with weights w+ and w- and logit f is :math:`w^+ \log(1 + e^{-f}) + w^- \log(1 + e^{f})`, finite for
any logit.

References:
    Tiao, L. C. et al. (2021). BORE: Bayesian optimization by density-ratio estimation. ICML (two hidden layers of 32
        units; Adam, 100 steps on batches of 64).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from seqopt.encoding import Featurizer, Tokenizer
from seqopt.errors import InputError
from seqopt.models.classifiers.protocols import BoolArray, FloatArray
from seqopt.models.classifiers.tabular import Logits, TabularClassifier
from seqopt.utils.arguments import checked_integer

RATE = 1e-3
"""Learning rate of Adam."""

ACTIVATIONS: Mapping[str, type[torch.nn.Module]] = {"relu": torch.nn.ReLU, "elu": torch.nn.ELU}
"""By name; the experiments take ELU for few continuous inputs, which is smooth, and ReLU for all others."""


class Perceptron(TabularClassifier):
    """Two hidden layers on features of strings, trained anew at each fit; see the module.

    Args:
        features: See `TabularClassifier`; by default ``"one-hot"``.
        units: Of each hidden layer.
        steps: Gradient steps; see `epochs_of`.
        batch: Rows of a step.
        rate: Learning rate of Adam.
        activation: Between layers, ``"relu"`` or ``"elu"``.
        longest: See `TabularClassifier`.
        tokenizer: See `TabularClassifier`.

    Raises:
        InputError: For features or an activation that are none, or a number out of its range.

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
        rate: float = RATE,
        activation: str = "relu",
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        self.units = checked_integer("units", units, 1)
        self.steps = checked_integer("steps", steps, 1)
        self.batch = checked_integer("batch", batch, 1)
        if not 0 < rate < float("inf"):
            raise InputError(f"rate is {rate!r}; expected a positive number")
        if activation not in ACTIVATIONS:
            raise InputError(f"activation is {activation!r}; expected {' or '.join(map(repr, ACTIVATIONS))}")
        self.rate, self.activation = float(rate), activation

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        own: dict[str, object] = {"units": self.units, "steps": self.steps, "batch": self.batch}
        own |= {"rate": self.rate} if self.rate != RATE else {}
        own |= {"activation": self.activation} if self.activation != "relu" else {}
        return super().config_arguments() | own

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        rows = torch.from_numpy(np.ascontiguousarray(table, dtype=np.float32))
        signs = torch.from_numpy(np.where(labels, 1.0, -1.0).astype(np.float32))
        importance = torch.from_numpy((weights / weights.mean()).astype(np.float32))
        generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
        network = _network(rows.shape[1], self.units, ACTIVATIONS[self.activation], generator)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.rate)
        for _ in range(epochs_of(self.steps, self.batch, len(rows))):
            order = torch.randperm(len(rows), generator=generator)
            for part in torch.split(order, self.batch):
                optimizer.zero_grad()
                loss = weighted_loss(network(rows[part])[:, 0], signs[part], importance[part])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()

        def logits(some: FloatArray) -> FloatArray:
            with torch.no_grad():
                found: Tensor = network(torch.from_numpy(np.ascontiguousarray(some, dtype=np.float32)))[:, 0]
            return np.asarray(found.numpy(), dtype=np.float64)

        return logits


def weighted_loss(logits: Tensor, signs: Tensor, weights: Tensor) -> Tensor:
    """Mean of w log(1 + exp(-s f)) over n rows with logits f, signs s, 1 or -1, and weights w; finite for any logit.

    Example:
        >>> f, s, w = torch.tensor([0.0, 1000.0, -1000.0]), torch.tensor([1.0, 1.0, 1.0]), torch.ones(3)
        >>> round(float(weighted_loss(f, s, w)), 3)
        333.564
    """
    return (weights * torch.nn.functional.softplus(-signs * logits)).mean()


def epochs_of(steps: int, batch: int, n: int) -> int:
    """Passes over n rows that make about ``steps`` gradient steps on batches, and at least one.

    Example:
        >>> [epochs_of(100, 64, n) for n in (64, 65, 512, 6401)]
        [100, 50, 12, 1]
    """
    return max(1, steps // math.ceil(n / batch))


def _network(
    inputs: int, units: int, activation: type[torch.nn.Module], generator: torch.Generator
) -> torch.nn.Sequential:
    layers = [
        torch.nn.Linear(inputs, units),
        activation(),
        torch.nn.Linear(units, units),
        activation(),
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
