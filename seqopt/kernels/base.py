"""What the kernels of seqopt share: a `repr` that shows their parameters, and states read in full precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpytorch
import torch
from torch import Tensor


class DescribedKernel(gpytorch.kernels.Kernel):
    """A kernel whose `repr` looks like the call that makes it, at its current parameters.

    A state of double precision makes the kernel one of double precision when it is loaded: torch would round it to the
    precision that the kernel happens to have, which is single precision in a new one.

    Example:
        >>> from seqopt.kernels import SubsequenceKernel
        >>> kernel = SubsequenceKernel(order=3)
        >>> kernel.gap_decay = 0.25
        >>> kernel
        SubsequenceKernel(order=3, match_decay=0.8, gap_decay=0.25)
    """

    def _described(self) -> Mapping[str, object]:
        """Arguments of the constructor, by name; a name that begins with a star is left out of the text."""
        return {}

    def __repr__(self) -> str:
        arguments = dict(self._described())
        if self.batch_shape:
            arguments["batch_shape"] = self.batch_shape
        if self.active_dims is not None:
            arguments["active_dims"] = tuple(self.active_dims.tolist())
        listed = (value if name.startswith("*") else f"{name}={value}" for name, value in arguments.items())
        return f"{type(self).__name__}({', '.join(map(str, listed))})"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        for name, parameter in self._parameters.items():
            given = state_dict.get(prefix + name)
            if isinstance(given, Tensor) and parameter is not None and _coarser(parameter.dtype, given.dtype):
                self.to(given.dtype)
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def shown(value: Tensor) -> str:
    """A parameter in four digits; a list for more than one.

    Example:
        >>> shown(torch.tensor(1 / 3)), shown(torch.tensor([0.5, 2.0]))
        ('0.3333', '[0.5, 2]')
    """
    numbers = value.detach().double().cpu()
    if numbers.numel() == 1:
        return f"{numbers.item():.4g}"
    return f"[{', '.join(shown(part) for part in numbers)}]"


def _coarser(dtype: torch.dtype, other: torch.dtype) -> bool:
    both = dtype.is_floating_point and other.is_floating_point
    return both and torch.finfo(other).eps < torch.finfo(dtype).eps
