"""seqopt: Bayesian optimisation directly over strings.

`maximize` and `minimize` run a whole search; `Optimizer` asks and tells. See `seqopt.spaces` for what strings are
allowed, `seqopt.models` for surrogates, `seqopt.acquisition` for what a batch is chosen by, and `seqopt.objectives`
for scores.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqopt.utils.shown import add_loader

__version__ = "0.2.0"

if TYPE_CHECKING:
    from seqopt.api import Result, maximize, minimize
    from seqopt.evaluation import per_string
    from seqopt.optimizer import Optimizer
    from seqopt.scorers.limits import BatchLimits
    from seqopt.spaces import (
        CandidateSet,
        CodonLibrary,
        CodonSpace,
        CombinatorialSpace,
        GrammarSpace,
        LocalSpace,
        ParentSpace,
        StringSpace,
        TemplateSpace,
    )
    from seqopt.strategies import Near
    from seqopt.strategies.arms import Confirmation

_HOMES = {
    "BatchLimits": "seqopt.scorers.limits",
    "CandidateSet": "seqopt.spaces",
    "CodonLibrary": "seqopt.spaces",
    "CodonSpace": "seqopt.spaces",
    "CombinatorialSpace": "seqopt.spaces",
    "Confirmation": "seqopt.strategies.arms",
    "GrammarSpace": "seqopt.spaces",
    "LocalSpace": "seqopt.spaces",
    "Near": "seqopt.strategies",
    "Optimizer": "seqopt.optimizer",
    "ParentSpace": "seqopt.spaces",
    "Result": "seqopt.api",
    "StringSpace": "seqopt.spaces",
    "TemplateSpace": "seqopt.spaces",
    "maximize": "seqopt.api",
    "minimize": "seqopt.api",
    "per_string": "seqopt.evaluation",
}

__all__ = [
    "BatchLimits",
    "CandidateSet",
    "CodonLibrary",
    "CodonSpace",
    "CombinatorialSpace",
    "Confirmation",
    "GrammarSpace",
    "LocalSpace",
    "Near",
    "Optimizer",
    "ParentSpace",
    "Result",
    "StringSpace",
    "TemplateSpace",
    "__version__",
    "maximize",
    "minimize",
    "per_string",
]


# Reports know spaces, the loop and campaigns, which only have to know that they can be shown.
add_loader(lambda: import_module("seqopt.report.descriptions"))


def __getattr__(name: str) -> Any:
    # torch takes seconds to import; `seqopt --help` and `seqopt.__version__` do not need it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
