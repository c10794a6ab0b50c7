"""Search in the latent space of a variational autoencoder: gradients on the acquisition, then decoding.

References:
    Gomez-Bombarelli, R. et al. (2018). Automatic chemical design using a data-driven continuous representation of
        molecules. ACS Central Science 4, 268-276.
    Kusner, M. J., Paige, B., Hernandez-Lobato, J. M. (2017). Grammar variational autoencoder. ICML.
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        section B.4.3 (the box of the search).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.settings import validate_input_scaling
from torch import Tensor

from seqopt.acquisition import Acquisition
from seqopt.data import key_of
from seqopt.errors import InputError
from seqopt.kernels.threads import one_thread
from seqopt.models import StringGP
from seqopt.models.noise import PartlyKnownNoise
from seqopt.scorers import Scoring
from seqopt.search.protocols import Proposal, SurrogateScoring
from seqopt.spaces import GrammarSpace, Space, StringSpace
from seqopt.vae import StringVAE

FloatArray = npt.NDArray[np.float64]

NARROWEST = 1e-6
"""Least width of the box in a dimension, for those that the code does not use."""

JITTERED = 64
"""Points decoded around the last optimum when all optima have led to nothing new."""

JITTERS = (0.05, 0.1, 0.2, 0.4)
"""Standard deviations of these points, in widths of the box, one after the other."""

LOOKED_AT = 20
"""Random strings of a space that show whether the model can read them."""

RANDOM_POINTS = 256
"""Random points of the box decoded when these have led to nothing new either, and random strings drawn thereafter."""


class LatentSearch:
    """Maximises log expected improvement over a box of latent space and decodes the optimum.

    The surrogate is a Gaussian process on latent points, ``StringGP(RBFKernel(...), encoder=FeatureEncoder(vae))``. Its
    length scale needs a lower bound, as below: a fit may otherwise try 0, where the kernel is undefined. The box holds
    the central ``coverage`` of the training encodings in each dimension.
    The maximiser is BoTorch's: L-BFGS-B from several starts, which are the best of random points.

    An optimum whose string is new is suggested. One that decodes to nothing usable (a string outside the space, or one
    that the model itself cannot read back) counts in `undecodable`, and the point gets the worst value seen so far,
    for the whole life of this object. One whose string is excluded gets the mean that is predicted for this string,
    for the rest of the call. Then the maximisation is repeated with these values, up to ``attempts`` times. If nothing
    new has come of it, points around the last optimum are decoded, then random points of the box, and in the end
    random strings of the space are drawn; of each group the string of largest acquisition value is suggested.

    Strings chosen or pending count as observed at their predicted means, so a batch is filled greedily.

    Searches in latent space are often charged for points that decode to nothing: a benchmark reads `undecodable`
    before and after each call, and counts the difference as evaluations that returned the worst value.

    Args:
        vae: The autoencoder whose posterior means the surrogate was fitted to.
        coverage: Share of the training encodings that the box holds in each dimension, in (0, 1].
        restarts: Starts of a maximisation.
        raw_samples: Random points from which the starts are taken.
        attempts: Maximisations for one element of a batch, at most.

    Attributes:
        undecodable: How many optima have decoded to nothing usable so far.

    Raises:
        InputError: For a number out of its range.

    Example:
        >>> from gpytorch.constraints import GreaterThan
        >>> from gpytorch.kernels import RBFKernel
        >>> from seqopt import Optimizer
        >>> from seqopt.encoding import FeatureEncoder
        >>> from seqopt.models import StringGP
        >>> from seqopt.vae import GrammarCodec, NetworkSizes, TrainingSettings, train
        >>> space, rng = GrammarSpace("arithmetic", 1, 5), np.random.default_rng(0)
        >>> strings = space.sample(200, rng)
        >>> codec, sizes = GrammarCodec.of("arithmetic", strings), NetworkSizes(latent=4, hidden=32)
        >>> vae = train(strings, codec, sizes, TrainingSettings(epochs=5), rng=rng).vae  # briefly, for the example
        >>> kernel = RBFKernel(lengthscale_constraint=GreaterThan(0.025, transform=None, initial_value=1.0))
        >>> surrogate = StringGP(kernel, encoder=FeatureEncoder(vae))
        >>> optimizer = Optimizer(
        ...     space, surrogate=surrogate, acquisition="logei", search=LatentSearch(vae), initial=5
        ... )
        >>> for _ in range(2):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [string.count("x") for string in strings])
        >>> len(optimizer.observations)
        6
    """

    def __init__(
        self,
        vae: StringVAE,
        *,
        coverage: float = 0.75,
        restarts: int = 8,
        raw_samples: int = 256,
        attempts: int = 5,
    ) -> None:
        for name, number, least in (
            ("restarts", restarts, 1),
            ("raw_samples", raw_samples, restarts),
            ("attempts", attempts, 1),
        ):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least {least}")
        self.vae = vae
        self.coverage = coverage
        self.restarts = int(restarts)
        self.raw_samples = int(raw_samples)
        self.attempts = int(attempts)
        bounds = vae.box(coverage)
        bounds[1] = np.maximum(bounds[1], bounds[0] + NARROWEST)
        self.bounds: FloatArray = bounds
        self._rejected: list[FloatArray] = []

    @property
    def undecodable(self) -> int:
        """See the class."""
        return len(self._rejected)

    @property
    def rejected(self) -> FloatArray:
        """The points that decoded to nothing usable, ``undecodable x latent``."""
        return np.array(self._rejected).reshape(-1, self.vae.size)

    def state_dict(self) -> dict[str, Any]:
        """The points that decoded to nothing usable."""
        return {"rejected": self.rejected.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self._rejected = [np.array(point, dtype=np.float64) for point in state["rejected"]]

    def propose(
        self, n: int, *, space: Space, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """Up to ``n`` distinct strings with keys outside ``excluded``; see `seqopt.search.Search`.

        Raises:
            InputError: If the acquisition function is not ``logei``, the surrogate's model does not see the posterior
                means of this search's autoencoder, or that was made for another grammar or alphabet than the space's.
        """
        if not isinstance(scoring, SurrogateScoring):
            raise InputError(
                f"LatentSearch needs the surrogate behind a score, and {type(scoring).__name__} has none: search "
                "latent space with the acquisition function logei"
            )
        surrogate = scoring.surrogate
        self.check_parts(space, surrogate, scoring.acquisition)
        assert isinstance(surrogate, StringGP)
        # The matrices are small: waiting for a second thread costs more than it brings.
        with one_thread():
            process = _LatentProcess.of(surrogate.model, self.vae.size)
            process.observe(self.vae([key_of(item) for item in scoring.pending]))
            process.refuse(self.rejected)
            taken = set(excluded)
            chosen: list[Proposal] = []
            while len(chosen) < n:
                found = self._next(process, space, taken, rng)
                if found is None:
                    break
                string, key, value = found
                mean, std = surrogate.predict([key])
                chosen.append(Proposal(string, key, (), value, float(mean[0]), float(std[0])))
                taken.add(key)
                process.observe(self.vae([key]))
        return chosen

    def check_parts(self, space: Space, surrogate: object, acquisition: Acquisition) -> None:
        """Complain of what does not go with this search; called before anything is evaluated.

        Raises:
            InputError: If the acquisition function is another than ``logei``, the surrogate does not see the posterior
                means of this search's autoencoder, or that was made for another grammar or alphabet than the space's.
        """
        if acquisition.name != "logei":
            raise InputError(
                f"LatentSearch maximises log expected improvement, not {acquisition.name!r}: give acquisition='logei'"
            )
        if isinstance(space, GrammarSpace) and self.vae.codec.model == "grammar":
            self.vae.expect(grammar=space.rules, where="the autoencoder")
        elif isinstance(space, StringSpace):
            self.vae.expect(alphabet=space.symbols, where="the autoencoder")
        some = [space.key(string) for string in space.sample(LOOKED_AT, np.random.default_rng(0))]
        refused = self.vae.unsupported(some)
        if some and len(refused) == len(some):
            raise InputError(
                f"the autoencoder is {self.vae.codec.describe()}, and cannot read strings of this space: {refused[0]}"
            )
        featurizer = getattr(getattr(surrogate, "encoder", None), "featurizer", None)
        if getattr(featurizer, "name", None) != self.vae.name:
            raise InputError(
                "LatentSearch needs a surrogate in the latent space of its autoencoder, and this "
                f"{type(surrogate).__name__} is not: give StringGP(kernel, encoder=FeatureEncoder(vae))"
            )

    def _next(
        self, process: _LatentProcess, space: Space, taken: Set[str], rng: np.random.Generator
    ) -> tuple[str, str, float] | None:
        """A new string, its key and its acquisition value."""
        tried = copy.copy(process)
        centre = self.bounds.mean(axis=0)
        for _ in range(self.attempts):
            points, values = self._optima(tried, rng)
            centre = points[0]
            for point, value, string in zip(points, values, self.vae.decode(points), strict=True):
                key = self._usable_key(space, string)
                if key is None:
                    self._rejected.append(point)
                    process.refuse(point[None])
                    tried.refuse(point[None])
                    break
                if key not in taken:
                    return string, key, value
                tried.repeat(point[None], self.vae([key]))
        width = self.bounds[1] - self.bounds[0]
        for jitter in JITTERS:
            near = centre + jitter * width * rng.standard_normal((JITTERED, len(centre)))
            found = self._best_of(self.vae.decode(near.clip(*self.bounds)), process, space, taken)
            if found is not None:
                return found
        anywhere = rng.uniform(self.bounds[0], self.bounds[1], size=(RANDOM_POINTS, len(centre)))
        return self._best_of(self.vae.decode(anywhere), process, space, taken) or self._best_of(
            space.sample(RANDOM_POINTS + len(taken), rng), process, space, taken
        )

    def _best_of(
        self, strings: list[str], process: _LatentProcess, space: Space, taken: Set[str]
    ) -> tuple[str, str, float] | None:
        """The new one of ``strings`` that has the largest acquisition value at its own encoding."""
        keys = {string: self._usable_key(space, string) for string in strings}
        fresh = {key: string for string, key in keys.items() if key is not None and key not in taken}
        if not fresh:
            return None
        acquisition = process.acquisition()
        with torch.no_grad():
            values = acquisition(torch.from_numpy(self.vae(list(fresh)))[:, None])
        best = int(values.argmax())
        key = list(fresh)[best]
        return fresh[key], key, float(values[best])

    def _usable_key(self, space: Space, string: str) -> str | None:
        """The key of ``string``, or `None` if it lies outside the space, or the model cannot read its key."""
        if not string or not space.contains(string):
            return None
        key = space.key(string)
        try:
            self.vae([key])
        except InputError:
            return None
        return key

    def _optima(self, process: _LatentProcess, rng: np.random.Generator) -> tuple[FloatArray, list[float]]:
        """Local maxima of the acquisition function in the box, the best first, and its values there."""
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is one of several
            seed = int(rng.integers(2**31))
            torch.manual_seed(seed)
            points, values = optimize_acqf(
                process.acquisition(),
                bounds=torch.from_numpy(self.bounds),
                q=1,
                num_restarts=self.restarts,
                raw_samples=self.raw_samples,
                return_best_only=False,
                options={"seed": seed, "maxiter": 100},
            )
        found = points.detach().reshape(self.restarts, -1).numpy().clip(*self.bounds)
        order = np.argsort(-values.detach().numpy(), kind="stable")
        return found[order], [float(values[int(index)]) for index in order]


@dataclass
class _LatentProcess:
    """A fitted Gaussian process on latent points, in standardised units, with values that were not measured.

    Args:
        fitted: The surrogate's BoTorch model.
        points: All points that count as observed.
        values: Their values.
        incumbent: What is to be improved on: the largest mean at a point that was, or counts as, evaluated.
        worst: The smallest measured value.
    """

    fitted: SingleTaskGP
    points: Tensor
    values: Tensor
    incumbent: float
    worst: float
    _model: SingleTaskGP | None = field(default=None, repr=False)

    @classmethod
    def of(cls, fitted: SingleTaskGP, size: int) -> _LatentProcess:
        (points,) = fitted.train_inputs
        values = fitted.train_targets
        if points.shape[-1] != size:
            raise InputError(
                f"the surrogate's model sees {points.shape[-1]} columns and the autoencoder has {size} dimensions: use "
                "StringGP(kernel, encoder=FeatureEncoder(vae)) with the autoencoder of this search"
            )
        process = cls(fitted, points.detach(), values.detach().reshape(-1), 0.0, float(values.min()))
        process.incumbent = float(process.mean(process.points).max())
        return process

    def model(self) -> SingleTaskGP:
        """The process given all points that count as observed, at the fitted parameters."""
        if self._model is None:
            with validate_input_scaling(False), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                likelihood = copy.deepcopy(self.fitted.likelihood)
                if isinstance(likelihood, PartlyKnownNoise):
                    # Points that were added have no known noise of their own.
                    added = len(self.points) - len(likelihood.known)
                    likelihood.known = torch.cat([likelihood.known, likelihood.known.new_zeros(added)])
                    likelihood.inputs = self.points
                self._model = SingleTaskGP(
                    self.points,
                    self.values[:, None],
                    likelihood=likelihood,
                    covar_module=copy.deepcopy(self.fitted.covar_module),
                    mean_module=copy.deepcopy(self.fitted.mean_module),
                    outcome_transform=None,
                )
            self._model.to(self.points)
            self._model.eval()
        return self._model

    def mean(self, points: Tensor) -> Tensor:
        """Posterior mean at ``points`` (n x d)."""
        with torch.no_grad():
            mean: Tensor = self.model().posterior(points).mean[:, 0]
        return mean

    def acquisition(self) -> LogExpectedImprovement:
        """Log expected improvement over the incumbent."""
        return LogExpectedImprovement(self.model(), best_f=self.incumbent)

    def observe(self, rows: FloatArray) -> None:
        """Let strings at ``rows`` count as evaluated, with their predicted means."""
        if len(rows):
            mean = self.mean(torch.from_numpy(rows))
            self.incumbent = max(self.incumbent, float(mean.max()))
            self._add(rows, mean)

    def refuse(self, rows: FloatArray) -> None:
        """Give points the worst value seen so far."""
        if len(rows):
            self._add(rows, torch.full((len(rows),), self.worst, dtype=torch.float64))

    def repeat(self, rows: FloatArray, encodings: FloatArray) -> None:
        """Give points the means predicted at the encodings of their strings."""
        self._add(rows, self.mean(torch.from_numpy(encodings)))

    def _add(self, rows: FloatArray, values: Tensor) -> None:
        self.points = torch.cat([self.points, torch.from_numpy(rows)])
        self.values = torch.cat([self.values, values])
        self._model = None
