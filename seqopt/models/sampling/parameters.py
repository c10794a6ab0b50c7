"""The parameters of any kernel as named numbers with bounds and proper priors, for samplers.

A parameter that is positive and may exceed 1 (a lengthscale, a variance, a weight of an order) is sampled by its
logarithm, one with finite bounds within [0, 1] or of any sign (a decay, a weight) as it is, within its bounds. A prior
that the kernel has registered for the parameter, truncated to its bounds, is taken as it is, whatever the coordinate:
with u = log v, p(u) = p(v) v. Where there is none, the prior is flat between finite bounds, and normal about the
kernel's own value otherwise: with standard deviation `SPREAD` for the logarithm of a positive parameter, `SPREAD`
max(1, \\|v\\|) for another. Every prior is normalised, so that kernels can be compared by their marginal likelihoods.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from scipy import integrate

from seqopt.encoding import Encoded
from seqopt.encoding.fields import Fields
from seqopt.errors import InputError
from seqopt.kernels.composite import bind_fields
from seqopt.models.covariance import AdaptiveKernel
from seqopt.models.log_units import LogUnitNormalPrior

Numbers = npt.NDArray[np.float64]

SPREAD = 2.0
"""Standard deviation of the prior of a parameter without bounds for which its kernel has none."""

REACH = 30.0
"""Half the width, in a coordinate, within which an unbounded prior has all its mass."""

NODES = 4001
"""Points at which a prior is evaluated to normalise it."""

INSIDE = 1e-9
"""Share of its interval that a parameter whose bounds cannot be reached keeps from them."""

REMEMBERED = 256
"""Values at which the logarithm of a prior is remembered: of several parameters, one moves at a time."""

OUTPUTSCALE, NOISE_VARIANCE, MEAN = "outputscale", "noise_variance", "mean"
"""Names of the parameters that every model has besides those of its kernel."""


@dataclass(frozen=True)
class Coordinate:
    """One number that a sampler moves.

    Attributes:
        name: Of the parameter; with its place in square brackets for one of several numbers.
        start: Where the first chain begins.
        lower: Lower bound of the coordinate.
        upper: Upper bound.
        width: How far it may be expected to move in a step.
        logarithmic: Whether the coordinate is the logarithm of the parameter.
        log_prior: Logarithm of the normalised prior density per unit of the coordinate, between the bounds.
        quantiles: Of the prior, at probabilities in (0, 1).
    """

    name: str
    start: float
    lower: float
    upper: float
    width: float
    logarithmic: bool
    log_prior: Callable[[float], float] = field(repr=False)
    quantiles: Callable[[Numbers], Numbers] = field(repr=False)

    def value(self, coordinate: Numbers) -> Numbers:
        """The parameter itself."""
        return np.exp(coordinate) if self.logarithmic else coordinate


class KernelParameters:
    """A kernel, a copy in double precision unless ``copied`` is false, whose parameters are set by one vector.

    Parameters with ``requires_grad_(False)`` stay as they are.

    Args:
        kernel: Any kernel without batch shape and without output scale.
        encoded: What it will be evaluated on: default priors of some kernels depend on it.
        copied: Whether to take a copy; otherwise the parameters are those of the kernel itself, as it is.

    Raises:
        InputError: For a kernel with a batch shape or an output scale of the whole, a prior that belongs to none of its
            parameters, or one of several numbers at once.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> parameters = KernelParameters(NgramKernel(), Encoder().encode(["AAB", "ABB", "BA"]))
        >>> [(found.name, found.logarithmic) for found in parameters.coordinates]
        [('lengthscale', True)]
    """

    def __init__(self, kernel: gpytorch.kernels.Kernel, encoded: Encoded | None = None, *, copied: bool = True) -> None:
        if kernel.batch_shape:
            raise InputError(f"the kernel has the batch shape {tuple(kernel.batch_shape)}; expected none")
        if isinstance(kernel, gpytorch.kernels.ScaleKernel):
            raise InputError("the kernel is a ScaleKernel; give it without output scale, which the model has itself")
        self.kernel = copy.deepcopy(kernel).to(torch.float64).eval() if copied else kernel
        if encoded is not None:
            if isinstance(encoded, Fields):
                bind_fields(self.kernel, encoded.columns)
            frozen = [(found, found.detach().clone()) for found in self.kernel.parameters() if not found.requires_grad]
            if isinstance(self.kernel, AdaptiveKernel):
                self.kernel.adapt(encoded.to_tensor())
            for parameter, value in frozen:
                parameter.data.copy_(value)
        self._parts = [
            _Part(name, parameter, constraint, _prior_of(self.kernel, name))
            for name, parameter, constraint in self.kernel.named_parameters_and_constraints()
            if parameter.requires_grad
        ]
        owned = {id(part.prior) for part in self._parts if part.prior is not None}
        unused = {id(_prior_of(self.kernel, n)) for n, p in self.kernel.named_parameters() if not p.requires_grad}
        for name, _, prior, _, _ in self.kernel.named_priors():
            if id(prior) not in owned | unused:
                raise InputError(
                    f"the prior {name} belongs to no parameter of the kernel; expected one named raw_X for X_prior"
                )

    @cached_property
    def coordinates(self) -> list[Coordinate]:
        """What a sampler moves, in the order of `names`. Their priors are normalised when they are first asked for."""
        return [found for part in self._parts for found in part.coordinates()]

    @property
    def names(self) -> list[str]:
        """Those of the parameters."""
        return [name for part in self._parts for name in part.names]

    @property
    def values(self) -> list[float]:
        """The kernel's own values of the parameters, in the order of `names`."""
        return [value for part in self._parts for value in part.values]

    def set(self, values: Sequence[float]) -> gpytorch.kernels.Kernel:
        """Give the kernel these values of its parameters, in the order of `names`, and return it."""
        place = 0
        for part in self._parts:
            part.set(values[place : place + part.size])
            place += part.size
        return self.kernel


