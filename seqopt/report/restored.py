"""What a search searched and with which model, made again from what it left behind."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, cast

from seqopt.errors import InputError
from seqopt.models import FullyBayesianStringGP, StringGP, Surrogate, resolve_surrogate
from seqopt.models.registry import LATENT, SURROGATES, features_of, surrogate_name
from seqopt.models.string_gp import default_kernel
from seqopt.optimizer.described import describe_part, same_kernel
from seqopt.report.results import Run, option_of
from seqopt.report.samples import space_of
from seqopt.spaces import CandidateSet

logger = logging.getLogger(__name__)


def search_space(run: Run, kind: str, keys: Sequence[str]) -> Any:
    """The space of a search, or a candidate set of its strings, split into its symbols, in place of a pool."""
    if not run.settings.get("pool"):
        try:
            own = space_of(run)
        except Exception:
            logger.debug("the space of the run could not be rebuilt", exc_info=True)
        else:
            if own is not None:
                return own
    distinct = list(dict.fromkeys(keys))
    symbols = str(_surrogate_details(run).get("tokenizer") or "").partition(" + ")[0]
    try:
        return CandidateSet(distinct, kind=kind, keys=distinct, tokenizer=symbols or None)
    except InputError:
        # What is named there are no symbols but features, or symbols of a space that is lost.
        return CandidateSet(distinct, kind=kind, keys=distinct)


def candidates_of(keys: Sequence[str], kind: str, space: Any) -> CandidateSet:
    """A candidate set of keys, which are what they are: nothing is made canonical again."""
    distinct = list(dict.fromkeys(keys))
    return CandidateSet(distinct, kind=kind, keys=distinct, tokenizer=space.encoder.tokenizer)


def restore_surrogate(run: Run, space: Any) -> tuple[Surrogate, str, str]:
    """The surrogate of a search, not fitted yet.

    Args:
        run: The search.
        space: Where it searched.

    Returns:
        The surrogate, its kernel in words, and a remark if it is not that of the search (else empty).

    Raises:
        InputError: If it needs a file that no longer exists.
    """
    name, details = surrogate_of(run), _surrogate_details(run)
    known = not details or name.lower().startswith(LATENT)
    surrogate = resolve_surrogate(name, space) if known else _described(details)
    remark = "" if run.settings else "The settings of the search are missing: its model is not known, and "
    if surrogate is None:
        remark = "The model of the search cannot be rebuilt from its files: "
    if surrogate is None or remark:
        surrogate = resolve_surrogate("auto", space)
        remark += f"this is the usual one ({_words(surrogate)})."
    if hasattr(surrogate, "bind"):
        surrogate.bind(space)
    return surrogate, _words(surrogate), remark


def surrogate_of(run: Run) -> str:
    """The name of the surrogate that was asked for; ``"auto"`` if none was, or an object."""
    named = str(run.settings.get("surrogate") or "")
    if named in SURROGATES or named.lower().startswith(LATENT):
        return named
    return option_of(str(run.settings.get("command") or ""), "--surrogate") or "auto"


def _surrogate_details(run: Run) -> dict[str, Any]:
    details = run.settings.get("details")
    details = details.get("surrogate") if isinstance(details, dict) else None
    return details if isinstance(details, dict) else {}


def _described(details: dict[str, Any]) -> Surrogate | None:
    """The surrogate that the settings of a run describe, if it is one of seqopt's own."""
    kernel, kind = details.get("kernel"), details.get("type")
    if not isinstance(kernel, dict):
        return None
    if kernel.get("type") == "SubsequenceKernel":
        given = {name: kernel[name] for name in ("order", "normalize", "partitions") if kernel.get(name) is not None}
        if "order_weights" in kernel:
            given["order_weights"] = [1.0] * int(given.get("order", 5))
        if kind == "StringGP":
            return StringGP(default_kernel(**given), restarts=1)
        return FullyBayesianStringGP(default_kernel(**given)) if kind == "FullyBayesianStringGP" else None
    read = str(details.get("tokenizer") or "")
    for known in SURROGATES.values():
        built: Any = known.build()
        fits = kind == type(built).__name__ and features_of(built) in ("", read.rpartition(" + ")[2])
        if fits and same_kernel(describe_part(built.kernel), kernel):
            return cast(Surrogate, built)
    return None


def _words(surrogate: Any) -> str:
    name, kernel = surrogate_name(surrogate), getattr(surrogate, "kernel", None)
    if not name:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(kernel if kernel is not None else surrogate).__name__)
    order = getattr(kernel, "order", 5)
    return SURROGATES[name].summary + ("" if order == 5 else f", of order {order}")
