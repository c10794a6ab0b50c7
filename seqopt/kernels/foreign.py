"""Descriptions of gpytorch kernels that surrogates of ours are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel

from seqopt.utils.config import Config, NotConfigurableError, from_config, register_codec


def _write(kernel: RBFKernel) -> Config:
    """A kernel of one lengthscale as `seqopt.models.registry.smooth_gp` makes it, or gpytorch's default."""
    constraint = kernel.raw_lengthscale_constraint
    bounded = type(constraint) is GreaterThan and not constraint.enforced
    if kernel.batch_shape or kernel.active_dims is not None or not (bounded or constraint.lower_bound == 0):
        raise NotConfigurableError("an RBFKernel with batch shape, active dimensions or such a constraint is not known")
    return {
        "lengthscale": kernel.lengthscale.detach().double().reshape(-1).tolist(),
        "lengthscale_prior": kernel._modules.get("lengthscale_prior"),
        "lowest": float(constraint.lower_bound) if bounded else None,
    }


def _make(config: Mapping[str, Any]) -> RBFKernel:
    lengthscale, lowest = config["lengthscale"], config["lowest"]
    options: dict[str, Any] = {"lengthscale_prior": from_config(config["lengthscale_prior"])}
    if len(lengthscale) > 1:
        options["ard_num_dims"] = len(lengthscale)
    if lowest is not None:
        options["lengthscale_constraint"] = GreaterThan(lowest, transform=None, initial_value=lengthscale[0])
    kernel = RBFKernel(**{name: value for name, value in options.items() if value is not None})
    kernel.lengthscale = torch.tensor(lengthscale)
    return kernel


register_codec(RBFKernel, _write, _make)
