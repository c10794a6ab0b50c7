r"""The classifier, of several, whose predictions of strings that it has not learned from are best.

Each candidate predicts the labels of every fold from the others. Its logits f there are calibrated (Platt): p =
sigma(a f + b) with a from 0, by the log loss with a weak prior that a is 1. Where labels have nothing to do with
strings, a becomes small, and the same probability is predicted for all. The candidate of the smallest log loss is
fitted to all strings.

References:
    Platt, J. (2000). Probabilistic outputs for support vector machines. In: Advances in large margin classifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from seqopt.encoding import FeatureEncoder, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import MinMaxKernel
from seqopt.models.classifiers.kernel_logistic import KernelLogistic
from seqopt.models.classifiers.ngram_hazards import NgramHazards
from seqopt.models.classifiers.protocols import (
    BoolArray,
    Classifier,
    FloatArray,
    Predictor,
    SpaceBoundClassifier,
    checked_labels,
    log_probability,
)
from seqopt.spaces import Space
from seqopt.utils.config import Configurable

FOLDS = 4
"""Fewer where one label is rarer than that."""

COMPARED = 400
"""Strings that candidates are compared on, at most."""

PRIOR_WEIGHT = 1.0
"""Of the prior that a is 1 and b is 0: as if so much log loss spoke for it."""


class CrossValidated(Configurable):
    """Chooses among classifiers by cross-validated log loss; implements `seqopt.models.classifiers.Classifier`.

    Args:
        candidates: Classifiers. By default `NgramHazards` and `KernelLogistic` with string kernels and, for molecules,
            with the MinMax kernel on counts of Morgan environments.

    Raises:
        InputError: If there are none, or one is no classifier.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> strings = ["".join(rng.choice(list("ABC"), 8)) for _ in range(60)]
        >>> labels = np.array(["CC" not in string for string in strings])
        >>> predictor = CrossValidated().fit(strings, labels, rng=rng)
        >>> logits = predictor.logits(["ABABABAB", "ABACCBAB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    def __init__(self, candidates: Sequence[Classifier] | None = None) -> None:
        self._given = None if candidates is None else list(candidates)
        if self._given is not None and not self._given:
            raise InputError("there are no classifiers to choose from; give at least one")
        for one in self._given or ():
            if not isinstance(one, Classifier) or isinstance(one, type):
                raise InputError(f"{one!r} is not a classifier: see seqopt.models.classifiers.Classifier")
        self.candidates: list[Classifier] = self._given or [NgramHazards(), KernelLogistic()]

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return {"candidates": self._given}

    def bind(self, space: Space) -> None:
        """Let candidates take what they need of ``space``; without given ones, those of its kind of strings."""
        if self._given is None:
            self.candidates = [NgramHazards(), KernelLogistic()]
            if space.kind == "molecule":
                counts = FeatureEncoder(MorganFingerprint(counts=True))
                self.candidates.append(KernelLogistic(MinMaxKernel(), encoder=counts))
        for one in self.candidates:
            if isinstance(one, SpaceBoundClassifier):
                one.bind(space)

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """What a candidate cannot take."""
        found: dict[int, str] = {}
        for one in self.candidates:
            found = one.unsupported(strings) | found
        return found

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> CalibratedPredictor:
        """See `seqopt.models.classifiers.Classifier`; the folds are drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, or only one label is there.
        """
        found = checked_labels(strings, labels)
        rows = _compared(found, rng)
        folds = _folds(found[rows], rng)
        best: tuple[float, int, tuple[float, float]] | None = None
        for place, candidate in enumerate(self.candidates):
            logits = _held_out(candidate, [strings[int(row)] for row in rows], found[rows], folds, rng)
            loss, calibration = (np.log(2.0), (1.0, 0.0)) if logits is None else calibrated(logits, found[rows])
            if best is None or loss < best[0]:
                best = loss, place, calibration
        assert best is not None  # there is a candidate
        loss, place, (a, b) = best
        return CalibratedPredictor(self.candidates[place].fit(strings, found, rng=rng), a, b, place, loss)


def _compared(labels: BoolArray, rng: np.random.Generator) -> np.ndarray:
    """Rows that candidates are compared on."""
    if len(labels) <= COMPARED:
        return np.arange(len(labels))
    return np.sort(rng.permutation(len(labels))[:COMPARED])


def _folds(labels: BoolArray, rng: np.random.Generator) -> np.ndarray:
    """The fold of each string: each label is spread over all of them."""
    folds = np.empty(len(labels), dtype=np.int64)
    count = max(2, min(FOLDS, int(labels.sum()), int((~labels).sum())))
    for label in (True, False):
        rows = rng.permutation(np.flatnonzero(labels == label))
        folds[rows] = np.arange(len(rows)) % count
    return folds


def _held_out(
    candidate: Classifier, strings: Sequence[str], labels: BoolArray, folds: np.ndarray, rng: np.random.Generator
) -> FloatArray | None:
    """Logits of strings by what was learned from other folds; `None` where a label is too rare for that."""
    logits = np.empty(len(labels))
    for fold in range(int(folds.max(initial=0)) + 1):
        held, other = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if labels[other].all() or not labels[other].any():
            return None
        predictor = candidate.fit([strings[int(row)] for row in other], labels[other], rng=rng)
        logits[held] = predictor.logits([strings[int(row)] for row in held])
    return logits


def calibrated(logits: FloatArray, labels: BoolArray) -> tuple[float, tuple[float, float]]:
    """The mean log loss of sigma(a f + b), and a and b, which are those of the smallest penalised one.

    Args:
        logits: f, n.
        labels: n.

    Example:
        >>> loss, (a, b) = calibrated(np.array([5.0, -5.0] * 20), np.arange(40) % 4 < 2)  # right in half of the cases
        >>> round(loss, 2), round(a, 2)
        (0.69, 0.0)
    """
    signs = np.where(labels, 1.0, -1.0)

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        a, b = parameters
        margin = signs * (a * logits + b)
        slope = -signs * np.exp(log_probability(-margin))
        value = -log_probability(margin).sum() + 0.5 * PRIOR_WEIGHT * ((a - 1.0) ** 2 + b**2)
        return float(value), np.array(
            [slope @ logits + PRIOR_WEIGHT * (a - 1.0), slope.sum() + PRIOR_WEIGHT * b], dtype=np.float64
        )

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0.0, None), (None, None)])
    a, b = found.x.tolist()
    return float(-log_probability(signs * (a * logits + b)).mean()), (a, b)


class CalibratedPredictor:
    """Calibrated logits of another predictor; implements `seqopt.models.classifiers.Predictor`.

    Args:
        predictor: The chosen classifier, fitted to all strings.
        slope: a.
        shift: b.
        chosen: Which of the candidates it is.
        loss: Its cross-validated log loss, nats a string.
    """

    def __init__(self, predictor: Predictor, slope: float, shift: float, chosen: int, loss: float) -> None:
        self.predictor = predictor
        self.slope = slope
        self.shift = shift
        self.chosen = chosen
        self.loss = loss

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        return np.asarray(self.slope * self.predictor.logits(strings) + self.shift, dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Those of the chosen classifier, which it is, its calibration and log loss."""
        own = {"classifier": float(self.chosen), "slope": self.slope, "shift": self.shift, "log_loss": self.loss}
        return self.predictor.hyperparameters | own
