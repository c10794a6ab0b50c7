r"""How well the correlation of two levels is known where parameters are estimated: its profile likelihood.

With the kernel on strings k as it was fitted, the values z of two levels are jointly normal with

.. math:: \operatorname{cov} = s\,\big(k(x, x')\, B_{ij} + [i = j]\, o\big) + [\text{same}]\, \sigma_i^2,
    \qquad B_{12} = \rho \sqrt{B_{11} B_{22}},

where s, the offsets' variance o and the mean are those of the fit. Let l(rho) be the largest log density of these
values, the priors of a fit included, over the variances of both levels and of their noise, and over how B is made of
factors and variances. The interval holds all rho with

.. math:: 2\,\big(\max l - l(\rho)\big) \le m \log\Big(1 + \frac{F}{m - 2}\Big),

with F the 90 % quantile of the F distribution with 1 and m - 2 degrees of freedom, and m strings that are known at both
levels: the exact bound where values of different strings are independent and the variances of a regression are
estimated, which tends to 2.71, that of chi-squared. With m <= 2 every correlation is in it. It leaves out that k is
uncertain, and values of further levels, and is rather too narrow therefore.

References:
    Pawitan, Y. (2001). In all likelihood, sections 2.6, 3.4 and 6.1. Oxford University Press (profile likelihood, and
        that of a regression).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from scipy.stats import f
from torch import Tensor

from seqopt.data.query import ContextValue, key_of
from seqopt.encoding.fields import Fields
from seqopt.kernels import CoregionalizationKernel, OnField, Product, Sum
from seqopt.kernels.context import VARIANCE_PRIOR
from seqopt.models.fitting import NOISE_BOUNDS
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.string_gp import StringGP

MOST = 300
"""Values at most that are looked at, those of strings that are known at both levels first."""

STEP = 0.25
"""In atanh(rho), between points at which the profile is computed."""

END = 4.0
"""Where atanh(rho) ends: what lies beyond +-.9993 is not told apart."""

NOISE_PRIOR = (-4.0, 1.0)
"""Of the logarithm of noise variances, as in `seqopt.models.fitting`."""

STEPS = 40
"""Of L-BFGS-B, at most, at each rho."""


def correlation_interval(surrogate: GaussianSurrogate, level: ContextValue) -> tuple[float, float] | None:
    """The central 90 % of the correlation of a level with the target, by the profile likelihood.

    Args:
        surrogate: Fitted.
        level: A level of its variable, not the target.

    Returns:
        Both ends; `None` for a surrogate that is not a point estimate of intrinsic coregionalisation
        (`seqopt.models.contexts.coregionalized`), where values are limits, or where either level has no values.
    """
    found = _profile_of(surrogate, level)
    return None if found is None else found.interval()


def largest_drop(both: int) -> float:
    """By how much the log density at an end of an interval lies below the largest one.

    Args:
        both: Strings that are known at both levels.

    Example:
        >>> [round(largest_drop(both), 2) for both in (2, 6, 20, 10_000)]
        [inf, 2.28, 1.54, 1.35]
    """
    if both <= 2:
        return math.inf
    return 0.5 * both * math.log1p(float(f.ppf(0.9, 1, both - 2)) / (both - 2))


class Profile:
    """The profile likelihood of the correlation of two levels.

    Args:
        gram: Of the kernel on strings, ``n x n``, times the output scale.
        second: Which of the values are of the second level, n.
        residuals: Values less their mean, n.
        offset: Variance of an offset of a level.
        known: Known variances of noise, n.
        start: rho, the variances of both levels and of their noise, as fitted.
        both: Strings that are known at both levels.
    """

    def __init__(
        self,
        gram: Tensor,
        second: npt.NDArray[np.bool_],
        residuals: Tensor,
        offset: float,
        known: Tensor,
        start: tuple[float, float, float, float, float],
        both: int,
    ) -> None:
        self.drop = largest_drop(both)
        self._gram, self._residuals, self._known, self._offset = gram, residuals, known, offset
        self._numbers = torch.from_numpy(second.astype(np.int64))
        self._same = self._numbers[:, None] == self._numbers[None, :]
        self.rho = min(max(start[0], math.tanh(-END)), math.tanh(END))
        # Logarithms of the variances of levels and of noise, and how the squared correlation is divided between them.
        self._start = np.array([*np.log(np.maximum(start[1:], 1e-6)), 0.0])

    def log_density(self, rho: float, rest: Tensor) -> Tensor:
        """Of the values and the parameters, less what does not change with these.

        Args:
            rho: The correlation.
            rest: The logarithms of B_11, B_22 and both noise variances; and t, which divides rho^2 = a_1 a_2 into the
                shares a of both levels' variances that are common: a_1 = |rho|^(2 / (1 + exp(t))).
        """
        level, noise = rest[:2].exp(), rest[2:4].exp()
        share = torch.sigmoid(rest[4:5])
        exponents = torch.cat([1.0 - share, share])
        common = torch.tensor(max(rho * rho, 1e-12), dtype=torch.float64) ** exponents
        own = (level * (1.0 - common)).clamp_min(1e-12)
        roots = level.sqrt()
        covariance = roots[:, None] * roots[None, :]
        covariance = covariance * torch.tensor([[1.0, rho], [rho, 1.0]], dtype=torch.float64)
        numbers = self._numbers
        total = self._gram * covariance[numbers][:, numbers] + self._same * self._offset
        factor = torch.linalg.cholesky(total + torch.diag(noise[numbers] + self._known))
        white = torch.linalg.solve_triangular(factor, self._residuals[:, None], upper=False)
        found: Tensor = -0.5 * white.square().sum() - factor.diagonal().log().sum()
        centre, spread = VARIANCE_PRIOR
        found = found - (0.5 * ((own.log() - centre) / spread).square() + own.log()).sum()
        centre, spread = NOISE_PRIOR
        return found - (0.5 * ((rest[2:4] - centre) / spread).square()).sum()

    def at(self, rho: float, start: npt.NDArray[np.float64] | None = None) -> tuple[float, npt.NDArray[np.float64]]:
        """The largest log density at a correlation, and the other parameters there."""

        def loss(rest: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            given = torch.from_numpy(rest).requires_grad_(True)
            try:
                value = self.log_density(rho, given)
                (slope,) = torch.autograd.grad(value, given)
            except RuntimeError:  # no factor at all: linear algebra raises this kind of error
                return math.inf, np.zeros_like(rest)
            return -value.item(), -slope.numpy()

        low, high = math.log(NOISE_BOUNDS[0]), math.log(NOISE_BOUNDS[1])
        bounds = [(-9.0, 7.0)] * 2 + [(low, high)] * 2 + [(-6.0, 6.0)]
        first = np.clip(self._start if start is None else start, *np.array(bounds).T)
        found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
        return -float(found.fun), found.x

    def interval(self) -> tuple[float, float]:
        """All correlations whose profile lies within `largest_drop` of its largest value."""
        if math.isinf(self.drop):
            return -1.0, 1.0
        centre = math.atanh(self.rho)
        points = {centre: self.at(self.rho)}
        best = points[centre][0]
        for direction in (-1.0, 1.0):
            z, rest = centre, points[centre][1]
            # Until it has fallen for good: what is found on the way may lie above where the fit has ended.
            while abs(z + direction * STEP) <= END:
                z += direction * STEP
                value, rest = self.at(math.tanh(z), rest)
                points[z] = value, rest
                best = max(best, value)
                if value < best - 2 * self.drop:
                    break
        order = sorted(points)
        inside = [z for z in order if points[z][0] >= best - self.drop]
        ends = []
        for end, beyond in ((inside[0], -1), (inside[-1], 1)):
            place = order.index(end) + beyond
            if not 0 <= place < len(order):
                ends.append(math.tanh(math.copysign(END, beyond)) if abs(end) + STEP > END else math.tanh(end))
                continue
            other = order[place]
            high, low = points[end][0], points[other][0]
            part = (high - (best - self.drop)) / (high - low)
            ends.append(math.tanh(end + part * (other - end)))
        return ends[0], ends[1]


def _profile_of(surrogate: GaussianSurrogate, level: ContextValue) -> Profile | None:
    levels = surrogate.levels
    if not isinstance(surrogate, StringGP) or levels is None or levels.target is None:
        return None
    parts = _parts(surrogate)
    state = surrogate.fitted
    if parts is None or state.limits is not None or state.level_noise is None:
        return None
    strings, between, offsets = parts
    pair = levels.values.index(level), levels.target_number
    numbers = levels.numbers(state.keys)
    keys = [key_of(item) for item in state.keys]
    chosen = _chosen(numbers, keys, pair)
    second = numbers[chosen] == pair[1]
    if not len(chosen) or second.all() or not second.any():
        return None
    encoded = state.encoded.take(chosen)
    assert isinstance(encoded, Fields)  # what a kernel on fields has been fitted to
    gram = torch.from_numpy(np.array(strings.cross(encoded, None, strings.self_similarity(encoded)), dtype=np.float64))
    scale = float(state.scale[0])
    b = between.covariance.detach().double()[list(pair)][:, list(pair)]
    learned = state.level_noise.learned[0][list(pair)]
    rho = float(b[0, 1] / (b[0, 0] * b[1, 1]).sqrt())
    of = torch.from_numpy(chosen)
    noise = learned[torch.from_numpy(second.astype(np.int64))]
    return Profile(
        scale * 0.5 * (gram + gram.T),
        second,
        (state.targets.reshape(-1) - state.constant[0])[of],
        scale * float(offsets.covariance.detach()[0, 0]),
        (state.observed_noise[0][of] - noise).clamp_min(0.0),
        (rho, float(b[0, 0]), float(b[1, 1]), float(learned[0]), float(learned[1])),
        len({keys[place] for place in chosen[second]} & {keys[place] for place in chosen[~second]}),
    )


def _parts(surrogate: StringGP) -> tuple[OnField, CoregionalizationKernel, CoregionalizationKernel] | None:
    """The kernel on strings, that on levels, and that of offsets, of a model that is made of these alone."""
    kernel = surrogate.model.covar_module.base_kernel
    if not isinstance(kernel, Sum) or len(kernel.kernels) != 2:
        return None
    joint, offsets = kernel.kernels
    if not isinstance(joint, Product) or len(joint.kernels) != 2 or not isinstance(offsets, OnField):
        return None
    strings, between = joint.kernels
    if not isinstance(strings, OnField) or not isinstance(between, OnField):
        return None
    if not isinstance(between.kernel, CoregionalizationKernel) or not isinstance(
        offsets.kernel, CoregionalizationKernel
    ):
        return None
    return strings, between.kernel, offsets.kernel


def _chosen(numbers: npt.NDArray[np.int64], keys: list[str], pair: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Places of at most `MOST` values of two levels, those of strings with both first."""
    places = np.flatnonzero(np.isin(numbers, pair))
    of = [{keys[place] for place in places.tolist() if numbers[place] == one} for one in pair]
    both = of[0] & of[1]
    order = sorted(places.tolist(), key=lambda place: keys[place] not in both)
    return np.array(sorted(order[:MOST]), dtype=np.int64)
