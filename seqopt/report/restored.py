"""What a search searched and with which model, made again from what it left behind."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from seqopt.errors import InputError
from seqopt.models import FullyBayesianStringGP, StringGP, Surrogate, resolve_surrogate
from seqopt.models.registry import SURROGATES, features_of, surrogate_name
from seqopt.models.string_gp import default_kernel
from seqopt.report.results import Run, option_of
from seqopt.report.samples import space_of
from seqopt.spaces import CandidateSet

logger = logging.getLogger(__name__)


def search_space(run: Run, kind: str, keys: Sequence[str]) -> Any:
    """The space of a search, or a candidate set of its strings in place of a pool."""
    own = None
    if not run.settings.get("pool"):
        try:
            own = space_of(run)
        except Exception:
            logger.debug("the space of the run could not be made again", exc_info=True)
    return candidates_of(list(dict.fromkeys(keys)), kind, None) if own is None else own


def candidates_of(keys: Sequence[str], kind: str, space: Any) -> CandidateSet:
    """A candidate set of keys, which are what they are: nothing is made canonical again."""
    tokenizer = None if space is None else space.encoder.tokenizer
    distinct = list(dict.fromkeys(keys))
    return CandidateSet(distinct, kind=kind, keys=distinct, tokenizer=tokenizer)


def restore_surrogate(run: Run, space: Any) -> tuple[Surrogate, str, str]:
    """The surrogate of a search, not fitted yet.

    Args:
        run: The search.
        space: Where it searched.

    Returns:
        The surrogate, its kernel in words, and how it was found if it is not that of the search (else empty).
    """
    details = run.settings.get("details")
    details = details.get("surrogate") if isinstance(details, dict) else None
    name = _surrogate_name(run)
    if isinstance(details, dict) and not name.lower().startswith("vae:"):
        found = _described(details, space)
        if found is not None:
            return found
        instead = "The search used a model of its own, which a page cannot make again; this is the usual one."
        surrogate = resolve_surrogate("auto", space)
    else:
        instead = ""
        surrogate = resolve_surrogate(name, space)
    _bind(surrogate, space)
    return surrogate, _words(surrogate), instead


def _surrogate_name(run: Run) -> str:
    if run.campaign:
        return str(run.settings.get("surrogate") or "auto")
    return option_of(str(run.settings.get("command") or ""), "--surrogate") or "auto"


def _described(details: dict[str, Any], space: Any) -> tuple[Surrogate, str, str] | None:
    """The surrogate that the settings of a run describe, if it is one of seqopt's own."""
    kernel = details.get("kernel")
    kernel = kernel if isinstance(kernel, dict) else {}
    kind, partitions = details.get("type"), int(kernel.get("partitions") or 1)
    if kernel.get("type") == "SubsequenceKernel" and kind in ("StringGP", "FullyBayesianStringGP"):
        surrogate: Any = (
            StringGP(default_kernel(partitions), restarts=1)
            if kind == "StringGP"
            else FullyBayesianStringGP(default_kernel(partitions))
        )
        _bind(surrogate, _with_symbols(space, str(details.get("tokenizer") or "")))
        return surrogate, _words(surrogate), ""
    if kind != "StringGP":
        return None
    read = str(details.get("tokenizer") or "")
    for known in SURROGATES.values():
        built: Any = known.build()
        if isinstance(built, StringGP) and type(built.kernel).__name__ == kernel.get("type"):
            features = features_of(built)
            if features == read.rpartition(" + ")[2] or (
                not features and (not known.one_length or built.encoder.name == read)
            ):
                _bind(built, space)
                return built, known.summary, ""
    return None


def _with_symbols(space: Any, tokenizer: str) -> Any:
    if not isinstance(space, CandidateSet) or tokenizer in ("", space.encoder.name):
        return space
    try:
        return CandidateSet(space.keys, kind=space.kind, keys=space.keys, tokenizer=tokenizer)
    except InputError:
        return space


def _bind(surrogate: Any, space: Any) -> None:
    if hasattr(surrogate, "bind"):
        surrogate.bind(space)


def _words(surrogate: Any) -> str:
    name = surrogate_name(surrogate)
    if name:
        return SURROGATES[name].summary
    kernel = getattr(surrogate, "kernel", None)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(kernel if kernel is not None else surrogate).__name__)
