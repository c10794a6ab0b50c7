"""What all plates have in common, and how far each departs from it.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, chapter 6 (BOSH).
    Hensman, J., Lawrence, N. D. and Rattray, M. (2013). Hierarchical Bayesian modelling of gene expression time series
        across irregularly sampled replicates and clusters. BMC Bioinformatics 14, 252.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import gpytorch
import numpy as np
import torch
from botorch.utils.constraints import NonTransformedInterval
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from seqopt.kernels.base import shown
from seqopt.kernels.composite import _Combination
from seqopt.kernels.levels import VARIANCE_BOUNDS, Reading, Setting, fitting
from seqopt.utils.config import from_config

BEGINNING = 0.1
"""Variance of either part of a departure to begin with, in units of what plates have in common."""

PRIOR = (-3.0, 1.5)
"""Mean and standard deviation of the normal prior of its logarithm."""


class HierarchicalKernel(_Combination):
    r"""A kernel on strings, and departures from it that all strings of one plate share and no other plate has.

    .. math:: k((x, p), (x', p')) = k_g(x, x') + [p = p'] \left( s\, k_g(x, x') + o \right)

    with the kernel :math:`k_g` of what is common to all plates, g; a plate's own function has the same kernel times s,
    and its offset the variance o. An item without a plate is g itself: :math:`k_g(x, x')`, with whatever plate the
    other is on. The kernel on strings is evaluated once.

    Args:
        kernel: :math:`k_g`, on any field.
        plates: 1 for items of the same plate, else 0: `OnField` of a `SameLevelKernel`.
        deviation: s to begin with, in [1e-6, 1e3].
        offset: o to begin with, likewise.

    Raises:
        InputError: If a part is no kernel. When a parameter is set: if it is out of bounds.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.fields import FieldEncoder, NameEncoder
        >>> from seqopt.data import Query
        >>> from seqopt.kernels import OnField, SameLevelKernel, SubsequenceKernel
        >>> kernel = HierarchicalKernel(
        ...     OnField(SubsequenceKernel(), "tokens"), OnField(SameLevelKernel(), "plate"), deviation=0.5, offset=0.25
        ... )
        >>> items = FieldEncoder({"plate": NameEncoder("plate"), "tokens": Encoder()}).encode(
        ...     [Query("AC", {"plate": "P1"}), Query("AC", {"plate": "P2"}), "AC"]
        ... )
        >>> kernel.cross(items).round(3).tolist()
        [[1.75, 1.0, 1.0], [1.0, 1.75, 1.0], [1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        kernel: gpytorch.kernels.Kernel,
        plates: gpytorch.kernels.Kernel,
        *,
        deviation: Any = BEGINNING,
        offset: Any = BEGINNING,
    ) -> None:
        super().__init__(kernel, plates)
        for name, value in (("deviation", deviation), ("offset", offset)):
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(fitting(name, value, (1,))))
            self.register_constraint(f"raw_{name}", NonTransformedInterval(*VARIANCE_BOUNDS).double())
            self.register_prior(f"{name}_prior", LogNormalPrior(*PRIOR), Reading(name), Setting(name))
            setattr(self, name, value)

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "kernel": self.kernels[0],
            "plates": self.kernels[1],
            "deviation": float(self.deviation.detach()),
            "offset": float(self.offset.detach()),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The kernel that `config` described."""
        given = {name: from_config(value) for name, value in config.items() if name not in ("type", "frozen")}
        made = cls(**given)
        for name in config.get("frozen", ()):
            getattr(made, name).requires_grad_(False)
        return made

    @property
    def deviation(self) -> Tensor:
        """s, 1. Assign to change it."""
        raw: Tensor = self.raw_deviation
        return raw.clamp(*VARIANCE_BOUNDS)

    @deviation.setter
    def deviation(self, value: Any) -> None:
        self.initialize(raw_deviation=fitting("deviation", value, (1,)).to(self.raw_deviation))

    @property
    def offset(self) -> Tensor:
        """o, 1. Assign to change it."""
        raw: Tensor = self.raw_offset
        return raw.clamp(*VARIANCE_BOUNDS)

    @offset.setter
    def offset(self, value: Any) -> None:
        self.initialize(raw_offset=fitting("offset", value, (1,)).to(self.raw_offset))

    def _described(self) -> Mapping[str, object]:
        strings, plates = self.kernels
        return {
            "*kernel": strings,
            "*plates": plates,
            "deviation": shown(self.deviation),
            "offset": shown(self.offset),
        }

    def _combined(self, values: Iterable[Any]) -> Any:
        common, same = values
        if isinstance(common, np.ndarray):
            deviation, offset = float(self.deviation.detach()), float(self.offset.detach())
            # The common part is ours to change: of a pool's columns there is no room for many copies.
            ours = common if common.flags.writeable else common.copy()
            result = np.multiply(ours, 1.0 + deviation * same, out=ours, casting="same_kind")
            result += offset * same
            return result
        return common * (1.0 + self.deviation * same) + self.offset * same

    def __getitem__(self, index: Any) -> HierarchicalKernel:
        strings, plates = (part[index] for part in self._parts())
        return self._with(strings, plates)

    def expand_batch(self, *sizes: Any) -> HierarchicalKernel:
        """The same with another batch shape, see `gpytorch.kernels.Kernel.expand_batch`."""
        strings, plates = (part.expand_batch(*sizes) for part in self._parts())
        return self._with(strings, plates)

    def _with(self, strings: gpytorch.kernels.Kernel, plates: gpytorch.kernels.Kernel) -> HierarchicalKernel:
        found = HierarchicalKernel(strings, plates).train(self.training)
        found.raw_deviation, found.raw_offset = self.raw_deviation, self.raw_offset
        return found
