"""What a classifier of strings offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.spaces import Space

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@runtime_checkable
class Predictor(Protocol):
    """A fitted classifier. It does not change: a fit makes another one."""

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """log(p / (1 - p)) of each string, n, with p the probability of the label true; finite numbers.

        Logits keep their order where probabilities round to 0 or 1.
        """
        ...

    @property
    def hyperparameters(self) -> dict[str, float]:
        """What was learned besides the predictions, by name; may be empty."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """Learns which of two labels strings have."""

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> Predictor:
        """Learn from ``strings`` (n, repeats allowed) and ``labels`` (n, both kinds among them).

        Args:
            strings: Keys of strings.
            labels: Their labels.
            rng: The only source of randomness.
        """
        ...

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be classified, by their indices; empty where all can."""
        ...


@runtime_checkable
class SpaceBoundClassifier(Classifier, Protocol):
    """A classifier that takes its tokeniser from the space."""

    def bind(self, space: Space) -> None:
        """Called once, before the first fit."""
        ...


def log_probability(logits: npt.ArrayLike) -> FloatArray:
    """Logarithms of the probabilities of logits, n: never above 0, and finite for any finite logit.

    Example:
        >>> log_probability([0.0, -1000.0, 1000.0]).round(3).tolist()
        [-0.693, -1000.0, -0.0]
    """
    return -np.logaddexp(0.0, -np.asarray(logits, dtype=np.float64))


def checked_labels(strings: Sequence[str], labels: npt.ArrayLike) -> BoolArray:
    """Labels of both kinds, one for each string.

    Raises:
        InputError: If the numbers differ, or only one label is there.
    """
    found = np.asarray(labels, dtype=np.bool_)
    if found.shape != (len(strings),):
        raise InputError(f"{len(strings)} strings but labels of shape {found.shape}; give one for each")
    if found.all() or not found.any():
        raise InputError("a classifier needs labels of both kinds")
    return found


@runtime_checkable
class WeightedClassifier(Classifier, Protocol):
    """A classifier that learns from strings which speak for both labels, each with a weight."""

    def fit_weighted(
        self, strings: Sequence[str], positive: FloatArray, negative: FloatArray, *, rng: np.random.Generator
    ) -> Predictor:
        """Learn by the log loss: the sum of -w+ log p - w- log(1 - p).

        Args:
            strings: Keys of n strings, repeats allowed.
            positive: w+, how much each speaks for the label true, n, from 0.
            negative: w-, n, from 0.
            rng: The only source of randomness.
        """
        ...


def checked_weights(
    strings: Sequence[str], positive: npt.ArrayLike, negative: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Weights for both labels, two for each string.

    Raises:
        InputError: If the numbers differ, a weight is negative or not finite, or only one label has weight.
    """
    found = [np.asarray(weights, dtype=np.float64) for weights in (positive, negative)]
    for weights in found:
        if weights.shape != (len(strings),):
            raise InputError(f"{len(strings)} strings but weights of shape {weights.shape}; give one for each")
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise InputError("weights of labels must be finite numbers from 0")
    if not all(weights.any() for weights in found):
        raise InputError("a classifier needs labels of both kinds, and only one has weight")
    return found[0], found[1]


def labels_of_weights(
    positive: FloatArray, negative: FloatArray
) -> tuple[npt.NDArray[np.int64], BoolArray, FloatArray]:
    """Plain labels with weights of mean 1, of those that have weight: which string, its label, and the weight.

    Example:
        >>> rows, labels, weights = labels_of_weights(np.array([2.0, 0.0]), np.array([1.0, 1.0]))
        >>> rows.tolist(), labels.tolist(), weights.tolist()
        ([0, 0, 1], [True, False, False], [1.5, 0.75, 0.75])
    """
    first, second = np.flatnonzero(positive), np.flatnonzero(negative)
    weights = np.concatenate([positive[first], negative[second]])
    labels = np.arange(len(weights)) < len(first)
    order = np.argsort(np.concatenate([first, second]), kind="stable")
    return np.concatenate([first, second])[order], labels[order], (weights / weights.mean())[order]