class _Part:
    """One parameter of a kernel, of any shape."""

    def __init__(
        self,
        name: str,
        parameter: torch.nn.Parameter,
        constraint: gpytorch.constraints.Interval | None,
        prior: gpytorch.priors.Prior | None,
    ) -> None:
        self.parameter = parameter
        self.constraint = constraint
        self.prior = prior
        self.size = parameter.numel()
        owner, _, raw = name.rpartition(".")
        self.name = ".".join(filter(None, [owner, raw.removeprefix("raw_")]))
        if prior is not None and len(prior.event_shape):
            raise InputError(f"the prior of {self.name} is one of vectors, {prior}; expected one of single numbers")
        raw_values = parameter.detach()
        values = raw_values if constraint is None else constraint.transform(raw_values)
        self.names = [self.name] if self.size == 1 else [f"{self.name}[{place}]" for place in range(self.size)]
        for one in self.names:
            if one in (OUTPUTSCALE, NOISE_VARIANCE, MEAN):
                raise InputError(f"the kernel has a parameter {one}, which every model has itself: leave it out")
        self.values: list[float] = values.reshape(-1).tolist()
        self.lower, self.upper = -math.inf, math.inf
        if constraint is not None:
            self.lower, self.upper = float(constraint.lower_bound.min()), float(constraint.upper_bound.max())

    def coordinates(self) -> list[Coordinate]:
        return [self._coordinate(place) for place in range(self.size)]

    def set(self, values: Sequence[float]) -> None:
        tensor = torch.tensor(values, dtype=torch.float64).reshape(self.parameter.shape)
        if self.constraint is not None:
            if self.constraint.enforced and math.isfinite(self.upper - self.lower):
                margin = INSIDE * (self.upper - self.lower)
                tensor = tensor.clamp(self.lower + margin, self.upper - margin)
            tensor = self.constraint.inverse_transform(tensor)
        self.parameter.data.copy_(tensor)

    def _coordinate(self, place: int) -> Coordinate:
        name = self.names[place]
        value = min(max(self.values[place], self.lower), self.upper)
        logarithmic = self.lower >= 0.0 and self.upper > 1.0 and value > 0.0
        start = math.log(value) if logarithmic else value
        lower, upper = self.lower, self.upper
        if logarithmic:
            lower, upper = (math.log(bound) if bound > 0.0 else -math.inf for bound in (lower, upper))
        # Beyond, there is nothing of the prior, and softplus has no inverse.
        lower, upper = max(lower, start - REACH * self._unit(start)), min(upper, start + REACH * self._unit(start))
        bounded = not logarithmic and math.isfinite(self.upper - self.lower)
        # Steps beyond a bound cost nothing, and posteriors of shares are wide.
        width = upper - lower if bounded else self._unit(start)

        def unnormalised(points: Numbers) -> Numbers:
            if self.prior is not None:
                return self._registered(points, place, logarithmic)
            if bounded:
                return np.zeros(len(points))
            return -0.5 * ((points - start) / (SPREAD * (1.0 if logarithmic else self._unit(start)))) ** 2

        grid = np.linspace(lower, upper, NODES)
        densities = unnormalised(grid)
        top = float(densities[np.isfinite(densities)].max(initial=-math.inf))
        if not math.isfinite(top):
            raise InputError(
                f"the prior of {name} has no density between its bounds, {self.lower:g} and {self.upper:g}"
            )
        total = top + math.log(float(integrate.simpson(np.exp(densities - top), x=grid)))

        @lru_cache(maxsize=REMEMBERED)
        def log_prior(point: float) -> float:
            return float(unnormalised(np.array([point]))[0]) - total

        def quantiles(probabilities: Numbers) -> Numbers:
            cumulated = integrate.cumulative_trapezoid(np.exp(densities - top), grid, initial=0.0)
            return np.interp(probabilities * cumulated[-1], cumulated, grid)

        return Coordinate(name, start, lower, upper, width, logarithmic, log_prior, quantiles)

    def _unit(self, start: float) -> float:
        return 1.0 if self.lower >= 0.0 else max(1.0, abs(start))

    def _registered(self, points: Numbers, place: int, logarithmic: bool) -> Numbers:
        assert self.prior is not None
        values = torch.from_numpy(np.exp(points) if logarithmic else points)
        shape = self.parameter.shape
        with torch.no_grad():
            if not self.prior.batch_shape:
                return self._per_unit(self.prior.log_prob(values).numpy(), values, logarithmic)
            spread = values.reshape(-1, *[1] * len(shape)).expand(-1, *shape)
            densities = self.prior.log_prob(spread).expand(spread.shape).reshape(len(points), -1)[:, place].numpy()
        return self._per_unit(densities, values, logarithmic)

    def _per_unit(self, densities: Numbers, values: torch.Tensor, logarithmic: bool) -> Numbers:
        """Logarithms of densities per unit of the coordinate, from those per unit of the parameter."""
        logarithms = values.log().numpy() if logarithmic or isinstance(self.prior, LogUnitNormalPrior) else 0.0
        if isinstance(self.prior, LogUnitNormalPrior):
            densities = densities - logarithms
        found: Numbers = densities + logarithms if logarithmic else densities
        return found


def _prior_of(kernel: gpytorch.kernels.Kernel, name: str) -> gpytorch.priors.Prior | None:
    """The prior ``X_prior`` of the parameter ``raw_X``."""
    owner, _, raw = name.rpartition(".")
    module = kernel.get_submodule(owner)
    entry = getattr(module, "_priors", {}).get(f"{raw.removeprefix('raw_')}_prior")
    return None if entry is None else entry[0]
