"""Acquisition functions by name."""

from __future__ import annotations

from collections.abc import Callable

from seqopt.acquisition.confidence import PosteriorMean, UpperConfidenceBound
from seqopt.acquisition.determinantal import DPPExpectedImprovement
from seqopt.acquisition.gibbon import GIBBON
from seqopt.acquisition.hits import HitProbability
from seqopt.acquisition.improvement import LogExpectedImprovement
from seqopt.acquisition.learning import BALD, BALM, BQBC, QBMGP, SAL
from seqopt.acquisition.mes import MES
from seqopt.acquisition.mumbo import MUMBO
from seqopt.acquisition.protocols import Acquisition
from seqopt.acquisition.randomised import RandomAcquisition, ThompsonSampling
from seqopt.acquisition.scorebo import SCoreBO
from seqopt.errors import InputError

ACQUISITIONS: dict[str, Callable[[], Acquisition]] = {
    "gibbon": GIBBON,
    "mes": MES,
    "mumbo": MUMBO,
    "logei": LogExpectedImprovement,
    "dpp-ei": DPPExpectedImprovement,
    "ucb": UpperConfidenceBound,
    "scorebo": SCoreBO,
    "sal": SAL,
    "bald": BALD,
    "bqbc": BQBC,
    "balm": BALM,
    "qbmgp": QBMGP,
    "thompson": ThompsonSampling,
    "mean": PosteriorMean,
    "hits": HitProbability,
    "random": RandomAcquisition,
}
"""Names and what builds the acquisition function with its defaults."""


def resolve_acquisition(acquisition: str | Acquisition) -> Acquisition:
    """An acquisition function from its name; an object with ``name`` and ``prepare`` is returned as it is.

    Raises:
        InputError: For an unknown name, or an object that is not an acquisition function.

    Example:
        >>> resolve_acquisition("logei").name
        'logei'
    """
    if isinstance(acquisition, str):
        build = ACQUISITIONS.get(acquisition.lower())
        if build is not None:
            return build()
    elif isinstance(acquisition, Acquisition) and not isinstance(acquisition, type):
        return acquisition
    names = ", ".join(ACQUISITIONS)
    raise InputError(f"unknown acquisition function {acquisition!r}; expected one of {names}, or an Acquisition object")
