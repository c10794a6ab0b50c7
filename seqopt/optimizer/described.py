"""What a part of the optimiser is, in values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpytorch.kernels import Kernel

from seqopt.encoding import StringEncoder
from seqopt.kernels import SubsequenceKernel
from seqopt.models import StringGP

_OF_NO_ACCOUNT = ("state", "engine", "threads")
"""Of a kernel: where its parameters begin, and how it is computed."""


def describe_part(part: object) -> dict[str, Any]:
    """Type and plain parameters of a part of the optimiser, so that a run is resumed with the same one.

    Numbers that are not finite, such as a bound that there is not, stand as text: JSON has none of them.

    Example:
        >>> from seqopt.search import RandomSearch
        >>> describe_part(RandomSearch(500))
        {'type': 'RandomSearch', 'candidates': 500}
    """
    found: dict[str, Any] = {"type": type(part).__name__}
    if isinstance(part, StringGP):
        # Runs from before there were these two can be resumed.
        later = {"fit_size": (part.fit_size, 1000), "interpolate": (part.interpolate, True)}
        return found | {
            "kernel": describe_part(part.kernel),
            "restarts": part.restarts,
            "refit_growth": part.refit_growth,
            "tokenizer": part.encoder.name,
            **{name: value for name, (value, default) in later.items() if value != default},
        }
    if isinstance(part, SubsequenceKernel) and hasattr(part, "raw_order_weights"):
        found["order_weights"] = "learned"
    if isinstance(part, Kernel) and not isinstance(part, SubsequenceKernel):
        # Parameters to begin with, bounds, priors.
        found["state"] = {name: _plain(tensor.tolist()) for name, tensor in part.state_dict().items()}
        kernels = {name: child for name, child in part.named_children() if isinstance(child, Kernel)}
        found |= {name: describe_part(child) for name, child in kernels.items()}
    for name, value in sorted(vars(part).items()):
        if name.startswith("_") or name == "training":
            continue
        if isinstance(value, Kernel):
            found[name] = describe_part(value)
        elif isinstance(value, StringEncoder):
            found["tokenizer"] = value.name
        else:
            found[name] = _plain(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return found


def same_kernel(described: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two descriptions are of one kernel, apart from parameters that are learned.

    Example:
        >>> three, five = (describe_part(SubsequenceKernel(order)) for order in (3, 5))
        >>> same_kernel(three, five), same_kernel(five, describe_part(SubsequenceKernel(match_decay=0.2, engine="cpu")))
        (False, True)
    """
    names = {name for name in (*described, *other) if name not in _OF_NO_ACCOUNT}
    return all(_same(described.get(name), other.get(name)) for name in names)


def _same(value: object, other: object) -> bool:
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return same_kernel(value, other)
    return value == other


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
