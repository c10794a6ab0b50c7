"""Classifiers of strings: no posterior, only how likely a label is."""

from seqopt.models.classifiers.boosted_trees import BoostedTrees, NgramTrees
from seqopt.models.classifiers.cross_validated import CrossValidated
from seqopt.models.classifiers.kernel_logistic import KernelLogistic, LaplaceMode, laplace_mode
from seqopt.models.classifiers.ngram_hazards import NgramHazards
from seqopt.models.classifiers.perceptron import Perceptron
from seqopt.models.classifiers.protocols import (
    Classifier,
    Predictor,
    SpaceBoundClassifier,
    WeightedClassifier,
    log_probability,
)
from seqopt.models.classifiers.tabular import LightGBMTrees, LogisticRegression, RandomForest, XGBoostTrees

__all__ = [
    "BoostedTrees",
    "Classifier",
    "CrossValidated",
    "KernelLogistic",
    "LaplaceMode",
    "LightGBMTrees",
    "LogisticRegression",
    "NgramHazards",
    "NgramTrees",
    "Perceptron",
    "Predictor",
    "RandomForest",
    "SpaceBoundClassifier",
    "WeightedClassifier",
    "XGBoostTrees",
    "laplace_mode",
    "log_probability",
]
