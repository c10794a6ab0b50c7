"""BORE and LFBO for searches of molecules, by the names that benchmarks have for their classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.models.classifiers import WeightedClassifier

KINDS: Mapping[str, str] = {"bore": "BORE", "lfbo": "LFBO"}
"""Names of acquisition functions that are none, but density ratios, with their labels."""

CLASSIFIERS: Mapping[str, str] = {
    "trees": "boosted trees on fingerprints",
    "logistic": "logistic regression on fingerprints",
    "kernel": "string kernel classifier",
}
"""Names with their labels."""


def classifier_of(name: str) -> WeightedClassifier:
    """A classifier of molecules; fingerprints are counts of Morgan environments.

    Raises:
        InputError: For an unknown name.
    """
    from seqopt.encoding import MorganFingerprint
    from seqopt.models.classifiers import BoostedTrees, KernelLogistic, LogisticRegression

    if name == "trees":
        return BoostedTrees(MorganFingerprint(counts=True))
    if name == "logistic":
        return LogisticRegression(MorganFingerprint(counts=True))
    if name == "kernel":
        return KernelLogistic()
    raise InputError(f"unknown classifier {name!r}: choose {', '.join(CLASSIFIERS)}")


def density_ratio(kind: str, classifier: str, search: Any = "auto") -> Any:
    """A strategy; strings of a batch are kept apart by a determinantal point process, for which one fit will do.

    Args:
        kind: One of `KINDS`.
        classifier: One of `CLASSIFIERS`.
        search: The inner search.
    """
    from seqopt.strategies import BORE, LFBO

    made = {"bore": BORE, "lfbo": LFBO}[kind]
    return made(classifier_of(classifier), gamma=1 / 3, search=search, batch="dpp")
