"""What is compared on tables of configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from seqopt.models.classifiers import WeightedClassifier

CANDIDATES = 500
"""Random strings, without those that were evaluated, that classifiers choose from in each step."""

LENGTHSCALES = (1.0, 2.0, 4.0, 8.0)
"""In substitutions; the Gaussian process classifier takes the one of largest evidence."""


@dataclass(frozen=True)
class Method:
    """How the next configuration is chosen.

    Attributes:
        label: Name in tables.
        kind: Its family.
        classifier: Name of the classifier of a density ratio.
        colour: In plots; `None` leaves it out.
    """

    label: str
    kind: Literal["random", "evolution", "tpe", "model", "gp", "bore", "lfbo"]
    classifier: str = ""
    colour: str | None = None

    def strategy(self) -> Any:
        """A strategy of seqopt; of a method that is none, `None`."""
        from seqopt.search import RandomSearch
        from seqopt.strategies import BORE, LFBO, ModelBased

        if self.kind == "model":
            return ModelBased()
        if self.kind == "gp":
            return ModelBased("hamming", "logei", RandomSearch(CANDIDATES))
        if self.kind not in ("bore", "lfbo"):
            return None
        made = BORE if self.kind == "bore" else LFBO
        return made(CLASSIFIERS[self.classifier](), gamma=1 / 3, search=RandomSearch(CANDIDATES))


def _perceptron() -> WeightedClassifier:
    from seqopt.models.classifiers import Perceptron

    return Perceptron()


def _forest() -> WeightedClassifier:
    from seqopt.models.classifiers import RandomForest

    return RandomForest("one-hot")


def _boosted() -> WeightedClassifier:
    from seqopt.models.classifiers import BoostedTrees

    return BoostedTrees("one-hot")


def _xgboost() -> WeightedClassifier:
    from seqopt.models.classifiers import XGBoostTrees

    return XGBoostTrees("one-hot")


def _gp() -> WeightedClassifier:
    from seqopt.kernels import HammingKernel
    from seqopt.models.classifiers import KernelLogistic

    return KernelLogistic([HammingKernel(length) for length in LENGTHSCALES])


def _string_kernel() -> WeightedClassifier:
    from seqopt.models.classifiers import KernelLogistic

    return KernelLogistic()


CLASSIFIERS: Mapping[str, Callable[[], WeightedClassifier]] = {
    "mlp": _perceptron,
    "rf": _forest,
    "hgb": _boosted,
    "xgb": _xgboost,
    "gp": _gp,
    "kernel": _string_kernel,
}
"""By name; all but those with kernels see one-hot symbols."""

_LABELS = {
    "mlp": "perceptron",
    "rf": "random forest",
    "hgb": "boosted trees",
    "xgb": "XGBoost",
    "gp": "Gaussian process classifier",
    "kernel": "string kernel",
}
_COLOURS = {"mlp": "#D55E00", "rf": "#0072B2", "hgb": "#009E73", "gp": "#CC79A7", "kernel": "#56B4E9"}

METHODS: Mapping[str, Method] = {
    "random": Method("random search", "random", colour="#999999"),
    "evolution": Method("regularised evolution", "evolution", colour="#E69F00"),
    "tpe": Method("TPE of Optuna", "tpe", colour="#000000"),
    "default": Method("default of seqopt", "model", colour="#882255"),
    "gp": Method("Gaussian process, log EI", "gp", colour="#332288"),
    **{f"bore-{name}": Method(f"BORE, {_LABELS[name]}", "bore", name, _COLOURS.get(name)) for name in CLASSIFIERS},
    **{f"lfbo-{name}": Method(f"LFBO, {_LABELS[name]}", "lfbo", name) for name in CLASSIFIERS},
}
"""By name."""
