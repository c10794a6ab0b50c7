r"""Gaussian process on strings whose results are yes or no.

Model: the log odds of a hit are f(s) = c + g(s), g ~ GP(0, v k), and of n wells of a string k are hits with the
probability :math:`\binom{n}{k} \sigma(f)^k \sigma(-f)^{n-k}`. The posterior of f is Laplace's approximation
(`seqopt.models.laplace`), a Gaussian one. It is that of a Gaussian process with the values f + g / W of known noise
1 / W in place of the results, so that everything in `seqopt.models.gaussian` holds of it, on the scale of log odds:
posteriors of pools, conditioning on what is awaited, joint draws, and with them every acquisition function.

Parameters of the kernel, the variance v and the constant c are those of largest evidence, with weak priors:
log v ~ N(log 4, 1), and c ~ N(log odds of all results, 2^2).

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, chapter 3.
    Prentice, R. L. and Pyke, R. (1979). Logistic disease incidence models and case-control studies. Biometrika 66,
        403-411 (hits and others sampled at different rates shift the constant alone).
    Williams, D. A. (1982). Extra-binomial variation in logistic linear models. Applied Statistics 31, 144-148.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import scipy.optimize
import torch

from seqopt.data.query import Item
from seqopt.data.yes_no import probability_moments
from seqopt.encoding import Encoded, Encoder
from seqopt.errors import InputError, ModelError
from seqopt.kernels import bind_symbols
from seqopt.models.checks import checked_values
from seqopt.models.covariance import AdaptiveKernel, FittedKernel, KernelEvaluator
from seqopt.models.fitting import Parameters, parameters_of, set_parameters
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.laplace import laplace_evidence, pseudo_values
from seqopt.models.leave_one_out import LeaveOneOut, leave_one_out
from seqopt.models.protocols import Surrogate, unsupported
from seqopt.models.registry import SURROGATES, check_surrogate, resolve_surrogate
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

SCALE_PRIOR = (math.log(4.0), 1.0)
"""Mean and standard deviation of the logarithm of v. At v = 4 odds of unlike strings differ some sevenfold."""

CONSTANT_STD = 2.0
"""Standard deviation of c about the log odds of all results."""

SCALE_BOUNDS = (math.log(1e-3), math.log(1e4))
"""Bounds of the logarithm of v."""

ITERATIONS = 60
"""Steps of a fit at most."""

LARGEST_OBJECTIVE = 1e10
"""What stands for the objective where it cannot be computed."""

USUAL_SHARE = 0.1
"""What a measurement to come is expected to tell is that of a string with the odds of all results, but of none rarer
than this: such ones are not suggested."""


@dataclass(frozen=True)
class Tallies:
    """Results of n different strings.

    Attributes:
        strings: The strings, in the order in which they first occur.
        yes: Wells that were hits, n; not whole numbers where wells of one string depend on each other.
        no: Others, n.
    """

    strings: list[str]
    yes: FloatArray
    no: FloatArray

    @classmethod
    def of(cls, strings: Sequence[str], labels: FloatArray, trials: FloatArray, overdispersion: float = 0.0) -> Tallies:
        """Those of rows, of which several may be of one string.

        Example:
            >>> Tallies.of(["A", "B", "A"], np.array([1.0, -1.0, 0.0]), np.array([1.0, 1.0, 4.0])).yes.tolist()
            [3.0, 0.0]
        """
        places: dict[str, int] = {}
        rows = np.array([places.setdefault(string, len(places)) for string in strings], dtype=np.int64)
        yes = np.bincount(rows, trials * (1.0 + labels) / 2.0, len(places))
        no = np.bincount(rows, trials * (1.0 - labels) / 2.0, len(places))
        shrunk = 1.0 + (np.maximum(yes + no, 1.0) - 1.0) * overdispersion
        return cls(list(places), yes / shrunk, no / shrunk)

    @property
    def log_odds(self) -> float:
        """Logarithm of the odds of all results, each count enlarged by a half."""
        return math.log((self.yes.sum() + 0.5) / (self.no.sum() + 0.5))

    def take(self, rows: npt.NDArray[np.int64]) -> Tallies:
        """Those of some strings."""
        return Tallies([self.strings[row] for row in rows.tolist()], self.yes[rows], self.no[rows])

    def sampled(self, count: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], float]:
        """About ``count`` strings, as many with more hits than misses as others where there are so many.

        Returns:
            Their indices, and by how much the log odds among them exceed those among all.
        """
        hits, misses = np.flatnonzero(self.yes > self.no), np.flatnonzero(self.yes <= self.no)
        fewer = min(len(hits), len(misses), count // 2)
        kept = [
            np.sort(
                rng.choice(rows, size=min(len(rows), fewer if len(rows) == fewer else count - fewer), replace=False)
            )
            if len(rows) > fewer
            else rows
            for rows in (hits, misses)
        ]
        if len(hits) > fewer and len(misses) > fewer:
            kept = [np.sort(rng.choice(rows, size=count // 2, replace=False)) for rows in (hits, misses)]
        shift = 0.0
        if all(map(len, kept)):
            shift = math.log((len(kept[0]) / len(hits)) / (len(kept[1]) / len(misses)))
        return np.sort(np.concatenate(kept)), shift


@dataclass(frozen=True)
class _Found:
    """Parameters of one kernel, and the objective there."""

    objective: float
    scale: float
    constant: float
    kernel: Parameters


class BinomialGP(GaussianSurrogate, Configurable):
    """Gaussian process with a binomial likelihood: probabilities of hits, with what is not known of them.

    Values are labels from -1 (no well was a hit) to 1 (all were), as `seqopt.data.YesNo` makes them; predictions are
    log odds. Of several kernels, that of the largest evidence is taken.

    Args:
        base: Where kernels and features come from: the name of a surrogate of values
            (`seqopt.models.SURROGATES`, ``"auto"``), or one as an object. Its own parameters stay as they are.
        refit_growth: The kernel's own parameters are fitted anew when the number of strings has grown by this fraction
            since, or strings that were fitted last are not among the new ones; v and c in each fit.
        fit_size: Parameters are fitted to at most so many strings: all that were hits, as far as they are half of
            these, and others drawn at random. The constant is corrected for that. The model is always conditioned on
            all.
        overdispersion: Correlation of wells of one string besides its own probability, from 0 to 1: 0 where they are
            independent, 1 where all wells of a string are one. n wells count as n / (1 + (n - 1) overdispersion), the
            variance of a beta-binomial distribution (Williams 1982).

    Raises:
        InputError: For an unknown name, or a base that has no kernel, a prior mean or levels.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> model = BinomialGP("ssk")
        >>> model.fit(["AAAA", "AAAT", "TTTA", "TTTT"], [-1.0, -1.0, 0.5, 1.0], rng=rng, trials=[8, 8, 8, 8])
        >>> low, high = model.probabilities(["ATAA", "TTAT"])[0]
        >>> bool(low < 0.5 < high)
        True
    """

    takes_trials = True
    """`fit` takes the number of wells of each value."""

    def __init__(
        self,
        base: Surrogate | str = "auto",
        *,
        refit_growth: float = 0.1,
        fit_size: int = 500,
        overdispersion: float = 0.0,
    ) -> None:
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        if fit_size < 2:
            raise InputError(f"fit_size is {fit_size}; a fit needs at least 2 strings")
        if not 0.0 <= overdispersion <= 1.0:
            raise InputError(f"overdispersion is {overdispersion}; expected a correlation from 0 to 1")
        self.base = base
        self.refit_growth = refit_growth
        self.fit_size = fit_size
        self.overdispersion = float(overdispersion)
        self._inner: GaussianSurrogate | None = None
        self.kernels: list[gpytorch.kernels.Kernel] = []
        self._begins: list[Parameters] = []
        super().__init__(Encoder("characters"))
        if isinstance(base, str):
            check_surrogate(base)
        else:
            self._take(base)
        self._pool: PoolSpace | None = None
        self._width = 0
        self._chosen: int | None = None
        self._parameters: Parameters = {}
        self._scale, self._constant = math.exp(SCALE_PRIOR[0]), 0.0
        self._full_fit_size = 0
        self._keys: list[str] = []

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "base": self.base,
            "refit_growth": self.refit_growth,
            "fit_size": self.fit_size,
            "overdispersion": self.overdispersion,
        }

    def _take(self, base: object) -> None:
        """Take kernels and encoder of a surrogate of values."""
        found = getattr(base, "kernels", None) or [getattr(base, "kernel", None)]
        # Parameters are learned by gradients, of which those of a motif have none.
        moved = [kernel for kernel in found if not getattr(kernel, "discrete", ())]
        if found and not moved:
            raise InputError("motifs are not learned from results of yes and no: choose another surrogate, or 'auto'")
        found = moved
        if not isinstance(base, GaussianSurrogate) or not all(
            isinstance(kernel, gpytorch.kernels.Kernel) and not kernel.batch_shape for kernel in found
        ):
            raise InputError(
                f"{type(base).__name__} has no kernel that results of yes and no could be learned with: give a "
                "surrogate of seqopt.models that has one, or a name such as 'auto'"
            )
        if base.mean is not None or base.levels is not None:
            raise InputError(
                f"{type(base).__name__} has a prior mean or levels of values, which yes and no do not have"
            )
        self._inner = base
        # Steps of a fit are smaller than single precision can tell apart.
        self.kernels = [copy.deepcopy(kernel).to(torch.float64) for kernel in found]
        self._begins = [parameters_of(kernel) for kernel in self.kernels]
        self.encoder = base.encoder
        for kernel in self.kernels:
            bind_symbols(kernel, self.encoder)

    def bind(self, space: Space) -> None:
        """Find the surrogate that kernels and features are those of; called by the optimiser.

        Raises:
            InputError: If it does not fit the space.
        """
        base = resolve_surrogate(self.base, space)
        if hasattr(base, "bind"):
            base.bind(space)
        fresh = self._inner is None or isinstance(self.base, str)
        if fresh:
            self._take(base)
        else:
            assert isinstance(base, GaussianSurrogate)
            self.encoder = base.encoder
            for kernel in self.kernels:
                bind_symbols(kernel, self.encoder)
        self._pool = space if isinstance(space, PoolSpace) else None
        if self._parameters and self._chosen is not None:
            set_parameters(self.kernels[self._chosen], self._parameters)

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """What the surrogate that kernels and features are those of cannot compare."""
        return {} if self._inner is None else unsupported(self._inner, strings)

    @property
    def units(self) -> tuple[float, float]:
        """Log odds are not standardised."""
        return 0.0, 1.0

    @property
    def kernel(self) -> gpytorch.kernels.Kernel:
        """The kernel of the last fit.

        Raises:
            ModelError: Before the first fit.
        """
        if self._chosen is None:
            raise ModelError("this surrogate has not been fitted yet: call fit(strings, labels, rng=...)")
        return self.kernels[self._chosen]

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Parameters of the kernel, the variance of the log odds (outputscale) and their mean."""
        values = {
            name: float(getattr(part, name).detach().mean())
            for name in ("match_decay", "gap_decay", "lengthscale", "weight")
            for part in self.kernel.modules()
            if isinstance(getattr(part, name, None), torch.Tensor)
        }
        several = {"kernel": float(self._chosen or 0)} if len(self.kernels) > 1 else {}
        return values | {"outputscale": self._scale, "mean": self._constant} | several

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        trials: npt.ArrayLike | None = None,
        full: bool | None = None,
    ) -> None:
        """Fit to ``strings`` and labels.

        Args:
            strings: n strings; several rows of one string are further wells of it.
            values: n labels from -1 to 1: 2 k / n - 1 of k hits of n wells.
            rng: Draws the strings that parameters are learned from, where there are more than ``fit_size``.
            trials: Wells of each value, n, positive; 1 by default.
            full: Whether to fit the kernel's own parameters too; by default as the schedule says.

        Raises:
            InputError: If there are fewer than two rows, the numbers differ, a label is not between -1 and 1, or a
                number of wells is not positive.
        """
        labels = checked_values(strings, values)
        if (np.abs(labels) > 1.0).any():
            bad = int(np.flatnonzero(np.abs(labels) > 1.0)[0])
            raise InputError(f"the label of {strings[bad]!r} is {labels[bad]}; expected -1 (no) to 1 (yes)")
        wells = np.ones(len(strings)) if trials is None else np.asarray(trials, dtype=np.float64)
        if wells.shape != labels.shape:
            raise InputError(f"{len(strings)} strings but trials of shape {wells.shape}; give one number per string")
        if not (np.isfinite(wells) & (wells > 0)).all():
            bad = int(np.flatnonzero(~(np.isfinite(wells) & (wells > 0)))[0])
            raise InputError(f"{strings[bad]!r} has {wells[bad]:g} wells; expected a positive number")
        if not self.kernels:
            self._take(_without_space(str(self.base)))
        tallies = Tallies.of(strings, labels, wells, self.overdispersion)
        encoded = self._encode(tallies.strings)
        if full is None:
            grown = len(tallies.strings) - self._full_fit_size >= self.refit_growth * self._full_fit_size
            full = grown or not set(self._keys) <= set(tallies.strings)
        before = self._chosen, dict(self._parameters)
        self._learn(tallies, encoded, rng, full=full or self._chosen is None)
        if full:
            self._full_fit_size = len(tallies.strings)
        if before != (self._chosen, self._parameters):
            self._forget_columns()
        self._keys = list(tallies.strings)
        self._state = self._conditioned_on(tallies, encoded)

    def _encode(self, strings: list[str]) -> Encoded:
        encoded = self.encoder.encode(strings)
        pool_width = self._pool_width(self._pool) if self._pool is not None else 0
        width = max(self._width, encoded.width, pool_width)
        if width > self._width:
            self._width = width
            self._forget_columns()
        padded: Encoded = encoded.padded(self._width)
        return padded

    def _learn(self, tallies: Tallies, encoded: Encoded, rng: np.random.Generator, *, full: bool) -> None:
        rows, shift = np.arange(len(tallies.strings)), 0.0
        if len(rows) > self.fit_size:
            rows, shift = tallies.sampled(self.fit_size, rng)
        part, inputs = tallies.take(rows), encoded.take(rows)
        numbers = range(len(self.kernels)) if full or self._chosen is None else [self._chosen]
        best: tuple[float, int, _Found] | None = None
        for number in numbers:
            start = self._parameters if number == self._chosen else None
            found = self._fitted(self.kernels[number], part, inputs, start, shift, full=full)
            if best is None or found.objective > best[0]:
                best = found.objective, number, found
        assert best is not None  # there is a kernel
        _, self._chosen, found = best
        self._parameters, self._scale = found.kernel, found.scale
        self._constant = found.constant - shift
        set_parameters(self.kernel, self._parameters)

    def _fitted(
        self,
        kernel: gpytorch.kernels.Kernel,
        tallies: Tallies,
        encoded: Encoded,
        start: Parameters | None,
        shift: float,
        *,
        full: bool,
    ) -> _Found:
        """The parameters of largest evidence, priors included, of one kernel."""
        inputs = encoded.to_tensor(self._width)
        # Where a fit begins depends on nothing but what `state_dict` holds.
        set_parameters(kernel, self._begins[self.kernels.index(kernel)])
        if full and isinstance(kernel, AdaptiveKernel):
            kernel.adapt(inputs)
        if start is not None:
            set_parameters(kernel, start)
        learned = [parameter for parameter in kernel.parameters() if parameter.requires_grad and full]
        sizes = [parameter.numel() for parameter in learned]
        fixed = None if learned else _gram(kernel, encoded, self._width)
        middle = tallies.log_odds
        begin = np.concatenate(
            [[math.log(self._scale), middle if self._chosen is None else self._constant + shift]]
            + [parameter.detach().reshape(-1).numpy() for parameter in learned]
        )

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            log_scale, constant = float(point[0]), float(point[1])
            _set(learned, sizes, point[2:])
            by_kernel = np.zeros(len(point) - 2)
            try:
                gram = kernel(inputs).to_dense() if fixed is None else torch.from_numpy(fixed)
                scaled = math.exp(log_scale) * gram.detach().numpy()
                found = laplace_evidence(0.5 * (scaled + scaled.T), tallies.yes, tallies.no, constant)
            except (ModelError, InputError, np.linalg.LinAlgError):
                return LARGEST_OBJECTIVE, np.zeros(len(point))
            deviations = (log_scale - SCALE_PRIOR[0]) / SCALE_PRIOR[1], (constant - middle) / CONSTANT_STD
            value = found.log_evidence - 0.5 * (deviations[0] ** 2 + deviations[1] ** 2)
            if learned:
                prior = torch.zeros((), dtype=torch.float64)
                for _, module, density, closure, _ in kernel.named_priors():
                    prior = prior + density.log_prob(closure(module)).sum()
                weighed = (math.exp(log_scale) * torch.from_numpy(found.by_gram) * gram).sum() + prior
                gradients = torch.autograd.grad(weighed, learned, allow_unused=True)
                by_kernel = np.concatenate(
                    [
                        np.zeros(size) if gradient is None else gradient.reshape(-1).numpy()
                        for size, gradient in zip(sizes, gradients, strict=True)
                    ]
                )
                value += float(prior.detach())
            by_scale = float((found.by_gram * scaled).sum()) - deviations[0] / SCALE_PRIOR[1]
            by_constant = found.by_constant - deviations[1] / CONSTANT_STD
            return -value, -np.concatenate([[by_scale, by_constant], by_kernel])

        bounds = [SCALE_BOUNDS, (None, None), *[(None, None)] * int(sum(sizes))]
        result = scipy.optimize.minimize(
            objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS, "ftol": 1e-7}
        )
        point = np.asarray(result.x, dtype=np.float64)
        _set(learned, sizes, point[2:])
        if isinstance(kernel, FittedKernel):
            kernel.forget()
        if float(result.fun) >= LARGEST_OBJECTIVE:
            raise ModelError(
                f"no parameters were found for the results of {len(tallies.strings)} strings: check that the kernel's "
                "covariances are finite"
            )
        return _Found(-float(result.fun), math.exp(point[0]), float(point[1]), parameters_of(kernel))

    def _conditioned_on(self, tallies: Tallies, encoded: Encoded) -> BatchedGPState:
        gram = _gram(self.kernel, encoded, self._width)
        found = laplace_evidence(self._scale * gram, tallies.yes, tallies.no, self._constant)
        values, noise = pseudo_values(found)
        state = BatchedGPState.build(
            KernelEvaluator(self.kernel, self._width),
            list(tallies.strings),
            encoded,
            torch.from_numpy(values),
            torch.tensor([self._constant], dtype=torch.float64),
            torch.tensor([self._scale], dtype=torch.float64),
            torch.zeros(1, dtype=torch.float64),
            torch.from_numpy(noise),
        )
        share = 1.0 / (1.0 + math.exp(-tallies.log_odds))
        share = min(max(share, USUAL_SHARE), 1.0 - USUAL_SHARE)
        coming = torch.tensor([1.0 / (share * (1.0 - share))], dtype=torch.float64)
        return replace(state, noise_variance=coming)

    def probabilities(self, strings: Sequence[Item]) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the probability of a hit of each of N strings.

        Where strings that are no hits are searched for, labels are of these, and so are probabilities.

        Raises:
            ModelError: Before the first fit.
        """
        return probability_moments(*self.predict(strings))

    def measurement_std(self, strings: Sequence[Item]) -> FloatArray:
        """That of the log odds, N: what is shown of a prediction is the probability, of which a result tells little.

        Raises:
            ModelError: Before the first fit.
        """
        return np.asarray(self.predict(strings)[1], dtype=np.float64)

    def leave_one_out(self) -> LeaveOneOut:
        """Labels of the n strings, and what the others predict of them: 2 p - 1 with the probability p of a hit.

        What `LeaveOneOut.r2` says of them is by how much the Brier score is lower than that of one probability for
        all. Pseudo-values stay as they are when one is left out (Rasmussen and Williams 2006, section 5.4.2).

        Raises:
            ModelError: Before the first fit.
        """
        state = self.fitted
        mean, variance = leave_one_out(state.cholesky, state.alpha, state.values)
        latent = (variance - state.observed_noise).clamp_min(0.0)[0].numpy()
        share, _ = probability_moments(mean[0].numpy(), np.sqrt(latent))
        # At the mode, the gradient is trials (share of hits - sigma(f)), and W is trials sigma(f) sigma(-f).
        at_mode = 1.0 / (1.0 + np.exp(-state.observed_mean[0].numpy()))
        trials = 1.0 / (state.observed_noise[0].numpy() * at_mode * (1.0 - at_mode))
        labels = (2.0 * (at_mode + state.alpha[0].numpy() / trials) - 1.0).clip(-1.0, 1.0)
        return LeaveOneOut(labels, 2.0 * share - 1.0, 2.0 * np.sqrt(share * (1.0 - share)))

    def state_dict(self) -> dict[str, Any]:
        """Parameters of the last fit and the size of the last full fit, as JSON values."""
        return {
            "kernel": self._chosen,
            "parameters": dict(self._parameters),
            "scale": self._scale,
            "constant": self._constant,
            "full_fit_size": self._full_fit_size,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there."""
        self._chosen = state["kernel"]
        self._parameters = dict(state["parameters"])
        self._scale, self._constant = state["scale"], state["constant"]
        self._full_fit_size = state["full_fit_size"]
        self._keys = []
        self._state = None
        for kernel, begin in zip(self.kernels, self._begins, strict=True):
            set_parameters(kernel, begin)
        if self.kernels and self._chosen is not None:
            set_parameters(self.kernel, self._parameters)
        self._forget_columns()


def _without_space(name: str) -> Surrogate:
    """What kernels and features are those of where no space is known."""
    known = SURROGATES.get("ssk" if name.strip().lower() == "auto" else name.strip().lower())
    if known is None:
        raise ModelError(f"what {name!r} is depends on the space: call bind(space) before fit")
    return known.build()


def _gram(kernel: gpytorch.kernels.Kernel, encoded: Encoded, width: int) -> FloatArray:
    """Prior correlations of n strings, without a graph."""
    evaluator = KernelEvaluator(kernel, width)
    found = np.asarray(evaluator.cross(encoded, None, evaluator.self_similarity(encoded)), dtype=np.float64)
    symmetric: FloatArray = 0.5 * (found + found.T)
    return symmetric


def _set(parameters: Sequence[torch.nn.Parameter], sizes: Sequence[int], values: FloatArray) -> None:
    with torch.no_grad():
        for parameter, part in zip(parameters, np.split(values, np.cumsum(sizes)[:-1]) if sizes else [], strict=True):
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(part)).reshape(parameter.shape))
