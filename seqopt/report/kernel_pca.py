r"""Kernel principal component analysis: where strings lie in the feature space of a surrogate's kernel.

A Gaussian process on strings has no latent space to look at, but its kernel places every string in a feature space.
With K the Gram matrix of n strings and H = I - 1/n the matrix that takes off means,

.. math:: H K H = U \Lambda U^T, \qquad X = U_c \Lambda_c^{1/2}, \qquad
    x(s) = \Lambda_c^{-1/2} U_c^T H \left( k(S, s) - \tfrac{1}{n} K 1 \right),

the rows of X are the coordinates of the n strings along the c directions in which their features vary most, and x(s)
those of a new string s in the same map. Component j explains the share :math:`\lambda_j / \mathrm{tr}(H K H)` of the
variance of the features.

References:
    Schölkopf, B., Smola, A., Müller, K.-R. (1997). Kernel principal component analysis. International conference on
        artificial neural networks.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, figures 4.6.4 and B.4.10 (maps of the kernels of surrogates, coloured by the score).
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.stats import rankdata

from seqopt.encoding import Encoded, StringEncoder, Tokenizer
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel, bind_symbols
from seqopt.models import FullyBayesianGP, FullyBayesianStringGP, StringGP, Surrogate, resolve_surrogate
from seqopt.models.covariance import KernelEvaluator, correlations
from seqopt.models.registry import surrogate_name
from seqopt.report.descriptions import describe_map
from seqopt.spaces import CandidateSet, Space
from seqopt.strings.identity import explain_rejection, identity_keys, recognize_kind
from seqopt.utils.shown import Tabulated, register_renderer

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

FEWEST = 3
"""Strings of a map at least: two lie on a line in any kernel."""

MOST = 12_000
"""Strings of a map at most: their Gram matrix takes 1.2 GB, and two copies of it are made."""

LEARNT_FROM = 500
"""Measured strings that hyper-parameters are learned from at most."""

DENSE = 200
"""Strings up to which all eigenvectors are computed instead of the first few."""

NEGLIGIBLE = 1e-12
"""Share of the mean prior variance below which strings that differ by less look the same to a kernel."""

TOGETHER = 3
"""Match decays whose Gram matrices are held at a time."""

BLOCK = 250
"""Rows of similarities asked for at a time from a surrogate that is known by its `similarity` only."""

SHOWN = 5
"""Strings that an error message names."""


@dataclass(frozen=True, eq=False, repr=False)
class KernelMap(Tabulated):
    """Strings in the plane (or in more dimensions) of the first principal components of a kernel.

    Attributes:
        strings: The n strings, as they were given.
        keys: What the kernel sees of each, such as canonical SMILES.
        coordinates: ``n x c``. The entry of largest size of each column is positive.
        explained_variance_ratio: Share of the variance of the features along each of the c components.
        values: What was measured of each string, NaN where nothing was; `None` where no values were given.
        surrogate: Name of the surrogate whose kernel this is, or of the kernel's class.
        hyperparameters: Of the fitted surrogate; empty where nothing was learned.
    """

    strings: tuple[str, ...]
    keys: tuple[str, ...]
    coordinates: FloatArray
    explained_variance_ratio: FloatArray
    values: FloatArray | None
    surrogate: str
    hyperparameters: dict[str, float]
    _projection: Callable[[Sequence[str]], FloatArray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.strings)

    def project(self, strings: Sequence[str]) -> FloatArray:
        """Coordinates (m x c) of other strings in this map, which stays as it is.

        A string of the map gets the coordinates that it has there.

        Args:
            strings: m strings of the same kind.

        Raises:
            InputError: For strings that are none of this kind, or that the kernel cannot take (symbols outside its
                alphabet, another length where the kernel compares position by position).

        Example:
            >>> pool = ["CCO", "CCCO", "CCN", "c1ccccc1", "c1ccccc1O"]
            >>> found = kernel_pca(pool, "ssk")
            >>> bool(np.allclose(found.project(["OCC"]), found.coordinates[:1]))
            True
        """
        return self._projection(strings)

    def smoothness(self, **options: Any) -> Smoothness:
        """How smooth the values are in this map: see `smoothness`, also for the options.

        Raises:
            InputError: If the map has no values, or too few of them.
        """
        if self.values is None:
            raise InputError("this map has no values: give kernel_pca(..., values=...) to judge their smoothness")
        return smoothness(self.coordinates, self.values, **options)

    def to_pandas(self) -> pd.DataFrame:
        """One row per string: ``string``, ``key``, ``x``, ``y`` (further components ``component_3``, ...), ``value``.

        Example:
            >>> kernel_pca(["AAB", "ABB", "BBB"], "ssk", kind="text").to_pandas().columns.tolist()
            ['string', 'key', 'x', 'y', 'value']
        """
        columns: dict[str, Any] = {"string": self.strings, "key": self.keys}
        columns |= dict(zip(component_names(self.coordinates.shape[1]), self.coordinates.T, strict=True))
        columns["value"] = np.full(len(self), np.nan) if self.values is None else self.values
        return pd.DataFrame(columns)


def component_names(count: int) -> list[str]:
    """Names of columns of coordinates.

    Example:
        >>> component_names(3)
        ['x', 'y', 'component_3']
    """
    return ["x", "y", *(f"component_{number}" for number in range(3, count + 1))][:count]


def kernel_pca(
    strings: Sequence[str],
    surrogate: Surrogate | str = "auto",
    *,
    values: npt.ArrayLike | None = None,
    components: int = 2,
    kind: str | None = None,
    space: Space | None = None,
    tokenizer: str | Tokenizer | None = None,
    learn_from: int = LEARNT_FROM,
    seed: int = 0,
) -> KernelMap:
    """Map of strings by the first principal components of a surrogate's kernel.

    The kernel is normalised or not as the surrogate has it. Kernels that are averaged over draws of their parameters
    (``"ssk-bayes"``) are mapped by their mean, which is a kernel, too.

    Args:
        strings: n strings, each of them a point of the map, even if several are equal.
        surrogate: A name as in `seqopt.models.SURROGATES` (``"ssk"``, ``"minmax"``, ...), ``"auto"``, ``"vae:FILE"``,
            or a surrogate. With a name, parameters are learned from ``values`` if given, and otherwise are the kernel's
            defaults. A surrogate that was fitted is used as it is; one that was not is fitted here.
        values: n measured values, larger is better or worse alike; NaN where nothing was measured.
        components: Dimensions of the map.
        kind: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``; recognised by default.
        space: The space that the strings are of, which knows their keys and symbols. Default: a candidate set of them.
        tokenizer: How strings are split into symbols, as for `seqopt.spaces.CandidateSet`.
        learn_from: Parameters are learned from at most so many measured strings, a random choice of all.
        seed: Draws that choice and the starts of the fit and of the eigensolver; one seed gives one map.

    Returns:
        The map. It costs n^2 / 2 kernel evaluations and some 24 n^2 bytes, more for averaged kernels.

    Raises:
        InputError: For fewer than three strings or more than `MOST`, unreadable strings (by their positions), as many
            values as there are not strings, an infinite value, components below 1 or not below n, a surrogate without
            kernel, or strings that the kernel cannot take or cannot tell apart.

    Example:
        >>> pool = ["CCO", "CCCO", "CCCCO", "c1ccccc1", "c1ccccc1C", "c1ccccc1CC"]
        >>> found = kernel_pca(pool, "minmax")
        >>> found.coordinates.shape, bool((found.coordinates[:3, 0] * found.coordinates[3:, 0] < 0).all())
        ((6, 2), True)
    """
    items = _checked_strings(strings)
    if isinstance(components, bool) or not 1 <= int(components) < len(items):
        raise InputError(f"components is {components!r}; expected 1 to {len(items) - 1} for {len(items)} strings")
    measured = None if values is None else _checked_values(items, values)
    where = _candidates(items, kind, tokenizer) if space is None else space
    keys = _keys(items, where)
    model = resolve_surrogate(surrogate, where)
    rng = np.random.default_rng(seed)
    prior = _prior_covariance(model)
    if prior is None or isinstance(surrogate, str):
        prior = _learn(model, where, keys, measured, learn_from, rng)
    encoded = prior.encode(keys)
    gram = prior.gram(encoded)
    coordinates, ratio, axes, centring = _components(gram, int(components), seed)

    def project(others: Sequence[str]) -> FloatArray:
        wanted = _keys(others, where)
        if not wanted:
            return np.zeros((0, coordinates.shape[1]))
        projected: FloatArray = centring.transform(prior.cross(prior.encode(wanted), encoded)) @ axes
        return projected

    return KernelMap(
        strings=tuple(items),
        keys=tuple(keys),
        coordinates=coordinates,
        explained_variance_ratio=ratio,
        values=measured,
        surrogate=_name(surrogate, model),
        hyperparameters=prior.hyperparameters,
        _projection=project,
    )


def _name(surrogate: Surrogate | str, model: Surrogate) -> str:
    if isinstance(surrogate, str) and surrogate.strip().lower() != "auto":
        return surrogate.strip()
    return surrogate_name(model) or type(getattr(model, "kernel", model)).__name__


@dataclass(frozen=True)
class Smoothness:
    """How much the value of a point is like those of its neighbours in a map.

    Attributes:
        correlation: Between a value and the mean of the values of the nearest neighbours; NaN if all values are equal.
        shuffled_mean: Mean of the same number when the values are dealt to the points at random: near 0.
        shuffled_std: Its standard deviation, which is the standard error of ``correlation`` where there is no
            smoothness at all.
        neighbours: How many neighbours were looked at.
        points: Points with a value.
        method: ``"spearman"`` or ``"pearson"``.
    """

    correlation: float
    shuffled_mean: float
    shuffled_std: float
    neighbours: int
    points: int
    method: str

    def __str__(self) -> str:
        return (
            f"{self.correlation:.2f} ({self.method.capitalize()} correlation of a value with the mean of its "
            f"{self.neighbours} nearest neighbours, {self.points:,} points; shuffled values: "
            f"{self.shuffled_mean:.2f} ± {self.shuffled_std:.2f})"
        )


def smoothness(
    coordinates: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    neighbours: int = 10,
    method: Literal["spearman", "pearson"] = "spearman",
    shuffles: int = 100,
    seed: int = 0,
) -> Smoothness:
    r"""How smooth values are in a map: the correlation of each value with those of its nearest neighbours.

    .. math:: r = \mathrm{corr}_i \Big( y_i, \; \tfrac{1}{k} \sum_{j \in N_k(i)} y_j \Big),

    where :math:`N_k(i)` are the k points nearest to point i by Euclidean distance, i itself left out. It is 1 where
    neighbours agree, and about 0 on average where values are dealt to the points at random, slightly below for few
    points: compare with ``shuffled_mean``. Its square is about the share of the variance that the neighbours explain.

    Args:
        coordinates: ``n x c``.
        values: n values; points with NaN are left out.
        neighbours: k.
        method: Correlation of ranks (``"spearman"``), which outliers and the scale of the values do not change, or of
            the values themselves.
        shuffles: How often the values are shuffled for comparison.
        seed: Of the shuffles.

    Raises:
        InputError: If the numbers of points and values differ, not more than ``neighbours`` points have a value, or the
            method is unknown.

    Example:
        >>> points = np.random.default_rng(0).random((500, 2))
        >>> found = smoothness(points, points[:, 0] + points[:, 1])
        >>> found.correlation > 0.95, abs(found.shuffled_mean) < 0.05
        (True, True)
    """
    from sklearn.neighbors import NearestNeighbors

    if method not in ("spearman", "pearson"):
        raise InputError(f"method is {method!r}; expected 'spearman' or 'pearson'")
    points, numbers = np.asarray(coordinates, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or numbers.shape != points.shape[:1]:
        raise InputError(f"{points.shape} coordinates and {numbers.shape} values: give one value for each row")
    known = np.isfinite(numbers)
    points, numbers = points[known], numbers[known]
    if isinstance(neighbours, bool) or neighbours < 1 or len(numbers) <= neighbours:
        raise InputError(
            f"neighbours is {neighbours!r}; expected 1 to {len(numbers) - 1}, since {len(numbers)} points have a value"
        )
    near = NearestNeighbors(n_neighbors=neighbours).fit(points).kneighbors(return_distance=False)
    rng = np.random.default_rng(seed)
    shuffled = [_neighbour_correlation(rng.permutation(numbers), near, method) for _ in range(shuffles)]
    return Smoothness(
        correlation=_neighbour_correlation(numbers, near, method),
        shuffled_mean=float(np.mean(shuffled)) if shuffled else np.nan,
        shuffled_std=float(np.std(shuffled, ddof=1)) if len(shuffled) > 1 else np.nan,
        neighbours=int(neighbours),
        points=len(numbers),
        method=method,
    )


def _neighbour_correlation(values: FloatArray, near: npt.NDArray[np.integer], method: str) -> float:
    pair = np.stack([values, values[near].mean(axis=1)])
    if method == "spearman":
        pair = np.stack([rankdata(row) for row in pair])
    if (np.ptp(pair, axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(pair)[0, 1])


@dataclass(frozen=True)
class _KernelCovariance:
    """Prior covariance of strings: a weighted sum of kernels at fixed parameters.

    A kernel of batch shape b stands for b kernels, with a weight each.
    """

    encoder: StringEncoder
    kernels: tuple[tuple[tuple[float, ...], Any], ...]
    width: int
    hyperparameters: dict[str, float]

    def encode(self, keys: Sequence[str]) -> Encoded:
        encoded: Encoded = self.encoder.encode(keys)
        return encoded

    def gram(self, a: Encoded) -> FloatArray:
        return self._sum(a, None)

    def cross(self, a: Encoded, b: Encoded) -> FloatArray:
        return self._sum(a, b)

    def _sum(self, a: Encoded, b: Encoded | None) -> FloatArray:
        # A foreign kernel sees rows of the width of the map's strings.
        width = max(self.width, a.width if b is None else b.width)
        total: FloatArray | None = None
        for weights, kernel in self.kernels:
            part = np.asarray(KernelEvaluator(kernel, width).cross(a, b), dtype=np.float64)
            for weight, matrix in zip(weights, part.reshape(len(weights), *part.shape[-2:]), strict=True):
                if weight != 1.0:
                    matrix *= weight
                total = matrix if total is None else np.add(total, matrix, out=total)
        assert total is not None
        return total


@dataclass(frozen=True)
class _Similarity:
    """Prior correlation of strings, from the `similarity` of any surrogate."""

    surrogate: Any
    hyperparameters: dict[str, float]

    def encode(self, keys: Sequence[str]) -> list[str]:
        return list(keys)

    def gram(self, a: list[str]) -> FloatArray:
        return self.cross(a, a)

    def cross(self, a: list[str], b: list[str]) -> FloatArray:
        blocks = [self.surrogate.similarity(a[start : start + BLOCK], b) for start in range(0, len(a), BLOCK)]
        joined: FloatArray = np.concatenate(blocks).astype(np.float64)
        return joined


@dataclass(frozen=True)
class _Drawn:
    """Prior correlation of strings, mean over the draws of several kernels, which need not have been fitted again."""

    surrogate: FullyBayesianGP
    hyperparameters: dict[str, float]

    def encode(self, keys: Sequence[str]) -> Encoded:
        encoded: Encoded = self.surrogate.encoder.encode(keys)
        return encoded

    def gram(self, a: Encoded) -> FloatArray:
        return self.cross(a, a)

    def cross(self, a: Encoded, b: Encoded) -> FloatArray:
        evaluator = self.surrogate.evaluator(max(a.width, b.width))
        total = np.empty((len(a), len(b)))
        for start in range(0, len(a), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(a)))
            found = correlations(evaluator, a.take(rows), b)
            total[rows] = found.reshape(-1, *found.shape[-2:]).mean(axis=0)
        return total


def _prior_covariance(surrogate: Any) -> Any:
    """The covariance of a surrogate that has learned its parameters; `None` for one that has not.

    Raises:
        InputError: For a surrogate without kernel.
    """
    if isinstance(surrogate, StringGP):
        try:
            model = surrogate.model
        except ModelError:
            return None
        (rows,) = model.train_inputs
        kernel = model.covar_module.base_kernel
        return _KernelCovariance(surrogate.encoder, (((1.0,), kernel),), rows.shape[-1], surrogate.hyperparameters)
    if isinstance(surrogate, FullyBayesianStringGP):
        drawn = surrogate.state_dict()["parameters"]
        if drawn is None:
            return None
        return _KernelCovariance(
            surrogate.encoder,
            _mixture(surrogate.kernel, drawn["gap_decay"], drawn["match_decay"]),
            0,
            surrogate.hyperparameters,
        )
    if isinstance(surrogate, FullyBayesianGP):
        return _Drawn(copy.copy(surrogate), surrogate.hyperparameters) if surrogate.drawn else None
    if callable(getattr(surrogate, "similarity", None)):
        # The copy stays as it is when the surrogate is fitted again.
        return _Similarity(copy.copy(surrogate), dict(getattr(surrogate, "hyperparameters", {})))
    raise InputError(
        f"{type(surrogate).__name__} has no kernel to look into: choose a name such as ssk or minmax, or give a "
        "surrogate with a method similarity(a, b)"
    )


def _mixture(
    kernel: SubsequenceKernel, gap_decays: Sequence[float], match_decays: Sequence[float]
) -> tuple[tuple[tuple[float, ...], SubsequenceKernel], ...]:
    """Sub-sequence kernels like ``kernel`` at drawn decays, weighted by how often these were drawn.

    Decays of a batch that share their gap decay share its dynamic program.
    """
    counts = Counter(zip(gap_decays, match_decays, strict=True))
    parts = []
    for gap in sorted(set(gap_decays)):
        mine = sorted((match, count) for (other, match), count in counts.items() if other == gap)
        for start in range(0, len(mine), TOGETHER):
            chosen = mine[start : start + TOGETHER]
            weights = tuple(count / counts.total() for _, count in chosen)
            match = torch.tensor([match for match, _ in chosen], dtype=torch.float64)
            parts.append((weights, kernel.at(match, torch.full_like(match, gap))))
    return tuple(parts)


def _learn(
    surrogate: Any,
    space: Space,
    keys: Sequence[str],
    values: FloatArray | None,
    most: int,
    rng: np.random.Generator,
) -> Any:
    """The covariance of a surrogate after it has learned from the measured strings, or as it is at first."""
    if most < 2:
        raise InputError(f"learn_from is {most}; a fit needs at least 2 strings")
    if callable(getattr(surrogate, "bind", None)):
        surrogate.bind(space)
    indices = np.flatnonzero(np.isfinite(values)) if values is not None else np.arange(0)
    if values is not None and len(indices) < 2:
        logger.warning("%d of %d strings measured: the kernel keeps its defaults", len(indices), len(keys))
    if values is not None and len(indices) >= 2:
        if len(indices) > most:
            indices = np.sort(rng.choice(indices, size=most, replace=False))
        surrogate.fit([keys[int(index)] for index in indices], values[indices], rng=rng)
        return _prior_covariance(surrogate)
    if isinstance(surrogate, StringGP | FullyBayesianGP):
        # Of several kernels the first, until values tell which is better.
        first = surrogate.kernel if isinstance(surrogate, StringGP) else surrogate.kernels[0]
        kernel = copy.deepcopy(first).to(torch.float64).eval()
        bind_symbols(kernel, surrogate.encoder)
        return _KernelCovariance(surrogate.encoder, (((1.0,), kernel),), 0, {})
    return _prior_covariance(surrogate)


def _components(gram: FloatArray, count: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
    """Coordinates, shares of the variance, what takes centred covariances to coordinates, and what centres them."""
    from sklearn.decomposition import KernelPCA
    from sklearn.preprocessing import KernelCenterer

    if not np.isfinite(gram).all():
        row = int(np.flatnonzero(~np.isfinite(gram).all(axis=1))[0])
        raise InputError(f"the kernel gives no finite number for string {row}: choose another surrogate")
    n = len(gram)
    variance = float(np.trace(gram) - gram.sum() / n)
    if not variance > NEGLIGIBLE * float(np.trace(gram)):
        raise InputError(f"all {n} strings look the same to this kernel: choose another surrogate, or other strings")
    centring = KernelCenterer().fit(gram)
    solver = "dense" if n <= DENSE or count >= n - 1 else "arpack"
    pca = KernelPCA(count, kernel="precomputed", eigen_solver=solver, random_state=seed, copy_X=False)
    try:
        coordinates: FloatArray = pca.fit_transform(gram)
    except ValueError as error:
        raise InputError(f"this kernel is not a covariance function: {error}") from error
    held: FloatArray = np.maximum(pca.eigenvalues_, 0.0)
    used = held > NEGLIGIBLE * variance
    held, coordinates = np.where(used, held, 0.0), np.where(used, coordinates, 0.0)
    # x(s) = Lambda^(-1/2) U^T (centred covariances), and U = X Lambda^(-1/2).
    axes = np.divide(coordinates, held, out=np.zeros_like(coordinates), where=used)
    return coordinates, held / variance, axes, centring


def _checked_strings(strings: Sequence[str]) -> list[str]:
    items = _texts(strings)
    if len(items) < FEWEST:
        raise InputError(f"a map needs at least {FEWEST} strings; got {len(items)}")
    if len(items) > MOST:
        raise InputError(
            f"a map of {len(items):,} strings is too large for the memory of most machines: map a random sample of at "
            f"most {MOST:,}, and project() the others"
        )
    return items


def _checked_values(strings: Sequence[str], values: npt.ArrayLike) -> FloatArray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"values must be numbers, and NaN where nothing was measured: {error}") from error
    if numbers.shape != (len(strings),):
        raise InputError(f"{len(strings)} strings but values of shape {numbers.shape}: give one value for each string")
    if np.isinf(numbers).any():
        index = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InputError(f"value {index} of {strings[index]!r} is {numbers[index]}: give a finite number, or NaN")
    return numbers


def _candidates(strings: Sequence[str], kind: str | None, tokenizer: str | Tokenizer | None) -> CandidateSet:
    chosen = recognize_kind(strings) if kind is None or kind == "auto" else kind
    found = identity_keys(strings, chosen)
    _refuse([(index, string) for index, string in enumerate(strings) if found[index] is None], len(strings), chosen)
    return CandidateSet(strings, kind=chosen, keys=[key for key in found if key is not None], tokenizer=tokenizer)


def _keys(strings: Sequence[str], space: Space) -> list[str]:
    """Keys of strings; all that have none are complained about at once."""
    keys, bad = [], []
    for index, string in enumerate(_texts(strings)):
        try:
            keys.append(space.key(string))
        except InputError:
            bad.append((index, string))
    _refuse(bad, len(strings), space.kind)
    return keys


def _texts(strings: Sequence[str]) -> list[str]:
    if isinstance(strings, str):
        raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
    for index, string in enumerate(strings):
        if not isinstance(string, str):
            raise InputError(f"item {index} is {string!r} of type {type(string).__name__}; seqopt works on str")
    return list(strings)


def _refuse(bad: Sequence[tuple[int, str]], total: int, kind: str) -> None:
    if not bad:
        return
    shown = "; ".join(f"number {index} {string!r} ({explain_rejection(string, kind)})" for index, string in bad[:SHOWN])
    more = f"; and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    raise InputError(f"{len(bad):,} of {total:,} strings, counted from 0, are not of kind {kind}: {shown}{more}")


register_renderer(KernelMap, describe_map)
