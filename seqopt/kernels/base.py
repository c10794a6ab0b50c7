"""What the kernels of seqopt share: a `repr` that shows their parameters, and states read in full precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import gpytorch
import torch
from gpytorch.priors import GammaPrior, LogNormalPrior, NormalPrior, Prior
from torch import Tensor

from seqopt.utils.config import Config, Configurable, argument_names, register_codec


class DescribedKernel(gpytorch.kernels.Kernel, Configurable):
    """A kernel whose `repr` looks like the call that makes it, at its current parameters, and that can be written down.

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

    def config(self) -> Config:
        """The kernel as JSON values, with its parameters as they are; those that are not learned are named.

        Raises:
            NotConfigurableError: If a prior or a part cannot be written down.
        """
        frozen = [name for name, parameter in self.named_parameters(recurse=False) if not parameter.requires_grad]
        return super().config() | ({"frozen": frozen} if frozen else {})

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The kernel that `config` described."""
        made = super().from_config({name: value for name, value in config.items() if name != "frozen"})
        for name in config.get("frozen", ()):
            getattr(made, name).requires_grad_(False)
        return made

    def config_arguments(self) -> Mapping[str, Any]:
        """See `Configurable`: batch shapes and columns as tuples, parameters without a graph."""
        return {name: self._argument(name) for name in argument_names(type(self))}

    def _argument(self, name: str) -> Any:
        if name == "active_dims":
            return None if self.active_dims is None else self.active_dims.tolist()
        if name == "batch_shape":
            return list(self.batch_shape) or None
        if name.endswith("_prior"):
            return self._modules.get(name)
        return getattr(self, name)

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


def _location_and_scale(prior: Prior) -> Config:
    return {"loc": float(prior.loc), "scale": float(prior.scale)}


register_codec(NormalPrior, _location_and_scale)
register_codec(LogNormalPrior, _location_and_scale)
register_codec(GammaPrior, lambda prior: {"concentration": float(prior.concentration), "rate": float(prior.rate)})
