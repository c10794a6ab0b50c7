"""What a search searched and with which model, made again from what it left behind."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, cast

from seqopt.errors import InputError
from seqopt.models import BinomialGP, PlannedSurrogate, StringGP, Surrogate, resolve_surrogate
from seqopt.models.registry import LATENT, SURROGATES, surrogate_name
from seqopt.report.results import Run, option_of
from seqopt.report.samples import space_of
from seqopt.spaces import CandidateSet
from seqopt.utils.config import described, from_config, is_config, same

logger = logging.getLogger(__name__)

_LEARNED = (
    *("match_decay", "gap_decay", "order_weights", "lengthscale", "weight", "similarity", "engine", "threads"),
    *("partitions", "sites", "matrix", "frozen"),
)
"""Arguments of a kernel that are where its parameters begin, or how it is computed."""


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
    symbols = str(run.settings.get("tokenizer") or "")
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
    surrogate = resolve_surrogate(name, space) if known else _described(details, space)
    remark = "" if run.settings else "The settings of the search are missing: its model is not known, and "
    if surrogate is None:
        remark = "The model of the search cannot be rebuilt from its files: "
    if surrogate is None or remark:
        surrogate = resolve_surrogate("auto", space)
        remark += f"this is the usual one ({_words(surrogate)})."
    if run.yes_no and not isinstance(surrogate, BinomialGP):
        surrogate = BinomialGP(surrogate if not known or remark else name)
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
    for place in ("details", "parts"):
        held = run.settings.get(place)
        details = held.get("surrogate") if isinstance(held, dict) else None
        if isinstance(details, dict):
            return details
    return {}


def _described(details: dict[str, Any], space: Any) -> Surrogate | None:
    """The surrogate that the settings of a run describe, if it can be made from that."""
    if not is_config(details):
        return None
    try:
        found: Any = from_config(details)
        if isinstance(found, PlannedSurrogate):
            found = found.for_space(space)
    except InputError:
        logger.debug("the surrogate of the run could not be made again", exc_info=True)
        return None
    if isinstance(found, StringGP):
        found.restarts = 1  # a page need not wait for more
    return cast(Surrogate, found)


def _words(surrogate: Any) -> str:
    if isinstance(surrogate, BinomialGP):
        base = surrogate.base if isinstance(surrogate.base, str) else _words(surrogate.base)
        kernels = base if base not in SURROGATES else SURROGATES[base].summary
        return f"binomial, for results of yes and no, with the kernels of: {kernels}"
    name, kernel = surrogate_name(surrogate), getattr(surrogate, "kernel", None)
    if not name:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(kernel if kernel is not None else surrogate).__name__)
    usual: Any = SURROGATES[name].build()
    if kernel is None:  # of several
        return SURROGATES[name].summary
    if same(described(kernel), described(usual.kernel), _LEARNED):
        return SURROGATES[name].summary
    order = getattr(kernel, "order", None)
    return SURROGATES[name].summary + (f", of order {order}" if order not in (None, 5) else f", as {kernel!r}")
