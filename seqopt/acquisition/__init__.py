"""Acquisition functions: what an evaluation is worth, as a function of a posterior and of nothing else."""

from seqopt.acquisition.confidence import PosteriorMean, UpperConfidenceBound
from seqopt.acquisition.determinantal import DPPExpectedImprovement
from seqopt.acquisition.gibbon import GIBBON, gibbon, log_gibbon, single_gibbon
from seqopt.acquisition.hits import HitProbability
from seqopt.acquisition.improvement import LogExpectedImprovement
from seqopt.acquisition.learning import BALD, BALM, BQBC, QBMGP, SAL
from seqopt.acquisition.max_values import ExactMaxValueSampler, GumbelMaxValueSampler, MaxValueSampler
from seqopt.acquisition.mes import MES, log_mes
from seqopt.acquisition.mumbo import MUMBO, log_mumbo
from seqopt.acquisition.protocols import (
    Acquisition,
    DisagreementAcquisition,
    MonotoneAcquisition,
    OutcomeAcquisition,
    PreparedAcquisition,
)
from seqopt.acquisition.randomised import RandomAcquisition, ThompsonSampling
from seqopt.acquisition.registry import ACQUISITIONS, resolve_acquisition
from seqopt.acquisition.scorebo import SCoreBO
from seqopt.posteriors import DensePosterior, Posterior

__all__ = [
    "ACQUISITIONS",
    "BALD",
    "BALM",
    "BQBC",
    "GIBBON",
    "MES",
    "MUMBO",
    "QBMGP",
    "SAL",
    "Acquisition",
    "DPPExpectedImprovement",
    "DensePosterior",
    "DisagreementAcquisition",
    "ExactMaxValueSampler",
    "GumbelMaxValueSampler",
    "HitProbability",
    "LogExpectedImprovement",
    "MaxValueSampler",
    "MonotoneAcquisition",
    "OutcomeAcquisition",
    "Posterior",
    "PosteriorMean",
    "PreparedAcquisition",
    "RandomAcquisition",
    "SCoreBO",
    "ThompsonSampling",
    "UpperConfidenceBound",
    "gibbon",
    "log_gibbon",
    "log_mes",
    "log_mumbo",
    "resolve_acquisition",
    "single_gibbon",
]
